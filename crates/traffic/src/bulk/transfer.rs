//! The transfer itself: a socket that never blocks, and waiting for it, for the next sample and for the deadline.

mod establish;
mod exchange;
mod messages;
mod pieces;

pub use establish::MOST_SILENT;

use super::content::{self, CHUNK};
use super::{BulkEnd, End, EndReport, Exchange, MessageStamps, Opening, Prepared, Role, Sample};
use crate::counters::ThreadTimes;
use crate::info::{State, TcpInfo};
use crate::options;
use crate::wait::{self, PromptTimers};
use farpath_tcp::pattern;
use farpath_units::{Bytes, Duration, Instant, Rate};
use rustix::event::PollFlags;
use socket2::Socket;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a connection that closes is looked at. TCP's own end is no event that `poll` knows.
const CLOSED_EVERY: Duration = Duration::from_millis(2);

pub fn run(
    prepared: Prepared,
    epoch: std::time::Instant,
    stop: &AtomicBool,
    sampled: &mut dyn FnMut(&Sample),
) -> EndReport {
    let _prompt = PromptTimers::new();
    let times = ThreadTimes::read().ok();
    let Prepared { end: asked, socket, stop_every, .. } = prepared;
    let mut transfer = Transfer {
        begun: wait::now(epoch).max(asked.start),
        times,
        asked,
        socket,
        epoch,
        stop,
        stop_every,
        sampled,
        next_sample: None,
        connected_at: None,
        info_at_connect: None,
        first_byte_at: None,
        finished_at: None,
        bytes: 0,
        request_bytes: 0,
        exchanged: Vec::new(),
        updates: 0,
        replied: 0,
        stamps: None,
        reads_late: false,
    };
    let end = match transfer.transfer() {
        Ok(()) => End::Completed,
        Err(end) => end,
    };
    transfer.report(end)
}

/// Whether an error comes before or after the handshake: it decides what a time-out is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    Established,
}

struct Transfer<'a> {
    /// When it began, and what its thread had had of the processors by then.
    begun: Instant,
    times: Option<ThreadTimes>,
    asked: BulkEnd,
    socket: Socket,
    epoch: std::time::Instant,
    stop: &'a AtomicBool,
    stop_every: Duration,
    sampled: &'a mut dyn FnMut(&Sample),
    next_sample: Option<Instant>,
    connected_at: Option<Instant>,
    info_at_connect: Option<TcpInfo>,
    first_byte_at: Option<Instant>,
    finished_at: Option<Instant>,
    bytes: u64,
    request_bytes: u64,
    exchanged: Vec<Exchange>,
    /// Bytes of updates of the program's window that were written, or read.
    updates: u64,
    /// Bytes of answers to messages that were written, or read.
    replied: u64,
    /// Of a stream, what this end has seen of its messages.
    stamps: Option<MessageStamps>,
    /// What is there is left there until it is as much as was asked for.
    reads_late: bool,
}

