//! `farpath radius --gap`: the longest time without contact that each stack survives.

use super::Watch;
use crate::args::RadiusArgs;
use crate::error::CliError;
use crate::{Ending, interrupt, output, progress};
use farpath_elements::Outside;
use farpath_engine::{Gap, SimulateError, gaps, longest_gap};
use farpath_experiment::{Stack, shipped_stacks};
use farpath_report::tables::{GapRow, gaps_text};
use farpath_units::Duration;
use serde_json::{Value, json};
use std::io::Write;

/// A gap by its timers, and by simulation where that is asked for.
struct Checked {
    stack: String,
    gap: Gap,
    simulated: Option<f64>,
    agrees: bool,
}

/// Prints them.
pub(super) fn print(args: &RadiusArgs, rtt: Duration) -> Result<Ending, CliError> {
    let bar = progress::bar(0, "gaps");
    let watch =
        Watch { stopped: &interrupt::happened, planned: &|gaps| bar.inc_length(gaps), done: &|| bar.inc(1) };
    let found = found(args, rtt, &watch)?;
    drop(bar);
    if args.json {
        let mut out = output::stdout();
        found.iter().try_for_each(|checked| writeln!(out, "{}", checked.line(rtt)))?;
    } else {
        output::print(&gaps_text(&rows(&found), output::width()))?;
    }
    Ok(match found.iter().all(|checked| checked.agrees) {
        _ if interrupt::happened() => Ending::Interrupted,
        true => Ending::Done,
        false => Ending::Failed,
    })
}

/// What `--json` prints.
pub(super) fn lines(args: &RadiusArgs, rtt: Duration, watch: &Watch<'_>) -> Result<Vec<Value>, CliError> {
    Ok(found(args, rtt, watch)?.iter().map(|checked| checked.line(rtt)).collect())
}

fn found(args: &RadiusArgs, rtt: Duration, watch: &Watch<'_>) -> Result<Vec<Checked>, CliError> {
    let names: Vec<String> = match args.stacks.as_slice() {
        [] => shipped_stacks().iter().map(|file| file.name.to_owned()).collect(),
        names => names.to_vec(),
    };
    let mut all = Vec::new();
    for name in names {
        let stack = super::loaded(&name)?;
        let found =
            gaps(&stack.config, rtt).map_err(|source| CliError::Radius { stack: name.clone(), source })?;
        all.extend(found.into_iter().map(|gap| (stack.clone(), gap)));
    }
    (watch.planned)(if args.check { all.len() as u64 } else { 0 });
    let check = |(stack, gap): (Stack, Gap)| {
        let (mut simulated, mut agrees) = (None, true);
        if args.check {
            let failed = |source: SimulateError| CliError::Engine {
                file: stack.name.clone().into(),
                source: source.into(),
            };
            let found = longest_gap(&stack.config, gap.kind, gap.outside, rtt).map_err(failed)?;
            let found = found.unwrap_or(f64::INFINITY);
            (simulated, agrees) = (Some(found), gap.agrees(&stack.config, rtt, found));
            (watch.done)();
        }
        Ok(Checked { stack: stack.name, gap, simulated, agrees })
    };
    all.into_iter().take_while(|_| !(watch.stopped)()).map(check).collect()
}

impl Checked {
    fn line(&self, rtt: Duration) -> Value {
        let finite = |seconds: f64| seconds.is_finite().then_some(seconds);
        let Gap { kind, outside, longest, timer } = &self.gap;
        json!({
            "stack": self.stack,
            "connection": kind.name(),
            "packets": match outside { Outside::Hold => "held", Outside::Drop | Outside::Refuse => "lost" },
            "rtt_s": rtt.as_secs_f64(),
            "longest_gap_s": finite(longest.least),
            "longest_gap_most_s": finite(longest.most),
            "simulated_s": self.simulated.and_then(finite),
            "agrees": self.simulated.map(|_| self.agrees),
            "set_by": timer,
        })
    }
}

/// A line for each connection: what is held, and what is lost, beside each other.
fn rows(found: &[Checked]) -> Vec<GapRow> {
    let alike = |a: &Checked, b: &Checked| a.stack == b.stack && a.gap.kind == b.gap.kind;
    let row = |pair: &[Checked]| {
        let of = |outside| pair.iter().find(|checked| checked.gap.outside == outside);
        let longest =
            |outside| of(outside).map(|checked| (checked.gap.longest.least, checked.gap.longest.most));
        let simulated = |outside| of(outside).and_then(|checked| checked.simulated);
        GapRow {
            stack: pair[0].stack.clone(),
            connection: pair[0].gap.kind.name(),
            held: longest(Outside::Hold),
            held_simulated: simulated(Outside::Hold),
            lost: longest(Outside::Drop),
            lost_simulated: simulated(Outside::Drop),
            timer: pair[0].gap.timer,
        }
    };
    found.chunk_by(alike).map(row).collect()
}
