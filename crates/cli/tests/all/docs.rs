//! What the pages show of output is what the command prints.
//!
//! Each block of output has a mark on the line before it:
//!
//! - `<!-- output: farpath simulate ecn -->`: the command is run, and prints just these lines. A line `...` stands for
//!   lines that are left out.
//! - `<!-- output -->`: the same for the commands in the block, on lines that begin with `$ `.
//! - `<!-- output: made at 1a2b3c4, slow: farpath explain e-vlbi -->`: the same, by `cargo test -- --ignored`.
//! - `<!-- output: made at 1a2b3c4 on Linux 6.18, 2 cores: real time -->`: not checked, and why.
//!
//! With `FARPATH_BLESS=1` the blocks that differ are written anew. Look at what `git diff` says then, and name the commit of a
//! slow one. Experiments that a command needs are blocks of the same page that begin with their name: `# relay.toml`; and packet
//! scripts: `// first.pkt`.
#![cfg(unix)]

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A fenced block of a page.
struct Block {
    /// Of the lines between its fences.
    lines: Range<usize>,
    indent: usize,
    info: String,
    mark: Option<String>,
    /// The paragraph before it, or the block where there is none between.
    before: String,
}

/// Where a block of output comes from.
#[derive(Debug, PartialEq)]
enum Mark {
    Checked(String),
    OwnCommands,
    Slow(String),
    Unchecked,
}

/// Experiments, by name.
type Files = Vec<(String, String)>;

struct Page {
    path: PathBuf,
    lines: Vec<String>,
    blocks: Vec<Block>,
}

fn pages() -> Vec<Page> {
    let mut paths = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(Path::new(ROOT).join(&folder)).expect("docs is there") {
            let entry = entry.expect("it can be read");
            let path = folder.join(entry.file_name());
            if entry.file_type().expect("it has one").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.into_iter().map(Page::read).collect()
}

impl Page {
    fn read(path: PathBuf) -> Page {
        let text = fs::read_to_string(Path::new(ROOT).join(&path)).expect("UTF-8");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            if let Some(info) = lines[at].trim_start().strip_prefix("```") {
                let length =
                    lines[at + 1..].iter().position(|line| line.trim() == "```").expect("it is closed");
                let mark = at.checked_sub(1).map(|above| lines[above].trim()).filter(|line| is_mark(line));
                let above = at - usize::from(mark.is_some());
                blocks.push(Block {
                    lines: at + 1..at + 1 + length,
                    indent: lines[at].len() - lines[at].trim_start().len(),
                    info: info.to_owned(),
                    mark: mark.map(str::to_owned),
                    before: paragraph_above(&lines[..above]),
                });
                at += length + 1;
            }
            at += 1;
        }
        Page { path, lines, blocks }
    }

    /// Lines of a block without its indentation.
    fn body(&self, block: &Block) -> Vec<&str> {
        let lines = self.lines[block.lines.clone()].iter();
        lines.map(|line| line.get(block.indent..).unwrap_or("").trim_end()).collect()
    }

    fn place(&self, block: &Block) -> String {
        format!("{}:{}", self.path.display(), block.lines.start)
    }

    fn files(&self) -> Files {
        let kinds = [("toml", "# ", ".toml"), ("text", "// ", ".pkt")];
        let named = self.blocks.iter().filter_map(|block| {
            let (_, begins, ends) = kinds.iter().find(|(info, ..)| block.info == *info)?;
            let body = self.body(block);
            let name = body.first()?.strip_prefix(begins).filter(|name| name.ends_with(ends))?;
            (!name.contains([' ', '/'])).then(|| (name.to_owned(), body.join("\n")))
        });
        named.collect()
    }
}

fn is_mark(line: &str) -> bool {
    line.starts_with("<!-- output")
}

fn paragraph_above(lines: &[String]) -> String {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    let start = lines[..end].iter().rposition(|line| line.trim().is_empty()).map_or(0, |blank| blank + 1);
    lines[start..end].join("\n")
}

impl Block {
    /// Whether it looks like something that a command printed.
    fn is_output(&self, body: &[&str]) -> bool {
        let is_rule = |line: &&str| line.len() > 20 && line.chars().all(|c| c == '─');
        let names_a_command =
            ["`farpath ", "`make ", "`bench", "/farpath "].iter().any(|word| self.before.contains(word));
        match self.info.as_str() {
            "console" => true,
            "text" | "" => {
                names_a_command || body.iter().any(is_rule) || body.iter().any(|line| line.starts_with("$ "))
            }
            _ => false,
        }
    }
}

impl Mark {
    fn parse(text: &str) -> Option<Mark> {
        let inner = text.strip_prefix("<!-- output")?.strip_suffix("-->")?.trim();
        if inner.is_empty() {
            return Some(Mark::OwnCommands);
        }
        let inner = inner.strip_prefix(": ")?;
        let Some(made) = inner.strip_prefix("made at ") else {
            return Some(Mark::Checked(inner.to_owned()));
        };
        let (made, rest) = made.split_once(": ")?;
        let is_commit = |word: &str| word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(commit) = made.strip_suffix(", slow") {
            return is_commit(commit).then(|| Mark::Slow(rest.to_owned()));
        }
        let (commit, machine) = made.split_once(" on ")?;
        (is_commit(commit) && !machine.is_empty() && !rest.is_empty()).then_some(Mark::Unchecked)
    }
}

