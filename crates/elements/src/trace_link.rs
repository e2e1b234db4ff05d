//! A link whose rate changes over time.

use crate::aqm::{self, Aqm, Managed, Parts, Sender};
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Fault, Inflow};
use crate::keys::{self, Keys, ReadValue, Source};
use crate::line::{Line, framed};
use crate::link::read_queue;
use crate::over_time::out_of_order;
use crate::trace::{Sending, Trace};
use crate::waiting::Waiting;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, MarkThreshold, QueueLimit};
use farpath_path::{Direction, DropCause, Fate, LinkCounters, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant, Rate};

/// A serial link whose rate follows a trace, behind a drop-tail queue. A packet that is being sent when the rate changes goes on at the new rate; in an
/// outage it waits.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceLink {
    /// What can be sent.
    pub trace: PerDirection<Trace>,
    /// Drop-tail; what is being sent does not count.
    pub queue: PerDirection<QueueLimit>,
    /// What is dropped and marked before the queue is full.
    pub aqm: PerDirection<Aqm>,
    /// Framing per packet, on top of the IP packet.
    pub overhead: Bytes,
}

impl Element for TraceLink {
    fn describe(&self) -> String {
        let mean = PerDirection::from_fn(|way| self.trace[way].mean_rate());
        format!(
            "link with a trace of its rate, {} in the mean, queue {}{}",
            each_way(&mean),
            each_way(&self.queue),
            aqm::words(&self.aqm)
        )
    }

    fn is_random(&self) -> bool {
        Direction::BOTH.into_iter().any(|way| self.aqm[way].is_random())
    }

    fn left_out(&self, data: Direction) -> Option<String> {
        let mean = self.trace[data].mean_rate();
        let rate = format!(
            "how the rate of a link varies is left out of the prediction, which has its mean of {mean}"
        );
        Some(self.aqm[data].left_out().map_or(rate.clone(), |managed| format!("{rate}; {managed}")))
    }

    fn validate(&self) -> Result<(), Fault> {
        aqm::validate(&self.aqm, &self.queue)
    }

    fn delays(&self, direction: Direction, size: Bytes) -> Vec<DelayPart> {
        let line = self.mean_line(direction);
        vec![
            DelayPart::fixed(DelayKind::Serialization, line.rate.time_to_send(line.frame(size))),
            DelayPart { kind: DelayKind::Queue, time: DelayTime::BeforeLine },
        ]
    }

    fn ends(&self, direction: Direction) -> Option<Duration> {
        match &self.trace[direction] {
            Trace::Rates(rates) if rates.repeat_after.is_none() => {
                rates.steps.last().filter(|step| step.1 == 0).map(|step| step.0)
            }
            Trace::Rates(_) | Trace::Opportunities(_) => None,
        }
    }

    fn warnings(&self, direction: Direction) -> Vec<String> {
        self.queue[direction].warning().into_iter().collect()
    }

    fn line(&self, direction: Direction) -> Option<Line> {
        Some(self.mean_line(direction))
    }

    fn lone_delay(&self, direction: Direction, size: Bytes) -> Duration {
        self.trace[direction].greatest_rate().time_to_send(size + self.overhead)
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        self.queue[direction].held(self.trace[direction].greatest_rate(), inflow)
    }

    fn entries(&self) -> usize {
        Direction::BOTH.map(|way| self.trace[way].entries()).iter().sum()
    }

    fn remove_queue_limit(&mut self) {
        self.queue = PerDirection::both(QueueLimit::Unlimited);
        self.aqm = PerDirection::default();
    }

    fn speed_up(&mut self, direction: Direction, factor: u64) {
        self.trace[direction].speed_up(factor);
    }

    fn make_room(&mut self, direction: Direction, packets: u64, bytes: Bytes, _at_most: Duration) {
        self.queue[direction].make_room(packets, bytes);
        self.aqm[direction] = Aqm::DropTail;
    }
}

