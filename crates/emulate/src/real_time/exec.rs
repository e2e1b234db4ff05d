//! The programs of an experiment on its path: `farpath exec`.

use super::connections::{Connection, Connections};
use super::grade::Before;
use super::held::{HostSockets, Looks};
use super::hosts::Hosts;
use super::program_recorder::ProgramRecorder;
use super::shell::{GIVE_UP_AFTER, LOOK, listens, names, nothing_listens};
use crate::EmulateError;
use crate::temporary::TemporaryFolder;
use crate::virtual_time::{exec_in_guest, kernel_of};
use crate::worker::run_left;
use farpath_emu::{Clock, Host, HostError, HostSettings, Program, ProgramSettings, exit_code};
use farpath_experiment::{Experiment, ProgramSpec, host_name};
use farpath_kernel::Kernel;
use farpath_observe::air;
use farpath_observe::capture::CaptureError;
use farpath_observe::explicit_rate::router_rows;
use farpath_observe::provenance;
use farpath_observe::row_budget::RowBudget;
use farpath_path::PerDirection;
use farpath_run::{Engine, ResultsDir, Run, RunKey, SeriesRow};
use farpath_units::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;

/// A run of an experiment's programs.
#[derive(Debug, Clone, Copy)]
pub struct ExecRun<'a> {
    /// The experiment, with its programs.
    pub experiment: &'a Experiment,
    /// Which of its points.
    pub point: usize,
    /// Of all that the path draws.
    pub seed: u64,
    /// Hosts are configured like the experiment's stacks; else they are as this kernel makes them.
    pub like_stacks: bool,
    /// The folder for what the programs print, and for the capture; `None` where nobody wants it.
    pub folder: Option<&'a Path>,
    /// So many bytes of each packet are captured.
    pub snaplen: Option<u32>,
    /// Series are recorded.
    pub series: bool,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// What the experiment calls it.
    pub name: String,
    /// `near` or `far`.
    pub host: String,
    /// When it was started, in ns from the run's beginning; `None` where it was not.
    pub start_ns: Option<u64>,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// What it exited with, as a shell has it; `None` where it was ended because the run was over.
    pub code: Option<u8>,
    /// Why it was not started.
    pub refused: Option<String>,
    /// It was to run until all others had ended.
    pub background: bool,
    /// The last lines of its error output, where it did not succeed.
    pub said: String,
}

