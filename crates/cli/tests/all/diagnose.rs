//! `farpath diagnose` beside what is known of a simulated transfer, at both ends; and what is no capture.

use crate::support::{Folder, lines, refused, run};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use farpath_run::parquet_file;
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// A transfer over a path, and its capture: interface 0 is at the sender, 1 at the receiver.
fn captured(path: &str, sender: &str, receiver: &str, transfer: &str) -> (Folder, String) {
    let folder = Folder::with(&format!(
        "title = \"t\"\n{path}\n[sender]\nstack = \"linux-6\"\n{sender}\n[receiver]\nstack = \"linux-6\"\n{receiver}\n\
         [transfer]\n{transfer}\n"
    ));
    let captures = folder.path("captures");
    let (out, err, code) = run(&["simulate", folder.file(), "--seeds", "1", "--capture", &captures]);
    assert_eq!(code, 0, "{out}{err}");
    let capture: PathBuf =
        fs::read_dir(captures).expect("it is there").flatten().next().expect("a capture").path();
    let capture = capture.to_str().expect("UTF-8").to_owned();
    (folder, capture)
}

/// A transfer over a path, of which the capture is read at the sender (interface 0) and the receiver (1).
fn diagnosed(path: &str, sender: &str, receiver: &str, transfer: &str) -> [Value; 2] {
    let (_folder, capture) = captured(path, sender, receiver, transfer);
    ["0", "1"].map(|interface| {
        let (out, err, code) = run(&["diagnose", &capture, "--interface", interface, "--json"]);
        assert_eq!(code, 0, "{err}");
        let found = lines(&out).remove(0);
        // Each instant has one owner.
        let sum: f64 = found["limits"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|limit| limit["time_s"].as_f64().expect("s"))
            .sum();
        let whole = found["duration_s"].as_f64().expect("s");
        assert!((sum - whole).abs() < 1e-6, "{sum} of {whole}");
        found
    })
}

/// The share of the time that a limit has.
fn share(found: &Value, limit: &str) -> f64 {
    let limits = found["limits"].as_array().expect("a list");
    let time = limits
        .iter()
        .find(|entry| entry["limit"] == limit)
        .map_or(0.0, |entry| entry["time_s"].as_f64().expect("s"));
    time / found["duration_s"].as_f64().expect("s")
}

fn link(rate: &str, queue: &str, delay: &str) -> String {
    format!(
        "[[path]]\nelement = \"link\"\nrate = \"{rate}\"\nqueue = \"{queue}\"\n[[path]]\nelement = \"delay\"\ndelay = \"{delay}\"\n"
    )
}

#[test]
fn a_small_receive_window_is_named_at_both_ends() {
    let path = link("100 Mbit/s", "1 bdp", "50 ms");
    let found = diagnosed(&path, "", "receive.buffer = \"128 kB\"", "size = \"5 MB\"");
    for (found, vantage) in found.iter().zip(["near-sender", "near-receiver"]) {
        assert_eq!(found["vantage"], vantage);
        assert!(share(found, "receive-window") > 0.7, "{found}");
        let said = found["summary"].as_str().expect("a sentence");
        assert!(said.contains("receive window full: 128.0 kB over 100 ms allow 10.24 Mbit/s"), "{said}");
        assert_eq!(
            (found["bytes"].as_u64(), found["bytes_not_captured"].as_u64()),
            (Some(5_000_000), Some(0))
        );
        assert_eq!(found["retransmissions"], 0);
    }
}

#[test]
fn a_report_and_a_capture_with_comments_are_of_the_same_connection() {
    let path = link("100 Mbit/s", "1 bdp", "50 ms");
    let folder = Folder::with(&format!(
        "title = \"t\"\n{path}\n[sender]\nstack = \"linux-6\"\n[receiver]\nstack = \"linux-6\"\nreceive.buffer = \"128 kB\"\n\
         [transfer]\nsize = \"5 MB\"\n"
    ));
    let captures = folder.path("captures");
    let (_, err, code) = run(&["simulate", folder.file(), "--seeds", "1", "--capture", &captures]);
    assert_eq!(code, 0, "{err}");
    let capture = fs::read_dir(&captures).expect("it is there").flatten().next().expect("a capture").path();
    let capture = capture.to_str().expect("UTF-8");
    let (page, annotated) = (folder.path("held.html"), folder.path("held.pcapng"));
    let asked =
        ["diagnose", capture, "--interface", "0", "--json", "--report", &page, "--annotate", &annotated];
    let (out, err, code) = run(&asked);
    assert_eq!(code, 0, "{err}");
    let html = fs::read_to_string(&page).expect("a report");
    assert!(html.contains("with the receive window full") && html.contains("Time-sequence graph"));
    // The same packets at the same times: the same answer.
    let (again, err, code) = run(&["diagnose", &annotated, "--interface", "0", "--json"]);
    assert_eq!((code, &again), (0, &out), "{err}");
    // Comments are for Wireshark: they stand in the file as text.
    let bytes = fs::read(&annotated).expect("a capture");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("s of receive window from") && text.contains("Farpath: 0.1"), "no comment");
    // Nothing is written over, and a capture that is read once only cannot be read twice.
    refused(&["diagnose", capture, "--annotate", &annotated], &["--annotate", "is there already"]);
    refused(&["diagnose", "-", "--report", &page], &["--report: captures are read twice", "`-`"]);
}

