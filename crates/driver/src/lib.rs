//! The explicit-rate driver for Linux as it comes: TIA-1039 below TCP, without a patch and without a module.
//!
//! Two BPF objects, built from `bpf/` by `make bpf` and shipped compiled. One puts QoS Structures into packets that leave
//! a device and takes them out of those that arrive; the other is a TCP congestion control that sends at the rate which that has
//! brought, and hands sockets without a grant to the system's own. They talk through maps.
//!
//! | module | what it does |
//! | --- | --- |
//! | `settings`, `buffers`, `abi` | what the programs are told, and the bytes that this is |
//! | `driver` | the programs in the kernel, in the hands of this process: gone with it |
//! | `pinned` | the same, in the hands of the system: `farpath explicit-rate driver attach`, `status`, `detach` |
//! | `user_control` | a congestion control of the user's, in the hands of this process |
//! | `missing` | what a machine or a user lacks for it |
#![cfg(target_os = "linux")]

mod abi;
mod bpffs;
mod buffers;
mod device;
mod driver;
mod error;
mod missing;
mod pinned;
mod settings;
#[allow(unsafe_code)]
mod sys;
mod user_control;

pub use abi::{Counter, Flow, Outcome};
pub use buffers::{Limit, Limits};
pub use device::Device;
pub use driver::{Driver, signalling};
pub use error::DriverError;
pub use missing::{Missing, missing};
pub use pinned::{Attached, Detached, Pinned, Status};
pub use settings::{Buffers, Settings};
pub use user_control::{ControlError, UserControl};

/// The name by which a socket asks for it: `TCP_CONGESTION`.
pub const CONTROL: &str = "farpath_erate";
