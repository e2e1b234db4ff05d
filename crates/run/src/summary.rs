//! One point and one engine over all seeds.

use crate::json::grade_json;
use crate::{Engine, FlowRow, FlowStatistics, Grade, Outcome, Run, Share, Statistic};
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
    /// What the columns of the flows say in the mean of a run, over runs.
    pub statistics: FlowStatistics,
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
        object.extend(
            self.statistics.iter().map(|(name, statistic)| (name.to_owned(), statistic_json(statistic))),
        );
        object.insert("grade".to_owned(), grade_json(self.grade.as_ref()));
        object.into()
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
    // The flows of one run meet different losses, but for those that a queue makes.
    let share = |of_flow: fn(&FlowRow) -> Option<f64>| {
        let share = Share::from_trials(runs.iter().flat_map(|run| &run.flows).filter_map(of_flow))?;
        Some(if engine == Engine::Predict { Share { trials: 0, ..share } } else { share })
    };
    PointSummary {
        point,
        engine,
        runs: runs.len() as u64,
        outcomes,
        opened: share(|flow| flow.opened),
        completed: share(|flow| flow.completed),
        statistics: FlowStatistics::from_flows(runs.iter().map(|run| &*run.flows)),
        grade: Grade::of_all(runs.iter().filter_map(|run| run.grade.as_ref())),
    }
}

/// Mean over the flows for which the value is known.
pub(crate) fn mean(flows: &[FlowRow], of_flow: impl Fn(&FlowRow) -> Option<f64>) -> Option<f64> {
    Statistic::from_values(flows.iter().filter_map(of_flow)).map(|statistic| statistic.mean)
}

/// When a flow was over, however it ended.
fn end(flow: &FlowRow) -> Option<Instant> {
    flow.ended_at.or_else(|| Some(flow.start + flow.transfer_time?))
}

/// Transfer time of the flows that completed, in s.
pub(crate) fn transfer_time_of_completed(flows: &[FlowRow]) -> Option<f64> {
    let completed = |flow: &FlowRow| (flow.outcome == Outcome::Completed).then_some(flow.transfer_time)?;
    mean(flows, |flow| completed(flow).map(Duration::as_secs_f64))
}

/// Packets dropped on the way, both directions.
pub(crate) fn drops(flows: &[FlowRow]) -> Option<f64> {
    mean(flows, |flow| Some(flow.drops_data_direction? + flow.drops_ack_direction?))
}

/// Goodput of all flows together, from the first start to the last end, in bit/s.
pub(crate) fn aggregate_goodput(flows: &[FlowRow]) -> Option<f64> {
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
