//! What the kernel of both hosts says of the sockets of programs while they run: what held each, and series.

use super::connections::{Connection, Found};
use super::programs::enter_last;
use farpath_diagnose::live::{Look, Watched};
use farpath_emu::{Clock, Host};
use farpath_experiment::{Scenario, base_rtt};
use farpath_observe::row_budget::RowBudget;
use farpath_observe::series::Series;
use farpath_path::{Direction, PerDirection};
use farpath_run::{Metric, SeriesRow};
use farpath_traffic::info::{CongestionState, State};
use farpath_traffic::sockets::{Sockets, TcpSocket};
use farpath_traffic::{Sample, TcpInfo};
use farpath_units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

/// Connections of a host that are looked at.
pub const MAX_WATCHED: usize = 4096;

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

/// The sockets of a host, and what its kernel has said of each so far.
#[derive(Debug)]
pub(super) struct HostSockets {
    netlink: Sockets,
    row_budget: Option<RowBudget>,
    /// From one look to the next.
    every: Duration,
    /// By their cookies, which grow.
    known: BTreeMap<u64, Known>,
}

#[derive(Debug)]
struct Known {
    since: Instant,
    watched: Watched,
    latest: TcpInfo,
    /// What it had counted when it was seen open first: of the handshake.
    timeouts_before: Option<u16>,
    series: Option<Series>,
}

impl HostSockets {
    /// Of both hosts, to be looked at as often as the scenario says; where series are recorded, as long as there is room for rows.
    pub fn open(
        hosts: &PerDirection<Host>,
        scenario: &Scenario,
        row_budget: Option<&RowBudget>,
    ) -> io::Result<[HostSockets; 2]> {
        let every = scenario.emulate.sample_over(base_rtt(scenario, Direction::Forward));
        let of = |host: &Host| -> io::Result<HostSockets> {
            let netlink = host.namespace().run(Sockets::open).map_err(io::Error::other)??;
            Ok(HostSockets { netlink, row_budget: row_budget.cloned(), every, known: BTreeMap::new() })
        };
        Ok([of(&hosts.forward)?, of(&hosts.reverse)?])
    }

    /// From one look to the next.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// Looks at all of them.
    pub fn look(&mut self, at: Instant) -> io::Result<()> {
        let sockets = self.netlink.connections(None)?;
        self.take(&sockets, at);
        Ok(())
    }

    /// Looks at one of them alone.
    pub fn look_at(&mut self, local: SocketAddr, remote: SocketAddr, at: Instant) -> io::Result<()> {
        let socket = self.netlink.connection(local, remote)?;
        self.take(socket.as_slice(), at);
        Ok(())
    }

    fn take(&mut self, sockets: &[TcpSocket], at: Instant) {
        for socket in sockets {
            let now = look(socket, at.since_start());
            let is_full = self.known.len() >= MAX_WATCHED;
            let known = match self.known.get_mut(&socket.cookie) {
                Some(known) => {
                    known.watched.look(now);
                    known.latest = socket.info;
                    known
                }
                None if is_full => continue,
                None => self.known.entry(socket.cookie).or_insert(Known {
                    since: at,
                    watched: Watched::new(socket.local, socket.remote, now),
                    latest: socket.info,
                    timeouts_before: None,
                    // Whose it is, is known at the end.
                    series: self.row_budget.clone().map(|row_budget| Series::within(0, row_budget)),
                }),
            };
            if !now.opens && known.timeouts_before.is_none() {
                known.timeouts_before = socket.info.total_rto;
            }
            if let Some(series) = &mut known.series {
                let sample = Sample { at, bytes: Bytes::ZERO, info: socket.info };
                series.sender(&sample, Bytes(u64::MAX), false);
            }
        }
    }

    /// Enters what is known of the senders of most of each connection's data.
    pub fn enter(both: [HostSockets; 2], found: &mut [Found]) {
        // Connections between the same ports come in the order of their beginnings.
        let mut senders: HashMap<(SocketAddr, SocketAddr), Vec<usize>> = HashMap::new();
        for (place, Found { connection, .. }) in found.iter().enumerate() {
            if connection.protocol == "tcp" {
                senders.entry(ends(connection)).or_default().push(place);
            }
        }
        for known in both.into_iter().flat_map(|host| host.known.into_values()) {
            let Some(places) = senders.get(&(known.watched.local(), known.watched.remote())) else {
                continue;
            };
            // Its SYN may leave before the first look at it, and a look may be at a socket whose SYN has not left yet.
            let place = places
                .iter()
                .rev()
                .find(|&&place| found[place].connection.first_ns <= known.since.as_nanos());
            let Found { connection, row, series } = &mut found[*place.unwrap_or(&places[0])];
            connection.held = Some(held(&known.watched));
            enter_last(row, &known.latest, known.timeouts_before);
            // Of who opened, Linux counts the SYN as acknowledged.
            let opened = u64::from(connection.sent.payload_bytes >= connection.received.payload_bytes);
            series.extend(known.series.into_iter().flat_map(Series::into_rows).map(|sample| {
                let syn = if sample.metric == Metric::Acked { opened } else { 0 };
                SeriesRow { flow: row.flow, value: sample.value.saturating_sub(syn), ..sample }
            }));
        }
    }
}

