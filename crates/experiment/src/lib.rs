//! Experiment files: TOML in, checked types out
