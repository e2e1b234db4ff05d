//! One connection from the near host to the far one, as fast as it goes.

use super::Unmeasured;
use farpath_emu::{Clock, HostSettings, Namespace};
use farpath_traffic::{BulkEnd, Opening, Prepared, Role, SocketOptions};
use farpath_units::{Bytes, Duration, Instant};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;

const PORT: u16 = 5201;
/// For a transfer that does not get on.
const DEADLINE: Duration = Duration::from_secs(120);

/// What was moved.
#[derive(Debug, Clone, Copy)]
pub struct Moved {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl Moved {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn gbit(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e9
    }

    pub fn gbit_per_s(&self) -> f64 {
        self.gbit() / self.seconds
    }
}

/// Something that moves bytes from one namespace to another.
pub trait Load {
    fn run(&self, near: &Namespace, far: &Namespace) -> Result<Moved, Unmeasured>;
}

/// iperf3, for so many seconds.
pub struct Iperf3 {
    pub control: &'static str,
    pub seconds: u32,
}

impl Load for Iperf3 {
    fn run(&self, near: &Namespace, far: &Namespace) -> Result<Moved, Unmeasured> {
        let address = HostSettings::far().address.0.to_string();
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Unmeasured::Load("iperf3 is not installed here".to_owned()),
            _ => Unmeasured::Io(error),
        };
        // A process begins in the namespace of the thread that starts it.
        let server = far.run(|| {
            let mut command = Command::new("iperf3");
            command.args(["--server", "--one-off", "--bind", &address]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
        })?;
        let _server = Ended(server.map_err(missing)?);
        far.run(until_listening)??;
        let output = near.run(|| {
            let mut command = Command::new("iperf3");
            command.args(["--client", &address, "--congestion", self.control, "--json", "--interval", "0"]);
            command.args(["--time", &self.seconds.to_string()]).output()
        })??;
        let said: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Unmeasured::Load(format!("iperf3 does not speak JSON: {error}")))?;
        if let Some(error) = said["error"].as_str() {
            return Err(Unmeasured::Load(format!("iperf3, {}: {error}", self.control)));
        }
        let received = &said["end"]["sum_received"];
        let moved = received["bytes"].as_u64().zip(received["seconds"].as_f64());
        moved
            .filter(|moved| moved.1 > 0.0)
            .map(|(bytes, seconds)| Moved { bytes, seconds })
            .ok_or_else(|| Unmeasured::Load("iperf3 does not say what it received".to_owned()))
    }
}

/// A child that does not outlive what needs it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It has ended by itself, or nobody asks it any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Until somebody listens on iperf3's port in the namespace of the calling thread.
#[expect(clippy::disallowed_methods, reason = "another process takes its time")]
fn until_listening() -> io::Result<()> {
    /// proc_net_tcp: state TCP_LISTEN.
    const LISTENS: &str = "0A";
    let port = format!(":{PORT:04X}");
    for _ in 0..1000 {
        let sockets = std::fs::read_to_string("/proc/thread-self/net/tcp")?;
        let listens = |line: &str| {
            let mut fields = line.split_whitespace().skip(1);
            fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some(LISTENS)
        };
        if sockets.lines().any(listens) {
            return Ok(());
        }
        thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "iperf3 does not listen"))
}

/// Our own programs, which look at every byte and close in good order: what was lost has been sent again.
pub struct OwnTraffic {
    pub control: &'static str,
    pub size: u64,
}

impl Load for OwnTraffic {
    fn run(&self, near: &Namespace, far: &Namespace) -> Result<Moved, Unmeasured> {
        let end = |role, opening, settings: HostSettings| BulkEnd {
            role,
            opening,
            local: SocketAddr::new(settings.address.0.into(), PORT),
            peer: SocketAddr::new(settings.peer.0.into(), PORT),
            size: Bytes(self.size),
            request: Bytes::ZERO,
            messages: None,
            reply: Bytes::ZERO,
            writing: Default::default(),
            exchanges: 1,
            token: None,
            start: Instant::ZERO,
            deadline: Instant::ZERO + DEADLINE,
            sample_every: None,
            read_rate: None,
            low_water: None,
            close_within: Duration::from_secs(2),
            socket: SocketOptions {
                congestion_control: Some(self.control.to_owned()),
                ..SocketOptions::default()
            },
        };
        let receiver = end(Role::Receiver, Opening::Listen, HostSettings::far());
        let receiver = far.run(|| Prepared::new(receiver))??;
        let sender = end(Role::Sender, Opening::Connect, HostSettings::near());
        let sender = near.run(|| Prepared::new(sender))??;
        let (epoch, stop) = (Clock::start().epoch(), AtomicBool::new(false));
        let received = thread::scope(|scope| {
            let receiving = scope.spawn(|| receiver.run(epoch, &stop, &mut |_| {}));
            sender.run(epoch, &stop, &mut |_| {});
            receiving.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
        });
        match received.finished_at.filter(|_| received.end.is_completed()) {
            Some(at) => {
                Ok(Moved { bytes: self.size, seconds: at.saturating_since(Instant::ZERO).as_secs_f64() })
            }
            None => Err(Unmeasured::Load(format!("the transfer failed: {}", received.end))),
        }
    }
}
