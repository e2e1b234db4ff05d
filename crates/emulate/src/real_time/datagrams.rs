//! Streams over UDP between two programs of the running kernel.

use super::carry;
use super::grade::Before;
use super::hosts::Hosts;
use crate::EmulateError;
use crate::load::is_light;
use crate::progress::Going;
use farpath_emu::{Clock, PacketEvent, Queues, RealTime, Recorder, WirePacket};
use farpath_experiment::{Point, Scenario};
use farpath_observe::air;
use farpath_observe::capture::FIRST_PORT;
use farpath_observe::datagrams::{enter, setups};
use farpath_observe::explicit_rate::router_rows;
use farpath_path::{Direction, DropCounts, PathPacket, PerDirection};
use farpath_run::{Engine, Provenance, Run, RunKey};
use farpath_sim::{DatagramDriver, DatagramResult, DatagramSetup};
use farpath_traffic::datagram::{DatagramStream, StreamSocket, StreamStamps, StreamTally, Until};
use farpath_units::{Duration, DurationHistogram, Instant};
use std::io;
use std::mem;
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Nothing is left to come when nothing has happened for so long with the path empty: a program that was ready meanwhile has had
/// a processor by then. No number depends on it.
const QUIET: Duration = Duration::from_millis(500);

/// How often it is looked whether it is over.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// Emulates the streams of a point, once.
pub(super) fn once(
    point: &Point,
    seed: u64,
    mut provenance: Provenance,
    stop: &AtomicBool,
    going: &Going,
) -> Result<Run, EmulateError> {
    let scenario = &point.scenario;
    let hosts = Hosts::configured(scenario)?;
    let setups = setups(scenario);
    let pairs = pairs(&setups, &hosts).map_err(EmulateError::Datagrams)?;
    let before = Before::count_from_here(&hosts.of)?;
    hosts.enter(&mut provenance);

    let under_way = UnderWay::default();
    let mut watch = Watch {
        flows: &setups,
        drops: vec![PerDirection::default(); setups.len()],
        waits: vec![None; setups.len()],
        under_way: &under_way,
    };
    let clock = Clock::start();
    let programs = Programs {
        setups: &setups,
        tally: StreamTally::default(),
        under_way: &under_way,
        clock,
        deadline: Instant::ZERO + scenario.horizon,
        ahead: is_light(scenario),
    };
    let (report, ends) = carry(scenario, seed, &hosts.of, hosts.clamp(), clock, &mut watch, |done| {
        programs.run(pairs, &[stop, done], going)
    })?;
    let ends = ends.map_err(EmulateError::Datagrams)?;

    let key = RunKey { point: point.index as u64, engine: Engine::Emulate, seed: Some(seed) };
    let mut run = Run::new(key, provenance);
    let waits = ends.each.iter().flatten().filter_map(|stamps| stamps.processor_wait);
    let counted = before.counted(&hosts.of)?;
    run.grade = Some(before.grade(&hosts.of, &report, &counted, waits.reduce(f64::max), scenario)?);
    air::record(&mut run, &report.air);
    run.provenance.caveats.extend(air::given_up(&report.elements));
    run.routers = router_rows(report.elements);
    let seen = watch.drops.into_iter().zip(watch.waits);
    let results: Vec<DatagramResult> =
        ends.each.into_iter().zip(seen).map(|(stamps, seen)| result(stamps, seen, ends.over)).collect();
    enter(scenario, &setups, &results, &mut run);
    Ok(run)
}

/// Whether the sockets of a scenario can be made on these hosts.
pub(super) fn can_be_prepared(scenario: &Scenario, hosts: &Hosts) -> Result<(), EmulateError> {
    pairs(&setups(scenario), hosts).map(drop).map_err(EmulateError::Datagrams)
}

/// Both ends of each flow.
fn pairs(setups: &[DatagramSetup], hosts: &Hosts) -> io::Result<Vec<[StreamSocket; 2]>> {
    let end = |flow: u16, host: Direction| {
        let [local, peer] = [host, host.opposite()].map(|host| hosts.address(host, flow));
        // A socket belongs to the namespace in which it was made, wherever it is used.
        hosts.of[host].namespace().run(|| StreamSocket::new(local, peer)).map_err(io::Error::other)?
    };
    let pair = |(flow, setup): (u16, &DatagramSetup)| {
        Ok([end(flow, setup.direction)?, end(flow, setup.direction.opposite())?])
    };
    (0..).zip(setups).map(pair).collect()
}

/// What the programs saw: sender and receiver of each flow.
struct Ends {
    each: Vec<[StreamStamps; 2]>,
    /// All was sent, and nothing of it was under way any more.
    over: bool,
}

/// The two programs of each flow.
struct Programs<'a> {
    setups: &'a [DatagramSetup],
    tally: StreamTally,
    under_way: &'a UnderWay,
    clock: Clock,
    deadline: Instant,
    /// Whether they run before the machine's other programs.
    ahead: bool,
}

