//! Predicted beside simulated. Each tolerance has its reason; a wider one is a defect.

use crate::common::{Compared, compare};

/// Two 10 Mbit/s Ethernet links and 20 ms each way, Riverbed's TCP: the high-BER paper's download.
fn noisy_channel(buffer: u64, loss_element: &str) -> String {
    format!(
        r#"
title = "noisy channel"
seeds = 20
horizon = "10 h"
[[path]]
element = "link"
name = "server-link"
rate = "10 Mbit/s"
overhead = "38 B"
min_packet = "46 B"
[[path]]
{loss_element}
[[path]]
element = "delay"
delay = "20 ms"
[[path]]
element = "link"
name = "client-link"
rate = "10 Mbit/s"
overhead = "38 B"
min_packet = "46 B"
[sender]
stack = "riverbed-16"
[receiver]
stack = "riverbed-16"
receive.buffer = "{buffer} B"
[transfer]
size = "10 MB"
opener = "receiver"
"#
    )
}

/// One link, RFC 5681's TCP with scaled windows.
fn one_link(rate: &str, delay: &str, buffer: &str, size: &str) -> String {
    let end = format!("stack = \"rfc-5681\"\nreceive.buffer = \"{buffer}\"\nsend.window_scaling = true");
    format!(
        r#"
title = "one link"
horizon = "10 h"
[[path]]
element = "link"
rate = "{rate}"
[[path]]
element = "delay"
delay = "{delay}"
[sender]
{end}
[receiver]
{end}
[transfer]
size = "{size}"
"#
    )
}

/// How far the prediction is off, as a share of the simulated time.
fn error(point: &Compared) -> f64 {
    point.predicted.seconds / point.simulated.seconds - 1.0
}

fn assert_within(tolerance: f64, point: &Compared, what: &str) {
    let error = error(point);
    assert!(error.abs() < tolerance, "{what}: {:+.2} %, {point:?}", error * 100.0);
}

/// 0.1 %: both walk the same events; what is left is the rounding of a link's time to whole nanoseconds.
#[test]
fn without_loss_the_walk_is_the_simulation() {
    for (rate, delay, buffer, size) in [
        ("10 Mbit/s", "20 ms", "8760 B", "10 MB"),
        ("10 Mbit/s", "20 ms", "7300 B", "1 MB"),
        ("10 Mbit/s", "20 ms", "1 MB", "10 MB"),
        ("10 Mbit/s", "270 ms", "700 kB", "10 MB"),
        ("10 Mbit/s", "270 ms", "64 kB", "10 MB"),
        ("1 Gbit/s", "5 ms", "64 kB", "1 kB"),
        ("128 kbit/s", "100 ms", "4380 B", "50 kB"),
        ("10 Gbit/s", "300 ms", "750 MB", "2 GB"),
    ] {
        let point = &compare(&one_link(rate, delay, buffer, size))[0];
        assert_within(0.001, point, &format!("{rate} {delay} {buffer} {size}"));
        assert!(point.caveats.is_empty(), "{point:?}");
        assert_eq!((point.predicted.timeouts, point.predicted.retransmissions), (0.0, 0.0));
    }
}

/// 3 % up to 1 % loss, 6 % at 10 %: the mean of 20 seeds is itself uncertain by 2 % there, and the chain takes what
/// is lost behind the first hole as spread evenly.
#[test]
fn losses_both_ways_at_six_segments() {
    let loss = "element = \"loss\"\nname = \"loss\"\nrate = \"0 %\"";
    let sweep = "[sweep]\n\"path.loss\" = [\"0 %\", \"0.01 %\", \"0.1 %\", \"1 %\", \"10 %\"]\n";
    let points = compare(&(noisy_channel(8760, loss) + sweep));
    for (point, tolerance) in points.iter().zip([0.001, 0.01, 0.02, 0.03, 0.06]) {
        assert_within(tolerance, point, "flagship");
    }
    for point in &points[3..] {
        assert!((point.predicted.timeouts / point.simulated.timeouts - 1.0).abs() < 0.1, "{point:?}");
        let retransmissions = point.predicted.retransmissions / point.simulated.retransmissions;
        assert!((retransmissions - 1.0).abs() < 0.1, "{point:?}");
        assert!(point.by.contains("Markov"));
    }
}

