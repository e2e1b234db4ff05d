//! Statistics of a sample.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A sample of independent values: here, one value per run, runs differing in their seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistic {
    /// How many values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1); unknown for a single value, and where it is not finite.
    pub sd: Option<f64>,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Statistic {
    /// Of some values; `None` for no values.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Statistic> {
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
        let sd = (n > 1).then(|| (squares / (n - 1) as f64).sqrt()).filter(|sd| sd.is_finite());
        (n > 0).then_some(Statistic { n, mean, sd, min, max })
    }

    /// Half the width of the 95 % confidence interval of the mean, by Student's t; unknown where the standard deviation is.
    ///
    /// It is exact for normal values only. Transfer times under loss lean to the right, so that with a handful of
    /// seeds the interval covers the true mean somewhat less often than it says.
    pub fn ci95(&self) -> Option<f64> {
        let sd = self.sd?;
        let n = self.n as f64;
        let t = StudentsT::new(0.0, 1.0, n - 1.0).expect("there is more than one value").inverse_cdf(0.975);
        Some(t * sd / n.sqrt()).filter(|half| half.is_finite())
    }
}

/// How many of some independent trials came out well; of a prediction, which tries nothing, the probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Trials; zero for a prediction.
    pub trials: u64,
    /// The share of them, 0 to 1.
    pub share: f64,
}

impl Share {
    /// Of trials that came out as 1 or 0; `None` for no trials.
    pub fn from_trials(trials: impl IntoIterator<Item = f64>) -> Option<Share> {
        Statistic::from_values(trials).map(|Statistic { n, mean, .. }| Share { trials: n, share: mean })
    }

    /// The 95 % confidence interval of the probability, by Wilson's score (Wilson 1927); unknown for a prediction.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.interval_of(1.959_963_984_540_054)
    }

    /// The same for another quantile of the normal distribution.
    pub fn interval_of(&self, z: f64) -> Option<(f64, f64)> {
        if self.trials == 0 {
            return None;
        }
        let (n, p) = (self.trials as f64, self.share);
        let scale = 1.0 + z * z / n;
        let middle = (p + z * z / (2.0 * n)) / scale;
        let half = z / scale * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        Some(((middle - half).max(0.0), (middle + half).min(1.0)))
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
    fn a_spread_that_no_number_holds_is_not_known() {
        // The squares of their deviations are beyond an f64.
        let wide = Statistic::from_values([1e200, 3e200]).expect("two values");
        assert_eq!((wide.mean, wide.sd, wide.ci95()), (2e200, None, None));
        let endless = Statistic::from_values([1.0, f64::INFINITY]).expect("two values");
        assert_eq!((endless.sd, endless.ci95()), (None, None));
    }

    #[test]
    fn statistics_of_a_hand_computed_sample() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares of the deviations 32.
        let s = Statistic::from_values([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.n, s.mean, s.min, s.max), (8, 5.0, 2.0, 9.0));
        assert!(close(s.sd.unwrap(), (32.0_f64 / 7.0).sqrt()));
        // t(0.975, 7) = 2.364624
        assert!((s.ci95().unwrap() - 2.364624 * (32.0_f64 / 7.0 / 8.0).sqrt()).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_no_deviation_and_none_has_no_statistic() {
        let one = Statistic::from_values([3.5]).unwrap();
        assert_eq!((one.n, one.mean, one.sd, one.ci95()), (1, 3.5, None, None));
        assert_eq!(Statistic::from_values([]), None);
    }

    #[test]
    fn equal_values_have_a_deviation_of_exactly_zero() {
        let s = Statistic::from_values([50.166_942_4; 20]).unwrap();
        assert_eq!((s.mean, s.sd, s.ci95()), (50.166_942_4, Some(0.0), Some(0.0)));
    }

    #[test]
    fn shares_have_wilsons_interval() {
        // Newcombe 1998, Table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        let tables = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)];
        for (good, trials, low, high) in tables.into_iter().chain([(1, 29, 0.0061, 0.1718)]) {
            let ones = (0..trials).map(|trial| f64::from(u8::from(trial < good)));
            let share = Share::from_trials(ones).unwrap();
            let found = share.interval().unwrap();
            assert!((found.0 - low).abs() < 6e-5 && (found.1 - high).abs() < 6e-5, "{share:?} {found:?}");
        }
        assert_eq!(Share { trials: 0, share: 0.5 }.interval(), None);
        assert_eq!(Share::from_trials([]), None);
    }
}
