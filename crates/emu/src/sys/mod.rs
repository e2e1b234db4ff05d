//! What the kernel is asked for beyond what others offer safely.

pub(crate) mod child;
pub(crate) mod ethtool;
pub(crate) mod packet;
pub(crate) mod sched;
pub(crate) mod trial;
pub(crate) mod tun;
