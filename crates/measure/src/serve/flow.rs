//! The far ends of flows: each on a thread of its own, until it is over or the client has gone.

use super::Limits;
use super::ledger::Client;
use crate::control::Writer;
use crate::end::Watched;
use crate::fit::fit;
use crate::key;
use crate::protocol::{
    BurstAsked, Datagrams, EchoAsked, Ended, FromFar, MessagesSeen, Ready, Refused, Rows, Transfer, Why,
};
use farpath_emu::Clock;
use farpath_traffic::datagram::{self, DatagramSocket, Until, answer, receive_burst, send_burst};
use farpath_traffic::{BulkEnd, Opening, PrepareError, Prepared, Role, Token};
use farpath_units::{Bytes, Duration, Instant, Messages};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

/// Flows of one client at once.
const MOST_FLOWS: usize = 64;
/// Datagrams of one flow.
const MOST_DATAGRAMS: u32 = 100_000;
/// Rows of one flow that are kept until it is over: some 25 MB.
const MOST_ROWS: usize = 500_000;
/// Messages of the streams of one client at once, each of which is stamped: 80 MB.
const MOST_MESSAGES: u64 = 10_000_000;
/// Rows, messages and arrivals in one message.
const IN_ONE: usize = 1000;
/// How long a transfer may take to close in good order.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// How often a transfer is looked at where nobody wants to see it: for its rate.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The far ends of a client's flows.
pub struct Flows<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    writer: &'scope Writer,
    clock: Clock,
    /// This host's address and the client's, as the control connection has them.
    addresses: [SocketAddr; 2],
    client: &'scope Client<'scope>,
    limits: Limits,
    deadline: Instant,
    going: BTreeMap<u32, Arc<Going>>,
    asked_for: Bytes,
}

