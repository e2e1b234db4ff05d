//! Clients that misbehave, and hosts that are not what they seem. After each of them, others are served.

use crate::common;
use crate::path;

use common::raw::{OURS, greeting, raw, said, say, transfer};
use common::{NEVER, experiment, peer, run, served, v4, with};
use farpath_experiment::Experiment;
use farpath_measure::serve::{Limits, Server};
use farpath_measure::{Family, Key, MeasureError, Peer};
use farpath_run::Outcome;
use farpath_units::{Bytes, Duration, Rate};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as Std;

fn connect(address: SocketAddr, key: Option<&Key>) -> Result<Peer, MeasureError> {
    Peer::connect(&address.to_string(), Family::Any, key, &NEVER)
}

/// One that is let in as soon as those before it are gone.
fn soon(address: SocketAddr) -> Peer {
    for _ in 0..600 {
        match connect(address, None) {
            Ok(peer) => return peer,
            Err(
                MeasureError::Denied { .. } | MeasureError::NotFarpath { .. } | MeasureError::Lost { .. },
            ) => {
                thread::park_timeout(Std::from_millis(50));
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("nobody is let in any more");
}

fn is_served(address: SocketAddr) {
    let asked = experiment("transfer = { size = \"1 MB\", opener = \"sender\" }");
    let run = run(&mut soon(address), &asked).expect("measured");
    assert_eq!(run.flows[0].outcome, Outcome::Completed);
}

fn key(text: &str) -> Key {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    fs::write(&file, text).expect("written");
    Key::read(&file).expect("a key")
}

#[test]
fn ten_thousand_connections_that_say_nothing() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        for number in 0..10_000 {
            let stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("{number}: {error}"));
            // Without a wait for the other's close: a reset leaves no port behind.
            Socket::from(stream).set_linger(Some(Std::ZERO)).expect("a socket");
        }
        is_served(address);
    });
}

#[test]
fn garbage_is_refused_in_words() {
    let server = served(v4(), None, Limits::default());
    let ((), told) = with(&server, |address| {
        let deep = "[".repeat(50_000) + "\n";
        let long = "x".repeat(200_000);
        for garbage in [
            "GET / HTTP/1.1\r\n\r\n",
            "{}\n",
            "\n",
            "{\"ping\":{\"number\":1}}\n",
            "\u{0}\u{1b}[2J\n",
            &deep,
            &long,
        ] {
            let mut client = raw(address);
            say(&mut client, garbage);
            let answer = said(&mut client);
            let start = &garbage[..garbage.len().min(20)];
            assert!(answer.starts_with("{\"refused\":{\"why\":\"malformed\""), "{start:?}: {answer}");
            assert_eq!(client.read(&mut [0]).unwrap_or(0), 0, "and closed");
        }
        // And from one who was let in.
        let mut client = raw(address);
        say(&mut client, &greeting(OURS));
        assert!(said(&mut client).starts_with("{\"welcome\""));
        say(&mut client, "{\"transfer\":{\"flow\":-1}}\n");
        assert!(said(&mut client).contains("malformed"));
        drop(client);
        is_served(address);
    });
    assert!(told.iter().all(|line| line.chars().all(|c| !c.is_control())), "{told:?}");
}

#[test]
fn a_caller_that_drips_is_cut_off_and_keeps_nobody_else_out() {
    let server = served(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), None, Limits::default());
    with(&server, |address| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
        // As many as one address gets; each says another byte now and then.
        let mut slow: Vec<_> = (0..8).map(|_| raw(address)).collect();
        let ninth = TcpStream::connect(address).expect("it waits");
        assert_eq!((&ninth).read(&mut [0]).unwrap_or(0), 0, "one too many");
        // Somebody else is let in at once.
        let other = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        other.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0)).into()).expect("an address");
        other.connect(&address.into()).expect("it waits");
        let mut other = BufReader::new(TcpStream::from(other));
        assert!(said(&mut other).starts_with("{\"greeting\""));
        say(&mut other, &greeting(OURS));
        assert!(said(&mut other).starts_with("{\"welcome\""));
        // And those who drip are gone after their ten seconds, whatever they say.
        thread::scope(|scope| {
            for client in &mut slow {
                scope.spawn(|| {
                    client.get_ref().set_read_timeout(Some(Std::from_millis(500))).expect("a socket");
                    for _ in 0..120 {
                        if client.get_mut().write_all(b" ").is_err() {
                            return;
                        }
                        match client.get_ref().read(&mut [0]) {
                            Ok(0) => return,
                            Ok(_) => panic!("nothing is said to one that says nothing"),
                            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                            Err(_) => return,
                        }
                    }
                    panic!("it drips for a minute and is still there");
                });
            }
        });
        is_served(address);
    });
}

