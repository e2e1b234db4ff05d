//! Folders of results and chunks of sweeps with a file of somebody else in them.

use crate::Bytes;
use farpath_run::{Engine, Results, ResultsDir, Run, RunKey};
use farpath_sweep::read_runs;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The files that are replaced, in the order of the first byte.
const FILES: [&str; 6] = [
    "provenance.json",
    "flows.parquet",
    "series.parquet",
    "segments.parquet",
    "messages.parquet",
    "routers.parquet",
];

/// Whole results, the same in each process but for when they were made.
struct Whole {
    folder: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn whole() -> &'static Whole {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut results = ResultsDir::create(folder.path()).expect("writable");
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/run/tests/golden/formats/v1");
        let mut runs = Results::read(golden).expect("golden results").runs().expect("whole");
        runs.push(Run::new(
            RunKey { point: 9, engine: Engine::Simulate, seed: Some(1) },
            runs[0].provenance.clone(),
        ));
        runs.iter().for_each(|run| results.append(run).expect("writable"));
        results.finish(true).expect("writable");
        let paths = FILES.map(|name| folder.path().join(name));
        let files = paths.map(|path| (path.clone(), fs::read(path).unwrap_or_default())).to_vec();
        Whole { folder, files }
    })
}

/// The files that seeds are made of: what the first byte is, its name, and what it holds when it is whole.
pub fn whole_files() -> impl Iterator<Item = (u8, &'static str, &'static [u8])> {
    (0..).zip(FILES).zip(&whole().files).map(|((number, name), (_, bytes))| (number, name, &bytes[..]))
}

/// The first byte says which file the rest takes the place of; in a third of all cases it is changed there and not as a whole.
pub fn results(data: &[u8]) {
    let mut bytes = Bytes(data);
    let kind = bytes.u8();
    let (file, whole_text) = &whole().files[usize::from(kind >> 2) % FILES.len()];
    let text = match kind % 4 {
        3 => patched(whole_text, &mut bytes),
        2 => return chunk(bytes.0),
        _ => bytes.0.to_vec(),
    };
    fs::write(file, text).expect("writable");
    if let Ok(results) = Results::read(whole().folder.path()) {
        let _ = results.runs();
        let _ = (results.warning(), results.experiment_summary(), results.experiment().len());
    }
    fs::write(file, whole_text).expect("writable");
}

fn patched(whole: &[u8], bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut text = whole.to_vec();
    while !bytes.is_empty() && !text.is_empty() {
        let (what, place, byte) = (bytes.u8(), bytes.below(text.len() as u64) as usize, bytes.u8());
        match what % 4 {
            0 => text.truncate(place),
            1 => drop(text.remove(place)),
            2 => text.insert(place, byte),
            _ => text[place] = byte,
        }
    }
    text
}

fn chunk(bytes: &[u8]) {
    let file = whole().folder.path().join("chunk.parquet");
    fs::write(&file, bytes).expect("writable");
    let _ = read_runs(&file, |_, _| Some(0));
    fs::remove_file(&file).expect("it was written");
}

/// libFuzzer ends the process at each panic, also at one of the Parquet library's, which are caught and become errors
/// (`farpath_run::parquet_file`): those go by.
pub fn forgive_parquet() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.location().is_some_and(|place| place.file().contains("/parquet-")) {
            end(panic);
        }
    }));
}