impl TraceLink {
    /// Reads what is beside the trace.
    pub(crate) fn with_trace<K: Keys>(
        keys: &mut K,
        trace: PerDirection<Trace>,
    ) -> Result<ElementKind, K::Error> {
        let (aqm, queue) = read_queue(keys, PerDirection::from_fn(|way| trace[way].mean_rate()))?;
        Ok(ElementKind::TraceLink(TraceLink {
            trace,
            queue,
            aqm,
            overhead: keys.or("overhead", Bytes::ZERO)?,
        }))
    }

    fn mean_line(&self, direction: Direction) -> Line {
        Line {
            rate: self.trace[direction].mean_rate(),
            queue: self.queue[direction],
            mark: MarkThreshold::Never,
            overhead: self.overhead,
            min_packet: Bytes::ZERO,
            is_shared: false,
        }
    }
}

impl Declared for TraceLink {
    const NAMES: &'static [&'static str] = &["trace-link"];
    const PRINCIPAL: Option<&'static str> = Some("trace");
    const DOCS: &'static str = "\
| `trace-link` | **`trace`** ↔ | its rate over time: the name of a [trace](traces.md), or a list such as `[{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"5 s\", rate = \"0 bit/s\" }, { at = \"6 s\", rate = \"5 Mbit/s\" }]` | required |
| | `repeat` ↔ | when a list or a file of rates begins again | the last rate stays |
| | `queue`, `aqm` ↔ | as for `link`, at the mean rate | as for `link` |
| | `overhead` | framing per packet | `0 B` |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let mut trace = keys.each_way::<Trace>("trace", None)?;
        let repeat = keys.has("repeat").then(|| keys.each_way::<Duration>("repeat", None)).transpose()?;
        for (direction, repeat) in
            repeat.iter().flat_map(|repeat| Direction::BOTH.map(|way| (way, repeat[way])))
        {
            repeat_after(&mut trace[direction], repeat).map_err(|reason| keys.refuse("repeat", reason))?;
        }
        TraceLink::with_trace(keys, trace)
    }

    fn draw(draws: &mut Draws) -> TraceLink {
        let trace = |draws: &mut Draws| {
            if draws.chance(50) {
                let mut at = 0;
                let at_ms = (0..=draws.below(20)).map(|_| {
                    at += draws.below(30);
                    at
                });
                let mut at_ms: Vec<u64> = at_ms.collect();
                at_ms.push(at_ms.last().copied().unwrap_or(0) + 1);
                return Trace::Opportunities(crate::trace::Opportunities { at_ms: at_ms.into() });
            }
            let mut at = Duration::ZERO;
            let mut steps = vec![(at, draws.rate().bit_per_s())];
            for _ in 0..draws.below(6) {
                at += draws.microseconds(1..=1_000_000);
                let outage = draws.chance(30);
                steps.push((at, if outage { 0 } else { draws.rate().bit_per_s() }));
            }
            let repeat_after = Some(at + draws.microseconds(1..=1_000_000));
            Trace::of_rates(steps, repeat_after).expect("the first is not zero")
        };
        TraceLink {
            trace: draws.each_way(trace),
            queue: draws.each_way(Draws::queue),
            aqm: draws.each_way(Aqm::draw),
            overhead: draws.bytes(0..=40),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        let lane = |way| Lane {
            sending: Sending::new(self.trace[way].clone()),
            waiting: Waiting::new(self.queue[way]),
            bytes_sent: Bytes::ZERO,
        };
        let plain = Box::new(Lanes { overhead: self.overhead, lanes: PerDirection::from_fn(lane) });
        if self.aqm == PerDirection::default() {
            return Built::Transit(plain);
        }
        let &TraceLink { aqm, queue, overhead, .. } = self;
        let rate = PerDirection::from_fn(|way| self.trace[way].mean_rate());
        let parts = Parts { name, aqm, queue, rate, overhead, min_packet: Bytes::ZERO, plain };
        let sender = |way| Sender::Traced(Sending::new(self.trace[way].clone()));
        Built::Holding(Box::new(Managed::new(parts, seed, sender)))
    }
}

