//! `[congestion]` of a stack.

use super::schema::numbers::{COUNTS, MIB, POSITIVE};
use super::schema::{section, when, words};
use crate::cc::CongestionControlKind;
use farpath_units::Bytes;

section! {
    /// RFC 5681 §3.1, RFC 3465, RFC 6928, RFC 9406, RFC 9438.
    struct CongestionConfig [congestion] {
        /// Congestion controller.
        control: CongestionControlKind = CongestionControlKind::Reno => {
            from "RFC 5681; RFC 9438; Linux's `tcp_bbr.c`; draft-ietf-ccwg-bbr";
            told "`TCP_CONGESTION`",
                "exactly; `bbr3`, which no released Linux has, is refused unless `linux.congestion_control` names another";
        }
        /// Initial window, in segments.
        initial_window: u32 = 3 => {
            from "RFC 5681 §3.1; 10 is RFC 6928";
            within 1..=COUNTS;
            workable 1..=100;
            told "a route's `initcwnd`", "exactly";
        }
        /// Begin with one segment after so many losses of a SYN or SYN/ACK.
        one_segment_after_syn_loss: SynLoss = SynLoss::First => {
            from "RFC 5681 §3.1; Linux; ns-3";
            fixed |it| *it == SynLoss::Second, "the kernel does so where the SYN was sent three times (second)";
        }
        /// `ssthresh` before the first loss; `unlimited` is as high as it gets.
        initial_ssthresh or "unlimited": Option<Bytes> = None => {
            from "RFC 5681 §3.1";
            within POSITIVE;
            workable 1..=MIB;
            fixed Option::is_none, "the kernel begins without a bound";
        }
        /// `cwnd` never grows past this; `none` lets it grow.
        cwnd_clamp or "none": Option<Bytes> = None => {
            from "";
            workable 1..=MIB;
            told "the window that it is shown is brought down to it", "nearly";
            fixed Option::is_none, "the kernel has no such bound; the window that it is shown is brought down to it";
        }
        /// How `cwnd` grows below `ssthresh`.
        slow_start: SlowStartGrowth = SlowStartGrowth::PerByte => {
            from "Jacobson 1988; RFC 5681 Eq. 2; RFC 3465 §2.2; Linux";
            fixed |it| *it == SlowStartGrowth::AllAcked, where |own, _| when::windowed(own) && !when::grows_by_hystart(own),
                "the kernel's cwnd grows by all that an ACK acknowledges (all-acked)";
        }
        /// What ends the first slow start before a loss does.
        hystart: HyStart = HyStart::Off => {
            from "RFC 9406; Linux";
            fixed |it| *it == HyStart::Linux, where when::cubic,
                "the kernel's CUBIC leaves slow start at once when the delay grows or ACKs come in long trains (linux), for the whole machine";
            fixed |it| *it != HyStart::Rfc9406, where when::reno,
                "the kernel's Reno does not leave slow start by the delay";
        }
        /// How Reno's `cwnd` grows from `ssthresh` on.
        avoidance: AvoidanceGrowth = AvoidanceGrowth::PerByte => {
            from "RFC 5681 Eq. 3; ns-3; RFC 3465 §2.1; Linux";
            was "keep_cwnd_count_after_loss" as true "ns-3-linux-reno";
            was "credit_survives_loss" as true "ns-3-linux-reno";
            fixed |it| *it == AvoidanceGrowth::AllAcked, where when::reno,
                "the kernel's cwnd grows by a segment for each cwnd of whole segments acknowledged (all-acked)";
        }
        /// What an ACK covers and reports had told of before counts for no growth (Linux); without SACK, each duplicate ACK
        /// told of a segment. A small segment counts as a whole one. Off: an ACK that fills a hole counts for all the bytes that it covers.
        growth_by_delivery: bool = false => {
            from "Linux";
            fixed |it| *it, where |own, _| when::windowed(own), "the kernel counts what an ACK delivers";
        }
        /// Whose rules CUBIC's window grows by.
        cubic: CubicRules = CubicRules::Rfc9438 => {
            from "RFC 9438; RFC 8312; Linux's `tcp_cubic.c`";
            was "cubic_alpha_one_at_prior_cwnd" as false "rfc-8312";
            was "friendly_alpha_one" as false "rfc-8312";
            fixed |it| *it == CubicRules::Linux, where when::cubic,
                "the kernel's window grows by a twentieth a round trip at least before the first loss, and it takes Reno to \
                 grow by 8/15 of a segment, as before RFC 9438 (linux)";
        }
        /// CUBIC: where a loss comes before the last `W_max` is reached, take less for the next one (RFC 9438 §4.7).
        fast_convergence: bool = true => {
            from "RFC 9438 §4.7";
            fixed |it| *it, where when::cubic, "the kernel's CUBIC does, for the whole machine";
        }
        /// Where `cwnd` grows only if it is what limits the sender. CUBIC asks that everywhere in any case (RFC 9438 §4.6, §5.8).
        cwnd_validation: CwndValidation = CwndValidation::Off => {
            from "RFC 7661 §4.1; RFC 9438 §4.6; ns-3; Linux";
            was "avoidance_validation" as true "avoidance";
            was "validation_by_window" as true "by-window";
            fixed |it| *it == CwndValidation::ByWindow, where |own, _| when::windowed(own),
                "the kernel's cwnd grows where it limited a window of data, in slow start to twice what was in flight (by-window)";
        }
        /// After an idle time of one RTO, go back to the initial window (RFC 5681 §4.1).
        restart_after_idle: bool = true => {
            from "RFC 5681 §4.1";
            told "`tcp_slow_start_after_idle`", "nearly: cwnd halves for each RTO of silence";
        }
        /// What `ssthresh` is half of after a loss; with CUBIC, 0.7 of it (RFC 9438 §4.6).
        ssthresh_from: SsthreshFrom = SsthreshFrom::FlightSize => {
            from "RFC 5681 Eq. 4; 4.3BSD; Linux; ns-3";
            fixed |it| *it == SsthreshFrom::CwndSegments, where |own, _| when::windowed(own),
                "the kernel takes its part of cwnd, used or not, in whole segments (cwnd-segments)";
        }
        /// Which timeouts lower `ssthresh`.
        ssthresh_on_timeout: SsthreshOnTimeout = SsthreshOnTimeout::First => {
            from "RFC 5681 §3.1; 4.3BSD, ns-3; Linux";
            was "ssthresh_on_repeated_timeout" as true "every";
            was "ssthresh_on_timeout_in_recovery" as false "first-outside-recovery";
            fixed |it| *it == SsthreshOnTimeout::FirstOutsideRecovery, where |own, _| when::windowed(own),
                "the kernel lowers ssthresh once, by fast recovery or by the first timeout (first-outside-recovery)";
        }
    }
}

