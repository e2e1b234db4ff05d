//! What a program asks of the sending half by options of its socket and flags of its calls; nothing of it is there where none
//! does. And what is kept of the times in which it waits, where somebody asks for them.

use super::{Persist, Phase, Sender};
use farpath_units::{Duration, Instant};
use std::collections::VecDeque;

/// The interval with which a withheld end of the stream is looked at again, at the least (`tcp_probe0_base()`).
const LEAST_HOLD: Duration = Duration::from_millis(200);

/// What a program has asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    /// `TCP_NODELAY`, over what the stack has.
    no_delay: Option<bool>,
    /// `TCP_CORK`.
    cork: bool,
    /// The last call said `MSG_MORE`, and nothing has come since.
    more: bool,
    /// The end of the stream is not marked with PSH: it was written with `MSG_MORE`.
    unmarked: bool,
    /// `TCP_NODELAY` was set: what is there leaves once, corked or not.
    push_once: bool,
    /// Where records end (`MSG_EOR`), of what is not acknowledged.
    records: VecDeque<u64>,
    user_timeout: Option<Duration>,
    /// When the first timeout in a row was.
    failing_since: Option<Instant>,
}

/// What a sender with something to send waits for (`tcp_chrono`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing is to be sent.
    Idle,
    /// The network.
    Busy,
    /// The peer's window.
    PeerWindow,
    /// Room in the send buffer.
    SendBuffer,
}

/// How long each was waited for.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    wait: Wait,
    since: Instant,
    busy: Duration,
    peer_window: Duration,
    send_buffer: Duration,
    /// A write found no room.
    pub no_room: bool,
    /// When an ACK last came.
    pub last_ack: Option<Instant>,
    /// Segments delivered.
    pub delivered: u64,
}

impl Times {
    fn turn(&mut self, now: Instant, wait: Wait) {
        if wait == self.wait {
            return;
        }
        let spent = now.saturating_since(self.since);
        match self.wait {
            Wait::Idle => {}
            Wait::Busy => self.busy += spent,
            Wait::PeerWindow => self.peer_window += spent,
            Wait::SendBuffer => self.send_buffer += spent,
        }
        (self.wait, self.since) = (wait, now);
    }

    /// How long one of them was waited for, up to `now`.
    pub fn total(&self, wait: Wait, now: Instant) -> Duration {
        let before = match wait {
            Wait::Idle => Duration::ZERO,
            Wait::Busy => self.busy,
            Wait::PeerWindow => self.peer_window,
            Wait::SendBuffer => self.send_buffer,
        };
        if wait == self.wait { before + now.saturating_since(self.since) } else { before }
    }

    /// All but the idle time.
    pub fn busy(&self, now: Instant) -> Duration {
        self.total(Wait::Busy, now) + self.total(Wait::PeerWindow, now) + self.total(Wait::SendBuffer, now)
    }
}

impl Sender {
    fn wishes(&mut self) -> &mut Wishes {
        self.wishes.get_or_insert_default()
    }

    /// Keeps the times in which it waits, from `now` on.
    pub(crate) fn keep_times(&mut self, now: Instant) {
        self.times = Some(Box::new(Times {
            wait: Wait::Idle,
            since: now,
            busy: Duration::ZERO,
            peer_window: Duration::ZERO,
            send_buffer: Duration::ZERO,
            no_room: false,
            last_ack: None,
            delivered: 0,
        }));
    }

    /// The times in which it waited, where they are kept.
    pub(crate) fn times(&self) -> Option<&Times> {
        self.times.as_deref()
    }

    /// A call writes: with `more`, an end that is no full segment waits for the next one.
    pub(crate) fn begin_write(&mut self, more: bool) {
        if more || self.wishes.is_some() {
            let wishes = self.wishes();
            (wishes.more, wishes.unmarked, wishes.push_once) = (more, more, false);
        }
    }

