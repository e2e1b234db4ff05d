//! `make bench-gate`: instructions a segment, counted by callgrind, compared with those of `bench/baseline.json`.
//!
//! Other work on the machine does not change a count of instructions, and neither does the clock rate: a machine that is busy or slow gives
//! the same verdict. Set-up and handshake are in none of the figures: each row is run at two sizes, and the difference counts.

use crate::figure::{Figure, Target};
use crate::scenarios::{Long, data_segments, lossy, today};
use farpath_sim::{Setup, Silent, simulate};
use farpath_tcp::Config;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A row fails where it takes more than this times its baseline.
const MOST_GROWTH: f64 = 1.12;
/// Over each range of [`GROWTH`], the dearest segment costs at most so many times the cheapest.
const MOST_SPREAD: f64 = 1.3;

/// What is measured, by name.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// As the baseline spells it.
    pub name: &'static str,
    work: Work,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    /// One flow with the window of `linux-6`, in bytes.
    Window(u64),
    /// So many flows that share a queue of 1700 packets.
    Flows(u64),
    /// One flow in a window of six segments, with so much loss.
    Loss(f64),
    /// One flow over a link and so many elements of 1 ms of delay.
    Elements(u64),
    /// One flow of the plain stack, with every feature of TCP off that has a switch in [`Config::default`].
    Plain,
}

/// What the gate compares.
const GATE: [Row; 6] = [
    Row { name: "one flow, window 300 kB", work: Work::Window(300_000) },
    Row { name: "one flow, window 1.3 MB", work: Work::Window(1_300_000) },
    Row { name: "one flow, window 16 MB", work: Work::Window(16_000_000) },
    Row { name: "one flow, features off", work: Work::Plain },
    Row { name: "100 flows, losses by overshoot", work: Work::Flows(100) },
    Row { name: "1 % loss, six segments", work: Work::Loss(0.01) },
];

/// How cost grows, by what is varied.
const GROWTH: [(&str, &[Row]); 4] = [
    (
        "window",
        &[
            Row { name: "window of 10 segments", work: Work::Window(14_480) },
            Row { name: "window of 100 segments", work: Work::Window(144_800) },
            Row { name: "window of 1000 segments", work: Work::Window(1_448_000) },
            Row { name: "window of 10 000 segments", work: Work::Window(14_480_000) },
        ],
    ),
    (
        "flows",
        &[
            Row { name: "1 flow, shared queue", work: Work::Flows(1) },
            Row { name: "10 flows, shared queue", work: Work::Flows(10) },
            Row { name: "1000 flows, shared queue", work: Work::Flows(1000) },
        ],
    ),
    (
        "path elements",
        &[
            Row { name: "1 delay", work: Work::Elements(1) },
            Row { name: "10 delays", work: Work::Elements(10) },
            Row { name: "30 delays", work: Work::Elements(30) },
        ],
    ),
    (
        "loss",
        &[
            Row { name: "no loss, six segments", work: Work::Loss(0.0) },
            Row { name: "10 % loss, six segments", work: Work::Loss(0.1) },
            Row { name: "30 % loss, six segments", work: Work::Loss(0.3) },
        ],
    ),
];

impl Work {
    /// `times` the work of a short run; 1 or 2.
    fn setup(self, times: u64) -> Setup {
        let one = Long { flows: 1, delay_ms: 5, window: 1_300_000, size: 0, queue: 0, stop_ms: 0 };
        match self {
            Work::Window(window) => Long { window, size: 20_000_000 * times, ..one }.setup(&today()),
            Work::Plain => Long { window: 65_535, size: 20_000_000 * times, ..one }.setup(&Config::default()),
            Work::Flows(flows) => {
                let size = 30_000_000 / flows * times;
                Long { flows, delay_ms: 10, window: 8_000_000, size, queue: 1700, stop_ms: 0 }.setup(&today())
            }
            Work::Loss(rate) => lossy(1, rate, 10_000_000 * times),
            Work::Elements(count) => {
                let long = Long { delay_ms: 1, size: 20_000_000 * times, ..one };
                let mut setup = long.setup(&today());
                setup.path.extend((1..count).map(|number| {
                    let mut more = long.delay();
                    more.name = format!("delay {number}");
                    more
                }));
                setup
            }
        }
    }
}

/// The baseline, and where it was made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Baseline {
    /// Processor, compiler and commit.
    made_on: String,
    /// By the name of the row.
    instructions_per_segment: BTreeMap<String, f64>,
}

/// The names of the rows that the gate compares.
pub fn rows() -> impl Iterator<Item = &'static str> {
    GATE.iter().map(|row| row.name)
}

