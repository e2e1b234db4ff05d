//! `[handshake]` of a stack.

use super::schema::numbers::{COUNTS, MS, POSITIVE, SECOND};
use super::schema::{section, words};
use farpath_units::Duration;

section! {
    /// RFC 9293 §3.5, §3.8.3.
    struct HandshakeConfig [handshake] {
        /// Open by a SYN. Off at both ends, a simulated connection is open from the beginning, as between the one-way agents of ns;
        /// off at one end only, it is opened as usual.
        syn: bool = true => {
            from "not ns's one-way agents";
            fixed |it| *it, "the kernel opens by a SYN";
        }
        /// SYNs sent before giving up; the give-up comes when the wait after the last one ends. `unlimited` never gives up.
        syn_attempts or "unlimited": Option<u32> = Some(8) => {
            from "RFC 9293 §3.8.3: at least 3 min";
            within 1..=COUNTS;
            workable 1..=60;
            told "`tcp_syn_retries`", "2 to 128 SYNs";
        }
        /// The first so many SYN timeouts do not double (Linux `tcp_syn_linear_timeouts`).
        syn_linear_timeouts: u32 = 0 => {
            from "Linux";
            workable 0..=8;
            told "`tcp_syn_linear_timeouts`", "exactly";
            fixed |it| *it <= 127, "127 in the kernel, at the most";
        }
        /// Ends the opening so long after its first SYN, whatever the number of SYNs; `none` has no such timer (RFC 9293
        /// §3.9.1.1, the user timeout; 75 s in BSD, 21 s in Windows).
        connect_timeout or "none": Option<Duration> = None => {
            from "BSD: 75 s; Windows: 21 s";
            within POSITIVE;
            workable MS..=100 * SECOND;
            fixed Option::is_none, "the kernel goes by the number of SYNs alone";
        }
        /// SYN/ACKs sent before the half-open connection is forgotten; `unlimited` never forgets.
        synack_attempts or "unlimited": Option<u32> = Some(6) => {
            from "Linux";
            within 1..=COUNTS;
            workable 1..=60;
            told "`tcp_synack_retries`", "exactly";
            fixed |it| it.is_some_and(|attempts| attempts <= 256), "the kernel sends 256 SYN/ACKs, at the most";
        }
        /// By whose rules a connection opens, and is answered once it is gone.
        rules: HandshakeRules = HandshakeRules::Rfc9293 => {
            from "RFC 9293 §3.7.1, §3.10.7; ns-3";
            was "synack_shared_budget" as true "ns-3";
            was "reset_when_closed" as false "ns-3";
            was "mss_option" as false "ns-3";
            fixed |it| *it == HandshakeRules::Rfc9293,
                "the kernel counts the SYN/ACKs of its timer, announces its MSS, and answers with a reset (rfc-9293)";
        }
        /// Retransmissions of one segment before the connection is aborted (R2); `unlimited` never aborts.
        data_retries or "unlimited": Option<u32> = Some(15) => {
            from "RFC 9293 §3.8.3: at least 3 min";
            workable 1..=60;
            told "`tcp_retries2`", "exactly, with `data_retries_as_time`";
            fixed |it| it.is_some_and(|retries| retries <= 255),
                "the kernel gives up after the time that 255 of the shortest RTO would take";
        }
        /// `data_retries` stands for the time that so many retransmissions would take from a timeout of 200 ms, doubled up to `rto.max`:
        /// 924.6 s for 15 up to 120 s. The second timeout in a row, or a later one, gives up where the first retransmission is that long
        /// ago (Linux's `retransmits_timed_out()`, `tcp_model_timeout()`). Probes of a shut window are counted all the same.
        data_retries_as_time: bool = false => {
            from "Linux";
            fixed |it| *it, "the kernel gives up after a time, however many retransmissions fit into it";
        }
        /// How long the closing end waits for stray segments (twice the MSL).
        time_wait: Duration = Duration::from_secs(240) => {
            from "RFC 9293 §3.4.2";
            workable 0..=240 * SECOND;
            fixed |it| *it == Duration::from_secs(60), "60 s in the kernel";
        }
        /// The ACK of a SYN/ACK leaves before the first data, not with it: the rule where a program writes only once it
        /// is connected.
        ack_alone: bool = false => {
            from "Linux, ns-3";
            fixed |it| *it, "in the kernel the ACK of a SYN/ACK leaves by itself";
        }
    }
}

words! {
    /// How a connection opens, and what answers for it once it is gone.
    HandshakeRules {
        /// SYN and SYN/ACK announce the MSS, and 536 or 1220 B is that of a peer which does not (RFC 9293 §3.7.1). `synack_attempts` counts
        /// the SYN/ACKs of the timer. What comes for a connection that is gone is answered with a reset (§3.10.7.1).
        Rfc9293 = "rfc-9293",
        // DEVIATES RFC 9293 §3.7.1, §3.10.7.1, as said.
        /// No MSS is announced: both ends are told the same. A SYN/ACK that answers a duplicate SYN is one of the attempts too. What comes
        /// for a connection that is gone is not answered (ns-3).
        Ns3 = "ns-3",
    }
}

impl HandshakeRules {
    /// Whether SYN and SYN/ACK carry the MSS option.
    pub fn announces_mss(self) -> bool {
        self == HandshakeRules::Rfc9293
    }
}
