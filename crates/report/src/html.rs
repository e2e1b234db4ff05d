//! A run or a sweep as one HTML file that needs nothing else: no network, no server, no other file.
//!
//! A [`Page`] is a list of sections of text, tables and figures. A [`Figure`] names a plot of the folder `plots/` and
//! brings the data for it; [`Page::render`] puts the plots that are used, and what draws them, into the file.

pub(crate) mod air;
pub(crate) mod curves;
mod data;
mod decimate;
mod diagnosis;
mod experiment_summary;
mod file;
mod heat_map;
pub(crate) mod line_family;
mod page;
mod plots;
mod reach;
mod relays;
mod run_page;
mod summary_lines;
mod sweep;
pub(crate) mod trace;

pub use data::{Columns, Figure};
pub use decimate::{decimate, spread};
pub use diagnosis::diagnosis_page;
pub use experiment_summary::{summary_of_experiment, summary_of_programs, summary_of_results};
pub use file::{ReportError, ReportFile, may_write};
pub use page::{Block, Page, Panel, Section};
pub use plots::{definition, plot_names};
pub use reach::{Reach, reach_page};
pub use relays::{Limit, relays_figure};
pub use run_page::run_page;
pub use trace::{Traces, to_trace};
