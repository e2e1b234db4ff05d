//! DELTA_BINARY_PACKED of the Parquet format: differences between neighbours, each miniblock of them with as many bits
//! as its largest one takes.

use super::bits;

/// Differences to a block, which share a smallest one.
const BLOCK: usize = 128;
/// Differences to a miniblock, which share a width.
const MINIBLOCK: usize = bits::PACK;
const MINIBLOCKS: usize = BLOCK / MINIBLOCK;

/// The physical type of the column: what differences are taken in. They wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// INT32.
    Four,
    /// INT64.
    Eight,
}

impl Width {
    fn difference(self, value: u64, before: u64) -> i64 {
        let difference = value.wrapping_sub(before);
        match self {
            Width::Four => i64::from(difference as i32),
            Width::Eight => difference as i64,
        }
    }

    fn sum(self, before: u64, difference: i64) -> u64 {
        let sum = before.wrapping_add_signed(difference);
        match self {
            Width::Four => u64::from(sum as u32),
            Width::Eight => sum,
        }
    }
}

/// Appends `values`; those of four bytes are below 2^32.
pub fn encode(values: &[u64], width: Width, out: &mut Vec<u8>) {
    bits::put_varint(BLOCK as u64, out);
    bits::put_varint(MINIBLOCKS as u64, out);
    bits::put_varint(values.len() as u64, out);
    let first = values.first().copied().unwrap_or_default();
    put_zigzag(width.difference(first, 0), out);
    let mut differences = [0; BLOCK];
    for start in (1..values.len()).step_by(BLOCK) {
        let block = &values[start - 1..values.len().min(start + BLOCK)];
        let differences = &mut differences[..block.len() - 1];
        for (difference, pair) in differences.iter_mut().zip(block.windows(2)) {
            *difference = width.difference(pair[1], pair[0]);
        }
        encode_block(differences, out);
    }
}

fn encode_block(differences: &[i64], out: &mut Vec<u8>) {
    // A power of two below all of them, where one is negative: it takes one bit more at most than the least of them, and
    // no comparison, for which the smallest x86-64 has no vectors.
    let (magnitudes, signs) = differences.iter().fold((0, 0), |(magnitudes, signs), difference| {
        (magnitudes | (difference ^ (difference >> 63)), signs | difference)
    });
    let bits = u64::BITS - (magnitudes as u64).leading_zeros();
    let least = if signs < 0 { -1_i64 << bits } else { 0 };
    put_zigzag(least, out);
    let widths = out.len();
    out.extend([0; MINIBLOCKS]);
    for (number, miniblock) in differences.chunks(MINIBLOCK).enumerate() {
        // The last one is filled up.
        let mut above = [0; MINIBLOCK];
        let mut all = 0;
        for (above, difference) in above.iter_mut().zip(miniblock) {
            *above = difference.wrapping_sub(least) as u64;
            all |= *above;
        }
        let width = u64::BITS - all.leading_zeros();
        out[widths + number] = width as u8;
        bits::pack(&above, width, out);
    }
}

/// What [`encode`] has made, appended to `out`.
pub fn decode(mut bytes: &[u8], width: Width, out: &mut Vec<u64>) {
    let bytes = &mut bytes;
    let (_, _) = (bits::take_varint(bytes), bits::take_varint(bytes));
    let count = bits::take_varint(bytes) as usize;
    if count == 0 {
        return;
    }
    let mut value = width.sum(0, take_zigzag(bytes));
    out.push(value);
    let mut left = count - 1;
    while left > 0 {
        let least = take_zigzag(bytes);
        let widths = bits::take(bytes, MINIBLOCKS);
        for &bit_width in widths {
            if left == 0 {
                break;
            }
            let packed = bits::take(bytes, MINIBLOCK * usize::from(bit_width) / 8);
            for above in bits::unpack(packed, bit_width.into()).take(left.min(MINIBLOCK)) {
                value = width.sum(value, least.wrapping_add_unsigned(above));
                out.push(value);
            }
            left = left.saturating_sub(MINIBLOCK);
        }
    }
}

fn put_zigzag(value: i64, out: &mut Vec<u8>) {
    bits::put_varint(((value << 1) ^ (value >> 63)) as u64, out);
}

fn take_zigzag(bytes: &mut &[u8]) -> i64 {
    let folded = bits::take_varint(bytes);
    (folded >> 1) as i64 ^ -((folded & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(values in prop::collection::vec(any::<u64>(), 0..400), shift in 0_u32..64) {
            for (width, shift) in [(Width::Eight, shift), (Width::Four, shift.max(32))] {
                let values: Vec<u64> = values.iter().map(|value| value >> shift).collect();
                let (mut bytes, mut back) = (Vec::new(), Vec::new());
                encode(&values, width, &mut bytes);
                decode(&bytes, width, &mut back);
                prop_assert_eq!(back, values);
            }
        }
    }
}
