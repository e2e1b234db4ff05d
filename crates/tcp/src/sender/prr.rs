//! Proportional Rate Reduction: how fast recovery with SACK brings the flight down to `ssthresh` (RFC 6937, RFC 9937).
//!
//! Without SACK the window is inflated and deflated as RFC 5681 §3.2 and RFC 6582 say, unless it is wanted there too.

use super::phase::Phase;
use super::{News, Sender};
use crate::config::{RateReduction, WindowWithoutSack};

/// One recovery's account, in bytes; in segments by Linux's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prr {
    /// RecoverFS: what the recovery began with and has to hear of.
    flight: u64,
    /// `prr_delivered`.
    delivered: u64,
    /// `prr_out`.
    out: u64,
}

/// What an ACK says that PRR asks for.
#[derive(Debug, Clone, Copy)]
struct Heard {
    /// DeliveredData.
    delivered: u64,
    pipe: u64,
    ssthresh: u64,
    smss: u64,
    /// SafeACK (RFC 9937 §6.2): `snd_una` moved, and no further loss was found.
    safe: bool,
}

impl Prr {
    /// What may be sent now: `SndCnt`.
    fn send_count(&mut self, bound: RateReduction, ack: Heard) -> u64 {
        self.delivered += ack.delivered;
        let count = if ack.pipe > ack.ssthresh {
            let share = u128::from(self.delivered) * u128::from(ack.ssthresh);
            (share.div_ceil(u128::from(self.flight.max(1))) as u64).saturating_sub(self.out)
        } else {
            let arrived = self.delivered.saturating_sub(self.out);
            let limit = match bound {
                RateReduction::AtOnce | RateReduction::Conservative => arrived,
                RateReduction::SlowStart => arrived.max(ack.delivered) + ack.smss,
                RateReduction::SafeAck | RateReduction::Linux => {
                    arrived.max(ack.delivered) + if ack.safe { ack.smss } else { 0 }
                }
            };
            limit.min(ack.ssthresh - ack.pipe)
        };
        // RFC 9937 §6.2: the first retransmission leaves whatever was delivered.
        if self.out == 0 { count.max(ack.smss) } else { count }
    }

    /// `cwnd` by that: at least a segment, where nothing is under way and nothing may be sent for what arrived. A
    /// retransmission that was lost as well may leave then, as the first one (RFC 9937 §6.2) and as in Linux, whose
    /// `tcp_snd_cwnd_set()` knows no window of 0.
    fn window(&mut self, bound: RateReduction, ack: Heard) -> u64 {
        (ack.pipe + self.send_count(bound, ack)).max(ack.smss)
    }
}

impl Sender {
    fn reduces_in_proportion(&self) -> bool {
        let recovery = &self.config.recovery;
        recovery.rate_reduction != RateReduction::AtOnce
            && (self.sack_enabled || recovery.window_without_sack == WindowWithoutSack::RateReduction)
    }

    /// Whether an ECN echo brings `cwnd` down so too, as in Linux.
    pub(super) fn reduces_by_prr(&self) -> bool {
        self.counts_segments() && self.phase == Phase::Open && self.reduces_in_proportion()
    }

    pub(super) fn forget_rate_reduction(&mut self) {
        self.prr = None;
    }

    /// Whether this recovery does so.
    pub(super) fn reduces_rate(&self) -> bool {
        self.prr.is_some()
    }

    fn counts_segments(&self) -> bool {
        self.config.recovery.rate_reduction == RateReduction::Linux
    }

    /// Fast recovery begins, with the ACK that `board.delivery()` is about.
    pub(super) fn begin_rate_reduction(&mut self) {
        if self.reduced_by_echo.take().is_some() && self.prr.is_some() {
            // tcp_enter_recovery(): the reduction that an echo began goes on.
            return;
        }
        if self.counts_segments() {
            // tcp_init_cwnd_reduction(): in proportion to cwnd as it was, whatever of it was in use.
            let flight = self.window.cwnd / self.smss;
            self.prr = self.reduces_in_proportion().then_some(Prr { flight, delivered: 0, out: 0 });
            return;
        }
        // RFC 9937 §6.1: what SACK had reported before is not heard of again. RFC 6937 has flight_size here, with
        // which a flight of many reports would come down too far.
        let flight = if self.sack_enabled {
            let news = self.board.delivery().bytes;
            self.flight_size().saturating_sub(self.board.sacked_bytes()) + news
        } else {
            self.flight_size().saturating_sub(u64::from(self.dup_acks) * self.smss) + self.smss
        };
        self.prr = self.reduces_in_proportion().then_some(Prr { flight, delivered: 0, out: 0 });
    }

