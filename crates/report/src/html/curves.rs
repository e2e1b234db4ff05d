//! Curves of a sweep as a figure.

use super::data::{Columns, Figure, log_domain};
use super::decimate::decimate;
use crate::curve::{Grid, steps};
use farpath_run::ExperimentSummary;
use serde_json::Value;

/// Intervals that a line is decimated to, four points each.
const INTERVALS: usize = 200;

/// The most lines of one figure.
const LINES: usize = 8;

/// Axes that span more than this are logarithmic.
const WIDE: f64 = 30.0;

/// What is drawn over a grid.
pub(crate) struct Quantity<'a> {
    /// Stands above the figure.
    pub title: String,
    /// Stands below it.
    pub caption: String,
    /// The vertical axis, with its unit.
    pub axis: &'a str,
}

/// The curves of `value`, a value for each point, and of each line in `lines`: its label's end and its values.
/// Steps have the name of the timer that is nearest. None where no line has a value.
pub(crate) fn figure(
    quantity: Quantity<'_>,
    asked: &ExperimentSummary,
    grid: &Grid,
    values: &[(&str, Vec<Option<f64>>)],
) -> Option<Figure> {
    let (mut xs, mut ys, mut names) = (Vec::new(), Vec::new(), Vec::new());
    // Where lines jump, what stands there, and what the caption says of it.
    let mut marks: Vec<(f64, String, String)> = Vec::new();
    let mut drawn = 0;
    for line in &grid.lines {
        for (who, values) in values {
            let curve = line.curve(|index| values.get(index).copied().flatten());
            if curve.is_empty() {
                continue;
            }
            drawn += 1;
            if drawn > LINES {
                continue;
            }
            let parts = [line.label.as_str(), who].into_iter().filter(|part| !part.is_empty());
            let name = parts.collect::<Vec<_>>().join(", ");
            let places: Vec<(u64, f64)> = (0..).zip(&curve).map(|(place, point)| (place, point.1)).collect();
            for (place, y) in decimate(&places, INTERVALS) {
                xs.push(curve[place as usize].0);
                ys.push(y);
                names.push(name.clone());
            }
            for step in steps(&curve) {
                let (place, said) = match line.timer(asked, &step) {
                    Some(timer) => {
                        let rtt = short(timer.rtt_s);
                        (format!("RTT {rtt} s"), format!("{rtt} s, {} ({})", timer.name, timer.set_by))
                    }
                    None => {
                        let place = format!("{} {}", short(step.at), grid.unit);
                        (place.clone(), format!("{place}, near no timer"))
                    }
                };
                // Lines jump at one timer a little apart; the first of them says where.
                match marks.iter_mut().find(|(_, _, other)| *other == said) {
                    Some(mark) => mark.0 = mark.0.min(step.at),
                    None => marks.push((step.at, place, said)),
                }
            }
        }
    }
    let span = |values: &[f64]| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        (least, values.iter().copied().fold(0.0, f64::max))
    };
    let scale = |values: &[f64]| {
        let (least, most) = span(values);
        if least > 0.0 && most > WIDE * least { "log" } else { "linear" }
    };
    if drawn == 0 {
        return None;
    }
    let mut caption = quantity.caption;
    if !marks.is_empty() {
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let said: Vec<&str> = marks.iter().map(|(_, _, said)| said.as_str()).collect();
        caption += &format!(
            " Dashed, where curves jump, and the sender's timer that is nearest to the round trip there: {}.",
            said.join("; ")
        );
    }
    if drawn > LINES {
        caption += &format!(" {LINES} of {drawn} curves are drawn; the table has all points.");
    }
    let mut set: Vec<(&'static str, Value)> = vec![
        ("/encoding/x/axis/title", title(&grid.key, &grid.unit).into()),
        ("/encoding/x/scale/type", scale(&xs).into()),
        ("/layer/2/encoding/y/axis/title", quantity.axis.into()),
        ("/layer/2/encoding/y/scale/type", scale(&ys).into()),
    ];
    match scale(&ys) {
        "log" => set.push(("/layer/2/encoding/y/scale/domain", log_domain(ys.iter().copied()))),
        _ => set.push(("/layer/2/encoding/y/scale/zero", false.into())),
    }
    if marks.is_empty() {
        set.extend([("/layer/0", Value::Null), ("/layer/1", Value::Null)]);
    }
    let lines = Columns::default().numbers("x", xs).numbers("y", ys).texts("line", names);
    let steps = Columns::default()
        .numbers("x", marks.iter().map(|mark| mark.0))
        .texts("text", marks.iter().map(|mark| &mark.1));
    Some(Figure {
        plot: "curve",
        title: quantity.title,
        caption,
        set,
        data: vec![("lines", lines), ("steps", steps)],
    })
}

pub(super) fn title(key: &str, unit: &str) -> String {
    if unit.is_empty() { key.to_owned() } else { format!("{key}, {unit}") }
}

/// Three digits.
fn short(value: f64) -> String {
    let digits = 2_i32.saturating_sub(value.abs().max(1e-9).log10().floor() as i32).max(0);
    let text = format!("{value:.*}", digits as usize);
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}
