//! Other stations in reach: who they are, what they send, and who hears whom.

use super::RadioSpec;
use super::spec::RadioFault;
use crate::draw::Draws;
use crate::keys::{Keys, ReadValue, Source, word};
use core::fmt;
use farpath_path::Generator;
use farpath_units::{Bytes, Duration, Instant, Rate};

/// Stations of other users on the air of one hop, all alike. They keep to the same rules as those of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherStations {
    /// How many.
    pub stations: u32,
    /// On the air of which hop, from 0 at the near end.
    pub hop: u32,
    /// Bits of packets that each of them offers per second; where it has pauses, outside of them.
    pub rate: Rate,
    /// Length of their packets.
    pub packet: Bytes,
    /// When these come.
    pub arrivals: Arrivals,
    /// Their bursts of packets and the pauses between them, where there are any.
    pub on_off: Option<OnOff>,
    /// Who gets them.
    pub to: Peer,
    /// Who neither hears them nor is heard by them.
    pub hidden_from: HiddenFrom,
    /// What the queue of each of them holds.
    pub queue: Bytes,
}

/// When packets come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// As a Poisson process: the times between them are exponentially distributed.
    Poisson,
    /// At a constant bit rate, from a moment on that is drawn.
    Periodic,
}

/// Packets come for exponentially distributed times, and none for others between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnOff {
    /// Mean of the first.
    pub on: Duration,
    /// Mean of the second.
    pub off: Duration,
}

/// Who gets packets of other stations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The station of the hop where forward packets come in.
    Near,
    /// The other station of the hop.
    Far,
    /// One another, in pairs: the first and the second, the third and the fourth.
    Pairs,
}

/// Who does not hear other stations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenFrom {
    /// All on the air of the hop hear one another.
    Nobody,
    /// The station of the hop where forward packets come in.
    Near,
    /// The other station of the hop.
    Far,
    /// All but who gets their packets: not even one another.
    All,
}

/// Of one radio: more than any air has ever carried.
pub(super) const MOST_STATIONS: u64 = 1000;

/// How many times the rate of the air each may offer. One that offers as much as the air carries is saturated already.
const MOST_LOAD: u64 = 10;

impl OtherStations {
    /// What could never work.
    pub(super) fn check(&self, radio: &RadioSpec) -> Result<(), RadioFault> {
        let OtherStations { stations, hop, rate, packet, on_off, to, hidden_from, queue, .. } = *self;
        let fault = |key, reason: String| Err(RadioFault::Others { key, reason });
        match () {
            () if to == Peer::Pairs && !stations.is_multiple_of(2) => {
                fault("stations", format!("{stations} are no pairs"))
            }
            () if hop >= radio.hops => {
                fault("hop", format!("expected from 1 to {}, found {}", radio.hops, u64::from(hop) + 1))
            }
            () if rate.bit_per_s() / MOST_LOAD > radio.rate.bit_per_s() => {
                fault("rate", format!("{rate} are more than {MOST_LOAD} times the {} of the air", radio.rate))
            }
            () if packet == Bytes::ZERO || packet > radio.mtu => {
                fault("packet", format!("expected from 1 B to the MTU of {}, found {packet}", radio.mtu))
            }
            () if queue < packet => fault("queue", format!("{queue} never hold a packet of {packet}")),
            () if on_off.is_some_and(|times| times.on < self.interval()) => {
                fault("on", format!("a packet comes every {}: expected at least that", self.interval()))
            }
            () if (to, hidden_from) == (Peer::Near, HiddenFrom::Near)
                || (to, hidden_from) == (Peer::Far, HiddenFrom::Far) =>
            {
                fault("hidden_from", "who gets their packets has to hear them".to_owned())
            }
            () if (to, hidden_from) == (Peer::Pairs, HiddenFrom::All) => {
                fault("hidden_from", "pairs that nobody else hears have an air of their own".to_owned())
            }
            () => Ok(()),
        }
    }

    /// Between two packets, in the mean.
    fn interval(&self) -> Duration {
        self.rate.time_to_send(self.packet)
    }

    /// What property tests draw.
    pub(super) fn draw(draws: &mut Draws, radio: &RadioSpec) -> OtherStations {
        // A run may be long, and most of its events are those of others.
        let most = (radio.rate.bit_per_s() / 4).min(2_000);
        let packet = draws.bytes(100..=radio.mtu.0);
        let rate = Rate::from_bit_per_s(draws.between(1..=most)).expect("not zero");
        let interval = rate.time_to_send(packet);
        let to = draws.one_of(&[Peer::Near, Peer::Far, Peer::Pairs]);
        let hidden_from = match to {
            Peer::Near => draws.one_of(&[HiddenFrom::Nobody, HiddenFrom::Far, HiddenFrom::All]),
            Peer::Far => draws.one_of(&[HiddenFrom::Nobody, HiddenFrom::Near, HiddenFrom::All]),
            Peer::Pairs => draws.one_of(&[HiddenFrom::Nobody, HiddenFrom::Near, HiddenFrom::Far]),
        };
        OtherStations {
            stations: 2 * draws.below(4) as u32,
            hop: draws.below(u64::from(radio.hops)) as u32,
            rate,
            packet,
            arrivals: draws.one_of(&[Arrivals::Poisson, Arrivals::Periodic]),
            on_off: draws.option(|draws| OnOff {
                on: interval + draws.microseconds(0..=5_000_000),
                off: draws.microseconds(0..=10_000_000),
            }),
            to,
            hidden_from,
            queue: radio.queue,
        }
    }
}

