//! How far a long command has come: a bar where stderr is a terminal, a line now and then where it is not.

use crate::error::CliError;
use farpath_emulate::{Now, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::env;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The first line comes after this time: what is over by then needs none.
const FIRST: Duration = Duration::from_secs(2);

/// The others come as often as this, where [`EVERY_VARIABLE`] does not say.
const EVERY: Duration = Duration::from_secs(10);

/// In the environment: the time between two lines, such as `1 min`; `0 s` for none at all.
const EVERY_VARIABLE: &str = "FARPATH_PROGRESS";

/// When lines are written; `None` for never.
static PACE: OnceLock<Option<Pace>> = OnceLock::new();

/// When lines are written.
#[derive(Debug, Clone, Copy)]
struct Pace {
    first: Duration,
    every: Duration,
}

/// Reads from the environment how often lines are written. Without this call they come by default.
pub fn configure() -> Result<(), CliError> {
    let Some(text) = env::var_os(EVERY_VARIABLE) else { return Ok(()) };
    let text = text.to_string_lossy();
    let every = text.parse::<farpath_units::Duration>().map_err(|source| CliError::Environment {
        name: EVERY_VARIABLE,
        expected: "a time such as `10 s`",
        found: text.clone().into_owned(),
        source: Box::new(source),
    })?;
    let every = Duration::from_nanos(every.as_nanos());
    PACE.get_or_init(|| (!every.is_zero()).then(|| Pace { first: FIRST.min(every), every }));
    Ok(())
}

/// A count of steps, shown until this is dropped.
pub struct Bar {
    bar: ProgressBar,
    _lines: Option<Lines>,
}

impl Bar {
    fn new(bar: ProgressBar, line: impl Fn(&ProgressBar) -> String + Send + 'static) -> Bar {
        let shown = bar.clone();
        // Hidden where stderr is not a terminal.
        let pace = PACE.get_or_init(|| Some(Pace { first: FIRST, every: EVERY })).filter(|_| bar.is_hidden());
        let lines = pace.map(|pace| Lines::start(pace, move || line(&shown), io::stderr()));
        Bar { bar, _lines: lines }
    }

    /// So many more steps are done.
    pub fn inc(&self, steps: u64) {
        self.bar.inc(steps);
    }

    /// So many more steps are to be done.
    pub fn inc_length(&self, steps: u64) {
        self.bar.inc_length(steps);
    }

    /// So many steps are done.
    pub fn set_position(&self, steps: u64) {
        self.bar.set_position(steps);
    }

    /// What the steps are, and what is being done.
    #[cfg(target_os = "linux")]
    pub fn set_message(&self, what: String) {
        self.bar.set_message(what);
    }

    /// A line of its own, above the bar.
    #[cfg(target_os = "linux")]
    pub fn println(&self, line: &str) {
        match self.bar.is_hidden() {
            true => drop(writeln!(io::stderr(), "{line}")),
            false => self.bar.println(line),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Lines from a thread of its own, until this is dropped.
struct Lines {
    /// Never sent to: it is dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    fn start(
        pace: Pace,
        line: impl Fn() -> String + Send + 'static,
        mut out: impl Write + Send + 'static,
    ) -> Lines {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut wait = pace.first;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                // In one piece, as others write there too. Nobody may read it any more.
                let _ = out.write_all(format!("farpath: {}\n", line()).as_bytes());
                wait = pace.every;
            }
        });
        Lines { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.stop.take());
        // It does nothing that could fail; whoever needs a process of one thread gets it back.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Shows `total` steps.
pub fn bar(total: u64, what: &'static str) -> Bar {
    bar_from(0, total, what)
}

/// The same where some have been done before.
pub fn bar_from(done: u64, total: u64, what: &'static str) -> Bar {
    let bar =
        styled(total, what, "{spinner} {pos}/{len} {msg} [{wide_bar}] {elapsed}, {eta} to go", |style| style);
    bar.set_position(done);
    bar.reset_eta();
    Bar::new(bar, move |bar| {
        let rest = bar.length().unwrap_or(0).saturating_sub(bar.position());
        line(bar, &to_go(bar.position() - done, rest, bar.elapsed()))
    })
}

/// The same for runs some of which are in real time: with how far these have come, as often as it is drawn. How long all of
/// them will take is not said: from how long other runs took nothing follows for them.
pub fn bar_in_real_time(total: u64, what: &'static str, progress: Arc<Progress>) -> Bar {
    let seen = Arc::clone(&progress);
    let bar = styled(total, what, "{spinner} {pos}/{len} {msg}{now} [{wide_bar}] {elapsed}", |style| {
        style.with_key("now", move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            // The bar's line is gone with the bar: nothing to be done about a failure.
            let _ = seen.now().map_or(Ok(()), |now| write!(out, "; {}", describe(now)));
        })
    });
    Bar::new(bar, move |bar| {
        let now = progress.now().map(|now| {
            let elapsed = Duration::from_nanos(now.elapsed.as_nanos());
            let left = to_go(now.read.0, now.size.0.saturating_sub(now.read.0), elapsed);
            format!("; {}{left}", describe(now))
        });
        line(bar, &now.unwrap_or_default())
    })
}

/// Says that `what` is going on, and for how long, where `work` takes a second or more.
pub fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    let second = Duration::from_secs(1);
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{going_on}") {
        bar.set_style(style.with_key(
            "going_on",
            move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                // The first drawing is at once.
                let elapsed = Some(state.elapsed()).filter(|&elapsed| elapsed >= second);
                let _ = elapsed.map_or(Ok(()), |elapsed| write!(out, "{what}, {} s", elapsed.as_secs()));
            },
        ));
    }
    bar.enable_steady_tick(second);
    let _bar = Bar::new(bar, move |bar| format!("after {}: {what}", rough(bar.elapsed())));
    work()
}

