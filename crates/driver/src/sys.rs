//! What the kernel is asked for beyond what others offer safely.

use libbpf_rs::btf::Btf;
use libbpf_rs::{AsRawLibbpf, OpenMap, OpenObject, libbpf_sys};
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Has what libbpf warns of taken by `crate::driver::note`, in place of stderr. libbpf-rs's own way ends the process where a message is not UTF-8, such
/// as one with a name out of an object that is none.
pub(crate) fn take_warnings() {
    type Print = unsafe extern "C" fn(libbpf_sys::libbpf_print_level, *const c_char, *mut c_void) -> c_int;
    let print: Print = print;
    // SAFETY: but for how its list of arguments is called, which is a pointer on every machine, it is libbpf's type of it.
    let print = unsafe { std::mem::transmute::<Option<Print>, libbpf_sys::libbpf_print_fn_t>(Some(print)) };
    // SAFETY: a function is there for ever.
    unsafe { libbpf_sys::libbpf_set_print(print) };
}

unsafe extern "C" fn print(
    level: libbpf_sys::libbpf_print_level,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    if level == libbpf_sys::LIBBPF_WARN {
        // SAFETY: libbpf has them for each other.
        let text = unsafe { vsprintf::vsprintf_raw(format, arguments) };
        crate::driver::note(&text.unwrap_or_default());
    }
    0
}

/// The types that an object says it has; `None` where it says nothing.
pub(crate) fn types_of(object: &OpenObject) -> libbpf_rs::Result<Option<Btf<'_>>> {
    // SAFETY: it is there as long as `object` is, which the result borrows.
    Btf::from_bpf_object(unsafe { object.as_libbpf_object().as_ref() })
}

/// The type of a map's values, by its number among its object's.
pub(crate) fn value_type(map: &OpenMap<'_>) -> u32 {
    // SAFETY: it is there as long as `map` is.
    unsafe { libbpf_sys::bpf_map__btf_value_type_id(map.as_libbpf_object().as_ptr()) }
}

/// Whether a map is pinned when its object is loaded: it stays in a BPF file system then.
pub(crate) fn is_pinned_by_its_object(map: &OpenMap<'_>) -> bool {
    // SAFETY: it is there as long as `map` is.
    unsafe { !libbpf_sys::bpf_map__pin_path(map.as_libbpf_object().as_ptr()).is_null() }
}

/// Where a program is attached: `enum bpf_attach_type`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hook {
    Ingress = libbpf_sys::BPF_TCX_INGRESS as isize,
    Egress = libbpf_sys::BPF_TCX_EGRESS as isize,
    SocketOperations = libbpf_sys::BPF_CGROUP_SOCK_OPS as isize,
}

/// Attaches a program to a device of the calling thread's namespace, by its number, or to a control group, by a descriptor. It
/// is off again when the link is closed and nowhere pinned.
pub(crate) fn link(program: BorrowedFd<'_>, target: i32, hook: Hook) -> io::Result<OwnedFd> {
    // SAFETY: no options; the descriptors live across the call.
    let link =
        unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), target, hook as u32, std::ptr::null()) };
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the kernel gave this descriptor to us a moment ago; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Gives what a descriptor of BPF stands for a name in a BPF file system.
pub(crate) fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero and lives across the call.
    let result = unsafe { libbpf_sys::bpf_obj_pin(fd.as_raw_fd(), path.as_ptr()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// The device on which a pinned link is; `None` of other links. Its number is one of the namespace that it was attached in.
pub(crate) fn linked_device(path: &Path) -> io::Result<Option<u32>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero and lives across the call.
    let fd = unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel gave this descriptor to us a moment ago; nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: plain data of integers, for which all zeros is a value.
    let mut info: libbpf_sys::bpf_link_info = unsafe { std::mem::zeroed() };
    let mut len = std::mem::size_of_val(&info) as u32;
    // SAFETY: `info` is `len` bytes, and both live across the call.
    let result =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd.as_raw_fd(), (&raw mut info).cast(), &raw mut len) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    if info.type_ != libbpf_sys::BPF_LINK_TYPE_TCX {
        return Ok(None);
    }
    // SAFETY: of a link of this type the kernel has filled in this member.
    Ok(Some(unsafe { info.__bindgen_anon_1.tcx.ifindex }))
}

/// asm-generic/socket.h; not in the libc crate for every libc.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// By which the kernel knows the network namespace of the calling thread.
pub(crate) fn netns_cookie() -> io::Result<u64> {
    let socket = UnixDatagram::unbound()?;
    let mut cookie = 0_u64;
    let mut len = std::mem::size_of::<u64>() as libc::socklen_t;
    // SAFETY: the value is `len` bytes, and both live across the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut len,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}

/// linux/sockios.h
const SIOCGIFHWADDR: libc::Ioctl = 0x8927;

/// `ARPHRD_*` of a device of the calling thread's namespace.
pub(crate) fn hardware(device: &str) -> io::Result<u16> {
    // SAFETY: plain data of integers and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.is_empty() || device.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    // Any socket will do: it says which namespace is meant.
    let socket = UnixDatagram::unbound()?;
    // SAFETY: SIOCGIFHWADDR reads the name and writes the address, both in `request`.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIFHWADDR, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled in this member.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}
