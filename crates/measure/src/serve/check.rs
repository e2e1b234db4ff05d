//! What is asked for, held against what this host does; before anything is made for it.

use crate::limits;
use crate::protocol::{Refused, Transfer, Why};
use farpath_traffic::datagram;
use farpath_units::{Bytes, Messages, Writing};

/// A transfer that may be done, if there is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Of a stream.
    pub messages: Option<Messages>,
    /// Of a file.
    pub writing: Writing,
    /// Requests and answers, one at least.
    pub exchanges: u32,
    /// Of all answers.
    pub size: Bytes,
    /// Both ways.
    pub bytes: Bytes,
}

/// Whether a transfer is one.
pub fn transfer(asked: &Transfer) -> Result<Checked, Refused> {
    let malformed = |message: &str| refused(asked.flow, Why::Malformed, message.to_owned());
    let exchanges = asked.exchanges.max(1);
    if exchanges > 1 {
        if !asked.sends || asked.request == 0 || asked.size == 0 {
            return Err(malformed("exchanges of less than 1 B each way, or that this host would begin"));
        }
        if exchanges > limits::EXCHANGES {
            let message = format!("{exchanges} exchanges; the peer does {} and no more", limits::EXCHANGES);
            return Err(refused(asked.flow, Why::Limit, message));
        }
    }
    let messages = match asked.messages {
        None => None,
        Some(messages) => {
            let messages = messages.messages(asked.size).filter(|_| exchanges == 1);
            Some(messages.ok_or_else(|| malformed("messages that are not what is sent"))?)
        }
    };
    let writing = asked.writing.writing().ok_or_else(|| malformed("pieces or a window of 0 B"))?;
    if !writing.is_plain() && (exchanges > 1 || messages.is_some()) {
        return Err(malformed("pieces or a window, and no file"));
    }
    // What has been read is said by bytes too.
    let updates = writing.updates_for(Bytes(asked.size)).saturating_mul(Writing::UPDATE.0);
    let all = |bytes: u64| bytes.saturating_mul(exchanges.into());
    let bytes = all(asked.size.saturating_add(asked.request).saturating_add(updates));
    Ok(Checked { messages, writing, exchanges, size: Bytes(all(asked.size)), bytes: Bytes(bytes) })
}

/// Whether so many datagrams of that size are done.
pub fn datagrams(flow: u32, count: u32, size: u32) -> Result<(), Refused> {
    let refused = |message: String| Err(refused(flow, Why::Limit, message));
    if count > limits::DATAGRAMS {
        return refused(format!("{count} datagrams; the peer does {} and no more", limits::DATAGRAMS));
    }
    let sizes = datagram::LEAST..=datagram::MOST;
    if !sizes.contains(&(size as usize)) {
        return refused(format!("datagrams of {size} B; expected {} to {} B", sizes.start(), sizes.end()));
    }
    Ok(())
}

/// Why a flow is not done.
pub fn refused(flow: u32, why: Why, message: String) -> Refused {
    Refused { why, message: message.into(), flow: Some(flow) }
}
