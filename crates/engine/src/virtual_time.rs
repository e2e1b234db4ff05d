//! `emulate` in virtual time: the same hosts, path and programs, in a user-mode kernel whose clock jumps over waits.
//!
//! A run has a machine of its own, so that it depends on its point and seed alone, and on what ran before it in nothing.
//! Its first process is this program again, which is told the run in a file and makes it just as in real time.

mod guest;

pub use guest::guest;

use crate::batch::Job;
use crate::capture::CaptureError;
use crate::{EngineError, Extras};
use farpath_experiment::{EmulationClock, Experiment, Scenario};
use farpath_kernel::{Boot, Ended, Halt, Kernel, Shelf};
use farpath_run::{FlowRow, Outcome, Results, Run};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What the program of a guest is called by: the one subcommand that is not for people.
pub const GUEST_COMMAND: &str = "guest";

/// Memory of a guest beside what the path may take, in MB. With less than 1024 Linux gives TCP smaller buffers.
const MEMORY_MB: u64 = 1024;

const PROGRAM: &str = "farpath";
const ORDER: &str = "order.json";
const CAPTURE: &str = "capture.pcapng";
const ERROR: &str = "error.txt";

/// A run, as the guest is told it.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// Where files that the experiment names are looked for.
    folder: PathBuf,
    /// The experiment, as it was read here.
    text: String,
    origin: String,
    overrides: Vec<String>,
    point: usize,
    seed: u64,
    /// Record everything, also where the experiment does not ask for it.
    trace: bool,
    /// Bytes of each packet to capture.
    snaplen: Option<u32>,
}

/// The kernel on which a scenario is emulated in virtual time; `None` for the running one.
pub(crate) fn kernel_of(scenario: &Scenario) -> Result<Option<Kernel>, EngineError> {
    match &scenario.emulate.clock {
        EmulationClock::Real => Ok(None),
        EmulationClock::Virtual(name) => Ok(Some(Shelf::of_user().find(name.as_deref())?)),
    }
}

/// Makes one run on `kernel`; `None` where `stop` was set before it was over.
pub(crate) fn in_guest(
    experiment: &Experiment,
    job: Job,
    seed: u64,
    kernel: &Kernel,
    stop: &AtomicBool,
    extras: Extras<'_>,
) -> Result<Option<Run>, EngineError> {
    let make = |capture: Option<(&File, u32)>| once(experiment, job, seed, kernel, stop, capture);
    match extras.captures {
        Some(folder) => {
            let captured = |out: &File, snaplen| make(Some((out, snaplen)));
            folder.write(job.engine, job.point, seed, captured, Option::is_some)
        }
        None => make(None),
    }
}

fn once(
    experiment: &Experiment,
    job: Job,
    seed: u64,
    kernel: &Kernel,
    stop: &AtomicBool,
    capture: Option<(&File, u32)>,
) -> Result<Option<Run>, EngineError> {
    let point = &experiment.points()[job.point];
    let scenario = &point.scenario;
    let room =
        tempfile::Builder::new().prefix("farpath-guest-").tempdir().map_err(EngineError::GuestFiles)?;
    let order = Order {
        folder: std::env::current_dir().map_err(EngineError::GuestFiles)?,
        text: experiment.text.to_string(),
        origin: experiment.origin.clone(),
        overrides: experiment.overrides.iter().map(|change| change.text().to_owned()).collect(),
        point: job.point,
        seed,
        trace: job.trace,
        snaplen: capture.map(|(_, snaplen)| snaplen),
    };
    furnish(room.path(), &order).map_err(EngineError::GuestFiles)?;
    let ended = Boot {
        kernel,
        room: room.path(),
        program: PROGRAM,
        command: GUEST_COMMAND,
        seed,
        memory_mb: MEMORY_MB + scenario.emulate.memory.0 / 1_000_000,
        patience: Duration::from_nanos(scenario.emulate.patience.as_nanos()),
    }
    .run(stop, |_| false)?;
    if ended.halt == Halt::Stopped {
        return Ok(None);
    }
    if let Ok(error) = fs::read_to_string(room.path().join(ERROR)) {
        return Err(EngineError::InGuest(error));
    }
    match taken_over(room.path(), capture)? {
        Some(run) => Ok(Some(run)),
        None => Ok(Some(void(experiment, job, kernel, &ended))),
    }
}

/// Puts into its room what a guest needs.
fn furnish(room: &Path, order: &Order) -> io::Result<()> {
    fs::write(room.join(ORDER), serde_json::to_vec(order).expect("plain data"))?;
    symlink(std::env::current_exe()?, room.join(PROGRAM))
}

/// The run that a guest left, and its capture.
fn taken_over(room: &Path, capture: Option<(&File, u32)>) -> Result<Option<Run>, EngineError> {
    let Ok(results) = Results::read(room) else { return Ok(None) };
    if let Some((mut out, _)) = capture {
        let copied = File::open(room.join(CAPTURE)).and_then(|mut file| io::copy(&mut file, &mut out));
        copied.map_err(CaptureError::from)?;
    }
    Ok(results.runs()?.pop())
}

/// The run of a guest that died: without numbers, and with what its console said last.
fn void(experiment: &Experiment, job: Job, kernel: &Kernel, ended: &Ended) -> Run {
    let point = &experiment.points()[job.point];
    let mut provenance = crate::provenance(experiment, point);
    provenance.kernel = format!("Linux {} ({})", kernel.about.release, kernel.about.name);
    let why = ended.why().unwrap_or_else(|| "the guest left no results".to_owned());
    let mut run = Run::new(job.key(), provenance);
    run.flows = (0..)
        .zip(&point.scenario.flows)
        .map(|(number, flow)| FlowRow {
            detail: why.clone(),
            ..FlowRow::new(number, flow.direction.name(), Outcome::Void, flow.size)
        })
        .collect();
    run
}
