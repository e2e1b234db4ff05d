//! Kernel profile: what the running kernel is told to behave like a stack, and what it cannot be made to do.

mod notes;
mod sysctls;

#[cfg(target_os = "linux")]
use crate::namespace;
use farpath_experiment::{LinuxSettings, Stack};
use farpath_tcp::HEADERS;
use farpath_tcp::config::Config;
use farpath_units::{Bytes, Duration};
use std::fmt;

/// What makes the running kernel behave like one end's stack, as far as it can be made to.
///
/// Everything is set in the host's own network namespace or on its sockets. Nothing of the machine is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelProfile {
    /// Values of the namespace.
    pub sysctls: Vec<Sysctl>,
    /// Metrics of the route to the other end.
    pub route: RouteMetrics,
    /// Longest segment; [`KernelProfile::mtu`] makes the device keep to it.
    pub mss: Bytes,
    /// The kernel's name of the congestion controller, set on each socket: the default of a namespace may only be one
    /// that everybody may use. `None` where no Linux has the stack's controller and the stack names no other for it.
    pub congestion_control: Option<String>,
    /// The BPF object file that has it in place of the kernel; whoever loads it gives it a name.
    pub bpf: Option<String>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_DELACK_MAX_US`, which recent kernels have: for a delay below the kernel's 40 ms.
    pub delayed_ack_max: Option<Duration>,
    /// To this the window that this end announces is brought down on its way; `None` leaves it. The kernel's own
    /// settings for it no longer hold (a route's `window` and `TCP_WINDOW_CLAMP` are in force in the SYN alone), and
    /// its buffers count their own overhead.
    pub window_clamp: Option<Bytes>,
    /// `SO_RCVLOWAT` of a program that takes in a transfer, whose end wakes it in any case. While a program reads, the
    /// kernel gathers arriving segments and acknowledges them once: up to six segments an ACK, traced. It reads less often
    /// with this.
    pub receive_low_water: Option<Bytes>,
    /// How fast the program reads, in bytes per second; `None` reads at once.
    pub read_rate: Option<u64>,
    /// Each parameter of the stack that the kernel does not follow, and what it does in its place.
    pub unmatched: Vec<String>,
}

/// Who says how long a socket's buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffers {
    /// They have what the stack says from the beginning.
    Given,
    /// They grow up to it with the connection, as the kernel's do.
    Growing,
}

/// One value of a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// Its name, with dots.
    pub name: String,
    /// What is written.
    pub value: String,
    /// Which parameter asks for it, or why it is pinned.
    pub why: String,
    /// What a kernel that does not have it does as if it were set to; `None` where every kernel since 4.19 has it.
    pub absent: Option<&'static str>,
}

impl Sysctl {
    /// What is said where the kernel does not have it. `Ok` where that makes no difference.
    ///
    /// # Errors
    /// What the kernel does in its place; `None` where it ought to have it.
    pub fn missing(&self) -> Result<(), Option<String>> {
        match self.absent {
            None => Err(None),
            Some(value) if value == self.value => Ok(()),
            Some(value) => Err(Some(format!(
                "{}: this kernel does not have {}, and behaves as with {value} in place of {}",
                self.why, self.name, self.value
            ))),
        }
    }
}

/// Metrics of a route (`ip route ... initcwnd 10`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteMetrics {
    /// Initial window, in segments.
    pub initcwnd: Option<u32>,
    /// Floor of the RTO, in milliseconds; it has to be locked to be in force.
    pub rto_min_ms: Option<u32>,
    /// Acknowledge each segment at once.
    pub quickack: bool,
    /// The MSS that is announced, where the device's MTU does not say it.
    pub advmss: Option<u32>,
    /// MTU of the path, where it is not the device's; ICMP does not change it.
    pub mtu: Option<u32>,
}

impl KernelProfile {
    /// The profile of the end with `config`, opposite of one with `other_end`.
    pub fn for_config(config: &Config, other_end: &Config) -> KernelProfile {
        KernelProfile::with(config, other_end, Buffers::Given)
    }

    fn with(config: &Config, other_end: &Config, buffers: Buffers) -> KernelProfile {
        let mut profile = KernelProfile {
            sysctls: sysctls::sysctls_for(config, other_end, buffers),
            route: RouteMetrics {
                initcwnd: Some(config.congestion.initial_window.clamp(1, MOST_SEGMENTS)),
                rto_min_ms: Some(millis(config.rto.min.min(sysctls::RTO_MAX.1)).max(1)),
                quickack: config.receive.ack_every == 1 || config.receive.ack_delay.is_zero(),
                // Below these the kernel would announce more than the MTU allows for: 256 B by IPv4, 1220 B by IPv6
                // (net.ipv4.route.min_adv_mss, net.ipv6.route.min_adv_mss).
                advmss: (config.mss < Bytes(1220)).then(|| narrow(config.mss.0)),
                mtu: None,
            },
            mss: config.mss,
            congestion_control: config.congestion.control.linux_name().map(str::to_owned),
            bpf: None,
            nodelay: !config.send.nagle,
            delayed_ack_max: delayed_ack_max(config),
            window_clamp: window_clamp(config, other_end),
            receive_low_water: low_water(config, buffers),
            read_rate: config.receive.read_rate,
            unmatched: Vec::new(),
        };
        profile.unmatched = notes::unmatched_by_kernel(config, other_end, buffers);
        profile
    }

    /// The profile of `stack`, its own `[linux]` settings included.
    pub fn of_stack(stack: &Stack, other_end: &Stack) -> KernelProfile {
        // A window that grows is behind a rate that is there at once, and cannot be seen to grow behind holes.
        let explicit = &stack.config.explicit_rate;
        let rate = explicit.wanted.is_some() && explicit.size_buffers;
        let buffers = if stack.linux.autotuning && !rate { Buffers::Growing } else { Buffers::Given };
        let mut profile = KernelProfile::with(&stack.config, &other_end.config, buffers);
        profile.put_on(&stack.linux);
        profile
    }

    /// Puts `settings` on top of what is there.
    fn put_on(&mut self, settings: &LinuxSettings) {
        for (name, value) in &settings.sysctls {
            let why = "the stack's [linux] table".to_owned();
            match self.sysctls.iter_mut().find(|sysctl| sysctl.name == *name) {
                Some(sysctl) => (sysctl.value, sysctl.why) = (value.clone(), why),
                None => {
                    let (name, value) = (name.clone(), value.clone());
                    self.sysctls.push(Sysctl { name, value, why, absent: None });
                }
            }
        }
        if settings.congestion_control.is_some() {
            self.congestion_control.clone_from(&settings.congestion_control);
        }
        if let Some(object) = &settings.bpf {
            (self.congestion_control, self.bpf) = (None, Some(object.file.clone()));
        }
    }

    /// Tells a host what the profile says of its namespace. Gives what this kernel does not have.
    ///
    /// # Errors
    /// The first value that the kernel refuses.
    #[cfg(target_os = "linux")]
    pub fn tell(&self, host: &crate::Host) -> Result<Vec<&Sysctl>, crate::HostError> {
        host.namespace().run(|| {
            let mut missing = Vec::new();
            for sysctl in &self.sysctls {
                if namespace::has_sysctl(&sysctl.name) {
                    namespace::set_sysctl(&sysctl.name, &sysctl.value)?;
                } else {
                    missing.push(sysctl);
                }
            }
            Ok(missing)
        })?
    }

    /// What the device may carry, by the version of IP.
    pub fn mtu(&self, ip: farpath_experiment::IpVersion) -> u32 {
        let (headers, least) = match ip {
            farpath_experiment::IpVersion::V4 => (HEADERS.0, 68),
            farpath_experiment::IpVersion::V6 => (HEADERS.0 + 20, 1280),
        };
        narrow(self.mss.0 + headers).clamp(least, 65_535)
    }
}

/// As `ip route` takes them, a blank before each.
impl fmt::Display for RouteMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RouteMetrics { initcwnd, rto_min_ms, quickack, advmss, mtu } = self;
        if let Some(segments) = initcwnd {
            write!(f, " initcwnd {segments}")?;
        }
        if let Some(ms) = rto_min_ms {
            write!(f, " rto_min {ms}ms")?;
        }
        if *quickack {
            write!(f, " quickack 1")?;
        }
        if let Some(mss) = advmss {
            write!(f, " advmss {mss}")?;
        }
        if let Some(mtu) = mtu {
            write!(f, " mtu lock {mtu}")?;
        }
        Ok(())
    }
}

/// For people: commands and options, the reason beside each.
impl fmt::Display for KernelProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.sysctls.iter().map(|sysctl| sysctl.name.len() + 3 + sysctl.value.len()).max();
        let width = name.unwrap_or(0);
        writeln!(f, "# Sysctls of the host's network namespace")?;
        for Sysctl { name, value, why, .. } in &self.sysctls {
            writeln!(f, "{:width$}  # {why}", format!("{name} = {value}"))?;
        }
        write!(f, "\n# Route to the other end\nip route replace ADDRESS dev DEVICE{}", self.route)?;
        let mtu = self.mtu(farpath_experiment::IpVersion::V4);
        writeln!(f, "\n\n# Device\nip link set dev DEVICE mtu {mtu}")?;
        writeln!(f, "\n# Each socket, before it is connected or listens")?;
        if let Some(control) = &self.congestion_control {
            writeln!(f, "TCP_CONGESTION {control}")?;
        }
        if let Some(file) = &self.bpf {
            writeln!(f, "TCP_CONGESTION of the BPF object {file}, once it is loaded")?;
        }
        if self.nodelay {
            writeln!(f, "TCP_NODELAY 1")?;
        }
        if let Some(delay) = self.delayed_ack_max {
            writeln!(f, "TCP_DELACK_MAX_US {}", delay.as_nanos() / 1000)?;
        }
        if let Some(bytes) = self.receive_low_water {
            writeln!(f, "SO_RCVLOWAT {}", bytes.0)?;
        }
        if let Some(rate) = self.read_rate {
            writeln!(f, "read {rate} B/s, no more")?;
        }
        if let Some(clamp) = self.window_clamp {
            writeln!(f, "\n# On the path\nwindows that this end announces are brought down to {clamp}")?;
        }
        if !self.unmatched.is_empty() {
            writeln!(f, "\n# What the kernel does otherwise")?;
            for line in &self.unmatched {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

/// The longest that the kernel withholds an ACK on a steady flow (TCP_DELACK_MIN, TCP_ATO_MIN).
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// What TCP_DELACK_MAX_US accepts, at the least.
const LEAST_DELAYED_ACK: Duration = Duration::from_millis(5);

fn delayed_ack_max(config: &Config) -> Option<Duration> {
    let delay = config.receive.ack_delay;
    (!delay.is_zero() && config.receive.ack_every > 1 && delay < DELAYED_ACK)
        .then(|| delay.max(LEAST_DELAYED_ACK))
}

/// The kernel keeps cwnd as a signed number; what is beyond this is no window of one.
const MOST_SEGMENTS: u32 = 1 << 30;

/// A program that reads at once is as well off with a read for each of these: with so much unread the window that the
/// kernel's room allows for is still above what is announced.
const LOW_WATER: Bytes = Bytes(32 << 10);

fn low_water(config: &Config, buffers: Buffers) -> Option<Bytes> {
    (buffers == Buffers::Given && config.receive.read_rate.is_none()).then_some(LOW_WATER)
}

/// Largest window without scaling (RFC 9293 §3.1).
const UNSCALED: Bytes = Bytes(65_535);

fn window_clamp(config: &Config, other_end: &Config) -> Option<Bytes> {
    // What limits the other end's cwnd limits the window that it is shown: the kernel has no such parameter.
    let buffer = config.receive.buffer.min(other_end.congestion.cwnd_clamp.unwrap_or(Bytes::MAX));
    // Without scaling the kernel announces no more by itself.
    (config.scales_with(other_end) || buffer < UNSCALED).then_some(buffer)
}

fn millis(time: Duration) -> u32 {
    narrow(time.as_nanos().div_ceil(1_000_000))
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
