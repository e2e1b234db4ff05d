//! What needs no privilege: hosts that lie in memory, and packets alone.

mod dress;
mod emulator;
mod endpoint;
mod gso;
mod packet;
mod qos;
mod this_host;
