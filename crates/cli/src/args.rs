//! The command line.

mod diagnose;
mod driver;
mod hosts;
mod import;
#[cfg(target_os = "linux")]
mod kernel;
mod measure;
#[cfg(all(test, target_os = "linux", feature = "driver"))]
mod pages;
mod qos;
mod script;
#[cfg(target_os = "linux")]
mod shell;
mod source;
mod sweep;
mod trace;

pub use diagnose::DiagnoseArgs;
#[cfg_attr(not(all(target_os = "linux", feature = "driver")), allow(unused_imports))]
pub use driver::{AttachArgs, DriverArgs, DriverCommand, DriverRateType, RouterArgs};
pub use hosts::{HostsArgs, HostsBuildArgs, HostsCommand, HostsListArgs};
pub use import::{ImportArgs, ImportCommand, ImportText};
#[cfg(target_os = "linux")]
pub use kernel::{BuildArgs, InfoArgs, KernelArgs, KernelCommand, ListArgs};
pub use measure::{MeasureArgs, ServeArgs};
pub use qos::{QosArgs, QosCommand, QosDecodeArgs, QosEncodeArgs, QosExchangeArgs, QosMessage, QosRateType};
pub use script::{ScriptArgs, ScriptEnd, ScriptEngine};
#[cfg(target_os = "linux")]
pub use shell::{ExecArgs, ShellArgs};
pub use source::{PathArgs, SourceArgs};
pub use sweep::{SweepArgs, SweepCommand, SweepRunArgs};
pub use trace::{MakeArgs, ModelName, PassesArgs, TraceArgs, TraceCommand};

use clap::{Args, Parser, Subcommand, ValueEnum};
use farpath_experiment::Override;
use farpath_units::{Bytes, Duration, ParseQuantityError, Probability, Rate};
pub use source::parse_loss;
use source::{IN_PLACE_OF_FILE, new_path};
use std::path::PathBuf;

