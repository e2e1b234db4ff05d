//! What to change, what it would gain by the closed forms, and what it gains when it is simulated.

mod candidates;

use crate::measure::{Bench, Observed, Predicted, Spread, predicted};
use crate::{ExplainError, cap};
use farpath_experiment::{Experiment, Override, Scenario};
use farpath_units::Bytes;
use serde::Serialize;

pub(crate) use candidates::{Candidate, candidates};

/// What becomes of the transfer with a remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Faster, or less late, by more than 1 % and by more than chance, or more flows complete.
    Helps,
    /// Neither.
    NoEffect,
    /// Slower by as much, or fewer flows complete.
    Hurts,
}

/// One change, or a set of changes that belong together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remedy {
    /// Its name, for `--apply`.
    pub id: String,
    /// What it is.
    pub title: String,
    /// Why it should help.
    pub why: String,
    /// The changes, as `--set` takes them.
    pub set: Vec<String>,
    /// The closed forms' transfer time with it, in s; unknown where they say that it does not complete.
    pub predicted_s: Option<f64>,
    /// How many times as fast the closed forms take it to be.
    pub predicted_speed_up: Option<f64>,
    /// What is simulated with it.
    pub simulated: Observed,
    /// How many times as fast it is when simulated: transfer times where all complete, else bytes read per second. Of a
    /// stream: how many times less late, in the mean over its messages.
    pub simulated_speed_up: Option<f64>,
    /// Seconds that it saves, or by which it is less late, seed by seed; only where every run completed before and after.
    pub gain_s: Option<Spread>,
    /// What came out.
    pub verdict: Verdict,
    /// Where prediction and simulation do not agree on the gain: how, and why where that is known.
    pub disagreement: Option<String>,
    #[serde(skip)]
    pub(crate) changes: Vec<Override>,
    #[serde(skip)]
    apart: bool,
}

impl Remedy {
    /// The changes, to be put into an experiment.
    pub fn changes(&self) -> &[Override] {
        &self.changes
    }
}

/// A remedy below so much of the time is no effect.
const WORTH: f64 = 0.01;

/// Predicted and simulated speed-up differ by more than this factor: they do not agree.
const AGREES: f64 = 1.25;

/// A point of an experiment that remedies are tried on.
pub(crate) struct Patient<'a> {
    pub experiment: &'a Experiment,
    pub point: usize,
    /// The size that is simulated, where that is not the file's.
    pub size: Option<Bytes>,
    pub base: &'a Observed,
    pub predicted_s: Option<f64>,
}

