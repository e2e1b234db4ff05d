//! Where the number of a check comes from.

use super::claim::{Check, CheckEngine, OverPoints, OverSeeds, Paper};
use super::number::Numbers;
use super::{codec, file_of, metric};
use crate::curve::{Grid, steps};
use crate::html::summary_of_experiment;
use crate::sequence_diagram::lanes;
use farpath_engine::{EngineError, jobs, run_all};
use farpath_experiment::{Experiment, Override, Stack, shipped_experiments, to_toml};
use farpath_model::{Args, evaluate, formula};
use farpath_run::{Engine, ExperimentSummary, Run, SummaryPoint};
use farpath_units::Duration;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use toml::Table;

/// Runs that several checks share: made once per experiment and changes.
#[derive(Debug, Default)]
pub struct Runs {
    /// Whether the running kernel is asked too, which takes real time.
    pub emulate: bool,
    made: HashMap<String, Made>,
}

/// The runs of one experiment, and what it asked.
#[derive(Debug)]
pub(super) struct Made {
    pub runs: Vec<Run>,
    pub asked: ExperimentSummary,
    /// What passes packets on, on the path of the first point.
    pub lanes: Vec<String>,
}

impl Made {
    /// How its points are called.
    pub fn points(&self) -> Vec<String> {
        let name = |point: &SummaryPoint| {
            let values: Vec<&str> = point.swept.iter().map(|(_, value)| value.as_str()).collect();
            values.join(" / ")
        };
        self.asked.points.iter().map(name).collect()
    }
}

/// What came out of a check.
pub(super) struct Reproduced {
    pub numbers: Numbers,
    /// What a reader should know of it; mostly nothing.
    pub remark: String,
}

impl From<Numbers> for Reproduced {
    fn from(numbers: Numbers) -> Reproduced {
        Reproduced { numbers, remark: String::new() }
    }
}

/// Why there is no number.
pub(super) enum NoNumber {
    /// The check cannot be made as it is written.
    Fault(String),
    /// It is not made here, or not now.
    NotRun(String),
}

impl From<String> for NoNumber {
    fn from(fault: String) -> NoNumber {
        NoNumber::Fault(fault)
    }
}

impl From<&str> for NoNumber {
    fn from(fault: &str) -> NoNumber {
        NoNumber::Fault(fault.to_owned())
    }
}

/// Computes the number of a check.
pub(super) fn reproduce(
    paper: &Paper,
    check: &Check,
    runs: &mut Runs,
    stop: &AtomicBool,
) -> Result<Reproduced, NoNumber> {
    if let Some(reason) = &check.not_run {
        return Err(NoNumber::NotRun(reason.clone()));
    }
    if let Some(formula) = &check.formula {
        return Ok(of_formula(formula, check)?.into());
    }
    if let Some(stack) = &check.stack {
        return Ok(of_stack(stack, check)?);
    }
    if let Some(codec) = check.codec {
        return Ok(codec::ask(codec, check.bytes.as_ref(), &check.fields)?.into());
    }
    let (Some(experiment), Some(metric)) = (&check.experiment, &check.metric) else {
        return Err("there is nothing to compute".into());
    };
    let engine = match check.engine {
        CheckEngine::Predict => Engine::Predict,
        CheckEngine::Emulate if runs.emulate => Engine::Emulate,
        CheckEngine::Emulate => {
            let reason = "it asks the running kernel, in real time: `farpath reproduce --emulate` does";
            return Err(NoNumber::NotRun(reason.to_owned()));
        }
        _ => Engine::Simulate,
    };
    let made = runs.make(paper, experiment, &check.set, engine, stop)?;
    let time = check.time.as_deref().map(str::parse::<Duration>).transpose();
    let time = time.map_err(|error| format!("time: {error}"))?;
    let sound: Vec<&Run> = made.runs.iter().filter(|run| !is_void(run)).collect();
    if let Some(void) = made.runs.iter().find(|run| sound.iter().all(|sound| sound.point != run.point)) {
        let why = void.grade.as_ref().and_then(|grade| grade.void.as_deref()).unwrap_or_default();
        return Err(NoNumber::NotRun(format!("no run was in time: {why}")));
    }
    Ok(over_points(check, metric, time, &sound, &made.asked)?.into())
}

/// Whether the machine was not in time for it.
fn is_void(run: &Run) -> bool {
    run.grade.as_ref().is_some_and(|grade| grade.void.is_some())
}

