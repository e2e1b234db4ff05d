//! Whatever flows do: requests, lies, repetitions and silence in any order.

use super::{Bench, LINE, acknowledging, exact, key, ms, rate};
use crate::router::flow::{Flow, UNPROVEN};
use crate::router::{Decision, Port, RouterSettings};
use crate::{BurstTolerance, Message, Priority, QosMark, RateType, RateUnit, RateWord, Rounding, Structure};
use farpath_units::{Bytes, Duration};
use proptest::prelude::*;

/// What somebody may do to a port.
#[derive(Debug, Clone)]
enum Step {
    Ask {
        flow: u8,
        moved_from: Option<u8>,
        structure: Structure,
    },
    /// The answer to what was asked last, changed in AR: lower, as it is, or a lie.
    Answer {
        flow: u8,
        parts: u8,
    },
    Replay {
        flow: u8,
        structure: Structure,
    },
    Confirm {
        flow: u8,
        structure: Structure,
    },
    Close {
        flow: u8,
    },
    Fin {
        flow: u8,
        sent: bool,
    },
    Data {
        flow: u8,
        mark: QosMark,
        size: u16,
    },
    Wait {
        ms: u32,
    },
    Line {
        mbit: u64,
    },
}

fn structure(guarantees: bool) -> impl Strategy<Value = Structure> {
    let rates = (0x4000..0x6200_u16, 0x4000..0x6200_u16, prop::bool::weighted(0.1));
    (rates, 0..4_u8, 0..64_u8, 0..64_u8, 0..16_u8, 0..3_usize).prop_map(
        move |((ar, gr, huge), tp, pp, dp, bt, message)| Structure {
            message: [Message::Request, Message::Renegotiate, Message::ResendStart][message],
            rate_type: if guarantees {
                RateType::from_code(tp).expect("assigned")
            } else {
                RateType::Available
            },
            available: if huge { RateWord::MAX } else { RateWord::from_bits(ar) },
            guaranteed: RateWord::from_bits(gr),
            preemption: Priority::new(pp).expect("a level"),
            delay: Priority::new(dp).expect("a level"),
            burst: BurstTolerance::new(bt).expect("a code"),
            ..Structure::default()
        },
    )
}

fn step(guarantees: bool) -> impl Strategy<Value = Step> {
    let flow = || 0..10_u8;
    let mark = prop::sample::select(vec![QosMark::Flow, QosMark::Flow, QosMark::None, QosMark::Signal]);
    let line = if guarantees { 20..200_u64 } else { 100..101 };
    prop_oneof![
        6 => (flow(), prop::option::weighted(0.1, flow()), structure(guarantees))
            .prop_map(|(flow, moved_from, structure)| Step::Ask { flow, moved_from, structure }),
        6 => (flow(), prop_oneof![Just(100_u8), 0..=255_u8]).prop_map(|(flow, parts)| Step::Answer { flow, parts }),
        1 => (flow(), structure(guarantees)).prop_map(|(flow, structure)| Step::Replay { flow, structure }),
        1 => (flow(), structure(guarantees)).prop_map(|(flow, structure)| Step::Confirm { flow, structure }),
        1 => flow().prop_map(|flow| Step::Close { flow }),
        1 => (flow(), any::<bool>()).prop_map(|(flow, sent)| Step::Fin { flow, sent }),
        8 => (flow(), mark, 40..9000_u16).prop_map(|(flow, mark, size)| Step::Data { flow, mark, size }),
        4 => prop_oneof![9 => 0..400_u32, 1 => 0..400_000_u32].prop_map(|ms| Step::Wait { ms }),
        1 => line.prop_map(|mbit| Step::Line { mbit }),
    ]
}

/// The sums are those of the flows, and no flow is where it does not belong.
fn check(port: &Port) {
    let sum = |of: fn(&Flow) -> u64| port.table.iter().map(of).sum::<u64>();
    assert_eq!(port.reserved, sum(|flow| flow.reserved.units()));
    assert_eq!(port.guarantees.sum(), sum(|flow| flow.guaranteed.units()));
    let counts = |flow: &Flow| !flow.has(UNPROVEN);
    let demand = port.table.iter().filter(|flow| counts(flow)).map(Flow::demand);
    assert_eq!(port.shares.demand(), demand.sum::<u64>());
    assert!(port.guarantees.sum() <= port.capacity.guaranteed);
    for flow in port.table.iter() {
        assert!(flow.granted.units() <= flow.reserved.units(), "{flow:?}");
    }
    let counting = port.table.iter().filter(|flow| counts(flow));
    let shared: u64 = counting.map(|flow| port.level.share(flow.demand(), flow.weight)).sum();
    assert!(shared <= port.capacity.steady(port.guarantees.sum()), "shares are within the capacity");
}

