//! What flows are granted, told and held to.

mod hostile;
mod unproven;

use super::{Class, Decision, FlowKey, Numbers, Port, RouterSettings};
use crate::{Charging, Message, Priority, QosMark, RateType, RateUnit, RateWord, Rounding, Structure};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};

const LINE: u64 = 100_000_000;

fn rate(bit_per_s: u64) -> Rate {
    Rate::from_bit_per_s(bit_per_s).expect("not zero")
}

fn share(fraction: f64) -> Probability {
    Probability::new(fraction).expect("a share")
}

fn word(mbit: u64) -> RateWord {
    RateUnit::KbitPerS.encode(mbit * 1_000_000, Rounding::Up)
}

fn key(flow: u8) -> FlowKey {
    FlowKey::from(u128::from(flow))
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Behind the packets that bring answers.
const SEQ: u32 = 4_294_967_000;

/// Behind the SYN of a flow.
const ISN: u32 = 7;

/// A packet of a flow that acknowledges so much.
fn acknowledging(acknowledged: u32) -> Numbers {
    Numbers { next_seq: Some(ISN), acknowledged: Some(acknowledged) }
}

/// All of the line can be granted, and nothing is kept for newcomers.
fn exact() -> RouterSettings {
    RouterSettings { utilization: share(1.0), newcomers: share(0.0), ..RouterSettings::default() }
}

struct Bench {
    port: Port,
    now: Instant,
}

impl Bench {
    fn new(settings: &RouterSettings) -> Bench {
        Bench { port: Port::new(settings, rate(LINE), 7), now: ms(0) }
    }

    /// Asks; the answer comes back at once, and is acknowledged: so that it counts.
    fn ask_as(&mut self, flow: u8, structure: Structure) -> Structure {
        let mut structure = structure;
        self.port.ask(self.now, key(flow), Some(ISN), None, &mut structure);
        self.answer(flow, &structure);
        self.ack(flow);
        structure
    }

    fn answer(&mut self, flow: u8, structure: &Structure) {
        let answer = Structure { message: Message::Response, ..*structure };
        self.port.answered(self.now, key(flow), &answer, Some(SEQ));
    }

    fn ack(&mut self, flow: u8) -> Decision {
        self.port.pass_without_data(self.now, key(flow), acknowledging(SEQ))
    }

    /// Asks for an Available Rate. Gives the grant in bit/s.
    fn ask(&mut self, flow: u8, mbit: u64) -> u64 {
        let granted = self.ask_as(flow, Structure::request(word(mbit)));
        RateUnit::KbitPerS.decode(granted.available)
    }

    fn guarantee(&mut self, flow: u8, mbit: u64, preemption: u8, rate_type: RateType) -> Structure {
        let preemption = Priority::new(preemption).expect("a level");
        self.ask_as(
            flow,
            Structure { rate_type, guaranteed: word(mbit), preemption, ..Structure::request(word(mbit)) },
        )
    }

    fn data(&mut self, flow: u8) -> Decision {
        self.port.pass(self.now, key(flow), QosMark::Flow, Bytes(1500), acknowledging(SEQ))
    }

    fn at(&mut self, now: u64) -> &mut Bench {
        self.now = ms(now);
        self
    }
}

#[test]
fn a_lone_flow_gets_what_it_asks_for_and_no_more_than_there_is() {
    let mut bench = Bench::new(&exact());
    assert_eq!(bench.ask(1, 30), 30_016_000, "asked for by a word that is rounded up");
    let answer = bench.ask_as(1, Structure::request(word(500)));
    assert_eq!((RateUnit::KbitPerS.decode(answer.available), answer.mark), (99_968_000, 1));
    assert!(bench.port.committed() <= LINE);
}

#[test]
fn what_is_not_lowered_is_marked_all_the_same() {
    let mut bench = Bench::new(&exact());
    let asked = Structure::request(word(10));
    let answer = bench.ask_as(1, asked);
    assert_eq!(answer, Structure { mark: 1, ..asked });
}

#[test]
fn a_newcomer_waits_for_the_others_to_slow_down() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 100);
    assert!(bench.ask(2, 100) < 100_000, "nothing is free but what rounding left");
    // The next packet of the first one carries the cut.
    bench.at(300);
    let Decision::Pass { signal: Some(cut), class: Class::Available } = bench.data(1) else {
        panic!("the flow above its share is told");
    };
    assert_eq!((cut.message, cut.mark, cut.available.units()), (Message::Renegotiate, 1, 49_984));
    assert!(bench.ask(2, 100) < 100_000, "it may still be sending at its old rate");
    bench.answer(1, &cut);
    assert_eq!(bench.ask(2, 100), 49_984_000);
    assert!(bench.port.committed() <= bench.port.capacity());
}

#[test]
fn newcomers_to_a_full_router_have_something_to_begin_with() {
    let mut bench = Bench::new(&RouterSettings::default());
    assert_eq!(bench.ask(1, 100), 96_000_000, "0.98 of the line, less 2 % of it for newcomers");
    let begun: Vec<u64> = (2..6).map(|flow| bench.ask(flow, 100)).collect();
    assert!(begun.iter().all(|&rate| rate > 100_000), "{begun:?}");
    assert!(bench.port.committed() <= bench.port.capacity());
}

