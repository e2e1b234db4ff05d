//! What Linux tells of a connection by `tcp_info`, of a simulated one: one list of fields, with Linux's names and units.

use crate::sender::Wait;
use crate::{Connection, State};
use farpath_units::{Duration, Instant};

/// A field of `tcp_info`.
#[derive(Clone, Copy)]
pub struct InformationField {
    /// Its name in Linux, without `tcpi_`.
    pub name: &'static str,
    /// What it says, with its unit.
    pub description: &'static str,
    read: fn(&Connection, Instant) -> u64,
}

impl InformationField {
    /// Its value.
    pub fn value(&self, connection: &Connection, now: Instant) -> u64 {
        (self.read)(connection, now)
    }
}

macro_rules! fields {
    (|$connection:ident, $now:ident| $(#[doc = $doc:literal] $name:ident = $value:expr;)*) => {
        /// Every field of `tcp_info` that a simulated connection has.
        pub const INFORMATION: &[InformationField] = &[
            $(InformationField {
                name: stringify!($name),
                description: $doc.trim_ascii(),
                read: |$connection, $now| { let _ = $now; $value },
            },)*
        ];
    };
}

impl Connection {
    /// A field of `tcp_info` by its name in Linux, with `tcpi_` or without.
    pub fn information(&self, now: Instant, name: &str) -> Option<u64> {
        let name = name.strip_prefix("tcpi_").unwrap_or(name);
        INFORMATION.iter().find(|field| field.name == name).map(|field| field.value(self, now))
    }
}

fn micros(time: Duration) -> u64 {
    time.as_nanos() / 1000
}

fn millis_since(now: Instant, then: Instant) -> u64 {
    now.saturating_since(then).as_nanos() / 1_000_000
}

/// Linux's "no threshold yet" (`TCP_INFINITE_SSTHRESH`).
const INFINITE: u64 = 0x7fff_ffff;

/// Whole segments, as the kernel counts windows.
fn segments(connection: &Connection, bytes: u64) -> u64 {
    if bytes == u64::MAX { INFINITE } else { (bytes / connection.sender().smss()).min(INFINITE) }
}

fields! { |c, now|
    /// State, as in `tcp_states.h`
    state = match c.state() {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    };
    /// State of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss
    ca_state = c.sender().ca_state();
    /// Timeouts of the first segment in flight
    retransmits = c.sender().timeouts_in_row();
    /// Probes of a shut window that were not answered
    probes = c.sender().probes_in_row();
    /// Doublings of the timeout
    backoff = c.sender().timeouts_in_row();
    /// Options agreed on: 1 timestamps, 2 SACK, 4 window scale, 8 ECN
    options = c.options_agreed();
    /// Shift of the peer's window
    snd_wscale = u64::from(c.peer_shift());
    /// Shift of the own window
    rcv_wscale = u64::from(c.own_shift());
    /// Retransmission timeout, us
    rto = micros(c.sender().rtt().rto());
    /// Time that an ACK is withheld, us
    ato = micros(c.receiver().ack_delay());
    /// Segment size of what is sent, bytes
    snd_mss = c.sender().smss();
    /// Segment size of the peer, as far as it shows, bytes
    rcv_mss = c.receiver().longest_segment();
    /// Segments in flight
    unacked = c.sender().segments_in_flight();
    /// Segments that SACK reports, or duplicate ACKs
    sacked = c.sender().segments_sacked();
    /// Segments taken to be lost
    lost = c.sender().segments_lost();
    /// Segments sent again and in flight
    retrans = c.sender().segments_retransmitted();
    /// Since data was last sent, ms
    last_data_sent = millis_since(now, c.sender().last_sent());
    /// Since data last came, ms
    last_data_recv = millis_since(now, c.receiver().last_data().or(c.established_at()).unwrap_or(now));
    /// Since an ACK last came, ms
    last_ack_recv = millis_since(now, c.sender().times().and_then(|times| times.last_ack).or(c.established_at()).unwrap_or(now));
    /// MTU of the path, bytes
    pmtu = c.announced_mss() + 40;
    /// Smoothed round-trip time, us
    rtt = micros(c.sender().rtt().srtt().unwrap_or(Duration::ZERO));
    /// Its variation, us
    rttvar = micros(c.sender().rtt().rttvar().unwrap_or(Duration::ZERO));
    /// Slow start threshold, segments
    snd_ssthresh = segments(c, c.sender().window().ssthresh);
    /// Congestion window, segments
    snd_cwnd = segments(c, c.sender().window().cwnd);
    /// Segment size announced to the peer, bytes
    advmss = c.announced_mss();
    /// Segments by which one may be overtaken
    reordering = c.sender().reordering();
    /// Segments sent again, of the whole connection
    total_retrans = c.sender().stats().retransmissions;
    /// Bytes that the peer has acknowledged, the SYN among them
    bytes_acked = c.sender().acked() + u64::from(c.established_at().is_some());
    /// Bytes that came in order
    bytes_received = c.receiver().received();
    /// Segments sent
    segs_out = c.stats().segments_sent;
    /// Segments received
    segs_in = c.stats().segments_received;
    /// Bytes written and not sent
    notsent_bytes = c.sender().unsent();
    /// Least round-trip time, us
    min_rtt = c.sender().rtt().min_rtt().map_or(u64::from(u32::MAX), micros);
    /// Segments with payload sent
    data_segs_out = c.sender().stats().data_segments;
    /// Time in which data was in flight or to be sent, us
    busy_time = c.sender().times().map_or(0, |times| micros(times.busy(now)));
    /// Of it, the time in which the peer's window was the limit, us
    rwnd_limited = c.sender().times().map_or(0, |times| micros(times.total(Wait::PeerWindow, now)));
    /// Of it, the time in which the send buffer was the limit, us
    sndbuf_limited = c.sender().times().map_or(0, |times| micros(times.total(Wait::SendBuffer, now)));
    /// Segments delivered, the SYN among them
    delivered = c.sender().times().map_or(0, |times| times.delivered) + u64::from(c.established_at().is_some());
    /// Payload bytes sent, those sent again among them
    bytes_sent = c.sender().stats().data_bytes;
    /// Payload bytes sent again
    bytes_retrans = c.sender().stats().data_bytes.saturating_sub(c.sender().sent());
    /// D-SACKs received
    dsack_dups = c.sender().stats().dsacks;
    /// Times that reordering was met
    reord_seen = c.sender().reorderings();
    /// Segments that came out of order
    rcv_ooopack = c.receiver().out_of_order_segments();
    /// The peer's window, bytes
    snd_wnd = c.sender().rwnd();
    /// The own window as last announced, bytes
    rcv_wnd = c.receiver().announced_window();
}
