//! A path as the closed forms see it: hops, and a loss rate each way.

use core::slice;
use farpath_elements::{ElementSpec, Line, base_delay, routers};
use farpath_model::radius::LossyWay;
use farpath_model::{Hop, Path};
use farpath_path::{Direction, PacketView};
use farpath_tcp::{Config, HEADERS, TIMESTAMPS};
use farpath_units::{Bytes, Duration, Probability, Rate};

/// What of a path enters the formulas, for data that goes one way over it.
#[derive(Debug, Clone)]
pub struct PathView {
    /// The hops, `forward` in the data direction.
    pub path: Path,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Loss rate of full data packets.
    pub data_loss: Probability,
    /// Loss rate of pure ACKs.
    pub ack_loss: Probability,
    /// Loss rate of packets without data in the data direction.
    pub bare_loss: Probability,
    /// A SYN and its answer, and what else takes both ways without data, is lost.
    pub handshake_loss: Probability,
    /// Round trip of packets without data on an idle path.
    pub handshake_rtt: Duration,
    /// Of that, the way of the data.
    pub handshake_owd: Duration,
    /// All losses are evenly spaced.
    pub evenly_spaced: bool,
    /// What the formulas leave out of this path.
    pub caveats: Vec<String>,
    /// What waits before the slowest link in the data direction, at most; `None` where nothing limits it.
    pub queue: Option<Bytes>,
    /// The same in the other direction.
    pub ack_queue: Option<Bytes>,
    /// What waits there when it begins to mark what is ECN-capable; `None` where it does not.
    mark: Option<Bytes>,
}

impl PathView {
    /// The path as it is for these two ends. `data` is the way that the data go.
    pub fn new(elements: &[ElementSpec], data: Direction, sender: &Config, receiver: &Config) -> PathView {
        let timestamps = sender.send.timestamps && receiver.send.timestamps;
        let options = if timestamps { TIMESTAMPS } else { Bytes::ZERO };
        let mss = sender.mss.min(receiver.mss).saturating_sub(options).max(Bytes(1));
        let headers = HEADERS + options;
        let path = Path { forward: hops(elements, data), reverse: hops(elements, data.opposite()), headers };
        // Where the routers are as many as the TTL, nothing gets through.
        let dies = |way, end: &Config| f64::from(u8::from(routers(elements, way) >= end.send.ttl.into()));
        let (far, near) = (dies(data, sender), dies(data.opposite(), receiver));
        let data_loss = either(loss(elements, data, mss + headers, true), far);
        let ack_loss = either(loss(elements, data.opposite(), headers, false), near);
        let bare_loss = either(loss(elements, data, headers, false), far);
        let handshake_owd = base_delay(elements, data, headers);
        PathView {
            path,
            mss,
            data_loss: probability(data_loss),
            ack_loss: probability(ack_loss),
            bare_loss: probability(bare_loss),
            handshake_loss: probability(either(bare_loss, ack_loss)),
            handshake_rtt: handshake_owd + base_delay(elements, data.opposite(), headers),
            handshake_owd,
            evenly_spaced: elements.iter().all(|element| {
                element.spec().is_evenly_spaced()
                    || Direction::BOTH
                        .iter()
                        .all(|&way| loss(slice::from_ref(element), way, mss + headers, true) == 0.0)
            }),
            caveats: elements.iter().filter_map(|element| left_out(element, data)).collect(),
            queue: queue(elements, data, mss + headers),
            ack_queue: queue(elements, data.opposite(), headers),
            mark: mark(elements, data, mss + headers),
        }
    }

    /// The way as handshake and single segments see it, `forward` that of the data.
    pub fn lossy_way(&self) -> LossyWay {
        LossyWay {
            forward_delay: self.handshake_owd.as_secs_f64(),
            reverse_delay: (self.handshake_rtt - self.handshake_owd).as_secs_f64(),
            forward_loss: self.bare_loss,
            reverse_loss: self.ack_loss,
            data_loss: self.data_loss,
        }
    }

