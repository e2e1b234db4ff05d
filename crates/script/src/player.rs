//! A script played against a machine, event by event, and what came of it.

use crate::code::{self, CodeOutcome, Value};
use crate::constants;
use crate::machine::{Begun, Machine, Network, Refusal, Returned};
use crate::packet::{ACK, FIN, PSH, Packet, SYN, Sent, flags_text, options_text};
use crate::settings::settings;
use crate::syntax::{
    Action, BodySpec, Call, Command, Event, Expression, IcmpSpec, PacketSpec, Place, Script, TcpOption,
    TcpSpec, Time, TosSpec, Way,
};
use farpath_units::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Segments that are shown of what came before a fault.
const SHOWN: usize = 10;
/// How long a packet of any time is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// How much later than it may come a packet is waited for, to say when it came.
const GRACE: Duration = Duration::from_secs(2);
/// The first port of the far end, of connections whose packets name none.
const FIRST_REMOTE_PORT: u16 = 40_000;
/// A share of a wait by which its end may be off too (packetdrill's `--tolerance_percent`), in percent.
const TOLERANCE_PERCENT: f64 = 1.0;

/// How closely what comes is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// How far times may differ; where none is given, the script's own, else 4 ms.
    pub tolerance: Option<Duration>,
}

/// Whether a device has such an MTU: from what every host takes (RFC 791, RFC 8200 section 5) to what a packet's length can be.
const fn is_mtu(mtu: u16, ipv6: bool) -> bool {
    mtu >= if ipv6 { 1280 } else { 576 }
}

impl Script {
    /// The IP that its options ask for; what they ask wrongly is said when it is played.
    pub fn network(&self) -> Network {
        let value = |name: &str| {
            self.options
                .iter()
                .rev()
                .find(|option| option.name == name)
                .and_then(|option| option.value.as_deref())
        };
        let ipv6 = value("ip_version").is_some_and(|version| version == "ipv6");
        let mtu = value("mtu").and_then(|mtu| mtu.parse().ok()).filter(|&mtu| is_mtu(mtu, ipv6));
        let address = |name: &str| value(name).and_then(|address| address.split('/').next()?.parse().ok());
        Network {
            ipv6,
            mtu: mtu.unwrap_or(Network::default().mtu),
            local: address("local_ip"),
            remote: address("remote_ip"),
            port: value("bind_port").and_then(|port| port.parse().ok()),
        }
    }
}

/// packetdrill's default.
pub const DEFAULT_TOLERANCE: Duration = Duration::from_millis(4);

/// What came of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether it passed.
    pub outcome: Outcome,
    /// The last segments of both directions, the latest last.
    pub segments: Vec<Shown>,
    /// What its code printed.
    pub printed: String,
    /// How long it took, in the machine's time.
    #[serde(with = "nanoseconds")]
    pub duration: Duration,
    /// What came in place of each packet that was expected, by the event's number.
    pub came: BTreeMap<usize, Came>,
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// All came as it says.
    Passed,
    /// Something did not.
    Failed(Fault),
    /// It asks for what is not there.
    CannotRun(Fault),
}

/// What a script ended with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The event.
    pub place: Place,
    /// What it says.
    pub expected: String,
    /// What came.
    pub found: String,
}

/// A segment that was sent or received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// When, from the script's beginning.
    #[serde(with = "nanoseconds")]
    pub at: Duration,
    /// Which way.
    pub way: Way,
    /// In the script's words and numbers.
    pub text: String,
    /// Whether it is the one at fault.
    pub fault: bool,
}

/// What came in place of a packet that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// When, from the time that the event's own time counts from.
    #[serde(with = "nanoseconds")]
    pub after: Duration,
    /// The packet, in the script's words and numbers.
    pub text: String,
}

/// A time as whole nanoseconds.
mod nanoseconds {
    use farpath_units::Duration;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_nanos())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

