//! A constant-rate stream over TCP: what one isolated loss costs it, and which buffers it takes.
//!
//! Source: Kershaw, Hughes-Jones 2007 (constant bit-rate data over TCP), Eq. 2.1-2.3, for Reno; for CUBIC the same area
//! under RFC 9438's window. What happens: the window falls to `beta` of what the rate takes, and grows back. Until it is
//! back less is sent than is made, and the stream falls behind; where the window may grow on, it catches up afterwards.

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use farpath_units::{Bytes, Duration, Probability, Rate};

const SOURCE: &str = "Kershaw, Hughes-Jones 2007, Eq. 2.1-2.3; RFC 5681; RFC 9438";

/// How the window falls at a loss and grows back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Window {
    /// Half of it, and one segment per round trip; where each of its steps takes so many segments (an ACK for two, and a
    /// step per ACK), one in so many round trips. The paper's "factor of two for delayed ACKs".
    Reno {
        /// Segments per step: 1 where what is acknowledged counts, 2 where delayed ACKs do.
        ack_factor: f64,
    },
    /// RFC 9438: 0.7 of it, then the larger of the cubic curve and its Reno-friendly estimate.
    Cubic {
        /// Growth of the estimate per round trip once it has reached the window before the loss: 1 by RFC 9438 §4.3, 9/17
        /// where it stays as it was (RFC 8312).
        alpha_beyond: f64,
    },
}

/// RFC 9438 §4.1 and §4.6, and §4.3's 3 (1 - beta) / (1 + beta).
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 0.7;
const FRIENDLY_ALPHA: f64 = 9.0 / 17.0;

/// One loss in a stream whose window was what its rate takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IsolatedLoss {
    /// Bits of messages per second, headers not counted.
    pub rate: Rate,
    /// Round trip, queues and serialization included.
    pub rtt: Duration,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// How the window falls and grows.
    pub window: Window,
    /// The most that may be under way: the receiver's window, the send buffer, what the path holds.
    pub limit: Bytes,
}

/// What it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Eq. 2.1: bytes under way at the stream's rate.
    pub bdp: f64,
    /// Eq. 2.2: until the window is again what the rate takes, s.
    pub recovery: f64,
    /// Eq. 2.3: bytes by which the stream is behind by then.
    pub delayed: f64,
    /// The same as time: how late a message is, beyond the way that all take, s. A play-out buffer of as much (and a round
    /// trip, for the retransmission itself) hides the loss.
    pub lateness: f64,
    /// From the loss until nothing waits any more, s; infinite where the window cannot exceed what the rate takes.
    pub timely_again: f64,
    /// The most that is sent per second meanwhile, in bit/s.
    pub peak_rate: f64,
    /// Send buffer that holds up no application and lets the window grow as far as it does: what is under way and what
    /// waits, together, at the most, bytes.
    pub send_buffer: f64,
}

impl IsolatedLoss {
    /// What it costs.
    ///
    /// Domain: one segment lost of a window of four or more, repaired by fast retransmit; no other loss until the stream is
    /// timely again; no queue that grows with the window. The round trip of the repair itself is left out.
    pub fn cost(&self) -> Result<Estimate<Cost>, InputError> {
        above_zero("the segment size", self.mss.0)?;
        above_zero("the round-trip time", self.rtt.as_nanos())?;
        let segments = self.segments();
        let recovery = self.recovery();
        let behind = Walk::to(self, recovery);
        let beyond = self.limit_segments() > segments * (1.0 + BARELY);
        let end = if beyond { Walk::until_timely(self, behind) } else { None };
        let bytes = |segments: f64| segments * self.mss.0 as f64;
        let per_s = |segments: f64| bytes(segments) * 8.0 / self.rtt.as_secs_f64();
        let cost = Cost {
            bdp: bytes(segments),
            recovery,
            delayed: bytes(behind.behind),
            lateness: bytes(behind.behind) * 8.0 / self.rate.bit_per_s() as f64,
            timely_again: end.map_or(f64::INFINITY, |end| end.time),
            peak_rate: per_s(end.map_or(segments, |end| end.widest)),
            send_buffer: bytes(end.unwrap_or(behind).most_held),
        };
        Ok(Estimate::new(cost, SOURCE)
            .caveat_if(segments < 4.0, || {
                let fills = if segments < 1.0 { "less than one segment".to_owned() } else { format!("{segments:.1} segments") };
                format!(
                    "the rate fills {fills} of {} B a round trip: three duplicate ACKs may not come, and the loss costs a timeout",
                    self.mss.0
                )
            })
            .caveat_if(self.limit_segments() < segments * (1.0 - BARELY), || {
                "the window never is what the rate takes: the stream falls behind without any loss".to_owned()
            }))
    }

