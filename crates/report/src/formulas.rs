//! Closed forms by name: what there is, and their values over lists of arguments.

use crate::papers::readable;
use crate::table::{Column, Table};
use farpath_model::{Args, Argument, EvaluateError, Formula, evaluate, formula, formulas};
use farpath_units::{Bytes, Duration, Probability, Rate};
use serde_json::{Map, Value, json};

/// The most combinations of arguments.
const MOST: usize = 100_000;

/// Why formulas give no table.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormulaError {
    /// What is given is no argument and its values.
    #[error("expected ARGUMENT=VALUE[,VALUE...], such as `rtt=20 ms,40 ms`; found `{0}`")]
    NoPair(String),
    /// None of the formulas has such an argument, or it was given twice.
    #[error("`{argument}`: expected one of {known}, each once")]
    Argument {
        /// As given.
        argument: String,
        /// What they take.
        known: String,
    },
    /// A value cannot be read.
    #[error("{argument}: expected a number ({unit}){or}; found `{found}`")]
    Value {
        /// The argument.
        argument: &'static str,
        /// Its unit.
        unit: &'static str,
        /// What else it may be.
        or: &'static str,
        /// As given.
        found: String,
    },
    /// Too many combinations.
    #[error("{0} combinations of arguments; at most {MOST}")]
    TooMany(usize),
    /// A formula says nothing for them.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

/// All of them, a line each.
pub fn list() -> Table {
    let cells = |text: fn(&Formula) -> String| formulas().iter().map(|formula| Some(text(formula))).collect();
    Table::from_texts([
        ("formula", cells(|formula| formula.name.to_owned())),
        ("what it is", cells(|formula| formula.summary.to_owned())),
        ("source", cells(|formula| formula.source.to_owned())),
    ])
}

/// Formulas with the same arguments, side by side.
#[derive(Debug)]
pub struct Formulas(Vec<&'static Formula>);

impl Formulas {
    /// By their names.
    ///
    /// # Errors
    /// One of them is not known.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Formulas, FormulaError> {
        let formulas = names.into_iter().map(formula);
        Ok(Formulas(formulas.collect::<Result<_, _>>()?))
    }

    /// Their arguments, each once.
    fn arguments(&self) -> Vec<&'static Argument> {
        let mut arguments: Vec<&Argument> = Vec::new();
        for argument in self.0.iter().flat_map(|formula| formula.arguments) {
            if arguments.iter().all(|known| known.name != argument.name) {
                arguments.push(argument);
            }
        }
        arguments
    }

    /// Whether they have values without anything being given.
    pub fn needs_nothing(&self) -> bool {
        self.arguments().iter().all(|argument| argument.default.is_some())
    }

    /// What each takes and gives.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for formula in &self.0 {
            text += &format!("{}: {}\nSource: {}\n", formula.name, formula.summary, formula.source);
            for Argument { name, unit, default } in formula.arguments {
                let default =
                    default.map_or(String::new(), |value| format!(" [default: {}]", readable(value)));
                text += &format!("  {name:<20} {unit}{default}\n");
            }
            text += &format!("Gives: {}\n\n", formula.results.join("; "));
        }
        text.trim_end().to_owned()
    }

    /// Their values for all combinations of what is given, the last argument moving fastest.
    ///
    /// # Errors
    /// An argument or a value that is none, and what a formula refuses.
    pub fn evaluate(&self, given: &[String]) -> Result<Evaluated, FormulaError> {
        let known = self.arguments();
        let mut dimensions: Vec<(&'static Argument, Vec<f64>)> = Vec::new();
        for pair in given {
            let (name, values) = pair.split_once('=').ok_or_else(|| FormulaError::NoPair(pair.clone()))?;
            let found = known.iter().find(|argument| argument.name == name.trim());
            let argument = found.filter(|found| dimensions.iter().all(|(one, _)| one.name != found.name));
            let argument = argument.ok_or_else(|| FormulaError::Argument {
                argument: name.trim().to_owned(),
                known: known.iter().map(|argument| argument.name).collect::<Vec<_>>().join(", "),
            })?;
            let values = values.split(',').map(|value| read(argument, value.trim()));
            dimensions.push((argument, values.collect::<Result<_, _>>()?));
        }
        let combinations = dimensions.iter().map(|(_, values)| values.len()).fold(1, usize::saturating_mul);
        if combinations > MOST {
            return Err(FormulaError::TooMany(combinations));
        }
        let row = |number: usize| {
            let mut rest = number;
            let mut args = Args::new();
            for (argument, values) in dimensions.iter().rev() {
                args.insert(argument.name.to_owned(), values[rest % values.len()]);
                rest /= values.len();
            }
            let of = |formula: &&'static Formula| {
                let own =
                    args.iter().filter(|(name, _)| formula.arguments.iter().any(|one| one.name == **name));
                evaluate(formula.name, &own.map(|(name, value)| (name.clone(), *value)).collect())
            };
            Ok((args.clone(), self.0.iter().map(of).collect::<Result<Vec<_>, _>>()?))
        };
        let rows = (0..combinations).map(row).collect::<Result<Vec<_>, FormulaError>>()?;
        let arguments = dimensions.iter().map(|(argument, _)| argument.name).collect();
        Ok(Evaluated { formulas: self.0.clone(), arguments, rows })
    }
}

