//! What is seen of it: its SYNs, and its SYN/ACKs after one SYN.

use super::Silence;
use crate::EmulateError;
use crate::real_time::socket_options;
use farpath_emu::{Clock, Host, HostError, HostSettings, KernelProfile, Port, RealTime, VirtioHeader};
use farpath_experiment::Stack;
use farpath_model::radius::Span;
use farpath_tcp::wire::{IpFields, decode_unverified, encode};
use farpath_tcp::{Flags, Segment, Seq};
use farpath_traffic::{BulkEnd, End, EndReport, Opening, Prepared, Role};
use farpath_units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpListener};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Where it listens, and who opens: ports of the silent peer for the listener, of the kernel for its own connections.
const LISTENS: u16 = 80;
const OPENERS: u16 = 10_000;

/// How often packets are taken: finer than a jiffy, which is what the kernel's timers are in.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(1);

/// How often the half-open connections are counted. The kernel goes through all connections of the machine for it: some
/// milliseconds.
const COUNT_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

/// Its state in /proc/net/tcp: SYN-RECEIVED.
const SYN_RECEIVED: &str = "03";

/// When what happened to connections, by their numbers.
type Times = BTreeMap<u16, Vec<Instant>>;

/// Opens a connection to nobody at each of `starts` from a host like `stack`, and sends it a SYN then that nobody goes on with, until all is
/// over, `within` has passed or `stop` is set. There are fewer than 50 000 starts, the earliest first.
///
/// # Errors
/// The host cannot be made, or spoken to.
pub fn silence(
    stack: &Stack,
    starts: &[Duration],
    within: Duration,
    stop: &AtomicBool,
) -> Result<Silence, EmulateError> {
    let profile = KernelProfile::of_stack(stack, stack);
    let settings = HostSettings { metrics: profile.route, ..HostSettings::near() };
    let host = Host::new(&settings)?;
    profile.tell(&host)?;
    let own = |port| SocketAddr::new(settings.address.0.into(), port);
    let peer = |port| SocketAddr::new(settings.peer.0.into(), port);
    let listener = host.namespace().run(|| TcpListener::bind(own(LISTENS)))?;
    let _listener = listener.map_err(|source| failed("listen in a host", source))?;
    let opener = |(number, &start): (u16, &Duration)| -> Result<Prepared, EmulateError> {
        let end = BulkEnd {
            messages: None,
            reply: Bytes::ZERO,
            writing: Default::default(),
            role: Role::Sender,
            opening: Opening::Connect,
            local: own(OPENERS + number),
            peer: peer(LISTENS),
            size: Bytes(1),
            request: Bytes::ZERO,
            exchanges: 1,
            token: None,
            start: Instant::ZERO + start,
            deadline: Instant::ZERO + within,
            sample_every: None,
            read_rate: None,
            low_water: None,
            close_within: Duration::ZERO,
            socket: socket_options(&profile),
        };
        Ok(host.namespace().run(|| Prepared::new(end))??)
    };
    let openers = (0..).zip(starts).map(opener).collect::<Result<Vec<_>, _>>()?;

    let clock = Clock::start();
    let mut peer =
        Peer { port: host.port(), clock, listens: own(LISTENS), at: peer(0), seen: Seen::default() };
    let (all_asked, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (ends, gone) = thread::scope(|scope| {
        let openers: Vec<_> = openers
            .into_iter()
            .map(|end| scope.spawn(move || end.run(clock.epoch(), stop, &mut |_| {})))
            .collect();
        let counting = scope.spawn(|| host.namespace().run(|| half_open_until(clock, &all_asked, stop)));
        let watching = scope.spawn(|| {
            let watched = peer.watch(starts, &all_asked, [&over, stop]);
            // Also where it failed: nobody else is asked.
            all_asked.store(true, Ordering::Relaxed);
            watched
        });
        let gone = joined(counting.join());
        let ends: Vec<EndReport> = openers.into_iter().map(|end| joined(end.join())).collect();
        over.store(true, Ordering::Relaxed);
        joined(watching.join())?;
        Ok::<_, EmulateError>((ends, gone??))
    })?;
    Ok(peer.seen.silence(&ends, &gone))
}

fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// The silent end: it only looks, and asks once.
struct Peer {
    port: Box<dyn Port>,
    clock: Clock,
    /// Where the kernel listens.
    listens: SocketAddr,
    /// Its own address.
    at: SocketAddr,
    seen: Seen,
}

/// What the silent end has seen.
#[derive(Debug, Default)]
struct Seen {
    /// SYNs.
    opened: Times,
    /// The SYN that was sent, and the SYN/ACKs after it.
    asked: Times,
}

impl Peer {
    /// Sends its SYNs, and looks on until one of `stops` is set.
    fn watch(
        &mut self,
        starts: &[Duration],
        all_asked: &AtomicBool,
        stops: [&AtomicBool; 2],
    ) -> Result<(), EmulateError> {
        // A packet that waits for this thread seems to be a late one. Not granted, it is ordinary.
        let _ahead = RealTime::of_program();
        let mut to_ask = (0..).zip(starts).peekable();
        let mut buffer = vec![0; 64 * 1024 + 256];
        while !stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            while let Some((number, _)) =
                to_ask.next_if(|&(_, &start)| Instant::ZERO + start <= self.clock.now())
            {
                self.ask(number)?;
                all_asked.store(to_ask.peek().is_none(), Ordering::Relaxed);
            }
            self.look(&mut buffer)?;
            thread::park_timeout(LOOK_EVERY);
        }
        Ok(())
    }

    /// Sends a SYN.
    fn ask(&mut self, number: u16) -> Result<(), EmulateError> {
        let mut syn = Segment::new(Flags::SYN, Seq(u32::from(number) << 12), Seq(0));
        (syn.mss, syn.window) = (Some(1460), u16::MAX);
        let from = SocketAddr::new(self.at.ip(), OPENERS + number);
        let mut bytes = Vec::new();
        encode(from, self.listens, &IpFields::default(), &syn, 0, &mut bytes).expect("it fits into a packet");
        let now = self.clock.now();
        self.port.send(now, VirtioHeader::default(), None, &[IoSlice::new(&bytes)]).map_err(lost)?;
        self.seen.asked.insert(number, vec![now]);
        Ok(())
    }

    /// Takes what the kernel has sent.
    fn look(&mut self, buffer: &mut [u8]) -> Result<(), EmulateError> {
        while let Some(received) = self.port.receive(self.clock.now(), buffer).map_err(lost)? {
            let now = self.clock.now();
            // What is not TCP is none of ours.
            let Ok(packet) = decode_unverified(&buffer[..received.len]) else { continue };
            let flags = packet.segment.flags;
            let (times, port) = match flags.contains(Flags::ACK) {
                true => (&mut self.seen.asked, packet.destination.port()),
                false => (&mut self.seen.opened, packet.source.port()),
            };
            if flags.contains(Flags::SYN) {
                times.entry(port.wrapping_sub(OPENERS)).or_default().push(now);
            }
        }
        Ok(())
    }
}

