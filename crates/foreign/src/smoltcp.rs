//! smoltcp as a host.

use crate::{Answer, Host, HostError, HostSetup};
use farpath_tcp::pattern;
use farpath_units::Instant;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;

/// The largest of its two buffers, which are there from the beginning.
const MOST_BUFFER: u64 = 64 << 20;
/// What its program writes at a time.
const CHUNK: usize = 16 * 1024;
/// smoltcp has a clock of microseconds.
const TICK: u64 = 1000;

/// One end of a connection by smoltcp.
pub struct Smoltcp {
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    setup: HostSetup,
    written: u64,
    read: u64,
    mismatch: Option<u64>,
    connected: bool,
    started: bool,
}

impl Smoltcp {
    /// What it is, with its version, which a test compares with the one that is built in.
    pub const NAME: &str = "smoltcp 0.12.0";

    /// An end of this setup. Of congestion controllers it has `reno` and `cubic`, and none for any other name.
    pub fn new(setup: &HostSetup) -> Smoltcp {
        let mut card = Card { mtu: usize::from(setup.mtu), ..Card::default() };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = setup.seed;
        let mut interface = Interface::new(config, &mut card, smoltcp::time::Instant::ZERO);
        let address = IpCidr::new(IpAddress::Ipv4(*setup.local.ip()), 24);
        interface.update_ip_addrs(|addresses| addresses.push(address).expect("there is room for one"));
        let buffer = |bytes: u64| SocketBuffer::new(vec![0; bytes.clamp(1, MOST_BUFFER) as usize]);
        let mut socket = Socket::new(buffer(setup.receive_buffer.0), buffer(setup.send_buffer.0));
        socket.set_congestion_control(match setup.control {
            "reno" => CongestionControl::Reno,
            "cubic" => CongestionControl::Cubic,
            _ => CongestionControl::None,
        });
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Smoltcp {
            card,
            interface,
            sockets,
            handle,
            setup: setup.clone(),
            written: 0,
            read: 0,
            mismatch: None,
            connected: false,
            started: false,
        }
    }

    fn answer(&mut self, now: Instant) -> Result<Answer, HostError> {
        let ticks = now.as_nanos() / TICK;
        let time = smoltcp::time::Instant::from_micros(i64::try_from(ticks).unwrap_or(i64::MAX));
        loop {
            // What arrived comes first, packet by packet: each may be answered by an ACK of its own.
            while self.interface.poll_ingress_single(time, &mut self.card, &mut self.sockets)
                != PollIngressSingleResult::None
            {
                self.run_program();
            }
            let moved = self.run_program();
            let sent = self.interface.poll_egress(time, &mut self.card, &mut self.sockets);
            if !moved && sent == PollResult::None {
                break;
            }
        }
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        let state = socket.state();
        let failed = match (state, self.mismatch) {
            (_, Some(place)) => Some(format!("byte {place} of the stream is not the one that was sent")),
            (State::Closed, _) if self.started && !self.is_finished() => Some("reset".to_owned()),
            _ => None,
        };
        let closed = self.is_finished() && matches!(state, State::FinWait2 | State::TimeWait | State::Closed);
        let next = self.interface.poll_at(time, &self.sockets);
        let next_due = next.map(|at| {
            // What it had to do at this instant it has done.
            let ticks_then = u64::try_from(at.total_micros()).unwrap_or(0).max(ticks + 1);
            Instant::from_nanos(ticks_then.saturating_mul(TICK))
        });
        Ok(Answer {
            packets: std::mem::take(&mut self.card.sent),
            read: (!self.setup.sends).then_some(self.read),
            connected: self.connected,
            closed,
            failed,
            next_due: next_due.filter(|_| self.started),
        })
    }

    /// Its program has written, or read, all that there is.
    fn is_finished(&self) -> bool {
        match self.setup.sends {
            true => self.written == self.setup.size.0,
            false => self.read == self.setup.size.0,
        }
    }

    /// Reads, writes and closes as far as that goes; whether it did anything.
    fn run_program(&mut self) -> bool {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        let before = (self.written, self.read, socket.state());
        self.connected |= socket.may_send();
        let (read, mismatch) = (&mut self.read, &mut self.mismatch);
        while let Ok(1..) = socket.recv(|unread| {
            if mismatch.is_none() {
                *mismatch = pattern::first_mismatch(*read, unread);
            }
            *read += unread.len() as u64;
            (unread.len(), unread.len())
        }) {}
        if self.setup.sends {
            let size = self.setup.size.0;
            let mut bytes = [0; CHUNK];
            while self.written < size && socket.can_send() {
                let chunk = &mut bytes[..CHUNK.min((size - self.written) as usize)];
                pattern::fill(self.written, chunk);
                match socket.send_slice(chunk) {
                    Ok(taken @ 1..) => self.written += taken as u64,
                    _ => break,
                }
            }
            if self.written == size && self.connected {
                socket.close();
            }
        } else if self.read == self.setup.size.0 && self.connected {
            socket.close();
        }
        before != (self.written, self.read, socket.state())
    }
}

impl Host for Smoltcp {
    fn name(&self) -> &str {
        Smoltcp::NAME
    }

    fn start(&mut self, now: Instant) -> Result<Answer, HostError> {
        self.started = true;
        let refused = |why: String| HostError::Smoltcp(why);
        let (local, remote) = (self.setup.local, self.setup.remote);
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        if self.setup.opens {
            socket
                .connect(
                    self.interface.context(),
                    (IpAddress::Ipv4(*remote.ip()), remote.port()),
                    local.port(),
                )
                .map_err(|error| refused(error.to_string()))?;
        } else {
            socket.listen(local.port()).map_err(|error| refused(error.to_string()))?;
        }
        self.answer(now)
    }

    fn packet(&mut self, now: Instant, packet: &[u8]) -> Result<Answer, HostError> {
        self.card.received.push_back(packet.to_vec());
        self.answer(now)
    }

    fn timer(&mut self, now: Instant) -> Result<Answer, HostError> {
        self.answer(now)
    }
}

/// What smoltcp takes for its network card.
#[derive(Debug, Default)]
pub struct Card {
    /// The longest IP packet, in bytes.
    pub mtu: usize,
    /// Packets that have arrived for it.
    pub received: VecDeque<Vec<u8>>,
    /// Packets that it has sent.
    pub sent: Vec<Vec<u8>>,
}

/// A packet that is taken from a card.
#[derive(Debug)]
pub struct Received(Vec<u8>);

/// Room for a packet on a card.
#[derive(Debug)]
pub struct Sent<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Received, Sent<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Received(packet), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}
