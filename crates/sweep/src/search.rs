//! Where along an axis a statistic crosses a value, found by halving.
//!
//! The axis is one of the experiment's, so that what is looked at are points like any others, kept and taken again as
//! they are: of an axis of 1000 steps, twelve.

use crate::error::SweepError;
use crate::folder::Folder;
use crate::plan::{Plan, Wanted};
use crate::points::value_of;
use crate::precision::{check_statistic, samples};
use farpath_experiment::{Experiment, numbers};
use farpath_run::{Engine, Statistic};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Key of the axis that is walked.
    pub key: String,
    /// Of which statistic, as [`FlowStatistics`](farpath_run::FlowStatistics) names it.
    pub statistic: String,
    /// What it crosses, in its base unit.
    pub value: f64,
}

/// Why it cannot be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// No axis of this key, or one without a way to go.
    #[error("--find: expected a key that is swept over several values ({known}), found `{found}`")]
    Axis {
        /// As given.
        found: String,
        /// What there is.
        known: String,
    },
    /// No such statistic.
    #[error("--of: {0}")]
    Statistic(#[from] crate::PrecisionError),
    /// No quantity.
    #[error("--crosses: expected a number, with its unit where it has one, such as `1 Mbit/s`, found `{0}`")]
    Value(String),
}

impl Search {
    /// # Errors
    /// A value that is no quantity, no such statistic.
    pub fn new(key: &str, statistic: &str, value: &str) -> Result<Search, SearchError> {
        check_statistic(statistic)?;
        let (values, _) = numbers(&[value]).ok_or_else(|| SearchError::Value(value.to_owned()))?;
        Ok(Search { key: key.to_owned(), statistic: statistic.to_owned(), value: values[0] })
    }

    /// Takes everything out of the plan: points are asked for one after the other.
    ///
    /// # Errors
    /// The axis is not one of the experiment's.
    pub fn begin(self, experiment: &Experiment, plan: &mut Plan) -> Result<Searching, SearchError> {
        let lines = lines(experiment, &self.key).ok_or_else(|| {
            let several = experiment.axes.iter().filter(|axis| axis.steps > 1);
            let known: Vec<&str> = several.flat_map(|axis| &axis.keys).map(String::as_str).collect();
            SearchError::Axis { found: self.key.clone(), known: known.join(", ") }
        })?;
        Ok(Searching { search: self, lines, all: plan.take_wanted() })
    }
}

/// A search that goes on.
#[derive(Debug, Clone)]
pub struct Searching {
    search: Search,
    /// The points of the axis, for each combination of the others.
    lines: Vec<Vec<usize>>,
    all: Vec<Wanted>,
}

/// What came of it, for one engine and one combination of the other axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// Who made the runs.
    pub engine: Engine,
    /// The first point of the axis.
    pub first: usize,
    /// The two neighbours between which it is crossed, each with what is known of it there; `None` where the two ends of
    /// the axis are on one side.
    pub between: Option<[(usize, Option<Statistic>); 2]>,
}

impl Threshold {
    /// Whether the value is outside the 95 % interval on both sides.
    pub fn is_clear(&self, value: f64) -> bool {
        let clear = |sample: &Option<Statistic>| {
            sample.is_none_or(|sample| (sample.mean - value).abs() > sample.ci95().unwrap_or(0.0))
        };
        self.between.as_ref().is_some_and(|ends| ends.iter().all(|(_, sample)| clear(sample)))
    }
}

impl Threshold {
    /// The other axes' keys, with the values of this line.
    pub fn others(&self, experiment: &Experiment, key: &str) -> Vec<(String, String)> {
        let along = experiment.axes.iter().find(|axis| axis.keys.iter().any(|other| other == key));
        let is_along = |other: &String| along.is_some_and(|axis| axis.keys.contains(other));
        let swept = experiment.swept(self.first).into_iter();
        swept.filter(|(other, _)| !is_along(other)).collect()
    }

    /// As one JSON object: `between` has the two values of the axis, with number of the point, mean and half of the 95 %
    /// interval.
    pub fn to_json(&self, experiment: &Experiment, search: &Search) -> Value {
        let swept: Map<String, Value> = self
            .others(experiment, &search.key)
            .into_iter()
            .map(|(key, value)| (key, value.into()))
            .collect();
        let end = |(point, sample): &(usize, Option<Statistic>)| {
            json!({
                "point": point,
                "at": value_of(experiment, *point, &search.key),
                "mean": sample.map(|sample| sample.mean),
                "ci95": sample.and_then(|sample| sample.ci95()),
            })
        };
        json!({
            "engine": self.engine.name(),
            "swept": swept,
            "key": search.key,
            "statistic": search.statistic,
            "value": search.value,
            "between": self.between.as_ref().map(|ends| ends.each_ref().map(end)),
            "clear": self.is_clear(search.value),
        })
    }
}

/// What is known of the points that were asked for, as far as there are runs of them.
type Samples = HashMap<(usize, Engine), Option<Statistic>>;

impl Searching {
    /// What is looked for.
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// Asks for the next points; false where all is found.
    ///
    /// # Errors
    /// A chunk that cannot be read.
    pub fn more_points(&self, plan: &mut Plan, folder: &Folder) -> Result<bool, SweepError> {
        let samples = samples(plan, folder, &self.search.statistic)?;
        let mut next: BTreeSet<(usize, Engine)> = BTreeSet::new();
        for engine in self.engines() {
            for line in &self.lines {
                if let Step::Ask(points) = self.walk(line, engine, &samples) {
                    next.extend(points.into_iter().map(|point| (point, engine)));
                }
            }
        }
        for asked in plan.wanted() {
            next.remove(&(asked.point, asked.engine));
        }
        let more = self.all.iter().filter(|wanted| next.contains(&(wanted.point, wanted.engine)));
        plan.ask(more.cloned());
        Ok(!next.is_empty())
    }

