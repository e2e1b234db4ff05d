//! Prints the table of `docs/models/epochs.md`: predicted over simulated time.
//!
//! ```text
//! cargo run --release -p farpath-engine --example epoch_grid
//! ```

#[path = "../tests/all/common/mod.rs"]
mod common;

use common::compare;

const LOSSES: [&str; 6] = ["0 %", "0.001 %", "0.01 %", "0.1 %", "0.3 %", "1 %"];

fn main() {
    println!("| control | SACK | rate | RTT | queue, BDP | size | {} |", LOSSES.join(" | "));
    println!("|---|---|---|---|---|---|{}", "---|".repeat(LOSSES.len()));
    for control in ["reno", "cubic"] {
        for sack in [true, false] {
            for (rate_mbit, delay_ms) in [(10, 300), (100, 50), (1000, 10)] {
                for queue_bdp in [0.2, 1.0] {
                    for size_mb in [1, 10, 100] {
                        let at = Point { control, sack, rate_mbit, delay_ms, queue_bdp, size_mb };
                        print!(
                            "| {control} | {sack} | {rate_mbit} Mbit/s | {} ms | {queue_bdp} | {size_mb} MB |",
                            2 * delay_ms
                        );
                        for loss in LOSSES {
                            print!(" {} |", cell(&at, loss));
                        }
                        println!();
                    }
                }
            }
        }
    }
}

struct Point {
    control: &'static str,
    sack: bool,
    rate_mbit: u64,
    delay_ms: u64,
    queue_bdp: f64,
    size_mb: u64,
}

fn cell(at: &Point, loss: &str) -> String {
    let Point { control, sack, rate_mbit, delay_ms, queue_bdp, size_mb } = at;
    let bdp = rate_mbit * 125 * 2 * delay_ms;
    let queue = (bdp as f64 * queue_bdp) as u64;
    let end = format!(
        "stack = \"rfc-5681\"\nreceive.buffer = \"{} B\"\nsend.window_scaling = true\nrecovery.sack = {sack}\ncongestion.control = \"{control}\"\ncongestion.initial_window = 10\nhandshake.data_retries = \"unlimited\"",
        4 * bdp
    );
    let text = format!(
        r#"
title = "grid"
seeds = 10
horizon = "10000000 s"
[[path]]
element = "link"
rate = "{rate_mbit} Mbit/s"
queue = "{queue} B"
[[path]]
element = "delay"
delay = "{delay_ms} ms"
[[path]]
element = "loss"
rate = {{ forward = "{loss}" }}
[sender]
{end}
[receiver]
{end}
[transfer]
size = "{size_mb} MB"
"#
    );
    let both = compare(&text).remove(0);
    format!("{:.2}", both.predicted.seconds / both.simulated.seconds)
}
