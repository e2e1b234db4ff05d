//! `[emulate]`: how an experiment is run on a Linux kernel.

use crate::error::ExperimentError;
use crate::reader::{Parameter, Reader, word};
use farpath_units::{Bytes, Duration, Probability};
use toml::Value;

/// A second of computing is a quarter of an hour then.
const MAX_CPU_COST: f64 = 1000.0;

/// How an experiment is run on a Linux kernel. It changes nothing for the other engines.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulateOptions {
    /// On which kernel, and in whose time.
    pub clock: EmulationClock,
    /// In virtual time: how long a run may take of real time. What hangs in virtual time hangs for ever.
    pub give_up_after: Duration,
    /// In virtual time: how many seconds pass for each second of processor time that a program takes. What makes the path takes none.
    pub cpu_cost: f64,
    /// How many of the seeds are run, from the first one on: a run takes real time.
    pub seeds: u64,
    /// Hand segments that follow each other over as one. Faster by far, and the receiver answers with fewer ACKs, as
    /// behind a network card that coalesces. Off, each segment arrives by itself, as in the simulator.
    pub coalesce: bool,
    /// Which IP carries the segments.
    pub ip: IpVersion,
    /// How packets are taken from the hosts.
    pub backend: Backend,
    /// How often cwnd, srtt ... are read from the kernel; `None` for 10 ms, or in virtual time a quarter of a round trip
    /// where that is longer.
    pub sample: Option<Duration>,
    /// A run is void when more than one in a hundred of its packets is handed over later than this; see
    /// [`crate::lateness_budget`] for `None`.
    pub lateness: Option<Duration>,
    /// A run is void when one of its programs waited longer than this share of its time for a processor.
    pub processor_wait: Probability,
    /// How often a void run is repeated before it stays void.
    pub repeats: u32,
    /// The most that the packets on the path may take. A path that could hold more is refused before the run.
    pub memory: Bytes,
}

/// On which kernel, and in whose time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmulationClock {
    /// The running kernel, in real time.
    Real,
    /// A user-mode kernel, whose clock jumps over waits: the one of this name, or the newest that was built.
    Virtual(Option<String>),
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

impl EmulateOptions {
    /// How often cwnd, srtt ... are read over a round trip of so long: in virtual time waits cost nothing, and looks do.
    pub fn sample_over(&self, round_trip: Duration) -> Duration {
        let often = Duration::from_millis(10);
        self.sample.unwrap_or_else(|| match self.clock {
            EmulationClock::Real => often,
            EmulationClock::Virtual(_) => often.max(round_trip / 4),
        })
    }
}

impl Default for EmulateOptions {
    fn default() -> EmulateOptions {
        EmulateOptions {
            clock: EmulationClock::Real,
            give_up_after: Duration::from_secs(600),
            cpu_cost: 0.0,
            seeds: 1,
            coalesce: false,
            ip: IpVersion::V4,
            backend: Backend::Auto,
            sample: None,
            lateness: None,
            processor_wait: Probability::new(0.1).expect("a share"),
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

fn read_clock(reader: &mut Reader<'_>) -> Result<EmulationClock, ExperimentError> {
    let clock = match reader.value("clock") {
        Some(value) => word(value, &reader.location_of("clock"), &[("real", false), ("virtual", true)])?,
        None => false,
    };
    let kernel: Option<String> = reader.optional("kernel")?;
    match (clock, kernel) {
        (true, kernel) => Ok(EmulationClock::Virtual(kernel)),
        (false, None) => Ok(EmulationClock::Real),
        (false, Some(_)) => Err(reader.location_of("kernel").refuse(
            "only the running kernel is in real time; expected `emulate.clock = \"virtual\"` beside it",
        )),
    }
}

fn read_cpu_cost(reader: &mut Reader<'_>) -> Result<Option<f64>, ExperimentError> {
    let factor = match reader.value("cpu_cost") {
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Float(number)) => Some(*number),
        Some(other) => {
            let expected = format!("a factor from 0 to {MAX_CPU_COST}");
            return Err(crate::reader::wrong_type(other, &reader.location_of("cpu_cost"), &expected));
        }
        None => None,
    };
    match factor.filter(|factor| !(0.0..=MAX_CPU_COST).contains(factor)) {
        Some(found) => {
            let reason = format!("expected a factor from 0 to {MAX_CPU_COST}, found {found}");
            Err(reader.location_of("cpu_cost").refuse(reason))
        }
        None => Ok(factor),
    }
}

/// Reads `[emulate]`.
pub(crate) fn read_emulate(reader: &mut Reader<'_>) -> Result<EmulateOptions, ExperimentError> {
    let default = EmulateOptions::default();
    if reader.says("patience") {
        return Err(reader.location_of("patience").refuse("is now called `emulate.give_up_after`"));
    }
    let options = EmulateOptions {
        clock: read_clock(reader)?,
        give_up_after: reader.or("give_up_after", default.give_up_after)?,
        cpu_cost: read_cpu_cost(reader)?.unwrap_or(default.cpu_cost),
        seeds: reader.or("seeds", default.seeds)?,
        coalesce: reader.or("coalesce", default.coalesce)?,
        ip: reader.or("ip", default.ip)?,
        backend: reader.or("backend", default.backend)?,
        sample: match reader.value("sample") {
            Some(value) => crate::reader::unless(value, &reader.location_of("sample"), "auto")?,
            None => default.sample,
        },
        lateness: match reader.value("lateness") {
            Some(value) => crate::reader::unless(value, &reader.location_of("lateness"), "auto")?,
            None => default.lateness,
        },
        processor_wait: reader.or("processor_wait", default.processor_wait)?,
        repeats: reader.or("repeats", default.repeats)?,
        memory: reader.or("memory", default.memory)?,
    };
    if options.seeds == 0 {
        return Err(reader.location_of("seeds").refuse("at least one run is needed"));
    }
    // TCP_INFO is read from the kernel in a microsecond; faster than this it would disturb what it watches.
    if let Some(sample) = options.sample.filter(|&sample| sample < Duration::from_millis(1)) {
        return Err(reader.location_of("sample").refuse(format!("expected at least 1 ms, found {sample}")));
    }
    if options.give_up_after == Duration::ZERO {
        return Err(reader.location_of("give_up_after").refuse("no run ends at once"));
    }
    if options.cpu_cost > 0.0 && options.clock == EmulationClock::Real {
        return Err(reader.location_of("cpu_cost").refuse(
            "in real time programs take the time that they take; expected `emulate.clock = \"virtual\"` beside it",
        ));
    }
    if options.lateness == Some(Duration::ZERO) {
        return Err(reader.location_of("lateness").refuse("no run keeps to that; real time is never exact"));
    }
    if options.memory == Bytes::ZERO {
        return Err(reader.location_of("memory").refuse("there would be no room for a packet"));
    }
    Ok(options)
}
