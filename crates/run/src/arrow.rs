//! Tables in memory: Arrow record batches from runs, and rows back from batches.

use crate::schema::{Cells, Column, Nullable, Row, gathered};
use crate::{
    AirRow, FlowRow, MessageRow, Provenance, RouterRow, Run, RunKey, SegmentRow, SeriesRow, StationRow,
};
use arrow_array::builder::{
    ArrayBuilder, ListBuilder, StringBuilder, StructBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;

/// One of the tables of a run. Every row of every table begins with `point`, `engine` and `seed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// One row per flow.
    Flows,
    /// One row per value that changed.
    Series,
    /// One row per segment at one end, or per drop.
    Segments,
    /// One row per message of a stream.
    Messages,
    /// One row per flow router and direction.
    Routers,
    /// One row per hop of a radio and use of its air.
    Air,
    /// One row per station on an air that other stations use too.
    Stations,
    /// One row per run.
    Provenance,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name, in files and JSON lines alike.
    pub name: &'static str,
    /// `ns`, `B`, `bit/s`; empty for counts, ratios and text.
    pub unit: &'static str,
    /// What it means.
    pub about: &'static str,
}

impl Table {
    /// Every table, in the order of their declaration; all but the last have a file.
    pub const ALL: [Table; Table::Provenance as usize + 1] = [
        Table::Flows,
        Table::Series,
        Table::Segments,
        Table::Messages,
        Table::Routers,
        Table::Air,
        Table::Stations,
        Table::Provenance,
    ];

    /// The table that [`name`](Table::name) spells so.
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// As files spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Flows => "flows",
            Table::Series => "series",
            Table::Segments => "segments",
            Table::Messages => "messages",
            Table::Routers => "routers",
            Table::Air => "air",
            Table::Stations => "stations",
            Table::Provenance => "provenance",
        }
    }

    /// Its columns, in order.
    pub fn columns(self) -> Vec<ColumnInfo> {
        match self {
            Table::Flows => infos::<FlowRow>(),
            Table::Series => infos::<SeriesRow>(),
            Table::Segments => infos::<SegmentRow>(),
            Table::Messages => infos::<MessageRow>(),
            Table::Routers => infos::<RouterRow>(),
            Table::Air => infos::<AirRow>(),
            Table::Stations => infos::<StationRow>(),
            Table::Provenance => infos::<Provenance>(),
        }
    }

    /// Its Arrow schema. The metadata of each field say its `unit`, where it has one, and its `description`.
    pub fn schema(self) -> SchemaRef {
        match self {
            Table::Flows => schema::<FlowRow>(),
            Table::Series => schema::<SeriesRow>(),
            Table::Segments => schema::<SegmentRow>(),
            Table::Messages => schema::<MessageRow>(),
            Table::Routers => schema::<RouterRow>(),
            Table::Air => schema::<AirRow>(),
            Table::Stations => schema::<StationRow>(),
            Table::Provenance => schema::<Provenance>(),
        }
    }

    /// Its rows from a run, in batches that fit into a processor's cache.
    pub fn batches(self, run: &Run) -> Box<dyn Iterator<Item = RecordBatch> + '_> {
        match self {
            Table::Flows => Box::new(batches_of(run.key(), run.flows.iter().cloned())),
            Table::Series => Box::new(batches_of(run.key(), run.series.iter())),
            Table::Segments => Box::new(batches_of(run.key(), run.segments.iter())),
            Table::Messages => Box::new(batches_of(run.key(), run.messages.iter())),
            Table::Routers => Box::new(batches_of(run.key(), run.routers.iter().cloned())),
            Table::Air => Box::new(batches_of(run.key(), run.air.iter().cloned())),
            Table::Stations => Box::new(batches_of(run.key(), run.stations.iter().cloned())),
            Table::Provenance => Box::new(batches_of(run.key(), std::iter::once(run.provenance.clone()))),
        }
    }
}

/// The flows of many runs in one batch, in their order.
pub fn flow_batch(runs: &[Run]) -> RecordBatch {
    let rows = runs.iter().flat_map(|run| run.flows.iter().map(|flow| (run.key(), flow.clone())));
    let (keys, rows): (Vec<RunKey>, Vec<FlowRow>) = rows.unzip();
    batch(&keys, &rows)
}

/// The flows of a batch, each with the run that it belongs to. Columns of other names are left alone.
pub fn flow_rows(batch: &RecordBatch) -> Result<Vec<(RunKey, FlowRow)>, ColumnError> {
    rows(batch)
}

/// Rows of a batch. A batch of segments is 1 MB of rows.
const BATCH: usize = 1 << 13;

fn infos<R: Row>() -> Vec<ColumnInfo> {
    info_of::<RunKey>().into_iter().chain(info_of::<R>()).collect()
}

/// The columns of rows that belong to no run.
pub(crate) fn info_of<R: Row>() -> Vec<ColumnInfo> {
    let info = |column: &Column<R>| ColumnInfo { name: column.name, unit: column.unit, about: column.about };
    R::COLUMNS.iter().map(info).collect()
}

