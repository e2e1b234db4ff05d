//! ns-3 on this machine: found, our program compiled against it, run, and what it prints read.

use crate::trace::{Place, Trace, Traced};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules of ns-3 that the program needs.
const MODULES: [&str; 5] = ["core", "network", "internet", "point-to-point", "traffic-control"];

/// What is compiled. It is part of the repository.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ns3/transfer.cc");

/// Which build of ns-3 the numbers are from. Its headers do not say; its CMake profile is `release`.
pub const BUILD: &str = "ns-3 3.44, the wheel from PyPI (assertions and logging are compiled in)";

/// Why there is no ns-3 to ask.
#[derive(Debug, thiserror::Error)]
pub enum Ns3Error {
    /// It was not installed, or elsewhere.
    #[error(
        "no ns-3 under {}: `make ns3` installs it from PyPI with python3 and its venv module ({source})",
        folder.display()
    )]
    Absent {
        /// Where it was looked for.
        folder: PathBuf,
        /// What looking gave.
        source: io::Error,
    },
    /// No compiler, or one that cannot be started.
    #[error("{program} cannot be run: {source}")]
    Start {
        /// What was to be run.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The compiler, or ns-3 itself, gave up.
    #[error("{program} failed: {said}")]
    Failed {
        /// What was run.
        program: String,
        /// The end of what it printed.
        said: String,
    },
    /// What it printed is not what the program prints.
    #[error("ns-3 printed `{0}`, which is no line of ours")]
    Line(String),
}

/// A compiled program to ask.
#[derive(Debug, Clone)]
pub struct Ns3 {
    program: PathBuf,
}

/// One run of ns-3.
#[derive(Debug, Clone, Default)]
pub struct Ns3Run {
    /// When the last byte was read, ns; `None` where not all of them were.
    pub ended_at: Option<u64>,
    /// Bytes read, of all flows.
    pub bytes_read: u64,
    /// Segments with payload sent.
    pub data_segments: u64,
    /// Of these, sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Events of its scheduler.
    pub events: u64,
    /// CPU time of the simulation proper, without start-up, in seconds.
    pub cpu_s: f64,
    /// Every segment, where it was asked for.
    pub trace: Trace,
}

impl Ns3 {
    /// Compiles the program, unless that was done, with what is installed in the virtual environment `folder`.
    ///
    /// # Errors
    /// ns-3 is not there, or there is no compiler, or it fails.
    pub fn set_up(folder: &Path) -> Result<Ns3, Ns3Error> {
        let package =
            find_package(folder).map_err(|source| Ns3Error::Absent { folder: folder.to_owned(), source })?;
        let program = folder.join("farpath-transfer");
        if !is_newer(&program, Path::new(SOURCE)) {
            compile(&package, &program)?;
        }
        Ok(Ns3 { program })
    }

