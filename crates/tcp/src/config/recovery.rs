//! `[recovery]` of a stack.

use super::schema::numbers::{COUNTS, MS};
use super::schema::{section, when, words};
use farpath_units::Duration;

section! {
    /// RFC 5681 §3.2, RFC 6582, RFC 6675, RFC 3042; RFC 6937, RFC 8985; RFC 5682, RFC 3522, RFC 2883, RFC 3708.
    struct RecoveryConfig [recovery] {
        /// What the third duplicate ACK starts.
        algorithm: RecoveryAlgorithm = RecoveryAlgorithm::NewReno => {
            from "RFC 6582; RFC 5681 §3.2";
            fixed |it| *it == RecoveryAlgorithm::NewReno, "the kernel stays in recovery on partial ACKs (new-reno)";
        }
        /// Duplicate ACKs that mean loss (DupThresh).
        dup_ack_threshold: u32 = 3 => {
            from "RFC 5681 §3.2";
            within 1..=COUNTS;
            workable 1..=30;
            told "`tcp_reordering`, `tcp_max_reordering`", "exactly";
            fixed |it| *it <= 65_535, "the kernel counts to 65535";
        }
        /// Send new data on the first duplicate ACKs (RFC 3042).
        limited_transmit: bool = true => {
            from "RFC 3042";
            fixed |it| *it, "the kernel sends new data on the first duplicate ACKs";
        }
        /// Offer and use selective acknowledgments (RFC 2018, RFC 6675).
        sack: bool = false => {
            from "RFC 2018, RFC 6675";
            told "`tcp_sack`", "exactly";
        }
        /// What duplicate ACKs of data below `recover` do without SACK: they may answer what the last recovery sent twice.
        recover_guard: RecoverGuard = RecoverGuard::Rfc6582 => {
            from "RFC 6582 §3.2 step 1; Linux";
            was "recover_guard_blocks_new_data" as true "linux";
            was "guard_stops_limited_transmit" as true "linux";
            fixed |it| *it == RecoverGuard::Linux, where when::no_sack,
                "below what recovery began with the kernel makes no second fast retransmit and sends no new data (linux)";
        }
        /// Which partial ACKs restart the retransmission timer in NewReno (RFC 6582 §4).
        partial_ack_timer: PartialAckTimer = PartialAckTimer::Impatient => {
            from "RFC 6582 §4; ns-3 for the last";
            fixed |it| *it == PartialAckTimer::SlowButSteady, where when::no_sack,
                "each ACK of new data restarts the kernel's timer (slow-but-steady)";
            fixed |it| *it != PartialAckTimer::ImpatientWithSack, where when::sack,
                "each ACK of new data restarts the kernel's timer (slow-but-steady)";
        }
        /// What NewReno without SACK leaves of the congestion window when recovery is over (RFC 6582 §3.2 step 3).
        full_ack_window: FullAckWindow = FullAckWindow::FlightSize => {
            from "RFC 6582 §3.2 step 3, options 1 and 2";
            fixed |it| *it == FullAckWindow::Ssthresh, where when::no_sack, "the kernel leaves ssthresh";
        }
        /// With SACK, what is sent again that is not known to be lost, and what an ACK of new data with new blocks is.
        sack_rules: SackRules = SackRules::WithoutRescue => {
            from "RFC 6675 §4, §5; ns-3";
            was "rescue_retransmission" as true "rfc-6675";
            was "unreported_before_window" as false "ns-3";
            was "new_ack_with_sack_is_duplicate" as true "ns-3";
            was "sacking_ack_is_duplicate" as true "ns-3";
            fixed |it| *it != SackRules::Rfc6675, where when::sack, "the kernel does not send the end of the flight again";
            fixed |it| *it != SackRules::Ns3, where when::sack, "the kernel's ACK of new data is one, whatever blocks it has";
        }
        /// With SACK, how fast recovery brings the flight down to `ssthresh`.
        rate_reduction: RateReduction = RateReduction::AtOnce => {
            from "RFC 6675 §5; RFC 6937 CRB, SSRB; RFC 9937";
            fixed |it| *it == RateReduction::Linux, where when::sack,
                "the kernel brings the flight down in proportion to what arrives, in segments of cwnd (PRR, linux)";
        }
        /// What recovery without SACK does to the window.
        window_without_sack: WindowWithoutSack = WindowWithoutSack::Rfc6582 => {
            from "RFC 5681 §3.2; RFC 6582 §3.2; RFC 9937 §6.2; ns-3; Linux";
            was "rate_reduction_without_sack" as true "rate-reduction";
            was "deflate_below_ssthresh" as false "above-ssthresh";
            fixed |it| *it == WindowWithoutSack::RateReduction, where when::no_sack,
                "the kernel brings the flight down in proportion to what arrives (PRR), without SACK too (rate-reduction)";
            fixed |it| *it != WindowWithoutSack::RateReduction,
                where |own, peer| when::no_sack(own, peer) && own.recovery.rate_reduction != RateReduction::Linux,
                "the kernel brings the flight down in proportion to what arrives (PRR), without SACK too";
        }
        /// With SACK, find losses by time in place of by counting (RACK, RFC 8985 §6): lost retransmissions too.
        rack: bool = false => {
            from "RFC 8985 §6";
            told "`tcp_recovery`", "before Linux 6.17; from then on SACK means RACK";
            fixed |it| *it, where when::sack,
                "from Linux 6.17 on SACK means RACK, whatever tcp_recovery says; before it, RFC 6675";
        }
        /// With RACK: whose rules it measures and notices reordering by.
        rack_rules: RackRules = RackRules::Rfc8985 => {
            from "RFC 8985 §6.2; Linux";
            was "rack_blocks_first";
            fixed |it| *it == RackRules::Linux, where when::sack,
                "the kernel measures and notices reordering by rules of its own (linux)";
        }
        /// What the reordering timer waits longer than RACK says, and a probe for several segments longer than two round
        /// trips (Linux: 2 ms).
        timer_slack: Duration = Duration::ZERO => {
            from "Linux: 2 ms";
            workable 0..=100 * MS;
            fixed |it| *it == Duration::from_millis(2), where when::sack, "2 ms in the kernel (TCP_TIMEOUT_MIN_US)";
        }
        /// With SACK, probe for a lost tail before the retransmission timer does (TLP, RFC 8985 §7).
        tail_loss_probe: bool = false => {
            from "RFC 8985 §7";
            told "`tcp_early_retrans`", "exactly";
        }
        /// The longest that the peer is taken to withhold the ACK of a lone segment (RFC 8985 §7.2, TLP.max_ack_delay).
        probe_ack_delay: Duration = Duration::from_millis(200) => {
            from "RFC 8985 §7.2";
        }
        /// After a timeout, find out whether it was spurious before all is sent again (F-RTO, RFC 5682), and undo what it
        /// cost if it was.
        frto: bool = false => {
            from "RFC 5682";
            told "`tcp_frto`", "exactly";
        }
        /// With timestamps, tell a spurious retransmission by the first ACK (Eifel, RFC 3522), and undo what it cost.
        eifel: bool = false => {
            from "RFC 3522";
            fixed |it| *it, where when::timestamps, "with timestamps the kernel does so";
        }
        /// With SACK, report what arrives twice (D-SACK, RFC 2883).
        dsack: bool = false => {
            from "RFC 2883";
            told "`tcp_dsack`", "exactly";
        }
        /// Undo what a loss cost when every retransmission for it is reported as a duplicate (RFC 3708).
        undo_by_dsack: bool = false => {
            from "RFC 3708";
            fixed |it| *it, where |own, peer| when::sack(own, peer) && peer.recovery.dsack, "the kernel does so";
        }
        /// What of a repair starts the retransmission timer anew, beside ACKs of new data (RFC 6298 §5.3).
        repair_timer: RepairTimer = RepairTimer::FastRetransmit => {
            from "RFC 6298 §5; ns-3; Linux: `tcp_rearm_rto()`, `tcp_schedule_loss_probe()`, `tcp_rack_mark_lost()`";
            was "fast_retransmit_timer" as false "none";
            was "rto_restarts_on_retransmit" as true "first-segment";
            was "timer_follows_repair" as true "first-segment";
            was "one_timer" as true "one-timer";
            fixed |it| *it != RepairTimer::None, where when::no_sack, "the kernel starts its timer anew";
            fixed |it| *it == RepairTimer::OneTimer, where when::sack,
                "the kernel has one timer for timeouts, probes and reordering, which starts anew while losses are being repaired (one-timer)";
        }
        // DEVIATES RFC 8985 §7.3: there it takes an RTT sample since the last one.
        /// A probe may leave though nothing has been measured since the last one (Linux).
        probe_without_sample: bool = false => {
            from "Linux: `tcp_send_loss_probe()`";
            fixed |it| *it, where |own, peer| when::sack(own, peer) && own.recovery.tail_loss_probe,
                "the kernel probes though nothing was measured since the last probe";
        }
        /// After which kind of recovery the ACK that ends it grows the congestion window.
        end_growth: EndGrowth = EndGrowth::AfterTimeout => {
            from "RFC 5681 §3; ns-3; Linux";
            fixed |it| *it == EndGrowth::AfterBoth,
                "the kernel's window grows with the ACK that ends either (after-both)";
        }
        /// Without SACK, duplicate ACKs count while a timeout is being repaired too. Off: ns-3.
        dup_acks_after_timeout: bool = true => {
            from "not ns-3";
            fixed |it| !it, where when::no_sack, "the kernel does not count them";
        }
    }
}

