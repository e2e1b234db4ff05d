use super::*;
use crate::RequestSettings;
use farpath_tia1039::{RateType, RateUnit, RateWord, Rounding};

fn word(mbit: u64) -> RateWord {
    RateUnit::KbitPerS.encode(mbit * 1_000_000, Rounding::Up)
}

fn rate(mbit: u64) -> Rate {
    Rate::from_bit_per_s(mbit * 1_000_000).expect("not zero")
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

const RTT: Duration = Duration::from_millis(100);

/// Asks for 10 Mbit/s, of a composite rate for 4 Mbit/s guaranteed beside them.
fn settings(rate_type: RateType) -> DriverSettings {
    let request = RequestSettings { rate_type, ..RequestSettings::default() };
    DriverSettings { request, guaranteed: Some(rate(4)), ..DriverSettings::new(rate(10)) }
}

fn asking(settings: &DriverSettings) -> Asking {
    let mut asking = Asking::new(settings);
    asking.request(at(0));
    asking
}

/// An answer of so much, Available and guaranteed, marked by `mark` routers.
fn answer(asking: &Asking, available: u64, guaranteed: u64, mark: u8) -> Structure {
    let or_none = |mbit| if mbit == 0 { RateWord::ZERO } else { word(mbit) };
    Structure {
        message: Message::Response,
        available: or_none(available),
        guaranteed: or_none(guaranteed),
        mark,
        ..asking.template
    }
}

/// What comes of answers to an end that asked once for an Available Rate of 10 Mbit/s.
fn after(settings: &DriverSettings, answers: &[(u64, u8)]) -> Asking {
    let mut asking = asking(settings);
    for &(available, mark) in answers {
        let told = answer(&asking, available, 0, mark);
        asking.on_response(&told);
    }
    asking
}

#[test]
fn an_answer_that_a_router_has_marked_or_lowered_is_a_grant() {
    let available = settings(RateType::Available);
    let outcome = |answers: &[(u64, u8)]| after(&available, answers).outcome();
    assert_eq!(outcome(&[]), Outcome::Waiting);
    assert_eq!(outcome(&[(10, 1)]), Outcome::Granted);
    assert_eq!(outcome(&[(10, 0)]), Outcome::Plain(Plain::NoRouter));
    // Where M cannot be seen, a word that says less was written by somebody.
    assert_eq!(outcome(&[(9, 0)]), Outcome::Granted);
    assert_eq!(outcome(&[(0, 1)]), Outcome::Plain(Plain::Refused));
    assert_eq!(outcome(&[(10, 1), (0, 1)]), Outcome::Plain(Plain::Withdrawn));
    // Two routers have to have marked it, however low it is.
    let mut two = available.clone();
    two.request.min_routers = 2;
    assert_eq!(after(&two, &[(9, 1)]).outcome(), Outcome::Plain(Plain::NoRouter));
    assert_eq!(after(&two, &[(9, 2)]).outcome(), Outcome::Granted);
    assert_eq!(after(&available, &[(8, 1)]).granted(), Rate::from_bit_per_s(8_000_000));
}

#[test]
fn a_rate_sinks_by_any_answer_and_rises_by_one_that_was_asked_for() {
    let available = settings(RateType::Available);
    let mut asking = after(&available, &[(6, 1)]);
    let hear = |asking: &mut Asking, mbit, mark| {
        let told = answer(asking, mbit, 0, mark);
        asking.on_response(&told);
        let Counters { cuts, raises, unasked_raises, .. } = *asking.counters();
        (asking.granted().map(Rate::bit_per_s), cuts, raises, unasked_raises)
    };
    let mbit = |mbit: u64| Some(RateUnit::KbitPerS.decode(word(mbit)));
    assert_eq!(hear(&mut asking, 5, 1), (mbit(5), 1, 0, 0));
    assert_eq!(hear(&mut asking, 5, 1), (mbit(5), 1, 0, 0), "the same again is nothing");
    assert_eq!(hear(&mut asking, 7, 1), (mbit(5), 1, 0, 1), "nobody asked");
    asking.resend(at(1));
    assert_eq!(hear(&mut asking, 7, 1), (mbit(7), 1, 1, 1));
    assert_eq!(hear(&mut asking, 8, 1), (mbit(7), 1, 1, 2), "one question has one answer");
    asking.resend(at(2));
    assert_eq!(hear(&mut asking, 8, 1), (mbit(8), 1, 2, 2));
    assert_eq!(hear(&mut asking, 3, 0), (mbit(3), 2, 2, 2), "a cut needs no mark");
    asking.resend(at(3));
    // All that was asked for, which no router has marked: none has seen it.
    assert_eq!(hear(&mut asking, 10, 0), (mbit(3), 2, 2, 3));
    assert_eq!((asking.counters().asked, asking.counters().responses), (4, 9));
}

#[test]
fn answers_above_the_request_or_of_another_type_change_nothing() {
    let composite = settings(RateType::Composite);
    let mut asking = asking(&composite);
    for told in [
        answer(&asking, 11, 0, 1),
        answer(&asking, 9, 5, 1),
        Structure { rate_type: RateType::Available, ..answer(&asking, 9, 0, 1) },
    ] {
        assert_eq!(asking.on_response(&told), None);
        assert_eq!(asking.outcome(), Outcome::Waiting);
    }
    assert_eq!(asking.counters().above_request, 3);
    let told = answer(&asking, 10, 4, 1);
    assert_eq!(asking.on_response(&told), None, "all of it needs no confirmation");
    assert_eq!(asking.granted().map(Rate::bit_per_s), Rate::from_bit_per_s(14_000_000).map(Rate::bit_per_s));
}

#[test]
fn less_than_the_guarantee_is_confirmed_once() {
    let mut asking = asking(&settings(RateType::Composite));
    let told = answer(&asking, 9, 2, 1);
    let confirmation = asking.on_response(&told).expect("routers before the one that refused let go of it");
    assert_eq!(
        (confirmation.message, confirmation.available, confirmation.guaranteed),
        (Message::Confirmation, word(9), word(2))
    );
    assert_eq!(asking.on_response(&told), None, "nothing was asked since");
}

#[test]
fn an_answer_to_nothing_is_counted_and_not_believed() {
    let available = settings(RateType::Available);
    let mut never = Asking::new(&available);
    let told = answer(&never, 9, 0, 1);
    never.on_response(&told);
    let mut given_up = after(&available, &[(9, 1)]);
    assert_eq!(given_up.give_up(Trip::Loss), Structure { message: Message::Close, ..given_up.template });
    given_up.on_response(&told);
    given_up.on_response(&told);
    assert_eq!((never.outcome(), never.counters().unexpected), (Outcome::Waiting, 1));
    assert_eq!((given_up.outcome(), given_up.counters().unexpected), (Outcome::GivenUp(Trip::Loss), 2));
    assert_eq!(given_up.granted(), None);
}

#[test]
fn a_guarantee_is_closed_and_an_available_rate_ends_by_itself() {
    let close = |rate_type, available, guaranteed| {
        let mut asking = asking(&settings(rate_type));
        let told = answer(&asking, available, guaranteed, 1);
        asking.on_response(&told);
        asking.close().map(|structure| (structure.message, structure.guaranteed))
    };
    assert_eq!(close(RateType::Composite, 9, 4), Some((Message::Close, word(4))));
    assert_eq!(close(RateType::Guaranteed, 0, 10), Some((Message::Close, word(10))));
    assert_eq!(close(RateType::Available, 9, 0), None);
    assert_eq!(close(RateType::Composite, 0, 0), None, "nothing was granted");
}

#[test]
fn with_less_than_was_asked_for_more_is_asked_for_after_a_while() {
    let available = settings(RateType::Available);
    // Eight round trips, or half a second; from the first packet on.
    let mut less = after(&available, &[(9, 1)]);
    assert_eq!(less.retry_at(RTT), None);
    less.count_packet();
    assert_eq!((less.retry_at(RTT), less.retry_at(RTT / 2)), (Some(at(800)), Some(at(500))));
    assert_eq!(less.renegotiate(at(799), RTT, false), None);
    let asked = less.renegotiate(at(800), RTT, false).expect("it is due");
    assert_eq!((asked.message, asked.available), (Message::Renegotiate, word(10)));
    assert_eq!(less.renegotiate(at(1600), RTT, false), None, "no packet has left since");
    // With all of it, after so many packets or a silence only, and no sooner than a round trip after the last time.
    let mut all = after(&available, &[(10, 1)]);
    (0..127).for_each(|_| all.count_packet());
    assert_eq!((all.retry_at(RTT), all.renegotiate(at(9000), RTT, false)), (None, None));
    assert!(all.clone().renegotiate(at(100), RTT, true).is_some());
    all.count_packet();
    assert_eq!(all.renegotiate(at(99), RTT, false), None);
    assert!(all.renegotiate(at(100), RTT, false).is_some());
    // Without a grant there is nothing to ask about.
    let mut plain = after(&available, &[(10, 0)]);
    (0..200).for_each(|_| plain.count_packet());
    assert_eq!((plain.renegotiate(at(9000), RTT, true), plain.resend(at(9000))), (None, None));
}

#[test]
fn a_request_is_sent_again_once_at_a_time() {
    let mut asking = after(&settings(RateType::Available), &[(9, 1)]);
    assert_eq!(asking.resend(at(0)), None, "it was asked just now");
    assert_eq!(asking.resend(at(1)).map(|structure| structure.message), Some(Message::ResendStart));
    assert_eq!(asking.resend(at(1)), None);
}

#[test]
fn a_peer_that_has_answered_is_not_incapable() {
    let available = settings(RateType::Available);
    let mut waiting = asking(&available);
    waiting.peer_is_incapable();
    assert_eq!(waiting.outcome(), Outcome::Plain(Plain::PeerIncapable));
    let mut granted = after(&available, &[(9, 1)]);
    granted.peer_is_incapable();
    assert_eq!(granted.outcome(), Outcome::Granted);
}
