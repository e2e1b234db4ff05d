use super::rounds::{RTT, Rounds, SMSS};
use super::*;

impl Rounds<Bbr> {
    fn new() -> Self {
        Rounds::with_controller(Bbr::new)
    }

    /// A pipe that was filled at `rate`, and the queue of startup drained.
    fn steady(rate: u64) -> Self {
        let mut rounds = Rounds::new();
        for _ in 0..6 {
            rounds.sample(rate, |_| {});
        }
        assert_eq!(rounds.bbr.mode, Mode::ProbeBw);
        rounds
    }
}

/// So many bytes per second, in whole steps of Linux's.
fn counted(rate: u64) -> u64 {
    Rounds::new().bbr.steering.rate(rate, Duration::from_secs(1))
}

#[test]
fn the_first_window_is_paced_at_twice_over_ln_2_of_itself_per_round_trip() {
    // 10 kB in 100 ms, 1677 of Linux's units, times 739/256, less 1 %.
    assert_eq!(Rounds::new().bbr.steering.pacing_rate, (1677 * 1000 * 739 / 256 * 990_000) >> 24);
}

#[test]
fn startup_goes_on_while_the_rate_grows_by_a_quarter() {
    let mut rounds = Rounds::new();
    for n in 0..8 {
        rounds.sample(100_000 << n, |_| {});
        assert_eq!(rounds.bbr.mode, Mode::Startup);
    }
    // Three rounds that do not: the pipe is full.
    for _ in 0..2 {
        rounds.sample(100_000 << 7, |_| {});
        assert_eq!(rounds.bbr.mode, Mode::Startup);
    }
    rounds.sample(100_000 << 7, |sample| sample.pipe *= 3);
    assert_eq!((rounds.bbr.mode, rounds.bbr.pacing_gain), (Mode::Drain, DRAIN_GAIN));
    // When no more is in flight than the path holds, the rate is probed.
    rounds.sample(100_000 << 7, |_| {});
    assert_eq!(rounds.bbr.mode, Mode::ProbeBw);
}

#[test]
fn what_the_application_holds_down_does_not_end_startup_nor_lower_the_rate() {
    let mut rounds = Rounds::new();
    rounds.sample(1_000_000, |_| {});
    for _ in 0..10 {
        rounds.sample(100_000, |sample| sample.measured.as_mut().expect("measured").app_limited = true);
        assert_eq!((rounds.bbr.mode, rounds.bbr.model.max_bandwidth()), (Mode::Startup, counted(1_000_000)));
    }
}

#[test]
fn the_rate_is_the_largest_of_ten_rounds() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.sample(2_000_000, |_| {});
    for _ in 0..10 {
        rounds.sample(1_000_000, |_| {});
        assert_eq!(rounds.bbr.model.max_bandwidth(), counted(2_000_000));
    }
    rounds.sample(1_000_000, |_| {});
    assert_eq!(rounds.bbr.model.max_bandwidth(), counted(1_000_000));
}

#[test]
fn the_window_is_two_products_and_room_for_bursts() {
    let mut rounds = Rounds::steady(1_000_000);
    for _ in 0..6 {
        rounds.sample(1_000_000, |_| {});
    }
    let product = 100 * SMSS;
    assert!((2 * product..2 * product + 120 * SMSS).contains(&rounds.window.cwnd), "{}", rounds.window.cwnd);
}

#[test]
fn recovery_begins_with_what_is_in_flight_and_ends_with_the_window_of_before() {
    let mut rounds = Rounds::steady(1_000_000);
    let before = rounds.window.cwnd;
    let loss = LossEvent { now: rounds.now, flight_size: 0, pipe: 0, rwnd: 0, timeout: false };
    rounds.window.ssthresh = rounds.bbr.ssthresh_after(&rounds.window.clone(), &loss);
    rounds.sample(10_000, |sample| {
        (sample.repair, sample.lost, sample.pipe) = (Repair::Fast, 3000, 50_000);
    });
    assert_eq!(rounds.window.cwnd, 50_000 + 1000, "a segment for each that arrives");
    rounds.sample(10_000, |sample| sample.repair = Repair::None);
    assert!(rounds.window.cwnd >= before);
}

