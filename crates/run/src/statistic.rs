//! Statistics of a sample.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A sample of independent values: here, one value per run, runs differing in their seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistic {
    /// How many values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1); unknown for a single value.
    pub sd: Option<f64>,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Statistic {
    /// Of some values; `None` for no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Statistic> {
        let (mut n, mut mean, mut squares) = (0_u64, 0.0, 0.0);
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            // Welford's update: runs that agree have a deviation of exactly zero.
            n += 1;
            let before = value - mean;
            mean += before / n as f64;
            squares += before * (value - mean);
            min = value.min(min);
            max = value.max(max);
        }
        let sd = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
        (n > 0).then_some(Statistic { n, mean, sd, min, max })
    }

    /// Half the width of the 95 % confidence interval of the mean, by Student's t; unknown for a single value.
    ///
    /// It is exact for normal values only. Transfer times under loss lean to the right, so that with a handful of
    /// seeds the interval covers the true mean somewhat less often than it says.
    pub fn ci95(&self) -> Option<f64> {
        let sd = self.sd?;
        let n = self.n as f64;
        let t = StudentsT::new(0.0, 1.0, n - 1.0).expect("there is more than one value").inverse_cdf(0.975);
        Some(t * sd / n.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    /// The quantile that `ci95` used: a sample with a standard deviation of sqrt(n) shows it.
    fn t(n: u64) -> f64 {
        let sample = Statistic { n, mean: 0.0, sd: Some((n as f64).sqrt()), min: 0.0, max: 0.0 };
        sample.ci95().unwrap()
    }

    #[test]
    fn interval_uses_the_t_quantiles_of_the_tables() {
        let tables = [
            (2, 12.7062),
            (3, 4.30265),
            (4, 3.18245),
            (5, 2.77645),
            (6, 2.57058),
            (10, 2.26216),
            (20, 2.09302),
        ];
        for (n, quantile) in tables.into_iter().chain([(30, 2.04523), (101, 1.98397), (1001, 1.96234)]) {
            assert!((t(n) - quantile).abs() < 1e-5 * quantile, "n = {n}: {} is not {quantile}", t(n));
        }
    }

    #[test]
    fn statistics_of_a_hand_computed_sample() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares of the deviations 32.
        let s = Statistic::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.n, s.mean, s.min, s.max), (8, 5.0, 2.0, 9.0));
        assert!(close(s.sd.unwrap(), (32.0_f64 / 7.0).sqrt()));
        // t(0.975, 7) = 2.364624
        assert!((s.ci95().unwrap() - 2.364624 * (32.0_f64 / 7.0 / 8.0).sqrt()).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_no_deviation_and_none_has_no_statistic() {
        let one = Statistic::of([3.5]).unwrap();
        assert_eq!((one.n, one.mean, one.sd, one.ci95()), (1, 3.5, None, None));
        assert_eq!(Statistic::of([]), None);
    }

    #[test]
    fn equal_values_have_a_deviation_of_exactly_zero() {
        let s = Statistic::of([50.166_942_4; 20]).unwrap();
        assert_eq!((s.mean, s.sd, s.ci95()), (50.166_942_4, Some(0.0), Some(0.0)));
    }
}
