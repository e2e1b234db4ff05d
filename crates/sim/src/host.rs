//! One end of a flow: a connection, the driver between it and IP where it has one, and its place in the event queue.

use crate::jitter::Jitter;
use crate::{End, Packet, Qos, ResendCause};
use farpath_explicit_rate::{Datagram, Driver, DriverSettings};
use farpath_tcp::{Config, Connection, Endpoint, Segment};
use farpath_units::{Duration, Instant};

/// An endpoint with its place in the event queue.
#[derive(Debug)]
pub(crate) struct Host {
    pub connection: Connection,
    /// Asks flow routers for a rate.
    pub driver: Option<Box<Driver>>,
    /// When it comes to a packet; `None`: at once.
    pub jitter: Option<Box<Jitter>>,
    /// The timer event that stands for it in the queue; earlier ones are stale.
    pub timer_at: Option<Instant>,
    /// Packets that the driver has sent, its own included.
    sent: u64,
    /// Timeouts and fast retransmits whose first segment has been sent.
    answered: (u64, u64),
}

impl Host {
    /// The end with `config`, opposite of one with `peer`.
    pub fn new(mut connection: Connection, config: &Config, peer: &Config, jitter: Option<Jitter>) -> Host {
        let explicit = &config.explicit_rate;
        let driver = DriverSettings::from_config(explicit).map(|settings| {
            let early_window = explicit.early_window.then_some(peer.receive.buffer);
            Box::new(Driver::new(&DriverSettings { early_window, ..settings }, &mut connection))
        });
        Host { connection, driver, jitter: jitter.map(Box::new), timer_at: None, sent: 0, answered: (0, 0) }
    }

    /// When it handles a packet that comes `now`.
    #[inline]
    pub fn handles_at(&mut self, now: Instant) -> Instant {
        self.jitter.as_mut().map_or(now, |jitter| jitter.handles_at(now))
    }

    /// It handles a packet.
    #[inline]
    pub fn receive(&mut self, now: Instant, packet: &Packet) {
        let Packet { segment, qos, .. } = packet;
        match &mut self.driver {
            Some(driver) => {
                let datagram = Datagram { segment: *segment, mark: qos.mark, structures: qos.structures() };
                driver.on_datagram(&mut self.connection, now, &datagram);
            }
            // What stands behind a SYN's header is not for an end without a driver, and its sequence space knows nothing of it.
            None => self.connection.on_segment(now, segment),
        }
    }

    /// When something is.
    #[inline]
    pub fn next_due(&self) -> Option<Instant> {
        match &self.driver {
            Some(driver) => driver.next_due(&self.connection),
            None => self.connection.next_due(),
        }
    }

    /// When an event is to be queued for its timer, if one is. Timers are lazy: an event is queued only where none stands for an
    /// earlier time, and one that comes too early for a timer that has moved on is put back. An ACK that restarts the timer costs
    /// nothing.
    #[inline]
    pub fn next_timer(&mut self) -> Option<Instant> {
        let due = self.next_due()?;
        if self.timer_at.is_some_and(|at| due >= at) {
            return None;
        }
        self.timer_at = Some(due);
        Some(due)
    }

    /// Runs what is due.
    pub fn on_timer(&mut self, now: Instant) {
        match &mut self.driver {
            Some(driver) => driver.on_timer(&mut self.connection, now),
            None => self.connection.on_timer(now),
        }
    }

    /// Makes `packet`, which [this host has begun](Host::packet), the next one that leaves; false if there is none.
    #[inline(always)]
    pub fn poll(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let stats = self.connection.sender().stats();
        let (resent, loss_probes) = (stats.retransmissions, stats.loss_probes);
        match &mut self.driver {
            None => {
                if !self.connection.poll_into(now, &mut packet.segment) {
                    return false;
                }
                packet.number = self.connection.stats().segments_sent;
            }
            Some(driver) => {
                let Some(Datagram { segment, mark, structures }) = driver.poll(&mut self.connection, now)
                else {
                    return false;
                };
                self.sent += 1;
                packet.number = self.sent;
                (packet.segment, packet.qos) = (segment, Qos { mark, structures: structures.map(Box::new) });
            }
        }
        // What the one before may have met on its way.
        (packet.ttl, packet.queueing) = (self.connection.ttl(), Duration::ZERO);
        packet.retransmission = self.connection.sender().stats().retransmissions > resent;
        packet.resent_by = if packet.retransmission { Some(self.resend_cause(loss_probes)) } else { None };
        true
    }

    /// What each packet of this host, which is the end `from` of `flow`, has in common; the rest is yet to be
    /// [filled in](Host::poll).
    #[inline(always)]
    pub fn packet(&self, flow: u32, from: End) -> Packet {
        Packet {
            flow,
            from,
            number: 0,
            retransmission: false,
            resent_by: None,
            ttl: self.connection.ttl(),
            queueing: Duration::ZERO,
            segment: Segment::EMPTY,
            qos: Qos::default(),
        }
    }

    /// Why the retransmission that has just left was sent; `loss_probes` had been sent before it.
    fn resend_cause(&mut self, loss_probes: u64) -> ResendCause {
        let stats = self.connection.sender().stats();
        if stats.loss_probes > loss_probes {
            return ResendCause::LossProbe;
        }
        let (timeouts, fast_retransmits) =
            core::mem::replace(&mut self.answered, (stats.timeouts, stats.fast_retransmits));
        if stats.timeouts > timeouts {
            ResendCause::Timeout
        } else if stats.fast_retransmits > fast_retransmits {
            ResendCause::FastRetransmit
        } else {
            ResendCause::Repair
        }
    }
}
