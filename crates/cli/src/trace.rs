//! `farpath trace`: rates over time, from files and from models.

use crate::args::{MakeArgs, ModelName, TraceArgs, TraceCommand};
use crate::error::CliError;
use crate::source::write_new;
use crate::{Ending, output};
use farpath_elements::trace::{Trace, TraceFigures};
use serde_json::json;
use std::path::Path;

/// `farpath trace`
pub fn trace(args: &TraceArgs) -> Result<Ending, CliError> {
    match &args.command {
        TraceCommand::Info { file, json } => info(file, *json)?,
        TraceCommand::Make(args) => make(args)?,
    }
    Ok(Ending::Done)
}

fn info(file: &Path, as_json: bool) -> Result<(), CliError> {
    let text = farpath_files::read_text(file)
        .map_err(|source| CliError::ReadTrace { file: file.to_owned(), source })?;
    let trace = Trace::parse(&text).map_err(|source| CliError::Trace { file: file.to_owned(), source })?;
    let TraceFigures {
        span,
        mean_bit_per_s,
        least_bit_per_s,
        greatest_bit_per_s,
        variation,
        outages,
        longest_outage,
    } = trace.figures();
    let (kind, repeats) = match &trace {
        Trace::Rates(rates) => ("rates", rates.repeat_after.is_some()),
        Trace::Opportunities(_) => ("opportunities", true),
    };
    if as_json {
        let figures = json!({
            "kind": kind,
            "span_s": span.as_secs_f64(),
            "repeats": repeats,
            "mean_bit_per_s": mean_bit_per_s,
            "least_bit_per_s": least_bit_per_s,
            "greatest_bit_per_s": greatest_bit_per_s,
            "coefficient_of_variation": variation,
            "outages": outages,
            "longest_outage_s": longest_outage.as_secs_f64(),
        });
        output::print(&figures.to_string())?;
        return Ok(());
    }
    let of = match &trace {
        Trace::Rates(rates) => format!("{} rates", rates.steps.len()),
        Trace::Opportunities(all) => format!("{} opportunities to send 1504 B", all.at_ms.len()),
    };
    let end = if repeats { "then it begins again" } else { "then the last rate stays" };
    let each = if kind == "rates" { "" } else { ", of a second each" };
    output::print(&format!(
        "trace         {of} over {span}; {end}\n\
         rate          {} in the mean, from {} to {}{each}\n\
         variation     {:.1} % of the mean (standard deviation)\n\
         outages       {outages} of 100 ms and more{}",
        output::rate(mean_bit_per_s),
        output::rate(least_bit_per_s),
        output::rate(greatest_bit_per_s),
        100.0 * variation,
        if outages > 0 { format!(", the longest {longest_outage}") } else { String::new() },
    ))?;
    Ok(())
}

fn make(args: &MakeArgs) -> Result<(), CliError> {
    let ModelName(model) = args.model;
    let trace = model.make(args.rate, args.span, args.seed).map_err(CliError::Model)?;
    let text = format!(
        "# {} at {}, seed {}: farpath trace make\n{}",
        model.name(),
        args.rate,
        args.seed,
        trace.to_text()
    );
    match &args.out {
        Some(file) => write_new("--out", file, &text),
        None => Ok(output::print(&text)?),
    }
}