#[test]
fn a_flow_that_never_answers_is_policed_when_the_wait_is_over() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 100);
    bench.ask(2, 100);
    let passes = |bench: &mut Bench, from: u64, for_ms: u64| {
        // 100 Mbit/s are a packet each 120 us.
        (0..for_ms * 1000 / 120)
            .filter(|packet| {
                bench.now = ms(from) + Duration::from_micros(120 * packet);
                matches!(bench.data(1), Decision::Pass { .. })
            })
            .count() as f64
            * 12.0
            / for_ms as f64
    };
    let before = passes(&mut bench, 300, 500);
    assert!((before - 100.0).abs() < 1.0, "{before} Mbit/s while it is told again and again");
    assert!(bench.port.counters().pushed >= 3);
    let after = passes(&mut bench, 3000, 500);
    assert!((48.0..53.0).contains(&after), "{after} Mbit/s");
    assert_eq!(bench.ask(2, 100), 49_984_000, "what it did not give up is granted to the other");
}

#[test]
fn a_flow_limited_elsewhere_leaves_the_rest_to_others() {
    let mut bench = Bench::new(&exact());
    let asked = bench.ask_as(1, Structure::request(word(100)));
    bench.answer(1, &Structure { available: word(10), ..asked });
    bench.at(2500);
    let granted = bench.ask(2, 100);
    assert!((89_000_000..90_000_000).contains(&granted), "{granted}");
    assert!(bench.port.committed() <= LINE);
}

#[test]
fn a_flow_that_sends_less_than_it_may_leaves_the_rest_to_others() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 100);
    bench.ask(2, 100);
    let mut cut = None;
    for packet in 0..1000 {
        // 12 Mbit/s.
        bench.now = ms(300 + packet);
        if let Decision::Pass { signal: Some(signal), .. } = bench.data(1) {
            bench.answer(1, &signal);
            cut = Some(signal.available.units());
        }
    }
    assert!((14_900..15_200).contains(&cut.expect("it was told")), "12 Mbit/s and a quarter: {cut:?}");
    assert!(bench.ask(2, 100) > 84_000_000);
}

#[test]
fn a_flow_that_waits_for_repairs_is_not_held_to_a_trickle() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 100);
    // Of the end of a file over a long path: a packet now and then.
    for round in 0..20 {
        bench.now = ms(300 + 1000 * round);
        bench.data(1);
    }
    let granted = bench.ask(1, 100);
    assert!(granted >= LINE / 8 * 98 / 100, "an eighth of the line, which is its share: {granted}");
}

#[test]
fn weights_share_by_priority() {
    let mut settings = exact();
    settings.weights[48..].fill(3);
    let mut bench = Bench::new(&settings);
    let high = Structure { preemption: Priority::new(50).expect("a level"), ..Structure::request(word(100)) };
    for round in 0..8 {
        bench.at(300 * round);
        for (flow, structure) in [(1, high), (2, Structure::request(word(100)))] {
            let granted = bench.ask_as(flow, structure);
            bench.answer(flow, &granted);
        }
    }
    let rate = |flow| bench.port.flow(&key(flow)).expect("known").available;
    assert_eq!((rate(1), rate(2)), (74_880_000, 24_992_000));
}

#[test]
fn guarantees_are_admitted_to_their_share_and_then_refused() {
    let mut bench = Bench::new(&exact());
    for flow in 1..=9 {
        let granted = bench.guarantee(flow, 9, 32, RateType::Guaranteed);
        assert_eq!((granted.guaranteed, granted.mark), (word(9), 1));
    }
    let refused = bench.guarantee(10, 20, 32, RateType::Guaranteed);
    assert_eq!((refused.guaranteed, refused.mark), (RateWord::ZERO, 1));
    let counted = |bench: &Bench| (bench.port.counters().admitted, bench.port.counters().refused);
    assert_eq!(counted(&bench), (9, 1));
    // With an Available Rate beside it a refused guarantee leaves that.
    let composite = bench.guarantee(11, 20, 32, RateType::Composite);
    assert_eq!(composite.guaranteed, RateWord::ZERO);
    assert!(composite.available.units() >= 18_000);
    // The same again is admitted again; an Available Rate is nothing to admit.
    bench.guarantee(1, 9, 32, RateType::Guaranteed);
    assert_eq!(counted(&bench), (10, 2));
    bench.ask(12, 1);
    assert_eq!(counted(&bench), (10, 2));
}

#[test]
fn a_higher_priority_takes_from_the_lowest_first_and_there_from_the_newest() {
    let mut bench = Bench::new(&exact());
    for (flow, preemption) in [(1, 10), (2, 5), (3, 5), (4, 20)] {
        bench.guarantee(flow, 20, preemption, RateType::Guaranteed);
    }
    let granted = bench.guarantee(5, 25, 20, RateType::Maximum);
    assert_eq!(granted.guaranteed, word(25));
    let has = |bench: &Bench, flow| bench.port.flow(&key(flow)).expect("known").guaranteed > 0;
    assert_eq!([1, 2, 3, 4, 5].map(|flow| has(&bench, flow)), [true, true, false, true, true]);
    // Its next packet tells it.
    let Decision::Pass { class: Class::BestEffort, signal: Some(signal) } = bench.data(3) else {
        panic!("it is told");
    };
    assert_eq!((signal.message, signal.guaranteed), (Message::Renegotiate, RateWord::ZERO));
    // Of the same priority nobody is preempted: who came first stays.
    assert_eq!(bench.guarantee(6, 40, 10, RateType::Guaranteed).guaranteed, RateWord::ZERO);
    assert_eq!(bench.port.counters().preempted, 1);
}

