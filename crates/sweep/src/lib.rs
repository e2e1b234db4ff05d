//! Sweeps that outgrow one sitting.
//!
//! A sweep's runs are made in chunks, and each finished chunk is a Parquet file of its own that appears under its name
//! whole or not at all. Inside, a run is known by what made it: a digest of its point as resolved and of the program
//! ([`point_key`]), the engine, and the seed. So whatever ends a program, at most what was going on is lost; what is run
//! next is what is missing; and a changed experiment, stack or program takes nothing that it would not have made itself.
//!
//! | module | what it does |
//! | --- | --- |
//! | `key` | which run it is |
//! | `seeds` | sets of seeds |
//! | `chunk` | runs as the bytes of a file, and back |
//! | `inventory` | which runs are there |
//! | `folder` | the files: opened, listed, cleaned up |
//! | `plan` | what is wanted, and what of it is missing |
//! | `work` | makes it, on all cores or in real time |
//! | `precision` | more seeds where an interval is too wide |
//! | `search` | where along an axis something is crossed |
//! | `points` | the table of what came out, a row for each point and engine |

mod chunk;
mod error;
mod folder;
mod inventory;
mod key;
mod plan;
mod points;
mod precision;
mod search;
mod seeds;
mod work;

pub use chunk::{Chunk, Span, read_runs};
pub use error::SweepError;
pub use folder::{Cleaned, Folder, POINTS};
pub use inventory::Inventory;
pub use key::{PointKey, point_key, program};
pub use plan::{Plan, Status, Wanted};
pub use points::{value_of, write_points};
pub use precision::{Precision, PrecisionError, more_seeds};
pub use search::{Search, SearchError, Searching, Threshold};
pub use seeds::Seeds;
pub use work::{Limits, run_chunk, run_missing};
