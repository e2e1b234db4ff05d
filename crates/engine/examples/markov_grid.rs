//! Prints the table of `docs/models/markov.md`: predicted over simulated time, and counts of timeouts. 512 points of 20 seeds take minutes.
//!
//! ```text
//! cargo run --release -p farpath-engine --example markov_grid
//! ```

#[path = "../tests/all/common/mod.rs"]
mod common;

use common::compare;

fn main() {
    for stack in ["riverbed-16", "rfc-5681"] {
        println!("\n{stack}\n");
        println!("| W | RTT | min RTO | tick | 0.1 % | 1 % | 3 % | 10 % | both 0.1 % | 1 % | 3 % | 10 % |");
        println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
        for window in [4, 6, 12, 45] {
            for delay_ms in [20, 250] {
                for (min_rto, tick) in
                    [("1 s", "0 s"), ("1 s", "500 ms"), ("200 ms", "0 s"), ("200 ms", "500 ms")]
                {
                    print!("| {window} | {} ms | {min_rto} | {tick} |", 2 * delay_ms);
                    for directions in ["forward", "both"] {
                        for loss in ["0.1 %", "1 %", "3 %", "10 %"] {
                            print!(" {} |", cell(stack, window, delay_ms, min_rto, tick, directions, loss));
                        }
                    }
                    println!();
                }
            }
        }
    }
}

fn cell(
    stack: &str,
    window: u64,
    delay_ms: u64,
    min_rto: &str,
    tick: &str,
    directions: &str,
    loss: &str,
) -> String {
    let rate =
        if directions == "both" { format!("\"{loss}\"") } else { format!("{{ forward = \"{loss}\" }}") };
    let end = format!(
        "stack = \"{stack}\"\nreceive.buffer = \"{} B\"\nrto.min = \"{min_rto}\"\nrto.tick = \"{tick}\"\nhandshake.data_retries = \"unlimited\"",
        window * 1460,
    );
    let text = format!(
        r#"
title = "grid"
seeds = 20
horizon = "10000000 s"
[[path]]
element = "link"
name = "a"
rate = "10 Mbit/s"
overhead = "38 B"
min_packet = "46 B"
[[path]]
element = "delay"
delay = "{delay_ms} ms"
[[path]]
element = "loss"
rate = {rate}
[sender]
{end}
[receiver]
{end}
[transfer]
size = "10 MB"
"#
    );
    let both = compare(&text).remove(0);
    let ratio = both.predicted.seconds / both.simulated.seconds;
    format!("{ratio:.2}")
}
