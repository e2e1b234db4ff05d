//! Packet radios as data, the times that follow from it, and what they say of themselves.

use super::Radio;
use super::fragments::Fragments;
use super::others::{MOST_STATIONS, OtherStations, ReadOthers};
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Fault, Inflow};
use crate::keys::{Keys, OrNone, ReadValue, Source, word};
use crate::line::{Line, faster};
use crate::over_time::Setting;
use crate::{ElementKind, ExplicitRatePacket, MarkThreshold, QueueLimit};
use farpath_path::Direction;
use farpath_units::{Ber, Bytes, Duration, Power, Rate};

/// A row of packet radios that hand packets on from one to the next, over a channel that carries one station at a time.
///
/// Station 0 is where forward packets come in, station [`hops`](RadioSpec::hops) where they leave. All stations are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct RadioSpec {
    /// Radio hops; one has two stations.
    pub hops: u32,
    /// Bits on the air, while a frame is being sent; where they change over time, in the mean.
    pub rate: Rate,
    /// The same over the time of a run, where it changes: a station sends its burst at the rate of the moment at which it has won the air.
    pub rate_over_time: Option<Setting<Rate>>,
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
    pub give_up_after: Duration,
    /// What a transceiver draws, where that is known: its energy is accounted for.
    pub power: Option<RadioPower>,
    /// Stations of other users in reach.
    pub others: Vec<OtherStations>,
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
}

/// Why radios cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RadioFault {
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
    GiveUpAfter,
    /// Two airs of one hop.
    #[error("others share one air with the stations of the path: expected `duplex = \"half\"`")]
    Duplex,
    /// Other stations that cannot work.
    #[error("{reason}")]
    Others {
        /// The parameter of theirs that is wrong.
        key: &'static str,
        /// Why.
        reason: String,
    },
}

impl RadioFault {
    /// The parameter that is wrong, as files spell it.
    fn key(&self) -> String {
        let key = match self {
            RadioFault::Hops(_) => "hops",
            RadioFault::Burst => "burst",
            RadioFault::Attempts => "attempts",
            RadioFault::Mtu(_) => "mtu",
            RadioFault::Queue { .. } => "queue",
            RadioFault::Backoff => "backoff",
            RadioFault::GiveUpAfter => "give_up_after",
            RadioFault::Duplex => "others",
            RadioFault::Others { key, .. } => return format!("others.{key}"),
        };
        key.to_owned()
    }
}

/// More would be no path that anyone has built.
const MOST_HOPS: u32 = 1000;

/// RFC 791 §3.2: every module must forward 68 B without fragmenting them.
const LEAST_MTU: Bytes = Bytes(68);

impl RadioSpec {
    /// What could never work: no hops, frames or attempts; an MTU or a queue without room; no time between two calls, or to wait
    /// for one.
    fn check(&self) -> Result<(), RadioFault> {
        let RadioSpec { hops, burst, attempts, mtu, queue, .. } = *self;
        match () {
            () if !(1..=MOST_HOPS).contains(&hops) => Err(RadioFault::Hops(hops)),
            () if burst == 0 => Err(RadioFault::Burst),
            () if attempts == Some(0) => Err(RadioFault::Attempts),
            () if mtu < LEAST_MTU => Err(RadioFault::Mtu(mtu)),
            () if queue < mtu => Err(RadioFault::Queue { queue, mtu }),
            () if self.backoff.base.is_zero() => Err(RadioFault::Backoff),
            () if self.give_up_after.is_zero() => Err(RadioFault::GiveUpAfter),
            () if self.duplex == Duplex::Full && !self.others.is_empty() => Err(RadioFault::Duplex),
            () if self.other_stations() > MOST_STATIONS => Err(RadioFault::Others {
                key: "stations",
                reason: format!("expected at most {MOST_STATIONS} in all, found {}", self.other_stations()),
            }),
            () => self.others.iter().try_for_each(|others| others.check(self)),
        }
    }
}

impl RadioSpec {
    /// How many stations of others there are.
    fn other_stations(&self) -> u64 {
        self.others.iter().map(|others| u64::from(others.stations)).sum()
    }
}

