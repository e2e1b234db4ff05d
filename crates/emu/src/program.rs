//! Programs of the user in a host.

use crate::host_error::{BE_ROOT, HostError};
use crate::sys::child::die_with_parent;
use crate::{Host, Namespace};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What is started in a host, and how.
#[derive(Debug)]
pub struct ProgramSettings {
    /// The program and its arguments, at least one.
    pub command: Vec<OsString>,
    /// Names that resolve in it, beside those of this machine.
    pub names: Vec<(IpAddr, String)>,
    /// It stays out of what the terminal sends to the foreground (Ctrl-C), reads nothing, and prints on stderr.
    pub background: bool,
}

/// A program in a host. It has a process namespace of its own: when its first process ends, or this process does, however it does, all that it has
/// started ends too.
#[derive(Debug)]
pub struct Program {
    process: Arc<Mutex<Option<Pid>>>,
    ended: Receiver<io::Result<ExitStatus>>,
}

/// First process of its namespace: it waits for the program, which then takes signals as it would elsewhere.
const FOREGROUND: &str = "\"$@\"; exit $?";
/// The same of one that nobody types at: its shell does not tell the terminal how it ended.
const BACKGROUND: &str = "\"$@\" & exec 2>/dev/null; wait $!; exit $?";

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started, or has no namespaces of its own.
    pub fn start(host: &Host, settings: ProgramSettings) -> Result<Program, HostError> {
        let namespace = host.namespace().try_clone()?;
        let process = Arc::new(Mutex::new(None));
        let (started, starting) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let of_thread = Arc::clone(&process);
        // The program dies with the thread that starts it, which therefore waits for it.
        let keeper = move || match start_inside(&namespace, &settings) {
            Err(error) => drop(started.send(Err(error))),
            Ok(mut child) => {
                let pid = Pid::from_raw(child.id().cast_signed());
                *of_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
                drop(started.send(Ok(())));
                while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
                    .is_err_and(|error| error == nix::errno::Errno::EINTR)
                {}
                // From here on its number may be another's.
                *of_thread.lock().unwrap_or_else(PoisonError::into_inner) = None;
                drop(ends.send(child.wait()));
            }
        };
        thread::Builder::new()
            .name("farpath-program".to_owned())
            .spawn(keeper)
            .map_err(|error| HostError::kernel("start a thread", "", error))?;
        starting.recv().unwrap_or_else(|_| {
            Err(HostError::kernel("start a program", "", io::Error::other("its thread is gone")))
        })?;
        Ok(Program { process, ended })
    }

    /// How it ended, if it has or does so within this time.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn wait(&self, at_most: Duration) -> io::Result<Option<ExitStatus>> {
        match self.ended.recv_timeout(at_most) {
            Ok(status) => status.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("it has ended before")),
        }
    }

    /// Asks it to end (SIGTERM), and ends it and all that it has started where it does not within a second.
    pub fn end(&self) {
        self.signal(|pid| killpg(pid, Signal::SIGTERM).or_else(|_| kill(pid, Signal::SIGTERM)));
        if !matches!(self.wait(Duration::from_secs(1)), Ok(None)) {
            return;
        }
        self.signal(|pid| kill(pid, Signal::SIGKILL));
        let _ = self.wait(Duration::from_secs(5));
    }

    fn signal(&self, send: impl Fn(Pid) -> nix::Result<()>) {
        if let Some(pid) = *self.process.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = send(pid);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(|pid| kill(pid, Signal::SIGKILL));
    }
}

/// What a shell would exit with.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

fn start_inside(namespace: &Namespace, settings: &ProgramSettings) -> Result<Child, HostError> {
    namespace.enter()?;
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|error| HostError::kernel("make a mount namespace", BE_ROOT, error))?;
    name_hosts(&settings.names)?;
    unshare(CloneFlags::CLONE_NEWPID)
        .map_err(|error| HostError::kernel("make a process namespace", BE_ROOT, error))?;
    let mut command = Command::new("/bin/sh");
    let first = if settings.background { BACKGROUND } else { FOREGROUND };
    command.arg("-c").arg(first).arg("farpath").args(&settings.command);
    if settings.background {
        command.process_group(0).stdin(Stdio::null()).stdout(io::stderr());
    }
    die_with_parent(&mut command);
    command.spawn().map_err(|error| HostError::kernel("start /bin/sh", "", error))
}

/// Puts names beside those of the machine's /etc/hosts, for the mount namespace of the calling thread alone.
fn name_hosts(names: &[(IpAddr, String)]) -> Result<(), HostError> {
    const HOSTS: &str = "/etc/hosts";
    let failed =
        |error: io::Error| HostError::kernel(format!("put names into {HOSTS} of a host"), BE_ROOT, error);
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).map_err(|error| failed(error.into()))?;
    if !Path::new(HOSTS).exists() {
        return Ok(());
    }
    let mut text = std::fs::read_to_string(HOSTS).map_err(failed)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for (address, name) in names {
        text.push_str(&format!("{address}\t{name}\n"));
    }
    // It is unlinked at the end of this function; the mount keeps it.
    let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(failed)?;
    mount(Some(file.path()), HOSTS, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|error| failed(error.into()))
}