/// Asks the closed form once, or once for each entry of the lists among its arguments.
fn of_formula(name: &str, check: &Check) -> Result<Numbers, String> {
    let entries = check.args.values().map(|list| list.0.len()).max().unwrap_or(1);
    if let Some((key, list)) = check.args.iter().find(|(_, list)| ![1, entries].contains(&list.0.len())) {
        return Err(format!("args.{key} has {} entries, the longest list {entries}", list.0.len()));
    }
    let mut results = Vec::new();
    for entry in 0..entries {
        let args: Args =
            check.args.iter().map(|(key, list)| (key.clone(), list.0[entry % list.0.len()])).collect();
        let values = evaluate(name, &args).map_err(|error| error.to_string())?;
        match &check.result {
            None => results.extend(values),
            Some(result) => {
                let known = formula(name).map(|formula| formula.results).unwrap_or_default();
                let place = known.iter().position(|other| other == result).ok_or_else(|| {
                    format!("`{name}` has no result `{result}`; it has {}", known.join(", "))
                })?;
                results.push(values[place]);
            }
        }
    }
    Ok(Numbers(results))
}

/// How many of the listed attributes the stack has, and which it has not.
fn of_stack(name: &str, check: &Check) -> Result<Reproduced, String> {
    let stack = Stack::load(name).map_err(|error| error.to_string())?;
    let whole: Table = to_toml(&stack.config).parse().map_err(|error| format!("{name}: {error}"))?;
    let mut missing = Vec::new();
    for (attribute, parameters) in &check.attributes {
        // With these parameters it is the same stack, if it has them: `3 s` and `3000 ms` are read alike.
        let mut changed = whole.clone();
        changed.insert("title".to_owned(), attribute.as_str().into());
        for (key, value) in parameters {
            match (changed.get_mut(key).and_then(toml::Value::as_table_mut), value.as_table()) {
                (Some(section), Some(values)) => section.extend(values.clone()),
                _ => drop(changed.insert(key.clone(), value.clone())),
            }
        }
        let same = Stack::parse(&changed.to_string(), attribute).map_err(|error| error.to_string())?;
        if same.config != stack.config {
            missing.push(attribute.as_str());
        }
    }
    let remark =
        if missing.is_empty() { String::new() } else { format!("{name} has not: {}", missing.join(", ")) };
    let equal = check.attributes.len() - missing.len();
    Ok(Reproduced { numbers: Numbers(vec![equal as f64]), remark })
}

fn over_points(
    check: &Check,
    metric: &str,
    time: Option<Duration>,
    runs: &[&Run],
    asked: &ExperimentSummary,
) -> Result<Numbers, String> {
    let (above, below) = match metric.split_once(" / ") {
        Some((above, below)) => (above, Some(below)),
        None => (metric, None),
    };
    let of = |metric| per_point(check.over_seeds, metric, time, runs);
    let mut values = of(above)?;
    if let Some(below) = below {
        for (value, below) in values.iter_mut().zip(of(below)?) {
            *value /= below;
        }
    }
    let (&first, later) = values.split_first().ok_or("no run was made")?;
    let mean = later.iter().sum::<f64>() / later.len() as f64;
    Ok(Numbers(match check.over_points {
        OverPoints::Each => values,
        OverPoints::OverFirst => later.iter().map(|value| value / first).collect(),
        OverPoints::OverLargest => values.iter().map(|value| value / largest(&values)).collect(),
        OverPoints::Largest => vec![largest(&values)],
        OverPoints::PercentMore => later.iter().map(|value| (value / first - 1.0) * 100.0).collect(),
        OverPoints::MeanLessFirst => vec![mean - first],
        OverPoints::Spread => vec![spread(&values)],
        OverPoints::Sums
        | OverPoints::Steps
        | OverPoints::Levels
        | OverPoints::Slopes
        | OverPoints::Roughness => over_lines(check.over_points, asked, &values)?,
    }))
}

