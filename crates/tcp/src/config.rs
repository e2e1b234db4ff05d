//! Everything that makes one TCP stack differ from another, as data.
//!
//! The defaults are the RFCs': 9293 (TCP), 5681 (congestion control), 6298 (RTO), 6582 (NewReno),
//! 1122 (delayed ACK). Switches that reproduce a deviation found in some stack or simulator say so
//! and are off by default.

use farpath_units::{Bytes, Duration, Rate};

/// The parameters of one end of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Largest segment that this end sends or announces (RFC 9293 §3.7.1), payload bytes.
    pub mss: Bytes,
    /// How segments are acknowledged.
    pub receive: ReceiveConfig,
    /// Initial, loss and congestion windows and their growth.
    pub congestion: CongestionConfig,
    /// Loss detection and repair.
    pub recovery: RecoveryConfig,
    /// Retransmission timeout.
    pub rto: RtoConfig,
    /// Opening and giving up.
    pub handshake: HandshakeConfig,
    /// Options and the small rules of sending.
    pub send: SendConfig,
    /// A rate that flow routers grant, for what this end sends.
    pub explicit_rate: ExplicitRateConfig,
}

/// RFC 9293 §3.8, RFC 1122 §4.2.3.2, RFC 5681 §4.2.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiveConfig {
    /// Receive buffer; the most that is ever announced as window.
    pub buffer: Bytes,
    /// How fast the application reads, in bytes per second; `None` reads at once.
    pub read_rate: Option<u64>,
    /// Acknowledge every so many segments with payload; 1 acknowledges each.
    // DEVIATES RFC 5681 §4.2: it counts full-sized segments. Small ones are counted here too, as BSD did: a
    // receiver cannot know what is full-sized at the sender.
    pub ack_every: u32,
    /// Longest that an ACK is withheld; zero acknowledges each segment.
    pub ack_delay: Duration,
    /// Where it follows the gaps between segments (Linux): the longest that it gets, from [`ReceiveConfig::ack_delay`] on. It
    /// doubles with each wait that no second segment ended.
    pub ack_delay_max: Option<Duration>,
    /// What starts the wait.
    pub ack_clock: AckClock,
    /// Acknowledge so many segments at once when a connection begins (Linux "quick ACK").
    pub quick_acks: u32,
    /// Acknowledge so many at once again where data in order comes after a gap longer than the RTO (Linux). What a sender
    /// repairs by timeouts is then acknowledged segment by segment, and its timer is measured anew the sooner.
    pub quick_acks_after_gap: u32,
    /// What uses up quick ACKs, and what bounds their number.
    pub quick_ack_accounting: QuickAckAccounting,
    /// The window begins with what 128 kB of memory hold, and grows with what the program reads, up to the buffer (Linux's
    /// `tcp_moderate_rcvbuf`).
    pub autotuning: bool,
    /// Acknowledge at once a segment that carries PSH, or is smaller than those before it, where the program has read all
    /// that came (Linux's `ICSK_ACK_PUSHED`).
    pub ack_pushed: bool,
    /// With SACK: of the ACKs that report what lies beyond a hole the first three leave at once, then one stands for so many, or
    /// for those of a twentieth of a round trip and no more than a millisecond (Linux's `tcp_comp_sack_nr`). 0 sends each.
    pub compressed_acks: u32,
    /// With timestamps: which segments have theirs echoed from then on.
    pub ts_recent: TsRecent,
}

/// Which segments TS.Recent is taken from (RFC 7323 §4.3), of those that PAWS lets through.
///
/// They differ in copies of what has arrived. The sender takes the echo for the time at which it sent what is acknowledged: where
/// the first copy's is echoed, an ACK that was lost makes a sample of RTO + RTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TsRecent {
    /// `SEG.SEQ <= Last.ACK.sent` (RFC 7323 §4.3 (2)): of any copy. Appendix D takes it before the segment is tested for the
    /// window.
    Rfc7323,
    // DEVIATES RFC 7323 §4.3: what ends before Last.ACK.sent is refused first, as Linux does.
    /// `SEG.SEQ <= Last.ACK.sent <= SEG.SEQ + SEG.LEN`: of copies, that of the last segment (Linux's `tcp_sequence()` and
    /// `tcp_replace_ts_recent()`).
    Linux,
    // DEVIATES RFC 7323 §4.3: what has arrived is cut off first, as FreeBSD does.
    /// `max(SEG.SEQ, RCV.NXT) <= Last.ACK.sent`: of any copy, unless an ACK is withheld (FreeBSD's `tcp_do_segment()`).
    FreeBsd,
    // DEVIATES RFC 7323 §4.3: it is what came before it.
    /// `SEG.SEQ <= Last.ACK.sent < SEG.SEQ + SEG.LEN` (RFC 1323 §3.4; 4.4BSD): of no copy of what has been acknowledged, and
    /// of nothing without payload.
    Rfc1323,
    // DEVIATES RFC 7323 §4.3: copies are left out.
    /// `SEG.SEQ = RCV.NXT <= Last.ACK.sent`: of no copy (ns-3's `TcpSocketBase::ProcessOptionTimestamp()`).
    InOrder,
}

