//! A congestion controller of one's own between two TCP endpoints, driven by hand.
//!
//! `cargo run -p farpath-sim --example own_controller`
//!
//! It is Scalable TCP (T. Kelly, 2003): the window grows by a hundredth of what is acknowledged, and a loss leaves seven eighths of it. Beside
//! it Reno, over the same path. Whatever implements [`CongestionControl`] and can be cloned will do; a stack of one's own in a test is one, too.

use farpath_path::{
    BoxedElement, Direction, Fate, PacketView, Path, PathElement, PathPacket, Stage, Transit,
};
use farpath_tcp::cc::{AckEvent, CongestionControl, LossEvent, Window};
use farpath_tcp::{Config, Connection, Endpoint, Segment, Seq};
use farpath_units::{Bytes, Duration, Instant};

/// Scalable TCP.
#[derive(Debug, Clone)]
struct Scalable;

impl CongestionControl for Scalable {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        window.cwnd += if window.cwnd < window.ssthresh { ack.newly_acked } else { ack.newly_acked / 100 };
    }

    fn ssthresh_after(&mut self, window: &Window, _loss: &LossEvent) -> u64 {
        window.cwnd - window.cwnd / 8
    }
}

/// A long path that loses every 5000th packet with data.
struct Channel {
    propagation: Duration,
    data_packets: u64,
}

impl Transit for Channel {
    fn transit(&mut self, now: Instant, _: Direction, packet: PacketView) -> Fate {
        self.data_packets += u64::from(packet.carries_data);
        if packet.carries_data && self.data_packets.is_multiple_of(5000) {
            return Fate::Drop(farpath_path::DropCause::Loss);
        }
        Fate::Depart(now + self.propagation)
    }
}

/// A segment on the path.
#[derive(Debug, Clone)]
struct Packet(Segment);

impl PathPacket for Packet {
    fn wire_size(&self) -> Bytes {
        self.0.ipv4_size()
    }
    fn carries_data(&self) -> bool {
        self.0.len > 0
    }
}

const SIZE: u64 = 100_000_000;

/// When the last byte has been read.
fn transfer(scalable: bool) -> Instant {
    let channel = Channel { propagation: Duration::from_millis(50), data_packets: 0 };
    let stages = Stage::fuse(vec![("channel".to_owned(), Box::new(channel))]);
    let mut path = Path::from_elements(
        stages.into_iter().map(|stage| -> BoxedElement<Packet> { Box::new(stage) }).collect(),
    );
    let mut config = Config::default();
    config.receive.buffer = Bytes(16 << 20);
    config.send.window_scaling = true;
    config.recovery.sack = true;
    let mut ends = [Connection::connect(&config, Seq(0)), Connection::listen(&config, Seq(0))];
    if scalable {
        ends[0].control_by(Box::new(Scalable));
    }
    let (mut now, mut unwritten, mut read) = (Instant::ZERO, SIZE, 0);
    while read < SIZE {
        unwritten -= ends[0].write(unwritten);
        read += ends[1].read(u64::MAX);
        for (index, direction) in Direction::BOTH.into_iter().enumerate() {
            ends[index].on_timer(now);
            while let Some(segment) = ends[index].poll_segment(now) {
                path.offer(now, direction, Packet(segment));
            }
        }
        let due = ends.iter().filter_map(Endpoint::next_due).chain(path.next_departure()).min();
        now = now.max(due.expect("somebody waits for something"));
        while let Some(departure) = path.take(now) {
            let to = usize::from(departure.direction == Direction::Forward);
            ends[to].on_segment(departure.due, &departure.packet.0);
        }
    }
    now
}

fn main() {
    println!("100 MB over 50 ms each way, every 5000th packet lost:");
    println!("  Reno          {}", transfer(false));
    println!("  Scalable TCP  {}", transfer(true));
}
