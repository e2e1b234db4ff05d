//! Loss by a list of packet numbers.

use super::lost_if;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element, Fault};
use crate::keys::{self, Keys, ReadValue, Source};
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, PacketCount};
use farpath_path::{Direction, DropCause, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Instant};
use std::collections::BTreeSet;

/// Drops the counted packets with these numbers, counted from 1 in each direction, and no others.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// In rising order.
    pub packets: PerDirection<Vec<u64>>,
    /// What is counted.
    pub count: PacketCount,
}

impl Element for Listed {
    fn describe(&self) -> String {
        let list = |packets: &[u64]| match packets.len() {
            0 => "none".to_owned(),
            1..=5 => packets.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            n => format!("{n} of them"),
        };
        let packets = PerDirection::from_fn(|way| list(&self.packets[way]));
        format!("loss of listed packets{}: {}", self.count.words(), each_way(&packets))
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
            let mut previous = 0;
            for &found in &self.packets[direction] {
                if found <= previous {
                    let reason = format!("expected rising numbers from 1 on, found {found} after {previous}");
                    return Err(Fault { key: format!("{direction}.packets"), reason });
                }
                previous = found;
            }
        }
        Ok(())
    }

    fn listed_losses(&self, direction: Direction) -> &[u64] {
        &self.packets[direction]
    }

    fn entries(&self) -> usize {
        Direction::BOTH.map(|way| self.packets[way].len()).iter().sum()
    }

    fn remove_loss(&mut self) {
        self.packets = PerDirection::default();
    }
}

impl Declared for Listed {
    const NAMES: &'static [&'static str] = &["listed-loss"];
    const PRINCIPAL: Option<&'static str> = Some("packets");
    const DOCS: &'static str = "\
| `listed-loss` | **`packets`** ↔ | numbers of the lost packets, from 1, in rising order; or the name of a file with a number a line | required |
| | `count` | `all` or `data` | `all` |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::Listed(Listed {
            packets: keys.each_way("packets", Some(PacketNumbers(Vec::new())))?.map(|list| list.0),
            count: keys.or("count", PacketCount::All)?,
        }))
    }

    fn draw(draws: &mut Draws) -> Listed {
        let numbers = |draws: &mut Draws| -> Vec<u64> {
            let some: BTreeSet<u64> = (0..draws.below(8)).map(|_| 1 + draws.below(59)).collect();
            some.into_iter().collect()
        };
        Listed { packets: draws.each_way(numbers), count: draws.packet_count() }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        let list = |packets| List { packets, next: 0, seen: 0 };
        Built::Transit(Box::new(ListedProcess { lists: self.packets.clone().map(list), count: self.count }))
    }
}

/// Numbers of packets, counted from 1, in rising order.
#[derive(Clone)]
struct PacketNumbers(Vec<u64>);

impl ReadValue for PacketNumbers {
    const EXPECTED: &'static str =
        "a list of packet numbers such as `[40, 41]`, or the name of a file with a number a line";
    fn read<S: Source>(source: &S) -> Result<PacketNumbers, S::Error> {
        if let Some(read) = keys::by_file(source, numbers_of) {
            return read.map(PacketNumbers);
        }
        let mut last = 0;
        let numbers = source.list(|entry| {
            let number = u64::read(entry)?;
            if number <= last {
                return Err(entry.refuse(if number == 0 {
                    "packets are counted from 1".to_owned()
                } else {
                    format!("{number} comes after {last}; packets are listed in rising order, each once")
                }));
            }
            last = number;
            Ok(number)
        });
        numbers.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED))).map(PacketNumbers)
    }
}

/// The numbers of a file, one a line.
fn numbers_of(text: &str) -> Result<Vec<u64>, String> {
    let mut numbers: Vec<u64> = Vec::new();
    for (line, found) in (1..).zip(text.lines()).map(|(line, text)| (line, text.trim())) {
        if found.is_empty() || found.starts_with('#') {
            continue;
        }
        let last = numbers.last().copied().unwrap_or(0);
        let number = found.parse().ok().filter(|number| *number > last);
        numbers.push(number.ok_or_else(|| {
            let shown: String = found.chars().take(40).collect();
            format!("line {line}: expected a whole number above {last}, found `{shown}`")
        })?);
    }
    Ok(numbers)
}

#[derive(Debug)]
struct ListedProcess {
    lists: PerDirection<List>,
    count: PacketCount,
}

#[derive(Debug)]
struct List {
    /// Rising, from 1 on.
    packets: Vec<u64>,
    /// The first of `packets` that has not come yet.
    next: usize,
    seen: u64,
}

impl Transit for ListedProcess {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        if !self.count.counts(packet) {
            return Fate::Depart(now);
        }
        let list = &mut self.lists[direction];
        list.seen += 1;
        let lost = list.packets.get(list.next) == Some(&list.seen);
        list.next += usize::from(lost);
        lost_if(lost, DropCause::Loss, now)
    }
}
