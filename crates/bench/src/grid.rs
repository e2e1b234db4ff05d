//! The oracle's grid: variants, groups of cases, and what is known of those that differ.

use crate::case::{Case, Variant};
use crate::cause::Cause;
use core::str::FromStr;
use farpath_units::{Bytes, Duration, Probability, Rate};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The whole of `oracle.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// TCPs by name.
    pub variant: BTreeMap<String, Variant>,
    /// Without chance: compared segment by segment.
    pub exact: Vec<Group>,
    /// With independent loss: means over seeds are compared.
    pub means: Vec<Group>,
    /// Why points differ.
    #[serde(default)]
    pub cause: Vec<Cause>,
}

/// Cases that share a name: every combination of its lists.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    name: String,
    variants: Vec<String>,
    #[serde(default = "gigabit")]
    rate: Vec<Written<Rate>>,
    /// Of the ACKs' direction; without it, that of the data.
    reverse_rate: Option<Written<Rate>>,
    #[serde(default = "twenty_ms")]
    delay: Vec<Written<Duration>>,
    /// 0 is without limit.
    #[serde(default = "unlimited")]
    queue: Vec<u64>,
    #[serde(default = "ethernet")]
    segment: Vec<u64>,
    #[serde(default = "unscaled")]
    window: Vec<Written<Bytes>>,
    size: Written<Bytes>,
    #[serde(default = "lossless")]
    loss: Vec<Written<Probability>>,
    #[serde(default)]
    drop_forward: Vec<u64>,
    #[serde(default)]
    drop_reverse: Vec<u64>,
    #[serde(default = "one_second")]
    min_rto: Written<Duration>,
    #[serde(default = "two_hundred_ms")]
    ack_delay: Written<Duration>,
    #[serde(default = "two")]
    initial_window: u32,
    /// At least so often the segment is sent that is sent most often: whether the losses are where they are meant to be.
    copies: Option<usize>,
}

/// A quantity with its unit, as text.
#[derive(Debug, Clone, Copy)]
struct Written<T>(T);

impl<'de, T: FromStr<Err: core::fmt::Display>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Written).map_err(|error| serde::de::Error::custom(format!("`{text}`: {error}")))
    }
}

fn known<T: FromStr>(text: &str) -> Written<T> {
    Written(text.parse().unwrap_or_else(|_| unreachable!("`{text}` is a default of ours")))
}

fn gigabit() -> Vec<Written<Rate>> {
    vec![known("1 Gbit/s")]
}
fn twenty_ms() -> Vec<Written<Duration>> {
    vec![known("20 ms")]
}
fn unlimited() -> Vec<u64> {
    vec![0]
}
fn ethernet() -> Vec<u64> {
    vec![1460]
}
fn unscaled() -> Vec<Written<Bytes>> {
    vec![known("64240 B")]
}
fn lossless() -> Vec<Written<Probability>> {
    vec![Written(Probability::ZERO)]
}
fn one_second() -> Written<Duration> {
    known("1 s")
}
fn two_hundred_ms() -> Written<Duration> {
    known("200 ms")
}
fn two() -> u32 {
    2
}

/// A grid that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// Not TOML, or not of this form.
    #[error("oracle.toml: {0}")]
    Form(#[from] toml::de::Error),
    /// A group names a variant that is not there.
    #[error("oracle.toml: group `{group}`: there is no variant `{variant}`")]
    NoSuchVariant {
        /// The group.
        group: String,
        /// The name.
        variant: String,
    },
}

impl Grid {
    /// Reads the text of `oracle.toml`.
    ///
    /// # Errors
    /// Not TOML, unknown keys, quantities without a unit.
    pub fn parse(text: &str) -> Result<Grid, GridError> {
        Ok(toml::from_str(text)?)
    }

    /// The cases of `groups`, in order.
    ///
    /// # Errors
    /// A variant that is not there.
    pub fn cases(&self, groups: &[Group]) -> Result<Vec<Case>, GridError> {
        let mut cases = Vec::new();
        for group in groups {
            for name in &group.variants {
                let variant = self.variant.get(name).ok_or_else(|| GridError::NoSuchVariant {
                    group: group.name.clone(),
                    variant: name.clone(),
                })?;
                cases.extend(group.cases(name, variant));
            }
        }
        Ok(cases)
    }
}

impl Group {
    fn cases(&self, name: &str, variant: &Variant) -> Vec<Case> {
        let mut cases = Vec::new();
        for &Written(rate) in &self.rate {
            for &Written(delay) in &self.delay {
                for &queue in &self.queue {
                    for &segment in &self.segment {
                        for &Written(window) in &self.window {
                            for &Written(loss) in &self.loss {
                                let mut label = format!("{name}: {}", self.name);
                                let mut tell = |swept: bool, text: String| {
                                    if swept {
                                        label = format!("{label}, {text}");
                                    }
                                };
                                tell(self.rate.len() > 1, rate.to_string());
                                tell(self.delay.len() > 1, delay.to_string());
                                tell(self.queue.len() > 1, format!("queue {queue}"));
                                tell(self.segment.len() > 1, format!("MSS {segment}"));
                                tell(self.window.len() > 1, format!("window {window}"));
                                tell(self.loss.len() > 1, loss.to_string());
                                cases.push(Case {
                                    label,
                                    variant: variant.clone(),
                                    rate,
                                    reverse_rate: self.reverse_rate.map_or(rate, |Written(rate)| rate),
                                    delay,
                                    queue: (queue > 0).then_some(queue),
                                    segment,
                                    window,
                                    size: self.size.0,
                                    loss,
                                    drops: [self.drop_forward.clone(), self.drop_reverse.clone()],
                                    min_rto: self.min_rto.0,
                                    ack_delay: self.ack_delay.0,
                                    initial_window: self.initial_window,
                                    copies: self.copies,
                                });
                            }
                        }
                    }
                }
            }
        }
        cases
    }
}
