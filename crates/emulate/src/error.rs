//! Why there is no emulation of a scenario, or of programs.

#[cfg(target_os = "linux")]
use crate::real_time::ShellError;
#[cfg(target_os = "linux")]
use crate::worker::ElsewhereError;
use crate::{MAX_EMULATED_FLOWS, WITHOUT_DRIVER};
use farpath_observe::capture::CaptureError;

/// Why there is no emulation of a scenario that the experiment's checks let through.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The packets of a run cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// It knows no datagrams.
    #[error(transparent)]
    TcpOnly(#[from] farpath_experiment::TcpOnly),
    /// The programs of an emulation send each message.
    #[error(transparent)]
    NoLifetime(#[from] farpath_experiment::NoLifetime),
    /// The two ends know a datagram by a number in it.
    #[error("a datagram of {0}: an emulation numbers them, which takes 4 B; shorter ones are simulated")]
    ShortDatagram(farpath_units::Bytes),
    /// A host cannot be made.
    #[error(transparent)]
    Host(#[from] farpath_emu::HostError),
    /// Programs of the user have not run.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Programs(#[from] Box<ShellError>),
    /// The path between hosts cannot be made or kept going.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Emulation(#[from] farpath_emu::EmuError),
    /// A program at one end of a flow cannot begin.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Traffic(#[from] farpath_traffic::PrepareError),
    /// Explicit rate between hosts needs the driver.
    #[cfg(all(target_os = "linux", feature = "driver"))]
    #[error(
        "explicit_rate.wanted: {0}; `farpath simulate` needs nothing of it, and docs/driver.md says what it needs"
    )]
    Driver(#[from] farpath_driver::DriverError),
    /// It was built without.
    #[error("explicit_rate.wanted: {WITHOUT_DRIVER}")]
    WithoutDriver,
    /// What the driver does not ask for.
    #[error(
        "explicit_rate.type: the kernel's driver asks for one rate, and not for a `composite` one; `farpath simulate` knows it"
    )]
    NoComposite,
    /// In IPv6 structures are options of a header that a program would have to write.
    #[error(
        "emulate.ip: datagrams that ask for a rate (explicit_rate.wanted) are emulated in IPv4 alone; expected \"ipv4\", found \"ipv6\""
    )]
    DatagramsAskInV4,
    /// A guest's kernel takes no BPF.
    #[error("explicit_rate.wanted: a kernel in virtual time takes no BPF; expected emulate.clock = \"real\"")]
    NoDriverInGuest,
    /// A TCP of somebody else's stands at an end, and is not asked by this engine.
    #[error(transparent)]
    ForeignHost(#[from] farpath_experiment::ForeignHost),
    /// A BPF congestion controller is not loaded.
    #[cfg(all(target_os = "linux", feature = "driver"))]
    #[error("{key}: `{file}`: {source}")]
    Bpf {
        /// What asks for it.
        key: String,
        /// The object file.
        file: String,
        /// Why not.
        source: farpath_driver::ControlError,
    },
    /// It was built without what loads one.
    #[error("{key}: {WITHOUT_DRIVER}")]
    BpfWithoutDriver {
        /// What asks for it.
        key: String,
    },
    /// A guest's kernel takes no BPF congestion controller.
    #[error(
        "{key}: a BPF congestion control needs a kernel that translates BPF (CONFIG_BPF_JIT), and user-mode Linux, which a kernel in \
         virtual time is, has no translator: expected emulate.clock = \"real\", found `{file}`"
    )]
    NoBpfInGuest {
        /// What asks for it.
        key: String,
        /// The object file.
        file: String,
    },
    /// Sockets that ask for a rate have the driver's congestion controller.
    #[error(
        "{key}: sockets that ask for a rate (explicit_rate.wanted) have the driver's congestion control: expected one of the two, found \
         `{file}` beside it"
    )]
    BpfAndRate {
        /// What asks for it.
        key: String,
        /// The object file.
        file: String,
    },
    /// Programs of the user meet it only on hosts that are configured like the stacks.
    #[cfg(target_os = "linux")]
    #[error(
        "{key}: programs are on hosts as this kernel makes them, without `{file}`: expected --like-stacks"
    )]
    BpfUnlikeStacks {
        /// What asks for it.
        key: String,
        /// The object file.
        file: String,
    },
    /// A socket for datagrams fails.
    #[cfg(target_os = "linux")]
    #[error("datagrams between two hosts: {0}")]
    Datagrams(std::io::Error),
    /// There is no kernel for virtual time, or none that runs.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Kernel(#[from] farpath_kernel::KernelError),
    /// What another process of this program is told and leaves cannot be written or read.
    #[error("what another process is told and leaves: {0}")]
    WorkerFiles(std::io::Error),
    /// A guest cannot do what it is told.
    #[cfg(target_os = "linux")]
    #[error("in virtual time: {0}")]
    InGuest(ElsewhereError),
    /// A helper cannot do what it is told.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    InHelper(#[from] ElsewhereError),
    /// A helper cannot be started.
    #[error("cannot start a process that emulates in a user namespace of its own, {program}: {source}")]
    HelperStart {
        /// What it is.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A helper came to an end of its own.
    #[error("the process that emulates in a user namespace of its own: {0}")]
    Helper(String),
    /// Another process reads the experiment otherwise: its files have changed.
    #[error(transparent)]
    Experiment(Box<farpath_experiment::ExperimentError>),
    /// What another process left is no result.
    #[error(transparent)]
    Results(#[from] farpath_run::ResultsError),
    /// A kernel does not say what its sockets are.
    #[error("cannot read what the kernel says of sockets: {0}")]
    Sockets(std::io::Error),
    /// What a kernel counts cannot be read.
    #[error("cannot read what the kernel counts: {0}")]
    Counters(std::io::Error),
    /// More programs than a machine runs side by side.
    #[error("{0} flows; an emulation has {MAX_EMULATED_FLOWS} at most, as each has two programs of its own")]
    TooManyFlows(usize),
    /// More than a machine shall hold.
    #[error(transparent)]
    Memory(#[from] farpath_experiment::OverMemory),
    /// A host that would have to be two.
    #[error(
        "data goes both ways, and `sender` and `receiver` differ: a host of an emulation has one stack; give both the same"
    )]
    TwoStacks,
    /// A flow of an emulation that has a host of its own.
    #[error(
        "flow {0} has an `access`, or a `sender` or `receiver` that differs in more than `congestion.control` and \
         `explicit_rate.wanted`: all flows of an emulation are between the same two hosts; such flows are simulated"
    )]
    OwnEnds(usize),
    /// A congestion controller that the kernel lacks.
    #[error(transparent)]
    NoControl(#[from] farpath_experiment::NoControl),
}
