//! Each parameter of a stack, and whether the kernel can be made to follow it. The Config is taken apart field by field,
//! so that a new one cannot be forgotten.
//!
//! What is said of the kernel is of Linux 6.18, from its sources and by packet traces of it.

use super::sysctls::{MOST_REORDERING, MOST_RETRIES, MOST_SYNS, RTO_MAX};
use super::{Buffers, DELAYED_ACK, LEAST_DELAYED_ACK, LONGEST_DELAYED_ACK, UNSCALED};
use crate::control::kernel_control;
use farpath_tcp::config::{
    AckClock, AvoidanceGrowth, BackoffReset, Config, CongestionConfig, CongestionControlKind, CubicRules,
    EndGrowth, FullAckWindow, HandshakeConfig, HyStart, PartialAckTimer, RackRules, RateReduction,
    ReceiveConfig, RecoveryAlgorithm, RecoveryConfig, RtoConfig, RtoFloor, RttMeasure, RttSampling,
    SendConfig, SlowStartGrowth, SsthreshFrom, SynLoss, TsRecent,
};
use farpath_units::{Bytes, Duration};
use std::fmt::Display;

/// Segments acknowledged at once when a connection begins: 16 (TCP_MAX_QUICKACKS), and one more for each time that the
/// kernel's own window grows. Traced: 27 with the room that the dress gives to windows without scaling, 64 with four times
/// as much.
const QUICK_ACKS: std::ops::RangeInclusive<u32> = 16..=64;
/// TCP_TIMEOUT_INIT.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// TCP_TIMEOUT_FALLBACK.
const AFTER_SYN_TIMEOUT: Duration = Duration::from_secs(3);
/// TCP_TIMEWAIT_LEN.
const TIME_WAIT: Duration = Duration::from_secs(60);
/// A jiffy at the coarsest (CONFIG_HZ 100).
const JIFFY: Duration = Duration::from_millis(10);
/// TCP_RTO_MIN, which bounds the interval of probes whatever the floor of the RTO is.
const LEAST_PROBE: Duration = Duration::from_millis(200);
/// TCP_TIMEOUT_MIN_US.
const TIMER_SLACK: Duration = Duration::from_millis(2);
/// `tcp_min_snd_mss`.
const LEAST_MSS: Bytes = Bytes(48);

/// One line for each parameter that is not followed.
struct Notes(Vec<String>);

impl Notes {
    /// The kernel does something else where `holds` is not so.
    fn unless(&mut self, holds: bool, key: &str, value: impl Display, kernel: &str) {
        if !holds {
            self.0.push(format!("{key} {value}: {kernel}"));
        }
    }

    /// As `unless`, of something that can be absent.
    fn unless_option<T: Display>(
        &mut self,
        holds: bool,
        key: &str,
        value: Option<T>,
        none: &str,
        kernel: &str,
    ) {
        match value {
            Some(value) => self.unless(holds, key, value, kernel),
            None => self.unless(holds, key, none, kernel),
        }
    }
}

pub(super) fn of(config: &Config, other_end: &Config, buffers: Buffers) -> Vec<String> {
    let Config { mss, receive, congestion, recovery, rto, handshake, send, explicit_rate } = config;
    let mut notes = Notes(Vec::new());
    notes.unless(*mss >= LEAST_MSS, "mss", mss, "the kernel sends 48 B at the least (tcp_min_snd_mss)");
    of_window(config, other_end, &mut notes);
    of_receive(receive, buffers, &mut notes);
    of_timestamps(config, other_end, &mut notes);
    of_congestion(congestion, &mut notes);
    of_recovery(recovery, config, other_end, &mut notes);
    of_rto(rto, &mut notes);
    of_handshake(handshake, &mut notes);
    of_send(send, rto, buffers, &mut notes);
    let early = explicit_rate.wanted.is_some() && explicit_rate.early_window;
    let kernel = "a buffer that grows has 64 kB when a connection begins, and no more is announced";
    let given = other_end.explicit_rate.size_buffers;
    notes.unless(!early || given, "explicit_rate.early_window", true, kernel);
    notes.0
}

