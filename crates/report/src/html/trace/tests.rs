use super::sequence::Sequence;
use super::*;
use farpath_engine::{provenance, simulate};
use farpath_experiment::Experiment;
use farpath_run::RunKey;
use farpath_units::{Duration, Instant};
use proptest::prelude::*;

fn key(point: u64, engine: Engine, seed: Option<u64>) -> RunKey {
    RunKey { point, engine, seed }
}

#[test]
fn the_first_seed_of_each_point_is_traced_and_of_many_points_some_from_end_to_end() {
    let runs = |points: u64| {
        let of = |point| {
            [
                key(point, Engine::Predict, None),
                key(point, Engine::Simulate, Some(8)),
                key(point, Engine::Simulate, Some(7)),
            ]
        };
        to_trace((0..points).flat_map(of))
    };
    assert_eq!(runs(2), BTreeSet::from([0, 1].map(|point| key(point, Engine::Simulate, Some(7)))));
    let many = runs(1000);
    assert_eq!(many.len(), RUNS);
    assert_eq!(many.first().map(|key| key.point), Some(0));
    assert_eq!(many.last().map(|key| key.point), Some(999));
    assert!(to_trace([key(0, Engine::Predict, None)]).is_empty());
}

#[test]
fn intervals_of_rates_are_round() {
    assert_eq!([0, 1, 3, 11, 49, 51, 100, 101].map(round_up), [1, 1, 5, 20, 50, 100, 100, 200]);
    assert!(round_up(u64::MAX) > u64::MAX / 2);
}

/// One traced run of a shipped experiment with some changes.
fn traced(name: &str, changes: &[&str]) -> Run {
    let shipped = farpath_experiment::shipped_experiments();
    let file = shipped.iter().find(|file| file.name == name).expect("it ships");
    let traces = ["output.series=true", "output.segments=true"];
    let changes: Vec<_> = traces.iter().chain(changes).map(|text| text.parse().expect("a change")).collect();
    let experiment = Experiment::parse(file.text, name, &changes).expect("good");
    let point = &experiment.point(0);
    simulate(point, point.scenario.seed, provenance(&experiment, point)).expect("simulated")
}

fn marks(sequence: &Sequence, event: &str) -> f64 {
    sequence.marks.iter().filter(|mark| mark.event == event).count() as f64
}

#[test]
fn marks_are_what_the_ends_and_the_path_counted() {
    for changes in [
        &["path.loss=3 %"][..],
        &["path.loss=3 %", "sender.recovery.sack=true", "receiver.recovery.sack=true"],
        &["path.loss=1 %", "receiver.receive.buffer=64 kB"],
        // RACK's timer and tail loss probes are no timeouts; BBR sends a repair when its pace allows.
        &["path.loss=2 %", "sender.stack=linux-6", "receiver.stack=linux-6"],
        &["path.loss=2 %", "sender.stack=linux-6", "receiver.stack=linux-6", "sender.congestion.control=bbr"],
        &["path.loss=2 %", "sender.stack=linux-6", "receiver.stack=linux-6", "seed=3", "transfer.size=3 kB"],
    ] {
        let run = traced("noisy-channel", &[changes, &["transfer.size=2 MB"]].concat());
        let flow = &run.flows[0];
        let sequence = Sequence::of_flow(flow, &run.segments.to_vec());
        let again = ["timeout", "fast retransmit", "tail loss probe", "retransmission"]
            .map(|event| marks(&sequence, event));
        assert_eq!(Some(again.iter().sum()), flow.retransmissions, "{changes:?}");
        assert_eq!(Some(again[0]), flow.timeouts, "{changes:?}");
        assert!(again[1] > 0.0, "{changes:?}");
        assert_eq!(Some(again[1]), flow.fast_retransmits, "{changes:?}");
        assert_eq!(Some(marks(&sequence, "duplicate ACK")), flow.dup_acks, "{changes:?}");
        let drops = ["data dropped", "ACK dropped", "SYN dropped"].map(|event| marks(&sequence, event));
        let counted = flow.drops_data_direction.zip(flow.drops_ack_direction).map(|(a, b)| a + b);
        assert_eq!(Some(drops.iter().sum()), counted, "{changes:?}");
        assert_eq!(sequence.acked.last().map(|last| last.1), Some(2_000_001), "all data, and the FIN");
    }
}

