//! Two endpoints over a pipe in virtual time: a delay each way, listed drops, or a hostile path.

use farpath_tcp::config::EcnMode;
use farpath_tcp::{Config, Connection, Ecn, Endpoint, Flags, Segment, Seq};
use farpath_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A small generator, so that a path is a function of its seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn per_cent(&mut self, chance: u8) -> bool {
        self.below(100) < u64::from(chance)
    }
}

/// What the path does to a segment beside delaying it; chances in per cent.
#[derive(Debug, Clone, Default)]
pub struct Hostility {
    pub loss: u8,
    pub duplication: u8,
    /// Chance that a segment is held for up to ten times the delay.
    pub reordering: u8,
    /// Chance that an ECN-capable segment is marked CE.
    pub marks: u8,
    pub seed: u64,
}

/// What an end does with its connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Program {
    pub writes: u64,
    /// Bytes read each time that it looks, and how long until it looks again; `None` reads at once.
    pub reads: Option<(u64, Duration)>,
}

/// A segment that was sent: when, by which end (0 connects, 1 listens), and what.
pub type Sent = (Instant, usize, Segment);

pub struct Pipe {
    pub ends: [Connection; 2],
    pub programs: [Program; 2],
    pub read: [u64; 2],
    ecn: [EcnMode; 2],
    unwritten: [u64; 2],
    pub now: Instant,
    delay: Duration,
    hostility: Hostility,
    dice: Dice,
    /// Data segments of end 0, counted from 1, that are lost.
    pub drops: Vec<u64>,
    data_sent: u64,
    in_flight: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    carried: Vec<Segment>,
    next_look: [Instant; 2],
    pub log: Vec<Sent>,
}

pub const ISNS: [Seq; 2] = [Seq(u32::MAX - 5000), Seq(u32::MAX - 300)];

impl Pipe {
    pub fn new(configs: [&Config; 2], programs: [Program; 2], delay: Duration) -> Pipe {
        Pipe {
            ends: [Connection::connect(configs[0], ISNS[0]), Connection::listen(configs[1], ISNS[1])],
            programs,
            read: [0; 2],
            ecn: configs.map(|config| config.send.ecn),
            unwritten: programs.map(|program| program.writes),
            now: Instant::ZERO,
            delay,
            hostility: Hostility::default(),
            dice: Dice::new(0),
            drops: Vec::new(),
            data_sent: 0,
            in_flight: BinaryHeap::new(),
            carried: Vec::new(),
            next_look: [Instant::ZERO; 2],
            log: Vec::new(),
        }
    }

    pub fn hostile(mut self, hostility: &Hostility) -> Pipe {
        self.dice = Dice::new(hostility.seed);
        self.hostility = hostility.clone();
        self
    }

    pub fn dropping(mut self, drops: &[u64]) -> Pipe {
        self.drops = drops.to_vec();
        self
    }

    /// Segments with payload that end 0 has sent.
    pub fn data_count(&self) -> u64 {
        self.data_sent
    }

    /// Whether each end has read all that the other wrote.
    pub fn delivered(&self) -> bool {
        self.read == [self.programs[1].writes, self.programs[0].writes]
    }

