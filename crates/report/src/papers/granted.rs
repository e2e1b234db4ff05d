//! What a check takes from a run about explicit rate: signals on their way, and how data left.

use crate::signals::{signals, structures};
use farpath_run::{Metric, Run, SegmentEvent, SegmentRow};
use farpath_tia1039::{Message, QosMark, RateUnit, Structure};
use farpath_units::{Duration, Instant};

/// In a TCP header's flags.
const SYN: u8 = 0x02;

/// The value of `name`, if it is one of these; of the first flow, but for what is of all.
pub(super) fn value(run: &Run, name: &str, time: Option<Duration>) -> Option<Result<f64, String>> {
    if let Some((field, place)) = name.split_once(" of ") {
        return Some(of_signal(run, field, place));
    }
    let time = || time.ok_or_else(|| format!("`{name}` needs `time`"));
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    Some(match name {
        "first_rtt_rate_bit_per_s" => first_rtt_rate(run),
        "sent_rate_bit_per_s" => time().and_then(|time| sent_rate(run, time)),
        "sent_rate_swing" => time().and_then(|time| swing(run, time)),
        "least_packets_between_renegotiations" => between(run).map(|counts| extreme(&counts, f64::min)),
        "most_packets_between_renegotiations" => between(run).map(|counts| extreme(&counts, f64::max)),
        "sent_by_grant" => {
            data(run).map(|sent| share(sent.iter().filter(|row| by_grant(row)).count(), sent.len()))
        }
        "packets_by_grant" => data(run).map(|sent| sent.iter().filter(|row| by_grant(row)).count() as f64),
        "last_by_grant_s" => last_by_grant(run).map(|at| at.since_start().as_secs_f64()),
        "loss_after_grant" => loss_after_grant(run),
        "tos_of_syn" => tos(run, |row| row.flags & SYN != 0),
        "tos_of_data" => tos(run, |row| row.len > 0),
        "packets_before_data" => packets_before_data(run),
        "loss_share" => loss_share(run),
        "queue_deviation_bytes" => time().and_then(|time| queue_deviation(run, time)),
        _ => return None,
    })
}

/// `AR of SYN behind edge`, `CD of SYN/ACK-2 sent`, `M of SYN received`.
fn of_signal(run: &Run, field: &str, place: &str) -> Result<f64, String> {
    let unknown = || format!("`{place}`: expected a packet and `sent`, `received` or `behind` and a router");
    let (packet, place) = place.split_once(' ').ok_or_else(unknown)?;
    let (packet, second) = packet.strip_suffix("-2").map_or((packet, false), |packet| (packet, true));
    let signals = signals(run, 0)?;
    let none = || {
        format!(
            "no {packet} carried structures, or none were recorded: the experiment needs `output.segments = true`"
        )
    };
    let signal = signals.iter().find(|signal| signal.name() == packet).ok_or_else(none)?;
    let is_there = |hop: &&crate::signals::Hop| match place.strip_prefix("behind ") {
        Some(router) => hop.element.as_deref() == Some(router),
        None => hop.event.name() == place,
    };
    let hop = signal.hops.iter().find(is_there).ok_or_else(|| format!("no {packet} was seen {place}"))?;
    let structures = &hop.structures;
    if field == "bytes" {
        return Ok(structures.encoded_len() as f64);
    }
    let one = if second { structures.second.as_ref() } else { Some(&structures.first) };
    of_structure(one.ok_or_else(|| format!("{packet} has no second structure"))?, field)
}

fn of_structure(structure: &Structure, field: &str) -> Result<f64, String> {
    let rate = |word| RateUnit::default().decode(word) as f64;
    Ok(match field {
        "AR" => rate(structure.available),
        "GR" => rate(structure.guaranteed),
        "PP" => structure.preemption.level().into(),
        "DP" => structure.delay.level().into(),
        "CD" => f64::from(structure.message as u8),
        "TP" => f64::from(structure.rate_type as u8),
        "version" => f64::from(structure.version as u16),
        "M" => structure.mark.into(),
        // Whether it names who asked.
        "source" => f64::from(u8::from(!structure.source.is_none())),
        _ => return Err(format!("there is no field `{field}`")),
    })
}

/// The data segments that the first flow's sender sent.
fn data(run: &Run) -> Result<Vec<SegmentRow>, String> {
    let direction = run.flows.first().map(|flow| flow.direction);
    let is_data = |row: &SegmentRow| {
        row.flow == 0 && row.event == SegmentEvent::Sent && row.len > 0 && Some(row.direction) == direction
    };
    let sent: Vec<SegmentRow> = run.segments.iter().filter(is_data).collect();
    if sent.is_empty() {
        return Err("no data was recorded as sent: the experiment needs `output.segments = true`".to_owned());
    }
    Ok(sent)
}

fn by_grant(row: &SegmentRow) -> bool {
    row.dscp == QosMark::Flow.dscp()
}

/// IP bits per second of some segments within a time.
fn rate<'a>(rows: impl Iterator<Item = &'a SegmentRow>, time: Duration) -> f64 {
    rows.map(|row| f64::from(row.size) * 8.0).sum::<f64>() / time.as_secs_f64()
}

/// In the first round trip from the first data on.
fn first_rtt_rate(run: &Run) -> Result<f64, String> {
    let sent = data(run)?;
    let rtt = run.flows[0].min_rtt.ok_or("no RTT was measured")?;
    let end = sent[0].time + rtt;
    Ok(rate(sent.iter().filter(|row| row.time < end), rtt))
}

/// In the second from `time` on.
fn sent_rate(run: &Run, time: Duration) -> Result<f64, String> {
    let (from, second) = (Instant::ZERO + time, Duration::from_secs(1));
    Ok(rate(data(run)?.iter().filter(|row| (from..from + second).contains(&row.time)), second))
}

