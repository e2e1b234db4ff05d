//! System calls of a simulated end.

use super::readiness::{Epoll, Watched};
use super::{Descriptor, LISTENING_PORT, MAX_DESCRIPTORS, Simulated, SocketOptions};
use crate::machine::{Begun, Refusal, Returned};
use crate::syntax::{Call, Expression};
use farpath_tcp::{Connection, Endpoint, State};
use farpath_units::{Duration, Instant};
use std::collections::VecDeque;

/// The first port of connections that are opened here.
const FIRST_LOCAL_PORT: u16 = 50_000;
/// Most bytes of one call.
const MAX_BYTES: i64 = 1 << 30;

const MSG_PEEK: i64 = 0x2;
const MSG_DONTWAIT: i64 = 0x40;
const MSG_EOR: i64 = 0x80;
const MSG_ERRQUEUE: i64 = 0x2000;
const MSG_MORE: i64 = 0x8000;
const MSG_FASTOPEN: i64 = 0x2000_0000;
const O_NONBLOCK: i64 = 0o4000;
const O_RDWR: i64 = 2;

/// What a call waits for.
#[derive(Debug, Clone)]
pub enum Wait {
    Connect(usize),
    Accept(i64),
    Read { socket: usize, most: u64, splices: bool },
    Write { socket: usize, left: u64, whole: u64 },
    Poll { call: Box<Call>, until: Option<Instant> },
}

/// A call that blocks.
#[derive(Debug)]
pub struct Waiting {
    number: u64,
    wait: Wait,
    expected: Option<i64>,
}

impl Waiting {
    /// When it ends at the latest.
    pub fn due(&self) -> Option<Instant> {
        match &self.wait {
            Wait::Poll { until, .. } => *until,
            Wait::Connect(_) | Wait::Accept(_) | Wait::Read { .. } | Wait::Write { .. } => None,
        }
    }
}

type Ended = Result<Begun, Refusal>;

/// Of descriptors; a script may expect any number.
const NUMBERS: core::ops::RangeInclusive<i64> = 0..=i32::MAX as i64;

fn value(value: i64) -> Ended {
    Ok(Begun::Ended(Returned::value(value)))
}

fn error(name: &str) -> Ended {
    Ok(Begun::Ended(Returned::error(name)))
}

impl Simulated {
    /// Ends calls that have what they wait for. Whether any did.
    pub fn end_calls(&mut self) -> bool {
        let mut any = false;
        for waiting in core::mem::take(&mut self.waiting) {
            let Waiting { number, wait, expected } = waiting;
            match self.attempt(wait, expected) {
                Ok(returned) => {
                    any = true;
                    self.ended.push_back((number, self.now, returned));
                }
                Err(wait) => {
                    if let Wait::Write { socket, .. } = wait {
                        self.waiting_for_room.insert(socket);
                    }
                    self.waiting.push(Waiting { number, wait, expected });
                }
            }
        }
        any
    }

    /// Tries what a call waits for.
    fn attempt(&mut self, wait: Wait, expected: Option<i64>) -> Result<Returned, Wait> {
        match wait {
            Wait::Connect(index) => match self.take_error(index) {
                Some(name) => Ok(Returned::error(name)),
                None if self.sockets[index].connection.established_at().is_some() => Ok(Returned::value(0)),
                None => Err(wait),
            },
            Wait::Accept(listener) => self.accept(listener, expected).ok_or(wait),
            Wait::Read { socket, most, splices } => self.read(socket, most, splices).ok_or(wait),
            Wait::Write { socket, left, whole } => match self.take_error(socket) {
                Some(name) if left == whole => Ok(Returned::error(name)),
                Some(_) => Ok(Returned::value((whole - left) as i64)),
                None => {
                    // Who has found no room is woken when there is enough.
                    let waits = self.waiting_for_room.contains(&socket);
                    if waits && !self.sockets[socket].has_room(self.not_sent) {
                        return Err(Wait::Write { socket, left, whole });
                    }
                    self.waiting_for_room.remove(&socket);
                    let taken = self.write_some(socket, left);
                    match left - taken {
                        0 => Ok(Returned::value(whole as i64)),
                        left if taken > 0 => {
                            // What was taken may leave at once, and make room.
                            self.send_from(socket);
                            self.attempt(Wait::Write { socket, left, whole }, expected)
                        }
                        left => Err(Wait::Write { socket, left, whole }),
                    }
                }
            },
            Wait::Poll { call, until } => {
                let returned = self.poll(&call);
                if returned.value > 0 || until.is_some_and(|until| until <= self.now) {
                    return Ok(returned);
                }
                Err(Wait::Poll { call, until })
            }
        }
    }