/// Plays a script.
pub fn play(script: &Script, machine: &mut impl Machine, comparison: &Comparison) -> Verdict {
    let began = machine.now();
    let mut player = Player {
        machine,
        began,
        tolerance: comparison.tolerance.unwrap_or(DEFAULT_TOLERANCE),
        percent: TOLERANCE_PERCENT,
        strict: false,
        flows: Vec::new(),
        current: None,
        queue: VecDeque::new(),
        blocked: BTreeMap::new(),
        segments: VecDeque::new(),
        printed: String::new(),
        came: BTreeMap::new(),
    };
    let outcome = match player.run(script, comparison) {
        Ok(()) => Outcome::Passed,
        Err(Stop::Fault(fault)) => Outcome::Failed(fault),
        Err(Stop::Cannot(fault)) => Outcome::CannotRun(fault),
    };
    let duration = player.machine.now().saturating_since(began);
    Verdict {
        outcome,
        segments: player.segments.into(),
        printed: player.printed,
        duration,
        came: player.came,
    }
}

enum Stop {
    Fault(Fault),
    Cannot(Fault),
}

type Step<T> = Result<T, Stop>;

fn fault<T>(place: Place, expected: impl Into<String>, found: impl Into<String>) -> Step<T> {
    Err(Stop::Fault(Fault { place, expected: expected.into(), found: found.into() }))
}

fn cannot(place: Place) -> impl Fn(Refusal) -> Stop {
    move |refusal| Stop::Cannot(Fault { place, expected: refusal.expected, found: refusal.found })
}

/// A connection, as the script's numbers and the wire's.
#[derive(Debug, Default)]
struct Flow {
    local: u16,
    remote: u16,
    /// Remote and local port as the script names them.
    named: Option<(u16, u16)>,
    /// Initial numbers: the script's and the wire's.
    local_isn: Option<(u32, u32)>,
    remote_isn: Option<(u32, u32)>,
    /// Whether anything but SYNs came in.
    completed: bool,
    /// Values of timestamps: the script's, and the wire's.
    timestamps: BTreeMap<u32, u32>,
    timestamp_offset: Option<u32>,
}

impl Flow {
    fn local_seq(&self, wire: u32) -> u32 {
        let (script, own) = self.local_isn.unwrap_or((0, 0));
        wire.wrapping_sub(own).wrapping_add(script)
    }

    fn remote_seq(&self, wire: u32) -> u32 {
        let (script, own) = self.remote_isn.unwrap_or((0, 0));
        wire.wrapping_sub(own).wrapping_add(script)
    }

    fn wire_ack(&self, script: u32) -> u32 {
        let (own, wire) = self.local_isn.unwrap_or((0, 0));
        script.wrapping_sub(own).wrapping_add(wire)
    }

    fn wire_seq(&self, script: u32) -> u32 {
        let (own, wire) = self.remote_isn.unwrap_or((0, 0));
        script.wrapping_sub(own).wrapping_add(wire)
    }

    fn wire_echo(&self, script: u32) -> u32 {
        match (self.timestamps.get(&script), self.timestamp_offset) {
            (Some(wire), _) => *wire,
            (None, Some(offset)) => script.wrapping_add(offset),
            (None, None) => script,
        }
    }

    /// A packet of ours in the script's numbers.
    fn in_script(&self, packet: &Packet) -> Packet {
        let mut mapped = packet.clone();
        mapped.seq = self.local_seq(packet.seq);
        mapped.ack = if packet.flags & ACK != 0 { self.remote_seq(packet.ack) } else { 0 };
        for option in &mut mapped.options {
            if let TcpOption::Sack(blocks) = option {
                for (start, end) in blocks {
                    (*start, *end) = (self.remote_seq(*start), self.remote_seq(*end));
                }
            }
        }
        mapped
    }
}

/// A call that blocks.
struct Blocked {
    call: Call,
    place: Place,
    /// When it is to end.
    until: Option<Instant>,
    since: Instant,
}

struct Player<'a, M> {
    machine: &'a mut M,
    began: Instant,
    tolerance: Duration,
    percent: f64,
    strict: bool,
    flows: Vec<Flow>,
    current: Option<usize>,
    /// What has left and was not compared yet.
    queue: VecDeque<Sent>,
    blocked: BTreeMap<u64, Blocked>,
    segments: VecDeque<Shown>,
    printed: String,
    came: BTreeMap<usize, Came>,
}

