//! Streams of datagrams: one end sends each message when it is due, the other says when it came, and answers where asked.
//!
//! Both ends are of one run, alone in namespaces of their own, and told of each other: a datagram says no more than its
//! number, so that short ones can be sent too. An end that takes part in explicit rate knows what carries structures by its
//! codepoint, in IPv4.

use super::Until;
use crate::counters::ThreadTimes;
use crate::options;
use crate::wait::{self, PromptTimers};
use farpath_explicit_rate::DatagramDriver;
use farpath_tia1039::{QosMark, Structures};
use farpath_units::{Bytes, Duration, Instant, Messages};
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest UDP payload (RFC 768 in an IPv4 packet).
const MOST: usize = 65_507;

/// A stream, as both ends are told of it. Messages and answers begin with their number: 4 B are the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramStream {
    /// What is sent, and when.
    pub messages: Messages,
    /// How long the answer to each is; `None` where nobody answers.
    pub reply: Option<Bytes>,
    /// When the first one is due.
    pub start: Instant,
}

/// What all ends together have done so far, for whoever has to know when it is over.
#[derive(Debug, Default)]
pub struct StreamTally {
    /// Messages that were sent.
    pub messages: AtomicU64,
    /// Datagrams that were handed to the kernel, answers among them: counted just before.
    pub written: AtomicU64,
    /// Datagrams that were read, and their bytes.
    pub read: AtomicU64,
    /// See `read`.
    pub read_bytes: AtomicU64,
}

/// What one end saw. At the sender `came` is of answers, at the receiver of messages.
#[derive(Debug, Clone, Default)]
pub struct StreamStamps {
    /// When each message left the program; empty at the receiver.
    pub sent: Vec<Instant>,
    /// When each number came for the first time.
    pub came: Vec<Option<Instant>>,
    /// For how much of its time this end was ready and other programs had the processors.
    pub processor_wait: Option<f64>,
    /// What came of asking for a rate, where it did.
    pub driver: Option<DatagramDriver>,
}

/// One end's socket.
#[derive(Debug)]
pub struct StreamSocket(UdpSocket);

impl StreamSocket {
    /// A socket that talks to this peer alone, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel gives no socket at the address.
    pub fn new(local: SocketAddr, peer: SocketAddr) -> io::Result<StreamSocket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // Cut to what the host allows, without a word.
        let _ = options::set_receive_room(socket.as_fd(), super::RECEIVE_BUFFER);
        socket.bind(&local.into())?;
        socket.connect(&peer.into())?;
        Ok(StreamSocket(socket.into()))
    }

    /// Sends the messages of a stream when they are due and its driver lets them leave, and notes the answers, until it is told
    /// to stop.
    ///
    /// # Errors
    /// The kernel refuses to send or to receive.
    pub fn send(
        &self,
        stream: &DatagramStream,
        driver: Option<DatagramDriver>,
        tally: &StreamTally,
        until: Until<'_>,
    ) -> io::Result<StreamStamps> {
        let mut end = End::new(self, stream, driver, tally, until)?;
        let mut datagram = vec![0; stream.messages.size.0 as usize];
        while !until.is_over(until.now()) {
            let number = end.stamps.sent.len() as u64;
            let due = stream.start + stream.messages.due_after(number);
            let now = until.now();
            let more = number < stream.messages.count;
            let is_due = more && now >= due;
            if is_due && end.may_send(now) {
                put_number(&mut datagram, number);
                if end.write(now, &datagram)? {
                    end.stamps.sent.push(now);
                    tally.messages.fetch_add(1, Ordering::SeqCst);
                }
                continue;
            }
            end.read(|_, _| Ok(()))?;
            end.say()?;
            let next = match (is_due, more) {
                (true, _) => end.next_due(),
                (false, true) => Some(due),
                (false, false) => None,
            };
            self.wait(next.map_or(super::STOP_EVERY, |due| due.saturating_since(until.now())))?;
        }
        Ok(end.over())
    }

    /// Notes when the messages of a stream come, and answers them, until it is told to stop.
    ///
    /// # Errors
    /// The kernel refuses to send or to receive.
    pub fn receive(
        &self,
        stream: &DatagramStream,
        driver: Option<DatagramDriver>,
        tally: &StreamTally,
        until: Until<'_>,
    ) -> io::Result<StreamStamps> {
        let mut end = End::new(self, stream, driver, tally, until)?;
        let mut answer = stream.reply.map(|size| vec![0; size.0 as usize]);
        let mut waiting = VecDeque::new();
        while !until.is_over(until.now()) {
            end.read(|end, number| {
                if let Some(answer) = &mut answer {
                    waiting.push_back(number);
                    end.answer(&mut waiting, answer)?;
                }
                Ok(())
            })?;
            if let Some(answer) = &mut answer {
                end.answer(&mut waiting, answer)?;
            }
            end.say()?;
            let next = end.next_due().filter(|_| !waiting.is_empty());
            self.wait(next.map_or(super::STOP_EVERY, |due| due.saturating_since(until.now())))?;
        }
        Ok(end.over())
    }

    fn wait(&self, longest: Duration) -> io::Result<()> {
        wait::ready(self.0.as_fd(), PollFlags::IN, longest.min(super::STOP_EVERY)).map(drop)
    }
}

/// An end at work.
struct End<'a> {
    socket: &'a UdpSocket,
    tally: &'a StreamTally,
    until: Until<'a>,
    stamps: StreamStamps,
    /// IP and UDP headers.
    headers: Bytes,
    /// The codepoint that the socket's datagrams have now.
    mark: QosMark,
    buffer: Vec<u8>,
    began: Instant,
    times: Option<ThreadTimes>,
    _prompt: PromptTimers,
}

