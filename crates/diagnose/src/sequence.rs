//! The time-sequence graph of a connection, from the packets of a capture.

use crate::TcpPacket;
use std::net::SocketAddr;

/// Points of a kind that are kept; where there are more, every second one, every fourth ...
pub const MAX_POINTS: usize = 500_000;

/// A moment in ns since 1970, and a position in the stream.
pub type Point = (u64, u64);

/// Positions of what one side sends over time, as they passed the place of the capture; the first byte of data has position 0.
#[derive(Debug)]
pub struct SequenceGraph {
    sender: SocketAddr,
    /// Sequence number of position 0.
    first: Option<u32>,
    last: u64,
    sent_to: u64,
    acknowledged_to: u64,
    /// By how much the receiver's windows are shifted, where both SYNs were seen or something else told it.
    scales: [Option<u8>; 2],
    /// Where each packet with new data begins.
    pub sent: Points,
    /// The same of data that was sent before.
    pub again: Points,
    /// Until where data are acknowledged.
    pub acknowledged: Points,
    /// Until where the receiver's window lets the sender go.
    pub window: Points,
}

/// Some of the points of a kind, evenly chosen.
#[derive(Debug, Default)]
pub struct Points {
    points: Vec<Point>,
    /// Every so many are kept, less one.
    stride: usize,
    seen: usize,
}

impl Points {
    fn push(&mut self, point: Point) {
        self.seen += 1;
        if !(self.seen - 1).is_multiple_of(self.stride + 1) {
            return;
        }
        if self.points.len() == MAX_POINTS {
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride = 2 * self.stride + 1;
            if !(self.seen - 1).is_multiple_of(self.stride + 1) {
                return;
            }
        }
        self.points.push(point);
    }

    /// What is kept.
    pub fn kept(&self) -> &[Point] {
        &self.points
    }

    /// How many there were.
    pub fn seen(&self) -> usize {
        self.seen
    }
}

impl SequenceGraph {
    /// Of what `sender` sends.
    pub fn new(sender: SocketAddr) -> SequenceGraph {
        SequenceGraph {
            sender,
            first: None,
            last: 0,
            sent_to: 0,
            acknowledged_to: 0,
            scales: [None; 2],
            sent: Points::default(),
            again: Points::default(),
            acknowledged: Points::default(),
            window: Points::default(),
        }
    }

    /// The same, where something else than the handshake told by how much windows are shifted.
    #[must_use]
    pub fn scaled_by(self, scale: u8) -> SequenceGraph {
        SequenceGraph { scales: [Some(scale), Some(scale)], ..self }
    }

    /// Takes a packet of the connection.
    pub fn packet(&mut self, time_ns: u64, packet: &TcpPacket) {
        let is_sender = packet.source == self.sender;
        if packet.syn {
            // Both scale, or none does (RFC 7323 §2.2).
            self.scales[usize::from(is_sender)] = Some(packet.window_scale.unwrap_or(0));
            if is_sender {
                self.first = Some(packet.seq.wrapping_add(1));
            }
            return;
        }
        if is_sender {
            if packet.payload > 0 {
                self.first.get_or_insert(packet.seq);
                let position = self.position(packet.seq);
                let end = position + u64::from(packet.payload);
                if end <= self.sent_to { &mut self.again } else { &mut self.sent }.push((time_ns, position));
                self.sent_to = self.sent_to.max(end);
            }
        } else if let Some(ack) = packet.ack {
            let position = self.position(ack);
            if position > self.acknowledged_to {
                self.acknowledged_to = position;
                self.acknowledged.push((time_ns, position));
            }
            if let [Some(scale), Some(_)] = self.scales {
                self.window.push((time_ns, position + (u64::from(packet.window) << scale)));
            }
        }
    }

    /// Sequence numbers wrap, positions do not: the one that is nearest to the last.
    fn position(&mut self, seq: u32) -> u64 {
        let Some(first) = self.first else { return 0 };
        let ahead = seq.wrapping_sub(first).wrapping_sub(self.last as u32).cast_signed();
        let position = self.last.saturating_add_signed(ahead.into());
        self.last = self.last.max(position);
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::bare;

    #[test]
    fn points_beyond_the_bound_are_thinned_evenly() {
        let mut points = Points::default();
        for point in 0..4 * MAX_POINTS as u64 {
            points.push((point, point));
        }
        assert_eq!(points.seen(), 4 * MAX_POINTS);
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&points.kept().len()), "{}", points.kept().len());
        let steps: Vec<u64> = points.kept().windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(steps.iter().all(|step| *step == steps[0]), "{:?}", &steps[..4]);
    }

    #[test]
    fn without_the_handshake_windows_are_drawn_where_their_scale_was_told() {
        let [sender, receiver]: [SocketAddr; 2] =
            ["192.0.2.1:1", "192.0.2.2:2"].map(|text| text.parse().expect("one"));
        let drawn = |mut graph: SequenceGraph| {
            graph.packet(0, &TcpPacket { seq: 1000, ack: Some(1), payload: 100, ..bare(sender, receiver) });
            graph.packet(1, &TcpPacket { seq: 1, ack: Some(1100), window: 50, ..bare(receiver, sender) });
            graph.window.kept().to_vec()
        };
        assert_eq!(drawn(SequenceGraph::new(sender)), []);
        assert_eq!(drawn(SequenceGraph::new(sender).scaled_by(7)), [(1, 100 + (50 << 7))]);
    }

    #[test]
    fn positions_go_on_where_sequence_numbers_wrap() {
        let [sender, receiver]: [SocketAddr; 2] =
            ["192.0.2.1:1", "192.0.2.2:2"].map(|text| text.parse().expect("one"));
        let packet = |from: SocketAddr, seq: u32, ack: Option<u32>, payload| {
            let to = if from == sender { receiver } else { sender };
            TcpPacket { seq, ack, payload, ..bare(from, to) }
        };
        let mut graph = SequenceGraph::new(sender);
        let syn = |from, seq, ack, scale| TcpPacket {
            syn: true,
            window_scale: Some(scale),
            ..packet(from, seq, ack, 0)
        };
        graph.packet(0, &syn(sender, u32::MAX - 1500, None, 7));
        graph.packet(1, &syn(receiver, 9, Some(u32::MAX - 1499), 3));
        for (time, seq) in [(2, u32::MAX - 1499), (3, u32::MAX - 499), (4, 500), (5, u32::MAX - 499)] {
            graph.packet(time, &packet(sender, seq, Some(10), 1000));
        }
        graph.packet(6, &packet(receiver, 10, Some(1500), 0));
        assert_eq!(graph.sent.kept(), [(2, 0), (3, 1000), (4, 2000)]);
        assert_eq!(graph.again.kept(), [(5, 1000)]);
        assert_eq!(graph.acknowledged.kept(), [(6, 3000)]);
        assert_eq!(graph.window.kept(), [(6, 3000 + 8000)]);
    }
}
