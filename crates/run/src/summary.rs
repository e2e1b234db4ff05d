//! One point and one engine over all seeds.

use crate::json::grade_json;
use crate::{Engine, FlowRow, Grade, Outcome, Run, Share, Statistic};
use farpath_units::{Duration, Instant};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What the runs of one point and one engine have in common, and how far they differ.
///
/// Each run gives one value: the mean over its flows of what is known of them. The statistics are over runs,
/// because the flows of one run share a path and are not independent.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSummary {
    /// Which point of the sweep, from 0.
    pub point: u64,
    /// Who made the runs.
    pub engine: Engine,
    /// How many runs.
    pub runs: u64,
    /// How many flows ended how, over all runs; outcomes that did not occur are left out.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Connections that their openers took as open, over all runs.
    pub opened: Option<Share>,
    /// Transfers that completed, over all runs.
    pub completed: Option<Share>,
    /// From the start until the sender may send, of those that come so far, in s.
    pub connect_time_s: Option<Statistic>,
    /// Of completed flows, in s.
    pub transfer_time_s: Option<Statistic>,
    /// Of a flow, in bit/s.
    pub goodput_bit_per_s: Option<Statistic>,
    /// Of all flows of a run together, from the first start to the last end, in bit/s.
    pub aggregate_goodput_bit_per_s: Option<Statistic>,
    /// Jain's fairness index of the flows' mean rates, 1/flows to 1; only where a run has more than one flow.
    pub jain_index: Option<Statistic>,
    /// Goodput over throughput.
    pub efficiency: Option<Statistic>,
    /// Segments with payload, retransmissions included.
    pub data_segments: Option<Statistic>,
    /// Segments sent again.
    pub retransmissions: Option<Statistic>,
    /// Of these, those that were not needed.
    pub spurious_retransmissions: Option<Statistic>,
    /// Expirations of the retransmission timer.
    pub timeouts: Option<Statistic>,
    /// Entries into fast retransmit.
    pub fast_retransmits: Option<Statistic>,
    /// Packets dropped on the way, both directions.
    pub drops: Option<Statistic>,
    /// Of streams: from when a message was due to its arrival, at the most, in s.
    pub max_lateness_s: Option<Statistic>,
    /// Of streams: the same of the last message, in s.
    pub final_lateness_s: Option<Statistic>,
    /// Of streams: by how much they fell behind their rate, at the most, in bytes.
    pub delayed_bytes: Option<Statistic>,
    /// Of streams: the longest time of messages too late to be played, in s; of those runs in which it came to an end.
    pub time_to_timely_s: Option<Statistic>,
    /// Of streams: from when a message was due until TCP had taken it, at the most, in s.
    pub max_write_lag_s: Option<Statistic>,
    /// How well the runs were done, where that was in real time: see [`Grade::of_all`].
    pub grade: Option<Grade>,
}

impl PointSummary {
    /// One summary for each point and engine that occurs, in this order.
    pub fn of_runs<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<PointSummary> {
        let mut groups: BTreeMap<(u64, Engine), Vec<&Run>> = BTreeMap::new();
        for run in runs {
            groups.entry((run.point, run.engine)).or_default().push(run);
        }
        groups.into_iter().map(|((point, engine), runs)| of_group(point, engine, &runs)).collect()
    }

