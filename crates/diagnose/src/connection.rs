//! Connections, packet by packet.

use crate::capture::Frame;
use crate::ledger::{Ledger, Limit};
use crate::packet::{Link, TcpPacket, parse};
use crate::report::{ConnectionReport, LimitShare, Report, Vantage};
use farpath_units::{Duration, DurationHistogram};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Connections that are followed; packets of others are counted.
pub const MAX_CONNECTIONS: usize = 100_000;

/// A capture may say any time: the sum of some of them has to fit.
const LATEST_NS: u64 = u64::MAX / 4;
/// Packets in flight, and acknowledgments on their way to the sender, that are held for all connections together.
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
/// Round trips beyond an hour count as that.
const LONGEST_RTT: Duration = Duration::from_secs(3600);
/// Packets by which the rate of a burst is measured.
const BURST: usize = 8;
/// Data that comes at no more than so many times the spacing of the fastest burst keeps a line busy.
const BUSY: f64 = 1.5;
/// Segments that a paced sender has in a round trip at the least: BBR's smallest window.
const SLOWEST_PACE: f64 = 4.0;
/// Parts of a wait that are told apart.
const MOST_PARTS: usize = 1000;
/// Payload of a packet where nothing says how long one may be.
const USUAL_MSS: u32 = 1460;

/// What is known of a capture so far.
#[derive(Debug, Default)]
pub struct Diagnosis {
    connections: HashMap<(u32, SocketAddr, SocketAddr), Connection>,
    frames: u64,
    tcp_packets: u64,
    unknown_link: u64,
    not_followed: u64,
    /// Of connections whose addresses and ports others have now.
    ended: Vec<ConnectionReport>,
    /// Held for all connections together.
    held: usize,
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
            return;
        };
        if let Some(packet) = parse(link, frame.data, frame.length) {
            self.packet(frame.number, frame.interface, frame.time_ns, &packet);
        }
    }

    /// Takes a TCP packet that was seen at `time_ns`, nanoseconds since 1970; what is later than the year 2116 counts as then.
    pub fn packet(&mut self, number: u64, interface: u32, time_ns: u64, packet: &TcpPacket) {
        let time_ns = time_ns.min(LATEST_NS);
        self.tcp_packets += 1;
        let (one, other) = (packet.source.min(packet.destination), packet.source.max(packet.destination));
        let full = self.connections.len() >= MAX_CONNECTIONS;
        let key = (interface, one, other);
        if full && !self.connections.contains_key(&key) {
            self.not_followed += 1;
            return;
        }
        // Ports are used again: what was there before is a connection of its own.
        if packet.syn
            && packet.ack.is_none()
            && self.connections.get(&key).is_some_and(Connection::has_begun)
            && let Some(before) = self.connections.remove(&key)
        {
            self.held = self.held.saturating_sub(before.halves.iter().map(Half::held).sum());
            if self.ended.len() < MAX_CONNECTIONS {
                self.ended.push(before.finish(interface));
            }
        }
        let recorded = &mut self.recorded;
        let connection = self.connections.entry(key).or_insert_with(|| {
            let mut connection = Connection::new(one, other, number, time_ns);
            if *recorded > 0 {
                *recorded -= 1;
                connection.halves.iter_mut().for_each(|half| half.ledger.intervals = Some(Vec::new()));
            }
            connection
        });
        connection.packet(number, time_ns, packet, &mut self.held);
    }

    /// What is to be said of the whole.
    pub fn finish(self) -> Report {
        let mut connections = self.ended;
        let rest = self.connections.into_iter();
        connections.extend(rest.map(|((interface, ..), connection)| connection.finish(interface)));
        connections.sort_by(|one, other| {
            let key = |report: &ConnectionReport| (core::cmp::Reverse(report.bytes), report.frames.0);
            key(one).cmp(&key(other))
        });
        Report {
            frames: self.frames,
            tcp_packets: self.tcp_packets,
            unknown_link: self.unknown_link,
            connections,
            packets_not_followed: self.not_followed,
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
        }
    }

    /// Whether its handshake is over, or data has been seen.
    fn has_begun(&self) -> bool {
        self.opening.ack_ns.is_some() || self.halves.iter().any(|half| half.bytes > 0)
    }

    fn packet(&mut self, number: u64, time_ns: u64, packet: &TcpPacket, held: &mut usize) {
        let now = time_ns.max(self.last.1);
        self.last = (number, now);
        let side = usize::from(packet.source != self.halves[0].address);
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
            peer.acknowledged(now, ack, packet, held);
        }
        self.mss = self.mss.max(packet.payload.min(USUAL_MSS));
        own.sent(number, now, packet, held);
    }

    fn open(&mut self, side: usize, now: u64, packet: &TcpPacket) {
        // Windows of a connection are scaled where both SYNs say so; each then scales its own.
        let scale = packet.window_scale;
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
            vantage,
            frames: (first.0, last.0),
            duration_s: seconds(last.1 - first.1),
            bytes: half.bytes,
            bytes_back,
            data_packets: half.data_packets,
            retransmissions: half.retransmissions,
            bytes_not_captured: half.not_captured,
            mss: half.mss.unwrap_or(self.mss),
            window: (opened && half.most_window > 0).then_some(half.most_window),
            min_rtt_s: half.min_rtt_ns.map(seconds),
            rtt_s: rtt,
            delivered_bit_per_s: (half.delivered > 0.0).then_some(half.delivered),
            path_rate_bit_per_s: Some(if vantage == Vantage::NearSender {
                half.path_rate
            } else {
                half.burst_rate
            })
            .filter(|rate| *rate > 0.0 && vantage != Vantage::Unknown),
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
    /// None of these.
    Open,
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
    duplicates: u32,
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
    /// Sent in the last round trip, and the most in any.
    round_sent: u64,
    most_sent: u64,
    /// The shortest round trip of this round, and whether that of the last one was above the floor.
    round_rtt_ns: u64,
    queue_stands: bool,
    growing: bool,
    grew: bool,
    /// Times and positions of acknowledgments within a round trip.
    recent: VecDeque<(u64, u64)>,
    delivered: f64,
    /// What was acknowledged within the last round trip, as a rate; and the most of that while a queue stood, which is the path's.
    rate: f64,
    path_rate: f64,
    /// Times of the last packets with new data and the bytes that had passed by each; and the fastest that so many have come, bit/s.
    burst_of: VecDeque<(u64, u64)>,
    burst_rate: f64,
    lost: bool,
    most_window: u64,
    bytes: u64,
    data_packets: u64,
    retransmissions: u64,
    not_captured: u64,
    ended: bool,
    /// What the last wait worth the name was for: what leaves right behind has waited for the same.
    burst: Limit,
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
}