/// Will TCP work over this path, how well, why not better, and what would fix it?
#[derive(Debug, Parser)]
#[command(name = "farpath", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment on several engines and print their answers side by side
    Run(RunArgs),
    /// Run an experiment on closed forms and numeric models alone
    Predict(OneEngineArgs),
    /// Run an experiment on the packet-level simulator alone
    Simulate(SimulateArgs),
    /// Run an experiment on a Linux kernel's TCP alone: the running one's in real time, or another's in virtual time
    ///
    /// In real time a transfer takes as long as it takes. It needs Linux, and root or a user namespace: `farpath doctor`
    /// says what this machine can do. A run in which the machine was not in time is void, and has no numbers; the exit code
    /// is then 1. In virtual time (`--clock virtual`) waits cost nothing, nothing is late, no privileges are needed, and a
    /// seed repeats byte by byte: `farpath kernel build` makes the kernel.
    Emulate(EmulateArgs),
    /// Run a shell, or a command, on a host behind a path
    ///
    /// Two hosts, each a network namespace with this machine's kernel, files and programs; between them the path, in real time. The command runs
    /// on the near host, from which forward packets come, and `--far` has another one run on the far host. In both, `near` and `far` are
    /// names of the hosts, in IPv4 and IPv6. They reach each other and nothing else. The exit code is the command's.
    #[cfg(target_os = "linux")]
    Shell(Box<ShellArgs>),
    /// Run the programs of an experiment file on the two hosts of its path
    ///
    /// The file names them as `[[program]]`: on which host, when, their command, environment, folder and input. The connections that they open
    /// are found on the path and printed. The exit code is 1 where a program did not end with 0. See docs/shell.md.
    #[cfg(target_os = "linux")]
    Exec(Box<ExecArgs>),
    /// Measure a real network: an experiment's transfers, or what there is to know of the path
    ///
    /// `farpath measure FILE --to HOST` does an experiment's transfers between this host and another one, with what the
    /// kernels can be told of its stacks. `farpath measure HOST` needs no file: it measures round trips and their
    /// variation, loss, the rate and the queue of the narrowest link, a transfer each way, and requests with their answers.
    /// On the other host runs `farpath serve`.
    Measure(MeasureArgs),
    /// Wait for others that measure: the peer's end of `farpath measure`
    ///
    /// It does what it is asked within its limits, for the address that asks and nobody else. It needs no privileges, and
    /// ends with Ctrl-C or SIGTERM.
    Serve(ServeArgs),
    /// Compare the engines over a sweep, and say where they differ most
    Compare(CompareArgs),
    /// Run a sweep that outgrows one sitting: what is finished is kept, and only what is missing is run
    ///
    /// Finished runs are kept in a folder, in files that appear whole or not at all, by what made them: the point as
    /// resolved, the engine, the seed and the program. Whatever ends the command, the same command goes on where it was; a
    /// longer sweep, or more seeds, takes what is there; and a changed experiment takes nothing that it would not have
    /// made itself. Of each run its flows are kept, and no traces.
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Sweep(Box<SweepArgs>),
    /// Make the report of a results folder: one HTML file that needs no network
    Report(ReportArgs),
    /// Say what bounds a transfer, which pitfalls it meets, and what a change gains
    Explain(ExplainArgs),
    /// Say what held the connections of a capture, and when
    ///
    /// Each interval between two sends of new data belongs to what the sender waited for: the receive window, its own window, the path, a
    /// loss, a pace, the program. The times add up to the whole. Captures of either end, and between, as pcap or pcapng.
    Diagnose(DiagnoseArgs),
    /// Play packet scripts in packetdrill's language against simulated stacks or a kernel
    ///
    /// A script says what a TCP is sent, what its program calls, and what leaves it and when, line by line. What differs is shown
    /// with the last ten segments. The exit code is 0 where every script passed, 1 where one failed, 2 where one cannot be read or
    /// asks for what is not there.
    Script(ScriptArgs),
    /// Say how far TCP reaches: each timer of a stack as round trip, distance and the last body inside
    Radius(RadiusArgs),
    /// Check the claims of papers: published beside reproduced
    Reproduce(ReproduceArgs),
    /// Evaluate closed forms: throughput by loss, window limits, timers, bit errors, overhead
    ///
    /// Without a name, all that there are; with one, what it takes and gives. `farpath formula per-linear,per-exact size=1250,1500
    /// ber=1e-9,1e-4` has both for all combinations. Numbers are SI (seconds, bytes, bit/s, fractions); `rtt=20 ms` may have a unit.
    Formula(FormulaArgs),
    /// Say what this machine can do for emulation, and how to get what is missing
    Doctor(DoctorArgs),
    /// Use explicit rates (TIA-1039): ask for them, grant them, read what is signalled
    ExplicitRate(ExplicitRateArgs),
    /// Make and list Linux kernels for emulation in virtual time
    #[cfg(target_os = "linux")]
    Kernel(KernelArgs),
    /// What user-mode kernels run; of no use elsewhere
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Guest,
    /// What a program that has loaded this one starts to emulate; of no use elsewhere
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Helper {
        /// What it is told, and what it leaves
        work_dir: PathBuf,
    },
    /// Make and list TCP implementations of others: lwIP, libslirp, programs of one's own
    Hosts(HostsArgs),
    /// Make a path of a command line of another emulator
    Import(ImportArgs),
    /// Look at a trace of a rate over time, or make one by a model
    Trace(TraceArgs),
    /// Print completions for a shell, or write the manual pages
    Generate(GenerateArgs),
    /// List the TCP stacks that ship, or print one
    Stacks(StacksArgs),
    /// List the ready-made paths, or print one
    Paths(CatalogArgs),
    /// List the experiments that ship, or print one
    Experiments(CatalogArgs),
}

#[derive(Debug, Args)]
pub struct ExplicitRateArgs {
    #[command(subcommand)]
    pub command: ExplicitRateCommand,
}

#[derive(Debug, Subcommand)]
pub enum ExplicitRateCommand {
    /// Attach the driver to this host's TCP, show its state, detach it
    Driver(DriverArgs),
    /// Run a flow router between two network interfaces: grant the rates that packets ask for
    ///
    /// The file names the interfaces, the rate of the line each way, and the parameters of a `flow-router` of an experiment. SIGHUP reads
    /// it again, and flows keep what they have; SIGTERM and Ctrl-C end it, and packets no longer pass. See docs/router.md.
    Router(RouterArgs),
    /// Decode, encode and draw the signalling: QoS Structures
    Qos(QosArgs),
}

/// How tables are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Columns of text, as wide as the terminal
    Text,
    /// Tables of Markdown
    Markdown,
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum End {
    /// The one that sends the data
    Sender,
    /// The one that receives them
    Receiver,
}

impl End {
    /// As keys spell it.
    pub const fn name(self) -> &'static str {
        match self {
            End::Sender => "sender",
            End::Receiver => "receiver",
        }
    }
}