    /// How far the stream is behind so long after the loss, in bytes.
    pub fn behind_after(&self, time: Duration) -> f64 {
        Walk::to(self, time.as_secs_f64()).behind.max(0.0) * self.mss.0 as f64
    }

    /// The window that the rate takes, in segments.
    fn segments(&self) -> f64 {
        self.rate.bit_per_s() as f64 * self.rtt.as_secs_f64() / (8.0 * self.mss.0 as f64)
    }

    fn limit_segments(&self) -> f64 {
        self.limit.0 as f64 / self.mss.0 as f64
    }

    /// Eq. 2.2, in s: half a window of round trips, and so much more by the ACK factor; CUBIC's is the earlier of its curve
    /// and its estimate.
    fn recovery(&self) -> f64 {
        let (segments, rtt) = (self.segments(), self.rtt.as_secs_f64());
        match self.window {
            Window::Reno { ack_factor } => ack_factor * segments / 2.0 * rtt,
            Window::Cubic { .. } => {
                let friendly = (1.0 - CUBIC_BETA) * segments / FRIENDLY_ALPHA * rtt;
                cubic_k(segments).min(friendly)
            }
        }
    }

    /// The window so long after the loss, in segments.
    fn window_after(&self, time: f64) -> f64 {
        let (segments, rounds) = (self.segments(), time / self.rtt.as_secs_f64());
        let window = match self.window {
            Window::Reno { ack_factor } => segments / 2.0 + rounds / ack_factor,
            Window::Cubic { alpha_beyond } => {
                let from_k = time - cubic_k(segments);
                let curve = CUBIC_C * from_k * from_k * from_k + segments;
                let until = (1.0 - CUBIC_BETA) * segments / FRIENDLY_ALPHA;
                let friendly = if rounds < until {
                    CUBIC_BETA * segments + FRIENDLY_ALPHA * rounds
                } else {
                    segments + alpha_beyond * (rounds - until)
                };
                curve.max(friendly)
            }
        };
        window.min(self.limit_segments())
    }
}

/// RFC 9438 §4.2.
fn cubic_k(segments: f64) -> f64 {
    libm::cbrt(segments * (1.0 - CUBIC_BETA) / CUBIC_C)
}

/// A limit that exceeds the window by less than this does not count: catching up would take hundreds of recoveries.
const BARELY: f64 = 0.005;

/// Steps of the integration until the window is back; the area under a straight line is exact with any number.
const STEPS: u32 = 4096;

/// Recoveries after which a stream that is not timely is taken never to be.
const PATIENCE: u32 = 1000;

/// Where a stream has got to.
#[derive(Debug, Clone, Copy, Default)]
struct Walk {
    /// Since the loss, s.
    time: f64,
    /// Segments by which it is behind.
    behind: f64,
    /// Largest window, in segments.
    widest: f64,
    /// Most that waited and was under way together, in segments.
    most_held: f64,
}

impl Walk {
    /// So long after the loss; catching up ends where nothing waits.
    fn to(loss: &IsolatedLoss, time: f64) -> Walk {
        let mut walk = Walk::default();
        let step = loss.recovery().min(time) / f64::from(STEPS);
        while walk.time < time - step / 2.0 && step > 0.0 {
            walk.step(loss, step);
            if walk.behind <= 0.0 && walk.time > loss.recovery() {
                break;
            }
        }
        walk
    }

    /// On until nothing waits; `None` where that takes longer than anybody waits for.
    fn until_timely(loss: &IsolatedLoss, mut walk: Walk) -> Option<Walk> {
        let step = loss.recovery() / f64::from(STEPS);
        for _ in 0..STEPS * PATIENCE {
            if walk.behind <= 0.0 {
                return Some(walk);
            }
            walk.step(loss, step);
        }
        None
    }

