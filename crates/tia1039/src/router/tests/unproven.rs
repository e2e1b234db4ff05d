//! Who has only asked takes nothing from who is proven.

use super::{Bench, ISN, exact, key, word};
use crate::router::{Class, Decision, Numbers, RouterSettings};
use crate::{BurstTolerance, Message, Priority, QosMark, RateType, RateWord, Rounding, Structure};
use farpath_units::{Bytes, Duration};

/// A start packet that anybody can make up: a guarantee of the highest priority.
fn made_up(mbit: u64) -> Structure {
    Structure {
        rate_type: RateType::Guaranteed,
        guaranteed: word(mbit),
        preemption: Priority::HIGHEST,
        ..Structure::request(RateWord::ZERO)
    }
}

#[test]
fn who_has_only_asked_preempts_nobody_and_lowers_nobody() {
    let mut bench = Bench::new(&exact());
    bench.guarantee(1, 20, 10, RateType::Guaranteed);
    let available = bench.ask(2, 70);
    let level = bench.port.level;
    for start in 10..20 {
        bench.port.ask(bench.now, key(start), Some(ISN), None, &mut made_up(85));
    }
    for now in 1..2000 {
        for flow in [1, 2] {
            assert!(
                matches!(bench.at(now).data(flow), Decision::Pass { signal: None, .. }),
                "flow {flow} is told"
            );
        }
    }
    let report = |flow| bench.port.flow(&key(flow)).expect("it is known");
    assert_eq!((report(1).guaranteed, report(2).available), (20_000_000, available));
    assert_eq!((bench.port.level, bench.port.counters().preempted), (level, 0));
}

/// Asks without showing that the answer came.
fn start(bench: &mut Bench, flow: u8, structure: Structure) -> Structure {
    let mut structure = structure;
    bench.port.ask(bench.now, key(flow), Some(ISN), None, &mut structure);
    structure
}

fn guarantee(bench: &Bench, flow: u8) -> u64 {
    bench.port.flow(&key(flow)).expect("it is known").guaranteed
}

#[test]
fn a_guarantee_that_was_told_is_kept_once_its_answer_was_seen() {
    let mut bench = Bench::new(&exact());
    bench.guarantee(1, 60, 10, RateType::Guaranteed);
    let told = start(&mut bench, 2, made_up(60));
    assert_eq!(
        (told.guaranteed, told.mark),
        (word(60), 1),
        "it is told in the one round trip of a handshake"
    );
    assert_eq!(bench.port.counters().admitted, 1);
    bench.answer(2, &told);
    assert_eq!([1, 2].map(|flow| guarantee(&bench, flow) > 0), [true, false]);
    // The first packet that it sends by that has it, and the other is told with its next one.
    assert!(matches!(bench.data(2), Decision::Pass { class: Class::Guaranteed(_), signal: None }));
    assert_eq!([1, 2].map(|flow| guarantee(&bench, flow) > 0), [false, true]);
    let Decision::Pass { signal: Some(signal), .. } = bench.data(1) else { panic!("it is told") };
    assert_eq!((signal.message, signal.guaranteed), (Message::Renegotiate, RateWord::ZERO));
    assert_eq!((bench.port.counters().admitted, bench.port.counters().preempted), (2, 1));
}

#[test]
fn of_two_that_were_told_the_same_who_shows_itself_first_has_it() {
    let mut bench = Bench::new(&exact());
    let [first, second] = [1, 2].map(|flow| start(&mut bench, flow, made_up(60)));
    assert_eq!((first.guaranteed, second.guaranteed), (word(60), word(60)));
    bench.answer(1, &first);
    bench.answer(2, &second);
    assert!(matches!(bench.data(2), Decision::Pass { class: Class::Guaranteed(_), signal: None }));
    let Decision::Pass { signal: Some(signal), class: Class::BestEffort } = bench.data(1) else {
        panic!("it is told that it has none")
    };
    assert_eq!(signal.guaranteed, RateWord::ZERO);
    assert_eq!([1, 2].map(|flow| guarantee(&bench, flow)), [0, 60_032_000]);
    assert_eq!((bench.port.counters().admitted, bench.port.counters().refused), (1, 1));
}

