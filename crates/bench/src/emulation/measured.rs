//! What `farpath measure` sends: how fast, beside iperf3, and how much on time.

use super::Unmeasured;
use super::load::{Load, Moved};
use farpath_emu::{Clock, HostSettings, Namespace, RealTime};
use farpath_engine::provenance;
use farpath_experiment::Experiment;
use farpath_measure::serve::{Limits, Serve, Server};
use farpath_measure::{Family, Far, measure};
use farpath_traffic::Token;
use farpath_traffic::datagram::{DatagramSocket, Echo, Until, answer, echo};
use farpath_units::{Bytes, Duration, Instant};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A responder in the far namespace, and an upload to it.
pub struct Measured {
    pub size: u64,
}

impl Load for Measured {
    fn run(&self, near: &Namespace, far: &Namespace) -> Result<Moved, Unmeasured> {
        // An MSS that no socket takes: the device's own is in force, as it is for iperf3.
        let text = format!(
            "title = \"bench\"\npath = [{{ element = \"link\", rate = \"1 Gbit/s\" }}]\nsender.stack = \"linux-6\"\n\
             sender.mss = \"65000 B\"\nreceiver.mss = \"65000 B\"\nhorizon = \"120 s\"\n\
             transfer = {{ size = \"{} B\", opener = \"sender\" }}",
            self.size
        );
        let experiment = Experiment::parse(&text, "bench", &[])?;
        let address = SocketAddr::from((HostSettings::far().address.0, 0));
        let limits = Limits { bytes: Bytes::MAX, ..Limits::default() };
        let serve = Serve { bind: vec![address], key: None, limits };
        let failed = |error: &dyn std::fmt::Display| Unmeasured::Load(error.to_string());
        let server = far.run(|| Server::bind(&serve))?.map_err(|error| failed(&error))?;
        let address = server.addresses()[0].to_string();
        let (stop, never) = (AtomicBool::new(false), AtomicBool::new(false));
        let measured = thread::scope(|scope| {
            scope.spawn(|| far.run(|| server.run(&stop, &|_| {})));
            let measured = near.run(|| {
                let mut far = Far::connect(&address, Family::Any, None, &never)?;
                let point = &experiment.points()[0];
                measure(&mut far, point, 1, provenance(&experiment, point), &never, &mut |_| {})
            });
            stop.store(true, Ordering::Relaxed);
            measured
        });
        let run = measured?.map_err(|error| failed(&error))?;
        let flow = run.and_then(|run| run.flows.into_iter().next());
        let flow = flow.ok_or_else(|| failed(&"the transfer was stopped"))?;
        match flow.transfer_time {
            Some(time) => Ok(Moved { bytes: self.size, seconds: time.as_secs_f64() }),
            None => Err(failed(&format!("the transfer failed: {} {}", flow.outcome, flow.detail))),
        }
    }
}

/// How much later than due messages were written, by a sender of so many a second for some seconds, over the loopback
/// device; the smallest first.
pub fn lateness(per_second: u32) -> Result<Vec<Duration>, Unmeasured> {
    const SECONDS: u32 = 3;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let token = Token([7; Token::LEN]);
    let mut answers = DatagramSocket::from(any, any.ip(), token)?;
    let mut sends = DatagramSocket::to(any, answers.local(), token)?;
    let count = per_second * SECONDS;
    let asked = Echo {
        count,
        size: 200,
        interval: Duration::from_nanos(1_000_000_000 / u64::from(per_second)),
        linger: Duration::from_millis(200),
    };
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let deadline = Instant::ZERO + Duration::from_secs(60);
    let until = |stop| Until { epoch: Clock::start().epoch(), deadline, stop };
    let echoed = thread::scope(|scope| {
        scope.spawn(|| answer(&mut answers, count, None, until(&over)));
        // As `farpath measure` does.
        let _ahead = RealTime::of_program();
        let echoed = echo(&mut sends, asked, until(&stop));
        over.store(true, Ordering::Relaxed);
        echoed
    })?;
    let mut late = echoed.late;
    late.sort_unstable();
    Ok(late)
}
