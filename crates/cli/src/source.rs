//! What is run: an experiment file, one that ships, or a path in a few numbers.

use crate::args::{PathArgs, SourceArgs};
use crate::error::CliError;
use crate::{output, progress};
use farpath_experiment::{Experiment, Override, QuickPath, Suggestion, shipped_experiments};
use farpath_units::Probability;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A checked experiment and how it is called in messages.
pub struct Source {
    pub experiment: Experiment,
    pub file: PathBuf,
}

/// Reads what the arguments name. With `--save`, writes the file that the flags stand for.
/// `emulates`: whether the number of seeds is meant for runs in real time too.
pub fn load(args: &SourceArgs, emulates: bool) -> Result<Source, CliError> {
    load_with(args, emulates, Vec::new())
}

/// The same with changes for which there are flags, which count more than those of `--set`.
pub fn load_with(args: &SourceArgs, emulates: bool, changes: Vec<Override>) -> Result<Source, CliError> {
    let mut overrides = args.set.clone();
    overrides.extend(changes);
    if let Some(seeds) = args.seeds {
        // A file may ask for fewer runs in real time; who says how many means every engine that is asked.
        for key in ["seeds", "emulate.seeds"].into_iter().take(1 + usize::from(emulates)) {
            overrides.push(self::seeds(key, seeds));
        }
    }
    match &args.file {
        Some(file) => {
            no_flags_beside_a_file(&args.path)?;
            Ok(Source { experiment: of_file(file, &overrides)?.with_transfers()?, file: file.clone() })
        }
        None => of_flags(&args.path, &overrides),
    }
}

/// The change that a number of seeds is.
pub fn seeds(key: &str, number: u64) -> Override {
    format!("{key}={number}").parse().expect("a key and a number")
}

/// So many worker threads, where that is asked for.
pub fn start_threads(threads: Option<u16>) -> Result<(), CliError> {
    let Some(threads) = threads else { return Ok(()) };
    rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global().map_err(CliError::Threads)
}

/// Writes a file that is not there yet.
pub fn write_new(flag: &'static str, file: &Path, text: &str) -> Result<(), CliError> {
    let mut out = create_new(flag, file)?;
    out.write_all(text.as_bytes()).map_err(|source| {
        // Half of it is of no use, and in the way of the next one.
        let _ = fs::remove_file(file);
        CliError::Write { flag, file: file.to_owned(), source }
    })?;
    output::tell(&format!("{} is written", file.display()));
    Ok(())
}

/// Refuses a name under which [`write_new`] could not write. Nothing is left of the attempt.
pub fn may_write_new(flag: &'static str, file: &Path) -> Result<(), CliError> {
    drop(create_new(flag, file)?);
    fs::remove_file(file).map_err(|source| CliError::Write { flag, file: file.to_owned(), source })
}

/// A new file.
pub fn create_new(flag: &'static str, file: &Path) -> Result<File, CliError> {
    File::create_new(file).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => CliError::Exists { flag, file: file.to_owned() },
        _ => CliError::Write { flag, file: file.to_owned(), source },
    })
}

/// The file, or what ships by that name.
pub fn of_file(file: &Path, overrides: &[Override]) -> Result<Experiment, CliError> {
    let shipped = shipped_experiments().into_iter().find(|shipped| file.as_os_str() == shipped.name);
    // A bare word that is no file is meant as a name.
    let bare = file.extension().is_none() && file.components().count() == 1;
    match shipped {
        Some(shipped) if !file.exists() => {
            Ok(checked(|| Experiment::parse(shipped.text, shipped.name, overrides))?)
        }
        None if bare && !file.exists() => Err(CliError::NoSuch {
            kind: "file or experiment",
            command: "experiments",
            name: file.display().to_string(),
            nearest: nearest_experiment(&file.display().to_string()),
        }),
        _ => Ok(checked(|| Experiment::load(file, overrides))?),
    }
}

