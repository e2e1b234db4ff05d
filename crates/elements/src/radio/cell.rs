//! The air of a hop that other stations use too: what is on it, who hears it, and what it was used for.

use super::ledger::{Done, Ledger};
use super::others::{HiddenFrom, OtherStations, Peer, Traffic};
use farpath_path::StationCounts;
use farpath_units::{Bytes, Duration, Instant};

/// One station that is not of the path.
#[derive(Debug, Clone)]
pub(crate) struct Other {
    pub channel: usize,
    /// The station that it calls.
    pub peer: usize,
    pub packet: Bytes,
    pub queue: Bytes,
    pub traffic: Traffic,
}

/// Somebody sends.
#[derive(Debug, Clone, Copy)]
struct Transmission {
    station: usize,
    from: Instant,
    until: Instant,
}

/// The stations on the air of one hop.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// The near one of the hop, the far one, and the others: rising.
    members: Vec<usize>,
    pub counts: Vec<StationCounts>,
    /// For each pair of members.
    hears: Vec<bool>,
    /// Until when each hears what makes it hold back.
    busy_until: Vec<Instant>,
    on_air: Vec<Transmission>,
    /// The longest that anybody has sent without a pause.
    longest: Duration,
    /// Since when calls and exchanges are under way.
    open: Vec<(usize, Instant)>,
    /// What is over, and not yet accounted for.
    done: Vec<Done>,
}

/// A station on the air of a hop, with the group of others that it is of.
struct Member<'a> {
    station: usize,
    group: Option<(usize, &'a OtherStations)>,
}

impl Member<'_> {
    /// Whether the two hear each other.
    fn hears(&self, other: &Member<'_>, hop: usize) -> bool {
        match (self.group, other.group) {
            (None, None) => true,
            (Some((_, one)), Some((_, two))) => {
                one.hidden_from != HiddenFrom::All && two.hidden_from != HiddenFrom::All
            }
            (None, Some((_, others))) => Member::hears_of_path(others, self.station == hop),
            (Some((_, others)), None) => Member::hears_of_path(others, other.station == hop),
        }
    }

    /// The same, of others and the near station or the far one.
    fn hears_of_path(others: &OtherStations, near: bool) -> bool {
        match others.hidden_from {
            HiddenFrom::Nobody => true,
            HiddenFrom::Near => !near,
            HiddenFrom::Far => near,
            HiddenFrom::All => others.to == if near { Peer::Near } else { Peer::Far },
        }
    }
}

impl Cell {
    /// Of a hop and the groups of others on it, each with its number and the number of its first station.
    pub fn new(hop: usize, groups: &[(usize, usize, &OtherStations)]) -> Cell {
        let mut all = vec![Member { station: hop, group: None }, Member { station: hop + 1, group: None }];
        for &(number, first, others) in groups {
            let stations = first..first + others.stations as usize;
            all.extend(stations.map(|station| Member { station, group: Some((number, others)) }));
        }
        let count = |member: &Member<'_>| StationCounts {
            group: member.group.map(|(number, _)| number as u32),
            ..StationCounts::default()
        };
        Cell {
            hears: all.iter().flat_map(|a| all.iter().map(|b| a.hears(b, hop))).collect(),
            counts: all.iter().map(count).collect(),
            busy_until: vec![Instant::ZERO; all.len()],
            members: all.iter().map(|member| member.station).collect(),
            on_air: Vec::new(),
            longest: Duration::ZERO,
            open: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Those that are not of the path.
    pub fn others(&self) -> &[usize] {
        &self.members[2..]
    }

    fn index(&self, station: usize) -> usize {
        self.members.binary_search(&station).expect("it is on this air")
    }

    /// What is counted of a station.
    pub fn count(&mut self, station: usize) -> &mut StationCounts {
        let index = self.index(station);
        &mut self.counts[index]
    }

    /// All that hear this one, itself not.
    pub fn listeners(&self, speaker: usize) -> impl Iterator<Item = usize> {
        let row = self.index(speaker) * self.members.len();
        let hears = self.hears[row..row + self.members.len()].iter();
        self.members
            .iter()
            .zip(hears)
            .filter(move |&(&station, &hears)| hears && station != speaker)
            .map(|(&station, _)| station)
    }

    /// A station has heard something that makes it hold back until then.
    pub fn hold(&mut self, station: usize, until: Instant) {
        let index = self.index(station);
        self.busy_until[index] = self.busy_until[index].max(until);
    }

    /// Until when a station holds back.
    pub fn holds_until(&self, station: usize) -> Instant {
        self.busy_until[self.index(station)]
    }

    /// A station sends, or is about to.
    pub fn transmit(&mut self, now: Instant, station: usize, from: Instant, until: Instant) {
        self.longest = self.longest.max(until.saturating_since(from));
        let longest = self.longest;
        // What is being received of now began no earlier than the longest transmission takes.
        self.on_air.retain(|sent| sent.until + longest >= now);
        self.on_air.push(Transmission { station, from, until });
    }

    /// Whether the receiver of what `sender` sent hears anybody else meanwhile, or sends itself.
    pub fn is_hit(&self, receiver: usize, sender: usize, from: Instant, until: Instant) -> bool {
        let row = self.index(receiver) * self.members.len();
        self.on_air.iter().any(|sent| {
            sent.station != sender
                && sent.from < until
                && sent.until > from
                && self.hears[row + self.index(sent.station)]
        })
    }

    /// A station begins to call.
    pub fn open(&mut self, station: usize, since: Instant) {
        self.open.push((station, since));
    }

    /// What it began is over.
    pub fn close(
        &mut self,
        now: Instant,
        station: usize,
        done: impl IntoIterator<Item = Done>,
        ledger: &mut Ledger,
    ) {
        self.open.retain(|(open, _)| *open != station);
        self.done.extend(done);
        self.settle(now, ledger);
    }

    /// Accounts for all that nothing under way can change any more.
    pub fn settle(&mut self, now: Instant, ledger: &mut Ledger) {
        let limit = self.open.iter().map(|(_, since)| *since).min().unwrap_or(now);
        ledger.charge_overlapping(limit, &mut self.done);
    }
}
