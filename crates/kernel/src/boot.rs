//! Starting a program in a kernel of its own.

use crate::{Kernel, KernelError};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// In the environment of a guest's program: its working directory.
pub(crate) const WORK_DIR: &str = "FARPATH_ROOM";

/// In the environment of a kernel: what computing costs.
pub(crate) const CPU_COST: &str = "FARPATH_CPU_COST";

/// The working directory by the same name each time: the kernel's process is in it, and the kernel's files are those that this process
/// sees.
const HERE: &str = "/proc/self/cwd";

/// What is kept of a console: a panic and what led to it fit in.
const CONSOLE_LINES: usize = 40;

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a guest that hung may take to say what it is at.
const ANSWER: Duration = Duration::from_secs(3);

/// The date in a guest at its start, in ns since 1970: a number of its own, as it is mixed into the guest's chance.
const START_NS: u64 = 1_700_000_000_000_000_000;

/// A machine that runs one program, in virtual time.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// Its kernel.
    pub kernel: &'a Kernel,
    /// A folder that the machine shares with this one: what it leaves lying about is here, and its results will be.
    pub work_dir: &'a Path,
    /// Its first and only program, a file in the working directory. It sees all files of this machine, and can change none of them
    /// before [`guest::hand_out`](crate::guest::hand_out). It shall end with
    /// [`guest::power_off`](crate::guest::power_off).
    pub program: &'a str,
    /// The program's first argument: a word without dots.
    pub command: &'a str,
    /// All chance of the machine comes from it.
    pub seed: u64,
    /// Its memory in MB. Linux sizes TCP's buffers by it: from 1024 on they are as on any machine.
    pub memory_mb: u64,
    /// How many seconds pass in it for each second of processor time that its programs take, but for the first; none where it is 0.
    /// The host's time is no part of what repeats.
    pub cpu_cost: f64,
    /// How long it may take, in real time: what hangs in virtual time hangs for ever.
    pub give_up_after: Duration,
}

/// How a machine came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Its program switched it off.
    Off,
    /// It was stopped from outside.
    Stopped,
    /// It took longer than it may.
    Hung,
    /// Its kernel panicked or its process was killed.
    Died(ExitStatus),
}

/// The end of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it came.
    pub halt: Halt,
    /// The last lines on its console.
    pub console: Vec<String>,
    /// Of one that hung, the program that its processor was at, where it could still be asked; that of Linux itself is called `swapper`.
    pub running: Option<String>,
}

