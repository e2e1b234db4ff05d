//! Congestion controllers of the kernel.

/// The controllers of the running kernel, `net.ipv4.tcp_available_congestion_control`; empty where it does not say.
#[cfg(target_os = "linux")]
pub fn available_controls() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    list.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Whether the running kernel has the controller of this name, or loads it when it is asked to.
#[cfg(target_os = "linux")]
pub fn has_control(name: &str) -> bool {
    use socket2::{Domain, Protocol, Socket, Type};
    use std::sync::OnceLock;

    // Read once: a sweep asks at each of its points.
    static AVAILABLE: OnceLock<Vec<String>> = OnceLock::new();
    if AVAILABLE.get_or_init(available_controls).iter().any(|known| known == name) {
        return true;
    }
    // A privileged kernel looks for a module by the name. What else may be refused is not that it is missing.
    let set = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .and_then(|socket| socket.set_tcp_congestion(name.as_bytes()));
    set.err().is_none_or(|error| error.kind() != std::io::ErrorKind::NotFound)
}
