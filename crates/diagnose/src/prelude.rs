//! What a capture without the handshake tells of it: where it was made, and by how much windows are scaled.
//!
//! The first packets of such a connection are held until they have been looked at together.

use crate::packet::TcpPacket;
use crate::stack::FIRST_TTLS;
use serde::Serialize;
use std::collections::VecDeque;

/// Packets of a connection without a handshake that are held; what they tell counts from the first one on.
pub const MOST_HELD: usize = 4096;

/// One of them counts as so much of what is held for all connections: a packet in flight is a tenth of it.
pub(crate) const WEIGHT: usize = 10;

/// Answers of a sender by which the time to it is told.
const LEAST_ANSWERS: usize = 8;
/// Packets that may contradict a scale, of all: some acknowledgments are not captured.
const CONTRADICTED: f64 = 0.02;
/// A sender that is held by the announced window leaves no room in it so often.
const FILLED: f64 = 0.1;
/// RFC 7323 §2.3.
const MOST_SCALE: usize = 14;

/// A packet that is held: its number, and when it passed.
pub(crate) type Held = (u64, u64, TcpPacket);

/// How it is known how much of a round trip lies between the capture and the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToldBy {
    /// By the shortest time in which the sender has echoed a timestamp (RFC 7323 §3).
    Timestamps,
    /// Its packets have passed no router, and those of the receiver have.
    Ttl,
}

/// How the scale of the receiver's windows is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleToldBy {
    /// By what the sender filled, again and again, and never exceeded.
    Filled,
    /// The sender needs no smaller one, and with a larger one the window's edge would have moved back (RFC 9293 §3.8.6).
    Edge,
    /// It is no smaller than this; windows were never full.
    AtLeast,
}

/// What was inferred in place of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Inferred {
    /// How the place of the capture is known.
    pub place_by: ToldBy,
    /// Shift of the receiver's windows, and how it is known.
    pub window_scale: u8,
    /// How it is known.
    pub scale_by: ScaleToldBy,
    /// Of a round trip, between the capture and the data sender.
    #[serde(skip)]
    pub(crate) missing_ns: u64,
    /// The whole of it.
    #[serde(skip)]
    pub(crate) total_ns: u64,
    /// Nothing was in flight when the first data passed: it is the connection's first, or follows a pause.
    #[serde(skip)]
    pub(crate) from_rest: bool,
}

/// The first of them, where it fits.
fn pop_if<T>(queue: &mut VecDeque<T>, fits: impl Fn(&T) -> bool) -> Option<T> {
    if queue.front().is_some_and(fits) { queue.pop_front() } else { None }
}

/// What is known of a sender from packets in the order of their times; `is_own` says which of them are its.
pub(crate) fn infer(packets: &[Held], is_own: impl Fn(&TcpPacket) -> bool) -> Option<Inferred> {
    let first = packets.iter().find(|(_, _, packet)| is_own(packet) && packet.payload > 0)?.2.seq;
    // Positions relative to the first data: those of a capture's beginning are near it.
    let position = |seq: u32| i64::from(seq.wrapping_sub(first).cast_signed());
    let behind = beyond(packets, &is_own, position)?;
    let (place_by, missing_ns) = match before(packets, &is_own) {
        Some(answer) => (ToldBy::Timestamps, answer),
        None if is_at_sender(packets, &is_own) => (ToldBy::Ttl, 0),
        None => return None,
    };
    let (window_scale, scale_by) = scale(packets, &is_own, position, missing_ns)?;
    // What was in flight before is acknowledged after it.
    let mut acks =
        packets.iter().filter(|(_, _, packet)| !is_own(packet)).filter_map(|(_, _, packet)| packet.ack);
    let from_rest = acks.all(|ack| position(ack) >= 0);
    Some(Inferred { place_by, window_scale, scale_by, missing_ns, total_ns: missing_ns + behind, from_rest })
}

/// The shortest time from data to its acknowledgment, ns: the round trip beyond the capture.
fn beyond(
    packets: &[Held],
    is_own: impl Fn(&TcpPacket) -> bool,
    position: impl Fn(u32) -> i64,
) -> Option<u64> {
    let mut sent = VecDeque::new();
    let (mut sent_to, mut unmeasured_to, mut least) = (i64::MIN, i64::MIN, None);
    for (_, time, packet) in packets {
        if is_own(packet) {
            let end = position(packet.seq) + i64::from(packet.payload);
            if packet.payload > 0 && end > sent_to {
                sent.push_back((end, *time));
                sent_to = end;
            } else if packet.payload > 0 {
                unmeasured_to = sent_to;
            }
        } else if let Some(ack) = packet.ack.map(&position) {
            let mut last = None;
            while let Some((end, time)) = pop_if(&mut sent, |(end, _)| *end <= ack) {
                last = (end > unmeasured_to).then_some(time);
            }
            if let Some(at) = last {
                let took = time.saturating_sub(at);
                least = Some(least.map_or(took, |least: u64| least.min(took)));
            }
        }
    }
    least
}

