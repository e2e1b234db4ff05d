//! Results for people: terminal tables, HTML reports, agreement between engines, claims of papers.

pub mod agreement;
pub mod curve;
pub mod html;
pub mod ladder;
pub mod papers;
mod signals;
pub mod terminal;
