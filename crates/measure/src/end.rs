//! What one end of a transfer knows, as it is told to the other host: of integers alone, and by names that a kernel of
//! another machine has too.

use crate::said::Said;
use farpath_observe::series::Series;
use farpath_traffic::{End, EndReport, Role, Sample, Token};
use farpath_units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// How an end came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All is there.
    Completed,
    /// No SYN was answered.
    ConnectTimedOut,
    /// Not over at the deadline.
    Deadline,
    /// It was told to stop.
    Stopped,
    /// Anything else, which `detail` says.
    Aborted,
}

impl Outcome {
    /// All of them.
    #[cfg(test)]
    pub const ALL: [Outcome; 5] =
        [Outcome::Completed, Outcome::ConnectTimedOut, Outcome::Deadline, Outcome::Stopped, Outcome::Aborted];
}

/// What an end knows after its transfer. Times are of its own clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndFacts {
    /// How it came out.
    pub outcome: Outcome,
    /// In words, where it did not complete.
    pub detail: Said,
    /// When that was known.
    pub ended_at_ns: u64,
    /// When the connection was there.
    pub connected_at_ns: Option<u64>,
    /// When the last byte was read; at a sender, when the other end's close said so.
    pub finished_at_ns: Option<u64>,
    /// Of the file, read or handed to the kernel.
    pub bytes: u64,
    /// Of the sender of a stream: when its first message was due.
    #[serde(default)]
    pub stream_began_ns: Option<u64>,
    /// Parts in a thousand of its time in which its program was ready and others had the processors.
    #[serde(default)]
    pub processor_wait_permille: Option<u64>,
    /// Of a sender: its congestion window in the mean, bytes.
    pub mean_cwnd: Option<u64>,
    /// Each request and when its answer was there.
    #[serde(default)]
    pub exchanges_ns: Vec<(u64, u64)>,
    /// What its kernel says at the end.
    pub kernel: Option<KernelFacts>,
}

/// `TCP_INFO` of one end, its bytes as bytes. What is of the handshake is left out of `timeouts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFacts {
    pub min_rtt_ns: Option<u64>,
    pub srtt_ns: Option<u64>,
    pub rto_ns: u64,
    pub final_cwnd: u64,
    pub timeouts: Option<u64>,
    pub dsacks: Option<u64>,
    pub data_segments: Option<u64>,
    pub retransmissions: u64,
    pub bytes_sent: Option<u64>,
    pub rwnd_limited_ns: Option<u64>,
    pub sndbuf_limited_ns: Option<u64>,
    pub mss: u64,
}

/// Rows of one sample, at the most: a sender has ten.
pub const OF_SAMPLE: usize = 16;

/// What is noted of one end while it runs.
#[derive(Debug)]
pub struct Watched {
    role: Role,
    size: Bytes,
    opened: bool,
    token: bool,
    series: Series,
    last: Option<(Instant, f64)>,
    /// Byte-seconds of window, and seconds.
    sum: (f64, f64),
    /// The most rows that are kept.
    pub most: usize,
    /// Whether there would have been more.
    pub cut: bool,
}

impl Watched {
    /// Of an end that handles `size` bytes in all. At most `most` rows are kept.
    pub fn new(flow: u32, role: Role, size: Bytes, opened: bool, token: bool, most: usize) -> Watched {
        let series = Series::new(flow);
        Watched { role, size, opened, token, series, last: None, sum: (0.0, 0.0), most, cut: false }
    }

    /// Rows that are kept by now.
    pub fn rows(&self) -> usize {
        self.series.rows().len()
    }

