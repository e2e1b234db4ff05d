//! `[budget]`: what a run may use up.

use crate::error::ExperimentError;
use crate::reader::{Reader, unless};

/// What a run may use up; where nothing is said, what its engine says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunBudget {
    /// Events in all.
    pub events: Option<u64>,
    /// Events at one instant.
    pub events_at_one_instant: Option<u64>,
    /// Packets on the path at once.
    pub packets: Option<u64>,
    /// Rows of series and segments that are recorded.
    pub rows: Option<u64>,
}

pub(crate) fn read_budget(reader: &mut Reader<'_>) -> Result<RunBudget, ExperimentError> {
    let mut bound = |key| -> Result<Option<u64>, ExperimentError> {
        let bound: Option<u64> = match reader.value(key) {
            Some(value) => unless(value, &reader.location_of(key), "auto")?,
            None => None,
        };
        match bound {
            Some(0) => Err(reader
                .location_of(key)
                .refuse("expected at least 1, or `auto`, found 0: no run gets anywhere")),
            bound => Ok(bound),
        }
    };
    Ok(RunBudget {
        events: bound("events")?,
        events_at_one_instant: bound("events_at_one_instant")?,
        packets: bound("packets")?,
        rows: bound("rows")?,
    })
}
