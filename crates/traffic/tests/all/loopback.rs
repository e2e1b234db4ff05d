//! Transfers over the loopback device, between two ends of ours and against ends that misbehave.

use farpath_tcp::pattern;
use farpath_traffic::info::State;
use farpath_traffic::{BulkEnd, End, EndReport, Opening, Prepared, Role, Sample, SocketOptions, Token};
use farpath_units::{Bytes, Duration, Instant, Messages, Pace, Writing};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn any_port(v6: bool) -> SocketAddr {
    if v6 { (Ipv6Addr::LOCALHOST, 0).into() } else { (Ipv4Addr::LOCALHOST, 0).into() }
}

fn end(role: Role, opening: Opening, v6: bool) -> BulkEnd {
    BulkEnd {
        role,
        opening,
        local: any_port(v6),
        peer: any_port(v6),
        size: Bytes(3_000_001),
        request: Bytes::ZERO,
        messages: None,
        reply: Bytes::ZERO,
        writing: Default::default(),
        exchanges: 1,
        token: None,
        start: Instant::ZERO,
        // A transfer that hangs ends the test.
        deadline: Instant::from_nanos(60_000_000_000),
        sample_every: None,
        read_rate: None,
        low_water: None,
        close_within: Duration::from_secs(10),
        socket: SocketOptions::default(),
    }
}

#[expect(clippy::disallowed_methods, reason = "real sockets are in real time")]
fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}

fn run(prepared: Prepared) -> EndReport {
    prepared.run(epoch(), &AtomicBool::new(false), &mut |_| {})
}

/// Runs both ends; gives the listener's report and the connecting end's, and their ports.
fn run_both(listener: BulkEnd, mut connector: BulkEnd) -> (EndReport, EndReport, [u16; 2]) {
    let listener = Prepared::new(listener).expect("it can listen");
    connector.peer = listener.local();
    let connector = Prepared::new(connector).expect("it can be bound");
    let ports = [listener.local().port(), connector.local().port()];
    let (epoch, stop) = (epoch(), AtomicBool::new(false));
    thread::scope(|scope| {
        let listens = scope.spawn(|| listener.run(epoch, &stop, &mut |_| {}));
        let connected = connector.run(epoch, &stop, &mut |_| {});
        (listens.join().expect("no panic"), connected, ports)
    })
}

#[test]
fn a_receiver_with_a_low_water_reads_the_rest_however_little_it_is() {
    for low_water in [1, 32 << 10, 100 << 20] {
        // The other end sends all of it and says nothing more.
        let size = 300_001;
        let asked = BulkEnd {
            size: Bytes(size),
            low_water: Some(Bytes(low_water)),
            deadline: Instant::from_nanos(20_000_000_000),
            ..end(Role::Receiver, Opening::Listen, false)
        };
        let ours = Prepared::new(asked).expect("it can listen");
        let mut peer = TcpStream::connect(ours.local()).expect("it listens");
        let mut file = vec![0; size as usize];
        pattern::fill(0, &mut file);
        thread::scope(|scope| {
            let runs = scope.spawn(|| run(ours));
            peer.write_all(&file).expect("it is read");
            // Until the other end, which has it all, is through.
            let mut byte = [0];
            assert_eq!(peer.read(&mut byte).expect("closed in order"), 0);
            drop(peer);
            let report = runs.join().expect("no panic");
            assert!(report.end.is_completed(), "{low_water}: {report:?}");
            assert_eq!(report.bytes, Bytes(size));
        });
    }
}

/// States of this namespace's sockets between two ports, TIME-WAIT left out: that is what a good close leaves behind.
fn left_behind(ports: [u16; 2]) -> Vec<String> {
    let mut found = Vec::new();
    for file in ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"] {
        for line in fs::read_to_string(file).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let port = |field: &str| {
                field.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok()).unwrap_or(0)
            };
            let both = [port(fields[1]), port(fields[2])];
            if (both == ports || both == [ports[1], ports[0]]) && fields[3] != "06" {
                found.push(line.to_owned());
            }
        }
    }
    found
}

