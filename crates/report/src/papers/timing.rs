//! What a check takes from the round trips, the spacing and the silences of a run's first flow.

use farpath_run::{Metric, Run, SegmentEvent};
use farpath_units::{Duration, Instant};

/// The value of this name, if it is one of these.
pub(super) fn value(
    run: &Run,
    name: &str,
    time: impl FnOnce() -> Result<Duration, String>,
) -> Option<Result<f64, String>> {
    Some(match name {
        "least_rtt_s" => round_trips(run).map(|samples| samples.into_iter().fold(f64::INFINITY, f64::min)),
        "rtt_coefficient_of_variation" => {
            round_trips(run).map(|samples| deviation(&samples) / mean(&samples))
        }
        "mean_rto_s" => timeouts_at_samples(run).map(|timeouts| mean(&timeouts)),
        "mean_spacing_change_s" => spacing_change(run),
        "idle_share" => time().and_then(|usual| idle_share(run, usual)),
        _ => return None,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// Every sample, in seconds.
fn round_trips(run: &Run) -> Result<Vec<f64>, String> {
    let samples = run.series.iter().filter(|row| row.flow == 0 && row.metric == Metric::RttSample);
    let samples: Vec<f64> = samples.map(|row| seconds(row.value)).collect();
    if samples.is_empty() {
        return Err("no round trip was recorded: the experiment needs `output.series = true`".to_owned());
    }
    Ok(samples)
}

/// The timeout that was in force just before each sample of the round trip, from the second one on.
fn timeouts_at_samples(run: &Run) -> Result<Vec<f64>, String> {
    let (mut rto, mut samples, mut timeouts) = (None, 0, Vec::new());
    for row in run.series.iter().filter(|row| row.flow == 0) {
        match row.metric {
            Metric::Rto => rto = Some(seconds(row.value)),
            Metric::RttSample => {
                timeouts.extend(rto.filter(|_| samples > 0));
                samples += 1;
            }
            _ => {}
        }
    }
    if timeouts.is_empty() {
        return Err("no timeout was recorded: the experiment needs `output.series = true`".to_owned());
    }
    Ok(timeouts)
}

/// By how much the time between two messages changes from one to the next, in the mean, whichever way: the jitter of the
/// Ricochet report.
fn spacing_change(run: &Run) -> Result<f64, String> {
    let arrived = run.messages.iter().filter(|row| row.flow == 0).filter_map(|row| row.arrived);
    let mut arrived: Vec<Instant> = arrived.collect();
    arrived.sort_unstable();
    let spacing: Vec<f64> =
        arrived.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_secs_f64()).collect();
    let changes: Vec<f64> = spacing.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    if changes.is_empty() {
        return Err("fewer than three messages were recorded: `output.messages = true`".to_owned());
    }
    Ok(mean(&changes))
}

/// Share of the transfer's time in silences of the data sender, as far as each is longer than `usual`.
fn idle_share(run: &Run, usual: Duration) -> Result<f64, String> {
    let transfer = run.flows.first().and_then(|flow| flow.transfer_time);
    let transfer = transfer.ok_or("the transfer was not completed")?.as_secs_f64();
    let sent =
        run.segments.iter().filter(|row| row.flow == 0 && row.event == SegmentEvent::Sent && row.len > 0);
    let sent: Vec<Instant> = sent.map(|row| row.time).collect();
    if sent.is_empty() {
        return Err("no segment was recorded: the experiment needs `output.segments = true`".to_owned());
    }
    let silences = sent.windows(2).map(|pair| pair[1].saturating_since(pair[0]).saturating_sub(usual));
    Ok(silences.map(Duration::as_secs_f64).sum::<f64>() / transfer)
}
