//! What a check takes from a run: a column of its flows, or something read off its series and segments.

use farpath_run::{FlowRow, Metric, Run, SegmentEvent, SegmentRow, SeriesRow};
use farpath_units::{Duration, Instant};

/// Bits of the TCP header's flags.
const SYN_FIN_RST: u8 = 0x07;

/// The value of `name` in one run; of its first flow. `time` is the moment or span that some are about.
pub(super) fn value(run: &Run, name: &str, time: Option<Duration>) -> Result<f64, String> {
    let flow = run.flows.first().ok_or("the run has no flow")?;
    if let Some(value) = of_flow(flow, name) {
        return value.ok_or_else(|| format!("`{name}` is not known: the flow ended as `{}`", flow.outcome));
    }
    let time = || time.ok_or_else(|| format!("`{name}` needs `time`"));
    match name {
        "acked_at" => series_at(&run.series, Metric::Acked, time()?),
        "cwnd_at" => series_at(&run.series, Metric::Cwnd, time()?),
        "peak_receive_rate" => peak_rate(&run.series, time()?),
        _ => of_recovery(run, name, time),
    }
}

/// A column of the flows table, or a quotient of two; `None` where there is no such column.
fn of_flow(flow: &FlowRow, name: &str) -> Option<Option<f64>> {
    let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
    let drops = flow.drops_data_direction.zip(flow.drops_ack_direction).map(|(data, acks)| data + acks);
    Some(match name {
        "transfer_time_s" => seconds(flow.transfer_time),
        "connect_time_s" => seconds(flow.connect_time),
        "bytes_read" => Some(flow.bytes_read.0 as f64),
        "receive_rate_byte_per_s" => flow.goodput_bit_per_s.map(|bits| bits / 8.0),
        "data_segments" => flow.data_segments,
        "retransmissions" => flow.retransmissions,
        "timeouts" => flow.timeouts,
        "timeouts_per_retransmission" => flow
            .timeouts
            .zip(flow.retransmissions)
            .map(|(timeouts, sent)| if sent > 0.0 { timeouts / sent } else { 0.0 }),
        "fast_retransmits" => flow.fast_retransmits,
        "dup_acks" => flow.dup_acks,
        "drops" => drops,
        "data_direction_survival" => {
            flow.drops_data_direction.zip(flow.data_segments).map(|(lost, sent)| 1.0 - lost / sent)
        }
        "final_cwnd" => flow.final_cwnd.map(|bytes| bytes.0 as f64),
        "mean_cwnd" => flow.mean_cwnd,
        _ => return None,
    })
}

/// The last value of a series up to `time` after the run's start.
fn series_at(series: &[SeriesRow], metric: Metric, time: Duration) -> Result<f64, String> {
    let until = Instant::ZERO + time;
    series
        .iter()
        .filter(|row| row.flow == 0 && row.metric == metric)
        .take_while(|row| row.time <= until)
        .last()
        .map(|row| row.value as f64)
        .ok_or_else(|| {
            format!("no `{metric}` was recorded by {time}: the experiment needs `output.series = true`")
        })
}

/// Most bytes that the receiving application read in any interval of the sampling grid, per second.
fn peak_rate(series: &[SeriesRow], interval: Duration) -> Result<f64, String> {
    let delivered = || series.iter().filter(|row| row.flow == 0 && row.metric == Metric::Delivered);
    let end = delivered().last().ok_or("nothing was recorded as delivered")?.time;
    let mut rows = delivered().peekable();
    let (mut at, mut before, mut value, mut peak) = (Instant::ZERO, 0, 0, 0);
    while at < end {
        at += interval;
        while let Some(row) = rows.next_if(|row| row.time <= at) {
            value = row.value;
        }
        peak = peak.max(value - before);
        before = value;
    }
    Ok(peak as f64 / interval.as_secs_f64())
}

/// What is read off the segments around the first drop of a data segment, at the data sender's end.
fn of_recovery(run: &Run, name: &str, time: impl Fn() -> Result<Duration, String>) -> Result<f64, String> {
    let segments: Vec<&SegmentRow> = run.segments.iter().filter(|row| row.flow == 0).collect();
    let Some(lost) = segments.iter().find(|row| row.event == SegmentEvent::Dropped && row.len > 0) else {
        return Err(format!("there is no metric `{name}`, or no segment was recorded as dropped"));
    };
    let again = segments
        .iter()
        .find(|row| row.event == SegmentEvent::Sent && row.retransmission && row.seq == lost.seq)
        .ok_or("the dropped segment was never sent again")?;
    let sent_first = segments
        .iter()
        .find(|row| row.event == SegmentEvent::Sent && row.len > 0 && row.seq == lost.seq)
        .ok_or("the dropped segment was never sent")?;
    let data = |row: &&&SegmentRow| row.event == SegmentEvent::Sent && row.len > 0;
    match name {
        "dup_acks_before_retransmission" => {
            let duplicate = |row: &&&SegmentRow| {
                let pure = row.len == 0 && row.flags & SYN_FIN_RST == 0;
                row.event == SegmentEvent::Received && pure && row.ack == lost.seq
            };
            // The first ACK with that number acknowledges what came before the gap.
            let acks = segments.iter().filter(duplicate).filter(|row| row.time <= again.time).count();
            Ok(acks as f64 - 1.0)
        }
        "retransmissions_of_lost" => {
            Ok(segments.iter().filter(data).filter(|row| row.seq == lost.seq && row.retransmission).count()
                as f64)
        }
        "ssthresh_after_loss" => series_at(&run.series, Metric::Ssthresh, again.time.since_start()),
        "retransmission_delay_s" => Ok((again.time - sent_first.time).as_secs_f64()),
        "data_segments_from_lost_window" => {
            // From the first segment of the window that the lost one was in: as many before it as came in its cycle.
            let span = time()?;
            let begin = window_start(&segments, sent_first);
            Ok(
                segments
                    .iter()
                    .filter(data)
                    .filter(|row| row.time >= begin && row.time < begin + span)
                    .count() as f64,
            )
        }
        _ => Err(format!("there is no metric `{name}`")),
    }
}

/// When the burst began in which `segment` was sent: after the longest silence among the six segments up to it.
fn window_start(segments: &[&SegmentRow], segment: &SegmentRow) -> Instant {
    let times: Vec<Instant> = segments
        .iter()
        .filter(|row| row.event == SegmentEvent::Sent && row.len > 0 && row.time <= segment.time)
        .map(|row| row.time)
        .collect();
    let recent = &times[times.len().saturating_sub(6)..];
    recent.windows(2).max_by_key(|pair| (pair[1] - pair[0], pair[1])).map_or(segment.time, |pair| pair[1])
}
