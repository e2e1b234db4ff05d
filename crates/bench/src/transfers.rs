//! Transfers of which it is known at each instant why their senders did not send, and captures of the same.

use farpath_diagnose::{Interval, Limit, Link, TcpPacket, parse, read};
use farpath_engine::{provenance, simulate_captured, simulate_watched};
use farpath_experiment::Experiment;
use farpath_path::Direction;
use farpath_sim::{FlowView, Observer, Packet, PacketEvent};
use farpath_tcp::SendLimit;
use farpath_units::Instant;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// What is simulated.
pub const SCENARIOS: [&str; 10] = [
    "receive window",
    "slow reader",
    "short queue",
    "long queue",
    "losses",
    "short file",
    "small writes",
    "Nagle",
    "send buffer",
    "paced window",
];

/// Segments of 1500 B that the path holds in a round trip.
const BDP: u64 = 200;
/// The path is busy where it delivers so much of its rate over a round trip.
const BUSY: f64 = 0.95;

/// The experiment of a scenario: the path holds [`BDP`] segments whatever its delay.
fn experiment(scenario: &str, control: &str, rtt_ms: u64) -> String {
    let rate = BDP * 1500 * 8 * 1000 / rtt_ms;
    let bytes = BDP * 1500;
    let queue = match scenario {
        "long queue" | "send buffer" => bytes * 2,
        "short queue" => bytes / 5,
        _ => bytes,
    };
    let explicit = control == "explicit rate";
    let element = if explicit { "flow-router" } else { "link" };
    let mut text = format!(
        "title = \"{scenario}\"\nhorizon = \"10000000 s\"\n[[path]]\nelement = \"{element}\"\nrate = \"{rate} bit/s\"\nqueue = \"{queue} B\"\n\
         [[path]]\nelement = \"delay\"\ndelay = \"{} us\"\n",
        rtt_ms * 500
    );
    if scenario == "losses" {
        text += "[[path]]\nelement = \"loss\"\nrate = { forward = \"0.5 %\" }\n";
    }
    let initial = (3 * rtt_ms).clamp(1000, 120_000);
    for end in ["sender", "receiver"] {
        let _ = write!(text, "[{end}]\nstack = \"linux-6\"\nrto.initial = \"{initial} ms\"\n");
        if explicit {
            let wanted = if scenario == "long queue" { rate } else { rate / 2 };
            let _ = writeln!(text, "explicit_rate.wanted = \"{wanted} bit/s\"");
        }
        let keys = match (end, scenario) {
            ("sender", "small writes") => "send.nagle = false\n".to_owned(),
            ("sender", "Nagle") => "send.nagle = true\nsend.minshall = false\n".to_owned(),
            ("sender", "send buffer") => {
                format!("send.autotuning = false\nsend.buffer = \"{} B\"\n", bytes / 4)
            }
            ("sender", "paced window") => "send.pacing = true\n".to_owned(),
            ("receiver", "receive window") => {
                format!("receive.autotuning = false\nreceive.buffer = \"{} B\"\n", bytes / 4)
            }
            ("receiver", "slow reader") => format!(
                "receive.autotuning = false\nreceive.buffer = \"{} B\"\nreceive.read_rate = \"{} bit/s\"\n",
                bytes / 2,
                rate / 40 * 8
            ),
            ("receiver", _) => "receive.autotuning = false\nreceive.buffer = \"8 MB\"\n".to_owned(),
            _ => String::new(),
        };
        text += &keys;
        if end == "sender" && !explicit {
            let _ = writeln!(text, "congestion.control = \"{control}\"");
        }
    }
    text += "[transfer]\nopener = \"sender\"\n";
    match scenario {
        "small writes" => {
            let _ = write!(
                text,
                "message = \"7000 B\"\nrate = \"{} bit/s\"\nduration = \"{} ms\"\n",
                rate / 100,
                50 * rtt_ms
            );
        }
        "Nagle" => {
            let _ = write!(
                text,
                "message = \"2000 B\"\nrate = \"{} bit/s\"\nduration = \"{} ms\"\n",
                rate / 225,
                50 * rtt_ms
            );
        }
        "short file" => text += &format!("size = \"{} B\"\n", bytes / 3),
        "slow reader" => text += &format!("size = \"{} B\"\n", bytes * 5),
        _ => text += &format!("size = \"{} B\"\n", bytes * 15),
    }
    text
}

