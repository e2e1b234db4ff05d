//! Network address translation by nf_tables, told without a second program.
//!
//! The table is owned by the socket that made it: it is gone when that is closed, and so when this process ends, however it does.

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use std::io;
use std::net::IpAddr;

/// Of linux/netlink.h, linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h and linux/netfilter.h.
mod abi {
    pub(super) const NLM_F_REQUEST: u16 = 1;
    pub(super) const NLM_F_ACK: u16 = 4;
    pub(super) const NLM_F_CREATE: u16 = 0x400;
    pub(super) const NLM_F_APPEND: u16 = 0x800;
    pub(super) const NLMSG_ERROR: u16 = 2;
    pub(super) const NLA_F_NESTED: u16 = 1 << 15;
    pub(super) const NFNL_SUBSYS_NFTABLES: u16 = 10;
    pub(super) const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
    pub(super) const NFNL_MSG_BATCH_END: u16 = 0x11;
    pub(super) const NFT_MSG_NEWTABLE: u16 = NFNL_SUBSYS_NFTABLES << 8;
    pub(super) const NFT_MSG_NEWCHAIN: u16 = NFT_MSG_NEWTABLE | 3;
    pub(super) const NFT_MSG_NEWRULE: u16 = NFT_MSG_NEWTABLE | 6;
    pub(super) const NFT_TABLE_F_OWNER: u32 = 2;
    pub(super) const NFPROTO_IPV4: u8 = 2;
    pub(super) const NFPROTO_IPV6: u8 = 10;
    pub(super) const NF_INET_POST_ROUTING: u32 = 4;
    pub(super) const NF_IP_PRI_NAT_SRC: u32 = 100;
    pub(super) const NFT_REG_1: u32 = 1;
    pub(super) const NFT_PAYLOAD_NETWORK_HEADER: u32 = 1;
    pub(super) const NFT_CMP_EQ: u32 = 0;
}
use abi::*;

/// Packets that are forwarded from an address leave with that of the device by which they do.
#[derive(Debug)]
pub(crate) struct Masquerade {
    _owner: Socket,
}

impl Masquerade {
    /// In the network namespace of the calling thread; `table` is its name, which nobody else has there.
    pub(crate) fn for_sources(table: &str, sources: &[IpAddr]) -> io::Result<Masquerade> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let batch = Batch::for_sources(table, sources);
        socket.send(&batch.bytes, 0)?;
        let mut taken = 0;
        while taken < batch.asked {
            let (datagram, _) = socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while let Some((length, kind, error)) = answer(rest) {
                if kind == NLMSG_ERROR {
                    if error != 0 {
                        return Err(io::Error::from_raw_os_error(-error));
                    }
                    taken += 1;
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            }
        }
        Ok(Masquerade { _owner: socket })
    }
}

/// Length, type and error of the first message.
fn answer(bytes: &[u8]) -> Option<(usize, u16, i32)> {
    let word = |at: usize| Some(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).expect("four bytes"));
    let length = u32::from_ne_bytes(word(0)?) as usize;
    let [low, high, ..] = word(4)?;
    let error = word(16).map_or(0, i32::from_ne_bytes);
    (length >= 16).then_some((length, u16::from_ne_bytes([low, high]), error))
}

/// Messages that the kernel carries out all or none.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// So many of them are answered.
    asked: u32,
    sequence: u32,
}

