use super::*;
use crate::cc::bbr::rounds::{self, Rounds, SMSS};
use crate::scoreboard::Excess;

/// What 1 MB/s has in flight.
const PRODUCT: u64 = 100 * SMSS;

impl Rounds<Bbr3> {
    fn new() -> Self {
        Rounds::with_controller(Bbr3::new)
    }

    /// A pipe that was filled at `rate`, and the queue of startup drained.
    pub(super) fn steady(rate: u64) -> Self {
        let mut rounds = Rounds::new();
        for _ in 0..6 {
            rounds.sample(rate, |_| {});
        }
        assert!(matches!(rounds.bbr.mode, Mode::ProbeBw(_)), "{:?}", rounds.bbr.mode);
        rounds
    }

    /// A loss, and the round that it begins.
    fn lossy_round(&mut self, rate: u64) {
        self.sample(rate, |sample| sample.lost = SMSS);
        self.sample(rate, |_| {});
    }

    /// Rounds at `rate` until the cycle has come to `phase`.
    pub(super) fn until(&mut self, phase: Phase, rate: u64) {
        for _ in 0..100 {
            if self.bbr.mode == Mode::ProbeBw(phase) {
                return;
            }
            self.sample(rate, |_| {});
        }
        panic!("never {phase:?}, but {:?}", self.bbr.mode);
    }
}

/// 2 % of what is in flight, and a segment.
fn too_much(sample: &mut RateSample) {
    let measured = sample.measured.as_mut().expect("measured");
    measured.lost = measured.in_flight / 50 + SMSS;
    sample.lost = measured.lost;
}

#[test]
fn startup_ends_where_the_rate_does_not_grow_by_a_quarter() {
    let mut rounds = Rounds::new();
    for n in 0..8 {
        rounds.sample(100_000 << n, |_| {});
        assert_eq!(rounds.bbr.mode, Mode::Startup);
    }
    for _ in 0..3 {
        rounds.sample(100_000 << 7, |sample| sample.pipe *= 3);
    }
    assert_eq!((rounds.bbr.mode, rounds.bbr.pacing_gain), (Mode::Drain, DRAIN_GAIN));
    // The queue is gone, and with it what Down is there for.
    rounds.sample(100_000 << 7, |_| {});
    assert_eq!(rounds.bbr.mode, Mode::ProbeBw(Phase::Cruise));
}

#[test]
fn startup_ends_where_six_acks_of_a_round_tell_of_more_than_two_percent() {
    for (acks, ends) in [(5, false), (6, true)] {
        let mut rounds = Rounds::new();
        rounds.sample(100_000, |_| {});
        rounds.sample(200_000, |sample| sample.lost = SMSS);
        for _ in 1..acks {
            // Within the round: nothing is measured.
            rounds.sample(0, |sample| (sample.measured, sample.lost) = (None, SMSS));
        }
        rounds.sample(400_000, |sample| {
            sample.repair = Repair::Fast;
            let measured = sample.measured.as_mut().expect("measured");
            measured.lost = measured.in_flight / 10;
        });
        assert_eq!(rounds.bbr.model.pipe_is_full(), ends, "{acks}");
        assert_eq!(rounds.bbr.bounds.inflight_hi < u64::MAX, ends);
    }
}

#[test]
fn the_window_is_two_products_and_a_bunch_of_acks() {
    let mut rounds = Rounds::steady(1_000_000);
    for _ in 0..6 {
        rounds.sample(1_000_000, |_| {});
    }
    assert!((2 * PRODUCT..2 * PRODUCT + 120 * SMSS).contains(&rounds.window.cwnd), "{}", rounds.window.cwnd);
}

#[test]
fn a_cycle_goes_down_cruises_refills_and_probes_within_three_seconds() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.until(Phase::Cruise, 1_000_000);
    let began = rounds.now;
    rounds.until(Phase::Refill, 1_000_000);
    let cruised = rounds.now - began;
    assert!(cruised > Duration::from_millis(1500) && cruised <= Duration::from_millis(3100), "{cruised}");
    rounds.until(Phase::Up, 1_000_000);
    assert_eq!((rounds.bbr.pacing_gain, rounds.bbr.cwnd_gain), (UNIT * 5 / 4, UNIT * 9 / 4));
    // Three rounds without growth, and the probe is over.
    for _ in 0..3 {
        assert_eq!(rounds.bbr.mode, Mode::ProbeBw(Phase::Up));
        rounds.sample(1_000_000, |_| {});
    }
    assert_eq!(rounds.bbr.mode, Mode::ProbeBw(Phase::Down));
}

