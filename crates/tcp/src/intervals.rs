//! Sets of half-open intervals of positions: what has arrived out of order, what has been SACKed.

use core::ops::Range;
use std::collections::BTreeMap;

/// Disjoint, non-adjacent intervals. Every operation costs the logarithm of the number of intervals plus what it
/// merges: never the number of bytes or segments in them.
#[derive(Debug, Clone, Default)]
pub struct IntervalSet {
    /// Start to end.
    map: BTreeMap<u64, u64>,
    /// Positions in all of them.
    covered: u64,
}

impl IntervalSet {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// How many positions there are in all intervals together.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// Adds `range` and calls `fresh` with each part that was not covered yet, in rising order.
    pub fn insert(&mut self, range: Range<u64>, mut fresh: impl FnMut(Range<u64>)) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        let mut gap_from = start;
        // The last interval that begins at or before `start` may touch it; then all that begin up to `end`.
        if let Some((&s, &e)) = self.map.range(..=start).next_back()
            && e >= start
        {
            if e >= end {
                return;
            }
            self.map.remove(&s);
            start = s;
            gap_from = gap_from.max(e);
            end = end.max(e);
        }
        while let Some((&s, &e)) = self.map.range(start..=end).next() {
            self.map.remove(&s);
            if gap_from < s {
                self.covered += s - gap_from;
                fresh(gap_from..s);
            }
            gap_from = gap_from.max(e);
            end = end.max(e);
        }
        if gap_from < end {
            self.covered += end - gap_from;
            fresh(gap_from..end);
        }
        self.map.insert(start, end);
    }

    /// Removes everything below `position`.
    pub fn remove_below(&mut self, position: u64) {
        while let Some(entry) = self.map.first_entry() {
            let (start, end) = (*entry.key(), *entry.get());
            if start >= position {
                return;
            }
            entry.remove();
            self.covered -= end.min(position) - start;
            if end > position {
                self.map.insert(position, end);
                return;
            }
        }
    }

    /// Takes the lowest interval out if it begins at or below `position`; gives its end.
    pub fn take_from(&mut self, position: u64) -> Option<u64> {
        let entry = self.map.first_entry()?;
        let (start, end) = (*entry.key(), *entry.get());
        if start > position {
            return None;
        }
        entry.remove();
        self.covered -= end - start;
        Some(end)
    }

    /// Whether all of `range` is covered.
    pub fn covers(&self, range: Range<u64>) -> bool {
        self.map.range(..=range.start).next_back().is_some_and(|(_, &end)| end >= range.end)
    }

    /// The interval that holds `position`.
    pub fn containing(&self, position: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.map.range(..=position).next_back()?;
        (position < end).then_some(start..end)
    }

    /// The first part of `range` that is covered.
    pub fn first_overlap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let next = || self.map.range(range.clone()).next().map(|(&start, &end)| start..end);
        let first = self.containing(range.start).or_else(next)?;
        Some(first.start.max(range.start)..first.end.min(range.end))
    }

    /// The intervals, highest first.
    pub fn descending(&self) -> impl Iterator<Item = Range<u64>> {
        self.map.iter().rev().map(|(&start, &end)| start..end)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.map.clear();
        self.covered = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn covered(set: &IntervalSet) -> BTreeSet<u64> {
        set.descending().flatten().collect()
    }

    proptest! {
        #[test]
        fn behaves_as_a_set_of_positions(ops in prop::collection::vec((0..4u8, 0..60u64, 0..12u64), 1..40)) {
            let mut set = IntervalSet::default();
            let mut model = BTreeSet::new();
            for (op, at, len) in ops {
                match op {
                    0..=1 => {
                        let mut fresh = BTreeSet::new();
                        set.insert(at..at + len, |range| fresh.extend(range));
                        let expected: BTreeSet<u64> = (at..at + len).filter(|p| !model.contains(p)).collect();
                        prop_assert_eq!(fresh, expected);
                        model.extend(at..at + len);
                    }
                    2 => {
                        set.remove_below(at);
                        model.retain(|&p| p >= at);
                    }
                    _ => {
                        let end = set.take_from(at);
                        if let Some(end) = end {
                            prop_assert!(model.iter().next().is_some_and(|&p| p <= at));
                            model.retain(|&p| p >= end);
                        } else {
                            prop_assert!(model.iter().next().is_none_or(|&p| p > at));
                        }
                    }
                }
                prop_assert_eq!(&covered(&set), &model);
                prop_assert_eq!(set.covered(), model.len() as u64);
                let ranges: Vec<_> = set.descending().collect();
                prop_assert!(ranges.windows(2).all(|w| w[1].end < w[0].start), "adjacent intervals merge");
                prop_assert_eq!(set.covers(at..at + len), len == 0 && set.map.range(..=at).next_back().is_some_and(|(_, &e)| e >= at)
                    || len > 0 && (at..at + len).all(|p| model.contains(&p)));
                prop_assert_eq!(set.containing(at).is_some(), model.contains(&at));
                if len > 0 {
                    let overlap = set.first_overlap(at..at + len);
                    let first = (at..at + len).find(|p| model.contains(p));
                    prop_assert_eq!(overlap.clone().map(|o| o.start), first);
                    if let Some(o) = overlap {
                        prop_assert!(o.clone().all(|p| model.contains(&p)) && (o.end == at + len || !model.contains(&o.end)));
                    }
                }
            }
        }
    }
}
