//! What the numbers of an explanation are made of: the path and the windows as the closed forms see them.

use farpath_experiment::{Opener, Scenario, base_rtt};
use farpath_model::window_limit::DelayedAckCycle;
use farpath_path::Direction;
use farpath_predict::{PathView, effective_window, loss};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration};

/// One flow of a scenario on an idle path.
pub(crate) struct PathSummary<'a> {
    pub scenario: &'a Scenario,
    pub view: PathView,
    /// The way that the data go.
    pub data: Direction,
    /// From sending a full segment to its ACK: propagation and serialization.
    pub rtt: Duration,
    /// The slowest link in the data direction.
    pub bottleneck: Option<String>,
    /// Payload that fills the path: what the slowest link sends in one `rtt`. `None` without a link.
    pub bdp: Option<Bytes>,
    /// The same as IP packets, as a queue counts them.
    pub bdp_packets: Option<Bytes>,
    /// The most that may be unacknowledged.
    pub window: Bytes,
}

impl<'a> PathSummary<'a> {
    pub fn new(scenario: &'a Scenario) -> PathSummary<'a> {
        let (sender, receiver) = (&scenario.sender.config, &scenario.receiver.config);
        let data = scenario.flows[0].direction;
        let view = PathView::new(&scenario.path, data, sender, receiver);
        let rtt = base_rtt(scenario, data);
        let packet = view.mss + view.path.headers;
        let links =
            scenario.path.iter().filter_map(|element| Some((element.spec().line(data)?.rate, &element.name)));
        let bottleneck = links.min_by_key(|(rate, _)| *rate).map(|(_, name)| name.clone());
        // Serialization is rounded up to the nanosecond: at 100 Gbit/s by less than 1 %.
        let spacing = view.spacing(u64::MAX).as_secs_f64();
        let segments = (bottleneck.is_some() && spacing > 0.0).then(|| rtt.as_secs_f64() / spacing);
        PathSummary {
            bdp: segments.map(|segments| Bytes((segments * view.mss.0 as f64) as u64)),
            bdp_packets: segments.map(|segments| Bytes((segments * packet.0 as f64) as u64)),
            window: effective_window(sender, receiver),
            scenario,
            view,
            data,
            rtt,
            bottleneck,
        }
    }

    pub fn sender(&self) -> &'a Config {
        &self.scenario.sender.config
    }

