//! `[rto]` of a stack.

use super::schema::numbers::{COUNTS, MS, POSITIVE, SECOND};
use super::schema::{section, words};
use farpath_units::Duration;

section! {
    /// RFC 6298 and what stacks make of it.
    struct RtoConfig [rto] {
        /// RTO before the first RTT sample.
        initial: Duration = Duration::from_secs(1) => {
            from "RFC 6298 §2.1";
            within POSITIVE;
            workable 10 * MS..=10 * SECOND;
            fixed |it| *it == Duration::from_secs(1), "the kernel starts with 1 s";
        }
        /// Floor of the RTO.
        min: Duration = Duration::from_secs(1) => {
            from "RFC 6298 §2.4";
            within POSITIVE;
            workable MS..=3 * SECOND;
            told "a route's `rto_min`", "with `floor = \"variance\"`";
            fixed |it| *it <= Duration::from_secs(120), "120 s in the kernel, at the most";
            fixed |it| *it >= Duration::from_millis(10), "in whole jiffies, 1 to 10 ms";
        }
        /// Ceiling of the RTO and of its back-off. A path property: below the RTT, nothing ever arrives in time.
        max: Duration = Duration::from_secs(60) => {
            from "RFC 6298 §2.5";
            workable SECOND..=1_000 * SECOND;
            told "`tcp_rto_max_ms`", "1 to 120 s";
            fixed |it| *it <= Duration::from_secs(120), "the kernel's ends at 120 s";
            fixed |it| *it >= Duration::from_secs(1), "the kernel's is 1 s at the least";
        }
        /// Clock granularity G: timers expire at multiples of it, and it is the least of `4·RTTVAR`. Zero is exact.
        tick: Duration = Duration::ZERO => {
            from "RFC 6298 §2.2, §4";
            workable 0..=500 * MS;
            fixed |it| *it <= Duration::from_millis(10), "a jiffy in the kernel, 1 to 10 ms";
        }
        /// On which tick of a coarse clock a timer expires.
        tick_expiry: TickExpiry = TickExpiry::RoundedUp => {
            from "4.4BSD, Linux for the others";
            was "timer_wheel" as true "timer-wheel";
            fixed |it| *it == TickExpiry::TimerWheel,
                "the kernel's timers are never early, and round waits up by an eighth at the most (timer-wheel)";
        }
        /// Gain of SRTT as a divisor: 8 is alpha = 1/8.
        srtt_divisor: u32 = 8 => {
            from "RFC 6298 §2.3";
            within 1..=COUNTS;
            workable 1..=32;
            fixed |it| *it == 8, "8 in the kernel";
        }
        /// Gain of RTTVAR as a divisor: 4 is beta = 1/4.
        rttvar_divisor: u32 = 4 => {
            from "RFC 6298 §2.3";
            within 1..=COUNTS;
            workable 1..=32;
            fixed |it| *it == 4, "4 in the kernel";
        }
        /// K in `SRTT + K·RTTVAR`.
        rttvar_factor: u32 = 4 => {
            from "RFC 6298 §2.3";
            within 1..=COUNTS;
            workable 1..=32;
            fixed |it| *it == 4, "4 in the kernel";
        }
        /// Where the floor applies.
        floor: RtoFloor = RtoFloor::Rto => {
            from "RFC 6298 §2.4; Linux";
            fixed |it| *it == RtoFloor::Variance, "the kernel's floor is that of 4 RTTVAR (variance): an RTT more";
        }
        /// How RTTVAR follows the samples.
        variation: RttVariation = RttVariation::Rfc6298 => {
            from "RFC 6298 §2.3; Linux, tcp_input.c: `tcp_rtt_estimator()`";
            fixed |it| *it == RttVariation::Linux, "the kernel lets RTTVAR fall once a round trip, and not below its floor (linux)";
        }
        /// Which segments are timed when timestamps are off.
        sampling: RttSampling = RttSampling::OneAtATime => {
            from "RFC 6298 §3; Linux";
            fixed |it| *it == RttSampling::Linux,
                "the kernel takes a sample of every ACK, of what only SACK reports too (linux)";
        }
        /// How a timed segment is measured.
        measure: RttMeasure = RttMeasure::Exact => {
            from "BSD for the latter";
            fixed |it| *it == RttMeasure::Exact, "the kernel measures in microseconds";
        }
        /// When a backed-off timeout goes back to the computed one.
        backoff_reset: BackoffReset = BackoffReset::ValidSample => {
            from "Karn and Partridge 1987; Linux, ns-3";
            fixed |it| *it == BackoffReset::ValidSample, "the kernel waits for a valid sample";
        }
        /// Largest back-off as a power of two; 64 s from 1 s is 6. Beside it, `max` holds.
        max_backoff_exponent: u32 = 16 => {
            from "";
            fixed |_| false, where |own, _| own.rto.min.doubled(own.rto.max_backoff_exponent) < own.rto.max,
                "the kernel's back-off ends at rto.max alone";
        }
        /// What a SYN that had to be sent again says of the RTT, and leaves of its back-off.
        retransmitted_syn: RetransmittedSyn = RetransmittedSyn::Unmeasured => {
            from "RFC 6298 §3, §5.7, RFC 7323 §4.1; Karn and Partridge 1987; ns-3";
            was "karn_on_syn" as false "measured-from-first";
            was "kept_over_handshake" as true "keeps-backoff";
            fixed |it| *it == RetransmittedSyn::Unmeasured,
                "the kernel takes no sample from such a SYN, and starts data anew (unmeasured)";
        }
        /// The timeout to start data with when the SYN had to be sent again (RFC 6298 §5.7); `none` starts with `initial`.
        after_syn_timeout or "none": Option<Duration> = Some(Duration::from_secs(3)) => {
            from "RFC 6298 §5.7";
            within POSITIVE;
            workable MS..=10 * SECOND;
            fixed |it| *it == Some(Duration::from_secs(3)), "the kernel starts data with 3 s";
        }
    }
}

