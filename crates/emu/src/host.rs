//! A host: a network namespace with one device, on the path by itself.

use crate::device::{NAME, Tun, Veth};
use crate::host_error::{BE_ROOT, HostError};
use crate::kernel_profile::RouteMetrics;
use crate::maker::Process;
use crate::namespace::{Namespace, has_ipv6, set_sysctl, set_sysctl_if_ipv6};
use crate::netlink::{Netlink, all};
use crate::port::Port;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How packets leave a host and enter it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// TUN where it can be had, else packets.
    #[default]
    Auto,
    /// A TUN device.
    Tun,
    /// A veth pair and a packet socket.
    Packet,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Auto => "auto",
            Backend::Tun => "tun",
            Backend::Packet => "packet",
        })
    }
}

/// What a host is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSettings {
    /// Its own addresses.
    pub address: (Ipv4Addr, Ipv6Addr),
    /// Those of the host at the other end of the path.
    pub peer: (Ipv4Addr, Ipv6Addr),
    /// Whether all other hosts are behind its peer too: those of IPv4, and those of IPv6.
    pub default_routes: (bool, bool),
    /// Longest IP packet that it sends, bytes. IPv6 needs 1280; below, the host has IPv4 only.
    pub mtu: u32,
    /// Packets that the device keeps while the emulator is busy. What comes beyond is dropped outside the path,
    /// and counted: see [`Host::dropped`].
    pub queue_len: u32,
    /// Settings of the kernel for this namespace, in the order in which they are set: `("net.ipv4.tcp_sack", "0")`.
    pub sysctls: Vec<(String, String)>,
    /// What the route to the peer says to TCP.
    pub metrics: RouteMetrics,
    /// Congestion control of sockets that choose none. It is said by the route, which takes every one that the kernel
    /// has; `net.ipv4.tcp_congestion_control` takes those only that the machine allows to everybody.
    pub congestion_control: Option<String>,
    /// How packets leave it.
    pub backend: Backend,
    /// Whether it may leave checksums, and the splitting of many segments, to the emulator: faster by a factor.
    pub offload: bool,
}

impl HostSettings {
    /// Of the host that sends in forward direction.
    pub fn near() -> HostSettings {
        HostSettings {
            address: (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
            peer: (Ipv4Addr::new(10, 0, 0, 2), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
            default_routes: (false, false),
            mtu: 1500,
            // With the kernel's 500 to 1000 a reader that is 10 ms late at 1 Gbit/s loses packets that the path
            // does not know of.
            queue_len: 10_000,
            sysctls: Vec::new(),
            metrics: RouteMetrics::default(),
            congestion_control: None,
            backend: Backend::Auto,
            offload: true,
        }
    }

    /// Of the other host.
    pub fn far() -> HostSettings {
        let near = HostSettings::near();
        HostSettings { address: near.peer, peer: near.address, ..near }
    }

    fn check(&self) -> Result<(), HostError> {
        let refuse = |key, expected, got: &dyn fmt::Display| {
            Err(HostError::Setting { key, expected, got: got.to_string() })
        };
        // RFC 791: every host takes 68 bytes. A TUN device takes no more than 65535.
        if !(68..=65_535).contains(&self.mtu) {
            return refuse("mtu", "68 to 65535 bytes", &self.mtu);
        }
        if self.queue_len == 0 {
            return refuse("queue_len", "at least one packet", &self.queue_len);
        }
        if self.address.0 == self.peer.0 || self.address.1 == self.peer.1 {
            return refuse(
                "peer",
                "another address than the host's",
                &format!("{} {}", self.peer.0, self.peer.1),
            );
        }
        Ok(())
    }
}

/// Packets that a host's device has dropped, since it was made. A run in which these move is not of the path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceDrops {
    /// Of those that the host sent: the emulator did not take them in time.
    pub from_host: u64,
    /// Of those that were for the host.
    pub to_host: u64,
}

impl DeviceDrops {
    /// Both.
    pub fn total(self) -> u64 {
        self.from_host + self.to_host
    }
}

/// Settings before there is a device, that keep the kernel from speaking up by itself, and TCP from remembering.
pub(crate) const QUIET: [(&str, &str); 11] = [
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv4.conf.all.accept_redirects", "0"),
    ("net.ipv4.conf.default.accept_redirects", "0"),
    ("net.ipv6.conf.all.accept_ra", "0"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
    ("net.ipv6.conf.default.dad_transmits", "0"),
    // 1: no link-local address, which would be announced.
    ("net.ipv6.conf.default.addr_gen_mode", "1"),
    ("net.ipv6.conf.default.autoconf", "0"),
    // What a connection learnt would be the next one's beginning: no two runs would be alike.
    ("net.ipv4.tcp_no_metrics_save", "1"),
];

enum Device {
    Tun(Tun),
    Veth(Veth),
}

/// A host on the path: a namespace, its device, and settings that nobody else has. Gone when it and its ports are
/// dropped, and when the process ends, however it does.
pub struct Host {
    namespace: Namespace,
    /// A conversation with the kernel about its namespace, and its device.
    inside: Mutex<(Netlink, Device)>,
    backend: Backend,
    instead: Option<String>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("namespace", &self.namespace).field("backend", &self.backend).finish()
    }
}

impl Host {
    /// Makes it. No packet leaves it before somebody in it sends one.
    pub fn new(settings: &HostSettings) -> Result<Host, HostError> {
        settings.check()?;
        let namespace = Namespace::new()?;
        let (netlink, device, instead) = namespace.run(|| set_up(settings))??;
        let backend = match device {
            Device::Tun(_) => Backend::Tun,
            Device::Veth(_) => Backend::Packet,
        };
        Ok(Host { namespace, inside: Mutex::new((netlink, device)), backend, instead })
    }

