//! The machine's own network behind a host: a router with address translation.

mod names;

use crate::device::PREFIX;
use crate::host::wait_until_local;
use crate::host_error::{BE_ROOT, HostError};
use crate::kernel_profile::RouteMetrics;
use crate::maker::Process;
use crate::namespace::{has_ipv6, set_sysctl};
use crate::nat::Masquerade;
use crate::netlink::Netlink;
use crate::{Host, HostSettings};
use names::Relay;
use netlink_packet_route::AddressFamily;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The far host's device towards the machine.
const DEVICE: &str = "uplink";

/// What of the machine's network can be reached by hosts behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// IPv6 too; IPv4 always.
    pub ipv6: bool,
}

impl Reach {
    /// As this machine has it now. Nothing is changed.
    ///
    /// # Errors
    /// When this process may not, or this machine forwards nothing.
    pub fn of_this_machine() -> Result<Reach, HostError> {
        let refused = |reason: &str| HostError::Uplink { reason: reason.to_owned() };
        if !crate::has_privileges() {
            return Err(refused(
                "it takes root, with CAP_NET_ADMIN and CAP_SYS_ADMIN; with --far COMMAND in its place, for a server of your own, it does not",
            ));
        }
        let on = |name: &str| {
            let path = format!("/proc/sys/net/{}", name.replace('.', "/"));
            fs::read_to_string(path).is_ok_and(|value| value.trim() != "0")
        };
        // A setting of the whole machine, with which it would be left where this process is killed: whoever owns the machine decides.
        if !on("ipv4.ip_forward") {
            return Err(refused(
                "this machine forwards no packets, net.ipv4.ip_forward is 0: as root, `sysctl -w net.ipv4.ip_forward=1`, which makes it forward between all its networks",
            ));
        }
        let ipv6 = has_ipv6() && on("ipv6.conf.all.forwarding") && {
            let route = Netlink::open().and_then(|mut netlink| netlink.default_route(AddressFamily::Inet6));
            route
                .map_err(|error| HostError::kernel("ask for this machine's routes", BE_ROOT, error))?
                .is_some()
        };
        Ok(Reach { ipv6 })
    }

    /// Of the host at whose peer the uplink is.
    pub fn near(self) -> HostSettings {
        HostSettings { default_routes: (true, self.ipv6), ..HostSettings::near() }
    }
}

/// A link from a host to the network of the calling thread, and addresses translated at both of its ends: nobody there need know a route
/// to the host's peer, or have another address than it. Gone when it and the host are dropped, and when the process ends, however it does.
#[derive(Debug)]
pub struct Uplink {
    device: String,
    /// Last: the tables go when these do.
    _translations: [Masquerade; 2],
    relay: Option<Relay>,
    resolver: Option<String>,
}

/// The two ends of a link.
struct Ends {
    /// The number of the first of some that is free.
    number: u32,
    machine: Vec<IpAddr>,
    host: Vec<IpAddr>,
}

impl Ends {
    /// RFC 6598's shared addresses, which are for the middle of such translations; and unique local ones (RFC 4193).
    fn numbered(number: u32, ipv6: bool) -> Ends {
        let block = u32::from(Ipv4Addr::new(100, 64, 0, 0)) + (number % 0x4000) * 4;
        let v6 = |host| Ipv6Addr::new(0xfd66, 0x6172, 0x7061, (number % 0x1_0000) as u16, 0, 0, 0, host);
        let end = |host: u16| {
            let v4 = IpAddr::V4(Ipv4Addr::from(block + u32::from(host)));
            [Some(v4), ipv6.then_some(IpAddr::V6(v6(host)))].into_iter().flatten().collect()
        };
        Ends { number, machine: end(1), host: end(2) }
    }

    /// Some that this machine does not have. Two processes do not have the same number.
    fn free(netlink: &mut Netlink, ipv6: bool) -> io::Result<Ends> {
        let first = std::process::id();
        for number in first..first + 64 {
            let ends = Ends::numbered(number, ipv6);
            if netlink.link(&ends.device()).is_err() && !netlink.is_local(ends.machine[0])? {
                return Ok(ends);
            }
        }
        Err(io::Error::other("all of 64 are taken"))
    }

