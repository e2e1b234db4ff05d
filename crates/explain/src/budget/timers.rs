//! The timers of the two stacks, each laid against the answer that it waits for.

use super::Delay;
use crate::give_up_time::{self, FirstTimeout, first_timeout};
use crate::path_summary::PathSummary;
use farpath_model::budget::{Fit, fit};
use farpath_predict::{listening, opening};
use farpath_tcp::Config;
use farpath_units::Duration;
use serde::Serialize;

/// What becomes of a timer on this path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerVerdict {
    /// It outlasts the answer, also through full queues.
    Fits,
    /// A spurious timeout where queues are full.
    SpuriousWhenFull,
    /// A spurious timeout on an idle path already.
    Spurious,
    /// It ends the connection where queues are full.
    EndsWhenFull,
    /// It ends the connection on an idle path already.
    Ends,
}

impl TimerVerdict {
    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            TimerVerdict::Fits => "fits",
            TimerVerdict::SpuriousWhenFull => "spurious when the queue is full",
            TimerVerdict::Spurious => "spurious",
            TimerVerdict::EndsWhenFull => "ends it when the queue is full",
            TimerVerdict::Ends => "ends the connection",
        }
    }
}

/// A timer against what it waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimerFit {
    /// Which, in one word.
    pub id: &'static str,
    /// The parameter that sets it.
    pub key: String,
    /// How long it is, in s; `None` where it never expires.
    pub timer_s: Option<f64>,
    /// What it waits for takes so long on an idle path, in s.
    pub idle_s: f64,
    /// The same through full queues; `None` where nothing limits them.
    pub full_s: Option<f64>,
    /// Timer less the idle path's answer, in s: below zero by how much it is too short; `None` where it never expires.
    pub margin_s: Option<f64>,
    /// What becomes of it.
    pub verdict: TimerVerdict,
    /// What happens, with the numbers.
    pub why: String,
    /// Where the timer comes from.
    pub source: &'static str,
}

/// What a timer does that is not long enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    SendsAgain,
    GivesUp,
}

/// A tail loss probe where no round trip was measured (RFC 8985 §7.2).
const PROBE: Duration = Duration::from_secs(1);

/// A timer of `seconds`, infinite for none, that waits for `answer`.
fn laid(
    id: &'static str,
    key: String,
    seconds: f64,
    answer: Delay,
    does: Does,
    why: String,
    source: &'static str,
) -> TimerFit {
    let verdict = match (fit(seconds, answer.idle_s, answer.full()), does) {
        (Fit::Outlasts, _) => TimerVerdict::Fits,
        (Fit::OutlastsIdle, Does::SendsAgain) => TimerVerdict::SpuriousWhenFull,
        (Fit::Expires, Does::SendsAgain) => TimerVerdict::Spurious,
        (Fit::OutlastsIdle, Does::GivesUp) => TimerVerdict::EndsWhenFull,
        (Fit::Expires, Does::GivesUp) => TimerVerdict::Ends,
    };
    let finite = |value: f64| value.is_finite().then_some(value);
    TimerFit {
        id,
        key,
        timer_s: finite(seconds),
        idle_s: answer.idle_s,
        full_s: answer.full_s,
        margin_s: finite(seconds - answer.idle_s),
        verdict,
        why,
        source,
    }
}