#[test]
fn the_round_trip_is_probed_with_four_segments_every_ten_seconds() {
    let mut rounds = Rounds::steady(1_000_000);
    while !matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }) {
        rounds.sample(1_000_000, |_| {});
        assert!(rounds.now <= Instant::ZERO + Duration::from_millis(10_200));
    }
    assert_eq!(rounds.window.cwnd, 4 * SMSS);
    // More than 200 ms from when no more is in flight, and a round.
    for _ in 0..3 {
        rounds.sample(40_000, |sample| sample.pipe = 4 * SMSS);
        assert!(matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }));
    }
    rounds.sample(40_000, |sample| sample.pipe = 4 * SMSS);
    assert_eq!(rounds.bbr.mode, Mode::ProbeBw);
    assert!(rounds.window.cwnd > 100 * SMSS, "the window of before");
}

#[test]
fn the_ten_seconds_are_counted_in_ticks() {
    // 10.001 s after the round trip was seen, where that was at the beginning and near the end of a jiffy.
    for (seen, over) in [(4000, false), (4003, true)] {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut rounds = Rounds::new();
        let window = rounds.window;
        rounds.bbr.on_established(&window, at(seen), Some(RTT / 2), Duration::from_millis(4));
        rounds.sample(1_000_000, |sample| sample.now = at(seen + 10_001));
        assert_eq!(matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }), over, "{seen} ms");
    }
}

#[test]
fn a_policed_rate_is_believed_after_two_intervals_and_for_48_rounds() {
    let mut rounds = Rounds::steady(1_000_000);
    let mut lost_ever = 0;
    for _ in 0..10 {
        lost_ever += 50_000;
        rounds.sample(200_000, |sample| (sample.lost, sample.lost_ever) = (50_000, lost_ever));
    }
    assert_eq!(rounds.bbr.policer.in_use(), Some(counted(200_000)));
    assert_eq!(rounds.bbr.pacing_gain, UNIT);
    let mut held = 0;
    while rounds.bbr.policer.in_use().is_some() {
        rounds.sample(200_000, |sample| sample.pipe = 4 * SMSS);
        held += 1;
    }
    assert!((46..=60).contains(&held), "{held}");
}

#[test]
fn bandwidth_is_counted_in_linuxs_steps() {
    let ten_segments_in = |seconds, units| {
        let steering = Steering::new(&crate::Config::default().congestion, 1448, HIGH_GAIN, units);
        steering.rate(14_480, Duration::from_secs(seconds))
    };
    // BW_UNIT * 10 / 90e6 us = 1.86 and BW_UNIT * 10 / 10e6 us = 16.8; a unit is 1448 * 1e6 / 2^24 = 86.3 byte/s.
    assert_eq!(ten_segments_in(90, Units::Linux), 86);
    assert_eq!(ten_segments_in(90, Units::Bytes), 160);
    assert_eq!(ten_segments_in(10, Units::Linux), 1380);
    assert_eq!(ten_segments_in(10, Units::Bytes), 1448);
}

#[test]
fn a_loss_while_the_round_trip_is_probed_does_not_forget_the_window_of_before() {
    let mut rounds = Rounds::steady(1_000_000);
    while !matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }) {
        rounds.sample(1_000_000, |_| {});
    }
    let before = rounds.bbr.prior_cwnd;
    assert!(before > 100 * SMSS);
    let loss = LossEvent { now: rounds.now, flight_size: 0, pipe: 0, rwnd: 0, timeout: false };
    rounds.bbr.ssthresh_after(&rounds.window.clone(), &loss);
    assert_eq!(rounds.bbr.prior_cwnd, before);
}

#[test]
fn a_second_loss_in_recovery_does_not_forget_the_window_of_before() {
    let mut rounds = Rounds::steady(1_000_000);
    let loss = LossEvent { now: rounds.now, flight_size: 0, pipe: 0, rwnd: 0, timeout: false };
    let before = rounds.window;
    rounds.bbr.ssthresh_after(&before, &loss);
    rounds.sample(10_000, |sample| (sample.repair, sample.pipe) = (Repair::Fast, 50_000));
    rounds.bbr.ssthresh_after(&rounds.window.clone(), &loss);
    assert_eq!(rounds.bbr.prior_cwnd, before.cwnd);
}

#[test]
fn in_the_first_round_of_recovery_what_leaves_is_what_arrives() {
    // bbr_set_cwnd_to_recover_or_restore()
    let mut rounds = Rounds::steady(1_000_000);
    rounds.sample(30_000, |sample| {
        (sample.repair, sample.lost, sample.pipe) = (Repair::Fast, 3000, 50_000);
    });
    assert_eq!(rounds.window.cwnd, 53_000);
    // Still conserved: never less than what is in flight with what has arrived.
    rounds.sample(20_000, |sample| {
        (sample.repair, sample.pipe, sample.measured) = (Repair::Fast, 60_000, None);
    });
    assert_eq!(rounds.window.cwnd, 62_000);
}