#[test]
fn a_line_that_loses_capacity_preempts() {
    let mut bench = Bench::new(&exact());
    for (flow, preemption) in [(1, 10), (2, 30), (3, 20)] {
        bench.guarantee(flow, 30, preemption, RateType::Guaranteed);
    }
    bench.port.set_line(rate(70_000_000));
    let has = |flow| bench.port.flow(&key(flow)).expect("known").guaranteed > 0;
    assert_eq!([1, 2, 3].map(has), [false, true, true]);
    assert!(bench.port.committed() <= bench.port.capacity());
}

#[test]
fn an_idle_maximum_rate_is_given_up_and_a_guaranteed_one_is_kept() {
    let mut bench = Bench::new(&exact());
    bench.guarantee(1, 20, 32, RateType::Maximum);
    bench.guarantee(2, 20, 32, RateType::Guaranteed);
    bench.at(2900).port.upkeep(ms(2900));
    assert_eq!(bench.port.flows(), 2);
    bench.port.upkeep(ms(3600));
    assert_eq!((bench.port.flow(&key(1)), bench.port.flows()), (None, 1));
    bench.port.upkeep(ms(299_000));
    assert_eq!(bench.port.flows(), 1);
    for late in 0..1000 {
        bench.port.upkeep(ms(301_000 + late));
    }
    assert_eq!((bench.port.flows(), bench.port.committed()), (0, 0));
    assert_eq!(bench.port.counters().expired, 2);
}

#[test]
fn what_was_missed_is_asked_for_seldom() {
    let mut bench = Bench::new(&exact());
    let asked = |bench: &mut Bench| match bench.data(9) {
        Decision::Pass { class: Class::BestEffort, signal } => signal.map(|signal| signal.message),
        _ => panic!("an unknown flow is served as any other packet"),
    };
    assert_eq!(asked(bench.at(1)), Some(Message::MissedStart));
    assert_eq!(asked(bench.at(100)), None);
    assert_eq!(asked(bench.at(101)), Some(Message::MissedStart));
    bench.ask_as(9, Structure { message: Message::ResendStart, ..Structure::request(word(5)) });
    assert_eq!(bench.data(9), Decision::Pass { class: Class::Available, signal: None });
    // Another flow has another place, of 256.
    let other = bench.port.pass(bench.now, key(10), QosMark::Flow, Bytes(1500), Numbers::default());
    assert!(matches!(other, Decision::Pass { signal: Some(_), .. }));
    assert_eq!(bench.port.counters().missed, 3);
}

#[test]
fn acks_are_held_to_no_rate_and_ask_for_nothing() {
    let mut bench = Bench::new(&exact());
    let ack = |bench: &mut Bench, flow| bench.ack(flow);
    assert_eq!(ack(&mut bench, 1), Decision::Pass { class: Class::BestEffort, signal: None });
    bench.ask_as(1, Structure::request(RateWord::from_units(1, Rounding::Down)));
    for _ in 0..100 {
        assert_eq!(ack(&mut bench, 1), Decision::Pass { class: Class::Available, signal: None });
    }
    assert_eq!((bench.port.counters().missed, bench.port.counters().policed), (0, 0));
}

#[test]
fn a_flow_that_moved_gives_up_what_it_had() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 80);
    let again = |bench: &mut Bench| {
        let mut again = Structure::request(word(80));
        bench.port.ask(bench.now, key(2), Some(ISN), Some(key(1)), &mut again);
        (again, bench.port.flows(), bench.port.counters().moved)
    };
    // Anybody can name another's place: it counts of who has seen an answer.
    let (begun, flows, moved) = again(&mut bench);
    assert_eq!((begun.available.units(), flows, moved), (20_000, 2, 0));
    bench.answer(2, &begun);
    bench.ack(2);
    let (again, flows, moved) = again(&mut bench);
    assert_eq!((again.available, flows, moved), (word(80), 1, 1));
}

#[test]
fn both_fins_or_a_close_end_a_flow() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 10);
    bench.port.fin(key(1), true);
    bench.ask_as(1, Structure { message: Message::Renegotiate, ..Structure::request(word(20)) });
    assert_eq!(bench.port.flows(), 1, "it has asked behind its FIN");
    bench.port.fin(key(1), false);
    bench.ask(2, 10);
    bench.port.closed(key(2));
    bench.port.closed(key(2));
    assert_eq!((bench.port.flows(), bench.port.committed()), (0, 0));
    assert_eq!((bench.port.counters().closed, bench.port.counters().unknown), (2, 1));
    // Only a SYN begins anew, and with it neither FIN has been seen.
    bench.ask(3, 10);
    bench.port.fin(key(3), true);
    bench.ask(3, 10);
    bench.port.fin(key(3), false);
    assert_eq!(bench.port.flows(), 1);
}

