//! Two hosts with the driver, and a path between them.
#![allow(dead_code, reason = "each test uses its part")]

use farpath_driver::{Counter, Device, Driver, Outcome, Settings, missing};
use farpath_elements::{
    Bernoulli, Delay, ElementKind, ElementSpec, Link, Listed, MarkThreshold, PacketCount, QueueLimit,
    RouterLines,
};
use farpath_emu::{
    Backend, Clock, Emulator, Host, HostSettings, LoopReport, PacketEvent, Queues, Recorder,
    Settings as Loop, WirePacket,
};
use farpath_path::{Direction, PerDirection};
use farpath_testing::Need;
use farpath_tia1039::QosPacket;
use farpath_tia1039::router::RouterSettings;
use farpath_traffic::TcpInfo;
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

pub fn rate(bit_per_s: u64) -> Rate {
    Rate::from_bit_per_s(bit_per_s).expect("not zero")
}

/// Why the driver cannot be tried here, said loudly.
pub fn skipped() -> bool {
    let missing = missing();
    if !missing.is_empty() {
        return skip(farpath_driver::DriverError::Missing(missing));
    }
    Host::new(&HostSettings::near()).is_err_and(skip)
}

/// Says why; gives `true`.
pub fn skip(why: impl std::fmt::Display) -> bool {
    farpath_testing::skip(Need::Bpf, why);
    true
}

/// A name for a congestion control that no other test has.
pub fn control() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

pub fn delay(ms: u64) -> ElementSpec {
    element("delay", ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_millis(ms)) }))
}

/// Loses each packet with data by so much, both ways.
pub fn loss(share: f64) -> ElementSpec {
    let loss_rate = PerDirection::both(Probability::new(share).expect("a share"));
    element("loss", ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::All }))
}

/// Loses the packets of these numbers, that go forward.
pub fn losing(numbers: &[u64]) -> ElementSpec {
    let packets = PerDirection { forward: numbers.to_vec(), reverse: Vec::new() };
    element(
        "losses",
        ElementKind::Listed(Listed { times: PerDirection::default(), packets, count: PacketCount::All }),
    )
}

/// All of both lines can be granted.
pub fn router_lines(forward: u64, reverse: u64) -> RouterLines {
    let share = |fraction| Probability::new(fraction).expect("a share");
    RouterLines {
        rate: PerDirection { forward: rate(forward), reverse: rate(reverse) },
        changes: PerDirection::default(),
        queue: PerDirection::both(QueueLimit::Bytes(Bytes(1_000_000))),
        overhead: Bytes::ZERO,
        min_packet: Bytes::ZERO,
        settings: PerDirection::both(RouterSettings {
            utilization: share(1.0),
            newcomers: share(0.0),
            ..RouterSettings::default()
        }),
    }
}

pub fn router(forward: u64, reverse: u64) -> ElementSpec {
    element("router", ElementKind::FlowRouter(Box::new(router_lines(forward, reverse))))
}

/// A line that knows nothing of grants.
pub fn link(bit_per_s: u64, queue: u64) -> ElementSpec {
    element(
        "link",
        ElementKind::Link(Link {
            rate: PerDirection::both(rate(bit_per_s)),
            queue: PerDirection::both(QueueLimit::Bytes(Bytes(queue))),
            mark: PerDirection::both(MarkThreshold::Never),
            aqm: PerDirection::default(),
            overhead: Bytes::ZERO,
            min_packet: Bytes::ZERO,
        }),
    )
}

/// A packet with structures as somebody on the path saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    pub event: PacketEvent,
    pub direction: Direction,
    /// In the order in which packets left their hosts.
    pub number: u64,
    pub bytes: Vec<u8>,
    pub read: QosPacket,
}

/// A packet that arrived at the near host, and how many with data that had sent by then.
pub type Back = (Vec<u8>, u64);

#[derive(Debug, Default, Clone)]
pub struct Watch {
    pub signals: Arc<Mutex<Vec<Signal>>>,
    pub malformed: Arc<Mutex<Vec<String>>>,
    /// Why packets were dropped.
    pub dropped: Arc<Mutex<Vec<String>>>,
    /// Packets with data and those of them that are marked QoSFlow, of the near host.
    pub data: Arc<Mutex<(u64, u64)>>,
    /// The same of the far host.
    pub data_back: Arc<Mutex<(u64, u64)>>,
    /// The first ones without structures.
    pub back: Arc<Mutex<Vec<Back>>>,
}