words! {
    /// By whose rules CUBIC's window grows in congestion avoidance.
    CubicRules {
        /// RFC 9438: once what Reno would have has reached the last window, it is taken to grow by a whole segment per round
        /// trip (§4.3).
        Rfc9438 = "rfc-9438",
        /// The same but for that: Reno is taken to grow by 9/17 of a segment for ever (RFC 8312 §4.2).
        Rfc8312 = "rfc-8312",
        // DEVIATES RFC 9438 §4.10: before the first loss the window grows by a twentieth a round trip, at least.
        /// `tcp_cubic.c`: in whole segments and jiffies (`rto.tick`), 717/1024 of the window after a loss, whatever
        /// `ssthresh_from` says.
        Linux = "linux",
    }

    /// Slow start's increase for an ACK of N new bytes.
    SlowStartGrowth {
        /// SMSS per ACK (Jacobson 1988).
        PerAck = "per-ack",
        /// `min(N, SMSS)` (RFC 5681 Eq. 2; Eq. 16 of the high-BER paper).
        PerByte = "per-byte",
        // DEVIATES RFC 3465 §2.3: L stays 2 in the slow start after a timeout, as in Linux and ns-3.
        /// `min(N, L·SMSS)` with L = 2 (RFC 3465 §2.2): delayed ACKs cost nothing.
        TwoSegments = "two-segments",
        // DEVIATES RFC 3465 §2.2: no limit L. What a filled hole acknowledges at once, a timeout's repair foremost, opens
        // the window by as much.
        /// All N bytes, as far as `ssthresh` (Linux, and ns-3's Linux Reno).
        AllAcked = "all-acked",
    }

    /// Where `cwnd` grows only if it is what limits the sender.
    CwndValidation {
        /// Nowhere (RFC 5681): an unused window grows, too.
        Off = "off",
        /// In congestion avoidance; slow start grows unused (ns-3's `TcpLinuxReno`).
        Avoidance = "avoidance",
        /// Everywhere (RFC 7661 §4.1 in its simplest form).
        Always = "always",
        /// Everywhere. It counts as the limit for the whole window of data in which it was, and slow start grows to twice the most
        /// that was in flight. A window that the peer holds down is then no part of what a loss halves (Linux's `tcp_is_cwnd_limited()`,
        /// `tcp_cwnd_validate()`).
        ByWindow = "by-window",
    }

    /// What ends the first slow start before a loss does.
    HyStart {
        /// Nothing.
        Off = "off" formerly false,
        /// HyStart++ (RFC 9406): the growth of the delay does, carefully. Until then `cwnd` grows by `min(N, 8·SMSS)` per ACK,
        /// whatever `slow_start` says.
        Rfc9406 = "rfc-9406" formerly true,
        // DEVIATES RFC 9406: it goes on at a quarter of the growth for some rounds.
        /// CUBIC's in Linux: the growth of the delay, or a train of ACKs that is half of a round trip long, does so at once. Also
        /// in the slow start after a timeout. Reno has none.
        Linux = "linux",
    }

    /// Congestion avoidance's increase.
    AvoidanceGrowth {
        /// `SMSS·SMSS / cwnd` per ACK (RFC 5681 Eq. 3; Eq. 17 of the high-BER paper). With delayed ACKs, half as fast.
        PerAck = "per-ack",
        /// SMSS per `cwnd` bytes acknowledged (RFC 3465 §2.1).
        PerByte = "per-byte",
        /// As `PerAck`, in whole bytes, at least one (RFC 5681 §3.1); and an ACK of two segments that ends slow start with
        /// the first grows by the second (ns-3's `TcpNewReno`).
        PerAckRounded = "per-ack-rounded",
        // DEVIATES RFC 3465 §2.1: it grows by one SMSS per ACK at most.
        /// SMSS for each `cwnd` that an ACK acknowledges, in whole segments, however many; of an ACK that ends slow start what that
        /// has not used (Linux's `tcp_reno_cong_avoid()`).
        AllAcked = "all-acked",
        /// The same, but of an ACK that ends slow start nothing; and what has been acknowledged towards the next segment counts on
        /// after a loss (ns-3's `TcpLinuxReno`).
        Ns3LinuxReno = "ns-3-linux-reno",
    }

    /// What a loss halves.
    SsthreshFrom {
        /// `max(flight_size / 2, 2·SMSS)` (RFC 5681 Eq. 4).
        FlightSize = "flight-size",
        /// `min(cwnd, rwnd) / 2` in whole segments, at least two (4.3BSD and its descendants).
        WindowSegments = "window-segments",
        /// `max(cwnd / 2, 2·SMSS)`, used or not (ns-3's `TcpLinuxReno`).
        Cwnd = "cwnd",
        /// The same in whole segments, rounded down (Linux, which counts in them).
        CwndSegments = "cwnd-segments",
        // DEVIATES RFC 5681 §3.1, RFC 6675 §5 (4.2): both halve FlightSize.
        /// `max(pipe / 2, 2·SMSS)`: what has arrived out of order counts as no longer in flight (ns-3's `TcpNewReno`).
        Pipe = "pipe",
    }

    /// Which timeouts lower `ssthresh`. A repeated one is that of a segment that had already timed out.
    SsthreshOnTimeout {
        /// Those that are not repeated (RFC 5681 §3.1).
        First = "first",
        // DEVIATES RFC 5681 §3.1: a loss of what fast recovery repairs is no second loss event.
        /// Those that are neither repeated nor end fast recovery, which has lowered it already (Linux).
        FirstOutsideRecovery = "first-outside-recovery",
        // DEVIATES RFC 5681 §3.1, which holds it.
        /// Each of them, repeated or not (4.3BSD, ns-3).
        Every = "every",
    }

    /// After how many losses of its SYN or SYN/ACK a sender begins with one segment. A loss is what the timer took for one, unless
    /// the echo says otherwise (`recovery.eifel`).
    SynLoss {
        // DEVIATES RFC 5681 §3.1, as ns-3.
        /// The initial window, whatever was lost.
        Never = "never",
        /// RFC 5681 §3.1.
        First = "first",
        // DEVIATES RFC 5681 §3.1: an RTO of 1 s is spurious on many paths, one of 3 s was not.
        /// Where it was sent more than twice, by the timer or for a SYN that came again (Linux).
        Second = "second",
    }
}

impl AvoidanceGrowth {
    /// Whether an ACK counts once, however much it covers: delayed ACKs then slow the growth down.
    pub fn counts_acks(self) -> bool {
        match self {
            AvoidanceGrowth::PerAck | AvoidanceGrowth::PerAckRounded => true,
            AvoidanceGrowth::PerByte | AvoidanceGrowth::AllAcked | AvoidanceGrowth::Ns3LinuxReno => false,
        }
    }
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
