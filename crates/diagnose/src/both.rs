//! Both sides of a connection: what was lost on the way, and how long it took, packet by packet.
//!
//! A packet is known again at the other side by its last byte of data, or, without data, by what it acknowledges. Of several transmissions of
//! a byte the one that arrived is the latest that the path's shortest delay allows. Of the clocks it is assumed that their speeds differ by as much
//! all the time, which is told where both ways show it; where delays are told for each way, the shortest ones are taken to be equal.

mod drift;

use crate::TcpPacket;
use farpath_units::{Duration, DurationHistogram};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Packets of a connection that are held of each side; later ones are not looked at.
pub const MAX_PACKETS: usize = 4_000_000;

/// A packet with data as one side saw it: when, and its bytes as positions.
#[derive(Debug, Clone, Copy)]
struct Data {
    time_ns: u64,
    from: u64,
    to: u64,
}

/// What an acknowledgment says, by which it is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct AckKey {
    ack: u64,
    window: u16,
    sacked_to: Option<u32>,
}

/// What one side saw of a connection.
#[derive(Debug)]
pub struct Side {
    sender: SocketAddr,
    last: Option<(u32, u64)>,
    data: Vec<Data>,
    acks: Vec<(u64, AckKey)>,
    packets: usize,
    is_cut: bool,
    /// Of its first and last packet.
    span_ns: Option<(u64, u64)>,
}

impl Side {
    /// Of a connection in which `sender` sends the data.
    pub fn new(sender: SocketAddr) -> Side {
        Side {
            sender,
            last: None,
            data: Vec::new(),
            acks: Vec::new(),
            packets: 0,
            is_cut: false,
            span_ns: None,
        }
    }

    /// Takes a packet of the connection; packets come in the order of their times.
    pub fn packet(&mut self, time_ns: u64, packet: &TcpPacket) {
        if self.packets >= MAX_PACKETS {
            self.is_cut = true;
            return;
        }
        self.span_ns = Some((self.span_ns.map_or(time_ns, |span| span.0), time_ns));
        if packet.syn {
            if packet.source == self.sender {
                self.last = Some((packet.seq, u64::from(packet.seq) + (1 << 32)));
            }
            return;
        }
        self.packets += 1;
        if packet.source == self.sender {
            if packet.payload > 0 {
                let from = self.position(packet.seq);
                self.data.push(Data { time_ns, from, to: from + u64::from(packet.payload) });
            }
        } else if let (Some(ack), 0, false) = (packet.ack, packet.payload, packet.fin || packet.rst) {
            let key = AckKey { ack: self.position(ack), window: packet.window, sacked_to: packet.sacked_to };
            self.acks.push((time_ns, key));
        }
    }

    /// Whether what left the other side at `time_ns` of its clock was to arrive while this side was captured.
    fn was_captured(&self, time_ns: u64, least_ns: i64) -> bool {
        let after = |ns| difference(ns, time_ns);
        self.span_ns.is_some_and(|(first, last)| after(first) <= least_ns && after(last) >= least_ns)
    }

    /// Both sides give the same sequence number the same position, where they saw its first 2 GB or the handshake.
    fn position(&mut self, seq: u32) -> u64 {
        let (known, position) = *self.last.get_or_insert((seq, u64::from(seq) + (1 << 32)));
        let position = position.saturating_add_signed(seq.wrapping_sub(known).cast_signed().into());
        if position > self.last.map_or(0, |last| last.1) {
            self.last = Some((seq, position));
        }
        position
    }
}

/// Of one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneWay {
    /// Packets that left while the other side was captured: with data, or acknowledgments without.
    pub packets: u64,
    /// Of these, packets that did not arrive.
    pub lost: u64,
    /// Payload bytes that did not arrive.
    pub bytes_lost: u64,
    /// Packets that arrived behind one that had left later.
    pub reordered: u64,
    /// The shortest delay, s: half of the shortest delays of both ways together.
    pub least_s: f64,
    /// Percentiles of what the delay was above its shortest, s: 50, 95, 99. It does not depend on the clocks.
    pub above_s: [f64; 3],
}

/// What both sides of a connection tell together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BothSides {
    /// By how much the receiver's clock was ahead at its first packet, s, where the shortest delays are equal both ways.
    pub receiver_ahead_s: f64,
    /// By how many millionths the receiver's clock runs faster, where both ways show it. Delays are told without it.
    pub receiver_fast_ppm: Option<f64>,
    /// Data.
    pub forward: OneWay,
    /// Acknowledgments without data.
    pub back: OneWay,
    /// Packets that were sent again, as the sender's side saw them.
    pub sent_again: u64,
    /// Of these, packets whose bytes had arrived before, or arrived by an earlier transmission: spurious.
    pub needless: u64,
    /// Whether there were more packets than are held.
    pub is_cut: bool,
}

