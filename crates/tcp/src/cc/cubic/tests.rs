use super::*;
use crate::Config;
use crate::cc::Controller;
use crate::config::{CongestionControlKind, CubicRules, HyStart, SlowStartGrowth};
use farpath_units::Bytes;
use proptest::prelude::*;

const SMSS: u64 = 1000;

fn cubic(change: impl FnOnce(&mut CongestionConfig)) -> Cubic {
    let mut config = Config::default().congestion;
    change(&mut config);
    Cubic::new(&config, SMSS)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// An ACK of a segment in a window that is full, 100 ms after it was sent.
fn ack(now: Instant) -> AckEvent {
    AckEvent {
        now,
        newly_acked: SMSS,
        acked_to: 0,
        sent_to: 0,
        flight_size: u64::MAX,
        cwnd_limited: true,
        rtt: Some(Duration::from_millis(100)),
        last_rtt: Some(Duration::from_millis(100)),
        srtt: Some(Duration::from_millis(100)),
    }
}

fn loss(flight_size: u64) -> LossEvent {
    LossEvent { now: Instant::ZERO, flight_size, pipe: flight_size, rwnd: u64::MAX, timeout: false }
}

fn timeout(flight_size: u64) -> LossEvent {
    LossEvent { timeout: true, ..loss(flight_size) }
}

/// What a loss leaves of a full window, recovery over.
fn after(cubic: &mut Cubic, cwnd: u64, loss: &LossEvent) -> Window {
    let window = Window { cwnd, ssthresh: u64::MAX };
    let ssthresh = cubic.ssthresh_after(&window, loss);
    Window { cwnd: ssthresh, ssthresh }
}

/// A window's worth of ACKs every 100 ms, evenly spread, for `rtts`; the window after each round trip.
fn round_trips(cubic: &mut Cubic, window: &mut Window, from_ms: u64, rtts: u64) -> Vec<u64> {
    let mut windows = Vec::new();
    for rtt in 0..rtts {
        let segments = window.cwnd / SMSS;
        for n in 0..segments {
            let offset = Duration::from_nanos(100_000_000 * n / segments);
            cubic.on_ack(window, &ack(at(from_ms + 100 * rtt) + offset));
        }
        windows.push(window.cwnd);
    }
    windows
}

#[track_caller]
fn same_to_8_digits(ours: f64, theirs: f64) {
    assert!((ours / theirs - 1.0).abs() < 1e-8, "{ours} is not {theirs}");
}

/// `W_max` = 1000 segments, 700 left: K = cbrt(300 / 0.4) = 9.0856030 s; W(0) = 700, W(K) = 1000, W(2K) = 1300.
#[test]
fn the_curve_is_the_rfcs_at_0_k_and_2k() {
    let curve = Curve::new(1000 * SMSS, 700 * SMSS, SMSS);
    same_to_8_digits(curve.k, 9.085_602_964_160_698);
    same_to_8_digits(curve.window_at(0.0), 700_000.0);
    same_to_8_digits(curve.window_at(curve.k), 1_000_000.0);
    same_to_8_digits(curve.window_at(2.0 * curve.k), 1_300_000.0);
    // Between: 0.4 (4 - K)^3 + 1000 segments.
    same_to_8_digits(curve.window_at(4.0), 947_387.692_955);
}

/// 10 Gbit/s x 600 ms: 750 MB, of which 1460 B are two millionths.
#[test]
fn the_curve_is_exact_on_a_long_fat_path() {
    let (w_max, smss) = (750_000_000, 1460);
    let curve = Curve::new(w_max, times(w_max, BETA), smss);
    same_to_8_digits(curve.window_at(0.0), 525_000_000.0);
    same_to_8_digits(curve.window_at(2.0 * curve.k), 975_000_000.0);
    let rise = curve.window_at(curve.k + 1.0) - curve.window_at(curve.k);
    same_to_8_digits(rise, 584.0);
}

#[test]
fn a_loss_leaves_seven_tenths_of_what_it_is_told_to_count() {
    let window = Window { cwnd: 100_000, ssthresh: u64::MAX };
    let event = LossEvent { rwnd: 55_900, ..loss(50_000) };
    for (from, expected) in [
        (SsthreshFrom::FlightSize, 35_000),
        (SsthreshFrom::Cwnd, 70_000),
        (SsthreshFrom::WindowSegments, 39_000),
    ] {
        assert_eq!(cubic(|c| c.ssthresh_from = from).ssthresh_after(&window, &event), expected, "{from:?}");
    }
}

/// At a timeout within SACK recovery `flight_size` holds all that SACK has reported beyond the first hole.
#[test]
fn a_loss_never_raises_the_window() {
    let window = Window { cwnd: 100_000, ssthresh: u64::MAX };
    assert_eq!(cubic(|_| {}).ssthresh_after(&window, &timeout(400_000)), 70_000);
}

#[test]
fn ssthresh_is_never_below_two_segments() {
    for from in [SsthreshFrom::FlightSize, SsthreshFrom::Cwnd, SsthreshFrom::WindowSegments] {
        for event in [loss(0), loss(SMSS), timeout(0), timeout(2 * SMSS)] {
            let window = Window { cwnd: SMSS, ssthresh: 0 };
            assert_eq!(cubic(|c| c.ssthresh_from = from).ssthresh_after(&window, &event), 2 * SMSS);
        }
    }
}

#[test]
fn after_a_loss_the_window_follows_the_curve_one_rtt_ahead() {
    let mut cubic = cubic(|_| {});
    let mut window = after(&mut cubic, 1_000_000, &loss(1_000_000));
    assert_eq!(window.cwnd, 700_000);
    let windows = round_trips(&mut cubic, &mut window, 0, 180);
    let curve = Curve::new(1_000_000, 700_000, SMSS);
    for (n, &cwnd) in windows.iter().enumerate().skip(1) {
        let now = 0.1 * (n + 1) as f64;
        // A window of steps towards a target that moves: 1 - 1/e of the way after one round trip.
        let (least, most) = (curve.window_at(now - 0.1), curve.window_at(now + 0.1));
        // The target is a whole number of bytes.
        assert!((least - 1.0..=most).contains(&(cwnd as f64)), "round trip {n}: {least} {cwnd} {most}");
    }
    assert!(windows[179] > 1_280_000, "convex beyond W_max: {}", windows[179]);
}

#[test]
fn concave_before_k_and_convex_after() {
    let mut cubic = cubic(|_| {});
    let mut window = after(&mut cubic, 1_000_000, &loss(1_000_000));
    let windows = round_trips(&mut cubic, &mut window, 0, 180);
    let steps: Vec<u64> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps[10] > steps[40] && steps[40] > steps[80], "{steps:?}");
    assert!(steps[110] < steps[140] && steps[140] < steps[170], "{steps:?}");
}

