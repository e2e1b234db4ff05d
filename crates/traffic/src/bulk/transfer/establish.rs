//! How a transfer's connection comes about.

use super::{Stage, Transfer};
use crate::bulk::End;
use crate::token::{TOKEN_WITHIN, Token};
use crate::wait;
use farpath_units::Instant;
use rustix::event::PollFlags;
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Connections to one listener that have yet to show their token; of more, the oldest is closed.
pub const MOST_SILENT: usize = 8;

impl Transfer<'_> {
    pub(super) fn connect(&mut self) -> Result<(), End> {
        while self.now() < self.asked.start {
            self.wait(PollFlags::empty(), Some(self.asked.start))?;
        }
        let connecting = |error| self.failed(Stage::Connecting, error);
        match self.socket.connect(&self.asked.peer.into()) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(connecting(error)),
        }
        loop {
            let found = self.wait(PollFlags::OUT, None)?;
            if let Some(error) = self.socket.take_error()? {
                return Err(self.failed(Stage::Connecting, error));
            }
            if found.contains(PollFlags::OUT) {
                return Ok(());
            }
        }
    }

    /// Takes the connection that shows the token; where none is asked for, the first one from the other end's address.
    /// Those that say nothing wait beside each other, and hold up nobody.
    pub(super) fn accept(&mut self) -> Result<(), End> {
        let mut silent: VecDeque<Silent> = VecDeque::new();
        loop {
            let now = self.look()?;
            let came = match self.socket.accept() {
                Ok((socket, from)) => {
                    if from.as_socket().is_some_and(|from| self.is_peer(from)) {
                        socket.set_nonblocking(true)?;
                        if self.asked.token.is_none() {
                            self.socket = socket;
                            return Ok(());
                        }
                        if silent.len() == MOST_SILENT {
                            silent.pop_front();
                        }
                        silent.push_back(Silent { socket, until: now + TOKEN_WITHIN, said: Vec::new() });
                    }
                    true
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
                // The other end was gone before it was taken (accept(2)): it may come again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
                Err(error) => return Err(error.into()),
            };
            for mut one in std::mem::take(&mut silent) {
                match one.hear() {
                    Some(said) if Some(said) == self.asked.token => {
                        self.socket = one.socket;
                        return Ok(());
                    }
                    None if one.until > now => silent.push_back(one),
                    _ => {}
                }
            }
            if !came {
                let first = silent.iter().map(|one| one.until).min().unwrap_or(Instant::MAX);
                let longest = first.min(self.asked.deadline).saturating_since(now).min(self.stop_every);
                let all = silent.iter().map(|one| one.socket.as_fd());
                wait::readable(all.chain([self.socket.as_fd()]), longest)?;
            }
        }
    }

    fn is_peer(&self, from: SocketAddr) -> bool {
        let peer = self.asked.peer;
        from.ip() == peer.ip() && (peer.port() == 0 || peer.port() == from.port())
    }

    /// Shows the other end whose connection this is.
    pub(super) fn show_token(&mut self) -> Result<(), End> {
        let Some(token) = self.asked.token else { return Ok(()) };
        let mut left = token.as_bytes();
        while !left.is_empty() {
            left = &left[self.send(left)? as usize..];
        }
        Ok(())
    }
}

/// A connection that has yet to show its token.
struct Silent {
    socket: Socket,
    /// Then it is closed; at once where the other end has.
    until: Instant,
    said: Vec<u8>,
}

impl Silent {
    /// Reads what is there, up to a token; gives that when it is whole.
    fn hear(&mut self) -> Option<Token> {
        let mut bytes = [0; Token::LEN];
        let left = Token::LEN - self.said.len();
        match self.socket.read(&mut bytes[..left]) {
            Ok(0) => self.until = Instant::ZERO,
            Ok(more) => self.said.extend_from_slice(&bytes[..more]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.until = Instant::ZERO,
        }
        self.said.as_slice().try_into().ok().map(Token)
    }
}
