//! `farpath kernel`: kernels for emulation in virtual time.

use crate::args::{BuildArgs, InfoArgs, KernelArgs, KernelCommand, ListArgs};
use crate::error::CliError;
use crate::{Ending, interrupt, output, progress};
use farpath_emu::doctor::{Finding, State};
use farpath_kernel::{About, Catalog, Kernel, KernelError, Recipe, Source, Step};
use serde_json::{Value, json};
use std::fmt::Write;

/// Files that 6.12 compiles in this configuration: for a bar.
const FILES: u64 = 619;

/// `farpath kernel`
pub fn kernel(args: &KernelArgs) -> Result<Ending, CliError> {
    match &args.command {
        KernelCommand::Build(args) => build(args),
        KernelCommand::List(args) => list(args),
        KernelCommand::Info(args) => info(args),
    }
}

fn build(args: &BuildArgs) -> Result<Ending, CliError> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let recipe = Recipe {
        source: match &args.source {
            Some(folder) => Source::Tree(folder.clone()),
            None => Source::debian(&args.linux),
        },
        hz: args.hz,
        name: args.name.clone(),
        catalog: Catalog::of_user(),
        jobs: args.jobs.map_or_else(cores, usize::from),
    };
    let bar = progress::bar(FILES, "files");
    let mut last = None;
    let made = recipe.make(args.again, interrupt::flag(), &mut |step, files| {
        if last.replace(step) != Some(step) {
            bar.println(&format!("farpath: {step}"));
        }
        if step == Step::Compile {
            bar.set_position((files as u64).min(FILES));
        }
    });
    drop(bar);
    let kernel = made?;
    output::print(&format!(
        "{}, in {}; `farpath emulate FILE --clock virtual --kernel {}` runs on it",
        kernel.about.name,
        kernel.folder.display(),
        kernel.about.name
    ))?;
    Ok(Ending::Done)
}

fn list(args: &ListArgs) -> Result<Ending, CliError> {
    let catalog = Catalog::of_user();
    let kernels = catalog.kernels()?;
    let text = if args.json {
        kernels.iter().map(|kernel| describe(kernel).to_string()).collect::<Vec<_>>().join("\n")
    } else if kernels.is_empty() {
        format!("No kernel is in {}: `farpath kernel build` makes one.", catalog.folder().display())
    } else {
        let widest = kernels.iter().map(|kernel| kernel.about.name.len()).max().unwrap_or(0);
        let line = |kernel: &Kernel| {
            let About { name, release, hz, source, .. } = &kernel.about;
            format!("{name:widest$}  Linux {release}, {hz} ticks a second, from {source}")
        };
        kernels.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    if !text.is_empty() {
        output::print(&text)?;
    }
    Ok(Ending::Done)
}

fn info(args: &InfoArgs) -> Result<Ending, CliError> {
    let kernel = Catalog::of_user().find(args.name.as_deref())?;
    if args.json {
        output::print(&describe(&kernel).to_string())?;
        return Ok(Ending::Done);
    }
    let About { name, release, hz, source, compiler, recipe } = &kernel.about;
    let mut text = String::new();
    for (what, value) in [
        ("name", name.clone()),
        ("release", release.clone()),
        ("ticks a second", hz.to_string()),
        ("sources", source.clone()),
        ("compiler", compiler.clone()),
        ("recipe, SHA-256", recipe.clone()),
        ("program", kernel.program().display().to_string()),
        ("configuration", kernel.config().display().to_string()),
    ] {
        let _ = writeln!(text, "{what:15}  {value}");
    }
    output::print(&text)?;
    Ok(Ending::Done)
}

fn describe(kernel: &Kernel) -> Value {
    let mut json = serde_json::to_value(&kernel.about).expect("plain data");
    json["program"] = json!(kernel.program());
    json["configuration"] = json!(kernel.config());
    json
}

/// For `farpath doctor`: whether a user-mode kernel runs here. The first of the catalog is started.
pub fn finding() -> Finding {
    let (state, found, remedy) = match runs_here() {
        Ok(name) => (State::Ok, format!("{name} came up, and went off again"), None),
        Err((found, remedy)) => (State::Limited, found, remedy),
    };
    let meaning = "emulation is in real time only: `--clock virtual` does not run";
    Finding { name: "virtual time", state, found, meaning: meaning.to_owned(), remedy }
}

/// The kernel that runs; else why none does, and what helps.
fn runs_here() -> Result<String, (String, Option<String>)> {
    if !cfg!(target_arch = "x86_64") {
        return Err((format!("user-mode Linux is of x86-64, this is {}", std::env::consts::ARCH), None));
    }
    let told = |error: &dyn std::error::Error| (error.to_string(), None);
    let kernel = match Catalog::of_user().find(None) {
        Ok(kernel) => kernel,
        Err(KernelError::None) => {
            let remedy = "run `farpath kernel build`, some four minutes of one core";
            return Err(("no kernel is built".to_owned(), Some(remedy.to_owned())));
        }
        Err(error) => return Err(told(&error)),
    };
    let ended = farpath_emulate::kernel_runs(&kernel).map_err(|error| told(&error))?;
    match ended.why() {
        None => Ok(kernel.about.name),
        // Its console says what the machine forbids: to trace a process, to run memory of a file.
        Some(why) => {
            let remedy = "a user-mode kernel needs ptrace, and a /dev/shm from which programs may be run";
            Err((format!("{}: {why}", kernel.about.name), Some(remedy.to_owned())))
        }
    }
}