/// What is taken of each line of a sweep over many numbers, line by line.
fn over_lines(what: OverPoints, asked: &ExperimentSummary, values: &[f64]) -> Result<Vec<f64>, String> {
    let grid = Grid::swept_in(asked).ok_or("the sweep has no parameter with numbers enough for a curve")?;
    let mut numbers = Vec::new();
    for line in &grid.lines {
        let curve = line.curve(|index| values.get(index).copied());
        let steps = steps(&curve);
        match what {
            OverPoints::Steps => numbers.extend(steps.iter().map(|step| step.at)),
            OverPoints::Levels => {
                numbers.extend(steps.first().map(|step| step.change.0));
                numbers.extend(steps.iter().map(|step| step.change.1));
            }
            OverPoints::Slopes => {
                let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
                    return Err(format!("the curve {} has no step", line.label));
                };
                let slope =
                    |from: usize, to: usize| (curve[to].1 - curve[from].1) / (curve[to].0 - curve[from].0);
                numbers.push(slope(last.between.1, curve.len() - 1) / slope(0, first.between.0));
            }
            OverPoints::Roughness => numbers.push(roughness(&curve)),
            _ => numbers.push(curve.iter().map(|point| point.1).sum()),
        }
    }
    Ok(numbers)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The middle one, or the mean of the two in the middle.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (sorted[half - 1] + sorted[half]) / 2.0 } else { sorted[half] }
}

/// How far a curve is from the straight line between the points before and behind, in the mean.
fn roughness(curve: &[(f64, f64)]) -> f64 {
    let off = |points: &[(f64, f64)]| (points[1].1 - (points[0].1 + points[2].1) / 2.0).abs();
    let triples = curve.windows(3);
    let count = triples.len().max(1) as f64;
    triples.map(off).sum::<f64>() / count
}

/// One number for each point.
fn per_point(
    how: OverSeeds,
    metric: &str,
    time: Option<Duration>,
    runs: &[&Run],
) -> Result<Vec<f64>, String> {
    let mut points: Vec<Vec<f64>> = Vec::new();
    for run in runs {
        let point = run.point as usize;
        points.resize_with(points.len().max(point + 1), Vec::new);
        points[point].push(metric::value(run, metric, time)?);
    }
    let over_seeds = |seeds: &Vec<f64>| match how {
        OverSeeds::Mean => seeds.iter().sum::<f64>() / seeds.len() as f64,
        OverSeeds::Median => median(seeds),
    };
    Ok(points.iter().map(over_seeds).collect())
}

fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least
}

impl Runs {
    /// How many runs were void, as this machine was not in time, and of how many that could be.
    pub fn void(&self) -> (usize, usize) {
        let graded = || self.made.values().flat_map(|made| &made.runs).filter(|run| run.grade.is_some());
        (graded().filter(|run| is_void(run)).count(), graded().count())
    }

    /// The runs of an experiment with some changes.
    pub(super) fn make(
        &mut self,
        paper: &Paper,
        name: &str,
        set: &BTreeMap<String, toml::Value>,
        engine: Engine,
        stop: &AtomicBool,
    ) -> Result<&Made, String> {
        let overrides = set
            .iter()
            .map(|(key, value)| format!("{key}={}", plain(value)).parse::<Override>())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let changes: Vec<&str> = overrides.iter().map(Override::text).collect();
        let key = format!("{}/{name} {engine} {}", paper.id, changes.join(" "));
        if !self.made.contains_key(&key) {
            let (text, origin) = experiment_text(paper, name)?;
            let experiment =
                Experiment::parse(text, &origin, &overrides).map_err(|error| error.to_string())?;
            let mut made = Vec::new();
            run_all(&experiment, &jobs(&experiment, &[engine]), stop, |run| {
                made.push(run);
                Ok::<(), EngineError>(())
            })
            .map_err(|error| format!("{name}: {error}"))?;
            if stop.load(Ordering::Relaxed) {
                return Err("interrupted".to_owned());
            }
            let asked = summary_of_experiment(&experiment, made.len() as u64);
            let lanes = lanes(&experiment.point(0).scenario);
            self.made.insert(key.clone(), Made { runs: made, asked, lanes });
        }
        Ok(&self.made[&key])
    }
}

/// A text value without its quotes: as it would be typed behind `--set`.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The paper's own experiment of this name, else the shipped one.
fn experiment_text(paper: &Paper, name: &str) -> Result<(&'static str, String), String> {
    if let Some(text) = file_of(&paper.id, name) {
        return Ok((text, format!("papers/{}/{name}.toml", paper.id)));
    }
    shipped_experiments()
        .into_iter()
        .find(|file| file.name == name)
        .map(|file| (file.text, format!("experiments/{name}.toml")))
        .ok_or_else(|| format!("there is no experiment `{name}`, neither of the paper nor shipped"))
}
