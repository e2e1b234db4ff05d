//! A serial link behind a drop-tail queue, by arithmetic.

use crate::aqm::{self, Aqm, Managed, Parts, Sender};
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Fault, Inflow};
use crate::keys::{Keys, ReadValue, Source};
use crate::line::{Line, faster, framed};
use crate::queue::QueueSetting;
use crate::transmitter::Transmitter;
use crate::waiting::Waiting;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, MarkThreshold, QueueLimit, Trace, TraceLink};
use farpath_path::{Direction, DropCause, Fate, LinkCounters, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant, Rate};

/// A serial link: serialization at its rate behind a drop-tail queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Bits on the wire, framing included.
    pub rate: PerDirection<Rate>,
    /// Drop-tail.
    pub queue: PerDirection<QueueLimit>,
    /// ECN.
    pub mark: PerDirection<MarkThreshold>,
    /// What is dropped and marked before the queue is full.
    pub aqm: PerDirection<Aqm>,
    /// Framing per packet, on top of the IP packet. Ethernet: 38 B (preamble 8, header 14, FCS 4, gap 12).
    pub overhead: Bytes,
    /// Shortest IP packet that is sent without padding. Ethernet: 46 B.
    pub min_packet: Bytes,
}

impl Element for Link {
    fn describe(&self) -> String {
        let Link { rate, queue, mark, aqm, overhead, .. } = self;
        let framing =
            if overhead.0 == 0 { String::new() } else { format!(", {overhead} of framing per packet") };
        let marking = match *mark == PerDirection::both(MarkThreshold::Never) {
            true => String::new(),
            false => format!(", ECN marks {}", each_way(mark)),
        };
        let managed = aqm::words(aqm);
        format!("link of {}, queue {}{managed}{marking}{framing}", each_way(rate), each_way(queue))
    }

    fn is_random(&self) -> bool {
        Direction::BOTH.into_iter().any(|way| self.aqm[way].is_random())
    }

    fn left_out(&self, data: Direction) -> Option<String> {
        self.aqm[data].left_out()
    }

    fn validate(&self) -> Result<(), Fault> {
        let both =
            |way: &Direction| self.aqm[*way] != Aqm::DropTail && self.mark[*way] != MarkThreshold::Never;
        match Direction::BOTH.into_iter().find(both) {
            Some(way) => {
                let aqm = self.aqm[way].name();
                let reason = format!(
                    "`aqm = \"{aqm}\"` decides what is marked: expected `mark` without it, or its `ecn` and `ce_threshold`"
                );
                Err(Fault { key: "mark".to_owned(), reason })
            }
            None => aqm::validate(&self.aqm, &self.queue),
        }
    }

    fn delays(&self, direction: Direction, size: Bytes) -> Vec<DelayPart> {
        vec![
            DelayPart::fixed(DelayKind::Serialization, self.lone_delay(direction, size)),
            DelayPart { kind: DelayKind::Queue, time: DelayTime::BeforeLine },
        ]
    }

    fn warnings(&self, direction: Direction) -> Vec<String> {
        let (queue, mark) = (self.queue[direction], self.mark[direction]);
        mark.warning(queue).into_iter().chain(queue.warning()).collect()
    }

    fn line(&self, direction: Direction) -> Option<Line> {
        Some(Line {
            rate: self.rate[direction],
            queue: self.queue[direction],
            mark: self.mark[direction],
            overhead: self.overhead,
            min_packet: self.min_packet,
            is_shared: false,
        })
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        self.queue[direction].held(self.rate[direction], inflow)
    }

    fn remove_queue_limit(&mut self) {
        self.queue = PerDirection::both(QueueLimit::Unlimited);
        self.mark = PerDirection::both(MarkThreshold::Never);
        self.aqm = PerDirection::default();
    }

    fn speed_up(&mut self, direction: Direction, factor: u64) {
        self.rate[direction] = faster(self.rate[direction], factor);
    }

    fn scale_rate(&mut self, direction: Direction, factor: f64) -> bool {
        let rate = &mut self.rate[direction];
        let scaled = (rate.bit_per_s() as f64 * factor) as u64;
        *rate = Rate::from_bit_per_s(scaled.max(1)).unwrap_or(*rate);
        true
    }

