//! The names of what can bound a transfer.

use serde::Serialize;

/// What can bound a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundId {
    /// The receive window: buffer, and what of it can be announced.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
    /// The sender's own limit on cwnd.
    CwndClamp,
    /// The application that reads.
    Application,
    /// The window of the programs' own protocol.
    ApplicationWindow,
    /// Pieces in which the sending program writes, and the pauses between them.
    ApplicationWrites,
    /// Packets that the path loses.
    Loss,
    /// Packets that overtake others.
    Reordering,
    /// Times between contacts, in which nothing passes.
    Contacts,
    /// The queue before a link: what does not fit is lost.
    Queue,
    /// Retransmission timers, as far as they are longer or shorter than the path asks for.
    Timers,
    /// Withheld ACKs.
    DelayedAck,
    /// Opening the connection.
    Handshake,
    /// Growing from the initial window to one that fills the path.
    SlowStart,
    /// The links that the ACKs go over.
    AckLink,
    /// The links that the data go over.
    Link,
}

impl BoundId {
    /// As files and flags spell it.
    pub const fn name(self) -> &'static str {
        match self {
            BoundId::ReceiveWindow => "receive-window",
            BoundId::SendBuffer => "send-buffer",
            BoundId::CwndClamp => "cwnd-clamp",
            BoundId::Application => "application",
            BoundId::ApplicationWindow => "application-window",
            BoundId::ApplicationWrites => "application-writes",
            BoundId::Loss => "loss",
            BoundId::Reordering => "reordering",
            BoundId::Contacts => "contacts",
            BoundId::Queue => "queue",
            BoundId::Timers => "timers",
            BoundId::DelayedAck => "delayed-ack",
            BoundId::Handshake => "handshake",
            BoundId::SlowStart => "slow-start",
            BoundId::AckLink => "ack-link",
            BoundId::Link => "link",
        }
    }

    /// Whether flows that share the path feel it together.
    pub(crate) const fn is_of_the_path(self) -> bool {
        match self {
            BoundId::Loss
            | BoundId::Reordering
            | BoundId::Contacts
            | BoundId::Queue
            | BoundId::AckLink
            | BoundId::Link => true,
            BoundId::ReceiveWindow
            | BoundId::SendBuffer
            | BoundId::CwndClamp
            | BoundId::Application
            | BoundId::ApplicationWindow
            | BoundId::ApplicationWrites
            | BoundId::Timers
            | BoundId::DelayedAck
            | BoundId::Handshake
            | BoundId::SlowStart => false,
        }
    }
}