words! {
    /// Named by the system that brought it.
    RecoveryAlgorithm {
        /// No fast retransmit: only the timer repairs.
        TimeoutOnly = "timeout-only",
        /// Fast retransmit, then slow start (4.3BSD-Tahoe).
        Tahoe = "tahoe",
        /// Fast retransmit and fast recovery, which the first new ACK ends (RFC 5681 §3.2).
        Reno = "reno",
        /// As Reno, but partial ACKs keep recovery going (RFC 6582). With SACK: RFC 6675.
        NewReno = "new-reno",
    }

    /// What a sender does with SACK blocks, beside sending again what is lost (RFC 6675 §4, §5).
    SackRules {
        // DEVIATES RFC 6675 §4: without NextSeg rule 4.
        /// After new data, what is merely unreported is sent again (NextSeg rule 3), also where new data waits for the peer's window. An
        /// ACK of new data with new blocks counts as a duplicate too (§5).
        WithoutRescue = "rfc-6675-without-rescue",
        /// The same; and once per recovery the end of the flight is sent again where nothing else may be sent (NextSeg rule 4).
        Rfc6675 = "rfc-6675",
        // DEVIATES RFC 6675 §4, and RFC 6298 §5.3: there an ACK of new data restarts the timer.
        /// What is unreported is sent again only where there is no new data; no rescue. Outside of recovery, an ACK of new data with
        /// new blocks is a duplicate and nothing else: it neither grows the window nor restarts the timer (ns-3).
        Ns3 = "ns-3",
    }

    /// What recovery without SACK does to the window.
    WindowWithoutSack {
        /// It is inflated by each duplicate ACK (RFC 5681 §3.2), and deflated by what a partial ACK acknowledges, even where fewer had
        /// been added to it (RFC 6582 §3.2 step 3).
        Rfc6582 = "rfc-6582",
        /// The same, but a partial ACK leaves it above `ssthresh`, as where segments in flight are counted (ns-3).
        AboveSsthresh = "above-ssthresh",
        /// `rate_reduction` brings the flight down as with SACK: each duplicate ACK stands for a segment that has arrived
        /// (RFC 9937 §6.2; Linux). Where that is `at-once`, `rfc-6582`.
        RateReduction = "rate-reduction",
    }

    /// What duplicate ACKs of data below `recover`, where the last recovery ends, do without SACK.
    RecoverGuard {
        /// What all others do: the third starts fast retransmit (plain Reno).
        Off = "off" formerly false,
        /// They start no fast retransmit (RFC 6582 §3.2 step 1). Limited transmit goes on (RFC 3042).
        Rfc6582 = "rfc-6582",
        /// They start no fast retransmit, and send no new data either (Linux).
        Linux = "linux",
    }

    /// How RACK measures, and notices that packets change their order.
    RackRules {
        /// RFC 8985: RACK.rtt is of what was sent last; every D-SACK widens the reordering window.
        Rfc8985 = "rfc-8985",
        // DEVIATES RFC 8985 §6.2: steps 2 and 4, as said.
        /// Linux: RACK.rtt is of what an ACK covers, also where its SACK blocks report what was sent later
        /// (`tcp_sacktag_write_queue()` before `tcp_clean_rtx_queue()`). A D-SACK widens the window only after reordering was seen, and
        /// tells nothing beyond as many as were sent again (`tcp_dsack_seen()`). An echo that shows a partial ACK to be of an
        /// original is reordering (`tcp_try_undo_partial()`). A timeout loses what was sent RACK.rtt ago, without a reordering window
        /// (`tcp_timeout_mark_lost()`), and a copy that is lost after it begins a recovery (`tcp_fastretrans_alert()`). Where more than three segments were overtaken, cwnd grows with what
        /// SACK reports too (`tcp_may_raise_cwnd()`).
        Linux = "linux",
    }

    /// How the flight comes down from what it was to `ssthresh` during fast recovery with SACK.
    RateReduction {
        /// `cwnd` is `ssthresh` at once: silence until `pipe` is below it, then a segment for each that arrives
        /// (RFC 6675 §5).
        AtOnce = "at-once",
        /// In proportion to what arrives (PRR), and below `ssthresh` no more than arrives (RFC 6937 §3, CRB).
        Conservative = "conservative",
        /// In proportion to what arrives (PRR), and below `ssthresh` a segment more with each ACK (RFC 6937 §3, SSRB).
        SlowStart = "slow-start",
        /// In proportion to what arrives (PRR), and below `ssthresh` a segment more with each ACK that makes progress
        /// and tells of no further loss (RFC 9937 §6.2; Linux).
        SafeAck = "safe-ack",
        // DEVIATES RFC 9937 §6.1: RecoverFS is what was in flight there.
        /// As safe-ack, in whole segments, and in proportion to `cwnd` as recovery found it; an ACK that tells of no delivery
        /// changes nothing (Linux's `tcp_cwnd_reduction()`).
        Linux = "linux",
    }

    /// RFC 6582 §4.
    PartialAckTimer {
        /// The first partial ACK of a recovery restarts the timer, later ones do not.
        Impatient = "impatient",
        /// Every partial ACK restarts it.
        SlowButSteady = "slow-but-steady",
        // DEVIATES RFC 6298 §5.3: there each ACK of new data restarts the timer.
        /// The first partial ACK of a recovery restarts the timer, later ones do not, with SACK either (ns-3).
        ImpatientWithSack = "impatient-with-sack",
    }

    /// What starts the retransmission timer anew while losses are being repaired.
    RepairTimer {
        /// Nothing: it runs on from the last ACK of new data (ns-3).
        None = "none",
        /// Fast retransmit (BSD; Linux without SACK).
        FastRetransmit = "fast-retransmit",
        // DEVIATES RFC 6298 §5: the timer there is that of the oldest data, however often it was sent.
        /// With RACK also whatever sends the first segment in flight again, and reports of what was sent before that (Linux's
        /// `tcp_xmit_retransmit_queue()`, `tcp_clean_rtx_queue()`): while losses are being repaired one by one, it does not expire. Without
        /// RACK, as fast-retransmit.
        FirstSegment = "first-segment",
        // DEVIATES RFC 8985 §6.2 step 5, §7.2: timers of their own there; and RFC 6298 §5, as above.
        /// The same, and with SACK retransmission timer, probe timer and reordering timer are one: what is started takes the place of what ran.
        /// Where the retransmission timer follows one of the others, it counts from when the first segment in flight was last sent
        /// (Linux's `icsk_pending`, `tcp_rearm_rto()`). Without SACK, as fast-retransmit.
        OneTimer = "one-timer",
    }

    /// Growth with the ACK that acknowledges all that was outstanding when recovery began.
    EndGrowth {
        /// After a timeout: slow start goes on (RFC 5681 §3.1). Fast recovery's last ACK deflates the window, and no more.
        AfterTimeout = "after-timeout",
        // DEVIATES RFC 5681 §3.2 step 6: nothing is added to `ssthresh` there.
        /// After fast recovery, from `ssthresh` on; after a timeout, only for what lies beyond (ns-3).
        AfterFastRecovery = "after-fast-recovery",
        // DEVIATES RFC 5681 §3.2 step 6, as above.
        /// After both; without SACK, after fast recovery only where the ACK lies beyond (Linux, which leaves it then).
        AfterBoth = "after-both",
    }

    /// The two options of RFC 6582 §3.2 step 3 for the ACK that ends recovery.
    FullAckWindow {
        /// `min(ssthresh, max(flight_size, SMSS) + SMSS)`: no burst into an empty network.
        FlightSize = "flight-size",
        /// `ssthresh` (ns-3).
        Ssthresh = "ssthresh",
    }
}
