//! The running machine as a stack: what its kernel, its sysctls and a route say, as differences from a shipped stack.
//!
//! [`HostFacts`] is what was found, [`HostStack`] what follows from it. The way back, from a stack to a kernel's settings, is
//! [`KernelProfile`](crate::KernelProfile).

#[cfg(target_os = "linux")]
mod found;
mod told;

use farpath_experiment::{ExperimentError, Stack};
use farpath_tcp::config::parameters;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::net::IpAddr;

/// What a Linux machine says of its TCP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostFacts {
    /// The kernel's release, such as `6.12.117-amd64`.
    pub release: String,
    /// Ticks per second (CONFIG_HZ), where the kernel tells.
    pub hz: Option<u32>,
    /// Sysctls by name, such as `net.ipv4.tcp_sack`.
    pub sysctls: BTreeMap<String, String>,
    /// The route whose attributes count; `None` where there is none.
    pub route: Option<RouteFacts>,
}

/// A route, and what it says to TCP. Attributes that it does not have are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteFacts {
    /// Where it leads; `None` for the default route.
    pub to: Option<IpAddr>,
    /// Its device.
    pub device: String,
    /// The queueing discipline of the device.
    pub qdisc: Option<String>,
    /// MTU of the route, or else of the device.
    pub mtu: Option<u32>,
    /// MSS that is announced (`advmss`).
    pub advmss: Option<u32>,
    /// Initial window, in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window, in segments.
    pub initrwnd: Option<u32>,
    /// Largest window that is announced, in bytes.
    pub window: Option<u32>,
    /// Whether each segment is acknowledged at once.
    pub quickack: bool,
    /// Floor of the RTO, in milliseconds.
    pub rto_min_ms: Option<u32>,
    /// Congestion controller (`congctl`).
    pub congctl: Option<String>,
}

/// A machine as a stack: a shipped one, and what is otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct HostStack {
    /// The kernel's release.
    pub release: String,
    /// The shipped stack of the nearest release.
    pub base: &'static str,
    /// What is otherwise than there.
    pub differences: Vec<Difference>,
    /// What the machine does and no parameter says.
    pub not_simulated: Vec<String>,
}

/// A value that is not the base's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The parameter, such as `rto.min`.
    pub key: String,
    /// Its value as TOML.
    pub value: String,
    /// The sysctl or attribute of a route that says so.
    pub from: String,
}

impl HostStack {
    /// The stack of a machine with these facts.
    ///
    /// # Errors
    /// A shipped stack is refused.
    pub fn from_facts(facts: &HostFacts) -> Result<HostStack, ExperimentError> {
        let base = base_of(&facts.release);
        let shipped = Stack::load(base)?;
        let told = told::Told::by(facts, shipped.clone());
        let mut differences = Vec::new();
        for row in parameters() {
            let value = row.get(&told.stack.config);
            if value != row.get(&shipped.config) {
                let from = told.sources.get(&row.key()).cloned().unwrap_or_default();
                differences.push(Difference {
                    key: row.key(),
                    value: farpath_experiment::value_to_toml(row, value),
                    from,
                });
            }
        }
        let mut linux = Vec::new();
        if told.stack.linux.autotuning != shipped.linux.autotuning {
            linux.push(("linux.autotuning".to_owned(), told.stack.linux.autotuning.to_string()));
        }
        if let Some(name) = &told.stack.linux.congestion_control {
            linux.push(("linux.congestion_control".to_owned(), format!("\"{name}\"")));
        }
        for (name, value) in &told.stack.linux.sysctls {
            if shipped.linux.sysctls.get(name) != Some(value) {
                linux.push((format!("linux.sysctl.{name}"), value.clone()));
            }
        }
        for (key, value) in linux {
            let from = told.sources.get(&key).cloned().unwrap_or_default();
            differences.push(Difference { key, value, from });
        }
        Ok(HostStack { release: facts.release.clone(), base, differences, not_simulated: told.not_simulated })
    }
}

/// The shipped stack of the release that is nearest.
fn base_of(release: &str) -> &'static str {
    match version(release) {
        Some(version) if version < (6, 5) => "linux-6.1",
        Some(version) if version < (6, 16) => "linux-6.12",
        _ => "linux-6.18",
    }
}

/// The version of a release such as `6.12.117-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let (major, rest) = release.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// As a stack file.
impl fmt::Display for HostStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "title = \"This host: Linux {}\"", self.release)?;
        writeln!(f, "source = \"its sysctls and a route of it, by `farpath stacks --of-this-host`\"")?;
        writeln!(f, "base = \"{}\"", self.base)?;
        let mut section = "";
        for Difference { key, value, from } in &self.differences {
            let (found, name) = match key.strip_prefix("linux.sysctl.") {
                Some(sysctl) => ("linux.sysctl", format!("\"{sysctl}\"")),
                None => {
                    key.split_once('.').map_or(("", key.clone()), |(found, name)| (found, name.to_owned()))
                }
            };
            if found != section {
                writeln!(f, "\n[{found}]")?;
                section = found;
            }
            writeln!(f, "{:39} # {from}", format!("{name} = {value}"))?;
        }
        if !self.not_simulated.is_empty() {
            let mut text = "\n# What this host does and no parameter says:\n".to_owned();
            for line in &self.not_simulated {
                writeln!(text, "# {line}")?;
            }
            f.write_str(&text)?;
        }
        Ok(())
    }
}
