//! Connections, packet by packet.

use crate::capture::Frame;
use crate::grant::{Grant, TOGETHER_NS};
use crate::ledger::{Ledger, Limit};
use crate::losses::{Repairs, Sign};
use crate::packet::{Link, Other, TcpPacket, parse};
use crate::prelude::{Held, Inferred, MOST_HELD, ScaleToldBy, WEIGHT, infer};
use crate::report::{ConnectionReport, LimitShare, Report, Timers, Vantage};
use crate::stack::StackSeen;
use crate::tunnel::Tunnel;
use farpath_units::{Duration, DurationHistogram, bit_rate_text};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::RangeInclusive;

/// Connections that are followed; packets of others are counted.
pub const MAX_CONNECTIONS: usize = 100_000;

/// A capture may say any time: the sum of some of them has to fit.
const LATEST_NS: u64 = u64::MAX / 4;
/// Packets in flight, acknowledgments on their way to the sender, and waits of round trips with their parts, that are held for all connections together.
pub const MAX_IN_FLIGHT: usize = 4_000_000;

/// An ACK and the data that it lets go are this close, where the capture is at the sender: as long as a host takes for it.
const PROMPT_NS: u64 = 1_000_000;
/// On short round trips a sixteenth of them, and no less than this.
const LEAST_PROMPT_NS: u64 = 200_000;
/// A path that delivers so much of its rate over a round trip is busy.
const BUSY_PATH: f64 = 0.9;
/// The shortest round trip of a round is a queue's where it is above the floor by one part of so many.
const LEAST_STANDING: u64 = 16;
/// More round trip than this share above the shortest one is a queue that stands.
const STANDING: f64 = 0.25;
/// And this much at the least.
const STANDING_NS: u64 = 2_000_000;
/// A flight that grows by more than this factor in a round trip is slow start's.
const DOUBLING: f64 = 1.4;
/// The same behind a round trip that did not grow, or that doubled: congestion avoidance grows by half at the most (RFC 9438 §4.4).
const DOUBLING_AGAIN: f64 = 1.6;
/// A round trip that doubled, or nearly so: where acknowledgments are delayed and counted, slow start grows by half alone.
const DOUBLED: f64 = 1.8;
/// Round trips beyond an hour count as that.
const LONGEST_RTT: Duration = Duration::from_secs(3600);
/// Packets by which the rate of a burst is measured.
const BURST: usize = 8;
/// What is no more than this of the most so far is less, however it is rounded: it is not divided.
const CLEARLY_LESS: f64 = 1.0 - 1e-9;
/// Between the two times that a host passes on a packet, and how many others may come between: no timeout, and no repair, is as
/// fast.
const COPY_NS: u64 = 1_000_000;
const COPY_DISTANCE: usize = 4;
/// One in so many packets is more than a path duplicates.
const COPIES_MATTER: u64 = 5;
/// Data that comes at no more than so many times the spacing of the fastest burst keeps a line busy.
const BUSY: f64 = 1.5;
/// Segments that a paced sender has in a round trip at the least: BBR's smallest window.
const SLOWEST_PACE: f64 = 4.0;
/// Slow start doubles, and BBR's startup sends 2.89 times what was delivered: beyond that a window came back that had been there before.
const MOST_GROWTH: f64 = 3.2;
/// Of the packets of a round trip, those that leave alone without an acknowledgment, where a pace lets them go.
const PACED_SHARE: f64 = 0.25;
/// A burst is the path's where it came so many times as fast as the round trip's data on the whole.
const TRAIN: f64 = 1.5;
/// Acknowledgments over which it is looked for: a segment has one or two.
const MOST_TRAIN: usize = 256;
/// Segments that a packet is cut into.
const MOST_PIECES: u64 = 64;
/// Two ticks of a capture in microseconds.
const TICKS_NS: u64 = 2000;
/// Less of a round trip than this says nothing.
const LEAST_PART: f64 = 0.1;
/// Waits of a round trip that are held until it is known what it was.
const MOST_WAITS: usize = 4096;
/// Room that a connection keeps for what it holds no longer.
const MOST_KEPT: usize = 16;
/// Acknowledgments without data that let nothing go, behind which a message of the peer's lets something go by itself: one may acknowledge half of a
/// pair of segments.
const LEAST_BARE: u32 = 3;
/// By so much an acknowledgment that was delayed comes later: RFC 1122 §4.2.3.2 lets it half of a second, Linux waits for 40 ms at the least.
const DELAYED_NS: RangeInclusive<u64> = 25_000_000..=500_000_000;
/// Segments of an initial window (RFC 6928 §2).
const INITIAL_WINDOW: u64 = 10;
/// Parts of a wait that are told apart.
const MOST_PARTS: usize = 1000;
/// Packets beyond a window whose scale was inferred, after which it is larger: acknowledgments that are not captured let some seem so.
const MOST_BEYOND: u32 = 64;
/// Payload of a packet where nothing says how long one may be.
const USUAL_MSS: u32 = 1460;

/// What connections share.
#[derive(Debug, Default)]
struct Shared {
    /// Held for all together.
    held: usize,
    /// Room for waits and their parts: a round trip of many takes it, and gives it back when it is over.
    waits: Vec<Wait>,
    parts: Vec<(u64, Owner)>,
    /// The parts of one wait, while it is entered.
    settled: Vec<(u64, Limit)>,
}

/// Interface, and both ends by address.
type Key = (u32, SocketAddr, SocketAddr);

/// What is known of a capture so far.
#[derive(Debug, Default)]
pub struct Diagnosis {
    /// With the interface of each.
    connections: Vec<(u32, Connection)>,
    /// Places among them, and that of the last packet: most follow one of the same connection.
    places: HashMap<Key, usize>,
    last: Option<(Key, usize)>,
    frames: u64,
    tcp_packets: u64,
    unknown_link: u64,
    /// What there was before the first TCP packet.
    others: BTreeMap<Other, u64>,
    not_followed: u64,
    /// Of connections whose addresses and ports others have now.
    ended: Vec<ConnectionReport>,
    shared: Shared,
    /// Connections whose intervals may still be kept.
    recorded: usize,
}

impl Diagnosis {
    /// One that keeps the intervals of so many connections, the first that are seen.
    pub fn with_intervals(connections: usize) -> Diagnosis {
        Diagnosis { recorded: connections, ..Diagnosis::default() }
    }

    /// Takes a frame of a capture. Frames come in the order of their times.
    pub fn frame(&mut self, frame: Frame<'_>) {
        self.frames += 1;
        let Some(link) = Link::from_type(frame.link_type) else {
            self.unknown_link += 1;
            self.note_other(|| Other::LinkType(frame.link_type));
            return;
        };
        match parse(link, frame.data, frame.length) {
            Some(packet) => self.packet(frame.number, frame.interface, frame.time_ns, &packet),
            None => self.note_other(|| Other::new(link, frame.data)),
        }
    }

    /// Counts a frame without TCP, as long as there is nothing else to be said of a capture.
    fn note_other(&mut self, other: impl FnOnce() -> Other) {
        if self.tcp_packets == 0 {
            *self.others.entry(other()).or_default() += 1;
        }
    }

    /// Takes a TCP packet that was seen at `time_ns`, nanoseconds since 1970; what is later than the year 2116 counts as then.
    pub fn packet(&mut self, number: u64, interface: u32, time_ns: u64, packet: &TcpPacket) {
        let time_ns = time_ns.min(LATEST_NS);
        self.tcp_packets += 1;
        let (source, destination) = (&packet.source, &packet.destination);
        if let Some(((of, one, other), place)) = &self.last
            && *of == interface
            && (one == source && other == destination || one == destination && other == source)
            && !packet.syn
        {
            self.connections[*place].1.packet(number, time_ns, packet, &mut self.shared);
            return;
        }
        let key = (interface, *source.min(destination), *source.max(destination));
        let known = self.places.get(&key).copied();
        let (_, one, other) = key;
        let place = match known {
            None if self.connections.len() >= MAX_CONNECTIONS => {
                self.not_followed += 1;
                return;
            }
            None => {
                let begun = self.begin((one, other), number, time_ns, packet);
                self.connections.push((interface, begun));
                self.places.insert(key, self.connections.len() - 1);
                self.connections.len() - 1
            }
            // Ports are used again: what was there before is a connection of its own.
            Some(place) if packet.syn && packet.ack.is_none() && self.connections[place].1.has_begun() => {
                let begun = self.begin((one, other), number, time_ns, packet);
                let before = core::mem::replace(&mut self.connections[place].1, begun);
                self.shared.held = self.shared.held.saturating_sub(before.held());
                if self.ended.len() < MAX_CONNECTIONS {
                    self.ended.push(before.finish(interface));
                }
                place
            }
            Some(place) => place,
        };
        self.last = Some((key, place));
        self.connections[place].1.packet(number, time_ns, packet, &mut self.shared);
    }

    /// A connection that begins with this packet.
    fn begin(
        &mut self,
        (one, other): (SocketAddr, SocketAddr),
        number: u64,
        time_ns: u64,
        packet: &TcpPacket,
    ) -> Connection {
        let mut connection = Connection::new(one, other, number, time_ns);
        connection.prelude = (!packet.syn).then(Vec::new);
        connection.tunnel = packet.tunnel;
        if self.recorded > 0 {
            self.recorded -= 1;
            connection.halves.iter_mut().for_each(|half| half.ledger.intervals = Some(Vec::new()));
        }
        connection
    }

