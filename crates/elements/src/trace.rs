//! Rates over time: what a link could send, as somebody has recorded it, or as a model makes it.

mod model;

use crate::keys::shown;
use crate::over_time::PointList;
use farpath_units::{Bytes, Duration, Instant, Rate};
use std::sync::Arc;

pub use model::{Model, ModelError};

/// Bytes of an opportunity to send, as mahimahi counts them: 1500 and four of its device's header.
pub const OPPORTUNITY: Bytes = Bytes(1504);

/// The most entries of a trace, four hours of a delivery each millisecond; and of what the elements of a path list together.
pub const MAX_ENTRIES: usize = 16_000_000;

/// What a link can send over time.
#[derive(Debug, Clone, PartialEq)]
pub enum Trace {
    /// Rates, each from its time on.
    Rates(Rates),
    /// Opportunities to send [`OPPORTUNITY`] bytes each, as in mahimahi's files. What is not used when it comes is lost.
    Opportunities(Opportunities),
}

/// Rates, each from its time on; the last until the end. Points of a sweep and runs share them.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// When each begins, from zero on and rising, and bit/s; zero is an outage.
    pub steps: Arc<[(Duration, u64)]>,
    /// What follows the end: the whole again; `None` where the last rate stays.
    pub repeat_after: Option<Duration>,
}

/// Milliseconds at which there is an opportunity, in rising order, some more than once. After the last the whole begins again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opportunities {
    /// Since the start; the last is the period.
    pub at_ms: Arc<[u64]>,
}

/// Why a text is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct TraceError {
    /// Counted from 1; 0 is the text as a whole.
    pub line: usize,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl TraceError {
    fn new(line: usize, expected: impl Into<String>, found: impl Into<String>) -> TraceError {
        TraceError { line, expected: expected.into(), found: found.into() }
    }
}

/// Figures of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceFigures {
    /// From its beginning to its end.
    pub span: Duration,
    /// Mean over the span, bit/s.
    pub mean_bit_per_s: f64,
    /// The least and the greatest rate of a second (of a step, of rates), bit/s.
    pub least_bit_per_s: f64,
    /// See `least_bit_per_s`.
    pub greatest_bit_per_s: f64,
    /// Standard deviation of the rate over its mean.
    pub variation: f64,
    /// Times of 100 ms and more in which nothing can be sent.
    pub outages: u64,
    /// The longest of these.
    pub longest_outage: Duration,
}

/// Shorter times without an opportunity are no outage.
const OUTAGE: Duration = Duration::from_millis(100);

