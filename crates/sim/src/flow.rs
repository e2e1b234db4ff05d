//! One flow: two endpoints, the programs that use them, and what became of it.

use crate::{End, FlowSetup, Opener};
use farpath_path::{DropCause, PerDirection};
use farpath_tcp::{CloseReason, Connection, Endpoint, Seq};
use farpath_units::{Bytes, Duration, Instant, Rate};
use std::collections::BTreeMap;

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    /// The receiving application has read every byte.
    Completed,
    /// One end gave up, for this reason.
    Failed(CloseReason),
    /// Not over at the horizon.
    Horizon,
}

/// A flow after its run.
#[derive(Debug, Clone)]
pub struct FlowResult {
    /// How it ended.
    pub end: FlowEnd,
    /// When.
    pub ended_at: Instant,
    /// Bytes that the receiving application has read.
    pub bytes_read: Bytes,
    /// The data sender, as it was at the end.
    pub sender: Connection,
    /// The data receiver, as it was at the end.
    pub receiver: Connection,
    /// Drops of the flow's packets by cause, `forward` in the data direction.
    pub drops: PerDirection<BTreeMap<DropCause, u64>>,
    /// Congestion window averaged over the time from establishment to the end, bytes.
    pub mean_cwnd: f64,
}

/// An endpoint with its place in the event queue.
#[derive(Debug)]
pub(crate) struct Host {
    pub connection: Connection,
    /// The timer event that stands for it in the queue; earlier ones are stale.
    pub timer_at: Option<Instant>,
}

/// The state of a flow while it runs.
#[derive(Debug)]
pub(crate) struct Flow {
    pub setup: FlowSetup,
    pub sender: Host,
    pub receiver: Host,
    started: bool,
    unwritten: u64,
    request_unread: u64,
    bytes_read: u64,
    reader: Reader,
    end: Option<(FlowEnd, Instant)>,
    pub drops: PerDirection<BTreeMap<DropCause, u64>>,
    cwnd: CwndMean,
}

/// How the receiving application reads.
#[derive(Debug, Clone, Copy)]
enum Reader {
    AtOnce,
    /// A segment's worth at a time, at a rate; `next` is when the chunk being taken in will have been read.
    Paced { rate: Rate, chunk: u64, next: Option<Instant> },
}

/// Time integral of the congestion window.
#[derive(Debug, Clone, Copy, Default)]
struct CwndMean {
    since: Option<Instant>,
    last: Instant,
    cwnd: u64,
    byte_ns: u128,
}

impl CwndMean {
    fn update(&mut self, now: Instant, connection: &Connection) {
        if connection.established_at().is_none() {
            return;
        }
        if self.since.is_none() {
            (self.since, self.last) = (Some(now), now);
        }
        self.byte_ns += u128::from(self.cwnd) * u128::from((now - self.last).as_nanos());
        self.last = now;
        self.cwnd = connection.sender().window().cwnd;
    }

    fn mean(&self) -> f64 {
        match self.since {
            Some(since) if self.last > since => self.byte_ns as f64 / (self.last - since).as_nanos() as f64,
            _ => self.cwnd as f64,
        }
    }
}

impl Flow {
    pub fn new(setup: &FlowSetup, isn: [Seq; 2]) -> Flow {
        let (sender, receiver) = match setup.opener {
            Opener::Sender => {
                (Connection::connect(&setup.sender, isn[0]), Connection::listen(&setup.receiver, isn[1]))
            }
            Opener::Receiver => {
                (Connection::listen(&setup.sender, isn[0]), Connection::connect(&setup.receiver, isn[1]))
            }
        };
        let chunk = setup.receiver.mss.0;
        let reader = match setup.receiver.receive.read_rate.and_then(|bytes| Rate::from_bit_per_s(bytes * 8)) {
            None => Reader::AtOnce,
            Some(rate) => Reader::Paced { rate, chunk, next: None },
        };
        let host = |connection| Host { connection, timer_at: None };
        Flow {
            setup: setup.clone(),
            sender: host(sender),
            receiver: host(receiver),
            started: false,
            unwritten: setup.size.0,
            request_unread: if setup.opener == Opener::Receiver { setup.request.0 } else { 0 },
            bytes_read: 0,
            reader,
            end: None,
            drops: PerDirection::default(),
            cwnd: CwndMean::default(),
        }
    }

