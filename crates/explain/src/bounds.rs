//! What bounds a transfer, in the order of the time that each bound costs.

use crate::facts::{Facts, UNSCALED_WINDOW};
use crate::lift::without;
use crate::measure::{Bench, Observed, Spread};
use crate::{ExplainError, Number, Unit};
use farpath_experiment::Scenario;
use farpath_model::epochs;
use farpath_model::mathis;
use farpath_model::pftk::Pftk;
use farpath_model::slow_start::SlowStart;
use farpath_path::{Direction, ElementKind, MarkThreshold, QueueLimit};
use farpath_tcp::config::{AvoidanceGrowth, CongestionControlKind, SlowStartGrowth};
use farpath_units::{Bytes, Duration};
use serde::Serialize;

/// What can bound a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundId {
    /// The receive window: buffer, and what of it can be announced.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
    /// The sender's own limit on cwnd.
    CwndClamp,
    /// The application that reads.
    Application,
    /// Packets that the path loses.
    Loss,
    /// Packets that overtake others.
    Reordering,
    /// The queue before a link: what does not fit is lost.
    Queue,
    /// Retransmission timers, as far as they are longer or shorter than the path asks for.
    Timers,
    /// Withheld ACKs.
    DelayedAck,
    /// Opening the connection.
    Handshake,
    /// Growing from the initial window to one that fills the path.
    SlowStart,
    /// The links that the ACKs go over.
    AckLink,
    /// The links that the data go over.
    Link,
}

impl BoundId {
    /// As files and flags spell it.
    pub const fn name(self) -> &'static str {
        match self {
            BoundId::ReceiveWindow => "receive-window",
            BoundId::SendBuffer => "send-buffer",
            BoundId::CwndClamp => "cwnd-clamp",
            BoundId::Application => "application",
            BoundId::Loss => "loss",
            BoundId::Reordering => "reordering",
            BoundId::Queue => "queue",
            BoundId::Timers => "timers",
            BoundId::DelayedAck => "delayed-ack",
            BoundId::Handshake => "handshake",
            BoundId::SlowStart => "slow-start",
            BoundId::AckLink => "ack-link",
            BoundId::Link => "link",
        }
    }
}

/// One bound: what it costs, and the closed form behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// Which.
    pub id: BoundId,
    /// Simulated time less the simulated time without this bound, seed by seed, in s; unknown where a run did not complete.
    pub lost_s: Option<Spread>,
    /// That, as a share of the time.
    pub lost_share: Option<f64>,
    /// What is simulated without it, all else being equal; nothing for the handshake, which is measured.
    pub without: Option<Observed>,
    /// What is simulated with this bound alone: all others on the rate are lifted.
    pub alone: Option<Observed>,
    /// The rate of payload that it allows by itself, by its closed form, in bit/s.
    pub allows_bit_per_s: Option<f64>,
    /// The numbers behind it.
    pub numbers: Vec<Number>,
    /// Why it bounds, in words with the numbers in them.
    pub why: String,
    /// The closed form, and where it comes from.
    pub source: &'static str,
}

/// Those that put a ceiling on the rate, and can act alone.
const CEILINGS: [BoundId; 9] = [
    BoundId::ReceiveWindow,
    BoundId::SendBuffer,
    BoundId::CwndClamp,
    BoundId::Application,
    BoundId::Loss,
    BoundId::Reordering,
    BoundId::Queue,
    BoundId::AckLink,
    BoundId::Link,
];

/// The bounds that are there, the costliest first.
pub(crate) fn bounds(
    facts: &Facts<'_>,
    base: &Observed,
    bench: &mut Bench<'_>,
) -> Result<Vec<Bound>, ExplainError> {
    let scenario = facts.scenario;
    let present: Vec<Reason> = reasons(facts, base);
    let mut variants = Vec::new();
    for reason in &present {
        let (from, to) = counterfactual(scenario, reason.id);
        variants.extend([from, to, alone(scenario, reason.id)]);
    }
    let observed = bench.measure(&variants)?;
    let mut bounds: Vec<Bound> = present
        .into_iter()
        .zip(observed.chunks_exact(3))
        .map(|(reason, seen)| bound(reason, base, seen))
        .collect();
    // Of two that cost nothing because either one would be enough, the tighter one by itself comes first.
    let key = |bound: &Bound| {
        let rescued = bound.without.as_ref().map_or(0.0, |without| without.completed - base.completed);
        let faster =
            bound.without.as_ref().map_or(0.0, |without| without.rate_bit_per_s / base.rate_bit_per_s);
        let lost = bound.lost_s.map_or(faster, |lost| lost.mean);
        let itself = bound.alone.as_ref().map_or(f64::INFINITY, |alone| alone.rate_bit_per_s);
        (rescued, lost, itself)
    };
    bounds.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.total_cmp(&b.2))
    });
    Ok(bounds)
}

