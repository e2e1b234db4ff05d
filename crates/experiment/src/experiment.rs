//! An experiment file: a scenario, and the points of its sweep.

use crate::design::Design;
use crate::document::{Document, Override};
use crate::emulate::EmulationClock;
use crate::error::{ExperimentError, Location, parse_toml};
use crate::numbers::Kind;
use crate::published::Published;
use crate::range::MAX_POINTS;
use crate::reader::as_table;
use crate::scenario::{Scenario, read_scenario};
use crate::sweep::{Axis, Change, Sweep, label};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use toml::Value;

/// The most runs, over all points, that one experiment may have.
pub const MAX_RUNS: u64 = MAX_POINTS as u64;

/// Of so many points, 4 kB each, all are kept; of fewer where their paths are long, or have traces, plans or lists. Of more than
/// that each is made when it is asked for.
const KEPT: usize = 4096;

/// So many elements take the room of a point, and so many entries of traces, plans and lists.
const ELEMENTS_OF_A_POINT: usize = 16;
const ENTRIES_OF_A_POINT: usize = 500;

/// So many points are made by a thread before it looks for more.
const BLOCK: usize = 256;

/// An experiment, checked: none of its points is refused when it is run.
#[derive(Debug, Clone)]
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
    plan: Arc<Plan>,
    count: usize,
    /// All of the points, or none.
    kept: Arc<[Point]>,
    /// The first point with something of BPF.
    with_bpf: Option<usize>,
    /// Whether a point has a TCP of somebody else's.
    with_foreign_host: bool,
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
        let text = farpath_files::read_text(path).map_err(|source| {
            let at = Location { origin: origin.clone(), key: String::new() };
            ExperimentError::Read { at, file: origin.clone(), source }
        })?;
        Experiment::parse(&text, &origin, overrides)
    }

    /// The experiment, where it has transfers to predict, simulate or emulate, and not programs only.
    ///
    /// # Errors
    /// An experiment without `[transfer]` and `[[flow]]`.
    pub fn with_transfers(self) -> Result<Experiment, ExperimentError> {
        if !self.point(0).scenario.only_programs {
            return Ok(self);
        }
        let at = Location { origin: self.origin, key: "transfer".to_owned() };
        let expected = "a table with `size`; there are programs only, which `farpath exec FILE` runs";
        Err(ExperimentError::Missing { at, expected: expected.to_owned() })
    }

    /// Reads and checks the text of a file called `origin`. Other files that it names are looked for
    /// beside that one.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn parse(text: &str, origin: &str, overrides: &[Override]) -> Result<Experiment, ExperimentError> {
        let mut table = parse_toml(origin, text)?;
        let sweep = table.remove("sweep");
        let written = Sweep::read(sweep.as_ref(), origin)?;
        let published = read_published(table.remove("published"), origin, &written)?;
        let swept = match Design::changed(sweep, overrides) {
            Some(changed) => Sweep::read(Some(&changed), origin)?,
            None => written.clone(),
        };
        let plan = Plan::new(Document::new(origin, table)?, swept, overrides)?;
        let count = plan.sweep.points(origin)?;
        let kept = plan.keep(count)?;
        let Checked { runs, with_bpf, with_foreign_host } = match kept.is_empty() {
            true => plan.check(count)?,
            false => kept.iter().map(Checked::from_point).fold(Checked::default(), Checked::and),
        };
        if runs > u128::from(MAX_RUNS) {
            let at = Location { origin: origin.to_owned(), key: "seeds".to_owned() };
            return Err(at.refuse(format!("{runs} runs in all; the most is {MAX_RUNS}")));
        }
        let first = match kept.first() {
            Some(point) => point.scenario.clone(),
            None => plan.point(0)?.scenario,
        };
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
            plan: Arc::new(plan),
            count,
            kept,
            with_bpf,
            with_foreign_host,
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
        if index >= self.count {
            let at = Location { origin: self.origin.clone(), key: "sweep".to_owned() };
            return Err(at.refuse(format!("there is no point {index}; they are 0 to {}", self.count - 1)));
        }
        let fixed = self.plan.fixed.iter().cloned().chain(self.plan.sweep.point(index));
        Ok(fixed.map(|(key, value, _)| Override::new(key, value)).collect())
    }

    /// Every point, in order; at least one.
    pub fn points(&self) -> impl ExactSizeIterator<Item = Cow<'_, Point>> {
        (0..self.count).map(|index| self.point(index))
    }

    /// Point `index`. Of a large sweep it is made here, of the files as they were when the experiment was read.
    ///
    /// # Panics
    /// There is no such point.
    pub fn point(&self, index: usize) -> Cow<'_, Point> {
        assert!(index < self.count, "there is no point {index} of {}", self.count);
        match self.kept.get(index) {
            Some(point) => Cow::Borrowed(point),
            None => Cow::Owned(self.plan.point(index).expect("all points were checked")),
        }
    }

    /// The first point whose ends have what is loaded into a kernel ([`Scenario::bpf`]). No point is made to find it.
    pub fn first_with_bpf(&self) -> Option<Cow<'_, Point>> {
        self.with_bpf.map(|index| self.point(index))
    }

    /// Whether an end of any point has a TCP of somebody else's ([`Scenario::foreign_hosts`]). No point is made to find it.
    pub fn has_foreign_hosts(&self) -> bool {
        self.with_foreign_host
    }

    /// What `of` gives for each point, in order. Of a large sweep, whose points take their time, all cores make them.
    pub fn map_points<T: Send>(&self, of: impl Fn(&Point) -> T + Sync) -> Vec<T> {
        if !self.kept.is_empty() {
            return self.kept.iter().map(of).collect();
        }
        let block = |points: Range<usize>| points.map(|index| of(&self.point(index))).collect::<Vec<T>>();
        in_blocks(self.count, block).into_iter().flatten().collect()
    }

    /// Keys and values that make point `index` what it is, without making it.
    pub fn swept(&self, index: usize) -> Vec<(String, String)> {
        self.plan.swept(index)
    }

    /// The kind of the values of a swept key; `None` where they are of several, or names.
    pub fn kind_of(&self, key: &str) -> Option<Kind> {
        let labels: Vec<String> = self.plan.sweep.representatives(key).iter().map(label).collect();
        Kind::of_values(&labels)
    }

    /// Whether a point of it, where it is emulated, is so in real time, for which privileges are needed.
    pub fn emulates_in_real_time(&self) -> bool {
        self.map_points(|point| point.scenario.emulate.clock == EmulationClock::Real).contains(&true)
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

/// What is known of points that were made once.
#[derive(Default)]
struct Checked {
    runs: u128,
    /// The first with something of BPF.
    with_bpf: Option<usize>,
    /// Whether one has a TCP of somebody else's.
    with_foreign_host: bool,
}

impl Checked {
    fn from_point(point: &Point) -> Checked {
        let with_bpf = point.scenario.bpf().next().map(|_| point.index);
        let with_foreign_host = point.scenario.foreign_hosts().next().is_some();
        Checked { runs: u128::from(point.scenario.seeds), with_bpf, with_foreign_host }
    }

    /// With those behind them.
    fn and(self, later: Checked) -> Checked {
        Checked {
            runs: self.runs + later.runs,
            with_bpf: self.with_bpf.or(later.with_bpf),
            with_foreign_host: self.with_foreign_host || later.with_foreign_host,
        }
    }
}

/// A document and everything that is to be put into it.
#[derive(Debug)]
struct Plan {
    document: Document,
    sweep: Sweep,
    /// Overrides of parameters, as changes.
    fixed: Vec<Change>,
}

impl Plan {
    /// `sweep` is the one in force, and what overrides draw of it is drawn: single keys are still to be put in place of its own.
    fn new(document: Document, mut sweep: Sweep, overrides: &[Override]) -> Result<Plan, ExperimentError> {
        let mut fixed: Vec<Change> = Vec::new();
        let whole = overrides.iter().rposition(|given| given.key == "sweep");
        for (index, given) in overrides.iter().enumerate() {
            let key = format!("{} (--set)", given.key);
            let at = Location { origin: document.origin.to_string(), key };
            if given.key == "published" || given.key.starts_with("published.") {
                return Err(at.refuse("what was published is not a parameter"));
            }
            let replaced = given.key.starts_with("sweep.") && whole.is_some_and(|whole| index < whole);
            if given.key == "sweep" || replaced || Design::setting(&given.key).is_some() {
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
        // Of zipped lists several may have been given.
        sweep.check_lengths()?;
        Ok(Plan { document, sweep, fixed })
    }

    fn point(&self, index: usize) -> Result<Point, ExperimentError> {
        let swept = self.sweep.point(index);
        let scenario = self.scenario(&swept)?;
        Ok(Point { index, swept: labels(swept), scenario })
    }

    /// Every point, where they take so little room that all are kept.
    fn keep(&self, count: usize) -> Result<Arc<[Point]>, ExperimentError> {
        let mut points = Vec::new();
        let mut room = if count > KEPT { 0 } else { KEPT };
        for index in 0..count {
            let point = self.point(index)?;
            let path = &point.scenario.path;
            let entries: usize = path.iter().map(|element| element.spec().entries()).sum();
            let taken = 1 + path.len() / ELEMENTS_OF_A_POINT + entries / ENTRIES_OF_A_POINT;
            // A point that is alone is held anyway.
            if taken > room && count > 1 {
                return Ok(Arc::default());
            }
            room = room.saturating_sub(taken);
            points.push(point);
        }
        Ok(points.into())
    }

    fn swept(&self, index: usize) -> Vec<(String, String)> {
        labels(self.sweep.point(index))
    }

    /// Makes each point once; gives what is known of all, or the error of the first that is refused.
    fn check(&self, count: usize) -> Result<Checked, ExperimentError> {
        let refused = AtomicBool::new(false);
        let block = |points: Range<usize>| -> Result<Checked, ExperimentError> {
            let mut all = Checked::default();
            // What is begun after one is refused comes after it: nobody wants to know.
            for index in points.take_while(|_| !refused.load(Ordering::Relaxed)) {
                let point = self.point(index).inspect_err(|_| refused.store(true, Ordering::Relaxed))?;
                all = all.and(Checked::from_point(&point));
            }
            Ok(all)
        };
        in_blocks(count, block).into_iter().try_fold(Checked::default(), |all, block| Ok(all.and(block?)))
    }

    fn scenario(&self, swept: &[Change]) -> Result<Scenario, ExperimentError> {
        let mut document = self.document.clone();
        let given: Vec<&Change> = self.fixed.iter().chain(swept).collect();
        let of_case = document.take_case(&given)?;
        // What is given beside a case counts more than what the case says.
        let all = of_case.iter().chain(given);
        let mut changes: Vec<&Change> = all.filter(|(key, ..)| key != "case").collect();
        // A whole path before its elements, an element's parameter before one direction of it.
        changes.sort_by_key(|(key, ..)| key.matches('.').count());
        for (key, value, at) in &changes {
            document.set(key, value.clone(), at.key.clone())?;
        }
        let scenario = read_scenario(&document.origin, &document.table, &document.files)
            .map_err(|error| document.explain(error))?;
        let (seeds, emulated) = (scenario.seeds, scenario.emulate.seeds);
        // Fewer seeds than the file has are given to have fewer runs of each kind.
        let is_given = |key: &str| changes.iter().any(|(other, ..)| other == key);
        if emulated > seeds && (is_given("emulate.seeds") || !is_given("seeds")) {
            let at = Location { origin: document.origin.to_string(), key: "emulate.seeds".to_owned() };
            let reason = format!("{emulated} of the seeds are to be emulated, and `seeds` has {seeds}");
            return Err(document.explain(at.refuse(reason)));
        }
        Ok(scenario)
    }

    /// Which point of the sweep as `written` each point is, if it is one: overrides take points away, or
    /// make others. Empty where none is.
    fn points_of(&self, written: &Sweep) -> Result<Vec<Option<usize>>, ExperimentError> {
        let origin = &*self.document.origin;
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
        let pairs_of = |index| {
            let mut pairs = assignment(self.fixed.iter().cloned().chain(self.sweep.point(index)).collect());
            pairs.retain(|(key, _)| keys.contains(key) || !says_only_how_it_is_run(key));
            pairs
        };
        // All points have the same keys.
        if !pairs_of(0).iter().map(|(key, _)| key).eq(&keys) {
            return Ok(Vec::new());
        }
        Ok((0..self.sweep.points(origin)?).map(|index| known.get(&pairs_of(index)).copied()).collect())
    }
}

/// What `make` gives for each block of so many numbers, in their order, and begun in it, by as many threads as there are cores.
/// They are over when this returns: a process of several threads cannot enter a user namespace.
fn in_blocks<T: Send>(count: usize, make: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let start = || Some(next.fetch_add(BLOCK, Ordering::Relaxed)).filter(|start| *start < count);
        let block = |start: usize| (start, make(start..count.min(start + BLOCK)));
        std::iter::from_fn(start).map(block).collect::<Vec<_>>()
    };
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    });
    made.sort_by_key(|(start, _)| *start);
    made.into_iter().map(|(_, made)| made).collect()
}

fn labels(changes: Vec<Change>) -> Vec<(String, String)> {
    changes.into_iter().map(|(key, value, _)| (key, label(&value))).collect()
}

/// Whether a key leaves the experiment what it is: how often it is run, how long, what is recorded, and how a
/// kernel is used.
fn says_only_how_it_is_run(key: &str) -> bool {
    matches!(key, "title" | "seed" | "seeds" | "horizon")
        || key.starts_with("output.")
        || key.starts_with("emulate.")
        || key.starts_with("budget.")
}
