//! One end of a connection: states, handshake, teardown (RFC 9293 §3.3.2, §3.5, §3.6, §3.10.7).

mod arrival;
mod ecn;

use crate::cc::{Controller, OwnController, Pace};
use crate::config::Config;
use crate::receiver::{MAX_SHIFT, Receiver};
use crate::sender::{Sender, Transmission};
use crate::{Ecn, Endpoint, Flags, MAX_MSS, SackBlock, Segment, Seq, Timestamps};
use farpath_units::{Bytes, Duration, Instant};

/// The clock that initial sequence numbers follow (RFC 9293 §3.4.1).
const ISN_TICK_NS: u64 = 4_000;

/// RFC 9293 §3.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the states are the RFC's")]
pub enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// Both ends have sent FIN, and have had it acknowledged.
    Finished,
    /// No answer to any SYN.
    ConnectTimedOut,
    /// The peer refused the SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// One segment was retransmitted as often as is allowed.
    RetriesExhausted,
    /// The application aborted it.
    Aborted,
}

impl CloseReason {
    /// In words.
    pub const fn describe(self) -> &'static str {
        match self {
            CloseReason::Finished => "finished",
            CloseReason::ConnectTimedOut => "no answer to any SYN",
            CloseReason::Refused => "refused by peer",
            CloseReason::Reset => "reset by peer",
            CloseReason::RetriesExhausted => "retries exhausted",
            CloseReason::Aborted => "aborted by the application",
        }
    }
}

/// Counts of what a connection did, beside its two halves'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// SYNs sent.
    pub syns: u64,
    /// SYN/ACKs sent.
    pub synacks: u64,
    /// Segments without payload, SYN, FIN or RST sent.
    pub pure_acks: u64,
    /// Segments sent.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Segments dropped for what their header says: outside the window, an ACK of nothing sent, a stale timestamp.
    pub segments_refused: u64,
}

/// One end of a TCP connection.
#[derive(Debug, Clone)]
pub struct Connection {
    config: Config,
    state: State,
    isn: Seq,
    peer_isn: Seq,
    sender: Sender,
    receiver: Receiver,
    /// Whether this end opened: what a failed handshake falls back to.
    active: bool,
    /// A SYN or SYN/ACK is to be sent now.
    syn_due: bool,
    /// What the peer's SYN would say, where there is none and the connection is open from the beginning.
    unsaid: Option<Segment>,
    syn_sent_at: Option<Instant>,
    syn_timer: Option<Instant>,
    /// SYNs or SYN/ACKs charged against the budget.
    attempts: u32,
    syn_timeouts: u32,
    /// SYNs and SYN/ACKs sent on this attempt, for whatever reason.
    syn_transmissions: u32,
    reset: Option<Segment>,
    time_wait_until: Option<Instant>,
    timestamps: Option<TimestampState>,
    ecn: ecn::Negotiation,
    /// Shift of the windows that the peer announces, and of ours; both zero unless both ends offered.
    peer_scale: u8,
    own_scale: u8,
    scale_agreed: bool,
    established_at: Option<Instant>,
    closed: Option<(CloseReason, Instant)>,
    /// Sequence position and acknowledgment of the segment that last updated the window (SND.WL1, SND.WL2).
    window_from: (u64, u64),
    /// Challenge ACKs since when.
    challenges: (Instant, u32),
    stats: Stats,
}

/// RFC 7323 §4.
#[derive(Debug, Clone, Copy, Default)]
struct TimestampState {
    /// TS.Recent.
    recent: u32,
    /// When it was taken.
    recent_at: Instant,
    /// Last.ACK.sent.
    last_ack_sent: u64,
}

impl Connection {
    /// An end that opens the connection when it is first polled.
    pub fn connect(config: &Config, isn: Seq) -> Connection {
        let mut connection = Connection::new(config, isn, true);
        connection.state = State::SynSent;
        connection.syn_due = true;
        connection
    }

