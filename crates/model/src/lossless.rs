//! A loss-free transfer, walked segment by segment until it repeats.
//!
//! This is not a closed form: it is the exact arithmetic of a lone Reno flow over FIFO links, done without an
//! event queue. Slow start and the first windows are walked; from where one window is the exact copy of the one
//! before it (a full receive window), or the slowest link can no longer fall idle, the rest is one
//! multiplication. The last windows are walked again, so that a short last segment and its delayed ACK are right.

use crate::estimate::above_zero;
use crate::path::{Ps, crossing, duration, ps, spacing};
use crate::{Estimate, Hop, InputError, Path};
use farpath_units::{Bytes, Duration};
use std::collections::VecDeque;

const SOURCE: &str = "RFC 5681 section 3.1, RFC 1122 section 4.2.3.2, RFC 9293: walked exactly";

/// Segments walked before the rest is estimated by rounds: a few tenths of a second of work, and
/// enough for 10 Gbit/s x 600 ms.
const WALK_LIMIT: u64 = 6_000_000;

/// Who sends the SYN, at time zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    /// The data sender: data leaves after one round trip, on the segment that acknowledges the SYN/ACK.
    Sender,
    /// The data receiver (a download with nothing to ask for): data leaves after one and a half.
    Receiver,
    /// Nobody: the connection stands, data leaves at time zero.
    Established,
}

/// A transfer without loss.
#[derive(Debug, Clone, Copy)]
pub struct LosslessTransfer<'a> {
    /// The links.
    pub path: &'a Path,
    /// Application bytes.
    pub size: Bytes,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Receive window, fixed.
    pub rwnd: Bytes,
    /// Initial window, in segments.
    pub initial_window: u64,
    /// Initial slow-start threshold; [`Bytes::MAX`] for none.
    pub initial_ssthresh: Bytes,
    /// Segments per ACK: 2 for RFC 1122, 1 without delayed ACKs.
    pub ack_every: u64,
    /// How long the receiver waits for a segment that does not come.
    pub delayed_ack_timeout: Duration,
    /// Who opens.
    pub opener: Opener,
}

/// When things happened; time zero is the SYN, or the first segment where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LosslessTimes {
    /// The sender may send data.
    pub established: Duration,
    /// The receiver has the last byte. It does not wait for its own last delayed ACK.
    pub last_byte_received: Duration,
    /// The sender knows so.
    pub last_byte_acknowledged: Duration,
}

impl LosslessTransfer<'_> {
    /// The times of this transfer.
    ///
    /// Growth is RFC 5681's per ACK: one MSS in slow start, `MSS^2 / cwnd` from `initial_ssthresh` on. The sender
    /// has no other limit than the two windows and always has data. Domain: no loss, queues of any length, a
    /// lone flow, no spurious timeout. Error against packet simulations: under 0.001 %.
    ///
    /// Windows that would need more than six million steps before they repeat are finished round by round, with
    /// a caveat.
    pub fn times(&self) -> Result<Estimate<LosslessTimes>, InputError> {
        above_zero("the file size", self.size.0)?;
        above_zero("the segment size", self.mss.0)?;
        above_zero("the window", self.rwnd.0)?;
        above_zero("the initial window", self.initial_window)?;
        above_zero("segments per ACK", self.ack_every)?;
        let bare = self.path.headers;
        let forward = crossing(&self.path.forward, bare);
        let reverse = crossing(&self.path.reverse, bare);
        let established = match self.opener {
            Opener::Sender => forward.saturating_add(reverse),
            Opener::Receiver => reverse.saturating_mul(2).saturating_add(forward),
            Opener::Established => 0,
        };
        let mut walk = Walk::new(self, established);
        let exact = walk.run();
        let received = if exact { walk.received } else { walk.by_rounds(self) };
        let acknowledged = if exact { walk.now } else { received.saturating_add(reverse) };
        let times = LosslessTimes {
            established: duration(established),
            last_byte_received: duration(received),
            last_byte_acknowledged: duration(acknowledged),
        };
        Ok(Estimate::new(times, SOURCE)
            .caveat_if(!exact, || {
                format!("did not repeat within {WALK_LIMIT} segments: the rest is estimated round by round")
            })
            .caveat_if(self.rwnd < self.mss, || {
                "the window is below one segment: segments are cut to the window".to_owned()
            }))
    }
}

