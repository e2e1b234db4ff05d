//! What the driver asks of a TCP endpoint beyond being one.

use farpath_tcp::cc::Pace;
use farpath_tcp::{Connection, Endpoint, Tally};
use farpath_units::{Bytes, Duration, Instant};

/// How a connection fares, as far as its sender knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathReport {
    /// The handshake is over.
    pub established: bool,
    /// What became of what was sent.
    pub tally: Tally,
    /// Payload of a full segment.
    pub smss: u64,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// The smallest one seen.
    pub min_rtt: Option<Duration>,
    /// Times that the peer has told of marks of congestion.
    pub marks: u64,
    /// Whether there is data to be sent, or acknowledged.
    pub has_data: bool,
    /// Whether there never will be any more, and the peer has acknowledged that.
    pub is_done: bool,
}

/// An endpoint that can be told the rate to send at.
pub trait Paced: Endpoint {
    /// Deliveries and losses are counted from the handshake on.
    fn measure_delivery(&mut self);
    /// Sends at `pace`, whatever is lost, from the next segment on.
    fn send_at(&mut self, now: Instant, pace: Pace);
    /// Sends as its own congestion control says, which begins with what `bytes_per_s` takes in a round trip.
    fn fall_back(&mut self, now: Instant, bytes_per_s: u64);
    /// The peer takes so much, though it has not said so yet.
    fn assume_peer_window(&mut self, window: Bytes);
    /// How it fares.
    fn path(&self) -> PathReport;
}

impl Paced for Connection {
    fn measure_delivery(&mut self) {
        Connection::measure_delivery(self);
    }

    fn send_at(&mut self, now: Instant, pace: Pace) {
        Connection::send_at(self, now, pace);
    }

    fn fall_back(&mut self, now: Instant, bytes_per_s: u64) {
        Connection::fall_back(self, now, bytes_per_s);
    }

    fn assume_peer_window(&mut self, window: Bytes) {
        Connection::assume_peer_window(self, window);
    }

    fn path(&self) -> PathReport {
        let sender = self.sender();
        PathReport {
            established: self.established_at().is_some() && self.closed().is_none(),
            tally: sender.tally(),
            smss: sender.smss(),
            srtt: sender.rtt().srtt(),
            min_rtt: sender.rtt().min_rtt(),
            marks: sender.stats().ecn_responses,
            has_data: sender.has_data(),
            is_done: sender.is_done(),
        }
    }
}
