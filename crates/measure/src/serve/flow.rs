//! The peer's ends of flows: each on a thread of its own, until it is over or the client has gone.

use super::Limits;
use super::check::{self, Checked};
use super::ledger::{Client, Spent};
use crate::control::Writer;
use crate::end::{OF_SAMPLE, Watched};
use crate::fit::fit;
use crate::key;
use crate::limits::{self, FLOWS};
use crate::protocol::{
    BurstAsked, Datagrams, EchoAsked, Ended, FromResponder, MessagesSeen, Ready, Refused, Rows, Transfer, Why,
};
use crate::said::Said;
use farpath_emu::Clock;
use farpath_traffic::datagram::{DatagramSocket, Until, answer, receive_burst, send_burst};
use farpath_traffic::{BulkEnd, Opening, PrepareError, Prepared, Role, Token};
use farpath_units::{Bytes, Duration, Instant};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};

/// Rows, messages and arrivals in one message.
const IN_ONE: usize = 1000;
/// How long a transfer may take to close in good order.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// How long is waited for the threads of flows that are over, where there may be no more of them.
const THREADS_END_WITHIN: Duration = Duration::from_millis(200);
/// How often a transfer is looked at where nobody wants to see it: for its rate.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The peer's ends of a client's flows.
pub struct Flows<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    writer: &'scope Writer<'scope>,
    clock: Clock,
    /// This host's address and the client's, as the control connection has them.
    addresses: [SocketAddr; 2],
    client: &'scope Client<'scope>,
    limits: Limits,
    deadline: Instant,
    /// By the numbers that the client has given them.
    going: Vec<(u32, Arc<Going>)>,
    asked_for: Bytes,
}

/// One that goes on.
#[derive(Default)]
struct Going {
    stop: AtomicBool,
    done: AtomicBool,
    /// Nothing but the last of it is to be told.
    over: AtomicBool,
    /// That has been told, too: its thread ends.
    told: AtomicBool,
}

impl Going {
    /// Whatever it is doing.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.done.store(true, Ordering::Relaxed);
    }
}

impl<'scope, 'env> Flows<'scope, 'env> {
    pub fn new(
        scope: &'scope Scope<'scope, 'env>,
        writer: &'scope Writer<'scope>,
        clock: Clock,
        addresses: [SocketAddr; 2],
        client: &'scope Client<'scope>,
        limits: Limits,
        deadline: Instant,
    ) -> Flows<'scope, 'env> {
        let (going, asked_for) = (Vec::new(), Bytes::ZERO);
        Flows { scope, writer, clock, addresses, client, limits, deadline, going, asked_for }
    }

    /// Whether any goes on.
    pub fn any(&mut self) -> bool {
        self.forget_what_is_over();
        !self.going.is_empty()
    }

    fn forget_what_is_over(&mut self) {
        self.going.retain(|(_, going)| !going.told.load(Ordering::Relaxed));
    }

    /// Those of which there is more to come than the last of it.
    fn going_on(&self) -> impl Iterator<Item = (u32, &Going)> {
        let all = self.going.iter().map(|(flow, going)| (*flow, &**going));
        all.filter(|(_, going)| !going.over.load(Ordering::Relaxed))
    }

    /// Ends all.
    pub fn end(&self) {
        self.going.iter().for_each(|(_, going)| going.end());
    }

    /// Bytes that were asked for.
    pub fn asked_for(&self) -> Bytes {
        self.asked_for
    }

    /// All of a flow's datagrams have been sent.
    pub fn done(&self, flow: u32) {
        for (_, going) in self.going_on().filter(|(number, _)| *number == flow) {
            going.done.store(true, Ordering::Relaxed);
        }
    }

    /// A flow is given up.
    pub fn stop(&self, flow: u32) {
        self.going_on().filter(|(number, _)| *number == flow).for_each(|(_, going)| going.end());
    }

