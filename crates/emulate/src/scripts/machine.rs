//! A kernel as what a script is played against: its sockets, and a TUN device for the packets.

use super::wire::{LOCAL, PORT, REMOTE, Wire};
use crate::EmulateError;
use farpath_emu::{Backend, Host, HostSettings, RouteMetrics, has_control, set_sysctl};
use farpath_script::syntax::{Call, Expression, IcmpSpec, Script};
use farpath_script::{
    Begun, Comparison, Machine, Network, Packet, Refusal, Returned, Sent, Setting, Value, Verdict,
    error_name, play, queue_message, wheel_lateness,
};
use farpath_traffic::{info, options};
use farpath_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create, sendfile};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use rustix::time::{ClockId, clock_getres};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Most bytes of one call.
const MAX_BYTES: i64 = 1 << 26;
const O_RDWR: i64 = 2;
const O_NONBLOCK: i64 = 0o4000;
const MSG_DONTWAIT: i32 = 0x40;
const MSG_ERRQUEUE: i32 = 0x2000;
/// What of packetdrill's `defaults.sh` shows on the wire.
const DEFAULTS: [(&str, &str); 3] = [
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_ecn", "0"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
];

/// Plays a script in a network namespace of its own.
pub(super) fn play_in_namespace(script: &Script, comparison: &Comparison) -> Result<Verdict, EmulateError> {
    let host = Host::new(&HostSettings {
        address: LOCAL,
        peer: REMOTE,
        mtu: u32::from(script.network().mtu),
        backend: Backend::Tun,
        offload: false,
        ..HostSettings::near()
    })?;
    let play_it = || KernelMachine::new(&host).map(|mut machine| play(script, &mut machine, comparison));
    host.namespace().run(play_it)?.map_err(EmulateError::WorkerFiles)
}

/// It is used within the namespace of its host.
pub(super) struct KernelMachine<'a> {
    host: &'a Host,
    wire: Wire,
    /// Whether anything was done to the kernel since its packets were looked for. Each look is a system call, and a guest's are slow.
    stirred: bool,
    sockets: BTreeMap<i64, (Arc<Socket>, bool)>,
    /// Files that are sent, and ends of pipes.
    files: BTreeMap<i64, OwnedFd>,
    /// Congestion control of new sockets, where the namespace may not have it as its default.
    congestion_control: Option<String>,
    /// Between two ticks of the kernel.
    tick: Duration,
    /// Descriptors of `epoll_create()`.
    pub(super) epolls: BTreeMap<i64, Arc<OwnedFd>>,
    calls: u64,
    done: Sender<(u64, Instant, Returned)>,
    ended: Receiver<(u64, Instant, Returned)>,
    waiting: VecDeque<(u64, Instant, Returned)>,
    /// Calls that wait for a connection: where, and the descriptor that it gets.
    accepting: BTreeMap<u64, (Arc<Socket>, i64)>,
    /// A byte for each call that has ended.
    wake: (UnixStream, UnixStream),
}

/// What an error of the system is called.
pub(super) fn failed(error: &io::Error) -> Returned {
    match error.raw_os_error().and_then(error_name) {
        Some(name) => Returned::error(name),
        None => Returned::error(&error.to_string()),
    }
}

