//! What the kernel says of a connection: `getsockopt(TCP_INFO)`.
//!
//! Parsed by the offsets of `struct tcp_info` in `linux/tcp.h`, which only grows at its end: what an older kernel does
//! not give is `None`.

use crate::sys;
use farpath_units::{Bytes, Duration, Rate};
use std::io;
use std::os::fd::BorrowedFd;

/// Where a connection stands (RFC 9293 §3.3.2), as Linux numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the RFC's names")]
pub enum State {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    /// One that is not in RFC 9293.
    Other(u8),
}

impl State {
    fn from_number(number: u8) -> State {
        match number {
            1 => State::Established,
            2 => State::SynSent,
            // 12 is Linux's TCP_NEW_SYN_RECV.
            3 | 12 => State::SynReceived,
            4 => State::FinWait1,
            5 => State::FinWait2,
            6 => State::TimeWait,
            7 => State::Closed,
            8 => State::CloseWait,
            9 => State::LastAck,
            10 => State::Listen,
            11 => State::Closing,
            other => State::Other(other),
        }
    }
}

/// What Linux's congestion control is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionState {
    /// Nothing is wrong.
    Open,
    /// Duplicate ACKs or SACK blocks have come.
    Disorder,
    /// The window is being reduced for ECN or a local queue.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
    /// None of these.
    Other(u8),
}

impl CongestionState {
    fn from_number(number: u8) -> CongestionState {
        match number {
            0 => CongestionState::Open,
            1 => CongestionState::Disorder,
            2 => CongestionState::Reduced,
            3 => CongestionState::Recovery,
            4 => CongestionState::Loss,
            other => CongestionState::Other(other),
        }
    }
}

/// `struct tcp_info`. Each field names its `tcpi_` where it is spelled otherwise; what counts segments counts Linux's
/// (`snd_mss` bytes each), not packets of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TcpInfo {
    /// Of the connection.
    pub state: State,
    /// `ca_state`.
    pub congestion: CongestionState,
    /// Timeouts in a row without an answer.
    pub retransmits: u8,
    /// Unanswered window probes.
    pub probes: u8,
    /// Doublings of the timer.
    pub backoff: u8,
    /// `snd_wscale`, `rcv_wscale`: shifts of the windows that the peer and this end announce.
    pub window_scales: (u8, u8),
    /// Retransmission timeout with its back-off.
    pub rto: Duration,
    /// Delayed-ACK timeout.
    pub ato: Duration,
    /// Payload bytes of a full segment that is sent, options taken off.
    pub snd_mss: Bytes,
    /// The same of those that come, as guessed from them.
    pub rcv_mss: Bytes,
    /// Segments sent and not cumulatively acknowledged. (Of a listener: its accept queue.)
    pub unacked: u32,
    /// Of these, selectively acknowledged; without SACK, guessed from duplicate ACKs.
    pub sacked: u32,
    /// Of these, taken for lost.
    pub lost: u32,
    /// Of these, retransmitted and not acknowledged.
    pub retrans: u32,
    /// Forward-most SACKed segments; zero since Linux 4.15.
    pub fackets: u32,
    /// Path MTU.
    pub pmtu: Bytes,
    /// `rtt`: smoothed RTT; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// `rttvar`: the smoothed mean deviation (`mdev`), which is RFC 6298's RTTVAR. Linux's own RTO takes the greatest
    /// `mdev` of a round trip, floored at `rto_min`: it cannot be computed from this. `None` before the first sample.
    pub rttvar: Option<Duration>,
    /// Slow start threshold, segments; `None` where it is infinite.
    pub snd_ssthresh: Option<u32>,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// MSS that this end announced.
    pub advmss: Bytes,
    /// Reordering degree that is reckoned with, segments; the duplicate ACK threshold.
    pub reordering: u32,
    /// The receiver's estimate of the RTT; zero where it has none.
    pub rcv_rtt: Duration,
    /// Receive buffer space that autotuning aims at.
    pub rcv_space: Bytes,
    /// Segments retransmitted in all, SYNs included.
    pub total_retrans: u32,
    /// What pacing sends at; `None` where unlimited.
    pub pacing_rate: Option<Rate>,
    /// Payload bytes cumulatively acknowledged (RFC 4898 HCThruOctetsAcked); the SYN counts as one.
    pub bytes_acked: Option<Bytes>,
    /// Payload bytes received in order.
    pub bytes_received: Option<Bytes>,
    /// Segments sent, ACKs and retransmissions included.
    pub segs_out: Option<u32>,
    /// Segments received.
    pub segs_in: Option<u32>,
    /// Bytes written by the program and not yet sent.
    pub notsent_bytes: Option<Bytes>,
    /// Smallest RTT in the window of `tcp_min_rtt_wlen`; `None` before a sample.
    pub min_rtt: Option<Duration>,
    /// Segments with payload received.
    pub data_segs_in: Option<u32>,
    /// Segments with payload sent, retransmissions included.
    pub data_segs_out: Option<u32>,
    /// Latest rate of delivery; `None` before one is known.
    pub delivery_rate: Option<Rate>,
    /// Whether that was bounded by what the program wrote.
    pub delivery_rate_app_limited: bool,
    /// Time in which something waited to be sent or acknowledged.
    pub busy_time: Option<Duration>,
    /// Of this, held up by the peer's window.
    pub rwnd_limited: Option<Duration>,
    /// Of this, held up by the send buffer.
    pub sndbuf_limited: Option<Duration>,
    /// Segments delivered, cumulatively or selectively acknowledged; the SYN counts as one.
    pub delivered: Option<u32>,
    /// Of these, with ECE.
    pub delivered_ce: Option<u32>,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: Option<Bytes>,
    /// Of these, sent again.
    pub bytes_retrans: Option<Bytes>,
    /// DSACKs received.
    pub dsack_dups: Option<u32>,
    /// Reorderings seen by the sender.
    pub reord_seen: Option<u32>,
    /// Segments received out of order.
    pub rcv_ooopack: Option<u32>,
    /// Window that the peer announced, scaled.
    pub snd_wnd: Option<Bytes>,
    /// Window that this end announces, scaled.
    pub rcv_wnd: Option<Bytes>,
    /// Retransmission timeouts, SYNs' included.
    pub total_rto: Option<u16>,
    /// Times that a connection came out of one or more timeouts in a row.
    pub total_rto_recoveries: Option<u16>,
    /// Time spent in these.
    pub total_rto_time: Option<Duration>,
}

