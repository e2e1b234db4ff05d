//! What an arriving segment changes (RFC 9293 §3.10.7, RFC 5961, RFC 7323 §5).

use super::{CloseReason, Connection, State, clock_ms};
use crate::config::{HandshakeRules, RetransmittedSyn, TsRecent};
use crate::receiver::{Echoed, MAX_SHIFT};
use crate::sender::Acknowledgment;
use crate::{Ecn, Flags, MAX_MSS, Segment, Seq, TIMESTAMPS};
use farpath_units::{Bytes, Duration, Instant};

/// How long TS.Recent is believed without news (RFC 7323 §5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 86_400);
/// Challenge ACKs in so long, at most (RFC 5961 §7).
const CHALLENGES: u32 = 10;
const CHALLENGE_TIME: Duration = Duration::from_secs(5);
/// What a peer that does not say takes (RFC 9293 §3.7.1).
const DEFAULT_PEER_MSS: u16 = 536;

impl Connection {
    pub(super) fn on_listen(&mut self, now: Instant, seg: &Segment) {
        if seg.flags.contains(Flags::RST) {
            return;
        }
        if seg.flags.contains(Flags::ACK) {
            self.reject(seg);
        } else if seg.flags.contains(Flags::SYN) {
            self.take_syn(now, seg);
            self.state = State::SynReceived;
            self.attempts = 1;
            self.syn_due = true;
        }
    }

    pub(super) fn take_syn(&mut self, now: Instant, seg: &Segment) {
        self.peer_isn = seg.seq;
        self.receiver.on_syn();
        self.ecn.on_syn(seg);
        let unsaid = if self.config.handshake.rules.announces_mss() { DEFAULT_PEER_MSS } else { u16::MAX };
        let peer_mss = seg.mss.unwrap_or(unsaid);
        self.timestamps = self.timestamps.filter(|_| seg.timestamps.is_some());
        if let (Some(state), Some(theirs)) = (&mut self.timestamps, seg.timestamps) {
            (state.recent, state.recent_at) = (theirs.value, now);
        }
        let options = if self.timestamps.is_some() { TIMESTAMPS } else { Bytes::ZERO };
        // RFC 6691: the option does not count TCP options, the segment does.
        let mss = self.config.mss.min(Bytes(peer_mss.into())).min(MAX_MSS);
        self.sender.smss = mss.saturating_sub(options).0.max(1);
        self.sender.sack_enabled = self.config.recovery.sack && seg.sack_permitted;
        self.receiver.report_duplicates(self.config.recovery.dsack && self.sender.sack_enabled);
        self.scale_agreed = self.config.send.window_scaling && seg.window_scale.is_some();
        if self.scale_agreed {
            self.peer_scale = seg.window_scale.unwrap_or(0).min(MAX_SHIFT);
        } else {
            (self.own_scale, self.peer_scale) = (0, 0);
        }
        self.receiver.agree(self.own_scale, options.0, self.active);
        self.window_from = (0, 0);
        self.sender.rwnd = u64::from(seg.window);
    }

    pub(super) fn on_syn_sent(&mut self, now: Instant, seg: &Segment) {
        let acks_syn = seg.flags.contains(Flags::ACK) && seg.ack == self.isn.advanced_by(1);
        if seg.flags.contains(Flags::ACK) && !acks_syn {
            if !seg.flags.contains(Flags::RST) {
                self.reject(seg);
            }
            return;
        }
        if seg.flags.contains(Flags::RST) {
            if acks_syn {
                self.finish(CloseReason::Refused, now);
            }
            return;
        }
        if !seg.flags.contains(Flags::SYN) {
            return;
        }
        self.take_syn(now, seg);
        if acks_syn {
            self.establish(now, u64::from(seg.window), seg);
            self.receiver.demand_ack();
        } else {
            // Both ends opened at once (RFC 9293 §3.5, Figure 7).
            self.state = State::SynReceived;
            self.syn_due = true;
        }
    }

