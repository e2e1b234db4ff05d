//! `[linux]` of a stack: what the running kernel is told beside what follows from the parameters.

use crate::error::{ExperimentError, Location};
use crate::library::Files;
use crate::reader::{Reader, as_table, wrong_type};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::{Table, Value};

/// Settings of a Linux host that plays a stack, for what the stack's parameters do not say. They come on top of what
/// follows from those, and where both say something, these count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinuxSettings {
    /// Values by name, such as `net.ipv4.tcp_frto`.
    pub sysctls: BTreeMap<String, String>,
    /// The kernel's name of a congestion controller, such as `bbr`.
    pub congestion_control: Option<String>,
    /// A congestion controller of the user's, which is loaded into the kernel for the host: in place of the other.
    pub bpf: Option<BpfObject>,
    /// Buffers grow with the connection, up to `receive.buffer` and `send.buffer`, as Linux's do. Off: they are there from
    /// the beginning, as other stacks' are.
    pub autotuning: bool,
}

/// A BPF object file with a congestion controller, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfObject {
    /// The file.
    pub file: String,
    /// All of it.
    pub bytes: Arc<[u8]>,
}

impl LinuxSettings {
    /// Puts what `reader` says in place of what there is.
    pub(crate) fn override_by(
        &mut self,
        reader: &mut Reader<'_>,
        files: &Files,
    ) -> Result<(), ExperimentError> {
        let at = reader.location_of("sysctl");
        if let Some(value) = reader.value("sysctl") {
            self.read_sysctls(as_table(value, &at)?, "", &at)?;
        }
        if let Some(name) = reader.optional::<String>("congestion_control")? {
            // Names are in the kernel's hands; its limit is TCP_CA_NAME_MAX, a final zero included.
            if !(1..16).contains(&name.len()) || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                let reason = format!("expected a name of up to 15 letters such as `bbr`, found `{name}`");
                return Err(reader.location_of("congestion_control").refuse(reason));
            }
            (self.congestion_control, self.bpf) = (Some(name), None);
        }
        match reader.optional::<String>("bpf")? {
            None => {}
            // So that a sweep has one beside others.
            Some(name) if name == "none" => self.bpf = None,
            Some(name) => {
                let at = reader.location_of("bpf");
                if reader.says("congestion_control") {
                    let reason = format!(
                        "expected one of `bpf` and `congestion_control`, or `bpf = \"none\"`, found both with `{name}`"
                    );
                    return Err(at.refuse(reason));
                }
                (self.congestion_control, self.bpf) = (None, Some(files.object(&name, &at)?));
            }
        }
        self.autotuning = reader.or("autotuning", self.autotuning)?;
        Ok(())
    }

    /// Names may be quoted, or stand as tables in tables, as `--set sender.linux.sysctl.net.ipv4.tcp_frto=0` makes them.
    fn read_sysctls(&mut self, table: &Table, prefix: &str, at: &Location) -> Result<(), ExperimentError> {
        for (key, value) in table {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            let at = at.child(key);
            let value = match value {
                Value::Table(inner) => {
                    self.read_sysctls(inner, &name, &at)?;
                    continue;
                }
                Value::Integer(number) => number.to_string(),
                Value::String(text) if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => text.clone(),
                other => return Err(wrong_type(other, &at, "a whole number, or text in one line")),
            };
            // The name becomes a path below /proc/sys. These two families are each namespace's own.
            let plain = |part: &str| {
                !part.is_empty()
                    && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            };
            let own = name.starts_with("net.ipv4.") || name.starts_with("net.ipv6.");
            if !own || !name.split('.').all(plain) {
                let reason = format!(
                    "expected a sysctl of a network namespace such as `net.ipv4.tcp_frto`, found `{name}`"
                );
                return Err(at.refuse(reason));
            }
            self.sysctls.insert(name, value);
        }
        Ok(())
    }

    /// As `[linux]` says it; empty where nothing is said.
    pub(crate) fn to_table(&self) -> Table {
        let mut table = Table::new();
        if !self.sysctls.is_empty() {
            // As a number only where it is read back as the same text: `007` and `+7` stay text.
            let value = |text: &String| match text.parse::<i64>() {
                Ok(number) if number.to_string() == *text => Value::Integer(number),
                _ => Value::String(text.clone()),
            };
            let sysctls = self.sysctls.iter().map(|(name, text)| (name.clone(), value(text)));
            table.insert("sysctl".to_owned(), Value::Table(sysctls.collect()));
        }
        if let Some(name) = &self.congestion_control {
            table.insert("congestion_control".to_owned(), Value::String(name.clone()));
        }
        if let Some(object) = &self.bpf {
            table.insert("bpf".to_owned(), Value::String(object.file.clone()));
        }
        if self.autotuning {
            table.insert("autotuning".to_owned(), Value::Boolean(true));
        }
        table
    }
}
