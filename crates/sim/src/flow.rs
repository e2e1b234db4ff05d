//! One flow: two endpoints, the programs that use them, and what became of it.

use crate::budget::{Bound, Stuck};
use crate::host::Host;
use crate::jitter::Jitter;
use crate::stream::Streaming;
use crate::writer::Writer;
use crate::{End, FlowSetup, MessageStamps, Opener, Packet};
use farpath_explicit_rate::Driver;
use farpath_path::{Direction, DropCause, DropCounts, PerDirection};
use farpath_tcp::config::HandshakeRules;
use farpath_tcp::{CloseReason, Config, Connection, Ecn, Endpoint, Seq, State};
use farpath_units::{Bytes, Duration, DurationHistogram, Instant, Rate};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Retransmissions whose copies are known, the latest of those that arrived: a copy that the network makes is not as far behind.
const KNOWN_RETRANSMISSIONS: usize = 1 << 20;

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    /// The receiving application has read every byte; of an empty file, that there is none.
    Completed,
    /// One end gave up before that, for this reason.
    Failed(CloseReason),
    /// Not over at the horizon: still under way, or both ends wait for the other without a timer.
    Horizon,
    /// Not over when the run had used up its [`Budget`](crate::Budget); [`FlowResult::stuck`] says what repeated.
    Stuck,
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
    /// The data sender, as the simulation left it.
    pub sender: Connection,
    /// The data receiver, as the simulation left it.
    pub receiver: Connection,
    /// The data sender's explicit-rate driver, as the simulation left it, where it has one.
    pub driver: Option<Box<Driver>>,
    /// Drops of the flow's packets by cause, `forward` in the data direction.
    pub drops: PerDirection<DropCounts>,
    /// The round trips that the data sender measured, each that went into its SRTT.
    pub rtts: DurationHistogram,
    /// How long each packet that reached the data receiver had waited in queues; `None` on a path without a queue.
    pub queueing: Option<DurationHistogram>,
    /// Packets of the flow that reached the data receiver with a mark of congestion (CE).
    pub marks: u64,
    /// Retransmissions of data whose payload the receiver had when they arrived. Copies that the network makes
    /// are no retransmissions.
    pub spurious_retransmissions: u64,
    /// Congestion window averaged over the time from establishment to `ended_at`, bytes.
    pub mean_cwnd: f64,
    /// The stamps of its messages, where it is a stream.
    pub messages: Option<MessageStamps>,
    /// Why the run was ended, where it had used up its budget and the flow was not over.
    pub stuck: Option<Arc<Stuck>>,
}

/// The state of a flow while it runs.
#[derive(Debug)]
pub(crate) struct Flow {
    pub setup: FlowSetup,
    pub sender: Host,
    pub receiver: Host,
    unwritten: u64,
    request_unwritten: u64,
    request_unread: u64,
    bytes_read: u64,
    streaming: Option<Streaming>,
    writer: Option<Box<Writer>>,
    reader: Reader,
    end: Option<(FlowEnd, Instant)>,
    /// The receiving program has read all, and closes when it has said what it has to say.
    reader_leaves: bool,
    /// Whether the simulation has been told that it need not wait for this flow.
    reported_over: bool,
    drops: PerDirection<DropCounts>,
    rtts: DurationHistogram,
    queueing: Option<DurationHistogram>,
    marks: u64,
    /// Numbers of the retransmissions that arrived, to know a copy by. They are few: what is not lost is not here.
    retransmissions_received: BTreeSet<u64>,
    spurious_retransmissions: u64,
    cwnd: CwndMean,
}

/// How the receiving application reads.
#[derive(Debug, Clone, Copy)]
enum Reader {
    AtOnce,
    Never,
    /// Up to `chunk` bytes at a time, at a rate; what is being read leaves the buffer when it has been.
    Paced {
        rate: Rate,
        chunk: u64,
        reading: Option<(Instant, u64)>,
    },
}

