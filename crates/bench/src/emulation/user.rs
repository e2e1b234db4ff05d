//! `farpath emulate` as a user meets it: an experiment configured like a stack, its programs, and all that is recorded.

use super::Unmeasured;
use farpath_emulate::emulate as run;
use farpath_experiment::Experiment;
use farpath_run::Provenance;
use std::sync::atomic::AtomicBool;

/// How it went.
pub struct Flow {
    pub gbit_per_s: f64,
    pub late_p99_us: f64,
    pub outside: u64,
}

/// A file of so many MB over 7 ms each way.
pub fn emulate(coalesce: bool, loss: f64, megabytes: u64) -> Result<Flow, Unmeasured> {
    // A run that is late counts here: how late is a figure of its own.
    let percent = loss * 100.0;
    let text = format!(
        "title = \"Fast\"\ntransfer = {{ size = \"{megabytes} MB\", opener = \"sender\" }}\n\
         sender = {{ stack = \"linux-6\", send = {{ buffer = \"32 MB\" }} }}\n\
         receiver = {{ stack = \"linux-6\", receive = {{ buffer = \"16 MB\" }} }}\n\
         path = [{{ element = \"loss\", rate = {{ forward = \"{percent} %\" }} }}, {{ element = \"delay\", delay = \"7 ms\" }}]\n\
         emulate = {{ coalesce = {coalesce}, lateness = \"1 s\", processor_wait = \"100 %\", repeats = 0 }}\n"
    );
    let experiment = Experiment::parse(&text, "fast", &[])?;
    let never = AtomicBool::new(false);
    let done = run(&experiment.point(0), 1, Provenance::default(), &never)?;
    let failed = |what: &str| Unmeasured::Load(what.to_owned());
    let done = done.ok_or_else(|| failed("it was stopped"))?;
    let grade = done.grade.as_ref().ok_or_else(|| failed("no grade"))?;
    let flow = done.flows.first().ok_or_else(|| failed("no flow"))?;
    let goodput = flow.goodput_bit_per_s.ok_or_else(|| {
        let void = grade.void.as_deref().unwrap_or_default();
        Unmeasured::Load(format!("{:?} {} {void}", flow.outcome, flow.detail))
    })?;
    Ok(Flow {
        gbit_per_s: goodput / 1e9,
        late_p99_us: grade.lateness.p99_ns as f64 / 1e3,
        outside: grade.device_drops + grade.refused,
    })
}
