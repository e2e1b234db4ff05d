//! Sequence numbers that come round while old segments may still be on their way.

use super::Trap;
use crate::path_summary::PathSummary;

/// Maximum segment lifetime (RFC 9293 §3.4.1): 2 min.
const MSL_S: f64 = 120.0;

/// `sequence-wrap`: half of the sequence space is sent within an MSL, and nothing tells an old segment from a new one.
pub(super) fn wrap(summary: &PathSummary<'_>) -> Option<Trap> {
    let half = f64::from(1_u32 << 31);
    let timestamps = summary.sender().send.timestamps && summary.receiver().send.timestamps;
    if timestamps || (summary.size().0 as f64) < half {
        return None;
    }
    let window = summary.rate_of_window(summary.window)?;
    let bytes_per_s = summary.rate_of_link().unwrap_or(f64::INFINITY).min(window) / 8.0;
    let seconds = half / bytes_per_s;
    (seconds < MSL_S).then(|| {
        let text = format!(
            "without timestamps an old segment that turns up again can be taken for a new one: 2^31 bytes are sent in \
             {seconds:.1} s, below the {MSL_S:.0} s that a segment may live. No path here keeps a packet so long: no \
             simulation shows it"
        );
        Trap::new("sequence-wrap", "sender.send.timestamps", text, "RFC 7323 section 5 (PAWS)")
            .set(["sender", "receiver"].map(|end| format!("{end}.send.timestamps=true")))
    })
}