#[test]
fn a_round_trip_adds_at_most_half_of_the_window() {
    // K = 0 and a pause in the ACKs of 100 s: the curve is far away.
    let mut cubic = cubic(|_| {});
    let mut window = Window { cwnd: 10_000, ssthresh: 0 };
    cubic.on_ack(&mut window, &ack(at(0)));
    let before = window.cwnd;
    for _ in 0..10 {
        cubic.on_ack(&mut window, &ack(at(100_000)));
    }
    assert!(window.cwnd > before * 14 / 10 && window.cwnd <= before * 17 / 10, "{before} {window:?}");
}

/// Small windows and short RTTs: alpha = 9/17 segments a round trip until `cwnd_prior`, then one.
#[test]
fn the_reno_friendly_region_grows_by_alpha_and_beyond_cwnd_prior_by_one() {
    let mut cubic = cubic(|_| {});
    let mut window = after(&mut cubic, 100_000, &loss(100_000));
    let mut stage = cubic.begin_stage(at(0), window.cwnd);
    // A window's worth of ACKs: 9/17 of a segment.
    for (w_est, expected) in [(70_000, 529), (99_000, 529), (100_000, 1000), (150_000, 1000)] {
        (stage.w_est, stage.est_credit) = (w_est, 0);
        for _ in 0..70 {
            stage.grow_estimate(70_000, SMSS, SMSS, w_est >= cubic.cwnd_prior);
        }
        assert_eq!(stage.w_est - w_est, expected, "from {w_est}");
    }
    // At an RTT of 1 ms, 0.1 s is a hundred round trips: Reno is ahead of the curve.
    for n in 0..7000 {
        let now = at(0) + Duration::from_nanos(14_000 * n);
        cubic.on_ack(&mut window, &AckEvent { srtt: Some(Duration::from_millis(1)), ..ack(now) });
    }
    let stage = cubic.stage.as_ref().expect("a stage");
    assert_eq!(window.cwnd, stage.w_est);
    assert!(stage.curve.window_at(0.098) < window.cwnd as f64);
}

