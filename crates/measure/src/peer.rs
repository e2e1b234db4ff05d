//! The local host's side of the control connection: finding the peer, being let in, and asking.

mod clock;
mod error;
mod host;

pub use host::addresses;

pub(crate) use clock::Exchange;
pub use clock::{Offset, Offsets};
pub use error::MeasureError;

use crate::control::{self, Reader, Until, Writer};
use crate::kernel;
use crate::key::{self, Challenge, Key, Who};
use crate::limits;
use crate::protocol::{
    Datagrams, Ended, FlowNumber, FrameError, FromClient, FromResponder, Greeting, MessagesSeen, PROTOCOL,
    Ping, Pong, Ready, Rows, Welcome, Why,
};
use crate::said::Said;
use farpath_emu::Clock;
use farpath_units::{Bytes, Duration, Instant, Rate};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How long an answer may take, beside the round trip: a peer is there or it is not. Where nobody says otherwise.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Messages of other flows that may come before an answer: what failed since the flow before it was asked for.
const NEWS_BEFORE_ANSWER: usize = 2 * limits::FLOWS;

/// Which version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Whatever the name has.
    #[default]
    Any,
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
}

/// A peer that has let this one in.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    local: SocketAddr,
    reader: Reader,
    writer: Writer<'static>,
    clock: Clock,
    far_kernel: Said,
    far_version: Said,
    welcome: Welcome,
    give_up_after: Duration,
    pings: u32,
    flows: u32,
}

/// What comes for flows that go on.
#[derive(Debug)]
pub(crate) enum News {
    Rows(Rows),
    Messages(MessagesSeen),
    Ended(Box<Ended>),
    Datagrams(Datagrams),
    /// A flow is not done, or no longer.
    Failed(Option<u32>, Said),
}

impl Peer {
    /// Connects to `HOST[:PORT]`.
    ///
    /// # Errors
    /// There is no such host, nobody waits there, or this one is not let in.
    pub fn connect(
        host: &str,
        family: Family,
        key: Option<&Key>,
        stop: &AtomicBool,
    ) -> Result<Peer, MeasureError> {
        let (stream, address) = host::reach(&host::addresses(host, family)?)?;
        let clock = Clock::start();
        let here = |error: io::Error| MeasureError::Here(error.to_string());
        let local = stream.local_addr().map_err(here)?;
        let (mut reader, writer) =
            control::both(Arc::new(stream), clock, control::SILENCE, Until::default()).map_err(here)?;
        let not_farpath = |what: &str| MeasureError::NotFarpath { address, what: what.to_owned() };
        let ended = |error: FrameError| match error {
            FrameError::Stopped => MeasureError::Stopped,
            FrameError::TimedOut => not_farpath("it says nothing"),
            FrameError::Closed => not_farpath("it closed the connection; is it busy?"),
            FrameError::Syntax(_) | FrameError::TooLong => not_farpath("it says something else"),
            error => MeasureError::Lost { address, why: error.to_string() },
        };
        let greeting = match reader.next(clock.now() + ANSWER_WITHIN, &[stop]).map_err(ended)? {
            FromResponder::Greeting(greeting) => greeting,
            FromResponder::Refused(refused) => {
                return Err(MeasureError::Denied { address, message: refused.message });
            }
            _ => return Err(not_farpath("it did not greet")),
        };
        if greeting.farpath != PROTOCOL {
            let (theirs, protocol) = (greeting.version, greeting.farpath);
            return Err(MeasureError::Version { address, theirs, protocol });
        }
        let ours = Challenge(key::random().map_err(here)?);
        let proof = match (greeting.key, key) {
            (true, None) => return Err(MeasureError::KeyMissing { address }),
            // Who asks for a key wants to know whom it speaks to.
            (false, Some(_)) => return Err(MeasureError::KeyWrong { address }),
            (true, Some(key)) => Some(key.prove(Who::Local, &ours, &greeting.challenge)),
            (false, None) => None,
        };
        let hello = Greeting {
            farpath: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            kernel: kernel::name().into(),
            challenge: ours,
            key: false,
            proof,
        };
        let lost = |error: &dyn std::fmt::Display| MeasureError::Lost { address, why: error.to_string() };
        writer.send(&FromClient::Greeting(hello)).map_err(|error| lost(&error))?;
        let welcome = match reader.next(clock.now() + ANSWER_WITHIN, &[stop]).map_err(|error| lost(&error))? {
            FromResponder::Welcome(welcome) => welcome,
            FromResponder::Refused(refused) if refused.why == Why::Key => {
                return Err(MeasureError::KeyWrong { address });
            }
            FromResponder::Refused(refused) => {
                return Err(MeasureError::Denied { address, message: refused.message });
            }
            _ => return Err(not_farpath("it did not answer the greeting")),
        };
        if let Some(key) = key {
            let proven = welcome.proof.as_ref();
            if !proven.is_some_and(|proof| key.accepts(proof, Who::Peer, &ours, &greeting.challenge)) {
                return Err(MeasureError::KeyWrong { address });
            }
        }
        Ok(Peer {
            address,
            local,
            reader,
            writer,
            clock,
            far_kernel: greeting.kernel,
            far_version: greeting.version,
            welcome,
            give_up_after: ANSWER_WITHIN,
            pings: 0,
            flows: 0,
        })
    }

