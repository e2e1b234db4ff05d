use super::*;
use farpath_units::Probability;
use proptest::prelude::*;

const FOREVER: f64 = f64::INFINITY;

fn timer(initial: f64) -> Timer {
    Timer { initial, max: FOREVER, max_backoff_exponent: u32::MAX, tick: 0.0, wheel: false, counted: false }
}

/// Of Linux at 250 jiffies a second.
fn wheel() -> Timer {
    Timer { max: 120.0, tick: 0.004, wheel: true, ..timer(1.0) }
}

/// What no clock changes.
fn exact(span: Span) -> f64 {
    assert_eq!(span.least, span.most);
    span.least
}

fn exactly(spans: Vec<Span>) -> Vec<f64> {
    spans.into_iter().map(exact).collect()
}

fn assert_span(span: Span, least: f64, most: f64) {
    let off = (span.least - least).abs().max((span.most - most).abs());
    assert!(off < 1e-6, "{span:?} is not {least} to {most}");
}

fn opening(initial: f64, attempts: u32) -> Opening {
    Opening { timer: timer(initial), attempts: Some(attempts), linear: 0, within: FOREVER }
}

#[test]
fn the_papers_opnet_sends_four_syns_and_gives_up_at_45_s() {
    let opnet = opening(3.0, 4);
    assert_eq!(exactly(opnet.syns(10)), [0.0, 3.0, 9.0, 21.0]);
    assert_eq!((exact(opnet.last_syn().value), exact(opnet.abandoned().value)), (21.0, 45.0));
}

#[test]
fn windows_2003_has_its_last_syn_at_9_s_and_gives_up_at_21_s() {
    let windows = opening(3.0, 3);
    assert_eq!((exact(windows.last_syn().value), exact(windows.abandoned().value)), (9.0, 21.0));
}

#[test]
fn two_hundred_and_fifty_five_retries_overflow_nothing() {
    let windows = opening(3.0, 256);
    assert!((exact(windows.last_syn().value) / 1.737e77 - 1.0).abs() < 1e-3, "{:?}", windows.last_syn());
    assert!((exact(windows.abandoned().value) / 3.474e77 - 1.0).abs() < 1e-3);
    let wheel = Opening { timer: Timer { max: FOREVER, ..wheel() }, ..windows };
    assert!(wheel.abandoned().value.most > 5e76, "nor does the wheel");
    assert_eq!(exact(opening(3.0, u32::MAX).abandoned().value), FOREVER, "beyond f64, and no panic");
}

#[test]
fn linear_timeouts_come_before_the_doubling() {
    let linux = Opening { timer: Timer { max: 120.0, ..timer(1.0) }, linear: 4, ..opening(1.0, 11) };
    assert_eq!(exactly(linux.syns(20)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0]);
    assert_eq!(exact(linux.abandoned().value), 131.0);
    assert_eq!(exact(Opening { linear: 0, attempts: Some(7), ..linux }.abandoned().value), 127.0);
}

#[test]
fn a_time_for_the_whole_ends_it_before_the_count_does() {
    let freebsd = Opening { within: 75.0, ..opening(1.0, 13) };
    assert_eq!(exactly(freebsd.syns(20)), [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0]);
    assert_eq!((exact(freebsd.last_syn().value), exact(freebsd.abandoned().value)), (63.0, 75.0));
    let endless = Opening { attempts: None, within: 63.0, ..freebsd };
    let ends = (exact(endless.last_syn().value), exact(endless.abandoned().value));
    assert_eq!(ends, (31.0, 63.0), "not at the end itself");
}

#[test]
fn the_ceiling_and_the_tick_are_in_every_wait() {
    let capped = Opening { timer: Timer { max: 10.0, ..timer(3.0) }, ..opening(3.0, 5) };
    assert_eq!(exactly(capped.syns(9)), [0.0, 3.0, 9.0, 19.0, 29.0]);
    // Only the first wait begins anywhere; the others begin on a tick.
    let coarse = Opening { timer: Timer { tick: 0.5, ..timer(0.7) }, ..opening(0.7, 4) };
    for (span, least) in coarse.syns(9).into_iter().zip([0.0, 0.7, 2.2, 5.2]) {
        assert_span(span, least, if least == 0.0 { 0.0 } else { least + 0.5 });
    }
}

