//! The messages of a stream, from what both of its ends saw.

use super::ends::{LocalEnd, PeerEnd};
use super::since;
use crate::peer::Offsets;
use farpath_run::MessageRow;
use farpath_traffic::Role;
use farpath_units::{Instant, Messages};

/// A row for each message that was due by the end of its sender, by this host's clock from the run's `zero` on. What
/// the peer says is moved by as much as the clocks are apart. Only packets tell when a message left: nobody does
/// here.
pub fn rows(
    (flow, role): (u32, Role),
    messages: &Messages,
    local: &LocalEnd,
    peer: &PeerEnd,
    offsets: &Offsets,
    zero: Instant,
) -> Vec<MessageRow> {
    let here = |at: Instant| since(zero, at);
    let there = |at: Instant| since(zero, offsets.here(at.as_nanos()));
    let sender = if role == Role::Sender { Some(&local.facts) } else { peer.facts.as_ref() };
    let Some((sender, began)) = sender.and_then(|end| Some((end, Instant::from_nanos(end.stream_began_ns?))))
    else {
        return Vec::new();
    };
    let count = messages.due_by(Instant::from_nanos(sender.ended_at_ns).saturating_since(began));
    // Each by itself: clocks drift apart while a stream goes on.
    let due = (0..count).map(|number| began + messages.due_after(number));
    let [ours, theirs] = [
        local.messages.iter().map(|at| here(*at)).collect::<Vec<Instant>>(),
        peer.messages.iter().map(|at| there(*at)).collect(),
    ];
    match role {
        Role::Sender => MessageRow::of_flow(flow, due.map(here), &[], [&ours, &[], &theirs, &[]]),
        Role::Receiver => MessageRow::of_flow(flow, due.map(there), &[], [&theirs, &[], &ours, &[]]),
    }
}
