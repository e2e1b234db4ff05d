//! Structures in words, field by field: byte, bits, name, the bits as they stand, value, meaning.

use farpath_tia1039::{
    FieldDescription, HopByHop, Message, OptionType, RateType, RateUnit, RateWord, Source, Structure,
    Structures, describe_hop_by_hop, describe_v4,
};

fn lines(fields: &[FieldDescription]) -> Vec<String> {
    let line = |field: &FieldDescription| {
        let FieldDescription { byte, bits, name, raw, value, meaning } = field;
        format!("{byte} {bits} {name} [{raw}] {value}: {meaning}")
    };
    fields.iter().map(line).collect()
}

/// The answer to a request behind a router, and a request for the way back, as captured.
const SYN_ACK: [u8; 32] = [
    0x0a, 0x09, 0x00, 0x01, 0x5d, 0xa9, 0x00, 0x00, 0x80, 0x80, 0x20, 0x05, 0x00, 0x11, 0xa0, 0x52, //
    0x00, 0x00, 0x00, 0x00, 0x61, 0x0d, 0x00, 0x00, 0x80, 0x80, 0x10, 0x05, 0x00, 0x10, 0x00, 0x00,
];

#[test]
fn the_fields_of_a_captured_syn_ack() {
    let fields = describe_v4(&SYN_ACK, RateUnit::KbitPerS).expect("as captured");
    assert_eq!(
        lines(&fields),
        [
            "0 32 Source Address [0a090001] 10.9.0.1: the requester, as the responder sees it",
            "4 16 AR [5da9] 29.984 Mbit/s: 2^14 · (1 + 425/512) · 1000 bit/s",
            "6 16 GR [0000] 0 bit/s: none",
            "8 8 PP [80] 32: preemption priority, 0 to 63",
            "9 8 DP [80] 32: delay priority, 0 to 63",
            "10 4 CD [2] 2: response",
            "10 4 TP [0] 0: available rate",
            "11 4 CH [0] 0: forward charging",
            "11 4 BT [5] 5: bursts of 15.625 ms",
            "12 12 QoS version [001] 1: ",
            "13 4 M [1] 1: a router has processed it",
            "14 16 Source Port [a052] 41042: the requester, as the responder sees it",
            "16 32 Source Address [00000000] 0.0.0.0: none",
            "20 16 AR [610d] 99.968 Mbit/s: 2^16 · (1 + 269/512) · 1000 bit/s",
            "22 16 GR [0000] 0 bit/s: none",
            "24 8 PP [80] 32: preemption priority, 0 to 63",
            "25 8 DP [80] 32: delay priority, 0 to 63",
            "26 4 CD [1] 1: request",
            "26 4 TP [0] 0: available rate",
            "27 4 CH [0] 0: forward charging",
            "27 4 BT [5] 5: bursts of 15.625 ms",
            "28 12 QoS version [001] 1: ",
            "29 4 M [0] 0: no router has marked it",
            "30 16 Source Port [0000] 0: none"
        ]
    );
}

#[test]
fn the_fields_of_options() {
    let response = Structure {
        message: Message::Response,
        source: Source::V6 { flow: 0xabcde },
        ..Structure::request(RateWord::from_bits(0x5da9))
    };
    let request = Structure {
        rate_type: RateType::Guaranteed,
        guaranteed: RateWord::from_bits(0x5123),
        source: Source::V6 { flow: 0x1234 },
        mark: 1,
        ..Structure::request(RateWord::from_bits(0x610d))
    };
    let header = HopByHop {
        next_header: 6,
        option_type: OptionType::Tia1039,
        structures: Structures::two(response, request),
    };
    let mut bytes = [0; 32];
    let len = header.encode(&mut bytes);
    // Reserved bits of a priority are said, and ignored.
    bytes[8] |= 2;
    let fields = describe_hop_by_hop(&bytes[..len], RateUnit::KbitPerS).expect("a header");
    assert_eq!(
        lines(&fields),
        [
            "0 8 Next Header [06] 6: TCP",
            "1 8 Hdr Ext Len [03] 3: 32 bytes in all",
            "2 8 Option Type [20] 32: skip where unknown, may change on the way",
            "3 8 Option Length [0c] 12: ",
            "4 16 AR [5da9] 29.984 Mbit/s: 2^14 · (1 + 425/512) · 1000 bit/s",
            "6 16 GR [0000] 0 bit/s: none",
            "8 8 PP [82] 32: preemption priority, 0 to 63; reserved bits 10 are ignored",
            "9 8 DP [80] 32: delay priority, 0 to 63",
            "10 4 CD [2] 2: response",
            "10 4 TP [0] 0: available rate",
            "11 4 CH [0] 0: forward charging",
            "11 4 BT [5] 5: bursts of 15.625 ms",
            "12 12 QoS version [001] 1: ",
            "13 20 Flow Label [abcde] 703710: of the requester; it takes the place of M",
            "16 16 PadN [0100] 0: aligns the second option",
            "18 8 Option Type [20] 32: skip where unknown, may change on the way",
            "19 8 Option Length [0c] 12: ",
            "20 16 AR [610d] 99.968 Mbit/s: not of this type of rate",
            "22 16 GR [5123] 401 kbit/s: 2^8 · (1 + 291/512) · 1000 bit/s",
            "24 8 PP [80] 32: preemption priority, 0 to 63",
            "25 8 DP [80] 32: delay priority, 0 to 63",
            "26 4 CD [1] 1: request",
            "26 4 TP [3] 3: guaranteed rate",
            "27 4 CH [0] 0: forward charging",
            "27 4 BT [5] 5: bursts of 15.625 ms",
            "28 12 QoS version [001] 1: ",
            "29 4 M [1] 1: a router has processed it",
            "30 16 Source Flow [1234] 4660: the requester, before it moved"
        ]
    );
    bytes[0] = 17;
    assert_eq!(describe_hop_by_hop(&bytes[..len], RateUnit::KbitPerS).expect("a header")[0].meaning, "UDP");
    bytes[0] = 50;
    assert_eq!(describe_hop_by_hop(&bytes[..len], RateUnit::KbitPerS).expect("a header")[0].meaning, "");
}
