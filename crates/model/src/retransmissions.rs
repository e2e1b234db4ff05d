//! How many packets are dropped, and how many are sent again.
//!
//! Source: the high-BER paper (Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254), Table 7 (`n p`), Eq. 14-15; the
//! geometric series for repeated losses.

use crate::{Estimate, InputError, estimate::above_zero};
use farpath_units::{Duration, Probability};

const SOURCE: &str =
    "Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254, Table 7 and Eq. 14-15; geometric series";

/// Packets, and the loss on the way of the data and of the ACKs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Packets to deliver. A mean: 6849.32 is allowed.
    pub packets: f64,
    /// Loss rate of the data direction.
    pub forward: Probability,
    /// Loss rate of the ACK direction.
    pub reverse: Probability,
    /// Segments per ACK.
    pub ack_every: u64,
}

/// What to expect of [`Loss`]. Infinite at total loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// `n p`: drops if nothing that is sent again is lost again (Table 7).
    pub drops: f64,
    /// `n p / (1 - p)`: drops, and so retransmissions, if every packet is sent until it arrives. A lower bound for
    /// retransmissions: go-back-N and spurious timeouts come on top.
    pub retransmissions: f64,
    /// `n (1 / ((1-p)(1-r)) - 1)`: retransmissions if every lost ACK costs one too, as with one segment in flight.
    /// An upper bound for a sender that repeats nothing else: the ACK of a later segment stands in for a lost one.
    pub retransmissions_with_every_ack: f64,
    /// `r * n / a`: ACKs lost, if none is for a retransmission.
    pub acks_lost: f64,
}

impl Loss {
    /// Expected drops and retransmissions.
    ///
    /// Domain: losses independent and alike for every packet; a sender that repeats what was lost and nothing else.
    /// At 10 % in both directions the paper counts 1092 retransmissions: between the two bounds, 761 and 1606.
    pub fn expected(&self) -> Result<Estimate<Expected>, InputError> {
        above_zero("segments per ACK", self.ack_every)?;
        let packets = self.packets.max(0.0);
        let (p, r) = (self.forward.fraction(), self.reverse.fraction());
        // Zero packets lose nothing, however lossy the path.
        let times = |each: f64| if packets == 0.0 { 0.0 } else { packets * each };
        let expected = Expected {
            drops: times(p),
            retransmissions: times(p / (1.0 - p)),
            retransmissions_with_every_ack: times((p + r - p * r) / ((1.0 - p) * (1.0 - r))),
            acks_lost: times(r / self.ack_every as f64),
        };
        Ok(Estimate::new(expected, SOURCE)
            .caveat_if(p == 1.0 || r == 1.0, || "total loss: the transfer never ends".to_owned())
            .caveat_if(r > 0.0, || {
                "ACK loss: the count lies between the two bounds and depends on the window and the timers"
                    .to_owned()
            }))
    }
}

/// A loss-free transfer whose packet rate is taken for retransmissions as well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketRate {
    /// Packets of the transfer.
    pub packets: f64,
    /// Its duration.
    pub time: Duration,
}

impl PacketRate {
    /// Packets per second, Eq. 14.
    pub fn packets_per_s(&self) -> Result<Estimate<f64>, InputError> {
        above_zero("the transfer time", self.time.as_nanos())?;
        Ok(Estimate::new(self.packets.max(0.0) / self.time.as_secs_f64(), SOURCE))
    }

    /// Extra seconds for `drops` retransmissions at the packet rate, Eq. 15.
    ///
    /// Known error: it leaves out recovery altogether. The paper's 1 % case took 16.62 s more, not 0.60 s.
    pub fn retransmission_time(&self, drops: f64) -> Result<Estimate<Duration>, InputError> {
        let rate = self.packets_per_s()?.value;
        Ok(Estimate::new(Duration::from_secs_f64(drops.max(0.0) / rate), SOURCE)
            .caveat_if(drops > 0.0, || {
                "the window that each loss costs, and any timeout, is left out".to_owned()
            }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(forward: f64, reverse: f64) -> Expected {
        let of = |p| Probability::new(p).expect("a probability");
        let loss =
            Loss { packets: 10_000_000.0 / 1460.0, forward: of(forward), reverse: of(reverse), ack_every: 2 };
        loss.expected().unwrap().value
    }

    #[test]
    fn high_ber_paper_table_7() {
        for (p, drops) in [(0.0001, 0.68), (0.001, 6.85), (0.01, 68.49), (0.1, 684.93)] {
            assert!((loss(p, 0.0).drops - drops).abs() < 0.006);
        }
        assert!((loss(0.1, 0.0).retransmissions - 761.04).abs() < 0.01);
        let both = loss(0.1, 0.1);
        assert!(both.retransmissions < 1092.0 && both.retransmissions_with_every_ack > 1092.0);
        assert!((both.retransmissions_with_every_ack - 1606.6).abs() < 0.1);
        assert!((both.acks_lost - 342.47).abs() < 0.01);
    }

    #[test]
    fn no_reverse_loss_closes_the_bounds() {
        let one_way = loss(0.1, 0.0);
        assert!((one_way.retransmissions - one_way.retransmissions_with_every_ack).abs() < 1e-9);
        assert_eq!(loss(0.0, 0.0).retransmissions, 0.0);
        assert!(loss(1.0, 0.0).retransmissions.is_infinite());
        assert!(loss(1e-17, 0.0).retransmissions > 6e-14);
    }

    #[test]
    fn high_ber_paper_equations_14_and_15() {
        let rate = PacketRate { packets: 6854.0, time: Duration::from_millis(60_240) };
        assert!((rate.packets_per_s().unwrap().value - 113.778).abs() < 5e-4);
        let extra = rate.retransmission_time(68.54).unwrap();
        assert!((extra.value.as_secs_f64() - 0.6024).abs() < 5e-5);
        assert_eq!(extra.caveats.len(), 1);
    }
}
