//! A stack in user space behind a TUN device as what a script is played against: its packets, and nothing of its program.

use super::machine::{BUFFER, LOCAL, PORT, REMOTE};
use crate::EngineError;
use farpath_emu::{Clock, Port, VirtioHeader, behind};
use farpath_script::syntax::{Call, IcmpSpec, Script};
use farpath_script::{
    Begun, Comparison, Machine, Network, Packet, Refusal, Returned, Sent, Setting, Value, Verdict, bytes,
    play,
};
use farpath_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};

/// Control bits of a reset.
const RST: u16 = 0x04;
const ACK: u16 = 0x10;

/// Plays a script against the stack behind the TUN device of this name, in real time. `connect` is a command by which it opens a
/// connection; it is run by a shell where the script calls `connect()`, and ended with the script.
///
/// # Errors
/// There is no such device, or its packets may not be taken.
pub fn play_behind_device(
    script: &Script,
    comparison: &Comparison,
    device: &str,
    connect: Option<&str>,
) -> Result<Verdict, EngineError> {
    let mut machine = DeviceMachine {
        port: behind(device)?,
        clock: Clock::start(),
        buffer: vec![0; BUFFER],
        network: Network::default(),
        connect: connect.map(str::to_owned),
        program: None,
        sent: VecDeque::new(),
        last: BTreeMap::new(),
    };
    Ok(play(script, &mut machine, comparison))
}

struct DeviceMachine {
    port: Box<dyn Port>,
    clock: Clock,
    buffer: Vec<u8>,
    network: Network,
    connect: Option<String>,
    program: Option<Child>,
    sent: VecDeque<Sent>,
    /// The last packet of each connection that the stack sent, by its ports.
    last: BTreeMap<(u16, u16), Packet>,
}

impl DeviceMachine {
    /// Of the stack, and of the other end.
    fn addresses(&self) -> (IpAddr, IpAddr) {
        let (local, remote): (IpAddr, IpAddr) = match self.network.ipv6 {
            true => (LOCAL.1.into(), REMOTE.1.into()),
            false => (LOCAL.0.into(), REMOTE.0.into()),
        };
        (self.network.local.unwrap_or(local), self.network.remote.unwrap_or(remote))
    }

    fn drain(&mut self) {
        let now = self.clock.now();
        while let Ok(Some(received)) = self.port.receive(now, &mut self.buffer) {
            if let Some(packet) = bytes::decode(&self.buffer[..received.len]) {
                self.last.insert((packet.local, packet.remote), packet.clone());
                self.sent.push_back(Sent { at: now, packet });
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        let now = self.clock.now();
        self.port.send(now, VirtioHeader::default(), None, &[IoSlice::new(packet)]).map_err(|error| {
            Refusal::new("a packet that the device takes: it is to be up", error.to_string())
        })
    }
}

impl Machine for DeviceMachine {
    fn begin(&mut self, network: Network) -> Result<(), Refusal> {
        self.network = network;
        let (local, remote) = self.addresses();
        if local.is_ipv6() != network.ipv6 || remote.is_ipv6() != network.ipv6 {
            let version = if network.ipv6 { "IPv6" } else { "IPv4" };
            return Err(Refusal::new(
                format!("addresses of {version} as `--local_ip` and `--remote_ip`"),
                format!("{local} and {remote}"),
            ));
        }
        Ok(())
    }

    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn advance(&mut self, until: Instant) -> Result<(), Refusal> {
        loop {
            self.drain();
            let now = self.clock.now();
            if now >= until || !self.sent.is_empty() {
                return Ok(());
            }
            let left = until.saturating_since(now).as_nanos();
            let wait =
                Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
            let Some(fd) = self.port.fd() else {
                return Err(Refusal::new("a device that can be waited for", "none"));
            };
            let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&wait));
        }
    }

    fn take_sent(&mut self) -> Option<Sent> {
        if self.sent.is_empty() {
            self.drain();
        }
        self.sent.pop_front()
    }

    fn take_ended(&mut self) -> Option<(u64, Instant, Returned)> {
        None
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), Refusal> {
        let (local, remote) = self.addresses();
        self.send(&bytes::encode(packet, local, remote))
    }

    fn inject_icmp(&mut self, ports: (u16, u16), message: &IcmpSpec, seq: u32) -> Result<(), Refusal> {
        let (local, remote) = self.addresses();
        self.send(&bytes::encode_icmp(message, ports, seq, local, remote)?)
    }

    /// The stack's program makes its calls itself: what the script says that they give is taken as said.
    fn call(&mut self, call: &Call) -> Result<Begun, Refusal> {
        if call.until.is_some() {
            return Err(Refusal::new(
                format!("`{}()` without a time for its end: nobody sees calls behind a device", call.name),
                "one",
            ));
        }
        if call.name == "connect" && self.program.is_none() {
            let command = self.connect.as_deref().ok_or_else(|| {
                Refusal::new("`--connect COMMAND`, by which the stack opens a connection", "none")
            })?;
            let program = Command::new("sh")
                .args(["-c", command])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| Refusal::new(format!("`{command}` to start"), error.to_string()))?;
            self.program = Some(program);
        }
        let error = call.error.clone();
        let value = call.expected.number().unwrap_or(0);
        Ok(Begun::Ended(Returned { value, error, outputs: Vec::new() }))
    }

    fn set(&mut self, settings: &[Setting]) -> Result<(), Refusal> {
        let known = |setting: &Setting| matches!(setting, Setting::Nothing | Setting::Defaults);
        match settings.iter().find(|setting| !known(setting)) {
            None => Ok(()),
            Some(setting) => {
                Err(Refusal::new("settings that a stack behind a device has", format!("{setting:?}")))
            }
        }
    }

    fn information(&mut self, _: (u16, u16), _: &str) -> Option<Value> {
        None
    }

    fn listening_port(&self) -> u16 {
        self.network.port.unwrap_or(PORT)
    }
}

impl Drop for DeviceMachine {
    /// Ends the connections, so that the next script may open them again, and the program that opened one.
    fn drop(&mut self) {
        for packet in std::mem::take(&mut self.last).into_values().filter(|packet| packet.flags & ACK != 0) {
            let reset = Packet {
                ttl: 64,
                seq: packet.ack,
                ack: packet.seq.wrapping_add(packet.len.into()),
                flags: RST | ACK,
                window: 0,
                options: Vec::new(),
                len: 0,
                ..packet
            };
            // A device that is gone has no connections either.
            let _ = self.inject(&reset);
        }
        if let Some(program) = &mut self.program {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}