impl Trace {
    /// Reads a trace: a millisecond a line as mahimahi has it, or `seconds,bit/s` a line (a rate may have its unit: `8 Mbit/s`), with or without
    /// a line of names above. Lines that are empty or begin with `#` are passed over, but `# repeat SECONDS`, which says when the rates begin again.
    ///
    /// # Errors
    /// The line that is not as it should be.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut lines = (1..)
            .zip(text.lines())
            .map(|(number, line)| (number, line.trim()))
            .filter(|(_, line)| !line.is_empty());
        let first = lines.clone().find(|(_, line)| !line.starts_with('#'));
        let Some((_, first)) = first else {
            return Err(TraceError::new(0, "a millisecond, or `seconds,bit/s`, a line", "nothing"));
        };
        if first.contains(',') {
            let (steps, repeat_after) = parse_points(text, rate_of, RATE)?;
            Trace::of_rates(steps, repeat_after)
        } else {
            Trace::parse_opportunities(&mut lines)
        }
    }

    fn parse_opportunities(lines: &mut dyn Iterator<Item = (usize, &str)>) -> Result<Trace, TraceError> {
        let mut at_ms = Vec::new();
        let mut last = 0;
        for (number, line) in lines.filter(|(_, line)| !line.starts_with('#')) {
            let found = line.parse::<u32>().map(u64::from);
            let Ok(at) = found else {
                return Err(TraceError::new(
                    number,
                    "a whole number of milliseconds",
                    format!("`{}`", shown(line)),
                ));
            };
            if at < last {
                return Err(TraceError::new(
                    number,
                    format!("{last} or later: time does not go back"),
                    at.to_string(),
                ));
            }
            last = at;
            at_ms.push(at);
            if at_ms.len() > MAX_ENTRIES {
                return Err(TraceError::new(number, format!("{MAX_ENTRIES} lines at the most"), "more"));
            }
        }
        if last == 0 {
            return Err(TraceError::new(0, "an opportunity after 0 ms: the last one is the period", "none"));
        }
        Ok(Trace::Opportunities(Opportunities { at_ms: at_ms.into() }))
    }

    /// Rates, each from its time on.
    ///
    /// # Errors
    /// Rates that are all zero.
    pub fn of_rates(
        steps: Vec<(Duration, u64)>,
        repeat_after: Option<Duration>,
    ) -> Result<Trace, TraceError> {
        if steps.iter().all(|(_, rate)| *rate == 0) {
            return Err(TraceError::new(0, "a rate above zero", "none"));
        }
        Ok(Trace::Rates(Rates { steps: steps.into(), repeat_after }))
    }

    /// The text of a file that reads back as this trace.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        match self {
            Trace::Opportunities(Opportunities { at_ms }) => {
                at_ms.iter().for_each(|at| text.push_str(&format!("{at}\n")));
            }
            Trace::Rates(Rates { steps, repeat_after }) => {
                if let Some(repeat) = repeat_after {
                    text.push_str(&format!("# repeat {}\n", repeat.as_secs_f64()));
                }
                text.push_str("time_s,rate_bit_per_s\n");
                steps.iter().for_each(|(at, rate)| text.push_str(&format!("{},{rate}\n", at.as_secs_f64())));
            }
        }
        text
    }

    /// The mean rate over its span, and one at least: what the closed forms take it for.
    pub fn mean_rate(&self) -> Rate {
        Rate::from_bit_per_s((self.figures().mean_bit_per_s as u64).max(1)).expect("not zero")
    }

    /// The greatest rate that it ever has.
    pub fn greatest_rate(&self) -> Rate {
        let greatest = match self {
            Trace::Rates(rates) => rates.steps.iter().map(|step| step.1).max().unwrap_or(1),
            // Those of one millisecond come at once.
            Trace::Opportunities(_) => u64::MAX,
        };
        Rate::from_bit_per_s(greatest.max(1)).expect("not zero")
    }

    /// Makes every rate so many times as large.
    pub fn speed_up(&mut self, factor: u64) {
        match self {
            Trace::Rates(rates) => {
                rates.steps =
                    rates.steps.iter().map(|&(at, rate)| (at, rate.saturating_mul(factor))).collect();
            }
            Trace::Opportunities(Opportunities { at_ms }) => {
                let copies = usize::try_from(factor)
                    .unwrap_or(usize::MAX)
                    .min(MAX_ENTRIES / at_ms.len().max(1))
                    .max(1);
                *at_ms = at_ms.iter().flat_map(|&at| core::iter::repeat_n(at, copies)).collect();
            }
        }
    }

    /// How many rates or opportunities it has.
    pub fn entries(&self) -> usize {
        match self {
            Trace::Rates(rates) => rates.steps.len(),
            Trace::Opportunities(opportunities) => opportunities.at_ms.len(),
        }
    }

    /// Its figures.
    pub fn figures(&self) -> TraceFigures {
        match self {
            Trace::Rates(rates) => rates.figures(),
            Trace::Opportunities(opportunities) => opportunities.figures(),
        }
    }

    /// The mean rate in each of so many equal parts of its span, in bit/s.
    pub fn over_time(&self, parts: usize) -> Vec<f64> {
        let span = self.figures().span.as_secs_f64();
        let part = span / parts as f64;
        let mut bits = vec![0.0; parts];
        let part_of = |seconds: f64| ((seconds / part) as usize).min(parts.saturating_sub(1));
        match self {
            Trace::Rates(rates) => {
                let ends = rates.steps.iter().skip(1).map(|step| step.0.as_secs_f64()).chain([span]);
                for (&(from, rate), to) in rates.steps.iter().zip(ends) {
                    let from = from.as_secs_f64();
                    let touched = part_of(from)..=part_of(to);
                    for (number, bits) in touched.clone().zip(&mut bits[touched]) {
                        let (begins, ends) = (number as f64 * part, (number + 1) as f64 * part);
                        *bits += rate as f64 * (to.min(ends) - from.max(begins)).max(0.0);
                    }
                }
            }
            Trace::Opportunities(all) => {
                for &at in all.at_ms.iter() {
                    // One at the end of a part is that of what went before it.
                    bits[part_of(at.saturating_sub(1) as f64 / 1e3)] += OPPORTUNITY.bits() as f64;
                }
            }
        }
        bits.iter().map(|bits| bits / part).collect()
    }
}

