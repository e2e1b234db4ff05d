//! What the two hosts of a measurement say to each other, as either of them takes it.

use farpath_measure::fuzz::{local_host_reads, peer_reads};

/// The first byte says who speaks; the rest comes in pieces, as from a network.
pub fn messages(data: &[u8]) {
    let Some((&who, bytes)) = data.split_first() else { return };
    let says = if who & 1 == 0 { local_host_reads } else { peer_reads };
    says(bytes, usize::from(who >> 1).max(1));
}
