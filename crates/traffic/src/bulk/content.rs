//! The stream's bytes, ahead of a socket that takes some of them at a time.

use farpath_tcp::pattern::{self, PERIOD};
use std::sync::LazyLock;

/// Bytes that are handed to the kernel, or read, at once: what a system call costs is little beside copying as many.
pub const CHUNK: usize = 256 * 1024;

/// A period of the stream, and a chunk more: from any place of it there is a chunk in one piece. It is made once.
static STREAM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = vec![0; PERIOD as usize + CHUNK];
    pattern::fill(0, &mut bytes);
    bytes
});

/// The next chunk after `written` bytes of `size`, or all that is left.
pub fn next(written: u64, size: u64) -> &'static [u8] {
    let place = (written % PERIOD) as usize;
    let len = (size - written).min(CHUNK as u64) as usize;
    &STREAM[place..place + len]
}
