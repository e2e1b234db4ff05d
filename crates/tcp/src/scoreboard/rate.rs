//! How fast data is delivered (draft-cheng-iccrg-delivery-rate-estimation-02; Linux's `tcp_rate.c`).
//!
//! Each transmission remembers what had been delivered when it left. The ACK that reports it gives a rate: what has been
//! delivered since, over the time in which it was sent or the time in which it was acknowledged, whichever is longer.

use farpath_units::{Duration, Instant};
use std::collections::VecDeque;

/// What had been delivered when a segment was last sent (§3.2, the state of a packet).
#[derive(Debug, Clone, Copy)]
struct Snapshot {
    /// When this transmission left.
    sent_at: Instant,
    /// `P.first_sent_time`: when the flight that it belongs to began to be sent.
    flight_began: Instant,
    /// `P.delivered_time`.
    delivered_at: Instant,
    /// `P.delivered`, bytes.
    delivered: u64,
    /// `P.is_app_limited`.
    app_limited: bool,
    /// Bytes that had been sent with it, every copy of them: its place in the order of sending.
    sent_to: u64,
    /// In flight with it (`tx_in_flight`), and declared lost until then.
    in_flight: u64,
    lost: u64,
}

/// A segment by whose loss more was lost than 2 % of what was in flight with it (BBR's `BBRLossThresh`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// Bytes of it that were lost.
    pub len: u64,
    /// In flight when it left, itself included.
    pub in_flight: u64,
    /// Declared lost since it left, itself included.
    pub lost: u64,
    /// Whether the application was the limit then.
    pub app_limited: bool,
}

/// The threshold of [`Excess`], in 256ths.
const EXCESS: u64 = 5;

impl Excess {
    /// A lost segment of `len` bytes, where what was lost since it left is too much.
    pub fn among(len: u64, in_flight: u64, lost: u64, app_limited: bool) -> Option<Excess> {
        (lost * 256 > in_flight * EXCESS).then_some(Excess { len, in_flight, lost, app_limited })
    }
}

/// What became of what was sent, bytes of payload: every copy counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Delivered.
    pub delivered: u64,
    /// Declared lost.
    pub lost: u64,
    /// Sent up to the last one, in the order of sending, that was declared lost. Losses become known in that order, but later
    /// than what was delivered around them, by RACK's reordering window and all at once where that ends: a share of what is
    /// lost is `lost` over this, not over what has been delivered meanwhile.
    pub lost_to: u64,
}

/// What an ACK tells of the rate at which data is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Bytes that had been delivered when the segment that is measured left.
    pub prior_delivered: u64,
    /// Whether the application, not the network, was what kept the rate down.
    pub app_limited: bool,
    /// Bytes, and the time in which they were delivered; `None` where it is shorter than any round trip, which no network
    /// can be (§3.3: segments that were sent again, and their originals acknowledged).
    pub rate: Option<(u64, Duration)>,
    /// In flight when the segment that is measured left, itself included, and declared lost since.
    pub in_flight: u64,
    /// See [`Measured::in_flight`].
    pub lost: u64,
}

/// The state of the connection (§3.2), and of each segment in flight. What is done for each segment stays out of the way of
/// those who ask for no rate: it is not inlined.
#[derive(Debug, Clone, Default)]
pub struct RateMeter {
    /// In the order of the scoreboard's segments.
    snapshots: VecDeque<Snapshot>,
    /// `C.delivered`, bytes.
    delivered: u64,
    /// `C.delivered_time`.
    delivered_at: Instant,
    /// `C.first_sent_time`.
    flight_began: Instant,
    /// `C.app_limited`: until so much has been delivered; zero where the application is no limit.
    app_limited_until: u64,
    /// The segment that was sent last of those that this ACK delivers.
    newest: Option<Snapshot>,
    /// Bytes declared lost: since this ACK came, and ever. A copy that is lost too counts again.
    lost_now: u64,
    lost: u64,
    /// Bytes sent, and of these up to the last that was lost.
    sent: u64,
    lost_to: u64,
    /// The first since it was last asked for.
    excess: Option<Excess>,
}

