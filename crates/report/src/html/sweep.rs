//! The figures of a sweep: response times, and how far they are from each other.

use super::curves::{self, Quantity};
use super::data::{Columns, Figure, log_domain};
use super::decimate::spread;
use super::heat_map;
use super::line_family;
use crate::curve::Grid;
use crate::tables::comparison::{Compared, ENGINES, participle};
use crate::tables::{ComparisonRow, ComparisonTable};
use farpath_run::{Engine, ExperimentSummary, PointSummary, Statistic, SummaryPoint};
use serde_json::Value;
use std::collections::HashMap;

/// The most figures of one kind: a sweep over several parameters has one for each value of all but the last.
const SLICES: usize = 12;

/// The most points of a figure.
const POINTS: usize = 200;

/// A point's values of some keys.
pub(super) fn slice(point: &SummaryPoint, of: impl Fn(&String) -> bool) -> String {
    let values = point.swept.iter().filter(|(key, _)| of(key)).map(|(_, value)| value.as_str());
    values.collect::<Vec<_>>().join(" / ")
}

/// What engines are compared by against the last parameter of a sweep, for each combination of the others.
pub(super) fn figures(asked: &ExperimentSummary, comparison: &ComparisonTable) -> Vec<Figure> {
    let Some(keys) = asked.axes.last().filter(|_| comparison.rows.len() > 1) else { return Vec::new() };
    let heat_maps = heat_map::figures(asked, comparison);
    if !heat_maps.is_empty() {
        return heat_maps;
    }
    if let Some(grid) = Grid::swept_in(asked) {
        return curves(asked, comparison, &grid);
    }
    let is_last = |key: &String| keys.contains(key);
    let mut slices: Vec<Slice> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for row in &comparison.rows {
        let swept = comparison.swept_keys.iter().cloned().zip(row.swept.iter().cloned()).collect();
        let point = SummaryPoint { swept, ..SummaryPoint::default() };
        let others = point.swept.iter().filter(|(key, _)| !is_last(key));
        let others = others.map(|(key, value)| format!(", {key} {value}")).collect::<String>();
        let place = *known.entry(others.clone()).or_insert_with(|| {
            let (swept, by) = (keys.join(" with "), comparison.compared());
            slices.push(Slice { by, swept, others, rows: Vec::new(), points: 0 });
            slices.len() - 1
        });
        slices[place].rows.push((slice(&point, is_last), row));
    }
    for slice in &mut slices {
        slice.points = slice.rows.len();
        slice.rows = spread(&slice.rows, POINTS);
    }
    slices.retain(|slice| !slice.marks().is_empty());
    let all = slices.len();
    slices.truncate(SLICES);
    let of_slices = slices.iter().flat_map(|slice| [Some(slice.values()), slice.differences()]);
    let mut figures: Vec<Figure> =
        [line_family::goodput(asked, comparison)].into_iter().chain(of_slices).flatten().collect();
    if let Some(last) = figures.last_mut().filter(|_| all > SLICES) {
        last.caption += &format!(" {SLICES} of {all} such figures are shown; the table has all points.");
    }
    figures
}

