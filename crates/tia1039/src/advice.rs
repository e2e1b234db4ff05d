//! SCONE for TCP (draft-eddy-tcpm-scone-01, with the rates of draft-ietf-scone-protocol): throughput advice.
//!
//! On the wire it looks like a grant with less in it: a rate that elements on the path may only lower. It means something
//! else. A [`Structure`](crate::Structure) grants *a rate to send at*, and takes the place of congestion control while
//! it holds; advice is *a ceiling that a policy sets for applications*, beside congestion control, over 67 seconds.
//! Nothing turns the one into the other, and no function here takes or gives a [`RateWord`](crate::RateWord).
//!
//! ```
//! use farpath_tia1039::advice::{Advice, ScopedOption};
//!
//! let sent = ScopedOption::new(Advice::Unknown);
//! let limited = ScopedOption::new(Advice::at_most(8_000_000).lower_of(sent.advice));
//! let read = ScopedOption::decode(&limited.encode()).expect("it was written here");
//! assert_eq!(read.advice.bit_per_s(), Some(7_943_282));
//! ```

use core::fmt;
use farpath_units::Duration;

/// Kind 254, shared by experiments that an ExID tells apart (RFC 6994). 253 is read as well.
const EXPERIMENT: u8 = 254;
/// SCONE's ExID.
const EXID: u16 = 0x6f7d;
/// Kind, length, ExID, and the field.
const OPTION_LEN: u8 = 6;
/// The seven bits of the field that are the signal.
const SIGNAL: u16 = 0x7f;
/// The signal that endpoints send.
const UNKNOWN: u8 = 127;

/// For how long advice holds, and the time over which the rate is meant: a mean of 67 s.
pub const MONITORING_PERIOD: Duration = Duration::from_secs(67);

/// `100 kbit/s · 10^(n/20)` for n = 0 to 19, in mbit/s (thousandths of a bit/s): the rest is powers of ten.
///
/// The TCP draft prints the formula with a plus in place of the product: then all 126 steps would lie between 100 and
/// 102 kbit/s at first and no table of the base draft would fit. The base draft's product is taken.
const FIRST_DECADE: [u64; 20] = [
    100_000_000,
    112_201_845,
    125_892_541,
    141_253_754,
    158_489_319,
    177_827_941,
    199_526_231,
    223_872_114,
    251_188_643,
    281_838_293,
    316_227_766,
    354_813_389,
    398_107_171,
    446_683_592,
    501_187_234,
    562_341_325,
    630_957_344,
    707_945_784,
    794_328_235,
    891_250_938,
];

/// What the network advises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Advice {
    /// At most this, n = 0 to 126.
    AtMost(Signal),
    /// No element has said anything.
    Unknown,
}

/// A rate of the logarithmic scale, n = 0 to 126.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

impl Signal {
    /// The highest, 199.5 Gbit/s.
    pub const HIGHEST: Signal = Signal(126);

    /// `None` past 126.
    pub const fn new(n: u8) -> Option<Signal> {
        if n <= Signal::HIGHEST.0 { Some(Signal(n)) } else { None }
    }

    /// 0 to 126.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The rate, to the bit/s below.
    pub const fn bit_per_s(self) -> u64 {
        FIRST_DECADE[self.0 as usize % 20] * 10_u64.pow(self.0 as u32 / 20) / 1000
    }
}

impl Advice {
    /// The advice of an element whose policy is this rate: the step below it, so that it is never more; the lowest
    /// where the policy is lower still.
    pub fn at_most(bit_per_s: u64) -> Advice {
        let below = (0..=Signal::HIGHEST.0).rev().map(Signal).find(|signal| signal.bit_per_s() <= bit_per_s);
        Advice::AtMost(below.unwrap_or(Signal(0)))
    }

    /// The stricter of two. An element may only lower what passes it.
    #[must_use]
    pub fn lower_of(self, other: Advice) -> Advice {
        if self.code() <= other.code() { self } else { other }
    }

    /// In bit/s, where there is any.
    pub const fn bit_per_s(self) -> Option<u64> {
        match self {
            Advice::AtMost(signal) => Some(signal.bit_per_s()),
            Advice::Unknown => None,
        }
    }

    const fn code(self) -> u8 {
        match self {
            Advice::AtMost(Signal(n)) => n,
            Advice::Unknown => UNKNOWN,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Advice::AtMost(signal) => write!(f, "at most {} bit/s (n = {})", signal.bit_per_s(), signal.0),
            Advice::Unknown => f.write_str("unknown (127)"),
        }
    }
}

/// The option as it can be sent today: under an ExID, because no kind of its own is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopedOption {
    /// What is advised.
    pub advice: Advice,
    /// The nine bits beside it. They mean nothing yet, and are passed on as they came.
    pub reserved: u16,
}

