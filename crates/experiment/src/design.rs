//! Points that are drawn: at random, or as a Latin hypercube (McKay, Beckman and Conover 1979).
//!
//! A key's draws depend on the seed of the design and on the key, and on no other key.

use crate::document::Override;
use crate::error::{ExperimentError, Location, join};
use crate::range::{MAX_POINTS, number, one_unit, rounded, with_unit};
use farpath_path::{Direction, Generator};
use farpath_units::{Bytes, Rate};
use std::sync::Arc;
use toml::{Table, Value};

/// Digits that a drawn value keeps where they tell the points of a design apart, and all that a number has.
const DIGITS: usize = 6;
const ALL_DIGITS: usize = 15;
/// A fraction is drawn in so many steps.
const STEPS: u64 = 1 << 53;

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Design {
    /// Each value on its own.
    Random,
    /// One value from each of as many equal parts of a range as there are points.
    Latin,
}

impl Design {
    /// The design that has this key in `[sweep]`.
    pub fn named(key: &str) -> Option<Design> {
        match key {
            "random" => Some(Design::Random),
            "latin" => Some(Design::Latin),
            _ => None,
        }
    }

    /// Where `key` is a setting of a design, such as `sweep.latin.seed`: the name of the design, and the key within it.
    pub fn setting(key: &str) -> Option<(&str, &str)> {
        let (name, key) = key.strip_prefix("sweep.")?.split_once('.')?;
        Design::named(name).map(|_| (name, key))
    }

    /// The table `sweep` with another one in its place, and with settings of designs, as overrides have them; `None` where they have neither.
    pub fn changed(sweep: Option<Value>, overrides: &[Override]) -> Option<Value> {
        let mut changed = None;
        for given in overrides {
            if given.key == "sweep" {
                changed = Some(given.value.clone());
            } else if let Some((design, key)) = Design::setting(&given.key) {
                let now =
                    changed.take().or_else(|| sweep.clone()).unwrap_or_else(|| Value::Table(Table::new()));
                Design::set(changed.insert(now), design, key, &given.value);
            }
        }
        changed
    }

    /// Gives one setting of a design another value in the table `sweep`.
    fn set(sweep: &mut Value, name: &str, key: &str, value: &Value) {
        // What is no table is refused when it is read.
        let Value::Table(sweep) = sweep else { return };
        let design = sweep.entry(name).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(table) = design else { return };
        let mut settings = Vec::new();
        collect(table, "", &mut settings);
        let mut flat: Table = settings.into_iter().map(|(key, value)| (key, value.clone())).collect();
        flat.insert(key.to_owned(), value.clone());
        *table = flat;
    }

    /// The values of every key of `table`, which are walked together, and where they are asked for.
    pub fn read(
        self,
        table: &Table,
        at: &Location,
    ) -> Result<Vec<(String, Drawn, Location)>, ExperimentError> {
        let points = whole(table, "points", MAX_POINTS as i64, at)?.ok_or_else(|| {
            at.child("points").refuse("expected how many points are drawn, such as `points = 200`")
        })?;
        let seed = whole(table, "seed", i64::MAX, at)?.unwrap_or(1);
        let mut ranges = Vec::new();
        collect(table, "", &mut ranges);
        ranges.retain(|(key, _)| !["points", "seed"].contains(&key.as_str()));
        if ranges.is_empty() {
            return Err(at.refuse(
                "nothing to draw: expected keys with ranges, such as `\"path.delay\" = \"1 ms to 600 ms\"`",
            ));
        }
        let drawn = |(key, value): (String, &Value)| {
            let at = Location { origin: at.origin.clone(), key: format!("{}.\"{key}\"", at.key) };
            let range = Range::read(value, points).map_err(|reason| at.refuse(reason))?;
            let drawn = Drawn { range, fractions: self.fractions(points, seed, &key).into() };
            Ok((key, drawn, at))
        };
        ranges.into_iter().map(drawn).collect()
    }

