//! One replica of a transfer: from loss to loss in rounds.

use super::ascent::{Ascent, End};
use super::lattice::Losses;
use super::net::Net;
use super::{Ends, Transfer};
use farpath_tcp::cc::{CongestionControl, Controller, Window};
use farpath_tcp::config::{FullAckWindow, PartialAckTimer, RateReduction, RecoveryAlgorithm};

/// Calls of the controller in a round at most: an ACK each, or as much of a window as a share of it.
const STEPS: u64 = 32;

/// Holes that a timeout leaves without SACK, up to which what is sent twice behind them counts for little. Chosen.
const MANY_HOLES: u64 = 8;

/// Lost tries of one segment that are followed one by one. Every timer has reached its bound long before: what is lost beyond is added by its mean.
const TRIES: u32 = 64;

/// Duplicate ACKs that begin a fast retransmit (RFC 5681 §3.2).
const THRESHOLD: u64 = 3;

pub(super) struct Walk<'a> {
    ends: &'a Ends<'a>,
    net: &'a Net,
    controller: Controller,
    window: Window,
    losses: Losses,
    /// Seconds since the first segment.
    now: f64,
    /// Never sent, and to be sent again before these.
    fresh: u64,
    again: u64,
    /// Segments in flight, whose ACKs the round that follows is made of.
    flying: u64,
    /// Without SACK, duplicates for the first segment after a repair are taken to be of it (RFC 6582 §3.2 step 1).
    guarded: bool,
    /// Doublings of the timeout that no round trip has taken back yet.
    backoff: u32,
    /// Segments acknowledged so far: where the controller counts rounds.
    acked: u64,
    tally: Transfer,
}

/// A loss, and what was sent behind it until the sender knows.
#[derive(Debug, Clone, Copy)]
struct Loss {
    /// When the lost segment left, and the round trip of its time.
    sent: f64,
    rtt: f64,
    /// Segments behind it, and how many of all these, itself included, are lost.
    behind: u64,
    holes: u64,
    /// Nothing before it was in flight: no ACK restarts the timer after it left.
    alone: bool,
    /// When it is known, where that is known.
    known: Option<f64>,
}

