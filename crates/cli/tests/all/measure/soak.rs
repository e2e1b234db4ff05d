//! A responder for minutes among clients that measure, that are slow, that flood and that die: what it keeps does not grow,
//! and every transfer of those who measure is right.
//!
//! Ten minutes, or as many seconds as `FARPATH_SOAK_SECONDS` says: `cargo test -p farpath-cli --test all -- --ignored soak`.

use super::Server;
use super::client::{Client, connect, reset};
use crate::support::processes::pause;
use farpath_experiment::Experiment;
use farpath_measure::limits::Needs;
use farpath_measure::serve::Limits;
use farpath_measure::{Exchanges, Family, MeasureError, Peer, burst, exchange, measure};
use farpath_run::{Outcome, Provenance};
use farpath_units::{Bytes, Duration};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration as Std, Instant};
use std::{env, fs, thread};

/// Clients at once: the two that measure, and two of each of the others' addresses.
const CLIENTS: u32 = 12;
/// What the responder's memory may grow by, from when everybody has been there to the end: what an allocator keeps here and
/// there, of a process of tens of megabytes.
const GROWTH: u64 = 16 << 20;

static NEVER: AtomicBool = AtomicBool::new(false);

/// What has been done so far.
#[derive(Default)]
struct Tally {
    over: AtomicBool,
    /// Transfers, requests and bursts of those who measure, which were right; and how often they had to come again.
    right: AtomicU64,
    again: AtomicU64,
    /// What the others have done.
    slow: AtomicU64,
    floods: AtomicU64,
    kills: AtomicU64,
    claims: AtomicU64,
    garbage: AtomicU64,
}

impl Tally {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }
}

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

