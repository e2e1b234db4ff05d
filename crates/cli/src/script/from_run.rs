//! The packets of a run of a results folder. They are not in it, and the run is made again: it is a function of its experiment and seed.

use crate::args::{ScriptArgs, ScriptEngine};
use crate::error::CliError;
use crate::{interrupt, output, progress};
use farpath_diagnose::{Frame, read};
use farpath_engine::{DEFAULT_SNAPLEN, Job, provenance, run_captured};
use farpath_experiment::{EmulationClock, Experiment, Override, ParseOverrideError};
use farpath_run::{Engine, FlowRow, Provenance, Results, RunKey};
use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::OwnedFd as Handle;
#[cfg(windows)]
use std::os::windows::io::OwnedHandle as Handle;
use std::path::Path;
use std::thread;

/// Gives the packets of the run that is asked for to `frame`, and says which run it is; `None` where it was interrupted.
pub fn read_packets(
    args: &ScriptArgs,
    folder: &Path,
    frame: impl FnMut(Frame<'_>),
) -> Result<Option<String>, CliError> {
    let results = Results::read(folder)?;
    let (key, of_run) = find(args, &results)
        .ok_or_else(|| CliError::NoRun { folder: folder.to_owned(), found: results.provenances().len() })?;
    let (experiment, point) = experiment_of(&results, key, of_run)?;
    let clock = || experiment.point(point).scenario.emulate.clock.clone();
    if key.engine == Engine::Emulate && clock() == EmulationClock::Real {
        let found = "one that was emulated in real time; make such a run with `--capture`".to_owned();
        return Err(CliError::NotAgain { folder: folder.to_owned(), found });
    }
    let job = Job { point, engine: key.engine, seed: key.seed, trace: false };
    let stop = interrupt::flag();
    let (made, ended) = progress::during("making the run again", || {
        let (packets, out) = io::pipe().map_err(CliError::Output)?;
        Ok::<_, CliError>(thread::scope(|scope| {
            let making = scope.spawn(|| {
                // It is closed when the run is over.
                let out = File::from(Handle::from(out));
                run_captured(&experiment, job, stop, DEFAULT_SNAPLEN, &out)
            });
            let ended = read(packets, frame);
            (making.join().expect("a run does not panic"), ended)
        }))
    })?;
    let Some(run) = made.map_err(|source| CliError::Engine { file: folder.to_owned(), source })? else {
        return Ok(None);
    };
    ended.map_err(|source| CliError::Capture { file: folder.to_owned(), source })?;
    let before: Vec<FlowRow> =
        results.flows()?.into_iter().filter(|(of, _)| *of == key).map(|(_, row)| row).collect();
    if before != run.flows {
        output::tell(&format!(
            "{}: the run that was made again is not that of the folder, which Farpath {} made; the script is of the new one",
            folder.display(),
            of_run.version
        ));
    }
    let seed = key.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
    Ok(Some(format!("Point {}{seed} of `{}`, {}.", key.point, experiment.title, key.engine)))
}

/// The run with packets of this point and seed: that of the engine asked for, else of another one.
fn find<'a>(args: &ScriptArgs, results: &'a Results) -> Option<(RunKey, &'a Provenance)> {
    let wanted = match args.engine {
        ScriptEngine::Emulate => Engine::Emulate,
        ScriptEngine::Simulate | ScriptEngine::Both => Engine::Simulate,
    };
    let all = || {
        results.provenances().iter().filter(|(key, _)| {
            matches!(key.engine, Engine::Simulate | Engine::Emulate)
                && args.point.is_none_or(|point| point == key.point)
                && args.seed.is_none_or(|seed| key.seed == Some(seed))
        })
    };
    all().find(|(key, _)| key.engine == wanted).or_else(|| all().next()).map(|(key, of_run)| (*key, of_run))
}

/// The experiment as it was asked, and the run's point of it. Of the changes that are kept with a run the last ones are its place in the
/// sweep; how many those are is known when the same changes come out.
fn experiment_of(
    results: &Results,
    key: RunKey,
    of_run: &Provenance,
) -> Result<(Experiment, usize), CliError> {
    let origin = results.path().display().to_string();
    let point = usize::try_from(key.point).unwrap_or(usize::MAX);
    let other = |found: String| CliError::NotAgain { folder: results.path().to_owned(), found };
    let changes = of_run.changes.iter().map(|text| text.parse());
    let changes: Vec<Override> =
        changes.collect::<Result<_, _>>().map_err(|error: ParseOverrideError| other(error.to_string()))?;
    let mut refused = None;
    for given in (0..=changes.len()).rev() {
        match Experiment::parse(&of_run.experiment, &origin, &changes[..given]) {
            Ok(experiment) if point < experiment.points().len() => {
                if provenance(&experiment, &experiment.point(point)).changes == of_run.changes {
                    return Ok((experiment, point));
                }
            }
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
    }
    Err(match refused {
        Some(error) => error.into(),
        None => other("changes that are not those of its experiment".to_owned()),
    })
}
