//! Fuzz targets, each a function of bytes. It panics where something is wrong, and hangs where something is without bound.
//!
//! `cargo fuzz` makes programs of them; `cargo test` runs them over the seeds in `seeds/` and some thousand random inputs.

mod captures;
mod experiments;
mod hosts;
mod messages;
mod packets;
mod results;
mod scripts;
mod segments;
mod signalling;
mod texts;

pub use captures::captures;
pub use experiments::experiments;
pub use hosts::hosts;
pub use messages::messages;
pub use packets::packets;
pub use results::{forgive_parquet, results, whole_files};
pub use scripts::scripts;
pub use segments::segments;
pub use signalling::signalling;
pub use texts::texts;

/// A target by its name, which is that of its seeds' folder too.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 10] = [
    ("segments", segments),
    ("experiments", experiments),
    ("texts", texts),
    ("signalling", signalling),
    ("messages", messages),
    ("results", results),
    ("captures", captures),
    ("scripts", scripts),
    ("packets", packets),
    ("hosts", hosts),
];

/// Numbers from the front of some bytes; zero when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn u8(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    /// Below this, which is not zero.
    fn below(&mut self, most: u64) -> u64 {
        u64::from(self.u32()) % most
    }

    fn take(&mut self, most: usize) -> &[u8] {
        let (first, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        first
    }
}
