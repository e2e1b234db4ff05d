//! Reno's throughput with fast retransmits, timeouts and a receive window.
//!
//! Source: J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP Throughput: A Simple Model and its Empirical
//! Validation", SIGCOMM 1998 (journal form: IEEE/ACM Transactions on Networking 8(2), 2000); RFC 5348 section 3.1.

use crate::estimate::above_zero;
use crate::{Estimate, InputError, Throughput};
use farpath_units::{Bytes, Duration, Probability};

const FULL: &str = "Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998, full model";
const GOODPUT: &str = "Padhye, Firoiu, Towsley, Kurose, ToN 8(2), 2000, throughput at the receiver";
const APPROXIMATE: &str = "Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998, approximate model, Eq. 30";
const RFC5348: &str = "RFC 5348 section 3.1";

/// A long Reno flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pftk {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Round-trip time, independent of the window.
    pub rtt: Duration,
    /// The mean first timeout of a series, `T0`: what the timer waits, ticks and minimum included.
    pub t0: Duration,
    /// Loss events per segment sent: losses that follow the first of a window count with it.
    pub loss_event_rate: Probability,
    /// Segments per ACK, `b`: 2 with delayed ACKs.
    pub ack_every: u64,
    /// Receive window, `Wmax`; `None` for no limit.
    pub wmax: Option<Bytes>,
}

/// The inputs as plain numbers: seconds, segments.
pub(crate) struct Flow {
    pub rtt: f64,
    pub t0: f64,
    pub p: f64,
    pub b: f64,
    pub wmax: f64,
}

impl Flow {
    /// Mean window at the end of a loss-free period where no receive window limits it, `E[Wu]`.
    pub fn unlimited_window(&self) -> f64 {
        let third = (2.0 + self.b) / (3.0 * self.b);
        third + libm::sqrt(8.0 * (1.0 - self.p) / (3.0 * self.b * self.p) + third * third)
    }

    /// Segments per second: sent where `received` is false, arrived where it is true.
    ///
    /// Both fractions are multiplied by `1 - p`, so that total loss is a number: `1 / (64 T0)` sent, none arrived.
    pub fn segments_per_s(&self, received: bool) -> f64 {
        let p = self.p;
        if p == 0.0 {
            return self.wmax / self.rtt;
        }
        let unlimited = self.unlimited_window();
        let limited = unlimited >= self.wmax;
        let window = unlimited.min(self.wmax);
        let q = timeout_probability(p, window);
        let rounds = if limited {
            self.b / 8.0 * window + (1.0 - p) / (p * window) + 2.0
        } else {
            self.b / 2.0 * window + 1.0
        };
        let segments = if received {
            (1.0 - p) * ((1.0 - p) / p + window / 2.0 + q)
        } else {
            (1.0 - p) * ((1.0 - p) / p + window) + q
        };
        segments / ((1.0 - p) * self.rtt * rounds + q * self.t0 * backoff(p))
    }
}

/// `f(p)`: mean length of a series of timeouts over `T0`, doubling up to 64, times `1 - p`.
pub(crate) fn backoff(p: f64) -> f64 {
    1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))))
}

/// `Q(w)`: probability that a loss in a window of `w` segments ends in a timeout.
pub(crate) fn timeout_probability(p: f64, window: f64) -> f64 {
    // 1 - (1 - p)^n without the cancellation: p may be 1e-17.
    let lost_of = |n: f64| -libm::expm1(n * libm::log1p(-p));
    if window <= 3.0 || p >= 1.0 {
        return 1.0;
    }
    let three = lost_of(3.0);
    let of_window = lost_of(window);
    if of_window == 0.0 {
        return (3.0 / window).min(1.0);
    }
    (three * (1.0 + (1.0 - three) * lost_of(window - 3.0)) / of_window).min(1.0)
}