    /// A sample of it.
    pub fn note(&mut self, sample: &Sample) {
        if self.role == Role::Sender {
            let cwnd = f64::from(sample.info.snd_cwnd) * sample.info.snd_mss.0 as f64;
            if let Some((since, value)) = self.last.replace((sample.at, cwnd)) {
                let seconds = sample.at.saturating_since(since).as_secs_f64();
                self.sum = (self.sum.0 + seconds * value, self.sum.1 + seconds);
            }
        }
        if self.series.rows().len() + OF_SAMPLE > self.most {
            self.cut = true;
            return;
        }
        match self.role {
            Role::Sender => {
                let mut sample = *sample;
                // The token goes ahead of the file.
                if self.opened && self.token {
                    let ahead = Bytes(Token::LEN as u64);
                    sample.info.bytes_acked = sample
                        .info
                        .bytes_acked
                        .map(|acked| Bytes(acked.0.saturating_sub(ahead.0).max(u64::from(acked.0 > 0))));
                }
                self.series.sender(&sample, self.size, self.opened);
            }
            Role::Receiver => self.series.receiver(sample),
        }
    }

    /// What it has come to, and what was seen over time.
    pub fn finish(self, report: &EndReport) -> (EndFacts, Series) {
        let (sum, seconds) = self.sum;
        let mean_cwnd = (seconds > 0.0).then(|| (sum / seconds) as u64);
        let (outcome, detail) = match &report.end {
            End::Completed => (Outcome::Completed, Said::default()),
            End::ConnectTimedOut => (Outcome::ConnectTimedOut, report.end.to_string().into()),
            End::Deadline => (Outcome::Deadline, Said::default()),
            End::Stopped => (Outcome::Stopped, Said::default()),
            other => (Outcome::Aborted, other.to_string().into()),
        };
        let facts = EndFacts {
            outcome,
            detail,
            ended_at_ns: report.ended_at.as_nanos(),
            connected_at_ns: report.connected_at.map(Instant::as_nanos),
            finished_at_ns: report.finished_at.map(Instant::as_nanos),
            bytes: report.bytes.0,
            stream_began_ns: report.messages.as_ref().and_then(|stamps| stamps.began).map(Instant::as_nanos),
            processor_wait_permille: report.processor_wait.map(|share| (share * 1000.0) as u64),
            mean_cwnd,
            exchanges_ns: report
                .exchanged
                .iter()
                .map(|one| (one.asked_at.as_nanos(), one.answered_at.as_nanos()))
                .collect(),
            kernel: report.info.map(|info| {
                let handshake = report.info_at_connect.unwrap_or(info);
                let ns = |time: Duration| time.as_nanos();
                KernelFacts {
                    min_rtt_ns: info.min_rtt.map(ns),
                    srtt_ns: info.srtt.map(ns),
                    rto_ns: info.rto.as_nanos(),
                    final_cwnd: u64::from(info.snd_cwnd) * info.snd_mss.0,
                    timeouts: info
                        .total_rto
                        .zip(handshake.total_rto)
                        .map(|(all, before)| all.saturating_sub(before).into()),
                    dsacks: info.dsack_dups.map(u64::from),
                    data_segments: info.data_segs_out.map(u64::from),
                    retransmissions: info.total_retrans.saturating_sub(handshake.total_retrans).into(),
                    bytes_sent: info.bytes_sent.map(|bytes| bytes.0),
                    rwnd_limited_ns: info.rwnd_limited.map(ns),
                    sndbuf_limited_ns: info.sndbuf_limited.map(ns),
                    mss: info.snd_mss.0,
                }
            }),
        };
        (facts, self.series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_traffic::TcpInfo;

    #[test]
    fn rows_beyond_the_bound_are_left_out_and_that_is_known() {
        for role in [Role::Sender, Role::Receiver] {
            let mut watched = Watched::new(0, role, Bytes(1 << 40), false, true, 3 * OF_SAMPLE);
            for number in 0..1000_u32 {
                // All that the kernel says is another with each sample.
                let raw = number.to_ne_bytes().repeat(62);
                let info = TcpInfo::parse(&raw).expect("long enough");
                let before = watched.rows();
                let at = Instant::from_nanos(number.into());
                watched.note(&Sample { at, bytes: Bytes(number.into()), info });
                assert!(watched.rows() - before <= OF_SAMPLE, "one sample is not that long");
            }
            assert!(
                watched.cut && (OF_SAMPLE..=3 * OF_SAMPLE).contains(&watched.rows()),
                "{}",
                watched.rows()
            );
        }
    }
}
