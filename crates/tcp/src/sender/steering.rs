//! The sending half under a controller that steers by the rate of delivery: it sets `cwnd` at every ACK, whatever is being
//! repaired, and nothing else does (Linux, `tcp_cong_control()` with a `cong_control`).

use super::Sender;
use super::cwnd_usage::CwndUsage;
use super::phase::Phase;
use crate::cc::{CongestionControl, Controller, ExplicitRate, Pace, RateSample, Repair};
use farpath_units::{Duration, Instant};

impl Sender {
    /// The connection is established: what the controller has to know, and whether rates are measured for it.
    pub(super) fn start_steering(&mut self, now: Instant) {
        let measures = self.measures || self.cc.owns_cwnd();
        self.steered = measures || self.config.send.pacing;
        if !self.steered {
            return;
        }
        if measures {
            self.board.keep_rate();
        }
        if let Some(meter) = self.board.meter() {
            // The application has been the limit: it could not write before (`tcp_sendmsg()` looks before it queues).
            meter.app_limited(0);
        }
        self.brief_controller(now, self.rtt.last_sample().0);
    }

    /// A controller begins over a connection that is established.
    fn brief_controller(&mut self, now: Instant, rtt: Option<Duration>) {
        self.cc.draw_by(self.seed);
        self.cc.on_established(&self.window, now, rtt, self.config.rto.tick);
        self.set_pace();
    }

    /// An ACK has been taken; before it, `pipe_before` was in the network.
    #[inline(never)]
    pub(super) fn steer(&mut self, now: Instant, pipe_before: u64) {
        self.steer_by_rate(now, pipe_before);
        self.set_pace();
    }

    /// Sends at `pace` from now on, whatever is lost.
    pub(crate) fn send_at(&mut self, now: Instant, pace: Pace) {
        let granted = ExplicitRate::new(&self.config.congestion, self.smss, pace);
        self.window.cwnd = granted.window(self.rtt.srtt());
        self.pacer.hasten(now, pace);
        self.take_controller(Controller::ExplicitRate(granted));
        self.note_sending(now);
    }

    /// The fallback's controller takes over, with what `bytes_per_s` sends in a round trip as its window.
    pub(crate) fn fall_back(&mut self, now: Instant, bytes_per_s: u64) {
        self.config.congestion.control = self.config.explicit_rate.fallback;
        let congestion = &self.config.congestion;
        let controller = Controller::new(congestion, self.smss, self.config.rto.tick);
        let initial = u64::from(congestion.initial_window) * self.smss;
        let rtt = self.rtt.min_rtt().unwrap_or(Duration::ZERO);
        let product = u128::from(bytes_per_s) * u128::from(rtt.as_nanos()) / 1_000_000_000;
        let clamp = congestion.cwnd_clamp.map_or(u64::MAX, |clamp| clamp.0).max(self.smss);
        self.window.cwnd = u64::try_from(product).unwrap_or(u64::MAX / 2).max(initial).min(clamp);
        self.window.ssthresh = self.window.cwnd;
        self.take_controller(controller);
        self.brief_controller(now, self.rtt.min_rtt());
        self.note_sending(now);
    }

    fn take_controller(&mut self, controller: Controller) {
        self.cc = controller;
        // What one controller did, another cannot undo; nor does it end a reduction that it did not begin.
        (self.undo, self.prr) = (None, None);
        self.steered = self.measures || self.cc.owns_cwnd() || self.config.send.pacing;
        self.set_pace();
    }

    fn note_sending(&mut self, now: Instant) {
        // Silence before is no idle time of what comes.
        self.last_sent = self.last_sent.max(now);
    }

    fn steer_by_rate(&mut self, now: Instant, pipe_before: u64) {
        // Linux counts packets: what an ACK delivers that ends with a small segment is a whole one more.
        let whole = if self.cc.counts_segments() { self.smss } else { 1 };
        let counted = |bytes: u64| bytes.next_multiple_of(whole);
        let (pipe, pipe_before) = (counted(self.pipe()), counted(pipe_before));
        let acked = counted(self.board.delivery().bytes);
        let rtt = self.board.delivery().latest.map(|latest| now.saturating_since(latest.at));
        let min_rtt = self.rtt.min_rtt().unwrap_or(Duration::ZERO);
        let Some(meter) = self.board.meter() else { return };
        let measured = meter.measure(now, acked, min_rtt);
        let (lost, lost_ever) = meter.lost();
        let excess = meter.take_excess();
        let sample = RateSample {
            now,
            measured,
            delivered: meter.total(),
            delivered_at: meter.delivered_at(),
            acked,
            lost,
            lost_ever,
            excess,
            cwnd_limited: self.cwnd_usage.as_ref().map_or(self.cwnd_limited, CwndUsage::limited),
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
