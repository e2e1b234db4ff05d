//! Makes the checks of a paper, and says what came out.

use super::PaperError;
use super::claim::{Check, CheckEngine, Claim, Paper};
use super::number::Numbers;
use super::reproduce::{NoNumber, Reproduced, Runs, reproduce};
use core::fmt;
use serde_json::{Value, json};
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
    /// It was not run: this version cannot, or was not asked to.
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
    /// What the claim file says that it does: [`Verdict::Differs`] where a difference is known.
    pub recorded: Verdict,
    /// Why.
    pub reason: String,
}

impl Checked {
    /// Whether it came out as the claim file says, or was not run.
    pub fn is_as_recorded(&self) -> bool {
        self.verdict == Verdict::NotRun || self.verdict == self.recorded
    }

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
            "recorded": self.recorded.name(),
            "reason": self.reason,
        })
    }
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
            let reproduced = reproduce(paper, check, runs, stop);
            // What was interrupted is no answer, and no fault either.
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let (reproduced, not_run) = match reproduced {
                Ok(found) => (Some(found), String::new()),
                Err(NoNumber::NotRun(reason)) => (None, reason),
                Err(NoNumber::Fault(problem)) => return Err(paper.fault(claim, problem)),
            };
            take(judge(claim, check, reproduced, not_run));
        }
    }
    Ok(true)
}

fn judge(claim: &Claim, check: &Check, reproduced: Option<Reproduced>, not_run: String) -> Checked {
    let expected = check.expected();
    let (verdict, reason) = match &reproduced {
        None => (Verdict::NotRun, not_run),
        Some(found) => verdict(claim, check, found, expected.as_ref()),
    };
    let recorded = match check {
        Check { differs: true, .. } => Verdict::Differs,
        Check { not_run: Some(_), .. } => Verdict::NotRun,
        Check { correct: Some(_), .. } => Verdict::Erratum,
        _ => Verdict::Reproduced,
    };
    Checked {
        claim: claim.id.clone(),
        statement: claim.statement.clone(),
        engine: check.engine,
        what: check.what.clone(),
        published: check.published.clone().or(check.correct.is_none().then_some(expected).flatten()),
        reproduced: reproduced.map(|found| found.numbers),
        rule: check.rule.to_string(),
        verdict,
        recorded,
        reason,
    }
}

fn verdict(
    claim: &Claim,
    check: &Check,
    found: &Reproduced,
    expected: Option<&Numbers>,
) -> (Verdict, String) {
    let reason = if check.reason.is_empty() { &claim.reason } else { &check.reason };
    if !check.rule.holds(&found.numbers, expected) {
        return (Verdict::Differs, differs(check, found, expected, reason));
    }
    // A claim can be wrong in one number and right in another: only a check with a correction is about the wrong one.
    match (&claim.erratum, &check.correct) {
        (Some(_), Some(_)) if check.rule.holds(&found.numbers, check.published.as_ref()) => {
            let reason = "listed as an erratum, and what is printed passes the rule too";
            (Verdict::Differs, reason.to_owned())
        }
        (Some(erratum), Some(_)) => (Verdict::Erratum, erratum.clone()),
        _ => (Verdict::Reproduced, reason.clone()),
    }
}

fn differs(check: &Check, found: &Reproduced, expected: Option<&Numbers>, reason: &str) -> String {
    let beside = expected.map_or(String::new(), |expected| format!(" beside {expected}"));
    let mut text = format!("{}{beside} is not {}", found.numbers, check.rule);
    for more in [found.remark.as_str(), reason] {
        if !more.is_empty() {
            text = format!("{text}. {more}");
        }
    }
    text
}