/// What is compared with what for the cost of a bound.
fn counterfactual(scenario: &Scenario, id: BoundId) -> (Scenario, Scenario) {
    match id {
        // A full first burst needs room in the queue, which must not count as the gain.
        BoundId::SlowStart => {
            (without(scenario, &[BoundId::Queue]), without(scenario, &[BoundId::SlowStart]))
        }
        _ => (scenario.clone(), without(scenario, &[id])),
    }
}

/// `scenario` with this bound as the only one on its rate. A queue bounds nothing without the link behind it.
fn alone(scenario: &Scenario, id: BoundId) -> Scenario {
    if !CEILINGS.contains(&id) {
        return scenario.clone();
    }
    let kept = |other: &BoundId| *other == id || (id == BoundId::Queue && *other == BoundId::Link);
    let others: Vec<BoundId> = CEILINGS.into_iter().filter(|other| !kept(other)).collect();
    without(scenario, &others)
}

fn bound(reason: Reason, base: &Observed, seen: &[Observed]) -> Bound {
    let [from, to, alone] = [&seen[0], &seen[1], &seen[2]];
    let measured = reason.id == BoundId::Handshake;
    let lost_s = if measured {
        base.connect_time_s.filter(|_| base.completed == 1.0).map(|mean| Spread { mean, ci95: None })
    } else {
        from.gain_of(to)
    };
    let time = base.transfer_time_s.filter(|_| base.completed == 1.0);
    Bound {
        id: reason.id,
        lost_share: lost_s.zip(time).map(|(lost, time)| lost.mean / time.mean),
        lost_s,
        without: (!measured).then(|| to.clone()),
        alone: CEILINGS.contains(&reason.id).then(|| alone.clone()),
        allows_bit_per_s: reason.allows_bit_per_s,
        numbers: reason.numbers,
        why: reason.why,
        source: reason.source,
    }
}

/// A bound that is there, by its closed form.
struct Reason {
    id: BoundId,
    allows_bit_per_s: Option<f64>,
    numbers: Vec<Number>,
    why: String,
    source: &'static str,
}

