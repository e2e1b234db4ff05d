//! Sockets of a simulated end: system calls in Linux's manner around [`farpath_tcp::Connection`].

pub(crate) mod calls;
mod memory;
mod readiness;
mod wire;

use crate::code::Value;
use crate::icmp;
use crate::machine::{Begun, Machine, Network, Refusal, Returned, wheel_lateness};
use crate::packet::{Packet, Sent, URG};
use crate::settings::Setting;
use crate::syntax::{Call, IcmpSpec};
use calls::Waiting;
use farpath_tcp::config::{EcnMode, SuperPackets, TickExpiry};
use farpath_tcp::{CloseReason, Config, Connection, Endpoint, Seq, State};
use farpath_units::{Bytes, Duration, Instant};
use memory::send_memory;
use readiness::Epoll;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Port that connections are made to where nothing names one.
const LISTENING_PORT: u16 = 8080;
/// First initial sequence number, and what each connection adds: others than 0, as a kernel's are.
const FIRST_ISN: u32 = 1_000_000;
const ISN_STEP: u32 = 64_000_000;
/// Most packets and timers of one script, and most connections.
const MAX_STEPS: u64 = 4_000_000;
const MAX_SOCKETS: usize = 1000;
/// Most descriptors of a script.
const MAX_DESCRIPTORS: usize = 1000;
/// The largest receive buffer of packetdrill's `defaults.sh`, by which the window's shift is 8.
const DEFAULTS_RECEIVE_BUFFER: u64 = 15_728_640;

/// What is set of a socket before it has a connection, and after.
#[derive(Debug, Clone, Default)]
struct SocketOptions {
    nonblocking: bool,
    no_delay: bool,
    cork: bool,
    max_segment: Option<u64>,
    send_buffer: Option<u64>,
    receive_buffer: Option<u64>,
    user_timeout: Option<Duration>,
    congestion: Option<String>,
    linger: Option<i64>,
    report_queue: bool,
    /// `TCP_NOTSENT_LOWAT`; zero is the sysctl.
    not_sent: u64,
    /// Those that are remembered and told, and nothing more.
    others: BTreeMap<(i64, i64), i64>,
}

#[derive(Debug)]
enum Descriptor {
    Fresh(SocketOptions),
    Listening {
        options: SocketOptions,
        ready: VecDeque<usize>,
    },
    Connection(usize),
    Epoll(Epoll),
    /// A file that is sent.
    File,
    /// An end of a pipe: what is moved into it is gone.
    Pipe,
}

#[derive(Debug)]
struct Socket {
    connection: Connection,
    local: u16,
    remote: u16,
    options: SocketOptions,
    descriptor: Option<i64>,
    /// The listener that it came by, until it is accepted.
    listener: Option<i64>,
    queued: bool,
    shut_read: bool,
    shut_write: bool,
    /// Bytes of the stream that were read, and the place in it of the last urgent byte, if that was not passed yet.
    read: u64,
    urgent: Option<u64>,
    /// No program has it any more.
    orphan: bool,
    /// What its buffered stream takes of the send buffer, where that counts memory.
    memory: Option<farpath_tcp::SendMemory>,
    /// An error that is to be told.
    error: Option<&'static str>,
    error_told: bool,
    /// An error that is told in place of a time-out: what ICMP said of a connection that was open (`sk_err_soft`).
    soft_error: Option<&'static str>,
}

/// A simulated end with sockets.
#[derive(Debug)]
pub struct Simulated {
    now: Instant,
    config: Config,
    descriptors: BTreeMap<i64, Descriptor>,
    sockets: Vec<Socket>,
    sent: VecDeque<Sent>,
    ended: VecDeque<(u64, Instant, Returned)>,
    waiting: Vec<Waiting>,
    /// Sockets whose writes wait for room.
    waiting_for_room: BTreeSet<usize>,
    calls: u64,
    /// A queueing discipline that takes nothing.
    blocked_device: bool,
    /// `tcp_wmem`, and `tcp_notsent_lowat`.
    send_memory: [u64; 3],
    not_sent: u64,
    /// `tcp_min_tso_segs`.
    least_super_packet: u64,
    ipv6: bool,
    /// Packets and timers that are left to it.
    steps: u64,
}

