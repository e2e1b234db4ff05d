//! Two ends of a flow of datagrams, told the time and handed what the other says.

use super::wire::{at, mbit, wants};
use crate::{DatagramDriver, DriverSettings, Outcome, Plain};
use farpath_tia1039::{Message, QosMark, RateType, RateUnit, Rounding, Source, Structure, Structures};
use farpath_units::{Bytes, Instant, Rate};

fn sender() -> DatagramDriver {
    DatagramDriver::new(&wants(100))
}

/// What a router that has so much makes of it.
fn lowered(asked: Structure, megabit_per_s: u64) -> Structure {
    let room = RateUnit::KbitPerS.encode(megabit_per_s * 1_000_000, Rounding::Down);
    let available = if room.units() < asked.available.units() { room } else { asked.available };
    Structure { available, ..asked }.marked()
}

/// The answer of a peer, over a router that has so much.
fn answered(asked: Structure, megabit_per_s: u64) -> Structure {
    let mut peer = DatagramDriver::new(&wants(1));
    peer.on_structures(at(0), &Structures::one(lowered(asked, megabit_per_s)));
    peer.poll().expect("it answers")
}

fn hears(driver: &mut DatagramDriver, now: Instant, structure: Structure) {
    driver.on_structures(now, &Structures::one(structure));
}

/// One that was granted so much 40 ms after it had asked.
fn granted(megabit_per_s: u64) -> DatagramDriver {
    let mut driver = sender();
    assert!(!driver.may_send(at(0)));
    let asked = driver.poll().expect("a request");
    hears(&mut driver, at(40), answered(asked, megabit_per_s));
    driver
}

#[test]
fn nothing_leaves_before_the_rate_was_asked_for_and_answered() {
    let mut driver = sender();
    assert_eq!((driver.poll(), driver.next_due(), driver.outcome()), (None, None, Outcome::Waiting));
    assert!(!driver.may_send(at(0)));
    let asked = driver.poll().expect("a request");
    assert_eq!((asked.message, asked.rate_type), (Message::Request, RateType::Available));
    assert!(!driver.may_send(at(39)) && driver.poll().is_none(), "it is asked for once");
    hears(&mut driver, at(40), answered(asked, 30));
    assert!(driver.may_send(at(40)));
    assert_eq!((driver.mark(), driver.outcome()), (QosMark::Flow, Outcome::Granted));
    assert_eq!(driver.granted().map(Rate::bit_per_s), Some(29_984_000));
}

#[test]
fn where_nobody_answers_datagrams_leave_as_ever_after_two_requests() {
    let mut driver = sender();
    for (now, due) in [(0, 1000), (1000, 3000)] {
        assert!(!driver.may_send(at(now)));
        assert_eq!(driver.poll().map(|asked| asked.message), Some(Message::Request));
        assert_eq!(driver.next_due(), Some(at(due)));
        assert!(!driver.may_send(at(due - 1)) && driver.poll().is_none());
    }
    assert!(driver.may_send(at(3000)));
    assert_eq!(driver.outcome(), Outcome::Plain(Plain::PeerIncapable));
    assert_eq!((driver.mark(), driver.next_due()), (QosMark::None, None));
    driver.on_sent(at(3000), Bytes(1500));
    assert!(driver.may_send(at(3000)), "and at no rate");
    // An answer that comes now is one to nothing.
    hears(&mut driver, at(3001), answered(DriverSettings::new(mbit(100)).request_structure(), 30));
    assert_eq!((driver.granted(), driver.counters().unexpected), (None, 1));
}

#[test]
fn a_grant_that_no_router_has_marked_is_none() {
    let mut driver = sender();
    assert!(!driver.may_send(at(0)));
    let asked = driver.poll().expect("a request");
    hears(&mut driver, at(40), asked.response(Source::NONE_V4));
    assert_eq!(driver.outcome(), Outcome::Plain(Plain::NoRouter));
    assert!(driver.may_send(at(40)));
}

#[test]
fn datagrams_are_paced_and_gather_no_more_than_half_of_what_a_router_tolerates() {
    let mut driver = granted(30);
    let (mut now, mut sent) = (at(40), 0_u64);
    while now < at(1040) {
        if driver.may_send(now) {
            driver.on_sent(now, Bytes(1500));
            sent += 1500;
        } else {
            now = driver.next_due().expect("it may later");
        }
        // 7.8 ms at the rate, and the datagram that was begun.
        let most = 29_984_000.0 / 8.0 * ((now - at(40)).as_secs_f64() + 0.0079) + 1500.0;
        assert!(sent as f64 <= most, "{sent} B at {now}");
        while driver.poll().is_some() {}
    }
    assert!((sent as f64 / 3_748_000.0 - 1.0).abs() < 0.01, "{sent} B in a second");
}

#[test]
fn the_rate_is_asked_for_again_after_128_datagrams_and_after_an_idle_time() {
    // With all that was asked for there is no other reason.
    let mut driver = granted(200);
    let asked = |driver: &mut DatagramDriver, now: Instant| {
        driver.on_sent(now, Bytes(100));
        driver.poll().map(|asked| asked.message)
    };
    for datagram in 1..128 {
        assert_eq!(asked(&mut driver, at(40 + datagram)), None, "{datagram}");
    }
    assert_eq!(asked(&mut driver, at(168)), Some(Message::Renegotiate));
    // After a second of silence, and not within it.
    assert_eq!(asked(&mut driver, at(1100)), None);
    assert_eq!(asked(&mut driver, at(2200)), Some(Message::Renegotiate));
}

#[test]
fn what_a_router_cuts_is_followed_and_what_it_takes_back_ends_the_grant() {
    let mut driver = granted(30);
    let asked = DriverSettings::new(mbit(100)).request_structure();
    hears(&mut driver, at(100), answered(Structure { message: Message::Renegotiate, ..asked }, 10));
    assert_eq!(driver.granted().map(Rate::bit_per_s), Some(10_000_000));
    // Nobody has asked for more.
    hears(&mut driver, at(110), answered(Structure { message: Message::Renegotiate, ..asked }, 50));
    assert_eq!(
        (driver.granted().map(Rate::bit_per_s), driver.counters().unasked_raises),
        (Some(10_000_000), 1)
    );
    hears(&mut driver, at(120), answered(Structure { message: Message::Renegotiate, ..asked }, 0));
    assert_eq!((driver.granted(), driver.outcome()), (None, Outcome::Plain(Plain::Withdrawn)));
}

#[test]
fn a_router_that_missed_the_start_is_told_again() {
    let mut driver = granted(30);
    // It tells the receiver, who tells the sender.
    let missed = Structure { message: Message::MissedStart, ..Structure::default() };
    let mut receiver = DatagramDriver::new(&wants(1));
    hears(&mut receiver, at(50), missed);
    let told = receiver.poll().expect("it says so");
    assert!(!told.source.is_none());
    hears(&mut driver, at(60), told);
    assert_eq!(driver.poll().map(|asked| asked.message), Some(Message::ResendStart));
}

#[test]
fn one_that_only_answers_asks_for_nothing() {
    let mut receiver = DatagramDriver::new(&wants(1));
    for now in 0..5 {
        hears(&mut receiver, at(now * 1000), DriverSettings::new(mbit(100)).request_structure());
        assert_eq!(receiver.poll().map(|told| told.message), Some(Message::Response));
        assert_eq!(receiver.poll(), None);
    }
    assert_eq!((receiver.counters().asked, receiver.outcome()), (0, Outcome::Waiting));
    assert_eq!(receiver.next_due(), None);
}
