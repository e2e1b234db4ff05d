//! What holds for every input: more loss, more delay or less window never makes a prediction faster, and
//! predictions meet where one is the limit of another.

use farpath_model::cardwell::Cardwell;
use farpath_model::lossless::{LosslessTransfer, Opener};
use farpath_model::mathis::Mathis;
use farpath_model::pftk::Pftk;
use farpath_model::recovery::{Growth, IsolatedDrop, table};
use farpath_model::window_limit::{DelayedAckCycle, WindowLimit};
use farpath_model::{Hop, Path};
use farpath_units::{Ber, Bytes, Duration, Probability, Rate};
use proptest::prelude::*;

fn loss() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64, (-18.0..0.0_f64).prop_map(|x| libm::pow(10.0, x))]
}

fn probability(p: f64) -> Probability {
    Probability::new(p).expect("drawn between 0 and 1")
}

fn pftk(p: f64, rtt_ms: u64, wmax: Option<u64>) -> Pftk {
    Pftk {
        mss: Bytes(1460),
        rtt: Duration::from_millis(rtt_ms),
        t0: Duration::from_millis(4 * rtt_ms + 200),
        loss_event_rate: probability(p),
        ack_every: 2,
        wmax: wmax.map(Bytes),
    }
}

fn cardwell(size: u64, p: f64, rwnd: Option<u64>) -> Cardwell {
    Cardwell {
        size: Bytes(size),
        mss: Bytes(1460),
        rtt: Duration::from_millis(100),
        t0: Duration::from_secs(1),
        syn_timeout: Duration::from_secs(1),
        forward_loss: probability(p),
        reverse_loss: Probability::ZERO,
        initial_window: 2,
        ack_every: 2,
        rwnd: rwnd.map(Bytes),
        delayed_ack: Duration::ZERO,
    }
}

fn path(rate: u64, rtt_us: u64) -> Path {
    let rate = Rate::from_bit_per_s(rate).expect("drawn above zero");
    Path::symmetric(vec![Hop::ethernet(rate, Duration::from_micros(rtt_us / 2))])
}

fn transfer(path: &Path, size: u64, rwnd: u64, ack_every: u64) -> LosslessTransfer<'_> {
    LosslessTransfer {
        path,
        size: Bytes(size),
        mss: Bytes(1460),
        rwnd: Bytes(rwnd),
        initial_window: 2,
        initial_ssthresh: Bytes::MAX,
        ack_every,
        delayed_ack_timeout: Duration::from_millis(200),
        opener: Opener::Sender,
    }
}

