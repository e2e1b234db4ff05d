//! What the sender's kernel counted of a connection, as `ss -tin` prints it (iproute2) or a speed test keeps it, beside a capture of it.

mod iperf3;
mod ndt;

pub use iperf3::{Iperf3, overrule_by_iperf3, parse_iperf3};
pub use ndt::parse_ndt;

use crate::connection::summary;
use crate::{ConnectionReport, Limit, LimitShare};
use serde::Serialize;
use std::net::{Ipv6Addr, SocketAddr};

/// What Linux counted of a connection until it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KernelCounters {
    /// Its own address.
    pub local: SocketAddr,
    /// Its peer's.
    pub peer: SocketAddr,
    /// `busy`: for how long something waited to be sent or acknowledged, s.
    pub busy_s: f64,
    /// `rwnd_limited`: of this, held up by the peer's window, s.
    pub receive_window_limited_s: f64,
    /// `sndbuf_limited`: of this, held up by the send buffer, s.
    pub send_buffer_limited_s: f64,
}

/// Connections of the text that are looked at.
const MOST: usize = 100_000;

/// Reads what `ss -tin` or `ss -tinm` has printed, in any of its layouts. Connections that were never busy are left out: `ss` says nothing of them.
pub fn parse_ss(text: &str) -> Vec<KernelCounters> {
    let mut found: Vec<KernelCounters> = Vec::new();
    let mut ends: Option<(SocketAddr, SocketAddr)> = None;
    for line in text.lines() {
        // A line of a socket has both addresses; what is counted follows on it, or on the next.
        let mut addresses = line.split_whitespace().filter_map(address);
        if let (Some(local), Some(peer)) = (addresses.next(), addresses.next()) {
            ends = Some((local, peer));
        }
        let value = |key: &str| {
            line.split_whitespace().find_map(|word| milliseconds(word.strip_prefix(key)?.strip_prefix(':')?))
        };
        if let (Some((local, peer)), Some(busy)) = (ends, value("busy"))
            && found.len() < MOST
        {
            found.push(KernelCounters {
                local,
                peer,
                busy_s: busy,
                receive_window_limited_s: value("rwnd_limited").unwrap_or(0.0).min(busy),
                send_buffer_limited_s: value("sndbuf_limited").unwrap_or(0.0).min(busy),
            });
            ends = None;
        }
    }
    found
}

/// `10.0.0.1:80`, `10.0.0.1%eth0:80`, `[::1]:80`, `[fe80::1%eth0]:80`.
fn address(word: &str) -> Option<SocketAddr> {
    let (host, port) = word.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.split_once('%').map_or(host, |(host, _)| host);
    let ip = match host.parse::<Ipv6Addr>() {
        Ok(ip) => ip.to_canonical(),
        Err(_) => host.parse().ok()?,
    };
    Some(SocketAddr::new(ip, port.parse().ok()?))
}

/// `1888ms(46.2%)`, in s.
fn milliseconds(value: &str) -> Option<f64> {
    let ms: u64 = value.split_once("ms")?.0.parse().ok()?;
    Some(ms as f64 / 1e3)
}

/// Limits that a kernel tells apart and a capture does not surely: windows, buffers and what the sender does by itself.
const BY_THE_SENDER: [Limit; 7] = [
    Limit::SlowStart,
    Limit::CongestionWindow,
    Limit::SendBuffer,
    Limit::ReceiveWindow,
    Limit::ZeroWindow,
    Limit::Paced,
    Limit::Unclear,
];

/// Takes what the sender's kernel counted for what it is: the receive window and the send buffer have the time that they had by its count, out of
/// what was told of windows, slow start and pacing. What is left of that keeps its proportions. The times still add up.
pub fn overrule(report: &mut ConnectionReport, counted: &KernelCounters) {
    let pool: f64 = share_of(report, &BY_THE_SENDER);
    let (receiver, buffer) = (counted.receive_window_limited_s, counted.send_buffer_limited_s);
    // The kernel counts over all of the connection; the capture may have less of it.
    let fits = if receiver + buffer > pool { pool / (receiver + buffer) } else { 1.0 };
    let (receiver, buffer) = (receiver * fits, buffer * fits);
    let windows = [Limit::ReceiveWindow, Limit::ZeroWindow];
    let is_other = |limit: &Limit| !windows.contains(limit) && *limit != Limit::SendBuffer;
    let others: Vec<Limit> = BY_THE_SENDER.into_iter().filter(is_other).collect();
    // Summed, and not what is left of the pool: where they are next to nothing of it, that is rounded.
    let (told, others) = (share_of(report, &windows), share_of(report, &others));
    let left = (pool - receiver - buffer).max(0.0);
    let ratio = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    for share in &mut report.limits {
        if windows.contains(&share.limit) {
            share.time_s *= ratio(receiver, told);
        } else if share.limit == Limit::SendBuffer {
            share.time_s = 0.0;
        } else if BY_THE_SENDER.contains(&share.limit) {
            share.time_s *= ratio(left, others);
        }
    }
    let mut more = |limit: Limit, time_s: f64| add(report, LimitShare { limit, time_s, bytes: 0 });
    more(Limit::SendBuffer, buffer);
    if told <= 0.0 {
        more(Limit::ReceiveWindow, receiver);
    }
    if others <= 0.0 {
        more(Limit::Unclear, left);
    }
    report.limits.retain(|share| share.time_s > 0.0 || share.bytes > 0);
    sum_up(report);
}

