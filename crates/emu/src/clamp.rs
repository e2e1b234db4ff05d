//! The receive window that a host announces, lowered on its way.
//!
//! `ip route ... window` and `TCP_WINDOW_CLAMP` no longer hold a window down (Linux 6.18: 8760 B in the SYN, then
//! 65 535 B), and a receive buffer that does moves its window about. A middle that rewrites the field is exact:
//! no segment announces more than the clamp, and one that announces less passes untouched.
//!
//! How exact: the field counts in steps of `2^scale`, and the largest multiple that is not above the clamp is written.
//! Without window scaling, and in SYNs, whose windows are never scaled (RFC 7323 §2.2), that is the clamp itself;
//! with Linux' usual scale of 7, a clamp of 8760 B becomes 8704 B. The right edge of the window never moves back
//! because of it: acknowledgments do not go back, and neither does an acknowledgment plus a constant.

use crate::headers::{self, Content, Headers, tcp, u16_at};
use crate::{VirtioHeader, checksum};
use farpath_path::{Direction, PerDirection};
use farpath_tcp::Flags;
use farpath_units::Bytes;
use std::collections::HashMap;

/// Lowers windows. It has to see the handshakes: where it has not, it does not know the scale and leaves windows be.
#[derive(Debug)]
pub(crate) struct WindowClamp {
    most: PerDirection<Option<Bytes>>,
    connections: HashMap<Connection, PerDirection<Offer>>,
}

/// Addresses and ports, those of the near host first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Connection {
    addresses: [[u8; 16]; 2],
    ports: [[u8; 2]; 2],
}

/// What a host's SYN said of window scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Offer {
    #[default]
    NotSeen,
    NoScaling,
    Scale(u8),
}

/// RFC 7323 §2.3: a larger one counts as this.
const LARGEST_SCALE: u8 = 14;
/// Option kinds (IANA, TCP parameters).
const END: u8 = 0;
const NOP: u8 = 1;
const WINDOW_SCALE: u8 = 3;

impl WindowClamp {
    /// Segments that go a direction announce `most` of it at the most.
    pub fn new(most: PerDirection<Option<Bytes>>) -> WindowClamp {
        WindowClamp { most, connections: HashMap::new() }
    }

    /// Lowers the window of a packet, or a super-packet, that goes `direction`. What is no TCP segment passes.
    pub fn apply(&mut self, direction: Direction, header: VirtioHeader, packet: &mut [u8]) {
        if self.most.forward.is_none() && self.most.reverse.is_none() {
            return;
        }
        let Ok(Content::Tcp(headers)) = headers::inspect(packet) else { return };
        let flags = Flags(packet[headers.tcp_at + tcp::FLAGS]);
        let connection = Connection::from_packet(packet, headers, direction);
        let scale = if flags.contains(Flags::SYN) {
            let offers = self.connections.entry(connection).or_default();
            offers[direction] = offer(&packet[headers.tcp_at + headers::TCP_LEN..headers.payload_at]);
            Some(0)
        } else {
            self.connections.get(&connection).and_then(|offers| offers.scale(direction))
        };
        if let (Some(most), Some(scale)) = (self.most[direction], scale) {
            let field = u16::try_from(most.0 >> scale).unwrap_or(u16::MAX);
            lower(packet, headers, header, field);
        }
    }
}

trait Scale {
    /// The shift of windows that go `direction`: none unless both ends offered scaling (RFC 7323 §2.2); `None` where a
    /// SYN was not seen.
    fn scale(&self, direction: Direction) -> Option<u8>;
}

impl Scale for PerDirection<Offer> {
    fn scale(&self, direction: Direction) -> Option<u8> {
        match (self[direction], self[direction.opposite()]) {
            (Offer::NotSeen, _) | (_, Offer::NotSeen) => None,
            (Offer::Scale(own), Offer::Scale(_)) => Some(own.min(LARGEST_SCALE)),
            _ => Some(0),
        }
    }
}

impl Connection {
    fn from_packet(packet: &[u8], headers: Headers, direction: Direction) -> Connection {
        let addresses = headers.addresses(packet);
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        let address = |bytes: &[u8]| {
            let mut address = [0; 16];
            address[..bytes.len()].copy_from_slice(bytes);
            address
        };
        let ports = &packet[headers.tcp_at..][tcp::PORTS];
        let mut connection = Connection {
            addresses: [address(source), address(destination)],
            ports: [[ports[0], ports[1]], [ports[2], ports[3]]],
        };
        if direction == Direction::Reverse {
            connection.addresses.reverse();
            connection.ports.reverse();
        }
        connection
    }
}

fn offer(mut options: &[u8]) -> Offer {
    while let [kind, rest @ ..] = options {
        options = match (*kind, rest) {
            (END, _) => break,
            (NOP, _) => rest,
            (WINDOW_SCALE, [3, scale, ..]) => return Offer::Scale(*scale),
            (_, [len, ..]) if *len >= 2 => options.get(usize::from(*len)..).unwrap_or_default(),
            _ => break,
        };
    }
    Offer::NoScaling
}

/// Writes `field` in place of a larger window. A checksum that is not finished covers no window yet: its field holds the
/// sum of the pseudo-header alone.
fn lower(packet: &mut [u8], headers: Headers, header: VirtioHeader, field: u16) {
    let tcp_header = &mut packet[headers.tcp_at..];
    let announced = u16_at(tcp_header, tcp::WINDOW.start);
    if announced <= field {
        return;
    }
    tcp_header[tcp::WINDOW].copy_from_slice(&field.to_be_bytes());
    if header.flags & VirtioHeader::NEEDS_CHECKSUM == 0 {
        let checksum = checksum::update(u16_at(tcp_header, tcp::CHECKSUM.start), announced, field);
        tcp_header[tcp::CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
