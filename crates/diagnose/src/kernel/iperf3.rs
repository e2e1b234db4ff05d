//! What `iperf3 --json` printed of a test, where its host is the sender: the congestion window of the kernel at the end of each interval.

use super::{MOST, add, sum_up};
use crate::{ConnectionReport, Limit, LimitShare};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// A congestion window that is so many times as long as what was in flight at the most has held nothing up.
const UNUSED: f64 = 1.5;

/// What iperf3 told of a connection that its own host sent on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Iperf3 {
    /// Its own address.
    #[serde(skip)]
    pub local: SocketAddr,
    /// Its peer's.
    #[serde(skip)]
    pub peer: SocketAddr,
    /// The congestion control of the sender's kernel.
    pub congestion_control: Option<String>,
    /// The shortest and the longest congestion window at the ends of intervals, bytes.
    pub cwnd: (u64, u64),
    /// What the kernel sent again.
    pub retransmits: u64,
    /// `SO_SNDBUF` as the kernel has set it, bytes: its overhead counts too.
    pub send_buffer: Option<u64>,
}

#[derive(Deserialize)]
struct Printed {
    start: Start,
    #[serde(default)]
    intervals: Vec<Interval>,
    #[serde(default)]
    end: End,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Start {
    connected: Vec<Connected>,
    sndbuf_actual: Option<u64>,
}

#[derive(Deserialize)]
struct Connected {
    socket: u64,
    local_host: IpAddr,
    local_port: u16,
    remote_host: IpAddr,
    remote_port: u16,
}

#[derive(Deserialize)]
struct Interval {
    #[serde(default)]
    streams: Vec<Stream>,
}

#[derive(Deserialize)]
struct Stream {
    socket: u64,
    snd_cwnd: Option<u64>,
    #[serde(default)]
    retransmits: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct End {
    sender_tcp_congestion: Option<String>,
}

/// Reads what `iperf3 --json` printed (iperf3 3.1 on). Where its host received, as with `--reverse`, it has no congestion windows, and nothing is found.
///
/// # Errors
/// What is no JSON of a test.
pub fn parse_iperf3(text: &str) -> Result<Vec<Iperf3>, serde_json::Error> {
    let printed: Printed = serde_json::from_str(text)?;
    // Of each socket: its windows, and what was sent again.
    let mut sockets: HashMap<u64, (u64, u64, u64)> = HashMap::new();
    for stream in printed.intervals.iter().flat_map(|interval| &interval.streams) {
        if let Some(cwnd) = stream.snd_cwnd.filter(|cwnd| *cwnd > 0) {
            let (least, most, again) = sockets.entry(stream.socket).or_insert((u64::MAX, 0, 0));
            (*least, *most) = ((*least).min(cwnd), (*most).max(cwnd));
            *again = again.saturating_add(stream.retransmits);
        }
    }
    let mut found = Vec::new();
    for connected in printed.start.connected.iter().take(MOST) {
        let Some(&(least, most, retransmits)) = sockets.get(&connected.socket) else { continue };
        found.push(Iperf3 {
            local: SocketAddr::new(connected.local_host.to_canonical(), connected.local_port),
            peer: SocketAddr::new(connected.remote_host.to_canonical(), connected.remote_port),
            congestion_control: printed.end.sender_tcp_congestion.clone(),
            cwnd: (least, most),
            retransmits,
            send_buffer: printed.start.sndbuf_actual.filter(|bytes| *bytes > 0),
        });
    }
    Ok(found)
}

/// Takes what iperf3 printed for what it is. Where the congestion window always had much more room than was ever used, what a capture calls the
/// congestion window was the send buffer: no other window is left.
pub fn overrule_by_iperf3(report: &mut ConnectionReport, told: &Iperf3) {
    if told.cwnd.0 as f64 > UNUSED * report.most_in_flight as f64 && report.most_in_flight > 0 {
        if let Some(place) = report.limits.iter().position(|share| share.limit == Limit::CongestionWindow) {
            let window = report.limits.remove(place);
            add(report, LimitShare { limit: Limit::SendBuffer, ..window });
        }
        sum_up(report);
    }
    report.iperf3 = Some(told.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As iperf3 3.12 prints it; shortened.
    const PRINTED: &str = r#"{"start": {"connected": [{"socket": 5, "local_host": "fd00::1", "local_port": 34068, "remote_host": "fd00::2",
        "remote_port": 5201}], "version": "iperf 3.12", "sock_bufsize": 65536, "sndbuf_actual": 131072},
        "intervals": [{"streams": [{"socket": 5, "bytes": 715266, "retransmits": 1, "snd_cwnd": 241332, "rtt": 100570}]},
            {"streams": [{"socket": 5, "bytes": 715266, "retransmits": 2, "snd_cwnd": 200000, "rtt": 100570}]}],
        "end": {"sender_tcp_congestion": "bbr"}}"#;

    #[test]
    fn congestion_windows_are_those_of_the_connection() {
        let found = parse_iperf3(PRINTED).expect("JSON");
        let expected = Iperf3 {
            local: "[fd00::1]:34068".parse().expect("one"),
            peer: "[fd00::2]:5201".parse().expect("one"),
            congestion_control: Some("bbr".to_owned()),
            cwnd: (200_000, 241_332),
            retransmits: 3,
            send_buffer: Some(131_072),
        };
        assert_eq!(found, [expected]);
        let reverse = PRINTED.replace("\"snd_cwnd\"", "\"other\"");
        assert_eq!(parse_iperf3(&reverse).expect("JSON"), [], "of its sender nothing is said");
        assert!(parse_iperf3("{\"error\": \"unable to connect\"}").is_err());
    }

    #[test]
    fn a_congestion_window_with_room_leaves_the_send_buffer() {
        let told = parse_iperf3(PRINTED).expect("JSON").remove(0);
        let report = |most_in_flight| {
            let mut report = crate::live::Watched::new(told.local, told.peer, Default::default()).report();
            report.duration_s = 4.0;
            report.limits = [(Limit::CongestionWindow, 3.0), (Limit::SlowStart, 1.0)]
                .map(|(limit, time_s)| LimitShare { limit, time_s, bytes: 1 })
                .to_vec();
            report.most_in_flight = most_in_flight;
            overrule_by_iperf3(&mut report, &told);
            report.limits[0].limit
        };
        assert_eq!(report(100_000), Limit::SendBuffer);
        assert_eq!(report(190_000), Limit::CongestionWindow);
    }

    #[test]
    fn connections_beyond_the_bound_are_not_looked_at() {
        let one = r#"{"socket": 5, "local_host": "10.0.0.1", "local_port": 1, "remote_host": "10.0.0.2", "remote_port": 2}"#;
        let many = vec![one; MOST + 1].join(",");
        let text = format!(
            r#"{{"start": {{"connected": [{many}]}}, "intervals": [{{"streams": [{{"socket": 5, "snd_cwnd": 1}}]}}]}}"#
        );
        assert_eq!(parse_iperf3(&text).expect("JSON").len(), MOST);
    }
}
