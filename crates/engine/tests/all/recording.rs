//! What a simulation leaves behind: rows of flows, series and segments; and many runs in a fixed order.

use farpath_engine::{EngineError, jobs, provenance, run_all, simulate};
use farpath_experiment::Experiment;
use farpath_run::{Engine, Metric, Outcome, Run, SegmentEvent};
use farpath_tcp::SendLimit;
use farpath_units::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// A bottleneck with a short queue, loss both ways, and copies of every tenth packet.
const NOISY: &str = r#"
title = "recording"
horizon = "1 h"
path = [
    { element = "link", name = "bottleneck", rate = "5 Mbit/s", queue = "8 packets" },
    { element = "delay", delay = "20 ms" },
    { element = "loss", rate = "1 %" },
    { element = "duplicate", share = "10 %" },
]
[transfer]
size = "500 kB"
[output]
series = true
segments = true
"#;

fn experiment(text: &str) -> Experiment {
    Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str, seed: u64) -> Run {
    let experiment = experiment(text);
    let point = &experiment.point(0);
    simulate(point, seed, provenance(&experiment, point)).expect("it is simulated")
}

#[test]
fn a_series_has_a_row_for_every_change_and_no_other() {
    let run = run(NOISY, 1);
    let mut last: BTreeMap<Metric, (u64, u64)> = BTreeMap::new();
    let mut previous = 0;
    for row in run.series.iter() {
        let now = row.time.as_nanos();
        assert!(now >= previous, "{row:?} after {previous}");
        previous = now;
        if row.metric != Metric::RttSample {
            let before = last.insert(row.metric, (now, row.value));
            assert!(before.is_none_or(|(_, value)| value != row.value), "{row:?} says nothing new");
        }
    }
    let flow = &run.flows[0];
    let ended = flow.ended_at.expect("it ended").as_nanos();
    assert_eq!(last[&Metric::Delivered], (ended, 500_000), "the last byte is seen when it is read");
    assert_eq!(last[&Metric::Cwnd].1, flow.final_cwnd.expect("simulated").0);
    assert_eq!(last[&Metric::Srtt].1, flow.srtt.expect("measured").as_nanos());
}

#[test]
fn rows_beyond_the_bound_are_left_out_and_that_is_said() {
    let whole = run(NOISY, 1);
    let rows = (whole.series.len() + whole.segments.len()) as u64;
    let bounded = |most: u64| run(&format!("{NOISY}[budget]\nrows = {most}\n"), 1);
    let few = bounded(100);
    assert_eq!(few.series.len() + few.segments.len(), 100);
    let begins = |few: usize| whole.segments.iter().take(few).eq(bounded(100).segments.iter());
    assert!(few.segments.len() > 10 && begins(few.segments.len()), "the first ones are kept");
    let said =
        format!("100 rows of series and segments are recorded and {} left out (`budget.rows`)", rows - 100);
    assert!(
        few.provenance.caveats.iter().any(|line| line.starts_with(&said)),
        "{:?}",
        few.provenance.caveats
    );
    assert_eq!(few.flows, whole.flows, "the transfer is the same");
    // As many as there are.
    let all = bounded(rows);
    assert_eq!((all.series.len() + all.segments.len()) as u64, rows);
    assert_eq!(all.provenance.caveats, whole.provenance.caveats);
}

