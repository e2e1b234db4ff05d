//! Packets in the order of their due times.

use core::cmp::Ordering;
use farpath_units::Instant;
use std::collections::BinaryHeap;

/// A queue by due time; of two that are due together, the one that was pushed first comes first.
#[derive(Debug, Clone)]
pub struct Schedule<T> {
    heap: BinaryHeap<Timed<T>>,
    pushed: u64,
}

#[derive(Debug, Clone)]
struct Timed<T> {
    due: Instant,
    number: u64,
    item: T,
}

impl<T> Schedule<T> {
    /// An empty one.
    pub fn new() -> Schedule<T> {
        Schedule { heap: BinaryHeap::new(), pushed: 0 }
    }

    /// Adds an item.
    pub fn push(&mut self, due: Instant, item: T) {
        self.heap.push(Timed { due, number: self.pushed, item });
        self.pushed += 1;
    }

    /// When the first one is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.heap.peek().map(|first| first.due)
    }

    /// The first one, with its due time.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|first| (first.due, first.item))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T> Default for Schedule<T> {
    fn default() -> Schedule<T> {
        Schedule::new()
    }
}

impl<T> Ord for Timed<T> {
    /// Greatest is first out of the heap: the earliest due, then the lowest number.
    fn cmp(&self, other: &Timed<T>) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Timed<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Timed<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Timed<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_together_comes_in_the_order_in_which_it_was_pushed() {
        let mut schedule = Schedule::new();
        let at = Instant::from_nanos;
        (0..20).for_each(|item| schedule.push(at(7), item));
        schedule.push(at(6), 20);
        assert_eq!((schedule.len(), schedule.next_due()), (21, Some(at(6))));
        let order: Vec<_> = core::iter::from_fn(|| schedule.pop().map(|(_, item)| item)).collect();
        assert_eq!(order, [20].into_iter().chain(0..20).collect::<Vec<_>>());
    }
}
