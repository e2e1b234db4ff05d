//! What was asked, in words and numbers: enough to show results without the files that the experiment names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentSummary {
    /// The experiment's title.
    pub title: String,
    /// How many runs it asks for, on all engines; 0 where that was not noted.
    pub runs: u64,
    /// The first point's path, a line for each element from the data sender on.
    pub path: Vec<String>,
    /// The first point's stacks and transfer: what, and what it is.
    pub ends: Vec<(String, String)>,
    /// The keys that are swept, those that are walked together in one list.
    pub axes: Vec<Vec<String>>,
    /// Where published values come from.
    pub published_source: Option<String>,
    /// By the number of the point.
    pub points: Vec<SummaryPoint>,
    /// What a round trip can meet, for each kind of sender among the points; nothing where there is one point.
    pub timers: Vec<Vec<SummaryTimer>>,
}

/// A timer of a stack, as the round trip that it is equal to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SummaryTimer {
    /// What happens beyond it.
    pub name: String,
    /// The parameters that set it.
    pub set_by: String,
    /// In s.
    pub rtt_s: f64,
}

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryPoint {
    /// Keys and values that make it this point.
    pub swept: Vec<(String, String)>,
    /// What was published for it, in s, in bit/s or as a count, by the name of the quantity.
    pub published: BTreeMap<String, f64>,
    /// What is allowed there and probably not meant.
    pub warnings: Vec<String>,
    /// Round trip of its first flow over an empty path, in s.
    pub rtt_s: Option<f64>,
    /// Its sender's timers, by their place in [`ExperimentSummary::timers`].
    pub timers: Option<usize>,
}
