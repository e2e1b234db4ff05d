//! A device without frames whose other side somebody else has: the packets that a stack in user space writes into its TUN device
//! come out here, and those that go in here it reads.

use super::write;
use crate::port::{Frame, Port, Received, VirtioHeader};
use crate::sys;
use farpath_units::Instant;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug)]
pub(crate) struct TakenPort(pub File);

impl Port for TakenPort {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn receive(&mut self, _: Instant, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut head = [0; VirtioHeader::LEN];
        let received = sys::packet::receive(self.0.as_fd(), &mut head, buffer)?;
        Ok(received.map(|(len, _)| Received { header: VirtioHeader::from_bytes(head), frame: None, len }))
    }

    fn send(
        &mut self,
        _: Instant,
        header: VirtioHeader,
        _: Option<Frame>,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()> {
        write(&self.0, &header.to_bytes(), pieces)
    }
}