impl Patient<'_> {
    /// The scenario with some changes, at the size that is simulated, and what the closed forms say of it. `None` where the
    /// changes do not go with the rest of the experiment: a floor above a ceiling, keys of a link that a flow router has not.
    fn changed(&self, changes: &[Override]) -> Option<(Scenario, Predicted)> {
        let changed = self.experiment.only(self.point, changes).ok()?;
        let scenario = cap(&changed.point(0).scenario, self.size);
        let prediction = predicted(&scenario).ok()?;
        Some((scenario, prediction))
    }

    /// Every candidate, tried alone: the fastest first.
    pub fn try_all(
        &self,
        candidates: Vec<Candidate>,
        bench: &mut Bench<'_>,
    ) -> Result<Vec<Remedy>, ExplainError> {
        let tried = candidates.into_iter().filter_map(|candidate| {
            let (scenario, prediction) = self.changed(&candidate.changes)?;
            Some(((candidate, prediction), scenario))
        });
        let (tried, scenarios): (Vec<_>, Vec<_>) = tried.unzip();
        let observed = bench.measure(&scenarios)?;
        let mut remedies: Vec<Remedy> = tried
            .into_iter()
            .zip(observed)
            .map(|((candidate, prediction), simulated)| self.remedy(candidate, prediction, simulated))
            .collect();
        remedies.sort_by(|a, b| {
            let speed = |remedy: &Remedy| remedy.simulated_speed_up.unwrap_or(0.0);
            let completed = |remedy: &Remedy| remedy.simulated.completed;
            completed(b)
                .total_cmp(&completed(a))
                .then(speed(b).total_cmp(&speed(a)))
                .then(b.simulated.rate_bit_per_s.total_cmp(&a.simulated.rate_bit_per_s))
        });
        Ok(remedies)
    }

    /// The combination that is left when all that do not hurt are taken together and what adds nothing is taken out
    /// again, the least first. Starting from all of them finds what helps only together: two buffers of one size.
    pub fn combine(
        &self,
        remedies: &[Remedy],
        bench: &mut Bench<'_>,
    ) -> Result<Option<Remedy>, ExplainError> {
        let changed = |kept: &[&Remedy]| self.changed(&together(kept));
        let mut kept: Vec<&Remedy> = Vec::new();
        for remedy in remedies.iter().filter(|remedy| remedy.verdict != Verdict::Hurts && !remedy.apart) {
            kept.push(remedy);
            // Each goes with the experiment, and perhaps not with a better one.
            if changed(&kept).is_none() {
                kept.pop();
            }
        }
        let Some((scenario, mut prediction)) = changed(&kept).filter(|_| kept.len() > 1) else {
            return Ok(None);
        };
        let mut best = bench.measure_one(scenario)?;
        for index in (0..kept.len()).rev() {
            let mut fewer = kept.clone();
            fewer.remove(index);
            if fewer.is_empty() {
                break;
            }
            // One that another one needs stays.
            let Some((scenario, predicted)) = changed(&fewer) else { continue };
            let without = bench.measure_one(scenario)?;
            // Gone, unless it is worse without it.
            if !without.is_beaten_by(&best, WORTH) {
                best = without;
                prediction = predicted;
                kept = fewer;
            }
        }
        if kept.len() < 2 {
            return Ok(None);
        }
        let names: Vec<&str> = kept.iter().map(|remedy| remedy.id.as_str()).collect();
        let candidate = Candidate {
            id: "all".to_owned(),
            title: names.join(", "),
            why: "of the remedies that do not hurt, those without which it would be slower".to_owned(),
            changes: together(&kept),
            apart: false,
        };
        Ok(Some(self.remedy(candidate, prediction, best)))
    }

    fn remedy(&self, candidate: Candidate, prediction: Predicted, simulated: Observed) -> Remedy {
        // How long a stream takes says nothing of how late it is.
        let stream = simulated.lateness_s.is_some();
        let predicted_s = prediction.time_s.filter(|_| !stream);
        let predicted_speed_up = self
            .predicted_s
            .zip(predicted_s)
            .filter(|(_, after)| *after > 0.0)
            .map(|(before, after)| before / after);
        let simulated_speed_up = self.base.speed_up_of(&simulated);
        let verdict = if self.base.is_beaten_by(&simulated, WORTH) {
            Verdict::Helps
        } else if simulated.is_beaten_by(self.base, WORTH) {
            Verdict::Hurts
        } else {
            Verdict::NoEffect
        };
        let disagreement =
            if stream { None } else { self.disagreement(&prediction, predicted_speed_up, &simulated) };
        Remedy {
            set: candidate.changes.iter().map(|change| change.text().to_owned()).collect(),
            id: candidate.id,
            title: candidate.title,
            why: candidate.why,
            predicted_s,
            predicted_speed_up,
            gain_s: self.base.gain_of(&simulated),
            simulated,
            simulated_speed_up,
            verdict,
            disagreement,
            changes: candidate.changes,
            apart: candidate.apart,
        }
    }

    /// How prediction and simulation differ on the gain, and what the prediction says of itself.
    fn disagreement(
        &self,
        prediction: &Predicted,
        predicted: Option<f64>,
        simulated: &Observed,
    ) -> Option<String> {
        let completes = simulated.completed == 1.0;
        match (prediction.time_s, completes) {
            (None, true) => {
                return Some(
                    "the closed forms say that it does not complete in time; simulated, it does".to_owned(),
                );
            }
            // Known of the experiment as it is already, and no gain is claimed.
            (Some(_), false) if predicted.is_none_or(|gain| gain < AGREES) && self.base.completed < 1.0 => {
                return None;
            }
            (Some(_), false) => {
                return Some(
                    "the closed forms say that it completes; simulated, it does not always".to_owned(),
                );
            }
            _ => {}
        }
        let simulated = self.base.speed_up_of(simulated)?;
        let Some(predicted) = predicted else {
            return completes.then(|| {
                "the closed forms do not say how long it takes without the change: no gain to compare"
                    .to_owned()
            });
        };
        let ratio = predicted / simulated;
        if (1.0 / AGREES..=AGREES).contains(&ratio) {
            return None;
        }
        let because = if self.base.completed < 1.0 {
            "; not every run completes without it".to_owned()
        } else if prediction.caveats.is_empty() {
            String::new()
        } else {
            format!("; the prediction says of itself: {}", prediction.caveats.join("; "))
        };
        Some(format!(
            "predicted {predicted:.2} times as fast, simulated {simulated:.2} times: they do not agree{because}"
        ))
    }
}

/// The changes of several remedies, the best of them last: of two values for one key the later counts.
fn together(remedies: &[&Remedy]) -> Vec<Override> {
    let mut changes: Vec<Override> = Vec::new();
    for change in remedies.iter().rev().flat_map(|remedy| &remedy.changes) {
        changes.retain(|other| other.key != change.key);
        changes.push(change.clone());
    }
    changes
}
