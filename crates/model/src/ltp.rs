//! A block of red data over the Licklider Transmission Protocol.
//!
//! Source: RFC 5326, sections 4.1 and 6.11 to 6.14; the means are derived here. All segments of a block leave at the rate
//! of the link, the last as a checkpoint; its report names what is missing, and that leaves as the next round. A checkpoint whose
//! report does not come leaves again when its timer has run out. There is no window and no slow start: what TCP loses to these over
//! the same path is the difference of the two.

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use farpath_units::{Bytes, Duration, Probability, Rate};

const SOURCE: &str = "RFC 5326 (red data of one block), means derived here";

/// Up to so many missing segments each number of them is followed; of more, their mean.
const FOLLOWED: usize = 512;

/// A block, and the path that it goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Bytes of the block.
    pub size: Bytes,
    /// Payload of a segment.
    pub segment: Bytes,
    /// Headers of a segment, those below LTP included.
    pub overhead: Bytes,
    /// Of the link, headers included.
    pub rate: Rate,
    /// Round-trip time, without what it takes to send.
    pub rtt: Duration,
    /// Of data segments.
    pub loss_rate: Probability,
    /// Of report segments.
    pub report_loss_rate: Probability,
    /// By how much a checkpoint's timer is longer than the round trip.
    pub margin: Duration,
}

/// What it takes, in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delivery {
    /// From the first bit sent until the receiver has the whole block, s; infinite where everything is lost.
    pub time: f64,
    /// Times that what is missing was sent; a checkpoint that leaves again by itself does not count.
    pub rounds: f64,
    /// Bytes sent, headers included.
    pub sent: f64,
}

impl Block {
    /// What it takes.
    ///
    /// Domain: independent losses; one block at a time; sessions that are not cancelled, however often a checkpoint is sent
    /// again; reports take no time of their own to send. A whole segment stands for the last one of the block.
    pub fn delivery(&self) -> Result<Estimate<Delivery>, InputError> {
        above_zero("the segment size", self.segment.0)?;
        let segments = self.size.0.div_ceil(self.segment.0).max(1);
        let lost = self.loss_rate.fraction();
        if lost >= 1.0 {
            let never = Delivery { time: f64::INFINITY, rounds: f64::INFINITY, sent: f64::INFINITY };
            return Ok(Estimate::new(never, SOURCE));
        }
        let mut few = Few::new(self);
        // Of many missing segments as many are missing again as the mean says, less the checkpoint.
        let (mut missing, mut above) = (segments as f64, Delivery::NOTHING);
        while missing > FOLLOWED as f64 {
            above = above + self.sending(missing);
            missing = (missing - 1.0) * lost;
            if missing >= 1.0 {
                above = above + self.exchange(true);
            }
        }
        let rest = if missing < 1.0 && above.rounds > 0.0 { self.exchange(false) } else { few.from(missing) };
        Ok(Estimate::new(above + rest, SOURCE))
    }

    /// So many segments leave.
    fn sending(&self, segments: f64) -> Delivery {
        let sent = segments * (self.segment.0 as f64 + self.overhead.0 as f64);
        Delivery { time: sent * 8.0 / self.rate.bit_per_s() as f64, rounds: 1.0, sent }
    }

    /// From when a checkpoint has left until its report is heard; where nothing else is missing, until it arrives.
    fn exchange(&self, again: bool) -> Delivery {
        let arrives = 1.0 - self.loss_rate.fraction();
        let rtt = self.rtt.as_secs_f64();
        let (succeeds, last) = if again {
            (arrives * (1.0 - self.report_loss_rate.fraction()), rtt)
        } else {
            (arrives, rtt / 2.0)
        };
        let fails = 1.0 / succeeds - 1.0;
        let once = self.sending(1.0);
        let waits = if fails > 0.0 { fails * (rtt + self.margin.as_secs_f64() + once.time) } else { 0.0 };
        Delivery { time: last + waits, rounds: 0.0, sent: fails * once.sent }
    }
}

impl Delivery {
    const NOTHING: Delivery = Delivery { time: 0.0, rounds: 0.0, sent: 0.0 };

    fn times(self, factor: f64) -> Delivery {
        if factor == 0.0 {
            return Delivery::NOTHING;
        }
        Delivery { time: self.time * factor, rounds: self.rounds * factor, sent: self.sent * factor }
    }
}

impl core::ops::Add for Delivery {
    type Output = Delivery;
    fn add(self, other: Delivery) -> Delivery {
        Delivery {
            time: self.time + other.time,
            rounds: self.rounds + other.rounds,
            sent: self.sent + other.sent,
        }
    }
}

/// What it takes from a number of missing segments on, for each number.
struct Few<'a> {
    block: &'a Block,
    /// Of 1, 2, ... segments.
    known: Vec<Delivery>,
}