#[derive(Debug)]
struct Lanes {
    overhead: Bytes,
    lanes: PerDirection<Lane>,
}

#[derive(Debug)]
struct Lane {
    sending: Sending,
    waiting: Waiting,
    bytes_sent: Bytes,
}

impl Transit for Lanes {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let on_wire = framed(packet.size, self.overhead, Bytes::ZERO);
        let lane = &mut self.lanes[direction];
        lane.waiting.leave(now);
        let waits_until = lane.sending.busy_until();
        let waits = waits_until > now;
        if waits && !lane.waiting.has_room(packet.size) {
            return Fate::Drop(DropCause::QueueOverflow);
        }
        let Some(sent) = lane.sending.send(now, on_wire) else {
            return Fate::Drop(DropCause::Outage);
        };
        if waits {
            lane.waiting.join(waits_until, packet.size);
        }
        lane.bytes_sent += on_wire;
        Fate::Queue(sent, waits_until.saturating_since(now))
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        Some(self.lanes[direction].waiting.bytes())
    }

    fn link_counters(&self, direction: Direction) -> Option<LinkCounters> {
        let lane = &self.lanes[direction];
        Some(LinkCounters { bytes_sent: lane.bytes_sent, max_backlog: lane.waiting.max_bytes() })
    }
}

/// Has a trace begin again; why not, where it cannot.
fn repeat_after(trace: &mut Trace, repeat: Duration) -> Result<(), String> {
    let Trace::Rates(rates) = trace else {
        return Err("a file of milliseconds begins again after its last line".to_owned());
    };
    let last = rates.steps.last().expect("a trace has a step").0;
    if repeat <= last {
        return Err(format!("expected a time after {last}, where the last rate begins, found {repeat}"));
    }
    rates.repeat_after = Some(repeat);
    Ok(())
}

/// A rate that may be none.
struct RateOrZero(u64);

impl ReadValue for RateOrZero {
    const EXPECTED: &'static str = "a rate such as `8 Mbit/s`, or `0 bit/s`";
    fn read<S: Source>(source: &S) -> Result<RateOrZero, S::Error> {
        if source.text().map(str::trim) == Some("0 bit/s") {
            return Ok(RateOrZero(0));
        }
        source.quantity::<Rate>(Self::EXPECTED).map(|rate| RateOrZero(rate.bit_per_s()))
    }
}

impl ReadValue for Trace {
    const EXPECTED: &'static str =
        "the name of a trace, or a list such as `[{ at = \"0 s\", rate = \"10 Mbit/s\" }]`";
    const IS_TABLE: bool = true;
    fn read<S: Source>(source: &S) -> Result<Trace, S::Error> {
        if let Some(read) = keys::by_file(source, Trace::parse) {
            return read;
        }
        let table = source.table(|keys| {
            let key = if keys.has("file") { "file" } else { "points" };
            let mut trace = keys.required::<Trace>(key)?;
            if let Some(repeat) = keys.optional("repeat")? {
                repeat_after(&mut trace, repeat).map_err(|reason| keys.refuse("repeat", reason))?;
            }
            Ok(trace)
        });
        if let Some(read) = table {
            return read;
        }
        let mut last = None;
        let steps = source.list(|entry| {
            let step = entry.table(|keys| {
                let at: Duration = keys.required("at")?;
                if let Some(reason) = out_of_order(last, at) {
                    return Err(keys.refuse("at", reason));
                }
                last = Some(at);
                Ok((at, keys.required::<RateOrZero>("rate")?.0))
            });
            step.unwrap_or_else(|| {
                Err(entry.wrong_type("a step such as `{ at = \"5 s\", rate = \"10 Mbit/s\" }`"))
            })
        });
        let steps = steps.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))?;
        Trace::of_rates(steps, None)
            .map_err(|error| source.refuse(format!("expected {}, found {}", error.expected, error.found)))
    }
}
