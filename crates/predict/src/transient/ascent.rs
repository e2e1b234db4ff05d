//! The beginning of a transfer, ACK by ACK, as if no packet were lost by chance: until the queue overflows or marks, or slow start
//! is over.

use super::Ends;
use super::beyond_sender::{Ack, BeyondSender};
use super::net::Net;
use farpath_tcp::cc::{CongestionControl, Controller, Window};
use farpath_tcp::config::RateReduction;
use std::collections::VecDeque;

/// Segments above it that are reported when one is taken to be lost (RFC 6675 §2).
const DUPLICATES: u64 = 3;

/// What the sender did, and when.
#[derive(Debug, Clone)]
pub(super) struct Ascent {
    /// When each segment left, in seconds from the first.
    pub sent: Vec<f64>,
    /// When each ACK came, what it covered, and the window then, in segments.
    pub acks: Vec<Acked>,
    /// Segments that found no room when they left first.
    pub dropped: Vec<u64>,
    /// When segments left again, and when the window fell, for a queue that overflowed.
    pub resent: Vec<f64>,
    pub reductions: Vec<f64>,
    /// How it ended.
    pub end: End,
    /// The controller as it is then, and its window.
    pub controller: Controller,
    pub window: Window,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Acked {
    pub at: f64,
    pub covers: u64,
    pub window: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    /// The last byte has been received, at this time.
    File(f64),
    /// Slow start is over, or the receive window is full: rounds go on from this time.
    Steady(f64),
    /// The queue had no room: the first such segment, how many until the sender knew, and when it did.
    Overflow { first: u64, lost: u64, at: f64 },
    /// The queue marked a segment, and the sender knows.
    Marked(f64),
}

impl Ascent {
    pub fn new(ends: &Ends, net: &Net) -> Ascent {
        let mut controller = ends.controller();
        let mut window = ends.first_window();
        let mut far = BeyondSender::new(ends, net);
        let (mut sent, mut acks): (Vec<f64>, Vec<Acked>) = (Vec::new(), Vec::new());
        let (mut una, mut now) = (0_u64, 0.0);
        let mut dropped = Vec::new();
        let mut duplicates = 0;
        let (mut resent, mut reductions) = (Vec::new(), Vec::new());
        let mut recovery: Option<Recovery> = None;
        // One past the last segment reported, and how many have been.
        let (mut highest, mut delivered) = (0, 0);
        let mut srtt = net.idle();
        let end = loop {
            let may = (window.cwnd / ends.mss).max(1).min(far.window());
            let growing = window.cwnd < window.ssthresh;
            let limit = (una + may + duplicates.min(2)).min(ends.segments);
            while recovery.is_none() && (sent.len() as u64) < limit {
                let number = sent.len() as u64;
                sent.push(now);
                if !far.send(number, now, growing, true) {
                    dropped.push(number);
                }
            }
            let Some(ack) = far.next_ack() else {
                // Only a tail that found no room leaves nothing to come.
                let (first, lost) = far.holes().unwrap_or((sent.len() as u64 - 1, 1));
                break End::Overflow { first, lost, at: now };
            };
            now = ack.at;
            delivered += ack.reports;
            highest = highest.max(ack.number + 1);
            if let Some(repair) = &mut recovery {
                let advanced = ack.covers > una;
                una = una.max(ack.covers);
                acks.push(Acked { at: now, covers: una, window: window.ssthresh / ends.mss });
                if una >= repair.until {
                    window.cwnd = window.ssthresh;
                    recovery = None;
                    duplicates = 0;
                    if una == ends.segments {
                        break End::File(far.free - net.spacing + net.forward);
                    }
                    if far.missing.is_empty() {
                        break End::Steady(now);
                    }
                    continue;
                }
                let limit = (una + far.window()).min(ends.segments);
                repair.on_ack(&ack, advanced, highest, delivered, sent.len() as u64);
                while let Some(number) = repair.next(sent.len() as u64, limit) {
                    let again = number < sent.len() as u64;
                    if again {
                        resent.push(now);
                    } else {
                        sent.push(now);
                    }
                    if !far.send(number, now, false, true) {
                        if !again {
                            dropped.push(number);
                        }
                        repair.dropped(number, far.order, again);
                    }
                }
                continue;
            }
            if ack.covers == una {
                duplicates += 1;
                if duplicates >= 3 || (ends.rack && sent.len() as u64 == ends.segments) {
                    let (first, lost) = far.holes().unwrap_or((una, 1));
                    if !(ends.sack
                        && matches!(ends.rate_reduction, RateReduction::SafeAck | RateReduction::Linux))
                        || highest <= first
                    {
                        break End::Overflow { first, lost, at: now };
                    }
                    let flight = sent.len() as u64 - una;
                    window.ssthresh =
                        controller.ssthresh_after(&window, &ends.loss(now, flight, flight - lost, false));
                    reductions.push(now);
                    let missing = far.missing.iter().copied().collect();
                    let mut repair = Recovery::new(&window, ends.mss, missing, sent.len() as u64);
                    repair.on_ack(&ack, false, highest, delivered, sent.len() as u64);
                    recovery = Some(repair);
                }
                continue;
            }
            let flight = sent.len() as u64 - una;
            let newly = ack.covers - una;
            una = ack.covers;
            let rtt = now - ack.sent.1;
            srtt += (rtt - srtt) / 8.0;
            let limited = ends.limited(&window, flight);
            let event =
                ends.ack(now, newly, una, sent.len() as u64, flight, limited, (now - ack.sent.0, rtt), srtt);
            controller.on_ack(&mut window, &event);
            acks.push(Acked { at: now, covers: una, window: window.cwnd / ends.mss });
            if una == ends.segments {
                break End::File(far.free.max(0.0) - net.spacing + net.forward);
            }
            if ack.marked {
                break End::Marked(now);
            }
            let full = window.cwnd / ends.mss >= ends.window && !ends.grows_unused(&window);
            if far.missing.is_empty()
                && (window.cwnd >= window.ssthresh || full || sent.len() > super::LONGEST_ASCENT)
            {
                break End::Steady(now);
            }
        };
        Ascent { sent, acks, dropped, resent, reductions, end, controller, window }
    }
}

/// Fast recovery with SACK and proportional rate reduction, ACK by ACK (RFC 9937, as `tcp_cwnd_reduction()` has it).
struct Recovery {
    ssthresh: u64,
    prior: u64,
    /// It is over when all below this is acknowledged.
    until: u64,
    /// What found no room, in the order of numbers; so many are known, so many have left again.
    missing: Vec<u64>,
    known: usize,
    left: usize,
    /// Of those that left again, so many have arrived.
    repaired: u64,
    /// Retransmissions that found no room either: their place in the order of all that was sent.
    dropped_again: VecDeque<(u64, u64)>,
    delivered: u64,
    before: u64,
    out: u64,
    allowed: u64,
}

impl Recovery {
    fn new(window: &Window, mss: u64, missing: Vec<u64>, until: u64) -> Recovery {
        Recovery {
            ssthresh: (window.ssthresh / mss).max(1),
            prior: (window.cwnd / mss).max(1),
            until,
            missing,
            known: 0,
            left: 0,
            repaired: 0,
            dropped_again: VecDeque::new(),
            delivered: 0,
            before: 0,
            out: 0,
            allowed: 0,
        }
    }

