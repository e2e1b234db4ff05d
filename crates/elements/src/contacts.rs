//! Contacts: times at which a path is there, and the times between.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Fault, Inflow};
use crate::keys::{self, Keys, ReadValue, Source};
use crate::waiting::Waiting;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, QueueLimit};
use farpath_path::{Direction, DropCause, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant};

/// What becomes of a packet that comes between two contacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// It waits for the next contact.
    Hold,
    /// It is lost.
    Drop,
    /// It is lost, and who sent it is told: "network unreachable" (RFC 792). Simulated TCP does not listen, as if that message were lost.
    Refuse,
}

impl Outside {
    /// All of them.
    pub const ALL: [Outside; 3] = [Outside::Hold, Outside::Drop, Outside::Refuse];

    const WORDS: [(&'static str, Outside); 3] =
        [("hold", Outside::Hold), ("drop", Outside::Drop), ("refuse", Outside::Refuse)];

    /// What is lost because of it, and why; `None` where it waits.
    const fn drops(self) -> Option<DropCause> {
        match self {
            Outside::Hold => None,
            Outside::Drop => Some(DropCause::Outage),
            Outside::Refuse => Some(DropCause::Unreachable),
        }
    }

    /// One for property tests, with what is held.
    pub(crate) fn draw(draws: &mut Draws) -> (Outside, PerDirection<QueueLimit>) {
        let outside = draws.one_of(&Outside::ALL);
        let queue = match outside.drops() {
            None => draws.each_way(Draws::queue),
            Some(_) => PerDirection::both(QueueLimit::Unlimited),
        };
        (outside, queue)
    }
}

impl ReadValue for Outside {
    const EXPECTED: &'static str = "`hold`, `drop` or `refuse`";
    fn read<S: Source>(source: &S) -> Result<Outside, S::Error> {
        keys::word(source, &Outside::WORDS)
    }
}

/// One contact: from its first instant on, until just before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contact {
    /// Since the start of the run.
    pub from: Duration,
    /// Since the start of the run; not in it.
    pub to: Duration,
}

/// Times in which nothing passes an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// From the start of the run to the first contact.
    pub first: Duration,
    /// The longest from the end of a contact to the next.
    pub longest: Duration,
    /// What becomes of packets meanwhile.
    pub outside: Outside,
}

/// When there is contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContactPlan {
    /// At these times, in rising order, and never again.
    Listed(PerDirection<Vec<Contact>>),
    /// For the first `contact` of each `period`, which begins at `offset` and went on before.
    Periodic {
        /// From the beginning of one contact to that of the next.
        period: Duration,
        /// How long each lasts.
        contact: Duration,
        /// Where in the run one begins.
        offset: Duration,
    },
}

/// Packets pass during contacts. A packet that has come in during a contact passes, even where a line behind this element sends it later.
#[derive(Debug, Clone, PartialEq)]
pub struct Contacts {
    /// When there is contact.
    pub plan: ContactPlan,
    /// What becomes of packets between contacts.
    pub outside: Outside,
    /// What is held at the most.
    pub queue: PerDirection<QueueLimit>,
}

impl ContactPlan {
    /// The first moment from `now` on at which there is contact; `None` where there is none any more.
    pub fn next_contact(&self, now: Instant, direction: Direction) -> Option<Instant> {
        match self {
            ContactPlan::Listed(contacts) => {
                let contacts = &contacts[direction];
                let next = contacts.partition_point(|contact| contact.to <= now.since_start());
                let from = contacts.get(next)?.from;
                Some(now.max(Instant::ZERO + from))
            }
            ContactPlan::Periodic { period, contact, offset } => {
                let period = period.as_nanos();
                let into = (now.as_nanos() % period + period - offset.as_nanos() % period) % period;
                let wait = if into < contact.as_nanos() { 0 } else { period - into };
                Some(now + Duration::from_nanos(wait))
            }
        }
    }

