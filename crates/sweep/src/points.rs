//! `points.parquet`: what came out, a row for each point and engine.

use crate::error::SweepError;
use crate::folder::{Folder, POINTS};
use crate::plan::Plan;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use farpath_experiment::{Axis, Experiment, Kind};
use farpath_run::{FlowStatistics, Outcome, PointSummary, Statistic};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows that are held until they are written.
const ROWS: usize = 1 << 14;

/// Reads the finished runs, and writes a summary for each point and engine, in the order of points; `take` is given each
/// with the caveats of its runs. When `stop` is set the table that was there stays.
///
/// # Errors
/// A chunk that cannot be read, a table that cannot be written; [`SweepError::Stopped`].
pub fn write_points(
    experiment: &Experiment,
    plan: &Plan,
    folder: &Folder,
    stop: &AtomicBool,
    mut take: impl FnMut(&PointSummary, &[String]),
) -> Result<(), SweepError> {
    let axes = swept(experiment);
    folder.put_with(POINTS, |file| {
        let empty = table(experiment, plan, &axes, &[]);
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROWS)).build();
        let mut writer =
            ArrowWriter::try_new(file, empty.schema(), Some(properties)).map_err(SweepError::Encode)?;
        let mut rows: Vec<PointSummary> = Vec::new();
        let mut failed = Ok(());
        folder.groups(plan, stop, |wanted, runs| {
            let mut caveats: Vec<String> = Vec::new();
            for caveat in runs.iter().flat_map(|run| &run.provenance.caveats) {
                if !caveats.contains(caveat) {
                    caveats.push(caveat.clone());
                }
            }
            for summary in PointSummary::of_runs(runs) {
                // Runs know the first of the points that are alike.
                let summary = PointSummary { point: wanted.point as u64, ..summary };
                take(&summary, &caveats);
                rows.push(summary);
            }
            if rows.len() >= ROWS && failed.is_ok() {
                failed = writer.write(&table(experiment, plan, &axes, &rows));
                rows.clear();
            }
        })?;
        failed
            .and_then(|()| writer.write(&table(experiment, plan, &axes, &rows)))
            .and_then(|()| writer.close())
            .map_err(SweepError::Encode)?;
        Ok(())
    })
}

/// A key that is swept, and of which kind its values are, where they are numbers.
struct Swept<'a> {
    key: &'a str,
    axis: &'a Axis,
    kind: Option<Kind>,
}

fn swept(experiment: &Experiment) -> Vec<Swept<'_>> {
    let keys = experiment.axes.iter().flat_map(|axis| axis.keys.iter().map(move |key| (axis, key)));
    keys.map(|(axis, key)| Swept { key, axis, kind: experiment.kind_of(key) }).collect()
}

impl Swept<'_> {
    /// The values of some points, as numbers of `kind`. Each is read once, and none of other points is.
    fn numbers(&self, experiment: &Experiment, kind: Kind, summaries: &[PointSummary]) -> ArrayRef {
        let mut known: HashMap<usize, Option<f64>> = HashMap::new();
        let number = |summary: &PointSummary| {
            let point = summary.point as usize;
            let read = || kind.number(&value_of(experiment, point, self.key));
            *known.entry(self.axis.step_of(point)).or_insert_with(read)
        };
        Arc::new(Float64Array::from_iter(summaries.iter().map(number)))
    }
}

