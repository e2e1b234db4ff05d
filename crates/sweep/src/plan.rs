//! What is wanted of a sweep, and what of it is missing.

use crate::error::SweepError;
use crate::inventory::Inventory;
use crate::key::{PointKey, emulated_key, point_key};
use crate::seeds::Seeds;
use farpath_experiment::{Experiment, Scenario};
use farpath_run::Engine;
use std::collections::HashMap;
use std::ops::Range;

/// Runs of one point by one engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Number of the point.
    pub point: usize,
    /// What makes them.
    pub key: PointKey,
    /// Who makes them.
    pub engine: Engine,
    /// Their seeds; `0..1` stands for a prediction, which has none.
    pub seeds: Range<u64>,
}

impl Wanted {
    /// How many runs.
    pub fn count(&self) -> u64 {
        self.seeds.end - self.seeds.start
    }
}

/// Everything that a sweep asks for. Of a point it holds what tells it from others: a million of them take 50 MB.
#[derive(Debug, Clone)]
pub struct Plan {
    keys: Keys,
    /// The same on the kernel that emulates them; empty where nothing is emulated.
    emulated: Keys,
    engines: Vec<Engine>,
    /// In the order of points and engines.
    asked: Vec<PlannedSeeds>,
}

/// [`Wanted`] without the key, which the point has.
#[derive(Debug, Clone)]
struct PlannedSeeds {
    point: u32,
    engine: Engine,
    seeds: Range<u64>,
}

/// Keys of points, and points by their keys.
#[derive(Debug, Clone, Default)]
struct Keys {
    of_point: Vec<PointKey>,
    /// Numbers of points, in the order of their keys.
    order: Vec<u32>,
}

impl Keys {
    fn new(of_point: Vec<PointKey>) -> Keys {
        let points = u32::try_from(of_point.len()).expect("an experiment has fewer points");
        let mut order: Vec<u32> = (0..points).collect();
        order.sort_unstable_by_key(|&point| (of_point[point as usize], point));
        Keys { of_point, order }
    }

    /// The points of a key: more than one where points are alike.
    fn points(&self, key: PointKey) -> &[u32] {
        let key_of = |point: u32| self.of_point[point as usize];
        let start = self.order.partition_point(|&point| key_of(point) < key);
        let alike = self.order[start..].partition_point(|&point| key_of(point) == key);
        &self.order[start..start + alike]
    }
}

/// How far a sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Runs that it asks for.
    pub wanted: u64,
    /// Of these, those that are there.
    pub done: u64,
}

impl Plan {
    /// Of an experiment on these engines: point by point, engine by engine.
    ///
    /// # Errors
    /// There is no kernel to emulate on, or an engine that makes no runs of a sweep.
    pub fn new(experiment: &Experiment, engines: &[Engine]) -> Result<Plan, SweepError> {
        if engines.contains(&Engine::Measure) {
            return Err(SweepError::NotSwept(Engine::Measure));
        }
        let of_points = experiment.map_points(|point| {
            let Scenario { seed, seeds, emulate, .. } = &point.scenario;
            // As many fit: an experiment has a bound on its runs.
            (point_key(point), *seed, *seeds as u32, emulate.seeds.min(*seeds) as u32)
        });
        let keys = Keys::new(of_points.iter().map(|&(key, ..)| key).collect());
        let emulated = match engines.contains(&Engine::Emulate) {
            true => {
                let of_points =
                    experiment.map_points(|point| emulated_key(keys.of_point[point.index], point));
                Keys::new(of_points.into_iter().collect::<Result<_, _>>()?)
            }
            false => Keys::default(),
        };
        let asked = of_points.into_iter().zip(0..).flat_map(|((_, first, seeds, emulated), point)| {
            engines.iter().map(move |&engine| {
                let seeds = match engine {
                    Engine::Predict => 0..1,
                    // Real time costs what it takes: as many as the experiment wants of these.
                    Engine::Emulate => first..first.saturating_add(emulated.into()),
                    _ => first..first.saturating_add(seeds.into()),
                };
                PlannedSeeds { point, engine, seeds }
            })
        });
        let asked = asked.collect();
        Ok(Plan { keys, emulated, engines: engines.to_vec(), asked })
    }