/// What two ends make of each other's windows.
fn of_window(config: &Config, other_end: &Config, notes: &mut Notes) {
    let window = other_end.receive.buffer;
    // tcp_bound_to_half_wnd(): beyond a window of TCP_MSS_DEFAULT.
    let longest = if window > Bytes(536) { Bytes(window.0 / 2) } else { window };
    let mss = config.mss.min(other_end.mss);
    let kernel = format!("in a window of {window} the kernel sends segments of {longest}, half of it");
    notes.unless(mss <= longest, "mss", mss, &kernel);
    let buffer = config.receive.buffer;
    if config.scales_with(other_end) && buffer > UNSCALED {
        // The scale is what the kernel chooses by the largest buffer that the machine allows; 7 at 4 MiB.
        let whole = buffer.0.is_multiple_of(128);
        notes.unless(
            whole,
            "receive.buffer",
            buffer,
            "announced in whole steps of the window's scale, 128 B or more",
        );
    }
}

fn of_receive(receive: &ReceiveConfig, buffers: Buffers, notes: &mut Notes) {
    let ReceiveConfig {
        buffer,
        read_rate,
        ack_every,
        ack_delay,
        ack_delay_max,
        ack_clock,
        quick_acks,
        quick_acks_after_gap,
        quick_ack_accounting: _, // quick_acks is compared, however they are counted
        autotuning: _,           // what the stack's [linux] table says
        ack_pushed,
        compressed_acks: _, // tcp_comp_sack_nr
        ts_recent: _,       // of_timestamps
    } = receive;
    if read_rate.is_some() {
        let kernel = "as the program leaves data unread, the kernel counts its overhead too: the window closes earlier";
        notes.unless(false, "receive.buffer", buffer, kernel);
    }
    if *ack_every == 1 || ack_delay.is_zero() {
        // A route with `quickack`: nothing is ever withheld.
        return;
    }
    notes.unless(
        *ack_every == 2,
        "receive.ack_every",
        ack_every,
        "the kernel acknowledges every second full segment",
    );
    let kernel = "the kernel withholds an ACK for 40 ms, and up to 200 ms where segments come slowly";
    notes.unless(*ack_delay <= DELAYED_ACK, "receive.ack_delay", ack_delay, kernel);
    notes.unless(*ack_delay >= LEAST_DELAYED_ACK, "receive.ack_delay", ack_delay, "5 ms, in whole jiffies");
    if let Some(max) = ack_delay_max {
        notes.unless(*max == LONGEST_DELAYED_ACK, "receive.ack_delay_max", max, kernel);
    }
    let segment = *ack_clock == AckClock::Segment;
    notes.unless(segment, "receive.ack_clock", "host", "the kernel's wait begins with the segment");
    let kernel = "the kernel acknowledges the first segments at once, 27 or so";
    notes.unless(QUICK_ACKS.contains(quick_acks), "receive.quick_acks", quick_acks, kernel);
    let reads_late = buffers == Buffers::Given;
    let kernel = "the program reads by 32 KiB here, and the kernel waits for that";
    notes.unless(!(*ack_pushed && reads_late), "receive.ack_pushed", ack_pushed, kernel);
    let kernel = "after a gap of more than an RTO the kernel acknowledges 16 segments at once";
    notes.unless(*quick_acks_after_gap == 16, "receive.quick_acks_after_gap", quick_acks_after_gap, kernel);
}

fn of_timestamps(config: &Config, other_end: &Config, notes: &mut Notes) {
    let word = match config.receive.ts_recent {
        TsRecent::Linux => return,
        TsRecent::Rfc7323 => "rfc-7323",
        TsRecent::FreeBsd => "freebsd",
        TsRecent::Rfc1323 => "rfc-1323",
        TsRecent::InOrder => "in-order",
    };
    let agreed = config.send.timestamps && other_end.send.timestamps;
    notes.unless(
        !agreed,
        "receive.ts_recent",
        word,
        "the kernel echoes copies of the last segment, and of no other",
    );
}

