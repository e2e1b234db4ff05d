//! How fast the simulator is here: `make bench`. One line a figure, `name: value unit`.
//!
//! Ratios between lines of one run are what to compare; machines differ, and share their cores.

use farpath_path::{
    Direction, ElementKind, ElementSpec, MarkThreshold, PacketCount, PerDirection, QueueLimit,
};
use farpath_sim::{FlowResult, FlowSetup, Opener, Setup, Silent, simulate};
use farpath_tcp::Config;
use farpath_tcp::config::{RateReduction, RttSampling};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};

fn main() {
    for (name, window) in
        [("300 kB", 300_000), ("1.3 MB", 1_300_000), ("2.6 MB", 2_600_000), ("16 MB", 16_000_000)]
    {
        one_long_flow(&format!("window of {name}"), &long_fat(window));
    }
    for (name, window) in [("300 kB", 300_000), ("16 MB", 16_000_000)] {
        one_long_flow(&format!("all of recovery, {name}"), &modern(window));
    }
    hundred_flows("100 flows", &long_fat(8_000_000));
    hundred_flows("100 flows, all of recovery", &modern(8_000_000));
    noisy_download();
}

/// 2 GB over 1 Gbit/s and 10 ms without loss: the cost of a segment must not depend on the window.
fn one_long_flow(name: &str, stack: &Config) {
    let path = vec![gigabit(QueueLimit::Unlimited), delay(5)];
    let setup = setup(path, vec![flow(stack, 2_000_000_000)]);
    let (results, seconds) = timed(&setup);
    println!("{name}: {:.2} M segments/s", data_segments(&results) / seconds / 1e6);
}

/// A hundred flows whose slow start overshoots a queue of 1700 packets, for ten simulated seconds.
fn hundred_flows(name: &str, stack: &Config) {
    let path = vec![gigabit(QueueLimit::Packets(1700)), delay(10)];
    let mut setup = setup(path, vec![flow(stack, 1 << 40); 100]);
    setup.horizon = Duration::from_secs(10);
    let (results, seconds) = timed(&setup);
    let read: u64 = results.iter().map(|flow| flow.bytes_read.0).sum();
    let drops: u64 = results.iter().map(|flow| flow.drops.forward.total()).sum();
    println!("{name}, goodput: {:.1} Mbit/s", read as f64 * 8.0 / 10.0 / 1e6);
    println!("{name}, drops: {drops} packets");
    println!("{name}, time: {seconds:.3} s");
    println!("{name}: {:.2} M segments/s", data_segments(&results) / seconds / 1e6);
}

/// The high-BER paper's download at 1 % both ways, twenty seeds: what one run of a sweep costs.
fn noisy_download() {
    let loss_rate = PerDirection::both(Probability::new(0.01).expect("a probability"));
    let loss = ElementKind::Bernoulli { loss_rate, count: PacketCount::All };
    let path = vec![gigabit(QueueLimit::Unlimited), delay(20), element("loss", loss)];
    let mut stack = Config::default();
    stack.receive.buffer = Bytes(8760);
    let mut setup = setup(path, vec![flow(&stack, 10_000_000)]);
    let (mut segments, mut seconds) = (0.0, 0.0);
    for seed in 1..=20 {
        setup.seed = seed;
        let (results, taken) = timed(&setup);
        segments += data_segments(&results);
        seconds += taken;
    }
    println!("10 MB at 1 % loss, one run: {:.2} ms", seconds / 20.0 * 1e3);
    println!("10 MB at 1 % loss: {:.2} M segments/s", segments / seconds / 1e6);
}

fn timed(setup: &Setup) -> (Vec<FlowResult>, f64) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures this machine")]
    let begun = std::time::Instant::now();
    let results = simulate(setup, &mut Silent).expect("the path is well formed");
    (results, begun.elapsed().as_secs_f64())
}

fn data_segments(results: &[FlowResult]) -> f64 {
    results.iter().map(|flow| flow.sender.sender().stats().data_segments as f64).sum()
}

fn long_fat(window: u64) -> Config {
    let mut stack = Config::default();
    stack.receive.buffer = Bytes(window);
    stack.recovery.sack = true;
    stack.send.window_scaling = true;
    stack.send.timestamps = true;
    stack
}

/// The same with everything that loss recovery can do.
fn modern(window: u64) -> Config {
    let mut stack = long_fat(window);
    stack.rto.sampling = RttSampling::EveryAck;
    let recovery = &mut stack.recovery;
    (recovery.rack, recovery.tail_loss_probe, recovery.frto, recovery.eifel) = (true, true, true, true);
    (recovery.dsack, recovery.undo_by_dsack) = (true, true);
    recovery.rate_reduction = RateReduction::SafeAck;
    stack
}

fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

fn gigabit(queue: QueueLimit) -> ElementSpec {
    let kind = ElementKind::Link {
        rate: PerDirection::both(Rate::from_bit_per_s(1_000_000_000).expect("not zero")),
        queue: PerDirection::both(queue),
        mark: PerDirection::both(MarkThreshold::Never),
        overhead: Bytes(38),
        min_packet: Bytes(46),
    };
    element("link", kind)
}

fn delay(each_way_ms: u64) -> ElementSpec {
    element("delay", ElementKind::Delay { delay: PerDirection::both(Duration::from_millis(each_way_ms)) })
}

fn setup(path: Vec<ElementSpec>, flows: Vec<FlowSetup>) -> Setup {
    Setup { path, flows, seed: 1, horizon: Duration::from_secs(3600) }
}

fn flow(stack: &Config, size: u64) -> FlowSetup {
    FlowSetup {
        start: Instant::ZERO,
        direction: Direction::Forward,
        opener: Opener::Receiver,
        size: Bytes(size),
        request: Bytes::ZERO,
        sender: stack.clone(),
        receiver: stack.clone(),
    }
}
