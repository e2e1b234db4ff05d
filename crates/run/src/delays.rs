//! What the round trips and the waits of a flow's packets say of it.

use crate::DelayFigures;
use farpath_units::DurationHistogram;

impl DelayFigures {
    /// What these round trips say, and what these waits, where the path has a queue.
    pub fn from_histograms(rtts: &DurationHistogram, waits: Option<&DurationHistogram>) -> DelayFigures {
        DelayFigures {
            mean_rtt: rtts.mean(),
            p95_rtt: rtts.percentile(95),
            p99_rtt: rtts.percentile(99),
            mean_queueing_delay: waits.and_then(DurationHistogram::mean),
            p95_queueing_delay: waits.and_then(|waits| waits.percentile(95)),
            p99_queueing_delay: waits.and_then(|waits| waits.percentile(99)),
        }
    }
}
