//! Timers that do not fit the round trip.

use super::{Trap, fit_timers};
use crate::facts::{Facts, rounded_up};
use crate::patience;
use farpath_tcp::config::RtoFloor;

/// `rto-floor`: a floor that lets a lone segment's ACK come in time.
pub(super) fn floor(facts: &Facts<'_>) -> (&'static str, Vec<String>) {
    let rto = &facts.sender().rto;
    let fitting = match rto.floor {
        RtoFloor::Rto => facts.fitting_rto(),
        // It is added to a round trip, that of the SYN at first.
        RtoFloor::Variance => {
            let beyond = facts.rtt.saturating_sub(facts.view.handshake_rtt) + facts.ack_delay();
            beyond + beyond / 4
        }
    };
    let floor = rounded_up(fitting).min(rto.max);
    ("RFC 6298 section 2.4, RFC 1122 section 4.2.3.2", vec![format!("sender.rto.min={floor}")])
}

/// `rto-max`: a ceiling above the round trip.
pub(super) fn ceiling(facts: &Facts<'_>) -> (&'static str, Vec<String>) {
    ("RFC 6298 section 2.5: the ceiling, of 60 s or more, is optional", fit_timers(facts, facts.rtt, true))
}

/// `initial-rto`: the first timeout of an end is below the round trip of its SYN.
pub(super) fn initial(facts: &Facts<'_>) -> Option<Trap> {
    let rtt = facts.view.handshake_rtt;
    let ends = [facts.opener(), facts.listener()];
    let (end, config) = ends.into_iter().find(|(_, config)| config.rto.initial < rtt)?;
    let what = if end == facts.opener().0 { "SYN" } else { "SYN/ACK" };
    let text = format!(
        "{} is below the round trip of {rtt:.3}: the {what} is sent again before its answer can come, and no RTT is \
         measured (Karn)",
        config.rto.initial
    );
    let raise_max = ends.iter().any(|(_, config)| config.rto.max < rtt * 2);
    let source = "RFC 6298 section 2.1";
    Some(
        Trap::new("initial-rto", format!("{end}.rto.initial"), text, source)
            .set(fit_timers(facts, rtt, raise_max)),
    )
}

/// `data-retries`: the budget of retransmissions ends before an ACK can come, or before loss lets one through.
pub(super) fn data_retries(facts: &Facts<'_>) -> Option<Trap> {
    let retries = facts.sender().handshake.data_retries?;
    let budget = patience::of_sender(facts);
    let source = "RFC 9293 section 3.8.3 (R2: at least 100 s)";
    let trap = |text| Trap::new("data-retries", "sender.handshake.data_retries", text, source);
    let set = ["sender.handshake.data_retries=unlimited".to_owned()];
    if budget < facts.rtt + facts.ack_delay() {
        let text = format!(
            "{retries} retransmissions take {budget:.3}, a round trip {:.3}: the connection is given up before the \
             first ACK can come",
            facts.rtt
        );
        return Some(trap(text).set(set));
    }
    let passes = (1.0 - facts.view.data_loss.fraction()) * (1.0 - facts.view.ack_loss.fraction());
    let segments = facts.size().0.div_ceil(facts.segment().0) as f64;
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
