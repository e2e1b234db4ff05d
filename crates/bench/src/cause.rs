//! Why a point differs: written down with its evidence, and where that is a switch of ours, tried again.

use serde::Deserialize;
use toml::Table;

/// A known cause.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Texts that a point's label holds, all of them.
    pub points: Vec<String>,
    /// What is different, with the evidence: the first segment that differs and the rule behind it.
    pub why: String,
    /// Changes to our stack with which the point agrees. They are made and the point is computed again: a cause that
    /// does not explain the difference counts as none.
    #[serde(default)]
    pub agrees_with: Table,
}

impl Cause {
    /// Whether it speaks of the point called `label`.
    pub fn covers(&self, label: &str) -> bool {
        self.points.iter().all(|part| label.contains(part.as_str()))
    }
}
