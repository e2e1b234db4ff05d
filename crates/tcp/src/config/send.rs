//! `[send]` of a stack.

use super::schema::numbers::{MS, POSITIVE, SECOND};
use super::schema::{section, words};
use farpath_units::{Bytes, Duration};

section! {
    /// Options and the small rules of sending.
    struct SendConfig [send] {
        /// Send buffer; the most that is written but not acknowledged. `unlimited` takes all that the application has.
        buffer or "unlimited": Option<Bytes> = None => {
            from "";
            within POSITIVE;
            told "`tcp_wmem`", "nearly: overhead counts too";
        }
        /// The buffer begins small, and grows with the congestion window up to `buffer`. It counts memory, and a program that has
        /// found it full writes again once a third of it is free (Linux's `tcp_sndbuf_expand()`, `sk_stream_is_writeable()`).
        autotuning: bool = false => {
            from "Linux: `tcp_sndbuf_expand()`";
        }
        /// Nagle's rule (RFC 9293 §3.7.4): no small segment while data is unacknowledged.
        nagle: bool = true => {
            from "RFC 9293 §3.7.4";
            told "`TCP_NODELAY`", "exactly";
        }
        /// Nagle's rule in Minshall's form: only another small segment that is unacknowledged holds one back. And where a
        /// burst of full segments ends at the edge of the peer's window, a small one behind them fills it (Linux).
        minshall: bool = false => {
            from "Linux";
            fixed |it| *it, where |own, _| own.send.nagle,
                "in the kernel a small segment waits for another small one alone (Minshall)";
        }
        /// Window scaling (RFC 7323 §2).
        window_scaling: bool = false => {
            from "RFC 7323 §2";
            told "`tcp_window_scaling`", "exactly";
        }
        /// Timestamps and PAWS (RFC 7323 §3-5).
        timestamps: bool = false => {
            from "RFC 7323 §3";
            told "`tcp_timestamps`", "exactly";
        }
        /// Explicit congestion notification (RFC 3168), for both halves of the connection.
        ecn: EcnMode = EcnMode::Off => {
            from "RFC 3168";
            told "`tcp_ecn`", "exactly";
        }
        /// Segments leave at the pace of the window: twice `cwnd` per SRTT in slow start, 1.2 times after it (Linux under the
        /// `fq` scheduler). A controller that has a pace of its own, as BBR, is paced in any case.
        pacing: bool = false => {
            from "Linux under `fq`";
            fixed |it| !it, "the kernel paces where the fq scheduler is the device's, and here it is not";
        }
        /// New data is handed to the device in super-packets of about a millisecond at the window's rate, and no more than half a
        /// window: the last segment of each that has several carries PSH, and so does the end of each buffer that the program
        /// filled (Linux).
        super_packets: SuperPackets = SuperPackets::Off => {
            from "Linux: `tcp_write_xmit()`, `tcp_grow_skb()`";
            was "fill_super_packets" as true "filled";
        }
        /// New data waits until so large a part of the window may leave in one piece, where the last segment left within a
        /// millisecond and an ACK is due within one: 3 is a third (Linux's `tcp_tso_win_divisor`). 0 waits for nothing.
        tso_win_divisor: u32 = 0 => {
            from "Linux's `tcp_tso_win_divisor`";
            workable 0..=255;
            told "`tcp_tso_win_divisor`", "exactly; 0 as 255, with which nothing waits";
        }
        /// A FIN without data waits where the congestion window is full, as a segment of data does; else it takes none of it.
        fin_within_cwnd: bool = false => {
            from "Linux";
        }
        /// What probes a window that is shut.
        window_probe: WindowProbe = WindowProbe::Octet => {
            from "RFC 9293 §3.8.6.1";
            fixed |it| *it == WindowProbe::Empty, "the kernel's probes have no payload";
        }
        /// First zero-window probe interval; doubles up to `persist_max` (RFC 9293 §3.8.6.1). The RTO, where probes are empty and it
        /// is longer.
        persist_min: Duration = Duration::from_secs(1) => {
            from "RFC 9293 §3.8.6.1";
            within POSITIVE;
            workable MS..=3 * SECOND;
            told "`rto.min`, of 200 ms or more", "where they are the same";
            fixed |_| false, where |own, _| own.send.persist_min != own.rto.min.max(Duration::from_millis(200)),
                "the kernel starts with the RTO, at least 200 ms";
        }
        /// Longest zero-window probe interval.
        persist_max: Duration = Duration::from_secs(60) => {
            from "RFC 9293 §3.8.6.1";
            workable 100 * MS..=100 * SECOND;
            told "`rto.max`", "where they are the same";
            fixed |_| false, where |own, _| own.send.persist_max != own.rto.max.clamp(Duration::from_secs(1), Duration::from_secs(120)),
                "the kernel's ends at rto.max";
        }
        /// TTL, or hop limit, that packets leave with (RFC 791 §3.1; RFC 1700 recommends 64).
        ttl: u8 = 64 => {
            from "RFC 791 §3.1, RFC 1700";
            within 1..=255;
            workable 1..=255;
            told "`ip_default_ttl`, for IPv4", "exactly; over IPv6 it is 64";
        }
    }
}

words! {
    /// What a probe of a shut window is (RFC 9293 §3.8.6.1).
    WindowProbe {
        /// One octet of new data.
        Octet = "octet",
        /// A segment without payload from before the window, which is answered by an ACK. The first leaves an RTO after the
        /// window was found shut, and each ACK that keeps it shut starts the interval anew (Linux's `tcp_xmit_probe_skb()`,
        /// `tcp_ack_probe()`).
        Empty = "empty",
    }
}

words! {
    /// Whether new data is handed to the device in super-packets.
    SuperPackets {
        /// Segment by segment.
        Off = "off" formerly false,
        /// In super-packets; one for which its buffer holds too little is shorter (Linux before 6.10).
        Plain = "plain" formerly true,
        /// The same; one for which its buffer holds too little takes in the beginning of the next (Linux's `tcp_grow_skb()`, since 6.10).
        Filled = "filled",
    }
}

words! {
    /// When a connection uses ECN; Linux calls them `tcp_ecn` 0, 2 and 1.
    EcnMode {
        /// Never.
        Off = "off",
        /// Where the peer asks for it.
        Accept = "accept",
        /// It is asked for, and accepted.
        Request = "request",
    }
}