impl Element for RadioSpec {
    fn describe(&self) -> String {
        let RadioSpec { hops, rate, burst, queue, .. } = self;
        let duplex = match self.duplex {
            Duplex::Half => "half-duplex",
            Duplex::Full => "full-duplex",
        };
        let polls = self.poll.map_or("without polls".to_owned(), |poll| format!("polls of {poll}"));
        let turn = self.hand_over();
        let rate = self.rate_over_time.as_ref().map_or(rate.to_string(), Setting::to_string);
        let noise = if self.ber == Ber::ZERO { String::new() } else { format!(", BER {}", self.ber) };
        let others: String = self.others.iter().map(|others| format!(", {others}")).collect();
        format!(
            "{duplex} radio of {rate}, hops: {hops}, {polls}, turnaround {turn}, bursts of {burst}, queues of {queue}{noise}{others}"
        )
    }

    fn is_random(&self) -> bool {
        true
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        let rate = if self.rate_over_time.is_some() { ", at its mean rate" } else { "" };
        Some(format!(
            "radios, predicted as a link that carries full bursts one way{rate}; data and ACKs that meet on the air, and \
             frames sent again, are left out of the prediction"
        ))
    }

    fn no_model(&self, _data: Direction) -> Option<String> {
        (self.other_stations() > 0).then(|| {
            "other stations share the air of the radios, and no closed form here says how much of it they leave".to_owned()
        })
    }

    fn delays(&self, direction: Direction, size: Bytes) -> Vec<DelayPart> {
        let processing = self.processing * u64::from(self.hops);
        let on_air = self.frame_time(size) * u64::from(self.hops);
        let access = self.lone_delay(direction, size).saturating_sub(processing).saturating_sub(on_air);
        // What stands before radios goes by who wins the air, and no formula here says how often.
        let share = self.exchange_overhead() / u64::from(self.burst.max(1)) + self.frame_time(size);
        let full_s = self.queue.0 as f64 / size.0.max(1) as f64 * share.as_secs_f64();
        vec![
            DelayPart::fixed(DelayKind::MediumAccess, access),
            DelayPart::fixed(DelayKind::Serialization, on_air),
            DelayPart::fixed(DelayKind::Processing, processing),
            DelayPart { kind: DelayKind::Queue, time: DelayTime::Varying { expected_s: None, full_s } },
        ]
    }

    fn validate(&self) -> Result<(), Fault> {
        self.check().map_err(|fault| Fault { key: fault.key(), reason: fault.to_string() })
    }

    fn line(&self, _direction: Direction) -> Option<Line> {
        Some(Line {
            rate: self.rate,
            queue: QueueLimit::Bytes(self.queue),
            mark: MarkThreshold::Never,
            overhead: self.header,
            min_packet: Bytes::ZERO,
            is_shared: true,
        })
    }

    /// Over idle radios, without the drawn waits between two exchanges.
    fn lone_delay(&self, _direction: Direction, size: Bytes) -> Duration {
        let fragments = Fragments::for_packet(size, self.mtu);
        let exchanges = fragments.count().div_ceil(u64::from(self.burst.max(1)));
        let on_air: Duration = (0..fragments.count()).map(|n| self.frame_time(fragments.size(n))).sum();
        let hop = self.access_time() * exchanges + self.answer_time() * (exchanges - 1) + on_air;
        // A relay answers before it goes on.
        let relay = self.processing.max(self.answer_time());
        hop * u64::from(self.hops) + relay * u64::from(self.hops.saturating_sub(1)) + self.processing
    }

    /// As the link that full bursts one way make of radios: each frame takes its share of the exchange.
    fn as_hop(&self, direction: Direction, bare: Bytes) -> (Duration, Option<Line>) {
        let share = self.exchange_overhead() / u64::from(self.burst.max(1));
        let bits = u128::from(self.rate.bit_per_s()) * u128::from(share.as_nanos()) / 1_000_000_000;
        // A relay receives a frame before it sends it: half of the time is left for either.
        let rate = self.rate.bit_per_s() / u64::from(self.hops.min(2));
        let line = Line {
            rate: Rate::from_bit_per_s(rate).unwrap_or(self.rate),
            queue: QueueLimit::Bytes(self.queue),
            mark: MarkThreshold::Never,
            overhead: self.header + Bytes(u64::try_from(bits / 8).unwrap_or(u64::MAX)),
            min_packet: Bytes::ZERO,
            is_shared: true,
        };
        let sending = line.rate.time_to_send(line.frame(bare));
        (self.lone_delay(direction, bare).saturating_sub(sending), Some(line))
    }

    fn entries(&self) -> usize {
        self.rate_over_time.as_ref().map_or(0, Setting::entries) + self.other_stations() as usize
    }

