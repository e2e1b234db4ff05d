//! Transfers: their two stacks, size, direction and what is asked of the path.

use crate::{DrawnStack, all_stacks, paths};
use farpath_elements::ElementSpec;
use farpath_path::Direction;
use farpath_sim::{FlowSetup, Opener, Setup};
use farpath_units::{Bytes, Duration, Instant, Messages, Pace, Rate, Writing};
use proptest::prelude::*;

/// A flow and the stacks of its two ends.
#[derive(Debug, Clone)]
pub struct DrawnFlow {
    start: Duration,
    direction: Direction,
    opener: Opener,
    size: u64,
    /// Length of the messages of a stream, the time between two, and the length of each answer.
    stream: Option<(u64, Duration, u64)>,
    /// How long a message of a stream without answers is worth sending.
    lifetime: Option<Duration>,
    /// How a file is written.
    writing: Writing,
    request: u64,
    access: Duration,
    /// Mean, of both hosts.
    jitter: Duration,
    /// The explicit rate that the sender asks for, beside what its stack does.
    wanted: Option<Rate>,
    sender: DrawnStack,
    receiver: DrawnStack,
}

impl DrawnFlow {
    /// As the simulator is told. Of segments of a few bytes, and of windows of a few, less is transferred.
    pub fn setup(&self) -> FlowSetup {
        let (mut sender, receiver) = (self.sender.config.clone(), self.receiver.config.clone());
        sender.explicit_rate.wanted = self.wanted.or(sender.explicit_rate.wanted);
        let smss = sender.mss.0.min(receiver.mss.0).saturating_sub(12).max(1);
        let buffer = sender.send.buffer.map_or(u64::MAX, |buffer| buffer.0).min(receiver.receive.buffer.0);
        let most = (smss * 2_000).min(buffer.saturating_mul(1_000));
        let size = self.size.min(most);
        let messages = self.stream.map(|(length, interval, _)| Messages {
            size: Bytes(length),
            pace: Pace::Every(interval),
            count: size / length,
        });
        // Some thousand pieces at the most.
        let at_least = |bytes: Bytes| bytes.max(Bytes(size / 2_000));
        let writing = Writing {
            window: self.writing.window.map(at_least),
            update_every: self.writing.update_every.map(at_least),
            write_size: self.writing.write_size.map(at_least),
            ..self.writing
        };
        FlowSetup {
            start: Instant::ZERO + self.start,
            direction: self.direction,
            opener: self.opener,
            size: messages.map_or(Bytes(size), |messages| messages.total()),
            messages,
            reply: Bytes(self.stream.map_or(0, |(_, _, reply)| reply)),
            lifetime: self.lifetime.filter(|_| self.stream.is_some_and(|(_, _, reply)| reply == 0)),
            writing: if messages.is_none() { writing } else { Writing::default() },
            request: Bytes(self.request.min(most).min(sender.receive.buffer.0.saturating_mul(1_000))),
            sender,
            receiver,
            access: self.access,
            sender_jitter: self.jitter,
            receiver_jitter: self.jitter,
        }
    }
}

prop_compose! {
    /// Any way to write a file that ends.
    fn writings()(
        window in prop::option::of(1..200_000u64),
        update_every in prop::option::of(1..200_000u64),
        write_size in prop::option::of(1..50_000u64),
        think_ms in prop_oneof![Just(0), 0..100u64],
    ) -> Writing {
        Writing {
            window: window.map(Bytes),
            update_every: update_every.map(Bytes),
            write_size: write_size.map(Bytes),
            think_time: Duration::from_millis(think_ms),
        }
    }
}

prop_compose! {
    /// Any flow between any stacks.
    pub fn flows()(
        start in prop_oneof![Just(0), 0..10_000u64],
        (backwards, download) in any::<(bool, bool)>(),
        size in prop_oneof![1 => 0..2u64, 4 => 0..100_000u64, 3 => 0..3_000_000u64],
        stream in prop::option::weighted(0.2, (1..5_000u64, 0..100u64, prop_oneof![2 => Just(0), 1 => 1..5_000u64])),
        lifetime in prop::option::weighted(0.3, 0..500u64),
        writing in prop::option::weighted(0.2, writings()),
        request in prop_oneof![Just(0), 0..100_000u64],
        access in prop_oneof![Just(0), 0..50u64],
        jitter in prop_oneof![2 => Just(0), 1 => 0..10_000u64],
        wanted in prop::option::weighted(0.2, 1_000..1_000_000_000u64),
        sender in all_stacks(),
        receiver in all_stacks(),
    ) -> DrawnFlow {
        DrawnFlow {
            start: Duration::from_millis(start),
            direction: if backwards { Direction::Reverse } else { Direction::Forward },
            opener: if download { Opener::Receiver } else { Opener::Sender },
            size,
            stream: stream.map(|(length, ms, reply)| (length, Duration::from_millis(ms), reply)),
            lifetime: lifetime.map(Duration::from_millis),
            writing: writing.unwrap_or_default(),
            request,
            access: Duration::from_millis(access),
            jitter: Duration::from_micros(jitter),
            wanted: wanted.and_then(Rate::from_bit_per_s),
            sender,
            receiver,
        }
    }
}

/// Flows over a path; what is not over within an hour ends.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The path.
    pub path: Vec<ElementSpec>,
    /// One at least.
    pub flows: Vec<DrawnFlow>,
    /// Of the run.
    pub seed: u64,
}

impl Scenario {
    /// As the simulator is told.
    pub fn setup(&self) -> Setup {
        let flows = self.flows.iter().map(DrawnFlow::setup).collect();
        Setup { path: self.path.clone(), flows, seed: self.seed, horizon: Duration::from_secs(3600) }
    }
}

prop_compose! {
    /// One to three flows over any path.
    pub fn scenarios()(path in paths(), flows in prop::collection::vec(flows(), 1..4), seed in any::<u64>()) -> Scenario {
        Scenario { path, flows, seed }
    }
}
