//! Segments of anybody, on the wire and against an established endpoint of each shipped stack.

use crate::Bytes;
use farpath_experiment::{Stack, shipped_stacks};
use farpath_tcp::wire::{self, IpFields};
use farpath_tcp::{
    Config, Connection, Ecn, Endpoint, Flags, SackBlock, SackBlocks, Segment, Seq, State, Timestamps,
};
use farpath_units::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::OnceLock;

const ISN: Seq = Seq(0xffff_f000);
const PEER_ISN: Seq = Seq(0x7fff_fff0);

/// What is due at once so often is due for ever.
const MOST_AT_ONCE: u32 = 20;
/// So many segments at one instant: more than the largest window that is written to has.
const MOST_BURST: u32 = 100_000;

fn stacks() -> &'static [Config] {
    static STACKS: OnceLock<Vec<Config>> = OnceLock::new();
    STACKS.get_or_init(|| {
        let load = |name| Stack::load(name).expect("it ships").config;
        shipped_stacks().into_iter().map(|stack| load(stack.name)).collect()
    })
}

/// The first byte says which stack, the second how the connection was opened; the rest is what happens to it.
pub fn segments(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (stack, opening) = (bytes.u8(), bytes.u8());
    let config = &stacks()[usize::from(stack) % stacks().len()];
    let mut target = Target::open(config, opening);
    let mut steps = 0;
    while !bytes.is_empty() && steps < 2000 {
        target.step(&mut bytes);
        steps += 1;
    }
}

struct Target {
    end: Connection,
    now: Instant,
    written: u64,
    read: u64,
}

impl Target {
    fn open(config: &Config, opening: u8) -> Target {
        let connects = opening & 1 == 1;
        let end = if connects { Connection::connect(config, ISN) } else { Connection::listen(config, ISN) };
        let mut target = Target { end, now: Instant::ZERO, written: 0, read: 0 };
        target.poll();
        let mut first = if connects {
            Segment::new(Flags::SYN | Flags::ACK, PEER_ISN, ISN.advanced_by(1))
        } else {
            Segment::new(Flags::SYN, PEER_ISN, Seq(0))
        };
        (first.window, first.mss) = (u16::MAX, Some(1460));
        first.window_scale = (opening & 2 != 0).then_some(opening >> 4);
        first.sack_permitted = opening & 4 != 0;
        first.timestamps = (opening & 8 != 0).then_some(Timestamps { value: 1, echo: 0 });
        target.arrives(&first);
        if !connects {
            let mut last = Segment::new(Flags::ACK, PEER_ISN.advanced_by(1), ISN.advanced_by(1));
            last.window = u16::MAX;
            last.timestamps = first.timestamps;
            target.arrives(&last);
        }
        assert_eq!(target.end.state(), State::Established);
        target
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.u8() % 8 {
            0 => self.written += self.end.write(bytes.below(200_000)),
            1 => self.read += self.end.read(bytes.below(100_000)),
            2 => self.now += Duration::from_micros(bytes.u32().into()),
            3 => {
                // A program that waits: to the next thing that is due.
                if let Some(due) =
                    self.end.next_due().filter(|due| *due < Instant::ZERO + Duration::from_secs(1 << 30))
                {
                    self.now = self.now.max(due);
                }
            }
            4 if bytes.u8() == 0 => self.end.close(),
            5 => {
                let len = bytes.u8().into();
                on_the_wire(bytes.take(len));
            }
            _ => {
                let segment = self.forge(bytes);
                round_trip(&segment);
                self.arrives(&segment);
            }
        }
        self.run_timers();
        self.check();
    }

    /// A segment, most of its numbers near where they matter.
    fn forge(&self, bytes: &mut Bytes<'_>) -> Segment {
        let (acked, flight) = (1 + self.end.sender().acked(), self.end.sender().flight_size());
        let next = self.end.receiver().next();
        let near = |bytes: &mut Bytes<'_>, isn: Seq, position: u64| match bytes.u8() {
            0..=127 => isn.advanced_by(position),
            128..=223 => isn.advanced_by(position.wrapping_add(bytes.u16().into()).wrapping_sub(1 << 15)),
            _ => Seq(bytes.u32()),
        };
        let flags = Flags(bytes.u8());
        let seq = near(bytes, PEER_ISN, next);
        let ack = acked + bytes.below(flight + 2);
        let mut segment = Segment::new(flags, seq, near(bytes, ISN, ack));
        let what = bytes.u8();
        segment.ecn = Ecn::from_bits(what);
        segment.window = bytes.u16();
        segment.len = if what & 4 != 0 { bytes.u16() % 1461 } else { 0 };
        if what & 8 != 0 {
            (segment.mss, segment.window_scale) = (Some(bytes.u16()), Some(bytes.u8()));
            segment.sack_permitted = true;
        }
        if what & 16 != 0 {
            let ms = (self.now.as_nanos() / 1_000_000) as u32;
            let of = |bytes: &mut Bytes<'_>| {
                if bytes.u8() < 200 { ms.wrapping_sub(bytes.u8().into()) } else { bytes.u32() }
            };
            segment.timestamps = Some(Timestamps { value: of(bytes), echo: of(bytes) });
        }
        segment.sack = SackBlocks::EMPTY;
        for _ in 0..(what >> 5) % 5 {
            let place = acked + bytes.below(flight + 1);
            let start = near(bytes, ISN, place);
            let end = Seq(start.0.wrapping_add(bytes.u16().into()));
            segment.sack.push(SackBlock { start, end });
        }
        segment
    }

    fn arrives(&mut self, segment: &Segment) {
        self.end.on_segment(self.now, segment);
        self.poll();
    }

    fn poll(&mut self) {
        for sent in 0.. {
            let Some(segment) = self.end.poll_segment(self.now) else { break };
            assert!(sent < MOST_BURST, "it sends without end in {:?}", self.end.state());
            round_trip(&segment);
        }
    }

    fn run_timers(&mut self) {
        self.poll();
        for again in 0.. {
            if self.end.next_due().is_none_or(|due| due > self.now) {
                break;
            }
            assert!(again < MOST_AT_ONCE, "due again at once in {:?}", self.end.state());
            self.end.on_timer(self.now);
            self.poll();
        }
    }

    fn check(&self) {
        let sender = self.end.sender();
        // One more each for the SYN and the FIN, which take a number.
        assert!(sender.acked() <= self.written + 2, "{} of {} acknowledged", sender.acked(), self.written);
        assert!(self.read <= self.end.receiver().next(), "more was read than came");
    }
}

/// What is encoded reads back the same.
fn round_trip(segment: &Segment) {
    let [from, to]: [SocketAddr; 2] = [([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into()];
    let mut packet = Vec::new();
    // Options that do not fit beside each other are an error.
    if wire::encode(from, to, &IpFields::default(), segment, 0, &mut packet).is_ok() {
        let read = wire::decode(&packet).expect("what we write, we read");
        assert_eq!(read.segment.seq, segment.seq);
        assert_eq!((read.segment.ack, read.segment.len), (segment.ack, segment.len));
    }
}

fn on_the_wire(packet: &[u8]) {
    let _ = wire::decode(packet);
    let _ = wire::decode_unverified(packet);
}
