//! The papers as tests ask for them.

#![allow(dead_code, reason = "each test program uses what it needs of it")]

use farpath_report::papers::{self, Checked, Paper, Runs, Verdict, check_paper};
use std::sync::atomic::AtomicBool;

pub fn paper(id: &str) -> Paper {
    papers::paper(id).unwrap_or_else(|error| panic!("{error}"))
}

/// Every check of a paper, done but for those that ask a kernel. What is not reproduced has a reason, and is
/// recorded.
pub fn checked(paper: &Paper) -> Vec<Checked> {
    let mut checked = Vec::new();
    let stop = AtomicBool::new(false);
    let done = check_paper(paper, &mut Runs::default(), &stop, |check| checked.push(check));
    assert!(done.unwrap_or_else(|error| panic!("{error}")));
    let unexplained = checked
        .iter()
        .find(|c| !matches!(c.verdict, Verdict::Reproduced | Verdict::Arithmetic) && c.reason.is_empty());
    assert!(unexplained.is_none(), "{unexplained:?}");
    let new: Vec<&Checked> = checked.iter().filter(|check| !check.is_as_recorded()).collect();
    assert!(new.is_empty(), "not as its claim file says: {new:?}");
    checked
}

/// The claims of the checks that came out so, in the order of the checks.
pub fn of(checked: &[Checked], verdict: Verdict) -> Vec<&str> {
    checked.iter().filter(|check| check.verdict == verdict).map(|check| check.claim.as_str()).collect()
}

/// Whether these are the claims `prefix-01` to `prefix-last`.
pub fn assert_claims(paper: &Paper, prefix: &str, last: usize) {
    let claims: Vec<&str> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
    let expected: Vec<String> = (1..=last).map(|number| format!("{prefix}-{number:02}")).collect();
    assert_eq!(claims, expected);
}
