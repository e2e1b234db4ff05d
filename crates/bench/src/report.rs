//! Small statistics, and the rows of a table.

use serde_json::{Value, json};

/// Mean and standard deviation of some times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Mean.
    pub mean: f64,
    /// Standard deviation, n - 1.
    pub deviation: f64,
    /// How many.
    pub count: usize,
}

impl Sample {
    /// Of at least two values.
    pub fn from_values(values: &[f64]) -> Sample {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Sample { mean, deviation: (squares / (count as f64 - 1.0)).sqrt(), count }
    }

    /// How far this mean lies from another's, in standard errors of their difference.
    pub fn off(&self, other: &Sample) -> f64 {
        let variance = |sample: &Sample| sample.deviation * sample.deviation / sample.count as f64;
        let error = (variance(self) + variance(other)).sqrt();
        let difference = self.mean - other.mean;
        if difference == 0.0 { 0.0 } else { difference / error }
    }

    /// For machines.
    pub fn to_json(&self) -> Value {
        json!({ "mean_s": self.mean, "deviation_s": self.deviation, "runs": self.count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_in_standard_errors() {
        let (one, other) = (Sample::from_values(&[1.0, 3.0]), Sample::from_values(&[5.0, 7.0]));
        assert_eq!((one.mean, one.deviation), (2.0, 2.0_f64.sqrt()));
        // Each mean has a variance of 1: their difference, 2.
        assert!((one.off(&other) + 4.0 / 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(one.off(&one), 0.0);
    }
}
