//! A flow router with a million live flows: what a flow's state takes up, and how many signals it decides.

use crate::clock::timed;
use crate::figure::{Figure, Target};
use farpath_tia1039::router::{Decision, FlowKey, Numbers, Port, RouterSettings};
use farpath_tia1039::{Message, Priority, QosMark, RateWord, Structure};
use farpath_units::{Bytes, Duration, Instant, Rate};

const FLOWS: u64 = 1_000_000;
/// Signals of one repetition, and data packets of the other measurement.
const SIGNALS: u64 = 2_000_000;
const REPETITIONS: u32 = 5;

/// Measures, and tells each figure when it is known.
pub fn measure(mut told: impl FnMut(Figure)) {
    let mut world = World::new();
    let bytes = world.port.state_bytes() as f64 / world.port.flows() as f64;
    told(Figure {
        name: "flow router, 1 000 000 flows, state".to_owned(),
        value: Some(bytes),
        unit: "B/flow",
        target: Target::AtMost(128.0),
    });
    let fastest = |world: &mut World, work: fn(&mut World)| {
        let seconds = (0..REPETITIONS).map(|_| timed(|| work(world)).1).fold(f64::MAX, f64::min);
        Some(SIGNALS as f64 / seconds / 1e6)
    };
    told(Figure {
        name: "flow router, 1 000 000 flows, signals".to_owned(),
        value: fastest(&mut world, World::signals),
        unit: "M/s",
        target: Target::AtLeast(2.0),
    });
    told(Figure {
        name: "flow router, 1 000 000 flows, data packets".to_owned(),
        value: fastest(&mut world, World::data),
        unit: "M/s",
        target: Target::None,
    });
}

/// What each packet shows: what came with its flow's answer is acknowledged.
const NUMBERS: Numbers = Numbers { next_seq: Some(0), acknowledged: Some(0) };

/// A full router and the packets that come to it, in random order of flows: nothing is in a cache by luck.
struct World {
    port: Port,
    now: Instant,
    random: u64,
}

impl World {
    /// A line on which the million has about half of what it asks for.
    fn new() -> World {
        let line = Rate::from_bit_per_s(1_000_000_000_000).expect("not zero");
        let mut world =
            World { port: Port::new(&RouterSettings::default(), line, 1), now: Instant::ZERO, random: 1 };
        for flow in 0..FLOWS {
            let asked = world.ask(flow, Message::Request);
            // Who shows no sign of an answer counts as made up.
            let answer = Structure::decode_v4(&asked).expect("it was written here");
            world.port.answered(world.now, World::key(flow), &answer, Some(0));
            world.port.pass(world.now, World::key(flow), QosMark::Flow, Bytes(1500), NUMBERS);
        }
        world
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn key(flow: u64) -> FlowKey {
        FlowKey::from(u128::from(flow) << 32 | 0x0a00_0001)
    }

    /// A request from the bytes of its packet to the bytes that leave: 0.1 to 4 Mbit/s of an Available Rate.
    fn ask(&mut self, flow: u64, message: Message) -> [u8; 16] {
        self.now += Duration::from_nanos(400);
        let available = RateWord::from_bits(0x4c00 + (self.random() % 0x0a00) as u16);
        let preemption = Priority::new((flow % 64) as u8).expect("a level");
        let mut bytes = Structure { message, preemption, ..Structure::request(available) }.encode_v4();
        let mut structure = Structure::decode_v4(&bytes).expect("it was written here");
        self.port.ask(self.now, World::key(flow), Some(0), None, &mut structure);
        bytes.copy_from_slice(&structure.encode_v4());
        bytes
    }

    /// Renegotiations and their answers, and each 16th time a flow that closes and begins anew.
    fn signals(&mut self) {
        for _ in 0..SIGNALS / 2 {
            let flow = self.random() % FLOWS;
            if self.random.is_multiple_of(16) {
                self.port.closed(World::key(flow));
                self.ask(flow, Message::Request);
                continue;
            }
            let asked = self.ask(flow, Message::Renegotiate);
            let answer = Structure::decode_v4(&asked).expect("it was written here");
            self.port.answered(self.now, World::key(flow), &answer, Some(0));
        }
    }

    /// Packets of flows that hold a grant.
    fn data(&mut self) {
        let mut passed = 0;
        for _ in 0..SIGNALS {
            self.now += Duration::from_nanos(12);
            let flow = self.random() % FLOWS;
            let decision = self.port.pass(self.now, World::key(flow), QosMark::Flow, Bytes(1500), NUMBERS);
            passed += u64::from(matches!(decision, Decision::Pass { .. }));
        }
        assert!(passed > SIGNALS / 2, "most flows send less than they may: {passed} of {SIGNALS} passed");
    }
}
