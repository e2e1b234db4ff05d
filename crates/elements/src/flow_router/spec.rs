//! A flow router as data, and what it says of itself.

use super::FlowRouter;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element, Fault, Inflow};
use crate::keys::{Keys, ReadValue, Source, word};
use crate::line::{Line, faster};
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, Link, MarkThreshold, QueueLimit};
use farpath_path::{Direction, PerDirection};
use farpath_tia1039::router::RouterSettings;
use farpath_tia1039::{Priority, RateUnit};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};

/// The lines of a flow router, and what it is told.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterLines {
    /// Bits on the wire, framing included.
    pub rate: PerDirection<Rate>,
    /// Other rates from later moments on, in the order of their times.
    pub changes: PerDirection<Vec<RateChange>>,
    /// Drop-tail: what each flow's queue may hold, and that of best effort. Guarantees are bounded by policing.
    pub queue: PerDirection<QueueLimit>,
    /// Framing per packet, on top of the IP packet.
    pub overhead: Bytes,
    /// Shortest IP packet that is sent without padding.
    pub min_packet: Bytes,
    /// How the line is shared. Grants count IP packets without framing: a line's capacity for them is that for full packets.
    pub settings: PerDirection<RouterSettings>,
}

/// From some moment on a line has another rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateChange {
    /// When.
    pub at: Instant,
    /// Bits on the wire.
    pub rate: Rate,
}

impl Element for RouterLines {
    fn describe(&self) -> String {
        let granted = self.settings.forward.utilization;
        format!("flow router of {}, of which {granted} is granted", each_way(&self.rate))
    }

    fn is_random(&self) -> bool {
        false
    }

    fn granted_alone(&self, direction: Direction) -> Option<Option<Rate>> {
        Some(self.settings[direction].granted_alone(self.rate[direction]))
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        let changes = Direction::BOTH.into_iter().any(|way| !self.changes[way].is_empty());
        changes.then(|| "rates after the first are left out of the prediction".to_owned())
    }

    /// None: who waits for how long goes by what was granted to whom.
    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn validate(&self) -> Result<(), Fault> {
        for direction in Direction::BOTH {
            let falls = self.changes[direction].windows(2).find(|pair| pair[1].at <= pair[0].at);
            if let Some([previous, found]) = falls {
                let reason = format!("expected rising times, found {} after {}", found.at, previous.at);
                return Err(Fault { key: format!("{direction}.changes"), reason });
            }
        }
        Ok(())
    }

    fn warnings(&self, direction: Direction) -> Vec<String> {
        self.queue[direction].warning().into_iter().collect()
    }

    fn line(&self, direction: Direction) -> Option<Line> {
        Some(Line {
            rate: self.rate[direction],
            queue: self.queue[direction],
            mark: MarkThreshold::Never,
            overhead: self.overhead,
            min_packet: self.min_packet,
            is_shared: false,
        })
    }

    /// Where nobody asks it for a rate: all packets stand in its one queue for best effort.
    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        self.queue[direction].held(self.rate[direction], inflow)
    }

    fn remove_queue_limit(&mut self) {
        self.queue = PerDirection::both(QueueLimit::Unlimited);
    }

    fn speed_up(&mut self, direction: Direction, factor: u64) {
        self.rate[direction] = faster(self.rate[direction], factor);
    }

    fn make_room(&mut self, direction: Direction, packets: u64, bytes: Bytes, _at_most: Duration) {
        self.queue[direction].make_room(packets, bytes);
    }
}

impl Declared for RouterLines {
    const NAMES: &'static [&'static str] = &["flow-router"];
    const PRINCIPAL: Option<&'static str> = Some("rate");
    const DOCS: &'static str = r#"| `flow-router` | **`rate`** ↔ | a link behind a router that grants [explicit rates](explicit-rate.md); every bit on the wire counted | required |