impl<'a> Walk<'a> {
    pub fn new(ends: &'a Ends<'a>, net: &'a Net, losses: Losses) -> Walk<'a> {
        Walk {
            ends,
            net,
            controller: ends.controller(),
            window: ends.first_window(),
            losses,
            now: 0.0,
            fresh: ends.segments,
            again: 0,
            flying: 1,
            guarded: false,
            backoff: 0,
            acked: 0,
            tally: Transfer::default(),
        }
    }

    /// The whole transfer; the beginning, as far as nothing is lost by chance, is `ascent`.
    pub fn run(mut self, ascent: &Ascent) -> Transfer {
        let begun = ascent.sent.len() as u64;
        let reach = match ascent.end {
            End::Overflow { first, .. } => first,
            _ => begun,
        };
        let mut end = match self.losses.first_of(reach) {
            Some(place) => self.lost_in_ascent(ascent, place),
            None => {
                self.fresh -= begun;
                self.tally_until(ascent, f64::INFINITY);
                self.controller = ascent.controller.clone();
                self.window = ascent.window;
                self.flying = self.flight();
                match ascent.end {
                    End::File(at) => Some(at),
                    End::Steady(at) => {
                        self.now = at;
                        None
                    }
                    End::Marked(at) => {
                        self.now = at;
                        self.reduce(self.cwnd(), self.cwnd());
                        None
                    }
                    End::Overflow { first, lost, at } => {
                        let behind = begun - first - 1;
                        let holes = lost + self.losses.count_of(behind - (lost - 1).min(behind));
                        let sent = ascent.sent[first as usize];
                        let rtt = self.net.rtt((begun - first) as f64, self.ends.every()).max(at - sent);
                        let known = (behind + 1 - holes.min(behind + 1) >= 1).then_some(at);
                        self.repair(Loss { sent, rtt, behind, holes, alone: first == 0, known })
                    }
                }
            }
        };
        while end.is_none() {
            end = self.round();
        }
        // Rounds overlap at their edges; no segment passes the link sooner than those before it.
        let least = self.net.forward + (self.ends.segments - 1) as f64 * self.net.spacing;
        self.tally.seconds = end.unwrap_or(self.now).max(least);
        self.tally
    }

    /// A segment of the ascent is lost: its ACKs go on until the one for the segment before it.
    fn lost_in_ascent(&mut self, ascent: &Ascent, place: u64) -> Option<f64> {
        let sent = ascent.sent[place as usize];
        self.tally_until(ascent, sent);
        let before = ascent.acks.partition_point(|ack| ack.covers <= place);
        let window = before.checked_sub(1).map_or(self.cwnd(), |index| ascent.acks[index].window);
        self.window.cwnd = window.max(1) * self.ends.mss;
        let outstanding = before.checked_sub(1).map_or(0, |index| ascent.acks[index].covers);
        // What the window lets through beyond the hole.
        let last = (outstanding + window.min(self.ends.window)).min(self.ends.segments).max(place + 1);
        let behind = last - place - 1;
        self.acked = place;
        self.fresh -= place + 1 + behind;
        // What the queue has dropped, and what of it has left again.
        let dropped = ascent.dropped.partition_point(|&number| number < last) as u64;
        let full = dropped.saturating_sub(ascent.resent.partition_point(|&at| at < sent) as u64).min(behind);
        let holes = 1 + full + self.losses.count_of(behind - full);
        let known =
            ascent.acks.iter().skip(before).find(|ack| ack.covers > place + THRESHOLD).map(|ack| ack.at);
        let rtt = ascent.acks.get(before).map_or(self.net.idle(), |ack| ack.at - sent).max(self.net.idle());
        self.repair(Loss { sent, rtt, behind, holes, alone: place == 0, known })
    }

    /// What the queue has cost the ascent until then.
    fn tally_until(&mut self, ascent: &Ascent, time: f64) {
        self.tally.retransmissions += ascent.resent.partition_point(|&at| at < time) as f64;
        self.tally.fast_retransmits += ascent.reductions.partition_point(|&at| at < time) as f64;
    }

    fn cwnd(&self) -> u64 {
        (self.window.cwnd / self.ends.mss).max(1)
    }

    /// What may be unacknowledged.
    fn flight(&self) -> u64 {
        self.cwnd().min(self.ends.window)
    }

    fn left(&self) -> u64 {
        self.again + self.fresh
    }

    fn starting(&self) -> bool {
        self.window.cwnd < self.window.ssthresh
    }

    /// The round trip that so many segments in flight take.
    fn rtt(&self, flying: u64) -> f64 {
        if flying >= self.ends.window {
            return self.ends.full_round.max(flying as f64 * self.net.spacing);
        }
        self.net.rtt(flying as f64, self.ends.every())
    }

    /// So many segments leave: those to be sent again first.
    fn leave(&mut self, count: u64) {
        let again = count.min(self.again);
        self.again -= again;
        self.tally.retransmissions += again as f64;
        self.fresh -= (count - again).min(self.fresh);
    }

    /// A round trip at the window as it is. The time of the end, where it is the last.
    fn round(&mut self) -> Option<f64> {
        let count = self.flight().min(self.left());
        self.send(count, true)
    }

    /// So many segments leave in a round trip, and are acknowledged in the next.
    fn send(&mut self, count: u64, grows: bool) -> Option<f64> {
        let rtt = self.rtt(self.flying);
        let (room, overflow) = self.room(count);
        let guarded = self.guarded && self.again == 0;
        self.guarded &= self.again > 0;
        if let Some(place) = self.losses.first_of(room.min(count)) {
            if grows {
                self.grow(place, self.now + rtt, rtt);
            }
            let sent = self.now + place as f64 * self.net.spacing;
            self.leave(place + 1);
            let behind = (self.flight() - 1).min(self.left());
            let holes = 1 + self.losses.count_of(behind);
            self.leave(behind);
            let alone = count == 1;
            if guarded && place == 0 {
                return self.time_out(Loss { sent, rtt, behind, holes, alone, known: None });
            }
            return self.repair(Loss { sent, rtt, behind, holes, alone, known: None });
        }
        if overflow > 0 {
            let place = count - overflow;
            let sent = self.now + place as f64 * self.net.spacing;
            if grows {
                self.grow(place, self.now + rtt, rtt);
            }
            self.leave(place + 1);
            let behind = (self.flight() - 1).min(self.left());
            // One in two of a slow start's burst finds no room; later, what the window has grown by.
            let lost = if self.starting() { overflow.div_ceil(2) } else { overflow };
            self.leave(behind);
            let holes = (lost + self.losses.count_of(behind)).min(behind + 1);
            return self.repair(Loss { sent, rtt, behind, holes, alone: false, known: None });
        }
        if self.fresh > 0 && count > self.again {
            // A segment that was sent once is measured.
            self.backoff = 0;
        }
        self.leave(count);
        if self.left() == 0 {
            return Some(self.arrival(count, rtt));
        }
        self.now += rtt;
        self.flying = count.max(1);
        if grows {
            let marked = count as f64 > self.net.unmarked();
            self.grow(count, self.now, rtt);
            if marked {
                self.reduce(count, count);
            }
        } else {
            self.acked += count;
        }
        None
    }

    /// When the last of so many segments that leave from now on has arrived.
    fn arrival(&self, count: u64, rtt: f64) -> f64 {
        self.now + count.saturating_sub(1) as f64 * self.net.spacing + rtt.max(self.net.idle())
            - self.net.back
    }

    /// How many of so many segments find room, and how many do not.
    fn room(&self, count: u64) -> (u64, u64) {
        let capacity = self.net.capacity();
        // Of a slow start, whose ACKs let twice as much go as they cover, half of a burst stands before the link.
        let most = if self.starting() { capacity.min(2.0 * self.net.queue + 2.0) } else { capacity };
        if (count as f64) <= most {
            return (count, 0);
        }
        let room = (most as u64).max(1);
        (room, count.saturating_sub(room))
    }

    /// The window grows by the ACKs of so many segments, which come in a round trip from `from` on.
    fn grow(&mut self, count: u64, from: f64, rtt: f64) {
        if count == 0 {
            return;
        }
        let every = if self.ends.acknowledges_each(self.starting()) { 1 } else { self.ends.ack_every };
        let acks = count.div_ceil(every);
        let each = if self.ends.grows_by_ack { every } else { count.div_ceil(acks.min(STEPS)) };
        let mut left = count;
        let limited = self.ends.limited(&self.window, self.flight());
        while left > 0 {
            let newly = left.min(each);
            left -= newly;
            let at = from + (count - left) as f64 / count as f64 * (count as f64 * self.net.spacing).min(rtt);
            self.acked += newly;
            let event =
                self.ends.ack(at, newly, self.acked, self.acked + count, count, limited, (rtt, rtt), rtt);
            self.controller.on_ack(&mut self.window, &event);
        }
    }

    /// The window after a loss, or a mark, found at a flight of so many.
    fn reduce(&mut self, flight: u64, pipe: u64) {
        self.fall(flight, pipe, false);
        self.window.cwnd = self.window.ssthresh;
        self.tally.fast_retransmits += 1.0;
    }

    fn fall(&mut self, flight: u64, pipe: u64, timeout: bool) {
        let event = self.ends.loss(self.now, flight, pipe, timeout);
        self.window.ssthresh = self.controller.ssthresh_after(&self.window, &event);
    }

    /// The sender comes to know of a loss, and repairs it.
    fn repair(&mut self, loss: Loss) -> Option<f64> {
        let ends = self.ends;
        let Loss { sent, rtt, behind, .. } = loss;
        let heard = sent + rtt;
        let mut loss = loss;
        let mut reports = (behind + 1).saturating_sub(loss.holes);
        if ends.algorithm == RecoveryAlgorithm::TimeoutOnly {
            return self.time_out(loss);
        }
        if let Some(known) = loss.known.filter(|_| reports > 0) {
            self.now = known;
            return self.recover(loss);
        }
        if reports >= THRESHOLD {
            self.now = heard + THRESHOLD as f64 * self.net.spacing;
            return self.recover(loss);
        }
        if reports > 0 && ends.rack {
            // RFC 8985 §6.2 step 4: a quarter of the round trip for those out of order.
            self.now = heard + self.net.idle() / 4.0;
            return self.recover(loss);
        }
        if reports > 0 && ends.limited_transmit {
            // RFC 3042: the first two duplicates each let a new segment go.
            let mut rounds = 0;
            let mut granted = 0;
            while reports < THRESHOLD && granted < 2 && self.fresh > 0 && behind + granted + 1 < ends.window {
                let more = reports.min(2 - granted).min(self.fresh);
                let lost = self.losses.count_of(more);
                self.leave(more);
                granted += more;
                loss.behind += more;
                loss.holes += lost;
                reports += more - lost;
                rounds += 1;
                if more == lost {
                    break;
                }
            }
            if reports >= THRESHOLD {
                self.now = heard + f64::from(rounds) * rtt;
                return self.recover(loss);
            }
        }
        if ends.probe && loss.behind + 1 == loss.holes {
            return self.probe(loss);
        }
        self.time_out(loss)
    }

    /// Nothing behind the loss arrived: a tail loss probe makes the peer speak (RFC 8985 §7).
    fn probe(&mut self, loss: Loss) -> Option<f64> {
        let alone = loss.behind == 0 && loss.alone;
        let wait = 2.0 * loss.rtt + if alone { self.ends.probe_ack_delay } else { self.ends.slack };
        let last = loss.sent + loss.behind as f64 * self.net.spacing;
        let from = if alone { loss.sent } else { last.max(loss.sent + loss.rtt) };
        let at = from + wait;
        if at >= self.expiry(from, loss.rtt, 0) {
            return self.time_out(loss);
        }
        self.tally.retransmissions += 1.0;
        if self.losses.first_of(1).is_some() {
            // RFC 8985 §7.3: the timer that follows is the retransmission timer.
            return self.time_out(Loss { sent: at - loss.rtt, alone: false, ..loss });
        }
        if loss.holes == 1 {
            if self.left() == 0 {
                return Some(at + self.net.forward);
            }
            self.now = at + loss.rtt;
            self.reduce(1, 1);
            return None;
        }
        self.now = at + loss.rtt + self.net.idle() / 4.0;
        self.recover(Loss { holes: loss.holes - 1, ..loss })
    }

    /// When the timer expires that was started at `from`, backed off so often.
    fn expiry(&self, from: f64, rtt: f64, backoff: u32) -> f64 {
        self.ends.expiry(from, rtt, backoff)
    }

    /// Fast retransmit, now, and fast recovery.
    fn recover(&mut self, loss: Loss) -> Option<f64> {
        let flight = loss.behind + 1;
        let holes = loss.holes;
        self.fall(flight, flight - holes.min(flight), false);
        self.tally.fast_retransmits += 1.0;
        match self.ends.algorithm {
            RecoveryAlgorithm::Tahoe => {
                self.window.cwnd = self.ends.mss;
                self.again += holes;
                None
            }
            _ if self.ends.sack => self.recover_selectively(loss),
            RecoveryAlgorithm::Reno if holes > 2 => self.time_out(Loss { sent: self.now, ..loss }),
            _ => self.recover_one_by_one(loss),
        }
    }

    /// With SACK: all holes in as few rounds as the window lets them go.
    fn recover_selectively(&mut self, loss: Loss) -> Option<f64> {
        let flight = loss.behind + 1;
        let ends = self.ends;
        let ssthresh = (self.window.ssthresh / self.ends.mss).max(1);
        let mut room = self.ends.window.saturating_sub(flight);
        let mut holes = loss.holes;
        let mut delivered = flight - holes.min(flight);
        let mut pipe = delivered;
        loop {
            // RFC 9937 §6.2: in proportion while more is in flight than is wanted, then as much as arrives, or twice that.
            let allowed = match ends.rate_reduction {
                RateReduction::AtOnce => ssthresh,
                _ if pipe > ssthresh => (delivered * ssthresh).div_ceil(flight),
                RateReduction::SlowStart => (2 * delivered).min(ssthresh),
                RateReduction::Conservative | RateReduction::SafeAck | RateReduction::Linux => {
                    delivered.min(ssthresh)
                }
            };
            let allowed = allowed.max(1);
            let resent = holes.min(allowed);
            let lost = self.losses.count_of(resent);
            self.tally.retransmissions += resent as f64;
            let new = (allowed - resent).min(room).min(self.fresh);
            holes -= resent;
            if lost > 0 && !self.ends.rack {
                // RFC 6675 has no means to find a retransmission lost.
                self.leave_fresh(new);
                let sent = self.now;
                return self.time_out(Loss {
                    sent,
                    holes: holes + lost,
                    behind: flight + new,
                    alone: false,
                    ..loss
                });
            }
            if holes + lost == 0 {
                self.window.cwnd = self.window.ssthresh;
                if self.fresh == 0 {
                    return Some(self.arrival(resent, self.rtt(pipe.max(1))));
                }
                // The ACKs of what was in flight let it go.
                self.flying = pipe.max(1);
                if new == 0 {
                    self.now += self.rtt(self.flying);
                    self.flying = resent.max(1);
                    return None;
                }
                return self.send(new, true);
            }
            room -= new;
            self.leave_fresh(new);
            let lost_new = self.losses.count_of(new);
            holes += lost + lost_new;
            let rtt = self.rtt(pipe.max(1));
            delivered = (resent + new).saturating_sub(lost + lost_new);
            pipe = delivered;
            if delivered == 0 {
                let sent = self.now;
                return self.time_out(Loss { sent, holes, behind: holes, alone: true, ..loss });
            }
            self.now += rtt;
        }
    }

    fn leave_fresh(&mut self, count: u64) {
        self.fresh -= count;
    }

    /// Without SACK: a hole a round trip (RFC 6582).
    fn recover_one_by_one(&mut self, loss: Loss) -> Option<f64> {
        let flight = loss.behind + 1;
        let ssthresh = (self.window.ssthresh / self.ends.mss).max(1);
        let mut room = self.ends.window.saturating_sub(flight);
        let mut holes = loss.holes;
        self.tally.many_holes += f64::from(u8::from(holes > MANY_HOLES));
        let began = self.now;
        loop {
            self.tally.retransmissions += 1.0;
            if self.losses.first_of(1).is_some() {
                return self.time_out(Loss { sent: self.now, holes, behind: flight, alone: false, ..loss });
            }
            holes -= 1;
            // Holes that are not known count as in flight.
            let new = ssthresh.saturating_sub(holes + 1).min(room).min(self.fresh);
            let rtt = self.rtt(new + 1);
            if holes == 0 {
                self.window.cwnd = match self.ends.full_ack_window {
                    FullAckWindow::FlightSize => self.window.ssthresh.min((new + 1) * self.ends.mss),
                    _ => self.window.ssthresh,
                };
                if self.fresh == 0 {
                    return Some(self.arrival(1, rtt));
                }
                self.flying = new + 1;
                self.guarded = self.ends.guard;
                if new == 0 {
                    self.now += rtt;
                    return None;
                }
                return self.send(new, false);
            }
            room -= new;
            self.leave_fresh(new);
            holes += self.losses.count_of(new);
            self.now += rtt;
            let impatient = self.ends.partial_ack_timer != PartialAckTimer::SlowButSteady;
            if impatient && self.now > self.expiry(began + rtt, rtt, 0) {
                self.tally.sent_twice += f64::from(u8::from(holes > MANY_HOLES));
                return self.time_out(Loss { sent: began, holes, behind: flight, alone: false, ..loss });
            }
        }
    }

    /// The retransmission timer expires, perhaps more than once.
    fn time_out(&mut self, loss: Loss) -> Option<f64> {
        let from = if loss.alone { loss.sent } else { loss.sent + loss.rtt };
        let mut at = self.expiry(from, loss.rtt, self.backoff);
        self.now = at;
        self.fall(loss.behind + 1, 1, true);
        self.controller.on_timeout();
        self.window.cwnd = self.ends.mss;
        let mut tries = 0;
        loop {
            self.tally.retransmissions += 1.0;
            self.tally.timeouts += 1.0;
            self.backoff += 1;
            tries += 1;
            if self.losses.first_of(1).is_none() {
                break;
            }
            let last = at;
            at = self.expiry(at, loss.rtt, self.backoff);
            if tries == TRIES {
                let further = self.losses.mean_run();
                self.tally.retransmissions += 1.0 + further;
                self.tally.timeouts += 1.0 + further;
                at += further * (at - last);
                break;
            }
        }
        if !self.ends.keeps_backoff {
            self.backoff = 0;
        }
        self.flying = 1;
        self.guarded = self.ends.guard;
        self.now = at;
        self.again += loss.holes.saturating_sub(1);
        if self.left() == 0 {
            return Some(at + self.net.forward);
        }
        let rtt = self.net.idle();
        self.now += rtt;
        self.grow(1, self.now, rtt);
        None
    }
}
