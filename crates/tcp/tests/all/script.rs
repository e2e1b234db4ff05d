//! One endpoint under a script, in virtual time: inject segments, advance, expect segments.
//!
//! Numbers are positions: 0 is a SYN, 1 the first byte of a stream. What the endpoint sends is compared as text:
//! `1:1001` is data, `1:1001 F` data with a FIN, `ack 1001 sack 2001:3001` a pure ACK, `S` and `S.` are SYN and
//! SYN/ACK, `R 5` is a reset at 5 and `R. 0 ack 1` one with an acknowledgment; `ece`, `cwr` and `ect` behind one are
//! its ECN bits. Initial sequence numbers are such
//! that every script of a few thousand bytes crosses the wrap.

use crate::{duration, time};
use farpath_tcp::config::EcnMode;
use farpath_tcp::{
    Config, Connection, Ecn, Endpoint, Flags, SackBlock, SackBlocks, Segment, Sender, Seq, Timestamps,
};
use farpath_units::{Bytes, Instant};
use std::collections::VecDeque;
use std::ops::Range;

pub const ISN: Seq = Seq(u32::MAX - 2500);
pub const PEER_ISN: Seq = Seq(u32::MAX - 1700);

/// A peer's window that is no limit.
const WIDE: u16 = 60_000;

pub struct Script {
    pub end: Connection,
    pub now: Instant,
    /// The number that the end's last SYN or SYN/ACK had.
    isn: Seq,
    /// The window field of what the peer sends.
    pub window: u16,
    /// Next position that the peer sends from, and the one it expects.
    pub peer_next: u64,
    pub peer_acks: u64,
    /// The peer's timestamp clock, where timestamps are in use, and what it echoes.
    pub timestamps: Option<Timestamps>,
    sent: VecDeque<(Instant, Segment)>,
    last: Option<Segment>,
}

/// The RFCs' defaults with round segments, nothing that waits, and a plain Reno growth.
pub fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config { mss: Bytes(1000), ..Config::default() };
    config.congestion.initial_window = 10;
    config.recovery.limited_transmit = false;
    change(&mut config);
    config
}

impl Script {
    pub fn connect(config: &Config) -> Script {
        Script::new(Connection::connect(config, ISN))
    }

    pub fn listen(config: &Config) -> Script {
        Script::new(Connection::listen(config, ISN))
    }

    fn new(end: Connection) -> Script {
        let mut script = Script {
            end,
            now: Instant::ZERO,
            isn: ISN,
            window: WIDE,
            peer_next: 0,
            peer_acks: 1,
            timestamps: None,
            sent: VecDeque::new(),
            last: None,
        };
        script.poll();
        script
    }

    /// Opened at once by a peer that takes up every option offered.
    pub fn established(config: &Config) -> Script {
        Script::established_to(config, WIDE)
    }

    /// Opened to a peer with this window.
    pub fn established_to(config: &Config, window: u16) -> Script {
        let mut t = Script::connect(config);
        t.window = window;
        let mut synack = t.syn_ack();
        if config.send.timestamps {
            t.timestamps = Some(Timestamps { value: 1000, echo: 1 });
            synack.timestamps = t.timestamps;
        }
        let asks_for_ecn = config.send.ecn == EcnMode::Request;
        t.expect(if asks_for_ecn { "S ece cwr" } else { "S" }).segment(synack).expect("ack 1");
        t
    }

    /// The SYN/ACK that answers our SYN with everything that it offers.
    pub fn syn_ack(&mut self) -> Segment {
        let config_syn = self.last_or_pending();
        let mut seg = self.syn();
        seg.flags |= Flags::ACK;
        seg.ack = ISN.advanced_by(1);
        seg.sack_permitted = config_syn.is_some_and(|syn| syn.sack_permitted);
        seg.window_scale = config_syn.and_then(|syn| syn.window_scale);
        if config_syn.is_some_and(|syn| syn.flags.contains(Flags::ECE | Flags::CWR)) {
            seg.flags |= Flags::ECE;
        }
        seg
    }

    /// The peer's SYN, with a large MSS and no other option.
    pub fn syn(&mut self) -> Segment {
        self.peer_next = 1;
        let mut seg = Segment::new(Flags::SYN, PEER_ISN, Seq(0));
        (seg.mss, seg.window) = (Some(65_000), self.window);
        seg
    }

    fn last_or_pending(&self) -> Option<Segment> {
        self.sent.back().map(|&(_, seg)| seg).or(self.last)
    }