/// RFC 8312 §4.2, and Linux: Reno's part never grows by a whole segment.
#[test]
fn before_rfc_9438_the_reno_friendly_region_grows_by_alpha_throughout() {
    let grown = |rules| {
        let mut cubic = cubic(|c| c.cubic = rules);
        let mut window = after(&mut cubic, 10_000, &loss(10_000));
        // 7000 B, and a thousand segments at an RTT of 1 ms: far past 10 000 B.
        for n in 0..1000 {
            let now = at(0) + Duration::from_nanos(100_000 * n);
            cubic.on_ack(&mut window, &AckEvent { srtt: Some(Duration::from_millis(1)), ..ack(now) });
        }
        window.cwnd
    };
    // d(cwnd)/dn = alpha SMSS^2 / cwnd: 49 + 2 * 9/17 * 1000 = 33.3^2, and 100 + 2 * 952 = 44.8^2.
    assert_eq!((grown(CubicRules::Rfc8312) / 1000, grown(CubicRules::Rfc9438) / 1000), (33, 44));
}

#[test]
fn no_increment_of_the_estimate_is_rounded_away_on_a_long_fat_path() {
    let start = 750_000_000;
    let mut stage = Stage::new(at(0), Curve::new(start, start, 1460), start);
    for _ in 0..start / 1460 {
        stage.grow_estimate(start, 1460, 1460, true);
    }
    assert!((1459..=1460).contains(&(stage.w_est - start)), "{}", stage.w_est - start);
}

#[test]
fn no_step_towards_the_curve_is_rounded_away_on_a_long_fat_path() {
    let start = 750_000_000;
    let mut stage = Stage::new(at(0), Curve::new(start, start, 1460), start);
    // 584 B ahead: 0.001 B an ACK.
    let steps: u64 = (0..start / 1460).map(|_| stage.step_towards(start + 584, start, 1460)).sum();
    assert!((583..=584).contains(&steps), "{steps}");
}

#[test]
fn fast_convergence_yields_when_w_max_is_not_reached_again() {
    let mut cubic_on = cubic(|_| {});
    after(&mut cubic_on, 1_000_000, &loss(1_000_000));
    assert_eq!(cubic_on.w_max, Some(1_000_000));
    after(&mut cubic_on, 900_000, &loss(900_000));
    assert_eq!(cubic_on.w_max, Some(765_000), "0.85 of 900 kB");
    after(&mut cubic_on, 800_000, &loss(800_000));
    assert_eq!(cubic_on.w_max, Some(800_000), "reached: not reduced");
    let mut cubic_off = cubic(|c| c.fast_convergence = false);
    after(&mut cubic_off, 1_000_000, &loss(1_000_000));
    after(&mut cubic_off, 900_000, &loss(900_000));
    assert_eq!(cubic_off.w_max, Some(900_000));
}

#[test]
fn a_timeout_begins_the_next_stage_with_k_zero_and_the_window_it_finds() {
    let mut cubic = cubic(|_| {});
    let mut window = after(&mut cubic, 1_000_000, &loss(1_000_000));
    round_trips(&mut cubic, &mut window, 0, 20);
    window.ssthresh = cubic.ssthresh_after(&window, &timeout(window.cwnd));
    assert!(cubic.stage.is_none() && cubic.w_max.is_none());
    window.cwnd = SMSS;
    let threshold = window.ssthresh;
    while window.cwnd < threshold {
        cubic.on_ack(&mut window, &ack(at(10_000)));
        assert!(cubic.stage.is_none(), "slow start");
    }
    let cwnd = window.cwnd;
    cubic.on_ack(&mut window, &ack(at(11_000)));
    let stage = cubic.stage.as_ref().expect("congestion avoidance");
    assert_eq!((stage.curve.k, stage.curve.w_max, cubic.w_max), (0.0, cwnd, Some(cwnd)));
    assert_eq!(stage.began, at(11_000));
}

