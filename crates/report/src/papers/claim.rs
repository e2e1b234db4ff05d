//! What a claim file says: a paper, its claims, and how each is checked.

use super::codec::{Bytes, Codec};
use super::number::Numbers;
use super::{PaperError, Rule, Verdict};
use farpath_model::formulas;
use farpath_units::Duration;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A paper and its claims.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name of its folder; what the command line calls it.
    #[serde(skip)]
    pub id: String,
    /// Title, as printed.
    pub title: String,
    /// Who wrote it.
    pub authors: String,
    /// Where and when it appeared.
    pub published_in: String,
    /// What it says.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

impl Paper {
    /// Reads the claim file of the paper called `id`, and refuses one with a check that could not be made or could
    /// not fail.
    pub fn parse(id: &str, text: &str) -> Result<Paper, PaperError> {
        let mut paper: Paper = toml::from_str(text)
            .map_err(|source| PaperError::Claims { paper: id.to_owned(), source: Box::new(source) })?;
        paper.id = id.to_owned();
        let mut seen = BTreeSet::new();
        for claim in &paper.claims {
            let twice = !seen.insert(&claim.id);
            let problem =
                if twice { Some("there are two claims of this name".to_owned()) } else { claim.fault() };
            if let Some(problem) = problem {
                return Err(paper.fault(claim, problem));
            }
        }
        Ok(paper)
    }

    pub(super) fn fault(&self, claim: &Claim, problem: String) -> PaperError {
        PaperError::Check { paper: self.id.clone(), claim: claim.id.clone(), problem }
    }
}

/// One thing that a paper says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Stable identifier.
    pub id: String,
    /// In the paper's words, shortened.
    pub statement: String,
    /// What a reader of the verdict should know.
    #[serde(default)]
    pub reason: String,
    /// What is wrong in the paper. With it, the checks hold what is right.
    pub erratum: Option<String>,
    /// What can be meant, where what is printed does not come out as it stands and the paper does not say.
    pub unclear: Option<String>,
    /// How it is checked; one line of the answer each.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
}

impl Claim {
    fn fault(&self) -> Option<String> {
        if self.checks.is_empty() {
            return Some("the claim has no check".to_owned());
        }
        for check in &self.checks {
            let recorded = check.recorded();
            let text = if recorded == Verdict::Unclear { &self.unclear } else { &self.erratum };
            if check.correct.is_some() && text.is_none() {
                let key = if recorded == Verdict::Unclear { "unclear" } else { "erratum" };
                return Some(format!("`correct` is for a claim with an `{key}` that says what is wrong"));
            }
            let explained = !check.reason.is_empty() || !self.reason.is_empty();
            if !explained && matches!(recorded, Verdict::Differs | Verdict::InPart | Verdict::Fitted) {
                return Some(format!(
                    "the verdict `{recorded}` needs a `reason`, of the check or the claim, that says why"
                ));
            }
        }
        self.checks.iter().find_map(Check::fault)
    }
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckEngine {
    /// A closed form.
    Predict,
    /// Simulated runs.
    Simulate,
    /// The Linux kernel over an emulated path.
    Emulate,
    /// The Linux kernel over a real path.
    Measure,
    /// A codec.
    Codec,
}

impl CheckEngine {
    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            CheckEngine::Predict => "predict",
            CheckEngine::Simulate => "simulate",
            CheckEngine::Emulate => "emulate",
            CheckEngine::Measure => "measure",
            CheckEngine::Codec => "codec",
        }
    }
}

/// How a claim is checked: where the number comes from, and when it is near enough.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Who answers.
    pub engine: CheckEngine,
    /// What the number is, where the statement leaves that open.
    #[serde(default)]
    pub what: String,
    /// A closed form by its name in the registry of formulas ...
    pub formula: Option<String>,
    /// ... and its arguments, in SI units; with lists, it is asked once for each of their entries ...
    #[serde(default)]
    pub args: BTreeMap<String, Numbers>,
    /// ... and which of its results is meant, where it has several.
    pub result: Option<String>,
    /// An experiment: a file of the paper's folder, or a shipped one by name ...
    pub experiment: Option<String>,
    /// ... with these changes ...
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// ... and what is taken from each of its points: a metric, or the quotient of two, `a / b`.
    pub metric: Option<String>,
    /// What is taken over the seeds of a point.
    #[serde(default)]
    pub over_seeds: OverSeeds,
    /// What is taken over the points.
    #[serde(default)]
    pub over_points: OverPoints,
    /// The moment or span that the metric is about.
    pub time: Option<String>,
    /// A shipped stack ...
    pub stack: Option<String>,
    /// ... and the parameters that published attributes, by their own names, say it has. What comes out is how many
    /// of them hold; what is expected is their number.
    #[serde(default)]
    pub attributes: BTreeMap<String, toml::Table>,
    /// Something of the codec of explicit rate ...
    pub codec: Option<Codec>,
    /// ... by what it makes of these bytes ...
    pub bytes: Option<Bytes>,
    /// ... and of which of their fields; of all without.
    #[serde(default)]
    pub fields: Vec<String>,
    /// What was printed.
    pub published: Option<Numbers>,
    /// What should have been printed, where the paper is wrong; the rule is held against this.
    pub correct: Option<Numbers>,
    /// When it is near enough.
    #[serde(default)]
    pub rule: Rule,
    /// What it is known to come to, where that is not `reproduced`, or `erratum` with `correct`, or `not run`.
    pub verdict: Option<Verdict>,
    /// What a reader of the verdict should know, where that is not what the claim says.
    #[serde(default)]
    pub reason: String,
    /// Why it is not run, where this version cannot.
    pub not_run: Option<String>,
}

