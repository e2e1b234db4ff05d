//! How new results come into the place of earlier ones: in one step, wherever a writer is killed, and over nothing of others.

use crate::support::{flow, run, small_experiment};
use farpath_run::{Engine, Results, ResultsDir, ResultsError, Run};
use std::fs;
use std::path::{Path, PathBuf};

const FILES: [&str; 5] =
    ["flows.parquet", "series.parquet", "segments.parquet", "report.html", "provenance.json"];

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write(folder: &Path, runs: &[Run], report: Option<&str>) {
    let mut results = ResultsDir::create(folder).unwrap();
    runs.iter().for_each(|run| results.append(run).unwrap());
    results.close(true).unwrap();
    report.iter().for_each(|text| fs::write(results.report(), text).unwrap());
    results.commit().unwrap();
}

fn others() -> Vec<Run> {
    vec![run(0, Engine::Simulate, Some(1), vec![flow(50.0)])]
}

fn runs(folder: &Path) -> Vec<Run> {
    Results::read(folder).unwrap().runs().unwrap()
}

/// A folder as it is when its writer was killed after the step, with so many files in their place already.
fn killed_after(moved: usize) -> (tempfile::TempDir, PathBuf) {
    let room = tempfile::tempdir().unwrap();
    let (folder, new) = (room.path().join("results"), room.path().join("new"));
    write(&folder, &others(), Some("the old report"));
    write(&new, &small_experiment(), Some("the new report"));
    let committed = folder.join("results.committed");
    fs::rename(&new, &committed).unwrap();
    for name in &FILES[..moved] {
        fs::rename(committed.join(name), folder.join(name)).unwrap();
    }
    (room, folder)
}

#[test]
fn a_writer_killed_after_the_step_leaves_the_new_results() {
    for moved in 0..=FILES.len() {
        let (_room, folder) = killed_after(moved);
        assert_eq!(runs(&folder), small_experiment(), "{moved} files were moved");
        let mut expected = FILES.map(str::to_owned);
        expected.sort();
        assert_eq!(names(&folder), expected, "{moved} files were moved");
        assert_eq!(fs::read_to_string(folder.join("report.html")).unwrap(), "the new report");
    }
}

#[test]
#[cfg(unix)]
fn what_a_reader_may_not_put_in_place_it_reads_all_the_same() {
    // In use: who writes there puts it in place.
    let (_room, folder) = killed_after(2);
    let file = fs::File::open(&folder).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(runs(&folder), small_experiment());
    assert!(folder.join("results.committed").exists());
}

#[test]
fn tables_and_reports_that_new_results_lack_go_wherever_the_writer_is_killed() {
    let room = tempfile::tempdir().unwrap();
    let (folder, new) = (room.path().join("results"), room.path().join("new"));
    write(&folder, &small_experiment(), Some("the old report"));
    write(&new, &others(), None);
    // As the step leaves them.
    for name in ["series.parquet.removed", "segments.parquet.removed", "report.html.removed"] {
        fs::write(new.join(name), "").unwrap();
    }
    fs::rename(new, folder.join("results.committed")).unwrap();
    assert_eq!(runs(&folder), others());
    assert_eq!(names(&folder), ["flows.parquet", "provenance.json"]);
}

#[test]
fn a_writer_killed_before_the_step_leaves_the_old_results_and_the_next_one_cleans_up() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &small_experiment(), None);
    let before = names(folder.path());
    for left in ["results.a1B2c3.partial/flows.parquet", "results.d4E5f6.partial/provenance.json"] {
        let left = folder.path().join(left);
        fs::create_dir(left.parent().unwrap()).unwrap();
        fs::write(left, "half").unwrap();
    }
    // Of earlier programs, and of reports.
    fs::write(folder.path().join("flows.parquet.partial"), "half").unwrap();
    fs::write(folder.path().join("report.html.a1B2c3.partial"), "half").unwrap();
    assert_eq!(runs(folder.path()), small_experiment());
    write(folder.path(), &small_experiment(), None);
    assert_eq!(names(folder.path()), before);
    assert_eq!(runs(folder.path()), small_experiment());
}

