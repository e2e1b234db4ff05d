//! ECN over a queue that marks: what it saves, and what a threshold costs.

use crate::common::{bottleneck, delay, run, seconds, setup, upload};
use farpath_elements::{ElementKind, ElementSpec, Link, MarkThreshold, QueueLimit};
use farpath_path::{DropCause, PerDirection};
use farpath_sim::{FlowEnd, FlowResult};
use farpath_tcp::Config;
use farpath_tcp::config::{CongestionControlKind, EcnMode};
use farpath_units::{Bytes, Duration};

fn stack(control: CongestionControlKind, ecn: EcnMode) -> Config {
    let mut stack = Config::default();
    stack.congestion.control = control;
    stack.congestion.initial_window = 10;
    stack.recovery.sack = true;
    stack.receive.buffer = Bytes(8_000_000);
    stack.send.window_scaling = true;
    stack.send.ecn = ecn;
    stack
}

fn marking(link_rate: &str, queue: QueueLimit, mark: MarkThreshold) -> ElementSpec {
    let mut link = bottleneck(link_rate, 0, queue);
    if let ElementKind::Link(Link { mark: threshold, .. }) = &mut link.kind {
        *threshold = PerDirection::both(mark);
    }
    link
}

fn flow(path: Vec<ElementSpec>, stack: &Config, bytes: u64) -> FlowResult {
    run(&setup(path, vec![upload(stack, bytes)], 1)).remove(0)
}

/// 10 Mbit/s over a geostationary satellite, a queue of one bandwidth-delay product: slow start doubles into it and
/// loses hundreds of segments, whose repair takes seconds. A mark at 0.3 of it tells a round trip earlier.
#[test]
fn marking_removes_every_drop_of_the_overshoot_and_is_no_slower_with_cubic() {
    let queue = QueueLimit::Bytes(Bytes(700_000));
    let mark = MarkThreshold::Bytes(Bytes(200_000));
    let path = || vec![marking("10 Mbit/s", queue, mark), delay("279 ms")];
    for (control, sack, slack) in [
        // Without SACK the repair takes a round trip for each hole.
        (CongestionControlKind::Cubic, false, 0.5),
        // With it, hardly longer than the window takes to grow back.
        (CongestionControlKind::Cubic, true, 1.01),
        // Reno, halved at 1.3 bandwidth-delay products, no longer fills the link: the price of the threshold, see
        // `reno_uses_the_link_as_the_threshold_lets_it`.
        (CongestionControlKind::Reno, true, 1.25),
    ] {
        let [dropped, marked] = [EcnMode::Off, EcnMode::Request].map(|ecn| {
            let mut stack = stack(control, ecn);
            stack.recovery.sack = sack;
            flow(path(), &stack, 10_000_000)
        });
        assert_eq!([dropped.end, marked.end], [FlowEnd::Completed; 2]);
        let overflows = |flow: &FlowResult| flow.drops.forward.count_of(DropCause::QueueOverflow);
        assert!(overflows(&dropped) > 100 && dropped.marks == 0, "{control:?}: {}", overflows(&dropped));
        assert_eq!(marked.drops.forward.total(), 0, "{control:?}");
        let sent = marked.sender.sender().stats();
        assert_eq!((sent.retransmissions, sent.timeouts), (0, 0), "{control:?}");
        assert!(marked.marks > 0 && sent.ecn_responses > 0, "{control:?}");
        let [dropped, marked] = [&dropped, &marked].map(seconds);
        assert!(marked < slack * dropped, "{control:?}, SACK {sack}: {marked} s after {dropped} s");
    }
}

/// Without the ends' agreement a mark is nothing, and neither is ECN without a mark.
#[test]
fn a_threshold_or_ecn_alone_changes_nothing() {
    let queue = QueueLimit::Packets(50);
    let at = |mark, ecn| {
        let path = vec![marking("10 Mbit/s", queue, mark), delay("20 ms")];
        let flow = flow(path, &stack(CongestionControlKind::Cubic, ecn), 5_000_000);
        (flow.ended_at, flow.drops, flow.marks, flow.sender.sender().stats().data_segments)
    };
    let plain = at(MarkThreshold::Never, EcnMode::Off);
    assert!(plain.1.forward.total() > 0);
    assert_eq!(at(MarkThreshold::Packets(10), EcnMode::Off), plain);
    assert_eq!(at(MarkThreshold::Never, EcnMode::Request), plain);
    // Two that only accept have nobody to ask.
    assert_eq!(at(MarkThreshold::Packets(10), EcnMode::Accept), plain);
}

/// Reno goes from W/2 to W. Where the queue marks from one bandwidth-delay product on, W/2 fills the link; where it
/// marks what hardly waits, only W does, and 3/4 of the link are used on the way there. Five packets are what the bursts
/// of delayed ACKs need.
#[test]
fn reno_uses_the_link_as_the_threshold_lets_it() {
    let utilization = |mark: u64| {
        let queue = QueueLimit::Packets(1000);
        let path = vec![marking("12 Mbit/s", queue, MarkThreshold::Packets(mark)), delay("50 ms")];
        let mut setup =
            setup(path, vec![upload(&stack(CongestionControlKind::Reno, EcnMode::Request), 1 << 40)], 1);
        setup.horizon = Duration::from_secs(600);
        let flow = run(&setup).remove(0);
        assert_eq!(flow.drops.forward.total(), 0);
        flow.bytes_read.0 as f64 * 8.0 / 600.0 / (12e6 * 1460.0 / 1500.0)
    };
    let [whole, part] = [utilization(100), utilization(5)];
    assert!(whole > 0.99, "{whole}");
    assert!((0.75..0.80).contains(&part), "{part}");
}
