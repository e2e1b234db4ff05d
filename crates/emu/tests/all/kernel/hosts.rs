//! Two hosts, joined by a wire: packets of every kind get through, nothing else is on it, and nothing of it is on the
//! machine.

#![cfg(target_os = "linux")]

use crate::wire::{GIVE_UP_AFTER, any, backends, far_addresses, join, missing, pair};
use farpath_emu::{Backend, Host, HostError, HostSettings, VethBaseline};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

#[test]
fn a_datagram_gets_through() {
    for backend in backends() {
        for offload in [true, false] {
            let (near, far) = pair(|settings| HostSettings { backend, offload, ..settings });
            let _wire = join(&near, &far);
            for to in far_addresses() {
                let there = far.namespace().run(|| UdpSocket::bind(SocketAddr::new(to, 0))).unwrap().unwrap();
                let here = near.namespace().run(|| UdpSocket::bind(any(to))).unwrap().unwrap();
                there.set_read_timeout(Some(GIVE_UP_AFTER)).unwrap();
                here.send_to(b"a datagram", there.local_addr().unwrap()).unwrap();
                let mut buffer = [0; 64];
                let (len, from) = there.recv_from(&mut buffer).unwrap_or_else(|error| {
                    panic!("{backend}, offload {offload}, to {to}: {error}");
                });
                assert_eq!(&buffer[..len], b"a datagram");
                let (v4, v6) = HostSettings::near().address;
                assert_eq!(from.ip(), if to.is_ipv4() { IpAddr::from(v4) } else { v6.into() });
            }
        }
    }
}

#[test]
fn a_connection_carries_its_bytes() {
    for backend in backends() {
        for offload in [true, false] {
            let (near, far) = pair(|settings| HostSettings { backend, offload, ..settings });
            let wire = join(&near, &far);
            for to in far_addresses() {
                transfer(&near, &far, to, 3_000_000);
            }
            let supers = wire.counts.super_packets.load(Ordering::Relaxed);
            let longest = wire.counts.longest.load(Ordering::Relaxed);
            if offload {
                assert!(supers > 0, "{backend}: 3 MB and no super-packet");
                assert!(longest > 1500, "{backend}: longest {longest}");
            } else {
                assert_eq!((supers, longest), (0, 1500), "{backend}");
            }
            assert_eq!(wire.counts.refused.load(Ordering::Relaxed), 0, "{backend}, offload {offload}");
            assert_eq!(near.dropped().unwrap().total() + far.dropped().unwrap().total(), 0, "{backend}");
        }
    }
}

/// Bytes from near to far and a digest of them back.
fn transfer(near: &Host, far: &Host, to: IpAddr, bytes: usize) {
    let data: Vec<u8> =
        (0..bytes).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let listener = far.namespace().run(|| TcpListener::bind(SocketAddr::new(to, 0))).unwrap().unwrap();
    let place = listener.local_addr().unwrap();
    // The kernel shakes hands by itself: connecting first, a failure is not a wait for ever.
    let mut socket =
        near.namespace().run(|| TcpStream::connect_timeout(&place, GIVE_UP_AFTER)).unwrap().unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let got = thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            accepted.set_read_timeout(Some(GIVE_UP_AFTER)).unwrap();
            let mut got = Vec::new();
            accepted.read_to_end(&mut got).unwrap();
            got
        });
        socket.set_write_timeout(Some(GIVE_UP_AFTER)).unwrap();
        socket.write_all(&data).unwrap();
        drop(socket);
        receiver.join().unwrap()
    });
    assert!(got == data, "{} of {bytes} bytes came, or others", got.len());
}

#[test]
fn a_cable_joins_two_namespaces_without_us() {
    if missing().is_some() {
        return;
    }
    let sysctls = [("net.ipv4.tcp_sack".to_string(), "0".to_string())];
    let veth = VethBaseline::new(&sysctls).unwrap();
    let to = SocketAddr::new(HostSettings::far().address.0.into(), 0);
    let there = veth.far().run(|| UdpSocket::bind(to)).unwrap().unwrap();
    let here = veth.near().run(|| UdpSocket::bind(any(to.ip()))).unwrap().unwrap();
    there.set_read_timeout(Some(GIVE_UP_AFTER)).unwrap();
    here.send_to(b"a datagram", there.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 64];
    let (len, from) = there.recv_from(&mut buffer).unwrap();
    assert_eq!((&buffer[..len], from.ip()), (&b"a datagram"[..], HostSettings::near().address.0.into()));
    for namespace in [veth.near(), veth.far()] {
        assert_eq!(namespace.sysctl("net.ipv4.tcp_sack").as_deref(), Some("0"));
    }
    let refused = VethBaseline::new(&[("kernel.hostname".to_string(), "x".to_string())]);
    assert!(refused.is_err());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "what is looked for is that nothing comes, in real time")]
