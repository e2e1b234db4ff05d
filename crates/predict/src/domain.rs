//! Where the models hold: beyond it a prediction is none, and says why.

use crate::{Flow, Prediction, rack, sack};
use farpath_elements::ElementSpec;
use farpath_experiment::Scenario;
use farpath_path::Direction;
use farpath_run::{FlowRow, Outcome};
use farpath_tcp::cc::MIN_RTT_TIME;
use farpath_units::{Bytes, Probability};

/// Of windows whose ACKs are all lost: beyond it the timeouts that follow, which no model here has, cost more than a few percent.
const WINDOWS_UNANSWERED: f64 = 0.01;

/// Losses up to which BBR is predicted. Chosen: up to there its times were within a quarter of a kernel's at every point tried.
const BBR_LOSS: f64 = 0.1;

/// What a delayed ACK of two segments lets go in slow start: a queue of fewer loses some of each such burst.
const SMALLEST_QUEUE: f64 = 4.0;

/// Packets lost in a visit to a bad state that are taken as losses on their own.
const LONGEST_BURST: f64 = 1.5;

/// Of a transfer without SACK: so often may the timer end a repair of many holes.
const SENT_TWICE: f64 = 0.1;

/// Why there is no prediction for a file over these elements.
pub(crate) fn outside(flow: &Flow, elements: &[ElementSpec]) -> Option<String> {
    if let Some(why) = held_back(flow) {
        return Some(why);
    }
    let bbr = flow.sender.congestion.control.owns_cwnd();
    if !flow.sender.handshake.syn && !flow.receiver.handshake.syn {
        return Some(
            "the connection is open without a SYN (handshake.syn): there is no model of that".to_owned(),
        );
    }
    if bbr && flow.view.handshake_rtt >= MIN_RTT_TIME {
        // What follows depends on single ACKs.
        return Some(format!(
            "BBR forgets its smallest round trip after {MIN_RTT_TIME}, and one takes {}: there is no model of that",
            flow.view.handshake_rtt
        ));
    }
    if bbr && !sack(flow) && (flow.view.data_loss > Probability::ZERO || flow.view.queue.is_some()) {
        return Some("BBR repairs what is lost without SACK: there is no model of that".to_owned());
    }
    if bbr && flow.view.data_loss.fraction() > BBR_LOSS {
        return Some(format!(
            "{} of the packets are lost: there is no model of what that costs BBR",
            flow.view.data_loss
        ));
    }
    if flow.window < flow.view.mss {
        return Some(format!(
            "the window is {}, less than a segment of {}: there is no model of that",
            flow.window, flow.view.mss
        ));
    }
    if let Some(queue) = flow.view.queue_segments().filter(|&queue| queue < SMALLEST_QUEUE)
        && flow.window.0 as f64 > (queue + 1.0) * flow.view.mss.0 as f64
        && !bbr
    {
        return Some(format!(
            "the queue holds {queue:.1} segments, fewer than leave at once when an ACK comes: there is no model of what such bursts lose"
        ));
    }
    elements.iter().find_map(|element| odd(flow, element))
}

/// The program, where it does not write the file at once.
fn held_back(flow: &Flow) -> Option<String> {
    let (writing, size) = (flow.spec.writing, flow.spec.size);
    if let Some(window) = writing.window.filter(|&window| window < size) {
        return Some(format!(
            "transfer.window: the program has a window of {window} of its own: there is no model of that"
        ));
    }
    let in_pieces = writing.write_size.is_some_and(|piece| piece < size);
    (in_pieces && !writing.think_time.is_zero()).then(|| {
        "transfer.think_time: the program pauses between its writes: there is no model of that".to_owned()
    })
}

