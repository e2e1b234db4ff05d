//! What holds for every structure, and for any bytes.

use farpath_tia1039::{
    BurstTolerance, Charging, DecodeError, HopByHop, Message, OptionType, Priority, QosPacket, QosVersion,
    RateType, RateUnit, RateWord, Source, Structure, Structures, describe_hop_by_hop, describe_v4,
};
use proptest::prelude::*;

fn common() -> impl Strategy<Value = Structure> {
    let codes = (0..8_u8, 0..4_u8, 0..2_u8, 0..16_u8, 1..=2_u16);
    let values = (any::<u16>(), any::<u16>(), 0..64_u8, 0..64_u8, 0..16_u8);
    (codes, values).prop_map(|((cd, tp, ch, bt, version), (ar, gr, pp, dp, mark))| {
        let version = QosVersion::from_code(version).expect("assigned");
        Structure {
            message: Message::from_code(cd).expect("assigned"),
            rate_type: RateType::from_code(tp).expect("assigned"),
            available: RateWord::from_bits(ar),
            guaranteed: RateWord::from_bits(gr),
            preemption: Priority::new(pp).expect("a level"),
            delay: Priority::new(dp).expect("a level"),
            charging: Charging::from_code(ch).expect("assigned"),
            burst: BurstTolerance::new(bt).expect("a code"),
            version,
            mark: mark.min(version.highest_mark()),
            source: Source::NONE_V4,
        }
    })
}

fn v4() -> impl Strategy<Value = Structure> {
    (common(), any::<u32>(), any::<u16>()).prop_map(|(structure, address, port)| Structure {
        source: Source::V4 { address: address.into(), port },
        ..structure
    })
}

fn v6() -> impl Strategy<Value = Structure> {
    (common(), 0..1_u32 << 20).prop_map(|(structure, flow)| match structure.message {
        Message::Response => Structure { mark: 0, source: Source::V6 { flow }, ..structure },
        _ => Structure { source: Source::V6 { flow: flow & 0xffff }, ..structure },
    })
}

fn some_of(one: impl Strategy<Value = Structure> + Clone) -> impl Strategy<Value = Structures> {
    (one.clone(), prop::option::of(one)).prop_map(|(first, second)| Structures { first, second })
}

/// 16 or 32 bytes: random ones, and well-formed ones of which one byte is another.
fn nearly(
    form: fn(&Structures) -> Vec<u8>,
    valid: BoxedStrategy<Structures>,
) -> impl Strategy<Value = Vec<u8>> {
    let changed =
        (valid, any::<prop::sample::Index>(), any::<u8>()).prop_map(move |(structures, at, byte)| {
            let mut bytes = form(&structures);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        });
    prop_oneof![changed, prop::collection::vec(any::<u8>(), 0..40)]
}

fn payload(structures: &Structures) -> Vec<u8> {
    let mut buffer = [0; 32];
    let len = structures.encode_v4(&mut buffer);
    buffer[..len].to_vec()
}

fn header(structures: &Structures) -> Vec<u8> {
    let header = HopByHop { next_header: 6, option_type: OptionType::Tia1039, structures: *structures };
    let mut buffer = [0; 32];
    let len = header.encode(&mut buffer);
    buffer[..len].to_vec()
}

proptest! {
    #[test]
    fn structures_come_back_as_they_were(structures in some_of(v4().boxed())) {
        prop_assert_eq!(Structures::decode_v4(&payload(&structures)), Ok(structures));
    }

    #[test]
    fn hop_by_hop_headers_come_back_as_they_were(structures in some_of(v6().boxed()), next_header: u8, experiment: bool) {
        let option_type = if experiment { OptionType::Experiment } else { OptionType::Tia1039 };
        let header = HopByHop { next_header, option_type, structures };
        let mut buffer = [0; 32];
        let len = header.encode(&mut buffer);
        prop_assert_eq!(HopByHop::decode(&buffer[..len]), Ok(header));
    }

    /// Bytes are refused, or written again as they were but for their reserved bits.
    #[test]
    fn any_payload_is_refused_or_kept(bytes in nearly(payload, some_of(v4().boxed()).boxed())) {
        if let Ok(structures) = Structures::decode_v4(&bytes) {
            let mut expected = bytes.clone();
            for structure in expected.chunks_mut(16) {
                structure[4] &= 0x7f;
                structure[6] &= 0x7f;
                structure[8] &= 0xfc;
                structure[9] &= 0xfc;
            }
            prop_assert_eq!(payload(&structures), expected);
            let described = describe_v4(&bytes, RateUnit::KbitPerS).expect("it was decoded");
            prop_assert_eq!(described.iter().map(|field| field.bits).sum::<usize>(), 8 * bytes.len());
        } else {
            prop_assert!(describe_v4(&bytes, RateUnit::KbitPerS).is_err());
        }
    }

    #[test]
    fn any_header_is_refused_or_kept(bytes in nearly(header, some_of(v6().boxed()).boxed())) {
        if let Ok(read) = HopByHop::decode(&bytes) {
            let mut buffer = [0; 32];
            let len = read.encode(&mut buffer);
            prop_assert_eq!(HopByHop::decode(&buffer[..len]), Ok(read));
            let described = describe_hop_by_hop(&bytes, RateUnit::BitPerS).expect("it was decoded");
            prop_assert_eq!(described.iter().map(|field| field.bits).sum::<usize>(), 8 * bytes.len());
        }
    }

    /// Whatever comes from the network is an answer, not a panic.
    #[test]
    fn no_bytes_are_a_surprise(mut bytes in prop::collection::vec(any::<u8>(), 0..120), version in 0..3_u8) {
        if let Some(first) = bytes.first_mut() {
            *first = match version { 0 => 0x45, 1 => 0x60, _ => *first };
        }
        if version == 1 && bytes.len() > 6 {
            bytes[6] = 0;
        }
        let len = bytes.len() as u16;
        match version {
            0 if len >= 4 => bytes[2..4].copy_from_slice(&len.to_be_bytes()),
            1 if len >= 40 => bytes[4..6].copy_from_slice(&(len - 40).to_be_bytes()),
            _ => {}
        }
        let _ = QosPacket::decode(&bytes);
    }
}