/// Bytes up to `total_retrans`, which every Linux since 2.6 gives.
const OLDEST: usize = 104;
/// Room for more than Linux 6.18's 280 bytes.
const ROOM: usize = 512;
/// `TCP_INFINITE_SSTHRESH`.
const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// Fields of `struct tcp_info` by their names without `tcpi_`: where they begin, and their bytes.
const FIELDS: &[(&str, usize, usize)] = &[
    ("state", 0, 1),
    ("ca_state", 1, 1),
    ("retransmits", 2, 1),
    ("probes", 3, 1),
    ("backoff", 4, 1),
    ("options", 5, 1),
    ("rto", 8, 4),
    ("ato", 12, 4),
    ("snd_mss", 16, 4),
    ("rcv_mss", 20, 4),
    ("unacked", 24, 4),
    ("sacked", 28, 4),
    ("lost", 32, 4),
    ("retrans", 36, 4),
    ("last_data_sent", 44, 4),
    ("last_data_recv", 52, 4),
    ("last_ack_recv", 56, 4),
    ("pmtu", 60, 4),
    ("rcv_ssthresh", 64, 4),
    ("rtt", 68, 4),
    ("rttvar", 72, 4),
    ("snd_ssthresh", 76, 4),
    ("snd_cwnd", 80, 4),
    ("advmss", 84, 4),
    ("reordering", 88, 4),
    ("rcv_rtt", 92, 4),
    ("rcv_space", 96, 4),
    ("total_retrans", 100, 4),
    ("pacing_rate", 104, 8),
    ("max_pacing_rate", 112, 8),
    ("bytes_acked", 120, 8),
    ("bytes_received", 128, 8),
    ("segs_out", 136, 4),
    ("segs_in", 140, 4),
    ("notsent_bytes", 144, 4),
    ("min_rtt", 148, 4),
    ("data_segs_in", 152, 4),
    ("data_segs_out", 156, 4),
    ("delivery_rate", 160, 8),
    ("busy_time", 168, 8),
    ("rwnd_limited", 176, 8),
    ("sndbuf_limited", 184, 8),
    ("delivered", 192, 4),
    ("delivered_ce", 196, 4),
    ("bytes_sent", 200, 8),
    ("bytes_retrans", 208, 8),
    ("dsack_dups", 216, 4),
    ("reord_seen", 220, 4),
    ("rcv_ooopack", 224, 4),
    ("snd_wnd", 228, 4),
    ("rcv_wnd", 232, 4),
    ("rehash", 236, 4),
];

/// A field of `tcp_info` of a socket, as the kernel writes it; `None` where it has no such field.
pub fn field(socket: BorrowedFd<'_>, name: &str) -> io::Result<Option<u64>> {
    let mut bytes = [0; ROOM];
    let len = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let found = FIELDS.iter().find(|(own, at, size)| *own == name && at + size <= len);
    Ok(found.map(|&(_, at, size)| match size {
        1 => bytes[at].into(),
        4 => u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes")).into(),
        _ => u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes")),
    }))
}

