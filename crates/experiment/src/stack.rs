//! One end of a connection: a named set of TCP parameters.

use crate::error::{ExperimentError, Location, parse_toml};
use crate::library::Files;
use crate::linux::LinuxSettings;
use crate::parameters;
use crate::reader::Reader;
use farpath_tcp::config::Config;

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
}

impl Stack {
    /// Reads the text of a stack file. Parameters that it does not give are those of [`Config::default`].
    ///
    /// # Errors
    /// Text that is not TOML, keys that do not exist, values that are refused.
    pub fn parse(text: &str, origin: &str) -> Result<Stack, ExperimentError> {
        let table = parse_toml(origin, text)?;
        Reader::table(origin, "", &table, |reader| {
            let title = reader.required("title")?;
            // For the reader of the file.
            reader.optional::<String>("source")?;
            let mut config = Config::default();
            parameters::override_by(&mut config, reader)?;
            let mut linux = LinuxSettings::default();
            reader.section("linux", |table| linux.override_by(table))?;
            Ok(Stack { name: origin.to_owned(), title, config, linux })
        })
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
    /// Every parameter that is in force, as TOML that reads back to the same, but for the title.
    pub fn to_toml(&self) -> String {
        let mut text = parameters::to_toml(&self.config);
        let linux = self.linux.to_table();
        if !linux.is_empty() {
            let table = toml::Table::from_iter([("linux".to_owned(), toml::Value::Table(linux))]);
            text.push('\n');
            text.push_str(&table.to_string());
        }
        text
    }
}

/// Reads `[sender]` or `[receiver]`: a stack by name, and parameters that replace its own.
pub(crate) fn read_end(
    reader: &mut Reader<'_>,
    default: &str,
    files: &Files,
) -> Result<Stack, ExperimentError> {
    let name = reader.or("stack", default.to_owned())?;
    let stack = files.stack(&name, &reader.at("stack"))?;
    read_end_over(reader, stack, files)
}

/// Reads an end over `stack`, unless it names another one.
pub(crate) fn read_end_over(
    reader: &mut Reader<'_>,
    mut stack: Stack,
    files: &Files,
) -> Result<Stack, ExperimentError> {
    if let Some(name) = reader.optional::<String>("stack")? {
        stack = files.stack(&name, &reader.at("stack"))?;
    }
    parameters::override_by(&mut stack.config, reader)?;
    reader.section("linux", |table| stack.linux.override_by(table))?;
    Ok(stack)
}
