//! A figure of the benchmark, and what it has to reach.

use serde_json::{Value, json};

/// What a figure is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// Only told.
    None,
    /// At least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
}

/// One line of the benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// `None`: it could not be measured here.
    pub value: Option<f64>,
    /// Of the value.
    pub unit: &'static str,
    /// What it has to reach.
    pub target: Target,
}

impl Figure {
    /// Whether it reaches its target. What was not measured reaches none and misses none.
    pub fn holds(&self) -> Option<bool> {
        let value = self.value?;
        match self.target {
            Target::None => None,
            Target::AtLeast(least) => Some(value >= least),
            Target::AtMost(most) => Some(value <= most),
        }
    }

    fn target_text(&self) -> Option<String> {
        match self.target {
            Target::None => None,
            Target::AtLeast(least) => Some(format!(">= {least}")),
            Target::AtMost(most) => Some(format!("<= {most}")),
        }
    }

    /// For people.
    pub fn line(&self) -> String {
        let value = self.value.map_or("not measured".to_owned(), |value| format!("{value:.2} {}", self.unit));
        let verdict = match (self.target_text(), self.holds()) {
            (None, _) => String::new(),
            (Some(target), Some(true)) => format!("  holds ({target})"),
            (Some(target), Some(false)) => format!("  MISSED ({target})"),
            (Some(target), None) => format!("  not judged ({target})"),
        };
        format!("{}: {value}{verdict}", self.name)
    }

    /// For machines.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "target": self.target_text(),
            "holds": self.holds(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_never_holds() {
        let mut figure =
            Figure { name: "f".to_owned(), value: None, unit: "x", target: Target::AtLeast(90.0) };
        assert_eq!(figure.holds(), None);
        assert_eq!(figure.to_json()["holds"], Value::Null);
        figure.value = Some(89.9);
        assert_eq!(figure.holds(), Some(false));
        figure.value = Some(90.0);
        assert_eq!(figure.holds(), Some(true));
        figure.target = Target::AtMost(2.0);
        assert_eq!(figure.holds(), Some(false));
        assert!(figure.line().contains("MISSED"), "{}", figure.line());
    }
}
