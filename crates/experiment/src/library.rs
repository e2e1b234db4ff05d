//! What is shipped, and how a name or a file is found.

use crate::element::ready_made;
use crate::error::{ExperimentError, Location, Suggestion};
use crate::linux::BpfObject;
use crate::stack::Stack;
use farpath_elements::ElementSpec;
use include_dir::{Dir, include_dir};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use toml::{Table, Value};

static STACKS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../stacks");
static PATHS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../paths");
static PROTOCOLS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../protocols");
static EXPERIMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// A file that is part of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShippedFile {
    /// What it is called by: the file's name without `.toml`.
    pub name: &'static str,
    /// Its `title`.
    pub title: String,
    /// All of it.
    pub text: &'static str,
}

/// The stacks that come with the program, by name.
pub fn shipped_stacks() -> Vec<ShippedFile> {
    files(&STACKS)
}

/// The ready-made paths, by name.
pub fn shipped_paths() -> Vec<ShippedFile> {
    files(&PATHS)
}

/// The experiments that come with the program, by name.
pub fn shipped_experiments() -> Vec<ShippedFile> {
    files(&EXPERIMENTS)
}

/// What ships on this catalog, by name.
pub(crate) fn shipped(catalog: Catalog) -> Vec<ShippedFile> {
    files(catalog.folder())
}

fn files(folder: &'static Dir<'_>) -> Vec<ShippedFile> {
    let mut files: Vec<_> = texts(folder)
        .map(|(name, text)| {
            let table: toml::Table = text.parse().unwrap_or_default();
            let title = table.get("title").and_then(toml::Value::as_str).unwrap_or_default();
            ShippedFile { name, title: title.to_owned(), text }
        })
        .collect();
    files.sort_by_key(|file| file.name);
    files
}

fn texts(folder: &'static Dir<'_>) -> impl Iterator<Item = (&'static str, &'static str)> {
    folder.files().filter_map(|file| {
        let name = file.path().to_str()?.strip_suffix(".toml")?;
        Some((name, file.contents_utf8()?))
    })
}

/// Whether `name` is that of a file, not of something that ships.
pub(crate) fn names_a_file(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}

/// What a name in an experiment can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Catalog {
    Stacks,
    Paths,
    Protocols,
}

impl Catalog {
    fn folder(self) -> &'static Dir<'static> {
        match self {
            Catalog::Stacks => &STACKS,
            Catalog::Paths => &PATHS,
            Catalog::Protocols => &PROTOCOLS,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Catalog::Stacks => "stack",
            Catalog::Paths => "ready-made path",
            Catalog::Protocols => "protocol",
        }
    }

    /// The text that `name`, written at `at`, stands for, and the file that it is in.
    ///
    /// A name with a slash in it or `.toml` at its end is that of a file, seen from the folder of the
    /// file that names it; any other is one of ours.
    pub fn find(self, name: &str, at: &Location) -> Result<(String, String), ExperimentError> {
        if names_a_file(name) {
            return beside(name, at);
        }
        match texts(self.folder()).find(|(shipped, _)| *shipped == name) {
            Some((_, text)) => Ok((format!("{name}.toml"), text.to_owned())),
            None => {
                let mut known: Vec<_> = texts(self.folder()).map(|(shipped, _)| shipped).collect();
                known.sort_unstable();
                Err(ExperimentError::UnknownName {
                    at: at.clone(),
                    what: self.what(),
                    name: name.to_owned(),
                    suggestion: Suggestion::among(name, known),
                })
            }
        }
    }
}

/// The name and the text of the file that `at` calls `name`: seen from the folder of the file that names it.
pub(crate) fn beside(name: &str, at: &Location) -> Result<(String, String), ExperimentError> {
    let file = seen_from(at, name);
    let origin = file.display().to_string();
    match farpath_files::read_text(&file) {
        Ok(text) => Ok((origin, text)),
        Err(source) => Err(ExperimentError::Read { at: at.clone(), file: origin, source }),
    }
}

/// A file's name is seen from the folder of the file that names it.
fn seen_from(at: &Location, name: &str) -> PathBuf {
    Path::new(&at.origin).parent().unwrap_or(Path::new("")).join(name)
}

