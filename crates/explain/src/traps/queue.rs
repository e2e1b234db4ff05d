//! Queues and links that do not fit the flow.

use super::Trap;
use crate::bounds::{reno_utilization, short};
use crate::path_summary::PathSummary;
use farpath_elements::{Aqm, ElementKind, Link, MarkThreshold};
use farpath_path::Direction;
use farpath_units::Bytes;

/// Changes that let the queue before the slowest link mark from half of its limit on, in place of dropping.
pub(crate) fn mark_of(summary: &PathSummary<'_>) -> Option<Vec<String>> {
    let name = summary.bottleneck.as_ref()?;
    let element = summary.scenario.path.iter().find(|element| element.name == *name)?;
    let ElementKind::Link(Link { queue, mark, aqm, .. }) = &element.kind else { return None };
    let half = Bytes(summary.view.queue?.0 / 2);
    let managed = aqm[summary.data] != Aqm::DropTail;
    if managed || mark[summary.data] != MarkThreshold::Never || half == Bytes::ZERO {
        return None;
    }
    // Where the two directions differ, the other one keeps dropping.
    let alike = queue.forward == queue.reverse && mark.forward == mark.reverse && aqm.forward == aqm.reverse;
    let way = way_of(summary, alike);
    let mut changes = vec![format!("path.{name}.mark{way}={half}")];
    changes.extend(["sender", "receiver"].map(|end| format!("{end}.send.ecn=request")));
    Some(changes)
}

/// The end of a key that is changed in the direction of the data: of both where they are alike.
fn way_of(summary: &PathSummary<'_>, alike: bool) -> &'static str {
    match summary.data {
        _ if alike => "",
        Direction::Forward => ".forward",
        Direction::Reverse => ".reverse",
    }
}

/// The change that has the queue before the slowest link managed by CoDel, a queue for each flow (RFC 8290), with Linux's
/// limit; `None` where it is managed or marks already, or where it is no queue of a link.
pub(crate) fn managed_queue_of(summary: &PathSummary<'_>) -> Option<String> {
    let name = summary.bottleneck.as_ref()?;
    let element = summary.scenario.path.iter().find(|element| element.name == *name)?;
    let ElementKind::Link(Link { mark, aqm, .. }) = &element.kind else { return None };
    let plain = aqm[summary.data] == Aqm::DropTail && mark[summary.data] == MarkThreshold::Never;
    let way = way_of(summary, aqm.forward == aqm.reverse && mark.forward == mark.reverse);
    plain.then(|| format!("path.{name}.aqm{way}=fq-codel"))
}

/// The change that gives the queue before the slowest link room for so much, in the data direction.
pub(crate) fn queue_of(summary: &PathSummary<'_>, bytes: Bytes) -> Option<String> {
    let name = summary.bottleneck.as_ref()?;
    let element = summary.scenario.path.iter().find(|element| element.name == *name)?;
    let ElementKind::Link(Link { queue, .. }) = &element.kind else { return None };
    let way = way_of(summary, queue.forward == queue.reverse);
    Some(format!("path.{name}.queue{way}={bytes}"))
}

/// A queue of 0.7 bandwidth-delay products: with more, Reno's sawtooth leaves less than 1 % of the link idle.
const WORTH_A_WORD: f64 = 0.99;

/// `queue-below-bdp`: a window that may overflow the queue, and a queue that does not last until it has grown again.
pub(super) fn below_bdp(summary: &PathSummary<'_>) -> Option<Trap> {
    let (queue, bdp, capacity) = (summary.view.queue?, summary.bdp_packets?, summary.capacity()?);
    let name = summary.bottleneck.as_ref()?;
    let used = reno_utilization(bdp.0 as f64, queue.0 as f64);
    let costs = used < WORTH_A_WORD && summary.queue_is_short();
    (costs && summary.window > capacity && summary.size() > capacity).then(|| {
        let text = format!(
            "{} are below the bandwidth-delay product of {}, and the window may pass both together: after each \
             overflow the halved window leaves the link idle; Reno uses {:.0} % of it",
            short(queue),
            short(bdp),
            used * 100.0
        );
        let source = "Reno's sawtooth (docs/explain.md); Villamizar and Song 1994";
        Trap::new("queue-below-bdp", format!("path.{name}.queue"), text, source).set(queue_of(summary, bdp))
    })
}

/// `ack-link`: the ACKs of a full data link do not fit onto theirs.
pub(super) fn ack_link(summary: &PathSummary<'_>) -> Option<Trap> {
    summary.bottleneck.as_ref()?;
    let data = summary.view.spacing(u64::MAX).as_secs_f64();
    let headers = summary.view.path.headers;
    let acks = summary.view.path.reverse.iter().map(|hop| hop.rate.time_to_send(hop.frame(headers)));
    let ack = acks.max()?.as_secs_f64() / summary.ack_every() as f64;
    (ack > data && data > 0.0).then(|| {
        let text = format!(
            "the ACKs of a full link take {:.2} times what their own link carries: they queue, and set the pace",
            ack / data
        );
        let trap = Trap::new("ack-link", "path", text, "RFC 3449 section 2.1: a normalized bandwidth ratio above 1");
        // Fewer ACKs (RFC 3449 section 4.2), where the receiver withholds any.
        let fewer = (ack / data * summary.ack_every() as f64).ceil();
        let withholds = !summary.receiver().receive.ack_delay.is_zero();
        if withholds { trap.set(vec![format!("receiver.receive.ack_every={fewer}")]) } else { trap }
    })
}
