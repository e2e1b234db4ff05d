//! How many rows of series and segments a run records: they are in memory until the run is written.

use farpath_experiment::Scenario;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a run, where `budget.rows` does not say how many: about 400 MB, and ten times as much while a report is made of them.
pub const MAX_ROWS: u64 = 20_000_000;

/// Budget for the rows of one run, whoever records them.
#[derive(Debug, Clone)]
pub struct RowBudget(Arc<Rows>);

#[derive(Debug)]
struct Rows {
    most: u64,
    /// Those that are left out too.
    asked: AtomicU64,
}

impl RowBudget {
    /// As much as the scenario allows a run.
    pub fn for_run(scenario: &Scenario) -> RowBudget {
        let most = scenario.budget.rows.unwrap_or(MAX_ROWS);
        RowBudget(Arc::new(Rows { most, asked: AtomicU64::new(0) }))
    }

    /// Takes room for a row; `false` where there is none left.
    pub fn take(&self) -> bool {
        self.0.asked.fetch_add(1, Ordering::Relaxed) < self.0.most
    }

    /// What is to be said of rows that were left out.
    pub fn caveat(&self) -> Option<String> {
        let Rows { most, asked } = &*self.0;
        let left_out = asked.load(Ordering::Relaxed).checked_sub(*most).filter(|&left_out| left_out > 0)?;
        Some(format!(
            "{most} rows of series and segments are recorded and {left_out} left out (`budget.rows`): they end before the run does"
        ))
    }
}
