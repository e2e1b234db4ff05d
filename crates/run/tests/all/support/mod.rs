//! Runs to write and read.
#![allow(dead_code, reason = "an example uses a part of it")]

use farpath_run::{
    AirRow, DelayFigures, Engine, FlowRow, MessageRow, Metric, Outcome, Provenance, RouterRow, Run,
    SegmentEvent, SegmentRow, SeriesRow, StationRow, StreamFigures, Trace,
};
use farpath_units::{Bytes, Duration, Instant};

/// A flow that took so long, and of which nothing else is known.
pub fn flow(transfer_time_s: f64) -> FlowRow {
    FlowRow {
        transfer_time: Some(Duration::from_secs_f64(transfer_time_s)),
        bytes_read: Bytes(10_000_000),
        goodput_bit_per_s: Some(80e6 / transfer_time_s),
        ..FlowRow::new(0, "forward", Outcome::Completed, Bytes(10_000_000))
    }
}

/// A run with these flows.
pub fn run(point: u64, engine: Engine, seed: Option<u64>, flows: Vec<FlowRow>) -> Run {
    Run {
        point,
        engine,
        seed,
        flows,
        series: Trace::default(),
        segments: Trace::default(),
        messages: Trace::default(),
        routers: Vec::new(),
        air: Vec::new(),
        stations: Vec::new(),
        provenance: provenance(point),
        grade: None,
    }
}

fn provenance(point: u64) -> Provenance {
    Provenance {
        experiment: "title = \"10 MB over a lossy link\"\n[path]\nloss = \"0 %\"\n".into(),
        changes: vec![format!("path.loss={point} %")],
        version: "0.1.0".to_owned(),
        caveats: Vec::new(),
        ..Provenance::default()
    }
}

/// A stream of which everything is known; of its two players only one can have been there.
fn stream() -> StreamFigures {
    StreamFigures {
        messages: Some(480_000.0),
        late_messages: Some(79_000.0),
        max_lateness: Some(Duration::from_millis(2497)),
        final_lateness: Some(Duration::from_millis(8)),
        max_write_lag: Some(Duration::ZERO),
        peak_backlog: Some(Bytes(159_000_000)),
        delayed: Some(Bytes(159_100_000)),
        time_to_timely: Some(Duration::from_millis(19_900)),
        stall_time: Some(Duration::from_millis(2480)),
        discarded_messages: Some(0.0),
        expired_messages: Some(0.0),
        // The format was without them when it was made.
        median_response: None,
        max_response: None,
    }
}

/// One that arrived, one that was written and no more, one that was due.
fn messages() -> Trace<MessageRow> {
    let due = Instant::from_nanos(1_040_000_000);
    let none =
        MessageRow { flow: 0, message: 2, due, written: None, sent: None, arrived: None, answered: None };
    let written = MessageRow { message: 1, written: Some(due), ..none };
    let arrived =
        MessageRow { message: 0, sent: Some(due), arrived: Some(Instant::from_nanos(u64::MAX)), ..written };
    vec![arrived, written, none].into()
}

/// The same, and its simulated run has a stream over a flow router: version 1 of the format began without any.
pub fn with_a_stream() -> Vec<Run> {
    let mut runs = small_experiment();
    let run = &mut runs[1];
    (run.flows[0].stream, run.messages) = (stream(), messages());
    (run.flows[0].explicit_rate, run.flows[0].granted_bit_per_s) =
        (Some("granted".into()), Some(29_984_000.0));
    run.routers = vec![router()];
    run.air = air();
    run.stations = stations();
    runs
}

/// A channel both ways have, and one of a radio that draws nobody knows what.
fn air() -> Vec<AirRow> {
    let data = AirRow {
        element: "radio".to_owned(),
        hop: 1,
        direction: Some("reverse"),
        what: "data",
        time: Duration::from_millis(1500),
        energy_j: Some(2.25),
    };
    vec![data.clone(), AirRow { direction: None, what: "link-ack", energy_j: None, ..data }]
}

/// One of the path, and one that is not.
fn stations() -> Vec<StationRow> {
    let of_path = StationRow {
        element: "radio".to_owned(),
        hop: 1,
        station: 0,
        others: None,
        offered: 210,
        delivered: 208,
        dropped: 2,
        delivered_bytes: Bytes(106_496),
        calls: 90,
        unanswered: 20,
        held_back: 31,
        frames: 230,
        hit: 22,
    };
    vec![of_path.clone(), StationRow { station: 2, others: Some(0), ..of_path }]
}

