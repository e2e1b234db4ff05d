//! What happened in some runs, flow by flow: windows, time-sequence graph, rates, round-trip times, queue.

mod sequence;
mod stream;

use super::data::{Columns, Figure, log_domain, seconds};
use super::decimate::{Sample, decimate};
use farpath_run::{Engine, FlowRow, MessageRow, Metric, Run, RunKey, SegmentEvent, SegmentRow, SeriesRow};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most runs whose traces are shown: the report stays a few MB.
const RUNS: usize = 12;

/// The most flows of a run whose traces are shown.
const FLOWS: usize = 3;

/// The most flows whose rates stand in one figure.
const RATES: usize = 8;

/// Intervals of time that a line is decimated to, four points each.
const INTERVALS: usize = 300;

/// The axis of time of a plot: from when to when.
const TIME: &str = "/encoding/x/scale/domain";

/// Intervals that rates are averaged over, about so many.
const RATE_INTERVALS: u64 = 150;

/// Of these runs those whose traces are shown: of every point the first with a seed, or of some points, from the
/// first to the last, where there are too many.
pub fn to_trace(keys: impl IntoIterator<Item = RunKey>) -> BTreeSet<RunKey> {
    let mut first: BTreeMap<(u64, Engine), RunKey> = BTreeMap::new();
    for key in keys.into_iter().filter(|key| key.engine != Engine::Predict) {
        let known = first.entry((key.point, key.engine)).or_insert(key);
        *known = key.min(*known);
    }
    let keys: Vec<RunKey> = first.into_values().collect();
    match keys.len() {
        0..=RUNS => keys.into_iter().collect(),
        many => (0..RUNS).map(|i| keys[i * (many - 1) / (RUNS - 1)]).collect(),
    }
}

/// The figures of one run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trace {
    pub key: RunKey,
    /// Of all its flows together.
    pub together: Vec<Figure>,
    /// Of each flow that is shown.
    pub flows: Vec<(u32, Vec<Figure>)>,
    pub flows_in_all: usize,
}

/// Collects the traces of the runs that are shown, decimated at once.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    wanted: BTreeSet<RunKey>,
    pub(super) traces: Vec<Trace>,
}

impl Traces {
    /// Of these runs; see [`to_trace`].
    pub fn for_runs(wanted: BTreeSet<RunKey>) -> Traces {
        Traces { wanted, traces: Vec::new() }
    }

    /// Of how many runs.
    pub(super) fn wanted(&self) -> usize {
        self.wanted.len()
    }

    /// Takes what a run recorded, if it is one of those shown and recorded anything.
    pub fn add(&mut self, run: &Run) {
        let recorded = !run.series.is_empty() || !run.segments.is_empty() || !run.messages.is_empty();
        if recorded && self.wanted.contains(&run.key()) {
            self.traces.push(trace(run));
        }
    }
}

fn trace(run: &Run) -> Trace {
    let (series, segments, messages) = (run.series.to_vec(), run.segments.to_vec(), run.messages.to_vec());
    let mut together = Vec::new();
    // Programs open many connections for next to nothing.
    let mut largest: Vec<&FlowRow> = run.flows.iter().collect();
    largest.sort_by_key(|flow| Reverse(flow.bytes));
    if run.flows.len() > 1 {
        let start = run.flows.iter().map(|flow| flow.start.as_nanos()).min().unwrap_or(0);
        let mut shown = largest[..largest.len().min(RATES)].to_vec();
        shown.sort_by_key(|flow| flow.flow);
        together.extend(rates(&series, &segments, &shown, run.flows.len(), start));
    }
    largest.truncate(FLOWS);
    let flows = largest.iter().map(|flow| (flow.flow, figures(flow, &series, &segments, &messages)));
    Trace { key: run.key(), together, flows: flows.collect(), flows_in_all: run.flows.len() }
}

fn figures(
    flow: &FlowRow,
    series: &[SeriesRow],
    segments: &[SegmentRow],
    messages: &[MessageRow],
) -> Vec<Figure> {
    let series: Vec<SeriesRow> = series.iter().filter(|row| row.flow == flow.flow).copied().collect();
    let mut figures = Vec::new();
    figures.extend(windows(&series));
    let messages: Vec<MessageRow> = messages.iter().filter(|row| row.flow == flow.flow).copied().collect();
    if messages.is_empty() {
        figures.extend(sequence::figures(flow, segments, None));
        figures.extend(rates(&series, segments, &[flow], 1, flow.start.as_nanos()));
    } else {
        // As the e-VLBI paper shows them: window, rate and retransmissions below each other, and the messages' arrival.
        figures.extend(rates(&series, segments, &[flow], 1, flow.start.as_nanos()));
        figures.extend(stream::retransmissions(&series));
        figures.extend(stream::figures(&messages));
        figures.extend(sequence::figures(flow, segments, None));
    }
    figures.extend(rtt(&series));
    figures.extend(queue(&series));
    figures.extend(queueing_delay(&series));
    // One time for all of them, so that what stands below each other happened at once.
    let segments = segments.iter().filter(|row| row.flow == flow.flow);
    let read = messages.iter().filter_map(|row| row.arrived);
    let times = series.iter().map(|row| row.time).chain(segments.map(|row| row.time)).chain(read);
    let end = times.max().map_or(0, |time| time.as_nanos());
    for figure in &mut figures {
        let own = figure.set.iter().any(|(pointer, _)| *pointer == TIME);
        if !own {
            figure.set.push((TIME, vec![seconds(flow.start.as_nanos()), seconds(end)].into()));
        }
    }
    figures
}

