//! What several tests share: segments as packets, and ports that lie in memory.
#![allow(dead_code, reason = "each test uses its part")]

use farpath_emu::{Emulator, Frame, LoopReport, Port, Received, Recorder, VirtioHeader};
use farpath_tcp::wire::{IpFields, encode};
use farpath_tcp::{Flags, Segment, Seq, pattern};
use farpath_units::Instant;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub const V4: [&str; 2] = ["10.0.0.1:40000", "10.0.0.2:80"];
pub const V6: [&str; 2] = ["[fd00::1]:40000", "[fd00::2]:80"];

/// A packet from the first of `ends` to the second, its checksums complete.
pub fn packet(ends: [&str; 2], segment: &Segment, offset: u64) -> Vec<u8> {
    let [source, destination] = ends.map(|end| end.parse::<SocketAddr>().expect("an address and a port"));
    let mut bytes = Vec::new();
    encode(source, destination, &IpFields::default(), segment, offset, &mut bytes).expect("it fits");
    bytes
}

/// A data segment at the stream's byte `offset`.
pub fn data(offset: u64, len: u16) -> Segment {
    let mut segment = Segment::new(Flags::ACK, Seq(1).advanced_by(offset), Seq(1));
    (segment.len, segment.window) = (len, 1000);
    segment
}

/// A super-packet of `len` bytes from `offset` on, in segments of `mss`, as a kernel would hand it over.
pub fn super_packet(ends: [&str; 2], segment: &Segment, offset: u64, mss: u16) -> (VirtioHeader, Vec<u8>) {
    let bytes = packet(ends, segment, offset);
    let v6 = bytes[0] >> 4 == 6;
    let header = VirtioHeader {
        flags: VirtioHeader::NEEDS_CHECKSUM,
        gso_type: if v6 { VirtioHeader::GSO_TCPV6 } else { VirtioHeader::GSO_TCPV4 },
        // The kernel says how much of the packet is in one piece, which can be more than the headers.
        header_len: 100.min(bytes.len() as u16),
        gso_size: mss,
        checksum_start: if v6 { 40 } else { 20 },
        checksum_offset: 16,
    };
    (header, bytes)
}

/// The payload of a packet made here.
pub fn payload_of(bytes: &[u8]) -> &[u8] {
    let tcp_at = if bytes[0] >> 4 == 6 { 40 } else { usize::from(bytes[0] & 15) * 4 };
    &bytes[tcp_at + usize::from(bytes[tcp_at + 12] >> 4) * 4..]
}

/// The stream's bytes.
pub fn stream(offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern::fill(offset, &mut bytes);
    bytes
}

/// A host that sends what it is given and keeps what it gets.
#[derive(Debug, Clone, Default)]
pub struct MemoryPort(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
pub struct Memory {
    /// What it sends, and from when on.
    pub to_send: VecDeque<(Instant, VirtioHeader, Vec<u8>)>,
    /// What it got, and when.
    pub got: Vec<(Instant, VirtioHeader, Vec<u8>)>,
    /// Refuses everything with this code.
    pub refuses_with: Option<i32>,
}

impl MemoryPort {
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().expect("no test panics with it")
    }

    pub fn send_at(&self, at: Instant, header: VirtioHeader, bytes: Vec<u8>) {
        self.memory().to_send.push_back((at, header, bytes));
    }
}

impl Port for MemoryPort {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn next_due(&self) -> Option<Instant> {
        self.memory().to_send.front().map(|&(at, ..)| at)
    }

    fn receive(&mut self, now: Instant, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut memory = self.memory();
        if memory.to_send.front().is_none_or(|&(at, ..)| at > now) {
            return Ok(None);
        }
        let (_, header, bytes) = memory.to_send.pop_front().expect("there is a first");
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(Some(Received { header, frame: None, len: bytes.len() }))
    }

    fn send(
        &mut self,
        now: Instant,
        header: VirtioHeader,
        _: Option<Frame>,
        pieces: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let mut memory = self.memory();
        if let Some(code) = memory.refuses_with {
            return Err(io::Error::from_raw_os_error(code));
        }
        memory.got.push((now, header, pieces.iter().flat_map(|piece| piece.to_vec()).collect()));
        Ok(())
    }
}

/// Runs the emulator until `over`, and panics after a minute: nothing here takes a tenth of that.
pub fn run_until(
    emulator: &mut Emulator,
    recorder: &mut (impl Recorder + Send),
    mut over: impl FnMut() -> bool,
) -> LoopReport {
    const STEP: std::time::Duration = std::time::Duration::from_millis(2);
    const STEPS: u32 = 30_000;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| emulator.run(&stop, recorder));
        let in_time = (0..STEPS).any(|_| {
            #[expect(clippy::disallowed_methods, reason = "an emulation is in real time")]
            std::thread::sleep(STEP);
            over() || running.is_finished()
        });
        stop.store(true, Ordering::Relaxed);
        let report = running.join().expect("no panic in the loop").expect("nothing failed");
        assert!(in_time, "not over after a minute: {report:?}");
        report
    })
}
