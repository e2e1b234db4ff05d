//! How far a stack reaches: its timers as radii, in closed form and by simulation.

mod check;
mod gap;
mod kernel;
mod under_loss;

pub use check::{CheckedRadius, check_radius};
pub use gap::{Gap, GapKind, gaps, longest_gap};
pub use kernel::{Counts, KernelRadii, Measurement, Reach, Way, measure_radii};
pub use under_loss::{CheckedShare, UnderLoss, check_under_loss, radii_under_loss};

use farpath_model::InputError;
use farpath_model::radius::{Forgets, Race, Span, Timer};
use farpath_predict::{FIRST_PROBE, listening, opening, timer, unanswered, unsampled};
use farpath_tcp::Config;
use farpath_tcp::config::{RetransmittedSyn, TickExpiry};
use farpath_units::{Duration, Rate};

/// SYNs that leave again, of which each is a radius of its own; later ones change nothing that is not said by then.
const MOST_SYNS: usize = 16;

/// What changes, or ends, beyond a radius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RadiusKind {
    /// The SYN numbered so, from 1, leaves again though the first was not lost.
    SynAgain(u32),
    /// The first data segment leaves again though it was not lost.
    DataAgain,
    /// No timeout is longer than the round trip: every segment leaves again.
    EverySegmentAgain,
    /// A full window no longer fills the link.
    Window,
    /// Segments may outlive TIME-WAIT.
    TimeWait,
    /// The rule "last SYN leaves".
    LastSyn,
    /// The end that listens forgets the half-open connection.
    HalfOpen,
    /// A segment of data has been sent as often as it may be.
    DataGivenUp,
    /// The rule "connection abandoned": the opener gives up.
    Abandoned,
    /// The least of what ends a connection: data can be exchanged within it and not beyond.
    Usable,
    /// With packets lost, so many of all connections come so far.
    UnderLoss(UnderLoss),
}

impl RadiusKind {
    /// What a table calls it.
    pub fn name(self) -> String {
        match self {
            RadiusKind::SynAgain(1) => "high-performance: SYN again".to_owned(),
            RadiusKind::SynAgain(number) => format!("SYN again, {number} times"),
            RadiusKind::DataAgain => "first data sent again".to_owned(),
            RadiusKind::EverySegmentAgain => "every segment sent again".to_owned(),
            RadiusKind::Window => "window no longer fills the link".to_owned(),
            RadiusKind::TimeWait => "segments outlive TIME-WAIT".to_owned(),
            RadiusKind::LastSyn => "protocol: last SYN leaves".to_owned(),
            RadiusKind::HalfOpen => "server gives up (half-open)".to_owned(),
            RadiusKind::DataGivenUp => "data given up".to_owned(),
            RadiusKind::Abandoned => "protocol: opening abandoned".to_owned(),
            RadiusKind::Usable => "usable: data can be exchanged".to_owned(),
            RadiusKind::UnderLoss(under) => under.to_string(),
        }
    }

    /// Whether it says something of data that are exchanged.
    fn is_of_data(self) -> bool {
        use RadiusKind::{DataAgain, EverySegmentAgain, TimeWait, Window};
        matches!(self, DataAgain | EverySegmentAgain | TimeWait | Window)
    }

    /// A stable name for machines.
    pub fn id(self) -> &'static str {
        match self {
            RadiusKind::SynAgain(1) => "high-performance",
            RadiusKind::SynAgain(_) => "syn-again",
            RadiusKind::DataAgain => "data-again",
            RadiusKind::EverySegmentAgain => "every-segment-again",
            RadiusKind::Window => "window",
            RadiusKind::TimeWait => "time-wait",
            RadiusKind::LastSyn => "last-syn",
            RadiusKind::HalfOpen => "half-open",
            RadiusKind::DataGivenUp => "data-given-up",
            RadiusKind::Abandoned => "abandoned",
            RadiusKind::Usable => "usable",
            RadiusKind::UnderLoss(UnderLoss { completes: false, .. }) => "opens-under-loss",
            RadiusKind::UnderLoss(UnderLoss { completes: true, .. }) => "completes-under-loss",
        }
    }
}

/// One radius of a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Radius {
    /// What changes beyond it.
    pub kind: RadiusKind,
    /// As a round trip, in s: up to the least it is not met, beyond the most always, and between by how the connection's
    /// start falls on the clocks of its ends. Infinite where nothing changes.
    pub rtt: Span,
    /// Where it depends on which of two timers is first.
    pub race: Option<Race>,
    /// The parameters that set it.
    pub timer: String,
}

