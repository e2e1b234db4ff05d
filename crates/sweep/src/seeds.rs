//! Sets of seeds: few ranges, however many there are.

use std::ops::Range;

/// Seeds, as ranges that neither touch nor overlap, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seeds(Vec<Range<u64>>);

impl Seeds {
    /// Adds a range.
    pub fn add(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.0.retain(|other| {
            let apart = other.end < range.start || range.end < other.start;
            if !apart {
                range = range.start.min(other.start)..range.end.max(other.end);
            }
            apart
        });
        let place = self.0.partition_point(|other| other.start < range.start);
        self.0.insert(place, range);
    }

    /// Those of a range that are not in the set.
    pub fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut next = range.start;
        for known in &self.0 {
            if known.start > next && next < range.end {
                missing.push(next..known.start.min(range.end));
            }
            next = next.max(known.end);
        }
        if next < range.end {
            missing.push(next..range.end);
        }
        missing
    }

    /// Whether a seed is in the set.
    pub fn contains(&self, seed: u64) -> bool {
        self.0.iter().any(|known| known.contains(&seed))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|known| known.end - known.start).sum()
    }
}

impl FromIterator<Range<u64>> for Seeds {
    fn from_iter<T: IntoIterator<Item = Range<u64>>>(ranges: T) -> Seeds {
        let mut seeds = Seeds::default();
        ranges.into_iter().for_each(|range| seeds.add(range));
        seeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_where_they_meet() {
        let mut seeds = Seeds::default();
        for range in [1..4, 10..12, 4..6, 20..21, 5..11, 7..7] {
            seeds.add(range);
        }
        assert_eq!(seeds.0, [1..12, 20..21]);
        assert_eq!(seeds.missing(0..25), [0..1, 12..20, 21..25]);
        assert_eq!(seeds.missing(3..8), []);
        assert_eq!(seeds.missing(12..13).first(), Some(&(12..13)));
        assert!(seeds.contains(11) && !seeds.contains(12));
        assert_eq!(seeds.count(), 12);
        assert_eq!(Seeds::default().missing(1..3).first(), Some(&(1..3)));
    }
}
