//! Datagrams over the loopback device, between two ends of ours and strangers.

use farpath_traffic::Token;
use farpath_traffic::datagram::{
    Answers, DatagramSocket, Echo, LEAST, Until, answer, echo, receive_burst, send_burst,
};
use farpath_units::{Duration, Instant, Rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const TOKEN: Token = Token(*b"sixteen bytes...");

fn until(stop: &AtomicBool) -> Until<'_> {
    #[expect(clippy::disallowed_methods, reason = "real sockets are in real time")]
    let epoch = std::time::Instant::now();
    // What hangs ends the test.
    Until { epoch, deadline: Instant::from_nanos(60_000_000_000), stop }
}

/// The end that begins and the one that waits.
fn pair(address: IpAddr, tokens: [Token; 2]) -> [DatagramSocket; 2] {
    let any = SocketAddr::new(address, 0);
    let waits = DatagramSocket::from(any, address, tokens[1]).expect("a socket");
    [DatagramSocket::to(any, waits.local(), tokens[0]).expect("a socket"), waits]
}

#[test]
fn echoes_come_back_over_both_ip_versions() {
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let [mut begins, mut answers] = pair(address, [TOKEN; 2]);
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let asked = Echo {
            count: 50,
            size: 200,
            interval: Duration::from_millis(1),
            linger: Duration::from_secs(20),
        };
        thread::scope(|scope| {
            let answering =
                scope.spawn(|| answer(&mut answers, 50, 200, None, until(&over)).expect("it can receive"));
            let echoed = echo(&mut begins, asked, until(&stop)).expect("it can send");
            over.store(true, Ordering::Relaxed);
            assert_eq!((echoed.sent, echoed.answered.len(), echoed.arrived), (50, 50, 50));
            assert_eq!(
                (echoed.duplicates, answering.join().expect("no panic")),
                (0, Answers { arrived: 50, sent: 50 })
            );
            assert!(echoed.answered.iter().all(|one| one.sent_at < one.back_at));
        });
    }
}

#[test]
fn nobody_is_answered_without_the_token() {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let [mut begins, mut answers] = pair(address, [Token([7; 16]), TOKEN]);
    let stranger = UdpSocket::bind((address, 0)).expect("a socket");
    for garbage in [&[0; 3][..], &[255; 1400], b"Fpu1", &[b'F'; LEAST]] {
        stranger.send_to(garbage, answers.local()).expect("sent");
    }
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let asked =
        Echo { count: 5, size: 100, interval: Duration::from_millis(1), linger: Duration::from_millis(100) };
    thread::scope(|scope| {
        let answering =
            scope.spawn(|| answer(&mut answers, 50, 100, None, until(&over)).expect("it can receive"));
        let echoed = echo(&mut begins, asked, until(&stop)).expect("it can send");
        over.store(true, Ordering::Relaxed);
        assert_eq!((echoed.sent, echoed.answered.len()), (5, 0));
        assert_eq!(answering.join().expect("no panic"), Answers::default());
    });
    stranger.set_nonblocking(true).expect("a socket");
    assert!(stranger.recv(&mut [0; 2000]).is_err(), "nothing was sent to it");
}

#[test]
fn a_burst_goes_to_whom_has_shown_the_token_and_to_nobody_before() {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let [mut begins, mut waits] = pair(address, [TOKEN; 2]);
    let (stop, sent) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let sends = scope.spawn(|| {
            let done = send_burst(&mut waits, 40, 1400, None, until(&stop)).expect("it can send");
            sent.store(true, Ordering::Relaxed);
            done
        });
        let quiet = Duration::from_secs(20);
        let received = receive_burst(&mut begins, 40, &sent, quiet, until(&stop)).expect("it can receive");
        assert_eq!(sends.join().expect("no panic").sent, 40);
        assert_eq!((received.arrivals.len(), received.dropped_here), (40, 0));
        let numbers: Vec<u32> = received.arrivals.iter().map(|arrival| arrival.number).collect();
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
    });
    // The other way, with some that never come.
    let [mut begins, mut waits] = pair(address, [TOKEN; 2]);
    let sent = AtomicBool::new(false);
    thread::scope(|scope| {
        let receives = scope.spawn(|| {
            let quiet = Duration::from_millis(200);
            receive_burst(&mut waits, 50, &sent, quiet, until(&stop)).expect("it can receive")
        });
        assert_eq!(send_burst(&mut begins, 40, 500, None, until(&stop)).expect("it can send").sent, 40);
        sent.store(true, Ordering::Relaxed);
        assert_eq!(receives.join().expect("no panic").arrivals.len(), 40);
    });
}