impl Batch {
    fn for_sources(table: &str, sources: &[IpAddr]) -> Batch {
        let mut batch = Batch::default();
        // To whom a batch is, its frame says in the place of a resource.
        batch.message(NFNL_MSG_BATCH_BEGIN, 0, 0, NFNL_SUBSYS_NFTABLES, |_| {});
        for source in sources {
            let (family, offset, address) = match source {
                IpAddr::V4(address) => (NFPROTO_IPV4, 12, address.octets().to_vec()),
                IpAddr::V6(address) => (NFPROTO_IPV6, 8, address.octets().to_vec()),
            };
            let create = NLM_F_CREATE | NLM_F_ACK;
            batch.message(NFT_MSG_NEWTABLE, create, family, 0, |table_| {
                text(table_, 1, table);
                number(table_, 2, NFT_TABLE_F_OWNER);
            });
            batch.message(NFT_MSG_NEWCHAIN, create, family, 0, |chain| {
                text(chain, 1, table);
                text(chain, 3, "out");
                nested(chain, 4, |hook| {
                    number(hook, 1, NF_INET_POST_ROUTING);
                    number(hook, 2, NF_IP_PRI_NAT_SRC);
                });
                text(chain, 7, "nat");
            });
            batch.message(NFT_MSG_NEWRULE, create | NLM_F_APPEND, family, 0, |rule| {
                text(rule, 1, table);
                text(rule, 2, "out");
                nested(rule, 4, |expressions| {
                    expression(expressions, "payload", |load| {
                        number(load, 1, NFT_REG_1);
                        number(load, 2, NFT_PAYLOAD_NETWORK_HEADER);
                        number(load, 3, offset);
                        number(load, 4, address.len() as u32);
                    });
                    expression(expressions, "cmp", |compare| {
                        number(compare, 1, NFT_REG_1);
                        number(compare, 2, NFT_CMP_EQ);
                        nested(compare, 3, |value| attribute(value, 1, &address));
                    });
                    expression(expressions, "masq", |_| {});
                });
            });
        }
        batch.message(NFNL_MSG_BATCH_END, 0, 0, NFNL_SUBSYS_NFTABLES, |_| {});
        batch
    }

    fn message(&mut self, kind: u16, flags: u16, family: u8, resource: u16, fill: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len();
        self.asked += u32::from(flags & NLM_F_ACK != 0);
        self.sequence += 1;
        let bytes = &mut self.bytes;
        bytes.extend([0; 4]);
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | NLM_F_REQUEST).to_ne_bytes());
        bytes.extend(self.sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([family, 0]);
        bytes.extend(resource.to_be_bytes());
        fill(bytes);
        let length = (bytes.len() - from) as u32;
        bytes[from..from + 4].copy_from_slice(&length.to_ne_bytes());
    }
}

/// Attributes are in the order of bytes of networks, their heads in the machine's; all begin at a multiple of four.
fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn number(bytes: &mut Vec<u8>, kind: u16, value: u32) {
    attribute(bytes, kind, &value.to_be_bytes());
}

fn text(bytes: &mut Vec<u8>, kind: u16, value: &str) {
    attribute(bytes, kind, &[value.as_bytes(), &[0]].concat());
}

fn nested(bytes: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inside = Vec::new();
    fill(&mut inside);
    attribute(bytes, kind | NLA_F_NESTED, &inside);
}

fn expression(bytes: &mut Vec<u8>, name: &str, fill: impl FnOnce(&mut Vec<u8>)) {
    nested(bytes, 1, |element| {
        text(element, 1, name);
        nested(element, 2, fill);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use farpath_testing::{Need, skip};

    #[test]
    fn a_table_is_gone_with_its_owner() {
        if !crate::has_privileges() {
            skip(Need::Root, "network namespaces are not tried without root");
            return;
        }
        let sources = [IpAddr::from([192, 0, 2, 1]), "2001:db8::1".parse().expect("an address")];
        let space = Namespace::new().expect("a namespace");
        let again = space.run(|| {
            let first = Masquerade::for_sources("farpath-test", &sources).expect("nf_tables");
            let refused = Masquerade::for_sources("farpath-test", &sources).is_err();
            drop(first);
            (refused, Masquerade::for_sources("farpath-test", &sources).is_ok())
        });
        // Somebody else's is not touched, nobody's is made anew.
        assert_eq!(again.expect("inside"), (true, true));
    }
}