/// A FIFO link: when its transmitter is free again.
struct Fifo {
    hop: Hop,
    free: Ps,
}

fn fifos(hops: &[Hop]) -> Vec<Fifo> {
    hops.iter().map(|&hop| Fifo { hop, free: 0 }).collect()
}

fn send(links: &mut [Fifo], now: Ps, packet: Bytes) -> Ps {
    links.iter_mut().fold(now, |at, link| {
        link.free = at.max(link.free).saturating_add(link.hop.serialization(packet));
        link.free.saturating_add(ps(link.hop.propagation))
    })
}

struct Walk {
    now: Ps,
    forward: Vec<Fifo>,
    reverse: Vec<Fifo>,
    /// Arrival times of segments `rcv_nxt..snd_nxt` at the receiver.
    arriving: VecDeque<Ps>,
    /// Arrival times of ACKs at the sender, with the first segment that each does not cover.
    acks: VecDeque<(Ps, u64)>,
    headers: Bytes,
    payload: u64,
    last_payload: u64,
    segments: u64,
    rwnd: u64,
    ssthresh: f64,
    cwnd: f64,
    snd_una: u64,
    snd_nxt: u64,
    rcv_nxt: u64,
    ack_every: u64,
    delayed_ack_timeout: Ps,
    unacknowledged: u64,
    ack_due: Option<Ps>,
    received: Ps,
    repeat: Repeat,
}

impl Walk {
    fn new(transfer: &LosslessTransfer<'_>, established: Ps) -> Walk {
        let payload = transfer.mss.min(transfer.rwnd).0;
        let segments = transfer.size.0.div_ceil(payload);
        let window = transfer.rwnd.0 / payload;
        Walk {
            now: established,
            forward: fifos(&transfer.path.forward),
            reverse: fifos(&transfer.path.reverse),
            arriving: VecDeque::new(),
            acks: VecDeque::new(),
            headers: transfer.path.headers,
            payload,
            last_payload: transfer.size.0 - (segments - 1) * payload,
            segments,
            rwnd: transfer.rwnd.0,
            ssthresh: transfer.initial_ssthresh.0 as f64,
            cwnd: transfer.initial_window as f64 * payload as f64,
            snd_una: 0,
            snd_nxt: 0,
            rcv_nxt: 0,
            ack_every: transfer.ack_every,
            delayed_ack_timeout: ps(transfer.delayed_ack_timeout),
            unacknowledged: 0,
            ack_due: None,
            received: established,
            repeat: Repeat::new(transfer, window.saturating_mul(transfer.ack_every), payload),
        }
    }

    /// Walks to the end. False where the walk became too long; the state is then that of its last step.
    fn run(&mut self) -> bool {
        self.push();
        let mut walked = 0;
        while self.snd_una < self.segments {
            let arrival = self.arriving.front().copied().unwrap_or(Ps::MAX);
            let ack = self.acks.front().map_or(Ps::MAX, |&(at, _)| at);
            let due = self.ack_due.unwrap_or(Ps::MAX);
            if ack.min(arrival).min(due) == Ps::MAX {
                // Times have saturated, 10^19 years from the start: their order is lost, the answer is not.
                self.now = Ps::MAX;
                self.received = Ps::MAX;
                return true;
            }
            if ack <= arrival && ack <= due {
                let (at, covers) = self.acks.pop_front().expect("an ACK is the next event, so there is one");
                self.now = at;
                self.on_ack(covers);
            } else if arrival <= due {
                self.arriving.pop_front();
                self.now = arrival;
                self.on_segment();
                walked += 1;
                if walked >= WALK_LIMIT && self.rcv_nxt < self.segments {
                    return false;
                }
            } else {
                self.now = due;
                self.acknowledge();
            }
        }
        true
    }

