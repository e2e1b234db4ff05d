//! What the air of radios was used for, as bars.

use super::data::{Columns, Figure};
use super::sweep::slice;
use crate::tables::comparison::participle;
use farpath_path::AirUse;
use farpath_run::{ExperimentSummary, Run};

/// The most bars of a figure.
const BARS: usize = 40;

/// One bar: its name, and of each use the seconds of a run and the joules, in the mean.
struct Bar {
    name: String,
    uses: Vec<(&'static str, f64, Option<f64>)>,
}

/// Shares of the time, and where it is known the energy, of each point and engine; the hops of a path together.
pub(super) fn figures(asked: &ExperimentSummary, runs: &[Run]) -> Vec<Figure> {
    let engines = |run: &&Run| run.engine != runs[0].engine;
    let several = runs.iter().any(|run| engines(&run) && !run.air.is_empty());
    let name = |run: &Run| {
        let point = asked.points.get(run.point as usize).map(|point| slice(point, |_| true));
        let point = point.filter(|point| !point.is_empty());
        let who = several.then(|| participle(run.engine).to_owned());
        [point, who].into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    figures_of(runs, name)
}

/// The same, of runs that are called so.
pub(crate) fn figures_of(runs: &[Run], name: impl Fn(&Run) -> String) -> Vec<Figure> {
    let of_radios: Vec<&Run> = runs.iter().filter(|run| !run.air.is_empty()).collect();
    let same = |a: &&Run, b: &&Run| (a.point, a.engine) == (b.point, b.engine);
    let bars: Vec<Bar> = of_radios.chunk_by(same).map(|runs| bar(name(runs[0]), runs)).collect();
    if bars.is_empty() {
        return Vec::new();
    }
    let shown = &bars[..bars.len().min(BARS)];
    let left_out = match bars.len() > BARS {
        true => format!(" The first {BARS} of {} points.", bars.len()),
        false => String::new(),
    };
    let shared = shown.iter().any(|bar| bar.uses.iter().any(|(what, ..)| *what == AirUse::Others.name()));
    let others = if shared { "exchanges of other stations, " } else { "" };
    let caption = format!(
        "Of the time until the run was over: frames with data and without (ACKs), {others}polls and the radios' own ACKs, turnarounds, \
         frames that arrived damaged, calls that nobody answered, back-off (packets wait, nobody sends) and idle air. Means over \
         the seeds, all hops together.{left_out}"
    );
    let mut figures = vec![figure("What the air was used for", &caption, shown, false)];
    if shown.iter().any(|bar| bar.uses.iter().any(|(.., joules)| joules.is_some())) {
        let caption = format!("What the transceivers of both ends of each hop drew for it.{left_out}");
        figures.push(figure("Energy", &caption, shown, true));
    }
    figures
}

fn bar(name: String, runs: &[&Run]) -> Bar {
    let mut uses: Vec<(&'static str, f64, Option<f64>)> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.air) {
        let place = uses.iter().position(|(what, ..)| *what == row.what).unwrap_or_else(|| {
            uses.push((row.what, 0.0, None));
            uses.len() - 1
        });
        let (_, seconds, joules) = &mut uses[place];
        *seconds += row.time.as_secs_f64() / runs.len() as f64;
        if let Some(more) = row.energy_j {
            *joules = Some(joules.unwrap_or(0.0) + more / runs.len() as f64);
        }
    }
    Bar { name, uses }
}

fn figure(title: &str, caption: &str, bars: &[Bar], energy: bool) -> Figure {
    let total =
        |bar: &Bar| bar.uses.iter().map(|(_, seconds, _)| seconds).sum::<f64>().max(f64::MIN_POSITIVE);
    let rows = || {
        bars.iter().flat_map(move |bar| {
            let total = total(bar);
            (0..).zip(&bar.uses).map(move |(rank, &(what, seconds, joules))| {
                (bar.name.as_str(), what, f64::from(rank), seconds / total * 100.0, seconds, joules)
            })
        })
    };
    let value =
        |row: (&str, &'static str, f64, f64, f64, Option<f64>)| if energy { row.5 } else { Some(row.3) };
    let uses = Columns::default()
        .texts("point", rows().map(|row| row.0))
        .texts("use", rows().map(|row| row.1))
        .numbers("rank", rows().map(|row| row.2))
        .numbers("value", rows().map(value))
        .numbers("share", rows().map(|row| row.3))
        .numbers("seconds", rows().map(|row| row.4))
        .numbers("joules", rows().map(|row| row.5));
    let axis = if energy { "Energy, J" } else { "Share of the air's time, %" };
    let mut set: Vec<(&'static str, serde_json::Value)> = vec![("/encoding/x/axis/title", axis.into())];
    if !energy {
        set.push(("/encoding/x/scale", serde_json::json!({ "domain": [0, 100] })));
    }
    Figure {
        plot: "air",
        title: title.to_owned(),
        caption: caption.to_owned(),
        set,
        data: vec![("uses", uses)],
    }
}
