//! Emulation in real time: the running Linux kernel's TCP over the path's own elements, in real time.
//!
//! Two hosts, each a network namespace configured like its stack; between them the path, told the time by a real
//! clock; in them two programs for each flow. Nothing of it outlives the process, and nothing of the machine is changed.

#[cfg_attr(not(feature = "driver"), path = "real_time/without_bpf.rs")]
mod bpf;
mod connections;
mod datagrams;
#[cfg_attr(not(feature = "driver"), path = "real_time/without_driver.rs")]
mod drivers;
mod exec;
mod grade;
mod held;
mod hosts;
mod program_recorder;
mod programs;
mod shell;

use crate::EmulateError;
use crate::preflight::can_be_emulated;
use crate::progress::Going;
pub use connections::{Connection, MAX_CONNECTIONS, Side};
use drivers::Drivers;
pub use exec::{CAPTURE_FILE, ExecEnd, ExecRun, ProgramEnd, exec};
pub(crate) use exec::{ExecTask, carry_out_exec};
use farpath_emu::{Clock, EmuError, Emulator, Host, HostError, LoopReport, Recorder, Settings};
use farpath_experiment::{EmulationClock, Point, Scenario, Transport};
use farpath_observe::air;
use farpath_observe::capture::{Capture, CaptureError};
use farpath_observe::explicit_rate::router_rows;
use farpath_observe::recorder::PacketRecorder;
use farpath_observe::row_budget::RowBudget;
use farpath_observe::series::Series;
use farpath_path::{Direction, PerDirection};
use farpath_run::{Engine, FlowRow, Outcome, Provenance, Run, RunKey, StreamFigures};
use farpath_units::{Bytes, Duration};
use grade::Before;
pub use held::{Held, MAX_WATCHED, look as socket_look};
use hosts::Hosts;
pub use hosts::can_run_programs;
pub use hosts::kernel as kernel_release;
use programs::Programs;
pub(crate) use programs::socket_options;
pub use shell::{ShellEnd, ShellError, ShellRun, ShellSettings, may_uplink, shell};
pub(crate) use shell::{ShellTask, carry_out_shell, read_shell_end};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Seek};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What came of asking for a rate, in a few words, and the rate in force at the end.
type Granted = (Option<Cow<'static, str>>, Option<f64>);

/// Whether this process may emulate, and what helps where it may not. A process without privileges enters a user
/// namespace of its own for it: call it before any thread is started.
///
/// # Errors
/// Neither privileges nor a user namespace are to be had, or there are other threads already.
pub fn may_emulate() -> Result<(), EmulateError> {
    Ok(farpath_emu::enter_user_namespace()?)
}

/// Emulates one point with one seed, again where the machine was not in time; `None` where `stop` was set before it was
/// over.
pub fn emulate(
    point: &Point,
    seed: u64,
    provenance: Provenance,
    stop: &AtomicBool,
) -> Result<Option<Run>, EmulateError> {
    until_in_time(point, seed, provenance, stop, &Going::new(&point.scenario), None)
}

/// The same, seen from elsewhere while it goes on; with `capture` its packets are written to that file as pcapng: the
/// first so many bytes of each, as they were.
pub(crate) fn until_in_time(
    point: &Point,
    seed: u64,
    provenance: Provenance,
    stop: &AtomicBool,
    going: &Going,
    capture: Option<(&File, u32)>,
) -> Result<Option<Run>, EmulateError> {
    can_be_emulated(point)?;
    if capture.is_some() {
        point.scenario.needs_tcp_alone("a capture")?;
    }
    let options = &point.scenario.emulate;
    let mut attempts = 0;
    loop {
        attempts += 1;
        going.begin();
        let mut run = match point.scenario.transport {
            Transport::Tcp => once(point, seed, provenance.clone(), stop, going, capture)?,
            Transport::Udp => datagrams::once(point, seed, provenance.clone(), stop, going)?,
        };
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let grade = run.grade.as_mut().expect("a run in real time is graded");
        grade.attempts = attempts;
        if grade.void.is_none() {
            return Ok(Some(run));
        }
        if attempts > options.repeats {
            withdraw(&mut run, &point.scenario);
            return Ok(Some(run));
        }
    }
}

/// Whether the hosts and programs of a scenario can be made here: all that a run begins with.
pub(crate) fn can_be_prepared(scenario: &Scenario) -> Result<(), EmulateError> {
    let hosts = Hosts::configured(scenario)?;
    if scenario.transport == Transport::Udp {
        return datagrams::can_be_prepared(scenario, &hosts);
    }
    let drivers = Drivers::attach(scenario, &hosts)?;
    Programs::prepare(scenario, &hosts, &drivers, look_every(scenario), &RowBudget::for_run(scenario))
        .map(drop)
}

/// Takes back what a run says: the machine did not keep up, and the numbers are the machine's.
fn withdraw(run: &mut Run, scenario: &Scenario) {
    (run.series, run.segments, run.messages) = Default::default();
    let flows = scenario.flows.iter().zip(&run.flows);
    run.flows = flows
        .map(|(spec, row)| FlowRow {
            start: row.start,
            detail: "the machine was not in time".to_owned(),
            ..FlowRow::new(row.flow, row.direction, Outcome::Void, spec.size)
        })
        .collect();
}

fn once(
    point: &Point,
    seed: u64,
    mut provenance: Provenance,
    stop: &AtomicBool,
    going: &Going,
    capture: Option<(&File, u32)>,
) -> Result<Run, EmulateError> {
    let scenario = &point.scenario;
    let hosts = Hosts::configured(scenario)?;
    let drivers = Drivers::attach(scenario, &hosts)?;
    let row_budget = RowBudget::for_run(scenario);
    let programs = Programs::prepare(scenario, &hosts, &drivers, look_every(scenario), &row_budget)?;
    let before = Before::count_from_here(&hosts.of)?;
    hosts.enter(&mut provenance);
    let capture = capture.map(|(file, snaplen)| tape(file, snaplen, point, seed, &provenance)).transpose()?;
    let mut recording =
        PacketRecorder::new(&hosts.ports(&scenario.flows), scenario.output, &row_budget, capture);
    for (number, flow) in (0..).zip(&scenario.flows) {
        if let Some(stream) = flow.stream {
            recording.stamp(number, stream.messages);
        }
    }
    let clock = start_clock(scenario);
    let clamp = hosts.clamp();
    let (loop_report, ends) = carry(scenario, seed, &hosts.of, clamp, clock, &mut recording, |done| {
        programs.run(clock, &[stop, done], going)
    })?;

    let key = RunKey { point: point.index as u64, engine: Engine::Emulate, seed: Some(seed) };
    let mut run = Run::new(key, provenance);
    let counted = before.counted(&hosts.of)?;
    let waited = ends.iter().filter_map(|ends| ends.processor_wait()).reduce(f64::max);
    run.grade = Some(before.grade(&hosts.of, &loop_report, &counted, waited, scenario)?);
    air::record(&mut run, &loop_report.air);
    run.provenance.caveats.extend(air::given_up(&loop_report.elements));
    let granted = drivers.granted(scenario, &hosts)?;
    for (number, (spec, ends)) in (0..).zip(scenario.flows.iter().zip(&ends)) {
        let mut row = ends.row(number, spec, recording.opened(number));
        recording.counts(number).enter(&mut row);
        row.delays = recording.delays(number);
        ends.enter(&mut row);
        (row.explicit_rate, row.granted_bit_per_s) = granted[number as usize].clone();
        if let Some(stream) = spec.stream {
            let rows = ends.messages(number, &stream.messages, recording.sent(number));
            row.stream = StreamFigures::from_rows(&rows, &stream.messages, stream.playout);
            if scenario.output.messages {
                run.messages.extend(rows);
            }
        }
        // What the kernel counts is of all its flows: of one flow only where there is one.
        if scenario.flows.len() == 1 {
            counted.enter(spec.direction, &mut row);
        }
        run.flows.push(row);
    }
    run.routers = router_rows(loop_report.elements);
    let queues;
    (run.segments, queues) = recording.finish()?;
    if scenario.output.series {
        run.series =
            Series::merged(ends.into_iter().flat_map(|ends| ends.series).flatten().chain(queues)).into();
    }
    run.provenance.caveats.extend(row_budget.caveat());
    Ok(run)
}

/// Carries packets between the hosts while `programs` run; they are told when there is no path any more. Gives
/// what the loop says, and what they do.
fn carry<T>(
    scenario: &Scenario,
    seed: u64,
    hosts: &PerDirection<Host>,
    clamp: PerDirection<Option<Bytes>>,
    clock: Clock,
    recorder: &mut (impl Recorder + Send),
    programs: impl FnOnce(&AtomicBool) -> T,
) -> Result<(LoopReport, T), EmulateError> {
    let settings = Settings {
        look_every: look_every(scenario),
        coalesce: scenario.emulate.coalesce,
        realtime: true,
        stands: scenario.emulate.clock != EmulationClock::Real,
        memory: scenario.emulate.memory,
        clamp,
    };
    let [near, far] = Direction::BOTH.map(|direction| hosts[direction].port());
    let mut emulator = Emulator::new(&scenario.path, seed, settings, near, far, clock)?;
    let done = AtomicBool::new(false);
    let (report, ends) = thread::scope(|scope| {
        let path = scope.spawn(|| {
            let report = emulator.run(&done, recorder);
            // Without a path nobody gets anywhere.
            if report.is_err() {
                done.store(true, Ordering::Relaxed);
            }
            report
        });
        // Also where a program panics: the path would wait for ever for more.
        let over = SetWhenDropped(&done);
        let ends = programs(&done);
        drop(over);
        let report: Result<LoopReport, EmuError> =
            path.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        (report, ends)
    });
    Ok((report?, ends))
}

/// How late packets were handed over: the median, the 99th percentile, the worst, in ns.
fn late_ns(report: &LoopReport) -> [u64; 3] {
    let late = report.lateness.forward.merged(&report.lateness.reverse);
    [late.percentile(50), late.percentile(99), late.max()].map(Duration::as_nanos)
}

/// Packets that the hosts' devices have dropped, beside the path.
fn dropped_outside(hosts: &PerDirection<Host>) -> Result<u64, HostError> {
    Direction::BOTH.into_iter().map(|way| Ok(hosts[way].dropped()?.total())).sum()
}

/// A clock that begins with what it is to measure.
fn start_clock(scenario: &Scenario) -> Clock {
    match scenario.emulate.clock {
        EmulationClock::Real => Clock::start(),
        EmulationClock::Virtual(_) => Clock::start_with_the_ticks(),
    }
}

/// How often it is looked whether to stop. A guest is stopped from outside, each look takes real time, and waits do not.
fn look_every(scenario: &Scenario) -> Duration {
    match scenario.emulate.clock {
        EmulationClock::Real => Duration::from_millis(20),
        EmulationClock::Virtual(_) => Duration::from_secs(3600),
    }
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Begins a capture, anew where there is one of a run that was not in time.
fn tape<'f>(
    mut file: &'f File,
    snaplen: u32,
    point: &Point,
    seed: u64,
    provenance: &Provenance,
) -> Result<Capture<BufWriter<&'f File>>, CaptureError> {
    file.rewind()?;
    file.set_len(0)?;
    Capture::new(BufWriter::new(file), snaplen, point, seed, provenance)
}
