//! The figures of a paper, as data, drawn from simulated runs with what was printed beside them.

use super::claim::Paper;
use super::closed_forms::ClosedForm;
use super::exchange::{self, Exchange};
use super::number::Numbers;
use super::reproduce::{Made, Runs};
use super::{PaperError, file_of, metric};
use crate::curve::Grid;
use crate::html::curves::{self, Quantity};
use crate::html::line_family::{LineFamily, Mark};
use crate::html::trace::round_trips_and_sequence;
use crate::html::{Columns, Figure, air, decimate};
use farpath_run::{Engine, MessageRow, Metric, Outcome, Run, Statistic};
use farpath_units::{Duration, ParseQuantityError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

/// Intervals that a line is decimated to, four points each.
const INTERVALS: usize = 300;

/// The label of a value of this unit on an axis.
pub(super) fn label(unit: &str) -> String {
    match unit {
        "" => "datum.label".to_owned(),
        "s" => "datum.value + ' s'".to_owned(),
        "ns" => "datum.value / 1e9 + ' s'".to_owned(),
        unit => format!(
            "datum.value >= 1e6 ? format(datum.value / 1e6, '~r') + ' M{unit}' : datum.value >= 1e3 ? \
             format(datum.value / 1e3, '~r') + ' k{unit}' : datum.value + ' {unit}'"
        ),
    }
}

/// Over what a received rate is averaged.
const RATE_INTERVAL: u64 = 1_000_000_000;

/// `figures.toml`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "figure")]
    figures: Vec<Description>,
}

/// One figure: of which runs, and what of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    title: String,
    caption: String,
    /// An experiment: a file of the paper's folder, or a shipped one by name ...
    experiment: Option<String>,
    /// ... with these changes.
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    /// A series, a line for each point: `cwnd`, `acked` ..., `received_rate`, or the `lateness` of a stream's messages.
    over_time: Option<String>,
    /// A metric of the checks, for each point.
    over_points: Option<String>,
    /// A metric of the checks, as a curve over the many numbers of the sweep.
    over_numbers: Option<String>,
    /// A metric of the checks over the two parameters of a sweep, a line for each value of the second.
    over_two: Option<String>,
    /// What a run recorded of its first flow, with silences beyond `time` marked.
    trace: Option<Recorded>,
    /// What the air of radios was used for, a bar for each point.
    #[serde(default)]
    air: bool,
    /// A part of the run, segment by segment.
    exchange: Option<Exchange>,
    /// By closed forms, without a run.
    closed_form: Option<ClosedForm>,
    /// The moment or span that the metric is about.
    time: Option<WithUnit<Duration>>,
    /// What the vertical axis is.
    #[serde(default)]
    axis: String,
    /// What the points are.
    #[serde(default)]
    points: String,
    /// How points or lines are called, in their order, where their parameters say too much.
    #[serde(default)]
    names: Vec<String>,
    /// Until when time is drawn: a figure for each.
    #[serde(default)]
    until: Vec<WithUnit<Duration>>,
    /// Numbers that were printed, as lines across.
    #[serde(default)]
    levels: Vec<Level>,
    /// Numbers that were printed, one for each point.
    published: Option<Numbers>,
}

/// What a run records of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Recorded {
    /// RTT samples, SRTT and RTO.
    Rtt,
    /// What was sent, acknowledged and lost, and when.
    Sequence,
}

/// A number to compare a line with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    at: f64,
    text: String,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr<Err = ParseQuantityError>")]
pub(super) struct WithUnit<T>(pub T);

impl<T: FromStr<Err = ParseQuantityError>> TryFrom<String> for WithUnit<T> {
    type Error = ParseQuantityError;
    fn try_from(text: String) -> Result<WithUnit<T>, Self::Error> {
        text.parse().map(WithUnit)
    }
}

