//! A quantity over one parameter of a sweep, a line for each value of another, with intervals.

use super::data::{Columns, Figure};
use crate::tables::ComparisonTable;
use crate::tables::comparison::{ENGINES, participle};
use farpath_run::{ExperimentSummary, Statistic, SummaryPoint};

/// The most values of either parameter that a figure of lines can show.
const VALUES: usize = 8;

/// One point of one line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub point: usize,
    /// By whom.
    pub who: &'static str,
    pub value: Statistic,
}

/// The two parameters of a sweep, where there are two of a few values each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LineFamily {
    /// Their keys.
    names: [String; 2],
    /// The two values of each point.
    places: Vec<[String; 2]>,
}

impl LineFamily {
    pub fn swept_in(asked: &ExperimentSummary) -> Option<LineFamily> {
        let [x, line] = asked.axes.as_slice() else { return None };
        let place = |point: &SummaryPoint| [value(point, x), value(point, line)];
        let places: Vec<[String; 2]> = asked.points.iter().map(place).collect();
        let few = |axis: usize| {
            let mut values: Vec<&str> = places.iter().map(|place| place[axis].as_str()).collect();
            values.sort_unstable();
            values.dedup();
            (2..=VALUES).contains(&values.len())
        };
        let names = [x, line].map(|keys| keys.join(" and "));
        (few(0) && few(1)).then_some(LineFamily { names, places })
    }

    /// The figure; none where there is nothing to draw.
    pub fn figure(&self, title: &str, caption: &str, axis: &str, marks: &[Mark]) -> Option<Figure> {
        let bound = |sign: f64| {
            let of = move |mark: &Mark| mark.value.ci95().map(|half| mark.value.mean + sign * half);
            marks.iter().map(of).collect::<Vec<_>>()
        };
        let mut set = vec![
            ("/spec/encoding/x/axis/title", self.names[0].clone().into()),
            ("/spec/encoding/color/title", self.names[1].clone().into()),
            ("/spec/layer/1/encoding/y/axis/title", axis.into()),
        ];
        if marks.iter().all(|mark| mark.value.ci95().is_none()) {
            // Intervals of which there are none have no extent.
            set.push(("/spec/layer/0", serde_json::Value::Null));
        }
        let place = |axis: usize| marks.iter().map(move |mark| &self.places[mark.point][axis]);
        let points = Columns::default()
            .texts("x", place(0))
            .texts("line", place(1))
            .texts("who", marks.iter().map(|mark| mark.who))
            .numbers("value", marks.iter().map(|mark| mark.value.mean))
            .numbers("low", bound(-1.0))
            .numbers("high", bound(1.0));
        (!marks.is_empty()).then(|| Figure {
            plot: "line-family",
            title: title.to_owned(),
            caption: format!("{caption} Means over the seeds, with their 95 % confidence intervals."),
            set,
            data: vec![("points", points)],
        })
    }
}

/// A point's value of a parameter; where several go together, each once.
fn value(point: &SummaryPoint, keys: &[String]) -> String {
    let mut values: Vec<&str> = Vec::new();
    for (_, value) in point.swept.iter().filter(|(key, _)| keys.contains(key)) {
        if !values.contains(&value.as_str()) {
            values.push(value);
        }
    }
    values.join(" / ")
}

/// The goodput of a sweep over two parameters of a few values each.
pub(super) fn goodput(asked: &ExperimentSummary, comparison: &ComparisonTable) -> Option<Figure> {
    let line_family = LineFamily::swept_in(asked)?;
    let mut marks = Vec::new();
    for engine in ENGINES {
        let summaries = comparison.rows.iter().flat_map(|row| &row.summaries);
        for summary in summaries.filter(|summary| summary.engine == engine) {
            let mark = |value| Mark { point: summary.point as usize, who: participle(engine), value };
            marks.extend(summary.statistics.goodput_bit_per_s.map(mark));
        }
    }
    let title = format!("Goodput over {} and {}", line_family.names[0], line_family.names[1]);
    line_family.figure(&title, "Bytes of completed transfers over their time.", "Goodput, bit/s", &marks)
}