    fn scale_queue(&mut self, direction: Direction, factor: f64) -> bool {
        let queue = &mut self.queue[direction];
        *queue = match *queue {
            QueueLimit::Unlimited => return false,
            QueueLimit::Bytes(bytes) => QueueLimit::Bytes(Bytes((bytes.0 as f64 * factor) as u64)),
            QueueLimit::Packets(packets) => QueueLimit::Packets((packets as f64 * factor) as u64),
        };
        true
    }

    fn make_room(&mut self, direction: Direction, packets: u64, bytes: Bytes, at_most: Duration) {
        self.queue[direction].make_room(packets, bytes);
        self.mark[direction].make_room(packets, bytes, at_most);
        self.aqm[direction] = Aqm::DropTail;
    }
}

impl Declared for Link {
    const NAMES: &'static [&'static str] = &["link"];
    const PRINCIPAL: Option<&'static str> = Some("rate");
    const DOCS: &'static str = "\
| `link` | **`rate`** ↔ | rate, every bit on the wire counted; or one that [changes](traces.md#values-that-change), which makes it a `trace-link` | required |
| | `queue` ↔ | `64 kB`, `100 packets`, `50 ms` (at the link's rate), `1 bdp` (at the link's rate over the path's round trip without queues) or `unlimited`: what waits, drop-tail. The packet that is being sent does not count: with `0 B` or `0 packets` nothing waits, and what arrives while the link is busy is dropped; there is a [warning](#warnings) | `unlimited` |
| | `mark` ↔ | `20 kB`, `20 packets`, `5 ms` or `never`: ECN-capable packets are marked where more waits, or they will wait longer | `never` |
| | `aqm` ↔ | `drop-tail`, or a [managed queue](queues.md): `codel`, `fq-codel`, `pie`, `fq-pie`, `red`, `dualpi2`, `cake`, or one with parameters such as `{ kind = \"codel\", target = \"5 ms\" }`; without a `queue` it has Linux's limit | `drop-tail` |
| | `overhead` | framing per packet; Ethernet `38 B` | `0 B` |
| | `min_packet` | shorter packets are padded to it; Ethernet `46 B` | `0 B` |";
    const WEIGHT: u32 = 3;

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let rate: PerDirection<LinkRate> = keys.each_way("rate", None)?;
        if let (&LinkRate::Steady(forward), &LinkRate::Steady(reverse)) = (&rate.forward, &rate.reverse) {
            let rate = PerDirection { forward, reverse };
            let (aqm, queue) = read_queue(keys, rate)?;
            return Ok(ElementKind::Link(Link {
                rate,
                queue,
                aqm,
                mark: keys.each_way_or("mark", MarkThreshold::Never, MarkThreshold::Never)?,
                overhead: keys.or("overhead", Bytes::ZERO)?,
                min_packet: keys.or("min_packet", Bytes::ZERO)?,
            }));
        }
        if let Some(key) = ["mark", "min_packet"].into_iter().find(|key| keys.has(key)) {
            return Err(
                keys.refuse(key, "expected it beside a `rate` that stays, found one that changes".to_owned())
            );
        }
        TraceLink::with_trace(keys, rate.map(LinkRate::into_trace))
    }

    fn draw(draws: &mut Draws) -> Link {
        let aqm = draws.each_way(Aqm::draw);
        let mark = draws.each_way(Draws::mark);
        let unmanaged = |way| if aqm[way] == Aqm::DropTail { mark[way] } else { MarkThreshold::Never };
        Link {
            rate: draws.each_way(Draws::rate),
            queue: draws.each_way(Draws::queue),
            mark: PerDirection::from_fn(unmanaged),
            aqm,
            overhead: draws.bytes(0..=40),
            min_packet: draws.bytes(0..=100),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        let plain = Lanes::new(self);
        if self.aqm == PerDirection::default() {
            return Built::Transit(Box::new(plain));
        }
        let &Link { rate, aqm, queue, overhead, min_packet, .. } = self;
        let parts = Parts { name, aqm, queue, rate, overhead, min_packet, plain: Box::new(plain) };
        let sender = |way| Sender::Steady(Transmitter::new(self.rate[way]));
        Built::Holding(Box::new(Managed::new(parts, seed, sender)))
    }
}

/// The rate of a link: one, or one that changes.
#[derive(Clone)]
enum LinkRate {
    Steady(Rate),
    Traced(Trace),
}

impl LinkRate {
    fn into_trace(self) -> Trace {
        match self {
            LinkRate::Steady(rate) => {
                Trace::of_rates(vec![(Duration::ZERO, rate.bit_per_s())], None).expect("not zero")
            }
            LinkRate::Traced(trace) => trace,
        }
    }
}

