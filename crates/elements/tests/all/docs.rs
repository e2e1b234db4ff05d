//! What elements say of their keys: `docs/experiment-files.md` has it, and it is what they read.

use core::str::FromStr;
use farpath_elements::keys::{Keys, ReadValue, Source};
use farpath_elements::{ElementKind, element_docs, element_names};
use farpath_path::PerDirection;
use farpath_units::{Duration, ParseQuantityError};
use std::collections::{BTreeMap, BTreeSet};
use std::{env, fs};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiment-files.md");
const HEAD: &str = "| element | parameter | value | default |\n| --- | --- | --- | --- |\n";

/// `FARPATH_BLESS=1` writes the table anew.
#[test]
fn the_page_has_the_rows_that_elements_give() {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let (before, rest) = page.split_once(HEAD).expect("the table is there");
    let (found, after) = rest.split_once("\n\n").expect("the table ends");
    let expected = element_docs().collect::<Vec<_>>().join("\n");
    if env::var_os("FARPATH_BLESS").is_some() {
        fs::write(PAGE, format!("{before}{HEAD}{expected}\n\n{after}")).expect("the page can be written");
    } else {
        assert_eq!(found, expected, "FARPATH_BLESS=1 writes it anew");
    }
}

#[test]
fn every_key_that_is_read_has_its_row_and_no_other() {
    let documented: BTreeMap<&str, BTreeSet<&str>> = element_docs().flat_map(documented).collect();
    let mut read = BTreeMap::new();
    for (name, principal) in element_names() {
        let mut keys = Asked::default();
        ElementKind::read(name, &mut keys).expect("it is one of the names").expect("samples are good");
        assert!(principal.is_none_or(|principal| keys.0.contains(principal)), "{name}");
        read.insert(name, keys.0);
    }
    assert_eq!(documented, read);
}

/// The names of a kind, and the keys of its rows.
fn documented(rows: &'static str) -> impl Iterator<Item = (&'static str, BTreeSet<&'static str>)> {
    let quoted = |column: &'static str| column.split('`').skip(1).step_by(2);
    let columns: Vec<Vec<&str>> = rows.lines().map(|row| row.split(" | ").collect()).collect();
    let keys: BTreeSet<&str> = columns.iter().flat_map(|row| quoted(row[1])).collect();
    let name = columns[0][0];
    quoted(name).map(move |name| (name, keys.clone()))
}

/// The keys that were asked for. There is a value for those that have to be there, and none for the others.
#[derive(Default)]
struct Asked(BTreeSet<&'static str>);

type Refused = String;

impl Keys for Asked {
    type Error = Refused;

    fn has(&mut self, key: &'static str) -> bool {
        self.0.insert(key);
        false
    }

    fn optional<T: ReadValue>(&mut self, key: &'static str) -> Result<Option<T>, Refused> {
        self.0.insert(key);
        Ok(None)
    }

    fn required<T: ReadValue>(&mut self, key: &'static str) -> Result<T, Refused> {
        self.0.insert(key);
        T::read(&Sample)
    }

    fn each_way<T: ReadValue + Clone>(
        &mut self,
        key: &'static str,
        _rest: Option<T>,
    ) -> Result<PerDirection<T>, Refused> {
        self.required(key).map(PerDirection::both)
    }

    fn propagation(&mut self) -> Result<PerDirection<Duration>, Refused> {
        self.0.extend(["distance", "medium"]);
        self.each_way("delay", None)
    }

    fn refuse(&self, key: &str, reason: String) -> Refused {
        format!("{key}: {reason}")
    }
}

/// A value that is good for everything that has to be there.
struct Sample;

impl Source for Sample {
    type Error = Refused;
    type Keys = Asked;

    fn text(&self) -> Option<&str> {
        Some("sample")
    }

    fn file(&self) -> Result<(String, String), Refused> {
        Ok(("sample".to_owned(), "1\n".to_owned()))
    }

    fn integer(&self) -> Option<i64> {
        Some(1)
    }

    fn switch(&self) -> Option<bool> {
        Some(true)
    }

    fn is_number(&self) -> bool {
        false
    }

    fn has_key(&self, _key: &str) -> bool {
        false
    }

    fn list<T>(&self, _read: impl FnMut(&Sample) -> Result<T, Refused>) -> Option<Result<Vec<T>, Refused>> {
        Some(Ok(Vec::new()))
    }

    fn table<T>(&self, _read: impl FnOnce(&mut Asked) -> Result<T, Refused>) -> Option<Result<T, Refused>> {
        None
    }

    fn quantity<T: FromStr<Err = ParseQuantityError>>(&self, expected: &str) -> Result<T, Refused> {
        let samples = ["10 ms", "10 kB", "10 kbit/s", "1 W", "1 %", "1e-7"];
        samples.iter().find_map(|text| text.parse().ok()).ok_or_else(|| self.wrong_type(expected))
    }

    fn unless<T: ReadValue>(&self, _none: &str) -> Result<Option<T>, Refused> {
        T::read(self).map(Some)
    }

    fn wrong_type(&self, expected: &str) -> Refused {
        expected.to_owned()
    }

    fn refuse(&self, reason: String) -> Refused {
        reason
    }

    fn with_hint(error: Refused, hint: &str) -> Refused {
        error + hint
    }

    fn expecting(_error: Refused, expected: &str) -> Refused {
        expected.to_owned()
    }
}
