//! Loss by a list of packet numbers, or of times.

use super::lost_if;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element, Fault};
use crate::keys::{self, Keys, ReadValue, Source};
use crate::over_time::Changes;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, PacketCount};
use core::fmt;
use farpath_path::{Direction, DropCause, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant};
use std::collections::{BTreeSet, VecDeque};

/// Drops the counted packets with these numbers, counted from 1 in each direction, and for each of these times the first counted packet that
/// comes then or later; no others.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// In rising order.
    pub packets: PerDirection<Vec<u64>>,
    /// Since the start of the run, in rising order.
    pub times: PerDirection<Vec<Duration>>,
    /// What is counted.
    pub count: PacketCount,
}

impl Element for Listed {
    fn describe(&self) -> String {
        fn list<T: ToString>(entries: &[T]) -> String {
            match entries.len() {
                0 => "none".to_owned(),
                1..=5 => entries.iter().map(T::to_string).collect::<Vec<_>>().join(", "),
                n => format!("{n} of them"),
            }
        }
        let count = self.count.words();
        if Direction::BOTH.iter().any(|&way| !self.times[way].is_empty()) {
            let times = PerDirection::from_fn(|way| list(&self.times[way]));
            return format!("loss of packets{count} at listed times: {}", each_way(&times));
        }
        let packets = PerDirection::from_fn(|way| list(&self.packets[way]));
        format!("loss of listed packets{count}: {}", each_way(&packets))
    }

    fn is_random(&self) -> bool {
        false
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        Some("listed drops are left out of the prediction".to_owned())
    }

    fn delays(&self, _direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        Vec::new()
    }

    fn validate(&self) -> Result<(), Fault> {
        for direction in Direction::BOTH {
            if let Some(reason) = unordered(&self.packets[direction]) {
                return Err(Fault { key: format!("{direction}.packets"), reason });
            }
            if let Some(reason) = unordered(&self.times[direction]) {
                return Err(Fault { key: format!("{direction}.times"), reason });
            }
        }
        Ok(())
    }

    fn listed_losses(&self, direction: Direction) -> &[u64] {
        &self.packets[direction]
    }

    fn entries(&self) -> usize {
        Direction::BOTH.map(|way| self.packets[way].len() + self.times[way].len()).iter().sum()
    }

    fn remove_loss(&mut self) {
        self.packets = PerDirection::default();
        self.times = PerDirection::default();
    }
}

impl Declared for Listed {
    const NAMES: &'static [&'static str] = &["listed-loss"];
    const PRINCIPAL: Option<&'static str> = Some("packets");
    const DOCS: &'static str = r#"| `listed-loss` | **`packets`** ↔ | numbers of the lost packets, from 1, in rising order; or the name of a file with a number a line | required, or `times` |
| | `times` ↔ | in place of numbers: the first packet that comes at each of these times or later, such as `["5 s", "5.2 s"]`; or the name of a file with a time a line, in seconds or with its unit | none |
| | `count` | `all` or `data` | `all` |"#;

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        let (packets, times) = if keys.has("times") {
            if keys.has("packets") {
                return Err(
                    keys.refuse("times", "expected either `packets` or `times`, found both".to_owned())
                );
            }
            (PerDirection::default(), keys.each_way("times", Some(Rising(Vec::new())))?.map(|list| list.0))
        } else {
            (keys.each_way("packets", Some(Rising(Vec::new())))?.map(|list| list.0), PerDirection::default())
        };
        Ok(ElementKind::Listed(Listed { packets, times, count: keys.or("count", PacketCount::All)? }))
    }

    fn draw(draws: &mut Draws) -> Listed {
        let numbers = |draws: &mut Draws| -> Vec<u64> {
            let some: BTreeSet<u64> = (0..draws.below(8)).map(|_| 1 + draws.below(59)).collect();
            some.into_iter().collect()
        };
        if draws.chance(30) {
            let times = |draws: &mut Draws| {
                numbers(draws).into_iter().map(|n| Duration::from_millis(100 * n)).collect()
            };
            let times = draws.each_way(times);
            return Listed { packets: PerDirection::default(), times, count: draws.packet_count() };
        }
        Listed {
            packets: draws.each_way(numbers),
            times: PerDirection::default(),
            count: draws.packet_count(),
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        let lists = PerDirection::from_fn(|way| List {
            packets: self.packets[way].clone().into(),
            times: self.times[way].clone().into(),
            seen: 0,
        });
        Built::Transit(Box::new(ListedProcess { lists, count: self.count }))
    }
}

