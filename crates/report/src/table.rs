//! A table: columns of text, and notes below it. What makes one does not know how it is shown: as text of a terminal
//! ([`to_text`](Table::to_text)), as Markdown ([`to_markdown`](Table::to_markdown)), or in a page of HTML
//! ([`Block::Table`](crate::html::Block)).

/// What stands where a value is not known.
pub(crate) const UNKNOWN: &str = "–";

/// On which side the cells of a column begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alignment {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// One column: a header of one or more lines, with the unit in it, and a cell for each row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub header: String,
    pub cells: Vec<Option<String>>,
    pub alignment: Alignment,
}

impl Column {
    /// A column of numbers.
    pub fn right(header: impl Into<String>, cells: Vec<Option<String>>) -> Column {
        Column { header: header.into(), cells, alignment: Alignment::Right }
    }

    /// A column of text.
    pub fn left(header: impl Into<String>, cells: Vec<Option<String>>) -> Column {
        Column { header: header.into(), cells, alignment: Alignment::Left }
    }

    /// Whether any of its cells is known; a column of nothing but unknowns is not shown.
    pub fn is_known(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }
}

/// The columns of a table, in groups that stay together, and notes below it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Stands above it; empty where it needs none.
    pub(crate) title: String,
    /// Stand in front of every part of it, where it is too wide for one.
    pub(crate) heads: Vec<Column>,
    pub(crate) groups: Vec<Vec<Column>>,
    pub(crate) notes: Vec<String>,
    /// What to know before trusting the numbers.
    pub(crate) caveats: Vec<String>,
}

impl Table {
    /// Of columns of text, each with its header.
    pub fn from_texts<'a>(columns: impl IntoIterator<Item = (&'a str, Vec<Option<String>>)>) -> Table {
        let column = |(header, cells): (&str, Vec<Option<String>>)| Column::left(header, cells);
        Table { heads: columns.into_iter().map(column).collect(), ..Table::default() }
    }

    /// Of a column of text and columns of numbers, by their headers, and a row of cells for each line.
    pub fn from_rows<const COLUMNS: usize>(headers: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> Table {
        let column = |(place, header): (usize, &str)| {
            let cells = rows.iter().map(|row| Some(row[place].clone())).collect();
            if place == 0 { Column::left(header, cells) } else { Column::right(header, cells) }
        };
        Table { heads: headers.into_iter().enumerate().map(column).collect(), ..Table::default() }
    }

    /// All columns, in their order.
    pub(crate) fn columns(&self) -> Vec<&Column> {
        self.heads.iter().chain(self.groups.iter().flatten()).collect()
    }

    /// How many rows it has.
    pub(crate) fn rows(&self) -> usize {
        self.columns().iter().map(|column| column.cells.len()).max().unwrap_or(0)
    }

    /// Leaves so many rows, and says how many it took away.
    pub(crate) fn shorten(&mut self, rows: usize) -> usize {
        let all = self.rows();
        for column in self.heads.iter_mut().chain(self.groups.iter_mut().flatten()) {
            column.cells.truncate(rows);
        }
        all.saturating_sub(rows)
    }
}