    // ---- Time ----

    /// Advances to `moment`, running what falls due. What was sent before must have been expected.
    pub fn at(&mut self, moment: &str) -> &mut Script {
        self.at_instant(time(moment))
    }

    pub fn after(&mut self, wait: &str) -> &mut Script {
        self.at_instant(self.now + duration(wait))
    }

    fn at_instant(&mut self, moment: Instant) -> &mut Script {
        self.expect_nothing();
        assert!(moment >= self.now, "a script goes forward: {moment} is before {}", self.now);
        while let Some(due) = self.end.next_due().filter(|&due| due <= moment) {
            assert!(due >= self.now, "due at {due}, which is before {}", self.now);
            self.now = due;
            self.end.on_timer(due);
            self.poll();
            assert!(self.end.next_due().is_none_or(|next| next > due), "a timer is due again at once");
        }
        self.now = moment;
        self.end.on_timer(moment);
        self.poll();
        self
    }

    pub fn poll(&mut self) {
        while let Some(segment) = self.end.poll_segment(self.now) {
            if segment.flags.contains(Flags::SYN) {
                self.isn = segment.seq;
            }
            self.sent.push_back((self.now, segment));
            assert!(self.sent.len() < 100_000, "an endpoint that never stops sending");
        }
    }

    // ---- What the application does ----

    pub fn write(&mut self, bytes: u64) -> &mut Script {
        self.end.write(bytes);
        self.poll();
        self
    }

    pub fn read(&mut self, bytes: u64) -> &mut Script {
        assert_eq!(self.end.read(bytes), bytes, "bytes to read");
        self.poll();
        self
    }

    pub fn close(&mut self) -> &mut Script {
        self.end.close();
        self.poll();
        self
    }

    // ---- What the peer sends ----

    /// Any segment.
    pub fn segment(&mut self, segment: Segment) -> &mut Script {
        self.expect_nothing();
        self.end.on_segment(self.now, &segment);
        self.poll();
        self
    }

    /// A segment from the peer's present place: its sequence number, acknowledgment, window, timestamps.
    pub fn peer_segment(&self, flags: Flags) -> Segment {
        let mut segment = Segment::new(
            flags | Flags::ACK,
            PEER_ISN.advanced_by(self.peer_next),
            self.isn.advanced_by(self.peer_acks),
        );
        segment.window = self.window;
        segment.timestamps = self.timestamps;
        segment
    }

    pub fn ack(&mut self, position: u64) -> &mut Script {
        self.sack(position, &[])
    }

    pub fn sack(&mut self, position: u64, blocks: &[Range<u64>]) -> &mut Script {
        self.peer_acks = position;
        let mut segment = self.peer_segment(Flags::ACK);
        segment.sack = sack_blocks(blocks);
        self.segment(segment)
    }

    /// The last ACK again, `count` times.
    pub fn dup_acks(&mut self, count: usize) -> &mut Script {
        for _ in 0..count {
            let segment = self.peer_segment(Flags::ACK);
            self.end.on_segment(self.now, &segment);
            self.poll();
        }
        self
    }

    /// Payload at these positions of the peer's stream.
    pub fn data(&mut self, range: Range<u64>) -> &mut Script {
        self.data_with(Flags::ACK, range)
    }

    pub fn data_with(&mut self, flags: Flags, range: Range<u64>) -> &mut Script {
        let mut segment = self.peer_segment(flags);
        segment.seq = PEER_ISN.advanced_by(range.start);
        segment.len = (range.end - range.start) as u16;
        let fin = u64::from(flags.contains(Flags::FIN));
        self.peer_next = self.peer_next.max(range.end + fin);
        self.segment(segment)
    }

    /// ACK up to `position` with ECE.
    pub fn echo(&mut self, position: u64) -> &mut Script {
        self.peer_acks = position;
        self.segment(self.peer_segment(Flags::ECE))
    }

    /// Payload of the peer with these flags, in a packet that is marked CE or not.
    pub fn marked_data(&mut self, flags: Flags, ecn: Ecn, range: Range<u64>) -> &mut Script {
        let mut segment = self.peer_segment(flags);
        (segment.seq, segment.ecn) = (PEER_ISN.advanced_by(range.start), ecn);
        segment.len = (range.end - range.start) as u16;
        self.peer_next = self.peer_next.max(range.end);
        self.segment(segment)
    }