    /// The contacts that are listed.
    pub fn listed(&self, direction: Direction) -> &[Contact] {
        match self {
            ContactPlan::Listed(contacts) => &contacts[direction],
            ContactPlan::Periodic { .. } => &[],
        }
    }

    /// The longest time without contact between two contacts, or before the first.
    pub fn longest_gap(&self, direction: Direction) -> Duration {
        match self {
            ContactPlan::Listed(contacts) => {
                let mut last = Duration::ZERO;
                let gaps = contacts[direction].iter().map(|contact| {
                    let gap = Duration::from_nanos(contact.from.as_nanos().saturating_sub(last.as_nanos()));
                    last = contact.to;
                    gap
                });
                gaps.max().unwrap_or(Duration::ZERO)
            }
            ContactPlan::Periodic { period, contact, .. } => *period - *contact,
        }
    }

    /// The mean wait of packets that come at any time; `None` where contacts end.
    fn mean_wait_s(&self) -> Option<f64> {
        match self {
            ContactPlan::Listed(_) => None,
            ContactPlan::Periodic { period, contact, .. } => {
                let gap = (*period - *contact).as_secs_f64();
                Some(gap * gap / (2.0 * period.as_secs_f64()))
            }
        }
    }
}

impl Element for Contacts {
    fn describe(&self) -> String {
        let when = match &self.plan {
            ContactPlan::Listed(contacts) => {
                let count = |contacts: &Vec<Contact>| match contacts.len() {
                    1 => "1 contact".to_owned(),
                    n => format!("{n} contacts"),
                };
                each_way(&PerDirection::from_fn(|way| count(&contacts[way])))
            }
            ContactPlan::Periodic { period, contact, .. } => {
                format!("contact for {contact} of every {period}")
            }
        };
        let outside = match self.outside {
            Outside::Hold => format!("packets wait for the next, in a queue {}", each_way(&self.queue)),
            Outside::Drop => "packets between are lost".to_owned(),
            Outside::Refuse => "packets between are lost, and their senders told".to_owned(),
        };
        format!("{when}; {outside}")
    }

    fn entries(&self) -> usize {
        match &self.plan {
            ContactPlan::Listed(contacts) => Direction::BOTH.map(|way| contacts[way].len()).iter().sum(),
            ContactPlan::Periodic { .. } => 0,
        }
    }

    fn is_random(&self) -> bool {
        false
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        None
    }

    fn no_model(&self, _data: Direction) -> Option<String> {
        let gap = Direction::BOTH.into_iter().map(|way| self.plan.longest_gap(way)).max()?;
        (!gap.is_zero()).then(|| format!("there is no model of gaps between contacts, of up to {gap} here"))
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        if self.outside.drops().is_some() {
            return Vec::new();
        }
        let full_s = self.plan.longest_gap(direction).as_secs_f64();
        let time = DelayTime::Varying { expected_s: self.plan.mean_wait_s(), full_s };
        vec![DelayPart { kind: DelayKind::Contact, time }]
    }

    fn gaps(&self, direction: Direction) -> Option<Gaps> {
        let first = self.plan.next_contact(Instant::ZERO, direction)?.since_start();
        let longest = match &self.plan {
            ContactPlan::Listed(contacts) => {
                let between =
                    contacts[direction].windows(2).map(|pair| pair[1].from.saturating_sub(pair[0].to));
                between.max().unwrap_or(Duration::ZERO)
            }
            ContactPlan::Periodic { period, contact, .. } => *period - *contact,
        };
        let gaps = Gaps { first, longest, outside: self.outside };
        (!first.is_zero() || !longest.is_zero()).then_some(gaps)
    }

    fn ends(&self, direction: Direction) -> Option<Duration> {
        self.plan.listed(direction).last().map(|contact| contact.to)
    }

    fn remove_gaps(&mut self) {
        let always = Duration::from_secs(1);
        self.plan = ContactPlan::Periodic { period: always, contact: always, offset: Duration::ZERO };
    }

