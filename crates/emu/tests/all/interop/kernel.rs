//! A connection between our endpoint, the near host, and a socket of the kernel in the far one.

use super::capture::Capture;
use farpath_elements::{Delay, ElementKind, ElementSpec, Listed, PacketCount};
use farpath_emu::{Application, Clock, Emulator, EndpointPort, Host, HostSettings, LoopReport, Settings};
use farpath_path::PerDirection;
use farpath_tcp::{CloseReason, Config, Seq, pattern};
use farpath_testing::{Need, skip};
use farpath_units::{Bytes, Duration};
use socket2::{Domain, SockRef, Socket, Type};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

pub const OUR_PORT: u16 = 40_000;
pub const KERNEL_PORT: u16 = 50_000;

/// A test that meets it has failed: none takes a tenth of it.
const GIVE_UP_AFTER: time::Duration = time::Duration::from_secs(60);

/// Who opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    Ours,
    Kernel,
    /// Both at once (RFC 9293 §3.5, figure 7).
    Both,
}

/// What the program at the kernel's socket does.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    pub write: u64,
    /// It does not read before.
    pub read_after: time::Duration,
    pub close: Close,
    /// `SO_RCVBUF`.
    pub receive_buffer: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Its half, when it has written everything.
    Written,
    /// Its half, when the peer has closed.
    PeerClosed,
    /// With a reset, when it has read so many bytes.
    Reset(u64),
}

impl Default for Program {
    fn default() -> Program {
        Program { write: 0, read_after: time::Duration::ZERO, close: Close::Written, receive_buffer: None }
    }
}

#[derive(Debug, Clone)]
pub struct Setup {
    pub config: Config,
    pub isn: Seq,
    pub application: Application,
    pub opener: Opener,
    pub v6: bool,
    pub path: Vec<ElementSpec>,
    pub settings: Settings,
    /// Of the kernel's namespace.
    pub sysctls: Vec<(&'static str, &'static str)>,
    pub program: Program,
}

impl Default for Setup {
    /// A kernel as it is, our endpoint with all options, a wrap round 2^32 within the first 50 kB, and 2 ms each way.
    fn default() -> Setup {
        let mut config = Config { mss: Bytes(1440), ..Config::default() };
        config.recovery.sack = true;
        config.send.timestamps = true;
        config.send.window_scaling = true;
        config.receive.buffer = Bytes(1_000_000);
        config.rto.min = Duration::from_millis(200);
        Setup {
            config,
            isn: Seq(u32::MAX - 50_000),
            application: Application::default(),
            opener: Opener::Ours,
            v6: false,
            path: vec![delay(2)],
            settings: Settings::default(),
            sysctls: Vec::new(),
            program: Program::default(),
        }
    }
}

/// What became of it.
pub struct Outcome {
    pub ours: EndpointPort,
    pub kernel: KernelEnd,
    pub report: LoopReport,
    /// What the kernel received and sent.
    pub capture: Capture,
    /// The kernel's own counts: `TcpExt.PAWSEstab` ...
    pub counters: BTreeMap<String, u64>,
}

/// What the program at the kernel's socket saw.
#[derive(Debug, Default)]
pub struct KernelEnd {
    pub read: u64,
    /// First place where what it read was not the pattern.
    pub mismatch: Option<u64>,
    /// What connecting, accepting, reading or writing ended with, where that was not the end of the stream.
    pub error: Option<io::ErrorKind>,
}

pub fn delay(ms: u64) -> ElementSpec {
    let delay = PerDirection::both(Duration::from_millis(ms));
    ElementSpec { name: "delay".to_owned(), kind: ElementKind::Delay(Delay { delay }) }
}

/// Drops the packets of these numbers: `forward` those of ours.
pub fn losing(forward: &[u64], reverse: &[u64]) -> ElementSpec {
    let packets = PerDirection { forward: forward.to_vec(), reverse: reverse.to_vec() };
    ElementSpec {
        name: "losses".to_owned(),
        kind: ElementKind::Listed(Listed {
            times: PerDirection::default(),
            packets,
            count: PacketCount::All,
        }),
    }
}