    /// Flows over all runs.
    pub fn flows(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// As one JSON object, keys in a fixed order, `null` for what is not known.
    pub fn to_json(&self) -> Value {
        let outcomes: Map<String, Value> = self
            .outcomes
            .iter()
            .map(|(outcome, flows)| (outcome.name().to_owned(), (*flows).into()))
            .collect();
        let mut object = Map::from_iter([
            ("point".to_owned(), self.point.into()),
            ("engine".to_owned(), self.engine.name().into()),
            ("runs".to_owned(), self.runs.into()),
            ("flows".to_owned(), self.flows().into()),
            ("outcomes".to_owned(), outcomes.into()),
            ("opened".to_owned(), share_json(self.opened)),
            ("completed".to_owned(), share_json(self.completed)),
        ]);
        object
            .extend(self.statistics().map(|(name, statistic)| (name.to_owned(), statistic_json(statistic))));
        object.insert("grade".to_owned(), grade_json(self.grade.as_ref()));
        object.into()
    }

    /// Every statistic by its name, with its unit at the end of it.
    pub fn statistics(&self) -> [(&'static str, Option<Statistic>); 17] {
        [
            ("connect_time_s", self.connect_time_s),
            ("transfer_time_s", self.transfer_time_s),
            ("goodput_bit_per_s", self.goodput_bit_per_s),
            ("aggregate_goodput_bit_per_s", self.aggregate_goodput_bit_per_s),
            ("jain_index", self.jain_index),
            ("efficiency", self.efficiency),
            ("data_segments", self.data_segments),
            ("retransmissions", self.retransmissions),
            ("spurious_retransmissions", self.spurious_retransmissions),
            ("timeouts", self.timeouts),
            ("fast_retransmits", self.fast_retransmits),
            ("drops", self.drops),
            ("max_lateness_s", self.max_lateness_s),
            ("final_lateness_s", self.final_lateness_s),
            ("delayed_bytes", self.delayed_bytes),
            ("time_to_timely_s", self.time_to_timely_s),
            ("max_write_lag_s", self.max_write_lag_s),
        ]
    }
}

fn statistic_json(statistic: Option<Statistic>) -> Value {
    statistic.map_or(
        Value::Null,
        |s| json!({ "n": s.n, "mean": s.mean, "sd": s.sd, "min": s.min, "max": s.max, "ci95": s.ci95() }),
    )
}

fn share_json(share: Option<Share>) -> Value {
    share.map_or(Value::Null, |share| {
        let interval = share.interval();
        json!({
            "trials": share.trials,
            "share": share.share,
            "low": interval.map(|(low, _)| low),
            "high": interval.map(|(_, high)| high),
        })
    })
}

fn of_group(point: u64, engine: Engine, runs: &[&Run]) -> PointSummary {
    let mut outcomes = BTreeMap::new();
    for flow in runs.iter().flat_map(|run| &run.flows) {
        *outcomes.entry(flow.outcome).or_default() += 1;
    }
    let over_runs = |of_flow: fn(&FlowRow) -> Option<f64>| {
        Statistic::of(runs.iter().filter_map(|run| mean(&run.flows, of_flow)))
    };
    // The flows of one run meet different losses, but for those that a queue makes.
    let share = |of_flow: fn(&FlowRow) -> Option<f64>| {
        let share = Share::of(runs.iter().flat_map(|run| &run.flows).filter_map(of_flow))?;
        Some(if engine == Engine::Predict { Share { trials: 0, ..share } } else { share })
    };
    PointSummary {
        point,
        engine,
        runs: runs.len() as u64,
        outcomes,
        opened: share(|flow| flow.opened),
        completed: share(|flow| flow.completed),
        connect_time_s: over_runs(|flow| flow.connect_time.map(Duration::as_secs_f64)),
        transfer_time_s: over_runs(|flow| {
            flow.transfer_time.filter(|_| flow.outcome == Outcome::Completed).map(|time| time.as_secs_f64())
        }),
        goodput_bit_per_s: over_runs(|flow| flow.goodput_bit_per_s),
        aggregate_goodput_bit_per_s: Statistic::of(
            runs.iter().filter_map(|run| aggregate_goodput(&run.flows)),
        ),
        jain_index: Statistic::of(runs.iter().filter_map(|run| jain_index(&run.flows))),
        efficiency: over_runs(|flow| flow.efficiency),
        data_segments: over_runs(|flow| flow.data_segments),
        retransmissions: over_runs(|flow| flow.retransmissions),
        spurious_retransmissions: over_runs(|flow| flow.spurious_retransmissions),
        timeouts: over_runs(|flow| flow.timeouts),
        fast_retransmits: over_runs(|flow| flow.fast_retransmits),
        drops: over_runs(|flow| Some(flow.drops_data_direction? + flow.drops_ack_direction?)),
        max_lateness_s: over_runs(|flow| flow.stream.max_lateness.map(Duration::as_secs_f64)),
        final_lateness_s: over_runs(|flow| flow.stream.final_lateness.map(Duration::as_secs_f64)),
        delayed_bytes: over_runs(|flow| flow.stream.delayed.map(|bytes| bytes.0 as f64)),
        time_to_timely_s: over_runs(|flow| flow.stream.time_to_timely.map(Duration::as_secs_f64)),
        max_write_lag_s: over_runs(|flow| flow.stream.max_write_lag.map(Duration::as_secs_f64)),
        grade: Grade::of_all(runs.iter().filter_map(|run| run.grade.as_ref())),
    }
}

/// Mean over the flows for which the value is known.
fn mean(flows: &[FlowRow], of_flow: impl Fn(&FlowRow) -> Option<f64>) -> Option<f64> {
    Statistic::of(flows.iter().filter_map(of_flow)).map(|statistic| statistic.mean)
}

/// When a flow was over, however it ended.
fn end(flow: &FlowRow) -> Option<Instant> {
    flow.ended_at.or_else(|| Some(flow.start + flow.transfer_time?))
}

fn aggregate_goodput(flows: &[FlowRow]) -> Option<f64> {
    let first = flows.iter().map(|flow| flow.start).min()?;
    let last = flows.iter().map(end).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let bits: u128 = flows.iter().map(|flow| flow.bytes_read.bits()).sum();
    positive(last.saturating_since(first).as_secs_f64()).map(|s| bits as f64 / s)
}

/// Jain's index (Jain, Chiu, Hawe 1984), (Σx)² / (n·Σx²), of bytes read per second from each flow's start to its end.
pub fn jain_index(flows: &[FlowRow]) -> Option<f64> {
    if flows.len() < 2 {
        return None;
    }
    let rate = |flow: &FlowRow| {
        let s = positive(end(flow)?.saturating_since(flow.start).as_secs_f64())?;
        Some(flow.bytes_read.bits() as f64 / s)
    };
    let rates = flows.iter().map(rate).collect::<Option<Vec<f64>>>()?;
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|x| x * x).sum();
    positive(squares).map(|squares| sum * sum / (rates.len() as f64 * squares))
}

fn positive(x: f64) -> Option<f64> {
    (x > 0.0).then_some(x)
}
