//! What is wanted of a sweep, and what of it is missing.

use crate::error::SweepError;
use crate::folder::Inventory;
use crate::key::{PointKey, emulated_key, point_key};
use crate::seeds::Seeds;
use farpath_experiment::Experiment;
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

/// Everything that a sweep asks for.
#[derive(Debug, Clone)]
pub struct Plan {
    keys: Vec<PointKey>,
    /// The same on the kernel that emulates them; empty where nothing is emulated.
    emulated: Vec<PointKey>,
    points: HashMap<PointKey, Vec<u64>>,
    wanted: Vec<Wanted>,
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
        let keys: Vec<PointKey> = experiment.points().iter().map(point_key).collect();
        let emulated = match engines.contains(&Engine::Emulate) {
            true => {
                keys.iter().zip(experiment.points()).map(|(key, point)| emulated_key(*key, point)).collect()
            }
            false => Ok(Vec::new()),
        }?;
        let mut plan = Plan { keys, emulated, points: HashMap::new(), wanted: Vec::new() };
        for (point, of) in experiment.points().iter().enumerate() {
            let of = &of.scenario;
            for &engine in engines {
                let key = plan.key(point as u64, engine);
                let seeds = match engine {
                    Engine::Predict => 0..1,
                    // Real time costs what it takes: as many as the experiment wants of these.
                    Engine::Emulate => of.seed..of.seed.saturating_add(of.emulate.seeds.min(of.seeds)),
                    _ => of.seed..of.seed.saturating_add(of.seeds),
                };
                plan.wanted.push(Wanted { point, key, engine, seeds });
                let alike = plan.points.entry(key).or_default();
                if alike.last() != Some(&(point as u64)) {
                    alike.push(point as u64);
                }
            }
        }
        Ok(plan)
    }

    /// The key of a point's runs by this engine.
    pub fn key(&self, point: u64, engine: Engine) -> PointKey {
        match engine {
            Engine::Emulate => self.emulated[point as usize],
            _ => self.keys[point as usize],
        }
    }

    /// The numbers of the points of each key: more than one where points are alike.
    pub fn points(&self) -> &HashMap<PointKey, Vec<u64>> {
        &self.points
    }

    /// What is wanted, in the order of points.
    pub fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// The same, to ask for more seeds.
    pub fn wanted_mut(&mut self) -> &mut [Wanted] {
        &mut self.wanted
    }

    /// Takes everything out that is wanted.
    pub(crate) fn take_wanted(&mut self) -> Vec<Wanted> {
        std::mem::take(&mut self.wanted)
    }

    /// Wants these too.
    pub(crate) fn ask(&mut self, more: impl IntoIterator<Item = Wanted>) {
        self.wanted.extend(more);
        self.wanted.sort_by_key(|wanted| (wanted.point, wanted.engine));
    }

    /// What is not there yet; points that are alike are asked for once.
    pub fn missing(&self, there: &Inventory) -> Vec<Wanted> {
        let mut asked: HashMap<(PointKey, Engine), Seeds> = HashMap::new();
        let mut missing = Vec::new();
        for wanted in &self.wanted {
            let known = asked
                .entry((wanted.key, wanted.engine))
                .or_insert_with(|| there.seeds(wanted.key, wanted.engine));
            let ranges = known.missing(wanted.seeds.clone());
            known.add(wanted.seeds.clone());
            missing.extend(ranges.into_iter().map(|seeds| Wanted { seeds, ..wanted.clone() }));
        }
        missing
    }

    /// How far it is.
    pub fn status(&self, there: &Inventory) -> Status {
        let mut status = Status::default();
        for wanted in &self.wanted {
            status.wanted += wanted.seeds.end - wanted.seeds.start;
            status.done += there.seeds(wanted.key, wanted.engine).count_in(wanted.seeds.clone());
        }
        status
    }

    /// Whether runs of this point and engine are asked for, whatever their seeds.
    pub fn wants(&self, key: PointKey, engine: &str) -> bool {
        self.points.contains_key(&key) && self.wanted.iter().any(|wanted| wanted.engine.name() == engine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
