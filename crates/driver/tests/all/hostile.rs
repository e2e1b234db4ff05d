//! The signalling as the kernel runs it, on packets that are made up: against the codec, and against who would abuse it.
#![cfg(target_os = "linux")]

use crate::common;

use common::skipped;
use farpath_driver::{Device, signalling};
use farpath_emu::Namespace;
use farpath_tcp::wire::{self, IpFields};
use farpath_tcp::{Flags, Segment, Seq};
use farpath_tia1039::{Carrier, Message, PacketError, QosPacket, RateWord};
use farpath_units::Rate;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ProgramInput, ProgramMut};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use socket2::Socket;
use std::cell::Cell;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

const NEXT: i32 = -1;
const DROP: i32 = 2;
const ETHERNET: usize = 14;

/// The program at the entrance of an Ethernet device, with a table of conversations of its own.
struct Bench {
    signalling: Object,
    control: Object,
}

impl Bench {
    fn new() -> Bench {
        let device = Device::named("lo").expect("every namespace has it");
        let rate = Rate::from_bit_per_s(100_000_000).expect("not zero");
        let (signalling, control) = signalling(&device, rate).unwrap_or_else(|error| panic!("{error}"));
        Bench { signalling, control }
    }

    fn program(&self, name: &str) -> ProgramMut<'_> {
        let mut programs = self.signalling.progs_mut();
        programs.find(|program| program.name() == OsStr::new(name)).expect("it is there")
    }

    fn map(&self, name: &str) -> MapHandle {
        let map = self.control.maps().find(|map| map.name() == OsStr::new(name)).expect("it is there");
        MapHandle::try_from(&map).unwrap()
    }

    /// What becomes of an IP packet that arrives: what the program says, and the packet.
    fn arrives(&self, packet: &[u8]) -> (i32, Vec<u8>) {
        self.passes("erate_ingress", packet)
    }

    /// Of one that leaves, as the packet of a socket that is none of TCP's: the kernel lends it no other.
    fn leaves(&self, packet: &[u8]) -> (i32, Vec<u8>) {
        self.passes("erate_egress", packet)
    }

    fn passes(&self, program: &str, packet: &[u8]) -> (i32, Vec<u8>) {
        let mut frame = vec![0; ETHERNET];
        let kind: u16 = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        frame[12..].copy_from_slice(&kind.to_be_bytes());
        frame.extend_from_slice(packet);
        let mut out = vec![0; 4096];
        let mut input = ProgramInput::default();
        (input.data_in, input.data_out) = (Some(frame.as_slice()), Some(out.as_mut_slice()));
        let output = self.program(program).test_run(input).expect("it runs");
        let verdict = output.return_value as i32;
        (verdict, output.data.expect("there is a packet")[ETHERNET..].to_vec())
    }

    /// Connections of which there is talk.
    fn talks(&self) -> usize {
        self.map("talks").keys().count()
    }

    /// Only a connection's own congestion control makes a grant.
    fn assert_no_grant(&self) {
        assert_eq!(self.map("flows").keys().count(), 0);
    }

    fn forget(&self) {
        let talks = self.map("talks");
        for key in talks.keys() {
            talks.delete(&key).unwrap();
        }
    }
}

/// In a namespace of its own, in which nobody has a socket.
fn alone(work: impl FnOnce() + Send) {
    Namespace::new().unwrap().run(work).unwrap();
}

fn packet(v6: bool, flags: Flags, dscp: u8, payload: &[u8]) -> Vec<u8> {
    let ends = if v6 { ["[fd00::2]:80", "[fd00::1]:40000"] } else { ["10.0.0.2:80", "10.0.0.1:40000"] };
    between(ends, flags, [7, 9], dscp, payload)
}

/// The answer to [`packet`]s of a SYN.
fn syn_ack(v6: bool, dscp: u8, payload: &[u8]) -> Vec<u8> {
    let ends = if v6 { ["[fd00::1]:40000", "[fd00::2]:80"] } else { ["10.0.0.1:40000", "10.0.0.2:80"] };
    between(ends, Flags::SYN | Flags::ACK, [100, 8], dscp, payload)
}

