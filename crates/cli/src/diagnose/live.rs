//! `farpath diagnose --pid` and `--dst`: what holds connections of this machine now, by what its kernel counts.

use crate::args::DiagnoseArgs;
use crate::error::CliError;
use crate::{Ending, interrupt, output};
use farpath_diagnose::live::{Stretch, Watched};
use farpath_diagnose::{ConnectionReport, Report};
use farpath_emu::Namespace;
use farpath_emulate::socket_look;
use farpath_traffic::sockets::{Sockets, TcpSocket};
use farpath_units::Duration;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration as StdDuration, Instant};

/// Connections that get a line of their own each time; the others are summed.
const LINES: usize = 5;
/// Looks for a line; one takes no more than a tenth of the time between two.
const LOOKS: u32 = 20;
const SHORTEST: StdDuration = StdDuration::from_millis(10);
const LONGEST: StdDuration = StdDuration::from_millis(50);
/// Connections that have ended and are told of.
const ENDED: usize = 1000;

/// Which connections are watched.
enum Which {
    /// Those that a process has.
    Process(u32),
    /// Those with one of these addresses at the other end, and this port.
    Peer(Vec<IpAddr>, Option<u16>),
}

/// Watches until what is watched has ended, the time is over, or Ctrl-C.
pub fn watch(args: &DiagnoseArgs) -> Result<Ending, CliError> {
    let which = match (args.pid, &args.dst) {
        (Some(pid), _) => Which::Process(pid),
        (None, Some(peer)) => resolved(peer)?,
        (None, None) => unreachable!("clap asks for one of them"),
    };
    let namespace = match which {
        Which::Process(pid) => namespace_of(pid)?,
        Which::Peer(..) => None,
    };
    match namespace {
        None => watch_here(args, &which),
        Some(namespace) => namespace.run(|| watch_here(args, &which))?,
    }
}

/// `HOST` or `HOST:PORT`.
fn resolved(peer: &str) -> Result<Which, CliError> {
    let bare: Option<IpAddr> = peer.trim_matches(['[', ']']).parse().ok();
    let (host, port) = match (bare, peer.rsplit_once(':')) {
        (None, Some((host, port))) => match port.parse() {
            Ok(port) if port > 0 => (host, Some(port)),
            _ => return Err(CliError::NoPeer { found: peer.to_owned(), source: None }),
        },
        _ => (peer, None),
    };
    let addresses = (host.trim_matches(['[', ']']), port.unwrap_or(0)).to_socket_addrs();
    let addresses: Vec<_> = addresses
        .map_err(|source| CliError::NoPeer { found: peer.to_owned(), source: Some(source) })?
        .map(|address| address.ip().to_canonical())
        .collect();
    Ok(Which::Peer(addresses, port))
}

/// The network namespace of a process, where it is another one than ours.
fn namespace_of(pid: u32) -> Result<Option<Namespace>, CliError> {
    let failed = |source| CliError::Process { pid, source };
    let link = |who: &str| fs::read_link(format!("/proc/{who}/ns/net"));
    if link(&pid.to_string()).map_err(failed)? == link("self").map_err(failed)? {
        return Ok(None);
    }
    Namespace::of_process(pid).map(Some).map_err(failed)
}

/// The sockets that a process has, by their inodes; `None` where it has ended.
fn sockets_of(pid: u32) -> io::Result<Option<HashSet<u32>>> {
    let files = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        files => files?,
    };
    let inode = |target: &str| target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    let targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    Ok(Some(targets.filter_map(|target| inode(target.to_str()?)).collect()))
}

/// What is watched, and what was.
#[derive(Default)]
struct Seen {
    /// By the sockets' cookies.
    open: BTreeMap<u64, Connection>,
    ended: Vec<ConnectionReport>,
}

struct Connection {
    watched: Watched,
    /// Since the last line.
    stretch: Stretch,
    congestion_control: Option<String>,
    seen: bool,
}

