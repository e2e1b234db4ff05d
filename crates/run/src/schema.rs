//! The schema of the tables: how one declaration of a row makes its struct, its columns and what is said of them.
//!
//! `table!` takes a struct whose fields are the columns of a table, in their order:
//!
//! - The comment of a field is the description of its column: in Arrow's metadata, in `docs/results.md` and here.
//! - Its type says how the column is stored ([`Cell`]); `Option` is a column with nulls.
//! - `#[column(name = "srtt_ns", unit = "bit/s", later = true)]`: the name where it is not the field's, the unit where the type
//!   does not say it, and whether files of the first release of the format lack it. A new column is `later`, and can be null.
//! - `#[blank(...)]`: the value in a row that nothing is known of, where it is not the default of the type.
//! - `#[cells(...)]`: how it is stored, where the type does not say it; `#[also(...)]`: one more column of the same field.
//! - `#[summary(name)]`, of flows: the statistic over seeds that is made of it, [`FlowStatistics`](crate::FlowStatistics).

use farpath_units::{Bytes, Duration, Instant};
use std::borrow::Cow;
use std::sync::Arc;

/// One column of a table whose rows are `R`.
pub struct Column<R: 'static> {
    pub name: &'static str,
    /// `ns`, `B`, `bit/s`; empty for counts, ratios and text.
    pub unit: &'static str,
    pub about: &'static str,
    /// Whether it came after the first release of the format version. Files written before lack it; what it would say is
    /// unknown, so that it can be null.
    pub later: bool,
    pub cells: Cells<R>,
}

/// A cause, and how many packets it dropped.
pub type CauseCount = (Cow<'static, str>, u64);

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
pub fn gathered<C: Default>(gather: impl FnOnce(&mut C)) -> C {
    let mut cells = C::default();
    gather(&mut cells);
    cells
}

/// A row that a table is made of.
pub trait Row: Clone + 'static {
    const COLUMNS: &'static [Column<Self>];
    /// A row to put cells into.
    fn blank() -> Self;
}

impl<R: 'static> Column<R> {
    /// The number in this row, times in s; `None` where it is null, or no number.
    pub fn number(&self, row: &R) -> Option<f64> {
        let rows = std::slice::from_ref(row);
        let number = match self.cells {
            Cells::U64(get, _) => gathered(|cells: &mut Vec<u64>| get(rows, cells)).first().copied(),
            Cells::MaybeU64(get, _) => gathered(|cells: &mut Nullable| get(rows, cells)).values.pop(),
            Cells::MaybeF64(get, _) => return get(row),
            _ => None,
        };
        number.map(|number| if self.unit == "ns" { number as f64 / 1e9 } else { number as f64 })
    }

    /// Whether its cells are numbers.
    pub const fn is_number(&self) -> bool {
        matches!(self.cells, Cells::U64(..) | Cells::MaybeU64(..) | Cells::MaybeF64(..))
    }
}

/// A field of a row, as a type.
pub trait Field {
    type Row: 'static;
    type Value;
    fn get(row: &Self::Row) -> &Self::Value;
    fn get_mut(row: &mut Self::Row) -> &mut Self::Value;
}

/// A type of fields that can be a column.
pub trait Cell<F: Field<Value = Self>>: Sized {
    const UNIT: &'static str = "";
    const CELLS: Cells<F::Row>;
}

/// What is a whole number in files.
pub trait Whole: Copy {
    const UNIT: &'static str;
    fn to_u64(self) -> u64;
    /// `None` where it cannot hold the number.
    fn from_u64(number: u64) -> Option<Self>;
}

macro_rules! whole {
    ($($type:ty, $unit:literal, |$value:ident| $number:expr, |$read:ident| $back:expr;)+) => {
        $(
            impl Whole for $type {
                const UNIT: &'static str = $unit;

                fn to_u64(self) -> u64 {
                    let $value = self;
                    $number
                }

                fn from_u64($read: u64) -> Option<$type> {
                    $back
                }
            }
        )+
    };
}

whole! {
    u8, "", |value| value.into(), |number| number.try_into().ok();
    u16, "", |value| value.into(), |number| number.try_into().ok();
    u32, "", |value| value.into(), |number| number.try_into().ok();
    u64, "", |value| value, |number| Some(number);
    Bytes, "B", |bytes| bytes.0, |number| Some(Bytes(number));
    Duration, "ns", |time| time.as_nanos(), |ns| Some(Duration::from_nanos(ns));
    Instant, "ns", |time| time.as_nanos(), |ns| Some(Instant::from_nanos(ns));
}

