//! Timers of other protocols, on the scale of the stacks.

use super::{Ask, inside, owd_km};
use crate::error::CliError;
use crate::output;
use farpath_experiment::{Protocol, ProtocolTimer, shipped_protocols};
use farpath_report::tables::{RadiusRow, protocol_text};
use serde_json::json;
use std::io::Write;

/// Prints the timers of the protocols asked for; all that ship where none is named.
pub(super) fn protocols(names: &[String], ask: &Ask<'_>, as_json: bool) -> Result<(), CliError> {
    let names: Vec<String> = match names {
        [] => shipped_protocols().iter().map(|file| file.name.to_owned()).collect(),
        names => names.to_vec(),
    };
    // All of them before anything is printed.
    let load = |name: &String| Protocol::load(name, "--protocol");
    let protocols = names.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    let timers = || protocols.iter().flat_map(|one| one.timers.iter().map(move |timer| (one, timer)));
    if as_json {
        let mut out = output::stdout();
        for (protocol, timer) in timers() {
            writeln!(out, "{}", timer_json(protocol, timer, ask))?;
        }
        return Ok(());
    }
    let rows: Vec<RadiusRow> =
        (1..).zip(timers()).map(|(number, (protocol, timer))| row(number, protocol, timer, ask)).collect();
    let sources: Vec<String> = timers().map(|(_, timer)| format!("{}.", timer.source)).collect();
    output::print(&protocol_text(&rows, &sources, output::width()))?;
    Ok(())
}

/// Round trip, in s; infinite where nothing is set against it.
fn rtt(timer: &ProtocolTimer) -> f64 {
    timer.after.map_or(f64::INFINITY, |after| after.as_secs_f64() / f64::from(timer.round_trips))
}

fn row(number: u32, protocol: &Protocol, timer: &ProtocolTimer, ask: &Ask<'_>) -> RadiusRow {
    let rtt = rtt(timer);
    let km = owd_km(rtt, ask.medium);
    RadiusRow {
        stack: protocol.name.clone(),
        radius: format!("{} [{number}]", timer.title),
        timer: timer.beyond.name().to_owned(),
        rtt: (rtt, rtt),
        km,
        inside: inside(km).filter(|_| km.is_finite()).map(|body| body.short_title().to_owned()),
        beyond_relay: ask.beyond_relay(km),
        reaches: ask.to.as_ref().map(|target| target.km <= km),
        simulated: None,
        kernel: None,
        error: None,
        note: None,
    }
}

fn timer_json(protocol: &Protocol, timer: &ProtocolTimer, ask: &Ask<'_>) -> serde_json::Value {
    let finite = |value: f64| value.is_finite().then_some(value);
    let rtt = rtt(timer);
    let km = owd_km(rtt, ask.medium);
    let mut value = json!({
        "protocol": protocol.name,
        "timer": timer.name,
        "what": timer.title,
        "beyond": timer.beyond.name(),
        "after_s": timer.after.map(|after| after.as_secs_f64()),
        "round_trips": timer.round_trips,
        "rtt_s": finite(rtt),
        "owd_s": finite(rtt / 2.0),
        "km": finite(km),
        "medium": ask.medium.name,
        "last_inside": inside(km).filter(|_| km.is_finite()).map(|body| &body.name),
        "without_end": rtt == f64::INFINITY,
        "source": timer.source,
    });
    ask.add_to(&mut value, km);
    value
}
