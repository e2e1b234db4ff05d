//! Streams of datagrams that ask flow routers for a rate (claim R001-15; system C2 and C3 of the papers).

use crate::common::{bottleneck, delay, loss, rate, time};
use crate::explicit_rate::router;
use farpath_elements::{ElementSpec, QueueLimit};
use farpath_path::Direction;
use farpath_sim::{
    Budget, DatagramResult, DatagramRun, DatagramSetup, DriverSettings, Plain, RateOutcome,
    simulate_datagrams,
};
use farpath_tia1039::{Priority, RateType};
use farpath_units::{Bytes, Duration, Instant, Messages, Pace};

/// A thousand bytes each millisecond for ten seconds: 8.224 Mbit/s with their headers.
fn stream(wanted: Option<&str>) -> DatagramSetup {
    let asks = wanted.map(|wanted| DriverSettings::new(rate(wanted)));
    DatagramSetup {
        start: Instant::ZERO,
        direction: Direction::Forward,
        messages: Messages { size: Bytes(1000), pace: Pace::Every(Duration::from_millis(1)), count: 10_000 },
        reply: None,
        asks: [asks.clone(), asks],
    }
}

fn run(path: &[ElementSpec], streams: &[DatagramSetup]) -> DatagramRun {
    let budget = Budget::for_segments(10_000_000);
    simulate_datagrams(path, streams, 1, Duration::from_secs(300), budget).expect("the path is well formed")
}

fn outcome(result: &DatagramResult) -> RateOutcome {
    result.driver.as_ref().expect("it asks").outcome()
}

/// Bits of IP packets that a stream sent within a time.
fn sent(result: &DatagramResult, from: &str, to: &str) -> u64 {
    let within = time(from)..time(to);
    result.sent.iter().filter(|at| within.contains(at)).count() as u64 * 1028 * 8
}

#[test]
fn two_streams_that_are_too_much_share_the_line_and_lose_nothing() {
    let path = [router("edge", "10 Mbit/s", &[]), delay("20 ms")];
    let both = run(&path, &[stream(Some("20 Mbit/s")), stream(Some("20 Mbit/s"))]).streams;
    for result in &both {
        assert!(result.over);
        assert_eq!((outcome(result), result.drops.forward.total()), (RateOutcome::Granted, 0));
        // 96 % of the line for both.
        let granted = sent(result, "2 s", "10 s") as f64 / 8.0 / 4.8e6;
        assert!((granted - 1.0).abs() < 0.01, "{granted}");
    }
    // As ordinary ones they lose more than a third in a queue of 100 packets.
    let narrow = [bottleneck("10 Mbit/s", 0, QueueLimit::Bytes(Bytes(100_000))), delay("20 ms")];
    let ordinary = run(&narrow, &[stream(None), stream(None)]).streams;
    let lost: u64 = ordinary.iter().map(|result| result.drops.forward.total()).sum();
    assert!(lost > 7_000, "{lost}");
}

#[test]
fn the_first_datagram_leaves_a_round_trip_later_and_the_others_when_they_are_due() {
    let path = [router("edge", "100 Mbit/s", &[]), delay("20 ms")];
    let result = run(&path, &[stream(Some("10 Mbit/s"))]).streams.remove(0);
    let first = result.sent[0].saturating_since(Instant::ZERO);
    assert!(first >= Duration::from_millis(40) && first < Duration::from_millis(41), "{first}");
    // At 10 Mbit/s what has waited for 40 ms is gone within a quarter of a second.
    for (number, sent) in result.sent.iter().enumerate().skip(250) {
        assert_eq!(*sent, Instant::ZERO + Duration::from_millis(number as u64));
    }
}

#[test]
fn where_nobody_answers_or_nobody_reserves_it_is_as_if_it_had_not_asked() {
    let deaf = DatagramSetup { asks: [stream(Some("10 Mbit/s")).asks[0].clone(), None], ..stream(None) };
    let path = [router("edge", "100 Mbit/s", &[]), delay("20 ms")];
    let result = run(&path, &[deaf]).streams.remove(0);
    assert_eq!(outcome(&result), RateOutcome::Plain(Plain::PeerIncapable));
    assert_eq!(result.sent[0], time("3 s"));
    assert!(result.over && result.arrived.iter().all(Option::is_some));

    let result = run(&[delay("20 ms")], &[stream(Some("10 Mbit/s"))]).streams.remove(0);
    assert_eq!(outcome(&result), RateOutcome::Plain(Plain::NoRouter));
    assert_eq!((result.sent[0], result.over), (time("40 ms"), true));
}

