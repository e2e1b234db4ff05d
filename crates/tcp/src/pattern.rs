//! Payload bytes as a function of their place in the stream.
//!
//! The simulator moves no payload; whoever puts segments on a real wire fills the bytes in, and whoever takes
//! them off checks every one. Neighbouring 8-byte words differ in every byte, so a shift or a swap shows. After
//! [`PERIOD`] bytes the stream begins anew, so that who sends much of it makes it once: making it for each write is a
//! fifth of what a connection over loopback costs its sender.

/// After so many bytes the stream repeats itself. A shift by as much would not show: 8 times a prime is no multiple of a
/// segment, a page, a buffer or a sequence number that wraps.
pub const PERIOD: u64 = 32_749 * WORD;

/// Fills `payload` with the stream's bytes from `offset` on.
pub fn fill(offset: u64, payload: &mut [u8]) {
    let mut place = offset % PERIOD;
    let mut rest = payload;
    while !rest.is_empty() {
        let (period, next) = rest.split_at_mut(to_next_period(place, rest.len()));
        fill_within_period(place, period);
        (place, rest) = (0, next);
    }
}

/// The first offset at which `payload` is not the stream from `offset` on.
pub fn first_mismatch(offset: u64, payload: &[u8]) -> Option<u64> {
    let (mut begun, mut rest) = (offset, payload);
    while !rest.is_empty() {
        let place = begun % PERIOD;
        let (period, next) = rest.split_at(to_next_period(place, rest.len()));
        if let Some(mismatch) = mismatch_within_period(place, period) {
            return Some(begun + (mismatch - place));
        }
        begun += period.len() as u64;
        rest = next;
    }
    None
}

/// Bytes from a place to the end of its period, of `len` that there are.
fn to_next_period(place: u64, len: usize) -> usize {
    len.min((PERIOD - place) as usize)
}

fn fill_within_period(offset: u64, payload: &mut [u8]) {
    let (head, words) = payload.split_at_mut(to_first_word(offset, payload.len()));
    fill_by_byte(offset, head);
    let mut place = offset + head.len() as u64;
    let mut rows = Rows::from(place / WORD);
    let mut blocks = words.chunks_exact_mut(ROW);
    for block in &mut blocks {
        for (bytes, word) in block.chunks_exact_mut(WORD as usize).zip(rows.next()) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        place += ROW as u64;
    }
    fill_by_byte(place, blocks.into_remainder());
}

fn mismatch_within_period(offset: u64, payload: &[u8]) -> Option<u64> {
    let (head, words) = payload.split_at(to_first_word(offset, payload.len()));
    let mut place = offset + head.len() as u64;
    let mismatch = mismatch_by_byte(offset, head);
    if mismatch.is_some() {
        return mismatch;
    }
    let (rows, tail) = words.split_at(words.len() / ROW * ROW);
    if !is_from(place / WORD, rows) {
        return mismatch_by_byte(place, rows);
    }
    place += rows.len() as u64;
    mismatch_by_byte(place, tail)
}

/// Whether whole rows are the stream from a word on. Without a way out in between: that is faster than a look at each.
fn is_from(number: u64, rows: &[u8]) -> bool {
    let mut words = Rows::from(number);
    let mut differences = [0; LANES];
    for row in rows.chunks_exact(ROW) {
        let lanes = differences.iter_mut().zip(row.chunks_exact(WORD as usize)).zip(words.next());
        for ((difference, bytes), word) in lanes {
            let bytes = bytes.try_into().expect("chunks are exact");
            *difference |= u64::from_le_bytes(bytes) ^ word;
        }
    }
    differences == [0; LANES]
}

/// Bytes of a word of the stream.
const WORD: u64 = 8;
/// Words that are made side by side: as many as the widest registers hold, or two of narrower ones.
const LANES: usize = 8;
/// Bytes of these.
const ROW: usize = LANES * WORD as usize;

/// A word's number is spread over 64 bits by a multiplicative hash (Knuth, TAOCP 3, §6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

fn word(number: u64) -> u64 {
    (number + 1).wrapping_mul(SPREAD)
}

/// The stream, [`LANES`] words at a time. From one row to the next every word grows by the same: that is an addition in
/// place of a multiplication, and twice as fast: 34 to 40 GB/s, where a connection over loopback carries 5.
struct Rows {
    words: [u64; LANES],
}

