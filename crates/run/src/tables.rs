//! The tables of a run, a file each: a field of a row is a column. Times are nanoseconds from the run's start, sizes bytes.

/// The ways over the path.
const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// How the way over the path is stored: the field `direction` of a row.
macro_rules! direction_cells {
    () => {
        $crate::schema::Cells::Word(
            &$crate::tables::DIRECTIONS,
            |rows, cells| cells.extend(rows.iter().map(|row| u8::from(row.direction == DIRECTIONS[1]))),
            |row, name| {
                row.direction = DIRECTIONS.iter().find(|known| **known == name)?;
                Some(())
            },
        )
    };
}

pub mod air;
pub mod diagnosis;
pub mod flows;
pub mod routers;
pub mod segments;
pub mod series;
pub mod stations;
