//! Packet scripts against a stack in user space behind a TUN device: one of ours stands there.
#![cfg(target_os = "linux")]

#[path = "../../examples/smoltcp_behind_tun.rs"]
#[expect(dead_code, reason = "the main function of an example")]
mod smoltcp_behind_tun;

use farpath_emu::{
    Application, Backend, Clock, CloseWhen, DEVICE, EndpointPort, Host, HostSettings, Namespace, Port,
    VirtioHeader,
};
use farpath_emulate::play_behind_device;
use farpath_script::{Comparison, Outcome, parse};
use farpath_tcp::{Config, Seq};
use farpath_testing::{Need, skip};
use farpath_units::{Bytes, Duration};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Nothing is late on a busy machine: times are not what is looked at.
const PATIENT: Comparison = Comparison { tolerance: Some(Duration::from_secs(60)) };
/// The end under test, in packetdrill's addresses.
const LOCAL: ([u8; 4], u16) = ([192, 168, 0, 1], 8080);

const ACCEPTED: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 65535 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>\n+0 < . 1:1(0) ack 1 win 65535\n\
    +0 accept(3, ..., ...) = 4\n+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n";
const OPENED: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 connect(3, ..., ...) = 0\n+0 > S 0:0(0) <...>\n\
    +0 < S. 0:0(0) ack 1 win 65535 <mss 1000>\n+0 > P. 1:1001(1000) ack 1\n";

