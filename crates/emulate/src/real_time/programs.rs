//! The two programs of each flow, and what they and their kernels say at the end.

use super::drivers::Drivers;
use super::hosts::Hosts;
use crate::EmulateError;
use crate::load::is_light;
use crate::preflight::{control_of, has_bpf};
use crate::progress::Going;
use farpath_emu::{Clock, KernelProfile, RealTime};
use farpath_experiment::{FlowSpec, Opener, Scenario, base_rtt};
use farpath_observe::row_budget::RowBudget;
use farpath_observe::series::Series;
use farpath_run::{FlowRow, MessageRow, Outcome};
use farpath_traffic::{
    BulkEnd, End, EndReport, MessageStamps, Opening, Prepared, Role, SocketOptions, TcpInfo,
};
use farpath_units::{Bytes, Duration, Instant, Messages};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

/// How long after a transfer TCP may take to close in good order. What it takes longer is no part of any number.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Both ends of each flow: their sockets are there, and those that listen do.
pub(super) struct Programs {
    flows: Vec<Both>,
    look_every: Duration,
    /// Of series, where they are recorded.
    row_budget: Option<RowBudget>,
    /// Whether they run before the machine's other programs.
    ahead: bool,
}

/// Both ends of one flow.
struct Both {
    sender: Prepared,
    receiver: Prepared,
    spec: FlowSpec,
}

/// How a flow came out.
pub(super) struct FlowEnds {
    sender: EndReport,
    receiver: EndReport,
    /// The sender's congestion window over time, and for how long: its mean.
    cwnd: TimeMean,
    /// What each end's kernel said over time, where that is recorded.
    pub series: [Option<Series>; 2],
}

/// Mean of a value that is looked at now and then, and taken to last until it is looked at again.
#[derive(Debug, Default)]
struct TimeMean {
    last: Option<(Instant, f64)>,
    sum: f64,
    seconds: f64,
}

impl TimeMean {
    fn note(&mut self, at: Instant, value: f64) {
        if let Some((since, value)) = self.last.replace((at, value)) {
            let seconds = at.saturating_since(since).as_secs_f64();
            (self.sum, self.seconds) = (self.sum + seconds * value, self.seconds + seconds);
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.sum / self.seconds)
    }
}

impl Programs {
    /// They look every `look_every` whether to stop.
    pub fn prepare(
        scenario: &Scenario,
        hosts: &Hosts,
        drivers: &Drivers,
        look_every: Duration,
        row_budget: &RowBudget,
    ) -> Result<Programs, EmulateError> {
        let end = |number: u16, flow: &FlowSpec, role: Role| -> Result<Prepared, EmulateError> {
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
                messages: flow.stream.map(|stream| stream.messages),
                reply: flow.reply(),
                writing: flow.writing,
                request: flow.request,
                exchanges: 1,
                token: None,
                start: Instant::ZERO + flow.start,
                deadline: Instant::ZERO + scenario.horizon,
                sample_every: Some(scenario.emulate.sample_over(base_rtt(scenario, flow.direction))),
                read_rate: hosts.profile[host].read_rate,
                low_water: hosts.profile[host].receive_low_water,
                close_within: CLOSE_WITHIN,
                socket: {
                    let (sender, receiver) = scenario.ends(flow);
                    let (end, stack) = match role {
                        Role::Sender => ("sender", sender),
                        Role::Receiver => ("receiver", receiver),
                    };
                    let mut socket = socket_options(&hosts.profile[host]);
                    if flow.is_special() && !has_bpf(scenario, flow, end) {
                        socket.congestion_control = control_of(flow, stack).map(str::to_owned);
                    }
                    drivers.ask(host, &stack.config, &mut socket);
                    socket
                },
            };
            // A socket belongs to the namespace in which it was made, wherever it is used.
            let prepared = hosts.of[host].namespace().run(|| Prepared::new(end))??;
            Ok(prepared.stopping_within(look_every))
        };
        let both = |(number, flow): (u16, &FlowSpec)| -> Result<Both, EmulateError> {
            let (sender, receiver) = (end(number, flow, Role::Sender)?, end(number, flow, Role::Receiver)?);
            Ok(Both { sender, receiver, spec: flow.clone() })
        };
        let flows = (0..).zip(&scenario.flows).map(both).collect::<Result<_, _>>()?;
        let row_budget = scenario.output.series.then(|| row_budget.clone());
        Ok(Programs { flows, look_every, row_budget, ahead: is_light(scenario) })
    }

    /// Runs them all to their ends, or until one of `stops` is set. The end of each program is timed by itself.
    pub fn run(self, clock: Clock, stops: &[&AtomicBool], going: &Going) -> Vec<FlowEnds> {
        let over: Vec<AtomicBool> = self.flows.iter().map(|_| AtomicBool::new(false)).collect();
        thread::scope(|scope| {
            let Programs { flows, look_every, row_budget, ahead } = self;
            let look_every = std::time::Duration::from_nanos(look_every.as_nanos());
            let start = |(number, (both, over))| {
                let series = || row_budget.clone().map(|row_budget| Series::within(number, row_budget));
                start(scope, clock, [series(), series()], both, over, going, ahead)
            };
            let threads: Vec<_> = (0..).zip(flows.into_iter().zip(&over)).map(start).collect();
            while threads.iter().any(|(sender, receiver)| !sender.is_finished() || !receiver.is_finished()) {
                if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                    over.iter().for_each(|over| over.store(true, Ordering::Relaxed));
                }
                going.it_is(clock.now());
                thread::park_timeout(look_every);
            }
            let ends = threads.into_iter().map(|(sender, receiver)| {
                let (sender, cwnd, of_sender) = joined(sender.join());
                let (receiver, of_receiver) = joined(receiver.join());
                FlowEnds { sender, receiver, cwnd, series: [of_sender, of_receiver] }
            });
            ends.collect()
        })
    }
}

