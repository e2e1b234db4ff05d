//! The queue before a line: how much it holds, from when on it marks.

use crate::Inflow;
use crate::element::FULL_PACKET;
use crate::keys::{ReadValue, Source};
use core::fmt;
use farpath_units::{Bytes, Duration, Rate};

/// How long a drop-tail queue may get. What is being sent does not count, only what waits.
///
/// A limit of zero is a link without a queue: it takes a packet only while it is idle. An idle link
/// takes any packet, also one that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// As long as it takes.
    Unlimited,
    /// So many bytes of IP packets.
    Bytes(Bytes),
    /// So many packets.
    Packets(u64),
}

/// From when on a queue marks the packets that it takes, where they are ECN-capable; the others it just takes, until
/// its limit drops them.
///
/// The step of RFC 8257 §3.1, of `ce_threshold` in Linux: by the queue at the moment at which a packet joins it, the
/// packet included, what is being sent not. There is no average and no chance in it.
// RFC 3168 §5 lets a mark stand where a packet would be dropped as a sign of congestion. Before its limit this queue
// drops nothing, so that what cannot be marked passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkThreshold {
    /// It drops and never marks.
    Never,
    /// Where more than so many bytes of IP packets wait.
    Bytes(Bytes),
    /// Where more than so many packets wait.
    Packets(u64),
    /// Where the packet will wait longer than this.
    Delay(Duration),
}

impl QueueLimit {
    /// Where packets of `packet` fill it; `None` where nothing does.
    pub fn bytes(self, packet: Bytes) -> Option<Bytes> {
        match self {
            QueueLimit::Unlimited => None,
            QueueLimit::Bytes(limit) => Some(limit),
            QueueLimit::Packets(limit) => Some(Bytes(limit.saturating_mul(packet.0))),
        }
    }

    /// Whether one more packet of `size` has room where so many packets and IP bytes wait.
    #[inline]
    pub(crate) fn has_room(self, packets: usize, bytes: Bytes, size: Bytes) -> bool {
        self.holds(packets + 1, bytes + size)
    }

    /// Whether so many packets and IP bytes may wait.
    #[inline]
    pub(crate) fn holds(self, packets: usize, bytes: Bytes) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Bytes(limit) => bytes <= limit,
            QueueLimit::Packets(limit) => packets as u64 <= limit,
        }
    }

    /// The most that waits before a line of this rate, which is also the most that goes on from there.
    pub(crate) fn held(self, rate: Rate, inflow: &mut Inflow) -> Option<Bytes> {
        inflow.limit(rate);
        self.bytes(FULL_PACKET)
    }

    /// At least so much.
    pub(crate) fn make_room(&mut self, packets: u64, bytes: Bytes) {
        *self = match *self {
            QueueLimit::Unlimited => QueueLimit::Unlimited,
            QueueLimit::Bytes(limit) => QueueLimit::Bytes(limit.max(bytes)),
            QueueLimit::Packets(limit) => QueueLimit::Packets(limit.max(packets)),
        };
    }

    /// What is probably not meant.
    pub(crate) fn warning(self) -> Option<String> {
        let limit = match self {
            QueueLimit::Bytes(limit) if limit < FULL_PACKET => limit.to_string(),
            QueueLimit::Packets(0) => "0 packets".to_owned(),
            QueueLimit::Unlimited | QueueLimit::Bytes(_) | QueueLimit::Packets(_) => return None,
        };
        Some(format!(
            "a queue of {limit} never holds a packet of {FULL_PACKET}: one that arrives while another is being sent is dropped"
        ))
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Unlimited => f.write_str("without limit"),
            QueueLimit::Bytes(bytes) => write!(f, "of {bytes}"),
            QueueLimit::Packets(packets) => write!(f, "of {packets} packets"),
        }
    }
}

impl MarkThreshold {
    /// What waits before a line of this rate when it begins to mark; `None` where it does not.
    pub fn bytes(self, rate: Rate, packet: Bytes) -> Option<Bytes> {
        match self {
            MarkThreshold::Never => None,
            MarkThreshold::Bytes(bytes) => Some(bytes),
            MarkThreshold::Packets(packets) => Some(Bytes(packets.saturating_mul(packet.0))),
            MarkThreshold::Delay(delay) => {
                Some(Bytes((rate.bit_per_s() as f64 / 8.0 * delay.as_secs_f64()) as u64))
            }
        }
    }

