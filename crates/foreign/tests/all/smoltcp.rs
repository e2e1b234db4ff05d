//! smoltcp as a host.

use farpath_foreign::Smoltcp;

/// What results call it is what is built in.
#[test]
fn its_name_has_its_version() {
    let lock = include_str!("../../../../Cargo.lock");
    let version = lock
        .split("[[package]]")
        .filter(|package| package.contains("name = \"smoltcp\""))
        .find_map(|package| package.lines().find_map(|line| line.strip_prefix("version = ")))
        .expect("the lock has it");
    assert_eq!(Smoltcp::NAME, format!("smoltcp {}", version.trim_matches('"')));
}
