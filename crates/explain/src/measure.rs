//! Simulating variants of one scenario over the same seeds.

use crate::effort::Allowance;
use crate::groups::Groups;
use crate::rtt::Quantiles;
use crate::{ExplainError, Watch};
use farpath_engine::simulate_watched;
use farpath_experiment::{Point, Scenario};
use farpath_path::{AirUse, ChannelTime, Direction, Path, PathElement};
use farpath_predict::predict;
use farpath_run::{Outcome, Provenance, Run, Statistic, Trace};
use farpath_sim::{End, FlowView, Observer, Packet, PacketEvent};
use farpath_units::{DurationHistogram, Instant};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Runs between two looks at what is left of the events.
const AT_ONCE: usize = 64;

/// A mean over seeds, with half the width of its 95 % confidence interval (Student's t) where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Half the width of the interval.
    pub ci95: Option<f64>,
}

impl Spread {
    pub(crate) fn over(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let statistic = Statistic::from_values(values)?;
        Some(Spread { mean: statistic.mean, ci95: statistic.ci95() })
    }

    /// Whether the mean differs from zero by more than chance.
    pub fn is_certain(&self) -> bool {
        self.ci95.is_none_or(|half| self.mean.abs() > half)
    }
}

/// A channel of a radio, and for how many seconds a run it was used for what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Air {
    /// The path element.
    pub element: String,
    /// Which of its hops, from 0 at the data sender's end.
    pub hop: usize,
    /// `forward` or `reverse`, where each has a channel of its own.
    pub direction: Option<&'static str>,
    /// All uses, and their seconds.
    pub uses: Vec<(&'static str, f64)>,
}

impl Air {
    /// The mean over runs of the same path.
    fn mean(runs: &[&[ChannelTime]]) -> Vec<Air> {
        let Some(first) = runs.first() else { return Vec::new() };
        let seconds = |channel: usize, what| {
            let all = runs.iter().filter_map(|run| Some(run.get(channel)?.time.time_in(what).as_secs_f64()));
            all.sum::<f64>() / runs.len() as f64
        };
        let mean = |(number, channel): (usize, &ChannelTime)| Air {
            element: channel.name.clone(),
            hop: channel.hop,
            direction: channel.direction.map(Direction::name),
            uses: AirUse::ALL
                .into_iter()
                .filter(|&what| what != AirUse::Others || !channel.stations.is_empty())
                .map(|what| (what.name(), seconds(number, what)))
                .collect(),
        };
        first.iter().enumerate().map(mean).collect()
    }

    /// Seconds of all uses together.
    pub fn total_s(&self) -> f64 {
        self.uses.iter().map(|(_, seconds)| seconds).sum()
    }
}

/// A flow that was not over when the horizon came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unfinished {
    /// Share of its bytes that were read.
    pub read: f64,
    /// For how long it ran, in s.
    pub ran_s: f64,
    /// The sender's end of the connection was open.
    pub open: bool,
}

/// What simulation says of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// Simulated runs, each with a seed of its own.
    pub runs: u64,
    /// Flows by how they ended, over all runs.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Share of the flows that completed.
    pub completed: f64,
    /// Of completed flows: from the first SYN until the last byte was read, in s.
    pub transfer_time_s: Option<Spread>,
    /// Of streams: how late a message was read, in the mean over all; one that was not, until the end. In s.
    pub lateness_s: Option<Spread>,
    /// Bytes read per second until the flow ended, however it did, in bit/s.
    pub rate_bit_per_s: f64,
    /// From the first SYN until data may be sent, in s.
    pub connect_time_s: Option<f64>,
    /// Retransmission timeouts per flow.
    pub timeouts: f64,
    /// Time per flow in which nothing happened at the sender until its retransmission timer expired, in s.
    pub waited_for_timer_s: f64,
    /// Data sent again, segments per flow.
    pub retransmissions: f64,
    /// Of each channel of its radios: what it was used for until the end.
    pub air: Vec<Air>,
    /// Packets dropped by a full queue, per flow.
    pub overflow_drops: f64,
    /// Round-trip times that the senders measured during the transfers, queueing included, in s.
    pub rtt_s: Option<Quantiles>,
    /// Rounds that a sender was in slow start for, until its window filled the path, it lost something, or all was sent.
    pub slow_start_rounds: Option<f64>,
    /// What each run is judged by, for paired differences: see [`Observed::judged_s`].
    #[serde(skip)]
    pub(crate) times: Vec<Option<f64>>,
    /// Share of the flows that completed in each run.
    #[serde(skip)]
    pub(crate) completions: Vec<f64>,
    /// Bytes read per second in each run, in bit/s, nothing for a connection that was given up.
    #[serde(skip)]
    pub(crate) paces: Vec<f64>,
    /// What a flow's end is called where the outcome does not say.
    #[serde(skip)]
    pub(crate) details: Vec<String>,
    /// Flows that the horizon ended.
    #[serde(skip)]
    pub(crate) unfinished: Vec<Unfinished>,
    /// SYNs of the opener, per flow.
    #[serde(skip)]
    pub(crate) syns: f64,
}