impl Recorder for Watch {
    fn packet(
        &mut self,
        _: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        _: Queues<'_>,
    ) {
        if let PacketEvent::Dropped(cause) = event {
            self.dropped.lock().unwrap().push(format!("{cause:?}"));
        }
        match QosPacket::decode(packet.bytes()) {
            Ok(read) if read.structures.is_some() => {
                let (bytes, number) = (packet.finished().into_owned(), packet.number());
                self.signals.lock().unwrap().push(Signal { event, direction, number, bytes, read });
            }
            Ok(read) => {
                if event == PacketEvent::Sent && packet.bytes().len() > 200 {
                    let data = if direction == Direction::Forward { &self.data } else { &self.data_back };
                    let mut data = data.lock().unwrap();
                    data.0 += 1;
                    data.1 += u64::from(read.dscp == 7);
                }
                let mut back = self.back.lock().unwrap();
                if (event, direction) == (PacketEvent::Received, Direction::Reverse) && back.len() < 8 {
                    back.push((packet.finished().into_owned(), self.data.lock().unwrap().0));
                }
            }
            Err(error) => self.malformed.lock().unwrap().push(error.to_string()),
        }
    }
}

/// Longer than this a machine in time keeps no program waiting.
const HELD_UP: std::time::Duration = std::time::Duration::from_millis(20);

/// Does what a machine fails at that stands still now and then: what is handed over late reaches a policer in one burst. Again where it
/// failed and that is so, and where it fails three times it is skipped.
pub fn unless_held_up(test: impl Fn()) {
    for _ in 0..3 {
        let over = AtomicBool::new(false);
        let (tried, longest) = thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut longest = std::time::Duration::ZERO;
                while !over.load(Ordering::Relaxed) {
                    let began = now();
                    thread::park_timeout(std::time::Duration::from_millis(1));
                    longest = longest.max(now() - began);
                }
                longest
            });
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&test));
            over.store(true, Ordering::Relaxed);
            (tried, watch.join().expect("it only sleeps"))
        });
        match tried {
            Ok(()) => return,
            Err(panic) if longest < HELD_UP => std::panic::resume_unwind(panic),
            Err(_) => eprintln!("the machine stood still for {longest:?}: once more"),
        }
    }
    farpath_testing::skip(Need::Time, "when packets arrive: this machine stood still three times");
}

/// How the two hosts are, and what is between them.
pub struct Bench {
    pub near: Host,
    pub far: Host,
    pub driver: Driver,
    pub control: String,
    pub watch: Watch,
    path: Vec<ElementSpec>,
}

/// How packets leave a host, and whether it leaves checksums and splitting to others.
pub type Way = (Backend, bool);
/// All of them: IP packets and Ethernet frames.
pub const WAYS: [Way; 4] =
    [(Backend::Tun, true), (Backend::Tun, false), (Backend::Packet, true), (Backend::Packet, false)];

pub const V4: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
pub const V6: [&str; 2] = ["fd00::1", "fd00::2"];

impl Bench {
    /// With the driver on both hosts, which ask for `wanted`.
    pub fn new(path: Vec<ElementSpec>, (backend, offload): Way, settings: &Settings, wanted: u64) -> Bench {
        let mut bench = Bench::bare(path, (backend, offload), settings);
        bench.attach(true, wanted);
        bench.attach(false, wanted);
        bench
    }

    /// With the driver loaded, and attached to nothing.
    pub fn bare(path: Vec<ElementSpec>, (backend, offload): Way, settings: &Settings) -> Bench {
        let [near, far] = V4.map(|address| address.parse().expect("an address"));
        let sysctls = [
            ("net.ipv4.tcp_rmem", "4096 16000000 64000000"),
            // Who writes is to notice what becomes of it.
            ("net.ipv4.tcp_wmem", "4096 262144 262144"),
        ];
        let configured = |one: HostSettings, address, peer| HostSettings {
            address: (address, one.address.1),
            peer: (peer, one.peer.1),
            sysctls: sysctls.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            backend,
            offload,
            ..one
        };
        let host = |settings| Host::new(&settings).expect("hosts can be made");
        let (near, far) = (
            host(configured(HostSettings::near(), near, far)),
            host(configured(HostSettings::far(), far, near)),
        );
        let control = control();
        // The settings of the kernel are those of a namespace.
        let driver = near.namespace().run(|| Driver::load_as(&control, settings)).expect("it can be entered");
        let driver = driver.unwrap_or_else(|error| panic!("{error}"));
        Bench { near, far, driver, control, watch: Watch::default(), path }
    }

