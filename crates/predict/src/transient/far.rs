//! What is beyond the sender: the links, the receiver's ACKs, and their way back.

use super::Ends;
use super::net::Net;
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
}

/// The link forward, the receiver, and the way back.
pub(super) struct Far<'a> {
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
    /// One past the last segment that came or was dropped; those below it that are missing.
    next: u64,
    pub missing: VecDeque<u64>,
    /// Packets sent so far.
    pub order: u64,
    last: (u64, u64),
    acks: VecDeque<Ack>,
}

impl<'a> Far<'a> {
    pub fn new(ends: &'a Ends<'a>, net: &'a Net) -> Far<'a> {
        Far {
            net,
            ends,
            free: 0.0,
            back_free: 0.0,
            quick: ends.quick_acks,
            held: 0,
            held_sent: (0.0, 0.0),
            held_came: 0.0,
            held_marked: false,
            next: 0,
            missing: VecDeque::new(),
            order: 0,
            last: (0, 0),
            acks: VecDeque::new(),
        }
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
        if self.held > 0 && came > self.held_came + self.ends.ack_delay {
            self.acknowledge(self.held_came + self.ends.ack_delay);
        }
        let gap = !self.missing.is_empty();
        if let Ok(place) = self.missing.binary_search(&number) {
            self.missing.remove(place);
        }
        self.next = self.next.max(number + 1);
        self.last = (number, self.order);
        if self.held == 0 {
            self.held_sent.0 = sent;
            self.held_came = came;
        }
        self.held += 1;
        self.held_sent.1 = sent;
        self.held_marked |= marked;
        let quick = self.quick > 0 || (growing && self.ends.quick_while_growing);
        if gap || quick || self.held >= self.ends.ack_every {
            self.quick = self.quick.saturating_sub(1);
            self.acknowledge(came);
        }
    }

    fn acknowledge(&mut self, at: f64) {
        let start = self.back_free.max(at);
        if self.net.ack_spacing > 0.0 && (start - at) / self.net.ack_spacing > self.net.ack_queue {
            // It finds no room: what comes next covers it.
            return;
        }
        self.back_free = start + self.net.ack_spacing;
        let at = start + self.net.back;
        let covers = self.missing.front().copied().unwrap_or(self.next);
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
        });
        (self.held, self.held_marked) = (0, false);
    }

    /// Whether so many segments have left, and none is missing.
    pub fn has_all(&self, segments: u64) -> bool {
        self.next == segments && self.missing.is_empty()
    }

    /// When the next ACK comes.
    pub fn next_ack_at(&self) -> Option<f64> {
        let late = (self.held > 0).then_some(self.held_came + self.ends.ack_delay + self.net.back);
        match (self.acks.front().map(|ack| ack.at), late) {
            (Some(at), Some(late)) => Some(at.min(late)),
            (at, late) => at.or(late),
        }
    }

    /// The next ACK that comes.
    pub fn next_ack(&mut self) -> Option<Ack> {
        let late = (self.held > 0).then_some(self.held_came + self.ends.ack_delay);
        if let Some(late) = late
            && self.acks.front().is_none_or(|ack| ack.at > late + self.net.back)
        {
            self.acknowledge(late);
            // Those that were on their way before it come first.
            self.acks.make_contiguous().sort_by(|a, b| a.at.total_cmp(&b.at));
        }
        self.acks.pop_front()
    }
}
