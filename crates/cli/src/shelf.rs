//! What ships: stacks, paths, experiments.

use crate::args::{ShelfArgs, StacksArgs};
use crate::error::CliError;
use crate::{Ending, output};
use farpath_emu::Dress;
use farpath_experiment::{ShippedFile, Stack, shipped_experiments, shipped_paths, shipped_stacks};

/// `farpath stacks`
pub fn stacks(args: &StacksArgs) -> Result<Ending, CliError> {
    match &args.shelf.name {
        Some(name) if args.linux => {
            let stack = Stack::load(name)?;
            output::print(&Dress::of_stack(&stack, &stack).to_string())?;
        }
        Some(name) if args.resolved => output::print(&Stack::explain(name)?)?,
        name => show(&shipped_stacks(), name.as_deref(), "stack", "stacks")?,
    }
    Ok(Ending::Done)
}

/// `farpath paths`
pub fn paths(args: &ShelfArgs) -> Result<Ending, CliError> {
    show(&shipped_paths(), args.name.as_deref(), "path", "paths")?;
    Ok(Ending::Done)
}

/// `farpath experiments`
pub fn experiments(args: &ShelfArgs) -> Result<Ending, CliError> {
    show(&shipped_experiments(), args.name.as_deref(), "experiment", "experiments")?;
    Ok(Ending::Done)
}

fn show(
    files: &[ShippedFile],
    name: Option<&str>,
    kind: &'static str,
    command: &'static str,
) -> Result<(), CliError> {
    let text = match name {
        Some(name) => {
            let file = files.iter().find(|file| file.name == name);
            file.ok_or_else(|| CliError::NoSuch { kind, command, name: name.to_owned() })?.text.to_owned()
        }
        None => {
            let longest = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
            let lines = files.iter().map(|file| format!("{:longest$}  {}", file.name, file.title));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    Ok(output::print(&text)?)
}