    /// What was found.
    ///
    /// # Errors
    /// A chunk that cannot be read.
    pub fn thresholds(&self, plan: &Plan, folder: &Folder) -> Result<Vec<Threshold>, SweepError> {
        let samples = samples(plan, folder, &self.search.statistic)?;
        let mut found = Vec::new();
        for line in &self.lines {
            for engine in self.engines() {
                if let Step::Found(between) = self.walk(line, engine, &samples) {
                    let known = |point: usize| (point, samples[&(point, engine)]);
                    let between = between.map(|ends| ends.map(known));
                    found.push(Threshold { engine, first: line[0], between });
                }
            }
        }
        Ok(found)
    }

    fn engines(&self) -> BTreeSet<Engine> {
        self.all.iter().map(|wanted| wanted.engine).collect()
    }

    fn walk(&self, line: &[usize], engine: Engine, samples: &Samples) -> Step {
        // Where nothing completes there is no transfer time: that is a side of its own.
        let side = |place: usize| {
            let sample = samples.get(&(line[place], engine))?;
            Some(sample.map(|sample| sample.mean >= self.search.value))
        };
        let (mut from, mut to) = (0, line.len() - 1);
        let (Some(first), Some(last)) = (side(from), side(to)) else {
            return Step::Ask(vec![line[from], line[to]]);
        };
        if first == last {
            return Step::Found(None);
        }
        while to - from > 1 {
            let middle = from.midpoint(to);
            match side(middle) {
                None => return Step::Ask(vec![line[middle]]),
                Some(side) if side == first => from = middle,
                Some(_) => to = middle,
            }
        }
        Step::Found(Some([line[from], line[to]]))
    }
}

enum Step {
    Ask(Vec<usize>),
    Found(Option<[usize; 2]>),
}

/// The points along an axis of several steps, for each combination of the other axes.
fn lines(experiment: &Experiment, key: &str) -> Option<Vec<Vec<usize>>> {
    let axis = experiment.axes.iter().find(|axis| axis.keys.iter().any(|other| other == key))?;
    let firsts = (0..experiment.points().len()).filter(|&point| axis.step_of(point) == 0);
    let line = |first: usize| (0..axis.steps).map(|step| first + step * axis.stride).collect();
    (axis.steps > 1).then(|| firsts.map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, run_missing};
    use std::sync::atomic::AtomicBool;

    fn experiment() -> Experiment {
        let text = "title = 'One'\npath = 'noisy-channel'\nseeds = 1\n[transfer]\nsize = '10 kB'\n[sweep]\n\
            'transfer.size' = ['10 kB', '30 kB']\n'path.delay' = '40 ms to 1280 ms by 40 ms'\n\
            'sender.rto.initial' = ['3 s', '6 s']";
        Experiment::parse(text, "here", &[]).expect("good")
    }

    /// Loss-free transfer times rise with the delay, so that a walk over every point finds the same.
    #[test]
    fn halving_finds_what_a_walk_over_all_points_finds_with_few_runs() {
        let experiment = experiment();
        let engines = [Engine::Predict, Engine::Simulate];
        let room = tempfile::tempdir().expect("a folder");
        let (folder, _lock) = Folder::create(room.path(), &experiment, &engines).expect("writable");
        let run = |plan: &Plan| {
            let missing = plan.missing(&folder.inventory().expect("readable"));
            let never = AtomicBool::new(false);
            run_missing(&experiment, plan, missing, &folder, Limits::default(), &never, |_| ())
                .expect("it runs")
        };
        let search = Search::new("path.delay", "transfer_time_s", "3 s").expect("good");
        let mut plan = Plan::new(&experiment, &engines).expect("no kernel");
        let searching = search.begin(&experiment, &mut plan).expect("it is an axis");
        while searching.more_points(&mut plan, &folder).expect("readable") {
            run(&plan);
        }
        let halved = searching.thresholds(&plan, &folder).expect("readable");
        let asked = plan.wanted().len();
        // Four lines, two engines; of 32 steps the two ends and five halvings, less where nothing is crossed.
        assert!(asked <= 4 * 2 * 7, "{asked}");

        plan = Plan::new(&experiment, &engines).expect("no kernel");
        run(&plan);
        let all = samples(&plan, &folder, "transfer_time_s").expect("readable");
        let mean = |point: usize, engine| all[&(point, engine)].expect("all complete").mean;
        let mut crossed = 0;
        for threshold in &halved {
            let line: Vec<usize> = (0..32).map(|step| threshold.first + step * 2).collect();
            let found = line.windows(2).find(|pair| mean(pair[1], threshold.engine) >= 3.0);
            let points = threshold.between.map(|ends| ends.map(|(point, _)| point));
            assert_eq!(points.as_ref().map(<[usize; 2]>::as_slice), found, "{threshold:?}");
            crossed += usize::from(points.is_some());
        }
        assert_eq!((halved.len(), crossed >= 4), (8, true), "{halved:?}");
    }

    #[test]
    fn what_cannot_be_looked_for_says_why() {
        let error = |key, statistic, value| {
            let search = Search::new(key, statistic, value);
            let mut plan = Plan::new(&experiment(), &[Engine::Predict]).expect("no kernel");
            let begun = search.and_then(|search| search.begin(&experiment(), &mut plan));
            begun.map(drop).expect_err("refused").to_string()
        };
        assert!(error("path.loss", "transfer_time_s", "1 s").contains("transfer.size, path.delay"));
        assert!(error("path.delay", "speed", "1 s").contains("goodput_bit_per_s"));
        assert!(error("path.delay", "transfer_time_s", "fast").contains("found `fast`"));
    }
}
