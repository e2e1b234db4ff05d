//! The `measure` engine: an experiment's transfers between this host and the peer, over whatever network there is.
//!
//! This host opens every connection: nothing may connect to a host that measures, which is often behind a firewall or a
//! translation of addresses. It takes the place of the end that opens the first flow.

mod ends;
mod heard;
mod row;
mod stack;
mod stream;

use crate::end::EndFacts;
use crate::fit::fit;
use crate::kernel;
use crate::limits;
use crate::peer::{MeasureError, News, Offsets, Peer};
use crate::protocol::{self, FromClient};
pub(crate) use heard::Heard;

use ends::{Local, LocalEnd, PeerEnd, Waiting, hear};
use farpath_experiment::{FlowSpec, Opener, Point, Scenario};
use farpath_path::Direction;
use farpath_run::{Engine, Provenance, Run, RunKey, SeriesRow, StreamFigures};
use farpath_traffic::{BulkEnd, Opening, Role};
use farpath_units::{Bytes, Duration, Instant, Writing};
use stack::Ends;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// From when the flows' peer's ends wait to the first SYN: threads have begun by then.
const LEAD: Duration = Duration::from_millis(20);
/// How long after this host's deadline the peer's end waits.
const LONGER: Duration = Duration::from_secs(30);
/// How long the peer's end may take to say how it came out, when this one is done.
const TOLD_WITHIN: Duration = Duration::from_secs(3600);
/// How long a connection may take to close in good order.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// Things that a peer's socket cannot be told, of which is taken note: there are not as many options.
const UNMATCHED: usize = 64;
/// How often is looked what has come of the flows.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How far a measurement has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Bytes that have been read or written here.
    pub bytes: Bytes,
    /// Of so many.
    pub of: Bytes,
    /// Since it began.
    pub elapsed: Duration,
}

/// Requests and their answers in place of one transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanges {
    /// How many, one after the other.
    pub count: u32,
    /// Bytes of each request.
    pub request: Bytes,
    /// Bytes of each answer.
    pub answer: Bytes,
}

/// Measures one point; `None` where `stop` was set before it was over. `seen` is told how far it is.
///
/// # Errors
/// The peer refuses, or is lost; this one cannot.
pub fn measure(
    peer: &mut Peer,
    point: &Point,
    seed: u64,
    provenance: Provenance,
    stop: &AtomicBool,
    seen: &mut dyn FnMut(Seen),
) -> Result<Option<Run>, MeasureError> {
    made(Measurement { peer, point, seed, exchanges: None, stop }.run(provenance, seen).map(|(run, _)| run))
}

/// Measures requests and answers between the stacks of a point; gives how long each took, too.
///
/// # Errors
/// As [`measure`].
pub fn exchange(
    peer: &mut Peer,
    point: &Point,
    exchanges: Exchanges,
    provenance: Provenance,
    stop: &AtomicBool,
    seen: &mut dyn FnMut(Seen),
) -> Result<Option<(Run, Vec<Duration>)>, MeasureError> {
    let seed = point.scenario.seed;
    made(Measurement { peer, point, seed, exchanges: Some(exchanges), stop }.run(provenance, seen))
}

/// To be stopped is no error.
fn made<T>(result: Result<T, MeasureError>) -> Result<Option<T>, MeasureError> {
    match result {
        Ok(made) => Ok(Some(made)),
        Err(MeasureError::Stopped) => Ok(None),
        Err(error) => Err(error),
    }
}

struct Measurement<'a> {
    peer: &'a mut Peer,
    point: &'a Point,
    seed: u64,
    exchanges: Option<Exchanges>,
    stop: &'a AtomicBool,
}

