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
use std::sync::{Mutex, PoisonError};

/// The longest that nobody looks whether to stop.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(50);
/// An end that takes in nothing of what it asked for is gone.
const WRITE_WITHIN: Duration = Duration::from_secs(20);

/// Reads messages.
#[derive(Debug)]
pub struct Reader {
    stream: TcpStream,
    lines: Lines,
    clock: Clock,
}

/// Writes messages, each whole.
#[derive(Debug)]
pub struct Writer {
    stream: Mutex<TcpStream>,
    clock: Clock,
}

/// After which a host that cannot be reached is gone, if nobody says otherwise.
pub const SILENCE: Duration = Duration::from_secs(30);

/// Both directions of a connection, by one clock. A host that is gone without a word is noticed after a `silence`, of a
/// second at the least.
///
/// # Errors
/// The kernel refuses what makes a connection notice that its other end is gone.
pub fn both(stream: TcpStream, clock: Clock, silence: Duration) -> io::Result<(Reader, Writer)> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let socket = SockRef::from(&stream);
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
    let other = stream.try_clone()?;
    Ok((Reader { stream, lines: Lines::default(), clock }, Writer { stream: Mutex::new(other), clock }))
}

impl Reader {
    /// What the kernel says of the connection.
    pub fn info(&self) -> Option<TcpInfo> {
        TcpInfo::of(self.stream.as_fd()).ok()
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
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(FrameError::Closed),
                Ok(bytes) => self.lines.push(&buffer[..bytes]),
                Err(error) if is_wait(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(FrameError::Closed),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Writer {
    /// Sends a message.
    ///
    /// # Errors
    /// The connection is over, or the other end takes nothing in.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let line = line(message);
        let mut left = line.as_slice();
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = self.clock.now() + WRITE_WITHIN;
        while !left.is_empty() {
            match stream.write(left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => left = &left[bytes..],
                Err(error) if is_wait(&error) && self.clock.now() < deadline => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
