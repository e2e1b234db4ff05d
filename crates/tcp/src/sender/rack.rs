//! Losses by time: RACK (RFC 8985 §6).
//!
//! What has not arrived is lost once something that was sent after it has, and a round trip and a reordering window
//! have passed since it was sent. The times are the scoreboard's.

use super::Sender;
use super::phase::Phase;
use crate::config::{RackRules, RecoveryAlgorithm, RepairTimer};
use crate::scoreboard::{ByTime, Sending};
use core::ops::Range;
use farpath_units::{Duration, Instant};

/// RFC 8985 §6.2 step 4: so many recoveries without a D-SACK take the reordering window back to its least.
const PERSIST: u32 = 16;
/// `tcp_max_reordering`, in segments.
const MOST_REORDERING: u64 = 300;

/// The latest delivery, and how much reordering is taken for granted.
#[derive(Debug, Clone)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq.
    delivered: Option<Sending>,
    /// RACK.rtt.
    rtt: Duration,
    /// Linux's `reord_seen`: how often a segment was overtaken.
    reorderings: u64,
    /// Linux's `reordering`: the most segments by which one was overtaken.
    degree: u64,
    /// Linux's `dsack_dups`: segments that D-SACKs have reported.
    duplicates: u64,
    /// RACK.dsack_round: until this is acknowledged, another D-SACK says nothing new.
    dsack_round: Option<u64>,
    /// RACK.reo_wnd_mult.
    window_factor: u32,
    /// RACK.reo_wnd_persist.
    persist: u32,
    /// The reordering timer (§6.2 step 5).
    pub due: Option<Instant>,
    /// Something was delivered since losses were last looked for (Linux's `rack.advanced`).
    advanced: bool,
    /// This ACK has started the reordering timer.
    pub started: bool,
}

impl Rack {
    fn new(rtt: Duration, degree: u32) -> Rack {
        Rack {
            delivered: None,
            rtt,
            reorderings: 0,
            degree: u64::from(degree),
            duplicates: 0,
            dsack_round: None,
            window_factor: 1,
            persist: PERSIST,
            due: None,
            advanced: false,
            started: false,
        }
    }

    pub fn degree(&self) -> u64 {
        self.degree
    }

    pub fn reorderings(&self) -> u64 {
        self.reorderings
    }

    /// Step 2: the most recently sent segment that has been delivered.
    fn on_delivered(&mut self, now: Instant, sending: Sending) {
        self.rtt = now.saturating_since(sending.at);
        self.advanced = true;
        if self.delivered.as_ref().is_none_or(|delivered| *delivered < sending) {
            self.delivered = Some(sending);
        }
    }
}

impl Sender {
    pub(super) fn start_rack(&mut self) {
        let recovery = &self.config.recovery;
        if recovery.rack && self.sack_enabled && recovery.algorithm != RecoveryAlgorithm::TimeoutOnly {
            // Before anything has been delivered, a round trip is what the handshake took.
            let rtt = self.rtt.last_sample().0.unwrap_or(self.config.rto.initial);
            self.rack = Some(Rack::new(rtt, recovery.dup_ack_threshold));
            self.board.keep_times_of_copies();
        }
    }

    /// Steps 1 to 4, for the ACK that `board.delivery()` is about.
    #[inline(always)]
    pub(super) fn update_rack(&mut self, now: Instant, echoed: Option<Instant>, dsack: Option<&Range<u64>>) {
        let linux = self.rack_is_linux();
        let Some(rack) = &mut self.rack else { return };
        let delivery = self.board.delivery();
        if let Some(latest) = delivery.latest {
            rack.on_delivered(now, latest);
        }
        // DEVIATES RFC 8985 §6.2 step 1: the least of the whole connection, not of the last minutes. A path here keeps
        // its route.
        let min_rtt = self.rtt.min_rtt().unwrap_or(Duration::ZERO);
        for &copy in &delivery.copies {
            // Step 2: what arrived so soon, or answers an earlier clock, was an earlier transmission.
            let before_it = echoed.is_some_and(|echoed| milliseconds(echoed) < milliseconds(copy.at));
            if !before_it && now.saturating_since(copy.at) >= min_rtt {
                rack.on_delivered(now, copy);
            }
        }
        // DEVIATES RFC 8985 §6.2 step 2: not of what was sent last, but of what was looked at last, as in Linux.
        if let Some(sent) = delivery.covered.filter(|_| linux) {
            rack.rtt = now.saturating_since(sent);
        }
        let reordered = delivery.reordered;
        // Linux: its D-SACKs of segments that had been reported, and were sent again.
        let twice =
            dsack.filter(|range| linux && self.board.is_sacked_again(range.start)).map(|range| range.start);
        if let Some(lowest) = [reordered, twice].into_iter().flatten().min() {
            self.notice_reordering(lowest);
        }
        let Some(rack) = &mut self.rack else { return };
        // RFC 8985 §6.2 step 4: a round that sees D-SACKs widens the window.
        rack.dsack_round = rack.dsack_round.filter(|&round| self.una < round);
        let tells = dsack.is_some_and(|range| !linux || rack.reorderings > 0 && !self.tlp.is_probe(range));
        if tells && rack.dsack_round.is_none() {
            rack.dsack_round = Some(self.max);
            rack.window_factor = rack.window_factor.saturating_add(1);
            rack.persist = PERSIST;
        }
    }

