//! The paper on constant bit-rate data over TCP, claim by claim.

use farpath_report::papers::{self, Runs, Verdict, check_paper};
use std::sync::atomic::AtomicBool;

#[test]
fn every_claim_is_reproduced_but_for_an_erratum_and_what_needs_kernels() {
    let paper = papers::paper("cbr").unwrap_or_else(|error| panic!("{error}"));
    let claims: Vec<&str> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
    let expected: Vec<String> = (1..=14).map(|number| format!("R003-{number:02}")).collect();
    assert_eq!(claims, expected);
    let mut checked = Vec::new();
    let done =
        check_paper(&paper, &mut Runs::default(), &AtomicBool::new(false), |check| checked.push(check));
    assert!(done.unwrap_or_else(|error| panic!("{error}")));
    let of = |verdict: Verdict| -> Vec<&str> {
        checked.iter().filter(|check| check.verdict == verdict).map(|check| check.claim.as_str()).collect()
    };
    assert_eq!(of(Verdict::Differs), [""; 0]);
    assert_eq!(of(Verdict::Erratum), ["R003-01"]);
    // Two kernels that are not at hand; of the others the running one is asked with `--emulate`.
    let mut not_run = of(Verdict::NotRun);
    not_run.dedup();
    assert_eq!(not_run, ["R003-03", "R003-06", "R003-07", "R003-08", "R003-11", "R003-13", "R003-14"]);
    assert_eq!(of(Verdict::Reproduced).len(), 24);
}
