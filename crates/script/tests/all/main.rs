//! Packet scripts: the language, what is no script, and our own scripts against the stacks that they are written for.

mod code;
mod language;
mod playing;
