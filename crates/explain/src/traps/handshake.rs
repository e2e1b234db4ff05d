//! Opening: budgets of SYNs and SYN/ACKs that do not reach over the path.

use super::Trap;
use crate::give_up_time;
use crate::path_summary::PathSummary;
use farpath_experiment::Opener;
use farpath_units::Bytes;

/// Failures of more than one connection in so many are a trap.
const SELDOM: f64 = 0.01;

/// `syn-budget`: the opener gives up before the answer to its first SYN can come.
pub(super) fn syn_budget(summary: &PathSummary<'_>) -> Option<Trap> {
    let (end, opener) = summary.opener();
    let attempts = opener.handshake.syn_attempts?;
    let rtt = summary.view.handshake_rtt;
    let budget = give_up_time::of_opener(summary);
    (budget < rtt).then(|| {
        let text = format!(
            "{attempts} SYNs are given up after {budget:.3}, and a round trip takes {rtt:.3}: no connection can open"
        );
        let needed = give_up_time::syns_for(opener, rtt + rtt / 4);
        Trap::new("syn-budget", format!("{end}.handshake.syn_attempts"), text, "RFC 9293 section 3.8.3")
            .set([format!("{end}.handshake.syn_attempts={needed}")])
    })
}

/// `synack-budget`: the other end forgets the half-open connection before the ACK can come.
pub(super) fn synack_budget(summary: &PathSummary<'_>) -> Option<Trap> {
    let (end, listener) = summary.listener();
    let attempts = listener.handshake.synack_attempts?;
    let rtt = summary.view.handshake_rtt;
    let budget = give_up_time::of_listener(summary);
    (budget < rtt).then(|| {
        let text = format!(
            "{attempts} SYN/ACKs are given up after {budget:.3}, and a round trip takes {rtt:.3}: the half-open \
             connection is forgotten before its ACK can come"
        );
        let needed = give_up_time::synacks_for(listener, rtt + rtt / 4);
        Trap::new("synack-budget", format!("{end}.handshake.synack_attempts"), text, "RFC 9293 section 3.8.3")
            .set([format!("{end}.handshake.synack_attempts={needed}")])
    })
}

/// `syn-loss`: so many SYNs or their answers are lost that connections do not open.
pub(super) fn syn_loss(summary: &PathSummary<'_>) -> Option<Trap> {
    let (end, opener) = summary.opener();
    let attempts = opener.handshake.syn_attempts?;
    let loss = summary.view.handshake_loss.fraction();
    let fails = loss.powi(i32::try_from(attempts).unwrap_or(i32::MAX));
    if fails <= SELDOM {
        return None;
    }
    let text = format!(
        "a SYN or its answer is lost with {:.0} %: {:.1} % of connections do not open within {attempts} SYNs",
        loss * 100.0,
        fails * 100.0
    );
    let trap = Trap::new("syn-loss", format!("{end}.handshake.syn_attempts"), text, "RFC 9293 section 3.8.3");
    // Where everything is lost no number is enough.
    let needed = attempts_against(loss).map(|attempts| format!("{end}.handshake.syn_attempts={attempts}"));
    Some(trap.set(needed))
}

/// `synack-loss`: the listener gives up while the opener, whose ACK is lost each time, takes the connection as open.
///
/// An opener that sends data goes on sending them, and the first one that gets through opens the connection.
pub(super) fn synack_loss(summary: &PathSummary<'_>) -> Option<Trap> {
    let flow = &summary.scenario.flows[0];
    if flow.opener != Opener::Receiver || flow.request > Bytes::ZERO {
        return None;
    }
    let (end, listener) = summary.listener();
    let attempts = listener.handshake.synack_attempts?;
    let loss = summary.view.handshake_loss.fraction();
    let fails = loss.powi(i32::try_from(attempts).unwrap_or(i32::MAX));
    (fails > SELDOM && loss < 1.0).then(|| {
        let text = format!(
            "a SYN/ACK or its ACK is lost with {:.0} %: after {attempts} of them {:.1} % of connections are forgotten by \
             the {end}, and the receiver, which has nothing to send, waits on a connection that it takes for open",
            loss * 100.0,
            fails * 100.0
        );
        let source = "RFC 9293 section 3.5.1: half-open connections";
        Trap::new("synack-loss", format!("{end}.handshake.synack_attempts"), text, source)
            .set(attempts_against(loss).map(|attempts| format!("{end}.handshake.synack_attempts={attempts}")))
    })
}

/// Attempts of which all are lost in one case of a thousand; `None` where no number is enough.
fn attempts_against(loss: f64) -> Option<u64> {
    let needed = (0.001_f64.ln() / loss.ln()).ceil();
    (loss < 1.0 && needed < 10_000.0).then_some(needed as u64)
}