impl Seen {
    /// Over all connections.
    fn silence(&self, ends: &[EndReport], gone: &BTreeMap<u16, Instant>) -> Silence {
        let abandoned = self.opened.iter().filter_map(|(number, times)| {
            let end = ends.get(usize::from(*number)).filter(|end| matches!(end.end, End::ConnectTimedOut))?;
            Some(since(end.ended_at, times[0]))
        });
        let forgotten =
            self.asked.iter().filter_map(|(number, times)| Some(since(*gone.get(number)?, times[0])));
        Silence {
            abandoned: span(abandoned),
            forgotten: span(forgotten),
            syns: schedule(&self.opened),
            // The first is the answer at once.
            synacks: schedule(&self.asked).into_iter().skip(1).collect(),
        }
    }
}

/// Each time after the first, from that, over all connections.
fn schedule(times: &Times) -> Vec<Span> {
    let most = times.values().map(Vec::len).max().unwrap_or(0);
    let at =
        |index: usize| span(times.values().filter_map(|times| Some(since(*times.get(index)?, times[0]))));
    (1..most).filter_map(at).collect()
}

/// Counts the half-open connections until there are none left, or `stop` is set; when each was gone: between the last look
/// that saw it and the next.
fn half_open_until(
    clock: Clock,
    all_asked: &AtomicBool,
    stop: &AtomicBool,
) -> Result<BTreeMap<u16, Instant>, HostError> {
    let mut there: BTreeMap<u16, Instant> = BTreeMap::new();
    let mut gone = BTreeMap::new();
    loop {
        let last_round = all_asked.load(Ordering::Relaxed);
        let now = clock.now();
        let ports = half_open()?;
        there.retain(|number, last| {
            let stays = ports.contains(&(OPENERS + *number));
            if !stays {
                gone.insert(*number, *last + now.saturating_since(*last) / 2);
            }
            stays
        });
        there.extend(ports.iter().map(|port| (port.wrapping_sub(OPENERS), now)));
        if stop.load(Ordering::Relaxed) || last_round && there.is_empty() {
            return Ok(gone);
        }
        thread::park_timeout(COUNT_EVERY);
    }
}

fn since(at: Instant, from: Instant) -> f64 {
    at.saturating_since(from).as_secs_f64()
}

fn span(times: impl Iterator<Item = f64>) -> Option<Span> {
    times.map(Span::exactly).reduce(|a, b| Span { least: a.least.min(b.least), most: a.most.max(b.most) })
}

/// Ports of peers whose connections are half-open in the namespace of the calling thread.
fn half_open() -> Result<Vec<u16>, HostError> {
    let table = std::fs::read_to_string("/proc/thread-self/net/tcp");
    let table = table.map_err(|source| failed("read /proc/thread-self/net/tcp", source))?;
    Ok(table.lines().filter_map(half_open_port).collect())
}

/// `   1: 0100000A:0050 0200000A:2710 03 ...`: the port in hexadecimal, behind the address.
fn half_open_port(line: &str) -> Option<u16> {
    let mut columns = line.split_whitespace().skip(2);
    let (remote, state) = (columns.next()?, columns.next()?);
    let (_, port) = remote.rsplit_once(':')?;
    (state == SYN_RECEIVED).then(|| u16::from_str_radix(port, 16).ok()).flatten()
}

fn lost(source: io::Error) -> EmulateError {
    failed("speak to a host", source).into()
}

fn failed(what: &str, source: io::Error) -> HostError {
    HostError::Kernel { what: what.to_owned(), help: "", source }
}
