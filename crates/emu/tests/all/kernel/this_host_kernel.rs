//! A host of the running kernel, told otherwise by sysctls and its route, is found to be just that.

#![cfg(target_os = "linux")]

use crate::wire::{far_addresses, missing};
use farpath_emu::{Host, HostFacts, HostSettings, HostStack, RouteMetrics};
use farpath_experiment::Stack;
use farpath_tcp::config::EcnMode;
use farpath_units::{Bytes, Duration};
use std::net::IpAddr;

#[test]
fn sysctls_and_the_route_of_a_host_are_in_its_stack() {
    if missing().is_some() {
        return;
    }
    let metrics = RouteMetrics {
        initcwnd: Some(24),
        rto_min_ms: Some(300),
        quickack: true,
        advmss: Some(1200),
        mtu: None,
    };
    let host = Host::new(&HostSettings { metrics, mtu: 1400, ..HostSettings::near() }).unwrap();
    for (name, value) in [
        ("tcp_rmem", "4096 131072 8388608"),
        ("tcp_ecn", "1"),
        ("tcp_sack", "0"),
        ("tcp_timestamps", "0"),
        ("tcp_retries2", "7"),
        ("tcp_no_metrics_save", "1"),
    ] {
        host.namespace().set_sysctl(&format!("net.ipv4.{name}"), value).unwrap();
    }
    let facts = |to: Option<IpAddr>| host.namespace().run(|| HostFacts::of_this_host(to)).unwrap();
    for to in far_addresses() {
        let facts = facts(Some(to)).unwrap_or_else(|error| panic!("{to}: {error}"));
        let route = facts.route.as_ref().expect("it was asked for");
        assert_eq!((route.to, route.initcwnd, route.rto_min_ms), (Some(to), Some(24), Some(300)));
        assert_eq!((route.quickack, route.advmss, route.mtu), (true, Some(1200), Some(1400)));

        let found = HostStack::from_facts(&facts).unwrap();
        let text = found.to_string();
        let config =
            Stack::parse(&text, "host.toml").unwrap_or_else(|error| panic!("{error}\n{text}")).config;
        assert_eq!((config.receive.buffer, config.handshake.data_retries), (Bytes(4 << 20), Some(7)));
        assert_eq!(
            (config.send.ecn, config.recovery.sack, config.send.timestamps),
            (EcnMode::Request, false, false)
        );
        assert_eq!((config.mss, config.congestion.initial_window), (Bytes(1200), 24));
        assert_eq!((config.rto.min, config.receive.ack_every), (Duration::from_millis(300), 1));
        assert!(
            text.contains("# net.ipv4.tcp_retries2 = 7") && text.contains("# route: rto_min = 300ms"),
            "{text}"
        );
    }
    // This host knows one other and no way out.
    let without = facts(None).unwrap();
    assert_eq!(without.route, None);
    let nowhere = facts(Some("203.0.113.1".parse().unwrap())).unwrap_err();
    assert_eq!(nowhere.kind(), std::io::ErrorKind::NetworkUnreachable, "{nowhere}");
}