/// A value as a number of the argument's unit; sizes, durations, rates and shares may be written with a unit of their own.
fn read(argument: &Argument, text: &str) -> Result<f64, FormulaError> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let is = |unit: &str| argument.unit == unit || argument.unit.starts_with(&format!("{unit},"));
    let size = is("B") || argument.unit.starts_with("B ");
    let (value, or) = if is("s") {
        (text.parse::<Duration>().ok().map(Duration::as_secs_f64), ", or a duration such as `20 ms`")
    } else if is("bit/s") {
        (text.parse::<Rate>().ok().map(|rate| rate.bit_per_s() as f64), ", or a rate such as `10 Mbit/s`")
    } else if is("fraction") {
        (text.parse::<Probability>().ok().map(Probability::fraction), ", or a share such as `1 %`")
    } else if size {
        (text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64), ", or a size such as `1500 B`")
    } else {
        (None, "")
    };
    let found = || text.to_owned();
    value.ok_or_else(|| FormulaError::Value {
        argument: argument.name,
        unit: argument.unit,
        or,
        found: found(),
    })
}

/// Values of formulas, one row for each combination of arguments.
#[derive(Debug)]
pub struct Evaluated {
    formulas: Vec<&'static Formula>,
    /// Those that were given, in that order.
    arguments: Vec<&'static str>,
    rows: Vec<(Args, Vec<Vec<f64>>)>,
}

/// What a formula calls one of its results. One that gives a list names its element once.
fn result_name(formula: &Formula, number: usize) -> &'static str {
    formula.results.get(number).or(formula.results.last()).copied().unwrap_or_default()
}

