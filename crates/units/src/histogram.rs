//! How durations are distributed, in little room.

use crate::Duration;

/// Durations below two to this power are told apart exactly, in ns; above, every power of two has half as many classes.
const EXACT_BITS: u32 = 7;
/// Classes of one power of two; by as many a histogram becomes wider.
const STEP: usize = 1 << (EXACT_BITS - 1);

/// Counts of durations in classes: percentiles within 1 %, mean, least and longest exact.
///
/// It takes up room for the classes between the least duration and the longest, zero apart: 512 B for each power of two, 30 KiB at
/// the most. All of it is integers, so that it repeats on every machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationHistogram {
    zeros: u64,
    /// Counts of the classes from `first` on.
    counts: Vec<u64>,
    first: usize,
    sum_ns: u128,
    least: Duration,
    longest: Duration,
}

impl Default for DurationHistogram {
    fn default() -> DurationHistogram {
        DurationHistogram {
            zeros: 0,
            counts: Vec::new(),
            first: 0,
            sum_ns: 0,
            least: Duration::MAX,
            longest: Duration::ZERO,
        }
    }
}

impl DurationHistogram {
    /// Counts one more.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.sum_ns += u128::from(time.as_nanos());
        if time < self.least || time > self.longest {
            self.reach(time);
        }
        if time.is_zero() {
            self.zeros += 1;
            return;
        }
        let class = class_of(time);
        match self.counts.get_mut(class.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.add(class, 1),
        }
    }

    /// One is an extreme: seldom, so that the rest need not be written down.
    #[cold]
    fn reach(&mut self, time: Duration) {
        self.least = self.least.min(time);
        self.longest = self.longest.max(time);
    }

    /// Counts all that another one has counted.
    pub fn merge(&mut self, other: &DurationHistogram) {
        self.zeros += other.zeros;
        for (class, &count) in (other.first..).zip(&other.counts).filter(|(_, count)| **count > 0) {
            self.add(class, count);
        }
        self.sum_ns += other.sum_ns;
        self.least = self.least.min(other.least);
        self.longest = self.longest.max(other.longest);
    }

    /// Counts in a class that it may have no room for yet.
    #[cold]
    fn add(&mut self, class: usize, count: u64) {
        let step = class / STEP * STEP;
        if self.counts.is_empty() {
            self.first = step;
        }
        if step < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - step));
            self.first = step;
        }
        let len = step + STEP - self.first;
        if self.counts.len() < len {
            self.counts.resize(len, 0);
        }
        self.counts[class - self.first] += count;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.zeros + self.counts.iter().sum::<u64>()
    }

    /// The mean, rounded down to a whole ns; `None` of none.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum_ns.checked_div(u128::from(self.count()))?;
        // A mean of u64s is one.
        Some(Duration::from_nanos(mean as u64))
    }

    /// The least; `None` of none.
    pub fn least(&self) -> Option<Duration> {
        (self.count() > 0).then_some(self.least)
    }

    /// The longest; `None` of none.
    pub fn longest(&self) -> Option<Duration> {
        (self.count() > 0).then_some(self.longest)
    }

    /// What `percent` of them, rounded up, are no longer than, within 1 %; `None` of none.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = (u128::from(count) * u128::from(percent)).div_ceil(100).max(1);
        let mut reached = u128::from(self.zeros);
        if rank <= reached {
            return Some(Duration::ZERO);
        }
        let class = self.counts.iter().position(|&count| {
            reached += u128::from(count);
            rank <= reached
        });
        let middle = class.map_or(self.longest, |class| middle_of(self.first + class));
        // Where all of them are in one class, it says less than the extremes.
        Some(middle.clamp(self.least, self.longest))
    }
}

/// The class of a duration. The classes of one power of two are as wide as each other.
fn class_of(time: Duration) -> usize {
    let ns = time.as_nanos();
    let exact = (1 << EXACT_BITS) - 1;
    let shift = u64::BITS - EXACT_BITS - (ns | exact).leading_zeros();
    shift as usize * STEP + (ns >> shift) as usize
}

/// The duration in the middle of a class.
fn middle_of(class: usize) -> Duration {
    let shift = (class / STEP).saturating_sub(1);
    let least = ((class - shift * STEP) as u64) << shift;
    Duration::from_nanos(least + (1 << shift) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times: impl IntoIterator<Item = u64>) -> DurationHistogram {
        let mut histogram = DurationHistogram::default();
        times.into_iter().for_each(|ns| histogram.record(Duration::from_nanos(ns)));
        histogram
    }

    /// Times of all magnitudes: a uniform `u64` is hardly ever below a second.
    fn times() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec((any::<u64>(), 0..64_u32).prop_map(|(ns, shift)| ns >> shift), 1..200)
    }

    #[test]
    fn none_has_no_figures() {
        let none = DurationHistogram::default();
        assert_eq!((none.count(), none.mean(), none.percentile(99), none.longest()), (0, None, None, None));
    }

    #[test]
    fn equal_times_have_exactly_that_percentile() {
        let same = of([600_123_456; 10]);
        let exact = Some(Duration::from_nanos(600_123_456));
        assert_eq!((same.percentile(50), same.percentile(99), same.mean()), (exact, exact, exact));
    }

    #[test]
    fn zeros_are_counted() {
        let mostly = of([0, 0, 0, 0, 0, 0, 0, 0, 0, 1000]);
        assert_eq!(mostly.percentile(90), Some(Duration::ZERO));
        assert_eq!(mostly.percentile(91), Some(Duration::from_nanos(1000)));
        assert_eq!(mostly.mean(), Some(Duration::from_nanos(100)));
    }

    #[test]
    fn room_is_for_what_lies_between_the_extremes() {
        // From 1 ms to 100 ms are 6.6 powers of two, which touch eight.
        assert_eq!(of([0, 1_000_000, 100_000_000]).counts.len(), 8 * STEP);
        let widest = of([u64::MAX, 0, 1]);
        assert_eq!(std::mem::size_of_val(&*widest.counts), 29 * 1024 + 512);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_per_cent(times in times(), percent in 0..=100_u32) {
            let histogram = of(times.iter().copied());
            let mut sorted = times;
            sorted.sort_unstable();
            let rank = (sorted.len() * percent as usize).div_ceil(100).max(1);
            let exact = sorted[rank - 1];
            let found = histogram.percentile(percent).expect("there are some").as_nanos();
            prop_assert!(u128::from(found.abs_diff(exact)) * 100 <= u128::from(exact), "{found} for {exact}");
        }

        #[test]
        fn mean_and_extremes_are_exact(times in times()) {
            let histogram = of(times.iter().copied());
            let sum: u128 = times.iter().map(|&ns| u128::from(ns)).sum();
            let mean = (sum / times.len() as u128) as u64;
            prop_assert_eq!(histogram.mean(), Some(Duration::from_nanos(mean)));
            prop_assert_eq!(histogram.count(), times.len() as u64);
            let extremes = [times.iter().min(), times.iter().max()];
            let extremes = extremes.map(|ns| ns.map(|&ns| Duration::from_nanos(ns)));
            prop_assert_eq!([histogram.least(), histogram.longest()], extremes);
        }

        #[test]
        fn merged_ones_have_counted_all(one in times(), other in times()) {
            let mut merged = of(one.iter().copied());
            merged.merge(&of(other.iter().copied()));
            let all = of(one.into_iter().chain(other));
            prop_assert_eq!(merged, all);
        }
    }
}