    /// Spacing that the slowest link puts between segments, or between the ACKs for them.
    pub fn spacing(&self, ack_every: u64) -> Duration {
        let slowest = |hops: &[Hop], packet| {
            hops.iter().map(|hop| hop.rate.time_to_send(hop.frame(packet))).max().unwrap_or(Duration::ZERO)
        };
        let data = slowest(&self.path.forward, self.mss + self.path.headers);
        let acks = slowest(&self.path.reverse, self.path.headers);
        data.max(acks / ack_every.max(1))
    }

    /// The window that the path holds, queue included, in segments; `None` where the queue is endless.
    pub fn capacity(&self, round: Duration) -> Option<f64> {
        let in_flight = round.as_secs_f64() / self.spacing(u64::MAX).as_secs_f64().max(1e-9);
        self.queue_segments().map(|queue| in_flight + queue)
    }

    /// Full segments that the queue before the slowest link holds; `None` where it has no limit.
    pub fn queue_segments(&self) -> Option<f64> {
        self.queue.map(|queue| self.in_segments(queue))
    }

    /// Full segments that wait there when it begins to mark; `None` where it does not.
    pub fn mark_segments(&self) -> Option<f64> {
        self.mark.map(|mark| self.in_segments(mark))
    }

    fn in_segments(&self, waiting: Bytes) -> f64 {
        waiting.0 as f64 / (self.mss + self.path.headers).0 as f64
    }
}

fn probability(fraction: f64) -> Probability {
    Probability::new(fraction).unwrap_or(Probability::ZERO)
}

/// The links, with all propagation and fixed waits on the first: where along a FIFO path they lie changes nothing.
fn hops(elements: &[ElementSpec], direction: Direction) -> Vec<Hop> {
    let mut propagation = Duration::ZERO;
    let mut hops = Vec::new();
    for element in elements {
        let (delay, line) = element.spec().as_hop(direction, HEADERS);
        propagation += delay;
        hops.extend(line.map(|line| Hop {
            rate: line.rate,
            propagation: Duration::ZERO,
            overhead: line.overhead,
            min_payload: line.min_packet,
        }));
    }
    if direction == Direction::Reverse {
        hops.reverse();
    }
    if hops.is_empty() {
        let rate = Rate::from_bit_per_s(u64::MAX).expect("not zero");
        hops.push(Hop { rate, propagation: Duration::ZERO, overhead: Bytes::ZERO, min_payload: Bytes::ZERO });
    }
    hops[0].propagation = propagation;
    hops
}

/// Loss rate of packets of `size` over all elements of one direction.
pub fn loss(elements: &[ElementSpec], direction: Direction, size: Bytes, carries_data: bool) -> f64 {
    let packet = PacketView { size, carries_data };
    elements.iter().map(|element| element.spec().loss_rate(direction, packet).fraction()).fold(0.0, either)
}

/// Probability that one or the other happens. `1 - (1-a)(1-b)` without the cancellation: a BER of 1e-17 counts.
fn either(a: f64, b: f64) -> f64 {
    a + b - a * b
}

/// The slowest line, which is the bottleneck.
fn slowest(elements: &[ElementSpec], direction: Direction) -> Option<Line> {
    elements.iter().filter_map(|element| element.spec().line(direction)).min_by_key(|line| line.rate)
}

/// The queue before the slowest link.
fn queue(elements: &[ElementSpec], direction: Direction, packet: Bytes) -> Option<Bytes> {
    slowest(elements, direction)?.queue.bytes(packet)
}

/// Bytes that wait before the slowest link when it begins to mark; `None` where it does not.
fn mark(elements: &[ElementSpec], direction: Direction, packet: Bytes) -> Option<Bytes> {
    let line = slowest(elements, direction)?;
    line.mark.bytes(line.rate, packet)
}

fn left_out(element: &ElementSpec, data: Direction) -> Option<String> {
    Some(format!("{}: {}", element.name, element.spec().left_out(data)?))
}
