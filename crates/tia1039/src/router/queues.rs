//! In which order packets leave a line.

use super::flow::FlowKey;
use super::passing::Class;
use farpath_units::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Delay priorities in four steps.
const STEPS: usize = 4;

/// The queues of one line.
///
/// Guarantees come first, by delay priority: what is waiting elsewhere waits on, so that capacity that a guarantee does not
/// use is lent to the others, and is given back within the time of one packet. Flows with Available Rates take turns by
/// deficit round robin (Shreedhar, Varghese 1995), each with a queue of its own: one that a flow builds is its own. What
/// nobody asked a rate for has what is left: a grant that ordinary packets could take turns with would not be one, and its
/// sender would not slow down for the queue that it stands in.
#[derive(Debug, Clone)]
pub struct Queues<T> {
    guaranteed: [VecDeque<(T, Bytes)>; STEPS],
    /// Queues of those that wait; nobody stands here without a packet.
    shared: BTreeMap<Whose, Shared<T>>,
    /// Their turns.
    turns: VecDeque<Whose>,
    best_effort: VecDeque<(T, Bytes)>,
    best_effort_bytes: Bytes,
    /// What a turn adds to what a queue may send.
    quantum: Bytes,
    /// Bytes that each of the shared queues may hold, and that of best effort.
    limit: Bytes,
    waiting: Bytes,
}

/// Whose queue it is; `None` of all newcomers.
type Whose = Option<FlowKey>;

#[derive(Debug, Clone)]
struct Shared<T> {
    packets: VecDeque<(T, Bytes)>,
    bytes: Bytes,
    /// What it may still send in this turn.
    deficit: Bytes,
}

impl<T> Queues<T> {
    /// Queues that hold so many bytes each; a turn is a full packet.
    pub fn new(quantum: Bytes, limit: Bytes) -> Queues<T> {
        Queues {
            guaranteed: [const { VecDeque::new() }; STEPS],
            shared: BTreeMap::new(),
            turns: VecDeque::new(),
            best_effort: VecDeque::new(),
            best_effort_bytes: Bytes::ZERO,
            quantum: quantum.max(Bytes(1)),
            limit,
            waiting: Bytes::ZERO,
        }
    }

    /// What each queue may hold from now on; what is in one stays.
    pub fn set_limit(&mut self, limit: Bytes) {
        self.limit = limit;
    }

    /// Puts a packet into its queue, or gives it back where that is full. Guarantees are policed before they come here,
    /// which is what bounds their queues.
    pub fn push(&mut self, class: Class, flow: FlowKey, item: T, size: Bytes) -> Result<(), T> {
        match class {
            Class::Guaranteed(step) => {
                self.guaranteed[usize::from(step).min(STEPS - 1)].push_back((item, size));
            }
            Class::BestEffort => {
                if self.best_effort_bytes + size > self.limit {
                    return Err(item);
                }
                self.best_effort.push_back((item, size));
                self.best_effort_bytes += size;
            }
            Class::Available | Class::Newcomer => {
                let whose = (class == Class::Available).then_some(flow);
                if self.shared.get(&whose).map_or(Bytes::ZERO, |queue| queue.bytes) + size > self.limit {
                    return Err(item);
                }
                let turns = &mut self.turns;
                let queue = self.shared.entry(whose).or_insert_with(|| {
                    turns.push_back(whose);
                    Shared { packets: VecDeque::new(), bytes: Bytes::ZERO, deficit: Bytes::ZERO }
                });
                queue.packets.push_back((item, size));
                queue.bytes += size;
            }
        }
        self.waiting += size;
        Ok(())
    }

    /// The packet that leaves next.
    pub fn pop(&mut self) -> Option<(T, Bytes)> {
        let guaranteed = self.guaranteed.iter_mut().rev().find_map(VecDeque::pop_front);
        let next = guaranteed.or_else(|| self.pop_shared()).or_else(|| self.pop_best_effort())?;
        self.waiting -= next.1;
        Some(next)
    }

    fn pop_shared(&mut self) -> Option<(T, Bytes)> {
        loop {
            let whose = *self.turns.front()?;
            let queue = self.shared.get_mut(&whose).expect("whoever has a turn has a queue");
            let &(_, size) = queue.packets.front().expect("whoever has a queue has a packet");
            if queue.deficit < size {
                queue.deficit += self.quantum;
                self.turns.rotate_left(1);
                continue;
            }
            queue.deficit -= size;
            queue.bytes -= size;
            let next = queue.packets.pop_front();
            if queue.packets.is_empty() {
                self.shared.remove(&whose);
                self.turns.pop_front();
            }
            return next;
        }
    }

    fn pop_best_effort(&mut self) -> Option<(T, Bytes)> {
        let next = self.best_effort.pop_front()?;
        self.best_effort_bytes -= next.1;
        Some(next)
    }

