//! A flow router: what it grants to whom, and in which order packets leave it. It owns no clock and no line.

mod admission;
mod counters;
mod flow;
mod guarantees;
mod numbers;
mod packet;
mod passing;
mod port;
mod queues;
mod report;
mod settings;
mod shares;
mod table;
#[cfg(test)]
mod tests;
mod timers;

pub use counters::RouterCounters;
pub use flow::FlowKey;
pub use numbers::{Fit, NUMBER_WINDOW, Numbers};
pub use packet::{Ending, QosPacket};
pub use passing::{Class, Decision};
pub use port::Port;
pub use queues::Queues;
pub use report::FlowReport;
pub use settings::RouterSettings;
