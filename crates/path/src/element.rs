//! The two shapes of a path element, and what passes between it and its caller.

use crate::{ChannelTime, ElementCounters, LinkCounters};
use core::fmt;
use core::ops::{Index, IndexMut};
use farpath_units::{Bytes, Duration, Instant};

/// Which way a packet goes. `Forward` is from the data sender to the data receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the data sender to the data receiver.
    Forward,
    /// The ACK direction.
    Reverse,
}

impl Direction {
    /// Both, forward first.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// The other way.
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }

    /// `forward` or `reverse`, as files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One value for each direction, indexed by [`Direction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerDirection<T> {
    /// For packets from the data sender to the data receiver.
    pub forward: T,
    /// For packets in the ACK direction.
    pub reverse: T,
}

impl<T> PerDirection<T> {
    /// The same value both ways.
    pub fn both(value: T) -> PerDirection<T>
    where
        T: Clone,
    {
        PerDirection { forward: value.clone(), reverse: value }
    }

    /// A value made for each direction.
    pub fn from_fn(mut make: impl FnMut(Direction) -> T) -> PerDirection<T> {
        PerDirection { forward: make(Direction::Forward), reverse: make(Direction::Reverse) }
    }

    /// What `change` makes of each of the two.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection { forward: change(self.forward), reverse: change(self.reverse) }
    }
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }
}

impl<T> IndexMut<Direction> for PerDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Reverse => &mut self.reverse,
        }
    }
}

/// A packet as a path sees it: a simulated segment, or the bytes of an IP packet.
pub trait PathPacket {
    /// Length of the IP packet, headers included, link framing excluded.
    fn wire_size(&self) -> Bytes;
    /// Whether it carries TCP payload, for elements that count data packets only.
    fn carries_data(&self) -> bool;
    /// Sets CE where the packet is ECN-capable and has no mark yet (RFC 3168 §5); whether it did.
    fn mark_ce(&mut self) -> bool {
        false
    }
    /// Its ECN field (RFC 3168 §5): 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE.
    fn ecn(&self) -> u8 {
        0
    }
    /// Whether it is ECN-capable, with a mark or without.
    fn is_ecn_capable(&self) -> bool {
        self.ecn() != 0
    }
    /// What tells its flow from others in its direction, for queues that keep flows apart. Packets without a flow are one.
    fn flow_hash(&self) -> u64 {
        0
    }
    /// Adds the time that it waited in a queue, before what came out of that queue began to be sent. A packet that keeps no account
    /// of it does nothing.
    fn add_queueing(&mut self, _wait: Duration) {}
    /// Takes one off the TTL for each of so many routers; whether the packet is alive behind the last of them. A router
    /// discards what it brings to zero (RFC 791 §3.2, RFC 1812 §5.3.1). What has no TTL passes.
    fn pass_routers(&mut self, _routers: u32) -> bool {
        true
    }
}

/// What a one-way element needs to know of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketView {
    /// Length of the IP packet.
    pub size: Bytes,
    /// Whether it carries TCP payload.
    pub carries_data: bool,
}

impl<P: PathPacket> From<&P> for PacketView {
    fn from(packet: &P) -> PacketView {
        PacketView { size: packet.wire_size(), carries_data: packet.carries_data() }
    }
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// A loss process chose it.
    Loss,
    /// At least one of its bits arrived wrong.
    BitErrors,
    /// The queue was full.
    QueueOverflow,
    /// Its flow has sent more than a flow router granted it.
    Policing,
    /// A router brought its TTL to zero.
    Ttl,
    /// It was longer than what a link takes.
    Mtu,
    /// A link sent it as often as it may, and it arrived damaged each time.
    LinkRetries,
    /// A radio that could get rid of nothing gave up.
    Stalled,
    /// There was no contact.
    Outage,
    /// There was no contact, and who sent it is told that there is no way (ICMP "network unreachable").
    Unreachable,
    /// A managed queue chose it before the queue was full.
    Aqm,
}

impl DropCause {
    /// All of them, in the order of their declaration.
    pub const ALL: [DropCause; 11] = [
        DropCause::Loss,
        DropCause::BitErrors,
        DropCause::QueueOverflow,
        DropCause::Policing,
        DropCause::Ttl,
        DropCause::Mtu,
        DropCause::LinkRetries,
        DropCause::Stalled,
        DropCause::Outage,
        DropCause::Unreachable,
        DropCause::Aqm,
    ];

    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            DropCause::Loss => "loss",
            DropCause::BitErrors => "bit-errors",
            DropCause::QueueOverflow => "queue-overflow",
            DropCause::Policing => "policing",
            DropCause::Ttl => "ttl",
            DropCause::Mtu => "mtu",
            DropCause::LinkRetries => "link-retries",
            DropCause::Stalled => "stalled",
            DropCause::Outage => "outage",
            DropCause::Unreachable => "unreachable",
            DropCause::Aqm => "aqm",
        }
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an element with arithmetic in place of a store does with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It leaves at this time, not before it came.
    Depart(Instant),
    /// It leaves at this time, after so much of it in a queue.
    Queue(Instant, Duration),
    /// The same, and with a mark of congestion where it can carry one.
    Mark(Instant, Duration),
    /// It passes so many routers at this time, which not every packet survives.
    Route(Instant, u32),
    /// It leaves twice.
    Duplicate(Instant, Instant),
    /// It is gone.
    Drop(DropCause),
}