#[test]
fn who_pays_is_kept_and_reported() {
    let mut bench = Bench::new(&exact());
    for charging in [Charging::Reverse, Charging::Forward] {
        bench.ask_as(1, Structure { charging, ..Structure::request(word(5)) });
        assert_eq!(bench.port.flow(&key(1)).expect("known").charging, charging);
    }
}

#[test]
fn bursts_pass_for_the_time_that_they_are_tolerated() {
    let mut bench = Bench::new(&exact());
    // 12 Mbit/s: a packet each millisecond; BT 5 is 15.6 of them.
    let granted = bench.ask(1, 12);
    let at_once = (0..100).filter(|_| matches!(bench.data(1), Decision::Pass { .. })).count();
    assert_eq!((granted, at_once, bench.port.counters().policed), (12_000_000, 15, 85));
    // At 64 kbit/s that time is less than a packet takes: two pass all the same.
    bench.ask_as(2, Structure::request(RateWord::from_units(64, Rounding::Down)));
    let at_once = (0..100).filter(|_| matches!(bench.data(2), Decision::Pass { .. })).count();
    assert_eq!((at_once, bench.port.counters().policed), (2, 85 + 98));
    bench.port.settings.police = false;
    assert!((0..100).all(|_| matches!(bench.data(2), Decision::Pass { .. })));
}

#[test]
fn what_was_sent_at_a_trickle_does_not_count_against_a_higher_rate() {
    let mut bench = Bench::new(&exact());
    bench.ask_as(1, Structure::request(RateWord::from_units(64, Rounding::Down)));
    assert!(matches!(bench.data(1), Decision::Pass { .. }));
    assert!(matches!(bench.data(1), Decision::Pass { .. }));
    // Two packets are 375 ms of 64 kbit/s, and 2 ms of 12 Mbit/s.
    bench.ask(1, 12);
    let at_once = (0..100).filter(|_| matches!(bench.data(1), Decision::Pass { .. })).count();
    assert_eq!(at_once, 13);
}

#[test]
fn a_full_table_lets_requests_pass_as_they_came() {
    let mut bench = Bench::new(&RouterSettings { flows: 2, ..exact() });
    bench.ask(1, 10);
    bench.ask(2, 10);
    let asked = Structure::request(word(10));
    assert_eq!((bench.ask_as(3, asked), bench.port.counters().full), (asked, 1));
    // The place of one that is over is free when its timer has let go of it.
    bench.port.closed(key(1));
    assert_eq!((bench.ask_as(3, asked), bench.port.counters().full), (asked, 2));
    assert_eq!((bench.at(20_000).ask_as(3, asked).mark, bench.port.counters().full), (1, 2));
}

#[test]
fn a_smaller_table_takes_nobody_until_enough_have_gone() {
    let mut bench = Bench::new(&RouterSettings { flows: 4, ..exact() });
    (1..=4).for_each(|flow| _ = bench.ask(flow, 10));
    bench.port.set_settings(&RouterSettings { flows: 2, ..exact() }, rate(LINE));
    let asked = Structure::request(word(10));
    let mut places = Vec::new();
    for flow in 1..=4 {
        bench.port.closed(key(flow));
        // Its timer lets go of it.
        bench.now += Duration::from_secs(4);
        (flow + 1..=4).for_each(|other| _ = bench.data(other));
        places.push(bench.ask_as(10 + flow, asked).mark == 1);
    }
    assert_eq!((places, bench.port.flows()), (vec![false, false, true, true], 2));
}

#[test]
fn as_many_as_the_settings_say_may_be_unproven() {
    let mut bench = Bench::new(&RouterSettings { starts: 1, ..exact() });
    // Who is proven makes room for the next one.
    (1..=3).for_each(|flow| assert_eq!(bench.ask(flow, 10), 10_000_000));
    let full = |bench: &mut Bench, flow| {
        bench.port.ask(bench.now, key(flow), Some(ISN), None, &mut Structure::request(word(10)));
        bench.port.counters().full
    };
    assert_eq!([4, 5, 6].map(|flow| full(&mut bench, flow)), [0, 1, 2]);
    // And so does who is over.
    bench.port.closed(key(4));
    assert_eq!([5, 6].map(|flow| full(&mut bench, flow)), [2, 3]);
}

#[test]
fn nobody_sinks_for_who_has_only_asked() {
    let mut bench = Bench::new(&RouterSettings::default());
    // 0.98 of the line, less 2 % of that for newcomers.
    let alone = bench.ask(1, 100);
    assert_eq!(alone, 96_000_000);
    for now in 0..2000 {
        bench.at(now);
        if now % 100 == 0 {
            for start in 0..64 {
                let start = FlowKey::from((1 << 64) + u128::from(now + start));
                bench.port.ask(bench.now, start, Some(ISN), None, &mut Structure::request(word(100)));
            }
            assert_eq!(bench.ask(1, 100), alone);
        }
        for _ in 0..8 {
            assert!(matches!(bench.data(1), Decision::Pass { signal: None, .. }), "it is told to sink");
        }
    }
    // One that goes on has its share.
    bench.at(2001).ask(2, 100);
    assert!(matches!(bench.data(1), Decision::Pass { signal: Some(_), .. }));
}

