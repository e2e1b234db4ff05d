//! The target of this name, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| farpath_fuzz::hosts(data));
