//! Why a run is not made.

use farpath_emulate::EmulateError;
use farpath_experiment::{ForeignHost, KernelOnly, OverMemory, TcpOnly};
use farpath_observe::capture::CaptureError;
use farpath_predict::PredictError;

/// Why an engine has no answer for a scenario that the experiment's checks let through. Each engine says it by an error of its own.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no prediction.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// There is no simulation.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// There is no emulation.
    #[error(transparent)]
    Emulate(#[from] EmulateError),
    /// An end has what only a kernel runs, and an engine that asks none is wanted too.
    #[error(transparent)]
    KernelOnly(#[from] KernelOnly),
    /// A folder does not take the captures of a batch.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An engine that this version names and does not have.
    #[error("the `{0}` engine is not part of this version; there are `predict`, `simulate` and `emulate`")]
    NotBuilt(farpath_run::Engine),
}

/// Why a scenario is not simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The path cannot be built.
    #[error("path: {0}")]
    Path(#[from] farpath_elements::SpecError),
    /// The packets of a run cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// There is no capture of datagrams, and no observer of them.
    #[error(transparent)]
    TcpOnly(#[from] TcpOnly),
    /// A TCP of somebody else's stands at an end, and nobody can look into it.
    #[error(transparent)]
    ForeignHost(#[from] ForeignHost),
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
    KernelOnly(#[from] KernelOnly),
    /// More than a machine shall hold.
    #[error(transparent)]
    Memory(#[from] OverMemory),
}
