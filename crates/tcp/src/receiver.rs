//! The receiving half: reassembly, the window, and when to acknowledge.

mod autotuning;

pub use autotuning::{Autotuning, Echoed};

use crate::Segment;
use crate::config::{AckClock, ImmediateAcks, ReceiveConfig};
use crate::intervals::IntervalSet;
use crate::rtt::RttEstimator;
use core::ops::Range;
use farpath_units::{Bytes, Duration, Instant};

/// The largest shift of the window field (RFC 7323 §2.3).
pub const MAX_SHIFT: u8 = 14;

/// How many recent arrivals are remembered for the order of SACK blocks.
const RECENT: usize = 4;

/// ACKs of one hole that leave at once before one stands for many (`TCP_FASTRETRANS_THRESH`).
pub const SENT_AT_ONCE: u32 = 3;
/// That one waits for others, and its timer's slack (`tcp_comp_sack_slack_ns`).
const COMPRESSION_SLACK: Duration = Duration::from_micros(100);

/// How long it waits: a twentieth of a round trip, a millisecond at most (`tcp_comp_sack_delay_ns`).
pub fn compression_wait(round_trip: Duration) -> Duration {
    (round_trip / 20).min(Duration::from_millis(1))
}

/// Segments that are acknowledged at once at the most: what half of a window holds in segments of so many bytes, two where it holds none
/// (`tcp_incr_quickack()`).
pub fn most_quick_acks(window: u64, segment: u64) -> u64 {
    match window / (2 * segment) {
        0 => 2,
        half => half,
    }
}
/// What the peer's MSS is taken for before a segment was longer, and the least: Linux's `TCP_MSS_DEFAULT` and `TCP_MIN_MSS`. A
/// header of TCP without options.
const FIRST_LONGEST: u64 = 536;
const LEAST_LONGEST: u64 = 88;
const HEADER: u64 = 20;

/// The receiving half of a connection. Positions are u64; 0 is the peer's SYN.
#[derive(Debug, Clone)]
pub struct Receiver {
    config: ReceiveConfig,
    /// `rcv_nxt`.
    next: u64,
    out_of_order: IntervalSet,
    /// Starts of the latest out-of-order arrivals, newest first (RFC 2018 §4).
    recent: [u64; RECENT],
    /// Whether the peer is told what arrives twice (RFC 2883).
    reports_duplicates: bool,
    /// What has arrived twice and is to be told.
    duplicate: Option<Range<u64>>,
    /// In order, and not read by the application yet.
    unread: u64,
    /// Right edge of the window last announced.
    announced: u64,
    /// The shift and the window that were announced, as long as nothing has come or been read since: a sender of data announces
    /// the same with each segment.
    cached_window: Option<(u8, u64)>,
    /// Position after the peer's FIN, once it is known.
    fin_at: Option<u64>,
    mss: u64,
    ack: AckState,
    quick_acks_left: u32,
    /// Present where the window grows with the connection.
    autotuning: Option<Box<Autotuning>>,
    /// How long the ACK of a lone segment is withheld now (`icsk_ack.ato`), within what `config` has.
    ack_delay: Duration,
    /// The peer's MSS, as far as its segments show it (`rcv_mss`), the length of the segment before where that was a shorter
    /// one (`last_seg_size`), and whether what came since the last ACK had an end marked in it.
    longest: u64,
    shorter: u64,
    pushed: bool,
    compression: Compression,
    /// When the delayed-ACK timer expires, as it was last set. An ACK that leaves before does not stop it.
    delayed_ack_timer: Option<Instant>,
    /// When data last came in order.
    last_in_order: Option<Instant>,
    duplicate_segments: u64,
    out_of_order_segments: u64,
    echo: Echo,
}

/// ACKs that report data beyond a hole, and of which one stands for many (Linux's `compressed_ack`).
#[derive(Debug, Clone, Copy, Default)]
struct Compression {
    /// `rcv_nxt` of these, and how many have left at once.
    next: u64,
    sent: u32,
    /// How many one is to stand for, and when it leaves at the latest.
    held: u32,
    due: Option<Instant>,
}

/// What is told of marks (RFC 3168 §6.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Echo {
    /// Nothing: the peer sends no ECN-capable data.
    Off,
    /// No mark, or none that the peer has not answered.
    Quiet,
    /// Every ACK carries ECE, until the peer says CWR: an ACK can be lost.
    On,
}

