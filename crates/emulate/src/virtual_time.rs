//! `emulate` in virtual time: the same hosts, path and programs, in a user-mode kernel whose clock jumps over waits.
//!
//! A run has a machine of its own, so that it depends on its point and seed alone, and on what ran before it in nothing.
//! Its first process is this program again, which is told the run in a file and makes it just as in real time.

mod console;
mod guest;

pub(crate) use console::Console;
pub use console::Stream;
pub use guest::guest;

use crate::EmulateError;
use crate::real_time::{ExecTask, ShellEnd, ShellError, ShellTask, read_shell_end};
use crate::run::EmulatedRun;
use crate::temporary::TemporaryFolder;
use crate::worker::{PROGRAM, Task, WorkerJob, capture_left, error_left, run_left};
use farpath_experiment::{EmulateOptions, EmulationClock, Experiment, Scenario};
use farpath_kernel::{Boot, Catalog, Ended, Halt, Kernel};
use farpath_observe::provenance;
use farpath_run::{Engine, FlowRow, Outcome, Run, RunKey};
use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What the program of a guest is called by: the one subcommand that is not for people.
const GUEST_COMMAND: &str = "guest";

/// Memory of a guest beside what the path may take, in MB. With less than 1024 Linux gives TCP smaller buffers.
const MEMORY_MB: u64 = 1024;

/// How long a kernel may take to come up, where nothing else is asked of it.
const GIVE_UP_AFTER: farpath_units::Duration = farpath_units::Duration::from_secs(30);

/// The kernel on which a scenario is emulated in virtual time; `None` for the running one.
pub(crate) fn kernel_of(scenario: &Scenario) -> Result<Option<Kernel>, EmulateError> {
    match &scenario.emulate.clock {
        EmulationClock::Real => Ok(None),
        EmulationClock::Virtual(name) => Ok(Some(Catalog::of_user().find(name.as_deref())?)),
    }
}

/// By its release and its name.
pub(crate) fn name(kernel: &Kernel) -> String {
    format!("Linux {} ({})", kernel.about.release, kernel.about.name)
}

/// Makes one run on `kernel`; `None` where `stop` was set before it was over.
pub(crate) fn in_guest(
    emulated: &EmulatedRun<'_>,
    kernel: &Kernel,
    stop: &AtomicBool,
) -> Result<Option<Run>, EmulateError> {
    let EmulatedRun { experiment, point, seed, capture, .. } = *emulated;
    let options = &experiment.point(point).scenario.emulate;
    let worker_job = WorkerJob::new(experiment, Task::run(emulated))?;
    let (work_dir, ended) = boot(&worker_job, options, seed, kernel, stop, no_output)?;
    if ended.halt == Halt::Stopped {
        return Ok(None);
    }
    match run_left(work_dir.path(), capture)? {
        Some(mut run) => {
            // Its release does not tell its ticks, and timers go by these.
            run.provenance.kernel = name(kernel);
            Ok(Some(run))
        }
        None => Ok(Some(void(emulated, kernel, &ended))),
    }
}

/// Whether hosts can be made on `kernel` for these points.
pub(crate) fn preflight(
    experiment: &Experiment,
    points: &[usize],
    kernel: &Kernel,
) -> Result<(), EmulateError> {
    let first = experiment.point(points[0]);
    let options = &first.scenario.emulate;
    let job = WorkerJob::new(experiment, Task::Preflight(points.to_vec()))?;
    // A guest that dies or hangs is told of where it would have made a run: it is no fault of the experiment.
    boot(&job, options, 0, kernel, &AtomicBool::new(false), no_output).map(drop)
}

/// Whether `kernel` runs on this machine: it is started, and switches itself off again.
///
/// # Errors
/// It cannot be started.
pub fn kernel_runs(kernel: &Kernel) -> Result<Ended, EmulateError> {
    let options = EmulateOptions { give_up_after: GIVE_UP_AFTER, ..EmulateOptions::default() };
    Ok(boot(&WorkerJob::idle(), &options, 0, kernel, &AtomicBool::new(false), no_output)?.1)
}

/// Has a guest do something, in a working directory of its own.
fn boot(
    job: &WorkerJob,
    options: &EmulateOptions,
    seed: u64,
    kernel: &Kernel,
    stop: &AtomicBool,
    output: impl FnMut(Stream, &[u8]),
) -> Result<(TemporaryFolder, Ended), EmulateError> {
    let memory_mb = MEMORY_MB + options.memory.0 / 1_000_000;
    let give_up_after = Duration::from_nanos(options.give_up_after.as_nanos());
    start(job, Guest { memory_mb, cpu_cost: options.cpu_cost, give_up_after }, seed, kernel, stop, output)
}

