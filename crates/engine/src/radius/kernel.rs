//! Radii of the running kernel: its timers before a peer that is silent, and connections over ways that hold every packet
//! for as long as a radius is.

#[cfg_attr(not(target_os = "linux"), path = "kernel/elsewhere.rs")]
mod measure;

pub use measure::measure_radii;

use super::{Radius, RadiusKind};
use farpath_elements::{Delay, ElementKind, ElementSpec};
use farpath_emulate::Silence;
use farpath_experiment::{
    EmulateOptions, FlowSpec, Opener, Output, Point, RunBudget, Scenario, Stack, Transport,
};
use farpath_model::radius::Span;
use farpath_path::{Direction, PerDirection};
use farpath_units::{Bytes, Duration};

/// Over which the connections of a measurement begin: longer than any bucket of Linux's timer wheel in which a wait of
/// 129 s or less falls, so that they begin anywhere in it.
const STARTS: Duration = Duration::from_millis(2_100);

/// What the running kernel does configured like a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelRadii {
    /// Its name and release.
    pub kernel: String,
    /// Its timers.
    pub silence: Silence,
    /// Connections over ways of many lengths, the shortest first.
    pub ways: Vec<Way>,
    /// What it does otherwise than the stack.
    pub caveats: Vec<String>,
    /// It was not stopped before it was over.
    pub complete: bool,
}

impl KernelRadii {
    /// The measured counterpart of a radius, in s of round trip, least and most over the connections; `None` for what was
    /// not measured.
    pub fn measured(&self, kind: RadiusKind) -> Option<Span> {
        match kind {
            RadiusKind::SynAgain(number) => self.silence.syns.get(number as usize - 1).copied(),
            // Which of them is the last is known at the end.
            RadiusKind::LastSyn => self.silence.syns.last().copied().filter(|_| self.complete),
            RadiusKind::Abandoned => self.silence.abandoned,
            _ => None,
        }
    }
}

/// Connections over one length of way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    /// Round trip.
    pub rtt: Duration,
    /// By the closed form, from its least to its most.
    pub predicted: Reach,
    /// In the simulator, with the same stack and the same starts.
    pub simulated: Counts,
    /// Of the kernel; `None` where the machine was not in time.
    pub kernel: Option<Counts>,
}

/// What a closed form says of connections over a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Every one is of use.
    Usable,
    /// Some are, some not: clocks or a race decide.
    Some,
    /// Every client believes that it is connected, and no server is.
    HalfOpen,
    /// It depends on the clocks whether a client is connected; no server is.
    SomeHalfOpen,
    /// No client is connected.
    Nothing,
}

/// How many connections came how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tried.
    pub connections: usize,
    /// Connected, as their openers saw it.
    pub opened: usize,
    /// Of those, whose data came through.
    pub usable: usize,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    stack: Stack,
    ways: Vec<(Duration, Reach)>,
    /// Connections over each way, and to a silent peer.
    connections: u16,
}

impl Measurement {
    /// Of a stack with these radii: short of the usable radius, in the span where timers race, between it and the last round
    /// trip over which a client connects, and beyond that. `None` where there is no end to measure.
    pub fn planned(stack: &Stack, radii: &[Radius], connections: u16) -> Option<Measurement> {
        let find = |kind| radii.iter().find(|radius| radius.kind == kind);
        let (usable, abandoned) = (find(RadiusKind::Usable)?, find(RadiusKind::Abandoned)?.rtt);
        let (race, usable) = (usable.race, usable.rtt);
        if abandoned.most == f64::INFINITY {
            return None;
        }
        // Beside an end by so much that a busy machine does not carry them over it.
        let [before, beyond] = [-1.0, 1.0].map(|side| move |rtt: f64| rtt + side * (rtt * 0.02).max(0.3));
        let mut rtts = vec![before(usable.least)];
        if let Some(race) = race {
            let parts = [0.2, 0.4, 0.6, 0.8];
            rtts.extend(parts.map(|part| race.early + part * (race.late - race.early)));
        }
        rtts.extend([beyond(usable.most), before(abandoned.least), beyond(abandoned.most)]);
        rtts.retain(|&rtt| rtt > 0.0);
        rtts.sort_by(f64::total_cmp);
        rtts.dedup_by(|a, b| *a - *b < 0.01 * *b);
        let reach = |rtt: f64| match rtt {
            _ if rtt < usable.least => Reach::Usable,
            _ if rtt < usable.most => Reach::Some,
            _ if rtt < abandoned.least => Reach::HalfOpen,
            _ if rtt < abandoned.most => Reach::SomeHalfOpen,
            _ => Reach::Nothing,
        };
        let ways = rtts.into_iter().map(|rtt| (Duration::from_secs_f64(rtt), reach(rtt))).collect();
        Some(Measurement { stack: stack.clone(), ways, connections })
    }

    /// How long it takes: two round trips, of which the second brings the reset of a connection that is half-open.
    pub fn takes(&self) -> Duration {
        let longest = self.ways.iter().map(|(rtt, _)| *rtt).max().unwrap_or_default();
        longest * 2 + STARTS + Duration::from_secs(5)
    }

    /// Moment at which connection `number` begins.
    fn start(&self, number: u16) -> Duration {
        STARTS * u64::from(number) / u64::from(self.connections.max(1))
    }

    /// One byte from each opener to a listener.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the kernel is asked on Linux alone"))]
    fn point(&self, index: usize) -> Point {
        let rtt = self.ways[index].0;
        let flow = |number| FlowSpec {
            start: self.start(number),
            direction: Direction::Forward,
            size: Bytes(1),
            opener: Opener::Sender,
            request: Bytes::ZERO,
            stream: None,
            writing: Default::default(),
            access: Duration::ZERO,
            sender: None,
            receiver: None,
        };
        let kind = ElementKind::Delay(Delay { delay: PerDirection::both(rtt / 2) });
        let emulate = EmulateOptions {
            sample: Some(Duration::from_secs(1)),
            // A jiffy: later than that, and another bucket of a timer may be met.
            lateness: Some(Duration::from_millis(4)),
            // It would take minutes again.
            repeats: 0,
            ..EmulateOptions::default()
        };
        let scenario = Scenario {
            title: format!("a round trip of {rtt}"),
            seed: 1,
            seeds: 1,
            horizon: self.takes(),
            budget: RunBudget::default(),
            path: vec![ElementSpec { name: "delay".to_owned(), kind }],
            sender: self.stack.clone(),
            receiver: self.stack.clone(),
            transport: Transport::Tcp,
            flows: (0..self.connections).map(flow).collect(),
            output: Output::default(),
            emulate,
            programs: Vec::new(),
            only_programs: false,
            warnings: Vec::new(),
        };
        Point { index, swept: Vec::new(), scenario }
    }
}
