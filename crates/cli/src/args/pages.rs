//! The commands that the pages show are commands that there are.

use crate::args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A command of a page.
struct Shown {
    place: String,
    line: String,
    /// On a line of its own, to be typed; else named in a text, where what it takes may be left out.
    whole: bool,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("docs is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn commands(page: &Path) -> Vec<Shown> {
    let text = fs::read_to_string(page).expect("UTF-8");
    let name = page.strip_prefix(ROOT).expect("it is below").display();
    let mut shown = Vec::new();
    // What a fence says that its block is.
    let mut block = None;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let place = format!("{name}:{}", number + 1);
        if let Some(info) = line.trim_start().strip_prefix("```") {
            block = if block.is_none() { Some(info) } else { None };
        } else if let Some(info) = block {
            let line = line.trim();
            let typed = line.strip_prefix("$ ").or((info == "sh").then_some(line));
            let Some(typed) = typed.filter(|typed| typed.starts_with("farpath ")) else { continue };
            let mut command = typed.to_owned();
            while let Some(begin) = command.strip_suffix('\\') {
                command = format!("{begin} {}", lines.next().expect("it goes on").1.trim());
            }
            shown.push(Shown { place, line: command, whole: true });
        } else {
            for span in line.split('`').skip(1).step_by(2).filter(|span| span.starts_with("farpath ")) {
                shown.push(Shown { place: place.clone(), line: span.to_owned(), whole: false });
            }
        }
    }
    shown
}

/// Whether a word stands for what somebody has to put there.
fn stands_for_another(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase() || "-_[]:".contains(c)) || word.contains("...")
}

/// What is wrong with a command, if it can be told without running it.
fn fault(shown: &Shown) -> Option<String> {
    let mut words = shlex::split(&shown.line)?;
    // What a shell takes is not the command's.
    let end = words.iter().position(|word| ["|", ">", "2>", "&", "&&", ";"].contains(&word.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    words.retain(|word| word != "...");
    let placeholders = words.iter().any(|word| stands_for_another(word));
    match Cli::try_parse_from(words) {
        Ok(cli) => {
            let path = match &cli.command {
                Command::Run(args) => &args.common.source,
                Command::Explain(args) => &args.source,
                Command::Predict(args) => &args.common.source,
                Command::Simulate(args) => &args.common.source,
                Command::Emulate(args) => &args.common.source,
                _ => return None,
            };
            let flags = &path.path;
            let some = path.file.is_none() && (flags.one_way().is_some() || flags.rate.is_some());
            (some && flags.size.is_none()).then(|| "--size is missing".to_owned())
        }
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
            ErrorKind::MissingRequiredArgument
            | ErrorKind::InvalidValue
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                if !shown.whole =>
            {
                None
            }
            ErrorKind::ValueValidation | ErrorKind::InvalidValue if placeholders => None,
            _ => Some(error.to_string().lines().next().unwrap_or_default().to_owned()),
        },
    }
}

#[test]
fn docs_show_commands_that_there_are() {
    let shown: Vec<Shown> = pages().iter().flat_map(|page| commands(page)).collect();
    assert!(shown.len() > 300, "{} commands", shown.len());
    let faults: Vec<String> = shown
        .iter()
        .filter_map(|shown| Some(format!("{}: {}: {}", shown.place, shown.line, fault(shown)?)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn docs_with_a_command_that_is_none_are_found() {
    let of = |line: &str, whole| fault(&Shown { place: String::new(), line: line.to_owned(), whole });
    assert!(of("farpath sweep FILE DIR", true).is_some());
    assert!(
        of("farpath explain --delay 300ms --rate 1Mbit/s", true)
            .is_some_and(|fault| fault.contains("--size"))
    );
    assert!(of("farpath sweep", true).is_some());
    assert_eq!(of("farpath sweep", false), None);
    assert_eq!(of("farpath diagnose --pid PID", true), None);
}