/// Puts together what the sender's side and the receiver's saw; `None` where no packet with data and no acknowledgment is in both.
pub fn both_sides(sender: &Side, receiver: &Side) -> Option<BothSides> {
    match drift::drift(&data_alone(sender, receiver), &acks_alone(receiver, sender)) {
        Some(drift) => {
            let told = together(sender, &drift::without_drift(receiver, drift))?;
            Some(BothSides { receiver_fast_ppm: Some(drift * 1e6), ..told })
        }
        None => together(sender, receiver),
    }
}

/// Data that left once and came once: when it left, and how much later it came, by the clocks of both.
fn data_alone(sender: &Side, receiver: &Side) -> Vec<(u64, i64)> {
    let index = ByPosition::new(&sender.data);
    let alone = receiver.data.iter().filter_map(|packet| match index.with(&sender.data, packet.to - 1)[..] {
        [place] => Some((sender.data[place].time_ns, difference(packet.time_ns, sender.data[place].time_ns))),
        _ => None,
    });
    alone.collect()
}

/// The same of acknowledgments without data.
fn acks_alone(receiver: &Side, sender: &Side) -> Vec<(u64, i64)> {
    // When each was seen, if it was once.
    let once = |side: &Side| {
        let mut seen: HashMap<AckKey, Option<u64>> = HashMap::new();
        for (at, key) in &side.acks {
            seen.entry(*key).and_modify(|seen| *seen = None).or_insert(Some(*at));
        }
        seen
    };
    let (left, came) = (once(receiver), once(sender));
    let times = left.into_iter().filter_map(|(key, left)| Some((left?, (*came.get(&key)?)?)));
    let mut alone: Vec<_> = times.map(|(left, came)| (left, difference(came, left))).collect();
    alone.sort_unstable();
    alone
}

/// By clocks that run at one speed.
fn together(sender: &Side, receiver: &Side) -> Option<BothSides> {
    let (forward, arrived_bytes) = data_way(sender, receiver)?;
    let back = ack_way(receiver, sender)?;
    // Of each way the shortest difference of the two clocks' times: delay plus, or less, what they differ by.
    let both = (forward.least_ns + back.least_ns).max(0) as f64 / 1e9;
    let one_way = |way: &Way| OneWay {
        packets: way.packets,
        lost: way.lost,
        bytes_lost: way.bytes_lost,
        reordered: way.reordered,
        least_s: both / 2.0,
        above_s: [50, 95, 99].map(|percent| way.above.percentile(percent).map_or(0.0, Duration::as_secs_f64)),
    };
    let (sent_again, needless) = again(&sender.data, &arrived_bytes);
    Some(BothSides {
        receiver_ahead_s: (forward.least_ns - back.least_ns) as f64 / 2e9,
        receiver_fast_ppm: None,
        forward: one_way(&forward),
        back: one_way(&back),
        sent_again,
        needless,
        is_cut: sender.is_cut || receiver.is_cut,
    })
}

struct Way {
    packets: u64,
    lost: u64,
    bytes_lost: u64,
    reordered: u64,
    least_ns: i64,
    above: DurationHistogram,
    /// Of the transmissions that arrived the one that had left last.
    furthest: usize,
}

impl Way {
    fn new(least_ns: i64) -> Way {
        let above = DurationHistogram::default();
        Way { packets: 0, lost: 0, bytes_lost: 0, reordered: 0, least_ns, above, furthest: 0 }
    }

    /// The transmission with this place arrived, and when it had left.
    fn arrived(&mut self, place: usize, sent_ns: u64, arrived_ns: u64) {
        let above = (difference(arrived_ns, sent_ns) - self.least_ns).max(0).cast_unsigned();
        self.above.record(Duration::from_nanos(above));
        self.reordered += u64::from(place < self.furthest);
        self.furthest = self.furthest.max(place);
    }
}

/// Later less earlier, of two clocks.
fn difference(later_ns: u64, earlier_ns: u64) -> i64 {
    later_ns.wrapping_sub(earlier_ns).cast_signed()
}

/// The latest of some transmissions that can have arrived by then.
fn latest(
    candidates: &[usize],
    time_of: impl Fn(usize) -> u64,
    arrived_ns: u64,
    least_ns: i64,
) -> Option<usize> {
    let possible = |place: &&usize| difference(arrived_ns, time_of(**place)) >= least_ns;
    candidates.iter().rev().find(possible).or(candidates.first()).copied()
}

/// Transmissions by the byte that they begin with.
struct ByPosition {
    starts: BTreeMap<u64, Vec<usize>>,
    longest: u64,
}

/// Transmissions that are looked at for a byte: more often nobody sends one, and whoever makes such a capture is not to make it slow.
const CANDIDATES: usize = 64;

impl ByPosition {
    fn new(data: &[Data]) -> ByPosition {
        let mut starts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, packet) in data.iter().enumerate() {
            let places = starts.entry(packet.from).or_default();
            if places.len() < CANDIDATES {
                places.push(place);
            }
        }
        ByPosition { starts, longest: data.iter().map(|packet| packet.to - packet.from).max().unwrap_or(0) }
    }

    /// Transmissions that carried a byte, in the order in which they left.
    fn with(&self, data: &[Data], byte: u64) -> Vec<usize> {
        let near = self.starts.range(byte.saturating_sub(self.longest)..=byte).rev();
        let mut found: Vec<usize> = near.flat_map(|(_, places)| places).copied().take(CANDIDATES).collect();
        found.retain(|place| data[*place].to > byte);
        found.sort_unstable();
        found
    }
}