fn between(ends: [&str; 2], flags: Flags, [seq, ack]: [u32; 2], dscp: u8, payload: &[u8]) -> Vec<u8> {
    let [source, destination] = ends.map(|end| end.parse::<SocketAddr>().unwrap());
    let segment = Segment { len: payload.len() as u16, ..Segment::new(flags, Seq(seq), Seq(ack)) };
    let mut bytes = Vec::new();
    let fields = IpFields { dscp, ..IpFields::default() };
    wire::encode(source, destination, &fields, &segment, 0, &mut bytes).expect("it fits");
    let at = bytes.len() - payload.len();
    bytes[at..].copy_from_slice(payload);
    sum(&mut bytes);
    bytes
}

/// The TCP checksum anew.
fn sum(packet: &mut [u8]) {
    let (at, addresses) = if packet[0] >> 4 == 4 { (20, 12..20) } else { (40, 8..40) };
    packet[at + 16..at + 18].fill(0);
    let words = |bytes: &[u8]| {
        bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0))).sum::<u32>()
    };
    let mut sum = words(&packet[addresses]) + 6 + (packet.len() - at) as u32 + words(&packet[at..]);
    while sum >> 16 != 0 {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    packet[at + 16..at + 18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Puts bytes between the IPv6 header and TCP's, as hop-by-hop options.
fn with_options(mut packet: Vec<u8>, options: &[u8]) -> Vec<u8> {
    let payload = u16::from_be_bytes([packet[4], packet[5]]) + options.len() as u16;
    packet[4..6].copy_from_slice(&payload.to_be_bytes());
    packet[6] = 0;
    packet.splice(40..40, options.iter().copied());
    packet
}

/// Sixteen bytes that are nearly a structure, or far from one.
fn structure() -> impl Strategy<Value = Vec<u8>> {
    let likely = (any::<[u8; 10]>(), 0..9u8, 0..5u8, 0..3u8, any::<u8>(), 0..4u8, 0..4u8, any::<[u8; 2]>());
    let likely = likely.prop_map(|(head, cd, tp, ch, bt, version, mark, tail)| {
        let mut bytes = head.to_vec();
        bytes.extend([cd << 4 | tp, ch << 4 | bt & 15, 0, version << 4 | mark]);
        bytes.extend(tail);
        bytes
    });
    prop_oneof![4 => likely, 1 => prop::collection::vec(any::<u8>(), 16)]
}

/// Sixteen bytes that are a structure.
fn sound() -> impl Strategy<Value = Vec<u8>> {
    (any::<[u8; 10]>(), 0..8u8, 0..2u8, 0..2u8).prop_map(|(head, cd, tp, mark)| {
        head.into_iter().chain([cd << 4 | tp, 5, 0, 0x10 | mark, 0, 0]).collect()
    })
}

/// As an option of its own.
fn in_option(mut structure: Vec<u8>) -> Vec<u8> {
    structure[..4].copy_from_slice(&[6, 1, 0x20, 12]);
    structure
}

/// Some of them, with bytes too many or too few now and then.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(structure(), 0..3), prop_oneof![6 => Just(0usize), 1 => 1..20usize]).prop_map(
        |(some, more)| {
            let mut bytes = some.concat();
            bytes.resize(bytes.len() + more, 0x55);
            bytes
        },
    )
}

/// Hop-by-hop options with structures in them.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let head = (
        prop_oneof![8 => Just(1u8), 1 => 0..5u8],
        prop_oneof![4 => Just(0x20u8), 2 => Just(0x3e), 1 => any::<u8>()],
        prop_oneof![8 => Just(12u8), 1 => any::<u8>()],
    );
    (head, structure(), prop::option::of((structure(), 0..2u8, any::<bool>()))).prop_map(
        |((_, kind, len), one, two)| {
            let mut bytes = one;
            bytes[..4].copy_from_slice(&[6, if two.is_some() { 3 } else { 1 }, kind, len]);
            if let Some((mut two, pad, same)) = two {
                two[..4].copy_from_slice(&[1, pad, if same { kind } else { 0x20 }, len]);
                bytes.extend(two);
            }
            bytes
        },
    )
}

fn runner() -> TestRunner {
    TestRunner::new(Config { failure_persistence: None, ..Config::default() })
}