impl<M: Machine> Player<'_, M> {
    fn run(&mut self, script: &Script, comparison: &Comparison) -> Step<()> {
        self.take_options(script, comparison)?;
        self.machine.begin(script.network()).map_err(cannot(Place::default()))?;
        if let Some(command) = &script.begin {
            self.command(command)?;
        }
        self.began = self.machine.now();
        for (number, event) in script.events.iter().enumerate() {
            self.event(number, event)?;
        }
        // A call that is to end when the script has ended is waited for.
        while let Some(until) = self.blocked.values().filter_map(|blocked| blocked.until).max() {
            let until = until + self.tolerance + GRACE;
            self.pass_until(until)?;
            if let Some((_, blocked)) = self.blocked.pop_first() {
                return fault(blocked.place, "a call that ends", format!("`{}()` blocks", blocked.call.name));
            }
        }
        if let Some(command) = &script.end {
            self.command(command)?;
        }
        Ok(())
    }

    fn take_options(&mut self, script: &Script, comparison: &Comparison) -> Step<()> {
        const KNOWN: &str = "an option that is known: tolerance_usecs, tolerance_percent, strict_segments, ip_version, local_ip, \
                             remote_ip, gateway_ip, netmask_ip, mtu, bind_port, connect_port, speed, \
                             non_fatal, so_filename, verbose, debug, tcp_ts_tick_usecs or define";
        let ipv6 = script.network().ipv6;
        for option in &script.options {
            let value = option.value.as_deref().unwrap_or_default();
            let wrong = |expected: &str| -> Step<()> {
                let found = format!("`--{}={value}`", option.name);
                Err(Stop::Cannot(Fault { place: option.place, expected: expected.to_owned(), found }))
            };
            match option.name.as_str() {
                "tolerance_usecs" => match value.parse() {
                    Ok(micros) if micros <= 3_600_000_000 => {
                        self.tolerance = comparison.tolerance.unwrap_or(Duration::from_micros(micros));
                    }
                    _ => wrong("a tolerance in microseconds, of an hour at most")?,
                },
                "tolerance_percent" => match value.parse::<f64>() {
                    Ok(percent) if (0.0..=100.0).contains(&percent) => self.percent = percent,
                    _ => wrong("a tolerance of 0 to 100 percent")?,
                },
                "strict_segments" => self.strict = true,
                // Looked at by Script::network().
                "ip_version" if matches!(value, "ipv4" | "ipv6") => {}
                "ip_version" => wrong("`ipv4` or `ipv6`")?,
                "mtu" if value.parse().is_ok_and(|mtu| is_mtu(mtu, ipv6)) => {}
                "mtu" => wrong("an MTU of 576 to 65535 bytes, and 1280 at least over IPv6")?,
                "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "bind_port" | "connect_port"
                | "speed" | "non_fatal" | "verbose" | "debug" | "tcp_ts_tick_usecs" | "define" | "D" => {}
                _ => wrong(KNOWN)?,
            }
        }
        Ok(())
    }

    fn since_start(&self, at: Instant) -> Duration {
        at.saturating_since(self.began)
    }

    fn event(&mut self, number: usize, event: &Event) -> Step<()> {
        let base = self.machine.now();
        let place = event.place;
        let range = match event.time {
            Time::Absolute(at) => Some((self.began + at, self.began + at)),
            Time::AbsoluteRange(from, to) => Some((self.began + from, self.began + to)),
            Time::Relative(after) => Some((base + after, base + after)),
            Time::RelativeRange(from, to) => Some((base + from, base + to)),
            Time::Any => None,
        };
        if let Action::Packet(spec @ PacketSpec { way: Way::Out, .. }) = &event.action {
            return self.expect(number, place, spec, base, range);
        }
        if let Some((from, _)) = range {
            self.pass_until(from)?;
        }
        match &event.action {
            Action::Packet(spec) => self.inject(place, spec),
            Action::Call(call) => {
                let until = call.until.map(|until| match event.time {
                    Time::Absolute(_) | Time::AbsoluteRange(..) => self.began + until,
                    Time::Relative(_) | Time::RelativeRange(..) | Time::Any => base + until,
                });
                self.call(place, call, until)
            }
            Action::Command(command) => self.command(command),
            Action::Code(code) => self.code(code),
        }
    }

    /// Lets time pass up to `until`, whatever happens.
    fn pass_until(&mut self, until: Instant) -> Step<()> {
        while self.machine.now() < until {
            self.machine.advance(until).map_err(cannot(Place::default()))?;
            self.collect()?;
        }
        self.collect()
    }

    /// Takes what has left, and calls that have ended.
    fn collect(&mut self) -> Step<()> {
        while let Some(sent) = self.machine.take_sent() {
            self.note_sent(&sent);
            self.queue.push_back(sent);
        }
        while let Some((number, at, returned)) = self.machine.take_ended() {
            if let Some(blocked) = self.blocked.remove(&number) {
                if let Some(until) = blocked.until {
                    self.compare_times(
                        blocked.place,
                        at,
                        blocked.since,
                        (until, until),
                        "the end of the call",
                    )?;
                }
                compare_returned(blocked.place, &blocked.call, &returned)?;
            }
        }
        Ok(())
    }

    fn show(&mut self, at: Instant, way: Way, text: String) {
        if self.segments.len() == SHOWN {
            self.segments.pop_front();
        }
        let at = self.since_start(at);
        self.segments.push_back(Shown { at, way, text, fault: false });
    }

    // ---- Packets that leave ----

    /// The flow of a packet that has left; a SYN makes one.
    fn flow_of(&mut self, packet: &Packet) -> usize {
        let known =
            self.flows.iter().rposition(|flow| (flow.local, flow.remote) == (packet.local, packet.remote));
        let index = known.unwrap_or_else(|| {
            self.flows.push(Flow { local: packet.local, remote: packet.remote, ..Flow::default() });
            self.flows.len() - 1
        });
        if packet.flags & SYN != 0 || self.flows[index].local_isn.is_none() && packet.flags & 0x04 == 0 {
            self.flows[index].local_isn.get_or_insert((0, packet.seq));
            if packet.flags & ACK == 0 {
                self.current = Some(index);
            }
        }
        index
    }

    fn note_sent(&mut self, sent: &Sent) {
        let index = self.flow_of(&sent.packet);
        let text = self.flows[index].in_script(&sent.packet).text();
        self.show(sent.at, Way::Out, text);
    }

    fn expect(
        &mut self,
        number: usize,
        place: Place,
        spec: &PacketSpec,
        base: Instant,
        range: Option<(Instant, Instant)>,
    ) -> Step<()> {
        let BodySpec::Tcp(tcp) = &spec.body else {
            return Err(Stop::Cannot(Fault {
                place,
                expected: "a TCP segment that is expected".to_owned(),
                found: "another protocol".to_owned(),
            }));
        };
        plain(place, spec)?;
        let deadline = range.map_or(base + LONGEST_WAIT, |(_, to)| {
            to + self.tolerance + self.machine.timer_lateness(to.saturating_since(base)) + GRACE
        });
        let mut done = 0;
        loop {
            self.collect()?;
            let Some(sent) = self.queue.pop_front() else {
                if self.machine.now() >= deadline {
                    let waited = self.since_start(deadline);
                    let expected = format!("{} {}", range_text(range, self.began), spec_text(tcp));
                    return fault(place, expected, format!("nothing by {}", seconds(waited)));
                }
                self.machine.advance(deadline).map_err(cannot(place))?;
                continue;
            };
            let index = self.flow_of(&sent.packet);
            self.learn(index, tcp, &sent.packet);
            let mapped = self.flows[index].in_script(&sent.packet);
            if done == 0 {
                let after = sent.at.saturating_since(base);
                self.came.insert(number, Came { after, text: mapped.text() });
            }
            match compare(tcp, spec, &mapped, done, self.strict, &self.flows[index]) {
                Ok(Part::Whole) => done = tcp.len,
                Ok(Part::Some(len)) => done += len,
                Ok(Part::Beyond(len)) => {
                    let mut rest = sent.clone();
                    rest.packet.seq = rest.packet.seq.wrapping_add(len.into());
                    rest.packet.len -= len;
                    self.queue.push_front(rest);
                    done = tcp.len;
                }
                Err(what) => {
                    self.mark(&mapped);
                    let expected = format!("{} {}", range_text(range, self.began), spec_text(tcp));
                    let found = format!("{} {} ({what})", seconds(self.since_start(sent.at)), mapped.text());
                    return fault(place, expected, found);
                }
            }
            if let Some(range) = range {
                let timely = self.compare_times(place, sent.at, base, range, &spec_text(tcp));
                if timely.is_err() {
                    self.mark(&mapped);
                }
                timely?;
            }
            if done >= tcp.len {
                return Ok(());
            }
        }
    }

    /// Marks the segment at fault among those that are shown.
    fn mark(&mut self, packet: &Packet) {
        let text = packet.text();
        if let Some(shown) =
            self.segments.iter_mut().rev().find(|shown| shown.way == Way::Out && shown.text == text)
        {
            shown.fault = true;
        }
    }

    /// Initial numbers and timestamps, as far as a packet that was expected tells them.
    fn learn(&mut self, index: usize, spec: &TcpSpec, packet: &Packet) {
        let flow = &mut self.flows[index];
        if packet.flags & SYN != 0 {
            flow.local_isn = Some((spec.seq, packet.seq));
        }
        if flow.named.is_none() {
            flow.named = spec.ports.map(|(local, remote)| (remote, local));
        }
        let value = |options: &[TcpOption]| {
            options.iter().find_map(|option| match option {
                TcpOption::Timestamps(value, _) => Some(*value),
                _ => None,
            })
        };
        if let (Some(script), Some(wire)) = (spec.options.as_deref().and_then(value), value(&packet.options))
        {
            flow.timestamps.insert(script, wire);
            flow.timestamp_offset.get_or_insert(wire.wrapping_sub(script));
        }
    }

    fn compare_times(
        &mut self,
        place: Place,
        at: Instant,
        since: Instant,
        (from, to): (Instant, Instant),
        what: &str,
    ) -> Step<()> {
        let share = to.saturating_since(since).as_nanos() as f64 * self.percent / 100.0;
        let tolerance = self.tolerance.max(Duration::from_nanos(share as u64));
        let early = at + tolerance < from;
        let late = tolerance + self.machine.timer_lateness(to.saturating_since(since));
        if !early && at <= to + late {
            return Ok(());
        }
        let tolerance = if early { tolerance } else { late };
        let by = if early { from.saturating_since(at) } else { at.saturating_since(to) };
        let word = if early { "early" } else { "late" };
        let expected = format!("{} {what}", range_text(Some((from, to)), self.began));
        let found = format!(
            "it at {}, {} {word}; {} are tolerated",
            seconds(self.since_start(at)),
            seconds(by),
            seconds(tolerance)
        );
        fault(place, expected, found)
    }

    // ---- Packets that come in ----

    fn inject(&mut self, place: Place, spec: &PacketSpec) -> Step<()> {
        plain(place, spec)?;
        match &spec.body {
            BodySpec::Tcp(tcp) => self.inject_tcp(place, spec, tcp),
            BodySpec::Icmp(message) => self.inject_icmp(place, message),
            BodySpec::Udp { .. } => Err(Stop::Cannot(Fault {
                place,
                expected: "a TCP segment or an ICMP message".to_owned(),
                found: "a UDP datagram".to_owned(),
            })),
        }
    }

    fn flow_for(&mut self, spec: &TcpSpec) -> Option<usize> {
        let opens = spec.flags & (SYN | ACK) == SYN;
        let known = match spec.ports {
            Some(ports) => self.flows.iter().rposition(|flow| flow.named == Some(ports)).or_else(|| {
                // A connection that we opened, before the script has named its ports.
                self.current.filter(|&index| self.flows[index].named.is_none() && !opens)
            }),
            None => self.current,
        };
        let reused = known.filter(|&index| {
            let flow = &self.flows[index];
            let again = flow.remote_isn.is_none_or(|(script, _)| script == spec.seq) && !flow.completed;
            !opens || again
        });
        if reused.is_some() || !opens {
            return reused;
        }
        let local = spec.ports.map_or(self.machine.listening_port(), |(_, local)| local);
        let remote = spec.ports.map_or(FIRST_REMOTE_PORT + self.flows.len() as u16, |(remote, _)| remote);
        self.flows.push(Flow { local, remote, named: spec.ports, ..Flow::default() });
        Some(self.flows.len() - 1)
    }

    fn inject_tcp(&mut self, place: Place, spec: &PacketSpec, tcp: &TcpSpec) -> Step<()> {
        let Some(index) = self.flow_for(tcp) else {
            return fault(place, "a connection that the packet belongs to", "none");
        };
        self.current = Some(index);
        let flow = &mut self.flows[index];
        flow.named = flow.named.or(tcp.ports);
        if tcp.flags & SYN != 0 {
            flow.remote_isn = Some((tcp.seq, tcp.seq));
        } else {
            flow.completed = true;
        }
        let mut options = tcp.options.clone().unwrap_or_default();
        for option in &mut options {
            match option {
                TcpOption::Sack(blocks) => {
                    for (start, end) in blocks {
                        (*start, *end) = (flow.wire_ack(*start), flow.wire_ack(*end));
                    }
                }
                TcpOption::Timestamps(_, echo) if *echo != 0 => *echo = flow.wire_echo(*echo),
                _ => {}
            }
        }
        let packet = Packet {
            local: flow.local,
            remote: flow.remote,
            tos: match spec.ip.tos {
                Some(TosSpec::Ecn(ecn)) => ecn,
                Some(TosSpec::Whole(tos)) => tos,
                Some(TosSpec::Ect) => 2,
                None => 0,
            },
            ttl: spec.ip.ttl.unwrap_or(255),
            seq: flow.wire_seq(tcp.seq),
            ack: if tcp.flags & ACK != 0 { flow.wire_ack(tcp.ack.unwrap_or(0)) } else { 0 },
            flags: tcp.flags,
            window: tcp.window.unwrap_or(0),
            urgent: tcp.urgent.unwrap_or(0),
            options,
            len: tcp.len,
        };
        let now = self.machine.now();
        self.show(now, Way::In, spec_text(tcp));
        self.machine.inject(&packet).map_err(cannot(place))?;
        self.collect()
    }

    fn inject_icmp(&mut self, place: Place, message: &IcmpSpec) -> Step<()> {
        let Some(index) = self.current else {
            return fault(place, "a connection that the message is about", "none");
        };
        let flow = &self.flows[index];
        let ports = (flow.local, flow.remote);
        let seq = flow.wire_ack(message.echoed.map_or(0, |(seq, _)| seq));
        let now = self.machine.now();
        self.show(now, Way::In, format!("icmp {}", message.kind));
        self.machine.inject_icmp(ports, message, seq).map_err(cannot(place))?;
        self.collect()
    }

    // ---- The program ----

    fn call(&mut self, place: Place, call: &Call, until: Option<Instant>) -> Step<()> {
        let since = self.machine.now();
        let begun = self.machine.call(call).map_err(cannot(call.place))?;
        let ended = match begun {
            Begun::Ended(returned) => {
                if let Some(until) = until {
                    self.compare_times(place, since, since, (until, until), "the end of the call")?;
                }
                compare_returned(call.place, call, &returned)
            }
            Begun::Blocks(_) if until.is_none() => {
                fault(call.place, format!("`{}()` that returns at once", call.name), "it blocks")
            }
            Begun::Blocks(number) => {
                self.blocked.insert(number, Blocked { call: call.clone(), place, until, since });
                Ok(())
            }
        };
        self.collect()?;
        ended
    }

    fn command(&mut self, command: &Command) -> Step<()> {
        let settings = settings(&command.text).map_err(|found| {
            Stop::Cannot(Fault {
                place: command.place,
                expected: "a command that sets something: sysctl, ip route, tc qdisc, ethtool -K, defaults.sh or set_sysctls.py"
                    .to_owned(),
                found: format!("`{}`", found.trim()),
            })
        })?;
        self.machine.set(&settings).map_err(cannot(command.place))?;
        self.collect()
    }

    fn code(&mut self, block: &Command) -> Step<()> {
        let ports = self.current.map(|index| (self.flows[index].local, self.flows[index].remote));
        let machine = core::cell::RefCell::new(&mut *self.machine);
        let lookup = |name: &str| {
            let own = ports.and_then(|ports| machine.borrow_mut().information(ports, name));
            own.or_else(|| constants::value(name).map(|value| Value::Int(value.into())))
        };
        let outcome = code::run(&block.text, &lookup);
        let place = |line: u32| match line {
            0 => block.place,
            line => Place { line: block.place.line + line, column: 1 },
        };
        match outcome {
            CodeOutcome::Holds(printed) => {
                self.printed.push_str(&printed);
                Ok(())
            }
            CodeOutcome::Fails { line, assertion, message } => {
                let found = message.unwrap_or_else(|| "it does not hold".to_owned());
                fault(place(line), format!("assert {assertion}"), found)
            }
            CodeOutcome::Beyond { line, problem } => {
                let problem = problem.strip_prefix("expected ").unwrap_or(&problem);
                let (expected, found) = problem.split_once(", found ").unwrap_or((problem, "otherwise"));
                Err(Stop::Cannot(Fault {
                    place: place(line),
                    expected: expected.to_owned(),
                    found: found.to_owned(),
                }))
            }
        }
    }
}