impl<T: Whole, F: Field<Value = T>> Cell<F> for T {
    const UNIT: &'static str = T::UNIT;
    const CELLS: Cells<F::Row> = Cells::U64(
        |rows, cells| cells.extend(rows.iter().map(|row| F::get(row).to_u64())),
        |row, number| {
            *F::get_mut(row) = T::from_u64(number)?;
            Some(())
        },
    );
}

impl<T: Whole, F: Field<Value = Option<T>>> Cell<F> for Option<T> {
    const UNIT: &'static str = T::UNIT;
    const CELLS: Cells<F::Row> = Cells::MaybeU64(
        |rows, cells| cells.extend(rows.iter().map(|row| F::get(row).map(T::to_u64))),
        |row, number| {
            *F::get_mut(row) = Some(T::from_u64(number)?);
            Some(())
        },
    );
}

/// How fields of a type are stored that is no whole number.
macro_rules! cell {
    ($($type:ty: $cells:expr;)+) => {
        $(
            impl<F: Field<Value = $type>> Cell<F> for $type {
                const CELLS: Cells<F::Row> = $cells;
            }
        )+
    };
}

cell! {
    Option<f64>: Cells::MaybeF64(|row| *F::get(row), |row, number| *F::get_mut(row) = Some(number));
    f64: Cells::MaybeF64(|row| Some(*F::get(row)), |row, number| *F::get_mut(row) = number);
    bool: Cells::Bool(
        |rows, cells| cells.extend(rows.iter().map(|row| u8::from(*F::get(row)))),
        |row, flag| *F::get_mut(row) = flag,
    );
    String: Cells::Text(
        |row| F::get(row),
        |row, text| {
            *F::get_mut(row) = text.into();
            Some(())
        },
    );
    Arc<str>: Cells::Text(
        |row| F::get(row),
        |row, text| {
            *F::get_mut(row) = text.into();
            Some(())
        },
    );
    Option<String>: Cells::MaybeText(
        |row| F::get(row).as_deref(),
        |row, text| *F::get_mut(row) = Some(text.to_owned()),
    );
    Option<Cow<'static, str>>: Cells::MaybeText(
        |row| F::get(row).as_deref(),
        |row, text| *F::get_mut(row) = Some(text.to_owned().into()),
    );
    Vec<String>: Cells::Texts(|row| F::get(row), |row, text| F::get_mut(row).push(text.to_owned()));
    Vec<CauseCount>: Cells::Causes(
        |row| F::get(row),
        |row, cause, packets| F::get_mut(row).push((cause.to_owned().into(), packets)),
    );
    Vec<(u32, u32)>: Cells::Ranges(|row| F::get(row), |row, start, end| F::get_mut(row).push((start, end)));
}

/// A column as its field says it; `#[column(...)]` may change the name, the unit and `later`.
pub const fn column<R>(
    name: &'static str,
    unit: &'static str,
    comment: &'static str,
    cells: Cells<R>,
) -> Column<R> {
    Column { name, unit, about: description(comment), later: false, cells }
}

