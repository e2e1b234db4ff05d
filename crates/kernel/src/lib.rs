//! Linux kernels in virtual time.
//!
//! A user-mode Linux kernel (`ARCH=um`) is an ordinary program without privileges. With `time-travel=inf-cpu` its clock
//! stands still while anything computes and jumps to the next timer when nothing does: hours of waiting cost nothing, no
//! packet is ever late, and with its chance taken from a seed a run repeats byte by byte.
//!
//! [`Recipe`] makes such a kernel from Linux's own sources, [`Catalog`] keeps it, [`Boot`] starts a program in it, and
//! [`guest`] is what that program needs to be the first process of a machine. The kernel is never part of Farpath: the
//! recipe is.
#![cfg(target_os = "linux")]

mod boot;
mod build;
mod catalog;
mod error;
pub mod guest;
mod recipe;

pub use boot::{Boot, Ended, Halt};
pub use build::Step;
pub use catalog::{About, Catalog, Kernel};
pub use error::KernelError;
pub use recipe::{DEFAULT_HZ, DEFAULT_LINUX, HZ, Recipe, Source};
