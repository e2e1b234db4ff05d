//! A stream: what was sent again, when its messages came, and how late they were.

use super::super::data::{Columns, Figure, seconds};
use super::super::decimate::{Sample, decimate};
use super::{INTERVALS, TIME, decimated, lines, samples};
use farpath_run::{MessageRow, Metric, SeriesRow};
use farpath_units::Instant;

/// Segments sent again, as they add up.
pub(super) fn retransmissions(series: &[SeriesRow]) -> Option<Figure> {
    if samples(series, Metric::Retransmissions).is_empty() {
        return None;
    }
    let (columns, decimated) = lines(series, &[Metric::Retransmissions], "segments", 1.0)?;
    Some(Figure {
        plot: "retransmissions",
        title: "Retransmissions".to_owned(),
        caption: format!("Segments that the sender has sent again by then.{decimated}"),
        set: Vec::new(),
        data: vec![("retransmissions", columns)],
    })
}

/// Arrival by number, and lateness by the time of arrival.
pub(super) fn figures(messages: &[MessageRow]) -> Vec<Figure> {
    arrivals(messages).into_iter().chain(lateness(messages)).collect()
}

/// When each message was due and when it was read: without a loss two lines side by side.
fn arrivals(messages: &[MessageRow]) -> Option<Figure> {
    let last = messages.last()?.message;
    let of = |when: fn(&MessageRow) -> Option<Instant>| -> Vec<Sample<u64>> {
        let known = messages.iter().filter_map(|row| Some((row.message, when(row)?.as_nanos())));
        decimate(&known.collect::<Vec<_>>(), INTERVALS)
    };
    let due = of(|row| Some(row.due));
    let arrived = of(|row| row.arrived);
    let (drawn, recorded) = (due.len() + arrived.len(), 2 * messages.len());
    let rows = || {
        let due = due.iter().map(|sample| (*sample, "due"));
        due.chain(arrived.iter().map(|sample| (*sample, "arrived")))
    };
    let columns = Columns::default()
        .numbers("message", rows().map(|((number, _), _)| number as f64))
        .numbers("time_s", rows().map(|((_, time), _)| seconds(time)))
        .texts("what", rows().map(|(_, what)| what));
    Some(Figure {
        plot: "message-arrivals",
        title: "Arrival of messages".to_owned(),
        caption: format!(
            "When each message was due at the sender, and when the receiver had read it, by its number: the distance \
             is how late it is.{}",
            decimated(drawn, recorded)
        ),
        set: vec![(TIME, vec![0.0, last as f64].into())],
        data: vec![("messages", columns)],
    })
}

fn lateness(messages: &[MessageRow]) -> Option<Figure> {
    let late =
        |row: &MessageRow| Some((row.arrived?.as_nanos(), row.arrived?.saturating_since(row.due).as_nanos()));
    let all: Vec<Sample<u64>> = messages.iter().filter_map(late).collect();
    let drawn = decimate(&all, INTERVALS);
    let columns = Columns::default()
        .numbers("time_s", drawn.iter().map(|sample| seconds(sample.0)))
        .numbers("late_s", drawn.iter().map(|sample| seconds(sample.1)));
    let caption = format!(
        "From when a message was due at the sender until the receiver had read it, at the time of its arrival.{}",
        decimated(drawn.len(), all.len())
    );
    (!columns.is_empty()).then(|| Figure {
        plot: "lateness",
        title: "Lateness of messages".to_owned(),
        caption,
        set: Vec::new(),
        data: vec![("lateness", columns)],
    })
}
