//! Socket options, as far as a kernel takes them.

use crate::protocol::SocketAsked;
use farpath_traffic::SocketOptions;
use farpath_units::{Bytes, Duration};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::{fs, io};

/// Larger buffers are not asked of a kernel, whoever runs the program.
const MOST_BUFFER: u64 = 256 << 20;

/// Longest name of a congestion control (TCP_CA_NAME_MAX, its end left out).
const NAME: usize = 15;

/// What of it this kernel takes on a socket for `address`, and what not, each with the reason.
///
/// # Errors
/// There is no socket to try it on.
pub fn fit(asked: &SocketAsked, address: IpAddr) -> io::Result<(SocketOptions, Vec<String>)> {
    let mut unmatched = Vec::new();
    let ns = |ns: u64| Duration::from_nanos(ns);
    let mut buffer = |name: &str, bytes: Option<u64>| {
        let bytes = bytes?;
        if bytes > MOST_BUFFER {
            unmatched.push(format!("{name} = {}: more than {}", Bytes(bytes), Bytes(MOST_BUFFER)));
            return None;
        }
        Some(Bytes(bytes))
    };
    let mut options = SocketOptions {
        receive_buffer: buffer("SO_RCVBUF", asked.receive_buffer),
        send_buffer: buffer("SO_SNDBUF", asked.send_buffer),
        congestion_control: asked.congestion_control.clone(),
        nodelay: asked.nodelay,
        mss: asked.mss.map(Bytes),
        rto_min: asked.rto_min_ns.map(ns),
        rto_max: asked.rto_max_ns.map(ns),
        delack_max: asked.delack_max_ns.map(ns),
        ..SocketOptions::default()
    };
    // A name that is not there already would have a privileged kernel look for a module by it.
    let available = available();
    if let Some(mut name) = options.congestion_control.take_if(|name| !available.contains(name)) {
        if let Some((long, _)) = name.char_indices().nth(NAME) {
            name.truncate(long);
        }
        unmatched.push(format!(
            "TCP_CONGESTION = {name}: this kernel has {}: `modprobe tcp_{name}` may add it",
            available.join(", ")
        ));
    }
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    loop {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        let Err(refused) = options.apply(socket.as_fd()) else { return Ok((options, unmatched)) };
        match refused.option {
            "TCP_CONGESTION" => options.congestion_control = None,
            "SO_RCVBUF" => options.receive_buffer = None,
            "SO_SNDBUF" => options.send_buffer = None,
            "TCP_MAXSEG" => options.mss = None,
            "TCP_RTO_MIN_US" => options.rto_min = None,
            "TCP_RTO_MAX_MS" => options.rto_max = None,
            "TCP_DELACK_MAX_US" => options.delack_max = None,
            _ => options = SocketOptions::default(),
        }
        unmatched.push(refused.to_string());
    }
}

/// The congestion controls that the kernel has.
fn available() -> Vec<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn what_a_kernel_does_not_take_is_told_and_the_rest_is_set() {
        let asked = SocketAsked {
            congestion_control: Some("no-such".to_owned()),
            receive_buffer: Some(8760),
            send_buffer: Some(1 << 40),
            nodelay: true,
            mss: Some(40),
            ..SocketAsked::default()
        };
        let (options, unmatched) = fit(&asked, Ipv4Addr::LOCALHOST.into()).expect("sockets are to be had");
        assert_eq!(options.receive_buffer, Some(Bytes(8760)));
        assert!(options.nodelay && options.mss.is_none() && options.congestion_control.is_none());
        let told = |option: &str| unmatched.iter().filter(|text| text.contains(option)).count();
        assert_eq!([told("SO_SNDBUF"), told("TCP_CONGESTION"), told("TCP_MAXSEG")], [1; 3], "{unmatched:?}");
        assert_eq!(unmatched.len(), 3);
    }
}
