//! The columns of `routers`.

use super::{Cells, Column, DIRECTIONS, Row, column};
use crate::RouterRow;
use farpath_units::Bytes;

/// A count, named as its field.
macro_rules! count {
    ($field:ident, $about:literal) => {
        column(
            stringify!($field),
            "",
            $about,
            Cells::U64(each!(|row| row.$field), |row, count| {
                row.$field = count;
                Some(())
            }),
        )
    };
}

/// A number of bytes that is no whole one, named as its field.
macro_rules! part_of_bytes {
    ($name:literal, $field:ident, $about:literal) => {
        column($name, "B", $about, Cells::MaybeF64(|row| Some(row.$field), |row, bytes| row.$field = bytes))
    };
}

impl Row for RouterRow {
    const COLUMNS: &'static [Column<RouterRow>] = &[
        text!(element, "name of the flow router on the path"),
        direction!("the line that it grants: forward or reverse"),
        count!(requests, "requests, renegotiations and resent requests processed"),
        count!(lowered, "of these, how many left with a lower Available Rate"),
        count!(admitted, "Guaranteed and Maximum Rates admitted"),
        count!(refused, "Guaranteed and Maximum Rates refused"),
        count!(preempted, "flows that lost their guarantee"),
        count!(pushed, "cuts that the router itself has told"),
        count!(missed, "flows asked for a request that was missed"),
        count!(closed, "flows that closed"),
        count!(expired, "flows forgotten because they were silent"),
        count!(policed, "packets dropped because their flow sent more than it was granted"),
        count!(
            unknown,
            "structures that named a flow that was not known, and packets whose sequence numbers were not those of their flow"
        ),
        count!(above_grant, "answers that said more than was granted"),
        count!(full, "requests that passed for want of room for more flows"),
        part_of_bytes!("mean_backlog_bytes", mean_backlog, "IP bytes that waited, averaged over time"),
        part_of_bytes!(
            "backlog_deviation_bytes",
            backlog_deviation,
            "standard deviation over time of the IP bytes that waited"
        ),
        column(
            "max_backlog_bytes",
            "B",
            "the most IP bytes that ever waited",
            Cells::U64(each!(|row| row.max_backlog.0), |row, bytes| {
                row.max_backlog = Bytes(bytes);
                Some(())
            }),
        ),
    ];

    fn blank() -> RouterRow {
        RouterRow {
            element: String::new(),
            direction: DIRECTIONS[0],
            requests: 0,
            lowered: 0,
            admitted: 0,
            refused: 0,
            preempted: 0,
            pushed: 0,
            missed: 0,
            closed: 0,
            expired: 0,
            policed: 0,
            unknown: 0,
            above_grant: 0,
            full: 0,
            mean_backlog: 0.0,
            backlog_deviation: 0.0,
            max_backlog: Bytes::ZERO,
        }
    }
}