#[test]
fn tables_have_what_is_told() {
    let (folder, capture) =
        captured(&link("20 Mbit/s", "1 bdp", "30 ms"), "", "receive.buffer = \"64 kB\"", "size = \"1 MB\"");
    let tables = folder.path("tables");
    let (out, err, code) = run(&["diagnose", &capture, "--interface", "0", "--json", "--out", &tables]);
    assert_eq!(code, 0, "{err}");
    let found = lines(&out).remove(0);
    let rows = |table: &str| {
        let file =
            fs::File::open(PathBuf::from(&tables).join(format!("{table}.parquet"))).expect("it is written");
        let batches = parquet_file::batches(parquet_file::open(file).expect("Parquet")).expect("columns");
        batches.map(|batch| batch.expect("a batch")).collect::<Vec<_>>()
    };
    let sum = |table: &str, column: &str| -> u64 {
        let of = |batch: &arrow_array::RecordBatch| {
            let cells =
                batch.column_by_name(column).expect("the column").as_primitive::<UInt64Type>().clone();
            cells.iter().flatten().sum::<u64>()
        };
        rows(table).iter().map(of).sum()
    };
    assert_eq!(sum("connections", "bytes"), 1_000_000);
    assert_eq!(sum("limits", "bytes"), 1_000_000, "each byte has waited for something");
    let whole = (found["duration_s"].as_f64().expect("s") * 1e9).round() as u64;
    assert_eq!(sum("connections", "duration_ns"), whole);
    assert!(sum("limits", "time_ns").abs_diff(whole) < 20, "but for what is rounded");
    assert_eq!(sum("intervals", "to_ns") - sum("intervals", "from_ns"), whole);
    // Nothing is written over, nor read twice that cannot be.
    refused(&["diagnose", &capture, "--out", &tables], &["tables", "holds files"]);
    let new = folder.path("new");
    refused(&["diagnose", "-", "--out", &new], &["--out: captures are read twice"]);
    // Where there is nothing to tell, nothing is written.
    refused(&["diagnose", folder.file(), "--out", &new], &["neither pcap nor pcapng"]);
    assert!(!PathBuf::from(&new).exists());
}

