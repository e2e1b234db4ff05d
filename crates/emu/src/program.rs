//! Programs of the user in a host.

use crate::host_error::{BE_ROOT, HostError};
use crate::sys::child::under_a_first_process;
use crate::{Host, Namespace};
use farpath_units::Duration;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, PipeWriter};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What is started in a host, and how.
#[derive(Debug, Default)]
pub struct ProgramSettings {
    /// The program and its arguments, at least one.
    pub command: Vec<OsString>,
    /// Names that resolve in it, beside those of this machine.
    pub names: Vec<(IpAddr, String)>,
    /// What is in its `/etc/resolv.conf`; `None` for this machine's.
    pub resolver: Option<String>,
    /// It is not of the terminal's foreground: Ctrl-C does not reach it.
    pub background: bool,
    /// Its environment; `None` for this process's.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Its working directory; `None` for this process's.
    pub folder: Option<PathBuf>,
    /// Its input, output and error output; `None` for this process's.
    pub stdio: Option<[Stdio; 3]>,
}

/// A program in a host. It has a process namespace of its own: when its first process ends, or this process does, however it does, all that it has
/// started ends too.
#[derive(Debug)]
pub struct Program {
    process: Arc<Mutex<Option<Pid>>>,
    ended: Mutex<Receiver<io::Result<ExitStatus>>>,
}

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
        let keeper = move || match start_inside(&namespace, settings) {
            Err(error) => drop(started.send(Err(error))),
            // Its first process ends when nobody holds the pipe any more.
            Ok((mut child, _held)) => {
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
        Ok(Program { process, ended: Mutex::new(ended) })
    }

    /// How it ended, if it has or does so within this time.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn wait(&self, at_most: Duration) -> io::Result<Option<ExitStatus>> {
        let at_most = std::time::Duration::from_nanos(at_most.as_nanos());
        match self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(at_most) {
            Ok(status) => status.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("it has ended before")),
        }
    }

    /// How it ended, when it has.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn wait_to_its_end(&self) -> io::Result<ExitStatus> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv().unwrap_or_else(|_| Err(io::Error::other("it has ended before")))
    }

    /// Asks it and all that it has started to end (SIGTERM).
    pub fn ask_to_end(&self) {
        self.signal(|pid| kill(pid, Signal::SIGTERM));
    }

    /// Ends it and all that it has started (SIGKILL).
    pub fn kill(&self) {
        self.signal(|pid| kill(pid, Signal::SIGKILL));
    }

    /// Asks it and all that it has started to end (SIGTERM), and ends what has not within a second.
    pub fn end(&self) {
        self.ask_to_end();
        if !matches!(self.wait(Duration::from_secs(1)), Ok(None)) {
            return;
        }
        self.kill();
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
        self.kill();
    }
}

/// What a shell would exit with.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The program, and what this process has to hold for as long as it shall run.
fn start_inside(namespace: &Namespace, settings: ProgramSettings) -> Result<(Child, PipeWriter), HostError> {
    let ProgramSettings { command: words, names, resolver, background, environment, folder, stdio } =
        settings;
    let Some((program, arguments)) = words.split_first() else {
        return Err(HostError::Setting {
            key: "command",
            expected: "a program and its arguments",
            got: String::new(),
        });
    };
    namespace.enter()?;
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|error| HostError::kernel("make a mount namespace", BE_ROOT, error))?;
    make_mounts_private()?;
    name_hosts(&names)?;
    if let Some(text) = resolver {
        cover("/etc/resolv.conf", text.as_bytes())?;
    }
    unshare(CloneFlags::CLONE_NEWPID)
        .map_err(|error| HostError::kernel("make a process namespace", BE_ROOT, error))?;
    let mut command = Command::new(program);
    command.args(arguments);
    if background {
        command.process_group(0);
    }
    if let Some([input, output, errors]) = stdio {
        command.stdin(input).stdout(output).stderr(errors);
    }
    if let Some(environment) = environment {
        command.env_clear().envs(environment);
    }
    let name = program.to_string_lossy();
    if let Some(folder) = folder {
        // The same error from the kernel as for a program that is not there.
        if !folder.is_dir() {
            let what = format!("start `{name}` in {}, which is no folder", folder.display());
            return Err(HostError::kernel(what, "", io::Error::from(io::ErrorKind::NotADirectory)));
        }
        command.current_dir(folder);
    }
    let (alive, held) =
        io::pipe().map_err(|error| HostError::kernel("make a pipe for a program", "", error))?;
    under_a_first_process(&mut command, alive.as_fd(), held.as_fd());
    let child = command.spawn().map_err(|source| HostError::Program { name: name.into_owned(), source })?;
    Ok((child, held))
}

/// What is mounted by the calling thread from now on, nobody else sees.
fn make_mounts_private() -> Result<(), HostError> {
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| HostError::kernel("keep the mounts of a host to itself", BE_ROOT, error))
}

/// Puts names beside those of the machine's /etc/hosts, for the mount namespace of the calling thread alone.
fn name_hosts(names: &[(IpAddr, String)]) -> Result<(), HostError> {
    const HOSTS: &str = "/etc/hosts";
    let mut text = match std::fs::read(HOSTS) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(|error| HostError::kernel(format!("read {HOSTS}"), "", error))?,
    };
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    for (address, name) in names {
        text.extend_from_slice(format!("{address}\t{name}\n").as_bytes());
    }
    cover(HOSTS, &text)
}

/// Puts a text in place of a file that is there, for the mount namespace of the calling thread alone.
fn cover(place: &str, text: &[u8]) -> Result<(), HostError> {
    let failed = |error: io::Error| HostError::kernel(format!("change {place} of a host"), BE_ROOT, error);
    // The file is in memory that only this mount namespace has, so that nothing of it stays, however this process ends. A folder that is
    // there on every machine holds it for a moment.
    const FOR_A_MOMENT: &str = "/proc";
    let file = Path::new(FOR_A_MOMENT).join("file");
    let (kind, no) = (Some("tmpfs"), None::<&str>);
    mount(kind, FOR_A_MOMENT, kind, MsFlags::empty(), no).map_err(|error| failed(error.into()))?;
    let put = || {
        std::fs::write(&file, text)?;
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        Ok(mount(Some(&file), place, no, MsFlags::MS_BIND, no)?)
    };
    let put: io::Result<()> = put();
    let uncovered = umount2(FOR_A_MOMENT, MntFlags::MNT_DETACH);
    put.and(uncovered.map_err(io::Error::from)).map_err(failed)
}