/// The shortest time from a timestamp of the receiver to its echo, ns: the round trip before the capture. The first packet with a timestamp is
/// looked for: what echoes it left when this one, or a later one, had come.
fn before(packets: &[Held], is_own: impl Fn(&TcpPacket) -> bool) -> Option<u64> {
    let is_before = |one: u32, other: u32| one.wrapping_sub(other).cast_signed() < 0;
    let mut seen: VecDeque<(u32, u64)> = VecDeque::new();
    let (mut least, mut answers) = (u64::MAX, 0);
    for (_, time, packet) in packets {
        let Some((value, echo)) = packet.timestamps else { continue };
        if !is_own(packet) {
            if seen.back().is_none_or(|(last, _)| is_before(*last, value)) {
                seen.push_back((value, *time));
            }
            continue;
        }
        while pop_if(&mut seen, |(value, _)| is_before(*value, echo)).is_some() {}
        if let Some((_, at)) = pop_if(&mut seen, |(value, _)| *value == echo) {
            least = least.min(time.saturating_sub(at));
            answers += 1;
        }
    }
    (answers >= LEAST_ANSWERS).then_some(least)
}

/// Whether its packets have passed no router, while those of its peer have.
fn is_at_sender(packets: &[Held], is_own: impl Fn(&TcpPacket) -> bool) -> bool {
    let all = |own: bool, fresh: bool| {
        let mut of_it = packets.iter().filter(|(_, _, packet)| is_own(packet) == own);
        of_it.all(|(_, _, packet)| FIRST_TTLS.contains(&packet.ttl) == fresh)
    };
    all(true, true) && all(false, false)
}

/// The smallest scale of windows by which the sender has done what it may, and how it is known.
fn scale(
    packets: &[Held],
    is_own: impl Fn(&TcpPacket) -> bool,
    position: impl Fn(u32) -> i64,
    missing_ns: u64,
) -> Option<(u8, ScaleToldBy)> {
    let mut pending: VecDeque<(u64, i64, i64)> = VecDeque::new();
    let mut edges = [i64::MIN; MOST_SCALE + 1];
    // Of each scale: packets that went beyond the window, groups that left no room in it, and windows that went back.
    let (mut beyond, mut filled) = ([0_u32; MOST_SCALE + 1], [0_u32; MOST_SCALE + 1]);
    let (mut back, mut shrank, mut sent) = ([0_u32; MOST_SCALE + 1], 0, 0);
    let (mut fills, mut groups) = ([false; MOST_SCALE + 1], 0_u32);
    let end_group = |fills: &mut [bool], filled: &mut [u32]| {
        for (fills, filled) in fills.iter_mut().zip(filled) {
            *filled += u32::from(core::mem::take(fills));
        }
    };
    let mut last: Option<(i64, i64)> = None;
    let segment = packets.iter().map(|(_, _, packet)| packet.payload.min(1460)).max().map_or(0, i64::from);
    for (_, time, packet) in packets {
        if !is_own(packet) {
            let Some(ack) = packet.ack.map(&position) else { continue };
            let window = i64::from(packet.window);
            if let Some((ack_before, window_before)) = last
                && ack >= ack_before
                && window + 1 < window_before
            {
                shrank += 1;
                for (shift, back) in back.iter_mut().enumerate() {
                    // What is announced is rounded down.
                    *back += u32::from((window_before - window - 1) << shift > ack - ack_before);
                }
            }
            last = Some((ack, window));
            pending.push_back((time + missing_ns, ack, window));
        } else if packet.payload > 1 {
            let mut let_go = false;
            while let Some((_, ack, window)) = pop_if(&mut pending, |(at, _, _)| *at <= *time) {
                let_go = true;
                for (shift, edge) in edges.iter_mut().enumerate() {
                    *edge = (*edge).max(ack + (window << shift));
                }
            }
            if edges[0] == i64::MIN {
                continue;
            }
            // What one acknowledgment lets go fills the window once, with its last packet.
            if let_go {
                end_group(&mut fills, &mut filled);
                groups += 1;
            }
            sent += 1;
            let end = position(packet.seq) + i64::from(packet.payload);
            for (shift, edge) in edges.iter().enumerate() {
                beyond[shift] += u32::from(end > *edge);
                fills[shift] = end <= *edge && end + segment > *edge;
            }
        }
    }
    end_group(&mut fills, &mut filled);
    let few = |some: u32, all: u32| f64::from(some) <= CONTRADICTED * f64::from(all);
    let least = (0..=MOST_SCALE).find(|shift| few(beyond[*shift], sent)).filter(|_| sent > 0)?;
    let most = (0..=MOST_SCALE).rfind(|shift| few(back[*shift], shrank)).filter(|_| shrank > 0);
    let by = if groups > 0 && f64::from(filled[least]) >= FILLED * f64::from(groups) {
        ScaleToldBy::Filled
    } else if most == Some(least) {
        ScaleToldBy::Edge
    } else {
        ScaleToldBy::AtLeast
    };
    Some((least as u8, by))
}