#[derive(Debug, Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    pub command: GenerateCommand,
}

#[derive(Debug, Subcommand)]
pub enum GenerateCommand {
    /// Print what a shell needs to complete verbs and options: `farpath generate completions bash >> ~/.bash_completion`
    Completions {
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each verb into a folder: `man -l DIR/farpath-run.1`
    Manual {
        /// Folder, which is made where it is not there
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Engines of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum EngineName {
    /// Closed forms and numeric models
    Predict,
    /// Packet-level discrete events
    Simulate,
    /// The running Linux kernel's TCP over the same path elements, in real time
    Emulate,
}

impl From<EngineName> for farpath_run::Engine {
    fn from(name: EngineName) -> farpath_run::Engine {
        match name {
            EngineName::Predict => farpath_run::Engine::Predict,
            EngineName::Simulate => farpath_run::Engine::Simulate,
            EngineName::Emulate => farpath_run::Engine::Emulate,
        }
    }
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Engines, separated by commas
    #[arg(long, value_name = "ENGINES", value_delimiter = ',', default_value = "predict,simulate")]
    pub engine: Vec<EngineName>,
    #[command(flatten)]
    pub clock: ClockArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
}

#[derive(Debug, Args)]
pub struct FormulaArgs {
    /// Formulas, by name; several, separated by commas, stand side by side
    #[arg(value_name = "NAME[,NAME]")]
    pub names: Option<String>,
    /// Arguments, each with a value or several, separated by commas: `rtt=20 ms,500 ms`
    #[arg(value_name = "ARGUMENT=VALUE")]
    pub given: Vec<String>,
    /// Print one JSON object a line
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// How the table is written
    #[arg(long, value_enum, default_value = "text")]
    pub format: TableFormat,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// Engines, separated by commas: two at least
    #[arg(long, value_name = "ENGINES", value_delimiter = ',', default_value = "predict,simulate,emulate")]
    pub engine: Vec<EngineName>,
    #[command(flatten)]
    pub clock: ClockArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
}

/// What is compared where no file is named.
const AGREEMENT: &str = "agreement";

impl From<CompareArgs> for RunArgs {
    fn from(args: CompareArgs) -> RunArgs {
        let CompareArgs { mut common, engine, clock, capture } = args;
        let source = &mut common.source;
        if source.file.is_none() && !source.path.is_given() {
            source.file = Some(AGREEMENT.into());
        }
        RunArgs { common, engine, clock, capture }
    }
}

/// On which kernel `emulate` is, and in whose time.
#[derive(Debug, Default, Args)]
pub struct ClockArgs {
    /// Emulate on the running kernel in real time, or on a user-mode kernel whose clock jumps over waits [default: as the
    /// file says, else real]
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<ClockName>,
    /// The user-mode kernel, as `farpath kernel list` names it [default: the first one]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
}

/// The clock of a host with programs.
#[derive(Debug, Args)]
pub struct ProgramClockArgs {
    #[command(flatten)]
    pub clock: ClockArgs,
    /// In virtual time: let so many seconds pass for each second of processor time that a program takes [default: as the file says, else 0]
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub cpu_cost: Option<f64>,
}

#[cfg(target_os = "linux")]
impl ProgramClockArgs {
    /// The same as changes of the file.
    pub fn changes(&self) -> Vec<Override> {
        let cost = self.cpu_cost.map(|factor| Override::new("emulate.cpu_cost", factor.into()));
        self.clock.changes().into_iter().chain(cost).collect()
    }
}

/// Clocks of emulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockName {
    /// The running kernel's
    Real,
    /// A user-mode kernel's
    Virtual,
}

impl ClockArgs {
    /// The same as changes of the file.
    pub fn changes(&self) -> Vec<Override> {
        let clock = self.clock.map(|clock| match clock {
            ClockName::Real => "real",
            ClockName::Virtual => "virtual",
        });
        // Whoever names a kernel means its clock.
        let clock = clock.or(self.kernel.as_ref().map(|_| "virtual"));
        let said = [("emulate.clock", clock), ("emulate.kernel", self.kernel.as_deref())];
        said.into_iter().filter_map(|(key, value)| Some(Override::new(key, value?.into()))).collect()
    }
}

#[derive(Debug, Args)]
pub struct EmulateArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub clock: ClockArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
}

impl From<EmulateArgs> for RunArgs {
    fn from(EmulateArgs { common, clock, capture }: EmulateArgs) -> RunArgs {
        RunArgs { common, engine: vec![EngineName::Emulate], clock, capture }
    }
}

#[derive(Debug, Args)]
pub struct SimulateArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
}