#[test]
fn both_sides_tell_what_the_path_lost_as_the_simulation_did() {
    let path = link("20 Mbit/s", "1 bdp", "30 ms");
    let folder = Folder::with(&format!(
        "title = \"t\"\n{path}[[path]]\nelement = \"loss\"\nrate = \"0.5 %\"\n\
         [sender]\nstack = \"linux-6\"\n[receiver]\nstack = \"linux-6\"\n[transfer]\nsize = \"5 MB\"\n"
    ));
    let captures = folder.path("captures");
    let asked = ["simulate", folder.file(), "--seeds", "1", "--capture", &captures, "--json", "--flows"];
    let (out, err, code) = run(&asked);
    assert_eq!(code, 0, "{err}");
    let flow = lines(&out).remove(0);
    let capture = fs::read_dir(&captures).expect("it is there").flatten().next().expect("a capture").path();
    let capture = capture.to_str().expect("UTF-8");
    let (out, err, code) = run(&["diagnose", capture, "--json"]);
    assert_eq!(code, 0, "{err}");
    // What the sender waited for is told by its own side, whoever opened the connection.
    assert_eq!(
        (&lines(&out)[0]["vantage"], &lines(&out)[0]["interface"]),
        (&Value::from("near-sender"), &Value::from(0))
    );
    let both = &lines(&out)[0]["both_sides"];
    for (told, counted) in [
        (&both["forward"]["lost"], "drops_data_direction"),
        (&both["back"]["lost"], "drops_ack_direction"),
        (&both["sent_again"], "retransmissions"),
        (&both["needless"], "spurious_retransmissions"),
        (&lines(&out)[0]["losses"]["by_timeout"], "timeouts"),
        (&lines(&out)[0]["losses"]["dsacks"], "dsacks"),
    ] {
        assert_eq!(told.as_f64(), flow[counted].as_f64(), "{counted}: {both}");
    }
    // Where a repair ends with the acknowledgment that begins the next one, a capture may see one of them more or less.
    let repairs = lines(&out)[0]["losses"]["repairs"].as_f64().expect("a count");
    assert!((repairs - flow["fast_retransmits"].as_f64().expect("a count")).abs() <= 1.0, "{repairs}");
    // Both hosts are Linux in the simulation, too.
    for stack in ["sender_stack", "receiver_stack"] {
        assert_eq!(lines(&out)[0][stack]["family"], "linux", "{stack}: {}", lines(&out)[0]);
    }
    // Simulated clocks are one clock; the shortest packet with data takes longer than an acknowledgment, by 0.6 ms at the most.
    let ahead = both["receiver_ahead_s"].as_f64().expect("s");
    assert!((0.0..0.001).contains(&ahead), "{ahead}");
    assert!((both["forward"]["least_s"].as_f64().expect("s") - 0.0302).abs() <= 2e-4, "{both}");
    // One place alone is no two sides, also where it is named twice.
    let (out, _, code) = run(&["diagnose", capture, "--interface", "0", "--json"]);
    assert_eq!((code, &lines(&out)[0]["both_sides"]), (0, &Value::Null));
    refused(&["diagnose", capture, capture, "--interface", "0"], &["no connection is in both captures"]);
    refused(&["diagnose", capture, "-"], &["captures are read twice"]);
}

#[test]
fn a_drift_of_the_receivers_clock_is_told_and_moves_no_delay() {
    let path = link("20 Mbit/s", "1 bdp", "30 ms");
    let (folder, capture) = captured(&path, "", "receive.buffer = \"64 kB\"", "size = \"10 MB\"");
    let told = |ppm: u64| {
        let [one, other] = ["sender", "receiver"].map(|end| folder.path(&format!("{end}-{ppm}.pcap")));
        let begun = std::cell::OnceCell::new();
        rewritten(&capture, &one, (0, 101), |at, packet| Some((at, packet.to_vec())));
        rewritten(&capture, &other, (1, 101), |at, packet| {
            Some((at + (at - *begun.get_or_init(|| at)) * ppm / 1_000_000, packet.to_vec()))
        });
        told_without(&["diagnose", &one, &other, "--json"], &[])["both_sides"].clone()
    };
    let (steady, drifting) = (told(0), told(50));
    assert_eq!(steady["receiver_fast_ppm"], Value::Null, "{steady}");
    let ppm = drifting["receiver_fast_ppm"].as_f64().expect("a drift");
    // Delays are to the microsecond, over some nine seconds.
    assert!((ppm - 50.0).abs() < 1.0, "{drifting}");
    for way in ["forward", "back"] {
        for place in 0..3 {
            let above = |found: &Value| found[way]["above_s"][place].as_f64().expect("s");
            assert!((above(&steady) - above(&drifting)).abs() < 1e-4, "{steady} {drifting}");
        }
        assert_eq!(steady[way]["lost"], drifting[way]["lost"]);
    }
}

