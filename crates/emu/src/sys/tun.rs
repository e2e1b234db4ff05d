//! The control calls of a TUN device (Documentation/networking/tuntap.rst).

use super::ethtool::interface_request;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What the host may leave undone on packets that it sends: checksums, and the splitting of TCP.
pub(crate) const OFFLOADS: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;

/// Makes a device of that name, which speaks bare IP with a virtio header before it, in the namespace in which
/// `file` was opened. It is gone when the last copy of `file` is closed.
pub(crate) fn attach(file: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = interface_request(name)?;
    let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives across the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    done(result)
}

/// Sets how long the virtio header is.
pub(crate) fn set_header_len(file: BorrowedFd<'_>, len: usize) -> io::Result<()> {
    let len = len as c_int;
    // SAFETY: TUNSETVNETHDRSZ reads one int, which lives across the call.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const len) })
}

/// Sets what the host may leave undone; 0 for nothing.
pub(crate) fn set_offloads(file: BorrowedFd<'_>, offloads: u32) -> io::Result<()> {
    // SAFETY: the argument of TUNSETOFFLOAD is a number, not a pointer.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) })
}

fn done(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