    /// The peer's end of a transfer.
    pub fn transfer(&mut self, asked: Transfer) -> io::Result<Option<FromResponder>> {
        let flow = asked.flow;
        let Checked { messages, writing, exchanges, size, bytes } = match check::transfer(&asked) {
            Ok(checked) => checked,
            Err(refused) => return Ok(Some(FromResponder::Refused(refused))),
        };
        let (mut stamps, mut rows) = (self.client.messages(), self.client.rows());
        if !stamps.take(messages.map_or(0, |messages| messages.count)) {
            let what = format!("streams of {} messages at once", limits::MESSAGES_OF_CLIENT);
            return Ok(Some(no_room(flow, &what)));
        }
        let mut spent = match self.take(flow, bytes) {
            Ok(spent) => spent,
            Err(refused) => return Ok(Some(FromResponder::Refused(refused))),
        };
        let [at, from] = self.addresses;
        let (mut socket, unmatched) = match fit(&asked.socket, at.ip()) {
            Ok(fits) => fits,
            Err(error) => return Ok(Some(cannot(flow, error))),
        };
        if asked.sends {
            socket.max_pacing_rate = self.limits.rate;
        }
        let token = Token(key::random()?);
        let role = if asked.sends { Role::Sender } else { Role::Receiver };
        let end = BulkEnd {
            role,
            opening: Opening::Listen,
            local: any_port(at),
            peer: any_port(from),
            size: Bytes(asked.size),
            request: Bytes(asked.request),
            messages,
            reply: Bytes::ZERO,
            writing,
            exchanges,
            token: Some(token),
            start: Instant::ZERO,
            deadline: self.until(asked.within_ns),
            sample_every: Some(
                asked
                    .sample_every_ns
                    .map_or(LOOK_EVERY, |ns| Duration::from_nanos(ns).max(Duration::from_millis(1))),
            ),
            read_rate: asked.read_rate,
            low_water: asked.low_water.map(Bytes),
            close_within: CLOSE_WITHIN,
            socket,
        };
        let make = |local| Prepared::new(BulkEnd { local, ..end.clone() });
        let prepared = match self.at_a_port(make, PrepareError::is_address_in_use) {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Some(cannot(flow, error))),
        };
        let unmatched = unmatched.into_iter().map(Said::from).collect();
        let ready = Ready { flow, port: prepared.local().port(), token: token.to_string(), unmatched };
        let (writer, clock) = (self.writer, self.clock);
        let mut fast = Speed::new(self.limits);
        let wanted = asked.sample_every_ns.is_some();
        let run = move |going: &Going| {
            let mut watched = Watched::new(flow, role, size, false, true, 0);
            let report = prepared.run(clock.epoch(), &going.stop, &mut |sample| {
                // A thousand at a time, as long as there is room.
                let full = watched.rows() + OF_SAMPLE > watched.most;
                if wanted && full && watched.most < limits::ROWS && rows.take(IN_ONE as u64) {
                    watched.most += IN_ONE;
                }
                watched.note(sample);
                let requests = match role {
                    Role::Sender => sample.info.bytes_received.unwrap_or(Bytes::ZERO),
                    Role::Receiver => Bytes::ZERO,
                };
                if fast.is_over(sample.at, sample.bytes + requests) {
                    going.stop.store(true, Ordering::Relaxed);
                }
            });
            spent.moved(report.bytes + report.request_bytes);
            drop(spent);
            let rows_cut = watched.cut && wanted;
            let (mut end, series) = watched.finish(&report);
            if fast.over {
                end.outcome = crate::end::Outcome::Aborted;
                end.detail = "faster than the peer allows (--max-rate)".into();
            }
            // Who is gone wants no more of it.
            for rows in series.rows().chunks(IN_ONE) {
                let rows =
                    rows.iter().map(|row| (row.time.as_nanos(), row.metric.name().to_owned(), row.value));
                writer.send(&FromResponder::Rows(Rows { flow, rows: rows.collect() })).ok()?;
            }
            let messages = report.messages.map(|stamps| stamps.at).unwrap_or_default();
            for at in messages.chunks(IN_ONE) {
                let at_ns = at.iter().map(|at| at.as_nanos()).collect();
                writer.send(&FromResponder::Messages(MessagesSeen { flow, at_ns })).ok()?;
            }
            drop((stamps, rows));
            Some(FromResponder::Ended(Box::new(Ended { flow, end, rows_cut })))
        };
        Ok(Some(self.begin(ready, run)))
    }

    /// Sends back what comes.
    pub fn echo(&mut self, asked: EchoAsked) -> io::Result<Option<FromResponder>> {
        let EchoAsked { flow, count, size, within_ns } = asked;
        // There and back.
        let bytes = move |count: u64| Bytes(count.saturating_mul(2 * u64::from(size)));
        let (deadline, rate) = (self.until(within_ns), self.limits.rate);
        self.datagrams(flow, [count, count], size, bytes(count.into()), move |socket, going, clock| {
            // `done` is the end: nothing more will come.
            let until = Until { epoch: clock.epoch(), deadline, stop: &going.done };
            let done = answer(socket, count, size as usize, rate, until)?;
            Ok((Datagrams { count: done.arrived, ..nothing(flow) }, bytes(done.sent)))
        })
    }

    /// Sends a burst, or takes one in.
    pub fn burst(&mut self, asked: BurstAsked) -> io::Result<Option<FromResponder>> {
        let BurstAsked { flow, sends, count, size, quiet_ns, within_ns } = asked;
        let bytes = move |count: u64| Bytes(count.saturating_mul(size.into()));
        let (deadline, rate) = (self.until(within_ns), self.limits.rate);
        let kept = if sends { 0 } else { count };
        self.datagrams(flow, [count, kept], size, bytes(count.into()), move |socket, going, clock| {
            let until = Until { epoch: clock.epoch(), deadline, stop: &going.stop };
            if sends {
                let done = send_burst(socket, count, size as usize, rate, until)?;
                let within_ns = done.within.as_nanos();
                let told = Datagrams { count: done.sent, within_ns, ..nothing(flow) };
                return Ok((told, bytes(done.sent.into())));
            }
            let quiet = Duration::from_nanos(quiet_ns);
            let received = receive_burst(socket, count, &going.done, quiet, until)?;
            let arrivals = received
                .arrivals
                .iter()
                .map(|one| (one.number, one.sent_at.as_nanos(), one.arrived_at.as_nanos()));
            let told = Datagrams {
                arrivals: arrivals.collect(),
                dropped_here: received.dropped_here,
                ..nothing(flow)
            };
            Ok((told, bytes(received.arrivals.len() as u64)))
        })
    }

    /// Does `work` with a socket for datagrams, of so many at the most and with so many that are kept, and says what came
    /// of it; `work` gives how many bytes it has moved, too.
    fn datagrams(
        &mut self,
        flow: u32,
        [count, kept]: [u32; 2],
        size: u32,
        bytes: Bytes,
        work: impl FnOnce(&mut DatagramSocket, &Going, Clock) -> io::Result<(Datagrams, Bytes)> + Send + 'scope,
    ) -> io::Result<Option<FromResponder>> {
        if let Err(refused) = check::datagrams(flow, count, size) {
            return Ok(Some(FromResponder::Refused(refused)));
        }
        let mut room = self.client.datagrams();
        if !room.take(kept.into()) {
            let what = format!("flows of {} datagrams at once", limits::DATAGRAMS_OF_CLIENT);
            return Ok(Some(no_room(flow, &what)));
        }
        let mut spent = match self.take(flow, bytes) {
            Ok(spent) => spent,
            Err(refused) => return Ok(Some(FromResponder::Refused(refused))),
        };
        let from = self.addresses[1];
        let token = Token(key::random()?);
        let make = |local| DatagramSocket::from(local, from.ip(), token);
        let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        let mut socket = match self.at_a_port(make, in_use) {
            Ok(socket) => socket,
            Err(error) => return Ok(Some(cannot(flow, error))),
        };
        let port = socket.local().port();
        let ready = Ready { flow, port, token: token.to_string(), unmatched: Vec::new() };
        let (writer, clock) = (self.writer, self.clock);
        let run = move |going: &Going| {
            let done = work(&mut socket, going, clock);
            // What failed has moved nobody knows how much.
            spent.moved(done.as_ref().map_or(bytes, |(_, moved)| *moved));
            drop(spent);
            let last = match done {
                Ok((done, _)) => all_but_the_last_part(writer, done).ok()?,
                Err(error) => cannot(flow, error),
            };
            drop(room);
            Some(last)
        };
        Ok(Some(self.begin(ready, run)))
    }

    /// What is made at this host's address and a port: of those that data may take the first that is free.
    fn at_a_port<T, E: std::fmt::Display>(
        &self,
        make: impl Fn(SocketAddr) -> Result<T, E>,
        is_taken: impl Fn(&E) -> bool,
    ) -> Result<T, String> {
        let at = self.addresses[0];
        let Some((first, last)) = self.limits.data_ports else {
            return make(any_port(at)).map_err(|error| error.to_string());
        };
        for port in first..=last {
            match make(SocketAddr::new(at.ip(), port)) {
                Err(error) if is_taken(&error) => {}
                made => return made.map_err(|error| error.to_string()),
            }
        }
        Err(format!("none of the peer's ports {first} to {last} is free (--data-ports)"))
    }

    /// Does the work of a flow on a thread of its own, which says last what comes of it; gives what the client is told now.
    fn begin(
        &mut self,
        ready: Ready,
        work: impl FnOnce(&Going) -> Option<FromResponder> + Send + 'scope,
    ) -> FromResponder {
        let (flow, writer) = (ready.flow, self.writer);
        let going = Arc::new(Going::default());
        let its = Arc::clone(&going);
        let run = move || {
            let last = work(&its);
            // Who has heard the last of it may ask for another.
            its.over.store(true, Ordering::Relaxed);
            // Who is gone wants none of it.
            let _ = last.map(|last| writer.send(&last));
            its.told.store(true, Ordering::Relaxed);
        };
        match thread::Builder::new().spawn_scoped(self.scope, run) {
            Ok(_) => {
                self.going.push((flow, going));
                FromResponder::Ready(ready)
            }
            Err(error) => cannot(flow, format!("the peer has no thread for it: {error}")),
        }
    }

    /// Takes so many bytes for one more flow, if there may be one.
    fn take(&mut self, flow: u32, bytes: Bytes) -> Result<Spent<'scope>, Refused> {
        let refused = |message: String| check::refused(flow, Why::Limit, message);
        if self.going_on().any(|(number, _)| number == flow) {
            return Err(refused(format!("flow {flow} goes on already")));
        }
        // Threads that have just told the last of a flow end now, or wait for a client that does not read it.
        let deadline = self.clock.now() + THREADS_END_WITHIN;
        while self.any() && self.going.len() >= FLOWS {
            if self.going_on().count() >= FLOWS || self.clock.now() >= deadline {
                return Err(refused(format!("the peer does {FLOWS} flows at once, and no more")));
            }
            thread::park_timeout(std::time::Duration::from_millis(1));
        }
        let spent = self.client.spend(bytes).map_err(|left| {
            refused(format!(
                "{bytes} are asked for, and the peer allows this address {left} more within the hour (--max-bytes)"
            ))
        })?;
        self.asked_for = Bytes(self.asked_for.0.saturating_add(bytes.0));
        Ok(spent)
    }

    fn until(&self, within_ns: u64) -> Instant {
        (self.clock.now() + Duration::from_nanos(within_ns)).min(self.deadline)
    }
}

