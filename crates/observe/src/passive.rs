//! What the packets of a flow tell of it, seen from outside: where nobody can ask the endpoints, as a simulation can.
//!
//! Told of each packet as it leaves its host and as it reaches the other, or is dropped, a [`PassiveAnalyzer`] gives it back as a
//! [`Packet`] of its flow, for all that records packets, and counts what a [`FlowRow`] counts. On a simulation it counts
//! what the endpoints themselves count, but for what the tests beside it name.

mod acks;
mod round_trips;
mod stream;

use crate::drops::drops_by_cause;
use acks::Acks;
use farpath_path::{Direction, DropCounts, PerDirection};
use farpath_run::FlowRow;
use farpath_sim::{End, Packet, PacketEvent, Qos};
use farpath_tcp::{Ecn, Flags, Segment};
use farpath_units::{Duration, DurationHistogram, Instant};
use round_trips::RoundTrips;
use std::collections::HashMap;
pub use stream::Stream;

/// How a flow is known by its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPorts {
    /// The way of its data over the path.
    pub direction: Direction,
    /// Port of the data sender.
    pub sender: u16,
    /// Port of the data receiver.
    pub receiver: u16,
}

/// A packet at one end of the path, or dropped on it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// When something happened to it.
    pub at: Instant,
    /// What.
    pub event: PacketEvent,
    /// Which way it goes.
    pub direction: Direction,
    /// Its number among the packets that go this way, or that its host sends. A copy has its original's.
    pub number: u64,
    /// Source and destination port.
    pub ports: [u16; 2],
    /// Its TTL, or hop limit.
    pub ttl: u8,
    /// What it carries.
    pub segment: &'a Segment,
}

/// Counts of one flow's packets. Those of the endpoints' are as RFCs define them, and as the simulator's endpoints count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments with payload that the data sender sent, retransmissions included.
    pub data_segments: u64,
    /// Payload bytes of these.
    pub data_bytes: u64,
    /// Of these segments, those that begin with payload that had been sent before.
    pub retransmissions: u64,
    /// Of the retransmissions, those that arrived when the data receiver's host had taken all their payload already.
    pub spurious_retransmissions: u64,
    /// Duplicate ACKs that reached the data sender: with SACK those that report something new, without it those of
    /// RFC 5681 §2.
    pub dup_acks: u64,
    /// Segments without payload, SYN, FIN or RST that the data receiver sent.
    pub pure_acks: u64,
    /// SYNs sent.
    pub syns: u64,
    /// SYN/ACKs sent.
    pub synacks: u64,
    /// Packets with a mark of congestion that reached the data receiver.
    pub ecn_marks: u64,
    /// Packets dropped; `forward` is the data's direction.
    pub drops: PerDirection<DropCounts>,
}

/// Watches the packets of flows.
#[derive(Debug)]
pub struct PassiveAnalyzer {
    /// Flow and sending end by direction, source and destination port.
    ends: HashMap<(Direction, [u16; 2]), (u32, End)>,
    flows: Vec<PassiveFlow>,
}

impl PassiveAnalyzer {
    /// Watches these flows, numbered in this order.
    pub fn new(flows: impl IntoIterator<Item = FlowPorts>) -> PassiveAnalyzer {
        let mut analyzer = PassiveAnalyzer { ends: HashMap::new(), flows: Vec::new() };
        for (number, ports) in (0..).zip(flows) {
            let FlowPorts { direction, sender, receiver } = ports;
            analyzer.ends.insert((direction, [sender, receiver]), (number, End::Sender));
            analyzer.ends.insert((direction.opposite(), [receiver, sender]), (number, End::Receiver));
            analyzer.flows.push(PassiveFlow::default());
        }
        analyzer
    }

    /// Takes note of a packet, and says whose it is; `None` where it is no flow's. Events come in the order of time,
    /// but for drops, which may be told ahead.
    pub fn packet(&mut self, seen: Seen<'_>) -> Option<Packet> {
        let &(number, from) = self.ends.get(&(seen.direction, seen.ports))?;
        let retransmission = self.flows[number as usize].packet(from, &seen);
        let Seen { number: place, ttl, segment, .. } = seen;
        let qos = Qos::default();
        let resent_by = None;
        Some(Packet {
            flow: number,
            from,
            number: place,
            retransmission,
            resent_by,
            ttl,
            // No packet says it.
            queueing: Duration::ZERO,
            segment: *segment,
            qos,
        })
    }

    /// What its packets have told of a flow so far.
    pub fn flow(&self, number: u32) -> &PassiveFlow {
        &self.flows[number as usize]
    }
}

/// One flow, by its packets.
#[derive(Debug, Default)]
pub struct PassiveFlow {
    /// What the data sender sends.
    data: Stream,
    /// What the data receiver sends: a request, and otherwise ACKs.
    reverse: Stream,
    /// What the data sender is told of `data`.
    acks: Acks,
    round_trips: RoundTrips,
    counts: Counts,
}

