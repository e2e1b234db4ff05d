//! A line that sends one packet after the other.

use farpath_units::{Bytes, Duration, Instant, Rate};

/// Nanoseconds a byte takes at 1 bit/s.
const BYTE_NS_AT_1_BIT_PER_S: u64 = 8_000_000_000;

/// When what was given to a line will have been sent.
#[derive(Debug)]
pub(crate) struct Transmitter {
    rate: Rate,
    busy_until: Instant,
    /// How much of `busy_until` is rounding, in 1/rate of a nanosecond.
    rounded_up: u64,
}

impl Transmitter {
    pub fn new(rate: Rate) -> Transmitter {
        Transmitter { rate, busy_until: Instant::ZERO, rounded_up: 0 }
    }

    pub fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// Nothing was sent until `now`, from when on it is.
    pub fn rest_until(&mut self, now: Instant) {
        self.busy_until = now;
        self.rounded_up = 0;
    }

    /// From the next packet on it sends at another rate.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.rounded_up = 0;
    }

    /// Moves `busy_until` by the serialization time of `on_wire`.
    ///
    /// Within a busy period it stays the exact time rounded up once, not once per packet: at
    /// 100 Gbit/s an ACK of 78 B takes 6.24 ns, and 7 each would cost 12 % of the rate.
    pub fn serialize(&mut self, on_wire: Bytes) {
        let rate = self.rate.bit_per_s();
        let Some(bit_ns) = on_wire.0.checked_mul(BYTE_NS_AT_1_BIT_PER_S) else {
            self.busy_until += self.rate.time_to_send(on_wire);
            self.rounded_up = 0;
            return;
        };
        if bit_ns <= self.rounded_up {
            self.rounded_up -= bit_ns;
            return;
        }
        let due = bit_ns - self.rounded_up;
        let rest = due % rate;
        self.rounded_up = if rest == 0 { 0 } else { rate - rest };
        self.busy_until += Duration::from_nanos(due.div_ceil(rate));
    }
}