    /// `seg` acknowledges our SYN or SYN/ACK.
    pub(super) fn establish(&mut self, now: Instant, rwnd: u64, seg: &Segment) {
        let echo = self.timestamps.and(seg.timestamps).map(|t| t.echo);
        let again = self.syn_transmissions > 1;
        // Karn: a SYN that was sent again measures nothing, except where the stack is like that, or by what it is echoed.
        let measured = if again && self.config.rto.retransmitted_syn != RetransmittedSyn::MeasuredFromFirst {
            echo.map(|echo| echoed_at(now, echo))
        } else {
            self.syn_sent_at
        };
        if let Some(sent) = measured {
            self.sender.rtt.sample(sent, now);
        }
        // RFC 3522, of the handshake: where the first of them was answered, none was lost.
        let first_answered = self.config.recovery.eifel && echo == self.syn_sent_at.map(clock_ms);
        let lost = self.syn_timeouts > 0 && !first_answered;
        let rule = self.config.congestion.one_segment_after_syn_loss;
        let cautious = lost && rule.is_cautious(self.syn_transmissions);
        self.state = State::Established;
        self.established_at = Some(now);
        self.syn_timer = None;
        self.syn_due = false;
        self.sender.ecn.capable = self.ecn.sends_ect();
        self.receiver.set_ecn(self.ecn.echoes());
        self.receiver.establish(now);
        self.sender.establish(now, rwnd, again, cautious);
    }

    pub(super) fn on_synchronized(&mut self, now: Instant, seg: &Segment) {
        if self.state == State::SynReceived && self.answers_our_syn(seg) {
            // Both ends opened at once: the peer has our SYN (RFC 9293 §3.5, Figure 7, line 6).
            self.ecn.on_syn(seg);
            self.establish(now, u64::from(seg.window), seg);
            self.receiver.demand_ack();
            return;
        }
        let start = seg.seq.position(self.peer_isn, self.receiver.next());
        let payload = start.map(|start| start..start + u64::from(seg.len));
        let acceptable = payload.is_some_and(|payload| self.receiver.acceptable(payload, seg.seq_len()));
        let Some(start) = start.filter(|_| acceptable) else {
            self.receiver.on_refused(start, seg.len);
            if self.state == State::TimeWait && seg.flags.contains(Flags::FIN) {
                // Our last ACK was lost (RFC 9293 §3.10.7.4, eighth step, TIME-WAIT).
                self.enter_time_wait(now);
            }
            self.take_timestamp_of_old(now, seg, start);
            self.take_ack_of_old(now, seg, start);
            self.refuse(seg);
            return;
        };
        if self.is_stale(now, seg) {
            self.refuse(seg);
            return;
        }
        if seg.flags.contains(Flags::RST) {
            self.on_reset(now, start);
            return;
        }
        if seg.flags.contains(Flags::SYN) {
            if self.state == State::SynReceived && !self.active {
                // A peer that has begun anew (RFC 9293 §3.10.7.4, fourth step).
                self.stats.segments_refused += 1;
                self.forget_half_open(now);
                return;
            }
            // RFC 5961 §4: never trust it, ask by ACK.
            self.refuse_and_ask(now, seg);
            return;
        }
        if !seg.flags.contains(Flags::ACK) {
            self.stats.segments_refused += 1;
            return;
        }
        let ack = seg.ack.position(self.isn, self.sender.una);
        let Some(ack) = ack.filter(|&ack| self.sender.is_valid_ack(ack) && ack > 0) else {
            if self.state == State::SynReceived {
                self.reject(seg);
            } else {
                // RFC 5961 §5.
                self.refuse_and_ask(now, seg);
            }
            return;
        };
        self.take_timestamp(now, seg, start);
        if self.state == State::SynReceived {
            self.establish(now, u64::from(seg.window) << self.peer_scale, seg);
        }
        self.on_acknowledgment(now, seg, start, ack);
        if seg.len > 0 || seg.flags.contains(Flags::FIN) {
            let end = start + u64::from(seg.len);
            let fin = seg.flags.contains(Flags::FIN);
            let echoed = self.timestamps.and(seg.timestamps).map(|t| {
                let ago = clock_ms(now).wrapping_sub(t.echo);
                Echoed { value: t.echo, ago: Duration::from_millis(ago.into()) }
            });
            self.receiver.on_data(now, start..end, fin, echoed, &self.sender.rtt);
            if seg.len > 0 {
                let push = fin || seg.flags.contains(Flags::PSH);
                self.receiver.on_push(seg, push);
                self.receiver.on_ecn(seg.flags.contains(Flags::CWR), seg.ecn == Ecn::Ce);
            }
            if self.receiver.finished() {
                self.on_fin_received(now);
            }
        }
    }

