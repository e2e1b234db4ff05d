//! `farpath explain`: what bounds a transfer, and what to change.

use crate::args::{ExplainArgs, TableFormat};
use crate::error::CliError;
use crate::source::{self, Source};
use crate::{Ending, interrupt, output, progress};
use farpath_experiment::{Experiment, ExperimentError};
use farpath_explain::{Effort, ExplainError, Explanation, HostSystem, Known, Remedy, Watch};
use farpath_report::tables::{ExplanationView, explanation_markdown, explanation_text};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
mod host;
mod measured;
#[cfg(target_os = "linux")]
mod neighbour;

/// Explains one point, and writes the changed experiment where that is asked for.
pub fn explain(args: &ExplainArgs) -> Result<Ending, CliError> {
    let Some((Source { experiment, file }, known)) = source_of(args)? else {
        return Ok(Ending::Interrupted);
    };
    source::start_threads(args.threads)?;
    let out = args.apply.as_ref().map(|name| destination(args, &file, name)).transpose()?;
    if let Some(file) = &args.write_sysctl {
        source::may_write_new("--write-sysctl", file)?;
    }

    let bar = progress::bar(0, "runs");
    let watch =
        Watch { stop: interrupt::flag(), planned: &|runs| bar.inc_length(runs), done: &|| bar.inc(1) };
    let effort = Effort { group: args.group, seeds: args.source.seeds, known, ..Effort::default() };
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
    let sysctls = args.write_sysctl.as_ref().map(|file| sysctl_file(args, &explanation, file)).transpose()?;
    let view = ExplanationView { budget: args.budget, verbose: args.verbose };
    if args.json {
        let json = serde_json::to_value(&explanation).expect("an explanation has no keys but text");
        output::print(&json.to_string())?;
    } else {
        output::print(&match args.format {
            TableFormat::Text => explanation_text(&explanation, output::width(), view),
            TableFormat::Markdown => explanation_markdown(&explanation, view),
        })?;
    }
    if let (Some(file), Some(text)) = (&args.write_sysctl, sysctls) {
        source::write_new("--write-sysctl", file, &text)?;
    }
    if let Some((out, text)) = changed {
        source::write_new("--apply", out, &text)?;
    }
    Ok(Ending::Done)
}

/// What is explained, and how well its path is known; `None` where it was interrupted while it was measured.
fn source_of(args: &ExplainArgs) -> Result<Option<(Source, Known)>, CliError> {
    let flags = &args.source.path;
    let mut changes = args.source.set.clone();
    changes.extend(args.source.seeds.map(|seeds| source::seeds("seeds", seeds)));
    let found = if let Some(file) = &args.from_measure {
        measured::refuse_other_flags("--from-measure", flags, false)?;
        measured::of_file(file)?
    } else if let Some(host) = &args.host {
        measured::refuse_other_flags("--host", flags, true)?;
        match host_path(args, host)? {
            Some(found) => found,
            None => return Ok(None),
        }
    } else {
        return Ok(Some((source::load(&args.source, false)?, Known::default())));
    };
    Ok(Some((found.source(flags.size, &changes)?, found.known())))
}

#[cfg(target_os = "linux")]
fn host_path(args: &ExplainArgs, host: &str) -> Result<Option<measured::Measured>, CliError> {
    host::find(host, args.key.as_deref(), args.source.path.rate)
}

#[cfg(not(target_os = "linux"))]
fn host_path(_: &ExplainArgs, _: &str) -> Result<Option<measured::Measured>, CliError> {
    Err(CliError::NotLinux("explain --host"))
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

/// The sysctls of a remedy at one end, as a file of `sysctl.d`.
fn sysctl_file(args: &ExplainArgs, explanation: &Explanation, file: &Path) -> Result<String, CliError> {
    let end = args.end.name();
    let nothing = |reason: String| CliError::NoSysctls { file: file.to_owned(), reason };
    let remedy = match &args.apply {
        Some(name) => named(explanation, name)?,
        None => explanation.advised().ok_or_else(|| nothing("nothing is advised".to_owned()))?,
    };
    let own = remedy.commands.iter().filter(|commands| commands.end == end);
    let sysctls: Vec<_> = own
        .filter(|commands| commands.system == HostSystem::Linux)
        .flat_map(|commands| &commands.settings)
        .flat_map(|setting| setting.sysctls.iter().map(move |(name, value)| (setting, name, value)))
        .collect();
    if sysctls.is_empty() {
        let reason =
            format!("`{}` has no sysctl of Linux at the {end} (--end takes the other one)", remedy.id);
        return Err(nothing(reason));
    }
    let mut text = format!(
        "# {}: for the {end} of \"{}\", by `farpath explain`.\n# In force by `sysctl -p FILE`, and at each start from /etc/sysctl.d.\n",
        remedy.title, explanation.title
    );
    for (setting, name, value) in sysctls {
        text += &format!("# {}; undo: {}\n{name} = {value}\n", setting.key, setting.undo.join("; "));
    }
    Ok(text)
}

/// The remedy of this name.
fn named<'a>(explanation: &'a Explanation, name: &str) -> Result<&'a Remedy, CliError> {
    explanation.remedy(name).ok_or_else(|| CliError::NoSuchRemedy {
        name: name.to_owned(),
        known: match explanation.remedy_names().as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        },
    })
}

/// The text of the experiment with a remedy in it.
fn apply(
    experiment: &Experiment,
    explanation: &Explanation,
    name: &str,
    out: &Path,
) -> Result<String, CliError> {
    let remedy = named(explanation, name)?;
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
