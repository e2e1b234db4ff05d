//! A path that was measured, as an experiment, and how well each of its values is known.

use crate::args::PathArgs;
use crate::error::CliError;
use crate::source::Source;
use farpath_experiment::{Experiment, Override, QUICK_PATH_STACK};
use farpath_explain::Known;
use farpath_path::PerDirection;
use farpath_tcp::config::CongestionControlKind;
use farpath_units::{Bytes, Duration, Probability, Rate};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What is sent where nobody says how much.
const SIZE: Bytes = Bytes(10_000_000);
/// A full packet: a queue is known to one of them.
const PACKET: f64 = 1500.0;
/// What is known to be at least so much may be twice of it.
const AT_LEAST: [f64; 2] = [1.0, 2.0];

/// One way of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way {
    pub rate: Rate,
    /// The ends of what it may be, as factors; `None` where nothing says.
    pub rate_ends: Option<[f64; 2]>,
    /// `None` where nothing says how long it is.
    pub queue: Option<Bytes>,
    pub queue_ends: Option<[f64; 2]>,
    /// The share, and its 95 % interval.
    pub loss: Option<(f64, [f64; 2])>,
}

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The least round trip, and the usual one.
    pub rtt: [Duration; 2],
    /// `forward` goes to the far host.
    pub ways: PerDirection<Way>,
    /// The controller of this host, where that is known and simulated.
    pub control: Option<CongestionControlKind>,
}

impl Measured {
    /// What `farpath measure --json` printed: its first line.
    pub fn from_json(text: &str) -> Result<Measured, String> {
        let line = text.lines().next().unwrap_or_default();
        let all: Value = serde_json::from_str(line)
            .map_err(|error| format!("expected what `farpath measure PEER --json` prints: {error}"))?;
        Measured::of_value(&all)
    }

    /// The same, before it is printed.
    pub fn of_value(all: &Value) -> Result<Measured, String> {
        let path = all
            .get("path")
            .ok_or("expected the key `path`, as `farpath measure PEER --json` prints it, and found none")?;
        let number = |at: &Value, pointer: &str, key: &str| {
            let found = at.pointer(pointer).unwrap_or(&Value::Null);
            found.as_f64().filter(|value| value.is_finite() && *value >= 0.0).ok_or_else(|| {
                format!("{key}{}: expected a number, found {found}", pointer.replace('/', "."))
            })
        };
        let trip = |which: &str| -> Result<Duration, String> {
            Ok(Duration::from_nanos(number(path, &format!("/round_trip/{which}"), "path")? as u64))
        };
        let way = |name: &str| -> Result<Way, String> {
            let (at, key) = (&path[name], format!("path.{name}"));
            let bit_per_s = number(at, "/rate_bit_per_s", &key)?;
            let rate = Rate::from_bit_per_s(bit_per_s as u64)
                .ok_or_else(|| format!("{key}.rate_bit_per_s: expected a rate above 0, found {bit_per_s}"))?;
            let is = |flag: &str| at[flag].as_bool().unwrap_or(false);
            let between = |pointer: &str| number(at, pointer, &key).map(|value| value / bit_per_s);
            let rate_ends = match is("rate_at_least") {
                true => AT_LEAST,
                false => [
                    between("/rate_between_bit_per_s/0")?.min(1.0),
                    between("/rate_between_bit_per_s/1")?.max(1.0),
                ],
            };
            let queue = number(at, "/queue_bytes", &key)?;
            let packet = (PACKET / queue.max(1.0)).min(0.5);
            let queue_ends = if is("queue_at_least") { AT_LEAST } else { [1.0 - packet, 1.0 + packet] };
            let loss = match at["loss_rate"].is_null() {
                true => None,
                false => Some((
                    number(at, "/loss_rate", &key)?,
                    [number(at, "/loss_rate_ci95/0", &key)?, number(at, "/loss_rate_ci95/1", &key)?],
                )),
            };
            let queue = Some(Bytes((queue as u64).max(10 * PACKET as u64)));
            Ok(Way { rate, rate_ends: Some(rate_ends), queue, queue_ends: Some(queue_ends), loss })
        };
        let rtt = [trip("min_ns")?, trip("median_ns")?];
        let ways = PerDirection { forward: way("forward")?, reverse: way("reverse")? };
        Ok(Measured { rtt, ways, control: None })
    }

    /// How well each value is known.
    pub fn known(&self) -> Known {
        let Measured { rtt: [least, usual], ways, .. } = self;
        let both = |of: fn(&Way) -> Option<[f64; 2]>| {
            Some(PerDirection { forward: of(&ways.forward)?, reverse: of(&ways.reverse)? })
        };
        let usual = usual.as_secs_f64() / least.as_secs_f64().max(1e-9);
        Known {
            delay: Some([1.0, usual.max(1.0)]),
            rate: both(|way| way.rate_ends),
            loss: both(|way| way.loss.map(|(_, interval)| interval)),
            queue: both(|way| way.queue_ends),
        }
    }

