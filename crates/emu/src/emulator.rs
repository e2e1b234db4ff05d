//! The loop between two hosts.

use crate::clamp::WindowClamp;
use crate::coalesce::Run;
use crate::packet::Meter;
use crate::sys::sched::RealTime;
use crate::{
    Clock, LoopReport, PacketEvent, Port, Queues, RealtimeGrant, Recorder, VirtioHeader, WirePacket, gso,
    icmp,
};
use farpath_elements::{ElementSpec, SpecError, build_path};
use farpath_path::{Departure, Direction, Path, PathElement, PerDirection, Verdict};
use farpath_units::{Bytes, Duration, Instant};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Packets and super-packets that are taken from a host before the other one has its turn. A batch of 32 super-packets
/// made a loop at 3.5 Gbit/s late by 1.5 ms in the mean: it takes as long to split them.
const BATCH: usize = 8;
/// The shortest timer slack that there is. With the usual 50 us each wait would end up to so much late.
const TIMER_SLACK_NS: libc::c_ulong = 1;
/// What a port may ask for, see [`Port::receive`].
const BUFFER: usize = 64 * 1024 + 256;

/// How the loop is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Longest that the loop sleeps before it looks whether it shall stop.
    pub look_every: Duration,
    /// Hand over contiguous segments that are due together as one super-packet. It is what makes several Gbit/s
    /// possible, and it makes receivers send fewer ACKs, as receive offload of a network card does: one for a
    /// super-packet in place of one for every second segment.
    pub coalesce: bool,
    /// Run before all ordinary programs (`SCHED_FIFO`), where it is allowed. Packets are then late by microseconds
    /// rather than, now and then, by milliseconds.
    pub realtime: bool,
    /// Nothing takes time but waiting, as in virtual time: the clock is read once after each wait, and a host is asked
    /// for packets only where it has some. In a user-mode kernel each call costs ten times what it costs elsewhere.
    pub stands: bool,
    /// Most memory that packets under way may take up. Over it the run ends with an error.
    pub memory: Bytes,
    /// Largest receive window that segments of a direction may announce: `reverse` holds the far host's window down.
    pub clamp: PerDirection<Option<Bytes>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            look_every: Duration::from_millis(20),
            coalesce: false,
            realtime: true,
            stands: false,
            memory: Bytes(2_000_000_000),
            clamp: PerDirection::default(),
        }
    }
}

/// Why there is no emulation, or why it ended before it was stopped.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// The path contradicts itself.
    #[error(transparent)]
    Path(#[from] SpecError),
    /// A host's device went away.
    #[error("taking packets that go {direction}: {source}; was a device or its host removed?")]
    Receive {
        /// Which way the packets would have gone.
        direction: Direction,
        /// What the kernel said.
        source: io::Error,
    },
    /// More is under way than may be.
    #[error(
        "packets under way take up {held} of memory and {memory} is allowed: allow more, or lower the rate, the delay \
         or the window"
    )]
    Memory {
        /// Taken up.
        held: Bytes,
        /// Allowed.
        memory: Bytes,
    },
    /// Waiting failed.
    #[error("waiting for packets: {0}")]
    Wait(#[source] io::Error),
}

/// Two hosts with a path between them, or another element.
pub struct Emulator<E = Path<WirePacket>> {
    path: E,
    /// By the direction of what comes out of them: the near host's is `forward`.
    ports: PerDirection<Box<dyn Port>>,
    clock: Clock,
    settings: Settings,
    clamp: WindowClamp,
    /// What senders of longer packets are told of.
    told_mtu: Option<u16>,
    meter: Meter,
    /// What is due and not handed over yet, by direction.
    runs: PerDirection<Run>,
    buffer: Box<[u8]>,
    report: LoopReport,
    /// Where the clock stands still, since when.
    stood: Instant,
    /// Where it does, which hosts may have packets.
    ready: PerDirection<bool>,
}

impl Emulator {
    /// Sets it up; nothing moves yet. What comes out of `near` goes forward. The same path and seed give the packet of
    /// the same number the same fate as in a simulation.
    ///
    /// # Errors
    /// When the path contradicts itself.
    pub fn new(
        path: &[ElementSpec],
        seed: u64,
        settings: Settings,
        near: Box<dyn Port>,
        far: Box<dyn Port>,
        clock: Clock,
    ) -> Result<Emulator, EmuError> {
        let told_mtu = icmp::told_mtu(path);
        Ok(Emulator { told_mtu, ..Emulator::over(build_path(path, seed)?, settings, near, far, clock) })
    }
}

