//! What a check takes from a run: a column of its flows, or something read off its series and segments.

use super::{granted, timing};
use farpath_run::{
    FlowNumber, FlowRow, Metric, Outcome, Run, SegmentEvent, SegmentRow, SeriesRow, Trace, jain_index,
};
use farpath_units::{Duration, Instant};

/// Bits of the TCP header's flags.
const SYN_FIN_RST: u8 = 0x07;

/// The value of `name` in one run; of its first flow, or of `... of flow N`, from 0. `time` is the moment or span that some are about.
pub(super) fn value(run: &Run, name: &str, time: Option<Duration>) -> Result<f64, String> {
    let (name, number) = name.split_once(" of flow ").unwrap_or((name, "0"));
    let flow = number.parse().ok().and_then(|number: usize| run.flows.get(number));
    let flow = flow.ok_or_else(|| format!("the run has no flow {number}"))?;
    if let Some(value) = of_flow(flow, name) {
        return value.ok_or_else(|| format!("`{name}` is not known: the flow ended as `{}`", flow.outcome));
    }
    if let Some(value) = granted::value(run, name, time) {
        return value;
    }
    let time = || time.ok_or_else(|| format!("`{name}` needs `time`"));
    let data =
        |event| run.segments.iter().filter(move |row| row.event == event && row.len > 0).count() as f64;
    match name {
        "throughput_from_clock_byte_per_s" => {
            let transfer = flow.transfer_time.ok_or("the transfer was not completed")?;
            Ok(flow.bytes.0 as f64 / (transfer + time()?).as_secs_f64())
        }
        "peak_receive_rate_byte_per_s" => Ok(rates(&run.series, time()?)?.into_iter().fold(0.0, f64::max)),
        "least_receive_rate_byte_per_s" => least_rate(&rates(&run.series, time()?)?),
        "time_to_latest_s" => time_to_latest(run),
        "longest_wait_s" => longest_wait(run),
        "jain_index" => jain_index(&run.flows).ok_or_else(|| "fairness takes two flows".to_owned()),
        "data_packets_sent" => Ok(data(SegmentEvent::Sent)),
        "data_packets_lost" => Ok(data(SegmentEvent::Dropped)),
        "goodput_of_all_bit_per_s" => {
            Ok(run.flows.iter().filter_map(|flow| flow.goodput_bit_per_s).sum::<f64>())
        }
        _ => timing::value(run, name, time).unwrap_or_else(|| of_recovery(run, name)),
    }
}

/// Unit of the values of `name`, empty for counts and shares; `None` where it is not known. What is a column of the flows
/// table has the column's, times in seconds.
pub(super) fn unit(name: &str) -> Option<&'static str> {
    let (name, _) = name.split_once(" of flow ").unwrap_or((name, ""));
    FlowNumber::from_name(name).map(FlowNumber::unit).or(match name {
        "throughput_from_clock_byte_per_s"
        | "receive_rate_byte_per_s"
        | "peak_receive_rate_byte_per_s"
        | "least_receive_rate_byte_per_s" => Some("B/s"),
        "goodput_of_all_bit_per_s" | "first_rtt_rate_bit_per_s" | "sent_rate_bit_per_s" => Some("bit/s"),
        "end_time_s"
        | "time_to_latest_s"
        | "longest_wait_s"
        | "lateness_regained_s"
        | "recovery_time_s"
        | "last_by_grant_s"
        | "least_rtt_s"
        | "mean_rto_s"
        | "mean_spacing_change_s" => Some("s"),
        "ssthresh_after_loss" | "cwnd_after_recovery" | "queue_deviation_bytes" => Some("B"),
        "jain_index"
        | "data_packets_sent"
        | "data_packets_lost"
        | "first_transmissions"
        | "grant_kept"
        | "idle_share"
        | "loss_share" => Some(""),
        _ => None,
    })
}