| | `queue` ↔ | what each flow's queue may hold, and the one of all ordinary packets | `unlimited` |
| | `overhead`, `min_packet` | as of a link; grants count IP packets, and take the framing of full ones off | `0 B` |
| | `changes` ↔ | other rates later: `[{ at = "5 s", rate = "10 Mbit/s" }]` | none |
| | `utilization` | share of the line that is granted at most | `98 %` |
| | `newcomers` | of that, kept free for new flows | `2 %` |
| | `guaranteed` ↔ | share of the line that guarantees may have together | `90 %` |
| | `preemption` ↔ | highest preemption priority that is accepted; who asks for more has this one | 63 |
| | `classes` | weights of Available Rates from a preemption priority on: `[{ from = 48, weight = 3 }]` | 1 for all |
| | `unit` | what the 16-bit rate counts: `kbit/s`, `bit/s`, `cells/s` | `kbit/s` |
| | `police` | packets above what was granted are dropped | `true` |
| | `hold` | how long an unanswered cut is waited for; more than a round trip | `2 s` |
| | `push_interval` | how often a flow is told that it has too much | `200 ms` |
| | `available_timeout`, `maximum_timeout`, `guaranteed_timeout` | silence after which a flow is forgotten | `10 s`, `3 s`, `300 s` |
| | `flows` | flows that are kept at most | 4194304 |
| | `starts` | of these, flows at most that have asked and not shown that they got an answer: [made-up start packets](explicit-rate.md#the-flow-router) | 65536 |
| | `blind` | it does not know the protocol: a plain link | `false` |"#;

    /// One that is blind is a link: it does not know the protocol, and its signals pass unread.
    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let lines = RouterLines::from_keys(keys)?;
        if !keys.or("blind", false)? {
            return Ok(ElementKind::FlowRouter(Box::new(lines)));
        }
        let RouterLines { rate, changes, queue, overhead, min_packet, .. } = lines;
        if changes != PerDirection::default() {
            let reason = "a blind router is a plain link, whose rate does not change";
            return Err(keys.refuse("blind", reason.to_owned()));
        }
        let mark = PerDirection::both(MarkThreshold::Never);
        Ok(ElementKind::Link(Link { rate, queue, mark, aqm: PerDirection::default(), overhead, min_packet }))
    }

    fn draw(draws: &mut Draws) -> RouterLines {
        let changes = |draws: &mut Draws| {
            let mut at = Instant::ZERO;
            let later = (0..draws.below(4)).map(|_| {
                at += draws.microseconds(1..=5_000_000);
                RateChange { at, rate: draws.rate() }
            });
            later.collect::<Vec<_>>()
        };
        let settings = |draws: &mut Draws| RouterSettings {
            guaranteed: draws.share(),
            preemption: Priority::new(draws.between(0..=63) as u8).expect("a level"),
            police: draws.chance(50),
            hold: draws.microseconds(1_000..=10_000_000),
            push_interval: draws.microseconds(1_000..=1_000_000),
            available_timeout: draws.microseconds(10_000..=20_000_000),
            flows: draws.between(1..=1000) as u32,
            starts: draws.between(1..=1000) as u32,
            ..RouterSettings::default()
        };
        RouterLines {
            rate: draws.each_way(Draws::rate),
            changes: draws.each_way(changes),
            queue: draws.each_way(Draws::queue),
            overhead: draws.bytes(0..=40),
            min_packet: draws.bytes(0..=64),
            settings: draws.each_way(settings),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Holding(Box::new(FlowRouter::new(name.to_owned(), self, seed)))
    }
}

impl RouterLines {
    /// Reads all keys but `blind`.
    ///
    /// # Errors
    /// Those of `keys`: what is missing, and what is not as it should be.
    pub fn from_keys<K: Keys>(keys: &mut K) -> Result<RouterLines, K::Error> {
        Ok(RouterLines {
            rate: keys.each_way("rate", None)?,
            queue: keys.each_way_or("queue", QueueLimit::Unlimited, QueueLimit::Unlimited)?,
            overhead: keys.or("overhead", Bytes::ZERO)?,
            min_packet: keys.or("min_packet", Bytes::ZERO)?,
            changes: keys
                .each_way_or("changes", Changes(Vec::new()), Changes(Vec::new()))?
                .map(|changes| changes.0),
            settings: read_settings(keys)?,
        })
    }
}

