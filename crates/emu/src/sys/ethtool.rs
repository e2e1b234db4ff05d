//! Offloads of a device, by ethtool's control calls.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

// linux/ethtool.h; not in the libc crate.
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;

/// Has the host finish every packet of `device` before it sends it: checksums, and TCP split to the MTU.
/// The device is one of the calling thread's namespace.
pub(crate) fn turn_offloads_off(device: &str) -> io::Result<()> {
    // Any socket will do: it says which namespace is meant.
    let socket = UnixDatagram::unbound()?;
    // In this order: without checksums the kernel takes TSO away by itself, and GSO is what remains.
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_STXCSUM] {
        let mut value = Value { command, data: 0 };
        let mut request = interface_request(device)?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: SIOCETHTOOL follows `ifr_data` to one `ethtool_value`; both live across the call.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// linux/sockios.h; the libc crate has it for some targets only.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// An `ifreq` that names a device.
pub(super) fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain data of integers and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays for the final zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.bytes().any(|byte| byte == 0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is no name of a device")));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
