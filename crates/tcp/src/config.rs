//! Everything that makes one TCP stack differ from another, as data.
//!
//! The defaults are the RFCs': 9293 (TCP), 5681 (congestion control), 6298 (RTO), 6582 (NewReno),
//! 1122 (delayed ACK). Switches that reproduce a deviation found in some stack or simulator say so
//! and are off by default.
//!
//! Each section of [`Config`] is a file with a table of rows, one for each parameter. A row is the only place where a
//! parameter is described: the field, its default and its documentation, how stack files spell it, what it may be, and what
//! Linux makes of it. [`parameters`] lists them for those who read, write, check, describe or draw stacks.

mod congestion;
mod explicit_rate;
mod handshake;
mod receive;
mod recovery;
mod rto;
pub(crate) mod schema;
mod send;

pub use crate::cc::CongestionControlKind;
pub use congestion::{
    AvoidanceGrowth, CongestionConfig, CubicRules, CwndValidation, HyStart, SlowStartGrowth, SsthreshFrom,
    SsthreshOnTimeout, SynLoss,
};
pub use explicit_rate::{ExplicitRateConfig, RateKind};
pub use handshake::{HandshakeConfig, HandshakeRules};
pub use receive::{AckClock, ImmediateAcks, ReceiveConfig, TsRecent};
pub use recovery::{
    EndGrowth, FullAckWindow, PartialAckTimer, RackRules, RateReduction, RecoverGuard, RecoveryAlgorithm,
    RecoveryConfig, RepairTimer, SackRules, WindowWithoutSack,
};
pub use rto::{
    BackoffReset, RetransmittedSyn, RtoConfig, RtoFloor, RttMeasure, RttSampling, RttVariation, TickExpiry,
};
pub use schema::{FixedByLinux, FormerKey, Kind, Parameter, Value, Word};
pub use send::{EcnMode, SendConfig, SuperPackets, WindowProbe};

use crate::segment::MAX_MSS;
use farpath_units::{Bytes, Duration};
use schema::section;

section! {
    /// The parameters of one end of a connection.
    struct Config []
    and
        /// How segments are acknowledged.
        receive: ReceiveConfig,
        /// Initial, loss and congestion windows and their growth.
        congestion: CongestionConfig,
        /// Loss detection and repair.
        recovery: RecoveryConfig,
        /// Retransmission timeout.
        rto: RtoConfig,
        /// Opening and giving up.
        handshake: HandshakeConfig,
        /// Options and the small rules of sending.
        send: SendConfig,
        /// A rate that flow routers grant, for what this end sends.
        explicit_rate: ExplicitRateConfig,
    {
        /// Largest segment that this end sends or announces, payload bytes.
        mss: Bytes = Bytes(1460) => {
            from "RFC 9293 §3.7.1";
            within 1..=MAX_MSS.0;
            workable 1..=MAX_MSS.0;
            told "the device's MTU, `mss` + 40 B; a route's `advmss` below 1220 B",
                "exactly, from 48 B on; in a window of less than two segments it sends halves of the window";
            fixed |it| *it >= Bytes(48), "the kernel sends 48 B at the least (tcp_min_snd_mss)";
        }
    }
}

/// Every parameter of a stack, section by section.
pub fn parameters() -> impl Iterator<Item = &'static Parameter> {
    let sections = [
        PARAMETERS,
        receive::PARAMETERS,
        congestion::PARAMETERS,
        recovery::PARAMETERS,
        rto::PARAMETERS,
        handshake::PARAMETERS,
        send::PARAMETERS,
        explicit_rate::PARAMETERS,
    ];
    sections.into_iter().flatten()
}

/// Linux's `TCP_RTO_MIN`, whatever `rto.min` is.
const FIRST_MODELLED: Duration = Duration::from_millis(200);

impl Config {
    /// Whether windows are scaled between this end and that one: both must offer it (RFC 7323 §2.2).
    pub fn scales_with(&self, other: &Config) -> bool {
        self.send.window_scaling && other.send.window_scaling
    }

    /// How long a segment is sent again, where that is a time: what `data_retries` retransmissions take from a timeout of
    /// `TCP_RTO_MIN`, doubled up to `rto.max` (Linux's `tcp_model_timeout()`).
    pub fn time_for_retries(&self) -> Option<Duration> {
        let retries = self.handshake.data_retries.filter(|_| self.handshake.data_retries_as_time)?;
        let doublings = (self.rto.max.as_nanos() / FIRST_MODELLED.as_nanos()).max(1).ilog2();
        let doubled = FIRST_MODELLED.doubled(retries.min(doublings) + 1) - FIRST_MODELLED;
        Some(doubled + self.rto.max * u64::from(retries.saturating_sub(doublings)))
    }
}