/// Headers around a packet are beyond what any machine here sends.
fn plain(place: Place, spec: &PacketSpec) -> Step<()> {
    match spec.around.first() {
        None => Ok(()),
        Some(outer) => Err(Stop::Cannot(Fault {
            place,
            expected: "a packet without headers around it".to_owned(),
            found: format!("`{outer}`"),
        })),
    }
}

/// How much of what is expected a packet is.
enum Part {
    Whole,
    Some(u16),
    /// It has so much of it, and more behind.
    Beyond(u16),
}

/// Compares a packet, in the script's numbers, with what is expected of it once `done` bytes of that have come.
fn compare(
    spec: &TcpSpec,
    ip: &PacketSpec,
    packet: &Packet,
    done: u16,
    strict: bool,
    flow: &Flow,
) -> Result<Part, String> {
    let differs = |what: &str| Err(what.to_owned());
    if let Some((local, remote)) = spec.ports
        && flow.named.is_some_and(|named| named != (remote, local))
    {
        return differs("ports differ");
    }
    if packet.seq != spec.seq.wrapping_add(done.into()) {
        return differs("the sequence number differs");
    }
    let left = spec.len - done;
    let part = match packet.len.cmp(&left) {
        core::cmp::Ordering::Equal => Part::Whole,
        core::cmp::Ordering::Less if !strict && packet.len > 0 => Part::Some(packet.len),
        core::cmp::Ordering::Greater if !strict && left > 0 => Part::Beyond(left),
        _ => return differs("the length differs"),
    };
    // Only the last segment of those that leave together has the marks of the end; where a device cuts super-packets decides
    // which of them have PSH.
    let ends = match part {
        Part::Whole if done > 0 => PSH,
        Part::Whole => 0,
        Part::Some(_) | Part::Beyond(_) => PSH | FIN,
    };
    if packet.flags & !ends != spec.flags & !ends {
        return differs("flags differ");
    }
    if packet.flags & ACK != 0 && spec.ack.is_some_and(|ack| ack != packet.ack) {
        return differs("the acknowledgment differs");
    }
    if spec.window.is_some_and(|window| window != packet.window) {
        return differs("the window differs");
    }
    if spec.urgent.is_some_and(|urgent| urgent != packet.urgent) {
        return differs("the urgent pointer differs");
    }
    if let Some(options) = &spec.options
        && !same_options(options, &packet.options, flow)
    {
        return differs("options differ");
    }
    let ecn = packet.tos & 3;
    let tos_differs = match ip.ip.tos {
        None => false,
        Some(TosSpec::Ecn(wanted)) => ecn != wanted,
        Some(TosSpec::Ect) => ecn == 0 || ecn == 3,
        Some(TosSpec::Whole(tos)) => packet.tos != tos,
    };
    if tos_differs {
        return Err(format!("the TOS octet differs: {:#04x}", packet.tos));
    }
    if ip.ip.ttl.is_some_and(|ttl| ttl != packet.ttl) {
        return Err(format!("the TTL differs: {}", packet.ttl));
    }
    Ok(part)
}

