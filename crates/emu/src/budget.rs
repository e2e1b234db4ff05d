//! How much memory a path may need, before anything runs.

use crate::packet::BOOKKEEPING;
use farpath_elements::{ElementSpec, Inflow};
use farpath_path::{Direction, PerDirection};
use farpath_units::{Bytes, Rate};

/// What hosts may send, where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Fastest that a host sends, in bits of IP packets.
    pub rate: PerDirection<Option<Rate>>,
    /// Most that it has under way at once, in bytes of IP packets: the sum of its connections' windows. What is
    /// retransmitted while the original is still under way comes on top.
    pub window: PerDirection<Option<Bytes>>,
}

/// Nothing says how much an element may come to hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{element}: nothing bounds what it may hold in the {direction} direction: put a link before it, or bound the window"
)]
pub struct Unbounded {
    /// The element.
    pub element: String,
    /// Which way.
    pub direction: Direction,
}

/// A full packet on most paths.
const FULL_PACKET: u64 = 1500;

/// Most memory that full packets on this path can take up at once.
///
/// A queue holds what its limit allows, a delay line as much as the slowest link before it, or the host, sends in so
/// long; no more than the window is ever under way. Where packets are small what is kept beside their bytes counts for
/// more than is reckoned here; the loop counts what is there.
///
/// # Errors
/// When neither a rate nor a window bounds an element.
pub fn needed_memory(path: &[ElementSpec], load: &Load) -> Result<Bytes, Unbounded> {
    let forward = needed_one_way(path.iter(), Direction::Forward, load)?;
    let reverse = needed_one_way(path.iter().rev(), Direction::Reverse, load)?;
    let packets = (forward + reverse).0.div_ceil(FULL_PACKET);
    Ok(forward + reverse + Bytes(packets.saturating_mul(BOOKKEEPING.0)))
}

fn needed_one_way<'a>(
    path: impl Iterator<Item = &'a ElementSpec>,
    direction: Direction,
    load: &Load,
) -> Result<Bytes, Unbounded> {
    let mut inflow = Inflow::new(load.rate[direction]);
    let mut needed = Bytes::ZERO;
    for element in path {
        let holds = element.spec().held(direction, &mut inflow);
        match (holds, load.window[direction]) {
            (Some(holds), _) => needed += holds,
            (None, Some(window)) => return Ok(window),
            (None, None) => return Err(Unbounded { element: element.name.clone(), direction }),
        }
    }
    Ok(load.window[direction].map_or(needed, |window| window.min(needed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_elements::MarkThreshold;
    use farpath_elements::{Delay, Duplicate, ElementKind, Link, QueueLimit};
    use farpath_units::{Duration, Probability};

    fn element(name: &str, kind: ElementKind) -> ElementSpec {
        ElementSpec { name: name.to_owned(), kind }
    }

    fn delay(s: u64) -> ElementSpec {
        element("delay", ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_secs(s)) }))
    }

    fn link(mbit_per_s: u64, queue: QueueLimit) -> ElementSpec {
        let rate = Rate::from_bit_per_s(mbit_per_s * 1_000_000).expect("not zero");
        element(
            "link",
            ElementKind::Link(Link {
                rate: PerDirection::both(rate),
                queue: PerDirection::both(queue),
                mark: PerDirection::both(MarkThreshold::Never),
                aqm: PerDirection::default(),
                overhead: Bytes::ZERO,
                min_packet: Bytes::ZERO,
            }),
        )
    }

    fn with_bookkeeping(bytes: u64) -> Bytes {
        Bytes(bytes + bytes.div_ceil(FULL_PACKET) * BOOKKEEPING.0)
    }

    #[test]
    fn a_link_bounds_the_delay_line_behind_it() {
        // Forward: a queue of 1 MB and 10 s at 1 Gbit/s. Reverse: the delay comes first, at the host's 8 Mbit/s.
        let path = [link(1000, QueueLimit::Bytes(Bytes(1_000_000))), delay(10)];
        let mut load = Load::default();
        load.rate.reverse = Rate::from_bit_per_s(8_000_000);
        let (forward, reverse) = (1_000_000 + 1_250_000_000, 10_000_000 + 1_000_000);
        assert_eq!(needed_memory(&path, &load), Ok(with_bookkeeping(forward + reverse)));
    }

    #[test]
    fn no_more_than_the_window_is_under_way() {
        let path = [link(1000, QueueLimit::Unlimited), delay(10)];
        let load = Load { window: PerDirection::both(Some(Bytes(65_535))), ..Load::default() };
        assert_eq!(needed_memory(&path, &load), Ok(with_bookkeeping(2 * 65_535)));
    }

    #[test]
    fn what_nothing_bounds_is_named() {
        let error = needed_memory(&[delay(10)], &Load::default()).expect_err("any host could send any rate");
        assert_eq!(error, Unbounded { element: "delay".to_owned(), direction: Direction::Forward });
    }

    #[test]
    fn a_path_without_delay_needs_no_memory() {
        let path = [element(
            "none",
            ElementKind::Duplicate(Duplicate { share: PerDirection::both(Probability::ONE) }),
        )];
        assert_eq!(needed_memory(&path, &Load::default()), Ok(Bytes::ZERO));
    }
}
