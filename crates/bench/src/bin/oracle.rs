//! `make oracle`: what ns-3 says of a grid of transfers, what we say, and why where that is not the same.

use farpath_bench::case::{Case, ended_at, simulate};
use farpath_bench::cause::Cause;
use farpath_bench::grid::Grid;
use farpath_bench::ns3::{BUILD, Ns3};
use farpath_bench::report::Sample;
use farpath_bench::trace::{Trace, compare};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use toml::Table;

/// What is compared. It is part of the repository.
const GRID: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle.toml");

/// Runs of a case with chance.
const SEEDS: u64 = 20;

/// Runs of one whose means lie apart.
const MORE_SEEDS: u64 = 200;

/// How far two means may lie apart, in standard errors of their difference.
const WITHIN: f64 = 2.0;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(environment), Some(output)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: oracle VIRTUAL-ENVIRONMENT OUTPUT.json [PART OF A LABEL]");
        return ExitCode::from(2);
    };
    match run(PathBuf::from(environment), PathBuf::from(output), arguments.next()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("oracle: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(environment: PathBuf, output: PathBuf, only: Option<String>) -> Result<bool, Box<dyn Error>> {
    let ns3 = Ns3::set_up(&environment)?;
    println!("Oracle: {BUILD}\n");
    let grid = Grid::parse(&std::fs::read_to_string(GRID)?)?;
    let wanted = |case: &Case| only.as_ref().is_none_or(|part| case.label.contains(part.as_str()));
    let mut points = Vec::new();
    println!("Segment by segment (times equal to the nanosecond)");
    for case in grid.cases(&grid.exact)?.into_iter().filter(wanted) {
        points.push(judge(&case, &grid.cause, |changes| exact(&case, &ns3, changes, only.is_some()))?);
    }
    println!("\nMeans over {SEEDS} seeds (difference within {WITHIN} standard errors)");
    for case in grid.cases(&grid.means)?.into_iter().filter(wanted) {
        let theirs = ns3_sample(&case, &ns3, SEEDS)?;
        let known = grid.cause.iter().any(|cause| cause.covers(&case.label));
        if !known && !means(&case, &theirs, &Table::new(), SEEDS)?.agrees {
            // One point in twenty lies outside by chance: more seeds tell chance from a cause.
            println!("  {}: outside with {SEEDS} seeds; with {MORE_SEEDS}:", case.label);
            let theirs = ns3_sample(&case, &ns3, MORE_SEEDS)?;
            points.push(judge(&case, &grid.cause, |changes| means(&case, &theirs, changes, MORE_SEEDS))?);
            continue;
        }
        points.push(judge(&case, &grid.cause, |changes| means(&case, &theirs, changes, SEEDS))?);
    }
    let count = |verdict: &str| points.iter().filter(|point| point["verdict"] == verdict).count();
    let (agree, explained, open) = (count("agrees"), count("explained"), count("open"));
    println!(
        "\n{} points: {agree} agree, {explained} differ for a cause that is known, {open} differ for none",
        points.len()
    );
    let all = json!({ "build": BUILD, "points": points });
    std::fs::write(&output, serde_json::to_string_pretty(&all)? + "\n")?;
    println!("written to {}", output.display());
    Ok(open == 0)
}

/// What comparing gives.
struct Finding {
    agrees: bool,
    text: String,
    json: Value,
}

/// Compares, and where that differs looks for the cause and tries it.
fn judge(
    case: &Case,
    causes: &[Cause],
    compare: impl Fn(&Table) -> Result<Finding, Box<dyn Error>>,
) -> Result<Value, Box<dyn Error>> {
    let finding = compare(&Table::new())?;
    let cause = causes.iter().find(|cause| cause.covers(&case.label));
    let mut verdict = if finding.agrees { "agrees" } else { "open" };
    let mut evidence = None;
    if let (false, Some(cause)) = (finding.agrees, cause) {
        let confirmed = if cause.agrees_with.is_empty() {
            true
        } else {
            let changed = compare(&cause.agrees_with)?;
            evidence = Some(format!("with {}: {}", one_line(&cause.agrees_with), changed.text));
            changed.agrees
        };
        verdict = if confirmed { "explained" } else { "open" };
    }
    let mark = match verdict {
        "agrees" => "  ",
        "explained" => "~ ",
        _ => "! ",
    };
    println!("{mark}{:<58} {}", case.label, finding.text);
    if !finding.agrees {
        if let Some(cause) = cause {
            println!("      cause: {}", cause.why);
        }
        if let Some(evidence) = &evidence {
            println!("      {evidence}");
        }
    }
    let mut point = Map::new();
    point.insert("point".to_owned(), case.label.as_str().into());
    point.insert("verdict".to_owned(), verdict.into());
    point.insert("found".to_owned(), finding.json);
    if !finding.agrees {
        point.insert("cause".to_owned(), cause.map_or(Value::Null, |cause| cause.why.as_str().into()));
        point.insert("evidence".to_owned(), evidence.map_or(Value::Null, Value::from));
    }
    Ok(point.into())
}

fn one_line(changes: &Table) -> String {
    changes.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

fn exact(case: &Case, ns3: &Ns3, changes: &Table, show: bool) -> Result<Finding, Box<dyn Error>> {
    let theirs = ns3.run(&case.arguments(1, true))?.remove(0);
    let ours = simulate(&case.experiment(changes, true)?, 1)?;
    let ends = [ended_at(&ours), theirs.ended_at];
    let until = ends.into_iter().flatten().min().unwrap_or(u64::MAX);
    if let Some(copies) = case.copies.filter(|&copies| theirs.trace.most_copies() < copies) {
        let found = theirs.trace.most_copies();
        return Err(format!(
            "{}: ns-3 was to send a segment {copies} times or more, and sends none more than {found} times",
            case.label
        )
        .into());
    }
    let trace = Trace::from_rows(ours.segments.iter());
    let comparison = compare(&trace, &theirs.trace, until, 0);
    if let Some(difference) = comparison.first_difference.as_ref().filter(|_| show) {
        show_both(&trace, &theirs.trace, difference.time());
    }
    let seconds =
        |end: Option<u64>| end.map_or("not done".to_owned(), |ns| format!("{:.6} s", ns as f64 / 1e9));
    let agrees = comparison.first_difference.is_none() && ends[0] == ends[1];
    let mut text = format!("{} in both, {:>6} segments", seconds(ends[0]), comparison.equal);
    if let Some(difference) = &comparison.first_difference {
        text = format!(
            "ours {}, ns-3 {}; {} segments, then {difference}",
            seconds(ends[0]),
            seconds(ends[1]),
            comparison.equal
        );
    }
    let json = json!({
        "kind": "exact",
        "ours_ns": ends[0],
        "ns3_ns": ends[1],
        "segments_equal": comparison.equal,
        "first_difference": comparison.first_difference.map(|difference| difference.to_string()),
    });
    Ok(Finding { agrees, text, json })
}

/// The two traces at the data sender side by side.
fn show_both(ours: &Trace, theirs: &Trace, around_ns: u64) {
    const LINES: usize = 60;
    let (ours, theirs) = (ours.at_the_sender(around_ns, LINES), theirs.at_the_sender(around_ns, LINES));
    println!("  {:<48} ns-3", "ours");
    for index in 0..ours.len().max(theirs.len()) {
        let line = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
        println!("  {:<48} {}", line(&ours), line(&theirs));
    }
}

/// ns-3's runs of a case: their times, and what else was counted.
struct Theirs {
    times: Sample,
    retransmissions: f64,
    timeouts: f64,
}

fn mean(values: impl Iterator<Item = f64>, count: u64) -> f64 {
    values.sum::<f64>() / count as f64
}

fn ns3_sample(case: &Case, ns3: &Ns3, seeds: u64) -> Result<Theirs, Box<dyn Error>> {
    let runs = ns3.run(&case.arguments(seeds, false))?;
    let times: Option<Vec<f64>> = runs.iter().map(|run| run.ended_at.map(|ns| ns as f64 / 1e9)).collect();
    let times = times.ok_or_else(|| format!("{}: a transfer of ns-3's did not complete", case.label))?;
    Ok(Theirs {
        times: Sample::from_values(&times),
        retransmissions: mean(runs.iter().map(|run| run.retransmissions as f64), seeds),
        timeouts: mean(runs.iter().map(|run| run.timeouts as f64), seeds),
    })
}

fn means(case: &Case, theirs: &Theirs, changes: &Table, seeds: u64) -> Result<Finding, Box<dyn Error>> {
    let experiment = case.experiment(changes, false)?;
    let runs = (1..=seeds).map(|seed| simulate(&experiment, seed)).collect::<Result<Vec<_>, _>>()?;
    let times: Option<Vec<f64>> = runs.iter().map(|run| ended_at(run).map(|ns| ns as f64 / 1e9)).collect();
    let times = times.ok_or_else(|| format!("{}: a transfer of ours did not complete", case.label))?;
    let ours = Sample::from_values(&times);
    let flows = || runs.iter().map(|run| &run.flows[0]);
    let retransmissions = mean(flows().filter_map(|flow| flow.retransmissions), seeds);
    let timeouts = mean(flows().filter_map(|flow| flow.timeouts), seeds);
    let off = ours.off(&theirs.times);
    let text = format!(
        "ours {:>7.2} ± {:<6.2} ns-3 {:>7.2} ± {:<6.2} s {:>+6.1} % {:>+6.1} SE; sent again {:.0}/{:.0}, timeouts {:.0}/{:.0}",
        ours.mean,
        ours.deviation,
        theirs.times.mean,
        theirs.times.deviation,
        (ours.mean / theirs.times.mean - 1.0) * 100.0,
        off,
        retransmissions,
        theirs.retransmissions,
        timeouts,
        theirs.timeouts,
    );
    let json = json!({
        "kind": "means",
        "seeds": seeds,
        "ours": ours.to_json(),
        "ns3": theirs.times.to_json(),
        "standard_errors": off,
        "retransmissions": [retransmissions, theirs.retransmissions],
        "timeouts": [timeouts, theirs.timeouts],
    });
    Ok(Finding { agrees: off.abs() <= WITHIN, text, json })
}
