//! Messages of a constant-rate stream: how long each is, when it is due, and how it is played.

use crate::{Bytes, Duration, Rate};

/// IPv4 and UDP headers (RFC 791, RFC 768).
pub const DATAGRAM_HEADERS: Bytes = Bytes(28);

/// What sets the pace of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The time between two messages; zero has all of them due at once.
    Every(Duration),
    /// Bits of messages per second. What is no whole number of nanoseconds between two messages is never added up.
    At(Rate),
}

/// Messages of one size at even distances in time.
///
/// The first is due when the stream begins. Message `n` takes the bytes from `n * size` on of a byte stream without
/// marks between them, as TCP's is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages {
    /// Bytes of each; never zero.
    pub size: Bytes,
    /// How fast they come.
    pub pace: Pace,
    /// How many.
    pub count: u64,
}

impl Messages {
    /// Bytes of all.
    pub fn total(&self) -> Bytes {
        Bytes(self.size.0.saturating_mul(self.count))
    }

    /// When message `number` (from 0) is due, after the first one.
    pub fn due_after(&self, number: u64) -> Duration {
        match self.pace {
            Pace::Every(interval) => Duration::from_nanos(interval.as_nanos().saturating_mul(number)),
            Pace::At(rate) => rate.time_to_send(Bytes(self.size.0.saturating_mul(number))),
        }
    }

    /// How many are due when so much time has passed since the first one was.
    pub fn due_by(&self, elapsed: Duration) -> u64 {
        let ns = u128::from(elapsed.as_nanos());
        let whole = match self.pace {
            Pace::Every(interval) if interval.is_zero() => return self.count,
            Pace::Every(interval) => ns / u128::from(interval.as_nanos()),
            // The inverse of `time_to_send`, which rounds up.
            Pace::At(rate) => {
                ns * u128::from(rate.bit_per_s()) / (self.size.bits().max(1) * u128::from(NS_PER_S))
            }
        };
        u64::try_from(whole).unwrap_or(u64::MAX).saturating_add(1).min(self.count)
    }

    /// Bits of messages per second; infinite where all are due at once.
    pub fn bit_per_s(&self) -> f64 {
        match self.pace {
            Pace::At(rate) => rate.bit_per_s() as f64,
            Pace::Every(interval) => self.size.0 as f64 * 8.0 / interval.as_secs_f64(),
        }
    }

    /// Bits of IPv4 packets per second, where each message is a datagram; infinite where all are due at once.
    pub fn datagrams_bit_per_s(&self) -> f64 {
        self.bit_per_s() * (self.size + DATAGRAM_HEADERS).0 as f64 / self.size.0 as f64
    }

    /// From the first message to where a further one would be due.
    pub fn duration(&self) -> Duration {
        self.due_after(self.count)
    }
}

const NS_PER_S: u64 = 1_000_000_000;

/// How the receiver plays a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Playout {
    /// The first message waits for so long before it is played; each further one is played when it is due after that.
    pub buffer: Duration,
    /// What is done about one that is not there by then.
    pub late: Late,
}

/// What a player does about a message that is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// It waits, and plays everything from then on so much later.
    Stall,
    /// It leaves it out.
    Discard,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(bit_per_s: u64, size: u64) -> Messages {
        let rate = Rate::from_bit_per_s(bit_per_s).expect("not zero");
        Messages { size: Bytes(size), pace: Pace::At(rate), count: 1_000_000 }
    }

    #[test]
    fn a_message_is_due_when_the_rate_says_and_not_before() {
        // 8 kB at 512 Mbit/s are 125 us; 1000 B at 3 Mbit/s are 2666.6 us.
        for (messages, tenth) in [(at(512_000_000, 8000), 1_250_000), (at(3_000_000, 1000), 26_666_667)] {
            assert_eq!(messages.due_after(10), Duration::from_nanos(tenth));
            assert_eq!(messages.due_by(Duration::ZERO), 1);
            for number in [1, 2, 3, 10, 999_999] {
                let due = messages.due_after(number);
                assert_eq!(messages.due_by(due), number + 1, "{number}");
                assert_eq!(messages.due_by(due - Duration::from_nanos(1)), number, "{number}");
            }
            assert_eq!(messages.due_by(Duration::from_secs(1_000_000)), messages.count);
        }
    }

    #[test]
    fn an_interval_gives_the_rate_and_none_gives_all_at_once() {
        let every = |interval| Messages { size: Bytes(8000), pace: Pace::Every(interval), count: 480_000 };
        let paced = every(Duration::from_micros(125));
        assert_eq!(paced.bit_per_s(), 512e6);
        assert_eq!(paced.duration(), Duration::from_secs(60));
        assert_eq!(paced.total(), Bytes(3_840_000_000));
        assert_eq!(paced.due_by(Duration::from_micros(1249)), 10);
        assert_eq!(every(Duration::ZERO).due_by(Duration::ZERO), 480_000);
    }

    #[test]
    fn nothing_overflows_far_away() {
        let slow = at(1, u64::MAX / 4);
        assert_eq!(slow.due_after(u64::MAX), Duration::from_nanos(u64::MAX));
        assert_eq!(at(u64::MAX, 1).due_by(Duration::from_nanos(u64::MAX)), 1_000_000);
    }
}