fn of_congestion(congestion: &CongestionConfig, notes: &mut Notes) {
    let CongestionConfig {
        control,
        initial_window: _, // exact: initcwnd
        one_segment_after_syn_loss,
        initial_ssthresh,
        cwnd_clamp,
        slow_start,
        hystart,
        avoidance,
        credit_survives_loss,
        growth_by_delivery,
        cubic: rules,
        fast_convergence,
        friendly_alpha_one,
        cwnd_validation,
        avoidance_validation,
        validation_by_window,
        restart_after_idle: _, // tcp_slow_start_after_idle
        ssthresh_from,
        ssthresh_on_repeated_timeout,
        ssthresh_on_timeout_in_recovery,
    } = congestion;
    let cubic = *control == CongestionControlKind::Cubic;
    let bbr = *control == CongestionControlKind::Bbr;
    let known = kernel_control(*control).is_some();
    let kernel =
        "no Linux has it; emulation takes what `linux.congestion_control` names, and refuses without";
    notes.unless(known, "congestion.control", control.name(), kernel);
    let second = *one_segment_after_syn_loss == SynLoss::Second;
    let found = if *one_segment_after_syn_loss == SynLoss::First { "first" } else { "never" };
    let kernel = "the kernel does so where the SYN was sent three times (second)";
    notes.unless(second, "congestion.one_segment_after_syn_loss", found, kernel);
    let kernel = "the kernel begins without a bound";
    notes.unless_option(
        initial_ssthresh.is_none(),
        "congestion.initial_ssthresh",
        *initial_ssthresh,
        "unlimited",
        kernel,
    );
    let kernel = "the kernel has no such bound; the window that it is shown is brought down to it";
    notes.unless_option(cwnd_clamp.is_none(), "congestion.cwnd_clamp", *cwnd_clamp, "none", kernel);
    if bbr {
        // It sets cwnd by itself, here as there: what follows says nothing to it.
        return;
    }

    let growth = match slow_start {
        SlowStartGrowth::AllAcked => None,
        // Under HyStart++ growth is its own until slow start ends.
        _ if *hystart == HyStart::Rfc9406 && cubic => None,
        SlowStartGrowth::TwoSegments => Some("two-segments"),
        SlowStartGrowth::PerByte => Some("per-byte"),
        SlowStartGrowth::PerAck => Some("per-ack"),
    };
    let kernel = "the kernel's cwnd grows by all that an ACK acknowledges (all-acked)";
    notes.unless(growth.is_none(), "congestion.slow_start", growth.unwrap_or_default(), kernel);
    let kernel = if cubic {
        "the kernel's CUBIC leaves slow start at once when the delay grows or ACKs come in long trains (linux), for the whole machine"
    } else {
        "the kernel's Reno does not leave slow start by the delay"
    };
    let word = match hystart {
        HyStart::Off => "off",
        HyStart::Rfc9406 => "rfc-9406",
        HyStart::Linux => "linux",
    };
    let alike = if cubic { *hystart == HyStart::Linux } else { *hystart != HyStart::Rfc9406 };
    notes.unless(alike, "congestion.hystart", word, kernel);

    if cubic {
        let kernel = "the kernel's CUBIC does, for the whole machine";
        notes.unless(*fast_convergence, "congestion.fast_convergence", fast_convergence, kernel);
        let kernel = "the kernel's CUBIC takes Reno to grow by 8/15 of a segment, as before RFC 9438";
        let alike = *rules == CubicRules::Linux || !friendly_alpha_one;
        notes.unless(alike, "congestion.friendly_alpha_one", true, kernel);
        let kernel =
            "the kernel's window grows by a twentieth a round trip at least before the first loss (linux)";
        notes.unless(*rules == CubicRules::Linux, "congestion.cubic", "rfc-9438", kernel);
    } else {
        let growth = match avoidance {
            AvoidanceGrowth::AllAcked => None,
            AvoidanceGrowth::PerByte => Some("per-byte"),
            AvoidanceGrowth::PerAck => Some("per-ack"),
            AvoidanceGrowth::PerAckRounded => Some("per-ack-rounded"),
        };
        let kernel =
            "the kernel's cwnd grows by a segment for each cwnd of whole segments acknowledged (all-acked)";
        notes.unless(growth.is_none(), "congestion.avoidance", growth.unwrap_or_default(), kernel);
        let (key, kernel) = if *avoidance_validation && !cwnd_validation {
            (
                "congestion.avoidance_validation",
                "the kernel's slow start grows only where cwnd is the limit, too",
            )
        } else {
            ("congestion.cwnd_validation", "the kernel's cwnd grows only where it is the limit")
        };
        notes.unless(*cwnd_validation, key, *avoidance_validation, kernel);
    }
    let kernel =
        "what limits the kernel holds for a window of data; slow start grows to twice what was in flight";
    let unused = !cubic && !cwnd_validation;
    notes.unless(*validation_by_window || unused, "congestion.validation_by_window", false, kernel);
    let from = match ssthresh_from {
        SsthreshFrom::CwndSegments => None,
        SsthreshFrom::Cwnd => Some("cwnd"),
        SsthreshFrom::FlightSize => Some("flight-size"),
        SsthreshFrom::WindowSegments => Some("window-segments"),
        SsthreshFrom::Pipe => Some("pipe"),
    };
    let kernel = "the kernel takes its part of cwnd, used or not, in whole segments (cwnd-segments)";
    notes.unless(from.is_none(), "congestion.ssthresh_from", from.unwrap_or_default(), kernel);
    let kernel = "the kernel lowers ssthresh once";
    notes.unless(!ssthresh_on_repeated_timeout, "congestion.ssthresh_on_repeated_timeout", true, kernel);
    let kernel = "the kernel has lowered it when fast recovery began";
    let once = !ssthresh_on_timeout_in_recovery;
    notes.unless(once, "congestion.ssthresh_on_timeout_in_recovery", true, kernel);
    let kernel = "the kernel counts anew after a loss";
    notes.unless(!credit_survives_loss, "congestion.credit_survives_loss", true, kernel);
    let kernel = "the kernel counts what an ACK delivers";
    notes.unless(*growth_by_delivery, "congestion.growth_by_delivery", false, kernel);
}