#[test]
fn nobody_sinks_for_who_has_not_seen_the_answer() {
    // Of a full router; whether the flow that has it is told to sink when another has asked and done this.
    let sinks = |second: &dyn Fn(&mut Bench, &Structure)| {
        let mut bench = Bench::new(&RouterSettings::default());
        bench.ask(1, 100);
        let mut start = Structure::request(word(100));
        bench.at(1000).port.ask(ms(1000), key(2), Some(ISN), None, &mut start);
        second(&mut bench, &start);
        matches!(bench.at(1200).data(1), Decision::Pass { signal: Some(_), .. })
    };
    let ack = |bench: &mut Bench, ack| {
        bench.port.pass_without_data(bench.now, key(2), acknowledging(ack));
    };
    // Who is made up, and sends to nobody, is not answered.
    assert!(!sinks(&|bench, _| {
        bench.ack(2);
        bench.data(2);
    }));
    // Who sends to somebody, in another's name, does not see what came with the answer.
    for guess in [1 << 31, SEQ.wrapping_sub(1), SEQ.wrapping_add(1 << 20)] {
        assert!(!sinks(&|bench, start| {
            bench.answer(2, start);
            ack(bench, guess);
        }));
    }
    // What the other end has sent since then may be acknowledged too, where the first ACK was lost.
    for seen in [SEQ, SEQ.wrapping_add(30_000)] {
        assert!(sinks(&|bench, start| {
            bench.answer(2, start);
            ack(bench, seen);
        }));
    }
    // Where answers go another way, 16 kB do: 11 packets within what it was granted.
    let sends = |packets: u64| {
        sinks(&|bench, _| {
            for packet in 0..packets {
                assert!(matches!(bench.at(1000 + 15 * packet).data(2), Decision::Pass { .. }));
            }
        })
    };
    assert!(!sends(10) && sends(11));
}

#[test]
fn a_guarantee_that_was_only_asked_for_is_not_kept_as_long_as_one_that_is_used() {
    let mut bench = Bench::new(&RouterSettings::default());
    let asked =
        Structure { rate_type: RateType::Guaranteed, guaranteed: word(40), ..Structure::request(word(40)) };
    bench.ask_as(1, asked);
    bench.port.ask(bench.now, key(2), Some(ISN), None, &mut asked.clone());
    assert_eq!(bench.port.flows(), 2);
    // `available_timeout` is 10 s, `guaranteed_timeout` 300 s.
    bench.at(20_000).data(9);
    assert!(bench.port.flow(&key(1)).is_some() && bench.port.flow(&key(2)).is_none());
}

#[test]
fn a_flood_of_start_packets_takes_nothing_from_those_who_send() {
    let mut bench = Bench::new(&RouterSettings { starts: 10_000, ..RouterSettings::default() });
    for flow in 1..=4 {
        bench.ask(flow, 100);
    }
    // They send what they are granted, 20 packets of each in 10 ms, and ask again. Gives how often one was told to sink.
    let go_on = |bench: &mut Bench| {
        let mut told = 0;
        for _ in 0..20 {
            bench.now += Duration::from_micros(500);
            for flow in 1..=4 {
                match bench.data(flow) {
                    Decision::Pass { signal: None, class: Class::Available } => {}
                    Decision::Pass { signal: Some(cut), .. } => {
                        told += 1;
                        bench.answer(flow, &cut);
                    }
                    Decision::Police | Decision::Pass { .. } if bench.port.settings.police => {
                        panic!("flow {flow} is held to less than its share")
                    }
                    _ => {}
                }
            }
        }
        for flow in 1..=4 {
            bench.ask(flow, 100);
        }
        told
    };
    // Newcomers to a full router begin with little.
    bench.port.settings.police = false;
    for _ in 0..300 {
        go_on(&mut bench);
    }
    bench.port.settings.police = true;
    let grants =
        |bench: &Bench| [1, 2, 3, 4].map(|flow| bench.port.flow(&key(flow)).expect("it is known").available);
    let before = grants(&bench);
    assert!(before.iter().all(|&rate| rate > 23_500_000), "{before:?}");
    let spoofed = |number: u128| FlowKey::from((1 << 64) + number);
    for number in 0..1_000_000 {
        let mut start = Structure::request(word(100));
        bench.port.ask(bench.now, spoofed(number), Some(ISN), None, &mut start);
        if number % 10_000 == 9_999 {
            assert_eq!(go_on(&mut bench), 0, "they are told to sink after {number} starts");
        }
    }
    assert_eq!(grants(&bench), before);
    assert!(bench.port.flows() <= 4 + 10_000, "{} flows", bench.port.flows());
    assert!(bench.port.counters().full >= 980_000, "{:?}", bench.port.counters());
    // They are forgotten for their silence, and then there is room again.
    for step in 0..4000 {
        bench.now += Duration::from_millis(10);
        bench.data(1 + (step % 4) as u8);
    }
    assert_eq!(bench.port.flows(), 4);
    let mut late = Structure::request(word(1));
    bench.port.ask(bench.now, spoofed(0), Some(ISN), None, &mut late);
    assert_eq!(late.mark, 1);
}

