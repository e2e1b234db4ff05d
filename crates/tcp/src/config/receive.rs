//! `[receive]` of a stack.

use super::schema::numbers::{COUNTS, MIB, POSITIVE};
use super::schema::{section, when, words};
use farpath_units::{Bytes, Duration};

section! {
    /// RFC 9293 §3.8, RFC 1122 §4.2.3.2, RFC 5681 §4.2.
    struct ReceiveConfig [receive] {
        /// Receive buffer; the most that is ever announced as window.
        buffer: Bytes = Bytes(65_535) => {
            from "RFC 9293 §3.8";
            within POSITIVE;
            workable 20..=16 * MIB;
            told "`tcp_rmem`, `tcp_moderate_rcvbuf`: room for more; on the path, announced windows are brought down to it",
                "exactly; with scaling in whole steps of it";
        }
        /// How fast the application reads, in bytes per second; `unlimited` reads at once.
        read_rate or "unlimited": Option<u64> = None => {
            from "";
            told "the program reads so", "nearly: what is unread takes overhead with it";
            fixed Option::is_none,
                "as the program leaves data unread, the kernel counts its overhead too: the window closes earlier";
        }
        /// Acknowledge every so many segments with payload; 1 acknowledges each.
        // DEVIATES RFC 5681 §4.2: it counts full-sized segments. Small ones are counted here too, as BSD did: a
        // receiver cannot know what is full-sized at the sender.
        ack_every: u32 = 2 => {
            from "RFC 5681 §4.2";
            within 1..=COUNTS;
            workable 1..=20;
            told "1: a route's `quickack`", "1 and 2";
            fixed |it| *it == 2, where when::withheld, "the kernel acknowledges every second full segment";
        }
        /// Longest that an ACK is withheld; zero acknowledges each segment.
        ack_delay: Duration = Duration::from_millis(200) => {
            from "RFC 1122 §4.2.3.2";
            told "0: a route's `quickack`; 5 to 40 ms: `TCP_DELACK_MAX_US`", "up to 40 ms";
            fixed |it| *it <= Duration::from_millis(40), where when::withheld,
                "the kernel withholds an ACK for 40 ms, and up to 200 ms where segments come slowly";
            fixed |it| *it >= Duration::from_millis(5), where when::withheld, "5 ms, in whole jiffies";
        }
        /// Where it follows the gaps between segments (Linux): the longest that it gets, from `ack_delay` on. It
        /// doubles with each wait that no second segment ended.
        ack_delay_max or "none": Option<Duration> = None => {
            from "Linux";
            fixed |it| it.is_none_or(|max| max == Duration::from_millis(200)), where when::withheld,
                "the kernel withholds an ACK for 40 ms, and up to 200 ms where segments come slowly";
        }
        /// What the wait for a second segment begins with.
        ack_clock: AckClock = AckClock::Segment => {
            from "RFC 1122 §4.2.3.2; BSD";
            fixed |it| *it == AckClock::Segment, where when::withheld, "the kernel's wait begins with the segment";
        }
        /// Acknowledge so many segments at once when a connection begins (Linux "quick ACK").
        quick_acks: u32 = 0 => {
            from "Linux";
            fixed |it| (16..=64).contains(it), where when::withheld,
                "the kernel acknowledges the first segments at once, 27 or so";
        }
        /// Acknowledge so many at once again where data in order comes after a gap longer than the RTO (Linux). What a sender
        /// repairs by timeouts is then acknowledged segment by segment, and its timer is measured anew the sooner.
        quick_acks_after_gap: u32 = 0 => {
            from "Linux";
            fixed |it| *it == 16, where when::withheld,
                "after a gap of more than an RTO the kernel acknowledges 16 segments at once";
        }
        /// What is acknowledged at once beside gaps and every `ack_every`-th segment: what uses up quick ACKs, what bounds their
        /// number, and whether a pushed segment is.
        immediate_acks: ImmediateAcks = ImmediateAcks::ByNumber => {
            from "Linux, tcp_input.c: `tcp_event_data_recv()`, `tcp_incr_quickack()`, `tcp_grow_window()`; `tcp_event_ack_sent()`; \
                  `ICSK_ACK_PUSHED`";
            was "quick_ack_accounting";
            was "ack_pushed" as true "linux";
        }
        /// The window begins with what 128 kB of memory hold, and grows with what the program reads, up to the buffer (Linux's
        /// `tcp_moderate_rcvbuf`). Its field is scaled for twice the buffer, and shows whole units, rounded up.
        autotuning: bool = false => {
            from "Linux: `tcp_grow_window()`, `tcp_rcv_space_adjust()`, `tcp_select_initial_window()`";
        }
        /// With SACK: of the ACKs that report what lies beyond a hole the first three leave at once, then one stands for so many, or
        /// for those of a twentieth of a round trip and no more than a millisecond (Linux's `tcp_comp_sack_nr`). 0 sends each.
        compressed_acks: u32 = 0 => {
            from "Linux's `tcp_comp_sack_nr`";
            told "`tcp_comp_sack_nr`", "exactly";
        }
        /// With timestamps: which segments have theirs echoed from then on.
        ts_recent: TsRecent = TsRecent::Rfc7323 => {
            from "RFC 7323 §4.3";
            fixed |it| *it == TsRecent::Linux, where when::timestamps,
                "the kernel echoes copies of the last segment, and of no other";
        }
    }
}

