//! Windows and buffers, and the application behind them.

use super::{Reason, rtt_number, short};
use crate::bound_id::BoundId;
use crate::facts::{Facts, UNSCALED_WINDOW};
use crate::{Number, Unit};
use farpath_units::Bytes;

const WINDOW_SOURCE: &str =
    "window / RTT with the delayed ACK (docs/models/window-limit.md); RFC 9293 section 3.8.6";

/// How a window compares with what fills the path.
fn against_bdp(facts: &Facts<'_>, window: Bytes) -> String {
    match facts.bdp {
        Some(bdp) if bdp > window => {
            let times = bdp.0 as f64 / window.0 as f64;
            format!(
                "the path holds {} in a round trip of {:.3}, {times:.1} times as much",
                short(bdp),
                facts.rtt
            )
        }
        Some(bdp) => {
            format!("the path holds no more than {} in a round trip of {:.3}", short(bdp), facts.rtt)
        }
        None => format!("a round trip takes {:.3}", facts.rtt),
    }
}

fn window_numbers(facts: &Facts<'_>, name: &'static str, window: Bytes) -> Vec<Number> {
    let mut numbers = vec![Number::new(name, window.0 as f64, Unit::Bytes), rtt_number(facts)];
    numbers.extend(
        facts.bdp.map(|bdp| Number::new("bandwidth-delay product, payload", bdp.0 as f64, Unit::Bytes)),
    );
    numbers
}

pub(super) fn receive_window(facts: &Facts<'_>) -> Reason {
    let (sender, receiver) = (facts.sender(), facts.receiver());
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
        allows_bit_per_s: facts.rate_of_window(announced),
        numbers: window_numbers(facts, "receive window", announced),
        why: format!(
            "at most {} are announced{because}; {}",
            short(announced),
            against_bdp(facts, announced)
        ),
        source: WINDOW_SOURCE,
    }
}

pub(super) fn send_buffer(facts: &Facts<'_>) -> Option<Reason> {
    let buffer = facts.sender().send.buffer?;
    Some(Reason {
        id: BoundId::SendBuffer,
        allows_bit_per_s: facts.rate_of_window(buffer),
        numbers: window_numbers(facts, "send buffer", buffer),
        why: format!("at most {} wait for their ACK; {}", short(buffer), against_bdp(facts, buffer)),
        source: WINDOW_SOURCE,
    })
}

pub(super) fn cwnd_clamp(facts: &Facts<'_>) -> Option<Reason> {
    let clamp = facts.sender().congestion.cwnd_clamp?;
    Some(Reason {
        id: BoundId::CwndClamp,
        allows_bit_per_s: facts.rate_of_window(clamp),
        numbers: window_numbers(facts, "largest cwnd", clamp),
        why: format!("cwnd never passes {}; {}", short(clamp), against_bdp(facts, clamp)),
        source: WINDOW_SOURCE,
    })
}

pub(super) fn application(facts: &Facts<'_>) -> Option<Reason> {
    let rate = facts.receiver().receive.read_rate? as f64 * 8.0;
    Some(Reason {
        id: BoundId::Application,
        allows_bit_per_s: Some(rate),
        numbers: vec![Number::new("read rate", rate, Unit::BitPerS)],
        why: "the receiving application reads no faster".to_owned(),
        source: "RFC 9293 section 3.8.6: what is not read closes the window",
    })
}