    fn mtu(&self) -> Option<(Bytes, Oversize)> {
        Some((self.mtu, self.oversize))
    }

    fn held(&self, _direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        let stations = Bytes(self.queue.0.saturating_mul(u64::from(self.hops) + 1));
        QueueLimit::Bytes(stations).held(self.rate, inflow)
    }

    fn remove_loss(&mut self) {
        self.ber = Ber::ZERO;
    }

    fn remove_queue_limit(&mut self) {
        self.queue = Bytes::MAX;
    }

    /// One air for both ways, and what it takes to use it.
    fn speed_up(&mut self, _direction: Direction, factor: u64) {
        self.rate = faster(self.rate, factor);
        self.rate_over_time =
            self.rate_over_time.as_ref().map(|rates| rates.map(|rate| faster(rate, factor)));
        self.turnaround = Turnaround::default();
        self.gap = self.gap / factor;
        self.backoff.base = (self.backoff.base / factor).max(Duration::from_nanos(1));
    }
}

impl Declared for RadioSpec {
    const NAMES: &'static [&'static str] = &["radio"];
    const PRINCIPAL: Option<&'static str> = Some("rate");
    const DOCS: &'static str = r#"| `radio` | **`rate`** | bits on the air, or [over time](traces.md#values-that-change); one or more hops of [packet radio](models/radio.md), one air for both ways | required |
| | `hops` | radio hops; one has two stations | 1 |
| | `duplex` | `half`, or `full`: a transceiver and a channel for each direction, and no turnarounds | `half` |
| | `turnaround` | between listening and sending: a time, or `{ rx_to_tx = .., tx_to_rx = .. }` | `0 s` |
| | `retune` | of a relay, between its neighbours | `0 s` |
| | `poll` | length of a poll and of its answer, or `none`: frames are sent unasked | `none` |
| | `header` | of each frame | `0 B` |
| | `link_ack` | length of the answer to a burst, or `none`: what is damaged is lost | `none` |
| | `burst` | frames for each poll that was answered | 1 |
| | `gap` | the longest wait after an exchange, drawn | `0 s` |
| | `backoff` | of a station that nobody answered: from 2^n to 2^(n+1) times this, n times in a row, and twice this | required |
| | `backoff_doublings` | the largest n | 6 |
| | `queue` | of each station and direction, with what is being sent | required |
| | `flow_control` | a relay that is full answers no poll | `true` |
| | `ber` | bit error rate of frames | 0 |
| | `attempts` | how often a frame is sent, or `unlimited` | `unlimited` |
| | `processing` | of a packet in each station that receives it | `0 s` |
| | `mtu` | longest IP packet of a frame | required |
| | `oversize` | longer ones: `fragment` (RFC 791), `refuse`: they are dropped without a word, or `icmp`: dropped, and an emulated sender is told (RFC 1191); the simulated TCP knows no path MTU discovery | `fragment` |
| | `give_up_after` | a station that gets rid of nothing for so long drops what it has, and the run says so | `5 min` |
| | `power` | what a transceiver draws, `{ send = "2 W", listen = "500 mW" }`: energy is accounted for | unknown |
| | `others` | stations of other users on the same air ([several stations](models/radio.md#several-stations)): `{ stations = 4, rate = "1 kbit/s", packet = "512 B", to = "near" }`, or a list of such tables | none |"#;

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let rate: Setting<Rate> = keys.required("rate")?;
        let queue = keys.required("queue")?;
        let others = keys.or("others", ReadOthers(Vec::new()))?;
        Ok(ElementKind::Radio(Box::new(RadioSpec {
            hops: keys.or("hops", 1)?,
            rate: rate.mean(),
            rate_over_time: (!rate.stays()).then_some(rate),
            duplex: keys.or("duplex", Duplex::Half)?,
            turnaround: Turnaround {
                retune: keys.or("retune", Duration::ZERO)?,
                ..keys.or("turnaround", Turnaround::default())?
            },
            poll: keys.or("poll", OrNone(None))?.0,
            header: keys.or("header", Bytes::ZERO)?,
            link_ack: keys.or("link_ack", OrNone(None))?.0,
            burst: keys.or("burst", 1)?,
            gap: keys.or("gap", Duration::ZERO)?,
            backoff: Backoff {
                base: keys.required("backoff")?,
                max_exponent: keys.or("backoff_doublings", 6)?,
            },
            queue,
            flow_control: keys.or("flow_control", true)?,
            ber: keys.or("ber", Ber::ZERO)?,
            attempts: keys.or("attempts", Attempts(None))?.0,
            processing: keys.or("processing", Duration::ZERO)?,
            mtu: keys.required("mtu")?,
            oversize: keys.or("oversize", Oversize::Fragment)?,
            give_up_after: keys.or("give_up_after", Duration::from_secs(300))?,
            power: keys.optional("power")?,
            others: others.0.into_iter().map(|others| others.with_queue(queue)).collect(),
        })))
    }

    fn draw(draws: &mut Draws) -> RadioSpec {
        let short = |draws: &mut Draws| draws.microseconds(0..=20_000);
        let rate = Setting::draw(draws, |draws| {
            Rate::from_bit_per_s(draws.between(20_000..=10_000_000)).expect("not zero")
        });
        let radio = RadioSpec {
            hops: 1 + draws.below(3) as u32,
            rate: rate.mean(),
            rate_over_time: (!rate.stays()).then_some(rate),
            duplex: draws.one_of(&[Duplex::Half, Duplex::Full]),
            turnaround: Turnaround { rx_to_tx: short(draws), tx_to_rx: short(draws), retune: short(draws) },
            poll: draws.option(|_| Bytes(40)),
            header: draws.bytes(0..=30),
            link_ack: draws.option(|_| Bytes(20)),
            burst: 1 + draws.below(6) as u32,
            gap: short(draws),
            backoff: Backoff { base: draws.microseconds(1..=50_000), max_exponent: draws.below(8) as u32 },
            queue: draws.bytes(10_000..=200_000),
            flow_control: draws.chance(50),
            ber: draws.error_rate(),
            attempts: draws.option(|draws| 1 + draws.below(6) as u32),
            processing: short(draws),
            mtu: draws.bytes(296..=9_000),
            oversize: draws.one_of(&[Oversize::Fragment, Oversize::Refuse, Oversize::Icmp]),
            give_up_after: draws.microseconds(100_000..=300_000_000),
            power: None,
            others: Vec::new(),
        };
        // Drawn last: what is drawn of the rest stays what it was.
        let groups = if radio.duplex == Duplex::Half { draws.below(3) } else { 0 };
        let others = (0..groups).map(|_| OtherStations::draw(draws, &radio)).collect();
        RadioSpec { others, ..radio }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Holding(Box::new(Radio::new(name.to_owned(), self, seed)))
    }
}

