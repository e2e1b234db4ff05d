//! Taking one bound out of a scenario: what is simulated then differs from it in nothing else.

use crate::bound_id::BoundId;
use crate::groups::Rivals;
use crate::path_summary::{LARGEST_WINDOW, PathSummary};
use farpath_elements::Element;
use farpath_experiment::Scenario;
use farpath_path::Direction;
use farpath_tcp::config::{Config, RtoFloor, RttSampling, SynLoss};
use farpath_units::{Bytes, Duration};

/// A link that is ablated is so many times as fast: its share of the time is then below what is printed.
const FASTER: u64 = 1000;

/// `scenario` without these bounds. Where there are rivals, the explained flows alone are without them.
pub(crate) fn without(scenario: &Scenario, bounds: &[BoundId], rivals: &Rivals) -> Scenario {
    let mut ablated = scenario.clone();
    for flow in rivals.explained(&mut ablated) {
        for bound in bounds {
            match bound {
                BoundId::ApplicationWindow => (flow.writing.window, flow.writing.update_every) = (None, None),
                BoundId::ApplicationWrites => {
                    (flow.writing.write_size, flow.writing.think_time) = (None, Duration::ZERO);
                }
                _ => {}
            }
        }
    }
    if !rivals.any() {
        for bound in bounds {
            ablate(&mut ablated, *bound, scenario);
        }
        return ablated;
    }
    let (sender, receiver) = scenario.ends(&scenario.flows[0]);
    (ablated.sender, ablated.receiver) = (sender.clone(), receiver.clone());
    for bound in bounds {
        ablate(&mut ablated, *bound, scenario);
    }
    let (sender, receiver) = (ablated.sender.config.clone(), ablated.receiver.config.clone());
    (ablated.sender, ablated.receiver) = (scenario.sender.clone(), scenario.receiver.clone());
    rivals.give(&mut ablated, &sender, &receiver);
    if bounds.iter().any(|bound| bound.is_of_the_path()) {
        rivals.hold(&mut ablated);
    }
    ablated
}

/// Takes one bound out. Sizes and times are those of the scenario as it `was`.
fn ablate(scenario: &mut Scenario, bound: BoundId, was: &Scenario) {
    let data = was.flows[0].direction;
    let (sender, receiver) = (&mut scenario.sender.config, &mut scenario.receiver.config);
    match bound {
        BoundId::Link => speed_up(scenario, data),
        BoundId::AckLink => speed_up(scenario, data.opposite()),
        BoundId::ReceiveWindow => {
            receiver.receive.buffer = LARGEST_WINDOW;
            sender.send.window_scaling = true;
            receiver.send.window_scaling = true;
        }
        BoundId::SendBuffer => sender.send.buffer = None,
        BoundId::CwndClamp => sender.congestion.cwnd_clamp = None,
        BoundId::Application => receiver.receive.read_rate = None,
        BoundId::Loss => elements(scenario).for_each(|element| element.remove_loss()),
        BoundId::Reordering => elements(scenario).for_each(|element| element.remove_reordering()),
        BoundId::Contacts => elements(scenario).for_each(|element| element.remove_gaps()),
        BoundId::Queue => elements(scenario).for_each(|element| element.remove_queue_limit()),
        BoundId::SlowStart => start_at_full_window(scenario, was),
        BoundId::Timers => {
            let rto = PathSummary::new(was).fitting_rto();
            fit_timers(sender, rto);
            fit_timers(receiver, rto);
        }
        BoundId::DelayedAck => {
            receiver.receive.ack_every = 1;
            receiver.receive.ack_delay = Duration::ZERO;
        }
        // Nothing to simulate: its time is measured.
        BoundId::Handshake => {}
        // Of a flow, not of its ends.
        BoundId::ApplicationWindow | BoundId::ApplicationWrites => {}
    }
}

fn elements(scenario: &mut Scenario) -> impl Iterator<Item = &mut dyn Element> {
    scenario.path.iter_mut().map(|element| element.kind.spec_mut())
}

fn speed_up(scenario: &mut Scenario, way: Direction) {
    elements(scenario).for_each(|element| element.speed_up(way, FASTER));
}

/// Segments of the window that fills the path, or of the receive window where that is less.
fn full_window(summary: &PathSummary<'_>) -> u64 {
    let full = summary.bdp.map_or(summary.window, |bdp| bdp.min(summary.window));
    let initial = summary.sender().congestion.initial_window;
    full.0.div_ceil(summary.segment().0).max(initial.into())
}

/// Begins with the window that fills the path, and goes on from there as after slow start.
fn start_at_full_window(scenario: &mut Scenario, was: &Scenario) {
    let summary = PathSummary::new(was);
    let segments = full_window(&summary);
    let congestion = &mut scenario.sender.config.congestion;
    congestion.initial_window = u32::try_from(segments).unwrap_or(u32::MAX);
    congestion.one_segment_after_syn_loss = SynLoss::Never;
    let ssthresh = Bytes(segments.saturating_mul(summary.segment().0));
    congestion.initial_ssthresh = Some(congestion.initial_ssthresh.map_or(ssthresh, |was| was.min(ssthresh)));
}

/// `scenario` with queues that take a full window sent at once, unmarked: without that room a start at the full window
/// loses what slow start would not have, and with more of it slow start overflows nothing.
pub(crate) fn with_room_for_a_full_burst(scenario: &Scenario) -> Scenario {
    let summary = PathSummary::new(scenario);
    let packets = full_window(&summary);
    let bytes = Bytes(packets.saturating_mul((summary.segment() + summary.view.path.headers).0));
    let data = summary.data;
    let mut roomy = scenario.clone();
    // A full window waits for a round trip at the slowest link.
    elements(&mut roomy).for_each(|element| element.make_room(data, packets, bytes, summary.rtt));
    roomy
}

/// Timers as short as the path lets them be.
fn fit_timers(end: &mut Config, fitting: Duration) {
    let rto = &mut end.rto;
    rto.initial = fitting;
    rto.min = fitting;
    rto.max = rto.max.max(fitting * 64);
    rto.floor = RtoFloor::Rto;
    rto.tick = Duration::ZERO;
    rto.sampling = RttSampling::EveryAck;
    rto.after_syn_timeout = None;
}
