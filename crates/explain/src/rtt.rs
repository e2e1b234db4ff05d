//! Round-trip times under a transfer: what a call or a game beside it would feel.

use farpath_units::{Duration, DurationHistogram};
use serde::Serialize;

/// Half, 95 % and 99 % of the samples are no longer than these.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Quantiles {
    pub(crate) fn from_histograms<'a>(
        histograms: impl Iterator<Item = &'a DurationHistogram>,
    ) -> Option<Quantiles> {
        let mut all = DurationHistogram::default();
        histograms.for_each(|histogram| all.merge(histogram));
        let quantile = |percent| all.percentile(percent).map(Duration::as_secs_f64);
        Some(Quantiles { p50: quantile(50)?, p95: quantile(95)?, p99: quantile(99)? })
    }
}