impl<E: PathElement<WirePacket>> Emulator<E> {
    /// With this element in place of a path.
    pub fn over(
        element: E,
        settings: Settings,
        near: Box<dyn Port>,
        far: Box<dyn Port>,
        clock: Clock,
    ) -> Emulator<E> {
        Emulator {
            path: element,
            ports: PerDirection { forward: near, reverse: far },
            clock,
            settings,
            clamp: WindowClamp::new(settings.clamp),
            told_mtu: None,
            meter: Meter::default(),
            runs: PerDirection::default(),
            buffer: vec![0; BUFFER].into(),
            report: LoopReport::default(),
            stood: clock.now(),
            ready: PerDirection::both(true),
        }
    }

    /// What is between the hosts, to be looked at or changed between two runs.
    pub fn element(&mut self) -> &mut E {
        &mut self.path
    }

    fn now(&self) -> Instant {
        if self.settings.stands { self.stood } else { self.clock.now() }
    }

    /// Moves packets until `stop` says so, which it looks at every 20 ms at least. What is then under way stays there:
    /// a further call goes on with it, and its report counts on.
    ///
    /// # Errors
    /// When a device is gone, or the packets under way take up more memory than is allowed.
    pub fn run(&mut self, stop: &AtomicBool, recorder: &mut impl Recorder) -> Result<LoopReport, EmuError> {
        // Where it is refused, waits end up to 50 us late, which the report's lateness shows.
        let _ = prctl::set_timerslack(TIMER_SLACK_NS);
        let realtime = self.settings.realtime.then(RealTime::enter);
        self.report.realtime = match &realtime {
            None => RealtimeGrant::NotAsked,
            Some(Ok(_)) => RealtimeGrant::Granted,
            Some(Err(error)) => RealtimeGrant::refused(error),
        };
        let (began, cpu_before) = (self.clock.now(), thread_cpu_time());
        let result = self.move_packets(stop, recorder);
        self.report.elapsed += self.clock.now().saturating_since(began);
        self.report.cpu_time += thread_cpu_time().saturating_sub(cpu_before);
        self.report.elements = self.path.counters();
        self.report.air = self.path.air(self.clock.now());
        self.report.left_under_way = self.path.held();
        result.map(|()| self.report.clone())
    }

    fn move_packets(&mut self, stop: &AtomicBool, recorder: &mut impl Recorder) -> Result<(), EmuError> {
        while !stop.load(Ordering::Relaxed) {
            let mut taken = 0;
            for direction in Direction::BOTH {
                for _ in 0..BATCH {
                    if !self.take_from_host(direction, recorder)? {
                        break;
                    }
                    taken += 1;
                    // Between two super-packets: splitting one takes some 20 us.
                    self.hand_over_due(recorder);
                }
            }
            self.hand_over_due(recorder);
            if taken == 0 {
                self.wait()?;
            }
        }
        Ok(())
    }

    /// Takes what a host sends next, if anything, and offers it to the path.
    fn take_from_host(
        &mut self,
        direction: Direction,
        recorder: &mut impl Recorder,
    ) -> Result<bool, EmuError> {
        if self.settings.stands && !self.ready[direction] {
            return Ok(false);
        }
        let now = self.now();
        let received = match self.ports[direction].receive(now, &mut self.buffer) {
            Ok(Some(received)) => received,
            Ok(None) => {
                self.ready[direction] = false;
                return Ok(false);
            }
            Err(source) => return Err(EmuError::Receive { direction, source }),
        };
        let bytes = &mut self.buffer[..received.len];
        self.clamp.apply(direction, received.header, bytes);
        let counts = &mut self.report.packets[direction];
        counts.taken += 1;
        let (path, meter, told_mtu) = (&mut self.path, &self.meter, self.told_mtu);
        let mut refused = Vec::new();
        let intake = gso::split(received.header, bytes, |bytes, checksum| {
            counts.offered += 1;
            let packet =
                WirePacket::new(bytes, checksum, counts.offered).framed(received.frame).metered(meter);
            recorder.packet(now, PacketEvent::Sent, direction, &packet, Queues(path));
            if let Verdict::Dropped { at, cause, packet } = path.offer(now, direction, packet) {
                counts.dropped += 1;
                recorder.packet(at, PacketEvent::Dropped(cause), direction, &packet, Queues(path));
                if let Some(message) = icmp::message(cause, told_mtu, packet.bytes()) {
                    refused.push((packet, message));
                }
            }
        });
        refused.iter().for_each(|(packet, message)| self.tell(now, direction, packet, message));
        if let Some(kind) = intake.malformed {
            self.report.malformed[direction].add(kind);
        }
        self.report.other_protocols[direction] += u64::from(intake.other_protocol);
        let held = self.meter.held();
        self.report.peak_held = self.report.peak_held.max(held);
        if held > self.settings.memory {
            return Err(EmuError::Memory { held, memory: self.settings.memory });
        }
        Ok(true)
    }

