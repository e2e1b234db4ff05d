//! A prediction is a number, or says why not, whatever is asked.

use crate::common::predict;
use farpath_run::{Outcome, Run};
use farpath_tcp::config::CongestionControlKind;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn check(run: &Run) {
    let flow = &run.flows[0];
    let finite = |value: Option<f64>| value.is_none_or(|value| value.is_finite() && value >= 0.0);
    for value in [
        flow.retransmissions,
        flow.timeouts,
        flow.fast_retransmits,
        flow.data_segments,
        flow.goodput_bit_per_s,
        flow.throughput_bit_per_s,
        flow.efficiency,
    ] {
        assert!(finite(value), "{flow:?}");
    }
    assert_eq!(flow.outcome == Outcome::Completed, flow.transfer_time.is_some());
    assert!(!flow.detail.is_empty());
    // Whatever is said is said once.
    let caveats = &run.provenance.caveats;
    let different: BTreeSet<&String> = caveats.iter().collect();
    assert_eq!(different.len(), caveats.len(), "{caveats:?}");
}

/// Ten thousand flows that are the same took three milliseconds each; a few that differ are told apart.
#[test]
fn flows_that_are_the_same_are_predicted_alike_and_once() {
    let file = "title = \"t\"\nsender.stack = \"linux-6\"\n[[path]]\nelement = \"link\"\nrate = \"1000 Gbit/s\"\n\
                [[path]]\nelement = \"delay\"\ndelay = \"20 ms\"\n[transfer]\nsize = \"1 MB\"\n";
    let one = |flow: &str| predict(&format!("{file}{flow}")).remove(0).flows.remove(0);
    let (large, small) = (one(""), one("[[flow]]\nsize = \"1 kB\"\n"));
    assert_ne!(large.transfer_time, small.transfer_time);
    let flows = "[[flow]]\ncount = 5000\n[[flow]]\nsize = \"1 kB\"\n[[flow]]\ncount = 4999\n";
    let run = predict(&format!("{file}{flows}")).remove(0);
    assert_eq!(run.flows.len(), 10_000);
    for (number, flow) in run.flows.iter().enumerate() {
        let alike = if number == 5000 { &small } else { &large };
        assert_eq!((flow.flow as usize, flow.transfer_time), (number, alike.transfer_time));
        assert_eq!((flow.retransmissions, flow.outcome), (alike.retransmissions, alike.outcome));
    }
}

/// Fifty flows over 100 Mbit/s are not 2.5 Gbit/s.
#[test]
fn flows_that_ask_for_more_than_their_link_has_are_not_predicted() {
    let file = "title = \"t\"\n[[path]]\nelement = \"link\"\nrate = \"100 Mbit/s\"\n\
                [[path]]\nelement = \"delay\"\ndelay = \"20 ms\"\n[transfer]\nsize = \"10 MB\"\n";
    let run = predict(&format!("{file}[[flow]]\ncount = 50\n")).remove(0);
    for flow in &run.flows {
        assert_eq!(
            (flow.outcome, flow.transfer_time, flow.goodput_bit_per_s),
            (Outcome::Unknown, None, None)
        );
        assert!(flow.detail.contains("share a link of 100 Mbit/s"), "{flow:?}");
    }
    assert!(run.provenance.caveats.iter().any(|caveat| caveat.starts_with("no prediction: 50 flows")));
    // Short ones that leave the link idle meet each other seldom.
    let run = predict(&format!("{file}[[flow]]\ncount = 2\nsize = \"3 kB\"\n")).remove(0);
    assert!(run.flows.iter().all(|flow| flow.outcome == Outcome::Completed), "{:?}", run.flows);
}

