//! What a sweep costs over its runs alone: planning, queueing, encoding and writing.

use crate::clock::timed;
use crate::figure::{Figure, Target};
use farpath_engine::{provenance, simulate};
use farpath_experiment::Experiment;
use farpath_run::Engine;
use farpath_sweep::{Folder, Limits, Plan, run_missing, write_points};
use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// 10 MB at 1 % loss.
const RUNS: u64 = 2000;

/// Measures in a folder that is there for it alone.
///
/// # Errors
/// A folder that cannot be written.
pub fn measure(folder: &Path, mut tell: impl FnMut(Figure)) -> Result<(), Box<dyn Error>> {
    let text = include_str!("../../../experiments/noisy-channel.toml");
    let changes = ["path.loss=1 %".parse()?, format!("seeds={RUNS}").parse()?];
    let experiment = Experiment::parse(text, "noisy-channel", &changes)?;
    let (mut bare, mut swept) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        bare = bare.min(timed(|| loop_alone(&experiment)).1);
        swept = swept.min(timed(|| sweep(&experiment, folder, 1)).1);
    }
    let figure = |name: &str, value: f64, unit, target| Figure {
        name: name.to_owned(),
        value: Some(value),
        unit,
        target,
    };
    tell(figure("sweep, 10 MB at 1 % loss, one core", RUNS as f64 / swept, "runs/s", Target::None));
    let cores = std::thread::available_parallelism()?.get();
    let began = now();
    sweep(&experiment, folder, cores)?;
    let seconds = began.elapsed().as_secs_f64();
    let name = format!("the same, {cores} cores, wall clock");
    tell(figure(&name, RUNS as f64 / seconds, "runs/s", Target::None));
    // Of what a run takes at the target of a run, 3 ms.
    let overhead = (swept - bare) / RUNS as f64;
    tell(figure("sweep, cost of a run beside the run", overhead * 1e6, "us", Target::AtMost(150.0)));
    Ok(())
}

fn loop_alone(experiment: &Experiment) {
    let point = &experiment.point(0);
    for seed in 1..=RUNS {
        simulate(point, seed, provenance(experiment, point)).expect("it runs");
    }
}

fn sweep(experiment: &Experiment, folder: &Path, threads: usize) -> Result<(), Box<dyn Error>> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| {
        let plan = Plan::new(experiment, &[Engine::Simulate])?;
        let (folder, _lock) = Folder::create(folder, experiment, &[Engine::Simulate])?;
        let missing = plan.missing(&folder.inventory()?);
        let never = AtomicBool::new(false);
        run_missing(experiment, &plan, missing, &folder, Limits::default(), &never, |_| ())?;
        write_points(experiment, &plan, &folder, &never, |_, _| ())
    })?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "how much several cores do is a matter of the wall clock")]
fn now() -> Instant {
    Instant::now()
}
