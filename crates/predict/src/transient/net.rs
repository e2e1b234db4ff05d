//! The path as the walks see it: times in seconds, sizes in full segments.

use crate::PathView;
use farpath_model::Hop;

/// One bottleneck each way, with all delay around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Net {
    /// Spacing that the slowest link puts between full segments, and between pure ACKs.
    pub spacing: f64,
    pub ack_spacing: f64,
    /// The way of a full segment, and of an ACK back, over idle links.
    pub forward: f64,
    pub back: f64,
    /// Segments that wait before the slowest link at most, and when it begins to mark; infinite where nothing limits them.
    pub queue: f64,
    pub mark: f64,
    /// ACKs that wait before the slowest link back, at most.
    pub ack_queue: f64,
}

impl Net {
    pub fn new(view: &PathView, marks: bool) -> Net {
        let full = view.mss + view.path.headers;
        let way = |hops: &[Hop], packet| -> f64 {
            hops.iter()
                .map(|hop| (hop.propagation + hop.rate.time_to_send(hop.frame(packet))).as_secs_f64())
                .sum()
        };
        let slowest = |hops: &[Hop], packet| -> f64 {
            hops.iter().map(|hop| hop.rate.time_to_send(hop.frame(packet)).as_secs_f64()).fold(0.0, f64::max)
        };
        Net {
            spacing: slowest(&view.path.forward, full),
            ack_spacing: slowest(&view.path.reverse, view.path.headers),
            forward: way(&view.path.forward, full),
            back: way(&view.path.reverse, view.path.headers),
            queue: view.queue_segments().map_or(f64::INFINITY, f64::floor),
            mark: if marks { view.mark_segments().unwrap_or(f64::INFINITY) } else { f64::INFINITY },
            ack_queue: view.ack_queue.map_or(f64::INFINITY, |queue| (queue.0 / view.path.headers.0) as f64),
        }
    }

    /// A round trip over idle links.
    pub fn idle(&self) -> f64 {
        self.forward + self.back
    }

    /// A round trip of `w` segments that keep each other waiting, with an ACK for every `every` of them.
    pub fn rtt(&self, w: f64, every: f64) -> f64 {
        self.idle().max(w * self.spacing.max(self.ack_spacing / every))
    }

    /// Segments that path and queue hold.
    pub fn capacity(&self) -> f64 {
        if self.spacing > 0.0 { self.idle() / self.spacing + self.queue } else { f64::INFINITY }
    }

    /// The same as far as it does not mark.
    pub fn unmarked(&self) -> f64 {
        if self.spacing > 0.0 { self.idle() / self.spacing + self.mark } else { f64::INFINITY }
    }
}
