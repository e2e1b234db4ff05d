//! One client: who it is, and what it asks for, until it has gone.

use super::Server;
use super::flow::Flows;
use super::ledger::{Caller, Client};
use super::log::Log;
use crate::control::{self, Reader, Until, Writer};
use crate::kernel;
use crate::key::{self, Challenge, Who};
use crate::protocol::{
    FrameError, FromClient, FromResponder, Greeting, PROTOCOL, Pong, Refused, Welcome, Why,
};
use crate::said::Said;
use farpath_emu::Clock;
use farpath_units::{Bytes, Duration, Instant};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// In which a client has to say who it is, however slowly it speaks.
const GREETING_WITHIN: Duration = Duration::from_secs(10);
/// A client that does nothing for so long is told to go.
const IDLE: Duration = Duration::from_secs(120);

/// Serves one connection until it ends.
pub fn serve(
    server: &Server,
    stream: Arc<TcpStream>,
    from: SocketAddr,
    caller: Caller<'_>,
    stop: &AtomicBool,
    log: &Log<'_>,
) {
    let clock = Clock::start();
    let Ok(at) = stream.local_addr() else { return };
    // Who reads nothing is waited for until its time is over, and not when there is nobody who serves any more.
    let over = AtomicBool::new(false);
    let deadline = Some(clock.now() + GREETING_WITHIN + server.limits.time);
    let until = Until { deadline, stops: &[stop, &over] };
    let Ok((mut reader, writer)) = control::both(stream, clock, server.limits.silence, until) else { return };
    let (client, version) = match let_in(server, &mut reader, &writer, from, caller, stop) {
        Ok(let_in) => let_in,
        Err(Some(refused)) => {
            log.tell(&format!("{from}: not let in: {}", refused.message));
            // Whether it is still there to hear it does not matter.
            let _ = writer.send(&FromResponder::Refused(refused));
            return;
        }
        Err(None) => return,
    };
    log.tell(&format!("{from}: measures, with farpath {version}"));
    let mut session = Session {
        server,
        reader,
        writer: &writer,
        clock,
        client: &client,
        at,
        from,
        stop,
        over: &over,
        deadline: clock.now() + server.limits.time,
    };
    let (moved, why) = session.run();
    log.tell(&format!(
        "{from}: {why} after {:.1}, {:.1} MB asked for",
        clock.now().since_start(),
        moved.0 as f64 / 1e6
    ));
}

/// Why somebody is not let in; `None` where it has gone, or has said nothing that deserves an answer.
type NotLetIn = Option<Refused>;

fn refused(why: Why, message: impl Into<Said>) -> Refused {
    Refused { why, message: message.into(), flow: None }
}

fn let_in<'a>(
    server: &Server,
    reader: &mut Reader,
    writer: &Writer,
    from: SocketAddr,
    caller: Caller<'a>,
    stop: &AtomicBool,
) -> Result<(Client<'a>, Said), NotLetIn> {
    let ours = Challenge(key::random().map_err(|_| None)?);
    let greeting = Greeting {
        farpath: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        kernel: kernel::name().into(),
        challenge: ours,
        key: server.key.is_some(),
        proof: None,
    };
    writer.send(&FromResponder::Greeting(greeting)).map_err(|_| None)?;
    let deadline = Instant::ZERO + GREETING_WITHIN;
    let greeting = match reader.next(deadline, &[stop]) {
        Ok(FromClient::Greeting(greeting)) => greeting,
        Ok(_) => return Err(Some(refused(Why::Malformed, "expected a greeting first"))),
        Err(FrameError::Syntax(_) | FrameError::TooLong) => {
            return Err(Some(refused(Why::Malformed, "it does not speak farpath's protocol")));
        }
        Err(_) => return Err(None),
    };
    if greeting.farpath != PROTOCOL {
        let message = format!(
            "it speaks version {} of the protocol (farpath {}), and this host version {PROTOCOL}",
            greeting.farpath, greeting.version
        );
        return Err(Some(refused(Why::Version, message)));
    }
    let proof = match &server.key {
        None => None,
        Some(key) => match &greeting.proof {
            None => return Err(Some(refused(Why::Key, "it shows no key, and one is wanted"))),
            Some(proof) if !key.accepts(proof, Who::Local, &ours, &greeting.challenge) => {
                return Err(Some(refused(Why::Key, "its key is another one")));
            }
            Some(_) => Some(key.prove(Who::Peer, &ours, &greeting.challenge)),
        },
    };
    let client = caller.admit().map_err(|full| Some(refused(Why::Busy, full.to_string())))?;
    let limits = server.limits;
    let welcome = Welcome {
        proof,
        seen_as: from.ip().to_string().into(),
        max_rate: limits.rate.map(|rate| rate.bit_per_s()),
        max_bytes: client.left().0,
        max_time_ns: limits.time.as_nanos(),
    };
    writer.send(&FromResponder::Welcome(welcome)).map_err(|_| None)?;
    Ok((client, greeting.version))
}

