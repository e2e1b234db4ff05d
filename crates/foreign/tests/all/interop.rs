//! Our endpoint opposite somebody else's: smoltcp, packet by packet over a way with delay, in virtual time.

use farpath_foreign::Card;
use farpath_tcp::config::Config;
use farpath_tcp::wire::{self, IpFields};
use farpath_tcp::{Connection, Endpoint, Flags, Seq, pattern};
use farpath_units::{Duration, Instant};
use smoltcp::iface::{self, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 50_000;
const ISN: u32 = 1_000;
const ONE_WAY: Duration = Duration::from_millis(100);

/// Packets under way, and which of them (by number) get lost.
#[derive(Default)]
struct Way {
    packets: VecDeque<(Instant, Vec<u8>)>,
    /// When each left.
    sent: Vec<Instant>,
    lost: Vec<usize>,
}

impl Way {
    fn send(&mut self, now: Instant, packet: Vec<u8>) {
        if !self.lost.contains(&self.sent.len()) {
            self.packets.push_back((now + ONE_WAY, packet));
        }
        self.sent.push(now);
    }

    fn take(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.packets.front().filter(|(due, _)| *due <= now)?;
        self.packets.pop_front().map(|(_, packet)| packet)
    }
}

/// Both ends. `now` is in whole microseconds, as smoltcp's clock is.
struct Pair {
    now: Instant,
    ours: Connection,
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    to_them: Way,
    to_us: Way,
    /// What smoltcp's program has read, and has still to write.
    read: u64,
    to_write: u64,
    written: u64,
    established_by_them: Option<Instant>,
    /// What our program has read.
    taken_in: u64,
    /// As their SYN says it.
    their_isn: u32,
}

fn their_time(now: Instant) -> smoltcp::time::Instant {
    smoltcp::time::Instant::from_micros((now.as_nanos() / 1_000) as i64)
}

impl Pair {
    fn new(ours_connects: bool) -> Pair {
        let mut config = Config::default();
        config.rto.initial = Duration::from_secs(1);
        let ours = match ours_connects {
            true => Connection::connect(&config, Seq(ISN)),
            false => Connection::listen(&config, Seq(ISN)),
        };
        let mut card = Card { mtu: 1500, ..Card::default() };
        let mut interface =
            Interface::new(iface::Config::new(HardwareAddress::Ip), &mut card, their_time(Instant::ZERO));
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(IpAddress::Ipv4(THEIRS), 24)).expect("there is room for one");
        });
        let buffer = || SocketBuffer::new(vec![0; 16_384]);
        let mut socket = Socket::new(buffer(), buffer());
        match ours_connects {
            true => socket.listen(PORT).expect("nobody listens there"),
            false => {
                let to = (IpAddress::Ipv4(OURS), PORT);
                socket.connect(interface.context(), to, PORT).expect("it is closed");
            }
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        let (to_them, to_us) = Default::default();
        Pair {
            now: Instant::ZERO,
            ours,
            card,
            interface,
            sockets,
            socket,
            to_them,
            to_us,
            read: 0,
            to_write: 0,
            written: 0,
            established_by_them: None,
            taken_in: 0,
            their_isn: 0,
        }
    }

    /// Goes on until `done`, or nothing more happens.
    fn run_until(&mut self, done: impl Fn(&Pair) -> bool) {
        loop {
            self.turn_of_ours();
            self.turn_of_theirs();
            if done(self) {
                return;
            }
            let theirs = self.interface.poll_at(their_time(self.now), &self.sockets);
            let theirs = theirs.map(|at| Instant::from_nanos(at.total_micros() as u64 * 1_000));
            let ways = [&self.to_them, &self.to_us].map(|way| way.packets.front().map(|packet| packet.0));
            let next = [self.ours.next_due(), theirs].into_iter().chain(ways).flatten().min();
            let next = next.expect("something is going to happen").max(self.now);
            self.now = Instant::from_nanos(next.as_nanos().div_ceil(1_000) * 1_000);
        }
    }

    fn turn_of_ours(&mut self) {
        self.ours.on_timer(self.now);
        while let Some(packet) = self.to_us.take(self.now) {
            let found = wire::decode(&packet).expect("smoltcp's packets are sound");
            if found.segment.flags.contains(Flags::SYN) {
                self.their_isn = found.segment.seq.0;
            }
            let offset = u64::from(found.segment.seq.0.wrapping_sub(self.their_isn.wrapping_add(1)));
            let payload = &packet[found.payload.clone()];
            assert_eq!(pattern::first_mismatch(offset, payload), None);
            self.ours.on_segment(self.now, &found.segment);
        }
        self.taken_in += self.ours.read(u64::MAX);
        let [from, to] = [OURS, THEIRS].map(|address| SocketAddr::from((address, PORT)));
        while let Some(segment) = self.ours.poll_segment(self.now) {
            let offset = u64::from(segment.seq.0.wrapping_sub(ISN + 1));
            let mut packet = Vec::new();
            wire::encode(from, to, &IpFields::default(), &segment, offset, &mut packet).expect("it fits");
            self.to_them.send(self.now, packet);
        }
    }

    fn turn_of_theirs(&mut self) {
        while let Some(packet) = self.to_them.take(self.now) {
            self.card.received.push_back(packet);
        }
        let now = their_time(self.now);
        loop {
            let met = self.interface.poll_ingress_single(now, &mut self.card, &mut self.sockets);
            let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
            while socket.can_recv() {
                let at = self.read;
                let check =
                    |bytes: &mut [u8]| (bytes.len(), (bytes.len(), pattern::first_mismatch(at, bytes)));
                let (bytes, mismatch) = socket.recv(check).expect("it can");
                assert_eq!(mismatch, None);
                self.read += bytes as u64;
            }
            while socket.can_send() && self.to_write > 0 {
                let mut bytes = vec![0; self.to_write.min(4_096) as usize];
                pattern::fill(self.written, &mut bytes);
                let took = socket.send_slice(&bytes).expect("it can") as u64;
                (self.written, self.to_write) = (self.written + took, self.to_write - took);
            }
            if socket.state() == State::Established {
                self.established_by_them.get_or_insert(self.now);
            }
            self.interface.poll_egress(now, &mut self.card, &mut self.sockets);
            if met == PollIngressSingleResult::None {
                break;
            }
        }
        for packet in self.card.sent.drain(..) {
            self.to_us.send(self.now, packet);
        }
    }
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn both_are_connected_after_the_same_round_trips_whoever_begins() {
    for ours_connects in [true, false] {
        let mut pair = Pair::new(ours_connects);
        pair.run_until(|pair| pair.ours.established_at().is_some() && pair.established_by_them.is_some());
        let (ours, theirs) = (pair.ours.established_at().unwrap(), pair.established_by_them.unwrap());
        let (first, second) = if ours_connects { (ours, theirs) } else { (theirs, ours) };
        assert_eq!((first, second), (ms(200), ms(300)));
    }
}