/// What the peer is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckState {
    Nothing,
    /// So many segments, at the latest at this time.
    Withheld {
        segments: u32,
        until: Instant,
    },
    Now,
}

impl Receiver {
    /// A receiver before the peer's SYN came.
    pub fn new(config: &ReceiveConfig, mss: u64) -> Receiver {
        Receiver {
            config: config.clone(),
            next: 0,
            out_of_order: IntervalSet::default(),
            recent: [0; RECENT],
            reports_duplicates: false,
            duplicate: None,
            unread: 0,
            announced: 0,
            cached_window: None,
            fin_at: None,
            mss,
            ack: AckState::Nothing,
            quick_acks_left: config.quick_acks,
            autotuning: config.autotuning.then(|| Box::new(Autotuning::new(config.buffer.0, mss))),
            ack_delay: config.ack_delay,
            longest: FIRST_LONGEST,
            shorter: 0,
            pushed: false,
            compression: Compression::default(),
            delayed_ack_timer: None,
            last_in_order: None,
            duplicate_segments: 0,
            out_of_order_segments: 0,
            echo: Echo::Off,
        }
    }

    /// `rcv_nxt`: the next position expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The peer's SYN came.
    pub fn on_syn(&mut self) {
        self.cached_window = None;
        if self.next == 0 {
            // What was announced before begins behind it.
            self.next = 1;
            self.announced += u64::from(self.announced > 0);
        }
    }

    /// The handshake has agreed on SACK, and D-SACK is wanted.
    pub fn report_duplicates(&mut self, reports: bool) {
        self.reports_duplicates = reports;
    }

    /// RFC 2883 §4: the first part of a segment that had arrived before goes into the next ACK.
    fn note_duplicate(&mut self, range: Range<u64>) {
        if self.reports_duplicates && !range.is_empty() {
            self.duplicate = Some(range);
        }
    }

    /// Whether the peer's FIN and all before it have arrived.
    pub fn finished(&self) -> bool {
        self.fin_at.is_some_and(|end| self.next >= end)
    }

    /// Bytes that the application can read.
    pub fn readable(&self) -> u64 {
        self.unread
    }

    pub(crate) fn ack_delay(&self) -> Duration {
        self.ack_delay
    }

    pub(crate) fn longest_segment(&self) -> u64 {
        self.longest
    }

    pub(crate) fn last_data(&self) -> Option<Instant> {
        self.last_in_order
    }

    /// Bytes that came in order, without SYN and FIN.
    pub(crate) fn received(&self) -> u64 {
        self.next.saturating_sub(1 + u64::from(self.finished()))
    }

    pub(crate) fn out_of_order_segments(&self) -> u64 {
        self.out_of_order_segments
    }

    pub(crate) fn announced_window(&self) -> u64 {
        self.edge_announced() - self.next
    }

    /// Segments whose payload had all arrived before.
    pub fn duplicate_segments(&self) -> u64 {
        self.duplicate_segments
    }

    /// RFC 9293 §3.10.7.4, first step: whether a segment with this payload, which takes `seq_len` of the sequence
    /// space, concerns the window.
    // DEVIATES RFC 9293 §3.10.7.4, as Linux and BSD do: what carries no payload may lie at the window's right edge,
    // where the ACKs and the FIN of a peer that has filled the window are; and what lies at `rcv_nxt` has its header
    // read even if the window is shut, so that a probe's ACK is not lost (its payload is).
    pub fn acceptable(&self, payload: Range<u64>, seq_len: u64) -> bool {
        let edge = self.edge_announced();
        let start = payload.start;
        if payload.is_empty() {
            return (self.next..=edge).contains(&start);
        }
        start == self.next || start < edge && start + seq_len > self.next
    }

    /// A segment was not acceptable: what is owed for it, and whether all its payload had arrived before.
    pub fn on_refused(&mut self, start: Option<u64>, len: u16) {
        let Some(start) = start else { return };
        let end = start + u64::from(len);
        self.cached_window = None;
        if len > 0 && end <= self.next {
            self.duplicate_segments += 1;
            if self.config.immediate_acks == ImmediateAcks::Linux {
                // tcp_send_dupack(), tcp_enter_quickack_mode(): an ACK was lost, or came too late for the sender.
                self.acknowledge_at_once(self.config.quick_acks, len.into());
                self.ack_delay = self.config.ack_delay;
            }
            self.note_duplicate(start..end);
        }
    }

