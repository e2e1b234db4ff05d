//! A path as plain data: what an experiment file says, before anything is built from it.

use crate::RadioSpec;
use crate::link::framed;
use crate::loss::{packet_error_rate, stationary_bad};
use farpath_path::{Direction, PacketView, PerDirection};
use farpath_tia1039::router::RouterSettings;
use farpath_units::{Ber, Bytes, Duration, Instant, Probability, Rate};

/// How long a drop-tail queue may get. What is being sent does not count, only what waits.
///
/// A limit of zero is a link without a queue: it takes a packet only while it is idle. An idle link
/// takes any packet, also one that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// As long as it takes.
    Unlimited,
    /// So many bytes of IP packets.
    Bytes(Bytes),
    /// So many packets.
    Packets(u64),
}

/// From when on a queue marks the packets that it takes, where they are ECN-capable; the others it just takes, until
/// its limit drops them.
///
/// The step of RFC 8257 §3.1, of `ce_threshold` in Linux: by the queue at the moment at which a packet joins it, the
/// packet included, what is being sent not. There is no average and no chance in it.
// RFC 3168 §5 lets a mark stand where a packet would be dropped as a sign of congestion. Before its limit this queue
// drops nothing, so that what cannot be marked passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkThreshold {
    /// It drops and never marks.
    Never,
    /// Where more than so many bytes of IP packets wait.
    Bytes(Bytes),
    /// Where more than so many packets wait.
    Packets(u64),
    /// Where the packet will wait longer than this.
    Delay(Duration),
}

/// Which packets a counting loss process counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketCount {
    /// Every packet.
    All,
    /// Only those that carry TCP payload; the others always pass.
    Data,
}

/// What a packet waits for where neither distance nor a queue keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// Its turn on a shared medium: a slot, a grant, a poll.
    MediumAccess,
    /// Routers, gateways, ciphers.
    Processing,
    /// Interleaver, forward error correction, frames of speech or video.
    Codec,
}

impl WaitKind {
    /// All of them, in the order of their declaration.
    pub const ALL: [WaitKind; 3] = [WaitKind::MediumAccess, WaitKind::Processing, WaitKind::Codec];

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            WaitKind::MediumAccess => "medium-access",
            WaitKind::Processing => "processing",
            WaitKind::Codec => "codec",
        }
    }
}

/// One element of a path: a name that seeds its generators and its keys, and what it is.
///
/// A list of them is a place-by-place picture of the path from the data sender on: reverse packets meet
/// the elements in the opposite order.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementSpec {
    /// Unique within the path.
    pub name: String,
    /// What it is, with its parameters.
    pub kind: ElementKind,
}

/// The kinds of elements. Where a parameter is [`PerDirection`] the two directions may differ.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElementKind {
    /// Propagation: every packet leaves so much later.
    Delay {
        /// One-way.
        delay: PerDirection<Duration>,
    },
    /// A wait that is not propagation: every packet leaves so much later.
    Wait {
        /// For what.
        what: WaitKind,
        /// One-way.
        delay: PerDirection<Duration>,
    },
    /// Routers, each of which takes one off the TTL. They take no time: a wait beside them does.
    Hops {
        /// How many.
        routers: PerDirection<u32>,
    },
    /// A serial link: serialization at its rate behind a drop-tail queue.
    Link {
        /// Bits on the wire, framing included.
        rate: PerDirection<Rate>,
        /// Drop-tail.
        queue: PerDirection<QueueLimit>,
        /// ECN.
        mark: PerDirection<MarkThreshold>,
        /// Framing per packet, on top of the IP packet. Ethernet: 38 B (preamble 8, header 14, FCS 4, gap 12).
        overhead: Bytes,
        /// Shortest IP packet that is sent without padding. Ethernet: 46 B.
        min_packet: Bytes,
    },
    /// A link behind an explicit-rate flow router (TIA-1039), one for each direction: it grants rates on the line,
    /// polices them, and sends guarantees first and flows in turn. See [`farpath_tia1039::router`].
    FlowRouter(Box<RouterLines>),
    /// Packet radios, one behind the other, that take turns on one channel for both directions.
    Radio(Box<RadioSpec>),
    /// Independent loss: each packet is dropped with this probability.
    Bernoulli {
        /// Per packet.
        loss_rate: PerDirection<Probability>,
        /// What is exposed to it.
        count: PacketCount,
    },
    /// Evenly spaced loss: every `every`-th packet is dropped, the first of them after `phase` others.
    /// It is what closed forms with a fixed distance between losses assume (Mathis et al. 1997).
    EvenlySpaced {
        /// One drop in so many packets; `None` drops nothing.
        every: PerDirection<Option<u64>>,
        /// How many packets pass before the first drop; `every - 1` makes it the `every`-th packet. With
        /// `None` each direction draws it from `[0, every)`, so that a set of seeds covers the phases.
        phase: Option<u64>,
        /// What is counted.
        count: PacketCount,
    },
    /// Drops the packets with these numbers, counted from 1 in each direction.
    Listed {
        /// In rising order.
        packets: PerDirection<Vec<u64>>,
        /// What is counted.
        count: PacketCount,
    },
    /// Two-state burst loss (Gilbert 1960, Elliott 1963). The state moves once per packet, before its
    /// fate is drawn; it starts from the stationary distribution, so short flows see the same mean.
    GilbertElliott {
        /// Probability per packet of going from the good state to the bad one.
        good_to_bad: Probability,
        /// Probability per packet of going back.
        bad_to_good: Probability,
        /// Loss rate in the good state.
        loss_good: Probability,
        /// Loss rate in the bad state.
        loss_bad: Probability,
        /// Where it acts.
        active: PerDirection<bool>,
    },
    /// Independent bit errors: a packet of n bits is dropped with probability `1 - (1 - BER)^n`. It has
    /// cost the time of every link that it passed before.
    BitErrors {
        /// Per bit.
        ber: PerDirection<Ber>,
        /// Bytes exposed per packet on top of the IP packet (header and FCS of the frame).
        overhead: Bytes,
        /// Use `BER * n` (at most 1) in place of the exact form, as many papers do.
        linear: bool,
    },
    /// Holds back a share of the packets, so that later ones overtake them (RFC 4737).
    Reorder {
        /// Share of the packets that are held back.
        share: PerDirection<Probability>,
        /// For how long.
        extra_delay: Duration,
    },
    /// Sends a share of the packets twice, the copy right behind (RFC 5560).
    Duplicate {
        /// Share of the packets that are sent twice.
        share: PerDirection<Probability>,
    },
}

