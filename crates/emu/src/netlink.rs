//! Links, addresses and routes by rtnetlink(7), without a second program and without an executor.

mod route;

pub(crate) use route::all;

use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NlasIterator,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// linux/rtnetlink.h
const TCA_OPTIONS: u16 = 2;

/// A conversation with the kernel about one network namespace: that of the thread which began it, for good.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// A device.
#[derive(Debug, Clone, Default)]
pub(crate) struct Link {
    /// Its number in its namespace.
    pub(crate) index: u32,
    /// Its link-layer address; empty where it has none.
    pub(crate) address: Vec<u8>,
    /// What is written on it.
    pub(crate) alias: Option<String>,
    /// What it counted.
    pub(crate) statistics: Stats64,
}

impl Netlink {
    /// Begins a conversation about the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // An answer that says in words what was wrong, and does not repeat the question.
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// The device of that name.
    pub(crate) fn link(&mut self, name: &str) -> io::Result<Link> {
        let mut question = LinkMessage::default();
        question.attributes.push(LinkAttribute::IfName(name.to_string()));
        let answers = self.ask(RouteNetlinkMessage::GetLink(question), 0)?;
        let link = answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        });
        let link = link.ok_or_else(|| io::Error::other("the kernel answered without a device"))?;
        let mut found = Link { index: link.header.index, ..Link::default() };
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::Address(address) => found.address = address,
                LinkAttribute::IfAlias(alias) => found.alias = Some(alias),
                LinkAttribute::Stats64(statistics) => found.statistics = statistics,
                _ => {}
            }
        }
        Ok(found)
    }

    /// The name and the MTU of the device with this number.
    pub(crate) fn device(&mut self, index: u32) -> io::Result<(String, Option<u32>)> {
        let mut question = LinkMessage::default();
        question.header.index = index;
        let (mut name, mut mtu) = (String::new(), None);
        for answer in self.ask(RouteNetlinkMessage::GetLink(question), 0)? {
            let RouteNetlinkMessage::NewLink(link) = answer else { continue };
            for attribute in link.attributes {
                match attribute {
                    LinkAttribute::IfName(found) => name = found,
                    LinkAttribute::Mtu(found) => mtu = Some(found),
                    _ => {}
                }
            }
        }
        Ok((name, mtu))
    }

    /// The queueing discipline at the root of a device; that of its queues where it has several (mq).
    pub(crate) fn queue(&mut self, index: u32) -> io::Result<Option<String>> {
        let question = TcMessage::with_index(index as i32);
        let mut root = None;
        for answer in self.ask(RouteNetlinkMessage::GetQueueDiscipline(question), NLM_F_DUMP)? {
            let RouteNetlinkMessage::NewQueueDiscipline(found) = answer else { continue };
            let kind = found.attributes.iter().find_map(|attribute| match attribute {
                TcAttribute::Kind(kind) => Some(kind.clone()),
                _ => None,
            });
            if found.header.index == index as i32 && kind.as_deref() != Some("mq") {
                root = root.or(kind);
            }
        }
        Ok(root)
    }

    /// Makes a veth pair: `name` here, `peer` in another namespace.
    pub(crate) fn add_veth(&mut self, name: &str, peer: &str, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let mut other = LinkMessage::default();
        other.attributes.push(LinkAttribute::IfName(peer.to_string()));
        other.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let mut pair = LinkMessage::default();
        pair.attributes.push(LinkAttribute::IfName(name.to_string()));
        pair.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]));
        self.tell(RouteNetlinkMessage::NewLink(pair), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Gives a device its MTU and the length of its queue, and takes address resolution off it: there is one other
    /// end, and the path carries the traffic's packets only.
    pub(crate) fn configure(&mut self, index: u32, mtu: u32, queue_len: u32) -> io::Result<()> {
        let mut change = LinkMessage::default();
        change.header.index = index;
        change.header.flags = LinkFlags::Noarp;
        change.header.change_mask = LinkFlags::Noarp;
        change.attributes.push(LinkAttribute::Mtu(mtu));
        change.attributes.push(LinkAttribute::TxQueueLen(queue_len));
        self.tell(RouteNetlinkMessage::SetLink(change), 0)
    }

    /// Writes something on a device, for those who find it.
    pub(crate) fn set_alias(&mut self, index: u32, alias: String) -> io::Result<()> {
        let mut change = LinkMessage::default();
        change.header.index = index;
        change.attributes.push(LinkAttribute::IfAlias(alias));
        self.tell(RouteNetlinkMessage::SetLink(change), 0)
    }

    /// Removes a device.
    pub(crate) fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.link(name)?.index;
        self.tell(RouteNetlinkMessage::DelLink(message), 0)
    }

    /// Brings a device up.
    pub(crate) fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut change = LinkMessage::default();
        change.header.index = index;
        change.header.flags = LinkFlags::Up;
        change.header.change_mask = LinkFlags::Up;
        self.tell(RouteNetlinkMessage::SetLink(change), 0)
    }

    /// Lets packets go to a device at once, whatever queueing discipline this machine gives to new devices.
    pub(crate) fn set_no_queue(&mut self, index: u32) -> io::Result<()> {
        self.set_queue(index, "noqueue", None)
    }

    /// Another queueing discipline at a device's root; `limit` is the option of a `pfifo`, in packets.
    pub(crate) fn set_queue(&mut self, index: u32, kind: &str, limit: Option<u32>) -> io::Result<()> {
        let mut discipline = TcMessage::with_index(index as i32);
        discipline.header.parent = TcHandle::ROOT;
        discipline.attributes.push(TcAttribute::Kind(kind.to_string()));
        if let Some(limit) = limit {
            // struct tc_fifo_qopt, as it is: not in a frame of its own.
            let options = DefaultNla::new(TCA_OPTIONS, limit.to_ne_bytes().to_vec());
            discipline.attributes.push(TcAttribute::Other(options));
        }
        self.tell(RouteNetlinkMessage::NewQueueDiscipline(discipline), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Gives a device an address for itself alone, usable at once.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.family = family(address);
        message.header.prefix_len = bits(address);
        message.header.scope = AddressScope::Universe;
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        if address.is_ipv6() {
            // No duplicate address detection: it would put packets on the path, and delay the first connection.
            message
                .attributes
                .push(AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute));
        }
        self.tell(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    fn tell(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.ask(message, flags).map(drop)
    }

    /// Sends one message and takes answers until the kernel says that it is done, or what is wrong.
    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;

        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let answer =
                    NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
                let len = (answer.header.length as usize).next_multiple_of(4).min(rest.len());
                rest = &rest[len.max(1)..];
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(answers),
                    NetlinkPayload::Error(error) => return Err(refusal(error.to_io(), &error.header)),
                    _ => {}
                }
            }
        }
    }
}

/// The kernel's error, with its words for it where it gave any.
fn refusal(error: io::Error, answer: &[u8]) -> io::Error {
    /// Of `enum nlmsgerr_attrs`.
    const MESSAGE: u16 = 1;
    let attributes = answer.get(NetlinkHeader::default().buffer_len()..).unwrap_or(&[]);
    let words = NlasIterator::new(attributes).flatten().find(|attribute| attribute.kind() == MESSAGE);
    match words.and_then(|words| String::from_utf8(words.value().to_vec()).ok()) {
        Some(words) => io::Error::new(error.kind(), format!("{} ({error})", words.trim_end_matches('\0'))),
        None => error,
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
