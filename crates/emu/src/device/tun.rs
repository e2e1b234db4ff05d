//! TUN: the host's IP packets come out of a file, and are written into it. The fastest way that we measured, and no
//! frames, no address resolution and no checksums to do.

use super::{NAME, read, write};
use crate::host_error::HostError;
use crate::port::{Frame, Port, Received, VirtioHeader};
use crate::sys;
use farpath_units::Instant;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

const NODE: &str = "/dev/net/tun";
const OPEN_THE_NODE: &str = "run as root, or `chmod 0666 /dev/net/tun`, or `modprobe tun` where it is missing, or take the packet backend";

/// A TUN device; gone when the last copy of the file is.
#[derive(Debug)]
pub(crate) struct Tun {
    file: Arc<File>,
}

impl Tun {
    /// Makes the device in the namespace of the calling thread.
    pub(crate) fn new(offload: bool) -> Result<Tun, HostError> {
        let failed = |what: &str| {
            let what = what.to_string();
            move |error: io::Error| HostError::kernel(what, OPEN_THE_NODE, error)
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(NODE).map_err(failed("open /dev/net/tun"))?;
        sys::tun::attach(file.as_fd(), NAME).map_err(failed("make a TUN device"))?;
        sys::tun::set_header_len(file.as_fd(), VirtioHeader::LEN)
            .map_err(failed("put a virtio header before the TUN device's packets"))?;
        sys::tun::set_offloads(file.as_fd(), if offload { sys::tun::OFFLOADS } else { 0 })
            .map_err(failed("set the TUN device's offloads"))?;
        Ok(Tun { file: Arc::new(file) })
    }

    pub(crate) fn port(&self) -> TunPort {
        TunPort { file: Arc::clone(&self.file) }
    }
}

/// What the emulator holds of a TUN device.
#[derive(Debug)]
pub(crate) struct TunPort {
    file: Arc<File>,
}

impl Port for TunPort {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn receive(&mut self, _now: Instant, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut header = [0; VirtioHeader::LEN];
        let len = read(&self.file, &mut header, buffer)?;
        Ok(len.map(|len| Received { header: VirtioHeader::from_bytes(header), frame: None, len }))
    }

    fn send(
        &mut self,
        _: Instant,
        header: VirtioHeader,
        _: Option<Frame>,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()> {
        write(&self.file, &header.to_bytes(), pieces)
    }
}
