//! What needs no privilege: hosts that lie in memory, and packets alone.

mod emulator;
mod endpoint;
mod gso;
mod kernel_profile;
mod packet;
mod qos;
mod this_host;
