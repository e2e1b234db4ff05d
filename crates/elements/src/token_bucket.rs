//! Policers and shapers.

use crate::draw::Draws;
use crate::element::{Built, Declared, DelayKind, DelayPart, DelayTime, Element, Fault, Inflow};
use crate::keys::{self, Keys, ReadValue, Source};
use crate::line::{Line, faster};
use crate::waiting::Waiting;
use crate::words::each_way;
use crate::{ElementKind, ExplicitRatePacket, MarkThreshold, QueueLimit};
use farpath_path::{Direction, DropCause, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Bytes, Duration, Instant, Rate};

/// What becomes of a packet for which there are no tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// It is dropped: a policer.
    Drop,
    /// It waits for its tokens: a shaper.
    Wait,
}

impl Excess {
    const WORDS: [(&'static str, Excess); 2] = [("drop", Excess::Drop), ("wait", Excess::Wait)];
}

impl ReadValue for Excess {
    const EXPECTED: &'static str = "`drop` or `wait`";
    fn read<S: Source>(source: &S) -> Result<Excess, S::Error> {
        keys::word(source, &Excess::WORDS)
    }
}

/// A token bucket: tokens come at `rate`, `burst` of them are kept, and an IP packet takes its length. A packet for which there are
/// tokens passes at once, whatever the rate of the line before it.
///
/// The bucket is full at the start. It is kept as the time at which it will be full again, which is the virtual scheduling algorithm of
/// ITU-T I.371 annex A: exact, and without a timer.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenBucket {
    /// Bits of IP packets, in the long run.
    pub rate: PerDirection<Rate>,
    /// What passes at once after a pause.
    pub burst: PerDirection<Bytes>,
    /// What becomes of the rest.
    pub excess: Excess,
    /// What waits at the most, where it waits.
    pub queue: PerDirection<QueueLimit>,
}

impl Element for TokenBucket {
    fn describe(&self) -> String {
        let TokenBucket { rate, burst, excess, queue } = self;
        let what = match excess {
            Excess::Drop => "policer".to_owned(),
            Excess::Wait => format!("shaper with a queue {}", each_way(queue)),
        };
        format!("{what}: {}, bursts of {}", each_way(rate), each_way(burst))
    }

    fn is_random(&self) -> bool {
        false
    }

    fn left_out(&self, _data: Direction) -> Option<String> {
        let first = "the first burst of a shaper passes faster than the prediction has it";
        (self.excess == Excess::Wait).then(|| first.to_owned())
    }

    fn no_model(&self, _data: Direction) -> Option<String> {
        (self.excess == Excess::Drop).then(|| "there is no model of what a policer drops".to_owned())
    }

    fn delays(&self, direction: Direction, _size: Bytes) -> Vec<DelayPart> {
        match self.excess {
            Excess::Drop => Vec::new(),
            Excess::Wait => {
                let limit = self.queue[direction].bytes(crate::element::FULL_PACKET);
                let full_s = limit
                    .map_or(f64::INFINITY, |limit| self.rate[direction].time_to_send(limit).as_secs_f64());
                let time = DelayTime::Varying { expected_s: None, full_s };
                vec![DelayPart { kind: DelayKind::Queue, time }]
            }
        }
    }

    fn validate(&self) -> Result<(), Fault> {
        let limited = Direction::BOTH.into_iter().find(|way| self.queue[*way] != QueueLimit::Unlimited);
        match (self.excess, limited) {
            (Excess::Drop, Some(_)) => {
                let reason = "a policer (`excess = \"drop\"`) has no queue".to_owned();
                Err(Fault { key: "queue".to_owned(), reason })
            }
            (Excess::Drop | Excess::Wait, _) => Ok(()),
        }
    }

    fn warnings(&self, direction: Direction) -> Vec<String> {
        let full = crate::element::FULL_PACKET;
        let small = self.excess == Excess::Drop && self.burst[direction] < full;
        let policer = small.then(|| {
            format!("a policer with a burst of {} passes no packet of {full}, ever", self.burst[direction])
        });
        policer.into_iter().chain(self.queue[direction].warning()).collect()
    }

    fn line(&self, direction: Direction) -> Option<Line> {
        Some(Line {
            rate: self.rate[direction],
            queue: self.queue[direction],
            mark: MarkThreshold::Never,
            overhead: Bytes::ZERO,
            min_packet: Bytes::ZERO,
            is_shared: false,
        })
    }