    /// What is to be said of the whole.
    pub fn finish(self) -> Report {
        let mut connections = self.ended;
        let rest = self.connections.into_iter();
        connections.extend(rest.map(|(interface, connection)| connection.finish(interface)));
        connections.sort_by(|one, other| {
            let key = |report: &ConnectionReport| (core::cmp::Reverse(report.bytes), report.frames.0);
            key(one).cmp(&key(other))
        });
        let none = self.tcp_packets == 0;
        let mut others: Vec<_> = self.others.into_iter().filter(|_| none).collect();
        others.sort_by_key(|(_, frames)| core::cmp::Reverse(*frames));
        Report {
            frames: self.frames,
            tcp_packets: self.tcp_packets,
            unknown_link: self.unknown_link,
            connections,
            packets_not_followed: self.not_followed,
            others,
        }
    }
}

#[derive(Debug)]
struct Connection {
    /// By address: what each of the two sends.
    halves: [Half; 2],
    first: (u64, u64),
    last: (u64, u64),
    opening: Opening,
    mss: u32,
    /// Packets of a connection without a handshake, until it is known what they tell in its place.
    prelude: Option<Vec<Held>>,
    tunnel: Option<Tunnel>,
    /// What the SYN of each side told.
    stacks: [Option<StackSeen>; 2],
}

/// What was seen of the handshake, and when.
#[derive(Debug, Default)]
struct Opening {
    /// Of the side that opened, 0 or 1.
    client: Option<usize>,
    syn_ns: Option<u64>,
    syn_ack_ns: Option<u64>,
    ack_ns: Option<u64>,
}

impl Connection {
    fn new(one: SocketAddr, other: SocketAddr, number: u64, time_ns: u64) -> Connection {
        Connection {
            halves: [Half::new(one, time_ns), Half::new(other, time_ns)],
            first: (number, time_ns),
            last: (number, time_ns),
            opening: Opening::default(),
            mss: 0,
            prelude: None,
            tunnel: None,
            stacks: [None; 2],
        }
    }

    /// What it holds of what is held for all together.
    fn held(&self) -> usize {
        let prelude = self.prelude.as_ref().map_or(0, |packets| WEIGHT * packets.len());
        prelude + self.halves.iter().map(Half::held).sum::<usize>()
    }

    /// Whether its handshake is over, or data has been seen.
    fn has_begun(&self) -> bool {
        self.opening.ack_ns.is_some()
            || self.halves.iter().any(|half| half.bytes > 0)
            || self
                .prelude
                .as_ref()
                .is_some_and(|packets| packets.iter().any(|(_, _, packet)| packet.payload > 0))
    }

    fn packet(&mut self, number: u64, time_ns: u64, packet: &TcpPacket, shared: &mut Shared) {
        if let Some(prelude) = &mut self.prelude {
            if !packet.syn && prelude.len() < MOST_HELD && shared.held + WEIGHT <= MAX_IN_FLIGHT {
                // Time does not go back.
                let now = prelude.last().map_or(time_ns, |(_, last, _)| time_ns.max(*last));
                prelude.push((number, now, *packet));
                shared.held += WEIGHT;
                return;
            }
            self.end_prelude(shared);
        }
        self.follow(number, time_ns, packet, shared);
    }

    /// What the first packets tell together is known from the first one on.
    fn end_prelude(&mut self, shared: &mut Shared) {
        let Some(packets) = self.prelude.take() else { return };
        for half in &mut self.halves {
            let address = half.address;
            if let Some(inferred) = infer(&packets, |packet| packet.source == address) {
                half.infer(inferred, packets[0].1);
            }
        }
        for (number, time_ns, packet) in packets {
            shared.held = shared.held.saturating_sub(WEIGHT);
            self.follow(number, time_ns, &packet, shared);
        }
    }

    fn follow(&mut self, number: u64, time_ns: u64, packet: &TcpPacket, shared: &mut Shared) {
        let now = time_ns.max(self.last.1);
        self.last = (number, now);
        let side = usize::from(packet.source != self.halves[0].address);
        self.halves[side].grant.sent(packet);
        self.halves[1 - side].grant.received(packet);
        if packet.syn {
            self.open(side, now, packet);
            return;
        }
        if let (Some(client), Some(syn_ack), None) =
            (self.opening.client, self.opening.syn_ack_ns, self.opening.ack_ns)
            && side == client
            && packet.ack.is_some()
        {
            self.opening.ack_ns = Some(now);
            let to_server = self.opening.syn_ns.map_or(0, |syn| syn_ack - syn);
            let to_client = now - syn_ack;
            // What of the round trip lies between the capture and the end that sends the data.
            // The server may send when this packet has reached it; the client might when the answer had.
            for (sender, missing, from) in
                [(client, to_client, now), (1 - client, to_server, now + to_server)]
            {
                self.halves[sender].opened(from, missing, to_server + to_client, number);
            }
        }
        let [one, other] = &mut self.halves;
        let (own, peer) = if side == 0 { (one, other) } else { (other, one) };
        if let Some(ack) = packet.ack {
            peer.acknowledged(now, ack, packet, shared);
        }
        self.mss = self.mss.max(packet.payload.min(USUAL_MSS));
        own.note_copy(now, packet);
        own.sent(number, now, packet, shared);
    }

    fn open(&mut self, side: usize, now: u64, packet: &TcpPacket) {
        // Windows of a connection are scaled where both SYNs say so; each then scales its own.
        let scale = packet.window_scale;
        self.stacks[side].get_or_insert_with(|| StackSeen::new(packet));
        if packet.ack.is_none() {
            self.opening = Opening { client: Some(side), syn_ns: Some(now), ..Opening::default() };
            self.halves.iter_mut().for_each(|half| half.opens_ns = u64::MAX);
        } else {
            self.opening.client.get_or_insert(1 - side);
            self.opening.syn_ack_ns.get_or_insert(now);
            if scale.is_none() {
                self.halves[side].peer_scale = Some(0);
            }
        }
        let peer = &mut self.halves[1 - side];
        if peer.peer_scale != Some(0) || packet.ack.is_none() {
            peer.peer_scale = Some(scale.unwrap_or(0));
        }
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        self.halves[1 - side].first_window = u64::from(packet.window);
        self.halves[side].begin(packet.seq.wrapping_add(1));
        if packet.ack.is_some() && self.halves[1 - side].bytes == 0 {
            let peer = &mut self.halves[1 - side];
            peer.edge = peer.edge.max(peer.sent_to + peer.first_window);
        }
        if let Some(mss) = packet.mss {
            for half in &mut self.halves {
                half.mss = Some(half.mss.map_or(u32::from(mss), |known| known.min(u32::from(mss))));
            }
        }
    }

    fn finish(mut self, interface: u32) -> ConnectionReport {
        self.end_prelude(&mut Shared::default());
        let main = usize::from(self.halves[1].bytes > self.halves[0].bytes);
        let bytes_back = self.halves[1 - main].bytes;
        let (first, last) = (self.first, self.last);
        let addresses = [0, 1].map(|side| self.halves[side].address);
        let half = &mut self.halves[main];
        half.finish(first.1, last);
        let opened = half.total_rtt_ns.is_some();
        let vantage = match half.total_rtt_ns {
            None => Vantage::Unknown,
            Some(_) if half.is_near_sender() => Vantage::NearSender,
            Some(total) if half.missing_ns >= total - total / 10 => Vantage::NearReceiver,
            Some(_) => Vantage::Middle,
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        let limits = half
            .ledger
            .limits()
            .into_iter()
            .filter(|(_, ns, bytes)| *ns > 0 || *bytes > 0)
            .map(|(limit, ns, bytes)| LimitShare { limit, time_s: seconds(ns), bytes })
            .collect();
        let rtt = half.rtt.as_ref().map(|rtts| {
            [50, 95, 99].map(|percent| rtts.percentile(percent).map_or(0.0, Duration::as_secs_f64))
        });
        let mut report = ConnectionReport {
            sender: addresses[main],
            receiver: addresses[1 - main],
            interface,
            tunnel: self.tunnel,
            vantage,
            frames: (first.0, last.0),
            start_ns: Some(first.1),
            duration_s: seconds(last.1 - first.1),
            bytes: half.bytes,
            bytes_back,
            data_packets: half.data_packets,
            retransmissions: half.retransmissions,
            retransmissions_at_queue: half.retransmissions_at_queue,
            losses: half.repairs_told.losses,
            timers: half.timers,
            sender_stack: self.stacks[main],
            receiver_stack: self.stacks[1 - main],
            // Less than a segment is what the program wrote.
            initial_window: half
                .first_flight
                .filter(|_| half.total_rtt_ns.is_some() && half.begins_at_rest())
                .filter(|flight| (half.full_segment()..half.bytes).contains(flight)),
            queue_s: (half.retransmissions_at_queue > 0).then(|| seconds(half.overflown_ns)),
            most_in_flight: half.most_in_flight,
            iperf3: None,
            bytes_not_captured: half.not_captured,
            copies: half.copies,
            marked: half.marked,
            marks_echoed: half.marks_echoed,
            mss: half.mss.unwrap_or(self.mss),
            inferred: half.inferred,
            window: (opened && half.scale_is_known() && half.most_window > 0).then_some(half.most_window),
            min_rtt_s: half.min_rtt_ns.map(seconds),
            sender_rtt_s: half.total_rtt_ns.map(|_| seconds(half.missing_ns)),
            rtt_s: rtt,
            delivered_bit_per_s: (half.delivered > 0.0).then_some(half.delivered),
            path_rate_bit_per_s: Some(match vantage {
                Vantage::NearSender if half.path_rate > 0.0 => half.path_rate,
                Vantage::NearSender => half.train_rate,
                _ => half.burst_rate,
            })
            .filter(|rate| *rate > 0.0 && vantage != Vantage::Unknown),
            granted_bit_per_s: half.grant.rate(),
            sender_opened: self.opening.client.map(|client| client == main),
            limits,
            moments: half.ledger.moments(first.1),
            summary: String::new(),
            intervals: half.ledger.intervals.take().unwrap_or_default(),
        };
        // The handshake is entered when the rest is.
        report.intervals.sort_by_key(|interval| interval.from_ns);
        report.summary = summary(&report);
        report
    }
}

/// Gives back what a queue has taken that is nearly empty.
fn give_back<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > 4 * queue.len().max(MOST_KEPT) {
        queue.shrink_to(2 * queue.len().max(MOST_KEPT));
    }
}

