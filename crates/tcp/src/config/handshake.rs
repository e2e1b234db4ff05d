//! `[handshake]` of a stack.

use super::schema::numbers::{COUNTS, MS, POSITIVE, SECOND};
use super::schema::section;
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
        /// Count a SYN/ACK that answers a duplicate SYN too (ns-3). RFC: only the timer's.
        synack_shared_budget: bool = false => {
            from "ns-3";
            fixed |it| !it, "the kernel counts those that its timer sends";
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
        /// Answer segments of a connection that is gone with a reset (RFC 9293 §3.10.7.1). Off: ns-3.
        reset_when_closed: bool = true => {
            from "RFC 9293 §3.10.7.1";
            fixed |it| *it, "the kernel sends a reset";
        }
        /// How long the closing end waits for stray segments (twice the MSL).
        time_wait: Duration = Duration::from_secs(240) => {
            from "RFC 9293 §3.4.2";
            workable 0..=240 * SECOND;
            fixed |it| *it == Duration::from_secs(60), "60 s in the kernel";
        }
        /// Announce the MSS in SYN and SYN/ACK, and take the default of RFC 9293 §3.7.1 where the peer does not. Off: ns-3,
        /// whose two ends are told the same.
        mss_option: bool = true => {
            from "RFC 9293 §3.7.1; not ns-3";
            fixed |it| *it, "the kernel announces it";
        }
        /// The ACK of a SYN/ACK leaves before the first data, not with it: the rule where a program writes only once it
        /// is connected.
        ack_alone: bool = false => {
            from "Linux, ns-3";
            fixed |it| *it, "in the kernel the ACK of a SYN/ACK leaves by itself";
        }
    }
}