/// Reads `seconds,value` lines, with or without a line of names above. Lines that are empty or begin with `#` are passed over, but `# repeat SECONDS`,
/// which is when they begin again.
///
/// # Errors
/// The line that is not as it should be.
pub(crate) fn parse_points<T>(
    text: &str,
    value: impl Fn(&str) -> Option<T>,
    expected: &str,
) -> Result<(PointList<T>, Option<Duration>), TraceError> {
    let mut points = PointList::new();
    let mut repeat_after = None;
    let mut names_allowed = true;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(seconds) = comment.trim().strip_prefix("repeat ") {
                repeat_after = Some((number, time(number, seconds)?));
            }
            continue;
        }
        let Some((at, text)) = line.split_once(',') else {
            let expected = "`seconds,value` such as `2.5,8000000`";
            return Err(TraceError::new(number, expected, format!("`{}`", shown(line))));
        };
        let names = at.trim().starts_with(|c: char| c.is_ascii_alphabetic());
        if core::mem::take(&mut names_allowed) && names {
            continue;
        }
        let at = time(number, at)?;
        match points.last() {
            None if !at.is_zero() => {
                return Err(TraceError::new(number, "a first value at 0 s", at.to_string()));
            }
            Some((last, _)) if at <= *last => {
                return Err(TraceError::new(number, format!("a time after {last}"), at.to_string()));
            }
            _ => {}
        }
        let value = value(text.trim())
            .ok_or_else(|| TraceError::new(number, expected, format!("`{}`", shown(text.trim()))))?;
        points.push((at, value));
        if points.len() > MAX_ENTRIES {
            return Err(TraceError::new(number, format!("{MAX_ENTRIES} lines at the most"), "more"));
        }
    }
    let Some(&(last, _)) = points.last() else {
        return Err(TraceError::new(0, "`seconds,value` a line", "nothing"));
    };
    if let Some((number, repeat)) = repeat_after.filter(|(_, repeat)| *repeat <= last) {
        return Err(TraceError::new(
            number,
            format!("a time after {last}, where the last value begins"),
            repeat.to_string(),
        ));
    }
    Ok((points, repeat_after.map(|(_, repeat)| repeat)))
}

fn time(line: usize, text: &str) -> Result<Duration, TraceError> {
    // Below 2^53 ns, so that what is written reads back.
    let seconds: Option<f64> = text.trim().parse().ok().filter(|seconds| (0.0..9e6).contains(seconds));
    seconds.map(|seconds| Duration::from_nanos(libm::round(seconds * 1e9) as u64)).ok_or_else(|| {
        TraceError::new(line, "seconds since the start such as `2.5`", format!("`{}`", shown(text)))
    })
}

const RATE: &str = "a rate from 0 on, in bit/s or such as `8 Mbit/s`";

fn rate_of(text: &str) -> Option<u64> {
    let number: Option<f64> = text.parse().ok().filter(|rate| (0.0..=1e15).contains(rate));
    let rate = number.map(|rate| libm::round(rate) as u64);
    rate.or_else(|| text.parse::<Rate>().ok().map(Rate::bit_per_s))
}

impl Rates {
    /// What a round of it can send, in bits and nanoseconds; zero where it does not repeat.
    fn bit_ns_in_a_round(&self) -> u128 {
        let Some(period) = self.repeat_after else { return 0 };
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([period]);
        self.steps
            .iter()
            .zip(ends)
            .map(|(&(from, rate), to)| u128::from(rate) * u128::from((to - from).as_nanos()))
            .sum()
    }

    /// When it ends: a last rate that stays counts as long as the one before it, or a second.
    fn span(&self) -> Duration {
        let last = self.steps.last().map_or(Duration::ZERO, |step| step.0);
        self.repeat_after.unwrap_or_else(|| match self.steps.len().checked_sub(2) {
            Some(before) => last + (last - self.steps[before].0),
            None => last + Duration::from_secs(1),
        })
    }

