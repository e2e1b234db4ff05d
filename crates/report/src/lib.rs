//! Results for people: tables, HTML reports, agreement between engines, claims of papers.

pub mod agreement;
pub mod curve;
pub mod formulas;
pub mod html;
mod markdown;
pub mod papers;
pub mod sequence_diagram;
mod signals;
mod table;
pub mod tables;
mod terminal;

pub use table::Table;