#[test]
fn what_the_senders_kernel_counted_takes_the_place_of_a_guess() {
    let path = link("100 Mbit/s", "1 bdp", "50 ms");
    let folder = Folder::with(&format!(
        "title = \"t\"\n{path}\n[sender]\nstack = \"linux-6\"\nsend.buffer = \"128 kB\"\nsend.autotuning = false\n\
         [receiver]\nstack = \"linux-6\"\n[transfer]\nsize = \"5 MB\"\n"
    ));
    let captures = folder.path("captures");
    let (_, err, code) = run(&["simulate", folder.file(), "--seeds", "1", "--capture", &captures]);
    assert_eq!(code, 0, "{err}");
    let capture = fs::read_dir(&captures).expect("it is there").flatten().next().expect("a capture").path();
    let capture = capture.to_str().expect("UTF-8");
    let printed = |ports: &str| {
        let file = folder.path(&format!("ss-{}.txt", ports.len()));
        let counted = "busy:5000ms sndbuf_limited:3000ms(60.0%)";
        fs::write(&file, format!("ESTAB 0 0 10.0.0.1:{ports} 10.0.0.2:{ports}\n\t cubic {counted}\n"))
            .expect("written");
        file
    };
    let asked = ["diagnose", capture, "--interface", "0", "--json"];
    let (out, ..) = run(&asked);
    let guessed = lines(&out).remove(0);
    assert_eq!(share(&guessed, "send-buffer"), 0.0, "a capture does not tell: {guessed}");
    let (out, err, code) = run(&[&asked[..], &["--ss", &printed("50000")]].concat());
    assert_eq!(code, 0, "{err}");
    let told = lines(&out).remove(0);
    let buffer = share(&told, "send-buffer") * told["duration_s"].as_f64().expect("s");
    assert!((buffer - 3.0).abs() < 1e-9, "{told}");
    assert!(told["summary"].as_str().expect("a sentence").contains("send buffer full"), "{told}");
    refused(&["diagnose", capture, "--ss", &printed("7")], &["none of its 1 connections", "ss -tin"]);
    let kept = |client: &str| {
        let file = folder.path(&format!("ndt7-{}.json.gz", client.len()));
        let counted = r#"{"TCPInfo": {"BusyTime": 5000000, "SndBufLimited": 3000000}}"#;
        let text = format!(
            r#"{{"ClientIP": "10.0.0.2", "ClientPort": {client}, "ServerIP": "10.0.0.1", "ServerPort": 50000, "Download": {{"ServerMeasurements": [{counted}]}}}}"#
        );
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).expect("compressed");
        fs::write(&file, gzip.finish().expect("compressed")).expect("written");
        file
    };
    let (out, err, code) = run(&[&asked[..], &["--ndt", &kept("50000")]].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(lines(&out).remove(0)["limits"], told["limits"], "the same counters");
    refused(&["diagnose", capture, "--ndt", &kept("7")], &["none of its 1 connections", "ndt7 server"]);
    refused(
        &["diagnose", capture, "--ndt", &printed("50000")],
        &["--ndt: ", "ss-5.txt: expected what an ndt7 server keeps of a download"],
    );
    refused(
        &["diagnose", capture, "--iperf3", &printed("50000")],
        &["--iperf3: ", "ss-5.txt: expected what `iperf3 --json` prints"],
    );
    refused(&["diagnose", capture, "--ss", "missing.txt"], &["--ss: missing.txt"]);
}

/// Writes the frames of an interface of a capture of IP packets as pcap of this link type; each as `change` makes it: when it came, and its bytes. What it gives none of is
/// left out.
fn rewritten(
    capture: &str,
    file: &str,
    (interface, link_type): (u32, u32),
    change: impl Fn(u64, &[u8]) -> Option<(u64, Vec<u8>)>,
) {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 1 << 18, link_type] {
        out.extend(word.to_le_bytes());
    }
    farpath_diagnose::read(fs::File::open(capture).expect("it is there"), |frame| {
        if frame.interface == interface
            && let Some((at, data)) = change(frame.time_ns, frame.data)
        {
            let length = frame.length + (data.len() - frame.data.len()) as u32;
            let (s, ns) = (at / 1_000_000_000, at % 1_000_000_000);
            for word in [s as u32, ns as u32, data.len() as u32, length] {
                out.extend(word.to_le_bytes());
            }
            out.extend(data);
        }
    })
    .expect("a capture");
    fs::write(file, out).expect("written");
}

/// What is said of the first connection, but for these fields.
fn told_without(args: &[&str], fields: &[&str]) -> Value {
    let (out, err, code) = run(args);
    assert_eq!(code, 0, "{args:?}: {err}");
    let mut found = lines(&out).remove(0);
    for field in fields {
        found.as_object_mut().expect("an object").remove(*field);
    }
    found
}

