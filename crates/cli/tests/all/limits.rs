//! `docs/limits.md`: what it says of a bound is what the code has, and each bound has a test.

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A bound, by the cells of its row.
struct Row {
    what: String,
    default: String,
    setting: String,
    tests: String,
}

fn rows() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/limits.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [what, default, setting, _, tests] = cells[..] else { panic!("five cells: {line}") };
        let [what, default, setting, tests] = [what, default, setting, tests].map(str::to_owned);
        Row { what, default, setting, tests }
    };
    let lines = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| what"));
    lines.map(row).collect()
}

/// What is within backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The value of `const NAME: ... = ...;`, where it is a number, of bytes, of seconds, or a power of two.
fn value(source: &str, name: &str) -> Option<u64> {
    let declared = source.split(&format!("const {name}: ")).nth(1)?;
    let value = declared.split_once('=')?.1.split_once(';')?.0.trim();
    let inner =
        value.rsplit_once('(').map_or(value, |(_, inner)| inner.trim_end_matches(')')).replace('_', "");
    let product = |text: &str| text.split('*').map(|factor| factor.trim().parse::<u64>().ok()).product();
    match inner.split_once("<<") {
        Some((base, shift)) => Some(base.trim().parse::<u64>().ok()? << shift.trim().parse::<u32>().ok()?),
        None => product(&inner),
    }
}

/// Each number of `text` with what its unit makes of it.
fn numbers(text: &str) -> Vec<u64> {
    let mut words = text.split_whitespace().peekable();
    let mut numbers = Vec::new();
    while let Some(word) = words.next() {
        let Ok(mut number) = word.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>() else {
            continue;
        };
        // Thousands are apart by spaces.
        while let Some(more) = words.next_if(|next| {
            let digits = next.trim_end_matches([',', ';']);
            digits.len() == 3 && digits.bytes().all(|digit| digit.is_ascii_digit())
        }) {
            number = number * 1000 + more.trim_end_matches([',', ';']).parse::<u64>().unwrap();
        }
        let unit = words.peek().map_or("", |unit| unit.trim_end_matches([',', ';']));
        let by = match unit {
            "kB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "min" => 60,
            "h" => 3600,
            _ => 1,
        };
        numbers.push(number * by);
    }
    numbers
}

#[test]
fn a_default_is_what_the_code_has() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let sources: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let mut compared = 0;
    for row in rows() {
        for name in code(&row.what).chain(code(&row.default)) {
            let name = name.rsplit("::").next().unwrap();
            if name.len() < 3 || !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
                continue;
            }
            let values: Vec<u64> = sources.iter().filter_map(|source| value(source, name)).collect();
            assert!(!values.is_empty(), "{}: no constant `{name}`", row.what);
            let said = numbers(&row.default);
            assert!(
                values.iter().any(|value| said.contains(value)),
                "{}: {name} is {values:?}, said {said:?}",
                row.what
            );
            compared += 1;
        }
    }
    assert!(compared >= 30, "{compared}");
}

/// The help of `farpath serve`, which has more limits than any other verb, and of `measure`.
#[test]
fn help_has_the_settings_and_their_defaults() {
    let help = |verb: &str| {
        let output = Command::cargo_bin("farpath").unwrap().args([verb, "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let help = [help("serve"), help("measure")];
    let mut compared = 0;
    for row in rows() {
        for option in code(&row.setting).filter(|code| code.starts_with("--")) {
            let told = help.iter().find_map(|help| help.split(&format!("{option} ")).nth(1));
            let told = told.unwrap_or_else(|| panic!("{}: no help has {option}", row.what));
            let told = told.split("\n      --").next().unwrap();
            // Of the option's own row, not of what follows from it.
            let follows = ["(", " for ", " times "].iter().any(|word| row.default.contains(word));
            let owns = option.starts_with("--max-") && !follows;
            if let Some((_, default)) = told.split_once("[default: ").filter(|_| owns) {
                let default = default.split(']').next().unwrap().trim_matches('"');
                assert!(
                    row.default.starts_with(default),
                    "{}: {option} is {default}, said {}",
                    row.what,
                    row.default
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 3, "{compared}");
}

#[test]
fn every_bound_has_a_test_that_goes_beyond_it() {
    for row in rows() {
        let mut tests = 0;
        for test in code(&row.tests) {
            let (path, name) = test.split_once("::").unwrap_or_else(|| panic!("{}: {test}", row.what));
            let source = fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
            assert!(source.contains(&format!("fn {name}(")), "{}: {path} has no `{name}`", row.what);
            tests += 1;
        }
        assert!(tests > 0, "{}: no test", row.what);
    }
}