impl Rows {
    /// From this word on.
    fn from(number: u64) -> Rows {
        Rows { words: std::array::from_fn(|lane| word(number + lane as u64)) }
    }

    fn next(&mut self) -> [u64; LANES] {
        let row = self.words;
        self.words = row.map(|word| word.wrapping_add(SPREAD.wrapping_mul(LANES as u64)));
        row
    }
}

/// Bytes from `offset` to the first whole word, of `len` that there are.
fn to_first_word(offset: u64, len: usize) -> usize {
    len.min((offset.wrapping_neg() % WORD) as usize)
}

fn byte_at(offset: u64) -> u8 {
    word(offset / WORD).to_le_bytes()[(offset % WORD) as usize]
}

fn fill_by_byte(offset: u64, payload: &mut [u8]) {
    for (place, byte) in (offset..).zip(payload) {
        *byte = byte_at(place);
    }
}

fn mismatch_by_byte(offset: u64, payload: &[u8]) -> Option<u64> {
    (offset..).zip(payload).find(|&(place, &byte)| byte != byte_at(place)).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_depends_on_its_place_alone() {
        let mut whole = [0; 64];
        fill(1_000_000, &mut whole);
        let mut part = [0; 10];
        fill(1_000_013, &mut part);
        assert_eq!(part, whole[13..23]);
        assert_eq!(first_mismatch(1_000_000, &whole), None);
    }

    #[test]
    fn any_part_is_the_bytes_of_its_places() {
        const MOST: usize = 2 * ROW + 9;
        for offset in (0..20).chain(4_294_967_290..4_294_967_300) {
            for len in (0..20).chain(ROW - 2..=ROW + 9).chain([MOST]) {
                let mut bytes = [0xaa; MOST];
                fill(offset, &mut bytes[..len]);
                for (place, byte) in (offset..).zip(&bytes[..len]) {
                    // As it was defined before anyone took words at a time.
                    let hash = (place % PERIOD / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    assert_eq!(*byte, (hash >> (place % 8 * 8)) as u8, "byte {place}");
                }
                assert!(bytes[len..].iter().all(|&byte| byte == 0xaa));
                assert_eq!(first_mismatch(offset, &bytes[..len]), None);
                for wrong in 0..len {
                    bytes[wrong] ^= 0x80;
                    assert_eq!(first_mismatch(offset, &bytes[..len]), Some(offset + wrong as u64));
                    bytes[wrong] ^= 0x80;
                }
            }
        }
    }

    #[test]
    fn the_stream_begins_anew_after_a_period() {
        const AROUND: usize = 3 * ROW;
        let mut bytes = vec![0; 2 * AROUND + PERIOD as usize];
        for before in [0, 1, 7, 8, AROUND as u64] {
            let offset = 5 * PERIOD - before;
            fill(offset, &mut bytes);
            for (place, byte) in (offset..).zip(&bytes) {
                assert_eq!(*byte, byte_at(place % PERIOD), "byte {place}");
            }
            assert_eq!(first_mismatch(offset, &bytes), None);
            for wrong in [0, before as usize, before as usize + AROUND, bytes.len() - 1] {
                bytes[wrong] ^= 1;
                assert_eq!(first_mismatch(offset, &bytes), Some(offset + wrong as u64));
                bytes[wrong] ^= 1;
            }
        }
    }

    #[test]
    fn a_wrong_byte_is_found_in_any_row() {
        let mut bytes = vec![0; 5 * ROW + 13];
        for offset in [0, 3, 1_000_000] {
            fill(offset, &mut bytes);
            assert_eq!(first_mismatch(offset, &bytes), None);
            for wrong in 0..bytes.len() {
                bytes[wrong] ^= 1;
                assert_eq!(first_mismatch(offset, &bytes), Some(offset + wrong as u64));
                bytes[wrong] ^= 1;
            }
        }
    }

    #[test]
    fn a_flipped_byte_and_a_shifted_stream_are_found() {
        let mut bytes = [0; 64];
        fill(0, &mut bytes);
        assert!(first_mismatch(1, &bytes).is_some());
        assert!(first_mismatch(8, &bytes).is_some());
        bytes[40] ^= 1;
        assert_eq!(first_mismatch(0, &bytes), Some(40));
    }
}
