//! The same captures read by `farpath diagnose`, by the published rules of another classifier, and by Wireshark's analysis (`tshark`), beside what is
//! true of them. `diagnose_comparison` simulates; `diagnose_comparison FILE.pcapng ...` takes captures that others have made, of which nothing is known.

use farpath_bench::diagnose::{CapturedPacket, write_pcap};
use farpath_bench::rounds::classify;
use farpath_bench::transfers::{SCENARIOS, transfer};
use farpath_diagnose::{Diagnosis, Interval, Limit, Link, TcpPacket, parse, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Controller and round trip of what is simulated: of those that thresholds of `farpath diagnose` may be chosen by.
const CONTROL: &str = "reno";
const RTT_MS: u64 = 300;

const MARKS: [(&str, &str); 6] = [
    ("tcp.analysis.window_full", "window full"),
    ("tcp.analysis.zero_window", "zero window"),
    ("tcp.analysis.retransmission", "retransmission"),
    ("tcp.analysis.out_of_order", "out of order"),
    ("tcp.analysis.lost_segment", "lost segment"),
    ("tcp.analysis.duplicate_ack", "duplicate ACK"),
];

/// How often Wireshark marks packets of a capture.
fn marks(file: &Path) -> Option<String> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r"]).arg(file).args(["-Y", "tcp.analysis.flags", "-T", "fields"]);
    for (field, _) in MARKS {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counts = [0_u32; MARKS.len()];
    for line in text.lines() {
        for (count, field) in counts.iter_mut().zip(line.split('\t')) {
            *count += u32::from(!field.is_empty());
        }
    }
    let told: Vec<_> = MARKS
        .iter()
        .zip(counts)
        .filter(|(_, count)| *count > 0)
        .map(|((_, name), count)| format!("{count} {name}"))
        .collect();
    Some(if told.is_empty() { "nothing".to_owned() } else { told.join(", ") })
}

/// The two limits with the most time.
fn most(said: &[Interval]) -> String {
    let mut sums: BTreeMap<Limit, u64> = BTreeMap::new();
    said.iter().for_each(|one| *sums.entry(one.limit).or_default() += one.to_ns - one.from_ns);
    let all: u64 = sums.values().sum();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, ns)| core::cmp::Reverse(*ns));
    let share = |ns: u64| 100.0 * ns as f64 / all.max(1) as f64;
    let told: Vec<_> =
        sums.iter().take(2).map(|(limit, ns)| format!("{} {:.0} %", limit.name(), share(*ns))).collect();
    told.join(", ")
}

/// How much of the time is said as it is true, %; both begin with the first packet, and what is not said counts as wrong. Whether windows and paces of the
/// sender's, and windows of the receiver's, are told apart among themselves is not asked: the other rules do not.
fn right(truth: &[Interval], said: &[Interval], shift: u64) -> f64 {
    let kind = |limit: Limit| match limit {
        Limit::Paced | Limit::SendBuffer => Limit::CongestionWindow,
        Limit::ZeroWindow => Limit::ReceiveWindow,
        Limit::Nagle => Limit::Application,
        other => other,
    };
    // Nothing is asked of the opening and of the end: the other rules have no words for them.
    let asked = |one: &&Interval| !matches!(one.limit, Limit::Handshake | Limit::Closing);
    let (mut hit, mut all) = (0, 0);
    for true_one in truth.iter().filter(asked) {
        let (from, to) = (true_one.from_ns + shift, true_one.to_ns + shift);
        all += to - from;
        for one in said.iter().filter(|one| one.to_ns > from && one.from_ns < to) {
            if kind(one.limit) == kind(true_one.limit) {
                hit += one.to_ns.min(to) - one.from_ns.max(from);
            }
        }
    }
    100.0 * hit as f64 / all.max(1) as f64
}

/// Frames of an interface, and their TCP packets.
fn place(capture: &[u8], interface: u32) -> (Vec<CapturedPacket>, Vec<(u64, TcpPacket)>, i32) {
    let (mut frames, mut packets, mut kind) = (Vec::new(), Vec::new(), 101);
    let ended = read(capture, |frame| {
        if frame.interface == interface
            && let Some(link) = Link::from_type(frame.link_type)
            && let Some(packet) = parse(link, frame.data, frame.length)
        {
            kind = frame.link_type;
            frames.push((frame.time_ns, frame.data.to_vec(), frame.length));
            packets.push((frame.time_ns, packet));
        }
    });
    if let Err(error) = ended {
        eprintln!("diagnose_comparison: {error}");
    }
    (frames, packets, kind)
}

/// A row: what is true, and what each says.
fn row(name: &str, at: &str, truth: Option<(&[Interval], u64)>, capture: &[u8], interface: u32) {
    let (frames, packets, kind) = place(capture, interface);
    // The connection with the most data, and then that alone.
    let diagnosed = |packets: &[(u64, TcpPacket)]| {
        let mut diagnosis = Diagnosis::with_intervals(1);
        for (number, (time, packet)) in (1..).zip(packets) {
            diagnosis.packet(number, 0, *time, packet);
        }
        diagnosis.finish()
    };
    let Some(main) = diagnosed(&packets).connections.into_iter().next() else {
        eprintln!("diagnose_comparison: {name}: no TCP");
        return;
    };
    let ends = [main.sender, main.receiver];
    let is_of = |packet: &TcpPacket| ends.contains(&packet.source) && ends.contains(&packet.destination);
    let own: Vec<_> = packets.iter().filter(|(_, packet)| is_of(packet)).copied().collect();
    let report = diagnosed(&own);
    let connection = &report.connections[0];
    let rules = classify(&own, connection.sender);
    let file: PathBuf = env::temp_dir().join(format!("farpath-comparison-{}.pcap", std::process::id()));
    let marked = write_pcap(&file, kind, &frames).ok().and_then(|()| marks(&file));
    let _ = fs::remove_file(&file);
    let score = |said: &[Interval]| match truth {
        Some((truth, shift)) => format!(" ({:.0} % right)", right(truth, said, packets[0].0 - shift)),
        None => String::new(),
    };
    println!(
        "| {name} | {at} | {} | {} | {}{} | {}{} |",
        truth.map_or_else(|| "–".to_owned(), |(truth, _)| most(truth)),
        marked.unwrap_or_else(|| "not asked: no tshark here".to_owned()),
        most(&rules),
        score(&rules),
        most(&connection.intervals),
        score(&connection.intervals),
    );
}

fn main() {
    println!(
        "| transfer | captured | true | Wireshark marks | published rules, by round trips | farpath diagnose |\n| --- | --- | --- | --- | --- | --- |"
    );
    let files: Vec<String> = env::args().skip(1).collect();
    for file in &files {
        let capture = fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let name =
            Path::new(file).file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        for (interface, at) in [(0, "near host"), (1, "far host")] {
            row(&name, at, None, &capture, interface);
        }
    }
    if !files.is_empty() {
        return;
    }
    for scenario in SCENARIOS {
        let transfer = transfer(scenario, CONTROL, RTT_MS);
        for (interface, at, later) in [(0, "sender", 0), (1, "receiver", RTT_MS * 500_000)] {
            // Truth is of the sender; at the receiver all comes half of a round trip later, and so does the first packet.
            let first = transfer.seen[0][interface].first().map_or(0, |seen| seen.at);
            let truth = (&transfer.truth[..], first - later);
            row(scenario, at, Some(truth), &transfer.capture, interface as u32);
        }
    }
}
