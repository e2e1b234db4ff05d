//! Explicit-rate signalling: packets into a flow router.

use crate::Bytes;
use farpath_elements::FlowRouter;
use farpath_emu::WirePacket;
use farpath_experiment::RouterConfig;
use farpath_path::{Direction, PathElement};
use farpath_tcp::wire::{self, IpFields};
use farpath_tcp::{Flags, Segment, Seq};
use farpath_tia1039::{STRUCTURE_LEN, Structure, Structures, insert_v4, signal};
use farpath_units::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::OnceLock;

const CONFIG: &str =
    "inside = 'a'\noutside = 'b'\nrate = '8 Mbit/s'\nqueue = '50 packets'\nflows = 64\nstarts = 16";

fn lines() -> &'static farpath_elements::RouterLines {
    static LINES: OnceLock<RouterConfig> = OnceLock::new();
    &LINES.get_or_init(|| RouterConfig::parse(CONFIG, "router.toml").expect("good")).lines
}

/// Packets, with structures and without, into a flow router.
pub fn signalling(data: &[u8]) {
    route(Bytes(data));
}

/// A packet of one of a few flows, with structures of these bytes or none.
fn packet(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let what = bytes.u8();
    let host = |number: u8| -> SocketAddr { ([10, 0, 0, number % 4], 1000 + u16::from(number >> 4)).into() };
    let (from, to) = (host(bytes.u8()), host(bytes.u8()));
    let mut segment = Segment::new(Flags(bytes.u8()), Seq(bytes.u32()), Seq(bytes.u32()));
    segment.len = if what & 1 == 1 { bytes.u16() % 1400 } else { 0 };
    let mut packet = Vec::new();
    wire::encode(from, to, &IpFields::default(), &segment, 0, &mut packet).expect("it fits");
    if what & 2 == 2
        && let Some(Ok(structure)) = bytes.take(STRUCTURE_LEN).first_chunk().map(Structure::decode_v4)
    {
        if what & 4 == 4 {
            return signal(&packet, &structure).unwrap_or(packet);
        }
        let _ = insert_v4(&mut packet, &Structures::one(structure));
    }
    packet
}

fn route(mut bytes: Bytes<'_>) {
    let mut router = FlowRouter::new("router".to_owned(), lines(), 7);
    let (mut now, mut offered, mut out) = (Instant::ZERO, 0_u64, 0_u64);
    // What each line had promised, and guaranteed of that, before a packet.
    let mut before = [(0, 0); 2];
    while !bytes.is_empty() && offered < 2000 {
        now += Duration::from_micros(bytes.below(1 << 22));
        while let Some(departure) = router.take(now) {
            assert!(departure.due <= now, "it left before its time");
            out += 1;
            // Of each packet one of the router's own may follow.
            assert!(out <= 2 * offered, "it makes packets");
        }
        let direction = if bytes.u8() & 1 == 0 { Direction::Forward } else { Direction::Reverse };
        let packet = match bytes.u8() {
            0..=31 => {
                let len = bytes.u8().into();
                bytes.take(len).to_vec()
            }
            _ => packet(&mut bytes),
        };
        offered += 1;
        router.offer(now, direction, WirePacket::new(packet, None, offered));
        for (direction, before) in Direction::BOTH.into_iter().zip(&mut before) {
            let port = router.port(direction);
            assert!(port.flows() <= 64, "more flows than it keeps");
            assert!(port.guaranteed() <= port.capacity(), "more is guaranteed than the line has");
            // A guarantee is admitted over the heads of Available Rates; until they have sunk nothing more is promised.
            let (committed, guaranteed) = *before;
            let most = port.capacity().max(committed) + port.guaranteed().saturating_sub(guaranteed);
            assert!(port.committed() <= most, "more is promised than the line has");
            *before = (port.committed(), port.guaranteed());
        }
    }
}
