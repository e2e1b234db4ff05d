//! The paper on constant bit-rate data over TCP, claim by claim.

use crate::common;

use common::{assert_claims, checked, of, paper};
use farpath_report::papers::{Runs, Verdict, figures};
use std::sync::atomic::AtomicBool;

#[test]
fn what_is_unclear_fitted_or_differs_is_what_is_documented() {
    let paper = paper("cbr");
    assert_claims(&paper, "R003", 14);
    let checked = checked(&paper);
    let of = |verdict| of(&checked, verdict);
    // From a first window of 3 a loss costs nothing; a burst more than CBR in an interval.
    assert_eq!(of(Verdict::Differs), ["R003-04", "R003-05", "R003-06", "R003-07"]);
    assert_eq!(of(Verdict::Erratum), [""; 0]);
    assert_eq!(of(Verdict::Unclear), ["R003-01"]);
    // Two kernels that are not at hand; of the others the running one is asked with `--emulate`.
    let mut not_run = of(Verdict::NotRun);
    not_run.dedup();
    assert_eq!(not_run, ["R003-03", "R003-06", "R003-07", "R003-08", "R003-11", "R003-13", "R003-14"]);
    // What the equations give of printed numbers; the window at the loss, and the round trip across the ocean.
    assert_eq!(of(Verdict::Arithmetic), ["R003-04", "R003-05"]);
    assert_eq!(of(Verdict::Fitted), ["R003-04", "R003-05", "R003-07", "R003-07", "R003-10", "R003-10"]);
}

#[test]
fn its_figures_are_drawn() {
    let drawn = figures(&paper("cbr"), &mut Runs::default(), &AtomicBool::new(false));
    let drawn = drawn.unwrap_or_else(|error| panic!("{error}"));
    let titles: Vec<&str> = drawn.iter().map(|figure| figure.title.as_str()).collect();
    let numbers: Vec<&str> = titles.iter().filter_map(|title| Some(title.split_once(": ")?.0)).collect();
    assert_eq!(numbers, ["Figure 1", "Figure 2", "Figure 2", "Figure 2", "Figure 3"], "{titles:?}");
    // What the paper says of it: about 10 s, 160 Mbyte, and twice the recovery until timely again.
    for value in ["after 9.94 s, 159.1 MB behind", "again after 19.89 s"] {
        assert!(drawn[0].caption.contains(value), "`{value}` is not in `{}`", drawn[0].caption);
    }
    assert!(drawn.iter().all(|figure| figure.plot == "by-point"), "{titles:?}");
}