/// Why bytes are no such option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdviceError {
    /// Another kind of TCP option.
    #[error("TCP option kind: expected 253 or 254, found {0}")]
    Kind(u8),
    /// Another length.
    #[error("length: expected 6, found {0}")]
    Length(usize),
    /// Another experiment's.
    #[error("ExID: expected 0x6f7d, found 0x{0:04x}")]
    ExId(u16),
}

impl ScopedOption {
    /// With this advice.
    pub const fn new(advice: Advice) -> ScopedOption {
        ScopedOption { advice, reserved: 0 }
    }

    /// As a TCP option.
    pub const fn encode(&self) -> [u8; OPTION_LEN as usize] {
        let [id_high, id_low] = EXID.to_be_bytes();
        let [high, low] = (self.reserved << 7 | self.advice.code() as u16).to_be_bytes();
        [EXPERIMENT, OPTION_LEN, id_high, id_low, high, low]
    }

    /// Of a TCP option, from its kind on.
    ///
    /// # Errors
    /// Another kind, length or ExID.
    pub fn decode(option: &[u8]) -> Result<ScopedOption, AdviceError> {
        let &[kind, len, id_high, id_low, high, low] = option else {
            return Err(AdviceError::Length(option.len()));
        };
        if !matches!(kind, 253 | 254) {
            return Err(AdviceError::Kind(kind));
        }
        if len != OPTION_LEN {
            return Err(AdviceError::Length(usize::from(len)));
        }
        let id = u16::from_be_bytes([id_high, id_low]);
        if id != EXID {
            return Err(AdviceError::ExId(id));
        }
        let field = u16::from_be_bytes([high, low]);
        let advice = Signal::new((field & SIGNAL) as u8).map_or(Advice::Unknown, Advice::AtMost);
        Ok(ScopedOption { advice, reserved: field >> 7 })
    }
}

#[cfg(test)]
mod tests {
    use super::{Advice, AdviceError, ScopedOption, Signal};

    #[test]
    fn the_scale_is_the_base_drafts_product() {
        let table =
            [(0, 100_000), (1, 112_201), (2, 125_892), (3, 141_253), (20, 1_000_000), (21, 1_122_018)];
        let high = [(60, 100_000_000), (80, 1_000_000_000), (101, 11_220_184_500), (126, 199_526_231_000)];
        for (n, bit_per_s) in table.into_iter().chain(high) {
            assert_eq!(Signal::new(n).expect("a signal").bit_per_s(), bit_per_s, "{n}");
        }
        for n in 0..=126 {
            let exact = 1e5 * 10_f64.powf(f64::from(n) / 20.0);
            let ours = Signal::new(n).expect("a signal").bit_per_s() as f64;
            assert!((ours / exact - 1.0).abs() < 2e-5, "{n}: {ours} {exact}");
        }
        assert_eq!(Signal::new(127), None);
    }

    #[test]
    fn an_element_only_lowers() {
        let policy = Advice::at_most(8_000_000);
        assert_eq!(policy.lower_of(Advice::Unknown), policy);
        assert_eq!(policy.lower_of(Advice::at_most(1_000_000)), Advice::at_most(1_000_000));
        assert_eq!(Advice::at_most(1_000_000).bit_per_s(), Some(1_000_000));
        assert_eq!(Advice::at_most(999_999).bit_per_s(), Some(891_250));
        assert_eq!(Advice::at_most(0).bit_per_s(), Some(100_000), "there is nothing lower");
        assert_eq!(Advice::at_most(u64::MAX), Advice::AtMost(Signal::HIGHEST));
        assert_eq!(Advice::at_most(1_000_000).to_string(), "at most 1000000 bit/s (n = 20)");
        assert_eq!(Advice::Unknown.to_string(), "unknown (127)");
    }

    #[test]
    fn every_field_comes_back_as_it_was() {
        for field in 0..=u16::MAX {
            let [high, low] = field.to_be_bytes();
            let bytes = [254, 6, 0x6f, 0x7d, high, low];
            let read = ScopedOption::decode(&bytes).expect("a well-formed option");
            assert_eq!(read.encode(), bytes);
        }
    }

    #[test]
    fn what_is_another_option_is_refused_by_name() {
        let refused = |bytes: &[u8]| ScopedOption::decode(bytes).expect_err("refused");
        assert_eq!(refused(&[34, 6, 0x6f, 0x7d, 0, 127]), AdviceError::Kind(34));
        assert_eq!(refused(&[254, 8, 0x6f, 0x7d, 0, 127]), AdviceError::Length(8));
        assert_eq!(refused(&[254, 4, 0x6f, 0x7d]), AdviceError::Length(4));
        assert_eq!(refused(&[254, 6, 0xf9, 0x89, 0, 127]), AdviceError::ExId(0xf989));
    }
}