fn table(
    experiment: &Experiment,
    plan: &Plan,
    axes: &[Swept<'_>],
    summaries: &[PointSummary],
) -> RecordBatch {
    let mut columns: Vec<(String, DataType, ArrayRef)> = Vec::new();
    let texts = |of: &dyn Fn(&PointSummary) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(summaries.iter().map(of)))
    };
    let counts = |of: &dyn Fn(&PointSummary) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(summaries.iter().map(of)))
    };
    let reals = |of: &dyn Fn(&PointSummary) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(summaries.iter().map(of)))
    };
    let mut add = |name: &str, data_type, column| columns.push((name.to_owned(), data_type, column));
    add("point", DataType::UInt64, counts(&|summary| summary.point));
    let key = |summary: &PointSummary| plan.key(summary.point, summary.engine).to_string();
    add("point_key", DataType::Utf8, texts(&key));
    add("engine", DataType::Utf8, texts(&|summary| summary.engine.name().to_owned()));
    for swept in axes {
        let key = swept.key;
        match swept.kind {
            Some(kind) => {
                let name = format!("{key}{}", suffix(kind));
                add(&name, DataType::Float64, swept.numbers(experiment, kind, summaries));
            }
            None => {
                let of = |summary: &PointSummary| value_of(experiment, summary.point as usize, key);
                add(key, DataType::Utf8, texts(&of));
            }
        }
    }
    add("runs", DataType::UInt64, counts(&|summary| summary.runs));
    add("flows", DataType::UInt64, counts(&PointSummary::flows));
    add(
        "completed",
        DataType::UInt64,
        counts(&|summary| summary.outcomes.get(&Outcome::Completed).copied().unwrap_or(0)),
    );
    add("completed_share", DataType::Float64, reals(&|summary| Some(summary.completed?.share)));
    for &name in FlowStatistics::NAMES {
        let statistic =
            |of: fn(&Statistic) -> Option<f64>| reals(&move |summary| of(&summary.statistics.get(name)?));
        add(name, DataType::Float64, statistic(|statistic| Some(statistic.mean)));
        add(&format!("{name}_ci95"), DataType::Float64, statistic(Statistic::ci95));
        add(&format!("{name}_sd"), DataType::Float64, statistic(|statistic| statistic.sd));
    }
    let fields: Vec<Field> =
        columns.iter().map(|(name, data_type, _)| Field::new(name, data_type.clone(), true)).collect();
    let columns = columns.into_iter().map(|(.., column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("one length, and types as declared")
}

/// What a swept key is at a point.
pub fn value_of(experiment: &Experiment, point: usize, key: &str) -> String {
    #[cfg(test)]
    crate::plan::count_a_look();
    let swept = experiment.swept(point).into_iter().find(|(other, _)| other == key);
    swept.expect("every point has a value of every axis").1
}

/// How a column's name says its unit.
fn suffix(kind: Kind) -> &'static str {
    match kind {
        Kind::Duration => "_s",
        Kind::Size => "_bytes",
        Kind::Rate => "_bit_per_s",
        Kind::Power => "_w",
        Kind::Number | Kind::Share => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, run_missing};
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use farpath_run::Engine;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn swept_values_are_numbers_of_the_base_unit_names_stay_names_and_a_stop_leaves_the_table() {
        let text = "title = 'One'\npath = 'noisy-channel'\nseeds = 1\n[transfer]\nsize = '1 kB'\n[sweep]\n\
            'path.delay' = ['20 ms', '1 s']\n'path.loss' = ['0', '1 %']\n'sender.stack' = ['reno-1990', 'linux-6']";
        let experiment = Experiment::parse(text, "here", &[]).expect("good");
        let plan = Plan::new(&experiment, &[Engine::Simulate]).expect("no kernel is asked");
        let room = tempfile::tempdir().expect("a folder");
        let (folder, _lock) =
            Folder::create(room.path(), &experiment, &[Engine::Simulate]).expect("writable");
        let missing = plan.missing(&folder.inventory().expect("empty"));
        let never = AtomicBool::new(false);
        run_missing(&experiment, &plan, missing, &folder, Limits::default(), &never, |_| ())
            .expect("it runs");
        write_points(&experiment, &plan, &folder, &never, |_, _| ()).expect("writable");

        let file = std::fs::File::open(room.path().join(POINTS)).expect("it is written");
        let mut reader =
            ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build().expect("it");
        let table = reader.next().expect("a batch").expect("readable");
        let numbers = |name| {
            let column =
                table.column_by_name(name).unwrap_or_else(|| panic!("{name} in {:?}", table.schema()));
            column.as_primitive::<Float64Type>().values().to_vec()
        };
        assert_eq!(numbers("path.delay_s"), [0.02, 0.02, 0.02, 0.02, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(numbers("path.loss")[..4], [0.0, 0.0, 0.01, 0.01]);
        let stacks = table.column_by_name("sender.stack").expect("a name").as_string::<i32>();
        assert_eq!(stacks.value(1), "linux-6");

        let written = std::fs::read(room.path().join(POINTS)).expect("it is written");
        let stopped = write_points(&experiment, &plan, &folder, &AtomicBool::new(true), |_, _| ());
        assert!(matches!(stopped, Err(SweepError::Stopped)), "{stopped:?}");
        assert!(std::fs::read(room.path().join(POINTS)).expect("it stays") == written);
        assert!(!room.path().join(format!("{POINTS}.partial")).exists());
    }
}
