//! Timers of the handshake in closed form, and connections of two stacks over a way that loses packets.

use farpath_model::radius::{Connects, FirstData, Listening, LossyOpening, LossyWay, Opened, Opening, Timer};
use farpath_model::{Estimate, InputError};
use farpath_tcp::Config;
use farpath_tcp::config::{HandshakeRules, RetransmittedSyn, RttMeasure, TickExpiry};
use farpath_units::Duration;

/// A tail loss probe without a measured round trip.
pub const FIRST_PROBE: Duration = Duration::from_secs(1);

/// The SYNs of a stack.
pub fn opening(stack: &Config) -> Opening {
    let handshake = &stack.handshake;
    Opening {
        timer: timer(stack),
        attempts: handshake.syn_attempts,
        linear: handshake.syn_linear_timeouts,
        within: handshake.connect_timeout.map_or(f64::INFINITY, Duration::as_secs_f64),
    }
}

/// The SYN/ACKs of a stack.
pub fn listening(stack: &Config) -> Listening {
    Listening {
        timer: timer(stack),
        attempts: stack.handshake.synack_attempts,
        shared_budget: stack.handshake.rules == HandshakeRules::Ns3,
    }
}

/// The retransmission timer of a stack before anything has been measured.
pub fn timer(stack: &Config) -> Timer {
    Timer {
        initial: stack.rto.initial.as_secs_f64(),
        // The longest time that there is stands for none.
        max: if stack.rto.max == Duration::MAX { f64::INFINITY } else { stack.rto.max.as_secs_f64() },
        max_backoff_exponent: stack.rto.max_backoff_exponent,
        tick: stack.rto.tick.as_secs_f64(),
        wheel: stack.rto.tick_expiry == TickExpiry::TimerWheel,
        counted: stack.rto.tick_expiry == TickExpiry::Counted,
    }
}

/// The timeout of the first data where the SYN was sent again, so that nothing has been measured (RFC 6298 §3, §5.7),
/// where the SYN's own timeout was doubled so often.
pub fn unsampled(stack: &Config, doublings: u32) -> Duration {
    let first = stack.rto.initial.max(stack.rto.after_syn_timeout.unwrap_or(Duration::ZERO));
    if stack.rto.retransmitted_syn != RetransmittedSyn::KeepsBackoff {
        return first;
    }
    first.doubled(doublings.min(stack.rto.max_backoff_exponent)).min(stack.rto.max.max(first))
}

/// The transmissions of a segment of data that nobody answers, whose first timeout is `first`.
pub fn unanswered(stack: &Config, first: Duration) -> Opening {
    let endless = Opening { timer: waits(stack, first), attempts: None, linear: 0, within: f64::INFINITY };
    let attempts = match stack.time_for_retries() {
        None => stack.handshake.data_retries.map(|retries| retries.saturating_add(1)),
        // The first timeout sends again; one after it gives up where that was long enough ago.
        Some(time) => endless.first_after_second(time.as_secs_f64()),
    };
    Opening { attempts, ..endless }
}

/// How often a segment of data is sent again that nobody answers; `None` without end.
pub fn data_retries(stack: &Config, first: Duration) -> Option<u32> {
    unanswered(stack, first).attempts.map(|attempts| attempts.saturating_sub(1))
}

/// How often the timeout of a SYN has been doubled when its answer comes after `rtt`.
pub fn syn_doublings(stack: &Config, rtt: Duration) -> u32 {
    let (mut doublings, mut over) = (0, stack.rto.initial);
    while over < rtt && doublings < stack.rto.max_backoff_exponent {
        doublings += 1;
        over += stack.rto.initial.doubled(doublings).min(stack.rto.max.max(stack.rto.initial));
    }
    doublings
}

/// How likely a connection of `opener` to `listener` opens over `way`, where the opener has so many full segments to send, and
/// both clocks show `clocks` s when the first SYN leaves.
///
/// # Errors
/// Parameters that are no schedule, such as no SYN at all.
pub fn connects(
    opener: &Config,
    listener: &Config,
    way: LossyWay,
    clocks: [f64; 2],
    segments: u64,
) -> Result<Estimate<Connects>, InputError> {
    let sack = opener.recovery.sack && listener.recovery.sack;
    let timestamps = opener.send.timestamps && listener.send.timestamps;
    LossyOpening {
        opening: &opening(opener),
        listening: &listening(listener),
        way,
        clocks,
        first_data: &|opened| first_data(opener, sack, timestamps, segments, opened),
    }
    .connects()
}

/// Probability that a file of so many segments arrives, at the least, over a connection that both ends take as open: as if no
/// segment helped another, each is sent again by the timer alone. The way's `forward` is that of the data.
pub fn file_arrives(sender: &Config, way: &LossyWay, segments: u64) -> Result<Estimate<f64>, InputError> {
    let rtt = Duration::from_secs_f64(way.forward_delay + way.reverse_delay);
    let timeout = sender.rto.timeout(rtt, Duration::ZERO);
    let data = FirstData {
        ack_alone: false,
        segments: 1,
        timer: waits(sender, timeout),
        probe: None,
        retries: data_retries(sender, timeout),
    };
    let lone = way.lone_segment(&data, 0.0)?;
    Ok(lone.map(|lone| {
        let before = lone.answered.powf(segments.saturating_sub(1) as f64);
        if segments == 0 { 1.0 } else { before * lone.delivered }
    }))
}

fn first_data(stack: &Config, sack: bool, timestamps: bool, segments: u64, opened: Opened) -> FirstData {
    let Opened { after, syns, echoed } = opened;
    let (rto, congestion) = (&stack.rto, &stack.congestion);
    let sent = if syns == 1 || rto.retransmitted_syn == RetransmittedSyn::MeasuredFromFirst {
        Some(0.0)
    } else {
        timestamps.then_some(echoed)
    };
    let measured = sent.map(|sent| {
        let rtt = Duration::from_secs_f64(after - sent);
        if rto.measure == RttMeasure::Ticks { rtt.max(rto.tick) } else { rtt }
    });
    let timeout = match measured {
        Some(rtt) => rto.timeout(rtt, rtt / 2),
        None => unsampled(stack, (syns as u32).saturating_sub(1)),
    };
    let first_answered = timestamps && stack.recovery.eifel && echoed == 0.0;
    let cautious = !first_answered && congestion.one_segment_after_syn_loss.is_cautious(syns as u32);
    let window = if cautious { 1 } else { congestion.initial_window };
    let at_once = u32::try_from(segments).unwrap_or(u32::MAX).min(window);
    let recovery = &stack.recovery;
    let probe = measured.map_or(FIRST_PROBE, |rtt| {
        rtt * 2 + if at_once == 1 { recovery.probe_ack_delay } else { recovery.timer_slack }
    });
    FirstData {
        ack_alone: stack.handshake.ack_alone,
        segments: at_once,
        timer: waits(stack, timeout),
        probe: (recovery.tail_loss_probe && sack).then(|| probe.as_secs_f64()),
        retries: data_retries(stack, timeout),
    }
}

/// The timer of a stack, from this timeout on.
fn waits(stack: &Config, timeout: Duration) -> Timer {
    Timer { initial: timeout.max(Duration::from_nanos(1)).as_secs_f64(), ..timer(stack) }
}
