//! What held a connection, by the counters of the kernel that sends: no capture, no guess of where it was made.
//!
//! Linux counts for how long a sender was busy, and of this, held up by the peer's window or its own send buffer (`tcpi_busy_time` and its
//! neighbours, Linux 4.10). The rest of the busy time belongs to what the other fields of the same look say.

use crate::connection::summary;
use crate::{ConnectionReport, Limit, LimitShare, Losses, Timers, Vantage};
use farpath_units::{Bytes, Duration, DurationHistogram, Rate};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What a kernel says of a connection at one instant. The fields are those of `struct tcp_info`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Look {
    /// When, on any clock.
    pub at: Duration,
    /// `busy_time`: something waited to be sent or acknowledged. This and the next two are sums since the connection began.
    pub busy: Duration,
    /// `rwnd_limited`: of this, held up by the peer's window.
    pub receive_window_limited: Duration,
    /// `sndbuf_limited`: of this, held up by the send buffer.
    pub send_buffer_limited: Duration,
    /// `state` is SYN-SENT or SYN-RECEIVED.
    pub opens: bool,
    /// `ca_state` is Recovery or Loss.
    pub repairs: bool,
    /// `snd_cwnd`, segments.
    pub cwnd: u32,
    /// `snd_ssthresh`; `None` where it is infinite.
    pub ssthresh: Option<u32>,
    /// `unacked`, segments.
    pub in_flight: u32,
    /// `notsent_bytes`.
    pub not_sent: Bytes,
    /// `snd_mss`.
    pub mss: Bytes,
    /// `rtt`.
    pub srtt: Option<Duration>,
    /// `min_rtt`.
    pub min_rtt: Option<Duration>,
    /// `snd_wnd`, where the kernel tells it (Linux 5.4).
    pub window: Option<Bytes>,
    /// `delivery_rate`.
    pub delivery_rate: Option<Rate>,
    /// `delivery_rate_app_limited`.
    pub application_limited: bool,
    /// Whether the congestion control paces by what it takes for the path's rate, as BBR does.
    pub paces_by_path: bool,
    /// `bytes_acked`, `bytes_received`.
    pub acknowledged: Bytes,
    /// The other way.
    pub received: Bytes,
    /// `rcv_wnd`: the window that this end announces.
    pub own_window: Option<Bytes>,
    /// Received bytes that the program has not read.
    pub unread: Bytes,
    /// `rcv_rtt`: the round trip as a receiver guesses it.
    pub receiver_rtt: Option<Duration>,
    /// `data_segs_out`.
    pub segments: u32,
    /// `total_retrans`.
    pub retransmissions: u32,
}

/// What held a connection between two looks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stretch {
    /// For how long.
    pub time: Duration,
    /// Payload bytes that were acknowledged, and that came.
    pub acknowledged: Bytes,
    /// The other way.
    pub received: Bytes,
    /// What it was spent on; the times add up to the whole.
    pub limits: BTreeMap<Limit, Duration>,
}

impl Stretch {
    /// Another one behind this.
    pub fn add(&mut self, next: &Stretch) {
        self.time += next.time;
        self.acknowledged = Bytes(self.acknowledged.0 + next.acknowledged.0);
        self.received = Bytes(self.received.0 + next.received.0);
        for (limit, time) in &next.limits {
            *self.limits.entry(*limit).or_default() += *time;
        }
    }

    /// What of it each limit had, the longest first, as parts of one.
    pub fn shares(&self) -> Vec<(Limit, f64)> {
        let whole = self.time.as_secs_f64();
        let mut shares: Vec<_> =
            self.limits.iter().map(|(limit, time)| (*limit, time.as_secs_f64() / whole)).collect();
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        shares
    }
}

/// A round trip above the shortest one by one part of so many, and by [`STANDING_TIME`], is a queue that stands.
const STANDING: u64 = 4;
const STANDING_TIME: Duration = Duration::from_millis(2);
/// A window or buffer holds a sender up where it did so for one part of so many of a time that lies no more than so many round trips back.
const LEAST_HELD: u64 = 10;
const RECENT: u64 = 2;
/// A receiver whose window lets in this share of what comes is what holds the sender.
const FILLED: f64 = 0.9;