/// Runs the steps; after each `holds` is told whether it could have taken capacity away from Available Rates.
fn run(steps: Vec<Step>, mut holds: impl FnMut(&Port, u64, bool)) {
    let settings = RouterSettings { unit: RateUnit::KbitPerS, ..RouterSettings::default() };
    let mut port = Port::new(&settings, rate(LINE), 1);
    let mut now = ms(0);
    let mut last: [Option<Structure>; 10] = [None; 10];
    for step in steps {
        let (before, guaranteed) = (port.committed(), port.guarantees.sum());
        let mut takes = false;
        match step {
            Step::Ask { flow, moved_from, mut structure } => {
                let asked = structure;
                port.ask(now, key(flow), Some(0), moved_from.map(key), &mut structure);
                assert!(structure.available.units() <= asked.available.units());
                assert!(
                    structure.guaranteed.units() <= asked.guaranteed.units()
                        || asked.rate_type.has_guaranteed()
                );
                assert_eq!(structure.mark, 1);
                last[usize::from(flow)] = Some(structure);
            }
            Step::Answer { flow, parts } => {
                if let Some(asked) = last[usize::from(flow)] {
                    let available = RateWord::from_units(
                        asked.available.units() * u64::from(parts) / 100,
                        Rounding::Down,
                    );
                    let available = if parts == 100 { asked.available } else { available };
                    port.answered(
                        now,
                        key(flow),
                        &Structure { message: Message::Response, available, ..asked },
                        Some(0),
                    );
                }
            }
            Step::Replay { flow, structure } => port.answered(now, key(flow), &structure, Some(0)),
            Step::Confirm { flow, structure } => port.confirmed(now, key(flow), &structure),
            Step::Close { flow } => port.closed(key(flow)),
            Step::Fin { flow, sent } => port.fin(key(flow), sent),
            Step::Data { flow, mark, size } => {
                if let Decision::Pass { signal: Some(signal), .. } =
                    port.pass(now, key(flow), mark, Bytes(u64::from(size)), acknowledging(0))
                    && signal.message == Message::Renegotiate
                {
                    last[usize::from(flow)] = Some(signal);
                }
            }
            Step::Wait { ms } => now += Duration::from_millis(u64::from(ms)),
            Step::Line { mbit } => {
                takes = true;
                port.set_line(rate(mbit * 1_000_000));
            }
        }
        // With a request, or when a packet shows that its answer was seen.
        takes |= port.guarantees.sum() > guaranteed;
        check(&port);
        holds(&port, before, takes);
    }
}

proptest! {
    /// Whatever flows do, ask, lie, repeat and leave unanswered, Available Rates never come to more than there is.
    #[test]
    fn available_rates_are_never_over_granted(steps in prop::collection::vec(step(false), 1..120)) {
        run(steps, |port, _, _| assert!(port.committed() <= port.capacity()));
    }

    /// A guarantee is admitted over the heads of Available Rates, and a line can lose capacity. Until those sink nothing
    /// more is granted; guarantees by themselves always fit.
    #[test]
    fn guarantees_fit_and_nothing_is_granted_beside_too_much(steps in prop::collection::vec(step(true), 1..120)) {
        run(steps, |port, before, takes| {
            if !takes {
                assert!(port.committed() <= port.capacity().max(before), "{} {before}", port.committed());
            }
        });
    }

    /// Flows that keep asking come to the shares that water-filling gives, in whatever order they came.
    #[test]
    fn shares_become_fair(demands in prop::collection::vec(0x5800..0x6200_u16, 2..9)) {
        let mut bench = Bench::new(&exact());
        for round in 0..30_u64 {
            bench.at(round * 300);
            for (flow, &bits) in (0..).zip(&demands) {
                if let Decision::Pass { signal: Some(cut), .. } = bench.data(flow) {
                    bench.answer(flow, &cut);
                }
                let granted = bench.ask_as(flow, Structure::request(RateWord::from_bits(bits)));
                bench.answer(flow, &granted);
                prop_assert!(bench.port.committed() <= bench.port.capacity());
            }
        }
        let mut left = LINE as f64 / 1000.0;
        let mut order: Vec<(u64, u8)> = (0..).zip(&demands).map(|(flow, &bits)| (RateWord::from_bits(bits).units(), flow)).collect();
        order.sort_unstable();
        let count = order.len();
        for (place, (demand, flow)) in order.into_iter().enumerate() {
            let fair = (left / (count - place) as f64).min(demand as f64);
            left -= fair;
            let has = bench.port.flow(&key(flow)).expect("known").available as f64 / 1000.0;
            // A cut of less than a 64th is not told, and the code has steps of a 512th.
            prop_assert!((has - fair).abs() <= fair / 64.0 + fair / 512.0 + 1.0, "flow {flow}: {has} {fair}");
        }
    }
}