/// The sender of most of a connection's data, and who receives it.
fn ends(connection: &Connection) -> (SocketAddr, SocketAddr) {
    let opener = (connection.opener, connection.opener_port).into();
    let peer = (connection.peer, connection.peer_port).into();
    match connection.sent.payload_bytes >= connection.received.payload_bytes {
        true => (opener, peer),
        false => (peer, opener),
    }
}

/// Looks at both hosts' sockets in real time until this ends; each look takes no more than a tenth of the time.
pub(super) struct Looks {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<HostSockets>>>,
}

impl Looks {
    /// Begins to look.
    pub fn start(hosts: [HostSockets; 2], clock: Clock) -> io::Result<Looks> {
        let mut looks = Looks { over: Arc::default(), threads: Vec::new() };
        for host in hosts {
            let over = Arc::clone(&looks.over);
            looks.threads.push(thread::Builder::new().spawn(move || watch(host, clock, &over))?);
        }
        Ok(looks)
    }

    /// Ends looking.
    pub fn end(mut self) -> io::Result<[HostSockets; 2]> {
        self.over.store(true, Ordering::Relaxed);
        let mut ended = core::mem::take(&mut self.threads)
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"));
        let mut next = || ended.next().expect("one for each host");
        Ok([next()?, next()?])
    }
}

/// Nobody looks any more where a run has failed.
impl Drop for Looks {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "programs run in real time")]
fn watch(mut host: HostSockets, clock: Clock, over: &AtomicBool) -> io::Result<HostSockets> {
    while !over.load(Ordering::Relaxed) {
        let began = clock.now();
        host.look(began)?;
        let took = clock.now().saturating_since(began);
        thread::sleep(StdDuration::from_nanos((took * 10).max(host.every).as_nanos()));
    }
    Ok(host)
}

fn held(watched: &Watched) -> Held {
    let report = watched.report();
    let limits = report
        .limits
        .iter()
        .map(|share| (share.limit.name().to_owned(), Duration::from_secs_f64(share.time_s).as_nanos()));
    Held { limits_ns: limits.collect(), summary: report.summary }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_run::{FlowRow, Outcome};

    /// A SYN that was sent again is none of the data's, and what was said last counts.
    #[test]
    fn a_row_has_what_the_kernel_said_last() {
        let netlink = Sockets::open().expect("netlink");
        let mut host =
            HostSockets { netlink, row_budget: None, every: Duration::ZERO, known: BTreeMap::new() };
        let address = "192.0.2.1:1".parse().expect("one");
        let mut look = |at, state, total_rto, snd_cwnd| {
            let info = TcpInfo::parse(&[0; 280]).expect("long enough");
            let info = TcpInfo { state, total_rto, snd_cwnd, snd_mss: Bytes(1000), ..info };
            let (local, remote, congestion_control) = (address, address, None);
            let socket =
                TcpSocket { local, remote, cookie: 1, inode: 1, unread: 0, congestion_control, info };
            host.take(&[socket], Instant::from_nanos(at));
        };
        look(1, State::SynSent, Some(1), 1);
        look(2, State::Established, Some(1), 10);
        look(3, State::Established, Some(3), 4);
        let mut row = FlowRow::new(0, "forward", Outcome::Completed, Bytes(1));
        let known = host.known.get_mut(&1).expect("it was seen");
        enter_last(&mut row, &known.latest, known.timeouts_before);
        assert_eq!((row.timeouts, row.final_cwnd), (Some(2.0), Some(Bytes(4000))));
        // Kernels before Linux 6.7 do not count them.
        known.latest.total_rto = None;
        enter_last(&mut row, &known.latest, known.timeouts_before);
        assert_eq!(row.timeouts, None);
    }

    #[test]
    fn connections_beyond_those_that_are_watched_are_not() {
        let netlink = Sockets::open().expect("netlink");
        let mut host =
            HostSockets { netlink, row_budget: None, every: Duration::ZERO, known: BTreeMap::new() };
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
        host.take(&sockets, Instant::ZERO);
        host.take(&sockets, Instant::ZERO + Duration::from_secs(1));
        assert_eq!(host.known.len(), MAX_WATCHED);
        assert_eq!(held(&host.known[&0].watched).limits_ns.values().sum::<u64>(), 1_000_000_000);
    }
}