#[test]
fn a_wheel_is_the_coarser_the_longer_the_wait() {
    // 1 s falls into buckets of 32 ms, 32 s and 64 s into buckets of 2.048 s. Linux 6.18 was measured to send SYNs at 1.03,
    // 7.14, 35.5 and 67.7 s and to give up after 134 s, from wherever it was started.
    let linux = Opening { timer: wheel(), linear: 4, ..opening(1.0, 11) };
    let syns = linux.syns(20);
    assert_span(syns[1], 1.0, 1.032);
    assert_span(syns[6], 1.0 + 4.0 * 1.024 + 2.016, 1.032 + 4.0 * 1.024 + 2.016);
    for (index, measured) in [(1, 1.03), (6, 7.14), (9, 35.5), (10, 67.7)] {
        let Span { least, most } = syns[index];
        // They were noted to three digits.
        assert!(least - 0.05 < measured && measured < most + 0.05, "{measured}: {least} to {most}");
    }
    assert_span(linux.abandoned().value, 133.256, 135.304);
}

#[test]
fn without_an_end_there_is_no_radius() {
    let ns = Opening { attempts: None, ..opening(3.0, 1) };
    assert_eq!((exact(ns.last_syn().value), exact(ns.abandoned().value)), (FOREVER, FOREVER));
    let listens = Listening { timer: timer(3.0), attempts: None, shared_budget: false };
    assert_eq!(exact(listens.gives_up(&ns).unwrap().value.span), FOREVER);
}

#[test]
fn a_lone_syn_gives_the_listener_its_own_schedule() {
    let listens = Listening { timer: timer(1.0), attempts: Some(6), shared_budget: false };
    let forgets = listens.gives_up(&opening(1e6, 1)).unwrap().value;
    assert_eq!((exact(forgets.span), forgets.race), (63.0, None));
}

#[test]
fn syns_that_come_again_keep_a_listener_alive_if_they_come_before_its_timer() {
    // Equal timers on exact clocks: each SYN meets the timer. Where the timer is always first, there is no wait to stretch.
    let linux = Opening { timer: Timer { max: 120.0, ..timer(1.0) }, linear: 4, ..opening(1.0, 11) };
    let listens = Listening { timer: linux.timer, attempts: Some(6), shared_budget: false };
    let Forgets { span, race } = listens.gives_up(&linux).unwrap().value;
    assert_eq!(span, Span { least: 67.0, most: 99.0 });
    assert_eq!(race, Some(Race { early: 67.0, late: 99.0, early_share: None }));
}