impl Transfer<'_> {
    fn transfer(&mut self) -> Result<(), End> {
        match self.asked.opening {
            Opening::Connect => self.connect()?,
            Opening::Listen => self.accept()?,
        }
        let now = self.now();
        self.connected_at = Some(now);
        self.info_at_connect = TcpInfo::from_socket(self.socket.as_fd()).ok();
        self.next_sample = self.asked.sample_every.map(|_| now);
        if self.asked.opening == Opening::Connect {
            self.show_token()?;
        }
        if self.asked.exchanges > 1 {
            return self.exchange();
        }
        let request = self.request();
        match self.asked.role {
            Role::Sender => {
                self.read_request(request)?;
                self.write_file()
            }
            Role::Receiver => {
                self.write_all(request)?;
                self.read_file()
            }
        }
    }

    /// What is asked for before the data come.
    fn request(&self) -> u64 {
        let requests = match self.asked.role {
            Role::Receiver => self.asked.opening == Opening::Connect,
            Role::Sender => self.asked.opening == Opening::Listen,
        };
        if requests { self.asked.request.0 } else { 0 }
    }

    fn now(&self) -> Instant {
        wait::now(self.epoch)
    }

    fn write_file(&mut self) -> Result<(), End> {
        match self.asked.messages {
            Some(_) => self.write_messages()?,
            None if self.asked.writing.is_plain() => self.write_all(self.asked.size.0)?,
            None => self.write_pieces()?,
        }
        self.close_written()
    }

    /// Says that nothing more comes, and waits until the other end has read it all.
    fn close_written(&mut self) -> Result<(), End> {
        self.socket.shutdown(Shutdown::Write).map_err(|error| self.failed(Stage::Established, error))?;
        // The receiver closes when it has read all: until then data may have to be sent again.
        let mut byte = [0; 1];
        match self.read(&mut byte)? {
            0 => {
                self.finished_at = Some(self.now());
                Ok(())
            }
            got => Err(End::WrongLength { expected: 0, got: got as u64 }),
        }
    }

    /// Writes the first `size` bytes of the stream.
    fn write_all(&mut self, size: u64) -> Result<(), End> {
        let before = self.bytes;
        let mut written = 0;
        while written < size {
            let bytes = self.send(content::next(written, size))?;
            written += bytes;
            if self.asked.role == Role::Sender {
                self.bytes = before + written;
                self.first_byte_at = self.first_byte_at.or_else(|| Some(wait::now(self.epoch)));
            } else {
                self.request_bytes += bytes;
            }
        }
        Ok(())
    }

    /// Hands over some of `bytes`, waiting for room; gives how many were taken.
    fn send(&mut self, bytes: &[u8]) -> Result<u64, End> {
        loop {
            self.look()?;
            match self.socket.send_with_flags(bytes, libc::MSG_NOSIGNAL) {
                Ok(taken) => return Ok(taken as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(Stage::Established, error)),
            }
        }
    }

    fn read_request(&mut self, size: u64) -> Result<(), End> {
        let mut buffer = vec![0; CHUNK.min(size as usize)];
        let mut read = 0;
        while read < size {
            let room = buffer.len().min((size - read) as usize);
            let bytes = self.read(&mut buffer[..room])?;
            if bytes == 0 {
                return Err(End::WrongLength { expected: size, got: read });
            }
            verify(read, &buffer[..bytes])?;
            read += bytes as u64;
            self.request_bytes += bytes as u64;
        }
        Ok(())
    }

    fn read_file(&mut self) -> Result<(), End> {
        let size = self.asked.size.0;
        let mut pace = Pace::new(self.asked.read_rate, &self.socket, self.now());
        let mut buffer = vec![0; CHUNK];
        let low_water = self.asked.low_water.filter(|_| self.asked.read_rate.is_none());
        let mut waits_for = 0;
        loop {
            let room = match &mut pace {
                Pace::AtOnce => buffer.len(),
                Pace::Never => loop {
                    self.wait(PollFlags::empty(), None)?;
                },
                Pace::At { .. } => self.paced(&mut pace)?.min(buffer.len()),
            };
            let bytes = self.read(&mut buffer[..room])?;
            let now = self.now();
            if bytes == 0 {
                if self.bytes < size {
                    return Err(End::WrongLength { expected: size, got: self.bytes });
                }
                // An empty file: its end is all there is of it.
                self.finished_at = Some(now);
                break;
            }
            self.first_byte_at = self.first_byte_at.or(Some(now));
            verify(self.bytes, &buffer[..bytes])?;
            self.bytes += bytes as u64;
            self.stamp(now);
            self.say_what_is_read()?;
            self.answer()?;
            if self.bytes > size {
                return Err(End::WrongLength { expected: size, got: self.bytes });
            }
            if self.bytes == size {
                self.finished_at = Some(now);
                break;
            }
            if let Some(low_water) = low_water
                && waits_for != self.low_water(low_water.0)
            {
                waits_for = self.low_water(low_water.0);
                options::set_low_water(self.socket.as_fd(), waits_for)?;
                self.reads_late = true;
            }
        }
        // All has been read, whatever becomes of the close.
        let _ = self.socket.shutdown(Shutdown::Write);
        Ok(())
    }

    /// Waits until something is there and the time that reading it takes is over; gives how much that is.
    fn paced(&mut self, pace: &mut Pace) -> Result<usize, End> {
        let Pace::At { rate, chunk, free_at } = pace else { return Ok(CHUNK) };
        let mut waited = false;
        loop {
            let there = rustix::io::ioctl_fionread(&self.socket).map_err(io::Error::from)?;
            let begun = if waited { self.now() } else { (*free_at).min(self.now()) };
            if there > 0 {
                let bytes = there.min(*chunk);
                let done = begun + rate.time_to_send(Bytes(bytes));
                while self.now() < done {
                    self.wait(PollFlags::empty(), Some(done))?;
                }
                *free_at = done;
                return Ok(bytes as usize);
            }
            let found = self.wait(PollFlags::IN, None)?;
            waited = true;
            // Nothing to read and yet readable is the end of the stream, or an error: reading says which.
            let there = rustix::io::ioctl_fionread(&self.socket).map_err(io::Error::from)?;
            if there == 0 && !found.is_empty() {
                return Ok(1);
            }
        }
    }

    /// Reads what is there, waiting for it; nothing at the end of the stream.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, End> {
        loop {
            self.look()?;
            match (&self.socket).read(buffer) {
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    while self.wait(PollFlags::IN, None)?.is_empty() && self.reads_late {}
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(Stage::Established, error)),
            }
        }
    }

    /// Waits for one of `events`, or for `until`; gives what came. It may come back early with nothing.
    fn wait(&mut self, events: PollFlags, until: Option<Instant>) -> Result<PollFlags, End> {
        let now = self.look()?;
        let next = self.next_sample.unwrap_or(Instant::MAX).min(until.unwrap_or(Instant::MAX));
        let longest = next.min(self.asked.deadline).saturating_since(now).min(self.stop_every);
        let found = wait::ready(self.socket.as_fd(), events, longest)?;
        self.look()?;
        Ok(found)
    }

    /// Waits until the socket says that it has room, as a write that blocks would: with a third of its buffer free
    /// (`sk_stream_is_writeable()`). A sample wakes this program earlier, and must not have it write: what is measured would be another
    /// sender.
    fn wait_for_room(&mut self) -> Result<(), End> {
        while self.wait(PollFlags::OUT, None)?.is_empty() {}
        Ok(())
    }

    /// Sees to what time brings: the end, and the next sample.
    fn look(&mut self) -> Result<Instant, End> {
        let now = self.now();
        if let Some(over) = self.is_over(now) {
            return Err(over);
        }
        if let (Some(due), Some(every)) = (self.next_sample, self.asked.sample_every)
            && due <= now
        {
            let info = TcpInfo::from_socket(self.socket.as_fd())?;
            (self.sampled)(&Sample { at: now, bytes: Bytes(self.bytes), info });
            // A thread that came late does not catch up: it takes the next in its turn.
            let mut next = due + every.max(Duration::from_micros(1));
            if next <= now {
                next = now + every;
            }
            self.next_sample = Some(next);
        }
        Ok(now)
    }

    fn is_over(&self, now: Instant) -> Option<End> {
        if self.stop.load(Ordering::Relaxed) {
            Some(End::Stopped)
        } else if now >= self.asked.deadline {
            Some(End::Deadline)
        } else {
            None
        }
    }

    /// What an error of the socket is for the transfer.
    fn failed(&self, stage: Stage, error: io::Error) -> End {
        // Both ends stop together: the reset that the other one sent is no news.
        if let Some(over) = self.is_over(self.now()) {
            return over;
        }
        match (error.raw_os_error(), stage) {
            (Some(libc::ETIMEDOUT), Stage::Connecting) => End::ConnectTimedOut,
            (Some(libc::ETIMEDOUT), Stage::Established) => End::TimedOut,
            (Some(libc::ECONNREFUSED), Stage::Connecting) => End::Refused,
            // A write after the reset has been seen says EPIPE.
            (Some(libc::ECONNRESET | libc::EPIPE | libc::ECONNREFUSED), _) => End::Reset,
            (
                Some(
                    libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN | libc::ENONET | libc::ENETDOWN,
                ),
                _,
            ) => End::Unreachable(error),
            _ => End::Failed(error),
        }
    }

    fn report(mut self, mut end: End) -> EndReport {
        let processor_wait = self.processor_wait();
        let ended_at = self.finished_at.filter(|_| end.is_completed()).unwrap_or_else(|| self.now());
        // A listener without a connection has nothing to say of one.
        let connection = self.asked.opening == Opening::Connect || self.connected_at.is_some();
        let info = connection.then(|| TcpInfo::from_socket(self.socket.as_fd()).ok()).flatten();
        if end.is_completed()
            && let Err(surplus) = self.close(ended_at)
        {
            end = surplus;
        }
        // A connection that is closed stays so; any other is reset, and does not outlive its owner.
        let _ = self.socket.set_linger(Some(std::time::Duration::ZERO));
        EndReport {
            end,
            ended_at,
            connected_at: self.connected_at,
            first_byte_at: self.first_byte_at,
            finished_at: self.finished_at,
            bytes: Bytes(self.bytes),
            request_bytes: Bytes(self.request_bytes),
            info_at_connect: self.info_at_connect,
            info,
            exchanged: self.exchanged,
            messages: self.stamps,
            processor_wait,
        }
    }

    /// The share of its time in which it waited for a processor.
    fn processor_wait(&self) -> Option<f64> {
        ThreadTimes::waited_share(self.times.as_ref(), self.now().saturating_since(self.begun))
    }

    /// Waits until both FINs are acknowledged. Only data after the end is an error: the transfer was complete.
    fn close(&mut self, ended_at: Instant) -> Result<(), End> {
        let until = (ended_at + self.asked.close_within).min(self.asked.deadline);
        let mut byte = [0; 1];
        self.next_sample = None;
        while !self.stop.load(Ordering::Relaxed) && self.now() < until {
            if matches!((&self.socket).read(&mut byte), Ok(1)) {
                let expected = if self.asked.role == Role::Receiver { self.bytes } else { 0 };
                return Err(End::WrongLength { expected, got: expected + 1 });
            }
            match TcpInfo::from_socket(self.socket.as_fd()) {
                Ok(info) if !matches!(info.state, State::Closed | State::TimeWait) => {}
                _ => break,
            }
            wait::ready(self.socket.as_fd(), PollFlags::empty(), CLOSED_EVERY)?;
        }
        Ok(())
    }
}

/// How a receiver reads.
enum Pace {
    AtOnce,
    Never,
    At {
        rate: Rate,
        chunk: u64,
        /// When the last chunk was read: data that waits is begun then, however late the thread woke.
        free_at: Instant,
    },
}

impl Pace {
    fn new(bytes_per_s: Option<u64>, socket: &Socket, now: Instant) -> Pace {
        let Some(bytes_per_s) = bytes_per_s else { return Pace::AtOnce };
        let Some(rate) = Rate::from_bit_per_s(bytes_per_s.saturating_mul(8)) else { return Pace::Never };
        let mss = TcpInfo::from_socket(socket.as_fd()).map_or(0, |info| info.advmss.0);
        Pace::At { rate, chunk: mss.max(1), free_at: now }
    }
}

fn verify(offset: u64, bytes: &[u8]) -> Result<(), End> {
    match pattern::first_mismatch(offset, bytes) {
        Some(offset) => Err(End::Mismatch { offset }),
        None => Ok(()),
    }
}
