//! The protocol-radius paper: what comes out, what does not, and its figures.

use farpath_report::papers::{self, Checked, Runs, Verdict, check_paper, figures};
use std::sync::atomic::AtomicBool;

#[test]
fn what_differs_and_what_is_wrong_is_what_is_documented() {
    let paper = papers::paper("radius").unwrap_or_else(|error| panic!("{error}"));
    let mut checked: Vec<Checked> = Vec::new();
    let made =
        check_paper(&paper, &mut Runs::default(), &AtomicBool::new(false), |check| checked.push(check));
    assert!(made.unwrap_or_else(|error| panic!("{error}")));
    let of = |verdict| -> Vec<(&str, &str)> {
        let found = checked.iter().filter(|check| check.verdict == verdict);
        found.map(|check| (check.claim.as_str(), check.reason.as_str())).collect()
    };
    let ids = |verdict| of(verdict).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    // The finer clock has a few more timeouts for nothing, not fewer.
    assert_eq!(ids(Verdict::Differs), ["R000-22"], "{:?}", of(Verdict::Differs));
    assert_eq!(ids(Verdict::Erratum), ["R000-10", "R000-17"]);
    assert!(checked.iter().filter(|c| c.verdict != Verdict::Reproduced).all(|c| !c.reason.is_empty()));
}

#[test]
fn its_figures_are_drawn_and_jump_at_the_timers() {
    let paper = papers::paper("radius").unwrap_or_else(|error| panic!("{error}"));
    let drawn = figures(&paper, &mut Runs::default(), &AtomicBool::new(false));
    let drawn = drawn.unwrap_or_else(|error| panic!("{error}"));
    let captions: Vec<&str> = drawn.iter().map(|figure| figure.caption.as_str()).collect();
    assert_eq!(captions.len(), 4);
    for (caption, timer) in [
        (captions[1], "6 s, high-performance: SYN again"),
        (captions[2], "21 s, SYN again, 3 times"),
        (captions[3], "9 s, SYN again, 2 times"),
        (captions[3], "6 s, data sent again, its timeout doubled once by SYNs"),
    ] {
        assert!(caption.contains(timer), "`{timer}` is not in `{caption}`");
    }
}