#[test]
fn on_a_wheel_one_connection_in_nine_loses_its_race() {
    let linux = Opening { timer: wheel(), linear: 4, ..opening(1.0, 11) };
    let listens = Listening { timer: linux.timer, attempts: Some(6), shared_budget: false };
    let Forgets { span, race } = listens.gives_up(&linux).unwrap().value;
    let Race { early, late, early_share } = race.expect("a race");
    assert!((67.6..67.8).contains(&span.least) && (103.7..103.9).contains(&span.most), "{span:?}");
    assert!((69.0..70.0).contains(&early) && (99.0..101.0).contains(&late), "{race:?}");
    // 100 000 random ways for the clocks to stand: 11.4 %.
    assert!((early_share.expect("clocks") - 0.114).abs() < 0.005, "{race:?}");
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

#[test]
fn a_timer_that_counts_ticks_ends_up_to_one_early() {
    let counted = Timer { tick: 0.5, counted: true, ..timer(0.7) };
    // Two ticks, of which the first may be about to end.
    let wait = counted.wait();
    assert!((wait.least - 0.5).abs() < 1e-6 && wait.most == 1.0, "{wait:?}");
    let opening = Opening { timer: counted, ..opening(0.7, 3) };
    // 0.7, 1.4 and 2.8 s are 2, 3 and 6 ticks; only the first can be short.
    let abandoned = opening.abandoned().value;
    assert!((abandoned.least - 5.0).abs() < 1e-6 && abandoned.most == 5.5, "{abandoned:?}");
}

prop_compose! {
    fn any_opening()(
        initial in 0.001..10.0f64,
        max in prop_oneof![Just(f64::INFINITY), 1.0..200.0f64],
        exponent in prop_oneof![Just(u32::MAX), 0..20u32],
        (tick, wheel) in prop_oneof![Just((0.0, false)), Just((0.1, false)), Just((0.5, false)), Just((0.004, true))],
        attempts in 1..20u32,
        linear in 0..6u32,
        within in prop_oneof![Just(f64::INFINITY), 1.0..200.0f64],
    ) -> Opening {
        // No timeout of Linux is longer than 120 s (TCP_RTO_MAX); up to 129 s every place on the wheel is tried.
        let max = if wheel { max.min(120.0) } else { max };
        let timer = Timer { initial, max, max_backoff_exponent: exponent, tick, wheel, counted: false };
        Opening { timer, attempts: Some(attempts), linear, within }
    }
}

fn not_inward(far: Span, near: Span) -> bool {
    far.least >= near.least && far.most >= near.most
}

proptest! {
    // Each case walks thousands of ways for the clocks to stand.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn one_more_try_never_brings_a_radius_inward(opening in any_opening(), synacks in 1..12u32) {
        let more = Opening { attempts: opening.attempts.map(|attempts| attempts + 1), ..opening };
        prop_assert!(not_inward(more.last_syn().value, opening.last_syn().value));
        prop_assert!(not_inward(more.abandoned().value, opening.abandoned().value));
        let listens = Listening { timer: opening.timer, attempts: Some(synacks), shared_budget: false };
        let patient = Listening { attempts: Some(synacks + 1), ..listens };
        let [more, less] = [patient, listens].map(|listens| listens.gives_up(&opening).unwrap().value.span);
        // Other ways for the clocks to stand are tried where the timeouts are longer: a granule of them.
        let granule = opening.timer.period(synacks) / NS;
        prop_assert!(more.least >= less.least - granule && more.most >= less.most - granule, "{more:?} {less:?}");
    }
}

proptest! {
    // And these hundreds, for each SYN.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn syns_leave_in_order_and_before_the_end(opening in any_opening()) {
        let syns = opening.syns(100);
        prop_assert_eq!(exact(syns[0]), 0.0);
        prop_assert!(syns.windows(2).all(|pair| pair[0].least < pair[1].least && pair[0].most < pair[1].most));
        prop_assert_eq!(syns[syns.len() - 1], opening.last_syn().value);
        prop_assert!(opening.last_syn().value.least < opening.abandoned().value.least);
    }

    #[test]
    fn loss_and_distance_never_make_a_connection_likelier(
        opening in any_opening(), synacks in 1..8u32, owd in 0.0..40.0f64, loss in 0.0..1.0f64, more in 1.01..2.0f64,
    ) {
        // Patterns of SYNs double with each of them.
        let opening = Opening { attempts: opening.attempts.map(|attempts| attempts.min(7)), ..opening };
        let listens = Listening { timer: opening.timer, attempts: Some(synacks), shared_budget: false };
        let at = |owd, loss| connects(&opening, &listens, lossy_way(owd, loss, loss));
        let here = at(owd, loss);
        prop_assert!(here.usable <= here.opened + 1e-12 && here.opened <= 1.0 + 1e-12, "{here:?}");
        // Of SYN/ACKs: of SYNs it is no theorem, since each that comes restarts the listener's timer.
        let lossier = connects(&opening, &listens, lossy_way(owd, loss, (loss * more).min(1.0)));
        prop_assert!(lossier.opened <= here.opened + here.left_out + 1e-12);
        // Without a tick the listener does not know how far the first SYN has come.
        let exact = Timer { tick: 0.0, ..opening.timer };
        let (opening, listens) = (Opening { timer: exact, ..opening }, Listening { timer: exact, ..listens });
        let at = |owd| connects(&opening, &listens, lossy_way(owd, loss, loss));
        let here = at(owd);
        prop_assert!(at(owd * more).opened <= here.opened + here.left_out + 1e-12);
        if let Some(time) = here.time_to_open {
            prop_assert!(time >= 2.0 * owd - 2e-9, "{here:?}");
        }
    }

    #[test]
    fn a_schedule_told_one_by_one_is_the_schedule(opening in any_opening(), at in 0.0..1.0f64) {
        let start = at * opening.period();
        for (one, span) in opening.syns_from(start).zip(opening.syns(20)) {
            // Starts between the places that are tried are between what comes of those, but for a nanosecond.
            let one = one / NS;
            prop_assert!(one > span.least - 2e-9 && one < span.most + 2e-9, "{one} {span:?}");
        }
    }
}

