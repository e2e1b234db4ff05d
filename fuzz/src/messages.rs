//! What the two hosts of a measurement say to each other, as either of them reads it.

/// The first byte says who reads; the rest comes in pieces, as from a network.
pub fn messages(data: &[u8]) {
    let Some((&who, bytes)) = data.split_first() else { return };
    farpath_measure::read_messages(bytes, who & 1 == 0, usize::from(who >> 1).max(1));
}