    fn lone_delay(&self, direction: Direction, size: Bytes) -> Duration {
        // What is longer than the bucket waits for the rest of its tokens.
        let missing = Bytes(size.0.saturating_sub(self.burst[direction].0));
        match self.excess {
            Excess::Wait if missing > Bytes::ZERO => self.rate[direction].time_to_send(missing),
            Excess::Drop | Excess::Wait => Duration::ZERO,
        }
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        match self.excess {
            Excess::Drop => Some(Bytes::ZERO),
            Excess::Wait => self.queue[direction]
                .bytes(crate::element::FULL_PACKET)
                .or_else(|| inflow.bytes_in(Duration::MAX)),
        }
    }

    fn remove_queue_limit(&mut self) {
        if self.excess == Excess::Wait {
            self.queue = PerDirection::both(QueueLimit::Unlimited);
        }
    }

    fn speed_up(&mut self, direction: Direction, factor: u64) {
        self.rate[direction] = faster(self.rate[direction], factor);
    }

    fn make_room(&mut self, direction: Direction, packets: u64, bytes: Bytes, _at_most: Duration) {
        match self.excess {
            Excess::Drop => self.burst[direction] = self.burst[direction].max(bytes),
            Excess::Wait => self.queue[direction].make_room(packets, bytes),
        }
    }
}

impl Declared for TokenBucket {
    const NAMES: &'static [&'static str] = &["token-bucket"];
    const PRINCIPAL: Option<&'static str> = Some("rate");
    const DOCS: &'static str = "\
| `token-bucket` | **`rate`** ↔ | tokens, in bits of IP packets | required |
| | `burst` ↔ | what passes at once after a pause, such as `15 kB` | required |
| | `excess` | `drop` (a policer) or `wait` (a shaper): what becomes of a packet without tokens | `drop` |
| | `queue` ↔ | of a shaper, as for `link` | `unlimited` |";

    fn read<K: Keys>(_name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        Ok(ElementKind::TokenBucket(TokenBucket {
            rate: keys.each_way("rate", None)?,
            burst: keys.each_way("burst", None)?,
            excess: keys.or("excess", Excess::Drop)?,
            queue: keys.each_way_or("queue", QueueLimit::Unlimited, QueueLimit::Unlimited)?,
        }))
    }

    fn draw(draws: &mut Draws) -> TokenBucket {
        let excess = draws.one_of(&[Excess::Drop, Excess::Wait]);
        let queue = match excess {
            Excess::Drop => PerDirection::both(QueueLimit::Unlimited),
            Excess::Wait => draws.each_way(Draws::queue),
        };
        TokenBucket {
            rate: draws.each_way(Draws::rate),
            burst: draws.each_way(|draws| draws.bytes(3000..=1_000_000)),
            excess,
            queue,
        }
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, _name: &str, _seed: u64) -> Built<P> {
        let bucket = |way| Bucket {
            rate: u128::from(self.rate[way].bit_per_s()),
            burst: work(self.burst[way]),
            full_at: 0,
            waiting: Waiting::new(self.queue[way]),
        };
        Built::Transit(Box::new(Buckets { excess: self.excess, buckets: PerDirection::from_fn(bucket) }))
    }
}

/// What a packet takes: nanoseconds at 1 bit/s.
fn work(size: Bytes) -> u128 {
    u128::from(size.0) * 8_000_000_000
}

#[derive(Debug)]
struct Buckets {
    excess: Excess,
    buckets: PerDirection<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    rate: u128,
    burst: u128,
    /// When it will be full if nothing takes tokens, in 1/rate of a nanosecond.
    full_at: u128,
    waiting: Waiting,
}

impl Transit for Buckets {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let bucket = &mut self.buckets[direction];
        let moment = u128::from(now.as_nanos()) * bucket.rate;
        let full_at = bucket.full_at.max(moment) + work(packet.size);
        // The bucket has `burst` less than full where the packet's tokens are there.
        let due = full_at.saturating_sub(bucket.burst);
        if due <= moment {
            bucket.full_at = full_at;
            return Fate::Depart(now);
        }
        if self.excess == Excess::Drop {
            return Fate::Drop(DropCause::Policing);
        }
        bucket.waiting.leave(now);
        if !bucket.waiting.has_room(packet.size) {
            return Fate::Drop(DropCause::QueueOverflow);
        }
        bucket.full_at = full_at;
        let due = Instant::from_nanos(u64::try_from(due.div_ceil(bucket.rate)).unwrap_or(u64::MAX));
        bucket.waiting.join(due, packet.size);
        Fate::Queue(due, due - now)
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        (self.excess == Excess::Wait).then(|| self.buckets[direction].waiting.bytes())
    }
}