#[test]
fn every_way_to_be_malformed_has_its_name() {
    let sound = header(&Structures::two(
        Structure { source: Source::NONE_V6, ..Structure::default() },
        Structure { source: Source::NONE_V6, ..Structure::default() },
    ));
    let header_with = |at: usize, byte: u8| {
        let mut bytes = sound.clone();
        bytes[at] = byte;
        HopByHop::decode(&bytes).expect_err("refused")
    };
    assert_eq!(header_with(1, 1), DecodeError::ExtensionLength { found: 1, actual: 32 });
    assert_eq!(header_with(2, 0x05), DecodeError::OptionType { at: 2, found: 5 });
    assert_eq!(header_with(3, 11), DecodeError::OptionLength { at: 3, found: 11 });
    assert_eq!(header_with(16, 0), DecodeError::Padding { at: 16, found: [0, 0] });
    assert_eq!(header_with(18, 0x3e), DecodeError::MixedTypes { at: 18, expected: 0x20, found: 0x3e });
    assert_eq!(header_with(26, 0xf0), DecodeError::Message { at: 26, found: 15 });
    assert_eq!(header_with(28, 0x01), DecodeError::Version { at: 28, found: 0x011 });
    let message = header_with(1, 1).to_string();
    assert_eq!(message, "Hdr Ext Len (byte 1): 1 is a header of 16 bytes, and there are 32");

    let payload_with = |at: usize, byte: u8| {
        let mut bytes = Structure::default().encode_v4();
        bytes[at] = byte;
        Structure::decode_v4(&bytes).expect_err("refused")
    };
    assert_eq!(payload_with(10, 0x80), DecodeError::Message { at: 10, found: 8 });
    assert_eq!(payload_with(10, 0x14), DecodeError::RateType { at: 10, found: 4 });
    assert_eq!(payload_with(11, 0x25), DecodeError::Charging { at: 11, found: 2 });
    assert_eq!(payload_with(13, 0x30), DecodeError::Version { at: 12, found: 3 });
    assert_eq!(payload_with(13, 0x12), DecodeError::Mark { at: 13, found: 2 });
    let mut two = payload(&Structures::two(Structure::default(), Structure::default()));
    two[26] = 0xf0;
    assert_eq!(Structures::decode_v4(&two), Err(DecodeError::Message { at: 26, found: 15 }));
    assert_eq!(Structures::decode_v4(&[0; 17]), Err(DecodeError::Length { found: 17 }));
}

#[test]
fn counting_marks_stops_at_fifteen() {
    let mut structure = Structure { version: QosVersion::Counting, ..Structure::default() };
    for router in 1..=20 {
        structure = structure.marked();
        assert_eq!(structure.mark, router.min(15));
    }
    assert_eq!(Structure::default().marked().marked().mark, 1);
}

#[test]
fn burst_tolerance_is_half_a_second_halved_by_each_code() {
    let nanos = |code| BurstTolerance::new(code).expect("a code").time().as_nanos();
    assert_eq!([nanos(0), nanos(5), nanos(9), nanos(15)], [500_000_000, 15_625_000, 976_562, 15_258]);
    assert_eq!(BurstTolerance::new(16), None);
}

#[test]
fn an_option_of_another_length_or_version_is_refused_by_its_place() {
    let structure =
        Structure { message: Message::Response, ..Structure::request(RateWord::from_bits(0x5da9)) };
    let structures = Structures::two(structure, structure);
    let header = HopByHop { next_header: 6, option_type: OptionType::Tia1039, structures };
    let mut valid = [0; 32];
    assert_eq!(header.encode(&mut valid), 32);
    // Behind two bytes of the header the first, behind two of padding the second: its type, and its length.
    for at in [3, 19] {
        let mut bytes = valid;
        bytes[at] = 11;
        assert_eq!(HopByHop::decode(&bytes), Err(DecodeError::OptionLength { at, found: 11 }));
    }
    // Twelve bits.
    for at in [12, 28] {
        let mut bytes = valid;
        (bytes[at], bytes[at + 1]) = (0x7f, 0xf0);
        assert_eq!(HopByHop::decode(&bytes), Err(DecodeError::Version { at, found: 0x7ff }));
    }
}

#[test]
fn a_word_is_written_in_hexadecimal_as_it_is_on_the_wire() {
    assert_eq!(format!("{:04x}", RateWord::from_bits(0x5da9)), "5da9");
}
