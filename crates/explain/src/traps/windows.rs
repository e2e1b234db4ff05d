//! Windows and buffers that do not fit each other.

use super::Trap;
use crate::bounds::short;
use crate::path_summary::{PathSummary, UNSCALED_WINDOW};
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
pub(super) fn one_segment(summary: &PathSummary<'_>) -> (&'static str, Vec<String>) {
    ("RFC 9293 section 3.8.6.2", receive_buffer(summary.window_needed()))
}

/// `window-below-ack`: a window of fewer segments than one ACK takes waits for the delayed-ACK timer each time.
pub(super) fn below_ack(summary: &PathSummary<'_>) -> Option<Trap> {
    let (segments, every) = (summary.window.0 / summary.segment().0, summary.ack_every());
    let delay = summary.ack_delay();
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
pub(super) fn below_fast_retransmit(summary: &PathSummary<'_>) -> Option<Trap> {
    let threshold = u64::from(summary.sender().recovery.dup_ack_threshold);
    let segments = summary.window.0 / summary.segment().0;
    let lossy = summary.view.data_loss.fraction() > 0.0;
    (lossy && segments <= threshold && summary.size() > summary.window).then(|| {
        let text = format!(
            "the window holds {segments} segments, and a fast retransmit takes {threshold} duplicate ACKs: every \
             loss waits for the timer"
        );
        Trap::new("window-below-fast-retransmit", "receiver.receive.buffer", text, "RFC 5681 section 3.2")
            .set(receive_buffer(summary.window_needed()))
    })
}

/// `send-buffer`: less than fills the path, where the receiver would take more.
pub(super) fn send_buffer(summary: &PathSummary<'_>) -> Option<Trap> {
    let (buffer, bdp) = (summary.sender().send.buffer?, summary.bdp?);
    let receive = summary.receiver().receive.buffer;
    (buffer < bdp && buffer < receive && buffer < summary.size()).then(|| {
        let text = format!(
            "{} are below the bandwidth-delay product of {}: what is sent stays in the buffer until its ACK has come, \
             and the receiver would take {}",
            short(buffer),
            short(bdp),
            short(receive)
        );
        Trap::new("send-buffer", "sender.send.buffer", text, "RFC 9293 section 3.8: kept until acknowledged")
            .set([format!("sender.send.buffer={}", summary.window_needed())])
    })
}