impl<'a> End<'a> {
    fn new(
        socket: &'a StreamSocket,
        stream: &DatagramStream,
        driver: Option<DatagramDriver>,
        tally: &'a StreamTally,
        until: Until<'a>,
    ) -> io::Result<End<'a>> {
        let came = vec![None; stream.messages.count as usize];
        if driver.is_some() {
            options::set_number(socket.0.as_fd(), libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        }
        Ok(End {
            socket: &socket.0,
            tally,
            until,
            stamps: StreamStamps { came, driver, ..StreamStamps::default() },
            headers: super::headers(socket.0.local_addr()?.ip()),
            mark: QosMark::None,
            buffer: vec![0; MOST],
            began: until.now(),
            times: ThreadTimes::read().ok(),
            _prompt: PromptTimers::new(),
        })
    }

    /// Whether a datagram that is ready may leave.
    fn may_send(&mut self, now: Instant) -> bool {
        self.stamps.driver.as_mut().is_none_or(|driver| driver.may_send(now))
    }

    /// When to look again whether one may.
    fn next_due(&self) -> Option<Instant> {
        self.stamps.driver.as_ref()?.next_due()
    }

    /// Says what the driver has to say to routers and to the peer.
    fn say(&mut self) -> io::Result<()> {
        while let Some(structure) = self.stamps.driver.as_mut().and_then(DatagramDriver::poll) {
            self.set_mark(QosMark::Signal)?;
            // Without room it is lost, as it might be anywhere else on its way.
            self.hand_over(&structure.encode_v4())?;
        }
        Ok(())
    }

    /// Answers what may be answered now.
    fn answer(&mut self, waiting: &mut VecDeque<u64>, answer: &mut [u8]) -> io::Result<()> {
        while let Some(&number) = waiting.front() {
            let now = self.until.now();
            if !self.may_send(now) {
                break;
            }
            waiting.pop_front();
            put_number(answer, number);
            // Without room the answer is lost, as it might be anywhere else on its way.
            self.write(now, answer)?;
        }
        Ok(())
    }

    /// Sends a datagram of the stream; false where the kernel has no room now.
    fn write(&mut self, now: Instant, datagram: &[u8]) -> io::Result<bool> {
        if let Some(mark) = self.stamps.driver.as_ref().map(DatagramDriver::mark) {
            self.set_mark(mark)?;
        }
        let sent = self.hand_over(datagram)?;
        if sent && let Some(driver) = &mut self.stamps.driver {
            driver.on_sent(now, Bytes(datagram.len() as u64) + self.headers);
            self.say()?;
        }
        Ok(sent)
    }

    /// From now on datagrams have this codepoint.
    fn set_mark(&mut self, mark: QosMark) -> io::Result<()> {
        if self.mark != mark {
            let tos = i32::from(mark.dscp().unwrap_or(0)) << 2;
            options::set_number(self.socket.as_fd(), libc::IPPROTO_IP, libc::IP_TOS, tos)?;
            self.mark = mark;
        }
        Ok(())
    }

    /// False where the kernel has no room now.
    fn hand_over(&self, datagram: &[u8]) -> io::Result<bool> {
        self.tally.written.fetch_add(1, Ordering::SeqCst);
        let refused = match self.socket.send(datagram) {
            Ok(_) => return Ok(true),
            // Told of an earlier one: this one was not sent, and the next call sends it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(false),
            Err(error) => Err(error),
        };
        self.tally.written.fetch_sub(1, Ordering::SeqCst);
        refused
    }

    /// What has come, and its codepoint where this end has a driver.
    fn receive(&mut self) -> io::Result<Option<(usize, QosMark)>> {
        if self.stamps.driver.is_none() {
            return Ok(super::come(|| self.socket.recv(&mut self.buffer))?.map(|len| (len, QosMark::None)));
        }
        let come = super::come(|| options::receive_with_tos(self.socket.as_fd(), &mut self.buffer))?;
        Ok(come.map(|(len, tos)| (len, QosMark::from_dscp(tos.unwrap_or(0) >> 2))))
    }

    /// Notes what has come, and hands each number over once.
    fn read(&mut self, mut first: impl FnMut(&mut Self, u64) -> io::Result<()>) -> io::Result<()> {
        while let Some((len, mark)) = self.receive()? {
            self.tally.read.fetch_add(1, Ordering::SeqCst);
            self.tally.read_bytes.fetch_add(len as u64, Ordering::Relaxed);
            let now = self.until.now();
            let come = &self.buffer[..len];
            if mark == QosMark::Signal
                && let (Some(driver), Ok(structures)) = (&mut self.stamps.driver, Structures::decode_v4(come))
            {
                driver.on_structures(now, &structures);
                self.say()?;
                continue;
            }
            let Some(number) = come.first_chunk::<4>() else { continue };
            let number = u32::from_be_bytes(*number);
            // The path may make copies; the first one counts.
            if let Some(came @ None) = self.stamps.came.get_mut(number as usize) {
                *came = Some(now);
                first(self, u64::from(number))?;
            }
        }
        Ok(())
    }

    fn over(mut self) -> StreamStamps {
        let elapsed = self.until.now().saturating_since(self.began);
        self.stamps.processor_wait = ThreadTimes::waited_share(self.times.as_ref(), elapsed);
        self.stamps
    }
}

fn put_number(datagram: &mut [u8], number: u64) {
    datagram[..4].copy_from_slice(&(number as u32).to_be_bytes());
}