/// A list that has become long goes on in the room that another one has given back.
fn take_room<T>(own: &mut Vec<T>, spare: &mut Vec<T>) {
    if spare.capacity() > own.capacity() {
        let mut room = core::mem::take(spare);
        room.append(own);
        *own = room;
    }
}

/// An empty list keeps little room, and gives more of it to whoever needs it next.
fn give_room<T>(own: &mut Vec<T>, spare: &mut Vec<T>) {
    if own.capacity() > MOST_KEPT {
        let own = core::mem::take(own);
        if own.capacity() > spare.capacity() {
            *spare = own;
        }
    }
}

/// Between two events nothing changes; this is what held then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is in flight.
    Idle,
    /// The announced window has no room for a segment.
    Full,
    /// It is closed.
    Closed,
    /// A loss is being repaired.
    Repair,
    /// None of these, and nothing was acknowledged since the last new data.
    Open,
    /// The same, and something was.
    Acknowledged,
}

/// Whose a part of a wait is; of two kinds it is known when the round trip is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Known(Limit),
    /// A window that the sender does not tell: what follows left behind an acknowledgment.
    Window,
    /// The same, and acknowledgments let nothing go before.
    Shrunk,
    /// What follows left without one.
    Pace,
    /// What follows left when the rate that routers have granted let it.
    Grant,
}

/// A wait that is over, of a round trip that is not.
#[derive(Debug)]
struct Wait {
    from_ns: u64,
    /// How many of the parts of its round trip are its own.
    parts: usize,
    owner: Owner,
    bytes: u64,
    frame: u64,
    /// What was delivered in the last round trip then, bit/s.
    rate: f64,
}

/// What was seen in a round trip of how its packets left.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    from_ns: u64,
    packets: u32,
    bytes: u64,
    /// Of these, without an acknowledgment since the one before, and not together with it.
    alone: u32,
    /// Groups that left together; those of them that left later behind an acknowledgment than a host takes for it.
    groups: u32,
    late: u32,
    /// The longest silence that an acknowledgment ended: no pace has one.
    silent_ns: u64,
    /// As close behind the one before as a path lets them come.
    in_train: u32,
    /// Of those that come so, the first ones; those of them behind others that filled the announced window.
    trains: u32,
    filling: u32,
    /// The announced window was full.
    full: bool,
    full_ns: u64,
    window_ns: u64,
    /// The fastest burst, bit/s.
    burst_rate: f64,
}

impl Round {
    /// Nearly all of it came as fast as the path lets it, and filled it.
    fn fills_path(&self, now: u64, path: f64) -> bool {
        let lasted = now.saturating_sub(self.from_ns).max(1) as f64;
        f64::from(self.in_train) >= 0.75 * f64::from(self.packets.max(1))
            && self.bytes as f64 * 8e9 / lasted >= path / TRAIN
    }
}

/// By what a packet with data is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    at: u64,
    seq: u32,
    payload: u32,
    ack: Option<u32>,
    window: u16,
    timestamps: Option<(u32, u32)>,
}

/// What one side sends, seen from where it sends: acknowledgments reach it later than the capture by what of the round trip lies between.
#[derive(Debug)]
struct Half {
    address: SocketAddr,
    /// Position of the last sequence number that was unwrapped. Positions begin at 2^32, so that none is negative.
    place: Option<(u32, u64)>,
    sent_to: u64,
    acknowledged_to: u64,
    /// Right edge of the announced window, and the window that a SYN announced.
    edge: u64,
    first_window: u64,
    /// The edge when the first of the packets came that came together, and whether they have filled the window up to it.
    train_edge: u64,
    train_fills: bool,
    peer_scale: Option<u8>,
    mss: Option<u32>,
    missing_ns: u64,
    total_rtt_ns: Option<u64>,
    /// Acknowledgments on their way from the capture to the sender.
    pending: VecDeque<Pending>,
    /// Ends of what is in flight and was sent once, and when.
    in_flight: VecDeque<(u64, u64)>,
    /// Nothing up to here is measured: some of it was sent again.
    unmeasured_to: u64,
    min_rtt_ns: Option<u64>,
    /// `None` before the first one.
    rtt: Option<DurationHistogram>,
    inflated: bool,
    /// A loss is being repaired until this is acknowledged.
    repair_to: Option<u64>,
    /// Something was sent again since; and how, of all repairs.
    repairs: bool,
    repairs_told: Repairs,
    timers: Timers,
    /// By how much the acknowledgment of a lone segment came later than the round trip takes.
    late_ns: Option<u64>,
    /// The last repair began without any other sign of a loss.
    timed_out: bool,
    duplicates: u32,
    /// The last acknowledgment told of a hole (SACK).
    hole_told: bool,
    /// Since the last new data.
    parts: Vec<(u64, State)>,
    from_ns: u64,
    now_ns: u64,
    /// When the handshake was over for this side, and the packet that ended it; never, until it was.
    opens_ns: u64,
    opened_by: u64,
    opening_ns: u64,
    acked_ns: u64,
    /// When new data last passed, and whether it was a full segment.
    new_ns: u64,
    last_full: bool,
    /// When a hole appeared in what passes.
    hole_ns: Option<u64>,
    round_to: u64,
    /// It is over, but for the wait that goes on.
    round_over: bool,
    /// What was acknowledged when it began, and when data was last sent in it.
    round_acked_to: u64,
    round_answered_to: u64,
    /// Sent in the last round trip, and the most in any.
    round_sent: u64,
    most_sent: u64,
    /// The same of the first.
    first_flight: Option<u64>,
    /// The shortest round trip of this round, and whether that of the last one was above the floor.
    round_rtt_ns: u64,
    queue_stands: bool,
    growing: bool,
    /// A round trip has not grown since the data began; one has doubled.
    has_stood: bool,
    has_doubled: bool,
    /// Times and positions of acknowledgments within a round trip.
    recent: VecDeque<(u64, u64)>,
    delivered: f64,
    /// What was acknowledged within the last round trip, as a rate; and the most of that while a queue stood, which is the path's.
    rate: f64,
    path_rate: f64,
    /// Times of the last packets with new data and the bytes that had passed by each; and the fastest that so many have come, bit/s.
    burst_of: VecDeque<(u64, u64)>,
    burst_rate: f64,
    /// How close behind the one before a packet of this length comes at that rate, ns.
    train_of: (u64, f64),
    train_ns: f64,
    lost: bool,
    most_window: u64,
    most_in_flight: u64,
    bytes: u64,
    /// Packets with data that were marked, and acknowledgments that said so.
    marked: u64,
    marks_echoed: u64,
    /// Packets with data that were in the capture just before, and the latest ones that they are compared with.
    copies: u64,
    latest: [Option<Fields>; COPY_DISTANCE],
    oldest: usize,
    data_packets: u64,
    retransmissions: u64,
    /// Of these, in repairs that began while a queue stood; and the longest such queue, which had no more room.
    retransmissions_at_queue: u64,
    overflown_ns: u64,
    /// What the last round trip and the longest one were above the shortest.
    queue_ns: u64,
    most_queue_ns: u64,
    /// The queue that stood when this repair began.
    repair_queue_ns: Option<u64>,
    not_captured: u64,
    ended: bool,
    /// What the last wait worth the name was for: what leaves right behind has waited for the same.
    burst: Owner,
    /// Waits of this round trip, and their parts, one behind the other.
    waits: Vec<Wait>,
    waits_parts: Vec<(u64, Owner)>,
    /// Both, as they count in what is held.
    held_of_waits: usize,
    round: Round,
    /// Spacing of packets in the last round trip, ns.
    spacing_ns: u64,
    /// The same of groups that left together.
    group_ns: u64,
    /// Acknowledged since the last new data, and how much was in flight then.
    acked_in_wait: u64,
    flight_before: u64,
    /// Bytes that left together with the last new data, and these.
    together: u64,
    /// The longest payload that a segment of its own had, and whether the last one said that more follows (no PSH).
    most_payload: u64,
    last_pushed: bool,
    /// When what was acknowledged last had been sent, and how far that was: of the last acknowledgments.
    trains: VecDeque<(u64, u64, u64)>,
    train_rate: f64,
    /// The fastest burst within a round trip that was slower on the whole, bit/s.
    path_burst: f64,
    /// What is known in place of a handshake that is not in the capture; packets that went beyond the window of its scale.
    inferred: Option<Inferred>,
    beyond_window: u32,
    /// Without the handshake nothing is known of what was sent before the first round trip.
    is_first_round: bool,
    /// What routers have granted.
    grant: Grant,
    /// When data of the peer's came, if no acknowledgment without data has come since; and how many of these came since the last new data.
    heard_ns: Option<u64>,
    bare_in_wait: u32,
    /// End of the last short segment, and when it was acknowledged: until then Nagle's algorithm holds the next one back.
    short_to: u64,
    short_acked_ns: u64,
    ledger: Ledger,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    at_ns: u64,
    ack: u64,
    edge: Option<u64>,
    duplicate: bool,
    sacked: bool,
    /// It came with data of the peer's.
    with_data: bool,
    /// The timestamp that it echoes.
    echo: Option<u32>,
}