impl Pftk {
    fn flow(&self) -> Result<Flow, InputError> {
        above_zero("the segment size", self.mss.0)?;
        above_zero("the round-trip time", self.rtt.as_nanos())?;
        above_zero("the timeout", self.t0.as_nanos())?;
        above_zero("segments per ACK", self.ack_every)?;
        if let Some(wmax) = self.wmax {
            above_zero("the window", wmax.0)?;
        }
        let mss = self.mss.0;
        Ok(Flow {
            rtt: self.rtt.as_secs_f64(),
            t0: self.t0.as_secs_f64(),
            p: self.loss_event_rate.fraction(),
            b: self.ack_every as f64,
            // Only whole segments are sent, or one that is cut to the window.
            wmax: self.wmax.map_or(f64::INFINITY, |wmax| match wmax.0 / mss {
                0 => wmax.0 as f64 / mss as f64,
                whole => whole as f64,
            }),
        })
    }

    fn estimate(&self, flow: &Flow, segments_per_s: f64, source: &'static str) -> Estimate<Throughput> {
        let throughput = Throughput::from_bytes_per_s(segments_per_s * self.mss.0 as f64);
        Estimate::new(throughput, source)
            .caveat_if(flow.p == 0.0 && self.wmax.is_none(), || {
                "no loss and no window: the model sets no limit, something else does".to_owned()
            })
            .caveat_if(flow.p > 0.3, || {
                format!("loss event rate {}: past 30 % the model was not compared with measurements", flow.p)
            })
            .caveat_if(flow.p > 0.07, || {
                "loss above 7 %: timeouts rule, lost retransmissions and lost ACKs (not in the model) add more of them: it is too fast".to_owned()
            })
            .caveat_if(flow.p > 0.0 && flow.wmax < 8.0, || {
                format!("a receive window of {} segments: whether a loss ends in a timeout depends on single segments, and the model, which takes the rest of the round as lost, errs by tens of per cent either way", flow.wmax)
            })
            .caveat_if(self.t0 < self.rtt, || {
                "the timeout is shorter than the round-trip time: it would fire without a loss".to_owned()
            })
    }

    /// Full model: throughput that is *sent*, retransmissions included.
    ///
    /// ```text
    /// E[Wu] = (2+b)/(3b) + sqrt(8(1-p)/(3bp) + ((2+b)/(3b))^2)
    /// Q(w)  = min(1, (1-(1-p)^3) (1+(1-p)^3 (1-(1-p)^(w-3))) / (1-(1-p)^w))
    /// f(p)  = 1 + p + 2p^2 + 4p^3 + 8p^4 + 16p^5 + 32p^6
    /// E[Wu] < Wmax:  ((1-p)/p + E[Wu] + Q/(1-p)) / (RTT (b/2 E[Wu] + 1) + Q T0 f/(1-p))
    /// else:          ((1-p)/p + Wmax + Q/(1-p)) / (RTT (b/8 Wmax + (1-p)/(p Wmax) + 2) + Q T0 f/(1-p))
    /// ```
    ///
    /// Domain: a long flow, Reno, losses correlated within a round and independent between rounds, no ACK loss.
    /// Slow start after a timeout is left out.
    /// Known error of the goodput against a packet simulation (NewReno, 1460 B, 100 ms, minimum RTO 1 s, data
    /// loss only, no receive window, 8 seeds): -1.7, -1.9, -1.3 and +13 % at 0.1, 1, 5 and 10 %. With a window of six
    /// segments, coarse timers and ACK loss at 10 % (the high-BER paper's last case) it is 2.2 times too fast.
    pub fn send_rate(&self) -> Result<Estimate<Throughput>, InputError> {
        let flow = self.flow()?;
        Ok(self.estimate(&flow, flow.segments_per_s(false), FULL))
    }

    /// Full model: throughput that *arrives*. As [`Pftk::send_rate`], with the first line's `E[W]` halved and
    /// one segment per series of timeouts. The one to divide a file size by.
    pub fn goodput(&self) -> Result<Estimate<Throughput>, InputError> {
        let flow = self.flow()?;
        Ok(self.estimate(&flow, flow.segments_per_s(true), GOODPUT))
    }

