//! The columns of the tables: name, unit, meaning, and where a value stands in a row.
//!
//! Arrow batches, Parquet files and JSON lines are all made from these lists, so that a column has one name
//! everywhere.

use crate::{Engine, MessageRow, Metric, Provenance, RunKey, SeriesRow};
use farpath_units::Instant;
use std::borrow::Cow;

/// One column of a table whose rows are `R`.
pub struct Column<R: 'static> {
    pub name: &'static str,
    /// `ns`, `B`, `bit/s`; empty for counts, ratios and text.
    pub unit: &'static str,
    pub about: &'static str,
    pub cells: Cells<R>,
}

/// A cause, and how many packets it dropped.
type CauseCount = (Cow<'static, str>, u64);

/// How the cells of a column are read from rows and put back. Putting back gives `None` where the row cannot
/// hold the value.
///
/// Kinds that a trace has in every row are read from many rows at a time: a call for each cell would cost more than
/// what it does.
pub enum Cells<R: 'static> {
    U64(fn(&[R], &mut Vec<u64>), fn(&mut R, u64) -> Option<()>),
    MaybeU64(fn(&[R], &mut Nullable), fn(&mut R, u64) -> Option<()>),
    MaybeF64(fn(&R) -> Option<f64>, fn(&mut R, f64)),
    Bool(fn(&[R], &mut Vec<u8>), fn(&mut R, bool)),
    /// A word of a fixed list, by its place there.
    Word(&'static [&'static str], fn(&[R], &mut Vec<u8>), fn(&mut R, &str) -> Option<()>),
    Text(fn(&R) -> &str, fn(&mut R, &str) -> Option<()>),
    MaybeText(fn(&R) -> Option<&str>, fn(&mut R, &str)),
    Texts(fn(&R) -> &[String], fn(&mut R, &str)),
    /// Packets by cause.
    Causes(fn(&R) -> &[CauseCount], fn(&mut R, &str, u64)),
    /// Ranges of sequence numbers, start and end.
    Ranges(fn(&R) -> &[(u32, u32)], fn(&mut R, u32, u32)),
}

/// Numbers of which some are not known.
#[derive(Debug, Clone, Default)]
pub struct Nullable {
    /// 1 where there is a number.
    pub present: Vec<u8>,
    /// Those that there are.
    pub values: Vec<u64>,
}

impl Nullable {
    /// The numbers, in their places.
    pub fn iter(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        let mut values = self.values.iter();
        self.present.iter().map(move |&present| if present == 1 { values.next().copied() } else { None })
    }
}

impl Extend<Option<u64>> for Nullable {
    fn extend<T: IntoIterator<Item = Option<u64>>>(&mut self, cells: T) {
        for cell in cells {
            self.present.push(cell.is_some().into());
            self.values.extend(cell);
        }
    }
}

/// The cells of some rows, by themselves.
pub(crate) fn gathered<C: Default>(gather: impl FnOnce(&mut C)) -> C {
    let mut cells = C::default();
    gather(&mut cells);
    cells
}

/// Columns that came after the first release of a format version. Files written before do not have them; what they
/// would say is unknown, so that each of them can be null.
pub(crate) const LATER: &[&str] = &[
    "element",
    "dscp",
    "qos",
    "ecn",
    "opened",
    "completed",
    "ecn_marks",
    "ecn_responses",
    "loss_probes",
    "undos",
    "dsacks",
    "explicit_rate",
    "granted_bit_per_s",
    "messages",
    "late_messages",
    "max_lateness_ns",
    "final_lateness_ns",
    "max_write_lag_ns",
    "peak_backlog_bytes",
    "delayed_bytes",
    "time_to_timely_ns",
    "stall_time_ns",
    "discarded_messages",
];

/// A row that a table is made of.
pub trait Row: Clone + 'static {
    const COLUMNS: &'static [Column<Self>];
    /// A row to put cells into.
    fn blank() -> Self;
}

/// Reads a cell from each of many rows.
macro_rules! each {
    (|$row:ident| $cell:expr) => {
        |rows, cells| cells.extend(rows.iter().map(|$row| $cell))
    };
}

const fn column<R: 'static>(
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    cells: Cells<R>,
) -> Column<R> {
    Column { name, unit, about, cells }
}

/// A column of numbers that an engine may not know, named as its field.
macro_rules! known_or_not {
    ($field:ident, $unit:literal, $about:literal) => {
        column(
            stringify!($field),
            $unit,
            $about,
            Cells::MaybeF64(|row| row.$field, |row, value| row.$field = Some(value)),
        )
    };
}

/// A column of durations that an engine may not know.
macro_rules! duration_or_not {
    ($name:literal, $field:ident, $about:literal) => {
        column(
            $name,
            "ns",
            $about,
            Cells::MaybeU64(each!(|row| row.$field.map(Duration::as_nanos)), |row, ns| {
                row.$field = Some(Duration::from_nanos(ns));
                Some(())
            }),
        )
    };
}

/// A time since the start of the run that an engine may not know.
macro_rules! time_or_not {
    ($name:literal, $field:ident, $about:literal) => {
        column(
            $name,
            "ns",
            $about,
            Cells::MaybeU64(each!(|row| row.$field.map(Instant::as_nanos)), |row, ns| {
                row.$field = Some(Instant::from_nanos(ns));
                Some(())
            }),
        )
    };
}

