//! Files of users: read up to a bound, and replaced whole or not at all.
//!
//! Whatever a user names as a file is read by [`read`], [`read_text`] or [`open`]. None of them waits for a FIFO, follows a device
//! without end or takes more memory than its bound. What is written in the place of an earlier file is written as a
//! [`Replacement`]: under a name that nobody else has chosen, and only then renamed.

pub mod pcapng;
mod read;
mod replacement;
mod user_cache;

pub use read::{
    FileError, MAX_FILE, MAX_FILE_VARIABLE, MAX_MANIFEST, configure, folder_or_nothing, max_file, open, read,
    read_at_most, read_manifest, read_text,
};
pub use replacement::{PARTIAL, Replacement, remove_abandoned, whole_name};
pub use user_cache::user_cache;
