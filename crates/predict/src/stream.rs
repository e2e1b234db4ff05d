//! A constant-rate stream: how late it gets by closed forms.
//!
//! One loss at a time is Kershaw's and Hughes-Jones's (Eq. 2.1-2.3, `farpath_model::stream`). Where the next loss comes
//! before the last one is made good, the stream is no faster than a file would be, and the models of files speak.

use super::{Flow, Prediction, loss};
use farpath_elements::ElementSpec;
use farpath_experiment::{Scenario, Stream, base_rtt};
use farpath_model::InputError;
use farpath_model::stream::{Cost, IsolatedLoss, Window};
use farpath_run::StreamFigures;
use farpath_tcp::Config;
use farpath_tcp::config::{CongestionControlKind, CubicRules, SlowStartGrowth};
use farpath_units::{Bytes, Duration, Late, Rate};

const BY: &str = "Kershaw, Hughes-Jones 2007, Eq. 2.1-2.3";

/// How late the stream gets, in seconds; `None` where the forms do not say.
struct Lateness {
    /// At the most, beyond the way that each message takes.
    most: Option<f64>,
    /// When the last message is due.
    at_the_end: Option<f64>,
    /// The longest time of messages that come too late for the player.
    late_for: Option<f64>,
    /// How often such a time comes.
    times: f64,
}

/// What one loss costs the stream of a flow, with the window that it has here.
fn isolated_loss(flow: &Flow, stream: &Stream, rtt: Duration) -> IsolatedLoss {
    let on_the_path = flow.view.mss.0 as f64 * rtt.as_secs_f64()
        / flow.view.spacing(u64::MAX).as_secs_f64().max(f64::MIN_POSITIVE);
    IsolatedLoss {
        rate: Rate::from_bit_per_s(stream.messages.bit_per_s() as u64)
            .unwrap_or(Rate::from_bit_per_s(1).expect("not zero")),
        rtt,
        mss: flow.view.mss,
        window: window(flow.sender, flow.ack_every()),
        limit: flow.window.min(Bytes(on_the_path as u64)),
    }
}

/// What one loss costs the first stream of a scenario where neither its send buffer nor the receiver's window holds it back: the
/// buffers that it takes, and what is suffered with them. `None` where there is no stream, or no form for it.
pub fn stream_loss(scenario: &Scenario) -> Option<Cost> {
    let spec = scenario.flows.iter().find(|flow| flow.stream.is_some())?;
    let flow = Flow { window: Bytes::MAX, ..Flow::new(scenario, spec) };
    let form = isolated_loss(&flow, spec.stream.as_ref()?, base_rtt(scenario, spec.direction));
    Some(form.cost().ok()?.value)
}

/// How the sender's window falls and grows. "The factor of two for delayed ACKs" is where a step is an ACK, not a segment.
fn window(sender: &Config, ack_every: u64) -> Window {
    let congestion = &sender.congestion;
    if congestion.control == CongestionControlKind::Cubic {
        // Linux's 8/15 is as good as RFC 8312's 9/17, to a hundredth.
        let alpha_is_one = congestion.cubic == CubicRules::Rfc9438;
        return Window::Cubic { alpha_beyond: if alpha_is_one { 1.0 } else { 9.0 / 17.0 } };
    }
    let ack_factor = if congestion.avoidance.counts_acks() { ack_every as f64 } else { 1.0 };
    Window::Reno { ack_factor }
}

/// What the models say of a stream.
pub(super) fn predict(
    flow: &Flow,
    stream: &Stream,
    elements: &[ElementSpec],
    rtt: Duration,
) -> Result<Prediction, InputError> {
    let messages = &stream.messages;
    let mut prediction = flow.predict_file(messages.size)?;
    if flow.sender.explicit_rate.wanted.is_some() {
        prediction
            .caveats
            .push("explicit rate is left out: predicted as if no router granted any".to_owned());
    }
    let one_way = prediction.transfer_time.saturating_sub(prediction.established);
    let form = isolated_loss(flow, stream, rtt);
    let estimate = form.cost()?;
    prediction.caveats.extend(estimate.caveats);
    prediction.segments = flow.segments();
    prediction.by = BY;
    let spans = messages.duration();
    let listed = listed(flow, elements, &form);
    // That they are left out of a file's prediction is not so here.
    prediction.caveats.retain(|caveat| !caveat.ends_with("listed drops are left out of the prediction"));
    let drawn = prediction.segments * flow.view.data_loss.fraction();
    let losses = listed.len() as f64 + drawn;
    let lateness = if apart(&listed, drawn, spans, &estimate.value) {
        let slow_start = starting(flow, &form);
        one_by_one(&form, &estimate.value, stream, slow_start, &listed, drawn)
    } else {
        as_a_file(flow, stream, &estimate.value, one_way, losses, &mut prediction)?
    };
    prediction.retransmissions = Some(losses);
    prediction.fast_retransmits = Some(losses);
    let last_due = messages.due_after(messages.count - 1);
    let behind = Duration::from_secs_f64(lateness.at_the_end.unwrap_or(0.0));
    prediction.transfer_time = prediction.established + last_due + one_way + behind;
    prediction.stream = figures(stream, &form, one_way, &lateness);
    if stream.lifetime.is_some() {
        prediction.withdraw("there is no model of a program that leaves out messages".to_owned());
    }
    Ok(prediction)
}

