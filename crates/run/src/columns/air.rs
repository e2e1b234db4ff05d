//! The columns of `air`.

use super::{Cells, Column, DIRECTIONS, Row, column};
use crate::AirRow;
use farpath_units::Duration;

/// What air is used for, as files spell it.
const USES: &[&str] =
    &["data", "ack", "poll", "link-ack", "turnaround", "damaged", "collision", "backoff", "idle"];

impl Row for AirRow {
    const COLUMNS: &'static [Column<AirRow>] = &[
        text!(element, "name of the radio on the path"),
        small!(hop, "", "which of its hops, from 0 at the near end"),
        column(
            "direction",
            "",
            "forward or reverse, where each has a channel of its own",
            Cells::MaybeText(
                |row| row.direction,
                |row, name| row.direction = DIRECTIONS.iter().copied().find(|known| *known == name),
            ),
        ),
        column(
            "what",
            "",
            "what the air was used for",
            Cells::Text(
                |row| row.what,
                |row, name| {
                    row.what = USES.iter().find(|known| **known == name)?;
                    Some(())
                },
            ),
        ),
        column(
            "time_ns",
            "ns",
            "for how long",
            Cells::U64(each!(|row| row.time.as_nanos()), |row, ns| {
                row.time = Duration::from_nanos(ns);
                Some(())
            }),
        ),
        known_or_not!(energy_j, "J", "what that took of the transceivers, where it is known what they draw"),
    ];

    fn blank() -> AirRow {
        AirRow {
            element: String::new(),
            hop: 0,
            direction: None,
            what: USES[0],
            time: Duration::ZERO,
            energy_j: None,
        }
    }
}