/// When a withheld ACK is sent for lack of a second segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckClock {
    /// [`ReceiveConfig::ack_delay`] after the segment came.
    Segment,
    /// At the next multiple of [`ReceiveConfig::ack_delay`] on the host's clock (BSD's 200 ms fast timer).
    Host,
}

/// How the segments that are still acknowledged at once are counted (quick ACKs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuickAckAccounting {
    /// Each segment in order takes one.
    PerSegment,
    /// Each ACK that leaves takes one, whatever it answers (`tcp_dec_quickack_mode()`). Their number is bounded by the full
    /// segments that half of the window holds, by two where it holds none (`tcp_incr_quickack()`), and made odd by each
    /// segment that makes the window grow (`tcp_grow_window()`; only with [`ReceiveConfig::autotuning`]).
    Linux,
}

/// RFC 5681 §3.1, RFC 3465, RFC 6928, RFC 9406, RFC 9438.
#[derive(Debug, Clone, PartialEq)]
pub struct CongestionConfig {
    /// Which controller.
    pub control: CongestionControlKind,
    /// Initial window, in segments.
    pub initial_window: u32,
    /// Begin with one segment after so many losses of a SYN or SYN/ACK.
    pub one_segment_after_syn_loss: SynLoss,
    /// `ssthresh` before the first loss; `None` is as high as it gets.
    pub initial_ssthresh: Option<Bytes>,
    /// `cwnd` never grows past this; `None` lets it grow.
    pub cwnd_clamp: Option<Bytes>,
    /// How `cwnd` grows below `ssthresh`.
    pub slow_start: SlowStartGrowth,
    /// What ends the first slow start before a loss does.
    pub hystart: HyStart,
    /// How Reno's `cwnd` grows from `ssthresh` on.
    pub avoidance: AvoidanceGrowth,
    /// What congestion avoidance had been acknowledged towards its next segment counts on after a loss (ns-3's
    /// `TcpLinuxReno`).
    pub credit_survives_loss: bool,
    /// What an ACK covers and reports had told of before counts for no growth (Linux); without SACK, each duplicate ACK
    /// told of a segment. Off: an ACK that fills a hole counts for all that it covers.
    pub growth_by_delivery: bool,
    /// CUBIC: by whose rules the window grows.
    pub cubic: CubicRules,
    /// CUBIC: where a loss comes before the last `W_max` is reached, take less for the next one (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// CUBIC by RFC 9438: once what Reno would have has reached the last window, it is taken to grow by a whole segment per round trip
    /// (RFC 9438 §4.3). Off: by 9/17 of one for ever (RFC 8312 §4.2).
    pub friendly_alpha_one: bool,
    /// Reno: grow only when `cwnd` is what limits the sender (RFC 7661 §4.1 in its simplest form, as Linux does).
    /// CUBIC always does (RFC 9438 §4.6, §5.8).
    pub cwnd_validation: bool,
    /// Reno: the same for congestion avoidance alone; slow start grows unused (ns-3's `TcpLinuxReno`).
    pub avoidance_validation: bool,
    /// Where cwnd has to be the limit to grow, it counts as that for the whole window of data in which it was, and slow
    /// start grows to twice the most that was in flight (Linux). A window that the peer holds down is then no part of what
    /// a loss halves.
    pub validation_by_window: bool,
    /// After an idle time of one RTO, go back to the initial window (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// What half of is `ssthresh` after a loss; with CUBIC, 0.7 of it (RFC 9438 §4.6).
    pub ssthresh_from: SsthreshFrom,
    /// Whether a timeout of a segment that had already timed out lowers `ssthresh` again. RFC 5681 §3.1 holds it.
    pub ssthresh_on_repeated_timeout: bool,
    /// Whether a timeout within fast recovery lowers `ssthresh` a second time (RFC 5681 §3.1). Off: Linux.
    pub ssthresh_on_timeout_in_recovery: bool,
}

