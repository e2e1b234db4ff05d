//! Tests of what others see of the crate.

mod bounds;
mod common;
mod granted;
mod pace;
mod without_handshake;