/// Gives a limit more time and bytes.
fn add(report: &mut ConnectionReport, more: LimitShare) {
    match report.limits.iter_mut().find(|share| share.limit == more.limit) {
        Some(share) => {
            share.time_s += more.time_s;
            share.bytes += more.bytes;
        }
        None => report.limits.push(more),
    }
}

/// The longest limit comes first, and the sentence says it.
fn sum_up(report: &mut ConnectionReport) {
    report.limits.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
    report.summary = summary(report);
}

fn share_of(report: &ConnectionReport, limits: &[Limit]) -> f64 {
    report.limits.iter().filter(|share| limits.contains(&share.limit)).map(|share| share.time_s).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Diagnosis;

    /// As iproute2 6.1 prints it with `-tinm`, and in one line with `-O`; shortened.
    const PRINTED: &str = "\
State  Recv-Q  Send-Q      Local Address:Port    Peer Address:Port  Process
ESTAB  0       131072           10.0.0.1:50000       10.0.0.2:5001
\t skmem:(r0,rb131072,t0,tb87040,f0,w0,o0,bl0,d0) cubic wscale:7,7 rto:304 rtt:101.3/0.05 mss:1448 cwnd:126 ssthresh:90 bytes_acked:2162313 busy:4000ms rwnd_limited:1888ms(47.2%) sndbuf_limited:1000ms(25.0%) minrtt:100.2
ESTAB  0       0      [fe80::1%eth0]:22       [::ffff:192.0.2.7]:40000
\t cubic wscale:7,7 rto:204 rtt:1.5/0.75
ESTAB 0 0 127.0.0.1%lo:80 127.0.0.1:40001 cubic rtt:0.1/0.05 busy:16ms minrtt:0.03
";

    #[test]
    fn what_ss_prints_is_read_in_each_layout() {
        let found = parse_ss(PRINTED);
        let address = |text: &str| text.parse::<SocketAddr>().expect("one");
        assert_eq!(
            found,
            [
                KernelCounters {
                    local: address("10.0.0.1:50000"),
                    peer: address("10.0.0.2:5001"),
                    busy_s: 4.0,
                    receive_window_limited_s: 1.888,
                    send_buffer_limited_s: 1.0,
                },
                KernelCounters {
                    local: address("127.0.0.1:80"),
                    peer: address("127.0.0.1:40001"),
                    busy_s: 0.016,
                    receive_window_limited_s: 0.0,
                    send_buffer_limited_s: 0.0,
                },
            ]
        );
        assert_eq!(parse_ss("nothing of it"), []);
    }

    #[test]
    fn connections_beyond_the_bound_are_not_looked_at() {
        assert_eq!(parse_ss(&"10.0.0.1:1 10.0.0.2:2 busy:1ms\n".repeat(MOST + 1)).len(), MOST);
    }

    #[test]
    fn what_is_counted_takes_the_place_of_what_is_guessed_and_the_times_add_up() {
        let mut report = Diagnosis::default().finish();
        assert!(report.connections.is_empty());
        let share = |limit, time_s| LimitShare { limit, time_s, bytes: 1 };
        let counted = parse_ss(PRINTED)[0];
        let whole = |limits: Vec<LimitShare>| {
            let mut watched =
                crate::live::Watched::new(counted.local, counted.peer, Default::default()).report();
            watched.duration_s = limits.iter().map(|share| share.time_s).sum();
            watched.limits = limits;
            watched
        };
        report.connections.push(whole(vec![
            share(Limit::CongestionWindow, 3.0),
            share(Limit::SlowStart, 1.0),
            share(Limit::PathRate, 0.5),
        ]));
        let connection = &mut report.connections[0];
        overrule(connection, &counted);
        let told: Vec<_> =
            connection.limits.iter().map(|share| (share.limit, (share.time_s * 1e3).round())).collect();
        assert_eq!(
            told,
            [
                (Limit::ReceiveWindow, 1888.0),
                (Limit::SendBuffer, 1000.0),
                (Limit::CongestionWindow, 834.0),
                (Limit::PathRate, 500.0),
                (Limit::SlowStart, 278.0),
            ]
        );
        // What was not told apart from the rest is not lost in it (found by drawn captures of centuries).
        let mut long = whole(vec![share(Limit::ReceiveWindow, 2.9e9), share(Limit::SlowStart, 0.03)]);
        let never = KernelCounters { receive_window_limited_s: 0.0, send_buffer_limited_s: 0.0, ..counted };
        overrule(&mut long, &never);
        let sum: f64 = long.limits.iter().map(|share| share.time_s).sum();
        assert!((sum - 2.9e9 - 0.03).abs() < 1.0, "{sum}");
        // More than the capture has is cut to it.
        let mut short = whole(vec![share(Limit::CongestionWindow, 0.5), share(Limit::Loss, 1.0)]);
        overrule(&mut short, &counted);
        let sum: f64 = short.limits.iter().map(|share| share.time_s).sum();
        assert!((sum - 1.5).abs() < 1e-9 && short.limits[0].limit == Limit::Loss);
    }
}
