//! What programs of the user cost in virtual time.

use crate::clock::cpu_of_children;
use crate::figure::{Figure, Target};
use farpath_engine::{ShellRun, ShellSettings, shell};
use farpath_experiment::Experiment;
use std::error::Error;
use std::sync::atomic::AtomicBool;

const REPETITIONS: usize = 3;
/// An hour alone is less than what the start of a guest varies by.
const HOURS: u32 = 100;

/// Measures, and tells each figure when it is known.
///
/// # Errors
/// A program did not come to its end.
pub fn measure(mut told: impl FnMut(Figure)) -> Result<(), Box<dyn Error>> {
    let value = match farpath_kernel::Catalog::of_user().find(None) {
        Ok(_) => idle_hour()?,
        Err(_) => {
            eprintln!(
                "bench: PROGRAMS IN VIRTUAL TIME ARE NOT MEASURED: `farpath kernel build` makes a kernel"
            );
            None
        }
    };
    told(Figure {
        name: "a program idle for an hour of virtual time".to_owned(),
        value,
        unit: "ms",
        target: Target::AtMost(10.0),
    });
    Ok(())
}

/// Processor time of an hour, in ms: many hours less one second, at their quickest.
fn idle_hour() -> Result<Option<f64>, Box<dyn Error>> {
    let mut best = [f64::MAX; 2];
    for _ in 0..REPETITIONS {
        for (best, seconds) in best.iter_mut().zip([1, 3600 * HOURS]) {
            let Some(cpu) = sleep(seconds)? else { return Ok(None) };
            *best = best.min(cpu);
        }
    }
    let [start, hours] = best;
    Ok(Some((hours - start) / f64::from(HOURS) * 1000.0))
}

/// Processor time of a guest in which a program sleeps, in seconds.
fn sleep(seconds: u32) -> Result<Option<f64>, Box<dyn Error>> {
    let text = "title = \"idle\"\ntransfer = { size = \"1 kB\" }\nemulate.clock = \"virtual\"\n\
        path = [{ element = \"link\", rate = \"100 Mbit/s\", queue = \"100 kB\" }, { element = \"delay\", delay = \"5 ms\" }]\n";
    let experiment = Experiment::parse(text, "idle", &[])?;
    let settings = ShellSettings {
        command: vec!["sleep".into(), seconds.to_string().into()],
        far: None,
        far_port: None,
        uplink: false,
        like_stacks: false,
    };
    let run = ShellRun { experiment: &experiment, point: 0, seed: 1, settings: &settings, capture: None };
    let before = cpu_of_children();
    let end = shell(&run, &AtomicBool::new(false), |_, _| {})?;
    if end.code != 0 {
        return Err(format!("`sleep {seconds}` ended with {}", end.code).into());
    }
    Ok(cpu_of_children().zip(before).map(|(after, before)| after - before))
}
