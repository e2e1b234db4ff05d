//! `farpath exec`: the programs of an experiment on its path.

use crate::args::ExecArgs;
use crate::error::CliError;
use crate::result_sink::{Finished, ResultSink};
use crate::shell::{WHOLE, milliseconds};
use crate::{Ending, interrupt, output, source};
use farpath_emulate::{
    Connection, EmulateError, ExecEnd, ExecRun, ProgramEnd, can_run_programs, exec as run_programs,
};
use farpath_experiment::EmulationClock;
use farpath_report::html::{summary_of_programs, to_trace};
use farpath_run::{Engine, RunKey};
use farpath_units::Bytes;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// All runs, one a line.
const RUNS: &str = "runs.jsonl";
/// Connections of a run that are printed; all of them are in the JSON.
const PRINTED: usize = 20;

/// `farpath exec`
pub fn exec(args: &ExecArgs) -> Result<Ending, CliError> {
    let mut overrides = args.set.clone();
    overrides.extend(args.clock.changes());
    overrides.extend(args.seeds.map(|seeds| source::seeds("seeds", seeds)));
    let experiment = source::of_file(&args.file, &overrides)?;
    let failed = |source: EmulateError| CliError::Engine { file: args.file.clone(), source: source.into() };
    let points = experiment.points();
    let mut real_time = false;
    for point in 0..points.len() {
        let scenario = &experiment.point(point).scenario;
        if scenario.programs.is_empty() {
            return Err(CliError::NoPrograms { file: args.file.clone() });
        }
        real_time |= scenario.emulate.clock == EmulationClock::Real;
    }
    // Before any thread is started: a process of several cannot enter a user namespace.
    if real_time {
        farpath_emulate::may_emulate().map_err(CliError::Emulation)?;
    }
    let mut tried = None;
    for point in experiment.points() {
        let ends = [&point.scenario.sender, &point.scenario.receiver].map(|end| end.linux.bpf.clone());
        if tried.as_ref() != Some(&ends) {
            can_run_programs(&point.scenario, args.like_stacks).map_err(failed)?;
            tried = Some(ends);
        }
    }
    let all: Vec<(usize, u64)> = (0..points.len())
        .flat_map(|point| {
            let scenario = &experiment.point(point).scenario;
            let (first, seeds) = (scenario.seed, scenario.seeds);
            (first..first + seeds).map(move |seed| (point, seed))
        })
        .collect();
    let out = args.out.as_deref().map(Out::create).transpose()?;
    let key = |&(point, seed): &(usize, u64)| RunKey {
        point: point as u64,
        engine: Engine::Emulate,
        seed: Some(seed),
    };
    let mut sink = ResultSink::new(args.out.as_deref(), None, to_trace(all.iter().map(key)))?;
    let stop = interrupt::flag();
    let (mut runs, mut failures) = (0_u64, 0_u64);
    let mut one = |&(point, seed): &(usize, u64)| -> Result<bool, CliError> {
        let folder = out.as_ref().map(|out| out.folder_of_run(point, seed)).transpose()?;
        let run = ExecRun {
            experiment: &experiment,
            point,
            seed,
            like_stacks: args.like_stacks,
            folder: folder.as_deref(),
            snaplen: args.capture.then_some(WHOLE),
            series: out.is_some(),
        };
        let Some((end, results)) = run_programs(&run, stop).map_err(failed)? else { return Ok(false) };
        if let Some(out) = &out {
            out.add(&end)?;
        }
        runs += 1;
        failures += u64::from(!end.programs.iter().all(ProgramEnd::succeeded) || end.ended_by_horizon);
        let text = if args.json {
            serde_json::to_string(&end).expect("plain data")
        } else {
            let point = experiment.point(point);
            let swept = point.swept.iter().map(|(key, value)| format!("{key} {value}, "));
            format!("{}seed {seed}\n{}", swept.collect::<String>(), describe(&end))
        };
        output::print(&text)?;
        Ok(sink.take(results) && !stop.load(Ordering::Relaxed))
    };
    // What is there when one fails is kept too.
    let mut outcome = Ok(());
    for run in &all {
        match one(run) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    if runs == 0 && outcome.is_err() {
        return outcome.map(|()| Ending::Failed);
    }
    let asked = summary_of_programs(&experiment, all.len() as u64, args.like_stacks);
    let Finished { written, .. } = sink.finish(&asked, all.len());
    outcome.and(written)?;
    if failures > 0 {
        eprintln!("farpath: in {failures} of {runs} runs a program did not end with 0");
    }
    Ok(match failures {
        _ if runs < all.len() as u64 => Ending::Interrupted,
        0 => Ending::Done,
        _ => Ending::Failed,
    })
}

/// The folder of results.
struct Out(PathBuf);

impl Out {
    /// It must not hold anything.
    fn create(folder: &Path) -> Result<Out, CliError> {
        let failed = |source| CliError::Write { flag: "--out", file: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        if fs::read_dir(folder).map_err(failed)?.next().is_some() {
            return Err(CliError::NotEmpty { flag: "--out", folder: folder.to_owned() });
        }
        Ok(Out(folder.to_owned()))
    }

    fn folder_of_run(&self, point: usize, seed: u64) -> Result<PathBuf, CliError> {
        let folder = self.0.join(format!("point-{point}-seed-{seed}"));
        let failed = |source| CliError::Write { flag: "--out", file: folder.clone(), source };
        fs::create_dir(&folder).map_err(failed)?;
        Ok(folder)
    }

    fn add(&self, end: &ExecEnd) -> Result<(), CliError> {
        let file = self.0.join(RUNS);
        let line = serde_json::to_string(end).expect("plain data");
        let written = File::options().create(true).append(true).open(&file);
        let written = written.and_then(|mut runs| writeln!(runs, "{line}"));
        written.map_err(|source| CliError::Write { flag: "--out", file, source })
    }
}

/// A run in lines of text.
fn describe(end: &ExecEnd) -> String {
    let mut text = String::new();
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| milliseconds(ns).to_string());
    let widest = end.programs.iter().map(|program| program.name.len()).max().unwrap_or(0);
    for program in &end.programs {
        let how = match (program.code, &program.refused) {
            (_, Some(why)) => why.clone(),
            (Some(code), None) => format!("exit code {code}"),
            (None, None) if program.start_ns.is_none() => "not started".to_owned(),
            (None, None) if program.background => "ended with the run".to_owned(),
            (None, None) => "still ran when the run was over, and was ended".to_owned(),
        };
        let (start, finish) = (time(program.start_ns), time(program.end_ns));
        let _ = writeln!(text, "  {:widest$}  {:4}  {start} to {finish}: {how}", program.name, program.host);
        program.said.lines().for_each(|line| {
            let _ = writeln!(text, "    {line}");
        });
    }
    for connection in end.connections.iter().take(PRINTED) {
        let _ = writeln!(text, "  {}", describe_connection(connection));
        let carried = connection.sent.payload_bytes + connection.received.payload_bytes;
        if let Some(held) = connection.held.as_ref().filter(|_| carried > 0) {
            let _ = writeln!(text, "    {}", held.summary);
        }
    }
    let more = end.connections.len().saturating_sub(PRINTED);
    if more > 0 {
        let _ = writeln!(text, "  and {more} connections more, which --json prints");
    }
    text.pop();
    text
}

fn describe_connection(connection: &Connection) -> String {
    let Connection { protocol, opener, opener_port, peer, peer_port, sent, received, rtt_ns, .. } =
        connection;
    let took = milliseconds(connection.last_ns - connection.first_ns);
    let mut text = format!(
        "{protocol} {opener} {opener_port} to {peer} {peer_port}: {} there, {} back in {took}; {} of {} packets dropped",
        Bytes(sent.payload_bytes),
        Bytes(received.payload_bytes),
        sent.dropped + received.dropped,
        sent.packets + received.packets,
    );
    if let (Some(there), Some(back)) = (sent.retransmissions, received.retransmissions) {
        let _ = write!(text, ", {} retransmissions", there + back);
    }
    if let Some([least, median, ..]) = rtt_ns.map(|rtt| rtt.map(milliseconds)) {
        let _ = write!(text, "; round trip {least} (least), {median} (median)");
    }
    text
}
