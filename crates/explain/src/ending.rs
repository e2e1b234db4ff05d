//! Transfers that did not complete: which timer or budget ended them, and what would have been needed.

use crate::give_up_time::{self, first_timeout};
use crate::measure::{Observed, Unfinished};
use crate::path_summary::{PathSummary, rounded_up};
use crate::traps::{Outage, outage};
use farpath_run::Outcome;
use farpath_units::Duration;
use serde::Serialize;

/// One way in which flows ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// The outcome's name: `connect_timed_out`, `aborted`, `horizon`, `stuck`.
    pub outcome: &'static str,
    /// Flows that ended so, over all runs.
    pub flows: u64,
    /// What ended them.
    pub because: String,
    /// What would have been needed.
    pub needed: String,
}

pub(crate) fn endings(summary: &PathSummary<'_>, base: &Observed) -> Vec<Ending> {
    let of = |(outcome, flows): (&&'static str, &u64)| {
        let (because, needed) = match Outcome::from_name(outcome)? {
            // Void: only what is in real time can be that, and nothing here is. Unknown: only a prediction.
            Outcome::Completed | Outcome::Void | Outcome::Unknown => return None,
            Outcome::ConnectTimedOut => connect_timed_out(summary),
            Outcome::Aborted => aborted(summary, base),
            Outcome::Horizon => horizon(summary, base),
            Outcome::Stuck => stuck(base),
        };
        Some(Ending { outcome, flows: *flows, because, needed })
    };
    base.outcomes.iter().filter_map(of).collect()
}

fn stuck(base: &Observed) -> (String, String) {
    let because = match &base.details[..] {
        [] => "the run had used up its budget".to_owned(),
        details => details.join("; "),
    };
    let needed =
        "parameters with which time goes on between one event and the next; or a larger `budget`".to_owned();
    (because, needed)
}

fn connect_timed_out(summary: &PathSummary<'_>) -> (String, String) {
    let (end, opener) = summary.opener();
    let attempts = opener.handshake.syn_attempts.unwrap_or(u32::MAX);
    let budget = give_up_time::of_opener(summary);
    let rtt = summary.view.handshake_rtt;
    let linear = match opener.handshake.syn_linear_timeouts {
        0 => String::new(),
        linear => format!(" for the first {}", linear + 1),
    };
    let because = format!(
        "the {end} sent {attempts} SYNs, the wait {}{linear}, then doubling up to {}, and gave up after {budget:.3}",
        opener.rto.initial, opener.rto.max
    );
    let needed = if let Some(outage) = outage(summary).filter(Outage::ends_opening) {
        let first = outage.gaps.first;
        let changes = outage.syns(summary).join(", ");
        format!(
            "the first contact of `{}` is after {first:.3}: a start that waits for it, or {changes}",
            outage.element
        )
    } else if budget < rtt {
        format!(
            "the answer takes a round trip of {rtt:.3}: a budget above that, by more SYNs or a longer first timeout"
        )
    } else if summary.view.handshake_loss.fraction() == 1.0 {
        "every SYN or every answer is lost: a path that lets one through".to_owned()
    } else {
        format!(
            "a SYN or its answer is lost with {:.1} %: more SYNs ({end}.handshake.syn_attempts)",
            summary.view.handshake_loss.fraction() * 100.0
        )
    };
    (because, needed)
}

fn aborted(summary: &PathSummary<'_>, base: &Observed) -> (String, String) {
    let what = base.details.join(", ");
    if what.contains("retries")
        && let Some(outage) = outage(summary).filter(Outage::ends_transfers)
    {
        let needed = format!("a timer that outlasts the gap ({}), or no gap", outage.retries(summary));
        return (format!("{what}: {}", outage.of_sending()), needed);
    }
    let rto = first_timeout(summary).timeout;
    match give_up_time::retries_of_sender(summary) {
        Some(retries) if what.contains("retries") => {
            let budget = give_up_time::of_sender(summary);
            let because = format!(
                "{what}: one segment was sent again {retries} times without an answer, which takes {budget:.3} from a \
                 timeout of {rto:.3}"
            );
            let needed = if budget <= summary.rtt {
                format!(
                    "an ACK takes a round trip of {:.3}: retries or a timeout that last longer",
                    summary.rtt
                )
            } else {
                format!(
                    "with {:.1} % of data and {:.1} % of ACKs lost: more retries (sender.handshake.data_retries)",
                    summary.view.data_loss.fraction() * 100.0,
                    summary.view.ack_loss.fraction() * 100.0
                )
            };
            (because, needed)
        }
        _ => (what, "an end that does not reset or close the connection".to_owned()),
    }
}

fn horizon(summary: &PathSummary<'_>, base: &Observed) -> (String, String) {
    let horizon = summary.scenario.horizon;
    let unfinished = &base.unfinished;
    let (end, listener) = summary.listener();
    let attempts = listener.handshake.synack_attempts.unwrap_or(u32::MAX);
    let give_up_time = give_up_time::of_listener(summary);
    if unfinished.iter().all(|flow| !flow.open) && attempts < LONG && give_up_time < horizon {
        return (
            format!(
                "virtual time ended at {horizon} and the connection never opened at the {end}: it gave up after \
                 {attempts} SYN/ACKs in {give_up_time:.3}, while the other end took the connection as open and waited"
            ),
            format!(
                "more SYN/ACKs ({end}.handshake.synack_attempts), or a request: its retransmissions open the \
                 connection (transfer.request)"
            ),
        );
    }
    let mean =
        |of: fn(&Unfinished) -> f64| unfinished.iter().map(of).sum::<f64>() / unfinished.len().max(1) as f64;
    let because = format!(
        "virtual time ended at {horizon}; by then these flows had read {:.1} % of their bytes on average",
        mean(|flow| flow.read) * 100.0
    );
    let pace = mean(|flow| flow.read / flow.ran_s.max(1e-9));
    let needed = if pace > 0.0 {
        let time = rounded_up(Duration::from_secs_f64(1.0 / pace));
        format!("at this pace about {time}: a longer horizon, or what makes it faster")
    } else {
        "nothing was read: a longer horizon alone may not help; see the traps".to_owned()
    };
    (because, needed)
}

/// Attempts without end, as good as.
const LONG: u32 = 10_000;