    pub fn attach(&mut self, near: bool, wanted: u64) {
        let host = if near { &self.near } else { &self.far };
        let driver = &mut self.driver;
        host.namespace()
            .run(|| {
                let device = Device::named("farpath0").expect("every host has it");
                driver.attach(&device, rate(wanted)).unwrap_or_else(|error| panic!("{error}"));
            })
            .expect("the namespace can be entered");
    }

    /// A listening socket of the far host.
    pub fn listen(&self, address: SocketAddr, explicit: bool) -> Socket {
        let control = self.control.clone();
        self.far
            .namespace()
            .run(|| {
                let socket = socket(address);
                socket.set_reuse_address(true).unwrap();
                socket.bind(&SockAddr::from(address)).unwrap();
                if explicit {
                    socket.set_tcp_congestion(control.as_bytes()).unwrap();
                }
                socket.listen(8).unwrap();
                socket
            })
            .unwrap()
    }

    /// Packets move while `work` runs.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> (T, LoopReport) {
        let settings = Loop { realtime: false, ..Loop::default() };
        let (near, far) = (self.near.port(), self.far.port());
        let mut emulator =
            Emulator::new(&self.path, 7, settings, near, far, Clock::start()).expect("a sound path");
        let stop = AtomicBool::new(false);
        let mut watch = self.watch.clone();
        thread::scope(|scope| {
            let running = scope.spawn(|| emulator.run(&stop, &mut watch));
            // Whatever happens in it, the loop must end.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            stop.store(true, Ordering::Relaxed);
            let report = running.join().expect("no panic in the loop").expect("nothing failed");
            match done {
                Ok(done) => (done, report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Sends `bytes` from the near host to the far one.
    pub fn transfer(&self, transfer: &Transfer) -> Done {
        let [near, far] = transfer.ends();
        let listening = self.listen(far, transfer.far_explicit);
        let (watched, sent, last) = (Mutex::new(Vec::new()), Mutex::new(None), Mutex::new(String::new()));
        let bytes = transfer.bytes;
        let ((), _) = self.run(|| {
            thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let (mut socket, _) = listening.accept().expect("somebody connects");
                    drain(&mut socket)
                });
                self.near
                    .namespace()
                    .run(|| {
                        let mut socket = socket(near);
                        if transfer.near_explicit {
                            socket.set_tcp_congestion(self.control.as_bytes()).unwrap();
                        }
                        if let Some(limit) = transfer.program_limit {
                            limit_pacing(&socket, limit);
                        }
                        if let Some(buffer) = transfer.own_buffer {
                            socket.set_send_buffer_size(buffer).unwrap();
                        }
                        socket.bind(&SockAddr::from(near)).unwrap();
                        let began = now();
                        socket.connect(&SockAddr::from(far)).expect("the far host listens");
                        let buffer = socket.send_buffer_size().unwrap();
                        *sent.lock().unwrap() = Some((
                            control_of(&socket),
                            TcpInfo::from_socket(socket.as_fd()).unwrap(),
                            buffer,
                        ));
                        let chunk = vec![7; 64 << 10];
                        let mut left = bytes;
                        while left > 0 {
                            let len = socket.write(&chunk[..left.min(chunk.len())]).expect("it goes");
                            left -= len;
                            if transfer.detach_after.is_some_and(|after| bytes - left >= after) {
                                self.driver.set_enabled(false).unwrap();
                            }
                            if watched.lock().unwrap().len() < 100_000 {
                                let flows = self.driver.flows().unwrap();
                                let info = TcpInfo::from_socket(socket.as_fd()).unwrap();
                                let ours = flows.into_iter().find(|flow| flow.local == near);
                                watched.lock().unwrap().push((now() - began, info, ours));
                            }
                        }
                        *last.lock().unwrap() = control_of(&socket);
                        socket.shutdown(std::net::Shutdown::Write).unwrap();
                        let mut rest = Vec::new();
                        socket.read_to_end(&mut rest).expect("the far host closes");
                    })
                    .unwrap();
                assert_eq!(reader.join().unwrap(), bytes);
            });
        });
        let (control, info, send_buffer) = sent.into_inner().unwrap().expect("it connected");
        Done {
            control,
            info,
            send_buffer,
            watched: watched.into_inner().unwrap(),
            last_control: last.into_inner().unwrap(),
        }
    }

