//! The tables of parameters in the guide are those of the schema.
//!
//! With `FARPATH_BLESS=1` they are written anew.

use farpath_tcp::Config;
use farpath_tcp::config::{Kind, Parameter, Value, parameters};
use std::fmt::Write;
use std::{env, fs};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stacks.md");

/// Lines of documentation as the cell of a table.
fn cell(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A value as tables show it: a size to the byte.
fn shown(parameter: &Parameter, value: Value) -> String {
    match (parameter.kind, value) {
        (Kind::Bytes, Value::Number(bytes)) => format!("{bytes} B"),
        _ => parameter.show(value).to_string(),
    }
}

/// The bounds of a number, where it has more than its type's.
fn bounds(parameter: &Parameter) -> String {
    let show = |number| shown(parameter, Value::Number(number));
    let unbounded = [u64::from(u8::MAX), u64::from(u32::MAX), u64::MAX];
    match (*parameter.within.start(), *parameter.within.end()) {
        _ if matches!(parameter.kind, Kind::Switch | Kind::Word(_) | Kind::Rate | Kind::ByteRate) => {
            String::new()
        }
        (0, most) if unbounded.contains(&most) => String::new(),
        (1, most) if unbounded.contains(&most) && parameter.kind != Kind::Count => " Above zero.".to_owned(),
        (1, most) if most == unbounded[1] => " At least 1.".to_owned(),
        (least, most) => format!(" {} to {}.", show(least), show(most)),
    }
}

fn tables() -> String {
    let (mut text, mut words, mut section) = (String::new(), String::new(), None);
    let config = Config::default();
    for parameter in parameters() {
        if section != Some(parameter.section) {
            text += &std::mem::take(&mut words);
            section = Some(parameter.section);
            let title = match parameter.section {
                "" => "Top".to_owned(),
                section => format!("`[{section}]`"),
            };
            let _ = write!(
                text,
                "\n### {title}\n\n| key | default | meaning | source |\n| --- | --- | --- | --- |\n"
            );
        }
        let default = shown(parameter, parameter.get(&config));
        let absent = match parameter.absent {
            Some(word) if word != default => format!(" Or `{word}`."),
            _ => String::new(),
        };
        let (meaning, bounds) = (cell(parameter.meaning), bounds(parameter));
        let _ = writeln!(
            text,
            "| `{}` | `{default}` | {meaning}{bounds}{absent} | {} |",
            parameter.name, parameter.source
        );
        if let Kind::Word(list) = parameter.kind {
            if words.is_empty() {
                words += "\n| key | word | meaning |\n| --- | --- | --- |\n";
            }
            for word in list {
                let _ =
                    writeln!(words, "| `{}` | `{}` | {} |", parameter.name, word.name, cell(word.meaning));
            }
        }
    }
    text + &words
}

fn followed() -> String {
    let mut text = "\n| parameter | the kernel is told | follows |\n| --- | --- | --- |\n".to_owned();
    for parameter in parameters() {
        if let Some((told, closely)) = parameter.told {
            let _ = writeln!(text, "| `{}` | {told} | {closely} |", parameter.key());
        }
    }
    text
}

#[test]
fn the_tables_of_parameters_are_those_of_the_schema() {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let mut made = page.clone();
    for (name, table) in [("parameters", tables()), ("what the kernel follows", followed())] {
        let (begin, end) =
            (format!("<!-- {name}: made by a test -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = made.split_once(&begin).unwrap_or_else(|| panic!("{PAGE} has no {begin}"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{PAGE} has no {end}"));
        made = format!("{before}{begin}{table}\n{end}{after}");
    }
    if env::var_os("FARPATH_BLESS").is_some() {
        fs::write(PAGE, &made).expect("the page can be written");
        return;
    }
    assert!(
        made == page,
        "docs/stacks.md is not what the schema says: FARPATH_BLESS=1 writes its tables anew"
    );
}

/// Nobody could say what a parameter without these is.
#[test]
fn every_parameter_says_what_it_means() {
    for parameter in parameters() {
        let key = parameter.key();
        assert!(!parameter.meaning.is_empty(), "{key}");
        let absent = parameter.get(&Config::default()) == Value::Absent;
        assert!(!absent || parameter.absent.is_some(), "{key}: its default has no word");
        if let Kind::Word(words) = parameter.kind {
            assert!(words.iter().all(|word| !word.meaning.is_empty()), "{key}");
        }
        if let Value::Number(number) = parameter.get(&Config::default()) {
            assert!(parameter.within.contains(&number), "{key}");
        }
    }
}