impl Programs<'_> {
    /// Runs them until all is over, or until one of `stops` is set.
    fn run(&self, pairs: Vec<[StreamSocket; 2]>, stops: &[&AtomicBool], going: &Going) -> io::Result<Ends> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let stop = &stop;
            let start = |(setup, [sender, receiver]): (&DatagramSetup, [StreamSocket; 2])| {
                let DatagramSetup { start, messages, reply, .. } = *setup;
                let stream = DatagramStream { messages, reply, start };
                let [sends, answers] =
                    setup.asks.each_ref().map(|asks| asks.as_ref().map(DatagramDriver::new));
                [(sender, true, sends), (receiver, false, answers)].map(|(socket, sends, driver)| {
                    scope.spawn(move || self.one(&socket, sends, &stream, driver, stop))
                })
            };
            let threads: Vec<_> = self.setups.iter().zip(pairs).map(start).collect();
            let over =
                self.wait(stops, going, || threads.iter().flatten().any(|thread| thread.is_finished()));
            stop.store(true, Ordering::Relaxed);
            let joined = threads.into_iter().map(|[sender, receiver]| {
                let join = |thread: thread::ScopedJoinHandle<'_, io::Result<StreamStamps>>| {
                    thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
                };
                Ok([join(sender)?, join(receiver)?])
            });
            Ok(Ends { each: joined.collect::<io::Result<_>>()?, over })
        })
    }

    fn one(
        &self,
        socket: &StreamSocket,
        sends: bool,
        stream: &DatagramStream,
        driver: Option<DatagramDriver>,
        stop: &AtomicBool,
    ) -> io::Result<StreamStamps> {
        // Not granted, they run as others do, and the grade has what they waited.
        let _ahead = self.ahead.then(RealTime::of_program);
        let until = Until { epoch: self.clock.epoch(), deadline: self.deadline, stop };
        match sends {
            true => socket.send(stream, driver, &self.tally, until),
            false => socket.receive(stream, driver, &self.tally, until),
        }
    }

    /// Whether all is over; it is not where it was stopped, or where a program ended by itself.
    fn wait(&self, stops: &[&AtomicBool], going: &Going, ended: impl Fn() -> bool) -> bool {
        let all: u64 = self.setups.iter().map(|setup| setup.messages.count).sum();
        let (mut before, mut since, mut read) = (None, self.clock.now(), 0);
        while !ended() && !stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            let now = self.clock.now();
            going.it_is(now);
            let bytes = self.tally.read_bytes.load(Ordering::Relaxed);
            going.read(bytes - mem::replace(&mut read, bytes));
            let state = self.state();
            if before.replace(state) != Some(state) {
                since = now;
            }
            let State { messages, written, taken, held, .. } = state;
            if (messages, written, held) == (all, taken, 0) && now.saturating_since(since) >= QUIET {
                return true;
            }
            thread::park_timeout(LOOK_EVERY);
        }
        false
    }

    fn state(&self) -> State {
        let of = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        let StreamTally { messages, written, read, .. } = &self.tally;
        let UnderWay { taken, held } = self.under_way;
        State {
            messages: of(messages),
            written: of(written),
            read: of(read),
            taken: of(taken),
            held: of(held),
        }
    }
}

/// How far all flows have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    messages: u64,
    written: u64,
    read: u64,
    taken: u64,
    held: u64,
}

/// What the path has to do with the flows' datagrams.
#[derive(Debug, Default)]
struct UnderWay {
    /// Taken from their hosts.
    taken: AtomicU64,
    /// Packets of any kind on the path.
    held: AtomicU64,
}

/// Counts what the path drops of each flow, and how long the rest waits.
struct Watch<'a> {
    flows: &'a [DatagramSetup],
    /// `forward` is the way of the messages.
    drops: Vec<PerDirection<DropCounts>>,
    /// How long messages that arrived had waited in queues; `None` on a path without a queue.
    waits: Vec<Option<DurationHistogram>>,
    under_way: &'a UnderWay,
}

impl Recorder for Watch<'_> {
    fn packet(
        &mut self,
        _: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        queues: Queues<'_>,
    ) {
        let sent = event == PacketEvent::Sent;
        self.under_way.held.store(queues.held() as u64 + u64::from(sent), Ordering::SeqCst);
        let Some([port, _]) = packet.udp_ports() else { return };
        let Some(flow) = port.checked_sub(FIRST_PORT).map(usize::from) else { return };
        let Some(setup) = self.flows.get(flow) else { return };
        let is_message = direction == setup.direction;
        match event {
            PacketEvent::Sent => drop(self.under_way.taken.fetch_add(1, Ordering::SeqCst)),
            PacketEvent::Dropped(cause) => {
                let way = if is_message { Direction::Forward } else { Direction::Reverse };
                self.drops[flow][way].add(cause);
            }
            PacketEvent::Received
                if is_message && packet.carries_data() && queues.backlog(direction).is_some() =>
            {
                self.waits[flow].get_or_insert_default().record(packet.queueing());
            }
            PacketEvent::Received | PacketEvent::Refused => {}
        }
    }
}

/// The two ends' stamps, as a simulation gives them.
fn result(
    [sender, receiver]: [StreamStamps; 2],
    (drops, queueing): (PerDirection<DropCounts>, Option<DurationHistogram>),
    over: bool,
) -> DatagramResult {
    let sent = sender.sent;
    let whole = |mut came: Vec<Option<Instant>>| {
        came.resize(sent.len(), None);
        came
    };
    DatagramResult {
        arrived: whole(receiver.came),
        answered: whole(sender.came),
        drops,
        queueing,
        driver: sender.driver,
        over,
        sent,
        stuck: None,
    }
}
