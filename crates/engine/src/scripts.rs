//! Packet scripts on a kernel: the running one's in real time, in a network namespace, or another's in virtual time.

mod machine;

use crate::EngineError;
use crate::temporary::TemporaryFolder;
use crate::virtual_time::start_guest;
use crate::worker::{Task, WorkerJob};
use farpath_kernel::{Halt, Kernel};
use farpath_script::syntax::{Place, Script, Way};
use farpath_script::{Comparison, Fault, Outcome, Shown, Verdict, parse};
use farpath_units::Duration;
use machine::play_in_namespace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
#[derive(Debug, Clone)]
pub struct Repeated {
    /// Of the first one that did not pass, else of the last one.
    pub verdict: Verdict,
    /// How many passed.
    pub passed: u32,
}

const VERDICTS: &str = "verdicts.json";

/// A verdict as a guest leaves it.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    outcome: u8,
    line: u32,
    column: u32,
    expected: String,
    found: String,
    segments: Vec<(u64, bool, String, bool)>,
    printed: String,
    duration_ns: u64,
    passed: u32,
}

impl Told {
    fn new(repeated: &Repeated) -> Told {
        let Repeated { verdict, passed } = repeated;
        let (outcome, fault) = match &verdict.outcome {
            Outcome::Passed => (0, None),
            Outcome::Failed(fault) => (1, Some(fault.clone())),
            Outcome::CannotRun(fault) => (2, Some(fault.clone())),
        };
        let place = fault.as_ref().map_or(Place::default(), |fault| fault.place);
        let (expected, found) = fault.map(|fault| (fault.expected, fault.found)).unwrap_or_default();
        let shown =
            |shown: &Shown| (shown.at.as_nanos(), shown.way == Way::In, shown.text.clone(), shown.fault);
        Told {
            outcome,
            line: place.line,
            column: place.column,
            expected,
            found,
            segments: verdict.segments.iter().map(shown).collect(),
            printed: verdict.printed.clone(),
            duration_ns: verdict.duration.as_nanos(),
            passed: *passed,
        }
    }

    fn read(self) -> Repeated {
        let place = Place { line: self.line, column: self.column };
        let fault = Fault { place, expected: self.expected, found: self.found };
        let shown = |(at, is_in, text, fault)| Shown {
            at: Duration::from_nanos(at),
            way: if is_in { Way::In } else { Way::Out },
            text,
            fault,
        };
        Repeated {
            verdict: Verdict {
                outcome: match self.outcome {
                    0 => Outcome::Passed,
                    1 => Outcome::Failed(fault),
                    _ => Outcome::CannotRun(fault),
                },
                segments: self.segments.into_iter().map(shown).collect(),
                printed: self.printed,
                duration: Duration::from_nanos(self.duration_ns),
                came: BTreeMap::new(),
            },
            passed: self.passed,
        }
    }
}

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

/// Plays scripts in one guest on `kernel`, in virtual time. `patience` is real time.
///
/// # Errors
/// The guest cannot be started, or dies.
pub fn play_in_virtual_time(
    texts: Vec<String>,
    comparison: &Comparison,
    repetitions: u32,
    kernel: &Kernel,
    patience: std::time::Duration,
) -> Result<Vec<Repeated>, EngineError> {
    let tolerance_ns = comparison.tolerance.map(Duration::as_nanos);
    let task = Task::Scripts(ScriptTask { texts, tolerance_ns, repetitions });
    let (work_dir, ended): (TemporaryFolder, _) =
        start_guest(&WorkerJob::alone(task), patience, kernel, &AtomicBool::new(false))?;
    match fs::read(work_dir.path().join(VERDICTS)) {
        Ok(bytes) if ended.halt == Halt::Off => {
            let told: Vec<Told> = serde_json::from_slice(&bytes)
                .map_err(|error| EngineError::WorkerFiles(std::io::Error::from(error)))?;
            Ok(told.into_iter().map(Told::read).collect())
        }
        _ => {
            let why = ended.why().unwrap_or_else(|| "the guest left no verdicts".to_owned());
            Err(EngineError::WorkerFiles(std::io::Error::other(why)))
        }
    }
}

/// In a guest: plays them, and leaves what came of it in `out`.
pub(crate) fn carry_out_scripts(task: &ScriptTask, out: &Path) -> Result<(), EngineError> {
    let comparison = Comparison { tolerance: task.tolerance_ns.map(Duration::from_nanos) };
    let mut told = Vec::new();
    for text in &task.texts {
        let script = parse(text).expect("it was read before");
        told.push(Told::new(&play_on_kernel(&script, &comparison, task.repetitions)?));
    }
    fs::write(out.join(VERDICTS), serde_json::to_vec(&told).expect("plain data"))
        .map_err(EngineError::WorkerFiles)
}
