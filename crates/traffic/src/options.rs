//! Socket options that make one connection differ from the namespace's defaults.

use crate::sys;
use farpath_units::{Bytes, Duration, Rate};
use libc::{IPPROTO_TCP, SOL_SOCKET, c_int};
use std::fmt::Display;
use std::io;
use std::os::fd::BorrowedFd;

// From linux/tcp.h; newer than `libc` knows.
const TCP_RTO_MAX_MS: c_int = 44;
const TCP_RTO_MIN_US: c_int = 45;
const TCP_DELACK_MAX_US: c_int = 46;

/// Sets an option whose value is a number.
pub fn set_number(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    sys::set_option(socket, level, option, &value.to_ne_bytes())
}

/// An option whose value is a number.
pub fn number(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<i32> {
    let mut value = [0; 4];
    sys::get_option(socket, level, option, &mut value)?;
    Ok(i32::from_ne_bytes(value))
}

/// Bytes of the stream that are written and not acknowledged (`SIOCOUTQ`), or of them those that were not sent (`SIOCOUTQNSD`).
pub fn queued(socket: BorrowedFd<'_>, not_sent: bool) -> io::Result<i32> {
    const SIOCOUTQNSD: u32 = 0x894b;
    sys::get_number(socket, if not_sent { SIOCOUTQNSD } else { libc::TIOCOUTQ as u32 })
}

/// Reads a stream into `buffer`, and what the kernel tells beside it of the bytes that are left (`TCP_INQ`, `TCP_CM_INQ`).
pub fn receive_with_queue(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: i32,
) -> io::Result<(usize, Option<i32>)> {
    /// linux/tcp.h
    const TCP_CM_INQ: i32 = 36;
    let (received, told) = receive_with(socket, buffer, flags, (IPPROTO_TCP, TCP_CM_INQ))?;
    Ok((received, told.map(i32::from_ne_bytes)))
}

/// Reads a datagram of IPv4 into `buffer`, and its byte of codepoint and ECN, where the socket is told it (`IP_RECVTOS`).
pub fn receive_with_tos(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<u8>)> {
    let (received, told) = receive_with(socket, buffer, 0, (libc::IPPROTO_IP, libc::IP_TOS))?;
    Ok((received, told.map(|[tos, ..]| tos)))
}

/// Reads into `buffer`, and the first four bytes of the control message of this level and type, where it is the first that comes.
fn receive_with(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    flags: i32,
    (level, kind): (c_int, c_int),
) -> io::Result<(usize, Option<[u8; 4]>)> {
    // A header of length, level and type, and what is told behind it (cmsg(3)).
    const HEADER: usize = size_of::<usize>() + 8;
    let mut control = [0; 128];
    let (received, told) = sys::receive_message(socket, buffer, &mut control, flags)?;
    let four = |at: usize| -> Option<[u8; 4]> { control.get(at..at + 4)?.try_into().ok() };
    let number = |at: usize| four(at).map(i32::from_ne_bytes);
    // The kernel counts the padding behind a message of a byte.
    let is_it = told > HEADER
        && number(size_of::<usize>()) == Some(level)
        && number(size_of::<usize>() + 4) == Some(kind);
    Ok((received, four(HEADER).filter(|_| is_it)))
}

/// What is set on a socket before it connects or listens; `None` leaves the namespace's default. A connection that a
/// listener accepts has its listener's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketOptions {
    /// `TCP_CONGESTION`: `reno`, `cubic`, `bbr` ... One that is restricted needs CAP_NET_ADMIN over the namespace.
    pub congestion_control: Option<String>,
    /// `SO_RCVBUF`, as the kernel is told: it books twice that, and announces at most about half of what it books.
    /// Ends autotuning.
    pub receive_buffer: Option<Bytes>,
    /// `SO_SNDBUF`, likewise.
    pub send_buffer: Option<Bytes>,
    /// `TCP_NODELAY`: no waiting for a full segment (RFC 9293 §3.7.4).
    pub nodelay: bool,
    /// `TCP_MAXSEG`: the MSS that is announced, and the most that is sent.
    pub mss: Option<Bytes>,
    /// `TCP_SYNCNT`, 1 to 127: retransmissions of a SYN; of a listener, of its SYN/ACKs. Replaces `tcp_syn_retries` and
    /// `tcp_synack_retries`.
    pub syn_count: Option<u32>,
    /// `TCP_RTO_MIN_US`, 5 to 200 ms: it can only lower the floor.
    pub rto_min: Option<Duration>,
    /// `TCP_RTO_MAX_MS`, 1 to 120 s.
    pub rto_max: Option<Duration>,
    /// `TCP_DELACK_MAX_US`, 5 to 200 ms: it can only lower the longest delay of an ACK.
    pub delack_max: Option<Duration>,
    /// `TCP_USER_TIMEOUT` (RFC 5482): how long data may stay unacknowledged.
    pub user_timeout: Option<Duration>,
    /// `SO_MAX_PACING_RATE`: the sender paces, and never faster.
    pub max_pacing_rate: Option<Rate>,
}