/// As both ways.
#[test]
fn losses_of_data_only_at_six_segments() {
    let loss = "element = \"loss\"\nname = \"loss\"\nrate = { forward = \"0 %\" }";
    let sweep = "[sweep]\n\"path.loss.rate.forward\" = [\"0.1 %\", \"1 %\", \"10 %\"]\n";
    let points = compare(&(noisy_channel(8760, loss) + sweep));
    for (point, tolerance) in points.iter().zip([0.02, 0.03, 0.06]) {
        assert_within(tolerance, point, "data only");
    }
}

/// 1 %: a drop at one of six positions costs 4.9 to 5.7 rounds, the formula says 5.33 for each; nothing is random.
/// 4 % where a repair, which takes 46 segments, is hardly over when the 50th is dropped.
#[test]
fn evenly_spaced_losses_are_isolated_recoveries() {
    for (every, tolerance) in [(50, 0.04), (100, 0.01), (1000, 0.01)] {
        let loss =
            format!("element = \"evenly-spaced-loss\"\nevery = {{ forward = {every} }}\ncount = \"data\"");
        let point = &compare(&noisy_channel(8760, &loss))[0];
        assert_within(tolerance, point, &format!("every {every}th"));
        assert!(point.by.contains("Eq. 17"), "{}", point.by);
    }
}

/// 10 %: after two losses in a window the chain lets a third too many repairs of plain Reno end in a timeout.
#[test]
fn losses_at_a_window_of_64_kilobytes() {
    let loss = "element = \"loss\"\nname = \"loss\"\nrate = \"0 %\"";
    let sweep = "[sweep]\n\"path.loss\" = [\"0.1 %\", \"1 %\", \"3 %\", \"10 %\"]\n";
    for point in &compare(&(noisy_channel(65_535, loss) + sweep)) {
        assert_within(0.1, point, "64 KB");
    }
}

/// 12 %: one, eight or eighty losses in a file whose first slow start goes to 479 segments. The recursion takes windows
/// as continuous and timeouts as rare.
#[test]
fn few_losses_of_a_large_window() {
    let end = "stack = \"rfc-5681\"\nreceive.buffer = \"700 kB\"\nsend.window_scaling = true";
    let text = format!(
        "title = \"geo\"\nseeds = 100\nhorizon = \"1 h\"\npath = \"geo\"\n[sender]\n{end}\n[receiver]\n{end}\n\
         [transfer]\nsize = \"10 MB\"\n[sweep]\n\"path.bit-errors\" = [1e-8, 1e-7, 1e-6]\n"
    );
    for point in &compare(&text) {
        assert_within(0.12, point, "geo");
    }
}

/// Timers shorter than the round trip fire without a loss: the prediction leaves that out, and says so.
#[test]
fn timers_shorter_than_the_round_trip_are_named() {
    // Over 3.2 s the 3 s with which data begin after a SYN that left again (RFC 6298 section 5.7) are too short as well.
    for (rate, delay) in [("9600 bit/s", "100 ms"), ("10 Mbit/s", "1600 ms")] {
        let point = &compare(&one_link(rate, delay, "64 kB", "50 kB"))[0];
        assert!(point.caveats.iter().any(|caveat| caveat.contains("without a loss")), "{point:?}");
        assert!(point.simulated.retransmissions > 0.0, "{point:?}");
    }
    let wide = &compare(&one_link("10 Mbit/s", "270 ms", "64 kB", "1 MB"))[0];
    assert!(wide.caveats.is_empty() && wide.simulated.retransmissions == 0.0, "{wide:?}");
}

/// A window that path and queue cannot hold, with SACK. 5 %: the model takes the repair of a slow start's overshoot for
/// one round.
#[test]
fn an_overflowing_queue() {
    let sack = "recovery.sack = true\nsend.window_scaling";
    for control in ["reno", "cubic"] {
        let text = one_link("100 Mbit/s", "50 ms", "5 MB", "100 MB")
            .replace("rate =", "queue = \"1250 kB\"\nrate =")
            .replace("send.window_scaling", &format!("congestion.control = \"{control}\"\n{sack}"));
        let point = &compare(&text)[0];
        assert_within(0.05, point, control);
        assert!(point.by.contains("rounds"), "{point:?}");
        assert!(point.simulated.retransmissions > 100.0, "{point:?}");
    }
}

