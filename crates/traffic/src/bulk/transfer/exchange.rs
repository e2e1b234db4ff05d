//! Requests and their answers, one after the other over one connection.

use super::{CHUNK, Exchange, Role, Transfer, verify};
use crate::bulk::End;
use farpath_units::Bytes;

impl Transfer<'_> {
    /// The receiver of the answers asks; the next request goes out when the answer before it has been read whole.
    pub(super) fn exchange(&mut self) -> Result<(), End> {
        let (request, answer) = (self.request(), self.asked.size.0);
        for _ in 0..self.asked.exchanges {
            // Also where no call has to wait.
            self.look()?;
            match self.asked.role {
                Role::Sender => {
                    self.read_request(request)?;
                    self.write_all(answer)?;
                }
                Role::Receiver => {
                    let asked_at = self.now();
                    self.write_all(request)?;
                    self.read_answer(answer)?;
                    self.exchanged.push(Exchange { asked_at, answered_at: self.now() });
                }
            }
        }
        match self.asked.role {
            Role::Sender => self.close_written(),
            Role::Receiver => {
                self.finished_at = Some(self.now());
                // All has been read, whatever becomes of the close.
                let _ = self.socket.shutdown(std::net::Shutdown::Write);
                Ok(())
            }
        }
    }

    fn read_answer(&mut self, size: u64) -> Result<(), End> {
        let mut buffer = vec![0; CHUNK.min(size as usize)];
        let mut read = 0;
        while read < size {
            let room = buffer.len().min((size - read) as usize);
            let bytes = self.read(&mut buffer[..room])?;
            if bytes == 0 {
                let expected = Bytes(size * u64::from(self.asked.exchanges)).0;
                return Err(End::WrongLength { expected, got: self.bytes });
            }
            self.first_byte_at = self.first_byte_at.or_else(|| Some(self.now()));
            verify(read, &buffer[..bytes])?;
            read += bytes as u64;
            self.bytes += bytes as u64;
        }
        Ok(())
    }
}