#[test]
fn a_syn_reaches_tcp_without_what_it_carried_and_is_known_if_the_codec_reads_it() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let cases = (payload(), prop_oneof![4 => Just(3u8), 1 => 0..64u8]);
        let tried = runner().run(&cases, |(payload, dscp)| {
            bench.forget();
            let packet = packet(false, Flags::SYN, dscp, &payload);
            let (verdict, out) = bench.arrives(&packet);
            prop_assert_eq!(verdict, NEXT);
            let read = QosPacket::decode(&packet);
            let sound = matches!(&read, Ok(read) if read.structures.is_some());
            prop_assert_eq!(bench.talks(), usize::from(sound));
            let signal = dscp == 3 && !payload.is_empty();
            if signal {
                // As TCP made it, and its checksums are right where they were.
                let decoded = wire::decode(&out);
                prop_assert_eq!(out.len(), packet.len() - payload.len());
                prop_assert_eq!(out[1], 0);
                prop_assert!(!sound || decoded.is_ok(), "{:?}", decoded);
            } else {
                prop_assert_eq!(&out, &packet);
            }
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
        bench.assert_no_grant();
    });
}

#[test]
fn a_header_without_a_length_is_one_of_a_large_packet_or_of_none() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        // A request for 100 Mbit/s.
        let request = 0x0000_0000_610e_0000_8080_1005_0010_0000_u128.to_be_bytes();
        let mut packet = packet(false, Flags::SYN, 3, &request);
        packet[2..4].fill(0);
        assert_eq!(bench.arrives(&packet), (NEXT, packet.clone()));
        assert_eq!(bench.talks(), 0);
        // The same with its length.
        let len = packet.len() as u16;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        bench.arrives(&packet);
        assert_eq!(bench.talks(), 1);
    });
}

#[test]
fn structures_of_no_connection_reach_no_socket_and_leave_no_trace() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let cases = (
            payload(),
            prop_oneof![4 => Just(3u8), 1 => 0..64u8],
            prop_oneof![Just(Flags::ACK), Just(Flags::ACK | Flags::FIN), Just(Flags::RST)],
        );
        let tried = runner().run(&cases, |(payload, dscp, flags)| {
            let packet = packet(false, flags, dscp, &payload);
            let (verdict, out) = bench.arrives(&packet);
            match QosPacket::decode(&packet) {
                Ok(read) if read.structures.is_some() => prop_assert_eq!(verdict, DROP),
                // Whatever else has this codepoint is somebody else's.
                Ok(_) | Err(PacketError::Payload(_)) => {
                    prop_assert_eq!(verdict, NEXT);
                    prop_assert_eq!(&out, &packet);
                }
                Err(error) => panic!("it was made here: {error}"),
            }
            prop_assert_eq!(bench.talks(), 0);
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
        bench.assert_no_grant();
    });
}

#[test]
fn hop_by_hop_options_are_taken_out_if_the_codec_reads_them_and_left_if_not() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let tried = runner().run(&(options(), any::<bool>()), |(options, syn)| {
            bench.forget();
            let plain = packet(true, if syn { Flags::SYN } else { Flags::ACK }, 0, &[]);
            let packet = with_options(plain.clone(), &options);
            let (verdict, out) = bench.arrives(&packet);
            let read = QosPacket::decode(&packet);
            let ours =
                matches!(&read, Ok(read) if read.carrier == Carrier::HopByHop && read.structures.is_some());
            match (ours, syn) {
                (true, true) => {
                    prop_assert_eq!(verdict, NEXT);
                    prop_assert_eq!(out, plain);
                    prop_assert_eq!(bench.talks(), 1);
                }
                (true, false) => prop_assert_eq!((verdict, bench.talks()), (DROP, 0)),
                // The kernel skips options that it does not know.
                (false, _) => {
                    prop_assert_eq!(verdict, NEXT);
                    prop_assert_eq!(out, packet);
                    prop_assert_eq!(bench.talks(), 0);
                }
            }
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
        bench.assert_no_grant();
    });
}

#[test]
fn any_bytes_at_all_are_survived() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let good = packet(false, Flags::SYN, 3, &[0; 16]);
        let cases =
            (prop::collection::vec((0..good.len(), any::<u8>()), 0..8), 40..good.len() + 1, any::<bool>());
        let tried = runner().run(&cases, |(changes, len, v6)| {
            let mut bytes = if v6 {
                with_options(
                    packet(true, Flags::SYN, 3, &[]),
                    &[6, 1, 0x20, 12, 0, 0, 0, 0, 0, 0, 16, 5, 0, 16, 0, 0],
                )
            } else {
                good.clone()
            };
            for (at, value) in changes {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            bytes[0] = if v6 { 0x60 | bytes[0] & 15 } else { 0x40 | bytes[0] & 15 };
            // The kernel itself refuses to try less than an IP header.
            bytes.truncate(len);
            let (verdict, _) = bench.arrives(&bytes);
            prop_assert!(verdict == NEXT || verdict == DROP);
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
        bench.assert_no_grant();
    });
}

