//! What no sound program sends, out of running kernels on both sides, while a transfer goes on: each packet is counted
//! by its kind, and the transfer has every byte at its end.
//!
//! They are sent by raw sockets in the hosts, as anybody's would be who may open one there.
#![cfg(target_os = "linux")]

use crate::wire;
use farpath_elements::{ElementKind, ElementSpec, Link, MarkThreshold, QueueLimit};
use farpath_emu::{
    Backend, Clock, Emulator, Host, HostSettings, LoopReport, Malformed, NoRecorder, Settings,
};
use farpath_path::{Direction, PerDirection};
use farpath_traffic::{BulkEnd, EndReport, Opening, Prepared, Role, SocketOptions};
use farpath_units::{Bytes, Duration, Instant, Rate};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Out of each host.
const PACKETS: usize = 1000;
/// Longer than an Ethernet's.
const MTU: u32 = 9000;
/// Of the transfer: at the link's rate it takes a second with what is sent beside it.
const SIZE: Bytes = Bytes(3_000_000);
const RATE: u64 = 40_000_000;

/// Which raw socket it is given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// It takes 20 bytes of header at least, and writes total length and checksum into it.
    V4,
    /// It takes any 40 bytes and more, and leaves them as they are, also where they are no IPv6.
    V6,
}

/// What the loop is to count it as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Malformed(Malformed),
    OtherProtocol,
}

type Sent = (Kind, By, Vec<u8>);

/// The last bytes of the addresses of who sends this way, and of who gets it.
fn hosts(way: Direction) -> [u8; 2] {
    match way {
        Direction::Forward => [1, 2],
        Direction::Reverse => [2, 1],
    }
}

/// Header fields are changed in this packet, whose protocol is none that anybody has (253, RFC 3692), so that the other
/// host has nothing to say about it but that.
fn ipv4(way: Direction, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; 20 + len];
    bytes[0] = 0x45;
    let total = (bytes.len() as u16).to_be_bytes();
    bytes[2..4].copy_from_slice(&total);
    (bytes[8], bytes[9]) = (64, 253);
    let [from, to] = hosts(way);
    bytes[12..16].copy_from_slice(&[10, 0, 0, from]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, to]);
    bytes
}

fn ipv6(way: Direction, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; 40 + len];
    bytes[0] = 0x60;
    bytes[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    (bytes[6], bytes[7]) = (253, 64);
    let [from, to] = hosts(way);
    (bytes[8], bytes[23], bytes[24], bytes[39]) = (0xfd, from, 0xfd, to);
    bytes
}

/// Packets that have something wrong with them, and some that have not and are no TCP.
fn packet(way: Direction) -> impl Strategy<Value = Sent> {
    use Kind::{Malformed as Bad, OtherProtocol};
    let (ipv4, ipv6) = (move |len| ipv4(way, len), move |len| ipv6(way, len));
    // Long enough for either socket.
    let v4 = move || (20..1400usize).prop_map(ipv4);
    let v6 = move || (0..1400usize).prop_map(ipv6);
    let by = || prop::sample::select(vec![By::V4, By::V6]);
    let sent = |kind: Kind, by: By| move |bytes: Vec<u8>| (kind, by, bytes);
    prop_oneof![
        // A version that is none; a header that is shorter than one.
        (v4(), 0..16u8, by()).prop_filter_map("no IP", |(mut bytes, version, by)| {
            bytes[0] = version << 4 | 5;
            (!matches!(version, 4 | 6)).then_some((Bad(Malformed::IpHeader), by, bytes))
        }),
        (v4(), 0..5u8)
            .prop_map(|(mut bytes, words)| {
                bytes[0] = 0x40 | words;
                bytes
            })
            .prop_map(sent(Bad(Malformed::IpHeader), By::V6)),
        // Bytes of no meaning. What looks like a version in them is taken away, and what looks like a multicast
        // address, as the kernel itself drops those that are for one host.
        prop::collection::vec(any::<u8>(), 40..1400)
            .prop_map(|mut bytes| {
                (bytes[0], bytes[24]) = (bytes[0] & 0x3f, bytes[24] & 0x7f);
                bytes
            })
            .prop_map(sent(Bad(Malformed::IpHeader), By::V6)),
        // Another length than it says; as long as the device takes, and zero, as a jumbogram says (RFC 2675).
        (v4(), any::<u16>())
            .prop_map(|(mut bytes, said)| {
                let said = if usize::from(said) == bytes.len() { said ^ 1 } else { said };
                bytes[2..4].copy_from_slice(&said.to_be_bytes());
                bytes
            })
            .prop_map(sent(Bad(Malformed::Length), By::V6)),
        (1..MTU as usize - 40)
            .prop_map(move |len| {
                let mut bytes = ipv6(len);
                bytes[4..6].fill(0);
                bytes
            })
            .prop_map(sent(Bad(Malformed::Length), By::V6)),
        // Fragments: of every place, without a first or a last, beyond the end of any packet.
        (v4(), 1..0x4000u16, by()).prop_map(|(mut bytes, bits, by)| {
            bytes[6..8].copy_from_slice(&bits.to_be_bytes());
            (Bad(Malformed::Fragment), by, bytes)
        }),
        (v6(), any::<[u8; 8]>())
            .prop_map(|(bytes, header)| with_next_header(bytes, 44, &header))
            .prop_map(sent(Bad(Malformed::Fragment), By::V6)),
        // Extension headers that lead nowhere.
        (v6(), prop::sample::select(vec![0u8, 43, 51, 60, 135]), any::<[u8; 2]>())
            .prop_map(|(bytes, next, header)| with_next_header(bytes, next, &header))
            .prop_map(sent(Bad(Malformed::ExtensionHeader), By::V6)),
        // TCP without a TCP header, or with one that is longer than the packet.
        (0..20usize)
            .prop_map(move |len| {
                let mut bytes = ipv4(len);
                bytes[9] = 6;
                bytes
            })
            .prop_map(sent(Bad(Malformed::TcpHeader), By::V4)),
        (20..60usize, 0..16u8)
            .prop_filter_map("fits", move |(len, words)| {
                let mut bytes = ipv6(len);
                bytes[6] = 6;
                bytes[52] = words << 4;
                (words < 5 || usize::from(words) * 4 > len).then_some(bytes)
            })
            .prop_map(sent(Bad(Malformed::TcpHeader), By::V6)),
        // Nothing wrong with these.
        (v4(), by()).prop_map(|(bytes, by)| (OtherProtocol, by, bytes)),
        v6().prop_map(sent(OtherProtocol, By::V6)),
    ]
}

