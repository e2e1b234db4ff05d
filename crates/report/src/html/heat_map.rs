//! Two numbers that a sweep goes through against each other, where not every transfer comes to its end: how many open and
//! complete, and how long they take to open, in colours.

use super::curves::title;
use super::data::{Columns, Figure};
use crate::curve::{numbers, value_of};
use crate::tables::comparison::{ENGINES, participle};
use crate::tables::{ComparisonRow, ComparisonTable};
use farpath_run::{Engine, ExperimentSummary, PointSummary, Share};
use serde_json::{Value, json};

/// From so many numbers on each axis on, a sweep is drawn as a heat map.
const LEAST: usize = 6;

/// The most planes of one quantity: one for each combination of what else is swept.
const PLANES: usize = 6;

/// Contours of the closed form, in percent.
const LEVELS: [f64; 3] = [99.0, 50.0, 1.0];

/// A swept key with the number of each point.
struct Axis {
    key: String,
    unit: String,
    numbers: Vec<f64>,
    /// Each of them once, rising.
    distinct: Vec<f64>,
}

/// What is drawn, for a point.
struct Quantity {
    title: &'static str,
    legend: &'static str,
    caption: &'static str,
    /// Where one colour ends and the next begins.
    bounds: &'static [f64],
    /// The less, the better.
    is_cost: bool,
    value: fn(&PointSummary, rtt_s: Option<f64>) -> Option<f64>,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity {
        title: "Connections that open",
        legend: "% open",
        caption: "Connections that the end which opens takes as open.",
        bounds: &[1.0, 10.0, 50.0, 90.0, 99.0],
        is_cost: false,
        value: |summary, _| percent(summary.opened),
    },
    Quantity {
        title: "Transfers that complete",
        legend: "% completed",
        caption: "Transfers of which the receiving application has read every byte.",
        bounds: &[1.0, 10.0, 50.0, 90.0, 99.0],
        is_cost: false,
        value: |summary, _| percent(summary.completed),
    },
    Quantity {
        title: "Time to open",
        legend: "round trips",
        caption: "Mean time until the sender may send, of the connections that come so far, in round trips.",
        bounds: &[1.05, 1.2, 1.5, 2.0, 4.0],
        is_cost: true,
        value: |summary, rtt_s| {
            Some(summary.statistics.connect_time_s?.mean / rtt_s.filter(|&rtt| rtt > 0.0)?)
        },
    },
];

fn percent(share: Option<Share>) -> Option<f64> {
    share.map(|share| share.share * 100.0)
}

/// The planes of a sweep; none where it has not two axes of enough numbers, or everything completed.
pub(super) fn figures(asked: &ExperimentSummary, comparison: &ComparisonTable) -> Vec<Figure> {
    let summaries = || comparison.rows.iter().flat_map(|row| &row.summaries);
    let all = |summary: &PointSummary| {
        [summary.opened, summary.completed].into_iter().flatten().all(|share| share.share > 0.999)
    };
    if summaries().all(all) {
        return Vec::new();
    }
    let mut axes: Vec<Axis> = asked.axes.iter().filter_map(|keys| axis(asked, keys.first()?)).collect();
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.distinct.len()));
    let [x, y, ..] = axes.as_slice() else { return Vec::new() };
    let others: Vec<String> =
        asked.points.iter().map(|point| others(&point.swept, [&x.key, &y.key])).collect();
    let mut labels = others.clone();
    labels.dedup();
    labels.sort();
    labels.dedup();
    let heat_maps =
        QUANTITIES.iter().flat_map(|quantity| labels.iter().take(PLANES).map(move |label| (quantity, label)));
    heat_maps
        .filter_map(|(quantity, label)| {
            let of_label = |row: &&ComparisonRow| point_of(row).is_some_and(|point| others[point] == **label);
            let rows: Vec<&ComparisonRow> = comparison.rows.iter().filter(of_label).collect();
            figure(quantity, label, asked, [x, y], &rows)
        })
        .collect()
}

fn axis(asked: &ExperimentSummary, key: &str) -> Option<Axis> {
    let values: Vec<&str> =
        asked.points.iter().map(|point| value_of(&point.swept, key)).collect::<Option<_>>()?;
    let (numbers, unit) = numbers(&values)?;
    let mut distinct = numbers.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    (distinct.len() >= LEAST).then(|| Axis { key: key.to_owned(), unit, numbers, distinct })
}

/// What else is swept, as words.
fn others(swept: &[(String, String)], axes: [&String; 2]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for (_, value) in swept.iter().filter(|(key, _)| !axes.contains(&key)) {
        if words.last() != Some(&value.as_str()) {
            words.push(value);
        }
    }
    words.join(", ")
}

fn point_of(row: &ComparisonRow) -> Option<usize> {
    usize::try_from(row.summaries.first()?.point).ok()
}

