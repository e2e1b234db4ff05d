//! Results for people: terminal tables, agreement between engines, claims of papers.

pub mod papers;
pub mod terminal;