fn received(transfer: LosslessTransfer<'_>) -> f64 {
    transfer.times().expect("no zeros").value.last_byte_received.as_secs_f64()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn more_loss_is_never_faster(a in loss(), b in loss(), rtt in 1_u64..100_000, wmax in prop::option::of(1_u64..1 << 40)) {
        let (less, more) = (a.min(b), a.max(b));
        for form in [Pftk::goodput, Pftk::approximate, Pftk::rfc5348] {
            let of = |p| form(&pftk(p, rtt, wmax)).expect("no zeros").value.bytes_per_s();
            // The full model steps by a hair where the window starts to limit it.
            prop_assert!(of(more) <= of(less) * 1.000_001, "{less} {more}: {} {}", of(less), of(more));
        }
        let of = |p| {
            let law = Mathis { mss: Bytes(1460), rtt: Duration::from_millis(rtt), loss_rate: probability(p), ack_every: 2, rwnd: None };
            law.throughput().expect("no zeros").value.bytes_per_s()
        };
        prop_assert!(of(more) <= of(less));
    }

    #[test]
    fn longer_paths_and_smaller_windows_are_never_faster(p in loss(), a in 1_u64..100_000, b in 1_u64..100_000, w in 1_u64..1 << 40, v in 1_u64..1 << 40) {
        let of = |rtt, wmax| pftk(p, rtt, Some(wmax)).goodput().expect("no zeros").value.bytes_per_s();
        prop_assert!(of(a.max(b), w) <= of(a.min(b), w) * 1.000_001);
        let of = |rtt, wmax| pftk(p, rtt, Some(wmax)).approximate().expect("no zeros").value.bytes_per_s();
        prop_assert!(of(a, w.min(v)) <= of(a, w.max(v)));
    }

    #[test]
    fn received_is_never_more_than_sent(p in loss(), rtt in 1_u64..100_000, wmax in prop::option::of(1_u64..1 << 40)) {
        let flow = pftk(p, rtt, wmax);
        let (sent, arrived) = (flow.send_rate().expect("no zeros").value, flow.goodput().expect("no zeros").value);
        prop_assert!(arrived.bytes_per_s() <= sent.bytes_per_s() * 1.000_001);
    }

    #[test]
    fn larger_files_take_longer(a in 1_u64..1 << 45, b in 1_u64..1 << 45, p in 0.0..0.49_f64, rwnd in prop::option::of(1460_u64..1 << 40)) {
        let of = |size| cardwell(size, p, rwnd).latency().expect("no zeros").value.total().as_secs_f64();
        prop_assert!(of(a.min(b)) <= of(a.max(b)) * 1.000_001);
    }

    #[test]
    fn linear_packet_error_rate_is_the_upper_bound(ber in loss(), size in 1_u64..1 << 20) {
        let ber = Ber::new(ber).expect("drawn between 0 and 1");
        let exact = farpath_model::ber::per(Bytes(size), ber).expect("no zeros").value.fraction();
        let linear = farpath_model::ber::per_linear(Bytes(size), ber).expect("no zeros").value;
        prop_assert!((0.0..=1.0).contains(&exact) && exact <= linear * (1.0 + 1e-12));
    }

    #[test]
    fn the_walk_respects_the_link_the_window_and_the_clock(
        rate in prop_oneof![9_600_u64..1_000_000, 1_000_000_u64..10_000_000_000],
        rtt_us in 1_u64..2_000_000,
        size in 1_u64..5_000_000,
        rwnd in 1_u64..1 << 24,
        ack_every in 1_u64..4,
    ) {
        let path = path(rate, rtt_us);
        let transfer = transfer(&path, size, rwnd, ack_every);
        let got = transfer.times().expect("no zeros").value;
        prop_assert!(got.established <= got.last_byte_received);
        prop_assert!(got.last_byte_received <= got.last_byte_acknowledged);
        let data = got.last_byte_received.as_secs_f64() - got.established.as_secs_f64();
        prop_assert!(data * rate as f64 / 8.0 >= size as f64);
        let rounds = (size as f64 / rwnd as f64 - 1.0).max(0.0);
        prop_assert!(data >= rounds * path.propagation().as_secs_f64() * 0.999_999);
    }

    #[test]
    fn the_walk_meets_the_steady_cycle_on_long_transfers(
        rate in 100_000_u64..1_000_000_000,
        rtt_us in 1_u64..500_000,
        window in 2_u64..200,
        ack_every in 1_u64..3,
    ) {
        let path = path(rate, rtt_us);
        let rwnd = Bytes(window * 1460);
        let cycle = DelayedAckCycle { path: &path, mss: Bytes(1460), rwnd, ack_every, delayed_ack_timeout: Duration::from_millis(200) };
        let steady = cycle.steady().expect("no zeros").value;
        // Between a path that idles in every round and one that never does, an odd window changes its pattern.
        prop_assume!(window % ack_every == 0);
        let size = 1460 * window * 20_000;
        let walked = received(transfer(&path, size, rwnd.0, ack_every));
        let predicted = steady.throughput.time_for(Bytes(size)).as_secs_f64();
        prop_assert!((walked / predicted - 1.0).abs() < 1e-3, "{walked} {predicted}");
    }

    #[test]
    fn the_window_limit_is_never_slower_than_the_walk(rtt_us in 100_u64..1_000_000, window in 1_u64..40, size in 1_u64..3_000_000) {
        let path = path(1_000_000_000, rtt_us);
        let rwnd = Bytes(window * 1460);
        let limit = WindowLimit { rwnd, rtt: path.propagation().max(Duration::from_nanos(1)) };
        let least = limit.time(Bytes(size)).expect("no zeros").value.as_secs_f64();
        prop_assert!(received(transfer(&path, size, rwnd.0, 2)) >= least - limit.rtt.as_secs_f64());
    }

    #[test]
    fn a_drop_costs_more_in_a_larger_window(a in 1_u64..100_000, b in 1_u64..100_000, each in 1_u64..8) {
        for growth in [Growth::PerAck(each), Growth::PerRound(each)] {
            let of = |window| {
                let drop = IsolatedDrop { window, round: Duration::from_millis(100), growth };
                drop.cost().expect("no zeros").value.missing
            };
            prop_assert!(of(a.min(b)) <= of(a.max(b)) * 1.02 + 8.0, "{growth:?} {a} {b}");
        }
    }

    #[test]
    fn growth_never_shrinks(mss in 1_u64..100_000, start in 1_u64..1 << 50, steps in 0_u64..1000) {
        let rows = table(Bytes(mss), Bytes(start), steps).expect("no zeros").value;
        prop_assert_eq!(rows.len() as u64, steps + 1);
        prop_assert!(rows.windows(2).all(|pair| pair[1] >= pair[0] && pair[1].is_finite()));
    }
}
