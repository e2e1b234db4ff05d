//! What became of packets that did not arrive, in a run's words.

use farpath_path::{DropCause, DropCounts, PerDirection};
use std::borrow::Cow;

/// Drops both ways together, sorted by the causes' names; those that never were are left out.
pub fn drops_by_cause(drops: &PerDirection<DropCounts>) -> Vec<(Cow<'static, str>, u64)> {
    let of = |cause| drops.forward.count_of(cause) + drops.reverse.count_of(cause);
    let mut by_cause: Vec<_> =
        DropCause::ALL.into_iter().map(|cause| (cause.name().into(), of(cause))).collect();
    by_cause.retain(|&(_, count)| count > 0);
    by_cause.sort();
    by_cause
}
