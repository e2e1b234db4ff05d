//! Packet radios as data, and the times that follow from it.

use crate::radio::fragments::Fragments;
use farpath_units::{Ber, Bytes, Duration, Power, Rate};

/// A row of packet radios that hand packets on from one to the next, over a channel that carries one station at a time.
///
/// Station 0 is where forward packets come in, station [`hops`](RadioSpec::hops) where they leave. All stations are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct RadioSpec {
    /// Radio hops; one has two stations.
    pub hops: u32,
    /// Bits on the air, while a frame is being sent.
    pub rate: Rate,
    /// Whether a station that sends one way can receive the other way meanwhile.
    pub duplex: Duplex,
    /// What it costs to change between sending and listening.
    pub turnaround: Turnaround,
    /// Length of a poll, and of the answer to it; `None` where data are sent unasked.
    pub poll: Option<Bytes>,
    /// Link header of each frame.
    pub header: Bytes,
    /// Length of the answer to a burst, which says how many of its frames arrived in a row; the rest is sent again.
    /// `None` where nothing is answered: what is damaged is lost.
    pub link_ack: Option<Bytes>,
    /// Frames that a station may send each time it has won the channel.
    pub burst: u32,
    /// After an exchange both stations wait for a time drawn from zero to this before they try to send.
    pub gap: Duration,
    /// How long a station waits that was not answered.
    pub backoff: Backoff,
    /// What each station's queue of each direction holds, with what is being sent.
    pub queue: Bytes,
    /// A station whose onward queue is full answers no poll. Without it, it drops.
    pub flow_control: bool,
    /// Chance for each bit of a frame to be damaged. Polls and link ACKs, short and well protected, are taken to arrive.
    pub ber: Ber,
    /// How often a frame is sent at most; `None`: until it arrives.
    pub attempts: Option<u32>,
    /// What a station takes from a packet's arrival until it can send it on, or hands it over. It delays, and holds nothing up.
    pub processing: Duration,
    /// Longest IP packet of a frame.
    pub mtu: Bytes,
    /// What happens to longer ones.
    pub oversize: Oversize,
    /// A station that got rid of none of its packets for this long gives them up.
    pub patience: Duration,
    /// What a transceiver draws, where that is known: its energy is accounted for.
    pub power: Option<RadioPower>,
}

/// What a transceiver draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RadioPower {
    /// While it sends.
    pub send: Power,
    /// While it does not: it listens, receives or turns around.
    pub listen: Power,
}

/// Whether both directions share the air.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    /// One transceiver for both directions.
    Half,
    /// One for each direction, on channels of their own. Nothing turns around.
    Full,
}

/// What happens to packets over the MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oversize {
    /// They are sent as IP fragments (RFC 791 §3.2), and put together again at the far end of the radios.
    Fragment,
    /// They are dropped.
    Refuse,
    /// They are dropped, and who sent them is told ("fragmentation needed", RFC 1191 §3).
    Icmp,
}

/// Times for which a radio neither sends nor listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turnaround {
    /// From listening to sending.
    pub rx_to_tx: Duration,
    /// From sending to listening.
    pub tx_to_rx: Duration,
    /// From one neighbour's channel to another's.
    pub retune: Duration,
}

/// The n-th poll in a row that nobody answered is followed by a wait of `(1 + U) 2^n base + 2 base`, U drawn from 0 to 1
/// and n at most `max_exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Of the doubling.
    pub base: Duration,
    /// Of two.
    pub max_exponent: u32,
}

impl RadioSpec {
    /// From the end of what one station sends until the other one's answer begins: the slower of the two has turned around.
    pub fn hand_over(&self) -> Duration {
        match self.duplex {
            Duplex::Half => self.turnaround.rx_to_tx.max(self.turnaround.tx_to_rx),
            Duplex::Full => Duration::ZERO,
        }
    }

    /// From listening until the first bit is sent.
    pub fn turn_to_send(&self) -> Duration {
        match self.duplex {
            Duplex::Half => self.turnaround.rx_to_tx,
            Duplex::Full => Duration::ZERO,
        }
    }

    /// On the air: a poll, or the answer to it.
    pub fn poll_time(&self) -> Duration {
        self.poll.map_or(Duration::ZERO, |poll| self.rate.time_to_send(poll))
    }

    /// On the air: the frame around `size` bytes.
    pub fn frame_time(&self, size: Bytes) -> Duration {
        self.rate.time_to_send(size + self.header)
    }

