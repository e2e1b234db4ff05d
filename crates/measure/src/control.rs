//! The control connection: lines of it, read until a deadline and written by whoever has something to say.

use crate::protocol::{FrameError, Lines, line};
use farpath_emu::Clock;
use farpath_traffic::TcpInfo;
use farpath_units::{Duration, Instant};
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest that nobody looks whether to stop.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(50);
/// An end that takes in nothing of what it asked for in this time is gone.
const WRITE_WITHIN: Duration = Duration::from_secs(20);

/// Reads messages.
#[derive(Debug)]
pub struct Reader {
    stream: Arc<TcpStream>,
    lines: Lines,
    clock: Clock,
}

/// Writes messages, each whole. From the first one on that cannot be written whole, none is.
#[derive(Debug)]
pub struct Writer<'a> {
    stream: Mutex<Arc<TcpStream>>,
    clock: Clock,
    until: Until<'a>,
    broken: AtomicBool,
}

/// How long an end is waited for that takes nothing in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Until<'a> {
    /// At the latest, whatever it takes in; `None` for ever.
    pub deadline: Option<Instant>,
    /// Not at all, when one of these is set.
    pub stops: &'a [&'a AtomicBool],
}

/// After which a host that cannot be reached is gone, if nobody says otherwise.
pub const SILENCE: Duration = Duration::from_secs(30);

/// Both directions of a connection, by one clock. A host that is gone without a word is noticed after a `silence`, of a
/// second at the least; one that takes in nothing is waited for `until` then.
///
/// # Errors
/// The kernel refuses what makes a connection notice that its other end is gone.
pub fn both<'a>(
    stream: Arc<TcpStream>,
    clock: Clock,
    silence: Duration,
    until: Until<'a>,
) -> io::Result<(Reader, Writer<'a>)> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let socket = SockRef::from(&*stream);
    // Where nothing is under way the kernel asks, from half of the time on.
    let silence = std::time::Duration::from_nanos(silence.as_nanos());
    let whole_seconds = |time: std::time::Duration| time.max(std::time::Duration::from_secs(1));
    let alive = TcpKeepalive::new()
        .with_time(whole_seconds(silence / 2))
        .with_interval(whole_seconds(silence / 6))
        .with_retries(3);
    socket.set_tcp_keepalive(&alive)?;
    // And it gives up what nobody acknowledges, which would otherwise take it a quarter of an hour.
    socket.set_tcp_user_timeout(Some(silence))?;
    let writer =
        Writer { stream: Mutex::new(Arc::clone(&stream)), clock, until, broken: AtomicBool::new(false) };
    Ok((Reader { stream, lines: Lines::default(), clock }, writer))
}

impl Reader {
    /// What the kernel says of the connection.
    pub fn info(&self) -> Option<TcpInfo> {
        TcpInfo::from_socket(self.stream.as_fd()).ok()
    }

    /// The next message.
    ///
    /// # Errors
    /// It is not whole by the `deadline`, `stop` is set, the connection is over, or it is no such message.
    pub fn next<T: DeserializeOwned>(
        &mut self,
        deadline: Instant,
        stops: &[&AtomicBool],
    ) -> Result<T, FrameError> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(message) = self.lines.next()? {
                return Ok(message);
            }
            if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                return Err(FrameError::Stopped);
            }
            if self.clock.now() >= deadline {
                return Err(FrameError::TimedOut);
            }
            match (&*self.stream).read(&mut buffer) {
                Ok(0) => return Err(FrameError::Closed),
                Ok(bytes) => self.lines.push(&buffer[..bytes]),
                Err(error) if is_wait(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(FrameError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Writer<'_> {
    /// Sends a message.
    ///
    /// # Errors
    /// The connection is over, the other end takes nothing in, or nobody is to wait for it any more.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        // Behind half a line nothing would be understood; and who has not read one for so long reads none of the others.
        if self.broken.load(Ordering::Relaxed) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let sent = self.write(&stream, &line(message));
        if sent.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
        sent
    }

    /// Set when a message could not be sent.
    pub fn broken(&self) -> &AtomicBool {
        &self.broken
    }

    fn write(&self, mut stream: &TcpStream, mut left: &[u8]) -> io::Result<()> {
        let last = self.until.deadline.unwrap_or(Instant::MAX);
        let mut give_up_at = self.clock.now() + WRITE_WITHIN;
        loop {
            match stream.write(left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    left = &left[bytes..];
                    give_up_at = self.clock.now() + WRITE_WITHIN;
                }
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
            if left.is_empty() {
                return Ok(());
            }
            let stopped = self.until.stops.iter().any(|stop| stop.load(Ordering::Relaxed));
            if stopped || self.clock.now() >= give_up_at.min(last) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
