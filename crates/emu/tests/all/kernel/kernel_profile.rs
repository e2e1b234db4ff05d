//! The running kernel is configured like every stack, and only the host that asks for it is changed.

use crate::wire::missing;
use farpath_emu::{Host, HostSettings, KernelProfile, Namespace, Sysctl};
use farpath_experiment::{IpVersion, Stack, shipped_stacks};
use farpath_units::Bytes;
use std::fs;
use std::path::PathBuf;

fn path_of(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}

fn stack(name: &str) -> Stack {
    Stack::load(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A host that plays `stack`, and what it was told. Only what a kernel of some years ago may lack may be missing.
fn configured(stack: &Stack) -> (Host, KernelProfile) {
    let mut profile = KernelProfile::of_stack(stack, stack);
    let (metrics, mtu) = (profile.route, profile.mtu(IpVersion::V4));
    let host = Host::new(&HostSettings { metrics, mtu, ..HostSettings::near() });
    let host = host.unwrap_or_else(|error| panic!("{}: {error}", stack.name));
    let missing = profile.tell(&host).unwrap_or_else(|error| panic!("{}: {error}", stack.name));
    let missing: Vec<Sysctl> = missing.into_iter().cloned().collect();
    assert!(missing.iter().all(|sysctl| sysctl.absent.is_some()), "{}: {missing:?}", stack.name);
    profile.sysctls.retain(|sysctl| !missing.contains(sysctl));
    (host, profile)
}

/// As the kernel prints several numbers.
fn words(value: &str) -> Vec<&str> {
    value.split_whitespace().collect()
}

#[test]
fn every_shipped_stack_can_be_put_on_and_reads_back() {
    if missing().is_some() {
        return;
    }
    for file in shipped_stacks() {
        let (host, profile) = configured(&stack(file.name));
        for sysctl in &profile.sysctls {
            let found = host.namespace().sysctl(&sysctl.name).unwrap_or_else(|| panic!("{}", sysctl.name));
            assert_eq!(words(&found), words(&sysctl.value), "{}: {}", file.name, sysctl.name);
        }
    }
}

#[test]
fn nothing_of_the_machine_is_changed() {
    if missing().is_some() {
        return;
    }
    let names: Vec<String> =
        configured(&stack("reno-1990")).1.sysctls.into_iter().map(|sysctl| sysctl.name).collect();
    let machine = || -> Vec<String> {
        let read = |name: &String| fs::read_to_string(path_of(name));
        names.iter().map(|name| read(name).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
    };
    let before = machine();
    for file in shipped_stacks() {
        let (host, _) = configured(&stack(file.name));
        assert_eq!(machine(), before, "{}", file.name);
        drop(host);
    }
    assert_eq!(machine(), before);
}

/// Of the running kernel: (6, 18) of Linux 6.18.
fn release() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").expect("every kernel tells it");
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// `linux-6` as the stacks page says that it is had for kernels of this release.
fn linux_6(release: (u32, u32)) -> Stack {
    let mut stack = stack("linux-6");
    if release >= (6, 16) {
        stack.config.receive.buffer = Bytes(16 << 20);
    }
    stack
}

#[test]
fn linux_6_is_what_a_kernel_of_its_release_begins_with() {
    if missing().is_some() {
        return;
    }
    let release = release();
    if release < (6, 6) {
        eprintln!("SKIPPED: linux-6 is of Linux 6.6 and later, and this is {release:?}");
        return;
    }
    // As a new namespace has them. What is set in one for a run alone is not told of a kernel.
    let fresh = Namespace::new().expect("one was made");
    let stack = linux_6(release);
    let mut otherwise = Vec::new();
    for Sysctl { name, value, absent, .. } in KernelProfile::of_stack(&stack, &stack).sysctls {
        let found = fresh.sysctl(&name).or_else(|| absent.map(str::to_owned)).expect("every kernel has it");
        let found = words(&found).join(" ");
        // A namespace takes these over from the machine, which may have been told others, or have little memory.
        let kernels_own: &[&str] = match name.as_str() {
            "net.ipv4.tcp_rmem" => &["4096 131072 6291456", "4096 131072 33554432"],
            "net.ipv4.tcp_wmem" => &["4096 16384 4194304"],
            // No run may learn from another, whatever the kernel's default.
            "net.ipv4.tcp_no_metrics_save" | "net.ipv4.tcp_fastopen" => continue,
            _ => &[],
        };
        if !kernels_own.is_empty() && !kernels_own.contains(&found.as_str()) {
            eprintln!("SKIPPED: {name} is this machine's own: {found}");
        } else if found != value {
            otherwise.push(format!("{name}: {value} in the stack, {found} here"));
        }
    }
    assert_eq!(otherwise, [""; 0], "Linux {release:?}");
}

/// Where the profile is computed, at both ends of what a stack file may say.
#[test]
fn the_kernel_takes_what_is_computed_from_the_smallest_and_the_largest() {
    if missing().is_some() {
        return;
    }
    let smallest = "mss = \"1 B\"\nreceive.buffer = \"1 B\"\ncongestion.initial_window = 1\n\
                    recovery.dup_ack_threshold = 1\nrto.min = \"1 ns\"\nrto.initial = \"1 ns\"\nrto.max = \"1 ns\"\n\
                    handshake.syn_attempts = 1\nhandshake.synack_attempts = 1\nhandshake.data_retries = 0\n\
                    send.buffer = \"1 B\"\n";
    let largest = "mss = \"65495 B\"\nreceive.buffer = \"1000 TB\"\ncongestion.initial_window = 4294967295\n\
                   recovery.dup_ack_threshold = 4294967295\nrto.min = \"1000 h\"\nrto.initial = \"1000 h\"\n\
                   rto.max = \"1000 h\"\nhandshake.syn_attempts = \"unlimited\"\nhandshake.syn_linear_timeouts = 1000\n\
                   handshake.synack_attempts = \"unlimited\"\nhandshake.data_retries = \"unlimited\"\n\
                   send.buffer = \"1000 TB\"\nsend.window_scaling = true\n";
    let growing = "[linux]\nautotuning = true\n";
    for text in [smallest, largest] {
        for more in ["", growing] {
            let text = format!("title = \"T\"\n{text}{more}");
            let stack = Stack::parse(&text, "s.toml").unwrap_or_else(|error| panic!("{error}"));
            drop(configured(&stack));
        }
    }
}