#[test]
fn an_upload_and_a_download_complete_over_both_ip_versions() {
    for v6 in [false, true] {
        for (opener, other) in [(Role::Sender, Role::Receiver), (Role::Receiver, Role::Sender)] {
            let request = if opener == Role::Receiver { Bytes(200) } else { Bytes::ZERO };
            let start = Instant::from_nanos(30_000_000);
            let connector = BulkEnd { request, start, ..end(opener, Opening::Connect, v6) };
            let size = connector.size;
            let listener = BulkEnd { request, ..end(other, Opening::Listen, v6) };
            let (listened, connected, ports) = run_both(listener, connector);
            for report in [&listened, &connected] {
                assert!(report.end.is_completed(), "{opener:?} {v6}: {report:?}");
                assert_eq!(report.bytes, size);
                let times = [report.connected_at, report.first_byte_at, report.finished_at];
                assert!(times.is_sorted() && times[0] >= Some(start), "{times:?}");
            }
            let (sender, receiver) =
                if opener == Role::Sender { (connected, listened) } else { (listened, connected) };
            let (sent, got) = (sender.info.expect("known"), receiver.info.expect("known"));
            // The kernel counts SYN and FIN among the acknowledged bytes.
            let acked = sent.bytes_acked.expect("Linux 4.1").0;
            assert!((size.0..=size.0 + 2).contains(&acked), "{acked}");
            assert!(got.bytes_received.expect("Linux 4.1").0 >= size.0);
            let begun = sender.info_at_connect.expect("known");
            assert_eq!(
                (begun.total_rto, begun.data_segs_out),
                (sent.total_rto.map(|_| 0), Some(0)),
                "{begun:?}"
            );
            assert!(sent.srtt.is_some() && sent.data_segs_out >= Some(45), "{sent:?}");
            assert_eq!(left_behind(ports), Vec::<String>::new());
        }
    }
}

#[test]
fn an_empty_file_completes() {
    let empty = |role, opening| BulkEnd { size: Bytes::ZERO, ..end(role, opening, false) };
    let (listened, connected, _) =
        run_both(empty(Role::Receiver, Opening::Listen), empty(Role::Sender, Opening::Connect));
    assert!(listened.end.is_completed() && connected.end.is_completed());
    assert_eq!((listened.first_byte_at, connected.first_byte_at), (None, None));
}

/// Runs `ours`, which listens, against `theirs`.
fn against(ours: BulkEnd, theirs: impl FnOnce(TcpStream) + Send + 'static) -> EndReport {
    let ours = Prepared::new(ours).expect("it can listen");
    let address = ours.local();
    let peer = thread::spawn(move || theirs(TcpStream::connect(address).expect("it listens")));
    let report = run(ours);
    peer.join().expect("no panic");
    report
}

fn stream(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern::fill(0, &mut bytes);
    bytes
}

#[test]
fn a_wrong_byte_is_found_where_it_is() {
    let report = against(end(Role::Receiver, Opening::Listen, false), |mut peer| {
        let mut bytes = stream(3_000_001);
        bytes[1_234_567] ^= 0x10;
        // It is reset while it writes.
        let _ = peer.write_all(&bytes);
    });
    assert!(matches!(report.end, End::Mismatch { offset: 1_234_567 }), "{report:?}");
    assert!(report.finished_at.is_none() && report.info.is_some());
}

#[test]
fn a_wrong_byte_of_a_request_is_found() {
    let asked = BulkEnd { request: Bytes(100), ..end(Role::Sender, Opening::Listen, false) };
    let report = against(asked, |mut peer| {
        let mut bytes = stream(100);
        bytes[99] = !bytes[99];
        peer.write_all(&bytes).expect("it is read");
    });
    assert!(matches!(report.end, End::Mismatch { offset: 99 }), "{report:?}");
}

