//! What a driver is told, and the buffers that go with a rate.

use crate::SOMEBODY;
use farpath_tcp::cc::Pace;
use farpath_tcp::config::{ExplicitRateConfig, RateKind};
use farpath_tia1039::{
    BurstTolerance, Priority, QosVersion, RateType, RateUnit, RateWord, Rounding, Source, Structure,
};
use farpath_units::{Bytes, Duration, Rate};

/// IPv4, TCP and timestamps, bytes.
const HEADERS: u64 = 52;

/// How a rate is asked for, and when a grant is no longer believed: the same for an end in simulation and for the kernel's driver.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSettings {
    /// What kind of rate is asked for. Of a composite one the wanted rate is the share.
    pub rate_type: RateType,
    /// Who is preempted last.
    pub preemption: Priority,
    /// Who waits least.
    pub delay: Priority,
    /// For how long the rate may be exceeded: bursts are kept below it.
    pub burst: BurstTolerance,
    /// What M is.
    pub version: QosVersion,
    /// So many routers must have marked a grant for it to be one; version 1 tells one from none.
    pub min_routers: u8,
    /// Data packets after which the rate is asked for again; a round trip must have passed as well.
    pub packets_between: u32,
    /// Loss, in packets of a thousand, above which the grant is given up.
    pub loss_per_mille: u32,
    /// A queue of so much, or of a quarter of the smallest RTT where that is more, for three round trips with losses gives it up as
    /// well.
    pub queue_delay: Duration,
}

impl Default for RequestSettings {
    /// As the standard and its paper say.
    fn default() -> RequestSettings {
        RequestSettings {
            rate_type: RateType::Available,
            preemption: Priority::MIDDLE,
            delay: Priority::MIDDLE,
            burst: BurstTolerance::default(),
            version: QosVersion::Marking,
            min_routers: 1,
            packets_between: 128,
            loss_per_mille: 100,
            queue_delay: Duration::from_millis(25),
        }
    }
}

/// How an end asks, and when it no longer believes in its grant.
#[derive(Debug, Clone, PartialEq)]
pub struct DriverSettings {
    /// The most that is asked for: what the interface or the application can take. Bits of IP packets.
    pub wanted: Rate,
    /// How it is asked for.
    pub request: RequestSettings,
    /// What is to be guaranteed beside it, of a composite rate.
    pub guaranteed: Option<Rate>,
    /// What the rate code counts.
    pub unit: RateUnit,
    /// The window that the peer is known to have before it can say so: a SYN/ACK's is not scaled. Both ends have to be set up
    /// for it.
    pub early_window: Option<Bytes>,
    /// The peer as this end sees it: answers name it.
    pub peer: Source,
}

impl DriverSettings {
    /// Asks for `wanted`, else as the standard and its paper say.
    pub fn new(wanted: Rate) -> DriverSettings {
        DriverSettings {
            wanted,
            request: RequestSettings::default(),
            guaranteed: None,
            unit: RateUnit::default(),
            early_window: None,
            peer: SOMEBODY,
        }
    }

    /// Asks as a stack says; `None` of one that does not.
    pub fn from_config(config: &ExplicitRateConfig) -> Option<DriverSettings> {
        let level = |level| Priority::new(level).unwrap_or(Priority::HIGHEST);
        let request = RequestSettings {
            rate_type: rate_type(config.kind),
            preemption: level(config.preemption),
            delay: level(config.delay),
            loss_per_mille: config.loss_limit_per_mille,
            min_routers: config.routers,
            version: QosVersion::telling(config.routers),
            ..RequestSettings::default()
        };
        Some(DriverSettings { request, guaranteed: config.guaranteed, ..DriverSettings::new(config.wanted?) })
    }

    /// What is asked for.
    pub(crate) fn request_structure(&self) -> Structure {
        let word = |rate: Rate| self.unit.encode(rate.bit_per_s(), Rounding::Up);
        let (available, guaranteed) = match self.request.rate_type {
            RateType::Available => (word(self.wanted), RateWord::ZERO),
            RateType::Composite => (word(self.wanted), self.guaranteed.map_or(RateWord::ZERO, word)),
            RateType::Maximum | RateType::Guaranteed => (RateWord::ZERO, word(self.wanted)),
        };
        Structure {
            rate_type: self.request.rate_type,
            available,
            guaranteed,
            preemption: self.request.preemption,
            delay: self.request.delay,
            burst: self.request.burst,
            version: self.request.version,
            ..Structure::default()
        }
    }

    /// How segments leave at a rate of IP packets: headers count, bursts stay within the tolerance, and nothing is unpaced.
    pub(crate) fn pace(&self, rate: Rate) -> Pace {
        let bytes_per_s = (rate.bit_per_s() / 8).max(1);
        let tolerated =
            u128::from(bytes_per_s) * u128::from(self.request.burst.time().as_nanos()) / 1_000_000_000;
        // A router's bucket is two full packets deep at the least; half of it is for what queues before it gather.
        let most_burst = u64::try_from(tolerated).unwrap_or(u64::MAX) / 2 / 1500;
        Pace { bytes_per_s, overhead: HEADERS, least_burst: 1, most_burst: most_burst.max(1), unpaced: 0 }
    }
}

/// The code of a kind of rate.
fn rate_type(kind: RateKind) -> RateType {
    match kind {
        RateKind::Available => RateType::Available,
        RateKind::Composite => RateType::Composite,
        RateKind::Maximum => RateType::Maximum,
        RateKind::Guaranteed => RateType::Guaranteed,
    }
}

/// Receive and send buffer that keep `rate` over `rtt` while losses of `per_mille` packets in a thousand are repaired:
/// `rate * RTT (1 + ln N / ln (1/p))`, `N` packets in flight.
pub fn window_for(rate: Rate, rtt: Duration, per_mille: u32) -> Bytes {
    let product = u128::from(rate.bit_per_s()) * u128::from(rtt.as_nanos()) / 8_000_000_000;
    let packets = u64::try_from(product / 1448).unwrap_or(u64::MAX).max(1);
    // Rounds of repair: how often a share of p of the packets has to be taken until less than one is left.
    let mut rounds = 0;
    let mut left = packets.saturating_mul(1000);
    let share = u64::from(per_mille.min(900));
    while share > 0 && left > 1000 {
        left = u64::try_from(u128::from(left) * u128::from(share) / 1000).unwrap_or(u64::MAX);
        rounds += 1;
    }
    let window = product.saturating_mul(1 + rounds);
    Bytes(u64::try_from(window).unwrap_or(u64::MAX))
}
