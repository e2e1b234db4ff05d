//! Simulated segments per second of one flow over 1 Gbit/s and 10 ms, at several windows: `make bench`.
//!
//! Prints one line a figure. Ratios between lines of one run are what to compare; machines differ.

use farpath_path::{Direction, ElementKind, ElementSpec, PerDirection, QueueLimit};
use farpath_sim::{FlowSetup, Opener, Setup, Silent, simulate};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration, Instant, Rate};

fn main() {
    for window in [300_000, 1_300_000, 2_600_000, 16_000_000] {
        let mut stack = Config::default();
        stack.receive.buffer = Bytes(window);
        stack.recovery.sack = true;
        stack.send.window_scaling = true;
        stack.send.timestamps = true;
        let size = Bytes(2_000_000_000);
        let setup = Setup { path: path(), flows: vec![flow(&stack, size)], seed: 1, horizon: Duration::from_secs(3600) };
        #[expect(clippy::disallowed_methods, reason = "a benchmark measures this machine")]
        let begun = std::time::Instant::now();
        let results = simulate(&setup, &mut Silent).expect("the path is well formed");
        let taken = begun.elapsed().as_secs_f64();
        let segments = results[0].sender.sender().stats().data_segments;
        println!(
            "one flow, 1 Gbit/s, 10 ms, {:>8} window: {:.2} s simulated, {segments} segments in {taken:.3} s, {:.2} M segments/s",
            Bytes(window).to_string(),
            results[0].transfer_time(Instant::ZERO).unwrap_or_default().as_secs_f64(),
            segments as f64 / taken / 1e6,
        );
    }
}

fn path() -> Vec<ElementSpec> {
    let link = ElementKind::Link {
        rate: PerDirection::both(Rate::from_bit_per_s(1_000_000_000).expect("not zero")),
        queue: PerDirection::both(QueueLimit::Unlimited),
        overhead: Bytes(38),
        min_packet: Bytes(46),
    };
    let delay = ElementKind::Delay { delay: PerDirection::both(Duration::from_millis(5)) };
    vec![
        ElementSpec { name: "link".to_owned(), kind: link },
        ElementSpec { name: "delay".to_owned(), kind: delay },
    ]
}

fn flow(stack: &Config, size: Bytes) -> FlowSetup {
    FlowSetup {
        start: Instant::ZERO,
        direction: Direction::Forward,
        opener: Opener::Receiver,
        size,
        request: Bytes::ZERO,
        sender: stack.clone(),
        receiver: stack.clone(),
    }
}
