//! The experiments that ship with paths that change and queues that manage themselves, each at a small size.

use crate::common::runs_of;
use farpath_experiment::{Experiment, Override, shipped_experiments};
use farpath_run::{Engine, Outcome, Run};

const SHIPPED: [&str; 14] = [
    "busy-queue",
    "cellular",
    "deep-space",
    "docsis",
    "geo-rain",
    "handover",
    "home-link",
    "jittery-wifi",
    "leo-pass",
    "lte-upload",
    "lunar-relay",
    "policed-uplink",
    "relay-contacts",
    "train",
];

fn simulated(name: &str, changes: &[&str]) -> Vec<Run> {
    let file = shipped_experiments().into_iter().find(|file| file.name == name).expect("it ships");
    let changes: Vec<Override> = changes.iter().map(|text| text.parse().expect("a change")).collect();
    let experiment =
        Experiment::parse(file.text, name, &changes).unwrap_or_else(|error| panic!("{name}: {error}"));
    runs_of(&experiment, &[Engine::Simulate])
}

#[test]
fn each_shipped_experiment_runs_at_a_small_size() {
    for name in SHIPPED {
        let runs = simulated(name, &["seeds=1", "transfer.size=300 kB"]);
        for run in &runs {
            // Linux's listener gives up after 63 s (`tcp_synack_retries`): less than a round trip of 80 s.
            let too_far = name == "deep-space" && run.point == runs.len() as u64 - 1;
            let expected = if too_far { Outcome::Aborted } else { Outcome::Completed };
            for flow in &run.flows {
                assert_eq!(flow.outcome, expected, "{name}, point {}: {}", run.point, flow.detail);
            }
        }
    }
}
