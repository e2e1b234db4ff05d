//! Payload bytes as a function of their place in the stream.
//!
//! The simulator moves no payload; whoever puts segments on a real wire fills the bytes in, and whoever takes
//! them off checks every one. Neighbouring 8-byte words differ in every byte, so a shift or a swap shows.

/// Fills `payload` with the stream's bytes from `offset` on.
pub fn fill(offset: u64, payload: &mut [u8]) {
    for (place, byte) in (offset..).zip(payload.iter_mut()) {
        *byte = byte_at(place);
    }
}

/// The first offset at which `payload` is not the stream from `offset` on.
pub fn first_mismatch(offset: u64, payload: &[u8]) -> Option<u64> {
    (offset..).zip(payload).find(|&(place, &byte)| byte != byte_at(place)).map(|(place, _)| place)
}

fn byte_at(offset: u64) -> u8 {
    // A word's number spread over 64 bits by a multiplicative hash (Knuth, TAOCP 3, §6.4).
    let word = (offset / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word.to_le_bytes()[(offset % 8) as usize]
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
    fn a_flipped_byte_and_a_shifted_stream_are_found() {
        let mut bytes = [0; 64];
        fill(0, &mut bytes);
        assert!(first_mismatch(1, &bytes).is_some());
        assert!(first_mismatch(8, &bytes).is_some());
        bytes[40] ^= 1;
        assert_eq!(first_mismatch(0, &bytes), Some(40));
    }
}
