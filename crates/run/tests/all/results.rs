//! Results folders: written, read back, refused.

use crate::support;

use farpath_run::{
    ColumnInfo, DelayFigures, DiagnosisTables, Engine, FlowStatistics, Metric, Outcome, Results, ResultsDir,
    ResultsError, Run, SegmentRow, SeriesRow, Table,
};
use farpath_units::Instant;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use support::{flow, run, small_experiment, with_a_stream};

fn write(folder: &Path, runs: &[Run], complete: bool) {
    let mut results = ResultsDir::create(folder).unwrap();
    runs.iter().for_each(|run| results.append(run).unwrap());
    results.finish(complete).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_was_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &small_experiment(), true);
    let results = Results::read(folder.path()).unwrap();
    assert_eq!(results.runs().unwrap(), small_experiment());
    assert_eq!(results.warning(), None);
    assert_eq!(results.provenances().len(), 3);
    assert_eq!(
        names(folder.path()),
        ["flows.parquet", "provenance.json", "segments.parquet", "series.parquet"]
    );
}

/// The golden folder was written before there was ECN.
#[test]
fn what_came_later_is_written_and_is_unknown_in_older_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut runs = small_experiment();
    (runs[1].flows[0].ecn_marks, runs[1].flows[0].ecn_responses) = (Some(12.0), Some(3.0));
    let mut segments = runs[1].segments.to_vec();
    segments[0].ecn = Some(3);
    runs[1].segments = segments.into();
    write(folder.path(), &runs, true);
    assert_eq!(Results::read(folder.path()).unwrap().runs().unwrap(), runs);
    let old = Results::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/formats/v1")).unwrap();
    assert!(old.flows().unwrap().iter().all(|(_, flow)| flow.ecn_marks.is_none()));
}

/// More than a batch and more than a row group, with values as far from each other as can be.
#[test]
fn long_traces_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut runs = small_experiment();
    let (point, segment) = (runs[1].series.to_vec()[0], runs[1].segments.to_vec().remove(0));
    runs[1].series = (0..140_000)
        .map(|i| SeriesRow {
            time: Instant::from_nanos(i),
            value: if i % 3 == 0 { u64::MAX } else { i },
            ..point
        })
        .collect();
    runs[1].segments = (0..20_000_u32)
        .map(|i| SegmentRow { seq: i.wrapping_mul(0x9e37_79b9), ack: u32::MAX * (i % 2), ..segment.clone() })
        .collect();
    write(folder.path(), &runs, true);
    assert!(Results::read(folder.path()).unwrap().runs().unwrap() == runs, "a trace is not what was written");
}

#[test]
fn streams_and_their_messages_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &with_a_stream(), true);
    assert!(names(folder.path()).contains(&"messages.parquet".to_owned()));
    let results = Results::read(folder.path()).unwrap();
    assert_eq!(results.runs().unwrap(), with_a_stream());
    assert_eq!(results.messages().unwrap().len(), 3);
    assert_eq!(results.routers().unwrap().len(), 1);
    assert_eq!(results.air().unwrap().len(), 2);
    assert_eq!(results.stations().unwrap().len(), 2);
    let elsewhere = results.runs_traced(|key| key.seed != Some(7)).unwrap();
    assert!(elsewhere.iter().all(|run| run.messages.is_empty()), "those of one run were not asked for");
}

#[test]
fn tables_without_rows_have_no_file() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &small_experiment(), true);
    let flows_only = [run(0, Engine::Simulate, Some(1), vec![flow(50.0)])];
    write(folder.path(), &flows_only, true);
    assert_eq!(names(folder.path()), ["flows.parquet", "provenance.json"]);
    assert_eq!(Results::read(folder.path()).unwrap().runs().unwrap(), flows_only);
}

#[test]
fn results_of_every_format_version_load() {
    let results = Results::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/formats/v1")).unwrap();
    let mut runs = small_experiment();
    for flow in runs.iter_mut().flat_map(|run| &mut run.flows) {
        // It did not say so then.
        (flow.opened, flow.completed, flow.delays) = (None, None, DelayFigures::default());
    }
    assert_eq!(results.runs().unwrap(), runs);
    assert!(results.experiment().starts_with("title"));
}

#[test]
fn interrupted_results_are_read_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &small_experiment()[..2], false);
    let results = Results::read(folder.path()).unwrap();
    assert!(!results.is_complete());
    assert!(
        results.warning().unwrap().ends_with("the experiment was interrupted; only 2 of its runs are here")
    );
    assert_eq!(results.runs().unwrap(), small_experiment()[..2]);
}

#[test]
fn earlier_results_survive_a_writer_that_did_not_finish() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &small_experiment(), true);
    let before = names(folder.path());
    let mut unfinished = ResultsDir::create(folder.path()).unwrap();
    unfinished.append(&run(9, Engine::Simulate, Some(1), vec![flow(50.0)])).unwrap();
    drop(unfinished);
    assert_eq!(names(folder.path()), before);
    assert_eq!(Results::read(folder.path()).unwrap().runs().unwrap(), small_experiment());
}