/// Names of congestion controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControlKind {
    /// RFC 5681: additive increase, halving on loss.
    Reno,
    /// RFC 9438: a cubic function of the time since the last loss, 0.7 of the window after one.
    Cubic,
    /// Version 1, as in Linux: a model of the bottleneck's rate and of the round trip without queue, and no loss.
    Bbr,
    /// Version 3: the same, bounded by losses of more than 2 % (draft-ietf-ccwg-bbr).
    Bbr3,
}

impl CongestionControlKind {
    /// Every controller, in the order of their declaration.
    pub const ALL: [CongestionControlKind; CongestionControlKind::Bbr3 as usize + 1] = [
        CongestionControlKind::Reno,
        CongestionControlKind::Cubic,
        CongestionControlKind::Bbr,
        CongestionControlKind::Bbr3,
    ];

    /// As files spell it.
    pub const fn name(self) -> &'static str {
        match self {
            CongestionControlKind::Reno => "reno",
            CongestionControlKind::Cubic => "cubic",
            CongestionControlKind::Bbr => "bbr",
            CongestionControlKind::Bbr3 => "bbr3",
        }
    }
}

/// By whose rules CUBIC's window grows in congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CubicRules {
    /// RFC 9438.
    Rfc9438,
    // DEVIATES RFC 9438 §4.10: before the first loss the window grows by a twentieth a round trip, at least.
    /// `tcp_cubic.c`: in whole segments and jiffies ([`RtoConfig::tick`]), 717/1024 of the window after a loss, whatever
    /// [`CongestionConfig::ssthresh_from`] says.
    Linux,
}

/// Slow start's increase for an ACK of N new bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowStartGrowth {
    /// SMSS per ACK (Jacobson 1988).
    PerAck,
    /// `min(N, SMSS)` (RFC 5681 Eq. 2; Eq. 16 of the high-BER paper).
    PerByte,
    // DEVIATES RFC 3465 §2.3: L stays 2 in the slow start after a timeout, as in Linux and ns-3.
    /// `min(N, L·SMSS)` with L = 2 (RFC 3465 §2.2): delayed ACKs cost nothing.
    TwoSegments,
    // DEVIATES RFC 3465 §2.2: no limit L. What a filled hole acknowledges at once, a timeout's repair foremost, opens
    // the window by as much.
    /// All N bytes, as far as `ssthresh` (Linux, and ns-3's Linux Reno).
    AllAcked,
}

/// What ends the first slow start before a loss does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HyStart {
    /// Nothing.
    Off,
    /// HyStart++ (RFC 9406): the growth of the delay does, carefully. Until then `cwnd` grows by `min(N, 8·SMSS)` per ACK,
    /// whatever `slow_start` says.
    Rfc9406,
    // DEVIATES RFC 9406: it goes on at a quarter of the growth for some rounds.
    /// CUBIC's in Linux: the growth of the delay, or a train of ACKs that is half of a round trip long, does so at once. Also
    /// in the slow start after a timeout. Reno has none.
    Linux,
}

/// Congestion avoidance's increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AvoidanceGrowth {
    /// `SMSS·SMSS / cwnd` per ACK (RFC 5681 Eq. 3; Eq. 17 of the high-BER paper). With delayed ACKs, half as fast.
    PerAck,
    /// SMSS per `cwnd` bytes acknowledged (RFC 3465 §2.1).
    PerByte,
    /// As `PerAck`, in whole bytes, at least one (RFC 5681 §3.1); and an ACK of two segments that ends slow start with
    /// the first grows by the second (ns-3's `TcpNewReno`).
    PerAckRounded,
    // DEVIATES RFC 3465 §2.1: it grows by one SMSS per ACK at most.
    /// SMSS for each `cwnd` that an ACK acknowledges, in whole segments, however many (Linux, ns-3's `TcpLinuxReno`).
    AllAcked,
}