    /// Writes what there is room for.
    fn write_some(&mut self, index: usize, left: u64) -> u64 {
        let usual = self.not_sent;
        let socket = &mut self.sockets[index];
        let not_sent = socket.most_not_sent(usual);
        socket.update_memory();
        let Some(memory) = &mut socket.memory else { return socket.connection.write(left) };
        let sender = socket.connection.sender();
        let pushes = sender.pushes_while_written(self.now);
        let room = memory.fill(left, sender.stream_buffer(), not_sent, pushes.as_ref());
        let taken = socket.connection.write(room);
        if taken == 0 {
            socket.connection.note_no_room();
        }
        taken
    }

    fn wait(&mut self, wait: Wait, expected: Option<i64>, nonblocking: bool) -> Ended {
        match self.attempt(wait, expected) {
            Ok(returned) => Ok(Begun::Ended(returned)),
            Err(Wait::Write { left, whole, .. }) if nonblocking && left < whole => {
                value((whole - left) as i64)
            }
            Err(Wait::Connect(_)) if nonblocking => error("EINPROGRESS"),
            Err(_) if nonblocking => error("EAGAIN"),
            Err(wait) => {
                self.calls += 1;
                if let Wait::Write { socket, .. } = wait {
                    self.waiting_for_room.insert(socket);
                }
                self.waiting.push(Waiting { number: self.calls, wait, expected });
                Ok(Begun::Blocks(self.calls))
            }
        }
    }