    /// Approximate model: `min(Wmax/RTT, 1 / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)))`.
    pub fn approximate(&self) -> Result<Estimate<Throughput>, InputError> {
        let flow = self.flow()?;
        let seconds = flow.square_root_term()
            + flow.t0 * (3.0 * libm::sqrt(3.0 * flow.b * flow.p / 8.0)).min(1.0) * flow.tail_term();
        Ok(self.estimate(&flow, (1.0 / seconds).min(flow.wmax / flow.rtt), APPROXIMATE))
    }

    /// RFC 5348's throughput equation: as [`Pftk::approximate`] without the two minima.
    ///
    /// The RFC recommends `b = 1` and `T0 = max(4 RTT, 1 s)`; `wmax` is not used.
    pub fn rfc5348(&self) -> Result<Estimate<Throughput>, InputError> {
        let flow = Flow { wmax: f64::INFINITY, ..self.flow()? };
        let seconds = flow.square_root_term()
            + flow.t0 * 3.0 * libm::sqrt(3.0 * flow.b * flow.p / 8.0) * flow.tail_term();
        Ok(Pftk { wmax: None, ..*self }.estimate(&flow, 1.0 / seconds, RFC5348))
    }
}

impl Flow {
    fn square_root_term(&self) -> f64 {
        self.rtt * libm::sqrt(2.0 * self.b * self.p / 3.0)
    }