#[test]
fn what_is_on_its_way_at_the_old_rate_is_not_policed_after_a_cut() {
    let mut bench = Bench::new(&RouterSettings { hold: Duration::from_secs(2), ..exact() });
    bench.ask(1, 80);
    bench.port.set_line(rate(LINE / 10));
    let Decision::Pass { signal: Some(cut), .. } = bench.at(500).data(1) else { panic!("it is told") };
    bench.at(540).answer(1, &cut);
    // At 80 Mbit/s a packet takes 150 us: what the sender had sent when the answer passed, a round trip of 40 ms.
    for packet in 0..266 {
        bench.now = ms(540) + Duration::from_micros(150 * packet);
        assert!(matches!(bench.data(1), Decision::Pass { .. }), "packet {packet}");
    }
    // Who does not obey is held to it in the end: 10 Mbit/s are 83 of these packets in 100 ms.
    let passed = (0..666).filter(|packet| {
        bench.now = ms(3000) + Duration::from_micros(150 * packet);
        matches!(bench.data(1), Decision::Pass { .. })
    });
    let passed = passed.count();
    assert!((80..110).contains(&passed), "{passed}");
}

#[test]
fn what_a_port_has_decided_is_counted() {
    let mut bench = Bench::new(&exact());
    let counted = |bench: &Bench| {
        let counters = bench.port.counters();
        (counters.requests, counters.lowered, counters.responses, counters.above_grant, counters.unknown)
    };
    bench.ask(1, 30);
    assert_eq!(counted(&bench), (1, 0, 1, 0, 0), "all that it asked for");
    bench.ask(1, 500);
    assert_eq!(counted(&bench), (2, 1, 2, 0, 0));
    bench.ask(1, 500);
    assert_eq!(counted(&bench), (3, 2, 3, 0, 0));
    // More than was granted here: an old answer, or a lie.
    bench.answer(1, &Structure::request(word(500)));
    assert_eq!(counted(&bench), (3, 2, 4, 1, 0));
    bench.answer(1, &Structure::request(word(500)));
    assert_eq!(counted(&bench), (3, 2, 5, 2, 0));
    // Of flows that nobody knows.
    let structure = Structure::request(word(1));
    bench.answer(9, &structure);
    bench.port.confirmed(ms(0), key(9), &structure);
    assert_eq!(counted(&bench), (3, 2, 5, 2, 2));
}

#[test]
fn a_confirmation_and_an_answer_take_a_guarantee_down_and_never_up() {
    let guaranteed = |mbit| Structure { guaranteed: word(mbit), ..Structure::request(RateWord::ZERO) };
    for confirms in [true, false] {
        let mut bench = Bench::new(&RouterSettings { guaranteed: share(1.0), ..exact() });
        bench.guarantee(1, 20, 5, RateType::Guaranteed);
        let committed = |bench: &mut Bench, mbit| {
            let structure = Structure { rate_type: RateType::Guaranteed, ..guaranteed(mbit) };
            if confirms {
                bench.port.confirmed(bench.now, key(1), &structure);
            } else {
                bench.answer(1, &structure);
            }
            bench.port.committed()
        };
        let of = |mbit| RateUnit::KbitPerS.decode(word(mbit));
        assert_eq!(committed(&mut bench, 30), of(20), "{confirms}");
        assert_eq!(committed(&mut bench, 20), of(20), "{confirms}");
        assert_eq!(committed(&mut bench, 8), of(8), "{confirms}");
        // What it gave back is there for others.
        assert_eq!(bench.guarantee(2, 90, 5, RateType::Guaranteed).guaranteed, word(90), "{confirms}");
    }
}

#[test]
fn guarantees_that_just_fit_stay_when_the_line_changes() {
    let mut bench = Bench::new(&RouterSettings { guaranteed: share(1.0), ..exact() });
    bench.guarantee(1, 20, 5, RateType::Guaranteed);
    let of_it = RateUnit::KbitPerS.decode(word(20));
    bench.port.set_line(rate(of_it));
    assert_eq!((bench.port.committed(), bench.port.counters().preempted), (of_it, 0));
    bench.port.set_line(rate(of_it - 1000));
    assert_eq!((bench.port.committed(), bench.port.counters().preempted), (0, 1));
    // Other settings, other capacity.
    let half = RouterSettings { utilization: share(0.5), ..exact() };
    bench.port.set_settings(&half, rate(LINE));
    assert_eq!(bench.port.capacity(), LINE / 2);
}

#[test]
fn a_reset_forgets_a_flow_at_once() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 90);
    bench.port.reset(key(1));
    assert_eq!((bench.port.flows(), bench.port.committed(), bench.port.counters().closed), (0, 0, 1));
}

