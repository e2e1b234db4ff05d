//! The peer's end: it waits, lets in whom it may, and does what it is asked, within its limits.
//!
//! It never begins anything. Connections are taken and datagrams answered for the address that the control connection
//! comes from and for nobody else, and only where they show a token that was given over it.

pub(crate) mod check;
mod flow;
mod ledger;
mod log;
mod quota;
mod session;

use crate::control::SILENCE;
use crate::key::Key;
use crate::protocol::{FromResponder, Refused, Why, line};
use farpath_units::{Bytes, Duration, Rate};
use ledger::Ledger;
use log::Log;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Where it waits if nobody says otherwise.
pub const PORT: u16 = 5277;

/// How often it looks whether to stop.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Connections that are taken one after the other, before it looks whether to stop.
const ACCEPTS: u32 = 64;

/// What it is to do, and how much of it.
#[derive(Debug, Clone)]
pub struct Serve {
    /// Where it waits.
    pub bind: Vec<SocketAddr>,
    /// Who has it may measure; without one, everybody.
    pub key: Option<Key>,
    /// What one client gets.
    pub limits: Limits,
}

/// How much is done for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many measure at once; from one address (one /64 of IPv6), two.
    pub clients: u32,
    /// How fast a client may send and is sent to; a flow that goes faster is ended.
    pub rate: Option<Rate>,
    /// Bytes for an address (a /64 of IPv6) in an hour, both ways together.
    pub bytes: Bytes,
    /// How long a client may stay.
    pub time: Duration,
    /// After which a client that cannot be reached is gone, whatever it has asked for.
    pub silence: Duration,
    /// Which ports data may take, the first and the last; any that the kernel chooses.
    pub data_ports: Option<(u16, u16)>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients: 4,
            rate: None,
            bytes: Bytes(20_000_000_000),
            time: Duration::from_secs(3600),
            silence: SILENCE,
            data_ports: None,
        }
    }
}

/// Why it cannot wait there.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("--bind: cannot wait at {address}: {source}{}", hint(source))]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Waiting failed.
    #[error("waiting for clients: {0}")]
    Wait(#[source] io::Error),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => {
            ": something else waits there already; `--bind ADDRESS:PORT` names another port"
        }
        ErrorKind::AddrNotAvailable => ": this host does not have that address",
        _ => "",
    }
}

/// It waits.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    key: Option<Key>,
    limits: Limits,
    ledger: Ledger,
}

impl Server {
    /// Takes its places.
    ///
    /// # Errors
    /// One cannot be had.
    pub fn bind(serve: &Serve) -> Result<Server, ServeError> {
        let listener = |&address: &SocketAddr| {
            let listen = || -> io::Result<TcpListener> {
                let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
                if address.is_ipv6() {
                    // 0.0.0.0 beside [::] is another place.
                    socket.set_only_v6(true)?;
                }
                socket.set_reuse_address(true)?;
                socket.set_nonblocking(true)?;
                socket.bind(&address.into())?;
                socket.listen(1024)?;
                Ok(socket.into())
            };
            listen().map_err(|source| ServeError::Bind { address, source })
        };
        let listeners = serve.bind.iter().map(listener).collect::<Result<_, _>>()?;
        let ledger = Ledger::new(serve.limits);
        Ok(Server { listeners, key: serve.key.clone(), limits: serve.limits, ledger })
    }

    /// Where it waits.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves until `stop` is set, and then until all that goes on has ended, which takes a moment. What there is to
    /// know of clients is `told`, a line each, and of a flood of them as many as [`LINES`](crate::limits::LINES).
    ///
    /// # Errors
    /// Waiting fails.
    pub fn run(&self, stop: &AtomicBool, told: &(dyn Fn(&str) + Sync)) -> Result<(), ServeError> {
        let log = &Log::new(told);
        thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                let mut fds: Vec<PollFd<'_>> =
                    self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
                match poll(&mut fds, Some(&LOOK_EVERY)) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(ServeError::Wait(error.into())),
                }
                let mut exhausted = false;
                for listener in &self.listeners {
                    // Of a flood of connections only so many, before it looks whether to stop.
                    for _ in 0..ACCEPTS {
                        match listener.accept() {
                            Ok((stream, from)) => {
                                let stream = Arc::new(stream);
                                let ends = Arc::clone(&stream);
                                let hang_up = move || drop(ends.shutdown(Shutdown::Both));
                                // Who is over the limit is not talked to: that would cost more than it does.
                                let Some(caller) = self.ledger.call(from.ip(), hang_up) else { continue };
                                let its = Arc::clone(&stream);
                                let serve = move || session::serve(self, its, from, caller, stop, log);
                                if let Err(error) = thread::Builder::new().spawn_scoped(scope, serve) {
                                    log.tell(&format!("{from}: not let in: no thread for it: {error}"));
                                    refuse(&stream, &format!("this host has no thread for it: {error}"));
                                    exhausted = true;
                                    break;
                                }
                            }
                            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                            // The client was gone before it was taken.
                            Err(error)
                                if matches!(
                                    error.kind(),
                                    ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                                ) => {}
                            // No descriptors: those who are served give theirs back.
                            Err(_) => {
                                exhausted = true;
                                break;
                            }
                        }
                    }
                }
                if exhausted {
                    thread::park_timeout(std::time::Duration::from_millis(50));
                }
            }
            Ok(())
        })
    }
}

/// Says why to one for whom nothing else can be done. It has room for a line, having been sent nothing.
fn refuse(stream: &TcpStream, message: &str) {
    let refused = Refused { why: Why::Busy, message: message.into(), flow: None };
    let _ = stream.set_nonblocking(true);
    // Whether it hears that or not, it is gone.
    let _ = { stream }.write_all(&line(&FromResponder::Refused(refused)));
}

/// Both loopback addresses: nobody else gets there.
pub fn loopback(port: u16) -> Vec<SocketAddr> {
    [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
        .map(|address| SocketAddr::new(address, port))
        .to_vec()
}
