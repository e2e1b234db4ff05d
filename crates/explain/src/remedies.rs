//! What to change, what it would gain by the closed forms, and what it gains when it is simulated.

mod candidates;
mod search;

use crate::groups::in_front;
use crate::host_commands::{self, HostCommands};
use crate::measure::{Bench, Observed, Predicted, Spread, Variant, predicted};
use crate::{ExplainError, cap};
use core::cmp::Ordering;
use farpath_experiment::{Experiment, Override, Scenario};
use farpath_units::Bytes;
use serde::Serialize;

pub(crate) use candidates::{Candidate, candidates, initial_window_of};
pub(crate) use search::{Combinations, MOST_FLOWS, SEARCH_SEEDS};

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

/// Who can make a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Whoever runs the host that sends the data.
    Sender,
    /// Whoever runs the host that receives them.
    Receiver,
    /// Both of them.
    BothHosts,
    /// Whoever runs the equipment of the path.
    Path,
    /// Nobody yet: it takes routers of another kind.
    NewRouters,
}

impl Place {
    /// All of them, as tables group them.
    pub const ALL: [Place; 5] =
        [Place::Sender, Place::Receiver, Place::BothHosts, Place::Path, Place::NewRouters];

    /// For the head of a group.
    pub const fn title(self) -> &'static str {
        match self {
            Place::Sender => "on the sending host",
            Place::Receiver => "on the receiving host",
            Place::BothHosts => "on both hosts",
            Place::Path => "on the path's equipment",
            Place::NewRouters => "needs new routers",
        }
    }

    /// Whether it is a matter of the hosts alone.
    pub const fn is_of_hosts(self) -> bool {
        matches!(self, Place::Sender | Place::Receiver | Place::BothHosts)
    }

    /// Where these changes are made.
    fn changed_by(changes: &[Override]) -> Place {
        let any = |start: &str| changes.iter().any(|change| change.key.starts_with(start));
        if changes.iter().any(|change| change.key.contains("explicit_rate")) {
            Place::NewRouters
        } else if any("path.") || any("sender.mss") && any("receiver.mss") {
            // Longer packets too are for every link to carry.
            Place::Path
        } else if any("flow") || any("receiver.") && any("sender.") {
            Place::BothHosts
        } else if any("receiver.") || any("transfer.window") {
            Place::Receiver
        } else {
            Place::Sender
        }
    }
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
    /// Who can make it.
    pub place: Place,
    /// What it may do to other traffic, or where the path is not as it is described.
    pub risk: Option<String>,
    /// The changes, as `--set` takes them.
    pub set: Vec<String>,
    /// What is typed in to make them, for each end whose host has settings for it.
    pub commands: Vec<HostCommands>,
    /// The share by which the 95th percentile of the round-trip time under the transfer falls, where that is a tenth at least.
    pub less_delay: Option<f64>,
    /// Worth doing: it gains more than [`GAIN`], or more flows complete.
    pub is_worth_it: bool,
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
    pub(crate) apart: bool,
    #[serde(skip)]
    pub(crate) together: bool,
    #[serde(skip)]
    family: Option<&'static str>,
}

impl Remedy {
    /// The changes, to be put into an experiment.
    pub fn changes(&self) -> &[Override] {
        &self.changes
    }

    /// The changes for which the systems of these hosts have no command that is known here.
    pub fn without_command(&self) -> Vec<&str> {
        let settings = || self.commands.iter().flat_map(|commands| &commands.settings);
        let has_command = |change: &&Override| {
            settings().any(|setting| setting.key.split(", ").any(|key| key == change.key))
        };
        self.changes.iter().filter(|change| !has_command(change)).map(Override::text).collect()
    }
}

/// A remedy below so much of the time is no effect.
const WORTH: f64 = 0.01;

/// A change is advised where the transfer is so many times as fast with it.
pub const GAIN: f64 = 1.1;
/// One with a risk has to be worth more.
pub const GAIN_WITH_A_RISK: f64 = 1.25;
/// Of remedies that differ in a number alone, and of sets of them, the smallest within so much of the best is taken.
pub(crate) const NEARLY: f64 = 1.05;
/// Less queueing is told from this share of the round-trip time on.
const LESS_DELAY: f64 = 0.1;

/// Predicted and simulated speed-up differ by more than this factor: they do not agree.
const AGREES: f64 = 1.25;

/// A point of an experiment that remedies are tried on.
pub(crate) struct TrialPoint<'a> {
    /// Which group of flows it is about.
    pub group: usize,
    pub experiment: &'a Experiment,
    pub point: usize,
    /// The size that is simulated, where that is not the file's.
    pub size: Option<Bytes>,
    pub base: &'a Observed,
    pub predicted_s: Option<f64>,
}