#[expect(clippy::disallowed_methods, reason = "connections are watched in real time")]
fn watch_here(args: &DiagnoseArgs, which: &Which) -> Result<Ending, CliError> {
    let pid = args.pid.unwrap_or_default();
    let failed = |source| CliError::Process { pid, source };
    let asked = |source| CliError::Sockets { source };
    let every = StdDuration::from_nanos(args.every.as_nanos()).max(SHORTEST);
    let limit = args.within.map(|time| StdDuration::from_nanos(time.as_nanos()));
    let stop = interrupt::quiet_flag();
    let mut sockets = Sockets::open().map_err(asked)?;
    let mut seen = Seen::default();
    let begin = Instant::now();
    let mut line = every;
    let mut waits = false;
    loop {
        let asks = Instant::now();
        let (found, gone) = match which {
            Which::Peer(addresses, port) => {
                let mut found = sockets.connections(*port).map_err(asked)?;
                found.retain(|socket| addresses.contains(&socket.remote.ip()));
                (found, false)
            }
            Which::Process(pid) => match sockets_of(*pid).map_err(failed)? {
                None => (Vec::new(), true),
                Some(own) => {
                    let mut found = sockets.connections(None).map_err(asked)?;
                    found.retain(|socket| own.contains(&socket.inode));
                    (found, false)
                }
            },
        };
        let now = begin.elapsed();
        seen.look(&found, now);
        let over = gone
            || stop.load(Ordering::Relaxed)
            || limit.is_some_and(|limit| now >= limit)
            || (seen.open.is_empty() && !seen.ended.is_empty() && matches!(which, Which::Peer(..)));
        if now >= line {
            lines(&mut seen.open, now, args.json)?;
            line += every * u32::try_from((now - line).as_nanos() / every.as_nanos() + 1).unwrap_or(1);
        }
        if over {
            break;
        }
        if seen.open.is_empty() && seen.ended.is_empty() && !waits {
            waits = true;
            output::tell("no connection yet; waits for one");
        }
        let pause = (every / LOOKS).clamp(SHORTEST, LONGEST).max(asks.elapsed() * 10);
        let until = limit.map_or(line, |limit| limit.min(line));
        thread::sleep(pause.min(until.saturating_sub(begin.elapsed()).max(StdDuration::from_millis(1))));
    }
    let mut ended = seen.ended;
    ended.extend(seen.open.values().map(|connection| connection.watched.report()));
    if ended.is_empty() {
        return Err(CliError::NothingWatched);
    }
    // Attempts that led to nothing are worth a line where there is nothing else.
    if ended.iter().any(|report| report.bytes > 0) {
        ended.retain(|report| report.bytes > 0);
    }
    ended.sort_by_key(|report| core::cmp::Reverse(report.bytes));
    if args.json {
        super::print_json(&ended, args.connections, None)?;
    } else {
        output::print("")?;
        let report = Report {
            frames: 0,
            tcp_packets: 0,
            unknown_link: 0,
            connections: ended,
            packets_not_followed: 0,
            others: Vec::new(),
        };
        super::print(&report, args.connections, None)?;
    }
    Ok(Ending::Done)
}

impl Seen {
    /// Takes the sockets that there are now; those that are no longer there have ended.
    fn look(&mut self, sockets: &[TcpSocket], now: StdDuration) {
        self.open.values_mut().for_each(|connection| connection.seen = false);
        for socket in sockets {
            let look = socket_look(socket, Duration::from_secs_f64(now.as_secs_f64()));
            match self.open.get_mut(&socket.cookie) {
                Some(connection) => {
                    connection.stretch.add(&connection.watched.look(look));
                    connection.seen = true;
                }
                None => {
                    let connection = Connection {
                        watched: Watched::new(socket.local, socket.remote, look),
                        stretch: Stretch::default(),
                        congestion_control: socket.congestion_control.clone(),
                        seen: true,
                    };
                    self.open.insert(socket.cookie, connection);
                }
            }
        }
        let ended = &mut self.ended;
        self.open.retain(|_, connection| {
            if !connection.seen && ended.len() < ENDED {
                ended.push(connection.watched.report());
            }
            connection.seen
        });
    }
}

/// A line for each of the connections that carried the most since the last one.
fn lines(connections: &mut BTreeMap<u64, Connection>, now: StdDuration, as_json: bool) -> io::Result<()> {
    let mut busiest: Vec<&mut Connection> =
        connections.values_mut().filter(|connection| connection.stretch.time > Duration::ZERO).collect();
    let carried = |stretch: &Stretch| stretch.acknowledged.0 + stretch.received.0;
    busiest.sort_by_key(|connection| core::cmp::Reverse(carried(&connection.stretch)));
    let more = busiest.len().saturating_sub(LINES);
    for connection in busiest.iter().take(LINES) {
        let text = if as_json { object(connection, now) } else { line(connection, now) };
        output::print(&text)?;
    }
    if more > 0 && !as_json {
        let bytes: u64 = busiest[LINES..].iter().map(|connection| carried(&connection.stretch)).sum();
        output::print(&format!("{:>9}  {more} more connections with {bytes} B", ""))?;
    }
    busiest.into_iter().for_each(|connection| connection.stretch = Stretch::default());
    Ok(())
}