/// The kernel refused an option.
#[derive(Debug, thiserror::Error)]
#[error("socket option {option} = {value}: {source}: {reason}")]
pub struct OptionError {
    /// Which.
    pub option: &'static str,
    /// What it was to be.
    pub value: String,
    /// What is behind that, and what would help.
    pub reason: String,
    /// What the kernel said.
    pub source: io::Error,
}

impl SocketOptions {
    /// Sets all on a TCP socket that is neither connected nor listening.
    pub fn apply(&self, socket: BorrowedFd<'_>) -> Result<(), OptionError> {
        let set = |option: Known, value: &dyn Display, bytes: &[u8]| {
            sys::set_option(socket, option.level, option.number, bytes)
                .map_err(|source| option.refused(value, source))
        };
        let in_units = |option, duration: Duration, unit_ns: u64| {
            let units = duration.as_nanos().div_ceil(unit_ns);
            set(option, &duration, &int(units))
        };
        if let Some(name) = &self.congestion_control {
            set(CONGESTION, name, name.as_bytes())?;
        }
        if let Some(size) = self.receive_buffer {
            set_buffer(socket, RECEIVE_BUFFER, libc::SO_RCVBUFFORCE, size)?;
        }
        if let Some(size) = self.send_buffer {
            set_buffer(socket, SEND_BUFFER, libc::SO_SNDBUFFORCE, size)?;
        }
        if self.nodelay {
            set(NODELAY, &"on", &int(1))?;
        }
        if let Some(mss) = self.mss {
            set(MAXSEG, &mss, &int(mss.0))?;
        }
        if let Some(count) = self.syn_count {
            set(SYN_COUNT, &count, &int(count.into()))?;
        }
        if let Some(rto_max) = self.rto_max {
            in_units(RTO_MAX, rto_max, 1_000_000)?;
        }
        if let Some(rto_min) = self.rto_min {
            in_units(RTO_MIN, rto_min, 1_000)?;
        }
        if let Some(delack_max) = self.delack_max {
            in_units(DELACK_MAX, delack_max, 1_000)?;
        }
        if let Some(timeout) = self.user_timeout {
            in_units(USER_TIMEOUT, timeout, 1_000_000)?;
        }
        if let Some(rate) = self.max_pacing_rate {
            set(PACING_RATE, &rate, &(rate.bit_per_s() / 8).to_ne_bytes())?;
        }
        Ok(())
    }
}

/// A value too large for the kernel's `int` becomes its largest, which no option takes.
fn int(value: u64) -> [u8; 4] {
    c_int::try_from(value).unwrap_or(c_int::MAX).to_ne_bytes()
}

/// Sets a buffer's size past the host's limit where that is allowed, and looks whether it was: SO_RCVBUF and SO_SNDBUF
/// cut what is above the limit without a word.
fn set_buffer(socket: BorrowedFd<'_>, option: Known, force: c_int, size: Bytes) -> Result<(), OptionError> {
    let wanted = int(size.0);
    if sys::set_option(socket, SOL_SOCKET, force, &wanted).is_ok() {
        return Ok(());
    }
    let refused = |source| option.refused(&size, source);
    sys::set_option(socket, SOL_SOCKET, option.number, &wanted).map_err(refused)?;
    let mut granted = [0; 4];
    sys::get_option(socket, SOL_SOCKET, option.number, &mut granted).map_err(refused)?;
    let granted = u64::from(u32::from_ne_bytes(granted));
    if granted >= size.0.saturating_mul(2) {
        return Ok(());
    }
    Err(refused(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the kernel granted {} B", granted / 2),
    )))
}

