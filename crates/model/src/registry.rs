//! Every formula of this crate by a stable name, with plain numbers in and out.
//!
//! A data file can then say `formula = "maximum-throughput", args = { mss = 1460, overhead = 78, rate = 10e6 }`.
//! Arguments and results are SI: seconds, bytes, bytes per second, bit/s for link rates, fractions.

mod explicit_rate;
mod read;
mod table;
#[cfg(test)]
mod tests;

use crate::InputError;
use farpath_units::{Ber, Bytes, Duration, Probability, Rate};
use std::collections::BTreeMap;

/// Arguments by name.
pub type Args = BTreeMap<String, f64>;

/// An argument of a formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Argument {
    /// Name in a data file.
    pub name: &'static str,
    /// Unit, or what it counts.
    pub unit: &'static str,
    /// Value where it is not given; `None` where it must be.
    pub default: Option<f64>,
}

/// A formula that can be evaluated by name.
#[derive(Debug, Clone, Copy)]
pub struct Formula {
    /// Name in a data file.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Paper or RFC; "arithmetic" for the generic ones.
    pub source: &'static str,
    /// What it takes.
    pub arguments: &'static [Argument],
    /// What it gives, in order, with units. A formula that gives a list names its element once.
    pub results: &'static [&'static str],
    run: fn(&Given<'_>) -> Result<Vec<f64>, EvaluateError>,
}

/// Why a formula could not be evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// No formula of that name.
    #[error("no formula `{name}`; known are {known}")]
    UnknownFormula {
        /// As given.
        name: String,
        /// All names.
        known: String,
    },
    /// The formula has no such argument.
    #[error("`{formula}` takes no `{argument}`; it takes {known}")]
    UnknownArgument {
        /// The formula.
        formula: &'static str,
        /// As given.
        argument: String,
        /// Its arguments.
        known: String,
    },
    /// An argument without a default was not given.
    #[error("`{formula}` needs `{argument}` ({unit})")]
    MissingArgument {
        /// The formula.
        formula: &'static str,
        /// The argument.
        argument: &'static str,
        /// Its unit.
        unit: &'static str,
    },
    /// A number that the argument cannot take.
    #[error("`{formula}`: {argument} must be {expected}, not {found}")]
    Argument {
        /// The formula.
        formula: &'static str,
        /// The argument.
        argument: &'static str,
        /// What it must be.
        expected: &'static str,
        /// As given.
        found: f64,
    },
    /// The formula says nothing for these arguments.
    #[error("`{formula}`: {source}")]
    Input {
        /// The formula.
        formula: &'static str,
        /// What is refused.
        #[source]
        source: InputError,
    },
    /// The result is not a number, such as 0 / 0.
    #[error("`{formula}` is undefined for these arguments")]
    Undefined {
        /// The formula.
        formula: &'static str,
    },
}

/// All formulas, in the order of their sources.
pub fn formulas() -> &'static [Formula] {
    table::FORMULAS
}

/// The formula of this name.
///
/// # Errors
/// There is none.
pub fn formula(name: &str) -> Result<&'static Formula, EvaluateError> {
    let found = formulas().iter().find(|known| known.name == name);
    found.ok_or_else(|| EvaluateError::UnknownFormula {
        name: name.to_owned(),
        known: join(formulas().iter().map(|known| known.name)),
    })
}

/// Evaluates the formula `name` with `args`, defaults filled in. Results may be infinite (no loss, no limit), never NaN.
pub fn evaluate(name: &str, args: &Args) -> Result<Vec<f64>, EvaluateError> {
    let formula = formula(name)?;
    if let Some(argument) =
        args.keys().find(|name| formula.arguments.iter().all(|known| known.name != **name))
    {
        return Err(EvaluateError::UnknownArgument {
            formula: formula.name,
            argument: argument.clone(),
            known: join(formula.arguments.iter().map(|known| known.name)),
        });
    }
    for argument in formula.arguments {
        match args.get(argument.name).copied().or(argument.default) {
            None => {
                return Err(EvaluateError::MissingArgument {
                    formula: formula.name,
                    argument: argument.name,
                    unit: argument.unit,
                });
            }
            Some(value) if value.is_nan() => {
                return Err(EvaluateError::Argument {
                    formula: formula.name,
                    argument: argument.name,
                    expected: "a number",
                    found: value,
                });
            }
            Some(_) => {}
        }
    }
    let results = (formula.run)(&Given { formula, args })?;
    if results.iter().any(|result| result.is_nan()) {
        return Err(EvaluateError::Undefined { formula: formula.name });
    }
    Ok(results)
}

fn join(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The checked arguments of one evaluation, each read as the quantity it is.
struct Given<'a> {
    formula: &'static Formula,
    args: &'a Args,
}

impl Given<'_> {
    fn argument(&self, name: &str) -> &'static Argument {
        let found = self.formula.arguments.iter().find(|argument| argument.name == name);
        found.expect("a formula reads only the arguments that it lists")
    }

    fn number(&self, name: &str) -> f64 {
        let given = self.args.get(name).copied().or(self.argument(name).default);
        given.expect("every argument without a default was checked to be given")
    }

    fn fail(&self, name: &str, expected: &'static str) -> EvaluateError {
        EvaluateError::Argument {
            formula: self.formula.name,
            argument: self.argument(name).name,
            expected,
            found: self.number(name),
        }
    }

    fn not_negative(&self, name: &str) -> Result<f64, EvaluateError> {
        let value = self.number(name);
        if value >= 0.0 { Ok(value) } else { Err(self.fail(name, "zero or more")) }
    }

    /// A whole number; 2^64 and above saturate.
    fn count(&self, name: &str) -> Result<u64, EvaluateError> {
        let value = self.number(name);
        if value >= 0.0 && libm::floor(value) == value {
            Ok(value as u64)
        } else {
            Err(self.fail(name, "a whole number, zero or more"))
        }
    }

    fn bytes(&self, name: &str) -> Result<Bytes, EvaluateError> {
        self.count(name).map(Bytes)
    }

    /// A window; infinity is none.
    fn window(&self, name: &str) -> Result<Option<Bytes>, EvaluateError> {
        if self.number(name) == f64::INFINITY { Ok(None) } else { self.bytes(name).map(Some) }
    }

    fn seconds(&self, name: &str) -> Result<Duration, EvaluateError> {
        self.not_negative(name).map(Duration::from_secs_f64)
    }

    fn rate(&self, name: &str) -> Result<Rate, EvaluateError> {
        let bit_per_s = self.count(name)?;
        Rate::from_bit_per_s(bit_per_s).ok_or_else(|| self.fail(name, "above zero, in bit/s"))
    }

    fn probability(&self, name: &str) -> Result<Probability, EvaluateError> {
        Probability::new(self.number(name)).ok_or_else(|| self.fail(name, "a fraction from 0 to 1"))
    }

    fn ber(&self, name: &str) -> Result<Ber, EvaluateError> {
        Ber::new(self.number(name)).ok_or_else(|| self.fail(name, "an error rate per bit from 0 to 1"))
    }

    fn input(&self, source: InputError) -> EvaluateError {
        EvaluateError::Input { formula: self.formula.name, source }
    }
}
