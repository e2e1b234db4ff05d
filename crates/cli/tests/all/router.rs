//! `farpath explicit-rate router` between two hosts that ask: grants, statistics, a new configuration while a connection goes on.
#![cfg(all(target_os = "linux", feature = "driver"))]

use assert_cmd::cargo::cargo_bin;
use farpath_driver::{Device, Driver, Settings};
use farpath_emu::Namespace;
use farpath_testing::{Need, skip};
use farpath_tia1039::{Message, Priority, RateType, RateUnit, RateWord, Rounding, Structure};
use farpath_units::Rate;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const CONFIG: &str = r#"
inside = "r0"
outside = "r1"
statistics = "127.0.0.1:9439"
rate = "20 Mbit/s"
queue = "500 kB"
"#;

/// IPPROTO_RAW: the IP header is written by who sends.
const RAW: i32 = 255;
/// ETH_P_ALL, as it goes over the line.
const ALL: i32 = 0x0003_u16.to_be() as i32;

/// A process of a namespace, ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).expect("a process id"))
    }
}

fn start(namespace: &Namespace, program: &str, args: &[&str]) -> Running {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(namespace.run(|| command.spawn()).expect("it can be entered").expect("the program starts"))
}

/// `ip` in a namespace.
fn ip(namespace: &Namespace, args: &str) {
    let output =
        namespace.run(|| Command::new("ip").args(args.split(' ')).output()).expect("it can be entered");
    let output = output.expect("there is ip");
    assert!(output.status.success(), "ip {args}: {}", String::from_utf8_lossy(&output.stderr));
}

fn skipped() -> bool {
    let missing = farpath_driver::missing();
    let why = if !missing.is_empty() {
        farpath_driver::DriverError::Missing(missing).to_string()
    } else if Command::new("ip").arg("-V").output().is_err() {
        "no `ip` to join namespaces with (Debian: apt-get install iproute2)".to_owned()
    } else {
        return false;
    };
    skip(Need::Bpf, why);
    true
}

/// Two hosts that ask, and a router between them.
struct Bench {
    near: Namespace,
    far: Namespace,
    router: Namespace,
    driver: Driver,
    control: String,
    _holders: [Running; 2],
}

impl Bench {
    fn new() -> Bench {
        let [near, far, router] = [(); 3].map(|()| Namespace::new().expect("namespaces can be made"));
        let holders = [&near, &far].map(|host| start(host, "sleep", &["300"]));
        let ends = [("a0", &near, "10.7.0.1/24"), ("b0", &far, "10.7.0.2/24")];
        for (number, (name, host, address)) in ends.into_iter().enumerate() {
            let pid = holders[number].pid();
            ip(&router, &format!("link add r{number} type veth peer name {name} netns {pid}"));
            ip(&router, &format!("link set r{number} up"));
            ip(host, &format!("addr add {address} dev {name}"));
            ip(host, &format!("link set {name} up"));
        }
        let control = format!("r{}", std::process::id());
        let mut driver = Driver::load_as(&control, &Settings::new("cubic")).expect("nothing is missing");
        let wanted = Rate::from_bit_per_s(100_000_000).expect("not zero");
        for (name, host, _) in ends {
            let attached = host.run(|| driver.attach(&Device::named(name)?, wanted));
            attached.expect("it can be entered").expect("it can be attached");
        }
        Bench { near, far, router, driver, control, _holders: holders }
    }

    /// The router, once it routes as `file` says.
    fn route(&self, file: &Path) -> Running {
        let program = cargo_bin("farpath");
        let args = ["explicit-rate", "router", file.to_str().expect("UTF-8")];
        let mut router = start(&self.router, program.to_str().expect("UTF-8"), &args);
        let mut said = String::new();
        BufReader::new(router.0.stdout.take().expect("piped")).read_line(&mut said).expect("it says so");
        assert_eq!(said, "farpath: routes between r0 and r1\n");
        router
    }