/// The same options in the same order. The value of a timestamp is the sender's own clock, and is not compared.
fn same_options(expected: &[TcpOption], found: &[TcpOption], _flow: &Flow) -> bool {
    let same = |(expected, found): (&TcpOption, &TcpOption)| match (expected, found) {
        (TcpOption::Timestamps(_, echo), TcpOption::Timestamps(_, own)) => echo == own,
        (expected, found) => expected == found,
    };
    expected.len() == found.len() && expected.iter().zip(found).all(same)
}

fn compare_returned(place: Place, call: &Call, returned: &Returned) -> Step<()> {
    let Call { name, expected, error, .. } = call;
    let described = match &returned.error {
        Some(error) => format!("{} {error}", returned.value),
        None => returned.value.to_string(),
    };
    let same_value = match expected {
        Expression::Any => true,
        other => match other.number() {
            Some(number) => number == returned.value,
            None => {
                return Err(Stop::Cannot(Fault {
                    place,
                    expected: "a number or a constant that is known".to_owned(),
                    found: format!("`{}`", expression_text(other)),
                }));
            }
        },
    };
    if !same_value || error.is_some() && *error != returned.error {
        let wanted = expression_text(expected);
        let error = error.as_deref().map(|error| format!(" {error}")).unwrap_or_default();
        return fault(place, format!("`{name}()` = {wanted}{error}"), described);
    }
    for (argument, output) in &returned.outputs {
        if let Some(wanted) = call.arguments.get(*argument)
            && !matches(wanted, output)
        {
            let which = argument + 1;
            let expected = format!("`{name}()` with {} as argument {which}", expression_text(wanted));
            return fault(place, expected, expression_text(output));
        }
    }
    Ok(())
}

