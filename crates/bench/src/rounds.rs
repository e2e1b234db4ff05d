//! The rules of another classifier, for comparison only: those that the design document of an open program of 2018 publishes ("TCP Diagnostic
//! Tool Design", whose method goes back to BBR's model of a path). Written anew from its text; nothing of its code is used.
//!
//! Data that is acknowledged is labelled by the first rule that holds, and a round trip by what most of its acknowledgments say. It is made for
//! captures at the sender. Of its two texts the later one is followed, but for "kernel limited": there the earlier one has a flight of less than 4/5 of
//! BtlBw x RTprop, and the later one a flight of nearly all of it, which is what fills a path.

use farpath_diagnose::{Interval, Limit, TcpPacket};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// RTprop is the shortest round trip within so long.
const RTPROP_NS: u64 = 10_000_000_000;
/// BtlBw is the fastest delivery within so many round trips.
const BTLBW_ROUNDS: u64 = 10;

/// What its rules call a packet, with the limit of ours that it means: its "kernel limited" is any window or pace of the sender's, its "bandwidth limited"
/// and "congestion limited" are the path's rate and queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    SlowStart,
    Receiver,
    Application,
    Kernel,
    Bandwidth,
    Congestion,
    Unknown,
}

const LABELS: [(Label, Limit); 7] = [
    (Label::SlowStart, Limit::SlowStart),
    (Label::Receiver, Limit::ReceiveWindow),
    (Label::Application, Limit::Application),
    (Label::Kernel, Limit::CongestionWindow),
    (Label::Bandwidth, Limit::PathRate),
    (Label::Congestion, Limit::PathRate),
    (Label::Unknown, Limit::Unclear),
];

/// A packet with data in flight, with what its rules note when it is sent.
struct InFlight {
    end: u64,
    sent_ns: u64,
    delivered: u64,
    delivered_ns: u64,
    slow_start: bool,
    receiver: bool,
    application: bool,
    kernel: bool,
}

/// RTprop, where there is one.
fn shortest(rtts: &VecDeque<(u64, u64)>) -> Option<u64> {
    rtts.iter().map(|(_, rtt)| *rtt).min()
}

/// BtlBw; 0 where it is not known.
fn fastest(rates: &VecDeque<(u64, f64)>) -> f64 {
    rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
}

/// What these rules say of each round trip of a capture, from the first packet on.
pub fn classify(packets: &[(u64, TcpPacket)], sender: SocketAddr) -> Vec<Interval> {
    let mut said = Vec::new();
    let (mut mss, mut scale) = (1460_u64, 0_u8);
    let Some(first) = packets.iter().find(|(_, packet)| packet.source == sender && packet.payload > 0) else {
        return said;
    };
    let base = first.1.seq;
    let position = |seq: u32| u64::from(seq.wrapping_sub(base));
    let mut flight: VecDeque<InFlight> = VecDeque::new();
    let (mut sent_to, mut acked_to, mut window) = (0_u64, 0_u64, u64::MAX);
    let (mut delivered, mut delivered_ns) = (0_u64, first.0);
    let mut rtts: VecDeque<(u64, u64)> = VecDeque::new();
    let mut rates: VecDeque<(u64, f64)> = VecDeque::new();
    let (mut round, mut round_end, mut round_from, mut last_flight) = (1_u64, 0_u64, packets[0].0, 0_u64);
    let mut slow_start = true;
    let mut votes = [0_u32; LABELS.len()];
    let mut timed_out = false;
    for (at, packet) in packets {
        if packet.syn {
            if let Some(option) = packet.mss {
                mss = mss.min(u64::from(option));
            }
            if packet.source != sender {
                scale = packet.window_scale.unwrap_or(0);
            }
            continue;
        }
        if packet.source == sender {
            if packet.payload == 0 {
                continue;
            }
            let end = position(packet.seq) + u64::from(packet.payload);
            if end <= sent_to {
                // A retransmission with nothing acknowledged for longer than any round trip is one of a timeout.
                let rtprop = shortest(&rtts).unwrap_or(u64::MAX);
                timed_out |= at - delivered_ns > rtprop.saturating_mul(2);
                continue;
            }
            sent_to = end;
            let pipe = sent_to - acked_to;
            let bdp = shortest(&rtts).map_or(0.0, |rtprop| fastest(&rates) * rtprop as f64 / 1e9);
            // Timestamps take 12 B of a segment.
            let full = u64::from(packet.payload) + 12 >= mss;
            flight.push_back(InFlight {
                end,
                sent_ns: *at,
                delivered,
                delivered_ns,
                slow_start,
                receiver: window < pipe + 5 * mss,
                application: !full,
                kernel: full && bdp > 0.0 && (pipe as f64) < bdp * 0.8,
            });
            continue;
        }
        let Some(ack) = packet.ack.map(position) else { continue };
        window = u64::from(packet.window) << scale;
        if ack <= acked_to || ack > sent_to + 1 {
            continue;
        }
        delivered += ack.min(sent_to) - acked_to;
        acked_to = ack.min(sent_to);
        delivered_ns = *at;
        let mut newest = None;
        while flight.front().is_some_and(|sent| sent.end <= acked_to) {
            newest = flight.pop_front();
        }
        if let Some(sent) = newest {
            let rtt = at - sent.sent_ns;
            rtts.push_back((*at, rtt));
            while rtts.front().is_some_and(|(when, _)| at - when > RTPROP_NS) {
                rtts.pop_front();
            }
            let elapsed = (at - sent.delivered_ns).max(1);
            let rate = (delivered - sent.delivered) as f64 * 1e9 / elapsed as f64;
            if !sent.receiver && !sent.application {
                rates.push_back((round, rate));
            }
            while rates.front().is_some_and(|(when, _)| round - when > BTLBW_ROUNDS) {
                rates.pop_front();
            }
            let (btlbw, rtprop) = (fastest(&rates), shortest(&rtts).unwrap_or(rtt));
            let label = if sent.slow_start {
                Label::SlowStart
            } else if sent.receiver {
                Label::Receiver
            } else if sent.application {
                Label::Application
            } else if sent.kernel {
                Label::Kernel
            } else if btlbw > 0.0 && rate >= btlbw * 0.8 {
                Label::Bandwidth
            } else if rtt as f64 > rtprop as f64 * 1.2 {
                Label::Congestion
            } else {
                Label::Unknown
            };
            votes[label as usize] += 1;
        }
        if acked_to > round_end || flight.is_empty() {
            let this_flight = sent_to - round_end;
            if last_flight > 0 && this_flight < last_flight * 3 / 2 {
                slow_start = false;
            }
            last_flight = this_flight;
            round_end = sent_to;
            round += 1;
            // Nothing small hides behind what Nagle's algorithm has put together.
            let application = votes[Label::Application as usize] > 0 && votes[Label::Kernel as usize] > 0;
            if application {
                votes[Label::Application as usize] += core::mem::take(&mut votes[Label::Kernel as usize]);
            }
            let most = (0..LABELS.len()).max_by_key(|label| votes[*label]).unwrap_or(0);
            let limit = match (timed_out, votes[most]) {
                (true, _) => Limit::Loss,
                (_, 0) => Limit::Unclear,
                _ => LABELS[most].1,
            };
            said.push(Interval { limit, from_ns: round_from, to_ns: *at });
            (round_from, timed_out, votes) = (*at, false, [0; LABELS.len()]);
        }
    }
    said
}
