//! Values of a namespace that make the kernel follow a stack's parameters.

use super::{Buffers, Sysctl, narrow};
use farpath_tcp::config::{Config, EcnMode};
use farpath_units::{Bytes, Duration};

/// `tcp_syn_retries` and `tcp_syn_linear_timeouts` end here (MAX_TCP_SYNCNT).
pub(super) const MOST_SYNS: u32 = 127;
/// `tcp_synack_retries` and `tcp_retries2` are one byte.
pub(super) const MOST_RETRIES: u32 = 255;
/// `tcp_rto_max_ms`.
pub(super) const RTO_MAX: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));
/// `tcp_reordering` is a signed number; the kernel counts packets up to here.
pub(super) const MOST_REORDERING: u32 = 65_535;

struct List(Vec<Sysctl>);

impl List {
    fn set(&mut self, name: &str, value: impl ToString, why: &str) {
        self.add(name, value, why, None);
    }

    fn add(&mut self, name: &str, value: impl ToString, why: &str, absent: Option<&'static str>) {
        let (name, why) = (format!("net.ipv4.{name}"), why.to_owned());
        self.0.push(Sysctl { name, value: value.to_string(), why, absent });
    }
}

/// All that is told to the namespace of the end with `config`. What a namespace takes over from the machine
/// (`tcp_rmem`, `tcp_wmem`) is always among it.
pub(super) fn sysctls_for(config: &Config, other_end: &Config, buffers: Buffers) -> Vec<Sysctl> {
    let (recovery, send, handshake) = (&config.recovery, &config.send, &config.handshake);
    let mut list = List(Vec::new());

    list.set("tcp_sack", u8::from(recovery.sack), "recovery.sack");
    list.set("tcp_dsack", u8::from(recovery.sack && recovery.dsack), "recovery.dsack");
    // 6.17 took out what bit 0 switched: there SACK means RACK.
    list.set("tcp_recovery", u8::from(recovery.rack), "recovery.rack");
    list.set("tcp_early_retrans", if recovery.tail_loss_probe { 3 } else { 0 }, "recovery.tail_loss_probe");
    list.set("tcp_frto", if recovery.frto { 2 } else { 0 }, "recovery.frto");
    let threshold = recovery.dup_ack_threshold.min(MOST_REORDERING);
    // First: it bounds the other.
    list.set(
        "tcp_max_reordering",
        threshold,
        "reordering that is met does not raise recovery.dup_ack_threshold",
    );
    list.set("tcp_reordering", threshold, "recovery.dup_ack_threshold");

    list.set("tcp_timestamps", u8::from(send.timestamps), "send.timestamps");
    list.set("tcp_window_scaling", u8::from(send.window_scaling), "send.window_scaling");
    let ecn = match send.ecn {
        EcnMode::Off => 0,
        EcnMode::Request => 1,
        EcnMode::Accept => 2,
    };
    list.set("tcp_ecn", ecn, "send.ecn");

    // A namespace begins with 64, whatever the machine has.
    if send.ttl != 64 {
        list.set("ip_default_ttl", send.ttl, "send.ttl");
    }

    let idle = u8::from(config.congestion.restart_after_idle);
    list.set("tcp_slow_start_after_idle", idle, "congestion.restart_after_idle");

    let linear = handshake.syn_linear_timeouts.min(MOST_SYNS);
    list.add("tcp_syn_linear_timeouts", linear, "handshake.syn_linear_timeouts", Some("0"));
    let again = handshake.syn_attempts.map_or(MOST_SYNS, |attempts| attempts.saturating_sub(1 + linear));
    list.set("tcp_syn_retries", again.clamp(1, MOST_SYNS), "handshake.syn_attempts");
    let again = handshake.synack_attempts.map_or(MOST_RETRIES, |attempts| attempts.saturating_sub(1));
    list.set("tcp_synack_retries", again.min(MOST_RETRIES), "handshake.synack_attempts");
    let retries = handshake.data_retries.unwrap_or(MOST_RETRIES).min(MOST_RETRIES);
    list.set("tcp_retries2", retries, "handshake.data_retries");
    let max = config.rto.max.clamp(RTO_MAX.0, RTO_MAX.1);
    list.add("tcp_rto_max_ms", super::millis(max), "rto.max", Some("120000"));

    match buffers {
        Buffers::Given => {
            let room = receive_room(config);
            let why = "room for receive.buffer, the kernel's overhead included";
            list.set("tcp_rmem", format!("4096 {room} {room}"), why);
            list.set("tcp_moderate_rcvbuf", 0, "receive.buffer does not grow with the connection");
            let room = send_room(config, other_end);
            let why = "room for send.buffer, the kernel's overhead included";
            list.set("tcp_wmem", format!("4096 {room} {room}"), why);
        }
        Buffers::Growing => {
            // Half of it counts as overhead at first (tcp_adv_win_scale 1).
            let most = narrow(config.receive.buffer.0.saturating_mul(2).clamp(4096, MOST_ROOM));
            let rmem = format!("4096 {} {most}", most.min(131_072));
            list.set("tcp_rmem", rmem, "twice receive.buffer, to which it grows: half of it is overhead");
            list.set("tcp_moderate_rcvbuf", 1, "receive.buffer grows with the connection");
            let most = config.send.buffer.map_or(MOST_ROOM, |buffer| buffer.0.clamp(4608, MOST_ROOM));
            let wmem = format!("4096 {} {most}", most.min(16_384));
            list.set("tcp_wmem", wmem, "send.buffer, to which it grows");
        }
    }

    list.set("tcp_no_metrics_save", 1, "no connection learns from the one before it");
    list.set("tcp_fastopen", 0, "no data in a SYN");
    list.set("tcp_autocorking", 0, "no waiting for more data to fill a segment with, beside Nagle's rule");
    // 0 is another rule there; a 255th of a window is always there.
    let divisor = if send.tso_win_divisor == 0 { 255 } else { send.tso_win_divisor.min(255) };
    list.set("tcp_tso_win_divisor", divisor, "send.tso_win_divisor");
    list.set("tcp_comp_sack_nr", config.receive.compressed_acks.min(255), "receive.compressed_acks");
    let why = "each segment is acknowledged by itself, not a batch of them";
    list.add("tcp_backlog_ack_defer", 0, why, Some("0"));
    list.0
}

