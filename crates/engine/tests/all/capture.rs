//! Captures: read back by hand here, and held against tshark where there is one.

use farpath_engine::{
    CaptureDir, CaptureError, DEFAULT_SNAPLEN, EngineError, Extras, MAX_CAPTURES, SimulateError, jobs,
    provenance, run_all_with, simulate, simulate_captured,
};
use farpath_experiment::Experiment;
use farpath_run::{Engine, Run, SegmentEvent, SegmentRow};
use farpath_strategies::{all_stacks, paths};
use farpath_tcp::{Ecn, Flags, pattern, wire};
use farpath_testing::{Need, skip};
use farpath_units::Bytes;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

const WHOLE: u32 = 65_535;

/// Loss and copies on a path with a queue; two downloads after a request, and an upload the other way. All options.
const MIXED: &str = r#"
title = "mixed"
horizon = "1 h"
path = [
    { element = "link", name = "bottleneck", rate = "5 Mbit/s", queue = "8 packets", mark = "3 packets" },
    { element = "delay", delay = "20 ms" },
    { element = "loss", rate = "1 %" },
    { element = "duplicate", share = "1 %" },
]
[sender]
stack = "linux-testbed-2022"
recovery.sack = true
send.timestamps = true
send.window_scaling = true
send.ecn = "request"
receive.buffer = "256 kB"
[receiver]
recovery.sack = true
send.ecn = "request"
send.timestamps = true
send.window_scaling = true
receive.buffer = "256 kB"
[transfer]
size = "300 kB"
request = "3 kB"
[[flow]]
count = 2
[[flow]]
direction = "reverse"
start = "50 ms"
[output]
segments = true
"#;

/// One download with losses both ways.
const ONE_PER_CENT: &str = r#"
title = "one per cent"
horizon = "1 h"
path = [
    { element = "link", name = "bottleneck", rate = "5 Mbit/s", queue = "64 packets" },
    { element = "delay", delay = "20 ms" },
    { element = "loss", rate = "1 %" },
]
[transfer]
size = "2 MB"
[output]
segments = true
"#;

const SINGLE_DROP: &str = include_str!("../../../../experiments/single-drop.toml");

fn experiment(text: &str) -> Experiment {
    Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The run of the first point, and its capture.
fn captured(text: &str, seed: u64, snaplen: u32) -> (Run, Vec<u8>) {
    let experiment = experiment(text);
    let point = &experiment.point(0);
    let mut file = Vec::new();
    let run = simulate_captured(point, seed, provenance(&experiment, point), snaplen, &mut file);
    (run.expect("it is simulated"), file)
}

/// A block of the file: its type, and its body.
type Block<'a> = (u32, &'a [u8]);

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn blocks(mut file: &[u8]) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let len = word(file, 4) as usize;
        assert!(
            len.is_multiple_of(4) && word(file, len - 4) as usize == len,
            "the length stands at both ends"
        );
        blocks.push((word(file, 0), &file[8..len - 4]));
        file = &file[len..];
    }
    blocks
}

fn options(mut bytes: &[u8]) -> HashMap<u16, Vec<u8>> {
    let mut options = HashMap::new();
    loop {
        let [code, len] = [0, 2].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        if code == 0 {
            assert_eq!(bytes.len(), 4, "nothing after the end");
            return options;
        }
        options.insert(code, bytes[4..4 + usize::from(len)].to_vec());
        bytes = &bytes[4 + usize::from(len).next_multiple_of(4)..];
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// A packet block, read.
struct Seen<'a> {
    interface: u32,
    time_ns: u64,
    kept: &'a [u8],
    original: u32,
    comment: Option<String>,
}

fn packets(file: &[u8]) -> Vec<Seen<'_>> {
    let of = |(_, body): Block<'_>| -> (u32, u64, std::ops::Range<usize>, u32, Option<String>) {
        let kept = word(body, 12) as usize;
        let options = options(&body[20 + kept.next_multiple_of(4)..]);
        let time = u64::from(word(body, 4)) << 32 | u64::from(word(body, 8));
        let comment = options.get(&1).map(|comment| text(comment).to_owned());
        (word(body, 0), time, 20..20 + kept, word(body, 16), comment)
    };
    let blocks = blocks(file).into_iter().filter(|block| block.0 == 6);
    blocks
        .map(|block| {
            let (interface, time_ns, kept, original, comment) = of(block);
            Seen { interface, time_ns, kept: &block.1[kept], original, comment }
        })
        .collect()
}

