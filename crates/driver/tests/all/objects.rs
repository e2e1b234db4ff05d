//! The objects that ship are what their sources give.
#![cfg(target_os = "linux")]

use farpath_testing::{Need, skip};
use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");

/// Why it cannot be told here. Other compilers and other headers give other bytes.
fn missing() -> Option<String> {
    let version = Command::new("clang-14").arg("--version").output().ok();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if !version.contains("clang version 14.0.6") {
        return Some("no clang-14 of version 14.0.6".to_owned());
    }
    let has = |file: &str, text: &str| fs::read_to_string(file).is_ok_and(|header| header.contains(text));
    if !has("/usr/include/bpf/libbpf_version.h", "LIBBPF_MINOR_VERSION 1\n") {
        return Some("no headers of libbpf 1.1".to_owned());
    }
    // KERNEL_VERSION(6, 1, x), without x.
    if !has("/usr/include/linux/version.h", "LINUX_VERSION_PATCHLEVEL 1\n") {
        return Some("no headers of Linux 6.1".to_owned());
    }
    None
}

#[test]
fn what_ships_is_what_the_sources_give() {
    if let Some(why) = missing() {
        let what = "the shipped BPF objects are not compared with their sources";
        return skip(Need::Bpf, format!("{why}: {what} (Debian 12: apt-get install clang-14 libbpf-dev)"));
    }
    let examples = format!("{FOLDER}/../../../examples/bpf");
    let gentle = format!("{examples}/gentle.bpf.c");
    let of_tests = format!("{FOLDER}/../tests/objects");
    let pinned = format!("{of_tests}/pinned.bpf.c");
    for (folder, sources, objects) in [
        (FOLDER, &[][..], &["cc.bpf.o", "tc.bpf.o"][..]),
        (&examples, &[&gentle], &["gentle.bpf.o"]),
        (&of_tests, &[&pinned], &["pinned.bpf.o"]),
    ] {
        let out = tempfile::tempdir().unwrap();
        let built = Command::new(format!("{FOLDER}/build.sh"))
            .arg(out.path())
            .args(sources)
            .env("BPF_CLANG", "clang-14")
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        for name in objects {
            let [ships, gives] =
                [Path::new(folder), out.path()].map(|folder| fs::read(folder.join(name)).unwrap());
            assert!(ships == gives, "{folder}/{name} is not what its sources give: `make bpf` builds it");
        }
    }
}