#[test]
fn a_client_that_dies_in_the_middle_gives_its_place_back() {
    let server = served(v4(), None, Limits { clients: 1, ..Limits::default() });
    with(&server, |address| {
        for sends in [true, false] {
            let mut client = raw(address);
            say(&mut client, &greeting(OURS));
            if !said(&mut client).starts_with("{\"welcome\"") {
                // The one before is not quite gone.
                drop((client, soon(address)));
                client = loop {
                    let mut client = raw(address);
                    say(&mut client, &greeting(OURS));
                    if said(&mut client).starts_with("{\"welcome\"") {
                        break client;
                    }
                };
            }
            assert!(matches!(connect(address, None), Err(MeasureError::Denied { .. })), "one at a time");
            let mut data = transfer(&mut client, address, sends);
            if sends {
                data.read_exact(&mut [0; 100_000]).expect("data come");
            } else {
                // Not what it is said to be, which the peer's end notices; or no longer there when it looks.
                let _ = data.write_all(&[0; 100_000]);
            }
            let die = |stream: TcpStream| Socket::from(stream).set_linger(Some(Std::ZERO)).expect("a socket");
            die(data);
            die(client.into_inner());
            is_served(address);
        }
    });
}

/// No FIN and no reset: the path is gone, with data under way, and what the client has it keeps.
#[test]
fn a_client_that_is_out_of_reach_gives_its_place_back() {
    let text = "path = [{ element = \"link\", rate = \"20 Mbit/s\" }, { element = \"delay\", delay = \"5 ms\" }]\n\
                title = \"t\"\nsender.stack = \"linux-6\"\ntransfer = { size = \"1 MB\", opener = \"sender\" }";
    let path = Experiment::parse(text, "t", &[]).expect("good");
    let silence = Duration::from_secs(2);
    for sends in [true, false] {
        let limits = Limits { clients: 1, silence, ..Limits::default() };
        let went = path::between(&path, false, 1, limits, |hosts| {
            let address = hosts.address;
            let mut client = raw(address);
            say(&mut client, &greeting(OURS));
            assert!(said(&mut client).starts_with("{\"welcome\""));
            let mut data = transfer(&mut client, address, sends);
            if sends {
                data.read_exact(&mut [0; 100_000]).expect("data come");
            } else {
                let _ = data.write_all(&[0; 1000]);
            }
            // From the peer itself, which everybody else has lost too.
            let there = || hosts.peer.run(|| connect(address, None).map(drop)).expect("a namespace");
            assert!(matches!(there(), Err(MeasureError::Denied { .. })), "one at a time");
            hosts.dark.store(true, Ordering::Relaxed);
            let mut looks = 0;
            while there().is_err() {
                looks += 1;
                assert!(looks < 100, "it is still there after 20 s");
                // Not parked: who has just joined another thread is woken at once.
                #[expect(clippy::disallowed_methods, reason = "a look now and then, in real time")]
                thread::sleep(Std::from_millis(200));
            }
            looks
        });
        let Some(looks) = went else { return };
        assert!(looks > 0, "it is not given up at once");
    }
}

#[test]
fn data_take_the_ports_that_they_may() {
    // Some that nobody has now.
    let free = TcpListener::bind(v4()).and_then(|listener| listener.local_addr()).expect("an address").port();
    let limits = Limits { data_ports: Some((free, free)), ..Limits::default() };
    let server = served(v4(), None, limits);
    with(&server, |address| {
        let asked = experiment("transfer = { size = \"100 kB\", opener = \"sender\" }");
        for _ in 0..2 {
            let run = run(&mut peer(address), &asked).expect("measured");
            assert_eq!(run.flows[0].outcome, Outcome::Completed, "{:?}", run.flows[0]);
        }
        let two = experiment("transfer = { size = \"100 kB\", opener = \"sender\" }\nflow = [{ count = 2 }]");
        let error = run(&mut peer(address), &two).expect_err("one port is too few");
        assert!(error.to_string().contains("(--data-ports)"), "{error}");
        let mut client = raw(address);
        say(&mut client, &greeting(OURS));
        assert!(said(&mut client).starts_with("{\"welcome\""));
        say(&mut client, "{\"echo\":{\"flow\":0,\"count\":5,\"size\":100,\"within_ns\":1000000000}}\n");
        let ready = said(&mut client);
        assert!(ready.contains(&format!("\"port\":{free},")), "{ready}");
    });
}

