//! An end of an explicit-rate connection: asks for a rate in the handshake, sends at what it gets, and answers what the peer asks.
//!
//! It stands between a TCP endpoint and IP, as the QoS sub-layer of TIA-1039 does: what leaves gets a codepoint and
//! perhaps structures, what arrives is stripped of them before TCP sees it, and the endpoint is told the rate ([`Paced`]).
//! Structures count in no sequence space.
//!
//! ```
//! use farpath_tcp::{Config, Connection, Seq};
//! use farpath_explicit_rate::{Driver, DriverSettings};
//! use farpath_tia1039::{Message, QosMark};
//! use farpath_units::{Instant, Rate};
//!
//! let wanted = Rate::from_bit_per_s(100_000_000).expect("above zero");
//! let mut tcp = Connection::connect(&Config::default(), Seq(1));
//! let mut driver = Driver::new(&DriverSettings::new(wanted), &mut tcp);
//! let syn = driver.poll(&mut tcp, Instant::ZERO).expect("a SYN");
//! assert_eq!(syn.mark, QosMark::Signal);
//! assert_eq!(syn.structures.expect("a request").first.message, Message::Request);
//! ```

mod asking;
mod datagrams;
mod guard;
mod paced;
mod settings;
#[cfg(test)]
mod tests;

pub use asking::{Counters, Outcome, Plain};
pub use datagrams::DatagramDriver;
pub use guard::{EXCESS, QUEUE_LOSS_PER_MILLE, QUEUE_ROUNDS, Trip, allowed_per_million};
pub use paced::{Paced, PathReport};
pub use settings::{DriverSettings, RequestSettings, window_for};

use asking::{Asking, is_idle};
use farpath_tcp::{Flags, Segment};
use farpath_tia1039::{Message, QosMark, Source, Structure, Structures};
use farpath_units::{Duration, Instant, Rate};
use guard::Guard;

/// A segment as it goes over the wire: with its codepoint, and the structures behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// What TCP has to do with it.
    pub segment: Segment,
    /// The codepoint.
    pub mark: QosMark,
    /// Structures, which are its whole payload.
    pub structures: Option<Structures>,
}

impl Datagram {
    /// A segment that says nothing to routers.
    pub const fn plain(segment: Segment) -> Datagram {
        Datagram { segment, mark: QosMark::None, structures: None }
    }
}

/// After so many SYNs without an answer the request is left out: a box on the way may drop a SYN with payload.
const SYNS_WITH_REQUEST: u32 = 2;
/// So many ACKs carry the answer of the handshake, at most.
const ANSWERS: u32 = 32;
/// An idle time after which the rate is asked for again, or a round trip where that is longer; and what stands for one that is not known.
const IDLE: Duration = Duration::from_secs(1);

/// One end's explicit-rate driver.
#[derive(Debug, Clone)]
pub struct Driver {
    settings: DriverSettings,
    asking: Asking,
    guard: Guard,
    syns: u32,
    answers_left: u32,
    /// A segment that waits behind the third packet of the handshake.
    held: Option<Segment>,
    /// The answer to the peer's request of the handshake: repeated until the peer is seen to have it.
    answer: Option<Structure>,
    /// An answer that is to leave as soon as may be.
    answer_now: Option<Structure>,
    /// A structure of our own that is to leave as soon as may be.
    signal_now: Option<Structure>,
    /// The last segment that left with an ACK: what a packet of the driver's own looks like.
    last_sent: Option<Segment>,
    /// The last segment that TCP has seen: a copy of it tells it nothing.
    last_taken: Option<Segment>,
    last_data_at: Option<Instant>,
    /// The rate that the endpoint was told.
    told: Option<Rate>,
    /// The routers have been told that it is over, where they are to be told.
    closed: bool,
}

impl Driver {
    /// The driver of `endpoint`, before anything was sent.
    pub fn new(settings: &DriverSettings, endpoint: &mut impl Paced) -> Driver {
        endpoint.measure_delivery();
        Driver {
            settings: settings.clone(),
            asking: Asking::new(settings),
            guard: Guard::new(settings),
            syns: 0,
            answers_left: ANSWERS,
            held: None,
            answer: None,
            answer_now: None,
            signal_now: None,
            last_sent: None,
            last_taken: None,
            last_data_at: None,
            told: None,
            closed: false,
        }
    }

    /// What has come of asking.
    pub fn outcome(&self) -> Outcome {
        self.asking.outcome()
    }

