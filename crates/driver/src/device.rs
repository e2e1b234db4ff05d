//! A network device of this thread's namespace.

use crate::{DriverError, sys};
use farpath_units::Rate;
use std::fs;

/// A network device of the calling thread's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Bytes before the IP header.
    pub header: u32,
    /// By which the kernel knows its namespace.
    pub(crate) netns: u64,
}

// linux/if_arp.h
const ETHER: u16 = 1;
const PPP: u16 = 512;
const RAWIP: u16 = 519;
const LOOPBACK: u16 = 772;
const NONE: u16 = 0xfffe;

impl Device {
    /// The one of that name.
    ///
    /// # Errors
    /// Where there is none, or its packets are of a kind that the driver does not know.
    pub fn named(name: &str) -> Result<Device, DriverError> {
        let device = || name.to_owned();
        let index = nix::net::if_::if_nametoindex(name)
            .map_err(|errno| DriverError::NoDevice { device: device(), source: errno.into() })?;
        let header =
            match sys::hardware(name).map_err(|source| DriverError::NoDevice { device: device(), source })? {
                ETHER | LOOPBACK => 14,
                NONE | PPP | RAWIP => 0,
                kind => return Err(DriverError::Framing { device: device(), kind }),
            };
        let netns =
            sys::netns_cookie().map_err(DriverError::kernel("ask which network namespace this is"))?;
        Ok(Device { name: device(), index, header, netns })
    }

    /// What its driver says that it is capable of; `None` where that does not say, or is up for nothing.
    pub fn speed(&self) -> Option<Rate> {
        let mbit: i64 =
            fs::read_to_string(format!("/sys/class/net/{}/speed", self.name)).ok()?.trim().parse().ok()?;
        Rate::from_bit_per_s(u64::try_from(mbit).ok()? * 1_000_000)
    }
}