    /// An end that waits to be opened.
    pub fn listen(config: &Config, isn: Seq) -> Connection {
        let mut connection = Connection::new(config, isn, false);
        connection.state = State::Listen;
        connection
    }

    /// This end without a handshake: [`open_without_syn`](Connection::open_without_syn) opens it. `peer` and `peer_isn` are what the
    /// other end is made of.
    pub fn opened(mut self, peer: &Config, peer_isn: Seq) -> Connection {
        self.syn_due = false;
        self.unsaid = Some(Connection::connect(peer, peer_isn).syn(Instant::ZERO));
        self
    }

    /// Opens what needs no SYN, as if both had been exchanged in no time.
    pub fn open_without_syn(&mut self, now: Instant) {
        if let Some(syn) = self.unsaid.take() {
            self.take_syn(now, &syn);
            // What our own SYN would have announced is the window that the peer counts on.
            self.begin_segment(now, Flags::SYN | Flags::ACK, 0, &mut { Segment::EMPTY });
            // No echo: nothing was timed.
            self.establish(now, u64::from(syn.window), &Segment { timestamps: None, ..syn });
        }
    }

    fn new(config: &Config, isn: Seq, active: bool) -> Connection {
        let mut sender = Sender::new(config);
        // It differs from connection to connection, and is the same for the same seed.
        sender.seed = isn.0.into();
        let own_scale = if config.send.window_scaling { Receiver::scale_for(&config.receive) } else { 0 };
        Connection {
            config: config.clone(),
            state: State::Closed,
            isn,
            peer_isn: Seq(0),
            sender,
            receiver: Receiver::new(&config.receive, config.mss.0),
            active,
            syn_due: false,
            unsaid: None,
            syn_sent_at: None,
            syn_timer: None,
            attempts: 0,
            syn_timeouts: 0,
            syn_transmissions: 0,
            reset: None,
            time_wait_until: None,
            timestamps: config.send.timestamps.then(TimestampState::default),
            ecn: ecn::Negotiation::default(),
            peer_scale: 0,
            own_scale,
            scale_agreed: false,
            established_at: None,
            closed: None,
            window_from: (0, 0),
            challenges: (Instant::ZERO, 0),
            stats: Stats::default(),
        }
    }

    /// RFC 9293's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The receiving half.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// TTL, or hop limit, that its packets leave with.
    pub fn ttl(&self) -> u8 {
        self.config.send.ttl
    }

    /// Counters of the connection as a whole.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// When the handshake was over at this end.
    pub fn established_at(&self) -> Option<Instant> {
        self.established_at
    }

    /// How and when the connection ended.
    pub fn closed(&self) -> Option<(CloseReason, Instant)> {
        self.closed
    }

    /// Deliveries and losses are counted from the handshake on: to be called before it.
    pub fn measure_delivery(&mut self) {
        self.sender.measures = true;
    }

    /// Sends at `pace` from the next segment on, whatever is lost: a rate that somebody has granted.
    pub fn send_at(&mut self, now: Instant, pace: Pace) {
        self.sender.send_at(now, pace);
    }

    /// Has a controller of one's own in place of the configuration's: from before the handshake on.
    pub fn control_by(&mut self, controller: Box<dyn OwnController>) {
        self.sender.cc = Controller::Own(controller);
    }

    /// Sends as the fallback of an explicit rate says, which begins with what `bytes_per_s` sends in a round trip.
    pub fn fall_back(&mut self, now: Instant, bytes_per_s: u64) {
        self.sender.fall_back(now, bytes_per_s);
    }

    /// The peer takes `window`, though it cannot have said so yet: the window of a SYN/ACK is not scaled. What no window field
    /// can say does not count.
    pub fn assume_peer_window(&mut self, window: Bytes) {
        self.sender.rwnd = self.sender.rwnd.max(window.0.min(MAX_WINDOW));
    }

    /// Keeps the times in which the sender waits, for [`Connection::information`]; from before the handshake on.
    pub fn keep_times(&mut self, now: Instant) {
        self.sender.keep_times(now);
    }

