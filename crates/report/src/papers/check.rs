//! Makes the checks of a paper, and says what came out.

use super::PaperError;
use super::claim::{Check, CheckEngine, Claim, Paper};
use super::number::Numbers;
use super::reproduce::{NoNumber, Reproduced, Runs, reproduce};
use super::verdict::Verdict;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// What the claim file says that it is.
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
    Checked {
        claim: claim.id.clone(),
        statement: claim.statement.clone(),
        engine: check.engine,
        what: check.what.clone(),
        published: check.printed(),
        reproduced: reproduced.map(|found| found.numbers),
        rule: check.rule.to_string(),
        verdict,
        recorded: check.recorded(),
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
        // Of several numbers some can be near enough, each by itself.
        let held = check.rule.held(&found.numbers, expected);
        let verdict = if held > 0 { Verdict::InPart } else { Verdict::Differs };
        return (verdict, differs(check, found, expected, reason, held));
    }
    // A claim can be wrong in one number and right in another: only a check with a correction is about the wrong one.
    match (check.correct.is_some(), check.recorded()) {
        (true, _) if check.rule.holds(&found.numbers, check.published.as_ref()) => {
            let reason = "what is printed passes the rule too, beside what is said to be right";
            (Verdict::Differs, reason.to_owned())
        }
        (true, recorded) => {
            let text = if recorded == Verdict::Unclear { &claim.unclear } else { &claim.erratum };
            (recorded, text.clone().unwrap_or_default())
        }
        (false, recorded @ (Verdict::Fitted | Verdict::Arithmetic)) => (recorded, reason.clone()),
        (false, _) => (Verdict::Reproduced, reason.clone()),
    }
}

fn differs(
    check: &Check,
    found: &Reproduced,
    expected: Option<&Numbers>,
    reason: &str,
    held: usize,
) -> String {
    let beside = expected.map_or(String::new(), |expected| format!(" beside {expected}"));
    let mut text = format!("{}{beside} is not {}", found.numbers, check.rule);
    if held > 0 {
        text = format!("{text}: {held} of {} are", found.numbers.0.len());
    }
    for more in [found.remark.as_str(), reason] {
        if !more.is_empty() {
            text = format!("{text}. {more}");
        }
    }
    text
}
