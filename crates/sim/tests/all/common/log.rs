//! What happened, as text: integers only, so that it is the same on every machine.

use farpath_path::Direction;
use farpath_sim::{End, FlowView, Observer, Packet, PacketEvent};
use farpath_tcp::{Flags, Seq};
use farpath_units::Instant;
use std::fmt::Write;

/// Every event of every flow, in the order in which the simulation tells of it.
#[derive(Debug, Default)]
pub struct EventLog(pub String);

impl Observer for EventLog {
    fn packet(&mut self, now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        writeln!(self.0, "{} {event:?} {direction} {packet:?}", now.as_nanos()).expect("it is memory");
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        let (sender, backlog) = (flow.sender.sender(), flow.backlog());
        let (window, rto) = (sender.window(), sender.rtt().rto());
        let line = (flow.number, window, sender.pipe(), rto, flow.bytes_read, backlog);
        writeln!(self.0, "{} {line:?}", now.as_nanos()).expect("it is memory");
    }
}

/// What a capture at the data sender of flow 0 shows, with every drop on the way, and the congestion window.
///
/// Times are nanoseconds. `>` goes to the data receiver, `<` comes from it. Positions are relative to the initial
/// sequence numbers: the SYN is at 0, the stream's first byte at 1. `cwnd` and `ssthresh` are given after the
/// segments that an event let out, when they changed.
#[derive(Debug, Default)]
pub struct Capture {
    isn: [Option<Seq>; 2],
    window: Option<(u64, u64)>,
    lines: Vec<(Instant, String)>,
}

impl Capture {
    /// In the order of time: a drop further down the path is known when the packet is sent.
    pub fn into_text(mut self) -> String {
        self.lines.sort_by_key(|&(at, _)| at);
        self.lines.into_iter().fold(String::new(), |text, (_, line)| text + &line + "\n")
    }

    fn relative(&self, of: End, seq: Seq) -> u32 {
        seq.0.wrapping_sub(self.isn[of as usize].map_or(seq.0, |isn| isn.0))
    }
}

impl Observer for Capture {
    fn packet(&mut self, now: Instant, event: PacketEvent, _: Direction, packet: &Packet) {
        let (from, segment) = (packet.from, &packet.segment);
        if segment.flags.contains(Flags::SYN) {
            self.isn[from as usize] = Some(segment.seq);
        }
        let what = match (event, from) {
            (PacketEvent::Sent, End::Sender) => "sent",
            (PacketEvent::Received, End::Receiver) => "received",
            (PacketEvent::Dropped(_), _) => "DROPPED",
            _ => return,
        };
        let arrow = if from == End::Sender { '>' } else { '<' };
        let start = self.relative(from, segment.seq);
        let mut line = format!("{:>12} {what:<8} {arrow} {:<3}", now.as_nanos(), flags(segment.flags));
        write!(line, " {start}:{}", start.wrapping_add(u32::from(segment.len))).expect("it is memory");
        if segment.flags.contains(Flags::ACK) {
            write!(line, " ack {}", self.relative(from.peer(), segment.ack)).expect("it is memory");
        }
        write!(line, " win {}", segment.window).expect("it is memory");
        for block in segment.sack.as_slice() {
            let (start, end) =
                (self.relative(from.peer(), block.start), self.relative(from.peer(), block.end));
            write!(line, " sack {start}:{end}").expect("it is memory");
        }
        if packet.retransmission {
            line += " again";
        }
        self.lines.push((now, line));
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        let window = flow.sender.sender().window();
        let window = (window.cwnd, window.ssthresh);
        if flow.sender.established_at().is_some() && self.window.replace(window) != Some(window) {
            let (cwnd, ssthresh) = window;
            let ssthresh = if ssthresh == u64::MAX { "none".to_owned() } else { ssthresh.to_string() };
            self.lines
                .push((now, format!("{:>12} window     cwnd {cwnd} ssthresh {ssthresh}", now.as_nanos())));
        }
    }
}

fn flags(flags: Flags) -> String {
    let letters = [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P')];
    let set: String =
        letters.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, letter)| letter).collect();
    if set.is_empty() { ".".to_owned() } else { set }
}