#[test]
fn a_syn_ack_answers_what_the_codec_reads_in_the_syn_and_nothing_else() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let started = prop_oneof![
            prop_oneof![payload(), sound()].prop_map(|payload| (false, payload)),
            prop_oneof![options(), sound().prop_map(in_option)].prop_map(|options| (true, options)),
        ];
        let answered = Cell::new(0);
        let tried = runner().run(&started, |(v6, carried)| {
            bench.forget();
            let syn = if v6 {
                with_options(packet(true, Flags::SYN, 3, &[]), &carried)
            } else {
                packet(false, Flags::SYN, 3, &carried)
            };
            bench.arrives(&syn);
            let plain = syn_ack(v6, 0, &[]);
            let (verdict, out) = bench.leaves(&plain);
            prop_assert_eq!(verdict, NEXT);
            // Of two the second one is the request: a SYN/ACK has them so.
            let read = QosPacket::decode(&syn).ok().and_then(|read| read.structures);
            let asks =
                |message| matches!(message, Message::Request | Message::Renegotiate | Message::ResendStart);
            let Some(request) =
                read.and_then(|read| read.iter().filter(|one| asks(one.message)).last().copied())
            else {
                prop_assert_eq!(out, plain);
                return Ok(());
            };
            answered.set(answered.get() + 1);
            wire::decode(&out).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let said = QosPacket::decode(&out).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let said = said.structures.expect("it answers");
            prop_assert_eq!(said.count(), 1);
            let answer = said.iter().next().copied().expect("there is one");
            prop_assert_eq!(answer.message, Message::Response);
            prop_assert_eq!((answer.available, answer.guaranteed), (request.available, request.guaranteed));
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
        assert!(answered.get() > Config::default().cases / 10, "it is not told apart: {answered:?}");
        bench.assert_no_grant();
    });
}

#[test]
fn what_leaves_is_left_alone_where_nobody_asked() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let flags = prop_oneof![
            Just(Flags::SYN),
            Just(Flags::SYN | Flags::ACK),
            Just(Flags::ACK),
            Just(Flags::ACK | Flags::FIN),
            Just(Flags::RST),
        ];
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
        let cases =
            (payload(), options(), any::<bool>(), 0..64u8, flags, changes, any::<prop::sample::Index>());
        let tried = runner().run(&cases, |(payload, options, v6, dscp, flags, changes, len)| {
            let mut bytes = packet(v6, flags, dscp, if v6 { &[] } else { &payload });
            if v6 {
                bytes = with_options(bytes, &options);
            }
            // Sound half of the time, and any bytes otherwise.
            if !changes.is_empty() && dscp % 2 == 0 {
                let version = bytes[0] & 0xf0;
                for (at, value) in &changes {
                    let at = at.index(bytes.len());
                    bytes[at] = *value;
                }
                bytes[0] = version | bytes[0] & 15;
                bytes.truncate(40 + len.index(bytes.len() - 39));
            }
            let (verdict, out) = bench.leaves(&bytes);
            prop_assert_eq!((verdict, out), (NEXT, bytes));
            prop_assert_eq!(bench.talks(), 0);
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
        bench.assert_no_grant();
    });
}

#[test]
fn a_flood_of_requests_is_forgotten_and_grants_nothing() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let structure = [0, 0, 0, 0, 0x61, 0x0e, 0, 0, 0x80, 0x80, 0x10, 5, 0, 0x10, 0, 0];
        let mut syn = packet(false, Flags::SYN, 3, &structure);
        for number in 0..70_000_u32 {
            syn[12..16].copy_from_slice(&number.to_be_bytes());
            assert_eq!(bench.arrives(&syn).0, NEXT);
        }
        assert!((60_000..=65_536).contains(&bench.talks()), "{}", bench.talks());
        bench.assert_no_grant();
    });
}

