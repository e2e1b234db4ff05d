//! The `predict` engine: which closed form says how long a transfer takes, and how far it can be trusted.

use crate::path_view::PathView;
use crate::{EngineError, empty_run};
use farpath_experiment::{FlowSpec, Opener, Point, Scenario};
use farpath_model::InputError;
use farpath_model::lossless::{self, LosslessTransfer};
use farpath_model::pftk::Pftk;
use farpath_model::recovery::{Growth, IsolatedDrop};
use farpath_model::retransmissions::Loss;
use farpath_model::window_limit::DelayedAckCycle;
use farpath_run::{Engine, FlowRow, Outcome, Provenance, Run};
use farpath_tcp::Config;
use farpath_tcp::config::{AvoidanceGrowth, RtoFloor};
use farpath_units::{Bytes, Duration, Instant};

/// Predicts one point. A prediction has no seed: it is an expectation.
pub fn predict(point: &Point, mut provenance: Provenance) -> Result<Run, EngineError> {
    let scenario = &point.scenario;
    if scenario.flows.len() > 1 {
        provenance.caveats.push("predicted as if each flow had the path to itself".to_owned());
    }
    let mut run = empty_run(Engine::Predict, point, None, provenance);
    for (number, flow) in (0..).zip(&scenario.flows) {
        let prediction = predict_flow(scenario, flow)?;
        for caveat in &prediction.caveats {
            if !run.provenance.caveats.contains(caveat) {
                run.provenance.caveats.push(caveat.clone());
            }
        }
        run.flows.push(row(number, scenario, flow, &prediction));
    }
    Ok(run)
}

/// What the closed forms say of one flow.
struct Prediction {
    established: Duration,
    transfer_time: Duration,
    retransmissions: f64,
    segments: f64,
    /// The formula that decided.
    by: &'static str,
    caveats: Vec<String>,
}

fn predict_flow(scenario: &Scenario, flow: &FlowSpec) -> Result<Prediction, InputError> {
    let view =
        PathView::new(&scenario.path, flow.direction, &scenario.sender.config, &scenario.receiver.config);
    let (sender, receiver) = (&scenario.sender.config, &scenario.receiver.config);
    let window = effective_window(sender, receiver);
    let mut caveats = view.caveats.clone();
    let lossless = LosslessTransfer {
        path: &view.path,
        size: flow.size,
        mss: view.mss,
        rwnd: window,
        initial_window: u64::from(sender.congestion.initial_window),
        initial_ssthresh: sender.congestion.initial_ssthresh.unwrap_or(Bytes::MAX),
        ack_every: u64::from(receiver.receive.ack_every),
        delayed_ack_timeout: receiver.receive.ack_delay,
        opener: match flow.opener {
            Opener::Sender => lossless::Opener::Sender,
            Opener::Receiver => lossless::Opener::Receiver,
        },
    }
    .times()?;
    caveats.extend(lossless.caveats.iter().cloned());
    if flow.opener == Opener::Receiver && flow.request > view.mss {
        caveats.push("the request takes more than one segment; its time is left out".to_owned());
    }
    if receiver.receive.read_rate.is_some() {
        caveats.push("the receiving application is taken to read at once".to_owned());
    }
    let times = lossless.value;
    let segments = flow.size.0.div_ceil(view.mss.0) as f64;
    let mut prediction = Prediction {
        established: times.established,
        transfer_time: times.last_byte_received,
        retransmissions: 0.0,
        segments,
        by: lossless.source,
        caveats,
    };
    if view.data_loss.fraction() > 0.0 || view.ack_loss.fraction() > 0.0 {
        add_loss(&mut prediction, &view, scenario, flow, window)?;
    }
    Ok(prediction)
}

