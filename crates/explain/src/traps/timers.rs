//! Timers that do not fit the round trip.

use super::{Trap, fit_timers};
use crate::give_up_time;
use crate::path_summary::{PathSummary, rounded_up};
use farpath_tcp::config::RtoFloor;

/// `rto-floor`: a floor that lets a lone segment's ACK come in time.
pub(super) fn floor(summary: &PathSummary<'_>) -> (&'static str, Vec<String>) {
    let rto = &summary.sender().rto;
    let fitting = match rto.floor {
        RtoFloor::Rto => summary.fitting_rto(),
        // It is added to a round trip, that of the SYN at first.
        RtoFloor::Variance => {
            let beyond = summary.rtt.saturating_sub(summary.view.handshake_rtt) + summary.ack_delay();
            beyond + beyond / 4
        }
    };
    let floor = rounded_up(fitting).min(rto.max);
    ("RFC 6298 section 2.4, RFC 1122 section 4.2.3.2", vec![format!("sender.rto.min={floor}")])
}

/// `rto-max`: a ceiling above the round trip.
pub(super) fn ceiling(summary: &PathSummary<'_>) -> (&'static str, Vec<String>) {
    (
        "RFC 6298 section 2.5: the ceiling, of 60 s or more, is optional",
        fit_timers(summary, summary.rtt, true),
    )
}

/// `initial-rto`: the first timeout of an end is below the round trip of its SYN.
pub(super) fn initial(summary: &PathSummary<'_>) -> Option<Trap> {
    let rtt = summary.view.handshake_rtt;
    let ends = [summary.opener(), summary.listener()];
    let (end, config) = ends.into_iter().find(|(_, config)| config.rto.initial < rtt)?;
    let what = if end == summary.opener().0 { "SYN" } else { "SYN/ACK" };
    let text = format!(
        "{} is below the round trip of {rtt:.3}: the {what} is sent again before its answer can come, and no RTT is \
         measured (Karn)",
        config.rto.initial
    );
    let raise_max = ends.iter().any(|(_, config)| config.rto.max < rtt * 2);
    let source = "RFC 6298 section 2.1";
    Some(
        Trap::new("initial-rto", format!("{end}.rto.initial"), text, source)
            .set(fit_timers(summary, rtt, raise_max)),
    )
}

/// `data-retries`: the budget of retransmissions ends before an ACK can come, or before loss lets one through.
pub(super) fn data_retries(summary: &PathSummary<'_>) -> Option<Trap> {
    let retries = give_up_time::retries_of_sender(summary)?;
    let budget = give_up_time::of_sender(summary);
    let source = "RFC 9293 section 3.8.3 (R2: at least 100 s)";
    let trap = |text| Trap::new("data-retries", "sender.handshake.data_retries", text, source);
    let set = ["sender.handshake.data_retries=unlimited".to_owned()];
    if budget < summary.rtt + summary.ack_delay() {
        let text = format!(
            "{retries} retransmissions take {budget:.3}, a round trip {:.3}: the connection is given up before the \
             first ACK can come",
            summary.rtt
        );
        return Some(trap(text).set(set));
    }
    let passes = (1.0 - summary.view.data_loss.fraction()) * (1.0 - summary.view.ack_loss.fraction());
    let segments = summary.size().0.div_ceil(summary.segment().0) as f64;
    // Only what is lost is sent again: one transmission and `retries` more.
    let fails = segments * (1.0 - passes).powi(i32::try_from(retries.saturating_add(1)).unwrap_or(i32::MAX));
    (fails > 0.01).then(|| {
        let text = format!(
            "one of {segments:.0} segments is lost {} times in a row with a probability of {:.0} %: the connection is \
             given up",
            retries.saturating_add(1),
            fails.min(1.0) * 100.0
        );
        trap(text).set(set)
    })
}