fn an_idle_pair_says_nothing() {
    for backend in backends() {
        let (near, far) = pair(|settings| HostSettings { backend, ..settings });
        let wire = join(&near, &far);
        // Router solicitations come within a second, listener reports within ten of the first; both were off before
        // there was a device.
        thread::sleep(Duration::from_secs(2));
        assert_eq!(wire.packets(), 0, "{backend}");
        // And the wire does carry.
        transfer(&near, &far, far_addresses()[0], 1000);
        assert!(wire.packets() > 0);
    }
}

#[test]
fn what_nobody_reads_is_counted_as_dropped() {
    for backend in backends() {
        let (near, _far) = pair(|settings| HostSettings { backend, queue_len: 100, ..settings });
        assert_eq!(near.dropped().unwrap().total(), 0, "{backend}");
        let to = far_addresses()[0];
        let socket = near.namespace().run(|| UdpSocket::bind(any(to))).unwrap().unwrap();
        // A socket of packets has room for 64 MB by force, a TUN device for its queue.
        let (count, size) = if backend == Backend::Tun { (300, 100) } else { (150_000, 1400) };
        let sent = (0..count).filter(|_| socket.send_to(&vec![0; size], (to, 9)).is_ok()).count() as u64;
        let dropped = near.dropped().unwrap();
        assert_eq!(dropped.to_host, 0, "{backend}");
        if backend == Backend::Tun {
            assert_eq!(dropped.from_host, sent - 100, "{sent} sent into a queue of 100");
        } else {
            assert!((1..sent).contains(&dropped.from_host), "{dropped:?} of {sent}");
            assert_eq!(near.dropped().unwrap(), dropped, "counted once, and kept");
        }
    }
}

#[test]
fn settings_are_the_hosts_own() {
    if missing().is_some() {
        return;
    }
    let of_the_machine = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
    let names = ["tcp_sack", "tcp_timestamps", "tcp_congestion_control", "tcp_rmem", "tcp_no_metrics_save"];
    let before = names.map(of_the_machine);
    let settings = HostSettings {
        sysctls: [
            ("net.ipv4.tcp_sack", "0"),
            ("net.ipv4.tcp_timestamps", "0"),
            ("net.ipv4.tcp_congestion_control", "reno"),
            ("net.ipv4.tcp_rmem", "4096 17520 17520"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into(),
        ..HostSettings::near()
    };
    let host = Host::new(&settings).unwrap();
    let now = |name| host.namespace().sysctl(name);
    assert_eq!(now("net.ipv4.tcp_sack").as_deref(), Some("0"));
    assert_eq!(now("net.ipv4.tcp_congestion_control").as_deref(), Some("reno"));
    assert_eq!(now("net.ipv4.tcp_rmem").as_deref(), Some("4096\t17520\t17520"));
    assert_eq!(now("net.ipv4.tcp_no_metrics_save").as_deref(), Some("1"));
    assert_eq!(now("net.ipv4.no_such_thing"), None);
    assert_eq!(names.map(of_the_machine), before);
}

#[test]
fn a_refused_setting_is_named_with_its_value_and_the_reason() {
    if missing().is_some() {
        return;
    }
    let host = Host::new(&HostSettings::near()).unwrap();
    for (name, value, reason) in [
        ("net.ipv4.no_such_thing", "1", "this kernel has no setting of that name"),
        ("net.ipv4.tcp_sack", "perhaps", "the kernel takes no such value"),
        (
            "net.ipv4.tcp_congestion_control",
            "no_such_control",
            "this kernel has no congestion control of that name; it has",
        ),
        ("net.core.rmem_max", "1000000", "keeps it for the whole machine"),
        ("kernel.hostname", "x", "expected the name of a network setting"),
    ] {
        let error = host.namespace().set_sysctl(name, value).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot set {name} to `{value}`: ")), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn impossible_settings_are_refused_by_name() {
    let near = HostSettings::near();
    let settings = [
        (HostSettings { mtu: 20, ..near.clone() }, "mtu: expected 68 to 65535 bytes, got `20`"),
        (HostSettings { queue_len: 0, ..near.clone() }, "queue_len: expected at least one packet, got `0`"),
        (
            HostSettings { peer: near.address, ..near.clone() },
            "peer: expected another address than the host's",
        ),
    ];
    for (settings, expected) in settings {
        let error = Host::new(&settings).unwrap_err();
        assert!(matches!(error, HostError::Setting { .. }));
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn a_panic_inside_a_namespace_is_the_callers() {
    if missing().is_some() {
        return;
    }
    let host = Host::new(&HostSettings::near()).unwrap();
    let result = std::panic::catch_unwind(|| host.namespace().run(|| panic!("from inside")));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"from inside"));
}

#[test]
fn small_and_large_packets_have_their_mtu() {
    for backend in backends() {
        for mtu in [576, 1280, 9000, 65_535] {
            let (near, far) = pair(|settings| HostSettings { backend, mtu, offload: false, ..settings });
            let wire = join(&near, &far);
            transfer(&near, &far, far_addresses()[0], 300_000);
            let longest = wire.counts.longest.load(Ordering::Relaxed);
            assert!(
                longest <= u64::from(mtu) && longest > u64::from(mtu) / 2,
                "{backend}, MTU {mtu}: {longest}"
            );
        }
    }
}
