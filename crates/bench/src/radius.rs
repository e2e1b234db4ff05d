//! Radii of the running kernel, full-length: `make bench-long`.

use crate::figure::{Figure, Target};
use farpath_emulate::may_emulate;
use farpath_engine::{Counts, EngineError, Measurement, Reach, Span, Way, measure_radii, radii};
use farpath_experiment::Stack;
use std::sync::atomic::AtomicBool;

/// Whose defaults they are.
const STACK: &str = "linux-6";

/// Connections over each way. A race that one in nine loses comes out within some per cent.
const CONNECTIONS: u16 = 64;

/// By how much a time may be outside of the closed form's, in s: some jiffies.
const TOLERANCE: f64 = 0.05;

/// Measures them all at once, which takes two round trips of the longest way, and tells each figure.
///
/// # Errors
/// The machine does not emulate.
pub fn measure(mut told: impl FnMut(Figure)) -> Result<(), EngineError> {
    may_emulate()?;
    let stack = Stack::load(STACK).expect("it ships");
    let radii = radii(&stack.config, None).expect("a shipped stack has a schedule");
    let what = Measurement::planned(&stack, &radii, CONNECTIONS).expect("Linux gives up");
    let seconds = what.takes().as_secs_f64().ceil();
    eprintln!("bench: {CONNECTIONS} connections over each way, {seconds} s of real time at most");
    let never = AtomicBool::new(false);
    let found = measure_radii(&what, &never, |_| {})?;
    println!("{}, as {STACK}", found.kernel);
    for radius in &radii {
        if let Some(measured) = found.measured(radius.kind) {
            span(&radius.kind.name(), measured, Some(radius.rtt), &mut told);
        }
    }
    for (number, measured) in (1_usize..).zip(&found.silence.synacks) {
        span(&format!("SYN/ACK number {}, after a lone SYN", number + 1), *measured, None, &mut told);
    }
    if let Some(forgotten) = found.silence.forgotten {
        span("lone SYN forgotten", forgotten, None, &mut told);
    }
    for way in &found.ways {
        connections(way, &mut told);
    }
    Ok(())
}

/// The least and the most of a time.
fn span(name: &str, measured: Span, radius: Option<Span>, told: &mut impl FnMut(Figure)) {
    let at_least = radius.map_or(Target::None, |radius| Target::AtLeast(in_ms(radius.least - TOLERANCE)));
    let at_most = radius.map_or(Target::None, |radius| Target::AtMost(in_ms(radius.most + TOLERANCE)));
    for (end, value, target) in [("least", measured.least, at_least), ("most", measured.most, at_most)] {
        told(Figure { name: format!("{name}, at the {end}"), value: Some(value), unit: "s", target });
    }
}

/// Rounded to whole milliseconds.
fn in_ms(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// How many of a hundred connections over a way opened, and were of use.
fn connections(way: &Way, told: &mut impl FnMut(Figure)) {
    let [opened, usable] = match way.predicted {
        Reach::Usable => [Target::AtLeast(100.0), Target::AtLeast(100.0)],
        Reach::Some => [Target::AtLeast(100.0), Target::None],
        Reach::HalfOpen => [Target::AtLeast(100.0), Target::AtMost(0.0)],
        Reach::SomeHalfOpen => [Target::None, Target::AtMost(0.0)],
        Reach::Nothing => [Target::AtMost(0.0), Target::AtMost(0.0)],
    };
    let rtt = way.rtt.as_secs_f64();
    let of = |count: fn(&Counts) -> usize, counts: &Counts| {
        count(counts) as f64 * 100.0 / counts.connections as f64
    };
    let counts =
        [("opened", opened, (|c| c.opened) as fn(&Counts) -> usize), ("usable", usable, |c| c.usable)];
    for (what, target, count) in counts {
        let value = way.kernel.as_ref().map(|kernel| of(count, kernel));
        let simulated = of(count, &way.simulated);
        let name = format!("round trip of {rtt:.1} s, {what} (simulated: {simulated:.0} %)");
        told(Figure { name, value, unit: "%", target });
    }
}
