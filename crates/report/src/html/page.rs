//! A page of text, tables and figures, as one HTML file.

use super::data::Figure;
use super::file::GENERATOR;
use super::plots::{LICENCES, inline_json, plot, runtime};
use crate::table::{Alignment, Table, UNKNOWN};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

/// Nothing is loaded, and nothing is evaluated: what is in the file is all there is.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Stands above everything, and in the window's title.
    pub title: String,
    /// What kind of page, and who made it.
    pub kind: String,
    /// What it says, in order.
    pub sections: Vec<Section>,
}

/// A part with a heading.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its heading; none where it is empty.
    pub title: String,
    /// What it says.
    pub blocks: Vec<Block>,
}

/// What a section is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Lines of the summary.
    Short(Vec<String>),
    /// What must be seen: a heading, and sentences.
    Notice(String, Vec<String>),
    /// Terms, and what is said of each.
    Facts(Vec<(String, Vec<String>)>),
    /// A table, with its notes.
    Table(Table),
    /// A figure.
    Figure(Figure),
    /// A text as it is, behind its name.
    Source(String, String),
    /// Behind its name; open only where there is little else.
    Folded(String, Vec<Block>),
    /// Of several panels one is shown, by choice.
    Choice(Vec<Panel>),
}

/// What a choice shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Stands in the list.
    pub label: String,
    /// What is shown.
    pub blocks: Vec<Block>,
}

impl Page {
    /// Every figure, in order.
    pub fn figures(&self) -> Vec<&Figure> {
        fn collect<'a>(blocks: &'a [Block], found: &mut Vec<&'a Figure>) {
            for block in blocks {
                match block {
                    Block::Figure(figure) => found.push(figure),
                    Block::Folded(_, inner) => collect(inner, found),
                    Block::Choice(panels) => panels.iter().for_each(|panel| collect(&panel.blocks, found)),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        self.sections.iter().for_each(|section| collect(&section.blocks, &mut found));
        found
    }

    /// As HTML.
    pub fn render(&self) -> String {
        let mut writer = Writer::default();
        let sections: Vec<Markup> = self.sections.iter().map(|section| writer.section(section)).collect();
        let plots: Map<String, Value> =
            writer.plots.into_iter().map(|name| (name.to_owned(), plot(name))).collect();
        let draws = !plots.is_empty();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="generator" content=(GENERATOR);
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) }
                    style { (PreEscaped(include_str!("page.css"))) }
                }
                body {
                    header { p { (self.kind) } h1 { (self.title) } }
                    @if draws {
                        noscript { p.notice { "The figures are drawn by JavaScript, which is off. The tables need none." } }
                    }
                    main { @for section in &sections { (section) } }
                    @if draws {
                        (json_script("plots", &Value::Object(plots)))
                        details {
                            summary { "Licences of the programs that draw the figures" }
                            pre { (LICENCES) }
                        }
                        @for script in runtime() { script { (PreEscaped(script)) } }
                        script { (PreEscaped(include_str!("page.js"))) }
                    }
                }
            }
        };
        page.into_string()
    }
}

fn json_script(id: &str, value: &Value) -> Markup {
    html! { script id=(id) type="application/json" { (PreEscaped(inline_json(value))) } }
}

/// Numbers what needs a name, and notes which plots are used.
#[derive(Default)]
struct Writer {
    figures: usize,
    panels: usize,
    plots: Vec<&'static str>,
}

impl Writer {
    fn section(&mut self, section: &Section) -> Markup {
        html! {
            section {
                @if !section.title.is_empty() { h2 { (section.title) } }
                @for block in &section.blocks { (self.block(block)) }
            }
        }
    }

    fn block(&mut self, block: &Block) -> Markup {
        match block {
            Block::Text(text) => html! { p { (text) } },
            Block::Short(lines) => html! { ul.short { @for line in lines { li { (line) } } } },
            Block::Notice(title, lines) => html! {
                div.notice role="note" {
                    h3 { (title) }
                    ul { @for line in lines { li { (line) } } }
                }
            },
            Block::Facts(facts) => html! {
                dl {
                    @for (term, lines) in facts {
                        dt { (term) }
                        dd { @for line in lines { div { (line) } } }
                    }
                }
            },
            Block::Table(table) => table_html(table),
            Block::Figure(figure) => self.figure(figure),
            Block::Source(name, text) => html! { h3 { (name) } pre { (text) } },
            Block::Folded(name, blocks) => html! {
                details { summary { (name) } @for block in blocks { (self.block(block)) } }
            },
            Block::Choice(panels) => self.choice(panels),
        }
    }

    fn figure(&mut self, figure: &Figure) -> Markup {
        self.figures += 1;
        if !self.plots.contains(&figure.plot) {
            self.plots.push(figure.plot);
        }
        html! {
            figure id={ "figure-" (self.figures) } {
                h3 { (figure.title) }
                div.plot role="img" aria-label=(figure.title) {}
                figcaption { (figure.caption) }
                script type="application/json" { (PreEscaped(inline_json(&figure.to_json()))) }
            }
        }
    }

    fn choice(&mut self, panels: &[Panel]) -> Markup {
        let first = self.panels + 1;
        self.panels += panels.len();
        let numbered = || (first..).zip(panels);
        html! {
            @if panels.len() > 1 {
                label { "Show " select.runs {
                    @for (number, panel) in numbered() { option value={ "run-" (number) } { (panel.label) } }
                } }
            }
            @for (number, panel) in numbered() {
                div.panel id={ "run-" (number) } hidden[number > first] {
                    h3 { (panel.label) }
                    @for block in &panel.blocks { (self.block(block)) }
                }
            }
        }
    }
}

fn table_html(table: &Table) -> Markup {
    let columns = table.columns();
    let class = |alignment: Alignment| (alignment == Alignment::Left).then_some("left");
    let cell_class = |alignment: Alignment, text: Option<&str>| match text {
        Some(text) if alignment == Alignment::Left && text.len() > 30 => Some("left long"),
        _ => class(alignment),
    };
    html! {
        div.wide {
            table {
                thead { tr { @for column in &columns {
                    th class=[class(column.alignment)] { (column.header) }
                } } }
                tbody { @for row in 0..table.rows() { tr { @for column in &columns {
                    @let cell = column.cells[row].as_deref();
                    td class=[cell_class(column.alignment, cell)] { (cell.unwrap_or(UNKNOWN)) }
                } } } }
            }
        }
        @if !table.notes.is_empty() {
            ul.notes { @for (number, note) in (1..).zip(&table.notes) { li { "[" (number) "] " (note) } } }
        }
    }
}
