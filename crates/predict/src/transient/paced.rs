//! A transfer whose controller steers by the rate of delivery (BBR), ACK by ACK.

use super::Ends;
use super::beyond_sender::{Ack, BeyondSender};
use super::lattice::Losses;
use super::net::Net;
use super::{LONGEST_ASCENT, Transfer};
use farpath_tcp::cc::{CongestionControl, Controller, Excess, Measured, Pace, RateSample, Repair, Window};
use farpath_units::{Duration, Instant};
use std::collections::VecDeque;

/// Segments above it that are reported when one is taken to be lost (RFC 6675 §2).
const DUPLICATES: u64 = 3;

/// What was the case when a segment last left (draft-cheng-iccrg-delivery-rate-estimation-02 §3.2). Counts are of segments, times in s.
#[derive(Debug, Clone, Copy)]
struct Snapshot {
    at: f64,
    flight_began: f64,
    delivered: u64,
    delivered_at: f64,
    in_flight: u64,
    lost: u64,
    held_down: bool,
}

/// The sender, and what it knows. Counts are of segments, times in s.
struct Paced<'a> {
    ends: &'a Ends<'a>,
    far: BeyondSender<'a>,
    losses: Losses,
    controller: Controller,
    window: Window,
    now: f64,
    /// Nothing paced leaves before.
    next: f64,
    /// Of each segment that was sent.
    snapshots: Vec<Snapshot>,
    una: u64,
    /// Place of the last segment that is reported among all that was sent.
    reported: u64,
    delivered: u64,
    delivered_at: f64,
    sent_at: f64,
    flight_began: f64,
    lost: u64,
    resent: u64,
    /// Segments that are lost and that the sender does not know of, and where among all that was sent the last copy was.
    dropped: VecDeque<(u64, u64)>,
    /// Known to be lost, to leave again.
    again: VecDeque<u64>,
    /// What is being repaired is over when all below this is acknowledged.
    repair_until: Option<u64>,
    repairs: u64,
    /// The controller holds the rate down until so much is delivered.
    held_down_until: u64,
    min_rtt: f64,
    srtt: f64,
}

/// One replica of a transfer.
pub(super) fn transfer(ends: &Ends, net: &Net, losses: Losses, handshake: Duration) -> Transfer {
    let mut sender = Paced::new(ends, net, losses, handshake);
    let seconds = sender.run(net);
    Transfer {
        seconds,
        retransmissions: sender.resent as f64,
        fast_retransmits: sender.repairs as f64,
        ..Transfer::default()
    }
}

/// To the next nanosecond; of what is not negative.
fn duration(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9 + 0.5) as u64)
}

fn instant(at: f64) -> Instant {
    Instant::ZERO + duration(at)
}

