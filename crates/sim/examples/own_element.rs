//! An element of one's own between two TCP endpoints, driven by hand: what the event loop of this crate does, in one page.
//!
//! `cargo run -p farpath-sim --example own_element`
//!
//! The element is a ground station that is in sight for one second in three. What comes meanwhile waits for the next contact,
//! so it is a [`Transit`]: its answer is known when the packet comes in. The sender knows nothing of contacts: each gap costs it a timeout.

use farpath_path::{
    BoxedElement, Direction, Fate, PacketView, Path, PathElement, PathPacket, Stage, Transit, Verdict,
};
use farpath_tcp::{Config, Connection, Endpoint, Segment, Seq};
use farpath_units::{Bytes, Duration, Instant};

/// In sight for the first `contact` of every `period`; then `propagation` to the other side.
struct Station {
    period: Duration,
    contact: Duration,
    propagation: Duration,
}

impl Transit for Station {
    fn transit(&mut self, now: Instant, _: Direction, _: PacketView) -> Fate {
        let period = self.period.as_nanos();
        let into = now.as_nanos() % period;
        let wait = if into < self.contact.as_nanos() { 0 } else { period - into };
        Fate::Depart(now + Duration::from_nanos(wait) + self.propagation)
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

fn main() {
    let station = Station {
        period: Duration::from_secs(3),
        contact: Duration::from_secs(1),
        propagation: Duration::from_millis(20),
    };
    let stages = Stage::fuse(vec![("station".to_owned(), Box::new(station))]);
    let mut path = Path::from_elements(
        stages.into_iter().map(|stage| -> BoxedElement<Packet> { Box::new(stage) }).collect(),
    );
    let config = Config::default();
    let mut ends = [Connection::connect(&config, Seq(0)), Connection::listen(&config, Seq(0))];
    let mut now = Instant::ZERO;
    let mut unwritten = 3_000_000;
    let mut read = 0;
    while read < 3_000_000 {
        unwritten -= ends[0].write(unwritten);
        read += ends[1].read(u64::MAX);
        for (index, direction) in Direction::BOTH.into_iter().enumerate() {
            ends[index].on_timer(now);
            while let Some(segment) = ends[index].poll_segment(now) {
                if let Verdict::Dropped { cause, .. } = path.offer(now, direction, Packet(segment)) {
                    println!("{now}: dropped, {cause}");
                }
            }
        }
        let due = ends.iter().filter_map(Endpoint::next_due).chain(path.next_departure()).min();
        now = now.max(due.expect("somebody waits for something"));
        while let Some(departure) = path.take(now) {
            let to = match departure.direction {
                Direction::Forward => 1,
                Direction::Reverse => 0,
            };
            ends[to].on_segment(departure.due, &departure.packet.0);
        }
    }
    let stats = ends[0].sender().stats();
    println!(
        "3 MB have arrived after {now}: {} segments, {} of them sent again after {} timeouts",
        stats.data_segments, stats.retransmissions, stats.timeouts
    );
}