/// What loss adds: so many isolated recoveries while the next drop is usually further away than a recovery takes,
/// else the throughput of the full model with timeouts.
fn add_loss(
    prediction: &mut Prediction,
    view: &PathView,
    scenario: &Scenario,
    flow: &FlowSpec,
    window: Bytes,
) -> Result<(), InputError> {
    let (sender, receiver) = (&scenario.sender.config, &scenario.receiver.config);
    let ack_every = u64::from(receiver.receive.ack_every);
    let expected =
        Loss { packets: prediction.segments, forward: view.data_loss, reverse: view.ack_loss, ack_every }
            .expected()?;
    prediction.retransmissions = expected.value.retransmissions;
    prediction.caveats.extend(expected.caveats);

    let cycle = DelayedAckCycle {
        path: &view.path,
        mss: view.mss,
        rwnd: window,
        ack_every,
        delayed_ack_timeout: receiver.receive.ack_delay,
    }
    .steady()?;
    let growth = match sender.congestion.avoidance {
        AvoidanceGrowth::PerAck => Growth::PerAck(ack_every),
        AvoidanceGrowth::PerByte => Growth::PerRound(1),
    };
    let isolated = IsolatedDrop { window: cycle.value.segments, round: cycle.value.time, growth }.cost()?;
    let between_drops = 1.0 / view.data_loss.fraction().max(f64::MIN_POSITIVE);
    let window_is_usually_full = isolated.value.sent < between_drops;
    if window_is_usually_full {
        let drops = prediction.segments * view.data_loss.fraction();
        let seconds = drops * isolated.value.time.as_secs_f64();
        prediction.transfer_time += Duration::from_secs_f64(seconds);
        prediction.by = isolated.source;
        prediction.caveats.extend(isolated.caveats);
        let further = isolated.value.sent / between_drops;
        if further > 0.1 {
            prediction.caveats.push(format!(
                "{further:.1} further drops fall into each recovery; many of them cost a timeout, which this prediction leaves out: it is too fast",
            ));
        }
        return Ok(());
    }
    let pftk = Pftk {
        mss: view.mss,
        rtt: cycle.value.time,
        t0: first_timeout(sender, cycle.value.time),
        loss_event_rate: view.data_loss,
        ack_every,
        wmax: Some(window),
    }
    .goodput()?;
    prediction.transfer_time = prediction.established + pftk.value.time_for(flow.size);
    prediction.by = pftk.source;
    prediction.caveats.extend(pftk.caveats);
    Ok(())
}

/// The most that may be unacknowledged: the receiver's window as far as it can be announced, and the sender's limits.
fn effective_window(sender: &Config, receiver: &Config) -> Bytes {
    let scaled = sender.send.window_scaling && receiver.send.window_scaling;
    let announced = if scaled { receiver.receive.buffer } else { receiver.receive.buffer.min(Bytes(65_535)) };
    let limits = [sender.congestion.cwnd_clamp, sender.send.buffer];
    limits.into_iter().flatten().fold(announced, Bytes::min)
}

/// The mean first timeout of a series: the computed one with a steady RTT, and half a tick of waiting for the clock.
fn first_timeout(sender: &Config, rtt: Duration) -> Duration {
    let rto = &sender.rto;
    let computed = match rto.floor {
        RtoFloor::Rto => (rtt + rto.tick).max(rto.min),
        RtoFloor::Variance => rtt + rto.tick.max(rto.min),
    };
    computed.min(rto.max) + rto.tick / 2
}

fn row(number: u32, scenario: &Scenario, flow: &FlowSpec, prediction: &Prediction) -> FlowRow {
    let start = Instant::ZERO + flow.start;
    let in_time = start + prediction.transfer_time <= Instant::ZERO + scenario.horizon;
    let seconds = prediction.transfer_time.as_secs_f64();
    let goodput = (in_time && seconds > 0.0).then(|| flow.size.0 as f64 * 8.0 / seconds);
    let share_new = prediction.segments / (prediction.segments + prediction.retransmissions);
    FlowRow {
        flow: number,
        direction: flow.direction.name(),
        outcome: if in_time { Outcome::Completed } else { Outcome::Horizon },
        ended_at: in_time.then(|| start + prediction.transfer_time),
        detail: prediction.by.to_owned(),
        start,
        connect_time: Some(prediction.established),
        transfer_time: in_time.then_some(prediction.transfer_time),
        bytes: flow.size,
        bytes_read: if in_time { flow.size } else { Bytes::ZERO },
        goodput_bit_per_s: goodput,
        throughput_bit_per_s: goodput.map(|goodput| goodput / share_new),
        efficiency: Some(share_new),
        data_segments: Some(prediction.segments + prediction.retransmissions),
        retransmissions: Some(prediction.retransmissions),
        spurious_retransmissions: None,
        timeouts: None,
        fast_retransmits: None,
        dup_acks: None,
        pure_acks: None,
        syns: None,
        synacks: None,
        drops_data_direction: None,
        drops_ack_direction: None,
        drops_by_cause: Vec::new(),
        final_cwnd: None,
        mean_cwnd: None,
        min_rtt: None,
        srtt: None,
        rto: None,
    }
}