impl Measurement<'_> {
    fn run(
        mut self,
        mut provenance: Provenance,
        seen: &mut dyn FnMut(Seen),
    ) -> Result<(Run, Vec<Duration>), MeasureError> {
        let scenario = &self.point.scenario;
        if let Some(flow) = scenario.flows.iter().position(FlowSpec::is_special) {
            return Err(MeasureError::OwnEnds(flow));
        }
        let ends = Ends::from_scenario(scenario, place(scenario));
        let before = self.peer.offset(self.stop)?;
        self.describe(&ends, &mut provenance)?;
        let mut news = Vec::new();
        let flows = self.prepare(&ends, &mut provenance, &mut news)?;
        let clock = self.peer.clock();
        let zero = clock.now() + LEAD;
        let local = flows.into_iter().map(|flow| flow.starting(zero)).collect::<Result<_, _>>()?;
        let (near_ends, peer_ends, specs) = self.flow(local, zero, news, seen)?;
        let after = self.peer.offset(self.stop)?;
        let offsets = Offsets { before, after };
        provenance.settings.push(clocks(&offsets));
        if scenario.flows.iter().any(|flow| flow.stream.is_some()) {
            provenance.caveats.push(format!(
                "lateness is from one host's clock to the other's, whose offset is estimated to {} or better",
                to_one_digit(offsets.error())
            ));
        }

        let key = RunKey { point: self.point.index as u64, engine: Engine::Measure, seed: Some(self.seed) };
        let mut run = Run::new(key, provenance);
        let waited = |facts: &mut dyn Iterator<Item = Option<&EndFacts>>| {
            facts.filter_map(|facts| facts?.processor_wait_permille).max()
        };
        let ours = waited(&mut near_ends.iter().map(|end| Some(&end.facts)));
        let theirs = waited(&mut peer_ends.iter().map(|end| end.facts.as_ref()));
        run.provenance
            .caveats
            .extend([("this host", ours), ("the peer", theirs)].into_iter().filter_map(busy));
        let (mut rows, mut took, mut cut) = (Vec::new(), Vec::new(), false);
        for ((flow, local), peer) in specs.into_iter().zip(near_ends).zip(peer_ends) {
            let facts = peer.facts.as_ref();
            let mut row = row::row(&flow, &local.facts, facts, peer.failed.clone(), &offsets, zero);
            if let (number, role, FlowSpec { stream: Some(stream), .. }) = &flow {
                let rows = stream::rows((*number, *role), &stream.messages, &local, &peer, &offsets, zero);
                row.stream = StreamFigures::from_rows(&rows, &stream.messages, stream.playout);
                if scenario.output.messages {
                    run.messages.extend(rows);
                }
            }
            run.flows.push(row);
            took.extend(
                local
                    .facts
                    .exchanges_ns
                    .iter()
                    .map(|(asked, answered)| Duration::from_nanos(answered.saturating_sub(*asked))),
            );
            cut |= local.cut || peer.cut;
            let ours =
                local.series.rows().iter().map(|row| SeriesRow { time: since(zero, row.time), ..*row });
            let theirs = peer
                .rows
                .into_iter()
                .map(|row| SeriesRow { time: since(zero, offsets.here(row.time.as_nanos())), ..row });
            rows.extend(ours.chain(theirs));
        }
        if cut {
            run.provenance.caveats.push("the series end early: there was more than is kept".to_owned());
        }
        if scenario.output.series {
            rows.sort_by_key(|row| row.time);
            run.series = rows.into();
        }
        Ok((run, took))
    }

    /// Who the hosts are, and what their kernels do otherwise than the stacks.
    fn describe(&mut self, ends: &Ends, provenance: &mut Provenance) -> Result<(), MeasureError> {
        let peer = &mut *self.peer;
        provenance.kernel = kernel::name();
        provenance.settings.push(format!("local: {}, {}", peer.local().ip(), kernel::name()));
        provenance.settings.push(format!(
            "peer: {}, {}, farpath {}",
            peer.address().ip(),
            peer.kernel(),
            peer.version()
        ));
        if peer.seen_as().as_str() != peer.local().ip().to_string() {
            provenance.settings.push(format!("local: seen by the peer as {}", peer.seen_as()));
        }
        let values = peer.kernel_values(ends.sysctls(), self.stop)?;
        let (local, peer) = (ends.local(&kernel::values(&ends.sysctls())), ends.peer(&values));
        for (place, unmatched) in [("local", local), ("peer", peer)] {
            if !unmatched.is_empty() {
                let who = if place == "local" { "this host's kernel" } else { "the peer's kernel" };
                provenance.caveats.push(format!(
                    "{who} does {} things otherwise than {}: provenance.json lists them",
                    unmatched.len(),
                    ends.name(place == "local"),
                ));
            }
            let lines = unmatched.into_iter().map(|text| format!("{place}: not matched: {text}"));
            provenance.settings.extend(lines);
        }
        if let Some(rate) = self.peer.max_rate() {
            provenance.caveats.push(format!("the peer allows {rate}, to which this one paces what it sends"));
        }
        Ok(())
    }

    /// Has the peer's ends wait, and makes the local ones.
    fn prepare(
        &mut self,
        ends: &Ends,
        provenance: &mut Provenance,
        news: &mut Vec<News>,
    ) -> Result<Vec<Waiting>, MeasureError> {
        let scenario = &self.point.scenario;
        let here = |error: std::io::Error| MeasureError::Here(error.to_string());
        let mut flows = Vec::new();
        for (number, spec) in (0..).zip(&scenario.flows) {
            let role = ends.role(spec);
            let opens = (spec.opener == Opener::Sender) == (role == Role::Sender);
            if !opens {
                let caveat =
                    "this host opened every connection, also where the experiment has the other end open";
                if !provenance.caveats.iter().any(|there| there == caveat) {
                    provenance.caveats.push(caveat.to_owned());
                }
            }
            let (size, request, exchanges) = match self.exchanges {
                Some(asked) => (asked.answer, asked.request, asked.count),
                None if role == Role::Receiver => (spec.size, spec.request, 1),
                None => (spec.size, Bytes::ZERO, 1),
            };
            let messages = spec.stream.filter(|_| self.exchanges.is_none()).map(|stream| stream.messages);
            let writing = if self.exchanges.is_none() { spec.writing } else { Writing::default() };
            // How long a round trip is, the network knows.
            let sample = scenario.emulate.sample_over(Duration::ZERO);
            let (local, peer) = (ends.socket(role), ends.socket(other(role)));
            let id = self.peer.next_flow();
            let asked = protocol::Transfer {
                flow: id,
                sends: role == Role::Receiver,
                size: size.0,
                messages: messages.map(Into::into),
                writing: writing.into(),
                request: request.0,
                exchanges,
                within_ns: (scenario.horizon + LONGER).as_nanos(),
                sample_every_ns: Some(sample.as_nanos()),
                read_rate: peer.read_rate,
                low_water: peer.low_water,
                socket: peer.options,
            };
            let ready = self.peer.ask(id, &FromClient::Transfer(asked), self.stop, |one| news.push(one))?;
            if news.len() > 2 * limits::FLOWS {
                return Err(self.peer.malformed(&"it says more of flows than there are"));
            }
            let token = ready.token.parse().map_err(|error| self.peer.malformed(&error))?;
            let (mut socket, unmatched) = fit(&local.options, self.peer.local().ip()).map_err(here)?;
            // Of a receiver, its requests.
            socket.max_pacing_rate = self.peer.max_rate();
            let theirs = ready.unmatched.iter().map(ToString::to_string).collect();
            for (place, unmatched) in [("local", unmatched), ("peer", theirs)] {
                for text in unmatched.into_iter().take(UNMATCHED) {
                    let line = format!("{place}: not matched: {text}");
                    if !provenance.settings.contains(&line) {
                        provenance.caveats.push(format!("{place} host: not set: {text}"));
                        provenance.settings.push(line);
                    }
                }
            }
            let end = BulkEnd {
                messages,
                reply: Bytes::ZERO,
                writing,
                role,
                opening: Opening::Connect,
                local: SocketAddr::new(self.peer.local().ip(), 0),
                peer: with_port(self.peer.address(), ready.port),
                size,
                request,
                exchanges,
                token: Some(token),
                start: Instant::ZERO,
                deadline: Instant::ZERO,
                sample_every: Some(sample),
                read_rate: local.read_rate,
                low_water: local.low_water.map(Bytes),
                close_within: CLOSE_WITHIN,
                socket,
            };
            let size = Bytes(size.0.saturating_mul(exchanges.into()));
            let spec = FlowSpec { size, ..spec.clone() };
            flows.push(Waiting { spec, number, id, role, end, horizon: scenario.horizon });
        }
        Ok(flows)
    }

    /// Runs the local ends, and hears what those of the peer say, until all is over.
    #[expect(clippy::type_complexity, reason = "three lists, flow by flow")]
    fn flow(
        &mut self,
        flows: Vec<Local>,
        zero: Instant,
        mut early: Vec<News>,
        seen: &mut dyn FnMut(Seen),
    ) -> Result<(Vec<LocalEnd>, Vec<PeerEnd>, Vec<(u32, Role, FlowSpec)>), MeasureError> {
        let clock = self.peer.clock();
        let ids: Vec<u32> = flows.iter().map(|flow| flow.id).collect();
        let specs = flows.iter().map(|flow| (flow.number, flow.role, flow.spec.clone())).collect();
        let of = flows.iter().map(|flow| flow.spec.size).fold(Bytes::ZERO, |sum, size| sum + size);
        let over: Vec<AtomicBool> = flows.iter().map(|_| AtomicBool::new(false)).collect();
        let moved = &AtomicU64::new(0);
        let mut peer_ends: Vec<PeerEnd> = flows.iter().map(|flow| PeerEnd::silent(&flow.spec)).collect();
        let near_ends = thread::scope(|scope| {
            let mut result = Ok(());
            let mut threads = Vec::new();
            for (flow, over) in flows.into_iter().zip(&over) {
                let run = move || flow.run(clock, over, moved);
                match thread::Builder::new().spawn_scoped(scope, run) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        result = Err(MeasureError::Here(format!("a thread for each flow: {error}")))
                    }
                }
            }
            let mut listen = |peer: &mut Peer, early: &mut Vec<News>| -> Result<(), MeasureError> {
                for news in early.drain(..).chain(peer.wait(LOOK_EVERY, &[self.stop])?) {
                    hear(&ids, &mut peer_ends, &over, news).map_err(|why| peer.malformed(&why))?;
                }
                Ok(())
            };
            while result.is_ok() && !threads.iter().all(|thread| thread.is_finished()) {
                result = listen(self.peer, &mut early);
                let bytes = Bytes(moved.load(Ordering::Relaxed));
                seen(Seen { bytes, of, elapsed: clock.now().saturating_since(zero) });
                if self.stop.load(Ordering::Relaxed) {
                    result = Err(MeasureError::Stopped);
                }
            }
            if result.is_err() {
                over.iter().for_each(|over| over.store(true, Ordering::Relaxed));
            }
            let near_ends: Vec<LocalEnd> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect();
            result.map(|()| near_ends)
        })?;
        // What is not over there when it is over here is given up.
        for (id, local) in ids.iter().zip(&near_ends) {
            if local.facts.outcome != crate::end::Outcome::Completed {
                self.peer.stop(*id)?;
            }
        }
        let last = clock.now() + TOLD_WITHIN;
        let told_within = self.peer.told_within();
        let mut deadline = clock.now() + told_within;
        while peer_ends.iter().any(|peer| peer.facts.is_none() && peer.failed.is_none()) {
            if clock.now() >= deadline.min(last) {
                return Err(self.peer.malformed(&"it does not say how its end of a transfer came out"));
            }
            let heard = self.peer.wait(LOOK_EVERY, &[self.stop])?;
            if self.stop.load(Ordering::Relaxed) {
                return Err(MeasureError::Stopped);
            }
            if let Some(news) = heard
                && hear(&ids, &mut peer_ends, &over, news).map_err(|why| self.peer.malformed(&why))?
            {
                // A long stream has much to tell, and a slow path takes its time over that.
                deadline = clock.now() + told_within;
            }
        }
        Ok((near_ends, peer_ends, specs))
    }
}

