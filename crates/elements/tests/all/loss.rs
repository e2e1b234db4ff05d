//! Loss processes: exact counts where they count, frequencies within the binomial error where they draw.

use crate::common::*;
use farpath_elements::{
    Bernoulli, BitErrors, ElementKind, EvenlySpaced, GilbertElliott, Listed, PacketCount,
};
use farpath_path::{Direction, DropCause, Fate, PacketView, PerDirection};
use farpath_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

const FORWARD: Direction = Direction::Forward;
const REVERSE: Direction = Direction::Reverse;

fn view(size: u64, carries_data: bool) -> PacketView {
    PacketView { size: Bytes(size), carries_data }
}

/// The fate of `count` packets of the given size, in order: whether each was lost.
fn fates(kind: &ElementKind, seed: u64, direction: Direction, sizes: &[u64], count: u64) -> Vec<bool> {
    let mut element = spec("loss", kind.clone()).transit(seed).expect("sound");
    let fate = |n: u64| {
        let size = sizes[n as usize % sizes.len()];
        match element.transit(at_ns(n), direction, view(size, true)) {
            Fate::Drop(_) => true,
            Fate::Depart(due) => {
                assert_eq!(due, at_ns(n), "loss takes no time");
                false
            }
            other => panic!("a loss process did {other:?}"),
        }
    };
    (0..count).map(fate).collect()
}

fn lost(fates: &[bool]) -> u64 {
    fates.iter().filter(|lost| **lost).count() as u64
}

/// Whether a count of independent events is within 4 standard deviations of its mean.
pub fn within_4_sigma(events: u64, trials: u64, probability: f64) {
    let mean = trials as f64 * probability;
    let sigma = (mean * (1.0 - probability)).sqrt();
    assert!((events as f64 - mean).abs() <= 4.0 * sigma, "{events} of {trials}, expected {mean} ± {sigma}");
}

#[test]
fn independent_loss_has_the_frequency_it_says() {
    for (seed, loss_rate) in [(1, 1e-3), (2, 0.01), (3, 0.1), (4, 0.5), (5, 0.99)] {
        for direction in Direction::BOTH {
            let fates = fates(&bernoulli(loss_rate), seed, direction, &[1500], 200_000);
            within_4_sigma(lost(&fates), 200_000, loss_rate);
            // Independent: a loss is followed by another one as often as anything else is.
            let pairs = fates.windows(2).filter(|pair| pair[0] && pair[1]).count() as u64;
            within_4_sigma(pairs, lost(&fates), loss_rate);
        }
    }
}

#[test]
fn loss_rates_of_zero_and_one_are_exact() {
    assert_eq!(lost(&fates(&bernoulli(0.0), 1, FORWARD, &[1500], 10_000)), 0);
    assert_eq!(lost(&fates(&bernoulli(1.0), 1, FORWARD, &[1500], 10_000)), 10_000);
}

#[test]
fn a_higher_loss_rate_loses_the_same_packets_and_more() {
    // One draw per packet: packet n meets the same number at every rate.
    let few = fates(&bernoulli(0.01), 9, FORWARD, &[1500], 20_000);
    let more = fates(&bernoulli(0.1), 9, FORWARD, &[1500], 20_000);
    assert!(few.iter().zip(&more).all(|(few, more)| !few || *more));
}

#[test]
fn directions_names_and_seeds_lose_different_packets() {
    let base = fates(&bernoulli(0.5), 1, FORWARD, &[1500], 200);
    assert_ne!(base, fates(&bernoulli(0.5), 1, REVERSE, &[1500], 200));
    assert_ne!(base, fates(&bernoulli(0.5), 2, FORWARD, &[1500], 200));
    assert_eq!(base, fates(&bernoulli(0.5), 1, FORWARD, &[1500], 200));
}

#[test]
fn packets_that_are_not_counted_pass_and_use_no_draw() {
    let counting =
        |count| ElementKind::Bernoulli(Bernoulli { loss_rate: PerDirection::both(probability(0.3)), count });
    let all = fates(&counting(PacketCount::All), 5, FORWARD, &[1500], 1000);
    let mut element = spec("loss", counting(PacketCount::Data)).transit(5).expect("sound");
    for (n, lost) in (0..).zip(all) {
        // An ACK in front of each data packet moves nothing.
        assert_eq!(element.transit(at_ns(n), FORWARD, view(40, false)), Fate::Depart(at_ns(n)));
        let fate = element.transit(at_ns(n), FORWARD, view(1500, true));
        assert_eq!(fate == Fate::Drop(DropCause::Loss), lost);
    }
}