impl Observed {
    /// What it is judged by, in s: the transfer time, or of streams, which take as long as they take, the mean lateness.
    pub fn judged_s(&self) -> Option<Spread> {
        self.lateness_s.or(self.transfer_time_s)
    }

    /// How much less time than this one `other` takes, or how much less late it is, seed by seed; only where every run of
    /// both completed.
    pub(crate) fn gain_of(&self, other: &Observed) -> Option<Spread> {
        let pairs = self.times.iter().zip(&other.times);
        let differences: Option<Vec<f64>> = pairs.map(|(here, there)| Some((*here)? - (*there)?)).collect();
        Spread::over(differences?)
    }

    /// How many times as fast, or as timely, `other` is: by what they are judged by where all completed, else by bytes read per second, nothing
    /// for a connection that was given up.
    pub(crate) fn speed_up_of(&self, other: &Observed) -> Option<f64> {
        if self.completed == 1.0
            && other.completed == 1.0
            && let (Some(here), Some(there)) = (self.judged_s(), other.judged_s())
        {
            return (there.mean > 0.0).then(|| here.mean / there.mean);
        }
        let [here, there] = [self, other].map(|observed| observed.paces.iter().sum::<f64>());
        (here > 0.0).then(|| there / here)
    }

    /// Whether by more than chance `other` brings more flows to their end or, where it brings as many, is better by
    /// `share` of the time.
    pub(crate) fn is_beaten_by(&self, other: &Observed, share: f64) -> bool {
        // A single run is certain of everything, and of no difference too.
        let more = |here: &[f64], there: &[f64]| {
            Spread::over(here.iter().zip(there).map(|(here, there)| there - here))
                .filter(|gain| gain.mean != 0.0 && gain.is_certain())
        };
        if let Some(rescued) = more(&self.completions, &other.completions) {
            return rescued.mean > 0.0;
        }
        if let (Some(gain), Some(time)) = (self.gain_of(other), self.judged_s()) {
            return gain.mean > share * time.mean && gain.is_certain();
        }
        let before = Spread::over(self.paces.iter().copied());
        more(&self.paces, &other.paces)
            .zip(before)
            .is_some_and(|(gain, before)| gain.mean > share * before.mean)
    }
}

/// One experiment to simulate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variant {
    pub scenario: Scenario,
    /// The explained flows carry one file between them: what counts is when the last of them is done.
    pub together: bool,
    /// Fewer seeds than all, for a search.
    pub seeds: Option<usize>,
}

impl From<Scenario> for Variant {
    fn from(scenario: Scenario) -> Variant {
        Variant { scenario, together: false, seeds: None }
    }
}

/// Simulates variants, each once however often it is asked for.
pub(crate) struct Bench<'a> {
    seeds: Vec<u64>,
    watch: &'a Watch<'a>,
    known: Vec<(Variant, Observed)>,
    /// A window that fills the path, where slow start is over.
    full_window: u64,
    allowance: Allowance,
}

