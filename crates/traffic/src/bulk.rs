//! One end of a bulk transfer over one TCP connection, on the calling thread.
//!
//! The content is [`farpath_tcp::pattern`] by its place in the stream, and the receiver looks at every byte. A receiver
//! that opens may send a request first, which the sender reads whole before it answers. The sender closes after its last
//! byte, the receiver when it has read all.

mod content;
mod transfer;

pub use transfer::MOST_SILENT;

use crate::info::TcpInfo;
use crate::options::{OptionError, SocketOptions};
use crate::token::Token;
use farpath_units::{Bytes, Duration, Instant, Messages, Writing};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

/// Connections of others that may wait to be turned away, where a token says whose one is.
const STRANGERS: i32 = 64;

/// Which way the data goes, seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It goes out.
    Sender,
    /// It comes in.
    Receiver,
}

/// How the connection begins, seen from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// The other end connects.
    Listen,
    /// This end connects.
    Connect,
}

/// One end of a transfer.
#[derive(Debug, Clone)]
pub struct BulkEnd {
    /// Which way the data goes.
    pub role: Role,
    /// Who connects.
    pub opening: Opening,
    /// Address of this end. With port zero the kernel chooses one: see [`Prepared::local`].
    pub local: SocketAddr,
    /// Address of the other. A listener takes no connection from another host, nor, unless this is zero, from another
    /// port.
    pub peer: SocketAddr,
    /// Bytes of the file; of a stream, of all its messages.
    pub size: Bytes,
    /// When the sender has what of it: without it the whole file at once. Both ends are told; the first message is due when
    /// the sender may write.
    pub messages: Option<Messages>,
    /// Bytes that the receiver sends back for each message once it has read it; zero where it says nothing. Both ends are told.
    pub reply: Bytes,
    /// How the sender writes a file. Both ends are told: of a window the receiver says what it has read.
    pub writing: Writing,
    /// Bytes that a receiver that connects sends first. Both ends are told.
    pub request: Bytes,
    /// Request and answer so many times over, one after the other over the one connection; `size` is that of each
    /// answer. 1 is a plain transfer, 0 as well. More need requests and answers of a byte at least, and a receiver that
    /// connects.
    pub exchanges: u32,
    /// What the connecting end shows first, ahead of the stream. A listener takes no connection without it.
    pub token: Option<Token>,
    /// When the connecting end sends its SYN.
    pub start: Instant,
    /// What is not over by then ends.
    pub deadline: Instant,
    /// How often the connection is looked at once it is there.
    pub sample_every: Option<Duration>,
    /// How fast a receiver reads, in bytes per second; `None` reads at once. It takes up to an MSS at a time, which
    /// leaves the buffer when its time is over, as the simulator's receiver does.
    pub read_rate: Option<u64>,
    /// A receiver that reads at once does so when this much of the file is there, or all that is left (`SO_RCVLOWAT`).
    /// While a program reads, the kernel gathers the segments that arrive, and acknowledges them once: six and more with
    /// an ACK, where nothing holds the program back.
    pub low_water: Option<Bytes>,
    /// How long after the transfer TCP may take to close in good order; then what is left of the connection is reset,
    /// so that no socket without an owner holds its namespace.
    pub close_within: Duration,
    /// What is set on the socket.
    pub socket: SocketOptions,
}

/// How an end came out.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// All is there: the receiver has read every byte; the sender knows that it has.
    #[error("completed")]
    Completed,
    /// No SYN was answered.
    #[error("the connection timed out before it was established")]
    ConnectTimedOut,
    /// The other host answered that nobody listens.
    #[error("the connection was refused")]
    Refused,
    /// The other end reset the connection, also while it was being established.
    #[error("the connection was reset by the other end")]
    Reset,
    /// This end gave up an established connection: its retransmissions, or its user timeout, ran out.
    #[error("the established connection timed out")]
    TimedOut,
    /// A router, or the own host, said that there is no way.
    #[error("the other end cannot be reached: {0}")]
    Unreachable(io::Error),
    /// Not over at the deadline.
    #[error("not over at the deadline")]
    Deadline,
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
    /// A byte was not what was sent.
    #[error("byte {offset} of the stream is not what was sent")]
    Mismatch {
        /// Its place in the stream, from zero.
        offset: u64,
    },
    /// The other end closed too early, or sent too much.
    #[error("expected {expected} B, got {}", if got > expected { "more".to_owned() } else { format!("{got} B") })]
    WrongLength {
        /// Bytes that were to come.
        expected: u64,
        /// Bytes that came; where these are more, at least so many.
        got: u64,
    },
    /// Anything else.
    #[error("{0}")]
    Failed(#[from] io::Error),
}

impl End {
    /// Whether it is [`End::Completed`].
    pub fn is_completed(&self) -> bool {
        matches!(self, End::Completed)
    }
}

/// A connection at one moment of the transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Bytes of the file that this end has read by then, or handed to the kernel.
    pub bytes: Bytes,
    /// What the kernel says.
    pub info: TcpInfo,
}

/// One request and its answer, as the end that asked saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When the request was handed to the kernel.
    pub asked_at: Instant,
    /// When the last byte of the answer was read.
    pub answered_at: Instant,
}