    fn edge_announced(&self) -> u64 {
        self.announced.max(self.next)
    }

    /// Payload at `range` is about to be taken: what the gap before it tells (`tcp_event_data_recv()`).
    #[inline(always)]
    fn note_gap(&mut self, now: Instant, range: &Range<u64>, rtt: &RttEstimator) {
        if range.start > self.next {
            return;
        }
        let len = range.end - range.start;
        match self.last_in_order.replace(now) {
            Some(last) => {
                if now.saturating_since(last) > rtt.rto() {
                    self.acknowledge_at_once(self.config.quick_acks_after_gap, len);
                }
                self.follow_gap(now, last, rtt);
            }
            None => match self.config.immediate_acks {
                ImmediateAcks::ByNumber => {}
                ImmediateAcks::Linux => {
                    self.quick_acks_left = 0;
                    self.acknowledge_at_once(self.config.quick_acks, len);
                }
            },
        }
    }

    /// So many segments are acknowledged at once, where it is not more already, from one with `len` bytes of payload on.
    fn acknowledge_at_once(&mut self, segments: u32, len: u64) {
        let segments = match self.config.immediate_acks {
            ImmediateAcks::ByNumber => segments,
            // tcp_incr_quickack(): by the window that was announced.
            ImmediateAcks::Linux => {
                let most = most_quick_acks(self.edge_announced() - self.next, self.longest.max(len));
                segments.min(u32::try_from(most).unwrap_or(u32::MAX))
            }
        };
        self.quick_acks_left = self.quick_acks_left.max(segments);
    }

    /// `len` bytes of payload have been taken, for which the window may grow.
    #[inline(always)]
    fn note_growth(&mut self, now: Instant, len: u64, echoed: Option<Echoed>) {
        let held = self.unread + self.out_of_order.covered();
        let Some(autotuning) = self.autotuning.as_mut().filter(|_| len > 0) else { return };
        let grown = autotuning.on_segment(now, len, held, self.next, echoed);
        if grown && self.config.immediate_acks == ImmediateAcks::Linux {
            // tcp_grow_window().
            self.quick_acks_left |= 1;
        }
    }

    /// The wait for a second segment is about the gap between two, where that may be waited for.
    fn follow_gap(&mut self, now: Instant, last: Instant, rtt: &RttEstimator) {
        let Some(max) = self.config.ack_delay_max else { return };
        let tick = rtt.config().tick;
        let least = self.config.ack_delay / 2;
        if self.ack_delay == least * 2 && now.saturating_since(last) + tick <= least {
            // The usual one: in whole ticks, too, no gap to be told from none, and the wait is the least already.
            return;
        }
        let gap = now.last_multiple_of(tick).saturating_since(last.last_multiple_of(tick));
        if gap <= least {
            self.ack_delay = self.ack_delay / 2 + least;
        } else if gap < self.ack_delay {
            self.ack_delay = (self.ack_delay / 2 + gap).min(rtt.rto()).min(max);
        }
    }

    /// Takes payload at `range`, with a FIN behind it or not, at an end that measured `rtt`.
    #[inline(always)]
    pub fn on_data(
        &mut self,
        now: Instant,
        range: Range<u64>,
        fin: bool,
        echoed: Option<Echoed>,
        rtt: &RttEstimator,
    ) {
        self.cached_window = None;
        if !range.is_empty() {
            if let Some(autotuning) = &mut self.autotuning {
                autotuning.measure_segment(range.end - range.start);
            }
            self.note_gap(now, &range, rtt);
        }
        let within = range.start.max(self.next)..range.end.min(self.limit());
        let was_holed = !self.out_of_order.is_empty();
        if range.start < self.next {
            self.note_duplicate(range.start..range.end.min(self.next));
        } else if was_holed && let Some(overlap) = self.out_of_order.first_overlap(range.clone()) {
            self.note_duplicate(overlap);
        }
        let all_there = within.end == range.end;
        if fin && all_there && self.fin_at.is_none() {
            self.fin_at = Some(range.end + 1);
            self.ack = AckState::Now;
        }
        if within.is_empty() && !range.is_empty() {
            // Old, or beyond the window: the sender must learn where we are (RFC 9293 §3.10.7.4).
            self.duplicate_segments += u64::from(range.end <= self.next);
            self.ack = AckState::Now;
            // The FIN behind it may be news all the same.
            self.take_fin();
            return;
        }
        if within.start > self.next {
            // A FIN has a place in the sequence space, and is reported with what it follows.
            let fin = u64::from(fin && all_there && self.fin_at == Some(range.end + 1));
            let arrived = within.start..within.end + fin;
            if arrived.is_empty() {
                self.ack = AckState::Now;
            } else {
                let opens = self.opens_block(&arrived);
                self.take_out_of_order(arrived);
                self.note_growth(now, range.end - range.start, echoed);
                self.compress(now, opens, rtt);
            }
            return;
        }
        if within.end > self.next {
            // Within the limit.
            self.unread += within.end - self.next;
            self.next = within.end;
        }
        if was_holed {
            self.out_of_order.remove_below(self.next);
            if let Some(end) = self.out_of_order.take_from(self.next) {
                self.advance_to(end);
            }
        }
        self.note_growth(now, range.end - range.start, echoed);
        let finished = self.take_fin();
        if was_holed || finished {
            // RFC 5681 §4.2: at once when a segment fills all or part of a gap.
            self.ack = AckState::Now;
        } else if !range.is_empty() {
            self.withhold(now, rtt);
        }
    }

