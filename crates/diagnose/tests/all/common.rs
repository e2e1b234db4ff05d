//! Packets of one connection, and what is said of it.

use farpath_diagnose::{ConnectionReport, Diagnosis, Limit, Link, TcpPacket, parse};
use std::net::{Ipv4Addr, SocketAddr};

/// A packet with an acknowledgment and nothing else from one end to the other, and one back.
pub fn there_and_back() -> [TcpPacket; 2] {
    let end = |number, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, number), port));
    let [source, destination] = [end(1, 1000), end(2, 80)];
    [packet(source, destination), packet(destination, source)]
}

/// A packet of TCP with an acknowledgment and nothing else.
pub fn packet(source: SocketAddr, destination: SocketAddr) -> TcpPacket {
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&[0x45, 0, 0, 40]);
    (bytes[9], bytes[32], bytes[33]) = (6, 0x50, 0x10);
    let template = parse(Link::Raw, &bytes, 40).expect("a packet");
    TcpPacket { source, destination, window: 60_000, ..template }
}

/// What is said of these packets of one connection, in their order.
pub fn diagnosed<'a>(packets: impl IntoIterator<Item = (u64, &'a TcpPacket)>) -> ConnectionReport {
    let mut diagnosis = Diagnosis::default();
    for (number, (at, packet)) in (1..).zip(packets) {
        diagnosis.packet(number, 0, at, packet);
    }
    diagnosis.finish().connections.remove(0)
}

/// The share of its time that a limit has.
pub fn share(report: &ConnectionReport, limit: Limit) -> f64 {
    let found = report.limits.iter().find(|found| found.limit == limit);
    found.map_or(0.0, |found| found.time_s) / report.duration_s
}
