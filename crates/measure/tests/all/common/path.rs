//! Two hosts of our own with a path of our own between them, and a responder on the peer.

#![allow(dead_code)]

use farpath_emu::{Clock, Emulator, Host, HostSettings, Namespace, NoRecorder, Settings};
use farpath_experiment::Experiment;
use farpath_measure::serve::{Limits, Serve, Server};
use farpath_testing::{Need, skip};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Why there are no hosts here; `None` where there are.
fn missing() -> Option<String> {
    farpath_emu::enter_user_namespace().err().map(|error| error.to_string())
}

/// Sets its flag when it goes, also where a test panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work` in the local host, with the address of a responder in the peer, over the path of an experiment.
pub fn over<T: Send>(
    path: &Experiment,
    v6: bool,
    seed: u64,
    work: impl FnOnce(SocketAddr) -> T + Send,
) -> Option<T> {
    between(path, v6, seed, Limits::default(), |hosts| work(hosts.address))
}

/// The peer, and the path to it.
pub struct Hosts<'a> {
    /// Where the responder waits.
    pub address: SocketAddr,
    /// In which network.
    pub peer: &'a Namespace,
    /// Set, it lets nothing through any more.
    pub dark: &'a AtomicBool,
}

/// The same with both hosts in hand.
pub fn between<T: Send>(
    path: &Experiment,
    v6: bool,
    seed: u64,
    limits: Limits,
    work: impl FnOnce(Hosts<'_>) -> T + Send,
) -> Option<T> {
    let hosts = match missing() {
        None => {
            Host::new(&HostSettings::near()).and_then(|local| Ok((local, Host::new(&HostSettings::far())?)))
        }
        Some(why) => {
            skip(Need::Root, format!("measuring over an emulated path: {why}"));
            return None;
        }
    };
    let (local, peer) = match hosts {
        Ok(hosts) => hosts,
        Err(error) => {
            skip(Need::Root, format!("measuring over an emulated path: {error}"));
            return None;
        }
    };
    let address = if v6 {
        SocketAddr::new(HostSettings::far().address.1.into(), 0)
    } else {
        SocketAddr::new(HostSettings::far().address.0.into(), 0)
    };
    let point = path.point(0);
    let elements = &point.scenario.path;
    let mut emulator =
        Emulator::new(elements, seed, Settings::default(), local.port(), peer.port(), Clock::start())
            .expect("a path");
    let serve = Serve { bind: vec![address], key: None, limits };
    let server = peer.namespace().run(|| Server::bind(&serve)).expect("a namespace").expect("it can wait");
    let address = server.addresses()[0];
    let (over, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let done = thread::scope(|scope| {
        let path = scope.spawn(|| emulator.run(&over, &mut NoRecorder));
        let serves = scope.spawn(|| peer.namespace().run(|| server.run(&stop, &|_| {})));
        let done = {
            let (_over, _stop) = (Stop(&over), Stop(&stop));
            local
                .namespace()
                .run(|| work(Hosts { address, peer: peer.namespace(), dark: &over }))
                .expect("a namespace")
        };
        path.join().expect("no panic").expect("packets are moved");
        serves.join().expect("no panic").expect("a namespace").expect("it serves");
        done
    });
    Some(done)
}
