//! `farpath explain`: what bounds a transfer, and what to change.

use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::source::{self, Source};
use crate::{Ending, interrupt, output, progress};
use farpath_experiment::{Experiment, ExperimentError};
use farpath_explain::{Effort, ExplainError, Explanation, Remedy, Watch};
use farpath_report::tables::explanation_text;
use std::path::{Path, PathBuf};

/// Explains one point, and writes the changed experiment where that is asked for.
pub fn explain(args: &ExplainArgs) -> Result<Ending, CliError> {
    let Source { experiment, file } = source::load(&args.source, false)?;
    source::start_threads(args.threads)?;
    let out = args.apply.as_ref().map(|name| destination(args, &file, name)).transpose()?;

    let bar = progress::bar(0, "runs");
    let watch =
        Watch { stop: interrupt::flag(), planned: &|runs| bar.inc_length(runs), done: &|| bar.inc(1) };
    let effort = Effort { seeds: args.source.seeds, ..Effort::default() };
    let explanation = farpath_explain::explain(&experiment, args.point, effort, &watch);
    drop(bar);
    let explanation = match explanation {
        Ok(explanation) => explanation,
        Err(ExplainError::Interrupted) => return Ok(Ending::Interrupted),
        Err(ExplainError::Experiment(error)) => return Err(error.into()),
        Err(error) => return Err(CliError::Explain { file, source: Box::new(error) }),
    };
    // Both before anything is printed: an error leaves standard output empty.
    let changed = match (&args.apply, &out) {
        (Some(name), Some(out)) => Some((out, apply(&experiment, &explanation, name, out)?)),
        _ => None,
    };
    if args.json {
        let json = serde_json::to_value(&explanation).expect("an explanation has no keys but text");
        output::print(&json.to_string())?;
    } else {
        output::print(&explanation_text(&explanation, output::width()))?;
    }
    if let Some((out, text)) = changed {
        source::write_new("--apply", out, &text)?;
    }
    Ok(Ending::Done)
}

/// Where the changed experiment goes: what `--out` says, or beside the file.
fn destination(args: &ExplainArgs, file: &Path, name: &str) -> Result<PathBuf, CliError> {
    let out = args.out.clone().unwrap_or_else(|| {
        // What ships, and what flags stand for, has no folder of its own: the current one.
        let stem = match (&args.source.file, &args.source.path.save) {
            (None, None) => "path".to_owned(),
            _ => file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
        };
        file.parent().unwrap_or(Path::new("")).join(format!("{stem}-{name}.toml"))
    });
    source::may_write_new("--apply", &out)?;
    Ok(out)
}

/// The text of the experiment with a remedy in it.
fn apply(
    experiment: &Experiment,
    explanation: &Explanation,
    name: &str,
    out: &Path,
) -> Result<String, CliError> {
    let remedy = explanation.remedy(name).ok_or_else(|| CliError::NoSuchRemedy {
        name: name.to_owned(),
        known: match explanation.remedy_names().as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        },
    })?;
    let text = experiment.rewritten(explanation.point, remedy.changes(), &head(remedy, explanation))?;
    // Files that it names are looked for beside it: they must be the same ones from there.
    let meant = experiment.only(explanation.point, remedy.changes())?;
    let read = Experiment::parse(&text, &out.display().to_string(), &[])?;
    if read.point(0).scenario != meant.point(0).scenario {
        let at = farpath_experiment::Location { origin: out.display().to_string(), key: String::new() };
        let reason =
            "the files that the experiment names are others when they are seen from this folder".to_owned();
        return Err(ExperimentError::Value { at, reason }.into());
    }
    Ok(text)
}

/// What stands above the changed experiment.
fn head(remedy: &Remedy, explanation: &Explanation) -> Vec<String> {
    let before = explanation.observed.transfer_time_s.filter(|_| explanation.observed.completed == 1.0);
    let after = remedy.simulated.transfer_time_s.filter(|_| remedy.simulated.completed == 1.0);
    let time = |time: Option<farpath_explain::Spread>| {
        time.map_or_else(|| "not all complete".to_owned(), |time| format!("{:.2} s", time.mean))
    };
    let mut lines = vec![
        format!("Changed by `farpath explain --apply {}`: {}.", remedy.id, remedy.title),
        format!("Simulated transfer time before: {}; after: {}.", time(before), time(after)),
    ];
    lines.extend(remedy.set.iter().map(|change| format!("  {change}")));
    lines
}
