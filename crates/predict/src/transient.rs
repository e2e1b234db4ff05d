//! The expected course of a transfer, computed numerically: slow start ACK by ACK, then rounds from loss to loss; BBR ACK by ACK throughout.
//!
//! The window grows and falls by the controllers of `farpath-tcp` themselves; what is approximated is the repair of losses and
//! what the path does to a window. `docs/models/transient.md` has it in full, and what it was checked against.

mod ascent;
mod beyond_sender;
mod lattice;
mod net;
mod paced;
mod walk;

use crate::Flow;
use ascent::Ascent;
use farpath_experiment::Opener;
use farpath_model::InputError;
use farpath_tcp::TIMESTAMPS;
use farpath_tcp::cc::{AckEvent, Controller, LossEvent, Window};
use farpath_tcp::config::{
    BackoffReset, CongestionConfig, CwndValidation, FullAckWindow, ImmediateAcks, PartialAckTimer,
    RateReduction, RecoverGuard, RecoveryAlgorithm, RetransmittedSyn, SlowStartGrowth,
};
use farpath_tcp::receiver::{Autotuning, compression_wait};
use farpath_units::{Duration, Instant, Probability};
use lattice::Losses;
use net::Net;
use walk::Walk;

/// What decided, in a result.
pub(crate) fn source(flow: &Flow) -> &'static str {
    if flow.sender.congestion.control.owns_cwnd() {
        "ACK by ACK, with the controller and the pace of the stack (derived)"
    } else {
        "rounds from loss to loss, with the window rules of the stack (derived)"
    }
}

/// Segments that an ascent follows one by one at most.
const LONGEST_ASCENT: usize = 50_000;

/// Segments that all replicas of a transfer have together, and the fewest replicas: in rounds, and one by one.
const IN_ROUNDS: (u64, u64) = (1 << 19, 16);
const ONE_BY_ONE: (u64, u64) = (1 << 16, 4);

/// Of a file that is too long to be followed to its end: the losses of a replica that are, and the bounds of its rounds.
const LOSSES: f64 = 48.0;
const ROUNDS: (f64, f64) = (256.0, 16_384.0);

/// What a transfer takes, from the first segment on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Transfer {
    /// Until the last byte has arrived.
    pub seconds: f64,
    pub retransmissions: f64,
    pub timeouts: f64,
    pub fast_retransmits: f64,
    /// Times that the timer ended the repair of many holes without SACK: what had arrived behind them is sent twice.
    pub sent_twice: f64,
    /// Repairs of many holes without SACK.
    pub many_holes: f64,
}

impl Transfer {
    /// Nothing is sent again, and no window reduced.
    pub fn untouched(&self) -> bool {
        self.retransmissions == 0.0 && self.fast_retransmits == 0.0
    }

    /// The same going on, so many times as long as from `half` to here.
    fn extended(&self, half: &Transfer, times: f64) -> Transfer {
        let on = |value: fn(&Transfer) -> f64| value(self) + (value(self) - value(half)) * times;
        Transfer {
            seconds: on(|of| of.seconds),
            retransmissions: on(|of| of.retransmissions),
            timeouts: on(|of| of.timeouts),
            fast_retransmits: on(|of| of.fast_retransmits),
            sent_twice: on(|of| of.sent_twice),
            many_holes: on(|of| of.many_holes),
        }
    }
}

