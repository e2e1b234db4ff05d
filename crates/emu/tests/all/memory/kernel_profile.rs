//! The running kernel takes every profile, and what it does not follow is said.

use farpath_emu::KernelProfile;
use farpath_experiment::{IpVersion, Stack, shipped_stacks};
use farpath_tcp::config::{Config, CongestionControlKind, EcnMode, parameters};
use farpath_units::{Bytes, Duration};
use proptest::prelude::*;

fn stack(name: &str) -> Stack {
    Stack::load(name).unwrap_or_else(|error| panic!("{error}"))
}

fn profile(name: &str) -> KernelProfile {
    KernelProfile::of_stack(&stack(name), &stack(name))
}

fn value<'a>(profile: &'a KernelProfile, name: &str) -> &'a str {
    let sysctl = profile.sysctls.iter().find(|sysctl| sysctl.name == format!("net.ipv4.{name}"));
    &sysctl.unwrap_or_else(|| panic!("{name}")).value
}

#[test]
fn the_stacks_that_say_what_the_kernel_does_are_followed() {
    // BSD's probes of a zero window carry an octet; no setting of Linux makes its own do so.
    let octet = "send.window_probe octet: the kernel's probes have no payload";
    for (name, unmatched) in [("linux-6", &[][..]), ("reno-1990", &[octet]), ("reno-sack", &[octet])] {
        assert_eq!(profile(name).unmatched, unmatched, "{name}");
    }
}

#[test]
fn a_controller_that_no_linux_has_is_said_by_its_name_and_replaced_by_none() {
    let mut stack = stack("linux-6");
    stack.config.congestion.control = CongestionControlKind::Bbr3;
    let profile = KernelProfile::of_stack(&stack, &stack);
    assert_eq!(profile.congestion_control, None);
    assert!(
        profile.unmatched.iter().any(|note| note.starts_with("congestion.control bbr3: no Linux has it"))
    );
    assert!(!profile.to_string().contains("TCP_CONGESTION"), "{profile}");
}

#[test]
fn linux_6_leaves_the_kernel_its_defaults() {
    let profile = profile("linux-6");
    let defaults = [
        ("tcp_sack", "1"),
        ("tcp_dsack", "1"),
        ("tcp_recovery", "1"),
        ("tcp_early_retrans", "3"),
        ("tcp_frto", "2"),
        ("tcp_reordering", "3"),
        ("tcp_max_reordering", "300"),
        ("tcp_timestamps", "1"),
        ("tcp_window_scaling", "1"),
        ("tcp_ecn", "2"),
        ("tcp_slow_start_after_idle", "1"),
        ("tcp_syn_retries", "6"),
        ("tcp_syn_linear_timeouts", "4"),
        ("tcp_synack_retries", "5"),
        ("tcp_retries2", "15"),
        ("tcp_rto_max_ms", "120000"),
        ("tcp_rmem", "4096 131072 6291456"),
        ("tcp_wmem", "4096 16384 4194304"),
        ("tcp_moderate_rcvbuf", "1"),
        ("tcp_autocorking", "1"),
        ("tcp_tso_win_divisor", "3"),
        ("tcp_comp_sack_nr", "44"),
        ("tcp_backlog_ack_defer", "1"),
    ];
    for (name, default) in defaults {
        assert_eq!(value(&profile, name), default, "{name}");
    }
    // These alone are otherwise: no run may learn from another.
    let pinned: Vec<&str> = profile
        .sysctls
        .iter()
        .map(|sysctl| sysctl.name.trim_start_matches("net.ipv4."))
        .filter(|name| !defaults.iter().any(|(known, _)| known == name))
        .collect();
    assert_eq!(pinned, ["tcp_no_metrics_save", "tcp_fastopen"]);
    assert_eq!((profile.congestion_control.as_deref(), profile.route.initcwnd), (Some("cubic"), Some(10)));
}

#[test]
fn what_the_kernel_cannot_be_made_to_do_is_named_with_what_it_does() {
    let unmatched = profile("bsd-1996").unmatched;
    for line in [
        "rto.initial 6 s: the kernel starts with 1 s",
        "rto.tick 500 ms: a jiffy in the kernel, 1 to 10 ms",
        "rto.measure ticks: the kernel measures in microseconds",
        "recovery.algorithm reno: the kernel stays in recovery on partial ACKs (new-reno)",
    ] {
        assert!(unmatched.iter().any(|found| found == line), "{line} is not in {unmatched:#?}");
    }
}

