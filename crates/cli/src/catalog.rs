//! What ships: stacks, paths, experiments.

use crate::args::{CatalogArgs, StacksArgs};
use crate::error::CliError;
use crate::{Ending, output};
use farpath_emu::KernelProfile;
use farpath_experiment::{
    ShippedFile, Stack, Suggestion, shipped_experiments, shipped_paths, shipped_stacks,
};

/// `farpath stacks`
pub fn stacks(args: &StacksArgs) -> Result<Ending, CliError> {
    match &args.catalog.name {
        None if args.of_this_host => return this_host(args),
        Some(name) if args.linux => {
            let stack = Stack::load(name)?;
            output::print(&KernelProfile::of_stack(&stack, &stack).to_string())?;
        }
        Some(name) if args.resolved => output::print(&Stack::explain(name)?)?,
        name => show(&shipped_stacks(), name.as_deref(), "stack", "stacks")?,
    }
    Ok(Ending::Done)
}

/// `farpath stacks --of-this-host`
#[cfg(target_os = "linux")]
fn this_host(args: &StacksArgs) -> Result<Ending, CliError> {
    use farpath_emu::{Difference, HostFacts, HostStack};
    use serde_json::json;

    let facts = HostFacts::of_this_host(args.to).map_err(CliError::Route)?;
    let stack = HostStack::from_facts(&facts)?;
    let text = stack.to_string();
    // What is written has to be readable.
    Stack::parse(&text, "this host")?;
    for line in &stack.not_simulated {
        eprintln!("farpath: not simulated: {line}");
    }
    if let Some(file) = &args.out {
        crate::source::write_new("--out", file, &text)?;
    }
    if args.json {
        let differences: Vec<_> = stack
            .differences
            .iter()
            .map(|Difference { key, value, from }| json!({ "key": key, "value": value, "from": from }))
            .collect();
        let object = json!({
            "release": stack.release,
            "base": stack.base,
            "differences": differences,
            "not_simulated": stack.not_simulated,
        });
        output::print(&object.to_string())?;
    } else if args.out.is_none() {
        output::print(text.trim_end())?;
    }
    Ok(Ending::Done)
}

/// It cannot.
#[cfg(not(target_os = "linux"))]
fn this_host(_: &StacksArgs) -> Result<Ending, CliError> {
    Err(CliError::NotLinux("stacks --of-this-host"))
}

/// `farpath paths`
pub fn paths(args: &CatalogArgs) -> Result<Ending, CliError> {
    show(&shipped_paths(), args.name.as_deref(), "path", "paths")?;
    Ok(Ending::Done)
}

/// `farpath experiments`
pub fn experiments(args: &CatalogArgs) -> Result<Ending, CliError> {
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
            let nearest = || Suggestion::among(name, files.iter().map(|file| file.name)).nearest;
            file.ok_or_else(|| CliError::NoSuch { kind, command, name: name.to_owned(), nearest: nearest() })?
                .text
                .to_owned()
        }
        None => {
            let longest = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
            let lines = files.iter().map(|file| format!("{:longest$}  {}", file.name, file.title));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    Ok(output::print(&text)?)
}
