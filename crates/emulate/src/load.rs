//! What a run in real time asks of the machine.

use farpath_experiment::{FlowSpec, Scenario, base_rtt};
use farpath_predict::{PathView, effective_window};

/// Packets per second, both directions, that runs may bring together. A packet costs an emulator some 5 us of a core
/// and the kernel's two ends about as much: at this rate a machine of two cores is idle most of the time, and no run
/// waits for another.
pub const MAX_LOAD: f64 = 20_000.0;

/// Whether the machine is idle most of the time while this runs.
#[cfg(target_os = "linux")]
pub(crate) fn is_light(scenario: &Scenario) -> bool {
    load(scenario) <= MAX_LOAD
}

/// Packets per second that a run brings at most, both directions.
pub fn load(scenario: &Scenario) -> f64 {
    let (sender, receiver) = (&scenario.sender.config, &scenario.receiver.config);
    let of_flow = |flow: &FlowSpec| {
        let view = PathView::new(&scenario.path, flow.direction, sender, receiver);
        let round = base_rtt(scenario, flow.direction).as_secs_f64();
        let mut window = effective_window(sender, receiver).0 as f64 / view.mss.0 as f64;
        // Neither a grant nor BBR takes loss for congestion.
        let (own, _) = scenario.ends(flow);
        let by_loss = !own.config.congestion.control.owns_cwnd() && own.config.explicit_rate.wanted.is_none();
        if by_loss {
            // Twice the window that losses leave Reno in the mean (Mathis et al. 1997).
            window = window.min(2.0 * (1.5 / view.data_loss.fraction()).sqrt());
        }
        // Data, and an ACK for each where they are not delayed.
        2.0 * (window / round).min(1.0 / view.spacing(1).as_secs_f64())
    };
    scenario.flows.iter().map(of_flow).sum()
}
