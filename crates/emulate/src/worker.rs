//! What another process of this program is told to do, and what it leaves: the first process of a guest, or a helper. It is
//! told in a folder that both can see, its working directory.

use crate::EmulateError;
use crate::progress::Going;
use crate::real_time::{ExecTask, ShellTask, can_be_prepared, carry_out_exec, carry_out_shell};
use crate::run::EmulatedRun;
use crate::scripts::{ScriptTask, carry_out_scripts};
use crate::temporary::TemporaryFolder;
use crate::virtual_time::Console;
use farpath_experiment::{Experiment, Override};
use farpath_kernel::guest::make_root_writable;
use farpath_observe::capture::CaptureError;
use farpath_run::{Results, ResultsDir, Run};
use serde::{Deserialize, Serialize};
use std::env;
use std::error::Error;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// This program, within a working directory.
pub(crate) const PROGRAM: &str = "farpath";
const JOB: &str = "job.json";
const CAPTURE: &str = "capture.pcapng";
const ERROR: &str = "error.json";

/// This program as text of an interpreter, where the program that runs is another one which has loaded this library.
#[derive(Debug)]
pub(crate) struct Interpreted {
    interpreter: Vec<String>,
    code: String,
}

static INTERPRETED: OnceLock<Interpreted> = OnceLock::new();

/// Has this program started as `code`, which an interpreter with its options takes from a file or behind `-c`, in place of the
/// program that runs; the first one counts.
pub fn start_program_by(interpreter: Vec<String>, code: String) {
    INTERPRETED.get_or_init(|| Interpreted { interpreter, code });
}

/// This program, to be given its arguments.
pub(crate) fn program() -> io::Result<Command> {
    Ok(match INTERPRETED.get() {
        Some(Interpreted { interpreter, code }) => {
            let mut command = Command::new(&interpreter[0]);
            command.args(&interpreter[1..]).args(["-c", code]);
            command
        }
        None => Command::new(env::current_exe()?),
    })
}

/// Everything that is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerJob {
    /// Where files that the experiment names are looked for.
    folder: PathBuf,
    /// The experiment, as it was read here.
    text: String,
    origin: String,
    overrides: Vec<String>,
    task: Task,
}

/// What shall be done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Make a run.
    Run {
        point: usize,
        seed: u64,
        /// Record everything, also where the experiment does not ask for it.
        trace: bool,
        /// Bytes of each packet to capture.
        snaplen: Option<u32>,
    },
    /// Make the hosts of these points, and leave it at that.
    Preflight(Vec<usize>),
    /// Play packet scripts.
    Scripts(ScriptTask),
    /// Run programs of the user.
    Shell(ShellTask),
    /// Run the programs of an experiment.
    Exec(ExecTask),
    /// Nothing: it came up.
    Nothing,
}

impl Task {
    /// Make this run. Where its capture is to be is known here alone.
    pub(crate) fn run(run: &EmulatedRun<'_>) -> Task {
        let EmulatedRun { point, seed, trace, capture, .. } = *run;
        Task::Run { point, seed, trace, snaplen: capture.map(|(_, snaplen)| snaplen) }
    }
}

impl WorkerJob {
    pub(crate) fn new(experiment: &Experiment, task: Task) -> Result<WorkerJob, EmulateError> {
        Ok(WorkerJob {
            folder: env::current_dir().map_err(EmulateError::WorkerFiles)?,
            text: experiment.text.to_string(),
            origin: experiment.origin.clone(),
            overrides: experiment.overrides.iter().map(|change| change.text().to_owned()).collect(),
            task,
        })
    }

    /// To come up.
    pub(crate) fn idle() -> WorkerJob {
        WorkerJob::alone(Task::Nothing)
    }

    /// A task that needs no experiment.
    pub(crate) fn alone(task: Task) -> WorkerJob {
        WorkerJob {
            folder: PathBuf::from("/"),
            text: String::new(),
            origin: String::new(),
            overrides: Vec::new(),
            task,
        }
    }

    /// A working directory with the job in it, and with the program.
    pub(crate) fn make_work_dir(&self) -> Result<TemporaryFolder, EmulateError> {
        let furnished = || {
            let work_dir = TemporaryFolder::new()?;
            let at = |name: &str| work_dir.path().join(name);
            fs::write(at(JOB), serde_json::to_vec(self).expect("plain data"))?;
            match INTERPRETED.get() {
                Some(Interpreted { interpreter, code }) => {
                    fs::write(at(PROGRAM), format!("#!{}\n{code}", interpreter.join(" ")))?;
                    fs::set_permissions(at(PROGRAM), Permissions::from_mode(0o755))?;
                }
                None => symlink(env::current_exe()?, at(PROGRAM))?,
            }
            Ok(work_dir)
        };
        furnished().map_err(EmulateError::WorkerFiles)
    }
}

