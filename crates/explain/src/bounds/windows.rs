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