impl Half {
    fn new(address: SocketAddr, now: u64) -> Half {
        Half {
            address,
            place: None,
            sent_to: 0,
            acknowledged_to: 0,
            edge: 0,
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
            duplicates: 0,
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
            round_sent: 0,
            most_sent: 0,
            round_rtt_ns: u64::MAX,
            queue_stands: false,
            growing: true,
            grew: true,
            recent: VecDeque::new(),
            delivered: 0.0,
            rate: 0.0,
            path_rate: 0.0,
            burst_of: VecDeque::new(),
            burst_rate: 0.0,
            lost: false,
            most_window: 0,
            bytes: 0,
            data_packets: 0,
            retransmissions: 0,
            not_captured: 0,
            ended: false,
            burst: Limit::Handshake,
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
        self.missing_ns = missing_ns;
        self.total_rtt_ns = Some(total_ns);
        self.min_rtt_ns = Some(total_ns.max(1));
    }

    /// What it holds of what is held for all together.
    fn held(&self) -> usize {
        self.in_flight.len() + self.pending.len()
    }

    fn mss(&self) -> u64 {
        u64::from(self.mss.unwrap_or(USUAL_MSS))
    }

    /// Payload of a segment that is as long as it may be: options take up to 40 B.
    fn full_segment(&self) -> u64 {
        self.mss().min(u64::from(USUAL_MSS)).saturating_sub(40)
    }

    /// Where a sequence number is in the stream: near the last one.
    fn position(&mut self, seq: u32) -> u64 {
        let (last, at) = *self.place.get_or_insert((seq, 1 << 32));
        let position = at.saturating_add_signed(i64::from(seq.wrapping_sub(last).cast_signed()));
        if position > at {
            self.place = Some((seq, position));
        }
        if self.sent_to == 0 {
            (self.sent_to, self.acknowledged_to, self.edge, self.round_to) =
                (position, position, position, position);
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
        } else if known && self.flight() > 0 && self.edge.saturating_sub(self.sent_to) < self.mss() {
            State::Full
        } else if self.flight() == 0 {
            State::Idle
        } else {
            State::Open
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
        let many = self.parts.len() > MOST_PARTS;
        match self.parts.last_mut() {
            Some((last, same)) if *same == state || many => *last += ns,
            _ => self.parts.push((ns, state)),
        }
    }

    /// An acknowledgment passes the capture.
    fn acknowledged(&mut self, now: u64, ack: u32, packet: &TcpPacket, held: &mut usize) {
        let Some((last, at)) = self.place else { return };
        let ack = at.saturating_add_signed(i64::from(ack.wrapping_sub(last).cast_signed()));
        let edge = self.peer_scale.map(|scale| ack + (u64::from(packet.window) << scale));
        self.most_window = self.most_window.max(edge.map_or(0, |edge| edge - ack));
        let newest = self.pending.back().map_or(self.acknowledged_to, |pending| pending.ack);
        let same_edge = edge
            == Some(self.pending.back().map_or(Some(self.edge), |pending| pending.edge).unwrap_or(self.edge));
        let duplicate = ack == newest && packet.payload == 0 && !packet.fin && same_edge;
        let pending = Pending {
            at_ns: now + self.missing_ns,
            ack,
            edge,
            duplicate,
            sacked: packet.sacked_to.is_some(),
        };
        if self.missing_ns == 0 || *held >= MAX_IN_FLIGHT {
            self.take(pending, held);
        } else {
            self.pending.push_back(pending);
            *held += 1;
        }
    }

    /// Acknowledgments that have reached the sender by `now`.
    fn take_pending(&mut self, now: u64, held: &mut usize) {
        while self.pending.front().is_some_and(|pending| pending.at_ns <= now) {
            let pending = self.pending.pop_front().expect("there is one");
            *held = held.saturating_sub(1);
            self.take(pending, held);
        }
    }

    fn take(&mut self, pending: Pending, held: &mut usize) {
        let Pending { at_ns, ack, edge, duplicate, sacked } = pending;
        self.advance(at_ns);
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
                self.repair_to.get_or_insert(self.sent_to);
            }
            return;
        }
        self.duplicates = 0;
        self.measure(at_ns, ack, held);
        if self.acknowledged_to < self.short_to && ack >= self.short_to {
            self.short_acked_ns = at_ns;
        }
        self.acknowledged_to = ack;
        self.acked_ns = at_ns;
        if self.repair_to.is_some_and(|to| ack >= to) {
            self.repair_to = None;
            self.recent.clear();
        } else if sacked {
            self.repair_to.get_or_insert(self.sent_to);
        }
        self.count_delivered(at_ns);
        if ack >= self.round_to {
            // What left within the round; it is the same wherever it is seen.
            let sent = self.sent_to - self.round_to;
            // Behind a loss slow start ends at half of what there was; before, it goes where no round was.
            let below = if self.lost { sent <= self.most_sent / 2 } else { sent > self.most_sent };
            let grew = below && sent as f64 >= DOUBLING * self.round_sent as f64;
            // Behind a bottleneck a round comes late, and one of them may seem not to grow.
            self.growing = grew || (self.grew && self.growing && !self.lost && !self.is_near_sender());
            self.grew = grew;
            self.most_sent = self.most_sent.max(sent);
            self.round_sent = sent;
            self.round_to = self.sent_to;
            let floor = self.min_rtt_ns.unwrap_or(0);
            self.queue_stands = self.round_rtt_ns != u64::MAX
                && self.round_rtt_ns > floor + (floor / LEAST_STANDING).max(LEAST_PROMPT_NS);
            self.round_rtt_ns = u64::MAX;
        }
    }

