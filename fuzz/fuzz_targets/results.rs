//! The target of this name, for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(init: farpath_fuzz::forgive_parquet(), |data: &[u8]| farpath_fuzz::results(data));
