//! How a transfer's connection comes about.

use super::{Stage, Transfer};
use crate::bulk::End;
use crate::token::{TOKEN_WITHIN, Token};
use crate::wait;
use rustix::event::PollFlags;
use socket2::Socket;
use std::io::{self, Read};
use std::os::fd::AsFd;

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

    pub(super) fn accept(&mut self) -> Result<(), End> {
        let peer = self.asked.peer;
        loop {
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let from = from.as_socket();
                    let known = |from: std::net::SocketAddr| {
                        from.ip() == peer.ip() && (peer.port() == 0 || peer.port() == from.port())
                    };
                    if from.is_some_and(known) {
                        socket.set_nonblocking(true)?;
                        if self.shows_token(&socket)? {
                            self.socket = socket;
                            return Ok(());
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN, None)?;
                }
                // The other end was gone before it was taken (accept(2)): it may come again.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Shows the other end whose connection this is.
    pub(super) fn show_token(&mut self) -> Result<(), End> {
        let Some(token) = self.asked.token else { return Ok(()) };
        let mut left = token.as_bytes();
        while !left.is_empty() {
            self.look()?;
            match self.socket.send_with_flags(left, libc::MSG_NOSIGNAL) {
                Ok(bytes) => left = &left[bytes..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::OUT, None)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(Stage::Established, error)),
            }
        }
        Ok(())
    }

    /// Whether who connected is who was told of. One that is not, or that says nothing, is left to itself.
    fn shows_token(&mut self, mut socket: &Socket) -> Result<bool, End> {
        let Some(expected) = self.asked.token else { return Ok(true) };
        let until = self.now() + TOKEN_WITHIN;
        let mut bytes = [0; Token::LEN];
        let mut got = 0;
        while got < bytes.len() {
            match socket.read(&mut bytes[got..]) {
                Ok(0) => return Ok(false),
                Ok(more) => got += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = until.saturating_since(self.look()?).min(self.stop_every);
                    if left.is_zero() {
                        return Ok(false);
                    }
                    wait::ready(socket.as_fd(), PollFlags::IN, left)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(false),
            }
        }
        Ok(expected == Token(bytes))
    }
}
