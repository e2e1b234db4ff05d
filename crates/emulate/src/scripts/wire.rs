//! The device between a script and a stack that runs in real time: packets in and out, by one clock.

use farpath_emu::{Clock, Port, VirtioHeader};
use farpath_script::syntax::IcmpSpec;
use farpath_script::{Network, Packet, Refusal, Sent, bytes};
use farpath_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

/// The end under test, and the other one: packetdrill's addresses.
pub(super) const LOCAL: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(192, 168, 0, 1), Ipv6Addr::new(0xfd3d, 0xa7b, 0xd17d, 0, 0, 0, 0, 1));
pub(super) const REMOTE: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(192, 0, 2, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
pub(super) const PORT: u16 = 8080;
/// Room for the longest packet and more, as a port asks.
const BUFFER: usize = 66_000;

pub(super) struct Wire {
    port: Box<dyn Port>,
    pub clock: Clock,
    buffer: Vec<u8>,
    pub network: Network,
    sent: VecDeque<Sent>,
}

impl Wire {
    pub fn new(port: Box<dyn Port>) -> Wire {
        let network = Network::default();
        Wire { port, clock: Clock::start(), buffer: vec![0; BUFFER], network, sent: VecDeque::new() }
    }

    /// Of the end under test, and of the other one.
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        let (local, remote): (IpAddr, IpAddr) = match self.network.ipv6 {
            true => (LOCAL.1.into(), REMOTE.1.into()),
            false => (LOCAL.0.into(), REMOTE.0.into()),
        };
        (self.network.local.unwrap_or(local), self.network.remote.unwrap_or(remote))
    }

    /// Takes what has come out. `note` sees each packet.
    pub fn drain(&mut self, mut note: impl FnMut(&Packet)) {
        let now = self.clock.now();
        while let Ok(Some(received)) = self.port.receive(now, &mut self.buffer) {
            if let Some(packet) = bytes::decode(&self.buffer[..received.len]) {
                note(&packet);
                self.sent.push_back(Sent { at: now, packet });
            }
        }
    }

    pub fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    pub fn take_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// Waits until then, or until a packet comes out or `wake` can be read.
    pub fn wait(&self, until: Instant, wake: Option<BorrowedFd<'_>>) -> Result<(), Refusal> {
        let left = until.saturating_since(self.clock.now()).as_nanos();
        let wait = Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let Some(fd) = self.port.fd() else {
            return Err(Refusal::new("a device that can be waited for", "none"));
        };
        let watched = [Some(fd), wake].into_iter().flatten();
        let mut watched: Vec<_> = watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let _ = poll(&mut watched, Some(&wait));
        Ok(())
    }

    /// A packet comes in.
    pub fn inject(&mut self, packet: &Packet) -> Result<(), Refusal> {
        let (local, remote) = self.addresses();
        self.send(&bytes::encode(packet, local, remote))
    }

    /// An ICMP message about a packet of the connection with these ports comes in.
    pub fn inject_icmp(&mut self, ports: (u16, u16), message: &IcmpSpec, seq: u32) -> Result<(), Refusal> {
        let (local, remote) = self.addresses();
        self.send(&bytes::encode_icmp(message, ports, seq, local, remote)?)
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        let now = self.clock.now();
        self.port.send(now, VirtioHeader::default(), None, &[IoSlice::new(packet)]).map_err(|error| {
            Refusal::new("a packet that the device takes: it is to be up", error.to_string())
        })
    }
}
