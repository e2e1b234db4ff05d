//! veth and a packet socket: for machines that keep TUN closed, for whoever may make a network namespace may make
//! these. Half as fast.
//!
//! The host's end of the pair is in the host's namespace; the other end is in a namespace of its own, in which there
//! is no address and no protocol, only our socket. Frames are Ethernet's: their headers are taken off and put on here.

use super::{NAME, read, write};
use crate::host_error::{BE_ROOT, HostError};
use crate::maker::Process;
use crate::namespace::{Namespace, set_sysctl_if_ipv6};
use crate::netlink::Netlink;
use crate::port::{Frame, Port, Received, VirtioHeader};
use crate::sys;
use farpath_units::Instant;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The end of the pair that the host does not see.
const PEER: &str = "farpath1";

/// Bytes of an Ethernet header: two addresses and the protocol.
pub(super) const ETHERNET: usize = 14;
pub(super) const IPV4: [u8; 2] = [0x08, 0x00];
pub(super) const IPV6: [u8; 2] = [0x86, 0xdd];

/// Both ends of a veth pair.
pub(crate) struct Veth {
    socket: Arc<File>,
    /// About the namespace of the end that the host does not see. It keeps that namespace, as the socket does.
    netlink: Netlink,
    to_host: [u8; ETHERNET - 2],
    /// Frames for which the socket had no room.
    overflowed: u64,
}

impl Veth {
    /// Makes the pair: one end in the namespace of the calling thread, the other where only the emulator is.
    pub(crate) fn new(offload: bool, mtu: u32, queue_len: u32) -> Result<Veth, HostError> {
        let failed = |what: &'static str| move |error: io::Error| HostError::kernel(what, BE_ROOT, error);
        let hidden = Namespace::new()?;
        let mut here = Netlink::open().map_err(failed("speak to the kernel about devices"))?;
        // Before there is a device: IPv6 greets its neighbours when one comes up.
        hidden.run(|| set_sysctl_if_ipv6("net.ipv6.conf.default.disable_ipv6", "1"))??;
        here.add_veth(NAME, PEER, hidden.as_fd()).map_err(failed("make a veth pair"))?;
        let (netlink, socket, peer) = hidden.run(|| {
            let mut there = Netlink::open().map_err(failed("speak to the kernel about devices"))?;
            let peer = there.link(PEER).map_err(failed("find the emulator's end of a veth pair"))?;
            there.configure(peer.index, mtu, queue_len).map_err(failed("configure a veth device"))?;
            Process::current()
                .and_then(|process| there.set_alias(peer.index, process.to_alias()))
                .map_err(failed("write on a veth device who made it"))?;
            // A socket that is bound to a device which is down has that to say first.
            there.set_up(peer.index).map_err(failed("bring a veth device up"))?;
            let socket = sys::packet::open(peer.index).map_err(failed("open a packet socket"))?;
            Ok::<_, HostError>((there, socket, peer))
        })??;
        if !offload {
            sys::ethtool::turn_offloads_off(NAME)
                .map_err(failed("turn the offloads of a veth device off"))?;
        }
        let host = here.link(NAME).map_err(failed("find the host's end of a veth pair"))?;
        let mut to_host = [0; ETHERNET - 2];
        if host.address.len() == 6 && peer.address.len() == 6 {
            to_host[..6].copy_from_slice(&host.address);
            to_host[6..].copy_from_slice(&peer.address);
        }
        Ok(Veth { socket: Arc::new(File::from(socket)), netlink, to_host, overflowed: 0 })
    }

    pub(crate) fn port(&self) -> VethPort {
        VethPort { socket: Arc::clone(&self.socket), to_host: self.to_host }
    }

    /// What the hidden end dropped: of the host's packets, and of packets for the host.
    pub(crate) fn dropped(&mut self) -> io::Result<(u64, u64)> {
        self.overflowed += u64::from(sys::packet::dropped(self.socket.as_fd())?);
        let statistics = self.netlink.link(PEER)?.statistics;
        Ok((self.overflowed + statistics.rx_dropped, statistics.tx_dropped))
    }
}

/// What the emulator holds of a veth pair.
#[derive(Debug)]
pub(crate) struct VethPort {
    socket: Arc<File>,
    to_host: [u8; ETHERNET - 2],
}

impl Port for VethPort {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn receive(&mut self, _now: Instant, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut head = [0; VirtioHeader::LEN + ETHERNET];
        loop {
            let Some(len) = read(&self.socket, &mut head, buffer)? else { return Ok(None) };
            if !matches!([head[head.len() - 2], head[head.len() - 1]], IPV4 | IPV6) {
                continue;
            }
            let mut header = [0; VirtioHeader::LEN];
            header.copy_from_slice(&head[..VirtioHeader::LEN]);
            let header = without_frame(VirtioHeader::from_bytes(header), ETHERNET);
            return Ok(Some(Received { header, frame: None, len }));
        }
    }

    fn send(
        &mut self,
        _: Instant,
        header: VirtioHeader,
        _: Option<Frame>,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let version = pieces.iter().find_map(|piece| piece.first()).map(|byte| byte >> 4);
        let protocol = match version {
            Some(4) => IPV4,
            Some(6) => IPV6,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "neither an IPv4 nor an IPv6 packet",
                ));
            }
        };
        let mut head = [0; VirtioHeader::LEN + ETHERNET];
        head[..VirtioHeader::LEN].copy_from_slice(&with_frame(header, ETHERNET).to_bytes());
        head[VirtioHeader::LEN..][..self.to_host.len()].copy_from_slice(&self.to_host);
        head[VirtioHeader::LEN + ETHERNET - 2..].copy_from_slice(&protocol);
        write(&self.socket, &head, pieces)
    }
}

/// The kernel counts from the beginning of a frame whose header is so long, and we from the packet's.
pub(super) fn without_frame(mut header: VirtioHeader, frame: usize) -> VirtioHeader {
    if header.flags & VirtioHeader::NEEDS_CHECKSUM != 0 {
        header.checksum_start = header.checksum_start.saturating_sub(frame as u16);
    }
    header.header_len = header.header_len.saturating_sub(frame as u16);
    header
}

pub(super) fn with_frame(mut header: VirtioHeader, frame: usize) -> VirtioHeader {
    if header.flags & VirtioHeader::NEEDS_CHECKSUM != 0 {
        header.checksum_start = header.checksum_start.saturating_add(frame as u16);
    }
    if header.header_len != 0 {
        header.header_len = header.header_len.saturating_add(frame as u16);
    }
    header
}
