//! Experiments to explain.

#![allow(dead_code, reason = "each test file uses its own part")]

use farpath_experiment::{Experiment, Override};
use farpath_explain::{EXPLAIN_EVENTS, Effort, Explanation, Known, Watch, explain};
use std::sync::atomic::AtomicBool;

/// 10 Mbit/s, 100 ms each way, a queue of 1 MB, nothing lost; the RFCs' stack.
pub const PLAIN: &str = r#"
title = "A path"
[[path]]
element = "link"
rate = "10 Mbit/s"
queue = "1 MB"
[[path]]
element = "loss"
rate = "0 %"
[[path]]
element = "delay"
delay = "100 ms"
[transfer]
size = "10 MB"
"#;

pub const SCALED: [&str; 2] = ["sender.send.window_scaling=true", "receiver.send.window_scaling=true"];

pub fn overrides(changes: &[&str]) -> Vec<Override> {
    changes.iter().map(|change| change.parse().expect("a change")).collect()
}

pub fn plain(changes: &[&str]) -> Experiment {
    Experiment::parse(PLAIN, "plain.toml", &overrides(changes)).expect("the changes fit")
}

pub fn explained(experiment: &Experiment, effort: Effort) -> Explanation {
    let stop = AtomicBool::new(false);
    let watch = Watch { stop: &stop, planned: &|_| {}, done: &|| {} };
    explain(experiment, 0, effort, &watch).expect("it can be explained")
}

/// Five seeds.
pub const FEW: Effort = Effort { seeds: Some(5), ..ONE };
/// Half and double of everything.
const UNKNOWN: Known = Known { delay: None, rate: None, loss: None, queue: None };
/// One run, where nothing is drawn.
pub const ONE: Effort =
    Effort { group: None, seeds: None, segments: 20_000_000, events: EXPLAIN_EVENTS, known: UNKNOWN };
