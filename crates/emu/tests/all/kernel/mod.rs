//! Hosts of the running kernel, in namespaces of their own.

mod chaos;
mod dress_kernel;
mod hosts;
mod interfaces;
mod malformed;
mod metrics;
mod this_host_kernel;
