//! Engines: a scenario in, a [`Run`](farpath_run::Run) out.
//!
//! Every engine returns the same tables, so that what comes after (a table, a plot, a claim check)
//! never knows which one made them. [`predict`](farpath_predict::predict) asks the closed forms, [`simulate`] runs
//! the event loop, [`emulate`](farpath_emulate::emulate()) asks the running kernel; [`run_all`] has them make the runs of an experiment.

mod batch;
mod capture_dir;
mod foreign;
mod job;
mod preflight;
mod radius;
mod simulate;

pub use batch::{Extras, run_all, run_all_with, run_captured, run_one};
pub use capture_dir::CaptureDir;
pub use farpath_model::InputError as RadiusError;
pub use farpath_model::radius::{LIGHT_KM_PER_S, Race, Span};
pub use farpath_model::relay::{RelayRegion, beyond_relay, relay_region};
pub use farpath_observe::capture::{CaptureError, DEFAULT_SNAPLEN, MAX_CAPTURES};
pub use farpath_observe::provenance;
pub use farpath_observe::room::MAX_ROWS;
pub use farpath_sim::ResendCause;
pub use job::{Job, jobs};
pub use preflight::can_all_be_answered;
pub use radius::{
    CheckedRadius, CheckedShare, Counts, Gap, GapKind, KernelRadii, Measurement, Radius, RadiusKind, Reach,
    UnderLoss, Way, check_radius, check_under_loss, gaps, longest_gap, measure_radii, radii,
    radii_under_loss,
};
pub use simulate::{simulate, simulate_captured, simulate_watched};

/// Why an engine has no answer for a scenario that the experiment's checks let through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The path cannot be built.
    #[error("path: {0}")]
    Path(#[from] farpath_elements::SpecError),
    /// There is no prediction.
    #[error(transparent)]
    Predict(#[from] farpath_predict::PredictError),
    /// A closed form has no answer for these inputs: a defect, since an experiment is checked before it is run.
    #[error("no closed form applies: {0}")]
    Model(#[from] farpath_model::InputError),
    /// The packets of a run cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// It knows no datagrams.
    #[error(transparent)]
    TcpOnly(#[from] farpath_experiment::TcpOnly),
    /// A TCP of somebody else's stands at an end, and is not asked by this engine.
    #[error(transparent)]
    ForeignHost(#[from] farpath_experiment::ForeignHost),
    /// A TCP of somebody else's is not there, or does not do as agreed.
    #[error("{at}: {source}")]
    Foreign {
        /// The key that names it.
        at: String,
        /// What is wrong.
        source: Box<farpath_foreign::HostError>,
    },
    /// An end has what only a kernel runs.
    #[error(transparent)]
    KernelOnly(#[from] farpath_experiment::KernelOnly),
    /// More than a machine shall hold.
    #[error(transparent)]
    Memory(#[from] farpath_experiment::OverMemory),
    /// There is no emulation.
    #[error(transparent)]
    Emulate(#[from] farpath_emulate::EmulateError),
    /// An engine that this version names and does not have.
    #[error("the `{0}` engine is not part of this version; there are `predict`, `simulate` and `emulate`")]
    NotBuilt(farpath_run::Engine),
}
