//! A file at a granted rate: the rate that a lone flow is granted, and the bound for a file at a constant rate.

use super::loss::handshake_waits;
use super::{Flow, Prediction};
use farpath_elements::ElementSpec;
use farpath_model::InputError;
use farpath_model::arq::FiniteFile;
use farpath_tcp::config::RateKind;
use farpath_units::{Bytes, Probability, Rate};

/// All that a SYN/ACK can announce: its window is not scaled.
const FIRST_FLIGHT: Bytes = Bytes(65_535);

/// Makes of a prediction without loss that of a granted rate. Whether there is one; where there is not, though it is asked for, a caveat says why.
pub(super) fn add(
    flow: &Flow,
    elements: &[ElementSpec],
    prediction: &mut Prediction,
) -> Result<bool, InputError> {
    if flow.sender.explicit_rate.wanted.is_none() {
        return Ok(false);
    }
    let granted = match granted(flow, elements) {
        Ok(granted) => granted,
        Err(why) => {
            let caveat = format!("explicit rate is left out: {why}; predicted as if no router granted any");
            prediction.caveats.push(caveat);
            return Ok(false);
        }
    };
    let view = &flow.view;
    let packet = (view.mss + view.path.headers).0;
    let payload = u128::from(granted.bit_per_s()) * u128::from(view.mss.0) / u128::from(packet);
    let payload = u64::try_from(payload).ok().and_then(Rate::from_bit_per_s).unwrap_or(granted);
    let unscaled = unscaled_rate(flow).filter(|&rate| rate < payload);
    let file = FiniteFile {
        size: flow.spec.size,
        mss: view.mss,
        rate: unscaled.unwrap_or(payload),
        rtt: view.handshake_rtt,
        loss_rate: view.data_loss,
        first_flight: (!flow.sender.explicit_rate.early_window).then_some(FIRST_FLIGHT),
    };
    let time = file.time()?;
    let waits = handshake_waits(flow, prediction);
    prediction.established += waits;
    // Its first round trip is the handshake.
    prediction.transfer_time = prediction.established + time.value.saturating_sub(view.handshake_rtt);
    let lost = view.data_loss.fraction();
    prediction.retransmissions = Some(prediction.segments * lost / (1.0 - lost));
    prediction.fast_retransmits = None;
    prediction.timeouts = None;
    prediction.by = time.source;
    prediction.caveats.extend(time.caveats);
    if unscaled.is_some() {
        let caveat = format!(
            "without window scaling at both ends no more than {FIRST_FLIGHT} are on their way, and a repair holds them up"
        );
        prediction.caveats.push(caveat);
    }
    if lost > 0.0 && !(flow.sender.recovery.sack && flow.receiver.recovery.sack) {
        prediction
            .caveats
            .push("the bound is with SACK, which these ends do not have: expect it to be slower".to_owned());
    }
    let needed = file.window()?.value;
    if !flow.sender.explicit_rate.size_buffers && flow.window.0 < needed.0 {
        let caveat = format!(
            "the rate takes buffers of {needed} while losses are repaired, and has {}: expect it to be slower",
            flow.window
        );
        prediction.caveats.push(caveat);
    }
    Ok(true)
}

/// What a window that is not scaled lets through, whatever the buffers are.
fn unscaled_rate(flow: &Flow) -> Option<Rate> {
    let scaled = flow.sender.scales_with(flow.receiver);
    let round = flow.view.handshake_rtt.as_secs_f64();
    let rate = FIRST_FLIGHT.0 as f64 * 8.0 / round;
    (!scaled && round > 0.0).then(|| Rate::from_bit_per_s(rate as u64)).flatten()
}

/// What a lone flow is granted, bits of IP packets; or why nothing is, or nothing that lasts.
fn granted(flow: &Flow, elements: &[ElementSpec]) -> Result<Rate, String> {
    let asking = &flow.sender.explicit_rate;
    let Some(wanted) = asking.wanted.filter(|_| asking.kind == RateKind::Available) else {
        return Err("only what is asked for as an available rate has a closed form".to_owned());
    };
    if flow.receiver.explicit_rate.wanted.is_none() {
        return Err("the peer does not answer".to_owned());
    }
    let way = flow.spec.direction;
    let mut routers = elements.iter().filter_map(|element| element.spec().granted_alone(way)).peekable();
    if routers.peek().is_none() {
        return Err("there is no flow router on the path".to_owned());
    }
    let granted = routers.flatten().fold(wanted, Rate::min);
    let full = flow.view.mss + flow.view.path.headers;
    let blind = flow.view.path.forward.iter().map(|hop| hop.rate.time_to_send(hop.frame(full))).max();
    if blind.is_some_and(|slowest| slowest > granted.time_to_send(full)) {
        return Err(format!("{granted} are more than a link has that knows nothing of it"));
    }
    let limit = Probability::new(f64::from(asking.loss_limit_per_mille) / 1000.0).unwrap_or(Probability::ONE);
    if flow.view.data_loss > limit || flow.view.data_loss == Probability::ONE {
        return Err(format!("more is lost than the limit of {limit}"));
    }
    Ok(granted)
}
