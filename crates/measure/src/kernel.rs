//! What this kernel is, and what it is set to.

use crate::said::Said;
use farpath_emu::KernelProfile;
use farpath_tcp::config::Config;
use std::collections::BTreeSet;
use std::fs;

/// Name and release.
pub fn name() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// Values of those of the names that a stack may ask for; what else is asked for is nobody's business.
pub fn values(names: &[String]) -> Vec<(String, Option<Said>)> {
    let config = Config::default();
    let known: BTreeSet<String> =
        KernelProfile::for_config(&config, &config).sysctls.into_iter().map(|sysctl| sysctl.name).collect();
    let asked: BTreeSet<&String> = names.iter().filter(|name| known.contains(*name)).collect();
    asked.into_iter().map(|name| (name.clone(), value(name).map(Said::from))).collect()
}

fn value(name: &str) -> Option<String> {
    let file = format!("/proc/sys/{}", name.replace('.', "/"));
    let text = fs::read_to_string(file).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_stack_asks_for_is_told() {
        let names = ["net.ipv4.tcp_sack", "net.ipv4.tcp_fastopen_key", "kernel.hostname", "../../etc/passwd"];
        let told = values(&names.map(str::to_owned));
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, "net.ipv4.tcp_sack");
        assert!(told[0].1.is_some());
    }
}
