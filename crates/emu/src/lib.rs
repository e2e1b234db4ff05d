//! Emulation: the Linux kernel's TCP over path elements, in real time.
//!
//! Two hosts, each a network namespace with one device; between them a loop that takes IP packets from one, offers
//! them to a [`farpath_path::Path`] and hands them to the other when they are due.

// What the loop alone uses has nobody to use it where there is no loop.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod budget;
mod checksum;
mod clamp;
mod clock;
#[cfg(target_os = "linux")]
mod coalesce;
mod control;
#[cfg(target_os = "linux")]
mod device;
pub mod doctor;
#[cfg(target_os = "linux")]
mod emulator;
#[cfg(target_os = "linux")]
mod endpoint;
pub mod gso;
mod headers;
#[cfg(target_os = "linux")]
mod host;
mod host_error;
#[cfg(target_os = "linux")]
mod icmp;
mod kernel_profile;
mod lateness;
#[cfg(target_os = "linux")]
mod maker;
mod malformed;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod nat;
#[cfg(target_os = "linux")]
mod netlink;
mod packet;
mod port;
#[cfg(target_os = "linux")]
mod program;
mod qos;
mod recorder;
mod report;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod sys;
mod this_host;
#[cfg(target_os = "linux")]
mod uplink;
#[cfg(target_os = "linux")]
mod veth_baseline;
#[cfg(target_os = "linux")]
mod wire;
mod wire_endpoint;

pub use budget::{Load, Unbounded, needed_memory};
pub use clock::Clock;
#[cfg(target_os = "linux")]
pub use control::{available_controls, has_control};
#[cfg(target_os = "linux")]
pub use device::NAME as DEVICE;
#[cfg(target_os = "linux")]
pub use emulator::{EmuError, Emulator, Settings};
#[cfg(target_os = "linux")]
pub use endpoint::EndpointPort;
#[cfg(target_os = "linux")]
pub use host::{Backend, DeviceDrops, Host, HostSettings};
pub use host_error::HostError;
pub use kernel_profile::{KernelProfile, RouteMetrics, Sysctl};
pub use lateness::Lateness;
pub use malformed::{Malformed, MalformedCounts};
#[cfg(target_os = "linux")]
pub use namespace::{Namespace, enter_user_namespace, has_privileges, set_sysctl};
pub use packet::{PartialChecksum, WirePacket};
pub use port::{Frame, VirtioHeader};
#[cfg(target_os = "linux")]
pub use port::{Port, Received};
#[cfg(target_os = "linux")]
pub use program::{Program, ProgramSettings, exit_code};
pub use qos::set_flow_seed;
pub use recorder::{NoRecorder, PacketEvent, Queues, Recorder};
pub use report::{LoopReport, PacketCounts, RealtimeGrant};
#[cfg(target_os = "linux")]
pub use sys::child::ignore_interrupts;
#[cfg(target_os = "linux")]
pub use sys::sched::RealTime;
pub use this_host::{Difference, HostFacts, HostStack, RouteFacts};
#[cfg(target_os = "linux")]
pub use uplink::{Reach, Uplink};
#[cfg(target_os = "linux")]
pub use veth_baseline::VethBaseline;
#[cfg(target_os = "linux")]
pub use wire::{behind, join};
pub use wire_endpoint::{Application, CloseWhen, Seen, WireEndpoint};
