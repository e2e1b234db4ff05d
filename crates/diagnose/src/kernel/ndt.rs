//! What the server of a speed test by ndt7 counted, as it keeps it or as its clients print it.

use super::{KernelCounters, MOST};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

/// What is looked at of a JSON value: a result that a server keeps, a measurement, or a client's line around one.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Value {
    #[serde(rename = "Value")]
    inner: Option<Box<Value>>,
    // A result.
    #[serde(rename = "ClientIP")]
    client_ip: Option<IpAddr>,
    client_port: u16,
    #[serde(rename = "ServerIP")]
    server_ip: Option<IpAddr>,
    server_port: u16,
    download: Option<Subtest>,
    // A measurement.
    connection_info: Option<ConnectionInfo>,
    origin: Option<String>,
    test: Option<String>,
    #[serde(rename = "TCPInfo")]
    tcp_info: Option<TcpInfo>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Subtest {
    server_measurements: Vec<Value>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "PascalCase")]
struct ConnectionInfo {
    client: SocketAddr,
    server: SocketAddr,
}

/// Microseconds, as Linux counts them.
#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "PascalCase", default)]
struct TcpInfo {
    busy_time: u64,
    #[serde(rename = "RWndLimited")]
    receive_window_limited: u64,
    #[serde(rename = "SndBufLimited")]
    send_buffer_limited: u64,
}

/// Reads what an ndt7 server counted of the downloads that it sent: the JSON file that it keeps of each
/// (<https://github.com/m-lab/ndt-server/blob/main/spec/data-format.md>), or measurements one behind the other, as clients print them
/// (`spec/ndt7-protocol.md` beside it). Of an upload the sender's kernel has told nobody.
///
/// # Errors
/// What is no JSON, or has something else where these have a number or an address.
pub fn parse_ndt(text: &str) -> Result<Vec<KernelCounters>, serde_json::Error> {
    let mut found: Vec<KernelCounters> = Vec::new();
    let mut ends: Option<ConnectionInfo> = None;
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let mut value = value?;
        if let Some(inner) = value.inner.take() {
            value = *inner;
        }
        if let (Some(server), Some(client), Some(download)) =
            (value.server_ip, value.client_ip, &value.download)
        {
            let ends = ConnectionInfo {
                client: SocketAddr::new(client, value.client_port),
                server: SocketAddr::new(server, value.server_port),
            };
            let last = download.server_measurements.iter().rev().find_map(|measurement| measurement.tcp_info);
            last.into_iter().for_each(|counted| add(&mut found, ends, counted));
            continue;
        }
        // The first measurement of a connection says whose it is.
        ends = value.connection_info.or(ends);
        let is_of_sender =
            value.origin.as_deref() == Some("server") && value.test.as_deref() == Some("download");
        if let (true, Some(ends), Some(counted)) = (is_of_sender, ends, value.tcp_info) {
            add(&mut found, ends, counted);
        }
    }
    Ok(found)
}

/// The counters only grow: the last ones of a connection are of all of it.
fn add(found: &mut Vec<KernelCounters>, ends: ConnectionInfo, counted: TcpInfo) {
    let seconds = |us: u64| us as f64 / 1e6;
    let [local, peer] =
        [ends.server, ends.client].map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()));
    let busy_s = seconds(counted.busy_time);
    let counters = KernelCounters {
        local,
        peer,
        busy_s,
        receive_window_limited_s: seconds(counted.receive_window_limited).min(busy_s),
        send_buffer_limited_s: seconds(counted.send_buffer_limited).min(busy_s),
    };
    if let Some(last) = found.last_mut().filter(|last| (last.local, last.peer) == (local, peer)) {
        *last = counters;
    } else if found.len() < MOST {
        found.push(counters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the format's document has it, with a download.
    const KEPT: &str = r#"{"GitShortCommit": "773d318", "Version": "v0.9.1", "ClientIP": "192.0.2.7", "ClientPort": 40910,
        "ServerIP": "::ffff:198.51.100.1", "ServerPort": 443, "StartTime": "2019-07-16T15:26:05.98-04:00",
        "Download": {"UUID": "x", "ClientMeasurements": [{"AppInfo": {"ElapsedTime": 1, "NumBytes": 2}}],
            "ServerMeasurements": [{"TCPInfo": {"BusyTime": 1, "RWndLimited": 0, "SndBufLimited": 0, "RTT": 100}},
                {"BBRInfo": {"BW": 1}, "TCPInfo": {"BusyTime": 9500000, "RWndLimited": 7000000, "SndBufLimited": 250000}}]}}"#;

    #[test]
    fn what_a_server_keeps_is_of_the_end_of_its_download() {
        let counted = KernelCounters {
            local: ([198, 51, 100, 1], 443).into(),
            peer: ([192, 0, 2, 7], 40910).into(),
            busy_s: 9.5,
            receive_window_limited_s: 7.0,
            send_buffer_limited_s: 0.25,
        };
        assert_eq!(parse_ndt(KEPT).expect("JSON"), [counted]);
        let upload = KEPT.replace("Download", "Upload");
        assert_eq!(parse_ndt(&upload).expect("JSON"), [], "of its sender nothing is said");
    }

    #[test]
    fn measurements_are_read_one_behind_the_other() {
        let line = |origin: &str, test: &str, busy: u64| {
            format!(
                r#"{{"Key":"measurement","Value":{{"Origin":"{origin}","Test":"{test}","TCPInfo":{{"BusyTime":{busy},"RWndLimited":99}}}}}}"#
            )
        };
        let ends = r#"{"ConnectionInfo": {"Client": "[::1]:5678", "Server": "[::1]:443", "UUID": "x"}, "Origin": "server", "Test": "download"}"#;
        let text = [
            ends,
            &line("server", "download", 50),
            &line("client", "download", 70),
            &line("server", "upload", 80),
        ]
        .join("\n");
        let counted = parse_ndt(&text).expect("JSON");
        assert_eq!(counted.len(), 1);
        assert_eq!((counted[0].local, counted[0].busy_s), ("[::1]:443".parse().expect("one"), 5e-5));
        assert_eq!(counted[0].receive_window_limited_s, 5e-5, "no more than it was busy");
        assert!(parse_ndt("{\"TCPInfo\": {\"BusyTime\": \"long\"}}").is_err() && parse_ndt("{").is_err());
        assert_eq!(parse_ndt("").expect("nothing"), []);
    }

    #[test]
    fn results_beyond_the_bound_are_not_looked_at() {
        let ends = |port: usize| {
            format!(
                r#"{{"ConnectionInfo":{{"Client":"10.0.0.1:{}","Server":"10.0.{}.2:1"}},"Origin":"server","Test":"download","TCPInfo":{{}}}}"#,
                port % 50_000,
                port / 50_000
            )
        };
        let text: String = (0..MOST + 1).map(ends).collect();
        assert_eq!(parse_ndt(&text).expect("JSON").len(), MOST);
    }
}