    // DEVIATES RFC 9293 §3.10.7.4: the ACK of a segment from before the window counts, as in BSD. Where each end has
    // a FIN or a probe beyond the other's shut window, both speak from before the window: they would answer one
    // another's ACKs for ever and learn nothing.
    fn take_ack_of_old(&mut self, now: Instant, seg: &Segment, start: Option<u64>) {
        let Some(start) = start.filter(|&start| start < self.receiver.next()) else { return };
        let plain = seg.flags.contains(Flags::ACK) && !seg.flags.intersects(Flags::SYN | Flags::RST);
        let ack = seg.ack.position(self.isn, self.sender.una);
        if let Some(ack) = ack.filter(|&ack| ack > self.sender.una && self.sender.is_valid_ack(ack))
            && plain
            && self.state != State::SynReceived
            && !self.is_stale(now, seg)
        {
            self.on_acknowledgment(now, seg, start, ack);
        }
    }

    #[inline(always)]
    fn on_acknowledgment(&mut self, now: Instant, seg: &Segment, start: u64, ack: u64) {
        // RFC 9293 §3.10.7.4: only a segment not older than the last one to do so updates the window.
        let mut window = self.sender.rwnd;
        let newer = (start, ack) >= self.window_from || ack > self.window_from.1;
        if ack >= self.sender.una && newer {
            window = u64::from(seg.window) << self.peer_scale;
            self.window_from = (start, ack);
        }
        let una = self.sender.una;
        let pure = seg.seq_len() == 0 && ack == una;
        if !pure && seg.sack.is_empty() && !self.sender.outstanding() {
            // Data for an end that only receives. The ACK field has nothing to tell it.
            self.sender.on_window(window);
        } else {
            self.sender_takes(now, seg, ack, window, pure);
        }
        if self.sender.fin_acked() {
            self.on_fin_acked(now);
        }
    }

    #[inline(never)]
    fn sender_takes(&mut self, now: Instant, seg: &Segment, ack: u64, window: u64, pure: bool) {
        let una = self.sender.una;
        let mut acknowledgment = Acknowledgment {
            ack: ack.max(una),
            window,
            reports: !seg.sack.is_empty(),
            sack: Default::default(),
            pure,
            echo: seg.flags.contains(Flags::ECE),
            echoed: self.timestamps.and(seg.timestamps).map(|t| echoed_at(now, t.echo)),
        };
        for (range, block) in acknowledgment.sack.iter_mut().zip(seg.sack.as_slice()) {
            if let (Some(start), Some(end)) =
                (block.start.position(self.isn, una), block.end.position(self.isn, una))
            {
                *range = start..end;
            }
        }
        self.sender.on_ack(now, &acknowledgment);
    }

