//! The flows of some runs, one row each.

use super::grade::grade_notes;
use super::numbers::Scale;
use crate::table::{Column, Table};
use crate::terminal::capitalised;
use farpath_run::{FlowNumber, FlowRow, Run};

/// A table with a row per flow; below it how well runs in real time were done, and what to know before the numbers are
/// trusted. Columns that say the same of every flow, or nothing, are left out.
pub fn flows_table(runs: &[Run]) -> Table {
    let rows: Vec<(&Run, &FlowRow)> =
        runs.iter().flat_map(|run| run.flows.iter().map(move |flow| (run, flow))).collect();
    let mut notes = grade_notes(runs);
    for caveat in runs.iter().flat_map(|run| &run.provenance.caveats) {
        let note = capitalised(caveat);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Table { notes, ..table_of_rows(&rows) }
}

/// The same of some flows, without notes.
pub(crate) fn table_of_rows(rows: &[(&Run, &FlowRow)]) -> Table {
    let text = |header: &str, cell: fn(&Run, &FlowRow) -> Option<String>| {
        Column::right(header, rows.iter().map(|(run, flow)| cell(run, flow)).collect())
    };
    let number = |header: &str, column: &str| {
        let column = FlowNumber::from_name(column).expect("a column of numbers");
        let values: Vec<Option<f64>> = rows.iter().map(|(_, flow)| column.value(flow)).collect();
        let scale = Scale::of_unit(column.unit(), &values.iter().flatten().copied().collect::<Vec<_>>());
        let cells = values.into_iter().map(|value| value.map(|value| scale.text(value))).collect();
        Column::right(header.replace("{unit}", scale.unit), cells)
    };
    let mut heads = vec![
        text("point", |run, _| Some(run.point.to_string())),
        text("engine", |run, _| Some(run.engine.to_string())),
        text("seed", |run, _| run.seed.map(|seed| seed.to_string())),
        text("direction", |_, flow| Some(flow.direction.to_owned())),
    ];
    heads.retain(|column| column.cells.iter().any(|cell| *cell != column.cells[0]));
    heads.push(text("flow", |_, flow| Some(flow.flow.to_string())));
    let ended = vec![
        Column::left("outcome", rows.iter().map(|(_, flow)| Some(outcome(flow))).collect()),
        number("transfer\ntime, {unit}", "transfer_time_s"),
        number("goodput,\n{unit}", "goodput_bit_per_s"),
        number("connect\ntime, {unit}", "connect_time_s"),
    ];
    let program = vec![
        text("protocol", |_, flow| Some(flow.program.protocol.clone()?.into_owned())),
        text("opened by", |_, flow| Some(flow.program.opener.clone()?.into_owned())),
        text("to", |_, flow| Some(flow.program.peer.clone()?.into_owned())),
        number("back,\n{unit}", "bytes_back"),
    ];
    let granted = vec![
        text("explicit\nrate", |_, flow| Some(flow.explicit_rate.clone()?.into_owned())),
        number("granted,\n{unit}", "granted_bit_per_s"),
    ];
    let cost = vec![
        number("data\nsegments", "data_segments"),
        number("retrans-\nmissions", "retransmissions"),
        number("of these\nspurious", "spurious_retransmissions"),
        number("timeouts", "timeouts"),
        number("drops, data\ndirection", "drops_data_direction"),
        number("drops, ACK\ndirection", "drops_ack_direction"),
    ];
    let state = vec![number("mean\ncwnd, {unit}", "mean_cwnd_bytes")];
    let rtt = vec![
        number("smallest\nRTT, {unit}", "min_rtt_s"),
        number("mean RTT,\n{unit}", "mean_rtt_s"),
        number("RTT, 95 %\nwithin, {unit}", "p95_rtt_s"),
        number("RTT, 99 %\nwithin, {unit}", "p99_rtt_s"),
    ];
    let queueing = vec![
        number("mean\nqueueing, {unit}", "mean_queueing_delay_s"),
        number("queueing, 95 %\nwithin, {unit}", "p95_queueing_delay_s"),
        number("queueing, 99 %\nwithin, {unit}", "p99_queueing_delay_s"),
    ];
    let stream = vec![
        number("late at the\nmost, {unit}", "max_lateness_s"),
        number("late at the\nend, {unit}", "final_lateness_s"),
        number("timely again\nafter, {unit}", "time_to_timely_s"),
        number("answer,\nmedian, {unit}", "median_response_s"),
        number("answer, the\nlatest, {unit}", "max_response_s"),
        number("late\nmessages", "late_messages"),
        number("player\nstalls, {unit}", "stall_time_s"),
    ];
    let groups = [program, ended, granted, stream, cost, state, rtt, queueing]
        .map(|group| group.into_iter().filter(Column::is_known).collect());
    Table { heads, groups: groups.into(), ..Table::default() }
}

fn outcome(flow: &FlowRow) -> String {
    match flow.detail.as_str() {
        "" => flow.outcome.to_string(),
        detail => format!("{} ({detail})", flow.outcome),
    }
}
