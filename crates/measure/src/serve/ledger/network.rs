//! Whose an address is.

use std::net::{IpAddr, Ipv6Addr};

/// How wide a network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// An address of IPv4; of IPv6 a /64, of which one host may have every address.
    Host,
    /// A /48 of IPv6, as one site has: 65 536 of those.
    Site,
}

/// What is taken for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    pub level: Level,
    prefix: IpAddr,
}

/// Those that an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Networks {
    host: Network,
    site: Option<Network>,
}

impl Networks {
    pub fn containing(address: IpAddr) -> Networks {
        let network = |level, prefix| Network { level, prefix };
        match address.to_canonical() {
            IpAddr::V6(v6) => Networks {
                host: network(Level::Host, first(v6, 4)),
                site: Some(network(Level::Site, first(v6, 3))),
            },
            v4 => Networks { host: network(Level::Host, v4), site: None },
        }
    }

    /// The narrowest first.
    pub fn all(self) -> impl Iterator<Item = Network> {
        [Some(self.host), self.site].into_iter().flatten()
    }

    pub fn widest(self) -> Network {
        self.site.unwrap_or(self.host)
    }

    pub fn has(self, network: Network) -> bool {
        self.all().any(|one| one == network)
    }
}

/// The first so many groups of 16 bits.
fn first(address: Ipv6Addr, groups: usize) -> IpAddr {
    let mut segments = address.segments();
    segments[groups..].fill(0);
    Ipv6Addr::from(segments).into()
}
