//! Packet sockets (packet(7)) with a virtio header before each frame.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

// linux/if_packet.h; not in the libc crate for every libc.
const PACKET_STATISTICS: c_int = 6;
const PACKET_AUXDATA: c_int = 8;
const PACKET_VNET_HDR: c_int = 15;
const PACKET_QDISC_BYPASS: c_int = 20;
const PACKET_IGNORE_OUTGOING: c_int = 23;

/// Of `tp_status`: there was a tag.
const VLAN_VALID: u32 = 1 << 4;

/// `struct tpacket_auxdata`
#[repr(C)]
#[derive(Clone, Copy)]
struct Auxiliary {
    status: u32,
    len: u32,
    captured: u32,
    mac: u16,
    network: u16,
    vlan: u16,
    vlan_protocol: u16,
}

/// Bytes of packets that may wait in the socket: a window of 32 MB, twice, for the kernel counts what it holds around
/// them too.
const BUFFER: c_int = 64 << 20;

/// A socket that takes every frame which comes in by the device of that index, and sends frames out by it.
pub(crate) fn open(index: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // No protocol yet: until it is bound, frames of every device would come in.
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel gave this descriptor to us a moment ago; nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let on: c_int = 1;
    set_option(socket.as_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, &on)?;
    // Else the emulator would hear itself.
    set_option(socket.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &on)?;
    set_option(socket.as_fd(), libc::SOL_PACKET, PACKET_QDISC_BYPASS, &on)?;
    set_buffer(socket.as_fd(), libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
    set_buffer(socket.as_fd(), libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
    bind(socket.as_fd(), index)?;
    Ok(socket)
}

/// Frames for others are taken too, as long as the socket is open.
pub(crate) fn take_all(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index as c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the kernel reads one `packet_mreq`, which lives across the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            size_of_val(&request) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// [`receive`] is told of VLAN tags from now on, which the kernel takes out of frames.
pub(crate) fn tell_tags(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, PACKET_AUXDATA, &1)
}

/// The next frame that waits: its first bytes, and those of its virtio header, into `head`, the others into `buffer`. Gives how many
/// those are, and the VLAN's tag that was there, as on the wire.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    head: &mut [u8],
    buffer: &mut [u8],
) -> io::Result<Option<(usize, Option<[u8; 4]>)>> {
    let mut pieces = [io::IoSliceMut::new(head), io::IoSliceMut::new(buffer)];
    // Larger than CMSG_SPACE of what is asked for, and aligned for it.
    let mut control = [0u64; 8];
    // SAFETY: plain data of integers and pointers, for which all zeros is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr().cast();
    message.msg_iovlen = pieces.len() as _;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let len = loop {
        // SAFETY: `IoSliceMut` is laid out as `iovec`; all that the message points to lives across the call and is as long as said.
        let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
        if let Ok(len) = usize::try_from(len) {
            break len;
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    };
    let head_len = pieces[0].len();
    // SAFETY: the kernel has filled in the control data that the message points to.
    let tag = unsafe { tag_of(&message) };
    Ok(Some((len.saturating_sub(head_len), tag)))
}

/// # Safety
/// The message's control data are those of a call that has returned.
unsafe fn tag_of(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: as promised.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !control.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR point to whole headers.
        let header = unsafe { &*control };
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_PACKET, PACKET_AUXDATA) {
            // SAFETY: what is of this type has this behind it.
            let found: Auxiliary = unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(control).cast()) };
            let [a, b] = found.vlan_protocol.to_be_bytes();
            let [c, d] = found.vlan.to_be_bytes();
            return (found.status & VLAN_VALID != 0).then_some([a, b, c, d]);
        }
        // SAFETY: as above.
        control = unsafe { libc::CMSG_NXTHDR(message, control) };
    }
    None
}

/// Frames that came in and found no room, since the last call.
pub(crate) fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    // `struct tpacket_stats`: packets, drops. Reading sets both to zero.
    let mut statistics = [0u32; 2];
    let mut len = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `statistics`, which is that long.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            statistics.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics[1]) }
}

/// As much as we want by force, which takes a privilege over the machine; else as much as `net.core.*mem_max` allows.
fn set_buffer(socket: BorrowedFd<'_>, by_force: c_int, as_allowed: c_int) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, by_force, &BUFFER)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, as_allowed, &BUFFER))
}

fn bind(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain integers, for which all zeros is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as c_int;
    // SAFETY: the address lives across the call and is as long as said.
    let result = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_option(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one int, which lives across the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