#[test]
fn a_connection_in_a_tunnel_is_told_as_outside_of_it() {
    let path = link("20 Mbit/s", "1 bdp", "30 ms");
    let (folder, capture) = captured(&path, "", "receive.buffer = \"64 kB\"", "size = \"1 MB\"");
    let but = ["frames", "moments", "tunnel"];
    let outside = told_without(&["diagnose", &capture, "--interface", "0", "--json"], &but);
    // An IPv4 header around so many bytes.
    let ip = |protocol: u8, payload: usize| {
        let length = (payload + 20).to_be_bytes();
        let [.., high, low] = length;
        [&[0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0][..], &[192, 0, 2, 1, 192, 0, 2, 2]].concat()
    };
    let whole = |packet: &[u8]| usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let gre = |packet: &[u8]| [&ip(47, whole(packet) + 4)[..], &[0, 0, 8, 0]].concat();
    let ethernet = [&[2; 12][..], &[8, 0]].concat();
    let vxlan = |packet: &[u8]| {
        let inner = whole(packet) + ethernet.len() + 8;
        let [.., high, low] = (inner + 8).to_be_bytes();
        // UDP to port 4789, then a flag and a network's number (RFC 7348 §5).
        let udp = [0xc0, 0, 0x12, 0xb5, high, low, 0, 0];
        [&ethernet[..], &ip(17, inner + 8), &udp, &[8, 0, 0, 0, 0, 0, 7, 0], &ethernet].concat()
    };
    let file = folder.path("gre.pcap");
    rewritten(&capture, &file, (0, 101), |at, packet| Some((at, [gre(packet), packet.to_vec()].concat())));
    let (out, _, _) = run(&["diagnose", &file]);
    assert!(out.contains("GRE"), "{out}");
    assert_eq!(told_without(&["diagnose", &file, "--json"], &but), outside);
    let file = folder.path("vxlan.pcap");
    rewritten(&capture, &file, (0, 1), |at, packet| Some((at, [vxlan(packet), packet.to_vec()].concat())));
    let (out, _, _) = run(&["diagnose", &file]);
    assert!(out.contains("VXLAN"), "{out}");
    assert_eq!(told_without(&["diagnose", &file, "--json"], &but), outside);
}

#[test]
fn a_capture_without_the_handshake_has_its_window_told_and_drawn() {
    let path = link("100 Mbit/s", "1 bdp", "50 ms");
    let (folder, capture) = captured(&path, "", "receive.buffer = \"128 kB\"", "size = \"5 MB\"");
    let file = folder.path("begun.pcap");
    // SYN is bit 1 of the 14th byte of TCP.
    rewritten(&capture, &file, (0, 101), |at, packet| (packet[33] & 2 == 0).then(|| (at, packet.to_vec())));
    let page = folder.path("begun.html");
    let found = told_without(&["diagnose", &file, "--json", "--report", &page], &[]);
    assert_eq!(
        (&found["vantage"], &found["inferred"]["place_by"]),
        (&"near-sender".into(), &"timestamps".into())
    );
    assert!(share(&found, "receive-window") > 0.7, "{found}");
    let html = fs::read_to_string(&page).expect("a report");
    assert!(html.contains("\"window\":{\"time_s\":[0"), "no points of the window");
    let (out, _, _) = run(&["diagnose", &file]);
    assert!(out.contains("the handshake is not in the capture") && out.contains("again and again"), "{out}");
}

#[test]
fn what_iperf3_printed_is_told_and_leaves_the_send_buffer() {
    let path = link("100 Mbit/s", "1 bdp", "50 ms");
    let (folder, capture) =
        captured(&path, "send.buffer = \"128 kB\"\nsend.autotuning = false", "", "size = \"5 MB\"");
    let asked = ["diagnose", &capture, "--interface", "0", "--json"];
    let guessed = told_without(&asked, &[]);
    assert!(share(&guessed, "congestion-window") > 0.5, "{guessed}");
    let printed = |port: u16, cwnd: u64| {
        let file = folder.path(&format!("iperf3-{port}-{cwnd}.json"));
        let text = format!(
            r#"{{"start": {{"connected": [{{"socket": 5, "local_host": "10.0.0.1", "local_port": {port}, "remote_host": "10.0.0.2", "remote_port": {port}}}]}},
                "intervals": [{{"streams": [{{"socket": 5, "retransmits": 0, "snd_cwnd": {cwnd}}}]}}], "end": {{"sender_tcp_congestion": "cubic"}}}}"#
        );
        fs::write(&file, text).expect("written");
        file
    };
    let roomy = printed(50_000, 400_000);
    let told = told_without(&[&asked[..], &["--iperf3", &roomy]].concat(), &[]);
    assert_eq!(share(&told, "send-buffer"), share(&guessed, "congestion-window"), "{told}");
    assert_eq!(told["iperf3"]["congestion_control"], "cubic");
    let (out, err, code) = run(&["diagnose", &capture, "--interface", "0", "--iperf3", &roomy]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("iperf3        cubic, congestion window 400000 to 400000 B"), "{out}");
    // A window that was used may have held.
    let told = told_without(&[&asked[..], &["--iperf3", &printed(50_000, 130_000)]].concat(), &[]);
    assert_eq!(share(&told, "send-buffer"), 0.0, "{told}");
    refused(
        &["diagnose", &capture, "--iperf3", &printed(7, 1)],
        &["none of its 1 connections", "iperf3 --json"],
    );
    refused(&["diagnose", &capture, "--iperf3", &capture], &["--iperf3: "]);
}