/// What held a connection from one look to the next. `held` is the buffer or window that has held it up in the last round trips: what is
/// not its doing by the count is by consequence, as the pace of BBR, which follows from what the window let through.
fn between(before: &Look, now: &Look, held: Option<Limit>) -> Stretch {
    let time = now.at.saturating_sub(before.at);
    let acknowledged = Bytes(now.acknowledged.0.saturating_sub(before.acknowledged.0));
    let received = Bytes(now.received.0.saturating_sub(before.received.0));
    let mut limits = BTreeMap::new();
    if before.opens {
        limits.insert(Limit::Handshake, time);
        return Stretch { time, acknowledged, received, limits };
    }
    if received > acknowledged {
        limits.insert(of_receiver(now, time, received), time);
        return Stretch { time, acknowledged, received, limits };
    }
    // The kernel counts in ticks: what it says may be more than the time that passed.
    let busy = now.busy.saturating_sub(before.busy).min(time);
    let receiver = now.receive_window_limited.saturating_sub(before.receive_window_limited).min(busy);
    let buffer = now.send_buffer_limited.saturating_sub(before.send_buffer_limited).min(busy - receiver);
    let closed = now.window.is_some_and(|window| window < now.mss);
    let parts = [
        (Limit::Application, time - busy),
        (if closed { Limit::ZeroWindow } else { Limit::ReceiveWindow }, receiver),
        (Limit::SendBuffer, buffer),
        (of_sender(before, now, held), busy - receiver - buffer),
    ];
    for (limit, part) in parts {
        if part > Duration::ZERO {
            *limits.entry(limit).or_default() += part;
        }
    }
    Stretch { time, acknowledged, received, limits }
}

/// What holds a sender that is busy and held up by neither the peer's window nor its buffer.
fn of_sender(before: &Look, now: &Look, held: Option<Limit>) -> Limit {
    let queue_stands = now
        .srtt
        .zip(now.min_rtt)
        .is_some_and(|(srtt, least)| srtt > least + (least / STANDING).max(STANDING_TIME));
    let has_room = now.in_flight < now.cwnd;
    if before.repairs || now.repairs || now.retransmissions > before.retransmissions {
        return Limit::Loss;
    }
    if let Some(limit) = held {
        return limit;
    }
    match now {
        // All that was written is on its way, and more could be.
        _ if now.not_sent == Bytes(0) && now.application_limited && has_room => Limit::Application,
        _ if queue_stands => Limit::PathRate,
        // There is data, and the window has room for a quarter of it more: something else holds it back.
        _ if now.not_sent >= now.mss && now.in_flight + now.cwnd.div_ceil(4) < now.cwnd => {
            if now.paces_by_path { Limit::PathRate } else { Limit::Paced }
        }
        _ if now.ssthresh.is_none_or(|threshold| now.cwnd < threshold) => Limit::SlowStart,
        _ => Limit::CongestionWindow,
    }
}

/// What a receiver knows of why no more came.
fn of_receiver(now: &Look, time: Duration, received: Bytes) -> Limit {
    let Some(window) = now.own_window else { return Limit::Unclear };
    let round_trip = now.receiver_rtt.or(now.srtt).unwrap_or_default().as_secs_f64();
    let in_round_trip = received.0 as f64 / time.as_secs_f64().max(1e-9) * round_trip;
    if window < now.mss || now.unread >= window {
        Limit::ZeroWindow
    } else if in_round_trip >= FILLED * window.0 as f64 {
        Limit::ReceiveWindow
    } else {
        Limit::Unclear
    }
}

/// A connection that is looked at again and again.
#[derive(Debug)]
pub struct Watched {
    local: SocketAddr,
    remote: SocketAddr,
    first: Look,
    last: Look,
    whole: Stretch,
    /// The buffer or window that has held it up last, and when.
    held: Option<(Limit, Duration)>,
    round_trips: DurationHistogram,
    window: Option<Bytes>,
    delivered: Option<Rate>,
}

impl Watched {
    /// One that was seen for the first time.
    pub fn new(local: SocketAddr, remote: SocketAddr, first: Look) -> Watched {
        Watched {
            local,
            remote,
            first,
            last: first,
            whole: Stretch::default(),
            held: None,
            round_trips: DurationHistogram::default(),
            window: first.window,
            delivered: first.delivery_rate,
        }
    }

