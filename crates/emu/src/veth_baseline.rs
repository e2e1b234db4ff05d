//! Two hosts with a veth pair between them and nothing else: what this kernel moves at best, to measure emulations against.

use crate::device::NAME;
use crate::host::{HostSettings, QUIET};
use crate::host_error::{BE_ROOT, HostError};
use crate::kernel_profile::RouteMetrics;
use crate::namespace::{Namespace, set_sysctl, set_sysctl_if_ipv6};
use crate::netlink::Netlink;
use std::io;
use std::os::fd::AsFd;

/// Two network namespaces, joined. Packets go from one to the other within the kernel; nobody counts, delays or drops
/// them. IPv4, with the addresses of [`HostSettings::near`] and [`HostSettings::far`].
#[derive(Debug)]
pub struct VethBaseline {
    near: Namespace,
    far: Namespace,
}

impl VethBaseline {
    /// Joins two new namespaces, which both have these sysctls.
    ///
    /// # Errors
    /// What the kernel refuses, or a sysctl that is not of a namespace.
    pub fn new(sysctls: &[(String, String)]) -> Result<VethBaseline, HostError> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        // Before there are devices: they are made with what is set then.
        for namespace in [&near, &far] {
            namespace.run(|| {
                QUIET.iter().try_for_each(|(name, value)| set_sysctl_if_ipv6(name, value))?;
                sysctls.iter().try_for_each(|(name, value)| set_sysctl(name, value))
            })??;
        }
        near.run(|| Netlink::open().and_then(|mut netlink| netlink.add_veth(NAME, NAME, far.as_fd())))?
            .map_err(failed("make a veth pair"))?;
        for (namespace, settings) in [(&near, HostSettings::near()), (&far, HostSettings::far())] {
            namespace.run(|| plug_in(&settings))?.map_err(failed("configure a veth device"))?;
        }
        Ok(VethBaseline { near, far })
    }

    /// The namespace of the near host.
    pub fn near(&self) -> &Namespace {
        &self.near
    }

    /// The namespace of the far host.
    pub fn far(&self) -> &Namespace {
        &self.far
    }
}

/// In the namespace of the calling thread.
fn plug_in(settings: &HostSettings) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let index = netlink.link(NAME)?.index;
    let (address, peer) = (settings.address.0.into(), settings.peer.0.into());
    netlink.set_up(index)?;
    netlink.add_address(index, address)?;
    netlink.set_route(index, address, peer, &RouteMetrics::default(), None)
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> HostError {
    move |error| HostError::kernel(what, BE_ROOT, error)
}
