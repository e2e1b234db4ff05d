//! What is told of clients, of which a flood of them makes no flood.

use crate::limits::{LINES, LINES_WITHIN};
use farpath_emu::Clock;
use farpath_units::Instant;
use std::sync::{Mutex, PoisonError};

/// Lines that are told, so many in a time.
pub struct Log<'a> {
    told: &'a (dyn Fn(&str) + Sync),
    clock: Clock,
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl<'a> Log<'a> {
    pub fn new(told: &'a (dyn Fn(&str) + Sync)) -> Log<'a> {
        Log { told, clock: Clock::start(), window: Mutex::default() }
    }

    /// Tells a line, or counts it.
    pub fn tell(&self, line: &str) {
        let left_out = {
            let now = self.clock.now();
            let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
            if now.saturating_since(window.since) >= LINES_WITHIN {
                (window.since, window.lines) = (now, 0);
            }
            if window.lines == LINES {
                window.left_out += 1;
                return;
            }
            window.lines += 1;
            std::mem::take(&mut window.left_out)
        };
        if left_out > 0 {
            (self.told)(&format!("{left_out} lines were left out: more than {LINES} in {LINES_WITHIN}"));
        }
        (self.told)(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_of_lines_so_many_are_told_and_the_rest_is_counted() {
        let lines = Mutex::new(Vec::new());
        let told = |line: &str| lines.lock().expect("no panic").push(line.to_owned());
        let log = Log::new(&told);
        for number in 0..LINES + 50 {
            log.tell(&number.to_string());
        }
        // The next window.
        log.window.lock().expect("no panic").since = Instant::ZERO;
        let passed = Log {
            clock: log.clock,
            told: log.told,
            window: Mutex::new(Window { lines: 0, ..log.window.into_inner().expect("no panic") }),
        };
        passed.tell("after");
        let lines = lines.into_inner().expect("no panic");
        assert_eq!(lines.len(), LINES as usize + 2, "{lines:?}");
        assert!(lines[LINES as usize].starts_with("50 lines were left out"), "{lines:?}");
    }
}
