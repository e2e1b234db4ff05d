//! What a machine or a user lacks for the driver.

use std::fmt;
use std::fs;

/// Something that the driver needs and that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Missing {
    /// CAP_BPF, or CAP_SYS_ADMIN.
    CapBpf,
    /// CAP_NET_ADMIN.
    CapNetAdmin,
    /// CAP_PERFMON, or CAP_SYS_ADMIN: programs follow the kernel's own pointers.
    CapPerfmon,
    /// The process is in a user namespace, whose capabilities do not reach BPF.
    InitialUserNamespace,
    /// Linux 6.6, for tcx links and for links of struct_ops.
    Kernel,
    /// /sys/kernel/btf/vmlinux.
    Btf,
    /// A TCP congestion control made of BPF: CONFIG_BPF_JIT, and its BTF.
    StructOps,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::CapBpf => "no CAP_BPF (run as root)",
            Missing::CapNetAdmin => "no CAP_NET_ADMIN (run as root)",
            Missing::CapPerfmon => "no CAP_PERFMON (run as root)",
            Missing::InitialUserNamespace => "in a user namespace, whose capabilities do not reach BPF (run as the machine's root)",
            Missing::Kernel => "this kernel is older than Linux 6.6, and has no tcx links",
            Missing::Btf => "this kernel does not say what it is made of: no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)",
            Missing::StructOps => "this kernel takes no congestion control made of BPF (CONFIG_BPF_JIT, CONFIG_BPF_SYSCALL)",
        })
    }
}

const BTF: &str = "/sys/kernel/btf/vmlinux";
// linux/capability.h
const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// All that is not there. Nothing is changed.
pub fn missing() -> Vec<Missing> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut missing = capabilities(&read("/proc/self/status"));
    if !is_initial(&read("/proc/self/uid_map")) {
        missing.push(Missing::InitialUserNamespace);
    }
    if release(&read("/proc/sys/kernel/osrelease")).is_some_and(|release| release < (6, 6)) {
        missing.push(Missing::Kernel);
    }
    match fs::read(BTF) {
        Err(_) => missing.push(Missing::Btf),
        // The type that the kernel wraps a congestion control of BPF in: names stand in BTF as they are.
        Ok(btf) if !contains(&btf, b"\0bpf_struct_ops_tcp_congestion_ops\0") => {
            missing.push(Missing::StructOps)
        }
        Ok(_) => {}
    }
    missing
}

fn contains(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}

fn capabilities(status: &str) -> Vec<Missing> {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    let lacks = |capabilities: u64| effective & capabilities == 0;
    [
        (Missing::CapBpf, lacks(BPF | SYS_ADMIN)),
        (Missing::CapNetAdmin, lacks(NET_ADMIN)),
        (Missing::CapPerfmon, lacks(PERFMON | SYS_ADMIN)),
    ]
    .into_iter()
    .filter_map(|(what, lacks)| lacks.then_some(what))
    .collect()
}

/// Every user is who he is outside: the map of the namespace that a machine starts with.
fn is_initial(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn release(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_that_are_missing_are_named() {
        assert_eq!(capabilities("CapEff:\t000001ffffffffff\n"), []);
        assert_eq!(
            capabilities("CapEff:\t0000000000201000\n"),
            [],
            "the one of administrators holds the two younger ones"
        );
        assert_eq!(capabilities("CapEff:\t0000008000000000\n"), [Missing::CapNetAdmin, Missing::CapPerfmon]);
        assert_eq!(capabilities("").len(), 3);
    }

    #[test]
    fn a_user_namespace_is_known_by_its_map() {
        assert!(is_initial("         0          0 4294967295\n"));
        assert!(!is_initial("      1000       1000          1\n"));
    }

    #[test]
    fn a_release_is_read() {
        assert_eq!(release("6.18.44-fc-v669\n"), Some((6, 18)));
        assert_eq!(release("5.10"), Some((5, 10)));
        assert_eq!(release("x"), None);
    }
}