    /// The round trip of the last segment that is acknowledged.
    fn measure(&mut self, now: u64, ack: u64, held: &mut usize) {
        let mut sent = None;
        while let Some(&(end, at)) = self.in_flight.front()
            && end <= ack
        {
            self.in_flight.pop_front();
            *held = held.saturating_sub(1);
            sent = (end > self.unmeasured_to).then_some(at);
        }
        let Some(rtt) = sent.map(|at| now.saturating_sub(at)).filter(|rtt| *rtt > 0) else { return };
        self.rtt.get_or_insert_default().record(Duration::from_nanos(rtt).min(LONGEST_RTT));
        let least = self.min_rtt_ns.map_or(rtt, |least| least.min(rtt));
        self.min_rtt_ns = Some(least);
        self.round_rtt_ns = self.round_rtt_ns.min(rtt);
        let standing = (least as f64 * STANDING) as u64;
        self.inflated = rtt > least + standing.max(STANDING_NS);
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
    }

    /// How fast packets have come at the most, one behind the other.
    fn count_burst(&mut self, now: u64) {
        self.burst_of.push_back((now, self.bytes));
        if self.burst_of.len() > BURST {
            let (at, from) = self.burst_of.pop_front().expect("there are some");
            let rate = self.bytes.saturating_sub(from) as f64 * 8e9 / now.saturating_sub(at).max(1) as f64;
            self.burst_rate = self.burst_rate.max(rate);
        }
    }