type Sending = (EndReport, TimeMean, Option<Series>);
type Receiving = (EndReport, Option<Series>);

/// The two programs of a flow, each on a thread of its own.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    clock: Clock,
    [mut of_sender, mut of_receiver]: [Option<Series>; 2],
    Both { sender, receiver, spec }: Both,
    over: &'scope AtomicBool,
    going: &'scope Going,
    ahead: bool,
) -> (ScopedJoinHandle<'scope, Sending>, ScopedJoinHandle<'scope, Receiving>) {
    // The other end of a connection that is gone would wait for nothing.
    let ended = |report: EndReport| {
        if !report.end.is_completed() {
            over.store(true, Ordering::Relaxed);
        }
        report
    };
    // Not granted, they run as others do, and the grade has what they waited.
    let step_ahead = move || ahead.then(RealTime::of_program);
    let sending = move || {
        let _ahead = step_ahead();
        let mut cwnd = TimeMean::default();
        let report = sender.run(clock.epoch(), over, &mut |sample| {
            cwnd.note(sample.at, f64::from(sample.info.snd_cwnd) * sample.info.snd_mss.0 as f64);
            if let Some(series) = &mut of_sender {
                series.sender(sample, spec.size, spec.opener == Opener::Sender);
            }
        });
        (ended(report), cwnd, of_sender)
    };
    let receiving = move || {
        let _ahead = step_ahead();
        let mut read = 0;
        let report = receiver.run(clock.epoch(), over, &mut |sample| {
            going.read(sample.bytes.0 - std::mem::replace(&mut read, sample.bytes.0));
            if let Some(series) = &mut of_receiver {
                series.receiver(sample);
            }
        });
        (ended(report), of_receiver)
    };
    (scope.spawn(sending), scope.spawn(receiving))
}

/// Enters what the data sender's kernel said last, where packets do not tell it. Timeouts of before, `handshake`, are none of the data's.
pub(super) fn enter_last(row: &mut FlowRow, info: &TcpInfo, handshake: Option<u16>) {
    row.timeouts = info.total_rto.zip(handshake).map(|(all, before)| f64::from(all.saturating_sub(before)));
    row.dsacks = info.dsack_dups.map(f64::from);
    row.final_cwnd = Some(Bytes(u64::from(info.snd_cwnd) * info.snd_mss.0));
    (row.srtt, row.rto) = (info.srtt, Some(info.rto));
}

impl FlowEnds {
    /// What the programs know: whether, when and how much. It began when the first SYN was `opened`, which on a busy
    /// machine is later than it should have been.
    pub fn row(&self, number: u32, spec: &FlowSpec, opened: Option<Instant>) -> FlowRow {
        let start = opened.unwrap_or(Instant::ZERO + spec.start);
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
        let opener = match spec.opener {
            Opener::Sender => &self.sender,
            Opener::Receiver => &self.receiver,
        };
        FlowRow {
            ended_at: Some(ended_at),
            detail,
            start,
            opened: Some(f64::from(u8::from(opener.connected_at.is_some()))),
            connect_time: self.sender.connected_at.map(|at| at.saturating_since(start)),
            transfer_time,
            bytes_read: self.receiver.bytes,
            goodput_bit_per_s: per_second(spec.size.0),
            ..FlowRow::new(number, spec.direction.name(), outcome, spec.size)
        }
    }

    /// Enters what the kernels know, where packets do not tell it; what packets tell is in the row already.
    pub fn enter(&self, row: &mut FlowRow) {
        row.mean_cwnd = self.cwnd.mean();
        let Some(info) = &self.sender.info else { return };
        // What it had counted when the connection was there are the handshake's. They cannot be told from the SYNs and
        // SYN/ACKs that were sent: one that comes again is answered again.
        let handshake = self.sender.info_at_connect.as_ref().unwrap_or(info).total_rto;
        enter_last(row, info, handshake);
        row.min_rtt = info.min_rtt;
    }

    /// A row for each message that was due by the end; what the path saw leave its host is `sent`.
    pub fn messages(&self, flow: u32, messages: &Messages, sent: &[Instant]) -> Vec<MessageRow> {
        let sender = self.sender.messages.as_ref().and_then(|stamps| Some((stamps, stamps.began?)));
        let Some((MessageStamps { at: written, answered, .. }, began)) = sender else { return Vec::new() };
        let arrived = self.receiver.messages.as_ref().map_or(&[][..], |stamps| &stamps.at);
        let count = messages.due_by(self.receiver.ended_at.saturating_since(began));
        let due = (0..count).map(|number| began + messages.due_after(number));
        MessageRow::of_flow(flow, due, &[], [written, sent, arrived, answered])
    }

    /// For how much of its time the end that waited more waited for a processor.
    pub fn processor_wait(&self) -> Option<f64> {
        [&self.sender, &self.receiver].into_iter().filter_map(|end| end.processor_wait).reduce(f64::max)
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

/// What the profile says of sockets.
pub(crate) fn socket_options(profile: &KernelProfile) -> SocketOptions {
    SocketOptions {
        congestion_control: profile.congestion_control.clone(),
        nodelay: profile.nodelay,
        delack_max: profile.delayed_ack_max,
        ..SocketOptions::default()
    }
}

fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