impl SimulateArgs {
    /// The same as `run` with this engine.
    pub fn with(self, engine: EngineName) -> RunArgs {
        RunArgs { capture: self.capture, ..OneEngineArgs { common: self.common }.with(engine) }
    }
}

#[derive(Debug, Default, Args)]
pub struct CaptureArgs {
    /// Write the packets of each simulated and emulated run into this folder, as pcapng for Wireshark
    #[arg(long, value_name = "DIR", value_parser = new_path())]
    pub capture: Option<PathBuf>,
    /// Bytes of each packet that a capture keeps; 65535 keeps all
    #[arg(long, value_name = "N", requires = "capture", default_value_t = farpath_engine::DEFAULT_SNAPLEN)]
    #[arg(value_parser = clap::value_parser!(u32).range(80..=65535))]
    pub snaplen: u32,
}

#[derive(Debug, Args)]
pub struct OneEngineArgs {
    #[command(flatten)]
    pub common: CommonArgs,
}

impl OneEngineArgs {
    /// The same as `run` with this engine.
    pub fn with(self, engine: EngineName) -> RunArgs {
        let (clock, capture) = Default::default();
        RunArgs { common: self.common, engine: vec![engine], clock, capture }
    }
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Explain the path that `farpath measure PEER --json` found, with its uncertainty; data go to the far host
    #[arg(long, value_name = "RESULT", help_heading = IN_PLACE_OF_FILE, conflicts_with_all = ["file", "host"])]
    pub from_measure: Option<PathBuf>,
    /// Explain the path to this host: measured where a `farpath serve` answers, else what this kernel knows of it
    #[arg(long, value_name = "PEER[:PORT]", help_heading = IN_PLACE_OF_FILE, conflicts_with = "file")]
    pub host: Option<String>,
    /// Key of --host's `farpath serve`, as `farpath measure` takes it
    #[arg(long, value_name = "FILE", help_heading = IN_PLACE_OF_FILE, requires = "host")]
    pub key: Option<PathBuf>,
    /// Which point of a sweep, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub point: usize,
    /// Write the experiment as changed by this remedy; `all` is the combination that helps most
    #[arg(long, value_name = "NAME")]
    pub apply: Option<String>,
    /// Which group of flows of a file with several, from 0 [default: the first]
    #[arg(long, value_name = "N")]
    pub group: Option<usize>,
    /// Show the delay budget too: where a round trip goes, and which timers allow for it
    #[arg(long)]
    pub budget: bool,
    /// Show everything: the budget, every bound, remedies without effect
    #[arg(long)]
    pub verbose: bool,
    /// Print in this format; Markdown is for a ticket
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text", conflicts_with = "json")]
    pub format: TableFormat,
    /// Write the sysctls of the advised remedy, or of --apply's, as a file of sysctl.d
    #[arg(long, value_name = "FILE")]
    pub write_sysctl: Option<PathBuf>,
    /// The end whose sysctls --write-sysctl writes
    #[arg(long, value_name = "END", value_enum, default_value = "sender", requires = "write_sysctl")]
    pub end: End,
    /// Where --apply writes [default: FILE-NAME.toml beside FILE]
    #[arg(long, value_name = "FILE", requires = "apply", value_parser = new_path())]
    pub out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Debug, Args)]
