//! Windows and buffers that do not fit each other.

use super::Trap;
use crate::bounds::short;
use crate::facts::{Facts, UNSCALED_WINDOW};
use farpath_units::Bytes;

/// Both ends offer window scaling.
pub(crate) fn scale() -> Vec<String> {
    vec!["sender.send.window_scaling=true".to_owned(), "receiver.send.window_scaling=true".to_owned()]
}

/// A receive buffer of so much, and what it takes to announce it.
pub(crate) fn receive_buffer(bytes: Bytes) -> Vec<String> {
    let mut changes = vec![format!("receiver.receive.buffer={bytes}")];
    if bytes > UNSCALED_WINDOW {
        changes.extend(scale());
    }
    changes
}

/// `window-scaling`.
pub(super) fn scaling() -> (&'static str, Vec<String>) {
    ("RFC 7323 section 2; RFC 9293 section 3.1", scale())
}

/// `window-below-segment`.
pub(super) fn one_segment(facts: &Facts<'_>) -> (&'static str, Vec<String>) {
    ("RFC 9293 section 3.8.6.2", receive_buffer(facts.window_needed()))
}

/// `window-below-ack`: a window of fewer segments than one ACK takes waits for the delayed-ACK timer each time.
pub(super) fn below_ack(facts: &Facts<'_>) -> Option<Trap> {
    let (segments, every) = (facts.window.0 / facts.segment().0, facts.ack_every());
    let delay = facts.ack_delay();
    (segments >= 1 && segments < every && !delay.is_zero()).then(|| {
        let text = format!(
            "the window holds {segments} segments, and every {every} are acknowledged: each window waits {delay} for \
             the delayed ACK"
        );
        Trap::new("window-below-ack", "receiver.receive.ack_every", text, "RFC 1122 section 4.2.3.2")
            .set([format!("receiver.receive.ack_every={segments}")])
    })
}

/// `window-below-fast-retransmit`: too few segments behind a lost one to bring the duplicate ACKs.
pub(super) fn below_fast_retransmit(facts: &Facts<'_>) -> Option<Trap> {
    let threshold = u64::from(facts.sender().recovery.dup_ack_threshold);
    let segments = facts.window.0 / facts.segment().0;
    let lossy = facts.view.data_loss.fraction() > 0.0;
    (lossy && segments <= threshold && facts.size() > facts.window).then(|| {
        let text = format!(
            "the window holds {segments} segments, and a fast retransmit takes {threshold} duplicate ACKs: every \
             loss waits for the timer"
        );
        Trap::new("window-below-fast-retransmit", "receiver.receive.buffer", text, "RFC 5681 section 3.2")
            .set(receive_buffer(facts.window_needed()))
    })
}

/// `send-buffer`: less than fills the path, where the receiver would take more.
pub(super) fn send_buffer(facts: &Facts<'_>) -> Option<Trap> {
    let (buffer, bdp) = (facts.sender().send.buffer?, facts.bdp?);
    let receive = facts.receiver().receive.buffer;
    (buffer < bdp && buffer < receive && buffer < facts.size()).then(|| {
        let text = format!(
            "{} are below the bandwidth-delay product of {}: what is sent stays in the buffer until its ACK has come, \
             and the receiver would take {}",
            short(buffer),
            short(bdp),
            short(receive)
        );
        Trap::new("send-buffer", "sender.send.buffer", text, "RFC 9293 section 3.8: kept until acknowledged")
            .set([format!("sender.send.buffer={}", facts.window_needed())])
    })
}
