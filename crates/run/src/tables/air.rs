//! One row per hop of a radio and use of its air.

use super::DIRECTIONS;
use crate::schema::Cells;
use farpath_units::Duration;

/// What air is used for, as files spell it.
const USES: &[&str] =
    &["data", "ack", "others", "poll", "link-ack", "turnaround", "damaged", "collision", "backoff", "idle"];

table! {
    /// For what and how long the air between two radios was used.
    #[derive(Debug, Clone, PartialEq)]
    pub struct AirRow {
        /// Name of the radio on the path.
        pub element: String,
        /// Which of its hops, from 0 at the near end.
        pub hop: u32,
        /// Forward or reverse, where each has a channel of its own; else null.
        #[cells(Cells::MaybeText(
            |row| row.direction,
            |row, name| row.direction = DIRECTIONS.into_iter().find(|known| *known == name),
        ))]
        pub direction: Option<&'static str>,
        /// What the air was used for: data, ack, others (where there are other stations), poll, link-ack, turnaround, damaged, collision, backoff or idle.
        #[blank(USES[0])]
        #[cells(Cells::Text(
            |row| row.what,
            |row, name| {
                row.what = USES.iter().find(|known| **known == name)?;
                Some(())
            },
        ))]
        pub what: &'static str,
        /// For how long.
        #[column(name = "time_ns")]
        pub time: Duration,
        /// What that took of the transceivers, where it is known what they draw.
        #[column(unit = "J")]
        pub energy_j: Option<f64>,
    }
}
