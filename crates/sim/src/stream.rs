//! The programs at the ends of a constant-rate stream: what is due when, and the stamps of each message.

use farpath_tcp::{Connection, Endpoint};
use farpath_units::{Bytes, Duration, Instant, Messages};

/// When the messages of a stream were due, written, sent and read; of each list as many as were, without those left out.
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
    /// The numbers of the messages that the sending program left out, for they were no longer worth sending.
    pub expired: Vec<u64>,
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
    /// How long after it was due a message is still worth sending.
    lifetime: Option<Duration>,
    /// Bytes of an answer, and of all of them what the receiving program has written and the sending one has read.
    reply: u64,
    replied: u64,
    reply_read: u64,
}

impl Streaming {
    pub fn new(messages: Messages, reply: Bytes, lifetime: Option<Duration>) -> Streaming {
        let stamps = MessageStamps {
            messages,
            began: None,
            written: Vec::new(),
            sent: Vec::new(),
            arrived: Vec::new(),
            answered: Vec::new(),
            expired: Vec::new(),
        };
        Streaming { stamps, woken_for: 0, lifetime, reply: reply.0, replied: 0, reply_read: 0 }
    }

    /// The program may write at `now`, with so many bytes written before: writes what there is and finds room. Gives the
    /// bytes that were taken.
    pub fn write(&mut self, now: Instant, written: u64, connection: &mut Connection) -> u64 {
        self.stamps.began.get_or_insert(now);
        let taken = match self.lifetime {
            // The program is never held up: what finds no room in the send buffer is written when there is some.
            None => connection.write(self.stamps.due_by(now) * self.stamps.messages.size.0 - written),
            Some(lifetime) => self.write_what_is_worth(now, written, lifetime, connection),
        };
        stamp(&mut self.stamps.written, now, (written + taken) / self.stamps.messages.size.0);
        taken
    }

    /// Message by message: one that has begun is finished, and one that is too old has no beginning.
    fn write_what_is_worth(
        &mut self,
        now: Instant,
        written: u64,
        lifetime: Duration,
        connection: &mut Connection,
    ) -> u64 {
        let size = self.stamps.messages.size.0;
        let mut taken = 0;
        loop {
            let begun = (written + taken) % size;
            if begun == 0 {
                let next = (written + taken) / size + self.stamps.expired.len() as u64;
                if next >= self.stamps.due_by(now) {
                    return taken;
                }
                if self.stamps.due(next).is_some_and(|due| now.saturating_since(due) > lifetime) {
                    self.stamps.expired.push(next);
                    continue;
                }
            }
            let bytes = connection.write(size - begun);
            taken += bytes;
            if bytes < size - begun {
                return taken;
            }
        }
    }

    /// Bytes that will never be written.
    pub fn expired(&self) -> u64 {
        self.stamps.expired.len() as u64 * self.stamps.messages.size.0
    }

    /// When the next message comes, where nobody has been told yet.
    pub fn next_due(&mut self, now: Instant) -> Option<Instant> {
        let next = self.stamps.due_by(now);
        let new = next < self.stamps.messages.count && next > self.woken_for;
        self.woken_for = self.woken_for.max(next);
        if new { self.stamps.due(next) } else { None }
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
    /// From when a message was due until the receiving program had read it; of those that were sent, by their order.
    pub fn lateness(&self, sent: u64) -> Option<Duration> {
        let number = self.numbers().nth(sent as usize)?;
        Some(self.arrived.get(sent as usize)?.saturating_since(self.due(number)?))
    }

    /// The numbers of the messages that were not left out, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        let mut expired = self.expired.iter().copied().peekable();
        (0..self.messages.count).filter(move |number| expired.next_if_eq(number).is_none())
    }
}