/// One that goes on.
#[derive(Default)]
struct Going {
    /// Of a stream, how many.
    messages: u64,
    stop: AtomicBool,
    done: AtomicBool,
    over: AtomicBool,
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
        writer: &'scope Writer,
        clock: Clock,
        addresses: [SocketAddr; 2],
        client: &'scope Client<'scope>,
        limits: Limits,
        deadline: Instant,
    ) -> Flows<'scope, 'env> {
        let (going, asked_for) = (BTreeMap::new(), Bytes::ZERO);
        Flows { scope, writer, clock, addresses, client, limits, deadline, going, asked_for }
    }

    /// Whether any goes on.
    pub fn any(&mut self) -> bool {
        self.forget_what_is_over();
        !self.going.is_empty()
    }

    fn forget_what_is_over(&mut self) {
        self.going.retain(|_, going| !going.over.load(Ordering::Relaxed));
    }

    /// Ends all.
    pub fn end(&self) {
        self.going.values().for_each(|going| going.end());
    }

    /// Bytes that were asked for.
    pub fn asked_for(&self) -> Bytes {
        self.asked_for
    }

    /// All of a flow's datagrams have been sent.
    pub fn done(&self, flow: u32) {
        if let Some(going) = self.going.get(&flow) {
            going.done.store(true, Ordering::Relaxed);
        }
    }

    /// A flow is given up.
    pub fn stop(&self, flow: u32) {
        if let Some(going) = self.going.get(&flow) {
            going.end();
        }
    }

    /// The far end of a transfer.
    pub fn transfer(&mut self, asked: Transfer) -> io::Result<Option<FromFar>> {
        let flow = asked.flow;
        let messages = match self.messages(&asked) {
            Ok(messages) => messages,
            Err(refused) => return Ok(Some(FromFar::Refused(refused))),
        };
        let times = u64::from(asked.exchanges.max(1));
        let bytes = asked.size.saturating_add(asked.request).saturating_mul(times);
        if let Err(refused) = self.take(flow, Bytes(bytes)) {
            return Ok(Some(FromFar::Refused(refused)));
        }
        let [at, from] = self.addresses;
        let (mut socket, unmatched) = fit(&asked.socket, at.ip())?;
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
            exchanges: asked.exchanges,
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
            Err(error) => return Ok(Some(self.cannot_begin(flow, Bytes(bytes), error))),
        };
        let ready = Ready { flow, port: prepared.local().port(), token: token.to_string(), unmatched };
        let going = self.begin(flow, messages.map_or(0, |messages| messages.count));
        let (writer, clock, limits, client) = (self.writer, self.clock, self.limits, self.client);
        let size = Bytes(asked.size.saturating_mul(times));
        let wanted = asked.sample_every_ns.is_some();
        self.scope.spawn(move || {
            let most = if wanted { MOST_ROWS } else { 0 };
            let mut watched = Watched::new(flow, role, size, false, true, most);
            let mut fast = Speed::new(limits);
            let report = prepared.run(clock.epoch(), &going.stop, &mut |sample| {
                watched.note(sample);
                if fast.is_over(sample.at, sample.bytes) {
                    going.stop.store(true, Ordering::Relaxed);
                }
            });
            client.give_back(Bytes(size.0.saturating_sub(report.bytes.0)));
            let rows_cut = watched.cut && wanted;
            let (mut end, series) = watched.finish(&report);
            if fast.over {
                end.outcome = crate::end::Outcome::Aborted;
                end.detail = "faster than the far host allows (--max-rate)".to_owned();
            }
            going.over.store(true, Ordering::Relaxed);
            for rows in series.rows().chunks(IN_ONE) {
                let rows =
                    rows.iter().map(|row| (row.time.as_nanos(), row.metric.name().to_owned(), row.value));
                // Who is gone wants no more of it.
                if writer.send(&FromFar::Rows(Rows { flow, rows: rows.collect() })).is_err() {
                    return;
                }
            }
            let messages = report.messages.map(|stamps| stamps.at).unwrap_or_default();
            for at in messages.chunks(IN_ONE) {
                let at_ns = at.iter().map(|at| at.as_nanos()).collect();
                if writer.send(&FromFar::Messages(MessagesSeen { flow, at_ns })).is_err() {
                    return;
                }
            }
            let _ = writer.send(&FromFar::Ended(Box::new(Ended { flow, end, rows_cut })));
        });
        Ok(Some(FromFar::Ready(ready)))
    }

    /// Sends back what comes.
    pub fn echo(&mut self, asked: EchoAsked) -> io::Result<Option<FromFar>> {
        let flow = asked.flow;
        let bytes = u64::from(asked.count).saturating_mul(2 * u64::from(asked.size));
        if let Err(refused) = self.take_datagrams(flow, asked.count, asked.size, Bytes(bytes)) {
            return Ok(Some(FromFar::Refused(refused)));
        }
        let (deadline, rate) = (self.until(asked.within_ns), self.limits.rate);
        self.datagrams(flow, Bytes(bytes), move |socket, going, clock| {
            // `done` is the end: nothing more will come.
            let until = Until { epoch: clock.epoch(), deadline, stop: &going.done };
            let done = answer(socket, asked.count, asked.size as usize, rate, until)?;
            Ok(Datagrams { count: done.arrived, ..nothing(flow) })
        })
    }

    /// Sends a burst, or takes one in.
    pub fn burst(&mut self, asked: BurstAsked) -> io::Result<Option<FromFar>> {
        let flow = asked.flow;
        let bytes = u64::from(asked.count).saturating_mul(asked.size.into());
        if let Err(refused) = self.take_datagrams(flow, asked.count, asked.size, Bytes(bytes)) {
            return Ok(Some(FromFar::Refused(refused)));
        }
        let (deadline, rate) = (self.until(asked.within_ns), self.limits.rate);
        self.datagrams(flow, Bytes(bytes), move |socket, going, clock| {
            let until = Until { epoch: clock.epoch(), deadline, stop: &going.stop };
            if asked.sends {
                let done = send_burst(socket, asked.count, asked.size as usize, rate, until)?;
                let within_ns = done.within.as_nanos();
                return Ok(Datagrams { count: done.sent, within_ns, ..nothing(flow) });
            }
            let quiet = Duration::from_nanos(asked.quiet_ns);
            let received = receive_burst(socket, asked.count, &going.done, quiet, until)?;
            let arrivals = received
                .arrivals
                .iter()
                .map(|one| (one.number, one.sent_at.as_nanos(), one.arrived_at.as_nanos()));
            Ok(Datagrams {
                arrivals: arrivals.collect(),
                dropped_here: received.dropped_here,
                ..nothing(flow)
            })
        })
    }

    /// Does `work` with a socket for datagrams and says what came of it.
    fn datagrams(
        &mut self,
        flow: u32,
        taken: Bytes,
        work: impl FnOnce(&mut DatagramSocket, &Going, Clock) -> io::Result<Datagrams> + Send + 'scope,
    ) -> io::Result<Option<FromFar>> {
        let from = self.addresses[1];
        let token = Token(key::random()?);
        let make = |local| DatagramSocket::from(local, from.ip(), token);
        let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        let mut socket = match self.at_a_port(make, in_use) {
            Ok(socket) => socket,
            Err(error) => return Ok(Some(self.cannot_begin(flow, taken, error))),
        };
        let port = socket.local().port();
        let going = self.begin(flow, 0);
        let (writer, clock) = (self.writer, self.clock);
        self.scope.spawn(move || {
            let done = work(&mut socket, &going, clock);
            going.over.store(true, Ordering::Relaxed);
            // Who is gone wants none of it.
            let _ = match done {
                Ok(done) => send_in_parts(writer, done),
                Err(error) => writer.send(&cannot(flow, error)),
            };
        });
        Ok(Some(FromFar::Ready(Ready { flow, port, token: token.to_string(), unmatched: Vec::new() })))
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
        Err(format!("none of the far host's ports {first} to {last} is free (--data-ports)"))
    }

    fn begin(&mut self, flow: u32, messages: u64) -> Arc<Going> {
        let going = Arc::new(Going { messages, ..Going::default() });
        self.going.insert(flow, Arc::clone(&going));
        going
    }

    /// Whether there may be one more, of so many bytes.
    fn take(&mut self, flow: u32, bytes: Bytes) -> Result<(), Refused> {
        let refused = |message: String| Refused { why: Why::Limit, message, flow: Some(flow) };
        if self.any() && self.going.len() >= MOST_FLOWS {
            return Err(refused(format!("the far host does {MOST_FLOWS} flows at once, and no more")));
        }
        if self.going.contains_key(&flow) {
            return Err(refused(format!("flow {flow} goes on already")));
        }
        self.client.spend(bytes).map_err(|left| {
            refused(format!(
                "{bytes} are asked for, and the far host allows this address {left} more within the hour (--max-bytes)"
            ))
        })?;
        self.asked_for += bytes;
        Ok(())
    }

    /// What was taken for it is there again.
    fn cannot_begin(&mut self, flow: u32, taken: Bytes, error: impl std::fmt::Display) -> FromFar {
        self.client.give_back(taken);
        self.asked_for -= taken;
        cannot(flow, error)
    }

    /// The messages of a stream, where it is one.
    fn messages(&mut self, asked: &Transfer) -> Result<Option<Messages>, Refused> {
        let Some(messages) = asked.messages else { return Ok(None) };
        let refused = |why, message| Refused { why, message, flow: Some(asked.flow) };
        let messages = messages.of(asked.size).filter(|_| asked.exchanges <= 1);
        let messages = messages
            .ok_or_else(|| refused(Why::Malformed, "messages that are not what is sent".to_owned()))?;
        self.forget_what_is_over();
        let going: u64 = self.going.values().map(|going| going.messages).sum();
        if going.saturating_add(messages.count) > MOST_MESSAGES {
            let most = format!("the far host does streams of {MOST_MESSAGES} messages at once, and no more");
            return Err(refused(Why::Limit, most));
        }
        Ok(Some(messages))
    }

    fn take_datagrams(&mut self, flow: u32, count: u32, size: u32, bytes: Bytes) -> Result<(), Refused> {
        let refused = |message: String| Err(Refused { why: Why::Limit, message, flow: Some(flow) });
        if count > MOST_DATAGRAMS {
            return refused(format!("{count} datagrams; the far host does {MOST_DATAGRAMS} and no more"));
        }
        let sizes = datagram::LEAST..=datagram::MOST;
        if !sizes.contains(&(size as usize)) {
            let message = format!("datagrams of {size} B; expected {} to {} B", sizes.start(), sizes.end());
            return refused(message);
        }
        self.take(flow, bytes)
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

fn cannot(flow: u32, error: impl std::fmt::Display) -> FromFar {
    FromFar::Refused(Refused { why: Why::Cannot, message: error.to_string(), flow: Some(flow) })
}

fn nothing(flow: u32) -> Datagrams {
    Datagrams { flow, count: 0, within_ns: 0, arrivals: Vec::new(), dropped_here: 0, more: false }
}

/// Arrivals of a long burst take more than one message.
fn send_in_parts(writer: &Writer, mut all: Datagrams) -> io::Result<()> {
    let arrivals = std::mem::take(&mut all.arrivals);
    let mut parts = arrivals.chunks(IN_ONE).peekable();
    loop {
        let arrivals = parts.next().unwrap_or_default().to_vec();
        let more = parts.peek().is_some();
        writer.send(&FromFar::Datagrams(Datagrams { arrivals, more, ..all.clone() }))?;
        if !more {
            return Ok(());
        }
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
