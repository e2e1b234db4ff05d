//! What is to be simulated.

use farpath_elements::ElementSpec;
use farpath_path::Direction;
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration, Instant, Messages, Writing};

/// Which end opens a flow's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    /// The data sender: an upload.
    Sender,
    /// The data receiver: a download. It may send a request first.
    Receiver,
}

/// One flow: a file, or a stream of messages, from one end to the other.
#[derive(Debug, Clone)]
pub struct FlowSetup {
    /// When its opener sends the first SYN.
    pub start: Instant,
    /// The way over the path that its data goes.
    pub direction: Direction,
    /// Who opens.
    pub opener: Opener,
    /// Bytes of the file; of a stream, of all its messages.
    pub size: Bytes,
    /// When the program has what: without it the whole file at once.
    pub messages: Option<Messages>,
    /// Bytes that the receiving program sends back for each message once it has read it; zero where it says nothing.
    pub reply: Bytes,
    /// Of a stream, how long after it was due a message is still worth sending: one of which TCP has taken nothing by then is
    /// left out. `None` where each is sent. Not together with answers.
    pub lifetime: Option<Duration>,
    /// How the program writes a file. Of a stream it is the default.
    pub writing: Writing,
    /// Bytes that the opener of a download sends first, and that the other end reads before it answers.
    pub request: Bytes,
    /// The stack of the data sender.
    pub sender: Config,
    /// The stack of the data receiver.
    pub receiver: Config,
    /// Propagation each way between its host at the beginning of the path and the path.
    pub access: Duration,
    /// Mean time that the sender takes before it handles a packet, drawn for each; zero for a host that handles packets as they come.
    pub sender_jitter: Duration,
    /// The same of the receiver.
    pub receiver_jitter: Duration,
}

impl FlowSetup {
    /// A file that the data sender opens for at time zero, over the path's forward way, with one stack at both ends.
    pub fn upload(stack: &Config, size: Bytes) -> FlowSetup {
        FlowSetup {
            start: Instant::ZERO,
            direction: Direction::Forward,
            opener: Opener::Sender,
            size,
            messages: None,
            reply: Bytes::ZERO,
            lifetime: None,
            writing: Writing::default(),
            request: Bytes::ZERO,
            sender: stack.clone(),
            receiver: stack.clone(),
            access: Duration::ZERO,
            sender_jitter: Duration::ZERO,
            receiver_jitter: Duration::ZERO,
        }
    }
}

/// A whole simulation.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The path that all flows share.
    pub path: Vec<ElementSpec>,
    /// The flows, numbered in this order.
    pub flows: Vec<FlowSetup>,
    /// Seeds the path's random elements, the hosts' jitter and the initial sequence numbers.
    pub seed: u64,
    /// What is not over by then ends.
    pub horizon: Duration,
}
