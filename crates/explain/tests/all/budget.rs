//! The delay budget against the simulator: sums, timers that fire or end it, and how long a queue stands.

use crate::common;

use common::{ONE, SCALED, explained, plain};
use farpath_elements::DelayKind;
use farpath_engine::simulate;
use farpath_experiment::Experiment;
use farpath_explain::{Budget, TimerFit, TimerVerdict, budget};
use farpath_run::{FlowRow, Metric, Outcome, Provenance, Run};

fn of(experiment: &Experiment) -> Budget {
    budget(&experiment.point(0).scenario)
}

fn timer<'a>(budget: &'a Budget, id: &str) -> &'a TimerFit {
    budget.timers.iter().find(|timer| timer.id == id).unwrap_or_else(|| panic!("{id}: {budget:?}"))
}

fn ran(experiment: &Experiment) -> Run {
    simulate(&experiment.point(0), 1, Provenance::default()).expect("it can be simulated")
}

fn flow(experiment: &Experiment) -> FlowRow {
    ran(experiment).flows.remove(0)
}

#[test]
fn parts_add_up_to_the_round_trip_that_the_simulator_measures() {
    // One segment at a time, each acknowledged at once: every sample is of a lone segment and its ACK.
    let text = r#"
        title = "All kinds of waits"
        [[path]]
        element = "link"
        rate = { forward = "1 Mbit/s", reverse = "100 kbit/s" }
        queue = "30 kB"
        overhead = "18 B"
        [[path]]
        element = "delay"
        distance = { forward = "moon", reverse = "6000 km" }
        medium = "fibre"
        [[path]]
        element = "codec"
        delay = "120 ms"
        [[path]]
        element = "medium-access"
        delay = { forward = "7 ms", reverse = "11 ms" }
        [[path]]
        element = "processing"
        delay = "3 ms"
        [[path]]
        element = "hops"
        routers = 5
        [sender]
        congestion.cwnd_clamp = "1460 B"
        rto.initial = "30 s"
        rto.max = "60 s"
        [receiver]
        receive.ack_every = 1
        [transfer]
        size = "20000 B"
    "#;
    let experiment = Experiment::parse(text, "waits.toml", &[]).expect("it is sound");
    let budget = of(&experiment);
    let kinds: Vec<DelayKind> = budget.parts.iter().map(|part| part.kind).collect();
    use DelayKind::{Codec, MediumAccess, Processing, Propagation, Queue, Serialization};
    assert_eq!(kinds, [Serialization, Queue, Propagation, Codec, MediumAccess, Processing]);
    assert_eq!(budget.routers, [5, 5]);
    let idle: f64 = budget.parts.iter().map(|part| part.data.idle_s + part.acks.idle_s).sum();
    assert!((idle - budget.round_trip.idle_s).abs() < 1e-12);
    let measured = flow(&experiment).min_rtt.expect("it was measured").as_secs_f64();
    // The last segment, of 1020 B, has the smallest sample.
    let shorter = f64::from(1460 - 1020) * 8.0 / 1e6;
    assert!((idle - shorter - measured).abs() < 1e-6, "{idle} {measured}");
    // 30 kB and the packet on the link, at 1 Mbit/s with 18 B of framing on each 1500 B; nothing else queues.
    let full = (30_000.0 / 1500.0 + 1.0) * 1518.0 * 8.0 / 1e6;
    assert!((budget.parts[1].data.full_s.expect("bounded") - full).abs() < 1e-6);
    // The whole budget is in the explanation, too.
    assert_eq!(explained(&experiment, ONE).budget, budget);
}

/// What the verdicts say happens, and does not happen where they say so.
#[test]
fn a_timer_fires_for_nothing_exactly_where_the_budget_says_so() {
    let delays = ["20 ms", "400 ms", "600 ms", "1 s", "1600 ms", "4 s", "20 s", "40 s", "60 s", "100 s"];
    let mut seen = Vec::new();
    for stack in ["rfc-5681", "riverbed-16", "bsd-1996", "windows-2003", "linux-6"] {
        for delay in delays {
            // One segment at a time: what the timers are laid against is what happens.
            let experiment = plain(&[
                &format!("sender.stack={stack}"),
                &format!("receiver.stack={stack}"),
                &format!("path.delay={delay}"),
                "path.link=1 Gbit/s",
                "transfer.size=1 B",
                "transfer.opener=sender",
                "horizon=20000 s",
            ]);
            let (budget, flow) = (of(&experiment), flow(&experiment));
            let verdict = |id| timer(&budget, id).verdict;
            let what = format!("{stack} over {delay}: {:?} {flow:?}", budget.timers);
            let opens = verdict("syn-schedule") == TimerVerdict::Fits;
            assert_eq!(flow.outcome != Outcome::ConnectTimedOut, opens, "{what}");
            assert_eq!(flow.syns > Some(1.0), verdict("initial-rto") == TimerVerdict::Spurious, "{what}");
            if !opens {
                seen.push(TimerVerdict::Ends);
                continue;
            }
            if verdict("synack-schedule") == TimerVerdict::Ends {
                continue;
            }
            assert_eq!(flow.outcome, Outcome::Completed, "{what}");
            // A coarse clock may end its first wait up to a tick later than the timeout says.
            let tick = experiment.point(0).scenario.sender.config.rto.tick.as_secs_f64();
            let first = timer(&budget, "first-rto");
            let edge = (0.0..=tick).contains(&-first.margin_s.unwrap_or(0.0));
            let again = flow.retransmissions > Some(0.0) || flow.loss_probes > Some(0.0);
            // The run is over when the byte is read, half a round trip before its ACK.
            let shown = first.timer_s.is_some_and(|timer| timer < budget.data.idle_s);
            if !edge && first.verdict == TimerVerdict::Fits {
                assert!(!again, "{what}");
            }
            if shown && !edge {
                assert!(again, "{what}");
            }
            seen.push(first.verdict);
        }
    }
    for verdict in [TimerVerdict::Fits, TimerVerdict::Spurious, TimerVerdict::Ends] {
        assert!(seen.contains(&verdict), "{verdict:?} is never met");
    }
}

