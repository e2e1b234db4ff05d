//! Datagrams that come back, for the round trip, its variation, and which way those went that did not come back.

use super::format::{self, Head};
use super::{DatagramSocket, Until};
use crate::wait::PromptTimers;
use farpath_units::{Bytes, Duration, Instant, Rate};
use rustix::event::PollFlags;
use std::collections::BTreeSet;
use std::io;

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct Echo {
    /// How many.
    pub count: u32,
    /// Bytes of each, without IP and UDP headers.
    pub size: usize,
    /// How far apart.
    pub interval: Duration,
    /// How long after the last one answers are waited for, at the least; twice the longest round trip where that is
    /// more.
    pub linger: Duration,
}

/// One that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// Its place among those that were sent, from 0.
    pub number: u32,
    /// When it was sent.
    pub sent_at: Instant,
    /// When it had arrived, by the other end's clock.
    pub arrived_at: Instant,
    /// When it was back.
    pub back_at: Instant,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Echoed {
    /// How many were sent.
    pub sent: u32,
    /// Those that came back, each once, as they came.
    pub answered: Vec<Answered>,
    /// How many the other end had counted, as far as its answers tell.
    pub arrived: u32,
    /// Answers that came again.
    pub duplicates: u32,
    /// How much later than due each was sent.
    pub late: Vec<Duration>,
}

/// Sends them on time, whatever comes back.
///
/// # Errors
/// The kernel refuses to send or to receive.
pub fn echo(socket: &mut DatagramSocket, echo: Echo, until: Until<'_>) -> io::Result<Echoed> {
    let _prompt = PromptTimers::new();
    let mut datagram = format::blank(socket.token, echo.size);
    let mut buffer = [0; format::MOST + 1];
    let mut echoed = Echoed::default();
    let mut seen = BTreeSet::new();
    let mut longest = Duration::ZERO;
    let begun = until.now();
    loop {
        let now = until.now();
        let over = echoed.sent == echo.count;
        let due = begun + echo.interval * u64::from(echoed.sent);
        let grace = echo.linger.max(longest + longest);
        if until.is_over(now) || over && (seen.len() as u32 == echo.count || now >= due + grace) {
            return Ok(echoed);
        }
        if !over && now >= due {
            let head = Head { number: echoed.sent, sent_at: now, arrived_at: Instant::ZERO, count: 0 };
            format::put_head(&mut datagram, head);
            if socket.send(&datagram)? {
                echoed.sent += 1;
                echoed.late.push(until.now().saturating_since(due));
            }
        }
        while let Some(len) = socket.receive(&mut buffer)? {
            let back_at = until.now();
            let head = format::head(&buffer[..len]);
            // An answer to what was never sent is none.
            if head.number >= echoed.sent || head.count == 0 {
                continue;
            }
            echoed.arrived = echoed.arrived.max(head.count.min(echoed.sent));
            if seen.insert(head.number) {
                longest = longest.max(back_at.saturating_since(head.sent_at));
                let Head { number, sent_at, arrived_at, .. } = head;
                echoed.answered.push(Answered { number, sent_at, arrived_at, back_at });
            } else {
                echoed.duplicates += 1;
            }
        }
        let next = if echoed.sent < echo.count {
            begun + echo.interval * u64::from(echoed.sent)
        } else {
            due + grace
        };
        socket.wait(PollFlags::IN, next.saturating_since(until.now()))?;
    }
}

/// So much may be answered ahead of a rate: programs do not send evenly.
const AHEAD: Duration = Duration::from_millis(100);

/// What has been sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answers {
    /// Different datagrams that had come.
    pub arrived: u32,
    /// Datagrams that were sent back.
    pub sent: u64,
}

/// Sends back datagrams of `size` bytes that come. Numbers are below `most`, and twice as many are answered at the most:
/// the path may have doubled some, and nobody gets more than it asked for. What comes faster than `rate` of IP packets,
/// over a tenth of a second, is not answered.
///
/// # Errors
/// The kernel refuses to send or to receive.
pub fn answer(
    socket: &mut DatagramSocket,
    most: u32,
    size: usize,
    rate: Option<Rate>,
    until: Until<'_>,
) -> io::Result<Answers> {
    let _prompt = PromptTimers::new();
    let mut buffer = [0; format::MOST + 1];
    let mut seen = BTreeSet::new();
    let mut answers = Answers::default();
    let headers = super::headers(socket.local().ip());
    // When all that was answered would have been sent at that rate.
    let mut busy_until = Instant::ZERO;
    while !until.is_over(until.now()) {
        while let Some(len) = socket.receive(&mut buffer)? {
            let arrived_at = until.now();
            let head = format::head(&buffer[..len]);
            if len != size || head.number >= most || answers.sent >= 2 * u64::from(most) {
                continue;
            }
            if let Some(rate) = rate {
                if busy_until > arrived_at + AHEAD {
                    continue;
                }
                busy_until = busy_until.max(arrived_at) + rate.time_to_send(Bytes(len as u64) + headers);
            }
            answers.sent += 1;
            seen.insert(head.number);
            answers.arrived = seen.len() as u32;
            format::put_head(&mut buffer[..len], Head { arrived_at, count: answers.arrived, ..head });
            // Without room the answer is lost, as it might be anywhere else on its way.
            let _ = socket.send(&buffer[..len])?;
        }
        socket.wait(PollFlags::IN, super::STOP_EVERY)?;
    }
    Ok(answers)
}