#[expect(clippy::disallowed_methods, reason = "a soak is in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Numbers that are different each time, and the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Measures, again and again; whatever comes of it has to be right.
fn legitimate(address: SocketAddr, seed: u64, tally: &Tally) {
    let mut numbers = Numbers(seed);
    let file = |size: u64, opener: &str, flows: u32| {
        let text = format!(
            "title = \"t\"\npath = [{{ element = \"link\", rate = \"1 Gbit/s\" }}]\nhorizon = \"120 s\"\n\
             sender.stack = \"linux-6\"\ntransfer = {{ size = \"{size} B\", opener = \"{opener}\" }}\n\
             flow = [{{ count = {flows} }}]"
        );
        Experiment::parse(&text, "t", &[]).expect("good")
    };
    while tally.goes_on() {
        let mut far = match Peer::connect(&address.to_string(), Family::Any, None, &NEVER) {
            Ok(far) => far,
            // The place of one that has just gone may not be free yet.
            Err(MeasureError::Denied { message, .. }) if message.as_str().contains("measure") => {
                count(&tally.again);
                pause(50);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        for _ in 0..5 {
            let size = 1 + numbers.below(3_000_000);
            let opener = if numbers.below(2) == 0 { "sender" } else { "receiver" };
            let asked = file(size, opener, 2);
            let run = measure(&mut far, &asked.point(0), 1, Provenance::default(), &NEVER, &mut |_| {});
            let run = run.unwrap_or_else(|error| panic!("{error}")).expect("nobody stops it");
            for flow in &run.flows {
                assert_eq!((flow.outcome, flow.bytes_read), (Outcome::Completed, Bytes(size)), "{flow:?}");
                count(&tally.right);
            }
            let asked = file(1, "receiver", 1);
            let exchanges = Exchanges { count: 20, request: Bytes(200), answer: Bytes(2000) };
            let done =
                exchange(&mut far, &asked.point(0), exchanges, Provenance::default(), &NEVER, &mut |_| {});
            let (run, times) = done.unwrap_or_else(|error| panic!("{error}")).expect("nobody stops it");
            assert_eq!((times.len(), run.flows[0].bytes_read), (20, Bytes(40_000)));
            let quiet = Duration::from_millis(200);
            let up = numbers.below(2) == 0;
            let burst = burst(&mut far, up, 64, quiet, &NEVER).unwrap_or_else(|error| panic!("{error}"));
            assert!(burst.sent == 64 && burst.arrivals.len() <= 64);
            tally.right.fetch_add(2, Ordering::Relaxed);
            pause(20);
        }
    }
}

/// Connections that say a byte now and then, and clients that read a little of what they asked for.
fn slow(address: SocketAddr, tally: &Tally) {
    let mut dripping = Vec::new();
    let mut numbers = Numbers(3);
    while tally.goes_on() {
        let source = Ipv4Addr::new(127, 0, 1, 1 + numbers.below(12) as u8);
        dripping.extend(connect(source, address));
        dripping.retain_mut(|one| one.write_all(b" ").is_ok());
        if dripping.len() > 80 {
            dripping.remove(0);
        }
        if let Ok(mut client) = Client::new(Ipv4Addr::new(127, 0, 9, 1), address) {
            let asked =
                json!({ "size": 50_000_000, "sample_every_ns": 1_000_000, "within_ns": 2_000_000_000_u64 });
            if let Ok(mut data) = client.transfer(&asked).and_then(|ready| client.data(&ready)) {
                for _ in 0..100 {
                    let _ = data.read(&mut [0; 10_000]);
                    pause(10);
                }
            }
        }
        count(&tally.slow);
        pause(20);
    }
}

/// Datagrams without a token, and with one; connections that say nothing.
fn floods(address: SocketAddr, tally: &Tally) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let mut numbers = Numbers(5);
    while tally.goes_on() {
        for _ in 0..50 {
            let host = numbers.below(0xffff) as u16;
            let source = Ipv4Addr::new(127, 1, (host >> 8) as u8, 1 + (host & 0x7f) as u8);
            let _ = connect(source, address).map(reset);
        }
        if let Ok(mut client) = Client::new(Ipv4Addr::new(127, 0, 9, 2), address) {
            let asked = json!({ "burst": { "flow": 0, "sends": false, "count": 100_000, "size": 44, "quiet_ns": 0,
                                           "within_ns": 500_000_000 } });
            let ready = client.ask(&asked);
            if let Ok(to) = ready.and_then(|ready| client.place(&ready)) {
                for _ in 0..50 {
                    for _ in 0..400 {
                        let _ = socket.send_to(&[0; 44], to);
                    }
                    pause(5);
                }
                let _ = client.heard();
            }
        }
        count(&tally.floods);
    }
}

/// Clients that die in the middle of a transfer.
fn kills(address: SocketAddr, tally: &Tally) {
    let mut numbers = Numbers(7);
    while tally.goes_on() {
        if let Ok(mut client) = Client::new(Ipv4Addr::new(127, 0, 9, 3), address) {
            let mut held = Vec::new();
            for flow in 0..numbers.below(64) {
                let sends = numbers.below(2) == 0;
                let asked =
                    json!({ "flow": flow, "sends": sends, "size": 1_000_000, "sample_every_ns": 1_000_000 });
                let Ok(ready) = client.transfer(&asked) else { break };
                held.extend(client.data(&ready));
            }
            for data in &mut held {
                let _ = data.set_read_timeout(Some(Std::from_millis(5)));
                let _ = data.read(&mut [0; 10_000]);
            }
            held.into_iter().for_each(reset);
            reset(client.into_stream());
        }
        count(&tally.kills);
        pause(20);
    }
}

/// Addresses without number that ask for much and move nothing.
fn claims(address: SocketAddr, tally: &Tally) {
    let mut numbers = Numbers(9);
    while tally.goes_on() {
        let host = numbers.below(0xffff) as u16;
        let source = Ipv4Addr::new(127, 4, (host >> 8) as u8, 1 + (host & 0x7f) as u8);
        if let Ok(mut client) = Client::new(source, address) {
            let asked = json!({ "burst": { "flow": 0, "sends": true, "count": 100_000, "size": 1000, "quiet_ns": 0,
                                           "within_ns": 1_000_000_000 } });
            let _ = client.ask(&asked);
        }
        count(&tally.claims);
        pause(20);
    }
}

/// What is no message, or one with numbers that nobody expects.
fn garbage(address: SocketAddr, tally: &Tally) {
    let mut numbers = Numbers(11);
    let odd = [
        json!(-1),
        json!(0),
        json!(u64::MAX),
        json!(1e308),
        json!(null),
        json!("x"),
        json!([]),
        json!(u32::MAX),
    ];
    while tally.goes_on() {
        let source = Ipv4Addr::new(127, 0, 9, 4);
        let line = match numbers.below(4) {
            0 => "[".repeat(100_000) + "\n",
            1 => "x".repeat(200_000),
            2 => "GET / HTTP/1.1\r\n\r\n".to_owned(),
            _ => "{\"greeting\":{\"farpath\":\"\\u001b[2J\"}}\n".to_owned(),
        };
        let _ = connect(source, address).map(|mut stream| {
            let _ = stream.write_all(line.as_bytes());
            let _ = stream.read(&mut [0; 1000]);
        });
        if let Ok(mut client) = Client::new(source, address) {
            for flow in 0..20 {
                let mut asked = json!({ "flow": flow, "sends": true, "size": 1000, "request": 1, "exchanges": 1,
                                        "within_ns": 10_000_000, "count": 10, "quiet_ns": 0, "number": 1 });
                let keys: Vec<String> = asked.as_object().expect("one").keys().cloned().collect();
                let key = &keys[numbers.below(keys.len() as u64) as usize];
                asked[key] = odd[numbers.below(odd.len() as u64) as usize].clone();
                let kind = ["transfer", "echo", "burst", "ping", "done", "stop"][numbers.below(6) as usize];
                if client.say(&json!({ kind: asked })).is_err() {
                    break;
                }
            }
            reset(client.into_stream());
        }
        count(&tally.garbage);
        pause(20);
    }
}

/// Of the responder: resident memory in bytes, threads, open files.
fn status(pid: u32) -> [u64; 3] {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("the kernel says it");
        line.split_whitespace().nth(1).and_then(|value| value.parse::<u64>().ok()).expect("a number")
    };
    let files = fs::read_dir(format!("/proc/{pid}/fd")).expect("ours").count();
    [value("VmRSS:") * 1024, value("Threads:"), files as u64]
}