/// What of an element no model has.
fn odd(flow: &Flow, element: &ElementSpec) -> Option<String> {
    let name = &element.name;
    if let Some(reason) = element.spec().no_model(flow.spec.direction) {
        return Some(format!("{name}: {reason}"));
    }
    let late = |way| {
        let (share, extra_delay) = element.spec().reordering(way)?;
        (share > Probability::ZERO && extra_delay >= flow.view.handshake_rtt).then_some(())
    };
    let overtaken =
        element.spec().reordering(flow.spec.direction).is_some_and(|(share, _)| share > Probability::ZERO);
    if Direction::BOTH.into_iter().find_map(late).is_some() {
        return Some(format!(
            "{name}: packets that are a round trip late are sent again, and there is no model of that"
        ));
    }
    if overtaken && !rack(flow) {
        return Some(format!(
            "{name}: without RACK packets out of order are taken to be lost, and there is no model of that"
        ));
    }
    let burst = element.spec().loss_burst(flow.spec.direction).filter(|&burst| burst > LONGEST_BURST)?;
    Some(format!(
        "{name}: {burst:.1} packets are lost in a burst; the models hold where losses are independent"
    ))
}

/// Why the numeric model does not say: too few ACKs come back for it.
pub(crate) fn unanswered(flow: &Flow) -> Option<String> {
    let (lost, back) = (flow.view.data_loss.fraction(), flow.view.ack_loss.fraction());
    if back == 0.0 {
        return None;
    }
    // Mathis et al. 1997: what losses leave of a window, at most what the ends allow.
    let window = (flow.window.0 as f64 / flow.view.mss.0 as f64).min(1.31 / lost.sqrt());
    let acks = (window / flow.ack_every() as f64).max(1.0);
    (back.powf(acks) > WINDOWS_UNANSWERED).then(|| {
        format!(
            "{} of the ACKs are lost, and a window has {acks:.1} of them: there is no model of the timeouts that follow",
            flow.view.ack_loss
        )
    })
}

/// Why a repair without SACK has no prediction.
pub(crate) fn sent_twice(times: f64) -> Option<String> {
    (times > SENT_TWICE).then(|| {
        "without SACK, a queue that overflows loses more segments of a window than the timer lets be repaired one by one: there \
         is no model of what is then sent twice"
            .to_owned()
    })
}

/// Rows of flows that together ask for more than a link has: none of them is known.
pub(crate) fn shared(
    scenario: &Scenario,
    rows: &mut [FlowRow],
    rates: &[(Direction, f64)],
) -> Option<String> {
    if rows.len() < 2 {
        return None;
    }
    let mut reason = None;
    for way in Direction::BOTH {
        let link = scenario.path.iter().filter_map(|element| Some(element.spec().line(way)?.rate));
        let Some(link) = link.min() else { continue };
        let wanted: f64 = rates.iter().filter(|(direction, _)| *direction == way).map(|(_, rate)| rate).sum();
        if wanted <= link.bit_per_s() as f64 {
            continue;
        }
        let text = format!(
            "{} flows share a link of {link}, and alone would take {:.2} of it: there is no model of how they share it",
            rates.iter().filter(|(direction, _)| *direction == way).count(),
            wanted / link.bit_per_s() as f64
        );
        for (row, _) in rows.iter_mut().zip(rates).filter(|(_, (direction, _))| *direction == way) {
            *row = unknown(row, &text);
        }
        reason = Some(text);
    }
    reason
}

/// A row of which nothing is known.
pub(crate) fn unknown(row: &FlowRow, why: &str) -> FlowRow {
    FlowRow {
        detail: why.to_owned(),
        start: row.start,
        opened: row.opened,
        completed: row.completed,
        connect_time: row.connect_time,
        ..FlowRow::new(row.flow, row.direction, Outcome::Unknown, row.bytes)
    }
}

impl Prediction {
    /// There is none after all.
    pub(crate) fn withdraw(&mut self, why: String) {
        self.caveats.insert(0, format!("no prediction: {why}"));
        self.unknown = Some(why);
    }
}

/// Bytes of TCP that one flow moves a second while it lasts, in bits on the wire.
pub(crate) fn on_the_wire(flow: &Flow, prediction: &Prediction) -> f64 {
    let seconds = prediction.transfer_time.as_secs_f64();
    let packet = flow.view.mss + flow.view.path.headers;
    let size = Bytes(flow.segments() as u64 * packet.0);
    if seconds > 0.0 { size.0 as f64 * 8.0 / seconds } else { 0.0 }
}