impl ProgramEnd {
    /// Whether it did what it was to do: it ended by itself with 0, or was there until the end.
    pub fn succeeded(&self) -> bool {
        self.refused.is_none() && (self.code == Some(0) || (self.code.is_none() && self.background))
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecEnd {
    /// Which point of the experiment.
    pub point: usize,
    /// Its seed.
    pub seed: u64,
    /// The kernel of both hosts.
    pub kernel: String,
    /// The programs, in the order of the file.
    pub programs: Vec<ProgramEnd>,
    /// The connections that were seen on the path, in the order of their first packets.
    pub connections: Vec<Connection>,
    /// Packets of connections beyond those that are told apart.
    pub unlisted_packets: u64,
    /// Programs still ran at the horizon, and were ended.
    pub ended_by_horizon: bool,
    /// How late packets were handed over: the median, the 99th percentile, the worst, in ns.
    pub late_ns: [u64; 3],
    /// Packets that the hosts' devices have dropped, beside the path.
    pub dropped_outside: u64,
    /// From the run's beginning to its end, in ns of the hosts' clock.
    pub elapsed_ns: u64,
}

/// What a guest is told of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecTask {
    pub(crate) point: usize,
    pub(crate) seed: u64,
    like_stacks: bool,
    environment: Vec<(OsString, OsString)>,
    snaplen: Option<u32>,
    series: bool,
}

/// The file in which a guest leaves what came of it.
const END: &str = "exec.json";
/// The file of the packets.
pub const CAPTURE_FILE: &str = "capture.pcapng";

/// Runs an experiment's programs once: on the running kernel in real time or, where the experiment says so, on a kernel in virtual time.
/// `None` where `stop` was set before they ended. Its results have a row for each connection.
///
/// # Errors
/// When there are no privileges for it, a file cannot be read or written, or the path comes to an end.
pub fn exec(run: &ExecRun<'_>, stop: &AtomicBool) -> Result<Option<(ExecEnd, Run)>, EmulateError> {
    let temporary = match run.folder {
        Some(_) => None,
        None => Some(TemporaryFolder::new().map_err(EmulateError::WorkerFiles)?),
    };
    let folder = run.folder.or(temporary.as_ref().map(TemporaryFolder::path)).expect("one of them");
    let scenario = &run.experiment.point(run.point).scenario;
    let done = match kernel_of(scenario)? {
        None => run_here(run, folder, stop, None)?,
        Some(kernel) => run_there(run, folder, &kernel, stop)?,
    };
    let Some((mut end, results)) = done else { return Ok(None) };
    for (program, spec) in end.programs.iter_mut().zip(&scenario.programs) {
        if !program.succeeded() {
            let [_, errors] = printed_files(spec);
            program.said = last_lines(&fs::read(folder.join(errors)).unwrap_or_default());
        }
    }
    Ok(Some((end, results)))
}

/// Lines of a failed program's error output that are shown.
const LINES: usize = 5;

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Runs them in a guest, and takes what it has left.
fn run_there(
    run: &ExecRun<'_>,
    folder: &Path,
    kernel: &Kernel,
    stop: &AtomicBool,
) -> Result<Option<(ExecEnd, Run)>, EmulateError> {
    let task = ExecTask {
        point: run.point,
        seed: run.seed,
        like_stacks: run.like_stacks,
        environment: std::env::vars_os().collect(),
        snaplen: run.snaplen,
        series: run.series,
    };
    let Some(left) = exec_in_guest(run.experiment, task, kernel, stop)? else { return Ok(None) };
    let text = fs::read(left.path().join(END)).map_err(EmulateError::WorkerFiles)?;
    let mut end: ExecEnd = serde_json::from_slice(&text).expect("it was written by the same program");
    let mut results = run_left(left.path(), None)?.expect("it is written before the other");
    // Its release does not tell its ticks, and timers go by these.
    end.kernel = crate::virtual_time::name(kernel);
    results.provenance.kernel.clone_from(&end.kernel);
    let scenario = &run.experiment.point(run.point).scenario;
    let printed = scenario.programs.iter().flat_map(printed_files);
    for file in printed.chain(run.snaplen.map(|_| CAPTURE_FILE.to_owned())) {
        let from = left.path().join(&file);
        // A program that was not started has printed nothing.
        if from.exists() {
            fs::copy(from, folder.join(file)).map_err(EmulateError::WorkerFiles)?;
        }
    }
    Ok(Some((end, results)))
}

/// In a guest: runs them, and leaves what came of it in `out`.
pub(crate) fn carry_out_exec(
    experiment: &Experiment,
    task: &ExecTask,
    out: &Path,
) -> Result<(), EmulateError> {
    let ExecTask { point, seed, like_stacks, environment, snaplen, series } = task;
    let run = ExecRun {
        experiment,
        point: *point,
        seed: *seed,
        like_stacks: *like_stacks,
        folder: None,
        snaplen: *snaplen,
        series: *series,
    };
    let mut results = ResultsDir::create(out)?;
    let done = run_here(&run, out, &AtomicBool::new(false), Some(environment))?;
    let (end, of_run) = done.expect("nobody stops it");
    results.append(&of_run)?;
    results.finish(true)?;
    fs::write(out.join(END), serde_json::to_vec(&end).expect("plain data")).map_err(EmulateError::WorkerFiles)
}

/// The files with what a program prints: its output and its error output.
fn printed_files(program: &ProgramSpec) -> [String; 2] {
    ["stdout", "stderr"].map(|kind| format!("{}.{kind}", program.name))
}

fn run_here(
    run: &ExecRun<'_>,
    folder: &Path,
    stop: &AtomicBool,
    environment: Option<&[(OsString, OsString)]>,
) -> Result<Option<(ExecEnd, Run)>, EmulateError> {
    let point = run.experiment.point(run.point);
    let scenario = &point.scenario;
    let mut provenance = provenance(run.experiment, &point);
    let (hosts, clamp, _controls) =
        Hosts::for_programs(scenario, HostSettings::near(), run.like_stacks, &mut provenance)?;
    let before = Before::count_from_here(&hosts)?;
    let file = run.snaplen.map(|_| File::create(folder.join(CAPTURE_FILE)));
    let file = file.transpose().map_err(CaptureError::from)?;
    let capture = file.as_ref().zip(run.snaplen);
    let capture = capture.map(|(file, snaplen)| super::tape(file, snaplen, &point, run.seed, &provenance));
    let row_budget = run.series.then(|| RowBudget::for_run(scenario));
    let sockets = HostSockets::open(&hosts, scenario, row_budget.as_ref()).map_err(EmulateError::Sockets)?;
    // In virtual time each look of a thread's own would end a jump of the clock.
    let (at_times, at_packets) =
        if environment.is_none() { (Some(sockets), None) } else { (None, Some(sockets)) };
    let mut watch = ProgramRecorder::new(capture.transpose()?)
        .with_connections(Connections::new(row_budget.clone()))
        .with_sockets(at_packets);
    let clock = super::start_clock(scenario);
    let environment = environment.map(<[_]>::to_vec).unwrap_or_else(|| std::env::vars_os().collect());
    let (report, (ended, over_at, looks)) =
        super::carry(scenario, run.seed, &hosts, clamp, clock, &mut watch, |done| {
            let stage = Stage {
                hosts: &hosts,
                clock,
                environment: &environment,
                folder,
                over: &[stop, done],
                look: super::look_every(scenario),
            };
            let looks = at_times.map(|sockets| Looks::start(sockets, clock));
            (stage.play(&scenario.programs, scenario.horizon), clock.now(), looks)
        })?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let (programs, ended_by_horizon) = ended?;
    let (mut found, unlisted_packets) = watch.finish()?;
    if let Some(looks) = looks {
        let sockets = looks.and_then(Looks::end).map_err(EmulateError::Sockets)?;
        HostSockets::enter(sockets, &mut found);
    }
    let key = RunKey { point: run.point as u64, engine: Engine::Emulate, seed: Some(run.seed) };
    let mut results = Run::new(key, provenance);
    let mut grade = before.grade(&hosts, &report, &before.counted(&hosts)?, None, scenario)?;
    // Of programs nothing is withdrawn: what they did and printed is kept, and so is what their packets tell.
    results.provenance.caveats.extend(grade.void.take());
    results.provenance.caveats.extend(row_budget.and_then(|row_budget| row_budget.caveat()));
    results.provenance.caveats.extend(air::given_up(&report.elements));
    air::record(&mut results, &report.air);
    results.grade = Some(grade);
    let end = ExecEnd {
        point: run.point,
        seed: run.seed,
        kernel: results.provenance.kernel.clone(),
        programs,
        connections: found.iter().map(|found| found.connection.clone()).collect(),
        unlisted_packets,
        ended_by_horizon,
        late_ns: super::late_ns(&report),
        dropped_outside: super::dropped_outside(&hosts)?,
        elapsed_ns: over_at.as_nanos(),
    };
    results.routers = router_rows(report.elements);
    let mut series: Vec<SeriesRow> = Vec::new();
    for found in found {
        results.flows.push(found.row);
        series.extend(found.series);
    }
    series.sort_by_key(|row| row.time);
    results.series = series.into();
    Ok(Some((end, results)))
}

/// Where programs run.
struct Stage<'a> {
    hosts: &'a PerDirection<Host>,
    clock: Clock,
    environment: &'a [(OsString, OsString)],
    folder: &'a Path,
    over: &'a [&'a AtomicBool],
    look: Duration,
}

