//! Propagation.

use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Duration, Instant};

/// Every packet leaves a fixed time later.
#[derive(Debug)]
pub(crate) struct Delay {
    delay: PerDirection<Duration>,
}

impl Delay {
    pub fn new(delay: PerDirection<Duration>) -> Delay {
        Delay { delay }
    }
}

impl Transit for Delay {
    fn transit(&mut self, now: Instant, direction: Direction, _packet: PacketView) -> Fate {
        Fate::Depart(now + self.delay[direction])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_units::Bytes;

    #[test]
    fn every_packet_leaves_one_propagation_delay_later() {
        let mut delay = Delay::new(PerDirection {
            forward: Duration::from_millis(250),
            reverse: Duration::from_millis(10),
        });
        let packet = PacketView { size: Bytes(1500), carries_data: true };
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!(delay.transit(at(5), Direction::Forward, packet), Fate::Depart(at(255)));
        assert_eq!(delay.transit(at(5), Direction::Reverse, packet), Fate::Depart(at(15)));
    }
}
