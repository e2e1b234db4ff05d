//! What a script is played against: a simulated end, or a kernel.

use crate::code::Value;
use crate::packet::{Packet, Sent};
use crate::settings::Setting;
use crate::syntax::{Call, Expression, IcmpSpec};
use core::net::IpAddr;
use farpath_units::{Duration, Instant};

/// What a system call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Returned {
    /// Its value; -1 with an error.
    pub value: i64,
    /// The error's name.
    pub error: Option<String>,
    /// What it wrote into its arguments, by their place from 0.
    pub outputs: Vec<(usize, Expression)>,
}

impl Returned {
    /// A call that gives this value.
    pub fn value(value: i64) -> Returned {
        Returned { value, error: None, outputs: Vec::new() }
    }

    /// A call that fails with this error.
    pub fn error(name: &str) -> Returned {
        Returned { value: -1, error: Some(name.to_owned()), outputs: Vec::new() }
    }

    /// The same with something written into an argument.
    pub fn with(mut self, argument: usize, output: Expression) -> Returned {
        self.outputs.push((argument, output));
        self
    }
}

/// What becomes of a system call at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// It has ended.
    Ended(Returned),
    /// It blocks; [`Machine::take_ended`] tells this number when it has ended.
    Blocks(u64),
}

/// Why a machine does not do what a script asks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct Refusal {
    /// What it does.
    pub expected: String,
    /// What it was asked.
    pub found: String,
}

impl Refusal {
    /// A refusal in words.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Refusal {
        Refusal { expected: expected.into(), found: found.into() }
    }
}

/// The IP of a script, by its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Version 6 (`--ip_version=ipv6`).
    pub ipv6: bool,
    /// MTU of the device (`--mtu`).
    pub mtu: u16,
    /// Address of the end under test (`--local_ip`), looked at where that is somebody else's stack.
    pub local: Option<IpAddr>,
    /// Address of the other end (`--remote_ip`), likewise.
    pub remote: Option<IpAddr>,
    /// Port that the end under test listens at (`--bind_port`), likewise.
    pub port: Option<u16>,
}

impl Default for Network {
    fn default() -> Network {
        Network { ipv6: false, mtu: 1500, local: None, remote: None, port: None }
    }
}

impl Network {
    /// The MSS of segments as long as the MTU.
    pub fn mss(self) -> u16 {
        self.mtu - if self.ipv6 { 60 } else { 40 }
    }
}

/// How much later than it is due a timer of Linux's wheel expires at the most, after `wait`: a tick, and 8 or 64 ... ticks where it
/// waits for 63 or 504 ... of them (`kernel/time/timer.c`).
pub fn wheel_lateness(wait: Duration, tick: Duration) -> Duration {
    let ticks = wait.as_nanos() / tick.as_nanos().max(1);
    let level = (0..7).find(|level| ticks < 63 << (3 * level)).unwrap_or(7);
    if ticks == 0 { Duration::ZERO } else { Duration::from_nanos(tick.as_nanos() << (3 * level)) }
}

/// A TCP with sockets, and time.
pub trait Machine {
    /// The IP that the script is about, before anything else of it.
    fn begin(&mut self, network: Network) -> Result<(), Refusal>;

    /// How much later than it is due a timer of so long a wait may expire, where the end's timers are those of a wheel.
    fn timer_lateness(&self, _wait: Duration) -> Duration {
        Duration::ZERO
    }

    /// The time.
    fn now(&mut self) -> Instant;

    /// Lets time pass up to `until`, or to the first time before it at which a packet leaves or a call ends.
    fn advance(&mut self, until: Instant) -> Result<(), Refusal>;

    /// The next packet that has left.
    fn take_sent(&mut self) -> Option<Sent>;

    /// The next call that blocked and has ended: its number, when, and what it gave.
    fn take_ended(&mut self) -> Option<(u64, Instant, Returned)>;

    /// A packet comes in.
    fn inject(&mut self, packet: &Packet) -> Result<(), Refusal>;

    /// An ICMP message comes in about a segment of ours with this sequence number.
    fn inject_icmp(&mut self, ports: (u16, u16), message: &IcmpSpec, seq: u32) -> Result<(), Refusal>;

    /// A system call. Numbers of descriptors are the script's: a call that makes one gives it the number that is expected.
    fn call(&mut self, call: &Call) -> Result<Begun, Refusal>;

    /// Settings of a shell command.
    fn set(&mut self, settings: &[Setting]) -> Result<(), Refusal>;

    /// A value of `tcp_info` of the connection with these ports, local and remote; `None` where there is no such value.
    fn information(&mut self, ports: (u16, u16), name: &str) -> Option<Value>;

    /// The port that passive connections are made to.
    fn listening_port(&self) -> u16;
}
