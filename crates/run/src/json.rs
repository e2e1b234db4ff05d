//! JSON lines: one object a line, keys in the order and by the names of the columns, `null` for what is not known.

use crate::schema::{Cells, Column, Nullable, Row, gathered};
use crate::{Grade, Run, RunKey};
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Writes one line for each flow of a run, with the run's grade at its end.
pub fn write_flow_lines(run: &Run, mut out: impl Write) -> io::Result<()> {
    for flow in &run.flows {
        let mut object = object(&run.key(), flow);
        object.insert("grade".to_owned(), grade_json(run.grade.as_ref()));
        writeln!(out, "{}", Value::Object(object))?;
    }
    Ok(())
}

/// Writes one line for each flow router of a run and direction.
pub fn write_router_lines(run: &Run, mut out: impl Write) -> io::Result<()> {
    for router in &run.routers {
        writeln!(out, "{}", Value::Object(object(&run.key(), router)))?;
    }
    Ok(())
}

/// How well a run was done, with the names that provenance has; `null` where it was not in real time.
pub(crate) fn grade_json(grade: Option<&Grade>) -> Value {
    serde_json::to_value(grade).expect("a grade is plain data")
}

fn object<R: Row>(key: &RunKey, row: &R) -> Map<String, Value> {
    let keys = RunKey::COLUMNS.iter().map(|column| entry(column, key));
    keys.chain(R::COLUMNS.iter().map(|column| entry(column, row))).collect()
}

fn entry<R>(column: &Column<R>, row: &R) -> (String, Value) {
    let rows = std::slice::from_ref(row);
    let value = match column.cells {
        Cells::U64(get, _) => gathered(|cells: &mut Vec<u64>| get(rows, cells))[0].into(),
        Cells::MaybeU64(get, _) => {
            gathered(|cells: &mut Nullable| get(rows, cells)).iter().next().flatten().into()
        }
        Cells::MaybeF64(get, _) => get(row).into(),
        Cells::Bool(get, _) => (gathered(|cells: &mut Vec<u8>| get(rows, cells))[0] == 1).into(),
        Cells::Word(words, get, _) => {
            words[usize::from(gathered(|cells: &mut Vec<u8>| get(rows, cells))[0])].into()
        }
        Cells::Text(get, _) => get(row).into(),
        Cells::MaybeText(get, _) => get(row).into(),
        Cells::Texts(get, _) => get(row).into(),
        Cells::Causes(get, _) => {
            let counts: Map<String, Value> =
                get(row).iter().map(|(cause, packets)| (cause.to_string(), (*packets).into())).collect();
            counts.into()
        }
        Cells::Ranges(get, _) => get(row).iter().map(|&(start, end)| Value::from(vec![start, end])).collect(),
    };
    (column.name.to_owned(), value)
}