#[test]
fn a_path_that_is_full_is_named_with_its_queue() {
    for found in diagnosed(&link("10 Mbit/s", "4 bdp", "20 ms"), "", "", "size = \"10 MB\"") {
        assert!(share(&found, "path-rate") > 0.8, "{found}");
        // 10 Mbit/s of IP packets carry 9.65 of payload.
        let rate = found["delivered_bit_per_s"].as_f64().expect("a rate");
        assert!((9.3e6..10.0e6).contains(&rate), "{rate}");
    }
}

#[test]
fn a_window_of_the_senders_own_is_told_from_the_receivers() {
    // A queue of a fifth of a BDP: Reno's window is below the path's most of the time, and no queue stands.
    let found = diagnosed(
        &link("10 Mbit/s", "0.2 bdp", "50 ms"),
        "congestion.control = \"reno\"",
        "",
        "size = \"10 MB\"",
    );
    for found in found {
        // For a third of the time and less it is within a tenth of what fills the path, which has that.
        assert!(share(&found, "congestion-window") > 0.6, "{found}");
        assert!(share(&found, "congestion-window") + share(&found, "path-rate") > 0.85, "{found}");
        assert!(found["retransmissions"].as_u64().expect("a number") > 0, "{found}");
    }
}

#[test]
fn losses_have_the_time_of_their_repair() {
    let loss = "[[path]]\nelement = \"loss\"\nrate = { forward = \"1 %\" }\n";
    for found in
        diagnosed(&format!("{}{loss}", link("10 Mbit/s", "1 bdp", "50 ms")), "", "", "size = \"3 MB\"")
    {
        // Some twenty losses, a round trip of repair each, in ten seconds; the window that they leave has the most.
        assert!((0.08..0.4).contains(&share(&found, "loss")), "{found}");
        assert!(share(&found, "congestion-window") > 0.4, "{found}");
    }
}

#[test]
fn losses_of_a_full_queue_are_told_from_others_and_make_the_fitted_queue() {
    // Reno fills a queue until it overflows.
    let (folder, capture) = captured(
        &link("10 Mbit/s", "0.5 bdp", "50 ms"),
        "congestion.control = \"reno\"",
        "",
        "size = \"10 MB\"",
    );
    let (out, err, code) = run(&["diagnose", &capture, "--interface", "0", "--json"]);
    assert_eq!(code, 0, "{err}");
    let found = lines(&out).remove(0);
    assert!(found["retransmissions"].as_u64().expect("a number") > 0, "{found}");
    assert_eq!(found["retransmissions_at_queue"], found["retransmissions"], "{found}");
    // 0.5 BDP over 100 ms, but for some segments of 1.2 ms: that on the line, and one that a delayed acknowledgment waits for.
    let queue = found["queue_s"].as_f64().expect("s");
    assert!((queue - 0.05).abs() <= 0.0024, "{queue}");
    let fitted = folder.path("fitted.toml");
    let (out, err, code) = run(&["diagnose", &capture, "--interface", "0", "--as-experiment", &fitted]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("packets sent again when up to"), "{out}");
    let text = fs::read_to_string(&fitted).expect("written");
    assert!(text.contains("what stood in it") && !text.contains("element = \"loss\""), "{text}");
    // Losses by chance on a path that is never full.
    let loss = "[[path]]\nelement = \"loss\"\nrate = { forward = \"0.5 %\" }\n";
    let (folder, capture) =
        captured(&format!("{}{loss}", link("50 Mbit/s", "1 bdp", "50 ms")), "", "", "size = \"4 MB\"");
    let fitted = folder.path("fitted.toml");
    let (out, err, code) = run(&["diagnose", &capture, "--interface", "0", "--as-experiment", &fitted]);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains("of queue stood"), "{out}");
    let text = fs::read_to_string(&fitted).expect("written");
    assert!(text.contains("element = \"loss\"") && text.contains("seeds = 19"), "{text}");
    // The rate was never used, and is seen by how acknowledgments of bursts follow one another.
    let rate = text.split("rate = \"").nth(1).and_then(|rest| rest.split(' ').next()).expect("a rate");
    assert!((rate.parse::<f64>().expect("bit/s") / 50e6 - 1.0).abs() < 0.05, "{text}");
}