/// A number in the flows table, or what two of its columns say together; `None` where there is no such thing.
fn of_flow(flow: &FlowRow, name: &str) -> Option<Option<f64>> {
    Some(match name {
        // Whether the outcome says so, which there always is.
        "completed" => Some(f64::from(u8::from(flow.outcome == Outcome::Completed))),
        // However it ended.
        "end_time_s" => flow.ended_at.map(|end| end.saturating_since(flow.start).as_secs_f64()),
        "receive_rate_byte_per_s" => flow.goodput_bit_per_s.map(|bits| bits / 8.0),
        "first_transmissions" => {
            flow.data_segments.zip(flow.retransmissions).map(|(sent, again)| sent - again)
        }
        // 1 where the sender still has its grant at the end.
        "grant_kept" => {
            flow.explicit_rate.as_deref().map(|outcome| f64::from(u8::from(outcome == "granted")))
        }
        "lateness_regained_s" => {
            let both = flow.stream.max_lateness.zip(flow.stream.final_lateness);
            both.map(|(most, end)| most.saturating_sub(end).as_secs_f64())
        }
        _ => FlowNumber::from_name(name)?.value(flow),
    })
}

/// The last value of a series up to `until`.
fn series_at(series: &Trace<SeriesRow>, metric: Metric, until: Instant) -> Result<f64, String> {
    series
        .iter()
        .filter(|row| row.flow == 0 && row.metric == metric)
        .take_while(|row| row.time <= until)
        .last()
        .map(|row| row.value as f64)
        .ok_or_else(|| {
            let time = until.since_start();
            format!("no `{metric}` was recorded by {time}: the experiment needs `output.series = true`")
        })
}

/// What the receiving application read in each interval of the sampling grid, bytes per second.
fn rates(series: &Trace<SeriesRow>, interval: Duration) -> Result<Vec<f64>, String> {
    let delivered = || series.iter().filter(|row| row.flow == 0 && row.metric == Metric::Delivered);
    let end = delivered().last().ok_or("nothing was recorded as delivered")?.time;
    let mut rows = delivered().peekable();
    let (mut at, mut before, mut value, mut rates) = (Instant::ZERO, 0, 0, Vec::new());
    while at < end {
        at += interval;
        while let Some(row) = rows.next_if(|row| row.time <= at) {
            value = row.value;
        }
        rates.push((value - before) as f64 / interval.as_secs_f64());
        before = value;
    }
    Ok(rates)
}

/// The lowest between the interval in which it begins and the one in which it ends, which are not full.
fn least_rate(rates: &[f64]) -> Result<f64, String> {
    let inner = rates.get(1..rates.len().saturating_sub(1)).unwrap_or_default();
    inner
        .iter()
        .copied()
        .reduce(f64::min)
        .ok_or_else(|| "the transfer is over within two intervals".to_owned())
}

/// From the arrival of the first message to that of the one that was late the most.
fn time_to_latest(run: &Run) -> Result<f64, String> {
    let known =
        run.messages.iter().filter(|row| row.flow == 0).filter_map(|row| Some((row.due, row.arrived?)));
    let all: Vec<(Instant, Instant)> = known.collect();
    let latest = all.iter().max_by_key(|(due, arrived)| arrived.saturating_since(*due));
    let (first, latest) = all
        .first()
        .zip(latest)
        .ok_or("no message was recorded: the experiment needs `output.messages = true`")?;
    Ok(latest.1.saturating_since(first.1).as_secs_f64())
}

/// By how much a message took longer than the fastest.
fn longest_wait(run: &Run) -> Result<f64, String> {
    let rows = run.messages.iter().filter(|row| row.flow == 0);
    let times: Vec<Duration> =
        rows.filter_map(|row| Some(row.arrived?.saturating_since(row.sent?))).collect();
    let (least, most) = times
        .iter()
        .min()
        .zip(times.iter().max())
        .ok_or("no message was recorded: the experiment needs `output.messages = true`")?;
    Ok((*most - *least).as_secs_f64())
}

