//! Packet scripts against a stack behind a device.
//!
//! One program: to compile and link one for each file takes longer than all of them run.

mod scripts_device;
