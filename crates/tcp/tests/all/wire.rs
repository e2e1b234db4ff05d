//! Segments as packets: round trips, known answers, and bytes that others wrote.

use farpath_tcp::wire::{DecodeError, EncodeError, IpFields, decode, decode_unverified, encode};
use farpath_tcp::{Ecn, Flags, SackBlock, SackBlocks, Segment, Seq, Timestamps, pattern};
use proptest::prelude::*;
use std::net::SocketAddr;

const V4: [&str; 2] = ["10.8.0.1:59286", "10.8.0.2:7000"];
const V6: [&str; 2] = ["[2001:db8::1]:59286", "[2001:db8::2]:7000"];

fn ends(texts: [&str; 2]) -> [SocketAddr; 2] {
    texts.map(|text| text.parse().expect("an address and a port"))
}

fn packet(texts: [&str; 2], ip: &IpFields, segment: &Segment, offset: u64) -> Vec<u8> {
    let [source, destination] = ends(texts);
    let mut bytes = Vec::new();
    encode(source, destination, ip, segment, offset, &mut bytes).expect("it fits");
    bytes
}

fn blocks(count: u32) -> SackBlocks {
    let mut sack = SackBlocks::EMPTY;
    for n in 0..count {
        sack.push(SackBlock { start: Seq(n * 1000), end: Seq(n * 1000 + 500) });
    }
    sack
}

fn full_syn() -> Segment {
    let mut segment = Segment::new(Flags::SYN, Seq(7), Seq(0));
    (segment.mss, segment.window_scale, segment.sack_permitted) = (Some(1460), Some(10), true);
    segment.timestamps = Some(Timestamps { value: 1, echo: 0 });
    segment
}

fn full_ack() -> Segment {
    let mut segment = Segment::new(Flags::ACK, Seq(7), Seq(9));
    segment.timestamps = Some(Timestamps { value: 1, echo: 2 });
    segment.sack = blocks(3);
    segment
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn segments() -> impl Strategy<Value = Segment> {
    let head = (any::<[u32; 2]>(), any::<u16>(), any::<u8>(), any::<u8>(), 0u16..1500);
    let syn = (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>());
    let rest = (any::<Option<[u32; 2]>>(), proptest::collection::vec(any::<[u32; 2]>(), 0..=4));
    (head, syn, rest)
        .prop_map(
            |(([seq, ack], window, flags, ecn, len), (mss, window_scale, sack_permitted), (stamps, sack))| {
                let mut segment = Segment::new(Flags(flags), Seq(seq), Seq(ack));
                (segment.window, segment.len, segment.ecn) = (window, len, Ecn::from_bits(ecn));
                (segment.mss, segment.window_scale, segment.sack_permitted) =
                    (mss, window_scale, sack_permitted);
                segment.timestamps = stamps.map(|[value, echo]| Timestamps { value, echo });
                for [start, end] in sack {
                    segment.sack.push(SackBlock { start: Seq(start), end: Seq(end) });
                }
                segment
            },
        )
        .prop_filter("options that fit", |segment| segment.options_len() <= 40)
}

fn ip_fields() -> impl Strategy<Value = IpFields> {
    (any::<(u16, u8)>(), 0u8..64).prop_map(|((id, ttl), dscp)| IpFields { id, ttl, dscp })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        segment in segments(), ip in ip_fields(), v6 in any::<bool>(), offset in any::<u32>(),
    ) {
        let offset = u64::from(offset) << 8;
        let texts = if v6 { V6 } else { V4 };
        let bytes = packet(texts, &ip, &segment, offset);
        let decoded = decode(&bytes).expect("our own packet");
        prop_assert_eq!(decoded.segment, segment);
        prop_assert_eq!([decoded.source, decoded.destination], ends(texts));
        prop_assert_eq!(decoded.ip, IpFields { id: if v6 { 0 } else { ip.id }, ..ip });
        let payload = &bytes[decoded.payload];
        prop_assert_eq!((payload.len(), pattern::first_mismatch(offset, payload)), (usize::from(segment.len), None));
        if !v6 {
            prop_assert_eq!(bytes.len() as u64, segment.ipv4_size().0);
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0u8..3,
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = [0x45, 0x60, *first][usize::from(version)];
        }
        let _ = decode(&bytes);
        let _ = decode_unverified(&bytes);
    }

    /// A flipped bit is found by a checksum or makes the packet something else; in IPv6 the class, flow label and
    /// hop limit are covered by none.
    #[test]
    fn a_changed_byte_is_found(
        segment in segments(), v6 in any::<bool>(), place in any::<proptest::sample::Index>(), change in 1u8..,
    ) {
        let mut bytes = packet(if v6 { V6 } else { V4 }, &IpFields::default(), &segment, 3);
        let place = place.index(bytes.len());
        let covered = !v6 || !matches!(place, 0..4 | 7);
        bytes[place] ^= change;
        prop_assert!(decode(&bytes).is_err() || !covered, "byte {place} of {bytes:?}");
    }

    /// With its checksums made right again, what has been mutated is read or refused, and never more than there is.
    #[test]
    fn mutated_packets_are_read_within_their_bounds(
        segment in segments(), v6 in any::<bool>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in 0usize..8,
    ) {
        let mut bytes = packet(if v6 { V6 } else { V4 }, &IpFields::default(), &segment, 3);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes.truncate(bytes.len() - cut.min(bytes.len()));
        mend(&mut bytes);
        prop_assert!(decode(&bytes).is_err() || decode(&bytes) == decode_unverified(&bytes));
        if let Ok(packet) = decode_unverified(&bytes) {
            prop_assert!(packet.payload.end == bytes.len() && packet.payload.start >= 40);
            prop_assert_eq!(packet.payload.len(), usize::from(packet.segment.len));
        }
    }
}