#[test]
fn a_burst_is_no_faster_than_it_may_be() {
    let [mut begins, mut waits] = pair(IpAddr::V4(Ipv4Addr::LOCALHOST), [TOKEN; 2]);
    let (stop, sent) = (AtomicBool::new(false), AtomicBool::new(false));
    let rate = Rate::from_bit_per_s(12_000_000);
    thread::scope(|scope| {
        let sends = scope.spawn(|| {
            let done = send_burst(&mut waits, 51, 1472, rate, until(&stop)).expect("it can send");
            sent.store(true, Ordering::Relaxed);
            done
        });
        let quiet = Duration::from_secs(20);
        let received = receive_burst(&mut begins, 51, &sent, quiet, until(&stop)).expect("it can receive");
        let done = sends.join().expect("no panic");
        // 1500 B a millisecond; the first leaves at once.
        assert!(done.within >= Duration::from_millis(50), "{}", done.within);
        assert_eq!(received.arrivals.len(), 51);
        for (number, arrival) in (0..).zip(&received.arrivals) {
            let after = arrival.sent_at.saturating_since(received.arrivals[0].sent_at);
            // Late for one, the next is not later still; the first may have been late itself.
            assert!(after + Duration::from_millis(1) > Duration::from_millis(number), "{number}: {after}");
        }
    });
}

#[test]
fn echoes_that_come_too_fast_are_not_answered() {
    let [mut begins, mut answers] = pair(IpAddr::V4(Ipv4Addr::LOCALHOST), [TOKEN; 2]);
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let asked = Echo {
        count: 1000,
        size: 972,
        interval: Duration::from_micros(10),
        linger: Duration::from_millis(100),
    };
    // 1 ms for each.
    let rate = Rate::from_bit_per_s(8_000_000);
    thread::scope(|scope| {
        let answering =
            scope.spawn(|| answer(&mut answers, 1000, 972, rate, until(&over)).expect("it can receive"));
        #[expect(clippy::disallowed_methods, reason = "real sockets are in real time")]
        let begun = std::time::Instant::now();
        let echoed = echo(&mut begins, asked, until(&stop)).expect("it can send");
        let most = 102 + begun.elapsed().as_millis() as usize;
        over.store(true, Ordering::Relaxed);
        assert!((100..=most).contains(&echoed.answered.len()), "{} of {most}", echoed.answered.len());
        assert_eq!(answering.join().expect("no panic").arrived as usize, echoed.answered.len());
    });
}

#[test]
fn a_datagram_of_another_size_is_not_sent_back() {
    let [mut begins, mut answers] = pair(IpAddr::V4(Ipv4Addr::LOCALHOST), [TOKEN; 2]);
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let asked =
        Echo { count: 5, size: 1400, interval: Duration::from_millis(1), linger: Duration::from_millis(100) };
    thread::scope(|scope| {
        let answering =
            scope.spawn(|| answer(&mut answers, 50, LEAST, None, until(&over)).expect("it can receive"));
        let echoed = echo(&mut begins, asked, until(&stop)).expect("it can send");
        over.store(true, Ordering::Relaxed);
        assert_eq!((echoed.sent, echoed.answered.len()), (5, 0));
        assert_eq!(answering.join().expect("no panic"), Answers::default());
    });
}
