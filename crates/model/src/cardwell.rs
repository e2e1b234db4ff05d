//! Latency of a finite transfer: handshake, slow start, first loss, the rest by PFTK, a delayed ACK.
//!
//! Source: N. Cardwell, S. Savage, T. Anderson, "Modeling TCP Latency", INFOCOM 2000.

use crate::estimate::above_zero;
use crate::pftk::{Flow, backoff, timeout_probability};
use crate::{Estimate, InputError};
use farpath_units::{Bytes, Duration, Probability};

const SOURCE: &str = "Cardwell, Savage, Anderson, INFOCOM 2000";

/// A transfer of known size over a lossy path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cardwell {
    /// Application bytes.
    pub size: Bytes,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Round-trip time.
    pub rtt: Duration,
    /// Mean first timeout of a series, `T0`.
    pub t0: Duration,
    /// Initial SYN timeout, `Ts`: 3 s in 2000, 1 s since RFC 6298.
    pub syn_timeout: Duration,
    /// Loss rate of data and of the active opener's SYN.
    pub forward_loss: Probability,
    /// Loss rate of the SYN/ACK. ACK loss after it is not in the model.
    pub reverse_loss: Probability,
    /// Initial window, segments.
    pub initial_window: u64,
    /// Segments per ACK, `b`.
    pub ack_every: u64,
    /// Receive window; `None` for no limit.
    pub rwnd: Option<Bytes>,
    /// Mean wait for the first delayed ACK: 100 ms for a 200 ms timer that runs freely, zero for an initial window of
    /// `ack_every` or more.
    pub delayed_ack: Duration,
}

/// The parts, in the order of the transfer. Each saturates at [`Duration::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// From the SYN until the connection stands.
    pub handshake: Duration,
    /// Slow start until the first loss, the window's limit or the end.
    pub slow_start: Duration,
    /// The first loss's recovery, times its probability.
    pub first_loss: Duration,
    /// What is left, at PFTK's throughput.
    pub congestion_avoidance: Duration,
    /// The delayed ACK.
    pub delayed_ack: Duration,
}

impl Latency {
    /// The sum.
    pub fn total(&self) -> Duration {
        self.handshake + self.slow_start + self.first_loss + self.congestion_avoidance + self.delayed_ack
    }
}

/// The first loss of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstLoss {
    /// That there is one.
    pub probability: f64,
    /// Segments up to it and with it, or all: `(1-(1-p)^d)(1-p)/p + 1`, at most `d`.
    pub segments: f64,
}

/// The first loss among `segments`, Eq. 4-5: where the first slow start ends.
pub fn first_loss(segments: f64, loss: Probability) -> FirstLoss {
    let p = loss.fraction();
    let probability = -libm::expm1(segments * libm::log1p(-p));
    let until = if p == 0.0 { segments } else { (probability * (1.0 - p) / p + 1.0).min(segments) };
    FirstLoss { probability, segments: until }
}

impl Cardwell {
    /// The expected latency and its parts.
    ///
    /// ```text
    /// handshake  RTT + Ts ((1-pr)/(1-2pr) + (1-pf)/(1-2pf) - 2)            pf, pr < 1/2
    /// d_ss       (1-(1-p)^d)(1-p)/p + 1, at most d                          segments before the first loss
    /// W_ss       d_ss (gamma-1)/gamma + w1/gamma
    /// slow start RTT log_gamma(d_ss (gamma-1)/w1 + 1)                       W_ss <= Wmax
    ///            RTT (log_gamma(Wmax/w1) + 1 + (d_ss - (gamma Wmax - w1)/(gamma-1)) / Wmax)   otherwise
    /// first loss (1-(1-p)^d) (Q(W_ss) T0 f(p)/(1-p) + (1-Q) RTT)
    /// the rest   (d - d_ss) / PFTK goodput
    /// ```
    ///
    /// Domain: Reno, loss below 50 %, RTT independent of the window, a rate-free path (no bottleneck but the window).
    /// Known error: rounds are fractions and the last half round trip is counted whole; PFTK's own error for
    /// the rest.
    pub fn latency(&self) -> Result<Estimate<Latency>, InputError> {
        above_zero("the file size", self.size.0)?;
        above_zero("the segment size", self.mss.0)?;
        above_zero("the round-trip time", self.rtt.as_nanos())?;
        above_zero("the timeout", self.t0.as_nanos())?;
        above_zero("the initial window", self.initial_window)?;
        above_zero("segments per ACK", self.ack_every)?;
        if let Some(rwnd) = self.rwnd {
            above_zero("the window", rwnd.0)?;
        }
        let rtt = self.rtt.as_secs_f64();
        let (p, reverse) = (self.forward_loss.fraction(), self.reverse_loss.fraction());
        let d = self.size.0.div_ceil(self.mss.0) as f64;
        let wmax = self.rwnd.map_or(f64::INFINITY, |rwnd| (rwnd.0 / self.mss.0).max(1) as f64);
        let flow = Flow { rtt, t0: self.t0.as_secs_f64(), p, b: self.ack_every as f64, wmax };

        let retries = |p: f64| if p < 0.5 { (1.0 - p) / (1.0 - 2.0 * p) - 1.0 } else { f64::INFINITY };
        let retries = retries(p) + retries(reverse);
        // No retries cost nothing, also of a timeout of zero.
        let handshake = rtt + if retries > 0.0 { retries * self.syn_timeout.as_secs_f64() } else { 0.0 };

        let FirstLoss { probability: some_loss, segments: d_ss } = first_loss(d, self.forward_loss);
        let (w_ss, rounds) = self.slow_start(d_ss, wmax);
        let q = timeout_probability(p, w_ss.min(wmax));
        let first_loss =
            if p == 0.0 { 0.0 } else { some_loss * (q * flow.t0 * backoff(p) / (1.0 - p) + (1.0 - q) * rtt) };
        let left = d - d_ss;
        let rest = if left > 0.0 { left / flow.segments_per_s(true) } else { 0.0 };

        let latency = Latency {
            handshake: Duration::from_secs_f64(handshake),
            slow_start: Duration::from_secs_f64(rounds * rtt),
            first_loss: Duration::from_secs_f64(first_loss),
            congestion_avoidance: Duration::from_secs_f64(rest),
            delayed_ack: self.delayed_ack,
        };
        Ok(Estimate::new(latency, SOURCE)
            .caveat_if(p >= 0.5 || reverse >= 0.5, || {
                "loss of one half or more: the expected handshake is endless".to_owned()
            })
            .caveat_if(left > 0.0 && (wmax < 8.0 || p > 0.07), || {
                "PFTK, which gives the rest of the time, errs by tens of per cent at receive windows below eight segments and at losses above 7 %".to_owned()
            })
            .caveat_if(reverse > 0.02, || {
                "ACK loss is in the handshake only: the transfer itself will be slower".to_owned()
            }))
    }