/// The one that ships whose name may have been meant.
fn nearest_experiment(name: &str) -> Option<String> {
    Suggestion::among(name, shipped_experiments().iter().map(|shipped| shipped.name)).nearest
}

/// All points are checked when an experiment is read.
fn checked<T>(read: impl FnOnce() -> T) -> T {
    progress::during("checking the points", read)
}

fn no_flags_beside_a_file(path: &PathArgs) -> Result<(), CliError> {
    let given = [
        (path.delay.is_some(), "--delay", "--set path.delay=..."),
        (path.rtt.is_some(), "--rtt", "--set path.delay=..., half of it"),
        (path.rate.is_some(), "--rate", "--set path.link=..."),
        (path.loss.is_some(), "--loss", "--set path.loss=..."),
        (path.size.is_some(), "--size", "--set transfer.size=..."),
        (path.stack.is_some(), "--stack", "--set sender.stack=... and --set receiver.stack=..."),
        (path.window.is_some(), "--window", "--set receiver.receive.buffer=..."),
        (path.save.is_some(), "--save", "--set, and --apply of `farpath explain`"),
    ];
    match given.into_iter().find(|(given, ..)| *given) {
        Some((_, flag, instead)) => Err(CliError::Both { flag, instead }),
        None => Ok(()),
    }
}

fn of_flags(path: &PathArgs, overrides: &[Override]) -> Result<Source, CliError> {
    let (Some(delay), Some(rate), Some(size)) = (path.one_way(), path.rate, path.size) else {
        return Err(incomplete(path));
    };
    let quick_path = QuickPath {
        delay,
        rate,
        loss: path.loss.unwrap_or(Probability::ZERO),
        size,
        stack: path.stack.clone(),
        window: path.window,
    };
    // A file that is kept is read as if it stood there already: that is where its other files are looked for.
    let file = path.save.clone().unwrap_or_else(|| PathBuf::from("command line"));
    if path.save.is_some() && file.exists() {
        return Err(CliError::Exists { flag: "--save", file });
    }
    let experiment =
        checked(|| Experiment::parse(&quick_path.to_toml(), &file.display().to_string(), overrides))?;
    if let Some(file) = &path.save {
        // The changes of --set are part of what is kept; a sweep has no single point to keep.
        let text = match experiment.points().len() {
            1 => experiment.rewritten(0, &[], &[])?,
            _ => experiment.text.to_string(),
        };
        write_new("--save", file, &text)?;
    } else {
        let stack = match &path.stack {
            Some(_) => String::new(),
            None => format!("stack {}, ", experiment.point(0).scenario.sender.name),
        };
        let queue = output::size(quick_path.queue().0 as f64);
        if path.delay.is_some() {
            eprintln!("farpath: --delay is one way: a round trip of {} (--rtt takes that)", delay * 2);
        }
        eprintln!(
            "farpath: not given: {stack}a queue of {queue} (one bandwidth-delay product, ten packets at least); \
             --save FILE keeps all of it"
        );
    }
    Ok(Source { experiment, file })
}

fn incomplete(path: &PathArgs) -> CliError {
    let needed = [
        (path.one_way().is_some(), if path.rtt.is_some() { "--rtt" } else { "--delay" }),
        (path.rate.is_some(), "--rate"),
        (path.size.is_some(), "--size"),
    ];
    let names = |wanted: bool| -> Vec<&str> {
        needed.iter().filter(|(given, _)| *given == wanted).map(|(_, name)| *name).collect()
    };
    let others = [path.loss.is_some(), path.stack.is_some(), path.window.is_some(), path.save.is_some()];
    if names(true).is_empty() && !others.contains(&true) {
        return CliError::Incomplete { missing: "FILE is".to_owned(), given: String::new() };
    }
    let missing = names(false);
    let is = if missing.len() == 1 { "is" } else { "are" };
    let given = match names(true).as_slice() {
        [] => String::new(),
        given => format!("; given: {}", given.join(", ")),
    };
    CliError::Incomplete { missing: format!("{} {is}", missing.join(", ")), given }
}