#[test]
fn what_a_user_keeps_beside_results_stays() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &small_experiment(), None);
    fs::create_dir(folder.path().join("figures")).unwrap();
    for mine in ["notes.md", "figures/one.svg", "results.mine.partial"] {
        fs::write(folder.path().join(mine), "mine").unwrap();
    }
    write(folder.path(), &others(), None);
    assert_eq!(runs(folder.path()), others());
    let expected = ["figures", "flows.parquet", "notes.md", "provenance.json", "results.mine.partial"];
    assert_eq!(names(folder.path()), expected);
    assert_eq!(names(&folder.path().join("figures")), ["one.svg"]);
}

#[test]
#[cfg(unix)]
fn links_and_fifos_of_others_are_neither_followed_nor_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::symlink;
    let room = tempfile::tempdir().unwrap();
    let victim = room.path().join("victim");
    fs::write(&victim, "years of work").unwrap();
    let planted = ["flows.parquet.partial", "provenance.json.partial", "flows.parquet", "report.html"];
    for name in planted {
        let folder = room.path().join(format!("linked {name}"));
        fs::create_dir(&folder).unwrap();
        symlink(&victim, folder.join(name)).unwrap();
        let refused = ResultsDir::create(&folder).unwrap_err();
        assert!(matches!(&refused, ResultsError::Occupied { found, .. } if found == name), "{refused}");
        // The same among results.
        let folder = room.path().join(format!("results {name}"));
        write(&folder, &small_experiment(), None);
        let _ = fs::remove_file(folder.join(name));
        symlink(&victim, folder.join(name)).unwrap();
        write(&folder, &others(), Some("the report"));
        assert_eq!(runs(&folder), others());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "years of work", "{name}");
    }
    for name in planted.into_iter().chain(["provenance.json"]) {
        let folder = room.path().join(format!("fifo {name}"));
        fs::create_dir(&folder).unwrap();
        mknodat(CWD, folder.join(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = ResultsDir::create(&folder).unwrap_err();
        assert!(matches!(&refused, ResultsError::Occupied { found, .. } if found == name), "{refused}");
    }
    let folder = room.path().join("fifo provenance.json");
    let error = std::error::Error::source(&Results::read(folder).unwrap_err()).unwrap().to_string();
    assert_eq!(error, "expected a file, found a FIFO");
}

#[test]
#[cfg(unix)]
fn a_link_in_the_place_of_what_is_being_written_is_noticed_and_earlier_results_stay() {
    let room = tempfile::tempdir().unwrap();
    let (folder, victim) = (room.path().join("results"), room.path().join("victim"));
    write(&folder, &small_experiment(), None);
    write(&victim, &small_experiment(), None);
    let mut results = ResultsDir::create(&folder).unwrap();
    results.append(&others()[0]).unwrap();
    results.close(true).unwrap();
    let staging = results.report().parent().unwrap().to_owned();
    fs::rename(&staging, room.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(&victim, &staging).unwrap();
    let refused = results.append(&others()[0]).unwrap_err();
    assert!(matches!(refused, ResultsError::Lost { .. }), "{refused}");
    assert!(matches!(results.commit(), Err(ResultsError::Write { .. })));
    assert_eq!(runs(&folder), small_experiment());
    assert_eq!(runs(&victim), small_experiment());
}

#[test]
fn a_folder_that_is_gone_is_noticed_at_the_next_run() {
    let room = tempfile::tempdir().unwrap();
    let folder = room.path().join("results");
    let mut results = ResultsDir::create(&folder).unwrap();
    results.append(&small_experiment()[0]).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let refused = results.append(&small_experiment()[1]).unwrap_err();
    assert!(matches!(refused, ResultsError::Lost { .. }), "{refused}");
}
