//! BPF congestion controllers of the user's, in the kernel for the hosts of a run.

use crate::EmulateError;
use data_encoding::HEXLOWER;
use farpath_driver::{ControlError, Missing, UserControl};
use farpath_experiment::{BpfObject, Scenario, Stack, Transport};
use farpath_path::{Direction, PerDirection};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// What the machine or the user lacks for it. Asked for each run of a sweep; megabytes are read for it.
static MISSING: LazyLock<Vec<Missing>> = LazyLock::new(farpath_driver::missing);

/// The controller of each host whose stack has one, under a name of the run's own; gone with the run.
#[derive(Default)]
pub(super) struct Controls(PerDirection<Option<UserControl>>);

impl Controls {
    /// Loads those of the hosts' `stacks`.
    ///
    /// # Errors
    /// The machine or the user lacks something for it, an object has none, or the kernel refuses it.
    pub fn load(scenario: &Scenario, stacks: PerDirection<&Stack>) -> Result<Controls, EmulateError> {
        if scenario.transport != Transport::Tcp {
            return Ok(Controls::default());
        }
        let sender = scenario.flows[0].direction;
        let of = |host: Direction| -> Result<Option<UserControl>, EmulateError> {
            let Some(BpfObject { file, bytes }) = &stacks[host].linux.bpf else { return Ok(None) };
            let end = if host == sender { "sender" } else { "receiver" };
            let failed =
                |source| EmulateError::Bpf { key: format!("{end}.linux.bpf"), file: file.clone(), source };
            // What is wrong with the object is wrong on every machine.
            UserControl::check(bytes).map_err(failed)?;
            if !MISSING.is_empty() {
                return Err(failed(ControlError::Missing(MISSING.clone())));
            }
            UserControl::load(bytes).map(Some).map_err(failed)
        };
        Ok(Controls(PerDirection { forward: of(Direction::Forward)?, reverse: of(Direction::Reverse)? }))
    }

    /// By which sockets of a host ask for its controller.
    pub fn name(&self, host: Direction) -> Option<&str> {
        self.0[host].as_ref().map(UserControl::name)
    }
}

/// An object file, and which bytes it had.
pub(super) fn described(BpfObject { file, bytes }: &BpfObject) -> String {
    format!("{file} (SHA-256 {})", HEXLOWER.encode(&Sha256::digest(bytes)))
}