#[test]
fn the_series_of_limits_says_what_the_sender_waits_for() {
    let of = |text: &str| -> Vec<SendLimit> {
        let rows = run(text, 1).series.to_vec().into_iter().filter(|row| row.metric == Metric::Limit);
        rows.map(|row| SendLimit::ALL[row.value as usize]).collect()
    };
    let clean = |more: &str| {
        format!(
            "title = \"t\"\npath = [{{ element = \"link\", rate = \"5 Mbit/s\", queue = \"1 MB\" }}, {{ element = \"delay\", delay = \"20 ms\" }}]\n\
             [output]\nseries = true\n[sender]\nsend.nagle = true\n{more}"
        )
    };
    let file = "[transfer]\nsize = \"500 kB\"\n";
    assert!(of(NOISY).contains(&SendLimit::Repair), "losses");
    // A window without scale has room for it.
    let short = of(&clean("[transfer]\nsize = \"40 kB\"\n"));
    assert_eq!(short, [SendLimit::SlowStart, SendLimit::Ended], "no loss, and no window but cwnd");
    let small = of(&clean(&format!("[receiver]\nreceive.buffer = \"20 kB\"\n{file}")));
    assert!(small.contains(&SendLimit::ReceiveWindow), "{small:?}");
    let full = of(&clean(&format!("send.buffer = \"10 kB\"\n{file}")));
    assert!(full.contains(&SendLimit::SendBuffer), "{full:?}");
    let stream = of(&clean("[transfer]\nmessage = \"2 kB\"\nrate = \"1 Mbit/s\"\nduration = \"2 s\"\n"));
    assert!(stream.contains(&SendLimit::Application) && stream.contains(&SendLimit::Nagle), "{stream:?}");
}

/// A number of the series is told in the guide.
#[test]
fn the_limits_are_numbered_as_the_guide_says() {
    let said = SendLimit::ALL.map(|limit| format!("{} {}", limit.name(), limit as u8)).join(", ");
    assert!(Metric::Limit.about().contains(&said), "{said}");
}

/// What waits behind the packet being sent: never more than the queue holds, and at its fullest before a drop.
#[test]
fn the_queue_is_the_longest_in_the_data_direction() {
    let run = run(NOISY, 1);
    let queue = |row: &farpath_run::SeriesRow| row.metric == Metric::Queue;
    let longest = run.series.iter().filter(queue).map(|row| row.value).max();
    assert_eq!(longest, Some(8 * 1500), "eight full packets");
}

/// The series has what the row of the flow is made of, packet by packet, but for those that waited as long as the one before.
#[test]
fn the_queueing_delay_over_time_is_that_of_the_packets() {
    let run = run(NOISY, 1);
    let waits: Vec<u64> =
        run.series.iter().filter(|row| row.metric == Metric::QueueingDelay).map(|row| row.value).collect();
    let longest = waits.iter().copied().max().expect("there is a queue");
    let figures = run.flows[0].delays;
    let p99 = figures.p99_queueing_delay.expect("there is a queue").as_nanos();
    assert!(waits.len() > 50 && p99 <= longest + longest / 50, "{longest} and {p99}");
}

#[test]
fn every_segment_has_its_rows_in_the_order_of_time() {
    let run = run(NOISY, 1);
    assert!(run.segments.to_vec().windows(2).all(|pair| pair[0].time <= pair[1].time));
    let of = |event| run.segments.iter().filter(move |row| row.event == event);
    let flow = &run.flows[0];
    let data = of(SegmentEvent::Sent).filter(|row| row.len > 0).count();
    let again = of(SegmentEvent::Sent).filter(|row| row.retransmission).count();
    assert_eq!((Some(data as f64), Some(again as f64)), (flow.data_segments, flow.retransmissions));
    let drops: BTreeMap<_, u64> = of(SegmentEvent::Dropped).fold(BTreeMap::new(), |mut causes, row| {
        *causes.entry(row.cause.clone().expect("a drop has a cause")).or_default() += 1;
        causes
    });
    assert!(drops.len() == 2, "both the queue and the loss drop: {drops:?}");
    assert_eq!(drops.into_iter().collect::<Vec<_>>(), flow.drops_by_cause);
    assert!(of(SegmentEvent::Received).count() > of(SegmentEvent::Sent).count() / 2);
    assert!(flow.spurious_retransmissions < flow.retransmissions, "copies of the network are not counted");
}

#[test]
fn recording_changes_nothing() {
    let quiet = NOISY.replace("= true", "= false");
    let (quiet, loud) = (run(&quiet, 7), run(NOISY, 7));
    assert_eq!(quiet.flows, loud.flows);
    assert!(quiet.series.is_empty() && quiet.segments.is_empty());
}

