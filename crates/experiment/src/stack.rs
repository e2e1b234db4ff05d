//! One end of a connection: a named set of TCP parameters.

use crate::error::{ExperimentError, Location, parse_toml};
use crate::host::HostOptions;
use crate::implementation::{Implementation, TOLD, keep_told, refuse_untold, untold};
use crate::library::{Catalog, Files, names_a_file};
use crate::linux::LinuxSettings;
use crate::parameters;
use crate::reader::Reader;
use farpath_tcp::config::{self, Config};

/// So many stacks may be based on each other.
pub const MAX_BASES: usize = 8;

/// A set of TCP parameters and what it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// As the experiment names it: a shipped stack, or a file.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Its parameters, the experiment's overrides included.
    pub config: Config,
    /// What the running kernel is told beside what follows from them.
    pub linux: LinuxSettings,
    /// Chance at the simulated host.
    pub host: HostOptions,
    /// Whose TCP it is.
    pub implementation: Implementation,
    /// Parameters that the experiment gives for this end and that somebody else's TCP is not told.
    pub untold: Vec<String>,
}

impl Stack {
    /// Reads the text of a stack file. Parameters that it does not give are those of its `base`, a shipped stack or another
    /// file; without one, those of [`Config::default`].
    ///
    /// # Errors
    /// Text that is not TOML, keys that do not exist, values that are refused, a base that cannot be read.
    pub fn parse(text: &str, origin: &str) -> Result<Stack, ExperimentError> {
        Stack::parse_below(text, &[origin])
    }

    /// Reads the text of the last file of `chain`, which is the base of the one before it, and so on.
    fn parse_below(text: &str, chain: &[&str]) -> Result<Stack, ExperimentError> {
        let origin = *chain.last().expect("a file has a name");
        let table = parse_toml(origin, text)?;
        Reader::table(origin, "", &table, |reader| {
            let title = reader.required("title")?;
            // For the reader of the file.
            reader.optional::<String>("source")?;
            let base = match reader.optional::<String>("base")? {
                Some(name) => Some(Stack::base(&name, &reader.location_of("base"), chain)?),
                None => None,
            };
            let (mut config, mut linux, mut host, inherited) = base
                .map(|base| (base.config, base.linux, base.host, base.implementation))
                .unwrap_or_default();
            let implementation = reader.or("implementation", inherited)?;
            refuse_untold(&implementation, reader)?;
            parameters::override_by(&mut config, reader)?;
            keep_told(&implementation, &mut config);
            reader.section("linux", |table| linux.override_by(table, &Files::default()))?;
            host.read_stack(reader)?;
            Ok(Stack {
                name: origin.to_owned(),
                title,
                config,
                linux,
                host,
                implementation,
                untold: Vec::new(),
            })
        })
    }

    fn base(name: &str, at: &Location, chain: &[&str]) -> Result<Stack, ExperimentError> {
        let (origin, text) = Catalog::Stacks.find(name, at)?;
        // A file may be called like a stack that ships.
        if names_a_file(name) && chain.contains(&origin.as_str()) {
            return Err(at.refuse(format!("{} is its own base: {}, {origin}", origin, chain.join(", "))));
        }
        if chain.len() > MAX_BASES {
            return Err(at.refuse(format!("{MAX_BASES} stacks are based on each other; no more are read")));
        }
        let chain: Vec<&str> = chain.iter().copied().chain([origin.as_str()]).collect();
        Stack::parse_below(&text, &chain)
            .map_err(|error| ExperimentError::Inside { at: at.clone(), source: Box::new(error) })
    }

    /// The shipped stack of this name, or the one in this file.
    ///
    /// # Errors
    /// There is none of this name; or its file is refused.
    pub fn load(name: &str) -> Result<Stack, ExperimentError> {
        // A file's name is seen from the folder of the file that names it; here that is nobody's.
        Files::default().stack(name, &Location { origin: "stack".to_owned(), key: String::new() })
    }
}