impl PassiveFlow {
    /// Takes note of a packet that `from` sends: whether its payload had been sent before.
    pub fn packet(&mut self, from: End, seen: &Seen<'_>) -> bool {
        match seen.event {
            PacketEvent::Sent => self.sent(from, seen),
            PacketEvent::Received => self.received(from, seen),
            PacketEvent::Dropped(cause) => {
                let towards = if from == End::Sender { Direction::Forward } else { Direction::Reverse };
                self.counts.drops[towards].add(cause);
                self.stream(from).is_retransmission(seen.number)
            }
        }
    }

    /// What the data sender has sent.
    pub fn data(&self) -> &Stream {
        &self.data
    }

    /// The round trips that the data sender could see.
    pub fn rtts(&self) -> &DurationHistogram {
        self.round_trips.times()
    }

    /// What has been counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    fn stream(&mut self, from: End) -> &mut Stream {
        match from {
            End::Sender => &mut self.data,
            End::Receiver => &mut self.reverse,
        }
    }

    /// Shift of the window field in what `from` sends (RFC 7323 §2.2): both must have said one, and a SYN has none.
    fn shift(&self, from: End, segment: &Segment) -> u8 {
        let (own, peer) = match from {
            End::Sender => (&self.data, &self.reverse),
            End::Receiver => (&self.reverse, &self.data),
        };
        match (own.scale(), peer.scale()) {
            (Some(shift), Some(_)) if !segment.flags.contains(Flags::SYN) => shift,
            _ => 0,
        }
    }

    /// Whether its payload had been sent before.
    fn sent(&mut self, from: End, seen: &Seen<'_>) -> bool {
        let segment = seen.segment;
        let payload = segment.len > 0;
        if segment.flags.contains(Flags::SYN) {
            let count = if segment.flags.contains(Flags::ACK) {
                &mut self.counts.synacks
            } else {
                &mut self.counts.syns
            };
            *count += 1;
        }
        let sent_before = self.data.end();
        let again = self.stream(from).sent(seen.number, segment);
        if from == End::Sender && segment.seq_len() > 0 {
            // Nothing else that takes up sequence space leaves the end where it was.
            let again = self.data.end() == sent_before;
            self.round_trips.sent(seen.at, self.data.end(), again);
        }
        let window = u64::from(segment.window) << self.shift(from, segment);
        self.stream(from.peer()).announced(segment, window);
        match from {
            End::Sender if payload => {
                self.counts.data_segments += 1;
                self.counts.data_bytes += u64::from(segment.len);
                self.counts.retransmissions += u64::from(again);
                self.acks.sent(sent_before);
            }
            End::Receiver if !payload && !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST) => {
                self.counts.pure_acks += 1;
            }
            _ => {}
        }
        again
    }

    /// Whether it was a retransmission.
    fn received(&mut self, from: End, seen: &Seen<'_>) -> bool {
        let segment = seen.segment;
        match from {
            End::Sender => self.counts.ecn_marks += u64::from(segment.ecn == Ecn::Ce),
            End::Receiver => {
                let window = u64::from(segment.window) << self.shift(from, segment);
                let duplicate = self.acks.received(segment, window, &self.data, &self.reverse);
                self.counts.dup_acks += u64::from(duplicate);
                self.round_trips.acked(seen.at, self.acks.una());
            }
        }
        let arrival = self.stream(from).received(seen.number, segment);
        if from == End::Sender {
            self.counts.spurious_retransmissions += u64::from(arrival.spurious);
        }
        arrival.retransmission
    }
}

impl Counts {
    /// Enters them into the row of a flow whose `transfer_time` and `bytes_read` are known.
    pub fn enter(&self, row: &mut FlowRow) {
        let count = |count: u64| Some(count as f64);
        row.data_segments = count(self.data_segments);
        row.retransmissions = count(self.retransmissions);
        row.spurious_retransmissions = count(self.spurious_retransmissions);
        row.dup_acks = count(self.dup_acks);
        row.pure_acks = count(self.pure_acks);
        row.syns = count(self.syns);
        row.synacks = count(self.synacks);
        row.ecn_marks = count(self.ecn_marks);
        row.drops_data_direction = count(self.drops.forward.total());
        row.drops_ack_direction = count(self.drops.reverse.total());
        row.drops_by_cause = drops_by_cause(&self.drops);
        let seconds = row.transfer_time.filter(|time| !time.is_zero()).map(Duration::as_secs_f64);
        row.throughput_bit_per_s = seconds.map(|seconds| self.data_bytes as f64 * 8.0 / seconds);
        row.efficiency = (self.data_bytes > 0).then(|| row.bytes_read.0 as f64 / self.data_bytes as f64);
    }
}

#[cfg(test)]
mod tests;