/// An IPv6 packet with something else behind its header, as much of it as fits.
fn with_next_header(mut bytes: Vec<u8>, next: u8, header: &[u8]) -> Vec<u8> {
    bytes[6] = next;
    let len = header.len().min(bytes.len() - 40);
    bytes[40..40 + len].copy_from_slice(&header[..len]);
    bytes
}

/// The same each time.
fn packets(way: Direction) -> Vec<Sent> {
    let mut runner = TestRunner::deterministic();
    let strategy = packet(way);
    (0..PACKETS).map(|_| strategy.new_tree(&mut runner).expect("no filter is too narrow").current()).collect()
}

/// How many the loop is to count of each kind.
fn census(packets: &[Sent]) -> BTreeMap<Kind, u64> {
    let mut counts = BTreeMap::new();
    for (kind, ..) in packets {
        *counts.entry(*kind).or_default() += 1;
    }
    counts
}

/// Raw sockets of the namespace that the calling thread is in, by the version of what they take.
struct RawSockets([Socket; 2]);

impl RawSockets {
    fn open() -> RawSockets {
        // 255 is IPPROTO_RAW: packets with their headers (raw(7)).
        let open = |domain| Socket::new(domain, Type::RAW, Some(Protocol::from(255))).expect("root here");
        RawSockets([open(Domain::IPV4), open(Domain::IPV6)])
    }

    fn send(&self, way: Direction, (_, by, bytes): &Sent) {
        let RawSockets([v4, v6]) = self;
        let to = hosts(way)[1];
        let sent = match by {
            By::V4 => v4.send_to(bytes, &SocketAddr::from(([10, 0, 0, to], 0)).into()),
            By::V6 => {
                v6.send_to(bytes, &SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(to)], 0)).into())
            }
        };
        sent.unwrap_or_else(|error| panic!("{error}: {by:?}, {} bytes {:02x?}", bytes.len(), &bytes[..20]));
    }
}

/// One end of a transfer in `host`, which sends this `way`.
fn end(host: &Host, way: Direction, clock: Clock) -> Prepared {
    let [local, peer] = hosts(way).map(|last| SocketAddr::from(([10, 0, 0, last], 50_000)));
    let near = way == Direction::Forward;
    let end = BulkEnd {
        role: if near { Role::Sender } else { Role::Receiver },
        opening: if near { Opening::Connect } else { Opening::Listen },
        local,
        peer,
        size: SIZE,
        request: Bytes::ZERO,
        messages: None,
        reply: Bytes::ZERO,
        writing: Default::default(),
        exchanges: 1,
        token: None,
        start: clock.now(),
        deadline: clock.now() + Duration::from_secs(60),
        sample_every: None,
        read_rate: None,
        low_water: None,
        close_within: Duration::from_secs(2),
        socket: SocketOptions::default(),
    };
    host.namespace().run(|| Prepared::new(end)).expect("entered").expect("prepared")
}