impl<'a> Bench<'a> {
    /// One that simulates each variant with each of `seeds`, and has `events` for all of them, `spent` of which are gone.
    pub fn new(
        seeds: Vec<u64>,
        full_window: u64,
        (events, spent): (u64, u64),
        watch: &'a Watch<'a>,
    ) -> Bench<'a> {
        let allowance = Allowance::new(events, spent, seeds.len() as u64);
        Bench { seeds, watch, known: Vec::new(), full_window, allowance }
    }

    /// Events that were simulated.
    pub fn spent(&self) -> u64 {
        self.allowance.spent
    }

    /// Whether all runs of the scenario as it is were stuck.
    pub fn is_stuck(&self) -> bool {
        self.allowance.stuck
    }

    /// What to know of it, where runs had fewer events than others.
    pub fn caveat(&self, scenario: &Scenario) -> Option<String> {
        if !self.allowance.cut_short || scenario.budget.events.is_some() {
            return None;
        }
        let most = self.allowance.bound(scenario).budget.events?;
        let why = match self.is_stuck() {
            true => "as it is, it is stuck".to_owned(),
            false => format!("{} events were simulated for this answer", self.spent()),
        };
        Some(format!("{why}: a change has {most} events a run, and one that needs more counts as stuck"))
    }

    /// How many runs a variant has.
    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }

    /// What becomes of each of these, in their order.
    pub fn measure(&mut self, variants: &[Scenario]) -> Result<Vec<Observed>, ExplainError> {
        self.measure_variants(&variants.iter().cloned().map(Variant::from).collect::<Vec<_>>())
    }

    /// The same of variants.
    pub fn measure_variants(&mut self, variants: &[Variant]) -> Result<Vec<Observed>, ExplainError> {
        let mut new: Vec<&Variant> = Vec::new();
        for variant in variants {
            if !self.known.iter().any(|(known, _)| known == variant) && !new.contains(&variant) {
                new.push(variant);
            }
        }
        let samples = self.samples(&new)?;
        let observed: Vec<_> = new
            .into_iter()
            .zip(samples)
            .map(|(variant, samples)| (variant.clone(), summary(&samples, 0, variant.together)))
            .collect();
        self.known.extend(observed);
        let found = |variant| self.known.iter().find(|(known, _)| known == variant);
        Ok(variants.iter().filter_map(found).map(|(_, observed)| observed.clone()).collect())
    }

    /// What becomes of this one.
    pub fn measure_one(&mut self, variant: Scenario) -> Result<Observed, ExplainError> {
        Ok(self.measure(&[variant])?.remove(0))
    }

    /// What becomes of each group of the flows of the scenario as it is.
    pub fn measure_groups(
        &mut self,
        scenario: Scenario,
        groups: usize,
    ) -> Result<Vec<Observed>, ExplainError> {
        let variant = Variant::from(scenario);
        let samples = self.samples(&[&variant])?.remove(0);
        let longest = samples.iter().map(|sample| sample.events).max().unwrap_or(0);
        self.allowance.begin(longest, samples.iter().all(Sample::is_stuck));
        let observed: Vec<Observed> = (0..groups).map(|group| summary(&samples, group, false)).collect();
        self.known.push((variant, observed[0].clone()));
        Ok(observed)
    }

    /// All runs of these.
    fn samples(&mut self, variants: &[&Variant]) -> Result<Vec<Vec<Sample>>, ExplainError> {
        let seeds =
            |variant: &Variant| &self.seeds[..variant.seeds.unwrap_or(usize::MAX).min(self.seeds.len())];
        let jobs: Vec<(usize, u64)> = variants
            .iter()
            .enumerate()
            .flat_map(|(number, variant)| seeds(variant).iter().map(move |&seed| (number, seed)))
            .collect();
        (self.watch.planned)(jobs.len() as u64);
        let mut samples: Vec<Vec<Sample>> = variants.iter().map(|_| Vec::new()).collect();
        for jobs in jobs.chunks(AT_ONCE) {
            self.allowance.cut_short |= self.allowance.short().is_some();
            let results: Vec<Result<Sample, ExplainError>> = jobs
                .par_iter()
                .map(|&(number, seed)| {
                    if self.watch.stop.load(Ordering::Relaxed) {
                        return Err(ExplainError::Interrupted);
                    }
                    let scenario = self.allowance.bound(&variants[number].scenario);
                    let sample = sample(scenario, seed, self.full_window)?;
                    (self.watch.done)();
                    Ok(sample)
                })
                .collect();
            for (&(number, _), result) in jobs.iter().zip(results) {
                let sample = result?;
                self.allowance.spent = self.allowance.spent.saturating_add(sample.events);
                samples[number].push(sample);
            }
        }
        Ok(samples)
    }
}

fn point(mut scenario: Scenario) -> Point {
    // Nobody reads the traces, but for when messages came.
    let messages = scenario.flows.iter().any(|flow| flow.stream.is_some());
    scenario.output = farpath_experiment::Output { messages, ..farpath_experiment::Output::default() };
    Point { index: 0, swept: Vec::new(), scenario }
}

/// What the closed forms say.
#[derive(Debug, Clone)]
pub(crate) struct Predicted {
    /// The transfer time of the first flow in s, where it completes.
    pub time_s: Option<f64>,
    /// Why there is no answer, where there is none.
    pub unknown: Option<String>,
    /// What they say of their own answer.
    pub caveats: Vec<String>,
}