impl TcpInfo {
    /// Asks the kernel of a TCP socket.
    pub fn from_socket(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
        let mut bytes = [0; ROOM];
        let len = sys::get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        let short = || io::Error::new(io::ErrorKind::InvalidData, format!("TCP_INFO of {len} bytes"));
        TcpInfo::parse(&bytes[..len]).ok_or_else(short)
    }

    /// Parses what the kernel wrote; `None` where that is shorter than any Linux writes.
    pub fn parse(bytes: &[u8]) -> Option<TcpInfo> {
        if bytes.len() < OLDEST {
            return None;
        }
        let raw = Raw(bytes);
        // What is within `OLDEST` is there.
        let base = |at: usize| raw.u32(at).unwrap_or_default();
        let (rtt_us, ssthresh) = (base(68), base(76));
        let sampled = rtt_us != 0;
        Some(TcpInfo {
            state: State::from_number(bytes[0]),
            congestion: CongestionState::from_number(bytes[1]),
            retransmits: bytes[2],
            probes: bytes[3],
            backoff: bytes[4],
            // Bit fields begin at the low end on every little-endian machine.
            window_scales: if cfg!(target_endian = "little") {
                (bytes[6] & 0xf, bytes[6] >> 4)
            } else {
                (bytes[6] >> 4, bytes[6] & 0xf)
            },
            rto: micros(base(8).into()),
            ato: micros(base(12).into()),
            snd_mss: Bytes(base(16).into()),
            rcv_mss: Bytes(base(20).into()),
            unacked: base(24),
            sacked: base(28),
            lost: base(32),
            retrans: base(36),
            fackets: base(40),
            pmtu: Bytes(base(60).into()),
            srtt: sampled.then(|| micros(rtt_us.into())),
            rttvar: sampled.then(|| micros(base(72).into())),
            snd_ssthresh: (ssthresh < NO_SSTHRESH).then_some(ssthresh),
            snd_cwnd: base(80),
            advmss: Bytes(base(84).into()),
            reordering: base(88),
            rcv_rtt: micros(base(92).into()),
            rcv_space: Bytes(base(96).into()),
            total_retrans: base(100),
            pacing_rate: raw.u64(104).filter(|&rate| rate != u64::MAX).and_then(bytes_per_s),
            bytes_acked: raw.u64(120).map(Bytes),
            bytes_received: raw.u64(128).map(Bytes),
            segs_out: raw.u32(136),
            segs_in: raw.u32(140),
            notsent_bytes: raw.u32(144).map(|bytes| Bytes(bytes.into())),
            min_rtt: raw.u32(148).filter(|&us| us != 0 && us != u32::MAX).map(|us| micros(us.into())),
            data_segs_in: raw.u32(152),
            data_segs_out: raw.u32(156),
            delivery_rate: raw.u64(160).and_then(bytes_per_s),
            delivery_rate_app_limited: if cfg!(target_endian = "little") {
                bytes[7] & 1 != 0
            } else {
                bytes[7] & 0x80 != 0
            },
            busy_time: raw.u64(168).map(micros),
            rwnd_limited: raw.u64(176).map(micros),
            sndbuf_limited: raw.u64(184).map(micros),
            delivered: raw.u32(192),
            delivered_ce: raw.u32(196),
            bytes_sent: raw.u64(200).map(Bytes),
            bytes_retrans: raw.u64(208).map(Bytes),
            dsack_dups: raw.u32(216),
            reord_seen: raw.u32(220),
            rcv_ooopack: raw.u32(224),
            snd_wnd: raw.u32(228).map(|bytes| Bytes(bytes.into())),
            rcv_wnd: raw.u32(232).map(|bytes| Bytes(bytes.into())),
            total_rto: raw.u16(240),
            total_rto_recoveries: raw.u16(242),
            total_rto_time: raw.u32(244).map(|ms| micros(u64::from(ms) * 1000)),
        })
    }
}

/// The kernel's struct, in the machine's byte order. A field that is not all there is not there.
struct Raw<'a>(&'a [u8]);

impl Raw<'_> {
    fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at + N)?.try_into().ok()
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_ne_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_ne_bytes)
    }

    fn u64(&self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_ne_bytes)
    }
}

fn micros(us: u64) -> Duration {
    Duration::from_nanos(us.saturating_mul(1000))
}

fn bytes_per_s(rate: u64) -> Option<Rate> {
    Rate::from_bit_per_s(rate.saturating_mul(8))
}

#[cfg(test)]
mod tests;
