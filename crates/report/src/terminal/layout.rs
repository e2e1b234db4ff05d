//! Columns to text.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// What stands where a value is not known.
pub(crate) const UNKNOWN: &str = "–";

/// One column: a header of one or more lines, and a cell for each row.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub header: String,
    pub cells: Vec<Option<String>>,
    pub alignment: CellAlignment,
}

impl Column {
    /// A column of numbers.
    pub fn right(header: impl Into<String>, cells: Vec<Option<String>>) -> Column {
        Column { header: header.into(), cells, alignment: CellAlignment::Right }
    }

    /// A column of text.
    pub fn left(header: impl Into<String>, cells: Vec<Option<String>>) -> Column {
        Column { header: header.into(), cells, alignment: CellAlignment::Left }
    }

    /// Whether any of its cells is known; a column of nothing but unknowns is not shown.
    pub fn is_known(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }
}

/// Whether a column is one of numbers.
pub(crate) fn is_right(column: &Column) -> bool {
    column.alignment == CellAlignment::Right
}

/// With a capital letter at its beginning.
pub(crate) fn capitalised(word: &str) -> String {
    match word.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}", first.to_uppercase()),
        None => word.to_owned(),
    }
}

/// The columns of a table, in groups that stay together, and notes below it.
#[derive(Debug, Clone)]
pub(crate) struct Sheet {
    /// Stand in front of every part of it.
    pub heads: Vec<Column>,
    pub groups: Vec<Vec<Column>>,
    pub notes: Vec<String>,
    /// What to know before trusting the numbers.
    pub caveats: Vec<String>,
}

impl Sheet {
    /// Without its notes.
    pub fn render(&self, width: Option<u16>) -> String {
        tables(&self.heads, &self.groups, width)
    }
}

/// One table where the width allows it, else several below each other, broken between groups of columns. Every
/// one of them begins with the `heads`. Without a width, one table.
pub(super) fn tables(heads: &[Column], groups: &[Vec<Column>], width: Option<u16>) -> String {
    let mut blocks: Vec<Vec<Column>> = Vec::new();
    for group in groups.iter().filter(|group| !group.is_empty()) {
        let wider = blocks.last().map(|block| [block.as_slice(), group].concat());
        match (wider, blocks.last_mut()) {
            (Some(wider), Some(last)) if fits(&wider, width) => *last = wider,
            _ => blocks.push([heads, group].concat()),
        }
    }
    if blocks.is_empty() {
        blocks.push(heads.to_vec());
    }
    let texts: Vec<String> = blocks.iter().map(|block| table(block, width)).collect();
    texts.join("\n")
}

fn fits(columns: &[Column], width: Option<u16>) -> bool {
    let Some(width) = width else { return true };
    table(columns, None).lines().all(|line| line.chars().count() <= usize::from(width))
}

/// One table. Cells wrap only where it is wider than `width`.
fn table(columns: &[Column], width: Option<u16>) -> String {
    let mut table = bare(width.filter(|_| !fits(columns, width)));
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(columns.iter().map(|column| bottom_aligned(columns, &column.header)));
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    for row in 0..rows {
        table.add_row(columns.iter().map(|c| c.cells[row].as_deref().unwrap_or(UNKNOWN)));
    }
    for (column, cells) in columns.iter().zip(table.column_iter_mut()) {
        cells.set_cell_alignment(column.alignment);
    }
    finish(&mut table)
}

/// Numbered notes, wrapped to `width`.
pub(super) fn notes(texts: &[String], width: Option<u16>) -> String {
    let mut table = bare(width);
    table.load_style(TableStyle::new());
    for (i, text) in texts.iter().enumerate() {
        table.add_row([format!("[{}]", i + 1), text.clone()]);
    }
    finish(&mut table)
}

/// A paragraph, wrapped to `width`.
pub(super) fn paragraph(text: &str, width: Option<u16>) -> String {
    let mut table = bare(width);
    table.load_style(TableStyle::new());
    table.add_row([text]);
    finish(&mut table)
}

/// A table without lines, wrapped to `width` where there is one.
pub(crate) fn bare(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table
}

/// Its text, without blanks at the ends of lines.
pub(crate) fn finish(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        // With the place of the line that the style does not draw, two blanks between columns.
        column.set_padding((0, 1));
    }
    if let Some(last) = table.column_iter_mut().last() {
        last.set_padding((0, 0));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// A header with empty lines on top, so that the last lines of all headers stand side by side.
fn bottom_aligned(columns: &[Column], header: &str) -> String {
    let lines = |header: &str| header.matches('\n').count();
    let highest = columns.iter().map(|column| lines(&column.header)).max().unwrap_or(0);
    "\n".repeat(highest - lines(header)) + header
}
