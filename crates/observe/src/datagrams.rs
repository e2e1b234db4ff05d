//! Streams over UDP: what an engine is asked of them, and what any says of them.

use crate::drops::drops_by_cause;
use crate::explicit_rate::outcome_in_words;
use farpath_experiment::{FlowSpec, Output, Scenario, Stack, Stream};
use farpath_run::{DelayFigures, FlowRow, MessageRow, Metric, Outcome, Run, SeriesRow, StreamFigures};
use farpath_sim::{DatagramResult, DatagramSetup, DriverSettings};
use farpath_units::{Bytes, DurationHistogram, Instant, Messages, Rate};

/// The streams of a scenario.
pub fn setups(scenario: &Scenario) -> Vec<DatagramSetup> {
    let setup = |flow: &FlowSpec| {
        let Stream { messages, reply, .. } = flow.stream?;
        let (sender, receiver) = scenario.ends(flow);
        Some(DatagramSetup {
            start: Instant::ZERO + flow.start,
            direction: flow.direction,
            messages,
            reply,
            asks: [
                asks(sender, &messages),
                asks(receiver, &Messages { size: reply.unwrap_or_default(), ..messages }),
            ],
        })
    };
    scenario.flows.iter().filter_map(setup).collect()
}

/// How an end that sends these asks: for what its program sends, where that is less than is wanted.
fn asks(end: &Stack, messages: &Messages) -> Option<DriverSettings> {
    let settings = DriverSettings::from_config(&end.config.explicit_rate)?;
    let needed = messages.datagrams_bit_per_s();
    // Of a composite rate it is not known which part they are to have. Where all are due at once, they take what there is.
    let less = needed.is_finite() && needed < settings.wanted.bit_per_s() as f64;
    match Rate::from_bit_per_s(needed.ceil() as u64) {
        Some(wanted) if less && settings.guaranteed.is_none() => Some(DriverSettings { wanted, ..settings }),
        _ => Some(settings),
    }
}

/// Enters what became of each stream.
pub fn enter(scenario: &Scenario, setups: &[DatagramSetup], results: &[DatagramResult], run: &mut Run) {
    let ends = Instant::ZERO + scenario.horizon;
    let streams = scenario.flows.iter().filter_map(|flow| flow.stream);
    for ((number, stream), (setup, result)) in (0..).zip(streams).zip(setups.iter().zip(results)) {
        let messages = messages(number, setup, result);
        let mut row = row(number, setup, result, ends);
        row.stream = StreamFigures::from_rows(&messages, &stream.messages, stream.playout);
        run.flows.push(row);
        record(scenario.output, number, result, messages, run);
    }
}

fn row(number: u32, setup: &DatagramSetup, result: &DatagramResult, horizon: Instant) -> FlowRow {
    // Complete is what was sent and is no longer on its way, lost or not.
    let outcome = match (result.over, &result.stuck) {
        (true, _) => Outcome::Completed,
        (false, Some(_)) => Outcome::Stuck,
        (false, None) => Outcome::Horizon,
    };
    let mut row = FlowRow::new(number, setup.direction.name(), outcome, setup.messages.total());
    let arrived = || result.arrived.iter().flatten();
    let last = arrived().max().copied();
    let time = last.map(|last| last.saturating_since(setup.start));
    row.bytes_read = Bytes(arrived().count() as u64 * setup.messages.size.0);
    row.start = setup.start;
    row.ended_at = Some(match &result.stuck {
        _ if result.over => last.unwrap_or(setup.start),
        Some(stuck) => stuck.at,
        None => horizon,
    });
    row.detail = result.stuck.as_ref().map(ToString::to_string).unwrap_or_default();
    row.transfer_time = time.filter(|_| result.over);
    let rate =
        |bytes: u64| time.filter(|time| !time.is_zero()).map(|time| bytes as f64 * 8.0 / time.as_secs_f64());
    let sent = result.sent.len() as u64;
    row.goodput_bit_per_s = rate(row.bytes_read.0);
    row.throughput_bit_per_s = rate(sent * setup.messages.size.0);
    row.efficiency = (sent > 0).then(|| arrived().count() as f64 / sent as f64);
    row.data_segments = Some(sent as f64);
    row.drops_data_direction = Some(result.drops.forward.total() as f64);
    row.drops_ack_direction = Some(result.drops.reverse.total() as f64);
    row.drops_by_cause = drops_by_cause(&result.drops);
    let mut rtts = DurationHistogram::default();
    round_trips(result).for_each(|(sent, answered)| rtts.record(answered - sent));
    row.min_rtt = rtts.least();
    row.delays = DelayFigures::from_histograms(&rtts, result.queueing.as_ref());
    row.explicit_rate = result.driver.as_ref().map(|driver| outcome_in_words(driver.outcome()).into());
    row.granted_bit_per_s =
        result.driver.as_ref().and_then(|driver| Some(driver.granted()?.bit_per_s() as f64));
    row
}

/// When each datagram that was answered left, and when its answer was back.
fn round_trips(result: &DatagramResult) -> impl Iterator<Item = (Instant, Instant)> {
    result.sent.iter().zip(&result.answered).filter_map(|(&sent, &answered)| Some((sent, answered?)))
}

fn messages(flow: u32, setup: &DatagramSetup, result: &DatagramResult) -> Vec<MessageRow> {
    let came = result.arrived.iter().zip(&result.answered);
    let stamps = result.sent.iter().zip(came);
    let row = |(message, (&sent, (&arrived, &answered))): (u64, (&Instant, (&Option<Instant>, _)))| {
        let due = setup.start + setup.messages.due_after(message);
        MessageRow { flow, message, due, written: Some(sent), sent: Some(sent), arrived, answered }
    };
    (0..).zip(stamps).map(row).collect()
}

fn record(output: Output, flow: u32, result: &DatagramResult, messages: Vec<MessageRow>, run: &mut Run) {
    if output.messages {
        run.messages.extend(messages);
    }
    if output.series {
        let sample = |(sent, answered): (Instant, Instant)| SeriesRow {
            time: answered,
            flow,
            metric: Metric::RttSample,
            value: (answered - sent).as_nanos(),
        };
        let mut samples: Vec<SeriesRow> = round_trips(result).map(sample).collect();
        samples.sort_by_key(|row| row.time);
        run.series.extend(samples);
    }
}
