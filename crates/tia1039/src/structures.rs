//! What one packet carries: a structure, or two in a SYN/ACK.

use crate::{DecodeError, STRUCTURE_LEN, Structure};

/// One structure, or two: a SYN/ACK holds the response to the forward request and the request for the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Structures {
    /// The first.
    pub first: Structure,
    /// The one behind it.
    pub second: Option<Structure>,
}

impl Structures {
    /// One.
    pub const fn one(first: Structure) -> Structures {
        Structures { first, second: None }
    }

    /// Two, in this order.
    pub const fn two(first: Structure, second: Structure) -> Structures {
        Structures { first, second: Some(second) }
    }

    /// How many.
    pub const fn count(&self) -> usize {
        if self.second.is_some() { 2 } else { 1 }
    }

    /// Bytes that they take up, in a payload or as a hop-by-hop header: 16 each.
    pub const fn encoded_len(&self) -> usize {
        STRUCTURE_LEN * self.count()
    }

    /// In the order of the packet.
    pub fn iter(&self) -> impl Iterator<Item = &Structure> {
        core::iter::once(&self.first).chain(&self.second)
    }

    /// In the order of the packet, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Structure> {
        core::iter::once(&mut self.first).chain(&mut self.second)
    }

    /// Writes the payload of an IPv4 packet to the front of `buffer`, and gives how long it is.
    pub fn encode_v4(&self, buffer: &mut [u8; 2 * STRUCTURE_LEN]) -> usize {
        for (structure, bytes) in self.iter().zip(buffer.chunks_exact_mut(STRUCTURE_LEN)) {
            bytes.copy_from_slice(&structure.encode_v4());
        }
        self.encoded_len()
    }

    /// Of the whole payload of an IPv4 packet: a packet with structures carries nothing else, because a data packet that
    /// grew by one would no longer fit the path.
    ///
    /// # Errors
    /// Neither 16 bytes nor 32, or what no structure may say.
    pub fn decode_v4(payload: &[u8]) -> Result<Structures, DecodeError> {
        match payload.as_chunks::<STRUCTURE_LEN>() {
            ([first], []) => Ok(Structures::one(Structure::decode_v4(first)?)),
            ([first, second], []) => Ok(Structures::two(
                Structure::decode_v4(first)?,
                Structure::decode_v4_at(second, STRUCTURE_LEN)?,
            )),
            _ => Err(DecodeError::Length { found: payload.len() }),
        }
    }
}