    fn figures(&self) -> TraceFigures {
        let span = self.span();
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([span]);
        let (mut sum, mut squares, mut outages, mut longest, mut outage) =
            (0.0, 0.0, 0, Duration::ZERO, Duration::ZERO);
        for (&(from, rate), to) in self.steps.iter().zip(ends) {
            let seconds = (to - from).as_secs_f64();
            sum += rate as f64 * seconds;
            squares += rate as f64 * rate as f64 * seconds;
            let before = outage;
            outage = if rate == 0 { outage + (to - from) } else { Duration::ZERO };
            outages += u64::from(outage >= OUTAGE && before < OUTAGE);
            longest = longest.max(outage);
        }
        let mean = sum / span.as_secs_f64();
        let variance = (squares / span.as_secs_f64() - mean * mean).max(0.0);
        let all = || self.steps.iter().map(|step| step.1 as f64);
        TraceFigures {
            span,
            mean_bit_per_s: mean,
            least_bit_per_s: all().fold(f64::INFINITY, f64::min),
            greatest_bit_per_s: all().fold(0.0, f64::max),
            variation: libm::sqrt(variance) / mean,
            outages,
            longest_outage: if longest >= OUTAGE { longest } else { Duration::ZERO },
        }
    }
}

impl Opportunities {
    fn period_ms(&self) -> u64 {
        self.at_ms.last().copied().unwrap_or(1).max(1)
    }

    /// Of each whole second, and of what is left at the end.
    fn seconds(&self) -> Vec<(Duration, f64)> {
        let period = self.period_ms();
        let mut counts = vec![0_u64; usize::try_from(period.div_ceil(1000)).unwrap_or(1)];
        // One at the very end is that of the last second.
        self.at_ms.iter().for_each(|at| counts[(at.saturating_sub(1) / 1000) as usize] += 1);
        let seconds = (0..).zip(counts).map(|(second, count)| {
            let length = (period - second * 1000).min(1000) as f64 / 1e3;
            (Duration::from_secs(second), count as f64 * OPPORTUNITY.0 as f64 * 8.0 / length)
        });
        seconds.collect()
    }

    fn figures(&self) -> TraceFigures {
        let period = self.period_ms();
        let seconds = self.seconds();
        let mean = self.at_ms.len() as f64 * OPPORTUNITY.0 as f64 * 8.0 / (period as f64 / 1e3);
        let all = || seconds.iter().map(|second| second.1);
        let squares = all().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / seconds.len() as f64;
        let gaps = self.at_ms.windows(2).map(|pair| pair[1] - pair[0]).chain([self.at_ms[0]]);
        let outages = gaps.clone().filter(|gap| *gap >= OUTAGE.as_nanos() / 1_000_000);
        TraceFigures {
            span: Duration::from_millis(period),
            mean_bit_per_s: mean,
            least_bit_per_s: all().fold(f64::INFINITY, f64::min),
            greatest_bit_per_s: all().fold(0.0, f64::max),
            variation: libm::sqrt(squares) / mean,
            outages: outages.clone().count() as u64,
            longest_outage: outages.max().map_or(Duration::ZERO, Duration::from_millis),
        }
    }
}

/// Where a link is in its trace: it sends one packet after the other.
#[derive(Debug)]
pub(crate) struct Sending {
    trace: Trace,
    /// The last accepted packet will have been sent by then.
    busy_until: Instant,
    /// Of [`Rates`]: the step that `busy_until` falls into, and how often the whole has been repeated. Of [`Opportunities`]: the next one that is not
    /// used up.
    place: usize,
    rounds: u64,
    /// Of [`Rates`] that repeat: bits and nanoseconds of one round.
    round: u128,
    /// Of [`Rates`]: what `busy_until` is rounded up by, in bits and nanoseconds. Of [`Opportunities`]: bytes left of the one at `busy_until`.
    spare: u128,
}

