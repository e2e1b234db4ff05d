//! Fewer points that draw the same line: the first, lowest, highest and last of each interval of time.
//!
//! On a plot with a column of pixels per interval that is all that can be seen of a line (M4: Jugel, Jerzak,
//! Hackenbroich, Markl 2014). No extreme is lost, as it is where every n-th point is kept or values are averaged.

use std::collections::BTreeSet;

/// A moment in ns, and the value then.
pub type Sample<V> = (u64, V);

/// Of samples in the order of time at most four for each of `intervals` equal intervals of it: the first, the lowest,
/// the highest and the last. Few samples stay as they are. Where somebody has changed a file, their order is any.
pub fn decimate<V: PartialOrd + Copy>(samples: &[Sample<V>], intervals: usize) -> Vec<Sample<V>> {
    let intervals = intervals.max(1);
    if samples.len() <= 4 * intervals {
        return samples.to_vec();
    }
    let (first, last) = (samples[0].0, samples[samples.len() - 1].0);
    let interval = |time: u64| {
        // One more than the span, so that the last moment is within the last interval.
        let span = u128::from(last.saturating_sub(first)) + 1;
        (u128::from(time.saturating_sub(first)) * intervals as u128 / span) as usize
    };
    let mut decimated = Vec::with_capacity(4 * intervals);
    for chunk in samples.chunk_by(|a, b| interval(a.0) == interval(b.0)) {
        let (mut lowest, mut highest) = (0, 0);
        for (i, (_, value)) in chunk.iter().enumerate() {
            if *value < chunk[lowest].1 {
                lowest = i;
            }
            if *value > chunk[highest].1 {
                highest = i;
            }
        }
        decimated.extend(BTreeSet::from([0, lowest, highest, chunk.len() - 1]).into_iter().map(|i| chunk[i]));
    }
    decimated
}

/// At most `most` of some events, spread evenly over them, the first among them: what happened often is still seen
/// to have happened everywhere.
pub fn spread<E: Clone>(events: &[E], most: usize) -> Vec<E> {
    if events.len() <= most {
        return events.to_vec();
    }
    (0..most).map(|i| events[i * events.len() / most].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Samples in the order of time, several of them at one moment now and then.
    fn samples() -> impl Strategy<Value = Vec<Sample<u64>>> {
        vec((0_u64..50, 0_u64..1000), 0..600).prop_map(|steps| {
            let mut now = 0;
            let at = |(step, value): (u64, u64)| {
                now += step.saturating_sub(20);
                (now, value)
            };
            steps.into_iter().map(at).collect()
        })
    }

    /// Whether `part` is `whole` with some left out.
    fn is_within(part: &[Sample<u64>], whole: &[Sample<u64>]) -> bool {
        let mut rest = whole.iter();
        part.iter().all(|sample| rest.any(|other| other == sample))
    }

    proptest! {
        #[test]
        fn what_is_left_is_in_its_order_and_not_too_much(samples in samples(), intervals in 1_usize..80) {
            let decimated = decimate(&samples, intervals);
            prop_assert!(is_within(&decimated, &samples));
            prop_assert!(decimated.len() <= (4 * intervals).max(samples.len().min(4 * intervals)));
        }

        #[test]
        fn ends_and_extremes_stay(samples in samples(), intervals in 1_usize..80) {
            let decimated = decimate(&samples, intervals);
            prop_assert_eq!(decimated.first(), samples.first());
            prop_assert_eq!(decimated.last(), samples.last());
            let lowest = |of: &[Sample<u64>]| of.iter().map(|(_, value)| *value).min();
            let highest = |of: &[Sample<u64>]| of.iter().map(|(_, value)| *value).max();
            prop_assert_eq!(lowest(&decimated), lowest(&samples));
            prop_assert_eq!(highest(&decimated), highest(&samples));
        }

        #[test]
        fn extremes_of_every_interval_stay(samples in samples(), intervals in 1_usize..80) {
            let decimated = decimate(&samples, intervals);
            let Some((&(first, _), &(last, _))) = samples.first().zip(samples.last()) else { return Ok(()) };
            for i in 0..intervals as u64 {
                let span = last - first + 1;
                let within = |of: &[Sample<u64>]| -> Vec<u64> {
                    let inside = |time: u64| (time - first) * intervals as u64 / span == i;
                    of.iter().filter(|(time, _)| inside(*time)).map(|(_, value)| *value).collect()
                };
                let (all, left) = (within(&samples), within(&decimated));
                prop_assert_eq!(left.iter().min(), all.iter().min());
                prop_assert_eq!(left.iter().max(), all.iter().max());
                prop_assert_eq!(left.first(), all.first());
                prop_assert_eq!(left.last(), all.last());
            }
        }

        #[test]
        fn few_events_all_stay_and_many_are_spread(events in vec(0_u32..1000, 0..500), most in 1_usize..200) {
            let left = spread(&events, most);
            prop_assert_eq!(left.len(), events.len().min(most));
            prop_assert_eq!(left.first(), events.first());
            if events.len() <= most {
                prop_assert_eq!(left, events);
            }
        }
    }

    #[test]
    fn one_moment_is_one_interval() {
        let samples: Vec<Sample<u64>> = (0..100).map(|value| (7, value)).collect();
        assert_eq!(decimate(&samples, 3), [(7, 0), (7, 99)]);
    }

    #[test]
    fn the_longest_time_is_no_overflow() {
        let samples: Vec<Sample<u64>> = (0..100).map(|i| (u64::MAX / 99 * i, i)).collect();
        assert_eq!(decimate(&samples, 10).last(), samples.last());
    }
}
