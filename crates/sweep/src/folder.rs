//! The folder of a sweep: `sweep.json`, and a file for each finished chunk.

use crate::chunk::{self, Chunk, VERSION, read_runs};
use crate::error::SweepError;
use crate::inventory::Inventory;
use crate::key::{PointKey, program};
use crate::plan::{Plan, Wanted};
use crate::seeds::Seeds;
use farpath_experiment::{Experiment, Override};
use farpath_files::{PARTIAL, Replacement, remove_abandoned, whole_name};
use farpath_run::{Engine, FolderLock, Run};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a folder was last asked for.
const MANIFEST: &str = "sweep.json";
const FORMAT: &str = "farpath-sweep";
/// The table of what came out, within the folder.
pub const POINTS: &str = "points.parquet";
/// Where chunks are.
const CHUNKS: &str = "chunks";
/// So many runs, some 6 kB each, are held while points are summed up.
const HELD: u64 = if cfg!(test) { 7 } else { 1 << 14 };

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: String,
    format_version: u64,
    program: String,
    /// The experiment as it was named: other files that it names are looked for beside it.
    origin: String,
    experiment: String,
    changes: Vec<String>,
    engines: Vec<String>,
}

#[derive(Deserialize)]
struct Version {
    format: String,
    format_version: u64,
}