#[test]
fn what_cannot_be_had_even_by_priority_is_refused_at_once() {
    let mut bench = Bench::new(&exact());
    bench.guarantee(1, 60, 63, RateType::Guaranteed);
    assert_eq!(start(&mut bench, 2, made_up(60)).guaranteed, RateWord::ZERO);
    assert_eq!((bench.port.counters().admitted, bench.port.counters().refused), (1, 1));
}

#[test]
fn an_answer_or_a_confirmation_lowers_what_was_promised() {
    for confirms in [false, true] {
        let mut bench = Bench::new(&exact());
        let told = start(&mut bench, 1, made_up(60));
        let lower = Structure { guaranteed: word(20), ..told };
        if confirms {
            bench.port.confirmed(bench.now, key(1), &lower);
        }
        bench.answer(1, if confirms { &told } else { &lower });
        bench.ack(1);
        assert_eq!(guarantee(&bench, 1), 20_000_000, "{confirms}");
    }
}

#[test]
fn a_promise_comes_out_of_the_same_line_as_the_available_rate_beside_it() {
    let mut bench = Bench::new(&exact());
    let composite = Structure { rate_type: RateType::Composite, available: word(100), ..made_up(20) };
    let told = start(&mut bench, 1, composite);
    assert_eq!((told.guaranteed, told.available.units()), (word(20), 80_000));
    bench.answer(1, &told);
    bench.ack(1);
    assert!(bench.port.committed() <= bench.port.capacity());
    assert!(matches!(bench.at(300).data(1), Decision::Pass { class: Class::Guaranteed(_), signal: None }));
}

/// Of a flow whose answers go another way, or show no numbers: it sends 16 kB within what it was told.
fn sends_much(bench: &mut Bench, flow: u8) {
    for packet in 0..12 {
        bench.now += Duration::from_millis(packet);
        bench.port.pass(bench.now, key(flow), QosMark::Flow, Bytes(1500), Numbers::default());
    }
}

#[test]
fn who_sends_much_and_showed_no_answer_has_a_guarantee_that_nobody_feels() {
    // Beside an Available Rate of so much, and of what the line has; and whether it has a guarantee of 40 then.
    for (available, has) in [(30, true), (100, false)] {
        let mut bench = Bench::new(&exact());
        let before = bench.ask(1, available);
        start(&mut bench, 2, made_up(40));
        sends_much(&mut bench, 2);
        assert_eq!(guarantee(&bench, 2) > 0, has, "{available}");
        assert!(matches!(bench.data(1), Decision::Pass { signal: None, .. }), "{available}");
        assert_eq!(bench.port.flow(&key(1)).expect("known").available, before);
    }
    // Nor does it preempt, now or when it asks again.
    let mut bench = Bench::new(&exact());
    bench.guarantee(1, 60, 10, RateType::Guaranteed);
    start(&mut bench, 2, made_up(60));
    sends_much(&mut bench, 2);
    assert_eq!(start(&mut bench, 2, made_up(60)).guaranteed, RateWord::ZERO);
    assert_eq!([1, 2].map(|flow| guarantee(&bench, flow) > 0), [true, false]);
    // It does once it has shown that an answer came.
    bench.answer(2, &made_up(0));
    bench.ack(2);
    assert_eq!(start(&mut bench, 2, made_up(60)).guaranteed, word(60));
    assert_eq!([1, 2].map(|flow| guarantee(&bench, flow) > 0), [false, true]);
}

/// A program's datagrams: 188 bytes each 20 ms, 75 kbit/s. At a full router it begins with less.
#[test]
fn who_sends_little_without_numbers_counts_when_it_has_sent_much_however_long_it_takes() {
    let mut bench = Bench::new(&RouterSettings::default());
    let lone = bench.ask(1, 100);
    let told = start(&mut bench, 2, Structure::request(RateWord::from_units(76, Rounding::Up)));
    assert!(told.available.units() > 0);
    let send = |bench: &mut Bench| {
        bench.now += Duration::from_millis(20);
        bench.port.pass(bench.now, key(2), QosMark::Flow, Bytes(188), Numbers::default())
    };
    for _ in 0..85 {
        assert!(matches!(send(&mut bench), Decision::Pass { class: Class::Newcomer, signal: None }));
    }
    assert_eq!(bench.port.unproven, 1);
    send(&mut bench);
    assert_eq!(bench.port.unproven, 0, "16 kB");
    assert!(matches!(send(&mut bench), Decision::Pass { class: Class::Available, .. }));
    // The other sinks for it from now on.
    let report = |bench: &Bench, flow| bench.port.flow(&key(flow)).expect("known").available;
    assert_eq!(report(&bench, 1), lone);
    bench.data(1);
    assert!(report(&bench, 1) <= lone);
}

