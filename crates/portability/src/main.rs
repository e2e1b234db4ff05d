//! `farpath-portability MODULE` asks node for the digests of a module for wasm32 and compares them with this machine's: it ends with
//! 1 where one differs, and says which.

use farpath_portability::Case;
use std::process::{Command, ExitCode};
use std::{env, io};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/digests.mjs");

fn main() -> ExitCode {
    let [module] = &env::args().skip(1).collect::<Vec<_>>()[..] else {
        eprintln!("farpath-portability: expected the path of a module, farpath_portability.wasm");
        return ExitCode::from(2);
    };
    let theirs = match digests_of(module) {
        Ok(digests) => digests,
        Err(error) => {
            eprintln!("farpath-portability: {module}: {error}");
            return ExitCode::from(2);
        }
    };
    let cases = Case::all();
    if theirs.len() != cases.len() {
        eprintln!("farpath-portability: {} cases here, {} on wasm32", cases.len(), theirs.len());
        return ExitCode::FAILURE;
    }
    let differ: Vec<_> = cases.iter().zip(&theirs).filter(|(case, there)| case.digest() != **there).collect();
    for (case, _) in &differ {
        eprintln!("farpath-portability: not the same on wasm32: {}", case.name);
    }
    println!("{} of {} simulations are the same here and on wasm32", cases.len() - differ.len(), cases.len());
    if differ.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What node prints of the module.
fn digests_of(module: &str) -> io::Result<Vec<u64>> {
    let output = Command::new("node").args([SCRIPT, module]).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| line.parse().map_err(|_| io::Error::other(format!("`{line}` is no digest"))))
        .collect()
}
