//! Engines: a scenario in, a [`Run`](farpath_run::Run) out.
//!
//! Every engine returns the same tables, so that what comes after (a table, a plot, a claim check)
//! never knows which one made them. [`predict`](farpath_predict::predict) asks the closed forms, [`simulate`] runs
//! the event loop, [`emulate`](farpath_emulate::emulate()) asks the running kernel; [`run_all`] has them make the runs of an experiment.

mod batch;
mod capture_dir;
mod error;
mod foreign;
mod job;
mod preflight;
mod radius;
mod simulate;

pub use batch::{Extras, run_all, run_all_with, run_captured, run_one};
pub use capture_dir::CaptureDir;
pub use error::{EngineError, SimulateError};
pub use farpath_model::InputError as RadiusError;
pub use farpath_model::radius::{LIGHT_KM_PER_S, Race, Span};
pub use farpath_model::relay::{RelayRegion, beyond_relay, relay_region};
pub use farpath_observe::capture::{CaptureError, DEFAULT_SNAPLEN, MAX_CAPTURES};
pub use farpath_observe::provenance;
pub use farpath_observe::row_budget::MAX_ROWS;
pub use farpath_sim::ResendCause;
pub use job::{Job, jobs};
pub use preflight::can_all_be_answered;
pub use radius::{
    CheckedRadius, CheckedShare, Counts, Gap, GapKind, KernelRadii, Measurement, Radius, RadiusKind, Reach,
    UnderLoss, Way, check_radius, check_under_loss, gaps, longest_gap, measure_radii, radii,
    radii_under_loss,
};
pub use simulate::{simulate, simulate_captured, simulate_watched};