/// Both ends, in segments of one size.
pub(crate) struct Ends<'a> {
    flow: &'a Flow<'a>,
    pub mss: u64,
    pub segments: u64,
    /// The most that may be unacknowledged.
    pub window: u64,
    pub ack_every: u64,
    pub ack_delay: f64,
    pub quick_acks: u64,
    pub quick_while_growing: bool,
    /// Of the ACKs that report what lies beyond a hole one stands for so many, or for those of so long, in s.
    pub compressed: u64,
    pub compression: f64,
    /// From the first SYN to the first segment, in s.
    pub opening: f64,
    /// The receiver's window, where it grows with the connection and each segment that makes it grow is acknowledged at once.
    pub autotuning: Option<Autotuning>,
    pub sack: bool,
    pub rack: bool,
    pub probe: bool,
    pub probe_ack_delay: f64,
    pub slack: f64,
    pub limited_transmit: bool,
    pub rate_reduction: RateReduction,
    /// Without SACK: what was outstanding at a loss must be passed, not only reached, before duplicates count again.
    pub guard: bool,
    pub algorithm: RecoveryAlgorithm,
    pub partial_ack_timer: PartialAckTimer,
    pub full_ack_window: FullAckWindow,
    /// What the controller makes of an ACK does not depend on how much it covers.
    pub grows_by_ack: bool,
    /// Time of a full window, in s: what its last segment waits for an ACK is part of it.
    pub full_round: f64,
    /// A timeout stays doubled until a segment that was sent once is measured.
    pub keeps_backoff: bool,
    /// The first data are sent again before their ACK can come (RFC 6298 §5.7), and nothing shows that it was not needed.
    pub spurious_start: bool,
    validation: CwndValidation,
}

