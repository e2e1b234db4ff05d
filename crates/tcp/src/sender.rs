//! The sending half: what an ACK or the timer changes; what may be sent now is in `transmit`, repair in `recovery`.

mod cwnd_usage;
mod ecn;
mod frto;
mod limit;
mod memory;
mod pacing;
mod phase;
mod program;
mod prr;
mod rack;
mod recovery;
mod steering;
mod super_packet;
mod tlp;
mod transmit;
mod undo;

pub use limit::SendLimit;
pub use memory::SendMemory;
pub(crate) use program::Wait;
pub(crate) use transmit::Transmission;

use crate::cc::{AckEvent, CongestionControl, Controller, LossEvent, Window};
use crate::config::{Config, CwndValidation, RttSampling, SackRules, WindowProbe};
use crate::rtt::RttEstimator;
use crate::scoreboard::{Scoreboard, Tally};
use core::ops::Range;
use cwnd_usage::CwndUsage;
use ecn::EcnSender;
use farpath_units::{Duration, Instant};
use frto::Frto;
use pacing::Pacer;
use phase::Phase;
use program::{Times, Wishes};
use prr::Prr;
use rack::{Rack, milliseconds};
use super_packet::SuperPacket;
use tlp::Tlp;
use undo::UndoState;

/// The longest stream: positions never come near the end of a `u64`.
const MAX_STREAM: u64 = 1 << 62;

/// What an arriving segment tells the sending half.
#[derive(Debug, Clone)]
pub(crate) struct Acknowledgment {
    pub ack: u64,
    /// Scaled.
    pub window: u64,
    /// Whether there are SACK blocks, and which; empty where there is no block.
    pub reports: bool,
    pub sack: [Range<u64>; 4],
    /// Neither payload nor SYN nor FIN: it can be a duplicate ACK.
    pub pure: bool,
    /// ECE.
    pub echo: bool,
    /// When the segment that this one echoes was sent, if timestamps say.
    pub echoed: Option<Instant>,
}

/// What an arriving ACK turned out to say.
#[derive(Debug, Default)]
struct News {
    /// It moved `una`.
    una_moved: bool,
    /// Bytes that its SACK blocks report for the first time.
    sacked: u64,
    /// What it reports as having arrived twice.
    dsack: Option<Range<u64>>,
    /// A segment was declared lost because of it.
    found_loss: bool,
    /// Without SACK: bytes that it stands for as arrived.
    inferred: u64,
}

/// Counts of what the sending half did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendStats {
    /// Segments with payload, retransmissions included.
    pub data_segments: u64,
    /// Payload bytes, retransmissions included.
    pub data_bytes: u64,
    /// Segments with payload that had been sent before.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast retransmit.
    pub fast_retransmits: u64,
    /// Duplicate ACKs received that moved nothing: those that others count too, whatever RFC 6675 §5 adds.
    pub dup_acks: u64,
    /// Zero-window probes.
    pub probes: u64,
    /// Reductions of the congestion window for an ECN echo.
    pub ecn_responses: u64,
    /// Tail loss probes (RFC 8985 §7).
    pub loss_probes: u64,
    /// Reports of what arrived twice (RFC 2883) that were received.
    pub dsacks: u64,
    /// Losses that were found to be none, and what they cost given back.
    pub undos: u64,
}