fn of_recovery(recovery: &RecoveryConfig, config: &Config, other_end: &Config, notes: &mut Notes) {
    let RecoveryConfig {
        algorithm,
        dup_ack_threshold,
        limited_transmit,
        sack: _, // tcp_sack
        recover_guard,
        guard_stops_limited_transmit,
        partial_ack_timer,
        full_ack_window,
        rescue_retransmission,
        rate_reduction,
        rate_reduction_without_sack,
        rack,
        rack_rules,
        timer_slack,
        tail_loss_probe,
        probe_ack_delay,
        frto: _, // tcp_frto
        eifel,
        dsack: _, // tcp_dsack
        undo_by_dsack,
        fast_retransmit_timer,
        timer_follows_repair,
        end_growth,
        unreported_before_window: _, // part of what RACK replaces, which is told of
        sacking_ack_is_duplicate,
        deflate_below_ssthresh,
        dup_acks_after_timeout,
    } = recovery;
    let sack = recovery.sack && other_end.recovery.sack;
    let algorithm = match algorithm {
        RecoveryAlgorithm::NewReno => None,
        RecoveryAlgorithm::TimeoutOnly => Some("timeout-only"),
        RecoveryAlgorithm::Tahoe => Some("tahoe"),
        RecoveryAlgorithm::Reno => Some("reno"),
    };
    let kernel = "the kernel stays in recovery on partial ACKs (new-reno)";
    notes.unless(algorithm.is_none(), "recovery.algorithm", algorithm.unwrap_or_default(), kernel);
    let counted = *dup_ack_threshold <= MOST_REORDERING;
    notes.unless(counted, "recovery.dup_ack_threshold", dup_ack_threshold, "the kernel counts to 65535");
    let kernel = "the kernel sends new data on the first duplicate ACKs";
    notes.unless(*limited_transmit, "recovery.limited_transmit", limited_transmit, kernel);
    let kernel = "each ACK of new data restarts the kernel's timer (slow-but-steady)";
    let impatient = match partial_ack_timer {
        PartialAckTimer::SlowButSteady => None,
        PartialAckTimer::Impatient => (!sack).then_some("impatient"),
        PartialAckTimer::ImpatientWithSack => Some("impatient-with-sack"),
    };
    notes.unless(impatient.is_none(), "recovery.partial_ack_timer", impatient.unwrap_or_default(), kernel);
    let kernel = "the kernel starts its timer anew";
    notes.unless(*fast_retransmit_timer, "recovery.fast_retransmit_timer", fast_retransmit_timer, kernel);
    let word = match end_growth {
        EndGrowth::AfterBoth => None,
        EndGrowth::AfterTimeout => Some("after-timeout"),
        EndGrowth::AfterFastRecovery => Some("after-fast-recovery"),
    };
    let kernel = "the kernel's window grows with the ACK that ends either (after-both)";
    notes.unless(word.is_none(), "recovery.end_growth", word.unwrap_or_default(), kernel);
    if config.send.timestamps && other_end.send.timestamps {
        let kernel = "with timestamps the kernel does so";
        notes.unless(*eifel, "recovery.eifel", eifel, kernel);
    }

    if sack {
        of_sack(*rate_reduction, *rack, notes);
        notes.unless(
            !rescue_retransmission,
            "recovery.rescue_retransmission",
            true,
            "the kernel does not send it",
        );
        let kernel = "the kernel's timer starts anew while losses are being repaired";
        notes.unless(*timer_follows_repair, "recovery.timer_follows_repair", false, kernel);
        let kernel = "the kernel measures and notices reordering by rules of its own (linux)";
        notes.unless(*rack_rules == RackRules::Linux, "recovery.rack_rules", "rfc-8985", kernel);
        let alike = *timer_slack == TIMER_SLACK;
        notes.unless(alike, "recovery.timer_slack", timer_slack, "2 ms in the kernel (TCP_TIMEOUT_MIN_US)");
        let probes_alike = !tail_loss_probe || *probe_ack_delay == config.rto.min;
        let kernel = format!("the kernel takes the floor of its RTO for it, {}", config.rto.min);
        notes.unless(probes_alike, "recovery.probe_ack_delay", probe_ack_delay, &kernel);
        let told = !other_end.recovery.dsack;
        notes.unless(*undo_by_dsack || told, "recovery.undo_by_dsack", undo_by_dsack, "the kernel does so");
        let kernel = "the kernel's ACK of new data is one, whatever blocks it has";
        notes.unless(!sacking_ack_is_duplicate, "recovery.sacking_ack_is_duplicate", true, kernel);
    } else {
        let kernel = "without SACK the kernel makes no second fast retransmit below what recovery began with";
        notes.unless(*recover_guard, "recovery.recover_guard", recover_guard, kernel);
        let kernel = "what the kernel's guard holds back sends no new data";
        let held = *guard_stops_limited_transmit;
        notes.unless(held, "recovery.guard_stops_limited_transmit", held, kernel);
        let kernel = "the kernel leaves ssthresh";
        let whole = *full_ack_window == FullAckWindow::Ssthresh;
        notes.unless(whole, "recovery.full_ack_window", "flight-size", kernel);
        let kernel = "the kernel counts segments in flight, and does not go below ssthresh by a partial ACK";
        notes.unless(!deflate_below_ssthresh, "recovery.deflate_below_ssthresh", true, kernel);
        let kernel =
            "the kernel brings the flight down in proportion to what arrives (PRR), without SACK too";
        let prr = *rate_reduction_without_sack && *rate_reduction == RateReduction::SafeAck;
        notes.unless(prr, "recovery.rate_reduction_without_sack", rate_reduction_without_sack, kernel);
        let kernel = "the kernel does not count them";
        notes.unless(!dup_acks_after_timeout, "recovery.dup_acks_after_timeout", true, kernel);
    }
}