impl<'a> Ends<'a> {
    fn new(flow: &'a Flow<'a>, net: &Net) -> Result<Ends<'a>, InputError> {
        let (sender, receiver) = (flow.sender, flow.receiver);
        let mss = flow.view.mss.0;
        let sack = sender.recovery.sack && receiver.recovery.sack;
        let congestion = &sender.congestion;
        let timestamps = sender.send.timestamps && receiver.send.timestamps;
        let cycle = flow.cycle(flow.window)?.value;
        let window = (flow.window.0 / mss).max(1) as f64;
        let full_round = if sender.send.minshall && flow.window.0 >= mss {
            // What is left of the window takes a small segment (tcp_mss_split_point()).
            net.idle() * window * mss as f64 / flow.window.0 as f64
        } else {
            window / cycle.segments as f64 * cycle.time.as_secs_f64()
        };
        let handshake = flow.view.handshake_rtt;
        let measured = handshake <= sender.rto.initial
            || sender.rto.retransmitted_syn == RetransmittedSyn::MeasuredFromFirst
            || timestamps;
        let spurious_start =
            !measured && crate::unsampled(sender, crate::syn_doublings(sender, handshake)) < handshake;
        Ok(Ends {
            flow,
            mss,
            segments: flow.spec.size.0.div_ceil(mss).max(1),
            window: (flow.window.0 / mss).max(1),
            ack_every: flow.ack_every(),
            ack_delay: receiver.receive.ack_delay.as_secs_f64(),
            quick_acks: receiver.receive.quick_acks.into(),
            quick_while_growing: receiver.receive.autotuning,
            compressed: if sack { receiver.receive.compressed_acks.into() } else { 0 },
            compression: compression_wait(Duration::from_secs_f64(net.idle())).as_secs_f64(),
            opening: opening(flow),
            autotuning: autotuning(flow, net),
            sack,
            rack: sender.recovery.rack && sack,
            probe: sender.recovery.tail_loss_probe && sack,
            probe_ack_delay: sender.recovery.probe_ack_delay.as_secs_f64(),
            slack: sender.recovery.timer_slack.as_secs_f64(),
            limited_transmit: sender.recovery.limited_transmit,
            rate_reduction: sender.recovery.rate_reduction,
            guard: !sack && sender.recovery.recover_guard != RecoverGuard::Off,
            algorithm: sender.recovery.algorithm,
            partial_ack_timer: sender.recovery.partial_ack_timer,
            full_ack_window: sender.recovery.full_ack_window,
            grows_by_ack: congestion.avoidance.counts_acks()
                || congestion.slow_start == SlowStartGrowth::PerAck,
            full_round,
            keeps_backoff: sender.rto.backoff_reset == BackoffReset::ValidSample && !timestamps,
            spurious_start,
            validation: congestion.cwnd_validation,
        })
    }

    fn congestion(&self) -> &CongestionConfig {
        &self.flow.sender.congestion
    }

    pub fn controller(&self) -> Controller {
        Controller::new(self.congestion(), self.mss, self.tick())
    }

    /// The sender's clock tick.
    pub fn tick(&self) -> Duration {
        self.flow.sender.rto.tick
    }

    pub fn first_window(&self) -> Window {
        let congestion = self.congestion();
        if self.spurious_start {
            // RFC 5681 §3.1: what a timeout leaves.
            return Window { cwnd: self.mss, ssthresh: 2 * self.mss };
        }
        Window {
            cwnd: u64::from(congestion.initial_window.max(1)) * self.mss,
            ssthresh: congestion.initial_ssthresh.map_or(u64::MAX, |bytes| bytes.0),
        }
    }

    /// Whether each segment is acknowledged, and not every second.
    pub fn acknowledges_each(&self, starting: bool) -> bool {
        self.ack_every == 1 || (starting && self.quick_while_growing)
    }

    pub fn every(&self) -> f64 {
        self.ack_every as f64
    }

    /// Whether `cwnd` is what keeps the sender from sending more.
    pub fn limited(&self, window: &Window, flight: u64) -> bool {
        let cwnd = window.cwnd / self.mss;
        if self.validation == CwndValidation::ByWindow && window.cwnd < window.ssthresh {
            return cwnd < 2 * flight;
        }
        cwnd <= self.window
    }

    /// Whether the window grows beyond what it lets be sent.
    pub fn grows_unused(&self, window: &Window) -> bool {
        let everywhere = matches!(self.validation, CwndValidation::Always | CwndValidation::ByWindow);
        everywhere && self.limited(window, self.window)
    }

    /// An ACK as the controller sees it. `rtts` are those of the first and of the last segment that it covers, all in s.
    #[expect(clippy::too_many_arguments, reason = "the fields of an AckEvent, in its order")]
    pub fn ack(
        &self,
        now: f64,
        newly: u64,
        acked_to: u64,
        sent_to: u64,
        flight: u64,
        cwnd_limited: bool,
        rtts: (f64, f64),
        srtt: f64,
    ) -> AckEvent {
        AckEvent {
            now: Instant::ZERO + Duration::from_secs_f64(now),
            newly_acked: newly * self.mss,
            acked_to: acked_to * self.mss,
            sent_to: sent_to * self.mss,
            flight_size: flight * self.mss,
            cwnd_limited,
            rtt: Some(Duration::from_secs_f64(rtts.0)),
            last_rtt: Some(Duration::from_secs_f64(rtts.1)),
            srtt: Some(Duration::from_secs_f64(srtt)),
        }
    }

    /// A loss as the controller sees it, found at `now` s, in segments.
    pub fn loss(&self, now: f64, flight: u64, pipe: u64, timeout: bool) -> LossEvent {
        LossEvent {
            now: Instant::ZERO + Duration::from_secs_f64(now),
            flight_size: flight * self.mss,
            pipe: pipe * self.mss,
            rwnd: self.window.saturating_mul(self.mss),
            timeout,
        }
    }

    /// When the retransmission timer expires that was started at `from`, in s, backed off so often.
    pub fn expiry(&self, from: f64, rtt: f64, backoff: u32) -> f64 {
        let rto = &self.flow.sender.rto;
        let first = self.flow.timeout(Duration::from_secs_f64(rtt), Duration::ZERO);
        let doubled = first.doubled(backoff.min(rto.max_backoff_exponent));
        let from = Instant::ZERO + Duration::from_secs_f64(from);
        (rto.expiry(from, doubled.min(rto.max)) - Instant::ZERO).as_secs_f64()
    }
}

