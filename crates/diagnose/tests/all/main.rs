//! Tests of what others see of the crate.

mod answers;
mod bounds;
mod common;
mod copies;
mod granted;
mod pace;
mod sent_again;
mod told;
mod without_handshake;
