//! The explicit-rate paper's formulas, and the bound beside them, by name.

use super::{Argument, EvaluateError, Formula, Given};
use crate::arq::FiniteFile;
use crate::explicit_rate::{self, Driver, Fit, Reading};
use farpath_units::{Bytes, Probability};

const ROBERTS: &str = "Roberts, MILCOM 2006";
const READING: Argument =
    Argument { name: "round_trip", unit: "0: delay is half the RTT, 1: the RTT", default: Some(0.0) };
const RATE: Argument = Argument { name: "rate", unit: "bit/s", default: None };
const TEST_BED_RATE: Argument = Argument { name: "rate", unit: "bit/s", default: Some(1e8) };
const RTT: Argument = Argument { name: "rtt", unit: "s", default: None };
const P: Argument = Argument { name: "p", unit: "fraction", default: None };
const SIZE: Argument = Argument { name: "size", unit: "B", default: None };
const MSS: Argument = Argument { name: "mss", unit: "B", default: Some(1448.0) };

fn fit(given: &Given<'_>) -> Result<Fit, EvaluateError> {
    let reading = match given.number("round_trip") {
        0.0 => Reading::OneWay,
        1.0 => Reading::RoundTrip,
        _ => return Err(given.fail("round_trip", "0 or 1")),
    };
    let (rate, rtt) = (given.rate("rate")?, given.seconds("rtt")?);
    Ok(Fit { rate, rtt, loss_rate: given.probability("p")?, reading })
}

fn file(given: &Given<'_>) -> Result<FiniteFile, EvaluateError> {
    let first = given.count("first_flight")?;
    Ok(FiniteFile {
        size: given.bytes("size")?,
        mss: given.bytes("mss")?,
        rate: given.rate("rate")?,
        rtt: given.seconds("rtt")?,
        loss_rate: given.probability("p")?,
        first_flight: (first > 0).then_some(Bytes(first)),
    })
}

const FIRST_FLIGHT: Argument =
    Argument { name: "first_flight", unit: "B, zero for no bound", default: Some(65_535.0) };

pub(super) const NORMAL: Formula = Formula {
    name: "roberts-normal",
    summary: "normal TCP at 100 Mbit/s: rate / (1 + delay / 2 ms) / (1 + p / 0.007)",
    source: ROBERTS,
    arguments: &[TEST_BED_RATE, RTT, P, READING],
    results: &["B/s"],
    run: |given| Ok(vec![fit(given)?.throughput(Driver::Normal).value.bytes_per_s()]),
};

pub(super) const EXPLICIT: Formula = Formula {
    name: "roberts-explicit-rate",
    summary: "explicit-rate TCP: rate / (1 + delay / 60 ms) / (1 + p / 0.12)",
    source: ROBERTS,
    arguments: &[TEST_BED_RATE, RTT, P, READING],
    results: &["B/s"],
    run: |given| Ok(vec![fit(given)?.throughput(Driver::ExplicitRate).value.bytes_per_s()]),
};

pub(super) const GAIN: Formula = Formula {
    name: "roberts-gain",
    summary: "roberts-explicit-rate / roberts-normal",
    source: ROBERTS,
    arguments: &[TEST_BED_RATE, RTT, P, READING],
    results: &["times as fast"],
    run: |given| Ok(vec![fit(given)?.gain()]),
};

pub(super) const IDEAL: Formula = Formula {
    name: "roberts-ideal",
    summary: "the ideal driver: rate / (1 + p) as printed, rate (1 - p) as it must be",
    source: ROBERTS,
    arguments: &[RATE, P],
    results: &["B/s as printed", "B/s"],
    run: |given| {
        let (rate, p): (_, Probability) = (given.rate("rate")?, given.probability("p")?);
        let of = |printed| explicit_rate::ideal(rate, p, printed).value.bytes_per_s();
        Ok(vec![of(true), of(false)])
    },
};

pub(super) const IDEAL_GAIN: Formula = Formula {
    name: "roberts-ideal-gain",
    summary: "roberts-ideal as printed / roberts-normal, without a term of delay and with that of the explicit-rate driver",
    source: ROBERTS,
    arguments: &[TEST_BED_RATE, RTT, P, READING],
    results: &["times as fast", "times as fast, 1 + delay / 60 ms kept"],
    run: |given| Ok(fit(given)?.ideal_gain().into()),
};

pub(super) const SIGNALLING: Formula = Formula {
    name: "roberts-signalling-threshold",
    summary: "mean flow below which flow set-up, not the port, is a router's limit",
    source: ROBERTS,
    arguments: &[RATE, Argument { name: "flows", unit: "flows per second", default: None }],
    results: &["bit per flow"],
    run: |given| {
        let threshold = explicit_rate::signalling_threshold(given.rate("rate")?, given.count("flows")?);
        Ok(vec![threshold.map_err(|error| given.input(error))?.value])
    },
};

pub(super) const FINITE_FILE: Formula = Formula {
    name: "constant-rate-file",
    summary: "a file at a constant rate of payload, all that is lost sent again: handshake to last byte",
    source: "derived here",
    arguments: &[SIZE, MSS, RATE, RTT, P, FIRST_FLIGHT],
    results: &[
        "s in the mean",
        "s for half of the transfers",
        "s for the 90th percentile",
        "B of buffer that keeps the rate",
    ],
    run: |given| {
        let file = file(given)?;
        let input = |error| given.input(error);
        let share = |share| Probability::new(share).expect("a constant fraction");
        Ok(vec![
            file.time().map_err(input)?.value.as_secs_f64(),
            file.time_of_share(share(0.5)).map_err(input)?.value.as_secs_f64(),
            file.time_of_share(share(0.9)).map_err(input)?.value.as_secs_f64(),
            file.window().map_err(input)?.value.0 as f64,
        ])
    },
};
