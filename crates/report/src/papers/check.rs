//! Makes the checks of a paper, and says what came out.

use super::metric;
use super::number::Numbers;
use super::{Check, CheckEngine, Claim, OverPoints, OverSeeds, Paper, PaperError, file_of};
use core::fmt;
use farpath_engine::{EngineError, jobs, run_all};
use farpath_experiment::{Experiment, Override, shipped_experiments};
use farpath_run::{Engine, Run};
use farpath_units::Duration;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a check says of its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rule holds.
    Reproduced,
    /// The paper is shown wrong: what is right was found, and it is not what is printed.
    Erratum,
    /// The rule does not hold.
    Differs,
    /// This version cannot run it.
    NotRun,
}

impl Verdict {
    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Erratum => "erratum",
            Verdict::Differs => "differs",
            Verdict::NotRun => "not run",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One check, made.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The claim.
    pub claim: String,
    /// What the claim says.
    pub statement: String,
    /// Who answered.
    pub engine: CheckEngine,
    /// What the number is, where the statement leaves that open.
    pub what: String,
    /// What was printed.
    pub published: Option<Numbers>,
    /// What came out.
    pub reproduced: Option<Numbers>,
    /// When it is near enough.
    pub rule: String,
    /// What that says.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
}

impl Checked {
    /// As one JSON object.
    pub fn to_json(&self) -> Value {
        let numbers = |numbers: &Option<Numbers>| numbers.as_ref().map_or(Value::Null, Numbers::to_json);
        json!({
            "claim": self.claim,
            "engine": self.engine.name(),
            "statement": self.statement,
            "what": self.what,
            "published": numbers(&self.published),
            "reproduced": numbers(&self.reproduced),
            "rule": self.rule,
            "verdict": self.verdict.name(),
            "reason": self.reason,
        })
    }
}

/// Runs that several checks share: made once per experiment and changes.
#[derive(Debug, Default)]
pub struct Runs {
    made: HashMap<String, Vec<Run>>,
}

/// Makes every check of a paper, in order, and hands each to `take` when it is made. Stops before the next one
/// when `stop` is set; false when it did.
pub fn check_paper(
    paper: &Paper,
    runs: &mut Runs,
    stop: &AtomicBool,
    mut take: impl FnMut(Checked),
) -> Result<bool, PaperError> {
    for claim in &paper.claims {
        for check in &claim.checks {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let fault = |problem: String| PaperError::Check {
                paper: paper.id.clone(),
                claim: claim.id.clone(),
                problem,
            };
            let reproduced = match &check.not_run {
                Some(_) => None,
                None => Some(reproduce(paper, check, runs, stop).map_err(fault)?),
            };
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            take(judge(claim, check, reproduced).map_err(fault)?);
        }
    }
    Ok(true)
}

fn judge(claim: &Claim, check: &Check, reproduced: Option<Numbers>) -> Result<Checked, String> {
    let expected = check.correct.as_ref().or(check.published.as_ref());
    let (verdict, reason) = match (&reproduced, &check.not_run) {
        (None, why) => (Verdict::NotRun, why.clone().unwrap_or_default()),
        (Some(found), _) => {
            if let Some(fault) = check.rule.fault(expected) {
                return Err(fault);
            }
            let holds = check.rule.holds(found, expected);
            let as_printed = match (&check.correct, &check.published) {
                (Some(_), Some(published)) => check.rule.holds(found, Some(published)),
                _ => false,
            };
            match (&claim.erratum, holds) {
                (_, false) => (Verdict::Differs, differs(check, found, expected, &claim.reason)),
                (Some(_), true) if as_printed => (
                    Verdict::Differs,
                    "listed as an erratum, and what is printed passes the rule too".to_owned(),
                ),
                // A claim can be wrong in one number and right in another: only a check with a correction is about it.
                (Some(erratum), true) if check.correct.is_some() || check.published.is_none() => {
                    (Verdict::Erratum, erratum.clone())
                }
                (_, true) => (Verdict::Reproduced, claim.reason.clone()),
            }
        }
    };
    Ok(Checked {
        claim: claim.id.clone(),
        statement: claim.statement.clone(),
        engine: check.engine,
        what: check.what.clone(),
        published: check.published.clone(),
        reproduced,
        rule: check.rule.to_string(),
        verdict,
        reason,
    })
}

fn differs(check: &Check, found: &Numbers, expected: Option<&Numbers>, reason: &str) -> String {
    let beside = expected.map_or(String::new(), |expected| format!(" beside {expected}"));
    let reason = if reason.is_empty() { String::new() } else { format!(". {reason}") };
    format!("{found}{beside} is not {}{reason}", check.rule)
}

fn reproduce(paper: &Paper, check: &Check, runs: &mut Runs, stop: &AtomicBool) -> Result<Numbers, String> {
    match (&check.formula, &check.experiment, &check.metric) {
        (Some(formula), None, None) if check.engine == CheckEngine::Predict => {
            farpath_model::evaluate(formula, &check.args)
                .map(Numbers)
                .map_err(|error| format!("{formula}: {error}"))
        }
        (None, Some(experiment), Some(metric)) => {
            let engine = match check.engine {
                CheckEngine::Predict => Engine::Predict,
                CheckEngine::Simulate => Engine::Simulate,
                other => return Err(format!("the `{}` engine is not part of this version", other.name())),
            };
            let runs = runs.of(paper, experiment, check, engine, stop)?;
            let time = check.time.as_deref().map(str::parse::<Duration>).transpose();
            over_points(check, metric, time.map_err(|error| format!("time: {error}"))?, runs)
        }
        _ => Err("a check has either `formula` (engine `predict`) or `experiment` and `metric`".to_owned()),
    }
}

fn over_points(check: &Check, metric: &str, time: Option<Duration>, runs: &[Run]) -> Result<Numbers, String> {
    let mut points: Vec<Vec<f64>> = Vec::new();
    for run in runs {
        let point = run.point as usize;
        points.resize_with(points.len().max(point + 1), Vec::new);
        points[point].push(metric::value(run, metric, time)?);
    }
    let values: Vec<f64> = points.iter().map(|seeds| over_seeds(check.over_seeds, seeds)).collect();
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return Err("no run was made".to_owned());
    };
    Ok(Numbers(match check.over_points {
        OverPoints::Each => values,
        OverPoints::Difference => vec![last - first],
        OverPoints::Ratio => vec![last / first],
        OverPoints::Spread => vec![over_seeds(OverSeeds::Spread, &values)],
    }))
}

fn over_seeds(how: OverSeeds, values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match how {
        OverSeeds::Mean => values.iter().sum::<f64>() / values.len() as f64,
        OverSeeds::Min => least,
        OverSeeds::Max => most,
        OverSeeds::Spread => most - least,
    }
}

impl Runs {
    fn of(
        &mut self,
        paper: &Paper,
        name: &str,
        check: &Check,
        engine: Engine,
        stop: &AtomicBool,
    ) -> Result<&[Run], String> {
        let overrides = check
            .set
            .iter()
            .map(|(key, value)| format!("{key}={}", plain(value)).parse::<Override>())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let changes: Vec<&str> = overrides.iter().map(Override::text).collect();
        let key = format!("{name} {engine} {}", changes.join(" "));
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
            self.made.insert(key.clone(), made);
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
