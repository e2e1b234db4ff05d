//! Programs of the user on a path: `farpath shell`.

use super::hosts::Hosts;
use super::program_recorder::ProgramRecorder;
use crate::EmulateError;
use crate::virtual_time::{Console, Stream, kernel_of, shell_in_guest};
use farpath_emu::{
    Clock, EmuError, Host, HostError, HostSettings, Program, ProgramSettings, Reach, Uplink, exit_code,
};
use farpath_experiment::{Experiment, ListeningPort, host_name};
use farpath_observe::capture::CaptureError;
use farpath_observe::provenance;
use farpath_path::{Direction, PerDirection};
use farpath_units::Duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

/// What runs on a path, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellSettings {
    /// The command on the near host, with its arguments.
    pub command: Vec<OsString>,
    /// The command on the far host, which is started first and ended last.
    pub far: Option<Vec<OsString>>,
    /// The near one is started when the far host listens at this port.
    #[serde(with = "port")]
    pub far_port: Option<ListeningPort>,
    /// Behind the path is the machine's own network, by way of the far host. In real time alone.
    pub uplink: bool,
    /// Hosts are configured like the experiment's stacks; else they are as this kernel makes them.
    pub like_stacks: bool,
}

/// As people write it.
mod port {
    use farpath_experiment::ListeningPort;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(port: &Option<ListeningPort>, to: S) -> Result<S::Ok, S::Error> {
        port.map(|port| port.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ListeningPort>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// A command that is run on a path.
#[derive(Debug, Clone, Copy)]
pub struct ShellRun<'a> {
    /// Whose path it is. Where forward packets come from is the near end. Its transfer and flows are not run.
    pub experiment: &'a Experiment,
    /// Which of its points.
    pub point: usize,
    /// Of all that the path draws.
    pub seed: u64,
    /// What runs.
    pub settings: &'a ShellSettings,
    /// Where packets are written as pcapng, and so many bytes of each.
    pub capture: Option<(&'a File, u32)>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellEnd {
    /// What the near command has exited with, as a shell has it.
    pub code: u8,
    /// Why the near command was not even started.
    pub refused: Option<String>,
    /// Packets that were offered to the path, and that it dropped: forward, and in reverse.
    pub packets: [(u64, u64); 2],
    /// How late packets were handed over: the median, the 99th percentile, the worst, in ns.
    pub late_ns: [u64; 3],
    /// Packets that the hosts' devices have dropped, beside the path.
    pub dropped_outside: u64,
    /// From the hosts' beginning to their end, in ns of their clock.
    pub elapsed_ns: u64,
}

/// What a guest is told of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ShellTask {
    pub(crate) point: usize,
    pub(crate) seed: u64,
    settings: ShellSettings,
    environment: Vec<(OsString, OsString)>,
    snaplen: Option<u32>,
}

/// The file in which a guest leaves what came of it.
const END: &str = "shell.json";

/// Why programs were not run on a path, or no further.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// There are no hosts like these.
    #[error(transparent)]
    Emulate(#[from] EmulateError),
    /// A host, or a program in it, cannot be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The path ended.
    #[error(transparent)]
    Path(#[from] EmuError),
    /// The far command has ended before anybody could reach it.
    #[error("the far command ended with {code} before it listened at port {port}")]
    FarEnded {
        /// What it exited with.
        code: u8,
        /// Where it was to listen.
        port: ListeningPort,
    },
    /// There is no far command, and nothing listens by itself.
    #[error("--far-port {port}: nothing on the far host can listen there; expected --far COMMAND too")]
    NoFar {
        /// Where it was to listen.
        port: ListeningPort,
    },
    /// The far command does not listen.
    #[error("{0}")]
    NeverListened(String),
    /// A guest ended before its programs did.
    #[error("{0}")]
    Guest(String),
    /// The capture cannot be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// What a program prints cannot be taken.
    #[error("taking what a program prints: {0}")]
    Output(#[source] std::io::Error),
    /// The kernel does not say how a program ended.
    #[error("waiting for a program: {0}")]
    Wait(#[source] std::io::Error),
}

impl ShellError {
    /// Whether the near command was never started, so that a capture holds nothing that was asked for.
    pub fn is_before_the_command(&self) -> bool {
        match self {
            ShellError::Emulate(_)
            | ShellError::Host(_)
            | ShellError::FarEnded { .. }
            | ShellError::NoFar { .. }
            | ShellError::NeverListened(_) => true,
            ShellError::Path(_)
            | ShellError::Guest(_)
            | ShellError::Capture(_)
            | ShellError::Output(_)
            | ShellError::Wait(_) => false,
        }
    }
}

/// How long a host may take until it listens where another program waits for it.
pub(super) const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
/// How often it is looked whether the far host listens, or the machine's user wants an end.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// What a shell says of a program that SIGTERM has ended.
const TERMINATED: u8 = 143;

/// Whether the machine's own network can be behind a path.
///
/// # Errors
/// Why not, and what would help.
pub fn may_uplink() -> Result<(), ShellError> {
    Ok(Reach::of_this_machine().map(drop)?)
}

/// Runs a command at one end of a path, and another at the other end, until the first ends or `stop` is set: on the running kernel in real
/// time or, where the experiment says so, on a kernel in virtual time. There what they print goes to `output` as they print it; here it goes
/// where this process's does.
///
/// # Errors
/// When there are no privileges for it, the far program does not start or listen, or the path comes to an end.
pub fn shell(
    run: &ShellRun<'_>,
    stop: &AtomicBool,
    output: impl FnMut(Stream, &[u8]),
) -> Result<ShellEnd, ShellError> {
    let scenario = &run.experiment.point(run.point).scenario;
    let Some(kernel) = kernel_of(scenario)? else { return run_here(run, stop, None) };
    let task = ShellTask {
        point: run.point,
        seed: run.seed,
        settings: run.settings.clone(),
        environment: std::env::vars_os().collect(),
        snaplen: run.capture.map(|(_, snaplen)| snaplen),
    };
    let end = shell_in_guest(run.experiment, task, &kernel, stop, run.capture, output)?;
    Ok(end.unwrap_or(ShellEnd {
        code: TERMINATED,
        refused: None,
        packets: [(0, 0); 2],
        late_ns: [0; 3],
        dropped_outside: 0,
        elapsed_ns: 0,
    }))
}

/// In a guest: runs it, and leaves what came of it in `out`.
pub(crate) fn carry_out_shell(
    experiment: &Experiment,
    task: &ShellTask,
    console: &Console,
    capture: &Path,
    out: &Path,
) -> Result<(), ShellError> {
    let ShellTask { point, seed, settings, environment, snaplen } = task;
    let file = snaplen.map(|_| File::create_new(capture)).transpose().map_err(CaptureError::from)?;
    let run =
        ShellRun { experiment, point: *point, seed: *seed, settings, capture: file.as_ref().zip(*snaplen) };
    let end = run_here(&run, &AtomicBool::new(false), Some(&Surroundings { console, environment }))?;
    let text = serde_json::to_vec(&end).expect("plain data");
    Ok(fs::write(out.join(END), text).map_err(EmulateError::WorkerFiles)?)
}

/// What a guest has left of it.
pub(crate) fn read_shell_end(out: &Path) -> Option<ShellEnd> {
    serde_json::from_slice(&fs::read(out.join(END)).ok()?).ok()
}

/// What programs in a guest have in place of their parent's.
struct Surroundings<'a> {
    console: &'a Console,
    environment: &'a [(OsString, OsString)],
}

fn run_here(
    run: &ShellRun<'_>,
    stop: &AtomicBool,
    surroundings: Option<&Surroundings<'_>>,
) -> Result<ShellEnd, ShellError> {
    let ShellRun { experiment, seed, settings, .. } = *run;
    let point = experiment.point(run.point);
    let scenario = &point.scenario;
    let reach = settings.uplink.then(Reach::of_this_machine).transpose()?;
    let near = reach.map_or_else(HostSettings::near, Reach::near);
    let mut provenance = provenance(experiment, &point);
    let (hosts, clamp, _controls) =
        Hosts::for_programs(scenario, near, settings.like_stacks, &mut provenance)?;
    let uplink = reach.map(|reach| Uplink::between(&hosts.forward, &hosts.reverse, reach)).transpose()?;
    let capture = run.capture.map(|(file, snaplen)| super::tape(file, snaplen, &point, seed, &provenance));
    let mut watch = ProgramRecorder::new(capture.transpose()?);
    let clock = super::start_clock(scenario);
    let (report, (ended, over_at)) =
        super::carry(scenario, seed, &hosts, clamp, clock, &mut watch, |done| {
            let resolver = uplink.as_ref().and_then(Uplink::resolver);
            let ends = Ends { hosts: &hosts, clock, settings, resolver, surroundings, over: &[stop, done] };
            (ends.run(super::look_every(scenario)), clock.now())
        })?;
    watch.finish().map(drop)?;
    let (code, refused) = ended?;
    Ok(ShellEnd {
        code,
        refused,
        packets: Direction::BOTH.map(|way| (report.packets[way].offered, report.packets[way].dropped)),
        late_ns: super::late_ns(&report),
        dropped_outside: super::dropped_outside(&hosts)?,
        elapsed_ns: over_at.as_nanos(),
    })
}

/// Both ends of the path, and what runs there.
struct Ends<'a> {
    hosts: &'a PerDirection<Host>,
    clock: Clock,
    settings: &'a ShellSettings,
    /// What the programs' `/etc/resolv.conf` says in place of the machine's.
    resolver: Option<&'a str>,
    surroundings: Option<&'a Surroundings<'a>>,
    over: &'a [&'a AtomicBool],
}

/// A program, and those who take what it prints in a guest.
struct Running<'scope> {
    program: Program,
    printers: Vec<ScopedJoinHandle<'scope, io::Result<()>>>,
}

impl Running<'_> {
    /// Waits until all that it has printed is on its way; it has ended.
    fn printed(self) -> Result<(), ShellError> {
        for printer in self.printers {
            let printed = printer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            printed.map_err(ShellError::Output)?;
        }
        Ok(())
    }
}