    /// Sends `bytes` from the far host to the near one, which connects and asks for them with a byte.
    pub fn transfer_back(&self, transfer: &Transfer) {
        let [near, far] = transfer.ends();
        let listening = self.listen(far, transfer.far_explicit);
        self.run(|| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut socket, _) = listening.accept().expect("somebody connects");
                    socket.read_exact(&mut [0]).expect("it is asked for");
                    socket.write_all(&vec![7; transfer.bytes]).expect("it goes");
                });
                self.near
                    .namespace()
                    .run(|| {
                        let mut socket = socket(near);
                        socket.set_tcp_congestion(self.control.as_bytes()).unwrap();
                        socket.bind(&SockAddr::from(near)).unwrap();
                        socket.connect(&SockAddr::from(far)).expect("the far host listens");
                        socket.write_all(&[7]).expect("it goes");
                        assert_eq!(drain(&mut socket), transfer.bytes);
                    })
                    .unwrap();
            });
        });
    }

    pub fn count(&self, counter: Counter) -> u64 {
        let counters = self.driver.counters().unwrap();
        counters.into_iter().find(|(one, _)| *one == counter).expect("it is counted").1
    }

    pub fn plain(&self, outcome: Outcome) -> u64 {
        self.count(Counter::Plain(outcome))
    }

    /// Structures as they left or arrived.
    pub fn signals(&self, event: PacketEvent, direction: Direction) -> Vec<Signal> {
        let signals = self.watch.signals.lock().unwrap();
        signals.iter().filter(|one| (one.event, one.direction) == (event, direction)).cloned().collect()
    }
}

/// What is sent, and who takes part.
pub struct Transfer {
    pub bytes: usize,
    pub near_explicit: bool,
    pub far_explicit: bool,
    pub ends: [&'static str; 2],
    pub ports: [u16; 2],
    /// SO_MAX_PACING_RATE, bytes/s.
    pub program_limit: Option<u64>,
    /// SO_SNDBUF, bytes.
    pub own_buffer: Option<usize>,
    /// The driver is switched off after so many bytes.
    pub detach_after: Option<usize>,
}

impl Transfer {
    pub fn of(bytes: usize) -> Transfer {
        Transfer {
            bytes,
            near_explicit: true,
            far_explicit: true,
            ends: V4,
            ports: [0xa052, 0x1389],
            program_limit: None,
            own_buffer: None,
            detach_after: None,
        }
    }

    fn ends(&self) -> [SocketAddr; 2] {
        let address = |at: usize| SocketAddr::new(self.ends[at].parse::<IpAddr>().unwrap(), self.ports[at]);
        [address(0), address(1)]
    }
}

/// How it went.
pub struct Done {
    /// Right after the handshake: the congestion control, and how the kernel saw the connection.
    pub control: String,
    pub info: TcpInfo,
    /// As the kernel has it: twice what was set.
    pub send_buffer: usize,
    /// Since the beginning, while it sent.
    pub watched: Vec<(std::time::Duration, TcpInfo, Option<farpath_driver::Flow>)>,
    /// The congestion control at the end.
    pub last_control: String,
}

impl Done {
    /// The driver's view of the connection, the last time that it had one.
    pub fn last_flow(&self) -> farpath_driver::Flow {
        self.watched.iter().rev().find_map(|(_, _, flow)| flow.clone()).expect("it had a grant")
    }
}

#[expect(clippy::disallowed_methods, reason = "the kernel works in real time")]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

pub fn socket(like: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::for_address(like), Type::STREAM, Some(Protocol::TCP)).unwrap();
    let give_up_after = Some(std::time::Duration::from_secs(30));
    socket.set_read_timeout(give_up_after).unwrap();
    socket.set_write_timeout(give_up_after).unwrap();
    socket
}

/// SO_MAX_PACING_RATE, bytes/s.
#[allow(unsafe_code)]
pub fn limit_pacing(socket: &Socket, limit: u64) {
    // SAFETY: the value is of the length that is said, and lives across the call.
    let result = unsafe {
        let (value, len) = ((&raw const limit).cast(), std::mem::size_of_val(&limit) as libc::socklen_t);
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, len)
    };
    assert_eq!(result, 0);
}

pub fn control_of(socket: &Socket) -> String {
    let name = socket.tcp_congestion().unwrap();
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}

pub fn drain(socket: &mut Socket) -> usize {
    let (mut all, mut buffer) = (0, vec![0; 256 << 10]);
    loop {
        match socket.read(&mut buffer).expect("it arrives") {
            0 => return all,
            len => {
                assert!(buffer[..len].iter().all(|&byte| byte == 7), "only what was sent arrives");
                all += len;
            }
        }
    }
}
