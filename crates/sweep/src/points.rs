//! `points.parquet`: what came out, a row for each point and engine.

use crate::error::SweepError;
use crate::folder::Folder;
use crate::plan::Plan;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use farpath_experiment::{Experiment, Point, numbers};
use farpath_run::{Outcome, PointSummary, Statistic};
use parquet::arrow::ArrowWriter;
use std::sync::Arc;

/// Its name within the folder.
pub const POINTS: &str = "points.parquet";

/// Reads the finished runs, and writes and gives a summary for each point and engine, in the order of points, with the
/// caveats of its runs.
///
/// # Errors
/// A chunk that cannot be read, a table that cannot be written.
pub fn write_points(
    experiment: &Experiment,
    plan: &Plan,
    folder: &Folder,
) -> Result<Vec<(PointSummary, Vec<String>)>, SweepError> {
    let mut summaries = Vec::new();
    folder.groups(plan, |wanted, runs| {
        let mut caveats: Vec<String> = Vec::new();
        for caveat in runs.iter().flat_map(|run| &run.provenance.caveats) {
            if !caveats.contains(caveat) {
                caveats.push(caveat.clone());
            }
        }
        // Runs know the first of the points that are alike.
        let of_point = |summary| PointSummary { point: wanted.point as u64, ..summary };
        let summary = PointSummary::of_runs(runs).into_iter().map(of_point);
        summaries.extend(summary.map(|summary| (summary, caveats.clone())));
    })?;
    summaries.sort_by_key(|(summary, _)| (summary.point, summary.engine));
    let table = table(experiment, plan, &summaries);
    let mut bytes = Vec::new();
    ArrowWriter::try_new(&mut bytes, table.schema(), None)
        .and_then(|mut writer| {
            writer.write(&table)?;
            writer.close()
        })
        .map_err(SweepError::Encode)?;
    folder.put(POINTS, &bytes)?;
    Ok(summaries)
}

fn table(experiment: &Experiment, plan: &Plan, summaries: &[(PointSummary, Vec<String>)]) -> RecordBatch {
    let mut columns: Vec<(String, DataType, ArrayRef)> = Vec::new();
    let texts = |of: &dyn Fn(&PointSummary) -> Option<String>| -> ArrayRef {
        Arc::new(StringArray::from_iter(summaries.iter().map(|(summary, _)| of(summary))))
    };
    let counts = |of: &dyn Fn(&PointSummary) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(summaries.iter().map(|(summary, _)| of(summary))))
    };
    let reals = |of: &dyn Fn(&PointSummary) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from_iter(summaries.iter().map(|(summary, _)| of(summary))))
    };
    let mut add = |name: &str, data_type, column| columns.push((name.to_owned(), data_type, column));
    add("point", DataType::UInt64, counts(&|summary| summary.point));
    add(
        "point_key",
        DataType::Utf8,
        texts(&|summary| Some(plan.key(summary.point, summary.engine).to_string())),
    );
    add("engine", DataType::Utf8, texts(&|summary| Some(summary.engine.name().to_owned())));
    for key in experiment.axes.iter().flat_map(|axis| &axis.keys) {
        let values: Vec<&str> = experiment.points().iter().map(|point| value_of(point, key)).collect();
        match numbers(&values) {
            Some((numbers, unit)) => {
                let name = format!("{key}{}", suffix(unit));
                add(&name, DataType::Float64, reals(&|summary| Some(numbers[summary.point as usize])));
            }
            None => {
                add(key, DataType::Utf8, texts(&|summary| Some(values[summary.point as usize].to_owned())));
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
    if let Some((first, _)) = summaries.first() {
        for (place, (name, _)) in first.statistics().into_iter().enumerate() {
            let statistic = |of: fn(&Statistic) -> Option<f64>| {
                reals(&move |summary| of(&summary.statistics()[place].1?))
            };
            add(name, DataType::Float64, statistic(|statistic| Some(statistic.mean)));
            add(&format!("{name}_ci95"), DataType::Float64, statistic(Statistic::ci95));
            add(&format!("{name}_sd"), DataType::Float64, statistic(|statistic| statistic.sd));
        }
    }
    let fields: Vec<Field> =
        columns.iter().map(|(name, data_type, _)| Field::new(name, data_type.clone(), true)).collect();
    let columns = columns.into_iter().map(|(.., column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("one length, and types as declared")
}

/// What a swept key is at a point.
pub fn value_of<'a>(point: &'a Point, key: &str) -> &'a str {
    let swept = point.swept.iter().find(|(other, _)| other == key);
    &swept.expect("every point has a value of every axis").1
}

/// How a column's name says its unit.
fn suffix(unit: &str) -> &'static str {
    match unit {
        "s" => "_s",
        "B" => "_bytes",
        "bit/s" => "_bit_per_s",
        "W" => "_w",
        _ => "",
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
    use std::sync::atomic::AtomicBool;

    #[test]
    fn swept_values_are_numbers_of_the_base_unit_and_names_stay_names() {
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
        write_points(&experiment, &plan, &folder).expect("writable");

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
    }
}