    pub fn receiver(&self) -> &'a Config {
        &self.scenario.receiver.config
    }

    /// The key of the end whose SYN opens the connection, and its parameters.
    pub fn opener(&self) -> (&'static str, &'a Config) {
        match self.scenario.flows[0].opener {
            Opener::Sender => ("sender", self.sender()),
            Opener::Receiver => ("receiver", self.receiver()),
        }
    }

    /// The end that answers with a SYN/ACK.
    pub fn listener(&self) -> (&'static str, &'a Config) {
        match self.scenario.flows[0].opener {
            Opener::Sender => ("receiver", self.receiver()),
            Opener::Receiver => ("sender", self.sender()),
        }
    }

    /// Segments per ACK.
    pub fn ack_every(&self) -> u64 {
        let receive = &self.receiver().receive;
        if receive.ack_delay.is_zero() { 1 } else { receive.ack_every.into() }
    }

    /// How long an ACK may be withheld.
    pub fn ack_delay(&self) -> Duration {
        if self.ack_every() > 1 { self.receiver().receive.ack_delay } else { Duration::ZERO }
    }

    pub fn segment(&self) -> Bytes {
        self.view.mss
    }

    /// Bytes of a flow of the explained group.
    pub fn size(&self) -> Bytes {
        self.scenario.flows[0].size
    }

    /// Segments of a window that fills the path, or of the receive window or the file where that is less.
    pub fn full_segments(&self) -> u64 {
        let full = self.bdp.map_or(self.window, |bdp| bdp.min(self.window)).min(self.size());
        full.0.div_ceil(self.segment().0).max(1)
    }

    /// The limit of the queue before the slowest link, as payload of full segments.
    pub fn queue_payload(&self) -> Option<Bytes> {
        self.view.queue_segments().map(|queue| Bytes((queue * self.segment().0 as f64) as u64))
    }

    /// What path and queue hold: above it, the queue overflows. `None` where the queue has no limit.
    pub fn capacity(&self) -> Option<Bytes> {
        Some(self.bdp? + self.queue_payload()?)
    }

    /// Whether the queue holds less than the path, by a packet at the least.
    pub fn queue_is_short(&self) -> bool {
        let packet = self.segment() + self.view.path.headers;
        self.view.queue.zip(self.bdp_packets).is_some_and(|(queue, bdp)| queue + packet <= bdp)
    }

    /// A window that fills the path, in whole segments: what path and queue hold, and of the queue one BDP at most. Where
    /// the queue has no limit, a quarter more than the path holds; no more than the file.
    pub fn window_needed(&self) -> Bytes {
        let wanted = match (self.bdp, self.queue_payload()) {
            (None, _) => Bytes::MAX,
            (Some(bdp), Some(queue)) => bdp + queue.min(bdp),
            (Some(bdp), None) => bdp + Bytes(bdp.0 / 4),
        };
        let segment = self.segment().0;
        let most = self.size().0.div_ceil(segment).max(4).saturating_mul(segment);
        let whole = (wanted.0.min(most) / segment).max(4) * segment;
        Bytes(whole.min(LARGEST_WINDOW.0 / segment * segment))
    }

    /// Payload per second of a window of so much, with the delayed ACK and the serialization behind it, in bit/s.
    pub fn rate_of_window(&self, window: Bytes) -> Option<f64> {
        let cycle = DelayedAckCycle {
            path: &self.view.path,
            mss: self.segment(),
            rwnd: window,
            ack_every: self.ack_every(),
            delayed_ack_timeout: self.ack_delay(),
        };
        Some(cycle.steady().ok()?.value.throughput.bytes_per_s() * 8.0)
    }

    /// Payload per second over the slowest link, in bit/s.
    pub fn rate_of_link(&self) -> Option<f64> {
        let spacing = self.view.spacing(u64::MAX).as_secs_f64();
        (self.bottleneck.is_some() && spacing > 0.0).then(|| self.segment().bits() as f64 / spacing)
    }

    /// How likely the path loses a packet with so much payload.
    pub fn loss_of(&self, payload: Bytes) -> f64 {
        loss(&self.scenario.path, self.data, payload + self.view.path.headers, true)
    }

    /// The retransmission timeout that the path itself asks for: no ACK that is only withheld comes after it.
    pub fn fitting_rto(&self) -> Duration {
        self.rtt + self.ack_delay() + self.rtt / 8
    }

    /// Whether anything on the path or at the hosts is drawn, so that seeds differ.
    pub fn is_random(&self) -> bool {
        let ends = self.scenario.flows.iter().map(|flow| self.scenario.ends(flow));
        let jitter = ends.map(|(sender, receiver)| sender.host.jitter.max(receiver.host.jitter)).max();
        jitter.is_some_and(|jitter| !jitter.is_zero())
            || self.scenario.path.iter().any(|element| element.spec().is_random())
    }
}

/// RFC 7323 §2.3: 65 535 with the largest shift, 14.
pub(crate) const LARGEST_WINDOW: Bytes = Bytes(65_535 << 14);

/// RFC 9293 §3.1: the largest without scaling.
pub(crate) const UNSCALED_WINDOW: Bytes = Bytes(65_535);

/// Rounded up to two digits: nobody configures 1.3046 s.
pub(crate) fn rounded_up(duration: Duration) -> Duration {
    let mut step = 1_u64;
    while duration.as_nanos() / step >= 100 {
        step *= 10;
    }
    Duration::from_nanos(duration.as_nanos().div_ceil(step).saturating_mul(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_keeps_two_digits() {
        let ms = Duration::from_millis;
        assert_eq!(rounded_up(ms(1305)), ms(1400));
        assert_eq!(rounded_up(ms(1300)), ms(1300));
        assert_eq!(rounded_up(ms(99)), ms(99));
        assert_eq!(rounded_up(Duration::ZERO), Duration::ZERO);
    }
}