impl Simulated {
    /// An end with this stack.
    pub fn new(config: &Config) -> Simulated {
        Simulated {
            // A connection of time 0 would have timestamps that say nothing.
            now: Instant::from_nanos(1_000_000_000),
            config: config.clone(),
            descriptors: BTreeMap::new(),
            sockets: Vec::new(),
            sent: VecDeque::new(),
            ended: VecDeque::new(),
            waiting: Vec::new(),
            waiting_for_room: BTreeSet::new(),
            calls: 0,
            blocked_device: false,
            send_memory: [4096, 16_384, config.send.buffer.map_or(u64::MAX, |buffer| buffer.0)],
            not_sent: u64::MAX,
            least_super_packet: 0,
            ipv6: false,
            steps: MAX_STEPS,
        }
    }

    /// The same, which gives up after so many packets and timers.
    pub fn with_limit(config: &Config, steps: u64) -> Simulated {
        Simulated { steps, ..Simulated::new(config) }
    }

    fn within_limits(&self) -> Result<(), Refusal> {
        if self.steps == 0 {
            return Err(Refusal::new(format!("{MAX_STEPS} packets and timers at most"), "more"));
        }
        if self.sockets.len() > MAX_SOCKETS {
            return Err(Refusal::new(format!("{MAX_SOCKETS} connections at most"), "more"));
        }
        Ok(())
    }

    fn isn(&self) -> Seq {
        Seq(FIRST_ISN.wrapping_add(ISN_STEP.wrapping_mul(self.sockets.len() as u32)))
    }

    /// The stack with what a socket's options change.
    fn config_of(&self, options: &SocketOptions) -> Result<Config, Refusal> {
        let mut config = self.config.clone();
        if options.no_delay {
            config.send.nagle = false;
        }
        if let Some(max) = options.max_segment {
            config.mss = config.mss.min(Bytes(max));
        }
        if self.counts_memory() {
            // It is counted here, by what the program writes at once.
            config.send.buffer = None;
        } else if let Some(buffer) = options.send_buffer {
            config.send.buffer = Some(Bytes(buffer));
        }
        if let Some(buffer) = options.receive_buffer {
            config.receive.buffer = Bytes(buffer);
        }
        if let Some(name) = &options.congestion {
            set_congestion(&mut config, name)?;
        }
        Ok(config)
    }

    /// Whether the send buffer is one of memory, as Linux's.
    fn counts_memory(&self) -> bool {
        self.config.send.super_packets != SuperPackets::Off
    }

    fn add_socket(&mut self, mut connection: Connection, ports: (u16, u16), options: SocketOptions) -> usize {
        connection.keep_times(self.now);
        connection.set_user_timeout(options.user_timeout);
        connection.set_least_super_packet(self.least_super_packet);
        let memory = self.counts_memory().then(|| send_memory(options.send_buffer, self.send_memory));
        self.sockets.push(Socket {
            connection,
            local: ports.0,
            remote: ports.1,
            options,
            descriptor: None,
            listener: None,
            queued: false,
            shut_read: false,
            shut_write: false,
            read: 0,
            urgent: None,
            orphan: false,
            memory,
            error: None,
            error_told: false,
            soft_error: None,
        });
        self.sockets.len() - 1
    }

    /// Sends what may leave, and ends calls that have waited for what is there now.
    fn settle(&mut self) {
        loop {
            for index in 0..self.sockets.len() {
                self.send_from(index);
                self.note_state(index);
            }
            if !self.end_calls() {
                return;
            }
        }
    }

    fn send_from(&mut self, index: usize) {
        let socket = &mut self.sockets[index];
        socket.connection.set_device_full(self.blocked_device);
        while self.steps > 0
            && let Some(segment) = socket.connection.poll_segment(self.now)
        {
            self.steps -= 1;
            if socket.connection.sender().ended_super_packet() {
                socket.update_memory();
            }
            let packet = wire::packet(&segment, socket.local, socket.remote, socket.connection.ttl());
            // What cannot be tried again is lost with it.
            if !self.blocked_device {
                self.sent.push_back(Sent { at: self.now, packet });
            }
        }
        socket.update_memory();
    }

