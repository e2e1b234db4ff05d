//! The scoreboard, rule by rule, and against a scan by the letter of RFC 6675.

use super::by_time::ByTime;
use super::*;
use farpath_units::Duration;
use proptest::prelude::*;

const SMSS: u64 = 1000;

fn sent(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::new(1);
    for n in 1..=segments {
        board.push(1 + n * SMSS, Instant::ZERO);
    }
    board
}

fn segment(n: u64) -> Range<u64> {
    1 + n * SMSS..1 + (n + 1) * SMSS
}

/// SetPipe() by the letter of RFC 6675 §4, as an oracle for the running count.
fn pipe_by_scan(board: &Scoreboard) -> u64 {
    (0..board.segments.len())
        .map(|i| {
            let bounds = board.bounds(i);
            (bounds.end - bounds.start) * board.segments[i].copies_in_network()
        })
        .sum()
}

#[test]
fn three_separate_sacks_or_more_than_two_segments_worth_mean_loss() {
    let mut board = sent(10);
    board.sack(segment(2));
    board.sack(segment(4));
    assert!(!board.detect_losses(3, SMSS));
    board.sack(segment(6));
    assert!(board.detect_losses(3, SMSS));
    assert_eq!(board.next_lost(), Some(segment(0)));
    assert_eq!(board.lost_below, segment(2).start, "segment 3 has only two SACKed ones above it");

    let mut board = sent(10);
    board.sack(1001..3001);
    assert!(!board.detect_losses(3, SMSS), "exactly two segments are not more than two");
    board.sack(3001..4001);
    assert!(board.detect_losses(3, SMSS));
}

#[test]
fn pipe_counts_what_is_neither_sacked_nor_lost_and_every_retransmitted_copy() {
    let mut board = sent(10);
    assert_eq!(board.pipe(), 10 * SMSS);
    assert_eq!(board.sack(3001..6001), 3 * SMSS);
    assert_eq!(board.pipe(), 7 * SMSS);
    board.detect_losses(3, SMSS);
    assert_eq!(board.pipe(), 4 * SMSS);
    board.retransmitted(1, Instant::ZERO, true);
    assert_eq!(board.pipe(), 5 * SMSS);
    assert_eq!(board.next_lost(), Some(segment(1)));
    board.acknowledge(1001);
    assert_eq!(board.pipe(), 4 * SMSS);
}

#[test]
fn after_a_timeout_all_but_the_sacked_is_sent_again() {
    let mut board = sent(4);
    board.sack(segment(1));
    board.retransmitted(1, Instant::ZERO, true);
    board.lose_all();
    assert_eq!(board.pipe(), 0);
    let mut again = Vec::new();
    while let Some(range) = board.next_lost() {
        board.retransmitted(range.start, Instant::ZERO, true);
        again.push(range);
    }
    assert_eq!(again, [segment(0), segment(2), segment(3)]);
}

#[test]
fn a_receiver_that_reneges_is_no_longer_believed() {
    let mut board = sent(3);
    board.sack(segment(0));
    board.lose_all();
    assert_eq!(board.next_lost(), Some(segment(0)));
    assert!(board.sacked.is_empty());
}

#[test]
fn no_rtt_comes_from_a_segment_that_was_sent_twice() {
    let mut board = sent(2);
    board.retransmitted(1, Instant::from_nanos(5), true);
    assert_eq!(board.acknowledge(1001), None);
    assert_eq!(board.acknowledge(2001), Some(Instant::ZERO));
}

proptest! {
    #[test]
    fn the_running_pipe_is_what_a_scan_gives(ops in prop::collection::vec((0..7u8, 0..40u64, 1..8u64), 1..80)) {
        let mut board = Scoreboard::new(1);
        for (op, at, len) in ops {
            let base = board.start;
            match op {
                0 | 1 => board.push(board.end() + len * 100, Instant::ZERO),
                2 => { board.acknowledge((base + at * 50).min(board.end())); }
                3 | 4 => { board.sack(base + at * 100..base + (at + len) * 100); board.detect_losses(3, 100); }
                5 => if let Some(range) = board.next_lost() { board.retransmitted(range.start, Instant::ZERO, true); },
                _ => if len == 1 { board.lose_all() } else { board.begin_recovery() },
            }
            prop_assert_eq!(board.pipe(), pipe_by_scan(&board));
            prop_assert!(board.sacked.descending().all(|r| r.start >= board.start && r.end <= board.end()));
            if let Some(range) = board.next_unsacked() { prop_assert!(range.start >= board.start); }
        }
    }
}

