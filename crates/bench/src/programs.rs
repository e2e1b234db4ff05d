//! What programs of the user cost in virtual time.

use crate::clock::cpu_of_children;
use crate::figure::{Figure, Target};
use farpath_emulate::{ExecRun, ProgramEnd, ShellRun, ShellSettings, exec, shell};
use farpath_engine::{jobs, run_one};
use farpath_experiment::Experiment;
use farpath_run::{Engine, FlowRow, Outcome, Run};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;

const REPETITIONS: usize = 3;
/// An hour alone is less than what the start of a guest varies by.
const HOURS: u32 = 100;
/// What transfers are compared by, in MB: what the longer one takes more is not the start of a guest, nor of a program.
const SIZES: [u64; 2] = [1, 41];
/// Bytes that a program writes or reads at once: a whole number of them is a MB.
const PIECE: usize = 62_500;
/// Where [`sink`] listens.
const PORT: u16 = 7000;

/// Measures, and tells each figure when it is known.
///
/// # Errors
/// A program did not come to its end.
pub fn measure(mut told: impl FnMut(Figure)) -> Result<(), Box<dyn Error>> {
    let has_kernel = farpath_kernel::Catalog::of_user().find(None).is_ok();
    if !has_kernel {
        eprintln!("bench: PROGRAMS IN VIRTUAL TIME ARE NOT MEASURED: `farpath kernel build` makes a kernel");
    }
    let of =
        |measure: fn() -> Result<Option<f64>, Box<dyn Error>>| if has_kernel { measure() } else { Ok(None) };
    told(Figure {
        name: "a program idle for an hour of virtual time".to_owned(),
        value: of(idle_hour)?,
        unit: "ms",
        target: Target::AtMost(10.0),
    });
    let own = of(|| packet(transfer))?;
    let with_programs = of(|| packet(programs))?;
    let mut packet = |name: &str, value, unit| {
        told(Figure { name: format!("a packet in virtual time, {name}"), value, unit, target: Target::None });
    };
    packet("of a transfer", own, "us");
    packet("of programs", with_programs, "us");
    packet("of programs to of a transfer", with_programs.zip(own).map(|(one, other)| one / other), "times");
    Ok(())
}

/// The program that receives: it reads what comes until its end, or it cannot.
///
/// # Errors
/// Nobody can listen, or the connection breaks.
pub fn sink() -> io::Result<()> {
    let (mut from, _) = TcpListener::bind(("0.0.0.0", PORT))?.accept()?;
    let mut room = vec![0; PIECE];
    while from.read(&mut room)? > 0 {}
    Ok(())
}

/// The program that sends so many MB.
///
/// # Errors
/// Nobody listens, or the connection breaks.
pub fn source(megabytes: u64) -> io::Result<()> {
    let mut to = TcpStream::connect(("10.0.0.2", PORT))?;
    (0..megabytes * 1_000_000 / PIECE as u64).try_for_each(|_| to.write_all(&[0; PIECE]))
}

/// Processor time of a packet, in us: what the longer transfer takes more, at their quickest, by its packets.
fn packet(run: fn(u64) -> Result<Run, Box<dyn Error>>) -> Result<Option<f64>, Box<dyn Error>> {
    let mut best = [f64::MAX; 2];
    let mut packets = [0.0; 2];
    for _ in 0..REPETITIONS {
        for (place, megabytes) in SIZES.into_iter().enumerate() {
            let before = cpu_of_children();
            let run = run(megabytes)?;
            let Some(cpu) = cpu_of_children().zip(before).map(|(after, before)| after - before) else {
                return Ok(None);
            };
            let carried = |flow: &&FlowRow| flow.bytes_read.0 == megabytes * 1_000_000;
            let flow = run.flows.iter().find(carried).filter(|flow| flow.outcome == Outcome::Completed);
            let flow = flow.ok_or_else(|| format!("{megabytes} MB were not carried: {:?}", run.flows))?;
            best[place] = best[place].min(cpu);
            packets[place] = [flow.data_segments, flow.pure_acks].into_iter().flatten().sum();
        }
    }
    Ok(Some((best[1] - best[0]) / (packets[1] - packets[0]) * 1e6))
}

/// A transfer of our own.
fn transfer(megabytes: u64) -> Result<Run, Box<dyn Error>> {
    let experiment = experiment(&format!("transfer = {{ size = \"{megabytes} MB\" }}"))?;
    let job = jobs(&experiment, &[Engine::Emulate])[0];
    Ok(run_one(&experiment, job, &AtomicBool::new(false))?.expect("nobody stops it"))
}

/// The same between two programs of the user, on hosts that are configured as those are.
fn programs(megabytes: u64) -> Result<Run, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let experiment = experiment(&format!(
        "program = [{{ host = \"far\", command = [{program:?}, \"--sink\"] }}, \
                    {{ wait_for_port = {PORT}, command = [{program:?}, \"--source\", \"{megabytes}\"] }}]"
    ))?;
    let run = ExecRun {
        experiment: &experiment,
        point: 0,
        seed: 1,
        like_stacks: true,
        folder: None,
        snaplen: None,
        series: false,
    };
    let (end, run) = exec(&run, &AtomicBool::new(false))?.expect("nobody stops it");
    if let Some(failed) = end.programs.iter().find(|program| !ProgramEnd::succeeded(program)) {
        return Err(format!("{failed:?}").into());
    }
    Ok(run)
}

/// A path of 100 Mbit/s in virtual time, and what goes over it.
fn experiment(what: &str) -> Result<Experiment, Box<dyn Error>> {
    let text = format!(
        "title = \"in virtual time\"\nemulate.clock = \"virtual\"\n{what}\n\
        path = [{{ element = \"link\", rate = \"100 Mbit/s\", queue = \"1 MB\" }}, {{ element = \"delay\", delay = \"5 ms\" }}]\n"
    );
    Ok(Experiment::parse(&text, "bench", &[])?)
}

/// Processor time of an hour, in ms: many hours less one second, at their quickest.
fn idle_hour() -> Result<Option<f64>, Box<dyn Error>> {
    let mut best = [f64::MAX; 2];
    for _ in 0..REPETITIONS {
        for (best, seconds) in best.iter_mut().zip([1, 3600 * HOURS]) {
            let Some(cpu) = sleep(seconds)? else { return Ok(None) };
            *best = best.min(cpu);
        }
    }
    let [start, hours] = best;
    Ok(Some((hours - start) / f64::from(HOURS) * 1000.0))
}

/// Processor time of a guest in which a program sleeps, in seconds.
fn sleep(seconds: u32) -> Result<Option<f64>, Box<dyn Error>> {
    let experiment = experiment("transfer = { size = \"1 kB\" }")?;
    let settings = ShellSettings {
        command: vec!["sleep".into(), seconds.to_string().into()],
        far: None,
        far_port: None,
        uplink: false,
        like_stacks: false,
    };
    let run = ShellRun { experiment: &experiment, point: 0, seed: 1, settings: &settings, capture: None };
    let before = cpu_of_children();
    let end = shell(&run, &AtomicBool::new(false), |_, _| {})?;
    if end.code != 0 {
        return Err(format!("`sleep {seconds}` ended with {}", end.code).into());
    }
    Ok(cpu_of_children().zip(before).map(|(after, before)| after - before))
}