impl Stack {
    /// [`Stack::to_toml`] of the stack called `name`, with the stack or file that says it beside each value: `name` itself, the
    /// base that it has it from, or `default`.
    ///
    /// # Errors
    /// As [`Stack::load`].
    pub fn explain(name: &str) -> Result<String, ExperimentError> {
        let resolved = Stack::load(name)?.to_toml();
        let mut layers = Vec::new();
        let (mut next, mut at) =
            (Some(name.to_owned()), Location { origin: "stack".to_owned(), key: String::new() });
        while let Some(name) = next {
            let (origin, text) = Catalog::Stacks.find(&name, &at)?;
            let table = parse_toml(&origin, &text)?;
            at = Location { origin, key: "base".to_owned() };
            next = table.get("base").and_then(toml::Value::as_str).map(str::to_owned);
            layers.push((name, table));
        }
        let mut section = String::new();
        let lines = resolved.lines().map(|line| {
            if let Some(title) = line.strip_prefix('[') {
                title.trim_end_matches(']').clone_into(&mut section);
            }
            let Some((key, _)) = line.split_once(" = ") else { return line.to_owned() };
            let says = |table: &toml::Table| match section.as_str() {
                "" => table.contains_key(key),
                // Of `[linux]` whole tables are named.
                section => {
                    let inner = section.split('.').try_fold(table, |table, part| table.get(part)?.as_table());
                    inner.is_some_and(|table| table.contains_key(key.trim_matches('"')))
                }
            };
            let from = match layers.iter().find(|(_, table)| says(table)) {
                Some((name, _)) => name.clone(),
                None => default_of(&section, key),
            };
            format!("{line:39} # {from}")
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Every parameter that is in force or told to somebody else's TCP, as TOML that reads back to the same, but for the title.
    pub fn to_toml(&self) -> String {
        let mut text = if self.implementation.is_foreign() {
            let told = parameters::to_toml_where(&self.config, |row| TOLD.contains(&row.key().as_str()));
            format!("implementation = \"{}\"\n{told}", self.implementation)
        } else {
            parameters::to_toml(&self.config)
        };
        for (name, section) in [("linux", self.linux.to_table()), ("host", self.host.to_table())] {
            if !section.is_empty() {
                let table = toml::Table::from_iter([(name.to_owned(), toml::Value::Table(section))]);
                text.push('\n');
                text.push_str(&table.to_string());
            }
        }
        text
    }
}

/// How a value is called that no file says.
fn default_of(section: &str, key: &str) -> String {
    let row = config::parameters().find(|row| row.section == section && row.name == key);
    match row.map_or("", |row| row.source) {
        "" => "default".to_owned(),
        source => format!("default: {source}"),
    }
}

/// Reads `[sender]` or `[receiver]`: a stack by name, and parameters that replace its own.
pub(crate) fn read_end(
    reader: &mut Reader<'_>,
    default: &str,
    files: &Files,
) -> Result<Stack, ExperimentError> {
    let name = reader.or("stack", default.to_owned())?;
    let stack = files.stack(&name, &reader.location_of("stack"))?;
    read_end_over(reader, stack, files)
}

/// Reads an end over `stack`, unless it names another one.
pub(crate) fn read_end_over(
    reader: &mut Reader<'_>,
    mut stack: Stack,
    files: &Files,
) -> Result<Stack, ExperimentError> {
    if let Some(name) = reader.optional::<String>("stack")? {
        stack = files.stack(&name, &reader.location_of("stack"))?;
    }
    if let Some(implementation) = reader.optional("implementation")? {
        stack.implementation = implementation;
    }
    stack.untold = untold(&stack.implementation, reader);
    parameters::override_by(&mut stack.config, reader)?;
    keep_told(&stack.implementation, &mut stack.config);
    reader.section("linux", |table| stack.linux.override_by(table, files))?;
    stack.host.override_by(reader)?;
    Ok(stack)
}
