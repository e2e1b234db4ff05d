//! How data was sent again: in how many repairs, in what runs, and what of it was for nothing.

use crate::packet::TcpPacket;
use serde::Serialize;
use std::collections::BTreeSet;

/// Packets of a repair that are known again; those beyond count as sent again once.
const MOST_TOLD_APART: usize = 4096;

/// What is told of the data that was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Losses {
    /// Repairs: each from the first sign of a loss until all that was sent before is acknowledged.
    pub repairs: u64,
    /// Of these, begun by a timeout or a probe (RFC 8985 §7): nothing had told of the loss.
    pub by_timeout: u64,
    /// Of the latter, for the last three segments in flight, or fewer.
    pub tail: u64,
    /// Of those by a timeout, spurious: an acknowledgment of what was sent first came behind it (Eifel, RFC 3522).
    pub spurious: u64,
    /// Packets of the largest repair.
    pub largest_repair: u64,
    /// Runs: packets sent again whose data lies side by side. Losses that fall by chance have as many runs as packets, losses together fewer.
    pub runs: u64,
    /// Packets of the longest run.
    pub longest_run: u64,
    /// Packets sent again that had been sent again before in the same repair: that was lost, too.
    pub lost_retransmissions: u64,
    /// Packets that arrived twice, as the receiver told (D-SACK, RFC 2883).
    pub dsacks: u64,
}

/// How a repair began.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sign {
    /// Duplicate acknowledgments or SACK told of a loss.
    Told,
    /// Nothing did; so many segments had been sent behind the first one that is sent again.
    Timeout { behind: u64 },
}

/// What is known of the repair that goes on, and what was of those before.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    pub losses: Losses,
    packets: u64,
    run: u64,
    run_end: u64,
    /// Where what it sent again begins.
    begins: BTreeSet<u64>,
    /// Its first timestamp, where it began by a timeout: what echoes an older one was let go by what had been sent first.
    first_stamp: Option<u32>,
}

impl Repairs {
    /// Places that it holds.
    pub fn held(&self) -> usize {
        self.begins.len()
    }

    /// A repair begins with this packet; the one before has ended.
    pub fn begin(&mut self, packet: &TcpPacket, sign: Sign) {
        self.losses.repairs += 1;
        if let Sign::Timeout { behind } = sign {
            self.losses.by_timeout += 1;
            self.losses.tail += u64::from(behind < 3);
            self.first_stamp = packet.timestamps.map(|(own, _)| own);
        }
    }

    /// Data from `from` on is sent again; where it may hold more, it will know it again.
    pub fn sent_again(&mut self, from: u64, payload: u64, may_hold: bool) {
        let losses = &mut self.losses;
        self.packets += 1;
        losses.largest_repair = losses.largest_repair.max(self.packets);
        if self.run > 0 && from == self.run_end {
            self.run += 1;
        } else {
            self.run = 1;
            losses.runs += 1;
        }
        losses.longest_run = losses.longest_run.max(self.run);
        self.run_end = from + payload;
        if self.begins.contains(&from) {
            losses.lost_retransmissions += 1;
        } else if may_hold && self.begins.len() < MOST_TOLD_APART {
            self.begins.insert(from);
        }
    }

    /// New data is acknowledged, and this timestamp is echoed.
    pub fn acknowledged(&mut self, echo: Option<u32>) {
        if let Some(first) = self.first_stamp.take() {
            let is_older = echo.is_some_and(|echo| echo.wrapping_sub(first).cast_signed() < 0);
            self.losses.spurious += u64::from(is_older);
        }
    }

    /// The repair is over, and holds nothing.
    pub fn end(&mut self) {
        *self = Repairs { losses: self.losses, ..Repairs::default() };
    }
}
