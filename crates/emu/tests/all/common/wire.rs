//! A wire without a path: what comes out of one port goes into the other.

#![allow(dead_code, reason = "each test uses its part")]

use farpath_emu::{Backend, Clock, Host, HostSettings, Namespace, Port};
use farpath_testing::{Need, skip};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Long enough for a busy machine; a test that meets it has failed.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

/// Carries packets between two ports until it is dropped.
pub struct Wire {
    stop: Arc<AtomicBool>,
    pub counts: Arc<Counts>,
    worker: Option<JoinHandle<()>>,
}

/// What the wire saw.
#[derive(Default)]
pub struct Counts {
    pub packets: AtomicU64,
    pub super_packets: AtomicU64,
    pub longest: AtomicU64,
    pub refused: AtomicU64,
}

impl Wire {
    pub fn between(mut near: Box<dyn Port>, mut far: Box<dyn Port>) -> Wire {
        let stop = Arc::new(AtomicBool::new(false));
        let counts = Arc::new(Counts::default());
        let (stopped, seen) = (Arc::clone(&stop), Arc::clone(&counts));
        let worker = thread::spawn(move || {
            let clock = Clock::start();
            let mut buffer = vec![0; (64 << 10) + 256];
            while !stopped.load(Ordering::Relaxed) {
                let fds = [near.fd(), far.fd()].map(|fd| fd.expect("both have a descriptor"));
                let mut waits = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
                poll(&mut waits, PollTimeout::from(20u8)).expect("both can be waited on");
                carry(&clock, near.as_mut(), far.as_mut(), &mut buffer, &seen);
                carry(&clock, far.as_mut(), near.as_mut(), &mut buffer, &seen);
            }
        });
        Wire { stop, counts, worker: Some(worker) }
    }

    pub fn packets(&self) -> u64 {
        self.counts.packets.load(Ordering::Relaxed)
    }
}

fn carry(clock: &Clock, from: &mut dyn Port, to: &mut dyn Port, buffer: &mut [u8], counts: &Counts) {
    while let Some(received) = from.receive(clock.now(), buffer).expect("the device is there") {
        counts.packets.fetch_add(1, Ordering::Relaxed);
        counts.longest.fetch_max(received.len as u64, Ordering::Relaxed);
        if received.header.gso_size != 0 {
            counts.super_packets.fetch_add(1, Ordering::Relaxed);
        }
        // In two pieces, as an emulator has headers and payload.
        let (first, rest) = buffer[..received.len].split_at(20);
        let pieces = [IoSlice::new(first), IoSlice::new(rest)];
        if to.send(clock.now(), received.header, received.frame, &pieces).is_err() {
            counts.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.worker.take().expect("dropped once").join();
        assert!(ended.is_ok() || thread::panicking(), "the wire panicked");
    }
}

/// Why there can be no hosts here, said loudly; `None` where there can.
pub fn missing() -> Option<String> {
    Namespace::new().err().map(|error| {
        let why = format!("no network namespace can be made here: {error}");
        skip(Need::Root, &why);
        why
    })
}

/// Backends that this machine has. A test runs on each.
pub fn backends() -> Vec<Backend> {
    [Backend::Tun, Backend::Packet]
        .into_iter()
        .filter(|&backend| match Host::new(&HostSettings { backend, ..HostSettings::near() }) {
            Ok(host) => host.backend() == backend,
            Err(error) => {
                skip(Need::Root, format!("backend {backend}: {error}"));
                false
            }
        })
        .collect()
}

/// Two hosts, with what both have changed.
pub fn pair(change: impl Fn(HostSettings) -> HostSettings) -> (Host, Host) {
    let host = |settings| Host::new(&change(settings)).expect("the backend was tried");
    (host(HostSettings::near()), host(HostSettings::far()))
}

/// A pair's wire.
pub fn join(near: &Host, far: &Host) -> Wire {
    Wire::between(near.port(), far.port())
}

/// The far host's addresses, as the near one's sockets take them.
pub fn far_addresses() -> [IpAddr; 2] {
    let (v4, v6) = HostSettings::far().address;
    [v4.into(), v6.into()]
}

/// Any address of the same family.
pub fn any(like: IpAddr) -> SocketAddr {
    let any: IpAddr = if like.is_ipv4() { [0u8; 4].into() } else { [0u8; 16].into() };
    SocketAddr::new(any, 0)
}
