//! The two programs of each flow, and what they and their kernels say at the end.

use super::hosts::Hosts;
use crate::EngineError;
use farpath_emu::{Clock, Dress};
use farpath_experiment::{FlowSpec, Opener, Scenario};
use farpath_run::{FlowRow, Outcome};
use farpath_traffic::{BulkEnd, End, EndReport, Opening, Prepared, Role, SocketOptions};
use farpath_units::{Duration, Instant};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How long after a transfer TCP may take to close in good order. What it takes longer is no part of any number.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// How often the programs are looked at. The end of each is timed by itself.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(2);

/// Both ends of each flow: their sockets are there, and those that listen do.
pub(super) struct Programs {
    flows: Vec<[Prepared; 2]>,
}

/// How a flow came out.
pub(super) struct FlowEnds {
    pub sender: EndReport,
    pub receiver: EndReport,
}

impl Programs {
    pub fn prepare(scenario: &Scenario, hosts: &Hosts) -> Result<Programs, EngineError> {
        let end = |number: u16, flow: &FlowSpec, role: Role| -> Result<Prepared, EngineError> {
            let host = match role {
                Role::Sender => flow.direction,
                Role::Receiver => flow.direction.opposite(),
            };
            let opens = (role == Role::Sender) == (flow.opener == Opener::Sender);
            let end = BulkEnd {
                role,
                opening: if opens { Opening::Connect } else { Opening::Listen },
                local: hosts.address(host, number),
                peer: hosts.address(host.opposite(), number),
                size: flow.size,
                request: flow.request,
                start: Instant::ZERO + flow.start,
                deadline: Instant::ZERO + scenario.horizon,
                sample_every: scenario.output.series.then_some(scenario.emulate.sample),
                read_rate: hosts.dress[host].read_rate,
                close_within: CLOSE_WITHIN,
                socket: socket_options(&hosts.dress[host]),
            };
            // A socket belongs to the namespace in which it was made, wherever it is used.
            Ok(hosts.of[host].namespace().run(|| Prepared::new(end))??)
        };
        let both = |(number, flow): (u16, &FlowSpec)| -> Result<[Prepared; 2], EngineError> {
            Ok([end(number, flow, Role::Sender)?, end(number, flow, Role::Receiver)?])
        };
        Ok(Programs { flows: (0..).zip(&scenario.flows).map(both).collect::<Result<_, _>>()? })
    }

    /// Runs them all to their ends, or until one of `stops` is set.
    pub fn run(self, clock: Clock, stops: &[&AtomicBool]) -> Vec<FlowEnds> {
        let over: Vec<AtomicBool> = self.flows.iter().map(|_| AtomicBool::new(false)).collect();
        thread::scope(|scope| {
            let program = |end: Prepared, over| scope.spawn(move || run_one(end, clock, over));
            let flows = self.flows.into_iter().zip(&over);
            let threads: Vec<_> = flows.map(|(ends, over)| ends.map(|end| program(end, over))).collect();
            while threads.iter().flatten().any(|thread| !thread.is_finished()) {
                if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                    over.iter().for_each(|over| over.store(true, Ordering::Relaxed));
                }
                thread::park_timeout(LOOK_EVERY);
            }
            let ends = threads.into_iter().map(|ends| ends.map(|thread| joined(thread.join())));
            ends.map(|[sender, receiver]| FlowEnds { sender, receiver }).collect()
        })
    }
}

fn run_one(end: Prepared, clock: Clock, over: &AtomicBool) -> EndReport {
    let report = end.run(clock.epoch(), over, &mut |_| {});
    // The other end of a connection that is gone would wait for nothing.
    if !report.end.is_completed() {
        over.store(true, Ordering::Relaxed);
    }
    report
}

impl FlowEnds {
    /// What the programs know: whether, when and how much.
    pub fn row(&self, number: u32, spec: &FlowSpec) -> FlowRow {
        let start = Instant::ZERO + spec.start;
        let (outcome, detail) = self.outcome();
        let ended_at = match outcome {
            Outcome::Completed => self.receiver.finished_at.unwrap_or(self.receiver.ended_at),
            _ => self.sender.ended_at.min(self.receiver.ended_at),
        };
        let transfer_time = (outcome == Outcome::Completed).then(|| ended_at.saturating_since(start));
        let per_second = |bytes: u64| {
            let time = transfer_time.filter(|time| !time.is_zero())?;
            Some(bytes as f64 * 8.0 / time.as_secs_f64())
        };
        FlowRow {
            ended_at: Some(ended_at),
            detail,
            start,
            connect_time: self.sender.connected_at.map(|at| at.saturating_since(start)),
            transfer_time,
            bytes_read: self.receiver.bytes,
            goodput_bit_per_s: per_second(spec.size.0),
            ..FlowRow::new(number, spec.direction.name(), outcome, spec.size)
        }
    }

    /// How the flow ended: as the first of its ends did that did not complete.
    fn outcome(&self) -> (Outcome, String) {
        let ends = [&self.sender, &self.receiver];
        // Who was stopped only followed the other.
        let first = ends
            .into_iter()
            .filter(|report| !matches!(report.end, End::Completed | End::Stopped))
            .min_by_key(|report| report.ended_at);
        match first.map(|report| &report.end) {
            _ if self.receiver.end.is_completed() => (Outcome::Completed, String::new()),
            None | Some(End::Deadline) => (Outcome::Horizon, String::new()),
            Some(End::ConnectTimedOut) => (Outcome::ConnectTimedOut, String::new()),
            Some(other) => (Outcome::Aborted, other.to_string()),
        }
    }
}

/// What the dress says of sockets.
fn socket_options(dress: &Dress) -> SocketOptions {
    SocketOptions {
        congestion_control: Some(dress.congestion_control.clone()),
        nodelay: dress.nodelay,
        delack_max: dress.delayed_ack_max,
        ..SocketOptions::default()
    }
}

fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