/// Draws the figures of a paper; none where it has no `figures.toml`. The runs are shared with its checks.
///
/// # Errors
/// A figure file that is not as it should be, or a run that cannot be made.
pub fn figures(paper: &Paper, runs: &mut Runs, stop: &AtomicBool) -> Result<Vec<Figure>, PaperError> {
    let Some(text) = file_of(&paper.id, "figures") else { return Ok(Vec::new()) };
    let file: File = toml::from_str(text)
        .map_err(|source| PaperError::Figures { paper: paper.id.clone(), problem: source.to_string() })?;
    let mut figures = Vec::new();
    for about in &file.figures {
        let drawn = match (&about.experiment, &about.closed_form) {
            (Some(experiment), None) => runs
                .make(paper, experiment, &about.set, Engine::Simulate, stop)
                .and_then(|made| about.draw(made)),
            (None, Some(form)) => form.figure(&about.title, &about.caption).map(|figure| vec![figure]),
            _ => Err("a figure has either `experiment` or `closed_form`".to_owned()),
        };
        figures.extend(drawn.map_err(|problem| PaperError::Figures {
            paper: paper.id.clone(),
            problem: format!("{}: {problem}", about.title),
        })?);
    }
    Ok(figures)
}

impl Description {
    fn draw(&self, made: &Made) -> Result<Vec<Figure>, String> {
        if let Some(metric) = &self.over_two {
            return Ok(vec![self.line_family(metric, made)?]);
        }
        if let Some(recorded) = self.trace {
            return Ok(vec![self.traced(recorded, made)?]);
        }
        if self.air {
            return self.bars(made);
        }
        let (runs, points) = (&made.runs, || named(made.points(), &self.names));
        match (&self.over_time, &self.over_points, &self.over_numbers, self.exchange) {
            (Some(what), None, None, None) => {
                let points = points()?;
                self.until.iter().map(|until| self.lines(what, until.0, runs, &points)).collect()
            }
            (None, Some(metric), None, None) => Ok(vec![self.values(metric, runs, &points()?)?]),
            (None, None, Some(metric), None) => Ok(vec![self.curves(metric, made)?]),
            (None, None, None, Some(part)) => {
                let run = runs.first().ok_or("no run was made")?;
                Ok(vec![exchange::figure(part, &self.title, &self.caption, run, &made.lanes)?])
            }
            _ => {
                let which =
                    "`over_time`, `over_points`, `over_numbers`, `over_two`, `trace`, `air` and `exchange`";
                Err(format!("a figure has one of {which}"))
            }
        }
    }

    /// The mean of each point's runs that have an answer.
    fn line_family(&self, name: &str, made: &Made) -> Result<Figure, String> {
        let line_family =
            LineFamily::swept_in(&made.asked).ok_or("the sweep has not two parameters of a few values")?;
        let mut marks = Vec::new();
        for runs in made.runs.chunk_by(|a, b| a.point == b.point) {
            let of = |run: &Run| metric::value(run, name, self.time.map(|time| time.0));
            let known = runs.iter().filter(completed).map(of).collect::<Result<Vec<_>, _>>()?;
            let mark = |value| Mark { point: runs[0].point as usize, who: "simulated", value };
            marks.extend(Statistic::from_values(known).map(mark));
        }
        line_family
            .figure(&self.title, &self.caption, &self.axis, &marks)
            .ok_or_else(|| "no transfer was completed".to_owned())
    }

    /// Of the run of middle length.
    fn traced(&self, recorded: Recorded, made: &Made) -> Result<Figure, String> {
        let mut runs: Vec<&Run> = made.runs.iter().filter(completed).collect();
        runs.sort_by_key(|run| run.flows.first().and_then(|flow| flow.transfer_time));
        let run = *runs.get(runs.len() / 2).ok_or("no transfer was completed")?;
        let (rtt, sequence) = round_trips_and_sequence(run, self.time.map(|time| time.0));
        let figure = match recorded {
            Recorded::Rtt => rtt,
            Recorded::Sequence => sequence,
        };
        let figure = figure
            .ok_or("nothing was recorded: the experiment needs `output.series` and `output.segments`")?;
        let which = match runs.len() {
            1 => String::new(),
            many => format!(" Of {many} runs the one of middle length."),
        };
        let caption = format!("{}{which} {}", self.caption, figure.caption);
        Ok(Figure { title: self.title.clone(), caption, ..figure })
    }

