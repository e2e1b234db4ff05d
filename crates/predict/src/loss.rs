//! What loss adds to a transfer: which model speaks, by what is lost and by how large the window may get.

use super::{Flow, Prediction, data_retries, domain, rack, sack, transient, uses_ecn};
use farpath_experiment::Opener;
use farpath_model::InputError;
use farpath_model::cardwell::{self, Cardwell, FirstLoss};
use farpath_model::markov::{self, Congestion, Recovery, RenoChain, Repair, Timer};
use farpath_model::radius::Connects;
use farpath_model::recovery::{Growth, IsolatedDrop};
use farpath_tcp::config::{
    BackoffReset, CongestionControlKind, HyStart, RecoverGuard, RecoveryAlgorithm, SlowStartGrowth,
    SsthreshFrom, SsthreshOnTimeout, WindowWithoutSack,
};
use farpath_units::{Bytes, Duration, Probability};

/// Losses in a file, below which it is over before its window has come down to the mean of a long flow.
const FEW_LOSSES: f64 = 20.0;

/// Where the time of a file of one segment comes from.
const LONE_SEGMENT: &str = "every pattern of lost SYNs, SYN/ACKs and copies of the segment (derived)";

/// Adds loss to a prediction that has none.
pub(super) fn add(flow: &Flow, prediction: &mut Prediction) -> Result<(), InputError> {
    let view = &flow.view;
    let waits = handshake_waits(flow, prediction);
    prediction.established += waits;
    if lone_segment(flow, prediction) {
        return Ok(());
    }
    prediction.transfer_time += waits;
    if view.data_loss == Probability::ONE {
        // A SYN may be short enough to get through where no segment is.
        prediction.transfer_time = Duration::MAX;
        prediction.by = "no segment arrives";
        return Ok(());
    }
    if view.evenly_spaced && view.data_loss > Probability::ZERO {
        if isolated(flow, prediction)? {
            return Ok(());
        }
        let caveat =
            "evenly spaced losses fall into the repair of the one before; predicted as if independent";
        prediction.caveats.push(caveat.to_owned());
    }
    let reno = flow.sender.congestion.control == CongestionControlKind::Reno && !rack(flow);
    // The chain has RFC 5681's recovery, tick and delayed ACKs at windows of a few segments; Linux's recovery without SACK it has not.
    if reno && flow.sender.recovery.window_without_sack != WindowWithoutSack::RateReduction {
        let model = reno_chain(flow)?;
        let few =
            prediction.segments * view.data_loss.fraction() < FEW_LOSSES && model.reach() < model.window;
        if !few && view.data_loss > Probability::ZERO && model.reach() <= markov::LARGEST_WINDOW {
            return chain(flow, &model, prediction);
        }
    }
    rounds(flow, prediction)
}