/// The bounds that the scenario has, and what the formulas say of each.
fn reasons(facts: &Facts<'_>, base: &Observed) -> Vec<Reason> {
    [
        Some(receive_window(facts)),
        send_buffer(facts),
        cwnd_clamp(facts),
        application(facts),
        loss(facts),
        reordering(facts),
        queue(facts),
        Some(timers(facts, base)),
        delayed_ack(facts),
        Some(handshake(facts, base)),
        Some(slow_start(facts)),
        link(facts),
        ack_link(facts),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const WINDOW_SOURCE: &str =
    "window / RTT with the delayed ACK (docs/models/window-limit.md); RFC 9293 section 3.8.6";

fn rtt_number(facts: &Facts<'_>) -> Number {
    Number::new("round-trip time", facts.rtt.as_secs_f64(), Unit::Seconds)
}

/// How a window compares with what fills the path.
fn against_bdp(facts: &Facts<'_>, window: Bytes) -> String {
    match facts.bdp {
        Some(bdp) if bdp > window => {
            let times = bdp.0 as f64 / window.0 as f64;
            format!(
                "the path holds {} in a round trip of {:.3}, {times:.1} times as much",
                short(bdp),
                facts.rtt
            )
        }
        Some(bdp) => {
            format!("the path holds no more than {} in a round trip of {:.3}", short(bdp), facts.rtt)
        }
        None => format!("a round trip takes {:.3}", facts.rtt),
    }
}

/// Bytes for a sentence.
pub(crate) fn short(bytes: Bytes) -> String {
    format!("{bytes:.1}")
}

fn window_numbers(facts: &Facts<'_>, name: &'static str, window: Bytes) -> Vec<Number> {
    let mut numbers = vec![Number::new(name, window.0 as f64, Unit::Bytes), rtt_number(facts)];
    numbers.extend(
        facts.bdp.map(|bdp| Number::new("bandwidth-delay product, payload", bdp.0 as f64, Unit::Bytes)),
    );
    numbers
}

fn receive_window(facts: &Facts<'_>) -> Reason {
    let (sender, receiver) = (facts.sender(), facts.receiver());
    let scaled = sender.send.window_scaling && receiver.send.window_scaling;
    let buffer = receiver.receive.buffer;
    let announced = if scaled { buffer } else { buffer.min(UNSCALED_WINDOW) };
    let because = if !scaled && buffer >= UNSCALED_WINDOW {
        " (the most without window scaling at both ends)"
    } else {
        ""
    };
    Reason {
        id: BoundId::ReceiveWindow,
        allows_bit_per_s: facts.rate_of_window(announced),
        numbers: window_numbers(facts, "receive window", announced),
        why: format!(
            "at most {} are announced{because}; {}",
            short(announced),
            against_bdp(facts, announced)
        ),
        source: WINDOW_SOURCE,
    }
}

fn send_buffer(facts: &Facts<'_>) -> Option<Reason> {
    let buffer = facts.sender().send.buffer?;
    Some(Reason {
        id: BoundId::SendBuffer,
        allows_bit_per_s: facts.rate_of_window(buffer),
        numbers: window_numbers(facts, "send buffer", buffer),
        why: format!("at most {} wait for their ACK; {}", short(buffer), against_bdp(facts, buffer)),
        source: WINDOW_SOURCE,
    })
}

fn cwnd_clamp(facts: &Facts<'_>) -> Option<Reason> {
    let clamp = facts.sender().congestion.cwnd_clamp?;
    Some(Reason {
        id: BoundId::CwndClamp,
        allows_bit_per_s: facts.rate_of_window(clamp),
        numbers: window_numbers(facts, "largest cwnd", clamp),
        why: format!("cwnd never passes {}; {}", short(clamp), against_bdp(facts, clamp)),
        source: WINDOW_SOURCE,
    })
}

fn application(facts: &Facts<'_>) -> Option<Reason> {
    let rate = facts.receiver().receive.read_rate? as f64 * 8.0;
    Some(Reason {
        id: BoundId::Application,
        allows_bit_per_s: Some(rate),
        numbers: vec![Number::new("read rate", rate, Unit::BitPerS)],
        why: "the receiving application reads no faster".to_owned(),
        source: "RFC 9293 section 3.8.6: what is not read closes the window",
    })
}

fn loss(facts: &Facts<'_>) -> Option<Reason> {
    let (data, acks) = (facts.view.data_loss.fraction(), facts.view.ack_loss.fraction());
    let listed = facts.scenario.path.iter().any(|element| match &element.kind {
        ElementKind::Listed { packets, .. } => Direction::BOTH.iter().any(|&way| !packets[way].is_empty()),
        _ => false,
    });
    if data == 0.0 && acks == 0.0 && !listed {
        return None;
    }
    // Growth that counts bytes does not slow down with delayed ACKs.
    let every = match facts.sender().congestion.avoidance {
        AvoidanceGrowth::PerByte | AvoidanceGrowth::AllAcked => 1,
        AvoidanceGrowth::PerAck | AvoidanceGrowth::PerAckRounded => facts.ack_every(),
    };
    let round = facts.rtt;
    let timeout = facts.sender().rto.timeout(round, Duration::ZERO);
    let pftk = Pftk {
        mss: facts.segment(),
        rtt: round,
        t0: timeout,
        loss_event_rate: facts.view.data_loss,
        ack_every: every,
        wmax: None,
    };
    let reno = (data > 0.0).then(|| mathis::constant(every).ok()).flatten().map(|c| c / data.sqrt());
    // Where CUBIC's own window is the smaller, it runs as Reno does (RFC 9438 section 4.3).
    let cubic = (facts.sender().congestion.control == CongestionControlKind::Cubic && data > 0.0)
        .then(|| epochs::cubic_mean_window(round, facts.view.data_loss))
        .filter(|&cubic| reno.is_some_and(|reno| cubic > reno));
    let mean = cubic.or(reno);
    let allows = match cubic {
        Some(window) => Some(window * facts.segment().0 as f64 * 8.0 / round.as_secs_f64()),
        None if data > 0.0 => pftk.goodput().ok().map(|allows| allows.value.bytes_per_s() * 8.0),
        None => None,
    };
    let (controller, law, source) = match cubic {
        Some(_) => ("CUBIC", "mean window of CUBIC", "RFC 9438 section 5.1, evenly spaced losses"),
        None => (
            "Reno",
            "mean window by the square-root law",
            "Padhye et al. 1998 without a receive window (docs/models/pftk.md); Mathis et al. 1997 for the window",
        ),
    };
    let mut numbers = vec![
        Number::new("loss of data", data, Unit::Share),
        Number::new("loss of ACKs", acks, Unit::Share),
        rtt_number(facts),
        Number::new("retransmission timeout", timeout.as_secs_f64(), Unit::Seconds),
    ];
    numbers.extend(mean.map(|mean| Number::new(law, mean, Unit::Segments)));
    let window = match (mean, facts.bdp) {
        (Some(mean), Some(bdp)) => format!(
            ": {controller}'s window comes to {mean:.1} segments on average; {:.0} fill the path",
            bdp.0 as f64 / facts.segment().0 as f64
        ),
        (Some(mean), None) => format!(": {controller}'s window comes to {mean:.1} segments on average"),
        (None, _) => String::new(),
    };
    Some(Reason {
        id: BoundId::Loss,
        allows_bit_per_s: allows,
        numbers,
        why: match (data > 0.0, listed) {
            (true, _) => format!("one data packet in {:.0} is lost{window}", 1.0 / data),
            (false, true) => "listed packets are lost".to_owned(),
            (false, false) => format!("one ACK in {:.0} is lost", 1.0 / acks),
        },
        source,
    })
}

fn reordering(facts: &Facts<'_>) -> Option<Reason> {
    let threshold = facts.sender().recovery.dup_ack_threshold;
    let (share, extra) = facts.scenario.path.iter().find_map(|element| match &element.kind {
        ElementKind::Reorder { share, extra_delay } => Some((share[facts.data].fraction(), *extra_delay)),
        _ => None,
    })?;
    Some(Reason {
        id: BoundId::Reordering,
        allows_bit_per_s: None,
        numbers: vec![
            Number::new("share held back", share, Unit::Share),
            Number::new("held back for", extra.as_secs_f64(), Unit::Seconds),
        ],
        why: format!("{threshold} segments that overtake another one are taken for its loss"),
        source: "RFC 5681 section 3.2; RFC 4737",
    })
}

/// Utilization of a link by one Reno flow whose window saws between half of what path and queue hold and all of it.
///
/// With C the bandwidth-delay product and B the queue, in segments, a cycle carries 3/8 (C+B)^2 segments. Below C a round
/// takes one round trip, above it W/C of one, so that it lasts `C (C-B)/2 + ((C+B)^2 - C^2)/2` sending times of a segment
/// for B < C. 3/4 without a queue, 1 from one bandwidth-delay product on.
pub fn reno_utilization(bdp: f64, queue: f64) -> f64 {
    if queue >= bdp || bdp <= 0.0 {
        return 1.0;
    }
    let top = bdp + queue;
    let carried = 0.375 * top * top;
    let lasts = bdp * (bdp - queue) / 2.0 + (top * top - bdp * bdp) / 2.0;
    (carried / lasts).min(1.0)
}

fn queue(facts: &Facts<'_>) -> Option<Reason> {
    let limited = facts.scenario.path.iter().any(|element| match &element.kind {
        ElementKind::Link { queue, mark, .. } => Direction::BOTH
            .iter()
            .any(|&way| queue[way] != QueueLimit::Unlimited || mark[way] != MarkThreshold::Never),
        _ => false,
    });
    let (queue, bdp) = (facts.view.queue, facts.bdp_packets);
    let (Some(queue), Some(bdp), true) = (queue, bdp, limited) else { return None };
    let share = queue.0 as f64 / bdp.0.max(1) as f64;
    let reaches = facts.capacity().is_some_and(|capacity| facts.window > capacity);
    let used = if reaches { reno_utilization(bdp.0 as f64, queue.0 as f64) } else { 1.0 };
    let why = if reaches {
        format!(
            "the queue holds {share:.2} bandwidth-delay products and the window may pass what path and queue hold: \
             what overflows is lost, and Reno's window halves; that keeps {:.0} % of the link busy",
            used * 100.0
        )
    } else {
        format!("the queue holds {share:.2} bandwidth-delay products; the window cannot fill path and queue")
    };
    Some(Reason {
        id: BoundId::Queue,
        allows_bit_per_s: facts.rate_of_link().map(|rate| rate * used),
        numbers: vec![
            Number::new("queue", queue.0 as f64, Unit::Bytes),
            Number::new("bandwidth-delay product, packets", bdp.0 as f64, Unit::Bytes),
            Number::new("utilization of Reno", used, Unit::Share),
        ],
        why,
        source: "Reno's sawtooth between (C+B)/2 and C+B (docs/explain.md); Villamizar and Song 1994 for one BDP",
    })
}

fn timers(facts: &Facts<'_>, base: &Observed) -> Reason {
    let rto = &facts.sender().rto;
    let timeout = rto.timeout(facts.rtt, Duration::ZERO);
    let fitting = facts.fitting_rto();
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
            base.timeouts, facts.rtt
        ),
        source: "RFC 6298 sections 2 and 5; the silence is measured in the simulation",
    }
}