/// Does the job in `work_dir`, and leaves what comes of it in `out`.
pub(crate) fn carry_out(work_dir: &Path, out: &Path) -> Result<(), EmulateError> {
    let text = fs::read(work_dir.join(JOB)).map_err(EmulateError::WorkerFiles)?;
    let job: WorkerJob = serde_json::from_slice(&text).expect("a job is written by the same program");
    fs::create_dir_all(out).map_err(EmulateError::WorkerFiles)?;
    env::set_current_dir(&job.folder).map_err(EmulateError::WorkerFiles)?;
    match job.task {
        Task::Run { point, seed, trace, snaplen } => run(&read(&job)?, point, seed, trace, snaplen, out),
        Task::Preflight(ref points) => {
            let experiment = read(&job)?;
            points.iter().try_for_each(|&point| can_be_prepared(&experiment.point(point).scenario))
        }
        Task::Scripts(ref task) => carry_out_scripts(task),
        Task::Shell(ref task) => {
            let experiment = read(&job)?;
            // Before it, nothing is written: files are this machine's.
            let console = Console::open().map_err(EmulateError::WorkerFiles)?;
            writable(&job)?;
            Ok(carry_out_shell(&experiment, task, &console, &out.join(CAPTURE), out).map_err(Box::new)?)
        }
        Task::Exec(ref task) => {
            let experiment = read(&job)?;
            writable(&job)?;
            carry_out_exec(&experiment, task, out)
        }
        Task::Nothing => Ok(()),
    }
}

/// Lets programs of the user write, and goes to their folder.
fn writable(job: &WorkerJob) -> Result<(), EmulateError> {
    make_root_writable()?;
    env::set_current_dir(&job.folder).map_err(EmulateError::WorkerFiles)
}

fn read(job: &WorkerJob) -> Result<Experiment, EmulateError> {
    let overrides: Vec<Override> =
        job.overrides.iter().map(|text| text.parse().expect("it was parsed before")).collect();
    let parsed = Experiment::parse(&job.text, &job.origin, &overrides);
    parsed.map_err(|error| EmulateError::Experiment(Box::new(error)))
}

fn run(
    experiment: &Experiment,
    point: usize,
    seed: u64,
    trace: bool,
    snaplen: Option<u32>,
    out: &Path,
) -> Result<(), EmulateError> {
    let mut results = ResultsDir::create(out)?;
    // It is read again where it is begun anew.
    let file =
        snaplen.map(|_| File::create_new(out.join(CAPTURE))).transpose().map_err(CaptureError::from)?;
    let run = EmulatedRun { experiment, point, seed, trace, capture: file.as_ref().zip(snaplen) };
    let going = Going::new(&experiment.point(point).scenario);
    let run = run.make_here(&AtomicBool::new(false), &going)?;
    results.append(&run.expect("nobody stops it"))?;
    Ok(results.finish(true)?)
}

/// The run that was left in `out`, and its capture; `None` where there is none.
pub(crate) fn run_left(out: &Path, capture: Option<(&File, u32)>) -> Result<Option<Run>, EmulateError> {
    let Ok(results) = Results::read(out) else { return Ok(None) };
    capture_left(out, capture)?;
    Ok(results.runs()?.pop())
}

/// Takes the capture that was left in `out`.
pub(crate) fn capture_left(out: &Path, capture: Option<(&File, u32)>) -> Result<(), CaptureError> {
    let Some((mut to, _)) = capture else { return Ok(()) };
    File::open(out.join(CAPTURE)).and_then(|mut file| io::copy(&mut file, &mut to))?;
    Ok(())
}

/// Leaves an error in `out`, beside whatever is there: it counts before results.
pub(crate) fn leave_error(out: &Path, error: &EmulateError) -> Result<(), EmulateError> {
    // That it is not there is seen when it is written to.
    let _ = fs::create_dir_all(out);
    let links = serde_json::to_vec(&links(error)).expect("plain data");
    fs::write(out.join(ERROR), links).map_err(EmulateError::WorkerFiles)
}

/// The error that was left in `out`.
pub(crate) fn error_left(out: &Path) -> Option<ElsewhereError> {
    let links = serde_json::from_slice(&fs::read(out.join(ERROR)).ok()?).ok()?;
    chain(links)
}

/// An error of another process, with what caused it there.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct ElsewhereError {
    text: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What an error or a cause of it says, and its number where it is the system's.
type Link = (String, Option<i32>);

fn links(error: &EmulateError) -> Vec<Link> {
    let first: &(dyn Error + 'static) = error;
    let number = |error: &(dyn Error + 'static)| error.downcast_ref::<io::Error>()?.raw_os_error();
    std::iter::successors(Some(first), |&error| error.source())
        .map(|error| (error.to_string(), number(error)))
        .collect()
}

fn chain(links: Vec<Link>) -> Option<ElsewhereError> {
    let mut links = links.into_iter();
    let (text, _) = links.next()?;
    let source = links.rev().fold(None, |source, (text, number)| -> Option<Box<dyn Error + Send + Sync>> {
        Some(match number {
            Some(number) => io::Error::from_raw_os_error(number).into(),
            None => ElsewhereError { text, source }.into(),
        })
    });
    Some(ElsewhereError { text, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_emu::HostError;

    #[test]
    fn an_error_of_another_process_keeps_its_causes() {
        let source = io::Error::from_raw_os_error(1);
        let denied = HostError::Kernel { what: "make a network namespace".to_owned(), help: "", source };
        let error = EmulateError::from(denied);
        let work_dir = tempfile::tempdir().expect("a folder");
        let out = work_dir.path().join("out");
        assert!(error_left(&out).is_none());
        leave_error(&out, &error).expect("writable");
        let told = error_left(&out).expect("it is there");
        assert_eq!(told.to_string(), error.to_string());
        let cause = told.source().expect("a cause").downcast_ref::<io::Error>().expect("the system's");
        assert_eq!(cause.raw_os_error(), Some(1));
    }
}