/// Where a row of the segments table is to be seen.
fn interface(row: &SegmentRow, data: &str) -> u32 {
    let by_sender = row.direction == data;
    match row.event {
        SegmentEvent::Dropped => 2,
        SegmentEvent::Sent => u32::from(!by_sender),
        SegmentEvent::Received => u32::from(by_sender),
        SegmentEvent::Passed => unreachable!("nobody asks for a rate here"),
    }
}

#[test]
fn every_segment_is_at_its_interface_as_the_table_has_it() {
    let (run, file) = captured(MIXED, 1, WHOLE);
    let seen = packets(&file);
    assert!(seen.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns), "in the order of time");
    assert_eq!(seen.len(), run.segments.len());
    let mut isn = HashMap::new();
    let mut expected = run.segments.to_vec();
    let (mut drops, mut marks) = (0, 0);
    for packet in &seen {
        assert_eq!(packet.kept.len(), packet.original as usize);
        let read = wire::decode(packet.kept).expect("a sound packet with right checksums");
        let (flow, segment) = (u32::from(read.source.port()) - 50_000, &read.segment);
        assert_eq!(read.source.port(), read.destination.port());
        let forward = read.source.ip().to_string() == "10.0.0.1";
        assert_eq!(read.destination.ip().to_string(), if forward { "10.0.0.2" } else { "10.0.0.1" });
        if segment.flags.contains(Flags::SYN) {
            isn.insert(read.source, segment.seq);
            assert!(segment.mss.is_some() && segment.sack_permitted && segment.window_scale.is_some());
        } else if segment.len > 0 {
            let offset = u64::from(segment.seq.0.wrapping_sub(isn[&read.source].0).wrapping_sub(1));
            assert_eq!(pattern::first_mismatch(offset, &packet.kept[read.payload.clone()]), None);
        }
        // Within one instant the table and the file may have events in another order.
        let place = expected.iter().position(|row| {
            let data = run.flows[row.flow as usize].direction;
            let blocks = segment.sack.as_slice().iter().map(|block| (block.start.0, block.end.0));
            row.time.as_nanos() == packet.time_ns
                && interface(row, data) == packet.interface
                && (row.flow, row.direction == "forward") == (flow, forward)
                && (row.seq, row.ack, row.len) == (segment.seq.0, segment.ack.0, segment.len.into())
                && (row.window, row.flags, row.size) == (segment.window, segment.flags.0, packet.original)
                && row.ecn == Some(segment.ecn as u8)
                && row.sack.iter().copied().eq(blocks)
                && row.timestamps == segment.timestamps.map(|t| (t.value, t.echo))
                && (row.cause.as_ref().filter(|_| row.event == SegmentEvent::Dropped))
                    .map(|cause| format!("dropped: {cause}"))
                    == packet.comment
        });
        let row = expected.remove(place.unwrap_or_else(|| panic!("no row for {read:?}")));
        drops += u64::from(row.event == SegmentEvent::Dropped);
        marks += u64::from(row.event == SegmentEvent::Received && segment.ecn == Ecn::Ce);
    }
    let causes = run.flows.iter().flat_map(|flow| &flow.drops_by_cause);
    assert_eq!(causes.map(|(_, count)| count).sum::<u64>(), drops);
    let arrived: f64 = run.flows.iter().filter_map(|flow| flow.ecn_marks).sum();
    assert_eq!(arrived, marks as f64);
    assert!(drops > 0 && marks > 0);
}

