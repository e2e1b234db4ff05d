//! What the programs and the loader share, byte for byte: `bpf/driver.h`.

use crate::buffers::{Limit, Limits};
use crate::{Buffers, Settings};
use farpath_explicit_rate::{EXCESS, QUEUE_LOSS_PER_MILLE, QUEUE_ROUNDS, allowed_per_million};
use farpath_tia1039::{OptionType, RateUnit, RateWord};
use farpath_units::{Bytes, Rate};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Of `TCP_CA_NAME_LEN`, the final zero included.
pub(crate) const NAME_LEN: usize = 16;
pub(crate) const KEY_LEN: usize = 48;
pub(crate) const FLOW_LEN: usize = 104;
pub(crate) const TALK_LEN: usize = 64;
pub(crate) const CONFIG_LEN: usize = 92;

/// A name as the kernel has it; `None` where it is too long for one, or empty.
pub(crate) fn name(text: &str) -> Option<[u8; NAME_LEN]> {
    let mut bytes = [0; NAME_LEN];
    // The last one stays zero.
    bytes[..NAME_LEN - 1].get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    (!text.is_empty()).then_some(bytes)
}

/// `struct config`, in force.
pub(crate) fn config(
    settings: &Settings,
    limits: &Limits,
    plain: [u8; NAME_LEN],
    fallback: [u8; NAME_LEN],
) -> [u8; CONFIG_LEN] {
    let request = &settings.request;
    let (fixed, [send, receive]) = match settings.buffers {
        Buffers::Untouched => (0, [Limit::default(); 2]),
        Buffers::Sized => (0, [limits.send, limits.receive]),
        Buffers::Fixed(buffer) => (set(buffer), [Limit::default(); 2]),
    };
    let words = [
        1,
        request.packets_between.max(1),
        allowed_per_million(request.loss_per_mille),
        EXCESS,
        u32::try_from(request.queue_delay.as_nanos() / 1000).unwrap_or(u32::MAX),
        QUEUE_LOSS_PER_MILLE,
        QUEUE_ROUNDS,
        fixed,
        set(send.most),
        set(send.by_itself),
        set(receive.most),
        set(receive.by_itself),
        request.loss_per_mille,
    ];
    let bytes = [
        request.preemption.level(),
        request.delay.level(),
        request.burst.code(),
        request.version as u8,
        request.min_routers.max(1),
        OptionType::default() as u8,
        u8::from(settings.early_window),
        request.rate_type as u8,
    ];
    let mut config = [0; CONFIG_LEN];
    for (to, word) in config.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    config[52..60].copy_from_slice(&bytes);
    config[60..76].copy_from_slice(&plain);
    config[76..].copy_from_slice(&fallback);
    config
}

/// A buffer as it is set: the kernel takes a signed number.
fn set(buffer: Bytes) -> u32 {
    u32::try_from(buffer.0).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

/// Whether a `struct config` is in force.
pub(crate) fn set_enabled(config: &mut [u8], enabled: bool) {
    config[..4].copy_from_slice(&u32::from(enabled).to_ne_bytes());
}

/// The `device` of bpf/tc.bpf.c: its namespace, the length of its link-layer header, and the most that is asked for.
pub(crate) fn device(netns: u64, header: u32, wanted: RateWord, control: [u8; NAME_LEN]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&netns.to_ne_bytes());
    bytes[8..12].copy_from_slice(&header.to_ne_bytes());
    bytes[12..14].copy_from_slice(&wanted.bits().to_be_bytes());
    bytes[14..30].copy_from_slice(&control);
    bytes
}

/// What has come of asking for a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing was heard yet.
    Waiting,
    /// Data is sent at a grant.
    Granted,
    /// The peer did not answer the request.
    PeerIncapable,
    /// No router, or too few, have marked the answer.
    NoRouter,
    /// The grant was zero.
    Refused,
    /// What was granted was taken back: another flow has preempted it.
    Withdrawn,
    /// More was lost than is allowed.
    Loss,
    /// A queue stood, and packets were lost.
    Queue,
    /// A queue has marked packets.
    Mark,
    /// The driver was detached.
    Detached,
}

impl Outcome {
    /// In the order of their numbers.
    pub const ALL: [Outcome; 10] = [
        Outcome::Waiting,
        Outcome::Granted,
        Outcome::PeerIncapable,
        Outcome::NoRouter,
        Outcome::Refused,
        Outcome::Withdrawn,
        Outcome::Loss,
        Outcome::Queue,
        Outcome::Mark,
        Outcome::Detached,
    ];

    /// In a word, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Waiting => "waiting",
            Outcome::Granted => "granted",
            Outcome::PeerIncapable => "peer-incapable",
            Outcome::NoRouter => "no-router",
            Outcome::Refused => "refused",
            Outcome::Withdrawn => "withdrawn",
            Outcome::Loss => "loss",
            Outcome::Queue => "queue",
            Outcome::Mark => "mark",
            Outcome::Detached => "detached",
        }
    }
}

/// A socket that asked, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// What has come of it.
    pub outcome: Outcome,
    /// Asked for.
    pub asked: RateWord,
    /// Granted.
    pub granted: RateWord,
    /// Requests sent, that of the handshake included.
    pub requests: u32,
    /// Answers received.
    pub responses: u32,
    /// Answers that lowered the rate.
    pub cuts: u32,
    /// Answers that raised it.
    pub raises: u32,
    /// Packets that TCP has declared lost.
    pub lost: u32,
    /// Packets that arrived.
    pub delivered: u32,
}

