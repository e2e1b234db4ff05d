//! Making a kernel: fetch, unpack, configure, compile, keep.

use crate::recipe::{CONFIG, FLAGS, SHIM};
use crate::{About, Kernel, KernelError, Recipe, Source};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Lines of a log that an error shows.
const TAIL: usize = 20;

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Architectures whose code is not extracted: user-mode Linux takes `um` and `x86`.
const ARCHITECTURES: [&str; 18] = [
    "alpha",
    "arc",
    "arm",
    "arm64",
    "csky",
    "hexagon",
    "loongarch",
    "m68k",
    "microblaze",
    "mips",
    "nios2",
    "openrisc",
    "parisc",
    "powerpc",
    "riscv",
    "s390",
    "sh",
    "sparc",
];

/// Folders of the sources with drivers that no configuration of ours has.
const HARDWARE: [&str; 9] = [
    "sound",
    "drivers/gpu",
    "drivers/infiniband",
    "drivers/media",
    "drivers/net/ethernet",
    "drivers/net/wireless",
    "drivers/scsi",
    "drivers/staging",
    "drivers/usb",
];

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Sources, and tools that are missing.
    Fetch,
    /// Sources.
    Unpack,
    /// By our options.
    Configure,
    /// Most of the time.
    Compile,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Step::Fetch => "fetching the sources",
            Step::Unpack => "unpacking the sources",
            Step::Configure => "configuring",
            Step::Compile => "compiling",
        })
    }
}

