//! Two ends and what is between them: a delay, a line, losses, and routers as functions.

use crate::{Datagram, Driver, DriverSettings};
use farpath_tcp::config::RepairTimer;
use farpath_tcp::{Config, Connection, Endpoint, Seq};
use farpath_tia1039::QosMark;
use farpath_units::{Bytes, Duration, Instant, Rate};
use std::collections::BTreeMap;

/// Where a datagram comes from: the client, which opens and sends data, is 0.
pub type From = usize;

/// Changes or drops a datagram on its way; what it gives goes on.
pub type Router = Box<dyn FnMut(Instant, From, Datagram) -> Vec<Datagram>>;

pub struct Wire {
    pub ends: [Connection; 2],
    pub drivers: [Option<Driver>; 2],
    pub router: Router,
    pub now: Instant,
    /// What left each end, and when.
    pub sent: Vec<(Instant, From, Datagram)>,
    delay: Duration,
    line: Option<(Rate, Duration)>,
    free_at: Instant,
    under_way: BTreeMap<(Instant, u64), (From, Datagram)>,
    number: u64,
    to_write: u64,
    pub read: u64,
}

pub fn mbit(megabit_per_s: u64) -> Rate {
    Rate::from_bit_per_s(megabit_per_s * 1_000_000).expect("above zero")
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A stack with buffers that are no limit.
pub fn stack() -> Config {
    let mut stack = Config::default();
    stack.receive.buffer = Bytes(64 << 20);
    stack.receive.ack_delay = ms(40);
    stack.congestion.initial_window = 10;
    stack.recovery.sack = true;
    stack.recovery.rack = true;
    stack.recovery.tail_loss_probe = true;
    stack.recovery.repair_timer = RepairTimer::FirstSegment;
    stack.send.window_scaling = true;
    stack.send.timestamps = true;
    stack.rto.min = ms(200);
    stack
}

pub fn wants(megabit_per_s: u64) -> DriverSettings {
    DriverSettings { early_window: Some(Bytes(64 << 20)), ..DriverSettings::new(mbit(megabit_per_s)) }
}

/// A capable router that has so much for either way.
pub fn grants(megabit_per_s: u64) -> Router {
    Box::new(move |_, _, datagram| vec![lowered(datagram, megabit_per_s)])
}

/// What a capable router makes of a datagram.
pub fn lowered(mut datagram: Datagram, megabit_per_s: u64) -> Datagram {
    let unit = farpath_tia1039::RateUnit::KbitPerS;
    let limit = unit.encode(megabit_per_s * 1_000_000, farpath_tia1039::Rounding::Down);
    for structure in datagram.structures.iter_mut().flat_map(|structures| structures.iter_mut()) {
        if structure.message.asks() {
            if structure.available.units() > limit.units() {
                structure.available = limit;
            }
            *structure = structure.marked();
        }
    }
    datagram
}

/// Drops a share of what the client sends, always the same for one seed; never the handshake.
pub fn losing(per_mille: u64, seed: u64, mut inner: Router) -> Router {
    let mut state = seed;
    Box::new(move |now, from, datagram| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lost = from == 0 && datagram.segment.len > 0 && (state >> 33) % 1000 < per_mille;
        if lost { Vec::new() } else { inner(now, from, datagram) }
    })
}

impl Wire {
    pub fn new(size: u64, settings: [Option<DriverSettings>; 2], delay: Duration, router: Router) -> Wire {
        let mut ends = [Connection::connect(&stack(), Seq(1)), Connection::listen(&stack(), Seq(77))];
        let [client, server] = settings;
        let drivers = [
            client.map(|settings| Driver::new(&settings, &mut ends[0])),
            server.map(|settings| Driver::new(&settings, &mut ends[1])),
        ];
        Wire {
            ends,
            drivers,
            router,
            now: Instant::ZERO,
            sent: Vec::new(),
            delay,
            line: None,
            free_at: Instant::ZERO,
            under_way: BTreeMap::new(),
            number: 0,
            to_write: size,
            read: 0,
        }
    }