    /// From the end of a burst until its answer has been heard.
    pub fn answer_time(&self) -> Duration {
        self.link_ack.map_or(Duration::ZERO, |ack| self.hand_over() + self.rate.time_to_send(ack))
    }

    /// From the moment at which a station decides to send until the first bit of its data, on a free channel.
    pub fn access_time(&self) -> Duration {
        let asked = self.poll.map_or(Duration::ZERO, |_| self.hand_over() + self.hand_over());
        self.turn_to_send() + self.poll_time() * 2 + asked
    }

    /// What an exchange takes beside its frames, with the mean wait before the next one, on a channel that nobody else
    /// wants.
    pub fn exchange_overhead(&self) -> Duration {
        self.access_time() + self.answer_time() + self.gap / 2
    }

    /// How long a station that has sent its poll waits for the answer.
    ///
    /// ns-2's `MultihopMac::poll`: a turnaround and four times the poll.
    pub fn poll_timeout(&self) -> Duration {
        self.hand_over() + self.poll_time() * 4
    }

    /// One-way delay of a lone packet of `size` over idle radios, without the drawn waits between two exchanges.
    pub fn lone_delay(&self, size: Bytes) -> Duration {
        let fragments = Fragments::of(size, self.mtu);
        let exchanges = fragments.count().div_ceil(u64::from(self.burst.max(1)));
        let on_air: Duration = (0..fragments.count()).map(|n| self.frame_time(fragments.size(n))).sum();
        let hop = self.access_time() * exchanges + self.answer_time() * (exchanges - 1) + on_air;
        // A relay answers before it goes on.
        let relay = self.processing.max(self.answer_time());
        hop * u64::from(self.hops) + relay * u64::from(self.hops.saturating_sub(1)) + self.processing
    }
}

/// Why radios cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RadioFault {
    /// No path, or more hops than can be kept.
    #[error("expected from 1 to {MOST_HOPS} hops, found {0}")]
    Hops(u32),
    /// Nothing is ever sent.
    #[error("a burst has at least one frame")]
    Burst,
    /// The same.
    #[error("a frame is sent at least once")]
    Attempts,
    /// No room for a header and data.
    #[error("expected {LEAST_MTU} or more, found {0}")]
    Mtu(Bytes),
    /// No packet of the MTU's length ever gets into it.
    #[error("{queue} never hold a packet of the MTU of {mtu}")]
    Queue {
        /// The limit.
        queue: Bytes,
        /// What it has to hold.
        mtu: Bytes,
    },
    /// No time passes between two calls.
    #[error("stations that call together would do so for ever: expected more than no time")]
    Backoff,
    /// The watchdog always bites.
    #[error("expected more than no time: every packet would be given up at once")]
    Patience,
}

impl RadioFault {
    /// The parameter that is wrong, as files spell it.
    pub const fn key(&self) -> &'static str {
        match self {
            RadioFault::Hops(_) => "hops",
            RadioFault::Burst => "burst",
            RadioFault::Attempts => "attempts",
            RadioFault::Mtu(_) => "mtu",
            RadioFault::Queue { .. } => "queue",
            RadioFault::Backoff => "backoff",
            RadioFault::Patience => "patience",
        }
    }
}

/// More would be no path that anyone has built.
const MOST_HOPS: u32 = 1000;

/// RFC 791 §3.2: every module must forward 68 B without fragmenting them.
const LEAST_MTU: Bytes = Bytes(68);

impl RadioSpec {
    /// Refuses what could never work.
    ///
    /// # Errors
    /// No hops, frames or attempts; an MTU or a queue without room; no time between two calls, or to wait for one.
    pub fn validate(&self) -> Result<(), RadioFault> {
        let RadioSpec { hops, burst, attempts, mtu, queue, .. } = *self;
        match () {
            () if !(1..=MOST_HOPS).contains(&hops) => Err(RadioFault::Hops(hops)),
            () if burst == 0 => Err(RadioFault::Burst),
            () if attempts == Some(0) => Err(RadioFault::Attempts),
            () if mtu < LEAST_MTU => Err(RadioFault::Mtu(mtu)),
            () if queue < mtu => Err(RadioFault::Queue { queue, mtu }),
            () if self.backoff.base.is_zero() => Err(RadioFault::Backoff),
            () if self.patience.is_zero() => Err(RadioFault::Patience),
            () => Ok(()),
        }
    }
}
