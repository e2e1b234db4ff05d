//! Whole transfers between two endpoints.

use crate::pipe::{Hostility, Pipe, Program, Sent};
use crate::recovery_reno::riverbed;
use crate::script::config;
use crate::{duration, time};
use farpath_tcp::config::*;
use farpath_tcp::{CloseReason, Config, Flags, State};
use farpath_units::Bytes;

fn download(config: &Config, bytes: u64, delay: &str) -> Pipe {
    let programs = [Program { writes: bytes, reads: None }, Program::default()];
    Pipe::new([config, config], programs, duration(delay))
}

fn lossy(algorithm: RecoveryAlgorithm, sack: bool) -> Config {
    config(|c| {
        (c.recovery.algorithm, c.recovery.sack) = (algorithm, sack);
        c.receive.ack_every = 1;
        c.congestion.initial_window = 10;
    })
}

fn times(log: &[Sent], which: impl Fn(&Sent) -> bool) -> Vec<String> {
    log.iter().filter(|sent| which(sent)).map(|(at, ..)| at.to_string()).collect()
}

#[test]
fn a_transfer_ends_with_both_ends_closed() {
    let mut pipe = download(&config(|c| c.handshake.time_wait = duration("2 s")), 100_000, "20 ms");
    pipe.run(time("100 s"));
    assert!(pipe.delivered());
    assert_eq!(pipe.ends[0].state(), State::TimeWait);
    assert_eq!(pipe.ends[1].state(), State::Closed);
    for end in &pipe.ends {
        assert_eq!(end.closed().map(|(reason, _)| reason), Some(CloseReason::Finished));
    }
}

#[test]
fn several_syns_are_in_flight_on_a_path_of_16_s() {
    // R000-13
    let mut pipe = download(&riverbed(), 1000, "16 s");
    pipe.run(time("200 s"));
    let syns = times(&pipe.log, |(_, from, seg)| *from == 0 && seg.flags.contains(Flags::SYN));
    assert_eq!(syns, ["0 s", "3 s", "9 s", "21 s"]);
    assert_eq!(pipe.ends[0].established_at(), Some(time("32 s")));
    assert!(pipe.ends[1].stats().synacks > 1 && pipe.delivered());
}

#[test]
fn opnet_connects_over_22_4_s_and_fails_over_22_6_s() {
    // R000-06
    for (delay, connects) in [("22.4 s", true), ("22.6 s", false)] {
        let mut client = riverbed();
        client.handshake.syn_attempts = Some(4);
        let programs = [Program { writes: 1000, reads: None }, Program::default()];
        let mut pipe = Pipe::new([&client, &riverbed()], programs, duration(delay));
        pipe.run(time("3000 s"));
        assert_eq!(pipe.delivered(), connects, "{delay}");
        if !connects {
            assert_eq!(pipe.ends[0].closed(), Some((CloseReason::ConnectTimedOut, time("45 s"))));
        }
    }
}

#[test]
fn newreno_needs_a_round_trip_for_each_hole_and_sack_one_for_all() {
    let took = |algorithm, sack| {
        let mut pipe = download(&lossy(algorithm, sack), 10_000, "50 ms").dropping(&[1, 3, 5]);
        pipe.run(time("100 s"));
        assert!(pipe.delivered());
        let sender = &pipe.ends[0].sender().stats();
        (sender.retransmissions, sender.timeouts, pipe.ends[0].closed().map(|(_, at)| at))
    };
    assert_eq!(took(RecoveryAlgorithm::NewReno, true), (3, 0, Some(time("300 ms"))));
    assert_eq!(took(RecoveryAlgorithm::NewReno, false), (3, 0, Some(time("500 ms"))));
    let (_, timeouts, _) = took(RecoveryAlgorithm::Reno, false);
    assert!(timeouts > 0, "Reno waits for the timer");
}

#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    // The 1st data segment is lost, and the 11th, which is its retransmission.
    for sack in [false, true] {
        let mut pipe = download(&lossy(RecoveryAlgorithm::NewReno, sack), 10_000, "50 ms").dropping(&[1, 11]);
        pipe.run(time("100 s"));
        assert!(pipe.delivered());
        assert_eq!((pipe.ends[0].sender().stats().timeouts, pipe.data_count()), (1, 12));
    }
}

