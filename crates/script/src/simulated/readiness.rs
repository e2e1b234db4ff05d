//! What `poll()` and `epoll_wait()` tell of sockets.

use super::{Descriptor, Simulated, Socket};
use farpath_tcp::{Endpoint, State};
use std::collections::BTreeMap;

const IN: i64 = 0x001;
const OUT: i64 = 0x004;
const ERR: i64 = 0x008;
const HUP: i64 = 0x010;
const READ_HUP: i64 = 0x2000;
/// EPOLLET.
const EDGE: i64 = 1 << 31;

/// A descriptor of `epoll_create()`.
#[derive(Debug, Default)]
pub struct Epoll {
    /// By descriptor.
    pub watched: BTreeMap<i64, Watched>,
}

/// What is watched of a descriptor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watched {
    /// Events that are asked for.
    pub asked: i64,
    /// Events that were told, where edges are.
    told: i64,
    /// Bytes that had come then: more of them are an edge.
    received: u64,
}

impl Watched {
    /// Nothing was told yet.
    pub fn new(asked: i64) -> Watched {
        Watched { asked, ..Watched::default() }
    }
}

impl Socket {
    /// `tcp_poll()`, of what is modelled.
    pub fn readiness(&self, not_sent: u64) -> i64 {
        let connection = &self.connection;
        let mut ready = 0;
        let ended = connection.receiver().finished() || self.shut_read;
        if connection.readable() > 0 || ended {
            ready |= IN;
        }
        if ended {
            ready |= READ_HUP;
        }
        if connection.closed().is_some() && connection.state() == State::Closed || ended && self.shut_write {
            ready |= HUP | IN;
        }
        if self.error.is_some() {
            ready |= ERR | IN | OUT;
        }
        if connection.established_at().is_some() && self.has_room(not_sent) {
            ready |= OUT;
        }
        ready
    }

    /// `sk_stream_is_writeable()`: a third of the buffer is free.
    pub fn has_room(&self, not_sent: u64) -> bool {
        if let Some(memory) = &self.memory {
            return self.shut_write || memory.is_writeable(self.most_not_sent(not_sent));
        }
        let buffered = self.connection.sender().unacknowledged();
        self.shut_write || self.connection.sender().buffer().is_none_or(|buffer| 3 * buffered <= 2 * buffer)
    }
}

impl Simulated {
    /// What a descriptor is ready for.
    pub fn ready(&self, descriptor: i64) -> Option<i64> {
        Some(match self.descriptors.get(&descriptor)? {
            Descriptor::Connection(index) => self.sockets[*index].readiness(self.not_sent),
            Descriptor::Listening { ready, .. } => {
                if ready.is_empty() {
                    0
                } else {
                    IN
                }
            }
            Descriptor::Fresh(_) => OUT | HUP,
            Descriptor::Epoll(_) | Descriptor::File | Descriptor::Pipe => 0,
        })
    }

    /// The events of a descriptor of `epoll_create()`: descriptor and events.
    pub fn epoll_events(&mut self, descriptor: i64, most: usize) -> Vec<(i64, i64)> {
        let Some(Descriptor::Epoll(epoll)) = self.descriptors.get(&descriptor) else { return Vec::new() };
        let found: Vec<_> = epoll
            .watched
            .iter()
            .map(|(&number, &watched)| {
                let ready = self.ready(number).unwrap_or(0) & (watched.asked | ERR | HUP);
                let received = match self.descriptors.get(&number) {
                    Some(Descriptor::Connection(index)) => self.sockets[*index].connection.receiver().next(),
                    _ => 0,
                };
                (number, ready, received, watched)
            })
            .collect();
        let mut events = Vec::new();
        if let Some(Descriptor::Epoll(epoll)) = self.descriptors.get_mut(&descriptor) {
            for (number, ready, received, mut watched) in found {
                if received > watched.received {
                    watched.told &= !IN;
                }
                let edges = watched.asked & EDGE != 0;
                let news = if edges { ready & !watched.told } else { ready };
                let tells = news != 0 && events.len() < most;
                if tells {
                    events.push((number, ready));
                    watched.received = received;
                }
                watched.told = if tells { ready } else { watched.told & ready };
                epoll.watched.insert(number, watched);
            }
        }
        events
    }
}
