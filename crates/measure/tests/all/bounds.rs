//! What a client can make the responder do, keep and wait for, and that there is an end to each.

use crate::common;

use common::raw::{self, Client};
use common::{NEVER, experiment, peer, served, v4, with};
use farpath_measure::limits::{ACCOUNTS, DATAGRAMS_OF_CLIENT, EXCHANGES, FLOWS};
use farpath_measure::serve::Limits;
use farpath_measure::{Exchanges, exchange};
use farpath_run::{Outcome, Provenance};
use farpath_units::{Bytes, Duration, Rate};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as Std, Instant};

/// Longer than anything takes that goes well, on a machine that others use too.
const GIVE_UP_AFTER: Std = Std::from_secs(8);

fn why(answer: &Value) -> &str {
    answer["refused"]["why"].as_str().unwrap_or_else(|| panic!("not refused: {answer}"))
}

#[expect(clippy::disallowed_methods, reason = "how long something takes, in real time")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn exchanges_of_nothing_are_refused_and_so_are_too_many() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let mut client = Client::new(address);
        for (sends, size, request) in [(true, 0, 0), (true, 0, 1), (true, 1, 0), (false, 1, 1)] {
            let asked = json!({ "sends": sends, "size": size, "request": request, "exchanges": 2 });
            assert_eq!(why(&client.transfer(asked)), "malformed", "{sends} {size} {request}");
        }
        let asked = json!({ "size": 1, "request": 1, "exchanges": u32::MAX });
        assert_eq!(why(&client.transfer(asked)), "limit");
        let ready = client.transfer(json!({ "size": 1, "request": 1, "exchanges": 2 }));
        assert!(ready["ready"].is_object(), "{ready}");
    });
}

/// As many as are done, of which no call has to wait: the loop went on past its deadline and the responder's end.
#[test]
fn exchanges_end_by_their_deadline_and_with_the_responder() {
    let asked = |seconds: u64| json!({ "request": 1, "size": 190_000, "exchanges": EXCHANGES, "within_ns": seconds * 1_000_000_000 });
    thread::scope(|scope| {
        // Asks without a pause, and reads whatever comes, until the other end is gone.
        let begin = |client: &mut Client, seconds: u64| {
            let ready = client.transfer(asked(seconds));
            let mut requests = client.data(&ready);
            let mut answers = requests.try_clone().expect("a socket");
            let mut request = [0];
            farpath_tcp::pattern::fill(0, &mut request);
            scope.spawn(move || while requests.write_all(&request.repeat(1000)).is_ok() {});
            scope.spawn(move || {
                let mut buffer = vec![0; 1 << 20];
                while answers.read(&mut buffer).is_ok_and(|read| read > 0) {}
            });
        };
        // A quick machine moves more in that second than the usual limit leaves for the second transfer.
        let limits = Limits { bytes: Bytes(1 << 50), ..Limits::default() };
        let took = ends_within(limits, |address| {
            let mut client = Client::new(address);
            let begun = now();
            begin(&mut client, 1);
            let ended = client.heard().expect("it says how that came out");
            assert_eq!(ended["ended"]["end"]["outcome"], "deadline", "{ended}");
            assert!(begun.elapsed() < GIVE_UP_AFTER, "{:?}", begun.elapsed());
            begin(&mut client, 3600);
            #[expect(clippy::disallowed_methods, reason = "it has begun by then")]
            thread::sleep(Std::from_millis(300));
            vec![client]
        });
        assert!(took < GIVE_UP_AFTER, "{took:?}");
    });
}

#[test]
fn what_was_not_moved_is_given_back() {
    let limits = Limits { bytes: Bytes(1_000_000), ..Limits::default() };
    let server = served(v4(), None, limits);
    with(&server, |address| {
        let mut client = Client::new(address);
        // Each of them is all that there is; none of them moves a byte.
        let asked = [
            json!({ "burst": { "flow": 0, "sends": false, "count": 1000, "size": 1000, "quiet_ns": 0, "within_ns": 1 } }),
            json!({ "burst": { "flow": 0, "sends": true, "count": 1000, "size": 1000, "quiet_ns": 0, "within_ns": 1 } }),
            json!({ "echo": { "flow": 0, "count": 500, "size": 1000, "within_ns": 1 } }),
            json!({ "transfer": { "flow": 0, "sends": true, "size": 600_000, "request": 400_000, "within_ns": 1 } }),
        ];
        for asked in asked {
            // Where it waits and how that came out, whichever comes first.
            let said = [client.ask(&asked), client.heard().expect("it says both")];
            assert!(said.iter().any(|said| said["ready"].is_object()), "{asked}: {said:?}");
            let over = |said: &Value| said["datagrams"].is_object() || said["ended"].is_object();
            assert!(said.iter().any(over), "{asked}: {said:?}");
        }
    });
}

