//! What an engine gives back.
//!
//! Every engine returns the same [`Run`]: a table, a plot or a claim check never knows which one made it.

#[macro_use]
mod schema;
#[macro_use]
mod tables;

mod arrow;
mod commit;
mod delays;
mod diagnosis;
mod error;
mod experiment_summary;
mod grade;
mod json;
mod manifest;
mod outcome;
pub mod parquet_file;
mod reader;
mod run;
mod sink;
mod statistic;
mod stream;
mod summary;
mod trace;
mod writer;

pub use arrow::{ColumnError, ColumnInfo, Table, flow_batch, flow_rows};
pub use diagnosis::DiagnosisTables;
pub use error::ResultsError;
pub use experiment_summary::{ExperimentSummary, SummaryPoint, SummaryTimer};
pub use grade::{Grade, Lateness};
pub use json::{write_flow_lines, write_router_lines};
pub use outcome::Outcome;
pub use reader::Results;
pub use run::{Engine, Provenance, Run, RunKey};
pub use statistic::{Share, Statistic};
pub use summary::{PointSummary, jain_index};
pub use tables::air::AirRow;
pub use tables::diagnosis::{ConnectionRow, IntervalRow, LimitRow};
pub use tables::flows::{DelayFigures, FlowNumber, FlowRow, FlowStatistics, ProgramFigures, StreamFigures};
pub use tables::routers::RouterRow;
pub use tables::segments::{SegmentEvent, SegmentRow};
pub use tables::series::{MessageRow, Metric, SeriesRow};
pub use tables::stations::StationRow;
pub use trace::Trace;
pub use writer::{FolderLock, REPORT, ResultsDir};
