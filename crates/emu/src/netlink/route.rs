//! The route to the other host, and what it says to TCP.

use super::{Netlink, bits, family};
use crate::dress::RouteMetrics;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use std::io;
use std::net::IpAddr;

/// As the kernel takes them.
fn attributes(metrics: &RouteMetrics) -> Vec<RouteMetric> {
    /// linux/rtnetlink.h
    const RTAX_RTO_MIN: u32 = 13;
    let mut attributes = Vec::new();
    attributes.extend(metrics.initcwnd.map(RouteMetric::InitCwnd));
    attributes.extend(metrics.advmss.map(RouteMetric::Advmss));
    attributes.extend(metrics.quickack.then_some(RouteMetric::QuickAck(1)));
    if let Some(rto) = metrics.rto_min_ms {
        attributes.push(RouteMetric::RtoMin(rto));
        // TCP looks at no other (tcp_rto_min).
        attributes.push(RouteMetric::Lock(1 << RTAX_RTO_MIN));
    }
    attributes
}

impl Netlink {
    /// Says that `to` is behind a device, and is reached from `from`; in place of what was said before.
    pub(crate) fn set_route(
        &mut self,
        index: u32,
        from: IpAddr,
        to: IpAddr,
        metrics: &RouteMetrics,
        congestion_control: Option<&str>,
    ) -> io::Result<()> {
        let mut route = RouteMessage::default();
        route.header = RouteHeader {
            address_family: family(to),
            destination_prefix_length: bits(to),
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: if to.is_ipv4() { RouteScope::Link } else { RouteScope::Universe },
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        route.attributes.push(RouteAttribute::Destination(address_of(to)));
        route.attributes.push(RouteAttribute::PrefSource(address_of(from)));
        route.attributes.push(RouteAttribute::Oif(index));
        let mut metrics = attributes(metrics);
        metrics.extend(congestion_control.map(|name| RouteMetric::CcAlgo(name.to_string())));
        if !metrics.is_empty() {
            route.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.ask(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    /// Whether packets for `address` are taken here already. The kernel gives an IPv6 address its route from a work
    /// queue, some time after the address: a packet that came before would be dropped without a word.
    pub(crate) fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        let mut question = RouteMessage::default();
        question.header.address_family = family(address);
        question.header.destination_prefix_length = bits(address);
        question.attributes.push(RouteAttribute::Destination(address_of(address)));
        match self.ask(RouteNetlinkMessage::GetRoute(question), 0) {
            Ok(answers) => Ok(answers.iter().any(|answer| {
                matches!(answer, RouteNetlinkMessage::NewRoute(route) if route.header.kind == RouteType::Local)
            })),
            Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn address_of(ip: IpAddr) -> RouteAddress {
    match ip {
        IpAddr::V4(ip) => RouteAddress::Inet(ip),
        IpAddr::V6(ip) => RouteAddress::Inet6(ip),
    }
}