words! {
    /// Which segments TS.Recent is taken from (RFC 7323 §4.3), of those that PAWS lets through.
    ///
    /// They differ in copies of what has arrived. The sender takes the echo for the time at which it sent what is acknowledged: where
    /// the first copy's is echoed, an ACK that was lost makes a sample of RTO + RTT.
    TsRecent {
        /// `SEG.SEQ <= Last.ACK.sent` (RFC 7323 §4.3 (2)): of any copy. Appendix D takes it before the segment is tested for the
        /// window.
        Rfc7323 = "rfc-7323",
        // DEVIATES RFC 7323 §4.3: what ends before Last.ACK.sent is refused first, as Linux does.
        /// `SEG.SEQ <= Last.ACK.sent <= SEG.SEQ + SEG.LEN`: of copies, that of the last segment (Linux's `tcp_sequence()` and
        /// `tcp_replace_ts_recent()`).
        Linux = "linux",
        // DEVIATES RFC 7323 §4.3: what has arrived is cut off first, as FreeBSD does.
        /// `max(SEG.SEQ, RCV.NXT) <= Last.ACK.sent`: of any copy, unless an ACK is withheld (FreeBSD's `tcp_do_segment()`).
        FreeBsd = "freebsd",
        // DEVIATES RFC 7323 §4.3: it is what came before it.
        /// `SEG.SEQ <= Last.ACK.sent < SEG.SEQ + SEG.LEN` (RFC 1323 §3.4; 4.4BSD): of no copy of what has been acknowledged, and
        /// of nothing without payload.
        Rfc1323 = "rfc-1323",
        // DEVIATES RFC 7323 §4.3: copies are left out.
        /// `SEG.SEQ = RCV.NXT <= Last.ACK.sent`: of no copy (ns-3's `TcpSocketBase::ProcessOptionTimestamp()`).
        InOrder = "in-order",
    }

    /// When a withheld ACK is sent for lack of a second segment.
    AckClock {
        /// `ack_delay` after the segment came.
        Segment = "segment",
        /// At the next multiple of `ack_delay` on the host's clock (BSD's 200 ms fast timer).
        Host = "host",
    }

    /// Which segments are acknowledged at once though no second one has come.
    ImmediateAcks {
        /// So many as `quick_acks` says: each segment in order takes one.
        ByNumber = "by-number",
        /// A segment that carries PSH, or is smaller than those before it, once the program has read all that came
        /// (`ICSK_ACK_PUSHED`). And quick ACKs: each ACK that leaves takes one, whatever it answers (`tcp_dec_quickack_mode()`). Their number is bounded by the full
        /// segments that half of the window holds, by two where it holds none (`tcp_incr_quickack()`), and made odd by each
        /// segment that makes the window grow (`tcp_grow_window()`; only with `autotuning`). With the last one the wait for a second
        /// segment is `ack_delay` again.
        Linux = "linux",
    }
}