/// What commands print. A command with the same experiments beside it runs once.
#[derive(Default)]
struct Shell(HashMap<(Files, String), Vec<String>>);

impl Shell {
    fn run(&mut self, page: &Page, command: &str) -> &[String] {
        let files = page.files();
        self.0.entry((files.clone(), command.to_owned())).or_insert_with(|| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            for (name, text) in files {
                fs::write(folder.path().join(name), text).expect("it can be written");
            }
            let binary = Path::new(env!("CARGO_BIN_EXE_farpath")).parent().expect("it lies in a folder");
            let path = env::var("PATH").unwrap_or_default();
            let output = Command::new("sh")
                .args(["-c", command])
                .current_dir(folder.path())
                .env("PATH", format!("{}:{path}", binary.display()))
                .env("HOME", folder.path())
                .env_remove("COLUMNS")
                .output()
                .expect("sh runs");
            let messages = String::from_utf8_lossy(&output.stderr);
            // 1 is a comparison that failed, or a transfer that did not complete.
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{}: {command}: {messages}",
                page.path.display()
            );
            let text = String::from_utf8(output.stdout).expect("UTF-8");
            let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
            without_blank_ends(&lines).to_vec()
        })
    }
}

fn without_blank_ends<T: AsRef<str>>(lines: &[T]) -> &[T] {
    let is_text = |line: &T| !line.as_ref().trim().is_empty();
    match (lines.iter().position(is_text), lines.iter().rposition(is_text)) {
        (Some(first), Some(last)) => &lines[first..=last],
        _ => &[],
    }
}

/// The block with what `printed` has in place of its lines; equal to it where nothing differs. What `...` leaves out is left
/// out again: each piece between them is looked for where it stands, or else where most lines have the same words.
fn renewed(shown: &[&str], printed: &[String]) -> Vec<String> {
    let pieces: Vec<&[&str]> = shown.split(|line| *line == "...").collect();
    let (last, mut at) = (pieces.len() - 1, 0);
    let mut lines = Vec::new();
    for (number, piece) in pieces.into_iter().enumerate() {
        if number > 0 {
            lines.push("...".to_owned());
        }
        let core = without_blank_ends(piece);
        let found = match (number == 0, number == last) {
            _ if core.is_empty() => at..at,
            (true, true) => 0..printed.len(),
            (true, false) => 0..core.len().min(printed.len()),
            (false, true) => printed.len().saturating_sub(core.len()).max(at)..printed.len(),
            (false, false) => likeliest(core, printed, at),
        };
        let is_blank =
            |line: Option<&&str>| usize::from(line.is_some_and(|line| line.is_empty()) && !core.is_empty());
        lines.extend(vec![String::new(); is_blank(piece.first())]);
        lines.extend(printed[found.clone()].iter().cloned());
        lines.extend(vec![String::new(); is_blank(piece.last())]);
        at = found.end;
    }
    lines
}

/// Where in what was printed, from `from` on, `piece` stands or most likely stood.
fn likeliest(piece: &[&str], printed: &[String], from: usize) -> Range<usize> {
    let words = |line: &str| -> Vec<String> {
        line.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).map(str::to_owned).collect()
    };
    let length = piece.len().min(printed.len() - from);
    let alike = |start: &usize| -> usize {
        let pairs = piece.iter().zip(&printed[*start..*start + length]);
        pairs.map(|(a, b)| 1000 * usize::from(a == b) + usize::from(words(a) == words(b))).sum()
    };
    // The first of those that are alike.
    let start = (from..=printed.len() - length).rev().max_by_key(alike).unwrap_or(from);
    start..start + length
}

/// A command, and what a block shows of its output.
struct Example<'a> {
    command: String,
    /// Its lines in the block, where they are there.
    typed: Vec<&'a str>,
    shown: Vec<&'a str>,
}

fn examples<'a>(mark: &Mark, body: &[&'a str]) -> Vec<Example<'a>> {
    let mut examples: Vec<Example> = Vec::new();
    match mark {
        Mark::Unchecked => {}
        Mark::Checked(command) | Mark::Slow(command) => {
            examples.push(Example { command: command.clone(), typed: Vec::new(), shown: body.to_vec() });
        }
        Mark::OwnCommands => {
            for line in body {
                if let Some(command) = line.strip_prefix("$ ") {
                    let command = command.to_owned();
                    examples.push(Example { command, typed: vec![line], shown: Vec::new() });
                    continue;
                }
                let example =
                    examples.last_mut().expect("a block without a command in its mark begins with one");
                if example.shown.is_empty() && example.command.ends_with('\\') {
                    example.typed.push(line);
                    example.command.push('\n');
                    example.command.push_str(line);
                } else {
                    example.shown.push(line);
                }
            }
        }
    }
    examples
}

