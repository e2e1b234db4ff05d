//! Datagrams between this host and the peer: echoes for the round trip, and bursts for the rate and the queue.

use crate::peer::{MeasureError, News, Peer};
use crate::protocol::{BurstAsked, EchoAsked, FromClient};
use farpath_emu::RealTime;
use farpath_run::{FlowRow, Metric, Outcome, SeriesRow};
use farpath_traffic::datagram::{
    self, Answered, Arrival, BurstSent, DatagramSocket, Echo, Echoed, Until, receive_burst, send_burst,
};
use farpath_units::{Bytes, Duration, Instant};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Longest IP packet of a burst, where the path's own limit is not smaller: Ethernet's.
const PACKET: u64 = 1500;
/// The longest that echoes take because of a rate that the peer names; asked for to be further apart, they may take
/// longer.
const LONGEST: Duration = Duration::from_secs(600);
/// How often is looked what the peer says.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Echoes that have come back.
#[derive(Debug, Clone)]
pub struct Echoes {
    /// What became of them. Times count from the first one's sending.
    pub echoed: Echoed,
    /// Different ones that had come to the peer.
    pub arrived: u32,
    /// IP packet of each.
    pub packet: Bytes,
}

/// A burst that has been received.
#[derive(Debug, Clone)]
pub struct Burst {
    /// How many were sent.
    pub sent: u32,
    /// How long sending took.
    pub within: Duration,
    /// What arrived. `sent_at` and `arrived_at` are of two clocks.
    pub arrivals: Vec<Arrival>,
    /// IP packet of each.
    pub packet: Bytes,
    /// Datagrams that found no room where they arrived.
    pub dropped_there: u32,
}

/// Sends datagrams that the peer sends back.
///
/// # Errors
/// The peer refuses, or is lost; this one cannot. To be stopped is one too.
pub fn echo(peer: &mut Peer, asked: Echo, stop: &AtomicBool) -> Result<Echoes, MeasureError> {
    let flow = peer.next_flow();
    let packet = Bytes(asked.size as u64) + datagram::headers(peer.address().ip());
    let least = peer.max_rate().map_or(Duration::ZERO, |rate| rate.time_to_send(packet));
    let takes = least * asked.count.into();
    if let Some(rate) = peer.max_rate().filter(|_| least > asked.interval && takes > LONGEST) {
        return Err(MeasureError::TooSlow { address: peer.address(), rate, count: asked.count, takes });
    }
    let asked = Echo { interval: asked.interval.max(least), ..asked };
    let takes = asked.interval * asked.count.into() + asked.linger + peer.told_within();
    let message =
        EchoAsked { flow, count: asked.count, size: asked.size as u32, within_ns: takes.as_nanos() };
    let mut socket = socket(peer, flow, &FromClient::Echo(message), stop)?;
    let clock = peer.clock();
    // Who is put aside between looking at the clock and sending measures other programs. Where it is refused, so be it.
    let _ahead = RealTime::of_program();
    let begun = clock.now();
    let until = Until { epoch: clock.epoch(), deadline: begun + takes, stop };
    let mut echoed = datagram::echo(&mut socket, asked, until).map_err(here)?;
    for one in &mut echoed.answered {
        one.sent_at = Instant::ZERO + one.sent_at.saturating_since(begun);
        one.back_at = Instant::ZERO + one.back_at.saturating_since(begun);
    }
    stopped(stop)?;
    peer.done(flow)?;
    let (said, _) = peer_end(peer, flow, 0, stop)?;
    let arrived = said.max(echoed.arrived).min(echoed.sent);
    Ok(Echoes { echoed, arrived, packet })
}

