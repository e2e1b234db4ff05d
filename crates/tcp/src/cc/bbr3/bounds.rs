//! What losses say of the path: the most that may be in flight when it is probed, and what has room since.

use super::model::Model;
use super::{KEPT, LEAST_WINDOW, UNIT};
use crate::cc::{RateSample, Window};

/// Too much is lost of what was in flight with a packet, in 256ths: 2 %.
pub const LOSS_THRESHOLD: u64 = UNIT * 2 / 100;
/// Left free for others while cruising, in 256ths: 15 %.
const HEADROOM: u64 = UNIT * 15 / 100;

/// Bounds, bytes and bytes per second; `u64::MAX` where nothing was met.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// The short term: since the last probe.
    pub bandwidth_lo: u64,
    /// See [`Bounds::bandwidth_lo`].
    pub inflight_lo: u64,
    /// The long term: what a probe found to be too much.
    pub inflight_hi: u64,
    /// All three, as they were before the last loss.
    saved: [u64; 3],
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { bandwidth_lo: u64::MAX, inflight_lo: u64::MAX, inflight_hi: u64::MAX, saved: [0; 3] }
    }
}

/// Whether more than the threshold was lost of what was in flight with the segment that this ACK measures.
pub(super) fn too_high(sample: &RateSample) -> bool {
    sample.measured.is_some_and(|measured| measured.lost * UNIT > measured.in_flight * LOSS_THRESHOLD)
}

impl Bounds {
    /// A round in which something was lost while nothing was probed: less, but no less than what it delivered.
    pub fn lower(&mut self, model: &Model, window: &Window) {
        let kept = |bound: u64, at_first: u64| {
            let bound = if bound == u64::MAX { at_first } else { bound };
            u64::try_from(u128::from(bound) * u128::from(KEPT) / u128::from(UNIT)).unwrap_or(u64::MAX)
        };
        self.bandwidth_lo =
            kept(self.bandwidth_lo, model.max_bandwidth()).max(model.latest_bandwidth()).max(1);
        self.inflight_lo = kept(self.inflight_lo, window.cwnd).max(model.latest_inflight());
    }

    /// A timeout leaves a window that says nothing: the one of before is what is lowered.
    pub fn hold_inflight(&mut self, cwnd: u64) {
        if self.inflight_lo == u64::MAX {
            self.inflight_lo = cwnd;
        }
    }

    /// The rate is about to be probed.
    pub fn forget_lo(&mut self) {
        (self.bandwidth_lo, self.inflight_lo) = (u64::MAX, u64::MAX);
    }

    /// What a probe found, with room left for others.
    pub fn with_headroom(&self, smss: u64) -> u64 {
        if self.inflight_hi == u64::MAX {
            return u64::MAX;
        }
        let headroom = (self.inflight_hi / UNIT * HEADROOM).max(smss);
        self.inflight_hi.saturating_sub(headroom).max(LEAST_WINDOW * smss)
    }

    pub fn save(&mut self) {
        self.saved = [self.bandwidth_lo, self.inflight_lo, self.inflight_hi];
    }

    /// The loss was none.
    pub fn undo(&mut self) {
        let [bandwidth_lo, inflight_lo, inflight_hi] = self.saved;
        self.bandwidth_lo = self.bandwidth_lo.max(bandwidth_lo);
        self.inflight_lo = self.inflight_lo.max(inflight_lo);
        self.inflight_hi = self.inflight_hi.max(inflight_hi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::rounds::sample;

    const SMSS: u64 = 1000;

    #[test]
    fn more_than_five_in_256_is_too_much() {
        let too_high = |lost| {
            let mut sample = sample();
            let measured = sample.measured.as_mut().expect("measured");
            (measured.in_flight, measured.lost) = (25_600, lost);
            super::too_high(&sample)
        };
        assert!(!too_high(500) && too_high(501));
    }

    #[test]
    fn room_is_left_for_others_of_what_a_probe_has_found() {
        let found = |inflight_hi| Bounds { inflight_hi, ..Bounds::default() }.with_headroom(SMSS);
        // 38 in 256.
        assert_eq!(found(256_000), 218_000);
        assert_eq!(found(5000), 4 * SMSS, "a segment at the least");
        assert_eq!(found(2000), 4 * SMSS, "four segments are always allowed");
        assert_eq!(found(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_loss_that_was_none_takes_no_bound_lower() {
        let mut bounds = Bounds { bandwidth_lo: 70, inflight_lo: 80, inflight_hi: 90, ..Bounds::default() };
        bounds.save();
        (bounds.bandwidth_lo, bounds.inflight_lo, bounds.inflight_hi) = (60, 81, 70);
        bounds.undo();
        assert_eq!((bounds.bandwidth_lo, bounds.inflight_lo, bounds.inflight_hi), (70, 81, 90));
    }

    #[test]
    fn the_window_before_a_timeout_is_the_bound_where_there_was_none() {
        let mut bounds = Bounds::default();
        bounds.hold_inflight(50_000);
        bounds.hold_inflight(40_000);
        assert_eq!(bounds.inflight_lo, 50_000);
    }
}