    /// A connection that has begun is to be accepted; one that has failed has an error.
    fn note_state(&mut self, index: usize) {
        let socket = &mut self.sockets[index];
        if let Some(listener) = socket.listener
            && !socket.queued
            && socket.connection.established_at().is_some()
        {
            socket.queued = true;
            if let Some(Descriptor::Listening { ready, .. }) = self.descriptors.get_mut(&listener) {
                ready.push_back(index);
            }
        }
        let socket = &mut self.sockets[index];
        if socket.error.is_none() && !socket.error_told {
            socket.error = match socket.connection.closed().map(|(reason, _)| reason) {
                Some(CloseReason::Refused) => Some("ECONNREFUSED"),
                Some(CloseReason::Reset) => Some("ECONNRESET"),
                Some(CloseReason::RetriesExhausted | CloseReason::ConnectTimedOut) => {
                    Some(socket.soft_error.unwrap_or("ETIMEDOUT"))
                }
                Some(CloseReason::Finished | CloseReason::Aborted) | None => None,
            };
        }
    }

    fn find(&self, ports: (u16, u16)) -> Option<usize> {
        self.sockets.iter().rposition(|socket| (socket.local, socket.remote) == ports)
    }

    /// Data behind what has been read in order is refused by an end that no program reads (RFC 9293 §3.10.7.4, RFC 2525 §2.17;
    /// Linux's `tcp_rcv_state_process()`).
    fn refuses_data(&self, index: usize, packet: &Packet) -> bool {
        let socket = &self.sockets[index];
        let connection = &socket.connection;
        let closing = matches!(connection.state(), State::FinWait1 | State::FinWait2 | State::Closing);
        closing
            && (socket.orphan || socket.shut_read)
            && packet.len > 0
            && connection.takes_as_new(&wire::segment(packet))
    }
}

fn set_congestion(config: &mut Config, name: &str) -> Result<(), Refusal> {
    use farpath_tcp::config::CongestionControlKind;
    let Some(control) = CongestionControlKind::of_linux(name) else {
        let known = CongestionControlKind::ALL.iter().filter_map(|kind| kind.linux_name());
        let known: Vec<_> = known.map(|name| format!("`{name}`")).collect();
        return Err(Refusal::new(known.join(" or "), format!("congestion control `{name}`")));
    };
    config.congestion.control = control;
    Ok(())
}

impl Machine for Simulated {
    fn begin(&mut self, network: Network) -> Result<(), Refusal> {
        let (usual, mss) = (u64::from(Network::default().mss()), u64::from(network.mss()));
        // A stack whose segments are as long as the device allows has the device's; another one keeps its own where it fits.
        self.config.mss =
            if self.config.mss.0 == usual { Bytes(mss) } else { self.config.mss.min(Bytes(mss)) };
        self.ipv6 = network.ipv6;
        Ok(())
    }

    fn timer_lateness(&self, wait: Duration) -> Duration {
        match self.config.rto.tick_expiry {
            TickExpiry::TimerWheel => wheel_lateness(wait, self.config.rto.tick),
            TickExpiry::RoundedUp | TickExpiry::Counted => Duration::ZERO,
        }
    }

    fn now(&mut self) -> Instant {
        self.now
    }

    fn advance(&mut self, until: Instant) -> Result<(), Refusal> {
        while self.sent.is_empty() && self.ended.is_empty() {
            self.within_limits()?;
            self.steps = self.steps.saturating_sub(1);
            let due = self.sockets.iter().filter_map(|socket| socket.connection.next_due()).min();
            let due = Instant::earliest(due, self.waiting.iter().filter_map(Waiting::due).min());
            match due {
                Some(due) if due <= until => self.now = self.now.max(due),
                _ => {
                    self.now = self.now.max(until);
                    break;
                }
            }
            for socket in &mut self.sockets {
                socket.connection.on_timer(self.now);
            }
            self.settle();
        }
        Ok(())
    }