#[test]
fn what_cannot_begin_costs_nothing() {
    let taken = UdpSocket::bind(v4()).expect("a socket");
    let port = taken.local_addr().expect("an address").port();
    let limits = Limits { bytes: Bytes(1000), data_ports: Some((port, port)), ..Limits::default() };
    let server = served(v4(), None, limits);
    with(&server, |address| {
        let mut client = raw(address);
        say(&mut client, &greeting(OURS));
        assert!(said(&mut client).starts_with("{\"welcome\""));
        for _ in 0..2 {
            say(&mut client, "{\"echo\":{\"flow\":0,\"count\":5,\"size\":100,\"within_ns\":1000000000}}\n");
            let refused = said(&mut client);
            assert!(refused.contains("(--data-ports)"), "{refused}");
        }
    });
}

#[test]
fn a_stream_that_is_none_is_refused_and_one_that_is_too_long() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let mut client = raw(address);
        say(&mut client, &greeting(OURS));
        assert!(said(&mut client).starts_with("{\"welcome\""));
        let mut asked = |flow: u32, total: u64, count: u64| {
            let messages = format!("{{\"size\":10,\"count\":{count},\"pace\":{{\"every-ns\":0}}}}");
            let within = 1_000_000_000;
            say(
                &mut client,
                &format!(
                    "{{\"transfer\":{{\"flow\":{flow},\"sends\":true,\"size\":{total},\"within_ns\":{within},\
                     \"messages\":{messages}}}}}\n"
                ),
            );
            said(&mut client)
        };
        assert!(asked(0, 999, 100).starts_with("{\"refused\":{\"why\":\"malformed\""));
        assert!(asked(0, u64::MAX, u64::MAX).starts_with("{\"refused\":{\"why\":\"malformed\""));
        assert!(asked(0, 60_000_000, 6_000_000).starts_with("{\"ready\""));
        let more = asked(1, 60_000_000, 6_000_000);
        assert!(more.starts_with("{\"refused\":{\"why\":\"limit\""), "{more}");
    });
}

#[test]
fn only_who_has_the_key_is_let_in_and_only_by_who_has_it() {
    let (ours, other) = (key("a key that both hosts have"), key("a key that one of them has"));
    let server = served(v4(), Some(&ours), Limits::default());
    let ((), told) = with(&server, |address| {
        assert!(connect(address, Some(&ours)).is_ok());
        assert!(matches!(connect(address, Some(&other)), Err(MeasureError::KeyWrong { .. })));
        assert!(matches!(connect(address, None), Err(MeasureError::KeyMissing { .. })));
        // One that pretends that no key was wanted.
        let mut client = raw(address);
        say(&mut client, &greeting(OURS));
        assert!(said(&mut client).starts_with("{\"refused\":{\"why\":\"key\""));
        // A proof of the right length.
        let mut client = raw(address);
        let proof = "0".repeat(64);
        let with_proof = greeting(OURS).replace("\"kernel\"", &format!("\"proof\":\"{proof}\",\"kernel\""));
        say(&mut client, &with_proof);
        assert!(said(&mut client).starts_with("{\"refused\":{\"why\":\"key\""));
    });
    assert!(told.iter().any(|line| line.ends_with("not let in: its key is another one")), "{told:?}");
    // A host without a key is not who it should be.
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        assert!(matches!(connect(address, Some(&ours)), Err(MeasureError::KeyWrong { .. })));
    });
}

/// Says something to whoever connects, once.
fn says(text: &str, work: impl FnOnce(SocketAddr)) {
    let listener = TcpListener::bind(v4()).expect("an address");
    let address = listener.local_addr().expect("an address");
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let _ = stream.write_all(text.as_bytes());
            let _ = stream.read(&mut [0; 1000]);
        });
        work(address);
    });
}

#[test]
fn another_version_is_told_by_both() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let mut client = raw(address);
        say(&mut client, &greeting(OURS + 1));
        let answer = said(&mut client);
        assert!(answer.starts_with("{\"refused\":{\"why\":\"version\""), "{answer}");
        let theirs = format!("version {} of the protocol (farpath 9.9)", OURS + 1);
        assert!(answer.contains(&theirs), "{answer}");
    });
    says(&greeting(OURS + 1), |address| {
        let error = connect(address, None).expect_err("another version");
        assert!(matches!(error, MeasureError::Version { protocol, .. } if protocol == OURS + 1), "{error}");
        assert!(error.to_string().contains("both hosts need the same"), "{error}");
    });
}

