//! What held a connection of a capture, as a page: the time-sequence graph with the limits behind it, and the tables.

use super::data::{Columns, Figure};
use super::decimate::{decimate, spread};
use super::page::{Block, Page, Section};
use crate::tables::{both_sides_facts, connection_facts, limits_table, waits_table};
use farpath_diagnose::both::BothSides;
use farpath_diagnose::sequence::{Point, Points, SequenceGraph};
use farpath_diagnose::{ConnectionReport, Interval, Limit};
use serde_json::Value;
use std::collections::BTreeMap;

/// Intervals of time that lines and points are decimated to, four of each.
const INTERVALS: usize = 600;
/// The most packets sent again that are drawn.
const MARKS: usize = 1000;
/// The limits are drawn as in so many strips of time: each has the colour of what held longest in it.
const STRIPS: u64 = 1500;

/// A page about a connection, with its intervals, the graph of its packets, and what both sides tell.
pub fn diagnosis_page(
    connection: &ConnectionReport,
    graph: &SequenceGraph,
    both: Option<&BothSides>,
) -> Page {
    let mut facts: Vec<(String, Vec<String>)> = Vec::new();
    for (term, text) in
        connection_facts(connection).into_iter().chain(both.map(both_sides_facts).unwrap_or_default())
    {
        match facts.last_mut().filter(|_| term.is_empty()) {
            Some((_, said)) => said.push(text),
            None => facts.push((term.to_owned(), vec![text])),
        }
    }
    let first = vec![
        Block::Short(vec![connection.summary.clone()]),
        Block::Figure(figure(connection, graph)),
        Block::Table(limits_table(connection)),
    ];
    let sections = vec![
        Section { title: String::new(), blocks: first },
        Section { title: "Longest waits".to_owned(), blocks: vec![Block::Table(waits_table(connection))] },
        Section { title: "Connection and path".to_owned(), blocks: vec![Block::Facts(facts)] },
    ];
    Page {
        title: format!("{} to {}", connection.sender, connection.receiver),
        kind: format!("Farpath {} · diagnose", env!("CARGO_PKG_VERSION")),
        sections,
    }
}

fn figure(connection: &ConnectionReport, graph: &SequenceGraph) -> Figure {
    // A wait lasts to what ended it: the first packet begins the first one.
    let begin = connection.intervals.first().map_or(0, |interval| interval.from_ns);
    let seconds = |ns: u64| ns.saturating_sub(begin) as f64 / 1e9;
    let strips = strips(&connection.intervals);
    let mut present: Vec<Limit> = connection.limits.iter().map(|share| share.limit).collect();
    present.retain(|limit| strips.iter().any(|strip| strip.limit == *limit));
    let points = |points: &[Point]| {
        Columns::default()
            .numbers("time_s", points.iter().map(|point| seconds(point.0)))
            .numbers("bytes", points.iter().map(|point| point.1 as f64))
    };
    let thinned = |points: &Points| decimate(points.kept(), INTERVALS);
    let (sent, acked, window) = (thinned(&graph.sent), thinned(&graph.acknowledged), thinned(&graph.window));
    let again = spread(graph.again.kept(), MARKS);
    let mut caption = "Behind the graph: what new data waited for. Blue: where each packet of new data begins, when it passed the \
                       capture. Red triangles: data sent again. Green: what had been acknowledged. Dashed: until where the receiver's \
                       window let the sender go. Drag to move, Shift and wheel to zoom, double-click to come back."
        .to_owned();
    if graph.again.seen() > again.len() {
        caption += &format!(" {} of {} packets sent again are drawn.", again.len(), graph.again.seen());
    }
    let of_limits = |pointer, values: Vec<&'static str>| (pointer, Value::from(values));
    let mut set = vec![
        of_limits("/layer/0/encoding/color/scale/domain", present.iter().map(|limit| limit.name()).collect()),
        of_limits(
            "/layer/0/encoding/color/scale/range",
            present.iter().map(|limit| colour(*limit)).collect(),
        ),
    ];
    let layers = [
        ("/layer/1", window.is_empty()),
        ("/layer/2", acked.is_empty()),
        ("/layer/3", sent.is_empty()),
        ("/layer/4", again.is_empty()),
    ];
    set.extend(layers.into_iter().filter(|(_, empty)| *empty).map(|(layer, _)| (layer, Value::Null)));
    let limits = Columns::default()
        .numbers("from_s", strips.iter().map(|strip| seconds(strip.from_ns)))
        .numbers("until_s", strips.iter().map(|strip| seconds(strip.to_ns)))
        .texts("limit", strips.iter().map(|strip| strip.limit.name()));
    Figure {
        plot: "limits",
        title: "Time-sequence graph".to_owned(),
        caption,
        set,
        data: vec![
            ("limits", limits),
            ("sent", points(&sent)),
            ("again", points(&again)),
            ("acked", points(&acked)),
            ("window", points(&window)),
        ],
    }
}