    /// The same, of which an answer is waited for so long, beside the round trip, and what is said of a flow that is over
    /// twice as long.
    pub fn waiting(self, give_up_after: Duration) -> Peer {
        Peer { give_up_after, ..self }
    }

    /// How long it may say nothing of a flow that is over.
    pub(crate) fn told_within(&self) -> Duration {
        self.give_up_after + self.give_up_after
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// This host's own address towards it.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// This host's address as the peer sees it: another one behind a translation of addresses.
    pub fn seen_as(&self) -> &Said {
        &self.welcome.seen_as
    }

    /// Name and release of its kernel.
    pub fn kernel(&self) -> &Said {
        &self.far_kernel
    }

    /// Version of its program.
    pub fn version(&self) -> &Said {
        &self.far_version
    }

    /// How fast this host may send and is sent to, where that is limited.
    pub fn max_rate(&self) -> Option<Rate> {
        self.welcome.max_rate.and_then(Rate::from_bit_per_s)
    }

    /// How much there was to be had when it let this host in.
    pub fn max_bytes(&self) -> Bytes {
        Bytes(self.welcome.max_bytes)
    }

    /// What all of this counts from.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Longest IP packet that the kernel sends to the peer.
    pub(crate) fn path_mtu(&self) -> Option<Bytes> {
        self.reader.info().map(|info| info.pmtu).filter(|mtu| mtu.0 > 0)
    }

    /// A number that no other flow of this connection has.
    pub(crate) fn next_flow(&mut self) -> u32 {
        self.flows += 1;
        self.flows - 1
    }

    fn lost(&self, why: impl std::fmt::Display) -> MeasureError {
        MeasureError::Lost { address: self.address, why: why.to_string() }
    }

    /// What it said makes no sense.
    pub(crate) fn malformed(&self, why: &dyn std::fmt::Display) -> MeasureError {
        self.lost(why)
    }

    pub(crate) fn send(&self, message: &FromClient) -> Result<(), MeasureError> {
        self.writer.send(message).map_err(|error| self.lost(error))
    }

    fn next(&mut self, stops: &[&AtomicBool]) -> Result<FromResponder, MeasureError> {
        self.next_by(self.clock.now() + self.give_up_after, stops)
    }

    fn next_by(&mut self, deadline: Instant, stops: &[&AtomicBool]) -> Result<FromResponder, MeasureError> {
        self.reader.next(deadline, stops).map_err(|error| match error {
            FrameError::Stopped => MeasureError::Stopped,
            error => self.lost(error),
        })
    }

    /// Asks for the peer's end of a flow of that number, and gives where it waits. What comes for other flows is given to `news`.
    pub(crate) fn ask(
        &mut self,
        flow: u32,
        message: &FromClient,
        stop: &AtomicBool,
        mut news: impl FnMut(News),
    ) -> Result<Ready, MeasureError> {
        self.send(message)?;
        let deadline = self.clock.now() + self.give_up_after;
        for _ in 0..NEWS_BEFORE_ANSWER {
            match self.next_by(deadline, &[stop])? {
                FromResponder::Ready(ready) => return Ok(ready),
                FromResponder::Refused(refused) if refused.flow.is_none_or(|refused| refused == flow) => {
                    return Err(self.denied(refused.message));
                }
                other => news(self.news(other)?),
            }
        }
        Err(self.lost("it says much, and nothing of what it was asked for"))
    }

    fn denied(&self, message: Said) -> MeasureError {
        MeasureError::Denied { address: self.address, message }
    }

    fn news(&self, message: FromResponder) -> Result<News, MeasureError> {
        match message {
            FromResponder::Rows(rows) => Ok(News::Rows(rows)),
            FromResponder::Messages(seen) => Ok(News::Messages(seen)),
            FromResponder::Ended(ended) => Ok(News::Ended(ended)),
            FromResponder::Datagrams(datagrams) => Ok(News::Datagrams(datagrams)),
            FromResponder::Refused(refused) if refused.flow.is_some() => {
                Ok(News::Failed(refused.flow, refused.message))
            }
            FromResponder::Refused(refused) => Err(self.denied(refused.message)),
            _ => Err(self.lost("it said something that nobody had asked for")),
        }
    }

    /// What comes next for flows that go on; `None` where nothing does within the time or before a stop.
    pub(crate) fn wait(
        &mut self,
        within: Duration,
        stops: &[&AtomicBool],
    ) -> Result<Option<News>, MeasureError> {
        let deadline = self.clock.now() + within;
        match self.reader.next(deadline, stops) {
            Ok(message) => self.news(message).map(Some),
            Err(FrameError::TimedOut | FrameError::Stopped) => Ok(None),
            Err(error) => Err(self.lost(error)),
        }
    }

    pub(crate) fn done(&self, flow: u32) -> Result<(), MeasureError> {
        self.send(&FromClient::Done(FlowNumber { flow }))
    }

    pub(crate) fn stop(&self, flow: u32) -> Result<(), MeasureError> {
        self.send(&FromClient::Stop(FlowNumber { flow }))
    }

    /// Values of its kernel.
    pub(crate) fn kernel_values(
        &mut self,
        names: Vec<String>,
        stop: &AtomicBool,
    ) -> Result<Vec<(String, Option<Said>)>, MeasureError> {
        self.send(&FromClient::Kernel(names))?;
        match self.next(&[stop])? {
            FromResponder::Kernel(values) => Ok(values),
            FromResponder::Refused(refused) => Err(self.denied(refused.message)),
            _ => Err(self.lost("it said something that nobody had asked for")),
        }
    }

    /// One exchange of times: when it was asked here, received and answered there, and heard here.
    fn ping(&mut self, stop: &AtomicBool) -> Result<clock::Exchange, MeasureError> {
        let number = self.pings;
        self.pings += 1;
        let asked = self.clock.now();
        self.send(&FromClient::Ping(Ping { number }))?;
        match self.next(&[stop])? {
            FromResponder::Pong(Pong { number: same, received_ns, sent_ns }) if same == number => {
                Ok(clock::Exchange { asked, received_ns, sent_ns, heard: self.clock.now() })
            }
            FromResponder::Refused(refused) => Err(self.denied(refused.message)),
            _ => Err(self.lost("it said something that nobody had asked for")),
        }
    }

    /// How far the clocks are apart now.
    pub(crate) fn offset(&mut self, stop: &AtomicBool) -> Result<Offset, MeasureError> {
        let mut exchanges = Vec::new();
        let begun = self.clock.now();
        // On a path of minutes once must do.
        while exchanges.len() < clock::EXCHANGES
            && (exchanges.is_empty() || self.clock.now().saturating_since(begun) < clock::WITHIN)
        {
            exchanges.push(self.ping(stop)?);
        }
        Offset::estimated(&exchanges).ok_or_else(|| self.lost("its clock goes backwards"))
    }
}

/// Whether nobody but this host reaches an address.
pub fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