    fn take_error(&mut self, index: usize) -> Option<&'static str> {
        let socket = &mut self.sockets[index];
        let error = socket.error.take();
        socket.error_told |= error.is_some();
        error
    }

    /// The descriptor that the script expects, where there can be one of its number; else the next one.
    fn number_of(&self, expected: Option<i64>) -> i64 {
        let next = self.descriptors.keys().next_back().map_or(3, |last| last + 1);
        expected.filter(|number| NUMBERS.contains(number)).unwrap_or(next)
    }

    fn new_descriptor(&mut self, call: &Call, descriptor: Descriptor) -> Ended {
        let number = self.number_of(call.expected.number());
        self.keep([(number, descriptor)], number)
    }

    /// Keeps what a call has made, and has it give `gives`.
    fn keep<const N: usize>(&mut self, made: [(i64, Descriptor); N], gives: i64) -> Ended {
        if self.descriptors.len() + N > MAX_DESCRIPTORS {
            return error("EMFILE");
        }
        self.descriptors.extend(made);
        value(gives)
    }

    fn accept(&mut self, listener: i64, expected: Option<i64>) -> Option<Returned> {
        let Some(Descriptor::Listening { ready, .. }) = self.descriptors.get_mut(&listener) else {
            return Some(Returned::error("EINVAL"));
        };
        let index = ready.pop_front()?;
        let number = self.number_of(expected);
        self.descriptors.insert(number, Descriptor::Connection(index));
        self.sockets[index].descriptor = Some(number);
        self.sockets[index].listener = None;
        Some(Returned::value(number))
    }

    /// Reads up to the urgent byte; that is passed over where it comes next (`tcp_recvmsg()` without `SO_OOBINLINE`), and ends a
    /// `splice()` (`tcp_read_sock()`).
    fn read(&mut self, index: usize, most: u64, splices: bool) -> Option<Returned> {
        let socket = &mut self.sockets[index];
        if socket.urgent == Some(socket.read) && socket.connection.readable() > 0 {
            if splices {
                return Some(Returned::value(0));
            }
            socket.read += socket.connection.read(1);
            socket.urgent = None;
        }
        let before_urgent = socket.urgent.map_or(u64::MAX, |place| place.saturating_sub(socket.read));
        let taken = socket.connection.read(most.min(before_urgent));
        socket.read += taken;
        if taken > 0 || most == 0 {
            return Some(Returned::value(taken as i64));
        }
        if let Some(name) = self.take_error(index) {
            return Some(Returned::error(name));
        }
        let socket = &self.sockets[index];
        let over = socket.connection.receiver().finished()
            || socket.shut_read
            || socket.connection.state() == State::Closed;
        over.then(|| Returned::value(0))
    }

    /// The connection of a descriptor.
    fn connected(&self, descriptor: i64) -> Result<usize, &'static str> {
        match self.descriptors.get(&descriptor) {
            None => Err("EBADF"),
            Some(Descriptor::Connection(index)) => Ok(*index),
            Some(
                Descriptor::Fresh(_)
                | Descriptor::Listening { .. }
                | Descriptor::Epoll(_)
                | Descriptor::File
                | Descriptor::Pipe,
            ) => Err("ENOTCONN"),
        }
    }

    fn socket_options(&mut self, descriptor: i64) -> Option<&mut SocketOptions> {
        match self.descriptors.get_mut(&descriptor)? {
            Descriptor::Fresh(options) | Descriptor::Listening { options, .. } => Some(options),
            Descriptor::Connection(index) => Some(&mut self.sockets[*index].options),
            Descriptor::Epoll(_) | Descriptor::File | Descriptor::Pipe => None,
        }
    }

    pub(super) fn system_call(&mut self, call: &Call) -> Ended {
        let number = |place: usize| call.arguments.get(place).and_then(Expression::number);
        let argument = |place: usize| {
            number(place).ok_or_else(|| {
                Refusal::new(format!("a number as argument {} of `{}()`", place + 1, call.name), "none")
            })
        };
        let expected = call.expected.number();
        match call.name.as_str() {
            "socket" => {
                let kind = number(1).unwrap_or(0);
                if kind & 0xf != 1 {
                    return Err(Refusal::new("a socket of SOCK_STREAM", "another"));
                }
                let options =
                    SocketOptions { nonblocking: kind & O_NONBLOCK != 0, ..SocketOptions::default() };
                self.new_descriptor(call, Descriptor::Fresh(options))
            }
            // Its contents are what the packets show: zeros.
            "open" => self.new_descriptor(call, Descriptor::File),
            "bind" => value(0),
            "listen" => {
                let descriptor = argument(0)?;
                let options = match self.descriptors.get(&descriptor) {
                    Some(Descriptor::Fresh(options)) => options.clone(),
                    Some(Descriptor::Listening { .. }) => return value(0),
                    Some(_) => return error("EINVAL"),
                    None => return error("EBADF"),
                };
                self.descriptors
                    .insert(descriptor, Descriptor::Listening { options, ready: VecDeque::new() });
                value(0)
            }
            "accept" | "accept4" => {
                let descriptor = argument(0)?;
                let nonblocking = self.socket_options(descriptor).is_some_and(|options| options.nonblocking);
                self.wait(Wait::Accept(descriptor), expected, nonblocking)
            }
            "connect" => self.connect(argument(0)?),
            "pipe" | "pipe2" => {
                let Some(Expression::List(ends)) = call.arguments.first() else { return error("EFAULT") };
                let numbers = ends.iter().filter_map(Expression::number);
                let numbers: Vec<i64> = numbers.filter(|number| NUMBERS.contains(number)).collect();
                let &[read, write] = &numbers[..] else { return error("EFAULT") };
                self.keep([(read, Descriptor::Pipe), (write, Descriptor::Pipe)], 0)
            }
            "splice" if matches!(self.descriptors.get(&argument(0)?), Some(Descriptor::Pipe)) => {
                Err(Refusal::new("`splice()` from a socket", "from a pipe"))
            }
            "read" | "recv" | "recvfrom" | "readv" | "recvmsg" | "splice" => self.receive(call, argument(0)?),
            "write" | "send" | "sendto" | "writev" | "sendmsg" | "sendfile" => {
                self.transmit(call, argument(0)?)
            }
            "close" => self.close(argument(0)?),
            "shutdown" => self.shutdown(argument(0)?, argument(1)?),
            "fcntl" => self.fcntl(argument(0)?, argument(1)?, number(2)),
            "ioctl" => self.ioctl(argument(0)?, argument(1)?),
            "setsockopt" => self.set_option(call, argument(0)?, argument(1)?, argument(2)?),
            "getsockopt" => self.get_option(argument(0)?, argument(1)?, argument(2)?),
            "poll" => {
                let timeout = number(2).unwrap_or(-1);
                let until = u64::try_from(timeout).ok().map(|ms| self.now + Duration::from_millis(ms));
                self.wait(Wait::Poll { call: Box::new(call.clone()), until }, None, false)
            }
            "epoll_create" | "epoll_create1" => {
                self.new_descriptor(call, Descriptor::Epoll(Epoll::default()))
            }
            "epoll_ctl" => {
                let (epoll, operation, descriptor) = (argument(0)?, argument(1)?, argument(2)?);
                let events =
                    call.arguments.get(3).and_then(|event| event.part("events")?.number()).unwrap_or(0);
                let Some(Descriptor::Epoll(epoll)) = self.descriptors.get_mut(&epoll) else {
                    return error("EBADF");
                };
                match operation {
                    2 => epoll.watched.remove(&descriptor),
                    _ => epoll.watched.insert(descriptor, Watched::new(events)),
                };
                value(0)
            }
            "epoll_wait" => {
                let timeout = number(3).unwrap_or(-1);
                let until = u64::try_from(timeout).ok().map(|ms| self.now + Duration::from_millis(ms));
                self.wait(Wait::Poll { call: Box::new(call.clone()), until }, None, false)
            }
            _ => Err(Refusal::new("a system call that a simulated end has", format!("`{}()`", call.name))),
        }
    }

    fn connect(&mut self, descriptor: i64) -> Ended {
        let options = match self.descriptors.get(&descriptor) {
            None => return error("EBADF"),
            Some(Descriptor::Connection(index)) => {
                let index = *index;
                if let Some(name) = self.take_error(index) {
                    return error(name);
                }
                let open = self.sockets[index].connection.established_at().is_some();
                return error(if open { "EISCONN" } else { "EALREADY" });
            }
            Some(
                Descriptor::Listening { .. } | Descriptor::Epoll(_) | Descriptor::File | Descriptor::Pipe,
            ) => {
                return error("EINVAL");
            }
            Some(Descriptor::Fresh(options)) => options.clone(),
        };
        let config = self.config_of(&options)?;
        let nonblocking = options.nonblocking;
        let ports = (FIRST_LOCAL_PORT + self.sockets.len() as u16, LISTENING_PORT);
        let connection = Connection::connect(&config, self.isn());
        let index = self.add_socket(connection, ports, options);
        self.sockets[index].descriptor = Some(descriptor);
        self.descriptors.insert(descriptor, Descriptor::Connection(index));
        self.send_from(index);
        self.wait(Wait::Connect(index), None, nonblocking)
    }

    fn receive(&mut self, call: &Call, descriptor: i64) -> Ended {
        let index = match self.connected(descriptor) {
            Ok(index) => index,
            Err(name) => return error(name),
        };
        let flags = match call.name.as_str() {
            "recvmsg" => call.arguments.get(2).and_then(Expression::number),
            "recv" | "recvfrom" => call.arguments.get(3).and_then(Expression::number),
            _ => None,
        };
        let flags = flags.unwrap_or(0);
        if flags & (MSG_ERRQUEUE | MSG_PEEK) != 0 {
            return Err(Refusal::new("a call that reads the stream", "MSG_ERRQUEUE or MSG_PEEK"));
        }
        let most = bytes_of(call)?;
        let socket = &self.sockets[index];
        let nonblocking = socket.options.nonblocking || flags & MSG_DONTWAIT != 0;
        let begun =
            self.wait(Wait::Read { socket: index, most, splices: call.name == "splice" }, None, nonblocking)?;
        let socket = &self.sockets[index];
        Ok(match begun {
            Begun::Ended(returned)
                if call.name == "recvmsg" && socket.options.report_queue && returned.value >= 0 =>
            {
                // tcp_inq_hint(): the end of the stream counts as a byte.
                let left = socket.connection.readable();
                let left = if left == 0 && socket.connection.receiver().finished() { 1 } else { left };
                Begun::Ended(returned.with(1, queue_message(left as i64)))
            }
            other => other,
        })
    }

    fn transmit(&mut self, call: &Call, descriptor: i64) -> Ended {
        let index = match self.connected(descriptor) {
            Ok(index) => index,
            Err("ENOTCONN") => return error("EPIPE"),
            Err(name) => return error(name),
        };
        let flags = match call.name.as_str() {
            "sendmsg" => call.arguments.get(2).and_then(Expression::number),
            "send" | "sendto" => call.arguments.get(3).and_then(Expression::number),
            _ => None,
        };
        let flags = flags.unwrap_or(0);
        if flags & MSG_FASTOPEN != 0 {
            return Err(Refusal::new("a call without fast open", "MSG_FASTOPEN"));
        }
        if let Some(name) = self.take_error(index) {
            return error(name);
        }
        let bytes = bytes_of(call)?;
        let socket = &mut self.sockets[index];
        if socket.shut_write || socket.connection.state() == State::Closed {
            return error("EPIPE");
        }
        let nonblocking = socket.options.nonblocking || flags & MSG_DONTWAIT != 0;
        socket.connection.begin_write(flags & MSG_MORE != 0);
        let begun = self.wait(Wait::Write { socket: index, left: bytes, whole: bytes }, None, nonblocking)?;
        if flags & MSG_EOR != 0 {
            self.sockets[index].connection.end_record();
        }
        Ok(begun)
    }

    fn close(&mut self, descriptor: i64) -> Ended {
        for other in self.descriptors.values_mut() {
            if let Descriptor::Epoll(epoll) = other {
                epoll.watched.remove(&descriptor);
            }
        }
        match self.descriptors.remove(&descriptor) {
            None => return error("EBADF"),
            Some(Descriptor::Connection(index)) => {
                let now = self.now;
                let socket = &mut self.sockets[index];
                socket.descriptor = None;
                socket.orphan = true;
                // tcp_close(): what nobody will read calls for a reset (RFC 2525 §2.17), as lingering for no time does; an
                // opening ends without a word (RFC 9293 §3.10.4).
                let connection = &mut socket.connection;
                let unread = connection.readable() > 0;
                let opening = connection.state() == State::SynSent;
                if unread || opening || socket.options.linger == Some(0) {
                    connection.abort(now);
                } else {
                    connection.close();
                }
            }
            Some(Descriptor::Listening { ready, .. }) => {
                for index in ready {
                    self.sockets[index].connection.abort(self.now);
                }
            }
            Some(Descriptor::Fresh(_) | Descriptor::Epoll(_) | Descriptor::File | Descriptor::Pipe) => {}
        }
        value(0)
    }

    fn shutdown(&mut self, descriptor: i64, how: i64) -> Ended {
        let index = match self.connected(descriptor) {
            Ok(index) => index,
            Err(name) => return error(name),
        };
        let socket = &mut self.sockets[index];
        if socket.connection.state() == State::Closed {
            return error("ENOTCONN");
        }
        socket.shut_read |= how == 0 || how == 2;
        if how == 1 || how == 2 {
            socket.shut_write = true;
            socket.connection.close();
        }
        value(0)
    }

    fn fcntl(&mut self, descriptor: i64, command: i64, argument: Option<i64>) -> Ended {
        let Some(options) = self.socket_options(descriptor) else { return error("EBADF") };
        match command {
            3 => value(O_RDWR | if options.nonblocking { O_NONBLOCK } else { 0 }),
            4 => {
                options.nonblocking = argument.unwrap_or(0) & O_NONBLOCK != 0;
                value(0)
            }
            _ => Err(Refusal::new("F_GETFL or F_SETFL", command.to_string())),
        }
    }

    fn ioctl(&mut self, descriptor: i64, request: i64) -> Ended {
        let index = match self.connected(descriptor) {
            Ok(index) => index,
            Err(name) => return error(name),
        };
        let connection = &self.sockets[index].connection;
        let sender = connection.sender();
        let told = match request {
            0x541b => connection.readable(),
            0x5411 => sender.unacknowledged(),
            0x894b => sender.unacknowledged() - sender.flight_size().min(sender.unacknowledged()),
            _ => return Err(Refusal::new("SIOCINQ, SIOCOUTQ or SIOCOUTQNSD", format!("{request:#x}"))),
        };
        Ok(Begun::Ended(Returned::value(0).with(2, Expression::List(vec![Expression::Number(told as i64)]))))
    }

    fn set_option(&mut self, call: &Call, descriptor: i64, level: i64, option: i64) -> Ended {
        let given = call.arguments.get(3);
        let number = given.and_then(Expression::number);
        let Some(options) = self.socket_options(descriptor) else { return error("EBADF") };
        let size = u64::try_from(number.unwrap_or(0)).unwrap_or(0).min(1 << 30);
        match (level, option) {
            (6, 1) => options.no_delay = size != 0,
            (6, 2) => {
                if !(88..=32_767).contains(&size) && size != 0 {
                    return error("EINVAL");
                }
                options.max_segment = Some(size).filter(|&size| size > 0);
            }
            (6, 3) => options.cork = size != 0,
            (6, 18) => options.user_timeout = Some(Duration::from_millis(size)).filter(|_| size > 0),
            (6, 36) => options.report_queue = size != 0,
            (6, 13) => match given {
                Some(Expression::Text(name)) => options.congestion = Some(name.clone()),
                _ => return Err(Refusal::new("the name of a congestion control", "another value")),
            },
            (1, 7) => options.send_buffer = Some((2 * size).max(4608)),
            (1, 8) => options.receive_buffer = Some((2 * size).max(2304)),
            (1, 13) => {
                let part = |name: &str| given.and_then(|linger| linger.part(name)?.number()).unwrap_or(0);
                options.linger = (part("onoff") != 0).then(|| part("linger"));
            }
            // What changes nothing of the connection here: addresses, the discovery of the path's MTU.
            (1, 2 | 15 | 18) | (0, 2 | 10 | 11 | 15) => {
                options.others.insert((level, option), number.unwrap_or(0));
            }
            (0, 1) => {
                options.others.insert((level, option), number.unwrap_or(0));
            }
            (6, 25) => options.not_sent = number.unwrap_or(0) as u64 & 0xffff_ffff,
            _ => {
                let name = |place: usize| {
                    call.arguments.get(place).map(crate::player::expression_text).unwrap_or_default()
                };
                let found = format!("`{}, {}`", name(1), name(2));
                return Err(Refusal::new("a socket option that a simulated end has", found));
            }
        }
        if let Some(Descriptor::Connection(index)) = self.descriptors.get(&descriptor) {
            let socket = &mut self.sockets[*index];
            let connection = &mut socket.connection;
            match (level, option) {
                (6, 1) => connection.set_no_delay(size != 0),
                (6, 3) => connection.set_cork(size != 0),
                (6, 18) => connection.set_user_timeout(socket.options.user_timeout),
                (1, 7) => {
                    let size = socket.options.send_buffer.unwrap_or(4608);
                    match &mut socket.memory {
                        Some(memory) => memory.set_limit(size),
                        None => connection.set_send_buffer(size),
                    }
                }
                (6, 2 | 13) | (1, 8) => {
                    return Err(Refusal::new(
                        "an option that is set before the connection is there",
                        "one after it",
                    ));
                }
                _ => {}
            }
        }
        value(0)
    }

    fn get_option(&mut self, descriptor: i64, level: i64, option: i64) -> Ended {
        let index = self.connected(descriptor).ok();
        if (level, option) == (1, 4) {
            let error = index.and_then(|index| self.take_error(index));
            let number = error.and_then(crate::constants::error_number).unwrap_or(0);
            return Ok(told(i64::from(number)));
        }
        let (mss, buffers) = (self.config.mss.0, (self.config.send.buffer, self.config.receive.buffer));
        let memory = index
            .and_then(|index| Some(self.sockets[index].memory.as_ref()?.limit()))
            .map(|limit| limit as i64);
        let in_use = index.map(|index| self.sockets[index].connection.sender().smss());
        let Some(options) = self.socket_options(descriptor) else { return error("EBADF") };
        let number = match (level, option) {
            (6, 1) => i64::from(options.no_delay),
            (6, 2) => in_use.or(options.max_segment).unwrap_or(mss) as i64,
            (6, 3) => i64::from(options.cork),
            (6, 18) => options.user_timeout.map_or(0, |timeout| (timeout.as_nanos() / 1_000_000) as i64),
            (1, 7) if memory.is_some() => memory.unwrap_or(0),
            (1, 7) => options.send_buffer.or(buffers.0.map(|buffer| buffer.0)).unwrap_or(0) as i64,
            (1, 8) => options.receive_buffer.unwrap_or(buffers.1.0) as i64,
            (6, 13) => {
                return Err(Refusal::new("a socket option that is a number", "TCP_CONGESTION"));
            }
            (6, 25) => options.not_sent as i64,
            key => match options.others.get(&key) {
                Some(number) => *number,
                None => {
                    return Err(Refusal::new("a socket option that was set", format!("{level}, {option}")));
                }
            },
        };
        Ok(told(number))
    }

    /// `poll()` or `epoll_wait()`, at once.
    fn poll(&mut self, call: &Call) -> Returned {
        let number = |place: usize| call.arguments.get(place).and_then(Expression::number).unwrap_or(0);
        if call.name == "epoll_wait" {
            let events = self.epoll_events(number(0), usize::try_from(number(2)).unwrap_or(1));
            let Some(&(descriptor, bits)) = events.first() else { return Returned::value(0) };
            let parts = vec![
                (Some("events".to_owned()), Expression::Number(bits)),
                (Some("fd".to_owned()), Expression::Number(descriptor)),
            ];
            return Returned::value(events.len() as i64).with(1, Expression::Structure(parts));
        }
        let mut count = 0;
        let mut outputs = Vec::new();
        if let Some(Expression::List(asked)) = call.arguments.first() {
            for entry in asked {
                let descriptor = entry.part("fd").and_then(Expression::number).unwrap_or(-1);
                let events = entry.part("events").and_then(Expression::number).unwrap_or(0);
                let ready = self.ready(descriptor).map_or(0x20, |ready| ready & (events | 0x18));
                count += i64::from(ready != 0);
                let parts = vec![
                    (Some("fd".to_owned()), Expression::Number(descriptor)),
                    (Some("events".to_owned()), Expression::Number(events)),
                    (Some("revents".to_owned()), Expression::Number(ready)),
                ];
                outputs.push(Expression::Structure(parts));
            }
        }
        Returned::value(count).with(0, Expression::List(outputs))
    }
}