    /// Nothing of what may wait is marked.
    pub(crate) fn make_room(&mut self, packets: u64, bytes: Bytes, at_most: Duration) {
        *self = match *self {
            MarkThreshold::Bytes(threshold) => MarkThreshold::Bytes(threshold.max(bytes)),
            MarkThreshold::Packets(threshold) => MarkThreshold::Packets(threshold.max(packets)),
            MarkThreshold::Delay(threshold) => MarkThreshold::Delay(threshold.max(at_most)),
            MarkThreshold::Never => MarkThreshold::Never,
        };
    }

    /// What is probably not meant, before a queue of this limit.
    pub(crate) fn warning(self, queue: QueueLimit) -> Option<String> {
        let (mark, limit) = match (self, queue) {
            (MarkThreshold::Bytes(mark), QueueLimit::Bytes(limit)) if mark >= limit => {
                (mark.to_string(), limit.to_string())
            }
            (MarkThreshold::Packets(mark), QueueLimit::Packets(limit)) if mark >= limit => {
                (format!("{mark} packets"), format!("{limit} packets"))
            }
            _ => return None,
        };
        Some(format!("a mark above {mark} is never set in a queue of at most {limit}"))
    }
}

impl fmt::Display for MarkThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MarkThreshold::Never => f.write_str("never"),
            MarkThreshold::Bytes(bytes) => write!(f, "from {bytes} of queue"),
            MarkThreshold::Packets(packets) => write!(f, "from {packets} packets of queue"),
            MarkThreshold::Delay(delay) => write!(f, "from a wait of {delay}"),
        }
    }
}

impl ReadValue for QueueLimit {
    const EXPECTED: &'static str = "a size such as `64 kB`, a number such as `100 packets`, or `unlimited`";
    fn read<S: Source>(source: &S) -> Result<QueueLimit, S::Error> {
        let text = source.text().unwrap_or_default().trim();
        if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            let packets = number.trim().parse().map(QueueLimit::Packets);
            return packets.map_err(|_| source.wrong_type(Self::EXPECTED));
        }
        let limit =
            source.unless::<Bytes>("unlimited").map_err(|error| S::expecting(error, Self::EXPECTED))?;
        Ok(limit.map_or(QueueLimit::Unlimited, QueueLimit::Bytes))
    }
}

/// A limit as a file has it for a line whose rate is known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueueSetting {
    Limit(QueueLimit),
    /// What the line sends in so long.
    Time(Duration),
}

impl QueueSetting {
    pub fn limit(self, rate: Rate) -> QueueLimit {
        match self {
            QueueSetting::Limit(limit) => limit,
            QueueSetting::Time(time) => {
                let bytes = u128::from(rate.bit_per_s()) * u128::from(time.as_nanos()) / 8_000_000_000;
                QueueLimit::Bytes(Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
            }
        }
    }
}

impl ReadValue for QueueSetting {
    // `bdp` is resolved where the whole path is known, before an element is read.
    const EXPECTED: &'static str = "a size such as `64 kB`, a number such as `100 packets`, a time such as `50 ms`, a bandwidth-delay product such as \
                                    `1 bdp`, or `unlimited`";
    fn read<S: Source>(source: &S) -> Result<QueueSetting, S::Error> {
        if let Some(time) = source.text().and_then(|text| text.parse().ok()) {
            return Ok(QueueSetting::Time(time));
        }
        let limit = QueueLimit::read(source).map_err(|error| S::expecting(error, Self::EXPECTED))?;
        Ok(QueueSetting::Limit(limit))
    }
}

impl ReadValue for MarkThreshold {
    const EXPECTED: &'static str =
        "a size such as `64 kB`, a number such as `20 packets`, a time such as `5 ms`, or `never`";
    fn read<S: Source>(source: &S) -> Result<MarkThreshold, S::Error> {
        let text = source.text().unwrap_or_default().trim();
        let packets = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        let threshold = if text == "never" {
            Some(MarkThreshold::Never)
        } else if let Some(number) = packets {
            number.trim().parse().ok().map(MarkThreshold::Packets)
        } else {
            let time = text.parse().ok().map(MarkThreshold::Delay);
            time.or_else(|| text.parse().ok().map(MarkThreshold::Bytes))
        };
        threshold.ok_or_else(|| source.wrong_type(Self::EXPECTED))
    }
}