fn of_sack(rate_reduction: RateReduction, rack: bool, notes: &mut Notes) {
    let word = match rate_reduction {
        RateReduction::SafeAck => None,
        RateReduction::AtOnce => Some("at-once"),
        RateReduction::Conservative => Some("conservative"),
        RateReduction::SlowStart => Some("slow-start"),
    };
    let kernel = "the kernel brings the flight down in proportion to what arrives (PRR, safe-ack)";
    notes.unless(word.is_none(), "recovery.rate_reduction", word.unwrap_or_default(), kernel);
    // Linux 6.17: "remove obsolete and unused RFC3517/RFC6675 loss recovery code".
    let kernel = "from Linux 6.17 on SACK means RACK, whatever tcp_recovery says; before it, RFC 6675";
    notes.unless(rack, "recovery.rack", rack, kernel);
}

fn of_rto(rto: &RtoConfig, notes: &mut Notes) {
    let RtoConfig {
        initial,
        min,
        max,
        tick,
        timer_wheel,
        srtt_divisor,
        rttvar_divisor,
        rttvar_factor,
        floor,
        sampling,
        measure,
        backoff_reset,
        max_backoff_exponent,
        karn_on_syn,
        after_syn_timeout,
    } = rto;
    notes.unless(*initial == INITIAL_RTO, "rto.initial", initial, "the kernel starts with 1 s");
    notes.unless(*min <= RTO_MAX.1, "rto.min", min, "120 s in the kernel, at the most");
    notes.unless(*min >= JIFFY, "rto.min", min, "in whole jiffies, 1 to 10 ms");
    notes.unless(*max <= RTO_MAX.1, "rto.max", max, "the kernel's ends at 120 s");
    notes.unless(*max >= RTO_MAX.0, "rto.max", max, "the kernel's is 1 s at the least");
    let kernel = "the kernel rounds waits up by an eighth at the most (timer_wheel)";
    notes.unless(*timer_wheel, "rto.timer_wheel", timer_wheel, kernel);
    notes.unless(*tick <= JIFFY, "rto.tick", tick, "a jiffy in the kernel, 1 to 10 ms");
    notes.unless(*srtt_divisor == 8, "rto.srtt_divisor", srtt_divisor, "8 in the kernel");
    notes.unless(*rttvar_divisor == 4, "rto.rttvar_divisor", rttvar_divisor, "4 in the kernel");
    notes.unless(*rttvar_factor == 4, "rto.rttvar_factor", rttvar_factor, "4 in the kernel");
    let variance = *floor == RtoFloor::Variance;
    notes.unless(
        variance,
        "rto.floor",
        "rto",
        "the kernel's floor is that of 4 RTTVAR (variance): an RTT more",
    );
    let every = *sampling == RttSampling::EveryAck;
    notes.unless(every, "rto.sampling", "one-at-a-time", "the kernel takes a sample of every ACK");
    let exact = *measure == RttMeasure::Exact;
    notes.unless(exact, "rto.measure", "ticks", "the kernel measures in microseconds");
    let valid = *backoff_reset == BackoffReset::ValidSample;
    notes.unless(valid, "rto.backoff_reset", "any-ack", "the kernel waits for a valid sample");
    let kernel = "the kernel's back-off ends at rto.max alone";
    let at_max = min.doubled(*max_backoff_exponent) >= *max;
    notes.unless(at_max, "rto.max_backoff_exponent", max_backoff_exponent, kernel);
    notes.unless(*karn_on_syn, "rto.karn_on_syn", karn_on_syn, "the kernel takes no sample from such a SYN");
    let fallback = *after_syn_timeout == Some(AFTER_SYN_TIMEOUT);
    let kernel = "the kernel starts data with 3 s";
    notes.unless_option(fallback, "rto.after_syn_timeout", *after_syn_timeout, "none", kernel);
}