#[test]
fn the_file_says_what_made_it_and_where_packets_were_seen() {
    let text_of_it = MIXED.replace("title = \"mixed\"", "title = \"mixed\"\nseeds = 2");
    let changes = ["path.delay=30ms".parse().expect("a change")];
    let experiment = Experiment::parse(&text_of_it, "test.toml", &changes).expect("sound");
    let point = &experiment.point(0);
    let mut file = Vec::new();
    simulate_captured(point, 2, provenance(&experiment, point), DEFAULT_SNAPLEN, &mut file)
        .expect("simulated");
    let blocks = blocks(&file);
    let section = options(&blocks[0].1[16..]);
    assert_eq!((blocks[0].0, word(blocks[0].1, 0)), (0x0a0d_0d0a, 0x1a2b_3c4d));
    assert_eq!(text(&section[&4]), format!("farpath {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(text(&section[&1]), "mixed\npoint 0, seed 2\nchanges: path.delay=30ms");
    for (block, name) in blocks[1..4].iter().zip(["sender", "receiver", "path"]) {
        let interface = options(&block.1[8..]);
        assert_eq!((block.0, word(block.1, 0), word(block.1, 4)), (1, 101, DEFAULT_SNAPLEN));
        assert_eq!((text(&interface[&2]), &interface[&9]), (name, &vec![9]));
        let stack = interface.get(&12).map(|os| text(os));
        assert_eq!(stack, (name != "path").then_some("linux-testbed-2022"));
    }
}

#[test]
fn a_long_packet_is_cut_and_its_length_kept() {
    let (_, whole) = captured(ONE_PER_CENT, 1, WHOLE);
    let (_, cut) = captured(ONE_PER_CENT, 1, DEFAULT_SNAPLEN);
    let (whole, cut) = (packets(&whole), packets(&cut));
    assert_eq!(whole.len(), cut.len());
    assert!(whole.iter().any(|packet| packet.original == 1500));
    for (whole, cut) in whole.iter().zip(&cut) {
        assert_eq!((whole.original, whole.time_ns), (cut.original, cut.time_ns));
        assert_eq!(cut.kept, &whole.kept[..whole.kept.len().min(DEFAULT_SNAPLEN as usize)]);
    }
}

#[test]
fn capturing_changes_nothing_and_repeats_byte_for_byte() {
    let experiment = experiment(MIXED);
    let point = &experiment.point(0);
    let quiet = simulate(point, 3, provenance(&experiment, point)).expect("simulated");
    let (run, file) = captured(MIXED, 3, DEFAULT_SNAPLEN);
    assert_eq!((quiet.flows, quiet.segments), (run.flows, run.segments));
    assert!(captured(MIXED, 3, DEFAULT_SNAPLEN).1 == file);
    let without_tables = MIXED.replace("segments = true", "segments = false");
    assert!(captured(&without_tables, 3, DEFAULT_SNAPLEN).1 == file);
}

#[test]
fn a_full_disk_is_an_error_of_the_run() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let experiment = experiment(MIXED);
    let point = &experiment.point(0);
    for room in [0, 10_000] {
        let run = simulate_captured(point, 1, provenance(&experiment, point), DEFAULT_SNAPLEN, Full(room));
        let error = run.expect_err("there is no room");
        assert!(matches!(error, SimulateError::Capture(CaptureError::Output(_))), "{error}");
    }
}

/// An empty place for this test alone.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

#[test]
fn a_batch_writes_a_file_for_each_simulated_run_and_only_over_its_own() {
    let small = MIXED.replace("300 kB", "10 kB").replace("[output]\nsegments = true\n", "");
    let sweep = format!("seeds = 2\n{small}[sweep]\n\"transfer.size\" = [\"10 kB\", \"20 kB\"]\n");
    let experiment = experiment(&sweep);
    let jobs = jobs(&experiment, &[Engine::Predict, Engine::Simulate]);
    let path = folder("captures").join("deeper");
    let files = || {
        let entries = fs::read_dir(&path).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("readable").file_name().display().to_string()).collect();
        names.sort();
        names
    };
    for _ in 0..2 {
        let captures = CaptureDir::create(&path, DEFAULT_SNAPLEN, &jobs).expect("a place to write");
        let (stop, extras) = (AtomicBool::new(false), Extras { captures: Some(&captures), progress: None });
        let taken = run_all_with::<EngineError>(&experiment, &jobs, &stop, extras, |_| Ok(()));
        assert_eq!(taken.expect("all are made"), 2 * (1 + 2));
        let all = ["0-seed-1", "0-seed-2", "1-seed-1", "1-seed-2"].map(|run| format!("point-{run}.pcapng"));
        assert_eq!(files(), all);
    }
    let point = &experiment.point(1);
    let mut alone = Vec::new();
    simulate_captured(point, 2, provenance(&experiment, point), DEFAULT_SNAPLEN, &mut alone)
        .expect("simulated");
    assert!(fs::read(path.join("point-1-seed-2.pcapng")).expect("written") == alone);

    let fewer = &jobs[..jobs.len() - 1];
    let error = CaptureDir::create(&path, DEFAULT_SNAPLEN, fewer).expect_err("one would stay of other runs");
    assert!(error.to_string().contains("point-1-seed-2.pcapng"), "{error}");
}