#[test]
fn a_granted_rate_is_a_pace_or_the_paths_by_what_was_asked_for() {
    let path = "[[path]]\nelement = \"flow-router\"\nrate = \"40 Mbit/s\"\nqueue = \"1 bdp\"\n[[path]]\nelement = \"delay\"\ndelay = \"30 ms\"\n";
    let asks = |rate: &str| format!("explicit_rate.wanted = \"{rate}\"");
    let transfer = "size = \"8 MB\"";
    let found = diagnosed(path, &asks("10 Mbit/s"), &asks("10 Mbit/s"), transfer);
    for found in &found {
        assert!(share(found, "paced") > 0.9, "{found}");
        let granted = found["granted_bit_per_s"].as_u64().expect("a rate");
        assert!((10_000_000..10_100_000).contains(&granted), "{granted}");
        assert_eq!(found["bytes"], 8_000_000, "what is said of rates is no data");
    }
    // What it asks for the path does not have; only before the router is it seen that it had asked for more.
    let [sender, _] = diagnosed(path, &asks("100 Mbit/s"), &asks("100 Mbit/s"), transfer);
    assert!(share(&sender, "path-rate") > 0.8, "{sender}");
}

#[test]
fn slow_start_is_named_where_a_file_is_short() {
    for found in diagnosed(&link("100 Mbit/s", "1 bdp", "150 ms"), "", "", "size = \"300 kB\"") {
        assert!(share(&found, "slow-start") > 0.4, "{found}");
    }
}

#[test]
fn a_program_without_data_is_told_from_nagles_algorithm() {
    let stream = "message = \"10 kB\"\nrate = \"1 Mbit/s\"\nduration = \"10 s\"";
    let path = link("50 Mbit/s", "1 bdp", "50 ms");
    for found in diagnosed(&path, "send.nagle = false", "", stream) {
        assert!(share(&found, "application") > 0.9, "{found}");
        assert!(share(&found, "nagle") == 0.0, "{found}");
    }
    // Each message ends in a short segment, held back until that of the message before is acknowledged.
    for found in diagnosed(&path, "send.nagle = true", "", stream) {
        assert!((0.25..0.55).contains(&share(&found, "nagle")), "{found}");
    }
}