    /// Takes the peer's FIN, where all before it has arrived. Whether it did.
    fn take_fin(&mut self) -> bool {
        let finished = self.fin_at == Some(self.next + 1);
        self.next += u64::from(finished);
        finished
    }

    /// A segment with payload has been taken, with PSH or FIN or without (`tcp_measure_rcv_mss()`).
    #[inline(always)]
    pub fn on_push(&mut self, segment: &Segment, push: bool) {
        let len = u64::from(segment.len);
        let last = core::mem::take(&mut self.shorter);
        if len >= self.longest {
            self.longest = len;
            self.pushed |= push;
        } else {
            self.on_push_of_shorter(segment, push, last);
        }
    }

    fn on_push_of_shorter(&mut self, segment: &Segment, push: bool, last: u64) {
        let len = u64::from(segment.len);
        // A shorter one that came twice in a row is the peer's MSS, unless it may be what was left of a buffer.
        let header = HEADER + segment.options_len() as u64;
        let is_full =
            len + header >= FIRST_LONGEST + HEADER || (len + header >= LEAST_LONGEST + HEADER && !push);
        if is_full {
            self.shorter = len;
            if len == last {
                self.longest = len;
                return;
            }
        }
        self.pushed = true;
    }

    /// The handshake has agreed on ECN, or not.
    pub fn set_ecn(&mut self, agreed: bool) {
        self.echo = if agreed { Echo::Quiet } else { Echo::Off };
    }

    /// Data within the window came, with these bits. An answer to what was marked before ends the echo, the mark on
    /// the segment itself begins it anew.
    pub fn on_ecn(&mut self, cwr: bool, ce: bool) {
        if !(cwr || ce) || self.echo == Echo::Off {
            return;
        }
        self.echo = if ce { Echo::On } else { Echo::Quiet };
        if ce {
            // RFC 3168 §6.1.3 wants ECE in the ACK of every marked segment. Were it withheld, CWR in the next segment
            // could end the echo first. Linux acknowledges at once, too.
            self.ack = AckState::Now;
        }
    }

    /// Whether ACKs carry ECE.
    pub fn echoes_ce(&self) -> bool {
        self.echo == Echo::On
    }

    /// What lies beyond is not taken: the announced window's edge, and nothing follows a FIN.
    fn limit(&self) -> u64 {
        self.edge_announced().min(self.fin_at.map_or(u64::MAX, |end| end - 1))
    }

    fn take_out_of_order(&mut self, range: Range<u64>) {
        let mut news = false;
        self.out_of_order.insert(range.clone(), |_| news = true);
        self.duplicate_segments += u64::from(!news);
        self.out_of_order_segments += u64::from(news);
        // One place for each block: the latest arrival in it.
        let block = self.out_of_order.containing(range.start).unwrap_or(range.clone());
        let place = self.recent.iter().position(|start| block.contains(start)).unwrap_or(RECENT - 1);
        self.recent[..=place].rotate_right(1);
        self.recent[0] = range.start;
        self.ack = AckState::Now;
    }

