//! Paths that are known, found by looking at them: from two hosts of our own, over a path of our own.

use crate::common;
use crate::path;

use common::{NEVER, run};
use farpath_experiment::Experiment;
use farpath_measure::{Family, PathEstimate, Peer, Probing, Queue, estimate};
use farpath_run::{Metric, Outcome};
use farpath_units::{Bytes, Duration};
use std::net::SocketAddr;

fn known(link: &str, loss: &str, delay: &str) -> Experiment {
    let text = format!(
        "title = \"t\"\npath = [{{ element = \"link\", {link} }}, {{ element = \"loss\", rate = {loss} }}, \
         {{ element = \"delay\", delay = \"{delay}\" }}]\nsender.stack = \"linux-6\"\n\
         transfer = {{ size = \"2 MB\", opener = \"sender\" }}"
    );
    Experiment::parse(&text, "known", &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn connect(address: SocketAddr) -> Peer {
    Peer::connect(&address.to_string(), Family::Any, None, &NEVER).expect("it is let in")
}

fn found(address: SocketAddr, echoes: u32) -> PathEstimate {
    let probing = Probing { echoes, interval: Duration::from_millis(4) };
    estimate(&mut connect(address), probing, &NEVER, &mut |_| {}).expect("measured")
}

fn is_near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance
}

#[test]
fn rate_queue_loss_and_delay_of_each_way_are_found() {
    // As asymmetric as an access line.
    let link = "rate = { forward = \"4 Mbit/s\", reverse = \"20 Mbit/s\" }, \
                queue = { forward = \"40 kB\", reverse = \"100 kB\" }";
    let path = known(link, "{ forward = \"2 %\", reverse = \"0 %\" }", "25 ms");
    for v6 in [false, true] {
        // Best of three: programs of a busy machine are late, and what they find is then late too.
        let mut misses = Vec::new();
        for seed in 1..=3 {
            let Some(found) = path::over(&path, v6, seed, |address| found(address, 1500)) else { return };
            misses = wrong(&found);
            if misses.is_empty() {
                break;
            }
            eprintln!("{v6}, seed {seed}: {misses:?}");
        }
        assert!(misses.is_empty(), "{misses:?}");
    }
}

/// What is not within its tolerance of what the path is.
fn wrong(found: &PathEstimate) -> Vec<String> {
    let mut misses = Vec::new();
    let mut check = |what: &str, value: f64, expected: f64, tolerance: f64| {
        if !is_near(value, expected, tolerance) {
            misses.push(format!("{what}: {value}, and it is {expected} +- {tolerance}"));
        }
    };
    let (forward, reverse) = (&found.ways.forward, &found.ways.reverse);
    let mbit = |way: &farpath_measure::Way| way.rate.map_or(0.0, |rate| rate.bit_per_s() as f64 / 1e6);
    // 2 %: a hundred gaps, each ended by a program that has to be woken.
    check("forward rate", mbit(forward), 4.0, 0.08);
    check("reverse rate", mbit(reverse), 20.0, 0.4);
    // Two packets: one that is being sent when the last one comes, and what a late wake-up adds to a wait.
    for (name, way, kilobytes) in [("forward", forward, 40.0), ("reverse", reverse, 100.0)] {
        match way.queue {
            Queue::Holds(bytes) => check(name, bytes.0 as f64 / 1e3, kilobytes, 3.0 + 0.02 * kilobytes),
            Queue::AtLeast(bytes) => misses_queue(name, bytes, &mut check),
        }
    }
    // 30 of 1500 with a standard deviation of 5.4: four of these.
    check("forward loss, %", f64::from(forward.lost.0) / f64::from(forward.lost.1) * 100.0, 2.0, 1.5);
    check("reverse losses", f64::from(reverse.lost.0), 0.0, 0.0);
    // Each crossing of a device takes some 50 us.
    let delay = found.delay().unwrap_or_default().as_secs_f64() * 1e3;
    check("delay, ms", delay, 25.15, 0.35);
    misses
}

fn misses_queue(name: &str, bytes: Bytes, check: &mut impl FnMut(&str, f64, f64, f64)) {
    check(&format!("{name} queue was not filled"), bytes.0 as f64, f64::INFINITY, 0.0);
}

#[test]
fn what_was_found_is_measured_and_simulated_alike() {
    let path = known("rate = \"10 Mbit/s\", queue = \"60 kB\"", "\"0 %\"", "20 ms");
    let mut differ = Vec::new();
    for seed in 1..=3 {
        let both = path::over(&path, false, seed, |address| {
            let text = found(address, 200).to_toml(Bytes(2_000_000));
            let experiment =
                Experiment::parse(&text, "found", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let run = run(&mut connect(address), &experiment).expect("measured");
            (experiment, run)
        });
        let Some((experiment, run)) = both else { return };
        assert_eq!(run.flows[0].outcome, Outcome::Completed);
        let point = &experiment.point(0);
        let provenance = farpath_engine::provenance(&experiment, point);
        let simulated = farpath_engine::simulate(point, 1, provenance).expect("simulated");
        let time = |run: &farpath_run::Run| run.flows[0].transfer_time.expect("completed").as_secs_f64();
        differ.push((time(&simulated) / time(&run) - 1.0) * 100.0);
        // 2 MB over 10 Mbit/s: the link decides; how slow start ends, and what it loses then, is a few round trips of some
        // 1.7 s.
        if differ.last().is_some_and(|percent| percent.abs() < 15.0) {
            return;
        }
    }
    panic!("simulated less measured, %: {differ:?}");
}

#[test]
fn how_late_a_stream_is_on_its_way_is_told_by_two_clocks() {
    let text = "title = \"t\"\npath = [{ element = \"link\", rate = \"20 Mbit/s\" }, \
                { element = \"listed-loss\", packets = { forward = [300] }, count = \"data\" }, \
                { element = \"delay\", delay = \"20 ms\" }]\nsender.stack = \"linux-6\"\n\
                output = { series = true, messages = true }\n\
                transfer = { message = \"1 kB\", rate = \"4 Mbit/s\", duration = \"1 s\", playout = \"20 ms\", \
                opener = \"sender\" }";
    let asked = Experiment::parse(text, "stream", &[]).unwrap_or_else(|error| panic!("{error}"));
    for v6 in [false, true] {
        let Some(run) = path::over(&asked, v6, 1, |address| run(&mut connect(address), &asked)) else {
            return;
        };
        let run = run.expect("measured");
        let flow = &run.flows[0];
        assert_eq!(flow.outcome, Outcome::Completed, "{flow:?}");
        let lateness = run.messages.iter().map(|row| row.arrived.expect("read").saturating_since(row.due));
        let lateness: Vec<Duration> = lateness.collect();
        assert_eq!(lateness.len(), 500);
        // 20 ms and half a millisecond of sending; the offset is within half a round trip, and much nearer where both
        // ways are alike.
        let least = lateness.iter().min().expect("some").as_nanos() as f64 / 1e6;
        assert!((19.0..25.0).contains(&least), "{least} ms");
        // What was lost comes a round trip later, at the least, and what came behind it with it.
        let most = flow.stream.max_lateness.expect("known").as_nanos() as f64 / 1e6;
        assert!(most > 55.0, "{most} ms");
        assert!(flow.stream.stall_time.is_some_and(|time| !time.is_zero()), "{:?}", flow.stream);
        let again =
            run.series.iter().filter(|row| row.metric == Metric::Retransmissions).map(|row| row.value);
        assert!(again.max().is_some_and(|again| again >= 1), "the loss is seen at the sender");
    }
}
