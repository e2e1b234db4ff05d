//! The running kernel over a path that loses: what is seen on the path is what the kernel says of itself.

use super::*;
use farpath_emu::{Clock, Emulator, Host, HostSettings, LoopReport, Settings};
use farpath_experiment::Experiment;
use farpath_path::PerDirection;
use farpath_run::Provenance;
use farpath_run::{SegmentEvent, SeriesRow};
use farpath_testing::{Need, skip};
use farpath_traffic::{BulkEnd, EndReport, Opening, Prepared, Role, SocketOptions, TcpInfo};
use farpath_units::{Duration, Rate};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const PORT: u16 = 50_000;
const OUTPUT: Output = Output { series: true, segments: true, messages: true };

/// 5 ms each way, a queue that holds 30 packets, and a loss of 1.5 % both ways.
const PATH: &str = r#"
title = "test"
path = [
    { element = "link", rate = "50 Mbit/s", queue = "30 packets" },
    { element = "delay", delay = "5 ms" },
    { element = "loss", rate = "1.5 %" },
]
[transfer]
size = "1.5 MB"
"#;

struct Emulated {
    sender: EndReport,
    receiver: EndReport,
    counts: Counts,
    path: LoopReport,
    rows: Vec<SegmentRow>,
    queues: Vec<SeriesRow>,
    capture: Vec<u8>,
}

/// A transfer from `data`'s near end to its far end; `None` where this machine has no hosts to give.
fn emulate(
    path: &str,
    data: Direction,
    opener: Role,
    v6: bool,
    sysctls: &[(&str, &str)],
) -> Option<Emulated> {
    let experiment = Experiment::parse(path, "test", &[]).expect("sound");
    let point = &experiment.point(0);
    let settings = |plain: HostSettings| HostSettings {
        sysctls: sysctls.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..plain
    };
    let (near, far) = (HostSettings::near(), HostSettings::far());
    let address = |host: &HostSettings| {
        SocketAddr::new(if v6 { host.address.1.into() } else { host.address.0.into() }, PORT)
    };
    let addresses = PerDirection { forward: address(&near), reverse: address(&far) };
    let hosts = Host::new(&settings(near)).and_then(|near| Ok((near, Host::new(&settings(far))?)));
    let hosts = match hosts {
        Ok((near, far)) => PerDirection { forward: near, reverse: far },
        Err(error) => {
            skip(Need::Root, format!("the kernel over a path: {error}"));
            return None;
        }
    };
    let clock = Clock::start();
    let stop = AtomicBool::new(false);
    let prepared = |role: Role| {
        let host = if role == Role::Sender { data } else { data.opposite() };
        let end = BulkEnd {
            role,
            opening: if role == opener { Opening::Connect } else { Opening::Listen },
            local: addresses[host],
            peer: addresses[host.opposite()],
            size: point.scenario.flows[0].size,
            request: if opener == Role::Receiver { Bytes(300) } else { Bytes::ZERO },
            messages: None,
            reply: Bytes::ZERO,
            writing: Default::default(),
            exchanges: 1,
            token: None,
            start: Instant::ZERO,
            deadline: Instant::ZERO + Duration::from_secs(100),
            sample_every: None,
            read_rate: None,
            low_water: None,
            close_within: Duration::from_secs(5),
            socket: SocketOptions { congestion_control: Some("reno".to_owned()), ..SocketOptions::default() },
        };
        hosts[host].namespace().run(|| Prepared::new(end)).expect("a thread").expect("it is ready")
    };
    let ends = [prepared(Role::Sender), prepared(Role::Receiver)];
    let from = Provenance {
        experiment: experiment.text.clone(),
        kernel: "Linux".to_owned(),
        ..Provenance::default()
    };
    let mut capture = Vec::new();
    let writer = Capture::new(&mut capture, 128, point, 1, &from).expect("memory takes all");
    let flow = FlowPorts { direction: data, sender: PORT, receiver: PORT };
    let mut recording =
        PacketRecorder::new(&[flow], OUTPUT, &RowBudget::for_run(&point.scenario), Some(writer));
    let mut emulator = Emulator::new(
        &point.scenario.path,
        7,
        Settings::default(),
        hosts.forward.port(),
        hosts.reverse.port(),
        clock,
    )
    .expect("the path is sound");
    let over = AtomicBool::new(false);
    let ([sender, receiver], report) = thread::scope(|scope| {
        let path = scope.spawn(|| emulator.run(&over, &mut recording));
        let ends = ends.map(|end| scope.spawn(|| end.run(clock.epoch(), &stop, &mut |_| {})));
        let ends = ends.map(|end| end.join().expect("no panic"));
        over.store(true, Ordering::Relaxed);
        (ends, path.join().expect("no panic").expect("the devices are there"))
    });
    let counts = recording.counts(0).clone();
    let (rows, queues) = recording.finish().expect("memory takes all");
    let queues = Series::merged(queues);
    Some(Emulated { sender, receiver, counts, path: report, rows: rows.to_vec(), queues, capture })
}

