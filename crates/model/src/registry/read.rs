//! Reads the inputs of the larger formulas from named arguments.

use super::{EvaluateError, Given};
use crate::cardwell::Cardwell;
use crate::lossless::{LosslessTransfer, Opener};
use crate::ltp;
use crate::pftk::Pftk;
use crate::radio::PollCycle;
use crate::radius::{Connects, FirstData, Listening, LossyOpening, LossyWay, Opening, Timer};
use crate::recovery::Phase;
use crate::retransmissions::Loss;
use crate::stream::{IsolatedLoss, Window};
use crate::window_limit::DelayedAckCycle;
use crate::{Estimate, Hop, Path};
use farpath_units::{Bytes, Duration, Probability};

pub(super) fn path(given: &Given<'_>) -> Result<Path, EvaluateError> {
    let links = given.count("links")?;
    if !(1..=64).contains(&links) {
        return Err(given.fail("links", "between 1 and 64"));
    }
    let hop = Hop {
        rate: given.rate("rate")?,
        propagation: given.seconds("owd")? / links,
        overhead: given.bytes("link_overhead")?,
        min_payload: given.bytes("min_payload")?,
    };
    Ok(Path { headers: given.bytes("headers")?, ..Path::symmetric(vec![hop; links as usize]) })
}

pub(super) fn cycle<'a>(given: &Given<'_>, path: &'a Path) -> Result<DelayedAckCycle<'a>, EvaluateError> {
    Ok(DelayedAckCycle {
        path,
        mss: given.bytes("mss")?,
        rwnd: given.bytes("rwnd")?,
        ack_every: given.count("ack_every")?,
        delayed_ack_timeout: given.seconds("delayed_ack_timeout")?,
    })
}

pub(super) fn isolated_loss(given: &Given<'_>) -> Result<IsolatedLoss, EvaluateError> {
    let ack_factor = given.not_negative("ack_factor")?;
    let window =
        if ack_factor == 0.0 { Window::Cubic { alpha_beyond: 1.0 } } else { Window::Reno { ack_factor } };
    let limit = given.window("limit")?.unwrap_or(Bytes::MAX);
    let (rate, rtt, mss) = (given.rate("rate")?, given.seconds("rtt")?, given.bytes("mss")?);
    Ok(IsolatedLoss { rate, rtt, mss, window, limit })
}

pub(super) fn ltp_block(given: &Given<'_>) -> Result<ltp::Block, EvaluateError> {
    Ok(ltp::Block {
        size: given.bytes("size")?,
        segment: given.bytes("segment")?,
        overhead: given.bytes("overhead")?,
        rate: given.rate("rate")?,
        rtt: given.seconds("rtt")?,
        loss_rate: given.probability("p")?,
        report_loss_rate: given.probability("report_p")?,
        margin: given.seconds("margin")?,
    })
}

pub(super) fn poll_cycle(given: &Given<'_>) -> Result<PollCycle, EvaluateError> {
    Ok(PollCycle {
        rate: given.rate("rate")?,
        rx_to_tx: given.seconds("rx_to_tx")?,
        tx_to_rx: given.seconds("tx_to_rx")?,
        poll: given.bytes("poll")?,
        header: given.bytes("link_header")?,
        link_ack: given.bytes("link_ack")?,
        burst: given.count("burst")?,
        gap: given.seconds("gap")?,
    })
}

pub(super) fn lossless(given: &Given<'_>) -> Result<Vec<f64>, EvaluateError> {
    let path = path(given)?;
    let opener = match given.number("handshake") {
        0.0 => Opener::Established,
        1.0 => Opener::Sender,
        1.5 => Opener::Receiver,
        _ => return Err(given.fail("handshake", "0, 1 or 1.5 round trips")),
    };
    let transfer = LosslessTransfer {
        path: &path,
        size: given.bytes("size")?,
        mss: given.bytes("mss")?,
        rwnd: given.bytes("rwnd")?,
        initial_window: given.count("iw")?,
        initial_ssthresh: given.window("ssthresh")?.unwrap_or(Bytes::MAX),
        ack_every: given.count("ack_every")?,
        delayed_ack_timeout: given.seconds("delayed_ack_timeout")?,
        opener,
    };
    let times = transfer.times().map_err(|error| given.input(error))?.value;
    Ok([times.last_byte_received, times.last_byte_acknowledged, times.established]
        .map(Duration::as_secs_f64)
        .to_vec())
}

