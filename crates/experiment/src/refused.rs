//! What more than one engine refuses of a scenario, before anything runs.

use crate::flows::{FlowSpec, Transport};
use crate::scenario::Scenario;
use farpath_units::Bytes;

impl Scenario {
    /// Whether `what`, which knows TCP alone, knows the flows.
    ///
    /// # Errors
    /// They are streams over UDP.
    pub fn needs_tcp_alone(&self, what: &'static str) -> Result<(), TcpOnly> {
        match self.transport {
            Transport::Tcp => Ok(()),
            Transport::Udp => Err(TcpOnly(what)),
        }
    }

    /// Whether no flow leaves out messages: the programs that send them for an emulation or a measurement do not.
    ///
    /// # Errors
    /// One does.
    pub fn sends_all_messages(&self) -> Result<(), NoLifetime> {
        let leaves_out = self.flows.iter().position(|flow: &FlowSpec| flow.lifetime().is_some());
        leaves_out.map_or(Ok(()), |flow| Err(NoLifetime(flow)))
    }
}

/// Streams over UDP, where TCP alone is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} knows TCP alone; streams over UDP are simulated and emulated: `farpath simulate`, `farpath emulate`"
)]
pub struct TcpOnly(&'static str);

/// A flow that leaves out messages, where programs send each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("flow {0}: `lifetime`: leaving out messages that are too old is simulated alone: `farpath simulate`")]
pub struct NoLifetime(usize);

/// A congestion controller that a kernel lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{key}: expected a congestion controller of {kernel}, found `{asked}`; `linux.congestion_control` of that end \
     names another for its kernel"
)]
pub struct NoControl {
    /// What asks for it.
    pub key: String,
    /// What it asks for.
    pub asked: String,
    /// The kernel, and where it is known what it has.
    pub kernel: String,
}

/// More packets than a machine shall hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the path could come to hold {needed} of packets; emulate.memory: expected at least that, found {memory}: allow \
     more, or lower the rate, the delay or the window"
)]
pub struct OverMemory {
    /// At the most.
    pub needed: Bytes,
    /// Allowed.
    pub memory: Bytes,
}