/// What limited the sender, as it happened.
struct Truth {
    /// Whether the sender asks for a rate: then it has no slow start but in its first round trips.
    granted: bool,
    /// From when on; `None` while the connection is opened.
    limits: Vec<(u64, Option<SendLimit>)>,
    /// When something was last acknowledged or sent for the first time, and how far both were.
    progress: (u64, u64, u64),
    /// Data that reached the receiver within the last round trip: when, and bytes on the wire; and from when on the path was busy.
    arrived: VecDeque<(u64, u64)>,
    within: u64,
    busy: Vec<(u64, bool)>,
    rate: f64,
    rtt_ns: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Truth {
    fn new(rtt_ms: u64, granted: bool) -> Truth {
        Truth {
            granted,
            limits: Vec::new(),
            progress: (0, 0, 0),
            arrived: VecDeque::new(),
            within: 0,
            busy: vec![(0, false)],
            rate: (BDP * 1500 * 8 * 1000 / rtt_ms) as f64,
            rtt_ns: rtt_ms * 1_000_000,
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    /// By the same order as the ledger: what a path that is busy holds is its own, unless the peer's window or a repair does.
    fn label(limit: Option<SendLimit>, busy: bool) -> Limit {
        let Some(limit) = limit else { return Limit::Handshake };
        match limit {
            SendLimit::Repair => Limit::Loss,
            SendLimit::Ended => Limit::Closing,
            SendLimit::Application => Limit::Application,
            SendLimit::ZeroWindow => Limit::ZeroWindow,
            SendLimit::ReceiveWindow => Limit::ReceiveWindow,
            SendLimit::Nagle => Limit::Nagle,
            _ if busy => Limit::PathRate,
            SendLimit::SlowStart => Limit::SlowStart,
            SendLimit::SendBuffer | SendLimit::CongestionWindow => Limit::CongestionWindow,
            SendLimit::Pacing | SendLimit::Driver => Limit::Paced,
        }
    }

    fn intervals(&self) -> Vec<Interval> {
        let mut times: Vec<u64> =
            self.limits.iter().map(|(at, _)| *at).chain(self.busy.iter().map(|(at, _)| *at)).collect();
        times.extend([self.first_ns, self.last_ns]);
        times.retain(|at| (self.first_ns..=self.last_ns).contains(at));
        times.sort_unstable();
        times.dedup();
        let pairs = times.windows(2);
        pairs
            .map(|pair| {
                let limit = self.limits[..self.limits.partition_point(|(at, _)| *at <= pair[0])]
                    .last()
                    .and_then(|(_, limit)| *limit);
                let busy = self.busy[self.busy.partition_point(|(at, _)| *at <= pair[0]) - 1].1;
                Interval { limit: Truth::label(limit, busy), from_ns: pair[0], to_ns: pair[1] }
            })
            .collect()
    }
}

impl Observer for Truth {
    fn packet(&mut self, now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        let now = now.as_nanos();
        if event != (PacketEvent::Dropped(farpath_path::DropCause::Loss)) {
            self.first_ns = self.first_ns.min(now);
            self.last_ns = self.last_ns.max(now);
        }
        if event != PacketEvent::Received || direction != Direction::Forward || packet.segment.len == 0 {
            return;
        }
        let bytes = farpath_path::PathPacket::wire_size(packet).0;
        self.arrived.push_back((now, bytes));
        self.within += bytes;
        while let Some(&(at, bytes)) = self.arrived.front()
            && at + self.rtt_ns <= now
        {
            self.arrived.pop_front();
            self.within -= bytes;
        }
        let busy = self.within as f64 * 8e9 / self.rtt_ns as f64 >= BUSY * self.rate;
        if self.busy.last().is_none_or(|(_, before)| *before != busy) {
            // The sender meets it when it is acknowledged.
            self.busy.push((now + self.rtt_ns / 2, busy));
        }
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        let at = now.as_nanos();
        let sender = flow.sender.sender();
        let limit = flow.sender.established_at().map(|_| match sender.limit(now) {
            // Before it has seen the path's rate, a controller paces what it doubles.
            SendLimit::Pacing if !self.granted && sender.window().ssthresh == u64::MAX => {
                SendLimit::SlowStart
            }
            limit => limit,
        });
        let repairs = limit == Some(SendLimit::Repair);
        if self.limits.last().is_none_or(|(_, before)| *before != limit) {
            // The silence before a repair was the first sign of the loss.
            let from = if repairs { self.progress.0 } else { at };
            while self.limits.last().is_some_and(|(before, _)| repairs && *before >= from) {
                self.limits.pop();
            }
            self.limits.push((from, limit));
        }
        let (acked, sent) = (sender.acked(), sender.sent());
        if (acked, sent) != (self.progress.1, self.progress.2) {
            self.progress = (at, acked, sent);
        }
    }
}

/// A packet of the capture, where it passed.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Since the first, ns.
    pub at: u64,
    /// What it was.
    pub packet: TcpPacket,
}

/// A transfer, its truth, and what was seen of it.
#[derive(Debug)]
pub struct Transfer {
    /// Of [`SCENARIOS`].
    pub scenario: &'static str,
    /// Congestion control.
    pub control: &'static str,
    /// Round trip of the idle path.
    pub rtt_ms: u64,
    /// Why the sender did not send.
    pub truth: Vec<Interval>,
    /// At the sender and at the receiver, with all of their headers and with 96 B.
    pub seen: [[Vec<Seen>; 2]; 2],
    /// The data sender.
    pub data_end: std::net::SocketAddr,
    /// The capture as a pcapng file: interface 0 is at the sender, 1 at the receiver.
    pub capture: Vec<u8>,
}

/// Simulates a transfer, twice the same: with an observer of its sender, and captured.
///
/// # Panics
/// A scenario that cannot be simulated.
#[must_use]
pub fn transfer(scenario: &'static str, control: &'static str, rtt_ms: u64) -> Transfer {
    let text = experiment(scenario, control, rtt_ms);
    let experiment =
        Experiment::parse(&text, "matrix.toml", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let point = &experiment.point(0);
    let mut truth = Truth::new(rtt_ms, control == "explicit rate");
    simulate_watched(point, 1, provenance(&experiment, point), &mut truth).expect("it is simulated");
    let mut capture = Vec::new();
    simulate_captured(point, 1, provenance(&experiment, point), 128, &mut capture).expect("it is simulated");
    let mut seen = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    let mut begun = None;
    read(&capture[..], |frame| {
        let begun = *begun.get_or_insert(frame.time_ns);
        for (seen, kept) in seen.iter_mut().zip([usize::MAX, 96]) {
            let data = &frame.data[..frame.data.len().min(kept)];
            let packet = Link::from_type(frame.link_type).and_then(|link| parse(link, data, frame.length));
            if let (Some(packet), 0 | 1) = (packet, frame.interface) {
                seen[frame.interface as usize].push(Seen { at: frame.time_ns - begun, packet });
            }
        }
    })
    .expect("a capture");
    let start = truth.first_ns;
    let mut truth = truth.intervals();
    for interval in &mut truth {
        (interval.from_ns, interval.to_ns) = (interval.from_ns - start, interval.to_ns - start);
    }
    let longest = seen[0][0].iter().max_by_key(|seen| seen.packet.payload);
    let data_end = longest.expect("a packet").packet.source;
    Transfer { scenario, control, rtt_ms, truth, seen, data_end, capture }
}
