//! Writes the small results folder of a format version that `tests/results.rs` reads for ever after.
//!
//! `cargo run -p farpath-run --example write_golden_format -- crates/run/tests/golden/formats/v2`, once, when the
//! format version goes up. A folder that is there already is never written again.

#[path = "../tests/all/support/mod.rs"]
mod support;

use farpath_run::{ResultsDir, ResultsError};

fn main() -> Result<(), ResultsError> {
    let folder = std::env::args().nth(1).expect("the folder is the only argument");
    assert!(
        !std::path::Path::new(&folder).exists(),
        "{folder} is there already; a format version is written once"
    );
    let mut results = ResultsDir::create(folder)?;
    support::small_experiment().iter().try_for_each(|run| results.append(run))?;
    results.finish(true)
}