/// The stacks, ready-made paths and BPF objects that an experiment names, as they were when it was first read: each of its points is
/// made of the same ones, whatever becomes of the files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    stacks: RwLock<HashMap<String, Stack>>,
    paths: RwLock<HashMap<String, Vec<Value>>>,
    ends: RwLock<Vec<KnownEnd>>,
    /// Of each place on the path the element that was read first.
    elements: RwLock<HashMap<usize, (Table, ElementSpec)>>,
    objects: RwLock<HashMap<PathBuf, BpfObject>>,
}

/// What an end was read from: its section as written, the stack that it has where it names none, and what came of it.
type KnownEnd = (Option<Value>, String, Stack);

/// Of so many ends what was read is kept.
const KNOWN_ENDS: usize = 8;

impl Files {
    /// The stack called `name` at `at`.
    pub fn stack(&self, name: &str, at: &Location) -> Result<Stack, ExperimentError> {
        once(&self.stacks, Catalog::Stacks, name, at, |text, origin| {
            Stack::parse(text, origin).map(|stack| Stack { name: name.to_owned(), ..stack })
        })
    }

    /// The end of which `written` is the section, and `default` the stack: read once, as most points of a sweep have the same.
    pub fn end(
        &self,
        written: Option<&Value>,
        default: &str,
        read: impl FnOnce() -> Result<Stack, ExperimentError>,
    ) -> Result<Stack, ExperimentError> {
        let same = |(known, stack, _): &&KnownEnd| known.as_ref() == written && stack == default;
        if let Some((.., end)) = self.ends.read().unwrap_or_else(PoisonError::into_inner).iter().find(same) {
            return Ok(end.clone());
        }
        let end = read()?;
        let mut ends = self.ends.write().unwrap_or_else(PoisonError::into_inner);
        if ends.len() < KNOWN_ENDS {
            ends.push((written.cloned(), default.to_owned(), end.clone()));
        }
        Ok(end)
    }

    /// The element of which `written` is the table, at this place of the path: read once, unless it is swept.
    pub fn element(
        &self,
        place: usize,
        written: &Table,
        read: impl FnOnce() -> Result<ElementSpec, ExperimentError>,
    ) -> Result<ElementSpec, ExperimentError> {
        let is_new = match self.elements.read().unwrap_or_else(PoisonError::into_inner).get(&place) {
            Some((known, element)) if known == written => return Ok(element.clone()),
            known => known.is_none(),
        };
        let element = read()?;
        if is_new {
            let mut elements = self.elements.write().unwrap_or_else(PoisonError::into_inner);
            elements.entry(place).or_insert_with(|| (written.clone(), element.clone()));
        }
        Ok(element)
    }

    /// The BPF object file called `name` at `at`.
    pub fn object(&self, name: &str, at: &Location) -> Result<BpfObject, ExperimentError> {
        let path = seen_from(at, name);
        if let Some(known) = self.objects.read().unwrap_or_else(PoisonError::into_inner).get(&path) {
            return Ok(known.clone());
        }
        let file = path.display().to_string();
        let bytes = match farpath_files::read(&path) {
            Ok(bytes) => bytes.into(),
            Err(source) => return Err(ExperimentError::Read { at: at.clone(), file, source }),
        };
        let mut known = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(path).or_insert(BpfObject { file, bytes }).clone())
    }

    /// The elements of the ready-made path called `name` at `at`, unread.
    pub fn path(&self, name: &str, at: &Location) -> Result<Vec<Value>, ExperimentError> {
        once(&self.paths, Catalog::Paths, name, at, ready_made)
    }
}

fn once<T: Clone>(
    known: &RwLock<HashMap<String, T>>,
    catalog: Catalog,
    name: &str,
    at: &Location,
    read: impl FnOnce(&str, &str) -> Result<T, ExperimentError>,
) -> Result<T, ExperimentError> {
    if let Some(known) = known.read().unwrap_or_else(PoisonError::into_inner).get(name) {
        return Ok(known.clone());
    }
    let (origin, text) = catalog.find(name, at)?;
    let read = read(&text, &origin)
        .map_err(|error| ExperimentError::Inside { at: at.clone(), source: Box::new(error) })?;
    // Whoever was first counts, as another thread may have read it meanwhile.
    let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
    Ok(known.entry(name.to_owned()).or_insert(read).clone())
}