fn of_handshake(handshake: &HandshakeConfig, notes: &mut Notes) {
    let HandshakeConfig {
        syn_attempts,
        syn_linear_timeouts,
        connect_timeout,
        synack_attempts,
        synack_shared_budget,
        data_retries,
        reset_when_closed,
        time_wait,
        mss_option,
        ack_alone,
    } = handshake;
    let linear = *syn_linear_timeouts <= MOST_SYNS;
    notes.unless(
        linear,
        "handshake.syn_linear_timeouts",
        syn_linear_timeouts,
        "127 in the kernel, at the most",
    );
    let (least, most) =
        (syn_linear_timeouts.min(&MOST_SYNS) + 2, syn_linear_timeouts.min(&MOST_SYNS) + 1 + MOST_SYNS);
    let attempts = syn_attempts.unwrap_or(u32::MAX);
    let kernel = format!("the kernel sends {least} to {most} SYNs");
    let possible = (least..=most).contains(&attempts);
    notes.unless_option(possible, "handshake.syn_attempts", *syn_attempts, "unlimited", &kernel);
    let kernel = "the kernel goes by the number of SYNs alone";
    notes.unless_option(
        connect_timeout.is_none(),
        "handshake.connect_timeout",
        *connect_timeout,
        "none",
        kernel,
    );
    let possible = synack_attempts.is_some_and(|attempts| attempts <= MOST_RETRIES + 1);
    let kernel = "the kernel sends 256 SYN/ACKs, at the most";
    notes.unless_option(possible, "handshake.synack_attempts", *synack_attempts, "unlimited", kernel);
    let kernel = "the kernel counts those that its timer sends";
    notes.unless(!synack_shared_budget, "handshake.synack_shared_budget", true, kernel);
    let possible = data_retries.is_some_and(|retries| retries <= MOST_RETRIES);
    let kernel = "the kernel gives up after the time that 255 of the shortest RTO would take";
    notes.unless_option(possible, "handshake.data_retries", *data_retries, "unlimited", kernel);
    notes.unless(*reset_when_closed, "handshake.reset_when_closed", false, "the kernel sends a reset");
    notes.unless(*time_wait == TIME_WAIT, "handshake.time_wait", time_wait, "60 s in the kernel");
    notes.unless(*mss_option, "handshake.mss_option", mss_option, "the kernel announces it");
    let kernel = "in the kernel the ACK of a SYN/ACK leaves by itself";
    notes.unless(*ack_alone, "handshake.ack_alone", ack_alone, kernel);
}