/// Traffic of one other station.
#[derive(Debug, Clone)]
pub(super) struct Traffic {
    interval: Duration,
    arrivals: Arrivals,
    on_off: Option<OnOff>,
    /// When the packets of now end, where there are pauses.
    on_until: Instant,
    draws: Generator,
}

impl Traffic {
    /// From zero on. Where there are pauses it may begin in one, as likely as they are long.
    pub fn new(others: &OtherStations, mut draws: Generator) -> Traffic {
        let OtherStations { arrivals, on_off, .. } = *others;
        let on_until = on_off.map_or(Instant::MAX, |OnOff { on, off }| {
            let all = on + off;
            match draws.below(all.as_nanos()) < on.as_nanos() {
                true => Instant::ZERO + draws.exponential(on),
                false => Instant::ZERO,
            }
        });
        Traffic { interval: others.interval(), arrivals, on_off, on_until, draws }
    }

    /// When the first packet comes.
    pub fn first(&mut self) -> Instant {
        match self.arrivals {
            Arrivals::Poisson => self.next(Instant::ZERO),
            Arrivals::Periodic => {
                let phase = Duration::from_nanos(self.draws.below(self.interval.as_nanos()));
                self.within(Instant::ZERO, phase)
            }
        }
    }

    /// When the one after that of `now` comes.
    pub fn next(&mut self, now: Instant) -> Instant {
        let step = self.step();
        self.within(now, step)
    }

    fn step(&mut self) -> Duration {
        match self.arrivals {
            Arrivals::Poisson => self.draws.exponential(self.interval),
            Arrivals::Periodic => self.interval,
        }
    }

    /// `step` after `from`, or after the beginning of a later time with packets.
    fn within(&mut self, mut from: Instant, mut step: Duration) -> Instant {
        while let Some(OnOff { on, off }) = self.on_off
            && from + step > self.on_until
            && self.on_until < Instant::MAX
        {
            from = self.on_until + self.draws.exponential(off);
            self.on_until = from + self.draws.exponential(on);
            step = self.step();
        }
        from + step
    }
}

impl fmt::Display for OtherStations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherStations { stations, rate, packet, .. } = self;
        let hidden = match self.hidden_from {
            HiddenFrom::Nobody => "",
            HiddenFrom::Near => ", hidden from the near station",
            HiddenFrom::Far => ", hidden from the far station",
            HiddenFrom::All => ", hidden from one another",
        };
        let pauses =
            self.on_off.map_or(String::new(), |OnOff { on, off }| format!(", {on} on and {off} off"));
        write!(f, "{stations} other stations of {rate} in packets of {packet}{pauses}{hidden}")
    }
}

impl ReadValue for Arrivals {
    const EXPECTED: &'static str = "`poisson` or `periodic`";
    fn read<S: Source>(source: &S) -> Result<Arrivals, S::Error> {
        word(source, &[("poisson", Arrivals::Poisson), ("periodic", Arrivals::Periodic)])
    }
}

impl ReadValue for Peer {
    const EXPECTED: &'static str = "`near`, `far` or `pairs`";
    fn read<S: Source>(source: &S) -> Result<Peer, S::Error> {
        word(source, &[("near", Peer::Near), ("far", Peer::Far), ("pairs", Peer::Pairs)])
    }
}

impl ReadValue for HiddenFrom {
    const EXPECTED: &'static str = "`nobody`, `near`, `far` or `all`";
    fn read<S: Source>(source: &S) -> Result<HiddenFrom, S::Error> {
        let words = [
            ("nobody", HiddenFrom::Nobody),
            ("near", HiddenFrom::Near),
            ("far", HiddenFrom::Far),
            ("all", HiddenFrom::All),
        ];
        word(source, &words)
    }
}

/// A table, or a list of them.
pub(super) struct ReadOthers(pub Vec<ReadOther>);

/// One of them; its queue is that of the path's stations where it has none.
pub(super) struct ReadOther {
    others: OtherStations,
    queue: Option<Bytes>,
}

impl ReadOther {
    pub fn with_queue(self, queue: Bytes) -> OtherStations {
        OtherStations { queue: self.queue.unwrap_or(queue), ..self.others }
    }
}

impl ReadValue for ReadOthers {
    const EXPECTED: &'static str = "a table of stations, or a list of such tables";
    fn read<S: Source>(source: &S) -> Result<ReadOthers, S::Error> {
        if let Some(one) = source.table(read_other) {
            return one.map(|one| ReadOthers(vec![one]));
        }
        let entry = |entry: &S| entry.table(read_other).unwrap_or_else(|| Err(entry.wrong_type("a table")));
        source.list(entry).unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED))).map(ReadOthers)
    }
}

fn read_other<K: Keys>(keys: &mut K) -> Result<ReadOther, K::Error> {
    let hop: u32 = keys.or("hop", 1)?;
    let Some(hop) = hop.checked_sub(1) else {
        return Err(keys.refuse("hop", "hops are counted from 1".to_owned()));
    };
    let on_off = match (keys.optional("on")?, keys.optional("off")?) {
        (Some(on), Some(off)) => Some(OnOff { on, off }),
        (None, None) => None,
        _ => return Err(keys.refuse("on", "`on` and `off` belong together".to_owned())),
    };
    let others = OtherStations {
        stations: keys.required("stations")?,
        hop,
        rate: keys.required("rate")?,
        packet: keys.required("packet")?,
        arrivals: keys.or("arrivals", Arrivals::Poisson)?,
        on_off,
        to: keys.required("to")?,
        hidden_from: keys.or("hidden_from", HiddenFrom::Nobody)?,
        queue: Bytes::ZERO,
    };
    Ok(ReadOther { others, queue: keys.optional("queue")? })
}
