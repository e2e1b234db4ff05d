//! Making the programs that ship as sources: lwIP and libslirp, of the distribution's packages.

use crate::Catalog;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// What it is called by in experiments.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What it takes of the distribution.
    pub needs: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lwip,
    Slirp,
}

/// All of them.
pub const RECIPES: [Recipe; 2] = [
    Recipe {
        name: "lwip",
        title: "lwIP, for devices of some kB; Reno, fast and slow timers of 250 and 500 ms",
        needs: "the sources of Debian's package `lwip`, which are fetched, and a C compiler",
        kind: Kind::Lwip,
    },
    Recipe {
        name: "slirp",
        title: "libslirp, the user networking of QEMU: 4.4BSD's Reno, timers of 200 and 500 ms, no window scaling, no SACK",
        needs: "Debian's package `libslirp-dev`, and a C compiler",
        kind: Kind::Slirp,
    },
];

const HOST: &str = include_str!("../hosts/host.h");
const LWIP: &str = include_str!("../hosts/lwip.c");
const LWIP_OPTIONS: &str = include_str!("../hosts/lwipopts.h");
const LWIP_COMPILER: &str = include_str!("../hosts/cc.h");
const SLIRP: &str = include_str!("../hosts/slirp.c");

/// What of a tool's output an error shows.
const SHOWN: usize = 300;

/// Why a host is not made. Nothing half-made is kept.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// There is no such recipe.
    #[error("expected one of {}, found `{found}`", known())]
    Unknown {
        /// What was asked for.
        found: String,
    },
    /// Something is not installed.
    #[error("{what} is not here: it comes with Debian's package `{package}`")]
    Missing {
        /// A program or a file.
        what: String,
        /// What brings it.
        package: &'static str,
    },
    /// The sources cannot be had.
    #[error("apt knows no sources of `{package}`: run `apt-get update`, or give them with --source")]
    NoSources {
        /// Of what.
        package: &'static str,
    },
    /// What was given as sources are none.
    #[error("{}: expected lwIP's sources, with src/core/tcp.c in them", folder.display())]
    NotSources {
        /// The folder.
        folder: PathBuf,
    },
    /// A tool failed.
    #[error("{tool}: {said}")]
    Tool {
        /// It.
        tool: String,
        /// The end of what it said.
        said: String,
    },
    /// A file cannot be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl RecipeError {
    fn with_path(path: &Path) -> impl FnOnce(io::Error) -> RecipeError + use<> {
        let path = path.to_owned();
        move |source| RecipeError::File { path, source }
    }
}

fn known() -> String {
    RECIPES.map(|recipe| format!("`{}`", recipe.name)).join(", ")
}

impl Recipe {
    /// The recipe of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<Recipe, RecipeError> {
        RECIPES
            .into_iter()
            .find(|recipe| recipe.name == name)
            .ok_or_else(|| RecipeError::Unknown { found: name.to_owned() })
    }

    /// Makes the program and puts it into the catalog, in place of an older one. lwIP's sources are those in `sources`, or are fetched.
    ///
    /// # Errors
    /// What is missing on this machine, or failed.
    pub fn make(&self, catalog: &Catalog, sources: Option<&Path>) -> Result<PathBuf, RecipeError> {
        let folder = catalog.folder();
        fs::create_dir_all(folder).map_err(RecipeError::with_path(folder))?;
        // Beside what is kept, so that the end is a rename.
        let work = tempfile::Builder::new().prefix(".build-").tempdir_in(folder);
        let work = work.map_err(RecipeError::with_path(folder))?;
        let workshop = Workshop(work.path());
        workshop.run("cc", &["--version"], "gcc")?;
        let made = match self.kind {
            Kind::Lwip => workshop.lwip(sources)?,
            Kind::Slirp => workshop.slirp()?,
        };
        let place = folder.join(self.name);
        fs::rename(&made, &place).map_err(RecipeError::with_path(&place))?;
        Ok(place)
    }
}

/// Where it is made.
struct Workshop<'a>(&'a Path);