    fn bars(&self, made: &Made) -> Result<Vec<Figure>, String> {
        let names = named(made.points(), &self.names)?;
        let drawn =
            air::figures_of(&made.runs, |run| names.get(run.point as usize).cloned().unwrap_or_default());
        if drawn.is_empty() {
            return Err("there is no radio on the path".to_owned());
        }
        let figure = |figure: Figure| Figure {
            title: format!("{}: {}", self.title, figure.title),
            caption: format!("{} {}", self.caption, figure.caption),
            ..figure
        };
        Ok(drawn.into_iter().map(figure).collect())
    }

    /// A curve for each combination of the other parameters; the mean of a point's runs, where they have an answer.
    fn curves(&self, name: &str, made: &Made) -> Result<Figure, String> {
        let mut grid = Grid::swept_in(&made.asked)
            .ok_or("the sweep has no parameter with numbers enough for a curve")?;
        let labels = grid.lines.iter().map(|line| line.label.clone()).collect();
        for (line, name) in grid.lines.iter_mut().zip(named(labels, &self.names)?) {
            line.label = name;
        }
        let mut values = vec![None; made.asked.points.len()];
        for runs in made.runs.chunk_by(|a, b| a.point == b.point) {
            let runs: Vec<&Run> = runs.iter().filter(completed).collect();
            let of = runs.iter().map(|run| metric::value(run, name, self.time.map(|time| time.0)));
            let sum = of.sum::<Result<f64, _>>()?;
            if let Some(first) = runs.first() {
                values[first.point as usize] = Some(sum / runs.len() as f64);
            }
        }
        let quantity =
            Quantity { title: self.title.clone(), caption: self.caption.clone(), axis: &self.axis };
        curves::figure(quantity, &made.asked, &grid, &[("", values)])
            .ok_or_else(|| "no transfer was completed".to_owned())
    }