/// A column of `u32`, named as its field.
macro_rules! small {
    ($field:ident, $unit:literal, $about:literal) => {
        column(
            stringify!($field),
            $unit,
            $about,
            Cells::U64(each!(|row| u64::from(row.$field)), |row, value| {
                row.$field = value.try_into().ok()?;
                Some(())
            }),
        )
    };
}

/// The ways over the path.
const DIRECTIONS: &[&str] = &["forward", "reverse"];

/// The units of series.
const UNITS: [&str; 3] = ["B", "ns", ""];

/// The way over the path, `forward` or `reverse`.
macro_rules! direction {
    ($about:literal) => {
        column(
            "direction",
            "",
            $about,
            Cells::Word(DIRECTIONS, each!(|row| u8::from(row.direction == DIRECTIONS[1])), |row, name| {
                row.direction = DIRECTIONS.iter().find(|known| **known == name)?;
                Some(())
            }),
        )
    };
}

/// A time since the start of the run.
macro_rules! time {
    ($name:literal, $field:ident, $about:literal) => {
        column(
            $name,
            "ns",
            $about,
            Cells::U64(each!(|row| row.$field.as_nanos()), |row, ns| {
                row.$field = Instant::from_nanos(ns);
                Some(())
            }),
        )
    };
}

/// A number of bytes.
macro_rules! bytes {
    ($field:ident, $about:literal) => {
        column(
            stringify!($field),
            "B",
            $about,
            Cells::U64(each!(|row| row.$field.0), |row, bytes| {
                row.$field = Bytes(bytes);
                Some(())
            }),
        )
    };
}

/// A word of a fixed list.
macro_rules! word {
    ($field:ident, $kind:ident, $about:literal) => {
        column(
            stringify!($field),
            "",
            $about,
            Cells::Word(&$kind::NAMES, each!(|row| row.$field as u8), |row, name| {
                row.$field = $kind::from_name(name)?;
                Some(())
            }),
        )
    };
}

/// A text of any content.
macro_rules! text {
    ($field:ident, $about:literal) => {
        column(
            stringify!($field),
            "",
            $about,
            Cells::Text(
                |row| &row.$field,
                |row, text| {
                    row.$field = text.into();
                    Some(())
                },
            ),
        )
    };
}

/// A list of texts.
macro_rules! texts {
    ($field:ident, $about:literal) => {
        column(
            stringify!($field),
            "",
            $about,
            Cells::Texts(|row| &row.$field, |row, text| row.$field.push(text.to_owned())),
        )
    };
}

mod air;
mod flows;
mod routers;
mod segments;

/// The columns that every table begins with.
pub(crate) const KEY: &[Column<RunKey>] = &[
    small!(point, "", "point of the sweep, from 0"),
    word!(engine, Engine, "who made the run: predict, simulate, emulate or measure"),
    column(
        "seed",
        "",
        "seed of the random elements; null for a prediction",
        Cells::MaybeU64(each!(|key| key.seed), |key, seed| {
            key.seed = Some(seed);
            Some(())
        }),
    ),
];

impl RunKey {
    /// A key to put cells into.
    pub(crate) const BLANK: RunKey = RunKey { point: 0, engine: Engine::Predict, seed: None };
}

impl Row for RunKey {
    const COLUMNS: &'static [Column<RunKey>] = KEY;

    fn blank() -> RunKey {
        RunKey::BLANK
    }
}

impl Row for SeriesRow {
    const COLUMNS: &'static [Column<SeriesRow>] = &[
        time!("time_ns", time, "when the value changed, since the start of the run"),
        small!(flow, "", "number of the flow within the run"),
        word!(metric, Metric, "what the value is"),
        column(
            "unit",
            "",
            "unit of the value: B or ns; empty for counts",
            Cells::Word(
                &UNITS,
                each!(|row| match row.metric.unit() {
                    "B" => 0,
                    "ns" => 1,
                    _ => 2,
                }),
                |_, _| Some(()),
            ),
        ),
        small!(value, "", "the new value, in the unit that the row names"),
    ];

    fn blank() -> SeriesRow {
        SeriesRow { time: Instant::ZERO, flow: 0, metric: Metric::Cwnd, value: 0 }
    }
}

impl Row for MessageRow {
    const COLUMNS: &'static [Column<MessageRow>] = &[
        small!(flow, "", "number of the flow within the run"),
        small!(message, "", "number of the message within the flow, from 0"),
        time!("due_ns", due, "when the sending application had it, since the start of the run"),
        time_or_not!("written_ns", written, "when TCP had taken the last byte of it"),
        time_or_not!("sent_ns", sent, "when its first byte left TCP for the first time"),
        time_or_not!("arrived_ns", arrived, "when the receiving application had read the last byte of it"),
    ];

    fn blank() -> MessageRow {
        MessageRow { flow: 0, message: 0, due: Instant::ZERO, written: None, sent: None, arrived: None }
    }
}

impl Row for Provenance {
    const COLUMNS: &'static [Column<Provenance>] = &[
        text!(version, "version of the program"),
        text!(experiment, "the experiment file as given"),
        texts!(changes, "`key=value` changes on top of it: overrides, then the point's place in the sweep"),
        text!(kernel, "the kernel whose TCP it is; empty where no kernel was asked"),
        texts!(settings, "what hosts were told, a setting an entry"),
        texts!(caveats, "what a reader of the numbers must know"),
    ];

    fn blank() -> Provenance {
        Provenance::default()
    }
}
