//! An experiment file: a scenario, and the points of its sweep.

use crate::document::{Document, Override};
use crate::emulate::EmulationClock;
use crate::error::{ExperimentError, Location, parse_toml};
use crate::published::Published;
use crate::reader::as_table;
use crate::scenario::{Scenario, read_scenario};
use crate::stack::StackCache;
use crate::sweep::{Axis, Change, Sweep, label};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use toml::Value;

/// The most runs, over all points, that one experiment may have.
pub const MAX_RUNS: u64 = 10_000_000;

/// An experiment, checked: none of its points is refused when it is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The file, as it was named.
    pub origin: String,
    /// Title of the first point.
    pub title: String,
    /// The file as given, for the record.
    pub text: Arc<str>,
    /// What was given beside the file.
    pub overrides: Vec<Override>,
    /// Seed of the first point's first run.
    pub seed: u64,
    /// Runs of the first point.
    pub seeds: u64,
    /// What is swept.
    pub axes: Vec<Axis>,
    /// What a paper printed, for the points that are left of the file's own.
    pub published: Option<Published>,
    points: Vec<Point>,
}

/// One point of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// From 0; the last axis moves fastest.
    pub index: usize,
    /// Keys and values that make it this point.
    pub swept: Vec<(String, String)>,
    /// What is run.
    pub scenario: Scenario,
}

impl Experiment {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML; keys that do not exist; values that are refused, at
    /// any point of the sweep.
    pub fn load(path: &Path, overrides: &[Override]) -> Result<Experiment, ExperimentError> {
        let origin = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| {
            let at = Location { origin: origin.clone(), key: String::new() };
            ExperimentError::Read { at, file: origin.clone(), source }
        })?;
        Experiment::parse(&text, &origin, overrides)
    }

    /// Reads and checks the text of a file called `origin`. Other files that it names are looked for
    /// beside that one.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn parse(text: &str, origin: &str, overrides: &[Override]) -> Result<Experiment, ExperimentError> {
        let mut table = parse_toml(origin, text)?;
        let written = Sweep::read(table.remove("sweep").as_ref(), origin)?;
        let published = read_published(table.remove("published"), origin, &written)?;
        let plan = Plan::new(Document::new(origin, table)?, &written, overrides)?;
        let points = plan.points()?;
        let runs: u128 = points.iter().map(|point| u128::from(point.scenario.seeds)).sum();
        if runs > u128::from(MAX_RUNS) {
            let at = Location { origin: origin.to_owned(), key: "seeds".to_owned() };
            return Err(at.refuse(format!("{runs} runs in all; the most is {MAX_RUNS}")));
        }
        let first = &points.first().expect("a sweep has at least one point").scenario;
        Ok(Experiment {
            origin: origin.to_owned(),
            title: first.title.clone(),
            text: text.into(),
            overrides: overrides.to_vec(),
            seed: first.seed,
            seeds: first.seeds,
            axes: plan.sweep.axes(),
            published: match published {
                Some(published) => Some(published.select(&plan.points_of(&written)?)),
                None => None,
            },
            points,
        })
    }

    /// Point `index` alone with these changes on top of it: an experiment without a sweep.
    ///
    /// # Errors
    /// As [`Experiment::parse`]: the changes are checked like a file's own values. No such point is an error too.
    pub fn only(&self, index: usize, changes: &[Override]) -> Result<Experiment, ExperimentError> {
        let overrides: Vec<Override> =
            self.changes_of(index)?.into_iter().chain(changes.iter().cloned()).collect();
        Experiment::parse(&self.text, &self.origin, &overrides)
    }

    /// What makes point `index` of the file as it was given: overrides of parameters, then its place in the sweep.
    pub(crate) fn changes_of(&self, index: usize) -> Result<Vec<Override>, ExperimentError> {
        if index >= self.points.len() {
            let at = Location { origin: self.origin.clone(), key: "sweep".to_owned() };
            return Err(
                at.refuse(format!("there is no point {index}; they are 0 to {}", self.points.len() - 1))
            );
        }
        let mut table = parse_toml(&self.origin, &self.text)?;
        let written = Sweep::read(table.remove("sweep").as_ref(), &self.origin)?;
        let plan = Plan::new(Document::new(&self.origin, table)?, &written, &self.overrides)?;
        let fixed = plan.fixed.iter().cloned().chain(plan.sweep.point(index));
        Ok(fixed.map(|(key, value, _)| Override::new(key, value)).collect())
    }

    /// Every point, in order; at least one.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Whether a point of it, where it is emulated, is so in real time, for which privileges are needed.
    pub fn emulates_in_real_time(&self) -> bool {
        self.points().iter().any(|point| point.scenario.emulate.clock == EmulationClock::Real)
    }
}

fn read_published(
    value: Option<Value>,
    origin: &str,
    sweep: &Sweep,
) -> Result<Option<Published>, ExperimentError> {
    let Some(value) = value else { return Ok(None) };
    let at = Location { origin: origin.to_owned(), key: "published".to_owned() };
    Published::read(as_table(&value, &at)?, origin, sweep.points(origin)?).map(Some)
}