/// The text of a comment without the blank at its start and the full stop at its end.
pub const fn description(comment: &'static str) -> &'static str {
    let text = comment.trim_ascii();
    match text.as_bytes() {
        [.., b'.'] => text.split_at(text.len() - 1).0,
        _ => text,
    }
}

/// A table: see the head of this file. The structs after the first are groups of columns, which the first has in a field.
macro_rules! table {
    // With statistics over seeds.
    (summary $Summary:ident; $($rows:tt)+) => {
        table! { $($rows)+ }
        summary! { $Summary; $($rows)+ }
    };
    (
        $(#[$outer:meta])*
        pub struct $Row:ident {
            $(
                $(#[doc = $about:literal])+
                $(#[column($($key:ident = $value:expr),+)])?
                $(#[blank($blank:expr)])?
                $(#[cells($cells:expr)])?
                $(#[also(name = $also:literal, about = $also_about:literal, cells = $also_cells:expr)])*
                $(#[summary($($summary:tt)+)])?
                pub $field:ident: $type:ty,
            )+
        }
        $(
            $(#[doc = $group_about:literal])+
            #[derive($($derive:ident),+)]
            pub struct $Group:ident in $group:ident {
                $(
                    $(#[doc = $inner_about:literal])+
                    $(#[column($($inner_key:ident = $inner_value:expr),+)])?
                    $(#[summary($($inner_summary:tt)+)])?
                    pub $inner:ident: $inner_type:ty,
                )+
            }
        )*
    ) => {
        $(#[$outer])*
        pub struct $Row {
            $($(#[doc = $about])+ pub $field: $type,)+
            $($(#[doc = $group_about])+ pub $group: $Group,)*
        }

        $(
            $(#[doc = $group_about])+
            #[derive($($derive),+)]
            pub struct $Group {
                $($(#[doc = $inner_about])+ pub $inner: $inner_type,)+
            }
        )*

        impl $crate::schema::Row for $Row {
            const COLUMNS: &'static [$crate::schema::Column<$Row>] = &[
                $(
                    column_of!(
                        $Row, ($field), $field, $type, concat!($($about),+), ($($cells)?), ($($($key = $value),+)?)
                    ),
                    $($crate::schema::column($also, "", $also_about, $also_cells),)*
                )+
                $($(
                    column_of!(
                        $Row, ($group.$inner), $inner, $inner_type, concat!($($inner_about),+), (),
                        ($($($inner_key = $inner_value),+)?)
                    ),
                )+)*
            ];

            fn blank() -> $Row {
                $Row {
                    $($field: blank!($($blank)?),)+
                    $($group: $Group::default(),)*
                }
            }
        }
    };
}

/// One column of a [`table!`].
macro_rules! column_of {
    (
        $Row:ty, ($($place:tt)+), $field:ident, $type:ty, $about:expr, ($($cells:expr)?), ($($key:ident = $value:expr),*)
    ) => {{
        #[allow(dead_code, reason = "not needed where the cells are given")]
        struct Here;

        impl $crate::schema::Field for Here {
            type Row = $Row;
            type Value = $type;

            fn get(row: &$Row) -> &$type {
                &row.$($place)+
            }

            fn get_mut(row: &mut $Row) -> &mut $type {
                &mut row.$($place)+
            }
        }

        #[allow(clippy::needless_update, reason = "of some columns all is given")]
        $crate::schema::Column {
            $($key: $value,)*
            ..cells_of!(stringify!($field), $type, $about, $($cells)?)
        }
    }};
}

macro_rules! cells_of {
    ($name:expr, $type:ty, $about:expr, ) => {
        $crate::schema::column(
            $name,
            <$type as $crate::schema::Cell<Here>>::UNIT,
            $about,
            <$type as $crate::schema::Cell<Here>>::CELLS,
        )
    };
    ($name:expr, $type:ty, $about:expr, $cells:expr) => {
        $crate::schema::column($name, "", $about, $cells)
    };
}

macro_rules! blank {
    () => {
        Default::default()
    };
    ($blank:expr) => {
        $blank
    };
}

/// An enum whose kinds are words in files: each with its word, in the order of their numbers.
macro_rules! words {
    (
        $(#[$outer:meta])*
        pub enum $Words:ident {
            $($(#[doc = $about:literal])+ $Kind:ident = $word:literal,)+
        }
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Words {
            $($(#[doc = $about])+ $Kind,)+
        }

        impl $Words {
            /// Every one, in the order of their declaration.
            pub const ALL: [$Words; [$($word),+].len()] = [$($Words::$Kind),+];

            /// Their words, in the same order.
            const NAMES: [&'static str; $Words::ALL.len()] = [$($word),+];

            /// The one that [`name`](Self::name) spells so.
            pub fn from_name(name: &str) -> Option<$Words> {
                $Words::ALL.into_iter().find(|word| word.name() == name)
            }

            /// As files, tables and flags spell it.
            pub const fn name(self) -> &'static str {
                $Words::NAMES[self as usize]
            }

            /// What it means.
            pub const fn about(self) -> &'static str {
                const ABOUT: [&str; $Words::ALL.len()] = [$($crate::schema::description(concat!($($about),+))),+];
                ABOUT[self as usize]
            }
        }

        impl ::core::fmt::Display for $Words {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl<F: $crate::schema::Field<Value = $Words>> $crate::schema::Cell<F> for $Words {
            const CELLS: $crate::schema::Cells<F::Row> = $crate::schema::Cells::Word(
                &$Words::NAMES,
                |rows, cells| cells.extend(rows.iter().map(|row| *F::get(row) as u8)),
                |row, name| {
                    *F::get_mut(row) = $Words::from_name(name)?;
                    Some(())
                },
            );
        }
    };
}

/// The statistics that the `#[summary(...)]` of a [`table!`] name.
macro_rules! summary {
    (
        $Summary:ident;
        $(#[$outer:meta])*
        pub struct $Row:ident {
            $(
                $(#[doc = $about:literal])+
                $(#[column($($column:tt)+)])?
                $(#[blank($($blank:tt)+)])?
                $(#[cells($($cells:tt)+)])?
                $(#[summary($($name:ident $(= $of_run:path)?),+)])?
                pub $field:ident: $type:ty,
            )+
        }
        $(
            $(#[doc = $group_about:literal])+
            #[derive($($derive:ident),+)]
            pub struct $Group:ident in $group:ident {
                $(
                    $(#[doc = $inner_about:literal])+
                    $(#[column($($inner_column:tt)+)])?
                    $(#[summary($($inner_name:ident),+)])?
                    pub $inner:ident: $inner_type:ty,
                )+
            }
        )*
    ) => {
        /// Statistics over the runs of a point, by the names that the columns of the flows give them: times in s, other numbers in
        /// the unit of their column.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $Summary {
            $($($(
                #[doc = concat!("Over runs, from [`", stringify!($field), "`](", stringify!($Row), "::", stringify!($field), ").")]
                pub $name: Option<$crate::Statistic>,
            )+)?)+
            $($($($(
                #[doc = concat!("Over runs, from [`", stringify!($inner), "`](", stringify!($Group), "::", stringify!($inner), ").")]
                pub $inner_name: Option<$crate::Statistic>,
            )+)?)+)*
        }

        impl $Summary {
            /// Every name, in the order of files.
            pub const NAMES: &'static [&'static str] = &[
                $($($(stringify!($name),)+)?)+
                $($($($(stringify!($inner_name),)+)?)+)*
            ];

            /// Of some runs, by the flows of each.
            pub(crate) fn from_flows<'a>(runs: impl Iterator<Item = &'a [$Row]> + Clone) -> $Summary {
                $Summary {
                    $($($(
                        $name: $crate::Statistic::from_values(
                            runs.clone().filter_map(|flows| of_run!(flows, ($field) $(, $of_run)?)),
                        ),
                    )+)?)+
                    $($($($(
                        $inner_name: $crate::Statistic::from_values(
                            runs.clone().filter_map(|flows| of_run!(flows, ($group.$inner))),
                        ),
                    )+)?)+)*
                }
            }

            /// The statistic of this name; `None` where there is none, or where it is not known.
            pub fn get(&self, name: &str) -> Option<$crate::Statistic> {
                self.iter().find(|(known, _)| *known == name)?.1
            }

            /// Every statistic with its name, in the order of files.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<$crate::Statistic>)> {
                let statistics = [
                    $($($(self.$name,)+)?)+
                    $($($($(self.$inner_name,)+)?)+)*
                ];
                $Summary::NAMES.iter().copied().zip(statistics)
            }
        }
    };
}

/// What a run says in a statistic: what the given function does, or else the mean of its flows.
macro_rules! of_run {
    ($flows:ident, ($($place:tt)+)) => {
        $crate::summary::mean($flows, |flow| $crate::schema::Number::number(&flow.$($place)+))
    };
    ($flows:ident, ($($place:tt)+), $of_run:path) => {
        $of_run($flows)
    };
}

/// A field that has a statistic: as a number, times in s.
pub trait Number {
    /// `None` where it is not known.
    fn number(&self) -> Option<f64>;
}

impl Number for Option<f64> {
    fn number(&self) -> Option<f64> {
        *self
    }
}

impl Number for Option<Duration> {
    fn number(&self) -> Option<f64> {
        self.map(Duration::as_secs_f64)
    }
}

impl Number for Option<Bytes> {
    fn number(&self) -> Option<f64> {
        self.map(|bytes| bytes.0 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AirRow, FlowRow, MessageRow, RouterRow, SegmentRow, SeriesRow};

    fn check<R: Row>() {
        for column in R::COLUMNS.iter().filter(|column| column.later) {
            let nullable =
                matches!(column.cells, Cells::MaybeU64(..) | Cells::MaybeF64(..) | Cells::MaybeText(..));
            assert!(nullable, "`{}` came later, so that older files do not know it", column.name);
        }
    }

    #[test]
    fn columns_that_came_later_can_be_null() {
        check::<FlowRow>();
        check::<SeriesRow>();
        check::<SegmentRow>();
        check::<MessageRow>();
        check::<RouterRow>();
        check::<AirRow>();
    }

    #[test]
    fn a_description_is_a_comment_without_its_full_stop() {
        assert_eq!(description(" Smoothed RTT at the end."), "Smoothed RTT at the end");
        assert_eq!(description(" B or ns"), "B or ns");
    }
}