impl Recipe {
    /// Makes the kernel and keeps it, or gives the one that is kept already; `again` makes it anyhow. `tell` is told
    /// which step begins, and during [`Step::Compile`] how many files have been compiled.
    ///
    /// # Errors
    /// What is wrong with the recipe, is missing on this machine, or failed. Nothing half-made is kept.
    pub fn make(
        &self,
        again: bool,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Step, usize),
    ) -> Result<Kernel, KernelError> {
        self.check()?;
        needs(&["make", "cc", "bc", "tar", "xz"])?;
        let catalog = self.catalog.folder();
        fs::create_dir_all(catalog).map_err(KernelError::with_path(catalog))?;
        // Beside what is kept, so that the end is a rename. Gone when this returns, unless a step failed: its log is named.
        let work = tempfile::Builder::new().prefix(".build-").tempdir_in(catalog);
        let mut work = work.map_err(KernelError::with_path(catalog))?;
        let place = work.path().to_owned();
        let workshop = Workshop { log: place.join("log"), place, stop };
        let made = self.make_in(&workshop, again, tell);
        work.disable_cleanup(matches!(made, Err(KernelError::Step { .. })));
        made
    }

    fn make_in(
        &self,
        workshop: &Workshop<'_>,
        again: bool,
        tell: &mut dyn FnMut(Step, usize),
    ) -> Result<Kernel, KernelError> {
        let sources = workshop.place.join("sources");
        let kept = |version: &str, source: &str| -> Result<Option<Kernel>, KernelError> {
            let same = |kernel: &Kernel| {
                kernel.about.name == self.name(version) && kernel.about.recipe == self.digest(source)
            };
            Ok(self.catalog.kernels()?.into_iter().find(same).filter(|_| !again))
        };
        let (version, source) = match &self.source {
            Source::Tree(path) => {
                let version = workshop.printed("make", ["-s", "-C", text(path)?, "kernelversion"])?;
                (version, path.display().to_string())
            }
            Source::Debian(package) => {
                needs(&["apt-get", "dpkg-deb"])?;
                tell(Step::Fetch, 0);
                // 'http://.../linux-source-6.12_6.12.117-1_all.deb' linux-source-6.12_6.12.117-1_all.deb SIZE HASH
                let uri = workshop.printed("apt-get", ["download", "--print-uris", package]);
                let uri = uri.map_err(|_| KernelError::Package { package: package.clone() })?;
                let file = uri.split_whitespace().nth(1).unwrap_or_default();
                let version = file.split('_').nth(1).and_then(|version| version.split('-').next());
                (version.unwrap_or("unknown").to_owned(), file.to_owned())
            }
        };
        if let Some(kernel) = kept(&version, &source)? {
            return Ok(kernel);
        }
        let tools = workshop.tools(tell)?;
        match &self.source {
            Source::Tree(path) => {
                tell(Step::Unpack, 0);
                // Links in place of files: what is changed is changed here only.
                workshop.run("cp", ["-as", text(&absolute(path)?)?, text(&sources)?])?;
                workshop.run("make", ["-s", "-C", text(&sources)?, "ARCH=um", "mrproper"])?;
            }
            Source::Debian(package) => {
                workshop.run("apt-get", ["download", package])?;
                tell(Step::Unpack, 0);
                workshop.unpack(package)?;
                fs::create_dir(&sources).map_err(KernelError::with_path(&sources))?;
                let archive = workshop.place.join(format!("usr/src/{package}.tar.xz"));
                workshop.extract(&archive, &sources)?;
            }
        }
        tell(Step::Configure, 0);
        let build = self.configure(workshop, &tools, &sources, &version)?;
        tell(Step::Compile, 0);
        let (jobs, flags) = (format!("-j{}", self.jobs.max(1)), format!("KCFLAGS={FLAGS}"));
        let make = workshop.make(&tools, &sources, &build).args([&jobs, &flags, "linux"]).spawn_logged()?;
        workshop.wait("compiling", make, |log| tell(Step::Compile, compiled(log)))?;
        self.keep(workshop, &build, &version, &source)
    }

    /// Writes the configuration and holds it against what was asked for. Gives where to build.
    fn configure(
        &self,
        workshop: &Workshop<'_>,
        tools: &Tools,
        sources: &Path,
        version: &str,
    ) -> Result<PathBuf, KernelError> {
        // Ticks of this architecture are fixed in its Kconfig, without a prompt.
        let kconfig = sources.join("arch/um/Kconfig");
        let written = fs::read_to_string(&kconfig).map_err(KernelError::with_path(&kconfig))?;
        let (before, after) = written.split_once("config HZ\n").ok_or_else(|| KernelError::Lacks {
            release: version.to_owned(),
            missing: "CONFIG_HZ".to_owned(),
            why: "its ticks are somewhere else",
        })?;
        let ticks =
            format!("config HZ\n{}", after.replacen("default 100", &format!("default {}", self.hz), 1));
        fs::remove_file(&kconfig).map_err(KernelError::with_path(&kconfig))?;
        fs::write(&kconfig, format!("{before}{ticks}")).map_err(KernelError::with_path(&kconfig))?;

        let build = workshop.place.join("build");
        fs::create_dir(&build).map_err(KernelError::with_path(&build))?;
        let wanted = workshop.place.join("wanted.config");
        fs::write(&wanted, CONFIG).map_err(KernelError::with_path(&wanted))?;
        let make = workshop
            .make(tools, sources, &build)
            .arg(format!("KCONFIG_ALLCONFIG={}", wanted.display()))
            .arg("allnoconfig")
            .spawn_logged()?;
        workshop.wait("configuring", make, |_| ())?;
        let config = build.join(".config");
        let found = fs::read_to_string(&config).map_err(KernelError::with_path(&config))?;
        let mut missing = self.options();
        missing.retain(|option| !found.lines().any(|line| line == option));
        if missing.is_empty() {
            return Ok(build);
        }
        let why = match missing.iter().any(|option| option.contains("TIME_TRAVEL")) {
            true => "without it there is no virtual time",
            false => "Farpath's hosts need it",
        };
        Err(KernelError::Lacks { release: version.to_owned(), missing: missing.join(", "), why })
    }

    /// Puts what was made where it is found.
    fn keep(
        &self,
        workshop: &Workshop<'_>,
        build: &Path,
        version: &str,
        source: &str,
    ) -> Result<Kernel, KernelError> {
        let folder = workshop.place.join("kernel");
        fs::create_dir(&folder).map_err(KernelError::with_path(&folder))?;
        let about = About {
            name: self.name(version),
            release: first_line(&build.join("include/config/kernel.release"))?,
            hz: self.hz,
            source: source.to_owned(),
            compiler: workshop.printed("cc", ["--version"])?.lines().next().unwrap_or_default().to_owned(),
            recipe: self.digest(source),
        };
        let mut kernel = Kernel { folder, about };
        let copy = |from: &str, to: PathBuf| {
            let from = build.join(from);
            fs::copy(&from, to).map_err(KernelError::with_path(from))
        };
        copy("linux", kernel.program())?;
        copy(".config", kernel.config())?;
        let shim = workshop.place.join("shim.c");
        fs::write(&shim, SHIM).map_err(KernelError::with_path(&shim))?;
        let so = kernel.shim();
        workshop.run("cc", ["-O2", "-Wall", "-shared", "-fPIC", "-o", text(&so)?, text(&shim)?])?;
        kernel.describe()?;
        let place = self.catalog.folder().join(&kernel.about.name);
        if place.exists() {
            fs::remove_dir_all(&place).map_err(KernelError::with_path(&place))?;
        }
        fs::rename(&kernel.folder, &place).map_err(KernelError::with_path(&place))?;
        kernel.folder = place;
        Ok(kernel)
    }
}