#[test]
fn a_timeout_takes_the_window_down_by_what_is_lost_and_no_further_than_a_segment() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.window.cwnd = 20 * SMSS;
    rounds.bbr.on_timeout();
    rounds.sample(10_000, |sample| {
        (sample.repair, sample.lost, sample.pipe, sample.acked) = (Repair::Timeout, 15_000, 0, 1000);
    });
    assert_eq!(rounds.window.cwnd, 6 * SMSS, "five, and what arrived");
    rounds.sample(10_000, |sample| {
        (sample.repair, sample.lost, sample.pipe, sample.acked) = (Repair::Timeout, 90_000, 0, 1000);
    });
    assert_eq!(rounds.window.cwnd, 4 * SMSS, "four at the least");
}

#[test]
fn a_probe_ends_with_a_loss_or_where_it_has_filled_the_path() {
    for (lost, in_flight, ends) in [(0, 50, false), (1000, 50, true), (0, 300, true)] {
        let mut rounds = Rounds::steady(1_000_000);
        while rounds.bbr.phase != 0 {
            rounds.sample(1_000_000, |_| {});
        }
        assert_eq!(rounds.bbr.pacing_gain, UNIT * 5 / 4);
        // A round trip of the smallest is not enough, but two are.
        rounds.sample(1_000_000, |sample| sample.pipe_before = in_flight * SMSS);
        rounds.sample(1_000_000, |sample| {
            (sample.lost, sample.pipe_before) = (lost, in_flight * SMSS);
        });
        assert_eq!(rounds.bbr.phase != 0, ends, "{lost} {in_flight}");
    }
}

#[test]
fn while_the_round_trip_is_probed_what_leaves_is_marked_as_limited() {
    // From the ACK that begins it to the one that ends it.
    let mut rounds = Rounds::steady(1_000_000);
    let mut begins = false;
    while !matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }) {
        begins = rounds.sample(1_000_000, |_| {});
    }
    assert!(begins);
    let mut held = true;
    while matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }) {
        assert!(held);
        held = rounds.sample(40_000, |sample| sample.pipe = 4 * SMSS);
    }
    assert!(held && !rounds.sample(1_000_000, |_| {}));
}

#[test]
fn before_the_pipe_is_full_the_window_grows_by_what_arrives() {
    // bbr_set_cwnd(): up to the target, and without one while fewer than ten segments have arrived.
    let mut rounds = Rounds::new();
    rounds.window.cwnd = 1000 * SMSS;
    rounds.sample(0, |sample| (sample.acked, sample.delivered) = (SMSS, 9999));
    assert_eq!(rounds.window.cwnd, 1001 * SMSS);
    rounds.sample(0, |sample| (sample.acked, sample.delivered) = (SMSS, 10_000));
    assert_eq!(rounds.window.cwnd, 1001 * SMSS, "it is beyond the target");
}

#[test]
fn an_interface_of_segments_and_paces() {
    let rounds = Rounds::new();
    assert!(rounds.bbr.owns_cwnd() && rounds.bbr.counts_segments());
    let pace = rounds.bbr.pace().expect("it paces");
    assert_eq!((pace.bytes_per_s, pace.least_burst), (rounds.bbr.steering.pacing_rate, 2));
}

#[test]
fn a_cycle_begins_with_any_phase_but_the_one_that_drains() {
    let mut rounds = Rounds::steady(1_000_000);
    let mut seen = [0; CYCLE.len()];
    for seed in 0..400 {
        rounds.bbr.draw_by(seed);
        rounds.bbr.probe_bandwidth(0, Instant::ZERO);
        seen[rounds.bbr.phase] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!(seen.iter().filter(|&&times| times > 20).count() == 7, "{seen:?}");
}

#[test]
fn before_the_pipe_is_full_the_window_stays_at_its_target() {
    let mut rounds = Rounds::new();
    rounds.sample(1_000_000, |_| {});
    let bandwidth = rounds.bbr.bandwidth();
    let target = rounds.bbr.quantized(rounds.bbr.product(bandwidth, HIGH_GAIN));
    for (cwnd, after) in [(target - 1, target + 9), (target, target)] {
        rounds.window.cwnd = cwnd;
        rounds.sample(0, |sample| (sample.measured, sample.acked) = (None, 10));
        assert_eq!(rounds.window.cwnd, after);
    }
}
