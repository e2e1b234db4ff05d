//! A path without an experiment: what it is, and what goes over it.

use super::words::{self, MEASURED};
use crate::args::MeasureArgs;
use crate::error::CliError;
use crate::result_sink::{Finished, ResultSink};
use crate::source::{may_write_new, write_new};
use crate::{Ending, interrupt, output, progress};
use farpath_engine::provenance;
use farpath_experiment::{Experiment, Override, Point};
use farpath_measure::{
    Exchanges, Key, MeasureError, PathEstimate, Peer, Probing, Seen, estimate, exchange,
    measure as measure_point,
};
use farpath_report::html;
use farpath_report::tables::flows_table;
use farpath_run::{Engine, ExperimentSummary, Run, RunKey, SummaryPoint, write_flow_lines};
use farpath_units::{Bytes, Duration, Rate};
use std::collections::BTreeSet;
use std::io::Write;

/// For how long a transfer goes on at the rate that was found.
const SECONDS: u64 = 4;
/// What it is at the least and at the most.
const SIZES: [Bytes; 2] = [Bytes(100_000), Bytes(500_000_000)];
/// A transfer that takes longer is not waited for.
const HORIZON: &str = "horizon=60 s";
/// Requests of some 200 B and answers of a small page, as many as take some seconds.
const REQUEST: Bytes = Bytes(200);
const ANSWER: Bytes = Bytes(2000);
const REQUESTING: Duration = Duration::from_secs(5);

/// Looks at the path, and sends something over it.
pub fn measure(args: &MeasureArgs, key: Option<&Key>) -> Result<Ending, CliError> {
    args.as_path.as_ref().map(|file| may_write_new("--as-path", file)).transpose()?;
    let mut peer = super::peer(args, &args.what, key)?;
    let traced: BTreeSet<RunKey> = (0..MEASURED.len() as u64)
        .map(|point| RunKey { point, engine: Engine::Measure, seed: Some(1) })
        .collect();
    let mut sink = ResultSink::new(args.out.as_deref(), args.report.as_deref(), traced)?;
    let bar = progress::bar(MEASURED.len() as u64, "");
    let probing = Probing { echoes: args.echoes, interval: args.interval };
    let found = estimate(&mut peer, probing, interrupt::flag(), &mut |what| bar.set_message(what.to_owned()));
    let found = match found {
        Ok(found) => found,
        Err(MeasureError::Stopped) => return Ok(Ending::Interrupted),
        Err(error) => return Err(error.into()),
    };
    let [up, down] = [&found.ways.forward, &found.ways.reverse].map(|way| size(args.size, way.rate));
    let text = found.to_toml(up);
    if let Some(file) = &args.as_path {
        drop(bar);
        print(args, &peer, &found, &[], &[])?;
        return write_new("--as-path", file, &text).map(|()| Ending::Done);
    }
    let outputs = ["output.series=true", HORIZON];
    let upload = parsed(&text, &outputs)?;
    let reverse = format!("flow=[{{ direction = \"reverse\", size = \"{down}\" }}]");
    let download = parsed(&text, &[&outputs[..], &["transfer.opener=receiver", &reverse]].concat())?;

    let mut going_on = sink.take(echoes(&found, &upload));
    let mut times = Vec::new();
    let mut transfers = || -> Result<bool, CliError> {
        for (number, experiment) in [(1, &upload), (2, &download), (3, &download)] {
            if !going_on {
                return Ok(false);
            }
            bar.set_position(number as u64);
            let mut seen =
                |seen: Seen| bar.set_message(format!("{}: {}", MEASURED[number], progress::measured(seen)));
            let point = Point { index: number, ..experiment.point(0).into_owned() };
            let mut from = provenance(experiment, &point);
            from.changes.push(format!("measured={}", MEASURED[number]));
            let stop = interrupt::flag();
            let run = if number == 3 {
                let exchanges = Exchanges { count: requests(&found), request: REQUEST, answer: ANSWER };
                let done = exchange(&mut peer, &point, exchanges, from, stop, &mut seen)?;
                done.map(|(run, took)| {
                    times = took;
                    run
                })
            } else {
                measure_point(&mut peer, &point, 1, from, stop, &mut seen)?
            };
            match run {
                Some(run) => going_on = sink.take(run),
                None => return Ok(false),
            }
        }
        Ok(true)
    };
    let complete = transfers();
    drop(bar);
    let Finished { runs, written } = sink.finish(&summary_of_measurement(&upload), MEASURED.len());
    print(args, &peer, &found, &runs, &times)?;
    written?;
    Ok(if complete? { Ending::Done } else { Ending::Interrupted })
}

