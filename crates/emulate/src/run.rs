//! One run of an experiment on a kernel, wherever it is made.

use crate::EmulateError;
use crate::helper::{by_helper, is_helped};
use crate::progress::{Going, Progress};
use crate::real_time::{kernel_release, until_in_time};
use crate::virtual_time::{self, in_guest, kernel_of};
use farpath_experiment::{Experiment, Output, Scenario};
use farpath_observe::provenance;
use farpath_run::Run;
use std::fs::File;
use std::sync::atomic::AtomicBool;

/// A run to emulate.
#[derive(Debug, Clone, Copy)]
pub struct EmulatedRun<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Which of its points.
    pub point: usize,
    /// Of all that the path draws.
    pub seed: u64,
    /// Record everything, also where the experiment does not ask for it.
    pub trace: bool,
    /// Where packets are written as pcapng, and so many bytes of each.
    pub capture: Option<(&'a File, u32)>,
}

impl EmulatedRun<'_> {
    /// Makes it; `None` where `stop` was set before it was over. One that is made in this process says to `progress` how far it is.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(&self, stop: &AtomicBool, progress: Option<&Progress>) -> Result<Option<Run>, EmulateError> {
        let scenario = &self.experiment.point(self.point).scenario;
        match kernel_of(scenario)? {
            Some(kernel) => in_guest(self, &kernel, stop),
            None if is_helped() => by_helper(self, stop),
            None => Progress::watch(progress, scenario, |going| self.make_here(stop, going)),
        }
    }

    /// Makes it on the kernel that runs this process.
    pub(crate) fn make_here(&self, stop: &AtomicBool, going: &Going) -> Result<Option<Run>, EmulateError> {
        let mut point = self.experiment.point(self.point);
        let provenance = provenance(self.experiment, &point);
        if self.trace {
            point.to_mut().scenario.output = Output { series: true, segments: true, messages: true };
        }
        until_in_time(&point, self.seed, provenance, stop, going, self.capture)
    }
}

/// The kernel that emulates a scenario here, by its release, and by its name where it is one for virtual time.
///
/// # Errors
/// There is none.
pub fn emulating_kernel(scenario: &Scenario) -> Result<String, EmulateError> {
    Ok(match kernel_of(scenario)? {
        Some(kernel) => virtual_time::name(&kernel),
        None => kernel_release(),
    })
}