#[test]
fn slow_start_without_a_loss_ends_at_a_w_max_and_a_cwnd_prior_of_its_own() {
    let mut cubic = cubic(|_| {});
    let mut window = Window { cwnd: 50_000, ssthresh: 50_000 };
    cubic.on_ack(&mut window, &ack(at(500)));
    let stage = cubic.stage.as_ref().expect("congestion avoidance");
    assert_eq!((stage.curve.k, cubic.w_max, cubic.cwnd_prior), (0.0, Some(50_000), 50_000));
}

#[test]
fn slow_start_is_the_one_that_all_controllers_share() {
    let mut window = Window { cwnd: 10_000, ssthresh: u64::MAX };
    let mut cubic = cubic(|c| c.slow_start = SlowStartGrowth::TwoSegments);
    cubic.on_ack(&mut window, &AckEvent { newly_acked: 3000, ..ack(at(0)) });
    assert_eq!(window.cwnd, 12_000);
}

#[test]
fn a_window_that_is_not_used_does_not_grow_and_its_time_does_not_count() {
    let mut cubic = cubic(|_| {});
    let mut window = after(&mut cubic, 1_000_000, &loss(1_000_000));
    round_trips(&mut cubic, &mut window, 0, 10);
    let cwnd = window.cwnd;
    for n in 0..100 {
        cubic.on_ack(&mut window, &AckEvent { cwnd_limited: false, ..ack(at(1000 + 100 * n)) });
    }
    assert_eq!(window.cwnd, cwnd);
    cubic.on_ack(&mut window, &ack(at(31_000)));
    assert_eq!(cubic.stage.as_ref().expect("a stage").began, at(30_000), "30 s were not ours");
}

#[test]
fn an_empty_network_pauses_until_the_next_segment_is_sent() {
    let mut cubic = cubic(|_| {});
    let mut window = after(&mut cubic, 10_000, &loss(10_000));
    cubic.on_ack(&mut window, &ack(at(0)));
    // All is acknowledged at 100 ms; a segment sent at 5 s is acknowledged at 5.1 s.
    cubic.on_ack(&mut window, &AckEvent { flight_size: SMSS, ..ack(at(100)) });
    cubic.on_ack(&mut window, &ack(at(5100)));
    assert_eq!(cubic.stage.as_ref().expect("a stage").began, at(4900));
}

#[test]
fn a_window_of_one_segment_that_is_always_full_has_no_pause() {
    let mut cubic = cubic(|_| {});
    let mut window = Window { cwnd: SMSS, ssthresh: 0 };
    for n in 0..10 {
        cubic.on_ack(&mut window, &AckEvent { flight_size: SMSS, ..ack(at(100 * n)) });
    }
    assert_eq!(cubic.stage.as_ref().expect("a stage").began, at(0));
}

#[test]
fn a_slow_start_after_idle_ends_the_stage() {
    let mut cubic = cubic(|_| {});
    let mut window = after(&mut cubic, 100_000, &loss(100_000));
    cubic.on_ack(&mut window, &ack(at(0)));
    window.cwnd = 3000;
    cubic.on_ack(&mut window, &ack(at(60_000)));
    assert!(cubic.stage.is_none());
    assert_eq!(window.cwnd, 4000);
}

#[test]
fn a_stage_above_w_max_is_convex_at_once() {
    let curve = Curve::new(50_000, 60_000, SMSS);
    assert_eq!((curve.k, curve.w_max), (0.0, 60_000));
}

#[derive(Debug, Clone)]
enum Event {
    Ack { after: u64, newly_acked: u64, flight_size: u64, cwnd_limited: bool, rtt: Option<u64> },
    Loss { flight_size: u64, timeout: bool },
    Idle,
}

/// Numbers of every size.
fn any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(bits, shift)| bits >> shift)
}

