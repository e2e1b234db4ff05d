//! How long the ends wait before they give up, by the reckoning of the radii: ticks, ceilings, and SYNs that come again.

use crate::path_summary::PathSummary;
use farpath_model::radius::Opening;
use farpath_predict::{data_retries, listening, opening, unanswered};
use farpath_tcp::Config;
use farpath_tcp::config::RetransmittedSyn;
use farpath_units::Duration;

/// The most attempts that are recommended.
const MOST_ATTEMPTS: u32 = 10_000;

/// From the first SYN until the opener gives up, wherever that falls on its clock.
pub(crate) fn of_opener(summary: &PathSummary<'_>) -> Duration {
    abandoned(&opening(summary.opener().1))
}

/// From the first SYN that comes until the listener forgets the half-open connection, however the clocks stand.
pub(crate) fn of_listener(summary: &PathSummary<'_>) -> Duration {
    let (opening, listening) = (opening(summary.opener().1), listening(summary.listener().1));
    listening.gives_up(&opening).map_or(Duration::MAX, |forgets| seconds(forgets.value.span.least))
}

/// From the first segment of data until the sender gives up where no ACK comes.
pub(crate) fn of_sender(summary: &PathSummary<'_>) -> Duration {
    abandoned(&unanswered(summary.sender(), first_timeout(summary).timeout))
}

/// How often the sender sends a segment again to which no ACK comes; `None` without end.
pub(crate) fn retries_of_sender(summary: &PathSummary<'_>) -> Option<u32> {
    data_retries(summary.sender(), first_timeout(summary).timeout)
}

/// The least number of SYNs after which an opener like this waits longer than `time`.
pub(crate) fn syns_for(opener: &Config, time: Duration) -> u32 {
    attempts_for(opening(opener), time)
}

/// The same of SYN/ACKs, also where no SYN comes again.
pub(crate) fn synacks_for(listener: &Config, time: Duration) -> u32 {
    attempts_for(Opening { linear: 0, within: f64::INFINITY, ..opening(listener) }, time)
}

fn attempts_for(opening: Opening, time: Duration) -> u32 {
    let enough = |attempts| abandoned(&Opening { attempts: Some(attempts), ..opening }) > time;
    let (mut few, mut most) = (0, MOST_ATTEMPTS);
    while most - few > 1 {
        let middle = few + (most - few) / 2;
        *(if enough(middle) { &mut most } else { &mut few }) = middle;
    }
    most
}

fn abandoned(opening: &Opening) -> Duration {
    seconds(opening.abandoned().value.least)
}

fn seconds(time: f64) -> Duration {
    if time == f64::INFINITY { Duration::MAX } else { Duration::from_secs_f64(time) }
}

/// The timeout of the first data.
pub(crate) struct FirstTimeout {
    pub timeout: Duration,
    /// The key that sets it.
    pub key: &'static str,
    /// A round trip has been measured.
    pub measured: bool,
}

/// The end that sends the data has timed its own SYN or SYN/ACK, unless that was sent again (RFC 6298 section 3) and no
/// timestamp tells which was answered.
pub(crate) fn first_timeout(summary: &PathSummary<'_>) -> FirstTimeout {
    let rto = &summary.sender().rto;
    let syn = summary.view.handshake_rtt;
    let echoed = summary.sender().send.timestamps && summary.receiver().send.timestamps;
    if rto.initial < syn && rto.retransmitted_syn != RetransmittedSyn::MeasuredFromFirst && !echoed {
        let fallback = rto.after_syn_timeout.unwrap_or(Duration::ZERO);
        let key = if fallback > rto.initial { "after_syn_timeout" } else { "initial" };
        return FirstTimeout { timeout: rto.initial.max(fallback), key, measured: false };
    }
    FirstTimeout { timeout: rto.timeout(syn, syn / 2), key: "min", measured: true }
}