#[test]
fn a_flow_takes_96_bytes_and_its_place_in_the_index() {
    let mut port = Port::new(&RouterSettings { starts: 1000, ..exact() }, rate(LINE), 7);
    // The sums of 2^14 buckets and one, 16 B each, and 4096 timers of 4 B.
    let without = port.state_bytes();
    assert_eq!(without, 16 * 16_385 + 4 * 4096);
    for flow in 0..1000_u128 {
        port.ask(ms(0), FlowKey::from(flow), Some(ISN), None, &mut Structure::request(word(1)));
    }
    let of_each = (port.state_bytes() - without) / 1000;
    // Room is made for 1024 of them, and for as many again in the index.
    assert!((96 + 5..=2 * 96 + 20).contains(&of_each), "{of_each}");
    let full = port.state_bytes();
    (0..1000_u128).for_each(|flow| port.closed(FlowKey::from(flow)));
    // Once its timer lets go of it, the number of a flow that is gone is kept to be used again; its room stays.
    assert_eq!(port.state_bytes(), full);
    // Each packet looks at eight of them.
    for _ in 0..1000 / 8 {
        port.pass_without_data(ms(600_000), FlowKey::from(1000_u128), Numbers::default());
    }
    assert!(
        (full + 4 * 1000..=full + 4 * 1024).contains(&port.state_bytes()),
        "{}",
        port.state_bytes() - full
    );
}

#[test]
fn cuts_that_are_waited_for_take_16_bytes_each() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 100);
    bench.ask(2, 100);
    let before = bench.port.state_bytes();
    assert!(matches!(bench.data(1), Decision::Pass { signal: Some(_), .. }));
    let taken = bench.port.state_bytes() - before;
    assert!(taken >= 16 && taken == 16 * bench.port.holds.capacity(), "{taken}");
}

#[test]
fn a_flow_that_asks_for_less_again_and_again_waits_for_one_cut() {
    let mut bench = Bench::new(&RouterSettings { flows: 4, ..exact() });
    bench.ask(1, 100);
    for request in 0..9_999 {
        bench.now += Duration::from_micros(10);
        bench.ask(1, 40 + request % 2);
    }
    assert_eq!(bench.port.holds.len(), 1);
    // It is over a wait after the last one, to the nanosecond.
    let last = bench.now;
    let policed = |bench: &mut Bench, after: Duration| {
        bench.port.upkeep(last + after);
        bench.port.table.get(bench.port.table.find(&key(1)).expect("it is known")).policed.units()
    };
    let hold = RouterSettings::default().hold;
    assert_eq!(policed(&mut bench, hold - Duration::from_nanos(1)), 99_968);
    assert_eq!((policed(&mut bench, hold), bench.port.holds.len()), (40_000, 0));
}

/// Sends so many bytes in each interval of 200 ms, and gives what the flow is held to be able to use after each, in units.
fn uses(bench: &mut Bench, flow: u8, bytes: &[u64]) -> Vec<u64> {
    let intervals = bytes.iter().map(|&bytes| {
        bench.now += Duration::from_millis(200);
        bench.port.pass(bench.now, key(flow), QosMark::Flow, Bytes(bytes), acknowledging(SEQ));
        let slot = bench.port.table.find(&key(flow)).expect("it is known");
        bench.port.table.get(slot).elsewhere.units()
    });
    intervals.collect()
}

/// One flow, which has all 10 000 units of a line. 25 bytes in 200 ms are one of them.
fn alone_on_ten_thousand_units() -> Bench {
    let mut bench = Bench::new(&RouterSettings { police: false, ..exact() });
    bench.port.set_line(rate(10_000_000));
    assert_eq!(bench.ask(1, 10), 10_000_000);
    bench
}

#[test]
fn three_intervals_below_four_fifths_of_a_grant_limit_it_to_its_use_and_a_quarter() {
    let units = |units: u64| units * 25;
    let mut bench = alone_on_ten_thousand_units();
    // Four fifths are enough.
    assert_eq!(uses(&mut bench, 1, &[units(8000); 5]), [0; 5]);
    // Less is not, in three intervals in a row; 9998 is 10 000 in the rate code.
    let nearly = units(7999);
    assert_eq!(
        uses(&mut bench, 1, &[nearly, nearly, units(8000), nearly, nearly, nearly]),
        [0, 0, 0, 0, 0, 10_000]
    );
    // Then what it uses is followed at once, down to an eighth of an equal share,
    let used = [4000, 2000, 800, 8000, 8000].map(units);
    assert_eq!(uses(&mut bench, 1, &used), [5000, 2500, 1250, 1250, 1250]);
    // until it uses 0.95 of its grant again.
    assert_eq!(uses(&mut bench, 1, &[units(9499), units(9500)]), [1250, 0]);
}

#[test]
fn what_another_router_has_told_stands_whatever_is_used() {
    let mut bench = alone_on_ten_thousand_units();
    bench.answer(1, &Structure::request(word(8)));
    // 4000 units of 10 000, and of 8000 when the cut is over; then all of it.
    assert_eq!(uses(&mut bench, 1, &[100_000; 20]), [8000; 20]);
    assert_eq!(uses(&mut bench, 1, &[250_000; 3]), [8000; 3]);
}

#[test]
fn an_interval_in_which_little_is_sent_is_over_after_two_seconds() {
    let mut bench = alone_on_ten_thousand_units();
    // A packet each 2 s.
    let limits = [2, 4, 6].map(|second| {
        bench.at(1000 * second - 200);
        uses(&mut bench, 1, &[1000])[0]
    });
    assert_eq!(limits, [0, 0, 1250], "an eighth of its share");
}