#[test]
fn a_request_that_is_lost_is_repeated() {
    let mut path = vec![router("edge", "100 Mbit/s", &[]), delay("20 ms")];
    path.insert(0, loss(0.5, 0.5));
    let asked = |seed| {
        let budget = Budget::for_segments(1_000_000);
        let mut ended =
            simulate_datagrams(&path, &[stream(Some("10 Mbit/s"))], seed, Duration::from_secs(300), budget)
                .expect("the path is well formed");
        let result = ended.streams.remove(0);
        (outcome(&result), result.sent[0])
    };
    let ends: Vec<_> = (1..=40).map(asked).collect();
    for expected in [(RateOutcome::Granted, time("40 ms")), (RateOutcome::Granted, time("1040 ms"))] {
        let near = |at: Instant| at >= expected.1 && at <= expected.1 + Duration::from_millis(1);
        assert!(ends.iter().any(|&(outcome, at)| outcome == expected.0 && near(at)), "{ends:?}");
    }
    assert!(ends.contains(&(RateOutcome::Plain(Plain::PeerIncapable), time("3 s"))), "{ends:?}");
}

#[test]
fn a_line_that_shrinks_is_followed_without_a_loss() {
    let path = [router("edge", "10 Mbit/s", &[("5 s", "4 Mbit/s")]), delay("20 ms")];
    let result = run(&path, &[stream(Some("9 Mbit/s"))]).streams.remove(0);
    assert_eq!((outcome(&result), result.drops.forward.total()), (RateOutcome::Granted, 0));
    assert_eq!(sent(&result, "3 s", "4 s"), 1_000 * 1028 * 8);
    let after = sent(&result, "6 s", "10 s") as f64 / 4.0;
    assert!((after / 3.84e6 - 1.0).abs() < 0.01, "{after}");
}

#[test]
fn answers_are_granted_their_own_way_back() {
    let echo = DatagramSetup { reply: Some(Bytes(1000)), ..stream(Some("9 Mbit/s")) };
    let path = [router("edge", "20 Mbit/s", &[]), delay("20 ms")];
    let ended = run(&path, &[echo]);
    let result = &ended.streams[0];
    assert!(result.over && result.answered.iter().all(Option::is_some));
    // The way there was asked for before the first message, the way back before the first answer.
    let back = result.answered[0].expect("it came").saturating_since(Instant::ZERO);
    assert!(back >= Duration::from_millis(120) && back < Duration::from_millis(123), "{back}");
    let last = |number: usize| result.answered[number].expect("it came") - result.sent[number];
    assert!(last(9_999) < Duration::from_millis(42), "{}", last(9_999));
}

/// One of a program that sends 75 kbit/s beside one that would take all: guaranteed, it is first in the queue.
#[test]
fn a_guarantee_is_kept_for_datagrams_where_there_is_room_for_it() {
    let mut call = stream(Some("80 kbit/s"));
    call.messages = Messages { size: Bytes(160), pace: Pace::Every(Duration::from_millis(20)), count: 1_000 };
    for asks in call.asks.iter_mut().flatten() {
        (asks.request.rate_type, asks.request.delay) = (RateType::Guaranteed, Priority::HIGHEST);
    }
    let other = DatagramSetup { start: time("1 s"), ..stream(Some("3 Mbit/s")) };
    let path = [router("edge", "4 Mbit/s", &[]), delay("20 ms")];
    let ended = run(&path, &[call, other]);
    assert_eq!(ended.streams.iter().map(outcome).collect::<Vec<_>>(), [RateOutcome::Granted; 2]);
    let longest = ended.streams[0].queueing.as_ref().and_then(|waits| waits.percentile(99));
    assert!(longest.is_some_and(|wait| wait <= Duration::from_millis(5)), "{longest:?}");
    assert_eq!(ended.streams[0].drops.forward.total(), 0);
}