    /// Its namespace: enter it, and sockets are the host's.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The backend that it has.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Why [`Backend::Auto`] took the second best; `None` where it did not.
    pub fn instead_of_tun(&self) -> Option<&str> {
        self.instead.as_deref()
    }

    /// Its place on the path. Every port of a host takes from the same queue: one is enough.
    pub fn port(&self) -> Box<dyn Port> {
        match &self.inside.lock().unwrap_or_else(PoisonError::into_inner).1 {
            Device::Tun(tun) => Box::new(tun.port()),
            Device::Veth(veth) => Box::new(veth.port()),
        }
    }

    /// Another queueing discipline at its device; `limit` is that of a `pfifo`, in packets.
    pub fn set_queue(&self, kind: &str, limit: Option<u32>) -> Result<(), HostError> {
        let set = || -> io::Result<()> {
            let (netlink, _) = &mut *self.inside.lock().unwrap_or_else(PoisonError::into_inner);
            let index = netlink.link(NAME)?.index;
            netlink.set_queue(index, kind, limit)
        };
        set().map_err(|error| HostError::kernel(format!("give a host's device the queue {kind}"), "", error))
    }

    /// Another route from an address of its own to the other host's.
    pub fn set_route(&self, from: IpAddr, to: IpAddr, metrics: &RouteMetrics) -> Result<(), HostError> {
        let set = || -> io::Result<()> {
            let (netlink, _) = &mut *self.inside.lock().unwrap_or_else(PoisonError::into_inner);
            let index = netlink.link(NAME)?.index;
            netlink.set_route(index, from, to, metrics, None)
        };
        set().map_err(|error| HostError::kernel(format!("give a host a route to {to}"), "", error))
    }