    /// The program's next write ends as `MSG_MORE` says: an end that is no full segment waits for more. Without it, the stream
    /// ends there for now.
    pub fn begin_write(&mut self, more: bool) {
        self.sender.begin_write(more);
    }

    /// What has been written ends a record (`MSG_EOR`): no segment holds both sides of its end.
    pub fn end_record(&mut self) {
        self.sender.end_record();
    }

    /// `TCP_NODELAY`. Set, what is there leaves, corked or not.
    pub fn set_no_delay(&mut self, on: bool) {
        self.sender.set_no_delay(on);
    }

    /// `TCP_CORK`: only full segments leave, and what is behind them after 200 ms.
    pub fn set_cork(&mut self, on: bool) {
        self.sender.set_cork(on);
    }

    /// `TCP_USER_TIMEOUT` (RFC 9293 §3.9.1.5): so long after its first retransmission, data that nobody acknowledges ends the
    /// connection.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.sender.set_user_timeout(timeout);
    }

    /// Whether the device takes nothing: what leaves is tried again later, and counts as not sent.
    pub fn set_device_full(&mut self, full: bool) {
        self.sender.set_device_full(full);
    }

    /// What is handed to the device in one piece has so many segments at least, where there is as much to send (Linux's
    /// `tcp_min_tso_segs`; 2 else).
    pub fn set_least_super_packet(&mut self, segments: u64) {
        self.sender.set_least_super_packet(segments);
    }

    /// A write found no room in the send buffer, whoever keeps it.
    pub fn note_no_room(&mut self) {
        self.sender.note_no_room();
    }

    /// Another size of the send buffer, bytes.
    pub fn set_send_buffer(&mut self, bytes: u64) {
        self.sender.set_send_buffer(bytes);
    }

    /// Whether a segment has data or a FIN behind what has arrived in order.
    pub fn takes_as_new(&self, segment: &Segment) -> bool {
        let start = segment.seq.position(self.peer_isn, self.receiver.next());
        start.is_some_and(|start| start + u64::from(segment.len) > self.receiver.next())
    }

    /// Options that the handshake has agreed on, as `tcp_info` has them.
    pub(crate) fn options_agreed(&self) -> u64 {
        u64::from(self.timestamps.is_some())
            | u64::from(self.sender.sack_enabled) << 1
            | u64::from(self.scale_agreed) << 2
            | u64::from(self.sender.ecn.capable) << 3
    }

    pub(crate) fn peer_shift(&self) -> u8 {
        self.peer_scale
    }

    pub(crate) fn own_shift(&self) -> u8 {
        self.own_scale
    }

    pub(crate) fn announced_mss(&self) -> u64 {
        self.config.mss.0
    }

    /// Gives the connection up: the peer is told with a reset.
    pub fn abort(&mut self, now: Instant) {
        // RFC 9293 §3.10.5: where both ends have closed there is nothing left to abort.
        let closing = matches!(self.state, State::Closing | State::LastAck | State::TimeWait);
        if self.is_synchronized() && !closing {
            let mut reset =
                Segment::new(Flags::RST | Flags::ACK, self.isn.advanced_by(self.sender.max), self.ack_seq());
            // RFC 7323 §3.2: where timestamps were agreed on, a reset should have them too (tcp_send_active_reset()).
            reset.timestamps =
                self.timestamps.map(|state| Timestamps { value: clock_ms(now), echo: state.recent });
            self.reset = Some(reset);
        }
        self.finish(CloseReason::Aborted, now);
    }

    /// Forgets the connection without a word: whatever comes for it is answered by a reset.
    pub fn forget(&mut self, now: Instant) {
        self.finish(CloseReason::Aborted, now);
    }

    fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::Closed | State::Listen | State::SynSent)
    }

    fn finish(&mut self, reason: CloseReason, now: Instant) {
        self.state = State::Closed;
        self.syn_due = false;
        self.syn_timer = None;
        self.time_wait_until = None;
        if self.closed.is_none() {
            self.closed = Some((reason, now));
        }
    }

    /// A half-open connection is forgotten; the listener behind it goes on, with what was written to it.
    fn forget_half_open(&mut self, now: Instant) {
        // RFC 9293 §3.4.1: another connection has another number. With the same, a SYN that comes late would bring to life
        // what has been given up.
        let isn = self.isn.advanced_by((now.as_nanos() / ISN_TICK_NS).max(1));
        let fresh = Connection::listen(&self.config, isn);
        let before = core::mem::replace(self, fresh);
        self.stats = before.stats;
        self.sender.take_over_stream(&before.sender);
    }

    // ---- Segments out ----

    fn ack_seq(&self) -> Seq {
        self.peer_isn.advanced_by(self.receiver.next())
    }

    /// Puts a segment with what every segment of this connection carries where `segment` is: it is long, and not copied.
    #[inline(always)]
    fn begin_segment(&mut self, now: Instant, flags: Flags, position: u64, segment: &mut Segment) {
        *segment = Segment::new(flags, self.isn.advanced_by(position), Seq(0));
        if flags.contains(Flags::ACK) {
            segment.ack = self.ack_seq();
            if self.receiver.echoes_ce() {
                segment.flags |= Flags::ECE;
            }
            self.receiver.ack_sent();
        }
        let scale = if flags.contains(Flags::SYN) { 0 } else { self.own_scale };
        segment.window = (self.receiver.announce(scale) >> scale) as u16;
        if let Some(state) = &mut self.timestamps {
            state.last_ack_sent = self.receiver.next();
            segment.timestamps = Some(Timestamps { value: clock_ms(now), echo: state.recent });
        }
    }

    fn syn(&mut self, now: Instant) -> Segment {
        self.syn_due = false;
        let answers = self.state == State::SynReceived;
        let again = self.syn_transmissions > 0;
        let ecn = self.ecn.flags(self.config.send.ecn, answers, again);
        let flags = ecn | if answers { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let mut segment = Segment::EMPTY;
        self.begin_segment(now, flags, 0, &mut segment);
        segment.mss =
            self.config.handshake.rules.announces_mss().then_some(self.config.mss.min(MAX_MSS).0 as u16);
        // A SYN/ACK carries only what the SYN offered; `take_syn` has seen to that.
        let offers_scale = self.config.send.window_scaling && (!answers || self.scale_agreed);
        segment.window_scale = offers_scale.then_some(self.own_scale);
        segment.sack_permitted = self.config.recovery.sack && (!answers || self.sender.sack_enabled);
        self.syn_sent_at.get_or_insert(now);
        self.syn_transmissions += 1;
        if answers {
            self.stats.synacks += 1;
        } else {
            self.stats.syns += 1;
        }
        let deadline = self.sender.rtt.deadline(now);
        self.syn_timer = Some(self.connect_deadline().map_or(deadline, |end| deadline.min(end)));
        segment
    }

    #[inline(always)]
    fn data(&mut self, now: Instant, transmission: Transmission, segment: &mut Segment) {
        let Transmission { start, len, fin, ect, cwr, push } = transmission;
        let mut flags = Flags::ACK;
        if fin {
            flags |= Flags::FIN;
        }
        self.begin_segment(now, flags, start, segment);
        segment.len = len as u16;
        if ect {
            segment.ecn = Ecn::Ect0;
        }
        if cwr {
            segment.flags |= Flags::CWR;
        }
        // No more to come right behind it: the receiver may as well read.
        if len > 0 && (fin || push || self.sender.marks_end(start + len)) {
            segment.flags |= Flags::PSH;
        }
        if fin {
            self.on_fin_sent();
        }
    }

    #[inline(always)]
    fn pure_ack(&mut self, now: Instant, segment: &mut Segment) {
        // A probe, or a window taken back, leaves SND.NXT beyond the peer's window, where it refuses even ACKs.
        self.begin_segment(now, Flags::ACK, self.sender.acceptable_position(), segment);
        if self.sender.sack_enabled && self.receiver.has_blocks() {
            let max = if segment.timestamps.is_some() { 3 } else { 4 };
            for block in self.receiver.sack_blocks(max) {
                segment.sack.push(SackBlock {
                    start: self.peer_isn.advanced_by(block.start),
                    end: self.peer_isn.advanced_by(block.end),
                });
            }
        }
        self.stats.pure_acks += 1;
    }

    fn on_fin_sent(&mut self) {
        self.state = match self.state {
            State::Established | State::SynReceived => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    // ---- Timers ----

    /// When the opener gives up, however many SYNs it has left.
    fn connect_deadline(&self) -> Option<Instant> {
        let opening = self.active && self.state == State::SynSent;
        let timeout = self.config.handshake.connect_timeout.filter(|_| opening)?;
        self.syn_sent_at.map(|first| first + timeout)
    }

    fn on_syn_timer(&mut self, now: Instant) {
        self.syn_timer = None;
        let handshake = &self.config.handshake;
        let most =
            if self.state == State::SynSent { handshake.syn_attempts } else { handshake.synack_attempts };
        let over = self.connect_deadline().is_some_and(|end| end <= now);
        if over || most.is_some_and(|most| self.attempts >= most) {
            if self.active {
                self.finish(CloseReason::ConnectTimedOut, now);
            } else {
                self.forget_half_open(now);
            }
            return;
        }
        self.attempts += 1;
        self.syn_timeouts += 1;
        if self.syn_timeouts > handshake.syn_linear_timeouts || self.state == State::SynReceived {
            self.sender.rtt.back_off();
        }
        self.syn_due = true;
    }
}

impl Endpoint for Connection {
    fn on_segment(&mut self, now: Instant, segment: &Segment) {
        self.stats.segments_received += 1;
        match self.state {
            State::Closed => self.reject(segment),
            State::Listen => self.on_listen(now, segment),
            State::SynSent => self.on_syn_sent(now, segment),
            _ => self.on_synchronized(now, segment),
        }
    }

    fn on_timer(&mut self, now: Instant) {
        if self.syn_timer.is_some_and(|due| due <= now) {
            self.on_syn_timer(now);
        }
        self.receiver.on_timer(now, &self.sender.rtt);
        if self.is_synchronized() && self.state != State::SynReceived && !self.sender.on_timer(now) {
            self.finish(CloseReason::RetriesExhausted, now);
        }
        if self.time_wait_until.is_some_and(|due| due <= now) {
            self.finish(CloseReason::Finished, now);
        }
    }

    #[inline]
    fn poll_segment(&mut self, now: Instant) -> Option<Segment> {
        let mut segment = Segment::EMPTY;
        self.poll_into(now, &mut segment).then_some(segment)
    }

    #[inline(always)]
    fn next_due(&self) -> Option<Instant> {
        let sender = match self.state {
            State::Closed | State::Listen | State::SynSent | State::SynReceived => None,
            _ => self.sender.next_due(),
        };
        let receiver = if self.is_synchronized() { self.receiver.next_due() } else { None };
        let handshake = Instant::earliest(self.syn_timer, self.time_wait_until);
        Instant::earliest(handshake, Instant::earliest(sender, receiver))
    }

    fn write(&mut self, bytes: u64) -> u64 {
        self.sender.write(bytes)
    }

    fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    #[inline(always)]
    fn read(&mut self, max: u64) -> u64 {
        self.receiver.read(max)
    }

    fn close(&mut self) {
        // DEVIATES RFC 9293 §3.10.4: CLOSE before the handshake is over deletes the connection there; here the FIN
        // waits for what was written, so that a program can write, close and leave.
        self.sender.finish();
    }
}

impl Connection {
    /// Puts the next segment to send at `now` where `segment` is; false if there is none. What
    /// [`poll_segment`](Endpoint::poll_segment) gives, without a copy of it.
    #[inline]
    pub fn poll_into(&mut self, now: Instant, segment: &mut Segment) -> bool {
        // The usual answer of an end that only receives.
        let leaves = !self.is_silent() && self.choose_segment(now, segment);
        match leaves {
            true => self.stats.segments_sent += 1,
            false => self.sender.note_wait(now),
        }
        leaves
    }

    /// Whether nothing can leave, seen at a glance: where it is not, there may be nothing all the same.
    #[inline]
    fn is_silent(&self) -> bool {
        self.state == State::Established
            && self.reset.is_none()
            && !self.receiver.ack_due()
            && self.sender.is_silent()
    }

    fn choose_segment(&mut self, now: Instant, segment: &mut Segment) -> bool {
        if self.reset.is_some()
            && let Some(reset) = self.reset.take()
        {
            *segment = reset;
            return true;
        }
        match self.state {
            State::Closed | State::Listen => return false,
            State::SynSent | State::SynReceived => {
                if self.attempts == 0 {
                    self.attempts = 1;
                }
                if self.syn_due {
                    *segment = self.syn(now);
                    return true;
                }
                if self.state == State::SynSent {
                    return false;
                }
            }
            // A duplicate ACK that carries payload is none (RFC 5681 §2), and its SACK blocks have no room.
            _ if self.receiver.reports_gap() || self.handshake_ack_due() => {}
            _ => {
                if let Some(transmission) = self.sender.next_transmission(now) {
                    self.data(now, transmission, segment);
                    return true;
                }
            }
        }
        let is_due = self.receiver.ack_due();
        if is_due {
            self.pure_ack(now, segment);
        }
        is_due
    }

    /// Whether a SYN/ACK is to be answered by an ACK of its own.
    fn handshake_ack_due(&self) -> bool {
        self.config.handshake.ack_alone && self.receiver.ack_due() && !self.sender.has_sent()
    }

    /// Whether nothing but strays is to come: for callers that keep several connections.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait) && self.reset.is_none()
    }
}

/// The largest window that can be announced.
const MAX_WINDOW: u64 = (u16::MAX as u64) << MAX_SHIFT;

/// The timestamp clock: one tick a millisecond (RFC 7323 §5.4 asks for 1 ms to 1 s), from 1 so that 0 means none.
fn clock_ms(now: Instant) -> u32 {
    ((now.as_nanos() / 1_000_000) as u32).wrapping_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_units::Duration;

    #[test]
    fn ends_without_a_syn_are_open_when_they_are_told_to() {
        let config = Config::default();
        let (ours, theirs) = (Seq(u32::MAX - 3), Seq(9));
        let mut sender = Connection::connect(&config, ours).opened(&config, theirs);
        let mut receiver = Connection::listen(&config, theirs).opened(&config, ours);
        assert_eq!(sender.write(4000), 4000);
        let now = Instant::ZERO + Duration::from_secs(3);
        sender.open_without_syn(now);
        receiver.open_without_syn(now);
        let first = sender.poll_segment(now).expect("data leave at once");
        assert!(!first.flags.contains(Flags::SYN) && first.len > 0, "{first:?}");
        assert_eq!((sender.established_at(), sender.stats().syns), (Some(now), 0));
        assert_eq!(sender.sender().rtt().last_sample(), (None, 0));
        let later = now + Duration::from_secs(1);
        receiver.on_segment(later, &first);
        assert_eq!((receiver.readable(), receiver.established_at()), (first.len.into(), Some(now)));
        let second = sender.poll_segment(now).expect("the initial window is more than one segment");
        receiver.on_segment(later, &second);
        let ack = receiver.poll_segment(later).expect("every second segment is acknowledged");
        sender.on_segment(later + Duration::from_secs(1), &ack);
        assert_eq!(sender.sender().rtt().last_sample().1, 1);
    }
}
