//! What can go wrong between the command line and its output.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The experiment is refused.
    #[error(transparent)]
    Experiment(#[from] farpath_experiment::ExperimentError),
    /// Formulas give no value.
    #[error(transparent)]
    Formula(#[from] farpath_report::formulas::FormulaError),
    /// A command line of another emulator is not read.
    #[error("a command line of {of}")]
    Import {
        /// The emulator.
        of: &'static str,
        /// The word.
        source: farpath_experiment::import::ImportError,
    },
    /// A trace cannot be read.
    #[error("{}", file.display())]
    ReadTrace {
        /// Its name.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A trace is none.
    #[error("{}", file.display())]
    Trace {
        /// Its name.
        file: PathBuf,
        /// The line.
        source: farpath_elements::trace::TraceError,
    },
    /// There is no orbit on the path, or no such pass.
    #[error("{file}: {reason}", file = file.display())]
    Passes {
        /// Its name.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// No trace is made.
    #[error("--span")]
    Model(#[source] farpath_elements::trace::ModelError),
    /// An engine has no answer.
    #[error("{}: {source}", file.display())]
    Engine {
        /// The experiment.
        file: PathBuf,
        /// Why.
        source: farpath_engine::EngineError,
    },
    /// A stack is somebody else's, whose parameters say nothing.
    #[error("{}: {source}", file.display())]
    ForeignStack {
        /// The stack.
        file: PathBuf,
        /// Why.
        source: farpath_experiment::ForeignHost,
    },
    /// This machine, or this user, cannot emulate.
    #[error(transparent)]
    Emulation(farpath_emulate::EmulateError),
    /// A command has not run on a path.
    #[cfg(target_os = "linux")]
    #[error("{}", file.display())]
    Shell {
        /// The path.
        file: PathBuf,
        /// Why.
        source: farpath_emulate::ShellError,
    },
    /// Nobody can type at a program in virtual time.
    #[cfg(target_os = "linux")]
    #[error(
        "expected `-- COMMAND`: a shell cannot be typed at in virtual time, whose clock jumps over waits"
    )]
    NoCommand,
    /// The machine's network has another clock than a guest.
    #[cfg(target_os = "linux")]
    #[error(
        "--uplink: expected `--clock real`: in virtual time the clock jumps over waits, and nobody in this machine's network waits for it; \
         `--far COMMAND` runs a server there"
    )]
    NoUplink,
    /// An experiment without programs.
    #[cfg(target_os = "linux")]
    #[error("{}: program: expected programs to run, as [[program]] with a `command` each, found none", file.display())]
    NoPrograms {
        /// The experiment.
        file: PathBuf,
    },
    /// No path is named.
    #[cfg(target_os = "linux")]
    #[error(
        "expected PATH, or --delay and --rate: `farpath paths` and `farpath experiments` list what ships"
    )]
    NoPath,
    /// A packet script cannot be read.
    #[error("{}", file.display())]
    ReadScript {
        /// Its name.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A packet script, or a report of them, cannot be written.
    #[error("{}", file.display())]
    WriteScript {
        /// Its name.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A capture without the connection that was asked for.
    #[error("{}: expected connection {flow}, found {found} over IPv4", file.display())]
    NoFlow {
        /// Its name.
        file: PathBuf,
        /// Which was asked for.
        flow: u32,
        /// How many it has.
        found: usize,
    },
    /// A connection of which no script can be made.
    #[error("{}: connection {flow}", file.display())]
    Record {
        /// Its name.
        file: PathBuf,
        /// Which.
        flow: u32,
        /// Why.
        source: farpath_script::RecordError,
    },
    /// A results folder without such a run.
    #[error("{}: expected a simulated or emulated run of this point and seed, found none among its {found} runs", folder.display())]
    NoRun {
        /// Its name.
        folder: PathBuf,
        /// How many it has.
        found: usize,
    },
    /// A run whose packets nobody has kept, and that cannot be made again.
    #[error("{}: expected a run that comes out the same again, found {found}", folder.display())]
    NotAgain {
        /// The results folder.
        folder: PathBuf,
        /// What it has.
        found: String,
    },
    /// A folder without scripts.
    #[error("{}: expected packet scripts (*.pkt), found none", file.display())]
    NoScript {
        /// Its name.
        file: PathBuf,
    },
    /// More scripts than one command plays.
    #[error("{}: expected {} packet scripts and {} in all at the most, found more", file.display(), crate::script::MAX_SCRIPTS, crate::script::MAX_SCRIPT_BYTES)]
    TooManyScripts {
        /// What was named when they were too many.
        file: PathBuf,
    },
    /// Folders of scripts within each other that are not looked into.
    #[error("{}: expected packet scripts at most {} folders deep, found a folder", file.display(), crate::script::MAX_FOLDERS)]
    DeepScripts {
        /// The deepest one.
        file: PathBuf,
    },
    /// A capture cannot be opened.
    #[error("{}", file.display())]
    ReadCapture {
        /// Its name.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A capture is none, or damaged.
    #[error("{}", file.display())]
    Capture {
        /// Its name.
        file: PathBuf,
        /// Where.
        source: farpath_diagnose::CaptureError,
    },
    /// A process cannot be watched.
    #[cfg(target_os = "linux")]
    #[error("--pid: process {pid} cannot be watched{}", match source.kind() {
        io::ErrorKind::NotFound => ": there is none",
        io::ErrorKind::PermissionDenied => ": its sockets are for its user and root to see",
        _ => "",
    })]
    Process {
        /// Its number.
        pid: u32,
        /// Why.
        source: io::Error,
    },
    /// The kernel does not tell of its sockets.
    #[cfg(target_os = "linux")]
    #[error("the kernel does not list its sockets (sock_diag; `CONFIG_INET_DIAG`)")]
    Sockets {
        /// Why.
        source: io::Error,
    },
    /// A host to watch connections to is none.
    #[cfg(target_os = "linux")]
    #[error("--dst: expected HOST or HOST:PORT, found {found:?}")]
    NoPeer {
        /// What was given.
        found: String,
        /// Why its name is none.
        source: Option<io::Error>,
    },
    /// There was no connection while connections were watched.
    #[cfg(target_os = "linux")]
    #[error("there was no such connection")]
    NothingWatched,
    /// A capture is another one when it is read again.
    #[error("{}: it has changed while it was read", file.display())]
    ChangedCapture {
        /// Its name.
        file: PathBuf,
    },
    /// What a kernel counted cannot be read.
    #[error("{option}: {}", file.display())]
    ReadCounted {
        /// `--ss` or `--ndt`.
        option: &'static str,
        /// Its name.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is to say what a kernel counted says something else.
    #[error("{option}: {}: expected {expected}", file.display())]
    NotPrinted {
        /// `--ss`, `--ndt` or `--iperf3`.
        option: &'static str,
        /// What it takes.
        expected: &'static str,
        /// Its name.
        file: PathBuf,
        /// Where it is something else.
        source: io::Error,
    },
    /// What a kernel counted is of other connections.
    #[error("{option}: {}: none of its {connections} connections that sent is one of the capture; expected {expected}", file.display())]
    NotCounted {
        /// `--ss` or `--ndt`.
        option: &'static str,
        /// What it takes.
        expected: &'static str,
        /// Its name.
        file: PathBuf,
        /// Connections with counters that it has.
        connections: usize,
    },
    /// Two captures have nothing in common.
    #[error("{}: no connection is in both captures under the same addresses and ports, seen from two places", files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", "))]
    NotInBoth {
        /// Their names.
        files: Vec<PathBuf>,
    },
    /// What is read twice cannot be stdin.
    #[error("{flag}: captures are read twice for it; name a file in place of `-`")]
    StdinTwice {
        /// The flag that asks for it.
        flag: &'static str,
    },
    /// No experiment can be fitted to a connection.
    #[error("{flag}: no experiment can be made of this connection: {why}")]
    NotFitted {
        /// The flag that asks for it.
        flag: &'static str,
        /// What is missing.
        why: &'static str,
    },
    /// A capture without the interface that was asked for.
    #[error("--interface {interface}: {} has frames of {}", file.display(), named(interfaces))]
    NoInterface {
        /// Its name.
        file: PathBuf,
        /// Which was asked for.
        interface: u32,
        /// Those of its frames.
        interfaces: BTreeSet<u32>,
    },
    /// A capture without TCP.
    #[error("{}: {}", file.display(), match frames {
        0 => "it has no packets".to_owned(),
        _ => format!("no TCP among its {frames} frames: {}", kinds_of_frames(others)),
    })]
    NoTcp {
        /// Its name.
        file: PathBuf,
        /// Frames that it has.
        frames: u64,
        /// What they are, the most of them first.
        others: Vec<(farpath_diagnose::Other, u64)>,
    },
    /// Nothing to hold it against.
    #[error("--engine: a comparison takes two engines at least, and one is asked for")]
    OneEngine,
    /// Results cannot be written.
    #[error(transparent)]
    Results(#[from] farpath_run::ResultsError),
    /// A sweep cannot be run or read.
    #[error(transparent)]
    Sweep(#[from] farpath_sweep::SweepError),
    /// Dask is asked from Python.
    #[error(
        "--cluster: this is the program alone; the command of the Python package has it: pip install '.[dask]'"
    )]
    NoCluster,
    /// `--of` something else.
    #[error("--of: {0}")]
    Precision(farpath_sweep::PrecisionError),
    /// What --find cannot look for.
    #[error(transparent)]
    Search(#[from] farpath_sweep::SearchError),
    /// A report cannot be written.
    #[error(transparent)]
    Report(#[from] farpath_report::html::ReportError),
    /// Devices cannot be removed.
    #[error(transparent)]
    Host(#[from] farpath_emu::HostError),
    /// A paper cannot be checked.
    #[error(transparent)]
    Paper(#[from] farpath_report::papers::PaperError),
    /// A stack has no radii.
    #[error("{stack}: {source}")]
    Radius {
        /// The stack.
        stack: String,
        /// Why.
        source: farpath_engine::RadiusError,
    },
    /// A stack has no end that could be measured.
    #[error("{0}: it never gives up, so that there is no end to measure with --emulate")]
    NoEnd(String),
    /// A report of several papers.
    #[error("a report is of one paper, and {0} are asked for: name one")]
    OnePaper(usize),
    /// Nothing of that name is shipped.
    #[error("no {kind} is called `{name}`; {}`farpath {command}` lists what there is", meant(nearest.as_deref()))]
    NoSuch {
        /// Stack, path, experiment.
        kind: &'static str,
        /// The command that lists them.
        command: &'static str,
        /// As asked for.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// Neither a file nor a whole path in its place.
    #[error("{missing} missing; expected FILE, or in its place --delay or --rtt, --rate and --size{given}")]
    Incomplete {
        /// Flags, or FILE.
        missing: String,
        /// Those that were there.
        given: String,
    },
    /// A file and flags that stand in its place.
    #[error("{flag} stands in place of FILE, and FILE is given too; to change a value of FILE say {instead}")]
    Both {
        /// One of them.
        flag: &'static str,
        /// What to say.
        instead: &'static str,
    },
    /// A flag beside a path that was measured.
    #[error("{other}: {flag} says what the path is; to change a value of it use --set")]
    Beside {
        /// What says it.
        flag: &'static str,
        /// The other one.
        other: &'static str,
    },
    /// What `--from-measure` names is no result.
    #[error("{}: {reason}", file.display())]
    Measured {
        /// Which file.
        file: PathBuf,
        /// What was expected and what was found.
        reason: String,
    },
    /// `--host`, of which nothing is known.
    #[cfg(target_os = "linux")]
    #[error("--host {host}: {reason}")]
    UnknownPath {
        /// As asked for.
        host: String,
        /// What was looked for and not found.
        reason: String,
    },
    /// There is no explanation.
    #[error("{}: {source}", file.display())]
    Explain {
        /// The experiment.
        file: PathBuf,
        /// Why.
        source: Box<farpath_explain::ExplainError>,
    },
    /// `--apply` of something that is no remedy here.
    #[error("--apply: no remedy is called `{name}` here; there are: {known}")]
    NoSuchRemedy {
        /// As asked for.
        name: String,
        /// All of them.
        known: String,
    },
    /// `--write-sysctl` where there is nothing to write.
    #[error("--write-sysctl: nothing to write into {}: {reason}", file.display())]
    NoSysctls {
        /// Where it would go.
        file: PathBuf,
        /// Why there is nothing.
        reason: String,
    },
    /// A file is in the way.
    #[error("{flag}: {} is there already; expected the name of a new file", file.display())]
    Exists {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// A folder for results holds others' files.
    #[cfg(target_os = "linux")]
    #[error("{flag}: {} is not empty; expected the name of a new folder", folder.display())]
    NotEmpty {
        /// The flag that names it.
        flag: &'static str,
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be written.
    #[error("{flag}: cannot write {}", file.display())]
    Write {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path is not measured.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Measure(#[from] farpath_measure::MeasureError),
    /// A measurement has no answer.
    #[cfg(target_os = "linux")]
    #[error("{}: {source}", file.display())]
    NotMeasured {
        /// The experiment.
        file: PathBuf,
        /// Why.
        source: farpath_measure::NotMeasured,
    },
    /// Nobody can be served.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Serve(#[from] farpath_measure::serve::ServeError),
    /// There is no key.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Key(#[from] farpath_measure::KeyError),
    /// An experiment, and nobody to measure it with.
    #[error("{0}: it is an experiment; name the peer too: --to HOST")]
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "measured on Linux alone"))]
    NoFarHost(String),
    /// The driver cannot be attached, looked at or detached.
    #[cfg(all(target_os = "linux", feature = "driver"))]
    #[error(transparent)]
    Driver(#[from] farpath_driver::DriverError),
    /// It was built without.
    #[cfg(not(all(target_os = "linux", feature = "driver")))]
    #[error("{}", farpath_emulate::WITHOUT_DRIVER)]
    WithoutDriver,
    /// A configuration cannot be read.
    #[error("{}: cannot be read", file.display())]
    Config {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Interfaces that another process was to have from the beginning.
    #[cfg(target_os = "linux")]
    #[error("{}: {key} is another than at the start; expected `{was}`, or a restart", file.display())]
    Restart {
        /// The configuration.
        file: PathBuf,
        /// Which key.
        key: &'static str,
        /// What it was.
        was: String,
    },
    /// Statistics cannot be served.
    #[cfg(target_os = "linux")]
    #[error("statistics: cannot listen at {address}: {source}")]
    Statistics {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The kernel does not tell of a route.
    #[cfg(target_os = "linux")]
    #[error("stacks --of-this-host: the kernel tells of no such route")]
    Route(#[source] io::Error),
    /// Packets cannot be moved.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Move(#[from] farpath_emu::EmuError),
    /// It asks Linux.
    #[cfg(not(target_os = "linux"))]
    #[error("`farpath {0}` is of the Linux kernel's TCP, and this is another system")]
    NotLinux(&'static str),
    /// There is no kernel for virtual time.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Kernel(#[from] farpath_kernel::KernelError),
    /// A host of somebody else's cannot be made.
    #[error("hosts build: {0}")]
    Hosts(#[from] farpath_foreign::recipe::RecipeError),
    /// Threads cannot be had.
    #[error("cannot start the worker threads")]
    Threads(#[source] rayon::ThreadPoolBuildError),
    /// Bytes that are no explicit-rate signalling.
    #[error(transparent)]
    Qos(#[from] crate::qos::error::QosError),
    /// A variable of the environment that is no quantity of its kind.
    #[error("{name}: expected {expected}, found `{found}`")]
    Environment {
        /// Which.
        name: &'static str,
        /// With its article.
        expected: &'static str,
        /// As found.
        found: String,
        /// Why it is none.
        source: Box<farpath_units::ParseQuantityError>,
    },
    /// Standard output is gone.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
}

/// Interfaces in words: the first ten, and how many more there are.
fn named(interfaces: &BTreeSet<u32>) -> String {
    let numbers: Vec<String> = interfaces.iter().take(10).map(u32::to_string).collect();
    match (numbers.as_slice(), interfaces.len() - numbers.len()) {
        ([one], _) => format!("interface {one} alone"),
        (_, 0) => format!("the interfaces {}", numbers.join(", ")),
        (_, more) => format!("the interfaces {} and {more} more", numbers.join(", ")),
    }
}

impl CliError {
    /// The error with its causes.
    pub fn describe(&self) -> String {
        // An experiment's message holds its cause already, with the place in the file.
        let mut cause = match self {
            CliError::Experiment(_)
            | CliError::Engine { .. }
            | CliError::ForeignStack { .. }
            | CliError::Explain { .. }
            | CliError::Radius { .. }
            | CliError::Paper(_)
            | CliError::Qos(_) => None,
            #[cfg(all(target_os = "linux", feature = "driver"))]
            CliError::Driver(_) => None,
            // They say it themselves.
            CliError::Host(_) => None,
            #[cfg(target_os = "linux")]
            CliError::NotMeasured { .. } | CliError::Statistics { .. } | CliError::Move(_) => None,
            other => other.source(),
        };
        let mut text = self.to_string();
        while let Some(error) = cause {
            let said = error.to_string();
            // Some messages end with their cause.
            if !text.contains(&said) {
                text.push_str(&format!(": {said}"));
            }
            cause = error.source();
        }
        text
    }
}

/// What frames without TCP are: the most of them first, and of many kinds the rest in one.
fn kinds_of_frames(others: &[(farpath_diagnose::Other, u64)]) -> String {
    const NAMED: usize = 5;
    let mut kinds: Vec<_> =
        others.iter().take(NAMED).map(|(other, frames)| format!("{frames} {other}")).collect();
    let rest: u64 = others.iter().skip(NAMED).map(|(_, frames)| frames).sum();
    if rest > 0 {
        kinds.push(format!("{rest} of other kinds"));
    }
    kinds.join(", ")
}

/// The question whether this was meant, before what else is to be said.
fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("did you mean `{name}`? "))
}