#[test]
fn a_stream_arrives_whole_in_either_direction_with_losses_among_it() {
    for lost in [vec![], vec![5, 9, 10, 40]] {
        let mut pair = Pair::new(true);
        pair.to_them.lost = lost.clone();
        pair.ours.write(200_000);
        pair.run_until(|pair| pair.read == 200_000);

        let mut pair = Pair::new(false);
        pair.to_us.lost = lost;
        pair.to_write = 200_000;
        pair.run_until(|pair| pair.taken_in == 200_000);
    }
}

/// RFC 6298 §2.1, §5.5: a second without an answer, then two. smoltcp's own timers are no reference: those of 0.12, the newest
/// version for our oldest compiler, begin at 0.7 s and do not back off before data.
#[test]
fn our_lost_syn_is_repeated_and_their_answer_taken() {
    let mut pair = Pair::new(true);
    pair.to_them.lost = vec![0, 1];
    pair.run_until(|pair| pair.established_by_them.is_some());
    assert_eq!(pair.to_them.sent[..3], [ms(0), ms(1_000), ms(3_000)]);
    assert_eq!(pair.ours.established_at(), Some(ms(3_200)));
}

/// RFC 6298 §2.2 to §2.4: after one round trip of 200 ms, the floor of a second; then twice that.
#[test]
fn our_lost_segment_is_repeated_a_second_later_and_their_ack_ends_it() {
    let mut pair = Pair::new(true);
    // Number 0 is the SYN, 1 the ACK of their SYN/ACK.
    pair.to_them.lost = vec![2, 3];
    pair.run_until(|pair| pair.established_by_them.is_some());
    pair.ours.write(100);
    pair.run_until(|pair| pair.read == 100);
    let after = |number: usize| pair.to_them.sent[number].saturating_since(pair.to_them.sent[2]);
    assert_eq!([after(3), after(4)], [1, 3].map(Duration::from_secs));
    assert_eq!(pair.to_them.sent.len(), 5, "nothing else is sent");
}
