//! An experiment file with changes written into it: the user's comments and order are kept.

use crate::document::{Document, Override};
use crate::element::{element_name, path_list};
use crate::error::{ExperimentError, Location, parse_toml};
use crate::quick_path::NOT_GIVEN;
use crate::sweep::{Change, label};
use crate::{Experiment, Point};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

impl Experiment {
    /// The text of a file that is point `index` of this experiment with `changes`, each marked by a comment with the
    /// value that it had. Comments and order of the file stay; its sweep and its case become the values of that point,
    /// and what was published goes, since it was not published for this. `head` is put above it, a comment a line.
    ///
    /// # Errors
    /// A change that [`Experiment::only`] refuses.
    pub fn rewritten(
        &self,
        index: usize,
        changes: &[Override],
        head: &[String],
    ) -> Result<String, ExperimentError> {
        let wanted = self.only(index, changes)?;
        let all: Vec<Override> = self.changes_of(index)?.into_iter().chain(changes.iter().cloned()).collect();
        let at = |key: &str| Location { origin: self.origin.clone(), key: key.to_owned() };
        let mut text: DocumentMut = self
            .text
            .parse()
            .map_err(|error: toml_edit::TomlError| at("").refuse(format!("not TOML: {}", error.message())))?;
        for gone in ["sweep", "published", "case", "cases"] {
            text.remove(gone);
        }
        let mut table = parse_toml(&self.origin, &self.text)?;
        table.remove("sweep");
        let mut document = Document::new(&self.origin, table)?;
        let given: Vec<Change> =
            all.into_iter().map(|change| (change.key.clone(), change.value, at(&change.key))).collect();
        let of_case = document.take_case(&given.iter().collect::<Vec<_>>())?;
        let mut ordered: Vec<&Change> =
            of_case.iter().chain(&given).filter(|(key, ..)| key != "case").collect();
        // As when an experiment is read: a whole path before its elements.
        ordered.sort_by_key(|(key, ..)| key.matches('.').count());
        for (name, new, _) in ordered {
            let key = document.canonical(name);
            let segments: Vec<&str> = key.split('.').collect();
            let value = to_edit(new);
            match *segments.as_slice() {
                ["path", name, ref rest @ ..] => {
                    self.spell_path_out(&mut text, &document)?;
                    let home = element(&mut text, name).ok_or_else(|| at(&key).refuse("no such element"))?;
                    home.put(rest, value);
                }
                ["flow", number, ref rest @ ..] => {
                    let number = number.parse().unwrap_or(usize::MAX);
                    let home = entries(&mut text, "flow").into_iter().nth(number);
                    home.ok_or_else(|| at(&key).refuse("no such group of flows"))?.put(rest, value);
                }
                _ => Home { table: text.as_table_mut(), inline: false }.put(&segments, value),
            }
            document.set(name, new.clone(), name.clone())?;
        }
        let mut above: String =
            head.iter().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect();
        if !above.is_empty() {
            above.push('\n');
        }
        let text = above + text.to_string().trim_start();
        self.check(&text, &wanted.point(0))?;
        Ok(text)
    }

    /// What was written reads back to what was meant.
    fn check(&self, text: &str, wanted: &Point) -> Result<(), ExperimentError> {
        let read = Experiment::parse(text, &self.origin, &[])?;
        if read.points().len() == 1 && read.point(0).scenario == wanted.scenario {
            return Ok(());
        }
        let at = Location { origin: self.origin.clone(), key: String::new() };
        Err(at.refuse(
            "the changes cannot be written into this file so that it reads back to the same experiment",
        ))
    }

    /// Puts the elements of a ready-made path in place of its name.
    fn spell_path_out(&self, text: &mut DocumentMut, document: &Document) -> Result<(), ExperimentError> {
        if text.get("path").and_then(Item::as_str).is_none() {
            return Ok(());
        }
        let at = Location { origin: self.origin.clone(), key: "path".to_owned() };
        let elements = match document.table.get("path") {
            Some(path) => path_list(path, &at, &document.files)?,
            None => return Ok(()),
        };
        let mut tables = ArrayOfTables::new();
        for element in elements.iter().filter_map(toml::Value::as_table) {
            let mut table = Table::new();
            for (key, value) in element {
                table.insert(key, Item::Value(to_edit(value)));
            }
            tables.push(table);
        }
        text["path"] = Item::ArrayOfTables(tables);
        Ok(())
    }
}