/// `after 14 s: 12 of 500 runs`, and the end of the line.
fn line(bar: &ProgressBar, end: &str) -> String {
    let of = bar.length().map_or_else(String::new, |total| format!(" of {total}"));
    format!("after {}: {}{of} {}{end}", rough(bar.elapsed()), bar.position(), bar.message())
}

/// `; about 9 min to go`, from how long the steps that are done took; nothing where none is, or none is left.
fn to_go(done: u64, rest: u64, elapsed: Duration) -> String {
    if done == 0 || rest == 0 {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() * rest as f64 / done as f64;
    Duration::try_from_secs_f64(seconds)
        .map_or_else(|_| String::new(), |left| format!("; about {} to go", rough(left)))
}

/// `42 s`, `12 min`, `5 h`: two digits, as far as there are that many.
fn rough(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h", (seconds + 1800) / 3600),
    }
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

    /// Hands each write to a test.
    struct Told(mpsc::Sender<String>);

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let told = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            told.map(|()| bytes.len()).map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_again_until_they_are_dropped_and_an_end_that_nobody_reads_is_no_fault() {
        let pace = Pace { first: Duration::ZERO, every: Duration::from_millis(1) };
        let (sender, told) = mpsc::channel();
        let lines = Lines::start(pace, || "going on".to_owned(), Told(sender));
        assert_eq!(told.iter().take(3).collect::<Vec<_>>(), ["farpath: going on\n"; 3]);
        drop(told);
        drop(lines);
        let never = Pace { first: Duration::MAX, every: Duration::MAX };
        drop(Lines::start(never, || unreachable!("not within this test"), io::sink()));
    }

    #[test]
    fn a_line_says_what_is_done_of_how_much_and_what_remains() {
        let bar = ProgressBar::with_draw_target(Some(500), ProgressDrawTarget::hidden());
        bar.set_message("runs");
        bar.set_position(12);
        assert_eq!(line(&bar, "; about 9 min to go"), "after 0 s: 12 of 500 runs; about 9 min to go");
        let seconds = Duration::from_secs;
        for (done, rest, elapsed, expected) in [
            (0, 500, 14, ""),
            (500, 0, 14, ""),
            (12, 488, 14, "; about 9 min to go"),
            (250, 250, 14, "; about 14 s to go"),
            (1, 9_000_000, 2, "; about 5000 h to go"),
            (1, u64::MAX, u64::MAX, ""),
        ] {
            assert_eq!(to_go(done, rest, seconds(elapsed)), expected);
        }
        for (time, expected) in [(99, "99 s"), (100, "2 min"), (5969, "99 min"), (6000, "2 h"), (9000, "3 h")]
        {
            assert_eq!(rough(seconds(time)), expected);
        }
    }

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
