//! Whether the congestion window is what limits the sender, by windows of data, as Linux tells it.

use crate::cc::Window;

/// Linux's `is_cwnd_limited` and `max_packets_out`, of the window of data that is under way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CwndUsage {
    limited: bool,
    /// Most that was in flight, of a window in which cwnd never was the limit.
    most: u64,
    /// The window of data ends where this has been acknowledged.
    until: u64,
}

impl CwndUsage {
    /// After each sending, and when cwnd forbids one: up to `nxt` has been sent, up to `una` acknowledged.
    pub fn note(&mut self, limited: bool, una: u64, nxt: u64) {
        let flight = nxt - una;
        if una >= self.until || limited || (!self.limited && flight > self.most) {
            *self = CwndUsage { limited, most: flight, until: nxt };
        }
    }

    /// Whether cwnd has been the limit in this window of data.
    pub fn limited(&self) -> bool {
        self.limited
    }

    /// Slow start goes on to twice the most that was in flight.
    pub fn may_grow(&self, window: &Window) -> bool {
        self.limited || (window.cwnd < window.ssthresh && window.cwnd < 2 * self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_for_the_window_of_data_in_which_it_was_met() {
        let avoidance = Window { cwnd: 4000, ssthresh: 4000 };
        let mut cwnd_usage = CwndUsage::default();
        cwnd_usage.note(true, 1, 4001);
        cwnd_usage.note(false, 2001, 4001);
        assert!(cwnd_usage.may_grow(&avoidance));
        cwnd_usage.note(false, 4001, 5001);
        assert!(!cwnd_usage.may_grow(&avoidance));
    }

    #[test]
    fn slow_start_goes_on_to_twice_what_was_in_flight() {
        let mut cwnd_usage = CwndUsage::default();
        cwnd_usage.note(false, 1, 3001);
        assert!(cwnd_usage.may_grow(&Window { cwnd: 5999, ssthresh: u64::MAX }));
        assert!(!cwnd_usage.may_grow(&Window { cwnd: 6000, ssthresh: u64::MAX }));
        assert!(
            !cwnd_usage.may_grow(&Window { cwnd: 5999, ssthresh: 5999 }),
            "congestion avoidance does not"
        );
    }

    #[test]
    fn a_limit_is_not_forgotten_for_a_larger_flight_of_the_same_window_of_data() {
        let mut cwnd_usage = CwndUsage::default();
        cwnd_usage.note(true, 1, 4001);
        cwnd_usage.note(false, 1, 6001);
        assert!(cwnd_usage.limited());
        cwnd_usage.note(false, 4001, 6001);
        assert!(!cwnd_usage.limited(), "the next window of data");
    }

    #[test]
    fn the_most_that_was_in_flight_counts() {
        let mut cwnd_usage = CwndUsage::default();
        cwnd_usage.note(false, 1, 2001);
        cwnd_usage.note(false, 1, 3001);
        cwnd_usage.note(false, 1501, 3001);
        let window = |cwnd| Window { cwnd, ssthresh: u64::MAX };
        assert!(cwnd_usage.may_grow(&window(5999)) && !cwnd_usage.may_grow(&window(6000)));
    }
}