impl Evaluated {
    /// Arguments, and behind them each formula's results; of one combination, a line for each result.
    pub fn table(&self) -> Table {
        if let [(_, values)] = self.rows.as_slice() {
            let each = self.formulas.iter().zip(values);
            let lines = each.flat_map(|(formula, values)| {
                let line = |(number, &value)| {
                    [formula.name.to_owned(), result_name(formula, number).to_owned(), readable(value)]
                };
                values.iter().enumerate().map(line)
            });
            return Table::from_rows(["formula", "gives", "value"], &lines.collect::<Vec<_>>());
        }
        let argument = |name: &&'static str| {
            let cells = self.rows.iter().map(|(args, _)| args.get(*name).map(|&value| readable(value)));
            Column::right(*name, cells.collect())
        };
        let mut columns: Vec<Column> = self.arguments.iter().map(argument).collect();
        for (place, formula) in self.formulas.iter().enumerate() {
            let results = self.rows.iter().map(|(_, values)| values[place].len()).max().unwrap_or(0);
            for number in 0..results {
                let cells = self
                    .rows
                    .iter()
                    .map(|(_, values)| values[place].get(number).map(|&value| readable(value)));
                let header = format!("{}\n{}", formula.name, result_name(formula, number));
                columns.push(Column::right(header, cells.collect()));
            }
        }
        Table { heads: columns, ..Table::default() }
    }

    /// Each row as an object; what is infinite is a text, as JSON has no number for it.
    pub fn json(&self) -> Vec<Value> {
        let number = |value: f64| if value.is_finite() { json!(value) } else { json!(value.to_string()) };
        let object = |(args, values): &(Args, Vec<Vec<f64>>)| {
            let args: Map<String, Value> =
                args.iter().map(|(name, &value)| (name.clone(), number(value))).collect();
            let results = self.formulas.iter().zip(values).map(|(formula, values)| {
                (formula.name.to_owned(), values.iter().map(|&value| number(value)).collect())
            });
            json!({ "arguments": args, "results": results.collect::<Map<String, Value>>() })
        };
        self.rows.iter().map(object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn evaluated(names: &[&str], given: &[&str]) -> Result<Evaluated, FormulaError> {
        Formulas::named(names.iter().copied())?.evaluate(&texts(given))
    }

    /// Table 1 of Sarkar, Ammann and Zabir (2022): both columns.
    #[test]
    fn two_formulas_stand_side_by_side_over_all_combinations() {
        let given = ["size=1250 B,1500", "ber=1e-4,1e-5"];
        let rows = evaluated(&["per-linear", "per-exact"], &given).expect("known").rows;
        let values: Vec<f64> = rows.iter().flat_map(|(_, values)| values.iter().map(|one| one[0])).collect();
        let expected = [1.0, 0.6321, 0.1, 0.0952, 1.2, 0.6988, 0.12, 0.1131];
        assert_eq!(values.len(), expected.len());
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-4, "{values:?}");
        }
    }

    #[test]
    fn values_may_have_units_of_their_own() {
        let given = ["rwnd=8760 B", "rtt=40 ms"];
        let rows = evaluated(&["window-limit-throughput"], &given).expect("known").rows;
        assert!((rows[0].1[0][0] - 219_000.0).abs() < 1e-6);
        let rows = evaluated(&["maximum-throughput"], &["rate=10 Mbit/s"]).expect("known").rows;
        assert!((rows[0].1[0][0] - 1_186_605.98).abs() < 0.01);
        assert_eq!(
            evaluated(&["expected-drops"], &["packets=1000", "p=10 %"]).expect("known").rows[0].1,
            [[100.0]]
        );
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (names, given, words) in [
            (&["per-exactly"][..], &[][..], "no formula `per-exactly`; known are sum"),
            (&["per-exact"], &["ber"], "expected ARGUMENT=VALUE"),
            (&["per-exact"], &["rtt=1"], "`rtt`: expected one of ber, size, each once"),
            (&["per-exact"], &["ber=1e-4", "ber=1e-5"], "`ber`: expected one of ber, size, each once"),
            (
                &["per-exact"],
                &["ber=1e-4", "size=20 ms"],
                "size: expected a number (B), or a size such as `1500 B`; found `20 ms`",
            ),
            (&["per-exact"], &["ber=1e-4"], "`per-exact` needs `size` (B)"),
            (&["per-exact"], &["ber=7", "size=1"], "`per-exact`"),
        ] {
            let error = evaluated(names, given).expect_err("it cannot").to_string();
            assert!(error.starts_with(words), "{error}");
        }
        let many = format!("a={}", vec!["1"; 400].join(","));
        let error = evaluated(&["sum"], &[&many, &many.replace('a', "b")]).expect_err("too many").to_string();
        assert_eq!(error, "160000 combinations of arguments; at most 100000");
    }

    #[test]
    fn all_of_them_are_listed_and_described() {
        for formula in formulas() {
            let known = Formulas::named([formula.name]).expect("it is listed");
            let text = known.describe();
            assert!(text.contains(formula.summary) && text.contains(formula.source), "{text}");
            if known.needs_nothing() {
                assert_eq!(known.evaluate(&[]).expect("it has defaults").rows.len(), 1);
            }
        }
    }
}
