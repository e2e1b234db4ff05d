//! Builds the crate again when a shipped file is added or removed.

fn main() {
    for folder in ["stacks", "paths", "experiments", "places", "protocols"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
}
