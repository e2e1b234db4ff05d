//! Summaries over seeds, and the lines for machines.

use crate::support;

use farpath_run::{Engine, FlowRow, Outcome, PointSummary, Run, Table, write_flow_lines};
use farpath_units::{Bytes, Duration, Instant};
use serde_json::Value;
use support::{flow, run, small_experiment};

fn seeds(times: &[f64]) -> Vec<Run> {
    let with_seed = |(seed, &time)| run(0, Engine::Simulate, Some(seed), vec![flow(time)]);
    (1..).zip(times).map(with_seed).collect()
}

#[test]
fn transfer_time_has_the_mean_and_interval_of_the_seeds() {
    let [summary] = PointSummary::of_runs(&seeds(&[60.0, 62.0, 64.0])).try_into().unwrap();
    let time = summary.statistics.transfer_time_s.unwrap();
    assert_eq!((time.n, time.mean, time.sd, time.min, time.max), (3, 62.0, Some(2.0), 60.0, 64.0));
    // t(0.975, 2) = 4.302653; 4.302653 * 2 / sqrt(3)
    assert!((time.ci95().unwrap() - 4.968_276).abs() < 1e-4);
    assert_eq!((summary.runs, summary.flows(), summary.outcomes[&Outcome::Completed]), (3, 3, 3));
    assert_eq!(summary.statistics.timeouts, None);
}

#[test]
fn transfers_that_did_not_complete_count_as_outcomes_not_as_times() {
    let mut runs = seeds(&[60.0, 62.0, 64.0]);
    runs[1].flows[0].outcome = Outcome::Horizon;
    let [summary] = PointSummary::of_runs(&runs).try_into().unwrap();
    assert_eq!(summary.statistics.transfer_time_s.unwrap().n, 2);
    assert_eq!(summary.outcomes, [(Outcome::Completed, 2), (Outcome::Horizon, 1)].into());
}

#[test]
fn points_and_engines_are_apart_and_in_order() {
    let runs = [
        run(1, Engine::Simulate, Some(1), vec![flow(2.0)]),
        run(0, Engine::Simulate, Some(1), vec![flow(1.0)]),
        run(1, Engine::Predict, None, vec![flow(3.0)]),
    ];
    let order: Vec<_> = PointSummary::of_runs(&runs).iter().map(|s| (s.point, s.engine)).collect();
    assert_eq!(order, [(0, Engine::Simulate), (1, Engine::Predict), (1, Engine::Simulate)]);
}

#[test]
fn flows_of_one_run_give_one_value() {
    let part = |flow_number, start_s, end_s, bytes| FlowRow {
        flow: flow_number,
        start: Instant::ZERO + Duration::from_secs(start_s),
        ended_at: Some(Instant::ZERO + Duration::from_secs(end_s)),
        transfer_time: Some(Duration::from_secs(end_s - start_s)),
        bytes_read: Bytes(bytes),
        timeouts: Some(f64::from(flow_number)),
        ..flow(1.0)
    };
    // 1000 B in 8 s and 3000 B in 8 s, from 0 s to 10 s together.
    let both = run(0, Engine::Simulate, Some(1), vec![part(0, 0, 8, 1000), part(1, 2, 10, 3000)]);
    let [summary] = PointSummary::of_runs([&both]).try_into().unwrap();
    assert_eq!(summary.statistics.transfer_time_s.unwrap().n, 1);
    assert_eq!(summary.statistics.timeouts.unwrap().mean, 0.5);
    assert_eq!(summary.statistics.aggregate_goodput_bit_per_s.unwrap().mean, 3200.0);
    // (1 + 3)^2 / (2 (1 + 9))
    assert!((summary.statistics.jain_index.unwrap().mean - 0.8).abs() < 1e-12);
}

#[test]
fn flow_lines_have_the_columns_in_their_order_and_null_for_the_unknown() {
    let mut lines = Vec::new();
    small_experiment().iter().for_each(|run| write_flow_lines(run, &mut lines).unwrap());
    let lines: Vec<Value> =
        String::from_utf8(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    let columns = Table::Flows.columns();
    let columns: Vec<&str> = columns.iter().map(|column| column.name).chain(["grade"]).collect();
    for line in &lines {
        assert_eq!(line.as_object().unwrap().keys().collect::<Vec<_>>(), columns);
    }
    assert_eq!(lines[0]["seed"], Value::Null);
    assert_eq!(lines[0]["timeouts"], Value::Null);
    assert_eq!(lines[1]["transfer_time_ns"], 66_250_000_000_u64);
    assert_eq!(lines[1]["drops_by_cause"], serde_json::json!({ "loss": 100, "queue-overflow": 1 }));
    assert_eq!(lines[2]["outcome"], "aborted");
    assert_eq!(lines[3]["seed"], u64::MAX);
}

#[test]
fn summaries_are_json_with_their_intervals() {
    let [summary] = PointSummary::of_runs(&seeds(&[60.0, 62.0, 64.0])).try_into().unwrap();
    let json = summary.to_json();
    assert_eq!(json["outcomes"], serde_json::json!({ "completed": 3 }));
    assert_eq!(json["transfer_time_s"]["mean"], 62.0);
    assert!(json["transfer_time_s"]["ci95"].as_f64().unwrap() > 4.9);
    assert_eq!(json["retransmissions"], Value::Null);
}
