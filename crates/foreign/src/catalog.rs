//! Where the programs that are hosts lie.

use crate::HostError;
use farpath_experiment::is_host_name;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a user's hosts. An experiment names a program in it and never a path: whatever an experiment of somebody else's says, it
/// starts nothing but what the user has put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog(PathBuf);

impl Catalog {
    /// `FARPATH_HOSTS`, else `farpath/hosts` in the user's cache (`XDG_CACHE_HOME`, else `~/.cache`).
    pub fn of_user() -> Catalog {
        Catalog(farpath_files::user_cache("FARPATH_HOSTS", "hosts"))
    }

    /// This folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Catalog {
        Catalog(folder.into())
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Names of the programs in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.path().is_file())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_host_name(name))
            .collect();
        names.sort_unstable();
        names
    }

    /// The program of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, name: &str) -> Result<PathBuf, HostError> {
        let file = self.0.join(name);
        match is_host_name(name) && file.is_file() {
            true => Ok(file),
            false => Err(HostError::Unknown { name: name.to_owned(), folder: self.0.clone() }),
        }
    }
}