#[test]
fn a_cut_is_told_at_once_and_each_push_interval_until_it_is_answered() {
    let mut bench = Bench::new(&RouterSettings { police: false, ..exact() });
    bench.ask(1, 100);
    bench.at(50).ask(2, 100);
    let mut told = Vec::new();
    for now in 51..=500 {
        if let Decision::Pass { signal: Some(cut), .. } = bench.at(now).data(1) {
            told.push((now, cut.available.units()));
        }
        if now == 100 {
            // A third of it, which is told no sooner than a push interval after the last cut.
            bench.ask(3, 100);
        }
    }
    assert_eq!(told, [(51, 49_984), (251, 33_280), (451, 33_280)]);
}

#[test]
fn a_64th_above_its_share_is_not_told() {
    let mut bench = Bench::new(&exact());
    let units = |units| Structure::request(RateWord::from_units(units, Rounding::Up));
    // Two of them have 32 768 units each: one has 512 more.
    bench.port.set_line(rate(65_536_000));
    bench.ask_as(1, units(33_280));
    bench.ask_as(2, units(40_000));
    assert!(matches!(bench.at(500).data(1), Decision::Pass { signal: None, .. }));
    bench.port.set_line(rate(65_534_000));
    assert!(matches!(bench.at(800).data(1), Decision::Pass { signal: Some(_), .. }));
}

#[test]
fn delay_priorities_are_served_in_four_steps() {
    let mut bench = Bench::new(&RouterSettings { police: false, ..exact() });
    for (level, step) in [(0, 0), (15, 0), (16, 1), (40, 2), (63, 3)] {
        let (delay, guaranteed) = (Priority::new(level).expect("a level"), word(10));
        let rate_type = RateType::Guaranteed;
        bench.ask_as(1, Structure { rate_type, guaranteed, delay, ..Structure::request(RateWord::ZERO) });
        assert_eq!(
            bench.data(1),
            Decision::Pass { class: Class::Guaranteed(step), signal: None },
            "priority {level}"
        );
    }
}

#[test]
fn guarantees_that_just_fit_are_admitted_beside_each_other() {
    // Of one priority, and of a second one that could preempt the first.
    for second in [10, 20] {
        let mut bench = Bench::new(&RouterSettings { guaranteed: share(1.0), ..exact() });
        bench.port.set_line(rate(80_000_000));
        for (flow, preemption) in [(1, 10), (2, second)] {
            let granted = bench.guarantee(flow, 40, preemption, RateType::Guaranteed);
            assert_eq!(granted.guaranteed, word(40), "{second}");
        }
        assert_eq!((bench.port.committed(), bench.port.counters().preempted), (80_000_000, 0), "{second}");
        assert_eq!(bench.guarantee(3, 1, 10, RateType::Guaranteed).guaranteed, RateWord::ZERO, "{second}");
    }
}

#[test]
fn a_guarantee_takes_from_available_rates_what_it_grows_by() {
    let mut bench = Bench::new(&exact());
    bench.ask(1, 100);
    for (now, guaranteed, left) in [(0, 20, 80_000), (600, 40, 59_968)] {
        bench.at(now).guarantee(2, guaranteed, 10, RateType::Guaranteed);
        let Decision::Pass { signal: Some(cut), .. } = bench.at(now + 300).data(1) else {
            panic!("it is told")
        };
        bench.answer(1, &cut);
        assert_eq!(cut.available.units(), left);
    }
}

#[test]
fn who_was_limited_elsewhere_is_let_try_for_a_quarter_more() {
    let mut bench = Bench::new(&exact());
    let asked = bench.ask_as(1, Structure::request(word(100)));
    bench.answer(1, &Structure { available: word(10), ..asked });
    // 12 500 units, in the rate code rounded down.
    assert_eq!(bench.ask(1, 100), 12_496_000);
}

#[test]
fn a_raise_within_the_wait_after_a_cut_is_policed_at_the_higher_of_both() {
    // A flow of 40 Mbit/s that was cut to 20, and has answered; the next request is granted in full.
    let policed_at = |next: u64, now: u64| {
        let mut bench = Bench::new(&exact());
        bench.ask(1, 40);
        bench.ask(2, 80);
        bench.port.set_line(rate(40_000_000));
        let Decision::Pass { signal: Some(cut), .. } = bench.at(300).data(1) else { panic!("it is told") };
        bench.answer(1, &cut);
        bench.port.closed(key(2));
        bench.port.set_line(rate(LINE));
        assert_eq!(bench.at(400).ask(1, next), next * 1_000_000);
        bench.port.upkeep(ms(now));
        bench.port.table.get(bench.port.table.find(&key(1)).expect("it is known")).policed
    };
    // The wait is 2 s: what left at the old rate may still come.
    assert_eq!((policed_at(24, 2299), policed_at(24, 2300)), (word(40), word(24)));
    assert_eq!(policed_at(80, 400), word(80));
}

#[test]
fn what_a_flow_is_granted_alone_can_be_asked_of_the_settings() {
    let settings = RouterSettings::default();
    let granted = Bench::new(&settings).ask(1, 100);
    assert_eq!(settings.granted_alone(rate(LINE)).map(Rate::bit_per_s), Some(granted));
    assert_eq!(settings.granted_alone(rate(1000)), None, "0.98 of a unit");
}