struct Session<'a> {
    server: &'a Server,
    reader: Reader,
    writer: &'a Writer<'a>,
    clock: Clock,
    client: &'a Client<'a>,
    at: SocketAddr,
    from: SocketAddr,
    stop: &'a AtomicBool,
    /// Set when nothing more is answered, so that no flow waits to tell something.
    over: &'a AtomicBool,
    deadline: Instant,
}

impl Session<'_> {
    /// Gives how much was asked for, and how it ended.
    fn run(&mut self) -> (Bytes, String) {
        thread::scope(|scope| {
            let mut flows = Flows::new(
                scope,
                self.writer,
                self.clock,
                [self.at, self.from],
                self.client,
                self.server.limits,
                self.deadline,
            );
            let why = loop {
                let idle = self.clock.now() + IDLE;
                let stops = [self.stop, self.writer.broken()];
                let message = match self.reader.next(idle.min(self.deadline), &stops) {
                    Ok(message) => message,
                    Err(FrameError::TimedOut) if self.clock.now() >= self.deadline => {
                        let message = format!("its time of {} is over (--max-time)", self.server.limits.time);
                        break self.tell(refused(Why::Limit, message));
                    }
                    Err(FrameError::TimedOut) if flows.any() => continue,
                    Err(FrameError::TimedOut) => {
                        break self.tell(refused(Why::Limit, format!("nothing was asked for in {IDLE}")));
                    }
                    Err(FrameError::Closed) => break "done".to_owned(),
                    Err(FrameError::Stopped) if !self.stop.load(Ordering::Relaxed) => {
                        break "lost: what it asked for cannot be sent to it".to_owned();
                    }
                    Err(FrameError::Stopped) => {
                        break self.tell(refused(Why::Busy, "the peer's responder is being stopped"));
                    }
                    Err(error @ (FrameError::Syntax(_) | FrameError::TooLong)) => {
                        break self.tell(refused(Why::Malformed, error.to_string()));
                    }
                    Err(error) => break format!("lost: {error}"),
                };
                if let Err(why) = self.answer(message, &mut flows) {
                    break why;
                }
            };
            flows.end();
            self.over.store(true, Ordering::Relaxed);
            (flows.asked_for(), why)
        })
    }

    /// Says why it ends.
    fn tell(&self, refused: Refused) -> String {
        let why = refused.message.to_string();
        let _ = self.writer.send(&FromResponder::Refused(refused));
        why
    }

    /// Does what is asked for; an error ends the session.
    fn answer(&self, message: FromClient, flows: &mut Flows<'_, '_>) -> Result<(), String> {
        let answer = match message {
            FromClient::Ping(ping) => {
                let received_ns = self.clock.now().as_nanos();
                Some(FromResponder::Pong(Pong {
                    number: ping.number,
                    received_ns,
                    sent_ns: self.clock.now().as_nanos(),
                }))
            }
            FromClient::Kernel(names) => Some(FromResponder::Kernel(kernel::values(&names))),
            FromClient::Transfer(asked) => flows.transfer(asked).map_err(|error| error.to_string())?,
            FromClient::Echo(asked) => flows.echo(asked).map_err(|error| error.to_string())?,
            FromClient::Burst(asked) => flows.burst(asked).map_err(|error| error.to_string())?,
            FromClient::Done(flow) => {
                flows.done(flow.flow);
                None
            }
            FromClient::Stop(flow) => {
                flows.stop(flow.flow);
                None
            }
            FromClient::Greeting(_) => {
                return Err(self.tell(refused(Why::Malformed, "a second greeting")));
            }
        };
        match answer {
            Some(answer) => self.writer.send(&answer).map_err(|error| format!("lost: {error}")),
            None => Ok(()),
        }
    }
}
