//! The route to the other host, and what it says to TCP.

use super::{Netlink, bits, family};
use crate::kernel_profile::RouteMetrics;
use crate::this_host::RouteFacts;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// As the kernel takes them.
fn attributes(metrics: &RouteMetrics) -> Vec<RouteMetric> {
    /// linux/rtnetlink.h
    const RTAX_MTU: u32 = 2;
    const RTAX_RTO_MIN: u32 = 13;
    let mut attributes = Vec::new();
    attributes.extend(metrics.initcwnd.map(RouteMetric::InitCwnd));
    attributes.extend(metrics.advmss.map(RouteMetric::Advmss));
    attributes.extend(metrics.quickack.then_some(RouteMetric::QuickAck(1)));
    attributes.extend(metrics.mtu.map(RouteMetric::Mtu));
    attributes.extend(metrics.rto_min_ms.map(RouteMetric::RtoMin));
    // TCP looks at no other floor of the RTO (tcp_rto_min), and ICMP and the device change an MTU that is not locked.
    let locks =
        metrics.mtu.map_or(0, |_| 1 << RTAX_MTU) | metrics.rto_min_ms.map_or(0, |_| 1 << RTAX_RTO_MIN);
    if locks != 0 {
        attributes.push(RouteMetric::Lock(locks));
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
        let route = route(index, from, to, metrics, congestion_control);
        self.ask(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    /// Says that all that no other route reaches is behind `gateway`, a neighbour on a device.
    pub(crate) fn set_gateway(&mut self, index: u32, from: IpAddr, gateway: IpAddr) -> io::Result<()> {
        let mut route = route(index, from, all(from), &RouteMetrics::default(), None);
        route.header.scope = RouteScope::Universe;
        route.attributes.push(RouteAttribute::Gateway(address_of(gateway)));
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

    /// The route `to` an address; without one, the default route of the main table, by IPv4 or else by IPv6, which may be
    /// missing. With the number of its device.
    pub(crate) fn route_to(&mut self, to: Option<IpAddr>) -> io::Result<Option<(u32, RouteFacts)>> {
        let mut question = RouteMessage::default();
        let Some(to) = to else {
            return match self.default_route(AddressFamily::Inet)? {
                None => self.default_route(AddressFamily::Inet6),
                found => Ok(found),
            };
        };
        question.header.address_family = family(to);
        question.header.destination_prefix_length = bits(to);
        question.attributes.push(RouteAttribute::Destination(address_of(to)));
        let answers = self.ask(RouteNetlinkMessage::GetRoute(question), 0)?;
        let found = answers.iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => facts(route, Some(to)),
            _ => None,
        });
        found.map(Some).ok_or_else(|| io::Error::other("the kernel answered without a route"))
    }

    /// The default route of the main table, with the number of its device.
    pub(crate) fn default_route(&mut self, family: AddressFamily) -> io::Result<Option<(u32, RouteFacts)>> {
        let mut question = RouteMessage::default();
        question.header.address_family = family;
        let answers = self.ask(RouteNetlinkMessage::GetRoute(question), NLM_F_DUMP)?;
        let mut routes: Vec<RouteMessage> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewRoute(route) => Some(route),
                _ => None,
            })
            .filter(|route| route.header.destination_prefix_length == 0)
            .filter(|route| route.header.table == RouteHeader::RT_TABLE_MAIN)
            .filter(|route| route.header.kind == RouteType::Unicast)
            .collect();
        routes.sort_by_key(priority);
        Ok(routes.first().and_then(|route| facts(route, None)))
    }
}

/// The destination of a default route: every address of the family of this one.
pub(crate) fn all(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn route(
    index: u32,
    from: IpAddr,
    to: IpAddr,
    metrics: &RouteMetrics,
    congestion_control: Option<&str>,
) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header = RouteHeader {
        address_family: family(to),
        destination_prefix_length: if to.is_unspecified() { 0 } else { bits(to) },
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: if to.is_ipv4() { RouteScope::Link } else { RouteScope::Universe },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    if !to.is_unspecified() {
        route.attributes.push(RouteAttribute::Destination(address_of(to)));
    }
    route.attributes.push(RouteAttribute::PrefSource(address_of(from)));
    route.attributes.push(RouteAttribute::Oif(index));
    let mut metrics = attributes(metrics);
    metrics.extend(congestion_control.map(|name| RouteMetric::CcAlgo(name.to_string())));
    if !metrics.is_empty() {
        route.attributes.push(RouteAttribute::Metrics(metrics));
    }
    route
}

/// Of several routes to the same place the least is taken.
fn priority(route: &RouteMessage) -> u32 {
    let of = |attribute: &RouteAttribute| match attribute {
        RouteAttribute::Priority(priority) => Some(*priority),
        _ => None,
    };
    route.attributes.iter().find_map(of).unwrap_or(0)
}

/// What a route says to TCP, and the number of its device.
fn facts(route: &RouteMessage, to: Option<IpAddr>) -> Option<(u32, RouteFacts)> {
    let mut index = None;
    let mut facts = RouteFacts { to, ..RouteFacts::default() };
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(number) => index = Some(*number),
            RouteAttribute::Metrics(metrics) => metrics.iter().for_each(|metric| match metric {
                RouteMetric::Mtu(mtu) => facts.mtu = Some(*mtu),
                RouteMetric::Advmss(mss) => facts.advmss = Some(*mss),
                RouteMetric::InitCwnd(segments) => facts.initcwnd = Some(*segments),
                RouteMetric::InitRwnd(segments) => facts.initrwnd = Some(*segments),
                RouteMetric::Window(bytes) => facts.window = Some(*bytes),
                RouteMetric::QuickAck(on) => facts.quickack = *on != 0,
                RouteMetric::RtoMin(ms) => facts.rto_min_ms = Some(*ms),
                RouteMetric::CcAlgo(name) => facts.congctl = Some(name.clone()),
                _ => {}
            }),
            _ => {}
        }
    }
    Some((index?, facts))
}

fn address_of(ip: IpAddr) -> RouteAddress {
    match ip {
        IpAddr::V4(ip) => RouteAddress::Inet(ip),
        IpAddr::V6(ip) => RouteAddress::Inet6(ip),
    }
}
