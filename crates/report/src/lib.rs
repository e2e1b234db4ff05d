//! Results for people: tables, HTML reports, agreement between engines, claims of papers.

pub mod agreement;
pub mod curve;
pub mod html;
pub mod ladder;
mod markdown;
pub mod papers;
mod signals;
mod table;
pub mod tables;
mod terminal;

pub use table::Table;