    /// Window at the end of slow start if nothing limits it, and the rounds until then.
    fn slow_start(&self, d_ss: f64, wmax: f64) -> (f64, f64) {
        let per_ack = self.ack_every as f64;
        let gamma = 1.0 + 1.0 / per_ack;
        let log_gamma = libm::log1p(1.0 / per_ack);
        let w1 = (self.initial_window as f64).min(wmax);
        let w_ss = d_ss / per_ack / gamma + w1 / gamma;
        let rounds = if w_ss > wmax {
            let before = (gamma * wmax - w1) * per_ack;
            // The formula's (d_ss - before) / wmax is negative for a few segments past the limit; rounds are not.
            (libm::log(wmax / w1) / log_gamma + 1.0 + (d_ss - before) / wmax).max(0.0)
        } else {
            libm::log1p(d_ss / per_ack / w1) / log_gamma
        };
        (w_ss, rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(p: f64) -> Probability {
        Probability::new(p).expect("a probability")
    }

    fn cardwell(size: u64, p: f64) -> Cardwell {
        Cardwell {
            size: Bytes(size),
            mss: Bytes(1460),
            rtt: Duration::from_millis(100),
            t0: Duration::from_secs(1),
            syn_timeout: Duration::from_secs(3),
            forward_loss: probability(p),
            reverse_loss: probability(p),
            initial_window: 2,
            ack_every: 2,
            rwnd: None,
            delayed_ack: Duration::ZERO,
        }
    }

    #[test]
    fn no_loss_and_no_window_is_slow_start() {
        // 100 segments: log_1.5(100 x 0.5 / 2 + 1) = 8.036 rounds, and the handshake.
        let latency = cardwell(146_000, 0.0).latency().unwrap().value;
        assert_eq!(latency.handshake, Duration::from_millis(100));
        assert!((latency.slow_start.as_secs_f64() - 0.803_55).abs() < 1e-4, "{latency:?}");
        assert_eq!(latency.first_loss + latency.congestion_avoidance, Duration::ZERO);
    }

    #[test]
    fn no_loss_and_a_window_is_the_window() {
        let limited = Cardwell { rwnd: Some(Bytes(8760)), ..cardwell(14_600_000, 0.0) };
        let total = limited.latency().unwrap().value.total().as_secs_f64();
        assert!((total / (10_000.0 / 6.0 * 0.1) - 1.0).abs() < 0.005, "{total}");
    }

    #[test]
    fn handshake_with_loss_by_hand() {
        // 10 % each way: 0.1 + 3 (2 x 0.9 / 0.8 - 2) = 0.85 s.
        let latency = cardwell(1460, 0.1).latency().unwrap().value;
        assert_eq!(latency.handshake, Duration::from_millis(850));
        let never = cardwell(1460, 0.5).latency().unwrap();
        assert_eq!(never.value.handshake, Duration::MAX);
        assert_eq!(never.value.total(), Duration::MAX);
        assert!(never.caveats[0].contains("endless"));
    }

    #[test]
    fn a_long_file_is_pftk() {
        let long = cardwell(1_460_000_000, 0.01);
        let rest = crate::pftk::Pftk {
            mss: long.mss,
            rtt: long.rtt,
            t0: long.t0,
            loss_event_rate: long.forward_loss,
            ack_every: 2,
            wmax: None,
        };
        let expected = rest.goodput().unwrap().value.time_for(long.size).as_secs_f64();
        let total = long.latency().unwrap().value.total().as_secs_f64();
        assert!((total / expected - 1.0).abs() < 1e-3, "{total} {expected}");
    }

    #[test]
    fn ten_gigabit_at_600_ms() {
        let long = Cardwell {
            rtt: Duration::from_millis(600),
            rwnd: Some(Bytes(750_000_000)),
            initial_window: 10,
            ..cardwell(1_000_000_000_000, 1e-17)
        };
        let total = long.latency().unwrap().value.total().as_secs_f64();
        // 800 s at the full window, 27 rounds of slow start that carry three windows, the handshake.
        assert!((total - 815.0).abs() < 2.0, "{total}");
        let endless = Cardwell { size: Bytes::MAX, ..cardwell(0, 0.4) };
        assert!(endless.latency().unwrap().value.total() > Duration::from_secs(1 << 33));
        let total_loss = cardwell(1_000_000, 1.0).latency().unwrap().value;
        assert_eq!(total_loss.total(), Duration::MAX);
    }
}
