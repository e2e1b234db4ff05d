//! Two hosts and the emulator between them, for as long as something runs in them.

use super::Unmeasured;
use farpath_elements::{Bernoulli, Delay, ElementKind, ElementSpec, PacketCount};
use farpath_emu::{
    Backend, Clock, Emulator, Host, HostSettings, LoopReport, Namespace, NoRecorder, RealtimeGrant, Settings,
    VethBaseline,
};
use farpath_path::PerDirection;
use farpath_traffic::counters::Counters;
use farpath_units::{Duration, Probability};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Buffers beyond what 10 Gbit/s and 14 ms there and back need: the connection is to be bound by the emulator.
const BUFFERS: [(&str, &str); 2] =
    [("net.ipv4.tcp_rmem", "4096 131072 67108864"), ("net.ipv4.tcp_wmem", "4096 131072 67108864")];

/// A path, and how it is emulated.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// One way.
    pub delay: Duration,
    /// Of packets in the data's direction.
    pub loss: f64,
    pub coalesce: bool,
    pub realtime: bool,
    pub backend: Backend,
}

impl Default for Line {
    fn default() -> Line {
        Line { delay: Duration::ZERO, loss: 0.0, coalesce: true, realtime: true, backend: Backend::Auto }
    }
}

impl Line {
    fn path(&self) -> Vec<ElementSpec> {
        let forward = Probability::new(self.loss).expect("a probability");
        let loss_rate = PerDirection { forward, reverse: Probability::ZERO };
        let element = |name: &str, kind| ElementSpec { name: name.to_owned(), kind };
        let mut path = Vec::new();
        if self.loss > 0.0 {
            path.push(element(
                "loss",
                ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::All }),
            ));
        }
        if !self.delay.is_zero() {
            path.push(element("delay", ElementKind::Delay(Delay { delay: PerDirection::both(self.delay) })));
        }
        path
    }
}

/// Hosts that are ready.
pub struct Rig {
    line: Line,
    near: Host,
    far: Host,
}

/// What ran, and what the emulator says of it.
pub struct Emulated<T> {
    pub result: T,
    pub report: LoopReport,
    /// Segments that the near host's kernel sent again.
    pub retransmissions: u64,
    /// Packets that were lost outside the path.
    pub outside: u64,
}

impl Rig {
    pub fn new(line: Line) -> Result<Rig, Unmeasured> {
        let host = |settings: HostSettings| {
            Host::new(&HostSettings { sysctls: sysctls(), backend: line.backend, ..settings })
        };
        Ok(Rig { line, near: host(HostSettings::near())?, far: host(HostSettings::far())? })
    }

    /// Emulates while `work` runs, which is given the near and the far host's namespace.
    pub fn run<T>(
        &self,
        work: impl FnOnce(&Namespace, &Namespace) -> Result<T, Unmeasured>,
    ) -> Result<Emulated<T>, Unmeasured> {
        let Line { coalesce, realtime, .. } = self.line;
        let settings = Settings { coalesce, realtime, ..Settings::default() };
        let (near, far) = (self.near.namespace(), self.far.namespace());
        let (ports, clock) = ([&self.near, &self.far].map(Host::port), Clock::start());
        let [near_port, far_port] = ports;
        let mut emulator = Emulator::new(&self.line.path(), 1, settings, near_port, far_port, clock)?;
        let before = (retransmissions(near)?, self.dropped()?);
        let stop = AtomicBool::new(false);
        let (result, report) = thread::scope(|scope| {
            let emulating = scope.spawn(|| emulator.run(&stop, &mut NoRecorder));
            let result = work(near, far);
            stop.store(true, Ordering::Relaxed);
            (result, emulating.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
        });
        let report = report?;
        let refused = report.packets.forward.refused + report.packets.reverse.refused;
        Ok(Emulated {
            result: result?,
            retransmissions: retransmissions(near)? - before.0,
            outside: self.dropped()? - before.1 + refused,
            report,
        })
    }

    fn dropped(&self) -> Result<u64, Unmeasured> {
        Ok(self.near.dropped()?.total() + self.far.dropped()?.total())
    }
}

impl<T> Emulated<T> {
    /// The result, where the emulator was scheduled as it was to be.
    pub fn scheduled_as(self, realtime: bool) -> Result<T, Unmeasured> {
        match (realtime, self.report.realtime) {
            (true, RealtimeGrant::Refused(why)) => Err(Unmeasured::Load(why)),
            _ => Ok(self.result),
        }
    }
}

/// Two hosts without an emulator between them.
pub fn veth_baseline() -> Result<VethBaseline, Unmeasured> {
    Ok(VethBaseline::new(&sysctls())?)
}

fn sysctls() -> Vec<(String, String)> {
    BUFFERS.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn retransmissions(namespace: &Namespace) -> Result<u64, Unmeasured> {
    let counters = namespace.run(Counters::read)??;
    let again = counters.get("TcpRetransSegs");
    again
        .and_then(|again| u64::try_from(again).ok())
        .ok_or_else(|| Unmeasured::Load("the kernel does not count retransmissions".to_owned()))
}
