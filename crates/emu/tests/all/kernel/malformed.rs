//! What no sound host sends, through the loop and into the running kernel: every packet is counted, none does harm.

use crate::common::{MemoryPort, data, packet, run_until, super_packet};
use crate::wire;
use farpath_emu::{
    Backend, Clock, Emulator, Host, HostSettings, LoopReport, Malformed, NoRecorder, Settings, VirtioHeader,
};
use farpath_units::Instant;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::net::TcpListener;
use std::net::TcpStream;

/// Of each kind.
const PACKETS: usize = 1000;
/// Addresses of the hosts, so that the kernel takes what comes for its own.
const ENDS: [[&str; 2]; 2] = [["10.0.0.1:40000", "10.0.0.2:50000"], ["[fd00::1]:40000", "[fd00::2]:50000"]];

type Sent = (VirtioHeader, Vec<u8>);

/// A packet that has something wrong with it: fields of its headers changed, or cut short, or what is said of it untrue.
fn malformed() -> impl Strategy<Value = (Malformed, Sent)> {
    let whole = (0..2usize, 0..1400u16).prop_map(|(family, len)| packet(ENDS[family], &data(0, len), 0));
    let lone = |bytes: Vec<u8>| (VirtioHeader::default(), bytes);
    let is_v6 = |bytes: &[u8]| bytes[0] >> 4 == 6;
    prop_oneof![
        // No IP version, or not a whole header.
        (whole.clone(), any::<u8>().prop_filter("no IP", |first| !matches!(first >> 4, 4 | 6))).prop_map(
            move |(mut bytes, first)| {
                bytes[0] = first;
                (Malformed::IpHeader, lone(bytes))
            }
        ),
        (whole.clone(), 1..20usize).prop_map(move |(mut bytes, len)| {
            bytes.truncate(len);
            (Malformed::IpHeader, lone(bytes))
        }),
        // Another length than it says; zero, as a jumbogram does.
        (whole.clone(), any::<u16>()).prop_map(move |(mut bytes, len)| {
            let (at, right) = if is_v6(&bytes) { (4, bytes.len() - 40) } else { (2, bytes.len()) };
            let len = if usize::from(len) == right { 0 } else { len };
            bytes[at..at + 2].copy_from_slice(&len.to_be_bytes());
            (Malformed::Length, lone(bytes))
        }),
        // Fragments.
        (whole.clone(), 1..0x2000u16, any::<bool>()).prop_map(move |(mut bytes, offset, more)| {
            if is_v6(&bytes) {
                bytes[6] = 44;
            } else {
                bytes[6..8].copy_from_slice(&(offset | u16::from(more) << 13).to_be_bytes());
            }
            (Malformed::Fragment, lone(bytes))
        }),
        // Extension headers that are none.
        (0..1400u16, prop::sample::select(vec![0u8, 43, 60])).prop_map(move |(len, next)| {
            let mut bytes = packet(ENDS[1], &data(0, len), 0);
            bytes[6] = next;
            (Malformed::ExtensionHeader, lone(bytes))
        }),
        // TCP headers that are too short, or longer than the packet.
        (whole.clone(), 0..5u8).prop_map(move |(mut bytes, words)| {
            let at = if is_v6(&bytes) { 52 } else { 32 };
            bytes[at] = words << 4;
            (Malformed::TcpHeader, lone(bytes))
        }),
        // A checksum that is to be put where there is no packet.
        (whole.clone(), 1500..=u16::MAX, any::<u16>()).prop_map(
            |(bytes, checksum_start, checksum_offset)| {
                let flags = VirtioHeader::NEEDS_CHECKSUM;
                let header =
                    VirtioHeader { flags, checksum_start, checksum_offset, ..VirtioHeader::default() };
                (Malformed::Checksum, (header, bytes))
            }
        ),
        // Super-packets of no known type, of another type than they are, or of segments of no bytes.
        (0..2usize, 1..60_000u16, prop::sample::select(vec![2u8, 3, 5, 0x7f, 0xff]), 0..3u8).prop_map(
            |(family, len, unknown, fault)| {
                let (mut header, bytes) = super_packet(ENDS[family], &data(0, len), 0, 1000);
                match fault {
                    0 => header.gso_type = unknown,
                    1 => header.gso_type ^= VirtioHeader::GSO_TCPV4 ^ VirtioHeader::GSO_TCPV6,
                    _ => header.gso_size = 0,
                }
                (Malformed::Gso, (header, bytes))
            }
        ),
    ]
}

