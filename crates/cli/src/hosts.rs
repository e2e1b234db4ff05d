//! `farpath hosts`: TCP implementations of others, as ends of a path.

use crate::args::{HostsArgs, HostsBuildArgs, HostsCommand, HostsListArgs};
use crate::error::CliError;
use crate::{Ending, output};
use farpath_foreign::recipe::{RECIPES, Recipe};
use farpath_foreign::{Catalog, Smoltcp};
use serde_json::json;

/// `farpath hosts`
pub fn hosts(args: &HostsArgs) -> Result<Ending, CliError> {
    match &args.command {
        HostsCommand::Build(args) => build(args),
        HostsCommand::List(args) => list(args),
    }
}

fn build(args: &HostsBuildArgs) -> Result<Ending, CliError> {
    let recipe = Recipe::find(&args.name)?;
    let place = recipe.make(&Catalog::of_user(), args.source.as_deref())?;
    let name = recipe.name;
    output::print(&format!(
        "{name}, in {}; `farpath simulate FILE --set sender.implementation={name}` has it as its sender",
        place.display()
    ))?;
    Ok(Ending::Done)
}

fn list(args: &HostsListArgs) -> Result<Ending, CliError> {
    let catalog = Catalog::of_user();
    let there = catalog.names();
    let mut hosts = vec![
        ("farpath".to_owned(), "Farpath's own, with the parameters of its stack".to_owned(), true),
        ("smoltcp".to_owned(), format!("{}, part of this program", Smoltcp::NAME), true),
    ];
    for recipe in RECIPES {
        let is_there = there.iter().any(|name| name == recipe.name);
        let remedy = format!("; not here: `farpath hosts build {}`, of {}", recipe.name, recipe.needs);
        let title = format!("{}{}", recipe.title, if is_there { "" } else { &remedy });
        hosts.push((recipe.name.to_owned(), title, is_there));
    }
    let known = |name: &&String| !RECIPES.iter().any(|recipe| recipe.name == **name);
    for name in there.iter().filter(known) {
        hosts.push((name.clone(), format!("a program in {}", catalog.folder().display()), true));
    }
    let widest = hosts.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let line = |(name, title, is_there): &(String, String, bool)| match args.json {
        true => json!({ "name": name, "title": title, "is_there": is_there }).to_string(),
        false => format!("{name:widest$}  {title}"),
    };
    output::print(&hosts.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    Ok(Ending::Done)
}
