//! A real packet as a flow router sees it.

use crate::{WirePacket, headers};
use farpath_tia1039::router::{Ending, FlowKey, QosPacket};
use farpath_tia1039::{QosMark, QosPacket as Read, Structure, Structures};
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys the hash that IPv6 flows go by. It is no secret in an emulation: whose packets it carries is the user's own doing.
static SEED: AtomicU64 = AtomicU64::new(0);

/// Has IPv6 flows go by a hash with this key, in all of the process: before there are any.
pub fn set_flow_seed(seed: u64) {
    SEED.store(seed, Ordering::Relaxed);
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

fn seed() -> u64 {
    SEED.load(Ordering::Relaxed)
}

impl WirePacket {
    /// What it says to those who know the protocol; `None` of what is malformed, or neither TCP, UDP nor ESP in IPv6.
    fn read(&self) -> Option<Read> {
        Read::decode(self.bytes()).ok()
    }

    /// Whether a flow router can tell whose it is.
    pub(crate) fn is_of_a_flow(&self) -> bool {
        self.read().is_some()
    }

    /// The headers of this packet and a structure behind them, or before TCP's in IPv6.
    pub(crate) fn with_structure(&self, structure: &Structure) -> Option<WirePacket> {
        let bytes = farpath_tia1039::signal(self.bytes(), structure)?;
        Some(self.sibling(bytes))
    }
}

impl QosPacket for WirePacket {
    fn flow_key(&self) -> FlowKey {
        self.read().map_or(FlowKey::from(0), |read| read.flow_key(seed()))
    }

    fn answered(&self, response: &Structure) -> FlowKey {
        self.read().map_or(FlowKey::from(0), |read| read.answered_key(seed(), response))
    }

    fn mark(&self) -> QosMark {
        self.read().map_or(QosMark::None, |read| read.mark)
    }

    fn structures(&self) -> Option<Structures> {
        self.read()?.structures
    }

    fn set_structures(&mut self, structures: &Structures) {
        let finished = self.partial_checksum().is_none();
        if let Some(read) = self.read() {
            read.rewrite(self.bytes_mut(), structures, finished);
        }
    }

    fn next_seq(&self) -> Option<u32> {
        let syn = u32::from(self.tcp_flags() & SYN != 0);
        Some(self.tcp_number(headers::tcp::SEQ)?.wrapping_add(syn))
    }

    fn acknowledged(&self) -> Option<u32> {
        // Without its flag the field means nothing (RFC 9293 §3.1).
        (self.tcp_flags() & ACK != 0).then(|| self.tcp_number(headers::tcp::ACK)).flatten()
    }

    fn ending(&self) -> Ending {
        match self.tcp_flags() {
            flags if flags & RST != 0 => Ending::Reset,
            flags if flags & FIN != 0 => Ending::Fin,
            _ => Ending::No,
        }
    }
}
