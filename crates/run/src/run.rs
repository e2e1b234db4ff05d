//! One run: one point of an experiment, one seed, one engine.

use crate::{AirRow, FlowRow, Grade, MessageRow, RouterRow, SegmentRow, SeriesRow, Trace};
use core::fmt;
use std::sync::Arc;

/// Who computed or measured a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// Published closed forms.
    Predict,
    /// Packet-level discrete events.
    Simulate,
    /// The Linux kernel's TCP over the same path elements.
    Emulate,
    /// The Linux kernel's TCP over a real network.
    Measure,
}

impl Engine {
    /// As files and tables spell them, in the order of their declaration.
    pub(crate) const NAMES: [&'static str; 4] = ["predict", "simulate", "emulate", "measure"];

    /// The engine that [`name`](Engine::name) spells so.
    pub fn from_name(name: &str) -> Option<Engine> {
        [Engine::Predict, Engine::Simulate, Engine::Emulate, Engine::Measure]
            .into_iter()
            .find(|engine| engine.name() == name)
    }

    /// Whether its runs take as long as what they run.
    pub const fn in_real_time(self) -> bool {
        matches!(self, Engine::Emulate | Engine::Measure)
    }

    /// As files, tables and flags spell it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a run comes from: enough to make it again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Provenance {
    /// The experiment file as given; the runs of a sweep share it.
    pub experiment: Arc<str>,
    /// `key=value` changes on top of it: overrides first, then this point's place in the sweep.
    pub changes: Vec<String>,
    /// Program version.
    pub version: String,
    /// The kernel whose TCP it is; empty where no kernel was asked.
    pub kernel: String,
    /// What hosts were told that they might have been told otherwise, a setting an entry.
    pub settings: Vec<String>,
    /// "Look before you trust this": what a reader of the numbers must know.
    pub caveats: Vec<String>,
}

/// Which run: no two runs of an experiment share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// Which point of the sweep, from 0.
    pub point: u64,
    /// Who made it.
    pub engine: Engine,
    /// Seed of the random elements; a prediction has none.
    pub seed: Option<u64>,
}

/// What an engine gives back for one point and one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Which point of the sweep, from 0.
    pub point: u64,
    /// Who made it.
    pub engine: Engine,
    /// Seed of the random elements; a prediction has none.
    pub seed: Option<u64>,
    /// One row per flow.
    pub flows: Vec<FlowRow>,
    /// State over time, when asked for.
    pub series: Trace<SeriesRow>,
    /// Every segment at both ends and every drop, when asked for.
    pub segments: Trace<SegmentRow>,
    /// The messages of streams, flow by flow, when asked for.
    pub messages: Trace<MessageRow>,
    /// What flow routers have decided, one row per router and direction.
    pub routers: Vec<RouterRow>,
    /// What the air of radios was used for, one row per hop and use.
    pub air: Vec<AirRow>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// How well it was done, where that was in real time.
    pub grade: Option<Grade>,
}

impl Run {
    /// An answer that nothing is in yet.
    pub fn new(key: RunKey, provenance: Provenance) -> Run {
        let RunKey { point, engine, seed } = key;
        Run {
            point,
            engine,
            seed,
            flows: Vec::new(),
            series: Trace::default(),
            segments: Trace::default(),
            messages: Trace::default(),
            routers: Vec::new(),
            air: Vec::new(),
            provenance,
            grade: None,
        }
    }

    /// Which run it is.
    pub const fn key(&self) -> RunKey {
        RunKey { point: self.point, engine: self.engine, seed: self.seed }
    }
}