    /// Whether what arrives at `range` makes a block more than the two that are told of latest (`tcp_sack_compress_send_ack()`).
    fn opens_block(&self, range: &Range<u64>) -> bool {
        let told = |start| {
            let block = self.out_of_order.containing(start)?;
            Some(block.start <= range.end && range.start <= block.end)
        };
        let adjoins = self.recent[..2].iter().any(|&start| told(start) == Some(true));
        !adjoins && self.out_of_order.descending().nth(1).is_some()
    }

    /// An ACK for data beyond a hole is due: after three of them one may stand for many (`__tcp_ack_snd_check()`).
    fn compress(&mut self, now: Instant, opens: bool, rtt: &RttEstimator) {
        let most = self.config.compressed_acks;
        if !self.reports_duplicates || self.quick_acks_left > 0 {
            return;
        }
        let compression = &mut self.compression;
        if compression.next != self.next {
            *compression = Compression { next: self.next, ..Compression::default() };
        }
        // What it stands for must fit into it.
        if compression.held >= most || compression.held > 0 && opens {
            return;
        }
        if compression.sent < SENT_AT_ONCE {
            compression.sent += 1;
            return;
        }
        compression.held += 1;
        let round_trip = [self.autotuning.as_ref().and_then(|autotuning| autotuning.rtt()), rtt.srtt()];
        let round_trip = round_trip.into_iter().flatten().min().unwrap_or(Duration::ZERO);
        let wait = compression_wait(round_trip) + COMPRESSION_SLACK;
        // A delayed-ACK timer that goes on, though what it was set for was acknowledged, has it leave too (`tcp_delack_timer_handler()`).
        let due = Instant::earliest(Some(now + wait), self.delayed_ack_timer.filter(|&at| at > now));
        compression.due = compression.due.or(due);
        self.ack = AckState::Nothing;
    }

    fn advance_to(&mut self, end: u64) {
        let end = end.min(self.limit().max(self.next));
        if end > self.next {
            self.unread += end - self.next;
            self.next = end;
        }
    }

    #[inline(always)]
    fn withhold(&mut self, now: Instant, rtt: &RttEstimator) {
        if self.quick_acks_left > 0 {
            if self.config.immediate_acks == ImmediateAcks::ByNumber {
                self.quick_acks_left -= 1;
            }
            self.ack = AckState::Now;
            return;
        }
        let (segments, until) = match self.ack {
            AckState::Nothing => (1, self.ack_deadline(now, rtt)),
            AckState::Withheld { segments, until } => (segments + 1, until),
            AckState::Now => return,
        };
        self.ack = if segments >= self.config.ack_every || self.config.ack_delay.is_zero() {
            AckState::Now
        } else {
            self.delayed_ack_timer = Some(until);
            AckState::Withheld { segments, until }
        };
    }

    fn ack_deadline(&self, now: Instant, rtt: &RttEstimator) -> Instant {
        let least = self.config.ack_delay;
        let wait = match self.config.ack_delay_max {
            Some(_) => self.ack_delay.min(longest_wait(least, rtt)),
            None => least,
        };
        match self.config.ack_clock {
            AckClock::Segment => rtt.config().timer(now, wait),
            AckClock::Host => (now + Duration::from_nanos(1)).next_multiple_of(least),
        }
    }

    /// The handshake is over.
    pub fn establish(&mut self, now: Instant) {
        self.cached_window = None;
        if let Some(autotuning) = &mut self.autotuning {
            autotuning.establish(now);
        }
    }

    /// The shift of the window field to offer: the smallest with which the buffer fits (RFC 7323 §2.2), or Linux's.
    pub fn scale_for(config: &ReceiveConfig) -> u8 {
        let buffer = config.buffer.0;
        if config.autotuning {
            return autotuning::scale_for(buffer);
        }
        (0..MAX_SHIFT).find(|&shift| buffer >> shift <= u64::from(u16::MAX)).unwrap_or(MAX_SHIFT)
    }

    /// The handshake has agreed on a shift of the window field, which bounds what of the buffer can be announced at all, and on
    /// so many bytes of options in each segment. `active`: this end has sent the first SYN.
    pub fn agree(&mut self, scale: u8, options: u64, active: bool) {
        self.cached_window = None;
        self.config.buffer = self.config.buffer.min(Bytes(u64::from(u16::MAX) << scale));
        if let Some(autotuning) = &mut self.autotuning {
            autotuning.agree(options, active);
        }
    }