impl Ends<'_> {
    fn is_over(&self) -> bool {
        self.over.iter().any(|over| over.load(Ordering::Relaxed))
    }

    /// Runs the programs. Gives what the near one exits with, or why it was not started; `look` is how often it is looked whether all
    /// is over.
    fn run(&self, look: Duration) -> Result<(u8, Option<String>), ShellError> {
        let Ends { hosts, settings, .. } = self;
        thread::scope(|scope| {
            let far = settings.far.as_ref();
            let far = far.map(|command| self.start(scope, &hosts.reverse, command, true)).transpose()?;
            if let Some(port) = settings.far_port {
                self.wait_until_far_listens(port, far.as_ref().map(|far| &far.program))?;
            }
            let ended = match self.start(scope, &hosts.forward, &settings.command, false) {
                Ok(near) => {
                    let code = loop {
                        if let Some(status) = near.program.wait(look).map_err(ShellError::Wait)? {
                            break exit_code(status);
                        }
                        if self.is_over() {
                            near.program.end();
                            break TERMINATED;
                        }
                    };
                    near.printed()?;
                    (code, None)
                }
                // As a shell has it: 127 for what is not found, 126 for what cannot be run.
                Err(HostError::Program { name, source }) => {
                    let code = if source.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
                    (code, Some(HostError::Program { name, source }.to_string()))
                }
                Err(error) => return Err(error.into()),
            };
            if let Some(far) = far {
                far.program.end();
                far.printed()?;
            }
            Ok(ended)
        })
    }

    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        host: &Host,
        command: &[OsString],
        background: bool,
    ) -> Result<Running<'scope>, HostError> {
        let mut program = ProgramSettings {
            command: command.to_vec(),
            names: names(),
            resolver: self.resolver.map(str::to_owned),
            background,
            ..Default::default()
        };
        let mut printers = Vec::new();
        match self.surroundings {
            None if background => {
                program.stdio = Some([Stdio::null(), io::stderr().into(), io::stderr().into()]);
            }
            None => {}
            Some(&Surroundings { console, environment }) => {
                program.environment = Some(environment.to_vec());
                let to = if background { Stream::Error } else { Stream::Output };
                let mut printed = |stream| -> Result<Stdio, HostError> {
                    let (from, to) = io::pipe().map_err(|source| HostError::Kernel {
                        what: "make a pipe for a program".to_owned(),
                        help: "",
                        source,
                    })?;
                    printers.push(scope.spawn(move || console.print_all(stream, from)));
                    Ok(to.into())
                };
                program.stdio = Some([Stdio::null(), printed(to)?, printed(Stream::Error)?]);
            }
        }
        Ok(Running { program: Program::start(host, program)?, printers })
    }

    fn wait_until_far_listens(&self, port: ListeningPort, far: Option<&Program>) -> Result<(), ShellError> {
        let began = self.clock.now();
        while !self.is_over() && !listens(&self.hosts.reverse, port)? {
            match far {
                Some(far) => {
                    if let Some(status) = far.wait(LOOK).map_err(ShellError::Wait)? {
                        return Err(ShellError::FarEnded { code: exit_code(status), port });
                    }
                }
                None => return Err(ShellError::NoFar { port }),
            }
            if self.clock.now().saturating_since(began) > GIVE_UP_AFTER {
                let why = nothing_listens(&self.hosts.reverse, host_name(Direction::Reverse), port)?;
                return Err(ShellError::NeverListened(why));
            }
        }
        Ok(())
    }
}

