//! An end of a flow of datagrams: it asks before the first one leaves, paces them at what it gets, and answers what the peer asks.
//!
//! UDP has no handshake that could carry structures: each is a datagram of its own, the first one of a flow that asks. Nor has it
//! ACKs: nothing tells a sender of datagrams that its grant is false, and none is given up.

use crate::asking::{Asking, is_idle};
use crate::{Counters, DriverSettings, IDLE, Outcome};
use farpath_tia1039::{Message, QosMark, Source, Structure, Structures};
use farpath_units::{Bytes, Duration, Instant, Rate};

/// A request that is not answered is repeated after so long, and twice as long after that (RFC 6298 §2.1 has this second for a SYN),
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// until there were so many. Then what waits is sent as ever.
const REQUESTS: u32 = 2;

/// One end of a flow of datagrams that takes part in explicit rate.
///
/// ```
/// use farpath_explicit_rate::{DatagramDriver, DriverSettings};
/// use farpath_tia1039::{Message, QosMark, RateUnit, Rounding, Structures};
/// use farpath_units::{Bytes, Instant, Rate};
///
/// let wanted = Rate::from_bit_per_s(10_000_000).expect("above zero");
/// let mut sender = DatagramDriver::new(&DriverSettings::new(wanted));
/// assert!(!sender.may_send(Instant::ZERO), "it asks first");
/// let request = sender.poll().expect("a request");
/// // A router grants half of it, and the peer says so.
/// let half = RateUnit::KbitPerS.encode(5_000_000, Rounding::Down);
/// let granted = farpath_tia1039::Structure { available: half, ..request }.marked();
/// let mut receiver = DatagramDriver::new(&DriverSettings::new(wanted));
/// receiver.on_structures(Instant::ZERO, &Structures::one(granted));
/// let response = receiver.poll().expect("an answer");
/// sender.on_structures(Instant::ZERO, &Structures::one(response));
/// assert!(sender.may_send(Instant::ZERO));
/// assert_eq!(sender.mark(), QosMark::Flow);
/// sender.on_sent(Instant::ZERO, Bytes(1500));
/// ```
#[derive(Debug, Clone)]
pub struct DatagramDriver {
    asking: Asking,
    peer: Source,
    /// For how long datagrams may leave ahead of the rate: half of what a router tolerates, for what queues before it gather.
    ahead: Duration,
    requests: u32,
    /// When the request is taken as lost.
    lost_at: Option<Instant>,
    /// When the last question left, whose answer tells the round trip; `None` where it was repeated.
    timed: Option<Instant>,
    rtt: Option<Duration>,
    /// When a sender that always sent at the rate would be done with what was sent.
    sent_until: Instant,
    last_sent: Option<Instant>,
    /// An answer to the peer that is to leave.
    answer: Option<Structure>,
    /// A structure of our own that is.
    signal: Option<Structure>,
}

impl DatagramDriver {
    /// An end that has said nothing yet.
    pub fn new(settings: &DriverSettings) -> DatagramDriver {
        DatagramDriver {
            asking: Asking::new(settings),
            peer: settings.peer,
            ahead: Duration::from_nanos(settings.request.burst.time().as_nanos() / 2),
            requests: 0,
            lost_at: None,
            timed: None,
            rtt: None,
            sent_until: Instant::ZERO,
            last_sent: None,
            answer: None,
            signal: None,
        }
    }

    /// What has come of asking; `Waiting` too where it has sent nothing.
    pub fn outcome(&self) -> Outcome {
        self.asking.outcome()
    }

    /// The rate in force, bits of IP packets.
    pub fn granted(&self) -> Option<Rate> {
        self.asking.granted()
    }

    /// Counts of what was said.
    pub fn counters(&self) -> &Counters {
        self.asking.counters()
    }

    /// What a datagram that carries structures says.
    pub fn on_structures(&mut self, now: Instant, structures: &Structures) {
        for structure in structures.iter() {
            match structure.message {
                Message::Response => {
                    if let Some(asked) = self.timed.take() {
                        self.rtt = Some(now.saturating_since(asked));
                    }
                    self.lost_at = None;
                    self.signal = self.asking.on_response(structure).or(self.signal);
                }
                Message::MissedStart if !structure.source.is_none() => {
                    self.signal = self.asking.resend(now).or(self.signal);
                }
                _ => self.answer = crate::answer_to(structure, self.peer).or(self.answer),
            }
        }
    }

    /// Whether a datagram that is ready may leave. The first one that is has the rate asked for.
    pub fn may_send(&mut self, now: Instant) -> bool {
        if self.asking.outcome() == Outcome::Waiting {
            if self.lost_at.is_none_or(|at| at <= now) {
                self.ask(now);
            }
            return self.asking.outcome() != Outcome::Waiting;
        }
        self.asking.granted().is_none() || self.leaves_at() <= now
    }

    fn leaves_at(&self) -> Instant {
        Instant::from_nanos(self.sent_until.as_nanos().saturating_sub(self.ahead.as_nanos()))
    }

    /// Asks, or gives up asking.
    fn ask(&mut self, now: Instant) {
        if self.requests == REQUESTS {
            self.asking.peer_is_incapable();
            return;
        }
        self.signal = Some(self.asking.request(now));
        self.timed = (self.requests == 0).then_some(now);
        self.lost_at = Some(now + FIRST_WAIT * (1 << self.requests));
        self.requests += 1;
    }

    /// The codepoint of a datagram that leaves now.
    pub fn mark(&self) -> QosMark {
        if self.asking.granted().is_some() { QosMark::Flow } else { QosMark::None }
    }

    /// A datagram has left, whose IP packet has this size.
    pub fn on_sent(&mut self, now: Instant, packet: Bytes) {
        let Some(rate) = self.asking.granted() else { return };
        self.sent_until = self.sent_until.max(now) + rate.time_to_send(packet);
        self.asking.count_packet();
        let rtt = self.rtt.unwrap_or(IDLE);
        let idle = is_idle(self.last_sent.replace(now), now, rtt);
        if let Some(question) = self.asking.renegotiate(now, rtt, idle) {
            (self.signal, self.timed) = (Some(question), Some(now));
        }
    }

    /// What is to be said now, in a datagram of its own.
    pub fn poll(&mut self) -> Option<Structure> {
        self.answer.take().or_else(|| self.signal.take())
    }

    /// When to ask [`may_send`](DatagramDriver::may_send) again, for a datagram that may not leave yet.
    pub fn next_due(&self) -> Option<Instant> {
        match self.asking.outcome() {
            Outcome::Waiting => self.lost_at,
            _ => self.asking.granted().map(|_| self.leaves_at()),
        }
    }
}