pub(crate) fn predicted(scenario: &Scenario) -> Result<Predicted, ExplainError> {
    // Of the first flow, as if it had the path to itself: equal flows have equal answers.
    let mut alone = scenario.clone();
    alone.flows.truncate(1);
    let run = predict(&point(alone), Provenance::default())?;
    let times: Option<Vec<f64>> =
        run.flows.iter().map(|flow| flow.transfer_time.map(|time| time.as_secs_f64())).collect();
    let time_s = times.and_then(Spread::over).map(|times| times.mean);
    let unknown = run.flows.iter().find(|flow| flow.outcome == Outcome::Unknown);
    let unknown = unknown.map(|flow| flow.detail.clone());
    Ok(Predicted { time_s, unknown, caveats: run.provenance.caveats })
}

/// One run, and what its flows spent waiting.
struct Sample {
    run: Run,
    group_of: Vec<usize>,
    lateness_s: Option<f64>,
    waited_s: Vec<f64>,
    slow_start_rounds: Vec<f64>,
    rtts: Vec<DurationHistogram>,
    air: Vec<ChannelTime>,
    events: u64,
}

impl Sample {
    fn is_stuck(&self) -> bool {
        self.run.flows.iter().any(|flow| flow.outcome == Outcome::Stuck)
    }
}

fn sample(scenario: Scenario, seed: u64, full_window: u64) -> Result<Sample, ExplainError> {
    let groups = Groups::new(&scenario);
    let mut waits = Waits {
        flows: vec![Wait::default(); scenario.flows.len()],
        rtts: vec![DurationHistogram::default(); groups.count],
        full_window,
        group_of: groups.of,
        air: Vec::new(),
        events: 0,
    };
    let point = point(scenario);
    let mut run = simulate_watched(&point, seed, Provenance::default(), &mut waits)?;
    let lateness_s = lateness_s(&run);
    // Many, of many runs at once.
    run.messages = Trace::default();
    let Waits { flows, air, rtts, group_of, events, .. } = waits;
    Ok(Sample {
        run,
        group_of,
        lateness_s,
        waited_s: flows.iter().map(|flow| flow.waited_s).collect(),
        slow_start_rounds: flows.iter().map(|flow| f64::from(flow.rounds)).collect(),
        rtts,
        air,
        events,
    })
}