#[test]
fn a_flow_that_never_connects_says_so_and_knows_no_time() {
    let text = NOISY.replace("rate = \"1 %\"", "rate = \"100 %\"");
    let run = run(&text, 1);
    let flow = &run.flows[0];
    assert_eq!((flow.outcome, flow.bytes_read), (Outcome::ConnectTimedOut, Bytes::ZERO));
    assert_eq!((flow.transfer_time, flow.goodput_bit_per_s, flow.connect_time), (None, None, None));
    assert_eq!((flow.min_rtt, flow.srtt, flow.rto), (None, None, None));
    assert_eq!(flow.drops_by_cause.len(), 1);
    assert!(run.series.is_empty(), "nothing was established");
}

/// Three points of unequal length, four seeds each, two engines.
fn batch() -> Experiment {
    experiment(
        "title = \"batch\"\nseeds = 4\nhorizon = \"1 h\"\n\
         path = [{ element = \"delay\", delay = \"20 ms\" }, { element = \"loss\", rate = \"1 %\" }]\n\
         [transfer]\nsize = \"2 MB\"\n[sweep]\n\"transfer.size\" = [\"2 MB\", \"10 kB\", \"200 kB\"]\n",
    )
}

const BOTH: [Engine; 2] = [Engine::Predict, Engine::Simulate];

#[test]
fn runs_are_handed_over_in_the_order_of_the_jobs() {
    let experiment = batch();
    let jobs = jobs(&experiment, &BOTH);
    assert_eq!(jobs.len(), 3 * (1 + 4));
    let mut seen = Vec::new();
    let taken = run_all::<EngineError>(&experiment, &jobs, &AtomicBool::new(false), |run| {
        seen.push((run.point as usize, run.engine, run.seed));
        Ok(())
    });
    assert_eq!(taken.expect("all are made"), jobs.len());
    assert_eq!(seen, jobs.iter().map(|job| (job.point, job.engine, job.seed)).collect::<Vec<_>>());
}

#[test]
fn an_interrupted_batch_hands_over_what_it_had_begun() {
    let experiment = batch();
    let jobs = jobs(&experiment, &BOTH);
    let stop = AtomicBool::new(false);
    let mut seen = Vec::new();
    let taken = run_all::<EngineError>(&experiment, &jobs, &stop, |run| {
        seen.push((run.point, run.engine, run.seed));
        stop.store(true, Ordering::Relaxed);
        Ok(())
    });
    assert_eq!(taken.expect("an interrupt is no error"), seen.len());
    assert!(!seen.is_empty() && seen.len() <= jobs.len());
    let order = |run: &(u64, Engine, Option<u64>)| {
        jobs.iter().position(|job| (job.point as u64, job.engine, job.seed) == *run)
    };
    assert!(seen.is_sorted_by_key(order), "{seen:?}");

    // Interrupted before it began: nothing.
    let none = run_all::<EngineError>(&experiment, &jobs, &stop, |_| panic!("nothing was begun"));
    assert_eq!(none.expect("an interrupt is no error"), 0);
}

#[test]
fn the_first_error_ends_the_batch() {
    #[derive(Debug, PartialEq)]
    enum Failure {
        Engine(String),
        Full,
    }
    impl From<EngineError> for Failure {
        fn from(error: EngineError) -> Failure {
            Failure::Engine(error.to_string())
        }
    }
    let experiment = batch();
    let mut room = 2;
    let full = run_all(&experiment, &jobs(&experiment, &BOTH), &AtomicBool::new(false), |_| {
        room -= 1;
        if room == 0 { Err(Failure::Full) } else { Ok(()) }
    });
    assert_eq!((full, room), (Err(Failure::Full), 0));

    let unknown = jobs(&experiment, &[Engine::Measure]);
    let error = run_all(&experiment, &unknown, &AtomicBool::new(false), |_| Ok::<(), Failure>(()));
    assert!(matches!(&error, Err(Failure::Engine(text)) if text.contains("measure")), "{error:?}");
}