    fn take_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    fn take_ended(&mut self) -> Option<(u64, Instant, Returned)> {
        self.ended.pop_front()
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), Refusal> {
        self.within_limits()?;
        let ports = (packet.local, packet.remote);
        let segment = wire::segment(packet);
        let known = self.find(ports).filter(|&index| {
            let opens = packet.flags & 0x16 == 0x02;
            !(opens && self.sockets[index].connection.closed().is_some())
        });
        let index = match known {
            Some(index) => index,
            None => {
                let listener = self.descriptors.iter().find_map(|(number, descriptor)| match descriptor {
                    Descriptor::Listening { options, .. } => Some((*number, options.clone())),
                    _ => None,
                });
                let (listener, options) = match listener {
                    Some((number, options)) => (Some(number), options),
                    None => (None, SocketOptions::default()),
                };
                let config = self.config_of(&options)?;
                let mut connection = Connection::listen(&config, self.isn());
                if listener.is_none() {
                    connection.abort(self.now);
                }
                let index = self.add_socket(connection, ports, options);
                self.sockets[index].listener = listener;
                index
            }
        };
        if self.refuses_data(index, packet) {
            // tcp_reset(): the answer takes its numbers from what it answers (RFC 9293 §3.10.7.1).
            self.sockets[index].connection.forget(self.now);
        }
        let socket = &mut self.sockets[index];
        let unread = socket.connection.readable();
        let start = socket.connection.receiver().next();
        socket.connection.on_segment(self.now, &segment);
        // tcp_check_urg(): the pointer is behind the urgent byte.
        if packet.flags & URG != 0 && packet.urgent > 0 && socket.connection.receiver().next() > start {
            let place = socket.read + unread + u64::from(packet.urgent) - 1;
            socket.urgent = Some(place);
        }
        self.settle();
        Ok(())
    }

