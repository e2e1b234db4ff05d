//! Slow start, which all controllers share: standard (RFC 5681 §3.1, RFC 3465), or with HyStart++ (RFC 9406).

use super::hystart::HyStart;
use super::{AckEvent, Window};
use crate::config::{CongestionConfig, HyStart as Rule, SlowStartGrowth};

/// How `cwnd` grows below `ssthresh`.
#[derive(Debug, Clone)]
pub(super) struct SlowStart {
    growth: SlowStartGrowth,
    smss: u64,
    /// `cwnd` never grows past this.
    clamp: u64,
    /// Present until the first slow start has ended: RFC 9406 §4.2 leaves later ones to `ssthresh`.
    hystart: Option<HyStart>,
}

impl SlowStart {
    pub fn new(config: &CongestionConfig, smss: u64) -> SlowStart {
        SlowStart {
            growth: config.slow_start,
            smss,
            clamp: clamp(config, smss),
            hystart: (config.hystart == Rule::Rfc9406).then(|| HyStart::new(smss)),
        }
    }

    /// Grows `cwnd`; where HyStart++ ends slow start, `ssthresh` becomes `cwnd`.
    #[inline]
    pub fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if self.hystart.is_some() {
            self.on_ack_with_hystart(window, ack);
            return;
        }
        let increase = match self.growth {
            SlowStartGrowth::PerAck => self.smss,
            SlowStartGrowth::PerByte => ack.newly_acked.min(self.smss),
            SlowStartGrowth::TwoSegments => ack.newly_acked.min(2 * self.smss),
            SlowStartGrowth::AllAcked => ack.newly_acked.min(window.ssthresh - window.cwnd),
        };
        window.cwnd = window.cwnd.saturating_add(increase).min(self.clamp);
    }

    #[cold]
    fn on_ack_with_hystart(&mut self, window: &mut Window, ack: &AckEvent) {
        let Some(hystart) = &mut self.hystart else { return };
        let step = hystart.on_ack(ack);
        window.cwnd = window.cwnd.saturating_add(step.increase).min(self.clamp);
        if step.leaves_slow_start {
            window.ssthresh = window.cwnd;
        }
        if window.cwnd >= window.ssthresh {
            self.hystart = None;
        }
    }

    /// RFC 9406 §4.2: a loss ends slow start and CSS alike.
    pub fn on_loss(&mut self) {
        self.hystart = None;
    }
}

/// The most that `cwnd` may be: the configured clamp, but one segment at least.
pub(super) fn clamp(config: &CongestionConfig, smss: u64) -> u64 {
    config.cwnd_clamp.map_or(u64::MAX, |clamp| clamp.0).max(smss)
}
