//! What is allowed and probably not meant: a warning means "look before you trust this".

use crate::Scenario;
use farpath_path::{Direction, base_delay};
use farpath_tcp::HEADERS;
use farpath_units::{Bytes, Duration};

/// Largest window without scaling (RFC 9293 §3.1), and with it (RFC 7323 §2.3).
const UNSCALED_WINDOW: Bytes = Bytes(65_535);
const SCALED_WINDOW: Bytes = Bytes(65_535 << 14);

/// Time from sending a full segment on an empty path to its ACK: propagation and serialization.
pub(crate) fn base_rtt(scenario: &Scenario, data: Direction) -> Duration {
    let segment = scenario.sender.config.mss.min(scenario.receiver.config.mss) + HEADERS;
    base_delay(&scenario.path, data, segment) + base_delay(&scenario.path, data.opposite(), HEADERS)
}

pub(crate) fn of(scenario: &Scenario) -> Vec<String> {
    let mut warnings: Vec<String> = scenario
        .path
        .iter()
        .flat_map(|element| element.warnings())
        .map(|text| format!("path.{text}"))
        .collect();
    timers(scenario, &mut warnings);
    windows(scenario, &mut warnings);
    let late = scenario.flows.iter().filter(|flow| flow.start >= scenario.horizon).count();
    if late > 0 {
        let all = scenario.flows.len();
        warnings.push(format!("horizon: {late} of {all} flows start only at {} or later", scenario.horizon));
    }
    warnings
}

fn timers(scenario: &Scenario, warnings: &mut Vec<String>) {
    let (rto, receive) = (&scenario.sender.config.rto, &scenario.receiver.config.receive);
    if receive.ack_every > 1 && !receive.ack_delay.is_zero() && rto.min <= receive.ack_delay {
        warnings.push(format!(
            "sender.rto.min: {} is not above the receiver's ACK delay of {}: a lone segment can time out while \
             its ACK is withheld",
            rto.min, receive.ack_delay
        ));
    }
    // One flow of each direction is as good as all of them.
    for direction in Direction::BOTH {
        if !scenario.flows.iter().any(|flow| flow.direction == direction) {
            continue;
        }
        let rtt = base_rtt(scenario, direction);
        if rtt > rto.max {
            warnings.push(format!(
                "sender.rto.max: {} is below the round-trip time of {rtt:.3}: every segment times out before \
                 its ACK can come",
                rto.max
            ));
            break;
        }
    }
}

fn windows(scenario: &Scenario, warnings: &mut Vec<String>) {
    let (sender, receiver) = (&scenario.sender.config, &scenario.receiver.config);
    let buffer = receiver.receive.buffer;
    let scaling = sender.send.window_scaling && receiver.send.window_scaling;
    if buffer > UNSCALED_WINDOW && !scaling {
        warnings.push(format!(
            "receiver.receive.buffer: without window scaling at both ends the window stops at \
             {UNSCALED_WINDOW}; the other {} are never announced",
            buffer - UNSCALED_WINDOW
        ));
    } else if buffer > SCALED_WINDOW {
        warnings.push(format!("receiver.receive.buffer: the window stops at {SCALED_WINDOW}"));
    }
    let segment = sender.mss.min(receiver.mss);
    if buffer < segment {
        warnings.push(format!(
            "receiver.receive.buffer: {buffer} is below one segment of {segment}: every segment waits for the \
             ACK of the one before it"
        ));
    }
}