#[test]
#[ignore = "ten minutes; FARPATH_SOAK_SECONDS says how many seconds instead"]
fn a_responder_among_friends_and_enemies_neither_grows_nor_fails() {
    let seconds = env::var("FARPATH_SOAK_SECONDS").ok().map_or(600, |text| text.parse().expect("seconds"));
    let mut server =
        Server::start(&["--bind", "127.0.0.1", "--max-clients", &CLIENTS.to_string(), "--max-bytes", "1 TB"]);
    let pid = server.child.id();
    let address: SocketAddr = server.address.parse().expect("an address");
    // Who says much waits for who reads it.
    let said = BufReader::new(server.child.stderr.take().expect("piped"));
    let said = thread::spawn(move || {
        let lines = said.lines().map(|line| line.expect("text"));
        lines.fold((0, Vec::new()), |(all, mut panics), line| {
            if line.contains("panicked") {
                panics.push(line);
            }
            (all + 1, panics)
        })
    });
    let (tally, begun) = (Tally::default(), now());
    let mut samples: Vec<(u64, [u64; 3])> = Vec::new();
    thread::scope(|scope| {
        // Also where a transfer is wrong: the others wait for this.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&tally.over);
        let friends = [1, 2].map(|seed| {
            scope.spawn({
                let tally = &tally;
                move || legitimate(address, seed, tally)
            })
        });
        for enemy in [slow, floods, kills, claims, garbage] {
            let tally = &tally;
            scope.spawn(move || enemy(address, tally));
        }
        let every = (seconds / 40).max(1);
        while begun.elapsed().as_secs() < seconds && !friends.iter().any(|friend| friend.is_finished()) {
            pause(every * 1000);
            let (at, now) = (begun.elapsed().as_secs(), status(pid));
            let done = [
                &tally.right,
                &tally.again,
                &tally.slow,
                &tally.floods,
                &tally.kills,
                &tally.claims,
                &tally.garbage,
            ]
            .map(|count| count.load(Ordering::Relaxed));
            let [rss, threads, files] = now;
            println!(
                "{at:4} s: {:6.1} MB, {threads:3} threads, {files:4} files; right {}, again {}, slow {}, floods {}, \
                 kills {}, claims {}, garbage {}",
                rss as f64 / 1e6,
                done[0],
                done[1],
                done[2],
                done[3],
                done[4],
                done[5],
                done[6],
            );
            samples.push((at, now));
        }
    });
    // All have gone; what they had has been given back.
    pause(2000);
    let [after, threads, files] = status(pid);
    println!("  after: {:6.1} MB, {threads:3} threads, {files:4} files", after as f64 / 1e6);
    let code = server.end_quietly();
    let (lines, panics) = said.join().expect("no panic");
    assert_eq!((code, panics), (Some(0), Vec::<String>::new()), "of {lines} lines");
    assert!(threads < 8 && files < 16, "{threads} threads and {files} files are left");
    let right = tally.right.load(Ordering::Relaxed);
    assert!(right >= seconds, "{right} transfers in {seconds} s");
    let most = |of: &[(u64, [u64; 3])]| of.iter().map(|(_, [rss, ..])| *rss).max().unwrap_or(0);
    let (first, last) = samples.split_at(samples.len() / 3);
    assert!(most(last) <= most(first) + GROWTH, "from {} to {} B", most(first), most(last));
    let needs = Needs::under(&Limits { clients: CLIENTS, ..Limits::default() });
    let [_, threads, files] =
        [0, 1, 2].map(|what| samples.iter().map(|(_, all)| all[what]).max().unwrap_or(0));
    assert!(most(last) <= needs.memory.0 && threads <= needs.tasks && files <= needs.files, "{needs:?}");
}