#[test]
fn the_window_on_the_path_is_the_stacks_own() {
    let mut config = Config::default();
    config.receive.buffer = Bytes(8760);
    assert_eq!(KernelProfile::for_config(&config, &config).window_clamp, Some(Bytes(8760)));
    // The kernel stops here by itself.
    config.receive.buffer = Bytes(1 << 20);
    assert_eq!(KernelProfile::for_config(&config, &config).window_clamp, None);
    config.send.window_scaling = true;
    assert_eq!(KernelProfile::for_config(&config, &config).window_clamp, Some(Bytes(1 << 20)));
    assert_eq!(
        KernelProfile::for_config(&config, &Config::default()).window_clamp,
        None,
        "the other end does not scale"
    );
}

#[test]
fn a_window_of_less_than_two_segments_shortens_the_segments() {
    let (sender, mut receiver) = (Config::default(), Config::default());
    receiver.receive.buffer = Bytes(2000);
    let unmatched = KernelProfile::for_config(&sender, &receiver).unmatched;
    let said = "mss 1.46 kB: in a window of 2 kB the kernel sends segments of 1 kB, half of it";
    assert!(unmatched.iter().any(|line| line == said), "{unmatched:#?}");
}

#[test]
fn a_stacks_own_settings_come_on_top() {
    let text = "title = \"T\"\n[linux]\ncongestion_control = \"bbr\"\n\
                sysctl = { \"net.ipv4.tcp_frto\" = 1, \"net.ipv4.tcp_tw_reuse\" = 0 }\n";
    let stack = Stack::parse(text, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    let profile = KernelProfile::of_stack(&stack, &stack);
    assert_eq!((value(&profile, "tcp_frto"), value(&profile, "tcp_tw_reuse")), ("1", "0"));
    assert_eq!(profile.congestion_control.as_deref(), Some("bbr"));
}

#[test]
fn a_sysctl_that_a_kernel_lacks_is_told_of_where_it_makes_a_difference() {
    let missing = |profile: &KernelProfile, name: &str| {
        let name = format!("net.ipv4.{name}");
        profile.sysctls.iter().find(|sysctl| sysctl.name == name).map(|sysctl| sysctl.missing())
    };
    // Linux before 6.5 has no linear timeouts: as the one stack has it, and the other does not.
    assert_eq!(missing(&profile("reno-1990"), "tcp_syn_linear_timeouts"), Some(Ok(())));
    let note = "handshake.syn_linear_timeouts: this kernel does not have net.ipv4.tcp_syn_linear_timeouts, and behaves as \
                with 0 in place of 4";
    assert_eq!(missing(&profile("linux-6"), "tcp_syn_linear_timeouts"), Some(Err(Some(note.to_owned()))));
    assert_eq!(missing(&profile("linux-6"), "tcp_sack"), Some(Err(None)), "every kernel has it");
}

/// What Linux 6.18 takes, by writing.
fn is_accepted(name: &str, value: &str) -> bool {
    let numbers: Option<Vec<u64>> = value.split(' ').map(|number| number.parse().ok()).collect();
    let range = match name {
        "tcp_rmem" | "tcp_wmem" => {
            let most = i32::MAX as u64;
            return numbers.is_some_and(|numbers| {
                numbers.len() == 3 && numbers.iter().all(|&n| (1..=most).contains(&n))
            });
        }
        "tcp_syn_retries" => 1..=127,
        "tcp_syn_linear_timeouts" => 0..=127,
        "tcp_synack_retries" | "tcp_retries2" | "tcp_tso_win_divisor" => 0..=255,
        "tcp_rto_max_ms" => 1000..=120_000,
        "tcp_reordering" | "tcp_max_reordering" => 1..=i32::MAX as u64,
        "tcp_ecn" | "tcp_frto" => 0..=2,
        "tcp_early_retrans" => 0..=4,
        "ip_default_ttl" => 1..=255,
        _ => 0..=1,
    };
    numbers.is_some_and(|numbers| numbers.len() == 1 && range.contains(&numbers[0]))
}

/// Any numbers where the profile computes with them.
fn any_config() -> impl Strategy<Value = Config> {
    let size = || prop_oneof![1..100_000_u64, any::<u64>().prop_map(|n| n.max(1))].prop_map(Bytes);
    let time = || prop_oneof![1..u64::MAX, 1..10_000_000_000_u64].prop_map(Duration::from_nanos);
    let count = || prop_oneof![1..300_u32, 1..=u32::MAX];
    let maybe = |count: BoxedStrategy<u32>| prop::option::of(count);
    (
        (1..65_496_u64, size(), prop::option::of(1..u64::MAX), 1..5_u32, time(), prop::option::of(size())),
        (count(), count(), time(), time(), prop::option::of(size())),
        (maybe(count().boxed()), 0..=u32::MAX, maybe(count().boxed()), prop::option::of(0..=u32::MAX)),
        (any::<[bool; 8]>(), prop::sample::select(vec![EcnMode::Off, EcnMode::Accept, EcnMode::Request])),
    )
        .prop_map(|(receive, limits, tries, (switches, ecn))| {
            let mut config = Config { mss: Bytes(receive.0), ..Config::default() };
            (config.receive.buffer, config.receive.read_rate) = (receive.1, receive.2);
            (config.receive.ack_every, config.receive.ack_delay) = (receive.3, receive.4);
            config.congestion.cwnd_clamp = receive.5;
            (config.congestion.initial_window, config.recovery.dup_ack_threshold) = (limits.0, limits.1);
            (config.rto.min, config.rto.max) = (limits.2.min(limits.3), limits.2.max(limits.3));
            config.send.buffer = limits.4;
            (config.handshake.syn_attempts, config.handshake.syn_linear_timeouts) = (tries.0, tries.1);
            (config.handshake.synack_attempts, config.handshake.data_retries) = (tries.2, tries.3);
            let [sack, dsack, rack, probe, frto, timestamps, scaling, idle] = switches;
            (config.recovery.sack, config.recovery.dsack, config.recovery.rack) = (sack, dsack, rack);
            (config.recovery.tail_loss_probe, config.recovery.frto) = (probe, frto);
            (config.send.timestamps, config.send.window_scaling, config.send.ecn) =
                (timestamps, scaling, ecn);
            config.congestion.restart_after_idle = idle;
            config
        })
}

proptest! {
    #[test]
    fn every_stack_has_a_dress_that_the_kernel_takes(config in any_config(), other in any_config()) {
        let profile = KernelProfile::for_config(&config, &other);
        for sysctl in &profile.sysctls {
            let name = sysctl.name.trim_start_matches("net.ipv4.");
            prop_assert!(is_accepted(name, &sysctl.value), "{} = {}", sysctl.name, sysctl.value);
        }
        prop_assert!((68..=65_535).contains(&profile.mtu(IpVersion::V4)));
        prop_assert!((1280..=65_535).contains(&profile.mtu(IpVersion::V6)));
        // A metric of zero is none.
        prop_assert!(profile.route.initcwnd.is_some_and(|segments| segments > 0));
        prop_assert!(profile.route.rto_min_ms.is_some_and(|ms| (1..=120_000).contains(&ms)));
        let delay = profile.delayed_ack_max;
        let taken = Duration::from_millis(5)..=Duration::from_millis(200);
        prop_assert!(delay.is_none_or(|delay| taken.contains(&delay)));
        prop_assert!(profile.window_clamp.is_none_or(|clamp| clamp <= config.receive.buffer));
    }
}

#[test]
fn every_shipped_stack_has_a_dress() {
    for file in shipped_stacks() {
        assert!(!profile(file.name).sysctls.is_empty());
    }
}

/// What a parameter's row says that the kernel is told, it is told.
#[test]
fn every_sysctl_that_the_guide_names_is_set() {
    let mut config = Config::default();
    config.send.ttl = 63;
    let profile = KernelProfile::for_config(&config, &config);
    for parameter in parameters() {
        let told = parameter.told.map_or("", |(told, _)| told);
        let names = told.split('`').filter(|word| word.starts_with("tcp_") || word.starts_with("ip_"));
        for name in names {
            let name = format!("net.ipv4.{name}");
            assert!(profile.sysctls.iter().any(|sysctl| sysctl.name == name), "{}: {name}", parameter.key());
        }
    }
}