    /// The rate in force, bits of IP packets; `None` where TCP sends as ever.
    pub fn granted(&self) -> Option<Rate> {
        self.asking.granted()
    }

    /// Counts of what was said.
    pub fn counters(&self) -> &Counters {
        self.asking.counters()
    }

    // ---- In ----

    /// Takes what arrived: structures are stripped, and what is TCP's is handed to `endpoint`.
    pub fn on_datagram(&mut self, endpoint: &mut impl Paced, now: Instant, datagram: &Datagram) {
        let Datagram { segment, mark, structures } = datagram;
        let syn = segment.flags.contains(Flags::SYN);
        if *mark == QosMark::Flow || !syn && self.syns == 0 {
            // The peer sends by a grant, or has had our SYN/ACK: it has our answer.
            self.answer = None;
        }
        // A SYN that was sent again leaves the request out: what was heard before stands.
        if syn && structures.is_none() && self.answer.is_none() {
            self.asking.peer_is_incapable();
        }
        let mut absorbed = false;
        if let Some(structures) = structures {
            absorbed = !syn;
            for structure in structures.iter() {
                absorbed &= self.take(now, structure, syn);
            }
        }
        // A copy of what TCP has seen is the driver's own carrier for an answer. Without SACK it would count as a duplicate ACK.
        let copy = structures.is_some() && self.last_taken.is_some_and(|last| same_news(&last, segment));
        if !absorbed && !copy {
            if segment.flags.contains(Flags::ACK) {
                self.last_taken = Some(*segment);
            }
            endpoint.on_segment(now, segment);
        }
        self.settle(endpoint, now);
    }

    /// One structure. Whether it alone is no reason for TCP to see the segment.
    fn take(&mut self, now: Instant, structure: &Structure, syn: bool) -> bool {
        match structure.message {
            Message::Response => {
                self.signal_now = self.asking.on_response(structure).or(self.signal_now);
                false
            }
            Message::MissedStart if !structure.source.is_none() => {
                self.signal_now = self.asking.resend(now);
                true
            }
            _ => {
                let answer = answer_to(structure, self.settings.peer);
                if syn {
                    self.answer = answer.or(self.answer);
                } else {
                    self.answer_now = answer.or(self.answer_now);
                }
                true
            }
        }
    }

    /// When to call again: for `endpoint`, or to ask for more.
    pub fn next_due(&self, endpoint: &impl Paced) -> Option<Instant> {
        let due = endpoint.next_due();
        if self.told.is_none() {
            return due;
        }
        let report = endpoint.path();
        let retry = self.asking.retry_at(report.srtt.unwrap_or(IDLE)).filter(|_| report.has_data);
        Instant::earliest(due, retry)
    }

    /// Runs the timers of `endpoint` that are due.
    pub fn on_timer(&mut self, endpoint: &mut impl Paced, now: Instant) {
        endpoint.on_timer(now);
        self.settle(endpoint, now);
    }

    /// After anything that may have changed what is granted, or how the path is.
    fn settle(&mut self, endpoint: &mut impl Paced, now: Instant) {
        let report = endpoint.path();
        if !report.established {
            return;
        }
        if self.told.is_some()
            && let Some(trip) = self.guard.check(now, &report)
        {
            self.signal_now = Some(self.asking.give_up(trip));
        }
        if report.is_done && !core::mem::replace(&mut self.closed, true) {
            self.signal_now = self.asking.close();
        }
        let granted = self.asking.granted();
        if granted == self.told {
            return;
        }
        match granted {
            Some(rate) => {
                if self.told.is_none() {
                    self.guard.restart(now, &report);
                    if let Some(window) = self.settings.early_window {
                        endpoint.assume_peer_window(window);
                    }
                }
                endpoint.send_at(now, self.settings.pace(rate));
            }
            None => endpoint.fall_back(now, self.guard.delivered_rate()),
        }
        self.told = granted;
    }

    // ---- Out ----

