//! Loss recovery: Tahoe, Reno (RFC 5681 §3.2), NewReno (RFC 6582), SACK (RFC 6675), and after a timeout.

use super::frto::Frto;
use super::phase::Phase;
use super::{News, Sender};
use crate::cc::{CongestionControl, Window};
use crate::config::{
    EndGrowth, FullAckWindow, PartialAckTimer, RecoverGuard, RecoveryAlgorithm, RepairTimer, SsthreshFrom,
    SsthreshOnTimeout, WindowWithoutSack,
};
use crate::scoreboard::ByTime;
use farpath_units::Instant;

/// What an ACK of new data may still change, once recovery has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AfterAck {
    /// The retransmission timer starts anew.
    pub restart_timer: bool,
    /// The congestion window grows. Not within fast recovery, nor with the ACK that ends it and deflates the window.
    pub grow: bool,
    /// The bytes by which it grows: those of this ACK, or of them what lies beyond what was being repaired.
    pub counted: u64,
}

impl Sender {
    /// A duplicate ACK arrived.
    pub(crate) fn on_dup_ack(&mut self, now: Instant) {
        let repairs_timeout = matches!(self.phase, Phase::Loss { .. });
        if repairs_timeout && !self.sack_enabled && !self.config.recovery.dup_acks_after_timeout {
            return;
        }
        if self.holds_recovery() {
            return;
        }
        if self.config.recovery.window_without_sack == WindowWithoutSack::RateReduction
            && !self.sack_enabled
            && (u64::from(self.dup_acks) + 1) * self.smss >= self.flight_size().next_multiple_of(self.smss)
        {
            // tcp_limit_reno_sacked(): no more has arrived than was sent behind the hole.
            return;
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
        if let Phase::Fast { .. } = self.phase {
            if self.prr.is_none() && !self.sack_enabled && !self.cc.owns_cwnd() {
                // RFC 5681 §3.2 step 4: another segment has left the network.
                self.window.cwnd = self.window.cwnd.saturating_add(self.smss);
            }
            return;
        }
        let recovery = &self.config.recovery;
        if recovery.algorithm == RecoveryAlgorithm::TimeoutOnly {
            return;
        }
        // What SACK reports has been weighed when the ACK came in.
        let lost = self.dup_acks == recovery.dup_ack_threshold
            || self.sack_enabled && self.phase == Phase::Open && self.board.first_is_lost();
        // RFC 8985 counts no duplicates: time decides.
        let lost = lost && self.rack.is_none();
        // With SACK, what a timeout declared lost is being repaired already.
        let repairing = self.sack_enabled && matches!(self.phase, Phase::Loss { .. });
        if lost && !repairing && self.guard() == RecoverGuard::Off {
            self.fast_retransmit(now);
        }
    }

    /// What keeps duplicates of `una` from their usual effect. RFC 6582 §3.2 step 1: they may answer what the last recovery sent
    /// twice. SACK tells.
    #[inline(always)]
    pub(super) fn guard(&self) -> RecoverGuard {
        let may_be_old = !self.sack_enabled && self.una <= self.recover;
        if may_be_old { self.config.recovery.recover_guard } else { RecoverGuard::Off }
    }

    /// Without SACK, Linux leaves fast recovery only when something beyond `recover` is acknowledged: until then the window is what
    /// rate reduction lets go, and duplicates say nothing (`tcp_is_non_sack_preventing_reopen()`).
    #[inline(always)]
    pub(super) fn holds_recovery(&self) -> bool {
        matches!(self.phase, Phase::Fast { point, .. } if self.una == point)
            && self.guard() == RecoverGuard::Linux
            && (self.prr.is_some() || self.cc.owns_cwnd())
    }

    /// RACK has found a loss: where nothing is being repaired yet, recovery begins. Whether it did.
    pub(super) fn begin_recovery(&mut self, now: Instant) -> bool {
        let begins = self.phase == Phase::Open;
        if begins {
            self.fast_retransmit(now);
        }
        begins
    }

    /// The same, where losses have just been looked for; by Linux's rules a copy that is lost after a timeout begins a recovery too.
    pub(super) fn begin_recovery_by_rack(&mut self, now: Instant, found: ByTime) -> bool {
        let repaired_in_vain =
            found.lost_copy && matches!(self.phase, Phase::Loss { .. }) && self.rack_is_linux();
        if repaired_in_vain {
            self.frto = Frto::Off;
            self.fast_retransmit(now);
        }
        repaired_in_vain || self.begin_recovery(now)
    }

    /// The same, at the reordering timer: any loss begins one after a timeout then (`tcp_rack_reo_timeout()`).
    pub(super) fn begin_recovery_by_timer(&mut self, now: Instant) -> bool {
        self.begin_recovery_by_rack(now, ByTime { lost: true, lost_copy: true, due: None })
    }

    /// RFC 5681 §3.2 steps 2-3; RFC 6675 §5 step 4.
    fn fast_retransmit(&mut self, now: Instant) {
        self.remember_window();
        self.forget_probe();
        if !self.echo_has_reduced() {
            self.window.ssthresh = self.cc.ssthresh_after(&self.window, &self.loss_event(now, false));
        }
        self.note_reduction(false);
        self.recover = self.max;
        self.limited_transmit_bytes = 0;
        if self.config.recovery.repair_timer != RepairTimer::None && !self.has_one_timer() {
            self.rto_due = Some(self.rtt.deadline(now));
        }
        if self.sack_enabled {
            self.board.begin_recovery();
            if self.rack.is_none() {
                self.board.lose_first();
            }
        }
        // What is lost may have been sent again before this recovery began.
        let repairs = self.rack.is_none() || self.board.next_lost().is_some();
        self.stats.fast_retransmits += u64::from(repairs);
        match self.config.recovery.algorithm {
            RecoveryAlgorithm::Tahoe | RecoveryAlgorithm::TimeoutOnly => {
                self.window.cwnd = self.smss;
                self.phase = Phase::Open;
                self.go_back();
            }
            RecoveryAlgorithm::Reno | RecoveryAlgorithm::NewReno => {
                let threshold = u64::from(self.config.recovery.dup_ack_threshold);
                self.phase = Phase::Fast { point: self.max, partial_acks: 0 };
                self.retransmit_first = true;
                if self.cc.owns_cwnd() {
                    return;
                }
                self.begin_rate_reduction();
                let inflates = !self.sack_enabled && self.prr.is_none();
                let inflation = if inflates { threshold * self.smss } else { 0 };
                self.window.cwnd = self.window.ssthresh.saturating_add(inflation);
            }
        }
    }

    /// Everything from the first unacknowledged byte on is sent again, as the window allows.
    fn go_back(&mut self) {
        if self.sack_enabled {
            self.board.lose_all();
            self.phase = Phase::Loss { point: self.max };
        } else {
            self.nxt = self.una;
        }
    }

    /// The cumulative ACK moved by `newly_acked` to `una`.
    pub(crate) fn advance_recovery(&mut self, newly_acked: u64) -> AfterAck {
        match self.phase {
            Phase::Open => AfterAck { restart_timer: true, grow: true, counted: newly_acked },
            Phase::Loss { point } => {
                let over = self.una >= point;
                if over {
                    self.phase = Phase::Open;
                    self.end_of_recovery();
                }
                if over && self.config.recovery.end_growth == EndGrowth::AfterFastRecovery {
                    let beyond = self.una - point;
                    return AfterAck { restart_timer: true, grow: beyond > 0, counted: beyond };
                }
                AfterAck { restart_timer: true, grow: true, counted: newly_acked }
            }
            Phase::Fast { .. } if self.holds_recovery() => {
                self.retransmit_first = false;
                AfterAck { restart_timer: true, grow: false, counted: 0 }
            }
            Phase::Fast { point, .. } if self.una >= point || !self.repairs_partial_acks() => {
                self.leave_fast_recovery(point);
                let grow = match self.config.recovery.end_growth {
                    EndGrowth::AfterTimeout => false,
                    EndGrowth::AfterFastRecovery => true,
                    EndGrowth::AfterBoth => self.sack_enabled || self.una > point,
                };
                AfterAck { restart_timer: true, grow, counted: newly_acked }
            }
            Phase::Fast { point, partial_acks } => {
                self.phase = Phase::Fast { point, partial_acks: partial_acks + 1 };
                self.on_partial_ack(newly_acked);
                // Impatience is NewReno's: with SACK, RFC 6298 §5.3 holds for every new ACK.
                let every = match self.config.recovery.partial_ack_timer {
                    PartialAckTimer::Impatient => self.sack_enabled,
                    PartialAckTimer::SlowButSteady => true,
                    PartialAckTimer::ImpatientWithSack => false,
                };
                AfterAck { restart_timer: every || partial_acks == 0, grow: false, counted: 0 }
            }
        }
    }

    fn repairs_partial_acks(&self) -> bool {
        self.sack_enabled || self.config.recovery.algorithm == RecoveryAlgorithm::NewReno
    }

    fn leave_fast_recovery(&mut self, point: u64) {
        let recovery = &self.config.recovery;
        let bursts_are_avoided = recovery.algorithm == RecoveryAlgorithm::NewReno
            && recovery.full_ack_window == FullAckWindow::FlightSize
            && !self.sack_enabled
            && self.una >= point;
        if !self.cc.owns_cwnd() {
            self.window.cwnd = if bursts_are_avoided {
                self.window.ssthresh.min(self.flight_size().max(self.smss) + self.smss)
            } else {
                self.window.ssthresh
            };
        }
        self.phase = Phase::Open;
        self.retransmit_first = false;
        self.end_of_recovery();
    }

    /// Fast recovery or the repair after a timeout is over.
    pub(super) fn end_of_recovery(&mut self) {
        if self.prr.take().is_some() && !self.sack_enabled {
            self.dup_acks = 0;
        }
        self.frto = Frto::Off;
        self.rack_recovery_ended();
    }

    /// RFC 6582 §3.2 step 3: the next hole is retransmitted, the window deflated by what was acknowledged. With
    /// SACK the scoreboard knows the holes, and `pipe` does the rest.
    fn on_partial_ack(&mut self, newly_acked: u64) {
        if self.sack_enabled {
            return;
        }
        self.retransmit_first = true;
        if self.prr.is_some() || self.cc.owns_cwnd() {
            return;
        }
        let given_back = if newly_acked >= self.smss { self.smss } else { 0 };
        let floor = match self.config.recovery.window_without_sack {
            WindowWithoutSack::AboveSsthresh => self.window.ssthresh,
            WindowWithoutSack::Rfc6582 | WindowWithoutSack::RateReduction => self.smss,
        };
        self.window.cwnd = (self.window.cwnd.saturating_sub(newly_acked) + given_back).max(floor);
    }

    /// An ACK of new data begins the count of duplicates anew. Where the count stands for what has arrived beyond a hole,
    /// a partial ACK covers that, and the hole.
    pub(super) fn forget_dup_acks(&mut self, newly_acked: u64, news: &mut News) {
        if self.prr.is_none() || self.sack_enabled {
            self.dup_acks = 0;
            return;
        }
        if self.holds_recovery() {
            self.dup_acks = 0;
            return;
        }
        news.found_loss = true;
        let covered = (self.segments_of(newly_acked) / self.smss).saturating_sub(1);
        self.dup_acks = self.dup_acks.saturating_sub(u32::try_from(covered).unwrap_or(u32::MAX));
    }

    /// The window without what fast recovery has added for segments that have left the network (RFC 5681 §3.2 steps 3
    /// and 4): it never was that large. Systems that halve `cwnd` count what is in flight, and inflate nothing; CUBIC
    /// remembers it. 4.3BSD and its descendants halve it as it is.
    fn uninflated(&self) -> Window {
        let inflates = !self.sack_enabled && self.prr.is_none() && !self.cc.owns_cwnd();
        let inflated = matches!(self.phase, Phase::Fast { .. }) && inflates;
        if inflated && self.config.congestion.ssthresh_from != SsthreshFrom::WindowSegments {
            return Window { cwnd: self.window.ssthresh, ..self.window };
        }
        self.window
    }

    /// RFC 5681 §3.1 Eq. 4 and what follows it: one segment, and everything again from the first hole.
    pub(crate) fn after_timeout(&mut self, now: Instant) {
        let repeated = self.retries > 1;
        let fresh = self.phase == Phase::Open;
        let repaired = fresh || self.holds_recovery();
        // What a loss within a repair, or the same one again, costs, is part of the same episode.
        if repaired || !repeated && matches!(self.phase, Phase::Loss { .. }) {
            self.remember_window();
        }
        let lowers = match self.config.congestion.ssthresh_on_timeout {
            SsthreshOnTimeout::First => !repeated,
            SsthreshOnTimeout::FirstOutsideRecovery => {
                !repeated && (repaired || !matches!(self.phase, Phase::Fast { .. }))
            }
            SsthreshOnTimeout::Every => true,
        };
        if lowers {
            self.window.ssthresh = self.cc.ssthresh_after(&self.uninflated(), &self.loss_event(now, true));
        }
        self.cc.on_timeout();
        let until_lost = self.age_at_timeout();
        self.window.cwnd = self.smss;
        self.note_reduction(false);
        if fresh {
            self.forget_reordering();
        }
        self.phase = Phase::Loss { point: self.max };
        self.recover = self.max;
        self.dup_acks = 0;
        self.limited_transmit_bytes = 0;
        self.retransmit_first = false;
        (self.prr, self.reduced_by_echo) = (None, None);
        self.forget_probe();
        if let Some(wait) = until_lost {
            // RFC 8985 §6.3: what was sent lately may yet arrive; the first segment goes whatever `pipe` is.
            self.board.lose_expired(wait, now);
            // DEVIATES RFC 5681 §3.1: a loss window of one segment, beside what has just been sent: it would have to arrive
            // first, else. Linux does so, too.
            self.window.cwnd = self.board.pipe() + self.smss;
            self.retransmit_first = true;
            self.stop_reordering_timer();
        } else {
            self.go_back();
        }
        self.begin_frto(fresh);
    }
}