fn duration(time: Timespec) -> Duration {
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn returned(result: io::Result<usize>) -> Returned {
    result.map_or_else(|error| failed(&error), |value| Returned::value(value as i64))
}

fn done(result: io::Result<()>) -> Returned {
    returned(result.map(|()| 0))
}

/// A call that may block.
enum Blocking {
    Accept,
    Connect(SocketAddr),
    Read(usize, i32),
    /// The same with what is left behind it (`TCP_INQ`).
    ReadMessage(usize, i32),
    Write(usize, i32),
}

impl Blocking {
    fn make(&self, socket: &Socket) -> (Returned, Option<Socket>) {
        match self {
            Blocking::Accept => match socket.accept() {
                Ok((accepted, _)) => (Returned::value(0), Some(accepted)),
                Err(error) => (failed(&error), None),
            },
            Blocking::Connect(to) => (done(socket.connect(&SockAddr::from(*to))), None),
            Blocking::Read(most, flags) => {
                let mut buffer = vec![std::mem::MaybeUninit::uninit(); *most];
                (returned(socket.recv_with_flags(&mut buffer, *flags)), None)
            }
            Blocking::ReadMessage(most, flags) => {
                let mut buffer = vec![0; *most];
                let given = match options::receive_with_queue(socket.as_fd(), &mut buffer, *flags) {
                    Ok((len, None)) => Returned::value(len as i64),
                    Ok((len, Some(left))) => Returned::value(len as i64).with(1, queue_message(left.into())),
                    Err(error) => failed(&error),
                };
                (given, None)
            }
            Blocking::Write(len, flags) => (returned(socket.send_with_flags(&vec![0; *len], *flags)), None),
        }
    }
}

impl<'a> KernelMachine<'a> {
    fn new(host: &'a Host) -> io::Result<KernelMachine<'a>> {
        let (done, ended) = channel();
        let wake = UnixStream::pair()?;
        wake.0.set_nonblocking(true)?;
        Ok(KernelMachine {
            host,
            wire: Wire::new(host.port()),
            stirred: true,
            sockets: BTreeMap::new(),
            files: BTreeMap::new(),
            congestion_control: None,
            // The coarse clock is as fine as that.
            tick: duration(clock_getres(ClockId::MonotonicCoarse)),
            epolls: BTreeMap::new(),
            calls: 0,
            done,
            ended,
            waiting: VecDeque::new(),
            accepting: BTreeMap::new(),
            wake,
        })
    }

    /// Takes what the kernel has sent, and calls that have ended.
    fn drain(&mut self) {
        self.stirred = false;
        self.wire.drain(|_| ());
        self.waiting.extend(self.ended.try_iter());
    }

    pub(super) fn socket(&self, descriptor: i64) -> Result<&(Arc<Socket>, bool), Returned> {
        self.sockets.get(&descriptor).ok_or_else(|| Returned::error("EBADF"))
    }

    /// Makes a call that may block: here where it does not, else in a thread of its own.
    fn make(&mut self, call: &Call, descriptor: i64, what: Blocking) -> Begun {
        let (socket, nonblocking) = match self.socket(descriptor) {
            Ok((socket, nonblocking)) => (Arc::clone(socket), *nonblocking),
            Err(error) => return Begun::Ended(error),
        };
        let wanted = call.expected.number().unwrap_or(-1);
        if nonblocking || call.until.is_none() {
            let what = match what {
                Blocking::Read(most, flags) => Blocking::Read(most, flags | MSG_DONTWAIT),
                Blocking::ReadMessage(most, flags) => Blocking::ReadMessage(most, flags | MSG_DONTWAIT),
                Blocking::Write(len, flags) => Blocking::Write(len, flags | MSG_DONTWAIT),
                other => other,
            };
            // One that would block for ever is none of a script without a time for its end.
            let _ = socket.set_nonblocking(true);
            let (returned, accepted) = what.make(&socket);
            let _ = socket.set_nonblocking(nonblocking);
            return Begun::Ended(self.keep(returned, accepted, wanted));
        }
        let accepts = matches!(what, Blocking::Accept);
        if accepts {
            // The connection is taken when it is there: its descriptor is the script's.
            self.accepting.insert(self.calls + 1, (Arc::clone(&socket), wanted));
        }
        self.in_thread(move || {
            if accepts {
                let mut fds = [PollFd::new(&*socket, PollFlags::IN)];
                let _ = poll(&mut fds, None);
                Returned::value(wanted)
            } else {
                what.make(&socket).0
            }
        })
    }

    /// Makes a call that waits so long at the most: here where the script gives it no time, else in a thread of its own.
    pub(super) fn run(
        &mut self,
        call: &Call,
        wait: Option<Timespec>,
        make: impl FnOnce(Option<Timespec>) -> Returned + Send + 'static,
    ) -> Begun {
        match call.until {
            None => Begun::Ended(make(Some(Timespec { tv_sec: 0, tv_nsec: 0 }))),
            Some(_) => self.in_thread(move || make(wait)),
        }
    }

    fn in_thread(&mut self, make: impl FnOnce() -> Returned + Send + 'static) -> Begun {
        self.calls += 1;
        let (number, done, clock) = (self.calls, self.done.clone(), self.wire.clock);
        let Ok(mut wake) = self.wake.1.try_clone() else { return Begun::Ended(Returned::error("EMFILE")) };
        thread::spawn(move || {
            let returned = make();
            // Nobody may listen any more.
            let _ = done.send((number, clock.now(), returned));
            let _ = wake.write_all(&[0]);
        });
        // It runs until it waits.
        for _ in 0..20 {
            thread::yield_now();
        }
        Begun::Blocks(number)
    }

    fn keep(&mut self, returned: Returned, accepted: Option<Socket>, wanted: i64) -> Returned {
        match accepted {
            Some(socket) => {
                self.sockets.insert(wanted, (Arc::new(socket), false));
                Returned::value(wanted)
            }
            None => returned,
        }
    }

    fn system_call(&mut self, call: &Call) -> Result<Begun, Refusal> {
        let number = |place: usize| call.arguments.get(place).and_then(Expression::number);
        let argument = |place: usize| {
            number(place).ok_or_else(|| {
                Refusal::new(format!("a number as argument {} of `{}()`", place + 1, call.name), "none")
            })
        };
        let flags = |place: usize| number(place).unwrap_or(0) as i32;
        let ended = |returned| Ok(Begun::Ended(returned));
        match call.name.as_str() {
            "socket" => {
                let wanted = call.expected.number().unwrap_or(-1);
                let domain = if self.wire.network.ipv6 { Domain::IPV6 } else { Domain::IPV4 };
                match Socket::new(domain, Type::STREAM, Some(Protocol::TCP)) {
                    Ok(socket) => {
                        if let Some(name) = &self.congestion_control
                            && let Err(error) = socket.set_tcp_congestion(name.as_bytes())
                        {
                            return Err(Refusal::new(
                                "a congestion control of this kernel",
                                format!("`{name}`: {error}"),
                            ));
                        }
                        let nonblocking = flags(1) & O_NONBLOCK as i32 != 0;
                        let _ = socket.set_nonblocking(nonblocking);
                        self.sockets.insert(wanted, (Arc::new(socket), nonblocking));
                        ended(Returned::value(wanted))
                    }
                    Err(error) => ended(failed(&error)),
                }
            }
            "bind" => ended(match self.socket(argument(0)?) {
                Ok((socket, _)) => {
                    let any: IpAddr = match self.wire.network.ipv6 {
                        true => Ipv6Addr::UNSPECIFIED.into(),
                        false => Ipv4Addr::UNSPECIFIED.into(),
                    };
                    done(socket.bind(&SockAddr::from(SocketAddr::new(any, PORT))))
                }
                Err(error) => error,
            }),
            "listen" => ended(match self.socket(argument(0)?) {
                Ok((socket, _)) => done(socket.listen(flags(1))),
                Err(error) => error,
            }),
            "accept" | "accept4" => Ok(self.make(call, argument(0)?, Blocking::Accept)),
            "connect" => {
                let to = SocketAddr::new(self.wire.addresses().1, PORT);
                Ok(self.make(call, argument(0)?, Blocking::Connect(to)))
            }
            "read" | "recv" | "recvmsg" | "readv" => {
                let flags = match call.name.as_str() {
                    "recv" => flags(3),
                    "recvmsg" => flags(2),
                    _ => 0,
                };
                if flags & MSG_ERRQUEUE != 0 {
                    return Err(Refusal::new("a call that reads the stream", "MSG_ERRQUEUE"));
                }
                let bytes = bytes_of(call)?;
                let what = match call.name.as_str() {
                    "recvmsg" => Blocking::ReadMessage(bytes, flags),
                    _ => Blocking::Read(bytes, flags),
                };
                Ok(self.make(call, argument(0)?, what))
            }
            "open" => {
                // Zeros, as all that is sent; no file of this machine is opened.
                let made = memfd_create("zeros", MemfdFlags::CLOEXEC)
                    .and_then(|file| ftruncate(&file, MAX_BYTES as u64).map(|()| file));
                ended(self.keep_file(call.expected.number().unwrap_or(-1), made))
            }
            "pipe" | "pipe2" => {
                let Some(Expression::List(ends)) = call.arguments.first() else {
                    return ended(Returned::error("EFAULT"));
                };
                let numbers: Vec<i64> = ends.iter().filter_map(Expression::number).collect();
                let &[read, write] = &numbers[..] else { return ended(Returned::error("EFAULT")) };
                let (from, to) = match pipe_with(PipeFlags::CLOEXEC) {
                    Ok(ends) => ends,
                    Err(error) => return ended(failed(&error.into())),
                };
                self.files.extend([(read, from), (write, to)]);
                ended(Returned::value(0))
            }
            "splice" => {
                let (from, to, bytes) = (argument(0)?, argument(2)?, bytes_of(call)?);
                ended(match (self.socket(from), self.files.get(&to)) {
                    (Ok((socket, _)), Some(pipe)) => returned(
                        splice(socket, None, pipe, None, bytes, SpliceFlags::NONBLOCK).map_err(Into::into),
                    ),
                    _ => Returned::error("EBADF"),
                })
            }
            "sendfile" => {
                let (to, from, bytes) = (argument(0)?, argument(1)?, bytes_of(call)?);
                let mut offset = number(2).and_then(|offset| u64::try_from(offset).ok()).unwrap_or(0);
                ended(match (self.socket(to), self.files.get(&from)) {
                    (Ok((socket, _)), Some(file)) => {
                        returned(sendfile(socket, file, Some(&mut offset), bytes).map_err(Into::into))
                    }
                    _ => Returned::error("EBADF"),
                })
            }
            "write" | "send" | "sendmsg" | "writev" => {
                let flags = match call.name.as_str() {
                    "send" => flags(3),
                    "sendmsg" => flags(2),
                    _ => 0,
                };
                Ok(self.make(call, argument(0)?, Blocking::Write(bytes_of(call)?, flags)))
            }
            "poll" => Ok(self.poll(call)),
            "epoll_create" | "epoll_create1" => Ok(self.epoll_create(call)),
            "epoll_ctl" => Ok(self.epoll_control(call)),
            "epoll_wait" => Ok(self.epoll_wait(call)),
            "ioctl" => self.ioctl(call),
            "close" if self.files.remove(&argument(0)?).is_some() => ended(Returned::value(0)),
            "close" if self.epolls.remove(&argument(0)?).is_some() => ended(Returned::value(0)),
            "close" => ended(match self.sockets.remove(&argument(0)?) {
                Some(_) => Returned::value(0),
                None => Returned::error("EBADF"),
            }),
            "shutdown" => {
                let how = match argument(1)? {
                    0 => Shutdown::Read,
                    1 => Shutdown::Write,
                    _ => Shutdown::Both,
                };
                ended(match self.socket(argument(0)?) {
                    Ok((socket, _)) => done(socket.shutdown(how)),
                    Err(error) => error,
                })
            }
            "fcntl" => {
                let command = argument(1)?;
                let Some((socket, nonblocking)) = self.sockets.get_mut(&argument(0)?) else {
                    return ended(Returned::error("EBADF"));
                };
                match command {
                    3 => ended(Returned::value(O_RDWR | if *nonblocking { O_NONBLOCK } else { 0 })),
                    4 => {
                        *nonblocking = number(2).unwrap_or(0) & O_NONBLOCK != 0;
                        ended(done(socket.set_nonblocking(*nonblocking)))
                    }
                    _ => Err(Refusal::new("F_GETFL or F_SETFL", command.to_string())),
                }
            }
            "setsockopt" => {
                let (level, option) = (argument(1)? as i32, argument(2)? as i32);
                if (level, option) == (1, 37) {
                    return Err(Refusal::new("a socket option without an error queue", "SO_TIMESTAMPING"));
                }
                let (socket, _) = match self.socket(argument(0)?) {
                    Ok(socket) => socket,
                    Err(error) => return ended(error),
                };
                if let Some(Expression::Text(name)) = call.arguments.get(3) {
                    return ended(done(socket.set_tcp_congestion(name.as_bytes())));
                }
                let Some(value) = number(3) else {
                    return Err(Refusal::new("a socket option that is a number", "another value"));
                };
                ended(done(options::set_number(socket.as_fd(), level, option, value as i32)))
            }
            "getsockopt" => {
                let (level, option) = (argument(1)? as i32, argument(2)? as i32);
                ended(match self.socket(argument(0)?) {
                    Ok((socket, _)) => match options::number(socket.as_fd(), level, option) {
                        Ok(value) => {
                            let value = if value < 0
                                && call.arguments.get(3).and_then(Expression::number)
                                    > Some(i64::from(i32::MAX))
                            {
                                i64::from(value as u32)
                            } else {
                                i64::from(value)
                            };
                            Returned::value(0).with(3, Expression::List(vec![Expression::Number(value)]))
                        }
                        Err(error) => failed(&error),
                    },
                    Err(error) => error,
                })
            }
            _ => {
                Err(Refusal::new("a system call that is made on a kernel here", format!("`{}()`", call.name)))
            }
        }
    }
}

impl Machine for KernelMachine<'_> {
    fn begin(&mut self, network: Network) -> Result<(), Refusal> {
        // The host has packetdrill's own.
        self.wire.network = Network { local: None, remote: None, ..network };
        Ok(())
    }

    fn timer_lateness(&self, wait: Duration) -> Duration {
        wheel_lateness(wait, self.tick)
    }

    fn now(&mut self) -> Instant {
        self.wire.clock.now()
    }

    fn advance(&mut self, until: Instant) -> Result<(), Refusal> {
        loop {
            self.drain();
            if self.wire.clock.now() >= until || self.wire.has_sent() || !self.waiting.is_empty() {
                return Ok(());
            }
            self.wire.wait(until, Some(self.wake.0.as_fd()))?;
            // What woke it has been told by then.
            let mut told = [0; 64];
            while matches!(self.wake.0.read(&mut told), Ok(1..)) {}
        }
    }

    fn take_sent(&mut self) -> Option<Sent> {
        if self.stirred && !self.wire.has_sent() {
            self.drain();
        }
        self.wire.take_sent()
    }

    fn take_ended(&mut self) -> Option<(u64, Instant, Returned)> {
        let (number, at, returned) = self.waiting.pop_front()?;
        let returned = match self.accepting.remove(&number) {
            Some((listener, wanted)) => {
                let (returned, accepted) = Blocking::Accept.make(&listener);
                self.keep(returned, accepted, wanted)
            }
            None => returned,
        };
        Some((number, at, returned))
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), Refusal> {
        self.stirred = true;
        self.wire.inject(packet)
    }

    fn inject_icmp(&mut self, ports: (u16, u16), message: &IcmpSpec, seq: u32) -> Result<(), Refusal> {
        self.stirred = true;
        self.wire.inject_icmp(ports, message, seq)
    }

    fn call(&mut self, call: &Call) -> Result<Begun, Refusal> {
        self.stirred = true;
        self.system_call(call)
    }

    fn set(&mut self, settings: &[Setting]) -> Result<(), Refusal> {
        self.stirred = true;
        for setting in settings {
            match setting {
                Setting::Nothing | Setting::Segmentation(_) => {}
                Setting::Defaults => {
                    DEFAULTS.iter().try_for_each(|(name, value)| self.set_sysctl(name, value))?;
                }
                Setting::Sysctl(name, value) if name.ends_with("parameters.hystart_detect") => {
                    self.has_parameter(name, value)?;
                }
                Setting::Sysctl(name, value) => self.set_sysctl(name, value)?,
                Setting::Route(attributes) => self.set_route(attributes)?,
                Setting::Qdisc(discipline) => self.set_discipline(discipline.as_ref())?,
            }
        }
        Ok(())
    }

    fn information(&mut self, ports: (u16, u16), name: &str) -> Option<Value> {
        let name = name.strip_prefix("tcpi_")?;
        let port = |address: io::Result<SockAddr>| Some(address.ok()?.as_socket()?.port());
        let local = |socket: &Socket| port(socket.local_addr()) == Some(ports.0);
        let all = || self.sockets.values().map(|(socket, _)| socket);
        let found = all().find(|socket| local(socket) && port(socket.peer_addr()) == Some(ports.1));
        // A connection that is over has no peer any more, and still tells what became of it.
        let over = |socket: &Socket| local(socket) && !socket.is_listener().unwrap_or(true);
        let socket = found.or_else(|| all().find(|socket| over(socket) && socket.peer_addr().is_err()))?;
        info::field(socket.as_fd(), name).ok()?.map(|value| Value::Int(value.into()))
    }

    fn listening_port(&self) -> u16 {
        PORT
    }
}

impl KernelMachine<'_> {
    fn keep_file(&mut self, wanted: i64, made: rustix::io::Result<OwnedFd>) -> Returned {
        match made {
            Ok(file) => {
                self.files.insert(wanted, file);
                Returned::value(wanted)
            }
            Err(error) => failed(&error.into()),
        }
    }

    fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        if name == "net.ipv4.tcp_congestion_control" {
            return self.set_congestion_control(value);
        }
        set_sysctl(name, value)
            .map_err(|error| Refusal::new("a sysctl of this kernel", format!("`{name}={value}`: {error}")))
    }

    /// The congestion control of what the namespace makes: its default, else that of each socket. A namespace's default may be one
    /// that everybody may have alone; who may administer the network may give a socket any (`tcp_set_congestion_control()`).
    fn set_congestion_control(&mut self, name: &str) -> Result<(), Refusal> {
        match set_sysctl("net.ipv4.tcp_congestion_control", name) {
            Ok(()) => self.congestion_control = None,
            Err(_) if has_control(name) => self.congestion_control = Some(name.to_owned()),
            Err(error) => {
                return Err(Refusal::new(
                    "a congestion control of this kernel",
                    format!("`{name}`: {error}"),
                ));
            }
        }
        Ok(())
    }

    /// A parameter of a module is the whole machine's: it is looked at, and never set.
    fn has_parameter(&self, name: &str, value: &str) -> Result<(), Refusal> {
        let path = format!("/{}", name.trim_start_matches('.').replace('.', "/"));
        match fs::read_to_string(&path) {
            Ok(found) if found.trim() == value => Ok(()),
            Ok(found) => Err(Refusal::new(format!("{path} of {value}"), found.trim().to_owned())),
            Err(error) => Err(Refusal::new(format!("{path} of {value}"), error.to_string())),
        }
    }

    fn set_route(&self, attributes: &[(String, String)]) -> Result<(), Refusal> {
        let mut metrics = RouteMetrics::default();
        for (name, value) in attributes {
            match (name.as_str(), value.parse().ok()) {
                ("via" | "dev" | "proto" | "scope" | "src", _) => {}
                ("initcwnd", number @ Some(_)) => metrics.initcwnd = number,
                ("advmss", number @ Some(_)) => metrics.advmss = number,
                ("mtu", number @ Some(_)) => metrics.mtu = number,
                _ => {
                    return Err(Refusal::new(
                        "a route's `initcwnd`, `advmss` or `mtu`",
                        format!("`{name} {value}`"),
                    ));
                }
            }
        }
        let (local, remote) = self.wire.addresses();
        self.host
            .set_route(local, remote, &metrics)
            .map_err(|error| Refusal::new("a route that this kernel takes", error.to_string()))
    }

    fn set_discipline(&self, discipline: Option<&(String, Vec<String>)>) -> Result<(), Refusal> {
        let limit = |options: &[String]| -> Option<u32> {
            let at = options.iter().position(|word| word == "limit")?;
            options.get(at + 1)?.parse().ok()
        };
        let (kind, limit) = match discipline {
            None => ("noqueue", None),
            Some((kind, options)) if kind == "pfifo" && options.len() == 2 => ("pfifo", limit(options)),
            Some((kind, options)) if kind == "fq" && options.is_empty() => ("fq", None),
            Some((kind, options)) => {
                return Err(Refusal::new(
                    "`pfifo limit N` or `fq`",
                    format!("`{kind} {}`", options.join(" ")),
                ));
            }
        };
        self.host.set_queue(kind, limit).map_err(|error| {
            Refusal::new(format!("a queueing discipline `{kind}` of this kernel"), error.to_string())
        })
    }
}

/// Bytes that a call reads or writes.
fn bytes_of(call: &Call) -> Result<usize, Refusal> {
    match farpath_script::bytes_of_call(call) {
        Some(bytes) if (0..=MAX_BYTES).contains(&bytes) => Ok(bytes as usize),
        _ => Err(Refusal::new(format!("the number of bytes of `{}()`", call.name), "another value")),
    }
}
