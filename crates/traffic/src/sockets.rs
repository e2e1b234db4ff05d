//! TCP sockets of this network namespace, by sock_diag(7), as `ss -ti` sees them: everyone may ask.

use crate::info::{State, TcpInfo};
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::{Socket, SocketAddr as NetlinkAddr, protocols::NETLINK_SOCK_DIAG};
use std::io;
use std::net::SocketAddr;

/// A TCP socket and what the kernel says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpSocket {
    /// Its own address. IPv4 in an IPv6 socket is IPv4 here.
    pub local: SocketAddr,
    /// Its peer's.
    pub remote: SocketAddr,
    /// No other socket of this kernel has or had the same.
    pub cookie: u64,
    /// As `/proc/PID/fd` names it; zero where no program has it any more.
    pub inode: u32,
    /// Received bytes that its program has not read.
    pub unread: u32,
    /// Name of the congestion control.
    pub congestion_control: Option<String>,
    /// The rest.
    pub info: TcpInfo,
}

/// A conversation with the kernel about the sockets of one network namespace: that of the thread which began it.
#[derive(Debug)]
pub struct Sockets {
    netlink: Socket,
    buffer: Vec<u8>,
}

/// The kernel fills its answers up to 32 KiB at the most (`NLMSG_GOODSIZE` and netlink(7)'s dumps).
const ANSWER: usize = 1 << 16;

impl Sockets {
    /// Begins a conversation.
    pub fn open() -> io::Result<Sockets> {
        let mut netlink = Socket::new(NETLINK_SOCK_DIAG)?;
        netlink.bind_auto()?;
        netlink.connect(&NetlinkAddr::new(0, 0))?;
        Ok(Sockets { netlink, buffer: vec![0; ANSWER] })
    }

    /// The connections, IPv4's first: listening sockets and those that nobody has any more (TIME_WAIT) are not among them. With `port`, those
    /// whose peer has this port.
    pub fn connections(&mut self, port: Option<u16>) -> io::Result<Vec<TcpSocket>> {
        let mut found = Vec::new();
        for family in [AF_INET, AF_INET6] {
            self.dump(family, port, &mut found)?;
        }
        Ok(found)
    }

    /// The connection between these two, if there is one. The kernel finds it by a hash, where all of them are a walk over its tables.
    pub fn connection(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<TcpSocket>> {
        let (family, mut socket_id) = match local {
            SocketAddr::V4(_) => (AF_INET, SocketId::new_v4()),
            SocketAddr::V6(_) => (AF_INET6, SocketId::new_v6()),
        };
        (socket_id.source_address, socket_id.source_port) = (local.ip(), local.port());
        (socket_id.destination_address, socket_id.destination_port) = (remote.ip(), remote.port());
        // INET_DIAG_NOCOOKIE: whichever it is.
        socket_id.cookie = [0xff; 8];
        let mut found = Vec::new();
        match self.ask(NLM_F_REQUEST, family, socket_id, &mut found) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            done => done.map(|()| found.pop()),
        }
    }

    fn dump(&mut self, family: u8, port: Option<u16>, found: &mut Vec<TcpSocket>) -> io::Result<()> {
        let mut socket_id = if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() };
        socket_id.destination_port = port.unwrap_or(0);
        self.ask(NLM_F_REQUEST | NLM_F_DUMP, family, socket_id, found)
    }

    /// Asks, and takes the answer: one message, or of a dump all until it is done.
    fn ask(
        &mut self,
        flags: u16,
        family: u8,
        socket_id: SocketId,
        found: &mut Vec<TcpSocket>,
    ) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO | ExtensionFlags::CONG,
            states: StateFlags::all() - StateFlags::LISTEN - StateFlags::TIME_WAIT - StateFlags::CLOSE,
            socket_id,
        };
        let mut question = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        question.finalize();
        let mut bytes = vec![0; question.buffer_len()];
        question.serialize(&mut bytes);
        retried(|| self.netlink.send(&bytes, 0))?;
        loop {
            let len = retried(|| self.netlink.recv(&mut &mut self.buffer[..], 0))?;
            let mut rest = &self.buffer[..len];
            while !rest.is_empty() {
                let answer =
                    NetlinkMessage::<SockDiagMessage>::deserialize(rest).map_err(io::Error::other)?;
                // Messages begin at multiples of four bytes.
                let own = (answer.header.length as usize).next_multiple_of(4).clamp(4, rest.len());
                rest = &rest[own..];
                match answer.payload {
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                        found.extend(socket(*response));
                        if flags & NLM_F_DUMP == 0 {
                            return Ok(());
                        }
                    }
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }
}

/// `None` where the kernel says nothing of its TCP, as of one that is being opened by a peer.
fn socket(response: InetResponse) -> Option<TcpSocket> {
    let (mut info, mut congestion_control) = (None, None);
    for attribute in response.nlas {
        match attribute {
            Nla::TcpInfo(bytes) => info = TcpInfo::parse(&bytes),
            Nla::Congestion(name) => congestion_control = Some(name),
            _ => {}
        }
    }
    let info = info.filter(|info| !matches!(info.state, State::Listen | State::Closed | State::TimeWait))?;
    let SocketId { source_port, destination_port, source_address, destination_address, cookie, .. } =
        response.header.socket_id;
    Some(TcpSocket {
        local: SocketAddr::new(source_address.to_canonical(), source_port),
        remote: SocketAddr::new(destination_address.to_canonical(), destination_port),
        cookie: u64::from_ne_bytes(cookie),
        inode: response.header.inode,
        unread: response.header.recv_queue,
        congestion_control,
        info,
    })
}

/// What a signal interrupts is done again.
fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_are_found_with_what_they_carried() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("an address");
        let mut near = TcpStream::connect(address).expect("it listens");
        let (far, _) = listener.accept().expect("a client");
        near.write_all(&[7; 1000]).expect("it is open");
        while far.peek(&mut [0; 1000]).expect("it is open") < 1000 {}
        let mut sockets = Sockets::open().expect("netlink");
        let all = sockets.connections(None).expect("an answer");
        let own = near.local_addr().expect("an address");
        for (local, remote, unread) in [(own, address, 0), (address, own, 1000)] {
            let found = sockets.connection(local, remote).expect("an answer").expect("it is there");
            assert_eq!((found.local, found.remote, found.unread), (local, remote, unread));
        }
        let nobody = "127.0.0.1:1".parse().expect("one");
        assert_eq!(sockets.connection(nobody, address).expect("an answer").map(|found| found.local), None);
        let find = |local| all.iter().find(|socket| socket.local == local && socket.remote.ip() == own.ip());
        let (sender, receiver) = (find(own).expect("listed"), find(address).expect("listed"));
        assert_eq!((sender.remote, receiver.remote), (address, own));
        assert_eq!((sender.unread, receiver.unread), (0, 1000));
        assert_eq!(sender.info.bytes_sent.map(|bytes| bytes.0), Some(1000));
        assert!(sender.congestion_control.is_some() && sender.inode != 0 && sender.cookie != receiver.cookie);
        // By the peer's port there is the sender alone.
        let by_port = sockets.connections(Some(address.port())).expect("an answer");
        assert_eq!(by_port.iter().map(|socket| socket.local).collect::<Vec<_>>(), [own]);
    }
}