/// Where it is made.
struct Workshop<'a> {
    place: PathBuf,
    /// All that the tools print.
    log: PathBuf,
    stop: &'a AtomicBool,
}

/// Tools that were fetched because they are not installed: what their environment must say.
struct Tools(Vec<(&'static str, String)>);

/// A command whose output goes into the log.
struct Logged<'a> {
    command: Command,
    workshop: &'a Workshop<'a>,
}

impl Workshop<'_> {
    /// The parser generators that a kernel's configuration takes. Where they are not installed they are fetched and used
    /// from here.
    fn tools(&self, tell: &mut dyn FnMut(Step, usize)) -> Result<Tools, KernelError> {
        let missing: Vec<&str> = ["flex", "bison", "m4"].into_iter().filter(|tool| !is_there(tool)).collect();
        if missing.is_empty() {
            return Ok(Tools(Vec::new()));
        }
        if !is_there("apt-get") || !is_there("dpkg-deb") {
            needs(&missing)?;
        }
        tell(Step::Fetch, 0);
        for tool in &missing {
            self.run("apt-get", ["download", tool])?;
            self.unpack(tool)?;
        }
        let usr = self.place.join("usr");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut environment = vec![("PATH", format!("{}:{path}", usr.join("bin").display()))];
        if missing.contains(&"m4") {
            environment.push(("M4", usr.join("bin/m4").display().to_string()));
        }
        if missing.contains(&"bison") {
            environment.push(("BISON_PKGDATADIR", usr.join("share/bison").display().to_string()));
        }
        Ok(Tools(environment))
    }

    /// Unpacks the package of that name that was fetched.
    fn unpack(&self, package: &str) -> Result<(), KernelError> {
        for entry in fs::read_dir(&self.place).map_err(KernelError::with_path(&self.place))? {
            let path = entry.map_err(KernelError::with_path(&self.place))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(&format!("{package}_")) {
                self.run("dpkg-deb", ["-x", text(&path)?, text(&self.place)?])?;
            }
        }
        Ok(())
    }

    /// Extracts Linux's sources, less two thirds of them: code for hardware and documents, which are not compiled. Every Kconfig
    /// stays.
    fn extract(&self, archive: &Path, to: &Path) -> Result<(), KernelError> {
        let mut command = Command::new("tar");
        command.arg("-xJf").arg(archive).arg("-C").arg(to).arg("--strip-components=1");
        command.args(ARCHITECTURES.iter().map(|name| format!("--exclude=*/arch/{name}/*.[chS]")));
        command.args(ARCHITECTURES.iter().map(|name| format!("--exclude=*/arch/{name}/*.dts*")));
        command.args(HARDWARE.iter().map(|name| format!("--exclude=*/{name}/*.[ch]")));
        command.args(["rst", "yaml", "svg"].map(|kind| format!("--exclude=*/Documentation/*.{kind}")));
        command.args(["testing", "perf"].map(|name| format!("--exclude=*/tools/{name}/*")));
        let running = Logged { command, workshop: self }.spawn_logged()?;
        self.wait("extracting the sources", running, |_| ())
    }

    fn make(&self, tools: &Tools, sources: &Path, build: &Path) -> Logged<'_> {
        let mut command = Command::new("make");
        command.arg("-C").arg(sources).arg("ARCH=um").arg(format!("O={}", build.display()));
        command.envs(tools.0.iter().map(|(name, value)| (name, value)));
        Logged { command, workshop: self }
    }

    fn run<const N: usize>(&self, program: &str, args: [&str; N]) -> Result<(), KernelError> {
        let mut command = Command::new(program);
        command.args(args);
        let what = format!("{program} {}", args.join(" "));
        let running = Logged { command, workshop: self }.spawn_logged()?;
        self.wait(&what, running, |_| ())
    }

    /// What it prints, less the end of its last line.
    fn printed<const N: usize>(&self, program: &str, args: [&str; N]) -> Result<String, KernelError> {
        let Output { status, stdout, stderr } = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .current_dir(&self.place)
            .output()
            .map_err(KernelError::with_path(program))?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
        }
        fs::write(&self.log, stderr).map_err(KernelError::with_path(&self.log))?;
        Err(self.failed(&format!("{program} {}", args.join(" "))))
    }

    /// Waits until it has ended; `look` gets the log now and then.
    #[expect(clippy::disallowed_methods, reason = "a compiler takes real time")]
    fn wait(
        &self,
        what: &str,
        mut child: std::process::Child,
        mut look: impl FnMut(&str),
    ) -> Result<(), KernelError> {
        let mut looks = 0_u32;
        loop {
            if let Some(status) = child.try_wait().map_err(KernelError::with_path(&self.log))? {
                return if status.success() { Ok(()) } else { Err(self.failed(what)) };
            }
            if self.stop.load(Ordering::Relaxed) {
                // With all that it started; it is gone where that fails.
                let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
                let _ = child.wait();
                return Err(KernelError::Interrupted);
            }
            looks += 1;
            if looks.is_multiple_of(10) {
                look(&fs::read_to_string(&self.log).unwrap_or_default());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn failed(&self, what: &str) -> KernelError {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
        KernelError::Step { what: what.to_owned(), log: self.log.clone(), tail }
    }
}

impl Logged<'_> {
    fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.command.args(args);
        self
    }

    fn spawn_logged(mut self) -> Result<std::process::Child, KernelError> {
        let Workshop { place, log, .. } = self.workshop;
        let out = File::options().create(true).append(true).open(log).map_err(KernelError::with_path(log))?;
        let err = out.try_clone().map_err(KernelError::with_path(log))?;
        let program = self.command.get_program().to_owned();
        self.command
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
            .map_err(KernelError::with_path(program))
    }
}

