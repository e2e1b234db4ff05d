//! A folder of captures, a file for each run that has packets.

use crate::job::Job;
use crate::{EngineError, SimulateError};
use farpath_emulate::EmulateError;
use farpath_files::{PARTIAL, Replacement, remove_abandoned, whole_name};
use farpath_observe::capture::{CaptureError, MAX_CAPTURES};
use farpath_run::Engine;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What is made and removed at once, to see whether files can be made.
const PROBE: &str = "writable";

/// A folder that takes the captures of a batch: `point-0-seed-1.pcapng`, `point-0-seed-1-emulate.pcapng` ...
///
/// A file has its name when its run is over, and is whole then; a file of that name from an earlier batch is there
/// until that moment. A folder takes one batch at a time.
#[derive(Debug)]
pub struct CaptureDir {
    path: PathBuf,
    snaplen: u32,
}

impl CaptureDir {
    /// Makes the folder, or takes one that holds nothing but captures of the same points and seeds, which will be
    /// replaced. Of each packet the first `snaplen` bytes are kept. Whether files can be written is known after
    /// this call, before any run.
    ///
    /// # Errors
    /// No run with packets among `jobs`, or more than [`MAX_CAPTURES`]: then nothing is made. A folder that cannot be
    /// written, or that holds something else.
    pub fn create(path: impl Into<PathBuf>, snaplen: u32, jobs: &[Job]) -> Result<CaptureDir, CaptureError> {
        let path = path.into();
        let names: HashSet<String> = jobs
            .iter()
            .filter(|job| job.engine != Engine::Predict)
            .filter_map(|job| job.seed.map(|seed| file_name(job.engine, job.point, seed)))
            .collect();
        match names.len() {
            0 => return Err(CaptureError::NoRuns),
            1..=MAX_CAPTURES => {}
            more => return Err(CaptureError::TooMany(more)),
        }
        let not_writable = |source| CaptureError::NotWritable { path: path.clone(), source };
        farpath_files::folder_or_nothing(&path)
            .and_then(|()| fs::create_dir_all(&path))
            .map_err(not_writable)?;
        if let Some(found) = foreign_file(&path, &names).map_err(not_writable)? {
            return Err(CaptureError::Occupied { path, found });
        }
        remove_abandoned(&path, is_capture);
        drop(Replacement::create_beside(path.join(PROBE)).map_err(not_writable)?);
        Ok(CaptureDir { path, snaplen })
    }

    /// Makes one run into its file. What `make` gives is given back; the file is kept where `is_whole` says so.
    pub(crate) fn write<R>(
        &self,
        engine: Engine,
        point: usize,
        seed: u64,
        make: impl FnOnce(&File, u32) -> Result<R, EngineError>,
        is_whole: impl FnOnce(&R) -> bool,
    ) -> Result<R, EngineError> {
        let name = file_name(engine, point, seed);
        let file = self.path.join(&name);
        let write_error = |source| CaptureError::Write { path: file.clone(), source };
        let out = Replacement::create_beside(&file).map_err(write_error)?;
        let made = match make(out.file(), self.snaplen) {
            Err(
                EngineError::Simulate(SimulateError::Capture(CaptureError::Output(source)))
                | EngineError::Emulate(EmulateError::Capture(CaptureError::Output(source))),
            ) => return Err(write_error(source).into()),
            other => other?,
        };
        if is_whole(&made) {
            out.commit().map_err(write_error)?;
        }
        Ok(made)
    }
}

fn file_name(engine: Engine, point: usize, seed: u64) -> String {
    match engine {
        Engine::Simulate => format!("point-{point}-seed-{seed}.pcapng"),
        other => format!("point-{point}-seed-{seed}-{other}.pcapng"),
    }
}

/// The name of something in the folder that is neither one of `ours` nor what an interrupted batch leaves.
fn foreign_file(folder: &Path, ours: &HashSet<String>) -> io::Result<Option<String>> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let unfinished = whole_name(&name).or(name.strip_suffix(PARTIAL)).is_some_and(is_capture);
        if !unfinished && !ours.contains(&name) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Whether a file of this name is a capture of some run, or would be one.
fn is_capture(name: &str) -> bool {
    name == PROBE || (name.starts_with("point-") && name.ends_with(".pcapng"))
}
