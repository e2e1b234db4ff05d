//! What is beyond the sender: the links, the receiver's ACKs, and their way back.

use super::Ends;
use super::net::Net;
use farpath_tcp::receiver::{Autotuning, Echoed, SENT_AT_ONCE, most_quick_acks};
use farpath_units::{Duration, Instant};
use std::collections::VecDeque;

/// Of what a segment takes to send: what is nearer together than this happens in one instant, but for rounding.
const SAME_INSTANT: f64 = 1e-9;

/// An ACK on its way.
pub(super) struct Ack {
    pub at: f64,
    pub covers: u64,
    /// Segments that it is the first to report, and the last of them.
    pub reports: u64,
    pub number: u64,
    /// Place of that one in the order of all that was sent, retransmissions included.
    pub order: u64,
    /// When the first and the last segment that it newly covers had left.
    pub sent: (f64, f64),
    pub marked: bool,
    /// When it left, and the window that it announces, in segments.
    left: f64,
    window: u64,
}

/// The link forward, the receiver, and the way back.
pub(super) struct BeyondSender<'a> {
    net: &'a Net,
    ends: &'a Ends<'a>,
    pub free: f64,
    back_free: f64,
    /// ACKs that are still sent for every segment.
    quick: u64,
    /// Segments that came and are not acknowledged: when the first of them left, when the last came.
    held: u64,
    held_sent: (f64, f64),
    held_came: f64,
    held_marked: bool,
    /// How long they wait for others; the hole behind which ACKs are counted, and how many have left.
    wait: f64,
    behind: (u64, u64),
    /// One past the last segment that came or was dropped; those below it that are missing.
    next: u64,
    pub missing: VecDeque<u64>,
    /// Packets sent so far.
    pub order: u64,
    last: (u64, u64),
    acks: VecDeque<Ack>,
    /// A window that grows with the connection, by a clock that shows zero when the first SYN leaves.
    autotuning: Option<Autotuning>,
    /// When the last ACK that the sender has left, and its window.
    heard: f64,
    window: u64,
}