/// Packets of a strategy, the same each time.
fn packets<T>(strategy: &impl Strategy<Value = T>) -> impl Iterator<Item = T> {
    let mut runner = TestRunner::deterministic();
    (0..PACKETS).map(move |_| strategy.new_tree(&mut runner).expect("no filter is too narrow").current())
}

/// Sends them into a host of the kernel, and gives the report when the last has been dropped or handed over.
fn into_kernel(host: &Host, sent: impl Iterator<Item = Sent>) -> LoopReport {
    let near = MemoryPort::default();
    for (header, bytes) in sent {
        near.send_at(Instant::ZERO, header, bytes);
    }
    let settings = Settings { coalesce: true, ..Settings::default() };
    let mut emulator = Emulator::new(&[], 1, settings, Box::new(near.clone()), host.port(), Clock::start())
        .expect("a path of nothing");
    let report = run_until(&mut emulator, &mut NoRecorder, || near.memory().to_send.is_empty());
    let counts = report.packets.forward;
    assert_eq!(counts.taken, PACKETS as u64);
    assert_eq!(counts.offered, counts.delivered + counts.refused, "each has an end: {counts:?}");
    assert_eq!(report.send_errors.values().sum::<u64>(), counts.refused);
    report
}

fn hosts() -> Vec<Host> {
    if wire::missing().is_some() {
        return Vec::new();
    }
    let host = |backend: Backend| {
        Host::new(&HostSettings { backend, ..HostSettings::far() }).expect("the backend was tried")
    };
    wire::backends().into_iter().map(host).collect()
}

#[test]
fn every_malformed_packet_is_counted_by_its_kind() {
    for host in hosts() {
        let (kinds, sent): (Vec<Malformed>, Vec<Sent>) = packets(&malformed()).unzip();
        let report = into_kernel(&host, sent.into_iter());
        for kind in Malformed::ALL {
            let made = kinds.iter().filter(|&&made| made == kind).count() as u64;
            assert!(made > 0, "{kind}");
            assert_eq!(report.malformed.forward.count_of(kind), made, "{kind}");
        }
        assert_eq!(report.malformed.forward.total(), PACKETS as u64);
        let passed = kinds.iter().filter(|kind| kind.passes()).count() as u64;
        assert_eq!(report.packets.forward.offered, passed);
        still_works(host);
    }
}

#[test]
fn random_bytes_and_headers_do_no_harm() {
    let bytes = prop::collection::vec(any::<u8>(), 0..3000);
    let random = (bytes, any::<[u8; VirtioHeader::LEN]>(), prop::sample::select(vec![0x45u8, 0x46, 0x60]));
    for host in hosts() {
        let sent = packets(&random).map(|(mut bytes, header, first)| {
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            (VirtioHeader::from_bytes(header), bytes)
        });
        into_kernel(&host, sent);
        still_works(host);
    }
}

/// A connection to the host still carries its bytes.
fn still_works(far: Host) {
    let near = Host::new(&HostSettings::near()).expect("there is one like it");
    let mut emulator =
        Emulator::new(&[], 1, Settings::default(), near.port(), far.port(), Clock::start()).expect("no path");
    let listener =
        far.namespace().run(|| TcpListener::bind("10.0.0.2:50000")).expect("entered").expect("bound");
    let connecting = std::thread::spawn(move || {
        near.namespace().run(|| TcpStream::connect("10.0.0.2:50000")).expect("entered")
    });
    run_until(&mut emulator, &mut NoRecorder, || connecting.is_finished());
    connecting.join().expect("no panic").expect("the host answers");
    drop(listener);
}