impl TrialPoint<'_> {
    /// The scenario with some changes, at the size that is simulated, and what the closed forms say of it. `None` where the
    /// changes do not go with the rest of the experiment: a floor above a ceiling, keys of a link that a flow router has not.
    fn changed(&self, changes: &[Override]) -> Option<(Scenario, Predicted)> {
        let changed = self.experiment.only(self.point, changes).ok()?;
        let scenario = cap(&in_front(&changed.point(0).scenario, self.group), self.size);
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
            let variant = Variant { together: candidate.together, ..Variant::from(scenario) };
            Some(((candidate, prediction), variant))
        });
        let (tried, variants): (Vec<_>, Vec<_>) = tried.unzip();
        let observed = bench.measure_variants(&variants)?;
        let mut remedies: Vec<Remedy> = tried
            .into_iter()
            .zip(observed)
            .map(|((candidate, prediction), simulated)| self.remedy(candidate, prediction, simulated))
            .collect();
        remedies.sort_by(|a, b| by_merit(&b.simulated, &a.simulated));
        Ok(one_of_each_family(remedies))
    }

    /// What a burst of this remedy's initial window does before a queue of a quarter of it: where the queue is shorter than
    /// one knows, it is lost.
    pub fn burst_risk(
        &self,
        remedy: &mut Remedy,
        segments: u64,
        queue: Override,
        bench: &mut Bench<'_>,
    ) -> Result<(), ExplainError> {
        let short = [remedy.changes.as_slice(), core::slice::from_ref(&queue)].concat();
        let before = core::slice::from_ref(&queue);
        let (Some((with, _)), Some((without, _))) = (self.changed(&short), self.changed(before)) else {
            return Ok(());
        };
        let [with, without] = [bench.measure_one(with)?, bench.measure_one(without)?];
        let time = |observed: &Observed| {
            let time = observed.judged_s().filter(|_| observed.completed == 1.0);
            time.map_or_else(|| "not all complete".to_owned(), |time| format!("{:.3} s", time.mean))
        };
        remedy.risk = Some(format!(
            "{segments} segments leave at once: where a queue holds fewer, the others are lost, of this and of other traffic. \
             Before a queue of a quarter of them ({}): {} with it, {} without",
            queue.text(),
            time(&with),
            time(&without)
        ));
        remedy.is_worth_it &= without.speed_up_of(&with).is_none_or(|speed_up| speed_up > 0.9);
        Ok(())
    }

    fn remedy(&self, candidate: Candidate, prediction: Predicted, simulated: Observed) -> Remedy {
        // How long a stream takes says nothing of how late it is.
        let stream = simulated.lateness_s.is_some();
        let predicted_s = prediction.time_s.filter(|_| !stream && !candidate.together);
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
        let disagreement = if stream || candidate.together {
            None
        } else {
            self.disagreement(&prediction, predicted_speed_up, &simulated)
        };
        let less_delay =
            self.base.rtt_s.zip(simulated.rtt_s).map(|(before, after)| 1.0 - after.p95 / before.p95);
        let less_delay =
            less_delay.filter(|share| *share >= LESS_DELAY && simulated.completed >= self.base.completed);
        let gain = if candidate.risk.is_some() { GAIN_WITH_A_RISK } else { GAIN };
        let is_worth_it = verdict == Verdict::Helps
            && (simulated.completed > self.base.completed
                || simulated_speed_up.is_none_or(|speed_up| speed_up >= gain));
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
            place: Place::changed_by(&candidate.changes),
            risk: candidate.risk,
            commands: host_commands::commands_for(
                &self.experiment.point(self.point).scenario,
                &candidate.changes,
            ),
            less_delay,
            is_worth_it,
            changes: candidate.changes,
            apart: candidate.apart,
            together: candidate.together,
            family: candidate.family,
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
        // What they say nothing of, they do not differ on.
        if prediction.unknown.is_some() {
            return None;
        }
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

/// Of one remedy in several strengths the weakest that is nearly as good as the best.
fn one_of_each_family(remedies: Vec<Remedy>) -> Vec<Remedy> {
    let chosen = |family: &str| {
        let members: Vec<&Remedy> = remedies.iter().filter(|remedy| remedy.family == Some(family)).collect();
        // They were made the weakest first, and are sorted the best first.
        let best = merit(&members.first()?.simulated);
        let nearly = members.iter().filter(|remedy| is_nearly(merit(&remedy.simulated), best));
        nearly.min_by_key(|remedy| strength(remedy)).map(|remedy| remedy.id.clone())
    };
    let kept: Vec<bool> = remedies
        .iter()
        .map(|remedy| remedy.family.is_none_or(|family| chosen(family).as_ref() == Some(&remedy.id)))
        .collect();
    remedies.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(remedy, _)| remedy).collect()
}

/// The number that the name of a remedy of a family ends with.
fn strength(remedy: &Remedy) -> u64 {
    remedy.id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The better one is the greater.
pub(crate) fn by_merit(a: &Observed, b: &Observed) -> Ordering {
    merit(a).partial_cmp(&merit(b)).unwrap_or(Ordering::Equal)
}

/// What is better is greater: more complete, then faster.
pub(crate) fn merit(observed: &Observed) -> (f64, f64) {
    let speed = match observed.judged_s().filter(|_| observed.completed == 1.0) {
        Some(time) => 1.0 / time.mean.max(1e-9),
        None => observed.rate_bit_per_s,
    };
    (observed.completed, speed)
}

fn is_nearly(merit: (f64, f64), best: (f64, f64)) -> bool {
    merit.0 >= best.0 && merit.1 * NEARLY >= best.1
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
