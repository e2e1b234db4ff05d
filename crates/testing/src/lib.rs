//! What tests need of a machine beyond a compiler, and how a test says that it was skipped.
//!
//! A skip is printed and, where `FARPATH_SKIPS` names a file, written there: `make test` ends with a table of them. Where
//! `FARPATH_REQUIRE` names the need, a skip is a failure.

use std::env;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Write};
use std::thread;

/// The names of needs, separated by commas, or `all`: a test that lacks one of them fails.
pub const REQUIRE: &str = "FARPATH_REQUIRE";

/// A file: each skip is appended to it as a line of need, test and reason, separated by tabs.
pub const SKIPS: &str = "FARPATH_SKIPS";

macro_rules! needs {
    ($($(#[$doc:meta])* $need:ident = $name:literal,)*) => {
        /// What a test can need of a machine.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Need {
            $($(#[$doc])* $need,)*
        }

        impl Need {
            /// All of them.
            pub const ALL: &[Need] = &[$(Need::$need),*];

            /// As `FARPATH_REQUIRE` and the table of skips call it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Need::$need => $name,)*
                }
            }
        }
    };
}

needs! {
    /// Network namespaces and devices of one's own: root, or user namespaces.
    Root = "root",
    /// BPF programs of the explicit-rate driver, and the compiler that made them.
    Bpf = "bpf",
    /// A browser that shows reports.
    Chromium = "chromium",
    /// tshark, which reads captures as somebody else would.
    Tshark = "tshark",
    /// A kernel for virtual time.
    Virtual = "virtual",
    /// lwIP and libslirp as hosts: `make hosts`.
    Hosts = "hosts",
    /// Python 3.11 with the packages of the Python face.
    Python = "python",
    /// iperf3, the load of the benchmarks.
    Iperf3 = "iperf3",
    /// The target wasm32-unknown-unknown, which shows that the core does no I/O.
    Wasm = "wasm",
    /// Targets of other systems and processors, for which the command is checked.
    Systems = "systems",
    /// A running kernel that is new enough for a certain option.
    Kernel = "kernel",
    /// Go's compiler, for a program that is not ours. Never required: nothing of ours is made with it.
    Go = "go",
    /// RustSec's list of what is known to be wrong with crates, on GitHub. Never required: it is not part of the machine.
    Advisories = "advisories",
    /// A processor in time: what depends on it is asked again, and skipped where the machine is too busy. Never required: no
    /// machine has it always.
    Time = "time",
}

impl Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Says that this test, or the part of it that `why` names, is skipped because the machine lacks `need`.
///
/// # Panics
/// `FARPATH_REQUIRE` asks for the need, or for one that there is not.
pub fn skip(need: Need, why: impl Display) {
    let thread = thread::current();
    let test = env::var("NEXTEST_TEST_NAME").ok();
    skip_as(need, test.as_deref().or(thread.name()).unwrap_or("unknown"), why);
}

/// As [`skip`], for a test of this name.
///
/// # Panics
/// As [`skip`].
pub fn skip_as(need: Need, test: &str, why: impl Display) {
    let required = env::var(REQUIRE).unwrap_or_default();
    let why = one_line(&why.to_string());
    let asked = is_required(&required, need).unwrap_or_else(|error| panic!("{error}"));
    assert!(!asked, "{REQUIRE} has `{need}`, which is missing: {why}");
    // Past the test harness, which keeps what a passing test prints to itself.
    let _ = writeln!(io::stderr(), "SKIPPED [{need}]: {why}");
    let Some(path) = env::var_os(SKIPS).filter(|path| !path.is_empty()) else { return };
    // One write: other tests append to it too.
    let line = format!("{need}\t{test}\t{why}\n");
    let written = File::options()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{SKIPS}: {}: {error}", path.display()));
}

/// Whether the value of `FARPATH_REQUIRE` asks for `need`.
fn is_required(required: &str, need: Need) -> Result<bool, String> {
    let mut found = false;
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if name != "all" && !Need::ALL.iter().any(|known| known.name() == name) {
            let names: Vec<_> = Need::ALL.iter().map(|need| need.name()).collect();
            return Err(format!("{REQUIRE}: expected `all` or some of {}, found `{name}`", names.join(", ")));
        }
        found |= name == need.name() || name == "all";
    }
    Ok(found && !matches!(need, Need::Go | Need::Time | Need::Advisories))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_required_by_its_name_or_by_all() {
        assert_eq!(is_required("", Need::Bpf), Ok(false));
        assert_eq!(is_required("root, bpf", Need::Bpf), Ok(true));
        assert_eq!(is_required("root,tshark", Need::Bpf), Ok(false));
        assert_eq!(is_required("all", Need::Virtual), Ok(true));
        assert_eq!(is_required("all,time", Need::Time), Ok(false), "no machine is always in time");
    }

    #[test]
    fn a_need_that_there_is_not_is_refused() {
        let error = is_required("root,chrome", Need::Root).unwrap_err();
        assert!(error.starts_with("FARPATH_REQUIRE: expected `all` or some of root, bpf"), "{error}");
        assert!(error.ends_with("found `chrome`"), "{error}");
    }

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(one_line("no hosts:\n\tnot\npermitted"), "no hosts: not permitted");
    }
}