impl<'a> Paced<'a> {
    fn new(ends: &'a Ends<'a>, net: &'a Net, losses: Losses, handshake: Duration) -> Paced<'a> {
        let (mut controller, window) = (ends.controller(), ends.first_window());
        controller.on_established(&window, Instant::ZERO, Some(handshake), ends.tick());
        Paced {
            ends,
            far: BeyondSender::new(ends, net),
            losses,
            controller,
            window,
            now: 0.0,
            next: 0.0,
            snapshots: Vec::new(),
            una: 0,
            reported: 0,
            delivered: 0,
            delivered_at: 0.0,
            sent_at: 0.0,
            flight_began: 0.0,
            lost: 0,
            resent: 0,
            dropped: VecDeque::new(),
            again: VecDeque::new(),
            repair_until: None,
            repairs: 0,
            held_down_until: 0,
            min_rtt: handshake.as_secs_f64(),
            srtt: handshake.as_secs_f64(),
        }
    }

    /// Until the last byte has arrived.
    fn run(&mut self, net: &Net) -> f64 {
        let mut half = None;
        loop {
            if self.far.has_all(self.ends.segments) {
                return self.far.free - net.spacing + net.forward;
            }
            let sent = self.snapshots.len();
            if sent > LONGEST_ASCENT / 2 {
                half.get_or_insert((self.delivered, self.now));
            }
            if sent > LONGEST_ASCENT
                && let Some((delivered, since)) = half
            {
                // It goes on as it did in the second half.
                let left = self.ends.segments.saturating_sub(self.delivered);
                return self.now + left as f64 * (self.now - since) / (self.delivered - delivered) as f64;
            }
            let departure = self.departure();
            let timer = if departure.is_none() { self.timer() } else { None };
            let ack = self.far.next_ack_at();
            let first = [departure, timer, ack].into_iter().flatten().fold(f64::INFINITY, f64::min);
            if ack == Some(first) {
                if let Some(ack) = self.far.next_ack() {
                    self.take(&ack);
                }
            } else if departure == Some(first) {
                self.now = first;
                self.send_burst();
            } else if timer == Some(first) {
                self.now = first;
                self.on_timer();
            } else {
                // Nothing is under way that an ACK would tell of: what is missing is sent again.
                self.lost += self.pipe();
                self.again = self.far.missing.clone();
            }
        }
    }

    /// When RACK's reordering window ends, or a probe of the last segment leaves (RFC 8985 §6.2, §7.2).
    fn timer(&self) -> Option<f64> {
        let &(place, number) = self.dropped.front()?;
        let at = if place < self.reported {
            self.snapshots[number as usize].at + self.srtt + self.min_rtt / 4.0
        } else {
            let alone = if self.pipe() == 1 { self.ends.probe_ack_delay } else { 0.0 };
            self.sent_at.max(self.delivered_at) + 2.0 * self.srtt + alone
        };
        Some(at.max(self.now))
    }

    fn on_timer(&mut self) {
        if self.dropped.front().is_some_and(|&(place, _)| place < self.reported) {
            let (lost, _) = self.lose(self.reported);
            self.begin_repair(lost);
            return;
        }
        let last = self.sent() - 1;
        if self.dropped.back().is_some_and(|&(_, number)| number == last) {
            self.dropped.pop_back();
            self.lost += 1;
        }
        // What is lost before it is found by what its ACK reports.
        self.send(last);
    }

    fn begin_repair(&mut self, lost: u64) {
        if lost > 0 && self.repair_until.is_none() {
            self.repair_until = Some(self.sent());
            self.repairs += 1;
            let (outstanding, pipe) = (self.sent() - self.una, self.pipe());
            let loss = self.ends.loss(self.now, outstanding, pipe, false);
            self.window.ssthresh = self.controller.ssthresh_after(&self.window, &loss);
        }
    }

    fn sent(&self) -> u64 {
        self.snapshots.len() as u64
    }

    /// In the network, as far as the sender knows.
    fn pipe(&self) -> u64 {
        (self.sent() + self.resent).saturating_sub(self.delivered + self.lost)
    }

    fn cwnd(&self) -> u64 {
        (self.window.cwnd / self.ends.mss).max(1)
    }

    /// The next segment that the windows let go.
    fn candidate(&self) -> Option<u64> {
        if self.pipe() >= self.cwnd() {
            return None;
        }
        let fresh = self.sent();
        let limit = (self.una + self.far.window()).min(self.ends.segments);
        self.again.front().copied().or((fresh < limit).then_some(fresh))
    }

    fn departure(&self) -> Option<f64> {
        self.candidate().map(|_| self.next.max(self.now))
    }

    /// Segments that leave together: no more than half a window.
    fn burst(&self, pace: Pace) -> u64 {
        pace.burst(self.ends.mss, duration(self.min_rtt)).min((self.cwnd() / 2).max(1))
    }

    fn send_burst(&mut self) {
        let pace = self.controller.pace();
        let burst = pace.map_or(u64::MAX, |pace| self.burst(pace));
        let mut credit = self.now - self.next;
        self.next = self.now;
        for _ in 0..burst.max(1) {
            let Some(number) = self.candidate() else { break };
            if number < self.sent() {
                self.again.pop_front();
            }
            self.send(number);
            if let Some(pace) = pace
                && self.sent() + self.resent >= pace.unpaced
            {
                let took = pace.time_to_send(self.ends.mss).as_secs_f64();
                // A release that was late catches up, by half at most.
                let caught_up = credit.min(took / 2.0);
                credit -= caught_up;
                self.next += took - caught_up;
            }
        }
    }

    fn send(&mut self, number: u64) {
        let pipe = self.pipe();
        if pipe == 0 {
            (self.flight_began, self.delivered_at) = (self.now, self.now);
        }
        let snapshot = Snapshot {
            at: self.now,
            flight_began: self.flight_began,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            in_flight: pipe + 1,
            lost: self.lost,
            held_down: self.held_down_until > 0,
        };
        if number == self.sent() {
            self.snapshots.push(snapshot);
        } else {
            self.snapshots[number as usize] = snapshot;
            self.resent += 1;
        }
        self.sent_at = self.now;
        let growing = self.controller.is_in_slow_start(&self.window);
        let arrives = self.losses.first_of(1).is_none();
        if !self.far.send(number, self.now, growing, arrives) || !arrives {
            self.dropped.push_back((self.far.order, number));
        }
    }

    /// What left in the place `last` of all that was sent, or before it, is lost where it has not been reported.
    fn lose(&mut self, last: u64) -> (u64, Option<Excess>) {
        let (before, mut excess) = (self.lost, None);
        while let Some(&(place, number)) = self.dropped.front()
            && place <= last
        {
            self.dropped.pop_front();
            self.again.push_back(number);
            self.lost += 1;
            let snapshot = self.snapshots[number as usize];
            let lost = self.lost - snapshot.lost;
            let mss = self.ends.mss;
            let (in_flight, lost) = (snapshot.in_flight * mss, lost * mss);
            excess = excess.or_else(|| Excess::among(mss, in_flight, lost, snapshot.held_down));
        }
        (self.lost - before, excess)
    }

    fn take(&mut self, ack: &Ack) {
        let mss = self.ends.mss;
        let pipe_before = self.pipe();
        self.now = ack.at;
        self.una = self.una.max(ack.covers);
        self.reported = self.reported.max(ack.order);
        self.delivered += ack.reports;
        if self.delivered > self.held_down_until {
            self.held_down_until = 0;
        }
        self.delivered_at = self.now;
        // RFC 8985 §6.2: no room is left for packets out of order while something is repaired.
        let above = if self.repair_until.is_some() { 1 } else { DUPLICATES };
        let (lost, excess) = self.lose(ack.order.saturating_sub(above));
        self.begin_repair(lost);
        if self.repair_until.is_some_and(|until| self.una >= until) {
            self.repair_until = None;
        }
        let snapshot = self.snapshots[ack.number as usize];
        self.flight_began = snapshot.at;
        let rtt = self.now - snapshot.at;
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt += (rtt - self.srtt) / 8.0;
        let interval = (snapshot.at - snapshot.flight_began).max(self.now - snapshot.delivered_at);
        let sound = interval >= self.min_rtt && interval > 0.0;
        let measured = Measured {
            prior_delivered: snapshot.delivered * mss,
            app_limited: snapshot.held_down,
            rate: sound.then(|| ((self.delivered - snapshot.delivered) * mss, duration(interval))),
            in_flight: snapshot.in_flight * mss,
            lost: (self.lost - snapshot.lost) * mss,
        };
        let pipe = self.pipe();
        let sample = RateSample {
            now: instant(self.now),
            measured: Some(measured),
            delivered: self.delivered * mss,
            delivered_at: instant(self.delivered_at),
            acked: ack.reports * mss,
            lost: lost * mss,
            lost_ever: self.lost * mss,
            excess,
            cwnd_limited: pipe_before >= self.cwnd(),
            rtt: Some(duration(rtt)),
            srtt: Some(duration(self.srtt)),
            pipe_before: pipe_before * mss,
            pipe: pipe * mss,
            repair: if self.repair_until.is_some() { Repair::Fast } else { Repair::None },
            next_departure: instant(self.next.max(self.now)),
        };
        if self.controller.on_rate_sample(&mut self.window, &sample) {
            self.held_down_until = (self.delivered + pipe).max(1);
        }
    }
}