/// Largest signed number: buffers are such.
const MOST_ROOM: u64 = i32::MAX as u64;
/// Bytes of kernel memory that one received segment takes, at the most: its header, and a buffer of the next power of
/// two or page.
const OVERHEAD: u64 = 2304;

/// `tcp_rmem`, so that the window which the kernel would announce by itself is never below `receive.buffer`, which is
/// then what the path makes of it.
fn receive_room(config: &Config) -> u32 {
    let buffer = config.receive.buffer.0;
    if config.receive.read_rate.is_some() {
        // A program that reads slowly has to fill the buffer itself. Half of it counts as overhead at first
        // (tcp_adv_win_scale 1), as with SO_RCVBUF.
        return narrow(buffer.saturating_mul(2).clamp(4096, MOST_ROOM));
    }
    let overhead = OVERHEAD.div_ceil(config.mss.0.max(1)).max(2);
    // Twice: data that wait behind a hole are in it too.
    let data = buffer.max(super::LOW_WATER.0);
    narrow(data.saturating_mul(2 * overhead).clamp(256 << 10, MOST_ROOM))
}

/// `tcp_wmem`. Half is overhead, as with SO_SNDBUF.
fn send_room(config: &Config, other_end: &Config) -> u32 {
    let bytes = match config.send.buffer {
        Some(buffer) => buffer,
        // More than the window ever lets out.
        None => (other_end.receive.buffer + other_end.receive.buffer).max(Bytes(2 << 20)),
    };
    narrow(bytes.0.saturating_mul(2).clamp(4608, MOST_ROOM))
}