#[test]
fn where_only_packets_are_seen_a_timer_is_not_called_a_timeout() {
    let linux = ["sender.stack=linux-6", "receiver.stack=linux-6", "sender.congestion.control=bbr"];
    let run = traced("noisy-channel", &[&["path.loss=2 %", "transfer.size=2 MB"], &linux[..]].concat());
    let mut segments = run.segments.to_vec();
    // As the recorder of an emulation records them.
    segments.iter_mut().filter(|row| row.event == SegmentEvent::Sent).for_each(|row| row.cause = None);
    let flow = &run.flows[0];
    let sequence = Sequence::of_flow(flow, &segments);
    assert_eq!(marks(&sequence, "timeout"), 0.0);
    let timers = marks(&sequence, "retransmission by a timer");
    assert!(flow.timeouts.is_some_and(|timeouts| timers > timeouts), "{timers} of which {:?}", flow.timeouts);
    let caption = &sequence::figures(flow, &segments, None)[0].caption;
    let counted = format!("it has counted {} timeouts", flow.timeouts.expect("simulated"));
    assert!(caption.contains("by a timer") && caption.contains(&counted), "{caption}");
}

#[test]
fn what_arrives_is_no_faster_than_the_link_and_what_is_read_at_once_is_told_from_it() {
    let path = "path=[{element='link', rate='20 Mbit/s'}, {element='delay', delay='100 ms'}, \
                {element='listed-loss', packets={forward=[3000]}}]";
    let ends = ["sender.stack=linux-6", "receiver.stack=linux-6", "receiver.receive.buffer=2 MB"];
    let run = traced("noisy-channel", &[&[path, "sweep={}"], &ends[..]].concat());
    let figures = figures(&run.flows[0], &run.series.to_vec(), &run.segments.to_vec(), &[]);
    let figure = figures.iter().find(|figure| figure.plot == "received-rate").expect("it reads");
    assert_eq!(figure.title, "Arrivals and in-order delivery");
    let json = figure.to_json()["data"]["rates"].clone();
    let rates: Vec<f64> =
        json["bit_per_s"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect();
    let whats = json["what"]["rows"].as_array().unwrap();
    let most = |what: u64| {
        let of = rates.iter().zip(whats).filter(|(_, row)| row.as_u64() == Some(what)).map(|(rate, _)| *rate);
        of.fold(0.0, f64::max)
    };
    assert_eq!(json["what"]["texts"], serde_json::json!(["arrivals", "in-order delivery"]));
    assert!(most(0) <= 20e6, "{} bit/s over a link of 20 Mbit/s", most(0));
    assert!(most(1) > 20e6, "{} bit/s: all that waited is read at once", most(1));
    let alone = figures_without_segments(&run);
    assert_eq!(alone.title, "In-order delivery");
}

fn figures_without_segments(run: &Run) -> Figure {
    let figures = figures(&run.flows[0], &run.series.to_vec(), &[], &[]);
    figures.into_iter().find(|figure| figure.plot == "received-rate").expect("it reads")
}

#[test]
fn marks_of_congestion_are_those_that_the_receiver_counted() {
    let run = traced("ecn", &["path.link.mark.forward=100 kB"]);
    let flow = &run.flows[0];
    let drawn = marks(&Sequence::of_flow(flow, &run.segments.to_vec()), "marked (CE)");
    assert_eq!(Some(drawn), flow.ecn_marks);
    assert!(drawn > 0.0);
}

#[test]
fn positions_rise_where_sequence_numbers_wrap() {
    let run = traced("single-drop", &[]);
    let mut segments = run.segments.to_vec();
    let plain = Sequence::of_flow(&run.flows[0], &segments);
    // All numbers of the data, and the acknowledgments of them, as from another initial sequence number.
    let syn = |row: &&SegmentRow| row.direction == "forward" && row.flags & 2 != 0;
    let shift = (u32::MAX - 300_000).wrapping_sub(segments.iter().find(syn).expect("a SYN").seq);
    for row in &mut segments {
        match row.direction {
            "forward" => row.seq = row.seq.wrapping_add(shift),
            _ => row.ack = row.ack.wrapping_add(shift),
        }
    }
    let wrapped = Sequence::of_flow(&run.flows[0], &segments);
    assert_eq!((plain.sent, plain.acked, plain.marks), (wrapped.sent, wrapped.acked, wrapped.marks));
}

#[test]
fn lines_hold_their_last_value_until_the_end() {
    let run = traced("noisy-channel", &["transfer.size=1 MB"]);
    let series = run.series.to_vec();
    let end = series.last().map(|row| row.time.as_nanos());
    let (columns, _) = lines(&series, &[Metric::Rto], "value_s", 1e-9).expect("recorded");
    let json = columns.to_json();
    let times = json["time_s"].as_array().expect("numbers");
    assert_eq!(
        times.last().and_then(serde_json::Value::as_f64),
        end.map(|end| (seconds(end) * 1e7).round() / 1e7)
    );
    assert!(times.len() > 1, "one value alone would be no line");
}

#[test]
fn a_late_flow_has_as_many_rates_as_an_early_one() {
    let json = |run: &Run| {
        let figures = figures(&run.flows[0], &run.series.to_vec(), &run.segments.to_vec(), &[]);
        let figure = figures.iter().find(|figure| figure.plot == "received-rate").expect("it reads");
        figure.to_json()["data"]["rates"].clone()
    };
    let (early, late) =
        (traced("single-drop", &[]), traced("single-drop", &["flow=[{start='10000 s'}]", "horizon=4 h"]));
    let (early, late) = (json(&early), json(&late));
    assert_eq!(early["bit_per_s"], late["bit_per_s"]);
    assert_eq!((&early["time_s"][0], &late["time_s"][0]), (&0.into(), &10_000.into()));
}

#[test]
fn an_acknowledgment_of_the_sender_that_is_dropped_is_no_lost_data() {
    let run = traced("single-drop", &[]);
    let mut segments = run.segments.to_vec();
    let lost = marks(&Sequence::of_flow(&run.flows[0], &segments), "data dropped");
    let own = |row: &&mut SegmentRow| {
        let (syn, fin, ack) = (2, 1, 16);
        row.direction == "forward" && row.len == 0 && row.flags & (syn | fin | ack) == ack
    };
    let ack = segments.iter_mut().find(own).expect("of the handshake, or of the receiver's FIN");
    ack.event = farpath_run::SegmentEvent::Dropped;
    let sequence = Sequence::of_flow(&run.flows[0], &segments);
    assert_eq!((marks(&sequence, "ACK dropped"), marks(&sequence, "data dropped")), (1.0, lost));
}

/// Numbers as somebody may have put them into a file.
fn odd() -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(vec![0, 1, u64::from(u32::MAX), 1 << 53, 1 << 63, u64::MAX - 1, u64::MAX]),
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    /// A delivered count that fell ended the report with a panic.
    #[test]
    fn whatever_is_in_a_trace_is_drawn(
        changes in prop::collection::vec((0_u8..8, any::<prop::sample::Index>(), odd()), 1..12),
        streams in any::<bool>(),
    ) {
        let mut run = traced("single-drop", &["transfer.size=30 kB"]);
        let (mut series, mut segments) = (run.series.to_vec(), run.segments.to_vec());
        let at = Instant::from_nanos;
        let mut messages: Vec<MessageRow> = (0..10)
            .map(|message| {
                let arrived = Some(at(message + 1));
                MessageRow { flow: 0, message, due: at(message), written: None, sent: None, arrived, answered: None }
            })
            .collect();
        for (what, place, value) in changes {
            let (row, segment) = (place.index(series.len()), place.index(segments.len()));
            match what {
                0 => series[row].time = at(value),
                1 => series[row].value = value,
                2 => segments[segment].time = at(value),
                3 => (segments[segment].len, segments[segment].seq) = (value as u32, (value >> 32) as u32),
                4 => (segments[segment].ack, segments[segment].cause) = (value as u32, None),
                5 => run.flows[0].min_rtt = Some(Duration::from_nanos(value)),
                6 => run.flows[0].start = at(value),
                _ => messages[place.index(10)].due = at(value),
            }
        }
        (run.series, run.segments) = (series.into(), segments.into());
        if streams {
            run.messages = messages.into();
        }
        let drawn = trace(&run);
        prop_assert!(!drawn.flows.is_empty());
    }
}