/// What is listed.
trait Entry: Ord + Copy + fmt::Display + ReadValue {
    /// A list of it, or a file, for whoever gave neither.
    const LIST: &'static str;
    /// The least that a list begins with.
    const FIRST: Self;
    /// Of a line of a file.
    fn of_line(text: &str) -> Option<Self>;
    /// Entries, and one of them in a file, in words.
    const MANY: &'static str;
    const ONE: &'static str;
}

impl Entry for u64 {
    const LIST: &'static str =
        "a list of packet numbers such as `[40, 41]`, or the name of a file with a number a line";
    const FIRST: u64 = 1;
    const MANY: &'static str = "packets";
    const ONE: &'static str = "a whole number";
    fn of_line(text: &str) -> Option<u64> {
        text.parse().ok()
    }
}

impl Entry for Duration {
    const LIST: &'static str =
        "a list of times such as `[\"5 s\", \"5.2 s\"]`, or the name of a file with a time a line";
    const FIRST: Duration = Duration::ZERO;
    const MANY: &'static str = "times";
    const ONE: &'static str = "a time in seconds, or with its unit,";
    fn of_line(text: &str) -> Option<Duration> {
        Changes::of_text(text)
    }
}

/// Entries of a list in rising order, each once.
#[derive(Clone)]
struct Rising<T>(Vec<T>);

/// Why entries are in no order, if they are not.
fn unordered<T: Entry>(entries: &[T]) -> Option<String> {
    if entries.first().is_some_and(|first| *first < T::FIRST) {
        return Some(format!("{} are counted from {}", T::MANY, T::FIRST));
    }
    let fallen = entries.windows(2).find(|pair| pair[1] <= pair[0])?;
    Some(format!(
        "{} comes after {}; {} are listed in rising order, each once",
        fallen[1],
        fallen[0],
        T::MANY
    ))
}

impl<T: Entry> ReadValue for Rising<T> {
    const EXPECTED: &'static str = T::LIST;
    fn read<S: Source>(source: &S) -> Result<Rising<T>, S::Error> {
        if let Some(read) = keys::by_file(source, lines_of) {
            return read.map(Rising);
        }
        let mut entries: Vec<T> = Vec::new();
        let read = source.list(|entry| {
            entries.push(T::read(entry)?);
            let last = entries.len().saturating_sub(2);
            unordered(&entries[last..]).map_or(Ok(()), |reason| Err(entry.refuse(reason)))
        });
        read.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))?;
        Ok(Rising(entries))
    }
}

/// The entries of a file, one a line.
fn lines_of<T: Entry>(text: &str) -> Result<Vec<T>, String> {
    let mut entries: Vec<T> = Vec::new();
    for (line, found) in keys::lines(text) {
        let last = entries.last().copied();
        let entry = T::of_line(found).filter(|entry| last.map_or(*entry >= T::FIRST, |last| *entry > last));
        entries.push(entry.ok_or_else(|| {
            let least = last.map_or(format!("from {} on", T::FIRST), |last| format!("above {last}"));
            keys::wrong_line(line, found, &format!("{} {least}", T::ONE))
        })?);
    }
    Ok(entries)
}

#[derive(Debug)]
struct ListedProcess {
    lists: PerDirection<List>,
    count: PacketCount,
}

/// What has not come yet of what is listed, in rising order.
#[derive(Debug)]
struct List {
    packets: VecDeque<u64>,
    times: VecDeque<Duration>,
    seen: u64,
}

impl Transit for ListedProcess {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        if !self.count.counts(packet) {
            return Fate::Depart(now);
        }
        let list = &mut self.lists[direction];
        list.seen += 1;
        let lost = take_if(&mut list.packets, |packet| *packet == list.seen)
            || take_if(&mut list.times, |time| *time <= now.since_start());
        lost_if(lost, DropCause::Loss, now)
    }
}

/// Takes the first entry if it is so.
fn take_if<T>(entries: &mut VecDeque<T>, is_so: impl FnOnce(&T) -> bool) -> bool {
    entries.front().is_some_and(is_so) && entries.pop_front().is_some()
}
