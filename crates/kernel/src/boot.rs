//! Starting a program in a kernel of its own.

use crate::{Kernel, KernelError};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// In the environment of a guest's program: its working directory.
pub(crate) const WORK_DIR: &str = "FARPATH_ROOM";

/// The working directory by the same name each time: the kernel's process is in it, and the kernel's files are those that this process
/// sees.
const HERE: &str = "/proc/self/cwd";

/// What is kept of a console: a panic and what led to it fit in.
const CONSOLE_LINES: usize = 40;

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
}

impl Boot<'_> {
    /// Runs it to its end. Each line on its console goes to `line` first; those for which it gives `true` were meant for
    /// it and are not kept.
    ///
    /// # Errors
    /// The kernel cannot be started at all.
    pub fn run(&self, stop: &AtomicBool, mut line: impl FnMut(&str) -> bool) -> Result<Ended, KernelError> {
        let path = self.kernel.program();
        let (mut child, console) =
            self.start().map_err(|source| KernelError::Start { path: path.clone(), source })?;
        let (sender, lines) = mpsc::channel();
        let reader = thread::spawn(move || read_lines(console, |line| sender.send(line).is_ok()));
        let deadline = now() + self.give_up_after;
        let mut last = VecDeque::new();
        let mut given_up = None;
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
            kill(&child);
            break;
        }
        // What it started may hold its console open for longer than it lives.
        let status = child.wait().map_err(|source| KernelError::Start { path, source })?;
        kill(&child);
        drop(lines);
        let _ = reader.join();
        let halt = given_up.unwrap_or(if status.success() { Halt::Off } else { Halt::Died(status) });
        Ok(Ended { halt, console: last.into() })
    }

    fn start(&self) -> std::io::Result<(Child, PipeReader)> {
        let (console, out) = pipe()?;
        let mut command = Command::new(self.kernel.program());
        command
            .arg(format!("mem={}M", self.memory_mb))
            .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"])
            .args(["con=null", "con0=fd:0,fd:1", "quiet", "panic=-1", "uml_dir=."])
            .args(["time-travel=inf-cpu".to_owned(), format!("time-travel-start={START_NS}")])
            // The command line is mixed into the guest's chance: it must not hold the names of temporary folders.
            .arg(format!("init={HERE}/{}", self.program))
            // What a kernel does not know is for its first process.
            .arg(format!("{WORK_DIR}={HERE}"))
            .arg(self.command)
            .current_dir(self.work_dir)
            .env("LD_PRELOAD", self.kernel.shim())
            .env("FARPATH_SEED", self.seed.to_string())
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
            Halt::Hung => "the guest did not come to its end in time".to_owned(),
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