#[test]
fn killed_writers_leave_a_folder_that_is_named_incomplete_and_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("flows.parquet.partial"), "PAR1").unwrap();
    fs::write(folder.path().join("report.html.Xy12ab.partial"), "").unwrap();
    assert!(matches!(Results::read(folder.path()), Err(ResultsError::Incomplete { .. })));
    write(folder.path(), &small_experiment(), true);
    assert_eq!(Results::read(folder.path()).unwrap().runs().unwrap(), small_experiment());
}

#[test]
#[cfg(unix)]
fn a_second_writer_is_refused_until_the_first_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = ResultsDir::create(folder.path()).unwrap();
    let refused = ResultsDir::create(folder.path()).unwrap_err();
    assert!(refused.to_string().contains("another run is writing results there"), "{refused}");
    first.append(&run(9, Engine::Simulate, Some(1), vec![flow(50.0)])).unwrap();
    first.finish(true).unwrap();
    assert_eq!(Results::read(folder.path()).unwrap().runs().unwrap().len(), 1, "the first lost nothing");
    write(folder.path(), &small_experiment(), true);
    assert_eq!(Results::read(folder.path()).unwrap().runs().unwrap(), small_experiment());
}

#[test]
fn folders_of_others_are_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
    let refused = ResultsDir::create(folder.path()).unwrap_err();
    assert!(refused.to_string().contains("`thesis.tex`"), "{refused}");
    assert_eq!(names(folder.path()), ["thesis.tex"]);

    fs::remove_file(folder.path().join("thesis.tex")).unwrap();
    fs::write(folder.path().join("provenance.json"), r#"{"format": "wine", "format_version": 1}"#).unwrap();
    assert!(matches!(ResultsDir::create(folder.path()), Err(ResultsError::Occupied { .. })));
    let refused = Results::read(folder.path()).unwrap_err();
    assert!(refused.to_string().ends_with("its provenance.json is of the format `wine`"), "{refused}");
}

#[test]
fn folders_that_cannot_be_made_are_refused_before_any_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(ResultsDir::create(file.join("results")), Err(ResultsError::NotWritable { .. })));
    assert!(matches!(ResultsDir::create(&file), Err(ResultsError::NotWritable { .. })));
}

#[test]
fn what_is_not_results_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let reason = |path: PathBuf| Results::read(path).unwrap_err().to_string();
    assert!(reason(folder.path().to_owned()).ends_with("not a results folder: it has no provenance.json"));
    assert!(reason(folder.path().join("none")).ends_with("there is no such folder"));
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(reason(folder.path().join("file")).ends_with("it is not a folder"));
}

#[test]
fn results_of_a_later_program_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("provenance.json"),
        r#"{"format": "farpath-results", "format_version": 2, "rows": []}"#,
    )
    .unwrap();
    let refused = Results::read(folder.path()).unwrap_err();
    assert!(matches!(refused, ResultsError::NewerFormat { found: 2, known: 1, .. }), "{refused}");
}

#[test]
fn damaged_tables_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &small_experiment(), true);
    let flows = folder.path().join("flows.parquet");
    let text = fs::read(&flows).unwrap();
    fs::write(&flows, &text[..text.len() - 9]).unwrap();
    let results = Results::read(folder.path()).unwrap();
    assert!(matches!(results.flows(), Err(ResultsError::ReadTable { path, .. }) if path == flows));
    // A table of another kind under its name.
    fs::copy(folder.path().join("series.parquet"), &flows).unwrap();
    let refused = std::error::Error::source(&results.flows().unwrap_err()).unwrap().to_string();
    assert_eq!(refused, "column `direction`: it is missing");
    // And of another run, with another number of rows.
    let other = tempfile::tempdir().unwrap();
    write(other.path(), &small_experiment()[..1], true);
    fs::copy(other.path().join("flows.parquet"), &flows).unwrap();
    assert!(matches!(results.flows(), Err(ResultsError::Rows { found: 1, expected: 4, .. })));
}

#[test]
fn runs_of_another_experiment_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = ResultsDir::create(folder.path()).unwrap();
    let mut runs = small_experiment();
    runs[1].provenance.experiment = format!("{}# changed\n", runs[1].provenance.experiment).into();
    results.append(&runs[0]).unwrap();
    assert!(matches!(results.append(&runs[1]), Err(ResultsError::OtherExperiment { .. })));
}