/// What a loss halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SsthreshFrom {
    /// `max(flight_size / 2, 2·SMSS)` (RFC 5681 Eq. 4).
    FlightSize,
    /// `min(cwnd, rwnd) / 2` in whole segments, at least two (4.3BSD and its descendants).
    WindowSegments,
    /// `max(cwnd / 2, 2·SMSS)`, used or not (ns-3's `TcpLinuxReno`).
    Cwnd,
    /// The same in whole segments, rounded down (Linux, which counts in them).
    CwndSegments,
    // DEVIATES RFC 5681 §3.1, RFC 6675 §5 (4.2): both halve FlightSize.
    /// `max(pipe / 2, 2·SMSS)`: what has arrived out of order counts as no longer in flight (ns-3's `TcpNewReno`).
    Pipe,
}

/// RFC 5681 §3.2, RFC 6582, RFC 6675, RFC 3042; RFC 6937, RFC 8985; RFC 5682, RFC 3522, RFC 2883, RFC 3708.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryConfig {
    /// What the third duplicate ACK starts.
    pub algorithm: RecoveryAlgorithm,
    /// Duplicate ACKs that mean loss (DupThresh).
    pub dup_ack_threshold: u32,
    /// Send new data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Offer and use selective acknowledgments (RFC 2018, RFC 6675).
    pub sack: bool,
    /// No fast retransmit for duplicate ACKs of data below `recover` (RFC 6582 §3.2 step 1). Plain Reno has no such guard.
    pub recover_guard: bool,
    /// What the guard keeps from starting a fast retransmit sends no new data either (Linux). Off: limited transmit goes on
    /// (RFC 3042).
    pub guard_stops_limited_transmit: bool,
    /// Which partial ACKs restart the retransmission timer in NewReno (RFC 6582 §4).
    pub partial_ack_timer: PartialAckTimer,
    /// What NewReno without SACK leaves of the congestion window when recovery is over (RFC 6582 §3.2 step 3).
    pub full_ack_window: FullAckWindow,
    /// Once per recovery with SACK, send the end of the flight again when nothing else may be sent (RFC 6675 §4,
    /// NextSeg rule 4).
    pub rescue_retransmission: bool,
    /// With SACK, how fast recovery brings the flight down to `ssthresh`.
    pub rate_reduction: RateReduction,
    /// The same without SACK, where each duplicate ACK stands for a segment that has arrived (RFC 9937 §6.2; Linux). Off:
    /// the window is inflated and deflated (RFC 5681 §3.2, RFC 6582 §3.2).
    pub rate_reduction_without_sack: bool,
    /// With SACK, find losses by time in place of by counting (RACK, RFC 8985 §6): lost retransmissions too.
    pub rack: bool,
    /// With RACK: by whose rules it measures, and notices reordering.
    pub rack_rules: RackRules,
    /// What the reordering timer waits longer than RACK says, and a probe for several segments longer than two round
    /// trips (Linux: 2 ms).
    pub timer_slack: Duration,
    /// With SACK, probe for a lost tail before the retransmission timer does (TLP, RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// The longest that the peer is taken to withhold the ACK of a lone segment (RFC 8985 §7.2, TLP.max_ack_delay).
    pub probe_ack_delay: Duration,
    /// After a timeout, find out whether it was for nothing before all is sent again (F-RTO, RFC 5682); what it cost
    /// is given back then.
    pub frto: bool,
    /// With timestamps, see by the first ACK that a retransmission was for nothing (Eifel, RFC 3522), and give back
    /// what it cost.
    pub eifel: bool,
    /// With SACK, report what arrives twice (D-SACK, RFC 2883).
    pub dsack: bool,
    /// Give back what a loss cost when every retransmission for it is reported as a duplicate (RFC 3708).
    pub undo_by_dsack: bool,
    /// Fast retransmit starts the retransmission timer anew. Off: it runs on from the last ACK of new data (ns-3).
    pub fast_retransmit_timer: bool,
    // DEVIATES RFC 6298 §5: the timer there is that of the oldest data, however often it was sent.
    /// With RACK, the retransmission timer starts anew whenever the first segment in flight is sent again, and with reports
    /// of what was sent before that (Linux's `tcp_xmit_retransmit_queue()`, `tcp_clean_rtx_queue()`): while losses are being
    /// repaired one by one, it does not expire.
    pub timer_follows_repair: bool,
    /// After which kind of recovery the ACK that ends it grows the congestion window.
    pub end_growth: EndGrowth,
    /// With SACK, what is merely unreported is sent again also where new data waits for the peer's window (RFC 6675 §4,
    /// NextSeg rule 3). Off: only where there is no new data (ns-3).
    pub unreported_before_window: bool,
    // DEVIATES RFC 6298 §5.3: there it restarts the timer.
    /// Outside of recovery, an ACK of new data whose SACK blocks report something new is a duplicate and nothing else:
    /// it neither grows the window nor restarts the timer (ns-3).
    pub sacking_ack_is_duplicate: bool,
    /// RFC 6582 §3.2 step 3 takes what a partial ACK acknowledges off the window even where fewer duplicate ACKs had
    /// been added to it. Off: it stays above `ssthresh`, as where segments in flight are counted (ns-3, Linux).
    pub deflate_below_ssthresh: bool,
    /// Without SACK, duplicate ACKs count while a timeout is being repaired too. Off: ns-3.
    pub dup_acks_after_timeout: bool,
}

