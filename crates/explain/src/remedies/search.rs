//! Which remedies to take together: pairs and triples are simulated, and the smallest set that is nearly the best is taken.

use super::{Candidate, NEARLY, Remedy, TrialPoint, Verdict, by_merit, is_nearly, merit, together};
use crate::ExplainError;
use crate::measure::{Bench, Observed, Predicted, Variant};
use core::cmp::Ordering;
use farpath_experiment::Scenario;

/// So many remedies are combined, the best of them.
const POOL: usize = 10;
/// So many pairs get a third, and so many sets of each size are measured with all seeds.
const BEST_PAIRS: usize = 6;
const FINALISTS: usize = 3;
/// Seeds of the search; what it finds is measured with all of them.
pub(crate) const SEARCH_SEEDS: usize = 3;
/// With more flows than this a run takes seconds: nothing is combined.
pub(crate) const MOST_FLOWS: usize = 500;

/// What is best taken together.
#[derive(Debug, Default)]
pub(crate) struct Combinations {
    /// Of everything that somebody can change today.
    pub all: Option<Remedy>,
    /// Of what the hosts can change.
    pub hosts: Option<Remedy>,
    /// Of that, what there are commands for.
    pub typed: Option<Remedy>,
}

/// A set of remedies, by their places in the pool.
type Set = Vec<usize>;

impl TrialPoint<'_> {
    /// The smallest sets of two or three remedies that are within 5 % of the best; `None` where one alone is.
    pub fn combine(&self, remedies: &[Remedy], bench: &mut Bench<'_>) -> Result<Combinations, ExplainError> {
        let usable = |remedy: &&Remedy| remedy.verdict != Verdict::Hurts && !remedy.apart && !remedy.together;
        let (helps, others): (Vec<&Remedy>, Vec<&Remedy>) =
            remedies.iter().filter(usable).partition(|remedy| remedy.verdict == Verdict::Helps);
        let pool: Vec<&Remedy> = helps.into_iter().chain(others).take(POOL).collect();
        let many = self.experiment.point(self.point).scenario.flows.len() > MOST_FLOWS;
        if pool.len() < 2 || many {
            return Ok(Combinations::default());
        }
        let pairs = sets(&pool).filter(|set| set.len() == 2).collect();
        let pairs = self.ranked(&pool, pairs, bench)?;
        let mut triples: Vec<Set> = Vec::new();
        for pair in the_best(&pool, &pairs, BEST_PAIRS) {
            for third in 0..pool.len() {
                let mut set = [pair.as_slice(), &[third]].concat();
                set.sort_unstable();
                set.dedup();
                if set.len() == 3 && are_compatible(&pool, &set) && !triples.contains(&set) {
                    triples.push(set);
                }
            }
        }
        let triples = self.ranked(&pool, triples, bench)?;
        let mut finalists: Vec<Set> = Vec::new();
        for sets in [&pairs, &triples] {
            for set in the_best(&pool, sets, FINALISTS) {
                if !finalists.contains(set) {
                    finalists.push(set.clone());
                }
            }
        }
        let measured = self.measured(&pool, finalists, None, bench)?;
        let smallest = |id: &str, who: Who| {
            let sets: Vec<Tried> =
                measured.iter().filter(|tried| all_of(&pool, &tried.set, who)).cloned().collect();
            let singles: Vec<&Remedy> = pool.iter().copied().filter(|remedy| who(remedy)).collect();
            self.smallest(id, &pool, &singles, &sets)
        };
        let [all, hosts, typed] =
            [("all", WHO[0]), ("hosts", WHO[1]), ("typed", WHO[2])].map(|(id, who)| smallest(id, who));
        // The same set twice says nothing more.
        let is_new = |set: &Remedy, others: &[&Option<Remedy>]| {
            others.iter().all(|other| other.as_ref().is_none_or(|other| other.title != set.title))
        };
        let typed = typed.filter(|typed| is_new(typed, &[&all, &hosts]));
        let hosts = hosts.filter(|hosts| is_new(hosts, &[&all]));
        Ok(Combinations { all, hosts, typed })
    }

    /// Of the sets the smallest that is within 5 % of the best; none where a remedy alone is.
    fn smallest(&self, id: &str, pool: &[&Remedy], singles: &[&Remedy], sets: &[Tried]) -> Option<Remedy> {
        let alone = singles.iter().map(|remedy| merit(&remedy.simulated));
        let merits = sets.iter().map(|tried| merit(&tried.observed)).chain(alone.clone());
        let best = merits.max_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal))?;
        if alone.clone().any(|merit| is_nearly(merit, best)) {
            return None;
        }
        let chosen = sets
            .iter()
            .filter(|tried| is_nearly(merit(&tried.observed), best))
            .min_by(|a, b| a.set.len().cmp(&b.set.len()).then_with(|| by_merit(&b.observed, &a.observed)))?;
        let kept: Vec<&Remedy> = chosen.set.iter().map(|&place| pool[place]).collect();
        let names: Vec<&str> = kept.iter().map(|remedy| remedy.id.as_str()).collect();
        let risks: Vec<&str> = kept.iter().filter_map(|remedy| remedy.risk.as_deref()).collect();
        let candidate = Candidate {
            id: id.to_owned(),
            title: names.join(", "),
            why: format!(
                "of all pairs, and of triples made of the best of them, the smallest set within {:.0} % of the fastest",
                (NEARLY - 1.0) * 100.0
            ),
            changes: together(&kept),
            apart: false,
            together: false,
            family: None,
            risk: (!risks.is_empty()).then(|| risks.join("; ")),
        };
        Some(self.remedy(candidate, chosen.prediction.clone(), chosen.observed.clone()))
    }

    /// The sets, the best first, by a few seeds.
    fn ranked(
        &self,
        pool: &[&Remedy],
        sets: Vec<Set>,
        bench: &mut Bench<'_>,
    ) -> Result<Vec<Set>, ExplainError> {
        let seeds = (bench.seeds() > SEARCH_SEEDS).then_some(SEARCH_SEEDS);
        let mut tried = self.measured(pool, sets, seeds, bench)?;
        tried.sort_by(|a, b| by_merit(&b.observed, &a.observed));
        Ok(tried.into_iter().map(|tried| tried.set).collect())
    }

    fn measured(
        &self,
        pool: &[&Remedy],
        sets: Vec<Set>,
        seeds: Option<usize>,
        bench: &mut Bench<'_>,
    ) -> Result<Vec<Tried>, ExplainError> {
        let changed = |set: Set| -> Option<(Set, Scenario, Predicted)> {
            let remedies: Vec<&Remedy> = set.iter().map(|&place| pool[place]).collect();
            let (scenario, prediction) = self.changed(&together(&remedies))?;
            Some((set, scenario, prediction))
        };
        let all: Vec<(Set, Scenario, Predicted)> = sets.into_iter().filter_map(changed).collect();
        let variants: Vec<Variant> =
            all.iter().map(|(_, scenario, _)| Variant { seeds, ..Variant::from(scenario.clone()) }).collect();
        let observed = bench.measure_variants(&variants)?;
        let tried = all.into_iter().zip(observed);
        Ok(tried.map(|((set, _, prediction), observed)| Tried { set, prediction, observed }).collect())
    }
}

