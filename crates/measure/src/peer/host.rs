//! A host as it is written, its addresses, and a connection to one of them.

use super::{Family, MeasureError};
use crate::serve;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};

/// How long an address is tried.
const CONNECT_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// The addresses of a host, in the order in which the resolver gives them.
pub fn addresses(host: &str, family: Family) -> Result<Vec<SocketAddr>, MeasureError> {
    let not_a_host = || MeasureError::NotAHost { host: host.to_owned() };
    let (name, port) = split(host).ok_or_else(not_a_host)?;
    let unknown = |source| MeasureError::Unknown { host: host.to_owned(), source };
    let all: Vec<SocketAddr> = (name, port).to_socket_addrs().map_err(unknown)?.collect();
    let (wanted, name): (fn(&SocketAddr) -> bool, _) = match family {
        Family::Any => (|_| true, "IP"),
        Family::V4 => (SocketAddr::is_ipv4, "IPv4"),
        Family::V6 => (SocketAddr::is_ipv6, "IPv6"),
    };
    let wanted: Vec<SocketAddr> = all.into_iter().filter(wanted).collect();
    match wanted.is_empty() {
        true => Err(MeasureError::NoSuchFamily { host: host.to_owned(), family: name }),
        false => Ok(wanted),
    }
}

/// `HOST`, `HOST:PORT`, `ADDRESS`, `[ADDRESS]:PORT`.
fn split(host: &str) -> Option<(&str, u16)> {
    if let Some(rest) = host.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            None if rest.is_empty() => Some((address, serve::PORT)),
            None => None,
            Some(port) => Some((address, port.parse().ok()?)),
        };
    }
    match host.rsplit_once(':') {
        _ if host.is_empty() => None,
        None => Some((host, serve::PORT)),
        // More than one colon is an address of IPv6.
        Some((before, _)) if before.contains(':') => Some((host, serve::PORT)),
        Some((name, port)) if !name.is_empty() => Some((name, port.parse().ok()?)),
        Some(_) => None,
    }
}

pub fn reach(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), MeasureError> {
    let mut last = None;
    for &address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(stream) => return Ok((stream, address)),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                last = Some(MeasureError::Refused { address });
            }
            Err(source) => {
                // The standard library's own words for it are of no help.
                let source = match source.kind() {
                    ErrorKind::TimedOut => {
                        io::Error::new(ErrorKind::TimedOut, format!("no answer in {CONNECT_WITHIN:?}"))
                    }
                    _ => source,
                };
                last = Some(MeasureError::Unreachable { address, source });
            }
        }
    }
    Err(last.expect("there is an address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_written_as_elsewhere() {
        for (text, name, port) in [
            ("far.example", "far.example", serve::PORT),
            ("far.example:81", "far.example", 81),
            ("192.0.2.1", "192.0.2.1", serve::PORT),
            ("192.0.2.1:9", "192.0.2.1", 9),
            ("2001:db8::1", "2001:db8::1", serve::PORT),
            ("[2001:db8::1]", "2001:db8::1", serve::PORT),
            ("[2001:db8::1]:443", "2001:db8::1", 443),
        ] {
            assert_eq!(split(text), Some((name, port)), "{text}");
        }
        for text in ["", ":9", "host:port", "host:70000", "[::1", "[::1]9"] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
