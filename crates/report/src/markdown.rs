//! Tables as Markdown, for issues, papers and pages.

use crate::table::{Alignment, Table, UNKNOWN};

impl Table {
    /// As a table of GitHub's Markdown in one piece, its title above it, its notes and caveats as a list below it.
    pub fn to_markdown(&self) -> String {
        let columns = self.columns();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text =
            if self.title.is_empty() { String::new() } else { format!("**{}**\n\n", escaped(&self.title)) };
        text += &line(columns.iter().map(|column| header(&column.header)).collect());
        let rule = |alignment| match alignment {
            Alignment::Left => "---".to_owned(),
            Alignment::Right => "---:".to_owned(),
        };
        text += &line(columns.iter().map(|column| rule(column.alignment)).collect());
        for row in 0..self.rows() {
            text += &line(
                columns
                    .iter()
                    .map(|column| escaped(column.cells[row].as_deref().unwrap_or(UNKNOWN)))
                    .collect(),
            );
        }
        let below: Vec<String> = (1..)
            .zip(self.notes.iter().chain(&self.caveats))
            .map(|(number, note)| format!("- \\[{number}\\] {}\n", escaped(note)))
            .collect();
        if !below.is_empty() {
            text += "\n";
            text += &below.concat();
        }
        text
    }
}

/// The lines of a header as one: a word that was divided between two is whole again.
fn header(header: &str) -> String {
    let is_divided = |line: &str| line.ends_with('-');
    let mut text = String::new();
    for line in header.lines() {
        if is_divided(&text) {
            text.pop();
        } else if !text.is_empty() {
            text.push(' ');
        }
        text += line;
    }
    escaped(&text)
}

/// Without what Markdown would take for its own.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '<' | '\\' => {
                escaped.push('\\');
                escaped.push(character);
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn a_table_is_one_of_markdown() {
        let cells = |cells: [Option<&str>; 2]| cells.map(|cell| cell.map(str::to_owned)).to_vec();
        let table = Table {
            title: "One | two".to_owned(),
            heads: vec![Column::left("path.loss", cells([Some("0 %"), Some("1 %")]))],
            groups: vec![vec![Column::right("retrans-\nmissions\n[1]", cells([Some("0"), None]))]],
            notes: vec!["Of `linux-6`.".to_owned()],
            caveats: Vec::new(),
        };
        let expected = "**One \\| two**\n\n\
            | path.loss | retransmissions \\[1\\] |\n\
            | --- | ---: |\n\
            | 0 % | 0 |\n\
            | 1 % | – |\n\n\
            - \\[1\\] Of \\`linux-6\\`.\n";
        assert_eq!(table.to_markdown(), expected);
    }
}