    /// One for each point, in [0, 1).
    fn fractions(self, points: u64, seed: u64, key: &str) -> Vec<f64> {
        let mut draws = Generator::new(seed, key, Direction::Forward);
        match self {
            Design::Random => (0..points).map(|_| fraction(&mut draws)).collect(),
            Design::Latin => {
                let mut parts: Vec<f64> =
                    (0..points).map(|part| (part as f64 + fraction(&mut draws)) / points as f64).collect();
                // Fisher and Yates: which part goes with which of another key.
                for last in (1..parts.len()).rev() {
                    parts.swap(last, draws.below(last as u64 + 1) as usize);
                }
                parts
            }
        }
    }
}

fn fraction(draws: &mut Generator) -> f64 {
    draws.below(STEPS) as f64 / STEPS as f64
}

fn whole(table: &Table, key: &str, most: i64, at: &Location) -> Result<Option<u64>, ExperimentError> {
    match table.get(key) {
        Some(Value::Integer(number)) if (1..=most).contains(number) => Ok(Some(*number as u64)),
        Some(other) => {
            let reason = format!("expected a whole number from 1 to {most}, found `{other}`");
            Err(at.child(key).refuse(reason))
        }
        None => Ok(None),
    }
}

/// Dotted keys with their ranges. TOML reads `path.delay = ".."` without quotes as tables within tables.
fn collect<'a>(table: &'a Table, prefix: &str, found: &mut Vec<(String, &'a Value)>) {
    for (key, value) in table {
        let dotted = join(prefix, key);
        match value {
            Value::Table(inner) => collect(inner, &dotted, found),
            value => found.push((dotted, value)),
        }
    }
}

/// Values of one key, of which the draws are kept: eight bytes a point.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    range: Range,
    fractions: Arc<[f64]>,
}

impl Drawn {
    pub fn len(&self) -> usize {
        self.fractions.len()
    }

    pub fn value_at(&self, index: usize) -> Value {
        self.range.value_at(self.fractions[index])
    }

    /// Values that tell of which kind all of them are.
    pub fn representatives(&self) -> Vec<Value> {
        match &self.range {
            Range::Listed(values) => values.clone(),
            Range::Even { .. } | Range::Whole { .. } | Range::Logarithmic { .. } => vec![self.value_at(0)],
        }
    }
}

/// What is drawn from.
#[derive(Debug, Clone)]
enum Range {
    Even { from: f64, to: f64, written: Written },
    Whole { from: f64, to: f64 },
    Logarithmic { from: f64, to: f64, written: Written },
    Listed(Vec<Value>),
}

/// How a number of a range is written.
#[derive(Debug, Clone)]
struct Written {
    unit: String,
    digits: usize,
    /// The most behind the point: 3 of kB, as there is nothing less than a byte.
    decimals: Option<usize>,
}

impl Written {
    /// `parts` of equal width together are as wide as the largest number.
    fn new(unit: &str, parts: f64) -> Written {
        // As many as leave a tenth of a part between two numbers; or else so many more that of a million parts, in each of
        // which a number is drawn, two neighbours are alike once in two million designs.
        let digits = if parts <= 1e4 { DIGITS } else { (parts.log10().ceil() as usize + 7).min(ALL_DIGITS) };
        let whole: Option<u64> = format!("1 {unit}")
            .parse()
            .map(|size: Bytes| size.0)
            .or_else(|_| format!("1 {unit}").parse().map(Rate::bit_per_s))
            .ok();
        let decimals =
            whole.and_then(|whole| (0..20).find(|&zeros| 10_u64.checked_pow(zeros) == Some(whole)));
        Written { unit: unit.to_owned(), digits, decimals: decimals.map(|decimals| decimals as usize) }
    }

    fn write(&self, number: f64) -> Value {
        let number = rounded(number, self.digits);
        let number = match self.decimals {
            Some(decimals) => format!("{number:.decimals$}").parse().unwrap_or(number),
            None => number,
        };
        with_unit(number, &self.unit)
    }
}

