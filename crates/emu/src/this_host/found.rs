//! The facts of the machine, in the network namespace of the calling thread.

use super::{HostFacts, RouteFacts};
use crate::netlink::Netlink;
use nix::time::{ClockId, clock_getres};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;

impl HostFacts {
    /// What this machine says of TCP, with the route `to` an address; without one, with its default route.
    ///
    /// # Errors
    /// The kernel does not answer, or has no route to that address.
    pub fn of_this_host(to: Option<IpAddr>) -> io::Result<HostFacts> {
        let mut sysctls = BTreeMap::new();
        for entry in fs::read_dir("/proc/sys/net/ipv4")? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Some can be written only.
            if let Ok(value) = fs::read_to_string(entry.path()) {
                let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
                sysctls.insert(format!("net.ipv4.{name}"), line);
            }
        }
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let plain = |c: &char| c.is_ascii_alphanumeric() || ".-_+~".contains(*c);
        let release = release.chars().filter(plain).collect();
        let hz = ticks_per_second();
        let route = Netlink::open()?.route_facts(to)?;
        Ok(HostFacts { release, hz, sysctls, route })
    }
}

impl Netlink {
    /// The route `to` an address, or the default route of IPv4 and else of IPv6; `None` where there is no default route.
    fn route_facts(&mut self, to: Option<IpAddr>) -> io::Result<Option<RouteFacts>> {
        let Some((index, mut facts)) = self.route_to(to)? else { return Ok(None) };
        let (device, mtu) = self.device(index)?;
        facts.device = device;
        facts.mtu = facts.mtu.or(mtu);
        facts.qdisc = self.queue(index)?;
        Ok(Some(facts))
    }
}

/// Ticks per second: the coarse clocks advance by ticks.
fn ticks_per_second() -> Option<u32> {
    let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).ok()?;
    let ns = u64::try_from(tick.tv_nsec()).ok().filter(|ns| *ns > 0 && tick.tv_sec() == 0)?;
    u32::try_from((1_000_000_000 + ns / 2) / ns).ok()
}