impl Setup {
    /// Runs it to its end; `None`, and loudly, where this machine has no hosts.
    pub fn run(&self) -> Option<Outcome> {
        let sysctls = self.sysctls.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let host = match Host::new(&HostSettings { sysctls, ..HostSettings::far() }) {
            Ok(host) => host,
            Err(error) => {
                skip(Need::Root, format!("our endpoint against a kernel: {error}"));
                return None;
            }
        };
        let pick = |(v4, v6): (std::net::Ipv4Addr, std::net::Ipv6Addr)| -> IpAddr {
            if self.v6 { v6.into() } else { v4.into() }
        };
        let local = SocketAddr::new(pick(HostSettings::near().address), OUR_PORT);
        let remote = SocketAddr::new(pick(HostSettings::far().address), KERNEL_PORT);
        let ours = match self.opener {
            Opener::Ours | Opener::Both => {
                EndpointPort::connect(&self.config, self.isn, local, remote, self.application)
            }
            Opener::Kernel => EndpointPort::listen(&self.config, self.isn, local, self.application),
        };
        let mut emulator =
            Emulator::new(&self.path, 1, self.settings, Box::new(ours.clone()), host.port(), Clock::start())
                .expect("a sound path");
        let mut capture = Capture::default();
        let socket = host.namespace().run(|| self.kernel_socket(remote)).expect("entered").expect("a socket");
        let stop = AtomicBool::new(false);
        let (kernel, report) = std::thread::scope(|scope| {
            let running = scope.spawn(|| emulator.run(&stop, &mut capture));
            let kernel = self.run_program(socket, local);
            let over = eventually(|| ours.is_over() || running.is_finished());
            stop.store(true, Ordering::Relaxed);
            let report = running.join().expect("no panic in the loop").expect("nothing failed");
            assert!(over, "our end is {:?} after {GIVE_UP_AFTER:?}; the kernel's: {kernel:?}", ours.state());
            (kernel, report)
        });
        let counters = host.namespace().run(kernel_counters).expect("entered");
        Some(Outcome { ours, kernel, report, capture, counters })
    }

    /// Bound, and listening where we open, so that no SYN comes too early.
    fn kernel_socket(&self, local: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(local), Type::STREAM, None)?;
        if let Some(bytes) = self.program.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.set_read_timeout(Some(GIVE_UP_AFTER))?;
        socket.set_write_timeout(Some(GIVE_UP_AFTER))?;
        socket.bind(&local.into())?;
        if self.opener == Opener::Ours {
            socket.listen(1)?;
        }
        Ok(socket)
    }

    fn run_program(&self, socket: Socket, ours: SocketAddr) -> KernelEnd {
        let stream = if self.opener == Opener::Ours {
            TcpListener::from(socket).accept().map(|(stream, _)| stream)
        } else {
            socket.connect(&ours.into()).map(|()| TcpStream::from(socket))
        };
        match stream.and_then(|stream| self.program.run(&stream)) {
            Ok(end) => end,
            Err(error) => KernelEnd { error: Some(error.kind()), ..KernelEnd::default() },
        }
    }
}

impl Program {
    fn run(&self, stream: &TcpStream) -> io::Result<KernelEnd> {
        stream.set_read_timeout(Some(GIVE_UP_AFTER))?;
        stream.set_write_timeout(Some(GIVE_UP_AFTER))?;
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| self.write(stream));
            let mut end = self.read(stream);
            if let Close::Reset(_) = self.close {
                // The socket is closed when its owner returns: with no time to linger, that is a reset.
                SockRef::from(stream).set_linger(Some(time::Duration::ZERO))?;
            }
            let written = writing.join().expect("no panic");
            if self.close == Close::PeerClosed && written.is_ok() {
                stream.shutdown(Shutdown::Write)?;
            }
            end.error = end.error.or(written.err().map(|error| error.kind()));
            Ok(end)
        })
    }

    fn write(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut offset = 0;
        let mut chunk = vec![0; 64 * 1024];
        while offset < self.write {
            let len = (self.write - offset).min(chunk.len() as u64) as usize;
            pattern::fill(offset, &mut chunk[..len]);
            stream.write_all(&chunk[..len])?;
            offset += len as u64;
        }
        if self.close == Close::Written { stream.shutdown(Shutdown::Write) } else { Ok(()) }
    }

    fn read(&self, mut stream: &TcpStream) -> KernelEnd {
        sleep(self.read_after);
        let mut end = KernelEnd::default();
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut chunk) {
                Ok(0) => return end,
                Ok(len) => {
                    let found = pattern::first_mismatch(end.read, &chunk[..len]);
                    end.mismatch = end.mismatch.or(found);
                    end.read += len as u64;
                }
                Err(error) => {
                    end.error = Some(error.kind());
                    return end;
                }
            }
            if let Close::Reset(after) = self.close
                && end.read >= after
            {
                return end;
            }
        }
    }
}