    pub(super) fn rack_is_linux(&self) -> bool {
        self.rack.is_some() && self.config.recovery.rack_rules == RackRules::Linux
    }

    /// What was sent once, from `lowest` on, was overtaken (`tcp_check_sack_reordering()`).
    pub(super) fn notice_reordering(&mut self, lowest: u64) {
        let highest = self.board.highest_sacked();
        let (linux, smss) = (self.rack_is_linux(), self.smss);
        let Some(rack) = &mut self.rack else { return };
        if linux && lowest >= highest {
            return;
        }
        rack.reorderings += 1;
        let by = highest.saturating_sub(lowest).div_ceil(smss);
        rack.degree = rack.degree.max(by.min(MOST_REORDERING));
    }

    /// Whether more segments were overtaken than mean a loss: what SACK reports is progress then as what is acknowledged
    /// (`tcp_may_raise_cwnd()`).
    pub(super) fn reordering_is_usual(&self) -> bool {
        let threshold = u64::from(self.config.recovery.dup_ack_threshold);
        self.rack_is_linux() && self.rack.as_ref().is_some_and(|rack| rack.degree > threshold)
    }

    /// A D-SACK, unless Linux does not believe it: more duplicates than were sent again come from the path
    /// (`tcp_dsack_seen()`). One that it believes is a delivery.
    pub(super) fn believed(&mut self, dsack: Option<Range<u64>>) -> Option<Range<u64>> {
        let linux = self.rack_is_linux();
        let (range, rack) = (dsack?, self.rack.as_mut());
        let Some(rack) = rack.filter(|_| linux) else { return Some(range) };
        let len = range.end - range.start;
        rack.duplicates += len.div_ceil(self.smss);
        let believed = len <= self.max_rwnd && rack.duplicates <= self.stats.retransmissions;
        believed.then(|| {
            self.board.count_duplicate(len);
            range
        })
    }

    /// A timeout after reports of many: reordering was over-estimated (`tcp_enter_loss()`).
    pub(super) fn forget_reordering(&mut self) {
        let threshold = self.config.recovery.dup_ack_threshold;
        let many = self.board.sacked_segments() >= threshold;
        if let Some(rack) = self.rack.as_mut().filter(|_| many) {
            rack.degree = rack.degree.min(u64::from(threshold));
        }
    }

    /// Step 4: a recovery is over.
    pub(super) fn rack_recovery_ended(&mut self) {
        let Some(rack) = &mut self.rack else { return };
        rack.persist = rack.persist.saturating_sub(1);
        if rack.persist == 0 {
            rack.window_factor = 1;
        }
    }