/// Without SACK, hundreds of drops end in a row of timeouts: there is no prediction, and it says why.
#[test]
fn an_overflowing_queue_without_sack_is_named() {
    let text =
        one_link("100 Mbit/s", "50 ms", "5 MB", "100 MB").replace("rate =", "queue = \"1250 kB\"\nrate =");
    let point = &compare(&text)[0];
    assert!(point.caveats.iter().any(|caveat| caveat.contains("a queue that overflows")), "{point:?}");
}

/// Slow starts other than one SMSS per ACK, without a loss. 2 %: rounds are counted whole.
#[test]
fn other_slow_starts() {
    for (change, rate, tolerance) in [
        ("congestion.slow_start = \"two-segments\"", "1 Gbit/s", 0.02),
        ("congestion.hystart = true\ncongestion.control = \"cubic\"", "20 Mbit/s", 0.1),
    ] {
        let text = one_link(rate, "250 ms", "2 MB", "10 MB")
            .replace("send.window", &format!("{change}\nsend.window"));
        let point = &compare(&text)[0];
        assert_within(tolerance, point, change);
        assert_eq!(point.simulated.retransmissions, 0.0, "{point:?}");
    }
}

/// Today's Linux over a long path, with a queue of one bandwidth-delay product. 6 % without loss: the hosts of a simulation take
/// times that differ by seed, and a segment more or less in a burst decides when the queue overflows; 15 % where losses are random: at 0.1 % the prediction is 12 % too long, and 400 seeds leave 5 %.
#[test]
fn linux_6() {
    let text = r#"
title = "linux-6"
seeds = 400
horizon = "10 h"
[[path]]
element = "link"
rate = "10 Mbit/s"
queue = "750 kB"
[[path]]
element = "delay"
delay = "300 ms"
[[path]]
element = "loss"
rate = { forward = "0 %" }
[sender]
stack = "linux-6"
[receiver]
stack = "linux-6"
[transfer]
size = "10 MB"
[sweep]
"path.loss.rate.forward" = ["0 %", "0.1 %", "1 %", "3 %"]
"#;
    for (point, tolerance) in compare(text).iter().zip([0.06, 0.15, 0.15, 0.15]) {
        assert_within(tolerance, point, "linux-6");
        assert!(point.by.contains("rounds"), "{point:?}");
    }
}

/// Controllers that own cwnd, over a queue that is deep and one that their start overflows. Without loss by chance the walk is
/// within 2 %; how many segments an overflow loses is not as near, and costs BBR little. With it, 60 simulated seeds are within 3 % themselves;
/// version 3 bounds its windows by shares of what is lost, and is up to 11 % fast.
#[test]
fn bbr() {
    for (control, with_losses) in [("bbr", 0.06), ("bbr3", 0.15)] {
        for queue in ["750 kB", "50 kB"] {
            let text = format!(
                r#"
title = "{control}"
seeds = 60
horizon = "10 h"
[[path]]
element = "link"
rate = "10 Mbit/s"
queue = "{queue}"
[[path]]
element = "delay"
delay = "100 ms"
[[path]]
element = "loss"
rate = {{ forward = "0 %" }}
[sender]
stack = "linux-6"
congestion.control = "{control}"
[receiver]
stack = "linux-6"
[transfer]
size = "5 MB"
[sweep]
"path.loss.rate.forward" = ["0 %", "0.1 %", "1 %", "3 %"]
"transfer.size" = ["300 kB", "5 MB"]
"#
            );
            for (number, point) in compare(&text).iter().enumerate() {
                let tolerance = if number < 2 { 0.03 } else { with_losses };
                assert_within(tolerance, point, &format!("{control}, {queue}, point {number}"));
                assert!(point.by.contains("ACK by ACK"), "{point:?}");
            }
        }
    }
}

/// A queue that marks. 10 %: rounds are counted whole, and the first of the echoed marks may come in the middle of one.
#[test]
fn marks_hold_the_window_down() {
    let text = include_str!("../../../../experiments/ecn.toml");
    let sweep = text.find("[sweep]").expect("the experiment sweeps");
    let swept = "[sweep]\n\"path.link.mark.forward\" = [\"100 kB\", \"200 kB\", \"300 kB\"]\n";
    let marked = text[..sweep].to_owned() + swept;
    for point in &compare(&marked) {
        assert_within(0.1, point, "ecn");
    }
    // Nobody asks for ECN: nothing is marked.
    let unmarked = &compare(&marked.replace("\"request\"", "\"accept\""))[0];
    assert!(unmarked.predicted.retransmissions > 100.0, "{unmarked:?}");
}