impl ReadValue for LinkRate {
    const EXPECTED: &'static str = Rate::EXPECTED;
    const IS_TABLE: bool = true;
    fn read<S: Source>(source: &S) -> Result<LinkRate, S::Error> {
        let is_one = source.text().is_some() || source.is_number() || source.switch().is_some();
        if is_one {
            Rate::read(source).map(LinkRate::Steady)
        } else {
            Trace::read(source).map(LinkRate::Traced)
        }
    }
}

/// How a queue before a line of this rate is managed, and what it holds.
pub(crate) fn read_queue<K: Keys>(
    keys: &mut K,
    rate: PerDirection<Rate>,
) -> Result<(PerDirection<Aqm>, PerDirection<QueueLimit>), K::Error> {
    let aqm = keys.each_way_or("aqm", Aqm::DropTail, Aqm::DropTail)?;
    let unlimited = QueueSetting::Limit(QueueLimit::Unlimited);
    let has_queue = keys.has("queue");
    if !has_queue && Direction::BOTH.into_iter().any(|way| matches!(aqm[way], Aqm::Red(_))) {
        // Its thresholds are shares of the limit, and Linux has no default.
        keys.each_way::<QueueSetting>("queue", None)?;
    }
    let setting = keys.each_way_or("queue", unlimited, unlimited)?;
    let limit = |way: Direction| match has_queue {
        true => setting[way].limit(rate[way]),
        false => aqm[way].default_limit(rate[way]),
    };
    Ok((aqm, PerDirection::from_fn(limit)))
}

/// Sends one packet after the other at its rate. A packet leaves when its last bit has been sent.
#[derive(Debug)]
struct Lanes {
    overhead: Bytes,
    min_packet: Bytes,
    lanes: PerDirection<Lane>,
}

impl Lanes {
    fn new(link: &Link) -> Lanes {
        let lane = |way| Lane::new(link.rate[way], link.queue[way], link.mark[way]);
        Lanes { overhead: link.overhead, min_packet: link.min_packet, lanes: PerDirection::from_fn(lane) }
    }
}

impl Transit for Lanes {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let on_wire = framed(packet.size, self.overhead, self.min_packet);
        self.lanes[direction].send(now, packet.size, on_wire)
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        Some(self.lanes[direction].waiting.bytes())
    }

    fn link_counters(&self, direction: Direction) -> Option<LinkCounters> {
        let lane = &self.lanes[direction];
        Some(LinkCounters { bytes_sent: lane.bytes_sent, max_backlog: lane.waiting.max_bytes() })
    }
}

/// One direction of a link.
#[derive(Debug)]
struct Lane {
    /// Busy until the last accepted packet will have been sent.
    line: Transmitter,
    mark: MarkThreshold,
    waiting: Waiting,
    bytes_sent: Bytes,
}

impl Lane {
    fn new(rate: Rate, limit: QueueLimit, mark: MarkThreshold) -> Lane {
        Lane { line: Transmitter::new(rate), mark, waiting: Waiting::new(limit), bytes_sent: Bytes::ZERO }
    }

    fn send(&mut self, now: Instant, size: Bytes, on_wire: Bytes) -> Fate {
        self.waiting.leave(now);
        let (mut marks, mut wait) = (false, Duration::ZERO);
        if self.line.busy_until() <= now {
            self.line.rest_until(now);
        } else if self.waiting.has_room(size) {
            wait = self.line.busy_until() - now;
            self.waiting.join(self.line.busy_until(), size);
            marks = self.marks(now);
        } else {
            return Fate::Drop(DropCause::QueueOverflow);
        }
        self.line.serialize(on_wire);
        self.bytes_sent += on_wire;
        let sent = self.line.busy_until();
        if marks { Fate::Mark(sent, wait) } else { Fate::Queue(sent, wait) }
    }

    /// Whether the packet that has just joined the queue is marked.
    fn marks(&self, now: Instant) -> bool {
        match self.mark {
            MarkThreshold::Never => false,
            MarkThreshold::Bytes(threshold) => self.waiting.bytes() > threshold,
            MarkThreshold::Packets(threshold) => self.waiting.packets() > threshold,
            MarkThreshold::Delay(threshold) => self.line.busy_until() - now > threshold,
        }
    }
}
