//! The report on the Metricom Ricochet, claim by claim.

use farpath_report::papers::{self, Runs, Verdict, check_paper};
use std::sync::atomic::AtomicBool;

#[test]
fn claims_are_reproduced_but_for_losses_and_idle_time_of_one_trace_and_jitter() {
    let paper = papers::paper("ricochet").unwrap_or_else(|error| panic!("{error}"));
    let claims: Vec<&str> = paper.claims.iter().map(|claim| claim.id.as_str()).collect();
    let expected: Vec<String> = (1..=16).map(|number| format!("R002-{number:02}")).collect();
    assert_eq!(claims, expected);
    let mut checked = Vec::new();
    let done =
        check_paper(&paper, &mut Runs::default(), &AtomicBool::new(false), |check| checked.push(check));
    assert!(done.unwrap_or_else(|error| panic!("{error}")));
    let of = |verdict: Verdict| -> Vec<&str> {
        checked.iter().filter(|check| check.verdict == verdict).map(|check| check.claim.as_str()).collect()
    };
    assert_eq!(of(Verdict::Differs), ["R002-06", "R002-06", "R002-13"]);
    assert_eq!(of(Verdict::NotRun), [""; 0]);
}