impl Range {
    fn read(value: &Value, points: u64) -> Result<Range, String> {
        let text = match value {
            Value::Array(values) if !values.is_empty() => return Ok(Range::Listed(values.clone())),
            Value::String(text) => text,
            other => return Err(expected(&other.to_string())),
        };
        let (range, logarithmic) = match text.strip_suffix(" log") {
            Some(range) => (range, true),
            None => (text.as_str(), false),
        };
        let (from, to) = range.split_once(" to ").ok_or_else(|| expected(text))?;
        let ((from, unit), (to, last_unit)) = (number(from)?, number(to)?);
        one_unit(unit, last_unit)?;
        if from >= to {
            return Err(format!("expected a range from less to more, found `{text}`"));
        }
        match logarithmic {
            true if from <= 0.0 => Err(format!("expected a range above zero before `log`, found `{text}`")),
            true => {
                let written = Written::new(unit, points as f64 / libm::log(to / from));
                Ok(Range::Logarithmic { from, to, written })
            }
            false if unit.is_empty() && from.fract() == 0.0 && to.fract() == 0.0 => {
                Ok(Range::Whole { from, to })
            }
            false => {
                let written = Written::new(unit, points as f64 * from.abs().max(to.abs()) / (to - from));
                Ok(Range::Even { from, to, written })
            }
        }
    }

    /// The value a share `u` of the way.
    fn value_at(&self, u: f64) -> Value {
        match self {
            Range::Even { from, to, written } => written.write(from + u * (to - from)),
            Range::Whole { from, to } => with_unit((from + u * (to - from + 1.0)).floor(), ""),
            Range::Logarithmic { from, to, written } => {
                written.write(from * libm::exp(u * libm::log(to / from)))
            }
            Range::Listed(values) => values[(u * values.len() as f64) as usize].clone(),
        }
    }
}