impl Reader {
    fn new(setup: &FlowSetup) -> Reader {
        let Some(bytes_per_s) = setup.receiver.receive.read_rate else { return Reader::AtOnce };
        match Rate::from_bit_per_s(bytes_per_s.saturating_mul(8)) {
            Some(rate) => Reader::Paced { rate, chunk: setup.receiver.mss.0, reading: None },
            None => Reader::Never,
        }
    }
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
    #[inline]
    fn update(&mut self, now: Instant, connection: &Connection) {
        if connection.established_at().is_none() {
            return;
        }
        let cwnd = connection.sender().window().cwnd;
        if self.since.is_none() {
            (self.since, self.last) = (Some(now), now);
        } else if cwnd == self.cwnd {
            return;
        }
        self.extend_to(now);
        self.cwnd = cwnd;
    }

    fn extend_to(&mut self, now: Instant) {
        self.byte_ns += u128::from(self.cwnd) * u128::from(now.saturating_since(self.last).as_nanos());
        self.last = now;
    }

    fn mean_until(mut self, end: Instant) -> f64 {
        match self.since {
            Some(since) if end > since => {
                self.extend_to(end);
                self.byte_ns as f64 / (end - since).as_nanos() as f64
            }
            _ => self.cwnd as f64,
        }
    }
}

impl Flow {
    /// A flow over a path that has a queue in the direction of its data or none.
    pub fn new(setup: &FlowSetup, seed: u64, number: u32, has_queue: bool) -> Flow {
        let isn = initial_sequence_numbers(seed, number);
        let jitter = |mean, end| Jitter::new(mean, seed, number, end);
        let (mut sender, mut receiver) = match setup.opener {
            Opener::Sender => {
                (Connection::connect(&setup.sender, isn[0]), Connection::listen(&setup.receiver, isn[1]))
            }
            Opener::Receiver => {
                (Connection::listen(&setup.sender, isn[0]), Connection::connect(&setup.receiver, isn[1]))
            }
        };
        if setup.writing.window.is_some() {
            // Such protocols switch Nagle's rule off: what has been read is said at once, and the end of what that allows waits for nothing.
            sender.set_no_delay(true);
            receiver.set_no_delay(true);
        }
        let (sender, receiver) = match setup.sender.handshake.syn || setup.receiver.handshake.syn {
            true => (sender, receiver),
            // Neither end opens by a SYN.
            false => (sender.opened(&setup.receiver, isn[1]), receiver.opened(&setup.sender, isn[0])),
        };
        let request = if setup.opener == Opener::Receiver { setup.request.0 } else { 0 };
        Flow {
            setup: setup.clone(),
            sender: Host::new(
                sender,
                &setup.sender,
                &setup.receiver,
                jitter(setup.sender_jitter, End::Sender),
            ),
            receiver: Host::new(
                receiver,
                &setup.receiver,
                &setup.sender,
                jitter(setup.receiver_jitter, End::Receiver),
            ),
            unwritten: setup.size.0,
            request_unwritten: request,
            request_unread: request,
            bytes_read: 0,
            streaming: setup.messages.map(|messages| Streaming::new(messages, setup.reply, setup.lifetime)),
            writer: (!setup.writing.is_plain()).then(|| Box::new(Writer::new(setup.writing, setup.size))),
            reader: Reader::new(setup),
            end: None,
            reader_leaves: false,
            reported_over: false,
            drops: PerDirection::default(),
            rtts: DurationHistogram::default(),
            queueing: has_queue.then(DurationHistogram::default),
            marks: 0,
            retransmissions_received: BTreeSet::new(),
            spurious_retransmissions: 0,
            cwnd: CwndMean::default(),
        }
    }

    #[inline]
    pub fn host(&mut self, end: End) -> &mut Host {
        match end {
            End::Sender => &mut self.sender,
            End::Receiver => &mut self.receiver,
        }
    }

