//! What a run says of itself: how its rows, series and captures come about.
//!
//! A simulation is watched from inside ([`record`]), hosts that nobody looks into by their packets ([`recorder`], and [`passive`] for what
//! these tell). [`capture`] writes packets for Wireshark. Nothing here runs anything: engines do, and tell what happens.

pub mod air;
pub mod capture;
pub mod datagrams;
pub mod drops;
pub mod explicit_rate;
pub mod passive;
mod provenance;
pub mod record;
pub mod recorder;
pub mod row_budget;
pub mod series;

pub use provenance::provenance;
