//! Room for what is kept of clients' flows: so much for each client, and so much for all.

use crate::limits;
use std::sync::atomic::{AtomicU64, Ordering};

/// Room for things of one kind.
#[derive(Debug)]
pub struct Quota {
    most: u64,
    taken: AtomicU64,
}

impl Quota {
    fn new(most: u64) -> Quota {
        Quota { most, taken: AtomicU64::new(0) }
    }

    fn take(&self, things: u64) -> bool {
        let more = |taken: u64| taken.checked_add(things).filter(|taken| *taken <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give(&self, things: u64) {
        self.taken.fetch_sub(things, Ordering::Relaxed);
    }
}

/// Room of each kind.
#[derive(Debug)]
pub struct Quotas {
    pub rows: Quota,
    pub messages: Quota,
    pub datagrams: Quota,
}

impl Quotas {
    /// For all clients together.
    pub fn for_all() -> Quotas {
        Quotas {
            rows: Quota::new(limits::ROWS_IN_ALL),
            messages: Quota::new(limits::MESSAGES_IN_ALL),
            datagrams: Quota::new(limits::DATAGRAMS_IN_ALL),
        }
    }

    /// For one.
    pub fn for_client() -> Quotas {
        Quotas {
            rows: Quota::new(limits::ROWS_OF_CLIENT),
            messages: Quota::new(limits::MESSAGES_OF_CLIENT),
            datagrams: Quota::new(limits::DATAGRAMS_OF_CLIENT),
        }
    }
}

/// What a flow has taken, of its client's room and of everybody's. It is there again when this goes.
#[derive(Debug)]
pub struct Taken<'a> {
    of: [&'a Quota; 2],
    things: u64,
}

impl<'a> Taken<'a> {
    /// Nothing yet.
    pub fn nothing(of: [&'a Quota; 2]) -> Taken<'a> {
        Taken { of, things: 0 }
    }

    /// Takes more; false where there is no room, and then nothing is taken.
    pub fn take(&mut self, things: u64) -> bool {
        let [client, all] = self.of;
        if !client.take(things) {
            return false;
        }
        if !all.take(things) {
            client.give(things);
            return false;
        }
        self.things += things;
        true
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.of.iter().for_each(|room| room.give(self.things));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_a_client_s_and_everybody_s_and_comes_back() {
        let (all, one, other) = (Quota::new(10), Quota::new(7), Quota::new(7));
        let mut ours = Taken::nothing([&one, &all]);
        assert!(ours.take(5) && !ours.take(3) && ours.take(2), "a client's own");
        let mut theirs = Taken::nothing([&other, &all]);
        assert!(!theirs.take(4) && theirs.take(3) && !theirs.take(1), "everybody's");
        assert!(!theirs.take(u64::MAX));
        drop(ours);
        assert!(theirs.take(4));
        drop(theirs);
        assert_eq!([&all, &one, &other].map(|room| room.taken.load(Ordering::Relaxed)), [0; 3]);
    }
}