/// `SO_RCVBUFFORCE`, or as much of it as `SO_RCVBUF` gives.
pub(crate) fn set_receive_room(socket: BorrowedFd<'_>, size: Bytes) -> io::Result<()> {
    sys::set_option(socket, SOL_SOCKET, libc::SO_RCVBUFFORCE, &int(size.0))
        .or_else(|_| sys::set_option(socket, SOL_SOCKET, libc::SO_RCVBUF, &int(size.0)))
}

/// `SO_RCVLOWAT`: a socket counts as readable when so much is there, or the end.
pub(crate) fn set_low_water(socket: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &int(bytes))
}

/// An option of the kernel's, and what there is to say where it is refused.
#[derive(Clone, Copy)]
struct Known {
    name: &'static str,
    level: c_int,
    number: c_int,
    accepts: &'static str,
}

impl Known {
    const fn tcp(name: &'static str, number: c_int, accepts: &'static str) -> Known {
        Known { name, level: IPPROTO_TCP, number, accepts }
    }

    const fn socket(name: &'static str, number: c_int, accepts: &'static str) -> Known {
        Known { name, level: SOL_SOCKET, number, accepts }
    }

    fn refused(self, value: &dyn Display, source: io::Error) -> OptionError {
        let reason = match source.raw_os_error() {
            Some(libc::ENOPROTOOPT) => "this kernel is too old to know it".to_owned(),
            _ => self.accepts.to_owned(),
        };
        OptionError { option: self.name, value: value.to_string(), reason, source }
    }
}

const CONGESTION: Known = Known::tcp(
    "TCP_CONGESTION",
    libc::TCP_CONGESTION,
    "the kernel takes one of /proc/sys/net/ipv4/tcp_available_congestion_control; one that is not in \
     tcp_allowed_congestion_control beside it needs CAP_NET_ADMIN",
);
const RECEIVE_BUFFER: Known = Known::socket(
    "SO_RCVBUF",
    libc::SO_RCVBUF,
    "above net.core.rmem_max it needs CAP_NET_ADMIN on the host; net.ipv4.tcp_rmem has no such limit",
);
const SEND_BUFFER: Known = Known::socket(
    "SO_SNDBUF",
    libc::SO_SNDBUF,
    "above net.core.wmem_max it needs CAP_NET_ADMIN on the host; net.ipv4.tcp_wmem has no such limit",
);
const NODELAY: Known = Known::tcp("TCP_NODELAY", libc::TCP_NODELAY, "it is on or off");
const MAXSEG: Known = Known::tcp("TCP_MAXSEG", libc::TCP_MAXSEG, "the kernel takes 88 to 32767 B");
const SYN_COUNT: Known = Known::tcp("TCP_SYNCNT", libc::TCP_SYNCNT, "the kernel takes 1 to 127");
const RTO_MAX: Known =
    Known::tcp("TCP_RTO_MAX_MS", TCP_RTO_MAX_MS, "the kernel takes 1 to 120 s, from Linux 6.15 on");
const RTO_MIN: Known =
    Known::tcp("TCP_RTO_MIN_US", TCP_RTO_MIN_US, "the kernel takes 5 to 200 ms, from Linux 6.15 on");
const DELACK_MAX: Known =
    Known::tcp("TCP_DELACK_MAX_US", TCP_DELACK_MAX_US, "the kernel takes 5 to 200 ms, from Linux 6.15 on");
const USER_TIMEOUT: Known =
    Known::tcp("TCP_USER_TIMEOUT", libc::TCP_USER_TIMEOUT, "the kernel takes whole milliseconds");