#[test]
fn too_many_losses_end_a_probe_and_bound_what_is_in_flight() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.until(Phase::Up, 1_000_000);
    rounds.sample(1_000_000, |sample| {
        sample.measured.as_mut().expect("measured").in_flight = 120 * SMSS;
        too_much(sample);
    });
    assert_eq!(rounds.bbr.mode, Mode::ProbeBw(Phase::Down));
    assert_eq!(rounds.bbr.bounds.inflight_hi, 120 * SMSS);
    rounds.until(Phase::Cruise, 1_000_000);
    // 15 % are left to others.
    rounds.sample(1_000_000, |_| {});
    assert!((102 * SMSS..103 * SMSS).contains(&rounds.window.cwnd), "{}", rounds.window.cwnd);
}

#[test]
fn the_bound_is_what_was_in_flight_before_the_segment_by_which_it_was_too_much() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.until(Phase::Up, 1_000_000);
    rounds.sample(1_000_000, |sample| {
        sample.lost = 3 * SMSS;
        sample.excess = Some(Excess { len: SMSS, in_flight: 150 * SMSS, lost: 3 * SMSS, app_limited: false });
    });
    // 149 segments may lose 2.91; two were lost before this one, of which 0.93 are within the budget.
    let bound = rounds.bbr.bounds.inflight_hi;
    assert!((149_900..150_000).contains(&bound), "{bound}");
}

#[test]
fn losses_while_cruising_take_three_tenths_down_to_what_is_delivered() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.until(Phase::Cruise, 1_000_000);
    // The round before the loss delivered all; the one after it, half.
    rounds.lossy_round(500_000);
    assert_eq!(rounds.bbr.bandwidth(), 1_000_000);
    rounds.lossy_round(500_000);
    assert_eq!(rounds.bbr.bandwidth(), 703_125); // 180/256
    // Whatever is lost, what was delivered is not given up; and a probe forgets it.
    rounds.lossy_round(650_000);
    assert_eq!(rounds.bbr.bandwidth(), 650_000);
    rounds.until(Phase::Refill, 650_000);
    assert_eq!(rounds.bbr.bounds.bandwidth_lo, u64::MAX);
}

#[test]
fn a_loss_that_was_none_gives_the_bounds_back() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.until(Phase::Cruise, 1_000_000);
    let loss = LossEvent { now: rounds.now, flight_size: 0, pipe: 0, rwnd: 0, timeout: false };
    rounds.bbr.ssthresh_after(&rounds.window.clone(), &loss);
    rounds.lossy_round(500_000);
    rounds.lossy_round(500_000);
    assert!(rounds.bbr.bandwidth() < 1_000_000);
    rounds.bbr.on_undo();
    assert_eq!(rounds.bbr.bandwidth(), 1_000_000);
}

#[test]
fn the_round_trip_is_probed_with_half_a_product_every_five_seconds() {
    let mut rounds = Rounds::steady(1_000_000);
    while !matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }) {
        rounds.sample(1_000_000, |_| {});
        assert!(rounds.now <= Instant::ZERO + Duration::from_millis(5_200));
    }
    assert_eq!(rounds.window.cwnd, PRODUCT / 2);
    for _ in 0..4 {
        assert!(matches!(rounds.bbr.mode, Mode::ProbeRtt { .. }));
        rounds.sample(500_000, |sample| {
            sample.measured.as_mut().expect("measured").app_limited = true;
        });
    }
    assert_eq!(rounds.bbr.mode, Mode::ProbeBw(Phase::Cruise));
    assert!(rounds.window.cwnd > PRODUCT, "the window of before");
}

