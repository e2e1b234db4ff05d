//! What the SYN of a host tells of its TCP.
//!
//! Stacks put the options of a SYN in an order of their own, and begin with a time to live of their own: so much tells families of them apart, and
//! nothing finer. The orders are those that p0f (Zalewski 2012, section 5 of its README) calls the layout of options.

use serde::{Serialize, Serializer};
use std::fmt;

/// Options of a SYN that are kept, in their order; more are left out.
const MOST: u32 = 16;
const BITS: u32 = 4;

/// What is told apart of them.
const NAMES: [&str; 10] = [
    "end",
    "no-op",
    "MSS",
    "window scale",
    "SACK permitted",
    "timestamps",
    "Fast Open",
    "Multipath TCP",
    "experimental",
    "another",
];

/// The options of a SYN in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptionOrder(u64);

impl OptionOrder {
    /// Of the bytes behind a TCP header; what is cut off or damaged ends it.
    pub fn new(options: &[u8]) -> OptionOrder {
        let mut order = OptionOrder::default();
        let mut rest = options;
        for place in 0..MOST {
            let [kind, behind @ ..] = rest else { break };
            // Each has a length but these two (RFC 9293 §3.1).
            let length = if *kind <= 1 { 1 } else { behind.first().map_or(0, |length| usize::from(*length)) };
            let name = match kind {
                0..=1 => u64::from(*kind),
                2..=4 => u64::from(*kind),
                8 => 5,
                34 => 6,
                30 => 7,
                253 | 254 => 8,
                _ => 9,
            };
            order.0 |= (name + 1) << (place * BITS);
            rest = match rest.get(length..) {
                Some(rest) if length > 0 && *kind != 0 => rest,
                _ => break,
            };
        }
        order
    }

    fn kinds(self) -> impl Iterator<Item = usize> {
        (0..MOST).map(move |place| (self.0 >> (place * BITS) & 15) as usize).take_while(|kind| *kind > 0)
    }

    /// Whether it is this one.
    fn is(self, names: &[&str]) -> bool {
        self.kinds().map(|kind| NAMES[kind - 1]).eq(names.iter().copied())
    }
}

impl fmt::Display for OptionOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, kind) in self.kinds().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{}", NAMES[kind - 1])?;
        }
        Ok(())
    }
}

impl Serialize for OptionOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Stacks that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Linux, Android.
    Linux,
    /// Windows.
    Windows,
    /// macOS, iOS.
    Apple,
    /// FreeBSD; as the answer to a SYN with all options also others.
    #[serde(rename = "freebsd")]
    FreeBsd,
    /// OpenBSD.
    #[serde(rename = "openbsd")]
    OpenBsd,
}

impl Family {
    /// As it is spelt.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Linux => "Linux",
            Family::Windows => "Windows",
            Family::Apple => "macOS or iOS",
            Family::FreeBsd => "FreeBSD",
            Family::OpenBsd => "OpenBSD",
        }
    }
}

/// What a host's SYN, or SYN/ACK, told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StackSeen {
    /// Its options, in their order.
    pub options: OptionOrder,
    /// The window that it announced, which is never scaled (RFC 7323 §2.2).
    pub window: u16,
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Shift of its windows.
    pub window_scale: Option<u8>,
    /// Time to live, or hop limit, where it was captured.
    pub ttl: u8,
    /// Whether it answered a SYN: what that did not offer is not in the answer.
    pub is_answer: bool,
    /// Stacks that begin so, where they are known.
    pub family: Option<Family>,
}

impl StackSeen {
    /// Of a SYN with these options.
    pub fn new(packet: &crate::TcpPacket) -> StackSeen {
        let options = packet.options;
        StackSeen {
            options,
            window: packet.window,
            mss: packet.mss,
            window_scale: packet.window_scale,
            ttl: packet.ttl,
            is_answer: packet.ack.is_some(),
            family: family(options, first_ttl(packet.ttl)),
        }
    }

    /// Routers that it has passed, if its host began with one of the usual times to live.
    pub fn hops(&self) -> u8 {
        first_ttl(self.ttl) - self.ttl
    }
}

/// What hosts begin with; a router takes one off.
pub(crate) const FIRST_TTLS: [u8; 4] = [32, 64, 128, 255];

/// The least of the usual times to live that a packet can have begun with.
fn first_ttl(ttl: u8) -> u8 {
    FIRST_TTLS.into_iter().find(|first| *first >= ttl).unwrap_or(u8::MAX)
}

fn family(options: OptionOrder, first_ttl: u8) -> Option<Family> {
    const MSS: &str = "MSS";
    const SCALE: &str = "window scale";
    const SACK: &str = "SACK permitted";
    const TIMES: &str = "timestamps";
    const NO_OP: &str = "no-op";
    let is = |orders: &[&[&str]]| orders.iter().any(|order| options.is(order));
    // Each with what is left of it where the other side offered no timestamps, or the host has none.
    match first_ttl {
        64 if is(&[&[MSS, SACK, TIMES, NO_OP, SCALE], &[MSS, NO_OP, NO_OP, SACK, NO_OP, SCALE]]) => {
            Some(Family::Linux)
        }
        64 if is(&[&[MSS, NO_OP, SCALE, NO_OP, NO_OP, TIMES, SACK, "end"]]) => Some(Family::Apple),
        64 if is(&[&[MSS, NO_OP, SCALE, SACK, TIMES]]) => Some(Family::FreeBsd),
        64 if is(&[&[MSS, NO_OP, NO_OP, SACK, NO_OP, SCALE, NO_OP, NO_OP, TIMES]]) => Some(Family::OpenBsd),
        128 if is(&[&[MSS, NO_OP, SCALE, NO_OP, NO_OP, SACK], &[MSS, NO_OP, SCALE, SACK, TIMES]]) => {
            Some(Family::Windows)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    const WINDOWS: [u8; 12] = [2, 4, 5, 0xb4, 1, 3, 3, 8, 1, 1, 4, 2];
    const APPLE: [u8; 24] = [2, 4, 5, 0xb4, 1, 3, 3, 6, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 4, 2, 0, 0];

    #[test]
    fn stacks_are_known_by_the_order_of_their_options() {
        for (options, ttl, known) in [
            (&LINUX[..], 64, Some(Family::Linux)),
            (&LINUX, 51, Some(Family::Linux)),
            (&WINDOWS, 118, Some(Family::Windows)),
            (&APPLE, 60, Some(Family::Apple)),
            // None of them begins so.
            (&LINUX, 128, None),
            (&WINDOWS, 64, None),
            (&[], 64, None),
        ] {
            assert_eq!(family(OptionOrder::new(options), first_ttl(ttl)), known, "{options:?}, {ttl}");
        }
        assert_eq!(
            OptionOrder::new(&LINUX).to_string(),
            "MSS, SACK permitted, timestamps, no-op, window scale"
        );
        assert_eq!(
            OptionOrder::new(&APPLE).to_string(),
            "MSS, no-op, window scale, no-op, no-op, timestamps, SACK permitted, end"
        );
    }

    #[test]
    fn options_that_are_cut_off_or_without_length_end_the_order() {
        assert_eq!(OptionOrder::new(&LINUX[..9]).to_string(), "MSS, SACK permitted, timestamps");
        assert_eq!(OptionOrder::new(&[2, 0, 4, 2]).to_string(), "MSS");
        assert_eq!(OptionOrder::new(&[77]).to_string(), "another");
        assert_eq!(OptionOrder::new(&[1; 40]).kinds().count(), MOST as usize);
        assert_eq!(OptionOrder::new(&[]).to_string(), "");
    }
}