impl RateMeter {
    /// A segment of new data, of `len` bytes, was sent beside `pipe` in flight. `alone` where nothing is unacknowledged: the measurement
    /// begins anew.
    #[inline(never)]
    pub fn sent(&mut self, now: Instant, len: u64, pipe: u64, alone: bool) {
        if alone {
            (self.flight_began, self.delivered_at) = (now, now);
        }
        let snapshot = self.snapshot(now, len, pipe);
        self.snapshots.push_back(snapshot);
    }

    /// The segment at `index`, of `len` bytes, was sent again, beside `pipe` in flight.
    #[inline(never)]
    pub fn sent_again(&mut self, index: usize, now: Instant, len: u64, pipe: u64) {
        self.snapshots[index] = self.snapshot(now, len, pipe);
    }

    fn snapshot(&mut self, now: Instant, len: u64, pipe: u64) -> Snapshot {
        self.sent += len;
        Snapshot {
            sent_to: self.sent,
            sent_at: now,
            flight_began: self.flight_began,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            app_limited: self.app_limited_until > 0,
            in_flight: pipe + len,
            lost: self.lost,
        }
    }

    /// The segment at `index` has been delivered.
    #[inline(never)]
    pub fn delivered(&mut self, index: usize) {
        let snapshot = self.snapshots[index];
        // What was sent by then says which of two left later, also at one time.
        if self.newest.as_ref().is_none_or(|newest| snapshot.sent_to > newest.sent_to) {
            self.newest = Some(snapshot);
        }
    }

    /// The first segment is acknowledged, and forgotten.
    #[inline(never)]
    pub fn forget_first(&mut self) {
        self.snapshots.pop_front();
    }

    /// So many bytes of the segment at `index` are lost: it, or its last copy, or both.
    #[inline(never)]
    pub fn lose(&mut self, index: usize, bytes: u64) {
        if bytes > 0 {
            let Snapshot { sent_to, in_flight, lost, app_limited, .. } = self.snapshots[index];
            self.lost_to = self.lost_to.max(sent_to);
            self.count_lost(bytes);
            let lost = self.lost - lost;
            self.excess = self.excess.or_else(|| Excess::among(bytes, in_flight, lost, app_limited));
        }
    }

    /// All that is in the network, so many bytes, is lost.
    pub fn lose_all(&mut self, bytes: u64) {
        self.lost_to = self.sent;
        self.count_lost(bytes);
    }

    fn count_lost(&mut self, bytes: u64) {
        self.lost_now += bytes;
        self.lost += bytes;
    }

    /// What became of what was sent.
    pub fn tally(&self) -> Tally {
        Tally { delivered: self.delivered, lost: self.lost, lost_to: self.lost_to }
    }

    /// An ACK is about to be taken.
    pub fn begin_ack(&mut self) {
        (self.newest, self.lost_now) = (None, 0);
    }

