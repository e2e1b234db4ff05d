//! `farpath radius --emulate`: the running kernel beside closed form and simulation.

use crate::error::CliError;
use crate::{interrupt, output, progress};
use farpath_engine::{
    CheckedRadius, Counts, KernelRadii, Measurement, Radius, RadiusKind, Reach, Span, Way, measure_radii,
};
use farpath_experiment::Stack;
use farpath_report::tables::{WayRow, span_text, ways_text};
use farpath_units::Duration;
use serde_json::{Value, json};

/// What a time of the kernel may be outside of the closed form's span, in s: several jiffies, by which a busy machine runs
/// its timers late, or sees late that they ran.
const TOLERANCE: f64 = 0.05;

/// What the kernel says of a stack.
pub struct KernelAnswers {
    stack: String,
    connections: u16,
    radii: Vec<Radius>,
    kernel: KernelRadii,
}

/// Asks the kernel for each stack, one after another, until an interrupt: the last one is not complete then.
pub fn asked(rows: &[(CheckedRadius, Stack)], connections: u16) -> Result<Vec<KernelAnswers>, CliError> {
    let plan = |group: &[(CheckedRadius, Stack)]| {
        let stack = &group[0].1;
        let radii: Vec<_> = group.iter().map(|(checked, _)| checked.radius.clone()).collect();
        let what = Measurement::planned(stack, &radii, connections);
        Ok((stack.name.clone(), radii, what.ok_or_else(|| CliError::NoEnd(stack.name.clone()))?))
    };
    // All of them before the first one takes its minutes.
    let plans: Vec<_> =
        rows.chunk_by(|a, b| a.1.name == b.1.name).map(plan).collect::<Result<_, CliError>>()?;
    let mut list = Vec::new();
    for (stack, radii, what) in plans {
        let seconds = |time: Duration| time.as_nanos() / 1_000_000_000;
        let bar = progress::bar(seconds(what.takes()), "s of real time at most");
        let found = measure_radii(&what, interrupt::flag(), |elapsed| bar.set_position(seconds(elapsed)));
        drop(bar);
        let file = stack.clone().into();
        let kernel = found.map_err(|source| CliError::Engine { file, source })?;
        let complete = kernel.complete;
        list.push(KernelAnswers { stack, connections, radii, kernel });
        if !complete {
            break;
        }
    }
    Ok(list)
}

/// What was measured of a radius, in s.
pub fn measured(stack: &str, kind: RadiusKind, asked: &[KernelAnswers]) -> Option<Span> {
    asked.iter().find(|asked| asked.stack == stack)?.kernel.measured(kind)
}

/// Adds it to the radius' line.
pub fn enter(line: &mut Value, kind: RadiusKind, stack: &str, asked: &[KernelAnswers]) {
    if let Some(Span { least, most }) = measured(stack, kind, asked) {
        (line["kernel_rtt_s"], line["kernel_rtt_at_most_s"]) = (least.into(), most.into());
    }
}

impl KernelAnswers {
    /// Whether nobody interrupted it.
    pub fn is_complete(&self) -> bool {
        self.kernel.complete
    }

    /// How many of its runs were void, as this machine was not in time, and of how many.
    pub fn void(&self) -> (usize, usize) {
        let ways = &self.kernel.ways;
        (ways.iter().filter(|way| way.kernel.is_none()).count(), ways.len())
    }

    /// Whether the kernel does otherwise than the closed form says.
    pub fn disagrees(&self) -> bool {
        let outside = self.radii.iter().any(|radius| {
            self.kernel.measured(radius.kind).is_some_and(|Span { least, most }| {
                least < radius.rtt.least - TOLERANCE || most > radius.rtt.most + TOLERANCE
            })
        });
        outside || self.kernel.ways.iter().any(otherwise)
    }

    /// The connections, in words and a table.
    pub fn text(&self) -> String {
        let KernelRadii { kernel, silence, ways, caveats, complete } = &self.kernel;
        let counts = |counts: Counts| (counts.opened, counts.usable);
        let rows: Vec<_> = ways
            .iter()
            .map(|way| WayRow {
                rtt: way.rtt.as_secs_f64(),
                predicted: words(way.predicted),
                simulated: counts(way.simulated),
                kernel: way.kernel.map(counts),
            })
            .collect();
        let mut text = String::new();
        if !complete {
            text += &format!("\n{}: interrupted; this is what {kernel} had done by then.\n", self.stack);
        }
        if !rows.is_empty() {
            text +=
                &format!("\n{}: {} connections over each way, {kernel}\n\n", self.stack, self.connections);
            text += &ways_text(&rows, output::width());
        }
        let again = silence.synacks.iter().map(|span| span_text(span.least, span.most)).collect::<Vec<_>>();
        if !again.is_empty() || silence.forgotten.is_some() {
            let forgets = silence.forgotten.map_or("has not forgotten it by then".to_owned(), |span| {
                format!("forgets it after {} s", span_text(span.least, span.most))
            });
            let again = match again.is_empty() {
                true => "sends no SYN/ACK again".to_owned(),
                false => format!("sends SYN/ACKs again after {} s", again.join(", ")),
            };
            text += &format!("\nA SYN that nobody goes on with: {kernel} {again}, and {forgets}.\n");
        }
        if !caveats.is_empty() {
            let stack = &self.stack;
            text += &format!(
                "This kernel does some things otherwise than {stack}: `farpath stacks {stack} --linux` lists them.\n"
            );
        }
        text
    }

    /// The same for machines: one line a way, and one of the listener.
    pub fn lines(&self) -> Vec<Value> {
        let KernelRadii { kernel, silence, ways, .. } = &self.kernel;
        let counts = |counts: Counts| json!({ "opened": counts.opened, "usable": counts.usable });
        let span = |span: &Span| json!([span.least, span.most]);
        let way = |way: &Way| {
            json!({
                "stack": self.stack,
                "kernel": kernel,
                "way_rtt_s": way.rtt.as_secs_f64(),
                "connections": self.connections,
                "predicted": words(way.predicted),
                "simulated": counts(way.simulated),
                "measured": way.kernel.map(counts),
            })
        };
        let listener = json!({
            "stack": self.stack,
            "kernel": kernel,
            "synacks_s": silence.synacks.iter().map(span).collect::<Vec<_>>(),
            "forgotten_s": silence.forgotten.as_ref().map(span),
            "complete": self.kernel.complete,
        });
        ways.iter().map(way).chain([listener]).collect()
    }
}

/// Whether connections over a way came out otherwise than the closed form says. A way on which nobody was in time says
/// nothing.
fn otherwise(way: &Way) -> bool {
    let Some(Counts { connections, opened, usable }) = way.kernel else { return false };
    match way.predicted {
        Reach::Usable => usable < connections,
        Reach::Some => opened < connections,
        Reach::HalfOpen => opened < connections || usable > 0,
        Reach::SomeHalfOpen => usable > 0,
        Reach::Nothing => opened > 0,
    }
}

fn words(reach: Reach) -> &'static str {
    match reach {
        Reach::Usable => "usable",
        Reach::Some => "usable or half-open",
        Reach::HalfOpen => "half-open",
        Reach::SomeHalfOpen => "half-open or not open",
        Reach::Nothing => "not open",
    }
}
