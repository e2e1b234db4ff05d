//! What `farpath measure` sends: how fast, beside iperf3, and how much on time.

use super::Unmeasured;
use super::load::{Load, Moved};
use farpath_emu::{Clock, HostSettings, Namespace, RealTime};
use farpath_engine::provenance;
use farpath_experiment::Experiment;
use farpath_measure::serve::{Limits, Serve, Server};
use farpath_measure::{Family, Peer, measure};
use farpath_run::{MessageRow, Run};
use farpath_traffic::Token;
use farpath_traffic::datagram::{DatagramSocket, Echo, Until, answer, echo};
use farpath_units::{Bytes, Duration, Instant};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Of a stream.
const SECONDS: u32 = 3;

/// A responder in the far namespace, and an upload to it.
pub struct Measured {
    pub size: u64,
}

impl Load for Measured {
    fn run(&self, near: &Namespace, far: &Namespace) -> Result<Moved, Unmeasured> {
        let run = session(&format!("size = \"{} B\"", self.size), near, far)?;
        let flow = run.flows.into_iter().next().ok_or_else(|| Unmeasured::Load("no flow".to_owned()))?;
        match flow.transfer_time {
            Some(time) => Ok(Moved { bytes: self.size, seconds: time.as_secs_f64() }),
            None => Err(Unmeasured::Load(format!("the transfer failed: {} {}", flow.outcome, flow.detail))),
        }
    }
}

/// What `farpath measure` finds for one transfer.
fn session(transfer: &str, near: &Namespace, far: &Namespace) -> Result<Run, Unmeasured> {
    // An MSS that no socket takes: the device's own is in force, as it is for iperf3.
    let text = format!(
        "title = \"bench\"\npath = [{{ element = \"link\", rate = \"1 Gbit/s\" }}]\nsender.stack = \"linux-6\"\n\
         sender.mss = \"65000 B\"\nreceiver.mss = \"65000 B\"\nhorizon = \"120 s\"\noutput.messages = true\n\
         transfer = {{ {transfer}, opener = \"sender\" }}"
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
            let mut peer = Peer::connect(&address, Family::Any, None, &never)?;
            let point = &experiment.point(0);
            measure(&mut peer, point, 1, provenance(&experiment, point), &never, &mut |_| {})
        });
        stop.store(true, Ordering::Relaxed);
        measured
    });
    measured?.map_err(|error| failed(&error))?.ok_or_else(|| failed(&"the transfer was stopped"))
}

/// How much later than due the messages of a TCP stream were written, so many a second for some seconds; the smallest first.
pub fn stream_lateness(
    per_second: u32,
    near: &Namespace,
    far: &Namespace,
) -> Result<Vec<Duration>, Unmeasured> {
    let (size, ns) = (200, 1_000_000_000 / per_second);
    let stream = format!("message = \"{size} B\", interval = \"{ns} ns\", duration = \"{SECONDS} s\"");
    let run = session(&stream, near, far)?;
    let late = |row: MessageRow| Some(row.written?.saturating_since(row.due));
    let mut late: Vec<Duration> = run.messages.iter().filter_map(late).collect();
    if late.is_empty() {
        return Err(Unmeasured::Load("no message was written".to_owned()));
    }
    late.sort_unstable();
    Ok(late)
}

/// How much later than due datagrams were written, by a sender of so many a second for some seconds, over the loopback
/// device; the smallest first.
pub fn lateness(per_second: u32) -> Result<Vec<Duration>, Unmeasured> {
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
        scope.spawn(|| answer(&mut answers, count, asked.size, None, until(&over)));
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
