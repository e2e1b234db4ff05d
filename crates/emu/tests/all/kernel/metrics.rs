//! What the route says to TCP is what TCP does.
//!
//! Tried on Linux 6.18, and left out because nothing comes of them there: `ssthresh`, `cwnd`, `rtt`, `rttvar` and
//! `reordering` are read for a destination with saved metrics only (`tcp_no_metrics_save=0`, from the second
//! connection on), and `ssthresh` not even then; `window` holds for the SYN alone.

#![cfg(target_os = "linux")]

use crate::wire::{GIVE_UP_AFTER, far_addresses, join, missing, pair};
use farpath_emu::{Host, HostError, HostSettings, RouteMetrics};
use farpath_traffic::TcpInfo;
use farpath_units::Duration;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// A connection from near to far: both ends.
fn connect(near: &Host, far: &Host, to: IpAddr) -> (TcpStream, TcpStream) {
    let listener = far.namespace().run(|| TcpListener::bind(SocketAddr::new(to, 0))).unwrap().unwrap();
    let place = listener.local_addr().unwrap();
    let active = near.namespace().run(|| TcpStream::connect_timeout(&place, GIVE_UP_AFTER)).unwrap().unwrap();
    let (passive, _) = listener.accept().unwrap();
    passive.set_read_timeout(Some(GIVE_UP_AFTER)).unwrap();
    (active, passive)
}

fn with(metrics: RouteMetrics) -> (Host, Host) {
    pair(|settings| HostSettings { metrics, ..settings })
}

#[test]
fn metrics_reach_both_ends_by_both_versions() {
    if missing().is_some() {
        return;
    }
    let (near, far) =
        with(RouteMetrics { initcwnd: Some(2), rto_min_ms: Some(1000), ..RouteMetrics::default() });
    let (plain_near, plain_far) = with(RouteMetrics::default());
    let _wires = [join(&near, &far), join(&plain_near, &plain_far)];
    for to in far_addresses() {
        let (active, passive) = connect(&near, &far, to);
        for end in [active, passive] {
            let info = TcpInfo::from_socket(end.as_fd()).unwrap();
            assert_eq!(info.snd_cwnd, 2, "{to}");
            assert!(info.rto >= Duration::from_secs(1), "{to}: {:?}", info.rto);
        }
        // Elsewhere it is RFC 6928's, and Linux's floor.
        let (active, _passive) = connect(&plain_near, &plain_far, to);
        let info = TcpInfo::from_socket(active.as_fd()).unwrap();
        assert_eq!(info.snd_cwnd, 10);
        assert!(info.rto < Duration::from_secs(1));
    }
}

#[test]
fn the_mss_is_announced_as_said() {
    if missing().is_some() {
        return;
    }
    let (near, far) = with(RouteMetrics { advmss: Some(500), ..RouteMetrics::default() });
    let _wire = join(&near, &far);
    let (active, _passive) = connect(&near, &far, far_addresses()[0]);
    // What the other end may send: 500 B less the 12 B of the timestamps option.
    assert_eq!(TcpInfo::from_socket(active.as_fd()).unwrap().snd_mss.0, 488);
}

#[test]
fn quick_acks_are_one_for_each_segment() {
    if missing().is_some() {
        return;
    }
    let acks = |quickack| {
        let (near, far) = with(RouteMetrics { quickack, ..RouteMetrics::default() });
        let wire = join(&near, &far);
        let (mut active, mut passive) = connect(&near, &far, far_addresses()[0]);
        active.set_nodelay(true).unwrap();
        let mut byte = [0];
        // A dialogue: once the far end has answered, it would rather let its answers carry the ACKs.
        for _ in 0..20 {
            active.write_all(&[1]).unwrap();
            passive.read_exact(&mut byte).unwrap();
            passive.write_all(&byte).unwrap();
            active.read_exact(&mut byte).unwrap();
        }
        wire.counts.packets.load(Ordering::Relaxed)
    };
    let (quick, delayed) = (acks(true), acks(false));
    // 40 segments, and an ACK for each of them; or most ACKs on segments of the other direction.
    assert!(quick >= 80, "{quick} packets with, {delayed} without");
    assert!(delayed < 60, "{quick} packets with, {delayed} without");
}

#[test]
fn a_host_can_have_a_congestion_control_that_not_everybody_may_use() {
    if missing().is_some() {
        return;
    }
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    for control in
        ["reno", "cubic"].into_iter().filter(|&name| available.split_whitespace().any(|it| it == name))
    {
        let (near, far) =
            pair(|settings| HostSettings { congestion_control: Some(control.to_string()), ..settings });
        let _wire = join(&near, &far);
        for to in far_addresses() {
            let (active, passive) = connect(&near, &far, to);
            for end in [active, passive] {
                let name = socket2::SockRef::from(&end).tcp_congestion().unwrap();
                assert_eq!(String::from_utf8_lossy(&name).trim_end_matches('\0'), control);
            }
        }
    }
    let settings =
        HostSettings { congestion_control: Some("no_such_control".to_string()), ..HostSettings::near() };
    let error = Host::new(&settings).unwrap_err();
    assert!(matches!(error, HostError::Kernel { .. }));
    assert!(error.to_string().contains("with congestion control `no_such_control`: "), "{error}");
}