    /// A connection from the near to the far host; both ask.
    fn connected(&self) -> (Socket, Socket) {
        let address = SockAddr::from("10.7.0.2:5001".parse::<SocketAddr>().expect("an address"));
        let socket = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("a socket");
            socket.set_tcp_congestion(self.control.as_bytes()).expect("it is registered");
            socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
            socket
        };
        let listening = self.far.run(|| {
            let listening = socket();
            listening.bind(&address).expect("nobody else is there");
            listening.listen(1).expect("it listens");
            listening
        });
        let near = self.near.run(|| {
            let near = socket();
            near.connect(&address).expect("the router passes it, and what finds out the address");
            near
        });
        let (far, _) = listening.expect("it can be entered").accept().expect("somebody has connected");
        (near.expect("it can be entered"), far)
    }

    /// Waits until a statistic of the router, which is renewed now and then, is as it should be.
    #[expect(clippy::disallowed_methods, reason = "another process does it, in real time")]
    fn shows(&self, name: &str, value: u64) {
        let mut found = 0;
        let is_there = (0..100).any(|_| {
            // Not `park_timeout`: a thread that ends in a scope unparks who waits for it.
            std::thread::sleep(Duration::from_millis(100));
            found = self.statistic(name);
            found == value
        });
        assert!(is_there, "{name} is {found}, not {value}");
    }

    fn statistic(&self, name: &str) -> u64 {
        let page = self.router.run(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9439").expect("it is served");
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it is asked");
            let mut page = String::new();
            stream.read_to_string(&mut page).expect("it is text");
            page
        });
        let page = page.expect("it can be entered");
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_else(|| panic!("no {name} in {page}"));
        line.trim().parse().expect("a number")
    }

    fn granted(&self) -> Option<u64> {
        let flows = self.driver.flows().expect("they can be read");
        flows.iter().find(|flow| flow.remote.port() == 5001)?.rate().map(Rate::bit_per_s)
    }
}

/// A router's configuration, in a folder of its own.
fn configured() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("router.toml");
    fs::write(&file, CONFIG).expect("written");
    (folder, file)
}

fn send((near, far): &mut (Socket, Socket), bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| far.read_exact(&mut vec![0; bytes]).expect("all arrives"));
        near.write_all(&vec![7; bytes]).expect("all goes");
    });
}

#[test]
fn a_router_between_two_interfaces_grants_and_is_told_anew_without_losing_a_flow() {
    if skipped() {
        return;
    }
    let bench = Bench::new();
    let (_folder, file) = configured();
    let mut router = bench.route(&file);

    let mut pair = bench.connected();
    send(&mut pair, 1_000_000);
    // 0.98 of the line, less 2 % of that for newcomers.
    assert_eq!(bench.granted(), Some(19_200_000));
    let flows = "farpath_router_flows{direction=\"forward\"}";
    bench.shows(flows, 1);

    // Half of the line, and the same flow.
    fs::write(&file, CONFIG.replace("20 Mbit/s", "10 Mbit/s")).expect("written");
    kill(router.pid(), Signal::SIGHUP).expect("it runs");
    bench.shows("farpath_router_capacity_bits_per_second{direction=\"forward\"}", 9_800_000);
    // Over a tenth of a millisecond TCP would hand down 64 kB at once, whatever its rate is (tcp_tso_autosize), and the router police a
    // third of it: its burst tolerance is 37 kB. What is late on a busy machine comes in bursts too.
    let policed = "farpath_router_decisions_total{direction=\"forward\",kind=\"policed\"}";
    let policed = bench.statistic(policed);
    eprintln!("POLICED {policed} of 700");
    assert!(policed < 70, "{policed} of 700 packets");
    send(&mut pair, 1_000_000);
    assert_eq!(bench.granted(), Some(9_600_000));
    bench.shows(flows, 1);
    assert_eq!(bench.statistic("farpath_router_decisions_total{direction=\"forward\",kind=\"missed\"}"), 0);

    // What cannot be read changes nothing.
    fs::write(&file, "rate = 5").expect("written");
    kill(router.pid(), Signal::SIGHUP).expect("it runs");
    send(&mut pair, 100_000);
    assert_eq!(bench.granted(), Some(9_600_000));

    // Anew, without state: the flow is asked for its request, and has its rate again.
    fs::write(&file, CONFIG).expect("written");
    kill(router.pid(), Signal::SIGTERM).expect("it runs");
    assert!(router.0.wait().expect("it ends").success());
    let _router = bench.route(&file);
    send(&mut pair, 2_000_000);
    assert_eq!(bench.granted(), Some(19_200_000));
}

/// An IPv4 packet of TCP without options, by who writes what he likes; the router looks at no checksum. Ends are address and port.
fn forged(
    ends: [([u8; 4], u16); 2],
    [seq, acknowledged]: [u32; 2],
    flags: u8,
    structure: Option<Structure>,
) -> Vec<u8> {
    let says = structure.map_or_else(Vec::new, |structure| structure.encode_v4().to_vec());
    let [(source, from), (destination, to)] = ends;
    let dscp = if structure.is_some() { 3 << 2 } else { 0 };
    let len = u16::try_from(40 + says.len()).expect("it is short").to_be_bytes();
    let mut packet = vec![0x45, dscp, len[0], len[1], 0, 1, 0, 0, 64, 6, 0, 0];
    packet.extend([source, destination].concat());
    packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
    packet.extend([seq.to_be_bytes(), acknowledged.to_be_bytes()].concat());
    packet.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend(says);
    packet
}