    /// What its device has dropped so far.
    pub fn dropped(&self) -> Result<DeviceDrops, HostError> {
        let count = || -> io::Result<DeviceDrops> {
            let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
            let (netlink, device) = &mut *inside;
            let statistics = netlink.link(NAME)?.statistics;
            let hidden = match device {
                Device::Tun(_) => (0, 0),
                Device::Veth(veth) => veth.dropped()?,
            };
            Ok(DeviceDrops {
                from_host: statistics.tx_dropped + hidden.0,
                to_host: statistics.rx_dropped + hidden.1,
            })
        };
        count().map_err(|error| HostError::kernel("read what a host's device dropped", "", error))
    }
}

/// Runs inside the host's namespace.
fn set_up(settings: &HostSettings) -> Result<(Netlink, Device, Option<String>), HostError> {
    let failed = |what: String| move |error: io::Error| HostError::kernel(what, BE_ROOT, error);
    for (name, value) in QUIET {
        set_sysctl_if_ipv6(name, value)?;
    }
    let (device, instead) = make_device(settings)?;
    let mut netlink = Netlink::open().map_err(failed("speak to the kernel about devices".to_string()))?;
    let index = netlink.link(NAME).map_err(failed("find a host's device".to_string()))?.index;
    netlink
        .configure(index, settings.mtu, settings.queue_len)
        .map_err(failed(format!("give a device an MTU of {} bytes", settings.mtu)))?;
    Process::current()
        .and_then(|process| netlink.set_alias(index, process.to_alias()))
        .map_err(failed("write on a host's device who made it".to_string()))?;
    netlink.set_no_queue(index).map_err(failed("take the queue off a host's device".to_string()))?;
    netlink.set_up(index).map_err(failed("bring a host's device up".to_string()))?;
    for (address, peer) in settings.pairs() {
        netlink.add_address(index, address).map_err(failed(format!("give a host the address {address}")))?;
        netlink
            .set_route(index, address, peer, &settings.metrics, settings.congestion_control.as_deref())
            .map_err(failed(settings.route_to(peer)))?;
        let (v4, v6) = settings.default_routes;
        if if address.is_ipv4() { v4 } else { v6 } {
            let to = all(address);
            netlink
                .set_route(index, address, to, &settings.metrics, settings.congestion_control.as_deref())
                .map_err(failed(settings.route_to(to)))?;
        }
        wait_until_local(&mut netlink, address).map_err(failed(format!("use a host's address {address}")))?;
    }
    // Last: theirs is the last word.
    for (name, value) in &settings.sysctls {
        set_sysctl(name, value)?;
    }
    Ok((netlink, device, instead))
}

#[expect(clippy::disallowed_methods, reason = "the kernel works on it in real time, and tells nobody")]
pub(crate) fn wait_until_local(netlink: &mut Netlink, address: IpAddr) -> io::Result<()> {
    // Some 100 us as a rule; seconds where the machine starves its kernel threads.
    let give_up_after = std::time::Instant::now() + Duration::from_secs(10);
    while !netlink.is_local(address)? {
        if std::time::Instant::now() > give_up_after {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}

impl HostSettings {
    /// For an error.
    fn route_to(&self, peer: IpAddr) -> String {
        let control = self.congestion_control.as_ref();
        let control = control.map_or_else(String::new, |name| format!(" with congestion control `{name}`"));
        format!("give a host the route to {peer}{control}")
    }

    /// Address and peer, of each family that the host has.
    fn pairs(&self) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        // RFC 8200 §5: no IPv6 over links of less.
        let ipv6 = self.mtu >= 1280 && has_ipv6();
        [
            Some((IpAddr::V4(self.address.0), IpAddr::V4(self.peer.0))),
            ipv6.then_some((IpAddr::V6(self.address.1), IpAddr::V6(self.peer.1))),
        ]
        .into_iter()
        .flatten()
    }
}

fn make_device(settings: &HostSettings) -> Result<(Device, Option<String>), HostError> {
    let veth = || Veth::new(settings.offload, settings.mtu, settings.queue_len).map(Device::Veth);
    match settings.backend {
        Backend::Tun => Ok((Device::Tun(Tun::new(settings.offload)?), None)),
        Backend::Packet => Ok((veth()?, None)),
        Backend::Auto => match Tun::new(settings.offload) {
            Ok(tun) => Ok((Device::Tun(tun), None)),
            Err(why) => Ok((veth()?, Some(why.to_string()))),
        },
    }
}