#[derive(Debug, Clone)]
struct Tried {
    set: Set,
    prediction: Predicted,
    observed: Observed,
}

/// Whether somebody can make a change.
type Who = fn(&Remedy) -> bool;

/// Anybody; the hosts alone; the hosts, by commands that are known.
const WHO: [Who; 3] = [
    |_| true,
    |remedy| remedy.place.is_of_hosts(),
    |remedy| remedy.place.is_of_hosts() && remedy.without_command().is_empty(),
];

fn all_of(pool: &[&Remedy], set: &Set, who: Who) -> bool {
    set.iter().all(|&place| who(pool[place]))
}

/// The first of these sets that each can make: some may be there more than once.
fn the_best<'a>(pool: &'a [&Remedy], sets: &'a [Set], count: usize) -> impl Iterator<Item = &'a Set> {
    WHO.into_iter().flat_map(move |who| sets.iter().filter(move |set| all_of(pool, set, who)).take(count))
}

/// All pairs that do not ask for two values of one key.
fn sets(pool: &[&Remedy]) -> impl Iterator<Item = Set> {
    (0..pool.len())
        .flat_map(|a| (a + 1..pool.len()).map(move |b| vec![a, b]))
        .filter(|set| are_compatible(pool, set))
}

fn are_compatible(pool: &[&Remedy], set: &Set) -> bool {
    let changes: Vec<_> = set.iter().flat_map(|&place| &pool[place].changes).collect();
    changes.iter().all(|a| changes.iter().all(|b| a.key != b.key || a.value == b.value))
}
