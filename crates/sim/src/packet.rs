//! A simulated IP packet: a segment and whose it is.

use farpath_elements::ExplicitRatePacket;
use farpath_path::{Direction, PathPacket};
use farpath_tcp::{Flags, Segment};
use farpath_tia1039::router::{Ending, FlowKey, QosPacket};
use farpath_tia1039::{QosMark, Structure, Structures};
use farpath_units::{Bytes, Duration};

/// One of the two ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The end that sends the transfer's data.
    Sender,
    /// The end that receives it.
    Receiver,
}

impl End {
    /// The other end.
    pub const fn peer(self) -> End {
        match self {
            End::Sender => End::Receiver,
            End::Receiver => End::Sender,
        }
    }

    /// The way over the path of what this end sends, where the flow's data goes `data` way.
    pub const fn sends(self, data: Direction) -> Direction {
        match self {
            End::Sender => data,
            End::Receiver => data.opposite(),
        }
    }
}

/// What made a sender send payload again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResendCause {
    /// The retransmission timer expired (RFC 6298 §5.4).
    Timeout,
    /// Fast retransmit, by duplicate ACKs (RFC 5681 §3.2) or by RACK (RFC 8985 §6.2): its first segment.
    FastRetransmit,
    /// A tail loss probe (RFC 8985 §7).
    LossProbe,
    /// What else a repair sends that one of the first two began; and a probe of a shut window.
    Repair,
}

impl ResendCause {
    /// The cause that [`name`](ResendCause::name) spells so.
    pub fn from_name(name: &str) -> Option<ResendCause> {
        [ResendCause::Timeout, ResendCause::FastRetransmit, ResendCause::LossProbe, ResendCause::Repair]
            .into_iter()
            .find(|cause| cause.name() == name)
    }

    /// As tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            ResendCause::Timeout => "timeout",
            ResendCause::FastRetransmit => "fast-retransmit",
            ResendCause::LossProbe => "loss-probe",
            ResendCause::Repair => "repair",
        }
    }
}

/// A segment on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The flow, by number.
    pub flow: u32,
    /// Which end sent it.
    pub from: End,
    /// Its place among the packets that this end has sent, from 1. A copy that the network makes has its original's.
    pub number: u64,
    /// Whether its payload had been sent before.
    pub retransmission: bool,
    /// What made its sender send it again; `None` of new payload, and where the sender cannot be asked.
    pub resent_by: Option<ResendCause>,
    /// What its TTL is here and now.
    pub ttl: u8,
    /// How long it has waited in queues so far.
    pub queueing: Duration,
    /// The segment itself, in an IPv4 packet without options.
    pub segment: Segment,
    /// What it says to flow routers.
    pub qos: Qos,
}

/// What a packet says to flow routers: its codepoint, and the structures that stand behind the segment as its payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Qos {
    /// The codepoint.
    pub mark: QosMark,
    /// The structures, which count in no sequence space. Few packets have any: what each packet is moved with is small.
    pub structures: Option<Box<Structures>>,
}

impl Qos {
    /// A packet that carries this structure and nothing else.
    pub(crate) fn signal(structure: &Structure) -> Qos {
        let mut qos = Qos { mark: QosMark::Signal, structures: None };
        qos.set_structures(&Structures::one(*structure));
        qos
    }

    pub(crate) fn structures(&self) -> Option<Structures> {
        self.structures.as_deref().copied()
    }

    pub(crate) fn set_structures(&mut self, structures: &Structures) {
        self.structures = Some(Box::new(*structures));
    }
}

impl PathPacket for Packet {
    fn wire_size(&self) -> Bytes {
        let structures = self.qos.structures.as_ref().map_or(0, |structures| structures.encoded_len() as u64);
        self.segment.ipv4_size() + Bytes(structures)
    }

    fn carries_data(&self) -> bool {
        self.segment.len > 0
    }

    fn mark_ce(&mut self) -> bool {
        self.segment.ecn.mark()
    }

    fn ecn(&self) -> u8 {
        self.segment.ecn as u8
    }

    fn flow_hash(&self) -> u64 {
        u64::from(self.flow)
    }

    fn add_queueing(&mut self, wait: Duration) {
        self.queueing += wait;
    }

    fn pass_routers(&mut self, routers: u32) -> bool {
        self.ttl = self.ttl.saturating_sub(u8::try_from(routers).unwrap_or(u8::MAX));
        self.ttl > 0
    }
}

impl ExplicitRatePacket for Packet {
    fn qos(&mut self) -> Option<&mut dyn QosPacket> {
        Some(self)
    }

    /// The headers of a data packet and a structure behind them: it is no segment that TCP would see.
    fn signal(&self, structure: &Structure) -> Option<Packet> {
        let qos = Qos::signal(structure);
        let mut segment = Segment { len: 0, ..self.segment };
        segment.flags = Flags::ACK;
        Some(Packet { segment, qos, retransmission: false, resent_by: None, ..*self })
    }
}

impl QosPacket for Packet {
    fn flow_key(&self) -> FlowKey {
        FlowKey::from(u128::from(self.flow))
    }

    fn mark(&self) -> QosMark {
        self.qos.mark
    }

    fn structures(&self) -> Option<Structures> {
        self.qos.structures()
    }

    fn set_structures(&mut self, structures: &Structures) {
        self.qos.set_structures(structures);
    }

    fn next_seq(&self) -> Option<u32> {
        let syn = self.segment.flags.contains(Flags::SYN);
        Some(self.segment.seq.advanced_by(u64::from(syn)).0)
    }

    fn acknowledged(&self) -> Option<u32> {
        self.segment.flags.contains(Flags::ACK).then_some(self.segment.ack.0)
    }

    fn ending(&self) -> Ending {
        match self.segment.flags {
            flags if flags.contains(Flags::RST) => Ending::Reset,
            flags if flags.contains(Flags::FIN) => Ending::Fin,
            _ => Ending::No,
        }
    }
}
