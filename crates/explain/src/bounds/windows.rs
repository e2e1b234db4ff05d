//! Windows and buffers, and the application behind them.

use super::{Reason, rtt_number, short};
use crate::bound_id::BoundId;
use crate::path_summary::{PathSummary, UNSCALED_WINDOW};
use crate::{Number, Unit};
use farpath_units::Bytes;

const WINDOW_SOURCE: &str =
    "window / RTT with the delayed ACK (docs/models/window-limit.md); RFC 9293 section 3.8.6";

/// How a window compares with what fills the path.
fn against_bdp(summary: &PathSummary<'_>, window: Bytes) -> String {
    match summary.bdp {
        Some(bdp) if bdp > window => {
            let times = bdp.0 as f64 / window.0 as f64;
            format!(
                "the path holds {} in a round trip of {:.3}, {times:.1} times as much",
                short(bdp),
                summary.rtt
            )
        }
        Some(bdp) => {
            format!("the path holds no more than {} in a round trip of {:.3}", short(bdp), summary.rtt)
        }
        None => format!("a round trip takes {:.3}", summary.rtt),
    }
}

fn window_numbers(summary: &PathSummary<'_>, name: &'static str, window: Bytes) -> Vec<Number> {
    let mut numbers = vec![Number::new(name, window.0 as f64, Unit::Bytes), rtt_number(summary)];
    numbers.extend(
        summary.bdp.map(|bdp| Number::new("bandwidth-delay product, payload", bdp.0 as f64, Unit::Bytes)),
    );
    numbers
}

pub(super) fn receive_window(summary: &PathSummary<'_>) -> Reason {
    let (sender, receiver) = (summary.sender(), summary.receiver());
    let scaled = sender.scales_with(receiver);
    let buffer = receiver.receive.buffer;
    let announced = if scaled { buffer } else { buffer.min(UNSCALED_WINDOW) };
    let because = if !scaled && buffer >= UNSCALED_WINDOW {
        " (the most without window scaling at both ends)"
    } else {
        ""
    };
    Reason {
        id: BoundId::ReceiveWindow,
        allows_bit_per_s: summary.rate_of_window(announced),
        numbers: window_numbers(summary, "receive window", announced),
        why: format!(
            "at most {} are announced{because}; {}",
            short(announced),
            against_bdp(summary, announced)
        ),
        source: WINDOW_SOURCE,
    }
}

pub(super) fn send_buffer(summary: &PathSummary<'_>) -> Option<Reason> {
    let buffer = summary.sender().send.buffer?;
    Some(Reason {
        id: BoundId::SendBuffer,
        allows_bit_per_s: summary.rate_of_window(buffer),
        numbers: window_numbers(summary, "send buffer", buffer),
        why: format!("at most {} wait for their ACK; {}", short(buffer), against_bdp(summary, buffer)),
        source: WINDOW_SOURCE,
    })
}

pub(super) fn cwnd_clamp(summary: &PathSummary<'_>) -> Option<Reason> {
    let clamp = summary.sender().congestion.cwnd_clamp?;
    Some(Reason {
        id: BoundId::CwndClamp,
        allows_bit_per_s: summary.rate_of_window(clamp),
        numbers: window_numbers(summary, "largest cwnd", clamp),
        why: format!("cwnd never passes {}; {}", short(clamp), against_bdp(summary, clamp)),
        source: WINDOW_SOURCE,
    })
}

pub(super) fn application(summary: &PathSummary<'_>) -> Option<Reason> {
    let rate = summary.receiver().receive.read_rate? as f64 * 8.0;
    Some(Reason {
        id: BoundId::Application,
        allows_bit_per_s: Some(rate),
        numbers: vec![Number::new("read rate", rate, Unit::BitPerS)],
        why: "the receiving application reads no faster".to_owned(),
        source: "RFC 9293 section 3.8.6: what is not read closes the window",
    })
}

/// What an update allows anew is sent, read, and said to be read: a round trip, and the time that the link takes for so much. A window
/// leaves in that time.
pub(super) fn application_window(summary: &PathSummary<'_>) -> Option<Reason> {
    let writing = summary.scenario.flows[0].writing;
    let (window, step) = (writing.window?, writing.step()?);
    let cycle = |rate: f64| summary.rtt.as_secs_f64() + step.bits() as f64 / rate;
    let most = summary.rate_of_link();
    let bits = window.bits() as f64;
    let allowed = most.map_or(bits / summary.rtt.as_secs_f64(), |rate| rate.min(bits / cycle(rate)));
    Some(Reason {
        id: BoundId::ApplicationWindow,
        allows_bit_per_s: Some(allowed),
        numbers: window_numbers(summary, "window of the program", window),
        why: format!(
            "the program is at most {} ahead of the one that reads, which says so after each {}; {}",
            short(window),
            short(step),
            against_bdp(summary, window)
        ),
        source: "window / (round trip + an update's bytes at the link's rate); RFC 4254 section 5.2 (SSH), RFC 9113 section 5.2 (HTTP/2)",
    })
}

pub(super) fn application_writes(summary: &PathSummary<'_>) -> Option<Reason> {
    let writing = summary.scenario.flows[0].writing;
    let piece = writing.write_size?;
    let pause = writing.think_time;
    let rate = (!pause.is_zero()).then(|| piece.bits() as f64 / pause.as_secs_f64());
    let mut numbers = vec![Number::new("bytes of a write", piece.0 as f64, Unit::Bytes)];
    numbers.push(Number::new("from one write to the next", pause.as_secs_f64(), Unit::Seconds));
    let pauses = if pause.is_zero() { String::new() } else { format!(", and pauses for {pause} after each") };
    Some(Reason {
        id: BoundId::ApplicationWrites,
        allows_bit_per_s: rate,
        numbers,
        why: format!("the program writes {} at a time{pauses}", short(piece)),
        source: "bytes of a write / pause; RFC 9293 section 3.7.4 (Nagle's rule, where they are no full segments)",
    })
}