/// What is sent on purpose comes out of both hosts while they have a transfer.
fn under_fire(backend: Backend) -> ([EndReport; 2], LoopReport, [Vec<Sent>; 2], Instant) {
    let (near, far) = wire::pair(|settings| HostSettings { backend, mtu: MTU, ..settings });
    let rate = PerDirection::both(Rate::from_bit_per_s(RATE).expect("not zero"));
    let link = ElementKind::Link(Link {
        rate,
        queue: PerDirection::both(QueueLimit::Unlimited),
        mark: PerDirection::both(MarkThreshold::Never),
        aqm: PerDirection::default(),
        overhead: Bytes::ZERO,
        min_packet: Bytes::ZERO,
    });
    let path = [ElementSpec { name: "link".to_owned(), kind: link }];
    let clock = Clock::start();
    let mut emulator = Emulator::new(&path, 1, Settings::default(), near.port(), far.port(), clock)
        .expect("a link does not contradict itself");
    let ends = [(&near, Direction::Forward), (&far, Direction::Reverse)];
    let sent = Direction::BOTH.map(packets);
    let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let (reports, report, fired_until) = thread::scope(|scope| {
        let looping = scope.spawn(|| emulator.run(&stop, &mut NoRecorder));
        // Whoever connects must find the other listening.
        let programs = ends.map(|(host, way)| end(host, way, clock));
        let programs = programs.map(|program| {
            let never = &never;
            scope.spawn(move || program.run(clock.epoch(), never, &mut |_| {}))
        });
        let fire = [0, 1].map(|i| {
            let ((host, way), sent) = (ends[i], &sent[i]);
            scope.spawn(move || {
                let fire = || {
                    let sockets = RawSockets::open();
                    for (number, packet) in sent.iter().enumerate() {
                        sockets.send(way, packet);
                        // Not all at once: the device has a queue.
                        if number % 10 == 9 {
                            thread::park_timeout(std::time::Duration::from_millis(1));
                        }
                    }
                    clock.now()
                };
                host.namespace().run(fire).expect("entered")
            })
        });
        let fired = fire.map(|thread| thread.join());
        let reports = programs.map(|thread| thread.join());
        // What is still under way has a delay of a link that is idle by now.
        thread::park_timeout(std::time::Duration::from_millis(200));
        // Before anything is unwrapped: a panic here would wait for the loop for good.
        stop.store(true, Ordering::Relaxed);
        let [a, b] = fired.map(|result| result.expect("all are sent"));
        let reports = reports.map(|result| result.expect("no panic"));
        let report = looping.join().expect("no panic in the loop").expect("the loop goes on");
        (reports, report, a.max(b))
    });
    for host in [near, far] {
        let drops = host.dropped().expect("the device is there");
        assert_eq!(drops.from_host, 0, "the loop did not see everything");
    }
    (reports, report, sent, fired_until)
}

#[test]
fn a_transfer_goes_on_among_malformed_packets_of_both_hosts() {
    if wire::missing().is_some() {
        return;
    }
    for backend in wire::backends() {
        let (ends, report, sent, fired_until) = under_fire(backend);
        for end in &ends {
            // The receiver has looked at every byte.
            assert!(end.end.is_completed(), "{backend}: {end:?}\n{report:?}");
            assert_eq!(end.bytes, SIZE);
        }
        let [sender, receiver] = &ends;
        assert!(
            receiver.finished_at.is_some_and(|finished| finished > fired_until),
            "{backend}: the transfer was over before the last packet was sent: {sender:?}"
        );
        for (way, sent) in Direction::BOTH.into_iter().zip(&sent) {
            let census = census(sent);
            for kind in Malformed::ALL {
                let made = census.get(&Kind::Malformed(kind)).copied().unwrap_or(0);
                // The last two are about what a device is told beside the bytes, in which a kernel tells no untruth.
                assert_eq!(made == 0, matches!(kind, Malformed::Checksum | Malformed::Gso), "{kind}");
                assert_eq!(report.malformed[way].count_of(kind), made, "{backend}, {way}: {kind}");
            }
            // The hosts answer some of them by ICMP.
            assert!(report.other_protocols[way] >= census[&Kind::OtherProtocol], "{backend}, {way}");
            let counts = report.packets[way];
            assert_eq!(
                (counts.offered, counts.dropped),
                (counts.delivered + counts.refused, 0),
                "{counts:?}"
            );
        }
        assert_eq!(report.left_under_way, 0);
    }
}