/// One-way delay of a lone packet of `size` (IP length): propagation, serialization and access to a free channel, no
/// queueing, not held back by reordering. Saturates at [`Duration::MAX`].
pub fn base_delay(specs: &[ElementSpec], direction: Direction, size: Bytes) -> Duration {
    let of = |spec: &ElementSpec| match &spec.kind {
        ElementKind::Delay { delay } | ElementKind::Wait { delay, .. } => delay[direction],
        ElementKind::Link { rate, overhead, min_packet, .. } => {
            rate[direction].time_to_send(framed(size, *overhead, *min_packet))
        }
        ElementKind::FlowRouter(lines) => {
            lines.rate[direction].time_to_send(framed(size, lines.overhead, lines.min_packet))
        }
        ElementKind::Radio(radio) => radio.lone_delay(size),
        _ => Duration::ZERO,
    };
    specs.iter().map(of).sum()
}

/// The lines of a flow router, and what it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterLines {
    /// Bits on the wire, framing included.
    pub rate: PerDirection<Rate>,
    /// Other rates from later moments on, in the order of their times.
    pub changes: PerDirection<Vec<RateChange>>,
    /// Drop-tail: what each flow's queue may hold, and that of best effort. Guarantees are bounded by policing.
    pub queue: PerDirection<QueueLimit>,
    /// Framing per packet, on top of the IP packet.
    pub overhead: Bytes,
    /// Shortest IP packet that is sent without padding.
    pub min_packet: Bytes,
    /// How the line is shared. Grants count IP packets without framing: a line's capacity for them is that for full packets.
    pub settings: PerDirection<RouterSettings>,
}

/// From some moment on a line has another rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateChange {
    /// When.
    pub at: Instant,
    /// Bits on the wire.
    pub rate: Rate,
}

/// Routers that a packet passes one way.
pub fn routers(specs: &[ElementSpec], direction: Direction) -> u32 {
    let of = |spec: &ElementSpec| match &spec.kind {
        ElementKind::Hops { routers } => routers[direction],
        _ => 0,
    };
    specs.iter().map(of).fold(0, u32::saturating_add)
}

impl ElementSpec {
    /// The share of packets like `packet` that the element drops in the long run, for predictions. Full queues and
    /// listed packets do not count.
    pub fn loss_rate(&self, direction: Direction, packet: PacketView) -> Probability {
        match &self.kind {
            ElementKind::Bernoulli { count: PacketCount::Data, .. }
            | ElementKind::EvenlySpaced { count: PacketCount::Data, .. }
                if !packet.carries_data =>
            {
                Probability::ZERO
            }
            ElementKind::Bernoulli { loss_rate, .. } => loss_rate[direction],
            ElementKind::EvenlySpaced { every, .. } => {
                let share = every[direction].map_or(0.0, |every| 1.0 / every as f64);
                Probability::new(share).unwrap_or(Probability::ONE)
            }
            ElementKind::BitErrors { ber, overhead, linear } => {
                packet_error_rate(ber[direction], packet.size + *overhead, *linear)
            }
            ElementKind::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, active }
                if active[direction] =>
            {
                let bad = stationary_bad(*good_to_bad, *bad_to_good).fraction();
                let mean = (1.0 - bad) * loss_good.fraction() + bad * loss_bad.fraction();
                Probability::new(mean).unwrap_or(Probability::ONE)
            }
            _ => Probability::ZERO,
        }
    }
}