/// The data's way, and how many bytes of each transmission arrived.
fn data_way(sender: &Side, receiver: &Side) -> Option<(Way, Vec<u64>)> {
    let (sent, arrived) = (&sender.data, &receiver.data);
    let index = ByPosition::new(sent);
    let alone = arrived.iter().filter_map(|packet| match index.with(sent, packet.to - 1)[..] {
        [place] => Some(difference(packet.time_ns, sent[place].time_ns)),
        _ => None,
    });
    let least_ns = alone.min()?;
    let time_of = |place: usize| sent[place].time_ns;
    let mut arrived_bytes = vec![0; sent.len()];
    let mut way = Way::new(least_ns);
    for packet in arrived {
        // A receiver's card may have joined what left as several packets: from the last byte on back.
        let mut to = packet.to;
        while to > packet.from {
            let candidates = index.with(sent, to - 1);
            let Some(place) = latest(&candidates, time_of, packet.time_ns, least_ns) else { break };
            if to == packet.to {
                way.arrived(place, time_of(place), packet.time_ns);
            }
            let from = sent[place].from.max(packet.from);
            arrived_bytes[place] += to - from;
            to = from;
        }
    }
    for (packet, bytes) in sent.iter().zip(&arrived_bytes) {
        if receiver.was_captured(packet.time_ns, least_ns) {
            let lost = (packet.to - packet.from).saturating_sub(*bytes);
            way.packets += 1;
            way.bytes_lost += lost;
            way.lost += u64::from(lost > 0);
        }
    }
    Some((way, arrived_bytes))
}

/// Acknowledgments that say the same.
#[derive(Default)]
struct Equal {
    places: Vec<usize>,
    /// So many of them had left by the last arrival; of these, those that have not arrived.
    left: usize,
    under_way: Vec<usize>,
}

impl Equal {
    /// Takes the latest one that had left; arrivals come in the order of their times.
    fn latest(&mut self, had_left: impl Fn(usize) -> bool) -> Option<usize> {
        while let Some(place) = self.places.get(self.left).filter(|place| had_left(**place)) {
            self.under_way.push(*place);
            self.left += 1;
        }
        self.under_way.pop()
    }
}

/// The way of acknowledgments without data. Of equal ones each is taken once.
fn ack_way(receiver: &Side, sender: &Side) -> Option<Way> {
    let (sent, arrived) = (&receiver.acks, &sender.acks);
    let mut index: HashMap<AckKey, Equal> = HashMap::new();
    for (place, (_, key)) in sent.iter().enumerate() {
        index.entry(*key).or_default().places.push(place);
    }
    let time_of = |place: usize| sent[place].0;
    let mut came: HashMap<AckKey, Vec<u64>> = HashMap::new();
    for (time, key) in arrived {
        came.entry(*key).or_default().push(*time);
    }
    // Of equal ones that all arrived each is known by its place.
    let known = came.iter().filter_map(|(key, times)| {
        let places =
            index.get(key).map(|equal| &equal.places).filter(|places| places.len() == times.len())?;
        times.iter().zip(places).map(|(time, place)| difference(*time, time_of(*place))).min()
    });
    let least_ns = known.min()?;
    let mut way = Way::new(least_ns);
    let mut has_arrived = vec![false; sent.len()];
    for (time, key) in arrived {
        let Some(place) = index
            .get_mut(key)
            .and_then(|equal| equal.latest(|place| difference(*time, time_of(place)) >= least_ns))
        else {
            continue;
        };
        has_arrived[place] = true;
        way.arrived(place, time_of(place), *time);
    }
    for ((time, _), has_arrived) in sent.iter().zip(has_arrived) {
        if sender.was_captured(*time, least_ns) {
            way.packets += 1;
            way.lost += u64::from(!has_arrived);
        }
    }
    Some(way)
}

/// Packets that were sent again, and of these those whose bytes an earlier transmission brought.
fn again(sent: &[Data], arrived_bytes: &[u64]) -> (u64, u64) {
    let index = ByPosition::new(sent);
    let (mut again, mut needless, mut sent_to) = (0, 0, 0);
    for (place, packet) in sent.iter().enumerate() {
        if packet.to <= sent_to {
            again += 1;
            let earlier = index.with(sent, packet.to - 1).into_iter().take_while(|other| *other < place);
            let arrived = |other: usize| arrived_bytes[other] >= sent[other].to - sent[other].from;
            needless += u64::from(earlier.into_iter().any(arrived));
        }
        sent_to = sent_to.max(packet.to);
    }
    (again, needless)
}

#[cfg(test)]
mod tests;