/// Files that a log says were compiled.
fn compiled(log: &str) -> usize {
    log.lines().filter(|line| line.starts_with("  CC ") || line.starts_with("  AS ")).count()
}

/// That these programs are here.
fn needs(programs: &[&str]) -> Result<(), KernelError> {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_there(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let package = |program: &&str| match *program {
        "cc" => "gcc libc6-dev".to_owned(),
        "xz" => "xz-utils".to_owned(),
        "apt-get" => "apt".to_owned(),
        "dpkg-deb" => "dpkg".to_owned(),
        other => other.to_owned(),
    };
    Err(KernelError::Tools {
        missing: missing.join(", "),
        are: if missing.len() == 1 { "is" } else { "are" },
        packages: missing.iter().map(package).collect::<Vec<_>>().join(" "),
    })
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn absolute(path: &Path) -> Result<PathBuf, KernelError> {
    path.canonicalize().map_err(KernelError::with_path(path))
}

/// A path for a command line that takes text.
fn text(path: &Path) -> Result<&str, KernelError> {
    path.to_str().ok_or_else(|| KernelError::File {
        path: path.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "expected a name in UTF-8"),
    })
}

fn first_line(path: &Path) -> Result<String, KernelError> {
    let text = fs::read_to_string(path).map_err(KernelError::with_path(path))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