impl Boot<'_> {
    /// Runs it to its end. Each line on its console goes to `line` first; those for which it gives `true` were meant for
    /// it and are not kept.
    ///
    /// # Errors
    /// The kernel cannot be started at all.
    pub fn run(&self, stop: &AtomicBool, mut line: impl FnMut(&str) -> bool) -> Result<Ended, KernelError> {
        let path = self.kernel.program();
        if self.cpu_cost > 0.0 && !self.kernel.can_charge_for_computing() {
            return Err(KernelError::FreeComputing(self.kernel.about.name.clone()));
        }
        let (mut child, console) =
            self.start().map_err(|source| KernelError::Start { path: path.clone(), source })?;
        let (sender, lines) = mpsc::channel();
        let reader = thread::spawn(move || read_lines(console, |line| sender.send(line).is_ok()));
        let deadline = now() + self.give_up_after;
        let mut last = VecDeque::new();
        let (mut given_up, mut running) = (None, None);
        loop {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(text) if line(&text) => {}
                Ok(text) => {
                    last.push_back(text);
                    if last.len() > CONSOLE_LINES {
                        last.pop_front();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let halt = if stop.load(Ordering::Relaxed) {
                Halt::Stopped
            } else if now() >= deadline {
                Halt::Hung
            } else {
                continue;
            };
            given_up = Some(halt);
            if halt == Halt::Hung && self.ask_what_runs().is_ok() {
                let until = now() + ANSWER;
                while running.is_none()
                    && let Ok(text) = lines.recv_timeout(until.saturating_duration_since(now()))
                {
                    running = running_program(&text);
                    line(&text);
                }
            }
            kill(&child);
            break;
        }
        // What it started may hold its console open for longer than it lives.
        let status = child.wait().map_err(|source| KernelError::Start { path, source })?;
        kill(&child);
        drop(lines);
        let _ = reader.join();
        let halt = given_up.unwrap_or(if status.success() { Halt::Off } else { Halt::Died(status) });
        Ok(Ended { halt, console: last.into(), running })
    }

    /// Asks its kernel, by the management console of user-mode Linux, to print the registers of its processor, whose first line names the
    /// program (`sysrq p`); `sysrq 7` lets it print.
    fn ask_what_runs(&self) -> std::io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        for command in ["sysrq 7", "sysrq p"] {
            // Linux, arch/um/drivers/mconsole.h: magic number, version, length, and room for the command.
            let mut request = Vec::new();
            for number in [0xcafe_babe_u32, 2, command.len() as u32] {
                request.extend(number.to_ne_bytes());
            }
            request.extend(command.bytes());
            request.resize(12 + 512, 0);
            socket.send_to(&request, self.work_dir.join("guest/mconsole"))?;
        }
        Ok(())
    }

    fn start(&self) -> std::io::Result<(Child, PipeReader)> {
        let (console, out) = pipe()?;
        let mut command = Command::new(self.kernel.program());
        command
            .arg(format!("mem={}M", self.memory_mb))
            .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"])
            .args(["con=null", "con0=fd:0,fd:1", "quiet", "panic=-1", "uml_dir=.", "umid=guest"])
            .args(["time-travel=inf-cpu".to_owned(), format!("time-travel-start={START_NS}")])
            // The command line is mixed into the guest's chance: it must not hold the names of temporary folders.
            .arg(format!("init={HERE}/{}", self.program))
            // What a kernel does not know is for its first process.
            .arg(format!("{WORK_DIR}={HERE}"))
            .arg(self.command)
            .current_dir(self.work_dir)
            .env("LD_PRELOAD", self.kernel.shim())
            .env("FARPATH_SEED", self.seed.to_string())
            .env(CPU_COST, self.cpu_cost.to_string())
            .env("FARPATH_PARENT", std::process::id().to_string())
            // Its memory is a file: in shared memory, where it looks first without these.
            .env_remove("TMPDIR")
            .env_remove("TMP")
            .env_remove("TEMP")
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .process_group(0);
        Ok((command.spawn()?, console))
    }
}

#[expect(clippy::disallowed_methods, reason = "what hangs in virtual time is seen in real time only")]
fn now() -> Instant {
    Instant::now()
}

/// Ends it with all that it started. It is gone where that fails.
fn kill(child: &Child) {
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
}

/// The program that a line of a kernel's registers names: `Pid: 12, comm: python3 Not tainted 6.12.117`.
fn running_program(line: &str) -> Option<String> {
    let (_, rest) = line.strip_prefix("Pid: ")?.split_once(", comm: ")?;
    let name = rest.split_once(" Not tainted").or_else(|| rest.split_once(" Tainted"))?.0;
    Some(name.split('/').next().unwrap_or(name).to_owned())
}

fn read_lines(console: PipeReader, mut take: impl FnMut(String) -> bool) {
    let mut console = BufReader::new(console);
    let mut bytes = Vec::new();
    while console.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        bytes.clear();
        if !take(line) {
            return;
        }
    }
}

impl Ended {
    /// What happened, in words, for an end that was none of its program's.
    pub fn why(&self) -> Option<String> {
        let what = match self.halt {
            Halt::Off | Halt::Stopped => return None,
            Halt::Hung => match self.running.as_deref() {
                None => "the guest did not come to its end in time".to_owned(),
                Some("swapper") => {
                    "the guest did not come to its end in time: no program computes, all wait for \
                                    what never comes"
                        .to_owned()
                }
                Some(name) => format!(
                    "the guest did not come to its end in time: `{name}` computes; where it waits by looking again and \
                     again, without a system call that waits, the clock stands still"
                ),
            },
            Halt::Died(status) => match status.signal() {
                Some(signal) => format!("the guest was ended by signal {signal}"),
                None => format!("the guest died: {status}"),
            },
        };
        Some(match self.console.is_empty() {
            true => what,
            false => format!("{what}; the end of its console:\n{}", self.console.join("\n")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_runs_is_named_by_its_registers() {
        let named = |line| running_program(line);
        assert_eq!(named("Pid: 1, comm: python3 Not tainted 6.12.117").as_deref(), Some("python3"));
        assert_eq!(named("Pid: 0, comm: swapper/0 Tainted: G 6.1").as_deref(), Some("swapper"));
        assert_eq!(named("Pid: 1, comm: a b Not tainted 6.1").as_deref(), Some("a b"));
        assert_eq!(named("RIP: 0033:0x0000000060"), None);
    }
}
