//! The delay budget: what a round trip is made of, and which timers of the two stacks allow for it.

mod timers;

use crate::path_summary::PathSummary;
use farpath_elements::{DelayKind, DelayPart, DelayTime, ElementSpec, QueueLimit};
use farpath_experiment::Scenario;
use farpath_model::budget::{Sawtooth, standing_queue};
use farpath_path::{Direction, PerDirection};
use farpath_tcp::HEADERS;
use farpath_tcp::cc::LongRun;
use farpath_units::Bytes;
use serde::{Serialize, Serializer};

pub use timers::{TimerFit, TimerVerdict};

/// A delay one way, in s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delay {
    /// On an idle path.
    pub idle_s: f64,
    /// On average in the long run, with this transfer alone on the path; `None` where nothing says.
    pub expected_s: Option<f64>,
    /// Where every queue is full, whoever filled it; `None` where nothing limits it.
    pub full_s: Option<f64>,
}

impl Delay {
    fn fixed(seconds: f64) -> Delay {
        Delay { idle_s: seconds, expected_s: Some(seconds), full_s: Some(seconds) }
    }

    fn plus(self, other: Delay) -> Delay {
        let add = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        Delay {
            idle_s: self.idle_s + other.idle_s,
            expected_s: add(self.expected_s, other.expected_s),
            full_s: add(self.full_s, other.full_s),
        }
    }

    fn is_nothing(self) -> bool {
        self.idle_s == 0.0 && self.expected_s == Some(0.0) && self.full_s == Some(0.0)
    }

    fn full(self) -> f64 {
        self.full_s.unwrap_or(f64::INFINITY)
    }
}

/// One part of a round trip.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The element of the path that it is of.
    pub element: String,
    /// What it is.
    #[serde(serialize_with = "key_of_kind")]
    pub kind: DelayKind,
    /// Of a full segment, in the direction of the data.
    pub data: Delay,
    /// Of an ACK, in the other one.
    pub acks: Delay,
}

/// What a round trip is made of, and the timers that wait for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Budget {
    /// In the order of the path.
    pub parts: Vec<Part>,
    /// Their sum for a full segment.
    pub data: Delay,
    /// Their sum for an ACK.
    pub acks: Delay,
    /// Both.
    pub round_trip: Delay,
    /// A SYN and its answer.
    pub handshake: Delay,
    /// Routers that a packet passes, in the direction of the data and back.
    pub routers: [u32; 2],
    /// Every timer of the two stacks that waits for an answer.
    pub timers: Vec<TimerFit>,
}

/// The budget of the scenario's first flow.
pub fn budget(scenario: &Scenario) -> Budget {
    budget_of_summary(&PathSummary::new(scenario))
}

fn budget_of_summary(summary: &PathSummary<'_>) -> Budget {
    let segment = summary.segment() + summary.view.path.headers;
    let bare = summary.view.path.headers;
    let [data_way, ack_way] = [summary.data, summary.data.opposite()];
    let parts: Vec<Part> = summary
        .scenario
        .path
        .iter()
        .flat_map(|element| {
            let (data, acks) =
                (parts_of(summary, element, data_way, segment), parts_of(summary, element, ack_way, bare));
            data.into_iter().zip(acks).map(|((kind, data), (_, acks))| Part {
                element: element.name.clone(),
                kind,
                data,
                acks,
            })
        })
        .filter(|part| !(part.data.is_nothing() && part.acks.is_nothing()))
        .collect();
    let sum = |of: fn(&Part) -> Delay| parts.iter().map(of).fold(Delay::fixed(0.0), Delay::plus);
    let (data, acks) = (sum(|part| part.data), sum(|part| part.acks));
    // A SYN meets the same queues as a segment, and takes less time on the links.
    let lighter = summary.rtt.saturating_sub(summary.view.handshake_rtt).as_secs_f64();
    let round_trip = data.plus(acks);
    let handshake = Delay {
        idle_s: summary.view.handshake_rtt.as_secs_f64(),
        expected_s: Some(summary.view.handshake_rtt.as_secs_f64()),
        full_s: round_trip.full_s.map(|full| full - lighter),
    };
    let routers = PerDirection::from_fn(|way| farpath_elements::routers(&summary.scenario.path, way));
    let timers = timers::timers(summary, round_trip, handshake);
    let routers = [routers[data_way], routers[ack_way]];
    Budget { parts, data, acks, round_trip, handshake, routers, timers }
}