fn ones_complement(words: impl IntoIterator<Item = u8>) -> u16 {
    let mut sum = 0u64;
    for (n, byte) in words.into_iter().enumerate() {
        sum += u64::from(byte) << if n % 2 == 0 { 8 } else { 0 };
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Makes length and checksums right, as far as there is a header to say so. Independent of the code under test.
fn mend(bytes: &mut [u8]) {
    let len = bytes.len();
    let (addresses, tcp_at) = match bytes.first().map(|first| first >> 4) {
        Some(4) if len >= 40 => {
            bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            let header = usize::from(bytes[0] & 15) * 4;
            if !(20..=len - 20).contains(&header) {
                return;
            }
            bytes[10..12].fill(0);
            let sum = ones_complement(bytes[..header].iter().copied());
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            (12..20, header)
        }
        Some(6) if len >= 60 => {
            bytes[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
            (8..40, 40)
        }
        _ => return,
    };
    let at = tcp_at + 16;
    bytes[at..at + 2].fill(0);
    let tcp_len = (len - tcp_at) as u16;
    let pseudo = bytes[addresses].iter().copied().chain([0, 6]).chain(tcp_len.to_be_bytes());
    let sum = ones_complement(pseudo.chain(bytes[tcp_at..].iter().copied()));
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

// ---- Known answers: captured from a Linux kernel, with 16 and 32 bytes of QoS Structure as payload ----

const SYN: &str = "450c004c5d8040004006c90d0a0800010a080002 e7961b582648880600000000a002faf07e5a0000 \
    020405b40402080af4562358000000000103030a 00000000610d00008080100500100000";
const SYN_ACK: &str = "450c005c000040004006267e0a0800020a080001 1b58e796fcdea3d726488807a012fe8846130000 \
    020405b40402080a49d856bcf45623580103030a 0a080001610d0000808020050010e796 00000000610d00008080100500100000";
const ACK: &str = "450c00445d8140004006c9140a0800010a080002 e7961b5826488807fcdea3d88010003f311d0000 \
    0101080af456235849d856bc 0a080002610d00008080200500101b58";

#[test]
fn packets_of_a_linux_kernel_are_read() {
    let [client, server] = ends(["10.8.0.1:59286", "10.8.0.2:7000"]);
    let bytes = hex(SYN);
    let syn = decode(&bytes).expect("right checksums");
    assert_eq!((syn.source, syn.destination), (client, server));
    assert_eq!((syn.ip.id, syn.ip.ttl, syn.ip.dscp, syn.segment.ecn), (0x5d80, 64, 3, Ecn::NotEct));
    let mut expected = Segment::new(Flags::SYN, Seq(0x2648_8806), Seq(0));
    (expected.len, expected.window, expected.mss) = (16, 64_240, Some(1460));
    (expected.window_scale, expected.sack_permitted) = (Some(10), true);
    expected.timestamps = Some(Timestamps { value: 0xf456_2358, echo: 0 });
    assert_eq!(syn.segment, expected);
    assert_eq!(bytes[syn.payload], hex("00000000610d00008080100500100000"));

    let syn_ack = decode(&hex(SYN_ACK)).expect("right checksums");
    assert_eq!((syn_ack.source, syn_ack.destination), (server, client));
    assert_eq!(syn_ack.segment.flags, Flags::SYN | Flags::ACK);
    assert_eq!((syn_ack.segment.ack, syn_ack.segment.len), (Seq(0x2648_8807), 32));

    let ack = decode(&hex(ACK)).expect("right checksums");
    assert_eq!((ack.segment.flags, ack.segment.len, ack.segment.window), (Flags::ACK, 16, 63));
    assert_eq!(ack.segment.ack, Seq(0xfcde_a3d8));
}

#[test]
fn headers_are_written_byte_for_byte_as_the_kernel_does() {
    // Its SYN, but for the payload: lengths and checksums differ, options and order do not.
    for (text, len) in [(SYN, 16), (SYN_ACK, 32), (ACK, 16)] {
        let mut theirs = hex(text);
        let packet_of_theirs = decode(&theirs).expect("right checksums");
        let mut ours = Vec::new();
        let (source, destination) = (packet_of_theirs.source, packet_of_theirs.destination);
        encode(source, destination, &packet_of_theirs.ip, &packet_of_theirs.segment, 0, &mut ours)
            .expect("it fits");
        let payload_at = theirs.len() - len;
        pattern::fill(0, &mut theirs[payload_at..]);
        mend(&mut theirs);
        assert_eq!(ours, theirs);
    }
}

#[test]
fn the_largest_sets_of_options_fit() {
    assert_eq!((full_syn().options_len(), full_ack().options_len()), (20, 40));
    for segment in [full_syn(), full_ack()] {
        for texts in [V4, V6] {
            let bytes = packet(texts, &IpFields::default(), &segment, 0);
            assert_eq!(decode(&bytes).map(|packet| packet.segment), Ok(segment));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing_behind() {
    let [source, destination] = ends(V4);
    let mut bytes = vec![1, 2, 3];
    let mut attempt = |source, segment: &Segment| {
        let result = encode(source, destination, &IpFields::default(), segment, 0, &mut bytes);
        assert_eq!(bytes, [1, 2, 3]);
        result
    };
    let mut segment = full_ack();
    segment.sack = blocks(4);
    assert_eq!(attempt(source, &segment), Err(EncodeError::Options(48)));
    assert_eq!(attempt(ends(V6)[0], &full_ack()), Err(EncodeError::MixedVersions));
    let mut segment = Segment::new(Flags::ACK, Seq(0), Seq(0));
    segment.len = 65_496;
    assert_eq!(attempt(source, &segment), Err(EncodeError::TooLong(65_536)));
    segment.len = 65_495;
    assert_eq!(decode(&packet(V4, &IpFields::default(), &segment, 0)).map(|p| p.segment.len), Ok(65_495));
}

#[test]
fn odd_lengths_are_checksummed() {
    for len in [1, 3, 999] {
        let mut segment = Segment::new(Flags::ACK, Seq(0), Seq(0));
        segment.len = len;
        for texts in [V4, V6] {
            let bytes = packet(texts, &IpFields::default(), &segment, 5);
            let mut mended = bytes.clone();
            mend(&mut mended);
            assert_eq!(bytes, mended, "two ways to the same checksums");
        }
    }
}

// ---- Named refusals ----

/// A packet with these options, which must be whole words.
fn with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = packet(V4, &IpFields::default(), &Segment::new(Flags::ACK, Seq(0), Seq(0)), 0);
    bytes.extend_from_slice(options);
    bytes[32] = ((20 + options.len()) as u8 / 4) << 4;
    mend(&mut bytes);
    bytes
}

fn plain() -> Vec<u8> {
    let mut segment = Segment::new(Flags::ACK, Seq(0), Seq(0));
    segment.len = 10;
    packet(V4, &IpFields::default(), &segment, 0)
}

#[test]
fn every_refusal_has_its_name() {
    let error = |bytes: &[u8]| decode(bytes).expect_err("refused");
    let changed = |place: usize, value: u8| {
        let mut bytes = plain();
        bytes[place] = value;
        mend(&mut bytes);
        bytes
    };
    assert_eq!(error(&[]), DecodeError::IpHeader);
    assert_eq!(error(&[0x45; 19]), DecodeError::IpHeader);
    assert_eq!(error(&[0x15; 40]), DecodeError::Version(1));
    assert_eq!(error(&plain()[..49]), DecodeError::Length { stated: 50, actual: 49 });
    assert_eq!(error(&[plain(), vec![0]].concat()), DecodeError::Length { stated: 50, actual: 51 });
    assert_eq!(error(&changed(9, 17)), DecodeError::NotTcp(17));
    assert_eq!(error(&changed(6, 0x20)), DecodeError::Fragment);
    assert_eq!(error(&changed(32, 0x40)), DecodeError::TcpHeader);
    assert_eq!(error(&changed(32, 0xf0)), DecodeError::TcpHeader);
    let mut bytes = plain();
    bytes[8] ^= 1;
    assert_eq!(error(&bytes), DecodeError::IpChecksum);
    bytes = plain();
    bytes[45] ^= 1;
    assert_eq!(error(&bytes), DecodeError::TcpChecksum);
}

#[test]
fn reserved_bits_are_ignored_and_checksummed() {
    let mut bytes = plain();
    (bytes[6], bytes[32]) = (bytes[6] | 0x80, bytes[32] | 0x0e);
    assert_eq!(decode(&bytes), Err(DecodeError::IpChecksum));
    mend(&mut bytes);
    assert!(decode(&bytes).is_ok());
    bytes[32] &= 0xf0;
    assert_eq!(decode(&bytes), Err(DecodeError::TcpChecksum));
}

#[test]
fn a_checksum_that_is_not_finished_can_be_left_alone() {
    let mut bytes = plain();
    let whole = decode(&bytes);
    bytes[36..38].fill(0);
    assert_eq!(decode(&bytes), Err(DecodeError::TcpChecksum));
    assert_eq!(decode_unverified(&bytes), whole);
    // What is not the TCP checksum is held to the same rules.
    assert_eq!(decode_unverified(&bytes[..49]), Err(DecodeError::Length { stated: 50, actual: 49 }));
    bytes[8] ^= 1;
    assert_eq!(decode_unverified(&bytes), Err(DecodeError::IpChecksum));
}

#[test]
fn options_of_others_are_skipped_and_broken_ones_refused() {
    let decoded = decode(&with_options(&[254, 6, 1, 2, 3, 4, 2, 4, 5, 180, 1, 0])).expect("an experiment");
    assert_eq!(decoded.segment.mss, Some(1460));
    let ended = decode(&with_options(&[0, 2, 3, 4])).expect("nothing follows the end");
    assert_eq!(ended.segment.mss, None);
    for broken in [
        [2, 3, 1, 1],  // MSS of a wrong length
        [3, 4, 1, 1],  // window scale
        [4, 3, 1, 1],  // SACK-permitted
        [5, 2, 1, 1],  // SACK of no block
        [8, 4, 1, 1],  // timestamps
        [77, 0, 1, 1], // a length that leads nowhere
        [77, 1, 1, 1],
        [77, 5, 1, 1], // longer than there is
        [1, 1, 1, 99], // no length at all
    ] {
        let kind = if broken[0] == 1 { broken[3] } else { broken[0] };
        assert_eq!(decode(&with_options(&broken)), Err(DecodeError::Option { kind }), "{broken:?}");
    }
}

#[test]
fn extension_headers_of_ipv6_are_skipped_up_to_tcp() {
    let mut segment = Segment::new(Flags::ACK, Seq(5), Seq(6));
    segment.len = 20;
    let whole = packet(V6, &IpFields::default(), &segment, 100);
    let extended = |next: u8, extension: &[u8]| {
        let mut bytes = whole.clone();
        bytes[6] = next;
        bytes.splice(40..40, extension.iter().copied());
        let len = (bytes.len() - 40) as u16;
        bytes[4..6].copy_from_slice(&len.to_be_bytes());
        decode(&bytes).map(|packet| (packet.segment, packet.payload))
    };
    // Hop-by-hop options, then destination options, one of 8 bytes and one of 16.
    let extension = [60, 0, 1, 4, 0, 0, 0, 0, 6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(extended(0, &extension), Ok((segment, 84..104)));
    assert_eq!(extended(0, &[6, 200, 0, 0, 0, 0, 0, 0]), Err(DecodeError::Extension));
    assert_eq!(extended(44, &[6, 0, 0, 1, 0, 0, 0, 0]), Err(DecodeError::Fragment));
    assert_eq!(extended(0, &[17, 0, 1, 4, 0, 0, 0, 0]), Err(DecodeError::NotTcp(17)));
}
