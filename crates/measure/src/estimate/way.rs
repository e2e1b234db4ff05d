//! One way of a path, from bursts.
//!
//! Datagrams that were sent one behind the other arrive spaced by the narrowest link. Two that follow each other and both
//! arrived say how fast that is, whatever was lost before, between others or after. What they wait grows with the queue
//! before that link; where it is full, what comes is lost, and the longest wait is the queue.

use super::{bytes_in, four_digits, rate_of};
use crate::datagrams::Burst;
use farpath_traffic::datagram::Arrival;
use farpath_units::{Bytes, Duration, Rate};

/// Parts of a burst whose rates are compared with the whole.
const PARTS: usize = 5;
/// Pairs of arrivals that say something of a rate.
const LEAST_PAIRS: usize = 4;
/// Of the second half of a burst, more than this is lost to a full queue, beside what is lost anyway.
const OVERFLOW: f64 = 0.1;
/// A burst that arrived in this share of the time it was sent in, or more of it, was not slowed by the path.
const AS_SENT: f64 = 0.9;

/// One way of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// Of the narrowest link, in bits of IP packets; `None` where too little arrived.
    pub rate: Option<Rate>,
    /// The lowest and the highest that parts of the burst say.
    pub between: Option<[Rate; 2]>,
    /// The host sends no faster than this: the path may be faster.
    pub rate_at_least: bool,
    /// What the queue before that link holds.
    pub queue: Queue,
    /// Echoes that were lost that way, and of how many.
    pub lost: (u32, u32),
    /// Datagrams of the burst that counts: sent, and arrived.
    pub burst: (u32, u32),
    /// IP packets of it.
    pub packet: Bytes,
    /// Datagrams that were lost in the host where they arrived: losses in a burst are then not the path's alone.
    pub dropped_there: u32,
}

/// What a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// It was filled until it lost: that much, a packet more or less.
    Holds(Bytes),
    /// It lost nothing with that much in it.
    AtLeast(Bytes),
}

impl Way {
    /// From bursts, each longer than the one before it, and the echoes that were lost that way.
    pub fn estimated(bursts: &[Burst], lost: u32, of: u32) -> Way {
        let nothing = Burst {
            sent: 0,
            within: Duration::ZERO,
            arrivals: Vec::new(),
            packet: Bytes::ZERO,
            dropped_there: 0,
        };
        // The longest that says enough.
        let counts = bursts.iter().rev().find(|burst| pairs(&burst.arrivals).count() >= LEAST_PAIRS);
        let burst = counts.or(bursts.last()).unwrap_or(&nothing);
        let gaps: Vec<Duration> = pairs(&burst.arrivals).collect();
        let rate_over = |gaps: &[Duration]| {
            let sum = gaps.iter().copied().sum();
            rate_of(burst.packet.0.saturating_mul(gaps.len() as u64), sum)
        };
        let rate = (gaps.len() >= LEAST_PAIRS).then(|| rate_over(&gaps)).flatten();
        let parts: Vec<Rate> = gaps.chunks(gaps.len().div_ceil(PARTS).max(1)).filter_map(rate_over).collect();
        let between = parts.iter().min().zip(parts.iter().max()).map(|(low, high)| [*low, *high]);
        let all = (burst.arrivals.len() as u32, burst.sent);
        let as_sent = burst.within.as_secs_f64() >= AS_SENT * span(&burst.arrivals).as_secs_f64();
        let waited = rate.map_or(Bytes::ZERO, |rate| bytes_in(rate, longest_wait(&burst.arrivals)));
        Way {
            rate,
            between,
            // What the queue loses it loses because more is sent than goes through.
            rate_at_least: as_sent && !overflows(burst, lost, of),
            queue: if overflows(burst, lost, of) {
                // The longest wait began with a packet already being sent: on average half of one.
                Queue::Holds(Bytes(four_digits(waited.0 + burst.packet.0 / 2)))
            } else {
                Queue::AtLeast(waited)
            },
            lost: (lost, of),
            burst: (all.1, all.0),
            packet: burst.packet,
            dropped_there: burst.dropped_there,
        }
    }
}

/// Between the first arrival and the last.
pub fn span(arrivals: &[Arrival]) -> Duration {
    match (arrivals.first(), arrivals.last()) {
        (Some(first), Some(last)) => last.arrived_at.saturating_since(first.arrived_at),
        _ => Duration::ZERO,
    }
}

/// Whether a burst has filled the queue: more of its second half is lost than the path loses of anything. Of few datagrams
/// nothing can be said.
pub fn overflows(burst: &Burst, lost: u32, of: u32) -> bool {
    let half = burst.sent / 2;
    let second = burst.sent - half;
    let arrived = burst.arrivals.iter().filter(|one| one.number >= half).count() as u32;
    let missing = f64::from(second.saturating_sub(arrived));
    let expected = if of == 0 { 0.0 } else { f64::from(lost) / f64::from(of) } * f64::from(second);
    // Three standard deviations of what chance alone does, and one packet.
    missing > OVERFLOW * f64::from(second) + expected + 3.0 * expected.sqrt() + 1.0
}

