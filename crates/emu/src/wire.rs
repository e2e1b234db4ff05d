//! Two network interfaces of this host, joined like the ends of a wire.

use crate::device::{TakenPort, WirePort};
use crate::host_error::{BE_ROOT, HostError};
use crate::netlink::Netlink;
use crate::{Port, sys};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// The ports of two interfaces of the calling thread's namespace: what comes in at one is to go out at the other, in the frame that it
/// came in. The interfaces should have no addresses of their own: this host would answer too.
///
/// # Errors
/// Where there is no such interface, or packets may not be taken from it.
pub fn join(near: &str, far: &str) -> Result<[Box<dyn Port>; 2], HostError> {
    let [near, far] = [open(near)?, open(far)?];
    let port = |socket: &Arc<File>, other: &Arc<File>| -> Box<dyn Port> {
        Box::new(WirePort { socket: Arc::clone(socket), other: Arc::clone(other) })
    };
    Ok([port(&near, &far), port(&far, &near)])
}

/// The kernel's side of a TUN device of this name in the namespace of the calling thread: what the stack in user space behind it sends
/// comes out, and what goes in it receives. Nothing of that is for this kernel, as long as its addresses are not this kernel's.
///
/// # Errors
/// Where there is no such device, or packets may not be taken from it.
pub fn behind(name: &str) -> Result<Box<dyn Port>, HostError> {
    let failed = |what: &str| {
        let what = format!("{what} {name}");
        move |error: io::Error| HostError::kernel(what, BE_ROOT, error)
    };
    let link =
        Netlink::open().and_then(|mut netlink| netlink.link(name)).map_err(failed("find the device"))?;
    let socket = sys::packet::open(link.index).map_err(failed("take packets from the device"))?;
    Ok(Box::new(TakenPort(File::from(socket))))
}

fn open(name: &str) -> Result<Arc<File>, HostError> {
    let failed = |what: &str| {
        let what = format!("{what} {name}");
        move |error: io::Error| HostError::kernel(what, BE_ROOT, error)
    };
    let link =
        Netlink::open().and_then(|mut netlink| netlink.link(name)).map_err(failed("find the interface"))?;
    let socket = sys::packet::open(link.index).map_err(failed("take packets from the interface"))?;
    sys::packet::take_all(socket.as_fd(), link.index).map_err(failed("take all frames of the interface"))?;
    sys::packet::tell_tags(socket.as_fd()).map_err(failed("be told of the VLANs of"))?;
    Ok(Arc::new(File::from(socket)))
}