    /// A packet of this side passes the capture.
    fn sent(&mut self, number: u64, now: u64, packet: &TcpPacket, held: &mut usize) {
        let position = self.position(packet.seq);
        self.take_pending(now, held);
        self.advance(now);
        self.ended |= packet.fin || packet.rst;
        if packet.payload == 0 {
            return;
        }
        let end = position + u64::from(packet.payload);
        self.data_packets += 1;
        // Data ends a handshake of which the rest was not seen.
        self.opens_ns = self.opens_ns.min(self.now_ns);
        if end <= self.sent_to {
            self.sent_again(now, end);
            return;
        }
        if position > self.sent_to && self.bytes > 0 {
            // Lost before the capture, or on its way by another one.
            self.hole_ns = Some(now);
        }
        let bytes = end - self.sent_to.max(position);
        self.close_wait(number, now, u64::from(packet.payload), bytes);
        self.bytes += bytes;
        self.sent_to = end;
        self.count_burst(now);
        self.new_ns = now;
        self.last_full = u64::from(packet.payload) >= self.full_segment();
        if !self.last_full {
            self.short_to = end;
        }
        if *held < MAX_IN_FLIGHT {
            self.in_flight.push_back((end, now));
            *held += 1;
        }
    }

    /// What had been sent before, or fills a hole.
    fn sent_again(&mut self, now: u64, end: u64) {
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
                if *state == State::Open {
                    *state = State::Repair;
                }
            }
            self.repair_to.get_or_insert(self.sent_to);
            self.lost = true;
        }
    }

    /// New data passes: the wait before it is over.
    fn close_wait(&mut self, number: u64, now: u64, length: u64, bytes: u64) {
        let waited: u64 = self.parts.iter().map(|(ns, _)| ns).sum();
        // Elsewhere than near the sender what leaves together comes at the pace of the path.
        let burst = self.is_near_sender()
            && waited <= self.prompt() / 4
            && self.parts.iter().all(|(_, state)| *state == State::Open);
        let open = if burst { self.burst } else { self.owner_of_open(now, length) };
        let parts = self.take_parts(Limit::Application, open);
        let parts = if parts.is_empty() { vec![(0, open)] } else { parts };
        if let Some((_, longest)) = parts.iter().max_by_key(|(ns, _)| *ns).filter(|_| !burst) {
            self.burst = *longest;
        }
        self.ledger.enter(self.from_ns, &parts, self.burst, bytes, number);
        self.from_ns = now;
    }

    /// The parts of the wait that is over, each with its owner; those of parts with nothing in flight, and with room, are given.
    fn take_parts(&mut self, idle: Limit, open: Limit) -> Vec<(u64, Limit)> {
        // Without the handshake nobody knows when an acknowledgment reached the sender, so that nothing in flight may be much of it.
        let idle =
            if self.total_rtt_ns.is_none() && idle == Limit::Application { Limit::Unclear } else { idle };
        let owner = |state| match state {
            State::Idle => idle,
            State::Full => Limit::ReceiveWindow,
            State::Closed => Limit::ZeroWindow,
            State::Repair => Limit::Loss,
            State::Open => open,
        };
        self.parts.drain(..).map(|(ns, state)| (ns, owner(state))).collect()
    }

    /// How close an acknowledgment and what it lets go are: at the sender itself as its host takes, elsewhere as the way to it varies.
    fn prompt(&self) -> u64 {
        let rtt = self.min_rtt_ns.unwrap_or(0);
        if self.is_near_sender() {
            (rtt / 16).clamp(LEAST_PROMPT_NS, PROMPT_NS) + self.missing_ns / 4
        } else {
            PROMPT_NS.max(rtt / 4)
        }
    }

    fn is_near_sender(&self) -> bool {
        self.total_rtt_ns.is_some_and(|total| self.missing_ns <= total / 10)
    }

    /// What a sender waited for who had room in the announced window and data in flight.
    fn owner_of_open(&self, now: u64, length: u64) -> Limit {
        if self.total_rtt_ns.is_none() {
            return Limit::Unclear;
        }
        if self.parts.iter().any(|(_, state)| matches!(state, State::Full | State::Closed)) {
            // The window had opened, and not by enough (RFC 9293 §3.8.6.2).
            return Limit::ReceiveWindow;
        }
        let near_sender = self.is_near_sender();
        let prompt = now.saturating_sub(self.acked_ns) <= self.prompt();
        let short = length < self.full_segment();
        if short && now.saturating_sub(self.short_acked_ns) <= self.prompt()
            || short && prompt && self.flight() == 0
        {
            return Limit::Nagle;
        }
        let path_rate = if near_sender { self.path_rate } else { self.burst_rate };
        if path_rate > 0.0 && self.rate >= BUSY_PATH * path_rate {
            return Limit::PathRate;
        }
        if !self.last_full {
            // A short segment leaves when there is no more to put into it. What then follows each acknowledgment finds room in a send buffer.
            return if near_sender && prompt { Limit::CongestionWindow } else { Limit::Application };
        }
        let since = now.saturating_sub(self.new_ns) as f64;
        if !near_sender
            && self.burst_rate > 0.0
            && since <= BUSY * length as f64 * 8e9 / self.burst_rate
            && self.burst != Limit::Handshake
        {
            // What left together comes as fast as the path lets it.
            return self.burst;
        }
        if prompt {
            return if self.inflated {
                Limit::PathRate
            } else if self.growing {
                Limit::SlowStart
            } else {
                Limit::CongestionWindow
            };
        }
        if since > self.min_rtt_ns.unwrap_or(0) as f64 / SLOWEST_PACE {
            // No pace of a window of segments is so slow.
            return Limit::Application;
        }
        match near_sender {
            // What doubles may be paced.
            true if self.growing => Limit::SlowStart,
            true => Limit::Paced,
            false => Limit::Unclear,
        }
    }

    fn finish(&mut self, first_ns: u64, last: (u64, u64)) {
        let mut held = 0;
        self.take_pending(last.1, &mut held);
        self.advance(last.1);
        if self.opening_ns > 0 {
            self.ledger.enter(
                first_ns,
                &[(self.opening_ns, Limit::Handshake)],
                Limit::Handshake,
                0,
                self.opened_by,
            );
        }
        let idle = if self.ended { Limit::Closing } else { Limit::Application };
        let parts = self.take_parts(idle, Limit::Closing);
        self.ledger.enter(self.from_ns, &parts, Limit::Closing, 0, last.0);
    }
}