impl Workshop<'_> {
    fn write(&self, name: &str, text: &str) -> Result<(), RecipeError> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(RecipeError::with_path(&path))
    }

    /// Runs a tool here. It comes with `package`.
    fn run(
        &self,
        tool: &str,
        args: &[impl AsRef<OsStr>],
        package: &'static str,
    ) -> Result<Output, RecipeError> {
        let output = match Command::new(tool).args(args).current_dir(self.0).output() {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(RecipeError::Missing { what: format!("`{tool}`"), package });
            }
            Err(error) => return Err(RecipeError::Tool { tool: tool.to_owned(), said: error.to_string() }),
        };
        if output.status.success() {
            return Ok(output);
        }
        let all = String::from_utf8_lossy(&output.stderr);
        let skipped = all.trim().chars().count().saturating_sub(SHOWN);
        let said = all.trim().chars().skip(skipped).collect();
        Err(RecipeError::Tool { tool: tool.to_owned(), said })
    }

    fn slirp(&self) -> Result<PathBuf, RecipeError> {
        self.write("host.h", HOST)?;
        self.write("slirp.c", SLIRP)?;
        self.write("probe.c", "#include <slirp/libslirp.h>\n")?;
        self.run("cc", &["-fsyntax-only", "probe.c"], "gcc").map_err(|_| RecipeError::Missing {
            what: "<slirp/libslirp.h>".to_owned(),
            package: "libslirp-dev",
        })?;
        self.run("cc", &["-O2", "-Wall", "-o", "slirp", "slirp.c", "-lslirp"], "gcc")?;
        Ok(self.0.join("slirp"))
    }

    fn lwip(&self, sources: Option<&Path>) -> Result<PathBuf, RecipeError> {
        let sources = match sources {
            Some(folder) => std::path::absolute(folder).map_err(RecipeError::with_path(folder))?,
            None => self.fetch("lwip", "liblwip-dev")?,
        };
        if !sources.join("src/core/tcp.c").is_file() {
            return Err(RecipeError::NotSources { folder: sources });
        }
        self.write("host.h", HOST)?;
        self.write("lwip.c", LWIP)?;
        self.write("lwipopts.h", LWIP_OPTIONS)?;
        let arch = self.0.join("arch");
        fs::create_dir_all(&arch).map_err(RecipeError::with_path(&arch))?;
        self.write("arch/cc.h", LWIP_COMPILER)?;
        let src = sources.join("src");
        let include = src.join("include");
        let text = |path: &Path| path.display().to_string();
        let flags = ["-O2".to_owned(), "-I.".to_owned(), format!("-I{}", text(&include))];
        let checks = ["-c", "-DFARPATH_CHECKS", "-o", "init.o"].map(str::to_owned);
        let init = [text(&src.join("core/init.c"))];
        self.run("cc", &[&flags[..], &checks, &init].concat(), "gcc")?;
        let mut files = Vec::new();
        for folder in [src.join("core"), src.join("core/ipv4")] {
            for entry in fs::read_dir(&folder).map_err(RecipeError::with_path(&folder))? {
                let path = entry.map_err(RecipeError::with_path(&folder))?.path();
                let is_c = path.extension().is_some_and(|extension| extension == "c");
                if is_c && path.file_name().is_some_and(|name| name != "init.c") {
                    files.push(text(&path));
                }
            }
        }
        // The same program whatever order the folder is read in.
        files.sort_unstable();
        let link = ["-o", "lwip", "lwip.c", "init.o"].map(str::to_owned);
        self.run("cc", &[&flags[..], &link, &files].concat(), "gcc")?;
        Ok(self.0.join("lwip"))
    }

    /// Fetches the sources of which the distribution makes `binary`, from where apt has that. Most machines have no list of sources: they
    /// are asked for here, and apt's own lists stay as they are.
    fn fetch(&self, package: &'static str, binary: &'static str) -> Result<PathBuf, RecipeError> {
        let no_sources = || RecipeError::NoSources { package };
        let uri = self.run("apt-get", &["download", "--print-uris", binary], "apt");
        let uri = match uri {
            Err(RecipeError::Tool { .. }) => return Err(no_sources()),
            uri => String::from_utf8_lossy(&uri?.stdout).into_owned(),
        };
        // 'http://deb.debian.org/debian/pool/main/l/lwip/liblwip-dev_2.1.3%2bdfsg1-2_amd64.deb' liblwip-dev_... SIZE HASH
        let uri = uri.split_whitespace().next().unwrap_or_default().trim_matches('\'');
        let (mirror, rest) = uri.split_once("/pool/").ok_or_else(no_sources)?;
        let component = rest.split('/').next().unwrap_or("main");
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let codename = codename.ok_or_else(no_sources)?.trim_matches('"');
        self.write("sources.list", &format!("deb-src {mirror} {codename} {component}\n"))?;
        for folder in ["lists/partial", "archives/partial"] {
            let folder = self.0.join(folder);
            fs::create_dir_all(&folder).map_err(RecipeError::with_path(&folder))?;
        }
        let here = |name: &str| self.0.join(name).display().to_string();
        let options = [
            "-q".to_owned(),
            format!("-oDir::Etc::SourceList={}", here("sources.list")),
            "-oDir::Etc::SourceParts=-".to_owned(),
            format!("-oDir::State::Lists={}", here("lists")),
            format!("-oDir::Cache={}", here("")),
        ];
        let with = |args: &[&str]| {
            [&options[..], &args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()].concat()
        };
        self.run("apt-get", &with(&["update"]), "apt")?;
        // Signatures and sums are checked by apt; unpacking is ours, which needs no dpkg-dev.
        self.run("apt-get", &with(&["source", "--download-only", package]), "apt")?;
        let unpacked = self.0.join("sources");
        fs::create_dir_all(&unpacked).map_err(RecipeError::with_path(&unpacked))?;
        for entry in fs::read_dir(self.0).map_err(RecipeError::with_path(self.0))? {
            let path = entry.map_err(RecipeError::with_path(self.0))?.path();
            if path.to_string_lossy().contains(".orig.tar.") {
                let archive = path.display().to_string();
                self.run("tar", &["-xf", &archive, "-C", "sources", "--strip-components=1"], "tar")?;
            }
        }
        Ok(unpacked)
    }
}