proptest! {
    #[test]
    fn evenly_spaced_loss_has_an_exact_count_at_every_phase(every in 1u64..40, packets in 0u64..500) {
        for phase in 0..every {
            let kind = ElementKind::EvenlySpaced(EvenlySpaced {
                every: PerDirection { forward: Some(every), reverse: None },
                phase: Some(phase),
                count: PacketCount::All,
            });
            let fates_forward = fates(&kind, 0, FORWARD, &[1500], packets);
            prop_assert_eq!(lost(&fates_forward), (packets + every - 1 - phase) / every);
            let chosen = (0..packets).map(|n| n % every == phase);
            prop_assert_eq!(fates_forward, chosen.collect::<Vec<_>>());
            prop_assert_eq!(lost(&fates(&kind, 0, REVERSE, &[1500], packets)), 0);
        }
    }

    #[test]
    fn listed_loss_drops_exactly_the_list(list in prop::collection::btree_set(1u64..300, 0..40)) {
        let list: Vec<u64> = list.into_iter().collect();
        let fates = fates(&listed(&list), 0, FORWARD, &[1500], 300);
        let dropped: Vec<u64> = (1..).zip(fates).filter(|(_, lost)| *lost).map(|(n, _)| n).collect();
        prop_assert_eq!(dropped, list);
    }
}

#[test]
fn an_open_phase_is_drawn_from_the_seed_and_reaches_all_phases() {
    let kind = ElementKind::EvenlySpaced(EvenlySpaced {
        every: PerDirection::both(Some(4)),
        phase: None,
        count: PacketCount::All,
    });
    let mut seen = [0u64; 4];
    for seed in 0..400 {
        let fates = fates(&kind, seed, FORWARD, &[1500], 4);
        assert_eq!(lost(&fates), 1);
        seen[fates.iter().position(|lost| *lost).expect("one is lost")] += 1;
    }
    seen.iter().for_each(|&n| within_4_sigma(n, 400, 0.25));
}

#[test]
fn data_packet_309_is_data_packet_309_whatever_else_passes() {
    let kind = ElementKind::Listed(Listed {
        times: PerDirection::default(),
        packets: PerDirection { forward: vec![309], reverse: vec![] },
        count: PacketCount::Data,
    });
    let mut element = spec("loss", kind).transit(0).expect("sound");
    for n in 1..=1000 {
        assert_eq!(element.transit(Instant::ZERO, FORWARD, view(40, false)), Fate::Depart(Instant::ZERO));
        let fate = element.transit(Instant::ZERO, FORWARD, view(1500, true));
        assert_eq!(fate == Fate::Drop(DropCause::Loss), n == 309);
    }
}

#[test]
fn each_listed_time_costs_the_first_packet_that_comes_then_or_later() {
    let ms = |at: u64| Duration::from_millis(at);
    let kind = ElementKind::Listed(Listed {
        packets: PerDirection::default(),
        times: PerDirection { forward: vec![ms(10), ms(11), ms(30)], reverse: vec![] },
        count: PacketCount::Data,
    });
    let mut element = spec("loss", kind).transit(0).expect("sound");
    let mut lost = |at, carries_data| {
        let now = Instant::ZERO + ms(at);
        element.transit(now, FORWARD, view(1500, carries_data)) == Fate::Drop(DropCause::Loss)
    };
    assert!(!lost(9, true));
    assert!(!lost(12, false), "only data count");
    // Two times have passed: two packets.
    assert_eq!([12, 13, 14, 30, 31].map(|at| lost(at, true)), [true, true, false, true, false]);
}

fn gilbert(good_to_bad: f64, bad_to_good: f64, loss_good: f64, loss_bad: f64) -> ElementKind {
    ElementKind::GilbertElliott(GilbertElliott {
        good_to_bad: probability(good_to_bad),
        bad_to_good: probability(bad_to_good),
        loss_good: probability(loss_good),
        loss_bad: probability(loss_bad),
        active: PerDirection { forward: true, reverse: false },
    })
}