/// Holds the blocks that `picks` against what their commands print; writes them anew where that is asked for.
fn check(picks: impl Fn(&Mark) -> bool) {
    let bless = env::var_os("FARPATH_BLESS").is_some();
    let (mut shell, mut stale, mut checked) = (Shell::default(), Vec::new(), 0);
    for page in pages() {
        let mut lines = page.lines.clone();
        // From the end, so that what is written anew moves no block that is still to come.
        for block in page.blocks.iter().rev() {
            let Some(mark) = block.mark.as_deref().and_then(Mark::parse).filter(&picks) else { continue };
            checked += 1;
            let body = page.body(block);
            let mut new = Vec::new();
            for Example { command, typed, shown } in examples(&mark, &body) {
                new.extend(typed.into_iter().map(str::to_owned));
                new.extend(renewed(&shown, shell.run(&page, &command)));
            }
            if new == body {
                continue;
            }
            let alike = new.iter().zip(&body).take_while(|(new, old)| new == old).count();
            let shows = body.get(alike).copied().unwrap_or("(the end)");
            let prints = new.get(alike).map_or("(the end)", String::as_str);
            stale.push(format!("{}\n  shown  {shows}\n  prints {prints}", page.place(block)));
            let indent = " ".repeat(block.indent);
            let indented = new.iter().map(|line| format!("{indent}{line}").trim_end().to_owned());
            lines.splice(block.lines.clone(), indented);
        }
        if bless && lines != page.lines {
            fs::write(Path::new(ROOT).join(&page.path), lines.join("\n") + "\n").expect("it can be written");
        }
    }
    assert!(checked > 0);
    if bless {
        eprintln!("written anew: {stale:#?}");
    } else {
        let hint = "FARPATH_BLESS=1 writes them anew; the text around them quotes figures, too";
        assert!(stale.is_empty(), "{} blocks differ ({hint}):\n{}", stale.len(), stale.join("\n"));
    }
}

#[test]
fn every_block_of_output_says_where_it_comes_from() {
    let mut without = Vec::new();
    for page in pages() {
        let marks = page.lines.iter().filter(|line| is_mark(line.trim())).count();
        assert_eq!(
            page.blocks.iter().filter(|block| block.mark.is_some()).count(),
            marks,
            "{}: marks, of which some do not stand right before a block",
            page.path.display()
        );
        for block in &page.blocks {
            match &block.mark {
                Some(text) => {
                    let mark = Mark::parse(text).unwrap_or_else(|| panic!("{}: {text}", page.place(block)));
                    let examples = examples(&mark, &page.body(block));
                    assert!(
                        mark == Mark::Unchecked || !examples.is_empty(),
                        "{}: no `$ `",
                        page.place(block)
                    );
                    let shows =
                        |example: &Example| example.shown.iter().any(|line| !["", "..."].contains(line));
                    assert!(examples.iter().all(shows), "{}: shows nothing", page.place(block));
                }
                None if block.is_output(&page.body(block)) => without.push(page.place(block)),
                None => {}
            }
        }
    }
    assert!(without.is_empty(), "output without a mark (see the head of this test):\n{}", without.join("\n"));
}

#[test]
fn blocks_of_output_are_what_the_command_prints() {
    check(|mark| matches!(mark, Mark::Checked(_) | Mark::OwnCommands));
}

#[test]
#[ignore = "takes minutes"]
fn slow_blocks_of_output_are_what_the_command_prints() {
    check(|mark| matches!(mark, Mark::Slow(_)));
}

#[test]
fn a_mark_says_what_is_checked() {
    let parse = |text: &str| Mark::parse(&format!("<!-- output{text} -->"));
    assert_eq!(parse(": farpath run ecn"), Some(Mark::Checked("farpath run ecn".to_owned())));
    assert_eq!(parse(""), Some(Mark::OwnCommands));
    let slow = Mark::Slow("farpath explain geo".to_owned());
    assert_eq!(parse(": made at 1a2b3c4, slow: farpath explain geo"), Some(slow));
    assert_eq!(parse(": made at 1a2b3c4 on Linux 6.18: real time"), Some(Mark::Unchecked));
    for wrong in ["s", ": made at home on Linux: why", ": made at 1a2b3c4: why", ": made at 1a2b3c4 on Linux"]
    {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
}

#[test]
fn what_is_left_out_is_left_out_of_a_block_written_anew() {
    let printed = ["title", "", "a 1", "b 2", "c 3", "b 4", "", "end 9"].map(str::to_owned);
    let renew = |shown: &[&str]| renewed(shown, &printed).join("|");
    assert_eq!(renew(&["other"]), "title||a 1|b 2|c 3|b 4||end 9");
    assert_eq!(renew(&["...", "b 4", "..."]), "...|b 4|...");
    assert_eq!(renew(&["...", "b 7", "...", "end 8"]), "...|b 2|...|end 9");
    assert_eq!(renew(&["title", "", "a 0", "...", "", "end 9"]), "title||a 1|...||end 9");
}
