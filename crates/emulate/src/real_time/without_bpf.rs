//! BPF congestion controllers where their loader is left out of the build: nobody has one, as the preflight says.

use crate::EmulateError;
use crate::preflight;
use farpath_experiment::{BpfObject, Scenario, Stack};
use farpath_path::{Direction, PerDirection};

/// None of them.
#[derive(Default)]
pub(super) struct Controls(());

impl Controls {
    pub fn load(scenario: &Scenario, _: PerDirection<&Stack>) -> Result<Controls, EmulateError> {
        preflight::bpf(scenario).map(Controls)
    }

    pub fn name(&self, _: Direction) -> Option<&str> {
        None
    }
}

/// An object file.
pub(super) fn described(object: &BpfObject) -> String {
    object.file.clone()
}