    /// Runs until both ends are over or nothing more can happen, at most until `horizon`.
    pub fn run(&mut self, horizon: Instant) {
        self.settle();
        while let Some(next) = self.next_event().filter(|&next| next <= horizon) {
            assert!(next >= self.now, "due at {next}, which is before {}", self.now);
            self.now = next;
            while let Some(&Reverse((at, number, to))) = self.in_flight.peek()
                && at <= next
            {
                self.in_flight.pop();
                let segment = self.carried[number as usize];
                self.ends[to].on_segment(next, &segment);
                self.check(to);
                self.settle();
            }
            for end in &mut self.ends {
                end.on_timer(next);
            }
            self.settle();
            for (n, end) in self.ends.iter().enumerate() {
                assert!(
                    end.next_due().is_none_or(|due| due > next),
                    "end {n} is due again at once, at {next}"
                );
            }
            if self.ends.iter().all(|end| end.is_over() && end.readable() == 0) {
                return;
            }
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.in_flight.peek().map(|&Reverse((at, ..))| at);
        let looks = (0..2).filter(|&n| self.programs[n].reads.is_some() && self.ends[n].readable() > 0);
        let look = looks.map(|n| self.next_look[n].max(self.now)).min();
        self.ends.iter().map(Endpoint::next_due).chain([arrival, look]).flatten().min()
    }

    /// Programs and endpoints do what they can at this instant.
    fn settle(&mut self) {
        for _ in 0..1000 {
            let mut quiet = true;
            for n in 0..2 {
                quiet &= !self.run_program(n);
                while let Some(segment) = self.ends[n].poll_segment(self.now) {
                    self.check_sent(n, &segment);
                    self.carry(n, segment);
                    quiet = false;
                }
            }
            if quiet {
                return;
            }
        }
        panic!("an endpoint that never stops at {}", self.now);
    }

    fn run_program(&mut self, n: usize) -> bool {
        let end = &mut self.ends[n];
        let mut acted = false;
        if self.unwritten[n] > 0 {
            let taken = end.write(self.unwritten[n]);
            self.unwritten[n] -= taken;
            acted |= taken > 0;
        }
        let taken = match self.programs[n].reads {
            None => end.read(u64::MAX),
            Some(_) if self.now < self.next_look[n] => 0,
            Some((bytes, pause)) => {
                let taken = end.read(bytes);
                if taken > 0 {
                    self.next_look[n] = self.now + pause;
                }
                taken
            }
        };
        self.read[n] += taken;
        // A server with nothing to say leaves when its client does.
        let leaves = n == 0 || self.programs[n].writes > 0 || end.receiver().finished();
        if self.unwritten[n] == 0 && leaves {
            end.close();
        }
        acted || taken > 0
    }

    fn carry(&mut self, from: usize, mut segment: Segment) {
        self.log.push((self.now, from, segment));
        assert!(self.log.len() < 200_000, "a transfer that never ends");
        if from == 0 && segment.len > 0 {
            self.data_sent += 1;
            if self.drops.contains(&self.data_sent) {
                return;
            }
        }
        let Hostility { loss, duplication, reordering, marks, .. } = self.hostility;
        if self.dice.per_cent(loss) {
            return;
        }
        if marks > 0 && self.dice.per_cent(marks) {
            segment.ecn.mark();
        }
        let copies = 1 + usize::from(self.dice.per_cent(duplication));
        for _ in 0..copies {
            let held = if self.dice.per_cent(reordering) {
                Duration::from_nanos(self.dice.next() % (1 + 10 * self.delay.as_nanos()))
            } else {
                Duration::ZERO
            };
            let number = self.carried.len() as u64;
            self.carried.push(segment);
            self.in_flight.push(Reverse((self.now + self.delay + held, number, 1 - from)));
        }
    }

    /// Nothing is acknowledged that was not received, and nothing is received that was not written.
    fn check(&self, n: usize) {
        let (end, peer) = (&self.ends[n], &self.ends[1 - n]);
        let arrived = end.receiver().next();
        assert!(arrived <= 2 + self.programs[1 - n].writes, "end {n} received up to {arrived}");
        assert!(end.sender().acked() <= peer.receiver().next(), "end {n} was told of more than arrived");
    }

    fn check_sent(&self, n: usize, segment: &Segment) {
        let next = self.ends[n].receiver().next();
        if segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) {
            assert_eq!(segment.ack, ISNS[1 - n].advanced_by(next), "end {n} acknowledges what it has");
        }
        assert!(u64::from(segment.len) <= self.ends[n].sender().smss());
        self.check_ecn(n, segment);
    }

    /// RFC 3168 §6.1.1, §6.1.4: only data is ECN-capable, and only where both ends have asked and agreed; no queue
    /// has marked it yet.
    fn check_ecn(&self, n: usize, segment: &Segment) {
        if segment.ecn == Ecn::NotEct {
            assert!(
                segment.flags.contains(Flags::SYN) || !segment.flags.contains(Flags::CWR),
                "end {n}: CWR"
            );
            return;
        }
        let modes = [self.ecn[n], self.ecn[1 - n]];
        assert!(!modes.contains(&EcnMode::Off) && self.ecn[0] == EcnMode::Request, "end {n} of {modes:?}");
        assert_eq!(segment.ecn, Ecn::Ect0, "end {n}");
        assert!(segment.len > 0 && !segment.flags.contains(Flags::SYN), "end {n}");
        // New data is the last that was sent.
        let sender = self.ends[n].sender();
        let fin = u64::from(segment.flags.contains(Flags::FIN));
        let end = 1 + sender.acked() + sender.flight_size();
        assert_eq!(
            segment.seq.advanced_by(u64::from(segment.len) + fin),
            ISNS[n].advanced_by(end),
            "end {n}: sent again"
        );
    }
}
