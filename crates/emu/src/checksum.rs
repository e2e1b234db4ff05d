//! The Internet checksum's arithmetic (RFC 1071): sums of 16-bit words with the carry added back in.

/// The sum of `bytes` as big-endian words, an odd last byte being the high one of its word. Not complemented.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    // 2^48 words of at most 2^16 fit.
    let total: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    let last = rest.first().map_or(0, |&byte| u64::from(byte) << 8);
    fold(total + last)
}

/// The sum of two sums.
pub(crate) fn add(one: u16, other: u16) -> u16 {
    fold(u64::from(one) + u64::from(other))
}

/// A checksum field after one word that it covers went from `old` to `new` (RFC 1624 §3, equation 3).
pub(crate) fn update(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
}

fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[0x12, 0x34, 0x56]), 0x6834);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // §4: with equation 2 of RFC 1141 the answer would be 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn an_update_is_what_summing_again_gives(mut words in prop::collection::vec(any::<u16>(), 1..20), new: u16) {
            let bytes = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
            let before = !sum(&bytes(&words));
            let old = std::mem::replace(&mut words[0], new);
            // 0 and 0xffff are the same number; a header that is not all zeros never sums to 0.
            prop_assert_eq!(update(before, old, new) % 0xffff, !sum(&bytes(&words)) % 0xffff);
        }
    }
}
