//! The explicit-rate paper: what comes out, what does not, and its figures.

use crate::common;

use common::{assert_claims, checked, of, paper};
use farpath_engine::{provenance, simulate};
use farpath_experiment::{Experiment, Override, shipped_experiments};
use farpath_report::papers::{Runs, Verdict, figures};
use farpath_report::sequence_diagram::{SequenceDiagram, lanes};
use std::sync::atomic::AtomicBool;

/// Those whose runs take seconds: many flows, or transfers of half an hour over and over.
const SLOW: [&str; 5] = ["R001-32", "R001-33", "R001-41", "R001-42", "R001-43"];

#[test]
fn what_differs_and_what_is_wrong_is_what_is_documented() {
    let mut paper = paper("explicit-rate");
    assert_claims(&paper, "R001", 48);
    paper.claims.retain(|claim| !SLOW.contains(&claim.id.as_str()));
    let checked = checked(&paper);
    let of = |verdict| of(&checked, verdict);
    // M where nothing was changed; a guard that is not as quick as that; one blind edge of two; the fit's own delay; the reading of delay.
    assert_eq!(of(Verdict::Differs), ["R001-08", "R001-23", "R001-25", "R001-38", "R001-40"]);
    let errata = ["29", "30", "31", "37", "39", "40", "40", "40"].map(|number| format!("R001-{number}"));
    assert_eq!(of(Verdict::Erratum), errata);
    // How a range was averaged.
    assert_eq!(of(Verdict::Unclear), ["R001-34", "R001-35"]);
}

#[test]
fn the_exchange_of_figure_1_is_drawn_from_a_run() {
    let shipped = shipped_experiments();
    let file = shipped.iter().find(|file| file.name == "explicit-rate-edges").expect("it ships");
    let changes = [
        "path.edge.blind=false",
        "path.far-edge.blind=false",
        "transfer.size=100 kB",
        "output.segments=true",
    ];
    let changes: Vec<Override> = changes.iter().map(|text| text.parse().expect("a change")).collect();
    let experiment = Experiment::parse(file.text, file.name, &changes).expect("good");
    let point = &experiment.point(0);
    let run = simulate(point, 1, provenance(&experiment, point)).expect("simulated");
    let lanes = lanes(&point.scenario);
    assert_eq!(lanes, ["edge", "core", "far-edge"]);
    let text = SequenceDiagram::opening(&run, &lanes).expect("it asks").text();
    let line = |start: &str| {
        let found =
            text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{start}\n{text}"));
        found.split('|').map(|gap| gap.trim().to_owned()).collect::<Vec<_>>()
    };
    // Each edge keeps two in a hundred, and two of the rest for newcomers; who does not know the protocol passes it on.
    let request = line("request 100.096");
    assert_eq!(
        request[1..],
        ["request 100.096", "request 33.600 *", "request 33.600 *", "request 28.800 *", ""]
    );
    assert!(text.contains("SYN/ACK") && text.contains("by a grant") && text.contains("response 28.800 *"));
    let none = SequenceDiagram::opening(&farpath_run::Run { segments: Default::default(), ..run }, &lanes);
    assert!(none.expect_err("no segments").contains("output.segments"));
}

#[test]
fn its_figures_are_drawn() {
    let drawn = figures(&paper("explicit-rate"), &mut Runs::default(), &AtomicBool::new(false));
    let plots: Vec<&str> = drawn.unwrap_or_else(|error| panic!("{error}")).iter().map(|f| f.plot).collect();
    assert_eq!(plots, ["sequence-diagram", "value-by-point", "by-point", "by-point", "curve"]);
}
