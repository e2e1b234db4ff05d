//! What held the connections of programs: what the kernel of both hosts counts of them, looked at while they run.

use super::connections::Connection;
use farpath_diagnose::live::{Look, Watched};
use farpath_emu::{Clock, Host, Namespace};
use farpath_path::PerDirection;
use farpath_traffic::info::{CongestionState, State};
use farpath_traffic::sockets::{Sockets, TcpSocket};
use farpath_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

/// Connections of a host that are looked at.
pub const MAX_WATCHED: usize = 4096;

/// From one look to the next; one takes no more than a tenth of the time.
const EVERY: StdDuration = StdDuration::from_millis(10);

/// Congestion controls that pace by their estimate of the path's rate.
const PACE_BY_PATH: [&str; 3] = ["bbr", "bbr2", "bbr3"];

/// What held the sender of most of a connection's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// In a sentence.
    pub summary: String,
    /// By what it waited for, in ns; they add up to the time for which it was looked at.
    pub limits_ns: BTreeMap<String, u64>,
}

/// What the kernel says of a socket, as the diagnosis takes it.
pub fn look(socket: &TcpSocket, at: Duration) -> Look {
    let info = &socket.info;
    let control = socket.congestion_control.as_deref();
    Look {
        at,
        busy: info.busy_time.unwrap_or_default(),
        receive_window_limited: info.rwnd_limited.unwrap_or_default(),
        send_buffer_limited: info.sndbuf_limited.unwrap_or_default(),
        opens: matches!(info.state, State::SynSent | State::SynReceived),
        repairs: matches!(info.congestion, CongestionState::Recovery | CongestionState::Loss),
        cwnd: info.snd_cwnd,
        ssthresh: info.snd_ssthresh,
        in_flight: info.unacked,
        not_sent: info.notsent_bytes.unwrap_or_default(),
        mss: info.snd_mss,
        srtt: info.srtt,
        min_rtt: info.min_rtt,
        window: info.snd_wnd.filter(|window| *window > Bytes(0) || info.unacked == 0),
        delivery_rate: info.delivery_rate,
        application_limited: info.delivery_rate_app_limited,
        paces_by_path: control.is_some_and(|control| PACE_BY_PATH.contains(&control)),
        acknowledged: info.bytes_acked.unwrap_or_default(),
        received: info.bytes_received.unwrap_or_default(),
        own_window: info.rcv_wnd.filter(|window| *window > Bytes(0)),
        unread: Bytes(socket.unread.into()),
        receiver_rtt: Some(info.rcv_rtt).filter(|rtt| !rtt.is_zero()),
        segments: info.data_segs_out.unwrap_or_default(),
        retransmissions: info.total_retrans,
    }
}

/// Both hosts' sockets, which are looked at until this ends.
pub(super) struct Looks {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<Vec<Watched>>>>,
}

impl Looks {
    /// Begins to look.
    pub fn start(hosts: &PerDirection<Host>, clock: Clock) -> io::Result<Looks> {
        let mut looks = Looks { over: Arc::default(), threads: Vec::new() };
        for host in [&hosts.forward, &hosts.reverse] {
            let namespace = host.namespace().try_clone().map_err(io::Error::other)?;
            let over = Arc::clone(&looks.over);
            looks.threads.push(thread::Builder::new().spawn(move || watch(&namespace, clock, &over))?);
        }
        Ok(looks)
    }

    /// Ends looking, and says of each connection what held the side that sent more.
    pub fn end(mut self, connections: &mut [Connection]) -> io::Result<()> {
        self.over.store(true, Ordering::Relaxed);
        let mut found: HashMap<_, Watched> = HashMap::new();
        for thread in core::mem::take(&mut self.threads) {
            for watched in thread.join().expect("it does not panic")? {
                found.insert((watched.local(), watched.remote()), watched);
            }
        }
        for connection in connections.iter_mut().filter(|connection| connection.protocol == "tcp") {
            let opener = (connection.opener, connection.opener_port).into();
            let peer = (connection.peer, connection.peer_port).into();
            let sender = match connection.sent.payload_bytes >= connection.received.payload_bytes {
                true => (opener, peer),
                false => (peer, opener),
            };
            connection.held = found.get(&sender).map(held);
        }
        Ok(())
    }
}

/// Nobody looks any more where a run has failed.
impl Drop for Looks {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn held(watched: &Watched) -> Held {
    let report = watched.report();
    let limits = report
        .limits
        .iter()
        .map(|share| (share.limit.name().to_owned(), Duration::from_secs_f64(share.time_s).as_nanos()));
    Held { limits_ns: limits.collect(), summary: report.summary }
}

#[expect(clippy::disallowed_methods, reason = "programs run in real time")]
fn watch(namespace: &Namespace, clock: Clock, over: &AtomicBool) -> io::Result<Vec<Watched>> {
    namespace.enter().map_err(io::Error::other)?;
    let mut sockets = Sockets::open()?;
    let mut watched: HashMap<u64, Watched> = HashMap::new();
    while !over.load(Ordering::Relaxed) {
        let began = clock.now();
        take(&mut watched, &sockets.connections(None)?, clock.now().since_start());
        let took = clock.now().saturating_since(began);
        thread::sleep(EVERY.max(StdDuration::from_nanos(took.as_nanos()) * 10));
    }
    Ok(watched.into_values().collect())
}

fn take(watched: &mut HashMap<u64, Watched>, sockets: &[TcpSocket], at: Duration) {
    for socket in sockets {
        let is_full = watched.len() >= MAX_WATCHED;
        match watched.get_mut(&socket.cookie) {
            Some(known) => drop(known.look(look(socket, at))),
            None if is_full => {}
            None => {
                let new = Watched::new(socket.local, socket.remote, look(socket, at));
                watched.insert(socket.cookie, new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_traffic::TcpInfo;

    #[test]
    fn connections_beyond_those_that_are_watched_are_not() {
        let mut watched = HashMap::new();
        let address = "192.0.2.1:1".parse().expect("one");
        let info = TcpInfo::parse(&[0; 280]).expect("long enough");
        let socket = |cookie| TcpSocket {
            local: address,
            remote: address,
            cookie,
            inode: 1,
            unread: 0,
            congestion_control: None,
            info,
        };
        let sockets: Vec<_> = (0..2 * MAX_WATCHED as u64).map(socket).collect();
        take(&mut watched, &sockets, Duration::ZERO);
        take(&mut watched, &sockets, Duration::from_secs(1));
        assert_eq!(watched.len(), MAX_WATCHED);
        assert_eq!(held(&watched[&0]).limits_ns.values().sum::<u64>(), 1_000_000_000);
    }
}
