//! Terminal tables, as they are printed.

use farpath_report::tables::{Caveat, ComparisonRow, ComparisonTable, Published, flows_table};
use farpath_run::{Engine, FlowRow, Outcome, PointSummary, Provenance, Run, RunKey};
use farpath_units::{Bytes, Duration};

fn flow(time_s: Option<f64>, retransmissions: Option<f64>, timeouts: Option<f64>) -> FlowRow {
    FlowRow {
        transfer_time: time_s.map(Duration::from_secs_f64),
        bytes_read: Bytes(10_000_000),
        goodput_bit_per_s: time_s.map(|s| 80e6 / s),
        retransmissions,
        timeouts,
        ..FlowRow::new(
            0,
            "forward",
            if time_s.is_some() { Outcome::Completed } else { Outcome::Horizon },
            Bytes(10_000_000),
        )
    }
}

fn run(point: u64, engine: Engine, seed: Option<u64>, flow: FlowRow) -> Run {
    Run { flows: vec![flow], ..Run::new(RunKey { point, engine, seed }, Provenance::default()) }
}

/// One point: loss, published time and retransmissions, predicted time, simulated middle, step and counts.
type Point = (&'static str, f64, f64, f64, f64, f64, f64, f64);

const POINTS: [Point; 5] = [
    ("0 %", 50.21, 0.0, 50.03, 50.17, 0.0, 0.0, 0.0),
    ("1 %", 66.83, 98.0, 75.0, 80.2, 3.0, 101.0, 9.0),
    ("2 %", 92.5, 201.0, 121.0, 130.0, 8.0, 205.0, 31.0),
    ("5 %", 388.0, 520.0, 470.0, 512.0, 40.0, 531.0, 160.0),
    ("10 %", 1943.6, 1092.0, 2010.0, 2119.0, 110.0, 1097.0, 610.0),
];

fn flagship() -> ComparisonTable {
    let row = |(point, (loss, time, retransmissions, predicted, simulated, step, again, timeouts)): (
        u64,
        Point,
    )| {
        let mut runs = vec![run(point, Engine::Predict, None, flow(Some(predicted), None, None))];
        for seed in 0..20 {
            let time = simulated + step * (seed as f64 - 9.5) / 9.5;
            let time = (point < 4 || seed > 1).then_some(time);
            let extra = if step > 0.0 { (seed % 3) as f64 } else { 0.0 };
            runs.push(run(
                point,
                Engine::Simulate,
                Some(seed),
                flow(time, Some(again + extra), Some(timeouts)),
            ));
        }
        let mut caveats = vec![Caveat {
            engine: Some(Engine::Predict),
            text: "slow start is left out; it adds 0.2 s to a transfer of this size".to_owned(),
        }];
        if point > 2 {
            let text = "loss above 4 % is outside of what the formula was checked for".to_owned();
            caveats.push(Caveat { engine: Some(Engine::Predict), text });
        }
        ComparisonRow {
            swept: vec![loss.to_owned()],
            published: Published {
                transfer_time_s: Some(time),
                retransmissions: Some(retransmissions),
                ..Published::default()
            },
            summaries: PointSummary::of_runs(&runs),
            caveats,
        }
    };
    ComparisonTable {
        title: "10 MB over 10 Mbit/s and 40 ms, loss in both directions".to_owned(),
        swept_keys: vec!["path.loss".to_owned()],
        rows: (0..).zip(POINTS).map(row).collect(),
        agreement: Vec::new(),
        remarks: Vec::new(),
    }
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn engines_stand_side_by_side() {
    let text = flagship().table().to_text(Some(120));
    assert_eq!(text, include_str!("../golden/comparison_120.txt"), "\n{text}");
    assert!(widest(&text) <= 120);
}

#[test]
fn narrow_terminals_get_tables_below_each_other() {
    let text = flagship().table().to_text(Some(80));
    assert_eq!(text, include_str!("../golden/comparison_80.txt"), "\n{text}");
    assert!(widest(&text) <= 80);
}

#[test]
fn columns_without_a_value_are_left_out() {
    let mut table = flagship();
    for row in &mut table.rows {
        row.published = Published::default();
        row.summaries.retain(|summary| summary.engine == Engine::Predict);
    }
    let text = table.table().to_text(None);
    assert!(
        !text.contains("published") && !text.contains("± 95 %") && !text.contains("Difference"),
        "\n{text}"
    );
    assert!(text.contains("predicted"));
}

#[test]
fn one_outcome_for_all_is_a_note_and_not_a_column() {
    let mut table = flagship();
    table.rows.truncate(2);
    let text = table.table().to_text(Some(120));
    assert!(text.contains("Outcome: all 40 simulated transfers completed."), "\n{text}");
    assert!(!text.contains("completed 20/20"), "\n{text}");
}

#[test]
fn goodput_is_compared_where_nothing_completed() {
    let mut stream = flow(None, None, None);
    stream.goodput_bit_per_s = Some(31_800.0);
    let row = ComparisonRow {
        swept: Vec::new(),
        published: Published { goodput_bit_per_s: Some(30_000.0), ..Published::default() },
        summaries: PointSummary::of_runs(&[run(0, Engine::Simulate, Some(1), stream)]),
        caveats: Vec::new(),
    };
    let table = ComparisonTable {
        title: "A stream".to_owned(),
        swept_keys: Vec::new(),
        rows: vec![row],
        agreement: Vec::new(),
        remarks: Vec::new(),
    };
    assert_eq!(table.table().to_text(Some(80)), include_str!("../golden/comparison_goodput.txt"));
}

#[test]
fn flows_of_a_run_have_a_row_each() {
    let mut first = run(0, Engine::Simulate, Some(7), flow(Some(66.25), Some(101.0), Some(3.0)));
    let mut second = flow(None, Some(4.0), Some(12.0));
    (second.flow, second.outcome, second.detail) = (1, Outcome::Aborted, "reset by peer".to_owned());
    first.flows.push(second);
    assert_eq!(flows_table(&[first]).to_text(Some(80)), include_str!("../golden/flows.txt"));
}
