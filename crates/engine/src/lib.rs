//! Engines: a scenario in, a [`Run`] out.
//!
//! Every engine returns the same tables, so that what comes after (a table, a plot, a claim check)
//! never knows which one made them. [`predict`] asks the closed forms, [`simulate`] runs the event
//! loop, [`emulate`] asks the running kernel.

mod batch;
mod beforehand;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "captures of real packets"))]
mod capture;
#[cfg_attr(not(target_os = "linux"), path = "emulate/elsewhere.rs")]
mod emulate;
mod path_view;
mod predict;
mod progress;
mod radius;
mod record;
#[cfg(target_os = "linux")]
mod series;
mod simulate;
#[cfg(target_os = "linux")]
mod tap;
#[cfg(target_os = "linux")]
mod watch;

pub use batch::{Extras, Job, jobs, run_all, run_all_with};
pub use beforehand::can_be_emulated;
pub use capture::{CaptureDir, CaptureError, DEFAULT_SNAPLEN, MAX_CAPTURES};
pub use emulate::{emulate, may_emulate};
pub use farpath_model::InputError as RadiusError;
pub use farpath_model::radius::{LIGHT_KM_PER_S, Race, Span};
pub use farpath_model::relay::{RelayRegion, beyond_relay, relay_region};
pub use path_view::PathView;
pub use predict::{effective_window, predict, stream_loss};
pub use progress::{Now, Progress};
pub use radius::{
    CheckedRadius, Counts, KernelRadii, Measurement, Radius, RadiusKind, Reach, Silence, Way, check_radius,
    listening, measure_radii, opening, radii,
};
#[cfg(target_os = "linux")]
pub use series::Series;
pub use simulate::{simulate, simulate_captured, simulate_watched};

use farpath_experiment::{Experiment, Point};
use farpath_run::{Provenance, Run, Trace};

/// The most flows that one emulation has: each has two programs of its own.
pub const MAX_EMULATED_FLOWS: usize = 500;

/// Why an engine has no answer for a scenario that the experiment's checks let through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The path cannot be built.
    #[error("path: {0}")]
    Path(#[from] farpath_path::SpecError),
    /// A closed form has no answer for these inputs: a defect, since an experiment is checked before it is run.
    #[error("no closed form applies: {0}")]
    Model(#[from] farpath_model::InputError),
    /// The packets of a run cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A host cannot be made.
    #[error(transparent)]
    Host(#[from] farpath_emu::HostError),
    /// The path between hosts cannot be made or kept going.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Emulation(#[from] farpath_emu::EmuError),
    /// A program at one end of a flow cannot begin.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Traffic(#[from] farpath_traffic::PrepareError),
    /// What a kernel counts cannot be read.
    #[error("cannot read what the kernel counts: {0}")]
    Counters(std::io::Error),
    /// More programs than a machine runs side by side.
    #[error("{0} flows; an emulation has {MAX_EMULATED_FLOWS} at most, as each has two programs of its own")]
    TooManyFlows(usize),
    /// More than a machine shall hold.
    #[error(
        "the path could come to hold {needed} of packets; emulate.memory: expected at least that, found {memory}: allow \
         more, or lower the rate, the delay or the window"
    )]
    Memory {
        /// At the most.
        needed: farpath_units::Bytes,
        /// Allowed.
        memory: farpath_units::Bytes,
    },
    /// A host that would have to be two.
    #[error(
        "data goes both ways, and `sender` and `receiver` differ: a host of an emulation has one stack; give both the same"
    )]
    TwoStacks,
    /// An engine that this version names and does not have.
    #[error("the `{0}` engine is not part of this version; there are `predict`, `simulate` and `emulate`")]
    NotBuilt(farpath_run::Engine),
}

/// Where the runs of a point come from; an engine adds its caveats.
pub fn provenance(experiment: &Experiment, point: &Point) -> Provenance {
    let overrides = experiment.overrides.iter().map(|change| change.text().to_owned());
    let swept = point.swept.iter().map(|(key, value)| format!("{key}={value}"));
    Provenance {
        experiment: experiment.text.clone(),
        changes: overrides.chain(swept).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: String::new(),
        settings: Vec::new(),
        caveats: point.scenario.warnings.clone(),
    }
}

/// An answer without its place in an experiment: what [`predict`] and [`simulate`] fill in.
fn empty_run(engine: farpath_run::Engine, point: &Point, seed: Option<u64>, provenance: Provenance) -> Run {
    let point = point.index as u64;
    Run {
        point,
        engine,
        seed,
        flows: Vec::new(),
        series: Trace::default(),
        segments: Trace::default(),
        messages: Trace::default(),
        provenance,
        grade: None,
    }
}