    fn keys(&self, engine: Engine) -> &Keys {
        match engine {
            Engine::Emulate => &self.emulated,
            _ => &self.keys,
        }
    }

    /// The key of a point's runs by this engine.
    pub fn key(&self, point: u64, engine: Engine) -> PointKey {
        self.keys(engine).of_point[point as usize]
    }

    /// The numbers of the points of this key, in order.
    pub fn points(&self, key: PointKey, engine: Engine) -> &[u32] {
        self.keys(engine).points(key)
    }

    /// What is wanted, in the order of points.
    pub fn wanted(&self) -> impl ExactSizeIterator<Item = Wanted> {
        self.asked.iter().map(|asked| self.with_key(asked))
    }

    fn with_key(&self, asked: &PlannedSeeds) -> Wanted {
        #[cfg(test)]
        count_a_look();
        let (point, engine) = (asked.point as usize, asked.engine);
        Wanted { point, key: self.key(point as u64, engine), engine, seeds: asked.seeds.clone() }
    }

    /// What is wanted of a point, engine by engine.
    fn asked_of(&self, point: u32) -> &[PlannedSeeds] {
        let start = self.asked.partition_point(|asked| asked.point < point);
        let end = self.asked[start..].partition_point(|asked| asked.point == point);
        &self.asked[start..start + end]
    }

    /// What is wanted of these points, in stretches of so many runs, or of one point and engine where these are more.
    pub(crate) fn stretches(&self, points: &[u32], runs: u64) -> impl Iterator<Item = Vec<Wanted>> {
        let asked = points.iter().flat_map(|&point| self.asked_of(point));
        let mut rest = asked.map(|asked| self.with_key(asked)).peekable();
        std::iter::from_fn(move || {
            let mut stretch: Vec<Wanted> = Vec::new();
            let mut held = 0;
            while let Some(wanted) = rest.next_if(|wanted| held == 0 || held + wanted.count() <= runs) {
                held += wanted.count();
                stretch.push(wanted);
            }
            (!stretch.is_empty()).then_some(stretch)
        })
    }

    /// Asks for as many seeds of each point and engine as `seeds` says; nothing of it where that is none.
    pub(crate) fn set_seeds(&mut self, mut seeds: impl FnMut(&Wanted) -> u64) {
        let mut asked = std::mem::take(&mut self.asked);
        for one in &mut asked {
            one.seeds.end = one.seeds.start + seeds(&self.with_key(one));
        }
        self.asked = asked;
    }

    /// Takes everything out that is wanted.
    pub(crate) fn take_wanted(&mut self) -> Vec<Wanted> {
        let all = self.wanted().collect();
        self.asked = Vec::new();
        all
    }

    /// Wants these too.
    pub(crate) fn ask(&mut self, more: impl IntoIterator<Item = Wanted>) {
        let asked = |Wanted { point, engine, seeds, .. }| PlannedSeeds { point: point as u32, engine, seeds };
        self.asked.extend(more.into_iter().map(asked));
        self.asked.sort_by_key(|asked| (asked.point, asked.engine));
    }

    /// What is not there yet; points that are alike are asked for once.
    pub fn missing(&self, there: &Inventory) -> Vec<Wanted> {
        let mut alike: HashMap<(PointKey, Engine), Seeds> = HashMap::new();
        let mut missing = Vec::new();
        for wanted in self.wanted() {
            let mut known = there.seeds(wanted.key, wanted.engine);
            if self.points(wanted.key, wanted.engine).len() > 1 {
                let before = alike.entry((wanted.key, wanted.engine)).or_insert(known);
                known = before.clone();
                before.add(wanted.seeds.clone());
            }
            let ranges = known.missing(wanted.seeds.clone()).into_iter();
            missing.extend(ranges.map(|seeds| Wanted { seeds, ..wanted.clone() }));
        }
        missing
    }

    /// How far it is.
    pub fn status(&self, there: &Inventory) -> Status {
        let wanted = self.asked.iter().map(|asked| asked.seeds.end - asked.seeds.start).sum();
        let done = there.spans().map(|(key, engine, seeds)| self.asked_among(key, engine, seeds)).sum();
        Status { wanted, done }
    }

