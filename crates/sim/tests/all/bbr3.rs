//! BBR, version 3, on whole paths, beside version 1 and CUBIC.

use crate::common::{bottleneck, delay, loss, run, setup, stacks, upload};
use farpath_elements::QueueLimit;
use farpath_sim::FlowResult;
use farpath_tcp::Config;
use farpath_tcp::config::CongestionControlKind::{self, Bbr, Bbr3, Cubic};
use farpath_units::{Duration, Instant};

fn stack(control: CongestionControlKind) -> Config {
    let mut stack = stacks::linux(64 << 20);
    stack.congestion.control = control;
    stack
}

/// 20 MB over 20 Mbit/s and 40 ms, 8.3 s at the least, with a queue of three products.
fn transfer(control: CongestionControlKind, per: f64, seed: u64) -> FlowResult {
    let path = vec![bottleneck("20 Mbit/s", 0, QueueLimit::Packets(200)), loss(per, 0.0), delay("20 ms")];
    run(&setup(path, vec![upload(&stack(control), 20_000_000)], seed)).remove(0)
}

fn completed_in(control: CongestionControlKind, per: f64, seed: u64) -> f64 {
    transfer(control, per, seed).transfer_time(Instant::ZERO).expect("it completes").as_secs_f64()
}

fn seconds(control: CongestionControlKind, per: f64) -> f64 {
    completed_in(control, per, 1)
}

#[test]
fn it_finds_the_rate_of_the_bottleneck() {
    // 8.6 and 9.2 s: nine tenths of the line and more.
    for per in [0.0, 0.005] {
        let seconds = seconds(Bbr3, per);
        assert!((8.3..9.5).contains(&seconds), "{per}: {seconds} s");
    }
}

#[test]
fn up_to_two_percent_losses_cost_little_and_above_the_window_gives_way() {
    // The threshold is 2 %: 9.5 s at 1 %, 11.0 at 2 % and 63 at 5 % with `linux-6`, means of twelve seeds, where version 1 has 9.2 s at 5 %
    // and CUBIC 142. Which packets are lost decides: of four seeds at 2 % one took 12.6 s.
    for per in [0.01, 0.02] {
        let seconds = (1..=4).map(|seed| completed_in(Bbr3, per, seed)).sum::<f64>() / 4.0;
        assert!(seconds < 12.5, "{per}: {seconds} s");
    }
    let (v1, v3) = (transfer(Bbr, 0.05, 1), transfer(Bbr3, 0.05, 1));
    // A product is 97 kB: version 1 has half as much again in its window, version 3 a seventh of it.
    assert!(v1.mean_cwnd > 100_000.0 && v3.mean_cwnd < 30_000.0, "{} {}", v1.mean_cwnd, v3.mean_cwnd);
    let [v1, v3, cubic] = [Bbr, Bbr3, Cubic].map(|control| seconds(control, 0.05));
    assert!(v3 > 4.0 * v1 && 1.5 * v3 < cubic, "{v1} {v3} {cubic}");
}

/// Bytes that a flow has in a minute, and CUBIC beside it, over a queue of so many packets; a product is 67. Means of four seeds: when
/// BBR probes is drawn.
fn beside_cubic(control: CongestionControlKind, queue: u64) -> (u64, u64) {
    let path = vec![bottleneck("20 Mbit/s", 0, QueueLimit::Packets(queue)), delay("20 ms")];
    let flows = [control, Cubic].map(|control| upload(&stack(control), 200_000_000)).to_vec();
    let minute = Duration::from_secs(60);
    let (mut bbr, mut cubic) = (0, 0);
    for seed in 1..=4 {
        let flows = run(&farpath_sim::Setup { horizon: minute, ..setup(path.clone(), flows.clone(), seed) });
        bbr += flows[0].bytes_read.0 / 4;
        cubic += flows[1].bytes_read.0 / 4;
    }
    (bbr, cubic)
}

#[test]
fn over_shallow_queues_it_leaves_cubic_four_times_as_much_as_version_1() {
    // Half of a product, and one: 13 and 16 MB beside version 1, 55 and 68 beside version 3. Over two products and more the
    // two do not differ much: there the window of two products is what bounds version 1.
    for queue in [34, 67] {
        let [(v1, beside_v1), (v3, beside_v3)] = [Bbr, Bbr3].map(|control| beside_cubic(control, queue));
        assert!(beside_v3 > 3 * beside_v1, "{queue}: {beside_v1} {beside_v3}");
        assert!(v3 > beside_v3 && v1 > 7 * beside_v1, "{queue}: {v1} {v3}");
        // The line is used: 150 MB in a minute.
        assert!(v3 + beside_v3 > 135_000_000, "{queue}");
    }
}
