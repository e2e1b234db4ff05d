//! Payload bytes as a function of their place in the stream.
//!
//! The simulator moves no payload; whoever puts segments on a real wire fills the bytes in, and whoever takes
//! them off checks every one. Neighbouring 8-byte words differ in every byte, so a shift or a swap shows.

/// Fills `payload` with the stream's bytes from `offset` on.
pub fn fill(offset: u64, payload: &mut [u8]) {
    let (head, words) = payload.split_at_mut(to_first_word(offset, payload.len()));
    fill_by_byte(offset, head);
    let first = (offset + head.len() as u64) / WORD;
    // A word at a time: a real sender fills gigabytes.
    let mut words = words.chunks_exact_mut(WORD as usize);
    let mut number = first;
    for bytes in &mut words {
        bytes.copy_from_slice(&word(number).to_le_bytes());
        number += 1;
    }
    fill_by_byte(number * WORD, words.into_remainder());
}

/// The first offset at which `payload` is not the stream from `offset` on.
pub fn first_mismatch(offset: u64, payload: &[u8]) -> Option<u64> {
    let (head, words) = payload.split_at(to_first_word(offset, payload.len()));
    let mut place = offset + head.len() as u64;
    let mismatch = mismatch_by_byte(offset, head);
    if mismatch.is_some() {
        return mismatch;
    }
    // Blocks without a way out in between: 20 GB/s in place of 1, which is less than a connection carries.
    for block in words.chunks(BLOCK) {
        let mut difference = 0;
        let mut words = block.chunks_exact(WORD as usize);
        for (number, bytes) in (place / WORD..).zip(&mut words) {
            let bytes = bytes.try_into().expect("chunks are exact");
            difference |= u64::from_le_bytes(bytes) ^ word(number);
        }
        if difference != 0 || !words.remainder().is_empty() {
            let mismatch = mismatch_by_byte(place, block);
            if mismatch.is_some() {
                return mismatch;
            }
        }
        place += block.len() as u64;
    }
    None
}

/// Bytes that are compared at once.
const BLOCK: usize = 512;
/// Bytes of a word of the stream.
const WORD: u64 = 8;

fn word(number: u64) -> u64 {
    // A word's number spread over 64 bits by a multiplicative hash (Knuth, TAOCP 3, §6.4).
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
        for offset in (0..20).chain(4_294_967_290..4_294_967_300) {
            for len in 0..20 {
                let mut bytes = [0xaa; 20];
                fill(offset, &mut bytes[..len]);
                for (place, byte) in (offset..).zip(&bytes[..len]) {
                    // As it was defined before anyone took words at a time.
                    let hash = (place / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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
    fn a_wrong_byte_is_found_in_any_block() {
        let mut bytes = vec![0; 3 * BLOCK + 13];
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