    /// All of an ACK has been taken; it delivered `bytes` (§3.3).
    pub fn measure(&mut self, now: Instant, bytes: u64, min_rtt: Duration) -> Option<Measured> {
        self.delivered += bytes;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if bytes > 0 {
            self.delivered_at = now;
        }
        let snapshot = self.newest.take()?;
        self.flight_began = snapshot.sent_at;
        let send_elapsed = snapshot.sent_at.saturating_since(snapshot.flight_began);
        let ack_elapsed = now.saturating_since(snapshot.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        let sound = interval >= min_rtt && !interval.is_zero();
        Some(Measured {
            prior_delivered: snapshot.delivered,
            app_limited: snapshot.app_limited,
            rate: sound.then_some((self.delivered - snapshot.delivered, interval)),
            in_flight: snapshot.in_flight,
            lost: self.lost - snapshot.lost,
        })
    }

    /// All has been sent that was written, and the window has room for more (§3.4): `pipe` bytes are in flight.
    pub fn app_limited(&mut self, pipe: u64) {
        self.app_limited_until = (self.delivered + pipe).max(1);
    }

    /// The same, for a controller that holds the rate down itself: BBR in ProbeRTT.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// Bytes delivered so far.
    pub fn total(&self) -> u64 {
        self.delivered
    }

    /// When something was last delivered.
    pub fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// The first segment since this was last asked by which too much was lost.
    pub fn take_excess(&mut self) -> Option<Excess> {
        self.excess.take()
    }

    /// Bytes declared lost since the ACK came, and ever.
    pub fn lost(&self) -> (u64, u64) {
        (self.lost_now, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const MIN_RTT: Duration = Duration::from_millis(10);

    fn flight(segments: u64) -> RateMeter {
        let mut meter = RateMeter::default();
        for n in 0..segments {
            meter.sent(at(n), 1000, 1000 * n, n == 0);
        }
        meter
    }

    fn ack(meter: &mut RateMeter, now: u64) -> Measured {
        meter.begin_ack();
        meter.delivered(0);
        meter.forget_first();
        meter.measure(at(now), 1000, MIN_RTT).expect("a segment was delivered")
    }

    #[test]
    fn the_longer_of_sending_and_acknowledging_is_the_interval() {
        let mut meter = flight(3);
        // The first is measured from when it was sent alone.
        assert_eq!(ack(&mut meter, 20).rate, Some((1000, Duration::from_millis(20))));
        // ACKs come compressed, one upon the other; the interval still begins with the flight.
        assert_eq!(ack(&mut meter, 20).rate, Some((2000, Duration::from_millis(20))));
        // A later segment, sent when 2000 B had been delivered.
        meter.sent(at(21), 1000, 0, false);
        assert_eq!(ack(&mut meter, 22).rate, Some((3000, Duration::from_millis(22))));
        let last = ack(&mut meter, 41);
        assert_eq!((last.prior_delivered, last.rate), (2000, Some((2000, Duration::from_millis(21)))));
    }

    #[test]
    fn a_rate_over_less_than_a_round_trip_is_none() {
        let mut meter = flight(2);
        meter.sent_again(0, at(19), 1000, 0);
        ack(&mut meter, 20);
        meter.sent_again(0, at(21), 1000, 0);
        assert_eq!(ack(&mut meter, 22).rate, None, "the original arrived, not the copy");
    }

    #[test]
    fn what_leaves_while_the_application_is_the_limit_is_marked_until_it_is_delivered() {
        let mut meter = flight(1);
        meter.app_limited(1000);
        meter.sent(at(5), 1000, 0, false);
        assert!(!ack(&mut meter, 20).app_limited, "it left before");
        assert!(meter.is_app_limited());
        assert!(ack(&mut meter, 25).app_limited);
        assert!(!meter.is_app_limited());
    }

    #[test]
    fn losses_are_told_by_ack_and_in_sum() {
        let mut meter = flight(1);
        meter.lose(0, 1000);
        meter.begin_ack();
        meter.lose(0, 500);
        assert_eq!(meter.lost(), (500, 1500));
    }

    #[test]
    fn a_loss_has_its_place_in_the_order_of_sending() {
        let mut meter = flight(3);
        meter.lose(1, 1000);
        assert_eq!(meter.tally(), Tally { delivered: 0, lost: 1000, lost_to: 2000 });
        // Its copy is the fourth that was sent. What was sent before it and is found lost later moves nothing.
        meter.sent_again(1, at(5), 1000, 0);
        meter.lose(1, 1000);
        meter.lose(2, 1000);
        assert_eq!(meter.tally(), Tally { delivered: 0, lost: 3000, lost_to: 4000 });
        meter.sent_again(2, at(6), 1000, 0);
        meter.lose_all(2000);
        assert_eq!(meter.tally(), Tally { delivered: 0, lost: 5000, lost_to: 5000 });
    }

    #[test]
    fn the_loss_that_is_too_much_for_what_was_in_flight_is_told_once() {
        // Two of 102 segments are more than 5/256.
        let mut meter = flight(200);
        meter.lose(100, 1000);
        assert_eq!(meter.take_excess(), None);
        meter.lose(101, 1000);
        meter.lose(102, 1000);
        let excess = Excess { len: 1000, in_flight: 102_000, lost: 2000, app_limited: false };
        assert_eq!((meter.take_excess(), meter.take_excess()), (Some(excess), None));
    }
}