/// The limits that are said in a line have this share at the least.
const WORTH_SAYING: f64 = 0.05;

fn line(connection: &Connection, now: StdDuration) -> String {
    let Connection { watched, stretch, .. } = connection;
    let look = watched.last();
    let receives = stretch.received > stretch.acknowledged;
    let bytes = if receives { stretch.received } else { stretch.acknowledged };
    let rate = output::rate(bytes.0 as f64 * 8.0 / stretch.time.as_secs_f64());
    let limits: Vec<String> = stretch
        .shares()
        .into_iter()
        .filter(|(_, share)| *share >= WORTH_SAYING)
        .map(|(limit, share)| format!("{} {:.0} %", limit.name(), 100.0 * share))
        .collect();
    let ms = |time: Option<Duration>| {
        time.map_or_else(|| "–".to_owned(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3))
    };
    let state = match receives {
        true => format!(
            "receives, window {}",
            look.own_window.map_or_else(|| "–".to_owned(), |window| window.to_string())
        ),
        false => format!("rtt {}  cwnd {}", ms(look.srtt), look.cwnd),
    };
    format!("{:>7.1} s  {}  {rate:>14}  {state}  {}", now.as_secs_f64(), watched.remote(), limits.join(", "))
}

fn object(connection: &Connection, now: StdDuration) -> String {
    let Connection { watched, stretch, congestion_control, .. } = connection;
    let look = watched.last();
    let limits: BTreeMap<String, f64> = stretch
        .limits
        .iter()
        .map(|(limit, time)| {
            let name = serde_json::to_value(limit).expect("plain data");
            (name.as_str().expect("a name").to_owned(), time.as_secs_f64())
        })
        .collect();
    json!({
        "at_s": now.as_secs_f64(),
        "local": watched.local(),
        "remote": watched.remote(),
        "congestion_control": congestion_control,
        "time_s": stretch.time.as_secs_f64(),
        "acknowledged": stretch.acknowledged.0,
        "received": stretch.received.0,
        "rtt_s": look.srtt.map(Duration::as_secs_f64),
        "min_rtt_s": look.min_rtt.map(Duration::as_secs_f64),
        "cwnd": look.cwnd,
        "in_flight": look.in_flight,
        "not_sent": look.not_sent.0,
        "window": look.window.map(|window| window.0),
        "delivery_bit_per_s": look.delivery_rate.map(|rate| rate.bit_per_s()),
        "retransmissions": look.retransmissions,
        "limits_s": limits,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_traffic::TcpInfo;

    #[test]
    fn so_many_that_have_ended_are_kept_and_no_more() {
        let mut seen = Seen::default();
        let info = TcpInfo::parse(&[0; 280]).expect("long enough");
        for cookie in 0..2 * ENDED as u64 {
            let address = "192.0.2.1:1".parse().expect("one");
            let socket = TcpSocket {
                local: address,
                remote: address,
                cookie,
                inode: 1,
                unread: 0,
                congestion_control: None,
                info,
            };
            seen.look(&[socket], StdDuration::from_millis(cookie));
        }
        assert_eq!((seen.open.len(), seen.ended.len()), (1, ENDED));
    }

    #[test]
    fn a_peer_is_a_name_or_an_address_with_a_port_or_without() {
        let port = |peer: &str| match resolved(peer).expect("a peer") {
            Which::Peer(addresses, port) => (addresses[0].to_string(), port),
            Which::Process(_) => unreachable!(),
        };
        assert_eq!(port("192.0.2.1"), ("192.0.2.1".to_owned(), None));
        assert_eq!(port("192.0.2.1:80"), ("192.0.2.1".to_owned(), Some(80)));
        assert_eq!(port("2001:db8::1"), ("2001:db8::1".to_owned(), None));
        assert_eq!(port("[2001:db8::1]"), ("2001:db8::1".to_owned(), None));
        assert_eq!(port("[2001:db8::1]:80"), ("2001:db8::1".to_owned(), Some(80)));
        assert!(["", ":80", "localhost:0", "localhost:65536"].iter().all(|peer| resolved(peer).is_err()));
    }
}