    fn tail_term(&self) -> f64 {
        self.p * (1.0 + 32.0 * self.p * self.p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mathis::Mathis;

    fn pftk(p: f64) -> Pftk {
        Pftk {
            mss: Bytes(1460),
            rtt: Duration::from_millis(100),
            t0: Duration::from_secs(1),
            loss_event_rate: Probability::new(p).expect("a probability"),
            ack_every: 2,
            wmax: None,
        }
    }

    fn sent(flow: Pftk) -> f64 {
        flow.send_rate().unwrap().value.bytes_per_s()
    }

    #[test]
    fn two_per_cent_by_hand() {
        // b 2, p 0.02: E[W] = 0.6667 + sqrt(65.3333 + 0.4444) = 8.7770; Q = 0.3836; f = 1.02083.
        let flow = Flow { rtt: 0.1, t0: 1.0, p: 0.02, b: 2.0, wmax: f64::INFINITY };
        assert!((flow.unlimited_window() - 8.7770).abs() < 1e-3);
        let keep = 0.98_f64;
        let three = 1.0 - keep * keep * keep;
        let w = flow.unlimited_window();
        let q = three * (1.0 + (1.0 - three) * (1.0 - libm::pow(keep, w - 3.0))) / (1.0 - libm::pow(keep, w));
        assert!((timeout_probability(0.02, w) - q).abs() < 1e-12);
        let by_hand = (49.0 + w + q / 0.98) / (0.1 * (w + 1.0) + q * backoff(0.02) / 0.98);
        assert!((sent(pftk(0.02)) / 1460.0 / by_hand - 1.0).abs() < 1e-12);
        // Less arrives than is sent.
        let arrives = pftk(0.02).goodput().unwrap().value.bytes_per_s();
        assert!(arrives < sent(pftk(0.02)) && arrives > 0.8 * sent(pftk(0.02)));
    }

    #[test]
    fn approximate_form_by_hand() {
        let by_hand = 1.0 / (0.1 * libm::sqrt(0.04 / 1.5) + 3.0 * libm::sqrt(0.015) * 0.02 * 1.0128);
        let got = pftk(0.02).approximate().unwrap().value.bytes_per_s() / 1460.0;
        assert!((got / by_hand - 1.0).abs() < 1e-12, "{got} {by_hand}");
        let rfc = pftk(0.02).rfc5348().unwrap().value.bytes_per_s() / 1460.0;
        assert!((rfc / by_hand - 1.0).abs() < 1e-12);
        // Past p = 8 / 27 b the minimum of 1 holds and the RFC's form is slower.
        assert!(pftk(0.3).rfc5348().unwrap().value < pftk(0.3).approximate().unwrap().value);
    }

    #[test]
    fn rare_loss_is_the_square_root_law() {
        let flow = pftk(1e-9);
        let mathis = Mathis {
            mss: flow.mss,
            rtt: flow.rtt,
            loss_rate: flow.loss_event_rate,
            ack_every: 2,
            rwnd: None,
        };
        let law = mathis.throughput().unwrap().value.bytes_per_s();
        assert!((sent(flow) / law - 1.0).abs() < 1e-3);
        assert!((flow.approximate().unwrap().value.bytes_per_s() / law - 1.0).abs() < 1e-3);
    }

    #[test]
    fn rare_loss_with_a_window_is_the_window() {
        let flow = Pftk { wmax: Some(Bytes(8760)), ..pftk(1e-9) };
        assert!((sent(flow) / 87_600.0 - 1.0).abs() < 1e-6);
        assert_eq!(sent(Pftk { wmax: Some(Bytes(8760)), ..pftk(0.0) }), 87_600.0);
        assert!(sent(pftk(0.0)).is_infinite());
        assert_eq!(sent(Pftk { wmax: Some(Bytes(730)), ..pftk(0.0) }), 7300.0);
    }

    #[test]
    fn total_loss_sends_one_segment_per_64_timeouts() {
        assert!((sent(pftk(1.0)) / 1460.0 * 64.0 - 1.0).abs() < 1e-12);
        assert_eq!(pftk(1.0).goodput().unwrap().value.bytes_per_s(), 0.0);
    }

    #[test]
    fn ten_gigabit_at_600_ms_and_1e_17() {
        let long = |p, wmax| Pftk {
            rtt: Duration::from_millis(600),
            t0: Duration::from_millis(800),
            wmax,
            ..pftk(p)
        };
        let full = sent(long(1e-17, Some(Bytes(750_000_000))));
        assert!((full / 1.25e9 - 1.0).abs() < 1e-5, "{full}");
        let free = sent(long(1e-17, None));
        assert!((free / (1460.0 / 0.6 * libm::sqrt(0.75e17)) - 1.0).abs() < 1e-6, "{free}");
    }

    /// Mean of 8 seeds of an independent packet simulation: NewReno, minimum RTO 1 s, data loss only.
    #[test]
    fn goodput_agrees_with_a_packet_simulation_up_to_5_per_cent() {
        for (p, simulated, tolerance) in
            [(0.001, 387_293.0, 0.02), (0.01, 97_823.0, 0.02), (0.05, 24_378.0, 0.02), (0.1, 9_952.0, 0.14)]
        {
            let goodput = pftk(p).goodput().unwrap().value.bytes_per_s();
            assert!((goodput / simulated - 1.0).abs() < tolerance, "{p}: {goodput}");
        }
        assert!(pftk(0.05).goodput().unwrap().caveats.is_empty());
        assert_eq!(pftk(0.1).goodput().unwrap().caveats.len(), 1);
    }

    #[test]
    fn the_ten_per_cent_case_of_the_high_ber_paper_is_out_of_domain() {
        let flow = Pftk {
            rtt: Duration::from_micros(43_826),
            t0: Duration::from_millis(1250),
            wmax: Some(Bytes(8760)),
            ..pftk(0.1)
        };
        let estimate = flow.goodput().unwrap();
        let time = estimate.value.time_for(Bytes(10_000_000)).as_secs_f64();
        // Published: 1943.6 s. Nothing is fitted to it.
        assert!(time > 600.0 && time < 1000.0, "{time}");
        assert_eq!(estimate.caveats.len(), 2, "{:?}", estimate.caveats);
    }
}
