//! The running kernel over a path that loses: what is seen on the path is what the kernel says of itself.

use super::*;
use farpath_emu::{Clock, Emulator, Host, HostSettings, LoopReport, Queues, Settings, Tap, WirePacket};
use farpath_experiment::Experiment;
use farpath_traffic::{BulkEnd, EndReport, Opening, Prepared, Role, SocketOptions};
use farpath_units::{Bytes, Instant};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const PORT: u16 = 50_000;

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

/// Shows a watch what an emulation shows, and adds up what it makes of it.
struct Shown {
    watch: Watch,
    events: PerEvent,
    /// Retransmissions of either end that were sent.
    again: u64,
    options: Options,
}

/// Packets of flows.
#[derive(Debug, Default, PartialEq, Eq)]
struct PerEvent {
    sent: u64,
    received: u64,
    dropped: u64,
}

/// Which options were seen on any packet.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    sack: bool,
    timestamps: bool,
}

impl Tap for Shown {
    fn packet(
        &mut self,
        _at: Instant,
        event: farpath_emu::PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        _queues: Queues<'_>,
    ) {
        let (event, count) = match event {
            farpath_emu::PacketEvent::Sent => (PacketEvent::Sent, &mut self.events.sent),
            farpath_emu::PacketEvent::Received => (PacketEvent::Received, &mut self.events.received),
            farpath_emu::PacketEvent::Dropped(cause) => {
                (PacketEvent::Dropped(cause), &mut self.events.dropped)
            }
            farpath_emu::PacketEvent::Refused => panic!("the device has room"),
        };
        let decoded = packet.decode().expect("there is TCP alone");
        let ports = [decoded.source.port(), decoded.destination.port()];
        let segment = &decoded.segment;
        let seen = Seen { event, direction, number: packet.number(), ports, segment };
        let known = self.watch.packet(seen).expect("of the one flow");
        *count += 1;
        self.again += u64::from(event == PacketEvent::Sent && known.retransmission);
        self.options.sack |= !segment.sack.is_empty();
        self.options.timestamps |= segment.timestamps.is_some();
    }
}

struct Emulated {
    sender: EndReport,
    receiver: EndReport,
    shown: Shown,
    path: LoopReport,
}

/// A transfer from `data`'s near end to its far end; `None` where this machine has no hosts to give.
fn emulate(data: Direction, opener: Role, v6: bool, sysctls: &[(&str, &str)]) -> Option<Emulated> {
    let experiment = Experiment::parse(PATH, "test", &[]).expect("sound");
    let point = &experiment.points()[0];
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
            eprintln!("SKIPPED: the kernel over a path, because this machine has no hosts: {error}");
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
            start: Instant::ZERO,
            deadline: Instant::ZERO + Duration::from_secs(100),
            sample_every: None,
            read_rate: None,
            close_within: Duration::from_secs(5),
            socket: SocketOptions { congestion_control: Some("reno".to_owned()), ..SocketOptions::default() },
        };
        hosts[host].namespace().run(|| Prepared::new(end)).expect("a thread").expect("it is ready")
    };
    let ends = [prepared(Role::Sender), prepared(Role::Receiver)];
    let flow = FlowPorts { direction: data, sender: PORT, receiver: PORT };
    let mut shown = Shown {
        watch: Watch::new([flow]),
        events: PerEvent::default(),
        again: 0,
        options: Options::default(),
    };
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
    let ([sender, receiver], path) = thread::scope(|scope| {
        let path = scope.spawn(|| emulator.run(&over, &mut shown));
        let ends = ends.map(|end| scope.spawn(|| end.run(clock.epoch(), &stop, &mut |_| {})));
        let ends = ends.map(|end| end.join().expect("no panic"));
        over.store(true, Ordering::Relaxed);
        (ends, path.join().expect("no panic").expect("the devices are there"))
    });
    Some(Emulated { sender, receiver, shown, path })
}

/// What must be so whatever the stack.
fn agrees(run: &Emulated, opener: Role) {
    let Emulated { sender, receiver, shown, path } = run;
    let counts = shown.watch.counts(0);
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
    let PerDirection { forward, reverse } = path.packets;
    let all = |of: fn(&farpath_emu::PacketCounts) -> u64| of(&forward) + of(&reverse);
    let expected = PerEvent {
        sent: all(|it| it.offered),
        received: all(|it| it.delivered),
        dropped: all(|it| it.dropped),
    };
    assert_eq!(shown.events, expected);
    // A request that is sent again is none of the flow's retransmissions.
    assert!(shown.again >= counts.retransmissions);
}

#[test]
fn with_sack_the_path_sees_what_the_kernel_counts() {
    for (data, opener, v6) in
        [(Direction::Forward, Role::Sender, false), (Direction::Reverse, Role::Receiver, true)]
    {
        let Some(run) = emulate(data, opener, v6, &[]) else { return };
        agrees(&run, opener);
        assert_eq!(run.shown.options, Options { sack: true, timestamps: true });
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
    let Some(run) = emulate(Direction::Forward, Role::Receiver, false, &old) else { return };
    agrees(&run, Role::Receiver);
    assert!(run.shown.watch.counts(0).dup_acks > 0, "{:?}", run.shown.watch.counts(0));
    assert_eq!(run.shown.options, Options::default());
}