const PACING_RATE: Known =
    Known::socket("SO_MAX_PACING_RATE", libc::SO_MAX_PACING_RATE, "the kernel takes bytes per second");

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};
    use std::os::fd::AsFd;

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket")
    }

    fn read_int(socket: &Socket, level: c_int, number: c_int) -> u32 {
        let mut value = [0; 4];
        sys::get_option(socket.as_fd(), level, number, &mut value).expect("readable");
        u32::from_ne_bytes(value)
    }

    #[test]
    fn what_is_set_is_what_the_kernel_has() {
        let socket = socket();
        let options = SocketOptions {
            congestion_control: Some("reno".to_owned()),
            receive_buffer: Some(Bytes(8760)),
            send_buffer: Some(Bytes(100_000)),
            nodelay: true,
            mss: Some(Bytes(536)),
            syn_count: Some(9),
            user_timeout: Some(Duration::from_secs(7)),
            max_pacing_rate: Rate::from_bit_per_s(8_000_000),
            ..SocketOptions::default()
        };
        options.apply(socket.as_fd()).expect("all are allowed");
        let mut name = [0; 16];
        let len =
            sys::get_option(socket.as_fd(), IPPROTO_TCP, libc::TCP_CONGESTION, &mut name).expect("readable");
        assert!(name[..len].starts_with(b"reno\0"), "{name:?}");
        // socket(7): the kernel doubles it.
        assert_eq!(read_int(&socket, SOL_SOCKET, libc::SO_RCVBUF), 17_520);
        assert_eq!(read_int(&socket, SOL_SOCKET, libc::SO_SNDBUF), 200_000);
        assert_eq!(read_int(&socket, IPPROTO_TCP, libc::TCP_NODELAY), 1);
        assert_eq!(read_int(&socket, IPPROTO_TCP, libc::TCP_MAXSEG), 536);
        assert_eq!(read_int(&socket, IPPROTO_TCP, libc::TCP_SYNCNT), 9);
        assert_eq!(read_int(&socket, IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 7000);
        assert_eq!(read_int(&socket, SOL_SOCKET, libc::SO_MAX_PACING_RATE), 1_000_000);
    }

    #[test]
    fn timers_are_set_where_the_kernel_has_them() {
        let socket = socket();
        let options = SocketOptions {
            rto_min: Some(Duration::from_millis(20)),
            rto_max: Some(Duration::from_secs(3)),
            delack_max: Some(Duration::from_millis(40)),
            ..SocketOptions::default()
        };
        match options.apply(socket.as_fd()) {
            Ok(()) => {
                assert_eq!(read_int(&socket, IPPROTO_TCP, TCP_RTO_MAX_MS), 3000);
                // Held in jiffies of 1 to 10 ms, and rounded to one.
                let near = |number, us: u32| read_int(&socket, IPPROTO_TCP, number).abs_diff(us) <= 10_000;
                assert!(near(TCP_RTO_MIN_US, 20_000));
                assert!(near(TCP_DELACK_MAX_US, 40_000));
            }
            Err(error) => {
                assert_eq!(error.source.raw_os_error(), Some(libc::ENOPROTOOPT), "{error}");
                let why = format!("timers by socket option: this kernel is too old: {error}");
                farpath_testing::skip(farpath_testing::Need::Kernel, why);
            }
        }
    }

    #[test]
    fn a_refusal_names_option_value_and_reason() {
        let refused =
            |options: SocketOptions| options.apply(socket().as_fd()).expect_err("not to be had").to_string();
        let message = refused(SocketOptions {
            congestion_control: Some("no-such-cc".to_owned()),
            ..SocketOptions::default()
        });
        assert!(message.starts_with("socket option TCP_CONGESTION = no-such-cc: "), "{message}");
        assert!(message.contains("(os error 2)"), "{message}");
        assert!(message.contains("tcp_available_congestion_control"), "{message}");
        let message = refused(SocketOptions { syn_count: Some(128), ..SocketOptions::default() });
        assert!(message.starts_with("socket option TCP_SYNCNT = 128: "), "{message}");
        assert!(message.ends_with("1 to 127"), "{message}");
        let message = refused(SocketOptions { mss: Some(Bytes(u64::MAX)), ..SocketOptions::default() });
        assert!(message.contains("TCP_MAXSEG"), "{message}");
    }
}