    fn on_ack(&mut self, covers: u64) {
        self.snd_una = covers;
        self.repeat.on_ack(covers, self.snd_nxt);
        let payload = self.payload as f64;
        self.cwnd += if self.cwnd < self.ssthresh { payload } else { payload * payload / self.cwnd };
        self.push();
    }

    fn push(&mut self) {
        let window = self.cwnd.min(self.rwnd as f64);
        while self.snd_nxt < self.segments {
            let payload = if self.snd_nxt + 1 == self.segments { self.last_payload } else { self.payload };
            let flight_size = (self.snd_nxt - self.snd_una) as f64 * self.payload as f64;
            if flight_size + payload as f64 > window || self.arriving.len() as u64 > WALK_LIMIT {
                break;
            }
            let at = send(&mut self.forward, self.now, Bytes(payload) + self.headers);
            self.arriving.push_back(at);
            self.snd_nxt += 1;
        }
    }

    fn on_segment(&mut self) {
        self.rcv_nxt += 1;
        self.received = self.now;
        self.unacknowledged += 1;
        if self.unacknowledged >= self.ack_every {
            self.acknowledge();
        } else if self.ack_due.is_none() {
            self.ack_due = Some(self.now.saturating_add(self.delayed_ack_timeout));
        }
        let full = self.cwnd >= self.rwnd as f64;
        if let Some((segments, time)) =
            self.repeat.on_segment(self.now, self.rcv_nxt, self.unacknowledged, full)
        {
            self.skip(segments, time);
        }
    }

    fn acknowledge(&mut self) {
        self.unacknowledged = 0;
        self.ack_due = None;
        let at = send(&mut self.reverse, self.now, self.headers);
        self.acks.push_back((at, self.rcv_nxt));
    }

    /// Skips as many repetitions as leave the last ones to be walked.
    fn skip(&mut self, segments: u64, time: Ps) {
        let unsent = self.segments - self.snd_nxt;
        let times = (unsent / segments.max(1)).saturating_sub(1);
        let segments = segments * times;
        let time = time.saturating_mul(u128::from(times));
        for link in self.forward.iter_mut().chain(&mut self.reverse) {
            link.free = link.free.saturating_add(time);
        }
        for at in &mut self.arriving {
            *at = at.saturating_add(time);
        }
        for (at, covers) in &mut self.acks {
            *at = at.saturating_add(time);
            *covers += segments;
        }
        self.ack_due = self.ack_due.map(|at| at.saturating_add(time));
        self.now = self.now.saturating_add(time);
        self.received = self.now;
        self.snd_una += segments;
        self.snd_nxt += segments;
        self.rcv_nxt += segments;
    }

    /// The time at which the last byte arrives, counting rounds of one round-trip time from here.
    fn by_rounds(&self, transfer: &LosslessTransfer<'_>) -> Ps {
        let data = Bytes(self.payload) + self.headers;
        let per_ack = self.ack_every as f64;
        let data_spacing = spacing(&transfer.path.forward, data) as f64;
        let each = data_spacing.max(spacing(&transfer.path.reverse, self.headers) as f64 / per_ack);
        let round = (crossing(&transfer.path.forward, data) as f64)
            + (crossing(&transfer.path.reverse, self.headers) as f64)
            + (per_ack - 1.0) * data_spacing;
        let full = (self.rwnd as f64 / self.payload as f64).min(round / each);
        let threshold = full.min(self.ssthresh / self.payload as f64);
        let mut window = (self.cwnd / self.payload as f64).min(full);
        let mut left = (self.segments - self.rcv_nxt) as f64;
        let mut time = 0.0;
        if window < threshold {
            // Growth by 1 + 1 / ack_every per round: until `threshold`, the rounds carry this much.
            let carries = per_ack * (threshold - window);
            let rounds = libm::log1p(carries.min(left) / (per_ack * window)) / libm::log1p(1.0 / per_ack);
            if carries >= left {
                return self.now.saturating_add((round * rounds) as Ps);
            }
            time += rounds * round;
            left -= carries;
            window = threshold;
        }
        if window < full {
            // Linear growth, 1 / ack_every segments per round: `r` rounds carry `r * window + r^2 / (2 a)`.
            let rounds = per_ack * (full - window);
            let carries = rounds * (window + full) / 2.0;
            if carries >= left {
                let end = libm::sqrt(window * window + 2.0 * left / per_ack);
                return self.now.saturating_add((time + round * per_ack * (end - window)) as Ps);
            }
            time += rounds * round;
            left -= carries;
            window = full;
        }
        self.now.saturating_add((time + left * each.max(round / window)) as Ps)
    }
}

