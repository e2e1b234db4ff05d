//! `[emulate]`: how an experiment is run on the running kernel.

use crate::error::ExperimentError;
use crate::reader::{Parameter, Reader, word};
use farpath_units::{Bytes, Duration};
use toml::Value;

/// How an experiment is run on the running kernel. It changes nothing for the other engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmulateOptions {
    /// How many of the seeds are run, from the first one on: a run takes real time.
    pub seeds: u64,
    /// Hand segments that follow each other over as one. Faster by far, and the receiver answers with fewer ACKs, as
    /// behind a network card that coalesces. Off, each segment arrives by itself, as in the simulator.
    pub coalesce: bool,
    /// Which IP carries the segments.
    pub ip: IpVersion,
    /// How packets are taken from the hosts.
    pub backend: Backend,
    /// How often cwnd, srtt ... are read from the kernel.
    pub sample: Duration,
    /// A run is void when more than one in a hundred of its packets is handed over later than this; see
    /// [`crate::lateness_budget`] for `None`.
    pub lateness: Option<Duration>,
    /// How often a void run is repeated before it stays void.
    pub repeats: u32,
    /// The most that the packets on the path may take. A path that could hold more is refused before the run.
    pub memory: Bytes,
}

/// Version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// RFC 791: 20 B of header, which the simulator counts too.
    V4,
    /// RFC 8200: 40 B of header.
    V6,
}

/// How packets are taken from the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// TUN where the machine lets it be opened, else packet sockets.
    Auto,
    /// A TUN device in each host.
    Tun,
    /// A veth device in each host, and packet sockets on their other ends.
    Packet,
}

impl Default for EmulateOptions {
    fn default() -> EmulateOptions {
        EmulateOptions {
            seeds: 1,
            coalesce: false,
            ip: IpVersion::V4,
            backend: Backend::Auto,
            sample: Duration::from_millis(10),
            lateness: None,
            repeats: 2,
            memory: Bytes(1_000_000_000),
        }
    }
}

impl Parameter for IpVersion {
    const EXPECTED: &'static str = "4 or 6";
    fn read(value: &Value, at: &crate::Location) -> Result<IpVersion, ExperimentError> {
        match value {
            Value::Integer(4) => Ok(IpVersion::V4),
            Value::Integer(6) => Ok(IpVersion::V6),
            other => Err(crate::reader::wrong_type(other, at, Self::EXPECTED)),
        }
    }
}

impl Parameter for Backend {
    const EXPECTED: &'static str = "`auto`, `tun` or `packet`";
    fn read(value: &Value, at: &crate::Location) -> Result<Backend, ExperimentError> {
        word(value, at, &[("auto", Backend::Auto), ("tun", Backend::Tun), ("packet", Backend::Packet)])
    }
}

/// Reads `[emulate]`.
pub(crate) fn read_emulate(reader: &mut Reader<'_>) -> Result<EmulateOptions, ExperimentError> {
    let default = EmulateOptions::default();
    let options = EmulateOptions {
        seeds: reader.or("seeds", default.seeds)?,
        coalesce: reader.or("coalesce", default.coalesce)?,
        ip: reader.or("ip", default.ip)?,
        backend: reader.or("backend", default.backend)?,
        sample: reader.or("sample", default.sample)?,
        lateness: match reader.value("lateness") {
            Some(value) => crate::reader::unless(value, &reader.at("lateness"), "auto")?,
            None => default.lateness,
        },
        repeats: reader.or("repeats", default.repeats)?,
        memory: reader.or("memory", default.memory)?,
    };
    if options.seeds == 0 {
        return Err(reader.at("seeds").refuse("at least one run is needed"));
    }
    // TCP_INFO is read from the kernel in a microsecond; faster than this it would disturb what it watches.
    if options.sample < Duration::from_millis(1) {
        let reason = format!("expected at least 1 ms, found {}", options.sample);
        return Err(reader.at("sample").refuse(reason));
    }
    if options.lateness == Some(Duration::ZERO) {
        return Err(reader.at("lateness").refuse("no run keeps to that; real time is never exact"));
    }
    if options.memory == Bytes::ZERO {
        return Err(reader.at("memory").refuse("there would be no room for a packet"));
    }
    Ok(options)
}
