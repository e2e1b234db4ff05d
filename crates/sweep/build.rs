//! A digest of the sources that make the numbers, so that runs of one program are never taken for another's: the version
//! alone stays the same from one release to the next.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// What a run of an engine is made by.
const MAKERS: [&str; 18] = [
    "units",
    "tcp",
    "tia1039",
    "explicit-rate",
    "path",
    "elements",
    "model",
    "experiment",
    "run",
    "sim",
    "predict",
    "traffic",
    "emu",
    "kernel",
    "foreign",
    "observe",
    "emulate",
    "engine",
];

fn main() {
    let mut files = vec![PathBuf::from("../../Cargo.lock")];
    for name in MAKERS {
        let folder = Path::new("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &mut files);
    }
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        // A package of its own may come without the lock file.
        let Ok(text) = fs::read(&file) else { continue };
        digest.update(file.to_string_lossy().replace('\\', "/"));
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    let hex = HEXLOWER.encode(&digest.finalize()[..6]);
    println!("cargo::rustc-env=FARPATH_SOURCES={hex}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