    /// IP bytes that wait.
    pub fn waiting(&self) -> Bytes {
        self.waiting
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        let shared = self.shared.values().map(|queue| queue.packets.len()).sum::<usize>();
        self.guaranteed.iter().map(VecDeque::len).sum::<usize>() + shared + self.best_effort.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Queues;
    use crate::router::{Class, FlowKey};
    use farpath_units::Bytes;

    const PACKET: Bytes = Bytes(1500);

    fn queues() -> Queues<u32> {
        Queues::new(PACKET, Bytes(30_000))
    }

    fn flow(number: u32) -> FlowKey {
        FlowKey::from(u128::from(number))
    }

    fn order(queues: &mut Queues<u32>) -> Vec<u32> {
        core::iter::from_fn(|| queues.pop().map(|(item, _)| item)).collect()
    }

    #[test]
    fn guarantees_leave_first_by_delay_priority_and_best_effort_last() {
        let mut queues = queues();
        let classes = [
            Class::BestEffort,
            Class::Guaranteed(0),
            Class::Available,
            Class::Guaranteed(3),
            Class::Guaranteed(0),
        ];
        for (number, class) in (0..).zip(classes) {
            assert_eq!(queues.push(class, flow(number), number, PACKET), Ok(()));
            assert!(!queues.is_empty());
        }
        assert_eq!(order(&mut queues), [3, 1, 4, 2, 0]);
        assert!(queues.is_empty());
    }

    #[test]
    fn flows_share_by_bytes_whatever_the_size_of_their_packets() {
        let mut queues = queues();
        for _ in 0..20 {
            queues.push(Class::Available, flow(1), 1, Bytes(1500)).expect("room");
        }
        for _ in 0..60 {
            queues.push(Class::Available, flow(2), 2, Bytes(500)).expect("room");
        }
        let first: Vec<u32> = core::iter::from_fn(|| queues.pop().map(|(item, _)| item)).take(40).collect();
        let large = first.iter().filter(|&&item| item == 1).count();
        assert!((9..=11).contains(&large), "10 of 1500 B beside 30 of 500 B: {large}");
    }

    #[test]
    fn a_full_queue_is_its_own_flows() {
        let mut queues = queues();
        let accepted =
            (0..100).filter(|_| queues.push(Class::BestEffort, flow(1), 1, PACKET).is_ok()).count();
        assert_eq!((accepted, queues.waiting()), (20, Bytes(30_000)));
        assert_eq!(queues.push(Class::Available, flow(2), 2, PACKET), Ok(()));
        assert_eq!(order(&mut queues)[..2], [2, 1]);
    }

    #[test]
    fn what_waits_is_counted_in_packets_and_in_bytes() {
        let mut queues = queues();
        let classes = [
            Class::Guaranteed(0),
            Class::Guaranteed(1),
            Class::Available,
            Class::Available,
            Class::Available,
            Class::BestEffort,
        ];
        for (number, class) in (0..).zip(classes) {
            queues.push(class, flow(number), number, Bytes(100)).expect("room");
        }
        let mut counts = vec![(queues.len(), queues.waiting().0)];
        while queues.pop().is_some() {
            counts.push((queues.len(), queues.waiting().0));
        }
        assert_eq!(counts, [(6, 600), (5, 500), (4, 400), (3, 300), (2, 200), (1, 100), (0, 0)]);
    }

    #[test]
    fn a_delay_priority_beyond_the_last_step_is_in_it() {
        let mut queues = queues();
        for (number, step) in [(1, 2), (2, 3), (3, 200), (4, 3)] {
            queues.push(Class::Guaranteed(step), flow(1), number, PACKET).expect("room");
        }
        assert_eq!(order(&mut queues), [2, 3, 4, 1]);
    }

    #[test]
    fn what_has_left_makes_room() {
        for class in [Class::BestEffort, Class::Available] {
            let mut queues = Queues::new(PACKET, Bytes(3000));
            for _ in 0..10 {
                assert_eq!(queues.push(class, flow(1), 1, PACKET), Ok(()));
                assert_eq!(queues.push(class, flow(1), 2, PACKET), Ok(()));
                assert_eq!(queues.push(class, flow(1), 3, Bytes(1)), Err(3));
                assert_eq!(queues.pop(), Some((1, PACKET)));
                assert_eq!(queues.push(class, flow(1), 4, PACKET), Ok(()));
                assert_eq!(queues.push(class, flow(1), 5, Bytes(1)), Err(5));
                assert_eq!(order(&mut queues), [2, 4]);
            }
            queues.set_limit(Bytes(1500));
            assert_eq!(queues.push(class, flow(1), 1, PACKET), Ok(()));
            assert_eq!(queues.push(class, flow(1), 2, Bytes(1)), Err(2));
        }
    }

    #[test]
    fn newcomers_have_one_queue_and_one_turn_together() {
        let mut queues = Queues::new(PACKET, Bytes(4 * 1500));
        for number in 0..4 {
            assert_eq!(queues.push(Class::Newcomer, flow(10 + number), number, PACKET), Ok(()));
        }
        assert_eq!(queues.push(Class::Newcomer, flow(20), 9, Bytes(1)), Err(9));
        for number in 4..6 {
            assert_eq!(queues.push(Class::Available, flow(1), number, PACKET), Ok(()));
        }
        assert_eq!(order(&mut queues), [0, 4, 1, 5, 2, 3]);
    }

    #[test]
    fn a_flow_that_has_sent_its_turn_waits_for_the_others() {
        // Packets of two turns each: one flow's after the other's.
        let mut queues = queues();
        for number in 0..3 {
            for of in [1, 2] {
                queues.push(Class::Available, flow(of), 10 * of + number, Bytes(3000)).expect("room");
            }
        }
        assert_eq!(order(&mut queues), [10, 20, 11, 21, 12, 22]);
    }

    #[test]
    fn what_a_turn_leaves_over_is_kept_for_the_next() {
        // Packets of a whole turn, and of two thirds of one: two of these leave in every other turn.
        let mut queues = queues();
        for _ in 0..9 {
            queues.push(Class::Available, flow(1), 1, Bytes(1500)).expect("room");
            queues.push(Class::Available, flow(2), 2, Bytes(1000)).expect("room");
        }
        assert_eq!(order(&mut queues)[..10], [1, 2, 1, 2, 2, 1, 2, 1, 2, 2]);
    }
}