/// All of them, in the order in which a connection meets them.
pub(super) fn timers(summary: &PathSummary<'_>, round_trip: Delay, handshake: Delay) -> Vec<TimerFit> {
    let (opener_end, opener) = summary.opener();
    let (listener_end, listener) = summary.listener();
    let (sender, receiver) = (summary.sender(), summary.receiver());
    let s = |seconds: f64| Duration::from_secs_f64(seconds);
    // A lone segment's ACK is withheld.
    let answered = round_trip.plus(Delay::fixed(summary.ack_delay().as_secs_f64()));
    let mut list = Vec::new();

    let (syns, synacks) = (opening(opener), listening(listener));
    let early = syns.syns(64).iter().filter(|at| at.least < handshake.idle_s).count();
    list.push(laid(
        "initial-rto",
        format!("{opener_end}.rto.initial"),
        opener.rto.initial.as_secs_f64(),
        handshake,
        Does::SendsAgain,
        format!(
            "{early} SYN{} left when the first answer can come, after {:.3}",
            if early == 1 { " has" } else { "s have" },
            s(handshake.idle_s)
        ),
        "RFC 6298 section 2.1",
    ));
    list.push(laid(
        "synack-rto",
        format!("{listener_end}.rto.initial"),
        listener.rto.initial.as_secs_f64(),
        handshake,
        Does::SendsAgain,
        format!("the SYN/ACK waits for its ACK, {:.3} later at the least", s(handshake.idle_s)),
        "RFC 6298 section 2.1",
    ));
    // By how the start falls on the ends' clocks some are a little longer: the least is what holds for all.
    let abandoned = syns.abandoned().value.least;
    let by_time = abandoned == syns.within;
    let key = if by_time { "connect_timeout" } else { "syn_attempts" };
    list.push(laid(
        "syn-schedule",
        format!("{opener_end}.handshake.{key}"),
        abandoned,
        handshake,
        Does::GivesUp,
        format!(
            "{}, and then the attempt is over",
            match opener.handshake.syn_attempts {
                _ if by_time => "so long for the connection to open".to_owned(),
                Some(attempts) => format!("{attempts} SYNs, the wait doubling from {}", opener.rto.initial),
                None => "SYNs without end".to_owned(),
            }
        ),
        "RFC 9293 section 3.8.3 (R2 for SYNs: at least 3 min)",
    ));
    let forgets = synacks.gives_up(&syns).map_or(f64::INFINITY, |forgets| forgets.value.span.least);
    list.push(laid(
        "synack-schedule",
        format!("{listener_end}.handshake.synack_attempts"),
        forgets,
        handshake,
        Does::GivesUp,
        format!(
            "{}; a SYN that comes again starts its timer anew, where it is before it",
            match listener.handshake.synack_attempts {
                Some(attempts) => format!("{attempts} SYN/ACKs, then the half-open connection is forgotten"),
                None => "SYN/ACKs without end".to_owned(),
            }
        ),
        "RFC 9293 section 3.8.3",
    ));
    let FirstTimeout { timeout: first, key, measured } = first_timeout(summary);
    let first_key = format!("sender.rto.{key}");
    let probed = sender.recovery.tail_loss_probe && !measured && PROBE.max(sender.rto.initial) < first;
    let (again, again_key) = if probed {
        (PROBE.max(sender.rto.initial), "sender.recovery.tail_loss_probe".to_owned())
    } else {
        (first, first_key)
    };
    list.push(laid(
        "first-rto",
        again_key,
        again.as_secs_f64(),
        answered,
        Does::SendsAgain,
        format!(
            "the first data {}",
            if measured {
                format!(
                    "go by the SYN's round trip of {:.3}: that and four times its half, or the floor",
                    s(handshake.idle_s)
                )
            } else if probed {
                "are probed for after 1 s, as no round trip was measured: the SYN or its answer was sent again".to_owned()
            } else {
                "go by a timer that knows of no round trip, as the SYN or its answer was sent again (Karn)"
                    .to_owned()
            }
        ),
        "RFC 6298 sections 2.2, 3 and 5.7; RFC 8985 section 7.2",
    ));
    let steady = sender.rto.timeout(summary.rtt, Duration::ZERO);
    list.push(laid(
        "min-rto",
        "sender.rto.min".to_owned(),
        steady.as_secs_f64(),
        answered,
        Does::SendsAgain,
        format!(
            "at a round trip that is always {:.3} the timeout comes down to {steady:.3}, and a lone segment's ACK may \
             be withheld for {}; a queue that fills within a round trip comes on top",
            summary.rtt,
            summary.ack_delay()
        ),
        "RFC 6298 section 2.4; RFC 1122 section 4.2.3.2",
    ));
    list.push(laid(
        "max-rto",
        "sender.rto.max".to_owned(),
        sender.rto.max.as_secs_f64(),
        round_trip,
        Does::SendsAgain,
        "no timeout is longer: below the round trip every segment leaves again".to_owned(),
        "RFC 6298 section 2.5",
    ));
    list.extend(delayed_ack(summary, receiver));
    let retries = give_up_time::retries_of_sender(summary);
    list.push(laid(
        "data-retries",
        "sender.handshake.data_retries".to_owned(),
        retries.map_or(f64::INFINITY, |_| give_up_time::of_sender(summary).as_secs_f64()),
        answered,
        Does::GivesUp,
        match retries {
            Some(retries) => {
                format!("the user timeout: {retries} retransmissions, the wait doubling from {first:.3}")
            }
            None => "retransmissions without end".to_owned(),
        },
        "RFC 9293 section 3.8.3 (R2: at least 100 s)",
    ));
    list
}

/// A withheld ACK waits for the next segment: at the pace of the slowest link it has to come in time.
fn delayed_ack(summary: &PathSummary<'_>, receiver: &Config) -> Option<TimerFit> {
    let every = summary.ack_every();
    summary.bottleneck.as_ref().filter(|_| every > 1)?;
    let gap = summary.view.spacing(u64::MAX) * (every - 1);
    Some(laid(
        "delayed-ack",
        "receiver.receive.ack_delay".to_owned(),
        receiver.receive.ack_delay.as_secs_f64(),
        Delay::fixed(gap.as_secs_f64()),
        Does::SendsAgain,
        format!("at the pace of the slowest link the segment that ends the wait comes {gap:.3} later"),
        "RFC 1122 section 4.2.3.2; RFC 5681 section 4.2",
    ))
}