impl Flow {
    /// Of an entry of the map `flows`; `None` of what the programs never write.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<Flow> {
        let key: &[u8; KEY_LEN] = key.try_into().ok()?;
        let value: &[u8; FLOW_LEN] = value.try_into().ok()?;
        let end = |address: usize, port: usize| {
            let address: [u8; 16] = key[address..address + 16].try_into().expect("16 bytes");
            let address: IpAddr = Ipv6Addr::from(address).to_canonical();
            SocketAddr::new(address, u16::from_be_bytes([key[port], key[port + 1]]))
        };
        let word = |at: usize| RateWord::from_bits(u16::from_be_bytes([value[at], value[at + 1]]));
        let number = |at: usize| u32::from_ne_bytes(value[at..at + 4].try_into().expect("four bytes"));
        Some(Flow {
            local: end(8, 40),
            remote: end(24, 42),
            outcome: *Outcome::ALL.get(usize::from(value[20]))?,
            asked: word(16),
            granted: word(18),
            requests: number(28),
            responses: number(32),
            cuts: number(36),
            raises: number(40),
            lost: number(44),
            delivered: number(48),
        })
    }

    /// The rate in force, bits of IP packets; `None` where TCP sends as ever.
    pub fn rate(&self) -> Option<Rate> {
        let granted = self.outcome == Outcome::Granted;
        Rate::from_bit_per_s(RateUnit::KbitPerS.decode(self.granted)).filter(|_| granted)
    }
}

/// What the programs count, over all devices and CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Requests of handshakes.
    SentRequests,
    /// Answers.
    SentResponses,
    /// Requests in mid-flow.
    SentRenegotiations,
    /// Requests that a router had missed, sent again.
    SentResends,
    /// What routers have missed, sent back to the other end.
    SentMissed,
    /// Grants that were given up, told to the routers.
    SentCloses,
    /// Windows announced behind a SYN/ACK.
    SentWindows,
    /// Requests of handshakes that arrived.
    TakenRequests,
    /// Answers that arrived.
    TakenResponses,
    /// Requests in mid-flow that arrived, from the peer or from a router.
    TakenRenegotiations,
    /// What routers have missed.
    TakenMissed,
    /// Other messages, which change nothing.
    TakenOther,
    /// What says that it carries structures, and does not.
    Malformed,
    /// Structures of no connection here.
    Unknown,
    /// Structures in packets whose numbers no packet of the connection can have.
    Implausible,
    /// Answers above what was asked for.
    AboveRequest,
    /// Raises that nobody had asked for, or that no router has marked.
    UnaskedRaises,
    /// Answers to nothing.
    Unexpected,
    /// Packets that the kernel did not let be changed.
    Failed,
    /// Sockets that went on with plain TCP, and why.
    Plain(Outcome),
}

impl Counter {
    /// In the order of their numbers.
    pub fn all() -> impl Iterator<Item = Counter> {
        use Counter::*;
        [
            SentRequests,
            SentResponses,
            SentRenegotiations,
            SentResends,
            SentMissed,
            SentCloses,
            SentWindows,
            TakenRequests,
            TakenResponses,
            TakenRenegotiations,
            TakenMissed,
            TakenOther,
            Malformed,
            Unknown,
            Implausible,
            AboveRequest,
            UnaskedRaises,
            Unexpected,
            Failed,
        ]
        .into_iter()
        .chain(Outcome::ALL.into_iter().map(Plain))
    }

    /// In a word, for machines.
    pub fn name(self) -> String {
        use Counter::*;
        let name = match self {
            SentRequests => "sent_requests",
            SentResponses => "sent_responses",
            SentRenegotiations => "sent_renegotiations",
            SentResends => "sent_resends",
            SentMissed => "sent_missed_starts",
            SentCloses => "sent_closes",
            SentWindows => "sent_windows",
            TakenRequests => "taken_requests",
            TakenResponses => "taken_responses",
            TakenRenegotiations => "taken_renegotiations",
            TakenMissed => "taken_missed_starts",
            TakenOther => "taken_other",
            Malformed => "malformed",
            Unknown => "unknown",
            Implausible => "implausible",
            AboveRequest => "above_request",
            UnaskedRaises => "unasked_raises",
            Unexpected => "unexpected",
            Failed => "failed",
            Plain(outcome) => return format!("plain_{}", outcome.name().replace('-', "_")),
        };
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leaves_room_for_its_end() {
        assert_eq!(name("cubic"), Some(*b"cubic\0\0\0\0\0\0\0\0\0\0\0"));
        assert!(name("fifteen_letters").is_some());
        assert_eq!(name("sixteen_letters_"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn an_entry_of_the_map_is_read() {
        let mut key = [0; KEY_LEN];
        key[18..20].fill(0xff);
        key[20..24].copy_from_slice(&[10, 0, 0, 1]);
        key[34..36].fill(0xff);
        key[36..40].copy_from_slice(&[10, 0, 0, 2]);
        key[40..44].copy_from_slice(&[0x9c, 0x40, 0, 80]);
        let mut value = [0; FLOW_LEN];
        value[16..21].copy_from_slice(&[0x61, 0x0e, 0x5d, 0xa9, 1]);
        let flow = Flow::read(&key, &value).unwrap();
        assert_eq!(
            (flow.local.to_string(), flow.remote.to_string()),
            ("10.0.0.1:40000".into(), "10.0.0.2:80".into())
        );
        assert_eq!(flow.rate().map(Rate::bit_per_s), Some(29_984_000));
        assert_eq!(Flow::read(&key[1..], &value), None);
    }
}