    /// An ACK, or the reordering timer, in fast recovery: `cwnd` is `pipe`, and what may be sent now.
    pub(super) fn reduce_rate(&mut self, news: &News) {
        if self.prr.is_none() {
            return;
        }
        let delivered = if self.sack_enabled { self.board.delivery().bytes } else { news.inferred };
        self.reduce_rate_by(delivered, news.una_moved && !news.found_loss);
    }

    /// The reordering timer has found a loss, in a recovery that it began or in another one. By Linux's rules the first counts as a
    /// segment that arrived, and the other changes nothing (`tcp_rack_reo_timeout()`).
    pub(super) fn reduce_rate_by_timer(&mut self, began: bool) {
        self.reduce_rate_by(if self.counts_segments() && began { self.smss } else { 0 }, false);
    }

    fn reduce_rate_by(&mut self, delivered: u64, safe: bool) {
        let pipe = self.in_network();
        let segments = self.counts_segments();
        let reduces = matches!(self.phase, Phase::Fast { .. }) || self.reduced_by_echo.is_some();
        let Some(prr) = self.prr.as_mut().filter(|_| reduces) else {
            return;
        };
        if delivered == 0 && (segments || prr.out > 0) {
            return;
        }
        if segments {
            let smss = self.smss;
            let ssthresh = self.window.ssthresh / smss;
            let (delivered, pipe) = (delivered.div_ceil(smss), pipe.div_ceil(smss));
            let heard = Heard { delivered, pipe, ssthresh, smss: 1, safe };
            self.window.cwnd = prr.window(RateReduction::Linux, heard) * smss;
            return;
        }
        let heard = Heard { delivered, pipe, ssthresh: self.window.ssthresh, smss: self.smss, safe };
        self.window.cwnd = prr.window(self.config.recovery.rate_reduction, heard);
    }

    /// `len` bytes leave.
    pub(super) fn count_for_rate_reduction(&mut self, len: u64) {
        let counted = if self.counts_segments() { 1 } else { len };
        if let Some(prr) = &mut self.prr {
            prr.out += counted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1000;

    fn prr() -> Prr {
        Prr { flight: 20 * SMSS, delivered: 0, out: 0 }
    }

    fn heard(delivered: u64, pipe: u64, safe: bool) -> Heard {
        Heard { delivered, pipe, ssthresh: 10 * SMSS, smss: SMSS, safe }
    }

    /// Sends what may be sent, in whole segments.
    fn step(prr: &mut Prr, bound: RateReduction, ack: Heard) -> u64 {
        let segments = prr.send_count(bound, ack) / SMSS;
        prr.out += segments * SMSS;
        segments
    }

    #[test]
    fn above_ssthresh_one_segment_leaves_for_every_two_that_arrive() {
        // RFC 6937 §3: ssthresh / RecoverFS is a half.
        let mut prr = prr();
        let sent: Vec<u64> = (0..8)
            .map(|n| step(&mut prr, RateReduction::Conservative, heard(SMSS, (18 - n / 2) * SMSS, false)))
            .collect();
        assert_eq!(sent, [1, 0, 0, 1, 0, 1, 0, 1], "the first is ahead of its time");
    }

    #[test]
    fn below_ssthresh_the_bounds_differ() {
        // A burst of losses: pipe is 4 segments, ssthresh 10; one segment of data has arrived.
        for (bound, safe, expected) in [
            (RateReduction::Conservative, true, 1),
            (RateReduction::SlowStart, false, 2),
            (RateReduction::SafeAck, false, 1),
            (RateReduction::SafeAck, true, 2),
        ] {
            let mut prr = Prr { delivered: 3 * SMSS, out: 3 * SMSS, ..prr() };
            assert_eq!(step(&mut prr, bound, heard(SMSS, 4 * SMSS, safe)), expected, "{bound:?} {safe}");
        }
    }

    #[test]
    fn no_bound_goes_past_ssthresh() {
        let mut prr = Prr { delivered: 9 * SMSS, out: SMSS, ..prr() };
        assert_eq!(prr.send_count(RateReduction::SlowStart, heard(SMSS, 9_500, true)), 500);
    }

    #[test]
    fn the_first_retransmission_waits_for_nothing() {
        assert_eq!(prr().send_count(RateReduction::Conservative, heard(0, 10 * SMSS, false)), SMSS);
    }

    #[test]
    fn where_the_retransmission_is_lost_too_the_window_is_a_segment() {
        // What was sent is ahead of what arrived, and the pipe is empty.
        for bound in [RateReduction::Conservative, RateReduction::SafeAck] {
            let mut prr = Prr { delivered: 3 * SMSS, out: 4 * SMSS, ..prr() };
            assert_eq!(prr.window(bound, heard(SMSS, 0, false)), SMSS, "{bound:?}");
        }
    }
}
