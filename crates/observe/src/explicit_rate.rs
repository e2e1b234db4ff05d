//! What became of explicit rate, in a run's words: at flow routers, and at the ends that asked.

use farpath_elements::RouterFigures;
use farpath_path::ElementCounters;
use farpath_run::RouterRow;
use farpath_sim::{Plain, RateOutcome, Trip};
use farpath_units::Bytes;

/// What flow routers have decided.
pub fn router_rows(elements: Vec<ElementCounters>) -> Vec<RouterRow> {
    elements.into_iter().filter_map(router_row).collect()
}

/// Nothing of what is no flow router, or has seen no packet.
fn router_row(counters: ElementCounters) -> Option<RouterRow> {
    let figures = *counters.own::<RouterFigures>().filter(|_| counters.offered > 0)?;
    let decided = figures.decided;
    Some(RouterRow {
        element: counters.name,
        direction: counters.direction.name(),
        requests: decided.requests,
        lowered: decided.lowered,
        admitted: decided.admitted,
        refused: decided.refused,
        preempted: decided.preempted,
        pushed: decided.pushed,
        missed: decided.missed,
        closed: decided.closed,
        expired: decided.expired,
        policed: decided.policed,
        unknown: decided.unknown,
        above_grant: decided.above_grant,
        full: decided.full,
        mean_backlog: figures.mean_backlog,
        backlog_deviation: figures.backlog_deviation,
        max_backlog: counters.link.map_or(Bytes::ZERO, |link| link.max_backlog),
    })
}

/// What came of asking for a rate, in a few words.
pub const fn outcome_in_words(outcome: RateOutcome) -> &'static str {
    match outcome {
        RateOutcome::Waiting => "no answer yet",
        RateOutcome::Granted => "granted",
        RateOutcome::Plain(Plain::PeerIncapable) => "peer does not answer",
        RateOutcome::Plain(Plain::NoRouter) => "no router",
        RateOutcome::Plain(Plain::Refused) => "refused",
        RateOutcome::Plain(Plain::Withdrawn) => "preempted",
        RateOutcome::GivenUp(Trip::Loss) => "given up: losses",
        RateOutcome::GivenUp(Trip::Queue) => "given up: a queue",
        RateOutcome::GivenUp(Trip::Mark) => "given up: marks",
    }
}