/// Sends a burst of `count` full packets to the peer, or has it send one. When no more is sent, arrivals may be as
/// far apart as `quiet`.
///
/// # Errors
/// As [`echo`].
pub fn burst(
    peer: &mut Peer,
    up: bool,
    count: u32,
    quiet: Duration,
    stop: &AtomicBool,
) -> Result<Burst, MeasureError> {
    let flow = peer.next_flow();
    let headers = datagram::headers(peer.address().ip());
    let packet = peer.path_mtu().map_or(PACKET, |mtu| mtu.0.min(PACKET));
    let size = packet.saturating_sub(headers.0).clamp(datagram::LEAST as u64, datagram::MOST as u64);
    let message = BurstAsked {
        flow,
        sends: !up,
        count,
        size: size as u32,
        quiet_ns: quiet.as_nanos(),
        within_ns: peer.told_within().as_nanos(),
    };
    let mut socket = socket(peer, flow, &FromClient::Burst(message), stop)?;
    let clock = peer.clock();
    let until = Until { epoch: clock.epoch(), deadline: clock.now() + peer.told_within(), stop };
    let packet = Bytes(size) + headers;
    if up {
        let BurstSent { sent, within } =
            send_burst(&mut socket, count, size as usize, peer.max_rate(), until).map_err(here)?;
        stopped(stop)?;
        peer.done(flow)?;
        let (_, there) = peer_end(peer, flow, count, stop)?;
        return Ok(Burst {
            sent,
            within,
            arrivals: there.arrivals,
            packet,
            dropped_there: there.dropped_here,
        });
    }
    let over = AtomicBool::new(false);
    let (received, peer_end) = thread::scope(|scope| {
        let receive = || receive_burst(&mut socket, count, &over, quiet, until);
        let receives = thread::Builder::new().spawn_scoped(scope, receive).map_err(here)?;
        let peer_end = peer_end(peer, flow, 0, stop);
        over.store(true, Ordering::Relaxed);
        Ok((receives.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), peer_end))
    })?;
    let ((sent, there), received) = (peer_end?, received.map_err(here)?);
    Ok(Burst {
        sent,
        within: there.within,
        arrivals: received.arrivals,
        packet,
        dropped_there: received.dropped_here,
    })
}

/// Makes this host's socket for what the peer has been asked for.
fn socket(
    peer: &mut Peer,
    flow: u32,
    message: &FromClient,
    stop: &AtomicBool,
) -> Result<DatagramSocket, MeasureError> {
    let ready = peer.ask(flow, message, stop, |_| {})?;
    let token = ready.token.parse().map_err(|error| peer.malformed(&error))?;
    let mut address = peer.address();
    address.set_port(ready.port);
    DatagramSocket::to(SocketAddr::new(peer.local().ip(), 0), address, token).map_err(here)
}

/// What the peer's end of a flow has seen.
struct PeerDatagrams {
    within: Duration,
    arrivals: Vec<Arrival>,
    dropped_here: u32,
}

/// What the peer says of a flow of which `most` datagrams may have arrived there.
fn peer_end(
    peer: &mut Peer,
    flow: u32,
    most: u32,
    stop: &AtomicBool,
) -> Result<(u32, PeerDatagrams), MeasureError> {
    let deadline = peer.clock().now() + peer.told_within() + peer.told_within();
    let mut arrivals = Vec::new();
    loop {
        stopped(stop)?;
        if peer.clock().now() >= deadline {
            return Err(peer.malformed(&"it does not say what became of datagrams"));
        }
        match peer.wait(LOOK_EVERY, &[stop])? {
            Some(News::Datagrams(part)) if part.flow == flow => {
                let time = Instant::from_nanos;
                // As many parts as there are thousands, and an empty one where nothing has arrived.
                let empty = part.more && part.arrivals.is_empty();
                if empty || arrivals.len() + part.arrivals.len() > most as usize {
                    return Err(
                        peer.malformed(&"it says of more datagrams than were sent that they have arrived")
                    );
                }
                arrivals.extend(part.arrivals.iter().map(|&(number, sent, arrived)| Arrival {
                    number,
                    sent_at: time(sent),
                    arrived_at: time(arrived),
                }));
                if !part.more {
                    let within = Duration::from_nanos(part.within_ns);
                    let dropped_here = part.dropped_here;
                    return Ok((part.count, PeerDatagrams { within, arrivals, dropped_here }));
                }
            }
            Some(News::Failed(_, why)) => return Err(peer.malformed(&why)),
            _ => {}
        }
    }
}