    /// A line for the first run of each point.
    fn lines(&self, what: &str, until: Duration, runs: &[Run], points: &[String]) -> Result<Figure, String> {
        let end = until.as_nanos();
        let (mut times, mut bytes, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let metric = Metric::from_name(what);
        let unit = match (what, metric) {
            ("received_rate", _) => "B",
            ("lateness", _) => "ns",
            (_, Some(metric)) => metric.unit(),
            (name, None) => return Err(format!("there is no series `{name}`")),
        };
        for (run, point) in first_runs(runs).zip(points) {
            let mut samples = match (metric, what) {
                (Some(metric), _) => series(run, metric),
                (None, "lateness") => lateness(run),
                (None, _) => received_rate(run),
            };
            samples.retain(|sample| sample.0 <= end);
            if samples.is_empty() {
                let output = if what == "lateness" { "messages" } else { "series" };
                return Err(format!(
                    "no `{what}` was recorded: the experiment needs `output.{output} = true`"
                ));
            }
            for (time, value) in decimate(&samples, INTERVALS) {
                times.push(time as f64 / 1e9);
                bytes.push(value as f64);
                names.push(point);
            }
        }
        let averaged = if what == "received_rate" {
            " In-order delivery to the application, averaged over 1 s."
        } else {
            ""
        };
        Ok(Figure {
            plot: "by-point",
            title: format!("{}, the first {until}", self.title),
            caption: format!("{}{averaged}", self.caption),
            set: vec![
                ("/encoding/y/axis/title", self.axis.as_str().into()),
                ("/encoding/y/axis/labelExpr", label(unit).into()),
                ("/layer/2/encoding/x/scale/domain", vec![0.0, until.as_secs_f64()].into()),
            ],
            data: vec![
                (
                    "levels",
                    Columns::default()
                        .numbers("bytes", self.levels.iter().map(|level| level.at))
                        .texts("text", self.levels.iter().map(|level| &level.text)),
                ),
                (
                    "lines",
                    Columns::default().numbers("time_s", times).numbers("bytes", bytes).texts("point", names),
                ),
            ],
        })
    }

    /// A mean for each point, beside what was printed for it.
    fn values(&self, name: &str, runs: &[Run], points: &[String]) -> Result<Figure, String> {
        let (mut places, mut who, mut bytes, mut half) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (index, point) in points.iter().enumerate() {
            let of_point = runs.iter().filter(|run| run.point as usize == index);
            let values = of_point.map(|run| metric::value(run, name, self.time.map(|time| time.0)));
            let statistic =
                Statistic::from_values(values.collect::<Result<Vec<_>, _>>()?).ok_or("no run was made")?;
            if let Some(published) = self.published.as_ref().and_then(|published| published.0.get(index)) {
                places.push(point);
                who.push("published");
                bytes.push(*published);
                half.push(None);
            }
            places.push(point);
            who.push("simulated");
            bytes.push(statistic.mean);
            half.push(statistic.ci95());
        }
        let unit = metric::unit(name).ok_or_else(|| format!("the unit of `{name}` is not known"))?;
        let bound = |sign: f64| {
            let of = move |(half, mean): (&Option<f64>, &f64)| half.map(|half| mean + sign * half);
            half.iter().zip(&bytes).map(of).collect::<Vec<_>>()
        };
        let points = Columns::default()
            .texts("point", places)
            .texts("who", who)
            .numbers("low", bound(-1.0))
            .numbers("high", bound(1.0))
            .numbers("bytes", bytes);
        Ok(Figure {
            plot: "value-by-point",
            title: self.title.clone(),
            caption: format!("{} Means over the seeds, with their 95 % confidence intervals.", self.caption),
            set: vec![
                ("/layer/0/encoding/y/axis/title", self.axis.as_str().into()),
                ("/layer/0/encoding/y/axis/labelExpr", label(unit).into()),
                ("/encoding/x/axis/title", self.points.as_str().into()),
            ],
            data: vec![("points", points)],
        })
    }
}

/// Whether all of its transfers came to their end.
fn completed(run: &&Run) -> bool {
    run.flows.iter().all(|flow| flow.outcome == Outcome::Completed)
}

/// These names in place of those that parameters make, where there are any.
fn named(parameters: Vec<String>, names: &[String]) -> Result<Vec<String>, String> {
    match names.len() {
        0 => Ok(parameters),
        count if count == parameters.len() => Ok(names.to_vec()),
        count => Err(format!("{count} `names` for {}", parameters.len())),
    }
}

/// The first run of each point; runs come point by point.
fn first_runs(runs: &[Run]) -> impl Iterator<Item = &Run> {
    runs.chunk_by(|a, b| a.point == b.point).filter_map(|runs| runs.first())
}

fn series(run: &Run, metric: Metric) -> Vec<(u64, u64)> {
    let rows = run.series.iter().filter(|row| row.flow == 0 && row.metric == metric);
    rows.map(|row| (row.time.as_nanos(), row.value)).collect()
}

/// By how much later than it was due each message was read, by when it was due.
fn lateness(run: &Run) -> Vec<(u64, u64)> {
    let of_first = run.messages.iter().filter(|row| row.flow == 0);
    let late =
        |row: MessageRow| Some((row.due.as_nanos(), row.arrived?.saturating_since(row.due).as_nanos()));
    of_first.filter_map(late).collect()
}

/// Bytes that the receiving application reads in each interval, at its start.
fn received_rate(run: &Run) -> Vec<(u64, u64)> {
    let read = series(run, Metric::Delivered);
    let Some(last) = read.last() else { return Vec::new() };
    let mut rates = vec![(0, 0); (last.0 / RATE_INTERVAL + 2) as usize];
    let mut before = 0;
    for (time, value) in read {
        rates[(time / RATE_INTERVAL) as usize].1 += value - before;
        before = value;
    }
    for (index, rate) in rates.iter_mut().enumerate() {
        rate.0 = index as u64 * RATE_INTERVAL;
    }
    rates
}
