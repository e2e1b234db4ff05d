//! What an engine gives back.
//!
//! Every engine returns the same [`Run`]: a table, a plot or a claim check never knows which one made it.

mod outcome;
mod run;
mod tables;

pub use outcome::Outcome;
pub use run::{Engine, Provenance, Run};
pub use tables::{FlowRow, Metric, SegmentEvent, SegmentRow, SeriesRow};