    /// RACK.reo_wnd.
    fn reordering_window(&self, rack: &Rack) -> Duration {
        let enough = self.board.sacked_segments() >= self.config.recovery.dup_ack_threshold;
        if rack.reorderings == 0 && (self.phase != Phase::Open || enough) {
            return Duration::ZERO;
        }
        let quarter = self.rtt.min_rtt().unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(rack.window_factor)).min(self.rtt.srtt().unwrap_or(Duration::ZERO))
    }

    /// Step 5, at an ACK. What was found.
    pub(super) fn detect_losses_by_rack(&mut self, now: Instant) -> ByTime {
        let one_timer = self.has_one_timer();
        let Some(rack) = &mut self.rack else { return ByTime::default() };
        if one_timer && !core::mem::take(&mut rack.advanced) {
            return ByTime::default();
        }
        let found = self.look_for_losses(now);
        let slack = self.config.recovery.timer_slack;
        let due = found.due.map(|due| {
            let wait = due.saturating_since(now) + slack;
            let wait = if one_timer { wait.min(self.rtt.rto()) } else { wait };
            self.config.rto.timer(now, wait)
        });
        let Some(rack) = &mut self.rack else { return found };
        if !one_timer {
            rack.due = due;
        } else if due.is_some() {
            (rack.due, rack.started) = (due, true);
            (self.rto_due, self.tlp.due) = (None, None);
        }
        found
    }

    /// The same; the timer stays as it is.
    #[inline(always)]
    fn look_for_losses(&mut self, now: Instant) -> ByTime {
        let (Some(wait), Some(delivered)) =
            (self.time_until_lost(), self.rack.as_ref().and_then(|rack| rack.delivered))
        else {
            return ByTime::default();
        };
        self.board.detect_losses_by_time(delivered, wait, now)
    }

    /// What a timeout takes for lost is as old as this: RACK.rtt + RACK.reo_wnd (RFC 8985 §6.3), or RACK.rtt by Linux's rules
    /// (`tcp_timeout_mark_lost()`).
    pub(super) fn age_at_timeout(&self) -> Option<Duration> {
        if self.rack_is_linux() { self.rack.as_ref().map(|rack| rack.rtt) } else { self.time_until_lost() }
    }

    /// RACK.rtt + RACK.reo_wnd.
    pub(super) fn time_until_lost(&self) -> Option<Duration> {
        self.rack.as_ref().map(|rack| rack.rtt + self.reordering_window(rack))
    }

    /// The first segment in flight is sent again: where the timer follows the repair, it starts anew.
    pub(super) fn follow_repair(&mut self, now: Instant) {
        if self.has_one_timer() {
            if self.rack.as_ref().is_none_or(|rack| rack.due.is_none()) {
                self.tlp.due = None;
                self.rto_due = Some(self.rtt.deadline(now));
            }
            return;
        }
        let follows = self.config.recovery.repair_timer == RepairTimer::FirstSegment;
        if follows && self.rack.is_some() && self.rto_due.is_some() {
            self.rto_due = Some(self.rtt.deadline(now));
        }
    }

    /// The same with a report of what left before the first segment in flight last did: of that one there can be no news.
    pub(super) fn follow_reports(&mut self, now: Instant) {
        let first = self.board.first_last_sent();
        if self.has_one_timer() {
            let reported = self.board.delivery().sacked.map(|(earliest, _)| earliest);
            if reported.is_some_and(|reported| first.is_some_and(|first| reported < first)) {
                self.start_timer(now);
            }
            return;
        }
        let reported = self.board.delivery().latest;
        if reported.is_some_and(|reported| first.is_some_and(|first| reported.at < first)) {
            self.follow_repair(now);
        }
    }

    /// The retransmission timer has expired before it.
    pub(super) fn stop_reordering_timer(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.due = None;
        }
    }

    /// The reordering timer expired.
    pub(super) fn on_reordering_timer(&mut self, now: Instant) {
        self.board.begin_ack();
        let found = if self.has_one_timer() {
            let found = self.look_for_losses(now);
            self.rearm_timeout(now);
            found
        } else {
            self.detect_losses_by_rack(now)
        };
        let began = found.lost && self.begin_recovery_by_timer(now);
        self.reduce_rate_by_timer(began);
    }

    /// Whether retransmission timer, probe timer and reordering timer are one: no two of them are due then.
    pub(super) fn has_one_timer(&self) -> bool {
        self.config.recovery.repair_timer == RepairTimer::OneTimer && self.sack_enabled
    }

    /// Whether any of the three is due.
    pub(super) fn timer_runs(&self) -> bool {
        let reordering = self.rack.as_ref().is_some_and(|rack| rack.due.is_some());
        self.rto_due.is_some() || self.has_one_timer() && (self.tlp.due.is_some() || reordering)
    }

    /// Stops all three.
    pub(super) fn stop_timers(&mut self) {
        (self.rto_due, self.tlp.due, self.tlp.burst) = (None, None, None);
        self.stop_reordering_timer();
    }

    /// The one timer becomes the retransmission timer (`tcp_rearm_rto()`).
    pub(super) fn rearm_timeout(&mut self, now: Instant) {
        let other = self.tlp.due.is_some() || self.rack.as_ref().is_some_and(|rack| rack.due.is_some());
        let wait = if other { self.time_until_timeout(now) } else { self.rtt.rto() };
        self.stop_timers();
        if self.outstanding() {
            self.rto_due = Some(self.rtt.expiry(now, wait.max(Duration::from_nanos(1))));
        }
    }

    /// What is left of the RTO, counted from when the first segment in flight was last sent (`tcp_rto_delta_us()`).
    pub(super) fn time_until_timeout(&self, now: Instant) -> Duration {
        let sent = self.board.first_last_sent().unwrap_or(now);
        (sent + self.rtt.rto()).saturating_since(now)
    }

    /// The one timer starts anew with progress, unless it waits for reordering since this ACK (`tcp_set_xmit_timer()`).
    #[inline(always)]
    pub(super) fn start_timer(&mut self, now: Instant) {
        if self.rack.as_ref().is_some_and(|rack| rack.started) {
            return;
        }
        if !self.probes_now() {
            self.rearm_timeout(now);
            return;
        }
        self.start_probe_timer(now, self.rtt.rto());
    }

    /// New data has left (`tcp_event_new_data_sent()`, and the end of `tcp_write_xmit()`).
    pub(super) fn follow_new_data(&mut self, now: Instant, first: bool) {
        if self.probes_now() {
            let left = self.time_until_timeout(now);
            self.start_probe_timer(now, if left.is_zero() { Duration::MAX } else { left });
            // Of a flight of one segment, the next one makes two.
            self.tlp.burst = (self.flight_size() > self.smss).then_some(now);
        } else if first || self.tlp.due.is_some() {
            self.rearm_timeout(now);
        }
    }
}

/// The clock of timestamps: an echo is compared as it was written.
pub(super) fn milliseconds(instant: Instant) -> u64 {
    instant.as_nanos() / 1_000_000
}