/// The folder of a sweep.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Runs that nobody asks for.
    pub runs: u64,
    /// Files, those left unfinished included.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Folder {
    /// Makes the folder of an experiment's sweep, or takes the one that is there, and keeps what it is asked for. The lock
    /// is given back when it is dropped.
    ///
    /// # Errors
    /// A folder that holds something else, is of a later program, cannot be written, or is in use.
    pub fn create(
        path: impl Into<PathBuf>,
        experiment: &Experiment,
        engines: &[Engine],
    ) -> Result<(Folder, FolderLock), SweepError> {
        let path = path.into();
        let not_writable = |source| SweepError::NotWritable { path: path.clone(), source };
        farpath_files::folder_or_nothing(&path).map_err(not_writable)?;
        match fs::read_dir(&path) {
            Ok(entries) => {
                if path.join(MANIFEST).exists() {
                    Folder::read_manifest(&path)?;
                } else if let Some(found) =
                    entries.flatten().map(|entry| entry.file_name()).find(|name| !ours(name))
                {
                    return Err(SweepError::Occupied { path, found: found.display().to_string() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(not_writable(error)),
        }
        fs::create_dir_all(path.join(CHUNKS)).map_err(not_writable)?;
        let lock = FolderLock::take(&path)?;
        remove_abandoned(&path, |name| name == MANIFEST || name == POINTS);
        remove_abandoned(&path.join(CHUNKS), |name| name.ends_with(".parquet"));
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            format_version: VERSION,
            program: program().to_owned(),
            origin: experiment.origin.clone(),
            experiment: experiment.text.to_string(),
            changes: experiment.overrides.iter().map(|change| change.text().to_owned()).collect(),
            engines: engines.iter().map(|engine| engine.name().to_owned()).collect(),
        };
        let text = serde_json::to_string_pretty(&manifest).expect("a manifest is plain data");
        let folder = Folder { path };
        folder.put(MANIFEST, format!("{text}\n").as_bytes())?;
        Ok((folder, lock))
    }

    /// Opens one that is there, with what it was last asked for.
    ///
    /// # Errors
    /// No sweep, or of a later program; an experiment whose files are gone or changed so that it is refused.
    pub fn open(path: impl Into<PathBuf>) -> Result<(Folder, Experiment, Vec<Engine>), SweepError> {
        let path = path.into();
        let manifest = Folder::read_manifest(&path)?;
        let not_sweep = |reason: String| SweepError::NotSweep { path: path.clone(), reason };
        let changes = manifest.changes.iter().map(|text| text.parse::<Override>());
        let changes: Vec<Override> =
            changes.collect::<Result<_, _>>().map_err(|error| not_sweep(error.to_string()))?;
        let engine = |name: &String| {
            Engine::from_name(name).ok_or_else(|| not_sweep(format!("`{name}` is not an engine")))
        };
        let engines = manifest.engines.iter().map(engine).collect::<Result<_, _>>()?;
        let experiment = Experiment::parse(&manifest.experiment, &manifest.origin, &changes)?;
        Ok((Folder { path }, experiment, engines))
    }

    fn read_manifest(path: &Path) -> Result<Manifest, SweepError> {
        let file = path.join(MANIFEST);
        let not_sweep = |reason: String| SweepError::NotSweep { path: path.to_owned(), reason };
        let text = match farpath_files::read_manifest(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_sweep(format!("it has no {MANIFEST}")));
            }
            Err(source) => return Err(SweepError::Read { path: file, source }),
        };
        let version: Version =
            serde_json::from_slice(&text).map_err(|error| not_sweep(format!("{MANIFEST}: {error}")))?;
        if version.format != FORMAT {
            return Err(not_sweep(format!("its {MANIFEST} is of the format `{}`", version.format)));
        }
        if version.format_version > VERSION {
            let found = version.format_version;
            return Err(SweepError::NewerFormat { path: path.to_owned(), found, known: VERSION });
        }
        serde_json::from_slice(&text).map_err(|error| not_sweep(format!("{MANIFEST}: {error}")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a chunk.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep(&self, chunk: &Chunk) -> Result<(), SweepError> {
        self.put(&format!("{CHUNKS}/{}", chunk.name), &chunk.bytes)
    }

    /// A file that is there whole, or not at all, whatever ends the program or the machine.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), SweepError> {
        self.put_with(name, |mut file| {
            file.write_all(bytes).map_err(|source| SweepError::Write { path: self.path.join(name), source })
        })
    }

    /// The same of what `write` writes.
    pub(crate) fn put_with(
        &self,
        name: &str,
        write: impl FnOnce(&File) -> Result<(), SweepError>,
    ) -> Result<(), SweepError> {
        let path = self.path.join(name);
        let not_written = |source| SweepError::Write { path: path.clone(), source };
        let file = Replacement::create_beside(&path).map_err(not_written)?;
        write(file.file())?;
        file.commit().map_err(not_written)
    }

    /// The files of finished chunks, by name.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn chunks(&self) -> Result<Vec<PathBuf>, SweepError> {
        self.files(|name| name.ends_with(".parquet"))
    }

    fn files(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, SweepError> {
        let path = self.path.join(CHUNKS);
        let entries = fs::read_dir(&path).map_err(|source| SweepError::Read { path, source })?;
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&wanted))
            .collect();
        paths.sort();
        Ok(paths)
    }

    /// Which runs are there, by what the files say of themselves.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn inventory(&self) -> Result<Inventory, SweepError> {
        let mut there = Inventory::default();
        for path in self.chunks()? {
            there.add_file(size(&path), &chunk::header(&path)?.spans);
        }
        there.sort();
        Ok(there)
    }

    /// Hands over the runs of each point and engine, as far as they are there, by seed; in the order of points. What is
    /// held meanwhile are the runs of some points, and files whose points are far apart are read again for others. Points
    /// without runs are not looked at, however many there are.
    ///
    /// # Errors
    /// A file that cannot be read; [`SweepError::Stopped`] when `stop` is set.
    pub fn groups(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
        mut take: impl FnMut(&Wanted, &[Run]),
    ) -> Result<(), SweepError> {
        let FilesByPoint { files, points } = self.files_by_point(plan)?;
        for stretch in plan.stretches(&points, HELD) {
            let mut groups: HashMap<(PointKey, Engine), Group> = HashMap::new();
            for wanted in &stretch {
                groups.entry((wanted.key, wanted.engine)).or_default().missing.add(wanted.seeds.clone());
            }
            let (first, last) = (stretch[0].point as u32, stretch[stretch.len() - 1].point as u32);
            for (points, path) in &files {
                if *points.end() < first || last < *points.start() {
                    continue;
                }
                if stop.load(Ordering::Relaxed) {
                    return Err(SweepError::Stopped);
                }
                let of_key = |key, engine| {
                    groups.contains_key(&(key, engine)).then(|| u64::from(plan.points(key, engine)[0]))
                };
                for (key, run) in read_runs(path, of_key)? {
                    groups.get_mut(&(key, run.engine)).expect("it was asked for").put(run);
                }
            }
            for group in groups.values_mut() {
                group.runs.sort_by_key(|run| run.seed);
            }
            for wanted in &stretch {
                let runs = &groups[&(wanted.key, wanted.engine)].runs;
                let seed = |run: &Run| run.seed.unwrap_or(0);
                let from = runs.partition_point(|run| seed(run) < wanted.seeds.start);
                let to = runs.partition_point(|run| seed(run) < wanted.seeds.end);
                if from < to {
                    take(wanted, &runs[from..to]);
                }
            }
        }
        Ok(())
    }

    /// Chunks that hold runs of points of the plan.
    fn files_by_point(&self, plan: &Plan) -> Result<FilesByPoint, SweepError> {
        let mut found = FilesByPoint::default();
        for path in self.chunks()? {
            let mut range: Option<RangeInclusive<u32>> = None;
            for span in chunk::header(&path)?.spans {
                let points = Engine::from_name(&span.engine).map(|engine| plan.points(span.key, engine));
                if let Some(points @ ([first, .., last] | [first @ last])) = points {
                    let (start, end) = range.map_or((*first, *last), |range| range.into_inner());
                    range = Some(start.min(*first)..=end.max(*last));
                    found.points.extend_from_slice(points);
                }
            }
            found.files.extend(range.map(|range| (range, path)));
        }
        found.points.sort_unstable();
        found.points.dedup();
        Ok(found)
    }

    /// Removes what nobody asks for: runs of other points, engines and programs, and files that were never finished. Of a
    /// point that is asked for every seed stays. A file that holds both is written anew. Without `remove` it only says what would go.
    ///
    /// # Errors
    /// A file that cannot be read, written or removed.
    pub fn clean(&self, plan: &Plan, remove: bool) -> Result<Cleaned, SweepError> {
        let mut cleaned = Cleaned::default();
        for path in self.chunks()? {
            let spans = chunk::header(&path)?.spans;
            let all: u64 = spans.iter().map(|span| span.count).sum();
            let live = spans.iter().filter(|span| plan.wants(span.key, &span.engine));
            let live: u64 = live.map(|span| span.count).sum();
            if live == all {
                continue;
            }
            cleaned.runs += all - live;
            cleaned.files += u64::from(live == 0);
            cleaned.bytes += if live == 0 { size(&path) } else { 0 };
            if remove {
                if live > 0 {
                    let runs = read_runs(&path, |key, engine| {
                        let wanted = plan.wants(key, engine.name());
                        wanted.then(|| u64::from(plan.points(key, engine)[0]))
                    })?;
                    let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
                    self.keep(&Chunk::encode(&runs, |run| plan.key(run.point, run.engine))?)?;
                }
                fs::remove_file(&path).map_err(|source| SweepError::Write { path, source })?;
            }
        }
        for path in self.files(|name| name.ends_with(PARTIAL))? {
            cleaned.files += 1;
            cleaned.bytes += size(&path);
            if remove {
                fs::remove_file(&path).map_err(|source| SweepError::Write { path, source })?;
            }
        }
        Ok(cleaned)
    }
}

/// Chunks that hold runs of a plan.
#[derive(Default)]
struct FilesByPoint {
    /// Each with the first and the last of its points.
    files: Vec<(RangeInclusive<u32>, PathBuf)>,
    /// The points of all of them, in order.
    points: Vec<u32>,
}

/// Runs of points that are alike.
#[derive(Default)]
struct Group {
    missing: Seeds,
    seen: Seeds,
    runs: Vec<Run>,
}

impl Group {
    fn put(&mut self, run: Run) {
        let seed = run.seed.unwrap_or(0);
        // A file that was being written anew when the program was ended may be there twice.
        if self.missing.contains(seed) && !self.seen.contains(seed) {
            self.seen.add(seed..seed + 1);
            self.runs.push(run);
        }
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Whether a name is one that a sweep which was ended early leaves before its first `sweep.json`.
fn ours(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    let name = whole_name(&name).or(name.strip_suffix(PARTIAL)).unwrap_or(&name);
    [MANIFEST, CHUNKS, POINTS].contains(&name)
}
