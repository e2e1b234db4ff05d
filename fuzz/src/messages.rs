//! What the two hosts of a measurement say to each other, as either of them takes it.

use farpath_measure::fuzz::{far_says, near_says};

/// The first byte says who speaks; the rest comes in pieces, as from a network.
pub fn messages(data: &[u8]) {
    let Some((&who, bytes)) = data.split_first() else { return };
    let says = if who & 1 == 0 { near_says } else { far_says };
    says(bytes, usize::from(who >> 1).max(1));
}
