//! One packet as a network may bring it, to everything that reads packets and keeps nothing of them: the fastest target.

use farpath_diagnose::{Link, parse};
use farpath_tcp::wire;
use farpath_tia1039::{
    HopByHop, QosPacket, RateUnit, STRUCTURE_LEN, Structure, Structures, describe_hop_by_hop, describe_v4,
    insert_v4, signal, strip_v4,
};

/// The first byte says what the rest is.
pub fn packets(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    match kind % 4 {
        0 => structures(bytes),
        1 => segment(bytes.to_vec()),
        2 => frame(kind >> 2, bytes),
        _ => signalled(bytes),
    }
}

fn structures(bytes: &[u8]) {
    if let Some(structure) =
        bytes.first_chunk::<STRUCTURE_LEN>().and_then(|bytes| Structure::decode_v4(bytes).ok())
    {
        assert_eq!(Structure::decode_v4(&structure.encode_v4()), Ok(structure), "what we write, we read");
    }
    let _ = Structures::decode_v4(bytes);
    if let Ok(header) = HopByHop::decode(bytes) {
        let mut buffer = [0; 2 * STRUCTURE_LEN];
        let length = header.encode(&mut buffer);
        let again = HopByHop::decode(&buffer[..length]).expect("what we write, we read");
        assert_eq!(again.structures, header.structures);
    }
    let _ = describe_v4(bytes, RateUnit::KbitPerS);
    let _ = describe_hop_by_hop(bytes, RateUnit::KbitPerS);
    if let Ok(packet) = QosPacket::decode(bytes) {
        let _ = (packet.flow_key(7), packet.is_encrypted());
    }
    let mut packet = bytes.to_vec();
    if let Ok(Some(structures)) = strip_v4(&mut packet) {
        insert_v4(&mut packet, &structures).expect("it was there before");
        assert_eq!(strip_v4(&mut packet), Ok(Some(structures)), "what we put in, we take out");
    }
}

/// What is read of a segment is written so that it reads back.
fn segment(mut packet: Vec<u8>) {
    mend(&mut packet);
    let _ = wire::decode(&packet);
    let Ok(read) = wire::decode_unverified(&packet) else { return };
    assert_eq!(packet[read.payload.clone()].len(), usize::from(read.segment.len));
    let mut again = Vec::new();
    // Options that others packed closer may not fit.
    if wire::encode(read.source, read.destination, &read.ip, &read.segment, 0, &mut again).is_ok() {
        let again = wire::decode(&again).expect("what we write, we read");
        assert_eq!((again.source, again.destination, again.ip), (read.source, read.destination, read.ip));
        assert_eq!(again.segment, read.segment);
    }
}

/// What a capture has of it is within it.
fn frame(link: u8, bytes: &[u8]) {
    let links = [Link::Ethernet, Link::Raw, Link::Cooked, Link::Cooked2, Link::Null];
    let length = bytes.len() as u32;
    if let Some(packet) = parse(links[usize::from(link) % links.len()], bytes, length) {
        assert!(packet.payload <= length.max(u16::MAX.into()), "{packet:?} of {length}");
    }
}

/// A packet with a structure put in front of what it carries has it.
fn signalled(bytes: &[u8]) {
    let Some((first, packet)) = bytes.split_first_chunk::<STRUCTURE_LEN>() else { return };
    let Ok(structure) = Structure::decode_v4(first) else { return };
    let mut packet = packet.to_vec();
    mend(&mut packet);
    // Of what a router knows for a packet of a flow.
    if QosPacket::decode(&packet).is_ok()
        && let Some(packet) = signal(&packet, &structure)
    {
        let read = QosPacket::decode(&packet).expect("what we write, we read");
        assert!(read.structures.is_some(), "{structure:?} in {read:?}");
    }
}

/// Lengths, and the checksum of an IPv4 header, as they must be: else nearly nothing would be read further.
fn mend(packet: &mut [u8]) {
    let Ok(whole) = u16::try_from(packet.len()) else { return };
    match packet.first().map(|first| first >> 4) {
        Some(4) if whole >= 20 => {
            let header = usize::from(packet[0] & 15) * 4;
            packet[2..4].copy_from_slice(&whole.to_be_bytes());
            packet[10..12].fill(0);
            if let Some(header) = packet.get(..header) {
                let checksum = checksum(header);
                packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
        }
        Some(6) if whole >= 40 => packet[4..6].copy_from_slice(&(whole - 40).to_be_bytes()),
        _ => {}
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u64 = bytes.chunks(2).map(word).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
