//! Names of ICMP messages, and their numbers.

use crate::machine::Refusal;
use crate::syntax::IcmpSpec;

/// Codes of "destination unreachable" over IPv4, the first one 0 (RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section 5.2.7.1).
const CODES: [&str; 16] = [
    "net_unreachable",
    "host_unreachable",
    "protocol_unreachable",
    "port_unreachable",
    "frag_needed",
    "source_route_failed",
    "net_unknown",
    "host_unknown",
    "source_host_isolated",
    "net_prohibited",
    "host_prohibited",
    "net_unreachable_for_tos",
    "host_unreachable_for_tos",
    "packet_filtered",
    "precedence_violation",
    "precedence_cutoff",
];
/// Those over IPv6 (RFC 4443 section 3.1).
const CODES_V6: [&str; 7] = [
    "no_route",
    "admin_prohibited",
    "not_neighbour",
    "addr_unreachable",
    "port_unreachable",
    "policy_fail",
    "reject_route",
];

/// Type and code of a message.
pub fn numbers(message: &IcmpSpec, ipv6: bool) -> Result<(u8, u8), Refusal> {
    let code = |codes: &[&str], others: &str| {
        let name = message.code.as_deref().unwrap_or(codes[0]);
        let at = codes.iter().position(|own| *own == name);
        at.map(|at| at as u8).ok_or_else(|| {
            Refusal::new(format!("a code of ICMP{others}: {}", codes.join(", ")), format!("`{name}`"))
        })
    };
    match (message.kind.as_str(), ipv6) {
        ("unreachable", false) => Ok((3, code(&CODES, "")?)),
        ("unreachable", true) => Ok((1, code(&CODES_V6, "v6")?)),
        ("packet_too_big", true) => Ok((2, 0)),
        ("time_exceeded", false) => Ok((11, 0)),
        ("time_exceeded", true) => Ok((3, 0)),
        (kind, _) => Err(Refusal::new(
            "`icmp unreachable`, `icmp time_exceeded`, or over IPv6 `icmp packet_too_big`",
            format!("`icmp {kind}`"),
        )),
    }
}

/// The error of Linux that an unreachable destination over IPv4 is (`icmp_err_convert[]`).
pub fn error_name(message: &IcmpSpec) -> &'static str {
    match message.code.as_deref().unwrap_or(CODES[0]) {
        "net_unreachable" | "net_unknown" | "net_prohibited" | "net_unreachable_for_tos" => "ENETUNREACH",
        "protocol_unreachable" => "ENOPROTOOPT",
        "port_unreachable" => "ECONNREFUSED",
        "source_route_failed" => "EOPNOTSUPP",
        _ => "EHOSTUNREACH",
    }
}