fn delayed_ack(facts: &Facts<'_>) -> Option<Reason> {
    let every = facts.ack_every();
    if every < 2 {
        return None;
    }
    let delay = facts.ack_delay();
    let growth = match facts.sender().congestion.slow_start {
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

fn handshake(facts: &Facts<'_>, base: &Observed) -> Reason {
    let (end, opener) = facts.opener();
    let rtt = facts.view.handshake_rtt;
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

fn slow_start(facts: &Facts<'_>) -> Reason {
    let congestion = &facts.sender().congestion;
    let full = facts.bdp.map_or(facts.window, |bdp| bdp.min(facts.window)).min(facts.size());
    let segments = full.0.div_ceil(facts.segment().0).max(1);
    let start = SlowStart { initial_window: congestion.initial_window.into(), ack_every: facts.ack_every() };
    let rounds = start.rounds_to(segments).map_or(0.0, |rounds| rounds.value);
    Reason {
        id: BoundId::SlowStart,
        allows_bit_per_s: None,
        numbers: vec![
            Number::new("initial window", congestion.initial_window.into(), Unit::Segments),
            Number::new("full window", segments as f64, Unit::Segments),
            Number::new("rounds until it is full", rounds, Unit::Count),
            rtt_number(facts),
        ],
        why: format!(
            "from {} segments it takes {rounds:.1} rounds of {:.3} until {segments} fill the path, the window or the file",
            congestion.initial_window, facts.rtt
        ),
        source: "RFC 5681 section 3.1 (docs/models/slow-start.md)",
    }
}

fn link(facts: &Facts<'_>) -> Option<Reason> {
    let name = facts.bottleneck.as_ref()?;
    let rate = facts.rate_of_link()?;
    let hop = facts.view.path.forward.iter().min_by_key(|hop| hop.rate)?;
    let frame = hop.frame(facts.segment() + facts.view.path.headers);
    let share = facts.segment().0 as f64 / frame.0 as f64;
    Some(Reason {
        id: BoundId::Link,
        allows_bit_per_s: Some(rate),
        numbers: vec![
            Number::new("link rate", hop.rate.bit_per_s() as f64, Unit::BitPerS),
            Number::new("payload share of a frame", share, Unit::Share),
        ],
        why: format!("`{name}` carries {}, of which {:.1} % is payload", hop.rate, share * 100.0),
        source: "mss / (mss + overhead) x rate (docs/models/overhead.md)",
    })
}

fn ack_link(facts: &Facts<'_>) -> Option<Reason> {
    facts.bottleneck.as_ref()?;
    let every = facts.ack_every();
    let headers = facts.view.path.headers;
    let hop = facts.view.path.reverse.iter().min_by_key(|hop| hop.rate)?;
    let each = hop.rate.time_to_send(hop.frame(headers)).as_secs_f64();
    let rate = (every * facts.segment().0) as f64 * 8.0 / each.max(1e-12);
    Some(Reason {
        id: BoundId::AckLink,
        allows_bit_per_s: Some(rate),
        numbers: vec![
            Number::new("slowest link of the ACKs", hop.rate.bit_per_s() as f64, Unit::BitPerS),
            Number::new("segments per ACK", every as f64, Unit::Count),
        ],
        why: format!("ACKs return over {}, each for {every} segments", hop.rate),
        source: "RFC 3449 section 2.1: normalized bandwidth ratio",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appenzeller, Keslassy, McKeown 2004, section 2: three quarters without a queue, all of it from one BDP on.
    #[test]
    fn reno_uses_three_quarters_of_a_link_without_a_queue() {
        assert!((reno_utilization(100.0, 0.0) - 0.75).abs() < 1e-12);
        assert_eq!(reno_utilization(100.0, 100.0), 1.0);
        assert!((reno_utilization(100.0, 10.0) - 0.8176).abs() < 5e-4, "{}", reno_utilization(100.0, 10.0));
        assert!(reno_utilization(100.0, 99.0) < 1.0);
    }
}
