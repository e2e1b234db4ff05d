//! Traces: what is pushed comes back, from memory and from a file.

use crate::support::small_experiment;
use farpath_run::{Results, ResultsDir, SegmentEvent, SegmentRow, SeriesRow, Trace};
use farpath_units::Instant;
use proptest::prelude::*;

/// A row of any content; causes, SACK blocks and what is not known are in some.
fn segment() -> impl Strategy<Value = SegmentRow> {
    let cause = prop::option::weighted(0.1, prop::sample::select(vec!["loss", "queue-overflow", "", "über"]));
    let events = [SegmentEvent::Sent, SegmentEvent::Received, SegmentEvent::Dropped, SegmentEvent::Passed];
    let event = prop::sample::select(events.to_vec());
    let sack = prop_oneof![
        9 => Just(Vec::new()),
        1 => prop::collection::vec(any::<(u32, u32)>(), 1..4),
    ];
    let numbers = (any::<u64>(), any::<(u32, u32, u32, u32)>(), any::<(u16, u8)>());
    let known = (prop::option::of(any::<u8>()), prop::option::of(any::<(u32, u32)>()));
    let signal = prop::option::weighted(0.1, ("[a-z]{1,6}", 0..64_u8, "[0-9a-f]{32}"));
    (numbers, event, cause, sack, known, signal, any::<(bool, bool)>()).prop_map(
        |(
            (time, (seq, ack, len, size), (window, flags)),
            event,
            cause,
            sack,
            (ecn, timestamps),
            signal,
            (way, again),
        )| {
            SegmentRow {
                time: Instant::from_nanos(time),
                flow: flags.into(),
                event,
                cause: cause.map(Into::into),
                element: signal.as_ref().map(|signal| signal.0.clone()),
                direction: if way { "forward" } else { "reverse" },
                seq,
                ack,
                len,
                window,
                flags,
                size,
                ecn,
                dscp: signal.as_ref().map(|signal| signal.1),
                qos: signal.map(|signal| signal.2),
                sack,
                timestamps,
                retransmission: again,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// From none to more than two blocks, and none at the end of one.
    #[test]
    fn rows_come_back(
        some in prop::collection::vec(segment(), 1..64),
        count in prop::sample::select(vec![0, 1, 255, 256, 257, 4095, 4096, 4097, 9000]),
    ) {
        let rows: Vec<SegmentRow> = some.iter().cycle().take(count).cloned().collect();
        let trace = Trace::from(rows.clone());
        prop_assert_eq!((trace.len(), trace.is_empty()), (count, count == 0));
        prop_assert!(trace.iter().eq(rows.iter().cloned()));
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = small_experiment().remove(1);
        run.segments = trace;
        let mut results = ResultsDir::create(folder.path()).expect("it can be written");
        results.append(&run).expect("it is written");
        results.finish(true).expect("it is there");
        let read = Results::read(folder.path()).and_then(|results| results.segments()).expect("it can be read");
        prop_assert!(read.iter().all(|(key, _)| *key == run.key()));
        prop_assert!(read.into_iter().map(|(_, row)| row).eq(rows));
    }
}

/// The runs of a sweep are short, and share row groups.
#[test]
fn short_traces_of_many_runs_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = ResultsDir::create(folder.path()).unwrap();
    let one = small_experiment().remove(1);
    let runs: Vec<_> = (0..300)
        .map(|point| {
            let mut run = farpath_run::Run { point, seed: (point % 3 > 0).then_some(point), ..one.clone() };
            let metric = run.series.to_vec()[0].metric;
            run.series =
                (0..point).map(|value| SeriesRow { time: Instant::ZERO, flow: 0, metric, value }).collect();
            run
        })
        .collect();
    runs.iter().for_each(|run| results.append(run).unwrap());
    results.finish(true).unwrap();
    let read = Results::read(folder.path()).unwrap().runs().unwrap();
    assert_eq!(read.len(), runs.len());
    for (read, run) in read.iter().zip(&runs) {
        assert_eq!((read.key(), &read.series, &read.segments), (run.key(), &run.series, &run.segments));
    }
}
