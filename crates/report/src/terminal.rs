//! Tables as text for a terminal: no colour, no trailing blanks.

use crate::table::{Alignment, Column, Table, UNKNOWN};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table as Grid, TableStyle};

/// With a capital letter at its beginning.
pub(crate) fn capitalised(word: &str) -> String {
    match word.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}", first.to_uppercase()),
        None => word.to_owned(),
    }
}

impl Table {
    /// As text of at most `width` columns: its title, its columns, then its notes and caveats. Where it is too wide for one
    /// table, as several below each other.
    pub fn to_text(&self, width: Option<u16>) -> String {
        let title = if self.title.is_empty() { String::new() } else { format!("{}\n\n", self.title) };
        let below = [self.notes.as_slice(), &self.caveats].concat();
        let below = if below.is_empty() { String::new() } else { format!("\n{}", notes(&below, width)) };
        format!("{title}{}{below}", tables(&self.heads, &self.groups, width))
    }
}

/// One table where the width allows it, else several below each other, broken between groups of columns. Every
/// one of them begins with the `heads`. Without a width, one table.
pub(crate) fn tables(heads: &[Column], groups: &[Vec<Column>], width: Option<u16>) -> String {
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
    if width.is_some_and(|width| width <= NARROW) && !blocks.iter().all(|block| fits(block, width)) {
        return cards(heads, groups, width);
    }
    let texts: Vec<String> = blocks.iter().map(|block| table(block, width)).collect();
    texts.join("\n")
}

/// On a terminal as narrow as this, a table that would have to break its cells is written as cards.
const NARROW: u16 = 80;

/// A card for each row: what it is, then a line for each cell that is known.
fn cards(heads: &[Column], groups: &[Vec<Column>], width: Option<u16>) -> String {
    let rows =
        heads.iter().chain(groups.iter().flatten()).map(|column| column.cells.len()).max().unwrap_or(0);
    let card = |row: usize| {
        let name =
            heads.iter().filter_map(|head| head.cells.get(row)?.clone()).collect::<Vec<_>>().join("  ");
        let mut text = paragraph(&name, width);
        for column in groups.iter().flatten() {
            if let Some(Some(cell)) = column.cells.get(row) {
                let header = column.header.replace("-\n", "").replace('\n', " ");
                let line = if header.is_empty() { cell.clone() } else { format!("{header}: {cell}") };
                let indented = paragraph(&line, width.map(|width| width.saturating_sub(2)));
                text.extend(indented.lines().map(|line| format!("  {line}\n")));
            }
        }
        text
    };
    (0..rows).map(card).collect::<Vec<_>>().join("\n")
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
        cells.set_cell_alignment(match column.alignment {
            Alignment::Left => CellAlignment::Left,
            Alignment::Right => CellAlignment::Right,
        });
    }
    finish(&mut table)
}

/// Numbered notes, wrapped to `width`.
pub(crate) fn notes(texts: &[String], width: Option<u16>) -> String {
    let mut table = bare(width);
    table.load_style(TableStyle::new());
    for (i, text) in texts.iter().enumerate() {
        table.add_row([format!("[{}]", i + 1), text.clone()]);
    }
    finish(&mut table)
}

/// A paragraph, wrapped to `width`.
pub(crate) fn paragraph(text: &str, width: Option<u16>) -> String {
    let mut table = bare(width);
    table.load_style(TableStyle::new());
    table.add_row([text]);
    finish(&mut table)
}

/// A table without lines, wrapped to `width` where there is one.
pub(crate) fn bare(width: Option<u16>) -> Grid {
    let mut table = Grid::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table
}

/// Its text, without blanks at the ends of lines.
pub(crate) fn finish(table: &mut Grid) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_does_not_fit_becomes_cards_on_a_narrow_terminal() {
        let cells = |texts: [&str; 2]| texts.map(|text| Some(text.to_owned())).to_vec();
        let heads = [Column::left("change", cells(["a-remedy-of-a-long-name", "another-one"]))];
        let columns = vec![
            Column::right("simulated\ntime, s", cells(["1.25", "17.50"])),
            Column::left("verdict", cells(["helps, and more than that is said here", "hurts"])),
        ];
        let wide = tables(&heads, core::slice::from_ref(&columns), Some(120));
        assert!(wide.contains('─'), "{wide}");
        let narrow = tables(&heads, &[columns], Some(60));
        assert!(!narrow.contains('─') && narrow.contains("  simulated time, s: 1.25\n"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    }
}
