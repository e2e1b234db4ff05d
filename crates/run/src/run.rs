//! One run: one point of an experiment, one seed, one engine.

use crate::{AirRow, FlowRow, Grade, MessageRow, RouterRow, SegmentRow, SeriesRow, StationRow, Trace};
use std::sync::Arc;

words! {
    /// Who computed or measured a run.
    pub enum Engine {
        /// Published closed forms.
        Predict = "predict",
        /// Packet-level discrete events.
        Simulate = "simulate",
        /// The Linux kernel's TCP over the same path elements.
        Emulate = "emulate",
        /// The Linux kernel's TCP over a real network.
        Measure = "measure",
    }
}

impl Engine {
    /// Whether its runs take as long as what they run.
    pub const fn in_real_time(self) -> bool {
        matches!(self, Engine::Emulate | Engine::Measure)
    }
}

table! {
    /// Where a run comes from: enough to make it again.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Provenance {
        /// Version of the program.
        pub version: String,
        /// The experiment file as given; the runs of a sweep share it.
        pub experiment: Arc<str>,
        /// `key=value` changes on top of it: overrides first, then the point's place in the sweep.
        pub changes: Vec<String>,
        /// The kernel whose TCP it is; empty where no kernel was asked.
        pub kernel: String,
        /// What hosts were told that they might have been told otherwise, a setting an entry.
        pub settings: Vec<String>,
        /// What a reader must know before the numbers are trusted.
        pub caveats: Vec<String>,
    }
}

table! {
    /// Which run: no two runs of an experiment share it. Every table begins with these columns.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct RunKey {
        /// Point of the sweep, from 0.
        pub point: u64,
        /// Who made the run: predict, simulate, emulate or measure.
        #[blank(Engine::Predict)]
        pub engine: Engine,
        /// Seed of the random elements; null for a prediction.
        pub seed: Option<u64>,
    }
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
    /// The stations of an air that others use too, one row per station.
    pub stations: Vec<StationRow>,
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
            stations: Vec::new(),
            provenance,
            grade: None,
        }
    }

    /// Which run it is.
    pub const fn key(&self) -> RunKey {
        RunKey { point: self.point, engine: self.engine, seed: self.seed }
    }
}
