//! What a machine says of its TCP becomes a stack: a base and what is otherwise.

use farpath_emu::{HostFacts, HostStack, RouteFacts};
use farpath_experiment::Stack;
use farpath_tcp::config::{CongestionControlKind, EcnMode};
use farpath_units::{Bytes, Duration};
use std::collections::BTreeMap;

/// Sysctls of 6.12, as it comes.
const DEFAULTS: [(&str, &str); 31] = [
    ("tcp_autocorking", "1"),
    ("tcp_backlog_ack_defer", "1"),
    ("tcp_comp_sack_delay_ns", "1000000"),
    ("tcp_comp_sack_nr", "44"),
    ("tcp_comp_sack_slack_ns", "100000"),
    ("tcp_congestion_control", "cubic"),
    ("tcp_dsack", "1"),
    ("tcp_early_retrans", "3"),
    ("tcp_ecn", "2"),
    ("tcp_frto", "2"),
    ("tcp_max_reordering", "300"),
    ("tcp_moderate_rcvbuf", "1"),
    ("tcp_mtu_probing", "0"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_pingpong_thresh", "1"),
    ("tcp_plb_enabled", "0"),
    ("tcp_recovery", "1"),
    ("tcp_reordering", "3"),
    ("tcp_retries2", "15"),
    ("tcp_rmem", "4096 131072 6291456"),
    ("tcp_rto_min_us", "200000"),
    ("tcp_sack", "1"),
    ("tcp_slow_start_after_idle", "1"),
    ("tcp_syn_linear_timeouts", "4"),
    ("tcp_syn_retries", "6"),
    ("tcp_synack_retries", "5"),
    ("tcp_timestamps", "1"),
    ("tcp_tso_win_divisor", "3"),
    ("tcp_window_scaling", "1"),
    ("tcp_wmem", "4096 16384 4194304"),
    ("ip_default_ttl", "64"),
];

fn facts(release: &str, changes: &[(&str, &str)]) -> HostFacts {
    let all = DEFAULTS.iter().chain(changes);
    let sysctls: BTreeMap<String, String> =
        all.map(|(name, value)| (format!("net.ipv4.{name}"), (*value).to_owned())).collect();
    let route = RouteFacts { device: "eth0".to_owned(), mtu: Some(1500), ..RouteFacts::default() };
    HostFacts { release: release.to_owned(), hz: Some(250), sysctls, route: Some(route) }
}

fn stack(facts: &HostFacts) -> (HostStack, Stack) {
    let found = HostStack::from_facts(facts).expect("shipped stacks load");
    let text = found.to_string();
    let read = Stack::parse(&text, "host.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    (found, read)
}

#[test]
fn a_machine_with_defaults_is_its_release() {
    for (release, base, changes) in [
        (
            "6.1.192-amd64",
            "linux-6.1",
            &[("tcp_syn_linear_timeouts", "0"), ("tcp_backlog_ack_defer", "0")][..],
        ),
        ("6.12.117", "linux-6.12", &[]),
        ("6.8.0-generic", "linux-6.12", &[]),
        ("6.18.1", "linux-6.18", &[("tcp_rmem", "4096 131072 33554432")]),
        ("7.2.0-rc1", "linux-6.18", &[("tcp_rmem", "4096 131072 33554432")]),
    ] {
        let (found, read) = stack(&facts(release, changes));
        assert_eq!(
            (found.base, found.differences.as_slice(), found.not_simulated.as_slice()),
            (base, &[][..], &[][..])
        );
        assert_eq!(read.config, Stack::load(base).expect("it ships").config);
    }
}

#[test]
fn each_sysctl_that_is_changed_is_a_difference_with_its_name() {
    let changes = [
        ("tcp_congestion_control", "bbr"),
        ("tcp_ecn", "1"),
        ("tcp_rmem", "4096 131072 16777216"),
        ("tcp_wmem", "4096 16384 8388608"),
        ("tcp_sack", "0"),
        ("tcp_timestamps", "0"),
        ("tcp_slow_start_after_idle", "0"),
        ("tcp_early_retrans", "0"),
        ("tcp_recovery", "0"),
        ("tcp_frto", "0"),
        ("tcp_syn_retries", "3"),
        ("tcp_retries2", "8"),
        ("tcp_reordering", "10"),
        ("tcp_comp_sack_nr", "0"),
        ("tcp_rto_min_us", "50000"),
        ("tcp_max_reordering", "500"),
    ];
    let (found, read) = stack(&facts("6.12.117", &changes));
    let c = &read.config;
    assert_eq!(c.congestion.control, CongestionControlKind::Bbr);
    assert_eq!((c.send.ecn, c.receive.buffer), (EcnMode::Request, Bytes(8 << 20)));
    assert_eq!(c.send.buffer, Some(Bytes(8 << 20)));
    let off =
        [c.recovery.sack, c.send.timestamps, c.congestion.restart_after_idle, c.recovery.tail_loss_probe];
    assert_eq!((off, c.recovery.rack, c.recovery.frto), ([false; 4], false, false));
    assert_eq!((c.handshake.syn_attempts, c.handshake.data_retries), (Some(8), Some(8)));
    assert_eq!((c.recovery.dup_ack_threshold, c.receive.compressed_acks), (10, 0));
    assert_eq!(
        (c.rto.min, c.recovery.probe_ack_delay),
        (Duration::from_millis(50), Duration::from_millis(50))
    );
    assert_eq!(c.send.persist_min, Duration::from_millis(200), "which the kernel's probes never go below");
    assert_eq!(read.linux.sysctls["net.ipv4.tcp_max_reordering"], "500");
    for (name, _) in changes {
        let named = |from: &str| from.starts_with(&format!("net.ipv4.{name} = "));
        assert!(found.differences.iter().any(|difference| named(&difference.from)), "{name} in\n{found}");
    }
    assert_eq!(found.not_simulated, [""; 0]);
}

#[test]
fn attributes_of_the_route_come_before_sysctls() {
    let mut facts = facts("6.12.117", &[("tcp_rto_min_us", "100000")]);
    facts.route = Some(RouteFacts {
        device: "wg0".to_owned(),
        qdisc: Some("fq".to_owned()),
        mtu: Some(1420),
        advmss: Some(1200),
        initcwnd: Some(32),
        quickack: true,
        rto_min_ms: Some(40),
        congctl: Some("reno".to_owned()),
        ..RouteFacts::default()
    });
    let (found, read) = stack(&facts);
    let c = &read.config;
    assert_eq!((c.mss, c.congestion.initial_window, c.receive.ack_every), (Bytes(1200), 32, 1));
    assert_eq!((c.rto.min, c.send.pacing), (Duration::from_millis(40), true));
    assert_eq!(c.congestion.control, CongestionControlKind::Reno);
    let from = |key: &str| {
        found.differences.iter().find(|difference| difference.key == key).map(|d| d.from.as_str())
    };
    assert_eq!(from("mss"), Some("route over wg0: advmss = 1200"));
    assert_eq!(from("rto.min"), Some("route: rto_min = 40ms"));
    assert_eq!(from("congestion.control"), Some("route: congctl = reno"));
}

#[test]
fn what_no_parameter_says_is_told() {
    let changes = [("tcp_congestion_control", "htcp"), ("tcp_ecn", "3"), ("tcp_no_metrics_save", "0")];
    let mut facts = facts("6.12.117", &changes);
    (facts.route, facts.hz) = (None, None);
    let (found, read) = stack(&facts);
    for part in
        ["htcp: emulation uses it", "tcp_ecn = 3", "tcp_no_metrics_save = 0", "no default route", "CONFIG_HZ"]
    {
        assert!(found.not_simulated.iter().any(|line| line.contains(part)), "{part} in\n{found}");
        assert!(found.to_string().contains(part));
    }
    assert_eq!(read.linux.congestion_control.as_deref(), Some("htcp"));
    assert_eq!(read.config.congestion.control, CongestionControlKind::Cubic);
}

/// A sysctl of another kernel, or one that holds nonsense, is no reason to fail.
#[test]
fn strange_values_leave_a_stack_that_can_be_read() {
    for value in ["", "-1", "18446744073709551615", "0", "4294967295", "a b c", "1 2", "0 0 0"] {
        let changes: Vec<(&str, &str)> = DEFAULTS.iter().map(|(name, _)| (*name, value)).collect();
        let mut facts = facts("", &changes);
        facts.hz = Some(0);
        facts.route = Some(RouteFacts {
            mtu: Some(0),
            advmss: Some(1),
            initcwnd: Some(0),
            rto_min_ms: Some(0),
            ..RouteFacts::default()
        });
        let found = HostStack::from_facts(&facts).expect("shipped stacks load");
        let text = found.to_string();
        Stack::parse(&text, "host.toml").unwrap_or_else(|error| panic!("{value}: {error}\n{text}"));
    }
}