fn lossy_way(owd: f64, forward: f64, reverse: f64) -> LossyWay {
    let [forward_loss, reverse_loss] =
        [forward, reverse].map(|loss| Probability::new(loss).expect("a share"));
    LossyWay { forward_delay: owd, reverse_delay: owd, forward_loss, reverse_loss, data_loss: forward_loss }
}

/// Nothing but the ACK, and its repetitions for every SYN/ACK.
fn no_data(_: Opened) -> FirstData {
    FirstData { ack_alone: true, segments: 0, timer: timer(1.0), probe: None, retries: None }
}

fn connects(opening: &Opening, listening: &Listening, way: LossyWay) -> Connects {
    LossyOpening { opening, listening, way, clocks: [0.0; 2], first_data: &no_data }.connects().unwrap().value
}

#[test]
fn without_loss_a_connection_opens_within_the_radius_and_not_beyond() {
    let linux = Opening { timer: Timer { max: 120.0, ..timer(1.0) }, linear: 4, ..opening(1.0, 11) };
    let listens = Listening { timer: linux.timer, attempts: Some(6), shared_budget: false };
    let near = connects(&linux, &listens, lossy_way(33.0, 0.0, 0.0));
    assert_eq!((near.opened, near.usable, near.time_to_open), (1.0, 1.0, Some(66.0)));
    let half = connects(&linux, &listens, lossy_way(60.0, 0.0, 0.0));
    assert_eq!((half.opened, half.usable, half.time_to_open), (1.0, 0.0, Some(120.0)));
    assert_eq!(connects(&linux, &listens, lossy_way(65.51, 0.0, 0.0)), Connects::default());
}

#[test]
fn with_one_syn_and_one_answer_it_is_three_packets_in_a_row() {
    // Forward and backward apart: SYN and ACK go one way, the SYN/ACK the other.
    let once = opening(3.0, 1);
    let listens = Listening { timer: timer(3.0), attempts: Some(1), shared_budget: false };
    let Connects { opened, usable, time_to_open, left_out, .. } =
        connects(&once, &listens, lossy_way(0.5, 0.1, 0.3));
    assert!((opened - 0.9 * 0.7).abs() < 1e-12 && (usable - 0.9 * 0.7 * 0.9).abs() < 1e-12);
    assert_eq!((time_to_open, left_out), (Some(1.0), 0.0));
}

