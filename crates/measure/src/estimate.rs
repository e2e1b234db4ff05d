//! What a path is, from what datagrams meet on it: round trip, losses, and of each way the rate of its narrowest link and
//! the queue before it.

mod experiment;
mod way;

pub use way::{Queue, Way};

use crate::datagrams::{Burst, Echoes, burst, echo};
use crate::peer::{MeasureError, Peer};
use crate::said::Said;
use farpath_path::PerDirection;
use farpath_run::Grade;
use farpath_traffic::datagram::{Echo, LEAST};
use farpath_units::{Bytes, Duration, Rate};
use std::sync::atomic::AtomicBool;

/// The first burst, and the longest: 12 MB of full packets.
const FIRST_BURST: u32 = 16;
const LONGEST_BURST: u32 = 8192;
/// A burst that takes longer than this to come through is the last one.
const LONG_ENOUGH: Duration = Duration::from_secs(2);
/// How long after the last arrival the path is quiet, at the least.
const QUIET: Duration = Duration::from_millis(200);

/// How a path is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Probing {
    /// Datagrams that are sent back.
    pub echoes: u32,
    /// How far apart.
    pub interval: Duration,
}

impl Default for Probing {
    fn default() -> Probing {
        Probing { echoes: 1000, interval: Duration::from_millis(5) }
    }
}

/// A path, as it was found.
#[derive(Debug, Clone)]
pub struct PathEstimate {
    /// Between which hosts, as they are called.
    pub hosts: [String; 2],
    /// Both kernels.
    pub kernels: [Said; 2],
    /// The echoes.
    pub echoes: Echoes,
    /// Each way; `forward` goes to the peer.
    pub ways: PerDirection<Way>,
}

/// Looks at the path to the peer. What it is at is told.
///
/// # Errors
/// The peer refuses, or is lost; this one cannot. To be stopped is one too.
pub fn estimate(
    peer: &mut Peer,
    probing: Probing,
    stop: &AtomicBool,
    told: &mut dyn FnMut(&str),
) -> Result<PathEstimate, MeasureError> {
    told("echoes");
    let asked = Echo {
        count: probing.echoes,
        size: LEAST.max(64),
        interval: probing.interval,
        linger: Duration::from_secs(1),
    };
    let echoes = echo(peer, asked, stop)?;
    let longest = echoes.round_trips().last().copied().unwrap_or_default();
    let mut way = |up: bool| -> Result<Way, MeasureError> {
        told(if up { "bursts to the peer" } else { "bursts from the peer" });
        let (there, back) = echoes.lost();
        let (lost, of) = if up { (there, echoes.echoed.sent) } else { (back, echoes.arrived) };
        let mut bursts: Vec<Burst> = Vec::new();
        let mut count = FIRST_BURST;
        loop {
            let done = burst(peer, up, count, QUIET.max(longest + longest), stop)?;
            let slow = way::span(&done.arrivals) >= LONG_ENOUGH;
            let full = way::overflows(&done, lost, of);
            bursts.push(done);
            if full || slow || count >= LONGEST_BURST {
                break;
            }
            count *= 2;
        }
        Ok(Way::estimated(&bursts, lost, of))
    };
    let ways = PerDirection { forward: way(true)?, reverse: way(false)? };
    Ok(PathEstimate {
        hosts: [peer.local().ip().to_string(), peer.address().ip().to_string()],
        kernels: [crate::kernel::name().into(), peer.kernel().clone()],
        echoes,
        ways,
    })
}

impl PathEstimate {
    /// Propagation each way, taken as alike: half of the shortest round trip, less the time in which a datagram is sent
    /// over the narrowest links.
    pub fn delay(&self) -> Option<Duration> {
        let shortest = *self.echoes.round_trips().first()?;
        let sending =
            |way: &Way| way.rate.map_or(Duration::ZERO, |rate| rate.time_to_send(self.echoes.packet));
        let sent = sending(&self.ways.forward) + sending(&self.ways.reverse);
        Some(shortest.saturating_sub(sent) / 2)
    }
}

/// The share that is lost, with the interval in which it lies with 95 % confidence.
pub fn share(lost: u32, of: u32) -> Option<(f64, [f64; 2])> {
    let counted = Grade { offered: of.into(), lost: lost.into(), ..Grade::default() };
    Some((counted.loss_rate()?, counted.loss_interval()?))
}

/// To four digits: a burst does not tell more.
pub fn four_digits(value: u64) -> u64 {
    let unit = 10_u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(3));
    (value / unit)
        .saturating_add(u64::from(value % unit >= unit.div_ceil(2) && unit > 1))
        .saturating_mul(unit)
}

/// Bits in bytes and nanoseconds, as a rate.
fn rate_of(bytes: u64, within: Duration) -> Option<Rate> {
    let ns = u128::from(within.as_nanos());
    let bit_per_s = (u128::from(bytes) * 8 * 1_000_000_000).checked_div(ns)?;
    Rate::from_bit_per_s(four_digits(u64::try_from(bit_per_s).ok()?))
}

/// What a rate sends in a time.
fn bytes_in(rate: Rate, time: Duration) -> Bytes {
    let bits = u128::from(rate.bit_per_s()) * u128::from(time.as_nanos()) / 1_000_000_000;
    Bytes(four_digits(u64::try_from(bits / 8).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_four_digits() {
        let values = [0, 7, 9999, 12_344, 12_345, 99_999];
        assert_eq!(values.map(four_digits), [0, 7, 9999, 12_340, 12_350, 100_000]);
        assert!(four_digits(u64::MAX) >= u64::MAX / 1000 * 999);
    }
}
