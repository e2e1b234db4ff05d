//! The first process of a guest: one run, just as in real time.

use super::{CAPTURE, ERROR, ORDER, Order, Task};
use crate::capture::CaptureError;
use crate::emulate::{can_be_prepared, until_in_time};
use crate::progress::Going;
use crate::{EngineError, provenance};
use farpath_experiment::{Experiment, Output, Override};
use farpath_kernel::guest::{MEMORY, enter, hand_out, power_off};
use farpath_run::{ResultsDir, Run};
use std::convert::Infallible;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Does what is ordered, leaves what comes of it where it was ordered and switches the machine off.
///
/// # Errors
/// This is no guest, or it cannot even say that something went wrong.
pub fn guest() -> Result<Infallible, EngineError> {
    let room = &enter()?;
    let out = PathBuf::from(MEMORY).join("results");
    if let Err(error) = ordered(room, &out) {
        // Beside whatever is there: an error counts before results.
        let _ = fs::create_dir_all(&out);
        fs::write(out.join(ERROR), error.to_string()).map_err(EngineError::GuestFiles)?;
    }
    hand_out(&out, room)?;
    Ok(power_off()?)
}

fn ordered(room: &Path, out: &Path) -> Result<(), EngineError> {
    let text = fs::read(room.join(ORDER)).map_err(EngineError::GuestFiles)?;
    let order: Order = serde_json::from_slice(&text).expect("an order is written by the same program");
    fs::create_dir_all(out).map_err(EngineError::GuestFiles)?;
    env::set_current_dir(&order.folder).map_err(EngineError::GuestFiles)?;
    match order.task {
        Task::Run { point, seed, trace, snaplen } => run(&read(&order)?, point, seed, trace, snaplen, out),
        Task::Rehearse(ref points) => {
            let experiment = read(&order)?;
            points.iter().try_for_each(|&point| can_be_prepared(&experiment.point(point).scenario))
        }
        Task::Nothing => Ok(()),
    }
}

fn read(order: &Order) -> Result<Experiment, EngineError> {
    let overrides: Vec<Override> =
        order.overrides.iter().map(|text| text.parse().expect("it was parsed before")).collect();
    Experiment::parse(&order.text, &order.origin, &overrides)
        .map_err(|error| EngineError::InGuest(error.to_string()))
}

fn run(
    experiment: &Experiment,
    point: usize,
    seed: u64,
    trace: bool,
    snaplen: Option<u32>,
    out: &Path,
) -> Result<(), EngineError> {
    let mut point = experiment.point(point).into_owned();
    let provenance = provenance(experiment, &point);
    if trace {
        point.scenario.output = Output { series: true, segments: true, messages: true };
    }
    let mut results = ResultsDir::create(out)?;
    let run = captured(snaplen, out, |capture| {
        let going = Going::new(&point.scenario);
        let stop = AtomicBool::new(false);
        until_in_time(&point, seed, provenance.clone(), &stop, &going, capture)
    })?;
    results.append(&run)?;
    Ok(results.finish(true)?)
}

fn captured(
    snaplen: Option<u32>,
    out: &Path,
    make: impl Fn(Option<(&File, u32)>) -> Result<Option<Run>, EngineError>,
) -> Result<Run, EngineError> {
    let run = match snaplen {
        Some(snaplen) => {
            // It is read again where it is begun anew.
            let file = File::create_new(out.join(CAPTURE)).map_err(CaptureError::from)?;
            make(Some((&file, snaplen)))
        }
        None => make(None),
    };
    Ok(run?.expect("nobody stops it"))
}