impl Half {
    fn new(address: SocketAddr, now: u64) -> Half {
        Half {
            address,
            place: None,
            sent_to: 0,
            acknowledged_to: 0,
            edge: 0,
            train_edge: 0,
            train_fills: false,
            first_window: 0,
            peer_scale: None,
            mss: None,
            missing_ns: 0,
            total_rtt_ns: None,
            pending: VecDeque::new(),
            in_flight: VecDeque::new(),
            unmeasured_to: 0,
            min_rtt_ns: None,
            rtt: None,
            inflated: false,
            repair_to: None,
            repairs: false,
            repairs_told: Repairs::default(),
            timers: Timers::default(),
            late_ns: None,
            timed_out: false,
            duplicates: 0,
            hole_told: false,
            parts: Vec::new(),
            from_ns: now,
            now_ns: now,
            opens_ns: now,
            opened_by: 0,
            opening_ns: 0,
            acked_ns: now,
            new_ns: now,
            last_full: false,
            hole_ns: None,
            round_to: 0,
            round_over: false,
            round_acked_to: 0,
            round_answered_to: 0,
            round_sent: 0,
            most_sent: 0,
            first_flight: None,
            round_rtt_ns: u64::MAX,
            queue_stands: false,
            growing: true,
            has_stood: false,
            has_doubled: false,
            recent: VecDeque::new(),
            delivered: 0.0,
            rate: 0.0,
            path_rate: 0.0,
            burst_of: VecDeque::new(),
            burst_rate: 0.0,
            train_of: (0, 0.0),
            train_ns: 0.0,
            lost: false,
            most_window: 0,
            most_in_flight: 0,
            bytes: 0,
            data_packets: 0,
            marked: 0,
            marks_echoed: 0,
            copies: 0,
            latest: [None; COPY_DISTANCE],
            oldest: 0,
            retransmissions: 0,
            retransmissions_at_queue: 0,
            overflown_ns: 0,
            queue_ns: 0,
            most_queue_ns: 0,
            repair_queue_ns: None,
            not_captured: 0,
            ended: false,
            burst: Owner::Known(Limit::Handshake),
            waits: Vec::new(),
            waits_parts: Vec::new(),
            held_of_waits: 0,
            round: Round::default(),
            spacing_ns: 0,
            group_ns: 0,
            acked_in_wait: 0,
            flight_before: 0,
            together: 0,
            most_payload: 0,
            last_pushed: true,
            trains: VecDeque::new(),
            train_rate: 0.0,
            path_burst: 0.0,
            inferred: None,
            beyond_window: 0,
            is_first_round: false,
            grant: Grant::default(),
            heard_ns: None,
            bare_in_wait: 0,
            short_to: 0,
            short_acked_ns: 0,
            ledger: Ledger::default(),
        }
    }

    /// The first byte has this sequence number.
    fn begin(&mut self, seq: u32) {
        if self.bytes > 0 {
            // A SYN that came late.
            return;
        }
        self.place = Some((seq, 1 << 32));
        (self.sent_to, self.acknowledged_to, self.edge) = (1 << 32, 1 << 32, (1 << 32) + self.first_window);
        self.round_to = self.sent_to;
    }

    /// The handshake is over at `now`, which may be in the future: this packet is still on its way then.
    fn opened(&mut self, now: u64, missing_ns: u64, total_ns: u64, number: u64) {
        (self.opens_ns, self.acked_ns, self.new_ns) = (now, now, now);
        self.opened_by = number;
        self.round.from_ns = now;
        self.missing_ns = missing_ns;
        self.total_rtt_ns = Some(total_ns);
        self.min_rtt_ns = Some(total_ns.max(1));
    }

    /// A packet with data that comes again within a millisecond, with the same fields, is one that the capture has twice.
    fn note_copy(&mut self, now: u64, packet: &TcpPacket) {
        if packet.payload == 0 {
            return;
        }
        let TcpPacket { seq, payload, ack, window, timestamps, .. } = *packet;
        let fields = Fields { at: now, seq, payload, ack, window, timestamps };
        let same = |known: &Fields| now - known.at < COPY_NS && Fields { at: now, ..*known } == fields;
        match self.latest.iter().flatten().any(same) {
            true => self.copies += 1,
            false => {
                self.latest[self.oldest] = Some(fields);
                self.oldest = (self.oldest + 1) % COPY_DISTANCE;
            }
        }
    }

    /// The handshake is not in the capture, and this is known in its place.
    fn infer(&mut self, inferred: Inferred, now: u64) {
        self.inferred = Some(inferred);
        self.peer_scale = Some(inferred.window_scale);
        self.missing_ns = inferred.missing_ns;
        self.total_rtt_ns = Some(inferred.total_ns);
        self.min_rtt_ns = Some(inferred.total_ns.max(1));
        self.round.from_ns = now;
        self.is_first_round = true;
        self.burst = Owner::Known(Limit::Unclear);
    }

    /// Nothing was in flight before the first data.
    fn begins_at_rest(&self) -> bool {
        self.inferred.is_none_or(|inferred| inferred.from_rest)
    }

    /// Whether it is known how long an announced window is; else it has this length at the least.
    fn scale_is_known(&self) -> bool {
        self.inferred.is_none_or(|inferred| inferred.scale_by != ScaleToldBy::AtLeast)
    }

    /// What was sent went beyond a window whose scale was inferred: it is larger, where that comes again.
    fn exceed_window(&mut self) {
        let Some(inferred) = self.inferred.as_mut() else { return };
        self.beyond_window += 1;
        if self.beyond_window >= MOST_BEYOND && inferred.window_scale < 14 {
            self.beyond_window = 0;
            inferred.window_scale += 1;
            inferred.scale_by = ScaleToldBy::AtLeast;
            self.peer_scale = Some(inferred.window_scale);
            self.edge += self.edge.saturating_sub(self.acknowledged_to);
        }
    }

    /// What it holds of what is held for all together.
    fn held(&self) -> usize {
        self.in_flight.len() + self.pending.len() + self.held_of_waits + self.repairs_told.held()
    }

    fn mss(&self) -> u64 {
        u64::from(self.mss.unwrap_or(USUAL_MSS))
    }

    /// Payload of a segment that the sender fills: what it was seen to have, where that can be it.
    fn segment(&self) -> u64 {
        let longest = self.mss();
        if self.most_payload + 80 >= longest { self.most_payload.max(1) } else { longest.max(1) }
    }

    /// Whether a packet ends with a segment that is as long as it may be.
    fn is_full(&self, payload: u64) -> bool {
        let longest = self.mss();
        // A packet that a device will cut, or has put together, has several; timestamps take 12 B of each (RFC 7323 §3.2).
        let several = || {
            [self.segment(), longest, longest.saturating_sub(12)]
                .iter()
                .any(|one| *one > 0 && payload.is_multiple_of(*one))
        };
        payload >= self.full_segment() && (payload <= longest || several())
    }

    /// Payload of a segment that is as long as it may be: options of TCP take up to 40 B, and so do those of IP.
    fn full_segment(&self) -> u64 {
        let longest = self.mss().min(u64::from(USUAL_MSS));
        let usual = longest.saturating_sub(40);
        if self.most_payload + 80 >= longest { usual.min(self.most_payload) } else { usual }
    }

    /// Where a sequence number is in the stream: near the last one.
    fn position(&mut self, seq: u32) -> u64 {
        let (last, at) = *self.place.get_or_insert((seq, 1 << 32));
        let position = at.saturating_add_signed(i64::from(seq.wrapping_sub(last).cast_signed()));
        if position > at {
            self.place = Some((seq, position));
        }
        if self.sent_to == 0 {
            // No window has been announced yet.
            (self.sent_to, self.acknowledged_to, self.round_to) = (position, position, position);
        }
        position
    }

    fn flight(&self) -> u64 {
        self.sent_to.saturating_sub(self.acknowledged_to)
    }