    /// What the client sends goes over a line of this rate, whose queue holds so much time.
    pub fn over(mut self, line: Rate, queue: Duration) -> Wire {
        self.line = Some((line, queue));
        self
    }

    /// Lets things happen until `until`.
    pub fn run(&mut self, until: Instant) -> &mut Wire {
        loop {
            self.serve();
            let due = [self.due(0), self.due(1)].into_iter().flatten().min();
            let arrival = self.under_way.keys().next().map(|(at, _)| *at);
            let Some(next) = [due, arrival].into_iter().flatten().min().filter(|&next| next <= until) else {
                self.now = until;
                return self;
            };
            self.now = self.now.max(next);
            while let Some((&key, _)) = self.under_way.iter().next().filter(|((at, _), _)| *at <= self.now) {
                let (from, datagram) = self.under_way.remove(&key).expect("it is there");
                self.deliver(1 - from, &datagram);
            }
            for end in [0, 1] {
                if self.due(end).is_some_and(|due| due <= self.now) {
                    match &mut self.drivers[end] {
                        Some(driver) => driver.on_timer(&mut self.ends[end], self.now),
                        None => self.ends[end].on_timer(self.now),
                    }
                }
            }
        }
    }

    fn due(&self, end: usize) -> Option<Instant> {
        match &self.drivers[end] {
            Some(driver) => driver.next_due(&self.ends[end]),
            None => self.ends[end].next_due(),
        }
    }

    pub fn deliver(&mut self, end: usize, datagram: &Datagram) {
        match &mut self.drivers[end] {
            Some(driver) => driver.on_datagram(&mut self.ends[end], self.now, datagram),
            // A stock peer: what stands behind a SYN's header is not for it, and the segment knows nothing of it.
            None => self.ends[end].on_segment(self.now, &datagram.segment),
        }
    }

    fn serve(&mut self) {
        self.to_write -= self.ends[0].write(self.to_write);
        self.read += self.ends[1].read(u64::MAX);
        for end in [0, 1] {
            loop {
                let datagram = match &mut self.drivers[end] {
                    Some(driver) => driver.poll(&mut self.ends[end], self.now),
                    None => self.ends[end].poll_segment(self.now).map(Datagram::plain),
                };
                let Some(datagram) = datagram else { break };
                self.sent.push((self.now, end, datagram));
                for datagram in (self.router)(self.now, end, datagram) {
                    self.send(end, datagram);
                }
            }
        }
    }

    fn send(&mut self, from: From, datagram: Datagram) {
        let mut at = self.now;
        if let Some((line, queue)) = self.line.filter(|_| from == 0) {
            if self.free_at > at + queue {
                return;
            }
            self.free_at = self.free_at.max(at) + line.time_to_send(size(&datagram));
            at = self.free_at;
        }
        self.number += 1;
        self.under_way.insert((at + self.delay, self.number), (from, datagram));
    }

    /// Data that left the client by a grant.
    pub fn sent_by_grant(&self) -> impl Iterator<Item = &(Instant, From, Datagram)> {
        self.sent.iter().filter(|(_, from, d)| *from == 0 && d.mark == QosMark::Flow && d.segment.len > 0)
    }

    /// IP bits of data per second that left the client between two times.
    pub fn rate_between(&self, begin: Instant, end: Instant) -> f64 {
        let sent = self
            .sent
            .iter()
            .filter(|(at, from, d)| (begin..end).contains(at) && *from == 0 && d.segment.len > 0);
        let bytes: u64 = sent.map(|(_, _, datagram)| size(datagram).0).sum();
        bytes as f64 * 8.0 / (end - begin).as_secs_f64()
    }
}

pub fn size(datagram: &Datagram) -> Bytes {
    let structures = datagram.structures.map_or(0, |structures| structures.encoded_len() as u64);
    datagram.segment.ipv4_size() + Bytes(structures)
}

pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}