    fn validate(&self) -> Result<(), Fault> {
        let refuse = |key: &str, reason: String| Err(Fault { key: key.to_owned(), reason });
        match &self.plan {
            ContactPlan::Listed(contacts) => {
                for direction in Direction::BOTH {
                    let mut last = Duration::ZERO;
                    for contact in &contacts[direction] {
                        if contact.to <= contact.from {
                            let reason =
                                format!("expected an end after {}, found {}", contact.from, contact.to);
                            return refuse("plan", reason);
                        }
                        if contact.from < last {
                            let reason = format!(
                                "expected contacts one behind the other, found one from {} on, before {last}, where the one before it ends",
                                contact.from
                            );
                            return refuse("plan", reason);
                        }
                        last = contact.to;
                    }
                    if contacts[direction].is_empty() {
                        return refuse("plan", format!("expected a contact, found none {direction}"));
                    }
                }
            }
            ContactPlan::Periodic { period, contact, .. } => {
                if contact.is_zero() || contact > period {
                    let reason = format!(
                        "expected more than nothing and at most the period of {period}, found {contact}"
                    );
                    return refuse("contact", reason);
                }
            }
        }
        match self.outside.drops() {
            Some(_) if self.queue != PerDirection::both(QueueLimit::Unlimited) => {
                refuse("queue", "nothing is held where packets between contacts are lost".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        match self.outside {
            Outside::Drop | Outside::Refuse => Some(Bytes::ZERO),
            Outside::Hold => self.queue[direction]
                .bytes(crate::element::FULL_PACKET)
                .or_else(|| inflow.bytes_in(self.plan.longest_gap(direction))),
        }
    }

    fn remove_queue_limit(&mut self) {
        self.queue = PerDirection::both(QueueLimit::Unlimited);
    }

    fn make_room(&mut self, direction: Direction, packets: u64, bytes: Bytes, _at_most: Duration) {
        if self.outside == Outside::Hold {
            self.queue[direction].make_room(packets, bytes);
        }
    }
}

impl Declared for Contacts {
    const NAMES: &'static [&'static str] = &["contacts"];
    const PRINCIPAL: Option<&'static str> = Some("contact");
    const DOCS: &'static str = "\
| `contacts` | **`contact`** | how long each contact lasts | required with `period` |
| | `period` | from the beginning of one contact to that of the next; or `plan` | |
| | `offset` | where in the run a contact begins | `0 s` |
| | `plan` ↔ | contacts one by one: a list such as `[{ from = \"0 s\", to = \"40 min\" }]`, or the name of a file of ION's (`a contact +0 +2400 1 2 125000`, of which the times are taken) | |
| | `outside` | what becomes of packets between contacts: `hold`, `drop`, or `refuse`: dropped, and an emulated sender is told that the network is unreachable (RFC 792, IPv4). Behind the last contact of a plan they are lost | `hold` |
| | `queue` ↔ | what is held at the most, as for `link` | `unlimited` |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let plan = keys.has("plan").then(|| keys.each_way::<Listed>("plan", None)).transpose()?;
        let (period, contact): (Option<Duration>, Option<Duration>) =
            (keys.optional("period")?, keys.optional("contact")?);
        let offset: Option<Duration> = keys.optional("offset")?;
        let plan = match (plan, period, contact) {
            (Some(listed), None, None) if offset.is_none() => {
                ContactPlan::Listed(listed.map(|listed| listed.0))
            }
            (Some(_), ..) => {
                return Err(
                    keys.refuse("plan", "`period`, `contact` and `offset` say the same otherwise".to_owned())
                );
            }
            (None, period, contact) => {
                let period = period.map_or_else(|| keys.required("period"), Ok)?;
                let contact = contact.map_or_else(|| keys.required("contact"), Ok)?;
                ContactPlan::Periodic { period, contact, offset: offset.unwrap_or(Duration::ZERO) }
            }
        };
        Ok(ElementKind::Contacts(Contacts {
            plan,
            outside: keys.or("outside", Outside::Hold)?,
            queue: keys.each_way_or("queue", QueueLimit::Unlimited, QueueLimit::Unlimited)?,
        }))
    }

    fn draw(draws: &mut Draws) -> Contacts {
        let plan = if draws.chance(50) {
            let contact = draws.microseconds(1..=10_000_000);
            let period = contact + draws.microseconds(0..=10_000_000);
            ContactPlan::Periodic { period, contact, offset: draws.microseconds(0..=10_000_000) }
        } else {
            ContactPlan::Listed(draws.each_way(|draws| {
                let mut at = Duration::ZERO;
                let mut contact = || {
                    let from = at + draws.microseconds(0..=1_000_000);
                    at = from + draws.microseconds(1..=10_000_000);
                    Contact { from, to: at }
                };
                vec![contact(), contact(), contact()]
            }))
        };
        let (outside, queue) = Outside::draw(draws);
        Contacts { plan, outside, queue }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        Built::Transit(Box::new(self.gate()))
    }
}

impl Contacts {
    pub(crate) fn gate(&self) -> Gate {
        let waiting = PerDirection::from_fn(|way| Waiting::new(self.queue[way]));
        Gate { plan: self.plan.clone(), outside: self.outside, waiting }
    }
}

#[derive(Debug)]
pub(crate) struct Gate {
    plan: ContactPlan,
    outside: Outside,
    waiting: PerDirection<Waiting>,
}

impl Transit for Gate {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let Some(contact) = self.plan.next_contact(now, direction) else {
            return Fate::Drop(self.outside.drops().unwrap_or(DropCause::Outage));
        };
        if contact == now {
            return Fate::Depart(now);
        }
        if let Some(cause) = self.outside.drops() {
            return Fate::Drop(cause);
        }
        let waiting = &mut self.waiting[direction];
        waiting.leave(now);
        if !waiting.has_room(packet.size) {
            return Fate::Drop(DropCause::QueueOverflow);
        }
        waiting.join(contact, packet.size);
        Fate::Queue(contact, contact - now)
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        Some(self.waiting[direction].bytes())
    }
}