    /// The end that is looked at.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The other one.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The last look.
    pub fn last(&self) -> &Look {
        &self.last
    }

    /// Another look: what held it since the last one.
    pub fn look(&mut self, now: Look) -> Stretch {
        let recent = now.srtt.unwrap_or_default() * RECENT;
        let held = self.held.filter(|(_, at)| now.at.saturating_sub(*at) <= recent).map(|(limit, _)| limit);
        let stretch = between(&self.last, &now, held);
        let counted = [
            (
                Limit::ReceiveWindow,
                now.receive_window_limited.saturating_sub(self.last.receive_window_limited),
            ),
            (Limit::SendBuffer, now.send_buffer_limited.saturating_sub(self.last.send_buffer_limited)),
        ];
        if let Some((limit, time)) = counted.into_iter().max_by_key(|(_, time)| *time)
            && !time.is_zero()
            && time >= stretch.time / LEAST_HELD
        {
            self.held = Some((limit, now.at));
        }
        self.whole.add(&stretch);
        if let Some(srtt) = now.srtt.filter(|_| now.in_flight > 0) {
            self.round_trips.record(srtt);
        }
        self.window = self.window.max(now.window);
        self.delivered = self.delivered.max(now.delivery_rate);
        self.last = now;
        stretch
    }

    /// What held it since the first look, as is told of a capture. There are no frames, so no waits one by one.
    pub fn report(&self) -> ConnectionReport {
        let (first, last) = (&self.first, &self.last);
        let receives = self.whole.received > self.whole.acknowledged;
        let (sender, receiver) = if receives { (self.remote, self.local) } else { (self.local, self.remote) };
        let (bytes, bytes_back) = (self.whole.acknowledged.0, self.whole.received.0);
        let (bytes, bytes_back) = if receives { (bytes_back, bytes) } else { (bytes, bytes_back) };
        let min_rtt = if receives { last.receiver_rtt.or(last.min_rtt) } else { last.min_rtt };
        let mut limits: Vec<_> = self
            .whole
            .limits
            .iter()
            .map(|(limit, time)| LimitShare { limit: *limit, time_s: time.as_secs_f64(), bytes: 0 })
            .collect();
        limits.sort_by(|one, other| other.time_s.total_cmp(&one.time_s));
        let percentile = |percent| self.round_trips.percentile(percent).map(Duration::as_secs_f64);
        let mut report = ConnectionReport {
            sender,
            receiver,
            interface: 0,
            vantage: if receives { Vantage::NearReceiver } else { Vantage::NearSender },
            frames: (0, 0),
            start_ns: None,
            duration_s: self.whole.time.as_secs_f64(),
            bytes,
            bytes_back,
            data_packets: u64::from(last.segments.wrapping_sub(first.segments)),
            retransmissions: u64::from(last.retransmissions.wrapping_sub(first.retransmissions)),
            retransmissions_at_queue: 0,
            queue_s: None,
            losses: Losses::default(),
            timers: Timers::default(),
            sender_stack: None,
            receiver_stack: None,
            initial_window: None,
            most_in_flight: 0,
            iperf3: None,
            bytes_not_captured: 0,
            marked: 0,
            marks_echoed: 0,
            copies: 0,
            mss: u32::try_from(last.mss.0).unwrap_or(u32::MAX),
            window: if receives { last.own_window } else { self.window }.map(|window| window.0),
            min_rtt_s: min_rtt.map(Duration::as_secs_f64),
            sender_rtt_s: None,
            rtt_s: percentile(50).zip(percentile(95)).zip(percentile(99)).map(|((a, b), c)| [a, b, c]),
            delivered_bit_per_s: self.delivered.filter(|_| !receives).map(|rate| rate.bit_per_s() as f64),
            path_rate_bit_per_s: None,
            granted_bit_per_s: None,
            inferred: None,
            tunnel: None,
            sender_opened: None,
            limits,
            moments: Vec::new(),
            summary: String::new(),
            intervals: Vec::new(),
        };
        report.summary = summary(&report);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A busy sender with a window of ten segments over 100 ms, of which all are in flight.
    fn busy(at: Duration) -> Look {
        Look {
            at,
            busy: at,
            cwnd: 10,
            ssthresh: Some(10),
            in_flight: 10,
            not_sent: Bytes(100_000),
            mss: Bytes(1448),
            srtt: Some(MS * 100),
            min_rtt: Some(MS * 100),
            window: Some(Bytes(1_000_000)),
            ..Look::default()
        }
    }

    fn held(change: impl Fn(&mut Look)) -> Vec<(Limit, f64)> {
        let mut now = busy(MS * 100);
        now.acknowledged = Bytes(1);
        change(&mut now);
        between(&busy(Duration::ZERO), &now, None).shares()
    }

    #[test]
    fn what_the_kernel_counts_is_taken_and_the_rest_is_told_by_its_state() {
        assert_eq!(held(|_| {}), [(Limit::CongestionWindow, 1.0)]);
        assert_eq!(held(|now| now.ssthresh = None), [(Limit::SlowStart, 1.0)]);
        assert_eq!(held(|now| now.srtt = Some(MS * 126)), [(Limit::PathRate, 1.0)]);
        assert_eq!(held(|now| now.retransmissions = 1), [(Limit::Loss, 1.0)]);
        assert_eq!(held(|now| now.in_flight = 5), [(Limit::Paced, 1.0)]);
        let paced = |now: &mut Look| (now.in_flight, now.paces_by_path) = (5, true);
        assert_eq!(held(paced), [(Limit::PathRate, 1.0)]);
        let written = |now: &mut Look| {
            (now.in_flight, now.not_sent, now.application_limited) = (5, Bytes(0), true);
        };
        assert_eq!(held(written), [(Limit::Application, 1.0)]);
        let parts = |now: &mut Look| {
            (now.busy, now.receive_window_limited, now.send_buffer_limited) = (MS * 90, MS * 60, MS * 10);
        };
        let tenths: Vec<_> =
            held(parts).into_iter().map(|(limit, share)| (limit, (share * 10.0).round())).collect();
        assert_eq!(tenths[..2], [(Limit::ReceiveWindow, 6.0), (Limit::CongestionWindow, 2.0)]);
        assert!(tenths.contains(&(Limit::SendBuffer, 1.0)) && tenths.contains(&(Limit::Application, 1.0)));
        let closed = |now: &mut Look| (now.receive_window_limited, now.window) = (MS * 100, Some(Bytes(0)));
        assert_eq!(held(closed), [(Limit::ZeroWindow, 1.0)]);
        // Ticks of the kernel's may be more than the time that passed.
        let ticks = |now: &mut Look| (now.busy, now.send_buffer_limited) = (MS * 104, MS * 108);
        assert_eq!(held(ticks), [(Limit::SendBuffer, 1.0)]);
    }

    #[test]
    fn a_receiver_knows_of_its_own_window() {
        let received = |window: u64, unread: u64| {
            held(move |now| {
                (now.received, now.own_window, now.unread) =
                    (Bytes(64_000), Some(Bytes(window)), Bytes(unread));
            })
        };
        assert_eq!(received(64_000, 0), [(Limit::ReceiveWindow, 1.0)]);
        assert_eq!(received(64_000, 65_000), [(Limit::ZeroWindow, 1.0)]);
        assert_eq!(received(1_000_000, 0), [(Limit::Unclear, 1.0)]);
    }

    #[test]
    fn a_pace_that_follows_from_a_full_window_is_the_windows() {
        let addresses = ["192.0.2.1:1".parse().expect("one"), "192.0.2.2:2".parse().expect("one")];
        let mut watched = Watched::new(addresses[0], addresses[1], busy(Duration::ZERO));
        for step in 1..=40 {
            let mut now = busy(MS * 50 * step);
            // Every second time it is the window that is counted; between, BBR's pace.
            now.receive_window_limited = MS * 50 * step.div_ceil(2);
            (now.in_flight, now.paces_by_path) = (5, true);
            now.acknowledged = Bytes(10_000 * step);
            watched.look(now);
        }
        let report = watched.report();
        assert_eq!((report.limits.len(), report.limits[0].limit), (1, Limit::ReceiveWindow));
        assert!((report.limits[0].time_s - 2.0).abs() < 1e-9);
        assert_eq!(report.bytes, 400_000);
        assert_eq!(
            report.summary,
            "100 % of 2.00 s were spent with the receive window full: 1.00 MB over 100 ms allow 80.00 Mbit/s"
        );
    }
}
