//! Sequence numbers: which packets can be of the connection that they name.

use super::flow::{ANSWERED, Flow, FlowKey, NUMBERED, SEEN};
use super::port::Port;

/// So many bytes before and behind what was seen a sequence number can be of its connection: one guess in 2048 is.
pub const NUMBER_WINDOW: u32 = 1 << 20;

/// The numbers of TCP that a packet shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// The sequence number behind it, its SYN and not its payload counted.
    pub next_seq: Option<u32>,
    /// What it acknowledges.
    pub acknowledged: Option<u32>,
}

/// Whether a packet can be of the connection that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// One of its numbers is near what the connection has shown.
    Near,
    /// None of them is.
    Foreign,
    /// The flow is not known, or shows no numbers.
    Unknown,
}

fn near(number: Option<u32>, seen: u32) -> bool {
    number.is_some_and(|number| number.wrapping_sub(seen).wrapping_add(NUMBER_WINDOW) <= 2 * NUMBER_WINDOW)
}

/// Whether `number` comes behind `seen`.
fn is_after(number: u32, seen: u32) -> bool {
    (1..1 << 31).contains(&number.wrapping_sub(seen))
}

impl Flow {
    /// Whether these are near its own sequence number and what it acknowledges; `None` where neither is known.
    fn fits(&self, seq: Option<u32>, acknowledged: Option<u32>) -> Option<bool> {
        let (numbered, answered) = (self.has(NUMBERED), self.has(ANSWERED));
        (numbered || answered)
            .then(|| numbered && near(seq, self.seq) || answered && near(acknowledged, self.acknowledged))
    }

    /// A packet of it: what comes next is near that.
    pub fn follow(&mut self, numbers: Numbers) {
        if self.fits(numbers.next_seq, numbers.acknowledged) != Some(true) {
            return;
        }
        if let Some(seq) = numbers.next_seq
            && (!self.has(NUMBERED) || is_after(seq, self.seq))
        {
            self.begin_at(Some(seq));
        }
        if let Some(acknowledged) = numbers.acknowledged
            && self.has(SEEN)
            && is_after(acknowledged, self.acknowledged)
        {
            self.acknowledged = acknowledged;
        }
    }

    /// Its own sequence number is this.
    pub fn begin_at(&mut self, seq: Option<u32>) {
        if let Some(seq) = seq {
            self.set(NUMBERED);
            self.seq = seq;
        }
    }
}

impl Port {
    /// Whether a packet that shows these numbers, and goes out by this port where `sent`, can be of this port's flow. `other` is the port that it
    /// comes in by, or goes out by: what that knows of the other way counts too, but nothing that is not proven where this flow is.
    ///
    /// One number is enough: a sender's own packets bring one on step by step, whatever the other does. A long way behind
    /// lies the sequence number of a signal (what its peer has acknowledged), a long way ahead an acknowledgement that a repair has
    /// let go.
    pub fn fit(&self, other: &Port, key: &FlowKey, numbers: Numbers, sent: bool) -> Fit {
        let back = Numbers { next_seq: numbers.acknowledged, acknowledged: numbers.next_seq };
        let (ours, theirs) = if sent { (numbers, back) } else { (back, numbers) };
        let of = |port: &Port, numbers: Numbers| {
            let flow = port.table.get(port.table.find(key)?);
            Some((flow.fits(numbers.next_seq, numbers.acknowledged), flow.has(SEEN)))
        };
        let (own, proven) = of(self, ours).unwrap_or((None, false));
        let others = of(other, theirs).filter(|&(_, seen)| seen || !proven).and_then(|(fits, _)| fits);
        match (own, others) {
            (None, None) => Fit::Unknown,
            (Some(true), _) | (_, Some(true)) => Fit::Near,
            _ => Fit::Foreign,
        }
    }

    /// Whether a flow is known whose numbers were shown by both ends: it has acknowledged what came with its answer.
    pub fn is_proven(&self, key: &FlowKey) -> bool {
        self.table.find(key).is_some_and(|slot| self.table.get(slot).has(SEEN))
    }

    /// What names a flow and does not fit its numbers is passed on unheard.
    pub fn pass_unheard(&mut self) {
        self.counters.unknown += 1;
    }
}
