//! A packet as a flow router sees it.

use super::flow::FlowKey;
use super::numbers::Numbers;
use crate::{QosMark, Structure, Structures};

/// What a packet says of the end of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nothing.
    No,
    /// FIN: its sender is done.
    Fin,
    /// RST: it is over both ways.
    Reset,
}

/// A packet that can show QoS Structures: a simulated segment, or the bytes of an IP packet.
pub trait QosPacket {
    /// Whose it is, the same both ways where it shows ports.
    fn flow_key(&self) -> FlowKey;
    /// What its codepoint says.
    fn mark(&self) -> QosMark;
    /// What it carries. What is malformed is not shown, and passes as it came.
    fn structures(&self) -> Option<Structures>;
    /// Writes back what it carries, as many as it had.
    fn set_structures(&mut self, structures: &Structures);
    /// Whether it ends its connection; a packet that is not TCP's does not show that.
    fn ending(&self) -> Ending {
        Ending::No
    }
    /// The sequence number behind it, its SYN and not its payload counted, where it shows one.
    fn next_seq(&self) -> Option<u32> {
        None
    }
    /// What it acknowledges, where it shows that.
    fn acknowledged(&self) -> Option<u32> {
        None
    }
    /// Both of them.
    fn numbers(&self) -> Numbers {
        Numbers { next_seq: self.next_seq(), acknowledged: self.acknowledged() }
    }
    /// Whose request a response that it carries answers.
    fn answered(&self, _response: &Structure) -> FlowKey {
        self.flow_key()
    }
    /// The flow that it was before its requester moved, by the source that this request of it names.
    fn before_move(&self, _request: &Structure) -> Option<FlowKey> {
        None
    }
}