#[test]
fn a_slow_reader_gets_every_byte_through_a_window_that_shuts() {
    let slow = Program { writes: 0, reads: Some((700, duration("1.3 s"))) };
    let mut pipe = Pipe::new(
        [&config(|_| {}), &config(|c| c.receive.buffer = Bytes(4000))],
        [Program { writes: 50_000, reads: None }, slow],
        duration("20 ms"),
    );
    pipe.run(time("1000 s"));
    assert!(pipe.delivered());
    assert!(pipe.log.iter().any(|(_, from, seg)| *from == 1 && seg.window == 0), "the window shuts");
    assert_eq!(pipe.ends[0].sender().stats().timeouts, 0);
}

#[test]
fn both_ends_may_send_into_windows_that_shut() {
    // A probe leaves SND.NXT beyond the peer's window; ACKs sent from there would be refused at both ends.
    let slow = Program { writes: 20_000, reads: Some((500, duration("2.1 s"))) };
    let config = config(|c| c.receive.buffer = Bytes(2000));
    let mut pipe = Pipe::new([&config, &config], [slow, slow], duration("20 ms"));
    pipe.run(time("1000 s"));
    assert!(pipe.delivered());
    assert!(pipe.log.len() < 1000, "{} segments for 40 of data", pipe.log.len());
}

#[test]
fn ack_loss_does_not_disturb_a_large_window_much() {
    let hostility = Hostility { loss: 10, seed: 3, ..Hostility::default() };
    let mut pipe = download(&lossy(RecoveryAlgorithm::NewReno, true), 500_000, "20 ms").hostile(&hostility);
    pipe.run(time("1000 s"));
    assert!(pipe.delivered());
}

#[test]
fn a_livelock_of_timer_and_delayed_ack_is_kept_apart_by_karn() {
    // A floor of the RTO at the ACK delay: with cwnd at one segment each ACK comes after the timeout. A back-off
    // that stays until a valid sample lets the next segment be measured; one that any ACK ends never does.
    let run = |reset| {
        let mut config = config(|c| {
            (c.rto.min, c.rto.backoff_reset) = (duration("200 ms"), reset);
            (c.rto.initial, c.congestion.initial_window) = (duration("1 s"), 1);
            c.congestion.cwnd_clamp = Some(Bytes(1000));
        });
        config.congestion.restart_after_idle = false;
        let mut pipe = download(&config, 50_000, "20 ms");
        pipe.run(time("1000 s"));
        assert!(pipe.delivered());
        pipe.ends[0].sender().stats().timeouts
    };
    let (karn, any) = (run(BackoffReset::ValidSample), run(BackoffReset::AnyAck));
    assert!(karn < 5 && any > 40, "{karn} and {any} timeouts for 50 segments");
}

#[test]
fn beyond_half_the_initial_rto_data_is_sent_twice_for_nothing() {
    // R000-14: RTT 2.8 s is within the first timeout of 3 s, RTT 3.6 s is not; the SYN then measures nothing.
    for (delay, spurious) in [("1.4 s", false), ("1.8 s", true)] {
        let mut pipe = download(&riverbed(), 20_000, delay);
        pipe.run(time("1000 s"));
        assert!(pipe.delivered());
        let duplicates = pipe.ends[1].receiver().duplicate_segments();
        assert_eq!(duplicates > 0, spurious, "{delay}: {duplicates}");
    }
}

#[test]
fn cwnd_grows_to_135_kb_over_a_window_of_six_segments_at_riverbed() {
    // R004-25: slow start to 65535 B, then SMSS·SMSS/cwnd for each delayed ACK.
    let mut pipe = download(&riverbed(), 10_000_000, "20 ms");
    pipe.run(time("1000 s"));
    let cwnd = pipe.ends[0].sender().window().cwnd;
    assert!(cwnd.abs_diff(135_000) < 135_000 / 20, "{cwnd}");
}