    /// Hands over what is due, and what becomes due meanwhile.
    fn hand_over_due(&mut self, recorder: &mut impl Recorder) {
        let mut now = self.now();
        while self.path.next_departure().is_some_and(|due| due <= now) {
            while let Some(departure) = self.path.take(now) {
                self.depart(departure, recorder);
            }
            for direction in Direction::BOTH {
                self.hand_over(direction, recorder);
            }
            now = self.now();
        }
    }

    fn depart(&mut self, departure: Departure<WirePacket>, recorder: &mut impl Recorder) {
        let Departure { due, direction, packet, dropped } = departure;
        if let Some(cause) = dropped {
            self.report.packets[direction].dropped += 1;
            recorder.packet(due, PacketEvent::Dropped(cause), direction, &packet, Queues(&self.path));
            if let Some(message) = icmp::message(cause, self.told_mtu, packet.bytes()) {
                self.tell(self.clock.now(), direction, &packet, &message);
            }
            return;
        }
        let coalesce = self.settings.coalesce;
        if let Err(packet) = self.runs[direction].push(due, packet, coalesce) {
            self.hand_over(direction, recorder);
            self.runs[direction].push(due, packet, coalesce).expect("an empty run takes any packet");
        }
    }

    /// A host is told why its packet did not pass: at once, wherever on the path that was.
    fn tell(&mut self, now: Instant, direction: Direction, packet: &WirePacket, message: &[u8]) {
        // Refused, it is lost, as any ICMP message may be.
        let _ = self.ports[direction].send(
            now,
            VirtioHeader::default(),
            packet.frame(),
            &[io::IoSlice::new(message)],
        );
    }

    /// Hands over what was gathered for a host.
    fn hand_over(&mut self, direction: Direction, recorder: &mut impl Recorder) {
        let now = self.now();
        let run = &mut self.runs[direction];
        let port = &mut self.ports[direction.opposite()];
        let Some(result) = run.hand_over(|header, frame, pieces| port.send(now, header, frame, pieces))
        else {
            return;
        };
        let counts = &mut self.report.packets[direction];
        let packets = run.packets().len() as u64;
        let event = match result {
            Ok(()) => {
                counts.handed_over += 1;
                counts.delivered += packets;
                PacketEvent::Received
            }
            Err(error) => {
                counts.refused += packets;
                *self.report.send_errors.entry(error.raw_os_error().unwrap_or(0)).or_default() += packets;
                PacketEvent::Refused
            }
        };
        for (due, packet) in run.packets() {
            if event == PacketEvent::Received {
                self.report.lateness[direction].record(*due, now);
            }
            recorder.packet(now, event, direction, packet, Queues(&self.path));
        }
        run.clear();
    }

    /// Sleeps until a host sends, a packet is due, or it is time to look whether to stop.
    fn wait(&mut self) -> Result<(), EmuError> {
        let ports = [&self.ports.forward, &self.ports.reverse];
        let due = ports
            .iter()
            .fold(self.path.next_departure(), |due, port| Instant::earliest(due, port.next_due()));
        let now = self.now();
        let longest = self.settings.look_every;
        let nap = due.map_or(longest, |due| due.saturating_since(now).min(longest));
        if nap.is_zero() {
            self.ready = PerDirection::both(true);
            return Ok(());
        }
        let polled = ports.map(|port| port.fd().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let mut fds: Vec<PollFd<'_>> = polled.iter().flatten().cloned().collect();
        let timeout = TimeSpec::from(std::time::Duration::from_nanos(nap.as_nanos()));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(EmuError::Wait(error.into())),
        }
        let mut found = fds.iter().map(|fd| fd.any() != Some(false));
        // Only time brings packets to a port without a descriptor.
        let [near, far] = polled.map(|polled| polled.is_none_or(|_| found.next() != Some(false)));
        self.ready = PerDirection { forward: near, reverse: far };
        if self.settings.stands {
            self.stood = self.clock.now();
        }
        Ok(())
    }
}

fn thread_cpu_time() -> Duration {
    // It cannot fail: the clock is there since Linux 2.6.12.
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or(TimeSpec::new(0, 0));
    Duration::from_secs(time.tv_sec() as u64) + Duration::from_nanos(time.tv_nsec() as u64)
}
