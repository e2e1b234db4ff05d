//! Datagrams that measure a path: echoes that the peer's end sends back, and bursts that fill the queue before the
//! narrowest link; and [streams](StreamSocket) of messages over an emulated path.
//!
//! Every datagram that measures shows a [`Token`]; one that does not, or that comes from another address than expected, is not
//! answered and not counted. The end that answers never sends more than it was sent, but for a burst that was asked for
//! over another connection, and that goes nowhere but where a datagram with the token has come from.

mod burst;
mod echo;
mod format;
mod stream;

pub use burst::{Arrival, BurstSent, Received, receive_burst, send_burst};
pub use echo::{Answered, Answers, Echo, Echoed, answer, echo};
pub use format::{LEAST, MOST};
pub use stream::{DatagramStream, StreamSocket, StreamStamps, StreamTally};

use crate::token::Token;
use crate::{options, sys, wait};
use farpath_units::{Bytes, Duration, Instant};
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest that a thread is not looking at its stop flag.
const STOP_EVERY: Duration = Duration::from_millis(10);

/// Datagrams that are read one after the other, before somebody looks at the clock and at the stop flag: a flood may
/// never let the socket run empty.
pub const LOOK_AFTER: u32 = 64;

/// So much may wait to be read, where the host allows it: a burst comes faster than a thread wakes.
const RECEIVE_BUFFER: Bytes = Bytes(8 << 20);

/// `SO_MEMINFO` and the place of the dropped datagrams in it, from linux/sock_diag.h.
const SO_MEMINFO: libc::c_int = 55;
const DROPS: usize = 8;

/// IP and UDP headers of a datagram: 28 B over IPv4, 48 B over IPv6.
pub fn headers(address: IpAddr) -> Bytes {
    Bytes(if address.is_ipv4() { 28 } else { 48 })
}

/// One end of a flow of datagrams.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    local: SocketAddr,
    token: Token,
    peer: Peer,
    /// Datagrams that were read since somebody has looked.
    unlooked: u32,
}

/// To whom it speaks.
#[derive(Debug, Clone, Copy)]
enum Peer {
    /// It has been told.
    Known(SocketAddr),
    /// Somebody at this address, who has yet to show the token.
    At(IpAddr),
}

impl DatagramSocket {
    /// The end that begins.
    ///
    /// # Errors
    /// The kernel gives no socket at the address.
    pub fn to(local: SocketAddr, peer: SocketAddr, token: Token) -> io::Result<DatagramSocket> {
        DatagramSocket::new(local, Peer::Known(peer), token)
    }

    /// The end that waits for who is at an address, and knows the token.
    ///
    /// # Errors
    /// The kernel gives no socket at the address.
    pub fn from(local: SocketAddr, peer: IpAddr, token: Token) -> io::Result<DatagramSocket> {
        DatagramSocket::new(local, Peer::At(peer), token)
    }

    fn new(local: SocketAddr, peer: Peer, token: Token) -> io::Result<DatagramSocket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // Cut to what the host allows, without a word; a datagram that finds no room is counted.
        let _ = options::set_receive_room(socket.as_fd(), RECEIVE_BUFFER);
        socket.bind(&local.into())?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        if let Peer::Known(peer) = peer {
            socket.connect(peer)?;
        }
        Ok(DatagramSocket { socket, local, token, peer, unlooked: 0 })
    }

    /// Its own address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Datagrams that came and found no room here: losses that are not the path's.
    pub fn dropped_here(&self) -> Option<u32> {
        let mut raw = [0; 36];
        let len = sys::get_option(self.socket.as_fd(), libc::SOL_SOCKET, SO_MEMINFO, &mut raw).ok()?;
        let field = raw[..len].get(4 * DROPS..4 * DROPS + 4)?;
        Some(u32::from_ne_bytes(field.try_into().ok()?))
    }

    /// The next datagram that shows the token; `None` where there is none now, or where [`LOOK_AFTER`] have been read
    /// since the last `None`. From the first one on, only who sent it is heard.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            if self.unlooked == LOOK_AFTER {
                self.unlooked = 0;
                return Ok(None);
            }
            let received = come(|| match self.peer {
                Peer::Known(_) => self.socket.recv(buffer).map(|len| (len, None)),
                Peer::At(_) => self.socket.recv_from(buffer).map(|(len, from)| (len, Some(from))),
            })?;
            let Some((len, from)) = received else {
                self.unlooked = 0;
                return Ok(None);
            };
            self.unlooked += 1;
            if format::token(&buffer[..len]) != Some(self.token) {
                continue;
            }
            if let (Peer::At(address), Some(from)) = (self.peer, from) {
                if from.ip().to_canonical() != address.to_canonical() {
                    continue;
                }
                self.socket.connect(from)?;
                self.peer = Peer::Known(from);
            }
            return Ok(Some(len));
        }
    }

    /// Sends one; false where the kernel has no room for it now.
    fn send(&self, datagram: &[u8]) -> io::Result<bool> {
        match self.socket.send(datagram) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(false),
            // Told of an earlier one: the other end is not there yet, or no longer. This one was not sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn wait(&self, events: PollFlags, longest: Duration) -> io::Result<()> {
        wait::ready(self.socket.as_fd(), events, longest.min(STOP_EVERY)).map(drop)
    }
}

/// What comes; `None` where there is nothing now.
fn come<T>(mut receive: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    loop {
        match receive() {
            Ok(come) => return Ok(Some(come)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                // The other end's port is closed, or was: what is sent later says so too.
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => {}
                _ => return Err(error),
            },
        }
    }
}

/// When a flow of datagrams ends.
#[derive(Debug, Clone, Copy)]
pub struct Until<'a> {
    /// What time counts from.
    pub epoch: std::time::Instant,
    /// At the latest.
    pub deadline: Instant,
    /// Before that, when this is set.
    pub stop: &'a AtomicBool,
}

impl Until<'_> {
    fn now(&self) -> Instant {
        wait::now(self.epoch)
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= self.deadline || self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Of a flood the socket never ran empty, and until it did nobody looked at the deadline or the stop flag.
    #[test]
    fn who_reads_a_flood_comes_back_to_look() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let token = Token([7; 16]);
        for datagram in [format::blank(token, format::LEAST), vec![0; 100]] {
            let mut socket = DatagramSocket::from(here, here.ip(), token).expect("a socket");
            let flood = UdpSocket::bind(here).expect("a socket");
            for _ in 0..3 * LOOK_AFTER {
                flood.send_to(&datagram, socket.local()).expect("there is room for so few");
            }
            for left in [2, 1, 0] {
                while socket.receive(&mut [0; 2000]).expect("it can receive").is_some() {}
                let there = rustix::io::ioctl_fionread(&socket.socket).expect("a socket") > 0;
                assert_eq!(there, left > 0, "{left} times as many are left");
            }
        }
    }
}