fn expected(found: &str) -> String {
    format!(
        "expected a range to draw from, such as `1 ms to 600 ms` or `0.01 % to 10 % log`, or a list, found `{found}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use std::collections::HashSet;

    type Swept = Vec<(String, String)>;

    fn points(sweep: &str) -> Result<Vec<Swept>, String> {
        changed(sweep, &[])
    }

    fn changed(sweep: &str, changes: &[&str]) -> Result<Vec<Swept>, String> {
        let changes: Vec<Override> = changes.iter().map(|change| change.parse().expect("a change")).collect();
        let text = format!("title = 'One'\npath = 'noisy-channel'\n[transfer]\nsize = '1 MB'\n{sweep}");
        let experiment = Experiment::parse(&text, "here", &changes).map_err(|error| error.to_string())?;
        Ok(experiment.points().map(|point| point.swept.clone()).collect())
    }

    /// The values of a key, without their unit.
    fn numbers(points: &[Swept], key: &str) -> Vec<f64> {
        let value =
            |swept: &Swept| swept.iter().find(|(other, _)| other == key).expect("it is swept").1.clone();
        let number = |value: String| value.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        points.iter().map(|swept| number(value(swept))).collect()
    }

    #[test]
    fn a_latin_hypercube_has_one_value_in_each_part_of_each_range() {
        let latin =
            "[sweep.latin]\npoints = 20\npath.loss = '0 % to 10 %'\n'path.delay' = '1 ms to 1000 ms log'";
        let points = points(latin).expect("good");
        let part = |share: f64| (share * 20.0) as usize;
        let mut losses: Vec<usize> =
            numbers(&points, "path.loss").iter().map(|loss| part(loss / 10.0)).collect();
        let mut delays: Vec<usize> =
            numbers(&points, "path.delay").iter().map(|ms| part(ms.log10() / 3.0)).collect();
        assert_ne!(losses, delays, "each key in an order of its own");
        losses.sort();
        delays.sort();
        assert_eq!(losses, (0..20).collect::<Vec<_>>());
        assert_eq!(delays, losses);
    }

    #[test]
    fn a_million_parts_have_a_million_values_and_few_keep_six_digits() {
        let texts = |range: &str, points: u64| -> Vec<String> {
            let drawn = Drawn {
                range: Range::read(&Value::from(range), points).expect("a range"),
                fractions: Design::Latin.fractions(points, 1, "path.delay").into(),
            };
            (0..drawn.len()).map(|index| drawn.value_at(index).to_string()).collect()
        };
        let ranges =
            [("100 ms to 400 ms", 1_000_000), ("0.01 % to 10 % log", 100_000), ("-1.5 to 2.5", 100_000)];
        for (range, points) in ranges {
            let all = texts(range, points);
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{range}");
        }
        let few = texts("100 ms to 400 ms", 1000);
        let digits = few.iter().map(|text| text.chars().filter(char::is_ascii_digit).count());
        assert_eq!(digits.max(), Some(6));
    }

    #[test]
    fn sizes_are_whole_bytes_however_many_digits_they_have() {
        let sizes = points("[sweep.latin]\npoints = 9\n'transfer.size' = '1 kB to 9 kB'").expect("good");
        assert!(numbers(&sizes, "transfer.size").iter().any(|kb| kb.fract() != 0.0));
    }

    #[test]
    fn draws_depend_on_seed_and_key_alone_and_cross_with_the_grid() {
        let one = points("[sweep.random]\npoints = 5\n'path.loss' = '0 % to 10 %'").expect("good");
        let crossed = "[sweep]\n'transfer.size' = ['1 MB', '2 MB']\n[sweep.random]\npoints = 5\nseeds = '1 to 3'\n\
                       path.delay = '1 ms to 9 ms'\npath.loss = '0 % to 10 %'\nsender.stack = ['linux-6']";
        let both = points(crossed).expect("good");
        assert_eq!(both.len(), 10);
        assert_eq!(numbers(&both[..5], "path.loss"), numbers(&one, "path.loss"));
        assert_eq!(numbers(&both[5..], "path.loss"), numbers(&one, "path.loss"));
        assert!(numbers(&both, "seeds").iter().all(|seeds| [1.0, 2.0, 3.0].contains(seeds)));
        let other =
            points("[sweep.random]\npoints = 5\nseed = 2\n'path.loss' = '0 % to 10 %'").expect("good");
        assert_ne!(numbers(&other, "path.loss"), numbers(&one, "path.loss"));
    }

    #[test]
    fn settings_are_changed_like_any_parameter() {
        let written = "[sweep.latin]\npoints = 5\npath.loss = '0 % to 10 %'\n'path.delay' = '1 ms to 9 ms'";
        let redrawn =
            "[sweep.latin]\npoints = 3\nseed = 2\npath.loss = '0 % to 1 %'\n'path.delay' = '1 ms to 9 ms'";
        let changes = ["sweep.latin.seed=2", "sweep.latin.points=3", "sweep.latin.path.loss=0 % to 1 %"];
        assert_eq!(changed(written, &changes), points(redrawn));
        let error = changed(written, &["sweep.latin.points=0"]).expect_err("none is drawn");
        assert!(error.contains("sweep.latin.points: expected a whole number"), "{error}");
        // With a sweep of its own the file's is gone, and with it what was changed of that before.
        let given = ["sweep.latin.seed=2", "sweep={'transfer.size'=['1 MB', '2 MB']}"];
        assert_eq!(changed(written, &given).expect("good").len(), 2);
    }

    #[test]
    fn what_cannot_be_drawn_says_why() {
        for (lines, word) in [
            ("'path.delay' = '1 ms to 2 ms'", "sweep.latin.points: expected how many"),
            ("points = 0", "from 1 to 10000000, found `0`"),
            ("points = 3", "nothing to draw"),
            ("points = 3\n'path.delay' = '1 ms'", "expected a range to draw from"),
            ("points = 3\n'path.delay' = '2 ms to 1 ms'", "from less to more"),
            ("points = 3\n'path.delay' = '0 ms to 1 ms log'", "above zero"),
            ("points = 3\n'path.delay' = '1 ms to 1 s'", "one unit"),
            ("points = 3\n'path.dilay' = '1 ms to 2 ms'", "path.dilay"),
        ] {
            let error = points(&format!("[sweep.latin]\n{lines}")).expect_err(lines);
            assert!(error.contains(word), "{lines}: {error}");
        }
    }
}