fn figure(
    quantity: &Quantity,
    label: &str,
    asked: &ExperimentSummary,
    [x, y]: [&Axis; 2],
    rows: &[&ComparisonRow],
) -> Option<Figure> {
    let (edges_x, edges_y) = (edges(&x.distinct), edges(&y.distinct));
    let mut cells: Vec<(usize, Engine, f64)> = Vec::new();
    for engine in ENGINES {
        for summary in rows.iter().flat_map(|row| &row.summaries).filter(|one| one.engine == engine) {
            let point = summary.point as usize;
            let value = (quantity.value)(summary, asked.points[point].rtt_s);
            cells.extend(value.map(|value| (point, engine, value)));
        }
    }
    if cells.is_empty() {
        return None;
    }
    let of = |axis: &Axis, edges: &[(f64, f64)], end: fn((f64, f64)) -> f64| -> Vec<f64> {
        let place = |number: f64| axis.distinct.partition_point(|&other| other < number);
        cells.iter().map(|&(point, ..)| end(edges[place(axis.numbers[point])])).collect()
    };
    let contours = if quantity.is_cost { Vec::new() } else { contours(x, y, &cells) };
    let mut colours = ["#7f1d2b", "#c8443a", "#e8925a", "#f3d58a", "#9ccfa3", "#2f9e6e"];
    if quantity.is_cost {
        colours.reverse();
    }
    let mut set: Vec<(&'static str, Value)> = vec![
        ("/spec/encoding/x/axis/title", title(&x.key, &x.unit).into()),
        ("/spec/encoding/y/axis/title", title(&y.key, &y.unit).into()),
        ("/spec/layer/0/encoding/color/title", quantity.legend.into()),
        ("/spec/layer/0/encoding/color/scale/domain", quantity.bounds.into()),
        ("/spec/layer/0/encoding/color/scale/range", json!(colours)),
    ];
    if contours.is_empty() {
        set.push(("/spec/layer/1/encoding/strokeDash/legend", Value::Null));
    }
    let lines = match contours.is_empty() {
        true => "",
        false => " The lines are the closed form's, in both.",
    };
    let of_what = if label.is_empty() { String::new() } else { format!(", {label}") };
    let numbers = |axis: &Axis| cells.iter().map(|&(point, ..)| axis.numbers[point]).collect::<Vec<_>>();
    Some(Figure {
        plot: "heat-map",
        title: format!("{} over {} and {}{of_what}", quantity.title, x.key, y.key),
        caption: format!("{}{lines}", quantity.caption),
        set,
        data: vec![
            (
                "cells",
                Columns::default()
                    .numbers("x", numbers(x))
                    .numbers("y", numbers(y))
                    .numbers("x0", of(x, &edges_x, |edge| edge.0))
                    .numbers("x1", of(x, &edges_x, |edge| edge.1))
                    .numbers("y0", of(y, &edges_y, |edge| edge.0))
                    .numbers("y1", of(y, &edges_y, |edge| edge.1))
                    .texts("who", cells.iter().map(|&(_, engine, _)| participle(engine)))
                    .numbers("value", cells.iter().map(|&(.., value)| value)),
            ),
            (
                "contours",
                Columns::default()
                    .numbers("x", contours.iter().map(|one| one.0))
                    .numbers("y", contours.iter().map(|one| one.1))
                    .numbers("place", (0..contours.len()).map(|place| place as f64))
                    .texts("level", contours.iter().map(|one| format!("{} %", one.2))),
            ),
        ],
    })
}

/// Half way to the neighbours; as far beyond the first and the last, but not below zero where nothing is.
fn edges(distinct: &[f64]) -> Vec<(f64, f64)> {
    let between: Vec<f64> = distinct.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    let (first, last) = (distinct[0], distinct[distinct.len() - 1]);
    let lowest = first - (between[0] - first);
    let lowest = if first >= 0.0 { lowest.max(0.0) } else { lowest };
    let highest = last + (last - between[between.len() - 1]);
    let starts = [lowest].into_iter().chain(between.iter().copied());
    starts.zip(between.iter().copied().chain([highest])).collect()
}

/// Where the prediction falls through each level along x, for every y: x, y and the level.
fn contours(x: &Axis, y: &Axis, cells: &[(usize, Engine, f64)]) -> Vec<(f64, f64, f64)> {
    let mut found = Vec::new();
    for level in LEVELS {
        for &row in &y.distinct {
            let predicted = cells
                .iter()
                .filter(|(point, engine, _)| *engine == Engine::Predict && y.numbers[*point] == row);
            let mut line: Vec<(f64, f64)> =
                predicted.map(|&(point, _, value)| (x.numbers[point], value)).collect();
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
            let falls = line.windows(2).find(|pair| pair[0].1 >= level && pair[1].1 < level);
            found.extend(falls.map(|pair| {
                let part = (pair[0].1 - level) / (pair[0].1 - pair[1].1);
                (pair[0].0 + part * (pair[1].0 - pair[0].0), row, level)
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_meet_half_way_and_begin_at_zero() {
        assert_eq!(edges(&[0.0, 1.0, 10.0]), [(0.0, 0.5), (0.5, 5.5), (5.5, 14.5)]);
        assert_eq!(edges(&[2.0, 3.0]), [(1.5, 2.5), (2.5, 3.5)]);
    }

    #[test]
    fn a_contour_is_where_the_prediction_falls_through_a_level() {
        let axis = |numbers: Vec<f64>, distinct: Vec<f64>| Axis {
            key: String::new(),
            unit: String::new(),
            numbers,
            distinct,
        };
        let x = axis(vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 3.0]);
        let y = axis(vec![5.0; 3], vec![5.0]);
        let predicted = [100.0, 98.0, 0.0];
        let cells: Vec<_> = (0..3).map(|point| (point, Engine::Predict, predicted[point])).collect();
        let found = contours(&x, &y, &cells);
        assert_eq!(found[0], (1.5, 5.0, 99.0));
        assert_eq!((found[1].1, found[1].2, found.len()), (5.0, 50.0, 3));
        let others: Vec<_> =
            cells.into_iter().map(|(point, _, value)| (point, Engine::Simulate, value)).collect();
        assert_eq!(contours(&x, &y, &others), []);
    }
}