/// What a run's first flow says of its round trips, and its time-sequence graph with silences beyond `usual`, as far as it was
/// recorded.
pub(crate) fn round_trips_and_sequence(
    run: &Run,
    usual: Option<farpath_units::Duration>,
) -> (Option<Figure>, Option<Figure>) {
    let Some(flow) = run.flows.first() else { return (None, None) };
    let series: Vec<SeriesRow> = run.series.iter().filter(|row| row.flow == flow.flow).collect();
    let sequence = sequence::figures(flow, &run.segments.to_vec(), usual);
    (rtt(&series), sequence.into_iter().next())
}

/// One metric of a flow's series.
fn samples(series: &[SeriesRow], metric: Metric) -> Vec<Sample<u64>> {
    series.iter().filter(|row| row.metric == metric).map(|row| (row.time.as_nanos(), row.value)).collect()
}

/// Some metrics as one table, decimated, in `value` the values times `scale`; and what to say of the decimation.
fn lines(
    series: &[SeriesRow],
    metrics: &[Metric],
    value: &'static str,
    scale: f64,
) -> Option<(Columns, String)> {
    let end = series.last()?.time.as_nanos();
    let (mut rows, mut held): (Vec<(u64, Metric, u64)>, Vec<_>) = Default::default();
    let mut recorded = 0;
    for &metric in metrics {
        let samples = samples(series, metric);
        recorded += samples.len();
        rows.extend(decimate(&samples, INTERVALS).into_iter().map(|(time, value)| (time, metric, value)));
        // A value holds until the end; a sample is of its moment.
        let last = samples.last().filter(|_| metric != Metric::RttSample);
        held.extend(last.filter(|last| last.0 < end).map(|last| (end, metric, last.1)));
    }
    let drawn = rows.len();
    rows.extend(held);
    let columns = Columns::default()
        .numbers("time_s", rows.iter().map(|row| seconds(row.0)))
        .texts("metric", rows.iter().map(|row| row.1.name()))
        .numbers(value, rows.iter().map(|row| row.2 as f64 * scale));
    (!rows.is_empty()).then(|| (columns, decimated(drawn, recorded)))
}

/// A sentence for a caption.
fn decimated(drawn: usize, recorded: usize) -> String {
    match drawn == recorded {
        true => String::new(),
        false => format!(
            " Drawn from {drawn} of {recorded} recorded values: the first, lowest, highest and last of each of \
             {INTERVALS} intervals of time."
        ),
    }
}

fn windows(series: &[SeriesRow]) -> Option<Figure> {
    let metrics = [Metric::FlightSize, Metric::Ssthresh, Metric::Cwnd];
    let (columns, decimated) = lines(series, &metrics, "bytes", 1.0)?;
    Some(Figure {
        plot: "windows",
        title: "Congestion window".to_owned(),
        caption: format!(
            "cwnd, ssthresh (from its first value on) and flight_size, what is sent and not cumulatively \
             acknowledged.{decimated}"
        ),
        set: Vec::new(),
        data: vec![("windows", columns)],
    })
}

fn rtt(series: &[SeriesRow]) -> Option<Figure> {
    let metrics = [Metric::RttSample, Metric::Srtt, Metric::Rto];
    let (columns, decimated) = lines(series, &metrics, "value_s", 1e-9)?;
    let values = series.iter().filter(|row| metrics.contains(&row.metric)).map(|row| seconds(row.value));
    Some(Figure {
        plot: "rtt",
        title: "Round-trip time and retransmission timeout".to_owned(),
        caption: format!("RTT samples at the sender, SRTT, and RTO with its back-off.{decimated}"),
        set: vec![("/encoding/y/scale/domain", log_domain(values))],
        data: vec![("rtt", columns)],
    })
}

fn queue(series: &[SeriesRow]) -> Option<Figure> {
    let (columns, decimated) = lines(series, &[Metric::Queue], "bytes", 1.0)?;
    Some(Figure {
        plot: "queue",
        title: "Queue".to_owned(),
        caption: format!(
            "The longest queue on the path, in the direction of the data, as it was just after the last packet came to \
             it: where none comes, the level stays while the queue empties.{decimated}"
        ),
        set: Vec::new(),
        data: vec![("queue", columns)],
    })
}