#[test]
fn text_has_the_sentence_first_and_the_rest_below() {
    let folder = Folder::with("title = \"t\"\npath = \"geo\"\n[transfer]\nsize = \"100 kB\"\n");
    let captures = &folder.path("captures");
    let (_, err, code) = run(&["simulate", folder.file(), "--seeds", "1", "--capture", captures]);
    assert_eq!(code, 0, "{err}");
    let capture = fs::read_dir(captures).expect("it is there").flatten().next().expect("a capture").path();
    let (out, err, code) = run(&["diagnose", capture.to_str().expect("UTF-8")]);
    assert_eq!(code, 0, "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[2].contains(" % of "), "{out}");
    for word in
        ["share, %", "longest waits", "round trip", "Wireshark     ip.addr == 10.0.0.1", "(interface 1)"]
    {
        assert!(out.contains(word), "{word}: {out}");
    }
    // Cut off in the middle of a block: what came before is told.
    let whole = fs::read(&capture).expect("it is there");
    let cut = folder.path("cut.pcapng");
    fs::write(&cut, &whole[..whole.len() - 20]).expect("written");
    let (out, err, code) = run(&["diagnose", &cut, "--json"]);
    assert_eq!((code, out.lines().count()), (0, 1), "{err}");
    assert!(err.contains("it ends in the middle of a block"), "{err}");
    // Compressed, whatever it is called.
    let compressed = folder.path("compressed");
    let mut encoder = GzEncoder::new(fs::File::create(&compressed).expect("made"), Compression::fast());
    encoder.write_all(&whole).and_then(|()| encoder.finish()).expect("written");
    let [plain, unpacked] =
        [capture.to_str().expect("UTF-8"), &compressed].map(|file| run(&["diagnose", file, "--json"]));
    assert_eq!((unpacked.2, &unpacked.0), (0, &plain.0), "{}", unpacked.1);
}

#[test]
fn what_is_no_capture_is_refused() {
    let folder = Folder::with("title = \"t\"\n");
    refused(&["diagnose", folder.file()], &[folder.file(), "neither pcap nor pcapng"]);
    refused(&["diagnose", "no-such-file.pcap"], &["no-such-file.pcap"]);
    refused(&["diagnose", &folder.path("")], &["expected a capture, found a directory"]);
    // Nothing at all, and what was cut off before its first packet.
    let cut = folder.path("cut.pcap");
    fs::write(&cut, []).expect("written");
    refused(&["diagnose", &cut], &["cut.pcap: it is empty; expected a capture"]);
    fs::write(&cut, [0xd4, 0xc3, 0xb2, 0xa1, 2, 0]).expect("written");
    refused(&["diagnose", &cut], &["cut.pcap: it ends within its header"]);
    fs::write(&cut, [0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 100]).expect("written");
    refused(&["diagnose", &cut], &["cut.pcap: it ends within its header"]);
    // A header, and nothing behind it; then a packet that is not TCP.
    let file = folder.path("empty.pcap");
    let header = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    fs::write(&file, header).expect("written");
    refused(&["diagnose", &file], &["it has no packets"]);
    let packet = [&header[..], &[0; 8], &[4, 0, 0, 0, 4, 0, 0, 0], &[0x45, 0, 0, 4]].concat();
    fs::write(&file, packet).expect("written");
    refused(&["diagnose", &file], &["no TCP among its 1 frames: 1 that cannot be read"]);
    refused(
        &["diagnose", &file, "--interface", "9"],
        &["--interface 9: ", "empty.pcap has frames of interface 0 alone"],
    );
    // The reason of a decompressor is told.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&header).expect("compressed");
    let whole = gzip.finish().expect("compressed");
    fs::write(&cut, &whole[..whole.len() - 6]).expect("written");
    refused(&["diagnose", &cut], &["cut.pcap: it cannot be read after frame 0: ", "end"]);
}

/// As at a terminal, where Ctrl-C ends `tcpdump -w -` and this: what was captured is told. Here the writer goes on.
#[cfg(target_os = "linux")]
#[test]
fn what_came_through_a_pipe_before_ctrl_c_is_told() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::process::{Command, Stdio};

    let (_folder, capture) = captured(&link("100 Mbit/s", "1 bdp", "5 ms"), "", "", "size = \"8 MB\"");
    let mut diagnose = Command::new(env!("CARGO_BIN_EXE_farpath"))
        .args(["diagnose", "-", "--interface", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = diagnose.stdin.take().expect("a pipe");
    // More than pipes and buffers hold: when all is written, it reads.
    let bytes = fs::read(capture).expect("a capture");
    assert!(bytes.len() > 1 << 20, "{} bytes", bytes.len());
    pipe.write_all(&bytes).expect("it is read");
    let pid = Pid::from_raw(i32::try_from(diagnose.id()).expect("a number"));
    kill(pid, Signal::SIGINT).expect("it runs");
    let output = diagnose.wait_with_output().expect("it ends");
    drop(pipe);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(out.contains("10.0.0.1:50000 to 10.0.0.2:50000") && out.contains("longest waits"), "{out}{err}");
}

#[test]
fn a_capture_becomes_an_experiment_that_explain_explains() {
    let folder = Folder::with(
        "title = \"t\"\n[[path]]\nelement = \"link\"\nrate = \"20 Mbit/s\"\nqueue = \"1 bdp\"\n[[path]]\nelement = \"delay\"\ndelay = \"150 ms\"\n\
         [sender]\nstack = \"linux-6\"\n[receiver]\nstack = \"linux-6\"\nreceive.autotuning = false\nreceive.buffer = \"64 kB\"\n[transfer]\nsize = \"2 MB\"\n",
    );
    let captures = &folder.path("captures");
    let (_, err, code) = run(&["simulate", folder.file(), "--seeds", "1", "--capture", captures]);
    assert_eq!(code, 0, "{err}");
    let capture = fs::read_dir(captures).expect("it is there").flatten().next().expect("a capture").path();
    let capture = capture.to_str().expect("UTF-8");
    for interface in ["0", "1"] {
        let fitted = &folder.path(&format!("fitted-{interface}.toml"));
        let ask = ["diagnose", capture, "--interface", interface, "--as-experiment", fitted];
        let (out, err, code) = run(&ask);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("The experiment takes as long as the capture, within 10 %."), "{out}");
        // The cure is what the capture was made without: a larger window.
        let (out, err, code) = run(&["explain", fitted]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("receive window"), "{out}");
        refused(&ask, &["--as-experiment", "is there already"]);
    }
    // Nothing is written of what cannot be fitted.
    let none = folder.path("none.toml");
    refused(&["diagnose", folder.file(), "--as-experiment", &none], &["neither pcap nor pcapng"]);
    assert!(!fs::exists(&none).expect("it can be asked"));
}