    /// The next datagram to send at `now`.
    pub fn poll(&mut self, endpoint: &mut impl Paced, now: Instant) -> Option<Datagram> {
        // Before the third packet of the handshake there is nothing that a packet of the driver's own could look like.
        if self.last_sent.is_some()
            && let Some(signal) = self.signal_now.take().or_else(|| self.ask_again(endpoint, now))
        {
            return self.own(signal);
        }
        let Some(mut segment) = self.held.take().or_else(|| endpoint.poll_segment(now)) else {
            let answer = self.answer_now.take()?;
            return self.own(answer);
        };
        if self.answers_left == ANSWERS && self.answer.is_some() && segment.len > 0 {
            // Data would carry the ACK of the SYN/ACK; the answer needs a packet of its own before it. Whoever has sent the SYN/ACK
            // has data to send only when that is acknowledged, and no answer left.
            self.held = Some(segment);
            (segment.len, segment.flags) = (0, Flags::ACK);
        }
        let syn = segment.flags.contains(Flags::SYN);
        let structures = if syn {
            self.for_syn(now, &segment)
        } else if segment.len == 0 && !segment.flags.intersects(Flags::FIN | Flags::RST) {
            self.answer_now.take().or_else(|| self.repeated_answer()).map(Structures::one)
        } else {
            None
        };
        if segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) {
            self.last_sent = Some(segment);
        }
        if segment.len > 0 {
            self.asking.count_packet();
            self.last_data_at = Some(now);
        }
        let mark = match (structures, self.told) {
            (Some(_), _) => QosMark::Signal,
            // A rate is told behind the handshake: no SYN comes here.
            (None, Some(_)) => QosMark::Flow,
            (None, None) => QosMark::None,
        };
        Some(Datagram { segment, mark, structures })
    }

    /// The answer of the handshake, which the third packet carries: if that is lost, the next ones do. A peer that got nothing has
    /// nothing to mark its packets for, and cannot tell that it knows.
    fn repeated_answer(&mut self) -> Option<Structure> {
        self.answers_left = self.answers_left.checked_sub(1)?;
        self.answer
    }

    /// A SYN carries the request, a SYN/ACK the answer to the peer's and a request of its own.
    fn for_syn(&mut self, now: Instant, segment: &Segment) -> Option<Structures> {
        if segment.flags.contains(Flags::ACK) {
            // A peer that did not ask would not understand.
            let answer = self.answer?;
            return Some(Structures::two(answer, self.asking.request(now)));
        }
        self.syns += 1;
        // An answer to an earlier SYN may still come.
        (self.syns <= SYNS_WITH_REQUEST).then(|| Structures::one(self.asking.request(now)))
    }

    /// A renegotiation where one is due: after so many packets, a round trip after the last; and after an idle time.
    fn ask_again(&mut self, endpoint: &impl Paced, now: Instant) -> Option<Structure> {
        self.told?;
        let report = endpoint.path();
        let rtt = report.srtt.unwrap_or(IDLE);
        let idle = is_idle(self.last_data_at, now, rtt);
        let asked = self.asking.renegotiate(now, rtt, idle && report.has_data);
        if asked.is_some() && idle {
            self.last_data_at = Some(now);
        }
        asked
    }

    /// A packet of the driver's own: headers as TCP would send them, and a structure behind them.
    fn own(&self, structure: Structure) -> Option<Datagram> {
        let last = self.last_sent?;
        let segment = Segment {
            seq: last.seq.advanced_by(last.seq_len()),
            len: 0,
            flags: Flags::ACK,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            ecn: farpath_tcp::Ecn::NotEct,
            ..last
        };
        Some(Datagram { segment, mark: QosMark::Signal, structures: Some(Structures::one(structure)) })
    }
}

/// What an end answers to a structure of its peer, or of a router on the way from there; `None` to what wants no answer.
fn answer_to(structure: &Structure, peer: Source) -> Option<Structure> {
    match structure.message {
        Message::Request | Message::Renegotiate | Message::ResendStart => Some(structure.response(peer)),
        // From a router, for the other end: it goes back there, with whom it is about.
        Message::MissedStart if structure.source.is_none() => Some(Structure { source: peer, ..*structure }),
        Message::MissedStart
        | Message::Response
        | Message::Forward
        | Message::Confirmation
        | Message::Close => None,
    }
}

/// Whether `segment` says to TCP what `last` has said.
fn same_news(last: &Segment, segment: &Segment) -> bool {
    !segment.flags.contains(Flags::SYN)
        && segment.len == 0
        && last.ack == segment.ack
        && last.sack == segment.sack
        && last.window == segment.window
}

/// Who answers are addressed to where nothing is known of addresses.
pub(crate) const SOMEBODY: Source = Source::V4 { address: core::net::Ipv4Addr::LOCALHOST, port: 1 };