/// Times between arrivals of datagrams that were sent one after the other.
fn pairs(arrivals: &[Arrival]) -> impl Iterator<Item = Duration> {
    arrivals
        .windows(2)
        .filter(|pair| pair[1].number == pair[0].number + 1)
        .map(|pair| pair[1].arrived_at.saturating_since(pair[0].arrived_at))
}

/// How much longer than the one that waited least the others were under way, at the most. The clocks of both ends need not
/// agree for it.
fn longest_wait(arrivals: &[Arrival]) -> Duration {
    let under_way =
        |one: &Arrival| i128::from(one.arrived_at.as_nanos()) - i128::from(one.sent_at.as_nanos());
    let (least, most) = (
        arrivals.iter().map(under_way).min().unwrap_or(0),
        arrivals.iter().map(under_way).max().unwrap_or(0),
    );
    Duration::from_nanos(u64::try_from(most - least).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_units::Instant;

    const PACKET: u64 = 1500;

    /// A burst sent at 1 Gbit/s into a link with a drop-tail queue, whose other end's clock is `ahead`; of what comes
    /// through, every `lose`th is lost.
    fn through(count: u32, bit_per_s: u64, queue: u64, ahead: u64, lose: u32) -> Burst {
        let sending = |rate: u64| PACKET * 8 * 1_000_000_000 / rate;
        let (mut free_at, mut arrivals) = (0, Vec::new());
        for number in 0..count {
            let sent_at = u64::from(number) * sending(1_000_000_000);
            let waiting = free_at.max(sent_at) - sent_at;
            if waiting * bit_per_s / 8_000_000_000 + PACKET > queue + PACKET {
                continue;
            }
            free_at = free_at.max(sent_at) + sending(bit_per_s);
            if lose > 0 && number % lose == 7 {
                continue;
            }
            let time = Instant::from_nanos;
            arrivals.push(Arrival {
                number,
                sent_at: time(sent_at),
                arrived_at: time(free_at + 20_000_000 + ahead),
            });
        }
        let within = Duration::from_nanos(u64::from(count) * sending(1_000_000_000));
        Burst { sent: count, within, arrivals, packet: Bytes(PACKET), dropped_there: 0 }
    }

    fn is_near(value: u64, expected: u64, tolerance: u64) -> bool {
        value.abs_diff(expected) <= tolerance
    }

    #[test]
    fn a_full_queue_and_its_link_are_found_whatever_the_clocks_say_and_the_path_loses() {
        for (ahead, lose, lost) in [(0, 0, 0), (1 << 50, 0, 0), (5, 100, 10)] {
            let burst = through(256, 10_000_000, 50_000, ahead, lose);
            assert!(overflows(&burst, lost, 1000));
            let way = Way::estimated(&[burst], lost, 1000);
            assert!(is_near(way.rate.expect("a rate").bit_per_s(), 10_000_000, 10_000), "{way:?}");
            let Queue::Holds(bytes) = way.queue else { panic!("{way:?}") };
            assert!(is_near(bytes.0, 50_000, PACKET), "{way:?}");
            assert!(!way.rate_at_least);
        }
    }

    #[test]
    fn a_queue_that_was_not_filled_holds_more_than_was_in_it() {
        let burst = through(32, 10_000_000, 500_000, 0, 0);
        assert!(!overflows(&burst, 0, 1000));
        let way = Way::estimated(&[burst], 0, 1000);
        let Queue::AtLeast(bytes) = way.queue else { panic!("{way:?}") };
        assert!(bytes.0 > 40_000 && bytes.0 < 500_000, "{way:?}");
    }

    #[test]
    fn a_path_as_fast_as_the_host_is_at_least_that_fast() {
        let burst = through(1000, 1_000_000_000, 1_000_000, 0, 0);
        let way = Way::estimated(&[burst], 0, 1000);
        assert!(
            way.rate_at_least && is_near(way.rate.expect("a rate").bit_per_s(), 1_000_000_000, 1_000_000)
        );
    }

    #[test]
    fn losses_by_chance_are_no_full_queue_and_nothing_says_nothing() {
        assert!(!overflows(&through(64, 1_000_000_000, 1_000_000, 0, 20), 50, 1000));
        let way = Way::estimated(&[], 0, 0);
        assert_eq!((way.rate, way.queue), (None, Queue::AtLeast(Bytes::ZERO)));
        let way = Way::estimated(&[through(2, 10_000_000, 50_000, 0, 0)], 0, 0);
        assert_eq!(way.rate, None);
    }
}