/// The numeric model: everything but what one of the forms above is exact for.
fn rounds(flow: &Flow, prediction: &mut Prediction) -> Result<(), InputError> {
    if let Some(why) = domain::unanswered(flow) {
        prediction.withdraw(why);
        return Ok(());
    }
    let transfer = transient::transfer(flow, uses_ecn(flow.spec, flow.sender, flow.receiver))?;
    if transfer.untouched() && walks_alike(flow) {
        // Nothing is lost, and the walk without loss has been followed to the nanosecond.
        return Ok(());
    }
    if let Some(why) = domain::sent_twice(transfer.sent_twice) {
        prediction.withdraw(why);
        return Ok(());
    }
    prediction.transfer_time = prediction.established + Duration::from_secs_f64(transfer.seconds);
    prediction.retransmissions = Some(transfer.retransmissions);
    prediction.timeouts = Some(transfer.timeouts);
    prediction.fast_retransmits = Some(transfer.fast_retransmits);
    prediction.by = transient::source(flow);
    if transfer.many_holes > 0.1 {
        prediction.caveats.push(
            "without SACK a queue that overflows is repaired a segment a round trip, and may overflow again by it: expect up to \
             twice the time"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether the walk without loss has the slow start of these ends.
fn walks_alike(flow: &Flow) -> bool {
    let congestion = &flow.sender.congestion;
    let by_segment = matches!(congestion.slow_start, SlowStartGrowth::PerAck | SlowStartGrowth::PerByte);
    // Linux's Reno has none.
    let watches = match congestion.hystart {
        HyStart::Off => false,
        HyStart::Linux => congestion.control != CongestionControlKind::Reno,
        HyStart::Rfc9406 => true,
    };
    (by_segment || flow.ack_every() == 1)
        && !watches
        && !flow.receiver.receive.autotuning
        && !congestion.control.owns_cwnd()
}

/// Mean wait until the sender may send where packets of the handshake are lost, and it ends well.
pub(super) fn handshake_waits(flow: &Flow, prediction: &Prediction) -> Duration {
    let Connects { time_to_open, time_to_use, .. } = prediction.connects;
    let (time, lossless) = match flow.spec.opener {
        Opener::Sender => (time_to_open, flow.view.handshake_rtt),
        Opener::Receiver => {
            (time_to_use, flow.view.handshake_rtt + flow.view.handshake_rtt - flow.view.handshake_owd)
        }
    };
    time.map_or(Duration::ZERO, Duration::from_secs_f64).saturating_sub(lossless)
}

/// A file of one segment from the end that opens: its copies are followed as the handshake is. Whether it is one.
fn lone_segment(flow: &Flow, prediction: &mut Prediction) -> bool {
    if flow.spec.opener != Opener::Sender || flow.segments() != 1.0 {
        return false;
    }
    if let Some(time) = prediction.connects.time_to_deliver {
        let lossless = flow.view.handshake_rtt + flow.view.handshake_owd;
        prediction.transfer_time += Duration::from_secs_f64(time).saturating_sub(lossless);
    }
    prediction.by = LONE_SEGMENT;
    (prediction.timeouts, prediction.fast_retransmits) = (None, Some(0.0));
    let answered = (1.0 - flow.view.data_loss.fraction()) * (1.0 - flow.view.ack_loss.fraction());
    prediction.retransmissions = Some(if answered > 0.0 { 1.0 / answered - 1.0 } else { 0.0 });
    true
}

/// So many isolated recoveries, if each is over before the next drop. Whether it was.
fn isolated(flow: &Flow, prediction: &mut Prediction) -> Result<bool, InputError> {
    let every = flow.ack_every();
    let cycle = flow.cycle(flow.window)?.value;
    let counts_acks = flow.sender.congestion.avoidance.counts_acks();
    let growth = if counts_acks { Growth::PerAck(every) } else { Growth::PerRound(1) };
    let isolated = IsolatedDrop { window: cycle.segments, round: cycle.time, growth }.cost()?;
    let drops = prediction.segments * flow.view.data_loss.fraction();
    if isolated.value.sent * flow.view.data_loss.fraction() > 1.0 {
        return Ok(false);
    }
    prediction.transfer_time += Duration::from_secs_f64(drops * isolated.value.time.as_secs_f64());
    prediction.retransmissions = Some(drops);
    prediction.fast_retransmits = Some(drops);
    prediction.by = isolated.source;
    prediction.caveats.extend(isolated.caveats);
    Ok(true)
}

/// The chain's mean per segment, and what the beginning differs by.
fn chain(flow: &Flow, model: &RenoChain, prediction: &mut Prediction) -> Result<(), InputError> {
    let estimate = model.per_segment()?;
    let each = estimate.value;
    let segments = prediction.segments;
    let (steady, repeated) = if model.reach() == model.window {
        // The window fills up between losses: what they add to a transfer without any.
        let none = Probability::ZERO;
        let clean = RenoChain { data_loss: none, ack_loss: none, ..*model }.per_segment()?.value;
        prediction.transfer_time +=
            Duration::from_secs_f64(segments * (each.seconds - clean.seconds).max(0.0));
        (segments, 0.0)
    } else {
        // It never does: slow start until the first loss, and the chain from there on.
        let (first, until_then) = until_first_loss(flow, prediction)?;
        let rest = segments - first.segments;
        prediction.transfer_time = until_then + Duration::from_secs_f64(times(rest, each.seconds));
        (rest, first.probability / (1.0 - model.data_loss.fraction()))
    };
    prediction.retransmissions = Some(times(steady, each.retransmissions) + repeated);
    prediction.timeouts = Some(times(steady, each.timeouts));
    prediction.fast_retransmits = Some(times(steady, each.fast_retransmits));
    prediction.by = estimate.source;
    prediction.caveats.extend(estimate.caveats);
    let rtt = flow.view.handshake_rtt;
    if let Some(retries) = data_retries(flow.sender, flow.timeout(rtt, rtt / 2)) {
        let fails = 1.0 - (1.0 - model.data_loss.fraction()) * (1.0 - model.ack_loss.fraction());
        let series = times(steady, each.timeouts) * (1.0 - fails);
        if series * fails.powf(retries.into()) > 0.01 {
            let caveat = format!("{retries} timeouts of one segment end the connection; that is left out");
            prediction.caveats.push(caveat);
        }
    }
    Ok(())
}

/// So many times a cost that may be infinite; none at all is zero then too.
fn times(count: f64, each: f64) -> f64 {
    if count == 0.0 { 0.0 } else { count * each }
}

/// The first loss, and when it is repaired: a walk without loss until there, and Cardwell's mean for the repair.
fn until_first_loss(flow: &Flow, prediction: &mut Prediction) -> Result<(FirstLoss, Duration), InputError> {
    let view = &flow.view;
    let first = cardwell::first_loss(prediction.segments, view.data_loss);
    let size = Bytes((first.segments * view.mss.0 as f64) as u64).clamp(Bytes(1), flow.spec.size);
    let lossless = flow.lossless(size)?.value;
    let losses = prediction.segments * view.data_loss.fraction();
    if losses < FEW_LOSSES {
        prediction.caveats.push(format!(
            "{losses:.1} losses in the file are too few for the mean of a long flow, which this is: expect it to be too slow, at a large window by a factor"
        ));
    }
    let round = flow.round()?;
    let repair = Cardwell {
        size: flow.spec.size,
        mss: view.mss,
        rtt: round,
        t0: flow.timeout(round, Duration::ZERO) + flow.sender.rto.tick / 2,
        syn_timeout: flow.sender.rto.initial,
        forward_loss: view.data_loss,
        reverse_loss: view.ack_loss,
        initial_window: flow.sender.congestion.initial_window.into(),
        ack_every: flow.ack_every(),
        rwnd: Some(flow.window),
        delayed_ack: Duration::ZERO,
    }
    .latency()?
    .value
    .first_loss;
    Ok((first, prediction.established + (lossless.last_byte_received - lossless.established) + repair))
}

fn reno_chain(flow: &Flow) -> Result<RenoChain, InputError> {
    let (sender, view) = (flow.sender, &flow.view);
    let every = flow.ack_every();
    let round = flow.round()?;
    let congestion = &sender.congestion;
    let sack = sack(flow);
    Ok(RenoChain {
        window: (flow.window.0 / view.mss.0).max(1),
        round,
        spacing: view.spacing(every),
        data_loss: view.data_loss,
        ack_loss: view.ack_loss,
        ack_every: every,
        delayed_ack_timeout: flow.receiver.receive.ack_delay,
        congestion: Congestion {
            slow_start_limit: match congestion.slow_start {
                SlowStartGrowth::PerAck | SlowStartGrowth::PerByte => 1,
                SlowStartGrowth::TwoSegments => 2,
                SlowStartGrowth::AllAcked => u64::MAX,
            },
            avoidance_per_ack: congestion.avoidance.counts_acks(),
            whole_segments: congestion.ssthresh_from == SsthreshFrom::WindowSegments,
            lower_on_repeat: congestion.ssthresh_on_timeout == SsthreshOnTimeout::Every,
        },
        repair: Repair {
            recovery: match sender.recovery.algorithm {
                RecoveryAlgorithm::TimeoutOnly => Recovery::TimeoutOnly,
                RecoveryAlgorithm::Tahoe => Recovery::Tahoe,
                _ if sack => Recovery::Sack,
                RecoveryAlgorithm::Reno => {
                    Recovery::Reno { guarded: sender.recovery.recover_guard != RecoverGuard::Off }
                }
                RecoveryAlgorithm::NewReno => Recovery::NewReno,
            },
            dup_ack_threshold: sender.recovery.dup_ack_threshold.max(1).into(),
            limited_transmit: sender.recovery.limited_transmit,
        },
        timer: Timer {
            rto: flow.timeout(round, Duration::ZERO),
            max: sender.rto.max,
            tick: sender.rto.tick,
            max_backoff_exponent: sender.rto.max_backoff_exponent,
            kept_until_sample: sender.rto.backoff_reset == BackoffReset::ValidSample,
        },
    })
}