/// For a guest without programs of the user.
fn no_output(_: Stream, _: &[u8]) {}

/// Runs programs of the user in a guest; `None` where `stop` was set before they ended. What they write goes to `output` as they write it.
pub(crate) fn shell_in_guest(
    experiment: &Experiment,
    task: ShellTask,
    kernel: &Kernel,
    stop: &AtomicBool,
    capture: Option<(&File, u32)>,
    output: impl FnMut(Stream, &[u8]),
) -> Result<Option<ShellEnd>, ShellError> {
    let options = &experiment.point(task.point).scenario.emulate;
    let seed = task.seed;
    let job = WorkerJob::new(experiment, Task::Shell(task))?;
    let (work_dir, ended) = boot(&job, options, seed, kernel, stop, output)?;
    if ended.halt == Halt::Stopped {
        return Ok(None);
    }
    let Some(end) = read_shell_end(work_dir.path()) else {
        let why = ended.why().unwrap_or_else(|| "the guest left no results".to_owned());
        return Err(ShellError::Guest(why));
    };
    capture_left(work_dir.path(), capture).map_err(EmulateError::from)?;
    Ok(Some(end))
}

/// Runs the programs of an experiment in a guest. Gives the folder with what it has left; `None` where `stop` was set before they ended.
pub(crate) fn exec_in_guest(
    experiment: &Experiment,
    task: ExecTask,
    kernel: &Kernel,
    stop: &AtomicBool,
) -> Result<Option<TemporaryFolder>, EmulateError> {
    let options = &experiment.point(task.point).scenario.emulate;
    let seed = task.seed;
    let job = WorkerJob::new(experiment, Task::Exec(task))?;
    let (work_dir, ended) = boot(&job, options, seed, kernel, stop, no_output)?;
    match ended.halt {
        Halt::Stopped => Ok(None),
        Halt::Off => Ok(Some(work_dir)),
        Halt::Hung | Halt::Died(_) => {
            let why = ended.why().expect("it was not switched off");
            Err(Box::new(ShellError::Guest(why)).into())
        }
    }
}

/// Has a guest do something that is no experiment's.
pub(crate) fn start_guest(
    job: &WorkerJob,
    give_up_after: Duration,
    seed: u64,
    kernel: &Kernel,
    stop: &AtomicBool,
    output: impl FnMut(Stream, &[u8]),
) -> Result<(TemporaryFolder, Ended), EmulateError> {
    start(job, Guest { memory_mb: MEMORY_MB, cpu_cost: 0.0, give_up_after }, seed, kernel, stop, output)
}

/// What a guest has and may, as [`Boot`] says.
struct Guest {
    memory_mb: u64,
    cpu_cost: f64,
    give_up_after: Duration,
}

fn start(
    job: &WorkerJob,
    Guest { memory_mb, cpu_cost, give_up_after }: Guest,
    seed: u64,
    kernel: &Kernel,
    stop: &AtomicBool,
    mut output: impl FnMut(Stream, &[u8]),
) -> Result<(TemporaryFolder, Ended), EmulateError> {
    let work_dir = job.make_work_dir()?;
    let ended = Boot {
        kernel,
        work_dir: work_dir.path(),
        program: PROGRAM,
        command: GUEST_COMMAND,
        seed,
        memory_mb,
        cpu_cost,
        give_up_after,
    }
    .run(stop, |line| console::take(line, &mut output))?;
    match error_left(work_dir.path()) {
        Some(error) => Err(EmulateError::InGuest(error)),
        None => Ok((work_dir, ended)),
    }
}

/// The run of a guest that died: without numbers, and with what its console said last.
fn void(emulated: &EmulatedRun<'_>, kernel: &Kernel, ended: &Ended) -> Run {
    let EmulatedRun { experiment, point, seed, .. } = *emulated;
    let point = &experiment.point(point);
    let mut provenance = provenance(experiment, point);
    provenance.kernel = name(kernel);
    let why = ended.why().unwrap_or_else(|| "the guest left no results".to_owned());
    let key = RunKey { point: point.index as u64, engine: Engine::Emulate, seed: Some(seed) };
    let mut run = Run::new(key, provenance);
    run.flows = (0..)
        .zip(&point.scenario.flows)
        .map(|(number, flow)| FlowRow {
            detail: why.clone(),
            ..FlowRow::new(number, flow.direction.name(), Outcome::Void, flow.size)
        })
        .collect();
    run
}