/// Names of the data files of a folder.
fn shipped(folder: &str) -> Vec<String> {
    let folder = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn every_stack_over_every_path_has_a_number_or_a_reason() {
    for stack in shipped("stacks") {
        for path in shipped("paths") {
            let text = format!(
                "title = \"t\"\nhorizon = \"1000000000 s\"\npath = \"{path}\"\nsender.stack = \"{stack}\"\n\
                 receiver.stack = \"{stack}\"\n[transfer]\nsize = \"1 MB\"\n"
            );
            let run = predict(&text).remove(0);
            check(&run);
            let flow = &run.flows[0];
            let unknown = flow.outcome == Outcome::Unknown;
            let why = run.provenance.caveats.iter().any(|caveat| caveat.ends_with(&flow.detail));
            assert!(!unknown || why, "{stack} over {path}: {flow:?}");
        }
    }
}

/// More loss is never faster, nor more delay: but for the mean over 64 replicas or more of where losses fall, to 3 %.
#[test]
fn more_loss_and_more_delay_take_longer() {
    for stack in ["linux-6", "reno-sack", "reno-1990", "rfc-5681"] {
        let time = |loss: f64, delay: u32| {
            let text = format!(
                "title = \"t\"\nhorizon = \"1000000000 s\"\nsender.stack = \"{stack}\"\nreceiver.stack = \"{stack}\"\n\
                 [[path]]\nelement = \"link\"\nrate = \"10 Mbit/s\"\n[[path]]\nelement = \"delay\"\ndelay = \"{delay} ms\"\n\
                 [[path]]\nelement = \"loss\"\nrate = {{ forward = \"{loss} %\" }}\n[transfer]\nsize = \"3 MB\"\n"
            );
            predict(&text)[0].flows[0].transfer_time.expect("it is known").as_secs_f64()
        };
        let never_less = |times: Vec<f64>| {
            assert!(times.windows(2).all(|pair| pair[1] >= 0.97 * pair[0]), "{stack}: {times:?}");
            // 3 MB over 10 Mbit/s.
            assert!(times[0] > 2.4, "{stack}: {times:?}");
        };
        never_less([0.0, 0.01, 0.1, 0.3, 1.0, 3.0].map(|loss| time(loss, 20)).to_vec());
        never_less([1, 5, 20, 100, 300].map(|delay| time(1.0, delay)).to_vec());
    }
}

/// Each try of a segment was followed once, and there are 10^12 of them.
#[test]
fn a_path_that_loses_nearly_everything_is_predicted_too() {
    let text = "title = \"t\"\nhorizon = \"100000000 s\"\nsender.stack = \"rfc-5681\"\nreceiver.stack = \"rfc-5681\"\n\
                [[path]]\nelement = \"link\"\nrate = \"1 Mbit/s\"\n[[path]]\nelement = \"delay\"\ndelay = \"1 ms\"\n\
                [[path]]\nelement = \"loss\"\nrate = { forward = \"99.9999999999 %\" }\n[transfer]\nsize = \"10 kB\"\n";
    check(&predict(text).remove(0));
}

/// Each segment of a terabyte was followed, and the command did not come back.
#[test]
fn a_long_file_goes_on_as_it_did() {
    let seconds = |size: &str| {
        let text = format!(
            "title = \"t\"\nhorizon = \"1000000000 s\"\nsender.stack = \"linux-6\"\nreceiver.stack = \"linux-6\"\n\
             [[path]]\nelement = \"link\"\nrate = \"100 Mbit/s\"\n[[path]]\nelement = \"delay\"\ndelay = \"300 ms\"\n\
             [[path]]\nelement = \"loss\"\nrate = {{ forward = \"0.1 %\" }}\n[transfer]\nsize = \"{size}\"\n"
        );
        predict(&text)[0].flows[0].transfer_time.expect("it is known").as_secs_f64()
    };
    // The first is followed to its end. 48 losses each of 16 replicas are a mean to a few percent.
    let (followed, four, thousand) = (seconds("700 MB"), seconds("2800 MB"), seconds("700 GB"));
    assert!((four / followed / 4.0 - 1.0).abs() < 0.03, "{followed} {four}");
    assert!((thousand / followed / 1000.0 - 1.0).abs() < 0.03, "{followed} {thousand}");
}

/// Values from `10^low` to `10^high`, all sizes alike.
fn log_uniform(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low..high).prop_map(|exponent| 10f64.powf(exponent))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn predictions_are_finite(
        (rate, reverse_rate) in (log_uniform(2.0, 12.0), log_uniform(2.0, 12.0)),
        delay in log_uniform(-6.0, 4.0),
        (forward, reverse) in (log_uniform(-15.0, 0.0), log_uniform(-15.0, 0.0)),
        ways in 0..4_u8,
        kind in 0..3_u8,
        (mss, window, size) in (log_uniform(1.8, 4.0), log_uniform(0.0, 9.0), log_uniform(0.0, 9.0)),
        (ack_every, initial_window) in (1..6_u32, 1..30_u32),
        (min_rto, tick) in (log_uniform(-3.0, 3.0), prop_oneof![Just(0.0), log_uniform(-3.0, 1.0)]),
        stack in prop::sample::select(vec![
            "bsd-1996", "linux-6", "linux-testbed-2022", "ns-2.29", "ns-2.30", "ns-3.44", "opnet-11.5", "rfc-5681", "riverbed-16",
        ]),
        recovery in prop::sample::select(vec!["timeout-only", "tahoe", "reno", "new-reno"]),
        control in prop::sample::select(CongestionControlKind::ALL).prop_map(CongestionControlKind::name),
        (sack, opener) in (any::<bool>(), prop::sample::select(vec!["sender", "receiver"])),
    ) {
        let (forward, reverse) = (forward * f64::from(ways & 1), reverse * f64::from(ways >> 1));
        let loss = match kind {
            0 => format!("element = \"loss\"\nrate = {{ forward = \"{:.15} %\", reverse = \"{:.15} %\" }}",
                100.0 * forward, 100.0 * reverse),
            1 => format!("element = \"bit-errors\"\nber = {{ forward = {forward:e}, reverse = {reverse:e} }}"),
            _ => format!("element = \"evenly-spaced-loss\"\nevery = {{ forward = {} }}", (1.0 / forward.max(1e-15)) as u64),
        };
        let end = format!(
            "stack = \"{stack}\"\nmss = \"{} B\"\nreceive.buffer = \"{} B\"\nreceive.ack_every = {ack_every}\n\
             send.window_scaling = true\ncongestion.initial_window = {initial_window}\nrto.min = \"{min_rto:.6} s\"\n\
             rto.max = \"{:.6} s\"\nrto.tick = \"{tick:.6} s\"\ncongestion.control = \"{control}\"\nrecovery.algorithm = \"{recovery}\"\nrecovery.sack = {sack}",
            mss as u64, window as u64 + 1, (min_rto * 64.0).max(64.0),
        );
        let text = format!(
            "title = \"any\"\nhorizon = \"100000000 s\"\n[[path]]\nelement = \"link\"\n\
             rate = {{ forward = \"{} bit/s\", reverse = \"{} bit/s\" }}\n\
             [[path]]\nelement = \"delay\"\ndelay = \"{delay:.9} s\"\n[[path]]\n{loss}\n\
             [sender]\n{end}\n[receiver]\n{end}\n[transfer]\nsize = \"{} B\"\nopener = \"{opener}\"\n",
            rate as u64, reverse_rate as u64, size as u64,
        );
        check(&predict(&text).remove(0));
    }
}

#[test]
fn every_shipped_experiment_has_a_prediction() {
    let mut seen = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for run in predict(&text) {
            check(&run);
            seen += 1;
        }
    }
    assert!(seen > 0);
}