impl Outcome {
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.ours.connection().closed().map(|(reason, _)| reason)
    }

    pub fn counter(&self, name: &str) -> u64 {
        *self.counters.get(name).unwrap_or_else(|| panic!("this kernel counts no {name}"))
    }

    /// Every byte arrived, both ways, as it was written.
    #[track_caller]
    pub fn assert_delivered(&self, setup: &Setup) {
        let seen = self.ours.seen();
        assert_eq!((seen.read, seen.mismatch), (Bytes(setup.program.write), None), "the kernel's stream");
        assert_eq!((self.kernel.read, self.kernel.mismatch), (setup.application.write.0, None), "our stream");
        assert_eq!(self.kernel.error, None);
    }

    /// Neither end, nor the loop, nor tshark found anything wrong with a packet.
    #[track_caller]
    pub fn assert_sound(&self, name: &str) {
        self.assert_nothing_refused();
        self.capture.assert_sound(name);
    }

    /// Neither end, nor the loop, found anything wrong with a packet. The capture is left for tshark to judge: a run of it
    /// takes longer than most of ours.
    #[track_caller]
    pub fn assert_nothing_refused(&self) {
        let seen = self.ours.seen();
        assert_eq!((seen.malformed, seen.strays), (0, 0));
        let report = &self.report;
        let malformed = report.malformed.forward.total() + report.malformed.reverse.total();
        assert_eq!((malformed, &report.send_errors), (0, &BTreeMap::new()));
        assert_eq!(report.other_protocols, PerDirection::default());
        for wrong in [
            "Tcp.InErrs",
            "Tcp.InCsumErrors",
            // A segment of ours came when the kernel knew the connection no more.
            "Tcp.OutRsts",
            "Tcp.EstabResets",
            "TcpExt.TCPSACKDiscard",
            "TcpExt.TCPSYNChallenge",
        ] {
            assert_eq!(self.counter(wrong), 0, "{wrong}");
        }
    }

    /// On a path that drops and reorders nothing the kernel has nothing to complain of, and neither have we.
    #[track_caller]
    pub fn assert_undisturbed(&self) {
        // The kernel repeats the last segment after two round trips of 4 ms: a loop that is as late as that causes
        // retransmissions itself, and says nothing of either end.
        const IN_TIME: Duration = Duration::from_millis(5);
        let lateness = &self.report.lateness;
        let latest = lateness.forward.max().max(lateness.reverse.max());
        if latest > IN_TIME {
            let what = "whether either end retransmitted or refused without a cause";
            return skip(Need::Time, format!("{what}: the loop was late by {latest}, more than {IN_TIME}"));
        }
        for disturbed in [
            "Tcp.RetransSegs",
            "Tcp.AttemptFails",
            "TcpExt.PAWSEstab",
            "TcpExt.TCPChallengeACK",
            "TcpExt.TCPDSACKRecv",
            "TcpExt.TCPDSACKOldSent",
            "TcpExt.TCPOFOQueue",
            "TcpExt.TCPTimeouts",
        ] {
            assert_eq!(self.counter(disturbed), 0, "{disturbed}");
        }
        let connection = self.ours.connection();
        assert_eq!(connection.sender().stats().retransmissions, 0);
        assert_eq!(connection.stats().segments_refused, 0);
    }
}

/// `/proc/net/snmp` and `netstat`: a line of names, a line of values, each with the table's name before it.
fn kernel_counters() -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        // `/proc/net` would be that of the process's first thread.
        let text =
            std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).expect("/proc is mounted");
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
            let table = names.clone().next().unwrap_or_default().trim_end_matches(':').to_owned();
            for (name, value) in names.zip(values).skip(1) {
                // Some, such as MaxConn, are -1.
                counters.insert(format!("{table}.{name}"), value.parse().unwrap_or(0));
            }
        }
    }
    counters
}

fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    const STEP: time::Duration = time::Duration::from_millis(2);
    (0..GIVE_UP_AFTER.as_millis() / STEP.as_millis()).any(|_| {
        sleep(STEP);
        condition()
    })
}

#[expect(clippy::disallowed_methods, reason = "an emulation is in real time")]
fn sleep(time: time::Duration) {
    std::thread::sleep(time);
}