/// Whether what a call wrote is what is expected.
fn matches(expected: &Expression, found: &Expression) -> bool {
    match (expected, found) {
        (Expression::Any, _) | (_, Expression::Any) => true,
        (Expression::List(expected), Expression::List(found)) => {
            expected.len() <= found.len()
                && expected.iter().zip(found).all(|(one, other)| matches(one, other))
        }
        (Expression::Structure(expected), Expression::Structure(found)) => {
            expected.iter().enumerate().all(|(place, (name, part))| {
                let other = match name {
                    Some(name) => found.iter().find(|(own, _)| own.as_ref() == Some(name)),
                    None => found.get(place),
                };
                other.is_none_or(|(_, other)| matches(part, other))
            })
        }
        (Expression::Text(one), Expression::Text(other)) => one == other,
        (one, other) => one.number().is_some() && one.number() == other.number(),
    }
}

/// An expression as scripts write it.
pub fn expression_text(expression: &Expression) -> String {
    let list = |items: &[Expression]| items.iter().map(expression_text).collect::<Vec<_>>().join(", ");
    match expression {
        Expression::Any => "...".to_owned(),
        Expression::Number(number) => number.to_string(),
        Expression::Word(word) => word.clone(),
        Expression::Text(text) => format!("\"{text}\""),
        Expression::Apply(name, arguments) => format!("{name}({})", list(arguments)),
        Expression::Or(one, other) => format!("{}|{}", expression_text(one), expression_text(other)),
        Expression::List(items) => format!("[{}]", list(items)),
        Expression::Structure(parts) => {
            let parts: Vec<_> = parts
                .iter()
                .map(|(name, part)| match name {
                    Some(name) => format!("{name}={}", expression_text(part)),
                    None => expression_text(part),
                })
                .collect();
            format!("{{{}}}", parts.join(", "))
        }
    }
}