    /// What was written so far ends a record: no segment holds both sides of its end.
    pub(crate) fn end_record(&mut self) {
        let end = self.written;
        let una = self.una;
        let records = &mut self.wishes().records;
        while records.front().is_some_and(|&end| end <= una) {
            records.pop_front();
        }
        if records.back() != Some(&end) {
            records.push_back(end);
        }
    }

    pub(crate) fn set_no_delay(&mut self, on: bool) {
        let wishes = self.wishes();
        wishes.no_delay = Some(on);
        wishes.push_once = on;
        self.persist = self.without_hold();
    }

    pub(crate) fn set_cork(&mut self, on: bool) {
        let wishes = self.wishes();
        wishes.cork = on;
        wishes.push_once |= !on && wishes.no_delay == Some(true);
        self.persist = self.without_hold();
    }

    /// A timer that was for a withheld end only is stopped.
    fn without_hold(&self) -> Persist {
        if self.rwnd > 0 && !self.outstanding() { Persist::Off } else { self.persist }
    }

    pub(crate) fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.wishes().user_timeout = timeout;
    }

    pub(crate) fn set_send_buffer(&mut self, bytes: u64) {
        self.config.send.buffer = Some(farpath_units::Bytes(bytes));
    }

    pub(crate) fn note_no_room(&mut self) {
        if let Some(times) = &mut self.times {
            times.no_room = true;
        }
    }

    pub(crate) fn set_device_full(&mut self, full: bool) {
        self.device_full = full;
    }

    /// An ACK has come: an end that `MSG_MORE` withheld is as any other now.
    pub(super) fn end_hold(&mut self) {
        if let Some(wishes) = &mut self.wishes {
            wishes.more = false;
            wishes.failing_since = None;
        }
    }

    /// What of the stream from `start` on may be in one segment, up to `len` bytes.
    #[inline]
    pub(super) fn within_record(&self, start: u64, len: u64) -> u64 {
        match &self.wishes {
            None => len,
            Some(wishes) => {
                let end = wishes.records.iter().copied().find(|&end| end > start);
                end.map_or(len, |end| len.min(end - start))
            }
        }
    }

    /// Whether a segment that is not full and ends at `end` waits for more (`tcp_nagle_test()`).
    pub(super) fn holds_small(&mut self, now: Instant, end: u64) -> bool {
        let Some(wishes) = &self.wishes else { return self.nagle_holds() };
        if end < self.written || wishes.push_once {
            return false;
        }
        if wishes.cork || wishes.more {
            if !self.outstanding() && self.persist == Persist::Off {
                // tcp_check_probe_timer(): it leaves when the timer of a probe would.
                let interval = self.rtt.rto().max(LEAST_HOLD);
                self.persist = Persist::Waiting { due: self.rtt.config().timer(now, interval), interval };
            }
            return true;
        }
        match wishes.no_delay {
            Some(true) => false,
            Some(false) | None => self.nagle_holds(),
        }
    }

    /// What was withheld leaves by its timer, marked as an end (`tcp_write_wakeup()`).
    pub(super) fn mark_held(&mut self) {
        if let Some(wishes) = &mut self.wishes {
            wishes.unmarked = false;
        }
    }

    /// A segment of new data up to `end` has left.
    pub(super) fn note_sent_wishes(&mut self, end: u64) {
        if let Some(wishes) = &mut self.wishes
            && end >= self.written
        {
            wishes.push_once = false;
        }
    }

    /// Whether the segment that ends at `end` ends what a call wrote, as far as that is marked (`tcp_mark_push()`).
    pub(crate) fn marks_end(&self, end: u64) -> bool {
        match &self.wishes {
            None => end == self.max && self.nothing_more(),
            Some(wishes) => {
                wishes.records.contains(&end) || end == self.max && self.nothing_more() && !wishes.unmarked
            }
        }
    }

    /// Whether the user timeout has passed at a timeout (`retransmits_timed_out()`): counted from the first one in a row.
    pub(super) fn user_timeout_passed(&mut self, now: Instant) -> bool {
        let Some(wishes) = &mut self.wishes else { return false };
        let Some(timeout) = wishes.user_timeout else { return false };
        match wishes.failing_since {
            Some(since) => now.saturating_since(since) >= timeout,
            None => {
                wishes.failing_since = Some(now);
                false
            }
        }
    }

    /// A timer that waits for `due` does not outlast the user timeout (`tcp_clamp_rto_to_user_timeout()`).
    pub(super) fn within_user_timeout(&self, due: Instant) -> Instant {
        let wishes = self.wishes.as_ref();
        match wishes.and_then(|wishes| Some(wishes.failing_since? + wishes.user_timeout?)) {
            Some(end) => due.min(end),
            None => due,
        }
    }

    /// Nothing leaves now: what it waits for.
    pub(crate) fn note_wait(&mut self, now: Instant) {
        if self.times.is_none() {
            return;
        }
        let unsent = self.written > self.nxt;
        let by_peer = unsent && self.una + self.rwnd < self.written.min(self.nxt + self.smss);
        let by_cwnd = self.nxt - self.una + self.smss > self.window.cwnd && self.outstanding();
        let wait = if !self.has_data() {
            Wait::Idle
        } else if by_peer && !by_cwnd {
            Wait::PeerWindow
        } else if !unsent && self.times.as_ref().is_some_and(|times| times.no_room) && !by_cwnd {
            Wait::SendBuffer
        } else {
            Wait::Busy
        };
        if let Some(times) = &mut self.times {
            times.turn(now, wait);
        }
    }

    /// An ACK has been taken.
    pub(super) fn note_ack(&mut self, now: Instant) {
        if let Some(times) = &mut self.times {
            times.last_ack = Some(now);
            times.delivered += self.board.delivery().bytes.div_ceil(self.smss);
        }
    }

    // ---- For tcp_info ----

    /// Written and not acknowledged, bytes.
    pub fn unacknowledged(&self) -> u64 {
        self.buffered()
    }

    /// Written and not sent, bytes.
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.max)
    }

    /// The send buffer, bytes; `None` is one without a bound.
    pub fn buffer(&self) -> Option<u64> {
        self.config.send.buffer.map(|buffer| buffer.0)
    }

    pub(crate) fn last_sent(&self) -> Instant {
        self.last_sent
    }

    pub(crate) fn ca_state(&self) -> u64 {
        match self.phase {
            Phase::Open if self.reduced_by_echo.is_some() => 2,
            Phase::Open if self.segments_sacked() > 0 => 1,
            Phase::Open => 0,
            Phase::Fast { .. } => 3,
            Phase::Loss { .. } => 4,
        }
    }

    pub(crate) fn timeouts_in_row(&self) -> u64 {
        if self.persist == Persist::Off { self.retries.into() } else { 0 }
    }

    pub(crate) fn probes_in_row(&self) -> u64 {
        if self.persist == Persist::Off { 0 } else { self.retries.into() }
    }

    pub(crate) fn segments_in_flight(&self) -> u64 {
        self.board.count(|_| true)
    }

    pub(crate) fn segments_sacked(&self) -> u64 {
        if self.sack_enabled { self.board.sacked_segments().into() } else { self.dup_acks.into() }
    }

    pub(crate) fn segments_lost(&self) -> u64 {
        self.board.count(|segment| segment.lost)
    }

    pub(crate) fn segments_retransmitted(&self) -> u64 {
        self.board.count(|segment| segment.copy)
    }

    pub(crate) fn reordering(&self) -> u64 {
        self.rack.as_ref().map_or(self.config.recovery.dup_ack_threshold.into(), |rack| rack.degree())
    }

    pub(crate) fn reorderings(&self) -> u64 {
        self.rack.as_ref().map_or(0, |rack| rack.reorderings())
    }
}
