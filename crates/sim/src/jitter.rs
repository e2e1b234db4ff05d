//! Scheduling delay of a host.

use crate::End;
use farpath_path::{Direction, Generator};
use farpath_units::{Duration, Instant};

/// Time from a packet's arrival at a host until the host handles it: interrupts, softirqs, other processes. It has a heavy tail
/// ([`Generator::heavy_tailed`]) and keeps order, so that packets that come behind a late one are handled with it.
///
/// What a host does by its timers and programs is not delayed: timers expire on ticks of its clock, coarser than this.
#[derive(Debug, Clone)]
pub(crate) struct Jitter {
    mean: Duration,
    draws: Generator,
    /// When the packet before was handled.
    last: Instant,
}

impl Jitter {
    /// Of the host at one end of a flow; `None` where its mean is zero.
    pub fn new(mean: Duration, run_seed: u64, flow: u32, end: End) -> Option<Jitter> {
        let name = match end {
            End::Sender => format!("host of flow {flow}: sender"),
            End::Receiver => format!("host of flow {flow}: receiver"),
        };
        let draws = Generator::new(run_seed, &name, Direction::Forward);
        (!mean.is_zero()).then_some(Jitter { mean, draws, last: Instant::ZERO })
    }

    /// When a packet that comes `now` is handled.
    pub fn handles_at(&mut self, now: Instant) -> Instant {
        self.last = self.last.max(now + self.draws.heavy_tailed(self.mean));
        self.last
    }
}