pub struct CommonArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Write the result tables into this folder, as Parquet, with traces of some runs, and a report of
    /// them as HTML
    #[arg(long, value_name = "DIR", value_parser = new_path())]
    pub out: Option<PathBuf>,
    /// Write a report with figures into this file: HTML that needs no network
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub report: Option<PathBuf>,
    /// Print one row for each flow, in place of one for each point
    #[arg(long, conflicts_with = "routers")]
    pub flows: bool,
    /// Print what each flow router of a simulation has granted and refused, and how long its queue was
    #[arg(long)]
    pub routers: bool,
    /// Print tables in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text", conflicts_with = "json")]
    pub format: TableFormat,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Worker threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder that `--out` wrote
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Where to write it [default: report.html in the folder]
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RadiusArgs {
    /// Stacks by name, or files (see `farpath stacks`) [default: all that ship]
    #[arg(value_name = "STACK")]
    pub stacks: Vec<String>,
    /// What the signal travels through: vacuum, air, fibre, coax
    #[arg(long, value_name = "NAME", default_value = "vacuum")]
    pub medium: String,
    /// Say of each radius whether it reaches there: a body such as `mars-nearest`, or a distance such as `384400 km`,
    /// `1.5 light-seconds`, `0.5 AU`
    #[arg(long, value_name = "WHERE", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Say how far beyond a relay the far end may be; with --to, where a relay between the two may be at all
    #[arg(long, value_name = "WHERE", allow_hyphen_values = true)]
    pub via: Option<String>,
    /// Timers of other protocols on the same scale: names (dns, quic ...) or files of your own [default: all that ship]
    #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with_all = ["check", "report", "emulate"])]
    pub protocol: Option<Vec<String>>,
    /// Add the round trip at which a full window no longer fills a link of this rate
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Add the round trips up to which 99 and 50 % of connections open, and complete, where each packet is lost with this
    /// probability, both ways alike: one or several, separated by commas
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = parse_loss)]
    pub loss: Vec<Probability>,
    /// What is sent there
    #[arg(long, value_name = "SIZE", default_value = "1 B", requires = "loss")]
    pub size: Bytes,
    /// Print the longest gap between contacts that each stack survives over a path of this round trip, in place of the radii
    #[arg(long, value_name = "RTT", num_args = 0..=1, require_equals = true, default_missing_value = "100 ms", value_parser = parse_gap_rtt,
          conflicts_with_all = ["to", "via", "protocol", "rate", "loss", "emulate", "report"])]
    pub gap: Option<Duration>,
    /// Find each radius, or gap, by simulation too, and print it beside
    #[arg(long)]
    pub check: bool,
    /// Ask the running kernel too, configured like the stack [default then: linux-6]: its timers before a silent peer, and
    /// connections over ways as long as the radii. It takes two round trips of the longest: minutes of real time
    #[arg(long)]
    pub emulate: bool,
    /// Connections over each way, with `--emulate`
    #[arg(long, value_name = "N", default_value_t = 32, requires = "emulate", value_parser = clap::value_parser!(u16).range(1..=200))]
    pub connections: u16,
    /// Print JSON, one radius a line
    #[arg(long)]
    pub json: bool,
    /// Write a picture of the stacks around the Earth, and their radii, into this file: HTML that needs no network
    #[arg(long, value_name = "FILE", value_parser = new_path())]
    pub report: Option<PathBuf>,
}

/// What simulations of gaps are made for.
fn parse_gap_rtt(text: &str) -> Result<Duration, String> {
    let rtt: Duration = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    let allowed = Duration::from_millis(1)..=Duration::from_secs(100);
    if allowed.contains(&rtt) {
        Ok(rtt)
    } else {
        Err(format!("expected a round trip from 1 ms to 100 s, found {rtt}"))
    }
}

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Papers, by name [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Print JSON, one check a line
    #[arg(long)]
    pub json: bool,
    /// Write a paper's figures and claims into this file: HTML that needs no network
    #[arg(long, value_name = "FILE", conflicts_with = "list", value_parser = new_path())]
    pub report: Option<PathBuf>,
    /// Ask the running kernel too, in real time: some minutes
    #[arg(long, conflicts_with = "list")]
    pub emulate: bool,
    /// List the papers, and check nothing
    #[arg(long, conflicts_with = "json")]
    pub list: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Remove devices that a dead process left behind; nothing of a living one
    #[arg(long)]
    pub clean: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// Print this one's file
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct StacksArgs {
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// Print every parameter that is in force, and where its value comes from: this stack, a base of it, or the default
    #[arg(long, requires = "name")]
    pub resolved: bool,
    /// Print what makes the running Linux kernel behave like it: sysctls, route and socket options, and what the
    /// kernel does otherwise
    #[arg(long, requires = "name", conflicts_with = "resolved")]
    pub linux: bool,
    /// Print this machine as a stack: the shipped one of the nearest Linux, and what its sysctls and a route have otherwise
    #[arg(long, conflicts_with_all = ["name", "resolved", "linux"])]
    pub of_this_host: bool,
    /// Take the attributes of the route to this address [default: the default route]
    #[arg(long, value_name = "ADDRESS", requires = "of_this_host")]
    pub to: Option<std::net::IpAddr>,
    /// Write it to this file, for `sender.stack = "FILE"`
    #[arg(long, value_name = "FILE", requires = "of_this_host", value_parser = new_path())]
    pub out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, requires = "of_this_host")]
    pub json: bool,
}
