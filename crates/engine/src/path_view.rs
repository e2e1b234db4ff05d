//! A path as the closed forms see it: hops, and a loss rate each way.

use farpath_model::{Hop, Path};
use farpath_path::{Direction, ElementKind, ElementSpec, PacketCount};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration, Probability, Rate};

/// IP and TCP headers without options.
const HEADERS: Bytes = Bytes(40);
/// What the timestamps option takes of every segment, padding included (RFC 7323).
const TIMESTAMPS: Bytes = Bytes(12);

/// What of a path enters the formulas, for data that goes one way over it.
pub(crate) struct PathView {
    /// The hops, `forward` in the data direction.
    pub path: Path,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Loss rate of full data packets.
    pub data_loss: Probability,
    /// Loss rate of pure ACKs.
    pub ack_loss: Probability,
    /// What the formulas leave out of this path.
    pub caveats: Vec<String>,
}

impl PathView {
    pub fn new(elements: &[ElementSpec], data: Direction, sender: &Config, receiver: &Config) -> PathView {
        let timestamps = sender.send.timestamps && receiver.send.timestamps;
        let options = if timestamps { TIMESTAMPS } else { Bytes::ZERO };
        let mss = sender.mss.min(receiver.mss).saturating_sub(options).max(Bytes(1));
        let headers = HEADERS + options;
        let path = Path { forward: hops(elements, data), reverse: hops(elements, data.opposite()), headers };
        let mut caveats = Vec::new();
        let data_loss = loss(elements, data, mss + headers, true, &mut caveats);
        let ack_loss = loss(elements, data.opposite(), headers, false, &mut caveats);
        for element in elements {
            caveats.extend(left_out(element));
        }
        PathView { path, mss, data_loss, ack_loss, caveats }
    }
}

/// The links, with all propagation on the first: where along a FIFO path it lies changes nothing.
fn hops(elements: &[ElementSpec], direction: Direction) -> Vec<Hop> {
    let mut propagation = Duration::ZERO;
    let mut hops = Vec::new();
    for element in elements {
        match &element.kind {
            ElementKind::Delay { delay } => propagation += delay[direction],
            ElementKind::Link { rate, overhead, min_packet, .. } => hops.push(Hop {
                rate: rate[direction],
                propagation: Duration::ZERO,
                overhead: *overhead,
                min_payload: *min_packet,
            }),
            _ => {}
        }
    }
    if direction == Direction::Reverse {
        hops.reverse();
    }
    if hops.is_empty() {
        let rate = Rate::from_bit_per_s(u64::MAX).expect("not zero");
        hops.push(Hop { rate, propagation: Duration::ZERO, overhead: Bytes::ZERO, min_payload: Bytes::ZERO });
    }
    hops[0].propagation = propagation;
    hops
}

/// Loss rate of packets of `size` over all elements of one direction.
fn loss(
    elements: &[ElementSpec],
    direction: Direction,
    size: Bytes,
    carries_data: bool,
    caveats: &mut Vec<String>,
) -> Probability {
    let mut survives = 1.0;
    for element in elements {
        let name = &element.name;
        let lost = match &element.kind {
            ElementKind::Bernoulli { count: PacketCount::Data, .. }
            | ElementKind::EvenlySpaced { count: PacketCount::Data, .. }
                if !carries_data =>
            {
                0.0
            }
            ElementKind::Bernoulli { loss_rate, .. } => loss_rate[direction].fraction(),
            ElementKind::EvenlySpaced { every, .. } => {
                every[direction].map_or(0.0, |every| 1.0 / every as f64)
            }
            ElementKind::BitErrors { ber, overhead, linear, .. } => {
                let exposed = size + *overhead;
                if *linear {
                    ber[direction].to_per_linear(exposed).min(1.0)
                } else {
                    ber[direction].to_per(exposed).fraction()
                }
            }
            ElementKind::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, active } => {
                let moves = good_to_bad.fraction() + bad_to_good.fraction();
                if !active[direction] || moves == 0.0 {
                    0.0
                } else {
                    caveats.push(format!(
                        "{name}: losses come in bursts; predicted as if they were independent"
                    ));
                    let bad = good_to_bad.fraction() / moves;
                    (1.0 - bad) * loss_good.fraction() + bad * loss_bad.fraction()
                }
            }
            _ => 0.0,
        };
        survives *= 1.0 - lost;
    }
    Probability::new(1.0 - survives).unwrap_or(Probability::ZERO)
}

fn left_out(element: &ElementSpec) -> Option<String> {
    let name = &element.name;
    match &element.kind {
        ElementKind::Listed { .. } => Some(format!("{name}: listed drops are left out of the prediction")),
        ElementKind::Reorder { .. } => Some(format!("{name}: reordering is left out of the prediction")),
        ElementKind::Duplicate { .. } => Some(format!("{name}: duplicates are left out of the prediction")),
        _ => None,
    }
}