impl<'a> BeyondSender<'a> {
    pub fn new(ends: &'a Ends<'a>, net: &'a Net) -> BeyondSender<'a> {
        BeyondSender {
            net,
            ends,
            free: 0.0,
            back_free: 0.0,
            quick: quick_acks(ends),
            held: 0,
            held_sent: (0.0, 0.0),
            held_came: 0.0,
            held_marked: false,
            wait: ends.ack_delay,
            behind: (0, 0),
            next: 0,
            missing: VecDeque::new(),
            order: 0,
            last: (0, 0),
            acks: VecDeque::new(),
            autotuning: ends.autotuning.clone(),
            heard: -net.back,
            window: window(ends, ends.autotuning.as_ref()),
        }
    }

    /// The most that may be unacknowledged, as far as the sender knows.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// A segment leaves, and is lost on its way where it does not arrive. Whether there was room for it in the queue.
    pub fn send(&mut self, number: u64, at: f64, growing: bool, arrives: bool) -> bool {
        self.order += 1;
        let busy = (self.free - at) / self.net.spacing;
        let waiting = if busy > SAME_INSTANT { busy } else { 0.0 };
        // Of as many as the link is still busy with, all but one wait; one that begins to be sent in this instant waits still.
        if self.net.spacing > 0.0 && waiting > 0.0 && (waiting + SAME_INSTANT).ceil() > self.net.queue {
            self.miss(number);
            return false;
        }
        let marked = self.net.spacing > 0.0 && waiting > self.net.mark;
        let start = self.free.max(at);
        self.free = start + self.net.spacing;
        if arrives {
            let came = start + self.net.forward;
            self.take(number, at, came, growing, marked);
        } else {
            self.miss(number);
        }
        true
    }

    fn miss(&mut self, number: u64) {
        if number >= self.next {
            self.missing.push_back(number);
            self.next = number + 1;
        }
    }

    fn take(&mut self, number: u64, sent: f64, came: f64, growing: bool, marked: bool) {
        if self.held > 0 && came > self.held_came + self.wait {
            self.acknowledge(self.held_came + self.wait);
        }
        let gap = !self.missing.is_empty();
        let before = self.covers();
        if let Ok(place) = self.missing.binary_search(&number) {
            self.missing.remove(place);
        }
        self.next = self.next.max(number + 1);
        self.grow(came, before);
        self.last = (number, self.order);
        if self.held == 0 {
            self.held_sent.0 = sent;
            self.held_came = came;
        }
        self.held += 1;
        self.held_sent.1 = sent;
        self.held_marked |= marked;
        let grows = growing && self.ends.quick_while_growing && self.autotuning.is_none();
        let compressed = gap && self.quick == 0 && self.compresses();
        self.wait = if compressed { self.ends.compression } else { self.ends.ack_delay };
        let enough = if compressed { self.ends.compressed } else { self.ends.ack_every };
        if gap && !compressed || grows || self.quick > 0 || self.held >= enough {
            self.acknowledge(came);
        }
    }

    /// Whether an ACK for what lies beyond a hole waits for more of these (`__tcp_ack_snd_check()`).
    fn compresses(&mut self) -> bool {
        let covers = self.covers();
        if self.ends.compressed == 0 || covers == self.next {
            return false;
        }
        if self.behind.0 != covers {
            self.behind = (covers, 0);
        }
        self.behind.1 += 1;
        self.behind.1 > u64::from(SENT_AT_ONCE)
    }

    /// The first segment that is missing, and how many are.
    pub fn holes(&self) -> Option<(u64, u64)> {
        self.missing.front().map(|&first| (first, self.missing.len() as u64))
    }

    /// All below this has come.
    fn covers(&self) -> u64 {
        self.missing.front().copied().unwrap_or(self.next)
    }

    /// A segment has come, before which all below `before` had: the window grows, and the segment is acknowledged at once where it does
    /// (`tcp_grow_window()`).
    fn grow(&mut self, came: f64, before: u64) {
        let covers = self.covers();
        let Some(autotuning) = &mut self.autotuning else { return };
        let mss = self.ends.mss;
        autotuning.measure_segment(mss);
        let clock = |at: f64| Duration::from_secs_f64(at + self.ends.opening);
        let ms = |at: f64| clock(at).as_nanos() / 1_000_000;
        let ago = Duration::from_millis(ms(came).saturating_sub(ms(self.heard)));
        let echoed = Echoed { value: ms(self.heard) as u32, ago };
        let waiting = self.next - before - self.missing.len() as u64;
        let next = covers * mss + 1;
        let now = Instant::ZERO + clock(came);
        if autotuning.on_segment(now, mss, waiting.max(1) * mss, next, Some(echoed)) {
            self.quick |= 1;
        }
        if covers > before {
            autotuning.on_read(before * mss + 1, (covers - before) * mss, next);
        }
    }

    fn acknowledge(&mut self, at: f64) {
        // Whatever it answers (`tcp_dec_quickack_mode()`).
        self.quick = self.quick.saturating_sub(1);
        let start = self.back_free.max(at);
        if self.net.ack_spacing > 0.0 && (start - at) / self.net.ack_spacing > self.net.ack_queue {
            // It finds no room: what comes next covers it.
            return;
        }
        self.back_free = start + self.net.ack_spacing;
        let at = start + self.net.back;
        let covers = self.covers();
        let (number, order) = self.last;
        let reports = self.held;
        self.acks.push_back(Ack {
            at,
            covers,
            reports,
            number,
            order,
            sent: self.held_sent,
            marked: self.held_marked,
            left: start,
            window: window(self.ends, self.autotuning.as_ref()),
        });
        (self.held, self.held_marked) = (0, false);
    }

    /// Whether so many segments have left, and none is missing.
    pub fn has_all(&self, segments: u64) -> bool {
        self.next == segments && self.missing.is_empty()
    }

    /// When the next ACK comes.
    pub fn next_ack_at(&self) -> Option<f64> {
        let late = (self.held > 0).then_some(self.held_came + self.wait + self.net.back);
        match (self.acks.front().map(|ack| ack.at), late) {
            (Some(at), Some(late)) => Some(at.min(late)),
            (at, late) => at.or(late),
        }
    }

    /// The next ACK that comes.
    pub fn next_ack(&mut self) -> Option<Ack> {
        let late = (self.held > 0).then_some(self.held_came + self.wait);
        if let Some(late) = late
            && self.acks.front().is_none_or(|ack| ack.at > late + self.net.back)
        {
            self.acknowledge(late);
            // Those that were on their way before it come first.
            self.acks.make_contiguous().sort_by(|a, b| a.at.total_cmp(&b.at));
        }
        let ack = self.acks.pop_front();
        if let Some(ack) = &ack {
            (self.heard, self.window) = (ack.left, ack.window);
        }
        ack
    }
}

/// Segments that are acknowledged at once at the beginning: those that a window which grows allows.
fn quick_acks(ends: &Ends) -> u64 {
    let most = |window: &Autotuning| most_quick_acks(window.window(), ends.mss);
    ends.autotuning.as_ref().map_or(u64::MAX, most).min(ends.quick_acks)
}

/// The most that may be unacknowledged by what the receiver announces, in segments.
fn window(ends: &Ends, autotuning: Option<&Autotuning>) -> u64 {
    autotuning.map_or(ends.window, |window| (window.window() / ends.mss).clamp(1, ends.window))
}