fn read_settings<K: Keys>(keys: &mut K) -> Result<PerDirection<RouterSettings>, K::Error> {
    let rest = RouterSettings::default();
    let guaranteed = keys.each_way_or("guaranteed", rest.guaranteed, rest.guaranteed)?;
    let preemption = keys.each_way_or("preemption", rest.preemption, rest.preemption)?;
    let settings = RouterSettings {
        utilization: keys.or("utilization", rest.utilization)?,
        newcomers: keys.or("newcomers", rest.newcomers)?,
        guaranteed: rest.guaranteed,
        preemption: rest.preemption,
        unit: keys.or("unit", rest.unit)?,
        weights: keys.or("classes", Weights(rest.weights))?.0,
        police: keys.or("police", rest.police)?,
        hold: keys.or("hold", rest.hold)?,
        push_interval: keys.or("push_interval", rest.push_interval)?,
        available_timeout: keys.or("available_timeout", rest.available_timeout)?,
        maximum_timeout: keys.or("maximum_timeout", rest.maximum_timeout)?,
        guaranteed_timeout: keys.or("guaranteed_timeout", rest.guaranteed_timeout)?,
        flows: keys.or("flows", rest.flows)?,
        starts: keys.or("starts", rest.starts)?,
        packet: rest.packet,
    };
    if settings.utilization == Probability::ZERO {
        return Err(keys.refuse("utilization", "none of the line leaves nothing to grant".to_owned()));
    }
    if settings.newcomers == Probability::ONE {
        let reason = "all of the line for newcomers leaves nothing to grant to others";
        return Err(keys.refuse("newcomers", reason.to_owned()));
    }
    let utilization = settings.utilization;
    if let Some(guaranteed) = [guaranteed.forward, guaranteed.reverse]
        .into_iter()
        .find(|share| share.fraction() > utilization.fraction())
    {
        let reason = format!(
            "{guaranteed} of the line for guarantees is more than `utilization`, {utilization}, allows for all grants"
        );
        return Err(keys.refuse("guaranteed", reason));
    }
    for (key, time) in [("hold", settings.hold), ("push_interval", settings.push_interval)] {
        if time.is_zero() {
            return Err(keys.refuse(key, "expected more than no time at all".to_owned()));
        }
    }
    Ok(PerDirection::from_fn(|way| RouterSettings {
        guaranteed: guaranteed[way],
        preemption: preemption[way],
        ..settings.clone()
    }))
}

/// `classes`: from which preemption priority on which weight holds.
struct Weights([u8; 64]);

impl ReadValue for Weights {
    const EXPECTED: &'static str = "a list";
    fn read<S: Source>(source: &S) -> Result<Weights, S::Error> {
        let mut weights = RouterSettings::default().weights;
        let mut last = None;
        let classes = source.list(|class| {
            let read = |keys: &mut S::Keys| {
                let (from, weight) = (in_range(keys, "from", 0, 63)?, in_range(keys, "weight", 1, 255)?);
                if last.is_some_and(|last| from <= last) {
                    let reason = "classes are listed in rising order of priority";
                    return Err(keys.refuse("from", reason.to_owned()));
                }
                Ok((from, weight))
            };
            let (from, weight) = class.table(read).unwrap_or_else(|| Err(class.wrong_type("a table")))?;
            last = Some(from);
            weights[from as usize..].fill(u8::try_from(weight).expect("at most 255"));
            Ok(())
        });
        classes.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))?;
        Ok(Weights(weights))
    }
}

fn in_range<K: Keys>(keys: &mut K, key: &'static str, least: u32, most: u32) -> Result<u32, K::Error> {
    let number: u32 = keys.required(key)?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(keys.refuse(key, format!("expected a whole number from {least} to {most}, found {number}")))
}

/// Rates from later moments on.
#[derive(Clone)]
struct Changes(Vec<RateChange>);

impl ReadValue for Changes {
    const EXPECTED: &'static str = "a list such as `[{ at = \"5 s\", rate = \"10 Mbit/s\" }]`";
    fn read<S: Source>(source: &S) -> Result<Changes, S::Error> {
        let mut last = None;
        let changes = source.list(|change| {
            let read = |keys: &mut S::Keys| {
                let at = Instant::ZERO + keys.required::<Duration>("at")?;
                let rate = keys.required::<Rate>("rate")?;
                if last.is_some_and(|last| at <= last) {
                    return Err(keys.refuse("at", "changes are listed in rising order of time".to_owned()));
                }
                Ok(RateChange { at, rate })
            };
            let change = change.table(read).unwrap_or_else(|| Err(change.wrong_type("a table")))?;
            last = Some(change.at);
            Ok(change)
        });
        changes.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED))).map(Changes)
    }
}

impl ReadValue for Priority {
    const EXPECTED: &'static str = "a priority from 0 to 63";
    fn read<S: Source>(source: &S) -> Result<Priority, S::Error> {
        let level = source.integer().ok_or_else(|| source.wrong_type(Self::EXPECTED))?;
        u8::try_from(level)
            .ok()
            .and_then(Priority::new)
            .ok_or_else(|| source.refuse(format!("expected {}, found {level}", Self::EXPECTED)))
    }
}

impl ReadValue for RateUnit {
    const EXPECTED: &'static str = "one of `kbit/s`, `bit/s`, `cells/s`";
    fn read<S: Source>(source: &S) -> Result<RateUnit, S::Error> {
        word(source, &RateUnit::ALL.map(|unit| (unit.name(), unit)))
    }
}