/// Named by the system that brought it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryAlgorithm {
    /// No fast retransmit: only the timer repairs.
    TimeoutOnly,
    /// Fast retransmit, then slow start (4.3BSD-Tahoe).
    Tahoe,
    /// Fast retransmit and fast recovery, which the first new ACK ends (RFC 5681 §3.2).
    Reno,
    /// As Reno, but partial ACKs keep recovery going (RFC 6582). With SACK: RFC 6675.
    NewReno,
}

/// How RACK measures, and notices that packets change their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RackRules {
    /// RFC 8985: RACK.rtt is of what was sent last; every D-SACK widens the reordering window.
    Rfc8985,
    // DEVIATES RFC 8985 §6.2: steps 2 and 4, as said.
    /// Linux: RACK.rtt is of what an ACK covers, also where its SACK blocks report what was sent later
    /// (`tcp_sacktag_write_queue()` before `tcp_clean_rtx_queue()`). A D-SACK widens the window only after reordering was seen, and
    /// tells nothing beyond as many as were sent again (`tcp_dsack_seen()`). An echo that shows a partial ACK to be of an
    /// original is reordering (`tcp_try_undo_partial()`). Where more than three segments were overtaken, cwnd grows with what
    /// SACK reports too (`tcp_may_raise_cwnd()`).
    Linux,
}

/// How the flight comes down from what it was to `ssthresh` during fast recovery with SACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateReduction {
    /// `cwnd` is `ssthresh` at once: silence until `pipe` is below it, then a segment for each that arrives
    /// (RFC 6675 §5).
    AtOnce,
    /// In proportion to what arrives (PRR), and below `ssthresh` no more than arrives (RFC 6937 §3, CRB).
    Conservative,
    /// In proportion to what arrives (PRR), and below `ssthresh` a segment more with each ACK (RFC 6937 §3, SSRB).
    SlowStart,
    /// In proportion to what arrives (PRR), and below `ssthresh` a segment more with each ACK that makes progress
    /// and tells of no further loss (RFC 9937 §6.2; Linux).
    SafeAck,
}

/// RFC 6582 §4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialAckTimer {
    /// The first partial ACK of a recovery restarts the timer, later ones do not.
    Impatient,
    /// Every partial ACK restarts it.
    SlowButSteady,
    // DEVIATES RFC 6298 §5.3: there each ACK of new data restarts the timer.
    /// The first partial ACK of a recovery restarts the timer, later ones do not, with SACK either (ns-3).
    ImpatientWithSack,
}

/// After how many losses of its SYN or SYN/ACK a sender begins with one segment. A loss is what the timer took for one, unless
/// the echo says otherwise ([`RecoveryConfig::eifel`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SynLoss {
    // DEVIATES RFC 5681 §3.1, as ns-3.
    /// The initial window, whatever was lost.
    Never,
    /// RFC 5681 §3.1.
    First,
    // DEVIATES RFC 5681 §3.1: an RTO of 1 s expires for nothing on many a path, one of 3 s did not.
    /// Where it was sent more than twice, by the timer or for a SYN that came again (Linux).
    Second,
}

impl SynLoss {
    /// Whether a sender whose SYN or SYN/ACK left so many times, and was lost, begins with one segment.
    pub fn is_cautious(self, transmissions: u32) -> bool {
        match self {
            SynLoss::Never => false,
            SynLoss::First => transmissions > 1,
            SynLoss::Second => transmissions > 2,
        }
    }
}

