//! Published closed forms for TCP's performance, each with its source and its domain.
//!
//! One file per source. A formula takes named inputs and gives an [`Estimate`]: the value, where the formula
//! comes from, and caveats in plain words where the inputs lie outside the domain it was derived or checked for.
//! Nothing here owns a clock, does I/O or draws a random number.
//!
//! | file | formula | source |
//! | --- | --- | --- |
//! | [`window_limit`] | window over round-trip time; the cycle behind a delayed ACK | Sarkar, Ammann, Zabir 2022, Eq. 10-13 |
//! | [`lossless`] | a loss-free transfer, walked exactly | RFC 5681, RFC 1122 |
//! | [`overhead`] | header overhead, maximum throughput, packets of a file | Sarkar, Ammann, Zabir 2022, Eq. 8-9 |
//! | [`mathis`] | inverse square-root law | Mathis et al. 1997 |
//! | [`pftk`] | Reno with timeouts | Padhye et al. 1998; RFC 5348 |
//! | [`markov`] | Reno round by round: small windows, ACK loss, coarse timers | derived here, after Padhye, Firoiu, Towsley 1999 |
//! | [`epochs`] | Reno and CUBIC at large windows, for a file of any length | derived here, after RFC 5681, RFC 9438 |
//! | [`ber`] | bit error rate to packet error rate and back | Sarkar, Ammann, Zabir 2022, Table 1 |
//! | [`retransmissions`] | expected drops and retransmissions | Sarkar, Ammann, Zabir 2022, Table 7, Eq. 14-15 |
//! | [`recovery`] | what one isolated drop costs Reno | Sarkar, Ammann, Zabir 2022, Eq. 17, Table 9 |
//! | [`radio`] | throughput of a packet radio's poll cycle | derived |
//! | [`stream`] | what one loss costs a constant-rate stream, and the buffers that it takes | Kershaw, Hughes-Jones 2007, Eq. 2.1-2.3; RFC 9438 |
//! | [`slow_start`] | rounds until a window is reached | RFC 5681; Cardwell et al. 2000 |
//! | [`radius`] | timers of the handshake as round trips and distances | Wood et al. 2007; RFC 6298 |
//! | [`relay`] | where a relay may stand, what lies beyond it | Wood et al. 2007 |
//! | [`budget`] | timers against delays; how long a queue stands | derived here, after Villamizar, Song 1994 |
//! | [`cardwell`] | latency of a finite transfer | Cardwell, Savage, Anderson 2000 |
//! | [`explicit_rate`] | fits of normal and explicit-rate TCP | Roberts, MILCOM 2006 |
//! | [`arq`] | a file at a constant rate, repaired until it has arrived | derived here |
//! | [`registry`] | all of the above by name, for data files | |
//!
//! Sarkar, Ammann, Zabir is Electronics 2022, 11, 2254, called "the high-BER paper" below.

pub mod arq;
pub mod ber;
pub mod budget;
pub mod cardwell;
pub mod epochs;
mod estimate;
pub mod explicit_rate;
pub mod lossless;
pub mod ltp;
pub mod markov;
pub mod mathis;
pub mod overhead;
mod path;
pub mod pftk;
pub mod radio;
pub mod radius;
pub mod recovery;
pub mod registry;
pub mod relay;
pub mod retransmissions;
pub mod slow_start;
pub mod stream;
pub mod window_limit;

pub use estimate::{Estimate, InputError, Throughput};
pub use path::{Hop, Path};
pub use registry::{Args, Argument, EvaluateError, Formula, evaluate, formula, formulas};
