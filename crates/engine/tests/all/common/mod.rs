//! Predicts and simulates an experiment, and takes means over the seeds.
#![allow(dead_code, reason = "examples use a part of it")]

use farpath_engine::{EngineError, jobs, run_all};
use farpath_experiment::Experiment;
use farpath_run::{Engine, Run};
use std::sync::atomic::AtomicBool;

/// Means over the runs of one engine.
#[derive(Debug, Clone, Copy)]
pub struct Mean {
    pub seconds: f64,
    pub timeouts: f64,
    pub retransmissions: f64,
}

/// One point of an experiment.
#[derive(Debug, Clone)]
pub struct Compared {
    pub predicted: Mean,
    pub simulated: Mean,
    /// The model that decided.
    pub by: String,
    pub caveats: Vec<String>,
}

/// The runs of these engines over all points of an experiment.
pub fn runs_of(experiment: &Experiment, engines: &[Engine]) -> Vec<Run> {
    let jobs = jobs(experiment, engines);
    let mut runs = Vec::new();
    let take = |run: Run| {
        runs.push(run);
        Ok::<_, EngineError>(())
    };
    run_all(experiment, &jobs, &AtomicBool::new(false), take).expect("every engine has an answer");
    runs
}

/// The runs of these engines over all points.
pub fn runs(text: &str, engines: &[Engine]) -> Vec<Run> {
    let experiment = Experiment::parse(text, "test", &[]).unwrap_or_else(|error| panic!("{error}: {text}"));
    runs_of(&experiment, engines)
}

/// The predictions of all points.
pub fn predict(text: &str) -> Vec<Run> {
    runs(text, &[Engine::Predict])
}

/// Runs both engines over all points.
pub fn compare(text: &str) -> Vec<Compared> {
    let experiment = Experiment::parse(text, "test", &[]).unwrap_or_else(|error| panic!("{error}: {text}"));
    let runs = runs_of(&experiment, &[Engine::Predict, Engine::Simulate]);
    let points = experiment.points().len() as u64;
    (0..points)
        .map(|point| {
            let of = |engine| -> Vec<&Run> {
                runs.iter().filter(|run| run.point == point && run.engine == engine).collect()
            };
            let prediction = of(Engine::Predict)[0];
            Compared {
                predicted: mean(&[prediction]),
                simulated: mean(&of(Engine::Simulate)),
                by: prediction.flows[0].detail.clone(),
                caveats: prediction.provenance.caveats.clone(),
            }
        })
        .collect()
}

fn mean(runs: &[&Run]) -> Mean {
    let of = |value: fn(&farpath_run::FlowRow) -> Option<f64>| {
        let values = runs.iter().map(|run| value(&run.flows[0]).unwrap_or(f64::NAN));
        values.sum::<f64>() / runs.len() as f64
    };
    Mean {
        seconds: of(|flow| flow.transfer_time.map(|time| time.as_secs_f64())),
        timeouts: of(|flow| flow.timeouts),
        retransmissions: of(|flow| flow.retransmissions),
    }
}
