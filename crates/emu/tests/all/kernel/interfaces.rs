//! Two interfaces joined by packet sockets: what comes in goes out as it came.
#![cfg(target_os = "linux")]

use farpath_emu::{Frame, Namespace, Port, VirtioHeader, join};
use farpath_tcp::wire::{self, IpFields};
use farpath_tcp::{Flags, Segment, Seq};
use farpath_testing::{Need, skip};
use farpath_units::Instant;
use std::io::IoSlice;
use std::process::Command;

const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn header(protocol: [u8; 2]) -> [u8; 14] {
    let mut header = [0; 14];
    header[..12].copy_from_slice(&ADDRESSES);
    header[12..].copy_from_slice(&protocol);
    header
}

/// A TCP packet of so many bytes of payload.
fn packet(len: u16) -> Vec<u8> {
    let ends = ["10.0.0.1:80", "10.0.0.2:40000"].map(|end| end.parse().expect("an address"));
    let segment = Segment { len, ..Segment::new(Flags::ACK, Seq(7), Seq(9)) };
    let mut bytes = Vec::new();
    wire::encode(ends[0], ends[1], &IpFields::default(), &segment, 0, &mut bytes).expect("it fits");
    bytes
}

/// The next packet of a port that is ours.
fn next(port: &mut dyn Port) -> (VirtioHeader, Frame, Vec<u8>) {
    let mut buffer = vec![0; (64 << 10) + 256];
    loop {
        // A veth device hands a frame over when the kernel gets to it.
        let fd = port.fd().expect("it has one");
        let mut waiting = [nix::poll::PollFd::new(fd, nix::poll::PollFlags::POLLIN)];
        let ready = nix::poll::poll(&mut waiting, 10_000_u16).expect("it can be waited for");
        assert!(ready > 0, "nothing comes");
        let Some(received) = port.receive(Instant::ZERO, &mut buffer).expect("it can be read") else {
            continue;
        };
        let frame = received.frame.expect("it came in one");
        if frame.as_bytes()[..12] == ADDRESSES {
            return (received.header, frame, buffer[..received.len].to_vec());
        }
    }
}

#[test]
fn the_tag_of_a_vlan_passes_with_its_packet() {
    let hidden = match Namespace::new() {
        Ok(hidden) => hidden,
        Err(error) => return skip(Need::Root, error),
    };
    let went = hidden.run(|| {
        for args in
            ["link add a0 type veth peer name b0", "link set a0 up", "link set b0 up", "link set lo up"]
        {
            let made = Command::new("ip").args(args.split(' ')).status().expect("there is `ip`");
            assert!(made.success(), "ip {args}");
        }
        let [mut out, _] = join("a0", "lo").unwrap();
        let [mut into, _] = join("b0", "lo").unwrap();
        let whole = VirtioHeader::default();
        // 802.1Q with priority 5 and number 10, and 802.1ad.
        let tags = [None, Some([0x81, 0x00, 0xa0, 0x0a]), Some([0x88, 0xa8, 0x00, 0x0b])];
        for tag in tags {
            let (frame, bytes) = (Frame::new(header([8, 0]), tag), packet(1000));
            out.send(Instant::ZERO, whole, Some(frame), &[IoSlice::new(&bytes)]).expect("it goes");
            let (_, came, same) = next(&mut *into);
            assert_eq!((came, same), (frame, bytes));
            // One that stands for three, whose checksum is not finished.
            let super_packet = VirtioHeader {
                flags: VirtioHeader::NEEDS_CHECKSUM,
                gso_type: VirtioHeader::GSO_TCPV4,
                header_len: 40,
                gso_size: 1000,
                checksum_start: 20,
                checksum_offset: 16,
            };
            let bytes = packet(3000);
            out.send(Instant::ZERO, super_packet, Some(frame), &[IoSlice::new(&bytes)]).expect("it goes");
            let (header, came, same) = next(&mut *into);
            assert_eq!((came, same), (frame, bytes));
            assert_eq!((header.gso_size, header.checksum_start), (1000, 20));
        }
    });
    went.unwrap();
}