    /// How many of these runs are asked for. Those of points that are alike are asked for by each of them.
    pub(crate) fn asked_among(&self, key: PointKey, engine: Engine, seeds: &Range<u64>) -> u64 {
        let of_point = |&point: &u32| self.asked_of(point).iter().filter(|asked| asked.engine == engine);
        let common = |asked: &PlannedSeeds| {
            asked.seeds.end.min(seeds.end).saturating_sub(asked.seeds.start.max(seeds.start))
        };
        self.points(key, engine).iter().flat_map(of_point).map(common).sum()
    }

    /// Whether runs of this point and engine are asked for, whatever their seeds.
    pub fn wants(&self, key: PointKey, engine: &str) -> bool {
        let engine = self.engines.iter().find(|known| known.name() == engine);
        engine.is_some_and(|&engine| !self.points(key, engine).is_empty())
    }
}

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A point was looked at on this thread.
#[cfg(test)]
pub(crate) fn count_a_look() {
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Folder, run_chunk, write_points};
    use std::sync::atomic::AtomicBool;

    /// How many points are looked at where three of a sweep's are there, and how many runs are said to be there.
    fn looks(sweep: &str) -> (u64, Status) {
        let text =
            format!("title = 'One'\npath = 'noisy-channel'\nseeds = 1\n[transfer]\nsize = '1 kB'\n{sweep}");
        let experiment = Experiment::parse(&text, "here", &[]).expect("good");
        let plan = Plan::new(&experiment, &[Engine::Predict, Engine::Simulate]).expect("no kernel is asked");
        let room = tempfile::tempdir().expect("a folder");
        let (folder, _lock) =
            Folder::create(room.path(), &experiment, &[Engine::Predict, Engine::Simulate]).expect("writable");
        let never = AtomicBool::new(false);
        let first: Vec<Wanted> = plan.wanted().take(3).collect();
        folder.keep(&run_chunk(&experiment, &first, &never).expect("made")).expect("writable");
        LOOKS.set(0);
        let mut rows = 0;
        write_points(&experiment, &plan, &folder, &never, |_, _| rows += 1).expect("writable");
        let status = plan.status(&folder.inventory().expect("readable"));
        assert_eq!(rows, 3);
        (LOOKS.get(), status)
    }

    #[test]
    fn what_is_summed_up_does_not_grow_with_the_points_that_were_not_run() {
        for [few, many] in [
            [
                "[sweep]\n'path.delay' = '1 ms to 10 ms by 1 ms'",
                "[sweep]\n'path.delay' = '1 ms to 2000 ms by 1 ms'",
            ],
            [
                "[sweep.random]\npoints = 10\n'path.delay' = '1 ms to 9 ms'\nseed = 3",
                "[sweep.random]\npoints = 2000\n'path.delay' = '1 ms to 9 ms'\nseed = 3",
            ],
        ] {
            let ((looks_of_few, of_few), (looks_of_many, of_many)) = (looks(few), looks(many));
            assert_eq!(looks_of_few, looks_of_many, "{many}");
            assert_eq!((of_few, of_many), (Status { wanted: 20, done: 3 }, Status { wanted: 4000, done: 3 }));
        }
    }

    #[test]
    fn points_that_are_alike_are_run_once_and_counted_each() {
        let text = "title = 'One'\npath = 'noisy-channel'\nseeds = 3\n[transfer]\nsize = '1 MB'\n[sweep]\nseed = [1, 2]";
        let experiment = Experiment::parse(text, "here", &[]).expect("good");
        let plan = Plan::new(&experiment, &[Engine::Simulate]).expect("no kernel is asked");
        assert_eq!(plan.key(0, Engine::Simulate), plan.key(1, Engine::Simulate));
        let there = Inventory::default();
        let seeds: Vec<Range<u64>> = plan.missing(&there).into_iter().map(|wanted| wanted.seeds).collect();
        assert_eq!(seeds, [1..4, 4..5]);
        assert_eq!(plan.status(&there), Status { wanted: 6, done: 0 });
    }
}
