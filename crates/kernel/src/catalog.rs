//! Where kernels are kept: a folder each.

use crate::{DEFAULT_HZ, KernelError};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

/// The file that says what a kernel is.
const ABOUT: &str = "about.json";

/// What is known of a kernel that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// By which experiments name it.
    pub name: String,
    /// As `uname -r` will say.
    pub release: String,
    /// Ticks per second.
    pub hz: u32,
    /// Where the sources came from.
    pub source: String,
    /// The compiler, as it calls itself.
    pub compiler: String,
    /// SHA-256 of sources' name, configuration, seed shim and ticks: what the same recipe would make again.
    pub recipe: String,
}

/// A kernel that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its folder.
    pub folder: PathBuf,
    /// What it is.
    pub about: About,
}

/// The folder of all kernels of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog(PathBuf);

impl Catalog {
    /// `FARPATH_KERNELS`, else `farpath/kernels` in the user's cache (`XDG_CACHE_HOME`, else `~/.cache`). A relative path is seen from
    /// the current folder, whatever folder a kernel is started in.
    pub fn of_user() -> Catalog {
        Catalog(farpath_files::user_cache("FARPATH_KERNELS", "kernels"))
    }

    /// This folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Catalog {
        Catalog(folder.into())
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// All kernels, the newest release first, and of one release those with [`DEFAULT_HZ`] ticks first, then those with more.
    ///
    /// # Errors
    /// The folder cannot be read, or what lies in it cannot be understood.
    pub fn kernels(&self) -> Result<Vec<Kernel>, KernelError> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let mut kernels = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(KernelError::with_path(&self.0))? {
            let folder = entry.map_err(KernelError::with_path(&self.0))?.path();
            // Without it, it is still being made, or something else.
            if folder.join(ABOUT).exists() {
                kernels.push(Kernel::open(folder)?);
            }
        }
        kernels.sort_by_key(|kernel| {
            let About { release, hz, name, .. } = &kernel.about;
            (Reverse(numbers(release)), *hz != DEFAULT_HZ, Reverse(*hz), name.clone())
        });
        Ok(kernels)
    }

    /// The kernel of that name; the first one for `None`.
    ///
    /// # Errors
    /// There is none, and what [`kernels`](Catalog::kernels) says.
    pub fn find(&self, name: Option<&str>) -> Result<Kernel, KernelError> {
        let kernels = self.kernels()?;
        let Some(name) = name else { return kernels.into_iter().next().ok_or(KernelError::None) };
        let known: Vec<_> = kernels.iter().map(|kernel| kernel.about.name.clone()).collect();
        kernels.into_iter().find(|kernel| kernel.about.name == name).ok_or_else(|| KernelError::NoSuch {
            name: name.to_owned(),
            known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
        })
    }
}

impl Kernel {
    pub(crate) fn open(folder: PathBuf) -> Result<Kernel, KernelError> {
        let path = folder.join(ABOUT);
        let text = fs::read(&path).map_err(KernelError::with_path(&path))?;
        let about = serde_json::from_slice(&text).map_err(|source| KernelError::About { path, source })?;
        Ok(Kernel { folder, about })
    }

    /// Says in its folder what it is: from then on it is one.
    pub(crate) fn describe(&self) -> Result<(), KernelError> {
        let path = self.folder.join(ABOUT);
        let text = serde_json::to_vec_pretty(&self.about).expect("plain data");
        fs::write(&path, text).map_err(KernelError::with_path(path))
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.folder.join("linux")
    }

    /// What stands between it and the host.
    pub(crate) fn shim(&self) -> PathBuf {
        self.folder.join("shim.so")
    }

    /// Whether what stands between it and the host knows [`Boot::cpu_cost`](crate::Boot::cpu_cost): those of older releases do not.
    pub(crate) fn can_charge_for_computing(&self) -> bool {
        let word = crate::boot::CPU_COST.as_bytes();
        std::fs::read(self.shim()).is_ok_and(|shim| shim.windows(word.len()).any(|part| part == word))
    }

    /// How it was configured.
    pub fn config(&self) -> PathBuf {
        self.folder.join("config")
    }
}

/// The numbers in a release, to put releases in order: 6.12.9 before 6.12.10.
fn numbers(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(catalog: &Catalog, name: &str, release: &str, hz: u32) {
        let folder = catalog.folder().join(name);
        fs::create_dir_all(&folder).unwrap();
        let about = About {
            name: name.to_owned(),
            release: release.to_owned(),
            hz,
            source: String::new(),
            compiler: String::new(),
            recipe: String::new(),
        };
        Kernel { folder, about }.describe().unwrap();
    }

    #[test]
    fn the_newest_release_is_meant_where_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::in_folder(folder.path().join("kernels"));
        assert!(matches!(catalog.find(None), Err(KernelError::None)));
        let error = catalog.find(Some("eleven")).unwrap_err().to_string();
        assert_eq!(error, "no kernel is called `eleven`; there are: none; `farpath kernel build` makes one");
        keep(&catalog, "nine", "6.12.9", 1000);
        keep(&catalog, "ten", "6.12.10", 100);
        keep(&catalog, "ten-1000", "6.12.10", 1000);
        keep(&catalog, "ten-250", "6.12.10", 250);
        // One that is being made.
        fs::create_dir(catalog.folder().join("half")).unwrap();
        let names: Vec<_> = catalog.kernels().unwrap().into_iter().map(|kernel| kernel.about.name).collect();
        assert_eq!(names, ["ten-250", "ten-1000", "ten", "nine"]);
        assert_eq!(catalog.find(None).unwrap().about.name, "ten-250");
        assert_eq!(catalog.find(Some("nine")).unwrap().about.hz, 1000);
        let error = catalog.find(Some("eleven")).unwrap_err().to_string();
        assert_eq!(
            error,
            "no kernel is called `eleven`; there are: ten-250, ten-1000, ten, nine; `farpath kernel build` makes one"
        );
    }
}