impl Few<'_> {
    fn new(block: &Block) -> Few<'_> {
        Few { block, known: Vec::new() }
    }

    /// From so many on; between two whole numbers in proportion.
    fn from(&mut self, missing: f64) -> Delivery {
        let below = libm::floor(missing.max(1.0));
        let part = missing.max(1.0) - below;
        let of = |known: &[Delivery], segments: f64| known[segments as usize - 1];
        while self.known.len() < below as usize + usize::from(part > 0.0) {
            self.follow();
        }
        let lower = of(&self.known, below).times(1.0 - part);
        if part > 0.0 { lower + of(&self.known, below + 1.0).times(part) } else { lower }
    }

    /// One more: all are sent, and of those that are no checkpoint a binomial number is missing. By the time a report is
    /// heard the checkpoint has arrived.
    fn follow(&mut self) {
        let others = self.known.len();
        let lost = self.block.loss_rate.fraction();
        // Logarithms, for with much loss the chance that hardly any is missing is no number above zero.
        let mut log_chance = others as f64 * libm::log(1.0 - lost);
        let none = self.block.exchange(false).times(libm::exp(log_chance));
        let mut sum = self.block.sending(others as f64 + 1.0) + none;
        for (index, rest) in self.known.iter().enumerate() {
            log_chance += libm::log((others - index) as f64 / (index + 1) as f64 * lost / (1.0 - lost));
            sum = sum + (self.block.exchange(true) + *rest).times(libm::exp(log_chance));
        }
        self.known.push(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(segments: u64, loss: f64, report_loss: f64) -> Block {
        Block {
            size: Bytes(1400 * segments),
            segment: Bytes(1400),
            overhead: Bytes(40),
            rate: Rate::from_bit_per_s(1_000_000).expect("above zero"),
            rtt: Duration::from_secs(20),
            loss_rate: Probability::new(loss).expect("a probability"),
            report_loss_rate: Probability::new(report_loss).expect("a probability"),
            margin: Duration::from_secs(2),
        }
    }

    fn delivery(block: &Block) -> Delivery {
        block.delivery().expect("in range").value
    }

    /// The protocol, segment by segment: when the receiver has the block.
    fn played(block: &Block, draw: &mut impl FnMut() -> f64) -> f64 {
        let segments = block.size.0 / block.segment.0;
        let send = (block.segment.0 + block.overhead.0) as f64 * 8.0 / block.rate.bit_per_s() as f64;
        let (rtt, margin) = (block.rtt.as_secs_f64(), block.margin.as_secs_f64());
        let mut missing: Vec<u64> = (0..segments).collect();
        let (mut now, mut complete) = (0.0, 0.0);
        loop {
            let checkpoint = *missing.last().expect("something is missing");
            let sent = missing.len();
            missing.retain(|segment| *segment == checkpoint || draw() < block.loss_rate.fraction());
            now += send * sent as f64;
            if sent > missing.len() {
                complete = now + rtt / 2.0;
            }
            // The checkpoint, until its report is heard.
            loop {
                let arrives = draw() >= block.loss_rate.fraction();
                if arrives && missing.contains(&checkpoint) {
                    missing.retain(|segment| *segment != checkpoint);
                    complete = now + rtt / 2.0;
                }
                if missing.is_empty() {
                    return complete;
                }
                if arrives && draw() >= block.report_loss_rate.fraction() {
                    now += rtt;
                    break;
                }
                now += rtt + margin + send;
            }
        }
    }

    #[test]
    fn without_loss_a_block_takes_its_sending_and_one_way() {
        let found = delivery(&block(1000, 0.0, 0.0));
        assert_eq!((found.time, found.rounds, found.sent), (11.52 + 10.0, 1.0, 1_440_000.0));
        // Reports that are lost hold up nobody who misses nothing.
        assert_eq!(delivery(&block(1000, 0.0, 0.5)).time, found.time);
    }

    #[test]
    fn the_mean_is_that_of_blocks_played_segment_by_segment() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        // Segments, loss of data and of reports, blocks. Their mean is known within 0.5 %, of 95 %.
        for (segments, loss, report_loss, blocks) in [
            (1000, 0.01, 0.01, 3000),
            (3000, 0.3, 0.1, 3000),
            (1000, 0.1, 0.1, 3000),
            (200, 0.3, 0.2, 3000),
            (5, 0.1, 0.0, 20_000),
            (1, 0.5, 0.5, 20_000),
            (2000, 0.9, 0.2, 1000),
        ] {
            let block = block(segments, loss, report_loss);
            let mean = (0..blocks).map(|_| played(&block, &mut draw)).sum::<f64>() / f64::from(blocks);
            let off = (delivery(&block).time / mean - 1.0) * 100.0;
            assert!(off.abs() < 1.5, "{segments} segments, {loss}: {off:+.2} % of {mean:.2} s");
        }
    }

    #[test]
    fn headers_beside_the_longest_segment_are_counted() {
        let longest = Block { segment: Bytes(u64::MAX), ..block(1, 0.0, 0.0) };
        assert_eq!(delivery(&longest).sent, u64::MAX as f64);
    }

    #[test]
    fn where_nothing_arrives_it_takes_for_ever() {
        assert_eq!(delivery(&block(10, 1.0, 0.0)).time, f64::INFINITY);
        assert_eq!(delivery(&block(10, 0.1, 1.0)).time, f64::INFINITY);
    }
}