/// The programs that run. None of them outlives a run that fails.
struct Running(Vec<Option<Arc<Program>>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.iter().flatten().for_each(|program| program.kill());
    }
}

/// A program that has ended, and how.
type Ended = (usize, Instant, io::Result<ExitStatus>);

/// Whether a program can be started.
enum Readiness {
    Ready,
    Later,
    /// Why it never will be.
    Never(String),
}

fn due(spec: &ProgramSpec) -> Instant {
    Instant::ZERO + spec.start
}

impl Stage<'_> {
    /// Starts each program at its time, and ends those of the background when the others have ended. Whether the horizon ended them.
    fn play(
        &self,
        specs: &[ProgramSpec],
        horizon: Duration,
    ) -> Result<(Vec<ProgramEnd>, bool), EmulateError> {
        let mut ends: Vec<ProgramEnd> = specs.iter().map(not_started).collect();
        let mut running = Running(vec![None; specs.len()]);
        // In the order of their starts, those that are due first.
        let mut to_start: Vec<usize> = (0..specs.len()).collect();
        to_start.sort_by_key(|&index| specs[index].start);
        let (tell, told) = mpsc::channel();
        let horizon = Instant::from_nanos(horizon.as_nanos());
        let in_time = loop {
            let mut later = Vec::with_capacity(to_start.len());
            for index in to_start {
                match self.readiness(&specs[index])? {
                    Readiness::Ready => match self.start(index, &specs[index], &tell) {
                        Ok(program) => {
                            ends[index].start_ns = Some(self.clock.now().as_nanos());
                            running.0[index] = Some(program);
                        }
                        Err(error @ HostError::Program { .. }) => {
                            ends[index].refused = Some(error.to_string());
                        }
                        Err(error) => return Err(error.into()),
                    },
                    Readiness::Later => later.push(index),
                    Readiness::Never(why) => ends[index].refused = Some(why),
                }
            }
            to_start = later;
            let now = self.clock.now();
            let in_time = now < horizon;
            let over = self.over.iter().any(|over| over.load(Ordering::Relaxed));
            let goes_on = |index: usize| ends[index].end_ns.is_none() && ends[index].refused.is_none();
            if over || !in_time || !(0..specs.len()).any(|index| !specs[index].background && goes_on(index)) {
                break in_time;
            }
            // Who is due already waits for a port, at which nobody tells when something listens.
            let next_look = |&index: &usize| match due(&specs[index]) {
                due if due > now => due,
                _ => now + LOOK,
            };
            let next = to_start.iter().map(next_look).min().unwrap_or(horizon).min(horizon);
            self.note(&mut ends, &mut running, &told, next.saturating_since(now).min(self.look))?;
        };
        self.end_all(&mut ends, &mut running, &told)?;
        Ok((ends, !in_time))
    }

    fn readiness(&self, spec: &ProgramSpec) -> Result<Readiness, HostError> {
        let waited = match self.clock.now() {
            now if now < due(spec) => return Ok(Readiness::Later),
            now => now.saturating_since(due(spec)),
        };
        let Some(port) = spec.wait_for_port else { return Ok(Readiness::Ready) };
        let other = spec.host.opposite();
        Ok(match listens(&self.hosts[other], port)? {
            true => Readiness::Ready,
            false if waited < GIVE_UP_AFTER => Readiness::Later,
            false => {
                let why = nothing_listens(&self.hosts[other], host_name(other), port)?;
                Readiness::Never(format!("not started: {why}"))
            }
        })
    }

    /// Takes note of a program that ends within this time.
    fn note(
        &self,
        ends: &mut [ProgramEnd],
        running: &mut Running,
        told: &Receiver<Ended>,
        at_most: Duration,
    ) -> Result<(), EmulateError> {
        match told.recv_timeout(std::time::Duration::from_nanos(at_most.as_nanos())) {
            Ok((index, at, status)) => {
                running.0[index] = None;
                ends[index].end_ns = Some(at.as_nanos());
                ends[index].code = Some(exit_code(status.map_err(EmulateError::WorkerFiles)?));
                Ok(())
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Asks what still runs to end, and ends what does not within a second.
    fn end_all(
        &self,
        ends: &mut [ProgramEnd],
        running: &mut Running,
        told: &Receiver<Ended>,
    ) -> Result<(), EmulateError> {
        let asked: Vec<usize> = (0..running.0.len()).filter(|&index| running.0[index].is_some()).collect();
        for end in [Program::ask_to_end, Program::kill] {
            running.0.iter().flatten().for_each(|program| end(program));
            let until = self.clock.now() + Duration::from_secs(1);
            while running.0.iter().any(Option::is_some) && self.clock.now() < until {
                self.note(ends, running, told, until.saturating_since(self.clock.now()))?;
            }
        }
        // What it would have exited with by itself is not known.
        asked.into_iter().for_each(|index| ends[index].code = None);
        Ok(())
    }

    fn start(
        &self,
        index: usize,
        spec: &ProgramSpec,
        tell: &Sender<Ended>,
    ) -> Result<Arc<Program>, HostError> {
        let failed = |path: &Path| {
            let name = format!("{} ({})", spec.name, path.display());
            move |source| HostError::Program { name, source }
        };
        let input = match &spec.input {
            Some(path) => File::open(path).map_err(failed(path))?.into(),
            None => Stdio::null(),
        };
        let [output, errors] = printed_files(spec).map(|file| {
            let path = self.folder.join(file);
            File::create(&path).map(Stdio::from).map_err(failed(&path))
        });
        let own = spec.env.iter().map(|(name, value)| (name.into(), value.into()));
        let settings = ProgramSettings {
            command: spec.command.iter().map(OsString::from).collect(),
            names: names(),
            resolver: None,
            background: true,
            environment: Some(self.environment.iter().cloned().chain(own).collect()),
            folder: spec.cwd.clone(),
            stdio: Some([input, output?, errors?]),
        };
        let program = Arc::new(Program::start(&self.hosts[spec.host], settings)?);
        let (waits, tell, clock) = (Arc::clone(&program), tell.clone(), self.clock);
        // It ends when the program does, which is before the run is over.
        thread::spawn(move || {
            let status = waits.wait_to_its_end();
            // Nobody listens where the run has failed meanwhile.
            let _ = tell.send((index, clock.now(), status));
        });
        Ok(program)
    }
}

fn not_started(spec: &ProgramSpec) -> ProgramEnd {
    ProgramEnd {
        name: spec.name.clone(),
        host: host_name(spec.host).to_owned(),
        start_ns: None,
        end_ns: None,
        code: None,
        refused: None,
        background: spec.background,
        said: String::new(),
    }
}