/// Intervals as they can be drawn: of many in a strip of time the one that held longest, equal neighbours together.
fn strips(intervals: &[Interval]) -> Vec<Interval> {
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return Vec::new() };
    if intervals.len() as u64 <= STRIPS {
        return intervals.to_vec();
    }
    let width = ((last.to_ns - first.from_ns) / STRIPS).max(1);
    let mut strips: Vec<Interval> = Vec::new();
    let mut rest = intervals;
    let mut from_ns = first.from_ns;
    while from_ns < last.to_ns {
        let to_ns = (from_ns + width).min(last.to_ns);
        rest = &rest[rest.partition_point(|interval| interval.to_ns <= from_ns)..];
        let mut held: BTreeMap<Limit, u64> = BTreeMap::new();
        for interval in rest.iter().take_while(|interval| interval.from_ns < to_ns) {
            let within = interval.to_ns.min(to_ns).saturating_sub(interval.from_ns.max(from_ns));
            *held.entry(interval.limit).or_default() += within;
        }
        if let Some((&limit, _)) = held.iter().max_by_key(|(_, ns)| **ns) {
            match strips.last_mut() {
                Some(strip) if strip.limit == limit && strip.to_ns == from_ns => strip.to_ns = to_ns,
                _ => strips.push(Interval { limit, from_ns, to_ns }),
            }
        }
        from_ns = to_ns;
    }
    strips
}

/// Of each limit, on white and on black.
fn colour(limit: Limit) -> &'static str {
    match limit {
        Limit::Handshake => "#7a7a7a",
        Limit::SlowStart => "#9ecae1",
        Limit::CongestionWindow => "#3182bd",
        Limit::SendBuffer => "#756bb1",
        Limit::ReceiveWindow => "#e6a700",
        Limit::ZeroWindow => "#a6611a",
        Limit::Loss => "#d7301f",
        Limit::PathRate => "#31a354",
        Limit::Paced => "#66c2a4",
        Limit::Application => "#e78ac3",
        Limit::Nagle => "#ffd92f",
        Limit::Closing => "#bdbdbd",
        Limit::Unclear => "#d9d9d9",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_have_the_longest_limit_and_the_whole_time() {
        let interval = |place: u64| Interval {
            limit: if place.is_multiple_of(2) { Limit::Loss } else { Limit::PathRate },
            // A loss lasts 10 ns, the path 90.
            from_ns: place / 2 * 100 + place % 2 * 10,
            to_ns: place / 2 * 100 + if place.is_multiple_of(2) { 10 } else { 100 },
        };
        let many: Vec<Interval> = (0..20_000).map(interval).collect();
        assert_eq!(strips(&many), [Interval { limit: Limit::PathRate, from_ns: 0, to_ns: 1_000_000 }]);
        let few: Vec<Interval> = (0..20).map(interval).collect();
        assert_eq!(strips(&few), few);
        assert_eq!(strips(&[]), []);
    }
}