    /// A packet arrives at the other end.
    #[inline(always)]
    pub fn arrive(&mut self, now: Instant, packet: &Packet) {
        let (_, samples) = self.sender.connection.sender().rtt().last_sample();
        let duplicates = self.receiver.connection.receiver().duplicate_segments();
        // One call for both ends, which the compiler then puts here.
        self.host(packet.from.peer()).receive(now, packet);
        if packet.from == End::Receiver {
            if let (Some(rtt), has) = self.sender.connection.sender().rtt().last_sample()
                && has != samples
            {
                self.rtts.record(rtt);
            }
            return;
        }
        if let Some(queueing) = &mut self.queueing {
            queueing.record(packet.queueing);
        }
        self.marks += u64::from(packet.segment.ecn == Ecn::Ce);
        if packet.retransmission && self.retransmissions_received.insert(packet.number) {
            let has = self.receiver.connection.receiver().duplicate_segments();
            self.spurious_retransmissions += u64::from(has > duplicates);
            if self.retransmissions_received.len() > KNOWN_RETRANSMISSIONS {
                self.retransmissions_received.pop_first();
            }
        }
    }

    /// A packet that `from` has sent was dropped.
    pub fn count_drop(&mut self, from: End, cause: DropCause) {
        self.drops[from.sends(Direction::Forward)].add(cause);
    }

    /// The program at `end` does what it can: reads, writes, closes. Gives when it wants to be asked again.
    #[inline(always)]
    pub fn run_program(&mut self, now: Instant, end: End) -> Option<Instant> {
        match end {
            End::Sender => self.run_sender(now),
            End::Receiver => self.run_receiver(now),
        }
    }

    #[inline(always)]
    fn run_sender(&mut self, now: Instant) -> Option<Instant> {
        let connection = &mut self.sender.connection;
        if self.request_unread > 0 {
            self.request_unread -= connection.read(self.request_unread);
        } else if let Some(stream) = &mut self.streaming {
            stream.read_answers(now, connection);
        }
        // Who opened may write before the handshake is over, but for a stream, whose messages would be late before the
        // first one left; who was opened answers a request.
        let ready = match self.setup.opener {
            Opener::Sender => self.streaming.is_none() || connection.established_at().is_some(),
            Opener::Receiver => connection.established_at().is_some() && self.request_unread == 0,
        };
        if !ready {
            return None;
        }
        let mut ask_again = None;
        match (&mut self.streaming, &mut self.writer) {
            (None, None) => self.unwritten -= connection.write(self.unwritten),
            (None, Some(writer)) => (self.unwritten, ask_again) = writer.write(now, connection),
            (Some(stream), _) => {
                let written = self.setup.size.0 - stream.expired() - self.unwritten;
                let taken = stream.write(now, written, connection);
                self.unwritten = self.setup.size.0 - stream.expired() - written - taken;
                ask_again = stream.next_due(now);
            }
        }
        // Who waits for answers stays for the last one.
        if self.unwritten == 0 && self.streaming.as_ref().is_none_or(Streaming::has_answers) {
            connection.close();
        }
        ask_again
    }

    #[inline(always)]
    fn run_receiver(&mut self, now: Instant) -> Option<Instant> {
        let connection = &mut self.receiver.connection;
        if self.request_unwritten > 0 {
            self.request_unwritten -= connection.write(self.request_unwritten);
        }
        let mut ask_again = None;
        // Who answers reads on when TCP has taken the answers.
        let is_answering = self.streaming.as_mut().is_some_and(|stream| stream.answer(connection));
        match &mut self.reader {
            _ if is_answering => {}
            Reader::AtOnce => self.bytes_read += connection.read(u64::MAX),
            Reader::Never => {}
            Reader::Paced { rate, chunk, reading } => {
                if let Some((_, bytes)) = reading.take_if(|(done, _)| *done <= now) {
                    self.bytes_read += connection.read(bytes);
                }
                if reading.is_none() && connection.readable() > 0 {
                    let bytes = connection.readable().min(*chunk);
                    let done = now + rate.time_to_send(Bytes(bytes));
                    *reading = Some((done, bytes));
                    ask_again = Some(done);
                }
            }
        }
        let mut answered = true;
        if let Some(stream) = &mut self.streaming {
            stream.note_read(now, self.bytes_read);
            stream.answer(connection);
            answered = stream.has_answered();
        }
        if let Some(writer) = &mut self.writer
            && self.request_unwritten == 0
        {
            writer.update(self.bytes_read, connection);
        }
        let expired = self.streaming.as_ref().map_or(0, Streaming::expired);
        let all_read = self.bytes_read == self.setup.size.0 - expired;
        if all_read && self.end.is_none() && (self.bytes_read > 0 || connection.receiver().finished()) {
            self.end = Some((FlowEnd::Completed, now));
            self.reader_leaves = true;
        }
        if self.reader_leaves && answered {
            self.reader_leaves = false;
            connection.close();
        }
        ask_again
    }