/// A document and everything that is to be put into it.
struct Plan<'a> {
    document: Document<'a>,
    sweep: Sweep,
    /// Overrides of parameters, as changes.
    fixed: Vec<Change>,
}

impl<'a> Plan<'a> {
    fn new(
        document: Document<'a>,
        written: &Sweep,
        overrides: &[Override],
    ) -> Result<Plan<'a>, ExperimentError> {
        let mut sweep = written.clone();
        let mut fixed: Vec<Change> = Vec::new();
        for given in overrides {
            let key = format!("{} (--set)", given.key);
            let at = Location { origin: document.origin.to_owned(), key };
            if given.key == "published" || given.key.starts_with("published.") {
                return Err(at.refuse("what was published is not a parameter"));
            }
            if given.key == "sweep" {
                sweep = Sweep::read(Some(&given.value), document.origin)?;
                continue;
            }
            match given.key.strip_prefix("sweep.") {
                Some(rest) => {
                    let swept = rest.strip_prefix("zip.").unwrap_or(rest);
                    sweep.replace(swept, &given.value, at)?;
                }
                None => fixed.push((given.key.clone(), given.value.clone(), at)),
            }
        }
        // Names of elements are those of the path that is in force, unless that is swept over as well.
        let mut base = document.clone();
        for (key, value, at) in fixed.iter().filter(|(key, ..)| key == "path") {
            base.set(key, value.clone(), at.key.clone())?;
        }
        let canonical = |key: &str| base.canonical(key);
        sweep.check_distinct(canonical)?;
        // Of two values for one parameter the later one counts.
        let keys: Vec<String> = fixed.iter().map(|(key, ..)| canonical(key)).collect();
        let mut place = 0..;
        fixed.retain(|_| place.next().is_none_or(|place: usize| !keys[place + 1..].contains(&keys[place])));
        let sweep = sweep.without(|key| fixed.iter().any(|(fixed, ..)| canonical(fixed) == canonical(key)));
        Ok(Plan { document, sweep, fixed })
    }

    fn points(&self) -> Result<Vec<Point>, ExperimentError> {
        let stacks = StackCache::default();
        (0..self.sweep.points(self.document.origin)?)
            .map(|index| {
                let swept = self.sweep.point(index);
                let scenario = self.scenario(&swept, &stacks)?;
                let swept = swept.into_iter().map(|(key, value, _)| (key, label(&value))).collect();
                Ok(Point { index, swept, scenario })
            })
            .collect()
    }

    fn scenario(&self, swept: &[Change], stacks: &StackCache) -> Result<Scenario, ExperimentError> {
        let mut document = self.document.clone();
        let given: Vec<&Change> = self.fixed.iter().chain(swept).collect();
        let of_case = document.take_case(&given)?;
        // What is given beside a case counts more than what the case says.
        let all = of_case.iter().chain(given);
        let mut changes: Vec<&Change> = all.filter(|(key, ..)| key != "case").collect();
        // A whole path before its elements, an element's parameter before one direction of it.
        changes.sort_by_key(|(key, ..)| key.matches('.').count());
        for (key, value, at) in changes {
            document.set(key, value.clone(), at.key.clone())?;
        }
        read_scenario(document.origin, &document.table, stacks).map_err(|error| document.explain(error))
    }

    /// Which point of the sweep as `written` each point is, if it is one: overrides take points away, or
    /// make others.
    fn points_of(&self, written: &Sweep) -> Result<Vec<Option<usize>>, ExperimentError> {
        let origin = self.document.origin;
        let assignment = |changes: Vec<Change>| -> Vec<(String, String)> {
            let plain = |value: &Value| label(value).split_whitespace().collect::<String>();
            let mut pairs: Vec<_> =
                changes.iter().map(|(key, value, _)| (self.document.canonical(key), plain(value))).collect();
            pairs.sort();
            pairs
        };
        let known: HashMap<Vec<(String, String)>, usize> =
            (0..written.points(origin)?).map(|index| (assignment(written.point(index)), index)).collect();
        let keys: Vec<String> = assignment(written.point(0)).into_iter().map(|(key, _)| key).collect();
        // A change of anything else makes another experiment than the one that was published.
        Ok((0..self.sweep.points(origin)?)
            .map(|index| {
                let mut pairs =
                    assignment(self.fixed.iter().cloned().chain(self.sweep.point(index)).collect());
                pairs.retain(|(key, _)| keys.contains(key) || !says_only_how_it_is_run(key));
                known.get(&pairs).copied()
            })
            .collect())
    }
}

/// Whether a key leaves the experiment what it is: how often it is run, how long, what is recorded, and how a
/// kernel is used.
fn says_only_how_it_is_run(key: &str) -> bool {
    matches!(key, "title" | "seed" | "seeds" | "horizon")
        || key.starts_with("output.")
        || key.starts_with("emulate.")
}