/// Growth with the ACK that acknowledges all that was outstanding when recovery began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndGrowth {
    /// After a timeout: slow start goes on (RFC 5681 §3.1). Fast recovery's last ACK deflates the window, and no more.
    AfterTimeout,
    // DEVIATES RFC 5681 §3.2 step 6: nothing is added to `ssthresh` there.
    /// After fast recovery, from `ssthresh` on; after a timeout, only for what lies beyond (ns-3).
    AfterFastRecovery,
    // DEVIATES RFC 5681 §3.2 step 6, as above.
    /// After both; without SACK, after fast recovery only where the ACK lies beyond (Linux, which leaves it then).
    AfterBoth,
}

/// The two options of RFC 6582 §3.2 step 3 for the ACK that ends recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullAckWindow {
    /// `min(ssthresh, max(flight_size, SMSS) + SMSS)`: no burst into an empty network.
    FlightSize,
    /// `ssthresh` (ns-3).
    Ssthresh,
}

/// RFC 6298 and what stacks make of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RtoConfig {
    /// Before the first RTT sample.
    pub initial: Duration,
    /// Floor.
    pub min: Duration,
    /// Ceiling, of the timeout and of its back-off. A path property: below the RTT, nothing ever arrives in time.
    pub max: Duration,
    /// Clock granularity G: timers expire at multiples of it, and it is the least of `4·RTTVAR`. Zero is exact.
    pub tick: Duration,
    /// Timers are those of Linux's timer wheel, whose jiffy is `tick`: what waits 63·8ⁿ jiffies or more expires at a
    /// multiple of 8ⁿ⁺¹ jiffies, and never before a jiffy more than it was to wait.
    pub timer_wheel: bool,
    /// Gain of SRTT as a divisor: 8 is alpha = 1/8.
    pub srtt_divisor: u32,
    /// Gain of RTTVAR as a divisor: 4 is beta = 1/4.
    pub rttvar_divisor: u32,
    /// K in `SRTT + K·RTTVAR`.
    pub rttvar_factor: u32,
    /// Where the floor applies.
    pub floor: RtoFloor,
    /// Which segments are timed when timestamps are off.
    pub sampling: RttSampling,
    /// How a timed segment is measured.
    pub measure: RttMeasure,
    /// When a backed-off timeout goes back to the computed one.
    pub backoff_reset: BackoffReset,
    /// Largest back-off as a power of two; 64 s from 1 s is 6. Beside it, `max` holds.
    pub max_backoff_exponent: u32,
    /// Karn's rule for the SYN too: one that was sent again measures nothing, unless an echo tells what copy was answered
    /// (RFC 7323 §4.1). Off: ns-3, which measures it from the first.
    pub karn_on_syn: bool,
    /// The timeout to start data with when the SYN had to be sent again (RFC 6298 §5.7); `None` starts with `initial`.
    pub after_syn_timeout: Option<Duration>,
}

/// Two readings of "minimum RTO".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtoFloor {
    /// `max(SRTT + 4·RTTVAR, min)` (RFC 6298 §2.4).
    Rto,
    /// `SRTT + max(4·RTTVAR, min)` (Linux).
    Variance,
}

/// Which segments are timed when timestamps are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttSampling {
    /// One at a time (RFC 6298 §3, "at least one per RTT").
    OneAtATime,
    /// Every ACK whose first newly acknowledged segment was sent only once (Linux, ns-3).
    EveryAck,
}

/// How a timed segment is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttMeasure {
    /// To the nanosecond.
    Exact,
    /// In clock ticks that passed, at least one (BSD before 4.4's end).
    Ticks,
}

/// When a backed-off timeout goes back to the computed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackoffReset {
    /// With the next valid RTT sample (Karn and Partridge 1987).
    ValidSample,
    /// With any ACK of new data (ns-3, Linux after a timeout).
    AnyAck,
}