impl ReadValue for Duplex {
    const EXPECTED: &'static str = "`half` or `full`";
    fn read<S: Source>(source: &S) -> Result<Duplex, S::Error> {
        word(source, &[("half", Duplex::Half), ("full", Duplex::Full)])
    }
}

impl ReadValue for Oversize {
    const EXPECTED: &'static str = "`fragment`, `refuse` or `icmp`";
    fn read<S: Source>(source: &S) -> Result<Oversize, S::Error> {
        let words =
            [("fragment", Oversize::Fragment), ("refuse", Oversize::Refuse), ("icmp", Oversize::Icmp)];
        word(source, &words)
    }
}

/// How often a frame is sent, or the word `unlimited`.
struct Attempts(Option<u32>);

impl ReadValue for Attempts {
    const EXPECTED: &'static str = u32::EXPECTED;
    fn read<S: Source>(source: &S) -> Result<Attempts, S::Error> {
        source.unless("unlimited").map(Attempts)
    }
}

/// One time for both ways of turning around, or a table; without a retune.
impl ReadValue for Turnaround {
    const EXPECTED: &'static str = Duration::EXPECTED;
    fn read<S: Source>(source: &S) -> Result<Turnaround, S::Error> {
        let retune = Duration::ZERO;
        let table = source.table(|turn| {
            let (rx_to_tx, tx_to_rx) = (turn.required("rx_to_tx")?, turn.required("tx_to_rx")?);
            Ok(Turnaround { rx_to_tx, tx_to_rx, retune })
        });
        table.unwrap_or_else(|| {
            let both = Duration::read(source)?;
            Ok(Turnaround { rx_to_tx: both, tx_to_rx: both, retune })
        })
    }
}

impl ReadValue for RadioPower {
    const EXPECTED: &'static str = "a table";
    fn read<S: Source>(source: &S) -> Result<RadioPower, S::Error> {
        let read = |power: &mut S::Keys| {
            Ok(RadioPower { send: power.required("send")?, listen: power.required("listen")? })
        };
        source.table(read).unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))
    }
}
