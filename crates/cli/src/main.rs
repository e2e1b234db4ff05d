//! The `farpath` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    farpath_cli::main(std::env::args_os())
}