/// The sending half of a connection. Positions are u64; 0 is our SYN, so the stream's first byte is at 1.
#[derive(Debug, Clone)]
pub struct Sender {
    pub(crate) config: Config,
    pub(crate) smss: u64,
    pub(crate) sack_enabled: bool,
    /// `snd_una`.
    pub(crate) una: u64,
    /// Where the last segment of new data that was not a full one ends, and whether one that leaves now follows a full one
    /// of the same burst: for Minshall's rule.
    small_end: u64,
    burst: bool,
    super_packet: SuperPacket,
    /// Next to send; behind `max` while a timeout is repaired without SACK (4.3BSD's `snd_nxt`).
    pub(crate) nxt: u64,
    /// One past the highest position sent (RFC 9293's SND.NXT).
    pub(crate) max: u64,
    /// One past the last byte written.
    written: u64,
    fin: bool,
    pub(crate) rwnd: u64,
    max_rwnd: u64,
    pub(crate) window: Window,
    pub(crate) cc: Controller,
    pub(crate) board: Scoreboard,
    pub(crate) phase: Phase,
    pub(crate) dup_acks: u32,
    /// Bytes beyond `cwnd` that limited transmit added to the flight.
    pub(crate) limited_transmit_bytes: u64,
    /// RFC 6582's `recover`.
    pub(crate) recover: u64,
    /// The first unacknowledged segment leaves next, whatever the window.
    pub(crate) retransmit_first: bool,
    /// Present during fast recovery, where it is in use.
    prr: Option<Prr>,
    /// Present where it is in use.
    rack: Option<Rack>,
    tlp: Tlp,
    frto: Frto,
    /// The last loss that was acted upon, as long as it may be undone.
    undo: Option<UndoState>,
    /// When the first of the retransmissions left that are, or may still be, under way (Linux's `retrans_stamp`).
    repair_began: Option<Instant>,
    /// RecoveryPoint of the recovery that has had its rescue retransmission.
    rescued: Option<u64>,
    cwnd_limited: bool,
    /// In place of `cwnd_limited`, where it is in use.
    cwnd_usage: Option<CwndUsage>,
    pub(crate) rtt: RttEstimator,
    /// The one segment being timed: the position whose ACK ends it, and when it left.
    timed: Option<(u64, Instant)>,
    pub(crate) rto_due: Option<Instant>,
    pub(crate) retries: u32,
    persist: Persist,
    last_sent: Instant,
    /// Whether anything is paced, or steered by the rate of delivery: where not, neither costs anything.
    steered: bool,
    /// What chance there is, as BBR's, is drawn by this.
    pub(crate) seed: u64,
    /// Whether deliveries and losses are counted, whoever steers.
    pub(crate) measures: bool,
    pacer: Pacer,
    pub(crate) ecn: EcnSender,
    /// Where cwnd comes down by PRR after an ECN echo: what had been sent by then (Linux's `high_seq` in CWR).
    reduced_by_echo: Option<u64>,
    /// The device takes nothing.
    pub(crate) device_full: bool,
    /// Present where the send buffer is one of memory, and grows.
    memory: Option<Box<SendMemory>>,
    /// Present where a program has asked for something of its own.
    wishes: Option<Box<Wishes>>,
    /// Present where somebody asks for it.
    times: Option<Box<Times>>,
    pub(crate) stats: SendStats,
}

/// Zero-window probing (RFC 9293 §3.8.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Persist {
    Off,
    Waiting { due: Instant, interval: Duration },
    Probe { interval: Duration },
}

impl Sender {
    pub(crate) fn new(config: &Config) -> Sender {
        let smss = config.mss.0;
        Sender {
            config: config.clone(),
            smss,
            sack_enabled: false,
            una: 1,
            small_end: 1,
            burst: false,
            super_packet: SuperPacket::default(),
            nxt: 1,
            max: 1,
            written: 1,
            fin: false,
            rwnd: 0,
            max_rwnd: 0,
            window: Window { cwnd: 0, ssthresh: 0 },
            cc: Controller::new(&config.congestion, smss, config.rto.tick),
            board: Scoreboard::new(1),
            phase: Phase::Open,
            dup_acks: 0,
            limited_transmit_bytes: 0,
            recover: 0,
            retransmit_first: false,
            prr: None,
            rack: None,
            tlp: Tlp::default(),
            frto: Frto::Off,
            undo: None,
            repair_began: None,
            rescued: None,
            cwnd_limited: false,
            cwnd_usage: (config.congestion.cwnd_validation == CwndValidation::ByWindow)
                .then(CwndUsage::default),
            rtt: RttEstimator::new(&config.rto),
            timed: None,
            rto_due: None,
            retries: 0,
            persist: Persist::Off,
            last_sent: Instant::ZERO,
            steered: false,
            seed: 0,
            measures: false,
            pacer: Pacer::default(),
            ecn: EcnSender::default(),
            reduced_by_echo: None,
            device_full: false,
            memory: config
                .send
                .buffer
                .filter(|_| config.send.autotuning)
                .map(|most| Box::new(SendMemory::growing(most.0))),
            wishes: None,
            times: None,
            stats: SendStats::default(),
        }
    }

