//! Packet scripts on a kernel: the running one's in real time, in a network namespace, or another's in virtual time.

mod device;
mod machine;
mod readiness;
mod wire;

pub use device::play_behind_device;

use crate::EngineError;
use crate::temporary::TemporaryFolder;
use crate::virtual_time::start_guest;
use crate::worker::{Task, WorkerJob};
use farpath_kernel::{Halt, Kernel};
use farpath_script::syntax::Script;
use farpath_script::{Comparison, Outcome, Verdict, parse};
use farpath_units::Duration;
use machine::play_in_namespace;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What is played in a guest: the texts of scripts, how often each, and how far times may differ.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScriptTask {
    texts: Vec<String>,
    tolerance_ns: Option<u64>,
    repetitions: u32,
}

/// What came of the repetitions of a script on a kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Repeated {
    /// Of the first one that did not pass, else of the last one.
    pub verdict: Verdict,
    /// How many passed.
    pub passed: u32,
}

const VERDICTS: &str = "verdicts.json";

/// Plays a script so often on the kernel that runs, each time in a namespace of its own, until it does not pass.
///
/// # Errors
/// This machine, or this user, makes no such namespace.
pub fn play_on_kernel(
    script: &Script,
    comparison: &Comparison,
    repetitions: u32,
) -> Result<Repeated, EngineError> {
    let mut passed = 0;
    loop {
        let verdict = play_in_namespace(script, comparison)?;
        let ok = verdict.outcome == Outcome::Passed;
        passed += u32::from(ok);
        if !ok || passed >= repetitions {
            return Ok(Repeated { verdict, passed });
        }
    }
}

/// Plays scripts in one guest on `kernel`, in virtual time. `give_up_after` is real time.
///
/// # Errors
/// The guest cannot be started, or dies.
pub fn play_in_virtual_time(
    texts: Vec<String>,
    comparison: &Comparison,
    repetitions: u32,
    kernel: &Kernel,
    give_up_after: std::time::Duration,
) -> Result<Vec<Repeated>, EngineError> {
    let tolerance_ns = comparison.tolerance.map(Duration::as_nanos);
    let task = Task::Scripts(ScriptTask { texts, tolerance_ns, repetitions });
    let (work_dir, ended): (TemporaryFolder, _) =
        start_guest(&WorkerJob::alone(task), give_up_after, kernel, &AtomicBool::new(false))?;
    match fs::read(work_dir.path().join(VERDICTS)) {
        Ok(bytes) if ended.halt == Halt::Off => serde_json::from_slice(&bytes)
            .map_err(|error| EngineError::WorkerFiles(std::io::Error::from(error))),
        _ => {
            let why = ended.why().unwrap_or_else(|| "the guest left no verdicts".to_owned());
            Err(EngineError::WorkerFiles(std::io::Error::other(why)))
        }
    }
}

/// In a guest: plays them, and leaves what came of it in `out`.
pub(crate) fn carry_out_scripts(task: &ScriptTask, out: &Path) -> Result<(), EngineError> {
    let comparison = Comparison { tolerance: task.tolerance_ns.map(Duration::from_nanos) };
    let mut verdicts = Vec::new();
    for text in &task.texts {
        let script = parse(text).expect("it was read before");
        verdicts.push(play_on_kernel(&script, &comparison, task.repetitions)?);
    }
    fs::write(out.join(VERDICTS), serde_json::to_vec(&verdicts).expect("plain data"))
        .map_err(EngineError::WorkerFiles)
}
