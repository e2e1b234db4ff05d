use super::*;
use crate::Config;
use crate::config::SlowStartGrowth;
use proptest::prelude::*;

const SMSS: u64 = 1000;
const JIFFY: Duration = Duration::from_millis(4);

fn cubic() -> LinuxCubic {
    let mut config = Config::default().congestion;
    config.slow_start = SlowStartGrowth::AllAcked;
    LinuxCubic::new(&config, SMSS, JIFFY)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn loss(timeout: bool) -> LossEvent {
    LossEvent { now: Instant::ZERO, flight_size: 0, pipe: 0, rwnd: u64::MAX, timeout }
}

fn window(segments: u64) -> Window {
    Window { cwnd: segments * SMSS, ssthresh: segments * SMSS }
}

/// An ACK of a segment in a window that is full, sent `rtt_ms` ago.
fn ack(now: Instant, rtt_ms: u64) -> AckEvent {
    let rtt = Some(Duration::from_millis(rtt_ms));
    AckEvent {
        now,
        newly_acked: SMSS,
        acked_to: 1,
        sent_to: 2,
        flight_size: u64::MAX,
        cwnd_limited: true,
        rtt,
        last_rtt: rtt,
        srtt: rtt,
    }
}

/// A window's worth of ACKs in each round trip, evenly spread; the window after each, in segments.
fn round_trips(cubic: &mut LinuxCubic, window: &mut Window, from: u64, rtt_ms: u64, count: u64) -> Vec<u64> {
    let round_trip = |n: u64| {
        let segments = window.cwnd / SMSS;
        for k in 0..segments {
            let offset = Duration::from_nanos(rtt_ms * 1_000_000 * k / segments);
            cubic.on_ack(window, &ack(at(from + rtt_ms * n) + offset, rtt_ms));
        }
        window.cwnd / SMSS
    };
    (0..count).map(round_trip).collect()
}

/// What a loss leaves of a window of so many segments.
fn after_loss(cubic: &mut LinuxCubic, segments: u64) -> Window {
    let left = cubic.ssthresh_after(&window(segments), &loss(false));
    Window { cwnd: left, ssthresh: left }
}

#[test]
fn before_the_first_loss_the_window_grows_by_a_twentieth_a_round_trip() {
    // bictcp_update(): `last_max_cwnd == 0 && cnt > 20`. The curve alone would have grown by 0.4 (0.5 + 0.1)^3 segments.
    let (mut cubic, mut window) = (cubic(), window(100));
    assert_eq!(round_trips(&mut cubic, &mut window, 1000, 100, 5), [105, 110, 115, 121, 127]);
}

#[test]
fn a_timeout_forgets_what_was_before() {
    // bictcp_reset()
    let mut cubic = cubic();
    let mut window = after_loss(&mut cubic, 100);
    assert_eq!(window.cwnd, 70 * SMSS, "717 of 1024");
    cubic.ssthresh_after(&window, &loss(true));
    cubic.on_timeout();
    assert_eq!(round_trips(&mut cubic, &mut window, 1000, 100, 1), [73]);
}

#[test]
fn after_a_loss_the_window_is_back_after_k() {
    // K = cbrt(30 / 0.4) = 4.2 s. The curve has 88 at 1.1 s and 112 at 7.3 s; in whole segments, it is flat from 2.85 s on.
    let mut cubic = cubic();
    let mut window = after_loss(&mut cubic, 100);
    let windows = round_trips(&mut cubic, &mut window, 1000, 100, 80);
    assert!(windows.is_sorted());
    let when = |segments| windows.iter().position(|&window| window >= segments).expect("it grows so far");
    assert!((9..=12).contains(&when(88)), "{windows:?}");
    assert!((26..=30).contains(&when(100)), "{windows:?}");
    assert!((70..=75).contains(&when(112)), "{windows:?}");
}

#[test]
fn a_loss_below_the_last_maximum_aims_lower() {
    let mut cubic = cubic();
    after_loss(&mut cubic, 100);
    after_loss(&mut cubic, 90);
    assert_eq!(cubic.last_max, 90 * (1024 + 717) / 2048);
    cubic.fast_convergence = false;
    after_loss(&mut cubic, 60);
    assert_eq!(cubic.last_max, 60);
}

#[test]
fn over_short_round_trips_it_is_reno_with_its_own_share() {
    // 15/8 of a window for a segment: 8/15 of one a round trip, where the curve takes seconds.
    let mut cubic = cubic();
    let mut window = after_loss(&mut cubic, 40);
    let windows = round_trips(&mut cubic, &mut window, 1000, 10, 15);
    assert!((34..=37).contains(&windows[14]), "28 and 8: {windows:?}");
}

#[test]
fn silence_is_no_time_of_the_curve() {
    let grown = |silence_ms: u64| {
        let mut cubic = cubic();
        let mut window = after_loss(&mut cubic, 100);
        round_trips(&mut cubic, &mut window, 1000, 100, 5);
        // All is acknowledged, and what is sent next has its ACK a round trip later.
        cubic.on_ack(&mut window, &AckEvent { sent_to: 1, ..ack(at(1500), 100) });
        let windows = round_trips(&mut cubic, &mut window, 1600 + silence_ms, 100, 5);
        windows[4]
    };
    let without = grown(0);
    assert!(grown(3_000).abs_diff(without) <= 1, "{} {without}", grown(3_000));
}

#[test]
fn what_slow_start_leaves_of_an_ack_counts_beyond_it() {
    let mut cubic = cubic();
    let mut window = Window { cwnd: 99 * SMSS, ssthresh: 100 * SMSS };
    cubic.on_ack(&mut window, &AckEvent { newly_acked: 41 * SMSS, ..ack(at(1000), 100) });
    assert_eq!(window.cwnd, 102 * SMSS, "one to ssthresh, and forty by the twentieth");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let (mut cubic, mut window) = (cubic(), window(100));
    for ms in 0..1000 {
        cubic.on_ack(&mut window, &AckEvent { cwnd_limited: false, ..ack(at(ms), 100) });
    }
    assert_eq!(window.cwnd, 100 * SMSS);
}

proptest! {
    #[test]
    fn the_window_never_falls_with_an_ack_nor_grows_by_more_than_half_of_it(
        steps in prop::collection::vec((0..2_000_u64, 1..50_u64, 0..40_u8), 1..200),
        tick_ms in 0..11_u64,
    ) {
        let mut config = Config::default().congestion;
        config.slow_start = SlowStartGrowth::AllAcked;
        let mut cubic = LinuxCubic::new(&config, SMSS, Duration::from_millis(tick_ms));
        let (mut window, mut now) = (window(10), 0);
        for (wait, segments, event) in steps {
            now += wait;
            match event {
                0 => {
                    cubic.ssthresh_after(&window, &loss(true));
                    cubic.on_timeout();
                    window.cwnd = SMSS;
                }
                1..=3 => {
                    let left = cubic.ssthresh_after(&window, &loss(false));
                    prop_assert!(left >= 2 * SMSS && left <= window.cwnd.max(2 * SMSS));
                    window = Window { cwnd: left, ssthresh: left };
                }
                _ => {
                    let before = window.cwnd;
                    let event = AckEvent { newly_acked: segments * SMSS, ..ack(at(now), 1 + wait) };
                    cubic.on_ack(&mut window, &event);
                    prop_assert!(window.cwnd >= before);
                    // In slow start by what is acknowledged; beyond, by a segment for two, and one that was earned before.
                    let most = if before < window.ssthresh { segments } else { segments / 2 + 2 };
                    prop_assert!(window.cwnd - before <= most * SMSS, "{before} {}", window.cwnd);
                }
            }
        }
    }

    #[test]
    fn a_cube_root_is_whole(value in any::<u64>()) {
        let root = u128::from(cube_root(u128::from(value)));
        prop_assert!(root.pow(3) <= u128::from(value) && (root + 1).pow(3) > u128::from(value));
    }
}