/// What hosts are called in both.
pub(super) fn names() -> Vec<(IpAddr, String)> {
    let of = |settings: HostSettings, direction| {
        let ((v4, v6), name) = (settings.address, host_name(direction));
        [(IpAddr::V4(v4), name.to_owned()), (IpAddr::V6(v6), name.to_owned())]
    };
    let near = of(HostSettings::near(), Direction::Forward);
    let far = of(HostSettings::far(), Direction::Reverse);
    [near, far].into_iter().flatten().collect()
}

/// Whether a socket of the host listens at a port.
pub(super) fn listens(host: &Host, port: ListeningPort) -> Result<bool, HostError> {
    Ok(listening(host)?.contains(&(port.udp, port.number)))
}

/// Why a program that waits for a port of a host is not started, and where else it could reach something.
pub(super) fn nothing_listens(host: &Host, name: &str, port: ListeningPort) -> Result<String, HostError> {
    let listening = listening(host)?;
    let ports = listening.iter().map(|&(udp, number)| ListeningPort { number, udp }.to_string());
    let instead = match &ports.collect::<Vec<_>>()[..] {
        [] => "nothing listens there at all".to_owned(),
        ports => format!("what listens there: {}", ports.join(", ")),
    };
    Ok(format!("nothing on the {name} host listens at port {port} after {GIVE_UP_AFTER:.0}; {instead}"))
}

/// Ports of the host at which a socket listens, those of UDP after those of TCP: of TCP in state LISTEN, of UDP bound and not connected
/// (proc_pid_net(5): states 0A and 07).
fn listening(host: &Host) -> Result<BTreeSet<(bool, NonZeroU16)>, HostError> {
    host.namespace().run(|| {
        let mut ports = BTreeSet::new();
        for (family, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
            let table = fs::read_to_string(format!("/proc/thread-self/net/{family}")).unwrap_or_default();
            ports.extend(table.lines().skip(1).filter_map(|line| {
                let mut fields = line.split_whitespace().skip(1);
                let (_, number) = fields.next()?.rsplit_once(':')?;
                let number = NonZeroU16::new(u16::from_str_radix(number, 16).ok()?)?;
                (fields.nth(1) == Some(state)).then_some((state == "07", number))
            }));
        }
        ports
    })
}
