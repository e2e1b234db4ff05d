//! Hosts of others, asked as an engine asks them.

mod interop;
#[cfg(unix)]
mod programs;
mod smoltcp;
