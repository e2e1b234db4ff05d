//! A stack in user space behind a TUN device as what a script is played against: its packets, and nothing of its program.

use super::wire::{PORT, Wire};
use crate::EmulateError;
use farpath_emu::behind;
use farpath_script::syntax::{Call, IcmpSpec, Script};
use farpath_script::{
    Begun, Comparison, Machine, Network, Packet, Refusal, Returned, Sent, Setting, Value, Verdict, play,
};
use farpath_units::Instant;
use std::collections::BTreeMap;
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
) -> Result<Verdict, EmulateError> {
    let mut machine = DeviceMachine {
        wire: Wire::new(behind(device)?),
        connect: connect.map(str::to_owned),
        program: None,
        last: BTreeMap::new(),
    };
    Ok(play(script, &mut machine, comparison))
}

struct DeviceMachine {
    wire: Wire,
    connect: Option<String>,
    program: Option<Child>,
    /// The last packet of each connection that the stack sent, by its ports.
    last: BTreeMap<(u16, u16), Packet>,
}

impl DeviceMachine {
    fn drain(&mut self) {
        let last = &mut self.last;
        self.wire.drain(|packet| {
            last.insert((packet.local, packet.remote), packet.clone());
        });
    }
}

impl Machine for DeviceMachine {
    fn begin(&mut self, network: Network) -> Result<(), Refusal> {
        self.wire.network = network;
        let (local, remote) = self.wire.addresses();
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
        self.wire.clock.now()
    }

    fn advance(&mut self, until: Instant) -> Result<(), Refusal> {
        loop {
            self.drain();
            if self.wire.clock.now() >= until || self.wire.has_sent() {
                return Ok(());
            }
            self.wire.wait(until, None)?;
        }
    }

    fn take_sent(&mut self) -> Option<Sent> {
        if !self.wire.has_sent() {
            self.drain();
        }
        self.wire.take_sent()
    }

    fn take_ended(&mut self) -> Option<(u64, Instant, Returned)> {
        None
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), Refusal> {
        self.wire.inject(packet)
    }

    fn inject_icmp(&mut self, ports: (u16, u16), message: &IcmpSpec, seq: u32) -> Result<(), Refusal> {
        self.wire.inject_icmp(ports, message, seq)
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
        self.wire.network.port.unwrap_or(PORT)
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
            let _ = self.wire.inject(&reset);
        }
        if let Some(program) = &mut self.program {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}
