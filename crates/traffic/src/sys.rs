//! The calls that `socket2` and `rustix` have no safe form of: any socket option, as bytes, a number by `ioctl()`, and a message with
//! whatever control messages come with it.

use libc::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Reads an option into `value`; gives how many bytes the kernel wrote.
pub fn get_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &mut [u8]) -> io::Result<usize> {
    let mut len = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: `value` may be written for `len` bytes, and the kernel writes no more than that; both outlive the call.
    let done =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len) };
    if done == 0 { Ok((len as usize).min(value.len())) } else { Err(io::Error::last_os_error()) }
}

/// A number that an `ioctl()` of sockets tells.
pub fn get_number(fd: BorrowedFd<'_>, request: u32) -> io::Result<i32> {
    let mut number: c_int = 0;
    // SAFETY: both requests that are made write one int, which outlives the call.
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, &raw mut number) };
    if done == 0 { Ok(number) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option to `value`.
pub fn set_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let len = libc::socklen_t::try_from(value.len()).expect("an option is a few bytes");
    // SAFETY: `value` may be read for `len` bytes and outlives the call; the kernel copies it.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads of a socket into `buffer`, and control messages into `control`; gives the bytes of both.
pub fn receive_message(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    control: &mut [u8],
    flags: c_int,
) -> io::Result<(usize, usize)> {
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: zeros are a message header: no name, no vector, no control messages.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control.len() as _;
    // SAFETY: the header names two slices with their lengths, of which the kernel writes no more; all outlive the call.
    let received = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, flags) };
    match usize::try_from(received) {
        Ok(received) => Ok((received, (header.msg_controllen as usize).min(control.len()))),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
