//! A script out of what one end of a connection sent and received: the program's calls are inferred, the rest is as it was.

use crate::packet::{ACK, FIN, PSH, Packet, SYN, flags_text, options_text};
use crate::syntax::{TcpOption, Way};
use core::fmt::Write as _;
use farpath_units::Duration;
use std::collections::BTreeMap;

/// A packet that one end sent ([`Way::Out`]) or received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// When, from any time on; it never goes back.
    pub at: Duration,
    /// Which way.
    pub way: Way,
    /// What.
    pub packet: Packet,
}

/// Why there is no script of a connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It does not begin with its SYN, and no script can begin in the middle.
    #[error("expected a connection from its first SYN on, found it without one")]
    NoSyn,
    /// Only one end was heard.
    #[error("expected a SYN of each end, found that of one")]
    OneEnd,
}

/// What a program of the end under test does, at the packet of this number.
#[derive(Debug, Default)]
struct Calls {
    /// Bytes written before it leaves.
    writes: BTreeMap<usize, u32>,
    /// Where the stream is ended before.
    shutdown: Option<usize>,
}

/// Writes the script that replays what one end saw. A write is taken to have been made where data leaves with nothing in flight and
/// what left before ended in PSH, of all that leaves until that is so again; data is read as it comes in order.
///
/// # Errors
/// The connection is not seen from its beginning on, or of one end alone.
pub fn record(seen: &[Seen]) -> Result<String, RecordError> {
    let opens = |way| {
        let syn = seen.iter().find(|seen| seen.way == way && seen.packet.flags & SYN != 0);
        syn.map(|seen| seen.packet.seq)
    };
    let first =
        seen.first().filter(|seen| seen.packet.flags & (SYN | ACK) == SYN).ok_or(RecordError::NoSyn)?;
    let (Some(ours), Some(theirs)) = (opens(Way::Out), opens(Way::In)) else {
        return Err(RecordError::OneEnd);
    };
    let active = first.way == Way::Out;
    let relative: Vec<Seen> = seen.iter().map(|seen| in_script(seen, ours, theirs)).collect();
    let calls = infer(&relative);
    let total: u32 = calls.writes.values().sum();
    let mut text =
        String::from("// What one end of a connection saw. Its program's calls are inferred from it.\n");
    text.push_str("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    let descriptor = if active { 3 } else { 4 };
    let buffer = format!("setsockopt(3, SOL_SOCKET, SO_SNDBUF, [{total}], 4) = 0\n");
    if total > 0 {
        let _ = write!(text, "+0 {buffer}");
    }
    if active {
        text.push_str(
            "+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 connect(3, ..., ...) = -1 EINPROGRESS\n",
        );
    } else {
        text.push_str("+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n");
    }
    let mut accepted = active;
    let mut arrived = Arrived { next: 1, beyond: BTreeMap::new() };
    let mut before = first.at;
    for (number, seen) in relative.iter().enumerate() {
        let mut after = seen.at.saturating_sub(before);
        before = before.max(seen.at);
        let mut line = |what: &str| {
            let _ = writeln!(text, "+{} {what}", core::mem::take(&mut after).as_nanos() as f64 / 1e9);
        };
        if let Some(bytes) = calls.writes.get(&number) {
            line(&format!("write({descriptor}, ..., {bytes}) = {bytes}"));
        }
        if calls.shutdown == Some(number) {
            line(&format!("shutdown({descriptor}, SHUT_WR) = 0"));
        }
        line(&packet_text(seen));
        if seen.way == Way::Out {
            continue;
        }
        if !accepted && seen.packet.flags & (SYN | ACK) == ACK {
            accepted = true;
            line("accept(3, ..., ...) = 4");
        }
        let bytes = arrived.take(&seen.packet);
        if accepted && bytes > 0 {
            line(&format!("read({descriptor}, ..., {bytes}) = {bytes}"));
        }
    }
    Ok(text)
}

/// With numbers from the initial sequence numbers on.
fn in_script(seen: &Seen, ours: u32, theirs: u32) -> Seen {
    let (own, other) = if seen.way == Way::Out { (ours, theirs) } else { (theirs, ours) };
    let mut packet = seen.packet.clone();
    packet.seq = packet.seq.wrapping_sub(own);
    if packet.flags & ACK != 0 {
        packet.ack = packet.ack.wrapping_sub(other);
    }
    for option in &mut packet.options {
        if let TcpOption::Sack(blocks) = option {
            for (start, end) in blocks {
                (*start, *end) = (start.wrapping_sub(other), end.wrapping_sub(other));
            }
        }
    }
    Seen { packet, ..seen.clone() }
}

/// The calls of a program, from packets with numbers of the script.
fn infer(relative: &[Seen]) -> Calls {
    let mut calls = Calls::default();
    // One past the highest position sent, and acknowledged.
    let (mut sent, mut acked) = (1, 1);
    let mut last_write = None;
    // A stack marks the end of what it has (RFC 9293 section 3.9.1.2); of one that never does each pause is an end.
    let data = |seen: &&Seen| seen.way == Way::Out && seen.packet.len > 0;
    let marks = relative.iter().filter(data).any(|seen| seen.packet.flags & PSH != 0);
    let mut ended = true;
    for (number, seen) in relative.iter().enumerate() {
        let packet = &seen.packet;
        if seen.way == Way::In {
            if packet.flags & ACK != 0 && packet.ack <= sent {
                acked = acked.max(packet.ack);
            }
            continue;
        }
        let end = packet.seq.wrapping_add(packet.len.into());
        let fin = packet.flags & FIN != 0;
        let fresh = packet.flags & SYN == 0 && end > sent && packet.seq <= sent;
        if fresh && packet.len > 0 {
            let write = match last_write {
                Some(write) if acked < sent || !ended => write,
                _ => number,
            };
            ended = !marks || packet.flags & (PSH | FIN) != 0;
            *calls.writes.entry(write).or_default() += end - sent;
            (last_write, sent) = (Some(write), end);
        }
        if fin && calls.shutdown.is_none() {
            // With data it must have been asked for before these were sent.
            calls.shutdown = Some(if packet.len > 0 { last_write.unwrap_or(number) } else { number });
            sent = sent.max(end.wrapping_add(1));
        }
    }
    calls
}

/// What has come in order, and beyond a hole.
struct Arrived {
    next: u32,
    beyond: BTreeMap<u32, u32>,
}

impl Arrived {
    /// Bytes in order that a packet adds.
    fn take(&mut self, packet: &Packet) -> u32 {
        let end = packet.seq.wrapping_add(packet.len.into());
        if packet.len == 0 || packet.flags & SYN != 0 {
            return 0;
        }
        let known = self.beyond.entry(packet.seq).or_insert(end);
        *known = end.max(*known);
        let before = self.next;
        while let Some((&start, &end)) = self.beyond.first_key_value()
            && start <= self.next
        {
            self.next = self.next.max(end);
            self.beyond.remove(&start);
        }
        self.next - before
    }
}

fn packet_text(seen: &Seen) -> String {
    let Packet { seq, ack, len, flags, window, tos, options, .. } = &seen.packet;
    let end = seq.wrapping_add(u32::from(*len));
    let mut text = String::from(if seen.way == Way::In { "<" } else { ">" });
    text.push_str(match tos & 3 {
        1 => " [ect1]",
        2 => " [ect0]",
        3 => " [ce]",
        _ => "",
    });
    let _ = write!(text, " {} {seq}:{end}({len})", flags_text(*flags));
    if flags & ACK != 0 {
        let _ = write!(text, " ack {ack}");
    }
    if seen.way == Way::In {
        let _ = write!(text, " win {window}");
    }
    let unknown = |option: &TcpOption| matches!(option, TcpOption::Other(_));
    match seen.way {
        // What scripts have no word for is not compared, and cannot be sent.
        Way::Out if options.iter().any(unknown) => text.push_str(" <...>"),
        _ => {
            let known: Vec<TcpOption> = options.iter().filter(|option| !unknown(option)).cloned().collect();
            text.push_str(&options_text(&known));
        }
    }
    text
}
