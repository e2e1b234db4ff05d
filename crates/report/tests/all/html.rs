//! What a report says of an experiment.

use farpath_engine::{jobs, provenance, simulate};
use farpath_experiment::{Experiment, shipped_experiments};
use farpath_report::html::{Traces, run_page, summary_of_experiment};
use farpath_run::Engine;

#[test]
fn every_shipped_experiment_is_described_in_words() {
    for file in shipped_experiments() {
        let experiment = Experiment::parse(file.text, file.name, &[]).expect("good");
        let asked = summary_of_experiment(&experiment, 1);
        assert_eq!(asked.title, experiment.title);
        assert_eq!(asked.points.len(), experiment.points().len());
        assert_eq!(asked.path.len(), experiment.point(0).scenario.path.len(), "a line for each element");
        for line in &asked.path {
            assert!(!line.contains("another kind"), "{}: {line}", file.name);
        }
        for term in ["Transfer", "Receiver's window"] {
            assert!(asked.ends.iter().any(|(known, _)| known == term), "{}: {term}", file.name);
        }
    }
}

#[test]
fn path_and_ends_are_said_with_their_numbers() {
    let text = r#"
        title = "All of it"
        [[path]]
        element = "link"
        rate = { forward = "2 Mbit/s", reverse = "64 kbit/s" }
        queue = "20 packets"
        [[path]]
        element = "loss"
        rate = { forward = "1 %", reverse = "0 %" }
        [sender]
        stack = "rfc-5681"
        [receiver]
        stack = "bsd-1996"
        [transfer]
        size = "1 MB"
        opener = "sender"
        [[flow]]
        count = 3
        [[flow]]
        direction = "reverse"
    "#;
    let asked = summary_of_experiment(&Experiment::parse(text, "all.toml", &[]).expect("good"), 1);
    assert_eq!(
        asked.path,
        [
            "link: link of 2 Mbit/s forward and 64 kbit/s reverse, queue of 20 packets each way",
            "loss: independent loss of 1 % forward and 0 % reverse",
        ]
    );
    let end = |term: &str| asked.ends.iter().find(|(known, _)| known == term).map(|(_, text)| text.as_str());
    assert!(end("Sender").is_some_and(|text| text.ends_with("(rfc-5681)")));
    assert!(end("Receiver").is_some_and(|text| text.ends_with("(bsd-1996)")));
    assert_eq!(
        end("Transfer"),
        Some("4 flows of 1 MB each, opened by the sender, 1 of them in the reverse direction")
    );
}

#[test]
fn a_page_says_which_runs_it_would_show_had_they_been_recorded() {
    let file = shipped_experiments().into_iter().find(|file| file.name == "single-drop").expect("it ships");
    let sweep = "sweep.transfer.size=['10 kB', '20 kB', '30 kB']".parse().expect("a change");
    let experiment = Experiment::parse(file.text, file.name, &[sweep]).expect("good");
    let point = &experiment.point(0);
    let run = simulate(point, 1, provenance(&experiment, point)).expect("simulated");
    let keys = jobs(&experiment, &[Engine::Simulate]).into_iter().map(|job| job.key());
    let mut traces = Traces::for_runs(keys.collect());
    traces.add(&run);
    let html = run_page(&summary_of_experiment(&experiment, 3), &[run], &traces, true).render();
    assert!(html.contains("One run in detail. Of 2 more there is no record: large transfers"));
}