#[test]
fn what_is_made_up_takes_nothing_from_a_connection_and_the_page_stays() {
    if skipped() {
        return;
    }
    let bench = Bench::new();
    let (_folder, file) = configured();
    let _router = bench.route(&file);
    let mut pair = bench.connected();
    let sniffer = bench.near.run(|| Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(ALL))));
    let mut sniffer = sniffer.expect("it can be entered").expect("the test is root");
    send(&mut pair, 1_000_000);
    assert_eq!(bench.granted(), Some(19_200_000));

    let port = pair.0.local_addr().expect("bound").as_socket().expect("IPv4").port();
    let (near, far) = (([10, 7, 0, 1], port), ([10, 7, 0, 2], 5001));
    let numbers = std::iter::repeat_with(|| {
        let mut packet = [0; 2048];
        let len = sniffer.read(&mut packet).expect("it has sent something");
        let number = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().expect("four bytes"));
        let data = len > 1000 && packet[12..16] == near.0 && packet[20..22] == port.to_be_bytes();
        data.then(|| [number(24), number(28)])
    });
    let numbers = numbers.flatten().next().expect("it goes on until there is one");
    let start = Structure {
        rate_type: RateType::Guaranteed,
        guaranteed: RateUnit::KbitPerS.encode(17_000_000, Rounding::Up),
        preemption: Priority::HIGHEST,
        ..Structure::request(RateWord::ZERO)
    };
    let close = Structure { message: Message::Close, ..start };
    let (syn, rst, ack) = (0x02, 0x04, 0x10);
    let wrong = numbers.map(|number| number.wrapping_add(1 << 31));
    let ends = [near, far];
    let packets = [
        // Of nobody to nobody, and in the name of the connection.
        forged([([10, 7, 0, 77], 3333), ([10, 7, 0, 78], 4444)], [1, 0], syn, Some(start)),
        forged(ends, wrong, ack, Some(start)),
        forged(ends, wrong, ack, Some(close)),
        forged(ends, wrong, rst, None),
        forged(ends, wrong, syn, Some(start)),
    ];
    let to = SockAddr::from("10.7.0.2:0".parse::<SocketAddr>().expect("an address"));
    let sent = bench.near.run(|| {
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(RAW))).expect("the test is root");
        packets.iter().all(|packet| raw.send_to(packet, &to).is_ok())
    });
    assert!(sent.expect("it can be entered"), "they are sent");
    let mut half = Vec::new();
    let opened = bench.router.run(|| {
        for _ in 0..600 {
            let mut stream = TcpStream::connect("127.0.0.1:9439").expect("it listens");
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nX: ");
            half.push(stream);
        }
    });
    opened.expect("it can be entered");
    // The reset is of both ways.
    bench.shows("farpath_router_decisions_total{direction=\"forward\",kind=\"unknown\"}", 4);
    assert_eq!(bench.statistic("farpath_router_decisions_total{direction=\"reverse\",kind=\"unknown\"}"), 1);
    for kind in ["preempted", "closed", "admitted", "missed"] {
        let name = format!("farpath_router_decisions_total{{direction=\"forward\",kind=\"{kind}\"}}");
        assert_eq!(bench.statistic(&name), 0, "{kind}");
    }
    assert_eq!(bench.statistic("farpath_router_flows{direction=\"forward\"}"), 2);
    send(&mut pair, 1_000_000);
    assert_eq!(bench.granted(), Some(19_200_000));
}

#[test]
fn what_is_wrong_in_a_configuration_is_said_by_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("router.toml");
    for (change, words) in [
        (("20 Mbit/s", "20 MBps"), ["rate", "20 MBps"]),
        (("queue = \"500 kB\"", ""), ["queue", "1000 packets"]),
        (("\"r1\"", "\"r0\""), ["outside", "another interface"]),
        (("statistics", "statistic"), ["statistic", "statistics"]),
        (("127.0.0.1:9439", "here"), ["statistics", "127.0.0.1:9439"]),
    ] {
        fs::write(&file, CONFIG.replace(change.0, change.1)).expect("written");
        let output = Command::new(cargo_bin("farpath"))
            .args(["explicit-rate", "router", "--check"])
            .arg(&file)
            .output();
        let output = output.expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
    }
    let output =
        Command::new(cargo_bin("farpath")).args(["explicit-rate", "router", "/nonexistent.toml"]).output();
    let said = String::from_utf8_lossy(&output.expect("the command starts").stderr).into_owned();
    assert_eq!(said, "farpath: /nonexistent.toml: cannot be read: No such file or directory (os error 2)\n");
}
