//! The protocol-radius paper: what comes out, what does not, and its figures.

use crate::common;

use common::{checked, of, paper};
use farpath_report::papers::{Runs, Verdict, figures};
use std::sync::atomic::AtomicBool;

#[test]
fn what_differs_and_what_is_wrong_is_what_is_documented() {
    let checked = checked(&paper("radius"));
    // Half-sums of timers, where data start anew, have no step at 12 s. The finer clock has a few more spurious timeouts, not fewer, where timers
    // are never early. Timestamps time a SYN that was sent again.
    assert_eq!(of(&checked, Verdict::Differs), ["R000-22", "R000-23"]);
    assert_eq!(of(&checked, Verdict::InPart), ["R000-17"]);
    assert_eq!(of(&checked, Verdict::Erratum), ["R000-10"]);
    // Data that start with the SYN's timeout; timers that count ticks.
    assert_eq!(of(&checked, Verdict::Fitted), ["R000-17", "R000-17", "R000-17", "R000-22"]);
}

#[test]
fn its_figures_are_drawn_and_jump_at_the_timers() {
    let drawn = figures(&paper("radius"), &mut Runs::default(), &AtomicBool::new(false));
    let drawn = drawn.unwrap_or_else(|error| panic!("{error}"));
    let captions: Vec<&str> = drawn.iter().map(|figure| figure.caption.as_str()).collect();
    assert_eq!(captions.len(), 6);
    // Half of (7 - 1.5) million km and the like: 10.5 and 22.5 light-seconds of way, with foci 1.5 million km apart.
    for region in ["windows-2003: 8.232e5 km beyond", "opnet-11.5: 2.622e6 km beyond"] {
        assert!(captions[0].contains(region), "`{region}` is not in `{}`", captions[0]);
    }
    for (caption, timer) in [
        (captions[2], "6 s, high-performance: SYN again"),
        (captions[3], "21 s, SYN again, 3 times"),
        (captions[4], "9 s, SYN again, 2 times"),
        (captions[4], "6 s, data sent again, its timeout doubled once by SYNs"),
        (captions[5], "24 s, data sent again, its timeout doubled 3 times by SYNs"),
    ] {
        assert!(caption.contains(timer), "`{timer}` is not in `{caption}`");
    }
}