/// An experiment of ours.
fn parsed(text: &str, changes: &[&str]) -> Result<Experiment, CliError> {
    let changes: Vec<Override> =
        changes.iter().map(|text| text.parse().expect("a key and a value")).collect();
    Ok(Experiment::parse(text, "the path as it was found", &changes)?)
}

fn size(given: Option<Bytes>, rate: Option<Rate>) -> Bytes {
    let [least, most] = SIZES;
    given.unwrap_or_else(|| {
        // To 100 kB.
        let seconds = |rate: Rate| Bytes((rate.bit_per_s() / 8).saturating_mul(SECONDS) / 100_000 * 100_000);
        rate.map_or(least, seconds).clamp(least, most)
    })
}

/// How many requests take some seconds.
fn requests(found: &PathEstimate) -> u32 {
    let trip = found.echoes.round_trips().first().copied().unwrap_or_default().as_nanos().max(1);
    u32::try_from(REQUESTING.as_nanos() / trip).unwrap_or(u32::MAX).clamp(5, 200)
}

fn summary_of_measurement(experiment: &Experiment) -> ExperimentSummary {
    let points = MEASURED.map(|name| SummaryPoint {
        swept: vec![("measured".to_owned(), name.to_owned())],
        ..SummaryPoint::default()
    });
    ExperimentSummary {
        axes: vec![vec!["measured".to_owned()]],
        points: points.to_vec(),
        ..html::summary_of_experiment(experiment, MEASURED.len() as u64)
    }
}

/// The echoes as a run.
fn echoes(found: &PathEstimate, experiment: &Experiment) -> Run {
    let (row, rows) = found.echoes.row(0);
    let mut provenance = provenance(experiment, &experiment.point(0));
    provenance.kernel = found.kernels[0].to_string();
    provenance.changes.push(format!("measured={}", MEASURED[0]));
    provenance.settings.extend(words::lines(found));
    let key = RunKey { point: 0, engine: Engine::Measure, seed: Some(1) };
    Run { flows: vec![row], series: rows.into(), ..Run::new(key, provenance) }
}

fn print(
    args: &MeasureArgs,
    peer: &Peer,
    found: &PathEstimate,
    runs: &[Run],
    times: &[Duration],
) -> Result<(), CliError> {
    if args.json {
        let mut out = output::stdout();
        writeln!(out, "{}", words::json(found, times))?;
        for run in runs {
            write_flow_lines(run, &mut out)?;
        }
        return Ok(());
    }
    let [local, there] = &found.kernels;
    let hosts = format!(
        "{} ({local}) to {} ({there}, farpath {})",
        peer.local().ip(),
        peer.address(),
        peer.version()
    );
    let mut text = vec![hosts, String::new()];
    text.extend(words::lines(found));
    text.extend(runs.iter().filter_map(|run| words::transfer(run, times)));
    let mut caveats: Vec<&String> = runs.iter().flat_map(|run| &run.provenance.caveats).collect();
    caveats.sort_unstable();
    caveats.dedup();
    if !caveats.is_empty() {
        text.push(String::new());
    }
    text.extend(caveats.into_iter().enumerate().map(|(number, caveat)| format!("[{}] {caveat}", number + 1)));
    output::print(&text.join("\n"))?;
    if args.flows && !runs.is_empty() {
        output::print(&format!("\n{}", flows_table(runs).to_text(output::width())))?;
    }
    Ok(())
}
