//! Hosts of the running kernel, in namespaces of their own.

mod chaos;
mod hosts;
mod interfaces;
mod kernel_profile;
mod malformed;
mod metrics;
mod this_host_kernel;