#[test]
fn what_is_in_flight_without_too_much_loss_raises_the_bound() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.bbr.bounds.inflight_hi = 50 * SMSS;
    rounds.sample(1_000_000, |_| {});
    assert_eq!(rounds.bbr.bounds.inflight_hi, PRODUCT);
    // Where no bound was met there is none.
    let mut free = Rounds::steady(1_000_000);
    free.sample(1_000_000, |_| {});
    assert_eq!(free.bbr.bounds.inflight_hi, u64::MAX);
}

#[test]
fn neither_a_second_loss_nor_one_while_the_round_trip_is_probed_forgets_the_window_of_before() {
    let mut rounds = Rounds::steady(1_000_000);
    let loss = LossEvent { now: rounds.now, flight_size: 0, pipe: 0, rwnd: 0, timeout: false };
    let before = rounds.window;
    rounds.bbr.ssthresh_after(&before, &loss);
    assert_eq!(rounds.bbr.prior_cwnd, before.cwnd);
    rounds.bbr.repair = Repair::Fast;
    rounds.bbr.ssthresh_after(&Window { cwnd: 4 * SMSS, ..before }, &loss);
    assert_eq!(rounds.bbr.prior_cwnd, before.cwnd);
    // A loss that is the first counts, whatever was before it.
    rounds.bbr.repair = Repair::None;
    rounds.bbr.ssthresh_after(&Window { cwnd: 5 * SMSS, ..before }, &loss);
    assert_eq!(rounds.bbr.prior_cwnd, 5 * SMSS);
}

#[test]
fn startup_grows_beyond_its_target_to_twice_the_first_window() {
    let mut rounds = Rounds::new();
    rounds.window.cwnd = 19 * SMSS;
    // A thousand bytes in a round trip: three bursts of two segments are the target.
    for cwnd in [20, 20] {
        rounds.sample(10_000, |_| {});
        assert_eq!(rounds.window.cwnd, cwnd * SMSS);
    }
}

#[test]
fn the_window_has_room_for_three_bursts_and_no_bound_takes_it_below_four_segments() {
    let mut rounds = Rounds::steady(20_000);
    assert_eq!((rounds.bbr.burst(), rounds.bbr.quantized(0)), (2 * SMSS, 6 * SMSS));
    rounds.bbr.bounds.inflight_lo = 1;
    rounds.sample(0, |sample| (sample.measured, sample.acked) = (None, SMSS));
    assert_eq!(rounds.window.cwnd, 4 * SMSS);
}

#[test]
fn a_loss_that_was_none_lowers_no_bound() {
    for undone in [false, true] {
        let mut rounds = Rounds::steady(1_000_000);
        rounds.until(Phase::Cruise, 1_000_000);
        rounds.sample(1_000_000, |sample| sample.lost = SMSS);
        if undone {
            rounds.bbr.on_undo();
        }
        rounds.sample(1_000_000, |_| {});
        assert_eq!(rounds.bbr.bounds.inflight_lo == u64::MAX, undone);
    }
}

#[test]
fn the_round_trip_is_probed_anew_five_seconds_after_it_was() {
    let mut rounds = Rounds::steady(1_000_000);
    let probes = |rounds: &Rounds<Bbr3>| matches!(rounds.bbr.mode, Mode::ProbeRtt { .. });
    while !probes(&rounds) {
        rounds.sample(1_000_000, |_| {});
    }
    while probes(&rounds) {
        rounds.sample(1_000_000, |sample| sample.pipe = 4 * SMSS);
    }
    let over = rounds.now;
    while !probes(&rounds) {
        // Never as short as the one that was found.
        rounds.sample(1_000_000, |sample| sample.rtt = Some(rounds::RTT * 2));
    }
    let wait = rounds.now - over;
    assert!(wait > Duration::from_secs(5) && wait <= Duration::from_millis(5200), "{wait}");
}

#[test]
fn a_probe_has_room_for_two_segments_more() {
    let mut rounds = Rounds::steady(1_000_000);
    rounds.until(Phase::Refill, 1_000_000);
    assert_eq!(rounds.bbr.quantized(PRODUCT), PRODUCT);
    rounds.until(Phase::Up, 1_000_000);
    assert_eq!(rounds.bbr.quantized(PRODUCT), PRODUCT + 2 * SMSS);
}