#[test]
fn a_copy_of_what_is_reported_is_never_found_lost() {
    // A tail loss probe that was due before the report came repeats the last segment all the same.
    let mut board = sent(3);
    board.keep_times_of_copies();
    board.sack(segment(2));
    board.retransmitted(segment(2).start, Instant::from_nanos(1), false);
    let later = Sending { at: Instant::from_nanos(9), count: 9, end: segment(3).end };
    let look =
        |board: &mut Scoreboard| board.detect_losses_by_time(later, Duration::ZERO, Instant::from_nanos(9));
    board.acknowledge(segment(1).end);
    assert_eq!(look(&mut board.clone()), ByTime::default());
    board.acknowledge(segment(2).end);
    assert_eq!(look(&mut board), ByTime::default());
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

/// Three segments and a copy of the first, sent at 10 ns; `look` at what arrived that was sent at 20 ns.
fn copy_in_network() -> Scoreboard {
    let mut board = sent(3);
    board.keep_times_of_copies();
    board.retransmitted(1, at(10), true);
    board
}

fn look(board: &mut Scoreboard, wait: u64, now: u64) -> ByTime {
    let later = Sending { at: at(20), count: 9, end: segment(2).end };
    board.detect_losses_by_time(later, Duration::from_nanos(wait), at(now))
}

#[test]
fn a_copy_that_may_yet_be_lost_is_looked_at_when_its_time_is_over() {
    let mut board = copy_in_network();
    assert_eq!(look(&mut board, 15, 21).due, Some(at(25)));
    assert_eq!(board.next_lost(), Some(segment(1)), "the originals have had their time");
    assert!(look(&mut board, 15, 25).lost);
    assert_eq!(board.next_lost(), Some(segment(0)));
}

#[test]
fn after_a_timeout_no_copy_is_found_lost() {
    // What was sent before it is lost as a whole.
    let mut board = copy_in_network();
    board.lose_all();
    assert_eq!(look(&mut board, 0, 30), ByTime::default());
}

#[test]
fn a_copy_that_was_not_lost_after_all_is_in_the_network_again() {
    let mut board = copy_in_network();
    board.acknowledge(1);
    assert!(look(&mut board, 0, 30).lost);
    board.lose_nothing();
    assert_eq!((board.next_lost(), board.pipe()), (None, 3 * SMSS));
    assert!(look(&mut board, 0, 30).lost);
}

#[test]
fn a_look_for_losses_before_there_are_any_hides_none() {
    let mut board = sent(10);
    assert_eq!(board.next_lost(), None);
    assert_eq!(board.lost_below(), 1);
    board.sack(segment(4).start..segment(7).end);
    assert!(board.detect_losses(3, SMSS));
    assert_eq!(board.lost_below(), segment(4).start);
    for n in 0..4 {
        assert_eq!(board.next_lost(), Some(segment(n)));
        board.retransmitted(segment(n).start, at(1), true);
    }
    assert_eq!(board.next_lost(), None);
}

#[test]
fn what_sack_reports_counts_until_it_is_acknowledged() {
    let mut board = sent(5);
    board.sack(segment(1).start..segment(3).end);
    assert_eq!((board.sacked_segments(), board.sacked_bytes()), (3, 3 * SMSS));
    board.acknowledge(segment(1).end);
    assert_eq!((board.sacked_segments(), board.sacked_bytes()), (2, 2 * SMSS));
}

#[test]
fn every_copy_that_is_lost_is_tallied_and_where_it_was_in_the_order_of_sending() {
    let mut board = Scoreboard::new(1);
    assert_eq!(board.tally(), Tally::default());
    board.keep_times_of_copies();
    board.keep_rate();
    (1..=5).for_each(|n| board.push(1 + n * SMSS, at(0)));
    board.begin_ack();
    board.sack(segment(2));
    assert!(look(&mut board, 0, 30).lost);
    // The first two, 2000 B into the stream; then a copy, which was the sixth that was sent.
    let tally = board.tally();
    assert_eq!((tally.lost, tally.lost_to), (4 * SMSS, 5 * SMSS));
}

#[test]
fn a_segment_counts_as_beyond_the_threshold_where_more_than_5_in_256_of_its_flight_were_lost() {
    let excess = |lost| {
        let mut meter = RateMeter::default();
        meter.sent(at(0), 1000, 255_000, false);
        meter.lose(0, lost);
        meter.take_excess().map(|excess| (excess.len, excess.in_flight, excess.lost))
    };
    assert_eq!(excess(5000), None);
    assert_eq!(excess(5001), Some((5001, 256_000, 5001)));
}

#[test]
fn what_leaves_again_is_in_flight_with_the_rest() {
    let mut meter = RateMeter::default();
    meter.sent(at(0), 1000, 255_000, false);
    meter.sent_again(0, at(5), 1000, 127_000);
    meter.lose(0, 2500);
    assert_eq!(meter.take_excess(), None);
    meter.lose(0, 1);
    assert_eq!(meter.take_excess().map(|excess| (excess.in_flight, excess.lost)), Some((128_000, 2501)));
}

#[test]
fn a_copy_is_in_flight_beside_what_was_in_the_network_when_it_left() {
    let mut board = Scoreboard::new(1);
    board.keep_times_of_copies();
    board.keep_rate();
    (1..=5).for_each(|n| board.push(1 + n * SMSS, at(0)));
    board.begin_ack();
    board.sack(segment(2));
    assert!(look(&mut board, 0, 30).lost);
    let excess = |board: &mut Scoreboard| board.meter().and_then(RateMeter::take_excess);
    excess(&mut board);
    let beside = board.pipe();
    board.retransmitted(1, at(10), true);
    assert!(look(&mut board, 0, 30).lost);
    let excess = excess(&mut board).expect("half of it");
    assert_eq!((excess.len, excess.in_flight, excess.lost), (SMSS, beside + SMSS, SMSS));
}

#[test]
fn a_timeout_loses_what_has_had_its_time_and_the_first_in_any_case() {
    // RFC 8985 §6.3
    for (wait, lost) in [(5, 3), (1000, 1)] {
        let mut board = sent(3);
        board.keep_times_of_copies();
        board.lose_expired(Duration::from_nanos(wait), at(5));
        let mut again = 0;
        while let Some(range) = board.next_lost() {
            assert_eq!(range, segment(again));
            board.retransmitted(range.start, at(5), true);
            again += 1;
        }
        assert_eq!(again, lost);
    }
}