fn of_send(send: &SendConfig, rto: &RtoConfig, buffers: Buffers, notes: &mut Notes) {
    let SendConfig {
        buffer,
        nagle, // TCP_NODELAY
        minshall,
        window_scaling: _, // tcp_window_scaling
        timestamps: _,     // tcp_timestamps
        ecn: _,            // tcp_ecn
        pacing,
        super_packets: _,   // no more than PSH, as far as a path sees
        tso_win_divisor: _, // tcp_tso_win_divisor
        persist_min,
        persist_max,
        ttl: _, // ip_default_ttl
    } = send;
    let kernel = "the kernel's counts its overhead too, some half of it";
    let kernels_own = buffer.is_none() || buffers == Buffers::Growing;
    notes.unless_option(kernels_own, "send.buffer", *buffer, "unlimited", kernel);
    let kernel = "the kernel paces where the fq scheduler is the device's, and here it is not";
    notes.unless(!pacing, "send.pacing", true, kernel);
    let kernel = "in the kernel a small segment waits for another small one alone (Minshall)";
    notes.unless(*minshall || !nagle, "send.minshall", minshall, kernel);
    // tcp_probe0_base(): the RTO, which is what it is; the floor stands for it.
    let floor = rto.min.max(LEAST_PROBE);
    notes.unless(
        *persist_min == floor,
        "send.persist_min",
        persist_min,
        "the kernel starts with the RTO, at least 200 ms",
    );
    let max = rto.max.min(RTO_MAX.1).max(RTO_MAX.0);
    notes.unless(*persist_max == max, "send.persist_max", persist_max, "the kernel's ends at rto.max");
}