impl Sending {
    pub fn new(trace: Trace) -> Sending {
        let round = match &trace {
            Trace::Rates(rates) => rates.bit_ns_in_a_round(),
            Trace::Opportunities(_) => 0,
        };
        Sending { trace, busy_until: Instant::ZERO, place: 0, rounds: 0, round, spare: 0 }
    }

    pub fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// When a packet of so many bytes has been sent that comes at `now`, behind those before it; `None` where no capacity is left, ever.
    pub fn send(&mut self, now: Instant, size: Bytes) -> Option<Instant> {
        self.send_from((self.busy_until <= now).then_some(now), size)
    }

    /// When a packet of so many bytes has been sent: from `idle_from` on where the line was idle until then, else behind the one before; `None` where no
    /// capacity is left, ever.
    pub fn send_from(&mut self, idle_from: Option<Instant>, size: Bytes) -> Option<Instant> {
        let sent = match &self.trace {
            Trace::Rates(rates) => {
                let (mut at, spare) = idle_from.map_or((self.busy_until, self.spare), |now| (now, 0));
                let mut need = (u128::from(size.0) * 8_000_000_000).saturating_sub(spare);
                self.spare = spare.saturating_sub(u128::from(size.0) * 8_000_000_000);
                let period = rates.repeat_after.map(Duration::as_nanos);
                if let Some(rounds) =
                    period.map(|period| at.as_nanos() / period).filter(|rounds| *rounds > self.rounds)
                {
                    (self.rounds, self.place) = (rounds, 0);
                }
                loop {
                    let mut began = period.map_or(0, |period| self.rounds.saturating_mul(period));
                    if let Some(period) = period
                        && self.place == 0
                        && at.as_nanos() == began
                        && need > self.round
                    {
                        // Whole rounds at once.
                        let whole = u64::try_from((need - 1) / self.round).unwrap_or(u64::MAX);
                        need -= u128::from(whole) * self.round;
                        self.rounds = self.rounds.saturating_add(whole);
                        began = self.rounds.saturating_mul(period);
                        at = Instant::from_nanos(began);
                    }
                    let (_, rate) = rates.steps[self.place];
                    let rate = u128::from(rate);
                    let next = rates.steps.get(self.place + 1).map(|step| step.0.as_nanos()).or(period);
                    let end = next.map(|next| began.saturating_add(next));
                    let room = end.map(|end| rate * u128::from(end.saturating_sub(at.as_nanos())));
                    if need == 0 {
                        break at;
                    }
                    if rate > 0 && room.is_none_or(|room| need <= room) {
                        let ns = need.div_ceil(rate);
                        self.spare = ns * rate - need;
                        break at + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
                    }
                    // `None`: the last rate stays, and is zero.
                    need -= room?;
                    at = at.max(Instant::from_nanos(end?));
                    self.place += 1;
                    if self.place == rates.steps.len() && period.is_some() {
                        self.place = 0;
                        self.rounds += 1;
                    }
                    if at == Instant::MAX {
                        return None;
                    }
                }
            }
            Trace::Opportunities(opportunities) => {
                let at_ms = &opportunities.at_ms;
                let period = opportunities.period_ms();
                let mut need = u128::from(size.0);
                if let Some(now) = idle_from {
                    self.spare = 0;
                    // A round trip through the file is skipped at once.
                    let rounds = now.as_nanos() / 1_000_000 / period;
                    if rounds > self.rounds {
                        (self.rounds, self.place) = (rounds, 0);
                    }
                }
                loop {
                    let used = need.min(self.spare);
                    need -= used;
                    self.spare -= used;
                    if need == 0 {
                        break self.busy_until;
                    }
                    let at = self
                        .rounds
                        .saturating_mul(period)
                        .saturating_add(at_ms[self.place])
                        .saturating_mul(1_000_000);
                    self.place += 1;
                    if self.place == at_ms.len() {
                        self.place = 0;
                        self.rounds += 1;
                    }
                    if at == u64::MAX {
                        return None;
                    }
                    // One that comes before the packet, or with it, is lost.
                    if idle_from.is_none_or(|now| at > now.as_nanos()) {
                        self.busy_until = Instant::from_nanos(at);
                        self.spare = u128::from(OPPORTUNITY.0);
                    }
                }
            }
        };
        self.busy_until = sent;
        Some(sent)
    }
}

#[cfg(test)]
mod tests;