/// Watches the arrivals for the point from which the rest is a repetition. Finds it at most once.
struct Repeat {
    /// Segments after which sender, receiver and delayed ACKs can be in the same state again.
    period: u64,
    /// Arrivals of the last `period` segments, each with the segments left unacknowledged; full windows only.
    history: VecDeque<(Ps, u64)>,
    /// Length of the candidate period, and how many arrivals in a row confirmed it.
    length: Ps,
    confirmed: u64,
    /// What the slowest link puts between two segments.
    spacing: Ps,
    ack_every: u64,
    /// The return path carries ACKs as fast as the forward path calls for them.
    acks_keep_up: bool,
    /// First segment of the unbroken train that is arriving.
    train: u64,
    last: Ps,
    /// First segment sent after the train's first was acknowledged.
    answer: Option<u64>,
    found: bool,
}

impl Repeat {
    fn new(transfer: &LosslessTransfer<'_>, period: u64, payload: u64) -> Repeat {
        let headers = transfer.path.headers;
        let data_spacing = spacing(&transfer.path.forward, Bytes(payload) + headers);
        let group = data_spacing.saturating_mul(u128::from(transfer.ack_every));
        Repeat {
            period,
            history: VecDeque::new(),
            length: 0,
            confirmed: 0,
            spacing: data_spacing,
            ack_every: transfer.ack_every,
            acks_keep_up: spacing(&transfer.path.reverse, headers) <= group,
            train: 0,
            last: 0,
            answer: None,
            found: false,
        }
    }

    fn on_ack(&mut self, covers: u64, snd_nxt: u64) {
        if self.answer.is_none() && covers > self.train {
            self.answer = Some(snd_nxt);
        }
    }

    /// Segment `rcv_nxt - 1` arrived. Gives a number of segments and the time in which each such group follows
    /// the one before it, from here to the end.
    fn on_segment(&mut self, now: Ps, rcv_nxt: u64, unacknowledged: u64, full: bool) -> Option<(u64, Ps)> {
        if self.found {
            return None;
        }
        let segment = rcv_nxt - 1;
        if now - self.last != self.spacing {
            self.train = segment;
            self.answer = None;
        }
        self.last = now;
        // The slowest link sent without a gap from the train's first segment until past what its ACK released.
        // From here on ACKs release at least as much as they acknowledge, so it never falls idle again.
        if self.acks_keep_up && self.answer.is_some_and(|answer| segment > answer) {
            self.found = true;
            return Some((self.ack_every, self.spacing.saturating_mul(u128::from(self.ack_every))));
        }
        if full && self.period <= WALK_LIMIT {
            self.history.push_back((now, unacknowledged));
            if self.history.len() as u64 > self.period {
                let (then, before) = self.history.pop_front().expect("it was just pushed to");
                let same = before == unacknowledged && now - then == self.length;
                self.confirmed = if same { self.confirmed + 1 } else { 0 };
                self.length = now - then;
                if self.confirmed >= self.period {
                    self.found = true;
                    self.history.clear();
                    return Some((self.period, self.length));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