#[test]
fn a_promise_is_no_ordinary_packet_and_no_guarantee() {
    let mut bench = Bench::new(&exact());
    start(&mut bench, 1, Structure { rate_type: RateType::Guaranteed, ..made_up(1) });
    let pass =
        |bench: &mut Bench| bench.port.pass(bench.now, key(1), QosMark::Flow, Bytes(188), Numbers::default());
    assert!(matches!(pass(&mut bench), Decision::Pass { class: Class::Newcomer, signal: None }));
    for _ in 0..86 {
        bench.now += Duration::from_millis(20);
        pass(&mut bench);
    }
    assert!(matches!(pass(&mut bench), Decision::Pass { class: Class::Guaranteed(_), .. }));
}

#[test]
fn a_guarantee_of_another_priority_that_is_refused_leaves_its_rate_to_others() {
    let mut bench = Bench::new(&exact());
    bench.guarantee(1, 40, 63, RateType::Guaranteed);
    bench.guarantee(2, 40, 20, RateType::Guaranteed);
    bench.ask(3, 100);
    let level = bench.port.level;
    // With another priority it is a new guarantee, which does not fit.
    bench.guarantee(2, 60, 21, RateType::Guaranteed);
    assert_eq!(guarantee(&bench, 2), 0);
    assert_ne!(bench.port.level, level);
}

#[test]
fn no_higher_priority_counts_than_is_accepted_here() {
    let accepted = |level| {
        let preemption = Priority::new(level).expect("a level");
        let mut settings = RouterSettings { preemption, ..exact() };
        settings.weights[30..].fill(3);
        Bench::new(&settings)
    };
    for (level, takes) in [(20, false), (21, true), (63, true)] {
        let mut bench = accepted(level);
        bench.guarantee(1, 60, 20, RateType::Guaranteed);
        let told = bench.guarantee(2, 60, 63, RateType::Guaranteed);
        assert_eq!((told.guaranteed.units() > 0, guarantee(&bench, 1) == 0), (takes, takes), "{level}");
        assert_eq!(told.preemption, Priority::HIGHEST, "other routers accept others");
    }
    // Nor does its weight.
    let rates = |level| {
        let mut bench = accepted(level);
        for round in 0..8 {
            bench.at(300 * round);
            for flow in [1, 2] {
                let preemption = if flow == 1 { Priority::HIGHEST } else { Priority::LOWEST };
                bench.ask_as(flow, Structure { preemption, ..Structure::request(word(100)) });
            }
        }
        [1, 2].map(|flow| bench.port.flow(&key(flow)).expect("known").available)
    };
    assert_eq!((rates(30), rates(29)), ([74_880_000, 24_992_000], [49_984_000, 49_984_000]));
}

#[test]
fn nobody_sinks_for_who_sends_much_by_a_promise_or_a_burst() {
    let burst = BurstTolerance::new(15).expect("a code");
    for (guaranteed, available) in [(85, 100), (2, 100), (0, 100)] {
        let mut bench = Bench::new(&RouterSettings::default());
        let before = bench.ask(1, 100);
        let rate_type = if guaranteed > 0 { RateType::Composite } else { RateType::Available };
        let asked = Structure { rate_type, available: word(available), burst, ..made_up(guaranteed) };
        start(&mut bench, 2, asked);
        sends_much(&mut bench, 2);
        for now in 300..310 {
            let decision = bench.at(now).data(1);
            assert!(matches!(decision, Decision::Pass { signal: None, .. }), "{guaranteed}: {decision:?}");
        }
        assert_eq!(bench.port.flow(&key(1)).expect("known").available, before);
    }
}
