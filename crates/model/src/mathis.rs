//! The inverse square-root law: congestion avoidance with isolated losses and no timeouts.
//!
//! Source: M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
//! Algorithm", ACM Computer Communication Review 27(3), July 1997.

use crate::estimate::above_zero;
use crate::{Estimate, InputError, Throughput};
use farpath_units::{Bytes, Duration, Probability};

const SOURCE: &str = "Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997, periodic loss";

/// A flow in congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mathis {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Round-trip time.
    pub rtt: Duration,
    /// Fraction of segments lost, at most one per window.
    pub loss_rate: Probability,
    /// Segments per ACK: 1, or 2 with delayed ACKs.
    pub ack_every: u64,
    /// Receive window, against which the result is checked (the law itself knows none); `None` for no limit.
    pub rwnd: Option<Bytes>,
}

/// `C = sqrt(3 / (2 b))`: 1.22 with an ACK per segment, 0.87 with one for every second.
pub fn constant(ack_every: u64) -> Result<f64, InputError> {
    above_zero("segments per ACK", ack_every)?;
    Ok(libm::sqrt(3.0 / (2.0 * ack_every as f64)))
}

impl Mathis {
    /// `mss / rtt * C / sqrt(p)`, with `C` of [`constant`].
    ///
    /// Domain: no timeouts (mean window of four segments or more), no receive window in the way, evenly spaced
    /// losses, SACK or one loss per window. Known error: random instead of periodic loss moves `C` from 1.22 to
    /// 1.31 (and from 0.87 to 0.93 with delayed ACKs) in the paper; above about 5 % loss timeouts rule and it is
    /// too fast by a factor. No loss gives an infinite throughput.
    pub fn throughput(&self) -> Result<Estimate<Throughput>, InputError> {
        above_zero("the segment size", self.mss.0)?;
        above_zero("the round-trip time", self.rtt.as_nanos())?;
        let p = self.loss_rate.fraction();
        // The mean window, in segments.
        let window = constant(self.ack_every)? / libm::sqrt(p);
        let mss = self.mss.0 as f64;
        let limit = self.rwnd.map_or(f64::INFINITY, |rwnd| rwnd.0 as f64 / mss);
        let throughput = Throughput::from_bytes_per_s(window * mss / self.rtt.as_secs_f64());
        Ok(Estimate::new(throughput, SOURCE)
            .caveat_if(p == 0.0, || "no loss: the law sets no limit, something else does".to_owned())
            .caveat_if(window < 4.0, || {
                format!("the mean window is {window:.1} segments: below four, three duplicate ACKs seldom come, and the law has no timeouts")
            })
            .caveat_if(window > limit, || {
                format!("the receive window of {limit:.1} segments is below the mean window of {window:.1}: it is the limit, not the loss")
            }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mathis(p: f64) -> Mathis {
        Mathis {
            mss: Bytes(1460),
            rtt: Duration::from_millis(100),
            loss_rate: Probability::new(p).expect("a probability"),
            ack_every: 1,
            rwnd: None,
        }
    }

    #[test]
    fn constants_of_the_paper() {
        assert!((constant(1).unwrap() - 1.2247).abs() < 1e-4);
        assert!((constant(2).unwrap() - 0.8660).abs() < 1e-4);
        assert!(constant(0).is_err());
    }

    #[test]
    fn one_per_cent_at_100_ms() {
        let estimate = mathis(0.01).throughput().unwrap();
        assert!((estimate.value.bytes_per_s() - 14_600.0 * 12.2474).abs() < 1.0);
        assert!(estimate.caveats.is_empty());
        let per_four = mathis(0.04).throughput().unwrap().value.bytes_per_s();
        assert!((estimate.value.bytes_per_s() / per_four - 2.0).abs() < 1e-12);
    }

    #[test]
    fn out_of_domain_says_so() {
        assert!(mathis(0.2).throughput().unwrap().caveats[0].contains("timeouts"));
        let limited = Mathis { rwnd: Some(Bytes(8760)), ..mathis(0.01) };
        assert!(limited.throughput().unwrap().caveats[0].contains("receive window"));
        let free = mathis(0.0).throughput().unwrap();
        assert!(free.value.bytes_per_s().is_infinite() && free.caveats.len() == 1);
    }

    #[test]
    fn ten_gigabit_at_600_ms_needs_a_loss_rate_of_6e_12() {
        // A window of 513 699 segments: p = 1.5 / 513 699^2 = 5.7e-12.
        let flow = Mathis { rtt: Duration::from_millis(600), ..mathis(5.684e-12) };
        let bit_per_s = flow.throughput().unwrap().value.bit_per_s();
        assert!((bit_per_s / 1e10 - 1.0).abs() < 1e-3, "{bit_per_s}");
        assert!(mathis(1e-17).throughput().unwrap().value.bytes_per_s().is_finite());
    }
}
