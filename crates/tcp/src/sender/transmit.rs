//! What may be sent now: retransmissions, new data as far as both windows allow, and probes of a shut window.

use super::frto::Frto;
use super::phase::Phase;
use super::{Persist, Sender};
use crate::cc::CongestionControl;
use crate::config::{RecoverGuard, SackRules, SuperPackets, WindowProbe};
use core::ops::Range;
use farpath_units::{Duration, Instant};

/// Between probes that the own device does not take (`TCP_RESOURCE_PROBE_INTERVAL`).
const RETRY_AT_DEVICE: Duration = Duration::from_millis(500);

/// Payload, and perhaps a FIN, that leaves now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub start: u64,
    pub len: u64,
    pub fin: bool,
    /// ECN-capable, and what it tells the peer (RFC 3168).
    pub ect: bool,
    pub cwr: bool,
    /// The last segment of a super-packet.
    pub push: bool,
}

/// Why a segment leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It is next in the stream, or fills a hole.
    Stream,
    /// A tail loss probe.
    Probe,
    /// A rescue retransmission.
    Rescue,
}

impl Sender {
    /// Whether all that was written has been sent, and nothing asks for any of it again.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.nxt == self.end()
            && self.phase == Phase::Open
            && self.persist == Persist::Off
            && !(self.retransmit_first || self.tlp.wanted || self.steered || self.device_full)
    }

    /// The next transmission at `now`; it counts as sent.
    pub(crate) fn next_transmission(&mut self, now: Instant) -> Option<Transmission> {
        if self.device_full {
            self.wait_for_device(now);
            return None;
        }
        if let Persist::Probe { interval } = self.persist
            && self.config.send.window_probe == WindowProbe::Empty
            && !self.outstanding()
            && self.rwnd == 0
        {
            return Some(self.empty_probe(now, interval));
        }
        let (range, purpose) = if self.tlp.wanted
            && let Some(range) = self.choose_probe()
        {
            (range, Purpose::Probe)
        } else if self.steered && self.pacing_holds(now) {
            return None;
        } else if let Some(range) = self.choose(now) {
            (range, Purpose::Stream)
        } else {
            (self.choose_last_resort()?, Purpose::Rescue)
        };
        // One call, which the compiler puts here.
        Some(self.send(now, range, purpose))
    }

    /// Where nothing else may be sent.
    fn choose_last_resort(&mut self) -> Option<Range<u64>> {
        let rescue = self.choose_rescue();
        if self.steered && rescue.is_none() && self.nothing_more() {
            self.note_app_limit();
        }
        rescue
    }

    fn choose(&mut self, now: Instant) -> Option<Range<u64>> {
        if self.retransmit_first
            && self.sack_enabled
            && matches!(self.phase, Phase::Fast { .. })
            && self.cc.owns_cwnd()
        {
            // Nobody makes room for the first repair there (tcp_xmit_retransmit_queue()): it waits for the window as any, which
            // in BBR's ProbeRTT may be until the timer expires.
            self.retransmit_first = false;
        }
        if self.retransmit_first {
            self.retransmit_first = false;
            let by_time = self.rack.is_some() && matches!(self.phase, Phase::Fast { .. });
            // By time, what is lost may have been sent again before this recovery began.
            let first = if by_time { self.board.next_lost() } else { self.board.segment_at(self.una) };
            if first.is_some() {
                return first;
            }
        }
        if let Persist::Probe { interval } = self.persist {
            return self.probe(now, interval);
        }
        // The usual case when there is nothing to do: answered first.
        if self.nxt == self.end() && self.phase == Phase::Open {
            return None;
        }
        if let Frto::NewData { left } = &mut self.frto {
            *left = left.checked_sub(1)?;
            return self.unsent_segment();
        }
        if self.sack_enabled && self.phase != Phase::Open {
            return self.choose_by_scoreboard(now);
        }
        if self.nxt < self.max {
            let segment = self.board.segment_at(self.nxt)?;
            // A FIN takes no window.
            let end = segment.end.min(self.written);
            let fits = end - self.una <= self.window.cwnd.min(self.rwnd);
            return (fits || self.nxt == self.una).then_some(segment);
        }
        self.restart_after_idle(now);
        let (room, network_empty) = self.room();
        self.new_data(now, room, network_empty)
    }

    /// Outside of a repair: what the congestion window has room for, and whether nothing is in the network.
    #[inline]
    pub(super) fn room(&self) -> (u64, bool) {
        let by_duplicates = !self.sack_enabled && self.reduces_rate();
        let in_network = if by_duplicates {
            self.in_network()
        } else if self.counts_by_pipe() {
            self.board.pipe()
        } else {
            self.nxt - self.una
        };
        ((self.window.cwnd + self.limited_transmit_room()).saturating_sub(in_network), in_network == 0)
    }

    /// Outside of recovery a SACKed segment has left the network; without limited transmit that is no reason to
    /// send (RFC 6675 §5 step 3 is RFC 3042's rule).
    fn counts_by_pipe(&self) -> bool {
        self.sack_enabled && self.config.recovery.limited_transmit
    }

    fn limited_transmit_room(&self) -> u64 {
        let recovery = &self.config.recovery;
        let applies = recovery.limited_transmit
            && !self.sack_enabled
            && self.phase == Phase::Open
            && self.dup_acks < recovery.dup_ack_threshold
            && self.guard() != RecoverGuard::Linux;
        if applies { u64::from(self.dup_acks.min(2)) * self.smss } else { 0 }
    }

    /// New data, if `room` in the congestion window, the peer's window and the small-segment rules allow.
    #[inline(always)]
    fn new_data(&mut self, now: Instant, room: u64, network_empty: bool) -> Option<Range<u64>> {
        let (start, end) = (self.nxt, self.end());
        if start == end || self.ecn.holds(now) {
            return None;
        }
        let want = self.within_record(start, (self.written.saturating_sub(start)).min(self.smss));
        let needed = if want == 0 && self.config.send.fin_within_cwnd { self.smss } else { want };
        if room < needed && !network_empty {
            self.meet_cwnd();
            return None;
        }
        let peer_room = (self.una + self.rwnd).saturating_sub(start);
        let len = want.min(peer_room);
        // A FIN takes no window: a peer that reads nothing can still be told that there is no more.
        let with_fin = self.fin && start + len == self.written;
        if len < want && !self.worth_sending(len) && !self.fills_window(now, len) {
            if !self.outstanding() && self.persist == Persist::Off {
                self.await_window(now);
            }
            return None;
        }
        if len < self.smss && !with_fin && self.holds_small(now, start + len) {
            return None;
        }
        if !self.begins_super_packet(now, room, peer_room) {
            return None;
        }
        if self.dup_acks > 0 && self.phase == Phase::Open {
            let beyond = (start + len - self.una).saturating_sub(self.window.cwnd);
            self.limited_transmit_bytes += len.min(beyond);
        }
        Some(start..start + len + u64::from(with_fin))
    }

    /// Nagle's rule (RFC 9293 §3.7.4), for a segment that is not full.
    pub(super) fn nagle_holds(&self) -> bool {
        let send = &self.config.send;
        send.nagle && if send.minshall { self.small_end > self.una } else { self.outstanding() }
    }

    /// Whether `len` bytes, less than a segment, leave behind full ones because they are all that the peer's window has
    /// room for.
    // DEVIATES RFC 9293 §3.8.6.2.1: its sender does not send them, unless they are half of the window. Linux's
    // tcp_mss_split_point() leaves them at the end of what it hands to the device at once; alone they wait (tcp_snd_wnd_test()).
    fn fills_window(&self, now: Instant, len: u64) -> bool {
        self.config.send.minshall
            && self.burst
            && len > 0
            && !self.nagle_holds()
            && (!self.forms_super_packets() || self.continues_super_packet(now))
    }

    /// Sender's side of the silly window syndrome (RFC 9293 §3.8.6.2.1): half the largest window ever offered.
    pub(super) fn worth_sending(&self, len: u64) -> bool {
        len > 0 && len >= self.max_rwnd / 2
    }

    /// RFC 6675 §5 (C), NextSeg(): lost segments, then new data, then what is merely unreported.
    fn choose_by_scoreboard(&mut self, now: Instant) -> Option<Range<u64>> {
        let pipe = self.board.pipe();
        let room = self.window.cwnd.saturating_sub(pipe);
        if room < self.smss && pipe > 0 {
            self.meet_cwnd();
            return None;
        }
        if let Some(lost) = self.board.next_lost() {
            return Some(lost);
        }
        self.new_data(now, room, pipe == 0).or_else(|| match self.phase {
            // RACK has a reason for each that it sends again: time.
            Phase::Fast { .. } if self.rack.is_some() => None,
            Phase::Fast { .. }
                if self.config.recovery.sack_rules != SackRules::Ns3 || self.nxt == self.end() =>
            {
                self.board.next_unsacked()
            }
            Phase::Fast { .. } | Phase::Open | Phase::Loss { .. } => None,
        })
    }

    /// RFC 6675 §4, NextSeg() rule 4: once per recovery the end of the flight, where nothing else may be sent.
    fn choose_rescue(&mut self) -> Option<Range<u64>> {
        let Phase::Fast { point, .. } = self.phase else { return None };
        let applies = self.config.recovery.sack_rules == SackRules::Rfc6675
            && self.sack_enabled
            && self.rescued.is_none_or(|rescued| self.una > rescued)
            && self.board.pipe() + self.smss <= self.window.cwnd;
        let last = self.board.last_unsacked().filter(|_| applies)?;
        self.rescued = Some(point);
        Some(last)
    }

    /// The next segment that was never sent, if the peer's window has room for all of it.
    pub(super) fn unsent_segment(&self) -> Option<Range<u64>> {
        let start = self.max;
        let len = self.within_record(start, self.written.saturating_sub(start).min(self.smss));
        let fits = start + len <= self.una + self.rwnd || len == 0;
        let with_fin = self.fin && start + len == self.written;
        let end = start + len + u64::from(with_fin);
        (fits && start < self.end() && end > start).then_some(start..end)
    }

    /// Nothing may leave and nothing is in flight: the window is probed in a while.
    fn await_window(&mut self, now: Instant) {
        let interval = self.first_probe_interval();
        let due = match self.config.send.window_probe {
            WindowProbe::Octet => now + interval,
            WindowProbe::Empty => self.config.rto.timer(now, interval),
        };
        self.persist = Persist::Waiting { due, interval };
    }

    /// What would leave does not: with nothing in flight it is tried again as a shut window is probed, and every half second from
    /// then on (`tcp_check_probe_timer()`, `tcp_send_probe0()`). What is to be sent again waits for the next ACK or timer.
    fn wait_for_device(&mut self, now: Instant) {
        self.tlp.wanted = false;
        let interval = match self.persist {
            Persist::Probe { interval } => interval,
            Persist::Off if !self.outstanding() && self.nxt < self.end() => {
                self.await_window(now);
                return;
            }
            Persist::Off | Persist::Waiting { .. } => return,
        };
        self.stats.probes += 1;
        let due = self.within_user_timeout(self.config.rto.timer(now, RETRY_AT_DEVICE));
        self.persist = Persist::Waiting { due, interval };
    }

    /// A segment without payload from before the peer's window: it answers with an ACK, which says what its window is
    /// (`tcp_xmit_probe_skb()`).
    fn empty_probe(&mut self, now: Instant, interval: Duration) -> Transmission {
        let interval = interval.doubled(1).min(self.config.send.persist_max);
        let due = self.within_user_timeout(self.config.rto.timer(now, interval));
        self.persist = Persist::Waiting { due, interval };
        self.stats.probes += 1;
        Transmission { start: self.una - 1, len: 0, fin: false, ect: false, cwr: false, push: false }
    }

    fn probe(&mut self, now: Instant, interval: Duration) -> Option<Range<u64>> {
        let held = self.written.saturating_sub(self.nxt);
        if !self.outstanding() && self.rwnd >= held && held > 0 && held < self.smss {
            // What was withheld with an open window leaves as any data (tcp_write_wakeup()).
            self.persist = Persist::Off;
            self.retries = 0;
            self.mark_held();
            return Some(self.nxt..self.nxt + held);
        }
        if self.config.send.window_probe == WindowProbe::Empty && !self.outstanding() {
            // What the window has room for leaves as any data, and its timer is that of any (tcp_write_wakeup()).
            self.persist = Persist::Off;
            self.retries = 0;
            let len = held.min(self.smss).min(self.rwnd);
            return (len > 0).then(|| self.nxt..self.nxt + len);
        }
        let interval = interval.doubled(1).min(self.config.send.persist_max);
        self.persist = Persist::Waiting { due: now + interval, interval };
        self.stats.probes += 1;
        if self.outstanding() {
            return self.board.segment_at(self.una);
        }
        // One octet of new data, or as much as the window has room for.
        let len = self.written.saturating_sub(self.nxt).min(self.smss).min(self.rwnd.max(1));
        (len > 0).then(|| self.nxt..self.nxt + len)
    }

    fn restart_after_idle(&mut self, now: Instant) {
        if self.outstanding() {
            return;
        }
        let idle = now.saturating_since(self.last_sent);
        // While a window is shut, an ACK that opens it is looked at first (tcp_ack_update_window()).
        let applies =
            self.config.congestion.restart_after_idle && !self.cc.owns_cwnd() && self.persist == Persist::Off;
        if applies && idle > self.rtt.rto() {
            let initial = u64::from(self.config.congestion.initial_window) * self.smss;
            self.window.cwnd = self.window.cwnd.min(initial);
            self.last_sent = now;
        }
    }

    /// cwnd forbids what would be sent else.
    pub(super) fn meet_cwnd(&mut self) {
        self.cwnd_limited = true;
        if let Some(usage) = &mut self.cwnd_usage {
            usage.note(true, self.una, self.max);
        }
    }

    #[inline(always)]
    fn send(&mut self, now: Instant, range: Range<u64>, purpose: Purpose) -> Transmission {
        let len = range.end.min(self.written) - range.start;
        let again = range.start < self.max;
        let first = !self.outstanding();
        let mut push = false;
        if self.steered {
            self.note_restart(now);
            self.pace_sent(now, len);
        }
        let (ect, cwr) = self.ecn.marks(self.is_ecn_data(&range));
        if again {
            self.tlp.burst = None;
            self.board.retransmitted(range.start, now, purpose == Purpose::Stream);
            if purpose != Purpose::Probe {
                self.count_for_undo(now, range.start);
            }
            // Karn: what is measured must have been sent once.
            if self.timed.is_some_and(|(end, _)| range.start < end) {
                self.timed = None;
            }
        } else {
            self.board.push(range.end, now);
            self.max = range.end;
            if self.timed.is_none() {
                self.timed = Some((range.end, now));
            }
        }
        if range.start == self.nxt {
            self.nxt = range.end;
        }
        if !again {
            push = self.super_packet.on_sent(now, range.end)
                && self.config.send.super_packets != SuperPackets::Off;
            self.burst = len == self.smss;
            self.note_sent_memory();
            self.note_sent_wishes(range.end);
            if len < self.smss {
                self.small_end = range.end;
            }
        }
        if len > 0 {
            self.stats.data_segments += 1;
            self.stats.data_bytes += len;
            self.stats.retransmissions += u64::from(again);
        }
        self.last_sent = now;
        self.cwnd_limited = false;
        if !again && let Some(usage) = &mut self.cwnd_usage {
            let in_network = if self.sack_enabled { self.board.pipe() } else { self.max - self.una };
            usage.note(in_network + self.smss > self.window.cwnd, self.una, self.max);
        }
        // RFC 6298 §5.1; a recovery that restarts a running timer says so itself.
        if self.persist == Persist::Off && !self.timer_runs() {
            self.rto_due = Some(self.rtt.deadline(now));
        }
        if again && range.start == self.una && purpose == Purpose::Stream {
            self.follow_repair(now);
        }
        self.count_for_rate_reduction(len);
        if !again && purpose == Purpose::Stream {
            if self.has_one_timer() && self.persist == Persist::Off {
                if self.tlp.burst != Some(now) {
                    self.follow_new_data(now, first);
                }
            } else {
                self.schedule_probe(now);
            }
        }
        Transmission { start: range.start, len, fin: range.end > self.written, ect, cwr, push }
    }
}