    fn device(&self) -> String {
        format!("{PREFIX}{}", self.number)
    }
}

impl Uplink {
    /// From `near` by way of `host`, its peer, to the network of the calling thread.
    ///
    /// # Errors
    /// When the kernel has no address translation, or refuses something.
    pub fn between(near: &Host, host: &Host, reach: Reach) -> Result<Uplink, HostError> {
        let failed = |what: &'static str| move |error: io::Error| HostError::kernel(what, BE_ROOT, error);
        let translation = failed(
            "translate addresses by nf_tables, which --uplink takes: Linux 5.12 or later with CONFIG_NFT_MASQ",
        );
        let addresses = failed("give an uplink its addresses and routes");

        let mut netlink = Netlink::open().map_err(addresses)?;
        let ends =
            Ends::free(&mut netlink, reach.ipv6).map_err(failed("find free addresses for an uplink"))?;
        let device = ends.device();
        let space = host.namespace();
        netlink
            .add_veth(&device, DEVICE, std::os::fd::AsFd::as_fd(space))
            .map_err(failed("make an uplink's devices (veth)"))?;
        let index = netlink.link(&device).map_err(addresses)?.index;
        Process::current()
            .and_then(|process| netlink.set_alias(index, process.to_alias()))
            .map_err(addresses)?;
        set_sysctl(&format!("net.ipv4.conf.{device}.forwarding"), "1")?;
        if reach.ipv6 {
            set_sysctl(&format!("net.ipv6.conf.{device}.forwarding"), "1")?;
        }
        join(&mut netlink, index, &ends.machine, &ends.host).map_err(addresses)?;
        let of_machine = Masquerade::for_sources(&device, &ends.host).map_err(translation)?;

        // What is made in it may have hosts of its own behind it.
        near.namespace().run(|| forward(reach))??;
        let peer = HostSettings::near().address;
        let peers: Vec<IpAddr> =
            [Some(peer.0.into()), reach.ipv6.then(|| peer.1.into())].into_iter().flatten().collect();
        let of_host = space.run(|| {
            let mut netlink = Netlink::open().map_err(addresses)?;
            let index = netlink.link(DEVICE).map_err(addresses)?.index;
            join(&mut netlink, index, &ends.host, &ends.machine).map_err(addresses)?;
            for (own, gateway) in ends.host.iter().zip(&ends.machine) {
                netlink.set_gateway(index, *own, *gateway).map_err(addresses)?;
            }
            forward(reach)?;
            Masquerade::for_sources(DEVICE, &peers).map_err(translation)
        })??;
        let (relay, resolver) = Relay::for_this_machine(space)?;
        Ok(Uplink { device, _translations: [of_machine, of_host], relay, resolver })
    }

    /// What a program at the host's peer needs in its `/etc/resolv.conf`, where the machine's names a server that is only reached from it.
    pub fn resolver(&self) -> Option<&str> {
        self.relay.as_ref().and(self.resolver.as_deref())
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        // With it its other end. Where it is refused, it goes with the host.
        let _ = Netlink::open().and_then(|mut netlink| netlink.remove(&self.device));
    }
}

/// The namespace of the calling thread forwards packets: what is a host's own to say.
fn forward(reach: Reach) -> Result<(), HostError> {
    set_sysctl("net.ipv4.ip_forward", "1")?;
    if reach.ipv6 { set_sysctl("net.ipv6.conf.all.forwarding", "1") } else { Ok(()) }
}

/// Gives one end of a link its addresses, and routes to the other's.
fn join(netlink: &mut Netlink, index: u32, own: &[IpAddr], other: &[IpAddr]) -> io::Result<()> {
    netlink.set_up(index)?;
    for (own, other) in own.iter().zip(other) {
        netlink.add_address(index, *own)?;
        netlink.set_route(index, *own, *other, &RouteMetrics::default(), None)?;
        wait_until_local(netlink, *own)?;
    }
    Ok(())
}