fn key_of_kind<S: Serializer>(kind: &DelayKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.key())
}

/// What `element` makes a packet of `size` wait for one way: always the same kinds.
fn parts_of(
    summary: &PathSummary<'_>,
    element: &ElementSpec,
    way: Direction,
    size: Bytes,
) -> Vec<(DelayKind, Delay)> {
    let delay = |part: &DelayPart| match part.time {
        DelayTime::Fixed(delay) => Delay::fixed(delay.as_secs_f64()),
        DelayTime::BeforeLine => queueing(summary, element, way),
        DelayTime::Varying { expected_s, full_s } => Delay { idle_s: 0.0, expected_s, full_s: Some(full_s) },
    };
    element.spec().delays(way, size).iter().map(|part| (part.kind, delay(part))).collect()
}

/// The wait before a link.
fn queueing(summary: &PathSummary<'_>, element: &ElementSpec, way: Direction) -> Delay {
    let Some(line) = element.spec().line(way) else { return Delay::fixed(0.0) };
    let full_packet = summary.segment() + summary.view.path.headers;
    let frame = |packet: Bytes| line.rate.time_to_send(line.frame(packet)).as_secs_f64();
    let packets = match line.queue {
        QueueLimit::Packets(packets) => Some(packets as f64),
        QueueLimit::Bytes(bytes) => Some(bytes.0 as f64 / full_packet.0 as f64),
        QueueLimit::Unlimited => None,
    };
    // What the windows of all flows can put there, and the ACKs for that the other way.
    let segments =
        (summary.window.0 as f64 / summary.segment().0 as f64) * summary.scenario.flows.len() as f64;
    let own = if way == summary.data {
        segments * frame(full_packet)
    } else {
        segments / summary.ack_every() as f64 * frame(summary.view.path.headers)
    };
    // Behind those that wait there is one on the link.
    let full = packets.map_or(own, |packets| (packets + 1.0) * frame(full_packet));
    let slowest = way == summary.data && summary.bottleneck.as_ref() == Some(&element.name);
    let expected = if slowest { standing(summary) } else { elsewhere(summary, way) };
    let full = if full.is_finite() { Some(full) } else { None };
    Delay { idle_s: 0.0, expected_s: expected.map(|packets| packets * frame(full_packet)), full_s: full }
}

/// Segments that wait before the slowest link on average.
fn standing(summary: &PathSummary<'_>) -> Option<f64> {
    let segment = summary.segment().0 as f64;
    let pipe = summary.bdp?.0 as f64 / segment;
    let window = summary.window.0 as f64 / segment;
    let queue = summary.view.queue_segments().unwrap_or(f64::INFINITY);
    // Random losses and marks bring the window down where no formula here says how often; so do other flows.
    let alone = summary.scenario.flows.len() == 1;
    let undisturbed = summary.view.data_loss.fraction() == 0.0 && summary.view.mark_segments().is_none();
    if !alone || (!undisturbed && window > pipe) {
        return None;
    }
    let sawtooth = match summary.sender().congestion.control.long_run() {
        LongRun::Linear { keeps } => Sawtooth::Linear { keeps },
        LongRun::Cubic => {
            // RFC 9438 section 4.2, C = 0.4: so many seconds back to the window; section 4.3: in so many rounds as Reno.
            let top = pipe + queue;
            let by_time = (0.3 * top / 0.4).cbrt();
            let as_reno = 0.3 * top / (9.0 / 17.0) * summary.rtt.as_secs_f64();
            if as_reno < by_time { Sawtooth::Linear { keeps: 0.7 } } else { Sawtooth::Cubic }
        }
        LongRun::ByModel { .. } | LongRun::Unknown => return None,
    };
    standing_queue(pipe, queue, window, sawtooth).ok().map(|mean| mean.value)
}

/// Before any other link than the slowest nothing stands in the long run, unless the ACKs do not fit onto theirs.
fn elsewhere(summary: &PathSummary<'_>, way: Direction) -> Option<f64> {
    if way == summary.data {
        return Some(0.0);
    }
    let data = summary.view.spacing(u64::MAX);
    let acks = summary.view.path.reverse.iter().map(|hop| hop.rate.time_to_send(hop.frame(HEADERS))).max();
    let fits = acks.is_none_or(|ack| ack <= data * summary.ack_every());
    (fits && summary.scenario.flows.len() == 1).then_some(0.0)
}
