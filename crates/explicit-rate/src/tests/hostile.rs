//! A peer and a path that say anything: never a crash, never a rate above what was asked for, and every byte arrives.

use super::wire::{Router, Wire, at, lowered, mbit, ms, wants};
use crate::Datagram;
use farpath_tcp::{Flags, Segment};
use farpath_tia1039::{Message, QosMark, RateType, RateWord, Structure, Structures};
use proptest::prelude::*;

fn structures() -> impl Strategy<Value = Structures> {
    let one =
        (0..8_u8, 0..4_u8, any::<u16>(), any::<u8>(), any::<bool>()).prop_map(|(cd, tp, ar, mark, named)| {
            Structure {
                message: Message::from_code(cd).expect("a code"),
                rate_type: RateType::from_code(tp).expect("a code"),
                available: RateWord::from_bits(ar),
                mark,
                source: if named { crate::SOMEBODY } else { farpath_tia1039::Source::NONE_V4 },
                ..Structure::default()
            }
        });
    (one.clone(), proptest::option::of(one)).prop_map(|(first, second)| Structures { first, second })
}

/// What is done to one datagram, and where in the order of all of them.
#[derive(Debug, Clone)]
enum Mischief {
    Replace(Structures),
    Strip,
    Forge(Structures),
    Replay,
    Drop,
}

fn mischief() -> impl Strategy<Value = (u16, Mischief)> {
    let what = prop_oneof![
        structures().prop_map(Mischief::Replace),
        Just(Mischief::Strip),
        structures().prop_map(Mischief::Forge),
        Just(Mischief::Replay),
        Just(Mischief::Drop),
    ];
    (0..400_u16, what)
}

fn router(plan: Vec<(u16, Mischief)>) -> Router {
    let mut number = 0;
    // Of each end: its own SYN come back would be another end that opens (RFC 9293 §3.5), and nothing of ours.
    let mut heard: [Option<Datagram>; 2] = [None; 2];
    Box::new(move |_, from, datagram| {
        let mut datagram = lowered(datagram, 30);
        number += 1;
        if datagram.structures.is_some() {
            heard[from].get_or_insert(datagram);
        }
        let mut out = Vec::new();
        for (_, mischief) in plan.iter().filter(|(place, _)| *place == number) {
            match mischief {
                Mischief::Replace(structures) if datagram.structures.is_some() => {
                    datagram.structures = Some(*structures)
                }
                Mischief::Strip => datagram.structures = None,
                // An ACK to an end that only listens is answered with a reset, structures or not.
                Mischief::Forge(_) if datagram.segment.flags.contains(Flags::SYN) => {}
                Mischief::Forge(structures) => {
                    let segment = Segment { len: 0, flags: Flags::ACK, ..datagram.segment };
                    out.push(Datagram { segment, mark: QosMark::Signal, structures: Some(*structures) });
                }
                Mischief::Replay => out.extend(heard[from]),
                Mischief::Drop => return out,
                Mischief::Replace(_) => {}
            }
        }
        out.insert(0, datagram);
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_the_rate_stays_below_the_request_and_all_arrives(
        plan in prop::collection::vec(mischief(), 0..40),
    ) {
        let settings = [Some(wants(50)), Some(wants(50))];
        let mut wire = Wire::new(600_000, settings, ms(10), router(plan));
        for tenth in 1..=300 {
            wire.run(at(100 * tenth));
            for driver in wire.drivers.iter().flatten() {
                // Encoded up: 50 Mbit/s are 50 048 kbit/s.
                prop_assert!(driver.granted().is_none_or(|rate| rate.bit_per_s() <= 50_048_000));
                prop_assert!(driver.granted().is_none_or(|rate| rate.bit_per_s() >= 1000));
            }
            if wire.read == 600_000 {
                break;
            }
            // A grant of next to nothing is obeyed; then there is nothing to wait for.
            let slow = wire.drivers[0].as_ref().and_then(|d| d.granted()).is_some_and(|rate| rate < mbit(1));
            if slow {
                return Ok(());
            }
        }
        prop_assert_eq!(wire.read, 600_000, "at {}", wire.now);
    }
}