/// One of the two numbers of a connection: what it sends next, or what it expects next.
#[allow(unsafe_code)]
fn next_number(socket: &Socket, queue: i32) -> u32 {
    let fd = socket.as_raw_fd();
    let set = |name: i32, value: i32| {
        // SAFETY: the value is of the length that is said, and lives across the call.
        let result = unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, name, (&raw const value).cast(), 4) };
        assert_eq!(result, 0, "option {name}");
    };
    set(libc::TCP_REPAIR, 1);
    set(libc::TCP_REPAIR_QUEUE, queue);
    let (mut number, mut len) = (0_u32, 4 as libc::socklen_t);
    // SAFETY: the value is of the length that is said, and both live across the call.
    let result = unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_QUEUE_SEQ, (&raw mut number).cast(), &raw mut len)
    };
    assert_eq!(result, 0);
    // Off, and nobody is told.
    set(libc::TCP_REPAIR, -1);
    number
}

#[test]
fn nothing_that_arrives_in_a_connection_reaches_its_socket_or_raises_its_rate() {
    if skipped() {
        return;
    }
    alone(|| {
        let bench = Bench::new();
        let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listening = common::socket(here);
        listening.bind(&here.into()).unwrap();
        listening.listen(1).unwrap();
        let client = common::socket(here);
        client.connect(&listening.local_addr().unwrap()).unwrap();
        let (server, _) = listening.accept().unwrap();
        let [near, far] =
            [server.local_addr().unwrap(), client.local_addr().unwrap()].map(|end| end.as_socket().unwrap());
        // TCP_RECV_QUEUE and TCP_SEND_QUEUE.
        let (expected, sends) = (next_number(&server, 1), next_number(&server, 2));
        let arriving = |flags, dscp, seq: u32, ack: u32, payload: &[u8]| {
            let segment = Segment { len: payload.len() as u16, ..Segment::new(flags, Seq(seq), Seq(ack)) };
            let mut bytes = Vec::new();
            let fields = IpFields { dscp, ..IpFields::default() };
            wire::encode(far, near, &fields, &segment, 0, &mut bytes).expect("it fits");
            let at = bytes.len() - payload.len();
            bytes[at..].copy_from_slice(payload);
            sum(&mut bytes);
            bytes
        };
        // A SYN makes talk of the connection, by whose key it has a grant then: 29.984 of 100 Mbit/s, and nothing asked.
        let request = [0, 0, 0, 0, 0x61, 0x0e, 0, 0, 0x80, 0x80, 0x10, 5, 0, 0x10, 0, 0];
        bench.arrives(&arriving(Flags::SYN, 3, 1, 0, &request));
        let key = bench.map("talks").keys().next().expect("there is talk");
        let flows = bench.map("flows");
        let mut granted = vec![0; flows.value_size() as usize];
        granted[16..24].copy_from_slice(&[0x61, 0x0e, 0x5d, 0xa9, 1, 0, 0, 1]);
        let rate = |value: &[u8]| {
            let word = RateWord::from_bits(u16::from_be_bytes([value[18], value[19]]));
            if value[20] == 1 { word.units() } else { 0 }
        };
        let before = rate(&granted);

        let near_to = |number: u32| {
            prop_oneof![
                12 => Just(number),
                2 => Just(number.wrapping_sub(16)),
                1 => (0..100_000_u32).prop_map(move |by| number.wrapping_add(by)),
                2 => any::<u32>(),
            ]
        };
        let cases = (prop_oneof![1 => payload(), 3 => sound()], near_to(expected), near_to(sends));
        let (cuts, kept) = (Cell::new(0), Cell::new(0));
        let tried = runner().run(&cases, |(payload, seq, ack)| {
            flows.update(&key, &granted, MapFlags::ANY).unwrap();
            let packet = arriving(Flags::ACK, 3, seq, ack, &payload);
            let (verdict, out) = bench.arrives(&packet);
            if payload.is_empty() {
                prop_assert_eq!((verdict, &out), (NEXT, &packet));
                return Ok(());
            }
            // Dropped, or without all that it carried.
            prop_assert!(verdict == DROP || out.len() == packet.len() - payload.len());
            let after = rate(&flows.lookup(&key, MapFlags::ANY).unwrap().expect("it has it still"));
            prop_assert!(after <= before, "{} kbit/s", after);
            let possible = sends.wrapping_sub(ack) < 1 << 25
                && seq.wrapping_sub(expected).wrapping_add(1 << 30) <= 1 << 31;
            if !possible {
                prop_assert_eq!((verdict, after), (DROP, before), "numbers that no packet of it can have");
            }
            let told = if after < before { &cuts } else { &kept };
            told.set(told.get() + 1);
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{error}"));
        assert!(
            cuts.get() > 0 && kept.get() > Config::default().cases / 10,
            "it is not told apart: {cuts:?} {kept:?}"
        );
    });
}