/// A host whose device's other side is a stack of ours, which does not send again on a machine that stands still for a minute.
#[expect(clippy::disallowed_methods, reason = "the device is in real time")]
fn behind_it(over: &AtomicBool, mut port: Box<dyn Port>, make: impl Fn(&Config) -> Option<EndpointPort>) {
    let mut config = Config::default();
    config.rto.initial = Duration::from_secs(60);
    config.rto.min = Duration::from_secs(60);
    let clock = Clock::start();
    let mut buffer = vec![0; 66_000];
    let mut stack = None;
    while !over.load(Ordering::Relaxed) {
        if stack.is_none() {
            stack = make(&config);
        }
        if let Some(stack) = &mut stack {
            let now = clock.now();
            while let Ok(Some(received)) = port.receive(now, &mut buffer) {
                let packet = [IoSlice::new(&buffer[..received.len])];
                stack.send(now, VirtioHeader::default(), None, &packet).expect("it takes what comes");
            }
            while let Ok(Some(received)) = stack.receive(now, &mut buffer) {
                let packet = [IoSlice::new(&buffer[..received.len])];
                port.send(now, received.header, None, &packet).expect("the device is there");
            }
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// What came of a script against the stack that `make` gives; `None` where there are no namespaces.
fn played(
    text: &str,
    connect: Option<&str>,
    make: impl Fn(&Config) -> Option<EndpointPort> + Sync + Send,
) -> Option<Outcome> {
    let script = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let settings = HostSettings { backend: Backend::Tun, offload: false, ..HostSettings::near() };
    let host = match Host::new(&settings) {
        Ok(host) => host,
        Err(error) => {
            skip(Need::Root, format!("a stack behind a device: {error}"));
            return None;
        }
    };
    let over = AtomicBool::new(false);
    let port = host.port();
    let verdict = thread::scope(|scope| {
        scope.spawn(|| behind_it(&over, port, make));
        let verdict = host.namespace().run(|| play_behind_device(&script, &PATIENT, DEVICE, connect));
        over.store(true, Ordering::Relaxed);
        verdict
    });
    Some(verdict.expect("a namespace").expect("a device").outcome)
}

fn application() -> Application {
    Application { write: Bytes(1000), close: CloseWhen::Never, ..Application::default() }
}

fn listening(config: &Config) -> Option<EndpointPort> {
    Some(EndpointPort::listen(config, Seq(77), SocketAddr::from(LOCAL), application()))
}

#[test]
fn a_stack_that_listens_is_played_by_its_packets() {
    let rest = "+0 < P. 1:101(100) ack 1001 win 65535\n+0 > . 1001:1001(0) ack 101\n";
    let Some(outcome) = played(&format!("{ACCEPTED}{rest}"), None, listening) else { return };
    assert_eq!(outcome, Outcome::Passed);
    let rest = "+0 < P. 1:101(100) ack 1001 win 65535\n+0 > . 1001:1001(0) ack 102\n";
    match played(&format!("{ACCEPTED}{rest}"), None, listening) {
        Some(Outcome::Failed(fault)) => {
            assert!(
                fault.place.line == 11 && fault.found.contains("the acknowledgment differs"),
                "{fault:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_has_the_stack_connect() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = folder.path().join("told");
    let connecting = |told: &Path, config: &Config| {
        let remote = SocketAddr::from(([192, 0, 2, 1], 8080));
        let local = SocketAddr::from((LOCAL.0, 40_000));
        told.exists().then(|| EndpointPort::connect(config, Seq(77), local, remote, application()))
    };
    let command = format!("touch {}", told.display());
    let Some(outcome) = played(OPENED, Some(&command), |config| connecting(&told, config)) else { return };
    assert_eq!(outcome, Outcome::Passed);
    match played(OPENED, None, |_| None) {
        Some(Outcome::CannotRun(fault)) => {
            assert!(fault.place.line == 2 && fault.expected.contains("--connect"), "{fault:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_nobody_sees_behind_a_device_is_refused() {
    for (rest, words) in [
        ("+0...0.1 read(4, ..., 10) = 10\n", "one"),
        ("+0 `sysctl net.ipv4.tcp_sack=0`\n", "tcp_sack"),
        ("+0 %{ assert tcpi_snd_cwnd == 10 }%\n", "tcpi_snd_cwnd"),
    ] {
        match played(&format!("{ACCEPTED}{rest}"), None, listening) {
            None => return,
            Some(Outcome::CannotRun(fault)) => {
                assert!(fault.place.line == 10 && fault.found.contains(words), "{fault:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The stack of others, as the example has it: a device of its own making, 4000 bytes for each who connects.
#[test]
#[expect(clippy::disallowed_methods, reason = "the device is in real time")]
fn a_stack_of_others_is_played_by_its_packets() {
    // smoltcp sends its window at once, and retransmits by its timer: so much of it any machine sees.
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
        +0 < S 0:0(0) win 65535 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>\n+0 < . 1:1(0) ack 1 win 65535\n\
        +0 accept(3, ..., ...) = 4\n+0 write(4, ..., 4000) = 4000\n+0 > P. 1:4001(4000) ack 1\n\
        +0 < P. 1:101(100) ack 4001 win 65535\n+0 > . 4001:4001(0) ack 101\n";
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => return skip(Need::Root, format!("a stack behind a device: {error}")),
    };
    let over = AtomicBool::new(false);
    let outcomes = namespace.run(|| {
        thread::scope(|scope| {
            let stack = scope.spawn(|| smoltcp_behind_tun::stack::serve("tun7", 4000, &over));
            let up = || {
                let set_up = Command::new("ip").args(["link", "set", "tun7", "up"]).output();
                set_up.expect("there is ip").status.success()
            };
            while !stack.is_finished() && !up() {
                thread::sleep(std::time::Duration::from_millis(10));
            }
            // Twice: what the first one leaves must not be in the way of the next.
            let outcomes: Vec<Outcome> = [script, &script.replace("ack 101", "ack 102")]
                .iter()
                .map(|text| {
                    let script = parse(text).expect("a script");
                    play_behind_device(&script, &PATIENT, "tun7", None).expect("a device").outcome
                })
                .collect();
            over.store(true, Ordering::Relaxed);
            stack.join().expect("no panic").expect("a device");
            outcomes
        })
    });
    match &outcomes.expect("it can be entered")[..] {
        [Outcome::Passed, Outcome::Failed(fault)] => {
            assert!(
                fault.place.line == 11 && fault.found.contains("the acknowledgment differs"),
                "{fault:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}
