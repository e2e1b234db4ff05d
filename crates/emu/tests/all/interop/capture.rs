//! Packets as the kernel's host saw them, for tshark to judge.

use super::kernel::OUR_PORT;
use farpath_emu::{PacketEvent, Queues, Recorder, WirePacket};
use farpath_path::Direction;
use farpath_tcp::wire;
use farpath_testing::{Need, skip};
use farpath_units::Instant;
use std::io;
use std::path::PathBuf;
use std::process::Command;

/// What the far host received and sent, in order.
#[derive(Debug, Default)]
pub struct Capture {
    packets: Vec<(Instant, Direction, Vec<u8>)>,
}

impl Recorder for Capture {
    fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        _: Queues<'_>,
    ) {
        let at_far_host = match direction {
            Direction::Forward => event == PacketEvent::Received,
            Direction::Reverse => event == PacketEvent::Sent,
        };
        if at_far_host {
            self.packets.push((at, direction, packet.finished().into_owned()));
        }
    }
}

impl Capture {
    /// Segments that went this way.
    pub fn segments(&self, direction: Direction) -> Vec<farpath_tcp::Segment> {
        let of = self.packets.iter().filter(|(_, way, _)| *way == direction);
        of.map(|(_, _, bytes)| wire::decode(bytes).expect("only TCP is on this path").segment).collect()
    }

    /// One capture behind the other, for one look at both.
    pub fn append(&mut self, mut other: Capture) {
        self.packets.append(&mut other.packets);
    }

    /// tshark finds nothing but whole TCP packets with right checksums.
    #[track_caller]
    pub fn assert_sound(&self, name: &str) {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("interop-{name}.pcapng"));
        std::fs::write(&file, self.to_pcapng()).expect("written");
        let output = Command::new("tshark")
            // Nobody's own preferences.
            .env("HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-r"])
            .arg(&file)
            // The pattern is no protocol, whatever some bytes of it look like.
            .args(["-d", &format!("tcp.port=={OUR_PORT},data")])
            .args(["-T", "fields", "-e", "frame.number", "-Y"])
            .arg("!tcp || _ws.malformed || _ws.short || tcp.checksum.status != \"Good\" || ip.checksum.status == \"Bad\"")
            .output();
        match output {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let wrong = String::from_utf8_lossy(&output.stdout);
                assert!(wrong.is_empty(), "tshark finds these wrong in {}: {wrong}", file.display());
                std::fs::remove_file(&file).expect("it is ours");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                skip(Need::Tshark, "interop captures against tshark: there is no tshark to run");
            }
            Err(error) => panic!("tshark: {error}"),
        }
    }

    /// The least that makes a file (draft-ietf-opsawg-pcapng): a section, an interface of raw IP in nanoseconds, packets.
    fn to_pcapng(&self) -> Vec<u8> {
        const RAW_IP: u32 = 101;
        let mut file = Vec::new();
        block(&mut file, 0x0a0d_0d0a, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX], &[]);
        // if_tsresol, option 9 of one byte: 10^-9 s.
        block(&mut file, 1, &[RAW_IP, 0, 1 << 16 | 9, 9, 0], &[]);
        for (at, _, bytes) in &self.packets {
            let (time, len) = (at.as_nanos(), bytes.len() as u32);
            block(&mut file, 6, &[0, (time >> 32) as u32, time as u32, len, len], bytes);
        }
        file
    }
}

fn block(file: &mut Vec<u8>, kind: u32, words: &[u32], bytes: &[u8]) {
    let padded = bytes.len().next_multiple_of(4);
    let len = (12 + 4 * words.len() + padded) as u32;
    for word in [kind, len].iter().chain(words) {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(bytes);
    file.resize(file.len() + padded - bytes.len(), 0);
    file.extend_from_slice(&len.to_le_bytes());
}