/// The place that this host takes: `Forward` where it sends what goes the path's forward way.
fn place(scenario: &Scenario) -> Direction {
    let first = &scenario.flows[0];
    match first.opener {
        Opener::Sender => first.direction,
        Opener::Receiver => first.direction.opposite(),
    }
}

fn other(role: Role) -> Role {
    match role {
        Role::Sender => Role::Receiver,
        Role::Receiver => Role::Sender,
    }
}

fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// On the run's clock.
fn since(zero: Instant, at: Instant) -> Instant {
    Instant::ZERO + at.saturating_since(zero)
}

/// Of a host whose program waited for more than a tenth of its time: the numbers are its own as much as the path's. An
/// emulated run is void then.
fn busy((host, waited): (&str, Option<u64>)) -> Option<String> {
    let percent = waited? / 10;
    (percent > 10).then(|| {
        format!("a program of {host} waited {percent} % of its time for a processor: it was not only the path that was slow")
    })
}

/// Not less, and with one digit: runs of a sweep then say the same.
fn to_one_digit(time: Duration) -> Duration {
    let ns = time.as_nanos().max(1);
    let step = 10_u64.pow(ns.ilog10());
    Duration::from_nanos(ns.div_ceil(step).saturating_mul(step))
}

/// How far the clocks are apart, for the record.
fn clocks(offsets: &Offsets) -> String {
    let drift = offsets.drift();
    let drifted =
        if drift.is_zero() { String::new() } else { format!("; they drifted by {drift} meanwhile") };
    format!(
        "clocks: times of the peer are moved by an estimate that is off by {:.3} at the most{drifted}",
        offsets.error()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_others_use_is_named() {
        assert_eq!([busy(("this host", None)), busy(("this host", Some(100)))], [None, None]);
        let said = busy(("the peer", Some(234))).expect("more than a tenth");
        assert!(said.starts_with("a program of the peer waited 23 % of its time"), "{said}");
    }

    #[test]
    fn a_bound_is_rounded_up() {
        for (ns, rounded) in
            [(0, 1), (1, 1), (10, 10), (10_488, 20_000), (999, 1000), (u64::MAX - 1, u64::MAX)]
        {
            let bound = to_one_digit(Duration::from_nanos(ns));
            assert_eq!(bound, Duration::from_nanos(rounded), "{ns}");
        }
    }
}