/// Rows that belong to no run.
pub(crate) fn rows_batch<R: Row>(rows: &[R]) -> RecordBatch {
    let fields: Vec<Field> = R::COLUMNS.iter().map(field).collect();
    let cells = R::COLUMNS.iter().map(|column| array(column, rows)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), cells)
        .expect("schema and arrays come from the same columns")
}

fn batches_of<R: Row>(key: RunKey, mut rows: impl Iterator<Item = R>) -> impl Iterator<Item = RecordBatch> {
    std::iter::from_fn(move || {
        let rows: Vec<R> = rows.by_ref().take(BATCH).collect();
        (!rows.is_empty()).then(|| batch(&vec![key; rows.len()], &rows))
    })
}

fn batch<R: Row>(keys: &[RunKey], rows: &[R]) -> RecordBatch {
    let keys = RunKey::COLUMNS.iter().map(|column| array(column, keys));
    let cells = R::COLUMNS.iter().map(|column| array(column, rows));
    RecordBatch::try_new(schema::<R>(), keys.chain(cells).collect())
        .expect("schema and arrays come from the same columns")
}

pub(crate) fn schema<R: Row>() -> SchemaRef {
    let fields: Vec<Field> = RunKey::COLUMNS.iter().map(field).chain(R::COLUMNS.iter().map(field)).collect();
    Arc::new(Schema::new(fields))
}

fn field<R>(column: &Column<R>) -> Field {
    let (data_type, nullable) = match column.cells {
        Cells::U64(..) => (DataType::UInt64, false),
        Cells::MaybeU64(..) => (DataType::UInt64, true),
        Cells::MaybeF64(..) => (DataType::Float64, true),
        Cells::Bool(..) => (DataType::Boolean, false),
        Cells::Word(..) | Cells::Text(..) => (DataType::Utf8, false),
        Cells::MaybeText(..) => (DataType::Utf8, true),
        Cells::Texts(..) => (list_of(DataType::Utf8), false),
        Cells::Causes(..) => (list_of(DataType::Struct(cause_fields())), false),
        Cells::Ranges(..) => (list_of(DataType::Struct(range_fields())), false),
    };
    let mut metadata = HashMap::from([("description".to_owned(), column.about.to_owned())]);
    if !column.unit.is_empty() {
        metadata.insert("unit".to_owned(), column.unit.to_owned());
    }
    Field::new(column.name, data_type, nullable).with_metadata(metadata)
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, false)))
}

fn cause_fields() -> Fields {
    Fields::from(vec![
        Field::new("cause", DataType::Utf8, false),
        Field::new("packets", DataType::UInt64, false),
    ])
}

fn range_fields() -> Fields {
    Fields::from(vec![
        Field::new("start", DataType::UInt32, false),
        Field::new("end", DataType::UInt32, false),
    ])
}

fn array<R>(column: &Column<R>, rows: &[R]) -> ArrayRef {
    match column.cells {
        Cells::U64(get, _) => Arc::new(UInt64Array::from(gathered(|cells: &mut Vec<u64>| get(rows, cells)))),
        Cells::MaybeU64(get, _) => {
            let cells = gathered(|cells: &mut Nullable| get(rows, cells));
            Arc::new(UInt64Array::from_iter(cells.iter()))
        }
        Cells::MaybeF64(get, _) => Arc::new(Float64Array::from_iter(rows.iter().map(get))),
        Cells::Bool(get, _) => {
            let cells = gathered(|cells: &mut Vec<u8>| get(rows, cells));
            Arc::new(BooleanArray::from_iter(cells.into_iter().map(|cell| Some(cell == 1))))
        }
        Cells::Word(words, get, _) => {
            let cells = gathered(|cells: &mut Vec<u8>| get(rows, cells));
            Arc::new(StringArray::from_iter_values(cells.into_iter().map(|cell| words[usize::from(cell)])))
        }
        Cells::Text(get, _) => Arc::new(StringArray::from_iter_values(rows.iter().map(get))),
        Cells::MaybeText(get, _) => Arc::new(StringArray::from_iter(rows.iter().map(get))),
        Cells::Texts(get, _) => {
            let item = Field::new("item", DataType::Utf8, false);
            let mut lists = ListBuilder::new(StringBuilder::new()).with_field(item);
            for row in rows {
                get(row).iter().for_each(|text| lists.values().append_value(text));
                lists.append(true);
            }
            Arc::new(lists.finish())
        }
        Cells::Causes(get, _) => {
            let children: [Box<dyn ArrayBuilder>; 2] =
                [Box::new(StringBuilder::new()), Box::new(UInt64Builder::new())];
            struct_lists(cause_fields(), children, rows.iter().map(get), |entry, (cause, packets)| {
                child::<StringBuilder>(entry, 0).append_value(cause);
                child::<UInt64Builder>(entry, 1).append_value(*packets);
            })
        }
        Cells::Ranges(get, _) => {
            let children: [Box<dyn ArrayBuilder>; 2] =
                [Box::new(UInt32Builder::new()), Box::new(UInt32Builder::new())];
            struct_lists(range_fields(), children, rows.iter().map(get), |entry, (start, end)| {
                child::<UInt32Builder>(entry, 0).append_value(*start);
                child::<UInt32Builder>(entry, 1).append_value(*end);
            })
        }
    }
}