/// By how much the rate of an interval is off that of all, at the most: of those between the first and the last, which are not full.
fn swing(run: &Run, interval: Duration) -> Result<f64, String> {
    let sent = data(run)?;
    let start = sent[0].time;
    let mut bits: Vec<f64> = Vec::new();
    for row in &sent {
        let place = ((row.time - start).as_nanos() / interval.as_nanos()) as usize;
        bits.resize(bits.len().max(place + 1), 0.0);
        bits[place] += f64::from(row.size) * 8.0;
    }
    let inner = bits.get(1..bits.len().saturating_sub(1)).filter(|inner| !inner.is_empty());
    let inner = inner.ok_or("the transfer is over within two intervals")?;
    let mean = inner.iter().sum::<f64>() / inner.len() as f64;
    Ok(inner.iter().map(|one| (one / mean - 1.0).abs()).fold(0.0, f64::max))
}

/// How many data packets leave before each renegotiation of the data sender: since the one before, or since the first data.
fn between(run: &Run) -> Result<Vec<f64>, String> {
    let direction = data(run)?[0].direction;
    let (mut packets, mut counts) = (0.0, Vec::new());
    let is_sent =
        |row: &SegmentRow| row.flow == 0 && row.event == SegmentEvent::Sent && row.direction == direction;
    for row in run.segments.iter().filter(is_sent) {
        let message = row.qos.as_deref().map(structures).transpose()?.map(|both| both.first.message);
        if message == Some(Message::Renegotiate) {
            counts.push(core::mem::take(&mut packets));
        }
        packets += f64::from(u8::from(row.len > 0));
    }
    if counts.is_empty() { Err("the sender never asked again".to_owned()) } else { Ok(counts) }
}

fn extreme(counts: &[f64], more: fn(f64, f64) -> f64) -> f64 {
    counts.iter().copied().reduce(more).unwrap_or(f64::NAN)
}

fn last_by_grant(run: &Run) -> Result<Instant, String> {
    let last = data(run)?.iter().rev().find(|row| by_grant(row)).map(|row| row.time);
    last.ok_or_else(|| "no data left by a grant".to_owned())
}

/// Of the data that leave after the last by a grant, the share that is dropped.
fn loss_after_grant(run: &Run) -> Result<f64, String> {
    let (sent, last) = (data(run)?, last_by_grant(run)?);
    let after = sent.iter().filter(|row| row.time > last).count();
    let first = sent.iter().find(|row| row.time > last).ok_or("the grant was never given up")?;
    // What the grant has put into the queue is not the fault of what follows: a round trip is let pass.
    let from = first.time + run.flows[0].srtt.unwrap_or_default();
    let is_drop = |row: &SegmentRow| {
        row.flow == 0 && row.event == SegmentEvent::Dropped && row.len > 0 && row.time > from
    };
    Ok(run.segments.iter().filter(is_drop).count() as f64 / after as f64)
}

/// The byte of the codepoint in the header of the last of the first flow's such packets, ECN 0.
fn tos(run: &Run, is_such: impl Fn(&SegmentRow) -> bool) -> Result<f64, String> {
    let last = run.segments.iter().filter(|row| row.flow == 0 && is_such(row)).last();
    let dscp = last.and_then(|row| row.dscp);
    dscp.map(|dscp| f64::from(dscp << 2))
        .ok_or_else(|| "no such packet had a codepoint of explicit rate".to_owned())
}

/// Packets of both ends until the first data leave.
fn packets_before_data(run: &Run) -> Result<f64, String> {
    let first = data(run)?[0].time;
    let is_sent = |row: &SegmentRow| row.flow == 0 && row.event == SegmentEvent::Sent;
    Ok(run
        .segments
        .iter()
        .filter(|row| is_sent(row))
        .take_while(|row| row.time < first || row.len == 0)
        .count() as f64)
}

/// Of the data of all flows, what is dropped on the way.
fn loss_share(run: &Run) -> Result<f64, String> {
    let sum = |of: fn(&farpath_run::FlowRow) -> Option<f64>| run.flows.iter().map(of).sum::<Option<f64>>();
    let (dropped, sent) = (sum(|flow| flow.drops_data_direction), sum(|flow| flow.data_segments));
    let both = dropped.zip(sent).ok_or("not all flows are known")?;
    Ok(both.0 / both.1)
}

/// Standard deviation over time of what waits in the longest queue, from `from` on until the first flow is over.
fn queue_deviation(run: &Run, from: Duration) -> Result<f64, String> {
    let end = run.flows.iter().filter_map(|flow| flow.ended_at).min().ok_or("no flow has ended")?;
    let mut at = Instant::ZERO + from;
    let (mut waiting, mut time, mut sum, mut squares) = (0.0, 0.0, 0.0, 0.0);
    let mut hold = |until: Instant, waiting: f64, at: &mut Instant| {
        let seconds = until.saturating_since(*at).as_secs_f64();
        (time, sum, squares) =
            (time + seconds, sum + seconds * waiting, squares + seconds * waiting * waiting);
        *at = until.max(*at);
    };
    let mut rows: Vec<_> = run.series.iter().filter(|row| row.metric == Metric::Queue).collect();
    // Each flow has the queue in a series of its own.
    rows.sort_by_key(|row| row.time);
    for row in rows.iter().take_while(|row| row.time < end) {
        hold(row.time, waiting, &mut at);
        waiting = row.value as f64;
    }
    hold(end, waiting, &mut at);
    if time == 0.0 {
        return Err("the first flow is over before `time`".to_owned());
    }
    let mean = sum / time;
    Ok((squares / time - mean * mean).max(0.0).sqrt())
}
