use super::*;
use crate::WirePacket;
use farpath_tcp::wire::{IpFields, encode};
use farpath_tcp::{Segment, Seq};
use std::net::SocketAddr;

const NEAR: &str = "10.0.0.1:40000";
const FAR: &str = "10.0.0.2:80";

struct Wire {
    clamp: WindowClamp,
    ends: PerDirection<SocketAddr>,
}

impl Wire {
    fn clamping(far_window: u64) -> Wire {
        Wire::between(NEAR, FAR, far_window)
    }

    fn between(near: &str, far: &str, far_window: u64) -> Wire {
        let address = |text: &str| text.parse().expect("an address and a port");
        Wire {
            clamp: WindowClamp::new(PerDirection { forward: None, reverse: Some(Bytes(far_window)) }),
            ends: PerDirection { forward: address(near), reverse: address(far) },
        }
    }

    /// The window field of what comes out at the other end; its checksum is verified.
    fn window(&mut self, direction: Direction, segment: &Segment) -> u16 {
        let (source, destination) = (self.ends[direction], self.ends[direction.opposite()]);
        let mut bytes = Vec::new();
        encode(source, destination, &IpFields::default(), segment, 0, &mut bytes).expect("it fits");
        self.clamp.apply(direction, VirtioHeader::default(), &mut bytes);
        let mut expected = *segment;
        let found = WirePacket::new(bytes, None, 1).decode().expect("right checksums").segment;
        expected.window = found.window;
        assert_eq!(found, expected, "nothing but the window is touched");
        found.window
    }

    fn handshake(&mut self, near_scale: Option<u8>, far_scale: Option<u8>) {
        self.window(Direction::Forward, &segment(Flags::SYN, 65_535, near_scale));
        self.window(Direction::Reverse, &segment(Flags::SYN | Flags::ACK, 1000, far_scale));
    }

    fn far_window(&mut self, window: u16) -> u16 {
        self.window(Direction::Reverse, &segment(Flags::ACK, window, None))
    }
}

fn segment(flags: Flags, window: u16, scale: Option<u8>) -> Segment {
    let mut segment = Segment::new(flags, Seq(7), Seq(8));
    (segment.window, segment.window_scale) = (window, scale);
    segment.mss = flags.contains(Flags::SYN).then_some(1460);
    segment
}

#[test]
fn an_unscaled_window_is_lowered_to_the_clamp_and_never_raised() {
    let mut wire = Wire::clamping(8760);
    wire.handshake(None, None);
    assert_eq!(
        [65_535, 8761, 8760, 8759, 0].map(|window| wire.far_window(window)),
        [8760, 8760, 8760, 8759, 0]
    );
}

#[test]
fn a_scaled_window_is_lowered_to_the_multiple_below() {
    let mut wire = Wire::clamping(8760);
    wire.handshake(Some(10), Some(7));
    assert_eq!(wire.far_window(501), 68, "68 * 128 = 8704");
    assert_eq!(wire.far_window(68), 68);
}

#[test]
fn scaling_takes_both_ends() {
    for (near, far) in [(None, Some(7)), (Some(7), None)] {
        let mut wire = Wire::clamping(8760);
        wire.handshake(near, far);
        assert_eq!(wire.far_window(65_535), 8760);
    }
}

#[test]
fn the_window_of_a_syn_is_not_scaled() {
    let mut wire = Wire::clamping(8760);
    wire.window(Direction::Forward, &segment(Flags::SYN, 65_535, Some(7)));
    let syn_ack = segment(Flags::SYN | Flags::ACK, 65_535, Some(7));
    assert_eq!(wire.window(Direction::Reverse, &syn_ack), 8760);
}

#[test]
fn a_direction_without_a_clamp_is_let_be() {
    let mut wire = Wire::clamping(100);
    assert_eq!(wire.window(Direction::Forward, &segment(Flags::SYN, 65_535, None)), 65_535);
    wire.handshake(None, None);
    assert_eq!(wire.window(Direction::Forward, &segment(Flags::ACK, 65_535, None)), 65_535);
}

#[test]
fn without_its_handshake_a_connection_is_let_be() {
    let mut wire = Wire::clamping(100);
    assert_eq!(wire.far_window(65_535), 65_535);
    wire.window(Direction::Reverse, &segment(Flags::SYN | Flags::ACK, 1000, Some(7)));
    assert_eq!(wire.far_window(65_535), 65_535, "the near host's SYN was not seen");
}

#[test]
fn both_syns_of_a_simultaneous_open_count() {
    let mut wire = Wire::clamping(8760);
    wire.window(Direction::Reverse, &segment(Flags::SYN, 1000, Some(2)));
    wire.window(Direction::Forward, &segment(Flags::SYN, 1000, Some(3)));
    assert_eq!(wire.far_window(65_535), 2190);
}

#[test]
fn addresses_and_ports_used_again_take_the_new_scale() {
    let mut wire = Wire::clamping(8760);
    wire.handshake(Some(7), Some(7));
    wire.handshake(Some(7), Some(2));
    assert_eq!(wire.far_window(65_535), 2190);
}

#[test]
fn ipv6_is_no_different() {
    let mut wire = Wire::between("[fd00::1]:40000", "[fd00::2]:80", 8760);
    wire.handshake(Some(7), Some(7));
    assert_eq!(wire.far_window(501), 68);
}

#[test]
fn a_checksum_that_is_not_finished_is_let_be() {
    let mut wire = Wire::clamping(8760);
    wire.handshake(None, None);
    let mut bytes = Vec::new();
    let whole = segment(Flags::ACK, 65_535, None);
    encode(wire.ends.reverse, wire.ends.forward, &IpFields::default(), &whole, 0, &mut bytes)
        .expect("it fits");
    let before = bytes[36..38].to_vec();
    let header = VirtioHeader {
        flags: VirtioHeader::NEEDS_CHECKSUM,
        checksum_start: 20,
        checksum_offset: 16,
        ..Default::default()
    };
    wire.clamp.apply(Direction::Reverse, header, &mut bytes);
    assert_eq!(bytes[34..36], 8760u16.to_be_bytes());
    assert_eq!(bytes[36..38], before);
}

#[test]
fn option_lists_of_any_kind_are_read_within_their_bounds() {
    assert_eq!(offer(&[1, 1, 3, 3, 9]), Offer::Scale(9));
    assert_eq!(offer(&[2, 4, 5, 180, 1, 3, 3, 7]), Offer::Scale(7));
    for none in [&[0, 3, 3, 9][..], &[], &[3], &[3, 3], &[2, 0, 3, 3, 9], &[2, 9, 1], &[3, 4, 1, 1]] {
        assert_eq!(offer(none), Offer::NoScaling, "{none:?}");
    }
}
