//! Name servers that listen on the machine itself alone: a relay on the host reaches them.

use crate::HostSettings;
use crate::host_error::HostError;
use crate::namespace::Namespace;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Where nameservers are asked.
const PORT: u16 = 53;
/// How often a thread looks whether it shall end.
const LOOK: Duration = Duration::from_millis(100);
/// How long a connection to a nameserver may be silent.
const SILENCE: Duration = Duration::from_secs(10);
/// Questions that wait for their answers; the oldest is forgotten beyond.
const WAITING: usize = 1024;
/// Connections at a time; more are closed.
const CONNECTIONS: usize = 32;

/// Threads that hand questions on, until it is dropped.
#[derive(Debug)]
pub(super) struct Relay {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Relay {
    /// One in `space` to the first nameserver of the calling thread's machine that is reached from nowhere else, and the `resolv.conf` that
    /// names the relay in its place. None where there is no such server.
    pub(super) fn for_this_machine(space: &Namespace) -> Result<(Option<Relay>, Option<String>), HostError> {
        let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let Some((server, text)) = replace_own(&text, HostSettings::far().address.0) else {
            return Ok((None, None));
        };
        let failed = |error| HostError::kernel("relay questions for names", "", error);
        let (datagrams, connections) = space
            .run(|| -> io::Result<_> {
                let datagrams = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
                Ok((datagrams, TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?))
            })?
            .map_err(failed)?;
        let relay = Relay::start(datagrams, connections, SocketAddr::new(server, PORT)).map_err(failed)?;
        Ok((Some(relay), Some(text)))
    }

    fn start(datagrams: UdpSocket, connections: TcpListener, server: SocketAddr) -> io::Result<Relay> {
        let any: IpAddr = if server.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        };
        let upstream = UdpSocket::bind((any, 0))?;
        upstream.connect(server)?;
        for socket in [&datagrams, &upstream] {
            socket.set_read_timeout(Some(LOOK))?;
        }
        connections.set_nonblocking(true)?;
        let over = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(Mutex::new(Asked::default()));
        let mut relay = Relay { over, threads: Vec::new() };
        let (here, there, of_questions) = (datagrams.try_clone()?, upstream.try_clone()?, Arc::clone(&asked));
        relay.run(move |over| questions(&here, &there, &of_questions, over))?;
        // From here on sockets are this thread's own.
        relay.run(move |over| answers(&datagrams, &upstream, &asked, over))?;
        relay.run(move |over| streams(&connections, server, over))?;
        Ok(relay)
    }

    fn run(&mut self, work: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<()> {
        let over = Arc::clone(&self.over);
        let thread = thread::Builder::new().name("farpath-names".to_owned()).spawn(move || work(&over))?;
        self.threads.push(thread);
        Ok(())
    }
}

/// Whether a server of this address is reached by the machine alone: on itself, or where a host behind a path has its own peer.
fn is_own(server: &IpAddr) -> bool {
    let hosts = [HostSettings::near(), HostSettings::far()];
    let of_hosts = hosts.iter().any(|host| *server == host.address.0 || *server == host.address.1);
    server.is_loopback() || of_hosts
}

/// The first nameserver of a resolv.conf(5) that only the machine reaches, and the text with `relay` in the place of all such.
fn replace_own(text: &str, relay: Ipv4Addr) -> Option<(IpAddr, String)> {
    let mut first = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let server =
            (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok()).flatten();
        match server.filter(is_own) {
            None => lines.push(line.to_owned()),
            Some(own) => {
                if first.replace(first.unwrap_or(own)).is_none() {
                    lines.push(format!("nameserver {relay}"));
                }
            }
        }
    }
    // resolv.conf(5): without a server it is the machine itself.
    if !text.lines().any(|line| line.split_whitespace().next() == Some("nameserver")) {
        first = Some(Ipv4Addr::LOCALHOST.into());
        lines.push(format!("nameserver {relay}"));
    }
    first.map(|server| (server, lines.join("\n") + "\n"))
}

/// Who asked what, by the number under which it was handed on.
#[derive(Default)]
struct Asked {
    next: u16,
    by_number: std::collections::BTreeMap<u16, (SocketAddr, [u8; 2])>,
}

impl Asked {
    /// The number under which a question is handed on.
    fn note(&mut self, client: SocketAddr, id: [u8; 2]) -> [u8; 2] {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.by_number.insert(number, (client, id));
        self.by_number.remove(&number.wrapping_sub(WAITING as u16));
        number.to_be_bytes()
    }
}