#[test]
fn burst_loss_has_the_stationary_rate_and_geometric_bursts() {
    let (enter, leave, packets) = (0.01, 0.2, 400_000);
    let fates = fates(&gilbert(enter, leave, 0.0, 1.0), 3, FORWARD, &[1500], packets);
    // Neighbours are correlated by 1 - enter - leave, which widens the binomial error.
    let share = enter / (enter + leave);
    let correlation = 1.0 - enter - leave;
    let sigma = (packets as f64 * share * (1.0 - share) * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    let mean = packets as f64 * share;
    assert!((lost(&fates) as f64 - mean).abs() < 4.0 * sigma, "{} vs {mean} ± {sigma}", lost(&fates));
    // A burst ends after each of its packets with the probability of leaving the bad state.
    let ends = fates.windows(2).filter(|pair| pair[0] && !pair[1]).count() as u64;
    within_4_sigma(ends, lost(&fates), leave);
}

#[test]
fn burst_loss_loses_in_both_states_at_their_own_rates() {
    let (enter, leave, good, bad) = (0.5, 0.5, 0.1, 0.7);
    // The next state does not depend on the last one here, so packets are independent again.
    let fates = fates(&gilbert(enter, leave, good, bad), 4, FORWARD, &[1500], 100_000);
    within_4_sigma(lost(&fates), 100_000, 0.4);
}

#[test]
fn burst_loss_starts_in_its_stationary_distribution() {
    let first = |seed| fates(&gilbert(0.01, 0.04, 0.0, 1.0), seed, FORWARD, &[1500], 1)[0];
    within_4_sigma((0..5000).filter(|&seed| first(seed)).count() as u64, 5000, 0.2);
}

#[test]
fn burst_loss_acts_only_where_it_is_active() {
    assert_eq!(lost(&fates(&gilbert(1.0, 0.0, 1.0, 1.0), 1, REVERSE, &[1500], 1000)), 0);
    assert_eq!(lost(&fates(&gilbert(1.0, 0.0, 1.0, 1.0), 1, FORWARD, &[1500], 1000)), 1000);
    assert_eq!(lost(&fates(&gilbert(0.0, 0.0, 0.0, 1.0), 1, FORWARD, &[1500], 1000)), 0);
}

fn bit_errors(rate: f64, overhead: u64, linear: bool) -> ElementKind {
    ElementKind::BitErrors(BitErrors {
        ber: PerDirection::both(ber(rate)),
        overhead: Bytes(overhead),
        linear,
    })
}

#[test]
fn bit_errors_hit_each_packet_by_its_own_length() {
    for rate in [1e-6, 1e-5, 1e-4] {
        let fates = fates(&bit_errors(rate, 18, false), 6, FORWARD, &[1500, 40, 576], 300_000);
        for (place, size) in [1500u64, 40, 576].into_iter().enumerate() {
            let hit = fates.iter().skip(place).step_by(3).filter(|lost| **lost).count() as u64;
            let exact = 1.0 - (1.0 - rate).powi((size as i32 + 18) * 8);
            within_4_sigma(hit, 100_000, exact);
        }
    }
}

#[test]
fn the_linear_form_is_capped_at_one() {
    let fates_at = |rate| fates(&bit_errors(rate, 0, true), 7, FORWARD, &[1500], 50_000);
    assert_eq!(lost(&fates_at(8.4e-5)), 50_000);
    within_4_sigma(lost(&fates_at(4e-5)), 50_000, 0.48);
    let exact = fates(&bit_errors(8.4e-5, 0, false), 7, FORWARD, &[1500], 50_000);
    within_4_sigma(lost(&exact), 50_000, 0.6350);
}

#[test]
fn an_error_free_channel_never_hits_and_a_hopeless_one_always() {
    assert_eq!(lost(&fates(&bit_errors(0.0, 18, false), 1, FORWARD, &[40, 1500], 10_000)), 0);
    assert_eq!(lost(&fates(&bit_errors(1.0, 18, false), 1, FORWARD, &[40, 1500], 10_000)), 10_000);
}
