//! `farpath trace`: rates over time, from files and from models.

use crate::args::{MakeArgs, ModelName, PassesArgs, TraceArgs, TraceCommand};
use crate::error::CliError;
use crate::source::{of_file, write_new};
use crate::{Ending, output};
use farpath_elements::trace::{Trace, TraceFigures};
use farpath_elements::{Contact, ElementKind};
use farpath_path::Direction;
use farpath_units::Duration;
use serde_json::json;
use std::path::Path;

/// `farpath trace`
pub fn trace(args: &TraceArgs) -> Result<Ending, CliError> {
    match &args.command {
        TraceCommand::Info { file, json } => info(&read(file)?, *json)?,
        TraceCommand::Plot { file, json } => plot(&read(file)?, *json)?,
        TraceCommand::Passes(args) => passes(args)?,
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
    let columns = columns();
    let rates = trace.over_time(columns);
    if as_json {
        let parts = json!({ "part_s": span.as_secs_f64() / columns as f64, "mean_bit_per_s": rates });
        return Ok(output::print(&parts.to_string())?);
    }
    output::print(&drawing(&rates, [Duration::ZERO, span], output::rate, "0 bit/s"))?;
    Ok(())
}

/// Contacts over the satellite of an experiment, and the delay in them.
fn passes(args: &PassesArgs) -> Result<(), CliError> {
    const POINTS: usize = 101;
    let refuse = |reason: String| CliError::Passes { file: args.file.clone(), reason };
    let experiment = of_file(&args.file, &args.set)?;
    let point = experiment.point(0);
    let scenario = &point.scenario;
    let found = scenario.path.iter().find_map(|element| match &element.kind {
        ElementKind::Passes(passes) => Some((&element.name, passes)),
        _ => None,
    });
    let Some((name, passes)) = found else {
        return Err(refuse("expected a `delay` that is an `orbit` on its path, found none".to_owned()));
    };
    let contacts = passes.contacts.plan.listed(Direction::Forward);
    let delay = &passes.delay.delay.forward;
    let over = |contact: Contact, points: usize| {
        let part = (contact.to - contact.from).as_secs_f64() / (points - 1) as f64;
        let at = move |number| contact.from + Duration::from_secs_f64(part * number as f64);
        (0..points).map(move |number| (at(number), delay.value_at(at(number)).as_secs_f64() * 1e3))
    };
    if args.json {
        let all = contacts.iter().map(|contact| {
            let (times, delays): (Vec<f64>, Vec<f64>) =
                over(*contact, POINTS).map(|(at, ms)| (at.as_secs_f64(), ms)).unzip();
            json!({
                "from_s": contact.from.as_secs_f64(),
                "to_s": contact.to.as_secs_f64(),
                "time_s": times,
                "delay_ms": delays,
            })
        });
        let all = json!({ "element": name, "orbit": passes.orbit, "passes": all.collect::<Vec<_>>() });
        return Ok(output::print(&all.to_string())?);
    }
    let Some(drawn) = args.pass.checked_sub(1).and_then(|index| contacts.get(index)) else {
        let passes = if contacts.len() == 1 { "pass" } else { "passes" };
        return Err(refuse(format!(
            "--pass: expected 1 to {} {passes}, found {}",
            contacts.len(),
            args.pass
        )));
    };
    let mut text = format!(
        "{name}: {}\n{:>4}  {:>12}  {:>12}  {:>10}  one way, ms\n",
        passes.orbit, "pass", "from, s", "to, s", "lasts, s"
    );
    for (number, contact) in (1..).zip(contacts) {
        let range = over(*contact, POINTS).map(|(_, ms)| ms);
        let (least, greatest) =
            range.fold((f64::INFINITY, 0.0_f64), |(least, most), ms| (least.min(ms), most.max(ms)));
        let [from, to, lasts] =
            [contact.from, contact.to, contact.to - contact.from].map(Duration::as_secs_f64);
        text.push_str(&format!(
            "{number:>4}  {from:>12.3}  {to:>12.3}  {lasts:>10.3}  {least:.3} to {greatest:.3}\n"
        ));
    }
    let delays: Vec<f64> = over(*drawn, columns()).map(|(_, ms)| ms).collect();
    text.push_str(&format!("\nDelay one way over pass {}\n", args.pass));
    text.push_str(&drawing(&delays, [drawn.from, drawn.to], |ms| format!("{ms:.2} ms"), "0 ms"));
    Ok(output::print(&text)?)
}

/// Columns of a drawing.
fn columns() -> usize {
    output::width().map_or(0, usize::from).clamp(MARGIN + 20, 200) - MARGIN
}

/// As high as the greatest of `values`; what is not zero shows.
fn drawing(values: &[f64], [from, to]: [Duration; 2], label: impl Fn(f64) -> String, zero: &str) -> String {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let height = |value: f64| {
        let eighths = (value / greatest * (ROWS * 8) as f64).round() as usize;
        if value > 0.0 { eighths.max(1) } else { 0 }
    };
    let mut lines = Vec::new();
    for row in (0..ROWS).rev() {
        let label = match row + 1 {
            ROWS => label(greatest),
            top if top == ROWS / 2 => label(greatest / 2.0),
            _ => String::new(),
        };
        let bars: String =
            values.iter().map(|&value| EIGHTHS[height(value).saturating_sub(row * 8).min(8)]).collect();
        lines.push(format!("{label:>12} ┤{bars}").trim_end().to_owned());
    }
    lines.push(format!("{zero:>12} └{}", "─".repeat(values.len())));
    let (start, end) = (from.to_string(), to.to_string());
    lines.push(format!("{start:>14}{end:>width$}", width = values.len()));
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
        let text =
            drawing(&[8e6, 4e6, 0.0, 1.0], [Duration::ZERO, Duration::from_secs(4)], output::rate, "0 bit/s");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), ROWS + 2);
        assert_eq!(lines[0], " 8.00 Mbit/s ┤█");
        assert_eq!(lines[ROWS / 2], " 4.00 Mbit/s ┤██");
        // What is hardly anything is not nothing.
        assert_eq!(lines[ROWS - 1], "             ┤██ ▁");
        assert!(lines[ROWS].ends_with("└────") && lines[ROWS + 1].ends_with("4 s"), "{text}");
    }
}