fn told(number: i64) -> Begun {
    Begun::Ended(Returned::value(0).with(3, Expression::List(vec![Expression::Number(number)])))
}

/// Bytes that a call reads or writes.
fn bytes_of(call: &Call) -> Result<u64, Refusal> {
    match bytes_of_call(call) {
        Some(bytes) if (0..=MAX_BYTES).contains(&bytes) => Ok(bytes as u64),
        _ => Err(Refusal::new(format!("the number of bytes of `{}()`", call.name), "another value")),
    }
}

/// What `recvmsg()` tells with `TCP_INQ`: the bytes that are left to read.
pub fn queue_message(left: i64) -> Expression {
    let part = |name: &str, number: i64| (Some(name.to_owned()), Expression::Number(number));
    let control = vec![part("cmsg_level", 6), part("cmsg_type", 36), part("cmsg_data", left)];
    let list = Expression::List(vec![Expression::Structure(control)]);
    Expression::Structure(vec![(Some("msg_control".to_owned()), list)])
}

/// Bytes that a call reads or writes, where its arguments say.
pub fn bytes_of_call(call: &Call) -> Option<i64> {
    let vector = |list: &Expression| match list {
        Expression::List(parts) => parts
            .iter()
            .map(|part| match part {
                Expression::Structure(fields) => fields.get(1).and_then(|(_, len)| len.number()),
                _ => None,
            })
            .sum::<Option<i64>>(),
        _ => None,
    };
    match call.name.as_str() {
        "readv" | "writev" => call.arguments.get(1).and_then(vector),
        "sendmsg" | "recvmsg" => call.arguments.get(1).and_then(|message| vector(message.part("msg_iov")?)),
        "sendfile" => call.arguments.get(3).and_then(Expression::number),
        "splice" => call.arguments.get(4).and_then(Expression::number),
        _ => call.arguments.get(2).and_then(Expression::number),
    }
}