/// When the listed losses of data fall, s after the first message was due.
fn listed(flow: &Flow, elements: &[ElementSpec], form: &IsolatedLoss) -> Vec<f64> {
    let per_segment = form.mss.0 as f64 * 8.0 / form.rate.bit_per_s() as f64;
    let mut times: Vec<f64> = elements
        .iter()
        .flat_map(|element| element.spec().listed_losses(flow.spec.direction))
        .map(|&number| number as f64)
        .filter(|&number| number <= flow.segments())
        .map(|number| number * per_segment)
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Whether each loss is made good before the next.
fn apart(listed: &[f64], drawn: f64, spans: Duration, cost: &Cost) -> bool {
    let made_good = if cost.timely_again.is_finite() { cost.timely_again } else { cost.recovery };
    let between = listed.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let mean = spans.as_secs_f64() / (drawn + listed.len() as f64);
    between >= made_good && (drawn == 0.0 || mean >= made_good)
}

/// By how much the stream falls behind before slow start has got to what its rate takes, s.
fn starting(flow: &Flow, form: &IsolatedLoss) -> f64 {
    let congestion = &flow.sender.congestion;
    let needed = form.rate.bit_per_s() as f64 * form.rtt.as_secs_f64() / 8.0 / form.mss.0 as f64;
    let growth = match congestion.slow_start {
        SlowStartGrowth::PerAck => 1.0 + 1.0 / flow.ack_every() as f64,
        _ => 2.0,
    };
    let (mut window, mut behind) = (f64::from(congestion.initial_window), 0.0);
    while window < needed && behind < 1e9 {
        behind += needed - window;
        window *= growth;
    }
    behind * form.mss.0 as f64 * 8.0 / form.rate.bit_per_s() as f64
}

/// Losses that have nothing to do with each other.
fn one_by_one(
    form: &IsolatedLoss,
    cost: &Cost,
    stream: &Stream,
    slow_start: f64,
    listed: &[f64],
    drawn: f64,
) -> Lateness {
    let rate = form.rate.bit_per_s() as f64 / 8.0;
    let end = stream.messages.due_after(stream.messages.count - 1).as_secs_f64();
    let left = |at: f64| form.behind_after(Duration::from_secs_f64((end - at).max(0.0))) / rate;
    let losses = listed.len() as f64 + drawn;
    if losses == 0.0 {
        let stays = cost.timely_again.is_infinite();
        let at_the_end = if stays { slow_start } else { 0.0 };
        let on_time = slow_start <= stream.playout.buffer.as_secs_f64();
        let late_for = on_time.then_some(0.0);
        return Lateness { most: Some(slow_start), at_the_end: Some(at_the_end), late_for, times: 0.0 };
    }
    if cost.timely_again.is_infinite() {
        // Each stays, and is added to those before it.
        let all = slow_start + listed.iter().map(|&at| left(at)).sum::<f64>() + drawn * cost.lateness;
        return Lateness { most: Some(all), at_the_end: Some(all), late_for: None, times: losses };
    }
    let cut = listed.last().map(|&at| left(at));
    // Of a loss that is drawn nobody knows how long before the end it comes.
    let at_the_end = if drawn > 0.0 { None } else { cut };
    // What is lost holds back what is behind it for a round trip at least.
    let one = cost.lateness.max(form.rtt.as_secs_f64());
    let most = slow_start.max(if listed.len() == 1 && drawn == 0.0 && end - listed[0] < cost.recovery {
        cut.unwrap_or(one)
    } else {
        one
    });
    let whole = listed.last().is_none_or(|&at| end - at >= cost.timely_again);
    let late_for = whole.then(|| too_late_for(form, cost, stream.playout.buffer.as_secs_f64()));
    Lateness { most: Some(most), at_the_end, late_for, times: losses }
}

/// For how long after a loss messages come later than the player waits.
fn too_late_for(form: &IsolatedLoss, cost: &Cost, buffer: f64) -> f64 {
    if cost.lateness <= buffer {
        return 0.0;
    }
    let rate = form.rate.bit_per_s() as f64 / 8.0;
    let late = |time: f64| form.behind_after(Duration::from_secs_f64(time)) / rate > buffer;
    // It falls behind until it has recovered, and catches up from then on.
    let crossing = |mut on_time: f64, mut too_late: f64| {
        for _ in 0..24 {
            let middle = (on_time + too_late) / 2.0;
            *(if late(middle) { &mut too_late } else { &mut on_time }) = middle;
        }
        on_time
    };
    crossing(cost.timely_again, cost.recovery) - crossing(0.0, cost.recovery)
}

/// Losses that come before the last one is made good: what a file of as many bytes takes, where it takes longer.
fn as_a_file(
    flow: &Flow,
    stream: &Stream,
    cost: &Cost,
    one_way: Duration,
    losses: f64,
    prediction: &mut Prediction,
) -> Result<Lateness, InputError> {
    // A window of no more than the rate takes makes a file of the stream; a larger one lets it catch up.
    let window = if cost.timely_again.is_infinite() { Bytes(cost.bdp as u64) } else { flow.window };
    let file = Flow { window: flow.window.min(window), view: flow.view.clone(), ..*flow };
    let mut as_file = file.predict_file(flow.spec.size)?;
    loss::add(&file, &mut as_file)?;
    let messages = &stream.messages;
    let in_time = prediction.established + messages.due_after(messages.count - 1) + one_way;
    let behind = as_file.transfer_time.saturating_sub(in_time).as_secs_f64();
    prediction.by = as_file.by;
    prediction.caveats.extend(as_file.caveats);
    prediction.caveats.push(
        "losses come before the one before is made good: the stream is taken to be as fast as a file"
            .to_owned(),
    );
    let known = behind > 0.0;
    Ok(Lateness {
        most: known.then_some(behind),
        at_the_end: known.then_some(behind),
        late_for: None,
        times: losses,
    })
}

fn figures(stream: &Stream, form: &IsolatedLoss, one_way: Duration, lateness: &Lateness) -> StreamFigures {
    let messages = &stream.messages;
    let seconds = Duration::from_secs_f64;
    let behind = lateness.most.map(|most| Bytes((most * form.rate.bit_per_s() as f64 / 8.0) as u64));
    let buffer = stream.playout.buffer;
    let late = lateness.late_for.map(|late_for| {
        let all = late_for * lateness.times.max(1.0) * messages.bit_per_s() / (messages.size.0 as f64 * 8.0);
        all.min(messages.count as f64)
    });
    let stall = lateness.most.map(|most| seconds(most).saturating_sub(buffer));
    StreamFigures {
        messages: Some(messages.count as f64),
        late_messages: late,
        max_lateness: lateness.most.map(|most| one_way + seconds(most)),
        final_lateness: lateness.at_the_end.map(|end| one_way + seconds(end)),
        delayed: behind,
        peak_backlog: behind,
        time_to_timely: lateness.late_for.map(seconds),
        stall_time: stall.filter(|_| stream.playout.late == Late::Stall),
        expired_messages: None,
        discarded_messages: late.filter(|_| stream.playout.late == Late::Discard),
        max_write_lag: None,
        // Of answers nothing is known.
        median_response: None,
        max_response: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Stack;

    #[test]
    fn beyond_its_maximum_linux_grows_by_no_whole_segment() {
        // RFC 9438 §4.3 has alpha 1 there; tcp_cubic.c keeps 8/15, RFC 8312 9/17.
        let mut config = Stack::load("linux-6").expect("it ships").config;
        let alpha = |config: &Config| match window(config, 2) {
            Window::Cubic { alpha_beyond } => alpha_beyond,
            Window::Reno { .. } => panic!("it is CUBIC"),
        };
        assert_eq!(alpha(&config), 9.0 / 17.0);
        config.congestion.cubic = CubicRules::Rfc9438;
        assert_eq!(alpha(&config), 1.0);
        config.congestion.cubic = CubicRules::Rfc8312;
        assert_eq!(alpha(&config), 9.0 / 17.0);
    }
}
