//! Segments of a simulated end as packets of scripts, and back.

use crate::packet::Packet;
use crate::syntax::TcpOption;
use farpath_tcp::{Ecn, Flags, SackBlock, Segment, Seq, Timestamps};

/// A segment as a packet, its options in the order and with the padding of Linux's `tcp_options_write()`.
pub fn packet(segment: &Segment, local: u16, remote: u16, ttl: u8) -> Packet {
    let mut options = Vec::new();
    options.extend(segment.mss.map(TcpOption::Mss));
    match segment.timestamps {
        Some(times) => {
            if segment.sack_permitted {
                options.push(TcpOption::SackOk);
            } else {
                options.extend([TcpOption::Nop, TcpOption::Nop]);
            }
            options.push(TcpOption::Timestamps(times.value, times.echo));
        }
        None if segment.sack_permitted => options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::SackOk]),
        None => {}
    }
    if let Some(shift) = segment.window_scale {
        options.extend([TcpOption::Nop, TcpOption::WindowScale(shift)]);
    }
    if !segment.sack.is_empty() {
        let blocks = segment.sack.as_slice().iter().map(|block| (block.start.0, block.end.0)).collect();
        options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Sack(blocks)]);
    }
    Packet {
        local,
        remote,
        tos: segment.ecn as u8,
        ttl,
        seq: segment.seq.0,
        ack: if segment.flags.contains(Flags::ACK) { segment.ack.0 } else { 0 },
        flags: segment.flags.0.into(),
        window: segment.window,
        urgent: 0,
        options,
        len: segment.len,
    }
}

/// A packet as a segment. What a simulated end does not know is left out.
pub fn segment(packet: &Packet) -> Segment {
    let mut segment = Segment::new(Flags(packet.flags as u8), Seq(packet.seq), Seq(packet.ack));
    segment.len = packet.len;
    segment.window = packet.window;
    segment.ecn = Ecn::from_bits(packet.tos);
    for option in &packet.options {
        match option {
            TcpOption::Mss(mss) => segment.mss = Some(*mss),
            TcpOption::WindowScale(shift) => segment.window_scale = Some(*shift),
            TcpOption::SackOk => segment.sack_permitted = true,
            TcpOption::Sack(blocks) => {
                for &(start, end) in blocks {
                    segment.sack.push(SackBlock { start: Seq(start), end: Seq(end) });
                }
            }
            TcpOption::Timestamps(value, echo) => {
                segment.timestamps = Some(Timestamps { value: *value, echo: *echo });
            }
            TcpOption::End
            | TcpOption::Nop
            | TcpOption::Md5(_)
            | TcpOption::FastOpen(_)
            | TcpOption::FastOpenExperimental(_)
            | TcpOption::Other(_) => {}
        }
    }
    segment
}
