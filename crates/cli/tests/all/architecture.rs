//! The house: which way dependencies point, and which crates do no I/O.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// The crates, in their order: each may depend on earlier ones only.
const ORDER: [&str; 32] = [
    "farpath-testing",
    "farpath-units",
    "farpath-files",
    "farpath-tcp",
    "farpath-script",
    "farpath-tia1039",
    "farpath-explicit-rate",
    "farpath-path",
    "farpath-elements",
    "farpath-model",
    "farpath-diagnose",
    "farpath-experiment",
    "farpath-run",
    "farpath-sim",
    "farpath-predict",
    "farpath-strategies",
    "farpath-traffic",
    "farpath-driver",
    "farpath-emu",
    "farpath-kernel",
    "farpath-foreign",
    "farpath-observe",
    "farpath-emulate",
    "farpath-engine",
    "farpath-sweep",
    "farpath-measure",
    "farpath-explain",
    "farpath-report",
    "farpath-cli",
    "farpath-python",
    "farpath-bench",
    "farpath-portability",
];

/// Crates that are told the time and do no I/O, and all that they may stand on.
const SANS_IO: [&str; 9] = [
    "farpath-units",
    "farpath-tcp",
    "farpath-script",
    "farpath-tia1039",
    "farpath-explicit-rate",
    "farpath-path",
    "farpath-elements",
    "farpath-model",
    "farpath-sim",
];
const ARITHMETIC_AND_TYPES: [&str; 20] = [
    // Formats and arithmetic.
    "arrayvec",
    "etherparse",
    "libm",
    // Where satellites are, and the dates of their elements.
    "autocfg",
    "chrono",
    "num-traits",
    "sgp4",
    // Tables.
    "hashbrown",
    // Generators and hashes that are told their seed.
    "rand_core",
    "rand_xoshiro",
    "siphasher",
    "serde",
    "serde_core",
    // At compile time.
    "cfg-if",
    "proc-macro2",
    "quote",
    "serde_derive",
    "syn",
    "thiserror",
    "unicode-ident",
];

#[test]
fn dependencies_point_one_way() {
    for (place, member) in ORDER.iter().enumerate() {
        for below in built_on(member).iter().filter(|name| name.starts_with("farpath-")) {
            let other = ORDER.iter().position(|known| known == below);
            assert!(other.is_some_and(|other| other < place), "{member} must not depend on {below}");
        }
    }
}

#[test]
fn every_crate_is_known_here() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let there: BTreeSet<String> = fs::read_dir(crates)
        .expect("the crates are beside this one")
        .map(|entry| format!("farpath-{}", entry.expect("readable").file_name().display()))
        .collect();
    assert_eq!(there, ORDER.iter().map(|member| member.to_string()).collect());
}

#[test]
fn the_core_stands_on_nothing_that_does_io() {
    for member in SANS_IO {
        for name in built_on(member).iter().filter(|name| !name.starts_with("farpath-")) {
            let plain = name.strip_suffix("-impl").unwrap_or(name);
            let allowed = ARITHMETIC_AND_TYPES.contains(&plain);
            assert!(allowed, "{member} stands on {name}: if that does no I/O, say so in this test");
        }
    }
}

#[test]
fn the_command_is_built_with_rust_and_a_linker_alone() {
    // `cargo install --path crates/cli`, on a machine without headers of libraries: what links them is a feature that is off.
    let links: Vec<String> =
        built_on("farpath-cli").into_iter().filter(|name| name.ends_with("-sys")).collect();
    // Numbers of the kernel's and of Windows' interfaces, and calls of sockets: no library.
    let bindings = ["linux-raw-sys", "netlink-sys", "windows-sys"];
    assert!(links.iter().all(|name| bindings.contains(&name.as_str())), "{links:?}");
}

/// Everything that a package is built on, on this machine; what is for tests alone is left out.
fn built_on(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--package",
            package,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there: it runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != package).map(str::to_owned).collect()
}

/// A path knows no protocol, and the wire format of explicit rate no TCP endpoint.
#[test]
fn paths_and_wire_formats_stand_on_units_alone() {
    for member in ["farpath-path", "farpath-tia1039"] {
        let below: Vec<String> =
            built_on(member).into_iter().filter(|name| name.starts_with("farpath-")).collect();
        assert_eq!(below, ["farpath-units"], "{member}");
    }
}
