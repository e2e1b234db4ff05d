//! What is wanted of a sweep, and what of it is missing.

use crate::folder::Inventory;
use crate::key::{PointKey, point_key};
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
    pub fn new(experiment: &Experiment, engines: &[Engine]) -> Plan {
        let keys: Vec<PointKey> = experiment.points().iter().map(point_key).collect();
        let mut points: HashMap<PointKey, Vec<u64>> = HashMap::new();
        for (point, &key) in keys.iter().enumerate() {
            points.entry(key).or_default().push(point as u64);
        }
        let wanted = |(point, &key): (usize, &PointKey)| {
            let scenario = &experiment.points()[point].scenario;
            let seeds = scenario.seed..scenario.seed.saturating_add(scenario.seeds);
            engines.iter().map(move |&engine| {
                let seeds = if engine == Engine::Predict { 0..1 } else { seeds.clone() };
                Wanted { point, key, engine, seeds }
            })
        };
        let wanted = keys.iter().enumerate().flat_map(wanted).collect();
        Plan { keys, points, wanted }
    }

    /// The key of each point.
    pub fn keys(&self) -> &[PointKey] {
        &self.keys
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
        let plan = Plan::new(&experiment, &[Engine::Simulate]);
        assert_eq!(plan.keys()[0], plan.keys()[1]);
        let there = Inventory::default();
        let seeds: Vec<Range<u64>> = plan.missing(&there).into_iter().map(|wanted| wanted.seeds).collect();
        assert_eq!(seeds, [1..4, 4..5]);
        assert_eq!(plan.status(&there), Status { wanted: 6, done: 0 });
    }
}
