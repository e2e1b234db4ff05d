//! A transfer that is a constant-rate stream of messages.

use crate::error::ExperimentError;
use crate::reader::{Parameter, Reader, unless, word};
use farpath_units::{Bytes, Duration, Late, Messages, Pace, Playout, Rate};
use toml::Value;

/// The most messages that a flow may have: their stamps are kept until it is over, 24 B each.
pub const MAX_MESSAGES: u64 = 10_000_000;

/// A stream of messages, and how its receiver plays them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The first is due when the sender may first write: once the connection is there, and the request read.
    pub messages: Messages,
    /// How long the answer is that the receiving program gives to each message once it has read it; `None` where it says nothing.
    pub reply: Option<Bytes>,
    /// How long after it was due a message is still worth sending; `None` where each is sent.
    pub lifetime: Option<Duration>,
    /// How they are played.
    pub playout: Playout,
}

/// The keys that make a transfer a stream; `message` is the one that it cannot do without.
const KEYS: [&str; 9] =
    ["message", "reply", "rate", "interval", "duration", "count", "lifetime", "playout", "late"];

impl Parameter for Late {
    const EXPECTED: &'static str = "`stall` or `discard`";
    fn read(value: &Value, at: &crate::Location) -> Result<Late, ExperimentError> {
        word(value, at, &[("stall", Late::Stall), ("discard", Late::Discard)])
    }
}

/// A stream as the file has it: its play-out buffer follows from the path where it is not given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenStream {
    messages: Messages,
    reply: Option<Bytes>,
    lifetime: Option<Duration>,
    buffer: Option<Duration>,
    late: Late,
}

impl WrittenStream {
    /// Reads the keys of `[transfer]` that make it a stream; `None` where there are none.
    pub fn read(transfer: &mut Reader<'_>) -> Result<Option<WrittenStream>, ExperimentError> {
        let given: Vec<&str> = KEYS.into_iter().filter(|key| transfer.has(key)).collect();
        let Some(first) = given.first() else { return Ok(None) };
        if transfer.has("size") {
            let reason =
                format!("`size` makes the transfer a file, and `{first}` a stream: give one of them");
            return Err(transfer.location_of("size").refuse(reason));
        }
        let size: Bytes = transfer.required("message")?;
        if size == Bytes::ZERO {
            return Err(transfer.location_of("message").refuse("there would be nothing to transfer"));
        }
        let pace = pace(transfer)?;
        let messages = Messages { size, pace, count: count(transfer, size, pace)? };
        let reply = transfer.optional("reply")?;
        if reply == Some(Bytes::ZERO) {
            return Err(transfer
                .location_of("reply")
                .refuse("an answer of nothing could not be told from none"));
        }
        let lifetime = match transfer.value("lifetime") {
            Some(value) => unless(value, &transfer.location_of("lifetime"), "none")?,
            None => None,
        };
        if lifetime.is_some() && reply.is_some() {
            let reason = "messages that are left out get no answer: streams with `reply` have all of theirs";
            return Err(transfer.location_of("lifetime").refuse(reason));
        }
        let buffer = match transfer.value("playout") {
            Some(value) => unless(value, &transfer.location_of("playout"), "auto")?,
            None => None,
        };
        Ok(Some(WrittenStream { messages, reply, lifetime, buffer, late: transfer.or("late", Late::Stall)? }))
    }

    /// Over a path of this round-trip time. A player that waits for less than a round trip cannot bridge a single
    /// retransmission; and real clocks and programs are not better than some milliseconds.
    pub fn over(&self, base_rtt: Duration) -> Stream {
        let buffer = self.buffer.unwrap_or(base_rtt.max(LEAST_BUFFER));
        let WrittenStream { messages, reply, lifetime, late, .. } = *self;
        Stream { messages, reply, lifetime, playout: Playout { buffer, late } }
    }
}

const LEAST_BUFFER: Duration = Duration::from_millis(10);

fn pace(transfer: &mut Reader<'_>) -> Result<Pace, ExperimentError> {
    let rate: Option<Rate> = transfer.optional("rate")?;
    let interval: Option<Duration> = transfer.optional("interval")?;
    match (rate, interval) {
        (Some(rate), None) => Ok(Pace::At(rate)),
        (None, Some(Duration::ZERO)) => {
            Err(transfer.location_of("interval").refuse("all messages would be due at once: that is a file"))
        }
        (None, Some(interval)) => Ok(Pace::Every(interval)),
        (Some(_), Some(_)) => Err(transfer
            .location_of("interval")
            .refuse("`rate` says how fast the messages come already: give one of them")),
        (None, None) => Err(transfer.missing("rate", "a rate such as `8 Mbit/s`, or `interval`")),
    }
}

fn count(transfer: &mut Reader<'_>, size: Bytes, pace: Pace) -> Result<u64, ExperimentError> {
    let count: Option<u64> = transfer.optional("count")?;
    let duration: Option<Duration> = transfer.optional("duration")?;
    let (key, count) = match (count, duration) {
        (Some(count), None) => ("count", count),
        (None, Some(duration)) if duration.is_zero() => ("duration", 0),
        (None, Some(duration)) => {
            let endless = Messages { size, pace, count: u64::MAX };
            ("duration", endless.due_by(duration - Duration::from_nanos(1)))
        }
        (Some(_), Some(_)) => {
            let reason = "`duration` says how many messages there are already: give one of them";
            return Err(transfer.location_of("count").refuse(reason));
        }
        (None, None) => return Err(transfer.missing("duration", "a duration such as `20 ms`, or `count`")),
    };
    match count {
        0 => Err(transfer.location_of(key).refuse("there would be nothing to transfer")),
        count if count > MAX_MESSAGES => {
            let reason = format!("{count} messages; the most is {MAX_MESSAGES}");
            Err(transfer.location_of(key).refuse(reason))
        }
        count => Ok(count),
    }
}
