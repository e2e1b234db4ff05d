//! Our own endpoint as a host, opposite somebody else's.

use crate::{Answer, Host, HostError, HostSetup};
use farpath_emu::{Application, CloseWhen, WireEndpoint, WirePacket};
use farpath_tcp::{CloseReason, Config, Seq, State};
use farpath_units::{Bytes, Instant};

/// One end of a connection by Farpath's own TCP.
#[derive(Debug)]
pub struct Ours {
    endpoint: WireEndpoint,
    size: Bytes,
    sends: bool,
    started: bool,
}

impl Ours {
    /// An end with the parameters of `config`; `isn` is its initial sequence number. Of the setup it takes who it is and what it does.
    pub fn new(setup: &HostSetup, config: &Config, isn: Seq) -> Ours {
        let application = Application {
            write: if setup.sends { setup.size } else { Bytes::ZERO },
            close: if setup.sends { CloseWhen::Written } else { CloseWhen::Read(setup.size) },
            ..Application::default()
        };
        let (local, remote) = (setup.local.into(), setup.remote.into());
        let endpoint = if setup.opens {
            WireEndpoint::connect(config, isn, local, remote, application)
        } else {
            WireEndpoint::listen(config, isn, local, application)
        };
        Ours { endpoint, size: setup.size, sends: setup.sends, started: false }
    }

    fn answer(&mut self, now: Instant) -> Result<Answer, HostError> {
        let mut packets = Vec::new();
        while let Some(packet) = self.endpoint.poll_packet(now)? {
            packets.push(packet.to_vec());
        }
        let (connection, seen) = (self.endpoint.connection(), self.endpoint.seen());
        let failed = match connection.closed() {
            Some((reason, _)) if reason != CloseReason::Finished => Some(match reason {
                CloseReason::ConnectTimedOut => "timed out".to_owned(),
                reason => reason.describe().to_owned(),
            }),
            _ => {
                seen.mismatch.map(|place| format!("byte {place} of the stream is not the one that was sent"))
            }
        };
        let has_all = self.sends || seen.read == self.size;
        let closed =
            has_all && matches!(connection.state(), State::FinWait2 | State::TimeWait | State::Closed);
        Ok(Answer {
            packets,
            read: (!self.sends).then_some(seen.read.0),
            connected: connection.established_at().is_some(),
            closed: self.started && closed,
            failed,
            next_due: self.endpoint.next_due(),
        })
    }
}

impl Host for Ours {
    fn name(&self) -> &str {
        "Farpath's own"
    }

    fn start(&mut self, now: Instant) -> Result<Answer, HostError> {
        self.started = true;
        self.answer(now)
    }

    fn packet(&mut self, now: Instant, packet: &[u8]) -> Result<Answer, HostError> {
        self.endpoint.arrive(now, &WirePacket::new(packet.to_vec(), None, 1));
        self.answer(now)
    }

    fn timer(&mut self, now: Instant) -> Result<Answer, HostError> {
        self.answer(now)
    }
}
