//! How far a long command has come, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar of `total` steps on stderr; nothing where stderr is not a terminal.
pub fn bar(total: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    let style =
        ProgressStyle::with_template("{spinner} {pos}/{len} {msg} [{wide_bar}] {elapsed}, {eta} to go");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