    /// Takes note of what changed at `end`: the sender's window, or that it gave up.
    #[inline]
    pub fn observe(&mut self, now: Instant, end: End) {
        if self.end.is_some() {
            return;
        }
        if end == End::Sender {
            if let Some(stream) = &mut self.streaming {
                stream.note_sent(now, self.sender.connection.sender().sent());
            }
            self.cwnd.update(now, &self.sender.connection);
        }
        if let Some((reason, at)) = self.host(end).connection.closed()
            && reason != CloseReason::Finished
        {
            self.end = Some((FlowEnd::Failed(reason), at));
        }
    }

    /// Bytes that the receiving application has read.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Whether nothing more can happen that anyone asks for: the transfer has failed, or is complete and closed.
    /// True once only: a stray may still wake a closed connection, which answers with a reset.
    #[inline]
    pub fn comes_to_its_end(&mut self) -> bool {
        let over = match self.end {
            Some((FlowEnd::Completed, _)) => {
                let (sender, receiver) = (&self.sender.connection, &self.receiver.connection);
                // Where closed ends answer nothing, the other one would repeat its FIN for ever.
                let silent = |end: &Connection, config: &Config| {
                    end.state() == State::Closed
                        && end.is_over()
                        && config.handshake.rules == HandshakeRules::Ns3
                };
                (sender.is_over() && receiver.is_over())
                    || silent(sender, &self.setup.sender)
                    || silent(receiver, &self.setup.receiver)
            }
            Some(_) => true,
            None => false,
        };
        over && !core::mem::replace(&mut self.reported_over, over)
    }

    pub fn into_result(self, horizon: Instant, stuck: Option<&Arc<Stuck>>) -> FlowResult {
        // Where copies are missing, a transfer that completed is none of this experiment either.
        let missing = stuck.filter(|stuck| stuck.bound == Bound::Packets);
        let stuck = missing.or(stuck.filter(|_| self.end.is_none()));
        let (end, ended_at) = match (stuck, self.end) {
            (Some(stuck), _) => (FlowEnd::Stuck, stuck.at),
            (None, Some(end)) => end,
            (None, None) => (FlowEnd::Horizon, horizon),
        };
        FlowResult {
            end,
            ended_at,
            stuck: stuck.cloned(),
            bytes_read: Bytes(self.bytes_read),
            spurious_retransmissions: self.spurious_retransmissions,
            mean_cwnd: self.cwnd.mean_until(ended_at),
            messages: self.streaming.map(Streaming::into_stamps),
            sender: self.sender.connection,
            receiver: self.receiver.connection,
            driver: self.sender.driver,
            drops: self.drops,
            rtts: self.rtts,
            queueing: self.queueing,
            marks: self.marks,
        }
    }
}

impl FlowResult {
    /// From `start` until the last byte was read, where it was.
    pub fn transfer_time(&self, start: Instant) -> Option<Duration> {
        (self.end == FlowEnd::Completed).then(|| self.ended_at - start)
    }
}

/// Two numbers that differ from flow to flow and seed to seed, so that the wrap of the sequence space is met.
pub fn initial_sequence_numbers(seed: u64, flow: u32) -> [Seq; 2] {
    // SplitMix64's finalizer (Steele, Lea, Flood 2014).
    let mut mixed = seed.wrapping_add(u64::from(flow).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    [Seq(mixed as u32), Seq((mixed >> 32) as u32)]
}