pub(super) fn pftk(given: &Given<'_>) -> Result<Pftk, EvaluateError> {
    Ok(Pftk {
        mss: given.bytes("mss")?,
        rtt: given.seconds("rtt")?,
        t0: given.seconds("t0")?,
        loss_event_rate: given.probability("p")?,
        ack_every: given.count("ack_every")?,
        wmax: given.window("rwnd")?,
    })
}

pub(super) fn loss(given: &Given<'_>, reverse: Probability) -> Result<Loss, EvaluateError> {
    Ok(Loss {
        packets: given.not_negative("packets")?,
        forward: given.probability("p")?,
        reverse,
        ack_every: 1,
    })
}

pub(super) fn cardwell(given: &Given<'_>) -> Result<Vec<f64>, EvaluateError> {
    let flow = Cardwell {
        size: given.bytes("size")?,
        mss: given.bytes("mss")?,
        rtt: given.seconds("rtt")?,
        t0: given.seconds("t0")?,
        syn_timeout: given.seconds("syn_timeout")?,
        forward_loss: given.probability("p")?,
        reverse_loss: given.probability("p_reverse")?,
        initial_window: given.count("iw")?,
        ack_every: given.count("ack_every")?,
        rwnd: given.window("rwnd")?,
        delayed_ack: given.seconds("delayed_ack")?,
    };
    let latency = flow.latency().map_err(|error| given.input(error))?.value;
    Ok([
        latency.total(),
        latency.handshake,
        latency.slow_start,
        latency.first_loss,
        latency.congestion_avoidance,
    ]
    .map(Duration::as_secs_f64)
    .to_vec())
}

pub(super) fn phases(given: &Given<'_>) -> Result<[Phase; 3], EvaluateError> {
    let phase = |rounds, segments| {
        Ok(Phase { rounds: given.not_negative(rounds)?, segments: given.not_negative(segments)? })
    };
    Ok([phase("rounds_1", "segments_1")?, phase("rounds_2", "segments_2")?, phase("rounds_3", "segments_3")?])
}

fn timer(given: &Given<'_>) -> Timer {
    Timer {
        initial: given.number("initial"),
        max: given.number("max"),
        max_backoff_exponent: u32::MAX,
        tick: given.number("tick"),
        wheel: given.number("wheel") != 0.0,
        counted: false,
    }
}

pub(super) fn opening(given: &Given<'_>) -> Result<Opening, EvaluateError> {
    // A number of SYNs that a stack cannot have is as good as none.
    let attempts = match given.number("attempts") {
        f64::INFINITY => None,
        _ => u32::try_from(given.count("attempts")?).ok(),
    };
    let linear = u32::try_from(given.count("linear")?).unwrap_or(u32::MAX);
    Ok(Opening { timer: timer(given), attempts, linear, within: given.number("within") })
}

/// Both ways take half of the round trip, and the clocks show zero when the first SYN leaves.
pub(super) fn lossy_opening(given: &Given<'_>) -> Result<Estimate<Connects>, EvaluateError> {
    let (opening, listening) = (opening(given)?, listening(given)?);
    let delay = given.seconds("rtt")?.as_secs_f64() / 2.0;
    let forward_loss = given.probability("p")?;
    let way = LossyWay {
        forward_delay: delay,
        reverse_delay: delay,
        forward_loss,
        reverse_loss: given.probability("p_reverse")?,
        data_loss: forward_loss,
    };
    let timer = opening.timer;
    let first_data = |_| FirstData { ack_alone: true, segments: 0, timer, probe: None, retries: None };
    let both = LossyOpening {
        opening: &opening,
        listening: &listening,
        way,
        clocks: [0.0; 2],
        first_data: &first_data,
    };
    both.connects().map_err(|error| given.input(error))
}

pub(super) fn listening(given: &Given<'_>) -> Result<Listening, EvaluateError> {
    let attempts = u32::try_from(given.count("synacks")?).ok();
    Ok(Listening { timer: timer(given), attempts, shared_budget: false })
}