/// A column of lists of structs; `append` puts one item into the children.
fn struct_lists<'a, T: 'a>(
    fields: Fields,
    children: [Box<dyn ArrayBuilder>; 2],
    rows: impl Iterator<Item = &'a [T]>,
    append: impl Fn(&mut StructBuilder, &T),
) -> ArrayRef {
    let item = Field::new("item", DataType::Struct(fields.clone()), false);
    let mut lists = ListBuilder::new(StructBuilder::new(fields, children.into())).with_field(item);
    for row in rows {
        for item in row {
            append(lists.values(), item);
            lists.values().append(true);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}

fn child<B: ArrayBuilder>(entry: &mut StructBuilder, index: usize) -> &mut B {
    entry.field_builder(index).expect("the children were built with these types")
}

/// What is wrong with a column of a batch that should be one of our tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column `{column}`: {problem}")]
pub struct ColumnError {
    /// Name of the column.
    pub column: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The rows of a batch, each with the run that it belongs to. Columns of other names are left alone.
pub(crate) fn rows<R: Row>(batch: &RecordBatch) -> Result<Vec<(RunKey, R)>, ColumnError> {
    let mut rows: Vec<(RunKey, R)> = (0..batch.num_rows()).map(|_| (RunKey::blank(), R::blank())).collect();
    for column in RunKey::COLUMNS {
        fill(column, batch, rows.iter_mut().map(|(key, _)| key))?;
    }
    for column in R::COLUMNS {
        fill(column, batch, rows.iter_mut().map(|(_, row)| row))?;
    }
    Ok(rows)
}

fn fill<'a, R: 'static>(
    column: &Column<R>,
    batch: &RecordBatch,
    rows: impl Iterator<Item = &'a mut R>,
) -> Result<(), ColumnError> {
    let error = |problem: String| ColumnError { column: column.name, problem };
    let Some(array) = batch.column_by_name(column.name) else {
        return if column.later { Ok(()) } else { Err(error("it is missing".to_owned())) };
    };
    let expected = field(column);
    if !array.data_type().equals_datatype(expected.data_type()) {
        return Err(error(format!("expected {}, found {}", expected.data_type(), array.data_type())));
    }
    if !expected.is_nullable() && array.null_count() > 0 {
        return Err(error("it has empty cells".to_owned()));
    }
    for (i, row) in rows.enumerate().filter(|(i, _)| !array.is_null(*i)) {
        put(column, array, i, row).map_err(error)?;
    }
    Ok(())
}

/// Puts cell `i` of `array`, which is of the column's type and not null, into `row`.
fn put<R>(column: &Column<R>, array: &ArrayRef, i: usize, row: &mut R) -> Result<(), String> {
    match column.cells {
        Cells::U64(_, set) | Cells::MaybeU64(_, set) => {
            let value = array.as_primitive::<UInt64Type>().value(i);
            set(row, value).ok_or_else(|| format!("{value} is out of range"))?;
        }
        Cells::MaybeF64(_, set) => set(row, array.as_primitive::<Float64Type>().value(i)),
        Cells::Bool(_, set) => set(row, array.as_boolean().value(i)),
        Cells::Word(_, _, set) | Cells::Text(_, set) => {
            let text = array.as_string::<i32>().value(i);
            set(row, text).ok_or_else(|| format!("`{text}` is not a word that it knows"))?;
        }
        Cells::MaybeText(_, set) => set(row, array.as_string::<i32>().value(i)),
        Cells::Texts(_, push) => {
            let texts = array.as_list::<i32>().value(i);
            texts.as_string::<i32>().iter().flatten().for_each(|text| push(row, text));
        }
        Cells::Causes(_, push) => {
            let entries = array.as_list::<i32>().value(i);
            let (causes, packets) = (entries.as_struct().column(0), entries.as_struct().column(1));
            for (cause, packets) in causes.as_string::<i32>().iter().zip(packets.as_primitive::<UInt64Type>())
            {
                push(row, cause.unwrap_or_default(), packets.unwrap_or_default());
            }
        }
        Cells::Ranges(_, push) => {
            let entries = array.as_list::<i32>().value(i);
            let (starts, ends) = (entries.as_struct().column(0), entries.as_struct().column(1));
            for (start, end) in
                starts.as_primitive::<UInt32Type>().iter().zip(ends.as_primitive::<UInt32Type>())
            {
                push(row, start.unwrap_or_default(), end.unwrap_or_default());
            }
        }
    }
    Ok(())
}