words! {
    /// On which tick of a coarse clock a timer expires.
    TickExpiry {
        /// On the first that is not before the wait is over: never early.
        RoundedUp = "rounded-up",
        /// On the nth from its start, where the wait is n ticks: up to one tick early (4.4BSD, `tcp_slowtimo()`).
        Counted = "counted",
        /// That of Linux's timer wheel, whose jiffy is `tick`: what waits 63·8ⁿ jiffies or more expires at a multiple of
        /// 8ⁿ⁺¹ jiffies, and never before a jiffy more than it was to wait.
        TimerWheel = "timer-wheel",
    }

    /// What a SYN that had to be sent again says of the RTT, and leaves of its back-off.
    RetransmittedSyn {
        /// It measures nothing, unless an echo tells which copy was answered (RFC 6298 §3, RFC 7323 §4.1). Data start with the timeout that
        /// `after_syn_timeout` or `initial` says.
        Unmeasured = "unmeasured",
        /// The same, but its back-off stays with the data until a segment has been timed, as where one timer serves both (Karn and
        /// Partridge 1987, read so).
        KeepsBackoff = "keeps-backoff",
        // DEVIATES RFC 6298 §3: Karn's rule is for the SYN too.
        /// It is measured from its first copy (ns-3).
        MeasuredFromFirst = "measured-from-first",
    }

    /// Two readings of "minimum RTO".
    RtoFloor {
        /// `max(SRTT + 4·RTTVAR, min)` (RFC 6298 §2.4).
        Rto = "rto",
        /// `SRTT + max(4·RTTVAR, min)` (Linux).
        Variance = "variance",
    }

    /// How RTTVAR follows the samples.
    RttVariation {
        /// Each sample moves it by its gain (RFC 6298 §2.3).
        Rfc6298 = "rfc-6298",
        // DEVIATES RFC 6298 §2.3: it rises at once, and falls by rounds.
        /// A mean deviation follows each sample, an eighth as fast where an RTT below SRTT would raise it. RTTVAR is its largest of a
        /// round trip: it rises with it at once, falls by a quarter of the difference as a round ends, and is never below the
        /// floor that `floor = "variance"` gives (Linux).
        Linux = "linux",
    }

    /// Which segments are timed when timestamps are off.
    RttSampling {
        /// One at a time (RFC 6298 §3, "at least one per RTT").
        OneAtATime = "one-at-a-time",
        /// Every ACK whose first newly acknowledged segment was sent only once (Linux, ns-3).
        EveryAck = "every-ack",
        // DEVIATES RFC 7323 §4.1: an echo counts where nothing else tells, as below.
        /// Every ACK: the first segment that it covers, unless it covers one that was sent again, or one that SACK had reported; else
        /// the first that its SACK blocks report, also where the ACK covers nothing; else the echo of an ACK of new data
        /// (Linux's `tcp_clean_rtx_queue()`, `tcp_ack_update_rtt()`).
        Linux = "linux",
    }

    /// How a timed segment is measured.
    RttMeasure {
        /// To the nanosecond.
        Exact = "exact",
        /// In clock ticks that passed, at least one (BSD before 4.4's end).
        Ticks = "ticks",
    }

    /// When a backed-off timeout goes back to the computed one.
    BackoffReset {
        /// With the next valid RTT sample (Karn and Partridge 1987).
        ValidSample = "valid-sample",
        /// With any ACK of new data (ns-3, Linux after a timeout).
        AnyAck = "any-ack",
    }
}
