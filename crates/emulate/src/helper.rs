//! Emulation by a helper: this program in a process of its own, which enters a user namespace.
//!
//! A process without privileges may make hosts in a user namespace alone, and one of several threads cannot enter it:
//! where this library is loaded by another program, such as an interpreter, there are threads, and who it is within that
//! program is not ours to change. A helper makes one run, just as this process would.

use crate::EmulateError;
use crate::real_time::may_emulate;
use crate::run::EmulatedRun;
use crate::temporary::TemporaryFolder;
use crate::worker::{Task, WorkerJob, carry_out, error_left, leave_error, program, run_left};
use farpath_experiment::Experiment;
use farpath_run::Run;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What a helper is called by: a subcommand that is not for people, and its working directory.
const HELPER_COMMAND: &str = "helper";

const RESULTS: &str = "results";
const MESSAGES: &str = "messages.txt";

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether this process emulates by helpers.
static HELPED: AtomicBool = AtomicBool::new(false);

/// As [`may_emulate`], for a process of several threads, or one that shall stay who it is: without privileges it has each run
/// in real time made by a helper.
///
/// # Errors
/// Neither privileges nor a user namespace are to be had.
pub fn may_emulate_with_help() -> Result<(), EmulateError> {
    if !farpath_emu::has_privileges() && !is_helped() {
        send(&WorkerJob::idle(), &AtomicBool::new(false))?;
        HELPED.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Whether runs in real time are made by helpers.
pub(crate) fn is_helped() -> bool {
    HELPED.load(Ordering::Relaxed)
}

/// Has a helper make one run; `None` where `stop` was set before it was over.
pub(crate) fn by_helper(emulated: &EmulatedRun<'_>, stop: &AtomicBool) -> Result<Option<Run>, EmulateError> {
    let Some(work_dir) = send(&WorkerJob::new(emulated.experiment, Task::run(emulated))?, stop)? else {
        return Ok(None);
    };
    let run = run_left(&work_dir.path().join(RESULTS), emulated.capture)?;
    Ok(Some(run.ok_or_else(|| EmulateError::Helper("it left no results".to_owned()))?))
}

/// Whether a helper can make the hosts of these points.
pub(crate) fn preflight(experiment: &Experiment, points: &[usize]) -> Result<(), EmulateError> {
    let job = WorkerJob::new(experiment, Task::Preflight(points.to_vec()))?;
    send(&job, &AtomicBool::new(false)).map(drop)
}

/// Has a helper do something, and gives its working directory; `None` where it was stopped.
fn send(job: &WorkerJob, stop: &AtomicBool) -> Result<Option<TemporaryFolder>, EmulateError> {
    let work_dir = job.make_work_dir()?;
    let Some(status) = run(work_dir.path(), stop)? else { return Ok(None) };
    if let Some(error) = error_left(&work_dir.path().join(RESULTS)) {
        return Err(EmulateError::InHelper(error));
    }
    if !status.success() {
        let messages = fs::read_to_string(work_dir.path().join(MESSAGES)).unwrap_or_default();
        return Err(EmulateError::Helper(format!("{status}; {}", messages.trim())));
    }
    Ok(Some(work_dir))
}

fn run(work_dir: &Path, stop: &AtomicBool) -> Result<Option<ExitStatus>, EmulateError> {
    let mut program = program().map_err(EmulateError::WorkerFiles)?;
    let messages = File::create_new(work_dir.join(MESSAGES)).map_err(EmulateError::WorkerFiles)?;
    program.arg(HELPER_COMMAND).arg(work_dir).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(messages);
    // Ctrl-C is for this process, which looks whether to stop.
    let mut helper = program.process_group(0).spawn().map_err(|source| {
        let program = program.get_program().to_string_lossy().into_owned();
        EmulateError::HelperStart { program, source }
    })?;
    // Its other end is seen to be gone when this process is, however it ends.
    let _lifeline = helper.stdin.take();
    loop {
        // It is a child, for which nobody else waits.
        if let Some(status) = helper.try_wait().expect("a child of this process") {
            return Ok(Some(status));
        }
        if stop.load(Ordering::Relaxed) {
            // It may have come to its end in the meantime.
            let _ = helper.kill().and_then(|()| helper.wait());
            return Ok(None);
        }
        sleep();
    }
}

#[expect(clippy::disallowed_methods, reason = "a helper is waited for in real time")]
fn sleep() {
    thread::sleep(LOOK_EVERY);
}

/// Does the job in `work_dir`. To be called before any thread is started.
///
/// # Errors
/// It cannot even say that something went wrong.
pub fn helper(work_dir: &Path) -> Result<(), EmulateError> {
    let out = work_dir.join(RESULTS);
    let done = may_emulate().and_then(|()| {
        let work_dir_left = work_dir.to_owned();
        thread::spawn(move || {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            // Nobody else is there to do it.
            let _ = fs::remove_dir_all(work_dir_left);
            process::exit(1);
        });
        carry_out(work_dir, &out)
    });
    done.or_else(|error| leave_error(&out, &error))
}
