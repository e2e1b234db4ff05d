//! `farpath shell`: programs of the user on a path.

use crate::args::{PathArgs, ShellArgs, SourceArgs};
use crate::error::CliError;
use crate::source::{self, Source};
use crate::{Ending, interrupt};
use farpath_emu::LoopReport;
use farpath_engine::{ShellSettings, shell as run_on_path};
use farpath_experiment::{Experiment, Override, shipped_experiments, shipped_paths};
use farpath_path::Direction;
use farpath_units::Bytes;
use std::path::PathBuf;

/// Size of the transfer that an experiment has and nobody runs.
const SIZE: Bytes = Bytes(1_000_000);

/// `farpath shell`
pub fn shell(args: &ShellArgs) -> Result<Ending, CliError> {
    let Source { experiment, file } = source_of(args)?;
    // Before any thread is started: a process of several cannot enter a user namespace.
    farpath_engine::may_emulate().map_err(CliError::Emulation)?;
    let points = experiment.points().len();
    if points > 1 {
        eprintln!(
            "farpath: {}: a sweep of {points} points: this is the first; --set chooses another",
            file.display()
        );
    }
    let point = experiment.point(0);
    let stop = interrupt::flag_of_programs();
    let settings = ShellSettings {
        command: if args.command.is_empty() {
            vec![std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())]
        } else {
            args.command.clone()
        },
        far: args.far.clone().map(|command| vec!["/bin/sh".into(), "-c".into(), command]),
        far_port: args.far_port,
        like_stacks: args.like_stacks,
    };
    let seed = args.seed.unwrap_or(point.scenario.seed);
    let end = run_on_path(&point.scenario, seed, &settings, stop)
        .map_err(|source| CliError::Shell { file, source })?;
    if !args.quiet {
        say(&end.report, end.dropped_outside);
    }
    Ok(Ending::Code(end.code))
}

/// What the path did, on stderr: stdout is the command's.
fn say(report: &LoopReport, dropped_outside: u64) {
    let counts = |direction: Direction| {
        let counts = report.packets[direction];
        format!("{} packets {direction}, {} dropped", counts.offered, counts.dropped)
    };
    let late = report.lateness.forward.merged(&report.lateness.reverse);
    let [median, most, worst] = [late.percentile(50.0), late.percentile(99.0), late.max()];
    eprintln!(
        "farpath: {}; {}; late by {median} (median), {most} (99 %), {worst} (worst)",
        counts(Direction::Forward),
        counts(Direction::Reverse)
    );
    if dropped_outside > 0 {
        eprintln!(
            "farpath: {dropped_outside} packets were dropped outside of the path: the machine was not in time"
        );
    }
}

fn source_of(args: &ShellArgs) -> Result<Source, CliError> {
    let Some(file) = &args.file else {
        let path = PathArgs {
            delay: args.delay,
            rate: args.rate,
            loss: args.loss,
            size: Some(SIZE),
            ..PathArgs::default()
        };
        if args.delay.is_none() {
            return Err(CliError::NoPath);
        }
        let args = SourceArgs { file: None, path, seeds: None, set: args.set.clone() };
        return source::load(&args, false);
    };
    let is = |name: &str| file.as_os_str() == name;
    let path = shipped_paths().into_iter().find(|path| is(path.name));
    match path.filter(|_| !file.exists() && !shipped_experiments().iter().any(|shipped| is(shipped.name))) {
        Some(path) => of_path(path.name, &args.set),
        None => Ok(Source { experiment: source::of_file(file, &args.set)?, file: file.clone() }),
    }
}

/// An experiment over a ready-made path.
fn of_path(name: &str, overrides: &[Override]) -> Result<Source, CliError> {
    let text = format!("title = \"{name}\"\npath = \"{name}\"\n[transfer]\nsize = \"{SIZE}\"\n");
    Ok(Source { experiment: Experiment::parse(&text, name, overrides)?, file: PathBuf::from(name) })
}