    /// An ACK came, after which `highest` is one past the last segment reported and `delivered` have been, of `sent`.
    fn on_ack(&mut self, ack: &Ack, advanced: bool, highest: u64, delivered: u64, sent: u64) {
        if ack.number < self.until && self.missing.binary_search(&ack.number).is_ok() {
            self.repaired += 1;
        }
        let known = self.missing.partition_point(|&number| number + DUPLICATES <= highest);
        let mut newly_lost = known > self.known;
        self.known = self.known.max(known);
        while let Some(&(order, number)) = self.dropped_again.front()
            && order < ack.order
        {
            // RFC 8985: what was sent later has arrived.
            self.dropped_again.pop_front();
            self.left -= 1;
            self.missing.retain(|&missing| missing != number);
            self.missing.insert(self.left, number);
            newly_lost = true;
        }
        self.before = delivered;
        let in_flight = self.pipe(sent);
        self.delivered += ack.reports;
        let wanted = if in_flight > self.ssthresh {
            (self.ssthresh * self.delivered).div_ceil(self.prior).saturating_sub(self.out)
        } else {
            let safe = u64::from(advanced && !newly_lost);
            let conserving = self.delivered.saturating_sub(self.out).max(ack.reports) + safe;
            conserving.min(self.ssthresh - in_flight)
        };
        self.allowed = wanted.max(u64::from(self.out == 0));
    }

    /// What is in the network, as far as the sender knows.
    fn pipe(&self, sent: u64) -> u64 {
        let outstanding = sent - self.before.min(sent);
        (outstanding + self.left as u64).saturating_sub(self.known as u64)
    }

    /// The number of the next segment to leave, where one may.
    fn next(&mut self, sent: u64, limit: u64) -> Option<u64> {
        if self.allowed == 0 {
            return None;
        }
        let number = if self.left < self.known {
            self.left += 1;
            self.missing[self.left - 1]
        } else if sent < limit {
            sent
        } else {
            return None;
        };
        self.allowed -= 1;
        self.out += 1;
        Some(number)
    }

    /// That segment found no room.
    fn dropped(&mut self, number: u64, order: u64, again: bool) {
        if again {
            self.dropped_again.push_back((order, number));
        }
    }
}