/// Runs the row of this name, `times` its work, and gives the segments with payload that were sent.
///
/// # Errors
/// There is no such row.
pub fn run_row(name: &str, times: u64) -> Result<u64, String> {
    let growth = GROWTH.iter().flat_map(|(_, rows)| rows.iter());
    let row = GATE.iter().chain(growth).find(|row| row.name == name);
    let row = row.ok_or_else(|| format!("there is no row `{name}`"))?;
    let results = simulate(&row.work.setup(times), &mut Silent).map_err(|error| error.to_string())?;
    Ok(data_segments(&results))
}

/// Instructions and segments of a row in a process of its own, under callgrind.
fn count(name: &str, times: u64) -> Result<(u64, u64), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(["--row", name, &times.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let segments = String::from_utf8_lossy(&output.stdout).trim().parse();
    let collected = errors.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match (collected, segments) {
        (Some(instructions), Ok(segments)) if output.status.success() => Ok((instructions, segments)),
        _ => Err(format!("{name}: valgrind says: {errors}")),
    }
}

/// Instructions that a segment of the row takes, its share of an ACK included.
fn per_segment(row: &Row) -> Result<f64, String> {
    let (less, few) = count(row.name, 1)?;
    let (more, many) = count(row.name, 2)?;
    match many.checked_sub(few) {
        Some(segments @ 1..) => Ok(more.saturating_sub(less) as f64 / segments as f64),
        _ => Err(format!("{}: twice the work sent {many} segments, and once {few}", row.name)),
    }
}

/// Compares each row with the baseline; whether all hold. With `write`, makes the baseline anew, made on what `write` says.
///
/// # Errors
/// The baseline cannot be read or does not have a row, or valgrind is missing.
pub fn gate(baseline: &Path, write: Option<String>, mut told: impl FnMut(Figure)) -> Result<bool, String> {
    let at = |error: &dyn core::fmt::Display| format!("{}: {error}", baseline.display());
    let known: Option<Baseline> = match &write {
        Some(_) => None,
        None => {
            let text = std::fs::read_to_string(baseline).map_err(|error| at(&error))?;
            Some(serde_json::from_str(&text).map_err(|error| at(&error))?)
        }
    };
    let mut measured = BTreeMap::new();
    let mut all_hold = true;
    for row in &GATE {
        let value = per_segment(row)?;
        let target = match &known {
            Some(known) => {
                let before = known.instructions_per_segment.get(row.name);
                let before = before.ok_or_else(|| at(&format!("there is no row `{}`", row.name)))?;
                Target::AtMost((before * MOST_GROWTH).round())
            }
            None => Target::None,
        };
        let figure = Figure { name: row.name.to_owned(), value: Some(value), unit: "instructions", target };
        all_hold &= figure.holds() != Some(false);
        told(figure);
        measured.insert(row.name.to_owned(), value.round());
    }
    if let Some(made_on) = write {
        let made = Baseline { made_on, instructions_per_segment: measured };
        let text = serde_json::to_string_pretty(&made).map_err(|error| at(&error))? + "\n";
        std::fs::write(baseline, text).map_err(|error| at(&error))?;
    }
    Ok(all_hold)
}

/// How the cost of a segment grows with windows, flows, path elements and loss.
///
/// # Errors
/// Valgrind is missing.
pub fn growth(mut told: impl FnMut(Figure)) -> Result<(), String> {
    for (varied, rows) in GROWTH {
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        for row in rows {
            let value = per_segment(row)?;
            (least, most) = (least.min(value), most.max(value));
            let name = row.name.to_owned();
            told(Figure { name, value: Some(value), unit: "instructions", target: Target::None });
        }
        let target = Target::AtMost(MOST_SPREAD);
        told(Figure {
            name: format!("{varied}: dearest segment to cheapest"),
            value: Some(most / least),
            unit: "times",
            target,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn rows() -> impl Iterator<Item = &'static Row> {
        GATE.iter().chain(GROWTH.iter().flat_map(|(_, rows)| rows.iter()))
    }

    #[test]
    fn the_shipped_baseline_has_each_row_of_the_gate_and_no_other() {
        let shipped: Baseline = serde_json::from_str(include_str!("../baseline.json")).expect("a baseline");
        let known: BTreeSet<&str> = shipped.instructions_per_segment.keys().map(String::as_str).collect();
        assert_eq!(known, GATE.iter().map(|row| row.name).collect());
        assert!(shipped.instructions_per_segment.values().all(|&count| count > 0.0));
    }

    #[test]
    fn no_two_rows_share_a_name() {
        let names: BTreeSet<&str> = rows().map(|row| row.name).collect();
        assert_eq!(names.len(), rows().count());
        assert!(run_row("none such", 1).is_err());
    }
}
