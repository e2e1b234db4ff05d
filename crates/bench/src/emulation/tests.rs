//! That what is measured is there; never how fast it is.

use super::*;
use farpath_testing::{Need, skip};

/// Whether hosts can be made; where not, loudly.
fn hosts() -> bool {
    match veth_baseline() {
        Ok(_) => true,
        Err(error) => {
            skip(Need::Root, format!("no network namespaces: {error}"));
            false
        }
    }
}

#[test]
fn what_is_lost_is_counted_and_sent_again() {
    if !hosts() {
        return;
    }
    let line = Line { delay: Duration::from_millis(1), loss: 0.01, ..Line::default() };
    let load = OwnTraffic { control: "reno", size: 3_000_000 };
    let done =
        Rig::new(line).and_then(|rig| rig.run(|near, far| load.run(near, far))).expect("it gets through");
    assert!((done.result.gbit() - 0.024).abs() < 1e-9 && done.result.gbit_per_s() > 0.0);
    let forward = done.report.packets.forward;
    assert!(forward.dropped > 0 && forward.offered > 2_000, "{forward:?}");
    // On a busy machine timers may send more again than was lost.
    assert!(done.retransmissions >= forward.dropped, "{} for {forward:?}", done.retransmissions);
}

#[test]
fn iperf3_is_understood() {
    if !hosts() {
        return;
    }
    let load = Iperf3 { control: "reno", seconds: 1 };
    match veth_baseline().and_then(|veth| load.run(veth.near(), veth.far())) {
        Ok(moved) => assert!(moved.gbit() > 0.0),
        Err(Unmeasured::Load(missing)) if missing.contains("not installed") => {
            skip(Need::Iperf3, "iperf3 is not installed here");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn no_probe_is_early() {
    if !hosts() {
        return;
    }
    let delay = Duration::from_millis(10);
    let line = Line { delay, realtime: false, ..Line::default() };
    let errors = Rig::new(line).and_then(|rig| rig.run(|near, far| one_way(near, far, delay)));
    let errors = errors.expect("all probes arrive").result;
    assert!(errors.percentile(1) > 0.0, "{} us", errors.percentile(1));
    let error = errors.percentile(100);
    assert!(errors.mean() <= error && errors.percentile(99) <= error);
}
