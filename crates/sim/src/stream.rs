//! The programs at the ends of a constant-rate stream: what is due when, and the stamps of each message.

use farpath_tcp::{Connection, Endpoint};
use farpath_units::{Bytes, Duration, Instant, Messages};

/// When the messages of a stream were due, written, sent and read; of each list as many as were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageStamps {
    /// The stream.
    pub messages: Messages,
    /// When the first message was due: the sender might write. `None` where it never might.
    pub began: Option<Instant>,
    /// When TCP had taken the last byte of each.
    pub written: Vec<Instant>,
    /// When the first byte of each left TCP.
    pub sent: Vec<Instant>,
    /// When the receiving program had read the last byte of each.
    pub arrived: Vec<Instant>,
    /// When the sending program had read the last byte of the answer to each.
    pub answered: Vec<Instant>,
}

impl MessageStamps {
    /// When a message was due.
    pub fn due(&self, number: u64) -> Option<Instant> {
        Some(self.began? + self.messages.due_after(number))
    }

    /// How many were due by then.
    pub fn due_by(&self, now: Instant) -> u64 {
        self.began.map_or(0, |began| match now < began {
            true => 0,
            false => self.messages.due_by(now - began),
        })
    }
}

/// A stream while it runs.
#[derive(Debug)]
pub(crate) struct Streaming {
    stamps: MessageStamps,
    /// The next message for which the program has asked to be woken.
    woken_for: u64,
    /// Bytes of an answer, and of all of them what the receiving program has written and the sending one has read.
    reply: u64,
    replied: u64,
    reply_read: u64,
}

impl Streaming {
    pub fn new(messages: Messages, reply: Bytes) -> Streaming {
        let stamps = MessageStamps {
            messages,
            began: None,
            written: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            answered: Vec::new(),
        };
        Streaming { stamps, woken_for: 0, reply: reply.0, replied: 0, reply_read: 0 }
    }

    /// The program may write at `now`: how many bytes of the stream there are by then.
    pub fn ready(&mut self, now: Instant) -> u64 {
        self.stamps.began.get_or_insert(now);
        self.stamps.due_by(now) * self.stamps.messages.size.0
    }

    /// When the next message comes, where nobody has been told yet.
    pub fn next_due(&mut self, now: Instant) -> Option<Instant> {
        let next = self.stamps.due_by(now);
        let new = next < self.stamps.messages.count && next > self.woken_for;
        self.woken_for = self.woken_for.max(next);
        if new { self.stamps.due(next) } else { None }
    }

    /// TCP has taken so many bytes of the stream.
    pub fn note_written(&mut self, now: Instant, bytes: u64) {
        let whole = bytes / self.stamps.messages.size.0;
        stamp(&mut self.stamps.written, now, whole);
    }

    /// So many bytes of the stream have left TCP.
    pub fn note_sent(&mut self, now: Instant, bytes: u64) {
        let begun = bytes.div_ceil(self.stamps.messages.size.0);
        stamp(&mut self.stamps.sent, now, begun);
    }

    /// The receiving program has read so many bytes of the stream.
    pub fn note_read(&mut self, now: Instant, bytes: u64) {
        let whole = bytes / self.stamps.messages.size.0;
        stamp(&mut self.stamps.arrived, now, whole);
    }

    /// The receiving program answers what it has read, as far as TCP takes it; whether that is not all.
    pub fn answer(&mut self, connection: &mut Connection) -> bool {
        let due = self.stamps.arrived.len() as u64 * self.reply;
        self.replied += connection.write(due - self.replied);
        self.replied < due
    }

    /// The sending program reads the answers.
    pub fn read_answers(&mut self, now: Instant, connection: &mut Connection) {
        if self.reply == 0 {
            return;
        }
        self.reply_read += connection.read(u64::MAX);
        stamp(&mut self.stamps.answered, now, self.reply_read / self.reply);
    }

    /// Whether the receiving program has written all of its answers.
    pub fn has_answered(&self) -> bool {
        self.replied == self.all_answers()
    }

    /// Whether the sending program has read all of them.
    pub fn has_answers(&self) -> bool {
        self.reply_read == self.all_answers()
    }

    fn all_answers(&self) -> u64 {
        self.stamps.messages.count * self.reply
    }

    pub fn into_stamps(self) -> MessageStamps {
        self.stamps
    }
}

fn stamp(stamps: &mut Vec<Instant>, now: Instant, count: u64) {
    if stamps.len() as u64 != count {
        stamps.resize(count as usize, now);
    }
}

impl MessageStamps {
    /// From when a message was due until the receiving program had read it.
    pub fn lateness(&self, number: u64) -> Option<Duration> {
        Some(self.arrived.get(number as usize)?.saturating_since(self.due(number)?))
    }
}