/// Each of them asks for 44 B that it never takes: they kept every other address out for an hour.
#[test]
fn ten_thousand_addresses_that_claim_keep_nobody_out() {
    const AT_ONCE: u32 = 8;
    let server = served(v4(), None, Limits { clients: 1000, ..Limits::default() });
    with(&server, |address| {
        let claim = |source: Ipv4Addr| {
            let mut client = Client::from(source, address).unwrap_or_else(|why| panic!("{source}: {why}"));
            let burst = json!({ "flow": 0, "sends": true, "count": 1, "size": 44, "quiet_ns": 0, "within_ns": 1_u64 << 40 });
            assert!(client.ask(&json!({ "burst": burst }))["ready"].is_object(), "{source}");
        };
        thread::scope(|scope| {
            for first in 0..AT_ONCE {
                let claim = &claim;
                let addresses = (first..ACCOUNTS as u32 + 100).step_by(AT_ONCE as usize);
                scope.spawn(move || {
                    addresses.for_each(|number| claim(Ipv4Addr::from(0x7f10_0000 + number)));
                });
            }
        });
        claim(Ipv4Addr::new(127, 0, 3, 1));
    });
}

#[test]
fn no_more_is_sent_back_than_was_asked_for() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let mut client = Client::new(address);
        let echo = json!({ "echo": { "flow": 0, "count": 100, "size": 44, "within_ns": 2_000_000_000 } });
        let ready = client.ask(&echo);
        let socket = UdpSocket::bind(v4()).expect("a socket");
        socket.connect(client.place(&ready)).expect("an address");
        socket.set_read_timeout(Some(Std::from_millis(500))).expect("a socket");
        let mut datagram = [b"Fpu1".as_slice(), &raw::token(&ready), &[0; 24]].concat();
        socket.send(&datagram).expect("sent");
        assert_eq!(socket.recv(&mut [0; 2000]).expect("it comes back"), 44);
        // 44 B were asked for, and are what is counted.
        datagram.resize(1400, 0);
        socket.send(&datagram).expect("sent");
        assert!(socket.recv(&mut [0; 2000]).is_err(), "1400 B are sent back");
    });
}

/// Sends datagrams to an address until it is told to stop, or somebody has waited for too long.
fn flood(to: SocketAddr, datagram: &[u8], stop: &AtomicBool) {
    let socket = UdpSocket::bind(v4()).expect("a socket");
    let begun = now();
    while !stop.load(Ordering::Relaxed) && begun.elapsed() < 4 * GIVE_UP_AFTER {
        for _ in 0..100 {
            let _ = socket.send_to(datagram, to);
        }
    }
}

#[test]
fn a_flood_of_datagrams_holds_up_neither_a_deadline_nor_the_end() {
    for with_token in [false, true] {
        for kind in ["echo", "burst"] {
            let (over, server) = (AtomicBool::new(false), served(v4(), None, Limits::default()));
            thread::scope(|scope| {
                let ((), _) = with(&server, |address| {
                    let mut client = Client::new(address);
                    let flow = |flow: u32, seconds: u64| {
                        json!({ kind: { "flow": flow, "sends": false, "count": 100_000, "size": 44, "quiet_ns": 0,
                                        "within_ns": seconds * 1_000_000_000 } })
                    };
                    let over = &over;
                    let mut flooded = |asked: &Value| {
                        let ready = client.ask(asked);
                        let (to, token) = (client.place(&ready), raw::token(&ready));
                        let token = if with_token { token } else { vec![7; 16] };
                        // Of a number that is not waited for: it is never enough.
                        let datagram = [b"Fpu1".as_slice(), &token, &[0xff; 24]].concat();
                        for _ in 0..4 {
                            let datagram = datagram.clone();
                            scope.spawn(move || flood(to, &datagram, over));
                        }
                    };
                    flooded(&flow(0, 1));
                    let begun = now();
                    let done = client.heard().expect("it says how that came out");
                    assert_eq!(done["datagrams"]["flow"], 0, "{done}");
                    assert!(begun.elapsed() < GIVE_UP_AFTER, "{kind}: its deadline is a second away");
                    // And a second one goes on when the responder is stopped.
                    let mut flooded = |asked: &Value| {
                        let ready = client.ask(asked);
                        let to = client.place(&ready);
                        scope.spawn(move || flood(to, &[0; 44], over));
                    };
                    flooded(&flow(1, 3600));
                    #[expect(clippy::disallowed_methods, reason = "the flood has begun by then")]
                    thread::sleep(Std::from_millis(300));
                });
                // `with` has waited for the responder's end.
                over.store(true, Ordering::Relaxed);
            });
        }
    }
}

/// The time that it takes to end, when `work` has been done.
fn ends_within(limits: Limits, work: impl FnOnce(SocketAddr) -> Vec<Client>) -> Std {
    let server = served(v4(), None, limits);
    let ((held, begun), _) = with(&server, |address| (work(address), now()));
    let took = begun.elapsed();
    drop(held);
    took
}