/// What was found, in a sentence.
pub(crate) fn summary(report: &ConnectionReport) -> String {
    let Some(first) = report.limits.first().filter(|_| report.duration_s > 0.0 && report.bytes > 0) else {
        return "no data was sent".to_owned();
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share / report.duration_s);
    let took = format!("{} of {}", percent(first.time_s), seconds(report.duration_s));
    let rtt = report.min_rtt_s;
    let least = report
        .delivered_bit_per_s
        .map(|rate| format!("; the path had at least {}", bit_rate(rate)))
        .unwrap_or_default();
    match first.limit {
        Limit::ReceiveWindow => {
            let allowed = report.window.zip(rtt).map(|(window, rtt)| {
                let rate = bit_rate(window as f64 * 8.0 / rtt);
                format!(": {} over {} allow {rate}", size(window), seconds(rtt))
            });
            format!("{took} were spent with the receive window full{}", allowed.unwrap_or_default())
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
            "{took} were spent on the repair of losses: {} of {} packets were sent again",
            report.retransmissions, report.data_packets
        ),
        Limit::PathRate => {
            let queue = report.rtt_s.zip(rtt).map(|(rtts, least)| {
                format!(", with {} of queue in the median", seconds((rtts[0] - least).max(0.0)))
            });
            let rate =
                report.delivered_bit_per_s.map(|rate| format!(" of {}", bit_rate(rate))).unwrap_or_default();
            format!("{took} the path was full: it was used at its rate{rate}{}", queue.unwrap_or_default())
        }
        Limit::Paced => format!("{took} the sender kept to a pace of its own{least}"),
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

fn bit_rate(rate: f64) -> String {
    match rate {
        rate if rate >= 1e9 => format!("{:.2} Gbit/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.2} Mbit/s", rate / 1e6),
        rate => format!("{:.1} kbit/s", rate / 1e3),
    }
}

fn size(bytes: u64) -> String {
    if bytes >= 1_000_000 {
        format!("{:.2} MB", bytes as f64 / 1e6)
    } else {
        format!("{:.1} kB", bytes as f64 / 1e3)
    }
}