/// From the first SYN until the sender hears that the connection is open, in s.
fn opening(flow: &Flow) -> f64 {
    let ways = match flow.spec.opener {
        Opener::Sender => 2.0,
        Opener::Receiver => 3.0,
    };
    ways / 2.0 * flow.view.handshake_rtt.as_secs_f64()
}

/// The window of a receiver that is Linux's, as it is when the connection is open.
fn autotuning(flow: &Flow, net: &Net) -> Option<Autotuning> {
    let (sender, receiver) = (flow.sender, flow.receiver);
    let grows = receiver.receive.autotuning && receiver.receive.immediate_acks == ImmediateAcks::Linux;
    grows.then(|| {
        let options = if sender.send.timestamps && receiver.send.timestamps { TIMESTAMPS.0 } else { 0 };
        let mut window = Autotuning::new(receiver.receive.buffer.0, flow.view.mss.0 + options);
        window.agree(options, flow.spec.opener == Opener::Receiver);
        // Who opens sends the last of the handshake; who is called hears of it with the first segment.
        let since = match flow.spec.opener {
            Opener::Sender => opening(flow) + net.forward,
            Opener::Receiver => flow.view.handshake_rtt.as_secs_f64(),
        };
        window.establish(Instant::ZERO + Duration::from_secs_f64(since));
        window
    })
}

/// The mean of a transfer over where losses fall.
pub(crate) fn transfer(flow: &Flow, marks: bool) -> Result<Transfer, InputError> {
    let net = Net::new(&flow.view, marks);
    let mut ends = Ends::new(flow, &net)?;
    if flow.sender.congestion.control.owns_cwnd() {
        let handshake = flow.view.handshake_rtt;
        let most = replicas(ends.segments, ONE_BY_ONE);
        return Ok(mean(flow, most, |losses| paced::transfer(&ends, &net, losses, handshake)));
    }
    let (all, followed) = (ends.segments, followed(&ends, &net, flow.view.data_loss));
    let mut first = |segments| {
        ends.segments = segments;
        let ascent = Ascent::new(&ends, &net);
        mean(flow, replicas(segments, IN_ROUNDS), |losses| Walk::new(&ends, &net, losses).run(&ascent))
    };
    if all <= followed {
        return Ok(first(all));
    }
    let half = first(followed / 2);
    Ok(first(followed).extended(&half, (all - followed) as f64 / (followed - followed / 2) as f64))
}

/// Segments of a longer file that are followed: rounds until it has lost so many, within bounds. What comes then is as the second half of these was.
fn followed(ends: &Ends, net: &Net, loss: Probability) -> u64 {
    let window = (ends.window as f64).min(net.capacity()).max(1.0);
    let rounds = (LOSSES / (loss.fraction() * window)).clamp(ROUNDS.0, ROUNDS.1);
    ((window * rounds) as u64).max(IN_ROUNDS.0)
}

fn mean(flow: &Flow, most: u64, one: impl Fn(Losses) -> Transfer) -> Transfer {
    let loss = flow.view.data_loss;
    let replicas = if loss.fraction() == 0.0 { 1 } else { most };
    let mut mean = Transfer::default();
    for replica in 0..replicas {
        let one = one(Losses::new(loss, replica, replicas));
        let share = 1.0 / replicas as f64;
        mean.seconds += one.seconds * share;
        mean.retransmissions += one.retransmissions * share;
        mean.timeouts += one.timeouts * share;
        mean.fast_retransmits += one.fast_retransmits * share;
        mean.sent_twice += one.sent_twice * share;
        mean.many_holes += one.many_holes * share;
    }
    mean
}

/// Replicas of a file of so many segments: many of a short one, few of a long one, which is a mean by itself.
fn replicas(segments: u64, (in_all, fewest): (u64, u64)) -> u64 {
    in_all.checked_div(segments).unwrap_or(1).clamp(fewest, 256).next_power_of_two()
}