/// A segment as the script writes it, but for its direction.
pub fn spec_text(spec: &TcpSpec) -> String {
    let TcpSpec { flags, seq, len, ack, window, options, .. } = spec;
    let end = seq.wrapping_add(u32::from(*len));
    let ack = ack.map(|ack| format!(" ack {ack}")).unwrap_or_default();
    let window = window.map(|window| format!(" win {window}")).unwrap_or_default();
    let options = options.as_deref().map_or(" <...>".to_owned(), options_text);
    format!("{} {seq}:{end}({len}){ack}{window}{options}", flags_text(*flags))
}

/// A time in seconds, with as many digits as it has.
pub fn seconds(time: Duration) -> String {
    let nanos = time.as_nanos();
    let text = format!("{}.{:06}", nanos / 1_000_000_000, nanos / 1000 % 1_000_000);
    let text = text.trim_end_matches('0');
    let text = if text.ends_with('.') { format!("{text}0") } else { text.to_owned() };
    format!("{text} s")
}

fn range_text(range: Option<(Instant, Instant)>, began: Instant) -> String {
    match range {
        None => "*".to_owned(),
        Some((from, to)) if from == to => seconds(from.saturating_since(began)),
        Some((from, to)) => {
            format!("{}~{}", seconds(from.saturating_since(began)), seconds(to.saturating_since(began)))
        }
    }
}