/// How late its messages were in the mean, in s; nothing where it has none.
fn lateness_s(run: &Run) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for row in run.messages.iter() {
        let flow = run.flows.iter().find(|flow| flow.flow == row.flow)?;
        let read = row.arrived.or(flow.ended_at)?;
        sum += read.saturating_since(row.due).as_secs_f64();
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// Of the flows of one group, over all runs.
fn summary(samples: &[Sample], group: usize, together: bool) -> Observed {
    let members = |sample: &Sample| -> Vec<farpath_run::FlowRow> {
        let all = sample.run.flows.iter().zip(&sample.group_of);
        all.filter(|(_, of)| **of == group).map(|(flow, _)| flow.clone()).collect()
    };
    let runs: Vec<Vec<farpath_run::FlowRow>> = samples.iter().map(members).collect();
    let flows: Vec<_> = runs.iter().flatten().collect();
    let count = flows.len().max(1) as f64;
    let mean = |values: Vec<Option<f64>>| {
        Spread::over(values.into_iter().flatten()).map_or(0.0, |values| values.mean)
    };
    let transfer_times: Vec<Option<f64>> = runs
        .iter()
        .map(|flows| {
            let all: Option<Vec<f64>> =
                flows.iter().map(|flow| Some(flow.transfer_time?.as_secs_f64())).collect();
            let all = all?;
            if together {
                return all.into_iter().reduce(f64::max);
            }
            Spread::over(all).map(|times| times.mean)
        })
        .collect();
    let mut outcomes = BTreeMap::new();
    let mut details: Vec<String> = Vec::new();
    for flow in &flows {
        *outcomes.entry(flow.outcome.name()).or_insert(0) += 1;
        if !flow.detail.is_empty() && !details.contains(&flow.detail) {
            details.push(flow.detail.clone());
        }
    }
    let rate = |flow: &farpath_run::FlowRow| {
        let time = flow.ended_at?.saturating_since(flow.start).as_secs_f64();
        (time > 0.0).then(|| flow.bytes_read.bits() as f64 / time)
    };
    let pace = |flow: &&farpath_run::FlowRow| match flow.outcome {
        Outcome::Aborted | Outcome::ConnectTimedOut | Outcome::Void | Outcome::Stuck | Outcome::Unknown => {
            0.0
        }
        Outcome::Completed | Outcome::Horizon => rate(flow).unwrap_or(0.0),
    };
    let paces: Vec<f64> = runs
        .iter()
        .map(|flows| flows.iter().map(|flow| pace(&flow)).sum::<f64>() / flows.len().max(1) as f64)
        .collect();
    let completed = |flow: &&&farpath_run::FlowRow| flow.outcome == Outcome::Completed;
    let completions = runs
        .iter()
        .map(|flows| flows.iter().filter(|flow| completed(&flow)).count() as f64 / flows.len().max(1) as f64)
        .collect();
    let unfinished = flows
        .iter()
        .filter(|flow| flow.outcome == Outcome::Horizon)
        .filter_map(|flow| {
            let ran_s = flow.ended_at?.saturating_since(flow.start).as_secs_f64();
            let read = flow.bytes_read.0 as f64 / flow.bytes.0.max(1) as f64;
            Some(Unfinished { read, ran_s, open: flow.connect_time.is_some() })
        })
        .collect();
    let overflow = |flow: &farpath_run::FlowRow| {
        let drops = flow.drops_by_cause.iter().find(|(cause, _)| cause.contains("overflow"));
        Some(drops.map_or(0.0, |(_, drops)| *drops as f64))
    };
    Observed {
        runs: samples.len() as u64,
        completed: flows.iter().filter(completed).count() as f64 / count,
        outcomes,
        transfer_time_s: Spread::over(transfer_times.iter().flatten().copied()),
        lateness_s: Spread::over(samples.iter().filter_map(|sample| sample.lateness_s)),
        rate_bit_per_s: mean(flows.iter().map(|flow| rate(flow)).collect()),
        connect_time_s: Spread::over(
            flows.iter().filter_map(|flow| flow.connect_time).map(|time| time.as_secs_f64()),
        )
        .map(|times| times.mean),
        timeouts: mean(flows.iter().map(|flow| flow.timeouts).collect()),
        waited_for_timer_s: mean(of_flows(samples, group, |sample| &sample.waited_s)),
        rtt_s: Quantiles::from_histograms(samples.iter().filter_map(|sample| sample.rtts.get(group))),
        slow_start_rounds: Spread::over(
            of_flows(samples, group, |sample| &sample.slow_start_rounds).into_iter().flatten(),
        )
        .map(|rounds| rounds.mean),
        retransmissions: mean(flows.iter().map(|flow| flow.retransmissions).collect()),
        air: Air::mean(&samples.iter().map(|sample| &sample.air[..]).collect::<Vec<_>>()),
        overflow_drops: mean(flows.iter().map(|flow| overflow(flow)).collect()),
        syns: mean(flows.iter().map(|flow| flow.syns).collect()),
        times: samples
            .iter()
            .zip(transfer_times)
            .map(|(sample, time)| sample.lateness_s.filter(|_| time.is_some()).or(time))
            .collect(),
        unfinished,
        paces,
        completions,
        details,
    }
}

/// A figure of each flow of a group, over all runs.
fn of_flows(samples: &[Sample], group: usize, figures: fn(&Sample) -> &Vec<f64>) -> Vec<Option<f64>> {
    let of = |sample| {
        let all = figures(sample).iter().zip(&sample.group_of);
        all.filter(move |(_, of)| **of == group).map(|(figure, _)| Some(*figure))
    };
    samples.iter().flat_map(of).collect()
}

/// How long each flow's sender stood still before its retransmission timer expired, how it began, which round trips it
/// saw, what the air was used for, and how many events all of it took.
struct Waits {
    flows: Vec<Wait>,
    /// Round-trip times of each group.
    rtts: Vec<DurationHistogram>,
    group_of: Vec<usize>,
    full_window: u64,
    air: Vec<ChannelTime>,
    events: u64,
}

#[derive(Debug, Clone, Default)]
struct Wait {
    /// The last two moments at which the sender sent or got something.
    last: Instant,
    before: Instant,
    timeouts: u64,
    waited_s: f64,
    /// RTT samples that are in the histogram.
    samples: u64,
    /// Rounds of the first slow start, each over when what was sent by its beginning is acknowledged.
    rounds: u32,
    round_ends: u64,
    started: bool,
}

impl Observer for Waits {
    fn packet(&mut self, now: Instant, event: PacketEvent, _: Direction, packet: &Packet) {
        let sent = event == PacketEvent::Sent && packet.from == End::Sender;
        let received = event == PacketEvent::Received && packet.from == End::Receiver;
        let flow = &mut self.flows[packet.flow as usize];
        if (sent || received) && now > flow.last {
            (flow.before, flow.last) = (flow.last, now);
        }
    }

    fn state(&mut self, now: Instant, view: FlowView<'_>) {
        let flow = &mut self.flows[view.number as usize];
        let sender = view.sender.sender();
        if let (Some(sample), count) = sender.rtt().last_sample()
            && count > flow.samples
        {
            flow.samples = count;
            self.rtts[self.group_of[view.number as usize]].record(sample);
        }
        let window = sender.window();
        let filled = window.cwnd >= self.full_window || window.cwnd >= window.ssthresh;
        if !flow.started && sender.acked() >= flow.round_ends && sender.sent() > flow.round_ends {
            flow.rounds += 1;
            flow.round_ends = sender.sent();
        }
        // Before it is open a connection has no window.
        flow.started |= sender.sent() > 0 && (filled || sender.stats().retransmissions > 0);
        let timeouts = sender.stats().timeouts;
        if timeouts > flow.timeouts {
            flow.timeouts = timeouts;
            // The retransmission has left at this very moment: what counts is the silence before it.
            let since = if flow.last == now { flow.before } else { flow.last };
            flow.waited_s += now.saturating_since(since).as_secs_f64();
        }
    }

    fn end(&mut self, now: Instant, path: &Path<Packet>, events: u64) {
        self.air = path.air(now);
        self.events = events;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs with these transfer times in s, 0 for one that was given up after it read something.
    fn runs(times: &[f64]) -> Observed {
        let done = |time: &f64| *time > 0.0;
        Observed {
            runs: times.len() as u64,
            outcomes: BTreeMap::new(),
            completed: times.iter().filter(|time| done(time)).count() as f64 / times.len() as f64,
            transfer_time_s: Spread::over(times.iter().copied().filter(done)),
            lateness_s: None,
            rate_bit_per_s: 1.0,
            connect_time_s: None,
            timeouts: 0.0,
            waited_for_timer_s: 0.0,
            retransmissions: 0.0,
            air: Vec::new(),
            overflow_drops: 0.0,
            rtt_s: None,
            slow_start_rounds: None,
            times: times.iter().map(|time| done(time).then_some(*time)).collect(),
            paces: times.iter().map(|time| if done(time) { 1.0 / time } else { 0.0 }).collect(),
            completions: times.iter().map(|time| f64::from(u8::from(done(time)))).collect(),
            details: Vec::new(),
            unfinished: Vec::new(),
            syns: 1.0,
        }
    }

    #[test]
    fn a_gain_by_chance_is_none() {
        let steady = runs(&[10.0; 4]);
        assert!(steady.is_beaten_by(&runs(&[9.0; 4]), 0.01));
        assert!(!steady.is_beaten_by(&runs(&[9.95; 4]), 0.01), "too little");
        assert!(!steady.is_beaten_by(&runs(&[2.0, 16.0, 2.0, 18.0]), 0.01), "by chance");
        // One run of four ends otherwise: chance too, and so is the pace that comes of it.
        let most = runs(&[10.0, 10.0, 10.0, 0.0]);
        assert!(!most.is_beaten_by(&steady, 0.01) && !steady.is_beaten_by(&most, 0.01));
    }

    /// Both take as long: what counts is how late their messages are.
    #[test]
    fn streams_are_judged_by_lateness() {
        let stream = |late: f64| {
            let times = vec![Some(late); 4];
            let lateness_s = Spread::over([late; 4]);
            Observed { times, lateness_s, ..runs(&[40.0; 4]) }
        };
        let (late, timely) = (stream(2.0), stream(0.5));
        assert!(late.is_beaten_by(&timely, 0.01) && !timely.is_beaten_by(&late, 0.01));
        assert_eq!(late.speed_up_of(&timely), Some(4.0));
        assert_eq!(late.gain_of(&timely).map(|gain| gain.mean), Some(1.5));
    }

    #[test]
    fn what_is_given_up_later_is_no_gain() {
        let (none, all) = (runs(&[0.0; 4]), runs(&[10.0; 4]));
        assert!(none.is_beaten_by(&all, 0.01));
        assert!(!none.is_beaten_by(&runs(&[0.0; 4]), 0.01));
        assert_eq!(none.speed_up_of(&all), None);
    }
}
