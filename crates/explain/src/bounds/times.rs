//! Time that is not spent at a rate: timers, withheld ACKs, opening, growing.

use super::{Reason, rtt_number};
use crate::bound_id::BoundId;
use crate::measure::Observed;
use crate::path_summary::PathSummary;
use crate::{Number, Unit};
use farpath_model::slow_start::SlowStart;
use farpath_tcp::config::SlowStartGrowth;
use farpath_units::Duration;

pub(super) fn timers(summary: &PathSummary<'_>, base: &Observed) -> Reason {
    let rto = &summary.sender().rto;
    let timeout = rto.timeout(summary.rtt, Duration::ZERO);
    let fitting = summary.fitting_rto();
    let waited = base.waited_for_timer_s;
    Reason {
        id: BoundId::Timers,
        allows_bit_per_s: None,
        numbers: vec![
            Number::new("timeouts", base.timeouts, Unit::Count),
            Number::new("time spent waiting for them", waited, Unit::Seconds),
            Number::new("retransmission timeout at a steady RTT", timeout.as_secs_f64(), Unit::Seconds),
            Number::new("timeout that fits the path", fitting.as_secs_f64(), Unit::Seconds),
            Number::new("initial timeout", rto.initial.as_secs_f64(), Unit::Seconds),
        ],
        why: format!(
            "{:.1} timeouts, {waited:.2} s of silence before them; the timeout is {timeout:.3} at a steady round trip of \
             {:.3}, where {fitting:.3} would fit (RTT, ACK delay and an eighth)",
            base.timeouts, summary.rtt
        ),
        source: "RFC 6298 sections 2 and 5; the silence is measured in the simulation",
    }
}

pub(super) fn delayed_ack(summary: &PathSummary<'_>) -> Option<Reason> {
    let every = summary.ack_every();
    if every < 2 {
        return None;
    }
    let delay = summary.ack_delay();
    let growth = match summary.sender().congestion.slow_start {
        SlowStartGrowth::TwoSegments | SlowStartGrowth::AllAcked => "",
        _ => "slow start grows by half in place of doubling, and ",
    };
    Some(Reason {
        id: BoundId::DelayedAck,
        allows_bit_per_s: None,
        numbers: vec![
            Number::new("segments per ACK", every as f64, Unit::Count),
            Number::new("longest wait", delay.as_secs_f64(), Unit::Seconds),
        ],
        why: format!(
            "every {every} segments are acknowledged, a lone one after {delay}: {growth}an odd segment waits"
        ),
        source: "RFC 1122 section 4.2.3.2; RFC 5681 section 4.2",
    })
}

pub(super) fn handshake(summary: &PathSummary<'_>, base: &Observed) -> Reason {
    let (end, opener) = summary.opener();
    let rtt = summary.view.handshake_rtt;
    let rounds = if end == "sender" { 1.0 } else { 1.5 };
    let mut numbers = vec![
        Number::new("round trip without data", rtt.as_secs_f64(), Unit::Seconds),
        Number::new("round trips until data may leave", rounds, Unit::Count),
        Number::new("initial timeout", opener.rto.initial.as_secs_f64(), Unit::Seconds),
        Number::new("SYNs", base.syns, Unit::Count),
    ];
    numbers.extend(base.connect_time_s.map(|time| Number::new("connect time", time, Unit::Seconds)));
    Reason {
        id: BoundId::Handshake,
        allows_bit_per_s: None,
        numbers,
        why: format!(
            "the {end} opens: data may leave after {rounds} round trips of {rtt:.3}, and a lost SYN waits for {}",
            opener.rto.initial
        ),
        source: "RFC 9293 section 3.5; the connect time is measured in the simulation",
    }
}

pub(super) fn slow_start(summary: &PathSummary<'_>, base: &Observed) -> Reason {
    let congestion = &summary.sender().congestion;
    let full = summary.bdp.map_or(summary.window, |bdp| bdp.min(summary.window)).min(summary.size());
    let segments = full.0.div_ceil(summary.segment().0).max(1);
    let start =
        SlowStart { initial_window: congestion.initial_window.into(), ack_every: summary.ack_every() };
    let formula = start.rounds_to(segments).map_or(0.0, |rounds| rounds.value);
    // A stack that counts bytes doubles whatever the receiver withholds: what was seen is what counts.
    let rounds = base.slow_start_rounds.unwrap_or(formula);
    Reason {
        id: BoundId::SlowStart,
        allows_bit_per_s: None,
        numbers: vec![
            Number::new("initial window", congestion.initial_window.into(), Unit::Segments),
            Number::new("full window", segments as f64, Unit::Segments),
            Number::new("rounds of slow start, recorded", rounds, Unit::Count),
            Number::new("rounds until it is full, by the formula", formula, Unit::Count),
            rtt_number(summary),
        ],
        why: format!(
            "it began with {} segments and grew for {rounds:.1} rounds of {:.3} (recorded); {segments} segments fill the path, \
             the window or the file",
            congestion.initial_window, summary.rtt
        ),
        source: "RFC 5681 section 3.1 (docs/models/slow-start.md)",
    }
}