/// RFC 9293 §3.5, §3.8.3.
#[derive(Debug, Clone, PartialEq)]
pub struct HandshakeConfig {
    /// SYNs sent before giving up; the give-up comes when the wait after the last one ends. `None` never gives up.
    pub syn_attempts: Option<u32>,
    /// The first so many SYN timeouts do not double (Linux `tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// Ends the opening so long after its first SYN, whatever the number of SYNs; `None` has no such timer (RFC 9293
    /// §3.9.1.1, the user timeout; 75 s in BSD, 21 s in Windows).
    pub connect_timeout: Option<Duration>,
    /// SYN/ACKs sent before the half-open connection is forgotten; `None` never forgets.
    pub synack_attempts: Option<u32>,
    /// Count a SYN/ACK that answers a duplicate SYN too (ns-3). RFC: only the timer's.
    pub synack_shared_budget: bool,
    /// Retransmissions of one segment before the connection is aborted (R2); `None` never aborts.
    pub data_retries: Option<u32>,
    /// Answer segments of a connection that is gone with a reset (RFC 9293 §3.10.7.1). Off: ns-3.
    pub reset_when_closed: bool,
    /// How long the closing end waits for stray segments (twice the MSL).
    pub time_wait: Duration,
    /// Announce the MSS in SYN and SYN/ACK, and take the default of RFC 9293 §3.7.1 where the peer does not. Off: ns-3,
    /// whose two ends are told the same.
    pub mss_option: bool,
    /// The ACK of a SYN/ACK leaves before the first data, not with it: the rule where a program writes only once it
    /// is connected.
    pub ack_alone: bool,
}

/// Options and the small rules of sending.
#[derive(Debug, Clone, PartialEq)]
pub struct SendConfig {
    /// Send buffer; the most that is written but not acknowledged. `None` takes all that the application has.
    pub buffer: Option<Bytes>,
    /// Nagle's rule (RFC 9293 §3.7.4): no small segment while data is unacknowledged.
    pub nagle: bool,
    /// Nagle's rule in Minshall's form: only another small segment that is unacknowledged holds one back. And where a
    /// burst of full segments ends at the edge of the peer's window, a small one behind them fills it (Linux).
    pub minshall: bool,
    /// Window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Timestamps and PAWS (RFC 7323 §3-5).
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168), for both halves of the connection.
    pub ecn: EcnMode,
    /// Segments leave at the pace of the window: twice `cwnd` per SRTT in slow start, 1.2 times after it (Linux under the
    /// `fq` scheduler). A controller that has a pace of its own, as BBR, is paced in any case.
    pub pacing: bool,
    /// New data is handed to the device in super-packets of about a millisecond at the window's rate, and no more than half a
    /// window: the last segment of each that has several carries PSH, and so does the end of each buffer that the program
    /// filled (Linux).
    pub super_packets: bool,
    /// New data waits until so large a part of the window may leave in one piece, where the last segment left within a
    /// millisecond and an ACK is due within one: 3 is a third (Linux's `tcp_tso_win_divisor`). 0 waits for nothing.
    pub tso_win_divisor: u32,
    /// First zero-window probe interval; doubles up to `persist_max` (RFC 9293 §3.8.6.1).
    pub persist_min: Duration,
    /// Longest zero-window probe interval.
    pub persist_max: Duration,
    /// TTL, or hop limit, that packets leave with (RFC 791 §3.1; RFC 1700 recommends 64).
    pub ttl: u8,
}

/// Explicit rate (TIA-1039), for a driver between this end and IP. TCP itself looks at the fallback only.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplicitRateConfig {
    /// The most that is asked for, bits of IP packets; `None` has no driver.
    pub wanted: Option<Rate>,
    /// What kind of rate `wanted` is.
    pub kind: RateKind,
    /// Of a composite rate, what is to be guaranteed beside `wanted`, which is shared.
    pub guaranteed: Option<Rate>,
    /// Who loses a guarantee last: 0 to 63.
    pub preemption: u8,
    /// Whose packets of a guarantee wait least: 0 to 63.
    pub delay: u8,
    /// Loss above which a grant is given up, in packets of a thousand.
    pub loss_limit_per_mille: u32,
    /// The controller that goes on where a grant was given up. Where there never was one it is `congestion.control`.
    pub fallback: CongestionControlKind,
    /// The end's buffers are as large as the rate needs over the path while what is lost is repaired; where it asks for one.
    pub size_buffers: bool,
    /// The receive buffer of the peer counts as its window from the first segment on: a SYN/ACK cannot say more than 64 kB.
    pub early_window: bool,
}

/// What is asked for: TIA-1039's types of rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateKind {
    /// As much as there is, fairly shared.
    Available,
    /// Something guaranteed, and an Available Rate on top of it.
    Composite,
    /// Guaranteed while it is used.
    Maximum,
    /// Guaranteed until it is closed.
    Guaranteed,
}

