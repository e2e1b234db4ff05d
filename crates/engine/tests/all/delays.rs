//! Round-trip times and queueing delays of flows, beside what segments and series say packet by packet.

use farpath_engine::{provenance, simulate};
use farpath_experiment::Experiment;
use farpath_run::{Metric, Run, SegmentEvent};
use farpath_units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;

const PROPAGATION: Duration = Duration::from_millis(20);

fn run(text: &str) -> Run {
    let experiment = Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let point = &experiment.point(0);
    simulate(point, 1, provenance(&experiment, point)).expect("it is simulated")
}

/// A transfer that loses nothing, over these elements and a delay.
fn transfer(elements: &str) -> Run {
    run(&format!(
        r#"
title = "delays"
path = [ {elements} {{ element = "delay", delay = "20 ms" }} ]
transfer.size = "60 kB"
output.series = true
output.segments = true
"#
    ))
}

/// What each packet in the direction of the data was under way for beside `PROPAGATION` and `sending` of its size.
fn waits(run: &Run, sending: impl Fn(Bytes) -> Duration) -> Vec<Duration> {
    let mut sent = VecDeque::new();
    let mut waits = Vec::new();
    for row in run.segments.iter().filter(|row| row.direction == "forward") {
        match row.event {
            SegmentEvent::Sent => sent.push_back((row.seq, row.time)),
            SegmentEvent::Received => {
                let (seq, at): (u32, Instant) = sent.pop_front().expect("it was sent");
                assert_eq!(seq, row.seq, "one after the other");
                waits.push(row.time - at - PROPAGATION - sending(Bytes(row.size.into())));
            }
            other => panic!("{other:?}"),
        }
    }
    waits
}

fn assert_figures(name: &str, [mean, p95, p99]: [Option<Duration>; 3], mut exact: Vec<Duration>) {
    exact.sort_unstable();
    let sum: u64 = exact.iter().map(|time| time.as_nanos()).sum();
    assert_eq!(mean.map(Duration::as_nanos), Some(sum / exact.len() as u64), "{name}: the mean is exact");
    for (percent, found) in [(95, p95), (99, p99)] {
        let exact = exact[(exact.len() * percent).div_ceil(100) - 1];
        let found = found.expect("there are packets");
        // The precision that the column has.
        assert!(found.abs_diff(exact).as_nanos() * 100 <= exact.as_nanos(), "{name}: {found} for {exact}");
    }
}

fn queueing(run: &Run) -> [Option<Duration>; 3] {
    let delays = run.flows[0].delays;
    [delays.mean_queueing_delay, delays.p95_queueing_delay, delays.p99_queueing_delay]
}

#[test]
fn queueing_delay_is_what_propagation_and_serialization_leave_of_the_way() {
    let rate = Rate::from_bit_per_s(5_000_000).expect("not zero");
    let link = |more: &str| format!(r#"{{ element = "link", rate = "5 Mbit/s", {more} }},"#);
    let links = [
        link(""),
        link(r#"aqm = "codel""#),
        link(r#"aqm = "fq-codel""#),
        link(r#"aqm = "cake""#),
        // Managed the other way: this way it is the plain link's arithmetic.
        link(r#"aqm.forward = "drop-tail", aqm.reverse = "codel""#),
        r#"{ element = "trace-link", trace = [{ at = "0 s", rate = "5 Mbit/s" }] },"#.to_owned(),
        r#"{ element = "flow-router", rate = "5 Mbit/s" },"#.to_owned(),
    ];
    for path in links {
        let run = transfer(&path);
        let waits = waits(&run, |size| rate.time_to_send(size));
        assert!(waits.iter().any(|wait| *wait > Duration::from_millis(5)), "{path}: something waits");
        assert_figures(&path, queueing(&run), waits);
    }
}

#[test]
fn what_waits_for_tokens_or_for_a_contact_is_queued() {
    for path in [
        r#"{ element = "token-bucket", rate = "5 Mbit/s", burst = "3 kB", excess = "wait" },"#,
        r#"{ element = "contacts",
            plan.forward = [{ from = "0 s", to = "50 ms" }, { from = "90 ms", to = "10 min" }],
            plan.reverse = [{ from = "0 s", to = "10 min" }] },"#,
    ] {
        let run = transfer(path);
        let waits = waits(&run, |_| Duration::ZERO);
        assert!(waits.iter().any(|wait| *wait > Duration::from_millis(5)), "{path}: something waits");
        assert_figures(path, queueing(&run), waits);
    }
}

#[test]
fn waits_of_all_queues_of_the_path_add_up() {
    let path = r#"{ element = "link", name = "first", rate = "5 Mbit/s" }, { element = "link", rate = "4 Mbit/s" },"#;
    let sent = |mbit: u64, size| Rate::from_bit_per_s(mbit * 1_000_000).expect("not zero").time_to_send(size);
    let run = transfer(path);
    assert_figures(path, queueing(&run), waits(&run, |size| sent(5, size) + sent(4, size)));
}

#[test]
fn what_waits_at_a_radio_waits_for_the_channel_too() {
    let radio = run("title = \"radio\"\npath = \"ricochet-1996-local\"\ntransfer.size = \"20 kB\"");
    let flow = &radio.flows[0];
    let [mean, p95, p99] = queueing(&radio).map(|time| time.expect("a radio has queues"));
    assert!(Duration::ZERO < mean && mean < p95 && p95 <= p99, "{mean} {p95} {p99}");
    assert!(p99 < flow.transfer_time.expect("it completes"));
}

#[test]
fn a_path_without_a_queue_has_no_queueing_delay() {
    let run = transfer("");
    assert_eq!(queueing(&run), [None; 3]);
    assert!(run.flows[0].delays.mean_rtt.is_some_and(|rtt| rtt >= PROPAGATION * 2));
}

#[test]
fn round_trips_are_the_samples_of_the_series() {
    for stack in ["linux-6", "rfc-5681", "bsd-1996"] {
        let run = run(&format!(
            r#"
title = "delays"
path = [
    {{ element = "link", rate = "5 Mbit/s", queue = "20 packets" }},
    {{ element = "delay", delay = "20 ms" }},
    {{ element = "loss", rate = "1 %" }},
]
transfer.size = "500 kB"
sender.stack = "{stack}"
receiver.stack = "{stack}"
output.series = true
"#
        ));
        let samples = run.series.iter().filter(|row| row.metric == Metric::RttSample);
        let samples = samples.map(|row| Duration::from_nanos(row.value)).collect();
        let delays = run.flows[0].delays;
        assert_figures(stack, [delays.mean_rtt, delays.p95_rtt, delays.p99_rtt], samples);
    }
}

#[test]
fn answers_to_datagrams_are_round_trips() {
    let run = run(r#"
title = "echo"
path = [ { element = "link", rate = "1 Mbit/s" }, { element = "delay", delay = "20 ms" } ]
transfer.protocol = "udp"
transfer.message = "1000 B"
transfer.reply = "100 B"
transfer.rate = "1 Mbit/s"
transfer.count = 100
output.series = true
"#);
    let samples: Vec<_> = run.series.iter().map(|row| Duration::from_nanos(row.value)).collect();
    assert_eq!(samples.len(), 100);
    let delays = run.flows[0].delays;
    assert_figures("echo", [delays.mean_rtt, delays.p95_rtt, delays.p99_rtt], samples);
    // The headers make it more than the link takes: each datagram waits 224 us longer than the one before.
    let waits = (0..100).map(|number| Duration::from_micros(224 * number)).collect();
    assert_figures("echo", queueing(&run), waits);
}