    /// The application reads up to `max` bytes; gives how many there were.
    #[inline(always)]
    pub fn read(&mut self, max: u64) -> u64 {
        let taken = self.unread.min(max);
        if taken == 0 {
            return 0;
        }
        self.cached_window = None;
        if let Some(autotuning) = &mut self.autotuning {
            autotuning.on_read(self.next - self.unread, taken, self.next);
        }
        self.unread -= taken;
        if self.config.immediate_acks == ImmediateAcks::Linux
            && self.pushed
            && self.unread == 0
            && self.out_of_order.is_empty()
            && self.ack != AckState::Nothing
        {
            self.ack = AckState::Now;
        }
        // A window that opened by enough is announced at once (RFC 9293 §3.8.6.2.2): two segments, or half the buffer.
        // While everything is read as it comes, the edge only ever follows `next`, and this never triggers. Nothing
        // follows a FIN, so that no window behind one is of use: Linux and FreeBSD announce none either.
        if !self.finished() && self.has_opened() {
            self.ack = AckState::Now;
        }
        taken
    }

    #[inline(always)]
    fn has_opened(&self) -> bool {
        let (left, buffer) = (self.announced.saturating_sub(self.next), self.config.buffer.0);
        match &self.autotuning {
            // __tcp_cleanup_rbuf(): to twice of what is left.
            Some(autotuning) => {
                2 * left <= autotuning.clamp().min(buffer)
                    && self.edge() - self.next >= (2 * left).max(self.mss)
            }
            None => {
                left < buffer / 2
                    && self.edge().saturating_sub(self.announced) >= (2 * self.mss).min(buffer / 2)
            }
        }
    }

    /// The most that there is room for, for now. What grows is bounded by its memory, and only what is shown of it by the buffer.
    fn whole(&self) -> u64 {
        self.autotuning.as_ref().map_or(self.config.buffer.0, |autotuning| autotuning.window())
    }

    /// Right edge that the buffer allows. Out-of-order data takes no room of the window, it is inside it; of a buffer that
    /// grows it takes memory (`tcp_space()`).
    fn edge(&self) -> u64 {
        let room = match &self.autotuning {
            Some(autotuning) => autotuning.room(self.unread + self.out_of_order.covered()),
            None => self.config.buffer.0.saturating_sub(self.unread),
        };
        self.next + self.whole().min(room)
    }

    /// Window to announce in a segment that leaves now, in bytes. It never opens by a silly little (RFC 9293
    /// §3.8.6.2.2), nor past the buffer or what the window field can carry; by less than the scale's unit it may
    /// shrink (RFC 7323 §2.4), and what was promised before is taken all the same.
    #[inline]
    pub fn announce(&mut self, scale: u8) -> u64 {
        match self.cached_window {
            Some((shift, window)) if shift == scale => {
                debug_assert_eq!(window, self.choose_window(scale), "nothing has come or been read");
                window
            }
            Some(_) | None => {
                let window = self.choose_window(scale);
                self.cached_window = Some((scale, window));
                window
            }
        }
    }

    fn choose_window(&mut self, scale: u8) -> u64 {
        let edge = self.edge();
        let Some(autotuning) = &self.autotuning else { return self.announce_by_steps(edge, scale) };
        if edge - self.next < autotuning.clamp() / 2 {
            // __tcp_select_window(): memory is short.
            self.quick_acks_left = 0;
        }
        let window = if scale > 0 {
            self.announce_whole_units(edge, scale)
        } else {
            self.announce_by_steps(edge, scale)
        };
        // Linux leaves it to memory what of it is shown.
        window.min(units_of(self.config.buffer.0, scale) << scale)
    }

    fn announce_by_steps(&mut self, edge: u64, scale: u8) -> u64 {
        let step = self.mss.min(self.config.buffer.0 / 2);
        let opens = edge >= self.announced + step || edge == self.next + self.whole();
        let target = if opens { self.announced.max(edge) } else { self.announced };
        // Rounded up to the scale's unit, so that the edge does not shrink, as far as the buffer has the room: each ACK
        // would promise a little more otherwise, and a buffer of 1 GB take in any file.
        let unit = 1u64 << scale;
        let open = target.max(self.next) - self.next;
        let (down, up) = (open >> scale, units_of(open, scale));
        let units = if self.next + up * unit <= edge { up } else { down };
        self.announce_units(units, scale)
    }