    fn state(&self) -> State {
        // Without the scale of its windows nothing is known of them.
        let known = self.peer_scale.is_some() && self.edge > 0;
        if self.repair_to.is_some() {
            State::Repair
        } else if known && self.edge <= self.acknowledged_to && self.edge > 1 << 32 {
            State::Closed
        } else if known && self.flight() > 0 && self.edge.saturating_sub(self.sent_to) < self.segment() {
            State::Full
        } else if self.flight() == 0 {
            State::Idle
        } else if self.acked_in_wait == 0 {
            State::Open
        } else {
            State::Acknowledged
        }
    }

    /// Time passes until `now` as things are.
    fn advance(&mut self, now: u64) {
        if self.now_ns < self.opens_ns && now > self.now_ns {
            let until = now.min(self.opens_ns);
            self.opening_ns += until - self.now_ns;
            (self.now_ns, self.from_ns) = (until, until);
        }
        let ns = now.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now);
        if ns == 0 {
            return;
        }
        let state = self.state();
        if matches!(state, State::Full | State::Closed) {
            self.round.full = true;
            self.round.full_ns += ns;
        }
        let many = self.parts.len() > MOST_PARTS;
        match self.parts.last_mut() {
            Some((last, same)) if *same == state || many => *last += ns,
            _ => self.parts.push((ns, state)),
        }
    }

    /// An acknowledgment passes the capture.
    fn acknowledged(&mut self, now: u64, ack: u32, packet: &TcpPacket, shared: &mut Shared) {
        let Some((last, at)) = self.place else { return };
        self.marks_echoed += u64::from(packet.echoes_marks);
        self.repairs_told.losses.dsacks += u64::from(packet.is_dsack);
        let ack = at.saturating_add_signed(i64::from(ack.wrapping_sub(last).cast_signed()));
        let edge = self.peer_scale.map(|scale| ack + (u64::from(packet.window) << scale));
        self.most_window = self.most_window.max(edge.map_or(0, |edge| edge - ack));
        let newest = self.pending.back().map_or(self.acknowledged_to, |pending| pending.ack);
        let same_edge = edge
            == Some(self.pending.back().map_or(Some(self.edge), |pending| pending.edge).unwrap_or(self.edge));
        // What comes to say something of a rate acknowledges nothing anew.
        let bare = packet.payload == 0 && packet.structures.is_none();
        let duplicate = ack == newest && bare && !packet.fin && same_edge;
        let pending = Pending {
            at_ns: now + self.missing_ns,
            ack,
            edge,
            duplicate,
            sacked: packet.sacked_to.is_some(),
            with_data: packet.payload > 0,
            echo: packet.timestamps.map(|(_, echo)| echo),
        };
        if self.missing_ns == 0 || shared.held >= MAX_IN_FLIGHT {
            self.take(pending, shared);
        } else {
            self.pending.push_back(pending);
            shared.held += 1;
        }
    }

    /// Acknowledgments that have reached the sender by `now`.
    fn take_pending(&mut self, now: u64, shared: &mut Shared) {
        while self.pending.front().is_some_and(|pending| pending.at_ns <= now) {
            let pending = self.pending.pop_front().expect("there is one");
            shared.held = shared.held.saturating_sub(1);
            self.take(pending, shared);
        }
        give_back(&mut self.pending);
    }

    fn take(&mut self, pending: Pending, shared: &mut Shared) {
        let Pending { at_ns, ack, edge, duplicate, sacked, with_data, echo } = pending;
        self.advance(at_ns);
        self.hole_told = sacked;
        if with_data {
            self.heard_ns = Some(at_ns);
        } else if ack > self.acknowledged_to {
            (self.heard_ns, self.bare_in_wait) = (None, self.bare_in_wait + 1);
        }
        // A FIN takes a number, and no byte.
        let ack = if self.ended && ack == self.sent_to + 1 { self.sent_to } else { ack };
        if ack > self.sent_to {
            // Of what nobody has seen.
            self.not_captured += ack - self.sent_to;
            self.sent_to = ack;
        }
        if let Some(edge) = edge
            && ack >= self.acknowledged_to
        {
            let opened = edge > self.edge && self.edge <= self.acknowledged_to;
            self.edge = edge;
            if opened {
                self.acked_ns = at_ns;
            }
        }
        if ack <= self.acknowledged_to {
            if duplicate && self.flight() > 0 {
                self.duplicates += 1;
            }
            if self.flight() > 0 && (self.duplicates >= 3 || sacked && self.duplicates >= 1) {
                self.begin_repair(at_ns, shared);
            }
            return;
        }
        self.duplicates = 0;
        self.repairs_told.acknowledged(echo);
        self.acked_in_wait += ack - self.acknowledged_to;
        self.measure(at_ns, ack, sacked, shared);
        if self.acknowledged_to < self.short_to && ack >= self.short_to {
            self.short_acked_ns = at_ns;
        }
        self.acknowledged_to = ack;
        self.acked_ns = at_ns;
        if self.repair_to.is_some_and(|to| ack >= to) {
            self.repair_to = None;
            shared.held = shared.held.saturating_sub(self.repairs_told.held());
            self.repairs_told.end();
            if self.burst == Owner::Known(Limit::Loss) {
                // What goes on as fast as the path lets it no longer waits for the repair.
                self.burst = Owner::Window;
            }
            self.recent.clear();
            // What is in flight now is what the window is.
            self.settle(at_ns, shared);
            self.round_sent = self.flight();
            (self.round_to, self.round_acked_to, self.round_answered_to) = (self.sent_to, ack, ack);
        } else if sacked {
            self.begin_repair(at_ns, shared);
        }
        self.count_delivered(at_ns);
        if ack > self.round_to {
            // The wait that goes on lies in this round trip, too, whatever ends it.
            if self.round_over {
                self.settle(at_ns, shared);
            }
            let sent = self.sent_to - self.round_to;
            self.growing = self.grows();
            self.has_stood |= !self.growing;
            self.round_over = true;
            self.most_sent = self.most_sent.max(sent);
            self.first_flight.get_or_insert(sent);
            self.round_sent = sent;
            (self.round_to, self.round_acked_to, self.round_answered_to) = (self.sent_to, ack, ack);
            let floor = self.min_rtt_ns.unwrap_or(0);
            self.queue_stands = self.round_rtt_ns != u64::MAX
                && self.round_rtt_ns > floor + (floor / LEAST_STANDING).max(LEAST_PROMPT_NS);
            self.round_rtt_ns = u64::MAX;
        }
    }

    /// Whether what was sent in this round trip, for what was acknowledged in it, is slow start's.
    fn grows(&mut self) -> bool {
        if self.round_sent == 0 {
            return true;
        }
        let sent = self.sent_to.saturating_sub(self.round_to) as f64;
        // Where the data ends within a round trip, or a loss ends it, it counts as far as it came.
        let answered = self.round_answered_to.saturating_sub(self.round_acked_to) as f64;
        let part = (answered / self.round_sent as f64).min(1.0);
        if part < LEAST_PART {
            return self.growing;
        }
        let before = self.round_sent as f64 * part;
        let most = self.most_sent as f64 * part;
        if !self.is_near_sender()
            && self.growing
            && !self.lost
            && sent > most
            && self.round.fills_path(self.now_ns, self.burst_rate)
        {
            // A round that leaves faster than the path takes it comes at the path's rate, however long it is.
            return true;
        }
        // Slow start goes where no round trip was, and behind a timeout to half of that (RFC 5681 §3.1).
        let fits = sent > most + self.segment() as f64
            || self.timed_out && sent <= most / 2.0 && sent <= MOST_GROWTH * before;
        let told = self.has_stood || self.has_doubled;
        let least = if told && !self.timed_out { DOUBLING_AGAIN } else { DOUBLING };
        self.has_doubled |= fits && sent >= DOUBLED * before;
        fits && sent >= least * before
    }

    /// A round trip is over: what its waits were for is known.
    fn settle(&mut self, now: u64, shared: &mut Shared) {
        let round = core::mem::replace(&mut self.round, Round { from_ns: now, ..Round::default() });
        self.round_over = false;
        let lasted = now.saturating_sub(round.from_ns);
        let near_sender = self.is_near_sender();
        if round.packets > 0 {
            self.spacing_ns = lasted / u64::from(round.packets);
            self.group_ns = lasted / u64::from(round.groups.max(1));
        }
        if round.burst_rate > 0.0 && lasted > 0 {
            let sent = round.bytes as f64;
            if round.burst_rate >= TRAIN * sent * 8e9 / lasted as f64 {
                self.path_burst = self.path_burst.max(round.burst_rate);
            }
        }
        let share = |part: u32| f64::from(part) >= PACED_SHARE * f64::from(round.packets.max(1));
        let silent = round.silent_ns > self.min_rtt_ns.unwrap_or(0) / 8;
        let paced = !silent
            && if near_sender {
                share(round.alone) || 2 * round.late > round.groups
            } else {
                share(round.alone) && !share(round.in_train)
            };
        // A pace and a window that came to be spread over the round trip look alike, where it cannot be seen what let a packet go.
        let told = silent || !near_sender || self.group_ns / 2 > self.answer_ns();
        let scale_is_known = self.scale_is_known();
        let announced = match near_sender {
            true => round.full && round.full_ns >= round.window_ns,
            false => round.full || scale_is_known && round.filling > round.trains / 2,
        };
        let path = self.known_path();
        let granted = self.grant.payload_rate(self.segment());
        // Routers that gave less than was asked for gave all that the path has.
        let from_rest = self.begins_at_rest();
        let all_of_path = from_rest && self.grant.is_all_of_path();
        // What a connection begins with is no more than this (RFC 6928); a larger window has been there before.
        let is_unknown =
            self.is_first_round && !(from_rest && self.round_sent <= INITIAL_WINDOW * self.segment());
        let lowered = granted.filter(|_| all_of_path || self.grant.is_lowered());
        // A sender that keeps to a grant waits for that, whether or not its rate is in the capture.
        let keeps_to_unknown = self.grant.is_unknown();
        let growing = self.growing && granted.is_none();
        shared.held = shared.held.saturating_sub(core::mem::take(&mut self.held_of_waits));
        let mut parts = self.waits_parts.drain(..);
        for wait in self.waits.drain(..) {
            let busy = path > 0.0 && wait.rate >= BUSY_PATH * path
                || lowered.is_some_and(|rate| wait.rate >= BUSY_PATH * rate);
            let settled = |owner| match owner {
                Owner::Known(limit) => limit,
                Owner::Window if announced && !scale_is_known => Limit::Unclear,
                Owner::Window if announced => Limit::ReceiveWindow,
                _ if busy => Limit::PathRate,
                Owner::Shrunk => Limit::CongestionWindow,
                Owner::Grant => Limit::Paced,
                // Before the first window was announced it may be that.
                _ if keeps_to_unknown && self.is_first_round => Limit::Unclear,
                _ if keeps_to_unknown => Limit::Paced,
                _ if growing && is_unknown => Limit::Unclear,
                _ if growing => Limit::SlowStart,
                _ if paced => Limit::Paced,
                Owner::Window if told => Limit::CongestionWindow,
                Owner::Window => Limit::Unclear,
                Owner::Pace if near_sender => Limit::Paced,
                Owner::Pace => Limit::Unclear,
            };
            shared.settled.clear();
            shared.settled.extend(parts.by_ref().take(wait.parts).map(|(ns, owner)| (ns, settled(owner))));
            self.ledger.enter(wait.from_ns, &shared.settled, settled(wait.owner), wait.bytes, wait.frame);
        }
        drop(parts);
        give_room(&mut self.waits, &mut shared.waits);
        give_room(&mut self.waits_parts, &mut shared.parts);
        self.is_first_round &= self.round_sent == 0;
    }

    /// A round trip is cut short, by a loss or the end: what it was is told by how far it had come.
    fn settle_early(&mut self, now: u64, shared: &mut Shared) {
        if !self.round_over {
            self.growing = self.grows();
        }
        self.settle(now, shared);
    }

    /// Rate of the path's narrowest link, as far as it was seen; 0 where it was not.
    fn known_path(&self) -> f64 {
        match self.is_near_sender() {
            true if self.path_rate > 0.0 => self.path_rate,
            true => self.train_rate,
            // What comes as fast as it was granted shows the pace, and nothing of the path.
            false if self.is_granted_pace(self.path_burst) => 0.0,
            false => self.path_burst,
        }
    }

    fn is_granted_pace(&self, rate: f64) -> bool {
        let granted = self.grant.payload_rate(self.segment());
        granted.is_some_and(|granted| (BUSY_PATH * granted..=BUSY * granted).contains(&rate))
    }

    /// The round trip of the last segment that is acknowledged.
    fn measure(&mut self, now: u64, ack: u64, sacked: bool, shared: &mut Shared) {
        let mut sent = None;
        let lone = self.in_flight.len() == 1;
        while let Some(&(end, at)) = self.in_flight.front()
            && end <= ack
        {
            self.in_flight.pop_front();
            shared.held = shared.held.saturating_sub(1);
            sent = (end > self.unmeasured_to).then_some(at);
        }
        give_back(&mut self.in_flight);
        let Some(at) = sent.filter(|at| now > *at) else {
            self.trains.clear();
            return;
        };
        let rtt = now - at;
        self.count_train(now, at, ack);
        self.rtt.get_or_insert_default().record(Duration::from_nanos(rtt).min(LONGEST_RTT));
        let least = self.min_rtt_ns.map_or(rtt, |least| least.min(rtt));
        self.min_rtt_ns = Some(least);
        let late = Some(rtt - least).filter(|late| lone && DELAYED_NS.contains(late) && *late > least / 8);
        self.late_ns = late.filter(|_| ack >= self.sent_to);
        self.round_rtt_ns = self.round_rtt_ns.min(rtt);
        let standing = (least as f64 * STANDING) as u64;
        self.inflated = rtt > least + standing.max(STANDING_NS);
        if !sacked {
            // One that reports a hole also answers what a delayed acknowledgment was kept back for.
            self.queue_ns = rtt - least;
            self.most_queue_ns = self.most_queue_ns.max(self.queue_ns);
        }
    }

    /// What was acknowledged within a round trip; what a repair releases at once is no rate of the path.
    fn count_delivered(&mut self, now: u64) {
        let Some(window) = self.min_rtt_ns.filter(|_| self.repair_to.is_none()) else {
            self.recent.clear();
            self.rate = 0.0;
            return;
        };
        if self.recent.back().is_none_or(|(at, _)| now.saturating_sub(*at) >= window / 16) {
            self.recent.push_back((now, self.acknowledged_to));
        }
        while let Some(&(at, from)) = self.recent.front()
            && now.saturating_sub(at) >= window
        {
            let rate =
                self.acknowledged_to.saturating_sub(from) as f64 * 8e9 / now.saturating_sub(at).max(1) as f64;
            self.delivered = self.delivered.max(rate);
            self.rate = rate;
            // The bursts of slow start queue, too, and not for the whole of a round.
            if self.inflated && self.queue_stands {
                self.path_rate = self.path_rate.max(rate);
            }
            self.recent.pop_front();
        }
        // Behind a repair there is less than a round trip of it.
        if self.rate == 0.0
            && let Some(&(at, from)) = self.recent.front()
            && now.saturating_sub(at) >= window / 2
        {
            self.rate =
                self.acknowledged_to.saturating_sub(from) as f64 * 8e9 / now.saturating_sub(at).max(1) as f64;
        }
    }

    /// What left together is acknowledged at the pace of the path (packet-train dispersion: Dovrolis, Ramanathan, Moore 2001).
    fn count_train(&mut self, now: u64, sent: u64, ack: u64) {
        self.trains.push_back((now, sent, ack));
        let enough = BURST as u64 * self.full_segment();
        while let Some(&(at, sent_at, from)) = self.trains.front()
            && ack - from >= enough
        {
            let took = now.saturating_sub(at);
            if self.trains.len() >= 4 && took > 0 && sent.saturating_sub(sent_at) <= took / 2 {
                self.train_rate = self.train_rate.max((ack - from) as f64 * 8e9 / took as f64);
            }
            self.trains.pop_front();
        }
        if self.trains.len() > MOST_TRAIN {
            self.trains.pop_front();
        }
    }

    /// How fast packets have come at the most, one behind the other.
    fn count_burst(&mut self, now: u64) {
        self.burst_of.push_back((now, self.bytes));
        if self.burst_of.len() > BURST {
            let (at, from) = self.burst_of.pop_front().expect("there are some");
            let (bits, took) =
                (self.bytes.saturating_sub(from) as f64 * 8e9, now.saturating_sub(at).max(1) as f64);
            if bits <= CLEARLY_LESS * self.round.burst_rate * took {
                return;
            }
            let rate = bits / took;
            self.burst_rate = self.burst_rate.max(rate);
            self.round.burst_rate = self.round.burst_rate.max(rate);
        }
    }

    /// A packet of this side passes the capture.
    fn sent(&mut self, number: u64, now: u64, packet: &TcpPacket, shared: &mut Shared) {
        let position = self.position(packet.seq);
        self.take_pending(now, shared);
        self.advance(now);
        self.ended |= packet.fin || packet.rst;
        self.note_probe(position, packet);
        if packet.payload == 0 {
            return;
        }
        let end = position + u64::from(packet.payload);
        self.data_packets += 1;
        self.marked += u64::from(packet.marked);
        // Data ends a handshake of which the rest was not seen.
        self.opens_ns = self.opens_ns.min(self.now_ns);
        if end <= self.sent_to {
            self.sent_again(now, position, end, packet, shared);
            return;
        }
        if position > self.sent_to && self.bytes > 0 {
            // Lost before the capture, or on its way by another one.
            self.hole_ns = Some(now);
        }
        let bytes = end - self.sent_to.max(position);
        if packet.payload > 1 && self.edge > 1 << 32 && end > self.edge + self.segment() {
            self.exceed_window();
        }
        if u64::from(packet.payload) <= self.mss() {
            self.most_payload = self.most_payload.max(u64::from(packet.payload));
        }
        let in_train = self.is_in_train(now, u64::from(packet.payload));
        if !in_train {
            self.train_edge = self.edge;
            self.round.trains += 1;
            self.round.filling += u32::from(self.train_fills);
        }
        self.round.in_train += u32::from(in_train);
        self.close_wait(number, now, u64::from(packet.payload), bytes, shared);
        self.bytes += bytes;
        self.sent_to = end;
        // What left together fills the window that was announced when it left; until all of it has come by, more is acknowledged.
        self.train_fills = self.train_edge > 1 << 32
            && self.train_edge.checked_sub(end).is_some_and(|room| room < self.segment());
        self.most_in_flight = self.most_in_flight.max(self.flight());
        self.count_burst(now);
        self.acked_in_wait = 0;
        self.bare_in_wait = 0;
        let is_apart = now.saturating_sub(self.new_ns) > self.prompt() / 4;
        self.together = if is_apart { bytes } else { self.together + bytes };
        self.new_ns = now;
        self.flight_before = self.flight();
        self.last_pushed = packet.push;
        self.grant.left(now, u64::from(packet.payload), self.segment());
        self.last_full = self.is_full(u64::from(packet.payload));
        if !self.last_full {
            self.short_to = end;
        }
        // A device cuts what is longer than a segment, and each piece is acknowledged by itself.
        let piece = self.segment().max(bytes / MOST_PIECES);
        let mut from = end - bytes;
        while from < end && shared.held < MAX_IN_FLIGHT {
            from = (from + piece).min(end);
            self.in_flight.push_back((from, now));
            shared.held += 1;
        }
    }

    /// A probe has what was acknowledged before, or the byte that a closed window does not take.
    fn note_probe(&mut self, position: u64, packet: &TcpPacket) {
        let is_old = packet.payload == 0 && position + 1 == self.acknowledged_to;
        let is_closed = self.state() == State::Closed;
        if is_closed && (is_old || packet.payload == 1) {
            self.timers.window_probes += 1;
        } else if is_old && self.flight() == 0 {
            self.timers.keep_alives += 1;
        }
    }

    /// There is a sign of a loss.
    fn begin_repair(&mut self, now: u64, shared: &mut Shared) {
        if self.repair_to.is_none() {
            self.repair_to = Some(self.sent_to);
            self.repairs = false;
            self.timed_out = self.duplicates == 0 && !self.hole_told;
            // A queue overflows when it is as long as it gets.
            let is_long = self.inflated && self.queue_ns >= self.most_queue_ns / 2;
            self.repair_queue_ns = is_long.then_some(self.queue_ns);
            self.settle_early(now, shared);
        }
    }

    /// What had been sent before, or fills a hole.
    fn sent_again(&mut self, now: u64, from: u64, end: u64, packet: &TcpPacket, shared: &mut Shared) {
        let half_rtt = self.min_rtt_ns.unwrap_or(0) / 2;
        if self.hole_ns.is_some_and(|hole| now.saturating_sub(hole) < half_rtt) {
            // It was overtaken.
            self.hole_ns = None;
            return;
        }
        self.retransmissions += 1;
        // What the receiver has already is a probe, or the repair of a loss that was none.
        if end > self.acknowledged_to {
            self.unmeasured_to = self.sent_to;
            // What was waited for was a sign of the loss.
            for (_, state) in &mut self.parts {
                if matches!(state, State::Open | State::Acknowledged) {
                    *state = State::Repair;
                }
            }
            self.begin_repair(now, shared);
            if let Some(queue) = self.repair_queue_ns {
                self.retransmissions_at_queue += 1;
                self.overflown_ns = self.overflown_ns.max(queue);
            }
            if !self.repairs {
                // What passed before had been sent when the sender learnt of the loss, however long a queue held it.
                (self.repairs, self.repair_to) = (true, Some(self.sent_to));
                let behind = (self.sent_to - end) / self.segment();
                let sign = if self.timed_out { Sign::Timeout { behind } } else { Sign::Told };
                self.repairs_told.begin(packet, sign);
            }
            let held = self.repairs_told.held();
            self.repairs_told.sent_again(from, end - from, shared.held < MAX_IN_FLIGHT);
            shared.held += self.repairs_told.held() - held;
            self.lost = true;
        }
    }

    /// New data passes: the wait before it is over.
    fn close_wait(&mut self, number: u64, now: u64, length: u64, bytes: u64, shared: &mut Shared) {
        if let Some(late) = self.late_ns.take()
            && now.saturating_sub(self.acked_ns) <= self.prompt()
        {
            self.timers.delayed_acks += 1;
            self.timers.delayed_acks_s += late as f64 / 1e9;
        }
        let waited: u64 = self.parts.iter().map(|(ns, _)| ns).sum();
        // Elsewhere than near the sender what leaves together comes at the pace of the path.
        let burst = self.is_near_sender()
            && waited <= self.prompt() / 4
            && self.parts.iter().all(|(_, state)| matches!(state, State::Open | State::Acknowledged));
        self.note_spacing(now, length);
        let open = if self.keeps_to_grant(now) {
            Owner::Grant
        } else if burst {
            self.burst
        } else {
            self.owner_of_open(now, length)
        };
        let shrank = open == Owner::Shrunk;
        if self.waits.len() == MOST_KEPT {
            take_room(&mut self.waits, &mut shared.waits);
            take_room(&mut self.waits_parts, &mut shared.parts);
        }
        let before = self.waits_parts.len();
        self.take_parts(Limit::Application, if shrank { Owner::Window } else { open }, open);
        if self.waits_parts.len() == before {
            self.waits_parts.push((0, open));
        }
        let parts = &self.waits_parts[before..];
        if let Some((_, longest)) = parts.iter().max_by_key(|(ns, _)| *ns).filter(|_| !burst) {
            self.burst = *longest;
        }
        let window: u64 = parts.iter().filter(|(_, owner)| *owner == Owner::Window).map(|(ns, _)| *ns).sum();
        self.round.window_ns += window;
        if open == Owner::Window {
            self.round.silent_ns = self.round.silent_ns.max(window);
        }
        self.round_answered_to = self.acknowledged_to;
        let parts = self.waits_parts.len() - before;
        self.waits.push(Wait {
            from_ns: self.from_ns,
            parts,
            owner: self.burst,
            bytes,
            frame: number,
            rate: self.rate,
        });
        // A long list counts with its room.
        let room = |len: usize, capacity: usize| if capacity > MOST_KEPT { capacity } else { len };
        let room = room(self.waits.len(), self.waits.capacity())
            + room(self.waits_parts.len(), self.waits_parts.capacity());
        shared.held += room.saturating_sub(self.held_of_waits);
        self.held_of_waits = room;
        if self.round_over {
            self.settle(now, shared);
        } else if self.waits.len() > MOST_WAITS || shared.held >= MAX_IN_FLIGHT {
            self.settle_early(now, shared);
        }
        self.from_ns = now;
    }

    /// How this packet left, beside the others of the round trip.
    fn note_spacing(&mut self, now: u64, length: u64) {
        let since = now.saturating_sub(self.new_ns);
        self.round.packets += 1;
        self.round.bytes += length;
        if self.acked_ns < self.new_ns && since > self.spacing_ns / 2 {
            self.round.alone += 1;
        }
        if since > self.spacing_ns / 2 {
            self.round.groups += 1;
            let behind = now.saturating_sub(self.acked_ns);
            if self.acked_ns >= self.new_ns && behind > self.answer_ns().max(self.group_ns / 8) {
                self.round.late += 1;
            }
        }
    }

    /// It is as close behind the packet before as a path lets it come.
    fn is_in_train(&mut self, now: u64, length: u64) -> bool {
        let since = now.saturating_sub(self.new_ns);
        if self.train_of != (length, self.burst_rate) {
            self.train_of = (length, self.burst_rate);
            self.train_ns = BUSY * length as f64 * 8e9 / self.burst_rate;
        }
        self.burst_rate > 0.0 && since as f64 <= self.train_ns
    }

    /// The parts of the wait that is over go to those of its round trip, each with its owner; those of parts with nothing in flight, and with
    /// room, are given.
    fn take_parts(&mut self, idle: Limit, open: Owner, acknowledged: Owner) {
        // Without the handshake nobody knows when an acknowledgment reached the sender, so that nothing in flight may be much of it.
        let idle =
            if self.total_rtt_ns.is_none() && idle == Limit::Application { Limit::Unclear } else { idle };
        let known = self.scale_is_known();
        let owner = |state| match state {
            State::Idle => Owner::Known(idle),
            State::Full if !known => Owner::Known(Limit::Unclear),
            State::Full => Owner::Known(Limit::ReceiveWindow),
            State::Closed => Owner::Known(Limit::ZeroWindow),
            State::Repair => Owner::Known(Limit::Loss),
            State::Open => open,
            State::Acknowledged => acknowledged,
        };
        self.waits_parts.extend(self.parts.drain(..).map(|(ns, state)| (ns, owner(state))));
    }

    /// How close an acknowledgment and what it lets go are: at the sender itself as its host takes, elsewhere as the way to it varies.
    fn prompt(&self) -> u64 {
        let rtt = self.min_rtt_ns.unwrap_or(0);
        if self.is_near_sender() {
            (rtt / 16).clamp(LEAST_PROMPT_NS, PROMPT_NS) + self.missing_ns / 4
        } else {
            (rtt / 4).max(LEAST_PROMPT_NS)
        }
    }

    /// As long as the sender's host takes to answer what arrives, as the handshake has shown it.
    fn answer_ns(&self) -> u64 {
        2 * self.missing_ns + TICKS_NS
    }

    /// The sender had more to send, and has waited no longer than the rate that it was granted asks of it.
    fn keeps_to_grant(&self, now: u64) -> bool {
        let wait = self.grant.wait_ns(self.new_ns);
        self.last_full && wait > 0 && now.saturating_sub(self.new_ns) as f64 <= BUSY * wait as f64
    }

    fn is_near_sender(&self) -> bool {
        self.total_rtt_ns.is_some_and(|total| self.missing_ns <= total / 10)
    }

    /// What a sender waited for who had room in the announced window and data in flight.
    fn owner_of_open(&self, now: u64, length: u64) -> Owner {
        if self.total_rtt_ns.is_none() {
            return Owner::Known(Limit::Unclear);
        }
        // What leaves behind a message of the peer's, and did not behind acknowledgments or had none to wait for, is the program's answer: a request,
        // or what a window within the program lets go.
        let answers = self
            .heard_ns
            .is_some_and(|heard| heard >= self.new_ns && now.saturating_sub(heard) <= self.prompt());
        if answers && (self.flight() == 0 || self.bare_in_wait >= LEAST_BARE) {
            return Owner::Known(Limit::Application);
        }
        // Acknowledgments let nothing go: the window has shrunk.
        let full = self.parts.iter().any(|(_, state)| matches!(state, State::Full | State::Closed));
        let share = if full { 2 } else { 4 };
        let behind = now.saturating_sub(self.acked_ns);
        if self.last_full
            && self.is_full(length)
            && behind <= self.prompt()
            && self.acked_in_wait > (self.flight_before / share).max(4 * self.mss())
        {
            return Owner::Shrunk;
        }
        if full {
            // The window had opened, and not by enough (RFC 9293 §3.8.6.2).
            return Owner::Known(Limit::ReceiveWindow);
        }
        let near_sender = self.is_near_sender();
        let since = now.saturating_sub(self.new_ns);
        // Short segments may be all there is: their fastest burst is the path's only where it stood out of a round trip.
        let fastest = if self.last_full && self.is_full(length) { self.burst_rate } else { self.path_burst };
        if !near_sender
            && fastest > 0.0
            && since as f64 <= BUSY * length as f64 * 8e9 / fastest
            && self.burst != Owner::Known(Limit::Handshake)
        {
            // What left together comes as fast as the path lets it.
            return self.burst;
        }
        let prompt = now.saturating_sub(self.acked_ns) <= self.prompt();
        let short = !self.is_full(length);
        if short && now.saturating_sub(self.short_acked_ns) <= self.prompt()
            || short && prompt && self.flight() == 0
        {
            return Owner::Known(Limit::Nagle);
        }
        let slowest_pace = (self.min_rtt_ns.unwrap_or(0) as f64 / SLOWEST_PACE) as u64;
        // What a pace lets go together is a millisecond of it, and then as long nothing leaves.
        let slowest_pace = if near_sender && self.together > self.segment() {
            slowest_pace.max(TOGETHER_NS)
        } else {
            slowest_pace
        };
        if self.last_full && !self.last_pushed && !prompt && since > slowest_pace {
            // It said that more follows (RFC 9293 §3.9.1, RFC 1122 §4.2.2.2), and nothing let that go: the rest of a message was held back,
            // until the next one made a full segment of it.
            return Owner::Known(Limit::Nagle);
        }
        if !self.last_full {
            // A short segment leaves when there is no more to put into it. What then follows each acknowledgment finds room in a send buffer.
            // Elsewhere that is told where the acknowledgment ended a silence.
            let silence: u64 =
                self.parts.iter().filter(|(_, state)| *state == State::Open).map(|(ns, _)| *ns).sum();
            let freed = near_sender || silence > since / 2 && since > slowest_pace / 2;
            return if prompt && freed { Owner::Window } else { Owner::Known(Limit::Application) };
        }
        if prompt && self.inflated && (self.queue_stands || self.known_path() == 0.0) {
            return Owner::Known(Limit::PathRate);
        }
        if prompt {
            return Owner::Window;
        }
        if since > slowest_pace {
            // No pace of a window of segments is so slow.
            return Owner::Known(Limit::Application);
        }
        Owner::Pace
    }

    fn finish(&mut self, first_ns: u64, last: (u64, u64)) {
        let mut shared = Shared::default();
        self.take_pending(last.1, &mut shared);
        self.advance(last.1);
        let idle = if self.ended { Limit::Closing } else { Limit::Application };
        let closing = Owner::Known(Limit::Closing);
        let before = self.waits_parts.len();
        self.take_parts(idle, closing, closing);
        let parts = self.waits_parts.len() - before;
        self.waits.push(Wait {
            from_ns: self.from_ns,
            parts,
            owner: closing,
            bytes: 0,
            frame: last.0,
            rate: self.rate,
        });
        self.settle_early(last.1, &mut shared);
        if self.opening_ns > 0 {
            self.ledger.enter(
                first_ns,
                &[(self.opening_ns, Limit::Handshake)],
                Limit::Handshake,
                0,
                self.opened_by,
            );
        }
    }
}

