//! What the kernel is asked for beyond what others offer safely.

pub(crate) mod sched;
