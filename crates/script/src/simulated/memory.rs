//! The send buffer of a socket as Linux counts it, for programs that write in pieces of their own.

use super::Socket;
use farpath_tcp::SendMemory;

impl Socket {
    /// What its memory holds, as far as its connection has come: acknowledged, sent, and what the window lets it grow to.
    pub fn update_memory(&mut self) {
        if let Some(memory) = &mut self.memory {
            let sender = self.connection.sender();
            sender.update_memory(memory);
            sender.merge_all_reported(memory);
        }
    }

    /// The most that may wait to be sent for more to be written.
    pub fn most_not_sent(&self, usual: u64) -> u64 {
        if self.options.not_sent == 0 { usual } else { self.options.not_sent }
    }
}

/// The memory of a send buffer that a program has set, or that begins with the second of `tcp_wmem` and grows to the third.
pub fn send_memory(set: Option<u64>, [_, first, most]: [u64; 3]) -> SendMemory {
    match set {
        Some(limit) => SendMemory::fixed(limit),
        None => SendMemory::growing_from(first, most),
    }
}