/// What was found, in a sentence.
pub(crate) fn summary(report: &ConnectionReport) -> String {
    if report.bytes == 0 {
        return "no data was sent".to_owned();
    }
    let Some(first) = report.limits.first().filter(|_| report.duration_s > 0.0) else {
        return "all of it passed at one moment: there was nothing to wait for".to_owned();
    };
    if report.copies * COPIES_MATTER > report.data_packets {
        return format!(
            "{} of {} packets with data are in the capture twice, as where it has several interfaces in one: what held the \
             connection cannot be told; capture one of them, or all by `-i any -y LINUX_SLL2`",
            report.copies, report.data_packets
        );
    }
    let percent = |share: f64| format!("{:.0} %", 100.0 * share / report.duration_s);
    let took = format!("{} of {}", percent(first.time_s), seconds(report.duration_s));
    let rtt = report.min_rtt_s;
    let least = report
        .delivered_bit_per_s
        .map(|rate| format!("; the path had at least {}", bit_rate_text(rate)))
        .unwrap_or_default();
    match first.limit {
        Limit::ReceiveWindow => {
            let allowed = report.window.zip(rtt).map(|(window, rtt)| {
                let rate = bit_rate_text(window as f64 * 8.0 / rtt);
                format!(": {} over {} allow {rate}", size(window), seconds(rtt))
            });
            // A path that a window leaves half empty shows its rate by what left together.
            let path =
                report.path_rate_bit_per_s.filter(|_| allowed.is_some() && report.vantage != Vantage::Middle);
            let path = path.map(|rate| format!("; the path had at least {}", bit_rate_text(rate)));
            let (allowed, path) = (allowed.unwrap_or_default(), path.unwrap_or_default());
            format!("{took} were spent with the receive window full{allowed}{path}")
        }
        Limit::ZeroWindow => {
            format!("{took} were spent with the receive window closed: the receiving program does not read")
        }
        Limit::SlowStart => format!(
            "{took} were spent in slow start, on a round trip of {}",
            rtt.map_or_else(|| "unknown length".to_owned(), seconds)
        ),
        Limit::CongestionWindow => {
            let loss = if report.retransmissions > 0 {
                format!(", which {} retransmissions kept small", report.retransmissions)
            } else if report.marks_echoed > 0 {
                ", which the marks of congested routers (ECN) kept small".to_owned()
            } else {
                String::new()
            };
            format!("{took} were spent waiting for the sender's own window{loss}{least}")
        }
        Limit::SendBuffer => {
            format!(
                "{took} were spent with the send buffer full: it holds less than a round trip can carry{least}"
            )
        }
        Limit::Loss => format!(
            "{took} were spent on the repair of losses: {} of {} packets were sent again{}",
            report.retransmissions,
            report.data_packets,
            report
                .queue_s
                .map(|queue| format!(
                    ", {} of them when {} of queue stood",
                    report.retransmissions_at_queue,
                    seconds(queue)
                ))
                .unwrap_or_default()
        ),
        Limit::PathRate => {
            let queue = report.rtt_s.zip(rtt).map(|(rtts, least)| {
                format!(", with {} of queue in the median", seconds((rtts[0] - least).max(0.0)))
            });
            let rate = report
                .delivered_bit_per_s
                .map(|rate| format!(" of {}", bit_rate_text(rate)))
                .unwrap_or_default();
            format!("{took} the path was full: it was used at its rate{rate}{}", queue.unwrap_or_default())
        }
        Limit::Paced => match report.granted_bit_per_s {
            Some(rate) => format!(
                "{took} the sender kept to the rate that it was granted, {} with headers{least}",
                bit_rate_text(rate as f64)
            ),
            None => format!("{took} the sender kept to a pace of its own{least}"),
        },
        Limit::Nagle => format!(
            "{took} a last short segment was held back until all before it was acknowledged (Nagle's algorithm): TCP_NODELAY sends it at once"
        ),
        Limit::Application => format!("{took} the sending program had nothing to send{least}"),
        Limit::Handshake => format!("{took} were spent on opening the connection"),
        Limit::Closing => format!("{took} were spent after the last new data was sent"),
        Limit::Unclear => format!("of {took} this capture does not tell what was waited for"),
    }
}

fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

fn size(bytes: u64) -> String {
    if bytes >= 1_000_000 {
        format!("{:.2} MB", bytes as f64 / 1e6)
    } else {
        format!("{:.1} kB", bytes as f64 / 1e3)
    }
}