    fn step(&mut self, loss: &IsolatedLoss, step: f64) {
        let rtt = loss.rtt.as_secs_f64();
        let (from, to) = (loss.window_after(self.time), loss.window_after(self.time + step));
        self.behind += (loss.segments() - (from + to) / 2.0) * step / rtt;
        self.time += step;
        self.widest = self.widest.max(to);
        self.most_held = self.most_held.max(self.behind + to);
    }
}

/// What telescopes whose data come too late cost an interferometer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LateTelescopes {
    /// All of them.
    pub telescopes: u64,
    /// Those of which data come late.
    pub late: u64,
    /// The share of such a telescope's messages that the correlator no longer waits for: `discarded_messages` of `messages`.
    pub share: Probability,
}

/// What is left of a correlation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// The share of all baselines' data that is lost.
    pub lost: f64,
    /// Sensitivity, against none lost.
    pub sensitivity: f64,
}

impl LateTelescopes {
    /// What is left.
    ///
    /// A correlator multiplies the data of each pair of telescopes, and both have to be there: of a pair with one late
    /// telescope the share is lost, of a pair with two what either misses, their losses being independent. Noise averages
    /// out as the square root of what is correlated.
    pub fn correlation(&self) -> Result<Estimate<Correlation>, InputError> {
        const SOURCE: &str = "pairs of telescopes, derived here";
        if self.telescopes < 2 {
            return Err(InputError::Zero { quantity: "the number of pairs of telescopes" });
        }
        if self.late > self.telescopes {
            return Err(InputError::Above {
                quantity: "the number of late telescopes",
                limit: self.telescopes,
            });
        }
        let (all, late, share) = (self.telescopes as f64, self.late as f64, self.share.fraction());
        let pairs = |of: f64| of * (of - 1.0) / 2.0;
        let lost =
            (late * (all - late) * share + pairs(late) * (1.0 - (1.0 - share) * (1.0 - share))) / pairs(all);
        Ok(Estimate::new(Correlation { lost, sensitivity: libm::sqrt((1.0 - lost).max(0.0)) }, SOURCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RENO_2: Window = Window::Reno { ack_factor: 2.0 };

    fn loss(mbit_per_s: u64, rtt_ms: u64, window: Window) -> IsolatedLoss {
        IsolatedLoss {
            rate: Rate::from_bit_per_s(mbit_per_s * 1_000_000).expect("not zero"),
            rtt: Duration::from_millis(rtt_ms),
            mss: Bytes(1448),
            window,
            limit: Bytes::MAX,
        }
    }

    fn cost(loss: IsolatedLoss) -> Cost {
        loss.cost().expect("sound inputs").value
    }

    #[track_caller]
    fn near(found: f64, expected: f64, relative: f64) {
        assert!((found / expected - 1.0).abs() < relative, "{found}, not {expected}");
    }

    #[test]
    fn the_equations_of_the_paper() {
        let once = cost(loss(512, 15, Window::Reno { ack_factor: 1.0 }));
        near(once.bdp, 960_000.0, 1e-9);
        // CBR RTT^2 / (2 MSS) and CBR^2 RTT^2 / (8 MSS), in bits.
        near(once.recovery, 512e6 * 0.015 * 0.015 / (2.0 * 11_584.0), 1e-9);
        near(once.delayed, (512e6 * 0.015_f64).powi(2) / (8.0 * 11_584.0) / 8.0, 1e-6);
        near(once.lateness, once.recovery / 4.0, 1e-6);
        // With delayed ACKs: about 10 s and 160 MB, as printed.
        let twice = cost(loss(512, 15, RENO_2));
        near(twice.recovery, 9.94, 2e-3);
        near(twice.delayed, 159.1e6, 1e-3);
        // And 27 ms: 8.06 s of lateness and 515.5 MB.
        let far = cost(loss(512, 27, RENO_2));
        near(far.lateness, 8.06, 1e-3);
        near(far.delayed, 515.5e6, 1e-3);
    }

    #[test]
    fn reno_catches_up_in_as_long_again_at_half_as_much_more() {
        let free = cost(loss(512, 15, RENO_2));
        near(free.timely_again, 2.0 * free.recovery, 1e-3);
        near(free.peak_rate, 1.5 * 512e6, 1e-3);
        // The backlog, and the window that has begun to grow beyond.
        assert!(
            free.send_buffer > free.delayed + free.bdp && free.send_buffer < free.delayed + 1.5 * free.bdp
        );
        // Held to a tenth more than the rate takes, it catches up at that: 0.1 of the rate, after it got there.
        let held = cost(IsolatedLoss { limit: Bytes(1_056_000), ..loss(512, 15, RENO_2) });
        let (grown, missing) = (0.2 * held.recovery, 0.25 - 0.05 * 0.2);
        near(held.timely_again, held.recovery + grown + missing * held.recovery / 0.1, 2e-3);
        near(held.peak_rate, 1.1 * 512e6, 1e-3);
    }

    #[test]
    fn with_a_window_of_what_the_rate_takes_it_stays_late() {
        let held = cost(IsolatedLoss { limit: Bytes(960_000), ..loss(512, 15, RENO_2) });
        assert_eq!(held.timely_again, f64::INFINITY);
        near(held.peak_rate, 512e6, 1e-9);
        near(held.lateness, 2.486, 1e-3);
        let narrow = IsolatedLoss { limit: Bytes(480_000), ..loss(512, 15, RENO_2) };
        assert_eq!(narrow.cost().expect("sound").caveats.len(), 1);
    }

    #[test]
    fn cubic_is_the_earlier_of_curve_and_estimate() {
        // 663 segments at 15 ms: the estimate, 0.3 W / (9/17) round trips. At 150 ms the curve: K = cbrt(0.3 W / 0.4).
        let window = Window::Cubic { alpha_beyond: 1.0 };
        let near_by = cost(loss(512, 15, window));
        near(near_by.recovery, 0.3 * 662.98 * 17.0 / 9.0 * 0.015, 1e-4);
        // The window is the larger of the two: less is missing than under either of them alone.
        let curve = 0.3 / 4.0 * libm::cbrt(0.75 * 662.98) * 64e6;
        assert!(near_by.delayed < curve && near_by.delayed < 0.15 * near_by.recovery * 64e6);
        near(near_by.delayed, curve, 0.02);
        let far = cost(loss(512, 150, window));
        near(far.recovery, libm::cbrt(0.75 * 6629.8), 1e-4);
        // Under the curve a quarter of the fall is missing on average, not half.
        near(far.delayed, 0.3 / 4.0 * far.recovery * 64e6, 1e-3);
        assert!(far.timely_again < 2.5 * far.recovery);
    }

    #[test]
    fn how_far_it_is_behind_at_a_moment() {
        let reno = loss(512, 15, RENO_2);
        let whole = cost(reno);
        let at = |share: f64| reno.behind_after(Duration::from_secs_f64(share * whole.recovery));
        assert_eq!(at(0.0), 0.0);
        // Of the triangle three quarters lie in its first half.
        near(at(0.5), 0.75 * whole.delayed, 1e-3);
        near(at(1.0), whole.delayed, 1e-3);
        near(at(1.5), 0.75 * whole.delayed, 1e-3);
        assert!(at(2.1) < 1e-3 * whole.delayed);
    }

    #[test]
    fn transatlantic_and_beyond() {
        // "Upwards of 5 Gbyte" and "tens of minutes": 84 ms.
        let atlantic = cost(loss(512, 84, RENO_2));
        near(atlantic.delayed, 5.0e9, 0.01);
        near(atlantic.timely_again / 60.0, 10.4, 0.01);
        // 10 Gbit/s over a satellite: nothing overflows, and a loss costs days.
        let satellite = cost(loss(10_000, 600, RENO_2));
        near(satellite.lateness, satellite.recovery / 4.0, 1e-3);
        assert!(satellite.recovery > 3e5);
        assert!(IsolatedLoss { mss: Bytes::ZERO, ..loss(1, 1, RENO_2) }.cost().is_err());
    }

    #[test]
    fn a_rate_that_fills_few_segments_is_told_in_segments_or_as_less_than_one() {
        let caveat = |mbit_per_s, rtt_ms| {
            let estimate = loss(mbit_per_s, rtt_ms, RENO_2).cost().expect("in its domain");
            estimate.caveats.first().cloned().unwrap_or_default()
        };
        let said = caveat(1, 30);
        assert!(said.starts_with("the rate fills 2.6 segments of 1448 B a round trip: three"), "{said}");
        let said = caveat(1, 1);
        assert!(
            said.starts_with("the rate fills less than one segment of 1448 B a round trip: three"),
            "{said}"
        );
    }
}
