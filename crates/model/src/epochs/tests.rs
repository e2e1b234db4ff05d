use super::*;

/// A window without a limit on an endless queue, 100 ms round trip.
fn flow(loss: f64, segments: f64) -> LossEpochs {
    LossEpochs {
        segments,
        round: Duration::from_millis(100),
        spacing: Duration::ZERO,
        queue: None,
        mark: None,
        window: 1e7,
        loss: Probability::new(loss).expect("a probability"),
        slow_start: SlowStart { initial_window: 10.0, threshold: f64::INFINITY, factor: 2.0, hystart: false },
        avoidance: Avoidance::Reno { per_round: 1.0 },
        repair: Repair { together: true, deflates: false, lost_again: Duration::from_secs(1) },
    }
}

fn cubic(loss: f64, segments: f64) -> LossEpochs {
    LossEpochs { avoidance: Avoidance::Cubic { fast_convergence: true }, ..flow(loss, segments) }
}

fn seconds(epochs: &LossEpochs) -> f64 {
    epochs.transfer().expect("no zeros").value.seconds
}

/// Segments in flight, on average, of a flow that has gone on for long.
fn mean_window(of: fn(f64, f64) -> LossEpochs, loss: f64) -> f64 {
    let (short, long) = (100.0 / loss, 200.0 / loss);
    (long - short) * 0.1 / (seconds(&of(loss, long)) - seconds(&of(loss, short)))
}

/// Mathis et al. 1997, Table 1: C = 1.31 for random losses and an ACK for each segment. The round of a repair, which
/// the law leaves out, costs less the larger the window.
#[test]
fn reno_at_random_losses_is_the_square_root_law() {
    for (loss, tolerance) in [(1e-6, 0.01), (1e-5, 0.02), (1e-4, 0.04)] {
        let c = mean_window(flow, loss) * libm::sqrt(loss);
        assert!((c / 1.31 - 1.0).abs() < tolerance, "{loss}: C = {c}");
    }
}

/// RFC 9438 section 5.1: the window is proportional to `(RTT / p)^(3/4)`, whatever the spacing of losses is.
#[test]
fn cubic_at_random_losses_is_the_three_quarters_law() {
    let ratio = mean_window(cubic, 1e-8) / mean_window(cubic, 1e-7);
    assert!((ratio / libm::pow(10.0, 0.75) - 1.0).abs() < 0.01, "{ratio}");
}

/// RFC 9438 section 4.3: where Reno's window is larger than the curve's, CUBIC is as fast as Reno. A sixth more, since
/// the share that a loss takes is smaller than what section 4.3's average counts on when losses are random.
#[test]
fn cubic_at_small_windows_is_reno() {
    let short_round = |epochs: LossEpochs| LossEpochs { round: Duration::from_millis(1), ..epochs };
    let (reno, cubic) = (short_round(flow(1e-3, 1e6)), short_round(cubic(1e-3, 1e6)));
    let ratio = seconds(&reno) / seconds(&cubic);
    assert!((0.95..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn without_loss_and_with_room_nothing_is_reduced() {
    let transfer = flow(0.0, 1e5).transfer().expect("no zeros").value;
    // 10 (2^n - 1) segments in n rounds.
    let rounds = libm::log2(1e5 / 10.0 + 1.0);
    assert!((transfer.seconds / 0.1 - rounds).abs() < 1.0, "{transfer:?}");
    assert_eq!((transfer.reductions, transfer.overflowed), (0.0, 0.0));
}

#[test]
fn more_loss_is_never_faster_and_a_longer_file_never_shorter() {
    for of in [flow, cubic] {
        let mut before = 0.0;
        for loss in [0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2] {
            let now = seconds(&of(loss, 1e5));
            assert!(now >= before, "{loss}: {now} after {before}");
            before = now;
        }
        let mut before = 0.0;
        for segments in [1.0, 10.0, 1e3, 3e4, 3.1e4, 1e5, 1e6, 1e7] {
            let now = seconds(&of(1e-4, segments));
            assert!(now > before, "{segments}: {now} after {before}");
            before = now;
        }
    }
}

/// The window swings between half of what path and queue hold, and that: with a queue of one bandwidth-delay product
/// the link is never idle, without one it is idle for a quarter of the time.
#[test]
fn a_queue_of_one_bandwidth_delay_product_keeps_the_link_busy() {
    let link = |queue, segments| LossEpochs {
        spacing: Duration::from_micros(100),
        queue: Some(queue),
        ..flow(0.0, segments)
    };
    // The second half of a long flow: the first begins with what slow start leaves, of a queue of one segment nothing.
    let utilization = |queue| 1e7 * 100e-6 / (seconds(&link(queue, 2e7)) - seconds(&link(queue, 1e7)));
    assert!(utilization(1000.0) > 0.99, "{}", utilization(1000.0));
    assert!((utilization(1.0) - 0.75).abs() < 0.02, "{}", utilization(1.0));
    let lost = link(1000.0, 1e7).transfer().expect("no zeros").value;
    assert!(lost.overflowed > lost.reductions && lost.reductions > 1.0, "{lost:?}");
    assert!(link(1000.0, 1e7).can_overflow() && !flow(0.0, 1e5).can_overflow());
}

/// A mark from 300 segments on, in a queue of 1000 that has room for the overshoot, loses nothing. CUBIC's 0.7 of
/// 1300 leaves the link idle for a while, and Reno's half for longer.
#[test]
fn marks_hold_the_window_down_without_a_loss() {
    let link = |of: fn(f64, f64) -> LossEpochs| LossEpochs {
        spacing: Duration::from_micros(100),
        queue: Some(2000.0),
        mark: Some(300.0),
        ..of(0.0, 1e6)
    };
    let [reno, cubic] = [flow, cubic].map(|of| link(of).transfer().expect("no zeros").value);
    assert!(reno.overflowed == 0.0 && reno.reductions > 1.0, "{reno:?}");
    assert!(cubic.overflowed == 0.0 && cubic.reductions > 1.0, "{cubic:?}");
    assert!(100.0 < cubic.seconds && cubic.seconds < reno.seconds, "{cubic:?} {reno:?}");
}

#[test]
fn ten_gigabit_at_600_ms_and_other_ends_of_the_range_are_numbers() {
    for loss in [0.0, 1e-17, 1e-12, 0.5, 1.0] {
        for of in [flow, cubic] {
            let far = LossEpochs {
                round: Duration::from_millis(600),
                spacing: Duration::from_nanos(1168),
                queue: Some(5e5),
                ..of(loss, 1e7)
            };
            let transfer = far.transfer().expect("no zeros").value;
            assert!(transfer.seconds.is_finite() && transfer.seconds > 0.0, "{loss}: {transfer:?}");
        }
    }
}

#[test]
fn what_it_says_nothing_of_is_refused() {
    assert!(LossEpochs { window: 0.0, ..flow(0.1, 10.0) }.transfer().is_err());
    assert!(LossEpochs { round: Duration::ZERO, ..flow(0.1, 10.0) }.transfer().is_err());
    let small = flow(0.05, 1e5).transfer().expect("no zeros");
    assert!(small.caveats[0].contains("timeouts"), "{small:?}");
}