#[test]
fn what_is_not_a_far_host_is_told_so() {
    for text in ["SSH-2.0-OpenSSH_9.9\r\n", "{\"pong\":{\"number\":0,\"received_ns\":0,\"sent_ns\":0}}\n"] {
        says(text, |address| {
            let error = connect(address, None).expect_err("not farpath");
            assert!(matches!(error, MeasureError::NotFarpath { .. }), "{error}");
        });
    }
    let nobody = TcpListener::bind(v4()).and_then(|listener| listener.local_addr()).expect("an address");
    let error = connect(nobody, None).expect_err("nobody is there");
    assert!(matches!(error, MeasureError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("farpath serve --bind 127.0.0.1"), "{error}");
    let unknown = Peer::connect("no.such.host.invalid", Family::Any, None, &NEVER).expect_err("unknown");
    assert!(matches!(unknown, MeasureError::Unknown { .. }), "{unknown}");
    let v6 = Peer::connect("127.0.0.1", Family::V6, None, &NEVER).expect_err("no such address");
    assert!(matches!(v6, MeasureError::NoSuchFamily { family: "IPv6", .. }), "{v6}");
    assert!(matches!(
        connect(v4(), None),
        Err(MeasureError::Refused { .. } | MeasureError::Unreachable { .. })
    ));
    let stop = AtomicBool::new(true);
    says("", |address| {
        let stopped = Peer::connect(&address.to_string(), Family::Any, None, &stop);
        assert!(matches!(stopped, Err(MeasureError::Stopped | MeasureError::NotFarpath { .. })));
    });
}

#[test]
fn no_more_than_is_allowed() {
    let limits = Limits { bytes: Bytes(3_000_000), ..Limits::default() };
    let server = served(v4(), None, limits);
    with(&server, |address| {
        let asked = |size| experiment(&format!("transfer = {{ size = \"{size}\", opener = \"sender\" }}"));
        assert_eq!(peer(address).max_bytes(), Bytes(3_000_000));
        assert!(run(&mut peer(address), &asked("2 MB")).is_ok());
        // Also on another connection.
        let error = run(&mut peer(address), &asked("2 MB")).expect_err("too much");
        assert!(error.to_string().contains("2 MB are asked for"), "{error}");
        assert!(error.to_string().contains("1 MB more within the hour"), "{error}");
        assert!(run(&mut peer(address), &asked("1 MB")).is_ok());
    });
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let server = served(v4(), None, limits);
    with(&server, |address| {
        let slow =
            "receiver.receive.read_rate = \"80 kbit/s\"\ntransfer = { size = \"2 MB\", opener = \"sender\" }";
        let error = run(&mut peer(address), &experiment(slow)).map(|run| run.flows[0].outcome);
        match error {
            Err(error) => assert!(error.to_string().contains("(--max-time)"), "{error}"),
            Ok(outcome) => assert_ne!(outcome, Outcome::Completed),
        }
    });
}

#[test]
fn a_rate_is_kept_by_who_sends() {
    let rate = Rate::from_bit_per_s(20_000_000).expect("not zero");
    let server = served(v4(), None, Limits { rate: Some(rate), ..Limits::default() });
    with(&server, |address| {
        for opener in ["sender", "receiver"] {
            let asked = experiment(&format!("transfer = {{ size = \"5 MB\", opener = \"{opener}\" }}"));
            let run = run(&mut peer(address), &asked).expect("measured");
            let flow = &run.flows[0];
            assert_eq!(flow.outcome, Outcome::Completed, "{flow:?}");
            // With what pacing lets out at once.
            let goodput = flow.goodput_bit_per_s.expect("completed");
            assert!(goodput < 1.25 * 20e6, "{opener}: {goodput}");
            assert!(run.provenance.caveats.iter().any(|caveat| caveat.contains("20 Mbit/s")));
        }
    });
}

#[test]
fn a_responder_that_is_stopped_says_so() {
    let server: Server = served(v4(), None, Limits::default());
    let (client, _) = with(&server, |address| {
        let mut client = raw(address);
        say(&mut client, &greeting(OURS));
        assert!(said(&mut client).starts_with("{\"welcome\""));
        client
    });
    let mut client = client;
    assert!(said(&mut client).contains("is being stopped"));
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
}
