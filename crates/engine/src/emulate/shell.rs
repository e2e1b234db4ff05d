//! Programs of the user on a path: `farpath shell`.

use super::hosts::Hosts;
use crate::EngineError;
use farpath_emu::{
    Clock, EmuError, Emulator, Host, HostError, HostSettings, LoopReport, NoRecorder, Program,
    ProgramSettings, Settings, exit_code,
};
use farpath_experiment::Scenario;
use farpath_path::{Direction, PerDirection};
use std::ffi::OsString;
use std::fs;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What runs on a path, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSettings {
    /// The command on the near host, with its arguments.
    pub command: Vec<OsString>,
    /// The command on the far host, which is started first and ended last.
    pub far: Option<Vec<OsString>>,
    /// The near one is started when the far host listens at this TCP port.
    pub far_port: Option<u16>,
    /// Hosts are configured like the experiment's stacks; else they are as this kernel makes them.
    pub like_stacks: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct ShellEnd {
    /// What the near command has exited with, as a shell has it.
    pub code: u8,
    /// What the loop between the hosts says.
    pub report: LoopReport,
    /// Packets that the hosts' devices have dropped, beside the path.
    pub dropped_outside: u64,
}

/// Why programs were not run on a path, or no further.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// There are no hosts like these.
    #[error(transparent)]
    Engine(#[from] EngineError),
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
        port: u16,
    },
    /// The far command does not listen.
    #[error("nothing on the far host listens at port {port} after {} s", GIVE_UP_AFTER.as_secs())]
    NeverListened {
        /// Where it was to.
        port: u16,
    },
    /// The kernel does not say how a program ended.
    #[error("waiting for a program: {0}")]
    Wait(#[source] std::io::Error),
}

/// How long a far command may take until it listens.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a command at one end of the scenario's path, and another at the other end, until the first ends or `stop` is set. Where forward packets
/// come from is the near end. Its transfer and flows are not run.
///
/// # Errors
/// When there are no privileges for it, a program does not start or listen, or the path comes to an end.
pub fn shell(
    scenario: &Scenario,
    seed: u64,
    settings: &ShellSettings,
    stop: &AtomicBool,
) -> Result<ShellEnd, ShellError> {
    let (hosts, clamp) = if settings.like_stacks {
        let configured = Hosts::configured(scenario)?;
        let clamp = PerDirection::from_fn(|way| configured.profile[way].window_clamp);
        (configured.of, clamp)
    } else {
        let hosts = PerDirection {
            forward: Host::new(&HostSettings::near())?,
            reverse: Host::new(&HostSettings::far())?,
        };
        (hosts, PerDirection::default())
    };
    let [near, far] = Direction::BOTH.map(|direction| hosts[direction].port());
    let loop_settings = Settings {
        clamp,
        memory: scenario.emulate.memory,
        coalesce: scenario.emulate.coalesce,
        ..Settings::default()
    };
    let mut emulator = Emulator::new(&scenario.path, seed, loop_settings, near, far, Clock::start())?;
    let done = AtomicBool::new(false);
    let (report, code) = thread::scope(|scope| {
        let path = scope.spawn(|| {
            let report = emulator.run(&done, &mut NoRecorder);
            // Without a path nobody gets anywhere.
            done.store(true, Ordering::Relaxed);
            report
        });
        let over = super::SetWhenDropped(&done);
        let code = run_programs(&hosts, settings, &[stop, &done]);
        drop(over);
        (path.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), code)
    });
    // What ended the path is why the program ended.
    let report = report?;
    let dropped = Direction::BOTH.map(|direction| hosts[direction].dropped().map(|dropped| dropped.total()));
    let dropped_outside = dropped.into_iter().sum::<Result<u64, HostError>>()?;
    Ok(ShellEnd { code: code?, report, dropped_outside })
}

fn run_programs(
    hosts: &PerDirection<Host>,
    settings: &ShellSettings,
    over: &[&AtomicBool],
) -> Result<u8, ShellError> {
    let is_over = || over.iter().any(|over| over.load(Ordering::Relaxed));
    let program = |host: &Host, command: &[OsString], background| {
        Program::start(host, ProgramSettings { command: command.to_vec(), names: names(), background })
    };
    let far = settings.far.as_ref().map(|command| program(&hosts.reverse, command, true)).transpose()?;
    if let Some(port) = settings.far_port {
        let mut waited = Duration::ZERO;
        while !is_over() && !listens(&hosts.reverse, port)? {
            if let Some(far) = &far
                && let Some(status) = far.wait(LOOK).map_err(ShellError::Wait)?
            {
                return Err(ShellError::FarEnded { code: exit_code(status), port });
            }
            waited += LOOK;
            if waited > GIVE_UP_AFTER {
                return Err(ShellError::NeverListened { port });
            }
        }
    }
    let near = program(&hosts.forward, &settings.command, false)?;
    let code = loop {
        if let Some(status) = near.wait(LOOK).map_err(ShellError::Wait)? {
            break exit_code(status);
        }
        if is_over() {
            near.end();
            // As a shell says of SIGTERM.
            break 143;
        }
    };
    far.iter().for_each(Program::end);
    Ok(code)
}

/// What hosts are called in both.
fn names() -> Vec<(IpAddr, String)> {
    let of = |settings: HostSettings, name: &str| {
        let (v4, v6) = settings.address;
        [(IpAddr::V4(v4), name.to_owned()), (IpAddr::V6(v6), name.to_owned())]
    };
    [of(HostSettings::near(), "near"), of(HostSettings::far(), "far")].into_iter().flatten().collect()
}

/// Whether a socket of the host listens at a TCP port (proc_pid_net(5): state 0A).
fn listens(host: &Host, port: u16) -> Result<bool, HostError> {
    let ending = format!(":{port:04X}");
    host.namespace().run(|| {
        ["tcp", "tcp6"].iter().any(|family| {
            let table = fs::read_to_string(format!("/proc/thread-self/net/{family}")).unwrap_or_default();
            table.lines().skip(1).any(|line| {
                let mut fields = line.split_whitespace().skip(1);
                fields.next().is_some_and(|local| local.ends_with(&ending)) && fields.nth(1) == Some("0A")
            })
        })
    })
}
