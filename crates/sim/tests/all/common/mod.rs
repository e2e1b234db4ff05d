//! Stacks, paths and runs that the tests share.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod log;
pub mod stacks;

use farpath_elements::{
    Bernoulli, Delay, ElementKind, ElementSpec, Link, Listed, MarkThreshold, PacketCount, QueueLimit,
};
use farpath_path::PerDirection;
use farpath_sim::{FlowResult, FlowSetup, Observer, Opener, Setup, Silent, simulate};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};

/// A duration as text: `"1.5 s"`.
pub fn duration(text: &str) -> Duration {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is a duration"))
}

/// A moment as text: `"1.5 s"` after the start.
pub fn time(text: &str) -> Instant {
    Instant::ZERO + duration(text)
}

pub fn probability(p: f64) -> Probability {
    Probability::new(p).expect("a probability")
}

pub fn rate(text: &str) -> Rate {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is a rate"))
}

pub fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

/// The same propagation both ways.
pub fn delay(each_way: &str) -> ElementSpec {
    delay_of(duration(each_way))
}

pub fn delay_of(each_way: Duration) -> ElementSpec {
    element("delay", ElementKind::Delay(Delay { delay: PerDirection::both(each_way) }))
}

/// A point-to-point link with `overhead` bytes of framing and no limit to its queue.
pub fn link(link_rate: &str, overhead: u64) -> ElementSpec {
    bottleneck(link_rate, overhead, QueueLimit::Unlimited)
}

pub fn bottleneck(link_rate: &str, overhead: u64, queue: QueueLimit) -> ElementSpec {
    let kind = ElementKind::Link(Link {
        rate: PerDirection::both(rate(link_rate)),
        queue: PerDirection::both(queue),
        mark: PerDirection::both(MarkThreshold::Never),
        aqm: PerDirection::default(),
        overhead: Bytes(overhead),
        min_packet: Bytes::ZERO,
    });
    element("link", kind)
}

/// 10 Mbit/s Ethernet: 38 B of framing, 46 B at least.
pub fn ethernet(name: &str) -> ElementSpec {
    let kind = ElementKind::Link(Link {
        rate: PerDirection::both(rate("10 Mbit/s")),
        queue: PerDirection::both(QueueLimit::Unlimited),
        mark: PerDirection::both(MarkThreshold::Never),
        aqm: PerDirection::default(),
        overhead: Bytes(38),
        min_packet: Bytes(46),
    });
    element(name, kind)
}

/// Independent loss, in the data direction and in the ACK direction.
pub fn loss(forward: f64, reverse: f64) -> ElementSpec {
    let loss_rate = PerDirection { forward: probability(forward), reverse: probability(reverse) };
    element("loss", ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::All }))
}

/// Drops the packets with these numbers, from 1 in each direction; SYNs and pure ACKs count too.
pub fn drops(forward: &[u64], reverse: &[u64]) -> ElementSpec {
    let packets = PerDirection { forward: forward.to_vec(), reverse: reverse.to_vec() };
    element(
        "drops",
        ElementKind::Listed(Listed { times: PerDirection::default(), packets, count: PacketCount::All }),
    )
}

/// A file that the sender opens for, at time zero, with one stack at both ends.
pub fn upload(stack: &Config, size: u64) -> FlowSetup {
    FlowSetup::upload(stack, Bytes(size))
}

/// A file that the receiver opens for.
pub fn download(stack: &Config, size: u64, request: u64) -> FlowSetup {
    FlowSetup { opener: Opener::Receiver, request: Bytes(request), ..upload(stack, size) }
}

/// Far enough away for anything that ends.
pub const FAR: Duration = Duration::from_secs(1_000_000);

pub fn setup(path: Vec<ElementSpec>, flows: Vec<FlowSetup>, seed: u64) -> Setup {
    Setup { path, flows, seed, horizon: FAR }
}

pub fn run(setup: &Setup) -> Vec<FlowResult> {
    observed(setup, &mut Silent)
}

pub fn observed(setup: &Setup, observer: &mut impl Observer) -> Vec<FlowResult> {
    simulate(setup, observer).expect("the path is well formed")
}

/// One flow that starts at time zero, seed 1.
pub fn run_one(path: Vec<ElementSpec>, flow: FlowSetup) -> FlowResult {
    run(&setup(path, vec![flow], 1)).remove(0)
}

/// Transfer time of a flow that starts at time zero.
pub fn seconds(result: &FlowResult) -> f64 {
    let time = result.transfer_time(Instant::ZERO);
    time.unwrap_or_else(|| panic!("it completes: {:?} at {}", result.end, result.ended_at)).as_secs_f64()
}

/// Holds `measured` against `expected` with a relative tolerance.
#[track_caller]
pub fn assert_close(measured: f64, expected: f64, tolerance: f64) {
    let error = (measured / expected - 1.0).abs();
    assert!(error <= tolerance, "{measured} against {expected}: off by {error:.5}, allowed {tolerance}");
}