/// One of which everything is known.
fn router() -> RouterRow {
    RouterRow {
        element: "edge".to_owned(),
        direction: "reverse",
        requests: 223,
        lowered: 109,
        admitted: 5,
        refused: 1,
        preempted: 2,
        pushed: 3,
        missed: 4,
        closed: 6,
        expired: 7,
        policed: 8,
        unknown: 9,
        above_grant: 10,
        full: 11,
        mean_backlog: 156_544.25,
        backlog_deviation: 102_020.5,
        max_backlog: Bytes(253_568),
    }
}

/// A prediction and two simulated runs of one point, the first of them with everything that a run can hold.
pub fn small_experiment() -> Vec<Run> {
    let mut predicted = run(1, Engine::Predict, None, vec![flow(66.0)]);
    predicted.provenance.caveats.push("slow start is left out".to_owned());
    let lost = FlowRow {
        outcome: Outcome::Aborted,
        detail: "reset by peer".to_owned(),
        transfer_time: None,
        goodput_bit_per_s: None,
        ended_at: Some(Instant::from_nanos(90_000_000_000)),
        bytes_read: Bytes(2_920),
        direction: "reverse",
        flow: 1,
        ..flow(1.0)
    };
    let whole = FlowRow {
        ended_at: Some(Instant::from_nanos(67_250_000_000)),
        start: Instant::from_nanos(1_000_000_000),
        connect_time: Some(Duration::from_millis(40)),
        throughput_bit_per_s: Some(1.25e6),
        efficiency: Some(0.966),
        data_segments: Some(6950.0),
        retransmissions: Some(101.0),
        spurious_retransmissions: Some(0.0),
        timeouts: Some(3.0),
        fast_retransmits: Some(66.0),
        dup_acks: Some(240.0),
        pure_acks: Some(3430.0),
        syns: Some(1.0),
        synacks: Some(1.0),
        drops_data_direction: Some(70.0),
        drops_ack_direction: Some(31.0),
        drops_by_cause: vec![("loss".into(), 100), ("queue-overflow".into(), 1)],
        final_cwnd: Some(Bytes(8760)),
        mean_cwnd: Some(7312.5),
        min_rtt: Some(Duration::from_millis(40)),
        srtt: Some(Duration::from_micros(43_830)),
        rto: Some(Duration::from_secs(1)),
        delays: DelayFigures {
            mean_rtt: Some(Duration::from_micros(44_120)),
            p95_rtt: Some(Duration::from_micros(52_800)),
            p99_rtt: Some(Duration::from_micros(61_070)),
            mean_queueing_delay: Some(Duration::from_micros(3_310)),
            p95_queueing_delay: Some(Duration::from_micros(11_900)),
            p99_queueing_delay: Some(Duration::from_nanos(20_000_001)),
        },
        ..flow(66.25)
    };
    let mut simulated = run(1, Engine::Simulate, Some(7), vec![whole, lost]);
    let at = Instant::from_nanos(1_040_000_000);
    simulated.series = Trace::from(vec![
        SeriesRow { time: Instant::ZERO, flow: 0, metric: Metric::Cwnd, value: 2920 },
        SeriesRow { time: at, flow: 1, metric: Metric::Srtt, value: 40_000_000 },
    ]);
    let sent = SegmentRow {
        time: at,
        flow: 0,
        event: SegmentEvent::Sent,
        cause: None,
        element: None,
        direction: "forward",
        seq: u32::MAX - 10,
        ack: 1,
        len: 1460,
        window: 8760,
        flags: 0x18,
        size: 1500,
        ecn: None,
        dscp: None,
        qos: None,
        sack: Vec::new(),
        timestamps: Some((10, 0)),
        retransmission: false,
    };
    let dropped = SegmentRow {
        event: SegmentEvent::Dropped,
        cause: Some("bit-errors".into()),
        direction: "reverse",
        sack: vec![(u32::MAX, 1459), (3000, 4460)],
        timestamps: None,
        retransmission: true,
        ..sent.clone()
    };
    simulated.segments = vec![sent, dropped].into();
    vec![predicted, simulated, run(1, Engine::Simulate, Some(u64::MAX), vec![flow(67.5)])]
}