/// The same address, and a port that the kernel chooses; or that is not known yet.
fn any_port(mut address: SocketAddr) -> SocketAddr {
    address.set_port(0);
    address
}

fn cannot(flow: u32, error: impl std::fmt::Display) -> FromResponder {
    FromResponder::Refused(check::refused(flow, Why::Cannot, error.to_string()))
}

fn no_room(flow: u32, what: &str) -> FromResponder {
    let message = format!("the peer does {what}, or fewer where others measure too, and no more");
    FromResponder::Refused(check::refused(flow, Why::Limit, message))
}

fn nothing(flow: u32) -> Datagrams {
    Datagrams { flow, count: 0, within_ns: 0, arrivals: Vec::new(), dropped_here: 0, more: false }
}

/// Arrivals of a long burst take more than one message. Gives the last one, which is yet to be sent.
fn all_but_the_last_part(writer: &Writer<'_>, mut all: Datagrams) -> io::Result<FromResponder> {
    let arrivals = std::mem::take(&mut all.arrivals);
    let mut parts = arrivals.chunks(IN_ONE).peekable();
    loop {
        let arrivals = parts.next().unwrap_or_default().to_vec();
        let more = parts.peek().is_some();
        let part = FromResponder::Datagrams(Datagrams { arrivals, more, ..all.clone() });
        if !more {
            return Ok(part);
        }
        writer.send(&part)?;
    }
}

/// Whether a transfer is faster than is allowed: by a quarter, over a second or more.
struct Speed {
    limits: Limits,
    since: Option<(Instant, Bytes)>,
    over: bool,
}

impl Speed {
    fn new(limits: Limits) -> Speed {
        Speed { limits, since: None, over: false }
    }

    fn is_over(&mut self, now: Instant, bytes: Bytes) -> bool {
        let Some(rate) = self.limits.rate else { return false };
        let (since, before) = *self.since.get_or_insert((now, bytes));
        let seconds = now.saturating_since(since).as_secs_f64();
        if seconds >= 1.0 {
            let moved = bytes.0.saturating_sub(before.0) as f64 * 8.0;
            self.over |= moved > 1.25 * rate.bit_per_s() as f64 * seconds;
            self.since = Some((now, bytes));
        }
        self.over
    }
}