/// The same value, to be written.
fn to_edit(value: &toml::Value) -> Value {
    match value {
        toml::Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| (key.as_str(), to_edit(value)));
            Value::InlineTable(InlineTable::from_iter(pairs))
        }
        toml::Value::Array(list) => Value::Array(list.iter().map(to_edit).collect()),
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        // A bit error rate of 1e-9, not 0.000000001.
        toml::Value::Float(number) => {
            let short = label(value).parse().ok().filter(Value::is_float);
            short.unwrap_or_else(|| (*number).into())
        }
        toml::Value::Boolean(switch) => (*switch).into(),
        toml::Value::Datetime(moment) => moment.to_string().into(),
    }
}

/// A table that takes a change.
struct Home<'a> {
    table: &'a mut dyn TableLike,
    /// Written within one line, where there is no room for comments.
    inline: bool,
}

/// The tables of a list, which is written as `[[key]]` or as `key = [{ .. }]`.
fn entries<'a>(text: &'a mut DocumentMut, key: &str) -> Vec<Home<'a>> {
    match text.get_mut(key) {
        Some(Item::ArrayOfTables(tables)) => {
            tables.iter_mut().map(|table| Home { table, inline: false }).collect()
        }
        Some(Item::Value(Value::Array(list))) => list
            .iter_mut()
            .filter_map(|value| Some(Home { table: value.as_inline_table_mut()?, inline: true }))
            .collect(),
        _ => Vec::new(),
    }
}

fn element<'a>(text: &'a mut DocumentMut, name: &str) -> Option<Home<'a>> {
    let named = |home: &Home<'_>| {
        let plain: toml::Table = ["name", "element"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), home.table.get(key)?.as_str()?.into())))
            .collect();
        element_name(&plain) == Some(name)
    };
    entries(text, "path").into_iter().find(named)
}

impl Home<'_> {
    /// Puts `value` at the end of `segments`, and says above it what stood there.
    fn put(self, segments: &[&str], value: Value) {
        match *segments {
            [] => {}
            [key] => self.put_here(key, value),
            [first, ref rest @ ..] => {
                let inner = self.table.entry(first).or_insert_with(|| {
                    let mut table = Table::new();
                    // `[sender]` at the top, `rto.min = ..` below it.
                    table.set_dotted(!["sender", "receiver", "transfer", "output"].contains(&first));
                    Item::Table(table)
                });
                if inner.as_table_like().is_none() && ["forward", "reverse"].contains(&rest[0]) {
                    let mut both = inner.as_value().cloned().unwrap_or_else(|| Value::from(false));
                    both.decor_mut().clear();
                    let each = ["forward", "reverse"].map(|way| (way, both.clone()));
                    *inner = Item::Value(Value::InlineTable(InlineTable::from_iter(each)));
                }
                let inline = self.inline || inner.is_inline_table();
                if let Some(table) = inner.as_table_like_mut() {
                    Home { table, inline }.put(rest, value);
                }
            }
        }
    }

    fn put_here(self, key: &str, mut value: Value) {
        let before = self.table.get(key).and_then(Item::as_value).cloned();
        if before.as_ref().is_some_and(|before| shown(before) == shown(&value)) {
            return;
        }
        let note = match &before {
            Some(before) => format!("# changed; was {}", shown(before)),
            None => "# changed; was not given".to_owned(),
        };
        // A comment behind the value stays.
        if let Some(before) = before {
            *value.decor_mut() = before.decor().clone();
            // Now it is given.
            let behind = before.decor().suffix().and_then(|text| text.as_str()).unwrap_or_default();
            if behind.trim_start().starts_with(NOT_GIVEN) {
                value.decor_mut().set_suffix("");
            }
        }
        match self.table.get_mut(key) {
            Some(slot) => *slot = Item::Value(value),
            None => {
                self.table.insert(key, Item::Value(value));
            }
        }
        if let Some(mut key) = self.table.key_mut(key).filter(|_| !self.inline) {
            let above = key.leaf_decor().prefix().and_then(|text| text.as_str()).unwrap_or_default();
            let above = format!("{above}{note}\n");
            key.leaf_decor_mut().set_prefix(above);
        }
    }
}

/// A value without what stands around it.
fn shown(value: &Value) -> String {
    let text = value.clone().decorated("", "").to_string();
    text.parse::<toml::Value>().map_or(text.clone(), |value| match value {
        toml::Value::Table(_) | toml::Value::Array(_) => text,
        plain => label(&plain),
    })
}