#[test]
fn every_column_says_what_it_means_and_names_its_unit() {
    for table in Table::ALL {
        assert_eq!(Table::from_name(table.name()), Some(table));
        let run = &with_a_stream()[1];
        let batch = table.batches(run).next().expect("it has rows");
        assert_eq!(batch.num_columns(), table.columns().len());
        for (column, field) in table.columns().iter().zip(batch.schema().fields()) {
            assert_eq!(field.name(), column.name);
            assert_eq!(field.metadata()["description"], column.about);
            assert_eq!(field.metadata().get("unit").map_or("", String::as_str), column.unit);
            let ending = match column.unit {
                "" => continue,
                "bit/s" => "_bit_per_s",
                "ns" => "_ns",
                "J" => "_j",
                _ => "bytes",
            };
            let named = column.name.ends_with(ending) || ["bytes_read", "bytes_back"].contains(&column.name);
            assert!(named, "{}", column.name);
        }
    }
}

/// Lines of a table of the guide, behind `<!-- generated: ... -->`.
fn generated() -> Vec<(String, Vec<String>)> {
    let mut tables: Vec<(String, Vec<String>)> = Table::ALL
        .into_iter()
        .filter(|table| *table != Table::Provenance)
        .map(|table| {
            let heads = ["| column | unit | meaning |", "| --- | --- | --- |"].map(str::to_owned);
            let rows =
                table.columns().into_iter().map(|ColumnInfo { name, unit, about }| row(name, unit, about));
            (format!("columns of {}", table.name()), heads.into_iter().chain(rows).collect())
        })
        .collect();
    for (name, columns) in DiagnosisTables::columns() {
        let heads = ["| column | unit | meaning |", "| --- | --- | --- |"].map(str::to_owned);
        let rows = columns.into_iter().map(|ColumnInfo { name, unit, about }| row(name, unit, about));
        tables.push((format!("columns of {name}"), heads.into_iter().chain(rows).collect()));
    }
    let heads = ["| metric | unit | meaning |", "| --- | --- | --- |"].map(str::to_owned);
    let rows = Metric::ALL.into_iter().map(|metric| row(metric.name(), metric.unit(), metric.about()));
    tables.push(("metrics of series".to_owned(), heads.into_iter().chain(rows).collect()));
    let heads = ["| statistic |", "| --- |"].map(str::to_owned);
    let rows = FlowStatistics::NAMES.iter().map(|name| format!("| `{name}` |"));
    tables.push(("statistics over seeds".to_owned(), heads.into_iter().chain(rows).collect()));
    tables
}

fn row(name: &str, unit: &str, about: &str) -> String {
    format!("| `{name}` | {unit} | {about} |").replace("|  |", "| |")
}

/// `FARPATH_BLESS=1` writes them anew.
#[test]
fn the_guide_has_every_column() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
    let guide = fs::read_to_string(path).unwrap();
    let mut renewed: Vec<&str> = guide.lines().collect();
    let tables = generated();
    for (name, table) in &tables {
        let mark = format!("<!-- generated: {name} -->");
        let start = renewed.iter().position(|line| *line == mark).unwrap_or_else(|| panic!("no {mark}")) + 1;
        let length = renewed[start..].iter().take_while(|line| line.starts_with('|')).count();
        renewed.splice(start..start + length, table.iter().map(String::as_str));
    }
    let renewed = renewed.join("\n") + "\n";
    if std::env::var_os("FARPATH_BLESS").is_some() {
        fs::write(path, renewed).unwrap();
        return;
    }
    for (shown, is) in guide.lines().zip(renewed.lines()) {
        assert_eq!(shown, is, "docs/results.md is not what the schema says: FARPATH_BLESS=1 writes it anew");
    }
    assert_eq!(guide, renewed);
}

fn known_or_not() -> impl Strategy<Value = Option<f64>> {
    proptest::option::of(-1e12..1e12)
}

prop_compose! {
    fn any_run()(
        point in 0..5_u64,
        seed in proptest::option::of(any::<u64>()),
        numbers in proptest::collection::vec((any::<u64>(), known_or_not(), any::<String>()), 0..4),
        causes in proptest::collection::vec((any::<String>(), any::<u64>()), 0..3),
        template in 0..3_usize,
        caveats in proptest::collection::vec(any::<String>(), 0..3),
    ) -> Run {
        let mut run = small_experiment().swap_remove(template);
        (run.point, run.seed, run.provenance.caveats) = (point, seed, caveats);
        for (number, known, text) in numbers {
            let mut flow = run.flows[0].clone();
            flow.flow = number as u32;
            flow.ended_at = Some(farpath_units::Instant::from_nanos(number));
            flow.bytes.0 = number;
            flow.outcome = if number % 2 == 0 { Outcome::ConnectTimedOut } else { Outcome::Horizon };
            flow.detail = text;
            flow.timeouts = known;
            flow.mean_cwnd = known;
            flow.drops_by_cause = causes.iter().map(|(cause, n)| (cause.clone().into(), *n)).collect();
            run.flows.push(flow);
        }
        run
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_runs_are_read_back_as_they_were(runs in proptest::collection::vec(any_run(), 0..6)) {
        let mut runs = runs;
        runs.sort_by_key(Run::key);
        runs.dedup_by_key(|run| run.key());
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &runs, true);
        prop_assert_eq!(Results::read(folder.path()).unwrap().runs().unwrap(), runs);
    }
}