    /// A FIN behind what the peer has sent.
    pub fn fin(&mut self) -> &mut Script {
        let next = self.peer_next;
        self.data_with(Flags::FIN, next..next)
    }

    pub fn reset(&mut self, position: u64) -> &mut Script {
        let mut segment = self.peer_segment(Flags::RST);
        segment.seq = PEER_ISN.advanced_by(position);
        self.segment(segment)
    }

    // ---- What the endpoint sends ----

    /// What was sent since is these segments, in one text with commas.
    #[track_caller]
    pub fn expect(&mut self, expected: &str) -> &mut Script {
        let isn = self.isn;
        let sent: Vec<String> = self.take().iter().map(|(_, segment)| show(segment, isn)).collect();
        assert_eq!(sent.join(", "), expected, "at {}", self.now);
        self
    }

    /// As `expect`, each with the time at which it was sent: `3 s S, 9 s S`.
    #[track_caller]
    pub fn expect_timed(&mut self, expected: &str) -> &mut Script {
        let isn = self.isn;
        let sent: Vec<String> =
            self.take().iter().map(|(at, segment)| format!("{at} {}", show(segment, isn))).collect();
        assert_eq!(sent.join(", "), expected);
        self
    }

    #[track_caller]
    pub fn expect_nothing(&mut self) -> &mut Script {
        self.expect("")
    }

    /// Whatever was sent, it is not what this script is about.
    pub fn ignore(&mut self) -> &mut Script {
        self.take();
        self
    }

    /// Of what was sent, where the segments with PSH end.
    pub fn pushed(&mut self) -> Vec<u64> {
        let isn = self.isn;
        let sent = self.take().into_iter().filter(|(_, segment)| segment.flags.contains(Flags::PSH));
        sent.map(|(_, segment)| u64::from(segment.seq.0.wrapping_sub(isn.0)) + u64::from(segment.len))
            .collect()
    }

    fn take(&mut self) -> Vec<(Instant, Segment)> {
        self.last = self.last_or_pending();
        self.sent.drain(..).collect()
    }

    /// The last segment that was expected.
    pub fn last(&self) -> Segment {
        self.last.expect("something was sent")
    }

    // ---- What the endpoint thinks ----

    pub fn sender(&self) -> &Sender {
        self.end.sender()
    }

    pub fn cwnd(&self) -> u64 {
        self.sender().window().cwnd
    }

    pub fn ssthresh(&self) -> u64 {
        self.sender().window().ssthresh
    }
}

pub fn sack_blocks(blocks: &[Range<u64>]) -> SackBlocks {
    let mut sack = SackBlocks::EMPTY;
    for block in blocks {
        assert!(
            sack.push(SackBlock { start: ISN.advanced_by(block.start), end: ISN.advanced_by(block.end) })
        );
    }
    sack
}

fn show(segment: &Segment, isn: Seq) -> String {
    let bits = [(Flags::ECE, " ece"), (Flags::CWR, " cwr")];
    let mut text = show_plain(segment, isn);
    text.extend(bits.into_iter().filter(|&(flag, _)| segment.flags.contains(flag)).map(|(_, name)| name));
    text.push_str(match segment.ecn {
        Ecn::NotEct => "",
        Ecn::Ect0 => " ect",
        Ecn::Ect1 => " ect1",
        Ecn::Ce => " ce",
    });
    text
}

fn show_plain(segment: &Segment, isn: Seq) -> String {
    let position = |seq: Seq, isn: Seq| seq.0.wrapping_sub(isn.0);
    let start = position(segment.seq, isn);
    let ack = position(segment.ack, PEER_ISN);
    let acks = segment.flags.contains(Flags::ACK);
    if segment.flags.contains(Flags::RST) {
        return if acks { format!("R. {start} ack {ack}") } else { format!("R {start}") };
    }
    if segment.flags.contains(Flags::SYN) {
        return if acks { "S.".into() } else { "S".into() };
    }
    let fin = if segment.flags.contains(Flags::FIN) { " F" } else { "" };
    if segment.len > 0 || !fin.is_empty() {
        return format!("{start}:{}{fin}", start + u32::from(segment.len));
    }
    let blocks: Vec<String> = segment
        .sack
        .as_slice()
        .iter()
        .map(|block| format!("{}:{}", position(block.start, PEER_ISN), position(block.end, PEER_ISN)))
        .collect();
    if blocks.is_empty() { format!("ack {ack}") } else { format!("ack {ack} sack {}", blocks.join(" ")) }
}