#[test]
fn retries_that_end_before_the_ack_end_the_transfer() {
    for (retries, ends) in [("0", true), ("1", false)] {
        // 1.2 s of round trip: the SYN is sent again, the first data wait for 3 s with no retry, and for 9 s with one.
        let experiment = plain(&[
            "path.delay=2 s",
            "transfer.opener=sender",
            &format!("sender.handshake.data_retries={retries}"),
            "sender.rto.initial=900 ms",
        ]);
        let budget = of(&experiment);
        let timer = timer(&budget, "data-retries");
        assert_eq!(timer.verdict == TimerVerdict::Ends, ends, "{timer:?}");
        assert_eq!(flow(&experiment).outcome == Outcome::Aborted, ends);
    }
}

#[test]
fn a_queue_that_fills_later_is_told_apart() {
    let budget = of(&plain(&["path.link.queue=2 MB"]));
    let timer = timer(&budget, "initial-rto");
    assert_eq!(timer.verdict, TimerVerdict::SpuriousWhenFull);
    // 200 ms of propagation; 2 MB at 10 Mbit/s are 1.6 s, each way.
    assert!((timer.full_s.expect("bounded") - 3.4).abs() < 0.01, "{timer:?}");
    let unlimited = of(&plain(&["path.link.queue=unlimited"]));
    // What the windows can put there: 64 kB.
    let queue = unlimited.parts.iter().find(|part| part.kind == DelayKind::Queue).expect("a queue");
    assert!((queue.data.full_s.expect("bounded") - 65_535.0 * 8.0 / 1e7 * 1500.0 / 1460.0).abs() < 1e-3);
}

/// Mean wait before the link, over the second half of a run, in s.
fn mean_queue(run: &Run, bit_per_s: f64) -> f64 {
    let flow = &run.flows[0];
    let (end, mut sum) = (flow.ended_at.expect("it ends").as_secs_f64(), 0.0);
    let mut before: Option<(f64, f64)> = None;
    for row in run.series.iter().filter(|row| row.metric == Metric::Queue) {
        let at = row.time.as_secs_f64();
        if let Some((since, value)) = before {
            sum += value * (at - since.max(end / 2.0)).max(0.0);
        }
        before = Some((at, row.value as f64));
    }
    if let Some((since, value)) = before {
        sum += value * (end - since.max(end / 2.0)).max(0.0);
    }
    sum / (end / 2.0) * 8.0 / bit_per_s
}

/// The closed form of the queue's mean against the simulator's, for windows that fit and for those that overflow it.
#[test]
fn the_queue_stands_as_long_as_expected() {
    let reno = ["sender.stack=reno-sack", "receiver.stack=reno-sack"];
    let cubic =
        ["sender.congestion.control=cubic", "sender.recovery.sack=true", "receiver.recovery.sack=true"];
    // The simulator's series say what is behind the packet on the link, seen when a packet joins it: about one more than
    // the mean over time, 1.2 ms. Beside it, the tolerance is for the rounds that recovery takes, in which no window grows.
    let cases: [(&[&str], &str, &str, f64); 4] = [
        (&[], "64 kB", "1 MB", 0.02),
        (&[], "400 kB", "1 MB", 0.02),
        (&reno, "4 MB", "250 kB", 0.10),
        (&cubic, "4 MB", "250 kB", 0.15),
    ];
    for (changes, buffer, queue, tolerance) in cases {
        let (buffer, queue) =
            (format!("receiver.receive.buffer={buffer}"), format!("path.link.queue={queue}"));
        let more = [
            buffer.as_str(),
            &queue,
            "transfer.size=300 MB",
            "output.series=true",
            "receiver.receive.ack_every=1",
        ];
        let experiment = plain(&[changes, &SCALED, &more].concat());
        let budget = of(&experiment);
        let part = budget.parts.iter().find(|part| part.kind == DelayKind::Queue).expect("a queue");
        let expected = part.data.expected_s.expect("alone on the path, without loss");
        let found = mean_queue(&ran(&experiment), 1e7);
        let error = found - expected;
        assert!(error.abs() <= expected * tolerance + 0.0025, "{buffer} {queue}: {expected} against {found}");
    }
    // With losses nothing is expected.
    let lossy = of(&plain(&[&SCALED[..], &["path.loss=1 %", "receiver.receive.buffer=4 MB"]].concat()));
    assert_eq!(lossy.round_trip.expected_s, None);
}