fn stopped(stop: &AtomicBool) -> Result<(), MeasureError> {
    if stop.load(Ordering::Relaxed) { Err(MeasureError::Stopped) } else { Ok(()) }
}

fn here(error: io::Error) -> MeasureError {
    MeasureError::Here(error.to_string())
}

impl Echoes {
    /// Round trips, the shortest first.
    pub fn round_trips(&self) -> Vec<Duration> {
        let mut all: Vec<Duration> = self.echoed.answered.iter().map(round_trip).collect();
        all.sort_unstable();
        all
    }

    /// How many were lost on the way there, and how many of those that had arrived on the way back.
    pub fn lost(&self) -> (u32, u32) {
        let back = self.echoed.answered.len() as u32;
        (self.echoed.sent - self.arrived, self.arrived.saturating_sub(back))
    }

    /// How much the transit times of datagrams that follow each other differ, smoothed as RFC 3550 §6.4.1 does; on the
    /// way there and on the way back. It needs no clocks that agree.
    pub fn jitter_rfc3550(&self) -> (Duration, Duration) {
        let mut in_order = self.echoed.answered.clone();
        in_order.sort_unstable_by_key(|one| one.number);
        let smoothed = |transit: fn(&Answered) -> i128| {
            let differences = in_order.windows(2).map(|pair| (transit(&pair[1]) - transit(&pair[0])).abs());
            // Sixteenths of a nanosecond, in integers: the mean moves by a sixteenth of the difference.
            let sixteenths = differences.fold(0, |jitter, difference| jitter + difference - jitter / 16);
            Duration::from_nanos(u64::try_from(sixteenths / 16).unwrap_or(u64::MAX))
        };
        (
            smoothed(|one| i128::from(one.arrived_at.as_nanos()) - i128::from(one.sent_at.as_nanos())),
            smoothed(|one| i128::from(one.back_at.as_nanos()) - i128::from(one.arrived_at.as_nanos())),
        )
    }

    /// Answers that came after one of a later datagram.
    pub fn reordered(&self) -> usize {
        let mut latest = None;
        let late = self.echoed.answered.iter().filter(|one| {
            let late = latest.is_some_and(|latest| one.number < latest);
            latest = latest.max(Some(one.number));
            late
        });
        late.count()
    }

    /// As a flow, and its round trips over time.
    pub fn row(&self, number: u32) -> (FlowRow, Vec<SeriesRow>) {
        let sent = Bytes(self.packet.0 * u64::from(self.echoed.sent));
        let (there, back) = self.lost();
        let rows: Vec<SeriesRow> = self
            .echoed
            .answered
            .iter()
            .map(|one| SeriesRow {
                time: one.back_at,
                flow: number,
                metric: Metric::RttSample,
                value: round_trip(one).as_nanos(),
            })
            .collect();
        let row = FlowRow {
            detail: format!("{} datagrams of {}, sent back", self.echoed.sent, self.packet),
            ended_at: self.echoed.answered.iter().map(|one| one.back_at).max(),
            bytes_read: Bytes(self.packet.0 * self.echoed.answered.len() as u64),
            drops_data_direction: Some(there.into()),
            drops_ack_direction: Some(back.into()),
            min_rtt: self.round_trips().first().copied(),
            ..FlowRow::new(number, "forward", Outcome::Completed, sent)
        };
        (row, rows)
    }
}

fn round_trip(one: &Answered) -> Duration {
    one.back_at.saturating_since(one.sent_at)
}
