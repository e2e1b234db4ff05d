//! How far a long command has come, on a terminal.

use farpath_engine::{Now, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// A bar of `total` steps on stderr; nothing where stderr is not a terminal.
pub fn bar(total: u64, what: &'static str) -> ProgressBar {
    styled(total, what, "{spinner} {pos}/{len} {msg} [{wide_bar}] {elapsed}, {eta} to go", |style| style)
}

/// The same for runs some of which are in real time: with how far these have come, as often as it is drawn. How long it
/// will take is not said: from how long other runs took nothing follows for them.
pub fn bar_in_real_time(total: u64, what: &'static str, progress: Arc<Progress>) -> ProgressBar {
    styled(total, what, "{spinner} {pos}/{len} {msg}{now} [{wide_bar}] {elapsed}", |style| {
        style.with_key("now", move |_: &ProgressState, out: &mut dyn Write| {
            // The bar's line is gone with the bar: nothing to be done about a failure.
            let _ = progress.now().map_or(Ok(()), |now| write!(out, "; {}", describe(now)));
        })
    })
}

/// Says that `what` is going on, and for how long, where `work` takes a second or more.
pub fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let second = Duration::from_secs(1);
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{going_on}") {
        bar.set_style(style.with_key("going_on", move |state: &ProgressState, out: &mut dyn Write| {
            // The first drawing is at once.
            let elapsed = Some(state.elapsed()).filter(|&elapsed| elapsed >= second);
            let _ = elapsed.map_or(Ok(()), |elapsed| write!(out, "{what}, {} s", elapsed.as_secs()));
        }));
    }
    bar.enable_steady_tick(second);
    let done = work();
    bar.finish_and_clear();
    done
}

fn styled(
    total: u64,
    what: &'static str,
    template: &str,
    finish: impl FnOnce(ProgressStyle) -> ProgressStyle,
) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(finish(style));
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// `42 % of 20 MB, 12 s`
#[cfg(target_os = "linux")]
pub fn measured(seen: farpath_measure::Seen) -> String {
    let percent = u128::from(seen.bytes.0) * 100 / u128::from(seen.of.0.max(1));
    format!("{percent} % of {}, {} s", seen.of, seen.elapsed.as_nanos() / 1_000_000_000)
}

/// `2 in real time: 42 % of 20 MB, 12 s of 600 s at most`
fn describe(now: Now) -> String {
    let percent = u128::from(now.read.0) * 100 / u128::from(now.size.0.max(1));
    let (elapsed, horizon) = (now.elapsed.as_nanos() / 1_000_000_000, now.horizon);
    let again = if now.attempt > 1 { format!(", attempt {}", now.attempt) } else { String::new() };
    format!("{} in real time: {percent} % of {}, {elapsed} s of {horizon} at most{again}", now.runs, now.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_units::Bytes;

    #[test]
    fn runs_in_real_time_say_how_far_they_are() {
        let s = farpath_units::Duration::from_secs;
        let now = Now {
            runs: 2,
            read: Bytes(8_400_000),
            size: Bytes(20_000_000),
            elapsed: s(12),
            horizon: s(600),
            attempt: 1,
        };
        assert_eq!(describe(now), "2 in real time: 42 % of 20 MB, 12 s of 600 s at most");
        let again = Now { runs: 1, attempt: 2, ..now };
        assert_eq!(describe(again), "1 in real time: 42 % of 20 MB, 12 s of 600 s at most, attempt 2");
    }
}
