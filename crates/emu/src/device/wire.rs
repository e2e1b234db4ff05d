//! One of two network interfaces that are joined: IP packets come out, and go in again at the other with the frames that they came
//! in. What is no IP packet (address resolution, for one) passes at once.

use super::veth::{ETHERNET, IPV4, IPV6, with_frame, without_frame};
use super::write;
use crate::port::{Frame, Port, Received, VirtioHeader};
use crate::sys;
use farpath_units::Instant;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Bytes of a VLAN's tag.
const TAG: usize = 4;

#[derive(Debug)]
pub(crate) struct WirePort {
    pub socket: Arc<File>,
    /// Of the other interface.
    pub other: Arc<File>,
}

impl Port for WirePort {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn receive(&mut self, _: Instant, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut head = [0; VirtioHeader::LEN + ETHERNET];
        loop {
            let Some((len, tag)) = sys::packet::receive(self.socket.as_fd(), &mut head, buffer)? else {
                return Ok(None);
            };
            let (header, frame) = head.split_first_chunk().expect("it is longer");
            let header = without_frame(VirtioHeader::from_bytes(*header), ETHERNET);
            let frame: [u8; ETHERNET] = frame.try_into().expect("what is left of it");
            let is_ip = matches!([frame[12], frame[13]], IPV4 | IPV6);
            let frame = Frame::new(frame, tag);
            if is_ip {
                return Ok(Some(Received { header, frame: Some(frame), len }));
            }
            // Lost where the other device has no room, as by a switch.
            let _ = write_framed(&self.other, header, &frame, &[IoSlice::new(&buffer[..len])]);
        }
    }

    fn send(
        &mut self,
        _: Instant,
        header: VirtioHeader,
        frame: Option<Frame>,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let frame = frame.ok_or(io::ErrorKind::InvalidInput)?;
        write_framed(&self.socket, header, &frame, pieces)
    }
}

fn write_framed(
    socket: &File,
    header: VirtioHeader,
    frame: &Frame,
    pieces: &[IoSlice<'_>],
) -> io::Result<()> {
    let frame = frame.as_bytes();
    let mut head = [0; VirtioHeader::LEN + ETHERNET + TAG];
    let head = &mut head[..VirtioHeader::LEN + frame.len()];
    head[..VirtioHeader::LEN].copy_from_slice(&with_frame(header, frame.len()).to_bytes());
    head[VirtioHeader::LEN..].copy_from_slice(frame);
    write(socket, head, pieces)
}