    /// What Linux's `tcp_v4_err()` does: an opening ends with the error; a connection that is open remembers it, and has it told when
    /// it gives up (RFC 1122 section 4.2.3.9, RFC 5461).
    fn inject_icmp(&mut self, ports: (u16, u16), message: &IcmpSpec, _seq: u32) -> Result<(), Refusal> {
        let (kind, code) = icmp::numbers(message, self.ipv6)?;
        if (kind, code) == if self.ipv6 { (2, 0) } else { (3, 4) } {
            return Err(Refusal::new(
                "an ICMP error that leaves the segments' size: a simulated path has one MTU",
                format!("`icmp {}`", message.kind),
            ));
        }
        let Some(index) = self.find(ports) else { return Ok(()) };
        let socket = &mut self.sockets[index];
        let name = if message.kind == "unreachable" && !self.ipv6 {
            icmp::error_name(message)
        } else {
            "EHOSTUNREACH"
        };
        match socket.connection.state() {
            State::SynSent | State::SynReceived => {
                socket.error = Some(name);
                socket.connection.forget(self.now);
            }
            _ => socket.soft_error = Some(name),
        }
        self.settle();
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<Begun, Refusal> {
        self.within_limits()?;
        let begun = self.system_call(call)?;
        self.settle();
        Ok(begun)
    }

    fn set(&mut self, settings: &[Setting]) -> Result<(), Refusal> {
        for setting in settings {
            self.apply(setting)?;
        }
        Ok(())
    }

    fn information(&mut self, ports: (u16, u16), name: &str) -> Option<Value> {
        let socket = &self.sockets[self.find(ports)?];
        crate::information::value(&socket.connection, self.now, name)
    }

    fn listening_port(&self) -> u16 {
        LISTENING_PORT
    }
}

impl Simulated {
    fn apply(&mut self, setting: &Setting) -> Result<(), Refusal> {
        match setting {
            Setting::Nothing | Setting::Segmentation(_) => {}
            Setting::Defaults => {
                // What `defaults.sh` sets and shows on the wire: tcp_rmem, and no ECN.
                if self.config.receive.autotuning {
                    self.config.receive.buffer = Bytes(DEFAULTS_RECEIVE_BUFFER);
                    self.config.send.ecn = EcnMode::Off;
                }
            }
            Setting::Sysctl(name, value) => self.sysctl(name, value)?,
            Setting::Route(attributes) => {
                for (name, value) in attributes {
                    let number = value.parse::<u64>().ok();
                    match (name.as_str(), number) {
                        ("via" | "dev" | "proto" | "scope" | "src", _) => {}
                        ("initcwnd", Some(segments)) if segments <= 1000 => {
                            self.config.congestion.initial_window = segments as u32;
                        }
                        ("advmss", Some(mss)) if (48..=65_495).contains(&mss) => self.config.mss = Bytes(mss),
                        ("mtu", Some(mtu)) if mtu > 60 => {
                            let headers = if self.ipv6 { 60 } else { 40 };
                            self.config.mss = self.config.mss.min(Bytes(mtu - headers));
                        }
                        _ => {
                            return Err(Refusal::new(
                                "a route's `initcwnd`, `advmss` or `mtu`",
                                format!("`{name} {value}`"),
                            ));
                        }
                    }
                }
            }
            Setting::Qdisc(None) => self.blocked_device = false,
            Setting::Qdisc(Some((kind, options))) => {
                let limit =
                    options.iter().position(|word| word == "limit").and_then(|at| options.get(at + 1));
                self.blocked_device = limit.is_some_and(|limit| limit == "0");
                self.config.send.pacing |= kind == "fq";
            }
        }
        Ok(())
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let wrong = || Refusal::new("a sysctl that a simulated stack has", format!("`{name}={value}`"));
        let numbers: Vec<u64> = value.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let number = *numbers.first().unwrap_or(&0);
        if name.ends_with("tcp_cubic.parameters.hystart_detect") {
            // Both of its signals, as the stack has them.
            return if number == 3 { Ok(()) } else { Err(wrong()) };
        }
        let short =
            name.strip_prefix("net.ipv4.").or_else(|| name.strip_prefix("net.core.")).ok_or_else(wrong)?;
        let switch = number != 0;
        let config = &mut self.config;
        match short {
            "tcp_timestamps" => config.send.timestamps = switch,
            "tcp_window_scaling" => config.send.window_scaling = switch,
            "tcp_sack" => config.recovery.sack = switch,
            "tcp_dsack" => config.recovery.dsack = switch,
            "tcp_ecn" => {
                config.send.ecn = match number {
                    0 => EcnMode::Off,
                    1 => EcnMode::Request,
                    2 => EcnMode::Accept,
                    _ => return Err(wrong()),
                };
            }
            "tcp_congestion_control" => set_congestion(config, value)?,
            "tcp_slow_start_after_idle" => config.congestion.restart_after_idle = switch,
            "tcp_tso_win_divisor" => config.send.tso_win_divisor = number as u32,
            "tcp_early_retrans" => config.recovery.tail_loss_probe = number >= 3,
            "tcp_recovery" => config.recovery.rack = number & 1 != 0,
            "tcp_frto" => config.recovery.frto = switch,
            "tcp_comp_sack_nr" => config.receive.compressed_acks = number.min(255) as u32,
            "tcp_syn_retries" => {
                config.handshake.syn_attempts =
                    Some(number.min(255) as u32 + 1 + config.handshake.syn_linear_timeouts)
            }
            "tcp_syn_linear_timeouts" => config.handshake.syn_linear_timeouts = number.min(255) as u32,
            "tcp_synack_retries" => config.handshake.synack_attempts = Some(number.min(255) as u32 + 1),
            "tcp_retries2" => config.handshake.data_retries = Some(number.min(255) as u32),
            "tcp_rmem" => config.receive.buffer = Bytes(*numbers.get(2).ok_or_else(wrong)?),
            "tcp_wmem" => {
                let &[least, first, most] = &numbers[..] else { return Err(wrong()) };
                self.send_memory = [least, first, most];
                config.send.buffer = Some(Bytes(most));
            }
            "tcp_notsent_lowat" => self.not_sent = number,
            "tcp_mtu_probing" if !switch => {}
            "tcp_min_tso_segs" if (1..=64).contains(&number) => self.least_super_packet = number,
            // The value that the simulated stacks have.
            "tcp_tso_rtt_log" if number == 9 => {}
            "tcp_pacing_ss_ratio" if number == 200 => {}
            "tcp_pacing_ca_ratio" if number == 120 => {}
            // Nothing bounds how often what is refused is answered.
            "tcp_invalid_ratelimit" if number == 0 => {}
            // What a simulated stack has no part of, whatever it says: no segment waits for a device, and no SYN is refused.
            "tcp_fastopen"
            | "tcp_syncookies"
            | "tcp_no_metrics_save"
            | "tcp_metrics_save"
            | "tcp_autocorking"
            | "tcp_limit_output_bytes"
            | "tcp_challenge_ack_limit"
            | "wmem_max"
            | "rmem_max"
            | "optmem_max" => {}
            _ => return Err(wrong()),
        }
        Ok(())
    }
}