/// When a connection uses ECN; Linux calls them `tcp_ecn` 0, 2 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnMode {
    /// Never.
    Off,
    /// Where the peer asks for it.
    Accept,
    /// It is asked for, and accepted.
    Request,
}

impl Config {
    /// Whether windows are scaled between this end and that one: both must offer it (RFC 7323 §2.2).
    pub fn scales_with(&self, other: &Config) -> bool {
        self.send.window_scaling && other.send.window_scaling
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: Bytes(1460),
            receive: ReceiveConfig {
                buffer: Bytes(65_535),
                read_rate: None,
                ack_every: 2,
                ack_delay: Duration::from_millis(200),
                ack_delay_max: None,
                ack_clock: AckClock::Segment,
                quick_acks: 0,
                quick_acks_after_gap: 0,
                quick_ack_accounting: QuickAckAccounting::PerSegment,
                autotuning: false,
                ack_pushed: false,
                compressed_acks: 0,
                ts_recent: TsRecent::Rfc7323,
            },
            congestion: CongestionConfig {
                control: CongestionControlKind::Reno,
                initial_window: 3,
                one_segment_after_syn_loss: SynLoss::First,
                initial_ssthresh: None,
                cwnd_clamp: None,
                slow_start: SlowStartGrowth::PerByte,
                hystart: HyStart::Off,
                avoidance: AvoidanceGrowth::PerByte,
                credit_survives_loss: false,
                growth_by_delivery: false,
                cubic: CubicRules::Rfc9438,
                fast_convergence: true,
                friendly_alpha_one: true,
                cwnd_validation: false,
                avoidance_validation: false,
                validation_by_window: false,
                restart_after_idle: true,
                ssthresh_from: SsthreshFrom::FlightSize,
                ssthresh_on_repeated_timeout: false,
                ssthresh_on_timeout_in_recovery: true,
            },
            recovery: RecoveryConfig {
                algorithm: RecoveryAlgorithm::NewReno,
                dup_ack_threshold: 3,
                limited_transmit: true,
                sack: false,
                recover_guard: true,
                guard_stops_limited_transmit: false,
                partial_ack_timer: PartialAckTimer::Impatient,
                full_ack_window: FullAckWindow::FlightSize,
                rescue_retransmission: false,
                rate_reduction: RateReduction::AtOnce,
                rate_reduction_without_sack: false,
                rack: false,
                rack_rules: RackRules::Rfc8985,
                timer_slack: Duration::ZERO,
                tail_loss_probe: false,
                probe_ack_delay: Duration::from_millis(200),
                frto: false,
                eifel: false,
                dsack: false,
                undo_by_dsack: false,
                fast_retransmit_timer: true,
                timer_follows_repair: false,
                end_growth: EndGrowth::AfterTimeout,
                unreported_before_window: true,
                sacking_ack_is_duplicate: false,
                deflate_below_ssthresh: true,
                dup_acks_after_timeout: true,
            },
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
                tick: Duration::ZERO,
                timer_wheel: false,
                srtt_divisor: 8,
                rttvar_divisor: 4,
                rttvar_factor: 4,
                floor: RtoFloor::Rto,
                sampling: RttSampling::OneAtATime,
                measure: RttMeasure::Exact,
                backoff_reset: BackoffReset::ValidSample,
                max_backoff_exponent: 16,
                karn_on_syn: true,
                after_syn_timeout: Some(Duration::from_secs(3)),
            },
            handshake: HandshakeConfig {
                syn_attempts: Some(8),
                syn_linear_timeouts: 0,
                connect_timeout: None,
                synack_attempts: Some(6),
                synack_shared_budget: false,
                data_retries: Some(15),
                reset_when_closed: true,
                time_wait: Duration::from_secs(240),
                mss_option: true,
                ack_alone: false,
            },
            send: SendConfig {
                buffer: None,
                nagle: true,
                minshall: false,
                window_scaling: false,
                timestamps: false,
                ecn: EcnMode::Off,
                pacing: false,
                super_packets: false,
                tso_win_divisor: 0,
                persist_min: Duration::from_secs(1),
                persist_max: Duration::from_secs(60),
                ttl: 64,
            },
            explicit_rate: ExplicitRateConfig {
                wanted: None,
                kind: RateKind::Available,
                guaranteed: None,
                preemption: 32,
                delay: 32,
                loss_limit_per_mille: 100,
                fallback: CongestionControlKind::Bbr,
                size_buffers: true,
                early_window: false,
            },
        }
    }
}
