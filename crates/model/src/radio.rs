//! Throughput of a packet radio's poll cycle, one hop.
//!
//! Derived from the exchange that `docs/models/radio.md` describes: a turnaround, a poll, a turnaround, its answer, a turnaround,
//! up to a burst of frames, a turnaround, a link ACK, and a wait drawn from zero to `gap`.

use crate::estimate::above_zero;
use crate::{Estimate, InputError, Throughput};
use farpath_units::{Bytes, Duration, Probability, Rate};

const SOURCE: &str = "the exchange of docs/models/radio.md, summed";

/// What an exchange costs beside its frames, and what its frames cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PollCycle {
    /// Bits on the air.
    pub rate: Rate,
    /// From listening to sending; also the time between the end of what one sends and the beginning of what the other does,
    /// where `tx_to_rx` is not longer.
    pub rx_to_tx: Duration,
    /// From sending to listening.
    pub tx_to_rx: Duration,
    /// Of a poll, and of its answer.
    pub poll: Bytes,
    /// Of each frame, beside its IP packet.
    pub header: Bytes,
    /// Of the answer to a burst.
    pub link_ack: Bytes,
    /// Frames of a full burst.
    pub burst: u64,
    /// Longest wait after an exchange; half of it is the mean.
    pub gap: Duration,
}

impl PollCycle {
    fn hand_over(&self) -> f64 {
        self.rx_to_tx.max(self.tx_to_rx).as_secs_f64()
    }

    fn on_air(&self, size: Bytes) -> f64 {
        size.bits() as f64 / self.rate.bit_per_s() as f64
    }

    /// Seconds from the wish to send until the first bit of the first frame, on a free channel.
    pub fn access(&self) -> f64 {
        self.rx_to_tx.as_secs_f64() + 2.0 * (self.on_air(self.poll) + self.hand_over())
    }

    /// Seconds of a full exchange with frames around `packet` bytes of IP, with the mean wait after it.
    pub fn exchange(&self, packet: Bytes) -> f64 {
        let frames = self.burst as f64 * self.on_air(packet + self.header);
        self.access() + frames + self.hand_over() + self.on_air(self.link_ack) + self.gap.as_secs_f64() / 2.0
    }

    /// Payload per second of one station that always has full bursts for a neighbour that has nothing to send:
    /// saturating UDP. Of a burst counts what arrives in a row; a frame is damaged with the probability `damaged`.
    pub fn saturated(
        &self,
        payload: Bytes,
        headers: Bytes,
        damaged: Probability,
    ) -> Result<Estimate<Throughput>, InputError> {
        above_zero("the payload", payload.0)?;
        above_zero("the burst", self.burst)?;
        let arrives = 1.0 - damaged.fraction();
        let burst = i32::try_from(self.burst).unwrap_or(i32::MAX);
        // p + p^2 + ... + p^burst.
        let in_row = match damaged.fraction() {
            0.0 => self.burst as f64,
            damaged => arrives * (1.0 - arrives.powi(burst)) / damaged,
        };
        let bytes_per_s = in_row * payload.0 as f64 / self.exchange(payload + headers);
        Ok(Estimate::new(Throughput::from_bytes_per_s(bytes_per_s), SOURCE))
    }

    /// Payload per second of a TCP whose window is `segments`, not more than a burst, and acknowledged as soon as the last of
    /// them has arrived: data and ACKs never meet on the air. `around` is what data and ACK wait for beside the radio: both
    /// stations' processing, the links behind them for the last segment and its ACK.
    pub fn window_of_one_burst(
        &self,
        payload: Bytes,
        headers: Bytes,
        segments: u64,
        around: Duration,
    ) -> Result<Estimate<Throughput>, InputError> {
        above_zero("the payload", payload.0)?;
        above_zero("the window", segments)?;
        let data = segments as f64 * self.on_air(payload + headers + self.header);
        let ack = self.on_air(headers + self.header);
        let round = 2.0 * self.access() + data + ack + around.as_secs_f64();
        let bytes_per_s = segments as f64 * payload.0 as f64 / round;
        let estimate = Estimate::new(Throughput::from_bytes_per_s(bytes_per_s), SOURCE);
        Ok(estimate.caveat_if(segments > self.burst, || {
            format!(
                "a window of {segments} segments takes more than a burst of {}: data and ACKs meet",
                self.burst
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ricochet() -> PollCycle {
        PollCycle {
            rate: Rate::from_bit_per_s(68_000).expect("not zero"),
            rx_to_tx: Duration::from_micros(13_250),
            tx_to_rx: Duration::from_micros(11_125),
            poll: Bytes(40),
            header: Bytes(16),
            link_ack: Bytes(16),
            burst: 3,
            gap: Duration::from_millis(5),
        }
    }

    // By hand: four turnarounds of 13.25 ms, polls of 4.706 ms, a link ACK of 1.882 ms, 2.5 ms of waiting: 66.79 ms; frames of
    // 1068 B take 125.65 ms each: 443.74 ms for 3072 B.
    #[test]
    fn saturating_datagrams_share_one_exchange_by_three() {
        let cycle = ricochet();
        assert!((cycle.exchange(Bytes(1052)) - 0.443_74).abs() < 1e-5);
        let none = Probability::ZERO;
        let throughput = cycle.saturated(Bytes(1024), Bytes(28), none).expect("in the domain").value;
        assert!((throughput.bit_per_s() - 55_384.0).abs() < 2.0, "{throughput}");
    }

    #[test]
    fn noise_leaves_what_arrives_in_a_row() {
        let half = Probability::new(0.5).expect("a fraction");
        let bit_per_s = |damaged| {
            ricochet().saturated(Bytes(1024), Bytes(28), damaged).expect("in the domain").value.bit_per_s()
        };
        // 1/2 + 1/4 + 1/8 of three.
        assert!((bit_per_s(half) / bit_per_s(Probability::ZERO) - 0.875 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_window_beyond_a_burst_is_outside_of_the_domain() {
        let of = |segments| {
            ricochet()
                .window_of_one_burst(Bytes(1024), Bytes(40), segments, Duration::from_millis(266))
                .expect("computed")
        };
        assert!(of(3).caveats.is_empty() && !of(4).caveats.is_empty());
        // 2 x 49.16 ms of access, two frames of 127.06 ms, an ACK of 6.59 ms, 266 ms around: 625.0 ms for 2048 B.
        assert!((of(2).value.bit_per_s() - 26_213.0).abs() < 5.0, "{}", of(2).value);
    }
}
