//! What stands in a datagram: a mark, the token, its number, and when it was sent; in an answer also when what it answers
//! had arrived, and how many had by then.

use crate::token::Token;
use farpath_units::Instant;

const MARK: [u8; 4] = *b"Fpu1";
const TOKEN: usize = 4;
const NUMBER: usize = 20;
const SENT: usize = 24;
const ARRIVED: usize = 32;
const COUNT: usize = 40;
/// Shortest datagram.
pub const LEAST: usize = 44;
/// Longest.
pub const MOST: usize = 1472;

/// A datagram's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its place among those that were sent, from 0.
    pub number: u32,
    /// By the clock of who began.
    pub sent_at: Instant,
    /// By the clock of who answered; zero in what is no answer.
    pub arrived_at: Instant,
    /// How many had arrived there, this one included.
    pub count: u32,
}

/// The token of what is one of ours.
pub fn token(datagram: &[u8]) -> Option<Token> {
    (datagram.len() >= LEAST && datagram[..TOKEN] == MARK)
        .then(|| Token(datagram[TOKEN..NUMBER].try_into().expect("sixteen bytes")))
}

/// What it says; of one that has a token.
pub fn head(datagram: &[u8]) -> Head {
    let u32 = |at: usize| u32::from_be_bytes(datagram[at..at + 4].try_into().expect("four bytes"));
    let time = |at: usize| {
        Instant::from_nanos(u64::from_be_bytes(datagram[at..at + 8].try_into().expect("eight bytes")))
    };
    Head { number: u32(NUMBER), sent_at: time(SENT), arrived_at: time(ARRIVED), count: u32(COUNT) }
}

/// An empty one of this length.
pub fn blank(token: Token, len: usize) -> Vec<u8> {
    let mut datagram = vec![0; len.clamp(LEAST, MOST)];
    datagram[..TOKEN].copy_from_slice(&MARK);
    datagram[TOKEN..NUMBER].copy_from_slice(token.as_bytes());
    datagram
}

/// Puts a head on it.
pub fn put_head(datagram: &mut [u8], head: Head) {
    datagram[NUMBER..SENT].copy_from_slice(&head.number.to_be_bytes());
    datagram[SENT..ARRIVED].copy_from_slice(&head.sent_at.as_nanos().to_be_bytes());
    datagram[ARRIVED..COUNT].copy_from_slice(&head.arrived_at.as_nanos().to_be_bytes());
    datagram[COUNT..LEAST].copy_from_slice(&head.count.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_head_is_read_as_it_was_put(number: u32, count: u32, times: [u64; 2], len in LEAST..=MOST) {
            let head = Head {
                number,
                sent_at: Instant::from_nanos(times[0]),
                arrived_at: Instant::from_nanos(times[1]),
                count,
            };
            let mut datagram = blank(Token([3; 16]), len);
            put_head(&mut datagram, head);
            prop_assert_eq!(token(&datagram), Some(Token([3; 16])));
            prop_assert_eq!(self::head(&datagram), head);
        }

        #[test]
        fn what_is_not_ours_has_no_token(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let ours = bytes.len() >= LEAST && bytes.starts_with(&MARK);
            prop_assert_eq!(token(&bytes).is_some(), ours);
        }
    }
}
