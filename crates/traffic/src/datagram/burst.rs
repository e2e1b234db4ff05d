//! Datagrams one behind the other, as fast as the host sends: at the narrowest link they are spaced by its rate, and what
//! its queue does not hold is lost.

use super::format::{self, Head};
use super::{DatagramSocket, Until};
use crate::wait::PromptTimers;
use farpath_units::{Bytes, Duration, Instant, Rate};
use rustix::event::PollFlags;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// One that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its place in the burst, from 0.
    pub number: u32,
    /// When it was sent, by the sender's clock.
    pub sent_at: Instant,
    /// When it arrived, by the receiver's.
    pub arrived_at: Instant,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BurstSent {
    /// How many.
    pub sent: u32,
    /// How long that took.
    pub within: Duration,
}

/// What arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// In the order in which they came, each once.
    pub arrivals: Vec<Arrival>,
    /// Datagrams that found no room at the receiver: the path did not lose them.
    pub dropped_here: u32,
}

/// How often an end that receives says who it is, until the first datagram has come.
const KNOCK_EVERY: Duration = Duration::from_millis(20);

/// Sends `count` datagrams of `size` bytes, no faster than `rate` of IP packets. An end that waits to be told of its peer
/// first waits for one from there.
///
/// # Errors
/// The kernel refuses to send or to receive.
pub fn send_burst(
    socket: &mut DatagramSocket,
    count: u32,
    size: usize,
    rate: Option<Rate>,
    until: Until<'_>,
) -> io::Result<BurstSent> {
    let mut buffer = [0; format::MOST + 1];
    while let super::Peer::At(_) = socket.peer {
        if until.is_over(until.now()) {
            return Ok(BurstSent::default());
        }
        if socket.receive(&mut buffer)?.is_none() {
            socket.wait(PollFlags::IN, super::STOP_EVERY)?;
        }
    }
    let _prompt = PromptTimers::new();
    let mut datagram = format::blank(socket.token, size);
    let packet = Bytes(size as u64) + super::headers(socket.local().ip());
    let begun = until.now();
    let mut sent = 0;
    while sent < count {
        let now = until.now();
        if until.is_over(now) {
            break;
        }
        let due =
            begun + rate.map_or(Duration::ZERO, |rate| rate.time_to_send(Bytes(packet.0 * u64::from(sent))));
        if now < due {
            socket.wait(PollFlags::empty(), due.saturating_since(now))?;
            continue;
        }
        format::put_head(
            &mut datagram,
            Head { number: sent, sent_at: now, arrived_at: Instant::ZERO, count: 0 },
        );
        if socket.send(&datagram)? {
            sent += 1;
        } else {
            socket.wait(PollFlags::OUT, super::STOP_EVERY)?;
        }
    }
    Ok(BurstSent { sent, within: until.now().saturating_since(begun) })
}

/// Takes in a burst of at most `count` until all have come; or, when `sent` says that no more is sent, until `quiet` has
/// passed with nothing coming.
///
/// # Errors
/// The kernel refuses to send or to receive.
pub fn receive_burst(
    socket: &mut DatagramSocket,
    count: u32,
    sent: &AtomicBool,
    quiet: Duration,
    until: Until<'_>,
) -> io::Result<Received> {
    let knock = format::blank(socket.token, format::LEAST);
    let mut buffer = [0; format::MOST + 1];
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut seen = vec![false; count as usize];
    let mut knocked: Option<Instant> = None;
    let mut last = None;
    loop {
        let now = until.now();
        if until.is_over(now) || arrivals.len() == count as usize {
            break;
        }
        if sent.load(Ordering::Relaxed) && now.saturating_since(*last.get_or_insert(now)) >= quiet {
            break;
        }
        // Lost ones are repeated; who began is known already.
        if arrivals.is_empty()
            && matches!(socket.peer, super::Peer::Known(_))
            && knocked.is_none_or(|at| now.saturating_since(at) >= KNOCK_EVERY)
        {
            socket.send(&knock)?;
            knocked = Some(now);
        }
        while let Some(len) = socket.receive(&mut buffer)? {
            let arrived_at = until.now();
            let Head { number, sent_at, .. } = format::head(&buffer[..len]);
            last = Some(arrived_at);
            if let Some(seen) = seen.get_mut(number as usize)
                && !std::mem::replace(seen, true)
            {
                arrivals.push(Arrival { number, sent_at, arrived_at });
            }
        }
        socket.wait(PollFlags::IN, super::STOP_EVERY)?;
    }
    Ok(Received { arrivals, dropped_here: socket.dropped_here().unwrap_or(0) })
}
