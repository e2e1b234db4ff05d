//! The sending half under a controller that steers by the rate of delivery: it sets `cwnd` at every ACK, whatever is being
//! repaired, and nothing else does (Linux, `tcp_cong_control()` with a `cong_control`).

use super::Sender;
use super::recovery::Phase;
use crate::cc::{CongestionControl, RateSample, Repair};
use farpath_units::{Duration, Instant};

impl Sender {
    /// The connection is established: what the controller has to know, and whether rates are measured for it.
    pub(super) fn start_steering(&mut self, now: Instant) {
        self.steered = self.cc.steers_by_rate() || self.config.send.pacing;
        if !self.steered {
            return;
        }
        if self.cc.steers_by_rate() {
            self.board.keep_rate();
        }
        self.cc.on_established(&self.window, now, self.rtt.last_sample().0);
        self.set_pace();
    }

    /// An ACK has been taken; before it, `pipe_before` was in the network.
    #[inline(never)]
    pub(super) fn steer(&mut self, now: Instant, pipe_before: u64) {
        if self.cc.steers_by_rate() {
            self.steer_by_rate(now, pipe_before);
        }
        self.set_pace();
    }

    fn steer_by_rate(&mut self, now: Instant, pipe_before: u64) {
        let pipe = self.pipe();
        let acked = self.board.delivery().bytes;
        let rtt = self.board.delivery().latest.map(|latest| now.saturating_since(latest.at));
        let min_rtt = self.rtt.min_rtt().unwrap_or(Duration::ZERO);
        let Some(meter) = self.board.meter() else { return };
        let measured = meter.measure(now, acked, min_rtt);
        let (lost, lost_ever) = meter.lost();
        let sample = RateSample {
            now,
            measured,
            delivered: meter.total(),
            delivered_at: meter.delivered_at(),
            acked,
            lost,
            lost_ever,
            rtt,
            srtt: self.rtt.srtt(),
            pipe_before,
            pipe,
            repair: match self.phase {
                Phase::Open => Repair::None,
                Phase::Fast { .. } => Repair::Fast,
                Phase::Loss { .. } => Repair::Timeout,
            },
            next_departure: self.next_departure(),
        };
        let holds_rate = self.cc.on_rate_sample(&mut self.window, &sample);
        if holds_rate && let Some(meter) = self.board.meter() {
            meter.app_limited(pipe);
        }
    }

    /// Nothing is left to send, and the window has room: what is measured from now on is the application's rate.
    #[inline(never)]
    pub(super) fn note_app_limit(&mut self) {
        let pipe = self.board.pipe();
        let room = pipe < self.window.cwnd && self.board.next_lost().is_none();
        if let Some(meter) = self.board.meter()
            && room
        {
            meter.app_limited(pipe);
        }
    }

    /// Something is about to be sent.
    #[inline(never)]
    pub(super) fn note_restart(&mut self, now: Instant) {
        if self.outstanding() {
            return;
        }
        let Some(meter) = self.board.meter().filter(|meter| meter.is_app_limited()) else { return };
        let delivered = meter.total();
        self.cc.on_restart(&mut self.window, now, delivered);
        self.set_pace();
    }
}