    /// The handshake is over: `smss` and `sack_enabled` are what it agreed on. Whether our SYN was sent again in it, and whether
    /// that calls for an initial window of one segment.
    pub(crate) fn establish(&mut self, now: Instant, rwnd: u64, syn_again: bool, cautious: bool) {
        let smss = self.smss;
        self.set_rwnd(rwnd);
        let congestion = &self.config.congestion;
        if !matches!(self.cc, Controller::Own(_)) {
            self.cc = Controller::new(congestion, smss, self.config.rto.tick);
        }
        let segments = if cautious { 1 } else { congestion.initial_window };
        let clamp = congestion.cwnd_clamp.map_or(u64::MAX, |clamp| clamp.0);
        self.window = Window {
            cwnd: (u64::from(segments) * smss).min(clamp.max(smss)),
            ssthresh: congestion.initial_ssthresh.map_or(u64::MAX, |ssthresh| ssthresh.0),
        };
        self.rtt.on_established(syn_again);
        self.start_rack();
        self.start_steering(now);
        self.last_sent = now;
        self.rto_due = None;
        self.retries = 0;
    }

    /// Takes up to `bytes` more of the stream; gives how many the send buffer had room for.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let wanted = if self.fin { 0 } else { bytes.min(MAX_STREAM - self.written) };
        let taken = match (self.memory.take(), self.config.send.buffer) {
            (Some(memory), _) => self.write_into(memory, wanted),
            (None, Some(buffer)) => wanted.min(buffer.0.saturating_sub(self.buffered())),
            (None, None) => wanted,
        };
        if self.max >= self.written {
            // What is written behind all that has been sent begins a buffer of its own (tcp_write_queue_tail()).
            self.super_packet.begin_buffer();
        }
        self.written += taken;
        if let Some(times) = &mut self.times {
            times.no_room = taken < bytes;
        }
        taken
    }

    /// Written and not acknowledged.
    pub(crate) fn buffered(&self) -> u64 {
        self.written.saturating_sub(self.una)
    }

    /// The stream that was handed to a connection which has been forgotten before any of it was sent.
    pub(crate) fn take_over_stream(&mut self, before: &Sender) {
        (self.written, self.fin) = (before.written, before.fin);
        self.memory.clone_from(&before.memory);
        self.measures = before.measures;
    }

    /// The stream ends here.
    pub(crate) fn finish(&mut self) {
        self.fin = true;
    }

    /// One past everything that is to be sent, FIN included.
    fn end(&self) -> u64 {
        self.written + u64::from(self.fin)
    }

    /// Whether the peer has acknowledged our FIN.
    pub(crate) fn fin_acked(&self) -> bool {
        self.fin && self.una == self.end()
    }

    /// Whether all that was written has been sent.
    pub(crate) fn nothing_more(&self) -> bool {
        self.max >= self.written
    }

    /// Whether any of the stream has been sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.max > 1
    }

    /// Sent and not cumulatively acknowledged (RFC 5681 §2).
    pub fn flight_size(&self) -> u64 {
        self.max - self.una
    }

    pub(crate) fn outstanding(&self) -> bool {
        self.max > self.una
    }

    /// RFC 9293 §3.10.7.4, fifth step, with RFC 5961 §5: an ACK of what was sent, and not from a distant past.
    pub(crate) fn is_valid_ack(&self, ack: u64) -> bool {
        ack <= self.max && ack + self.max_rwnd >= self.una
    }

    /// The position that a segment without payload may carry: SND.NXT, unless the peer's window ends before it.
    pub(crate) fn acceptable_position(&self) -> u64 {
        self.max.min(self.una + self.rwnd)
    }

    fn set_rwnd(&mut self, rwnd: u64) {
        self.rwnd = rwnd;
        self.max_rwnd = self.max_rwnd.max(rwnd);
    }

    // ---- Receiving ACKs ----

    /// Takes the window of a segment that says nothing else: there is nothing to acknowledge.
    pub(crate) fn on_window(&mut self, window: u64) {
        if self.persist != Persist::Off || self.rwnd == 0 {
            // RFC 9293 §3.8.6.1: while the peer answers, its window may stay shut as long as it likes.
            self.retries = 0;
        }
        self.end_hold();
        self.update_window(window);
    }

    /// Takes the acknowledgment, window and SACK blocks of a segment whose ACK is within `una..=max`.
    pub(crate) fn on_ack(&mut self, now: Instant, seg: &Acknowledgment) {
        let window_changed = seg.window != self.rwnd;
        self.on_window(seg.window);
        self.restart_probe_timer(now);
        if !self.outstanding() && !seg.pure && seg.sack[0].is_empty() {
            // Data for an end that only receives. The ACK field has nothing to tell it.
            return;
        }
        self.board.begin_ack();
        if let Some(rack) = &mut self.rack {
            rack.started = false;
        }
        self.burst = false;
        self.tlp.burst = None;
        self.super_packet.end();
        let pipe_before = if self.steered { self.pipe() } else { 0 };
        let mut news = News { una_moved: seg.ack > self.una, ..News::default() };
        if self.sack_enabled && seg.reports {
            let report = self.duplicate_report(seg);
            news.dsack = self.believed(report);
            let blocks = seg.sack.iter().filter(|block| !block.is_empty());
            let before = self.board.sacked_bytes();
            news.sacked = blocks.map(|block| self.board.sack(block.clone())).sum();
            if self.rack_is_linux() {
                // tcp_match_skb_to_sack(): of a segment that is reported in part nothing is.
                news.sacked = self.board.sacked_bytes() - before;
            }
            if news.sacked > 0 && self.memory.is_some() {
                for block in seg.sack.iter().filter(|block| !block.is_empty()) {
                    self.merge_reported(block);
                }
            }
        }
        if news.sacked > 0 && self.rack.is_none() {
            let before = self.board.lost_below();
            self.board.detect_losses(self.config.recovery.dup_ack_threshold, self.smss);
            news.found_loss = self.board.lost_below() > before;
        }
        if news.una_moved {
            self.on_new_ack(now, seg, &mut news);
        } else {
            // RFC 5681 §2; with SACK, an ACK that reports something new (RFC 6675 §2).
            let duplicate = if self.sack_enabled { news.sacked > 0 } else { seg.pure && !window_changed };
            self.on_old_ack(now, seg, duplicate, &mut news);
        }
        self.undo_by_dsack(news.dsack.as_ref());
        if self.repair_began.is_some()
            && self.phase == Phase::Open
            && !self.board.retransmission_outstanding()
        {
            // The next repair has its own time (`tcp_try_to_open()`): a probe that precedes it would hide that this one is over.
            self.repair_began = None;
        }
        self.reduce_rate(&news);
        self.note_ack(now);
        self.note_ack_for_memory(now);
        if self.steered {
            self.steer(now, pipe_before);
        }
    }

    /// The ACK did not move `una`.
    fn on_old_ack(&mut self, now: Instant, seg: &Acknowledgment, duplicate: bool, news: &mut News) {
        if self.config.rto.sampling == RttSampling::Linux
            && let Some(sent) = self.linux_sample(now)
        {
            self.rtt.sample_in_flight(sent, now, self.una, self.max);
        }
        // RFC 7323 §4.3: what lies beyond a gap does not become TS.Recent. Its echo is that of an older segment, by which
        // RFC 8985 §6.2 step 2 would take each copy that is reported for its original; min_rtt judges, as in Linux.
        self.update_rack(now, None, news.dsack.as_ref());
        let heard = self.outstanding() && self.persist == Persist::Off;
        if heard && seg.echo && self.ecn.capable {
            self.on_echo(now, self.flight_size());
        }
        if heard && duplicate {
            self.stats.dup_acks += 1;
            self.advance_frto(false);
            let before = self.dup_acks;
            self.on_dup_ack(now);
            news.inferred = u64::from(self.dup_acks.saturating_sub(before)) * self.smss;
        }
        if heard {
            let found = self.detect_losses_by_rack(now);
            if found.lost {
                news.found_loss = true;
                self.begin_recovery_by_rack(now, found);
            }
        }
        let bare = seg.pure && seg.sack.iter().all(Range::is_empty);
        self.process_probe_ack(now, bare, self.flight_size(), news.dsack.as_ref());
        let reduces = matches!(self.phase, Phase::Fast { .. });
        if heard && news.sacked > 0 && !reduces && self.reordering_is_usual() {
            let delivery = self.board.delivery();
            let (counted, latest) = (delivery.bytes, delivery.latest.map(|latest| latest.at));
            self.grow(now, counted, self.flight_size(), latest, latest);
        }
        if news.sacked > 0 {
            if !self.has_one_timer() {
                self.schedule_probe(now);
            }
            self.follow_reports(now);
        }
    }

    /// The congestion window grows for `counted` bytes, with an ACK before which `flight_size` was in flight. The first segment
    /// that it covers left at `first_sent`, if that is known.
    #[inline(always)]
    fn grow(
        &mut self,
        now: Instant,
        counted: u64,
        flight_size: u64,
        first_sent: Option<Instant>,
        echoed: Option<Instant>,
    ) {
        let limited = match &self.cwnd_usage {
            Some(cwnd_usage) => cwnd_usage.may_grow(&self.window),
            None => self.cwnd_limited || flight_size + self.smss > self.window.cwnd,
        };
        let last_sent = self.board.delivery().covered.or(echoed);
        let event = AckEvent {
            now,
            newly_acked: self.segments_of(counted),
            acked_to: self.una,
            sent_to: self.max,
            flight_size,
            cwnd_limited: limited,
            rtt: first_sent.map(|sent| now.saturating_since(sent)),
            last_rtt: last_sent.map(|sent| now.saturating_since(sent)),
            srtt: self.rtt.srtt(),
        };
        self.cc.on_ack(&mut self.window, &event);
    }

    /// So many bytes, or by Linux's rules those of as many whole segments: a small one counts as one.
    #[inline(always)]
    fn segments_of(&self, bytes: u64) -> u64 {
        if self.config.congestion.growth_by_delivery { bytes.next_multiple_of(self.smss) } else { bytes }
    }

    /// RFC 2883 §4: the first block reports a duplicate where it lies below the ACK, or within the second block.
    fn duplicate_report(&self, seg: &Acknowledgment) -> Option<Range<u64>> {
        let [first, second, ..] = &seg.sack;
        let within = second.start <= first.start && first.end <= second.end;
        let duplicate = first.start < seg.ack && first.end <= seg.ack || within;
        (!first.is_empty() && first.end <= self.max && duplicate).then(|| first.clone())
    }

    fn update_window(&mut self, window: u64) {
        self.set_rwnd(window);
        if self.persist != Persist::Off && window > 0 {
            let rest = self.written - self.una.min(self.written);
            if window >= rest.min(self.smss) || self.worth_sending(window) {
                self.persist = Persist::Off;
                // The probe's octet was refused while the window was shut: it goes first.
                self.retransmit_first = self.outstanding();
            }
        }
    }

    /// An ACK that keeps the window shut: the peer is there, and is asked again an interval later (`tcp_ack_probe()`).
    fn restart_probe_timer(&mut self, now: Instant) {
        if let Persist::Waiting { interval, .. } = self.persist
            && self.config.send.window_probe == WindowProbe::Empty
            && !self.outstanding()
        {
            self.persist = Persist::Waiting { due: self.config.rto.timer(now, interval), interval };
        }
    }

    /// How long a shut window is waited for before the first probe.
    pub(crate) fn first_probe_interval(&self) -> Duration {
        let least = self.config.send.persist_min;
        match self.config.send.window_probe {
            WindowProbe::Octet => least,
            // tcp_probe0_base(), tcp_probe0_when()
            WindowProbe::Empty => self.rtt.rto().max(least).min(self.config.send.persist_max),
        }
    }

    fn on_new_ack(&mut self, now: Instant, seg: &Acknowledgment, news: &mut News) {
        let prior_una = self.una;
        let newly_acked = seg.ack - prior_una;
        let flight_size = self.flight_size();
        let first_sent = self.board.acknowledge(seg.ack);
        self.una = seg.ack;
        self.nxt = self.nxt.max(seg.ack);
        self.retries = 0;
        self.rtt.on_new_ack();
        self.sample_rtt(now, seg, first_sent);
        if !self.outstanding() {
            self.retransmit_first = false;
        }
        self.update_rack(now, seg.echoed, news.dsack.as_ref());
        if news.sacked > 0 && self.phase == Phase::Open && self.config.recovery.sack_rules == SackRules::Ns3 {
            self.on_dup_ack(now);
            return;
        }
        self.advance_frto(true);
        let holds = self.undo_by_eifel(prior_una, seg.echoed);
        if !self.sack_enabled {
            // Of what arrived beyond a hole duplicate ACKs have told already; one of it was the hole.
            let told = u64::from(self.dup_acks) * self.smss;
            news.inferred = self.segments_of(newly_acked).saturating_sub(told).max(self.smss);
        }
        let repairing = self.phase != Phase::Open;
        let mut after = self.advance_recovery(newly_acked);
        if repairing && self.phase == Phase::Open && self.rack.is_some() && self.board.first_is_lost() {
            // Sent since the repair began, lost, and sent again within it: a loss of its own (`tcp_time_to_recover()`).
            after.grow &= !self.begin_recovery(now);
        }
        if !holds {
            let found = self.detect_losses_by_rack(now);
            if found.lost {
                news.found_loss = true;
                after.grow &= !self.begin_recovery_by_rack(now, found);
            }
        }
        self.end_reduction_by_echo();
        if seg.echo && self.ecn.capable {
            // RFC 3168 §6.1.2: no growth with it either.
            self.on_echo(now, flight_size);
            after.grow = false;
        }
        after.grow &= self.reduced_by_echo.is_none();
        self.forget_dup_acks(newly_acked, news);
        self.limited_transmit_bytes = 0;
        if news.sacked > 0 && self.phase == Phase::Open && self.config.recovery.sack_rules != SackRules::Ns3 {
            // RFC 6675 §5: it counts "regardless of its status as a cumulative acknowledgment".
            self.on_dup_ack(now);
            after.grow &= self.phase == Phase::Open;
        }
        if after.grow {
            let counted = match (self.config.congestion.growth_by_delivery, self.sack_enabled) {
                (false, _) => after.counted,
                (true, true) => self.board.delivery().bytes,
                (true, false) => after.counted.min(news.inferred),
            };
            self.grow(now, counted, flight_size, first_sent.or(seg.echoed), seg.echoed);
        }
        let one_timer = self.has_one_timer();
        if !self.outstanding() {
            self.rto_due = None;
            if one_timer {
                self.stop_timers();
            }
        } else if after.restart_timer && !one_timer {
            self.rto_due = Some(self.rtt.deadline(now));
        }
        if let Persist::Waiting { .. } = self.persist
            && !self.outstanding()
        {
            // The probe was taken: the peer reads. Its window decides anew.
            self.persist = Persist::Off;
        }
        self.process_probe_ack(now, false, flight_size, news.dsack.as_ref());
        if one_timer {
            self.start_timer(now);
        } else {
            self.schedule_probe(now);
        }
    }

    fn sample_rtt(&mut self, now: Instant, seg: &Acknowledgment, first_sent: Option<Instant>) {
        let timed = self.timed.filter(|&(end, _)| seg.ack >= end).map(|(_, sent)| sent);
        if timed.is_some() {
            self.timed = None;
        }
        let sent = match self.config.rto.sampling {
            RttSampling::Linux => match (self.linux_sample(now), seg.echoed) {
                (None, Some(echoed)) => {
                    // tcp_rtt_tsopt_us(): in whole milliseconds of the clock that is echoed, and one at the least.
                    let passed = milliseconds(now).saturating_sub(milliseconds(echoed)).max(1);
                    let now = echoed + Duration::from_millis(passed);
                    self.rtt.sample_in_flight(echoed, now, self.una, self.max);
                    None
                }
                (sent, _) => sent,
            },
            RttSampling::EveryAck => first_sent.or(seg.echoed),
            // The exact time where it is at hand: an echo knows milliseconds.
            RttSampling::OneAtATime => timed.or(seg.echoed),
        };
        if let Some(sent) = sent {
            self.rtt.sample_in_flight(sent, now, self.una, self.max);
        }
    }

    /// When what this ACK measures left, by Linux's rules (`tcp_clean_rtx_queue()`); no echo is looked at.
    fn linux_sample(&mut self, now: Instant) -> Option<Instant> {
        let delivery = self.board.delivery();
        let (acked, sacked) = (delivery.acked.filter(|_| !delivery.covers_copy), delivery.sacked);
        // tcp_update_rtt_min() takes the last one.
        if let Some((_, last)) = sacked.or(acked) {
            self.rtt.note_least(now.saturating_since(last));
        }
        acked.or(sacked).map(|(first, _)| first)
    }

    // ---- Timers ----

    /// Runs the timers due at `now`. False when the last retry had been spent: the connection is to be aborted.
    #[must_use]
    pub(crate) fn on_timer(&mut self, now: Instant) -> bool {
        self.burst = false;
        self.tlp.burst = None;
        self.super_packet.end();
        self.ecn.on_timer(now);
        if let Persist::Waiting { due, interval } = self.persist
            && due <= now
        {
            if self.spent() || self.user_timeout_passed(now) {
                return false;
            }
            self.retries += 1;
            self.persist = Persist::Probe { interval };
        }
        if self.persist != Persist::Off {
            return true;
        }
        if self.rack.as_ref().and_then(|rack| rack.due).is_some_and(|due| due <= now) {
            self.on_reordering_timer(now);
        }
        if self.tlp.due.is_some_and(|due| due <= now) {
            self.on_probe_timer(now);
        }
        if self.rto_due.is_some_and(|due| due <= now) {
            return self.on_timeout(now);
        }
        true
    }

    /// Whether the last retransmission or probe that is allowed has been sent.
    fn spent(&self) -> bool {
        self.config.handshake.data_retries.is_some_and(|most| self.retries >= most)
    }

    /// Whether the time for retransmissions is over, or the last one of them has been sent.
    fn retransmissions_spent(&self, now: Instant) -> bool {
        let Some(most) = self.config.time_for_retries() else { return self.spent() };
        let began = self.repair_began.filter(|_| self.retries > 0);
        began.is_some_and(|began| {
            milliseconds(now) - milliseconds(began) >= milliseconds(Instant::ZERO + most)
        })
    }

    fn on_timeout(&mut self, now: Instant) -> bool {
        if self.retransmissions_spent(now) || self.user_timeout_passed(now) {
            return false;
        }
        self.retries += 1;
        self.stats.timeouts += 1;
        if self.has_one_timer() {
            self.stop_timers();
        }
        self.timed = None;
        self.after_timeout(now);
        self.rtt.back_off();
        self.rto_due = Some(self.within_user_timeout(self.rtt.deadline(now)));
        true
    }

    pub(crate) fn loss_event(&self, now: Instant, timeout: bool) -> LossEvent {
        let flight_size = self.flight_size().saturating_sub(self.limited_transmit_bytes);
        let in_network = self.in_network();
        // RFC 5681 §2 counts what SACK has reported, until the hole before it is filled: at a timeout within a repair
        // half of that can be more than the window was. §3.1 says "no more than" half of it, so cwnd bounds it.
        let repairing = self.sack_enabled && self.phase != Phase::Open;
        let flight_size = if repairing { flight_size.min(self.window.cwnd) } else { flight_size };
        LossEvent { now, flight_size, pipe: in_network, rwnd: self.rwnd, timeout }
    }

    /// What is taken to be in the network. Without SACK each duplicate ACK stands for a segment that has left it.
    fn in_network(&self) -> u64 {
        if self.sack_enabled {
            return self.board.pipe();
        }
        // The first one is lost where it is about to be sent again.
        let lost = u64::from(self.reduces_rate() && self.retransmit_first);
        self.flight_size().saturating_sub((u64::from(self.dup_acks) + lost) * self.smss)
    }

    /// The response to congestion that needs no repair: a window as after fast recovery, without one.
    fn reduce_window(&mut self, now: Instant, flight_size: u64) {
        let loss = LossEvent { now, flight_size, pipe: self.in_network(), rwnd: self.rwnd, timeout: false };
        self.window.ssthresh = self.cc.ssthresh_after(&self.window, &loss);
        if !self.cc.owns_cwnd() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = match self.persist {
            Persist::Waiting { due, .. } => Some(due),
            Persist::Probe { .. } => None,
            Persist::Off => {
                let reordering = self.rack.as_ref().and_then(|rack| rack.due);
                Instant::earliest(Instant::earliest(self.rto_due, self.tlp.due), reordering)
            }
        };
        let due = if self.steered { Instant::earliest(due, self.paced_release()) } else { due };
        Instant::earliest(due, self.ecn.next_due())
    }

    // ---- What others may look at ----

    /// Congestion window and slow start threshold, bytes.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The peer's window, bytes.
    pub fn rwnd(&self) -> u64 {
        self.rwnd
    }

    /// RFC 6675's `pipe` where SACK is on, else `flight_size`.
    pub fn pipe(&self) -> u64 {
        if self.sack_enabled { self.board.pipe() } else { self.flight_size() }
    }

    /// Bytes of the stream that the peer has acknowledged.
    pub fn acked(&self) -> u64 {
        self.una.min(self.written) - 1
    }

    /// Bytes of the stream that have been sent, acknowledged or not.
    pub fn sent(&self) -> u64 {
        self.max.min(self.written) - 1
    }

    /// What became of what was sent; zeros where nobody asked for it before the handshake.
    pub fn tally(&self) -> Tally {
        self.board.tally()
    }

    /// Whether the stream has ended and the peer has acknowledged all of it.
    pub fn is_done(&self) -> bool {
        self.fin_acked()
    }

    /// Whether there is something to send, or to be acknowledged.
    pub fn has_data(&self) -> bool {
        self.una < self.end()
    }

    /// The timer's estimator.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Counters.
    pub fn stats(&self) -> &SendStats {
        &self.stats
    }

    /// Segment size in use, options taken off.
    pub fn smss(&self) -> u64 {
        self.smss
    }
}