/// An element whose answer is known when the packet comes in: delay, FIFO link, loss, reordering.
///
/// It stores no packet. A chain of them is run in one go, so that a packet costs one event however
/// many elements it passes. Elements that must look at later events first (a half-duplex radio, a
/// flow router) are [`PathElement`]s instead.
pub trait Transit {
    /// Decides about a packet that arrives at `now`, which never goes backwards within one direction.
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate;

    /// Whether each packet of `direction` leaves at most once, and never before one that came earlier.
    fn keeps_order(&self, _direction: Direction) -> bool {
        true
    }

    /// How long each packet takes, where that is all the element does and never changes: a stage then adds it up with its neighbours'
    /// and asks none of them.
    fn fixed_delay(&self) -> Option<PerDirection<Duration>> {
        None
    }

    /// IP bytes waiting just after the last packet was offered, without the one being sent; `None` for
    /// an element without a queue.
    fn backlog(&self, _direction: Direction) -> Option<Bytes> {
        None
    }

    /// What a link has counted; `None` for any other element.
    fn link_counters(&self, _direction: Direction) -> Option<LinkCounters> {
        None
    }
}

/// A [`Transit`] element in a box.
pub type BoxedTransit = Box<dyn Transit + Send>;

/// What became of an offered packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<P> {
    /// The element has it; it comes out of [`PathElement::take`].
    Accepted,
    /// It is gone. `at` is when, which in a chain can be later than the offer.
    Dropped {
        /// When.
        at: Instant,
        /// Why.
        cause: DropCause,
        /// The packet, for the trace.
        packet: P,
    },
}

/// A packet that leaves an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure<P> {
    /// When it was due: not the time of the call, so that a late wake-up never accumulates along a path.
    pub due: Instant,
    /// Which way it goes.
    pub direction: Direction,
    /// The packet.
    pub packet: P,
    /// `None` where it goes on; the cause where it was lost inside the element.
    pub dropped: Option<DropCause>,
}

/// A packet with QoS Structures as a flow router lets it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal<P> {
    /// When the router looked at it; that it leaves can be later.
    pub at: Instant,
    /// Which way it goes.
    pub direction: Direction,
    /// Name of the router.
    pub element: String,
    /// The packet, its structures as the router leaves them.
    pub packet: P,
}

/// One piece of a path, both directions. It cannot tell virtual time from real time.
///
/// Every packet that is offered, and every copy that is made of one, comes out once: as a
/// [`Verdict::Dropped`] or as a [`Departure`], on its way or dropped.
pub trait PathElement<P> {
    /// Offers a packet at `now`, which never goes backwards. A drop names its cause.
    fn offer(&mut self, now: Instant, direction: Direction, packet: P) -> Verdict<P>;

    /// Offers a copy of `packet`: `None` if the element has it, else when and why it was dropped. `packet` is then as it was at that
    /// time, and else as it may be anywhere on its way. Packets are long: an element that copies it to where it is held has saved a
    /// copy.
    fn offer_copy(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &mut P,
    ) -> Option<(Instant, DropCause)>
    where
        P: Clone,
    {
        match self.offer(now, direction, packet.clone()) {
            Verdict::Accepted => None,
            Verdict::Dropped { at, cause, packet: dropped } => {
                *packet = dropped;
                Some((at, cause))
            }
        }
    }

    /// When to call [`take`](PathElement::take); `None` while empty. Asking changes nothing.
    ///
    /// In a chain it can be the time of a hop from one element to the next. Then `take` moves the packet
    /// on and may return nothing; the time to call it is a later one from there on.
    fn next_departure(&self) -> Option<Instant>;

    /// The packet due by `now`, stamped with the time it was due, not the time of the call. Call it
    /// until it returns nothing.
    fn take(&mut self, now: Instant) -> Option<Departure<P>>;

    /// Packets inside.
    fn held(&self) -> usize;

    /// Makes no more copies of packets: there are too many.
    fn stop_duplicating(&mut self) {}

    /// IP bytes waiting in the longest queue of `direction`, as of the last offer; `None` without a queue.
    fn backlog(&self, _direction: Direction) -> Option<Bytes> {
        None
    }

    /// What it has counted, by element and direction.
    fn counters(&self) -> Vec<ElementCounters> {
        Vec::new()
    }

    /// What the channels of its radios have been used for until `now`, without exchanges that are under way.
    fn air(&self, _now: Instant) -> Vec<ChannelTime> {
        Vec::new()
    }

    /// Has every [`Signal`] kept from now on, to be taken. Changes nothing else.
    fn keep_signals(&mut self) {}

    /// What is kept of signals, in the order of time, and is so no more.
    fn take_signals(&mut self) -> Vec<Signal<P>> {
        Vec::new()
    }
}

/// A [`PathElement`] in a box.
pub type BoxedElement<P> = Box<dyn PathElement<P> + Send>;