    /// Runs it: one [`Ns3Run`] per seed.
    ///
    /// # Errors
    /// It cannot be started, ends in an assertion, or prints what we do not know.
    pub fn run(&self, arguments: &[String]) -> Result<Vec<Ns3Run>, Ns3Error> {
        let name = || format!("{} {}", self.program.display(), arguments.join(" "));
        let output = Command::new(&self.program)
            .args(arguments)
            .output()
            .map_err(|source| Ns3Error::Start { program: name(), source })?;
        if !output.status.success() {
            return Err(Ns3Error::Failed { program: name(), said: end_of(&output.stderr) });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut runs = Vec::new();
        let mut trace = Trace::default();
        for line in text.lines() {
            let known = read_line(line, &mut runs, &mut trace);
            known.ok_or_else(|| Ns3Error::Line(line.to_owned()))?;
        }
        Ok(runs)
    }
}

fn read_line(line: &str, runs: &mut Vec<Ns3Run>, trace: &mut Trace) -> Option<()> {
    let mut words = line.split_whitespace();
    match words.next()? {
        "run" => {
            let _seed = words.next()?;
            let ended_at: i64 = words.next()?.parse().ok()?;
            let mut count = || words.next()?.parse().ok();
            runs.push(Ns3Run {
                ended_at: u64::try_from(ended_at).ok(),
                bytes_read: count()?,
                data_segments: count()?,
                retransmissions: count()?,
                timeouts: count()?,
                events: count()?,
                cpu_s: words.next()?.parse().ok()?,
                trace: core::mem::take(trace),
            });
        }
        "segment" => {
            let place = match (words.next()?, words.next()?) {
                ("A", "s") => Place::SentBySender,
                ("B", "r") => Place::ReceivedByReceiver,
                ("B", "s") => Place::SentByReceiver,
                ("A", "r") => Place::ReceivedBySender,
                _ => return None,
            };
            let mut number = || words.next()?.parse::<i64>().ok();
            trace.push(
                place,
                Traced {
                    time_ns: u64::try_from(number()?).ok()?,
                    position: u32::try_from(number()?).ok()?,
                    len: u32::try_from(number()?).ok()?,
                    syn: number()? == 1,
                    ack: u32::try_from(number()?).ok(),
                },
            );
        }
        _ => return None,
    }
    Some(())
}

/// The folder of the wheel within a virtual environment; its path names the version of Python.
fn find_package(folder: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(folder.join("lib"))? {
        let package = entry?.path().join("site-packages/ns3");
        if package.is_dir() {
            return Ok(package);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the environment has no package `ns3`"))
}

fn is_newer(program: &Path, source: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    matches!((modified(program), modified(source)), (Ok(built), Ok(written)) if built >= written)
}

fn compile(package: &Path, program: &Path) -> Result<(), Ns3Error> {
    let (headers, libraries) = (package.join("include"), package.join("lib64"));
    let output = Command::new("g++")
        .args(["-std=c++20", "-O3", "-DNS3_ASSERT_ENABLE", "-DNS3_LOG_ENABLE", "-I"])
        .arg(headers)
        .arg(SOURCE)
        .arg("-o")
        .arg(program)
        .arg("-L")
        .arg(&libraries)
        .args(MODULES.map(|module| format!("-l:libns3.44-{module}.so")))
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .output()
        .map_err(|source| Ns3Error::Start { program: "g++".to_owned(), source })?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Ns3Error::Failed { program: "g++".to_owned(), said: end_of(&output.stderr) })
    }
}

/// The last of what a program complained about.
fn end_of(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(5)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_strange_ones_are_not() {
        let (mut runs, mut trace) = (Vec::new(), Trace::default());
        read_line("segment A s 336 1 1460 0 1", &mut runs, &mut trace).expect("a segment");
        read_line("run 1 45807845632 10000000 6850 2 1 44455 0.05", &mut runs, &mut trace).expect("a run");
        assert_eq!(runs.len(), 1);
        assert_eq!(
            (runs[0].ended_at, runs[0].retransmissions, runs[0].timeouts),
            (Some(45_807_845_632), 2, 1)
        );
        assert_eq!(runs[0].trace.seen_at(Place::SentBySender)[0].len, 1460);
        read_line("run 2 -1 10 1 0 0 5 0.0", &mut runs, &mut trace).expect("one that did not end");
        assert_eq!(runs[1].ended_at, None);
        assert!(
            runs[1].trace.seen_at(Place::SentBySender).is_empty(),
            "segments belong to the run that follows"
        );
        for strange in ["", "segment C s 1 1 1 0 1", "run 1", "assert failed"] {
            assert_eq!(read_line(strange, &mut runs, &mut trace), None, "{strange}");
        }
    }

    #[test]
    fn what_is_not_installed_is_said_by_name() {
        let error = Ns3::set_up(Path::new("nowhere/at/all")).expect_err("there is none");
        assert!(
            error.to_string().contains("nowhere/at/all") && error.to_string().contains("make ns3"),
            "{error}"
        );
    }
}
