//! Tail loss probes (RFC 8985 §7): before the retransmission timer expires, one segment that makes the peer report.

use super::phase::Phase;
use super::{Persist, Sender};
use core::ops::Range;
use farpath_units::{Duration, Instant};

/// PTO before there is an RTT (RFC 8985 §7.2).
const UNMEASURED: Duration = Duration::from_secs(1);

/// The probe timer, and the probe in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct Tlp {
    /// PTO's end.
    pub due: Option<Instant>,
    /// The timer has expired: the probe is what leaves next.
    pub wanted: bool,
    probe: Option<Probe>,
    /// RTT samples when the last probe was sent: there must have been one since (§7.3).
    samples: Option<u64>,
    /// New data has left at this time and started the timer. More of it at the same time would start it for the same, as long as
    /// no ACK, timer or retransmission comes between.
    pub burst: Option<Instant>,
    /// When the timer was last started, for how long, and when it expires: the segments of one burst ask the same.
    started: (Instant, Duration, Instant),
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    /// TLP.end_seq.
    end: u64,
    /// TLP.is_retrans.
    again: bool,
}

impl Tlp {
    /// Whether a D-SACK reports the probe.
    pub fn is_probe(&self, reported: &Range<u64>) -> bool {
        self.probe.is_some_and(|probe| probe.end == reported.end)
    }
}

impl Sender {
    /// Whether a probe may follow what is in flight.
    pub(super) fn probes_now(&self) -> bool {
        self.config.recovery.tail_loss_probe
            && self.sack_enabled
            && self.phase == Phase::Open
            && self.board.sacked_segments() == 0
            && self.outstanding()
            && self.persist == Persist::Off
    }

    /// §7.2: at new data, and at an ACK of some: the timer starts anew, or stops where other means are at work.
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        if !self.probes_now() {
            self.tlp.due = None;
            return;
        }
        let rto = self.rto_due.unwrap_or(Instant::MAX);
        self.tlp.due = Some(self.config.rto.timer(now, self.probe_timeout()).min(rto));
    }

    /// The one timer becomes the probe timer, and waits so long at the most.
    pub(super) fn start_probe_timer(&mut self, now: Instant, most: Duration) {
        self.stop_timers();
        // Never nothing, which the first one is compared with.
        let wait = self.probe_timeout().min(most);
        if (self.tlp.started.0, self.tlp.started.1) != (now, wait) {
            self.tlp.started = (now, wait, self.config.rto.timer(now, wait));
        }
        self.tlp.due = Some(self.tlp.started.2);
    }

    /// PTO. Not even an RTT of nothing makes a timer that expires at once.
    fn probe_timeout(&self) -> Duration {
        let alone = self.flight_size() <= self.smss;
        let recovery = &self.config.recovery;
        let more = if alone { recovery.probe_ack_delay } else { recovery.timer_slack };
        self.rtt.srtt().map_or(UNMEASURED, |srtt| srtt * 2 + more).max(Duration::from_nanos(1))
    }

    /// §7.3: the probe timer expired.
    pub(super) fn on_probe_timer(&mut self, now: Instant) {
        let samples = self.rtt.last_sample().1;
        let fresh = self.config.recovery.probe_without_sample || self.tlp.samples != Some(samples);
        self.tlp.wanted = self.tlp.probe.is_none() && fresh && self.outstanding();
        if self.has_one_timer() && !self.tlp.wanted {
            self.rearm_timeout(now);
            return;
        }
        self.tlp.due = None;
        // Whether there is a probe or not, what comes next is the retransmission timer.
        self.rto_due = self.outstanding().then(|| self.rtt.deadline(now));
    }

    /// §7.3: new data where the peer's window has room, `cwnd` or not; else the last segment again.
    pub(super) fn choose_probe(&mut self) -> Option<Range<u64>> {
        self.tlp.wanted = false;
        let new = self.unsent_segment();
        let again = new.is_none();
        let range = new.or_else(|| self.board.last())?;
        self.tlp.probe = Some(Probe { end: self.max.max(range.end), again });
        self.tlp.samples = Some(self.rtt.last_sample().1);
        self.stats.loss_probes += 1;
        Some(range)
    }

    /// §7.4.2: what an ACK says of the probe. A single segment that it repaired was lost all the same.
    pub(super) fn process_probe_ack(
        &mut self,
        now: Instant,
        bare: bool,
        flight_size: u64,
        dsack: Option<&Range<u64>>,
    ) {
        let Some(probe) = self.tlp.probe.filter(|probe| self.una >= probe.end) else { return };
        let arrived_twice = dsack.is_some_and(|range| self.tlp.is_probe(range));
        if !probe.again || arrived_twice {
            self.tlp.probe = None;
        } else if self.una > probe.end {
            self.tlp.probe = None;
            if self.phase == Phase::Open {
                self.reduce_window(now, flight_size);
            }
        } else if bare {
            // A duplicate ACK without a report: original and probe arrived both, at a peer without D-SACK.
            self.tlp.probe = None;
        }
    }

    /// §7.1: fast recovery and timeouts make the probe's answer irrelevant.
    pub(super) fn forget_probe(&mut self) {
        (self.tlp.wanted, self.tlp.probe) = (false, None);
        if !self.has_one_timer() {
            self.tlp.due = None;
        }
    }
}
