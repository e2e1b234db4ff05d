//! Bit packing, and the hybrid of it with run lengths that the Parquet format has for few-valued data.

/// Appends `value`, seven bits a byte, lowest first (ULEB128).
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes what [`put_varint`] has put.
pub fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Takes the first `count` bytes.
pub fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

/// Values that are packed together: a whole number of bytes of each width.
pub const PACK: usize = 32;

/// Appends the low `width` bits of each value, lowest first. No other bit may be set.
pub fn pack(values: &[u64; PACK], mut width: u32, out: &mut Vec<u8>) {
    let end = out.len() + PACK / 8 * width as usize;
    // Pairs, fours and so on first, as long as they fit into a word: that is the same shift for all of them, many at a
    // time, while the words can only be filled one after the other.
    let mut items = *values;
    let mut count = PACK;
    while (1..=u64::BITS / 2).contains(&width) && count > 1 {
        count /= 2;
        for place in 0..count {
            items[place] = items[2 * place] | items[2 * place + 1] << width;
        }
        width *= 2;
    }
    let (mut word, mut filled) = (0_u64, 0);
    for &item in &items[..count] {
        word |= item << filled;
        filled += width;
        if filled >= u64::BITS {
            filled -= u64::BITS;
            out.extend_from_slice(&word.to_le_bytes());
            word = if filled == 0 { 0 } else { item >> (width - filled) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(end);
}

/// Packed values, one after the other; beyond their end zeros.
pub fn unpack(bytes: &[u8], width: u32) -> impl Iterator<Item = u64> + '_ {
    let mask = 1_u64.checked_shl(width).map_or(u64::MAX, |above| above - 1);
    let first_bits = (0..).map(move |number: usize| number * width as usize);
    first_bits.map(move |first_bit| {
        // Nine bytes at most hold the bits of a value.
        let start = (first_bit / 8).min(bytes.len());
        let mut window = [0; 16];
        let held = &bytes[start..bytes.len().min(start + 9)];
        window[..held.len()].copy_from_slice(held);
        (u128::from_le_bytes(window) >> (first_bit % 8)) as u64 & mask
    })
}

/// Appends few-valued data as one run where all are the same, else packed.
pub fn encode_runs(values: &[u8], width: u32, out: &mut Vec<u8>) {
    match values {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|value| value == first) => {
            put_varint((values.len() as u64) << 1, out);
            // A width of zero takes no byte.
            out.extend((width > 0).then_some(*first));
        }
        _ => {
            put_varint((values.len().div_ceil(8) as u64) << 1 | 1, out);
            pack_groups(values, width, out);
        }
    }
}

/// Packs groups of eight, the last one filled up with zeros.
pub fn pack_groups(values: &[u8], width: u32, out: &mut Vec<u8>) {
    for group in values.chunks(8) {
        // Eight values of at most eight bits: one word.
        let word = group.iter().rev().fold(0_u64, |word, &value| word << width | u64::from(value));
        out.extend(&word.to_le_bytes()[..width as usize]);
    }
}

/// `count` values that [`encode_runs`] has made, appended to `out`.
pub fn decode_runs(mut bytes: &[u8], width: u32, count: usize, out: &mut Vec<u8>) {
    if count == 0 {
        return;
    }
    let header = take_varint(&mut bytes);
    if header & 1 == 0 {
        out.extend(std::iter::repeat_n(bytes.first().copied().unwrap_or_default(), count));
    } else {
        out.extend(unpack(bytes, width).map(|value| value as u8).take(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_values_come_back(values: [u64; PACK], width in 1_u32..=64) {
            let values = values.map(|value| value >> (64 - width));
            let mut bytes = Vec::new();
            pack(&values, width, &mut bytes);
            prop_assert_eq!(bytes.len(), PACK * width as usize / 8);
            prop_assert!(unpack(&bytes, width).take(PACK).eq(values));
        }

        #[test]
        fn runs_come_back(values in prop::collection::vec(0_u8..=255, 0..100), width in 1_u32..=8, same: bool) {
            let first = values.first().copied().unwrap_or_default();
            let of = |value: u8| (if same { first } else { value }) >> (8 - width);
            let values: Vec<u8> = values.into_iter().map(of).collect();
            let (mut bytes, mut back) = (Vec::new(), Vec::new());
            encode_runs(&values, width, &mut bytes);
            decode_runs(&bytes, width, values.len(), &mut back);
            prop_assert_eq!(back, values);
        }
    }
}
