//! A responder on the loopback device, and experiments to measure against it.

#![allow(dead_code)]

pub mod raw;
pub mod relay;

use farpath_experiment::Experiment;
use farpath_measure::serve::{Limits, Serve, Server};
use farpath_measure::{Family, Key, MeasureError, Peer, measure};
use farpath_run::{Provenance, Run};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub static NEVER: AtomicBool = AtomicBool::new(false);

pub fn v4() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub fn served(bind: SocketAddr, key: Option<&Key>, limits: Limits) -> Server {
    Server::bind(&Serve { bind: vec![bind], key: key.cloned(), limits }).expect("it can wait")
}

/// Runs `work` with the address of a responder, and gives also what was told of clients.
pub fn with<T>(server: &Server, work: impl FnOnce(SocketAddr) -> T) -> (T, Vec<String>) {
    let (stop, told) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let address = server.addresses()[0];
    let done = thread::scope(|scope| {
        let serves =
            scope.spawn(|| server.run(&stop, &|line| told.lock().expect("no panic").push(line.to_owned())));
        // Also where `work` panics: the scope waits for the responder.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stop = Stop(&stop);
        let done = work(address);
        drop(stop);
        serves.join().expect("no panic").expect("it serves until it is stopped");
        done
    });
    (done, told.into_inner().expect("no panic"))
}

pub fn peer(address: SocketAddr) -> Peer {
    Peer::connect(&address.to_string(), Family::Any, None, &NEVER).expect("it is let in")
}

pub fn experiment(more: &str) -> Experiment {
    let text = format!(
        "title = \"t\"\npath = [{{ element = \"link\", rate = \"1 Gbit/s\" }}]\nhorizon = \"60 s\"\n\
         sender.stack = \"linux-6\"\n{more}\n"
    );
    Experiment::parse(&text, "t", &[]).unwrap_or_else(|error| panic!("{error}"))
}

pub fn run(peer: &mut Peer, experiment: &Experiment) -> Result<Run, MeasureError> {
    let point = &experiment.point(0);
    let run = measure(peer, point, 1, Provenance::default(), &NEVER, &mut |_| {})?;
    Ok(run.expect("nobody stops it"))
}

pub fn address(address: SocketAddr) -> IpAddr {
    address.ip()
}