impl Check {
    /// What the rule is held against.
    pub(super) fn expected(&self) -> Option<Numbers> {
        let listed = self.stack.as_ref().map(|_| Numbers(vec![self.attributes.len() as f64]));
        self.correct.clone().or_else(|| self.published.clone()).or(listed)
    }

    /// What the paper prints: its numbers, or the attributes of a stack.
    pub(super) fn printed(&self) -> Option<Numbers> {
        self.published.clone().or_else(|| self.correct.is_none().then(|| self.expected()).flatten())
    }

    /// What the claim file says that it comes to.
    pub fn recorded(&self) -> Verdict {
        let implied = match (&self.not_run, &self.correct) {
            (Some(_), _) => Verdict::NotRun,
            (None, Some(_)) => Verdict::Erratum,
            (None, None) => Verdict::Reproduced,
        };
        self.verdict.unwrap_or(implied)
    }

    /// Whether it does no more than combine printed numbers.
    fn is_arithmetic(&self) -> bool {
        let group = |name: &String| formulas().iter().find(|formula| formula.name == name);
        self.formula.as_ref().and_then(group).is_some_and(|formula| formula.source == "arithmetic")
    }

    /// Why its verdict cannot be what the file says.
    fn verdict_fault(&self) -> Option<String> {
        let verdict = self.verdict?;
        let fault = match verdict {
            Verdict::Reproduced | Verdict::NotRun | Verdict::Erratum => "follows from the rest: leave it out",
            Verdict::Unclear if self.correct.is_none() => "is for a check with `correct`",
            Verdict::Unclear => return None,
            _ if self.correct.is_some() || self.not_run.is_some() => {
                "goes with neither `correct` nor `not_run`"
            }
            Verdict::Arithmetic if self.formula.is_none() => "is for a `formula`",
            _ => return None,
        };
        Some(format!("verdict = \"{verdict}\" {fault}"))
    }

    /// Why it cannot be made, or could not fail.
    fn fault(&self) -> Option<String> {
        let given = [&self.formula, &self.experiment, &self.stack, &self.not_run];
        if given.into_iter().flatten().count() + usize::from(self.codec.is_some()) != 1 {
            let which = "`formula`, `experiment`, `stack`, `codec` and `not_run`";
            return Some(format!("a check has one of {which}"));
        }
        if self.codec.is_some() && self.engine != CheckEngine::Codec {
            return Some("`codec` is for the engine `codec`".to_owned());
        }
        if self.experiment.is_some() != self.metric.is_some() {
            return Some("`experiment` and `metric` go together".to_owned());
        }
        // What runs may still lack something that the check needs: then `not_run` says what.
        if self.engine == CheckEngine::Measure && self.not_run.is_none() {
            let engine = self.engine.name();
            return Some(format!("`{engine}` needs `not_run`: it is not part of this version"));
        }
        if self.correct.is_some() && self.published.is_none() {
            return Some("`correct` without `published`: there is nothing to be wrong".to_owned());
        }
        if let Some(fault) = self.verdict_fault() {
            return Some(fault);
        }
        match self.time.as_deref().map(str::parse::<Duration>) {
            Some(Err(error)) => return Some(format!("time: {error}")),
            Some(Ok(time)) if time.is_zero() => return Some("`time` cannot be zero".to_owned()),
            _ => {}
        }
        let bare = self.is_arithmetic() && self.recorded() == Verdict::Reproduced;
        let uncalled =
            || "a bare sum, difference, product or quotient is `verdict = \"arithmetic\"`".to_owned();
        self.rule.fault(self.expected().as_ref()).or_else(|| bare.then(uncalled))
    }
}

/// How the seeds of one point become one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverSeeds {
    /// Their mean; of a quotient, the quotient of the means.
    #[default]
    Mean,
    /// The middle one.
    Median,
}

/// How the points of a sweep become the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverPoints {
    /// One number a point.
    #[default]
    Each,
    /// Every later point over the first.
    OverFirst,
    /// Every point over the largest.
    OverLargest,
    /// The largest.
    Largest,
    /// How much more every later point is than the first, in per cent of it.
    PercentMore,
    /// The mean of the later points less the first.
    MeanLessFirst,
    /// The largest less the smallest.
    Spread,
    /// Of a sweep over many numbers, for each combination of its other parameters: the sum ...
    Sums,
    /// ... the numbers at which the curve jumps ...
    Steps,
    /// ... what it is before the first of those, and behind each ...
    Levels,
    /// ... its slope behind the last of them over that before the first ...
    Slopes,
    /// ... how far its points are from the line between their neighbours, in the mean.
    Roughness,
}
