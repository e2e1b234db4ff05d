//! What the path does: it loses, reorders, queues and sends.

use super::{Reason, rtt_number};
use crate::bound_id::BoundId;
use crate::path_summary::PathSummary;
use crate::traps::outage;
use crate::{Number, Unit};
use farpath_elements::{ElementSpec, Line, MarkThreshold, Outside, QueueLimit};
use farpath_model::pftk::Pftk;
use farpath_model::{epochs, mathis};
use farpath_path::Direction;
use farpath_tcp::cc::LongRun;
use farpath_units::Duration;

pub(super) fn loss(summary: &PathSummary<'_>) -> Option<Reason> {
    let (data, acks) = (summary.view.data_loss.fraction(), summary.view.ack_loss.fraction());
    let drops_listed = |element: &ElementSpec| {
        Direction::BOTH.iter().any(|&way| !element.spec().listed_losses(way).is_empty())
    };
    let listed = summary.scenario.path.iter().any(drops_listed);
    let long_run = summary.sender().congestion.control.long_run();
    let tolerated = matches!(long_run, LongRun::ByModel { tolerates } if data.max(acks) <= tolerates);
    if tolerated || data == 0.0 && acks == 0.0 && !listed {
        return None;
    }
    // Growth that counts bytes does not slow down with delayed ACKs.
    let every = if summary.sender().congestion.avoidance.counts_acks() { summary.ack_every() } else { 1 };
    let round = summary.rtt;
    let timeout = summary.sender().rto.timeout(round, Duration::ZERO);
    let pftk = Pftk {
        mss: summary.segment(),
        rtt: round,
        t0: timeout,
        loss_event_rate: summary.view.data_loss,
        ack_every: every,
        wmax: None,
    };
    let reno = (data > 0.0).then(|| mathis::constant(every).ok()).flatten().map(|c| c / data.sqrt());
    // Where CUBIC's own window is the smaller, it runs as Reno does (RFC 9438 section 4.3).
    let cubic = (long_run == LongRun::Cubic && data > 0.0)
        .then(|| epochs::cubic_mean_window(round, summary.view.data_loss))
        .filter(|&cubic| reno.is_some_and(|reno| cubic > reno));
    let mean = cubic.or(reno);
    let allows = match cubic {
        Some(window) => Some(window * summary.segment().0 as f64 * 8.0 / round.as_secs_f64()),
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
        rtt_number(summary),
        Number::new("retransmission timeout", timeout.as_secs_f64(), Unit::Seconds),
    ];
    numbers.extend(mean.map(|mean| Number::new(law, mean, Unit::Segments)));
    let window = match (mean, summary.bdp) {
        (Some(mean), Some(bdp)) => format!(
            ": {controller}'s window comes to {mean:.1} segments on average; {:.0} fill the path",
            bdp.0 as f64 / summary.segment().0 as f64
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

pub(super) fn reordering(summary: &PathSummary<'_>) -> Option<Reason> {
    let threshold = summary.sender().recovery.dup_ack_threshold;
    let reordering = |element: &ElementSpec| element.spec().reordering(summary.data);
    let (share, extra) = summary.scenario.path.iter().find_map(reordering)?;
    Some(Reason {
        id: BoundId::Reordering,
        allows_bit_per_s: None,
        numbers: vec![
            Number::new("share held back", share.fraction(), Unit::Share),
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

pub(super) fn queue(summary: &PathSummary<'_>) -> Option<Reason> {
    let is_limited = |line: Line| {
        !line.is_shared && (line.queue != QueueLimit::Unlimited || line.mark != MarkThreshold::Never)
    };
    let limited =
        summary.scenario.path.iter().any(|element| {
            Direction::BOTH.iter().any(|&way| element.spec().line(way).is_some_and(is_limited))
        });
    let (queue, bdp) = (summary.view.queue, summary.bdp_packets);
    let (Some(queue), Some(bdp), true) = (queue, bdp, limited) else { return None };
    let share = queue.0 as f64 / bdp.0.max(1) as f64;
    let reaches = summary.capacity().is_some_and(|capacity| summary.window > capacity);
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
        allows_bit_per_s: summary.rate_of_link().map(|rate| rate * used),
        numbers: vec![
            Number::new("queue", queue.0 as f64, Unit::Bytes),
            Number::new("bandwidth-delay product, packets", bdp.0 as f64, Unit::Bytes),
            Number::new("utilization of Reno", used, Unit::Share),
        ],
        why,
        source: "Reno's sawtooth between (C+B)/2 and C+B (docs/explain.md); Villamizar and Song 1994 for one BDP",
    })
}

pub(super) fn link(summary: &PathSummary<'_>) -> Option<Reason> {
    let name = summary.bottleneck.as_ref()?;
    let rate = summary.rate_of_link()?;
    let hop = summary.view.path.forward.iter().min_by_key(|hop| hop.rate)?;
    let frame = hop.frame(summary.segment() + summary.view.path.headers);
    let share = summary.segment().0 as f64 / frame.0 as f64;
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

pub(super) fn contacts(summary: &PathSummary<'_>) -> Option<Reason> {
    let outage = outage(summary)?;
    let gaps = outage.gaps;
    let seconds = |time: Duration| if time == Duration::MAX { f64::INFINITY } else { time.as_secs_f64() };
    let mut numbers = vec![
        Number::new("first contact after", gaps.first.as_secs_f64(), Unit::Seconds),
        Number::new("longest gap between contacts", gaps.longest.as_secs_f64(), Unit::Seconds),
    ];
    if outage.sending != Duration::MAX {
        numbers.push(Number::new("gap that a transfer survives", seconds(outage.sending), Unit::Seconds));
    }
    let ends = if outage.ends_transfers() { ", which ends a transfer that is not over" } else { "" };
    let meanwhile = match gaps.outside {
        Outside::Hold => "wait",
        Outside::Drop | Outside::Refuse => "are lost",
    };
    let first = match gaps.first {
        Duration::ZERO => String::new(),
        first => format!("its first contact after {first:.3}, and "),
    };
    Some(Reason {
        id: BoundId::Contacts,
        allows_bit_per_s: None,
        numbers,
        why: format!(
            "`{}` has {first}no contact for up to {:.3} between two{ends}; packets {meanwhile} meanwhile, and the timer backs off",
            outage.element, gaps.longest
        ),
        source: "RFC 6298 section 5.5 for the timer; what it costs is simulated",
    })
}

pub(super) fn ack_link(summary: &PathSummary<'_>) -> Option<Reason> {
    summary.bottleneck.as_ref()?;
    let every = summary.ack_every();
    let headers = summary.view.path.headers;
    let hop = summary.view.path.reverse.iter().min_by_key(|hop| hop.rate)?;
    let each = hop.rate.time_to_send(hop.frame(headers)).as_secs_f64();
    let rate = (every * summary.segment().0) as f64 * 8.0 / each.max(1e-12);
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