    fn on_fin_acked(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.finish(CloseReason::Finished, now),
            _ => {}
        }
    }

    fn on_fin_received(&mut self, now: Instant) {
        match self.state {
            State::Established | State::SynReceived => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 | State::TimeWait => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// In SYN-RECEIVED after a simultaneous open: the peer's SYN again, now with the ACK of ours.
    fn answers_our_syn(&self, seg: &Segment) -> bool {
        self.active
            && seg.flags.contains(Flags::SYN | Flags::ACK)
            && !seg.flags.contains(Flags::RST)
            && (seg.seq, seg.ack) == (self.peer_isn, self.isn.advanced_by(1))
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.time_wait_until = Some(now + self.config.handshake.time_wait);
        self.closed.get_or_insert((CloseReason::Finished, now));
    }

    /// RFC 5961 §3.2: exactly at `rcv_nxt` it is believed, elsewhere in the window it is questioned.
    fn on_reset(&mut self, now: Instant, start: u64) {
        if start != self.receiver.next() {
            self.ask(now);
        } else if self.state == State::SynReceived && !self.active {
            self.forget_half_open(now);
        } else if self.state == State::SynReceived {
            self.finish(CloseReason::Refused, now);
        } else {
            self.finish(CloseReason::Reset, now);
        }
    }

    /// A challenge ACK, unless there were many lately: two ends with a forger between them would answer one another
    /// for ever (RFC 5961 §7).
    fn ask(&mut self, now: Instant) {
        let (since, count) = self.challenges;
        let lately = count > 0 && now.saturating_since(since) < CHALLENGE_TIME;
        self.challenges = if lately { (since, count.saturating_add(1)) } else { (now, 1) };
        if self.challenges.1 <= CHALLENGES {
            self.receiver.demand_ack();
        }
    }

    fn refuse_and_ask(&mut self, now: Instant, seg: &Segment) {
        if self.state == State::SynReceived {
            self.refuse(seg);
        } else {
            self.stats.segments_refused += 1;
            self.ask(now);
        }
    }

    /// A segment that says nothing we can use: the peer is told where we are, unless it is a reset.
    fn refuse(&mut self, seg: &Segment) {
        self.stats.segments_refused += 1;
        if seg.flags.contains(Flags::RST) {
            return;
        }
        if self.state == State::SynReceived && seg.flags.contains(Flags::SYN) && seg.seq == self.peer_isn {
            self.ecn.on_syn(seg);
            self.on_duplicate_syn();
            return;
        }
        self.receiver.demand_ack();
    }

    /// The SYN again: our SYN/ACK was lost or is late, so it is sent again.
    fn on_duplicate_syn(&mut self) {
        if self.config.handshake.rules == HandshakeRules::Ns3 {
            if self.config.handshake.synack_attempts.is_some_and(|most| self.attempts >= most) {
                return;
            }
            self.attempts += 1;
        }
        self.syn_due = true;
    }

    /// RFC 7323 §5.2 (PAWS): a timestamp older than what has been seen belongs to an old segment. After 24 days
    /// of silence the clock may have come round, and what has been seen is no measure (§5.5).
    #[inline]
    fn is_stale(&self, now: Instant, seg: &Segment) -> bool {
        match (self.timestamps, seg.timestamps) {
            (Some(state), Some(theirs)) => {
                !seg.flags.contains(Flags::RST)
                    && (theirs.value.wrapping_sub(state.recent) as i32) < 0
                    && now.saturating_since(state.recent_at) < PAWS_IDLE
            }
            _ => false,
        }
    }

    /// RFC 7323 §4.3: TS.Recent follows the segment that the next ACK will be about. `start` is its place.
    // DEVIATES RFC 7323 §3.2: a segment without the option, though it was agreed on, is taken, as Linux does.
    #[inline(always)]
    fn take_timestamp(&mut self, now: Instant, seg: &Segment, start: u64) {
        if let (Some(state), Some(theirs)) = (&mut self.timestamps, seg.timestamps) {
            let end = start + seg.seq_len();
            let last = state.last_ack_sent;
            let taken = match self.config.receive.ts_recent {
                TsRecent::Rfc7323 => start <= last,
                TsRecent::Linux => start <= last && last <= end,
                TsRecent::FreeBsd => start.max(self.receiver.next()) <= last,
                TsRecent::Rfc1323 => start <= last && last < end,
                TsRecent::InOrder => start == self.receiver.next() && start <= last,
            };
            if taken {
                (state.recent, state.recent_at) = (theirs.value, now);
            }
        }
    }

    /// The same of a segment that is not acceptable: a copy whose ACK was lost, as a rule. Its sender measures by what the next ACK
    /// echoes.
    fn take_timestamp_of_old(&mut self, now: Instant, seg: &Segment, start: Option<u64>) {
        let plain = seg.flags.contains(Flags::ACK) && !seg.flags.intersects(Flags::SYN | Flags::RST);
        if let Some(start) = start.filter(|_| plain)
            && !self.is_stale(now, seg)
        {
            self.take_timestamp(now, seg, start);
        }
    }

    /// Answers a segment for a connection that is not there (RFC 9293 §3.10.7.1).
    pub(super) fn reject(&mut self, seg: &Segment) {
        if seg.flags.contains(Flags::RST) || self.config.handshake.rules == HandshakeRules::Ns3 {
            return;
        }
        self.reset = Some(if seg.flags.contains(Flags::ACK) {
            Segment::new(Flags::RST, seg.ack, Seq(0))
        } else {
            Segment::new(Flags::RST | Flags::ACK, Seq(0), seg.seq.advanced_by(seg.seq_len()))
        });
    }
}

/// When the clock showed `echo`, seen from `now`; not later than `now`.
fn echoed_at(now: Instant, echo: u32) -> Instant {
    let ago = Duration::from_millis(u64::from(clock_ms(now).wrapping_sub(echo)));
    Instant::from_nanos(now.as_nanos().saturating_sub(ago.as_nanos()))
}