fn queueing_delay(series: &[SeriesRow]) -> Option<Figure> {
    let (columns, decimated) = lines(series, &[Metric::QueueingDelay], "wait_ms", 1e-6)?;
    Some(Figure {
        plot: "queueing-delay",
        title: "Queueing delay".to_owned(),
        caption: format!(
            "How long each packet had waited in the queues of the path when it reached the receiver of the data.{decimated}"
        ),
        set: Vec::new(),
        data: vec![("queueing-delay", columns)],
    })
}

/// What is drawn of the payload that comes to a receiver.
const ARRIVALS: &str = "arrivals";
const IN_ORDER: &str = "in-order delivery";

/// Payload that arrives at the receivers, where segments were recorded, and what their applications read, per interval of
/// the time since `start`.
fn rates(
    series: &[SeriesRow],
    segments: &[SegmentRow],
    flows: &[&FlowRow],
    of: usize,
    start: u64,
) -> Option<Figure> {
    let last =
        series.iter().filter(|row| row.metric == Metric::Delivered).map(|row| row.time.as_nanos()).max()?;
    let span = last.saturating_sub(start);
    let interval = round_up(span / RATE_INTERVALS);
    // One interval more than there is anything in: the line comes down again.
    let intervals = (span / interval + 2) as usize;
    let (mut times, mut rates, mut names, mut whats) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for flow in flows {
        for (what, bytes) in [(ARRIVALS, arrived(segments, flow)), (IN_ORDER, delivered(series, flow))] {
            // Nothing arrives where no segment was recorded.
            if what == ARRIVALS && bytes.is_empty() {
                continue;
            }
            for (i, sum) in (0_u64..).zip(sums(&bytes, start, interval, intervals)) {
                times.push(seconds(i.saturating_mul(interval).saturating_add(start)));
                rates.push(sum as f64 * 8.0 / seconds(interval));
                names.push(format!("flow {}", flow.flow));
                whats.push(what);
            }
        }
    }
    let read = "what its application reads, in order: where a gap is filled, all that waited behind it is read at once, \
                faster than any link";
    let (title, about) = match whats.contains(&ARRIVALS) {
        true => (
            "Arrivals and in-order delivery",
            format!(
                "Payload that the receiver has from the network, in any order and copies included; and {read}."
            ),
        ),
        false => ("In-order delivery", format!("Of the receiver, {read}.")),
    };
    let which = match flows.len() < of {
        true => format!(" The {} of {of} flows with the most bytes.", flows.len()),
        false => String::new(),
    };
    // A single line for each of the two tells them apart by colour.
    let single = [("/encoding/color/field", "what".into()), ("/encoding/strokeDash/legend", Value::Null)];
    Some(Figure {
        plot: "received-rate",
        title: if of > 1 { format!("{title} of each flow") } else { title.to_owned() },
        caption: format!("{about} Averaged over {}.{which}", farpath_units::Duration::from_nanos(interval)),
        set: if of > 1 { Vec::new() } else { single.into() },
        data: vec![(
            "rates",
            Columns::default()
                .numbers("time_s", times)
                .numbers("bit_per_s", rates)
                .texts("flow", names)
                .texts("what", whats),
        )],
    })
}

/// Payload that has come to a flow's receiver: when, and how much.
fn arrived(segments: &[SegmentRow], flow: &FlowRow) -> Vec<Sample<u64>> {
    segments
        .iter()
        .filter(|row| row.flow == flow.flow && row.direction == flow.direction)
        .filter(|row| row.event == SegmentEvent::Received && row.len > 0)
        .map(|row| (row.time.as_nanos(), row.len.into()))
        .collect()
}

/// The same of what its application has read. A count that falls is none of ours: nothing was read then.
fn delivered(series: &[SeriesRow], flow: &FlowRow) -> Vec<Sample<u64>> {
    let mut before = 0;
    series
        .iter()
        .filter(|row| row.flow == flow.flow && row.metric == Metric::Delivered)
        .map(|row| (row.time.as_nanos(), row.value.saturating_sub(std::mem::replace(&mut before, row.value))))
        .collect()
}

/// What came in each of some intervals since `start`.
fn sums(bytes: &[Sample<u64>], start: u64, interval: u64, intervals: usize) -> Vec<u64> {
    let mut sums = vec![0_u64; intervals];
    for (time, bytes) in bytes {
        if let Some(sum) = sums.get_mut((time.saturating_sub(start) / interval) as usize) {
            *sum = sum.saturating_add(*bytes);
        }
    }
    sums
}

/// The next of 1, 2, 5, 10, 20 ... that is not below; at least one.
fn round_up(ns: u64) -> u64 {
    let mut power: u64 = 1;
    while power.saturating_mul(10) < ns {
        power *= 10;
    }
    [1, 2, 5, 10].into_iter().map(|step| power.saturating_mul(step)).find(|&step| step >= ns).unwrap_or(ns)
}

#[cfg(test)]
mod tests;
