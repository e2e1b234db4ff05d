//! What this kernel knows of a destination: its connections (`ss -ti`), and what it kept of earlier ones (`ip tcp_metrics`).

use super::measured::{Measured, Way};
use farpath_measure::share;
use farpath_path::PerDirection;
use farpath_tcp::config::CongestionControlKind;
use farpath_units::{Duration, Rate};
use serde_json::Value;
use std::net::IpAddr;
use std::process::Command;

/// What is known, and by what.
#[derive(Debug, PartialEq)]
pub struct Neighbour {
    pub path: Measured,
    pub from: String,
}

/// What all connections to it say together.
#[derive(Debug, Default, PartialEq)]
struct Connections {
    count: usize,
    min_rtt_us: Option<f64>,
    rtt_us: Option<f64>,
    delivery_bit_per_s: u64,
    sent: u32,
    again: u32,
    control: Option<CongestionControlKind>,
}

/// The path to `address`, by the two programs of iproute2.
pub fn known(address: IpAddr, rate: Option<Rate>) -> Result<Neighbour, String> {
    let text = address.to_string();
    let connections = connections(&output("ss", &["-tinHO", "dst", &text])?);
    let metrics = metrics_rtt(&output("ip", &["-j", "tcp_metrics", "show", &text]).unwrap_or_default());
    path(&connections, metrics, rate)
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("`{program}` of iproute2 cannot be run: {error}"))?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// One line for each connection, as `ss -tinO` prints it: `name:value`, and rates as `name value`.
fn connections(text: &str) -> Connections {
    let mut all = Connections::default();
    for line in text.lines().filter(|line| line.starts_with("ESTAB")) {
        all.count += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
        let number = |name: &str| value(name).and_then(|value| value.split('/').next()?.parse::<f64>().ok());
        let least = |seen: Option<f64>, now: Option<f64>| match (seen, now) {
            (Some(seen), Some(now)) => Some(seen.min(now)),
            (seen, now) => seen.or(now),
        };
        all.rtt_us = least(all.rtt_us, number("rtt").map(|ms| ms * 1000.0));
        all.min_rtt_us = least(all.min_rtt_us, number("minrtt").map(|ms| ms * 1000.0));
        let rate = words.windows(2).find(|pair| pair[0] == "delivery_rate");
        let rate = rate.and_then(|pair| pair[1].strip_suffix("bps")?.parse().ok()).unwrap_or(0);
        all.delivery_bit_per_s = all.delivery_bit_per_s.max(rate);
        let count = |value: Option<&str>| value.and_then(|value| value.parse::<u32>().ok()).unwrap_or(0);
        all.sent = all.sent.saturating_add(count(value("data_segs_out")));
        // Now, and in all.
        all.again = all.again.saturating_add(count(value("retrans").and_then(|both| both.split('/').nth(1))));
        all.control =
            all.control.or_else(|| words.iter().find_map(|word| CongestionControlKind::of_linux(word)));
    }
    all
}

/// The smoothed round trip that is kept of earlier connections, in us.
fn metrics_rtt(text: &str) -> Option<f64> {
    let all: Value = serde_json::from_str(text).ok()?;
    all.as_array()?.iter().find_map(|one| one["rtt"].as_f64()).map(|seconds| seconds * 1e6)
}

fn path(seen: &Connections, metrics_us: Option<f64>, rate: Option<Rate>) -> Result<Neighbour, String> {
    let usual = seen.rtt_us.or(metrics_us);
    let Some(usual) = usual.filter(|us| us.is_finite() && *us > 0.0) else {
        return Err("no connection to it is open, and `ip tcp_metrics` has no round trip of it".to_owned());
    };
    let least = seen.min_rtt_us.unwrap_or(usual).min(usual);
    let delivered = Rate::from_bit_per_s(seen.delivery_bit_per_s);
    let Some(found) = rate.or(delivered) else {
        return Err(format!(
            "a round trip of {:.3} ms, and no rate: give --rate, or ask while a transfer goes there",
            usual / 1000.0
        ));
    };
    // What was delivered the path can do; how much more, nothing says.
    let rate_ends = if rate.is_some() { None } else { Some([1.0, 2.0]) };
    let loss = share(seen.again.min(seen.sent), seen.sent);
    let forward = Way { rate: found, rate_ends, queue: None, queue_ends: None, loss };
    let us = |us: f64| Duration::from_nanos((us * 1000.0) as u64);
    let from = match seen.count {
        0 => "the round trip that `ip tcp_metrics` keeps".to_owned(),
        count => format!(
            "open connections: {count}; round trips of {:.3} ms at the least, {} of {} segments sent again; delivered {}",
            least / 1000.0,
            seen.again,
            seen.sent,
            delivered.map_or("nothing".to_owned(), |rate| rate.to_string())
        ),
    };
    let ways = PerDirection { forward, reverse: Way { loss: None, ..forward } };
    Ok(Neighbour { path: Measured { rtt: [us(least), us(usual)], ways, control: seen.control }, from })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ss of iproute2 6.1 prints it.
    const LINE: &str = "ESTAB 0 52 10.0.0.1:22 10.0.0.2:5 cubic wscale:7,7 rto:284 rtt:80.5/2.25 ato:40 mss:1448 pmtu:1500 rcvmss:536 \
        advmss:1448 cwnd:20 ssthresh:18 bytes_sent:1448000 bytes_retrans:14480 bytes_acked:1400000 segs_out:1000 segs_in:500 \
        data_segs_out:1000 send 28Mbps lastsnd:4 pacing_rate 34000000bps delivery_rate 21000000bps delivered:990 busy:900ms \
        retrans:0/10 rcv_space:14480 minrtt:79.9\n";

    #[test]
    fn a_connection_tells_its_path() {
        let seen = connections(LINE);
        assert_eq!(
            (seen.count, seen.sent, seen.again, seen.control),
            (1, 1000, 10, Some(CongestionControlKind::Cubic))
        );
        let known = path(&seen, None, None).expect("it says enough");
        assert_eq!(known.path.rtt, [Duration::from_micros(79_900), Duration::from_micros(80_500)]);
        assert_eq!(known.path.ways.forward.rate.bit_per_s(), 21_000_000);
        let (share, [low, high]) = known.path.ways.forward.loss.expect("some were sent again");
        assert!(low < share && share < high && (share - 0.01).abs() < 1e-9, "{share}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let nothing = path(&connections(""), None, None).expect_err("nothing is known");
        assert!(nothing.contains("no connection"), "{nothing}");
        let kept = metrics_rtt("[{\"dst\":\"10.0.0.2\",\"rtt\":0.08}]");
        assert_eq!(kept, Some(80_000.0));
        assert!(path(&connections(""), kept, None).expect_err("no rate").contains("--rate"));
        let given = Rate::from_bit_per_s(10_000_000);
        assert_eq!(path(&connections(""), kept, given).expect("enough").path.ways.forward.rate_ends, None);
    }

    /// Text of another version, cut anywhere, is less knowledge and no end of the program.
    #[test]
    fn any_part_of_a_line_is_read() {
        for end in 0..LINE.len() {
            let _ = path(&connections(&LINE[..end]), metrics_rtt(&LINE[end..]), None);
        }
    }
}
