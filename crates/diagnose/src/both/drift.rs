//! By how much one of two clocks runs faster (Moon, Skelly, Towsley 1999): of all lines below the delays of a way over time, the one that the delays
//! are least above. Delays are shortest when no queue stands, so that the line is that of the clocks.

use super::{Side, difference};

/// Less than this between the first packet and the last moves nothing that is told.
const LEAST_NS: f64 = 100_000.0;
/// Both ways agree by so much of the drift, but for what the delays of either leave open: what a queue does to one, it does not to the other.
const AGREE: f64 = 0.2;

/// A line below the delays of a way: its slope, and how far they are above it on average, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    slope: f64,
    above_ns: f64,
}

/// The line that is below all points and least below them in sum: an edge of their lower convex hull, at the mean of their times.
fn line_below(points: &[(u64, i64)]) -> Option<Line> {
    // From the first one on: a double has not the digits of a date in nanoseconds.
    let &(from, delay) = points.first()?;
    let relative = |point: &(u64, i64)| (difference(point.0, from) as f64, (point.1 - delay) as f64);
    let mut points: Vec<(f64, f64)> = points.iter().map(relative).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let count = points.len() as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let mean = (sum.0 / count, sum.1 / count);
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., before, last] = hull[..]
            && (last.0 - before.0) * (point.1 - before.1) <= (last.1 - before.1) * (point.0 - before.0)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let edge =
        hull.windows(2).find(|edge| (edge[0].0..=edge[1].0).contains(&mean.0) && edge[1].0 > edge[0].0)?;
    let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
    Some(Line { slope, above_ns: mean.1 - (edge[0].1 + slope * (mean.0 - edge[0].0)) })
}

/// By how much of a second a second of the receiver's clock is longer, where both ways tell the same; points are when a packet left, and how much later,
/// by the other clock, it came.
pub(super) fn drift(forward: &[(u64, i64)], back: &[(u64, i64)]) -> Option<f64> {
    // Times at the receiver are of its clock, too, which changes the slope by next to nothing; what is ahead one way is behind the other.
    let (ahead, behind) = (line_below(forward)?, line_below(back)?);
    let (one, other) = (ahead.slope, -behind.slope);
    let from = forward.first()?.0;
    let span = forward.iter().map(|(at, _)| difference(*at, from)).max()? as f64;
    // A line may lie too deep at one end, by some of what delays are above it: that leaves so much of its slope open.
    let open = |line: Line| line.above_ns / (2.0 * span.max(1.0));
    let (told, open_told, open_other) = match ahead.above_ns <= behind.above_ns {
        true => (one, open(ahead), open(behind)),
        false => (other, open(behind), open(ahead)),
    };
    let size = told.abs();
    // A way that leaves all of it open agrees with nothing.
    let is_sure = open_told <= AGREE * size && open_other <= size;
    let agree = (one - other).abs() <= AGREE * size + open_other;
    (is_sure && agree && size * span >= LEAST_NS).then_some(told)
}

/// The same side by a clock that runs as the other's; its first packet keeps its time.
pub(super) fn without_drift(side: &Side, drift: f64) -> Side {
    let first = side.span_ns.map_or(0, |span| span.0);
    let moved = |at: u64| {
        let since = difference(at, first);
        at.wrapping_sub((since as f64 * drift / (1.0 + drift)) as i64 as u64)
    };
    Side {
        sender: side.sender,
        last: side.last,
        data: side
            .data
            .iter()
            .map(|packet| super::Data { time_ns: moved(packet.time_ns), ..*packet })
            .collect(),
        acks: side.acks.iter().map(|(at, key)| (moved(*at), *key)).collect(),
        packets: side.packets,
        is_cut: side.is_cut,
        span_ns: side.span_ns.map(|(first, last)| (first, moved(last))),
    }
}