fn event() -> impl Strategy<Value = Event> {
    let rtt = proptest::option::of(any_size());
    prop_oneof![
        12 => (any_size(), any_size(), any_size(), any::<bool>(), rtt).prop_map(
            |(after, newly_acked, flight_size, cwnd_limited, rtt)| Event::Ack {
                after, newly_acked, flight_size, cwnd_limited, rtt,
            }
        ),
        2 => (any_size(), any::<bool>()).prop_map(|(flight_size, timeout)| Event::Loss { flight_size, timeout }),
        1 => Just(Event::Idle),
    ]
}

proptest! {
    #[test]
    fn the_window_stays_between_one_segment_and_the_clamp_whatever_happens(
        events in proptest::collection::vec(event(), 0..200),
        (is_cubic, fast_convergence) in any::<(bool, bool)>(),
        hystart in proptest::sample::select(vec![HyStart::Off, HyStart::Rfc9406, HyStart::Linux]),
        smss in 1..65_496u64,
        clamp in proptest::option::of(any_size()),
        initial_ssthresh in any_size(),
    ) {
        let mut config = Config::default().congestion;
        config.control = if is_cubic { CongestionControlKind::Cubic } else { CongestionControlKind::Reno };
        (config.hystart, config.fast_convergence) = (hystart, fast_convergence);
        config.cwnd_clamp = clamp.map(Bytes);
        let most = clamp.unwrap_or(u64::MAX).max(smss);
        let mut cc = Controller::new(&config, smss, Duration::ZERO);
        let mut window = Window { cwnd: (3 * smss).min(most), ssthresh: initial_ssthresh };
        let (mut now, mut acked_to) = (Instant::ZERO, 1u64);
        for event in events {
            match event {
                Event::Ack { after, newly_acked, flight_size, cwnd_limited, rtt } => {
                    // A run of centuries, a stream of exabytes: what an endpoint can come to.
                    now += Duration::from_nanos(after >> 9);
                    let newly_acked = newly_acked >> 9;
                    acked_to += newly_acked;
                    let before = window.cwnd;
                    let rtt = rtt.map(|rtt| Duration::from_nanos(rtt >> 1));
                    cc.on_ack(&mut window, &AckEvent {
                        now, newly_acked, acked_to, sent_to: acked_to + (flight_size >> 9), flight_size,
                        cwnd_limited, rtt, last_rtt: rtt, srtt: rtt,
                    });
                    prop_assert!(window.cwnd >= before, "an ACK took window away");
                }
                Event::Loss { flight_size, timeout } => {
                    if timeout {
                        cc.on_timeout();
                    }
                    let event = LossEvent { now, flight_size, pipe: flight_size, rwnd: u64::MAX, timeout };
                    window.ssthresh = cc.ssthresh_after(&window, &event);
                    prop_assert!(window.ssthresh >= 2 * smss);
                    window.cwnd = if timeout { smss } else { window.ssthresh.min(most) };
                }
                Event::Idle => window.cwnd = window.cwnd.min(3 * smss),
            }
            prop_assert!((smss..=most).contains(&window.cwnd), "{window:?}");
        }
    }
}

#[test]
fn a_loss_takes_the_window_or_what_is_in_the_network_to_seven_tenths_in_segments_or_bytes() {
    let window = Window { cwnd: 15_300, ssthresh: u64::MAX };
    let event = LossEvent { pipe: 9000, rwnd: 12_500, ..loss(14_000) };
    for (from, ssthresh) in [
        (SsthreshFrom::FlightSize, 9800),
        (SsthreshFrom::Cwnd, 10_710),
        (SsthreshFrom::CwndSegments, 10_000),
        (SsthreshFrom::Pipe, 6300),
        (SsthreshFrom::WindowSegments, 8000),
    ] {
        let mut cubic = cubic(|c| c.ssthresh_from = from);
        assert_eq!(cubic.ssthresh_after(&window, &event), ssthresh, "{from:?}");
        let least = cubic.ssthresh_after(&Window { cwnd: 1000, ..window }, &LossEvent { pipe: 0, ..event });
        assert_eq!(least, 2000, "{from:?}");
    }
}