#[test]
fn what_cannot_be_captured_is_refused_before_anything_is_made() {
    let path = folder("refused");
    let many = experiment(&format!("seeds = {}\n{MIXED}", MAX_CAPTURES + 1));
    let error = CaptureDir::create(&path, WHOLE, &jobs(&many, &[Engine::Simulate])).expect_err("too many");
    assert!(error.to_string().starts_with("1001 runs"), "{error}");
    let error = CaptureDir::create(&path, WHOLE, &jobs(&many, &[Engine::Predict])).expect_err("no packets");
    assert!(matches!(error, CaptureError::NoRuns));
    assert!(!path.exists());

    let one = experiment(MIXED);
    fs::create_dir(&path).expect("made");
    fs::write(path.join("thesis.tex"), "all of it").expect("written");
    let error = CaptureDir::create(&path, WHOLE, &jobs(&one, &[Engine::Simulate])).expect_err("of others");
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    let error = CaptureDir::create(path.join("thesis.tex"), WHOLE, &jobs(&one, &[Engine::Simulate]));
    assert!(matches!(error, Err(CaptureError::NotWritable { .. })));
}

/// What tshark prints: a line for each packet that `filter` lets through. `None`, and loudly, where there is none.
fn tshark(file: &Path, filter: &str, more: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("tshark")
        // Nobody's own preferences.
        .env("HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        // It puts streams together for what it guesses to be in them, and calls a sound packet malformed whose payload it has already.
        .args(["-o", "tcp.desegment_tcp_streams:FALSE", "-r"])
        .arg(file)
        .args(["-Y", filter])
        .args(more)
        .output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(text(&output.stdout).lines().map(str::to_owned).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            skip(Need::Tshark, "captures against tshark: there is no tshark to run");
            None
        }
        Err(error) => panic!("tshark: {error}"),
    }
}

/// The run, and files with its capture: all of it, and what the senders saw. Wireshark's TCP analysis would take
/// the receiver's copy of a segment for a retransmission.
fn on_disk(name: &str, text: &str, seed: u64) -> Option<(Run, PathBuf, PathBuf)> {
    let path = folder(name);
    fs::create_dir(&path).expect("made");
    let (all, sender) = (path.join("all.pcapng"), path.join("sender.pcapng"));
    let (run, file) = captured(text, seed, WHOLE);
    fs::write(&all, file).expect("written");
    let to = sender.to_str().expect("UTF-8");
    tshark(&all, "frame.interface_name == \"sender\"", &["-w", to])?;
    Some((run, all, sender))
}

#[test]
fn tshark_finds_whole_packets_with_right_checksums_where_we_counted_them() {
    let Some((run, all, _)) = on_disk("tshark-mixed", MIXED, 1) else { return };
    let count = |filter: &str| tshark(&all, filter, &[]).expect("it was there").len();
    assert_eq!(count("_ws.malformed || _ws.short || !tcp"), 0);
    assert_eq!(
        count("tcp.checksum.status == \"Good\" && ip.checksum.status == \"Good\""),
        run.segments.len()
    );
    for (number, name) in ["sender", "receiver", "path"].into_iter().enumerate() {
        let ours = run
            .segments
            .iter()
            .filter(|row| interface(row, run.flows[row.flow as usize].direction) as usize == number);
        assert_eq!(count(&format!("frame.interface_name == \"{name}\"")), ours.count(), "{name}");
    }
    let drops = run.flows.iter().flat_map(|flow| &flow.drops_by_cause);
    for (cause, ours) in drops.fold(HashMap::new(), |mut sums: HashMap<_, u64>, (cause, count)| {
        *sums.entry(cause).or_default() += count;
        sums
    }) {
        assert_eq!(count(&format!("frame.comment == \"dropped: {cause}\"")) as u64, ours, "{cause}");
    }
    // Marks as they arrive, and the bits that ask for ECN.
    let came_marked = "ip.dsfield.ecn == 3 && frame.packet_flags_direction == 1";
    let marks: f64 = run.flows.iter().filter_map(|flow| flow.ecn_marks).sum();
    assert!(marks > 0.0);
    assert_eq!(count(came_marked) as f64, marks);
    let asked = "tcp.flags.syn == 1 && tcp.flags.ack == 0 && tcp.flags.ece == 1 && tcp.flags.cwr == 1 \
                 && frame.packet_flags_direction == 2";
    assert_eq!(count(asked), run.flows.len(), "no SYN is lost, and none is sent again");
    let syn = "tcp.flags.syn == 1 && tcp.flags.ack == 0 && tcp.stream == 0";
    let fields =
        ["tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.options.sack_perm", "frame.time_epoch"];
    let wanted: Vec<&str> = fields.iter().flat_map(|field| ["-e", field]).collect();
    let lines = tshark(&all, syn, &[&["-T", "fields"], &wanted[..]].concat()).expect("it was there");
    let [mss, scale, sack, time] = lines[0].split('\t').collect::<Vec<_>>()[..] else { panic!("{lines:?}") };
    assert!(mss.parse::<u16>().is_ok() && scale.parse::<u8>().is_ok() && !sack.is_empty(), "{lines:?}");
    assert_eq!(time, "0.000000000", "the run begins with it");
}

