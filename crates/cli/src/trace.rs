//! `farpath trace`: rates over time, from files and from models.

use crate::args::{MakeArgs, ModelName, TraceArgs, TraceCommand};
use crate::error::CliError;
use crate::source::write_new;
use crate::{Ending, output};
use farpath_elements::trace::{Trace, TraceFigures};
use farpath_units::Duration;
use serde_json::json;
use std::path::Path;

/// `farpath trace`
pub fn trace(args: &TraceArgs) -> Result<Ending, CliError> {
    match &args.command {
        TraceCommand::Info { file, json } => info(&read(file)?, *json)?,
        TraceCommand::Plot { file, json } => plot(&read(file)?, *json)?,
        TraceCommand::Make(args) => make(args)?,
    }
    Ok(Ending::Done)
}

fn read(file: &Path) -> Result<Trace, CliError> {
    let text = farpath_files::read_text(file)
        .map_err(|source| CliError::ReadTrace { file: file.to_owned(), source })?;
    Trace::parse(&text).map_err(|source| CliError::Trace { file: file.to_owned(), source })
}

/// Rows of a drawing, and columns beside it: a rate and the axis.
const ROWS: usize = 10;
const MARGIN: usize = 14;

/// The mean rate in each column, from zero up.
fn plot(trace: &Trace, as_json: bool) -> Result<(), CliError> {
    let span = trace.figures().span;
    let columns = output::width().map_or(0, usize::from).clamp(MARGIN + 20, 200) - MARGIN;
    let rates = trace.over_time(columns);
    if as_json {
        let parts = json!({ "part_s": span.as_secs_f64() / columns as f64, "mean_bit_per_s": rates });
        return Ok(output::print(&parts.to_string())?);
    }
    output::print(&drawing(&rates, span))?;
    Ok(())
}

/// As high as the greatest of `rates`; what is not zero shows.
fn drawing(rates: &[f64], span: Duration) -> String {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let greatest = rates.iter().copied().fold(0.0, f64::max);
    let height = |rate: f64| {
        let eighths = (rate / greatest * (ROWS * 8) as f64).round() as usize;
        if rate > 0.0 { eighths.max(1) } else { 0 }
    };
    let mut lines = Vec::new();
    for row in (0..ROWS).rev() {
        let label = match row + 1 {
            ROWS => output::rate(greatest),
            top if top == ROWS / 2 => output::rate(greatest / 2.0),
            _ => String::new(),
        };
        let bars: String =
            rates.iter().map(|&rate| EIGHTHS[height(rate).saturating_sub(row * 8).min(8)]).collect();
        lines.push(format!("{label:>12} ┤{bars}").trim_end().to_owned());
    }
    lines.push(format!("{:>12} └{}", "0 bit/s", "─".repeat(rates.len())));
    let end = span.to_string();
    lines.push(format!("{:>14}{end:>width$}", "0 s", width = rates.len()));
    lines.join("\n")
}

fn info(trace: &Trace, as_json: bool) -> Result<(), CliError> {
    let TraceFigures {
        span,
        mean_bit_per_s,
        least_bit_per_s,
        greatest_bit_per_s,
        variation,
        outages,
        longest_outage,
    } = trace.figures();
    let (kind, repeats) = match trace {
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
    let of = match trace {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_shows_heights_and_outages() {
        let text = drawing(&[8e6, 4e6, 0.0, 1.0], Duration::from_secs(4));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), ROWS + 2);
        assert_eq!(lines[0], " 8.00 Mbit/s ┤█");
        assert_eq!(lines[ROWS / 2], " 4.00 Mbit/s ┤██");
        // What is hardly anything is not nothing.
        assert_eq!(lines[ROWS - 1], "             ┤██ ▁");
        assert!(lines[ROWS].ends_with("└────") && lines[ROWS + 1].ends_with("4 s"), "{text}");
    }
}