fn questions(here: &UdpSocket, upstream: &UdpSocket, asked: &Mutex<Asked>, over: &AtomicBool) {
    let mut packet = vec![0; 65_535];
    while !over.load(Ordering::Relaxed) {
        // What cannot be read or handed on is lost, as packets are: who asks asks again.
        let Ok((length, client)) = here.recv_from(&mut packet) else { continue };
        // RFC 1035 §4.1.1: a header of 12 bytes, the number first.
        if length < 12 {
            continue;
        }
        let id = [packet[0], packet[1]];
        let number = asked.lock().unwrap_or_else(PoisonError::into_inner).note(client, id);
        packet[..2].copy_from_slice(&number);
        let _ = upstream.send(&packet[..length]);
    }
}

fn answers(here: &UdpSocket, upstream: &UdpSocket, asked: &Mutex<Asked>, over: &AtomicBool) {
    let mut packet = vec![0; 65_535];
    while !over.load(Ordering::Relaxed) {
        let Ok(length @ 12..) = upstream.recv(&mut packet) else { continue };
        let number = u16::from_be_bytes([packet[0], packet[1]]);
        let found = asked.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&number);
        if let Some((client, id)) = found {
            packet[..2].copy_from_slice(&id);
            let _ = here.send_to(&packet[..length], client);
        }
    }
}

fn streams(listener: &TcpListener, server: SocketAddr, over: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    while !over.load(Ordering::Relaxed) {
        let Ok((client, _)) = listener.accept() else {
            thread::park_timeout(LOOK);
            continue;
        };
        if open.load(Ordering::Relaxed) >= CONNECTIONS {
            continue;
        }
        let open = Arc::clone(&open);
        open.fetch_add(1, Ordering::Relaxed);
        let hand_on = move || {
            let _ = converse(&client, server);
            open.fetch_sub(1, Ordering::Relaxed);
        };
        let _ = thread::Builder::new().name("farpath-names".to_owned()).spawn(hand_on);
    }
}

fn converse(client: &TcpStream, server: SocketAddr) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let server = TcpStream::connect_timeout(&server, SILENCE)?;
    for socket in [client, &server] {
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
    }
    thread::scope(|scope| {
        scope.spawn(|| copy(client, &server));
        copy(&server, client);
    });
    Ok(())
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn servers_on_the_machine_itself_are_replaced_and_others_stay() {
        let text =
            "search example\nnameserver 127.0.0.53\nnameserver ::1\nnameserver 192.0.2.1\noptions edns0\n";
        let (server, replaced) = replace_own(text, RELAY).expect("one is");
        assert_eq!(server, IpAddr::from([127, 0, 0, 53]));
        assert_eq!(replaced, "search example\nnameserver 10.0.0.2\nnameserver 192.0.2.1\noptions edns0\n");
        // Behind a path, with a host of its own behind another.
        assert_eq!(
            replace_own("nameserver 10.0.0.2\n", RELAY),
            Some((RELAY.into(), "nameserver 10.0.0.2\n".to_owned()))
        );
        assert_eq!(replace_own("nameserver 192.0.2.1\nnameserver 2001:db8::1\n", RELAY), None);
        assert_eq!(replace_own("# none\n", RELAY).expect("the machine").0, IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn the_oldest_question_is_forgotten() {
        let mut asked = Asked::default();
        let client = SocketAddr::from(([10, 0, 0, 1], 1));
        for _ in 0..70_000 {
            asked.note(client, [0, 7]);
        }
        assert_eq!(asked.by_number.len(), WAITING);
    }

    #[test]
    fn one_connection_too_many_is_closed() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = TcpListener::bind(local).expect("a port");
        let listener = TcpListener::bind(local).expect("a port");
        let (to, asked) = (server.local_addr().expect("bound"), listener.local_addr().expect("bound"));
        let _relay = Relay::start(UdpSocket::bind(local).expect("a port"), listener, to).expect("it starts");
        let connect = || TcpStream::connect(asked).expect("it listens");
        let open: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect()).collect();
        // Each has one to the server, which says nothing.
        let _held: Vec<_> = open.iter().map(|_| server.accept().expect("it is handed on")).collect();
        assert_eq!(connect().read(&mut [0]).expect("an end"), 0);
    }
}