proptest! {
    // Each case is a tshark or two, of half a second.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 32, ..ProptestConfig::default() })]

    /// Any stacks over any path: tshark finds as many packets as the table has sent, received and dropped, whole and with right checksums.
    #[test]
    fn tshark_reads_what_is_captured_of_any_stacks_over_any_path(
        path in paths(),
        (sender, receiver) in (all_stacks(), all_stacks()),
        size in 0..200_000u64,
        seed in any::<u64>(),
    ) {
        let text = "title = \"any\"\nhorizon = \"1 h\"\npath = \"geo\"\ntransfer.size = \"1 B\"\n\
                    output.segments = true\nbudget.events = 5000\n";
        let experiment = experiment(text);
        let mut point = experiment.point(0).into_owned();
        let scenario = &mut point.scenario;
        scenario.path = path;
        (scenario.sender.config, scenario.receiver.config) = (sender.config.clone(), receiver.config.clone());
        scenario.flows[0].size = Bytes(size);
        let mut file = Vec::new();
        let run = simulate_captured(&point, seed, provenance(&experiment, &point), WHOLE, &mut file);
        let run = run.expect("it is simulated");
        let folder = folder("tshark-any");
        fs::create_dir(&folder).expect("made");
        let path = folder.join("any.pcapng");
        fs::write(&path, file).expect("written");
        let whole = "tcp && !_ws.malformed && !_ws.short && tcp.checksum.status == \"Good\" \
                     && (ipv6 || ip.checksum.status == \"Good\")";
        let Some(found) = tshark(&path, whole, &[]) else { return Ok(()) };
        // That a flow router let a packet on is a row, and no packet of an end.
        let packets = run.segments.iter().filter(|row| row.event != SegmentEvent::Passed).count();
        prop_assert_eq!(found.len(), packets);
    }
}

/// tshark infers from the packets what we counted. Of what it calls retransmissions we leave out those without
/// data (a SYN or SYN-ACK sent again), which are in `syns` and `synacks`; and a retransmission that follows within
/// the RTT of the handshake it calls out of order, although none can be where it is sent.
#[test]
fn tshark_counts_the_retransmissions_and_duplicate_acks_that_we_count() {
    for (name, text, seed) in [
        ("tshark-single", SINGLE_DROP, 1),
        ("tshark-one-1", ONE_PER_CENT, 1),
        ("tshark-one-2", ONE_PER_CENT, 2),
    ] {
        let Some((run, _, sender)) = on_disk(name, text, seed) else { return };
        let count = |filter: &str| Some(tshark(&sender, filter, &[]).expect("it was there").len() as f64);
        let flow = &run.flows[0];
        let again = "tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.fast_retransmission \
                     || tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order)";
        assert!(flow.retransmissions > Some(0.0), "{name}");
        assert_eq!(count(again), flow.retransmissions, "{name}");
        // Those that come in: a sender that answers the receiver's FIN twice sends a duplicate ACK itself.
        let dup_acks = "tcp.analysis.duplicate_ack && frame.packet_flags_direction == 1";
        assert_eq!(count(dup_acks), flow.dup_acks, "{name}");
        let last = run.segments.iter().filter(|row| interface(row, flow.direction) == 0);
        let last = last.map(|row| row.time.as_nanos()).max().expect("packets");
        let times =
            tshark(&sender, "tcp", &["-T", "fields", "-e", "frame.time_epoch"]).expect("it was there");
        let expected = format!("{}.{:09}", last / 1_000_000_000, last % 1_000_000_000);
        assert_eq!(times.last(), Some(&expected), "{name}: to the nanosecond");
    }
}
