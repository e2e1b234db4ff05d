use super::*;
use proptest::prelude::*;

const FOREVER: f64 = f64::INFINITY;

fn timer(initial: f64) -> Timer {
    Timer { initial, max: FOREVER, max_backoff_exponent: u32::MAX, tick: 0.0 }
}

fn opening(initial: f64, attempts: u32) -> Opening {
    Opening { timer: timer(initial), attempts: Some(attempts), linear: 0, within: FOREVER }
}

#[test]
fn the_papers_opnet_sends_four_syns_and_gives_up_at_45_s() {
    let opnet = opening(3.0, 4);
    assert_eq!(opnet.syns(10), [0.0, 3.0, 9.0, 21.0]);
    assert_eq!((opnet.last_syn().value, opnet.abandoned().value), (21.0, 45.0));
}

#[test]
fn windows_2003_has_its_last_syn_at_9_s_and_gives_up_at_21_s() {
    let windows = opening(3.0, 3);
    assert_eq!((windows.last_syn().value, windows.abandoned().value), (9.0, 21.0));
}

#[test]
fn two_hundred_and_fifty_five_retries_overflow_nothing() {
    let windows = opening(3.0, 256);
    assert!((windows.last_syn().value / 1.737e77 - 1.0).abs() < 1e-3, "{:?}", windows.last_syn());
    assert!((windows.abandoned().value / 3.474e77 - 1.0).abs() < 1e-3);
    assert_eq!(opening(3.0, u32::MAX).abandoned().value, FOREVER, "beyond f64, and no panic");
}

#[test]
fn linear_timeouts_come_before_the_doubling() {
    let linux = Opening { timer: Timer { max: 120.0, ..timer(1.0) }, linear: 4, ..opening(1.0, 11) };
    assert_eq!(linux.syns(20), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0]);
    assert_eq!(linux.abandoned().value, 131.0);
    assert_eq!(Opening { linear: 0, attempts: Some(7), ..linux }.abandoned().value, 127.0);
}

#[test]
fn a_time_for_the_whole_ends_it_before_the_count_does() {
    let freebsd = Opening { within: 75.0, ..opening(1.0, 13) };
    assert_eq!(freebsd.syns(20), [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0]);
    assert_eq!((freebsd.last_syn().value, freebsd.abandoned().value), (63.0, 75.0));
    let endless = Opening { attempts: None, within: 63.0, ..freebsd };
    assert_eq!((endless.last_syn().value, endless.abandoned().value), (31.0, 63.0), "not at the end itself");
}

#[test]
fn the_ceiling_and_the_tick_are_in_every_wait() {
    let capped = Opening { timer: Timer { max: 10.0, ..timer(3.0) }, ..opening(3.0, 5) };
    assert_eq!(capped.syns(9), [0.0, 3.0, 9.0, 19.0, 29.0]);
    let coarse = Opening { timer: Timer { tick: 0.5, ..timer(0.7) }, ..opening(0.7, 4) };
    assert_eq!(coarse.syns(9), [0.0, 1.0, 2.5, 5.5]);
}

#[test]
fn without_an_end_there_is_no_radius() {
    let ns = Opening { attempts: None, ..opening(3.0, 1) };
    assert_eq!((ns.last_syn().value, ns.abandoned().value), (FOREVER, FOREVER));
    let listens = Listening { timer: timer(3.0), attempts: None, shared_budget: false };
    assert_eq!(listens.gives_up(&ns).unwrap().value, FOREVER);
}

#[test]
fn a_lone_syn_gives_the_listener_its_own_schedule() {
    let listens = Listening { timer: timer(1.0), attempts: Some(6), shared_budget: false };
    assert_eq!(listens.gives_up(&opening(1e6, 1)).unwrap().value, 63.0);
}

#[test]
fn syns_that_come_again_keep_a_linux_listener_alive() {
    // Between 100 and 105 s on Linux 6.18, whose timers are late by 2.4 %.
    let linux = Opening { timer: Timer { max: 120.0, ..timer(1.0) }, linear: 4, ..opening(1.0, 11) };
    let listens = Listening { timer: linux.timer, attempts: Some(6), shared_budget: false };
    assert_eq!(listens.gives_up(&linux).unwrap().value, 99.0);
}

#[test]
fn light_covers_half_the_round_trip() {
    assert!((distance_km(45.0, 1.0).unwrap().value / 6.745_330_305e6 - 1.0).abs() < 1e-12);
    assert!((round_trip(384_400.0, 1.0).unwrap().value / 2.0 - 1.2822).abs() < 1e-4);
    let there = distance_km(round_trip(1000.0, 1.468).unwrap().value, 1.468).unwrap().value;
    assert!((there - 1000.0).abs() < 1e-9);
}

#[test]
fn bad_inputs_are_refused_by_name() {
    let refused = |error: Result<(), InputError>| error.unwrap_err().to_string();
    assert_eq!(refused(opening(0.0, 1).check()), "the first timeout must be a time above zero");
    assert_eq!(refused(opening(f64::NAN, 1).check()), "the first timeout must be a time above zero");
    assert_eq!(refused(opening(1.0, 0).check()), "the number of SYNs must be above zero");
    let never = Opening { within: -1.0, ..opening(1.0, 1) };
    assert_eq!(refused(never.check()), "the time for a connection must be a time above zero");
    assert_eq!(round_trip(-1.0, 1.0).unwrap_err().to_string(), "the distance must not be negative");
    assert_eq!(distance_km(1.0, 0.9).unwrap_err().to_string(), "the refractive index must be at least 1");
}

prop_compose! {
    fn any_opening()(
        initial in 0.001..10.0f64,
        max in prop_oneof![Just(f64::INFINITY), 1.0..200.0f64],
        exponent in prop_oneof![Just(u32::MAX), 0..20u32],
        tick in prop_oneof![Just(0.0), Just(0.1), Just(0.5)],
        attempts in 1..40u32,
        linear in 0..6u32,
        within in prop_oneof![Just(f64::INFINITY), 1.0..200.0f64],
    ) -> Opening {
        let timer = Timer { initial, max, max_backoff_exponent: exponent, tick };
        Opening { timer, attempts: Some(attempts), linear, within }
    }
}

proptest! {
    #[test]
    fn one_more_try_never_brings_a_radius_inward(opening in any_opening(), synacks in 1..12u32) {
        let more = Opening { attempts: opening.attempts.map(|attempts| attempts + 1), ..opening };
        prop_assert!(more.last_syn().value >= opening.last_syn().value);
        prop_assert!(more.abandoned().value >= opening.abandoned().value);
        let listens = Listening { timer: opening.timer, attempts: Some(synacks), shared_budget: false };
        let patient = Listening { attempts: Some(synacks + 1), ..listens };
        prop_assert!(patient.gives_up(&opening).unwrap().value >= listens.gives_up(&opening).unwrap().value);
    }

    #[test]
    fn syns_leave_in_order_and_before_the_end(opening in any_opening()) {
        let syns = opening.syns(100);
        prop_assert_eq!(syns[0], 0.0);
        prop_assert!(syns.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(syns[syns.len() - 1], opening.last_syn().value);
        prop_assert!(opening.last_syn().value < opening.abandoned().value);
    }
}