/// What engines are compared by, and efficiency, over the many numbers of a sweep.
fn curves(asked: &ExperimentSummary, comparison: &ComparisonTable, grid: &Grid) -> Vec<Figure> {
    let rows = &comparison.rows;
    let engines: Vec<Engine> = ENGINES
        .into_iter()
        .filter(|&engine| rows.iter().any(|row| row.summaries.iter().any(|summary| summary.engine == engine)))
        .collect();
    let of = |value: &dyn Fn(&PointSummary) -> Option<Statistic>| {
        let values = engines.iter().map(|&engine| {
            let mut values = vec![None; asked.points.len()];
            for row in rows {
                let summary = row.summaries.iter().find(|summary| summary.engine == engine);
                let value = summary.and_then(|summary| Some((summary.point, value(summary)?.mean)));
                if let Some((point, value)) = value {
                    values[point as usize] = Some(value);
                }
            }
            (if engines.len() > 1 { participle(engine) } else { "" }, values)
        });
        values.collect::<Vec<_>>()
    };
    let by = comparison.compared();
    let values = Quantity {
        title: format!("{} over {}", by.title, grid.key),
        caption: format!("{}: mean over the seeds.", by.caption),
        axis: &format!("{}, s", by.axis),
    };
    let efficiency = Quantity {
        title: format!("Efficiency over {}", grid.key),
        caption: "Goodput over throughput: what arrived for the first time, of all that was sent.".to_owned(),
        axis: "Efficiency",
    };
    [
        curves::figure(values, asked, grid, &of(&by.statistic)),
        curves::figure(efficiency, asked, grid, &of(&|summary| summary.statistics.efficiency)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The rows that differ in the last parameter alone, with its values.
struct Slice<'a> {
    by: Compared,
    swept: String,
    /// The values of the others, each behind a comma.
    others: String,
    rows: Vec<(String, &'a ComparisonRow)>,
    /// How many there were of them.
    points: usize,
}

/// One value in a figure.
struct Mark<'a> {
    point: &'a str,
    who: &'static str,
    value: f64,
    /// Half of its confidence interval.
    interval: Option<f64>,
}

impl Slice<'_> {
    fn marks(&self) -> Vec<Mark<'_>> {
        let mut marks = Vec::new();
        for (point, row) in &self.rows {
            let published = (self.by.published)(&row.published);
            marks.extend(published.map(|value| Mark { point, who: "published", value, interval: None }));
            marks.extend(ENGINES.into_iter().filter_map(|engine| {
                let value = self.statistic(row, engine)?;
                Some(Mark { point, who: participle(engine), value: value.mean, interval: value.ci95() })
            }));
        }
        marks.retain(|mark| mark.value > 0.0);
        marks
    }

    /// All points in the order of the file, on an axis that does not depend on which of them have marks.
    fn axis(&self) -> Vec<(&'static str, Value)> {
        let points: Vec<&str> = self.rows.iter().map(|(point, _)| point.as_str()).collect();
        vec![
            ("/encoding/x/axis/title", self.swept.clone().into()),
            ("/encoding/x/scale/domain", points.into()),
        ]
    }

    fn values(&self) -> Figure {
        let marks = self.marks();
        // A logarithmic axis has no place for zero: an interval that reaches it stops short.
        let low = |mark: &Mark| mark.interval.map(|half| (mark.value - half).max(mark.value * 0.1));
        let high = |mark: &Mark| mark.interval.map(|half| mark.value + half);
        let mut set = self.axis();
        set.push(("/encoding/color/legend/values", who(&marks)));
        set.push(("/layer/1/encoding/y/axis/title", format!("{} (logarithmic)", self.by.axis).into()));
        set.push(("/layer/1/encoding/tooltip/2/title", format!("{}, s", self.by.name).into()));
        let values = marks.iter().flat_map(|mark| [low(mark), Some(mark.value), high(mark)]).flatten();
        set.push(("/layer/1/encoding/y/scale/domain", log_domain(values)));
        if marks.iter().all(|mark| mark.interval.is_none()) {
            set.push(("/layer/0", Value::Null));
        }
        let points = Columns::default()
            .texts("point", marks.iter().map(|mark| mark.point))
            .texts("who", marks.iter().map(|mark| mark.who))
            .numbers("time_s", marks.iter().map(|mark| mark.value))
            .numbers("interval_s", marks.iter().map(|mark| mark.interval))
            .numbers("low_s", marks.iter().map(low))
            .numbers("high_s", marks.iter().map(high));
        let cut = match marks.iter().any(|mark| mark.interval.is_some_and(|half| half > mark.value * 0.9)) {
            true => " One that reaches down to a tenth of its mean or lower is cut off there.",
            false => "",
        };
        Figure {
            plot: "response-time",
            title: format!("{} against {}{}", self.by.title, self.swept, self.others),
            caption: format!(
                "{}: mean over the seeds, and its 95 % confidence interval where that is wider than the mark.{cut}{}",
                self.by.caption,
                self.left_out()
            ),
            set,
            data: vec![("points", points)],
        }
    }

    fn statistic(&self, row: &ComparisonRow, engine: Engine) -> Option<Statistic> {
        row.summaries.iter().find(|summary| summary.engine == engine).and_then(self.by.statistic)
    }

    fn left_out(&self) -> String {
        match self.rows.len() < self.points {
            true => format!(" {} of {} points are drawn, evenly chosen.", self.rows.len(), self.points),
            false => String::new(),
        }
    }

    /// Everybody against the last engine, where there is somebody else.
    fn differences(&self) -> Option<Figure> {
        let base = ENGINES
            .into_iter()
            .rfind(|&engine| self.rows.iter().any(|(_, row)| self.statistic(row, engine).is_some()))?;
        let bases: Vec<(&str, Statistic)> = self
            .rows
            .iter()
            .filter_map(|(point, row)| Some((point.as_str(), self.statistic(row, base)?)))
            .filter(|(_, time)| time.mean > 0.0)
            .collect();
        let others = self.marks().into_iter().filter(|mark| mark.who != participle(base));
        let in_percent = others.filter_map(|mark| {
            let (_, base) = bases.iter().find(|(point, _)| *point == mark.point)?;
            let value = (mark.value - base.mean) / base.mean * 100.0;
            Some(Mark { value, interval: None, ..mark })
        });
        let marks: Vec<Mark> = in_percent.collect();
        if marks.is_empty() {
            return None;
        }
        let shaded = match bases.iter().any(|(_, time)| time.ci95().is_some()) {
            true => "; shaded, the 95 % confidence interval of their mean",
            false => "",
        };
        let half = |time: &Statistic| time.ci95().unwrap_or(0.0) / time.mean * 100.0;
        let legends = ["/layer/2/encoding/color/legend/values", "/layer/2/encoding/shape/legend/values"];
        let mut set = self.axis();
        set.extend(legends.map(|pointer| (pointer, who(&marks))));
        Some(Figure {
            plot: "difference",
            title: format!("How far that is from what was {}{}", participle(base), self.others),
            caption: format!(
                "Difference of {} in percent of what was {}{shaded}.{}",
                self.by.names,
                participle(base),
                self.left_out()
            ),
            set,
            data: vec![
                (
                    "intervals",
                    Columns::default()
                        .texts("point", bases.iter().map(|(point, _)| point))
                        .numbers("low", bases.iter().map(|(_, time)| -half(time)))
                        .numbers("high", bases.iter().map(|(_, time)| half(time))),
                ),
                (
                    "differences",
                    Columns::default()
                        .texts("point", marks.iter().map(|mark| mark.point))
                        .texts("who", marks.iter().map(|mark| mark.who))
                        .numbers("percent", marks.iter().map(|mark| mark.value)),
                ),
            ],
        })
    }
}

/// Who is in a figure, for its legend: in one order, whoever has the first mark.
fn who(marks: &[Mark]) -> Value {
    let all = ["published"].into_iter().chain(ENGINES.into_iter().map(participle));
    all.filter(|who| marks.iter().any(|mark| mark.who == *who)).collect()
}

#[cfg(test)]
mod tests;
