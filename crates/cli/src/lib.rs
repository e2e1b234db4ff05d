//! The `farpath` command: parse, call, print. A library, so that the Python package can be the same command.
//!
//! Results go to stdout, messages to stderr. Exit codes: 0 done, 1 a comparison failed or an emulated run is void, 2 an
//! error, 130 interrupted.

mod args;
mod catalog;
mod diagnose;
mod doctor;
mod driver;
mod error;
#[cfg(target_os = "linux")]
mod exec;
mod explain;
mod formula;
mod generate;
mod hosts;
mod import;
mod interrupt;
#[cfg(target_os = "linux")]
mod kernel;
mod measure;
mod output;
mod progress;
mod qos;
mod radius;
mod report;
mod reproduce;
mod result_sink;
mod router;
mod run;
mod script;
mod serve;
#[cfg(target_os = "linux")]
mod shell;
mod source;
mod sweep;
mod trace;
mod usage;

pub use args::parse_loss;
pub use radius::{RadiusQuestion, Watch, radius_lines};

use args::{Cli, Command, EngineName, ExplicitRateCommand};
use clap::Parser;
use error::CliError;
use std::ffi::OsString;
use std::process::ExitCode;

/// How a command that worked ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Done,
    /// A comparison failed, or a run is void.
    Failed,
    /// Something was not understood, and all that was has been printed.
    Refused,
    /// Ctrl-C; what was finished has been printed.
    Interrupted,
    /// As a command has ended that was run.
    #[cfg(target_os = "linux")]
    Code(u8),
}

/// Runs the command with these arguments, the program's name first.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(exit_code(args))
}

/// The same for a host that has an exit code of its own.
pub fn exit_code(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args = under_new_name(args.into_iter().collect());
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            let error = usage::in_plain_words(error, &args);
            // Help and version come this way too, and go to stdout with code 0.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return code;
        }
    };
    match configure().and_then(|()| run_command(cli.command)) {
        Ok(Ending::Done) => 0,
        Ok(Ending::Failed) => 1,
        Ok(Ending::Refused) => 2,
        Ok(Ending::Interrupted) => 130,
        #[cfg(target_os = "linux")]
        Ok(Ending::Code(code)) => code,
        // Whoever reads our output has seen enough.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            output::tell(&error.describe());
            2
        }
    }
}

/// Verbs that have another name now. The old ones are understood until the next release.
const RENAMED: [(&str, &[&str]); 5] = [
    ("agree", &["compare"]),
    ("papers", &["reproduce"]),
    ("driver", &["explicit-rate", "driver"]),
    ("router", &["explicit-rate", "router"]),
    ("qos", &["explicit-rate", "qos"]),
];

/// The arguments with the verb's name of today, and a line on stderr where it was called by an old one.
fn under_new_name(mut args: Vec<OsString>) -> Vec<OsString> {
    let Some((old, new)) = args.get(1).and_then(|verb| RENAMED.iter().find(|(old, _)| verb == old)) else {
        return args;
    };
    eprintln!(
        "farpath: `farpath {old}` is now `farpath {}`; the next release no longer has the old name",
        new.join(" ")
    );
    args.splice(1..2, new.iter().map(OsString::from));
    args
}

/// Takes from the environment what is set there.
fn configure() -> Result<(), CliError> {
    progress::configure()?;
    farpath_files::configure().map_err(|(found, source)| CliError::Environment {
        name: farpath_files::MAX_FILE_VARIABLE,
        expected: "a size such as `64 MB`",
        found,
        source: Box::new(source),
    })
}

fn run_command(command: Command) -> Result<Ending, CliError> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Predict(args) => run::run(&args.with(EngineName::Predict)),
        Command::Simulate(args) => run::run(&args.with(EngineName::Simulate)),
        Command::Emulate(args) => run::run(&args.into()),
        #[cfg(target_os = "linux")]
        Command::Shell(args) => shell::shell(&args),
        #[cfg(target_os = "linux")]
        Command::Exec(args) => exec::exec(&args),
        Command::Measure(args) => measure::measure(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Compare(args) => run::compare(args.into()),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Report(args) => report::report(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Diagnose(args) => diagnose::diagnose(&args),
        Command::Script(args) => script::script(&args),
        Command::Radius(args) => radius::radius(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::ExplicitRate(args) => match args.command {
            ExplicitRateCommand::Driver(args) => driver::driver(&args),
            ExplicitRateCommand::Router(args) => router::router(&args),
            ExplicitRateCommand::Qos(args) => qos::qos(&args),
        },
        #[cfg(target_os = "linux")]
        Command::Kernel(args) => kernel::kernel(&args),
        #[cfg(target_os = "linux")]
        Command::Guest => run::guest(),
        #[cfg(target_os = "linux")]
        Command::Helper { work_dir } => run::helper(&work_dir),
        Command::Formula(args) => formula::formula(&args),
        Command::Hosts(args) => hosts::hosts(&args),
        Command::Import(args) => import::import(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Generate(args) => generate::generate(&args),
        Command::Stacks(args) => catalog::stacks(&args),
        Command::Paths(args) => catalog::paths(&args),
        Command::Experiments(args) => catalog::experiments(&args),
    }
}
