//! The one device of a host, and the emulator's hold on it.

mod taken;
mod tun;
mod veth;
mod wire;

pub(crate) use taken::TakenPort;
pub(crate) use tun::Tun;
pub(crate) use veth::Veth;
pub(crate) use wire::WirePort;

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};

/// How the names of our devices begin.
pub(crate) const PREFIX: &str = "farpath";
/// The name of the device in each host.
pub const NAME: &str = "farpath0";

/// Pieces of a packet that are sent without asking for memory: all segments of a super-packet of 64 KB in segments of
/// 1 kB, and what comes before them.
const PIECES: usize = 66;

/// Writes `head`, and then `pieces`, as one packet.
fn write(mut file: &File, head: &[u8], pieces: &[IoSlice<'_>]) -> io::Result<()> {
    let mut all = [IoSlice::new(&[]); PIECES];
    let written = match all.get_mut(..=pieces.len()) {
        Some(all) => {
            all[0] = IoSlice::new(head);
            all[1..].copy_from_slice(pieces);
            file.write_vectored(all)
        }
        None => {
            let all: Vec<_> = std::iter::once(IoSlice::new(head)).chain(pieces.iter().copied()).collect();
            file.write_vectored(&all)
        }
    }?;
    let len = head.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>();
    if written == len {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::WriteZero,
            format!("{written} of {len} bytes of a packet were taken"),
        ))
    }
}

/// Reads one packet: its first bytes into `head`, the others into `buffer`. Gives how many those are; `None` where
/// no packet waits.
fn read(mut file: &File, head: &mut [u8], buffer: &mut [u8]) -> io::Result<Option<usize>> {
    let head_len = head.len();
    loop {
        match file.read_vectored(&mut [io::IoSliceMut::new(head), io::IoSliceMut::new(buffer)]) {
            Ok(len) => return Ok(Some(len.saturating_sub(head_len))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
