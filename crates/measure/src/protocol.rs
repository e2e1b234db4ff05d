//! What client and responder say to each other over the control connection.
//!
//! Lines of JSON, each an object with one key, which says what it is. The peer speaks first; the local host answers
//! with its own greeting, and is then let in or refused. Until then nothing else is listened to. Times are nanoseconds of
//! the peer's clock since the session began, and nobody but [`crate::Offset`] compares them with the local host's.

mod line;

pub use line::{FrameError, Lines, MOST_BYTES as LINE, line};

use crate::end::EndFacts;
use crate::key::{Challenge, Proof};
use crate::said::Said;
use farpath_units::{Bytes, Duration, Messages, Pace, Rate, Writing};
use serde::{Deserialize, Serialize};

/// Version of all this. Hosts of different versions do not measure.
pub const PROTOCOL: u32 = 4;

/// What the peer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromResponder {
    /// First.
    Greeting(Greeting),
    /// The local host is let in.
    Welcome(Welcome),
    /// It is not, or what it asked for is not done.
    Refused(Refused),
    /// To a ping.
    Pong(Pong),
    /// What the kernel was asked for.
    Kernel(Vec<(String, Option<Said>)>),
    /// A flow's other end waits there.
    Ready(Ready),
    /// Some of what was seen over time at the peer's end of a flow: nanoseconds, metric, value.
    Rows(Rows),
    /// Some of the messages of a stream, as its end at the peer saw them.
    Messages(MessagesSeen),
    /// A transfer is over there.
    Ended(Box<Ended>),
    /// A flow of datagrams is over there.
    Datagrams(Datagrams),
}

/// What the local host says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromClient {
    /// First.
    Greeting(Greeting),
    /// To know how far apart the clocks are.
    Ping(Ping),
    /// Values of the kernel that this program names for a stack: names as `sysctl` has them.
    Kernel(Vec<String>),
    /// A transfer, or requests and answers.
    Transfer(Transfer),
    /// Datagrams that are sent back.
    Echo(EchoAsked),
    /// Datagrams as fast as they go.
    Burst(BurstAsked),
    /// All datagrams of a burst have been sent, or no more echoes are: the peer's end is done when it is quiet.
    Done(FlowNumber),
    /// A flow is given up.
    Stop(FlowNumber),
}

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// [`PROTOCOL`], under a name that says whose it is.
    pub farpath: u32,
    /// Version of the program.
    pub version: Said,
    /// Name and release.
    pub kernel: Said,
    /// What the other is to prove its key with.
    pub challenge: Challenge,
    /// From the peer: whether it wants a key.
    #[serde(default)]
    pub key: bool,
    /// From the local host, where the peer has a key.
    #[serde(default)]
    pub proof: Option<Proof>,
}

/// What is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// That the peer has the same key.
    #[serde(default)]
    pub proof: Option<Proof>,
    /// The local host's address as it is seen there.
    pub seen_as: Said,
    /// In bit/s.
    #[serde(default)]
    pub max_rate: Option<u64>,
    /// Bytes in all, both ways.
    pub max_bytes: u64,
    /// From now on.
    pub max_time_ns: u64,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Another protocol.
    Version,
    /// A key is wanted, and none or a wrong one was shown.
    Key,
    /// As many measure as may, or were let in.
    Busy,
    /// More than is allowed.
    Limit,
    /// It cannot be done there.
    Cannot,
    /// It was not understood.
    Malformed,
}

/// Why not, and in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// For programs.
    pub why: Why,
    /// For people.
    pub message: Said,
    /// Of a flow.
    #[serde(default)]
    pub flow: Option<u32>,
}

/// Asks for the peer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Comes back.
    pub number: u32,
}

/// The peer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// Of the ping.
    pub number: u32,
    /// When the ping was read.
    pub received_ns: u64,
    /// When this was written.
    pub sent_ns: u64,
}

/// Which flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowNumber {
    /// As the local host counts them.
    pub flow: u32,
}

/// One end of a transfer over TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// As the local host counts them.
    pub flow: u32,
    /// Whether the peer's end sends the data.
    pub sends: bool,
    /// Bytes of the file, or of each answer; of a stream, of all its messages.
    pub size: u64,
    /// When the sender has what of it; without it, the whole file at once.
    #[serde(default)]
    pub messages: Option<MessagesAsked>,
    /// How the sender writes a file.
    #[serde(default)]
    pub writing: WritingAsked,
    /// Bytes that the local end sends first, where it receives.
    #[serde(default)]
    pub request: u64,
    /// Requests and answers over the one connection.
    #[serde(default)]
    pub exchanges: u32,
    /// What is not over after that ends.
    pub within_ns: u64,
    /// How often the connection is looked at.
    #[serde(default)]
    pub sample_every_ns: Option<u64>,
    /// How fast the peer's end reads, in bytes per second.
    #[serde(default)]
    pub read_rate: Option<u64>,
    /// When it is woken to read.
    #[serde(default)]
    pub low_water: Option<u64>,
    /// What is set on its socket.
    #[serde(default)]
    pub socket: SocketAsked,
}

/// Messages of a stream; as [`farpath_units::Messages`] has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesAsked {
    /// Bytes of each.
    pub size: u64,
    /// How many.
    pub count: u64,
    /// How fast they come.
    pub pace: PaceAsked,
}