/// What must be so whatever the stack.
fn agrees(run: &Emulated, opener: Role) {
    let Emulated { sender, receiver, counts, path, rows, .. } = run;
    assert!(sender.end.is_completed() && receiver.end.is_completed(), "{sender:?}\n{receiver:?}");
    let (sent, got) = (sender.info.expect("known"), receiver.info.expect("known"));
    // Linux counts a SYN that is sent again among retransmissions, and so a SYN/ACK.
    let handshake = if opener == Role::Sender { counts.syns } else { counts.synacks };
    assert_eq!(counts.retransmissions + handshake - 1, u64::from(sent.total_retrans), "{counts:?}\n{sent:?}");
    assert_eq!(Some(counts.data_segments), sent.data_segs_out.map(u64::from), "{counts:?}\n{sent:?}");
    assert_eq!(Some(Bytes(counts.data_bytes)), sent.bytes_sent);
    assert_eq!(Some(Bytes(counts.data_bytes) - receiver.bytes), sent.bytes_retrans);
    // A DSACK may be lost with its ACK; each tells of something that came twice, and the path makes no copies.
    let told = u64::from(sent.dsack_dups.expect("Linux 4.19"));
    assert!(told <= counts.spurious_retransmissions, "{told} of {counts:?}");
    let pure = got.segs_out.map(u64::from).expect("Linux 4.2");
    assert!(counts.pure_acks <= pure, "{counts:?}\n{got:?}");
    let dropped = counts.drops.forward.total() + counts.drops.reverse.total();
    assert_eq!(dropped, path.packets.forward.dropped + path.packets.reverse.dropped);
    assert!(counts.drops.forward.total() > 0 && counts.retransmissions >= 1, "{counts:?}");
    let events = |event| rows.iter().filter(|row| row.event == event).count() as u64;
    assert_eq!(events(SegmentEvent::Sent), path.packets.forward.offered + path.packets.reverse.offered);
    assert_eq!(
        events(SegmentEvent::Received),
        path.packets.forward.delivered + path.packets.reverse.delivered
    );
    assert_eq!(events(SegmentEvent::Dropped), dropped);
    assert!(rows.is_sorted_by_key(|row| row.time));
    let again =
        rows.iter().filter(|row| row.event == SegmentEvent::Sent && row.retransmission && row.len > 0);
    assert!(again.count() as u64 >= counts.retransmissions);
    assert_eq!(packets_in(&run.capture), rows.len());
    assert!(run.queues.iter().all(|row| matches!(row.metric, Metric::Queue | Metric::QueueingDelay)));
    let longest = |metric| run.queues.iter().filter(|row| row.metric == metric).map(|row| row.value).max();
    let bytes = longest(Metric::Queue);
    assert!(bytes > Some(1500) && bytes <= Some(30 * 1500), "{bytes:?} B in a queue of 30 packets");
    // The path's queue alone: how late the machine was is not in it.
    let waited = longest(Metric::QueueingDelay).map(Duration::from_nanos);
    let full = Rate::from_bit_per_s(50_000_000).expect("a rate").time_to_send(Bytes(30 * 1500));
    assert!(waited > Some(Duration::ZERO) && waited <= Some(full), "{waited:?} of {full}");
}

/// Enhanced packet blocks of a pcapng file (draft-ietf-opsawg-pcapng §4.3).
fn packets_in(mut capture: &[u8]) -> usize {
    let mut packets = 0;
    while let Some(header) = capture.first_chunk::<8>() {
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        packets += usize::from(word(0) == 6);
        capture = &capture[word(4) as usize..];
    }
    packets
}

#[test]
fn with_sack_the_path_sees_what_the_kernel_counts() {
    for (data, opener, v6) in
        [(Direction::Forward, Role::Sender, false), (Direction::Reverse, Role::Receiver, true)]
    {
        let Some(run) = emulate(PATH, data, opener, v6, &[]) else { return };
        agrees(&run, opener);
        assert!(run.rows.iter().any(|row| !row.sack.is_empty() && row.timestamps.is_some()));
    }
}

#[test]
fn without_sack_and_timestamps_likewise() {
    let old = [
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_timestamps", "0"),
        ("net.ipv4.tcp_window_scaling", "0"),
        ("net.ipv4.tcp_recovery", "0"),
        ("net.ipv4.tcp_early_retrans", "0"),
    ];
    let Some(run) = emulate(PATH, Direction::Forward, Role::Receiver, false, &old) else { return };
    agrees(&run, Role::Receiver);
    assert!(run.counts.dup_acks > 0, "{:?}", run.counts);
    assert!(run.rows.iter().all(|row| row.sack.is_empty() && row.timestamps.is_none()));
}

/// Loses the first packet that goes forward: a SYN, or a SYN/ACK.
const FIRST_LOST: &str = r#"
title = "test"
path = [{ element = "delay", delay = "5 ms" }, { element = "listed-loss", packets = { forward = [1], reverse = [] } }]
[transfer]
size = "100 kB"
"#;

#[test]
fn timeouts_of_the_handshake_are_known_when_the_connection_is_there() {
    for opener in [Role::Sender, Role::Receiver] {
        let Some(run) = emulate(FIRST_LOST, Direction::Forward, opener, false, &[]) else { return };
        let timeouts = |info: Option<TcpInfo>| info.and_then(|info| info.total_rto);
        let [begun, ended] = [run.sender.info_at_connect, run.sender.info].map(timeouts);
        // A SYN/ACK's timer and that of the SYN before it expire together; a SYN that comes again is answered at once.
        let possible = if opener == Role::Sender { 1..=1 } else { 0..=1 };
        assert!(begun.is_some_and(|begun| possible.contains(&begun)), "{opener:?}: {begun:?}");
        assert!(run.counts.syns + run.counts.synacks > 2, "{:?}", run.counts);
        // On a machine that stalls, data may time out as well.
        if run.counts.retransmissions == 0 {
            assert_eq!(begun, ended, "{opener:?}");
        }
    }
}