/// Contacts one by one, from a list or a file.
#[derive(Clone)]
struct Listed(Vec<Contact>);

impl ReadValue for Listed {
    const EXPECTED: &'static str =
        "a list of contacts such as `[{ from = \"0 s\", to = \"40 min\" }]`, or the name of a contact plan";
    fn read<S: Source>(source: &S) -> Result<Listed, S::Error> {
        if let Some(read) = keys::by_file(source, parse_plan) {
            return read.map(Listed);
        }
        let contacts = source.list(|entry| {
            let contact =
                entry.table(|keys| Ok(Contact { from: keys.required("from")?, to: keys.required("to")? }));
            contact.unwrap_or_else(|| {
                Err(entry.wrong_type("a contact such as `{ from = \"0 s\", to = \"40 min\" }`"))
            })
        });
        contacts.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED))).map(Listed)
    }
}

/// Reads the contacts of a plan of ION's (`ionrc`): lines `a contact +FROM +TO NODE NODE RATE`, with times in seconds since the start.
/// Nodes and rates are left out; other commands are passed over.
///
/// # Errors
/// The line that is not as it should be.
pub fn parse_plan(text: &str) -> Result<Vec<Contact>, String> {
    let mut contacts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split_whitespace();
        if (words.next(), words.next()) != (Some("a"), Some("contact")) {
            continue;
        }
        let mut time = |what: &str| {
            let found = words.next().unwrap_or("nothing");
            let seconds = found.strip_prefix('+').and_then(|seconds| seconds.parse::<u32>().ok());
            seconds.map(|seconds| Duration::from_secs(u64::from(seconds))).ok_or_else(|| {
                format!("line {number}: expected the {what} of a contact in seconds since the start, such as `+2400`, found `{found}`")
            })
        };
        contacts.push(Contact { from: time("beginning")?, to: time("end")? });
    }
    contacts.sort_by_key(|contact| contact.from);
    if contacts.is_empty() {
        return Err("expected lines such as `a contact +0 +2400 1 2 125000`, found none".to_owned());
    }
    Ok(contacts)
}