#[test]
fn two_syns_worked_by_hand() {
    // SYNs at 0 and 3 s, the end at 9 s; a way of 1 s; the listener says it once for each SYN, and forgets it 20 s later.
    let twice = opening(3.0, 2);
    let listens = Listening { timer: timer(20.0), attempts: Some(1), shared_budget: false };
    let (p, q) = (0.2, 0.4);
    let found = connects(&twice, &listens, lossy_way(1.0, p, q));
    let each = (1.0 - p) * (1.0 - q);
    assert!((found.opened - (1.0 - (1.0 - each) * (1.0 - each))).abs() < 1e-12, "{found:?}");
    let mean = (each * 2.0 + (1.0 - each) * each * 5.0) / found.opened;
    assert!((found.time_to_open.unwrap() - mean).abs() < 1e-12, "{found:?}");
    // Open at 2 s: the second SYN never leaves. Open at 5 s: nothing follows either. The one ACK arrives or not.
    assert!((found.usable - found.opened * (1.0 - p)).abs() < 1e-12, "{found:?}");
    // An answer that comes again is answered again: the listener's own at 1 + 4 = 5 s comes at 6 s, before the end.
    let patient = Listening { timer: timer(4.0), attempts: Some(2), ..listens };
    let found = connects(&opening(9.0, 1), &patient, lossy_way(1.0, p, q));
    assert!((found.opened - (1.0 - p) * (1.0 - q * q)).abs() < 1e-12, "{found:?}");
    // Of the first that comes: its ACK, and with the second SYN/ACK another; of the second only its own.
    let usable = (1.0 - q) * (1.0 - p * (1.0 - each)) + q * (1.0 - q) * (1.0 - p);
    assert!((found.usable - (1.0 - p) * usable).abs() < 1e-12, "{found:?} {usable}");
}

#[test]
fn what_is_forgotten_is_no_connection_though_a_later_syn_begins_another() {
    // The first SYN's connection is forgotten after 1 s, its SYN/ACK is answered after 6 s, by when the second SYN's is.
    let twice = opening(10.0, 2);
    let listens = Listening { timer: timer(1.0), attempts: Some(1), shared_budget: false };
    let found = connects(&twice, &listens, lossy_way(3.0, 0.0, 0.0));
    assert_eq!((found.opened, found.usable), (1.0, 0.0));
}

#[test]
fn schedules_without_end_say_what_is_left_out() {
    let ns = Opening { attempts: None, ..opening(3.0, 1) };
    let listens = Listening { timer: timer(3.0), attempts: None, shared_budget: false };
    let way = lossy_way(0.1, 0.5, 0.5);
    let estimate =
        LossyOpening { opening: &ns, listening: &listens, way, clocks: [0.0; 2], first_data: &no_data }
            .connects()
            .unwrap();
    let Connects { opened, left_out, .. } = estimate.value;
    assert!((opened + left_out - 1.0).abs() < 1e-9 && left_out < 0.01 && left_out > 0.0, "{estimate:?}");
    assert_eq!(estimate.caveats.len(), 1);
}

#[test]
fn a_lone_segment_is_lost_as_often_as_it_may_be_sent() {
    let data =
        FirstData { segments: 1, retries: Some(2), ..no_data(Opened { after: 0.0, syns: 1, echoed: 0.0 }) };
    let LoneSegment { delivered, answered } =
        lossy_way(0.1, 0.2, 0.4).lone_segment(&data, 0.0).unwrap().value;
    assert!((delivered - (1.0 - 0.2_f64.powi(3))).abs() < 1e-12);
    assert!((answered - (1.0 - (1.0 - 0.8 * 0.6_f64).powi(3))).abs() < 1e-12);
    // Copies at 0, 1 and 3 s, the end at 7 s: over a round trip of 5 s the last one's answer is too late, over 8 s all are.
    let at = |rtt: f64| lossy_way(rtt / 2.0, 0.0, 0.5).lone_segment(&data, 0.0).unwrap().value.answered;
    assert_eq!((at(4.0), at(5.0), at(6.5), at(7.5)), (0.875, 0.75, 0.5, 0.0));
    // A probe after 0.5 s starts the timer anew: copies at 0, 0.5, 1.5, 3.5 s, and the end at 7.5 s.
    let probed = FirstData { probe: Some(0.5), ..data };
    let way = lossy_way(2.0, 0.5, 0.0);
    assert_eq!(way.lone_segment(&probed, 0.0).unwrap().value.answered, 1.0 - 0.5_f64.powi(4));
}
