//! Listed losses, segment by segment, as text in `golden/`: exact, and small enough to check by hand.
//!
//! `UPDATE_GOLDEN=1 cargo test -p farpath-sim --test all golden` writes them anew; read the difference before you commit it.

use crate::common::log::Capture;
use crate::common::{self, delay, drops, observed, setup, upload};
use farpath_sim::FlowEnd;
use farpath_tcp::Config;
use farpath_tcp::config::{RecoverGuard, RecoveryAlgorithm};
use farpath_units::{Bytes, Duration};
use std::path::PathBuf;

/// Round numbers: segments of 1000 B, an initial window of four, an ACK for each, 100 ms there and back.
fn stack(algorithm: RecoveryAlgorithm, sack: bool) -> Config {
    let mut c = Config { mss: Bytes(1000), ..Config::default() };
    c.congestion.initial_window = 4;
    c.receive.ack_every = 1;
    c.recovery.algorithm = algorithm;
    c.recovery.sack = sack;
    c.recovery.limited_transmit = false;
    c.recovery.recover_guard = match algorithm {
        RecoveryAlgorithm::NewReno => RecoverGuard::Rfc6582,
        _ => RecoverGuard::Off,
    };
    c
}

fn reno() -> Config {
    stack(RecoveryAlgorithm::Reno, false)
}

fn newreno() -> Config {
    stack(RecoveryAlgorithm::NewReno, false)
}

fn sack() -> Config {
    stack(RecoveryAlgorithm::NewReno, true)
}

/// Compares a transfer of `size` with its golden trace. What is to be seen in it stands at its top.
#[track_caller]
fn golden(name: &str, stack: &Config, size: u64, forward: &[u64], reverse: &[u64], see: &str) {
    let mut capture = Capture::default();
    let setup = setup(vec![delay("50 ms"), drops(forward, reverse)], vec![upload(stack, size)], 1);
    let result = observed(&setup, &mut capture).remove(0);
    assert_eq!(result.end, FlowEnd::Completed);
    let sent = result.sender.sender().stats();
    let see: String = see.lines().map(|line| format!("# {}\n", line.trim())).collect();
    let trace = format!(
        "{see}{}{:>12} read     all {size} B; {} retransmissions, {} spurious, {} timeouts, {} fast retransmits\n",
        capture.into_text(),
        result.ended_at.as_nanos(),
        sent.retransmissions,
        result.spurious_retransmissions,
        sent.timeouts,
        sent.fast_retransmits,
    );
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &trace).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    for (number, (ours, theirs)) in (1..).zip(trace.lines().zip(golden.lines())) {
        assert_eq!(ours, theirs, "{name}.txt, line {number}");
    }
    assert_eq!(trace.lines().count(), golden.lines().count(), "{name}.txt");
}

#[test]
fn a_single_loss() {
    let see = "The sixth data segment (5001:6001) of a slow start is lost.
        - 300 ms: the third duplicate ACK retransmits it; nine segments are in flight: ssthresh = 9000 / 2, cwnd =
          4500 + 3 · 1000 (RFC 5681 §3.2 steps 2 and 3). Each further duplicate adds 1000 (step 4), and new data go
          out once that exceeds the flight.
        - 400 ms: the ACK of 14001 = recover ends the recovery: cwnd = min(4500, 2001 in flight + 1000) (RFC 6582 §3.2
          step 3, option 1), and grows by 1000 an ACK below ssthresh.";
    golden("single-loss", &newreno(), 16_000, &[7], &[], see);
}

#[test]
fn two_losses_in_a_window_with_reno() {
    let see = "5001:6001 and 7001:8001 are lost. Reno's recovery ends with the first new ACK (400 ms, cwnd = ssthresh = 4500), the
        9001 B in flight are twice that, so nothing leaves, only two duplicates come back, and the timer has to repair
        the second loss: 1 s after the last new ACK, with cwnd = 1000 and ssthresh = 9001 / 2.";
    golden("two-losses-reno", &reno(), 16_000, &[7, 9], &[], see);
}

#[test]
fn two_losses_in_a_window_with_newreno() {
    let see = "The same losses. The ACK of 7001 (400 ms) is partial: below recover = 14001. NewReno retransmits 7001:8001 at once and
        takes what was acknowledged off cwnd, less a segment: 11500 - 2000 + 1000 (RFC 6582 §3.2 step 3). One loss a
        round trip, no timeout.";
    golden("two-losses-newreno", &newreno(), 16_000, &[7, 9], &[], see);
}

#[test]
fn two_losses_in_a_window_with_sack() {
    let see = "The same losses. The third duplicate ACK retransmits 5001:6001; cwnd = ssthresh = 4500, and pipe rules (RFC 6675).
        The fourth reports three segments above 7001:8001, which is lost then too; pipe is 4000. With the fifth it is
        3000, and 7001:8001 goes: both repaired within one round trip. cwnd is not inflated.";
    golden("two-losses-sack", &sack(), 16_000, &[7, 9], &[], see);
}

#[test]
fn a_lost_retransmission() {
    let see = "5001:6001 is lost, and its fast retransmission too. Six duplicates tell nothing of that: the timer, started anew by
        the fast retransmit at 300 ms, expires 1 s later. ssthresh = 7001 in flight / 2 both times.";
    golden("lost-retransmission", &newreno(), 12_000, &[7, 14], &[], see);
}

#[test]
fn a_tail_loss() {
    let see = "The last segment, with the FIN, is lost. Nothing follows it that could cause duplicate ACKs: the timer, started anew
        by the last new ACK at 300 ms, repairs it 1 s later. ssthresh = 2 segments, its floor.";
    golden("tail-loss", &newreno(), 8_000, &[9], &[], see);
}

#[test]
fn a_lost_syn() {
    let see = "The SYN is lost and sent again after the initial RTO of 1 s. The initial window is then one segment (RFC 5681 §3.1).";
    golden("lost-syn", &newreno(), 4_000, &[1], &[], see);
}

#[test]
fn a_lost_syn_ack() {
    let see = "The SYN/ACK is lost. The client's SYN, sent again at 1 s, reaches the server at 1.05 s, together with the end of the
        server's own wait of 1 s: one SYN/ACK answers both. The client cannot tell this from a lost SYN.";
    golden("lost-syn-ack", &newreno(), 4_000, &[], &[1], see);
}

#[test]
fn a_lost_third_segment_of_the_handshake() {
    let see = "The third segment of the handshake is lost; it carries the first data. The server learns from the next one that its
        SYN/ACK has arrived, and its three duplicate ACKs of 1 repair the loss.";
    golden("lost-third-ack", &newreno(), 4_000, &[2], &[], see);
}

#[test]
fn a_lost_run_of_acks() {
    let see = "Four ACKs in a row are lost. The next one acknowledges for them too: nothing is sent again. Slow start counts it as
        one segment, min(N, SMSS) (RFC 5681 Eq. 2): four increases are lost with the ACKs.";
    golden("lost-acks", &newreno(), 12_000, &[], &[6, 7, 8, 9], see);
}

/// Everything that is not to be read off a trace by eye.
#[test]
fn a_sack_recovery_is_shorter_than_a_newreno_recovery_is_shorter_than_a_timeout() {
    let time = |stack: &Config| {
        let path = vec![delay("50 ms"), drops(&[7, 9, 11], &[])];
        common::run_one(path, upload(stack, 16_000)).ended_at.since_start()
    };
    assert_eq!(
        time(&newreno()) - time(&sack()),
        Duration::from_millis(100),
        "three losses: a round trip less"
    );
    assert!(time(&newreno()) + Duration::from_millis(500) < time(&reno()));
}