/// Every radius of `stack`, with the same stack at both ends; that of the window where a link rate is given. What lies
/// beyond the usable radius and is about data is left out.
///
/// In the order of their kinds, not of their size: two stacks are compared line by line.
///
/// # Errors
/// Parameters that are no schedule, such as no SYN at all.
pub fn radii(stack: &Config, rate: Option<Rate>) -> Result<Vec<Radius>, InputError> {
    let (opening, listening) = (opening(stack), listening(stack));
    opening.check()?;
    let (rto, handshake) = (&stack.rto, &stack.handshake);
    let mut list = Vec::new();
    let mut add = |kind, rtt: Span, timer: &str| {
        list.push(Radius { kind, rtt, race: None, timer: timer.to_owned() });
    };

    let syns = opening.syns(MOST_SYNS);
    let shown = if opening.last_syn().value.least.is_finite() { syns.len() } else { syns.len().min(6) };
    for (number, at) in (1..).zip(syns.iter().skip(1)).take(shown.saturating_sub(1)) {
        add(RadiusKind::SynAgain(number), *at, "rto.initial, doubled");
    }
    add(RadiusKind::DataAgain, data_again(stack), data_timer(stack));
    add(RadiusKind::EverySegmentAgain, wait(stack, rto.max), "rto.max");
    if let Some(rate) = rate {
        let window = if stack.send.window_scaling {
            stack.receive.buffer.0
        } else {
            stack.receive.buffer.0.min(u64::from(u16::MAX))
        };
        let rtt = window as f64 * 8.0 / rate.bit_per_s() as f64;
        add(RadiusKind::Window, Span::exactly(rtt), "receive.buffer");
    }
    add(RadiusKind::TimeWait, Span::exactly(handshake.time_wait.as_secs_f64()), "handshake.time_wait");

    let Forgets { span: forgets, race } = listening.gives_up(&opening)?.value;
    let abandons = opening.abandoned().value;
    let data = data_given_up(stack);
    let by_time = abandons.least == opening.within;
    let opener = if by_time { "handshake.connect_timeout" } else { "handshake.syn_attempts" };
    add(RadiusKind::LastSyn, opening.last_syn().value, opener);
    add(RadiusKind::HalfOpen, forgets, "handshake.synack_attempts");
    add(RadiusKind::DataGivenUp, data, "handshake.data_retries");
    add(RadiusKind::Abandoned, abandons, opener);
    let (first, timer) =
        [(forgets, "handshake.synack_attempts"), (data, "handshake.data_retries"), (abandons, opener)]
            .into_iter()
            .min_by(|a, b| a.0.least.total_cmp(&b.0.least).then(a.0.most.total_cmp(&b.0.most)))
            .expect("three of them");
    let usable = forgets.min(data).min(abandons);
    add(RadiusKind::Usable, usable, timer);
    // Where no data can be exchanged, nothing becomes of them that would be slow.
    list.retain(|radius| radius.rtt.least < usable.most || !radius.kind.is_of_data());
    for radius in &mut list {
        match radius.kind {
            RadiusKind::SynAgain(1) => "rto.initial".clone_into(&mut radius.timer),
            RadiusKind::HalfOpen => radius.race = race,
            // A race is one here too where nothing else ends both its ways.
            RadiusKind::Usable if first == forgets && usable == forgets => radius.race = race,
            _ => {}
        }
        if radius.rtt.least == f64::INFINITY {
            "none".clone_into(&mut radius.timer);
        }
    }
    Ok(list)
}

/// How long a wait of `timeout` takes on the clock of a stack.
fn wait(stack: &Config, timeout: Duration) -> Span {
    Timer { initial: timeout.as_secs_f64(), ..timer(stack) }.wait()
}

/// Whether a SYN that was sent again is measured: the timeout is above the round trip then.
fn measures_again(stack: &Config) -> bool {
    stack.rto.retransmitted_syn == RetransmittedSyn::MeasuredFromFirst || stack.send.timestamps
}

/// Within the first radius the SYN has been measured, and the timeout is above the round trip. Beyond it the first data
/// go by a timer that knows of no round trip, unless the stack measures SYNs that were sent again.
///
/// A tail loss probe comes after 1 s where there is no sample (RFC 8985 §7.2), before that timer.
fn data_again(stack: &Config) -> Span {
    let rto = &stack.rto;
    if measures_again(stack) {
        return wait(stack, rto.max);
    }
    // Where the SYN's back-off is kept it has been doubled once, at the least.
    let timer = wait(stack, unsampled(stack, 1));
    // A probe's timer is finer than the retransmission timer, but for a wheel.
    let probe = if rto.tick_expiry == TickExpiry::TimerWheel {
        wait(stack, FIRST_PROBE)
    } else {
        Span::exactly(FIRST_PROBE.as_secs_f64())
    };
    // Where the SYN was not sent again there is a sample.
    if stack.recovery.tail_loss_probe { timer.min(probe).max(wait(stack, rto.initial)) } else { timer }
}

fn data_timer(stack: &Config) -> &'static str {
    let rto = &stack.rto;
    match rto.after_syn_timeout {
        _ if measures_again(stack) => "rto.max",
        Some(timeout) if stack.recovery.tail_loss_probe && timeout > FIRST_PROBE => {
            "recovery.tail_loss_probe"
        }
        Some(timeout) if timeout > rto.initial => "rto.after_syn_timeout",
        _ => "rto.initial",
    }
}

/// When the first data segment has been sent as often as it may be, and its last timeout is over.
fn data_given_up(stack: &Config) -> Span {
    let first = if measures_again(stack) { stack.rto.max } else { unsampled(stack, 1) };
    unanswered(stack, first).abandoned().value
}