    pub fn host(&mut self, end: End) -> &mut Host {
        match end {
            End::Sender => &mut self.sender,
            End::Receiver => &mut self.receiver,
        }
    }

    /// The opener's program starts.
    pub fn start(&mut self) {
        self.started = true;
        if self.request_unread > 0 {
            self.receiver.connection.write(self.request_unread);
        }
    }

    /// Whether an end may speak: the opener only once its program has started.
    pub fn may_send(&self) -> bool {
        self.started
    }

    /// The program at `end` does what it can: reads, writes, closes. Gives when it wants to be asked again.
    pub fn run_program(&mut self, now: Instant, end: End) -> Option<Instant> {
        match end {
            End::Sender => {
                self.run_sender();
                None
            }
            End::Receiver => self.run_receiver(now),
        }
    }

    fn run_sender(&mut self) {
        let connection = &mut self.sender.connection;
        if self.request_unread > 0 {
            self.request_unread -= connection.read(self.request_unread);
        }
        // Who opened may write before the handshake is over; who was opened answers a request.
        let ready = match self.setup.opener {
            Opener::Sender => true,
            Opener::Receiver => connection.established_at().is_some() && self.request_unread == 0,
        };
        if ready && self.unwritten > 0 {
            self.unwritten -= connection.write(self.unwritten);
            if self.unwritten == 0 {
                connection.close();
            }
        }
    }

    fn run_receiver(&mut self, now: Instant) -> Option<Instant> {
        let connection = &mut self.receiver.connection;
        let mut ask_again = None;
        match &mut self.reader {
            Reader::AtOnce => self.bytes_read += connection.read(u64::MAX),
            Reader::Paced { rate, chunk, next } => {
                if next.is_some_and(|due| due <= now) {
                    self.bytes_read += connection.read(*chunk);
                    *next = None;
                }
                if next.is_none() && connection.readable() > 0 {
                    ask_again = Some(now + rate.time_to_send(Bytes(connection.readable().min(*chunk))));
                    *next = ask_again;
                }
            }
        }
        if self.bytes_read == self.setup.size.0 && self.end.is_none() {
            self.end = Some((FlowEnd::Completed, now));
            connection.close();
        }
        ask_again
    }

    /// Takes note of what the sender's window is, and of an end that gave up.
    pub fn observe(&mut self, now: Instant) {
        self.cwnd.update(now, &self.sender.connection);
        if self.end.is_none() {
            let failure = [&self.sender, &self.receiver]
                .into_iter()
                .filter_map(|host| host.connection.closed())
                .find(|(reason, _)| *reason != CloseReason::Finished);
            self.end = failure.map(|(reason, at)| (FlowEnd::Failed(reason), at));
        }
    }

    /// Bytes that the receiving application has read.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Whether nothing more can happen that anyone asks for: the transfer has failed, or is complete and closed.
    pub fn is_over(&self) -> bool {
        match self.end {
            Some((FlowEnd::Completed, _)) => {
                self.sender.connection.is_over() && self.receiver.connection.is_over()
            }
            Some(_) => true,
            None => false,
        }
    }

    pub fn into_result(self, horizon: Instant) -> FlowResult {
        let (end, ended_at) = self.end.unwrap_or((FlowEnd::Horizon, horizon));
        FlowResult {
            end,
            ended_at,
            bytes_read: Bytes(self.bytes_read),
            mean_cwnd: self.cwnd.mean(),
            sender: self.sender.connection,
            receiver: self.receiver.connection,
            drops: self.drops,
        }
    }
}

impl FlowResult {
    /// From `start` until the last byte was read, where it was.
    pub fn transfer_time(&self, start: Instant) -> Option<Duration> {
        (self.end == FlowEnd::Completed).then(|| self.ended_at - start)
    }
}