    /// `__tcp_select_window()` and `tcp_select_window()` where the field is scaled: whatever the window opens by, in whole units,
    /// rounded up; and what was promised, rounded up anew, where that is more.
    fn announce_whole_units(&mut self, edge: u64, scale: u8) -> u64 {
        let open = edge.max(self.announced).saturating_sub(self.next);
        self.announce_units(units_of(open, scale), scale)
    }

    fn announce_units(&mut self, units: u64, scale: u8) -> u64 {
        let window = units.min(u64::from(u16::MAX)) << scale;
        self.announced = self.announced.max(self.next + window);
        window
    }

    /// Whether an ACK is due now.
    pub fn ack_due(&self) -> bool {
        self.ack == AckState::Now
    }

    /// Whether an ACK is due now that tells of data missing, or of data that came twice: one with SACK blocks.
    pub fn reports_gap(&self) -> bool {
        self.ack_due() && self.has_blocks()
    }

    /// Whether there is anything for SACK blocks to report.
    #[inline]
    pub fn has_blocks(&self) -> bool {
        !self.out_of_order.is_empty() || self.duplicate.is_some()
    }

    /// Asks for an ACK now.
    pub fn demand_ack(&mut self) {
        self.ack = AckState::Now;
    }

    /// A segment with the ACK field has left.
    pub fn ack_sent(&mut self) {
        if self.config.immediate_acks == ImmediateAcks::Linux && self.ack != AckState::Nothing {
            // tcp_dec_quickack_mode(): whatever it answers. With the last one the wait for a second segment is the least again.
            if self.quick_acks_left == 1 {
                self.ack_delay = self.config.ack_delay;
            }
            self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
        }
        self.ack = AckState::Nothing;
        self.pushed = false;
        (self.compression.held, self.compression.due) = (0, None);
    }

    /// Runs the delayed-ACK timer.
    pub fn on_timer(&mut self, now: Instant, rtt: &RttEstimator) {
        if self.compression.due.is_some_and(|due| due <= now) {
            self.ack = AckState::Now;
        }
        if let AckState::Withheld { until, .. } = self.ack
            && until <= now
        {
            self.ack = AckState::Now;
            if let Some(max) = self.config.ack_delay_max {
                // No second segment came: they may be further apart (`tcp_delack_timer_handler()`).
                self.ack_delay = (self.ack_delay * 2).min(rtt.rto()).min(max);
            }
        }
    }

    /// When a withheld ACK must leave.
    #[inline]
    pub fn next_due(&self) -> Option<Instant> {
        let withheld = match self.ack {
            AckState::Withheld { until, .. } => Some(until),
            AckState::Nothing | AckState::Now => None,
        };
        Instant::earliest(withheld, self.compression.due)
    }

    /// SACK blocks to report, the latest arrival's first, at most `max`. What arrived twice comes before them, once
    /// (RFC 2883 §4); the block that it lies in follows, since that is the latest arrival's.
    pub fn sack_blocks(&mut self, max: usize) -> impl Iterator<Item = Range<u64>> {
        let mut blocks: [Range<u64>; 4] = Default::default();
        let mut count = 0;
        if let Some(duplicate) = self.duplicate.take() {
            blocks[0] = duplicate;
            count = 1;
        }
        let before = count;
        let latest = self.recent.iter().filter_map(|&start| self.out_of_order.containing(start));
        for block in latest.chain(self.out_of_order.descending()) {
            if count == max.min(blocks.len()) {
                break;
            }
            if !blocks[before..count].contains(&block) {
                blocks[count] = block;
                count += 1;
            }
        }
        blocks.into_iter().take(count)
    }
}

/// Units of a window field with this shift that `bytes` take, the last one perhaps in part. A division by what is known as a shift
/// only when it runs takes as long as all of the rest.
fn units_of(bytes: u64, scale: u8) -> u64 {
    (bytes >> scale) + u64::from(bytes & ((1 << scale) - 1) != 0)
}

/// A wait that has grown past `least` ends after a round trip, where one was measured; and any a tick before a peer alike may
/// think the segment lost (`tcp_send_delayed_ack()`, `tcp_delack_max()`).
fn longest_wait(least: Duration, rtt: &RttEstimator) -> Duration {
    let config = rtt.config();
    let before_rto = config.min.saturating_sub(config.tick);
    rtt.srtt().map_or(before_rto, |srtt| srtt.max(least).min(before_rto))
}