    /// The experiment: data go to the far host.
    pub fn to_toml(&self, size: Bytes) -> String {
        let Measured { rtt: [least, _], ways, control } = self;
        let share = |way: &Way| {
            let share = way.loss.map_or(0.0, |(share, _)| share);
            Probability::new(share).unwrap_or(Probability::ZERO)
        };
        let (forward, reverse) = (&ways.forward, &ways.reverse);
        let queue = |way: &Way| way.queue.map_or("1 bdp".to_owned(), |queue| queue.to_string());
        let seeds =
            if share(forward) == Probability::ZERO && share(reverse) == Probability::ZERO { 1 } else { 20 };
        let control =
            control.map_or(String::new(), |kind| format!("congestion.control = \"{}\"\n", kind.name()));
        format!(
            "title = \"{size} over a path that was measured\"\nseeds = {seeds}\nhorizon = \"30 d\"\n\
             [[path]]\nelement = \"link\"\nrate = {{ forward = \"{}\", reverse = \"{}\" }}\n\
             queue = {{ forward = \"{}\", reverse = \"{}\" }}\n\
             [[path]]\nelement = \"loss\"\nrate = {{ forward = \"{}\", reverse = \"{}\" }}\n\
             [[path]]\nelement = \"delay\"\ndelay = \"{}\"\n\
             [sender]\nstack = \"{QUICK_PATH_STACK}\"\n{control}[receiver]\nstack = \"{QUICK_PATH_STACK}\"\n\
             [transfer]\nsize = \"{size}\"\nopener = \"sender\"\n",
            forward.rate,
            reverse.rate,
            queue(forward),
            queue(reverse),
            share(forward),
            share(reverse),
            *least / 2,
        )
    }

    /// The experiment, checked, with what `--set` changes.
    pub fn source(&self, size: Option<Bytes>, changes: &[Override]) -> Result<Source, CliError> {
        if size.is_none() {
            eprintln!("farpath: not given: --size, {SIZE}");
        }
        let text = self.to_toml(size.unwrap_or(SIZE));
        let experiment = Experiment::parse(&text, "the path as it was measured", changes)?;
        Ok(Source { experiment, file: PathBuf::from("measured path") })
    }
}

/// A result that `--from-measure` names.
pub fn of_file(file: &Path) -> Result<Measured, CliError> {
    let wrong = |reason: String| CliError::Measured { file: file.to_owned(), reason };
    let text = farpath_files::read_text(file).map_err(|error| wrong(error.to_string()))?;
    Measured::from_json(&text).map_err(wrong)
}

/// Beside a path that was measured only the size is given.
pub fn refuse_other_flags(flag: &'static str, path: &PathArgs, takes_rate: bool) -> Result<(), CliError> {
    let given = [
        (path.delay.is_some(), "--delay"),
        (path.rtt.is_some(), "--rtt"),
        (path.rate.is_some() && !takes_rate, "--rate"),
        (path.loss.is_some(), "--loss"),
        (path.stack.is_some(), "--stack"),
        (path.window.is_some(), "--window"),
        (path.save.is_some(), "--save"),
    ];
    match given.into_iter().find(|(given, _)| *given) {
        Some((_, other)) => Err(CliError::Beside { flag, other }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"path":{"hosts":["a","b"],"kernels":["Linux 6","Linux 6"],"round_trip":{"min_ns":40000000,"median_ns":44000000,"p99_ns":50000000,"max_ns":60000000},"forward":{"rate_bit_per_s":10000000,"rate_between_bit_per_s":[9500000,10500000],"rate_at_least":false,"queue_bytes":50000,"queue_at_least":false,"loss_rate":0.0,"loss_rate_ci95":[0.0,0.0037]},"reverse":{"rate_bit_per_s":20000000,"rate_between_bit_per_s":[20000000,20000000],"rate_at_least":true,"queue_bytes":9,"queue_at_least":true,"loss_rate":0.01,"loss_rate_ci95":[0.005,0.02]}}}"#;

    #[test]
    fn a_result_is_an_experiment_and_what_is_known_of_it() {
        let measured = Measured::from_json(RESULT).expect("it is one");
        let known = measured.known();
        assert_eq!(known.delay.map(|both| both[0]), Some(1.0));
        assert!((known.delay.expect("measured")[1] - 1.1).abs() < 1e-9);
        assert_eq!(known.rate, Some(PerDirection { forward: [0.95, 1.05], reverse: AT_LEAST }));
        assert_eq!(known.loss, Some(PerDirection { forward: [0.0, 0.0037], reverse: [0.005, 0.02] }));
        assert_eq!(known.queue.map(|queue| queue.reverse), Some(AT_LEAST));
        let source = measured.source(Some(Bytes(1_000_000)), &[]).expect("it is an experiment");
        assert_eq!(source.experiment.points().len(), 1);
        assert_eq!(source.experiment.point(0).scenario.warnings, [""; 0]);
    }

    #[test]
    fn what_is_no_result_is_refused_by_its_key() {
        let cut = |from: &str, to: &str| {
            let text = RESULT.replace(from, to);
            assert_ne!(text, RESULT);
            Measured::from_json(&text).expect_err("it is none")
        };
        assert!(Measured::from_json("").expect_err("nothing").contains("farpath measure PEER --json"));
        assert!(Measured::from_json("{}").expect_err("nothing").contains("`path`"));
        let rate = cut("\"rate_bit_per_s\":10000000", "\"rate_bit_per_s\":null");
        assert!(rate.contains("path.forward.rate_bit_per_s") && rate.contains("found null"), "{rate}");
        let trip = cut("\"min_ns\":40000000", "\"min_ns\":\"soon\"");
        assert!(trip.contains("path.round_trip.min_ns"), "{trip}");
    }
}