#[test]
fn a_file_that_is_too_short_or_too_long_is_an_error() {
    let report = against(end(Role::Receiver, Opening::Listen, false), |mut peer| {
        peer.write_all(&stream(1000)).expect("it is read");
    });
    assert!(matches!(report.end, End::WrongLength { expected: 3_000_001, got: 1000 }), "{report:?}");
    // Read together with the rest, or after it: both are found.
    for pause in [0, 50] {
        let small = BulkEnd { size: Bytes(1000), ..end(Role::Receiver, Opening::Listen, false) };
        let report = against(small, move |mut peer| {
            let bytes = stream(1001);
            peer.write_all(&bytes[..1000]).expect("it is read");
            pause_ms(pause);
            let _ = peer.write_all(&bytes[1000..]);
            pause_ms(50);
        });
        assert!(matches!(report.end, End::WrongLength { expected: 1000, got: 1001 }), "{report:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the other end takes its time")]
fn pause_ms(ms: u64) {
    thread::sleep(std::time::Duration::from_millis(ms));
}

#[test]
fn nobody_there_refuses() {
    // A port that was free a moment ago.
    let free = TcpListener::bind(any_port(false)).and_then(|listener| listener.local_addr()).expect("a port");
    let report =
        run(Prepared::new(BulkEnd { peer: free, ..end(Role::Sender, Opening::Connect, false) })
            .expect("ready"));
    assert!(matches!(report.end, End::Refused), "{report:?}");
    assert_eq!((report.connected_at, report.info.map(|info| info.state)), (None, Some(State::Closed)));
}

#[test]
fn a_reset_is_told_to_sender_and_receiver() {
    for role in [Role::Sender, Role::Receiver] {
        let report = against(end(role, Opening::Listen, false), move |mut peer| {
            match role {
                Role::Sender => peer.read_exact(&mut [0; 1000]).expect("it sends"),
                Role::Receiver => peer.write_all(&stream(1000)).expect("it reads"),
            }
            Socket::from(peer).set_linger(Some(std::time::Duration::ZERO)).expect("allowed");
        });
        assert!(matches!(report.end, End::Reset), "{role:?}: {report:?}");
        assert!(report.connected_at.is_some() && report.finished_at.is_none());
    }
}

#[test]
fn syns_into_the_void_time_out() {
    // A listener whose queue is full drops SYNs.
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    listener.bind(&any_port(false).into()).expect("free");
    listener.listen(0).expect("it can listen");
    let peer = listener.local_addr().expect("bound").as_socket().expect("an IP address");
    let _queued = TcpStream::connect(peer).expect("one fits");
    let socket = SocketOptions { syn_count: Some(1), ..SocketOptions::default() };
    let report =
        run(Prepared::new(BulkEnd { peer, socket, ..end(Role::Sender, Opening::Connect, false) })
            .expect("ready"));
    assert!(matches!(report.end, End::ConnectTimedOut), "{report:?}");
    // How many it takes for a count of one differs with `tcp_syn_linear_timeouts`.
    assert!(report.info.is_some_and(|info| info.total_retrans >= 1), "{report:?}");
}

#[test]
fn a_connection_that_is_not_served_times_out() {
    let socket = SocketOptions { user_timeout: Some(Duration::from_millis(300)), ..SocketOptions::default() };
    let asked = BulkEnd { size: Bytes(1 << 30), socket, ..end(Role::Sender, Opening::Listen, false) };
    let ours = Prepared::new(asked).expect("it can listen");
    // It never reads: its window closes, and probes go unanswered in RFC 5482's sense.
    let _peer = TcpStream::connect(ours.local()).expect("it listens");
    let report = run(ours);
    assert!(matches!(report.end, End::TimedOut), "{report:?}");
}

#[test]
fn a_deadline_ends_each_stage() {
    let soon =
        |role, opening| BulkEnd { deadline: Instant::from_nanos(80_000_000), ..end(role, opening, false) };
    let report = run(Prepared::new(soon(Role::Receiver, Opening::Listen)).expect("it can listen"));
    assert!(matches!(report.end, End::Deadline), "{report:?}");
    assert_eq!((report.connected_at, report.info), (None, None));
    let late = BulkEnd { start: Instant::from_nanos(u64::MAX), ..soon(Role::Sender, Opening::Connect) };
    assert!(matches!(run(Prepared::new(late).expect("ready")).end, End::Deadline));
    for rate in [Some(0), Some(1000)] {
        let slow = BulkEnd { read_rate: rate, ..soon(Role::Receiver, Opening::Listen) };
        let (listened, connected, ports) = run_both(slow, soon(Role::Sender, Opening::Connect));
        assert!(matches!((&listened.end, &connected.end), (End::Deadline, End::Deadline)));
        assert!(connected.connected_at.is_some() && listened.ended_at >= Instant::from_nanos(80_000_000));
        assert_eq!(left_behind(ports), Vec::<String>::new());
    }
}

#[test]
fn a_stop_ends_both_and_leaves_nothing_behind() {
    let listener =
        Prepared::new(BulkEnd { size: Bytes(1 << 40), ..end(Role::Receiver, Opening::Listen, false) })
            .expect("it can listen");
    let connector = BulkEnd {
        peer: listener.local(),
        size: Bytes(1 << 40),
        sample_every: Some(Duration::from_millis(1)),
        ..end(Role::Sender, Opening::Connect, false)
    };
    let connector = Prepared::new(connector).expect("ready");
    let ports = [listener.local().port(), connector.local().port()];
    let (epoch, stop) = (epoch(), AtomicBool::new(false));
    let mut samples = 0;
    thread::scope(|scope| {
        let listens = scope.spawn(|| listener.run(epoch, &stop, &mut |_| {}));
        let connected = connector.run(epoch, &stop, &mut |_| {
            samples += 1;
            stop.store(samples == 5, Ordering::Relaxed);
        });
        assert!(matches!(connected.end, End::Stopped), "{connected:?}");
        let listened = listens.join().expect("no panic");
        assert!(matches!(listened.end, End::Stopped), "{listened:?}");
    });
    assert_eq!(left_behind(ports), Vec::<String>::new());
}

#[test]
fn a_slow_reader_is_no_faster_than_it_says_and_is_sampled_meanwhile() {
    let every = Duration::from_millis(10);
    let slow = BulkEnd {
        size: Bytes(400_000),
        read_rate: Some(2_000_000),
        sample_every: Some(every),
        ..end(Role::Receiver, Opening::Listen, false)
    };
    let listener = Prepared::new(slow.clone()).expect("it can listen");
    let sender =
        BulkEnd { peer: listener.local(), size: slow.size, ..end(Role::Sender, Opening::Connect, false) };
    let sender = Prepared::new(sender).expect("ready");
    let (epoch, stop) = (epoch(), AtomicBool::new(false));
    let mut samples: Vec<Sample> = Vec::new();
    let report = thread::scope(|scope| {
        scope.spawn(|| sender.run(epoch, &stop, &mut |_| {}));
        listener.run(epoch, &stop, &mut |sample| samples.push(*sample))
    });
    assert!(report.end.is_completed(), "{report:?}");
    let took = report.finished_at.expect("finished") - report.connected_at.expect("connected");
    assert!(took >= Duration::from_millis(200), "{took}");
    // A busy machine may skip some; none comes before its time.
    assert!(
        (3..=1 + took.as_nanos() / every.as_nanos()).contains(&(samples.len() as u64)),
        "{}",
        samples.len()
    );
    assert!(samples.iter().all(|sample| sample.info.state != State::Listen));
    assert!(samples.is_sorted_by_key(|sample| (sample.at, sample.bytes, sample.info.bytes_received)));
    // What has come and waits to be read is not read.
    assert!(samples.iter().all(|sample| Some(sample.bytes) <= sample.info.bytes_received), "{samples:?}");
    assert!(
        samples.first().is_some_and(|sample| Some(sample.at) >= report.connected_at && sample.bytes.0 == 0)
    );
}

#[test]
fn a_connection_without_the_token_is_not_taken() {
    for opener in [Role::Sender, Role::Receiver] {
        let other = if opener == Role::Sender { Role::Receiver } else { Role::Sender };
        let token = Some(Token(*b"sixteen bytes..."));
        let asked = BulkEnd { token, ..end(other, Opening::Listen, false) };
        let listener = Prepared::new(asked).expect("it can listen");
        let peer = listener.local();
        let connector = |token| {
            let asked = BulkEnd { token, peer, ..end(opener, Opening::Connect, false) };
            Prepared::new(asked).expect("ready")
        };
        thread::scope(|scope| {
            let listens = scope.spawn(|| run(listener));
            // One that shows another token, and one that goes away before it has shown any.
            let stranger = run(connector(Some(Token([7; 16]))));
            assert!(!stranger.end.is_completed(), "{stranger:?}");
            drop(TcpStream::connect(peer).expect("it listens"));
            let known = run(connector(token));
            assert!(known.end.is_completed(), "{known:?}");
            let listened = listens.join().expect("no panic");
            assert!(listened.end.is_completed(), "{listened:?}");
            assert_eq!(
                [known.bytes, listened.bytes],
                [Bytes(3_000_001); 2],
                "the token is no part of the file"
            );
        });
    }
}

#[test]
fn exchanges_follow_each_other_over_one_connection() {
    let both = |role, opening| BulkEnd {
        size: Bytes(10_001),
        request: Bytes(301),
        exchanges: 40,
        ..end(role, opening, false)
    };
    let (answers, asks, _) =
        run_both(both(Role::Sender, Opening::Listen), both(Role::Receiver, Opening::Connect));
    for report in [&answers, &asks] {
        assert!(report.end.is_completed(), "{report:?}");
        assert_eq!((report.bytes, report.request_bytes), (Bytes(400_040), Bytes(12_040)));
    }
    assert_eq!((answers.exchanged.len(), asks.exchanged.len()), (0, 40));
    for pair in asks.exchanged.windows(2) {
        assert!(pair[0].asked_at < pair[0].answered_at && pair[0].answered_at <= pair[1].asked_at);
    }
}

/// They went round as fast as the processor does, and looked at neither deadline nor stop.
#[test]
fn exchanges_of_nothing_are_none() {
    for (size, request) in [(0, 0), (0, 1), (1, 0)] {
        let (size, request) = (Bytes(size), Bytes(request));
        let asked = BulkEnd { size, request, exchanges: 2, ..end(Role::Sender, Opening::Listen, false) };
        let refused = Prepared::new(asked).expect_err("nothing to wait for");
        assert!(refused.to_string().contains("of 1 B at least"), "{refused}");
    }
}

/// The window of the programs' own, pieces, pauses: every byte arrives, and no pause is left out.
#[test]
fn a_file_in_pieces_within_a_window_arrives_whole() {
    let size = Bytes(300_001);
    for (window, write_size, think_ms) in [
        (Some(1000), None, 0),
        (None, Some(10_000), 2),
        (Some(65_535), Some(7777), 0),
        (Some(200_000), Some(150_000), 1),
    ] {
        let writing = Writing {
            window: window.map(Bytes),
            write_size: write_size.map(Bytes),
            think_time: Duration::from_millis(think_ms),
            ..Writing::default()
        };
        let both = |role, opening| BulkEnd {
            size,
            writing,
            request: Bytes(100),
            // More than the window: it would never come.
            low_water: Some(Bytes(64 << 10)),
            ..end(role, opening, false)
        };
        let (sender, receiver, _) =
            run_both(both(Role::Sender, Opening::Listen), both(Role::Receiver, Opening::Connect));
        for report in [&sender, &receiver] {
            assert!(report.end.is_completed() && report.bytes == size, "{writing:?}: {report:?}");
        }
        let pauses = write_size.map_or(0, |piece| size.0.div_ceil(piece) - 1);
        let took = sender.ended_at - sender.connected_at.expect("it connected");
        assert!(took >= writing.think_time * pauses, "{writing:?}: {took}");
    }
}

/// The stamps of a stream at both ends: written when due, read soon after, in order.
/// More of each than both buffers of a way take: whoever waited only for room of its own would wait for ever.
#[test]
fn long_messages_and_long_answers_hold_nobody_up() {
    let messages = Messages { size: Bytes(1_000_000), pace: Pace::Every(Duration::ZERO), count: 8 };
    let small = SocketOptions {
        send_buffer: Some(Bytes(20_000)),
        receive_buffer: Some(Bytes(20_000)),
        ..SocketOptions::default()
    };
    let of = |role, opening| BulkEnd {
        size: messages.total(),
        messages: Some(messages),
        reply: Bytes(700_000),
        socket: small.clone(),
        ..end(role, opening, false)
    };
    let (receiver, sender, _) =
        run_both(of(Role::Receiver, Opening::Listen), of(Role::Sender, Opening::Connect));
    assert!(receiver.end.is_completed() && sender.end.is_completed(), "{receiver:?} {sender:?}");
    let (sent, arrived) = (sender.messages.expect("a stream"), receiver.messages.expect("a stream"));
    assert_eq!([sent.at.len(), arrived.at.len(), sent.answered.len()], [8; 3]);
    assert!(
        sent.answered.is_sorted()
            && sent.answered.iter().zip(&arrived.at).all(|(answered, at)| answered >= at)
    );
}

#[test]
fn messages_are_written_when_they_are_due_and_stamped_at_both_ends() {
    let messages = Messages { size: Bytes(1000), pace: Pace::Every(Duration::from_millis(2)), count: 100 };
    let of = |role, opening| BulkEnd {
        size: messages.total(),
        messages: Some(messages),
        low_water: Some(Bytes(32 << 10)),
        ..end(role, opening, false)
    };
    let (receiver, sender, _) =
        run_both(of(Role::Receiver, Opening::Listen), of(Role::Sender, Opening::Connect));
    assert!(receiver.end.is_completed() && sender.end.is_completed(), "{} {}", receiver.end, sender.end);
    let (written, arrived) = (sender.messages.expect("a stream"), receiver.messages.expect("a stream"));
    let began = written.began.expect("it began");
    assert_eq!((written.at.len(), arrived.at.len(), arrived.began), (100, 100, None));
    for (number, (written, arrived)) in (0..).zip(written.at.iter().zip(&arrived.at)) {
        let due = began + messages.due_after(number);
        // A stamp is taken when the call has returned, which the other end may do first.
        assert!(*written >= due && *arrived >= due, "{number}: {due} {written} {arrived}");
    }
    assert!(written.at.is_sorted() && arrived.at.is_sorted());
    // The last is due after 198 ms, and nobody waited for 32 kB of messages, which would be four reads: each is read before the next
    // but those that a busy machine lets gather.
    assert!(sender.ended_at >= began + Duration::from_millis(198));
    let alone = arrived.at.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!(alone > 10, "{alone} of 99 were read by themselves");
}
