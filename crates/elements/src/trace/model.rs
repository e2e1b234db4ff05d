//! Traces that models make: the same text for the same model, parameters and seed, on every machine.

use super::Trace;
use farpath_path::{Direction, Generator};
use farpath_units::{Duration, Rate};

/// How a rate varies. Each is a process with its source, scaled to the rate that is asked for; none is a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Two states, with exponential times in each: the rate, and nothing. 8 s and 2 s in the mean (Gilbert 1960, of a rate).
    OnOff,
    /// A mobile satellite terminal between buildings and trees: two states with exponential times, the good one with the whole rate, the bad
    /// one with a twentieth. 27 s and 9 s in the mean: shadowed for a quarter of the time, the form of Lutz et al. 1991 with durations for a slow car.
    Shadowing,
    /// Rain on a link with adaptive coding: the logarithm of the attenuation is a Gaussian process with a rate constant of 2e-4/s (Maseng and
    /// Bakken 1981), median 1 dB and standard deviation 1.2 (of the logarithm); the rate follows by Shannon's formula from 10 dB under a clear sky. A step each 10 s.
    Rain,
    /// A cellular link: the logarithm of the rate is a Gaussian process with standard deviation 0.5 and a time constant of 1 s. A step each 100 ms.
    Cellular,
    /// A satellite of a low constellation is assigned each 15 s: the rate of each slot is drawn from half to one and a half, varies by a
    /// tenth each second, and in one slot of three begins with an outage of up to 150 ms.
    Slots,
}

/// Why no trace is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It would have too many steps, or none.
    #[error("expected a span from 1 s to 24 h, found {found}")]
    Span {
        /// What was asked for.
        found: Duration,
    },
}

impl Model {
    /// Each with its name.
    pub const ALL: [(&'static str, Model); 5] = [
        ("on-off", Model::OnOff),
        ("shadowing", Model::Shadowing),
        ("rain", Model::Rain),
        ("cellular", Model::Cellular),
        ("slots", Model::Slots),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Model::ALL.into_iter().find(|(_, this)| *this == self).map_or("", |(name, _)| name)
    }

    /// In a line.
    pub const fn describe(self) -> &'static str {
        match self {
            Model::OnOff => "On for 8 s and off for 2 s in the mean, both exponential",
            Model::Shadowing => {
                "Mobile satellite terminal: shadowed for a quarter of the time, with a twentieth of the rate"
            }
            Model::Rain => "Rain fade over hours, with adaptive coding",
            Model::Cellular => "Cellular link: a rate each 100 ms, correlated over 1 s",
            Model::Slots => "Low constellation: another satellite, and another rate, each 15 s",
        }
    }

    /// A trace over `span`, which repeats; `rate` is what the model calls its whole rate, or that of a clear sky, or the median.
    ///
    /// # Errors
    /// A span that is shorter than a second or longer than a day.
    pub fn make(self, rate: Rate, span: Duration, seed: u64) -> Result<Trace, ModelError> {
        if !(1.0..=86_400.0).contains(&span.as_secs_f64()) {
            return Err(ModelError::Span { found: span });
        }
        let mut draws = Generator::new(seed, self.name(), Direction::Forward);
        let whole = rate.bit_per_s() as f64;
        let steps = match self {
            Model::OnOff => two_states(&mut draws, span, [(whole, 8.0), (0.0, 2.0)]),
            Model::Shadowing => two_states(&mut draws, span, [(whole, 27.0), (whole / 20.0, 9.0)]),
            Model::Rain => {
                let step_s = 10.0_f64.min(span.as_secs_f64());
                let mut attenuation = Gaussian::new(&mut draws, step_s, 1.0 / 2e-4);
                every(
                    step_s,
                    span,
                    |draws| {
                        let db = libm::exp(1.2 * attenuation.next(draws));
                        whole * capacity(10.0 - db) / capacity(10.0)
                    },
                    &mut draws,
                )
            }
            Model::Cellular => {
                let mut level = Gaussian::new(&mut draws, 0.1, 1.0);
                every(0.1, span, |draws| whole * libm::exp(0.5 * level.next(draws)), &mut draws)
            }
            Model::Slots => slots(&mut draws, span, whole),
        };
        Ok(Trace::of_rates(steps, Some(span)).expect("a model begins with a rate above zero"))
    }
}

fn seconds(seconds: f64) -> Duration {
    // Whole milliseconds: what a file can be read for.
    Duration::from_millis(libm::round(seconds * 1e3) as u64)
}

fn two_states(draws: &mut Generator, span: Duration, states: [(f64, f64); 2]) -> Vec<(Duration, u64)> {
    let mut steps: Vec<(Duration, u64)> = Vec::new();
    let (mut at, mut number) = (Duration::ZERO, 0);
    while at < span {
        let (rate, mean_s) = states[number % 2];
        steps.push((at, rate as u64));
        at += seconds(-mean_s * libm::log(draws.fraction())).max(Duration::from_millis(1));
        number += 1;
    }
    steps
}

fn every(
    step_s: f64,
    span: Duration,
    mut rate: impl FnMut(&mut Generator) -> f64,
    draws: &mut Generator,
) -> Vec<(Duration, u64)> {
    (0..)
        .map(|step| seconds(f64::from(step) * step_s))
        .take_while(|at| *at < span)
        .map(|at| (at, (rate(draws) as u64).max(1)))
        .collect()
}

fn slots(draws: &mut Generator, span: Duration, whole: f64) -> Vec<(Duration, u64)> {
    const SLOT_S: u32 = 15;
    let mut steps = Vec::new();
    let mut slot = whole;
    for second in (0_u32..).take_while(|second| Duration::from_secs(u64::from(*second)) < span) {
        let mut at = Duration::from_secs(u64::from(second));
        if second % SLOT_S == 0 {
            slot = whole * (1.5 - draws.fraction());
            let (outage, length) = (draws.fraction() * 3.0 < 1.0, draws.fraction());
            if outage && second > 0 {
                steps.push((at, 0));
                at += seconds(0.15 * length).max(Duration::from_millis(1));
            }
        }
        steps.push((at, (slot * (1.1 - 0.2 * draws.fraction())) as u64 + 1));
    }
    steps
}

/// Shannon's capacity over the bandwidth, by the ratio of signal to noise in dB.
fn capacity(db: f64) -> f64 {
    libm::log2(1.0 + libm::pow(10.0, db / 10.0))
}

/// A stationary Gaussian process with an exponential autocorrelation (Ornstein and Uhlenbeck 1930), of mean 0 and deviation 1, step by step.
struct Gaussian {
    value: f64,
    /// Correlation of neighbouring steps.
    keeps: f64,
}

impl Gaussian {
    fn new(draws: &mut Generator, step_s: f64, constant_s: f64) -> Gaussian {
        Gaussian { value: draws.normal(), keeps: libm::exp(-step_s / constant_s) }
    }

    fn next(&mut self, draws: &mut Generator) -> f64 {
        let value = self.value;
        self.value = self.keeps * value + libm::sqrt(1.0 - self.keeps * self.keeps) * draws.normal();
        value
    }
}