/// What sets the pace of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaceAsked {
    /// Nanoseconds between two messages.
    EveryNs(u64),
    /// Bits of messages per second.
    BitPerS(u64),
}

impl From<Messages> for MessagesAsked {
    fn from(messages: Messages) -> MessagesAsked {
        let pace = match messages.pace {
            Pace::Every(interval) => PaceAsked::EveryNs(interval.as_nanos()),
            Pace::At(rate) => PaceAsked::BitPerS(rate.bit_per_s()),
        };
        MessagesAsked { size: messages.size.0, count: messages.count, pace }
    }
}

impl MessagesAsked {
    /// What that is, in `total` bytes; `None` where it is no stream of so many.
    pub fn messages(self, total: u64) -> Option<Messages> {
        let MessagesAsked { size, count, pace } = self;
        let pace = match pace {
            PaceAsked::EveryNs(ns) => Pace::Every(Duration::from_nanos(ns)),
            PaceAsked::BitPerS(rate) => Pace::At(Rate::from_bit_per_s(rate)?),
        };
        let whole = size > 0 && count > 0 && size.checked_mul(count) == Some(total);
        whole.then_some(Messages { size: Bytes(size), pace, count })
    }
}

/// How a file is written; as [`farpath_units::Writing`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WritingAsked {
    /// Bytes of the program's own window.
    pub window: Option<u64>,
    /// Bytes after which it is said that they have been read.
    pub update_every: Option<u64>,
    /// Bytes of each write.
    pub write_size: Option<u64>,
    /// From one write to the next.
    pub think_time_ns: u64,
}

impl From<Writing> for WritingAsked {
    fn from(writing: Writing) -> WritingAsked {
        let Writing { window, update_every, write_size, think_time } = writing;
        WritingAsked {
            window: window.map(|bytes| bytes.0),
            update_every: update_every.map(|bytes| bytes.0),
            write_size: write_size.map(|bytes| bytes.0),
            think_time_ns: think_time.as_nanos(),
        }
    }
}

impl WritingAsked {
    /// What that is; `None` where nothing could ever be written.
    pub fn writing(self) -> Option<Writing> {
        let WritingAsked { window, update_every, write_size, think_time_ns } = self;
        let writing = Writing {
            window: window.map(Bytes),
            update_every: update_every.map(Bytes),
            write_size: write_size.map(Bytes),
            think_time: Duration::from_nanos(think_time_ns),
        };
        (window != Some(0) && write_size != Some(0)).then_some(writing)
    }
}

/// Options of a socket, those that a stack asks for; as [`farpath_traffic::SocketOptions`] has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketAsked {
    pub congestion_control: Option<String>,
    pub receive_buffer: Option<u64>,
    pub send_buffer: Option<u64>,
    pub nodelay: bool,
    pub mss: Option<u64>,
    pub rto_min_ns: Option<u64>,
    pub rto_max_ns: Option<u64>,
    pub delack_max_ns: Option<u64>,
}

/// Datagrams that the local host sends and wants back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoAsked {
    /// As the local host counts them.
    pub flow: u32,
    /// The most that will be sent.
    pub count: u32,
    /// Bytes of each, without IP and UDP headers.
    pub size: u32,
    /// What is not over after that ends.
    pub within_ns: u64,
}

/// Datagrams one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstAsked {
    /// As the local host counts them.
    pub flow: u32,
    /// Whether the peer's end sends them.
    pub sends: bool,
    /// How many.
    pub count: u32,
    /// Bytes of each, without IP and UDP headers.
    pub size: u32,
    /// After that nothing more is waited for, once all has been sent.
    pub quiet_ns: u64,
    /// What is not over after that ends.
    pub within_ns: u64,
}

/// Where the peer's end of a flow waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Which.
    pub flow: u32,
    /// Of the address that the control connection has.
    pub port: u16,
    /// What to show there.
    pub token: String,
    /// What could not be set on the peer's socket, and why.
    #[serde(default)]
    pub unmatched: Vec<Said>,
}

/// What a peer's end saw over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Of which flow.
    pub flow: u32,
    /// Nanoseconds, metric, value.
    pub rows: Vec<(u64, String, u64)>,
}

/// When messages of a stream were whole at the peer's end: taken by its kernel, or read. In their order, and nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesSeen {
    /// Of which flow.
    pub flow: u32,
    /// Behind those that were told before.
    pub at_ns: Vec<u64>,
}

/// How a peer's end came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Of which flow.
    pub flow: u32,
    /// What it knows.
    pub end: EndFacts,
    /// Whether rows were left out, there being too many.
    #[serde(default)]
    pub rows_cut: bool,
}

/// What became of datagrams at the peer's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Of which flow.
    pub flow: u32,
    /// Different ones that were sent from there, or had come in as echoes.
    pub count: u32,
    /// How long sending a burst took.
    #[serde(default)]
    pub within_ns: u64,
    /// Of a burst, what came in: number, nanoseconds when it was sent, and when it arrived.
    #[serde(default)]
    pub arrivals: Vec<(u32, u64, u64)>,
    /// Datagrams that found no room there.
    #[serde(default)]
    pub dropped_here: u32,
    /// Whether more arrivals of the same burst follow.
    #[serde(default)]
    pub more: bool,
}

#[cfg(test)]
pub mod tests;