/// What one end knows after the transfer.
#[derive(Debug)]
pub struct EndReport {
    /// How it came out.
    pub end: End,
    /// When that was known; the closing of the connection comes after it.
    pub ended_at: Instant,
    /// When the connection was established, for this end's program.
    pub connected_at: Option<Instant>,
    /// When the first byte of the file was read, or handed to the kernel.
    pub first_byte_at: Option<Instant>,
    /// When the last byte was read; at a sender, when the other end's close said so.
    pub finished_at: Option<Instant>,
    /// Bytes of the file that were read, or handed to the kernel.
    pub bytes: Bytes,
    /// Bytes of requests that were read, or handed to the kernel.
    pub request_bytes: Bytes,
    /// What the kernel said of the connection when it was there: what it had counted of the handshake.
    pub info_at_connect: Option<TcpInfo>,
    /// What it said at the end, before the connection was closed. Also where it failed.
    pub info: Option<TcpInfo>,
    /// At the end that asks, each exchange where there are several.
    pub exchanged: Vec<Exchange>,
    /// The messages of a stream, as this end saw them.
    pub messages: Option<MessageStamps>,
    /// For how much of its time, from the SYN or the wait for one to the end, this end was ready and other programs had
    /// the processors, 0 to 1; `None` where the kernel does not say.
    pub processor_wait: Option<f64>,
}

/// When each message of a stream was whole: at its sender when the kernel had taken its last byte, at its receiver when it
/// had been read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageStamps {
    /// At the sender, when the first message was due; each other one is due by [`Messages::due_after`] from then.
    pub began: Option<Instant>,
    /// As many as were whole, in their order.
    pub at: Vec<Instant>,
    /// At the sender, when it had read the answer to each.
    pub answered: Vec<Instant>,
}

/// Why an end cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Exchanges that move nothing: they would go round as fast as the processor does.
    #[error("exchanges: expected requests and answers of 1 B at least, found {request} and {answer}")]
    EmptyExchanges {
        /// Bytes of each request.
        request: Bytes,
        /// Bytes of each answer.
        answer: Bytes,
    },
    /// The kernel gives no socket.
    #[error("cannot make a TCP socket: {0}")]
    Socket(io::Error),
    /// It refuses an option.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// It refuses the address.
    #[error("cannot use the address {address} in this network namespace: {source}")]
    Bind {
        /// The local address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Nobody can connect.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The local address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

impl PrepareError {
    /// Whether another port might do.
    pub fn is_address_in_use(&self) -> bool {
        match self {
            PrepareError::Bind { source, .. } | PrepareError::Listen { source, .. } => {
                source.kind() == io::ErrorKind::AddrInUse
            }
            PrepareError::EmptyExchanges { .. } | PrepareError::Socket(_) | PrepareError::Option(_) => false,
        }
    }
}

/// An end that is ready: its socket has its options and its address, and listens if it is to.
#[derive(Debug)]
pub struct Prepared {
    end: BulkEnd,
    socket: Socket,
    local: SocketAddr,
    stop_every: Duration,
}

impl Prepared {
    /// Makes the socket, in the network namespace of the calling thread.
    pub fn new(mut end: BulkEnd) -> Result<Prepared, PrepareError> {
        if end.writing.window.is_some() {
            // Who waits for more than the window allows waits for ever; and such protocols switch Nagle's rule off.
            end.low_water = None;
            end.socket.nodelay = true;
        }
        let (request, answer) = (end.request, end.size);
        if end.exchanges > 1 && (request == Bytes::ZERO || answer == Bytes::ZERO) {
            return Err(PrepareError::EmptyExchanges { request, answer });
        }
        let socket = Socket::new(Domain::for_address(end.local), Type::STREAM, Some(Protocol::TCP))
            .map_err(PrepareError::Socket)?;
        socket.set_nonblocking(true).map_err(PrepareError::Socket)?;
        // A run may follow another on the same ports, whose connections are in TIME-WAIT.
        socket.set_reuse_address(true).map_err(PrepareError::Socket)?;
        end.socket.apply(socket.as_fd())?;
        let address = end.local;
        let bind = |source| PrepareError::Bind { address, source };
        socket.bind(&address.into()).map_err(bind)?;
        let local = socket.local_addr().map_err(bind)?;
        let local = local.as_socket().unwrap_or(address);
        if end.opening == Opening::Listen {
            let backlog = if end.token.is_some() { STRANGERS } else { 1 };
            socket.listen(backlog).map_err(|source| PrepareError::Listen { address: local, source })?;
        }
        Ok(Prepared { end, socket, local, stop_every: Prepared::STOP_EVERY })
    }

    /// The same, looking at its stop flag so often: in virtual time a look costs more than the time between two.
    pub fn stopping_within(self, stop_every: Duration) -> Prepared {
        Prepared { stop_every, ..self }
    }

    /// Address of this end.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Runs to the end on the calling thread. Time counts from `epoch`; `stop` is looked at every
    /// [`STOP_EVERY`](Self::STOP_EVERY), or as [told](Self::stopping_within); `sampled` is given the connection as it is established, and then every
    /// [`BulkEnd::sample_every`].
    pub fn run(
        self,
        epoch: std::time::Instant,
        stop: &AtomicBool,
        sampled: &mut dyn FnMut(&Sample),
    ) -> EndReport {
        transfer::run(self, epoch, stop, sampled)
    }

    /// The longest that a thread is not looking at its stop flag, where nothing else is said.
    pub const STOP_EVERY: Duration = Duration::from_millis(10);
}