/// What is read off the segments around the first drop of a data segment, at the data sender's end.
fn of_recovery(run: &Run, name: &str) -> Result<f64, String> {
    let recovery = Recovery::from_run(run);
    match name {
        "dup_acks_before_retransmission" => recovery.map(|r| r.dup_acks_before_retransmission()),
        "retransmissions_of_lost" => recovery
            .map(|r| r.data.iter().filter(|row| row.seq == r.lost.seq && row.retransmission).count() as f64),
        "place_in_window" => recovery.map(|r| r.sent_from_window_start(|row| row.seq == r.lost.seq) + 1.0),
        "recovery_time_s" => recovery.map(|r| (r.recovered - r.window_start).as_secs_f64()),
        "data_segments_until_recovered" => {
            recovery.map(|r| r.sent_from_window_start(|row| row.time >= r.recovered))
        }
        "ssthresh_after_loss" => series_at(&run.series, Metric::Ssthresh, recovery?.again),
        "cwnd_after_recovery" => series_at(&run.series, Metric::Cwnd, recovery?.recovered),
        _ => Err(format!("there is no metric `{name}`")),
    }
}

/// The loss of a data segment and its repair, as the data sender sees it.
pub(super) struct Recovery {
    /// The data segments that the sender sent.
    data: Vec<SegmentRow>,
    /// The ACKs that it received.
    acks: Vec<SegmentRow>,
    /// The segment that was dropped first.
    lost: SegmentRow,
    /// When the window began to leave that it was in.
    pub window_start: Instant,
    /// When it was sent again.
    again: Instant,
    /// When it was acknowledged.
    pub recovered: Instant,
}

impl Recovery {
    pub fn from_run(run: &Run) -> Result<Recovery, String> {
        let rows = |event| run.segments.iter().filter(move |row| row.flow == 0 && row.event == event);
        let lost = rows(SegmentEvent::Dropped)
            .find(|row| row.len > 0)
            .ok_or("no segment was recorded as dropped: the experiment needs `output.segments = true`")?;
        let data: Vec<SegmentRow> = rows(SegmentEvent::Sent).filter(|row| row.len > 0).collect();
        let acks: Vec<SegmentRow> =
            rows(SegmentEvent::Received).filter(|row| row.len == 0 && row.flags & SYN_FIN_RST == 0).collect();
        let first =
            data.iter().position(|row| row.seq == lost.seq).ok_or("the dropped segment was never sent")?;
        let again = data.iter().find(|row| row.seq == lost.seq && row.retransmission);
        let again = again.ok_or("the dropped segment was never sent again")?.time;
        let recovered = acks
            .iter()
            .find(|row| row.time > again && (row.ack.wrapping_sub(lost.seq) as i32) > 0)
            .ok_or("the dropped segment was never acknowledged")?
            .time;
        let window_start = window_start(&data[..=first]);
        Ok(Recovery { data, acks, lost, window_start, again, recovered })
    }

    fn dup_acks_before_retransmission(&self) -> f64 {
        let same = self.acks.iter().filter(|row| row.ack == self.lost.seq && row.time <= self.again).count();
        // The first ACK with that number acknowledges what came before the gap.
        same as f64 - 1.0
    }

    /// How many data segments left from the start of the lost one's window on, until one for which `end` holds.
    fn sent_from_window_start(&self, end: impl Fn(&SegmentRow) -> bool) -> f64 {
        let from_start = self.data.iter().skip_while(|row| row.time < self.window_start);
        from_start.take_while(|row| !end(row)).count() as f64
    }
}

/// When the burst began that the last of these segments is part of: after the longest silence among the last six.
fn window_start(sent: &[SegmentRow]) -> Instant {
    let recent = &sent[sent.len().saturating_sub(6)..];
    let silence = |pair: &&[SegmentRow]| (pair[1].time - pair[0].time, pair[1].time);
    recent.windows(2).max_by_key(silence).map_or(sent[sent.len() - 1].time, |pair| pair[1].time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_that_of_the_column_and_not_the_end_of_a_name() {
        for (name, is) in [
            ("throughput_from_clock_byte_per_s", Some("B/s")),
            ("goodput_bit_per_s of flow 1", Some("bit/s")),
            ("transfer_time_s", Some("s")),
            ("max_lateness_s", Some("s")),
            ("delayed_bytes", Some("B")),
            ("retransmissions", Some("")),
            ("late_messages", Some("")),
            ("sizes_s", None),
        ] {
            assert_eq!(unit(name), is, "{name}");
        }
    }
}
