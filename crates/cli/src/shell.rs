//! `farpath shell`: programs of the user on a path.

use crate::args::{PathArgs, ShellArgs, SourceArgs};
use crate::error::CliError;
use crate::source::{self, Source};
use crate::{Ending, interrupt};
use farpath_emulate::{ShellEnd, ShellError, ShellRun, ShellSettings, Stream, shell as run_on_path};
use farpath_experiment::{EmulationClock, Experiment, Override, shipped_experiments, shipped_paths};
use farpath_path::Direction;
use farpath_units::{Bytes, Duration};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// Size of the transfer that an experiment has and nobody runs.
const SIZE: Bytes = Bytes(1_000_000);

/// Bytes of a packet that a capture keeps: all.
pub const WHOLE: u32 = 65_535;

/// `farpath shell`
pub fn shell(args: &ShellArgs) -> Result<Ending, CliError> {
    let Source { experiment, file } = source_of(args)?;
    let points = experiment.points().len();
    let point = experiment.point(0);
    let virtual_time = point.scenario.emulate.clock != EmulationClock::Real;
    if args.uplink {
        if virtual_time {
            return Err(CliError::NoUplink);
        }
        // What is of the machine takes its privileges, and no user namespace's.
        farpath_emulate::may_uplink().map_err(|source| CliError::Shell { file: file.clone(), source })?;
    }
    // Before any thread is started: a process of several cannot enter a user namespace.
    if !virtual_time {
        farpath_emulate::may_emulate().map_err(CliError::Emulation)?;
    }
    farpath_emulate::can_run_programs(&point.scenario, args.like_stacks)
        .map_err(|source| CliError::Engine { file: file.clone(), source: source.into() })?;
    if points > 1 {
        eprintln!(
            "farpath: {}: a sweep of {points} points: this is the first; --set chooses another",
            file.display()
        );
    }
    // In virtual time no program is in the terminal's foreground.
    let stop = if virtual_time { interrupt::quiet_flag() } else { interrupt::flag_of_programs() };
    let capture = args.capture.as_deref().map(|file| source::create_new("--capture", file)).transpose()?;
    let settings = ShellSettings {
        command: match &args.command[..] {
            [] if virtual_time => return Err(CliError::NoCommand),
            [] => vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())],
            command => command.to_vec(),
        },
        far: args.far.clone().map(|command| vec!["/bin/sh".into(), "-c".into(), command]),
        far_port: args.far_port,
        uplink: args.uplink,
        like_stacks: args.like_stacks,
    };
    let run = ShellRun {
        experiment: &experiment,
        point: 0,
        seed: args.seed.unwrap_or(point.scenario.seed),
        settings: &settings,
        capture: capture.as_ref().map(|file| (file, WHOLE)),
    };
    let ended = run_on_path(&run, stop, print);
    // A capture of what has not run would be in the way of the next one.
    let is_empty = |file: &File| file.metadata().is_ok_and(|about| about.len() == 0);
    let nothing_ran = ended.as_ref().is_err_and(ShellError::is_before_the_command);
    if let (Some(name), Some(file)) = (&args.capture, &capture)
        && (nothing_ran || is_empty(file))
    {
        let _ = fs::remove_file(name);
    }
    let end = ended.map_err(|source| CliError::Shell { file, source })?;
    if let Some(why) = &end.refused {
        eprintln!("farpath: {why}");
    }
    if !args.quiet {
        say(&end, virtual_time);
    }
    Ok(Ending::Code(end.code))
}

/// Prints what a program in a guest has printed. Nobody may read it any more, which is the reader's affair.
fn print(stream: Stream, bytes: &[u8]) {
    let _ = match stream {
        Stream::Output => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Error => io::stderr().write_all(bytes),
    };
}

/// What the path did, on stderr: stdout is the command's.
fn say(end: &ShellEnd, virtual_time: bool) {
    let counts = |(direction, (offered, dropped)): (Direction, (u64, u64))| {
        format!("{offered} packets {direction}, {dropped} dropped")
    };
    let counts = Direction::BOTH.into_iter().zip(end.packets).map(counts).collect::<Vec<_>>().join("; ");
    if virtual_time {
        eprintln!("farpath: {counts}; {} of virtual time", milliseconds(end.elapsed_ns));
    } else {
        let [median, most, worst] = end.late_ns.map(Duration::from_nanos);
        eprintln!("farpath: {counts}; late by {median} (median), {most} (99 %), {worst} (worst)");
    }
    if end.dropped_outside > 0 {
        eprintln!(
            "farpath: {} packets were dropped outside of the path: the machine was not in time",
            end.dropped_outside
        );
    }
}

/// A time that a person reads: no digits below a millisecond.
pub fn milliseconds(ns: u64) -> Duration {
    Duration::from_millis(ns / 1_000_000)
}

fn source_of(args: &ShellArgs) -> Result<Source, CliError> {
    let mut overrides = args.set.clone();
    overrides.extend(args.clock.changes());
    let Some(file) = &args.file else {
        let path = PathArgs {
            delay: args.delay,
            rtt: args.rtt,
            rate: args.rate,
            loss: args.loss,
            save: args.save.clone(),
            size: Some(SIZE),
            ..PathArgs::default()
        };
        if path.one_way().is_none() {
            return Err(CliError::NoPath);
        }
        let args = SourceArgs { file: None, path, seeds: None, set: overrides };
        return source::load(&args, false);
    };
    let is = |name: &str| file.as_os_str() == name;
    let path = shipped_paths().into_iter().find(|path| is(path.name));
    match path.filter(|_| !file.exists() && !shipped_experiments().iter().any(|shipped| is(shipped.name))) {
        Some(path) => of_path(path.name, &overrides),
        None => Ok(Source { experiment: source::of_file(file, &overrides)?, file: file.clone() }),
    }
}

/// An experiment over a ready-made path.
fn of_path(name: &str, overrides: &[Override]) -> Result<Source, CliError> {
    let text = format!("title = \"{name}\"\npath = \"{name}\"\n[transfer]\nsize = \"{SIZE}\"\n");
    Ok(Source { experiment: Experiment::parse(&text, name, overrides)?, file: PathBuf::from(name) })
}