#[test]
fn who_does_not_read_holds_up_no_end() {
    let took = ends_within(Limits::default(), |address| {
        let mut client = Client::new(address);
        client.stream().set_write_timeout(Some(Std::from_secs(1))).expect("a socket");
        let ask =
            format!("{}\n", json!({ "kernel": ["net.ipv4.tcp_rmem", "net.ipv4.tcp_sack"] })).repeat(1000);
        // Until the answers have filled every buffer on the way, and nothing more is asked.
        for _ in 0..1000 {
            if client.stream().write_all(ask.as_bytes()).is_err() {
                break;
            }
        }
        let _ = &mut client;
        vec![client]
    });
    assert!(took < GIVE_UP_AFTER, "{took:?}");
}

#[test]
fn slow_callers_of_eight_addresses_keep_nobody_out() {
    // Room for all who come in this test: on a busy machine one that has left is not yet known to be gone when the next one comes.
    let limits = Limits { clients: 10, ..Limits::default() };
    let server = served(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), None, limits);
    with(&server, |address| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
        let callers = |host: u8| raw::from(Ipv4Addr::new(127, 0, 1, host), address).expect("it waits");
        let mut slow: Vec<_> = (1..=8).flat_map(|host| [host; 8]).map(callers).collect();
        for host in 1..=10 {
            // They come back as soon as they are put out.
            for (place, one) in (0..).zip(&mut slow) {
                one.set_nonblocking(true).expect("a socket");
                let there = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
                let mut buffer = [0; 1000];
                let gone = loop {
                    match one.read(&mut buffer) {
                        Ok(0) => break true,
                        Ok(_) => {}
                        Err(error) => break !there(error),
                    }
                };
                if gone {
                    *one = callers(place / 8 + 1);
                }
            }
            Client::from(Ipv4Addr::new(127, 0, 2, host), address).expect("it is let in");
        }
    });
}

#[test]
fn silent_connections_at_the_port_of_the_data_hold_up_nobody() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let mut client = Client::new(address);
        let ready = client.transfer(json!({ "size": 1000 }));
        let silent: Vec<_> = (0..20).map(|_| client.silent(&ready)).collect();
        let begun = now();
        let mut data = client.data(&ready);
        data.read_exact(&mut [0; 1000]).expect("data come");
        assert!(begun.elapsed() < GIVE_UP_AFTER, "{:?}", begun.elapsed());
        drop(silent);
    });
}

/// Only the answers counted: as much as a client liked went up as a request.
#[test]
fn requests_count_for_the_rate_too() {
    let rate = Rate::from_bit_per_s(20_000_000).expect("not zero");
    let server = served(v4(), None, Limits { rate: Some(rate), ..Limits::default() });
    with(&server, |address| {
        // Ours paces them.
        let asked = experiment("transfer = { size = \"1 MB\", opener = \"receiver\" }");
        let exchanges = Exchanges { count: 2, request: Bytes(2_500_000), answer: Bytes(1) };
        let point = &asked.point(0);
        let done = exchange(&mut peer(address), point, exchanges, Provenance::default(), &NEVER, &mut |_| {});
        let (run, _) = done.expect("measured").expect("nobody stops it");
        assert_eq!(run.flows[0].outcome, Outcome::Completed, "{:?}", run.flows[0]);
        // Another one does not.
        let mut client = Client::new(address);
        let ready = client.transfer(json!({ "request": 1_000_000_000 }));
        let mut data = client.data(&ready);
        let mut stream = vec![0; 1 << 20];
        let mut sent = 0;
        while {
            farpath_tcp::pattern::fill(sent, &mut stream);
            sent < 1_000_000_000 && data.write_all(&stream).is_ok()
        } {
            sent += stream.len() as u64;
        }
        let ended = client.heard().expect("it says how that came out");
        let detail = ended["ended"]["end"]["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("(--max-rate)"), "{ended}");
    });
}

#[test]
fn a_client_has_so_many_flows_and_no_more() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let mut client = Client::new(address);
        for flow in 0..FLOWS {
            let ready = client.transfer(json!({ "flow": flow }));
            assert!(ready["ready"].is_object(), "{flow}: {ready}");
        }
        assert_eq!(why(&client.transfer(json!({ "flow": FLOWS }))), "limit");
        // The place of one that is given up is free again.
        client.say(&json!({ "stop": { "flow": 5 } }));
        assert_eq!(client.heard().expect("it says so")["ended"]["flow"], 5);
        assert!(client.transfer(json!({ "flow": FLOWS }))["ready"].is_object());
    });
}

#[test]
fn a_client_keeps_no_more_than_its_share() {
    let server = served(v4(), None, Limits { time: Duration::from_secs(60), ..Limits::default() });
    with(&server, |address| {
        let mut client = Client::new(address);
        // Datagrams, of which each arrival is kept until the burst is over.
        let burst = |flow: u32| {
            json!({ "burst": { "flow": flow, "sends": false, "count": 100_000, "size": 44, "quiet_ns": 0,
                               "within_ns": 60_000_000_000_u64 } })
        };
        let answers: Vec<Value> = (0..64).map(|flow| client.ask(&burst(flow))).collect();
        let refused = answers.iter().filter(|answer| answer["refused"]["why"] == "limit").count();
        assert_eq!(refused as u64, 64 - DATAGRAMS_OF_CLIENT / 100_000, "the others are done");
    });
}
